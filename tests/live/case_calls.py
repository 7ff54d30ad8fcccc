"""System calls traced at entry and return, against a workload that counts and times its own calls."""
import os
import re

import truth
from case_trace import BUCKETS, Traced
from harness import SLOW, START_S, Findings, Skip, case, check, number, rows_of, wait_until

NAP_NS = 20000000


def begin(ctx, *args):
    """A run whose tracing has begun."""
    tool = ctx.plain("--csv", "--trace", "syscalls", "-i", 1, *args)
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    return tool


class Calls(Traced):
    """Traced system calls, as Traced, and their errors."""

    def __init__(self, rows, **wanted):
        rows = [row for row in rows if row["trace"] == "syscalls"]
        super().__init__(rows, **wanted)
        mine = [row for row in rows if all(row[key] == str(value) for key, value in wanted.items())]
        self.errors = sum(int(row["errors"]) for row in mine)


@case
def calls_counted(ctx):
    """--trace syscalls: the counts of each call and error are exact, and the times are those that the caller measured."""
    workload = ctx.workload("calls", trivial=5000, opens=60, bad=9, naps=10, nap_ms=20, reads=15, read_ms=10)
    tool = begin(ctx, "-g", "tid", "-G", "errno", "-p", workload.tgid)
    queued = (truth.schedstat(workload.tid) or (0, 0))[1]
    workload.say("go")
    done = workload.wait_done()
    queued = (truth.schedstat(workload.tid) or (0, 0))[1] - queued  # includes waits between the call's end and the clock's reading
    rows = tool.interrupt()

    def of(call, errno="", tid=workload.tid):
        return Calls(rows, tid=tid, syscall=call, errno=errno)
    for call, errno, count in (("getppid", "", 5000), ("openat", "ENOENT", 60), ("openat", "EFAULT", 9), ("openat", "", 0),
                               ("clock_nanosleep", "", 10), ("read", "", 15), ("write", "", 16)):
        calls = of(call, errno)
        check(calls.count == count, "%s %s: %d, not %d", call, errno, calls.count, count)
        check(calls.errors == (count if errno else 0), "%s %s: %d errors", call, errno, calls.errors)
    naps, reads = of("clock_nanosleep"), of("read")
    for calls, took in ((naps, int(done["nap_ns"])), (reads, int(done["read_ns"]))):
        check(0.98 * took - 2e6 * SLOW - queued < calls.total_ns <= took, "%d ns, the caller measured %d", calls.total_ns, took)
    check(naps.max_ns >= NAP_NS and min(naps.buckets) == max(low for low in BUCKETS if low <= NAP_NS), "%s", naps.buckets)
    answers = of("clock_nanosleep", tid=workload.number("tid2"))
    check(answers.count == 15 and answers.max_ns >= 10e6, "%d answers, %s", answers.count, answers.buckets)


@case
def calls_filtered(ctx):
    """A filter that wants few calls has the kernel leave out the others, whose entries are not noted; those that it wants stay exact."""
    workload = ctx.workload("calls", trivial=5000, opens=60, bad=9, naps=10, nap_ms=20)
    tool = begin(ctx, "-g", "tid", "-p", workload.tgid, "--filter", "syscall=clock_nanosleep || syscall~^openat$ && errno!=EFAULT")
    others = begin(ctx, "-g", "tid", "-p", workload.tgid, "--filter", "!syscall=getppid")  # too many for the kernel
    workload.say("go")
    workload.wait_done()
    rows, rest = tool.interrupt(), others.interrupt()
    for call, count in (("clock_nanosleep", 10), ("openat", 60), ("getppid", 0)):
        check(Calls(rows, tid=workload.tid, syscall=call).count == count, "%s: %s", call, rows)
    for call, count in (("clock_nanosleep", 10), ("openat", 69), ("getppid", 0)):
        check(Calls(rest, tid=workload.tid, syscall=call).count == count, "%s: %s", call, rest)


@case
def calls_summed(ctx):
    """Without the column errno a call's errors are counted in the call's row; in a report, too."""
    workload = ctx.workload("calls", opens=60, bad=9)
    tool = begin(ctx, "-g", "comm", "-t", workload.tid)
    workload.say("go")
    workload.wait_done()
    opens = Calls(tool.interrupt(), syscall="openat")
    check(opens.count == 69 and opens.errors == 69, "%d opens, %d errors", opens.count, opens.errors)
    tool = ctx.plain("--trace", "syscalls", "-d", 3, "-g", "comm", "-t", workload.tid)
    wait_until(lambda: workload.say("go") or workload.wait_done(len(workload.lines("done")) + 1) and tool.code is not None,
               START_S + 20 * SLOW, "the report")
    check("\nsyscalls: " in tool.out.decode() and " ERRORS " in tool.out.decode(), "%s", tool.out.decode())


@case
def calls_so_far(ctx):
    """syscall_us of a call that lasts grows with the time; it is absent if the call was entered before tsnap's start."""
    old, young = ctx.workload("sleep", call="pipe_read"), ctx.workload("calls", naps=1, nap_ms=int(2500 * SLOW), reads=0)
    tool = ctx.stream("-a", "-p", "%d,%d" % (old.tgid, young.tgid), columns="state_us syscall syscall_us")
    tool.wait_scans(2)
    young.say("go")
    tool.wait_scans(20, lambda row: row["tid"] == young["tid"] and row["syscall"] == "clock_nanosleep")
    rows, find = tool.interrupt(), Findings()
    check(rows_of(rows, old.tid) and all(row["syscall_us"] == "" for row in rows_of(rows, old.tid)), "of an old call")
    asleep = [row for row in rows_of(rows, young.tid) if row["syscall"] == "clock_nanosleep"]
    for row in asleep:
        more = number(row, "syscall_us") - number(row, "state_us") if row["syscall_us"] else None
        find.expect(more is not None and 0 <= more < 5000 * SLOW, "in the call for %s us, asleep for %s", row["syscall_us"],
                    row["state_us"])
    find.close()


@case
def calls_of_32_bits(ctx):
    """Calls through the 32-bit entry are shown by their own names: number 3 is read there, and close elsewhere."""
    workload = ctx.workload("compat32")
    tool = begin(ctx, "-g", "tid", "-t", workload.tid)
    with open("/proc/%d/fd/0" % workload.tid, "wb", buffering=0) as pipe:
        pipe.write(b"12345")
    wait_until(lambda: tool.rows(), START_S, "an interval with them")
    rows = tool.interrupt()
    calls = {row["syscall"]: int(row["count"]) for row in rows}
    check(set(calls) == {"read"} and sum(int(row["count"]) for row in rows) == 4, "%s", calls)


def slow_rows(ctx, workload, *args):
    """All rows of a run with --slower while the workload works once, and the workload's own words about that."""
    tool = ctx.plain("--csv", "-p", workload.tgid, *args)
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    workload.say("go")
    done = workload.wait_done()
    wait_until(lambda: len(tool.rows()) >= 10, 5 * SLOW, "ten events")
    return tool.interrupt(), done


@case
def slow_calls(ctx):
    """--slower: each call that took longer is shown once, when it ended, with its file; no other call is."""
    workload = ctx.workload("calls", naps=10, nap_ms=40, reads=10, read_ms=20)
    rows, done = slow_rows(ctx, workload, "--slower", 15)
    mine = rows_of(rows, workload.tid)
    naps = [row for row in mine if row["syscall"] == "clock_nanosleep"]
    reads = [row for row in mine if row["syscall"] == "read"]
    check(len(naps) == 10 and len(reads) == 10 and len(mine) == 20, "%s", mine)
    check(all(int(row["duration_ns"]) >= 15000000 for row in rows), "%s", rows)
    for some, took in ((naps, int(done["nap_ns"])), (reads, int(done["read_ns"]))):
        total = sum(int(row["duration_ns"]) for row in some)
        check(0.98 * took - 2e6 * SLOW < total <= took, "%d ns, the caller measured %d", total, took)
    pipe = "/proc/%d/fd/%s" % (workload.tgid, workload["fd"])
    check(all(row["fd"] == workload["fd"] and row["filename"] == os.readlink(pipe) for row in reads), "%s", reads)
    check([row["timestamp"] for row in mine] == sorted(row["timestamp"] for row in mine), "not in the order of time")
    check({row["comm"] for row in mine} == {"calls"} and {row["trace"] for row in mine} == {"syscalls"}, "%s", mine)


@case
def slow_alone(ctx):
    """Rows of events need no samples: no switch keeps registers for them, but renames are followed."""
    tool = ctx.plain("--csv", "--slower", 15, "-v", "-t", 1)
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    tool.interrupt()
    check(" registers: not wanted\n" in tool.err and " rename: nobody" not in tool.err, "%s", tool.err)


@case
def slow_filtered(ctx):
    """--slower with a filter on facts that only an event has: its file, and its error."""
    workload = ctx.workload("calls", naps=10, nap_ms=40, reads=10, read_ms=20)
    rows, _ = slow_rows(ctx, workload, "--slower", 15, "--filter", 'filename~"^pipe:" || errno=EAGAIN', "-g", "tid")
    check(len(rows_of(rows, workload.tid)) == 10 and {row["syscall"] for row in rows} == {"read"}, "%s", rows)
    rows, _ = slow_rows(ctx, workload, "--slower", 15, "--filter", "errno= && syscall!=read")
    mine = rows_of(rows, workload.tid)
    check(len(mine) == 10 and {row["syscall"] for row in mine} == {"clock_nanosleep"}, "%s", mine)


SUM = re.compile(r"^ *(\d+) +(\d+\.\d{3})  (?:user|-)(.*)$", re.M)


@case(thorough=True)
def slow_sleeps_by_stack(ctx):
    """--slower of sleeps with stacks: two functions sleep in turn, one for 20 ms, the other for 50 us; only the first is shown,
    each time, with its user and kernel stack; the report's sums by stack are these events, exactly."""
    if SLOW > 1:
        raise Skip("where CPUs are emulated a scan takes longer than what it looks at")
    workload = ctx.workload("calls", naps=50, nap_ms=20, shorts=2, reads=0, trivial=0, opens=0, bad=0)
    rows, done = slow_rows(ctx, workload, "--slower", 10, "--trace", "offcpu", "-F", 250, "-t", workload.tid,
                           "-g", "tid,syscall,ufuncs,kfuncs,stack")
    naps = [row for row in rows_of(rows, workload.tid) if row["syscall"] == "clock_nanosleep"]
    check(len(naps) == 50, "%d naps", len(naps))
    lacking = [row for row in naps if not row["stack"] or "workload+0x" in row["stack"]]  # functions' names come a scan later
    check(len(lacking) <= 25, "%d of 50 without a stack", len(lacking))
    for row in naps:
        check(row in lacking or re.search(r"calls_work;nap_long[^;]*;(.*;)?[^;]*nanosleep.*_\[k\]", row["stack"]), "%s", row)
        check("nap_short" not in row["stack"] and "nap_short" not in row["ufuncs"], "%s", row)
        check(row in lacking or ("nap_long" in row["ufuncs"] and "nanosleep" in row["kfuncs"]), "%s", row)
    slept_ns = sum(int(row["duration_ns"]) for row in naps)
    check(50 * 20e6 <= slept_ns <= int(done["nap_ns"]), "%d ns, %s", slept_ns, done)
    tool = ctx.plain("--slower", 10, "--trace", "offcpu", "-a", "--stacks", "-F", 250, "-d", 30, "-t", workload.tid, "-v")
    wait_until(lambda: "switch: " in tool.err or tool.code is not None, START_S, "that it traces")
    workload.say("go")
    done = workload.wait_done(2)
    tool.signal(2)
    tool.finish_plain()
    out = tool.out.decode()
    check(re.search(r"\noffcpu slower than 10 ms by stack: \d+ sleeps", out), "%s", out)
    sums = [(int(count), float(seconds), frames) for count, seconds, frames in SUM.findall(out)]
    named = [one for one in sums if "nap_long" in one[2]]
    check(named and not any("nap_short" in one[2] for one in sums), "%s", out)
    count = sum(one[0] for one in named)
    check(25 <= count <= 50, "%s", out)
    check(0.02 * count <= sum(one[1] for one in named) <= int(done["nap_ns"]) / 1e9, "%s of %s", sums, done)


@case(paired=True)
def slow_sleeps(ctx):
    """--slower of sleeps: the table of a report has them, the longest first."""
    workload = ctx.workload("calls", naps=12, nap_ms=40, reads=0)
    rows, _ = slow_rows(ctx, workload, "--slower", 30, "--trace", "offcpu")
    mine = [row for row in rows_of(rows, workload.tid) if row["syscall"] == "clock_nanosleep"]
    check(len(mine) == 12 and {(row["trace"], row["state"]) for row in mine} == {("offcpu", "S")}, "%s", rows)
    tool = ctx.plain("--slower", 30, "-i", 2, "-t", workload.tid, "-v")
    wait_until(lambda: "return: " in tool.err or tool.code is not None, START_S, "that it traces")
    workload.say("go")
    workload.wait_done(2)
    tool.signal(2)
    tool.finish_plain()
    out = tool.out.decode()
    check(re.search(r"\nslower than 30 ms: \d+ single events?\nENDED .*TOOK", out), "%s", out)
    # the time includes the wait for a CPU that followed
    check(len(re.findall(r"Z  syscalls  (?:4\d|[5-9]\d|\d{3})\.\d ms .* clock_nanosleep\n", out)) == 12, "%s", out)
