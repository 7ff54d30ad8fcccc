"""Several samplers on the probes of one: --share and --attach."""
import os
import re
import shlex
import signal
import struct
import threading
import time

import bpf
import truth
from case_namespaces import NEW_PIDS, unshared
from case_trouble import NOBODY, expect_error
from harness import (SLOW, START_S, STOP_S, UNREADY, Findings, Process, Skip, case, check, let_pass, number, rows_of, scans_of, through,
                     wait_until)

COLUMNS = "comm,state,syscall,filename"
THREADS_MAX = 1 << 16  # more threads than there are at the start, as others may come
OURS = ("-r", "-p", os.getpid())  # options that leave out the other threads of the host, which can be many
VERSION_AT, VERSION_BYTES = 8, 24  # place and size of the version in struct share_meta


class Place(Process):
    """A mount namespace with a file system of its own: bpf's, or another one that the command mounts. It is unmounted as the last process
    there ends."""

    def __init__(self, *prefix, mount="mount -t bpf bpf /sys/fs/bpf"):
        super().__init__([*prefix, "sh", "-c", mount + " && echo ready; read nothing"])
        wait_until(lambda: self.out or self.err or self.code is not None, START_S, "a mount namespace")
        if not self.out:
            why = self.err
            self.end()
            raise Skip("no file system can be mounted: %s" % why)


class Share:
    """A mount namespace in which samplers share probes, under the name "test"."""

    def __init__(self, ctx, listed=True):
        """listed: the test lists the BPF programs and maps that are loaded."""
        if listed:
            bpf.need_list()
        self.place = Place(*unshared("--mount"))
        ctx.started.append(self.place)
        self.ctx = through(ctx, *self.prefix, workload=False)
        self.root = "/proc/%d/root/sys/fs/bpf" % self.place.pid
        self.directory = self.root + "/tsnap-test"

    @property
    def prefix(self):
        return ["nsenter", "--target", str(self.place.pid), "--mount", "--root", "--wd"]

    def starting(self, *args, name="test", columns=COLUMNS):
        """A tsnap --share that shows the threads of this test, all of them."""
        return self.ctx.stream("--share", name, "-a", "--max-threads", THREADS_MAX, *OURS, *args, columns=columns)

    def owner(self, *args, columns=COLUMNS):
        """A tsnap --share, as starting(), that has begun to sample."""
        tool = self.starting(*args, columns=columns)
        tool.wait_scans(1)
        return tool

    def attached(self, *args, of=OURS, columns=COLUMNS):
        """A tsnap --attach, as starting(). The options of the probes are the owner's."""
        return self.ctx.but(tsnap_args="").stream("--attach", "test", "-a", *of, *args, columns=columns)

    def attached_plain(self, *args):
        return self.ctx.but(tsnap_args="").plain("--attach", "test", *args)

    def outlives(self, owner):
        """Skips the test on a host without pinned links, where a share ends with its owner."""
        if os.path.exists(self.directory + "/owner"):
            raise Skip("links can't be pinned here")
        check("as long as" not in owner.err, "%s", owner.err)

    def expect_gone(self, owned):
        """Nothing of the share is left. owned: empty before 4.18, where descriptors don't show the ids of programs and maps."""
        wait_until(lambda: not owned or not owned & bpf.loaded(), STOP_S, "the end of its BPF programs and maps")
        left = [name for name in os.listdir(self.root) if name.startswith("tsnap")]
        check(not left, "left in the bpf file system: %s", left)

    def expect_clean_end(self, owner):
        owned = shared_bpf(owner)
        owner.interrupt()
        self.expect_gone(owned)


def states_of(find, rows, workloads, who):
    for workload in workloads:
        mine = rows_of(rows, workload.tid)
        find.expect(len(mine) > 3, "%s: %s has %d rows", who, workload.name, len(mine))
        wrong = [row["state"] for row in mine if row["state"] != workload["state"]]
        find.expect(len(wrong) <= len(mine) * 0.05, "%s: %s is %s", who, workload.name, set(wrong))
        if mine and "syscall" in mine[0]:
            calls = {row["syscall"] for row in mine[1:]}
            find.expect(calls == {workload["syscall"]}, "%s: %s is in %s", who, workload.name, calls)


@case
def share_states(ctx):
    """Samplers at three rates, with columns and filters of their own, see the same states and calls."""
    share = Share(ctx, listed=False)
    before = ctx.workloads([("vfork", {}), ("sleep", {"call": "pipe_read"})])
    owner = share.owner("-F", 10)
    later = ctx.workloads([("vfork", {}), ("sleep", {"call": "futex"})])
    fast = share.attached("-F", 40, columns="state,syscall")
    slow = share.attached("-F", 5, of=("-p", before[0]["pid"]), columns="state")
    latest = ctx.workload("vfork")
    for tool, of in ((fast, [latest]), (slow, before[:1]), (owner, later)):
        for workload in of:
            tool.wait_scans(12, lambda row, tid=str(workload.tid): row["tid"] == tid)
    find, all_rows = Findings(), {}
    # the owner is interrupted last: where links can't be pinned the others end with it
    for name, tool, workloads in (("fast", fast, before + later + [latest]), ("slow", slow, before[:1]),
                                  ("owner", owner, before + later)):
        rows = all_rows[name] = tool.interrupt()
        states_of(find, rows, workloads, name)
        words = [line for line in tool.err.splitlines() if not re.search("late scans?", line) and "can't be pinned" not in line]
        find.expect(not words, "%s: %s", name, words)
    if SLOW == 1:
        times = [when for when, _ in scans_of(all_rows["fast"])]
        together = [when for when, _ in scans_of(all_rows["owner"]) if times[0] <= when <= times[-1]]
        find.expect(len(times) + fast.missed("late scans") > 2 * len(together), "the rates are not their own: %d, %d", len(times), len(together))
    find.expect({row["pid"] for row in all_rows["slow"]} == {before[0]["pid"]}, "the filter is not its own")
    find.close()


def shared_bpf(tool):
    """The BPF programs and maps of a tsnap, without the program that asks for locks of processes, of which each tsnap has its own."""
    owned = truth.owned_bpf([tool.pid])
    return owned - {("prog", program.id) for program in bpf.programs_of(owned) if program.name == "ts_locks"}


@case
def share_without_compile(ctx):
    """A tsnap that attaches compiles nothing, loads nothing, and has its first sample at once."""
    share = Share(ctx)
    share.owner()
    loaded = bpf.loaded()
    tool = share.attached()
    tool.wait_scans(1)
    own = shared_bpf(tool)
    check(own and own <= loaded, "it made BPF objects: %s", own - loaded)
    maps = truth.read("/proc/%d/maps" % tool.pid)
    check("libbcc.so" not in maps and "LLVM" not in maps, "libbcc is loaded")
    times = []
    while len(times) < 5 or (min(times) >= 0.1 * SLOW and len(times) < 40):  # one of so many runs gets a CPU when it wants one
        start = time.monotonic()
        share.attached_plain("--csv", "-n", 1).finish_plain()
        times.append(time.monotonic() - start)
    check(min(times) < 0.1 * SLOW, "%.3f s at least", min(times))


@case
def share_owner_leaves_first(ctx):
    """When the starter ends a tsnap that has attached goes on, sees new threads, and cleans up as the last one."""
    share = Share(ctx)
    owner = share.owner()
    share.outlives(owner)
    owned = shared_bpf(owner)
    tool = share.attached()
    tool.wait_scans(1)
    owner.interrupt(signal.SIGTERM)
    new = ctx.workload("vfork")
    tool.wait_scans(30, lambda row: row["tid"] == new["tid"])
    find = Findings()
    states_of(find, rows_of(tool.rows(), new.tid)[2:], [new], "attached")  # in its first rows the thread may still run
    find.close()
    check(os.path.isdir(share.directory), "it went with its starter")
    third = share.attached("-n", 2)
    check(third.finish(0, START_S), "nothing for who attaches later")
    tool.interrupt()
    share.expect_gone(owned)


@case
def share_last_leaves(ctx):
    """After SIGTERM to all samplers of a share at once nothing is left, five times."""
    for _ in range(5):
        share = Share(ctx)
        owner = share.owner()
        owned = shared_bpf(owner)
        tools = [share.attached("-F", rate) for rate in (5, 20, 50)]
        for tool in tools:
            tool.wait_scans(1)
        for tool in tools + [owner]:
            tool.signal(signal.SIGTERM)
        for tool in tools + [owner]:
            tool.finish()
        share.expect_gone(owned)


def killed_owner(share):
    """Kills the process of an owner that samples; returns the shared BPF programs and maps that it held."""
    owner = share.owner()
    share.outlives(owner)
    owned = shared_bpf(owner)
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait(STOP_S)
    return owned


@case(long=True)
def share_adopted(ctx):
    """After kill -9 of the starter --check reports the share, and --attach goes on with what is there."""
    share = Share(ctx)
    owned = killed_owner(share)
    new = ctx.workload("vfork")
    check(owned <= bpf.loaded(), "the programs are gone")
    checked = share.ctx.plain("--check")
    checked.finish_plain()
    check("no tsnap uses it" in checked.out.decode(), "%s", checked.out.decode())
    tool = share.attached()
    tool.wait_scans(10)
    checked = share.ctx.plain("--check")
    checked.finish_plain()
    check("process %d;" % tool.pid in checked.out.decode(), "%s", checked.out.decode())
    find = Findings()
    states_of(find, tool.interrupt(), [new], "attached")
    find.close()
    share.expect_gone(owned)


@case
def share_healed(ctx):
    """After kill -9 of the starter --share removes what that left, says so, and begins anew."""
    share = Share(ctx, listed=False)
    owned = killed_owner(share)
    owner = share.owner()
    check("was killed" in owner.err and len(owner.err.splitlines()) == 1, "%s", owner.err)
    wait_until(lambda: not owned or not owned & bpf.loaded(), STOP_S, "the end of the old programs")
    check(share.attached("-n", 2).finish(0, START_S), "nobody can attach")
    share.expect_clean_end(owner)


@case
def share_half_made(ctx):
    """After a starter was killed before all was there --attach refuses, and --share begins anew."""
    share = Share(ctx)
    os.mkdir(share.directory, 0o700)
    bpf.Pinned.write(share.directory + "/map_ts_threads", bytes(64))
    expect_error(share.attached_plain(), 1, "unfinished", "--share test")
    owner = share.owner()
    check("was killed" in owner.err, "%s", owner.err)
    share.expect_clean_end(owner)


@case
def share_stopped_at_start(ctx):
    """After SIGTERM or kill -9 at any moment of a start nothing is left, or the next start removes it."""
    share = Share(ctx)
    for turn in range(8):
        tool = share.starting()
        let_pass(turn * 0.05)
        caught = turn % 2 and truth.catches(tool.process.pid, signal.SIGTERM) and truth.catches(tool.pid, signal.SIGTERM)
        tool.signal(signal.SIGTERM if turn % 2 else signal.SIGKILL)
        tool.wait(STOP_S)
        if caught:
            check(tool.code == 0 and not os.path.isdir(share.directory), "exit code %s: %s", tool.code, tool.err)
    owner = share.owner()
    share.expect_clean_end(owner)


@case
def share_of_events(ctx):
    """Where one of the probes is a perf event, whose link can't be pinned, the share ends with its starter."""
    share = Share(ctx)
    share.ctx.options.tsnap_args = shlex.join(ctx.without("run_on_cpu"))
    owner = share.starting("-v")
    owner.wait_scans(1)
    if "perf clock" not in owner.err:
        raise Skip("no perf clock here")
    check("as long as this tsnap runs" in owner.err, "%s", owner.err)
    check(not [name for name in os.listdir(share.directory) if name.startswith("link_")], "some links are pinned")
    owned = shared_bpf(owner)
    tool = share.attached()
    tool.wait_scans(2)
    owner.interrupt()
    check(tool.wait(STOP_S) == 1 and "has ended" in tool.err, "exit code %s: %s", tool.code, tool.err)
    share.expect_gone(owned)


@case
def share_refused_when_left(ctx):
    """The probes that a killed tsnap of another version left run on after --attach was refused: others may know what to do with them."""
    share = Share(ctx)
    owned = killed_owner(share)
    meta_changed(share, VERSION_AT, b"0.0.9-older\0")
    expect_error(share.attached_plain(), 1, "0.0.9-older")
    check(owned <= bpf.loaded() and os.path.isdir(share.directory), "a refused one cleared it")
    share.owner().interrupt()
    share.expect_gone(owned)


@case
def share_taken(ctx):
    """For a name that is in use one line names the process that has it; for one that is not in use --attach prints one line, too."""
    share = Share(ctx)
    expect_error(share.attached_plain(), 1, "'test'", "--share test")
    owner = share.owner()
    expect_error(share.ctx.plain("--share", "test"), 1, "process %d:" % owner.pid, "--attach test")
    other = share.starting("-n", 2, name="other-1_X")
    check(other.finish(0, START_S + STOP_S), "another name does not do")


@case(thorough=True)
def share_race(ctx):
    """If two tsnaps start under one name at once, perhaps over what a killed one left, one has the name, and the other says so."""
    for turn in range(4):
        share = Share(ctx)
        if turn % 2:
            os.mkdir(share.directory, 0o700)
        tools = [share.starting() for _ in range(2)]
        wait_until(lambda: any(tool.code is not None for tool in tools), START_S, "that one gives up")
        loser, winner = sorted(tools, key=lambda tool: tool.code is None)
        check(loser.code == 1 and "--attach test" in loser.err, "exit code %s: %s", loser.code, loser.err)
        winner.wait_scans(2)
        share.expect_clean_end(winner)


def meta_changed(share, at, new):
    path = share.directory + "/meta"
    raw = bytearray(bpf.Pinned.value(path))
    raw[at:at + len(new)] = new
    os.unlink(path)
    bpf.Pinned.write(path, bytes(raw))


@case
def share_mismatch(ctx):
    """A share of another version, with other records, without a description or with a map of another size is refused, and stays."""
    share = Share(ctx)
    owner = share.owner()
    meta, text_at = share.directory + "/meta", VERSION_AT + VERSION_BYTES
    good = bpf.Pinned.value(meta)
    hash_ = struct.unpack_from("=Q", good, text_at)[0]
    for at, new, words in ((VERSION_AT, b"0.0.9-older\0", "0.0.9-older"), (text_at, struct.pack("=Q", hash_ ^ 1), "BPF text"),
                           (0, bytes(8), "no tsnap shares")):
        meta_changed(share, at, new)
        expect_error(share.attached_plain(), 1, words)
        meta_changed(share, 0, good)
    check(share.attached("-n", 1).finish(0, START_S), "the true one is refused")
    for raw in (good + bytes(8), bytes(8), bytes(1 << 16)):
        os.unlink(meta)
        bpf.Pinned.write(meta, raw)
        expect_error(share.attached_plain(), 1, "test")
    os.unlink(meta)
    bpf.Pinned.write(meta, good)
    os.rename(share.directory + "/map_ts_threads", share.directory + "/map_true")
    bpf.Pinned.write(share.directory + "/map_ts_threads", bytes(1 << 16))
    expect_error(share.attached_plain(), 1, "ts_threads")
    share.expect_clean_end(owner)


@case
def share_hostile_directory(ctx):
    """A symbolic link, a directory of other users or open to them, and one with foreign files are refused, and not touched."""
    share = Share(ctx)

    def refused(*words):
        expect_error(share.ctx.plain("--share", "test"), 1, "/sys/fs/bpf/tsnap-test", *words)
    os.mkdir(share.root + "/elsewhere", 0o700)
    os.symlink("elsewhere", share.directory)
    refused("0700")
    expect_error(share.attached_plain(), 1, "0700")
    os.unlink(share.directory)
    os.mkdir(share.directory, 0o700)
    os.chmod(share.directory, 0o755)
    refused("0700")
    expect_error(share.attached_plain(), 1, "0700")
    os.chmod(share.directory, 0o700)
    os.chown(share.directory, NOBODY, NOBODY)
    refused("0700")
    expect_error(share.attached_plain(), 1, "0700")
    os.chown(share.directory, 0, 0)
    bpf.Pinned.write(share.directory + "/foreign", bytes(8))
    refused("not empty")
    check(os.listdir(share.directory) == ["foreign"], "%s", os.listdir(share.directory))
    os.rmdir(share.root + "/elsewhere")
    os.unlink(share.directory + "/foreign")
    os.rmdir(share.directory)
    bpf.Pinned.write(share.directory, bytes(8))  # not a directory
    refused("0700")
    expect_error(share.attached_plain(), 1, "0700")


@case
def share_while_owner_runs(ctx):
    """Where links can't be pinned the starter says so; a tsnap that has attached ends with it, and shows what it has."""
    share = Share(ctx, listed=False)
    share.ctx.options.tsnap_args = shlex.join(ctx.without("pinned_links"))
    workload = ctx.workload("vfork")
    for number_ in (signal.SIGTERM, signal.SIGKILL):
        owner = share.owner()
        check("as long as this tsnap runs" in owner.err, "%s", owner.err)
        owned = shared_bpf(owner)
        rows, report = share.attached(), share.attached_plain("-a", "-p", workload["pid"], "-d", 60)
        rows.wait_scans(5)
        report.wait_sleeps(20)
        owner.signal(number_)
        owner.wait(STOP_S)
        for tool in (rows, report):
            check(tool.wait(STOP_S) == 1, "exit code %d: %s", tool.code, tool.err)
            words = [line for line in tool.err.splitlines() if "late scans" not in line]
            check(len(words) == 1 and "has ended" in words[0], "%s", tool.err)
        check(report.out.count(b"AVG_THR") == 1 and b"vfork" in report.out, "no report: %s", report.out.decode())
        find = Findings()
        states_of(find, rows.rows(all_of_it=True), [workload], "attached")
        find.close()
        share.expect_gone(owned)
    owner = share.owner()
    owned = shared_bpf(owner)
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait(STOP_S)
    expect_error(share.attached_plain(), 1, "was killed", "--share test")
    owner = share.owner()
    check("was killed" in owner.err, "%s", owner.err)
    owner.interrupt()
    share.expect_gone(owned)


def exact_us(row):
    """Exact times of a row: 0 if the row has none because they are less than the time that passed; a later row includes them."""
    return (number(row, "cpu_us") or 0) + (number(row, "runq_us") or 0)


def totals_told(rows, spinner):
    """Exact us in all rows but the first. The first row has no time from before, the others have all that passed."""
    rows = rows_of(rows, spinner.tid)
    each = [exact_us(row) for row in rows]
    check(0 <= each[0] < 1e6 * SLOW, "its first row has %d us", each[0])
    passed, told = sum(number(row, "weight_us") for row in rows[1:]), sum(each[1:])
    # a scan takes long where others want the CPU
    check(abs(told - passed) < 0.05 * passed + 1e5 * SLOW, "%d us told of %d", told, passed)
    return told


@case
def share_totals(ctx):
    """The first row of a tsnap that attaches has no time from before; from then on its totals are exact, and its own."""
    share = Share(ctx, listed=False)
    workload = ctx.workload("spin")
    owner = share.owner(columns="state,cpu_us,runq_us")
    wait_until(lambda: sum(map(exact_us, rows_of(owner.rows(), workload.tid))) > 2e6, START_S, "two seconds of the spinner")
    tool = share.attached("-F", 10, columns="state,cpu_us,runq_us")
    tool.wait_scans(20)
    other = share.attached("-F", 10, "-n", 3, columns="state,cpu_us,runq_us").finish(0, START_S)
    rows, mine = tool.interrupt(), rows_of(owner.interrupt(), workload.tid)
    told = totals_told(rows, workload)
    owners = sum(map(exact_us, mine))
    check(owners > told + 1.8e6, "the starter's totals: %d us, and %d us of who attached", owners, told)
    theirs = rows_of(other, workload.tid)
    check(theirs and (number(theirs[0], "cpu_us") or 0) < 1e6 * SLOW, "%s", theirs[:1])


@case
def share_inside(ctx):
    """A tsnap that attaches in the owner's pid namespace shows ids of that namespace; one that attaches from outside is refused."""
    share = Share(ctx)
    namespace = Process([*share.prefix, *unshared(*NEW_PIDS), "sh", "-c", "echo ready; read nothing"])
    ctx.started.append(namespace)
    wait_until(lambda: namespace.out or namespace.code is not None, START_S, "a pid namespace")
    prefix = ["nsenter", "--target", str(min(truth.children(namespace.pid))), "--pid", "--mount", "--root"]
    inner = through(ctx, *prefix)
    workloads = inner.workloads([("vfork", {}), ("sleep", {"call": "pipe_read"})])
    spinner = inner.workload("spin")
    # -d ends the owner: a signal would end nsenter alone
    owner = inner.stream("--share", "test", "-a", "-d", 3 + 3 * SLOW, columns=COLUMNS)
    owner.wait_scans(20)
    workloads.append(inner.workload("vfork"))
    tool = inner.but(tsnap_args="").stream("--attach", "test", "-a", "-n", 20,
                                         columns=COLUMNS + ",cpu_us,runq_us")
    tool.wait_scans(1)
    expect_error(share.attached_plain(), 1, "pid namespace")
    find = Findings()
    rows = tool.finish()
    states_of(find, rows, workloads, "attached")
    totals_told(rows, spinner)
    own = {row["pid"] for row in rows if row["comm"] == "tsnap"}
    find.expect(len(own) == 2, "of two samplers it should see both processes of the other one: %s", own)
    find.close()
    owner.finish()


@case
def share_nowhere(ctx):
    """Without a bpf file system, or with wrong options, there are one line and the right exit code."""
    place = Place(*unshared("--mount"), mount="mount -t tmpfs none /sys/fs/bpf")
    ctx.started.append(place)
    bare = through(ctx, "nsenter", "--target", str(place.pid), "--mount", "--root", workload=False)
    expect_error(bare.plain("--share", "test"), UNREADY, "mount -t bpf")
    bare = bare.but(tsnap_args="")
    expect_error(bare.plain("--attach", "test"), UNREADY, "mount -t bpf")
    for args, word in ((("--share", "a", "--attach", "a"), "can't go with"), (("--share", "a.b"), "letters"),
                       (("--share", "../a"), "letters"), (("--attach", "x" * 33), "32"), (("--share", ""), "empty"),
                       (("--share", "a", "--check"), "--share"), (("--attach", "a", "--list"), "--attach"),
                       (("--share", "a", "--replay", "-"), "--replay"), (("--attach", "a", "--without", "kprobe"), "--share"),
                       (("--attach", "a", "--max-threads", "100"), "--share")):
        expect_error(bare.plain(*args), 2, word)


@case
def share_exec_by_thread(ctx):
    """When a thread calls exec while its process's first thread, which has ended, has yet to be switched a last time, the first thread's
    times are not lost, and count with those of exited threads. The test runs the probe as it runs in the new program, for this process."""
    share = Share(ctx)
    share.owner()
    end = threading.Event()
    other = threading.Thread(target=end.wait)
    other.start()
    key = struct.pack("<16sII", truth.read("/proc/thread-self/comm").strip().encode(), os.geteuid(), 0)

    def dead_ns():
        return struct.unpack_from("<10Q", bpf.Pinned.value(share.directory + "/map_ts_processes", key))[3]
    start = time.thread_time_ns()
    while time.thread_time_ns() - start < 100000000:
        pass
    let_pass(0.01)
    before = dead_ns()
    bpf.Pinned.run(share.directory + "/prog_thread_exec", 0, other.native_id, 0)
    told = dead_ns() - before
    end.set()
    other.join()
    check(told >= 95000000, "%d ns of the dead, of 100 ms", told)
