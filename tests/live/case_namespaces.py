"""Containers: pid namespaces of their own, other file systems, few capabilities."""
import ctypes
import errno
import os
import platform
import shutil
import struct
import subprocess
import sys

import bpf
import truth
from case_trouble import NOBODY, expect_error
from harness import (SLOW, START_S, STOP_S, UNREADY, Findings, Process, Skip, case, check, rows_of, scans_of,
                     through, wait_until)

NEW_PIDS = ["--pid", "--fork", "--mount-proc", "--kill-child"]
# Numbers of capabilities(7), because older tools don't know the names
DAC_READ_SEARCH, SYS_PTRACE, SYS_ADMIN, SYS_RESOURCE, PERFMON, BPF = 2, 19, 21, 24, 38, 39
CALL_COLUMNS = "ppid,comm,state,syscall,fd,filename"


def unshared(*options):
    """The start of a command that runs in namespaces of its own."""
    command = ["unshare", *options]
    if not shutil.which("unshare"):
        raise Skip("unshare is not installed")
    tried = subprocess.run(command + ["true"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if tried.returncode:
        raise Skip("no such namespace here: %s" % tried.stderr.decode().strip())
    return command


class Namespace(Process):
    """A pid namespace with its own /proc, whose process 1 does nothing; all processes in it end with process 1."""

    def __init__(self, *outer):
        super().__init__([*unshared(*NEW_PIDS), "sh", "-c", "echo ready; read nothing"])
        wait_until(lambda: self.out or self.code is not None, START_S, "a pid namespace")
        self.init = min(truth.children(self.pid))
        self.prefix = ["nsenter", "--target", str(self.init), "--pid", "--mount", "--root"]

    def tids(self):
        """{tid in the namespace: host's tid} of all its threads."""
        found, namespace = {}, os.readlink("/proc/%d/ns/pid" % self.init)
        for tid, thread in truth.threads().items():
            numbers = [thread.status["NSpid"].split()] if "NSpid" in thread.status else []
            try:
                if numbers and len(numbers[0]) > 1 and os.readlink("/proc/%d/ns/pid" % tid) == namespace:
                    found[int(numbers[0][-1])] = tid
            except OSError:
                pass  # the thread ended meanwhile
        return found


def namespace_of(ctx):
    namespace = Namespace()
    ctx.started.append(namespace)
    return namespace, through(ctx, *namespace.prefix)


def mounted(command):
    """The start of a command that runs with other mounts."""
    return [*unshared("--mount"), "sh", "-c", command + " && exec \"$0\" \"$@\""]


def run_inside(ctx, *names, args=""):
    """Runs other tests with all of their processes and /proc in a pid namespace."""
    options = ctx.options
    command = unshared(*NEW_PIDS) + [
        sys.executable, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), "run_live.py"), "--must-run", "--workload",
        options.workload, "--tsnap", options.tsnap, "--tsnap-args=%s %s" % (options.tsnap_args, args), *names]
    run = Process(command)
    ctx.started.append(run)
    code = run.wait(170 * SLOW)
    lines = run.out.decode().splitlines()
    failed = [line for line in lines if line.startswith("FAIL")]
    check(code == 0 and not failed, "%s", "; ".join(failed) or "exit code %d: %s %s" % (code, lines, run.err))
    check(sum(line.startswith("ok ") for line in lines) >= len(names) - 1, "hardly anything ran: %s", lines)


@case(thorough=True, long=True)
def inside_states(ctx):
    """In a pid namespace of its own tsnap shows states, calls, files, names and ids as the namespace's /proc does."""
    run_inside(ctx, "whole_host", "blocked_before", "zombie_leader", "exec_by_thread",
               *(["blocked_later", "active_only", "exec_by_leader", "late_workload", "exit_storm", "many_threads"] if ctx.options.all else []))


@case(thorough=True, long=True)
def inside_times(ctx):
    """In a pid namespace of its own shares, totals and wakers are right."""
    run_inside(ctx, "spin", "spin_two_on_one_cpu", "fsync", "wakers_on_one_cpu", "totals", "totals_of_waits", "totals_close",
               "totals_of_first_sample")


@case(thorough=True, long=True)
def inside_choices(ctx):
    """In a pid namespace of its own the options work that choose threads, and those that end tsnap."""
    run_inside(ctx, "choose_*", "closed_pipe", "full_disk", "no_such_process", "types_from_files")


@case(alone=True)
def nothing_left_inside(ctx):
    """In a pid namespace of its own tsnap leaves nothing when it ends."""
    run_inside(ctx, "nothing_left")


@case(long=True)
def inside_facts(ctx):
    """In a pid namespace of its own the other ways to see switches work, and threads that slept before tsnap came have stacks."""
    run_inside(ctx, "without_facts", "choose_by_words")


@case(long=True)
def inside_and_outside(ctx):
    """Threads inside a pid namespace are shown under their ids there, in each scan; those outside never, not under any id."""
    namespace, inner = namespace_of(ctx)
    outside = ctx.workloads([("spin", {}), ("spin2", {}), ("sleep", {"call": "pipe_read"}), ("vfork", {})])
    inside = inner.workloads([("sleep", {"call": "pipe_read"}), ("vfork", {}), ("sleep", {"call": "futex"})])
    busy = inner.workload("fsync", dir=next((d for d in ("/var/tmp", os.getcwd()) if os.access(d, os.W_OK)), "/tmp"))
    tool = inner.stream("-a", "-d", 2 + SLOW, columns=CALL_COLUMNS)
    tool.wait_scans(2)
    there = namespace.tids()
    # fsync of a file in memory, as on some test machines, needs no disk
    disk = sum(truth.Thread(there[busy.tid]).letter == "D" for _ in range(200)) > 20
    scans = scans_of(tool.finish(0, START_S + STOP_S))
    for workload in inside + [busy]:
        check(there.get(workload.tid, workload.tid) != workload.tid, "tid %d is the same outside", workload.tid)
    find = Findings()
    for when, rows in scans:
        seen = [int(row["tid"]) for row in rows]
        find.expect(len(set(seen)) == len(seen), "a thread twice in the scan of %s", when)
        find.expect(set(seen) <= set(there), "tids %s are not inside", set(seen) - set(there))
        for workload in inside:
            mine = rows_of(rows, workload.tid)
            find.expect(len(mine) == 1, "%s: %d rows in the scan of %s", workload.name, len(mine), when)
            for row in mine[:1]:
                got = (row["pid"], row["state"], row["syscall"], row["filename"])
                expected = (workload["pid"], workload["state"], workload["syscall"], workload.ready.get("file", ""))
                find.expect(got == expected, "%s: %s, not %s", workload.name, got, expected)
        find.expect(not [row for row in rows if row["comm"] in ("spin", "spin_one", "spin_two", "tsnap")],
                    "what is outside, or tsnap itself, is shown")
    syncing = [row for _, rows in scans for row in rows_of(rows, busy.tid) if row["syscall"] == "fsync"]
    names = {row["filename"] for row in syncing} - {""}  # empty if not looked up in time
    find.expect(names == {busy["file"]} or not disk and not names, "fsync of %s: %s", busy["file"], names)
    find.expect(not disk or any(row["state"] == "D" for row in syncing), "fsync is never D")
    find.close()
    check(all(workload.code is None for workload in outside), "a workload ended")


@case(long=True)
def inside_report(ctx):
    """A report says of which namespace the ids are; --check says how tsnap gets them; with rows nothing is said."""
    _, inner = namespace_of(ctx)
    report = inner.plain("-d", 1, "-g", "psn")
    report.finish_plain()
    check("outside of this container's pid namespace" in report.out.decode(), "no word of it: %s", report.out.decode())
    checked = inner.plain("--check")
    checked.finish_plain()
    check("ids                translated" in checked.out.decode(), "%s", checked.out.decode())
    rows = inner.stream("-a", "-n", 2)
    rows.finish(0, START_S + STOP_S)
    check(not rows.err, "on standard error: %s", rows.err)


@case(thorough=True, long=True)
def inside_nested(ctx):
    """With two nested pid namespaces tsnap in the outer one shows the threads of both, tsnap in the inner one those of its own."""
    namespace, inner = namespace_of(ctx)
    deeper = Process([*namespace.prefix, *unshared(*NEW_PIDS), ctx.options.workload, "sleep", "call=pipe_read"])
    ctx.started.append(deeper)
    wait_until(lambda: b"ready" in deeper.out, START_S, "the workload in it")
    rows = inner.rows("-a", "-c", "pipe_read", seconds=1, columns="comm,state,syscall,filename")
    tids = {int(row["tid"]) for row in rows}
    check(len(tids) == 1 and tids <= set(seen_inside(namespace)), "tids %s, there are %s", tids, seen_inside(namespace))
    check({(row["state"], row["syscall"]) for row in rows} == {("S", "read")}, "%s", rows[0])
    check(all(row["filename"].startswith("pipe:") for row in rows), "%s", rows[0])
    init = next(tid for tid in truth.children(deeper.pid) if truth.Thread(tid).status_number("NSpid"))
    leaf = max(truth.children(init) | {init})
    numbers = truth.Thread(leaf).status["NSpid"].split()
    check(len(numbers) == 3, "not a namespace in a namespace: %s", numbers)
    within = through(ctx, "nsenter", "--target", str(leaf), "--pid", "--mount", "--root", workload=False)
    rows = within.rows("-a", "-c", "pipe_read", seconds=1, columns="comm,state,syscall,filename")
    check({int(row["pid"]) for row in rows} == {1}, "in the inner one: pids %s", {row["pid"] for row in rows})


def seen_inside(namespace):
    listed = subprocess.run([*namespace.prefix, "sh", "-c", "echo /proc/[0-9]*/task/*"], stdout=subprocess.PIPE, check=True,
                            universal_newlines=True).stdout
    return {int(path.rsplit("/", 1)[1]) for path in listed.split()}


@case
def hosts_proc_inside(ctx):
    """In a pid namespace, but with the host's /proc, all ids are the host's, and tsnap does not show itself."""
    workload = ctx.workload("sleep", call="pipe_read")
    inner = through(ctx, *unshared("--pid", "--fork", "--kill-child"), workload=False)
    tool = inner.stream("-a", "-d", 2, columns=CALL_COLUMNS)
    tool.wait_scans(2)
    own = truth.children(tool.process.pid)
    rows = tool.finish(0, START_S + STOP_S)
    check({(row["state"], row["filename"]) for row in rows_of(rows, workload.tid)} == {("S", workload["file"])}, "%s",
          rows_of(rows, workload.tid))
    check(own and not [row for row in rows if int(row["tid"]) in own], "tsnap shows itself")
    report = inner.plain("-d", 1, "-g", "psn")
    report.finish_plain()
    check("outside of" not in report.out.decode(), "%s", report.out.decode())


@case
def no_proc(ctx):
    """Without /proc, or with that of another pid namespace, one line says so; exit code 77."""
    bare = through(ctx, *mounted("mount -t tmpfs none /proc"), workload=False)
    expect_error(bare.plain("--csv", "-n", "1"), UNREADY, "/proc")
    namespace, _ = namespace_of(ctx)
    foreign = through(ctx, "nsenter", "--target", str(namespace.init), "--mount", "--root", workload=False)
    expect_error(foreign.plain("--csv", "-n", "1"), UNREADY, "/proc")


def capabilities(*numbers, uid=0):
    """The start of a command that has just these capabilities."""
    if not shutil.which("setpriv"):
        raise Skip("setpriv is not installed")
    if int(truth.read("/proc/sys/kernel/cap_last_cap") or 0) < max(numbers):
        raise Skip("this kernel does not have such capabilities (5.8)")
    if tuple(map(int, os.uname().release.split(".")[:2])) < (5, 11):
        numbers += (SYS_RESOURCE,)  # needed to raise the limit that maps count against
    listed = ",".join("+cap_%d" % number for number in numbers)
    if uid == 0:
        return ["setpriv", "--bounding-set=-all," + listed, "--inh-caps=-all"]
    return ["setpriv", "--reuid=%d" % uid, "--regid=%d" % uid, "--clear-groups", "--inh-caps=-all," + listed,
            "--ambient-caps=-all," + listed]


def sees(ctx, prefix, files=True, told=False):
    """A tsnap with these capabilities shows threads of root in D and S, with their files if `files`; if `told` it names CAP_SYS_PTRACE as
    missing."""
    blocked = ctx.workloads([("vfork", {}), ("sleep", {"call": "pipe_read"})])
    few = through(ctx.reachable(), *prefix, workload=False)
    tool = few.stream("-a", "-d", 1, "-p", ",".join(w["pid"] for w in blocked), columns=CALL_COLUMNS, cwd="/")
    rows = tool.finish(0, START_S + STOP_S)
    find = Findings()
    for workload in blocked:
        mine = rows_of(rows, workload.tid)
        find.expect(mine and {row["state"] for row in mine} == {workload["state"]}, "%s: %s", workload.name, mine[:1])
        if files:
            got = {(row["syscall"], row["filename"]) for row in mine}
            find.expect(got == {(workload["syscall"], workload.ready.get("file", ""))}, "%s: %s", workload.name, got)
    find.expect(("CAP_SYS_PTRACE" in tool.err) == told, "CAP_SYS_PTRACE: '%s'", tool.err)
    find.close()


@case
def few_capabilities_of_root(ctx):
    """As root with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE alone tsnap lacks only other users' files."""
    sees(ctx, capabilities(BPF, PERFMON, SYS_PTRACE), told=True)


@case
def few_capabilities_of_nobody(ctx):
    """As another user tsnap needs CAP_DAC_READ_SEARCH, too, because /proc hides the files of others from it otherwise."""
    sees(ctx, capabilities(BPF, PERFMON, SYS_PTRACE, DAC_READ_SEARCH, uid=NOBODY))
    sees(ctx, capabilities(BPF, PERFMON, SYS_PTRACE, uid=NOBODY), files=False, told=True)


@case
def admin_capability(ctx):
    """CAP_SYS_ADMIN does instead of CAP_BPF and CAP_PERFMON, as before 5.8."""
    sees(ctx, capabilities(SYS_ADMIN, SYS_PTRACE, DAC_READ_SEARCH, uid=NOBODY))


@case
def without_ptrace(ctx):
    """With CAP_BPF and CAP_PERFMON, but without CAP_SYS_PTRACE, states are right, and tsnap reports what is missing."""
    sees(ctx, capabilities(BPF, PERFMON, uid=NOBODY), files=False, told=True)


@case
def stacks_without_ptrace(ctx):
    """User stacks of others are refused without CAP_SYS_PTRACE, and tsnap reports that."""
    workload, = ctx.workloads([("sleep", {"call": "pipe_read"})])
    few = through(ctx.reachable(), *capabilities(BPF, PERFMON, uid=NOBODY), workload=False)
    tool = few.stream("-a", "-d", 1, "-p", workload["pid"], columns="tid,state,ufunc", cwd="/")
    mine = rows_of(tool.finish(0, START_S + STOP_S), workload.tid)
    check(mine and not any(row["ufunc"] for row in mine), "%s", mine[:1])
    check("user stacks that could not be read (needs CAP_SYS_PTRACE)" in tool.err, "%s", tool.err)
    check("just ending" not in tool.err, "%s", tool.err)


@case
def few_capabilities_inside(ctx):
    """In a pid namespace of its own, with three capabilities, threads of it in D and S are shown with their files."""
    namespace, inner = namespace_of(ctx)
    blocked = inner.workloads([("vfork", {}), ("sleep", {"call": "pipe_read"})])
    few = through(ctx, *namespace.prefix, *capabilities(BPF, PERFMON, SYS_PTRACE), workload=False)
    rows = few.rows("-a", "-p", ",".join(w["pid"] for w in blocked), seconds=1, columns=CALL_COLUMNS)
    for workload in blocked:
        got = {(row["state"], row["syscall"], row["filename"]) for row in rows_of(rows, workload.tid)}
        check(got == {(workload["state"], workload["syscall"], workload.ready.get("file", ""))}, "%s: %s", workload.name, got)


@case
def hidden_processes(ctx):
    """With a /proc that hides others' processes (hidepid) processes that it does not show are not taken for exited."""
    workload = ctx.workload("burst")
    hidden = through(ctx.reachable(), *mounted("mount -t proc -o hidepid=2 proc /proc"),
                     *capabilities(BPF, PERFMON, uid=NOBODY), workload=False)
    tool = hidden.stream("-a", "-F", 5, columns="comm,state")
    tool.wait_scans(2)
    workload.say("go")
    workload.wait_done()
    start = len(tool.scans())
    tool.wait_scans(start + 12)
    scans = scans_of(tool.rows())[start + 1:start + 11]
    check(all(len(rows_of(rows, workload.tid)) == 1 for _, rows in scans), "a thread is lost")


@case
def read_only_files(ctx):
    """Where only /dev/shm can be written to, that is enough; where nothing can be, tsnap's compiler has files in memory that nobody else sees. One
    line says so if it may not mount any."""
    workload = ctx.workload("sleep", call="pipe_read")

    def inside(mounts, *prefix):
        return through(ctx.reachable(), *mounted(" && ".join(mounts)), *prefix, workload=False)

    places = ["mount -t tmpfs -o ro none " + path for path in ("/run", "/tmp", "/dev/shm")]
    for mounts in places[:2], places:
        rows = inside(mounts).rows("-a", "-p", workload["pid"], seconds=1, columns=CALL_COLUMNS)
        check({row["filename"] for row in rows_of(rows, workload.tid)} == {workload["file"]}, "%s: %s", mounts[-1], rows[:1])
    check(" /proc/fs " not in truth.read("/proc/self/mounts"), "the host sees a mount")
    nowhere = inside(places, *capabilities(BPF, PERFMON, SYS_PTRACE))
    expect_error(nowhere.plain("--csv", "-n", "1"), 1, "/run, /tmp or /dev/shm")


def refuse(*numbers):
    """Sets a seccomp(2) filter as container engines have it: the system calls of these numbers fail with EPERM."""
    rule = struct.Struct("HBBI")  # struct sock_filter
    refused = rule.pack(0x06, 0, 0, 0x00050000 | errno.EPERM)  # SECCOMP_RET_ERRNO
    filter_ = b"".join([rule.pack(0x20, 0, 0, 0),  # load the number of the call
                        *(rule.pack(0x15, 0, 1, number) + refused for number in numbers),  # skip the next row if it is another call
                        rule.pack(0x06, 0, 0, 0x7FFF0000)])  # SECCOMP_RET_ALLOW
    code = ctypes.create_string_buffer(filter_)
    program = struct.pack("HxxxxxxP", len(filter_) // rule.size, ctypes.addressof(code))
    if bpf.libc.prctl(22, 2, ctypes.create_string_buffer(program), 0, 0):  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        raise OSError(ctypes.get_errno(), "seccomp")


@case
def deleted_directory(ctx):
    """tsnap runs in a working directory that was deleted."""
    gone = through(ctx, "sh", "-c", "mkdir -p \"$1\" && cd \"$1\" && rmdir \"$1\" && shift && exec \"$@\"", "-",
                   ctx.temporary() + "/gone", workload=False)
    check(gone.rows("-a", "-n", "1"), "no rows")


@case
def filter_of_system_calls(ctx):
    """Where a seccomp filter refuses bpf(2), and --source bpf insists on it, one line says so, with exit code 77; --check says it, too."""
    if bpf.SYS_BPF is None:
        raise Skip("the number of bpf(2) is not known on " + platform.machine())
    refuse_bpf = lambda: refuse(bpf.SYS_BPF)
    expect_error(ctx.plain("--csv", "-n", "1", "--source", "bpf", preexec_fn=refuse_bpf), UNREADY, "seccomp")
    checked = ctx.plain("--check", preexec_fn=refuse_bpf)
    checked.finish_plain(UNREADY)
    check("seccomp" in checked.out.decode(), "%s", checked.out.decode())
