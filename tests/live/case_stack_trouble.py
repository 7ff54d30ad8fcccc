"""Stacks that are none, damaged files, lists of functions by strangers: each is counted and reported, and scans come in time."""
import ctypes
import os
import random
import re
import shutil
import subprocess
import time

import truth
from case_stacks import COLUMNS, chain_programs, directory_of, frames_of, programs_start
from growth import Room
from harness import SLOW, START_S, STOP_S, Findings, Process, Skip, case, check, rows_of, settle, singular, wait_until
from parts import FIRST_SLOW

UNREADY = 77
HZ = 20
NO_CPU = "late scans (tsnap waited for a CPU, or for its output)"
MAP_CUT = "files with more functions than are read"
NO_MAP = "processes whose perf-PID.map is no plain file, or another user's"
SHORT = "user stacks cut off before their outermost frame"
UNREAD = "user stacks cut off at memory that is not there, or not in RAM (swapped out, or held back by its process: it is not read)"


def cut_short(missed):
    return missed[SHORT] + missed[UNREAD]


class Strange(Process):
    """A program of tests/stack/strange.c."""

    def __init__(self, ctx, name, **popen):
        path = os.path.join(directory_of(ctx), "strange")
        if not os.path.exists(path):
            raise Skip("tests/stack/strange is not built")
        super().__init__([path, name], **popen)
        ctx.started.append(self)
        wait_until(lambda: b"\n" in self.out or self.code is not None, START_S, name)
        if self.code == UNREADY:
            raise Skip("no %s here" % name)
        self.tid, self.code_at = (int(word, 0) for word in self.out.decode().split()[1:])
        wait_until(lambda: truth.Thread(self.tid).letter in "St", START_S, name + " asleep")

    def end(self):
        self.process.kill()
        super().end()


def report(ctx, pids, seconds=3, columns="tid,stack"):
    """(scans a second, including those for which the host had no CPU; {what was missed: how often}; output) of a plain report."""
    tool = ctx.plain("-a", "-F", HZ, "-d", seconds, "-g", columns, *(["-p", ",".join(str(pid) for pid in pids)] if pids else []))
    tool.finish_plain(0, START_S + seconds + STOP_S)
    text = tool.out.decode(errors="replace")
    rate = float(re.search(r"([\d.]+) Hz \(-F %d\)" % HZ, text).group(1))
    counts = dict((what, int(count)) for count, what in re.findall(r"(?:Missed: |; |, )(\d+) ([a-z][^;\n]*)", text))
    missed = {what: counts.get(what, counts.get(singular(what), 0)) for what in (NO_CPU, SHORT, UNREAD, NO_MAP, MAP_CUT)}
    return rate + missed[NO_CPU] / seconds, missed, text


def expect_rate(find, rate):
    find.expect(rate >= 0.9 * HZ / SLOW, "%g scans a second of %d", rate, HZ)


@case
def stacks_that_are_none(ctx):
    """Stack pointers to nowhere and to unreadable memory and frames in a circle give the innermost frames and [lost]; a thread
    that another one traces is shown as any other."""
    strange, find = {}, Findings()
    for name in ("nowhere", "secret", "cycle", "jit", "traced"):
        try:
            strange[name] = Strange(ctx, name)
        except Skip as skip:
            print("# %s" % skip)
            check(name == "secret", "%s", skip)
    pids = [one.pid for one in strange.values()] + [strange["traced"].tid]
    lost = {"nowhere", "secret", "cycle"} & set(strange)

    def is_right(name, rows):
        """True if the last row is right: on a full host files are read in later scans."""
        if len(rows) <= HZ or not rows[-1]["ustack"]:
            return False
        frames = frames_of(rows[-1])
        if frames[0] != name and name not in ("cycle", "jit", "traced"):
            return False
        if name == "traced" and (frames[-1] != "_start" or rows[-1]["state"] != "T"):
            return False
        return len(frames) <= 5 and frames[-1] == "[lost]" if name in lost else frames[-1] != "[lost]"

    tool = ctx.stream("-a", "-F", HZ, "-p", ",".join(str(pid) for pid in pids), columns=COLUMNS)
    settle(lambda: tool.code is not None or all(is_right(name, rows_of(tool.rows(), one.tid)) for name, one in strange.items()))
    rows = tool.interrupt()
    for name, one in strange.items():
        mine = rows_of(rows, one.tid)
        find.expect(is_right(name, mine), "%s: %d rows, the last: %s", name, len(mine), mine[-1:])
    rate, missed, _ = report(ctx, pids)
    find.expect(cut_short(missed) == len(lost), "missed: %s", missed)
    expect_rate(find, rate)
    find.close()


def section(path, name):
    """(offset, bytes) of a section in a file."""
    lines = subprocess.run(["readelf", "-WS", path], stdout=subprocess.PIPE, check=True).stdout.decode()
    words = re.search(r"\] %s\s+\S+\s+\w+ (\w+) (\w+)" % re.escape(name), lines)
    return int(words.group(1), 16), int(words.group(2), 16)


def hurt(path, how, dice):
    """Damages a file in place: processes have it mapped."""
    size = os.path.getsize(path)
    places = {"table": section(path, ".eh_frame"), "search": section(path, ".eh_frame_hdr"), "headers": (0, 1024),
              "sections": (size - 2048, 2048), "names": section(path, ".dynsym")}
    if how == "cut":
        os.truncate(path, dice.randrange(size))
        return
    start, count = places[how]
    with open(path, "r+b") as file:
        for _ in range(max(count // 4, 1)):
            file.seek(start + dice.randrange(count))
            file.write(bytes([dice.choice((0, 0x7f, 0x80, 0xff, dice.randrange(256)))]))


@case
def stacks_of_hurt_files(ctx):
    """Through libraries whose unwind tables, headers or symbols were overwritten, or that were cut, while they are in use, a stack may be
    lost, which is counted; other stacks are whole."""
    directory, dice, chains = directory_of(ctx), random.Random(6), []
    (words, good), = programs_start(ctx, ("chains_gcc",), ("library",))
    apart = ctx.temporary()
    for i in range(36):
        how = ("table", "search", "headers", "sections", "names", "cut")[i % 6]
        own = os.path.join(apart, str(i))
        os.mkdir(own)
        path = os.path.join(own, "chains_library.so")
        shutil.copy2(os.path.join(directory, "chains_library.so"), path)
        os.chown(path, 65534, 65534)  # else tsnap takes root's file, with equal build-id and size, for its stacks
        chain = chain_programs.Chain(os.path.join(directory, "chains_gcc"), "library", own)
        ctx.started.append(chain)
        hurt(path, how, dice)
        chains.append((how, chain))
    pids = [chain.process.pid for _, chain in chains] + [good.process.pid]
    find = Findings()
    tool = ctx.stream("-a", "-F", HZ, "-p", ",".join(str(pid) for pid in pids), columns=COLUMNS)
    tool.wait_scans(2 * HZ)

    def named():
        """True if the last rows name the functions: on a full host files are read in later scans."""
        rows = tool.rows()
        inner = ["sleep_here", "called_back"]
        return all(any(chain_programs.contains(frames_of(row), expected) for row in rows_of(rows, chain.tid)[-1:])
                   for chain, expected in [(chain, inner) for _, chain in chains] + [(good, good.expected)])

    settle(named)
    rows = tool.interrupt()
    whole = 0
    for how, chain in chains:
        mine = [row for row in rows_of(rows, chain.tid) if row["ustack"]]
        find.expect(mine, "%s: no stack", how)
        if mine:
            frames = frames_of(mine[-1])
            # up to the library's frames no file was damaged
            find.expect(chain_programs.contains(frames, ["sleep_here", "called_back"]), "%s: %s", how, frames)
            whole += frames[-1] != "[lost]"
    mine = [row for row in rows_of(rows, good.tid) if row["ustack"]]
    find.expect(mine and chain_programs.contains(frames_of(mine[-1]), good.expected), "%s: %s", words, mine[-1:])
    rate, missed, text = report(ctx, pids)
    print("# %d of %d whole" % (whole, len(chains)))
    find.expect(cut_short(missed) == len(chains) - whole, "%d whole; missed: %s", whole, missed)
    find.expect(whole < len(chains), "nothing was hurt")
    expect_rate(find, rate)
    find.close()


@case
def stacks_of_forged_files(ctx):
    """Stacks in a file have its own names although a user's file, with other names, claims its build-id."""
    directory, own, find = directory_of(ctx), ctx.temporary(), Findings()
    path = os.path.join(own, "chains_library.so")
    with open(os.path.join(directory, "chains_library.so"), "rb") as file:
        before = file.read()
    with open(path, "wb") as file:
        file.write(before.replace(b"\0library_inner\0", b"\0forged_inner_\0"))
    os.chown(path, 65533, 65533)
    tool = ctx.stream("-a", "-F", HZ, columns=COLUMNS)
    tool.wait_scans(1)
    for where, name in (own, "forged_inner_"), (directory, "library_inner"):
        chain = chain_programs.Chain(os.path.join(directory, "chains_gcc"), "library", where)
        ctx.started.append(chain)

        def last():
            return [frames_of(row) for row in rows_of(tool.rows(), chain.tid) if row["ustack"]][-1:]

        expected = [name if one == "library_inner" else one for one in chain.expected]
        settle(lambda: any(chain_programs.contains(frames, expected) for frames in last()))
        find.expect(any(chain_programs.contains(frames, expected) for frames in last()), "expected %s, found %s", expected, last())
    tool.interrupt()
    find.close()


def not_emulated():
    if SLOW >= FIRST_SLOW:
        raise Skip("too much to write in an emulated machine")


def map_write(pid, lines, size=None, uid=None):
    path = "/tmp/perf-%d.map" % pid
    with open(path, "wb") as file:
        file.write(lines)
    if size:
        os.truncate(path, size)
    if uid is not None:
        os.chown(path, uid, uid)
    return path


def mounts_leave():
    """Enters a mount namespace of its own, whose mounts no other process sees."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not libc.unshare(0x20000):
        libc.mount(None, b"/", None, 1 << 14 | 1 << 18, None)


def proc_file_as_map(ctx, pid, line):
    """Mounts the command line of another process where process pid should have its perf map; returns whether that could be done."""
    other = Process(["sh", "-c", "read nothing", "\n" + line.decode() + "from_proc\n"])
    ctx.started.append(other)
    path = map_write(pid, b"")
    done = subprocess.run(["nsenter", "--mount=/proc/%d/ns/mnt" % pid, "mount", "--bind", "/proc/%d/cmdline" % other.pid, path],
                          stderr=subprocess.DEVNULL)
    return done.returncode == 0


@case(thorough=True)
def stacks_of_strange_maps(ctx):
    """A list of a JIT's functions, of 1 GB, with hostile names, a link to elsewhere, or of another user, is shown as far as it is credible,
    printable, and scans come in time meanwhile."""
    not_emulated()
    stranger, find = 4711, Findings()
    ones = {name: Strange(ctx, "jit") for name in ("plain", "large", "hostile", "zeros", "link", "stranger")}
    ones["made_up"] = Strange(ctx, "jit", preexec_fn=mounts_leave)
    paths = ["/tmp/perf-%d.map" % one.pid for one in ones.values()]
    for path in paths:
        check(not os.path.lexists(path), "%s is there", path)
        ctx.at_end(lambda path=path: os.path.lexists(path) and os.unlink(path))
    line = {name: b"%x 10 " % one.code_at for name, one in ones.items()}
    map_write(ones["plain"].pid, line["plain"] + b"made code\n")
    many = b"".join(b"%x 8 function_of_a_large_map_%d\n" % (0x1000 + 16 * i, i) for i in range(1 << 20))
    map_write(ones["large"].pid, line["large"] + b"first\n" + many * 4, 1 << 30)
    map_write(ones["hostile"].pid, line["hostile"] + b"a;b\x1b[31m\xff\"<script>,\r" + b"x" * 9000 + b"\n")
    map_write(ones["zeros"].pid, b"", 10 << 30)
    elsewhere = ctx.temporary() + "/map"
    with open(elsewhere, "wb") as file:
        file.write(line["link"] + b"from_elsewhere\n")
    os.symlink(elsewhere, "/tmp/perf-%d.map" % ones["link"].pid)
    map_write(ones["stranger"].pid, line["stranger"] + b"of_a_stranger\n", uid=stranger)
    made_up = proc_file_as_map(ctx, ones["made_up"].pid, line["made_up"])
    pids = [one.pid for one in ones.values()]
    rows = ctx.rows("-a", "-F", HZ, "-p", ",".join(str(pid) for pid in pids), seconds=4, columns=COLUMNS)
    names = {name: frames_of(rows_of(rows, one.tid)[-1])[0] for name, one in ones.items()}
    for name, function in (("plain", "made code"), ("large", "first")):
        find.expect(names[name] == function, "%s: %s", name, names[name])
    find.expect(names["hostile"].startswith("a:b") and names["hostile"].isprintable() and len(names["hostile"]) < 1000, "%r",
                names["hostile"])
    for name in ("zeros", "link", "stranger", "made_up"):
        find.expect(names[name] == "[jit]+%#x" % (ones[name].code_at + 3), "%s: %s", name, names[name])
    rate, missed, text = report(ctx, pids, 4)
    find.expect(missed[MAP_CUT] >= 1, "that a map was cut is not told: %s", missed)
    find.expect(missed[NO_MAP] == 2 + made_up, "%s", missed)
    expect_rate(find, rate)
    find.close()


@case(alone=True)
def stacks_over_growth(ctx):
    """When the map of threads is made larger all that is known of stacks is forgotten, and found out again."""
    room = Room(ctx)
    (_, one), = programs_start(ctx, ("chains_gcc",), ("library",))
    tool = ctx.stream("-a", "-F", HZ, "-p", one.process.pid, columns=COLUMNS)

    def whole():
        return any(chain_programs.contains(frames_of(row), one.expected) for row in rows_of(tool.rows(), one.tid)[-1:])
    wait_until(whole, START_S, "the whole stack")
    ctx.workload("many", threads=room.widen().threads, pairs=0)
    wait_until(lambda: room.was_left(tool.pid), 30 * SLOW, "a larger map")
    tool.wait_scans(len(tool.scans()) + HZ)
    wait_until(whole, START_S, "the whole stack again")
    tool.interrupt()
    check("the map was made larger" in tool.err, "it was not: %s", tool.err)


@case(alone=True)
def stacks_of_short_lives(ctx):
    """Processes that begin, exec and end while they are read have stacks that are right, or count as missed, and a chain
    that runs meanwhile is whole."""
    (words, good), = programs_start(ctx, ("chains_gcc",), ("recursion",))
    storm = Process(["bash", "-c", "while :; do (exec sh -c 'exec sleep 0.003') & (exec sleep 0.001) & wait; done"])
    ctx.started.append(storm)
    tool = ctx.stream("-a", "-F", 500, "-d", 4, "-r", "-p", "%d,%d" % (storm.process.pid, good.process.pid), columns=COLUMNS)
    rows = tool.finish(0, START_S + STOP_S)
    storm.process.kill()
    brief = [row for row in rows if row["comm"] in ("sh", "sleep", "bash")]
    whole = sum(bool(row["ustack"]) and frames_of(row)[-1] in ("_start", "main") or "+0x" in row["stack"].split(";")[0]
                for row in brief)
    find = Findings()
    find.expect(len({row["tid"] for row in brief}) > 100 / SLOW, "%d short lives", len({row["tid"] for row in brief}))
    find.expect(all(line.startswith("tsnap: missed: ") for line in tool.err.splitlines()), "%s", tool.err)
    find.expect("(needs CAP_SYS_" not in tool.err, "who ended counts as refused: %s", tool.err)
    for row in [row for row in rows_of(rows, good.tid) if row["ustack"]][-5:]:
        find.expect(chain_programs.contains(frames_of(row), good.expected), "%s: %s", words, frames_of(row)[:8])
    print("# %d samples of %d short lives, %d whole stacks" % (len(brief), len({row["tid"] for row in brief}), whole))
    find.close()


@case(paired=True)
def stacks_of_programs_in_turns(ctx):
    """A process that execs another program every few milliseconds, with other code at the same addresses, has the stacks of the
    program that sleeps in the call, and never of the program before."""
    paths = [os.path.join(directory_of(ctx), name) for name in ("execs_one", "execs_two")]
    if not all(os.path.exists(path) for path in paths):
        raise Skip("tests/stack/execs is not built")
    find, calls = Findings(), {"clock_nanosleep": ["one", "main"], "poll": ["two_inner", "two", "main"]}
    for ms in (1, 20):
        turns = Process([paths[0], paths[1], paths[0], str(ms)])
        ctx.started.append(turns)
        rows = ctx.rows("-a", "-F", 200, "-p", turns.pid, "--filter", "state=S", seconds=int(3 * SLOW), columns=COLUMNS)
        turns.process.kill()
        seen = [row for row in rows if row["ustack"] and row["syscall"] in calls]
        # where CPUs are emulated reading a stack takes longer than so short a sleep
        find.expect((SLOW > 1 and ms == 1) or ({row["syscall"] for row in seen} == set(calls) and len(seen) > 100 / SLOW),
                    "%d ms: %d stacks", ms, len(seen))
        for row in seen:
            frames = frames_of(row)
            find.expect(chain_programs.contains(frames, calls[row["syscall"]]) or "+0x" in row["stack"], "%d ms, %s: %s", ms, row["syscall"],
                        frames)
    find.close()


def memory_of(ctx, pids, columns):
    """(most bytes of memory of tsnap and its parsers, output) of a report of these processes."""
    tool = ctx.plain("-a", "-F", HZ, "-d", 6, "-g", columns, "-p", ",".join(str(pid) for pid in pids))
    most = 0
    while tool.code is None:
        # RssAnon: memory that the processes share is not counted for each
        most = max(most, truth.memory_bytes([tool.pid] + tool.parsers(), "RssAnon"))
        time.sleep(0.05)
    tool.finish_plain(0, START_S + STOP_S)
    return most, tool.out.decode(errors="replace")


@case(thorough=True)
def stacks_of_many_files(ctx):
    """With more large programs than memory allows what is kept of their files stays within 64 MB, what was dropped is reported, and
    the stacks are whole."""
    not_emulated()
    directory, apart, chains = directory_of(ctx), ctx.temporary(), []
    for i in range(16):
        copy = os.path.join(apart, "large%d" % i)
        shutil.copy2(os.path.join(directory, "chains_large"), copy)
        chains.append(chain_programs.Chain(copy, "recursion", directory))
        ctx.started.append(chains[-1])
    pids = [chain.process.pid for chain in chains]
    bare, _ = memory_of(ctx, pids, "tid,comm")
    most, text = memory_of(ctx, pids, "tid,comm,stack")
    print("# %.1f MB, without stacks %.1f MB" % (most / 1e6, bare / 1e6), text[text.index("Missed"):] if "Missed" in text else "")
    check(most - bare <= 64 << 20, "%d bytes, without stacks %d", most, bare)
    check("tables of files dropped" in text, "nothing was given back: %s", text[-500:])
    rows, find = ctx.rows("-a", "-F", HZ, "-p", ",".join(str(pid) for pid in pids), columns=COLUMNS), Findings()
    for chain in chains:
        frames = frames_of(rows_of(rows, chain.tid)[-1])
        find.expect(chain_programs.contains(frames, chain.expected), "%s: %s", chain.program, frames[:4])
    find.close()


@case(alone=True)
def stacks_let_go_of_files(ctx):
    """The file of a program that was replaced and has ended is closed soon, so that a file system can be unmounted and space is free."""
    directory, own = directory_of(ctx), ctx.temporary()
    (words, good), = programs_start(ctx, ("chains_gcc",), ("recursion",))
    copy = os.path.join(own, "chains_gcc")
    shutil.copy2(os.path.join(directory, "chains_gcc"), copy)
    chain = chain_programs.Chain(copy, "recursion", directory)
    ctx.started.append(chain)
    pids = [chain.process.pid, good.process.pid]
    tool = ctx.stream("-a", "-F", HZ, "-p", ",".join(str(pid) for pid in pids), columns=COLUMNS)
    tool.wait_scans(HZ, lambda row: row["tid"] == str(chain.tid) and row["ustack"])

    def is_open():
        folders = ["/proc/%d/fd" % pid for pid in [tool.pid] + tool.parsers()]
        links = subprocess.run(["ls", "-l"] + folders, stdout=subprocess.PIPE, check=False).stdout.decode()
        return own in links
    find = Findings()
    find.expect(is_open(), "the file of %s was not open", copy)
    os.unlink(copy)
    chain.end()
    wait_until(lambda: not is_open(), 2 * SLOW, "the file is closed")
    rows = tool.interrupt()
    mine = [row for row in rows_of(rows, chain.tid) if row["state"] != "Z"]
    find.expect(mine and chain_programs.contains(frames_of(mine[-1]), chain.expected), "%s", mine[-1:])
    mine = rows_of(rows, good.tid)
    find.expect(chain_programs.contains(frames_of(mine[-1]), good.expected), "%s: %s", words, frames_of(mine[-1])[:8])
    find.close()
