"""The exact totals: their sums over a thread's samples against the kernel's own accounts."""
import csv
import fcntl
import mmap
import os
import re
import struct
import time

import truth
from bpf_maps import map_find
from growth import Room
from harness import SLOW, START_S, STOP_S, Skip, case, check, let_pass, number, preloading, rows_of, scans_of, timestamp_s, wait_until

TIMES = ("cpu_us", "runq_us", "dwait_us", "sleep_us")
COLUMNS = "state," + ",".join(TIMES) + ",vcsw,ivcsw"
BURST_NAPS_US = 150000  # sleeps of the workload burst: 50 of 1 ms, one of 100 ms
SWITCH_ERROR_US = 30  # at each switch the tracepoint and the scheduler's account are some microseconds apart


def sums(rows):
    return {column: sum(number(row, column) or 0 for row in rows) for column in TIMES + ("vcsw", "ivcsw")}


class Accounts:
    """The kernel's counts of a thread that holds still right now."""

    def __init__(self, tid):
        thread = truth.Thread(tid)
        check(thread.exists, "the workload is gone")
        self.schedstat = truth.schedstat(tid)
        self.ticks = thread.ticks
        self.vcsw, self.ivcsw = thread.switches
        # In a virtual machine the scheduler's account leaves out the time that the hypervisor took, the clock does not.
        self.stolen_us = int(truth.read("/proc/stat").split()[8]) * 1000000 // os.sysconf("SC_CLK_TCK")

    def minus(self, before):
        self.stolen_us -= before.stolen_us
        self.vcsw -= before.vcsw
        self.ivcsw -= before.ivcsw
        self.ticks -= before.ticks
        if self.schedstat:
            self.schedstat = [(b - a) / 1000 for a, b in zip(before.schedstat, self.schedstat)]
        return self


def burst(ctx, *args):
    """(sums over the samples, the kernel's accounts, the workload's own) of one burst of the thread, and of its
    rival. The thread holds still when each side is read, so the sides cover the same."""
    workload = ctx.workload("burst")
    tids = [workload.tid, workload.number("tid2")]
    tool = ctx.stream("-a", "-p", workload["pid"], *args, columns=COLUMNS)
    tool.wait_scans(3)
    before = {tid: Accounts(tid) for tid in tids}
    start = len(tool.scans())
    workload.say("go")
    done = workload.wait_done()
    tool.wait_scans(len(tool.scans()) + 3)
    after = {tid: Accounts(tid).minus(before[tid]) for tid in tids}
    rows = [row for _, scan in scans_of(tool.interrupt())[start - 1:] for row in scan]
    return [(sums(rows_of(rows, tid)), after[tid]) for tid in tids], done


def near(name, got, expected, switches, part=0.03, stolen_us=0):
    # An emulator can lose its own CPU between the readings of the two clocks, which its guest does not see.
    allowed = expected * part + switches * SWITCH_ERROR_US + 2000 * SLOW + stolen_us
    check(abs(got - expected) <= allowed, "%s is %d, the kernel counts %d (%d switches)", name, got, expected, switches)


def expect_totals(total, kernel):
    switches = kernel.vcsw + kernel.ivcsw
    check(abs(total["vcsw"] - kernel.vcsw) <= 1, "vcsw is %d, not %d", total["vcsw"], kernel.vcsw)
    check(abs(total["ivcsw"] - kernel.ivcsw) <= 1, "ivcsw is %d, not %d", total["ivcsw"], kernel.ivcsw)
    if kernel.schedstat:
        near("cpu_us", total["cpu_us"], kernel.schedstat[0], switches, stolen_us=kernel.stolen_us)
        near("runq_us", total["runq_us"], kernel.schedstat[1], switches, stolen_us=kernel.stolen_us)
    else:
        near("cpu_us", total["cpu_us"], kernel.ticks * 10000, switches, 0.1)


@case
def totals(ctx):
    """cpu_us, runq_us, vcsw and ivcsw of a thread with a rival on its CPU are as the kernel counts them."""
    for total, kernel in burst(ctx)[0]:
        expect_totals(total, kernel)


@case
def totals_of_waits(ctx):
    """dwait_us and sleep_us of a thread that slept in D and S for a known time have that time."""
    ((total, kernel), _), done = burst(ctx)
    near("dwait_us", total["dwait_us"], int(done["disk_ns"]) / 1000, kernel.vcsw + kernel.ivcsw, 0.05)
    # the workload's measure of its sleeps ends when it runs again: on a full host most of that is a wait for a CPU
    asleep = int(done["sleep_ns"]) / 1000
    check(total["sleep_us"] >= BURST_NAPS_US * 0.97, "sleep_us is %d, it slept for %d at least", total["sleep_us"], BURST_NAPS_US)
    check(total["sleep_us"] + total["runq_us"] >= asleep * 0.95, "sleep_us and runq_us are %d, it slept for %d until it ran again",
          total["sleep_us"] + total["runq_us"], asleep)


def expect_filled(rows, tids):
    """The exact times of each thread add up to the time between its samples."""
    for tid in tids:
        mine = rows_of(rows, tid)[1:]
        total, time = sums(mine), sum(number(row, "weight_us") for row in mine)
        filled = sum(total[column] for column in TIMES)
        check(abs(filled - time) <= time * 0.05 + 50000, "%s: %d us of %d us are told: %s", tid, filled, time, total)


@case
def totals_close(ctx):
    """CPU, run queue, D and S of a thread add up to the time between its samples."""
    workload = ctx.workload("pingpong")
    spinner = ctx.workload("spin")
    tool = ctx.stream("-a", "-p", "%s,%s" % (workload["pid"], spinner["pid"]), columns=COLUMNS)
    tool.wait_scans(40)
    rows = tool.interrupt()
    expect_filled(rows, (workload.tid, workload.number("tid2"), spinner.tid))


@case(thorough=True)
def totals_at_any_rate(ctx):
    """The totals don't depend on the rate of sampling."""
    for rate in (2, 100):
        for total, kernel in burst(ctx, "-F", rate)[0]:
            expect_totals(total, kernel)


@case
def totals_of_first_sample(ctx):
    """A thread's first sample has no totals from before tsnap started."""
    workload = ctx.workload("burst")
    workload.say("go")
    workload.wait_done()
    if truth.schedstat(workload.tid) is None:
        raise Skip("this kernel counts no CPU time in ns (schedstat)")
    rows = rows_of(ctx.rows("-a", "-p", workload["pid"], seconds=1, columns=COLUMNS), workload.tid)
    check(rows, "no samples")
    total = sums(rows)
    check(total["cpu_us"] < 100000 and total["vcsw"] < 10, "a thread that only slept has %s", total)


class Records:
    """The records of a running tsnap, as a test may change them: struct thread_state of bpf_text/thread_state.h."""
    OUT_NS, IN_NS, STATE, ON_CPU, TID = 24, 32, 96, 108, 116  # struct thread_sched follows the wake's 16 bytes

    def __init__(self, pid):
        self.map = map_find("ts_threads", pid)
        self.stride = (self.map.value_size + 7) & ~7
        try:
            self.memory = mmap.mmap(self.map.fd, (self.stride * self.map.capacity + mmap.PAGESIZE - 1) & ~(mmap.PAGESIZE - 1))
        except OSError as error:
            raise Skip("the records are in a hash here") from error

    def hide_switch_out(self, tid):
        """Makes the sleeping thread's record one whose last switch out was missed. Returns how long it has slept, in us."""
        slots = range(0, self.stride * self.map.capacity, self.stride)
        at = next(slot for slot in slots if struct.unpack_from("<I", self.memory, slot + self.TID)[0] == tid)
        now_ns, (out_ns, in_ns) = time.monotonic_ns(), struct.unpack_from("<QQ", self.memory, at + self.OUT_NS)
        check(out_ns >= in_ns and not struct.unpack_from("<I", self.memory, at + self.ON_CPU)[0], "the record is not of a sleeper: it has changed its form")
        struct.pack_into("<I", self.memory, at + self.STATE, 0)
        struct.pack_into("<Q", self.memory, at + self.IN_NS, now_ns)
        struct.pack_into("<I", self.memory, at + self.ON_CPU, 1)
        return (now_ns - out_ns) // 1000


@case
def switch_out_missed(ctx):
    """The time of a sleep whose begin no program saw is no wait for a CPU."""
    workload = ctx.workload("burst")
    tool = ctx.stream("-a", "-p", workload["pid"], columns=COLUMNS)
    tool.wait_scans(40)
    before = Accounts(workload.tid)
    slept_us = Records(tool.pid).hide_switch_out(workload.tid)
    workload.say("go")
    workload.wait_done()
    after = Accounts(workload.tid).minus(before)
    tool.wait_scans(len(tool.scans()) + 3)
    total = sums(rows_of(tool.interrupt(), workload.tid))
    waited_us = after.schedstat[1] if after.schedstat else 0
    check(total["runq_us"] < waited_us + slept_us / 2, "runq_us is %d, the kernel counts %d; it slept for %d", total["runq_us"], waited_us, slept_us)


@case(alone=True)
def totals_of_growth(ctx):
    """When more threads begin than the map was made for it is made larger, and neither a thread nor time is lost."""
    room = Room(ctx)
    workloads = ctx.workloads([("spin", {}), ("pingpong", {})])
    tids = [workloads[0].tid, workloads[1].tid, workloads[1].number("tid2")]
    # all threads but the crowd and its active ones
    tool = ctx.stream("-a", "-c", "[!ac]*", columns=COLUMNS)
    tool.wait_scans(5)
    ctx.workload("many", threads=room.widen().threads, pairs=5)
    late = ctx.workload("sleep", call="pause")
    wait_until(lambda: rows_of(tool.rows(), late.tid), 30 * SLOW, "a thread that began when the map was full")
    tool.wait_scans(len(tool.scans()) + 5)
    rows = tool.interrupt()
    check("the map was made larger" in tool.err, "it was not: %s", tool.err)
    check("do not fit" not in tool.err, "%s", tool.err)
    expect_filled(rows, tids)


@case(paired=True)
def totals_of_intervals_that_wait(ctx):
    """While reports are not read for some time scans wait to be processed, and each report has the time of its own scans;
    also for threads that end, of which two live at any time."""
    spin = ctx.workload("spin")
    forks = ctx.workload("forks", us=10000, sleep_us=30000, **{"as": "short_lived"})
    forks.say("300")  # enough for 6 s and more
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    tool = ctx.plain("-a", "-i", 1, "-n", 4, "-g", "tid,comm,state", stdout=writing)
    os.close(writing)
    with open(reading, "rb") as pipe:
        text = pipe.read(1)
        let_pass(2.5)
        text += pipe.read()
    tool.wait(STOP_S)
    forks.kill()
    pages = re.split(r"^(?=tsnap on )", text.decode(), flags=re.M)[1:]
    check(len(pages) == 4 and all(len(page) > 4096 for page in pages), "pages of %s bytes", [len(page) for page in pages])
    for page in pages:
        elapsed = float(re.search(r"scans in (\d+\.\d\d) s", page).group(1))
        rows = re.findall(r"^ +\d+\.\d\d +(\d+\.\d\d) .* (?:%d +(spin)|[\d-]+ +(short_lived)) +[^ Z]" % spin.tid, page, re.M)
        told = {name: sum(float(row[0]) for row in rows if name in row) for name in ("spin", "short_lived")}
        check(abs(told["spin"] - elapsed) <= 0.02 * elapsed + 0.02, "a spinning thread has %s s of %.2f: %s", told, elapsed, page[:400])
        # before it execs its program each short-lived process has its parent's name
        check(1.2 * elapsed < told["short_lived"] < 2.1 * elapsed, "two short-lived ones have %s s of %.2f each: %s", told, elapsed, page[:400])


@case
def totals_of_all(ctx):
    """All rows together have no more CPU time than there is, though every CPU is busy; nor have they where the kernel hides switches."""
    cpus = os.cpu_count()
    ctx.workloads([("spin", {})] * cpus)
    tool = ctx.plain("-i", 1, "-n", 6, "--by", "comm", "-G", "cpu_s")
    tool.finish_plain(0, START_S + 6 * SLOW + STOP_S)
    pages = re.split(r"^(?=tsnap on )", tool.out.decode(), flags=re.M)[1:]
    check(len(pages) == 6, "%d reports", len(pages))
    text = "".join(pages[1:])  # the first report has some of the start
    seconds = sum(float(word) for word in re.findall(r"scans in (\d+\.\d\d) s", text))
    told = sum(float(word) for word in re.findall(r"^ +\d+\.\d\d .* (\d+\.\d{3})$", text, re.M))
    check(seconds * 0.5 < told < seconds * cpus * 1.05, "%g s of CPU time in %g s on %d CPUs: %s", told, seconds, cpus, text)


@case
def totals_of_hidden(ctx):
    """No thread has more exact time than has passed: where the kernel hides its switches its exact times are absent."""
    ctx.workloads([("spin", {})] * os.cpu_count() + [("pingpong", {})] * 2)
    begun = time.monotonic()
    tool = ctx.plain("-a", "-d", 4, "-g", "tid,pid", "-G", "cpu_s,runq_s,dwait_s,sleep_s")
    tool.finish_plain(0, START_S + 4 * SLOW + STOP_S)
    elapsed = time.monotonic() - begun  # the first report has some of the start
    text = tool.out.decode()
    rows = re.findall(r"^ +\d+\.\d\d .*% #* +(\d+) +\d+" + r" +(\S+)" * 4 + "$", text, re.M)
    check(len(rows) > 20, "%d rows: %s", len(rows), text)
    for tid, *words in rows:
        told = sum(float(word) for word in words if word != "-")
        check(told <= elapsed + 0.02 * SLOW, "thread %s: %g s in %g s: %s", tid, told, elapsed, words)


@case
def totals_in_doubt(ctx):
    """A report of all threads says if spinners are not in it because they did not fit the map; a report of some threads can't know."""
    for _ in range(70):
        if len(truth.threads()) > 130:
            break
        ctx.workload("sleep", call="pause")
    options = ("-i", 1, "-n", 4, "--max-threads", 64, "-g", "psn")
    everybody, some = ctx.plain(*options), ctx.plain(*options, "-u", "root")
    wait_until(lambda: b"tsnap on" in everybody.out and b"tsnap on" in some.out, START_S, "a map that is full")
    ctx.workloads([("spin", {})] * (4 * os.cpu_count()))  # more threads than exits of others leave room for
    for tool in (everybody, some):
        tool.finish_plain(0, START_S + STOP_S)
        check("beyond the size of the map" in tool.out.decode(), "all of them fit: %s", tool.out.decode())
    check("Exact times may be wrong" in everybody.out.decode(), "nothing is said: %s", everybody.out.decode())
    check("may be wrong" not in some.out.decode(), "of some: %s", some.out.decode())


@case(thorough=True)
def totals_over_sweeps(ctx):
    """Totals of exited threads are forgotten every ten seconds; those of no other thread are counted twice."""
    if SLOW > 3:
        raise Skip("takes 13 seconds of one clock")
    spinner = ctx.workload("spin")
    pair = ctx.workload("pingpong")
    rows = ctx.rows("-a", "-p", "%s,%s" % (spinner["pid"], pair["pid"]), seconds=13, columns=COLUMNS)
    expect_filled(rows, (spinner.tid, pair.tid, pair.number("tid2")))


class Clock:
    """A clock that the test sets, of programs that are started with its environment."""

    def __init__(self, ctx):
        self.path = os.path.join(ctx.temporary(), "clock")
        self.set(0)
        self.environment = dict(preloading(ctx, "clock_set"), CLOCK_SET=self.path)

    def set(self, ahead_s):
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb") as file:
            file.write(struct.pack("=q", ahead_s))


def expect_told(tool, steps_s):
    """The steps of the clock are told, each once."""
    told = [float(size) * (-1 if way == "back" else 1)
            for way, size in re.findall(r"the clock was set (back|forward) by ([\d.]+) s", tool.err)]
    check(len(told) == len(steps_s) and all(abs(a - b) < 0.1 for a, b in zip(told, steps_s)), "told: %s, not %s: %s", told, steps_s, tool.err)


@case
def totals_clock_set(ctx):
    """The clock is set back by an hour, then forward, while a thread sleeps: its exact times are those of the intervals, live and in a recording."""
    workload, clock = ctx.workload("sleep"), Clock(ctx)
    tool = ctx.plain("--report", "--csv", "-a", "-t", workload.tid, "-g", "tid,sleep_us,weight_us", "-i", 2 * SLOW, "-n", 4, env=clock.environment)
    directory = os.path.join(ctx.temporary(), "recording")
    recorder = ctx.plain("-o", directory, "-a", "-t", workload.tid, "-F", 20, "-d", 8 * SLOW, env=clock.environment)

    def intervals():
        return list(csv.DictReader(tool.out.decode().splitlines()))
    for count, ahead_s in (1, -3600), (2, 2):
        wait_until(lambda: len(intervals()) >= count, START_S + 3 * count * SLOW, "%d intervals" % count)
        let_pass(SLOW)  # in the middle of an interval
        clock.set(ahead_s)
    tool.finish_plain()
    expect_told(tool, [-3600, 3602])
    check(len(intervals()) == 4, "%d intervals", len(intervals()))
    for row in intervals():
        elapsed_us, lasted_us = number(row, "elapsed_us"), (timestamp_s(row["end"]) - timestamp_s(row["begin"])) * 1e6
        check(abs(lasted_us - elapsed_us) < 20000, "an interval of %d us is from %s to %s", elapsed_us, row["begin"], row["end"])
        for column in "sleep_us", "weight_us":
            check(abs(number(row, column) - elapsed_us) < 0.02 * elapsed_us, "%s of %d us is %s", column, elapsed_us, row[column])
    recorder.finish_plain()
    replay = ctx.plain("--replay", directory, "-a", "--report", "--csv", "-g", "tid,sleep_us,weight_us")
    replay.finish_plain()
    (row,) = csv.DictReader(replay.out.decode().splitlines())
    check(abs(number(row, "elapsed_us") - 8e6 * SLOW) < 2e5 * SLOW, "a recording of %d s has %s us", 8 * SLOW, row["elapsed_us"])
    for column in "sleep_us", "weight_us":
        check(abs(number(row, column) - number(row, "elapsed_us")) < 1e5, "%s of %s us is %s", column, row["elapsed_us"], row[column])
    expect_told(replay, [-3600, 3602])
