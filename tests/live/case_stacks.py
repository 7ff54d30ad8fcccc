"""Stacks of sleeping threads against programs that sleep in known chains of calls (tests/stack)."""
import collections
import csv
import ctypes
import errno
import os
import pwd
import re
import signal
import struct
import subprocess
import sys
import threading

import truth
from harness import SLOW, START_S, Failure, Findings, Process, Skip, case, check, rows_of, scans_of, settle, wait_until

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stack"))
import chains as chain_programs  # noqa: E402

COLUMNS = "comm,state,syscall,ustack,ufunc,ufuncs,kstack,kfunc,kfuncs,stack"
NAMED = ("chains_gcc", "chains_clang", "chains_fixed", "chains_static", "chains_staticpie", "chains_cplusplus", "chains_rust", "chains_go",
         "chains32_gcc", "chains32_clang", "chains_musl")
# Chains that programs lack: static programs open no library; musl's vfork has its return address in a register, and no unwind table.
ABSENT = {("chains_static", "library"), ("chains_staticpie", "library"), ("chains_musl", "library"), ("chains_musl", "vforked")}

# On the way out of these chains the frame's place depends on registers that /proc does not show; so does that of vfork() in any C library.
WAY_OUT_IN_REGISTERS = ("chains_rust generic", "chains_musl threaded", "chains_go called")


def directory_of(ctx):
    if ctx.stack_programs:
        return ctx.stack_programs
    directory = os.path.join(os.path.dirname(ctx.options.workload), "..", "stack")
    if not os.path.exists(os.path.join(directory, "chains_gcc")):
        raise Skip("the programs of tests/stack are not built")
    return os.path.realpath(directory)


def programs_start(ctx, programs=NAMED, only=None):
    """Starts the chains of programs; returns [(words, Chain)]."""
    directory, started = directory_of(ctx), []
    for program in programs:
        path = os.path.join(directory, program)
        if not os.path.exists(path):
            continue
        try:
            names = subprocess.run([path], stdout=subprocess.PIPE, check=True).stdout.decode().split()
        except OSError as error:
            if error.errno != errno.ENOEXEC or "chains32" not in program:
                raise
            continue  # a kernel without 32-bit programs
        for name in names:
            if (only and name not in only) or (not only and name == "alternates") or (program, name) in ABSENT:
                continue
            chain = chain_programs.Chain(path, name, directory)
            ctx.started.append(chain)
            started.append((program + " " + name, chain))
    check(started, "no program")
    return started


def frames_of(row):
    """Names of the user functions in a row's stack, innermost first."""
    return [name[:-4] if name.endswith(("_[l]", "_[j]")) else name for name in reversed(row["stack"].split(";"))
            if not name.endswith("_[k]")]


LATE_FILE = "that a file was not read at once"  # stacks through a file are lost until it is read
FIRST_SCANS = 5  # runs in which the first scan may be out of time


def asleep_of(rows, chain):
    """Rows of the chain's thread with a stack, asleep: a thread that waits for a signal is preempted now and then."""
    return [row for row in rows_of(rows, chain.tid) if row["ustack"] and row["state"] in "SD"]


def since_whole(rows):
    """The rows without the first ones whose stacks are lost, or lead through files that are not known yet."""
    whole = [at for at, row in enumerate(rows) if "[lost]" not in row["stack"] and "[?]" not in row["stack"]]
    return rows[whole[0] if whole else 0:]


def settle_chains(tool, started, scans=5):
    """Waits for at least `scans` more scans, and until each chain has three rows since its files were read."""
    before = len(tool.scans())
    settle(lambda: len(tool.scans()) >= before + scans and
           (lambda rows: all(len(since_whole(asleep_of(rows, chain))) >= 3 for _, chain in started))(tool.rows()))


def expect_chains(find, started, rows, late=False):
    """The last rows of each chain have its frames. late: tsnap said that files were read in a later scan; stacks before it may be lost."""
    for words, chain in started:
        mine = asleep_of(rows, chain)
        find.expect(mine, "%s: no stack", words)
        if late:
            mine = since_whole(mine)
            # until a table is read frame pointers are followed, which may leave frames out; after that the stack does not change
            mine = mine[next((at for at, row in enumerate(mine) if row["ustack"] == mine[-1]["ustack"]), 0):]
        for row in mine[-3:]:
            frames = frames_of(row)
            find.expect("[lost]" not in frames, "%s: not whole: %s", words, " ".join(frames[:30]))
            find.expect(chain_programs.contains(frames, chain.expected), "%s: expected %s, found %s", words,
                        " ".join(chain.expected[:12]), " ".join(frames[:30]))
        stacks = {row["ustack"]: row["stack"] for row in mine}
        find.expect(len(stacks) <= 1, "%s: several stacks of one sleep: %s", words, sorted(stacks.values()))


@case
def stacks_of_chains(ctx):
    """For threads that began to sleep while tsnap ran every frame of the chain is shown, and ufunc and ufuncs are its innermost ones."""
    directory_of(ctx)
    tool = ctx.stream("-a", "-F", 5, columns=COLUMNS)
    tool.wait_scans(1)
    started = programs_start(ctx)
    settle_chains(tool, started)
    rows = tool.interrupt()
    find = Findings()
    expect_chains(find, started, rows, late=tool.missed(LATE_FILE))
    for words, chain in started:
        for row in rows_of(rows, chain.tid)[-1:]:
            if not words.startswith(("chains_rust", "chains_go", "chains_musl")):  # these have their libraries in the program
                find.expect(row["ufunc"] == chain.expected[0], "%s: ufunc %s", words, row["ufunc"])
                find.expect(row["ufuncs"].endswith(chain.expected[1] + ">" + chain.expected[0]) or "*" in chain.expected[1],
                            "%s: ufuncs %s", words, row["ufuncs"])
            find.expect(row["ustack"].startswith("0x"), "%s: ustack %s", words, row["ustack"])
    find.close()


class Names(threading.Thread):
    """Looks again and again which names and users the threads of this host have, until it is ended."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seen, self.over = {"comm": set(), "user": set()}, threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(0.05 * SLOW):
            for tid in truth.tids():
                name, uid = truth.read("/proc/%d/comm" % tid), truth.Thread(tid).uid
                if name is None or uid is None:
                    continue  # it has ended
                self.seen["comm"].add(name.rstrip("\n"))
                try:
                    self.seen["user"].add(pwd.getpwuid(uid).pw_name)
                except KeyError:
                    self.seen["user"].add(str(uid))

    def strange(self, rows, column):
        """Threads and their values of the column that nobody was seen to have. A thread that ended soon may have been missed here."""
        times = collections.Counter((row["tid"], row[column]) for row in rows if row[column])
        own, least = {name[:15] for name in self.seen[column]}, len(scans_of(rows)) / 2
        # kworkers are renamed all the time
        return {key for key, count in times.items() if count > least and key[1] not in own and not key[1].startswith("kworker/")}


def functions_of(program):
    symbols = subprocess.run(["readelf", "-sW", program], stdout=subprocess.PIPE, check=True).stdout.decode()
    return {words[7] for words in map(str.split, symbols.splitlines()) if words[3:4] == ["FUNC"] and words[6] != "UND"}


@case
def nothing_invented(ctx):
    """No row has a name or a user that no thread of this host has, nor a function of the thread's program that it is not in, such as one
    that has returned."""
    earlier = programs_start(ctx, ("chains_gcc",), ("grown", "returned"))
    names, find = Names(), Findings()
    tool = ctx.stream("-a", "-F", 5, columns="user,comm,state,stack,ustack")
    tool.wait_scans(1)
    later = programs_start(ctx, ("chains_gcc",), ("sorted", "returned"))
    settle_chains(tool, later)
    rows = tool.interrupt()
    names.over.set()
    names.join()
    for column in names.seen:
        find.expect(not names.strange(rows, column), "%s that nobody has: %s", column, names.strange(rows, column))
    for words, chain in earlier + later:
        functions, unnamed = functions_of(chain.program), os.path.basename(chain.program) + "+0x"
        wanted = [name for name in chain.expected if name in functions] + ["_start"]
        mine = [row for row in rows_of(rows, chain.tid) if row["comm"] == os.path.basename(chain.program)]
        find.expect(mine, "%s: no row", words)
        for row in (mine if not tool.missed(LATE_FILE) else since_whole(mine))[-4:]:  # the program has begun to sleep
            frames = frames_of(row) if row["ustack"] else []
            own = [name for name in frames if name in functions or name.startswith(unnamed)]
            agree = len(own) <= len(wanted) and all(name in (real, unnamed + name.rpartition("+0x")[2])
                                                    for name, real in zip(own, wanted))
            find.expect(agree and (len(own) == len(wanted) or "[lost]" in frames or not frames),
                        "%s: the thread is in %s, not in %s", words, " ".join(wanted[:8]), " ".join(frames[:12]))
    find.close()


@case(long=True)
def stacks_of_earlier_sleepers(ctx):
    """Threads that have slept since before tsnap started have their stacks. Before 5.8 only /proc shows them, and of their registers only
    stack pointer and program counter: a stack that needs other registers is lost, and is shown as lost."""
    started = programs_start(ctx)
    find, lost = Findings(), []
    if not registers_are_asked(ctx):
        lost = [words for words, _ in started if words.endswith(" vforked") or words in WAY_OUT_IN_REGISTERS]
    known = [(words, chain) for words, chain in started if words not in lost]
    tool = ctx.stream("-a", "-F", 5, "-p", ",".join(str(chain.process.pid) for _, chain in started), columns=COLUMNS)
    tool.wait_scans(1)
    settle_chains(tool, known, 8)
    rows = tool.interrupt()
    expect_chains(find, known, rows, late=tool.missed(LATE_FILE))
    for words, chain in started:
        for row in rows_of(rows, chain.tid)[-1:] if words in lost else []:
            frames = frames_of(row)
            find.expect(frames[-1] == "[lost]" or chain_programs.contains(frames, chain.expected), "%s: neither whole nor lost: %s", words,
                        " ".join(frames[:30]))
    find.close()


def registers_are_asked(ctx):
    """True if registers of a sleeping thread can be read on demand."""
    checked = ctx.plain("--check")
    checked.finish_plain()
    return re.search(r"^ +ask_registers +yes", checked.out.decode(), re.M)


PERF_UPROBE = "/sys/bus/event_source/devices/uprobe/"
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
PERF_ATTR_BYTES = 112


def offset_in_file(program, function):
    """Where the function's code begins in the program's file."""
    text = subprocess.run(["readelf", "-slW", program], stdout=subprocess.PIPE, check=True).stdout.decode()
    words = list(map(str.split, text.splitlines()))
    address = next(int(line[1], 16) for line in words if line[3:4] == ["FUNC"] and line[7:8] == [function])
    for line in words:
        if line[:1] == ["LOAD"]:
            offset, start, size = int(line[1], 16), int(line[2], 16), int(line[4], 16)
            if start <= address < start + size:
                return address - start + offset
    raise Failure("%s is in no segment of %s" % (function, program))


def uretprobe(ctx, program, function):
    """Has the kernel stop each return of a function, as perf(1) and bcc do."""
    number = PERF_EVENT_OPEN.get(os.uname().machine)
    kind = truth.read(PERF_UPROBE + "type")
    if not number or not kind or truth.read(PERF_UPROBE + "format/retprobe") != "config:0\n":
        raise Skip("no uretprobes here")
    path, libc = ctypes.create_string_buffer(program.encode()), ctypes.CDLL(None, use_errno=True)
    # type, size, config (retprobe), ..., config1 (path), config2 (offset): struct perf_event_attr
    attr = struct.pack("=IIQ40xQQ", int(kind), PERF_ATTR_BYTES, 1, ctypes.addressof(path), offset_in_file(program, function))
    fd = libc.syscall(number, attr.ljust(PERF_ATTR_BYTES, b"\0"), -1, 0, -1, 0)
    if fd < 0:
        raise Skip("no uretprobes: %s" % os.strerror(ctypes.get_errno()))
    ctx.at_end(lambda: os.close(fd))


@case
def stacks_with_uretprobes(ctx):
    """A thread that sleeps in functions with uretprobes, whose return addresses the kernel has replaced, has its whole stack."""
    program = os.path.join(directory_of(ctx), "chains_gcc")
    first = programs_start(ctx, ("chains_gcc",), ("unused",))[0][1]
    functions = [name for name in first.expected if name in functions_of(program)][:3]
    check(len(functions) > 1, "functions with a uretprobe: %s", functions)
    for function in functions:
        uretprobe(ctx, program, function)
    tool = ctx.stream("-a", "-F", 5, columns=COLUMNS)
    tool.wait_scans(1)
    started = programs_start(ctx, ("chains_gcc",), ("unused",))
    check("[uprobes]" in truth.read("/proc/%s/maps" % started[0][1].tid), "no uretprobe was set")
    settle_chains(tool, started)
    rows, find = tool.interrupt(), Findings()
    expect_chains(find, started, rows, late=tool.missed(LATE_FILE))
    find.close()

@case(alone=True)
def stacks_without_unwinder(ctx):
    """With --without unwinder chains of frame pointers are found, and the same chains in a program that has only tables are not."""
    directory_of(ctx)
    chains = ("recursion", "grown", "large", "jumped")
    tool = ctx.stream("-a", "-F", 5, *ctx.without("unwinder"), columns=COLUMNS)
    tool.wait_scans(1)
    started = programs_start(ctx, ("chains_pointers",), chains) + programs_start(ctx, ("chains_fixed",), chains)
    pointers = [each for each in started if each[0].startswith("chains_pointers")]
    settle_chains(tool, pointers)
    rows = tool.interrupt()
    find = Findings()
    for words, chain in started:
        mine = rows_of(rows, chain.tid)
        find.expect(mine, "%s: no row", words)
        if tool.missed(LATE_FILE) and words.startswith("chains_pointers"):
            mine = since_whole(mine)
        for row in mine:
            frames = frames_of(row)
            find.expect(chain_programs.contains(frames, chain.expected) == words.startswith("chains_pointers"),
                        "%s: of %s there is %s", words, " ".join(chain.expected[:12]), " ".join(frames[:30]))
    find.close()


@case
def stacks_of_movers(ctx):
    """Each stack of a thread that sleeps in two places in turn is one of the two, never a part of each."""
    (_, chain), = programs_start(ctx, ("chains_gcc",), ("alternates",))
    rows = [row for row in ctx.rows("-a", "-F", 500, "-t", chain.tid, seconds=3, columns=COLUMNS) if row["ustack"]]
    check(len(rows) >= 20, "%d stacks in 3 s", len(rows))
    seen, find = set(), Findings()
    for row in rows:
        frames = frames_of(row)
        if "+0x" in row["stack"] or not row["syscall"]:
            continue  # names were not known yet, or the thread was preempted
        if re.search(r"alternates;[^;]*poll_", row["stack"]):
            continue  # between the two sleeps the thread checks whether it is to end
        find.expect(any(chain_programs.contains(frames, (side + "_inner", side, "alternates", "main")) for side in ("left", "right")),
                    "stack %s", row["stack"])
        find.expect(row["stack"].count("left") != 1 and row["stack"].count("right") != 1, "half a stack: %s", row["stack"])
        if row["state"] == "S":
            call, kernel = "poll" if "right" in row["stack"] else "nanosleep", re.findall(r"(\w[^;]*)_\[k\]", row["stack"])
            find.expect(call in row["syscall"], "%s, in the call %s", row["stack"], row["syscall"])
            find.expect(not kernel or any(call in name for name in kernel), "no %s in the kernel: %s", call, row["stack"])
        seen.add(row["ufunc"])
    find.close()
    check(seen >= {"left_inner", "right_inner"}, "only %s", sorted(seen))


@case
def stacks_of_the_kernel(ctx):
    """Kernel stacks are those of /proc/TID/stack."""
    workload = ctx.workload("mutex")
    shown = truth.kernel_stack(workload.tid)
    if shown is None:
        raise Skip("this kernel shows no stacks (CONFIG_STACKTRACE)")
    rows = rows_of(ctx.rows("-a", "-p", workload["pid"], columns=COLUMNS), workload.tid)
    check(rows, "no row")
    for row in rows:
        names = [name[:-4] for name in reversed(row["stack"].split(";")) if name.endswith("_[k]")]
        check(names == shown, "kernel stack %s, /proc shows %s", names, shown)
        check(row["kfunc"] in shown and row["kfuncs"].endswith(row["kfunc"]), "kfunc %s, kfuncs %s", row["kfunc"], row["kfuncs"])
        check("futex" in row["kfunc"], "kfunc %s of a futex", row["kfunc"])


def lines_below(report, tid):
    """[(share, {"user": [frame ...], "kernel": [...]})] of the stacks below the line with that tid; frames outermost first."""
    lines = report.splitlines()
    at = next(i for i, line in enumerate(lines) if line.split()[-1:] == [str(tid)] and line.split()[0][0].isdigit()) + 1
    stacks = []
    for line in lines[at:]:
        share, half, frames = re.fullmatch(r" {6} *(?:([0-9.]+)%)? +(user|kernel) +(.*)", line).groups() if " > " in line else (0, 0, 0)
        if not half:
            break
        if share:
            stacks.append((float(share), {}))
        stacks[-1][1][half] = frames.split(" > ")
    return stacks


@case
def stacks_below_lines(ctx):
    """--stacks prints below the line of each thread its chain, callers first, whole or with the number of frames that are left out."""
    started = programs_start(ctx, ("chains_gcc", "chains_fixed"))
    tids = ",".join(str(chain.tid) for _, chain in started)
    tool = ctx.plain("-a", "--stacks", "-d", 2, "-F", 5, "-t", tids, "-g", "tid")
    tool.finish_plain()
    report = tool.out.decode()
    find = Findings()
    for words, chain in started:
        stacks = lines_below(report, chain.tid)
        find.expect(len(stacks) == 1 and stacks[0][0] > 50, "%s: %s", words, stacks)
        if not stacks:
            continue
        frames = list(reversed(stacks[0][1]["user"]))
        skipped = [name for name in frames if re.fullmatch(r"\(\d+ more\)", name)]
        find.expect(bool(skipped) == (len(frames) == 13), "%s: %s", words, frames)
        expected = chain.expected
        if skipped:
            frames = frames[:10]
            # what a walk leaves out of a deep stack is further out
            expected = [name for name in chain.expected[:6] if name not in ("*", "[...]")][:4]
        find.expect(chain_programs.contains(frames, expected), "%s: expected %s, found %s", words, " ".join(expected), frames)
        find.expect("kernel" in stacks[0][1], "%s: no kernel frames", words)
    find.close()


def dictionary_read(path):
    """{hash: row}; half a row at the end does not count."""
    with open(path, "rb") as file:
        text = file.read()
    rows = list(csv.DictReader(text[:text.rfind(b"\n") + 1].decode().splitlines(True)))
    table = {row["hash"]: row for row in rows}
    check(len(table) == len(rows), "a stack is in the dictionary twice")
    return table


def told_right(rows, started, table):
    """True if the dictionary, as far as it is written, has the chain for the last row of each thread."""
    for _, chain in started:
        mine = asleep_of(rows, chain)
        if not mine or mine[-1]["ustack"] not in table:
            return False
        if not chain_programs.contains(frames_of({"stack": table[mine[-1]["ustack"]]["frames"]}), chain.expected):
            return False
    return True


def expect_told(find, started, rows, table, tool):
    """Each hash of a row has frames in the dictionary, and hashes of chains have the chains' frames."""
    for row in rows:
        for column, kind in (("ustack", "user"), ("kstack", "kernel")):
            find.expect(not row[column] or row[column] in table, "%s %s of %s is not in the dictionary", column, row[column], row["tid"])
            find.expect(not row[column] or table.get(row[column], {"kind": kind})["kind"] == kind, "%s is no %s stack", row[column], kind)
    for words, chain in started:
        mine = [row for row in rows_of(rows, chain.tid) if row["ustack"] in table and row["state"] in "SD"]
        find.expect(mine, "%s: no row", words)
        for row in mine[-1:]:
            entry = table[row["ustack"]]
            frames = frames_of({"stack": entry["frames"]})
            find.expect(chain_programs.contains(frames, chain.expected), "%s: expected %s, found %s; tsnap says %s", words,
                        chain.expected[:12], frames[:30], tool.err)
            find.expect(entry["func"] in frames and entry["funcs"].endswith(entry["func"]), "%s: %s", words, entry)


@case
def stacks_in_a_dictionary(ctx):
    """--stack-dict has the stack of every hash in the rows, however tsnap ended; a replay shows it."""
    find = Findings()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        folder = ctx.temporary()
        dictionary, recording = os.path.join(folder, "dictionary.csv"), os.path.join(folder, "rows.csv")
        tool = ctx.stream("-a", "-F", 5, "--stack-dict", dictionary, columns="state,comm")
        tool.wait_scans(1)
        started = programs_start(ctx, ("chains_gcc", "chains_fixed"))
        before = len(tool.scans())
        # while other programs run a program's files may be read a few scans later
        settle(lambda: len(tool.scans()) >= before + 5 and told_right(tool.rows(), started, dictionary_read(dictionary)))
        rows = tool.rows()
        if number == signal.SIGKILL:
            tool.wait_scans(len(tool.scans()) + 10)  # the dictionary is written once a second
            tool.signal(number)
            tool.wait(30)
        else:
            rows = tool.interrupt(number)
        expect_told(find, started, rows, dictionary_read(dictionary), tool)
        with open(recording, "wb") as file:
            file.write(tool.out[:tool.out.rfind(b"\n") + 1])
        replay = ctx.plain("--replay", recording, "--stack-dict", dictionary, "--folded", "-a", "-g", "tid")
        replay.finish_plain()
        folded = replay.out.decode().splitlines()
        for words, chain in started:
            lines = [line.rsplit(" ", 1)[0].split(";") for line in folded if line.startswith("%d;" % chain.tid)]
            find.expect(any(chain_programs.contains(list(reversed(line)), chain.expected) for line in
                            ([name for name in line if not name.endswith("_[k]")] for line in lines)),
                        "%s: not in the replay: %s", words, lines[:2])
        for _, chain in started:
            chain.end()
    find.close()


@case
def stack_dictionary_that_cannot_be_written(ctx):
    """A full disk ends the run with a line that names the file."""
    tool = ctx.plain("--csv", "-a", "-d", 3, "--stack-dict", "/dev/full")
    tool.finish_plain(code=1)
    check("tsnap: /dev/full: No space left on device" in tool.err, "%r", tool.err)


@case(paired=True)
def stacks_of_wakers(ctx):
    """--off-wake has above the sleeper's frames those of the thread that wakes it, innermost first; from hashes, too."""
    program = os.path.join(directory_of(ctx), "wakes")
    process = Process([program])
    ctx.started.append(process)
    wait_until(lambda: b"\n" in process.out, START_S, "the sleeper")
    sleeper, waker = (int(word) for word in process.out.split()[1:])
    sleeps, wakes = ["sleep_outer", "sleep_inner"], ["wake_inner_[w]", "wake_outer_[w]"]
    folded = ctx.plain("--folded", "--off-wake", "-d", 2, "-t", sleeper, "-g", "tid")
    folder = ctx.temporary()
    dictionary, recording = os.path.join(folder, "dictionary.csv"), os.path.join(folder, "rows.csv")
    rows = ctx.rows("-a", "-t", sleeper, "--stack-dict", dictionary, columns="state,waker_tid,waker_comm,waker_ustack,waker_kstack")
    folded.finish_plain()
    with open(recording, "wb") as file:
        file.write(("\n".join([",".join(rows[0])] + [",".join('"%s"' % one if one and not one.isdigit() else one for one in row.values())
                                                     for row in rows]) + "\n").encode())
    replay = ctx.plain("--replay", recording, "--stack-dict", dictionary, "--folded", "--off-wake", "-g", "tid")
    replay.finish_plain()
    wakers = {row["waker_tid"] for row in rows if row["waker_tid"]}  # waker_tid is absent until the sleeper was woken once
    check(wakers == {str(waker)}, "wakers %s, not %d", wakers, waker)
    for words, output in (("live", folded.out.decode()), ("replay", replay.out.decode())):
        total = told = 0
        for line in output.splitlines():
            stack, weight = line.rsplit(" ", 1)
            below, _, above = stack.partition(";--;")
            total += int(weight)
            if chain_programs.contains(below.split(";"), sleeps) and chain_programs.contains(above.split(";"), wakes) and \
                    above.endswith(";wakes_[w]"):
                told += int(weight)
        # the waker sleeps for all but some microseconds of each 50 ms
        check(told > 0.8 * total > 0, "%s: %d of %d us: %s", words, told, total, output[:1000])
    # the waker has no sample: its functions are looked up in the first scan, like the sleeper's, unless the scan had no time left for them
    for _ in range(FIRST_SCANS):
        halves = [line.partition(";--;") for line in folded.out.decode().splitlines()]
        if any("wakes+0x" in below for below, _, _ in halves) or not any("wakes+0x" in above for _, _, above in halves):
            return
        folded = ctx.plain("--folded", "--off-wake", "-d", 1, "-t", sleeper, "-g", "tid")
        folded.finish_plain()
    check(False, "a waker's functions were not looked for in time: %s", halves)
