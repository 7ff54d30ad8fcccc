"""--trace block and the io columns: requests to a loop device in memory, against the counts of its reader, of fio and of the kernel."""
import contextlib
import fcntl
import glob
import json
import mmap
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import time

import truth
from bpf_maps import map_find
from case_trace import BUCKETS, Traced
from growth import Room
from harness import SLOW, START_S, STOP_S, Process, Skip, check, case, let_pass, number, table_below, unmount, wait_until

LOOP_CTL_REMOVE = 0x4C81  # include/uapi/linux/loop.h
DEVICE_BYTES = 64 << 20
FIO_BYTES = 128 << 10  # large enough that the device takes longer than a wake-up of fio on a busy machine

# A process that carries out lines of its standard input: "read COUNT BYTES", "write COUNT BYTES" or "sync COUNT", past the page cache; or
# "dirty COUNT BYTES", into it, for the kernel's flusher thread to write back.
WORKER = """
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
cached = os.open(sys.argv[1], os.O_RDWR)
memory = mmap.mmap(-1, 8 << 20)
print("ready", flush=True)
for line in sys.stdin:
    word, count, size = (line.split() + ["0"])[:3]
    view = memoryview(memory)[:int(size)]
    for i in range(int(count)):
        at = i * int(size) %% (%d - len(memory))
        if word == "read":
            os.preadv(fd, [view], at)
        elif word == "write":
            os.pwritev(fd, [view], at)
        elif word == "dirty":
            os.pwritev(cached, [view], at)
            os.sync()
        else:
            os.pwritev(fd, [memoryview(memory)[:4096]], 0)
            os.fsync(fd)
    print("done", flush=True)
""" % DEVICE_BYTES


def losetup(*args):
    return subprocess.run(["losetup"] + list(args), capture_output=True, text=True)


class Device:
    """A loop device on a file in memory, or in the given folder; `with` removes it at its end."""

    def __init__(self, folder="/dev/shm", size=DEVICE_BYTES):
        if not shutil.which("losetup"):
            raise Skip("no losetup")
        if not os.path.exists("/dev/loop-control"):
            subprocess.run(["modprobe", "-q", "loop"], check=False)
        self.file = "%s/tsnap-test-%d" % (folder, os.getpid())
        with open(self.file, "wb") as file:
            file.write(bytes(size))
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

    def queue_by_deadline(self):
        """Gives the device an I/O scheduler, which queues and merges requests; loop devices have none since 5.14. False: not available."""
        with open("/sys/block/%s/queue/scheduler" % self.name, "r+", encoding="ascii") as scheduler:
            if "mq-deadline" not in scheduler.read():
                return False
            scheduler.write("mq-deadline")
            return True

    def stat(self):
        """Completed reads, writes and flushes (Documentation/block/stat.rst; flushes since 5.5)."""
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
        self.wait_done(words)

    def wait_done(self, words):
        self.told += 1
        wait_until(lambda: self.out.count(b"done") >= self.told or self.code is not None, 60 * SLOW, words)
        check(self.code is None, "the worker: %s", self.err)


def begin(ctx, worker, *args):
    """A run whose tracing has begun. It traces sleeps too: the worker sleeps without making a request, which shows that."""
    tool = ctx.plain("--csv", "--trace", "block,blockq,offcpu", "-i", 1, *args)
    wait_until(lambda: worker.do("read 0 0") or tool.rows() or tool.code is not None, START_S, "the first interval")
    return tool


def used_again(device):
    """Reads once on each CPU: that reuses the slot of the last request from that CPU, whereupon tsnap finds out whether it saw its end."""
    cpus = os.sched_getaffinity(0)
    fd = os.open(device.path, os.O_RDONLY | os.O_DIRECT)
    try:
        for cpu in cpus:
            os.sched_setaffinity(0, {cpu})
            os.preadv(fd, [mmap.mmap(-1, 4096)], 0)
    finally:
        os.sched_setaffinity(0, cpus)
        os.close(fd)


def unseen_of(tool, count):
    """Number of requests at whose end no BPF program was run, as the finished tsnap reports it. Some sandboxes hide tasks from programs,
    and the interrupt may arrive in any task."""
    told = re.search(r"(\d+) requests? to block devices \(the kernel ran no program at their end\)", tool.err)
    unseen = int(told.group(1)) if told else 0
    check(unseen <= count / 100, "no program was run at the end of %d of %d requests", unseen, count)
    return unseen


def requests_of(ctx, worker, device, without=""):
    """Makes 300 reads, 100 writes and 50 flushes: (rows that a run prints, the kernel's counts, requests whose end was not seen)."""
    tool = begin(ctx, worker, "-g", "tid", "-p", worker.pid, *ctx.without(without))
    before = device.stat()
    for words in ("read 300 4096", "write 100 16384", "sync 50"):
        worker.do(words)
    after = device.stat()
    done = {op: after[op] - before[op] for op in before if after[op] is not None}
    done["write"] -= 50  # the kernel counts a request for a flush as a write, too
    used_again(device)
    told = tool.interrupt()
    rows = [row for row in told if row["io_dev"] == device.name]
    check(rows, "%s is in none of %d rows: %s; %s", device.name, len(told), told[-3:], tool.err)
    return rows, done, unseen_of(tool, sum(count or 0 for count in done.values()))


def requests_check(rows, done, unseen, worker, whole):
    for op, size, largest in (("read", 300 * 4096, 4096), ("write", 100 * 16384 + 50 * 4096, 16384)):
        told = Traced(rows, trace="block", io_op=op, tid=worker.pid)
        check(done[op] - unseen <= told.count <= done[op], "%d of %s, the kernel counts %d, %d unseen", told.count, op, done[op], unseen)
        moved = sum(int(row["bytes"]) for row in rows if row["trace"] == "block" and row["io_op"] == op)
        check(size - (done[op] - told.count) * largest <= moved <= size, "%d bytes of %s, not %d", moved, op, size)
        if whole:
            queued = Traced(rows, trace="blockq", io_op=op, tid=worker.pid)
            check(queued.count == done[op], "%d of %d of %s were queued", queued.count, done[op], op)
    if whole and "flush" in done:
        told = Traced(rows, trace="block", io_op="flush", tid=worker.pid)
        check(told.count == done["flush"] >= 50, "%d flushes, the kernel counts %d", told.count, done["flush"])


def block_start(ctx, without=""):
    """True if tsnap sees requests when they are made (block_io_start)."""
    words = subprocess.run([ctx.options.tsnap, "--check"] + ctx.without(without), capture_output=True, text=True).stdout
    return any("block_io_start" in line and " yes" in line for line in words.split("\n"))


def all_requests(ctx, without=""):
    start = block_start(ctx, without)
    with Device() as device:
        worker = Worker(ctx, device)
        rows, done, unseen = requests_of(ctx, worker, device, without)
        requests_check(rows, done, unseen, worker, start)


@case(long=True)
def block_requests(ctx):
    """Every read, write and flush of a thread, and their bytes, are counted as the kernel counts them."""
    all_requests(ctx)


@case(thorough=True)
def block_requests_without_types(ctx):
    """Every request is counted with raw tracepoints that have no types."""
    all_requests(ctx, "typed_tracepoint")


@case
def block_requests_before_start(ctx):
    """Every request is counted without block_io_start: the thread that issues a request is taken for the one that made it."""
    with Device() as device:
        worker = Worker(ctx, device)
        rows, done, unseen = requests_of(ctx, worker, device, "block_io_start")
        requests_check(rows, done, unseen, worker, False)


@case
def block_requests_by_tracepoints(ctx):
    """Every request is counted with perf tracepoints, which do not have the request's address."""
    if not os.path.isdir("/sys/kernel/tracing/events/block") and not os.path.isdir("/sys/kernel/debug/tracing/events/block"):
        raise Skip("tracefs is not mounted")
    with Device() as device:
        worker = Worker(ctx, device)
        rows, done, unseen = requests_of(ctx, worker, device, "raw_tracepoint")
        requests_check(rows, done, unseen, worker, False)


def real_time():
    """Real-time priority for fio: otherwise it counts the time that it waits for a CPU after the device has answered."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def fio(device, *args):
    """fio's own report of a job on the device."""
    run = subprocess.run(["fio", "--name=tsnap", "--filename=" + device.path, "--direct=1", "--bs=%d" % FIO_BYTES, "--ioengine=psync",
                          "--output-format=json"] + list(args), capture_output=True, text=True, preexec_fn=real_time)
    check(run.returncode == 0, "fio: %s", run.stderr)
    return json.loads(run.stdout[run.stdout.index("{"):])["jobs"][0]


def bucket_of(ns):
    return max(i for i, low in enumerate(BUCKETS) if low <= ns)


@case
def block_and_fio(ctx):
    """Count and bytes are exactly fio's; fio's median is matched within a bucket's width, and its 99th percentile is no less."""
    if not shutil.which("fio"):
        raise Skip("fio is missing (packaging/install-deps test)")
    with Device() as device:
        tool = begin(ctx, Worker(ctx, device), "-g", "comm")
        told = fio(device, "--rw=randread", "--runtime=%d" % (2 * SLOW), "--time_based")["read"]
        used_again(device)
        rows = [row for row in tool.interrupt() if row["io_dev"] == device.name and row["comm"] == "fio" and row["io_op"] == "read"]
        reads, unseen = Traced(rows, trace="block"), unseen_of(tool, told["total_ios"])
        # fio looks at a new device's first blocks before it counts
        check(-unseen <= reads.count - told["total_ios"] <= 8, "%d reads, %d unseen, fio counts %d", reads.count, unseen, told["total_ios"])
        moved = sum(int(row["bytes"]) for row in rows if row["trace"] == "block")
        check(-FIO_BYTES * unseen <= moved - told["io_bytes"] <= 1 << 20, "%d bytes, fio counts %d", moved, told["io_bytes"])
        check(reads.total_ns <= told["clat_ns"]["mean"] * told["total_ios"] * 1.01 + 1e6,
              "%d ns in the device, fio waited for %d", reads.total_ns, told["clat_ns"]["mean"] * told["total_ios"])
        # fio's time is the device's, and then fio's wait for a CPU, which may be anything at the 99th percentile
        for share, key, below in ((0.5, "50.000000", 1), (0.99, "99.000000", len(BUCKETS))):
            left, at = share * reads.count, 0
            for low in sorted(reads.buckets):
                at = BUCKETS.index(low)
                left -= reads.buckets[low]
                if left <= 0:
                    break
            fios = bucket_of(told["clat_ns"]["percentile"][key])
            check(-below <= at - fios <= 1, "%g %% in bucket %d ns, fio's is %d ns", share * 100, BUCKETS[at], BUCKETS[fios])


@case
def block_waits(ctx):
    """A thread in D in a direct read shows the device, the operation, its size, and for how long it is in flight."""
    with Device() as device:
        worker = Worker(ctx, device)
        tool = ctx.stream("-F", 100, "-p", worker.pid, columns="state,state_us,io_dev,io_op,io_bytes,io_us")
        wait_until(lambda: tool.out, START_S, "the first row's header line")
        deadline = time.monotonic() + 20 * SLOW
        while sum(row["state"] == "D" for row in tool.rows()) < 40 and time.monotonic() < deadline:
            worker.do("read 40 8388608")  # each call has some request in flight nearly all the time
        largest = 1024 * int(truth.read("/sys/block/%s/queue/max_sectors_kb" % device.name))
        waits = [row for row in tool.interrupt() if row["state"] == "D"]
        check(len(waits) >= 10, "only %d samples in D", len(waits))
        told = [row for row in waits if row["io_dev"] == device.name and row["io_op"] == "read"]
        # a thread whose request is completed may not have been woken yet
        print("# %d of %d samples in D tell the device" % (len(told), len(waits)))
        check(len(told) >= 0.7 * len(waits), "%d of %d samples in D tell the device: %s", len(told), len(waits), waits[:3])
        for row in told:
            check(4096 <= number(row, "io_bytes") <= largest, "%s", row)
            check(0 <= number(row, "io_us") <= number(row, "state_us") + 50000 * SLOW, "%s", row)


@case
def block_others(ctx):
    """Two processes that read a device at once: each shows the other, in a column and in the lists of --chains; one alone shows none."""
    with Device() as device:
        workers = [Worker(ctx, device), Worker(ctx, device)]
        names = [truth.read("/proc/%d/comm" % worker.pid).strip() for worker in workers]
        pids = ",".join(str(worker.pid) for worker in workers)
        columns = ctx.stream("-F", 100, "-p", pids, columns="state,comm,io_dev,io_others")
        chains = ctx.plain("--chains", "-F", 50, "-d", 3, "-p", pids)
        wait_until(lambda: columns.out, START_S, "the first row's header line")
        deadline = time.monotonic() + 20 * SLOW
        while sum(row["state"] == "D" for row in columns.rows()) < 100 or chains.code is None and time.monotonic() < deadline:
            for worker in workers:
                worker.say("read 100 1048576")
            for worker in workers:
                worker.wait_done("both read")
        alone = len(columns.rows())
        while len(columns.rows()) < alone + 80 and time.monotonic() < deadline + 20 * SLOW:
            workers[0].do("read 300 1048576")
        rows = [row for row in columns.interrupt() if row["io_dev"] == device.name]
        told = [row["io_others"] for row in rows[:alone]]
        check({row["io_others"] for row in rows} <= {"", *names}, "others are %s, not %s", {row["io_others"] for row in rows}, names)
        check(len([name for name in told if name]) >= 0.3 * len(told), "the other is told in few of %d rows", len(told))
        check(not any(row["io_others"] for row in rows[-20:] if row["tid"] == str(workers[0].pid)), "alone: %s", rows[-20:])
        chains.finish_plain(0, STOP_S)
        lines = table_below(chains.out.decode(), "Who waited for a block device")
        check(any(re.search(r" %s +%s +%s$" % (names[0], device.name, names[1]), line) for line in lines), "--chains: %s", lines)


@case
def block_others_of_writeback(ctx):
    """A process that reads a device shows the kernel thread that writes back what another one left in the page cache."""
    with Device() as device:
        reader, writer = Worker(ctx, device), Worker(ctx, device)
        tool = ctx.stream("-F", 100, "-p", reader.pid, columns="io_dev,io_others")
        wait_until(lambda: tool.out, START_S, "the first row's header line")
        deadline = time.monotonic() + 20 * SLOW
        others = []
        while sum("kworker" in name for name in others) < 10 and time.monotonic() < deadline:
            reader.say("read 100 1048576")
            writer.say("dirty 5 8388608")
            for worker in reader, writer:
                worker.wait_done("both are done")
            others = [row["io_others"] for row in tool.rows() if row["io_dev"] == device.name]
        tool.interrupt()
        told = {name for name in others if name}
        print("# %d of %d: %s" % (sum(map(bool, others)), len(others), told))
        check(sum("kworker/" in name for name in others) >= 10, "the kernel's thread is told in few of %d rows: %s", len(others), told)


@case
def block_device_below(ctx):
    """A chain leads from a loop device to the one that its file is on, and ends where a file is in memory."""
    with Device() as below, file_system(ctx, below) as folder, Device(folder, 8 << 20) as device:
        worker = Worker(ctx, device)
        tool = ctx.stream("-F", 100, "-p", worker.pid, columns="io_dev,blocker_kind,chain")
        wait_until(lambda: tool.out, START_S, "the first row's header line")
        deadline = time.monotonic() + 20 * SLOW
        while sum(row["blocker_kind"] == "io" for row in tool.rows()) < 20 and time.monotonic() < deadline:
            worker.do("sync 100")
        rows = [row for row in tool.interrupt() if row["blocker_kind"] == "io"]
        check(len(rows) >= 20, "few of the rows have a request: %d", len(rows))
        devices = {re.sub("^[^>]* io> ", "", row["chain"]) for row in rows}
        check(devices == {"%s io> %s" % (device.name, below.name)}, "chains: %s", devices)
        check({row["io_dev"] for row in rows} == {device.name}, "io_dev: %s", {row["io_dev"] for row in rows})


@case(alone=True)
def block_full(ctx):
    """More requests in flight than the map has capacity for: those that fit are shown, the others are counted and reported."""
    with Device() as device:
        worker = Worker(ctx, device)
        tool = begin(ctx, worker, "-g", "tid", "-p", worker.pid)
        flights = map_find("ts_block", tool.pid)
        worker.do("read 20 4096")
        room = sum(flights.put(struct.pack("<QQ", 1 + number, 0)) for number in range(flights.capacity))
        check(room >= flights.capacity - 8, "%d places of %d", room, flights.capacity)
        flights.close()
        worker.do("read 30 4096")
        rows = tool.interrupt()
        told = Traced([row for row in rows if row["io_dev"] == device.name], trace="block", io_op="read").count
        # the kernel may run no program at the end of one or two requests: see block_unseen
        check(18 <= told <= 20, "%d reads are told, of 20 that found room", told)
        # each of the 30 later ones is refused when it is made and when it is issued
        lost = re.search(r"(\d+) requests? to block devices \(too many in flight\)", tool.err)
        check(lost and int(lost.group(1)) >= 30, "%s", tool.err)


@case(thorough=True, long=True)
def block_unseen(ctx):
    """A request whose end no program saw is counted and reported when the kernel uses its slot again."""
    if not block_start(ctx):
        raise Skip("no block_io_start: nothing tells that a place is used again")
    with Device() as device:
        worker = Worker(ctx, device)
        tool = begin(ctx, worker, "-g", "tid", "-p", worker.pid)
        flights = map_find("ts_block", tool.pid)
        worker.say("read 100000 8388608")
        keys = set()
        wait_until(lambda: keys.update(flights.keys()) or len(keys) >= 16, 20 * SLOW, "requests in flight")
        worker.process.kill()
        worker.process.wait()
        check(all(flights.put(key, struct.pack("<QQ", 1, 1)) for key in keys), "%s", keys)
        flights.close()
        again = Worker(ctx, device)
        for _ in range(30):
            again.do("read 50 4096")
            again.do("read 2 8388608")  # many requests at once, as when the slot was used before
            used_again(device)
        tool.interrupt()
        check(unseen_of(tool, 10000) >= 1, "not told: %s", tool.err)


FIFREEZE, FITHAW = 0xC0045877, 0xC0045878  # include/uapi/linux/fs.h


@contextlib.contextmanager
def frozen(folder):
    """Freezes a file system (FIFREEZE): nothing is written to it within the `with`."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, FIFREEZE, 0)
        try:
            yield
        finally:
            fcntl.ioctl(fd, FITHAW, 0)
    finally:
        os.close(fd)


@contextlib.contextmanager
def file_system(ctx, device):
    """A folder where an ext4 file system on the device is mounted."""
    folder = ctx.temporary()
    made = subprocess.run("mkfs.ext4 -q -F %s && mount -t ext4 %s %s" % (device.path, device.path, folder), shell=True,
                          capture_output=True, text=True)
    if made.returncode:
        raise Skip("no ext4: %s" % made.stderr.strip())
    try:
        yield folder
    finally:
        unmount(folder)


def merged(ctx, fact, without=""):
    """A request that was merged into another one is not in flight any more: a thread that has made many and rests has none."""
    if not shutil.which("fio"):
        raise Skip("fio is missing (packaging/install-deps test)")
    checked = [ctx.options.tsnap, "--check"] + shlex.split(ctx.options.tsnap_args)
    if not re.search(fact + " +yes", subprocess.run(checked, capture_output=True, text=True).stdout):
        raise Skip("this kernel does not tell when requests are merged")
    with Device() as below, file_system(ctx, below) as folder, Device(folder, 8 << 20) as device, contextlib.ExitStack() as end:
        queue = "/sys/block/%s/" % device.name
        if not device.queue_by_deadline():
            raise Skip("no scheduler that merges requests")
        tool = ctx.plain("--csv", "-a", "-g", "timestamp,comm,io_dev,io_us", "-c", "fio", *ctx.without(without))
        wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
        with frozen(folder):
            many = Process(["fio", "--name=tsnap", "--thread", "--filename=" + device.path, "--direct=1", "--bs=4k", "--size=2M",
                            "--ioengine=libaio", "--iodepth=512", "--rw=randwrite", "--runtime=600", "--time_based"])
            end.callback(many.end)
            wait_until(lambda: int(truth.read(queue + "inflight").split()[1]) > 100 or many.code is not None, START_S, "requests")
            let_pass(0.5)
            many.signal(signal.SIGSTOP)
        wait_until(lambda: truth.read(queue + "inflight").split() == ["0", "0"], 20 * SLOW, "the end of all requests")
        first = len({row["timestamp"] for row in tool.rows()}) + 2
        wait_until(lambda: len({row["timestamp"] for row in tool.rows()}) > first, 20 * SLOW, "two scans")
        many.signal(signal.SIGKILL)
        rows = tool.interrupt()
        check(any(row["io_dev"] == device.name for row in rows), "no requests")
        last = [row for row in rows if row["timestamp"] == rows[-1]["timestamp"]]
        check(last and not any(row["io_dev"] for row in last), "%s", last)


@case(thorough=True)
def block_merged(ctx):
    """Merged requests are not in flight any more, as the tracepoint shows."""
    merged(ctx, "block_rq_merge")


@case
def block_merged_before(ctx):
    """Merged requests are not in flight any more, as a kprobe on the merging function shows: kernels before 5.9 have no tracepoint."""
    merged(ctx, "kprobe", "block_rq_merge")


@case
def block_slower(ctx):
    """--slower shows the request that waits because the file system below its device is frozen, and none of the fast ones."""
    with Device() as below, file_system(ctx, below) as folder, Device(folder, 8 << 20) as device, contextlib.ExitStack() as end:
        worker = Worker(ctx, device)
        end.callback(worker.end)
        tool = ctx.plain("--csv", "--slower", 150, "--trace", "block,blockq", "-p", worker.pid)
        wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
        worker.do("read 100 4096")
        start = time.monotonic()
        with frozen(folder):
            worker.say("write 1 8192")
            let_pass(0.3)
        worker.do("read 1 4096")
        most_ns = 1e9 * (time.monotonic() - start)
        wait_until(lambda: tool.rows() or tool.code is not None, 5 * SLOW, "the event")
        rows = [row for row in tool.interrupt() if row["io_dev"] == device.name]
        check([(row["trace"], row["io_op"], row["bytes"], row["tid"]) for row in rows] ==
              [("block", "write", "8192", str(worker.pid))], "%s", rows)
        check(290e6 <= int(rows[0]["duration_ns"]) <= most_ns, "%s, it took %d at most", rows, most_ns)


@case(alone=True, thorough=True)
def block_of_growth(ctx):
    """A request that is in flight while the map of threads is made larger is shown at its end, as its thread's, with all of its time."""
    room = Room(ctx)
    with Device() as below, file_system(ctx, below) as folder, Device(folder, 8 << 20) as device, contextlib.ExitStack() as end:
        worker = Worker(ctx, device)
        end.callback(worker.end)
        tool = ctx.plain("--csv", "--slower", 150, "--trace", "block,syscalls", "-p", worker.pid)
        wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
        start = time.monotonic()
        with frozen(folder):
            worker.say("write 1 8192")
            ctx.workload("many", threads=room.widen().threads, pairs=1)
            wait_until(lambda: room.was_left(tool.pid) or tool.code is not None, 30 * SLOW, "a larger map")
            tool.wait_sleeps(20)
            least_ns = 1e9 * (time.monotonic() - start)
        worker.do("read 1 4096")
        wait_until(lambda: len(tool.rows()) > 1 or tool.code is not None, 5 * SLOW, "the events")
        rows = tool.interrupt()
        check("the map was made larger" in tool.err, "it was not: %s", tool.err)
        told = [(row["trace"], row["io_op"], row["bytes"], row["syscall"][:6], row["tid"]) for row in rows]
        check(sorted(told) == [("block", "write", "8192", "", str(worker.pid)), ("syscalls", "", "", "pwrite", str(worker.pid))],
              "%s", rows)
        check(all(int(row["duration_ns"]) > least_ns - 200e6 for row in rows), "%s, it took %d at least", rows, least_ns)


def works_for(queue):
    """Ids of the kernel threads that do, or did last, work of that work queue, by their names in /proc."""
    names = {path.split("/")[2]: (truth.read(path) or "").strip() for path in glob.glob("/proc/[0-9]*/comm")}
    return {int(tid) for tid, name in names.items() if re.fullmatch(r"kworker/[^+-]*[+-]" + re.escape(queue), name)}


@case
def work_queue(ctx):
    """Kernel threads that do the work of a loop device are told by its work queue (from 5.14 on; before, it has a thread of its own)."""
    with Device() as device:
        worker = Worker(ctx, device)
        worker.say("read 100000000 4096")
        wait_until(lambda: works_for(device.name) or worker.code is not None, 20 * SLOW, "a kernel thread for " + device.name)
        tool, workers = ctx.stream("-d", 2, "-a", "-F", 50, "--filter", "kthread=1", columns="comm,state,workqueue"), set()
        while tool.code is None:
            workers |= works_for(device.name)
            time.sleep(0.05)
        rows = tool.finish(0, STOP_S)
        found = [row for row in rows if row["workqueue"] == device.name]
        check(len(found) >= 20, "%d rows of %s, %d rows in all", len(found), device.name, len(rows))
        check(all(row["comm"].startswith("kworker/") and row["state"] != "I" for row in found), "%s", found[:3])
        check({int(row["tid"]) for row in found} & workers, "none of %s: %s", workers, found[:3])
        check(not [row for row in rows if row["workqueue"] and not row["comm"].startswith("kworker/")], "work queues of others")
        worker.process.kill()
        worker.process.wait()


@case
def block_gone(ctx):
    """A device that goes away while it is read is shown by its name to the end."""
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
    """Without --trace block, io columns and findings no program for block requests is loaded."""
    tool = ctx.plain("--self", "-d", 1, "-g", "psn")
    tool.finish_plain()
    check(b"block_" not in tool.out and b"ts_block" not in tool.out, "%s", tool.out.decode())
