"""Samples of /proc, where no BPF program can be loaded: the same answers as with BPF, as far as /proc has them, and what is missing is said."""
import os
import shutil
import time

import bpf
import case_state
import truth
from case_namespaces import refuse
from case_scan_time import group_made
from case_trouble import as_nobody
from harness import START_S, STOP_S, Findings, Skip, case, check, number, rows_of

SECONDS = 6
ERROR = 0.15  # of 120 samples: three standard deviations of a fair coin
COLUMNS = "comm,state,syscall,filename,waits_on,wchan,why,cgroup,user,cmdline,waker_tid,syscall_us,io_dev,dwait_us,cpu_us,runq_us"
UNKNOWN = ("waker_tid", "syscall_us", "io_dev", "dwait_us")


def slow_writes(ctx):
    """What a process enters a group by that may write 20 times a second to the disk of /var/tmp: its waits are longer than a walk."""
    device = os.stat("/var/tmp").st_dev
    if not os.path.exists("/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device"):
        return None
    return group_made(ctx, "/sys/fs/cgroup/blkio/tsnap-proc-%d" % os.getpid(),
                      blkio__throttle__write_iops_device="%d:%d 20" % (os.major(device), os.minor(device)))


def of_proc(ctx):
    if truth.schedstat(os.getpid()) is None:
        raise Skip("this kernel counts no run queue time (schedstat)")
    return ctx.but(tsnap_args=(ctx.options.tsnap_args + " --source proc").strip())


def told(tool, *words):
    """The line above everything has these words."""
    first = tool.err.splitlines()[:1]
    check(first, "nothing is said")
    for word in words:
        check(word in first[0], "'%s' is not in: %s", word, first[0])


def shares(rows):
    """Part of the time in each state, by the weights of the samples."""
    weights = {}
    for row in rows:
        weights[row["state"]] = weights.get(row["state"], 0) + int(row["weight_us"])
    return {state: weight / sum(weights.values()) for state, weight in weights.items()}


@case(alone=True)
def both_sources(ctx):
    """BPF and /proc, at the same time, show the same states, calls, files and waits of the same threads, and the times that the kernel
    has; what /proc does not know is empty."""
    proc, find = of_proc(ctx), Findings()
    still = ctx.workloads([("vfork", {}), ("stopped", {}), ("sleep", {"call": "pipe_read"}), ("sleep", {"call": "nanosleep"}), ("mutex", {})])
    moving = ctx.workloads([("spin2", {})]) + ctx.workloads([("fsync", {"dir": "/var/tmp"})], popen={"preexec_fn": slow_writes(ctx)})
    tids = [workload.tid for workload in still + moving] + [moving[0].number("tid2")]
    pids = ",".join(workload["pid"] for workload in still + moving)
    tools = [each.stream("-a", "-F", 20, "-p", pids, columns=COLUMNS) for each in (ctx, proc)]
    for tool in tools:
        tool.wait_scans(2)
    before = {tid: truth.schedstat(tid) for tid in tids}
    begun = time.time()
    time.sleep(SECONDS)
    after, lasted = {tid: truth.schedstat(tid) for tid in tids}, time.time() - begun
    mine = [tool.interrupt() for tool in tools]
    told(tools[1], "/proc is sampled (--source proc)", "who woke a thread")
    for tid in tids:
        by_bpf, by_proc = (rows_of(rows, tid)[2:] for rows in mine)
        find.expect(len(by_proc) >= SECONDS * 10, "%d: %d samples of /proc", tid, len(by_proc))
        one, other = shares(by_bpf), shares(by_proc)
        for state in {*one, *other}:
            find.expect(abs(one.get(state, 0) - other.get(state, 0)) <= ERROR, "%d %s: %s of BPF, %s of /proc", tid, state, one, other)
        ran, waited = ((b - a) / lasted / 1e9 for a, b in zip(before[tid][:2], after[tid][:2]))
        find.expect(abs(other.get("RQ", 0) - waited) <= ERROR, "%d: RQ %s of the samples, %.2f of the time", tid, other, waited)
        find.expect(abs(other.get("ON", 0) - ran) <= ERROR, "%d: ON %s of the samples, %.2f of the time", tid, other, ran)
        for column in UNKNOWN:
            find.expect({row[column] for row in by_proc} == {""}, "%d: %s is %s", tid, column, {row[column] for row in by_proc})
    for workload in still:
        seen = [{tuple(row[column] for column in COLUMNS.split(",")[:10]) for row in rows_of(rows, workload.tid)[2:]} for rows in mine]
        find.expect(seen[0] == seen[1] and len(seen[1]) == 1, "%s: BPF %s, /proc %s", workload.name, *seen)
    find.close()


@case
def proc_shows_calls(ctx):
    """Threads that block before and while /proc is sampled have their calls, arguments and files; a later wait never has those of an
    earlier one."""
    case_state.blocked_before(of_proc(ctx))
    case_state.blocked_later(of_proc(ctx))
    case_state.blocked_in_turn(of_proc(ctx))


@case
def proc_shows_fsync(ctx):
    """A loop of write and fsync, at a disk that takes 50 ms, is in D for the time that it has no CPU, in no call but fsync, with the right
    file. One that is looked for too late is not shown."""
    workload = ctx.workloads([("fsync", {"dir": "/var/tmp"})], popen={"preexec_fn": slow_writes(ctx)})[0]
    tool = of_proc(ctx).stream("-a", "-p", workload["pid"], columns="state,syscall,fd,filename")
    before, begun = truth.schedstat(workload.tid), time.time()
    tool.wait_scans(80)
    after, lasted = truth.schedstat(workload.tid), time.time() - begun
    rows = rows_of(tool.interrupt(), workload.tid)
    seen, expected = shares(rows).get("D", 0), 1 - sum(b - a for a, b in zip(before[:2], after[:2])) / lasted / 1e9
    check(abs(seen - expected) <= ERROR, "D in %.2f of the samples, %.2f of the time: %s", seen, expected, shares(rows))
    blocked = [row for row in rows if row["state"] == "D"]
    check({"fsync"} <= {row["syscall"] for row in blocked} <= {"fsync", ""}, "%s", {row["syscall"] for row in blocked})
    # one that gets its CPU while it is read is still in the call that it has slept in
    check({row["syscall"] for row in rows if row["state"] == "ON"} <= {"", "fsync"}, "another call is shown of a thread that runs")
    for row in blocked:
        if row["syscall"] and row["filename"]:
            check(row["fd"] == workload["fd"] and row["filename"] == workload["file"], "file %s %s", row["fd"], row["filename"])


@case
def proc_totals(ctx):
    """cpu_us, runq_us and the switches of all samples are what the kernel counted, also of a thread that began later."""
    proc, find = of_proc(ctx), Findings()
    spin = ctx.workload("spin")
    tool = proc.stream("-a", "-p", spin["pid"], columns="cpu_us,runq_us,vcsw,ivcsw,sleep_us")
    tool.wait_scans(3)
    before = sum(truth.schedstat(spin.tid)[:2])
    from_us = sum(number(row, "cpu_us") + number(row, "runq_us") for row in rows_of(tool.rows(), spin.tid))
    time.sleep(3)
    tool.wait_scans(len(tool.scans()) + 2)
    rows = rows_of(tool.rows(), spin.tid)
    gained = (sum(truth.schedstat(spin.tid)[:2]) - before) / 1000
    reported = sum(number(row, "cpu_us") + number(row, "runq_us") for row in rows) - from_us
    find.expect(abs(reported - gained) < 250000, "%d us are reported, the kernel has %d", reported, gained)
    find.expect({row["sleep_us"] for row in rows} == {""}, "sleep_us is known")
    find.expect(all(number(row, "ivcsw") >= 0 and number(row, "vcsw") >= 0 for row in rows), "no switches")
    tool.interrupt()
    find.close()


@case
def ordinary_user(ctx):
    """An ordinary user sees his own threads whole, and of those of others states, times and names; a line above everything says so."""
    of_proc(ctx)
    nobody = ctx.reachable()
    own = nobody.workloads([("sleep", {"call": "pipe_read"})], popen={"preexec_fn": as_nobody, "cwd": "/"})[0]
    other = ctx.workload("sleep", call="pipe_read")
    tool = nobody.stream("-a", "-d", 1.5, "-p", "%s,%s" % (own["pid"], other["pid"]), columns="state,comm,user,syscall,filename,waits_on",
                         preexec_fn=as_nobody, cwd="/")
    rows = tool.finish(0, START_S + STOP_S)
    told(tool, "this user may not use BPF", "/proc is sampled instead", "of other users' threads")
    mine, others = rows_of(rows, own.tid), rows_of(rows, other.tid)
    check(mine and others, "%d and %d rows", len(mine), len(others))
    for row in mine:
        check((row["state"], row["syscall"], row["filename"]) == ("S", "read", own["file"]), "%s", row)
    for row in others:
        check((row["state"], row["syscall"], row["filename"], row["user"]) == ("S", "", "", "root"), "%s", row)
    report = nobody.plain("-d", 1, preexec_fn=as_nobody, cwd="/")
    report.finish_plain(0)
    check(b"THREADS" in report.out or b"cost" in report.out, "no report: %s", report.out.decode())


@case
def bpf_is_refused(ctx):
    """Where bpf(2) is refused, or capabilities are missing, or the kernel has no way to see switches, /proc is sampled, with exit code 0,
    and one line says why. --source bpf, and what only BPF can do, are refused."""
    of_proc(ctx)
    if bpf.SYS_BPF is None:
        raise Skip("the number of bpf(2) is not known here")
    workload = ctx.workload("vfork")
    ways = [(ctx, [], {"preexec_fn": lambda: refuse(bpf.SYS_BPF)}, "seccomp"),
            (ctx, ["--without", "raw_tracepoint,tracepoint,kprobe"], {}, "probe")]
    if shutil.which("setpriv"):
        ways.append((ctx.but(tsnap=shutil.which("setpriv"), tsnap_args=""),
                     ["--bounding-set=-all", "--inh-caps=-all", ctx.options.tsnap], {}, "BPF does not work here"))
    for way, options, popen, word in ways:
        tool = way.plain(*options, "--csv", "-a", "-g", "tid,state", "-n", 3, "-p", workload["pid"], **popen)
        rows = tool.finish(0, START_S + STOP_S)
        told(tool, "no BPF program can be loaded", word, "/proc is sampled instead")
        check({row["state"] for row in rows_of(rows, workload.tid)} == {"D"}, "%s: %s", word, rows)
        for more in (["--source", "bpf"], ["--trace", "runq"], ["--stacks"]):
            tool = way.plain(*options, "-d", 1, *more, **popen)
            check(tool.wait(START_S + STOP_S) == 77, "%s: exit code %s: %s", more, tool.code, tool.err)
            check(len(tool.err.splitlines()) == 1 and word in tool.err, "%s: %s", more, tool.err)


@case
def proc_outputs(ctx):
    """Reports, findings, pages, JSON, the screen and recordings are made of samples of /proc, too."""
    proc = of_proc(ctx)
    ctx.workload("spin2")
    folder = ctx.temporary()
    for options, word in (([], b"CPU"), (["--findings"], b""), (["-g", "psn", "--raw"], b"RQ"), (["--json", "-n", "2"], b"{"),
                          (["--chains"], b""), (["--top", "--text", "-n", "1"], b"RQ"), (["-G", "times,kfuncs"], b"RQ")):
        tool = proc.plain(*options, *([] if "-n" in options else ["-d", 1.5]))
        tool.finish_plain(0)
        check(word in tool.out, "%s: '%s' is not in: %s", options, word, tool.out.decode())
    for options in (["--html", folder + "/page"], ["-o", folder + "/recording"], ["--metrics", folder + "/metrics"]):
        proc.plain(*options, "-d", 2.5).finish_plain(0)
    check(os.path.getsize(folder + "/page") > 1000, "no page")
    for tool in (proc.plain("--findings", "-d", 1), ctx.plain("--replay", folder + "/recording", "--findings")):
        tool.finish_plain(0)
        said = tool.out.decode()
        check("stands out in what /proc shows to this user" in said, "what /proc does not show is judged: %s", said)
    replayed = ctx.plain("--replay", folder + "/recording", "-g", "comm,state")
    replayed.finish_plain(0)
    check(b"RQ" in replayed.out, "nothing is recorded: %s", replayed.out.decode())


@case(alone=True, thorough=True)
def proc_of_crowd(ctx):
    """With thousands of threads scans become rarer, so that reading /proc takes a tenth of a CPU, and those left out are counted; weights
    are the time between scans."""
    proc = of_proc(ctx)
    crowd = ctx.workload("many", threads=4000)
    tool = proc.stream("-a", "-F", 100, "-t", crowd.tid, "-d", 5, columns="state")
    used = os.times()
    rows = rows_of(tool.finish(0, START_S + 5 + STOP_S), crowd.tid)
    spent = sum(os.times()[2:4]) - sum(used[2:4])
    check(spent < 5 * 0.25, "%.2f s of CPU time", spent)
    check(5 <= len(rows) < 400, "%d scans", len(rows))
    check(tool.missed("late scans") > 50, "scans left out are not counted: %s", tool.err)
    weights = [int(row["weight_us"]) for row in rows]
    check(abs(sum(weights) - 5000000) < 1000000, "weights are %s", weights)
