"""Holders of Python's GIL and of its locks, against programs that know them (tests/stack/gil.py), of every installed Python 3.11 to 3.14."""
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


# Prints its pid, its threads by name, and the address of a lock. A lock of another kind is waited for, too
RLOCKS = """
import json, os, threading, time
first, second, plain, tids = threading.RLock(), threading.RLock(), threading.Lock(), {}
def thread(name, function):
    def run():
        tids[name] = threading.get_native_id()
        function()
    threading.Thread(target=run, daemon=True).start()
    while name not in tids:
        time.sleep(0.01)
def hold():
    with first, first:
        time.sleep(1000)  # here
def enter():
    with first:
        pass
def call():
    first.acquire()
def call_timed():
    first.acquire(timeout=1000)
def cross(one, other):
    with one:
        time.sleep(0.5)
        with other:
            pass
plain.acquire()
if len(__import__("sys").argv) > 1:
    thread("holder", lambda: cross(first, second))
    thread("crossing", lambda: cross(second, first))
else:
    thread("holder", hold)
    time.sleep(0.2)
    for function in (enter, call, call_timed, plain.acquire):
        thread(function.__name__, function)
time.sleep(1)
print(json.dumps({"pid": os.getpid(), "tids": tids, "address": "%#x" % id(first)}), flush=True)
time.sleep(1000)
"""


def rlocks(ctx, *args):
    """Pairs (what the program told, its last rows by tid) for each Python that is known to have such locks."""
    programs = [Process([python, "-c", RLOCKS, *args]) for python in case_python.interpreters(ctx)
                if subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info >= (3, 14))"], check=False).returncode == 0]
    if not programs:
        raise Skip("no Python 3.11 to 3.13")
    ctx.started.extend(programs)
    for program in programs:
        wait_until(lambda program=program: b"\n" in program.out, START_S, "the program")
    told = [json.loads(program.out) for program in programs]
    rows = ctx.rows("-a", "-p", ",".join(str(one["pid"]) for one in told), seconds=SECONDS, columns="why," + COLUMNS)
    return [(one, {name: [row for row in rows if int(row["tid"]) == tid][-1] for name, tid in one["tids"].items()}) for one in told]


@case
def rlock_holder(ctx):
    """A thread waits for the thread that has the threading.RLock, whichever way it asks for it; whoever has a threading.Lock is not known."""
    find = Findings()
    for told, rows in rlocks(ctx):
        holder, line = told["tids"]["holder"], RLOCKS.split("# here")[0].count("\n")
        comm = rows["holder"]["chain"]
        for name in ("enter", "call", "call_timed"):
            row = rows[name]
            find.expect(row["waits_on"].startswith("RLock %s held by %d " % (told["address"], holder)) and row["waits_on"].endswith(" <string>:%d" % (line + 1)),
                        "%s: %s", name, row)
            find.expect((row["why"], row["blocker_tid"], row["blocker_kind"], row["blocker_sure"], row["chain"]) ==
                        ("lock", str(holder), "Python lock", "certain", "%s Python lock> %s" % (comm, comm)), "%s: %s", name, row)
        find.expect(rows["acquire"]["waits_on"].startswith("futex 0x") and not rows["acquire"]["blocker_kind"], "a plain lock: %s", rows["acquire"])
    find.close()


@case
def rlock_deadlock(ctx):
    """Two threads that each wait for the other's threading.RLock are in a deadlock."""
    find = Findings()
    for _, rows in rlocks(ctx, "cross"):
        for row in rows.values():
            find.expect(row["blocker_kind"] == "Python lock" and row["chain"].endswith(" DEADLOCK"), "%s", row)
    find.close()


# The child has a copy of the lock, but not of the thread that has it
RLOCK_FORKED = """
import os, threading, time
lock = threading.RLock()
def hold():
    with lock:
        time.sleep(1000)
threading.Thread(target=hold, daemon=True).start()
time.sleep(0.3)
child = os.fork()
if not child:
    __import__("ctypes").CDLL(None).prctl(1, 9)
    with lock:
        pass
print(child, flush=True)
time.sleep(1000)
"""


@case
def rlock_lost(ctx):
    """A thread that waits for a threading.RLock of a thread that its process has not waits for ever."""
    pythons = [python for python in case_python.interpreters(ctx)
               if subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info >= (3, 14))"], check=False).returncode == 0]
    if not pythons:
        raise Skip("no Python 3.11 to 3.13")
    process = Process([pythons[0], "-c", RLOCK_FORKED])
    ctx.started.append(process)
    wait_until(lambda: b"\n" in process.out, START_S, "the program")
    rows = ctx.rows("-t", int(process.out), seconds=SECONDS, columns="why," + COLUMNS)
    check(rows and (rows[-1]["why"], rows[-1]["waits_on"].split(" ", 2)[::2]) == ("lock", ["RLock", "held by a thread that has ended"]), "%s", rows[-1:])
