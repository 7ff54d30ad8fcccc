"""The page cache of files that threads wait for, against mincore(2) and cachestat(2)."""
import ctypes
import mmap
import os
import re
import struct
import sys
import time

from case_memory import limited_group
from harness import STOP_S, Process, Skip, case, check, rows_of, wait_until

MB = 1 << 20
SECONDS = 3
LIBC = ctypes.CDLL(None, use_errno=True)
CACHESTAT = 451

# Reads directly what is not cached, so that nothing changes: 64 MB, the first 24 cached, 3 of them dirty again after each round.
DIRECT = """
import mmap, os, sys
path = sys.argv[1]
with open(path, "wb") as file:
    for _ in range(64):
        file.write(os.urandom(1 << 20))
fd = os.open(path, os.O_RDWR)
os.fsync(fd)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
for at in range(24):
    os.pread(fd, 1 << 20, at << 20)
direct, buffer = os.open(path, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 1 << 20)
print("ready", flush=True)
while True:
    os.pwrite(fd, bytes(3 << 20), 8 << 20)
    for at in range(32, 64):
        os.preadv(direct, [buffer], at << 20)
"""

# Reads more than its control group may have, one half of it so often that the kernel takes the other half away.
EVICT = """
import os, sys
with open(sys.argv[2], "w") as file:
    file.write("0")
path = sys.argv[1]
with open(path, "wb") as file:
    for _ in range(96):
        file.write(os.urandom(1 << 20))
        os.fsync(file.fileno())
fd = os.open(path, os.O_RDONLY)
print("ready", flush=True)
while True:
    for at in [*range(32)] * 2 + [*range(32, 96)]:
        os.pread(fd, 1 << 20, at << 20)
"""


def counted(path):
    """(cached, dirty, recently evicted) bytes, by cachestat(2)."""
    with open(path, "rb") as file:
        counts = ctypes.create_string_buffer(40)
        if LIBC.syscall(CACHESTAT, file.fileno(), struct.pack("QQ", 0, 0), counts, 0):
            raise Skip("no cachestat: %s" % os.strerror(ctypes.get_errno()))
    cached, dirty, _, _, evicted = struct.unpack("5Q", counts.raw)
    return [pages * mmap.PAGESIZE for pages in (cached, dirty, evicted)]


def resident(path):
    """Bytes that mincore(2) has in memory."""
    size = os.path.getsize(path)
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), size) as pages:
        states = ctypes.create_string_buffer(size // mmap.PAGESIZE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        if LIBC.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), states):
            raise Skip("no mincore: %s" % os.strerror(ctypes.get_errno()))
        return sum(state & 1 for state in states.raw) * mmap.PAGESIZE


def begin(ctx, script, *args):
    process = Process([sys.executable, "-c", script, *args])
    ctx.started.append(process)
    wait_until(lambda: b"\n" in process.out or process.code is not None, STOP_S, "that the file is written")
    check(process.code is None, "it failed: %s", process.err)
    return process


def rows_in_d(ctx, pid, path):
    rows = rows_of(ctx.rows("-p", pid, seconds=SECONDS, columns="state,filename,file_bytes,cached_bytes,dirty_bytes,evicted_bytes"), pid)
    for row in rows:
        check(row["state"] == "D" or not row["cached_bytes"], "not in D: %s", row)
    return [row for row in rows if row["state"] == "D" and row["filename"] == path]


@case
def page_cache_of_a_file(ctx):
    """Of a file that a thread reads directly, the cached bytes are those of mincore(2), the dirty ones those that it has just written."""
    path = ctx.temporary() + "/file"
    process = begin(ctx, DIRECT, path)
    before = resident(path)
    rows = rows_in_d(ctx, process.pid, path)
    after = resident(path)  # others may need memory so much that the kernel takes some pages
    check(0.9 * 24 * MB < after <= before <= 24 * MB, "not as it was made: %d, then %d", before, after)
    check(len(rows) > 5, "%d rows in D", len(rows))
    for row in rows:
        check(after <= int(row["cached_bytes"]) <= before, "%d to %d bytes are cached: %s", after, before, row)
        check(int(row["file_bytes"]) == 64 * MB and int(row["dirty_bytes"]) <= 3 * MB, "%s", row)
    # the kernel may write pages at any time
    check(sum(int(row["dirty_bytes"]) == 3 * MB for row in rows) >= len(rows) / 2, "dirty: %s", [row["dirty_bytes"] for row in rows])


@case
def page_cache_evicted(ctx):
    """A file that is larger than what its reader's control group may have is told as evicted a moment ago."""
    counted("/proc/self/exe")
    path = ctx.temporary() + "/file"
    process = begin(ctx, EVICT, path, limited_group(ctx, "tsnap-test-evict-%d" % os.getpid(), 48 * MB) + "/cgroup.procs")
    report = ctx.plain("-d", SECONDS, "-p", process.pid, "-v")
    rows = rows_in_d(ctx, process.pid, path)
    check(len(rows) > 5, "%d rows in D", len(rows))
    report.finish_plain()
    # of the host: others may read, too
    check("% of what is read was evicted a moment ago: memory is short" in report.out.decode(), "findings: %s", report.out.decode())
    told = re.search(r"Page cache: (\d+) % of the (\d+) MB read from disks had been evicted a moment ago: memory is short", report.out.decode())
    check(told and 20 <= int(told.group(1)) <= 100 and int(told.group(2)) > 8, "remarks: %s", report.out.decode())
    evicted = [int(row["evicted_bytes"]) for row in rows]
    check(max(evicted) > 8 * MB, "evicted: %s; cachestat has %s", evicted, counted(path))
    check(all(int(row["cached_bytes"]) + int(row["evicted_bytes"]) <= 96 * MB for row in rows), "more than the file: %s", rows[-1])


def refaulted(group):
    """(when, bytes that the kernel has counted) of a group's files."""
    with open(os.path.join(group, "memory.stat"), encoding="ascii") as file:
        counts = dict(line.split() for line in file)
    if "workingset_refault_file" not in counts:
        raise Skip("memory.stat has no refaults")
    return time.time(), int(counts["workingset_refault_file"]) * mmap.PAGESIZE


@case
def refaults_of_a_group(ctx):
    """What the control group of a thread in D reads again a moment after it was evicted is what the kernel counts of that group."""
    path, group = ctx.temporary() + "/file", limited_group(ctx, "tsnap-test-refault-%d" % os.getpid(), 48 * MB)
    process = begin(ctx, EVICT, path, group + "/cgroup.procs")
    before = refaulted(group)
    rows = rows_of(ctx.rows("-p", process.pid, seconds=2 * SECONDS, columns="state,filename,refault_bps"), process.pid)
    after = refaulted(group)
    mean = (after[1] - before[1]) / (after[0] - before[0])
    rates = [int(row["refault_bps"]) for row in rows if row["refault_bps"]]
    check(len(rates) > 5 and all(row["state"] == "D" for row in rows if row["refault_bps"]), "%d rates", len(rates))
    check(mean > MB and 0.4 * mean < sum(rates) / len(rates) < 2.5 * mean, "%d bytes a second, rows say %s", mean, sorted(set(rates)))
