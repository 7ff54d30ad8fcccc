"""Special files in the place of regular ones, links in the way of tsnap's output, and file systems that are to be unmounted."""
import ctypes
import itertools
import os
import select
import shutil
import stat
import subprocess
import sys

import truth
from case_share import Place
from case_namespaces import unshared
from case_stack_trouble import Strange
from case_stacks import chain_programs, directory_of, frames_of
from harness import SLOW, START_S, STOP_S, Findings, Skip, case, check, rows_of, through, wait_until

NOBODY = STRANGER = 65534
IN_OPEN, IN_NONBLOCK = 0x20, 0o4000  # inotify(7)
NEW_MOUNTS, NEW_USERS = 0x20000, 0x10000000  # unshare(2)
PRIVATE, BIND = 1 << 14 | 1 << 18, 1 << 12  # mount(2)
UNREAD = 9  # syslog(2): SYSLOG_ACTION_SIZE_UNREAD
REFUSED = "processes whose perf-PID.map is no plain file, or another user's"


def libc():
    return ctypes.CDLL(None, use_errno=True)


class Opens:
    """A watch that reports whether files were opened; O_PATH opens nothing, and does not count. Before 6.10 inotify reports that, too, and
    this class nothing."""

    def __init__(self, ctx):
        self.fd, self.paths, self.blind = libc().inotify_init1(IN_NONBLOCK), {}, False
        check(self.fd >= 0, "no inotify")
        ctx.at_end(lambda: os.close(self.fd))

    def watch(self, name, path):
        number = libc().inotify_add_watch(self.fd, path.encode(), IN_OPEN)
        check(number >= 0, "%s can't be watched", path)
        self.paths[number] = name
        os.close(os.open(path, os.O_PATH))
        self.blind = self.blind or bool(self.taken())

    def taken(self):
        """Names of the files that were opened since the last call."""
        names = set()
        while select.select([self.fd], [], [], 0)[0]:
            events = os.read(self.fd, 65536)
            for at in range(0, len(events), 16):  # the events have no names, as each file is watched by itself
                names.add(self.paths[int.from_bytes(events[at:at + 4], sys.byteorder)])
        return set() if self.blind else names


def map_path():
    return "/tmp/perf-%d.map" % os.getpid()


def made(mode, device=0):
    """A function that makes a special file in the place of the process' perf map; called in the process before its exec."""
    return lambda: os.mknod(map_path(), mode | 0o644, device)


def bound(source, users):
    """A function that mounts source in the perf map's place, in a mount namespace of the process; called before its exec. users: in a user
    namespace, as an unprivileged user may, too."""
    def act():
        os.close(os.open(map_path(), os.O_CREAT | os.O_EXCL, 0o644))
        libc().unshare(NEW_MOUNTS | (NEW_USERS if users else 0))
        libc().mount(None, b"/", None, PRIVATE, None)
        libc().mount(source.encode(), map_path().encode(), None, BIND, None)
    return act


def strange_map(ctx, act, **popen):
    """A process with JIT code on its stack, whose map act() has made: (process, path of the map)."""
    one = Strange(ctx, "jit", preexec_fn=act, **popen)
    path = "/tmp/perf-%d.map" % one.pid
    ctx.at_end(lambda: os.path.lexists(path) and os.unlink(path))
    return one, "/proc/%d/root%s" % (one.pid, path)


def log_unread():
    """Bytes of the kernel's log that no process has taken yet from /proc/kmsg."""
    return libc().klogctl(UNREAD, None, 0)


@case
def hostile_perf_maps(ctx):
    """A perf map of a JIT that is /proc/kmsg, by a mount of root's or of an unprivileged user's, or a FIFO or a device, is not even
    opened: the kernel's log is not taken from it, and tsnap does not wait."""
    find, opens, ones = Findings(), Opens(ctx), {}
    nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    program = os.path.join(ctx.temporary(), "strange")  # where the unprivileged user may enter, too
    os.chmod(os.path.dirname(program), 0o755)
    shutil.copy2(os.path.join(directory_of(ctx), "strange"), program)
    kinds = {"kmsg": (bound("/proc/kmsg", False), {}), "kmsg of a user": (bound("/proc/kmsg", True), nobody),
             "memory": (bound("/proc/self/mem", False), {}), "FIFO": (made(stat.S_IFIFO), {}), "FIFO of a user": (made(stat.S_IFIFO), nobody),
             "device": (made(stat.S_IFCHR, os.makedev(1, 5)), {})}
    lacking = []
    for name, (act, popen) in kinds.items():
        try:
            one, path = strange_map(ctx, act, executable=program, **popen)
            if stat.S_ISREG(os.stat(path).st_mode) and os.stat(path).st_dev != os.stat("/proc/self/mem").st_dev:
                raise Skip("nothing could be mounted there")
            opens.watch(name, path)
            ones[name] = one
        except (Skip, OSError, subprocess.SubprocessError) as why:
            lacking.append("%s: %s" % (name, why))
    for why in lacking + ["what is opened (inotify reports O_PATH, too)"] * opens.blind:
        print("# not here: %s" % why)
    check(len(ones) >= 3, "only %s could be had: %s", sorted(ones), lacking)
    before, pids = log_unread(), ",".join(str(one.pid) for one in ones.values())
    opens.taken()
    tool = ctx.stream("-a", "-F", 20, "-d", 2, "-p", pids, columns="stack")
    rows = tool.finish(0, START_S + STOP_S)
    opened = sorted(opens.taken())
    find.expect(not opened, "opened: %s", opened)
    find.expect(log_unread() >= before, "%d bytes of the kernel's log were not read before, %d are now", before, log_unread())
    for name, one in ones.items():
        names = {frames_of(row)[0] for row in rows_of(rows, one.tid) if row["stack"]}
        find.expect("[jit]+%#x" % (one.code_at + 3) in names, "%s: no stack that ends in its code: %s", name, sorted(names))
    find.expect(tool.missed(REFUSED) == len(ones), "%d that are none, told: %s", len(ones), tool.err)
    find.close()


def enter_mounts(pid):
    """A function that enters the mount namespace of that process; called before an exec."""
    def act():
        with open("/proc/%d/ns/mnt" % pid, "rb") as file:
            if libc().setns(file.fileno(), 0):
                os._exit(1)
    return act


@case(alone=True)
def stacks_let_go_of_file_systems(ctx):
    """The file systems of programs that have ended, a tmpfs and an ext4 of an image, can be unmounted a few seconds later, though a tsnap
    among these mounts and one outside took the programs' stacks."""
    image, loop, memory, directory = ctx.temporary() + "/image", ctx.temporary(), ctx.temporary(), directory_of(ctx)
    mount, folders = "mount -t tmpfs tsnap-test " + memory, [memory]
    if shutil.which("mkfs.ext4"):
        mount += " && truncate -s 16M %s && mkfs.ext4 -q %s && mount -o loop %s %s" % (image, image, image, loop)
        folders.append(loop)
    place = Place(*unshared("--mount"), mount=mount)
    ctx.started.append(place)
    prefix, chains = ["nsenter", "--target", str(place.pid), "--mount", "--root", "--wd"], []
    inside = through(ctx, *prefix, workload=False)
    for folder in folders:
        shutil.copy2(os.path.join(directory, "chains_gcc"), "/proc/%d/root%s" % (place.pid, folder))
        chains.append(chain_programs.Chain(folder + "/chains_gcc", "recursion", directory, preexec_fn=enter_mounts(place.pid)))
        ctx.started.append(chains[-1])
    tools = [which.stream("-a", "-F", 20, columns="stack,exe,waits_on,cmdline") for which in (inside, ctx)]
    for tool in tools:
        for chain in chains:
            tool.wait_scans(5, lambda row, chain=chain: row["tid"] == str(chain.tid) and
                            chain_programs.contains(frames_of(row), chain.expected))
    for chain in chains:
        chain.end()
    for folder in folders:
        wait_until(lambda folder=folder: not subprocess.run(prefix + ["umount", folder], stderr=subprocess.DEVNULL).returncode, 5 * SLOW,
                   "that %s can be unmounted" % folder)
    for tool in tools:
        tool.interrupt()


def listing(directory):
    return {name: truth.link(os.path.join(directory, name)) or truth.read(os.path.join(directory, name))
            for name in truth.read_dir(directory)}


@case
def hostile_links(ctx):
    """Links that another user has put into a directory of everybody's, or into one of their own, in the place of an output file or directory
    or on the way to it: one line, exit code 1, and nothing is written where the link leads."""
    if os.geteuid():
        raise Skip("not root")
    find, recorded = Findings(), ctx.temporary()
    ctx.plain("-a", "-o", recorded, "-n", 1).finish_plain(0)
    brief = ("-a", "-d", 0.1)
    forms = {"-o": lambda path: (*brief, "-o", path), "--flame": lambda path: (*brief, "--flame", path),
             "--html": lambda path: (*brief, "--html", path),
             "--pprof": lambda path: (*brief, "--pprof", path), "--metrics": lambda path: ("-a", "-n", 1, "--metrics", path),
             "--stack-dict": lambda path: (*brief, "--csv", "-g", "ustack", "--stack-dict", path),
             "--write-offsets": lambda path: ("--write-offsets", path),
             "--snapshot": lambda path: ("--replay", recorded, "--snapshot", path),
             "--flame of a recording": lambda path: ("--replay", recorded, "-a", "--flame", path)}
    places = {"everybody's": (0, 0o1777), "another's": (STRANGER, 0o755)}
    for name, form in forms.items():
        for kind, place in itertools.product(("in its place", "to nothing", "on the way"), places):
            theirs, own = ctx.temporary(), ctx.temporary()
            os.chown(theirs, places[place][0], -1)
            os.chmod(theirs, places[place][1])
            path = link = os.path.join(theirs, "planted")
            with open(own + "/kept", "w", encoding="ascii") as file:
                file.write("kept")
            aim = own if kind == "on the way" or name == "-o" else own + "/kept"
            if kind == "to nothing":
                aim = own + "/new"
            elif kind == "on the way":
                path += "/new"
            os.symlink(aim, link)
            os.lchown(link, STRANGER, STRANGER)
            tool = ctx.plain(*form(path))
            code, what = tool.wait(START_S + STOP_S), "%s %s in %s" % (name, kind, place)
            find.expect(code == 1, "%s: exit code %d: %s", what, code, tool.err)
            find.expect(len(tool.err.splitlines()) == 1 and path in tool.err and "another user has put it" in tool.err, "%s: %s", what, tool.err)
            find.expect(listing(own) == {"kept": "kept"}, "%s: changed where it leads: %s", what, sorted(listing(own)))
            find.expect(listing(theirs) == {"planted": aim}, "%s: changed beside it: %s", what, sorted(listing(theirs)))
    find.close()


@case
def hostile_config(ctx):
    """A --config that is no regular file, another user's, or that others may write to is refused with one line, at once."""
    if os.geteuid():
        raise Skip("not root")
    find, directory = Findings(), ctx.temporary()

    def made(name, mode=0o644, user=-1, group=-1):
        path = os.path.join(directory, name)
        with open(path, "w", encoding="ascii") as file:
            file.write("duration 0.1\n")
        os.chown(path, user, group)
        os.chmod(path, mode)
        return path
    os.mkfifo(directory + "/fifo")
    os.symlink(made("all", 0o666), directory + "/link")
    refused = {directory + "/fifo": "not a regular file", "/dev/zero": "not a regular file", "/dev/null": "not a regular file",
               made("another's", user=STRANGER): "belongs to another user", directory + "/link": "may write to the file",
               directory + "/all": "may write to the file", made("group", 0o664, group=STRANGER): "may write to the file"}
    for path, why in refused.items():
        tool = ctx.plain("--config", path, "-a", "-n", 1)
        code = tool.wait(START_S)
        find.expect(code == 2 and len(tool.err.splitlines()) == 1 and path in tool.err and why in tool.err, "%s: %s: %s", path, code, tool.err)
    for path in made("own"), made("of a private group", 0o664):
        ctx.plain("--config", path, "-a", "-n", 1).finish_plain(0)
    find.close()
