"""The start of tsnap if it takes long: the line on the terminal, and the priority at which it runs."""
import datetime
import fcntl
import glob
import os
import pty
import re
import signal
import termios
import time

from case_scan_time import RT_GROUP, cpu_group
from harness import SLOW, START_S, STOP_S, Skip, case, check, let_pass, wait_until

ERASE = b"\r\x1b[K"


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="utf-8") as file:
            return [int(word) for word in file.read().split()]
    except FileNotFoundError:
        raise Skip("this kernel has no list of children in /proc")


def stat_of(path):
    """(name, words after it) of a file `stat`."""
    with open(path, encoding="utf-8", errors="replace") as file:
        name, _, rest = file.read().partition("(")[2].rpartition(")")
    return name, rest.split()


def nice_of(path):
    return int(stat_of(path)[1][16])


def policy_of(path):
    return int(stat_of(path)[1][38])


def realtime_allowed():
    """True if this process may have real-time priority, which its child processes do not inherit."""
    before, param = os.sched_getscheduler(0), os.sched_param(1)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, param)
    except OSError:
        return False
    os.sched_setscheduler(0, before & ~os.SCHED_RESET_ON_FORK, os.sched_param(0))
    return True


def held_child(tool):
    """Stops the compile child before it is done; returns its pid."""
    def found():
        for child in children(tool.pid):
            if stat_of("/proc/%d/stat" % child)[0] == "tsnap-compile":
                return child
        check(tool.code is None, "ended: %s", tool.code)
        return None
    child = wait_until(found, START_S, "a compile child")
    os.kill(child, signal.SIGSTOP)
    return child


class Terminal:
    """A pseudo-terminal, which a child may have as its controlling terminal; and the bytes that were written there."""

    def __init__(self, ctx):
        self.master, self.slave = pty.openpty()
        os.set_blocking(self.master, False)
        self.bytes = b""
        ctx.at_end(self.close)

    def close(self):
        os.close(self.master)
        os.close(self.slave)

    def read(self):
        try:
            while True:
                self.bytes += os.read(self.master, 65536)
        except BlockingIOError:
            return self.bytes


def foreground(terminal):
    """Makes the child, which has a session of its own, the one in the terminal's foreground."""
    fcntl.ioctl(terminal.slave, termios.TIOCSCTTY, 0)


def on_terminal(ctx, terminal, *args, ahead=True):
    return ctx.plain(*args, stderr=terminal.slave, preexec_fn=(lambda: foreground(terminal)) if ahead else None)


@case(paired=True)
def start_is_told(ctx):
    """After a second without a sample a line on the terminal says what tsnap does; it goes before anything else is written."""
    workload = ctx.workload("sleep", call="nanosleep")
    terminal = Terminal(ctx)
    tool = on_terminal(ctx, terminal, "-d", 0.5, "-p", workload["pid"])
    child = held_child(tool)
    wait_until(lambda: b" 2 s: " in terminal.read(), 10 * SLOW, "a line of the second second")
    os.kill(child, signal.SIGCONT)
    tool.finish_plain(0, START_S + STOP_S)
    lines = terminal.read().split(ERASE)
    check(lines[0] == b"" and lines[-1] == b"" and len(lines) >= 4, "not erased: %r", lines)
    check(all(line.startswith(b"tsnap: starting, ") and b"\n" not in line for line in lines[1:-1]), "other words: %r", lines)
    check(b"kernel types" in lines[1] or b"compiling" in lines[1], "what it does: %r", lines[1])
    check(b"of them sleep" in tool.out and b"starting" not in tool.out, "the report: %r", tool.out)


@case(paired=True)
def start_is_not_told(ctx):
    """There is no line where the start is quick, where standard error is no terminal, or where tsnap is in its background."""
    workload = ctx.workload("sleep", call="nanosleep")
    options = ("--csv", "-a", "-n", 1, "-p", workload["pid"])
    away = Terminal(ctx)
    tools, held = [], []
    for begin in (lambda: ctx.plain(*options), lambda: on_terminal(ctx, away, *options, ahead=False)):
        tools.append(begin())
        held.append(held_child(tools[-1]))  # before the next tsnap begins: a compile is quick
    let_pass(1.5)
    for child in held:
        os.kill(child, signal.SIGCONT)
    for tool in tools:
        tool.finish(0, START_S + STOP_S)
    said = [line for line in tools[0].err.splitlines() if not re.search(r" late scans? ", line)]
    check(not said, "into a file: %s", said)
    check(not away.read(), "in the background: %r", away.bytes)


@case(paired=True)
def start_is_raised(ctx):
    """The compile child runs at real-time priority and nice -20, nothing does after the first scan; a tsnap that was niced stays so."""
    workload = ctx.workload("sleep", call="nanosleep")
    fifo = os.SCHED_FIFO if realtime_allowed() else os.SCHED_OTHER
    for own, options, raised in ((0, (), (-20, fifo)), (0, ("--no-realtime",), (-20, os.SCHED_OTHER)), (5, (), (5, os.SCHED_OTHER))):
        tool = ctx.stream("-a", "-p", workload["pid"], *options, columns="kfunc,ustack",
                          preexec_fn=lambda: os.setpriority(os.PRIO_PROCESS, 0, own))
        child = held_child(tool)
        path = "/proc/%d/stat" % child
        found = nice_of(path), policy_of(path)
        os.kill(child, signal.SIGCONT)
        check(found == raised, "the compile child of a tsnap of nice %d %s has %s", own, options, found)
        tool.wait_scans(2)
        after = {path: nice_of(path) for path in glob.glob("/proc/%d/task/*/stat" % tool.pid)}
        check(after and set(after.values()) == {own}, "after the start: %s, not %d", after, own)
        with open("/proc/%d/limits" % tool.pid, encoding="utf-8") as file:
            limit = re.search(r"^Max realtime timeout +(\S+)", file.read(), re.M).group(1)
        check(limit == "unlimited" or int(limit) != 500000, "after the start: a limit of %s us", limit)
        tool.interrupt()


def first_sample_s(ctx, workload):
    """Time from the start of a tsnap to its first sample, by the sample's timestamp."""
    begun = datetime.datetime.now(datetime.timezone.utc)
    tool = ctx.plain("--csv", "-a", "-F", 50, "-n", 1, "-p", workload["pid"], "-g", "timestamp,state",
                     preexec_fn=lambda: os.setpriority(os.PRIO_PROCESS, 0, 0))  # nice 0, also if the tests are niced
    tool.finish(0, START_S + STOP_S)
    row = tool.out.decode().splitlines()[1]
    return (datetime.datetime.fromisoformat(row.split(",")[0].strip("\"Z") + "+00:00") - begun).total_seconds()


@case(alone=True, thorough=True)
def start_on_a_full_host(ctx):
    """While spinners run on every CPU, each in a session of its own, which the kernel may treat as one, the first sample comes soon."""
    if not realtime_allowed():
        raise Skip("no real-time priority here")
    workload = ctx.workload("sleep", call="nanosleep")
    quiet = first_sample_s(ctx, workload)
    spinners = ctx.workloads([("spin", {})] * (20 * os.cpu_count()))
    full = sorted(first_sample_s(ctx, workload) for _ in range(3))
    for spinner in spinners:
        spinner.end()
        ctx.started.remove(spinner)
    # a second more than on a quiet host is allowed; on a slow machine, where a start takes long anyway, five times as much
    check(full[1] <= max(1 * SLOW + quiet, 5 * quiet), "%s s to the first sample, %.2f s on a quiet host", full, quiet)


@case(paired=True)
def start_with_little_realtime(ctx):
    """In a control group with hardly any real-time run time (10 ms of each second) the start goes on at normal priority: it would take
    a hundred times its CPU time."""
    if not os.path.exists(os.path.dirname(RT_GROUP) + "/cpu.rt_runtime_us"):
        raise Skip("no control groups with a real-time run time here (version 1, CONFIG_RT_GROUP_SCHED)")
    workload = ctx.workload("sleep", call="nanosleep")
    enter = cpu_group(ctx)
    if not realtime_allowed():
        raise Skip("no real-time priority here")
    begun = time.monotonic()
    tool = ctx.stream("-a", "-p", workload["pid"], preexec_fn=enter)
    tool.wait_scans(1)
    took = time.monotonic() - begun
    tool.interrupt()
    check(took < 10 * SLOW, "%.1f s to the first sample", took)


@case
def progress_is_shown(ctx):
    """While tsnap samples a line on the terminal has the seconds so far, of how many, and samples; it is gone before each report."""
    workload = ctx.workload("spin")
    terminal = Terminal(ctx)
    tool = on_terminal(ctx, terminal, "-i", 2, "-n", 2, "-p", workload["pid"])
    tool.finish_plain(0, START_S + STOP_S)
    lines = [line for line in terminal.read().split(ERASE) if not line.startswith(b"tsnap: starting, ")]
    found = re.findall(rb"sampling, (\d) of 2 s, (\d+) samples?", b"|".join(lines))
    check([b"0", b"1"] == sorted({second for second, _ in found}), "seconds: %r", lines)
    check(any(10 <= int(samples) <= 40 for _, samples in found), "samples: %r", lines)
    check(lines[-1] == b"" and b"\n" not in b"".join(lines), "not erased: %r", lines)
    check(len(re.findall(rb"remarks?[:.]", tool.out)) == 2 and b"sampling" not in tool.out, "the reports: %r", tool.out)


@case(thorough=True)
def progress_is_for_terminals(ctx):
    """Neither a file, nor a terminal that another job has, nor one that gets rows, shows any progress."""
    workload = ctx.workload("spin")
    tool = ctx.plain("-d", 2, "-p", workload["pid"])
    tool.finish_plain(0, START_S + STOP_S)
    check("sampling" not in tool.err and b"sampling" not in tool.out, "standard error: %r", tool.err)
    for ahead, options in ((False, ()), (True, ("--csv",))):
        terminal = Terminal(ctx)
        tool = on_terminal(ctx, terminal, "-d", 2, "-p", workload["pid"], *options, ahead=ahead)
        tool.finish_plain(0, START_S + STOP_S)
        check(b"sampling" not in terminal.read(), "the terminal: %r", terminal.bytes)
