"""--trace: each wait of a thread, against the kernel's accounts and the workload's own."""
import collections
import ctypes
import os
import re
import signal
import subprocess
import time

import truth
from case_cost import costs_of
from growth import Room
from harness import SLOW, START_S, STOP_S, Skip, Workload, case, check, let_pass, wait_until

BUCKETS = [0] + [64 << i for i in range(31)]
MAP_BYTES_MOST = 37 << 20  # 5 of them for connections
THREADS_MANY = 20000
DISTRIBUTIONS_MOST = 16384
SWITCH_ERROR_NS = 30000  # as SWITCH_ERROR_US in case_totals
NAP_NS, NAP_SHORTER_NS = 20000000, 2000000  # a nap begins as its timer is set, the sleep with the switch, some time later


class Traced:
    """The histograms of a run with -i 1, merged over its intervals."""

    def __init__(self, rows, **wanted):
        self.count = self.total_ns = self.max_ns = 0
        self.buckets = {}
        for row in rows:
            if any(row[key] != str(value) for key, value in wanted.items()):
                continue
            buckets = {int(low): int(count) for low, count in (pair.split(":") for pair in row["buckets"].split(" "))}
            check(sum(buckets.values()) == int(row["count"]), "the buckets are not the count: %s", row)
            check(set(buckets) <= set(BUCKETS), "no such bucket: %s", row)
            top = BUCKETS.index(max(buckets))
            check(BUCKETS[top] <= int(row["max_ns"]) and (top == 31 or int(row["max_ns"]) < BUCKETS[top + 1]),
                  "the longest is not in the last bucket: %s", row)
            quantiles = [int(row[key]) for key in ("p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns")]
            check(quantiles == sorted(quantiles), "percentiles: %s", row)
            self.count += int(row["count"])
            self.total_ns += int(row["total_ns"])
            self.max_ns = max(self.max_ns, int(row["max_ns"]))
            for low, count in buckets.items():
                self.buckets[low] = self.buckets.get(low, 0) + count


def begin(ctx, *args, kinds="runq,offcpu"):
    """A run that has begun to trace."""
    tool = ctx.plain("--csv", "--trace", kinds, "-i", 1, *args)
    wait_until(lambda: tool.rows() or tool.code is not None, START_S, "the first interval")
    return tool


def schedstat(tid):
    got = truth.schedstat(tid)
    if got is None:
        raise Skip("this kernel counts no run queue time (schedstat)")
    return got


def stolen_ns():
    return int(truth.read("/proc/stat").split()[8]) * 10000000


class Stolen:
    """Measures the share of all CPUs' time that a hypervisor takes from now on."""

    def __init__(self):
        self.begun, self.before = time.monotonic(), stolen_ns()

    def share(self):
        share = (stolen_ns() - self.before) / 1e9 / (time.monotonic() - self.begun) / os.cpu_count()
        print("# the hypervisor had %.1f %% of the CPUs" % (100 * share))
        return share


@case(paired=True)
def trace_run_queue(ctx):
    """runq of a thread with a rival on its CPU has as many waits as the kernel counts, and as much time."""
    workload = ctx.workload("burst")
    tids = [workload.tid, workload.number("tid2")]
    before = [schedstat(tid) for tid in tids]
    tool = begin(ctx, "-g", "tid,comm")
    stolen = stolen_ns()
    for round in (1, 2):
        workload.say("go")
        workload.wait_done(round)
    after = [schedstat(tid) for tid in tids]
    stolen = stolen_ns() - stolen
    rows = tool.interrupt()
    for tid, b, a in zip(tids, before, after):
        waits = Traced(rows, trace="runq", tid=tid)
        count, delay_ns = a[2] - b[2], a[1] - b[1]
        check(abs(waits.count - count) <= 1, "%d: %d waits, the kernel counts %d", tid, waits.count, count)
        allowed = delay_ns * 0.03 + count * SWITCH_ERROR_NS + 2e6 * SLOW + stolen
        check(abs(waits.total_ns - delay_ns) <= allowed, "%d: %d ns waited, the kernel counts %d", tid, waits.total_ns,
              delay_ns)


@case
def trace_until_interrupted(ctx):
    """Waits between the last report and an interrupt are reported, though no scan came in between: the next one is half a second away."""
    workload = ctx.workload("calls", naps=10, nap_ms=1, reads=0)
    tool = begin(ctx, "-g", "tid", "-F", 1)
    workload.say("go")
    workload.wait_done()
    naps = Traced(tool.interrupt(), trace="offcpu", tid=workload.tid, syscall="clock_nanosleep")
    check(naps.count == 10, "%d naps, not 10", naps.count)


@case(paired=True)
def trace_sleeps(ctx):
    """offcpu has the workload's sleeps of 10 ms in clock_nanosleep and futex, one of 100 ms, one of 150 ms in D, and no others."""
    workload = ctx.workload("burst", naps=40, nap_ms=10, waits=20)
    tool = begin(ctx, "-g", "tid")
    queued = schedstat(workload.tid)[1]
    workload.say("go")
    done = workload.wait_done()
    queued = schedstat(workload.tid)[1] - queued  # the workload's own measure includes this time
    rows = [row for row in tool.interrupt() if row["trace"] == "offcpu"]
    naps = Traced(rows, tid=workload.tid, state="S", syscall="clock_nanosleep")
    check(naps.count == 41, "%d naps, not 41: %s", naps.count, naps.buckets)
    check(naps.buckets.get(8388608, 0) >= 34 / SLOW, "not of 10 ms: %s", naps.buckets)
    check(100e6 <= naps.max_ns < 140e6 * SLOW, "the longest is %d ns", naps.max_ns)
    waits = Traced(rows, tid=workload.tid, state="S", syscall="futex")
    check(waits.count == 20, "%d futex waits, not 20", waits.count)
    check(waits.buckets.get(8388608, 0) >= 16 / SLOW, "not of 10 ms: %s", waits.buckets)
    asleep = int(done["sleep_ns"])
    check(0.8 * asleep - queued < naps.total_ns + waits.total_ns < 1.001 * asleep, "%d ns, it slept for %d",
          naps.total_ns + waits.total_ns, asleep)
    disk = Traced(rows, tid=workload.tid, state="D")
    check(disk.count == 1 and 150e6 <= disk.max_ns <= int(disk.total_ns), "D: %s, longest %d", disk.buckets, disk.max_ns)
    check(disk.max_ns <= int(done["disk_ns"]), "%d ns in D, it was in vfork for %s", disk.max_ns, done["disk_ns"])
    calls = {row["syscall"] for row in rows if row["tid"] == str(workload.tid)}
    check(calls <= {"clock_nanosleep", "futex", "vfork", "clone", "wait4", "read", "write"}, "%s", calls)


PTRACE_TRACEME, PTRACE_CONT, PTRACE_SETOPTIONS, PTRACE_O_TRACEEXEC = 0, 7, 0x4200, 0x10


def exec_stopped(stop_s):
    """Starts a process that its tracer stops in the midst of its exec; returns its id."""
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = (ctypes.c_long,) * 4
    child = os.fork()
    if not child:
        ptrace(PTRACE_TRACEME, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.execv("/bin/true", ["true"])
    os.waitpid(child, 0)
    ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACEEXEC)
    ptrace(PTRACE_CONT, child, 0, 0)
    _, status = os.waitpid(child, 0)
    if status >> 8 != signal.SIGTRAP | 4 << 8:  # PTRACE_EVENT_EXEC
        raise Skip("no process can be traced here: status 0x%x" % status)
    let_pass(stop_s)
    ptrace(PTRACE_CONT, child, 0, 0)
    os.waitpid(child, 0)
    return child


@case
def trace_of_exec(ctx):
    """A sleep in execve is reported as one in execve, also if the thread has the new program's registers already."""
    tool = begin(ctx, "-g", "tid", kinds="offcpu")
    child = exec_stopped(0.2)
    sleeps = [row for row in tool.interrupt() if row["tid"] == str(child) and int(row["max_ns"]) >= 200e6]
    check([(row["state"], row["syscall"], row["count"]) for row in sleeps] == [("T", "execve", "1")], "%s", sleeps)


@case
def trace_disk(ctx):
    """offcpu's sleeps in D of fsync are nearly all of the time that the calls took, and no more."""
    workload = ctx.workload("fsync")
    tool = begin(ctx, "-g", "comm")
    wait_until(lambda: Traced(tool.rows(), trace="offcpu", comm="fsync").count > 100, 20 * SLOW, "a hundred sleeps")
    rows = tool.interrupt()
    done = workload.finish()
    inside = Traced(rows, trace="offcpu", comm="fsync", syscall="fsync")
    check(inside.count >= 100, "%s", inside.buckets)
    check(inside.total_ns <= int(done["sync_ns"]), "%d ns asleep in fsync, which took %s", inside.total_ns, done["sync_ns"])
    disk = Traced(rows, trace="offcpu", comm="fsync", syscall="fsync", state="D")
    check(disk.total_ns >= 0.8 * inside.total_ns, "%d ns in D of %d", disk.total_ns, inside.total_ns)


@case(paired=True)
def trace_of_the_dead(ctx):
    """All waits of threads that lived for less than an interval are reported, but for a few at switches that no BPF program saw."""
    tool = begin(ctx, "-g", "comm,pid")
    pids = []
    for _ in range(50):
        process = subprocess.Popen(["sleep", str(NAP_NS / 1e9)])
        pids.append(process.pid)
        process.wait()
    rows = tool.interrupt()
    elsewhere = nowhere = 0
    for pid in pids:
        naps = Traced(rows, trace="offcpu", comm="sleep", pid=pid, syscall="clock_nanosleep", state="S")
        if not naps.count:
            # if no BPF program saw the switch to the thread (README) its nap is reported as it leaves, in the call in which it is by then
            naps = Traced(rows, trace="offcpu", comm="sleep", pid=pid, syscall="exit_group", state="S")
            elsewhere += 1
        if not naps.count and not any(row["pid"] == str(pid) and row["trace"] == "offcpu" and row["comm"] == "sleep" for row in rows):
            nowhere += 1  # no BPF program saw, either, how the thread left, or how it fell asleep
            continue
        check(naps.count == 1 and NAP_NS - NAP_SHORTER_NS <= naps.max_ns, "process %d: %s; all of it: %s", pid, naps.buckets,
              [row for row in rows if row["pid"] == str(pid)])
    check(nowhere <= len(pids) * 0.04, "of %d of %d processes nothing is told", nowhere, len(pids))
    check(elsewhere <= len(pids) * 0.1, "%d of %d naps in exit_group", elsewhere, len(pids))


@case
def trace_of_some(ctx):
    """-p, -t, -u and -c choose the threads whose waits are reported; a report shows them, too, with bars."""
    game = ctx.workload("pingpong")
    ctx.workload("pingpong")
    for args, expected in ((["-p", game["pid"]], {game["tid"], game["tid2"]}), (["-t", game["tid"]], {game["tid"]}),
                           (["-p", game["pid"], "-c", "pong"], {game["tid2"]}), (["-p", game["pid"], "-u", "1"], set())):
        tool = ctx.plain("--csv", "--trace", "runq", "-d", 1, "-g", "tid", *args)
        tids = {row["tid"] for row in tool.finish(limit_s=START_S + STOP_S)}
        check(tids == expected, "%s: %s, not %s", args, tids, expected)
    tool = ctx.plain("--trace", "offcpu,runq", "-d", 1, "-p", game["pid"])
    tool.finish_plain()
    out = tool.out.decode()
    for words in ("\nrunq: waits", "\noffcpu: sleeps", "  ####", "\nS root pong read\n", "\nroot pong\n"):
        check(words in out, "no %r in: %s", words, out)


@case(thorough=True)
def trace_memory(ctx):
    """With all kinds at once, single events and stacks, in maps as they are made for 20 000 threads, kernel memory stays below 37 MB."""
    listed = ctx.plain("--list")
    listed.finish_plain()
    kinds = re.findall(r"^  (\w+)", listed.out.decode().partition("Kinds of --trace")[2].partition("\n\n")[0], re.M)
    check({"runq", "offcpu", "block", "blockq", "syscalls", "exec", "connections", "opens"} <= set(kinds), "%s", kinds)
    tool = ctx.plain("--self", "--trace", ",".join(kinds), "--slower", 20, "--stacks", "-G", "syscall_us,io_us,waker_comm", "-d", 2,
                     "--max-threads", 3 * THREADS_MANY // 2)
    tool.finish_plain()
    cost = costs_of(tool.out.decode())[0]
    for name in ("ts_latency_one", "ts_latency_two", "ts_events", "ts_block", "ts_processes", "ts_connections"):
        check(name in cost.memory, "no %s: %s", name, cost.memory)
    check(cost.memory["ts_threads"] > 1.5 * THREADS_MANY * 256, "%s", cost.memory)
    check(cost.memory["all"] < MAP_BYTES_MOST, "%s", cost.memory)
    # a tsnap that waits for a CPU longer than a ring lasts misses events of a full host, and reports both
    late = re.search(r"[1-9]\d* late scans", cost.text)
    lost = re.search(r"(\d+) events? of --trace", cost.text)
    check(lost and (lost.group(1) == "0" or late), "%s", cost.text)


@case(alone=True, thorough=True)
def trace_of_growth(ctx):
    """When more threads begin than the map was made for it is made larger, and waits are still counted."""
    room = Room(ctx)
    game = ctx.workload("pingpong")
    before = schedstat(game.tid)
    tool = begin(ctx, "-g", "tid", "-t", "%d,%d" % (game.tid, game.number("tid2")), kinds="runq")
    first = schedstat(game.tid)
    ctx.workload("many", threads=room.widen().threads, pairs=5)
    count = len({row["timestamp"] for row in tool.rows()})
    wait_until(lambda: len({row["timestamp"] for row in tool.rows()}) >= count + 4, 30 * SLOW, "four intervals")
    last = schedstat(game.tid)
    rows = tool.interrupt()
    after = schedstat(game.tid)
    check("the map was made larger" in tool.err, "it was not: %s", tool.err)
    counted = Traced(rows, tid=game.tid).count
    check(0.998 * (last[2] - first[2]) <= counted <= after[2] - before[2], "%d waits, the kernel counts %d to %d", counted,
          last[2] - first[2], after[2] - before[2])


@case(alone=True, thorough=True)
def events_over_growth(ctx):
    """While the map is made larger each exec and each sleep that is longer than --slower is reported once, or the exec is counted as an
    event that was not read in time, or as a thread that did not fit. A sleep that began when the thread did not fit the map is unknown."""
    room = Room(ctx)
    # Before 4.15 a tracepoint takes one program. Those of the larger map are kprobes then, which see no exec: with exec the map stays.
    kinds = ["exec", "offcpu"] if truth.release() >= (4, 15) else ["offcpu"]
    tool = ctx.plain("--csv", "--trace", ",".join(kinds), "--slower", 300, "-F", 50)
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    room.widen()
    pids, running = {"true": [], "sleep": []}, []
    until, crowd, grown = time.monotonic() + 30 * SLOW, None, False
    while time.monotonic() < until:
        if not crowd and len(pids["sleep"]) == 40:
            # so many threads that the map is made larger, and not so many that they don't fit it
            crowd = Workload(ctx.options.workload, "many", {"threads": room.threads * 7 // 8 + room.threads // 50, "pairs": 1})
            ctx.started.append(crowd)
        running.append(subprocess.Popen(["/bin/sleep", "0.35"]))
        pids["sleep"].append(running[-1].pid)
        for _ in range(10):
            process = subprocess.Popen(["/bin/true"])
            process.wait()
            pids["true"].append(process.pid)
        if len(running) == 30:
            running.pop(0).wait()
        if crowd and not grown and room.was_left(tool.pid):
            grown, until = True, time.monotonic() + 1
    for process in running:
        process.wait()
    rows = tool.interrupt()  # before the crowd ends: each of its threads would have a sleep to report
    check("the map was made larger" in tool.err, "it was not: %s", tool.err)
    lost = sum(int(count) for count in re.findall(r"(\d+) (?:single events|times that a thread did not fit)", tool.err))
    never = []
    for trace, comm, syscall in (("exec", "true", ""), ("exec", "sleep", ""), ("offcpu", "sleep", "clock_nanosleep")):
        told = collections.Counter(int(row["pid"]) for row in rows
                                   if row["trace"] == trace and row["comm"] == comm and row["syscall"] == syscall)
        twice = [pid for pid in pids[comm] if told[pid] > 1]
        check(not twice, "%s: of %d processes told more than once: %s", trace, len(pids[comm]), twice)
        if trace == "exec" and trace in kinds:
            never += [pid for pid in pids[comm] if not told[pid]]
    check(len(never) <= lost, "of %d execs not told, with %d lost: %s", sum(map(len, pids.values())), lost, never)


@case(alone=True, thorough=True)
def call_over_growth(ctx):
    """A call with many waits that goes on while the map is made larger is reported at its end, with all of its time."""
    room = Room(ctx)
    tool = ctx.plain("--csv", "--trace", "syscalls", "--slower", 1500, "-c", "wait_often")
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    room.widen()
    # its record comes after those of these threads in the map: it waits often until the record is moved
    ctx.workload("many", threads=room.threads * 7 // 8 - len(truth.threads()) - room.threads // 50, pairs=1)
    left = 1 << 26
    end, out = os.pipe()
    start = time.monotonic()
    child = os.fork()
    if not child:
        with open("/proc/self/comm", "w") as comm:
            comm.write("wait_often")
        os.write(out, bytes(left))
        signal.pause()
    try:
        ctx.workload("many", threads=room.threads // 18, pairs=1)
        until = start + 30 * SLOW
        while time.monotonic() < until:
            left -= len(os.read(end, 4096))
            time.sleep(0.0005)
            if room.was_left(tool.pid):
                until = min(until, time.monotonic() + 1)
        least_ns = 1e9 * (time.monotonic() - start)
        while left:
            left -= len(os.read(end, 65536))
        let_pass(0.3 * SLOW)
        rows = tool.interrupt()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(end)
        os.close(out)
    check("the map was made larger" in tool.err, "it was not: %s", tool.err)
    check([row["syscall"] for row in rows] == ["write"] and int(rows[0]["duration_ns"]) >= 0.9 * least_ns, "%s, it took %d ns at least",
          rows, least_ns)


@case
def trace_refused(ctx):
    """If there are more distributions than are kept, in the kernel and for an interval, those left out are counted and reported."""
    threads = 9000
    if SLOW > 3 or len(truth.threads()) + 2 * threads > int(truth.read("/proc/sys/kernel/pid_max")):
        raise Skip("there can't be so many threads")
    tool = ctx.plain("--csv", "--trace", "runq,offcpu", "-g", "tid,comm", "-d", 100)
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    os.kill(tool.pid, signal.SIGSTOP)  # otherwise tsnap makes room as threads come, where they come slowly
    for _ in range(2):  # each thread begins and ends: a wait for a CPU, and a sleep
        ctx.workload("many", threads=threads, pairs=1).end()
    os.kill(tool.pid, signal.SIGCONT)
    rows = tool.interrupt()
    check(len(rows) == DISTRIBUTIONS_MOST, "%d rows", len(rows))
    for what in ("events of --trace (more threads than fit the maps)", "events dropped: more distributions than tsnap keeps"):
        check(re.search(r"missed: [1-9]\d* " + re.escape(what), tool.err), "%s is not told: %s", what, tool.err)


@case(thorough=True)
def trace_of_one_in_a_crowd(ctx):
    """No wait of a process that is chosen by its id is missed because of other processes: these take no room in the maps."""
    threads = 9000
    if SLOW > 3 or len(truth.threads()) + 2 * threads > int(truth.read("/proc/sys/kernel/pid_max")):
        raise Skip("there can't be so many threads")
    game = ctx.workload("pingpong")
    for args, tids in ((("-p", game["pid"]), {game["tid"], game["tid2"]}), (("-t", game["tid2"]), {game["tid2"]})):
        tool = ctx.plain("--csv", "--trace", "runq,offcpu", "-g", "tid", "-d", 100, *args)
        wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
        for _ in range(2):
            ctx.workload("many", threads=threads, pairs=1).end()
        rows = tool.interrupt()
        check({row["tid"] for row in rows} == tids, "%s: %s", args, {row["tid"] for row in rows})
        check("--trace" not in tool.err and "distributions" not in tool.err, "%s: %s", args, tool.err)
