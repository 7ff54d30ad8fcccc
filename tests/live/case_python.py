"""Python functions in stacks, against what the interpreters themselves report (tests/stack/chains_python.py)."""
import glob
import json
import os
import shutil
import subprocess
import sys

import truth
from harness import SLOW, Findings, Process, Skip, case, check, rows_of, wait_until

COLUMNS = "comm,state,syscall,ustack,ufunc,ufuncs,stack"
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stack", "chains_python.py")
VERSIONS = range(11, 15)  # 3.11 to 3.14
MANY = 490
FEW = ("nested", "threaded", "generator", "sorted_by")  # chains for cases in which all of them would take minutes
# {chain: Python function that is called by C code, which is called by another Python function}
CALLED_BACK = {"sorted_by": "sorted_by.<locals>.<lambda>", "reduced": "reduced.<locals>.<lambda>"}


def is_program(path):
    """True for an ELF file; false for a script, such as pyenv's, which takes half a second to find the interpreter, or finds none."""
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def interpreters(ctx):
    """Paths of interpreters that are here and of a known version: this one, those next to it where each version has a folder, and those in
    PATH; or the one of --python. Without --all only the first and the newest."""
    beside = sorted(glob.glob(os.path.join(os.path.dirname(os.path.realpath(sys.executable)), "../../*/bin/python3")))
    names = [sys.executable, "/usr/bin/python3", *beside, *("python3.%d" % minor for minor in VERSIONS)]
    if ctx.options.python:
        names = [ctx.options.python]
    found = {}
    for path in dict.fromkeys(os.path.realpath(path) for path in map(shutil.which, names) if path):
        if not is_program(path):
            continue
        ask = [path, "-c", "import sys; print(sys.executable, *sys.version_info[:2])"]
        done = subprocess.run(ask, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if done.returncode:
            continue
        program, major, minor = done.stdout.decode().split()
        if int(major) == 3 and int(minor) in VERSIONS:
            found.setdefault(os.path.realpath(program), int(minor))
    if not found:
        raise Skip("no Python 3.11 to 3.14 here")
    if ctx.options.all:
        return list(found)
    first = next(iter(found))
    return list(dict.fromkeys([first] if SLOW > 1 else [first, max(found, key=found.get)]))


class Chain(Process):
    def __init__(self, python, name, prefix=()):
        self.python, self.name = python, name
        super().__init__([*prefix, python, SCRIPT, name])

    def wait_ready(self):
        wait_until(lambda: b"\n" in self.out, 30, "%s %s" % (self.python, self.name))
        told = json.loads(self.out)
        self.tid, self.frames = told["tid"], told["frames"]


def names_of(python):
    if SLOW > 1:
        return FEW
    return subprocess.run([python, SCRIPT], stdout=subprocess.PIPE, check=True).stdout.decode().split()


def start(ctx, wanted, prefix=()):
    """Started Chain objects of wanted, (interpreter, chain) pairs."""
    chains = [Chain(python, name, prefix) for python, name in wanted]
    ctx.started.extend(chains)
    for chain in chains:
        chain.wait_ready()
    return chains


def python_frames(row):
    """Names of the Python functions in a row's stack, innermost first."""
    return [name[:-4] for name in reversed(row["stack"].split(";")) if name.endswith("_[p]")]


def expect(find, chain, tid, rows):
    mine = [row for row in rows_of(rows, tid) if row["ustack"] and row["state"] == "S"]
    words = "%s %s" % (chain.python, chain.name)
    find.expect(mine, "%s: no stack", words)
    for row in mine[-2:]:
        frames = python_frames(row)
        # of a chain that is longer than MANY only the innermost frames are kept
        wanted = chain.frames if len(chain.frames) < MANY else chain.frames[:max(MANY, len(frames))]
        find.expect(frames == wanted, "%s: expected %s, found %s in %s", words, wanted[:12], frames[:12], row["stack"])
        find.expect("_PyEval_EvalFrameDefault" not in row["stack"], "%s: a frame of the loop is left: %s", words, row["stack"])
        find.expect(row["ufunc"] == chain.frames[0], "%s: ufunc %s", words, row["ufunc"])
        if len(chain.frames) >= 5:
            find.expect(row["ufuncs"] == ">".join(reversed(chain.frames[:5])), "%s: ufuncs %s", words, row["ufuncs"])
        if chain.name in CALLED_BACK:
            all_of_it = row["stack"].split(";")
            callers = [one for one, other in zip(all_of_it, all_of_it[1:]) if other.startswith(CALLED_BACK[chain.name] + " ")]
            find.expect(len(callers) == 1 and not callers[0].endswith("_[p]"), "%s: called by no C function: %s", words,
                        row["stack"])
    find.expect(len({row["ustack"] for row in mine}) <= 1, "%s: several stacks of one sleep", words)


@case
def python_chains(ctx):
    """Every chain of every version that is here is shown function by function, with lines."""
    chains = start(ctx, [(python, name) for python in interpreters(ctx) for name in names_of(python) if name != "alternates"])
    rows = ctx.rows("-a", "-F", 5, "--python", "-t", ",".join(str(chain.tid) for chain in chains), columns=COLUMNS)
    find = Findings()
    for chain in chains:
        expect(find, chain, chain.tid, rows)
    find.close()


@case
def python_not_asked_for(ctx):
    """Without --python there are C functions only."""
    chain, = start(ctx, [(interpreters(ctx)[0], "nested")])
    rows = rows_of(ctx.rows("-a", "-t", chain.tid, columns=COLUMNS), chain.tid)
    check(rows and rows[-1]["ustack"], "no stack")
    check("_PyEval_EvalFrameDefault" in rows[-1]["stack"] and not python_frames(rows[-1]), "stack %s", rows[-1]["stack"])


@case(thorough=True)
def python_in_a_pid_namespace(ctx):
    """Python functions are found in a pid namespace, too, where the interpreter knows its threads by other ids than /proc does."""
    python = interpreters(ctx)[0]
    prefix = ["unshare", "--pid", "--fork", "--kill-child"]
    if subprocess.run(prefix + ["true"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("no pid namespace can be made")
    chain, = start(ctx, [(python, "nested")], prefix)
    tid = int(truth.read("/proc/%d/task/%d/children" % (chain.process.pid, chain.process.pid)).split()[0])
    check(chain.tid != tid, "its tid is ours")
    find = Findings()
    expect(find, chain, tid, ctx.rows("-a", "-F", 5, "--python", "-t", tid, columns=COLUMNS))
    find.close()


@case
def python_movers(ctx):
    """A thread that sleeps in two places in turn has the functions of one or the other, with their callers; where it ran before they were
    read, and on a CPU, those of the interpreter."""
    chain, = start(ctx, [(interpreters(ctx)[0], "alternates")])
    rows = [row for row in ctx.rows("-a", "-F", 500, "--python", "-t", chain.tid, seconds=3, columns=COLUMNS)
            if python_frames(row) and row["syscall"] == "clock_nanosleep" and row["state"] != "ON"]
    check(len(rows) >= 20, "%d stacks in 3 s", len(rows))
    seen, find = set(), Findings()
    for row in rows:
        names = [name.split(" (")[0] for name in python_frames(row)]
        sides = (["left_side"], ["right_side.<locals>.inner", "right_side"])
        find.expect(names in [side + ["alternates", "<module>"] for side in sides], "stack %s", row["stack"])
        seen.add(names[0])
    find.close()
    check(len(seen) == 2, "only %s", sorted(seen))


@case
def python_on_cpu(ctx):
    """Samples of a busy interpreter have a stack: of C functions where Python's could not be read, and tsnap says how many these are."""
    python = interpreters(ctx)[0]
    program = "import sys, time\ndef busy(n):\n    return sum(i * i for i in range(n))\nprint(flush=True)\n" \
              "while True:\n    busy(20000)\n    time.sleep(0.001)\n"
    process = Process([python, "-c", program])
    ctx.started.append(process)
    wait_until(lambda: b"\n" in process.out, 30, python)
    tool = ctx.stream("-F", 100, "-d", 4, "--python", "-t", process.pid, columns=COLUMNS)
    rows = [row for row in tool.finish(0, 60 * SLOW) if row["state"] in ("ON", "RQ")]
    found = [row for row in rows if row["ustack"]]
    check(len(rows) >= 20 and len(found) >= 0.9 * len(rows), "%d of %d samples have a stack", len(found), len(rows))
    native = [row for row in found if not python_frames(row)]
    check(all("+0x" in row["stack"] or "_PyEval_EvalFrameDefault" in row["stack"] for row in native if "[lost]" not in row["stack"]),
          "neither Python's functions nor the interpreter's: %s", [row["stack"] for row in native][:3])
    told = tool.missed("stacks without their Python functions")
    check(len(native) <= told, "%d stacks lack Python's functions, %d were counted", len(native), told)
