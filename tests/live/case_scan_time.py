"""Scan times have nothing to do with what threads do: sampled time is the exact time on a full host, too."""
import csv
import io
import os
import re
import resource
import shutil
import statistics
import time

import scan_time
import truth
from case_trace import Stolen
from harness import SLOW, START_S, Findings, Skip, case, check, number, through, wait_until
from parts import Postgres

SECONDS, SHORT_S, RHYTHM_S = 30, 16, 12
RATE = 20 if SLOW == 1 else 5
ALLOWED, ERRORS = 0.05 if SLOW == 1 else 0.25, 3  # allowed deviation: a share of the exact time, plus a number of standard errors
# An emulated CPU takes milliseconds for a scan and a tenth of one for a switch: threads must stay in a state for longer than that there.
LONGER = {} if SLOW == 1 else {"burst_us": 6000, "nap_us": 4000}
BUSY_ALLOWED = 0.02  # allowed deviation: a share of the time that /proc/stat counts in ticks
COPY_US = 50  # from the scan time until a record is copied, on a full host
LEAST_S = 2  # a state with less exact time is not compared
LATE_MOST = 0.2  # a larger share of late scans means that others have the machine
LEAN = "on a busy host samples may lean towards threads that sleep"
OVER = "scans that took more than 1 ms, and ended at normal priority"
RT_GROUP = "/sys/fs/cgroup/cpu/tsnap-test-%d"


def group_made(ctx, group, **values):
    """Makes a control group with these values in its files; returns a function by which a process enters it, or puts another one there."""
    try:
        os.mkdir(group)
        ctx.at_end(lambda: os.rmdir(group))
        for name, value in values.items():
            with open("%s/%s" % (group, name.replace("__", ".")), "w", encoding="ascii") as file:
                file.write(value)
    except OSError as error:
        raise Skip("no such control group can be made: %s" % error)

    def enter(pid="0"):
        with open(group + "/cgroup.procs", "w", encoding="ascii") as file:
            file.write(pid)
    return enter


def cpu_group(ctx, quota_us=None, real_us=10000):
    """Makes a control group that may use CPUs for quota_us in each 100 ms, and at real-time priority for real_us in each second; returns
    what group_made() does."""
    group = RT_GROUP % os.getpid()
    if os.path.isdir(os.path.dirname(group)):
        quota = {"cpu__cfs_quota_us": str(quota_us)} if quota_us else {}
        real = os.path.exists(os.path.dirname(group) + "/cpu.rt_runtime_us")
        return group_made(ctx, group, **quota, **{"cpu__rt_runtime_us": str(real_us)} if real else {})
    if "cpu" not in (truth.read("/sys/fs/cgroup/cgroup.subtree_control") or "").split():
        raise Skip("no control groups with cpu.max here")
    return group_made(ctx, "/sys/fs/cgroup/" + os.path.basename(group), **{"cpu__max": "%d 100000" % quota_us} if quota_us else {})


def late_scans(text):
    return sum(int(number) for number in re.findall(r"(\d+) late scans?", text))


def real_clock():
    if SLOW > 1:
        raise Skip("where CPUs are emulated a scan takes longer than what it looks at")


def sync_us(directory):
    """The time that an fdatasync of a written block takes in a directory."""
    took = []
    with open(directory + "/sync", "wb", buffering=0) as file:
        for _ in range(200):
            os.pwrite(file.fileno(), bytes(8192), 0)
            begin = time.monotonic()
            os.fdatasync(file.fileno())
            took.append(1e6 * (time.monotonic() - begin))
    return statistics.median(took)


def expect_shares(found, tool, seconds, findings, more=0):
    """Sampled time is the exact time, for each kind of thread and state."""
    late = late_scans(tool.err)
    if late > LATE_MOST * seconds * RATE:
        raise Skip("tsnap had no CPU for %d of %d scans: the machine is others'" % (late, seconds * RATE))
    for (kind, state), share in found.items():
        if share.exact > LEAST_S:
            findings.expect(abs(share.ratio - 1) <= ALLOWED + more + ERRORS * share.error, "%s: %.2f ± %.2f of %.1f s in %s", kind,
                            share.ratio, share.error, share.exact, state)


def hold(ctx, kinds, seconds=SECONDS, more=0, **popen):
    findings, stolen = Findings(), Stolen()
    found = scan_time.measure(ctx, kinds, seconds, rate=RATE, **popen)
    # while a hypervisor has the CPU, interrupts that end a wait come late, and so do scans, in any order
    expect_shares(*found, seconds, findings, more + stolen.share())
    findings.close()


@case(alone=True)
def scan_time_on_full_host(ctx):
    """Busy threads of four kinds, more than CPUs: sampled over exact time of each kind and state is 1."""
    hold(ctx, scan_time.kinds_of(ctx.workload("mixed", **LONGER)))


@case
def scan_time_of_a_rhythm(ctx):
    """Sampled over exact time is 1 for threads that work in every period of the scans, each at another time of it: none is seen at work too
    often, or never."""
    workload = ctx.workload("rhythm", period_us=1000000 // RATE, work_us=200000 // RATE)
    hold(ctx, {name: [int(tid)] for name, tid in workload.ready.items() if name.startswith("rhythm")}, RHYTHM_S)


@case(alone=True, thorough=True)
def scan_time_of_postgres(ctx):
    """Sampled over exact time is 1 for PostgreSQL's backends and their clients: commits that wait for fdatasync, more connections than
    CPUs. Where switches do not keep the state of the scan time, a record is copied some time after it: a thread that has gone to sleep
    again by then is shown as it is later, which matters where a commit takes no longer."""
    real_clock()
    server = Postgres(ctx)
    more = COPY_US / sync_us(server.directory) if truth.release() < (5, 5) else 0
    server.fill(ctx)
    game = server.pgbench(ctx, "-n", "-N", "-c", 8, "-j", 2, "-T", 600)
    wait_until(lambda: len(server.clients()) == 8, START_S, "eight connections")
    kinds = {"backend": sorted(server.clients()), "client": [int(tid) for tid in truth.read_dir("/proc/%d/task" % game.pid)]}
    hold(ctx, kinds, more=more)


@case
def scan_time_in_locked_memory(ctx):
    """Pages that tsnap has touched stay in memory, so that no scan waits for a page; where the limit on locked memory can't be raised, -v
    says so."""
    tool = ctx.stream("-a", "-v")
    tool.wait_scans(2)
    sizes = [dict(re.findall(r"^(\w+): +(\d+) kB$", truth.read("/proc/%d/smaps_rollup" % pid) or "", re.M))
             for pid in {pid for pid, _ in policies(tool)}]
    check(sum(int(size.get("Locked", 0)) > 0.5 * int(size["Pss"]) for size in sizes) == 1,
          "one process, whose maps in the kernel are there anyway, has its memory locked: %s", sizes)
    tool.interrupt()
    check("memory: locked\n" in tool.err, "-v: %s", tool.err[-600:])
    if not shutil.which("setpriv") or truth.release() < (5, 11):
        raise Skip("setpriv is not installed, or maps count as locked memory here")
    bare = through(ctx, "setpriv", "--bounding-set=-ipc_lock,-sys_resource", workload=False)
    other = bare.plain("-a", "-v", "-d", "0.2", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 16, 1 << 16)))
    other.finish_plain()
    check("memory: not locked (ulimit -l is too small)" in other.err, "-v: %s", other.err[-600:])


@case(alone=True, thorough=True)
def scan_time_beside_spinners(ctx):
    """Scans come in time while 15 busy processes run on each CPU, in one control group, so that each thread's share is the same. A capture
    that another machine's work makes longer than a millisecond may make a few late."""
    real_clock()
    enter = cpu_group(ctx, real_us=400000)
    spinners = [ctx.workload("spin") for _ in range(15 * os.cpu_count())]
    for spinner in spinners:
        enter(spinner["pid"])
    # -p of one process: to show all takes more CPU time than tsnap's share, and the queue of scans would be full
    tool = ctx.stream("-p", spinners[0]["pid"], "-F", RATE, "-d", SHORT_S, preexec_fn=enter)
    tool.finish(limit_s=START_S + SHORT_S)
    late = late_scans(tool.err)
    check(late <= 0.05 * SHORT_S * RATE, "%d of %d scans are late: %s", late, SHORT_S * RATE, tool.err[-300:])


@case(thorough=True)
def scan_time_of_niced(ctx):
    """Sampled over exact time is 1 for a tsnap that gets the least CPU time (nice 15), too."""
    real_clock()
    hold(through(ctx, "nice", "-n", "15", workload=False),
         scan_time.kinds_of(ctx.workload("mixed")), SHORT_S)


@case(thorough=True)
def scan_time_in_group_with_quota(ctx):
    """Sampled over exact time is 1 for a tsnap in a control group that may use a fifth of a CPU (cpu.max), too."""
    real_clock()
    hold(ctx, scan_time.kinds_of(ctx.workload("mixed")), SHORT_S, preexec_fn=cpu_group(ctx, 20000))


@case(thorough=True)
def scan_time_of_two(ctx):
    """Two tsnaps at once, one with the least CPU time (nice 15), the other in a group with cpu.max where that exists, both have true
    samples."""
    real_clock()
    workload, findings, how = ctx.workload("mixed"), Findings(), {}
    try:
        how["preexec_fn"] = cpu_group(ctx, 20000)
    except Skip as skip:
        print("# neither has a quota: %s" % skip)
    niced = through(ctx, "nice", "-n", "15", workload=False)
    other = niced.stream("-a", "-p", workload["pid"], "-F", RATE, columns=scan_time.COLUMNS)
    other.wait_scans(2)
    kinds = scan_time.kinds_of(workload)
    expect_shares(*scan_time.measure(ctx, kinds, SHORT_S, rate=RATE, **how), SHORT_S, findings)
    expect_shares(scan_time.shares(other.interrupt(), kinds), other, SHORT_S, findings)
    findings.close()


@case(thorough=True)
def scan_time_of_a_report(ctx):
    """A report's seconds are those that the scheduler counts for each kind of thread in ON and RQ, all of a thread's states together are
    its time, and all of ON is the busy time of /proc/stat; also where samples lean, as without real-time priority."""
    real_clock()
    workload = ctx.workload("mixed")
    kinds, findings, stolen = scan_time.kinds_of(workload), Findings(), Stolen()
    report = scan_time.Report(ctx, kinds, SHORT_S, "--no-realtime")
    share = stolen.share()  # schedstat leaves stolen time out, and kinds of threads need not lose equal parts of it
    for kind, tids in kinds.items():
        told = {state: report.rates.get((workload["pid"], kind, state), 0) for state in scan_time.EXACT}
        for i, state in enumerate(("ON", "RQ")):
            account = report.accounts[kind][i]
            findings.expect(abs(told[state] - account) <= (ALLOWED + 2 * share) * account + 0.02, "%s in %s: %.2f threads, %.2f by schedstat", kind,
                            state, told[state], account)
        findings.expect(abs(sum(told.values()) - len(tids)) <= 0.02 * len(tids), "%s: %d threads are %s", kind, len(tids), told)
    findings.expect(abs(report.told_cpus - report.busy_cpus) <= BUSY_ALLOWED * report.busy_cpus, "%.3f CPUs told, %.3f busy: %s",
                    report.told_cpus, report.busy_cpus, report.text[-500:])
    findings.close()


def expect_lean(ctx, why, **popen):
    """Report, rows and --check of this tsnap say that samples may lean, and why."""
    report, rows, trial = [ctx.plain(*form, **popen) for form in (("-a", "-d", "0.2"), ("--csv", "-a", "-n", "2"), ("--check",))]
    report.finish_plain()
    rows.finish_plain()
    trial.wait(START_S)
    for what, text in (("the report", report.out.decode()), ("rows", rows.err), ("--check", trial.out.decode())):
        lines = [line for line in text.split("\n") if LEAN in line]
        check(len(lines) == 1 and why in lines[0], "%s: no line with '%s' and '%s': %s", what, LEAN, why, lines or text[-400:])


@case
def scan_time_without_privilege(ctx):
    """Without CAP_SYS_NICE and RLIMIT_RTPRIO tsnap still samples, and says that samples may lean."""
    if not shutil.which("setpriv"):
        raise Skip("setpriv is not installed")
    bare = through(ctx, "setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice", workload=False)
    expect_lean(bare, "CAP_SYS_NICE", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0)))


@case(paired=True)
def scan_time_in_group_without_realtime(ctx):
    """In a control group without real-time run time, as a container's may be, tsnap samples, and says that samples may lean."""
    if not os.path.exists(os.path.dirname(RT_GROUP) + "/cpu.rt_runtime_us"):
        raise Skip("no control groups with a real-time run time here (version 1, CONFIG_RT_GROUP_SCHED)")
    expect_lean(ctx, "cpu.rt_runtime_us", preexec_fn=group_made(ctx, RT_GROUP % os.getpid()))


@case
def scan_time_not_wanted(ctx):
    """With --no-realtime the scanning thread keeps its policy, and a report says what that means."""
    tool = ctx.plain("-a", "-d", "2", "--no-realtime")
    deadline = time.monotonic() + START_S
    while tool.code is None and time.monotonic() < deadline:
        check(not any(policy & os.SCHED_FIFO for policy in policies(tool).values()), "real-time priority: %s", policies(tool))
        time.sleep(0.01)
    tool.finish_plain()
    check(LEAN + " (--no-realtime)" in tool.out.decode(), "the report does not tell: %s", tool.out.decode()[-400:])


def policies(tool):
    """{(process, thread): scheduling policy with its flags} of all threads of the tool and of the processes that it has started."""
    found, processes = {}, [tool.pid]
    while processes:
        pid = processes.pop()
        try:
            for tid in map(int, os.listdir("/proc/%d/task" % pid)):
                found[pid, tid] = os.sched_getscheduler(tid)
                with open("/proc/%d/task/%d/children" % (pid, tid), encoding="ascii") as file:
                    processes += map(int, file.read().split())
        except OSError:
            pass  # the thread has ended
    return found


@case
def scan_time_not_inherited(ctx):
    """While tsnap samples, the threads that capture scans and that take the copies have the lowest real-time priority now and then, and no
    other thread has; processes that they start would never inherit it."""
    tool = ctx.stream("-a", columns="state,ufunc")
    tool.wait_scans(3)  # the start is at such a priority, too: case_start.py
    seen = {}

    def look():
        for thread, policy in policies(tool).items():
            seen.setdefault(thread, set()).add(policy)
        check(tool.code is None, "tsnap ended: %s", tool.err)
        return len(raised()) >= 2

    def raised():
        return [thread for thread, kinds in seen.items() if os.SCHED_FIFO | os.SCHED_RESET_ON_FORK in kinds]
    wait_until(look, START_S, "two threads under SCHED_FIFO")
    for _ in range(300):
        look()
        time.sleep(0.003)
    check(len(raised()) == 2 and (tool.pid, tool.pid) in raised(), "under SCHED_FIFO: %s of process %d", raised(), tool.pid)
    for _, tid in raised():
        check(os.sched_getparam(tid).sched_priority <= 1, "priority %d", os.sched_getparam(tid).sched_priority)
    check(not any(os.SCHED_FIFO in kinds for kinds in seen.values()), "SCHED_FIFO without reset-on-fork: policies %s", seen)
    others = {thread: kinds for thread, kinds in seen.items() if thread not in raised()}
    check(others, "no other thread: nothing to look at")
    check({policy & ~os.SCHED_RESET_ON_FORK for kinds in others.values() for policy in kinds} == {os.SCHED_OTHER},
          "policies of other threads: %s", others)


@case(thorough=True)
def scan_time_has_a_budget(ctx):
    """A scan that copies so many records, one system call each, that it takes more than a millisecond goes on at normal priority."""
    ctx.workload("many", threads=2000, pairs=300, period_us=1000)
    tool = ctx.plain("-a", "-d", "2", *ctx.without("thread_slots,map_batch"))
    tool.finish_plain(limit_s=START_S * 2)
    match = re.search(r"(\d+) " + OVER, tool.out.decode())
    check(match and int(match.group(1)) >= 2, "no scan gave its priority up: %s", tool.out.decode()[-600:])


def read_slowly(fd, silent_s, tid):
    """The text that comes out of a pipe which is not read for silent_s after the first rows, and the thread's CPU time from these on."""
    raw = os.read(fd, 1 << 16)
    before = truth.schedstat(tid)[0]
    time.sleep(silent_s)  # the subject of the test: a reader that does not read
    while True:
        part = os.read(fd, 1 << 16)
        if not part:
            return raw.decode(), (truth.schedstat(tid)[0] - before) / 1e9
        raw += part


def slow_reader(ctx, columns):
    """The rows of a spinning thread, for three seconds in which they are not read and for some more."""
    seconds, silent_s = 6, 3
    workload = ctx.workload("spin")
    ours, theirs = os.pipe()
    # so many columns that a pipe is full at once
    tool = ctx.stream("-a", "-F", RATE, "-d", seconds, columns="state,cpu_us,cmdline,exe,cgroup,user,comm,filename" + columns, stdout=theirs)
    os.close(theirs)
    text, used_s = read_slowly(ours, silent_s, workload.tid)
    os.close(ours)
    tool.finish_plain(0)
    check(len(text) > 4 << 16, "%d bytes of rows don't fill a pipe for long", len(text))
    rows = [row for row in csv.DictReader(io.StringIO(text)) if int(row["tid"]) == workload.tid][1:]
    longest_s = max(int(row["weight_us"]) / 1e6 for row in rows)
    check(longest_s < silent_s / 3, "no scan for %.2f s; %s", longest_s, tool.err)
    check(late_scans(tool.err) < LATE_MOST * seconds * RATE, "late scans: %s", tool.err)
    told_s = sum(number(row, "cpu_us") or 0 for row in rows) / 1e6  # cpu_us is absent where a switch was hidden: a later row has it
    check(abs(told_s - used_s) < 0.2 * SLOW, "%.2f s of CPU time told, %.2f s used", told_s, used_s)
    return rows


@case(alone=True)
def scan_time_of_slow_reader(ctx):
    """While the rows are not read for three seconds scans go on; each scan is there afterwards, and exact times are whole."""
    slow_reader(ctx, "")


@case(alone=True, thorough=True)
def scan_time_of_slow_reader_of_stacks(ctx):
    """While rows with stacks are not read scans go on, too: the stacks of a thread on a CPU are of the scan time, however late they are
    walked."""
    rows = slow_reader(ctx, ",ustack")
    lacking = sum(not row["ustack"] for row in rows if row["state"] == "ON")
    check(lacking <= 0.05 * len(rows), "%d of %d samples have no stack", lacking, len(rows))
