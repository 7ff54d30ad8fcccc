"""State, system call, arguments and file of threads that hold still are those that the workloads report."""
import csv
import io
import itertools
import json
import os
import subprocess
import time

import truth
from harness import SLOW, START_S, STOP_S, Findings, Skip, case, check, let_pass, number, rows_of, scans_of, timestamp_s, unescape

CALL_COLUMNS = ("ppid,comm,state,state_us,cpu,syscall,syscall_nr,arg0,arg1,arg2,arg3,arg4,arg5,fd,filename,kthread")
U64 = (1 << 64) - 1


def sleep_calls(ctx):
    """Names of the calls that the workload `sleep` knows on this architecture."""
    return subprocess.run([ctx.options.workload, "sleep_calls"], stdout=subprocess.PIPE, check=True,
                          universal_newlines=True).stdout.split()


def blocked_workloads(ctx):
    directory = ctx.temporary()
    return ctx.workloads([("sleep", {"call": call, "dir": directory}) for call in sleep_calls(ctx)] +
                         [(name, {}) for name in ("mutex", "vfork", "remote_fault", "page_fault", "stopped", "traced",
                                                  "zombie", "zombie_leader", "compat32")])


def pids_of(workloads):
    return ",".join(str(workload.tgid) for workload in workloads)


def expect_call(find, workload, row):
    """The row of a blocked thread has the state and the call that its workload reports."""
    name = workload.name
    state = {"t": "T"}.get(workload["state"], workload["state"])
    find.expect(row["state"] == state, "%s: state %s, not %s", name, row["state"], state)
    if "syscall" not in workload:
        return
    find.expect(row["syscall"] == workload["syscall"], "%s: system call '%s', not '%s'", name, row["syscall"],
                workload["syscall"])
    nr = workload["nr"] if workload["syscall"] else ""
    find.expect(row["syscall_nr"] == nr, "%s: system call number '%s', not '%s'", name, row["syscall_nr"], nr)
    find.expect(row["fd"] == workload.ready.get("fd", ""), "%s: descriptor '%s', not '%s'", name, row["fd"],
                workload.ready.get("fd", ""))
    file = workload.ready.get("file", "").encode(errors="surrogateescape")
    find.expect(unescape(row["filename"]) == file, "%s: file '%s', not %r", name, row["filename"], file)
    for i, value in enumerate(workload.ready.get("args", "").split(",") if "args" in workload else ()):
        got = number(row, "arg%d" % i)
        find.expect(got is not None and got & U64 == int(value, 0), "%s: arg%d is '%s', not %s", name, i,
                    row["arg%d" % i], value)


def expect_blocked(find, workloads, scans):
    """Each of these threads is once in each of these scans."""
    for when, rows in scans:
        for workload in workloads:
            mine = rows_of(rows, workload.tid)
            find.expect(len(mine) == 1, "%s: %d rows in the scan of %s", workload.name, len(mine), when)
            for row in mine[:1]:
                find.expect(row["pid"] == workload["pid"], "%s: pid %s", workload.name, row["pid"])
                expect_call(find, workload, row)


def expect_state_us(find, workloads, scans):
    """The time in a state grows with the clock as long as the thread holds still."""
    for workload in workloads:
        mine = [row for _, rows in scans for row in rows_of(rows, workload.tid) if row["state_us"] != ""]
        for before, after in zip(mine, mine[1:]):
            grown = number(after, "state_us") - number(before, "state_us")
            weight = number(after, "weight_us")
            find.expect(abs(grown - weight) <= max(weight / 2, 20000), "%s: state_us grew by %d in a scan of %d us",
                        workload.name, grown, weight)


@case
def blocked_before(ctx):
    """Threads that have been blocked since before tsnap started are right from the first scan on."""
    workloads = blocked_workloads(ctx)
    rows = ctx.rows("-a", "-p", pids_of(workloads), seconds=1, columns=CALL_COLUMNS)
    scans = scans_of(rows)
    check(scans, "no scan")
    find = Findings()
    expect_blocked(find, workloads, scans)
    expect_state_us(find, workloads, scans)
    find.close()


@case
def blocked_later(ctx):
    """Threads that block while tsnap runs are shown as blocked."""
    tool = ctx.stream("-a", "-F", 20 if SLOW == 1 else 2, columns=CALL_COLUMNS)  # emulated, rows of all threads take all of tsnap's time
    tool.wait_scans(1)
    workloads = blocked_workloads(ctx)
    # a workload that is ready has still to block; rows of scans before that may come after it
    blocked = time.time() + 0.1 * SLOW
    tool.wait_scans(4, lambda row: timestamp_s(row["timestamp"]) > blocked)
    scans = [scan for scan in scans_of(tool.interrupt()) if timestamp_s(scan[0]) > blocked][:4]
    find = Findings()
    expect_blocked(find, workloads, scans)
    expect_state_us(find, workloads, scans)
    for workload in workloads:
        mine = [row for _, rows in scans for row in rows_of(rows, workload.tid)]
        find.expect(workload["state"] in "Zt" or all(row["state_us"] != "" for row in mine),
                    "%s: no state_us although it blocked under our eyes", workload.name)
    find.close()


@case
def blocked_in_turn(ctx):
    """A thread that sleeps in one call, then in another, then in the first again is shown in each as long as it lasts. What is known
    of one wait episode is never shown for the next."""
    workload = ctx.workload("calls", trivial=0, opens=0, bad=0, naps=1, nap_ms=int(2500 * SLOW), reads=0)
    tool = ctx.stream("-a", "-F", 2, "-p", workload.tgid, columns=CALL_COLUMNS)
    tool.wait_scans(4)
    let_pass(0.2)  # switches keep registers for about a scan: after that, registers need not be read on demand
    workload.say("go")
    workload.wait_done()
    tool.wait_scans(len(tool.scans()) + 4)
    asleep = [row for row in rows_of(tool.interrupt(), workload.tid) if row["state"] == "S" and row["state_us"] not in ("", "0")]
    calls = [call for call, _ in itertools.groupby(row["syscall"] for row in asleep)]
    check(calls == ["read", "clock_nanosleep", "read"], "asleep in %s", [row["syscall"] for row in asleep])
    naps = sum(row["syscall"] == "clock_nanosleep" for row in asleep)
    check(naps >= 4, "asleep in %s", [row["syscall"] for row in asleep])


@case
def compat_calls_of_native_code(ctx):
    """A 64-bit thread in a call through the 32-bit entry (int $0x80) is shown in that call. For a thread that blocked before tsnap started
    nothing says how it entered the kernel: /proc/TID/syscall has only the number."""
    find = Findings()
    tool = ctx.stream("-a", columns=CALL_COLUMNS)
    tool.wait_scans(1)
    later = ctx.workload("int80")
    start = len(tool.scans()) + 2
    tool.wait_scans(start + 3)
    expect_blocked(find, [later], scans_of(tool.interrupt())[start:])
    find.close()


@case
def active_only(ctx):
    """Without -a threads in D are shown; threads in S for a timer, in T and in Z are not."""
    workloads = {w.name: w for w in ctx.workloads([("vfork", {}), ("sleep", {"call": "nanosleep"}), ("stopped", {}),
                                                   ("zombie", {})])}
    rows = ctx.rows("-p", pids_of(workloads.values()), seconds=1, columns="state")
    scans = len(scans_of(rows))
    check(scans, "no rows at all")
    check(len(rows_of(rows, workloads["vfork"].tid)) == scans, "vfork is not in each scan")
    for name in ("nanosleep", "stopped", "zombie"):
        check(not rows_of(rows, workloads[name].tid), "%s is shown", name)


@case
def zombie_leader(ctx):
    """A process whose first thread has ended is shown with both threads, each with its own state."""
    workload = ctx.workload("zombie_leader")
    rows = ctx.rows("-a", "-p", workload["pid"], seconds=1, columns="state")
    for when, scan in scans_of(rows):
        states = {row["tid"]: row["state"] for row in scan}
        check(states == {workload["tid"]: "Z", workload["tid2"]: "S"}, "%s in the scan of %s", states, when)


def exec_change(ctx, options):
    workload = ctx.workload("exec_change", **options)
    tool = ctx.stream("-a", "-p", workload["pid"], columns="comm,state")
    tool.wait_scans(3)
    workload.say("exec")
    tool.wait_scans(5, lambda row: row["comm"] == "workload")
    rows = rows_of(tool.interrupt(), workload.tid)
    check(all(row["pid"] == workload["pid"] for row in rows), "its pid changed")
    names = [row["comm"] for row in rows]
    changes = [names[0]] + [b for a, b in zip(names, names[1:]) if a != b]
    for name in ("exe", "exec_thread"):  # each of the names may be seen for a moment
        changes = [change for change in changes if change != name]
    check(changes == ["before_exec", "workload"], "comm went %s", " -> ".join(changes))


@case
def exec_by_leader(ctx):
    """When a process execs its comm changes, its ids stay."""
    exec_change(ctx, {})


@case
def exec_by_thread(ctx):
    """When a thread that is not the first execs it takes over the first one's id."""
    exec_change(ctx, {"from": "thread"})


def hostile_names(workload):
    return {int(key[4:]): value.encode(errors="surrogateescape") for key, value in workload.ready.items()
            if key.startswith("comm")}


def expect_names(rows, names):
    seen = {}
    for row in rows:
        seen.setdefault(int(row["tid"]), set()).add(row["comm"])
    for tid, raw in names.items():
        check(tid in seen, "the thread called %r is missing", raw)
        for text in seen[tid]:
            check(unescape(text) == raw, "comm is '%s' for %r", text, raw)
            check(text.isprintable() or not text, "comm %r can't be printed", text)


@case
def hostile_comm_csv(ctx):
    """CSV has names with commas, quotes, newlines, escape sequences and broken UTF-8."""
    workload = ctx.workload("hostile_comm")
    tool = ctx.stream("-a", "-d", 1, "-p", workload["pid"], columns="comm,state")
    rows = tool.finish(0, START_S + STOP_S)
    expect_names(rows, hostile_names(workload))
    check(tool.out.count(b"\n") == len(rows) + 1, "%d lines for %d rows", tool.out.count(b"\n"), len(rows))
    check(not any(c < 0x20 and c not in (0x0A, 0x0D) for c in tool.out), "control characters in the CSV")
    table = list(csv.reader(io.StringIO(tool.out.decode(), newline="")))
    check({len(line) for line in table} == {len(table[0])}, "the number of columns varies")


@case
def hostile_comm_json(ctx):
    """JSON has names with commas, quotes, newlines, escape sequences and broken UTF-8."""
    workload = ctx.workload("hostile_comm")
    tool = ctx.plain("--json", "-a", "-d", 1, "-p", workload["pid"], "-g", "timestamp,tid,comm,state")
    tool.finish_plain(0)
    objects = [json.loads(line) for line in tool.out.decode().splitlines()]
    check(objects, "no object")
    expect_names([dict(row, tid=str(row["tid"])) for row in objects], hostile_names(workload))


@case
def hostile_comm_report(ctx):
    """A report (-a) of hostile names is nothing but printable text."""
    workload = ctx.workload("hostile_comm")
    tool = ctx.plain("-a", "-d", 1, "-p", workload["pid"])
    tool.finish_plain(0)
    text = tool.out.decode()
    check(all(c.isprintable() or c == "\n" for c in text), "unprintable text in the report")
    check("\\x1b" in text, "the escape sequence's name is not in the report")


@case
def kernel_threads(ctx):
    """Kernel threads are marked, and have no system call, command line or file; those of processes have their process's program."""
    rows = ctx.rows("-a", seconds=1, columns="kthread,tid,pid,comm,state,syscall,fd,filename,cmdline,exe")
    kernel = rows_of(rows, 2)
    if not kernel:
        raise Skip("no kthreadd in this pid namespace")
    check(all(row["kthread"] == "1" and row["comm"] == "kthreadd" for row in kernel), "kthreadd: %s", kernel[0])
    for row in rows:
        if row["kthread"] == "1":
            program = ("cmdline", "exe") if row["tid"] == row["pid"] else ()
            odd = [key for key in ("syscall", "fd", "filename", *program) if row[key]]
            check(not odd, "the kernel thread %s has %s", row["comm"], odd)


@case
def kernel_threads_of_processes(ctx):
    """io_uring's workers, threads of a process, are kernel threads: they make no system call though their registers show their
    creator's, have their process's program and no user stack, and are not shown while they wait for work."""
    workload = ctx.workload("wait", on="io_uring_workers")
    pid = int(workload["pid"])
    workers = [tid for tid in map(int, os.listdir("/proc/%d/task" % pid)) if truth.Thread(tid).kernel]
    if not workers:
        raise Skip("no thread of the process is a worker (5.12)")
    rows = ctx.rows("-a", "-p", pid, seconds=1, columns="kthread,comm,state,syscall,syscall_nr,fd,filename,why,waits_on,exe,ustack")
    for tid in workers:
        mine = rows_of(rows, tid)
        check(mine, "no row of the worker %d", tid)
        for row in mine:
            check(row["kthread"] == "1" and row["exe"] == os.path.realpath(ctx.options.workload), "%s", row)
            odd = [key for key in ("syscall", "syscall_nr", "fd", "filename", "why", "waits_on", "ustack") if row[key]]
            check(not odd, "the worker has %s: %s", odd, row)
    shown = ctx.rows("-p", pid, seconds=1, columns="comm,state,syscall")
    check(not shown, "shown without -a: %s", shown[:1])
