"""A view of the whole host: every thread that /proc shows, and threads that come and go by the thousand."""
import time

import truth
from harness import SLOW, START_S, Findings, case, check, number, rows_of, scans_of

MASK = (1 << 64) - 1
EVERYTHING = "ppid,uid,comm,state,syscall_nr,arg0,arg1,arg2,arg3,arg4,arg5,kthread"


def expect_thread(find, row, thread):
    """Compares a row with a thread whose state did not change while tsnap ran."""
    who = "%d (%s)" % (thread.tid, row["comm"])
    find.expect(row["state"] in truth.STATES.get(thread.letter, ()), "%s: state %s, /proc says %s", who, row["state"],
                thread.letter)
    for column, value in (("pid", thread.pid), ("ppid", thread.ppid), ("uid", thread.uid),
                          ("kthread", int(thread.kernel))):
        find.expect(number(row, column) == value, "%s: %s is '%s', /proc says %s", who, column, row[column], value)
    if thread.kernel or thread.letter not in "SD":
        return
    nr = thread.nr if thread.nr is not None and thread.nr >= 0 else None
    find.expect(number(row, "syscall_nr") == nr, "%s: system call '%s', /proc says %s", who, row["syscall_nr"], nr)
    if nr is None or thread.args is None:
        return
    args = [number(row, "arg%d" % i) for i in range(6)]
    find.expect([None if arg is None else arg & MASK for arg in args] == thread.args, "%s: arguments %s, /proc says %s",
                who, args, thread.args)


@case
def whole_host(ctx):
    """-a against a walk of /proc: every thread is in every scan, with its state, ids, system call and arguments."""
    before = truth.threads()
    tool = ctx.stream("-a", "-d", 2, columns=EVERYTHING)
    seen = set(before)
    deadline = time.monotonic() + START_S + 10 * SLOW
    while tool.code is None and time.monotonic() < deadline:
        seen |= truth.tids()
        time.sleep(0.1)
    after = truth.threads()
    scans = scans_of(tool.finish())
    seen |= set(after)
    check(scans, "no scan")
    stayed = [tid for tid in after if tid in before and before[tid].start == after[tid].start]
    find = Findings()
    for when, rows in scans:
        by_tid = {int(row["tid"]): row for row in rows}
        find.expect(len(by_tid) == len(rows), "a thread twice in the scan of %s", when)
        for tid in stayed:
            if tid not in by_tid:
                find.expect(False, "%d (%s) is missing in a scan", tid, after[tid].stat[:32])
            elif before[tid].same == after[tid].same:
                expect_thread(find, by_tid[tid], after[tid])
        find.expect(tool.pid not in by_tid, "tsnap shows itself")
        find.expect(0 not in by_tid, "an idle task is shown")
    often = {}
    for _, rows in scans:
        for row in rows:
            often[int(row["tid"])] = often.get(int(row["tid"]), 0) + 1
    for tid, count in often.items():
        find.expect(tid in seen or count < 10, "%d, in %d scans, is not in /proc", tid, count)
    find.close()


@case(alone=True)
def exit_storm(ctx):
    """Forks and threads that exit at once: nothing breaks, and no exited thread stays in scans."""
    workload = ctx.workload("exit_storm")
    tool = ctx.stream("-a", columns="comm,state,ppid")
    tool.wait_scans(2)
    workload.say(str(int(2000 * SLOW)))
    done = workload.wait_done(limit_s=120 * SLOW)
    count = int(done["forks"]) + int(done["threads"])
    check(count > 100, "a storm of only %d", count)
    # A BPF program can be skipped, or its map operation refused, when it interrupts another one: an exited thread is then found
    # by checking /proc, within a second.
    quiet = len(tool.scans()) + 30
    tool.wait_scans(quiet + 5)
    alive = truth.tids()
    scans = scans_of(tool.interrupt())[quiet:]
    ghosts = {row["tid"] for _, rows in scans for row in rows
              if row["comm"] in ("workload", "storm") and int(row["tid"]) not in alive}
    check(not ghosts, "%d of %d dead threads are shown", len(ghosts), count)
    check("max-threads" not in tool.err, "the map filled up: %s", tool.err)


@case(alone=True)
def exit_storm_in_small_map(ctx):
    """A map with less capacity than the storm has threads, but more than the host has, does not fill with exited threads."""
    workload = ctx.workload("exit_storm")
    room = 2 * len(truth.tids()) + 200
    tool = ctx.stream("-a", "--max-threads", room, columns="comm,state")
    tool.wait_scans(2)
    for i in range(1, 20):
        workload.say(str(int(500 * SLOW)))
        done = workload.wait_done(i, 60 * SLOW)
        if int(done["forks"]) + int(done["threads"]) > 3 * room:
            break
    sleeper = ctx.workload("sleep", call="futex")
    tool.wait_scans(3, lambda row: row["tid"] == sleeper["tid"] and row["state"] == "S")
    tool.interrupt()


@case
def many_threads(ctx):
    """Four thousand threads: each one is in each scan, once."""
    wanted = 4000 if SLOW == 1 else 1000
    workload = ctx.workload("many", threads=wanted, pairs=5)
    rows = ctx.rows("-a", "-c", "crowd", "-F", 2, seconds=3, columns="comm,state,ppid")
    scans = [[row for row in scan if row["ppid"] == workload["pid"]] for _, scan in scans_of(rows)]
    check(scans, "no scan")
    for scan in scans:
        check(len({row["tid"] for row in scan}) == len(scan) == wanted, "%d rows for %d threads", len(scan), wanted)


@case
def map_too_small(ctx):
    """--max-threads 64: threads in the map are right, the others are reported as missed."""
    workload = ctx.workload("many", threads=200)
    still = truth.threads()
    tool = ctx.stream("-a", "-d", 2, "--max-threads", 64, columns=EVERYTHING)
    rows = tool.finish(0, START_S + 30 * SLOW)
    now = truth.threads()
    scans = scans_of(rows)
    check(scans, "no scan")
    find = Findings()
    for _, scan in scans:
        check(len(scan) <= 64, "%d threads from a map of 64", len(scan))
        for row in scan:
            tid = int(row["tid"])
            if tid in now and tid in still and still[tid].same == now[tid].same:
                expect_thread(find, row, now[tid])
    find.close()
    check(any(rows_of(rows, tid) for tid in still), "nobody is in the map")
    missed = [line for line in tool.err.splitlines() if "max-threads" in line]
    check(missed and any(c.isdigit() for c in missed[0]), "the threads that did not fit are not told: '%s'", tool.err)
    check(workload.code is None, "the workload ended")


@case
def map_too_small_report(ctx):
    """--max-threads 64 in a report: its footer counts the threads that are not in the map."""
    ctx.workload("many", threads=200)
    tool = ctx.plain("-a", "-d", 1, "--max-threads", 64)
    tool.finish_plain(0)
    check("max-threads" in tool.out.decode() + tool.err, "the threads that did not fit are not told")
