"""Stacks of the scan time: threads that are in a state for a short time have them, too, on a full host."""
import shutil
import time

from case_trace import Stolen
from harness import SLOW, START_S, Findings, Skip, case, check, timestamp_s, wait_until
from parts import Part, Postgres

SECONDS = 20
BEGIN_S = 2   # time in which files and names are read on a full host; its samples do not count
RATE = 20
LEAST = 0.95  # share of a state's samples that must have both stacks
FEW = 60      # fewer samples are too few for a share
APART = 0.03  # difference between samples and truth, as a share of the time in a function, that is allowed on top of the error of sampling
LATE_US = 6000  # no nap lasts longer, unless a hypervisor has taken the CPU whose timer ends it
STATES = ("ON", "RQ", "D", "S")


def has_kernel_stack(row):
    """True if the kernel stack is there, or need not be: in user mode there is only the interrupt that looked, or displaced the thread."""
    return row["kstack"] or (row["ustack"] and row["state"] in ("ON", "RQ") and not row["syscall"])


def cover(ctx, pids):
    """Nearly all samples of these processes have both stacks, in each state."""
    if SLOW > 1:
        raise Skip("where CPUs are emulated a scan takes longer than what it looks at")
    stolen, findings = Stolen(), Findings()
    rows = ctx.rows("-a", "-F", RATE, "-p", ",".join(str(pid) for pid in pids), seconds=BEGIN_S + SECONDS,
                    columns="state,syscall,ustack,kstack")
    least = LEAST - 2 * stolen.share()  # twice: a hypervisor may have taken the CPU of the thread, or tsnap's
    first = sorted({row["timestamp"] for row in rows})[BEGIN_S * RATE]
    for state in STATES:
        mine = [row for row in rows if row["state"] == state and row["timestamp"] >= first]
        whole = [row for row in mine if row["ustack"] and has_kernel_stack(row)]
        if len(mine) >= FEW:
            print("# %s: %.1f %% of %d" % (state, 100 * len(whole) / len(mine), len(mine)))
            findings.expect(len(whole) >= least * len(mine), "%s: %d of %d samples have both stacks", state, len(whole), len(mine))
    findings.close()


@case(alone=True, thorough=True)
def stacks_scan_time_coverage(ctx):
    """With busy threads of four kinds, more than CPUs, nearly all samples of each state have their user and kernel stack."""
    cover(ctx, [ctx.workload("mixed")["pid"]])


@case(alone=True, thorough=True)
def stacks_scan_time_of_postgres(ctx):
    """Nearly all samples of PostgreSQL's backends and their clients have both stacks, while a build runs without end."""
    directory = ctx.temporary()
    with open(directory + "/build.c", "w", encoding="ascii") as file:
        for number in range(2000):
            file.write("int f%d(int a, int b) { for (int i = 0; i < b; i++) a = a * %d + i %% (b + 1); return a; }\n" % (number, number))
    if not shutil.which("cc"):
        raise Skip("no compiler")
    server = Postgres(ctx)
    server.fill(ctx)
    game = server.pgbench(ctx, "-n", "-N", "-c", 8, "-j", 2, "-T", 600)
    wait_until(lambda: len(server.clients()) == 8, START_S, "eight connections")
    Part(ctx, server.user, ["sh", "-c", "while cc -O2 -c build.c; do :; done"], directory)
    cover(ctx, [*sorted(server.clients()), game.pid])


def spent(workload, count):
    """Time in each function so far, in s, as the workload reports it."""
    workload.process.stdin.write(b"tell\n")
    workload.process.stdin.flush()
    values = workload.wait_done(count)
    return int(values["short_ns"]) / 1e9, int(values["long_ns"]) / 1e9


@case(alone=True, thorough=True)
def stacks_scan_time_shares(ctx):
    """On a full host a thread sleeps 50 us and 5 ms in turn, in two functions: each function has its share of the samples."""
    if SLOW > 1:
        raise Skip("where CPUs are emulated a scan takes longer than what it looks at")
    naps = ctx.workload("naps")
    ctx.workload("mixed")
    tool = ctx.stream("-a", "-F", 50, "-p", naps["pid"], "-t", naps.tid, "-d", 2 * SECONDS, columns="state,state_us,ustack,ufuncs")
    tool.wait_scans(5)
    before, begin = spent(naps, 1), time.time()
    time.sleep(1.5 * SECONDS)
    after, end = spent(naps, 2), time.time()
    rows = [row for row in tool.finish(limit_s=60) if begin <= timestamp_s(row["timestamp"]) <= end]
    told = [row for row in rows if row["ustack"]]
    mine = [row for row in rows if row["state"] != "S" or int(row["state_us"]) < LATE_US]
    lacking = sum(not row["ustack"] for row in mine)
    check(len(mine) >= len(rows) / 2, "%d of %d naps ended late", len(rows) - len(mine), len(rows))
    check(lacking <= (1 - LEAST) * len(mine), "%d of %d samples have no user stack", lacking, len(mine))
    counts = [sum(name in row["ufuncs"] for row in told) for name in ("nap_short", "nap_long")]
    check(sum(counts) >= 0.9 * len(told), "only %d of %d stacks have one of the two: %s", sum(counts), len(told), told[-3:])
    exact = (after[0] - before[0]) / (after[0] + after[1] - before[0] - before[1])
    sampled = counts[0] / sum(counts)
    error = 3 * (exact * (1 - exact) / sum(counts)) ** 0.5
    print("# short naps: %.1f %% of %d samples, %.1f %% of the time" % (100 * sampled, sum(counts), 100 * exact))
    check(abs(sampled - exact) <= APART + error, "short naps: %.3f of %d samples, %.3f of the time", sampled, sum(counts), exact)
