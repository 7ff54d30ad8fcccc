"""The cache of compiled programs: later starts load them without a compiler, and give the same answers; what is damaged, of other options
or of another kernel, or could be another user's, is never used. A compiler that does not fit the memory limit shows that none is used."""
import os
import re
import resource
import shlex
import shutil
import subprocess

from bpf_maps import Map, bpf, map_ids
from case_trouble import expect_error
from harness import START_S, STOP_S, UNREADY, Skip, case, check, rows_of, through, wait_until

NOW, CACHED = "BPF programs compiled now", "BPF programs from the cache in "
NO_COMPILER_MB = 200  # address space for tsnap, not for libbcc, which takes 400 MB
TIGHT_MB = (NO_COMPILER_MB, 160, 130, 110)  # a program with the compiler in it takes less


def within(megabytes):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


small = within(NO_COMPILER_MB)


class Cache:
    """A cache of its own, and starts that use it."""

    def __init__(self, ctx, directory=None):
        self.ctx = ctx
        self.directory = directory or os.path.join(ctx.temporary(), "cache")

    def start(self, *args, **popen):
        return self.ctx.plain("--csv", "-a", "-v", "-d", 1, *args, env=dict(os.environ, TSNAP_CACHE=self.directory), **popen)

    def rows(self, said, *args, **popen):
        """The rows of a start, which must say that about its programs."""
        tool = self.start(*args, **popen)
        rows = tool.finish(0, START_S + STOP_S)
        check(said in tool.err, "not '%s' after %s: %s", said, args, tool.err)
        return rows

    def files(self):
        return sorted(os.path.join(self.directory, name) for name in os.listdir(self.directory))


@case
def cached_programs(ctx):
    """The second start of the same options loads no compiler, and has the same answers; other options are compiled, also with a larger map."""
    cache = Cache(ctx)
    futex, sleeper = ctx.workloads([("sleep", {"call": "futex"}), ("sleep", {"call": "nanosleep"})])
    options = ("-g", "tid,state,syscall,waits_on,wchan", "-p", "%d,%d" % (futex.tgid, sleeper.tgid))
    answers = []
    for limit in map(within, TIGHT_MB):
        tool = cache.start(*options, "--source", "bpf", "--no-cache", preexec_fn=limit)
        if tool.wait(START_S + STOP_S) == UNREADY:
            check("memory is short" in tool.err, "no other reason than memory: %s", tool.err)
            break
    else:
        check(False, "a compiler fits each limit: %s", tool.err)
    for said, popen in ((NOW, {}), (CACHED, {}), (CACHED, {"preexec_fn": limit})):
        rows = cache.rows(said, *options, **popen)
        answers.append({tuple(row.values()) for tid in (futex.tid, sleeper.tid) for row in rows_of(rows, tid)})
        check(len(answers[-1]) >= 2, "%s: %s", said, rows[:4])
    check(answers[0] == answers[1] == answers[2], "answers differ: %s", answers)
    one = cache.files()
    cache.rows(NOW, *options, "-g", "tid,waker_comm")
    cache.rows(NOW, *options, "--max-threads", 200000)
    check(len(cache.files()) == 3 and set(one) < set(cache.files()), "files: %s", cache.files())
    cache.rows(CACHED, *options, "--max-threads", 190000)
    cache.rows(NOW + "\n", *options, "--no-cache")
    checked = subprocess.run([ctx.options.tsnap, "--check", *ctx.options.tsnap_args.split()], env=dict(os.environ, TSNAP_CACHE=cache.directory),
                             stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False, text=True).stdout
    check(re.search(r"^  BPF programs +compiled now and cached in " + re.escape(cache.directory), checked, re.M), "--check: %s", checked)


def maps_of(pid):
    """Sizes of keys and values, and capacities, of the maps of a tsnap. Not by name: libbcc gives none on some kernels that have them."""
    found = []
    for number in map_ids(pid):
        fd, _ = bpf(14, number.to_bytes(4, "little"))
        if fd >= 0:
            one = Map(fd)
            found.append((one.key_size, one.value_size, one.capacity))
            one.close()
    return sorted(found)


@case
def cached_maps(ctx):
    """The maps that a start makes by itself are those that libbcc makes, for any number of threads."""
    cache = Cache(ctx)
    for more in ((), ("--trace", "runq,syscalls", "--slower", "10")):
        made = []
        for threads in (70000, 70000, 80000, 80000):
            how = ("--no-cache",) if len(made) == 2 else ()
            tool = ctx.plain("-d", 60, "-v", "--max-threads", threads, *more, *how, env=dict(os.environ, TSNAP_CACHE=cache.directory))
            wait_until(lambda: "BPF programs" in tool.err, START_S, "a word on the programs")
            check((CACHED in tool.err) == (len(made) in (1, 3)), "start %d: %s", len(made), tool.err)
            made.append(maps_of(tool.pid))
            tool.kill()
        if not any(made):
            raise Skip("maps can't be listed here")
        check(made[0] == made[1], "cached: %s, compiled: %s", made[1], made[0])
        check(made[2] == made[3] != made[0], "cached, with another size: %s, compiled: %s", made[3], made[2])


@case
def cached_untrusted(ctx):
    """Damaged files, and directories and files that others could have written, are not used; a directory that can't be written to is none."""
    cache = Cache(ctx)
    sleeper = ctx.workload("sleep", call="nanosleep")
    options = ("-g", "tid,state", "-p", sleeper.tgid)
    cache.rows(NOW, *options)
    file = cache.files()[0]
    size = os.stat(file).st_size
    for at in (0, 100, size // 2, size - 1):
        with open(file, "r+b") as damaged:
            damaged.seek(at)
            byte = damaged.read(1)
            damaged.seek(at)
            damaged.write(bytes([byte[0] ^ 1]))
        cache.rows("is damaged", *options)  # and is replaced
        cache.rows(CACHED, *options)
    os.truncate(file, size - 1)
    cache.rows("is damaged", *options)
    for path, mode in ((file, 0o600), (cache.directory, 0o700)):
        os.chmod(path, mode | 0o002)
        cache.rows("others than root may write to it", *options)
        os.chmod(path, mode)
        os.chown(path, 65534, -1)
        cache.rows("does not belong to root", *options)
        os.chown(path, 0, -1)
        if path == file:  # root has written it anew
            check(os.stat(file).st_uid == 0, "not replaced")
    cache.rows(CACHED, *options)
    moved = cache.directory + ".moved"
    os.rename(cache.directory, moved)
    os.symlink(moved, cache.directory)
    cache.rows("not cached in", *options)
    for rows in (Cache(ctx, "/proc/tsnap").rows("not cached in /proc/tsnap: No such file or directory", *options),
                 Cache(ctx, "relative").rows("not cached in relative: its path must be absolute", *options)):
        check({row["state"] for row in rows_of(rows, sleeper.tid)} == {"S"}, "rows: %s", rows[:3])


@case
def cached_together(ctx):
    """Starts side by side cache their programs without harm to each other, and a disk that is full is no reason to fail."""
    cache = Cache(ctx)
    sleeper = ctx.workload("sleep", call="nanosleep")
    options = ("-g", "tid,state", "-p", sleeper.tgid)
    for tool in [cache.start(*options) for _ in range(6)]:
        check(rows_of(tool.finish(0, START_S + STOP_S), sleeper.tid), "no rows: %s", tool.err)
    cache.rows(CACHED, *options, preexec_fn=small)
    check(len(cache.files()) == 1, "files: %s", cache.files())
    full = ctx.temporary()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", full], check=False).returncode:
        raise Skip("no tmpfs can be mounted")
    ctx.at_end(lambda: subprocess.run(["umount", full], check=True))
    cache = Cache(ctx, full + "/cache")
    cache.rows("No space left on device", *options)
    check(not cache.files(), "left: %s", cache.files())


@case
def programs_carried(ctx):
    """--write-programs writes what --programs loads without a compiler; another kernel's are refused by name, and so are other options, and
    damaged files."""
    file = os.path.join(ctx.temporary(), "programs")
    sleeper = ctx.workload("sleep", call="nanosleep")
    options = ("--csv", "-a", "-g", "tid,state,syscall", "-d", 1, "-p", sleeper.tgid)
    written = ctx.plain(*options, "--write-programs", file).finish(0, START_S + STOP_S)
    first = os.stat(file).st_size
    ctx.plain("--csv", "-a", "-g", "tid,waker_comm", "-d", 1, "--write-programs", file).finish(0, START_S + STOP_S)
    check(first < os.stat(file).st_size, "not added")
    ctx = ctx.but(tsnap_args=shlex.join(ctx.without("")))  # the types are in the file
    loaded = ctx.plain(*options, "-v", "--programs", file, preexec_fn=small)
    rows = loaded.finish(0, START_S + STOP_S)
    check("BPF programs from '%s'" % file in loaded.err, "-v: %s", loaded.err)
    check({tuple(row.values()) for row in rows} == {tuple(row.values()) for row in written} and rows, "rows: %s, %s", rows[:2], written[:2])
    expect_error(ctx.plain(*options, "-g", "tid,comm", "--trace", "runq", "--programs", file), 1, "has none for these options",
                 "--write-programs")
    if shutil.which("setarch"):  # uname(2) tells of another release
        expect_error(through(ctx, "setarch", "--uname-2.6", workload=False).plain(*options, "--programs", file), 1,
                     "of another kernel build", os.uname().release, "2.6.")
    os.chmod(file, 0o666)
    expect_error(ctx.plain(*options, "--programs", file), 1, "others may write to it")
    os.chmod(file, 0o600)
    for cut in (0, 10, first - 1, first + 30):
        short = file + ".short"
        with open(file, "rb") as whole, open(short, "wb") as part:
            part.write(whole.read()[:cut])
        expect_error(ctx.plain(*options, "--programs", short), 1, "no file of programs", "cut off")
    expect_error(ctx.plain(*options, "--programs", "/etc/passwd"), 1, "no file of programs")
    expect_error(ctx.plain(*options, "--write-programs", "/etc/passwd"), 1, "no file of programs")
    expect_error(ctx.plain(*options, "--programs", file + ".absent"), 1, "No such file")
