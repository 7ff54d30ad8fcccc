"""CPUs that go offline and come back. In emulated machines only, as the real one is in use."""
import os

import truth
from case_stacks import chain_programs, directory_of, frames_of
from case_stacks_on_cpu import pinned
from harness import SLOW, Skip, case, check
from parts import FIRST_SLOW

SWITCH = "/sys/devices/system/cpu/cpu1/online"
HZ = 10
SCANS = 10
US_PER_S = 1000000


class Cpu:
    """CPU 1, which is switched on again at the test's end."""

    def __init__(self, ctx):
        if SLOW < FIRST_SLOW or not os.path.exists(SWITCH):
            raise Skip("no machine of our own whose CPU 1 can be switched off")
        ctx.started.append(self)

    def switch(self, on):
        with open(SWITCH, "w") as file:
            file.write("%d" % on)

    def end(self):
        self.switch(True)


class Spinner:
    """A thread that spins in a known chain."""

    def __init__(self, ctx):
        directory = directory_of(ctx)
        self.chain = chain_programs.Chain(os.path.join(directory, "chains_gcc"), "recursion", directory, spins=True)
        self.tid = self.chain.tid
        ctx.started.append(self.chain)

    def is_seen(self, row):
        return row["ustack"] and (chain_programs.contains(frames_of(row), self.chain.expected) or "+0x" in row["stack"])


class Reader:
    """A thread that is in read all the time, on its CPU."""

    def __init__(self, ctx):
        self.tid = ctx.workload("spin_kernel").tid

    def is_seen(self, row):
        return row["syscall"] == "read"


def follow(ctx, kind, places, columns, *args):
    """Moves a thread between CPU 0 and 1, and switches CPU 1 on or off. places: (on, CPU) pairs; the first applies before tsnap starts."""
    cpu, tool, since = Cpu(ctx), None, ""
    thread = kind(ctx)
    for on, where in places:
        cpu.switch(on)
        os.sched_setaffinity(thread.tid, {where})
        if not tool:
            tool = ctx.stream("-a", "-F", HZ, "-d", 1000, "-t", thread.tid, *args, columns="state,cpu," + columns, **pinned({0}))

        def is_seen(row):
            return row["state"] == "ON" and row["cpu"] == str(where) and row["timestamp"] > since and thread.is_seen(row)
        rows = tool.wait_scans(SCANS, is_seen)
        since = rows[-1]["timestamp"]
    tool.interrupt()


@case
def cpu_goes_and_comes(ctx):
    """Threads are shown wherever they run, and a CPU that was off is sampled again: threads on it have their stacks."""
    follow(ctx, Spinner, [(True, 1), (False, 0), (True, 1), (False, 0), (True, 1)], "ustack,stack")


@case(alone=True)
def start_with_a_cpu_off(ctx):
    """A CPU that was off when tsnap started is sampled as soon as it comes online."""
    follow(ctx, Spinner, [(False, 0), (True, 1)], "ustack,stack")


@case
def cpu_comes_under_a_clock(ctx):
    """With the perf clock of older kernels the state of a thread on a CPU that came back is known again."""
    follow(ctx, Reader, [(False, 0), (True, 1), (False, 0), (True, 1)], "syscall", *ctx.without("run_on_cpu"))


@case
def cpu_off_runs_nothing(ctx):
    """No thread is ON a CPU that is off, and the time until it comes back is no thread's time on a CPU; the last thread there is parked."""
    cpu = Cpu(ctx)
    last, = (tid for tid in os.listdir("/proc") if tid.isdigit() and truth.read("/proc/%s/comm" % tid) == "migration/1\n")
    tool = ctx.stream("-a", "-F", HZ, "-d", 1000, "-t", last, columns="state,cpu,cpu_us", **pinned({0}))
    tool.wait_scans(SCANS)
    cpu.switch(False)
    tool.wait_scans(SCANS, lambda row: row["state"] == "P")
    cpu.switch(True)
    tool.wait_scans(2 * SCANS, lambda row: row["state"] == "S")
    rows = tool.interrupt()
    parked = [at for at, row in enumerate(rows) if row["state"] == "P"]
    between = rows[parked[0]:parked[-1] + 1]
    check(all(row["state"] == "P" for row in between), "states %s", [row["state"] for row in between])
    on_us = sum(int(row["cpu_us"] or 0) for row in rows)
    check(on_us < US_PER_S * SCANS / HZ / 2, "%d us on a CPU, which was off for %d scans of %d Hz", on_us, len(parked), HZ)
