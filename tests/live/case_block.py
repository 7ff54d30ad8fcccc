"""--trace block and the io columns: a loop device on memory, against what its reader, fio and the kernel count."""
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time

import truth
from case_trace import BUCKETS, Traced
from harness import SLOW, START_S, STOP_S, Process, Skip, check, case, number, wait_until

LOOP_CTL_REMOVE = 0x4C81  # include/uapi/linux/loop.h
DEVICE_BYTES = 64 << 20

# Does as it is told on standard input, "read COUNT BYTES", "write COUNT BYTES" or "sync COUNT", past the page cache.
WORKER = """
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
memory = mmap.mmap(-1, 1 << 20)
print("ready", flush=True)
for line in sys.stdin:
    word, count, size = (line.split() + ["0"])[:3]
    view = memoryview(memory)[:int(size)]
    for i in range(int(count)):
        at = i * int(size) %% (%d - (1 << 20))
        if word == "read":
            os.preadv(fd, [view], at)
        elif word == "write":
            os.pwritev(fd, [view], at)
        else:
            os.pwritev(fd, [memoryview(memory)[:4096]], 0)
            os.fsync(fd)
    print("done", flush=True)
""" % DEVICE_BYTES


def losetup(*args):
    return subprocess.run(["losetup"] + list(args), capture_output=True, text=True)


class Device:
    """A loop device on a file in memory; `with` ends it."""

    def __init__(self):
        if not shutil.which("losetup"):
            raise Skip("no losetup")
        if not os.path.exists("/dev/loop-control"):
            subprocess.run(["modprobe", "-q", "loop"], check=False)
        self.file = "/dev/shm/tsnap-test-%d" % os.getpid()
        with open(self.file, "wb") as file:
            file.write(bytes(DEVICE_BYTES))
        made = losetup("-f", "--show", self.file)
        if made.returncode:
            os.unlink(self.file)
            raise Skip("no loop device: %s" % made.stderr.strip())
        self.path = made.stdout.strip()
        self.name = os.path.basename(self.path)

    def __enter__(self):
        return self

    def __exit__(self, *_why):
        losetup("-d", self.path)
        os.unlink(self.file)

    def stat(self):
        """Reads, writes, flushes that were completed (Documentation/block/stat.rst; flushes since 5.5)."""
        words = [int(word) for word in truth.read("/sys/block/%s/stat" % self.name).split()]
        return {"read": words[0], "write": words[4], "flush": words[15] if len(words) > 15 else None}


class Worker(Process):
    def __init__(self, ctx, device):
        super().__init__([sys.executable, "-c", WORKER, device.path])
        ctx.started.append(self)
        self.told = 0
        wait_until(lambda: b"ready" in self.out or self.code is not None, 20 * SLOW, "the worker")
        check(self.code is None, "the worker: %s", self.err)

    def do(self, words):
        self.say(words)
        self.told += 1
        wait_until(lambda: self.out.count(b"done") >= self.told or self.code is not None, 60 * SLOW, words)
        check(self.code is None, "the worker: %s", self.err)


def begin(ctx, worker, *args):
    """A run that traces by now: sleeps too, which the worker has without a request."""
    tool = ctx.plain("--csv", "--trace", "block,blockq,offcpu", "-i", 1, *args)
    wait_until(lambda: worker.do("read 0 0") or tool.rows() or tool.code is not None, START_S, "the first interval")
    return tool


def requests_of(ctx, worker, device, without=""):
    """What a run tells of 300 reads, 100 writes and 50 flushes."""
    tool = begin(ctx, worker, "-g", "tid", "-p", worker.pid, *ctx.without(without))
    before = device.stat()
    for words in ("read 300 4096", "write 100 16384", "sync 50"):
        worker.do(words)
    after = device.stat()
    done = {op: after[op] - before[op] for op in before if after[op] is not None}
    done["write"] -= 50  # the kernel counts who asks for a flush as a write, too
    return [row for row in tool.interrupt() if row["io_dev"] == device.name], done


def requests_check(rows, done, worker, whole):
    for op, size in (("read", 300 * 4096), ("write", 100 * 16384 + 50 * 4096)):
        told = Traced(rows, trace="block", io_op=op, tid=worker.pid)
        check(told.count == done[op], "%d of %s, the kernel counts %d", told.count, op, done[op])
        moved = sum(int(row["bytes"]) for row in rows if row["trace"] == "block" and row["io_op"] == op)
        check(moved == size, "%d bytes of %s, not %d", moved, op, size)
        if whole:
            queued = Traced(rows, trace="blockq", io_op=op, tid=worker.pid)
            check(queued.count == told.count, "%d of %d of %s were queued", queued.count, told.count, op)
    if whole and "flush" in done:
        told = Traced(rows, trace="block", io_op="flush", tid=worker.pid)
        check(told.count == done["flush"] >= 50, "%d flushes, the kernel counts %d", told.count, done["flush"])


@case
def block_requests(ctx):
    """Every read, write and flush of a thread, and its bytes, as the kernel counts them."""
    with Device() as device:
        worker = Worker(ctx, device)
        check_text = subprocess.run([ctx.options.tsnap, "--check"] + ctx.without(""), capture_output=True, text=True).stdout
        start = any("block_io_start" in line and " yes" in line for line in check_text.split("\n"))
        rows, done = requests_of(ctx, worker, device)
        requests_check(rows, done, worker, start)


@case
def block_requests_before_start(ctx):
    """The same without block_io_start: who issues a request is taken for who made it."""
    with Device() as device:
        worker = Worker(ctx, device)
        rows, done = requests_of(ctx, worker, device, "block_io_start")
        requests_check(rows, done, worker, False)


@case
def block_requests_by_tracepoints(ctx):
    """The same with perf tracepoints, which do not tell the request's address."""
    if not os.path.isdir("/sys/kernel/tracing/events/block") and not os.path.isdir("/sys/kernel/debug/tracing/events/block"):
        raise Skip("tracefs is not mounted")
    with Device() as device:
        worker = Worker(ctx, device)
        rows, done = requests_of(ctx, worker, device, "raw_tracepoint")
        requests_check(rows, done, worker, False)


def real_time():
    """So that fio does not wait for a CPU when the device has answered, which it would count."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def fio(device, *args):
    """Its own report of a job on the device."""
    run = subprocess.run(["fio", "--name=tsnap", "--filename=" + device.path, "--direct=1", "--bs=4k", "--ioengine=psync",
                          "--output-format=json"] + list(args), capture_output=True, text=True, preexec_fn=real_time)
    check(run.returncode == 0, "fio: %s", run.stderr)
    return json.loads(run.stdout[run.stdout.index("{"):])["jobs"][0]


def bucket_of(ns):
    return max(i for i, low in enumerate(BUCKETS) if low <= ns)


@case
def block_and_fio(ctx):
    """fio's own count and bytes to the last one; its median and 99th percentile within a bucket's width."""
    if not shutil.which("fio"):
        raise Skip("fio is missing (packaging/install-deps test)")
    with Device() as device:
        tool = begin(ctx, Worker(ctx, device), "-g", "comm")
        told = fio(device, "--rw=randread", "--runtime=%d" % (2 * SLOW), "--time_based")["read"]
        rows = [row for row in tool.interrupt() if row["io_dev"] == device.name and row["comm"] == "fio" and row["io_op"] == "read"]
        reads = Traced(rows, trace="block")
        # fio looks at a new device's first blocks before it counts
        check(0 <= reads.count - told["total_ios"] <= 8, "%d reads, fio counts %d", reads.count, told["total_ios"])
        moved = sum(int(row["bytes"]) for row in rows if row["trace"] == "block")
        check(0 <= moved - told["io_bytes"] <= 1 << 20, "%d bytes, fio counts %d", moved, told["io_bytes"])
        check(reads.total_ns <= told["clat_ns"]["mean"] * told["total_ios"] * 1.01 + 1e6,
              "%d ns in the device, fio waited for %d", reads.total_ns, told["clat_ns"]["mean"] * told["total_ios"])
        for share, key in ((0.5, "50.000000"), (0.99, "99.000000")):
            left, at = share * reads.count, 0
            for low in sorted(reads.buckets):
                at = BUCKETS.index(low)
                left -= reads.buckets[low]
                if left <= 0:
                    break
            fios = bucket_of(told["clat_ns"]["percentile"][key])
            check(abs(at - fios) <= 1, "%g %% in bucket %d ns, fio's is %d ns", share * 100, BUCKETS[at], BUCKETS[fios])


@case
def block_waits(ctx):
    """A thread in D in a direct read shows the device, what it does there, its size, and for how long."""
    with Device() as device:
        worker = Worker(ctx, device)
        tool = ctx.stream("-F", 100, "-p", worker.pid, columns="state,state_us,io_dev,io_op,io_bytes,io_us")
        wait_until(lambda: tool.out, START_S, "the first row's heading")
        deadline = time.monotonic() + 20 * SLOW
        while sum(row["state"] == "D" for row in tool.rows()) < 40 and time.monotonic() < deadline:
            worker.do("read 300 1048576")
        waits = [row for row in tool.interrupt() if row["state"] == "D"]
        check(len(waits) >= 10, "only %d samples in D", len(waits))
        told = [row for row in waits if row["io_dev"] == device.name and row["io_op"] == "read"]
        # what is completed by now has yet to wake its thread
        check(len(told) >= 0.6 * len(waits), "%d of %d samples in D tell the device: %s", len(told), len(waits), waits[:3])
        for row in told:
            check(4096 <= number(row, "io_bytes") <= 1 << 20, "%s", row)
            check(0 <= number(row, "io_us") <= number(row, "state_us") + 50000 * SLOW, "%s", row)


@case
def block_gone(ctx):
    """A device that goes away while it is read is told by its name to the end."""
    with Device() as device:
        worker = Worker(ctx, device)
        tool = begin(ctx, worker, "-g", "tid,io_dev,io_us")
        worker.say("read 100000000 4096")
        wait_until(lambda: any(row["io_dev"] == device.name for row in tool.rows()), 20 * SLOW, "its requests")
        losetup("-d", device.path)
        worker.process.kill()
        worker.process.wait()
        with contextlib.suppress(OSError), open("/dev/loop-control") as control:
            fcntl.ioctl(control, LOOP_CTL_REMOVE, int(device.name[4:]))
        intervals = len({row["timestamp"] for row in tool.rows()})
        wait_until(lambda: len({row["timestamp"] for row in tool.rows()}) > intervals or tool.code is not None,
                   START_S + STOP_S, "another interval")
        rows = tool.interrupt()
        check(Traced([row for row in rows if row["io_dev"] == device.name], trace="block").count > 100, "no requests")


@case
def block_unasked(ctx):
    """Without --trace block and io columns no program of it is there; the columns of others are absent."""
    tool = ctx.plain("--self", "-d", 1)
    tool.finish_plain()
    check(b"block_" not in tool.out and b"ts_block" not in tool.out, "%s", tool.out.decode())
