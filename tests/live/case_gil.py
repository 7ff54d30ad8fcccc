"""Holders of Python's GIL, against programs that know them (tests/stack/gil.py), of every installed Python 3.11 to 3.14."""
import json
import os
import subprocess

import case_python
from harness import START_S, STOP_S, Findings, Process, Skip, case, check, scans_of, wait_until

SCRIPT = os.path.join(os.path.dirname(case_python.SCRIPT), "gil.py")
COLUMNS = "state,waits_on,blocker_tid,blocker_kind,blocker_sure,chain,root_tid,root_why,root_waits_on"
SECONDS = 4


class Gil(Process):
    def __init__(self, python, name, prefix=()):
        self.words = "%s %s" % (python, name)
        super().__init__([*prefix, python, SCRIPT, name])

    def wait_ready(self):
        wait_until(lambda: b"\n" in self.out, 60, self.words)
        self.told = json.loads(self.out)


def run(ctx, name, pythons, *args):
    """Pairs (program, its scans) of a run for each Python."""
    programs = [Gil(python, name) for python in pythons]
    ctx.started.extend(programs)
    for program in programs:
        program.wait_ready()
    rows = ctx.stream("-a", "-d", SECONDS, "-p", ",".join(str(program.told["pid"]) for program in programs), *args,
                      columns=COLUMNS).finish(0, START_S + SECONDS + STOP_S)
    return [(program, [[row for row in scan if int(row["pid"]) == program.told["pid"]] for _, scan in scans_of(rows)])
            for program in programs]


def waiting(program, scans):
    return [row for scan in scans for row in scan if row["state"] == "S" and int(row["tid"]) in program.told["waiters"]]


def expect_told(find, program, rows, chain, why):
    holder = str(program.told["holder"])
    words = "GIL held by %s " % holder
    right = [row for row in rows if row["blocker_tid"] == holder and row["blocker_kind"] == "GIL"
             and row["blocker_sure"] == "certain" and row["chain"] == chain and row["root_why"] == why
             and row["waits_on"].startswith(words) and row["waits_on"].endswith(" " + program.told["place"])]
    find.expect(len(rows) >= 10, "%s: %d samples", program.words, len(rows))
    find.expect(len(right) >= 0.95 * len(rows), "%s: %d of %d are right, not %s", program.words, len(right), len(rows),
                [row for row in rows if row not in right][:3])


@case
def gil_wait_is_work(ctx):
    """Threads that wait for the GIL are shown without -a, also if no column shows the GIL."""
    find = Findings()
    program = Gil(case_python.interpreters(ctx)[0], "held")
    ctx.started.append(program)
    program.wait_ready()
    rows = ctx.stream("-d", SECONDS, "-p", program.told["pid"], columns="state,why").finish(0, START_S + SECONDS + STOP_S)
    waited_s = sum(int(row["weight_us"]) for row in rows if row["state"] == "S" and row["why"] == "lock"
                   and int(row["tid"]) in program.told["waiters"]) / 1e6
    find.expect(waited_s >= 0.6 * SECONDS * len(program.told["waiters"]), "%s: %.1f s of %d threads", program.words, waited_s,
                len(program.told["waiters"]))
    find.close()


@case(alone=True)
def gil_holder(ctx):
    """Threads wait for the GIL of one that naps in C: that holder is shown, and its line of the program; in a chain, certain."""
    find = Findings()
    for program, scans in run(ctx, "held", case_python.interpreters(ctx)):
        rows = waiting(program, scans)
        comm = rows and rows[0]["chain"].split(" ")[0]
        expect_told(find, program, rows, "%s GIL> %s" % (comm, comm), "sleep")
    find.close()


@case(paired=True)
def gil_deadlock(ctx):
    """The holder of the GIL waits in C for a mutex whose holder waits for the GIL: a deadlock."""
    find = Findings()
    for program, scans in run(ctx, "deadlock", case_python.interpreters(ctx)):
        rows = waiting(program, scans)
        comm = rows and rows[0]["chain"].split(" ")[0]
        expect_told(find, program, rows, "%s GIL> %s mutex> %s DEADLOCK" % (comm, comm, comm), "deadlock")
    find.close()


@case(thorough=True)
def gil_turns(ctx):
    """A GIL that goes from thread to thread all the time: in a scan all certain edges lead to one thread, which does not wait
    for the GIL itself."""
    find = Findings()
    for program, scans in run(ctx, "turns", case_python.interpreters(ctx)[:2], "-F", 50):
        told = 0
        for scan in scans:
            edges = [row for row in scan if row["blocker_kind"] == "GIL" and row["blocker_sure"] == "certain"]
            told += len(edges)
            find.expect(len({row["blocker_tid"] for row in edges}) <= 1, "%s: several holders: %s", program.words, edges)
            find.expect(not any("DEADLOCK" in row["chain"] or row["root_waits_on"].startswith("GIL held") for row in edges),
                        "%s: the holder waits: %s", program.words, edges)
        find.expect(told >= 10, "%s: %d edges", program.words, told)
    find.close()


@case(paired=True)
def gil_in_a_pid_namespace(ctx):
    """In a pid namespace, where the interpreter knows the holder by another id than /proc does, the holder is shown."""
    prefix = ["unshare", "--pid", "--fork", "--kill-child"]
    if subprocess.run(prefix + ["true"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("no pid namespace can be made")
    program = Gil(case_python.interpreters(ctx)[0], "held", prefix)
    ctx.started.append(program)
    program.wait_ready()
    with open("/proc/%d/task/%d/children" % (program.pid, program.pid)) as children:
        pid = children.read().split()[0]
    check(int(pid) != program.told["pid"], "its pid is ours")
    rows = ctx.stream("-a", "-d", SECONDS, "-p", pid, columns=COLUMNS).finish(0, START_S + SECONDS + STOP_S)
    told = [row for row in rows if row["blocker_kind"] == "GIL"]
    check(len(told) >= 10 and {row["blocker_tid"] for row in told} == {pid}, "not held by %s: %s", pid, told[-3:])
    # a waiter that has just begun another sleep may not be shown with the place where it waits now
    elsewhere = [row for row in told if not row["waits_on"].endswith(" " + program.told["place"])]
    check(len(elsewhere) <= 0.05 * len(told), "%d of %d elsewhere: %s", len(elsewhere), len(told), elsewhere[:3])
