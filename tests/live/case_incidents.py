"""--trace incidents: processes that were killed or failed, and by whom; threads stuck in D; live, and in a recording."""
import os
import re
import signal
import subprocess
import sys
import time

import case_kernel_waits
from harness import SLOW, START_S, Skip, case, check, wait_until

MEMORY = "/sys/fs/cgroup/memory"  # control groups of version 1
LIMIT_BYTES = 24 << 20
EATER = """
import os, sys, time
sys.stdin.readline()
kept = []
while True:
    kept.append(b"x" * (1 << 20))
    time.sleep(0.01)
"""
# Ends by SIGTERM, but from its handler, as programs do that clean up first.
CLEANS_UP = """
import os, signal, time
def ended(number, frame):
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
signal.signal(signal.SIGTERM, ended)
print("ready", flush=True)
time.sleep(1000)
"""
# Its first thread has ended before another one dies.
LEADER_GONE = """
import ctypes, os, signal, threading, time
def other():
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGUSR1)
    time.sleep(1000)
threading.Thread(target=other).start()
ctypes.CDLL(None).pthread_exit(None)
"""
# A child of init that fails, as a service does, and one that does not.
ORPHANS = """
import os, time
for status in (0, 7):
    if not os.fork():
        parent = os.getpid()
        child = os.fork()
        if child:
            print(child, flush=True)
            os._exit(0)
        while os.getppid() == parent:
            time.sleep(0.01)
        time.sleep(0.1)
        os._exit(status)
    os.wait()
"""
FAULT = "import ctypes; ctypes.string_at(0)"


def python(text, *args, **popen):
    return subprocess.Popen([sys.executable, "-c", text, *args], stderr=subprocess.DEVNULL, **popen)


def begin(ctx, *args):
    tool = ctx.plain("--csv", "--trace", "incidents", "-F", 20, *args)
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    return tool


def of(rows, pid):
    return [(row["outcome"], row["signal"], row["sender_pid"], row["sender_comm"]) for row in rows if row["pid"] == str(pid)]


def scene():
    """Processes that end in each way. Gives {pid: rows that it must have}."""
    expected, own = {}, str(os.getpid())
    with open("/proc/self/comm", encoding="ascii") as file:
        comm = file.read().strip()
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGRTMIN + 3):
        process = subprocess.Popen(["sleep", "1000"])
        time.sleep(0.3)
        process.send_signal(number)
        process.wait()
        name = number.name if isinstance(number, signal.Signals) else "SIG%d" % number
        expected[process.pid] = [("killed", name, own, comm)]
    process = python(CLEANS_UP, stdout=subprocess.PIPE)
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    process.wait()
    expected[process.pid] = [("killed", "SIGTERM", own, comm)]
    process = python(FAULT)
    process.wait()
    expected[process.pid] = [("killed", "SIGSEGV", "", "kernel")]
    process = python(LEADER_GONE)
    process.wait()
    expected[process.pid] = [("killed", "SIGUSR1", str(process.pid), "python3")]
    # its parent asked for it, and knows of it
    process = subprocess.Popen(["sh", "-c", "trap : USR1; kill -USR1 $$; exit 3"])
    process.wait()
    expected[process.pid] = []
    lines = subprocess.run([sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE, check=True).stdout.split()
    expected[int(lines[0])] = []
    time.sleep(0.5)
    reaper = int(subprocess.run(["sh", "-c", "(sh -c 'sleep 0.2; ps -o ppid= -p $$' &)"], stdout=subprocess.PIPE, check=True).stdout)
    expected[int(lines[1])] = [("exit 7", "", "", "")] if reaper == 1 else []
    return expected


def compare(rows, expected):
    for pid, wanted in expected.items():
        check(of(rows, pid) == wanted, "%d: %s, not %s", pid, of(rows, pid), wanted)


@case
def incidents_and_senders(ctx):
    """Each process that a signal ended, once, with its sender, also if a handler or a first thread that has ended is in between."""
    tool = begin(ctx)
    expected = scene()
    time.sleep(0.5)
    compare(tool.interrupt(), expected)


@case
def incidents_of_memory(ctx):
    """The OOM killer's victim, with who asked for the memory; a process that is killed otherwise in the same group is none."""
    if not os.path.exists(MEMORY + "/memory.limit_in_bytes"):
        raise Skip("no memory controller of version 1")
    group = "%s/tsnap-test-%d" % (MEMORY, os.getpid())
    os.mkdir(group)
    ctx.at_end(lambda: os.rmdir(group))
    with open(group + "/memory.limit_in_bytes", "w", encoding="ascii") as file:
        file.write(str(LIMIT_BYTES))
    tool = begin(ctx)
    eater, other = (python(EATER, stdin=subprocess.PIPE) for _ in range(2))
    for process in (eater, other):
        with open(group + "/tasks", "w", encoding="ascii") as file:
            file.write(str(process.pid))
    other.kill()
    other.wait()
    eater.stdin.write(b"\n")
    eater.stdin.flush()
    check(eater.wait(START_S) == -signal.SIGKILL, "the eater of memory ended by itself")
    time.sleep(0.5)
    rows = tool.interrupt()
    check(of(rows, eater.pid) == [("oom killed", "SIGKILL", str(eater.pid), "python3")], "%s", of(rows, eater.pid))
    check([row[:3] for row in of(rows, other.pid)] == [("killed", "SIGKILL", str(os.getpid()))], "%s", of(rows, other.pid))


@case(thorough=True)
def incidents_stuck(ctx):
    """A thread in D for ten seconds is told once, a shorter wait never; also where samples are summed up."""
    tool, report = begin(ctx, "-d", 14 * SLOW), ctx.plain("--trace", "incidents", "-d", 14 * SLOW)
    workload = ctx.workloads([("vfork", {})])[0]
    report.finish_plain()
    rows = [row for row in tool.finish() if row["outcome"] == "stuck in D" and row["pid"] == str(workload.tgid)]
    check(len(rows) == 1 and rows[0]["tid"] == str(workload.tid), "%s", rows)
    check(10e9 <= int(rows[0]["duration_ns"]) < 12e9 and rows[0]["wchan"], "%s", rows)
    lines = [line for line in report.out.decode().splitlines() if "stuck in D" in line and " %d " % workload.tid in line]
    check(len(lines) == 1, "%s", report.out.decode())


@case
def incidents_recorded(ctx):
    """A recorder has them unasked; a replay of them shows the same as a live trace, by time and filter, and what the victim did before."""
    directory = ctx.temporary()
    tool, recorder = begin(ctx), ctx.plain("-o", directory, "-F", 20, "--flush", 0.5)
    time.sleep(2)
    victim = python("while True: pass")
    time.sleep(2)
    expected = scene()
    victim.kill()
    victim.wait()
    time.sleep(0.5)
    rows = tool.interrupt()
    recorder.signal(signal.SIGINT)
    recorder.finish_plain()
    compare(rows, expected)
    replayed = ctx.plain("--csv", "--replay", directory, "--trace", "incidents").finish()
    compare(replayed, expected)
    died = [row for row in replayed if row["pid"] == str(victim.pid)]
    check(len(died) == 1 and died[0]["signal"] == "SIGKILL", "%s", died)
    time_of = died[0]["timestamp"]
    others = ctx.plain("--csv", "--replay", directory, "--trace", "incidents", "--to", time_of).finish()
    check(others == [row for row in replayed if row["timestamp"] < time_of] and others, "--to %s: %s", time_of, others)
    one = ctx.plain("--csv", "--replay", directory, "--trace", "incidents", "-p", victim.pid, "--filter", "signal=SIGKILL").finish()
    check(one == died, "%s", one)
    text = ctx.plain("--replay", directory, "--trace", "incidents")
    text.finish_plain()
    check(text.out.decode().count(" incidents ") == len(replayed), "%s", text.out.decode())
    before = ctx.plain("--replay", directory, "-p", victim.pid, "--to", time_of, "-g", "state,comm", "--csv", "--report")
    before.finish_plain()
    check("python3" in before.out.decode() and "ON" in before.out.decode(), "%s", before.out.decode())
    joined = ctx.plain("--replay", directory, "--died", victim.pid)
    joined.finish_plain()
    text = joined.out.decode()
    check(re.search(r"^ +[\d.]+ +[\d.]+ +[\d.]+% .* ON +python3", text, re.M), "%s", text)
    check(re.search(r"^1 single event$", text, re.M) and re.search(r"^%s .* killed +SIGKILL" % time_of, text, re.M), "%s", text)
    last = ctx.plain("--csv", "--replay", directory, "--died", victim.pid).finish()
    check(last and {row["pid"] for row in last} == {str(victim.pid)}, "%s", last[:3])
    nobody = ctx.plain("--replay", directory, "--died", "nobody at all")
    nobody.finish_plain(2)
    check("python3 (%d)" % victim.pid in nobody.err, "%s", nobody.err)


PIDS = "/sys/fs/cgroup/pids"
# Begins processes until the kernel refuses one, once more for each line that it reads.
FORKS = """
import os, sys, time
children = []
def fork():
    while len(children) < 20:
        try:
            child = os.fork()
        except BlockingIOError:
            return
        if not child:
            time.sleep(1000)
        children.append(child)
for line in sys.stdin:
    fork()
    print(len(children), flush=True)
for child in children:
    os.kill(child, 9)
    os.wait()
"""


def group_made(ctx, controller, **files):
    path = "%s/tsnap-test-%d" % (controller, os.getpid())
    os.mkdir(path)
    ctx.at_end(lambda: os.rmdir(path))
    for name, value in files.items():
        with open("%s/%s" % (path, name.replace("__", ".")), "w", encoding="ascii") as file:
            file.write(str(value))
    return path


def of_group(rows, path):
    """Outcomes and times of a group's incidents."""
    name = path[path.index("/tsnap-test"):]
    return [(row["outcome"], row["waits_on"]) for row in rows if " of %s" % name in row["waits_on"]]


def counted(path, name, word):
    with open("%s/%s" % (path, name), encoding="ascii") as file:
        return dict(line.split() for line in file)[word]


@case
def incidents_of_groups(ctx):
    """Forks that a group's limit refuses, and groups without memory, as often as the kernel counts; not what it counted before, nor groups that
    stay within their limit; also in a recording."""
    if not os.path.isdir(PIDS) or not os.path.exists(MEMORY + "/memory.oom_control"):
        raise Skip("no controllers of version 1")
    group = group_made(ctx, PIDS, pids__max=4)
    memory = group_made(ctx, MEMORY, memory__limit_in_bytes=LIMIT_BYTES)
    if "oom_kill " not in open(memory + "/memory.oom_control", encoding="ascii").read():
        raise Skip("the kernel does not count a group's kills (before 4.13)")
    directory = ctx.temporary()
    forks = python(FORKS, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        with open(group + "/cgroup.procs", "w", encoding="ascii") as file:
            file.write(str(forks.pid))

        def refuse():
            forks.stdin.write(b"\n")
            forks.stdin.flush()
            check(int(forks.stdout.readline()) == 3, "the limit does not hold")

        refuse()  # before anyone looks
        tool, recorder = begin(ctx, "-d", 9 * SLOW), ctx.plain("-o", directory, "-F", 20, "--flush", 0.5)
        wait_until(lambda: os.listdir(directory), START_S, "the recorder's first frame")
        time.sleep(3 * SLOW)
        before = int(counted(group, "pids.events", "max"))
        check(before >= 1, "nothing was counted")
        refuse()
        eater = python(EATER, stdin=subprocess.PIPE)
        with open(memory + "/tasks", "w", encoding="ascii") as file:
            file.write(str(eater.pid))
        eater.stdin.write(b"\n")
        eater.stdin.flush()
        check(eater.wait(START_S) == -signal.SIGKILL, "the eater of memory ended by itself")
        time.sleep(2.5 * SLOW)
        rows = tool.finish()
        recorder.signal(signal.SIGINT)
        recorder.finish_plain()
        check(int(counted(group, "pids.events", "max")) == before + 1, "counted %s", counted(group, "pids.events", "max"))
        name, memory_name = group[len(PIDS):], memory[len(MEMORY):]
        wanted = [("fork refused", "pids.max of " + name), ("out of memory", "memory.limit_in_bytes of " + memory_name)]
        check(sorted(of_group(rows, group)) == wanted, "%s", of_group(rows, group))
        replayed = ctx.plain("--csv", "--replay", directory, "--trace", "incidents").finish()
        check(sorted(of_group(replayed, group)) == wanted, "recorded: %s", of_group(replayed, group))
        check(of(rows, eater.pid)[0][0] == "oom killed", "%s", of(rows, eater.pid))
        filtered = ctx.plain("--csv", "--replay", directory, "--trace", "incidents", "--filter", "outcome='fork refused'").finish()
        check(of_group(filtered, group) == wanted[:1], "filtered: %s", filtered)
    finally:
        forks.stdin.close()
        forks.wait()
        forks.stdout.close()


@case(thorough=True)
def incidents_of_mounts(ctx):
    """A thread that has waited ten seconds for a file of a mount whose server is stopped is told once, with the mount; one that sleeps is not."""
    tool = begin(ctx, "-d", 14 * SLOW)
    sleeper = subprocess.Popen(["sleep", "1000"])
    try:
        waiter, _, folder = case_kernel_waits.begin(ctx, case_kernel_waits.FUSE)
        rows = [row for row in tool.finish() if row["outcome"].startswith("stuck") and row["pid"] in (str(waiter), str(sleeper.pid))]
    finally:
        sleeper.kill()
        sleeper.wait()
    check([(row["pid"], row["outcome"]) for row in rows] == [(str(waiter), "stuck on a file")], "%s", rows)
    check(folder in rows[0]["waits_on"] and 10e9 <= int(rows[0]["duration_ns"]) < 12e9, "%s", rows)
