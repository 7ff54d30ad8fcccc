"""Sleeping threads in a run that shows all threads: each is in every scan, once, with its present state, system call and name."""
import csv
import os
import sys
import time

from harness import SLOW, START_S, STOP_S, Process, Skip, case, check, let_pass, wait_until

THREADS = int(3000 / SLOW)  # woken at once they exceed the capacity of the changed lists
ROWS_BYTES = 4 * THREADS * 100  # more than four scans take

# A process that carries out each line that it reads, and answers with a line.
SLEEPERS = """
import os, resource, select, sys, threading, time
resource.setrlimit(resource.RLIMIT_NOFILE, 2 * resource.getrlimit(resource.RLIMIT_NOFILE)[1:])
threading.stack_size(1 << 17)
count = int(sys.argv[1])
pipes = [os.pipe() for _ in range(count)]
tids = [0] * count

def sleep(i):
    tids[i] = threading.get_native_id()
    while True:
        if os.read(pipes[i][0], 1) == b"e":
            return
        poll = select.poll()
        poll.register(pipes[i][0], select.POLLIN)
        poll.poll()
        if os.read(pipes[i][0], 1) == b"e":
            return

threads = [threading.Thread(target=sleep, args=(i,), daemon=True) for i in range(count)]
for thread in threads:
    thread.start()
while not all(tids):
    time.sleep(0.01)
print("ready", os.getpid(), *tids, flush=True)
for line in sys.stdin:
    word, *rest = line.split()
    if word == "wake":
        for pipe in pipes[:int(rest[0])]:
            os.write(pipe[1], b"w")
    if word == "end":
        for i in range(count - int(rest[0]), count):
            os.write(pipes[i][1], b"e")
            threads[i].join()
    if word == "rename":
        for tid in rest[1:]:
            with open("/proc/self/task/%s/comm" % tid, "w") as file:
                file.write(rest[0])
    if word == "fork":
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    if word == "reap":
        os.waitpid(child, 0)
    print("done", word, flush=True)
"""


class Sleepers(Process):
    """A process whose threads sleep in read(2) of a pipe, or after a wake-up in poll(2)."""

    def __init__(self, count):
        super().__init__([sys.executable, "-c", SLEEPERS, str(count)])
        wait_until(lambda: b"\n" in self.out, START_S, "threads that sleep")
        self.done = 0
        _, self.tgid, *self.tids = self.out.decode().split()

    def tell(self, *words):
        self.say(" ".join(words))
        self.done += 1
        wait_until(lambda: self.out.count(b"done") == self.done, START_S, "an answer to %s" % words[0])


def last_scan(tool):
    """(timestamp, rows by thread) of the last whole scan; no thread may come twice."""
    head, _, rest = tool.out.partition(b"\n")
    lines = rest[-ROWS_BYTES:].decode().split("\n")[1:-1]  # the first and the last line may be cut
    columns = head.decode().split(",")
    rows = [dict(zip(columns, line)) for line in csv.reader(lines)]
    times = sorted({row["timestamp"] for row in rows})
    if len(times) < 3:
        return "", {}
    rows = [row for row in rows if row["timestamp"] == times[-2]]
    by_tid = {row["tid"]: row for row in rows}
    check(len(by_tid) == len(rows), "%d rows of %d threads in a scan", len(rows), len(by_tid))
    return times[-2], by_tid


def await_scan(tool, holds, what):
    """Waits until holds() is true of the last whole scan; it must stay true in the scans that follow."""
    wait_until(lambda: holds(last_scan(tool)[1]), START_S, what)
    seen = set()
    while len(seen) < 4:
        when, rows = last_scan(tool)
        seen.add(when)
        check(holds(rows), "%s, and then no more, at %s", what, when)
        let_pass(0.05)


def asleep_in(calls, tids):
    return lambda rows: all(tid in rows and rows[tid]["state"] == "S" and rows[tid]["syscall"] in calls for tid in tids)


@case(thorough=True)
def asleep_in_every_scan(ctx):
    """3000 threads that sleep, are woken all at once, sleep in another call, and exit: each scan has their present state and call."""
    sleepers = Sleepers(THREADS)
    try:
        tool = ctx.stream("-a", "-F", 5, "-p", sleepers.tgid, columns="tid,comm,state,syscall")
        await_scan(tool, asleep_in(("read",), sleepers.tids), "all asleep in read")
        sleepers.tell("wake", str(THREADS))
        await_scan(tool, asleep_in(("poll", "ppoll", "ppoll_time64"), sleepers.tids), "all asleep in poll")
        sleepers.tell("wake", "20")
        await_scan(tool, asleep_in(("read",), sleepers.tids[:20]), "some asleep in read")
        await_scan(tool, asleep_in(("poll", "ppoll", "ppoll_time64"), sleepers.tids[20:]), "the others asleep in poll")
        ended = set(sleepers.tids[-50:])
        sleepers.tell("end", "50")
        await_scan(tool, lambda rows: rows and not ended & set(rows), "those that ended are gone")
        await_scan(tool, lambda rows: set(sleepers.tids[:-50]) <= set(rows), "the others are there")
        tool.interrupt()
    finally:
        sleepers.end()


@case
def asleep_and_renamed(ctx):
    """Another thread renames a sleeping one (pthread_setname_np): the next scans have the new name."""
    sleepers = Sleepers(40)
    try:
        tool = ctx.stream("-a", "-F", 5, "-p", sleepers.tgid, columns="tid,comm,state")
        renamed = sleepers.tids[5:15]
        await_scan(tool, lambda rows: set(sleepers.tids) <= set(rows), "all of them")
        sleepers.tell("rename", "otherwise", *renamed)
        await_scan(tool, lambda rows: all((rows[tid]["comm"] == "otherwise") == (tid in renamed) for tid in sleepers.tids),
                   "the new names")
        tool.interrupt()
    finally:
        sleepers.end()


@case
def asleep_then_waited_for(ctx):
    """A zombie is in each scan until its parent waits for it, and in none after that."""
    sleepers = Sleepers(5)
    try:
        tool = ctx.stream("-a", "-F", 5, "-r", "-p", sleepers.tgid, columns="tid,state")
        await_scan(tool, lambda rows: set(sleepers.tids) <= set(rows), "all of them")
        sleepers.tell("fork")
        await_scan(tool, lambda rows: any(row["state"] == "Z" for row in rows.values()), "the zombie")
        sleepers.tell("reap")
        await_scan(tool, lambda rows: not any(row["state"] == "Z" for row in rows.values()), "no zombie")
        tool.interrupt()
    finally:
        sleepers.end()


@case
def asleep_since_before(ctx):
    """A thread that slept before tsnap began has slept since then, not since tsnap's start; one that ran for long before counts from its sleep."""
    if not os.path.exists("/sys/kernel/btf/vmlinux") or [int(word) for word in os.uname().release.split(".")[:2]] < [5, 8]:
        raise Skip("no iterator over threads: BTF, and Linux 5.8")
    began = time.monotonic()
    sleepers = Sleepers(3)
    late = Process([sys.executable, "-c", "import os, time\nwhile time.process_time() < 3: pass\nprint('x', flush=True)\nos.read(0, 1)"])
    ready = time.monotonic()
    wait_until(lambda: late.out, START_S, "the end of the work")
    worked = time.monotonic()
    let_pass(4)
    asked = time.monotonic()
    tool = ctx.plain("--csv", "-n", 1, "-a", "-p", "%s,%d" % (sleepers.tgid, late.pid), "-g", "tid,state,state_us")
    tool.finish_plain(0, START_S + STOP_S)
    ended = time.monotonic()
    rows = {row["tid"]: int(row["state_us"]) / 1e6 for row in csv.DictReader(tool.out.decode().splitlines())}
    for tid in sleepers.tids:
        # less by what a hypervisor or interrupts took meanwhile
        check(0.9 * (asked - ready) <= rows[tid] <= ended - began, "asleep for %.2f s, not %.2f to %.2f", rows[tid], asked - ready, ended - began)
    slept = rows[str(late.pid)]
    check(0.9 * (asked - worked) <= slept <= ended - worked + 0.5, "asleep for %.2f s, not %.2f to %.2f", slept, asked - worked, ended - worked)
