"""Hostile programs of an unprivileged user: they cost that user's own threads something, and no other thread."""
import csv
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import time

import truth
from harness import Findings, Process, SLOW, START_S, STOP_S, Skip, Tsnap, case, check, let_pass, rows_of, scans_of, settle, timestamp_s, wait_until
from case_cost import resident_kb
from case_stacks import chain_programs, directory_of, frames_of

ROWS_BYTES = 24 << 20  # about 400 000 rows, each with another name


@case(alone=True, thorough=True)
def hostile_names(ctx):
    """Threads that are renamed every 4 ms: tsnap's memory for names does not grow with them, and names of other threads are known."""
    spin = ctx.workload("spin")
    ctx.workload("hostile_names", threads=300)
    path = os.path.join(ctx.temporary(), "rows")
    with open(path, "wb") as file:
        tool = subprocess.Popen([ctx.options.tsnap, "--csv", "-a", "-F", "200", "-g", "comm,tid", "-d", "120"], stdout=file)
    wait_until(lambda: os.path.getsize(path) > 10000, START_S, "rows")
    with open("/proc/%d/task/%d/children" % (tool.pid, tool.pid), encoding="ascii") as file:
        worker = int(file.read().split()[0])
    before = resident_kb(worker)
    wait_until(lambda: os.path.getsize(path) > ROWS_BYTES, 90, "rows enough")
    grown = resident_kb(worker) - before
    tool.send_signal(signal.SIGTERM)
    check(tool.wait(STOP_S) == 0, "exit code %d", tool.returncode)
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = {row["comm"] for row in rows if row["tid"] != str(spin.tid)}
    check(len(names) > 250000, "only %d names were seen", len(names))
    check({row["comm"] for row in rows if row["tid"] == str(spin.tid)} == {"spin"}, "the spinning thread has other names")
    check("[too many names]" not in names, "names were given up")
    check(grown < 16384, "%d KB more after %d names", grown, len(names))


KEPT = ("bpf", "perfmon", "sys_ptrace", "dac_read_search", "syslog", "sys_nice", "ipc_lock", "checkpoint_restore")
CAPABILITIES = {"chown": 0, "dac_override": 1, "dac_read_search": 2, "fowner": 3, "ipc_lock": 14, "sys_ptrace": 19, "sys_admin": 21,
                "sys_nice": 23, "syslog": 34, "perfmon": 38, "bpf": 39, "checkpoint_restore": 40}


def threads_of(pid):
    """The lines of /proc/PID/task/TID/status of each thread, as dicts."""
    tids = truth.read_dir("/proc/%d/task" % pid)
    return list(filter(None, (truth.lines_of("/proc/%d/task/%s/status" % (pid, tid)) for tid in tids)))


def privileges_of(pid):
    """(capabilities of all threads together, whether none can get more, whether all have a filter of system calls)"""
    threads = threads_of(pid)
    sets = 0
    for thread in threads:
        for name in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
            sets |= int(thread[name], 16)
    return sets, all(thread["NoNewPrivs"] == "1" for thread in threads), all(thread["Seccomp"] == "2" for thread in threads)


@case(long=True)
def sandbox_of_forms(ctx):
    """Every thread that reads foreign data has only the capabilities that its options need, gets no new ones, and has a filter of calls."""
    ctx.workload("spin")
    directory = ctx.temporary()
    writes = ("chown", "dac_override", "fowner")
    old = int(open("/proc/sys/kernel/cap_last_cap", encoding="ascii").read()) < CAPABILITIES["bpf"]
    for form, more in ((("-a",), ()), (("--csv", "-a", "-G", "ufunc"), ()), (("-a", "--stacks"), ("sys_admin",)),
                       (("-a", "-g", "connection"), ("sys_admin",)), (("-a", "-o", directory), writes),
                       (("-a", "--flame", os.path.join(directory, "x.svg")), ("sys_admin",) + writes)):
        tool = ctx.plain(*form, "-d", 60)
        # a third parser reads memory of processes, such as this one, whose language has stacks of its own
        counts = (2, 3) if set(form) & {"ufunc", "--stacks", "--flame"} else (0,)
        settle(lambda: tool.code is not None or privileges_of(tool.pid)[2] and len(threads_of(tool.pid)) > 1 and len(tool.parsers()) in counts)
        check(tool.code is None, "%s: tsnap ended (%s): %s", form, tool.code, tool.err)
        let_pass(1)
        check(len(tool.parsers()) in counts, "%s: parsers %s", form, tool.parsers())
        for parser in tool.parsers():
            settle(lambda parser=parser: privileges_of(parser) == (0, True, True), STOP_S)  # the parser may have begun just now
            check(privileges_of(parser) == (0, True, True), "%s: a parser may do more: %s", form, privileges_of(parser))
        kept, no_new, filtered = privileges_of(tool.pid)
        allowed = sum(1 << CAPABILITIES[name] for name in KEPT + more + (("sys_admin",) if old else ()))
        check(not kept & ~allowed, "%s: capabilities %x beyond %x", form, kept, allowed)
        check(kept >> CAPABILITIES["sys_ptrace"] & 1, "%s: CAP_SYS_PTRACE is not kept", form)
        check(no_new and filtered, "%s: no_new_privs %s, filter %s", form, no_new, filtered)
        tool.signal(signal.SIGTERM)
        tool.finish_plain(0)
    free = ctx.plain("-a", "-d", 60, "--no-sandbox")
    time.sleep(2)
    kept, no_new, filtered = privileges_of(free.pid)
    check(kept >> CAPABILITIES["chown"] & 1 and not no_new and not filtered, "--no-sandbox: %x", kept)
    free.signal(signal.SIGTERM)
    free.finish_plain(0)


@case
def sandbox_of_replay(ctx):
    """A replay keeps no capability except to read files, gets no new ones, and has a filter of calls before it reads the first byte."""
    with open(os.path.join(os.path.dirname(__file__), "..", "fixtures", "small.csv"), "rb") as file:
        rows = file.read()
    tool = Tsnap([ctx.options.tsnap, "--replay", "-", "--csv", "-a"])
    ctx.started.append(tool)
    wait_until(lambda: privileges_of(tool.process.pid)[2], START_S, "the sandbox")
    kept, no_new, _ = privileges_of(tool.process.pid)
    check(not kept & ~(1 << CAPABILITIES["dac_read_search"]) and no_new, "capabilities %x, no new ones: %s", kept, no_new)
    tool.process.stdin.write(rows)
    tool.process.stdin.close()
    check(len(tool.finish()) == len(rows.splitlines()) - 1, "%d rows of %d lines", len(tool.rows()), len(rows.splitlines()))
    free = Tsnap([ctx.options.tsnap, "--replay", "-", "--csv", "-a", "--no-sandbox"])
    ctx.started.append(free)
    wait_until(lambda: truth.Thread(free.process.pid).letter == "S", START_S, "that it waits for rows")
    check(not privileges_of(free.process.pid)[2], "--no-sandbox has a filter")


@case
def parsers_that_die(ctx):
    """Parsers are killed, idle and at work: scans and samples are whole, new parsers are started, stacks of new programs are known, and
    the footer counts the killed ones."""
    spin, directory, own, find = ctx.workload("spin"), directory_of(ctx), ctx.temporary(), Findings()
    tool = ctx.stream("-a", "-F", 10, columns="ustack,stack")
    tool.wait_scans(10)
    began, chains, killed = time.monotonic(), [], set()
    for i in range(8):
        copy = os.path.join(own, "chains%d" % i)
        shutil.copy2(os.path.join(directory, "chains_gcc"), copy)
        for parser in tool.parsers() if i % 2 else []:
            killed.add(parser)
            os.kill(parser, signal.SIGKILL if i % 4 == 1 else signal.SIGSEGV)
        chains.append(chain_programs.Chain(copy, "recursion", directory))
        ctx.started.append(chains[-1])
        for _ in range(20):
            time.sleep(0.03)
            # kills the parser while it reads a new program's file, not long after the program began
            for parser in tool.parsers()[:1] if i in (2, 6) and len(killed) < 20 else []:
                killed.add(parser)
                os.kill(parser, signal.SIGKILL)
    time.sleep(2)
    took, rows = time.monotonic() - began, tool.interrupt()
    scans = tool.scans()
    find.expect(len(scans) > 0.8 * 10 * took / SLOW, "%d scans in %.1f s", len(scans), took)
    find.expect(len(rows_of(rows, spin.tid)) == len(scans), "%d rows of the spinning thread in %d scans", len(rows_of(rows, spin.tid)),
                len(scans))
    for chain in chains:
        frames = frames_of(rows_of(rows, chain.tid)[-1])
        find.expect(chain_programs.contains(frames, chain.expected), "%s: %s", chain.program, frames[:8])
    lost = tool.missed("that read files for stacks and ended")
    # the number of parsers that can be killed depends on the machine; the last one killed is not missed by any request
    find.expect(min(8, len(killed) - 2) <= lost <= len(killed), "%d of %d are counted: %s", lost, len(killed), tool.err)
    find.close()


def copy_started(ctx, directory, copy):
    """A chain of a new program, whose file no parser has read."""
    shutil.copy2(os.path.join(directory, "chains_gcc"), copy)
    chain = chain_programs.Chain(copy, "recursion", directory)
    ctx.started.append(chain)
    return chain


@case
def parsers_without_spawner(ctx):
    """The process that starts parsers is killed: its standby goes on, and functions of new programs are known. That is killed, too, with
    all that follow: scans and samples are whole, known stacks stay known. The footer says both."""
    directory, own, find = directory_of(ctx), ctx.temporary(), Findings()
    known = chain_programs.Chain(os.path.join(directory, "chains_gcc"), "recursion", directory)
    ctx.started.append(known)
    tool = ctx.stream("-a", "-F", 10, columns="ustack,stack")
    tool.wait_scans(5, lambda row: row["tid"] == str(known.tid) and chain_programs.contains(frames_of(row), known.expected))
    spawner, standby = tool.spawners()
    os.kill(spawner, signal.SIGKILL)
    later = copy_started(ctx, directory, os.path.join(own, "chains_later"))
    tool.wait_scans(5, lambda row: row["tid"] == str(later.tid) and chain_programs.contains(frames_of(row), later.expected))
    check(tool.parsers([standby]), "the standby has started no parser")
    for pid in [standby] + tool.spawners(standby):
        os.kill(pid, signal.SIGKILL)
    new = copy_started(ctx, directory, os.path.join(own, "chains_copy"))
    tool.wait_scans(20, lambda row: row["tid"] == str(new.tid))
    rows = tool.interrupt()
    frames = frames_of(rows_of(rows, known.tid)[-1])
    find.expect(chain_programs.contains(frames, known.expected), "of before: %s", frames[:8])
    frames = frames_of(rows_of(rows, new.tid)[-1])
    find.expect(frames and "chains_copy+0x" in " ".join(frames), "of a program since: %s", frames[:8])
    find.expect(tool.missed("processes that had started those which read files, and ended") == 1, "not told: %s", tool.err)
    find.expect("and the one that starts these, have ended" in tool.err, "not told: %s", tool.err)
    find.expect(not re.search(r"late scans? \(the one before", tool.err), "%s", tool.err)
    find.close()


HZ = 20
GAP_S = 0.085    # of 20 scans a second at random times, half a period to one and a half apart, and a few ms more or less (sampler.h)
MORE_BYTES = 64 << 20
LEAST = 0.95     # share of other threads' samples that have their stack
BESIDE_S = 12
FILES_MOST = 2500  # more than the files with code that are kept open
END_S = 2        # from SIGTERM to the exit


def memory_bytes(tool):
    """Anonymous memory of tsnap and its parsers, in bytes."""
    return truth.memory_bytes([tool.pid] + tool.parsers(), "RssAnon")


def files_open(tool):
    """Number of open descriptors of tsnap and its parsers."""
    count = 0
    for pid in [tool.pid] + tool.parsers():
        try:
            count += len(os.listdir("/proc/%d/fd" % pid))
        except OSError:
            pass
    return count


class Beside:
    """A run of tsnap with all stacks: rows of other threads, and what the run takes."""

    def __init__(self, ctx, naps, directory, *args, columns="state,ustack,stack"):
        """args: further arguments for tsnap."""
        copy = os.path.join(ctx.temporary(), "chains_gcc")
        shutil.copy2(os.path.join(directory, "chains_gcc"), copy)
        tool = ctx.stream("-a", "-F", HZ, *args, columns=columns)
        tool.wait_scans(HZ)
        # a program whose file tsnap does not know yet
        self.chain = chain_programs.Chain(copy, "recursion", directory)
        ctx.started.append(self.chain)
        began, self.bytes, self.files, ticks = time.time(), 0, 0, truth.Thread(tool.pid).ticks
        while time.time() < began + BESIDE_S * SLOW:
            self.bytes = max(self.bytes, memory_bytes(tool))
            self.files = max(self.files, files_open(tool))
            time.sleep(0.1)
        ended, ticks = time.time(), truth.Thread(tool.pid).ticks - ticks
        asked = time.monotonic()
        tool.signal(signal.SIGTERM)
        tool.wait(STOP_S)
        self.end_s = time.monotonic() - asked
        rows = self.rows = [row for row in tool.finish() if began <= timestamp_s(row["timestamp"]) <= ended]
        self.words = tool.err
        times = [timestamp_s(scan) for scan, _ in scans_of(rows)]
        gaps = sorted(after - before for before, after in zip(times, times[1:]))
        self.scans, self.gap_s = len(times), gaps[len(gaps) * 99 // 100]
        self.cpu_s = ticks / os.sysconf("SC_CLK_TCK") / self.scans
        self.gaps = len([gap for gap in gaps if gap > GAP_S * SLOW])
        self.naps = rows_of(rows, naps.tid)
        self.share = len([row for row in self.naps if row["ustack"]]) / max(1, len(self.naps))
        self.chains = rows_of(rows, self.chain.tid)
        self.known_s = next((timestamp_s(row["timestamp"]) - began for row in self.chains
                             if chain_programs.contains(frames_of(row), self.chain.expected)), BESIDE_S)

    def __str__(self):
        return "%d scans, each of %.1f ms of CPU time, gap %.0f ms, %d and %d rows of others, %d stacks, a new program's after %.1f s, %.1f MB, %d files, ended in %.1f s" % (
            self.scans, 1000 * self.cpu_s, 1000 * self.gap_s, len(self.naps), len(self.chains), len([row for row in self.naps if row["ustack"]]), self.known_s,
            self.bytes / 1e6, self.files, self.end_s)


def expect_beside(ctx, attack, *args, least=LEAST, scan_s=0, **how):
    """Rows of other threads, and what tsnap takes, are the same with the program that attack() starts as without it. least: the share of
    samples with a stack of a thread that naps for 5 ms. scan_s: CPU time that a scan may take; one within it that is late waited for a CPU.
    Gives the run with the program."""
    directory, find = directory_of(ctx), Findings()
    naps = ctx.workload("naps")
    alone = Beside(ctx, naps, directory, *args, **how)
    attack()
    beside = Beside(ctx, naps, directory, *args, **how)
    print("# alone: %s" % alone)
    print("# beside: %s" % beside)
    print("# " + beside.words.replace("\n", "\n# "))
    # gaps are allowed for late scans that waited for a CPU, or, with scan_s, followed one that took too long
    kinds = "tsnap waited for a CPU" + "|the scan before took too long" * bool(scan_s)
    waited = sum(map(int, re.findall(r"missed: (\d+) late scans? \((?:%s)" % kinds, beside.words)))
    find.expect(not scan_s or beside.cpu_s < scan_s, "a scan takes %.0f ms of CPU time", 1000 * beside.cpu_s)
    find.expect(beside.gaps <= waited + 1 + beside.scans // 100, "%d gaps of %d are longer than %.0f ms", beside.gaps, beside.scans, 1000 * GAP_S)
    find.expect(len(beside.naps) >= beside.scans - 1, "%d rows of another thread in %d scans", len(beside.naps), beside.scans)
    share = least * min(1, alone.share / LEAST)
    find.expect(beside.share >= share, "%.0f %% of the samples of another thread have a stack, not %.0f %%", 100 * beside.share, 100 * share)
    find.expect(beside.known_s < 2 * SLOW, "the stack of a new program is known after %.1f s", beside.known_s)
    find.expect(beside.bytes - alone.bytes < MORE_BYTES, "%d bytes more", beside.bytes - alone.bytes)
    find.expect(beside.files < FILES_MOST, "%d files are open, %d without it", beside.files, alone.files)
    find.expect(beside.end_s < END_S * SLOW, "it ended %.1f s after SIGTERM", beside.end_s)
    find.close()
    return beside


class ManyFiles(Process):
    """The program tests/stack/many_files.c, run with files that make(number, bytes of a library) gives."""

    def __init__(self, ctx, count, make, threads, calls, nap_ms):
        directory, apart, paths = directory_of(ctx), ctx.temporary(), []
        program = os.path.join(directory, "many_files")
        if not os.path.exists(program):
            raise Skip("tests/stack/many_files is not built")
        os.chmod(apart, 0o755)
        with open(os.path.join(directory, "many_library.so"), "rb") as file:
            library = file.read()
        for i in range(count):
            paths.append(os.path.join(apart, "%d.so" % i))
            with open(paths[-1], "wb") as file:
                make(i, library, file)
        super().__init__([program, str(threads), str(calls), str(nap_ms)] + paths)
        ctx.started.append(self)
        wait_until(lambda: b"ready" in self.out or self.code is not None, START_S, "many_files")
        check(self.code is None, "many_files: %s", self.err)


@case(alone=True, thorough=True)
def hostile_many_files(ctx):
    """Threads that wander through 2300 copies of a library, more than tsnap keeps open, cost other threads nothing."""
    expect_beside(ctx, lambda: ManyFiles(ctx, 2300, lambda _, library, file: file.write(library), 20, 100, 20))


def sparse(_, library, file):
    file.write(library)
    file.truncate(10 << 30)


@case(alone=True, thorough=True)
def hostile_sparse_files(ctx):
    """Threads that wander through 40 files of 10 GB that are nearly all holes cost other threads nothing."""
    expect_beside(ctx, lambda: ManyFiles(ctx, 40, sparse, 20, 30, 20))


def unwind_entries(library, count):
    """A copy of the library with a table of `count` unwind entries instead of its own, and no table to search in."""
    header, = struct.unpack_from("<Q", library, 0x28)
    size, number, names = struct.unpack_from("<HHH", library, 0x3a)
    sections = [struct.unpack_from("<IIQQQQIIQQ", library, header + i * size) for i in range(number)]
    text = library[sections[names][4]:]
    frames, = [i for i in range(number) if text[sections[i][0]:].startswith(b".eh_frame\0")]
    made, at = bytearray(library), (len(library) + 4095) // 4096 * 4096
    made += b"\0" * (at - len(made))
    cie = struct.pack("<IIB3sBBBBB", 20, 0, 1, b"zR\0", 1, 0x78, 16, 1, 0x1b) + b"\x0c\x07\x08\x90\x01" + b"\0" * 2
    made += cie
    entry = bytearray(struct.pack("<IIiIB", 20, 0, 0, 1, 0) + b"\0" * 7)
    for i in range(count):
        place = len(made)
        struct.pack_into("<Ii", entry, 4, place + 4 - at, i - (place + 8))
        made += entry
    section = header + frames * size
    struct.pack_into("<QQQ", made, section + 16, at, at, len(made) - at)
    programs, = struct.unpack_from("<Q", library, 0x20)
    length, count = struct.unpack_from("<HH", library, 0x36)
    for i in range(count):
        if struct.unpack_from("<I", made, programs + i * length)[0] == 0x6474e550:  # PT_GNU_EH_FRAME
            struct.pack_into("<I", made, programs + i * length, 0)
    return bytes(made)


@case(alone=True, thorough=True)
def hostile_unwind_tables(ctx):
    """Threads that wander through 12 files with a million unwind entries each, and no table to search in, cost other threads nothing."""
    made = []

    def write(_, library, file):
        if not made:
            made.append(unwind_entries(library, 1000000))
        file.write(made[0])
    expect_beside(ctx, lambda: ManyFiles(ctx, 12, write, 20, 10, 20))


@case(alone=True, thorough=True)
def hostile_many_stacks(ctx):
    """1200 threads whose stacks are never the same, more than tsnap keeps, cost other threads nothing."""
    expect_beside(ctx, lambda: ManyFiles(ctx, 100, lambda _, library, file: file.write(library), 1200, 20, 100), least=0.8)


class FakePython(Process):
    """The program tests/stack/fake_python.c."""

    def __init__(self, ctx, threads, nap_ms):
        program = os.path.join(directory_of(ctx), "fake_python")
        if not os.path.exists(program):
            raise Skip("tests/stack/fake_python is not built")
        super().__init__([program, str(threads), str(nap_ms)])
        ctx.started.append(self)
        wait_until(lambda: b"ready" in self.out or self.code is not None, START_S, "fake_python")
        check(self.code is None, "fake_python: %s", self.err)


@case(alone=True, thorough=True)
def hostile_python(ctx):
    """300 threads of a fake Python, whose lists of threads and frames lead in circles, cost other threads nothing."""
    expect_beside(ctx, lambda: FakePython(ctx, 300, 20), "--python", least=0.7)


def attacker(ctx, argv, **popen):
    """Starts a program of an attack, and waits until it is ready."""
    process = Process(argv, **popen)
    ctx.started.append(process)
    wait_until(lambda: b"ready" in process.out or process.code is not None, START_S, argv[0])
    check(process.code is None, "%s: %s", argv[0], process.err)


@case(alone=True, thorough=True)
def hostile_context(ctx):
    """Eight processes of 40 threads that publish OpenTelemetry's contexts which lie: messages and records of sizes and at addresses that
    are not there, in files that were cut, with keys without end, and of which none stays: they cost other threads nothing."""
    program = os.path.join(directory_of(ctx), "fake_context")
    if not os.path.exists(program):
        raise Skip("tests/stack/fake_context is not built")

    expect_beside(ctx, lambda: attacker(ctx, [program, "40", "20"]), "--context", "lie = var fake_context:otel_thread_ctx_v1->0->0->0:str", least=0.7,
                  columns="state,ustack,stack,trace_id,span_id,context,service,service_instance,lie")


@case(alone=True, thorough=True)
def hostile_servers(ctx):
    """Programs that look like servers of MariaDB, PostgreSQL and PHP, with 40 sessions each, whose texts, lists and frames are not there,
    never end, and change all the time: they cost other threads nothing. Each is read as such a server."""
    program = os.path.join(directory_of(ctx), "fake_servers")
    if not os.path.exists(program):
        raise Skip("tests/stack/fake_servers is not built")
    apart = ctx.temporary()
    os.makedirs(apart + "/global")
    with open(apart + "/global/pg_control", "wb") as file:
        file.write(struct.pack("<QII", 1, 1300, 202209061))  # by which 15 is known
    names = "mariadbd", "postgres", "php-fpm"
    for name in names:
        shutil.copy(program, apart)
        os.rename(apart + "/fake_servers", apart + "/" + name)
    subprocess.check_call(["chmod", "-R", "a+rX", apart])
    columns = "comm,app_wait,app_state,query,querysum,query_id,database,app_user,client_app,request,app_script,app_function,root_query"

    def attack():
        for name in names:
            attacker(ctx, [apart + "/" + name, "40", "20"], cwd=apart)
    expect_beside(ctx, attack, least=0.7, columns="state,ustack,stack," + columns)
    words = {"mariadbd": "query", "postgres": "client_app", "php-fpm": "request"}
    seen = {row["comm"] for row in ctx.rows("-a", seconds=2, columns=columns) if row["comm"] in words and row[words[row["comm"]]]}
    check(seen == set(names), "only %s are read", seen)


@case(alone=True, thorough=True)
def hostile_go(ctx):
    """A program that looks like one of Go, with 200 goroutines whose labels are not there, never end, and change all the time, as its counters do:
    it costs other threads nothing. It is read as such a program, and gets its own lies alone."""
    program = os.path.join(directory_of(ctx), "fake_go")
    if not os.path.exists(program):
        raise Skip("tests/stack/fake_go is not built")

    expect_beside(ctx, lambda: attacker(ctx, [program, "200", "20"]), least=0.7, columns="state,ustack,stack,comm,context")
    seen = {row["context"] for row in ctx.rows("-a", seconds=2, columns="comm,context") if row["comm"] == "fake_go" and row["context"]}
    check("xxxx=xxxx" in seen, "it is not read: %s", seen)
    tool = ctx.plain("--findings", "--json", "-d", 4 * SLOW)
    tool.finish_plain(0, START_S + 4 * SLOW + STOP_S)
    for told in map(json.loads, tool.out.decode().splitlines()):
        if told.get("finding") in ("gc", "goroutines"):
            check(told["culprits"][0]["name"] == "fake_go", "%s", told["text"])
