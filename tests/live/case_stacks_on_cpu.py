"""Stacks of threads on a CPU against programs that spin in known chains of calls (tests/stack)."""
import os
import shutil
import subprocess

import truth
from case_stacks import COLUMNS, NAMED, chain_programs, directory_of, frames_of, programs_start, since_whole
from harness import SLOW, START_S, STOP_S, Findings, Process, Skip, case, check, rows_of

SECONDS = int(4 * SLOW)  # where CPUs are emulated some of the time goes to reading the names of kernel functions
LIMIT_S = START_S + 2 * SECONDS + STOP_S
SPINS = ("recursion", "jumped", "registers_kept", "threaded", "sorted", "signalled")


def apart():
    """Two sets of CPUs, for tsnap and for the sampled threads, so that tsnap displaces none of them. With one CPU they are the same."""
    cpus = sorted(os.sched_getaffinity(0))
    return {cpus[0]}, {cpus[-1]}


def pinned(cpus):
    return {"preexec_fn": lambda: os.sched_setaffinity(0, cpus)}


class Spinners:
    """Programs that spin on a CPU, and their rows."""

    def __init__(self, ctx, wanted):
        directory = directory_of(ctx)
        self.ctx = ctx
        self.own, self.other = apart()
        self.chains = []
        for program, name in wanted:
            path = os.path.join(directory, program)
            if not os.path.exists(path):
                continue
            chain = chain_programs.Chain(path, name, directory, spins=True, **pinned(self.other))
            ctx.started.append(chain)
            self.chains.append((program + " " + name, chain))
        check(self.chains, "no program")

    def args(self):
        return ["-p", ",".join(str(chain.process.pid) for _, chain in self.chains)]

    def rows(self, *args, seconds=4, columns=COLUMNS):
        tool = self.ctx.stream("-F", 100, "-d", seconds, *(self.args() + list(args)), columns=columns, **pinned(self.own))
        return tool.finish(0, START_S + seconds * SLOW + STOP_S)

    def seen(self, rows):
        """Rows of threads ON that have a stack. Most rows ON must: the other threads came, or went, between two looks."""
        least = 0.7 if SLOW == 1 else 0.3
        running = [row for row in rows if row["state"] == "ON"]
        found = [row for row in running if row["ustack"]]
        check(len(found) >= least * len(running) and len(found) >= 10, "%d of %d samples ON have a stack", len(found), len(running))
        return found


def expect_spins(ctx, *args):
    # many programs on one CPU start slowly
    spinners = Spinners(ctx, [(program, name) for program in NAMED[:2] for name in SPINS] +
                        [(program, "recursion") for program in NAMED[2:4]] + [("chains_musl", name) for name in ("sorted", "signalled")])
    rows = spinners.rows(*args, seconds=6)
    preempted = [row for row in rows if row["state"] == "RQ" and row["ustack"]]
    check(len(preempted) >= 10, "%d stacks of preempted threads", len(preempted))
    find = Findings()
    for row in spinners.seen(rows) + preempted:
        chain, words = next((chain, words) for words, chain in spinners.chains if chain.process.pid == int(row["pid"]))
        if row["tid"] != str(chain.tid):
            continue  # the thread that created the spinning one
        frames = frames_of(row)
        if row["syscall"] or any("+0x" in frame for frame in frames):
            continue  # a signal, or names that were not known yet
        find.expect("[lost]" not in frames, "%s: not whole: %s", words, " ".join(frames[:30]))
        find.expect(chain_programs.contains(frames, chain.expected), "%s: expected %s, found %s", words,
                    " ".join(chain.expected[:12]), " ".join(frames[:30]))
        find.expect(row["ufunc"] == chain.expected[0], "%s: ufunc %s", words, row["ufunc"])
    find.close()
    plain = [row for row in rows if row["state"] == "ON" and row["ustack"] and not row["kstack"]]
    check(len(plain) >= 0.9 * len(spinners.seen(rows)), "only %d of them are in user mode", len(plain))
    return spinners


@case(long=True)
def stacks_on_cpu(ctx):
    """For threads that spin in a known chain the perf samples of a CPU have every frame of it, and no kernel frames."""
    expect_spins(ctx)


@case(thorough=True, long=True)
def stacks_on_cpu_by_timer(ctx):
    """Threads that spin have their whole chain, too, where no program can be run on a CPU (before 5.10): a perf clock ticks once."""
    release = [int(word) for word in os.uname().release.split("-")[0].split(".")[:2]]
    if [6, 16] <= release < [6, 18]:
        raise Skip("a perf clock that ends itself hangs such kernels, so tsnap uses none there")
    expect_spins(ctx, *ctx.without("run_on_cpu"))


@case(alone=True, thorough=True, long=True)
def stacks_on_cpu_anywhere(ctx):
    """All stacks are whole of a thread that is mostly at the edges of functions, and on its way into a library."""
    spinners = Spinners(ctx, [("chains_gcc", "calls"), ("chains_clang", "calls")])
    rows = spinners.seen(spinners.rows())
    find = Findings()
    for row in rows:
        frames = frames_of(row)
        if any("+0x" in frame for frame in frames):
            continue  # names that were not known yet
        find.expect("[lost]" not in frames and any(frames[i:i + 2] == ["calls", "main"] for i in range(len(frames))), "%s",
                    " ".join(frames))
    find.close()
    inner = {row["stack"].split(";")[-1] for row in rows}
    check(len(inner) >= 3, "only in %s", inner)


@case(alone=True, long=True)
def stacks_on_cpu_shares(ctx):
    """Folded stacks have three quarters of the time in one function and one in another, as the program does."""
    spinners = Spinners(ctx, [("chains_gcc", "shares")])
    tool = ctx.plain("--folded", "--on-cpu", "-F", 100, "-d", SECONDS + 2, *spinners.args(), **pinned(spinners.own))
    tool.finish_plain(0, LIMIT_S)
    weights = {"three_parts": 0, "one_part": 0}
    for line in tool.out.decode().splitlines():
        frames, weight = line.rsplit(" ", 1)
        for name in weights:
            weights[name] += int(weight) * (";main;shares;%s;burn" % name in frames)
    total = sum(weights.values())
    check(total > 1e6, "only %d us were seen there", total)
    # 0.125 is five standard deviations of about 300 samples
    share = weights["three_parts"] / total
    check(abs(share - 0.75) <= 0.125, "%.3f of it in three_parts, which is 0.75 of the time", share)


@case(alone=True, long=True)
def stacks_on_cpu_in_kernel(ctx):
    """A thread that runs in a system call has user frames up to its call, and kernel frames by the names of /proc/TID/stack."""
    own, other = apart()
    workload = ctx.workload("spin_kernel", cpu=min(other))
    rows = rows_of(ctx.stream("-F", 100, "-d", SECONDS, "-p", workload["pid"], columns=COLUMNS, **pinned(own)).finish(0, LIMIT_S),
                   workload.tid)
    running = [row for row in rows if row["state"] == "ON" and row["syscall"] == "read" and row["kstack"]]
    check(len(running) >= 20, "%d samples ON with a kernel stack, of %d", len(running), len(rows))
    shown = truth.kernel_stack("self")
    if shown is None:
        raise Skip("this kernel shows no stacks (CONFIG_STACKTRACE)")
    outermost = shown[-1]
    good = 0
    for row in running:
        kernel = [name[:-4] for name in row["stack"].split(";") if name.endswith("_[k]")]
        good += (kernel[0] == outermost and "vfs_read" in kernel and "spin_kernel" in frames_of(row) and
                 row["kfunc"] in kernel and not any("call_function" in name or "bpf" in name for name in kernel))
    # the thread may be on its way into or out of the call
    check(good >= 0.8 * len(running), "%d of %d are whole: %s", good, len(running), running[0]["stack"])


@case
def stacks_of_moved_code(ctx):
    """Code that a program moved to anonymous memory has the tables and symbols of its file, asleep and on a CPU, and is no JIT's."""
    programs = ("chains_moved", "chains_movedfixed")
    spinners = Spinners(ctx, [(program, "recursion") for program in programs])
    spinners.chains += programs_start(ctx, programs, ("recursion",))
    rows = spinners.rows("-a")
    find = Findings()
    for words, chain in spinners.chains:
        with open("/proc/%d/maps" % chain.process.pid) as maps:
            check(any(" r-xp " in line and len(line.split()) == 5 for line in maps), "%s moved nothing", words)
        mine = since_whole([row for row in rows if row["pid"] == str(chain.process.pid) and row["ustack"]])
        find.expect(len(mine) >= 5, "%s: %d stacks", words, len(mine))
        for row in mine:
            find.expect("_[j]" not in row["stack"], "%s: %s", words, row["stack"])
            if "+0x" in row["stack"] or (row["syscall"] and row["state"] != "S"):
                continue  # names that were not known yet, or a signal
            find.expect(chain_programs.contains(frames_of(row), chain.expected), "%s: %s", words, ";".join(frames_of(row)[:30]))
    find.close()


@case(alone=True, thorough=True, long=True)
def stacks_on_cpu_of_jit(ctx):
    """JavaScript that spins is shown with its functions, by the names in node's perf map, and node's code by its file, also where most of
    it is in anonymous memory."""
    node = shutil.which("node") or shutil.which("nodejs")
    if not node:
        raise Skip("no node")
    own, other = apart()
    script = ("function spinInner(n) { let x = 0; for (let i = 0; i < n; i++) x = (x * 31 + i) % 1000003; return x; }\n"
              "function spinOuter(n) { return spinInner(n) + 1; }\n"
              "function spinTop() { for (;;) spinOuter(1e5); }\nspinTop();\n")
    program = ctx.temporary() + "/spin.js"
    with open(program, "w") as file:
        file.write(script)
    process = Process([node, "--use-largepages=on", "--perf-basic-prof", "--interpreted-frames-native-stack", "--no-turbo-inlining", program],
                      stdin=subprocess.DEVNULL, cwd=os.path.dirname(program), **pinned(other))
    perf_map = "/tmp/perf-%d.map" % process.pid
    ctx.at_end(lambda: os.path.exists(perf_map) and os.unlink(perf_map))
    ctx.started.append(process)
    tool = ctx.stream("-F", 100, "-d", 5, "-t", process.pid, columns=COLUMNS, **pinned(own))
    rows = [row for row in tool.finish(0, LIMIT_S) if row["state"] == "ON" and row["ustack"]]
    check(len(rows) >= 50, "%d stacks", len(rows))
    named = [row for row in rows if "spinInner" in row["stack"] and "spinTop" in row["stack"]]
    check(len(named) >= 0.6 * len(rows), "%d of %d have the functions: %s", len(named), len(rows), rows[-1]["stack"])
    check(all("_[j]" in row["stack"].split("spinInner")[1].split(";")[0] for row in named), "not of a JIT: %s", named[0]["stack"])
    whole = [row for row in rows if "[lost]" not in row["stack"]]
    check(len(whole) >= 0.9 * len(rows), "%d of %d are whole", len(whole), len(rows))
    own_code = [row for row in rows if ";node::Start" in row["stack"] and "node::Start" + "_[j]" not in row["stack"]]
    check(len(own_code) >= 0.9 * len(rows), "%d of %d have node's own functions: %s", len(own_code), len(rows), rows[-1]["stack"])


@case(alone=True, long=True)
def stacks_on_cpu_refused(ctx):
    """Where there are no perf samples threads on a CPU have no stack, which tsnap reports."""
    spinners = Spinners(ctx, [("chains_gcc", "shares")])
    tool = ctx.stream(*(spinners.args() + ctx.without("cpu_samples")), columns=COLUMNS, **pinned(spinners.own))
    tool.wait_scans(20, lambda row: row["state"] == "ON")
    rows = [row for row in tool.interrupt() if row["state"] == "ON"]
    check("stacks of threads on a CPU" in tool.err, "it is not told: %s", tool.err)
    if spinners.own != spinners.other:
        told = [row for row in rows if row["ustack"]]
        # a thread that lost its CPU before it was read has the stack with which it left
        check(len(told) <= 0.2 * len(rows) and all("burn" in row["stack"] for row in told), "%d of %d: %s", len(told), len(rows), told[:1])
