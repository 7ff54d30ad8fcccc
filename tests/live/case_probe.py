"""The user's own probes, against a workload that knows its calls, their times, arguments and results."""
import os
import re
import signal
import time

import truth
from case_top import Screen
from parts import Postgres, Session
from harness import SLOW, START_S, case, check, wait_until

CALLS = 100


def begin(ctx, workload, *probes, args=(), kind="p"):
    """A run whose probes are attached, and stay so where a host is slow (probe_budget has those that do not)."""
    words = [word for name, target in probes for word in ("--probe", "%s = %s:workload:%s" % (name, kind, target))]
    tool = ctx.plain("--csv", "-i", 1, "-g", "tid", "-p", workload.tgid, "--probe-budget", 99, *words, *args)
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    return tool


class Probed:
    """All that was reported of a probe."""

    def __init__(self, rows, name, tid):
        rows = [row for row in rows if row["trace"] == name and row["tid"] == str(tid)]

        def total(column):
            return sum(int(row.get(column) or 0) for row in rows)
        self.count, self.sum, self.below, self.total_ns = (total(key) for key in ("count", "value_sum", "value_below", "total_ns"))
        self.max, self.max_ns = (max([int(row.get(key) or 0) for row in rows], default=0) for key in ("value_max", "max_ns"))
        self.buckets = {}
        for row in rows:
            for low, count in (pair.split(":") for pair in row["buckets"].split()):
                self.buckets[int(low)] = self.buckets.get(int(low), 0) + int(count)


@case
def probe_counted(ctx):
    """--probe: counts and times of calls, recursion and calls left by longjmp are exact; so are their arguments and results."""
    workload = ctx.workload("probed", calls=CALLS, nap_ms=2, depth=7)
    # the workload's numbers: nap_ns, -5 to 94, and 2 ** (i % 10) or 0, for which it returns -1
    tool = begin(ctx, workload, ("nap", "probed_nap"), ("nested", "probed_nested"), ("left", "probed_left"),
                 ("sizes", "probed_nap(arg3:bytes)"))
    workload.say("go")
    done = workload.wait_done()
    rows = tool.interrupt()
    nap, nested, left, sizes = (Probed(rows, name, workload.tid) for name in ("nap", "nested", "left", "sizes"))
    took_ns = int(done["took_ns"])
    check(nap.count == CALLS and CALLS * 2e6 <= nap.total_ns <= took_ns, "%d calls, %d ns of %d", nap.count, nap.total_ns, took_ns)
    check(nap.total_ns >= took_ns - CALLS * 100e3 * SLOW and nap.max_ns >= 2e6, "%d ns, the caller measured %d", nap.total_ns, took_ns)
    check(nested.count == 7 and nested.total_ns >= 28e6, "%d calls of a recursion of 7, %d ns", nested.count, nested.total_ns)
    check(not left.count, "%d calls that did not return", left.count)
    check(sizes.count == CALLS and sizes.sum == 10 * 1022 and sizes.max == 512, "%d sizes, %d", sizes.count, sizes.sum)
    check(sizes.buckets == {0: 10, **{2 ** i: 10 for i in range(1, 10)}}, "%s", sizes.buckets)


@case(alone=True)
def probe_split(ctx):
    """Times of calls are split by what the thread did in them: cpu, run queue, disk, sleep; all calls, and the longest ones."""
    # schedstat does not count what a CPU that is idle takes to wake up: none is
    for cpu in os.sched_getaffinity(0):
        spinner = ctx.workload("spin", cpu=cpu)
        os.sched_setscheduler(spinner.tid, os.SCHED_IDLE, os.sched_param(0))
        if os.path.exists("/proc/%d/autogroup" % spinner.pid):  # whose share does not depend on the policy of its threads
            with open("/proc/%d/autogroup" % spinner.pid, "w", encoding="ascii") as file:
                file.write("19")
    workload = ctx.workload("probed", calls=CALLS, nap_ms=4, spin_ms=2)
    before = truth.schedstat(workload.tid)
    tool = begin(ctx, workload, ("both", "probed_both"), ("nap", "probed_nap"), ("plain", "probed_both()"))
    workload.say("go")
    workload.wait_done()
    ran_ns, queued_ns, _ = (now - then for now, then in zip(truth.schedstat(workload.tid), before))
    rows = [row for row in tool.interrupt() if row["tid"] == str(workload.tid)]
    both = Probed(rows, "both", workload.tid)

    def part_ns(name, part):
        return sum(float(row[part + "_share"]) / 100 * int(row["total_ns"]) for row in rows if row["trace"] == name)
    unknown = 0
    for row in rows:
        for prefix in ("", "tail_"):
            shares = [row[prefix + part + "_share"] for part in ("cpu", "runq", "disk", "sleep")]
            # the longest calls of a second may be one call, which is counted without parts if a switch was not seen
            lone = row["trace"] != "plain" and prefix == "tail_" and not any(shares)
            unknown += lone
            check(lone or (not any(shares) if row["trace"] == "plain" else abs(sum(map(float, shares)) - 100) <= 0.4), "%s", row)
    check(unknown <= 1, "the parts of the longest calls are not known in %d rows", unknown)
    check(both.count == CALLS, "%d calls", both.count)
    cpu_ns, sleep_ns = part_ns("both", "cpu"), part_ns("both", "sleep")
    check(CALLS * 2e6 * 0.99 <= cpu_ns <= min(ran_ns * 1.01, CALLS * 2.3e6 * SLOW), "%d ns on a CPU, not %d", cpu_ns, CALLS * 2e6)
    check(CALLS * 4e6 * 0.99 <= sleep_ns <= CALLS * 4.3e6 * SLOW, "%d ns asleep, not %d", sleep_ns, CALLS * 4e6)
    # two sleeps a call, each with a wake-up whose wait the kernel may count shorter
    check(part_ns("both", "runq") + part_ns("nap", "runq") <= queued_ns * 1.01 + 2 * CALLS * 20e3 * SLOW, "more than %d ns in a run queue", queued_ns)
    check(part_ns("nap", "sleep") >= CALLS * 4e6 * 0.99, "naps: %d ns asleep", part_ns("nap", "sleep"))


@case
def probe_slower(ctx):
    """With --slower each longer call of a probed function is listed, with its time, beside what others find too short."""
    workload = ctx.workload("probed", calls=20, nap_ms=4, spin_ms=20)
    tool = ctx.plain("--csv", "--slower", 15, "-p", workload.tgid, "--probe", "both = p:workload:probed_both",
                     "--probe", "nap = p:workload:probed_nap", "--probe", "few = p:workload:probed_both if arg2 = 1")
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    workload.say("go")
    done = workload.wait_done()
    rows = tool.interrupt()
    check([row["trace"] for row in rows] == ["both"] * 20, "%s", rows)
    check({row["tid"] for row in rows} == {str(workload.tid)}, "%s", rows)
    total_ns = sum(int(row["duration_ns"]) for row in rows)
    check(20 * 24e6 <= total_ns <= int(done["took_ns"]), "%d ns of %s", total_ns, done)


@case
def probe_events(ctx):
    """--events: each event by itself, in order, with its time and value: a number, a text, or a call with what it consisted of."""
    workload = ctx.workload("probed", calls=30, nap_ms=2, spin_ms=2)
    own = [word for name, target in (("sizes", "p:workload:probed_nap(arg3:bytes) if arg3 > 255"), ("ints", "p:workload:probed_nap(arg2:int)"),
                                     ("texts", "u:workload:step(arg4:str)"), ("both", "p:workload:probed_both"))
           for word in ("--probe", "%s = %s" % (name, target))]
    tool = ctx.plain("--csv", "--events", "-p", workload.tgid, "--probe-budget", 99, *own)
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    workload.say("go")
    done = workload.wait_done()
    rows = [row for row in tool.interrupt() if row["tid"] == str(workload.tid)]
    values = {name: [row["value"] for row in rows if row["trace"] == name] for name in ("sizes", "ints", "texts", "both")}
    check(values["sizes"] == ["256", "512"] * 3, "%s", values["sizes"])
    check(values["ints"] == [str(i - 5) for i in range(30)], "%s", values["ints"])
    check(values["texts"] == ["alpha", "beta", ""] * 10, "%s", values["texts"])
    check([row["timestamp"] for row in rows] == sorted(row["timestamp"] for row in rows), "not in order")
    calls = [row for row in rows if row["trace"] == "both"]
    total_ns = sum(int(row["duration_ns"]) for row in calls)
    check(len(calls) == 30 and 30 * 4e6 <= total_ns <= int(done["took_ns"]), "%d calls, %d ns of %s", len(calls), total_ns, done)
    known = [row for row in calls if row["cpu_us"]]  # of the others a switch was not seen
    check(len(known) >= 28, "the parts of %d calls are not known", 30 - len(known))
    for row in known:
        parts = [int(row[part + "_us"]) for part in ("cpu", "runq", "dwait", "sleep")]
        check(abs(sum(parts) - int(row["duration_ns"]) / 1000) <= 4 and parts[0] >= 1980 and parts[3] >= 1000, "%s", row)
    check(all(not row["duration_ns"] for row in rows if row["trace"] != "both"), "events without a duration have one")


@case
def probe_stacks(ctx):
    """--probe with stacks: calls and tracepoints are counted by the stack that the thread has there, in user mode and in the kernel."""
    workload = ctx.workload("probed", calls=CALLS, nap_ms=1)
    tool = ctx.plain("--csv", "-i", 1, "-g", "tid,stack", "-p", workload.tgid, "--probe-budget", 99, "--probe", "called = p:workload:probed_nap()",
                     "--probe", "left = t:sched:sched_switch", "--probe", "returned = p:workload:probed_nap(ret:bytes)")
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    workload.say("go")
    workload.wait_done()
    rows = [row for row in tool.interrupt() if row["tid"] == str(workload.tid)]

    def frames(name):
        counts = {}
        for row in rows:
            if row["trace"] == name:
                count = int(row["count"] or 0) + int(row["value_below"] or 0)
                counts[row["stack"]] = counts.get(row["stack"], 0) + count
        return counts
    called, left, returned = frames("called"), frames("left"), frames("returned")
    for counts, function, other in ((called, "probed_nap", "probed_work"), (returned, "probed_work", "probed_nap")):
        # in emulation the first second's files are not read in time
        named = sum(count for stack, count in counts.items() if stack.endswith(function) and other not in stack)
        check(sum(counts.values()) == CALLS and named >= (CALLS if SLOW == 1 else CALLS / 2), "%s", counts)
    # the function that waits is inlined or not, by the kernel's build
    naps = {stack: count for stack, count in left.items() if "nanosleep" in stack}
    check(CALLS <= sum(naps.values()) <= CALLS + 20, "%d of %d naps: %s", sum(naps.values()), CALLS, left)
    check(all(stack.endswith("schedule_[k]") for stack in naps), "%s", naps)


@case
def probe_rates_told(ctx):
    """Before hot functions are probed the rate to expect is said: by the kernel's own counter, or the order of magnitude; of others nothing."""
    workload = ctx.workload("probed", calls=10, nap_ms=2)
    own = ["--probe", "left = t:sched:sched_switch", "--probe", "nap = p:workload:probed_nap()", "--probe", "freed = t:kfree if arg1 = 0"]
    before_ns, before = time.monotonic_ns(), switches()
    tool = ctx.plain("--csv", "-i", 1, "-d", 2, "-g", "tid", "-p", workload.tgid, *own)
    tool.wait(START_S + 30 * SLOW)
    rate = (switches() - before) * 10 ** 9 / (time.monotonic_ns() - before_ns)
    told = {line.split("'")[1]: line for line in tool.err.splitlines() if line.startswith("tsnap: probe '")}
    check(set(told) == {"left", "freed"}, "%s", tool.err)
    said = int(told["left"].split(" is reached ")[1].split()[0])
    # a fifth of a second, of some that were busier or not
    check(rate / 20 <= said <= rate * 20 and "(ctxt of /proc/stat)" in told["left"], "%d a second: %s", rate, told["left"])
    check("kfree is hot: up to 1000000 times a second" in told["freed"] and " of a CPU; it is detached if" in told["freed"], "%s", told["freed"])


def switches():
    with open("/proc/stat", encoding="ascii") as stat:
        return int(next(line for line in stat if line.startswith("ctxt ")).split()[1])


@case
def probe_conditions(ctx):
    """Conditions of --probe hold for arguments at the call, results, and ints of 32 bits."""
    workload = ctx.workload("probed", calls=CALLS, nap_ms=1)
    tool = begin(ctx, workload, ("ints", "probed_nap(arg2)"), ("failed", "probed_nap(ret:bytes)"),
                 ("both", "probed_nap if arg3 >= 256 && ret < 1K && !(arg2:int = 3)"),
                 ("none", "probed_left() if arg1 = 0"))
    workload.say("go")
    workload.wait_done()
    rows = tool.interrupt()
    ints, failed, both, none = (Probed(rows, name, workload.tid) for name in ("ints", "failed", "both", "none"))
    check((ints.count, ints.below, ints.sum) == (95, 5, sum(range(95))), "%d ints, %d below 0, sum %d", ints.count, ints.below, ints.sum)
    check((failed.count, failed.below, failed.sum) == (90, 10, 10 * 1022), "%d, %d failed, %d", failed.count, failed.below, failed.sum)
    # i % 10 is 8 or 9, but not i = 8
    check(both.count == 19, "%d calls for which both hold, not 19", both.count)
    check(not none.count, "%d calls with a condition that is false", none.count)


@case
def probe_usdt(ctx):
    """USDT probes: arguments in registers, memory and constants, of all sizes and signs, at two places; the semaphore is switched on and off."""
    workload = ctx.workload("probed", calls=CALLS, nap_ms=1)
    tool = begin(ctx, workload, ("numbers", "probed:step(arg1)"), ("squares", "step(arg2) if arg3 = -7 && arg1 >= 10"),
                 ("last", "last(arg1) if arg2 = 4294967294"), ("all", "last"), kind="u")
    workload.say("go")
    done = workload.wait_done()
    rows = tool.interrupt()
    numbers, squares, last, every = (Probed(rows, name, workload.tid) for name in ("numbers", "squares", "last", "all"))
    check(int(done["wanted"]) > 0, "the semaphore is off while it is probed: %s", done)
    check((numbers.count, numbers.below, numbers.sum, numbers.max) == (95, 5, sum(range(95)), 94), "%s", vars(numbers))
    check((squares.count, squares.sum, squares.max) == (85, sum(i * i for i in range(10, 95)), 94 * 94), "%s", vars(squares))
    check((last.count, last.below, last.sum) == (95, 5, sum(range(95))), "%s", vars(last))
    check(every.count == CALLS, "%d, not %d", every.count, CALLS)
    workload.say("go")
    check(workload.wait_done(2)["wanted"] == "0", "the semaphore stays on")


def by_value(rows, name):
    """{value: count} of a probe that counts by value."""
    counts = {}
    for row in rows:
        if row["trace"] == name:
            counts[row["value"]] = counts.get(row["value"], 0) + int(row["count"])
    return counts


@case
def probe_by_value(ctx):
    """Texts and hexadecimal numbers are counted by value: of USDT probes, and of functions; texts that can't be read have none."""
    workload = ctx.workload("probed", calls=CALLS, nap_ms=1)
    tool = begin(ctx, workload, ("texts", "step(arg4:str)"), ("some", "step(arg4:str) if arg1 < 0"), ("hex", "last(arg2:hex)"),
                 ("none", "step(arg2:str)"), kind="u")
    functions = begin(ctx, workload, ("sizes", "probed_nap(arg3:hex) if arg2:int >= 0"), ("names", "probed_name(arg1:str)"))
    workload.say("go")
    workload.wait_done()
    rows = tool.interrupt()
    check(by_value(rows, "texts") == {"alpha": 34, "beta": 33, "": 33}, "%s", by_value(rows, "texts"))
    check(by_value(rows, "some") == {"alpha": 2, "beta": 2, "": 1}, "%s", by_value(rows, "some"))
    check(by_value(rows, "hex") == {"0xfffffffe": CALLS}, "%s", by_value(rows, "hex"))
    check(by_value(rows, "none") == {"": CALLS}, "%s", by_value(rows, "none"))
    rows = functions.interrupt()
    sizes = {"0x%x" % (1 << i % 10 if i % 10 else 0): 0 for i in range(10)}
    for i in range(5, CALLS):
        sizes["0x%x" % (1 << i % 10 if i % 10 else 0)] += 1
    check(by_value(rows, "sizes") == sizes, "%s", by_value(rows, "sizes"))
    long = by_value(rows, "names")
    check(long == {"x" * 255 + "...": CALLS}, "%s", long)


@case
def probe_of_postgres(ctx):
    """PostgreSQL's own USDT probes: each statement of a session with its text, as often as it was sent; transactions by their ids."""
    server = Postgres(ctx)
    session = Session(server, ctx)
    session.ask("select 1")
    tool = ctx.plain("--csv", "-i", 1, "-g", "tid", "-p", session.backend, "--probe", "text = u:postgres:query__start(arg1:str)",
                     "--probe", "begun = u:postgres:postgresql:transaction__start", "--probe", "done = u:postgres:query__done(arg1:str)",
                     "--probe", "run = p:postgres:pg_parse_query")
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    for number in range(30):
        session.ask("select %d" % (number % 3))
    session.ask("begin")
    session.ask("select 'in'")
    session.ask("commit")
    rows = tool.interrupt()
    told = {value.rstrip(";\n "): count for value, count in by_value(rows, "text").items()}
    mine = {"select %d" % number: 10 for number in range(3)}
    mine.update({"begin": 1, "select 'in'": 1, "commit": 1})
    check({text: told.get(text) for text in mine} == mine, "%s", told)
    check(by_value(rows, "done") == by_value(rows, "text"), "%s and %s", by_value(rows, "done"), told)
    every = sum(told.values())
    check(by_value(rows, "run") == {"": every}, "%d statements, but %s", every, by_value(rows, "run"))
    check(sum(by_value(rows, "begun").values()) == every - 2, "%s transactions of %d statements", by_value(rows, "begun"), every)


@case
def probe_usdt_killed(ctx):
    """A tsnap that is killed leaves no semaphore on."""
    workload = ctx.workload("probed", calls=1, nap_ms=1)
    tool = begin(ctx, workload, ("numbers", "probed:step(arg1)"), kind="u")
    os.kill(tool.pid, signal.SIGKILL)
    tool.wait(START_S)
    count = 0

    def is_off():
        nonlocal count
        count += 1
        workload.say("go")
        return workload.wait_done(count)["wanted"] == "0"
    wait_until(is_off, START_S, "a semaphore that is off")


@case
def probe_tracepoint(ctx):
    """A tracepoint is counted, and its argument is found by its name."""
    workload = ctx.workload("calls", trivial=500, opens=0, bad=0, naps=0, reads=0)
    tool = ctx.plain("--csv", "-i", 1, "-g", "tid", "-p", workload.tgid, "--probe", "all = t:raw_syscalls:sys_enter if id = %d"
                     % os_getppid(), "--probe", "number = t:sys_enter(id:bytes) if id = %d" % os_getppid())
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    workload.say("go")
    workload.wait_done()
    rows = tool.interrupt()
    counted, number = (Probed(rows, name, workload.tid) for name in ("all", "number"))
    check(counted.count == 500, "%d calls, not 500", counted.count)
    check(number.count == 500 and number.sum == 500 * os_getppid(), "%d calls, sum %d", number.count, number.sum)


@case
def probe_kernel(ctx):
    """Functions of the kernel: times, arguments by name, and texts; where there are no kprobes, that is said."""
    if not os.path.exists("/sys/bus/event_source/devices/kprobe/type"):
        tool = ctx.plain("-d", 1, "--probe", "nap = k:hrtimer_nanosleep")
        tool.wait(START_S)
        check(tool.code == 2 and "this kernel has no event source for kprobes" in tool.err, "%s %s", tool.code, tool.err)
        return
    workload = ctx.workload("probed", calls=CALLS, nap_ms=2)
    calls = ctx.workload("calls", trivial=0, opens=50, bad=0, naps=0, reads=0)
    targets = ("nap = k:hrtimer_nanosleep", "asked = k:hrtimer_nanosleep(rqtp:ns) if ret = 0 && clockid = 1",
               "names = k:do_sys_openat2(filename:str)", "none = k:hrtimer_nanosleep() if clockid = 7")
    tool = ctx.plain("--csv", "-i", 1, "-g", "tid", "-p", "%d,%d" % (workload.tgid, calls.tgid),
                     *[word for target in targets for word in ("--probe", target)])
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    for each in (workload, calls):
        each.say("go")
    took_ns = int(workload.wait_done()["took_ns"])
    calls.wait_done()
    rows = tool.interrupt()
    nap, asked, none = (Probed(rows, name, workload.tid) for name in ("nap", "asked", "none"))
    check(nap.count == CALLS and CALLS * 2e6 <= nap.total_ns <= took_ns, "%d calls, %d ns of %d", nap.count, nap.total_ns, took_ns)
    check(asked.count == CALLS and asked.total_ns == CALLS * 2000000, "%d calls, %d ns", asked.count, asked.total_ns)
    check(not none.count, "%d calls with a condition that is false", none.count)
    check(by_value(rows, "names").get("/no such directory/file") == 50, "%s", by_value(rows, "names"))
    for spec, words in (("x = k:hrtimer_nanoslep", "the nearest is 'hrtimer_nanosleep'"), ("x = k:vfs_read(size)", "it has file, buf, count, pos"),
                        ("x = k:do_exit", "does not return as others do")):
        tool = ctx.plain("-d", 1, "--probe", spec)
        tool.wait(START_S)
        check(tool.code == 2 and words in tool.err, "%s: %s %s", spec, tool.code, tool.err)


def os_getppid():
    """The number of getppid(2)."""
    return 110 if os.uname().machine == "x86_64" else 173


@case(alone=True)
def probe_budget(ctx):
    """A probe that takes too much is detached within two seconds, and the report says so; another one stays."""
    hot = ctx.workload("probed", calls=0, hot=2000000000)
    calm = ctx.workload("probed", calls=1000, nap_ms=2)
    program = os.readlink("/proc/%d/exe" % hot.tgid)  # other programs of that name may run
    tool = ctx.plain("-d", 4, "-g", "comm", "--probe", "hot = p:%s:probed_hot()" % program,
                     "--probe", "nap = p:%s:probed_nap()" % program, "--probe-budget", 10)
    code = code_of(hot.tgid)
    hot.say("go")
    wait_until(lambda: code_of(hot.tgid) != code, START_S, "the probe")
    calm.say("go")
    calm.wait_done()
    tool.wait(START_S + 30 * SLOW)
    text = tool.out.decode()
    check("calls a second: probe 'hot' was detached, as it took" in text, "%s", text)
    check("probe 'nap' was detached" not in text and "nap: nap = " in text, "%s", text)


def code_of(pid):
    """The code of a process's program, as it is in its memory."""
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps, open("/proc/%d/mem" % pid, "rb", 0) as memory:
        program = os.readlink("/proc/%d/exe" % pid)
        for line in maps:
            if " r-xp " in line and line.rstrip().endswith(program):
                low, high = (int(word, 16) for word in line.split()[0].split("-"))
                memory.seek(low)
                return memory.read(high - low)
    return b""


@case(alone=True)
def probe_leaves_nothing(ctx):
    """A tsnap that is killed leaves no breakpoint in the program's code; nor does one that ends."""
    workload = ctx.workload("probed", calls=10, nap_ms=1)
    code = code_of(workload.tgid)
    for number in (signal.SIGKILL, signal.SIGINT):
        tool = begin(ctx, workload, ("nap", "probed_nap"))
        wait_until(lambda: code_of(workload.tgid) != code, START_S, "the breakpoint")
        os.kill(tool.pid, number)
        tool.wait(START_S)
        wait_until(lambda: code_of(workload.tgid) == code, START_S, "the code as it was")
    workload.say("go")
    workload.wait_done()


@case(alone=True)
def probe_refused(ctx):
    """Errors name what is wrong and what is nearest."""
    workload = ctx.workload("probed")
    program = os.readlink("/proc/%d/exe" % workload.tgid)
    for spec, words in (("x = p:%s:probed_nop" % program, "the nearest is 'probed_nap'"),
                        ("x = p:libc:vfork", "does not return as others do"),
                        ("x = u:%s:probed:stop" % program, "the nearest is 'step'"),
                        ("x = u:%s:prober:step" % program, "has no USDT probe 'prober:step'"),
                        ("x = u:%s:step(arg5)" % program, "has not so many arguments: -4@"),
                        ("x = u:%s:step" % program.replace(os.path.basename(program), "none"), "No such file"),
                        ("x = u:%s:step(arg4:str)" % program, "not with --query-text off"),
                        ("x = u:/bin/true:step", "/bin/true has no USDT probes"),
                        ("x = t:sched:sched_swich", "the nearest is 'sched_switch'"),
                        ("x = t:sched_switch(nobody)", "it has preempt, prev, next"),
                        ("x = p:no-such-file:f", "no process runs 'no-such-file'"),
                        ("syscalls = t:sched_switch", "is the name of a kind of --trace")):
        tool = ctx.plain("-d", 1, "--query-text", "off", "--probe", spec)
        tool.wait(START_S)
        check(tool.code == 2 and words in tool.err, "%s: %s %s", spec, tool.code, tool.err)
    check(not workload.code, "the workload ended")


@case
def probe_top(ctx):
    """--top with --probe: the peek at a thread has the distributions of its calls and arguments, and counts; y names the probes."""
    workload = ctx.workload("probed", calls=2 * CALLS, nap_ms=5)
    file = os.readlink("/proc/%d/exe" % workload.tgid)
    probes = ["nap = p:%s:probed_nap" % file, "sizes = p:%s:probed_nap(arg3:bytes)" % file, "names = p:%s:probed_name()" % file]
    screen = Screen(ctx, "-i", "0.5", "-a", "-t", workload.tid, "-g", "tid", "--probe-budget", 99,
                    *[word for probe in probes for word in ("--probe", probe)], rows=120)
    screen.wait(r"\b%d\b" % workload.tid)
    workload.say("go")
    workload.wait_done()
    screen.read(1.5)
    screen.type("p")
    # all calls are in the window: naps, their sizes 0 to 512, and what is only counted
    screen.wait(r"names +%d: " % (2 * CALLS), 10)
    screen.wait(r"nap +%d, p50 [56789]\.\d+ ms, p90 " % (2 * CALLS), 10)
    screen.wait(r"sizes +%d, p50 \d+, p90 \d+, p99 \d+, max 512, total %d" % (2 * CALLS, 20 * 1022), 10)
    screen.wait(r"sizes +128 \.\. +256 +%d +#" % (CALLS // 5), 10)
    screen.type("py")
    screen.wait(r"tsnap -d 5 -t %d --probe 'nap = p:" % workload.tid, 10)
    screen.type("q")


@case
def probe_recorded(ctx):
    """A recording has what --probe measured: a replay shows the same calls, arguments and texts, in a report by other columns, too."""
    workload = ctx.workload("probed", calls=CALLS, nap_ms=1)
    directory, file = ctx.temporary(), os.readlink("/proc/%d/exe" % workload.tgid)
    probes = [word for name, target in (("nap", "p:%s:probed_nap"), ("sizes", "p:%s:probed_nap(arg3:bytes)"), ("texts", "u:%s:step(arg4:str)"))
              for word in ("--probe", "%s = %s" % (name, target % file))]
    tool = ctx.plain("-o", directory, "-i", 1, "-p", workload.tgid, "--probe-budget", 99, *probes)
    wait_until(lambda: os.listdir(directory) or tool.code is not None, START_S, "a file of the recording")
    time.sleep(1)
    workload.say("go")
    took_ns = int(workload.wait_done()["took_ns"])
    time.sleep(1.5)
    tool.interrupt()
    rows = ctx.plain("--csv", "-g", "comm", "--replay", directory, *probes).finish(0, START_S)

    def total(name, column):
        return sum(int(row[column] or 0) for row in rows if row["trace"] == name)
    check(total("nap", "count") == CALLS and CALLS * 1e6 <= total("nap", "total_ns") <= took_ns, "%d calls, %d of %d ns", total("nap", "count"),
          total("nap", "total_ns"), took_ns)
    check((total("sizes", "count"), total("sizes", "value_sum")) == (CALLS, 10 * 1022), "%s", rows)
    check(max(int(row["value_max"]) for row in rows if row["trace"] == "sizes") == 512, "%s", rows)
    check(by_value(rows, "texts") == {"alpha": 34, "beta": 33, "": 33}, "%s", by_value(rows, "texts"))
    report = ctx.plain("--replay", directory, "-g", "user", *probes)
    report.finish_plain(0, START_S)
    text = report.out.decode()
    check(re.search(r"^ +%d +[\d.]+ m?s +[\d.]+ ms .* root$" % CALLS, text, re.M) and re.search(r"^ +34  root +alpha$", text, re.M), "%s", text)


@case
def probe_folded(ctx):
    """--folded and --flame with --probe have the stacks of its calls: each with the time in them, or how many there were."""
    workload = ctx.workload("probed", calls=CALLS, nap_ms=2)
    file, took_us = os.readlink("/proc/%d/exe" % workload.tgid), 0
    for done, (target, least, most) in enumerate((("p:%s:probed_nap()", CALLS, CALLS), ("p:%s:probed_nap", CALLS * 2000, None),
                                                  ("u:%s:step(arg4:str)", CALLS, CALLS))):
        tool = ctx.plain("--folded", "-v", "-p", workload.tgid, "-g", "comm", "--probe-budget", 99, "--probe", "asked = " + target % file)
        wait_until(lambda tool=tool: attached(tool), START_S, "the probe")
        time.sleep(0.5)
        workload.say("go")
        took_us = int(workload.wait_done(done + 1)["took_ns"]) / 1000
        tool.signal(signal.SIGINT)
        tool.wait(START_S)
        lines = [line.rpartition(" ") for line in tool.out.decode().splitlines()]
        weight = sum(int(number) for _, _, number in lines)
        check(least <= weight <= (most or took_us), "%s: %d, not %d to %s: %s", target, weight, least, most or took_us, lines)
        check(all(stack.startswith("probed;") for stack, _, _ in lines), "%s: %s", target, lines)
    tool = ctx.plain("--flame", "-d", 1, "--probe", "asked = p:%s:probed_nap()" % file)
    tool.wait(START_S)
    check(tool.code == 2 and "--folded has counts" in tool.err, "%s", tool.err)


def attached(tool):
    """True if tsnap has an event of a function."""
    try:
        links = [os.readlink("/proc/%d/fd/%s" % (tool.pid, fd)) for fd in os.listdir("/proc/%d/fd" % tool.pid)]
    except OSError:
        return False
    return sum("perf_event" in link for link in links) > os.cpu_count()
