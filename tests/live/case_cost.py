"""Figures of --self, against those of the kernel and /proc; and the budget of the BPF programs' machine code."""
import os
import re
import resource
import signal
import subprocess
import time

import bpf
import truth
from harness import SLOW, START_S, STOP_S, Skip, case, check, wait_until

SYSCTL = "/proc/sys/kernel/bpf_stats_enabled"
BUDGET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jited.budget")
NOT_COUNTED = "Not counted: "


class Cost:
    """One interval of --self."""

    def __init__(self, text):
        self.text = text
        self.seconds, self.cpu_ms = map(float, self.find(r"^tsnap itself in ([\d.]+) s: ([\d.]+) ms of CPU time"))
        self.scans = int(self.find(r"^Scans: (\d+)")[0])
        self.start_ms, self.child_ms = map(float, self.find(r"^Start: ([\d.]+) ms of CPU time, and ([\d.]+) ms in the comp"))
        self.resident_kb, self.most_kb = map(int, self.find(r"^Memory: (\d+) KB resident, (\d+) KB at most"))
        self.programs = {}
        for name, kind, *numbers in re.findall(
                r"^(\w+) +((?:\w+ )*[\w-]+) +([\d-]+) +([\d-]+) +([\d.-]+) +([\d-]+) +([\d-]+)$", text, re.M):
            runs_hz, run_ns, cpu, skipped, jited = [None if word == "-" else float(word) for word in numbers]
            self.programs[name] = {"kind": kind, "runs_hz": runs_hz, "run_ns": run_ns, "cpu": cpu, "skipped": skipped,
                                   "jited": jited}
        self.memory = {name: int(size) for name, size in
                       re.findall(r"^(\w+) +(\d+)$", text.partition("KERNEL MEMORY")[2], re.M)}
        # before 4.10 the kernel reports no sizes
        check("all" in self.programs and ("all" in self.memory or re.search(r"^all +-$", text.partition("KERNEL MEMORY")[2], re.M)),
              "no tables: %s", text)
        self.counted = NOT_COUNTED not in text

    def find(self, pattern):
        found = re.search(pattern, self.text, re.M)
        check(found, "no '%s' in: %s", pattern, self.text)
        return found.groups()


def costs_of(text):
    """The intervals that are whole, as Cost."""
    pages = re.split(r"^(?=tsnap itself in )", text, flags=re.M)[1:]
    return [Cost(page) for page in pages if re.search(r"^KERNEL MEMORY(.*\n)+all +[\d-]+\n(\n|\Z)", page, re.M)]


def wait_pages(tool, count):
    def enough():
        check(tool.code is None, "tsnap ended (%s) early: %s", tool.code, tool.err)
        return len(costs_of(tool.out.decode())) >= count
    wait_until(enough, START_S + count * 5 * SLOW, "%d pages" % count)


def host_switches():
    return int(re.search(r"^ctxt (\d+)", truth.read("/proc/stat"), re.M).group(1))


def kernel_memory(pid):
    """Kernel memory of the process' maps and programs: {("map"|"prog", id): bytes}"""
    found = {}
    for fd in truth.read_dir("/proc/%d/fdinfo" % pid):
        text = truth.read("/proc/%d/fdinfo/%s" % (pid, fd)) or ""
        identity, size = re.search(r"^(map|prog)_id:\s*(\d+)", text, re.M), re.search(r"^memlock:\s*(\d+)", text, re.M)
        if identity and size:
            found[identity.groups()] = int(size.group(1))
    return found


@case
def self_runs(ctx):
    """--self: the switch program runs as often as the host switches, each run takes some time, totals are the sums of their parts."""
    ctx.workload("pingpong")
    tool = ctx.plain("--self", "-i", 2)
    wait_pages(tool, 1)
    start, before = time.monotonic(), host_switches()
    wait_pages(tool, 2)
    rate = (host_switches() - before) / (time.monotonic() - start)
    tool.signal(signal.SIGINT)
    tool.finish_plain(0)
    cost = costs_of(tool.out.decode())[1]
    if not cost.counted:
        raise Skip("this kernel does not count")
    check(rate > 1000, "only %d switches a second", rate)
    switch = cost.programs["sched_switch"]
    check(abs(switch["runs_hz"] - rate) < 0.2 * rate, "sched_switch ran %s times a second, the host switched %d times",
          switch["runs_hz"], rate)
    check(20 < switch["run_ns"] < 100000 * SLOW, "%s ns a run", switch["run_ns"])
    for program in cost.programs.values():
        share = (program["runs_hz"] or 0) * (program["run_ns"] or 0) / 1e7
        check(abs(share - program["cpu"]) < 0.02 + 0.1 * share, "%% of a CPU: %s", program)
    parts = [program for name, program in cost.programs.items() if name != "all"]
    for key in ("runs_hz", "jited"):
        check(abs(sum(part[key] for part in parts) - cost.programs["all"][key]) <= len(parts), "%s: %s", key, cost.text)


def ring_bytes(pid):
    """Bytes of the process' mapped perf rings."""
    lines = [line.split()[0] for line in truth.read("/proc/%d/maps" % pid).splitlines() if line.endswith("[perf_event]")]
    return sum(int(end, 16) - int(start, 16) for start, end in (line.split("-") for line in lines))


def resident_kb(pid):
    """Resident memory of the process, and anonymous memory of its parsers."""
    parsers = [child for child in truth.children(pid) if (truth.read("/proc/%d/comm" % child) or "").startswith("tsnap-parser")]
    return (truth.memory_bytes([pid], "VmRSS") + truth.memory_bytes(parsers, "RssAnon")) >> 10


@case
def self_memory(ctx):
    """--self: the memory of maps and programs is that of fdinfo, name by name; resident memory is that of /proc/PID/status, with
    its parsers."""
    memory_of_self(ctx)


@case
def self_memory_of_stacks(ctx):
    """--self with stacks on CPUs: the memory of rings is that of the mapped ones."""
    ctx.workload("spin")
    memory_of_self(ctx, "--stacks")


def memory_of_self(ctx, *args):
    tool = ctx.plain("--self", "-i", 1, "-a", *args)
    wait_pages(tool, 1)
    told = kernel_memory(tool.pid)
    if not told:
        raise Skip("fdinfo tells no memory here (4.10)")
    resident, mapped = [resident_kb(tool.pid)], ring_bytes(tool.pid)
    wait_pages(tool, 2)
    resident.append(resident_kb(tool.pid))
    tool.signal(signal.SIGINT)
    tool.finish_plain(0)
    cost = costs_of(tool.out.decode())[1]
    sizes = sorted(size for name, size in cost.memory.items() if name not in ("all", "programs", "cpu_rings", "kept_rings"))
    maps = sorted(size for (kind, _), size in told.items() if kind == "map")
    check(len(sizes) == len(maps), "maps of %s bytes, fdinfo: %s", sizes, maps)
    # a map that is not preallocated grows
    check(all(abs(a - b) <= 0.05 * b for a, b in zip(sizes, maps)), "maps of %s bytes, fdinfo: %s", sizes, maps)
    programs = sum(size for (kind, _), size in told.items() if kind == "prog")
    check(cost.memory["programs"] == programs, "programs: %d bytes, fdinfo: %d", cost.memory["programs"], programs)
    # rings of other CPUs are mapped only when tsnap looks at these CPUs
    rings = cost.memory.get("cpu_rings", 0) + cost.memory.get("kept_rings", 0)
    check(mapped <= rings and bool(mapped) == bool(rings), "rings of %d bytes, mapped: %d", rings, mapped)
    check(bool(rings) == bool(args) or "perf events" in cost.text, "no rings: %s", cost.text)
    check(cost.memory["all"] == sum(sizes) + programs + rings, "all is no sum: %s", cost.memory)
    # values from before and after: memory grows with threads that begin on the host meanwhile
    check(0.9 * min(resident) < cost.resident_kb < 1.1 * max(resident), "%d KB resident, status: %s", cost.resident_kb, resident)


@case
def self_cpu(ctx):
    """--self: CPU time of the start, the compile child and the scans is what the kernel charges for the process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    tool = ctx.plain("--self", "-d", 3, "-F", 200, "-a", "-g", "comm,exe,filename,cmdline")
    tool.finish_plain(0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    charged_ms = 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    cost, = costs_of(tool.out.decode())
    told_ms = cost.cpu_ms + cost.start_ms + cost.child_ms
    check(cost.child_ms > 20 and cost.cpu_ms > 5 and cost.scans > 50, "too little: %s", cost.text)
    check(abs(told_ms - charged_ms) < 0.1 * charged_ms + 20 * SLOW, "%.1f ms, the kernel says %.1f", told_ms, charged_ms)


def switch_program(tool):
    """A function that gives the run count of that tsnap's switch program."""
    name = next(("prog", number) for kind, number in truth.owned_bpf([tool.pid]) if kind == "prog"
                and bpf.Program(number).name.startswith("sched_switch"))
    return lambda: bpf.Program(name[1]).run_count


@case(alone=True)
def self_stops_counting(ctx):
    """The kernel counts while --self runs and no longer: after an orderly end, and after kill -9; the sysctl stays as it is."""
    bpf.need_list()
    if truth.read(SYSCTL) != "0\n":
        raise Skip("it counts already, or can't: %s is %r" % (SYSCTL, truth.read(SYSCTL)))
    other = ctx.stream()
    other.wait_scans(1)
    runs = switch_program(other)
    game = ctx.workload("pingpong")

    def switch():
        """Waits for a thousand more context switches."""
        before = truth.Thread(game.tid).switches
        wait_until(lambda: sum(truth.Thread(game.tid).switches) > sum(before) + 1000, START_S, "a thousand switches")

    def counts():
        before = runs()
        switch()
        return runs() != before

    for number in (signal.SIGTERM, signal.SIGKILL):
        still = runs()
        check(not counts(), "it counted before --self")
        tool = ctx.plain("--self", "-i", 0.5, *ctx.without(""))
        wait_pages(tool, 1)
        if not costs_of(tool.out.decode())[0].counted:
            raise Skip("this kernel counts only with the sysctl (before 5.8)")
        check(runs() > still, "it does not count with --self")
        check(truth.read(SYSCTL) == "0\n", "--self changes %s", SYSCTL)
        tool.signal(number)
        tool.wait(STOP_S)
        wait_until(lambda: not counts(), STOP_S, "an end of the counting after signal %d" % number)  # a helper may end a little later
        check(truth.read(SYSCTL) == "0\n", "%s is left on", SYSCTL)


@case(alone=True)
def self_not_counted(ctx):
    """--self where the kernel has no switch for counting: the sysctl is named, and no number is made up."""
    if truth.read(SYSCTL) == "1\n":
        raise Skip("the sysctl is on")
    tool = ctx.plain("--self", "-d", 1, *ctx.without("bpf_stats"))
    tool.finish_plain(0)
    cost, = costs_of(tool.out.decode())
    check("kernel.bpf_stats_enabled=1" in cost.text or "5.1 was the first" in cost.text, "no words on it: %s", cost.text)
    for name, program in cost.programs.items():
        check(program["runs_hz"] is None and program["run_ns"] is None and program["cpu"] is None, "%s: %s", name, program)
    check(cost.cpu_ms > 0 and cost.memory.get("all", 1) > 0, "CPU and memory are known: %s", cost.text)


@case
def self_of_rows(ctx):
    """--csv --self: rows are as without --self, and the tables are on standard error."""
    tool = ctx.stream("-n", 5, "--self", columns="state")
    tool.finish()
    check(tool.out.startswith(b"timestamp,weight_us,tid,pid,state\n"), "header line: %s", tool.out[:80])
    words = "".join(line[len("tsnap: "):] + "\n" for line in tool.err.splitlines())
    cost, = costs_of(words + "\n")
    check(cost.scans == 5, "%d scans, not 5", cost.scans)
    check(re.search(r"Missed: \d+ late scans?", words), "no losses: %s", words)


def fragments_of(ctx, *args):
    """Names of the BPF programs of a tsnap with these arguments, as the kernel has them."""
    tool = ctx.plain("--csv", "-a", *args)
    wait_until(lambda: tool.out.count(b"\n") > 1 or tool.code is not None, START_S, "the first row")
    check(tool.code is None, "tsnap ended: %s", tool.err)
    names = {program.name for program in bpf.programs_of(truth.owned_bpf([tool.pid]))}
    tool.signal(signal.SIGINT)
    tool.finish()
    return names


@case(alone=True)
def only_what_is_asked(ctx):
    """Only the BPF programs that columns and filters need are loaded: that of renames only where a column or filter uses names."""
    bpf.need_list()
    if "" in {program.name for program in bpf.programs_of(bpf.loaded())} or not fragments_of(ctx):
        raise Skip("this kernel does not tell names of programs (4.15)")
    every = fragments_of(ctx, "-g", "tid,comm")
    if not any("rename" in name for name in every):
        raise Skip("no probe sees renames here: %s" % every)
    few = fragments_of(ctx, "-g", "tid,state,cpu_us")
    check(every - few == {name for name in every if "rename" in name} and few < every, "%s, but with names %s", few, every)
    check(fragments_of(ctx, "-g", "tid", "-c", "*") == every, "-c looks at names")
    check(fragments_of(ctx, "-g", "tid,exe") == every, "exe changes with names")
    calls = fragments_of(ctx, "-g", "tid,syscall")
    check(calls - few <= {"registers"} and few <= calls, "%s, but with system calls %s", few, calls)


def switch_code(ctx, *args):
    """Bytes of machine code of the switch program and of the wake-up program, with these arguments."""
    tool = ctx.plain("--csv", "-a", *args)
    wait_until(lambda: tool.out.count(b"\n") > 1 or tool.code is not None, START_S, "the first row")
    found = {program.name: program.jited_bytes for program in bpf.programs_of(truth.owned_bpf([tool.pid]))}
    tool.signal(signal.SIGINT)
    tool.finish()
    return [size for part in ("sched_switch", "sched_wakeup") for name, size in found.items() if part in name]


@case
def only_what_is_asked_at_switches(ctx):
    """Registers, exact times and the waker are kept only if a column needs them; without such a column they cost no instruction."""
    bpf.need_list()
    bare = switch_code(ctx, "-g", "state,tid")
    if len(bare) < 2 or not all(bare):
        raise Skip("the JIT is off, or tells nothing: %s" % bare)
    for column, larger in (("syscall", (True, False)), ("cpu_us", (True, False)), ("waker_tid", (False, True))):
        sizes = switch_code(ctx, "-g", "state,tid," + column)
        check(tuple(size > least for size, least in zip(sizes, bare)) == larger and min(map(int.__sub__, sizes, bare)) >= 0,
              "machine code of switch and wake-up: %s, with %s %s", bare, column, sizes)


def budget_here(ctx):
    """"RELEASE MACHINE LIBBCC", which machine code depends on; RELEASE is only the version number of the kernel's sources."""
    checked = subprocess.run([ctx.options.tsnap, "--check"], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                             timeout=START_S)
    bcc = re.search(r"^ +libbcc +(\S+)", checked.stdout, re.M).group(1)
    uname = os.uname()
    return "%s %s %s" % (re.match(r"[\d.]+", uname.release).group(), uname.machine, os.path.basename(bcc))


def budget_read(here):
    """{"TYPE NAME": bytes} of this kernel, and the lines of other kernels."""
    mine, others = {}, []
    for line in (truth.read(BUDGET) or "").splitlines():
        if line.startswith(here + " "):
            program, _, size = line[len(here) + 1:].rpartition(" ")
            mine[program] = int(size)
        else:
            others.append(line)
    return mine, others


def machine_code(ctx):
    """{"TYPE NAME": bytes of machine code} of the programs that a tsnap has loaded here."""
    tool = ctx.stream("-a", columns="comm,syscall,cpu_us,waker_tid")
    tool.wait_scans(1)
    found = {"%s %s" % (program.type, program.name): program.jited_bytes
             for program in bpf.programs_of(truth.owned_bpf([tool.pid]))}
    tool.interrupt()
    check(found, "no programs")
    if not all(found.values()):
        raise Skip("the JIT is off, or tells nothing: %s" % found)
    return found


@case
def jited_budget(ctx):
    """Machine code of each program is within 5 % of jited.budget; TSNAP_TEST_RENEW=1 writes this kernel's lines anew."""
    bpf.need_list()
    here, found = budget_here(ctx), machine_code(ctx)
    mine, others = budget_read(here)
    lines = ["%s %s %d" % (here, program, size) for program, size in found.items()]
    if os.environ.get("TSNAP_TEST_RENEW") == "1":
        with open(BUDGET, "w") as file:
            file.write("".join(line + "\n" for line in sorted(others + lines)))
        return
    if not mine:
        raise Skip("no budget for this kernel, which has: " + "; ".join(lines))
    wrong = ["%s: %d bytes, %s in the budget" % (program, found.get(program, 0), mine.get(program, "none"))
             for program in sorted(set(found) | set(mine))
             if program not in found or program not in mine or abs(found[program] - mine[program]) * 20 > mine[program]]
    check(not wrong, "%s; if that is right, change it in the same commit (TSNAP_TEST_RENEW=1)", "; ".join(wrong))
