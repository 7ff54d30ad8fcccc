"""--trace work: pieces of work between two sleeps in a thread's idle call, against the workload's own clocks."""

import collections
import contextlib
import os
import threading
import time

import truth
from case_chains import needs_feature
from case_trace import Traced
from harness import SLOW, START_S, STOP_S, Skip, case, check, let_pass, wait_until

RATE_HZ = 20  # of scans
PARTS = ("cpu", "runq", "disk", "sleep")
PIECES = 200
PIECE_ERROR_NS = 60000 * SLOW  # a piece begins with the wake-up, the workload's clock is read after the switch


class Served:
    """A run of the workload's pieces: what tsnap counted of them, and what the workload says."""

    def __init__(self, ctx, idle, prepare=None, **options):
        needs_feature(ctx, "thread_slots")
        workload = ctx.workload("pieces", idle=idle, pieces=PIECES, **options)
        if prepare:
            prepare(workload)
        tool = ctx.plain("--csv", "--trace", "work", "-i", 1, "-g", "tid,comm", "-p", workload.pid)
        rounds = 0
        while not self.of(tool.rows(), workload):  # a thread is known by a sleep that began while tsnap ran
            check(rounds < 20 * SLOW, "the thread's idle call stays unknown")
            workload.say("warm")
            rounds += 1
            workload.wait_done(rounds)
            let_pass(0.5)
        let_pass(3)  # all of them are reported
        known = len(self.of(tool.rows(), workload))
        queued = truth.schedstat(workload.tid)
        workload.say("go")
        done = workload.wait_done(rounds + 1)
        self.queued_ns = truth.schedstat(workload.tid)[1] - queued[1] if queued else None
        self.truth = {key: int(value) for key, value in done.items() if key.endswith("_ns")}
        self.rows = self.of(tool.interrupt(), workload)[known:]
        self.pieces = Traced(self.rows)
        check(self.pieces.count == PIECES, "%d pieces, not %d: %s", self.pieces.count, PIECES, self.pieces.buckets)
        check({row["syscall"] for row in self.rows} <= ({"epoll_wait", "epoll_pwait"} if idle == "epoll" else {idle}), "%s", self.rows)
        for row in self.rows:
            for prefix in ("", "tail_"):
                check(abs(sum(float(row[prefix + part + "_share"]) for part in PARTS) - 100) <= 0.4, "no whole: %s", row)

    @staticmethod
    def of(rows, workload):
        return [row for row in rows if row["tid"] == str(workload.tid)]

    def part_ns(self, part):
        return sum(float(row[part + "_share"]) / 100 * int(row["total_ns"]) for row in self.rows)

    def bucket(self, permille):
        """Bounds of the bucket that has the quantile."""
        left = -(-self.pieces.count * permille // 1000)
        for low, count in sorted(self.pieces.buckets.items()):
            left -= count
            if left <= 0:
                return low, 2 * low
        raise AssertionError("no bucket")

    def expect(self):
        """Checks quantiles and parts against what the workload measured itself."""
        mean_queue_ns = (self.queued_ns or 0) / PIECES
        # a piece in a hundred may have waited for its CPU between the wake-up and the workload's clock
        for least, most, key in ((500, 500, "p50_ns"), (980, 1000, "p99_ns")):
            low, high = self.bucket(least)[0], self.bucket(most)[1]
            error_ns = 0.05 * self.truth[key] + PIECE_ERROR_NS + 4 * mean_queue_ns
            check(low - error_ns <= self.truth[key] < high + error_ns, "%s: %d, not in %d to %d", key, self.truth[key], low, high)
        total = self.pieces.total_ns
        error_ns = 0.03 * total + PIECES * PIECE_ERROR_NS
        check(-PIECES * 1000 <= total - self.truth["sum_ns"] <= error_ns + (self.queued_ns or 0), "%d ns, not %d", total, self.truth["sum_ns"])
        check(abs(self.part_ns("cpu") - self.truth["cpu_ns"]) <= error_ns, "cpu: %d ns, not %d", self.part_ns("cpu"), self.truth["cpu_ns"])
        if self.queued_ns is not None:
            check(abs(self.part_ns("runq") - self.queued_ns) <= error_ns, "run queue: %d ns, not %d", self.part_ns("runq"), self.queued_ns)


@case(paired=True)
def work_epoll(ctx):
    """Each piece of a thread that is idle in epoll_wait is counted, with its CPU time and its naps."""
    served = Served(ctx, "epoll", cpu_ms=2, nap_ms=4)
    served.expect()
    naps_ns = PIECES * 4e6
    check(0.97 * naps_ns <= served.part_ns("sleep") <= 1.03 * served.truth["nap_ns"], "asleep: %d ns", served.part_ns("sleep"))
    # what scans saw the thread asleep in within its pieces: never the wait for the next one
    slept = collections.Counter()
    for row in served.rows:
        for word in row["slept_in"].split():
            name, count = word.split(":")
            slept[name] += int(count)
    seen = RATE_HZ * served.part_ns("sleep") / 1e9
    check(set(slept) == {"sleep"} and 0.4 * seen <= slept["sleep"] <= 1.4 * seen + 3, "asleep in %s, not %.0f naps", slept, seen)


@case(paired=True)
def work_futex(ctx):
    """Each piece of a thread that is idle on a condition variable is counted; the slowest 1 % are so by a sleep, most others by CPU time."""
    served = Served(ctx, "futex", cpu_ms=2, slow_every=40, slow_ms=100)
    served.expect()
    slow = [row for row in served.rows if int(row["max_ns"]) >= 100e6]
    check(1 <= len(slow) <= 5, "%d intervals with a slow piece: %s", len(slow), served.rows)
    for row in slow:
        check(float(row["tail_sleep_share"]) >= 80, "the slowest: %s", row)
        few = int(row["count"]) < 20
        check(few or float(row["tail_sleep_share"]) > float(row["sleep_share"]) + 10, "no more than the others: %s", row)


@case(paired=True)
def work_accept(ctx):
    """Each piece of a thread that is idle in accept is counted, with its reads of the disk."""
    served = Served(ctx, "accept", cpu_ms=1, reads=8, file=ctx.options.tsnap)
    served.expect()
    disk_ns = served.part_ns("disk")
    if not served.truth["disk_ns"] or disk_ns > 1.03 * served.truth["disk_ns"]:
        check(False, "disk: %d ns, the reads took %d", disk_ns, served.truth["disk_ns"])
    check(disk_ns > 0, "no disk")


@case(paired=True)
def work_slower(ctx):
    """Each slow piece is an event with what it consisted of: these add up to its time, and the pieces that nap are slow by their sleep."""
    needs_feature(ctx, "thread_slots")
    workload = ctx.workload("pieces", idle="futex", pieces=PIECES, cpu_ms=2, slow_every=20, slow_ms=100)
    tool = ctx.plain("--csv", "--trace", "work", "--slower", "90ms", "-g", "tid,comm", "-p", workload.pid)
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    let_pass(1)
    last = 5 if SLOW == 1 else 20
    for rounds in range(1, last + 1):  # the thread's idle call becomes known
        workload.say("warm")
        workload.wait_done(rounds)
        let_pass(0.5)
    known = len(tool.rows())
    workload.say("go")
    workload.wait_done(last + 1)
    let_pass(1)
    rows = [row for row in tool.interrupt()[known:] if row["tid"] == str(workload.tid)]
    slow = [row for row in rows if int(row["sleep_us"]) >= 99000]
    check(len(slow) == PIECES // 20, "%d slow pieces napped, not %d: %s", len(slow), PIECES // 20, rows)
    for row in rows:
        parts_us = sum(int(row[name]) for name in ("cpu_us", "runq_us", "dwait_us", "sleep_us"))
        check(abs(parts_us - int(row["duration_ns"]) / 1000) <= 5, "parts of %d us: %s", parts_us, row)


SLOW_MS, SLOW_EVERY, SLOW_MB, LIMIT_MB = 100, 20, 24, 16
# Class: the part that it adds to, and the wait class of its sleeps; None: they are in D, where only samples know what is waited for.
INJECTED = {"cpu": ("cpu", None), "lock": ("sleep", "lock"), "disk": ("disk", None), "upstream": ("sleep", "client"), "memory": ("disk", None)}


@contextlib.contextmanager
def memory_limited(workload):
    """A control group of the workload's whose memory is at its limit each time that a piece wants more: nobody is killed (oom_control of cgroup v1), and the
    limit goes after SLOW_MS."""
    group = "/sys/fs/cgroup/memory/tsnap-test-%d" % os.getpid()
    try:
        os.mkdir(group)
    except OSError:
        raise Skip("no control groups of memory, version 1") from None

    def put(name, value):
        with open(os.path.join(group, name), "w") as file:
            file.write(str(value))

    ends = threading.Event()

    def lift():
        while not ends.wait(0.001):
            if "under_oom 1" in open(group + "/memory.oom_control").read():
                time.sleep(SLOW_MS / 1000)
                put("memory.limit_in_bytes", -1)
                time.sleep(0.06)  # until the piece has ended
                put("memory.limit_in_bytes", LIMIT_MB << 20)

    put("cgroup.procs", workload.pid)
    put("memory.oom_control", 1)
    put("memory.limit_in_bytes", LIMIT_MB << 20)
    lifter = threading.Thread(target=lift)
    lifter.start()
    try:
        yield
    finally:
        ends.set()
        lifter.join()
        put("memory.limit_in_bytes", -1)
        workload.process.kill()
        workload.process.wait(STOP_S)
        wait_until(lambda: not open(group + "/cgroup.procs").read(), STOP_S, "the group is empty")
        os.rmdir(group)


def injected(ctx, name, **options):
    """A server each twentieth of whose pieces is delayed: what --trace work says of all and of the slowest 1 %, beside the time that the delays took."""
    part = INJECTED[name][0]
    with contextlib.ExitStack() as end:
        served = Served(ctx, "epoll", lambda workload: name == "memory" and end.enter_context(memory_limited(workload)),
                        cpu_ms=2, nap_ms=1, slow_every=SLOW_EVERY, slow_ms=SLOW_MS, slow_in=name, slow_mb=SLOW_MB, **options)
    slow_ns = PIECES // SLOW_EVERY * SLOW_MS * 1e6 if name == "cpu" else served.truth["slow_ns"]
    base_ns = {"cpu": PIECES * 2e6, "sleep": PIECES * 1.07e6}.get(part, 0)
    gained = served.part_ns(part) - base_ns
    tails = [row for row in served.rows if int(row["max_ns"]) >= SLOW_MS * 0.9e6]
    slept = collections.Counter()
    for row in served.rows:
        for word in row["slept_in"].split():
            slept[word.split(":")[0]] += int(word.split(":")[1])
    tail = {each: sum(float(row["tail_%s_share" % each]) for row in tails) / len(tails) for each in PARTS}
    print("# %s: %.0f ms injected in %d pieces, %.0f ms more %s; tail: %s; asleep in %s" % (
        name, slow_ns / 1e6, PIECES // SLOW_EVERY, gained / 1e6, part, " ".join("%s %.0f %%" % each for each in tail.items()), dict(slept)))
    return gained / slow_ns, tail, slept


@case(alone=True, thorough=True)
def work_injected(ctx):
    """A delay in each class, of the CPU, a lock, the disk, an upstream server and a memory limit: the split names the class, with the time of the delay."""
    for name, (part, wait_class) in INJECTED.items():
        share, tail, slept = injected(ctx, name, **({"file": ctx.options.tsnap} if name == "disk" else {}))
        check(0.85 <= share <= 1.15, "%s: %.2f of the delay", name, share)
        del tail["runq"]  # a busy host's
        check(max(tail, key=tail.get) == part, "%s: the tail is %s", name, tail)
        check(not wait_class or slept[wait_class] >= 0.5 * sum(slept.values()), "%s: asleep in %s", name, slept)
