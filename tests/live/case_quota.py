"""CPU quotas of control groups: which threads are throttled, and for how long, as cpu.stat has it; pressure stall information."""
import csv
import io
import os
import re
import subprocess
import time

import truth
from case_scan_time import RT_GROUP, cpu_group, group_made
from harness import START_S, STOP_S, Findings, Skip, case, check, rows_of

QUOTA_US = 20000  # CPU time in each period of 100 ms
LITTLE_US = 2000  # a quota so small that it is used up soon, however busy the host is
SECONDS = 4


def counts(path):
    """(periods, throttled periods, throttled seconds) of a group of cgroup v1 or v2."""
    words = dict(line.split() for line in truth.read(path + "/cpu.stat").splitlines())
    seconds = int(words["throttled_time"]) / 1e9 if "throttled_time" in words else int(words["throttled_usec"]) / 1e6
    return int(words["nr_periods"]), int(words["nr_throttled"]), seconds


def group_path():
    path = RT_GROUP % os.getpid()
    return path if os.path.exists(path) else "/sys/fs/cgroup/" + os.path.basename(path)


def report(ctx, seconds, *arguments):
    tool = ctx.plain("-d", seconds, *arguments)
    tool.finish_plain(0, START_S + seconds + STOP_S)
    return tool.out.decode()


@case(paired=True)
def quota(ctx):
    """For threads that may use a fiftieth of a CPU runq_why says that they are throttled, and by which group, for about all of their
    time in RQ; the footer has the kernel's seconds and periods, of this report alone."""
    enter = cpu_group(ctx, LITTLE_US)
    workloads = ctx.workloads([("spin", {})] * 4, popen={"preexec_fn": enter})
    pids = ",".join(workload["pid"] for workload in workloads)
    name, path = os.path.basename(group_path()), group_path()
    chained = ctx.stream("-d", SECONDS, "-p", pids, columns="state,runq_why,blocker_kind,oncpu_comm,chain")
    before = counts(path)
    text = report(ctx, SECONDS, "-p", pids, "--by", "state,runq_why")
    periods, throttled, seconds = (new - old for new, old in zip(counts(path), before))
    told = re.search(r"Throttled by CPU quotas: /%s\s+([0-9.]+)\s+s\s+on\s+its\s+CPUs,\s+in\s+(\d+)\s+of\s+(\d+)\s+periods" % name,
                     text)
    check(told, "no line of the group in %s", text[-800:])
    findings = Findings()
    # the counts, read before and after the run, have its start and end, too
    findings.expect(0.5 * seconds <= float(told[1]) <= seconds + 0.01, "%s s, the kernel has %.2f", told[1], seconds)
    findings.expect(0.5 * throttled <= int(told[2]) <= throttled, "%s throttled periods, the kernel has %d", told[2], throttled)
    findings.expect(int(told[2]) <= int(told[3]) <= periods, "%s periods, the kernel has %d", told[3], periods)
    rows = re.findall(r"^ *([0-9.]+) .*\bRQ +(throttled by /%s|behind \S+|-)" % name, text, re.M)
    held = sum(float(average) for average, why in rows if why.startswith("throttled"))
    whole = sum(float(average) for average, _ in rows)
    findings.expect(whole > 2, "%.2f threads in RQ of 4 that may use a fiftieth of a CPU", whole)
    rows_of_chains = [row for row in chained.finish(0, START_S + SECONDS + STOP_S) if row["runq_why"].startswith("throttled")]
    wrong = [row for row in rows_of_chains if row["blocker_kind"] != "quota" or row["oncpu_comm"] or not row["chain"].endswith("> /" + name)]
    findings.expect(len(rows_of_chains) >= 20 and not wrong, "%d of %d are told as a neighbour's victims: %s", len(wrong),
                    len(rows_of_chains), wrong[:3])
    findings.expect(held > 0.8 * whole, "%.2f of %.2f threads in RQ are throttled: %s", held, whole, rows)
    findings.close()


@case
def deadline_budget(ctx):
    """A SCHED_DEADLINE thread that has used the time of its period waits for its own budget, not for a thread of a lower class that
    runs meanwhile."""
    spinner, neighbours = ctx.workload("spin"), ctx.workloads([("spin", {})] * (os.cpu_count() or 1))
    made = subprocess.run(["chrt", "-d", "-T", "10000000", "-D", "100000000", "-P", "100000000", "-p", "0", str(spinner.tid)],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, universal_newlines=True)
    if made.returncode:
        raise Skip("no SCHED_DEADLINE: %s" % made.stderr.strip())
    rows = rows_of(ctx.rows("-p", spinner.tgid, "-F", 50, seconds=SECONDS, columns="state,state_us,runq_why,blocker_kind"), spinner.tid)
    held = [row for row in rows if row["state"] == "RQ" and int(row["state_us"]) > 2500]
    told = [row for row in held if (row["runq_why"], row["blocker_kind"]) == ("own deadline budget", "quota")]
    # nothing is said where the thread on the CPU has ended meanwhile
    wrong = [row for row in held if row["runq_why"] not in ("own deadline budget", "") or row["blocker_kind"] not in ("quota", "")]
    check(len(held) > 20 and len(told) > 0.9 * len(held) and not wrong, "%d of %d rows: %s; %d neighbours", len(wrong), len(held), wrong[:2], len(neighbours))


@case
def neighbour_on_the_cpu(ctx):
    """Spinners on one CPU, half of them in a group of their own: the row of a waiting thread has the running one's group, not its own."""
    mounts = [line.split() for line in truth.read("/proc/self/mounts").splitlines()]
    mount = next((words[1] for words in mounts if words[2] == "cgroup2"), None)
    if not mount:
        raise Skip("no cgroup v2")
    name = "tsnap-test-neighbour-%d" % os.getpid()
    enter = group_made(ctx, os.path.join(mount, name))
    spinners = [("spin", {"cpu": min(os.sched_getaffinity(0))})] * 4
    apart = {workload["pid"] for workload in ctx.workloads(spinners, popen={"preexec_fn": enter})}
    here = {workload["pid"] for workload in ctx.workloads(spinners)}
    rows = ctx.rows("-p", ",".join(apart | here), "-F", 50, seconds=SECONDS, columns="state,blocker_pid,oncpu_comm,oncpu_cgroup")
    findings = Findings()
    for waiting in apart, here:
        for running in apart, here:
            told = [row for row in rows if row["pid"] in waiting and row["blocker_pid"] in running]
            right = [row for row in told if row["state"] == "RQ" and row["oncpu_comm"]
                     and (row["oncpu_cgroup"] == "/" + name) == (running is apart)]
            findings.expect(len(right) == len(told) >= 5, "%d of %d: %s", len(right), len(told), told[:3])
    findings.close()


@case(thorough=True)
def slow_waits_of_a_quota(ctx):
    """With --slower, waits for a CPU of throttled threads have the group that throttles them, as scans during the waits found it."""
    enter = cpu_group(ctx, LITTLE_US)
    workloads = ctx.workloads([("spin", {})] * 2, popen={"preexec_fn": enter})
    tool = ctx.plain("--csv", "--slower", 30, "--trace", "runq", "-F", 100, "-d", SECONDS, "-g", "tid,runq_why",
                     "-p", ",".join(workload["pid"] for workload in workloads))
    tool.finish_plain(0, START_S + SECONDS + STOP_S)
    rows = list(csv.DictReader(io.StringIO(tool.out.decode())))
    check(len(rows) > 10, "%d waits of more than 30 ms", len(rows))
    held = [row for row in rows if row["runq_why"] == "throttled by /" + os.path.basename(group_path())]
    check(len(held) > 0.6 * len(rows), "%d of %d: %s", len(held), len(rows), rows[:5])


@case
def waits_of_a_quota(ctx):
    """--trace runq reports which part of the waits was for a quota: for a thread on each CPU as long as the group was throttled by
    cpu.stat, and for a rival on one of these CPUs nothing; the footer of waits has the column."""
    enter = cpu_group(ctx, QUOTA_US)
    cpus = sorted(os.sched_getaffinity(0))
    held = ctx.workloads([("spin", {"cpu": cpu}) for cpu in cpus], popen={"preexec_fn": enter})
    rivals = ctx.workloads([("spin", {"cpu": cpus[0]})] * 2)
    pids = ",".join(workload["pid"] for workload in held + rivals)
    before = counts(group_path())
    started = time.monotonic()
    tool = ctx.plain("--csv", "--trace", "runq", "-d", SECONDS, "-g", "pid", "-p", pids)
    tool.finish_plain(0, START_S + SECONDS + STOP_S)
    around_s, seconds = time.monotonic() - started, counts(group_path())[2] - before[2]
    rows = list(csv.DictReader(io.StringIO(tool.out.decode())))
    if rows and all(not row["throttled_ns"] for row in rows):
        raise Skip("this kernel lets nobody see which groups are held back: no BTF, or no kprobes")

    def total(which, column):
        chosen = {workload["pid"] for workload in which}
        return sum(int(row[column]) for row in rows if row["pid"] in chosen) / 1e9

    told, whole = total(held, "throttled_ns"), total(held, "total_ns")
    findings = Findings()
    expected = seconds * SECONDS / around_s  # cpu.stat was read before the start and after the end
    findings.expect(0.7 * expected <= told <= seconds + 0.2, "%.2f s, the kernel has %.2f s in a time %.2f times as long",
                    told, seconds, around_s / SECONDS)
    findings.expect(told <= whole + 0.001, "%.3f of %.3f s", told, whole)
    findings.expect(total(rivals, "total_ns") > 0.1 and not total(rivals, "throttled_ns"), "rivals: %.3f of %.3f s",
                    total(rivals, "throttled_ns"), total(rivals, "total_ns"))
    text = report(ctx, 2, "--trace", "runq", "-g", "pid", "-p", pids)
    findings.expect(re.search(r"^runq: .*\n(.*\n)*?.*\bTHROTTLED\b", text, re.M), "no THROTTLED in %s", text[-1500:])
    findings.close()


@case
def pressure(ctx):
    """The head has the host's pressure, about what /proc/pressure says in the same time."""
    if not os.path.exists("/proc/pressure/cpu"):
        check("Pressure" not in report(ctx, 1), "pressure without /proc/pressure")
        return

    def total():
        return int(re.search(r"some .*total=(\d+)", truth.read("/proc/pressure/cpu"))[1]) / 1e6

    ctx.workloads([("spin", {})] * (2 * os.cpu_count()))
    before = total()
    text = report(ctx, 3, "-g", "psn")
    found = re.search(r"^Pressure \(PSI\) of the host: CPU some ([0-9.]+) %, memory some [0-9.]+ % full [0-9.]+ %,\s+I/O some [0-9.]+ % "
                      r"full [0-9.]+ %$", text, re.M)
    check(found, "no pressure in %s", text[:600])
    check(60 <= float(found[1]) <= 100, "%s %% of the time threads waited for a CPU, with twice as many as there are", found[1])
    check(float(found[1]) / 100 * 3 <= total() - before + 0.1, "%s %% of 3 s, the kernel has %.2f s", found[1], total() - before)
    # the two readings are further apart than the begin of the first scan's time and the end of the last one's
    for _ in range(3):
        share = float(re.search(r"^Pressure \(PSI\) of the host: CPU some ([0-9.]+) %", report(ctx, 0.1, "-g", "psn"), re.M)[1])
        check(share <= 100, "in a short report %s %% of the time threads waited for a CPU", share)


@case(thorough=True)
def pressure_of_a_group(ctx):
    """With --cgroup the head has the group's own pressure, too, about as its cpu.pressure has it; with a pattern it has none of a group."""
    mounts = [line.split() for line in truth.read("/proc/self/mounts").splitlines()]
    mount = next((words[1] for words in mounts if words[2] == "cgroup2"), None)
    name = "tsnap-test-pressure-%d" % os.getpid()
    if not mount or not os.path.exists("/proc/pressure/cpu"):
        raise Skip("no cgroup v2, or no pressure")
    path = os.path.join(mount, name)
    try:
        os.mkdir(path)
    except OSError as error:
        raise Skip("no group can be made: %s" % error)
    ctx.at_end(lambda: os.rmdir(path))
    if not os.path.exists(path + "/cpu.pressure"):
        raise Skip("groups have no pressure")

    def enter():
        with open(path + "/cgroup.procs", "w", encoding="ascii") as procs:
            procs.write("0")

    def total():
        return int(re.search(r"some .*total=(\d+)", truth.read(path + "/cpu.pressure"))[1]) / 1e6

    ctx.workloads([("spin", {})] * (2 * os.cpu_count()), popen={"preexec_fn": enter})
    before = total()
    text = report(ctx, 3, "-g", "psn", "--cgroup", "/" + name)
    whole = total() - before
    found = re.search(r"^Pressure \(PSI\) of /%s: CPU some ([0-9.]+) %% full [0-9.]+ %%, memory some [0-9.]+ %%\s+full [0-9.]+ %%,"
                      % name, text, re.M)
    check(found, "no pressure of the group in %s", text[:800])
    check(60 <= float(found[1]) <= 101, "%s %% of the time threads waited for a CPU", found[1])
    check(float(found[1]) / 100 * 3 <= whole + 0.1, "%s %% of 3 s, the kernel has %.2f s", found[1], whole)
    check("Pressure (PSI) of /" not in report(ctx, 1, "--cgroup", name[:-1] + "*"), "pressure of a pattern")


@case
def pinned(ctx):
    """Threads that may run on one CPU only are pinned there while another CPU is idle; threads that may run on all are never pinned."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Skip("one CPU")
    bound = ctx.workloads([("spin", {})] * 3, popen={"preexec_fn": lambda: os.sched_setaffinity(0, cpus[:1])})

    def waiting(workloads):
        tids = {str(workload.tid) for workload in workloads}
        rows = ctx.rows("-p", ",".join(str(workload.tgid) for workload in workloads), "-F", 50, seconds=SECONDS, columns="state,runq_why")
        return [row["runq_why"] for row in rows if row["tid"] in tids and row["state"] == "RQ"]
    whys = waiting(bound)
    check(any(why.endswith(", pinned") for why in whys), "bound to CPU %d: %s", cpus[0], sorted(set(whys)))
    free = ctx.workloads([("spin", {})] * 2 * len(cpus))
    whys = waiting(free)
    check(whys and not any("pinned" in why for why in whys), "free to run anywhere: %s", sorted(set(whys)))
