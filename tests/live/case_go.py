"""Programs of Go: without symbols functions have names and stacks of Go's own threads are whole; goroutines that wait."""
import collections
import csv
import io
import json
import os
import re
import shutil
import subprocess

from case_context import context_of_goroutines, context_of_parked
from case_stacks import LATE_FILE, directory_of, expect_chains, frames_of, programs_start, since_whole
from case_stack_trouble import SHORT, report
from case_stack_truth import tids_of
from case_trouble import expect_error
from harness import START_S, STOP_S, Findings, Process, Skip, case, check, rows_of, wait_until

COLUMNS = "comm,state,syscall,ustack,ufunc,stack"
# functions in which Go's runtime began the thread, switched to its own stack, or began the goroutine
OUTERMOST = {"runtime.mcall", "runtime.mstart", "runtime.clone", "runtime.systemstack", "runtime.goexit", "runtime.rt0_go"}


@case(thorough=True)
def go_without_symbols(ctx):
    """Programs that were linked with -s -w, also position-independent ones: every frame has its function's name, no stack is lost."""
    programs = [name for name in ("chains_gostripped", "chains_gopie") if os.path.exists(os.path.join(directory_of(ctx), name))]
    if not programs:
        raise Skip("no Go here")
    started = programs_start(ctx, programs)
    pids = [chain.process.pid for _, chain in started]
    tool = ctx.stream("-a", "-F", 10, "-d", 4, "-p", ",".join(str(pid) for pid in pids), columns=COLUMNS)
    rows = tool.finish(0, 60)
    find = Findings()
    expect_chains(find, started, rows, late=LATE_FILE in tool.err)
    threads = 0
    for words, chain in started:
        for tid in tids_of(chain.process.pid):
            mine = since_whole([row for row in rows_of(rows, tid) if row["ustack"] and row["state"] == "S"])[-3:]
            threads += bool(mine)
            for row in mine:
                frames = frames_of(row)
                find.expect(not any("+0x" in name for name in frames), "%s: no name: %s", words, " ".join(frames))
                find.expect(frames[-1] in OUTERMOST, "%s: ends at %s", words, " ".join(frames))
    find.close()
    check(threads >= 3 * len(started), "%d threads of %d programs", threads, len(started))
    _, missed, text = report(ctx, pids)
    check(LATE_FILE in text or not missed[SHORT], "%s", text)


ROW = re.compile(r"^ *(\d+)  (\w+) +(.*?)  +(-|\d+\.\d)  (\S+)$", re.M)


def routines_start(ctx, program):
    """Runs a program until its goroutines wait, and has it print them: (process, its output)."""
    path = os.path.join(directory_of(ctx), program)
    if not os.path.exists(path):
        raise Skip("no Go here")
    process = Process([path])
    ctx.started.append(process)
    process.say("first")  # a garbage collection dates the waits that the one before it has found
    process.say("second")
    wait_until(lambda: process.out.count(b"\nend\n") == 2 or process.code is not None, 20, "its goroutines")
    return process, process.out.decode().split("\nend\n")[1]


def told_by_go(text):
    """{(reason, functions): goroutines} of runtime.Stack(), the outermost function first, without functions that are part of another's
    code, and without the goroutine that wrote it."""
    found = collections.Counter()
    for block in text.split("\n\n"):
        head = re.search(r"^goroutine (\d+) \[([^],]*)", block, re.M)
        functions = [line.rpartition("(")[0] for line in block[head.end():].split("\n")[1:]
                     if line and line[0] != "\t" and not line.startswith("created by") and not line.endswith("(...)")]
        if head[1] != "1":
            found[head[2], tuple(reversed(functions))] += 1
    return found


def goroutines_told(ctx, pid, count):
    tool = ctx.plain("--goroutines", "-p", pid)
    tool.finish_plain(0, START_S + STOP_S)
    out = tool.out.decode()
    head = re.match(r"(\d+) goroutines of process %d, go1\.\S+; \d+ more are its runtime's own \(-a\)\n" % pid, out)
    return head and int(head[1]) == count and out


def rows_as_text(ctx, pid, text):
    """--csv and --json have the groups that the text has; with -a all of the runtime's, too."""
    wanted = collections.Counter((int(count), state, "" if reason == "-" else reason, stack) for count, state, reason, _, stack
                                 in ROW.findall(text))
    for words in ["--csv"], ["--json"]:
        tool = ctx.plain("--goroutines", *words, "-p", pid)
        tool.finish_plain(0, START_S + STOP_S)
        out = tool.out.decode()
        rows = list(csv.DictReader(io.StringIO(out))) if words == ["--csv"] else [json.loads(line) for line in out.splitlines()]
        told = collections.Counter((int(row["count"]), row["state"], row["reason"] or "", row["stack"]) for row in rows)
        check(told == wanted, "%s: rows have, and the text has not: %s; the text has: %s", words, told - wanted, wanted - told)
        check(all(row["go"].startswith("go1.") and int(row["pid"]) == pid and int(row["runtime"]) == 0 for row in rows), "%s", out)
        check(all(0 <= int(row["waited_ns"]) < 60e9 for row in rows if row["state"] == "waiting"), "%s", out)
        tool = ctx.plain("--goroutines", *words, "-a", "-p", pid)
        tool.finish_plain(0, START_S + STOP_S)
        check("runtime.bgsweep" in tool.out.decode() and "runtime.bgsweep" not in out, "-a: %s", tool.out.decode())


@case
def goroutines(ctx):
    """--goroutines has as many as runtime.NumGoroutine, and the same reasons and stacks as runtime.Stack: of receives, sends, selects,
    sleeps, mutexes, conditions, groups, the network, and of deep stacks; also position-independent, without DWARF."""
    for program in ("routines_go", "routines_gopie"):
        process, text = routines_start(ctx, program)
        count = int(re.search(r"^goroutines (\d+)$", text, re.M)[1])
        # a goroutine of the runtime that is running then is taken for one of the program
        out = wait_until(lambda: goroutines_told(ctx, process.pid, count), 10, "%d goroutines" % count)
        rows = ROW.findall(out)
        check(sum(int(row[0]) for row in rows) == count, "%s: %s", program, out)
        check("[lost]" not in out and "Missed" not in out, "%s: %s", program, out)
        found = collections.Counter()
        for number, state, reason, waited, stack in rows:
            # functions that the runtime's own trace leaves out, too, are removed
            functions = tuple(name for name in stack.split(";") if not name.startswith("runtime.") and not name.endswith("-fm"))
            if stack.startswith("runtime.main;main.main"):
                continue
            check(state == "waiting" and waited != "-" and float(waited) < 60, "%s: %s for %s s: %s", program, state, waited, stack)
            found[reason, functions] += int(number)
        check(found == told_by_go(text), "%s: tsnap has, and Go has not: %s; Go has: %s", program, found - told_by_go(text),
              told_by_go(text) - found)
        rows_as_text(ctx, process.pid, out)
        tool = ctx.plain("--goroutines", "-a", "-p", process.pid)
        tool.finish_plain(0, START_S + STOP_S)
        check("runtime.bgsweep" in tool.out.decode() and "runtime.bgsweep" not in out, "-a: %s", tool.out.decode())


def programs_build(ctx, suite, specs):
    """Builds programs of tests/stack, {name: (source, options)}, with the Go of a Debian suite; ctx takes its programs from there then."""
    sources = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stack")
    fetch = subprocess.run([os.path.join(sources, "go-fetch"), suite], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if fetch.returncode:
        raise Skip("no Go of %s: %s" % (suite, fetch.stderr.decode().strip()))
    root = fetch.stdout.decode().strip()
    ctx.stack_programs = ctx.temporary()
    environment = dict(os.environ, GOROOT=root, GO111MODULE="off", GOTOOLCHAIN="local", GOFLAGS="", GOCACHE=ctx.temporary())
    for name, (source, options) in specs.items():
        made = subprocess.run([root + "/bin/go", "build", *options, "-o", os.path.join(ctx.stack_programs, name), os.path.join(sources, source)],
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        check(not made.returncode, "%s: %s", name, made.stdout.decode())


CHAINS = {"chains_gostripped": ("chains_go.go", ["-ldflags=-s -w"]),
          "chains_gopie": ("chains_go.go", ["-buildmode=pie", "-ldflags=-s -w"])}
ROUTINES = {"routines_go": ("routines_go.go", []), "routines_gopie": ("routines_go.go", ["-buildmode=pie", "-ldflags=-w"]),
            "routines_gostripped": ("routines_go.go", ["-ldflags=-s -w"])}


LABELS = {"labels_go": ("labels_go.go", []), "labels_gopie": ("labels_go.go", ["-buildmode=pie", "-ldflags=-w"]),
          "labels_gostripped": ("labels_go.go", ["-ldflags=-s -w"]), "labels_cgo": ("labels_cgo.go", [])}


def go_of_suite(ctx, suite, specs=None):
    programs_build(ctx, suite, specs or {**CHAINS, **ROUTINES, **LABELS})
    context_of_goroutines(ctx)
    context_of_parked(ctx)
    if not specs:
        go_without_symbols(ctx)
    goroutines(ctx)
    goroutines_of_none(ctx)


@case(thorough=True)
def go_of_trixie(ctx):
    """Programs that Go 1.24 made have functions' names, whole stacks, goroutines and their labels."""
    go_of_suite(ctx, "trixie")


@case(thorough=True)
def go_of_sid(ctx):
    """Programs of Debian's newest Go (1.27 was the first one tried) have functions' names, whole stacks, goroutines and their labels."""
    go_of_suite(ctx, "sid")


@case(thorough=True)
def go_of_bullseye(ctx):
    """Goroutines and their labels of programs that Go 1.15 made: %r14 is not a thread's g yet, and labels are maps. It knows no generics."""
    go_of_suite(ctx, "bullseye", {**ROUTINES, **LABELS})


@case
def goroutines_by_parser(ctx):
    """The memory of goroutines is read by a process that got it opened and did not open it itself, as strace shows. If that process dies,
    one line says so."""
    strace = shutil.which("strace")
    if not strace:
        raise Skip("strace is not installed")
    process, _ = routines_start(ctx, "routines_go")
    words = [ctx.options.tsnap, "--goroutines", "-p", str(process.pid)]
    trace = os.path.join(ctx.temporary(), "trace")
    done = subprocess.run([strace, "-f", "-y", "-e", "trace=openat,pread64,process_vm_readv", "-o", trace, *words], capture_output=True,
                          timeout=START_S + STOP_S)
    check(done.returncode == 0 and b" goroutines of process " in done.stdout, "%s", done)
    with open(trace, encoding="utf-8", errors="replace") as file:
        lines = [line.split(None, 1) for line in file if "process_vm_readv(" in line or "/proc/%d/mem" % process.pid in line]
    openers = {who for who, call in lines if call.startswith("openat(")}
    readers = {who for who, call in lines if not call.startswith("openat(")}
    check(openers and readers and not openers & readers, "opened by %s, read by %s", openers, readers)
    for count in 20, 200:  # the first calls are the dynamic linker's
        done = subprocess.run([strace, "-f", "-o", "/dev/null", "-e", "inject=pread64:signal=KILL:when=%d" % count, *words],
                              capture_output=True, timeout=START_S + STOP_S)
        said = done.stderr.decode()
        check(done.returncode == 1 and re.fullmatch(r"tsnap: goroutines of process %d: [^\n]*\n" % process.pid, said),
              "killed at read %d: %d, %s", count, done.returncode, said)
        print("# " + said.strip())


@case
def goroutines_of_none(ctx):
    """--goroutines says so for a program without symbols, for one that is not Go's and for a process that does not exist."""
    process, _ = routines_start(ctx, "routines_gostripped")
    expect_error(ctx.plain("--goroutines", "-p", process.pid), 1, "without symbols")
    expect_error(ctx.plain("--goroutines", "-p", os.getpid()), 1, "no program of Go")
    expect_error(ctx.plain("--goroutines", "-p", 999999999), 1, "No such")
