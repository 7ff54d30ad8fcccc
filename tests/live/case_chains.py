"""Wait chains: blockers, chains and roots of workloads that know theirs."""
import bisect
import collections
import fnmatch
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
import tty

import truth
from case_block import Device, file_system
from harness import SLOW, START_S, STOP_S, Findings, Process, Skip, case, check, let_pass, scans_of, table_below, timestamp_s, wait_until
from parts import account

COLUMNS = "state,waits_on,blocker_tid,blocker_pid,blocker_kind,blocker_sure,chain,depth,root,root_tid,root_state,root_why"
SETTLED_S = 2 if SLOW == 1 else 20  # after this time all processes have been searched for other ends
CERTAIN, LIKELY = 95, 80  # percentages of samples that must be right


class Truth:
    """Blockers and chains of a workload's threads by tid, as the workload itself reports them."""

    def __init__(self, workload):
        self.pids = workload["pids"]
        self.by_tid = {}
        for line in workload["victims"].splitlines():
            tid, blocker, chain = line.split(":", 2)
            self.by_tid[tid] = (blocker, chain)


def judged(name, rows, truth):
    """The percentage of right samples among those of sleeping victims, and whether an edge that is called certain is
    wrong."""
    scans = scans_of(rows)
    later = [row for _, scan in scans[len(scans) // 2:] for row in scan
             if row["tid"] in truth.by_tid and row["state"] in "SD"]
    check(len(later) >= 10, "%s: %d samples of victims", name, len(later))
    right, wrong = 0, []
    for row in later:
        blocker, chain = truth.by_tid[row["tid"]]
        right_blocker = blocker in ("0", row["blocker_tid"])
        right += right_blocker and fnmatch.fnmatchcase(row["chain"], chain)
        check(row["blocker_sure"] != "certain" or right_blocker, "%s: a blocker is called certain and is another one, not %s: %s",
              name, blocker, row)
        if not right_blocker or not fnmatch.fnmatchcase(row["chain"], chain):
            wrong.append((row["chain"], row["blocker_tid"], row["state"], chain))
    share = 100.0 * right / len(later)
    return share, "%.1f %% of %d samples are right; wrong: %s" % (share, len(later), sorted(set(wrong))[:4]), later


def chain_begin(ctx, name, *args):
    truth = Truth(ctx.workload("chain", of=name, dir=ctx.temporary()))
    return truth, ctx.stream("-a", "-d", 2 * SETTLED_S, "-p", truth.pids, *args, columns=COLUMNS)


def chain_end(name, least, truth, tool):
    share, words, later = judged(name, tool.finish(0, START_S + 2 * SETTLED_S + STOP_S), truth)
    print("# chain %s: %s" % (name, words.split(";")[0]))
    check(share >= least, "%s: %s", name, words)
    return later


def run_chain(ctx, name, least, *args):
    return chain_end(name, least, *chain_begin(ctx, name, *args))


@case(paired=True)
def chain_of_mutexes(ctx):
    """Eight threads each wait for the mutex that the next one holds; also with priority inheritance."""
    for name in ("nested", "nested_pi"):
        later = run_chain(ctx, name, CERTAIN)
        check({row["blocker_sure"] for row in later} == {"certain"}, "%s: not all are certain", name)
        check({row["root"] for row in later} - {""} == {"chain_7"}, "%s: roots %s", name, {row["root"] for row in later})
        check(max(int(row["depth"]) for row in later) == 7, "%s: depth", name)


@case(alone=True)
def chain_to_holder(ctx):
    """50 threads wait for a mutex whose holder naps, spins, syncs a file, or waits for a CPU that another one has."""
    begun = {name: chain_begin(ctx, name) for name in ("mutex_nap", "mutex_sync")}
    for name, states in (("mutex_nap", "S"), ("mutex_sync", "ON RQ D S"), ("mutex_spin", "ON RQ"), ("mutex_queue", "ON RQ")):
        # a holder that spins has a CPU for itself
        later = chain_end(name, CERTAIN, *(begun.get(name) or chain_begin(ctx, name)))
        known = [row["root_state"] for row in later if row["root_state"]]
        right = [state for state in known if state in states.split()]
        check(len(right) >= 0.95 * len(known), "%s: of %d samples %d have a holder in %s", name, len(known), len(right), states)
        if name == "mutex_queue":
            queued = [row["chain"] for row in later if row["root_state"] == "RQ"]
            told = [chain for chain in queued if "chain_holder cpu> " in chain]
            check(len(told) >= 0.8 * len(queued) > 0, "who is on the CPU is told in %d of %d samples", len(told), len(queued))


@case
def chain_of_deadlock(ctx):
    """Two threads wait for each other's mutex, two processes for each other's flock: shown as deadlocks, with one root for both."""
    for name in ("deadlock", "deadlock_flock"):
        later = run_chain(ctx, name, CERTAIN)
        check({row["root_why"] for row in later} - {""} == {"deadlock"}, "%s: %s", name, {row["root_why"] for row in later})
        check(len({row["root_tid"] for row in later} - {""}) == 1, "%s: several roots", name)


@case
def chains_of_lost_lock(ctx):
    """A mutex that nobody can unlock, as who took it has ended, is among the locks of --chains."""
    lost = ctx.workload("wait", on="mutex_lost")
    tool = ctx.plain("--chains", "-a", "-d", 2, "-p", lost.tgid)
    tool.finish_plain(0, START_S + 2 + STOP_S)
    lines = table_below(tool.out.decode(), "Locks that were waited for")
    check(len(lines) == 2 and re.search(r" - +mutex 0x[0-9a-f]+ held by [0-9]+, a thread that has ended$", lines[1]), "%s", tool.out.decode())


@case
def chain_to_stacks(ctx):
    """--chains --stacks: below a root are the stacks that it has while others wait for it."""
    truth = Truth(ctx.workload("chain", of="mutex_nap", dir=ctx.temporary()))
    tool = ctx.plain("--chains", "--stacks", 1, "-a", "-d", 2, "-p", truth.pids)
    tool.finish_plain(0, START_S + 2 + STOP_S)
    lines = table_below(tool.out.decode(), "Who others wait for in the end")
    check(len(lines) > 2 and " chain_holder " in lines[1] and re.search(r"^ +[\d.]+%  (user|kernel) ", lines[2]), "the root: %s", lines)
    check("nanosleep" in " ".join(lines[2:]), "it naps, and its stack is %s", lines[2:])


@case
def chains_of_stopped_root(ctx):
    """What a root does while others wait for it has a share of the whole time in each state: a stopped one is stopped."""
    truth = Truth(ctx.workload("chain", of="flock_stopped", dir=ctx.temporary()))
    tool = ctx.plain("--chains", "-a", "-d", 2, "-p", truth.pids)
    tool.finish_plain(0, START_S + 2 + STOP_S)
    lines = [line.split() for line in table_below(tool.out.decode(), "Who others wait for in the end")]
    row = next((dict(zip(lines[0], line)) for line in lines[1:] if "chain_stopped" in line), {})
    shares = [float(row.get(state, "0").rstrip("%")) for state in ("ON", "RQ", "D", "S", "T", "UNKNOWN")]
    check(shares[4] >= CERTAIN and 99.5 <= sum(shares) <= 100.5, "the root is stopped: %s", lines)


@case
def chain_through_processes(ctx):
    """Chains lead through pipes, file locks, children, and sockets of a client, a proxy and a server."""
    for names in ({"pipeline": LIKELY, "flock_stopped": CERTAIN, "child_disk": CERTAIN},
                  {"proxy_tcp": LIKELY, "proxy_unix": LIKELY, "server_threads": LIKELY}):
        begun = {name: chain_begin(ctx, name) for name in names}
        for name, least in names.items():
            chain_end(name, least, *begun[name])


@case
def chain_to_thread_of_connection(ctx):
    """Each client leads to the thread of its own connection, also while this holds the mutex that the server's others wait for, and
    itself waits for something that shows nothing about its client."""
    run_chain(ctx, "server_pipe", LIKELY)


@case(thorough=True)
def chain_of_ten_thousand(ctx):
    """A chain of 10000 threads is cut at depth 64, without a root; its last threads have their root."""
    workload = ctx.workload("chain", of="ten_thousand", dir=ctx.temporary())
    tool = ctx.stream("-a", "-F", 1, "-p", workload["pids"], columns=COLUMNS)
    tool.wait_scans(3)
    rows = [row for _, scan in scans_of(tool.interrupt())[1:] for row in scan]
    truth = Truth(workload)
    told = {(row["tid"], row["blocker_tid"], row["blocker_sure"], row["depth"], row["root"]) for row in rows if row["tid"] in truth.by_tid}
    first, last = truth.by_tid
    check(told == {(first, truth.by_tid[first][0], "certain", "64", ""),
                   (last, truth.by_tid[last][0], "certain", "2", "chain_holder")}, "%s", told)
    chains = [row for row in rows if row["blocker_kind"] == "mutex"]
    check(len(chains) > 0.9 * 2 * 10000, "%d edges", len(chains))
    check(not any("DEADLOCK" in row["chain"] for row in chains), "a deadlock is told")


@case(alone=True, thorough=True)
def chain_beside_ten_thousand(ctx):
    """A chain of 10000 threads of another user, scanned often, costs no other thread an edge; its edges that are shown are right."""
    crowd = ctx.reachable().workloads([("chain", {"of": "ten_thousand"})], {"user": account("nobody").pw_uid, "extra_groups": []})
    if not crowd:
        raise Skip("no 10000 threads here")
    truth = Truth(ctx.workload("chain", of="mutex_nap", dir=ctx.temporary()))
    tool = ctx.stream("-a", "-F", 20, "-d", 4, "-p", truth.pids + "," + crowd[0]["pids"], columns=COLUMNS)
    rows = tool.finish(0, START_S + 4 + 10 * STOP_S)
    share, words, _ = judged("mutex_nap", rows, truth)
    check(share >= CERTAIN, "%s", words)
    long = Truth(crowd[0])
    told = {(row["blocker_tid"], row["blocker_sure"]) for row in rows if row["tid"] in long.by_tid and row["blocker_tid"]}
    check(told <= {(long.by_tid[tid][0], sure) for tid in long.by_tid for sure in ("certain", "likely")}, "%s", told)
    followed = tool.missed("waits whose chains were not followed")
    print("# beside ten thousand: %s; %d not followed" % (words.split(";")[0], followed))


@case
def chain_to_another_host(ctx):
    """The other end of the connection is on another host: no blocker is shown."""
    run_chain(ctx, "outside", CERTAIN)


def turns(ctx, of, letter, *args, least=0.5):
    """A lock that changes hands every 2 ms: in a scan all edges that are certain lead to one holder, which does not wait for it."""
    workload = ctx.workload("chain", of=of, dir=ctx.temporary())
    rows = ctx.stream("-a", "-F", 50, "-d", 4, "-p", workload["pids"], *args, columns=COLUMNS + ",root_syscall").finish(
        0, START_S + 4 + STOP_S)
    told = waiting = strange = 0
    for _, scan in scans_of(rows):
        edges = [row for row in scan if row["blocker_sure"] == "certain"]
        waiting += sum(row["state"] == letter for row in scan)
        told += sum(row["state"] == letter and bool(row["blocker_tid"]) for row in scan)
        strange += len({row["blocker_tid"] for row in edges}) > 1
        strange += any("DEADLOCK" in row["chain"] or int(row["depth"] or 0) > 1 for row in edges)
        strange += any(row["root_syscall"] == "futex" and row["root_state"] == "S" for row in edges)
    print("# %s: %d edges of %d waits" % (of, told, waiting))
    check(not strange, "%d of the scans tell of several holders, or of one that waits", strange)
    # a lock is read later where all is emulated, and may have changed hands
    check(told >= (least if SLOW == 1 else 0.2) * waiting > 100, "%d edges of %d sleepers", told, waiting)


@case
def chain_of_turns(ctx):
    """A mutex that changes hands every 2 ms: certain edges of a scan lead to one holder."""
    turns(ctx, "turns", "S")


CHECKED = {}  # what --check says, by the arguments of tsnap: it takes some seconds in an emulator


def has_feature(ctx, fact):
    if ctx.options.tsnap_args not in CHECKED:
        tool = ctx.plain("--check")
        tool.finish_plain()
        CHECKED[ctx.options.tsnap_args] = tool.out.decode()
    return re.search(r"(?m)^ *%s +yes" % fact, CHECKED[ctx.options.tsnap_args])


KERNEL = tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])


def lock_ways(ctx):
    """The ways to search for locks, which hosts with perf events and BTF have. --check takes minutes on an old kernel in an emulator."""
    if KERNEL < (5, 10):
        return ["lock_faults"]
    ways = [way for way in ("lock_search", "lock_faults") if has_feature(ctx, way)]
    if not ways:
        raise Skip("no holders of kernel locks on this kernel")
    return ways


def needs_feature(ctx, fact):
    if not has_feature(ctx, fact):
        raise Skip("no %s on this kernel" % fact)


def kernel_locks(ctx, *args, least=0.5):
    later = run_chain(ctx, "kernel_locks", CERTAIN, *args)
    told = {(row["blocker_kind"], row["blocker_sure"]) for row in later if row["blocker_kind"]}
    check(told == {("kernel lock", "certain")}, "told as %s", told)
    named = [row["waits_on"] for row in later if row["blocker_kind"] and " (deleted) held by " in row["waits_on"]]
    check({name.split(" of /")[0] for name in named} == {"f_pos_lock", "i_rwsem"}, "named %s", set(named))
    later = run_chain(ctx, "kernel_reader", LIKELY, *args)
    named = {re.sub(r"\d+", "N", row["waits_on"]).replace(" chain_holder (S, getdentsN)", "") for row in later if row["blocker_kind"]}
    check(named == {"i_rwsem of inode N on N:N held by N"}, "a reader's lock is %s", named)
    told = {row["blocker_sure"] for row in later if row["blocker_kind"]}
    check(told == {"likely"}, "a reader is %s", told)
    turns(ctx, "kernel_turns", "D", *args, least=least)


@case(long=True)
def chain_of_kernel_locks(ctx):
    """A mutex and an rwsem of the kernel, held for writing, one after the other: certain; held by a reader: likely; also changing hands."""
    needs_feature(ctx, "kernel_locks")
    kernel_locks(ctx)


@case(long=True)
def chain_of_searched_locks(ctx):
    """The same where the lock is found by the kernel stack of whoever waits for it."""
    needs_feature(ctx, "lock_search")
    kernel_locks(ctx, *ctx.without("kernel_locks"))


@case(long=True)
def chain_of_locks_by_faults(ctx):
    """The same where page faults of tsnap run the program that reads stacks and lists."""
    needs_feature(ctx, "lock_faults")
    kernel_locks(ctx, *ctx.without("kernel_locks,lock_search"), least=0.2)  # it takes longer: more locks change hands meanwhile


@case(long=True)
def chain_of_frozen_page(ctx):
    """A mutex and an rwsem whose holder waits for its process's memory map, which a page of a frozen file system keeps locked."""
    if KERNEL >= (6, 4):
        raise Skip("a page fault in a file leaves the memory map alone on this kernel")
    ways = lock_ways(ctx)
    with Device() as device, file_system(ctx, device) as folder:
        workload = None
        try:
            workload = ctx.workload("chain", of="kernel_frozen", dir=folder)
            truth = Truth(workload)
            for way in ways:
                hidden = "kernel_locks" if way == "lock_search" else "kernel_locks,lock_search"
                tool = ctx.stream("-a", "-d", 2 * SETTLED_S, "-p", truth.pids, *ctx.without(hidden), columns=COLUMNS)
                later = chain_end("kernel_frozen by " + way, CERTAIN, truth, tool)
                told = {(row["blocker_kind"], row["blocker_sure"]) for row in later if row["blocker_kind"]}
                # a thread that has slept since before tsnap came is not in the hash of records
                check(told == {("kernel lock", "certain")} or KERNEL < (5, 5) and SLOW > 1, "told as %s", told)
        finally:
            if workload:
                workload.process.kill()  # its end waits for the thaw
            subprocess.run(["fsfreeze", "-u", folder], check=False, stderr=subprocess.DEVNULL)
            if workload:
                workload.process.wait(STOP_S)


class Turns:
    """Who has a lock when, as the thread says that ends each turn: the holder has it from before the turn's begin to after its end."""

    def __init__(self, path):
        lines = [line.split() for line in open(path) if line.endswith("\n")]
        self.holders = [line[0] for line in lines]
        self.begins, self.ends = ([int(line[column]) / 1e9 for line in lines] for column in (1, 2))

    def during(self, begin, end):
        """Those that may have had it at some time between the two; None: not all of that was noted."""
        first, last = bisect.bisect_left(self.ends, begin), bisect.bisect_right(self.begins, end)
        if not first or last >= len(self.holders):
            return None
        return self.holders[first - (begin < self.begins[first]):last + (end > self.ends[last - 1])]


READ_S = 0.002 * SLOW  # a holder that was read later than 1 ms after the scan is certain only if it had the lock then


def handovers(ctx, of, samples, turn_ms, *args):
    """Samples of threads that wait for a lock which changes hands all the time, until there are that many: a scan has one certain holder,
    which had the lock while the scan was made, and does not wait for it. Returns how many, and how many have the right holder."""
    path = os.path.join(ctx.temporary(), "turns")
    workload = ctx.workload("chain", of=of, dir=ctx.temporary(), threads=48 if SLOW == 1 else 6,
                            turn_ms=int(turn_ms * SLOW), turns=path)
    tids = {line.split(":")[0] for line in workload["victims"].splitlines()}
    waits = told = right = wrong = 0
    while waits < samples:
        rows = ctx.stream("-a", "-F", 200 if SLOW == 1 else 10, "-d", 10 if SLOW == 1 else 25, "-p", workload["pids"], *args, columns=COLUMNS).finish(
            0, START_S + 25 + 2 * STOP_S)
        let_pass(0.2)
        turns = Turns(path)
        for time_of, scan in scans_of(rows):
            begin = timestamp_s(time_of)
            might = turns.during(begin, begin + READ_S)
            waiting = [row for row in scan if row["tid"] in tids and row["state"] == "D"]
            if not might or not waiting:
                continue
            holders = [row["blocker_tid"] for row in waiting if row["blocker_sure"] == "certain"]
            waits += len(waiting)
            told += len(holders)
            right += len([row for row in waiting if row["blocker_tid"] in might])
            others = [tid for tid in holders if tid not in might or tid != holders[0]]
            others += [row["tid"] for row in waiting if row["blocker_tid"] and row["tid"] in holders]
            wrong += len(others)
            if others:
                print("# %s: %s, not %s, at %s" % (of, sorted(set(holders)), might, time_of))
    print("# %s, turns of %d ms: %d samples, %d certain, %d wrong; %.2f %% have the right holder" % (of, turn_ms, waits, told, wrong, 100 * right / waits))
    check(not wrong, "%d wrong ones of %d that are certain", wrong, told)
    return waits, right


def handovers_of_both(ctx, many, *args):
    for of in ("kernel_turns", "kernel_mutex_turns"):
        handovers(ctx, of, many, 2, *args)
        waits, right = handovers(ctx, of, many, 30, *args)
        # 90 to 96 % on a host whose two CPUs have 37 to 12 threads to run
        check(right >= (0.85 if SLOW == 1 else 0.3) * waits, "%s: %d of %d samples have the right holder", of, right, waits)


@case(alone=True, thorough=True)
def chain_of_handovers(ctx):
    """Of 100000 samples of threads that wait for locks that change hands no certain holder is wrong; most have the right holder where turns last 30 ms."""
    needs_feature(ctx, "lock_search")
    handovers_of_both(ctx, 25000 if SLOW == 1 else 500, *ctx.without("kernel_locks"))


@case(alone=True, thorough=True)
def chain_of_handovers_by_faults(ctx):
    """The same where page faults of tsnap run the program."""
    needs_feature(ctx, "lock_faults")
    handovers_of_both(ctx, 25000 if SLOW == 1 else 500, *ctx.without("kernel_locks,lock_search"))


@case
def chain_of_memory_map(ctx):
    """A thread that waits for the lock of its process's memory map, by its name, and for the thread that holds it; nothing of the process is read."""
    workload = ctx.workload("stuck_maps", waits=1)
    time.sleep(1)  # the waiter waits
    for known in ("lock_search", "kernel_locks"):
        needs_feature(ctx, known)
        rows = ctx.rows("-a", "-p", workload["pid"], *(ctx.without("kernel_locks") if known == "lock_search" else ()), columns="comm,state,syscall,waits_on,blocker_sure,chain")
        mapper = next((row["tid"] for row in rows if row["comm"] == "mapper"), "")
        held = "mmap_lock of %s workload held by %s mapper (D, mmap)"
        right = ("D", "mprotect", held % (workload["pid"], mapper), "certain", "waiter kernel lock> mapper")
        told = {tuple(row[name] for name in ("state", "syscall", "waits_on", "blocker_sure", "chain")) for row in rows if row["comm"] == "waiter"}
        check(told == {right}, "%s: %s", known, told)
        check({(row["state"], row["syscall"]) for row in rows if row["comm"] == "mapper"} == {("D", "mmap")}, "the holder: %s", rows[-4:])


@case
def chain_of_terminal(ctx):
    """A thread that waits in S for a mutex of the kernel, so that a signal can end it: it writes to a terminal whose buffer another one fills."""
    ways = lock_ways(ctx)
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    writers = []
    for name in ("fills", "waits"):
        code = "import os; open('/proc/self/comm', 'w').write(%r); os.write(%d, bytes(1 << 20))" % (name, theirs)
        writers.append(Process([sys.executable, "-c", code], pass_fds=[theirs]))
        ctx.started.append(writers[-1])
        wait_until(lambda: truth.Thread(writers[-1].pid).letter == "S", 10 * SLOW, "the writer sleeps")
        time.sleep(0.5)
    rows = ctx.rows("-a", "-p", "%d,%d" % tuple(writer.pid for writer in writers), columns="comm,state,blocker_tid,blocker_sure,waits_on,chain")
    told = {(row["state"], row["blocker_tid"], row["blocker_sure"], row["waits_on"], row["chain"].split(" server>")[0])
            for row in rows if row["comm"] == "waits"}
    name = "atomic_write_lock of %s held by %d fills (S, write)" % (os.ttyname(theirs), writers[0].pid)
    if "lock_search" not in ways:  # then locks of objects have no names
        told = {(state, holder, "certain", name, chain) for state, holder, _, _, chain in told if holder}
    check(told == {("S", str(writers[0].pid), "certain", name, "waits kernel lock> fills")}, "%s", told)
    check(not any("lock" in row["waits_on"] for row in rows if row["comm"] == "fills"), "the other one waits for a lock: %s", rows[-2:])


FREEZE = """
import fcntl, os, sys
open("/proc/self/comm", "w").write("freezes")
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0xC0045877, 0)
"""


@case(long=True)
def chain_of_freezer(ctx):
    """Who freezes a file system waits for those who write it, and all that would write it wait for whoever freezes it."""
    needs_feature(ctx, "lock_search")
    with Device() as device, file_system(ctx, device) as folder:
        workload = ctx.workload("chain", of="kernel_locks", dir=folder)
        stat = os.stat(folder)
        freezes = Process([sys.executable, "-c", FREEZE, folder])
        wait_until(lambda: truth.Thread(freezes.pid).letter == "D", 10 * SLOW, "a writer is waited for")
        makes = Process([sys.executable, "-c", "import os, sys; open('/proc/self/comm', 'w').write('makes'); os.mkdir(sys.argv[1])", folder + "/new"])
        wait_until(lambda: truth.Thread(makes.pid).letter == "D", 10 * SLOW, "the freezer is waited for")
        try:
            rows = ctx.rows("-a", "-p", "%d,%d" % (freezes.pid, makes.pid), columns="comm,state,blocker_tid,blocker_sure,waits_on,chain")
        finally:
            workload.process.kill()  # its end waits for the thaw
            freezes.wait(STOP_S)
            subprocess.run(["fsfreeze", "-u", folder], check=True)
            makes.wait(STOP_S)
            workload.process.wait(STOP_S)
    told = collections.Counter((row["comm"], row["state"], row["blocker_tid"], row["blocker_sure"]) for row in rows)
    right = ("makes", "D", str(freezes.pid), "certain")
    # long after the scan the holder may have run: then it is only likely
    check(set(told) <= {("freezes", "D", "", ""), ("makes", "D", "", ""), right, right[:3] + ("likely",)}, "%s", told)
    check(told[right] >= 0.8 * len([row for row in rows if row["comm"] == "makes"]) > 0, "%s", told)
    named = {re.sub(" held by .*", "", row["waits_on"]) for row in rows if row["comm"] == "freezes"}
    check(named == {"sb_writers of %d:%d" % (os.major(stat.st_dev), os.minor(stat.st_dev))}, "%s", named)


# Each has a lock of the kernel's static data for a while, again and again, as it waits for an RCU grace period with it.
STATIC = {
    "rtnl_mutex": """
import ctypes, fcntl, os, struct, sys
open("/proc/self/comm", "w").write("has_static")
if ctypes.CDLL(None).unshare(0x40000000):  # CLONE_NEWNET
    sys.exit("unshare")
while True:
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, 0x400454ca, struct.pack("16sh14x", b"", 0x1001))  # TUNSETIFF, IFF_TUN | IFF_NO_PI
    os.close(device)
""",
    "cgroup_mutex": """
import os, sys
open("/proc/self/comm", "w").write("has_static")
while True:
    for group in "one", "two":
        with open(os.path.join(sys.argv[1], group, "cgroup.procs"), "w") as file:
            file.write("0")
"""}


def static_lock(ctx, name, *arguments):
    """Several processes take turns to have the lock: whoever waits for it is told its name, and one of the others that has it."""
    processes = [Process([sys.executable, "-c", STATIC[name], *arguments]) for _ in range(6)]
    ctx.started.extend(processes)
    pids = {str(process.pid) for process in processes}
    try:
        rows = ctx.rows("-a", "-F", 50 if SLOW == 1 else 10, "-d", 4 if SLOW == 1 else 20, "-p", ",".join(sorted(pids)), *ctx.without("kernel_locks"), columns=COLUMNS)
        check(all(process.process.poll() is None for process in processes), "a process has ended")
    finally:
        for process in processes:
            process.kill()
            process.wait(STOP_S)
    named = [row for row in rows if row["waits_on"].startswith(name + " held by ")]
    wrong = [row for row in named if row["blocker_tid"] not in pids - {row["tid"]} or not re.match(name + r" held by \d+ has_static", row["waits_on"])]
    waiting = [row for row in rows if row["state"] == "D" and row["waits_on"].split(" ")[0] == name]
    print("# %s: %d of %d samples of waiters have a holder" % (name, len(named), len(waiting)))
    check(not wrong, "%s: %s", name, wrong[:3])
    certain = [{row["blocker_tid"] for row in scan if row in named and row["blocker_sure"] == "certain"} for _, scan in scans_of(rows)]
    strange = [holders for holders in certain if len(holders) > 1]
    check(not strange, "%s has several holders: %s", name, strange[:1])
    # a mutex that is held for microseconds has often changed hands before it is read
    check(len(named) >= (3 if name == "rtnl_mutex" else 1), "%s: %d samples have a holder of %d", name, len(named), len(waiting))


@case(alone=True, long=True)
def chain_of_static_locks(ctx):
    """Who changes network interfaces, or moves processes between control groups, waits for the kernel's one lock of that, by its name."""
    lock_ways(ctx)
    static_lock(ctx, "rtnl_mutex")
    folder = ctx.temporary()
    if subprocess.run(["mount", "-t", "cgroup2", "none", folder], check=False).returncode:
        raise Skip("no cgroup2")
    groups = [os.path.join(folder, group) for group in ("one", "two")]
    try:
        for group in groups:
            os.mkdir(group)
        static_lock(ctx, "cgroup_mutex", folder)
    finally:
        for group in groups:
            wait_until(lambda group=group: not os.path.exists(group) or not open(group + "/cgroup.procs").read(), STOP_S, "the group is empty")
            os.rmdir(group)
        subprocess.run(["umount", folder], check=True)


FREEZES = """
import fcntl, os, sys
open("/proc/self/comm", "w").write("freezes")
folder = os.open(sys.argv[1], os.O_RDONLY)
while True:
    with open(sys.argv[1] + "/dirty", "wb") as file:
        file.write(bytes(32 << 20))
    for request in 0xC0045877, 0xC0045878:  # FIFREEZE, FITHAW
        fcntl.ioctl(folder, request, 0)
"""
SYNCS = """
import ctypes, os, sys
open("/proc/self/comm", "w").write("syncs")
folder = os.open(sys.argv[1], os.O_RDONLY)
while True:
    ctypes.CDLL(None).syncfs(folder)
"""


@case(long=True)
def chain_of_mount(ctx):
    """While a file system is being frozen its dirty pages are written: whoever syncs it meanwhile waits for its s_umount, and for that one."""
    needs_feature(ctx, "lock_search")
    with Device(ctx.temporary(), 256 << 20) as device, file_system(ctx, device) as folder:
        stat = os.stat(folder)
        freezes = Process([sys.executable, "-c", FREEZES, folder])
        syncs = Process([sys.executable, "-c", SYNCS, folder])
        ctx.started.extend((freezes, syncs))
        try:
            rows = ctx.rows("-a", "-F", 50 if SLOW == 1 else 10, "-d", 5 if SLOW == 1 else 30, "-p", "%d,%d" % (freezes.pid, syncs.pid), *ctx.without("kernel_locks"),
                            columns=COLUMNS)
        finally:
            for process in (freezes, syncs):
                process.kill()
            subprocess.run(["fsfreeze", "-u", folder], check=False, stderr=subprocess.DEVNULL)
            for process in (freezes, syncs):
                process.wait(STOP_S)
    name = "s_umount of %d:%d held by %d freezes" % (os.major(stat.st_dev), os.minor(stat.st_dev), freezes.pid)
    named = [row for row in rows if row["blocker_tid"] == str(freezes.pid) and row["state"] == "D"]
    print("# s_umount: %d samples have a holder, of %d" % (len(named), len(rows)))
    others = {row["waits_on"] for row in named if not row["waits_on"].startswith(name)}
    check(len(named) >= 5 and not others, "not %s: %s", name, others)


@case
def chain_without_kernel_locks(ctx):
    """Where the holders of kernel locks can't be known no blocker is shown."""
    workload = ctx.workload("chain", of="kernel_locks", dir=ctx.temporary())
    rows = ctx.rows("-a", "-p", workload["pids"], *ctx.without("kernel_locks,lock_search,lock_faults"), columns=COLUMNS)
    waiting = [row for row in rows if row["state"] == "D"]
    check(len(waiting) > 10, "%d samples in D", len(waiting))
    check(not any(row["blocker_tid"] for row in waiting), "somebody is told: %s", waiting[-1])


@case(thorough=True)
def chain_through_network_namespaces(ctx):
    """A client, a proxy and a server in a network namespace each: the chain is shown; where addresses repeat no blocker is."""
    run_chain(ctx, "proxy_namespaces", LIKELY)
    later = run_chain(ctx, "twin_namespaces", LIKELY)
    told = [row for row in later if row["blocker_pid"] and row["blocker_kind"] == "socket"]
    check(not told, "one of two servers with the same address is told: %s", told[:1])


@case
def chain_to_waker(ctx):
    """Workers wait for a queue, which no thread holds: the one that fills it is shown as likely, as it has ended all their waits; of two
    that fill it none is shown."""
    later = run_chain(ctx, "queue", LIKELY)
    told = {(row["blocker_kind"], row["blocker_sure"]) for row in later} - {("", "")}
    check(told == {("waker", "likely")}, "told as %s", told)
    later = run_chain(ctx, "queue_of_two", 60)
    told = [row for row in later if row["blocker_kind"] == "waker"]
    check(not told, "one of two is told: %s", told[:1])


HELD_BY_FILE = r"""
import fcntl, os, socket, struct, sys, time

def child(name, work):
    pid = os.fork()
    if not pid:
        open("/proc/self/comm", "w").write(name)
        work()
        os._exit(0)
    return pid

def lock(fd):
    if kind == "ofd":
        fcntl.fcntl(fd, 38, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
    else:
        fcntl.flock(fd, fcntl.LOCK_EX)

kind, path = sys.argv[1:]
open("/proc/self/comm", "w").write("cl_owner")
fd = os.open(path, os.O_RDWR | os.O_CREAT)
locker = child("cl_locker", lambda: lock(fd))
os.waitpid(locker, 0)
for _ in range(50 if os.path.exists("/proc/sys/kernel/ns_last_pid") else 0):
    open("/proc/sys/kernel/ns_last_pid", "w").write(str(locker - 1))
    innocent = child("cl_innocent", lambda: (os.close(fd), time.sleep(600)))
    if innocent == locker:
        break
    os.kill(innocent, 9)
    os.waitpid(innocent, 0)
waiter = child("cl_waiter", lambda: (os.close(fd), lock(os.open(path, os.O_RDWR))))
if kind == "shared":
    child("cl_heir", lambda: time.sleep(600))
if kind == "sent":
    ends = socket.socketpair()
    socket.send_fds(ends[0], [b"x"], [fd])
    os.close(fd)
print(os.getpid(), waiter, flush=True)
time.sleep(600)
"""


@case
def chain_to_locked_file(ctx):
    """A lock is held by the processes that have the locked file open: not by the one that took it, which has ended, nor by another one
    that has its id since. Where no process has the file nobody is named."""
    directory = ctx.temporary()
    for kind, named, sure, chain in (("flock", " held by %s cl_owner", "certain", "cl_waiter file lock> cl_owner"),
                                     ("ofd", " held by %s cl_owner", "certain", "cl_waiter file lock> cl_owner"),
                                     ("shared", " held by %s cl_owner and 1 more", "likely", "cl_waiter file lock> cl_owner"),
                                     ("sent", ", no holder in /proc", "", "cl_waiter")):
        path = directory + "/" + kind
        held = Process([sys.executable, "-c", HELD_BY_FILE, kind, path])
        ctx.at_end(held.end)
        ctx.at_end(lambda group=held.pid: os.killpg(group, signal.SIGKILL))
        wait_until(lambda: b"\n" in held.out, START_S, "the lock that was taken")
        owner, waiter = held.out.split()
        rows = ctx.rows("-a", "-t", waiter.decode(), seconds=2 * SETTLED_S, columns="waits_on,blocker_pid,blocker_sure,chain")
        named = "lock on " + path + (named % owner.decode() if "%" in named else named)
        told = {(row["waits_on"], row["blocker_pid"], row["blocker_sure"], row["chain"]) for row in rows[len(rows) // 2:]}
        check(told == {(named, owner.decode() if sure else "", sure, chain)}, "%s: %s", kind, told)
        early = {row["blocker_pid"] for row in rows} - {"", owner.decode()}
        check(not early, "%s: at first %s", kind, early)


@case
def chain_of_liar(ctx):
    """A process of another user waits for a futex that says root's thread holds it: that is not certain."""
    later = run_chain(ctx, "hostile", 0)
    told = {(row["blocker_kind"], row["blocker_sure"]) for row in later}
    check(told == {("mutex", "likely")}, "the lie is told as %s", told)
    liar = Truth(ctx.workload("chain", of="hostile", dir=ctx.temporary()))
    (tid, (blocker, _)), = liar.by_tid.items()
    rows = ctx.rows("-t", tid, columns="waits_on,chain,root")
    told = {(re.sub(r"(mutex) 0x\w+|%s \S+" % blocker, r"\1", row["waits_on"]), "mutex?> " in row["chain"], row["root"][-2:]) for row in rows}
    check(told == {("mutex likely held by ", True, " ?")}, "the lie is shown as %s", told)
    tool = ctx.plain("--chains", "-d", 1, "-p", liar.pids)
    tool.finish_plain(0, START_S + 1 + STOP_S)
    roots, locks = (table_below(tool.out.decode(), words) for words in ("Who others wait for in the end", "Locks that were waited for"))
    check(len(roots) == 2 and " ? " in roots[1] and len(locks) == 2 and "  mutex? 0x" in locks[1], "--chains: %s, %s", roots, locks)


def shares_of(lines, column):
    """Shares of the column by thread name, chain and state of its root, of each name's rows whose root is known."""
    sums, of_name = {}, {}
    for line in lines:
        if line["root_state"]:
            key, weight = (line["comm"], line["chain"], line["root_state"]), float(line[column])
            sums[key] = sums.get(key, 0) + weight
            of_name[line["comm"]] = of_name.get(line["comm"], 0) + weight
    return {key: weight / of_name[key[0]] for key, weight in sums.items()}


def lines_of(tool):
    """Rows of a report in JSON, and each report's line on itself."""
    tool.finish_plain(limit_s=START_S + 8 * SETTLED_S + STOP_S)
    lines = [json.loads(line) for line in tool.out.decode().splitlines()]
    return [line for line in lines if "report" not in line], [line["report"] for line in lines if "report" in line]


@case(alone=True)
def chains_summed_up(ctx):
    """Most scans of a report leave long waits out. Threads that wait all the time are in its rows for each scan all the same, and the
    time of others is shared among chains as complete scans of the same time have it."""
    still = ctx.workload("chain", of="mutex_nap", dir=ctx.temporary())
    waiters = len(Truth(still).by_tid)
    moving = ctx.workload("chained", threads=40, nap_ms=600)
    pids = ",".join((truth.read("/proc/%d/task/%d/children" % (moving.tgid, moving.tgid)) or "").split())
    by_chain = ("--json", "--report", "-F", 20, "--by", "comm,chain,root_state")
    complete_tool = ctx.stream("-F", 20, "-p", pids, columns="comm,chain,root_state")
    complete_tool.wait_scans(1)
    tool = ctx.plain(*by_chain, "-i", 4 * SETTLED_S, "-n", 3, "-p", pids)
    alone = ctx.plain(*by_chain, "-i", 1, "-n", 4, "-G", "samples", "-p", still["pids"])
    rows, (first, *reports) = lines_of(tool)
    complete_rows = complete_tool.interrupt()
    # later than the first report: each of the ten threads of a mutex has had it, so that most other ends are known
    begin, end = first["end"], reports[-1]["end"]
    found = shares_of([row for row in rows if row["begin"] >= begin], "seconds")
    complete = shares_of([row for row in complete_rows if begin < row["timestamp"] <= end], "weight_us")
    find = Findings()
    for key, wanted in complete.items():
        find.expect(abs(found.get(key, 0) - wanted) <= 0.02, "%s: a share of %.3f, complete scans have %.3f", key, found.get(key, 0), wanted)
    find.expect(any("mutex>" in chain for _, chain, _ in complete), "no chain to a mutex: %s", complete)
    rows, reports = lines_of(alone)
    for report in reports:
        waiting = [row for row in rows if row["begin"] == report["begin"] and row["comm"] == "chain_waiter"]
        find.expect(sum(row["samples"] for row in waiting) == waiters * report["scans"], "%d threads wait in %d scans: %s", waiters,
                    report["scans"], waiting)
    find.close()


@case
def chains_report(ctx):
    """--chains shows the deadlock, the holder that was mostly not on a CPU, the locks, and the threads that were on the CPU; the
    same chains in folded form have the same weight."""
    workloads = ctx.workloads([("chain", {"of": name, "dir": ctx.temporary()}) for name in ("deadlock", "mutex_queue", "turns")])
    pids = ",".join(workload["pids"] for workload in workloads)
    tool = ctx.plain("-p", pids, "-d", 4, "--chains", "-g", "comm")
    folded = ctx.plain("-p", pids, "-d", 4, "--folded", "--by-chain")
    tool.finish_plain()
    folded.finish_plain()
    out, find = tool.out.decode(), Findings()
    deadlock, queue, turns = (workload["pids"] for workload in workloads)
    find.expect(re.search(r"deadlock +%s +chain_dead_a mutex> chain_dead_b mutex> chain_dead_a DEADLOCK" % deadlock, out),
                "the deadlock is not told")
    roots = re.search(r"(\S+) +(\S+) +chain_holder +%s +(\S+)%%.*? +(\S+)%%" % queue, out)
    find.expect(roots and 45 < float(roots.group(2)) <= 50, "the holder for whom 50 wait is not told")
    find.expect(roots and float(roots.group(3)) + float(roots.group(4)) > 99, "it was neither on a CPU nor waited for one")
    locks = [line.split() for line in out.splitlines() if re.search(r" mutex 0x[0-9a-f]+$", line)]
    turning = [line for line in locks if line[5] == turns]
    find.expect(len(turning) == 1 and int(turning[0][3]) >= 4 and int(turning[0][4]) >= 10, "the mutex that is handed on: %s", turning)
    find.expect(re.search(r"(?m)^ +[\d.]+ +[\d.]+ +chain_(holder|spinner) +\S+$", out), "nobody had the holder's CPU")
    weights = dict(line.rsplit(" ", 1) for line in folded.out.decode().splitlines())
    dead = int(weights.get("chain_dead_a mutex>;chain_dead_b mutex>;chain_dead_a DEADLOCK", 0))
    find.expect(3.5e6 < dead < 8e6, "folded: the deadlock lasts %d us of 4 s", dead)
    if find.wrong:
        find.wrong.append(out)
    find.close()
