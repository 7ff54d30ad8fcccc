"""Tasks of asyncio, against what the interpreter itself reports (tests/stack/tasks_python.py)."""
import collections
import csv
import io
import json
import os
import re
import shlex
import subprocess
import sys

import case_python
import truth
from case_trouble import expect_error
from harness import START_S, STOP_S, Process, Skip, case, check, wait_until

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stack", "tasks_python.py")
RANGE = re.compile(r"Task-(\d+)\.\.Task-(\d+)")
ROW = re.compile(r"^ *(\d+)  (\w+) +(\d+|-)  ", re.M)


def python_of(ctx, minor):
    """Command of a Python 3.14, or of another minor version."""
    names = [shlex.split(ctx.options.python)] if ctx.options.python else [[name] for name in case_python.interpreters(ctx)]
    for words in names:
        done = subprocess.run([*words, "-c", "import sys; print(*sys.version_info[:2])"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if done.stdout.split() == [b"3", b"%d" % minor]:
            return words
    raise Skip("no Python 3.%d here (--python)" % minor)


def program_start(ctx, *words, prefix=()):
    with open(SCRIPT, encoding="utf-8") as file:
        process = Process([*prefix, *python_of(ctx, 14), "-c", file.read(), *words])
    ctx.started.append(process)
    wait_until(lambda: b"\n" in process.out or process.code is not None, 20, "its tasks")
    check(process.code is None, "the program ended: %s", process.err)
    return process


def tasks_csv(ctx, pid):
    tool = ctx.plain("--tasks", "--csv", "-p", pid)
    tool.finish_plain(0, START_S + STOP_S)
    return list(csv.DictReader(io.StringIO(tool.out.decode()))), tool.err


def names_of(text):
    """The names of a list, each once."""
    names = set()
    for name in text.split(", ") if text else ():
        found = RANGE.fullmatch(name)
        names |= {"Task-%d" % number for number in range(int(found[1]), int(found[2]) + 1)} if found else {name}
    return names


def groups_of(rows):
    """{(state, tid, stack, stacks of those that await): [count, names, awaited by]} of rows with single tasks' names."""
    stacks = {row["name"]: ";".join(row["stack"]) for row in rows}
    groups = collections.defaultdict(lambda: [0, set(), set()])
    for row in rows:
        group = groups[row["state"], row["tid"], ";".join(row["stack"]), frozenset(stacks[name] for name in row["awaited_by"])]
        group[0] += 1
        group[1].add(row["name"])
        group[2] |= set(row["awaited_by"])
    return sorted((*key[:3], count, sorted(names), sorted(awaited_by)) for key, (count, names, awaited_by) in groups.items())


@case
def tasks(ctx):
    """--tasks has the same tasks, states, stacks, names and awaiters as the interpreter itself: of gather, TaskGroup, wait, wait_for,
    locks, queues, asynchronous generators, __await__ and threads; also while one task keeps the others from running. Without asyncio it
    says so."""
    process = Process([*python_of(ctx, 14), "-c", "import sys; print('ready', flush=True); sys.stdin.read()"])
    ctx.started.append(process)
    wait_until(lambda: b"\n" in process.out, 20, "a Python")
    expect_error(ctx.plain("--tasks", "-p", process.pid), 1, "it has not loaded asyncio")
    for words in [], ["busy"]:
        process = program_start(ctx, *words)
        wanted = groups_of(json.loads(process.out))
        check(len(wanted) >= 19 and sum(group[3] for group in wanted) >= 43, "the program has %s", wanted)
        if words:
            check({group[0] for group in wanted} == {"running", "ready", "waiting"}, "the program has %s", wanted)

        def rows_now(pid=process.pid):
            rows, err = tasks_csv(ctx, pid)
            check(not err, "%s", err)
            return rows
        found = [(row["state"], int(row["tid"]), row["stack"], int(row["count"]), sorted(names_of(row["names"])),
                  sorted(names_of(row["awaited_by"]))) for row in rows_now()]
        check(sorted(found) == wanted, "%s: tsnap has, and Python has not: %s; Python has: %s", words,
              [group for group in found if group not in wanted], [group for group in wanted if group not in found])
        text = ctx.plain("--tasks", "-p", process.pid)
        text.finish_plain(0, START_S + STOP_S)
        lines = text.out.decode()
        count = sum(group[3] for group in wanted)
        check(re.match(r"%d asyncio tasks of process %d, Python 3\.14\.\d+\n\n" % (count, process.pid), lines), "%s", lines)
        check(sorted((state, int(tid), int(number)) for number, state, tid in ROW.findall(lines)) ==
              sorted((group[0], group[1], group[3]) for group in wanted), "%s", lines)
        check(all(group[2] in lines for group in wanted), "%s", lines)
        tool = ctx.plain("--tasks", "--json", "-p", process.pid)
        tool.finish_plain(0, START_S + STOP_S)
        rows = [json.loads(line) for line in tool.out.decode().splitlines()]
        check(sorted((row["state"], row["tid"], row["stack"], row["count"]) for row in rows) == sorted(group[:4] for group in wanted),
              "%s", tool.out)


@case(thorough=True)
def tasks_in_a_pid_namespace(ctx):
    """The threads of event loops have the ids of /proc also where their process knows them by others."""
    prefix = ["unshare", "--pid", "--fork", "--kill-child"]
    if subprocess.run(prefix + ["true"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("no pid namespace can be made")
    process = program_start(ctx, prefix=prefix)
    pid = int(truth.read("/proc/%d/task/%d/children" % (process.pid, process.pid)).split()[0])
    inner = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        inner[int(re.search(r"^NSpid:.*\s(\d+)$", truth.read("/proc/%d/task/%s/status" % (pid, tid)), re.M)[1])] = int(tid)
    told = json.loads(process.out)
    wanted = {inner[row["tid"]] for row in told}
    rows, err = tasks_csv(ctx, pid)
    check(len(wanted) == 2 and pid in wanted and {int(row["tid"]) for row in rows} == wanted, "%s: %s", wanted, rows)
    check(not err and sum(int(row["count"]) for row in rows) == len(told), "%s: %s", err, rows)


@case
def tasks_that_move(ctx):
    """Tasks that run, end and begin all the time are shown with stacks that they can have, or counted as missed."""
    process = program_start(ctx, "moving")
    possible = re.compile(r"(mover \(.*\);((left|right) \(.*\);(turn \(.*\);(sleep \(.*\);(__sleep0 \(.*\))?)?)?)?"
                          r"|ending \(.*\);(turn \(.*\);(sleep \(.*\);(__sleep0 \(.*\))?)?)?"
                          r"|moving \(.*\);|threaded \(.*\);to_thread \(.*\);)")
    shown = missed = 0
    for _ in range(20):
        rows, err = tasks_csv(ctx, process.pid)
        counts = collections.Counter()
        for row in rows:
            # a task that runs may be in any of asyncio's functions
            check(row["state"] == "running" or possible.fullmatch(row["stack"] + ";") or possible.fullmatch(row["stack"]), "%s", row)
            for name in names_of(row["names"]):
                counts[name] += int(row["count"])
            if row["names"] == "end":
                check(row["stack"].startswith("threaded ") and row["state"] == "waiting", "%s", row)
        missed += bool(err)
        check(err or counts["mover"] == 10, "%s, and nothing was missed", counts)
        check(counts["mover"] <= 10 and (err or counts["end"] == 1), "%s", counts)
        shown += sum(counts.values())
    print("# %d tasks shown in 20 lists; in %d of these some were missed" % (shown, missed))
    check(shown > 100, "%d tasks shown in 20 lists", shown)


@case
def tasks_of_none(ctx):
    """--tasks says so for a program that is not Python's, of a version that does not say where its tasks are, and one
    that does not exist."""
    expect_error(ctx.plain("--tasks", "-p", 999999999), 1, "can't be read")
    sleeper = Process(["sleep", "60"])
    ctx.started.append(sleeper)
    expect_error(ctx.plain("--tasks", "-p", sleeper.pid), 1, "it runs no Python")
    if sys.version_info >= (3, 11) and sys.version_info < (3, 14):
        expect_error(ctx.plain("--tasks", "-p", os.getpid()), 1, "it runs Python 3.%d, and" % sys.version_info[1])
