"""Recordings: -o DIR, all ways in which it can end, and what a replay shows of them."""
import collections
import csv
import errno
import fcntl
import glob
import grp
import io
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from datetime import datetime

from case_schema import duckdb_asked
from case_share import Place
from case_totals import Clock
from case_namespaces import unshared
from case_trouble import with_fault
from harness import SCANS_MORE, START_S, STOP_S, Skip, case, check, let_pass, through, timestamp_s, wait_until

COLUMNS = ("timestamp,weight_us,tid,pid,state,user,comm,exe,syscall,filename,state_us,cpu,waker_tid,cgroup,"
           "cpu_us,runq_us,dwait_us,sleep_us")


def files_of(directory, kind):
    """Paths of a recording's files of a kind, in the order of time."""
    return sorted(glob.glob("%s/*.%s.csv.zst" % (directory, kind)))


def rows_of_files(directory, kind):
    """Rows of a recording's files of a kind, as any tool unpacks them; each file must be whole."""
    rows = []
    for path in files_of(directory, kind):
        text = subprocess.run(["zstd", "-dc", path], check=True, capture_output=True, timeout=60).stdout.decode()
        rows += csv.DictReader(io.StringIO(text))
    return rows


def newest_scans(directory):
    """The newest file of scans, and how many rows of it are on the disk: a file begins with its header line alone."""
    files = files_of(directory, "scans")
    if not files:
        return None, 0
    text = subprocess.run(["zstd", "-dcq", files[-1]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60).stdout
    return files[-1], max(text.count(b"\n") - 1, 0)


def recording(ctx, directory, *args, **popen):
    """A tsnap -o that samples: at least one scan is on the disk, and its samples, which are written before it."""
    path, before = newest_scans(directory)

    def scan_is_there():
        newest, rows = newest_scans(directory)
        return rows > (before if newest == path else 0)

    tool = ctx.plain("-o", directory, *args, **popen)
    wait_until(lambda: tool.code is not None or scan_is_there(), START_S + STOP_S, "a scan on the disk")
    check(tool.code is None, "tsnap ended (%s): %s", tool.code, tool.err)
    return tool


@case
def record_replays(ctx):
    """Any tool reads out of the files what a replay shows, row by row; scans that saw no thread count."""
    workload = ctx.workload("mutex")
    directory = ctx.temporary() + "/new"
    recorder = ctx.plain("-o", directory, "-F", 20, "-d", 3, "-a", "-p", workload.tgid, "-G", "ustack,kstack", "--flush", 0.5)
    recorder.finish_plain()
    for path in glob.glob(directory + "/*.zst"):
        check(os.stat(path).st_mode & 0o777 == 0o640, "%s: mode %o", path, os.stat(path).st_mode)
    samples, scans = rows_of_files(directory, "samples"), rows_of_files(directory, "scans")
    check(len(scans) + recorder.missed("late scans") >= 50, "%d scans in 3 s at 20 Hz", len(scans))
    check(sum(int(scan["samples"]) for scan in scans) == len(samples) > 50, "%d samples", len(samples))
    again = ctx.plain("--replay", directory, "-a", "--csv", "-g", COLUMNS + ",ustack,kstack").finish()
    check(again == [{name: row[name] for name in (COLUMNS + ",ustack,kstack").split(",")} for row in samples],
          "the replay has other rows")
    report = ctx.plain("--replay", directory, "-a", "--stacks")
    report.finish_plain()
    check(re.search(r"^%d scans in " % len(scans), report.out.decode(), re.M), "%s", report.out.decode())
    check("futex_wait" in report.out.decode(), "no stack: %s", report.out.decode())
    nobody = ctx.plain("--replay", directory, "-c", "no such name", "-g", "psn")
    nobody.finish_plain()
    check(re.search(r"^%d scans in " % len(scans), nobody.out.decode(), re.M), "%s", nobody.out.decode())
    functions = ctx.temporary() + "/functions"
    ctx.plain("-o", functions, "-F", 20, "-d", 3, "-a", "-p", workload.tgid, "-G", "ufunc").finish_plain()
    check(any(row["ufunc"] for row in rows_of_files(functions, "samples")), "no functions of users")
    check(not files_of(functions, "stacks"), "a dictionary of stacks that no sample tells")
    names = ctx.temporary() + "/names"
    ctx.plain("-o", names, "-n", 3, "-a", "-p", workload.tgid, "-g", "comm").finish_plain()
    told = ctx.plain("--replay", names, "-a", "--csv", "-g", "timestamp,comm").finish()
    check(told and all(row["timestamp"] and row["comm"] for row in told), "columns without a timestamp: %s", told)


def size_of(directory):
    return sum(os.path.getsize(path) for path in glob.glob(directory + "/*.zst"))


KILL_FLUSH_S = 0.2


def kill_one(ctx, directory, draw):
    """Records and kills tsnap meanwhile, every other time just as a file grows. Returns the seconds that are lost, and whether a file ends
    within a frame."""
    begin = datetime.utcnow().isoformat() + "Z"
    tool = recording(ctx, directory, "-a", "-F", 10, "--flush", KILL_FLUSH_S)
    for _ in range(draw.randint(0, 2)):
        there = size_of(directory)
        wait_until(lambda: size_of(directory) > there, START_S, "rows in the files")
    pid = tool.pid
    if draw.randint(0, 1):
        newest, deadline = files_of(directory, "samples")[-1], time.monotonic() + START_S
        there = os.stat(newest).st_size
        while os.stat(newest).st_size == there and time.monotonic() < deadline:
            pass
    else:
        let_pass(draw.uniform(0, 2 * KILL_FLUSH_S))
    before = time.time()
    os.kill(pid, signal.SIGKILL)
    tool.wait(STOP_S)
    replay = ctx.plain("--replay", directory, "--from", begin, "-a", "--csv", "-g", "timestamp,tid")
    rows = replay.finish()
    torn = any(subprocess.run(["zstd", "-tq", path], stderr=subprocess.DEVNULL, timeout=60).returncode for path in files_of(directory, "*"))
    for ended in tool, replay:
        ended.end()
        ctx.started.remove(ended)
    check(rows, "nothing is left of a recording that grew")
    return before - timestamp_s(max(row["timestamp"] for row in rows)), torn


def times_counted(directory, kind):
    """{time: number of rows} of the files of a kind, which must be whole."""
    counts = collections.Counter()
    for path in files_of(directory, kind):
        subprocess.run(["zstd", "-tq", path], check=True, timeout=60)
        with subprocess.Popen(["zstd", "-dc", path], stdout=subprocess.PIPE) as unpacked:
            rows = csv.reader(io.TextIOWrapper(unpacked.stdout, newline=""))
            check(next(rows)[0] == "timestamp", "%s: no header line", path)
            counts.update(row[0] for row in rows)
    return counts


def killed(ctx, directory, kills):
    """kill -9, as often as kills says: each loses what was not flushed, and nothing else; the next start goes on in the same files, which
    stay whole. Returns the numbers of rows by time, of samples and of scans."""
    draw, lost_s, torn = random.Random(kills), 0.0, 0
    for _ in range(kills):
        lost, is_torn = kill_one(ctx, directory, draw)
        lost_s, torn = max(lost_s, lost), torn + is_torn
    ctx.plain("-o", directory, "-a", "-F", 10, "-n", 3).finish_plain()
    samples, scans = times_counted(directory, "samples"), times_counted(directory, "scans")
    alone = len(set(samples) - set(scans))
    print("# %d kills, %d within a frame; %d scans have samples and no row of their own; %d rows of scans, %d samples; at most the last %.2f s "
          "are lost, with a flush every %g s" % (kills, torn, alone, len(scans), sum(samples.values()), lost_s, KILL_FLUSH_S))
    check(lost_s < 1.5, "the last %g s before a kill are lost, with a flush every %g s", lost_s, KILL_FLUSH_S)
    check(len(scans) >= kills * 2, "%d scans of %d runs", len(scans), kills)
    check(len(rows_of_files(directory, "host")) == kills + 1, "host: %s", rows_of_files(directory, "host"))
    told = {row["timestamp"]: int(row["samples"]) for row in rows_of_files(directory, "scans")}
    check(all(samples[when] == count for when, count in told.items()), "of a scan some samples are lost, and not all")
    replay = ctx.plain("--replay", directory, "-a", "--csv", "-g", "timestamp")
    replay.finish_plain()
    replayed = collections.Counter(line.strip('"') for line in replay.out.decode().splitlines()[1:])
    check(replayed == samples, "%d samples are replayed of %d", sum(replayed.values()), sum(samples.values()))
    hours = {os.path.basename(path)[:-len("-001.scans.csv.zst")] for path in files_of(directory, "scans")}
    check(len(files_of(directory, "scans")) == len(hours), "more than a file an hour: %s", files_of(directory, "scans"))
    return samples, scans


@case
def record_killed(ctx):
    """A recording survives some kill -9."""
    killed(ctx, ctx.temporary(), 4)


@case(thorough=True)
def record_killed_often(ctx):
    """A recording survives two hundred kill -9; DuckDB loads what is left, row by row."""
    directory = ctx.temporary()
    samples, scans = killed(ctx, directory, 200)
    asked = duckdb_asked(ctx.options.tsnap, ctx.temporary(), [directory], ["SELECT count(*) AS n FROM " + name for name in ("samples", "scans")])
    check([int(rows[0][0]) for rows in asked] == [sum(samples.values()), sum(scans.values())], "DuckDB has %s rows of samples and scans", asked)


record_killed_often.limit_s = 1200  # instead of run_live.LIMIT_S


@case
def record_locked(ctx):
    """A directory takes one writer, while others read it; a second writer reports which process writes."""
    directory = ctx.temporary()
    first = recording(ctx, directory, "-a", "--flush", 0.3)
    # the first scan may be on the disk before a sample is
    wait_until(lambda: ctx.plain("--replay", directory, "-a", "--csv").finish(), START_S, "rows that are read while it is written")
    second = ctx.plain("-o", directory)
    second.finish_plain(1)
    check("another tsnap with pid %d is already recording there" % first.pid in second.err, "%s", second.err)
    first.signal(signal.SIGTERM)
    first.finish_plain()
    third = recording(ctx, directory, "--flush", 0.3)
    third.signal(signal.SIGTERM)
    third.finish_plain()


NOBODY, READERS = 65534, 12345  # a user, and a group that may read recordings
ACL_WORDS = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in (
    (1, 7, 0xffffffff), (2, 7, NOBODY), (4, 5, 0xffffffff), (0x10, 7, 0xffffffff), (0x20, 0, 0xffffffff)))  # u:nobody:rwx, others nothing

def lock_held(ctx, directory):
    """A process of the group of readers holds a read lock on the recording's lock until the test ends, if it can; returns what it got."""
    told, ours = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setgroups([READERS])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            fcntl.lockf(os.open(directory + "/.tsnap.lock", os.O_RDONLY), fcntl.LOCK_SH | fcntl.LOCK_NB)
            os.write(ours, b"held")
            signal.pause()
        except OSError as error:
            os.write(ours, error.strerror.encode())
        finally:
            os._exit(0)
    ctx.at_end(lambda: (os.kill(pid, signal.SIGKILL), os.waitpid(pid, 0), os.close(told), os.close(ours)))
    return os.read(told, 100).decode()


@case
def record_lock_of_readers(ctx):
    """Who may only read recordings can't hold a lock that keeps tsnap from recording; one that an older tsnap let them take is passed by."""
    if os.geteuid():
        raise Skip("not root")
    directory = ctx.temporary() + "/rec"
    os.mkdir(directory)
    os.chown(directory, 0, READERS)
    os.chmod(directory, 0o2750)
    os.chmod(os.path.dirname(directory), 0o755)
    brief, lock = ("-o", directory, "-n", 1), directory + "/.tsnap.lock"
    ctx.plain(*brief).finish_plain()
    check(os.stat(lock).st_mode & 0o7777 == 0o600, "the lock has mode %o", os.stat(lock).st_mode)
    check(lock_held(ctx, directory) == "Permission denied", "a reader has the lock")
    os.chown(lock, 0, READERS)
    os.chmod(lock, 0o640)
    check(lock_held(ctx, directory) == "held", "a reader can't have the lock of an older version")
    ctx.plain(*brief).finish_plain()
    check(os.stat(lock).st_mode & 0o7777 == 0o600, "the lock has mode %o", os.stat(lock).st_mode)
    first = recording(ctx, directory, "--flush", 0.3)
    second = ctx.plain("-o", directory)
    second.finish_plain(1)
    check("another tsnap with pid %d is already recording there" % first.pid in second.err, "%s", second.err)
    first.signal(signal.SIGTERM)
    first.finish_plain()


@case
def record_foreign_directories(ctx):
    """A directory of another user is refused with a line that says which are fine. What is made in one, or in one of root's, with setgid or
    a default ACL has no more rights than elsewhere."""
    if os.geteuid():
        raise Skip("not root")
    theirs, own = ctx.temporary(), ctx.temporary()
    for directory, owner in (theirs, NOBODY), (own, 0):
        os.chown(directory, owner, NOBODY)
        os.setxattr(directory, "system.posix_acl_default", ACL_WORDS)
        os.chmod(directory, 0o2755)
    refused = ctx.plain("-o", theirs, "-n", 1)
    refused.finish_plain(1)
    check(len(refused.err.splitlines()) == 1 and "belongs to another user" in refused.err and "root's or your own" in refused.err, "%s", refused.err)
    check(not os.listdir(theirs), "made there: %s", os.listdir(theirs))
    try:
        group = grp.getgrnam("tsnap").gr_gid
    except KeyError:
        group = os.getegid()
    for directory in theirs + "/new", own:
        ctx.plain("-a", "-o", directory, "-n", 2).finish_plain()
        check(directory == own or os.stat(directory).st_mode & 0o7777 == 0o750, "%s: mode %o", directory, os.stat(directory).st_mode)
        paths = glob.glob(directory + "/*.zst")
        check(len(paths) >= 3, "%s", paths)
        for path in paths:
            about = os.stat(path)
            check((about.st_mode & 0o7777, about.st_uid, about.st_gid) == (0o640, 0, group), "%s: %s", path, about)
            check("system.posix_acl_access" not in os.listxattr(path), "%s has an ACL", path)
            # what an older version made there is not continued
            os.chmod(path, 0o644)
        ctx.plain("-a", "-o", directory, "-n", 2).finish_plain()
        check(len(files_of(directory, "samples")) == 2, "files that others may read are continued: %s", files_of(directory, "samples"))


@case
def record_clock_ahead(ctx):
    """A clock that is a year ahead for three seconds makes nothing old with --keep 30d; what is old by the hours that were recorded goes, and
    that is told."""
    directory, clock = ctx.temporary(), Clock(ctx)
    ctx.plain("-o", directory, "-a", "-n", 1).finish_plain()
    made = files_of(directory, "scans")[0]
    now_s = time.time()

    def planted(hours):
        path = re.sub(r"_\d{8}T\d\dZ-\d+", time.strftime("_%Y%m%dT%HZ-001", time.gmtime(now_s - hours * 3600)), made)
        return path if path == made else shutil.copyfile(made, path)
    kept = [planted(hours) for hours in (1, 2, 3, 24, 7 * 24, 28 * 24)]
    for path in kept:
        os.chmod(path, 0o640)
    tool = recording(ctx, directory, "-a", "-F", 5, "--flush", 0.2, "--keep", "30d", env=clock.environment)
    clock.set(365 * 86400)
    wait_until(lambda: time.strftime("_%Y", time.gmtime(now_s + 365 * 86400)) in files_of(directory, "scans")[-1], STOP_S, "a scan next year")
    let_pass(3)
    clock.set(0)
    tool.wait_sleeps(20)
    tool.signal(signal.SIGINT)
    tool.finish_plain(0)
    check(all(map(os.path.exists, kept)), "removed: %s", [path for path in kept if not os.path.exists(path)])
    check("removed (" not in tool.err and "the clock was set forward" in tool.err, "%s", tool.err)
    old = planted(32 * 24)
    tool = ctx.plain("-o", directory, "-a", "-n", 2, "--flush", 0.2, "--keep", "30d")
    tool.finish_plain(0)
    check(not os.path.exists(old) and all(map(os.path.exists, kept)), "%s are left", os.listdir(directory))
    stem = os.path.basename(old).split(".")[0]
    check("%s: removed (--keep): %s, files: 1" % (directory, stem) in tool.err, "%s", tool.err)


REMOVED = "of the files being written, with their rows"


@case
def record_removed(ctx):
    """Files that somebody removes while they are written are told, and new ones begun: all that comes later is recorded. The same where the
    whole directory goes, with its lock; that is taken again."""
    directory = ctx.temporary() + "/rec"
    tool = recording(ctx, directory, "-a", "-G", "kstack", "-F", 5, "--flush", 3)
    for path in glob.glob(directory + "/*.zst"):
        os.unlink(path)
    wait_until(lambda: REMOVED in tool.err, STOP_S, "a word about the files")
    wait_until(lambda: newest_scans(directory)[1] >= 5, STOP_S, "scans in new files")
    shutil.rmtree(directory)
    removed_s = time.time()
    wait_until(lambda: tool.err.count(REMOVED) == 2, STOP_S, "a word about the directory")
    wait_until(lambda: newest_scans(directory)[1] >= 5, STOP_S, "scans in a new directory")
    check(os.stat(directory).st_mode & 0o7777 == 0o750, "the new directory has mode %o", os.stat(directory).st_mode)
    second = ctx.plain("-o", directory)
    second.finish_plain(1)
    check("another tsnap with pid %d is already recording there" % tool.pid in second.err, "%s", second.err)
    tool.signal(signal.SIGINT)
    tool.finish_plain(0)
    check(tool.err.count(REMOVED) == 2 and "recording has stopped" not in tool.err, "%s", tool.err)
    stacks = {row["hash"] for row in rows_of_files(directory, "stacks")}
    lacking = {row["timestamp"] for row in rows_of_files(directory, "samples") if row["kstack"] and row["kstack"] not in stacks}
    check(stacks and not lacking, "%d stacks, of which some are missing at %s", len(stacks), sorted(lacking))
    times = [timestamp_s(row["timestamp"]) for row in rows_of_files(directory, "scans")]
    gaps = [after - before for before, after in zip(times, times[1:])]
    check(times[0] < removed_s + 1.5 and max(gaps) < 1.5, "the first scan is %.2f s after the removal, and the longest gap %.2f s",
          times[0] - removed_s, max(gaps))
    check(len(ctx.plain("--replay", directory, "-a", "--csv", "-g", "timestamp").finish()) == len(rows_of_files(directory, "samples")),
          "a replay has other rows")


@case
def record_cut(ctx):
    """Files that somebody cuts while they are written are told, and new ones begun; a file that begins with something else does not keep a
    replay from the others."""
    directory = ctx.temporary()
    tool = recording(ctx, directory, "-a", "-F", 5, "--flush", 1)
    for path in glob.glob(directory + "/*.samples.*"):
        os.truncate(path, 0)
    wait_until(lambda: REMOVED in tool.err, STOP_S, "a word about the files")
    wait_until(lambda: newest_scans(directory)[1] >= 5, STOP_S, "scans in new files")
    tool.signal(signal.SIGINT)
    tool.finish_plain(0)
    whole = ctx.plain("--replay", directory, "-a", "--csv", "-g", "timestamp").finish()
    check(len(whole) > 100, "a replay has %d rows", len(whole))
    for begins in (bytes(4096), b'a,"b,c"d' * 512):
        with open(sorted(glob.glob(directory + "/*.samples.*"))[0], "wb") as file:
            file.write(begins)
        replay = ctx.plain("--replay", directory, "-a", "--csv", "-g", "timestamp")
        check(len(replay.finish()) == len(whole), "%r: a replay has other rows: %s", begins[:8], replay.err)
        check("damaged part" in replay.err, "%r: not told: %s", begins[:8], replay.err)


def head_flipped(path, number):
    """Flips a bit in the head of a file's frame of that number."""
    with open(path, "r+b") as file:
        at = [found.start() for found in re.finditer(b"tsnaprec", file.read())][number]
        file.seek(at + 20)  # a byte of the first time
        byte = file.read(1)[0]
        file.seek(at + 20)
        file.write(bytes([byte ^ 1]))


@case
def record_after_damage(ctx):
    """A wrong bit in a frame's head costs a replay that frame, and a recorder that starts again in that hour no more."""
    directory = ctx.temporary()
    ctx.plain("-o", directory, "-a", "-F", 20, "-d", 3, "--flush", 0.2).finish_plain()
    rows = ctx.plain("--replay", directory, "-a", "--csv", "-g", "timestamp").finish()
    path = files_of(directory, "samples")[0]
    head_flipped(path, 3)
    damaged = ctx.plain("--replay", directory, "-a", "--csv", "-g", "timestamp").finish()
    check(0.5 * len(rows) < len(damaged) < len(rows), "%d rows of %d are left with one damaged frame", len(damaged), len(rows))
    size = os.path.getsize(path)
    ctx.plain("-o", directory, "-a", "-n", 3).finish_plain()
    check(os.path.getsize(path) == size, "%d of %d bytes are left", os.path.getsize(path), size)
    after = ctx.plain("--replay", directory, "-a", "--csv", "-g", "timestamp").finish()
    check(after[:len(damaged)] == damaged and len({row["timestamp"] for row in after[len(damaged):]}) == 3, "%d rows, %d before the start",
          len(after), len(damaged))


@case
def record_links(ctx):
    """A link in the place of a file is left alone, and so is its target: the next number is taken."""
    directory, aim = ctx.temporary(), ctx.temporary() + "/aim"
    with open(aim, "w", encoding="utf-8"):
        pass
    ctx.plain("-o", directory, "-n", 1, "-a").finish_plain()
    for path in glob.glob(directory + "/*.zst"):
        os.unlink(path)
        os.symlink(aim, path)
    ctx.plain("-o", directory, "-n", 1, "-a").finish_plain()
    check(os.stat(aim).st_size == 0, "a link was followed")
    check([path for path in files_of(directory, "samples") if not os.path.islink(path)], "nothing was recorded")


def filled(ctx, mount):
    """A file system that fills up gives one message, sampling goes on; once it has space recording goes on and says what is missing."""
    there = ctx.temporary()
    place = Place(*unshared("--mount"), mount=mount % there)
    ctx.started.append(place)
    inside = through(ctx, "nsenter", "--target", str(place.pid), "--mount", "--root", "--wd", workload=False)
    root = "/proc/%d/root%s" % (place.pid, there)
    tool = inside.plain("-o", there + "/rec", "-a", "-F", 20, "--flush", 0.2)
    wait_until(lambda: tool.code is not None or files_of(root + "/rec", "scans"), START_S + STOP_S, "a scan")
    with open(root + "/filler", "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError as error:
            check(error.errno == errno.ENOSPC, "the file system is not full: %s", error)
    wait_until(lambda: "no space left" in tool.err, STOP_S, "a word about the disk")
    tool.wait_sleeps(20)
    os.unlink(root + "/filler")
    wait_until(lambda: "recording goes on" in tool.err, STOP_S, "a word that it works again")
    tool.wait_sleeps(40)
    tool.signal(signal.SIGTERM)
    tool.wait(STOP_S)
    expect_resumed(tool, root + "/rec")


@case
def record_disk_full(ctx):
    """A recording in a tmpfs that fills up goes on when there is space again."""
    filled(ctx, "mount -t tmpfs -o size=600k tsnap-test %s")


@case
def record_loop_full(ctx):
    """A recording in an ext4 of an image that fills up goes on; ext4 allocates blocks late and keeps some for root."""
    if not shutil.which("mkfs.ext4"):
        raise Skip("mkfs.ext4 is not installed")
    image = ctx.temporary() + "/image"
    filled(ctx, "truncate -s 16M {0} && mkfs.ext4 -q {0} && mount -o loop {0} %s".format(image))


def expect_resumed(tool, directory):
    """One message says that nothing is recorded, one that recording goes on and how many scans are missing, as many as by the files."""
    check(tool.err.count("sampling goes on") == 1 and tool.err.count("recording goes on") == 1, "%s", tool.err)
    scans, told = rows_of_files(directory, "scans"), int(re.search(r"scans not recorded: (\d+)", tool.err).group(1))
    times = [row["timestamp"] for row in scans]
    check(times == sorted(times) and len(times) > 30, "%d scans", len(times))
    check(sum(int(row["missing"]) for row in scans) == told, "%d scans are missing in the files: %s", told, tool.err)
    return times, told


def free_share(path):
    there = os.statvfs(path)
    return there.f_bavail / there.f_blocks


@case
def record_keep_free(ctx):
    """With --keep-free files of others make the oldest parts go, one after the other, and not the rest; when only the
    present part is left nothing more is written, until there is space again."""
    there = ctx.temporary()
    place = Place(*unshared("--mount"), mount="mount -t tmpfs -o size=8m tsnap-test " + there)
    ctx.started.append(place)
    inside = through(ctx, "nsenter", "--target", str(place.pid), "--mount", "--root", "--wd", workload=False)
    root = "/proc/%d/root%s" % (place.pid, there)
    inside.plain("-o", there + "/rec", "-a", "-n", 1).finish_plain()
    name = os.path.basename(files_of(root + "/rec", "scans")[0])
    old = [root + "/rec/" + re.sub(r"_\d{8}T\d\dZ-\d+", "_20200101T%02dZ-001" % hour, name) for hour in range(4)]
    for path in old:
        with open(path, "wb") as file:
            file.write(bytes(1 << 20))
    tool = inside.plain("-o", there + "/rec", "-a", "-F", 20, "--flush", 0.2, "--keep-free", "40%")
    wait_until(lambda: tool.code is not None or len(files_of(root + "/rec", "scans")) > 4, START_S + STOP_S, "a scan")
    check(all(map(os.path.exists, old)), "parts went while %.2f was free", free_share(root))
    with open(root + "/filler", "wb", buffering=0) as file:
        file.write(bytes(2500 << 10))  # a bit less than 5 MB of 8 were free
        wait_until(lambda: free_share(root) >= 0.4, STOP_S, "as much free as is asked for")
        left = [os.path.exists(path) for path in old]
        check(left == sorted(left) and not left[0] and left[-1], "parts that are left: %s", left)
        check("sampling goes on" not in tool.err, "%s", tool.err)
        file.write(bytes(4 << 20))
    wait_until(lambda: "sampling goes on" in tool.err, STOP_S, "a word that there is too little space")
    check(not any(map(os.path.exists, old)), "old parts are there")
    begin = datetime.utcnow().isoformat()
    tool.wait_sleeps(20)
    end = datetime.utcnow().isoformat()
    os.unlink(root + "/filler")
    wait_until(lambda: "recording goes on" in tool.err, STOP_S, "a word that it works again")
    tool.wait_sleeps(20)
    tool.signal(signal.SIGTERM)
    tool.wait(STOP_S)
    times, missing = expect_resumed(tool, root + "/rec")
    check(missing or len([when for when in times if begin < when < end]) >= 10, "scans that waited are not in the files")


QUOTA = """truncate -s 128M %(image)s && mkfs.btrfs -q -M %(image)s >/dev/null && mount -o loop %(image)s %(there)s &&
btrfs quota enable %(there)s && btrfs subvolume create %(there)s/rec >/dev/null && btrfs qgroup limit 1M %(there)s/rec"""


@case
def record_quota(ctx):
    """A quota that is used up, on a file system with free space, gives one message; sampling goes on, recording too once it is raised."""
    if not shutil.which("mkfs.btrfs"):
        raise Skip("mkfs.btrfs is not installed: its quotas need no part of the kernel besides")
    there = ctx.temporary()
    place = Place(*unshared("--mount"), mount=QUOTA % {"image": ctx.temporary() + "/image", "there": there})
    ctx.started.append(place)
    prefix = ["nsenter", "--target", str(place.pid), "--mount", "--root", "--wd"]
    root = "/proc/%d/root%s/rec" % (place.pid, there)
    tool = through(ctx, *prefix, workload=False).plain("-o", there + "/rec", "-a", "-F", 20, "--flush", 0.2)
    wait_until(lambda: tool.code is not None or files_of(root, "scans"), START_S + STOP_S, "a scan")
    with open(root + "/filler", "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError as error:
            check(error.errno == errno.EDQUOT, "the quota is none: %s", error)
    wait_until(lambda: "Disk quota exceeded: recording has stopped" in tool.err, STOP_S, "a word about the quota")
    tool.wait_sleeps(20)
    subprocess.run([*prefix, "btrfs", "qgroup", "limit", "64M", there + "/rec"], check=True, timeout=60)
    wait_until(lambda: "recording goes on" in tool.err, STOP_S, "a word that it works again")
    tool.wait_sleeps(40)
    tool.signal(signal.SIGTERM)
    tool.wait(STOP_S)
    expect_resumed(tool, root)


@case
def record_write_errors(ctx):
    """A disk that fails, a quota and a file system that became read-only give one message with the reason; recording goes on by itself,
    and every file stays whole."""
    faults = {"EIO": "Input/output error", "EDQUOT": "Disk quota exceeded", "EROFS": "Read-only file system"}
    directories = {error: ctx.temporary() + "/new" for error in faults}
    tools = {error: with_fault(ctx, "pwrite64:error=%s:when=6..20" % error, "--no-sandbox", "-o", directories[error], "-a", "-F", "20",
                               "-d", "8", "--flush", "0.2") for error in faults}
    for error, words in faults.items():
        tool = tools[error]
        check(tool.wait(START_S + 8 + STOP_S) == 0, "%s", tool.err)
        check(words + ": recording has stopped" in tool.err, "%s", tool.err)
        expect_resumed(tool, directories[error])


MOMENT = """
import sys, time
def called(name):
    with open("/proc/self/comm", "w") as file:
        file.write(name)
begin = time.time()
called(sys.argv[1])
while time.time() < begin + 0.5:
    pass
called("over")
print(begin, time.time())
"""


@case
def record_around_moments(ctx):
    """--when records the scans around moments, before as well as after them, with all of their threads, and no other scans."""
    name, directory = "at%d" % os.getpid(), ctx.temporary() + "/new"
    sleeper = ctx.workload("sleep", call="pipe_read")
    tool = ctx.plain("-o", directory, "-F", 20, "-a", "--flush", 0.2, "--when", "comm = %s && state = ON" % name, "--keep-around", "1s")
    wait_until(lambda: tool.code is not None or os.path.exists(directory + "/.tsnap.lock"), START_S, "the lock of the recording")
    tool.wait_sleeps(60)
    done = subprocess.run([sys.executable, "-c", MOMENT, name], stdout=subprocess.PIPE, universal_newlines=True, timeout=60, check=True)
    begin, end = map(float, done.stdout.split())
    let_pass(3)
    tool.signal(signal.SIGINT)
    tool.finish_plain(0, STOP_S)
    times = [timestamp_s(row["timestamp"]) for row in rows_of_files(directory, "scans")]
    samples = rows_of_files(directory, "samples")
    # while others run the thread has a CPU for a part of the time only
    seen = [timestamp_s(row["timestamp"]) for row in samples if (row["comm"], row["state"]) == (name, "ON")]
    check(seen and begin <= seen[0] and seen[-1] <= end, "it was seen from %s to %s, and was there from %f to %f", seen[:1], seen[-1:], begin, end)
    check(seen[0] - 1.2 < times[0] < seen[0] - 0.7 and seen[-1] + 0.7 < times[-1] < seen[-1] + 1.2,
          "scans from %.2f s before the moment to %.2f s after it", seen[0] - times[0], times[-1] - seen[-1])
    before = {row["tid"] for row in samples if timestamp_s(row["timestamp"]) < begin}
    check(str(sleeper.tid) in before, "who slept is not in the scans before the moment")


@case
def record_around_findings(ctx):
    """--when 'finding=deadlock' records the scans around one, and no others; the findings themselves are recorded all the time."""
    directory = ctx.temporary() + "/new"
    tool = ctx.plain("-o", directory, "--flush", 0.2, "--when", "finding=deadlock", "--keep-around", "3s")
    wait_until(lambda: len(rows_of_files(directory, "findings")) >= 1, START_S + 11, "findings")
    check(not rows_of_files(directory, "scans"), "scans are recorded without a deadlock")
    workload = ctx.workload("chain", of="deadlock", dir=ctx.temporary())
    wait_until(lambda: rows_of_files(directory, "scans"), START_S + 25, "scans around the deadlock")
    tool.signal(signal.SIGINT)
    tool.finish_plain(0, STOP_S)
    found = [row for row in rows_of_files(directory, "findings") if row["finding"] == "deadlock"]
    check(found and found[0]["certainty"] == "certain", "%s", found)
    end = timestamp_s(found[0]["timestamp"])
    times = [timestamp_s(row["timestamp"]) for row in rows_of_files(directory, "scans")]
    check(end - 4.5 < times[0] < end - 1.5, "the first scan is %.1f s before the finding's end", end - times[0])
    check(any(row["pid"] == str(workload.tgid) for row in rows_of_files(directory, "samples")), "no samples of the deadlock")


@case
def record_two_tiers(ctx):
    """--archive keeps one scan a second for longer: its exact times, seconds and threads are those of all scans; where these
    are not there any more the archive takes their place."""
    directory, short = ctx.temporary() + "/new", ctx.temporary() + "/short"
    workload = ctx.workload("spin")
    ctx.plain("-o", directory, "-F", 20, "-d", 5, "-a", "-p", workload.tgid, "--flush", 0.5, "--archive", 2).finish_plain()
    scans, few = rows_of_files(directory, "scans"), rows_of_files(directory, "archivescans")
    check(80 <= len(scans) <= 100 + SCANS_MORE and 7 <= len(few) <= 13, "%d scans, %d in the archive", len(scans), len(few))
    until = few[-1]["timestamp"]

    def sums(kind, column):
        found = {}
        for row in rows_of_files(directory, kind):
            if row["timestamp"] <= until and row[column]:
                found[row["tid"]] = found.get(row["tid"], 0) + int(row[column])
        return found

    for column in ("weight_us", "cpu_us", "runq_us", "sleep_us"):
        check(sums("samples", column) == sums("archive", column), "%s: %s in all scans, %s in the archive", column,
              sums("samples", column), sums("archive", column))
    check(sum(int(row["weight_us"]) for row in few) == sum(int(row["weight_us"]) for row in scans if row["timestamp"] <= until),
          "the archive's scans do not stand for all of the time")
    both = ctx.plain("--replay", directory, "-a", "--csv", "-g", COLUMNS).finish()
    check(len({row["timestamp"] for row in both}) == len(scans), "with both tiers other scans than the fine one's are replayed")
    os.mkdir(short)
    for path in glob.glob(directory + "/*.zst"):
        if ".samples." not in path and ".scans." not in path:
            os.link(path, short + "/" + os.path.basename(path))
    rows = ctx.plain("--replay", short, "-a", "--csv", "-g", COLUMNS).finish()
    check(len(rows) == len(rows_of_files(directory, "archive")), "%d rows of the archive", len(rows))
    report = ctx.plain("--replay", short, "-a")
    report.finish_plain()
    check(re.search(r"^%d scans in " % len(few), report.out.decode(), re.M), "%s", report.out.decode())


@case(thorough=True)
def record_archive_around_moments(ctx):
    """With --when and --archive a replay has a scan a second between moments and all scans around them, and no time is lost."""
    name, directory = "at%d" % os.getpid(), ctx.temporary() + "/new"
    tool = ctx.plain("-o", directory, "-F", 20, "-a", "--flush", 0.2, "--when", "comm = %s && state = ON" % name, "--keep-around", "1s",
                     "--archive", 1)
    wait_until(lambda: tool.code is not None or files_of(directory, "archivescans"), START_S, "a scan in the archive")
    let_pass(4)
    subprocess.run([sys.executable, "-c", MOMENT, name], stdout=subprocess.DEVNULL, timeout=60, check=True)
    let_pass(4)
    tool.signal(signal.SIGINT)
    tool.finish_plain(0, STOP_S)
    fine, few = rows_of_files(directory, "scans"), rows_of_files(directory, "archivescans")
    seconds = sum(int(row["weight_us"]) for row in few) / 1e6
    check(len(few) >= 6 and seconds > 8 - 1.5, "%d scans in the archive, of %g s", len(few), seconds)
    rows = ctx.plain("--replay", directory, "-a", "--csv", "-g", "timestamp,weight_us,tid").finish()
    weights = {row["timestamp"]: int(row["weight_us"]) for row in rows}
    check(len(fine) < len(weights) < len(fine) + len(few), "%d scans of %d fine ones and %d others", len(weights), len(fine), len(few))
    check(abs(sum(weights.values()) / 1e6 - seconds) < 2.1, "%g s are replayed of %g", sum(weights.values()) / 1e6, seconds)
    check(list(weights) == sorted(weights), "scans are not in the order of time")
