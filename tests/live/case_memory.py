"""Waits for memory: pages of mapped files that are read anew, reclaim at a group's limit, swap-in and page locks."""
import os
import re
import subprocess
import sys

import truth
from harness import SLOW, START_S, STOP_S, Findings, Skip, case, check, rows_of, wait_until

BPS = 1 << 20  # bytes that the group may read in a second
PAGES = 8192

# A program that calls ("code") or reads each page of a file that is not cached; each page of "code" has instructions that return.
TOUCH = """
import ctypes, os, sys
path, kind, pages = sys.argv[1], sys.argv[2], int(sys.argv[3])
size = pages * 4096
with open(path, "wb") as file:
    for _ in range(pages):
        file.write(bytes([int(sys.argv[4], 16)]) * 4096)
    file.flush()
    os.fsync(file.fileno())
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
at = libc.mmap(None, size, 5, 2, os.open(path, os.O_RDONLY), 0)  # readable and executable, private
libc.madvise(at, size, 1)  # random
print("ready", flush=True)
sys.stdin.readline()
for page in range(pages):
    if kind == "code":
        ctypes.CFUNCTYPE(None)(at + page * 4096)()
    else:
        ctypes.string_at(at + page * 4096, 1)
"""


def slow_group(ctx, path):
    """A control group that may read only slowly from the file's device; gives a function that puts the process of an id into it."""
    device = os.stat(path).st_dev
    line = "%d:%d " % (os.major(device), os.minor(device))
    name = "tsnap-test-%d" % os.getpid()
    if os.path.exists("/sys/fs/cgroup/blkio/blkio.throttle.read_bps_device"):
        group, file, value = "/sys/fs/cgroup/blkio/" + name, "blkio.throttle.read_bps_device", line + str(BPS)
    else:
        group, file, value = "/sys/fs/cgroup/" + name, "io.max", line + "rbps=%d" % BPS
    try:
        os.mkdir(group)
        ctx.at_end(lambda: os.rmdir(group))
        with open(os.path.join(group, file), "w", encoding="ascii") as limit:
            limit.write(value)
    except OSError as error:
        raise Skip("no group that reads slowly can be made: %s" % error)

    def take(pid):
        with open(group + "/cgroup.procs", "w", encoding="ascii") as procs:
            procs.write(str(pid))
    return take


def read_group(group, name):
    with open(os.path.join(group, name), encoding="ascii") as file:
        return file.read()


def page_fault_rows(ctx, path, take, kind):
    opcode = "c3" if os.uname().machine == "x86_64" else "00"
    child = subprocess.Popen([sys.executable, "-c", TOUCH, path, kind, str(PAGES), opcode], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"ready\n"
        take(child.pid)
        child.stdin.write(b"\n")
        child.stdin.flush()

        def faults():
            with open("/proc/%d/stack" % child.pid, encoding="ascii") as stack:
                return "filemap_fault" in stack.read()
        wait_until(faults, 10 * SLOW, "a page fault")
        return rows_of(ctx.rows("-a", "-p", child.pid, seconds=2, columns="state,syscall,waits_on"), child.pid)
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()


READER = """
import mmap, os, sys
block = mmap.mmap(-1, 65536)
file = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
for at in range(512):
    os.pwrite(file, block, at * 65536)
print("ready", flush=True)
sys.stdin.readline()
while True:
    for at in range(512):
        os.preadv(file, [block], at * 65536)
"""


@case
def io_limit(ctx):
    """The footer names the control group that reads as much as its limit allows, with the limit and the device."""
    path, seconds = os.path.join(ctx.temporary(), "limited"), 4
    with open(path, "wb"):
        pass
    take = slow_group(ctx, path)
    child = subprocess.Popen([sys.executable, "-c", READER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        if child.stdout.readline() != b"ready\n":
            raise Skip("the file system has no O_DIRECT")
        take(child.pid)
        child.stdin.write(b"\n")
        child.stdin.flush()
        tool = ctx.plain("-d", seconds, "-p", child.pid, "-g", "psn")
        tool.finish_plain(0, START_S + seconds + STOP_S)
        text = tool.out.decode()
        told = re.search(r"I/O limits: (?:.*; )?/tsnap-test-%d\s+used\s+(\d+)\s+%%\s+of\s+rbps=%d\s+on\s+\S+" % (os.getpid(), BPS), text)
        check(told and 60 <= int(told[1]) <= 140, "%s", text)
        child.kill()
        child.wait()
        tool = ctx.plain("-d", 1, "-g", "psn")
        tool.finish_plain(0, START_S + 1 + STOP_S)
        check("tsnap-test-%d" % os.getpid() not in tool.out.decode(), "an idle group is told: %s", tool.out.decode())
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()


@case
def page_fault(ctx):
    """A thread that waits for a page of a mapped file, outside of any call: its wait is page fault, for code with the file."""
    path = os.path.join(ctx.temporary(), "mapped")
    with open(path, "wb"):
        pass
    take, findings = slow_group(ctx, path), Findings()
    for kind, wanted in (("code", "page fault in " + path), ("data", "page fault")):
        if kind == "code" and os.uname().machine != "x86_64":
            continue
        rows = [row for row in page_fault_rows(ctx, path, take, kind) if row["state"] == "D" and not row["syscall"]]
        findings.expect(len(rows) > 10, "%s: %d rows in D", kind, len(rows))
        told = [row["waits_on"] for row in rows]
        findings.expect(told.count(wanted) >= 0.8 * len(told), "%s: not %s: %s", kind, wanted, sorted(set(told)))
    findings.close()


WRITER = """
import os, sys
block = os.urandom(1 << 20)
print("ready", flush=True)
sys.stdin.readline()
while True:
    with open(sys.argv[1], "wb") as file:
        for _ in range(200):
            file.write(block)
"""
LIMIT = 24 << 20  # bytes; a writer's pages in the cache are many times more


def limited_group(ctx, name, limit):
    """The directory of a new control group that may have that many bytes of memory."""
    mount = "/sys/fs/cgroup/memory"
    old = os.path.exists(mount + "/memory.limit_in_bytes")
    group = os.path.join(mount if old else "/sys/fs/cgroup", name)
    try:
        os.mkdir(group)
        ctx.at_end(lambda: wait_until(lambda: not read_group(group, "cgroup.procs") and not os.rmdir(group), STOP_S, "its end"))
        with open(os.path.join(group, "memory.limit_in_bytes" if old else "memory.max"), "w", encoding="ascii") as file:
            file.write(str(limit))
    except OSError as error:
        raise Skip("no group with a limit of memory can be made: %s" % error)
    return group


@case
def reclaim(ctx):
    """A thread that writes more than its group may have in memory: its waits are reclaim, with the limit and the group; the kernel
    counts that the limit was met."""
    name = "tsnap-test-reclaim-%d" % os.getpid()
    group = limited_group(ctx, name, LIMIT)
    old = os.path.exists(group + "/memory.limit_in_bytes")
    limit, met = ("memory.limit_in_bytes", "memory.failcnt") if old else ("memory.max", "memory.events")
    child = subprocess.Popen([sys.executable, "-c", WRITER, os.path.join(ctx.temporary(), "written")], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"ready\n"
        with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as procs:
            procs.write(str(child.pid))
        child.stdin.write(b"\n")
        child.stdin.flush()

        def times():
            return int(re.search(r"(?:^|\nmax )(\d+)", read_group(group, met))[1])
        wait_until(lambda: times() > 100, 20 * SLOW, "its limit")
        tool = ctx.stream("-F", 50, "-p", child.pid, columns="state,syscall,waits_on")
        wanted = "reclaim (%s of /%s)" % (limit, name)

        def told():
            rows = [row for row in rows_of(tool.rows(), child.pid) if row["state"] in ("D", "RQ")]
            return sum(row["waits_on"] == wanted for row in rows) >= 5 and rows
        rows = wait_until(told, START_S + 20 * SLOW, wanted)
        tool.interrupt()
        of_memory = {row["waits_on"] for row in rows if row["waits_on"].startswith("reclaim")}
        check(of_memory == {wanted}, "%s", of_memory)
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()


# A program that has anonymous pages, gives them to the swap file, and reads one byte of each.
OWNER = """
import mmap, sys
pages = int(sys.argv[1])
own = mmap.mmap(-1, pages * 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for page in range(pages):
    own[page * 4096:page * 4096 + 16] = b"%16d" % page
own.madvise(21)  # MADV_PAGEOUT
print("ready", flush=True)
sys.stdin.readline()
for page in range(pages):
    own[page * 4096]
sys.stdin.readline()
"""

# A program that writes a file, drops it from the cache, and has the kernel read all of it ahead: its pages are locked until they are read.
AHEAD = """
import os, sys
file, size = os.open(sys.argv[1], os.O_RDWR | os.O_TRUNC), int(sys.argv[2])
os.pwrite(file, os.urandom(size), 0)
os.fsync(file)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
print("ready", flush=True)
sys.stdin.readline()
for at in range(0, size, 65536):
    os.posix_fadvise(file, at, 65536, os.POSIX_FADV_WILLNEED)
print("asked", flush=True)
sys.stdin.readline()
"""

CHANGER = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR)
print("ready", flush=True)
sys.stdin.readline()
os.pwrite(file, b"x", int(sys.argv[2]) - 100)
print("done", flush=True)
sys.stdin.readline()
"""


def swap_add(ctx):
    """Has the kernel swap to a new file until the test ends; gives its path."""
    path = os.path.join(ctx.temporary(), "swap")
    with open(path, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        for _ in range(64):
            file.write(bytes(1 << 20))
        os.fsync(file.fileno())
    for words in ["mkswap", path], ["swapon", "-p", "32767", path]:
        try:
            done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except OSError as error:
            raise Skip("no %s: %s" % (words[0], error))
        if done.returncode:
            raise Skip("no swap here: %s" % done.stderr.decode().strip())
    ctx.at_end(lambda: subprocess.run(["swapoff", path], check=True))
    return path


def child_started(ctx, text, *args, enter=None):
    """A Python program that has printed that it is ready, and goes on when it gets a line. enter: called in it before its exec."""
    child = subprocess.Popen([sys.executable, "-c", text, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=enter)

    def end():
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()
    ctx.at_end(end)
    check(child.stdout.readline() == b"ready\n", "it did not begin")
    return child


def child_goes(child):
    child.stdin.write(b"\n")
    child.stdin.flush()


def emptied_group(ctx):
    """A memory control group; gives two functions: one that enters it, and one that has the kernel take all pages that it can from the
    group's processes, also pages that were written to the swap file and are still in memory."""
    name, mount = "tsnap-test-swap-%d" % os.getpid(), "/sys/fs/cgroup/memory"
    old = os.path.exists(mount + "/memory.force_empty") or os.path.exists(mount + "/memory.limit_in_bytes")
    # with cgroup v2 the group is the one that reads slowly
    group = os.path.join(mount, name) if old else "/sys/fs/cgroup/tsnap-test-%d" % os.getpid()
    file, value = ("memory.force_empty", "0") if old else ("memory.reclaim", "256M")
    try:
        if old:
            os.mkdir(group)
            ctx.at_end(lambda: wait_until(lambda: not read_group(group, "cgroup.procs") and not os.rmdir(group), STOP_S, "its end"))
    except OSError as error:
        raise Skip("no group of memory can be made: %s" % error)
    if not os.path.exists(os.path.join(group, file)):
        raise Skip("no group can be told to give memory back")

    def write(name, text):
        with open(os.path.join(group, name), "w", encoding="ascii") as to:
            to.write(text)

    def empty():
        try:
            write(file, value)
        except OSError:  # not all pages could be taken
            pass
    return lambda: write("cgroup.procs", "0"), empty


@case
def swap_in(ctx):
    """A thread that reads its pages back from a slow swap file: its waits are swap-in, while the kernel's count of its pages there
    goes down; a thread whose pages are in memory has none."""
    path, size = swap_add(ctx), PAGES * os.sysconf("SC_PAGESIZE")
    take = slow_group(ctx, path)
    enter, empty = emptied_group(ctx)
    child = child_started(ctx, OWNER, PAGES, enter=enter)
    take(child.pid)
    for _ in range(5):
        empty()

    def swapped():
        return truth.memory_bytes([child.pid], "VmSwap")
    before = swapped()
    if before < 0.8 * size:
        raise Skip("%d of %d bytes were swapped out" % (before, size))
    child_goes(child)
    wait_until(lambda: swapped() < before, 20 * SLOW, "the first page")
    rows = rows_of(ctx.rows("-p", child.pid, "-a", seconds=3, columns="state,syscall,waits_on"), child.pid)
    left = swapped()
    told = [row["waits_on"] for row in rows if row["state"] == "D"]
    check(0 < left < before, "%d of %d bytes are in the swap file, so that it did not read all the time", left, before)
    check(len(told) >= 0.5 * len(rows) > 5, "%d of %d rows in D", len(told), len(rows))
    # "": the thread went on before its stack was read
    check(told.count("swap-in") >= 0.5 * len(told) and set(told) <= {"swap-in", ""}, "%s", told)
    other = child_started(ctx, OWNER.replace("own.madvise(21)", "pass"), PAGES)
    child_goes(other)
    told = [row["waits_on"] for row in rows_of(ctx.rows("-p", other.pid, "-a", seconds=1, columns="state,waits_on"), other.pid)]
    check(told and "swap-in" not in told, "%s", sorted(set(told)))


@case
def page_lock(ctx):
    """A thread that writes to a page that the kernel still reads for another thread: its wait is page lock
    until the page is read."""
    path, size = os.path.join(ctx.temporary(), "locked"), 4 * BPS
    with open(path, "wb"):
        pass
    take, reader = slow_group(ctx, path), child_started(ctx, AHEAD, path, size)
    changer = child_started(ctx, CHANGER, path, size)
    take(reader.pid)
    tool = ctx.stream("-p", changer.pid, "-a", "-F", 50, columns="state,syscall,waits_on")
    wait_until(lambda: rows_of(tool.rows(), changer.pid), START_S, "its first row")
    child_goes(reader)
    check(reader.stdout.readline() == b"asked\n", "it read nothing")
    child_goes(changer)

    def locked():
        with open("/proc/%d/stack" % changer.pid, encoding="ascii") as stack:
            return re.search("folio_lock|lock_page|__filemap_get_folio|pagecache_get_page", stack.read())
    wait_until(locked, 2 * SLOW, "a locked page")
    check(changer.stdout.readline() == b"done\n", "it did not end")
    told = [row["waits_on"] for row in rows_of(tool.interrupt(), changer.pid) if row["state"] == "D"]
    check(told.count("page lock") >= max(5, 0.5 * len(told)) and set(told) <= {"page lock", ""}, "%s", told)
