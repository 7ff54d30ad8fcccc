"""Stacks of sleeping threads against programs that sleep in known chains of calls (tests/stack)."""
import os
import subprocess
import sys

import truth
from harness import Findings, Skip, case, check, rows_of

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stack"))
import chains as chain_programs  # noqa: E402

COLUMNS = "comm,state,syscall,ustack,ufunc,ufuncs,kstack,kfunc,kfuncs,stack"
NAMED = ("chains_gcc", "chains_clang", "chains_fixed", "chains_static", "chains_cplusplus", "chains_rust")


class Ended:
    """For Context.end()."""

    def __init__(self, chain):
        self.chain = chain

    def end(self):
        self.chain.end()


def directory_of(ctx):
    directory = os.path.join(os.path.dirname(ctx.options.workload), "..", "stack")
    if not os.path.exists(os.path.join(directory, "chains_gcc")):
        raise Skip("the programs of tests/stack are not built")
    return os.path.abspath(directory)


def programs_start(ctx, programs=NAMED, only=None):
    """[(words, Chain)]"""
    directory, started = directory_of(ctx), []
    for program in programs:
        path = os.path.join(directory, program)
        if not os.path.exists(path):
            continue
        names = subprocess.run([path], stdout=subprocess.PIPE, check=True).stdout.decode().split()
        for name in names:
            if (only and name not in only) or (name == "library" and "static" in program) or (not only and name == "alternates"):
                continue
            chain = chain_programs.Chain(path, name, directory)
            ctx.started.append(Ended(chain))
            started.append((program + " " + name, chain))
    check(started, "no program")
    return started


def frames_of(row):
    """Innermost first."""
    return [name[:-4] if name.endswith(("_[l]", "_[j]")) else name for name in reversed(row["stack"].split(";"))
            if not name.endswith("_[k]")]


def expect_chains(find, started, rows):
    for words, chain in started:
        # one that waits for a signal is preempted now and then
        mine = [row for row in rows_of(rows, chain.tid) if row["ustack"] and row["state"] == "S"]
        find.expect(mine, "%s: no stack", words)
        for row in mine[-3:]:
            frames = frames_of(row)
            find.expect("[lost]" not in frames, "%s: not whole: %s", words, " ".join(frames[:30]))
            find.expect(chain_programs.contains(frames, chain.expected), "%s: expected %s, found %s", words,
                        " ".join(chain.expected[:12]), " ".join(frames[:30]))
        find.expect(len({row["ustack"] for row in mine}) <= 1, "%s: several stacks of one sleep", words)


@case
def stacks_of_chains(ctx):
    """Threads that began to sleep while tsnap ran: every frame of the chain, and the function that tells."""
    directory_of(ctx)
    tool = ctx.stream("-a", "-F", 5, columns=COLUMNS)
    tool.wait_scans(1)
    started = programs_start(ctx)
    tool.wait_scans(len(tool.scans()) + 5)
    rows = tool.interrupt()
    find = Findings()
    expect_chains(find, started, rows)
    for words, chain in started:
        for row in rows_of(rows, chain.tid)[-1:]:
            if "rust" not in words:
                find.expect(row["ufunc"] == chain.expected[0], "%s: ufunc %s", words, row["ufunc"])
                find.expect(row["ufuncs"].endswith(chain.expected[1] + ">" + chain.expected[0]) or "*" in chain.expected[1],
                            "%s: ufuncs %s", words, row["ufuncs"])
            find.expect(row["ustack"].startswith("0x"), "%s: ustack %s", words, row["ustack"])
    find.close()


@case
def stacks_of_earlier_sleepers(ctx):
    """Threads that have slept since before tsnap started."""
    started = programs_start(ctx)
    rows = ctx.rows("-a", "-F", 5, "-p", ",".join(str(chain.process.pid) for _, chain in started), columns=COLUMNS)
    find = Findings()
    expect_chains(find, started, rows)
    find.close()


@case
def stacks_of_movers(ctx):
    """A thread that sleeps here and there: a stack is one of the two, never a part of each."""
    (_, chain), = programs_start(ctx, ("chains_gcc",), ("alternates",))
    rows = [row for row in ctx.rows("-a", "-F", 500, "-t", chain.tid, seconds=3, columns=COLUMNS) if row["ustack"]]
    check(len(rows) >= 20, "%d stacks in 3 s", len(rows))
    seen, find = set(), Findings()
    for row in rows:
        frames = frames_of(row)
        if "+0x" in row["stack"] or not row["syscall"]:
            continue  # names that were not known yet; preempted
        find.expect(any(chain_programs.contains(frames, (side + "_inner", side, "alternates", "main")) for side in ("left", "right")),
                    "stack %s", row["stack"])
        find.expect(row["stack"].count("left") != 1 and row["stack"].count("right") != 1, "half a stack: %s", row["stack"])
        seen.add(row["ufunc"])
    find.close()
    check(seen >= {"left_inner", "right_inner"}, "only %s", sorted(seen))


@case
def stacks_of_the_kernel(ctx):
    """Kernel stacks are those of /proc/TID/stack."""
    workload = ctx.workload("mutex")
    path = "/proc/%d/stack" % workload.tid
    if not os.path.exists(path):
        raise Skip("this kernel shows no stacks (CONFIG_STACKTRACE)")
    shown = [line.split()[1].split("+")[0] for line in truth.read(path).splitlines()]
    rows = rows_of(ctx.rows("-a", "-p", workload["pid"], columns=COLUMNS), workload.tid)
    check(rows, "no row")
    for row in rows:
        names = [name[:-4] for name in reversed(row["stack"].split(";")) if name.endswith("_[k]")]
        check(names == shown, "kernel stack %s, /proc shows %s", names, shown)
        check(row["kfunc"] in shown and row["kfuncs"].endswith(row["kfunc"]), "kfunc %s, kfuncs %s", row["kfunc"], row["kfuncs"])
        check("futex" in row["kfunc"], "kfunc %s of a futex", row["kfunc"])
