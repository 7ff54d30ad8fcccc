"""--findings: problems by name, who waits for whom and for how long, of workloads that have one; and of workloads that have none."""
import json
import os
import re
import subprocess
import sys
import time

import truth
from case_memory import BPS, READER, slow_group
from case_quota import LITTLE_US, group_path
from case_scan_time import cpu_group, group_made
from harness import SLOW, START_S, STOP_S, Findings, Skip, case, check

SECONDS = 3
NAPS = 6 if SLOW == 1 else 20  # of a second: all processes have been searched for other ends of connections


def begin(ctx, pids, *arguments, seconds=SECONDS):
    return ctx.plain("--findings", "--json", "-d", seconds, *(("-p", pids) if pids else ()), *arguments)


def end(tool, seconds=SECONDS):
    """The objects of a run, by interval. In each the times close: those of all objects are the whole time."""
    tool.finish_plain(0, START_S + seconds + STOP_S)
    intervals = {}
    for line in tool.out.decode().splitlines():
        told = json.loads(line)
        intervals.setdefault(told["begin"], []).append(told)
    check(intervals, "no findings: %s", tool.err[-500:])
    for objects in intervals.values():
        whole = next(told["all_us"] for told in objects if told["finding"] == "no_problem")
        parts = sum(told["time_us"] for told in objects)
        check(abs(parts - whole) <= 2, "the times of all findings are %d us, not %d", parts, whole)
    return list(intervals.values())


def problems(objects):
    return [told for told in objects if told["finding"] not in ("no_problem", "not_seen", "unseen")]


def average(told, us):
    """Threads at a time."""
    return us / told["elapsed_us"]


def one(objects, name):
    found = [told for told in problems(objects) if told["finding"] == name]
    check(len(found) == 1, "%d findings of %s: %s", len(found), name, [told.get("text", told["finding"]) for told in objects])
    return found[0]


# By kind of chain: the finding, whether it must be certain, threads that wait, and the name of the thread that they wait for, which is
# of the workload's threads; what that one does.
OF_CHAINS = {
    "deadlock": ("deadlock", True, 2, None, None),
    "deadlock_flock": ("deadlock", True, 2, None, None),
    "mutex_nap": ("lock", True, 50, "chain_holder", "S"),
    "flock_stopped": ("stopped", True, 1, "chain_stopped", "T"),
    "proxy_tcp": ("sleeper", False, 2, "chain_server", "S"),
    "outside": ("server", False, 1, None, None),
    "child_disk": ("server", True, 1, "chain_grand", "S"),
}


@case
def findings_of_chains(ctx):
    """Threads that wait for each other, for a lock's holder, for a process that is stopped, naps or does not answer, and for another
    host: each is one finding, with its pid and threads at a time; whoever is called certain is right."""
    faults, names = Findings(), list(OF_CHAINS)
    for at in range(0, len(names), 4):
        workloads = {name: ctx.workload("chain", of=name, dir=ctx.temporary()) for name in names[at:at + 4]}
        seconds = SECONDS + (NAPS if at else 0)  # the other ends of connections are found after a while
        runs = {name: begin(ctx, workload["pids"], seconds=seconds) for name, workload in workloads.items()}
        for name, run in runs.items():
            finding, certain, threads, culprit, doing = OF_CHAINS[name]
            objects = end(run, seconds)[0]
            told = one(objects, finding)
            # while a full host lets a server wait for a CPU, its clients count for that
            queued_us = sum(other["symptom_us"] for other in objects if other["finding"] == "cpus")
            waiting = average(told, told["time_us"] - told["symptom_us"] + queued_us)
            pids = workloads[name]["pids"].split(",")
            faults.expect(0.8 * threads <= waiting <= 1.01 * threads, "%s: %.2f threads wait, not %d: %s", name, waiting, threads, told)
            faults.expect(not certain or told["certainty"] == "certain", "%s: %s", name, told)
            faults.expect(sum(who["threads"] for who in told["waiters"]) == threads, "%s: waiters %s", name, told["waiters"])
            if culprit:
                first = told["culprits"][0]
                # a grandchild is not among the workload's own pids
                faults.expect(first["name"] == culprit and (str(first["pid"]) in pids or name == "child_disk"), "%s: culprit %s, not %s of %s",
                              name, first, culprit, pids)
                faults.expect(told["doing_us"].get(doing, 0) >= 0.5 * sum(told["doing_us"].values()), "%s: it does %s", name, told["doing_us"])
            else:
                faults.expect(name != "outside" or told["things"][0]["name"] == "tcp 127.0.0.2:9", "%s: %s", name, told["things"])
    faults.close()


def links_of(pid):
    return [os.readlink("/proc/%s/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%s/fd" % pid)]


WAITER = """
import fcntl, sys
fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX)
"""


@case
def findings_of_recording(ctx):
    """A default recording has what findings need: when all processes are gone, it tells who held a lock, and what the holder did. It
    also has the scripts that waited. Without these columns --json says which are lacking."""
    directory, script = ctx.temporary(), ctx.temporary() + "/nightly.py"
    with open(script, "w", encoding="ascii") as file:
        file.write(WAITER)
    mutex = ctx.workload("chain", of="mutex_nap")
    files = ctx.workload("chain", of="flock_stopped", dir=ctx.temporary())
    held = next(path for pid in files["pids"].split(",") for path in links_of(pid) if os.path.isfile(path))
    python = subprocess.Popen([sys.executable, script, held])
    recorders = [ctx.plain("-o", directory + "/" + name, "-F", 5, "-d", SECONDS + 3, *args)
                 for name, args in (("whole", ()), ("lacking", ("-g", "timestamp,tid,pid,state,comm,syscall")))]
    for tool in recorders:
        tool.finish_plain(0, START_S + SECONDS + 3 + STOP_S)
    python.kill()
    python.wait()
    pids = [workload["pids"].split(",") for workload in (mutex, files)]
    mutex.end()
    files.end()

    def replayed(name, *args):
        tool = ctx.plain("--replay", directory + "/" + name, "--findings", "--json", *args)
        tool.finish_plain(0, STOP_S)
        return [json.loads(line) for line in tool.out.decode().splitlines()]
    told = one(replayed("whole", "-p", ",".join(pids[0])), "lock")
    check(told["certainty"] == "certain" and told["culprits"][0]["name"] == "chain_holder" and str(told["culprits"][0]["pid"]) in pids[0] and
          told["doing_us"].get("S", 0) >= 0.5 * sum(told["doing_us"].values()) and told["doing_syscall"] == "clock_nanosleep", "%s", told)
    told = one(replayed("whole", "-p", "nightly.py"), "stopped")
    check(told["waiters"][0]["pid"] == python.pid and told["culprits"][0]["name"] == "chain_stopped", "%s", told)
    lacking = one(replayed("lacking"), "not_recorded")
    check({"waits_on", "chain", "root_tid"} <= set(lacking["columns"]), "%s", lacking)


@case
def findings_of_nothing(ctx):
    """Threads that sleep, that run on a CPU, or whose server answers them: nothing stands out. In D for ever: it does."""
    idle, spinner, served, stuck = (ctx.workload(name, **options) for name, options in (
        ("many", {"threads": 20}), ("spin", {}), ("served", {"threads": 2, "period_us": 2000}), ("remote_fault", {})))
    runs = [begin(ctx, workload["pid"]) for workload in (idle, served, stuck)]
    text = ctx.plain("--findings", "-d", SECONDS, "-p", idle["pid"])
    for run in runs[:2]:
        # other loads make them wait for a CPU, and their server, which naps before it answers, be late
        found = [told["text"] for told in problems(end(run)[0]) if told["finding"] not in ("cpus", "kernel", "sleeper")]
        check(not found, "found where there is nothing: %s", found)
    told = one(end(runs[2])[0], "stuck")
    check(told["waiters"][0]["pid"] == stuck.tgid and told["things"][0]["name"] == "page fault (userfaultfd)", "%s", told)
    check(average(told, told["time_us"]) >= 0.8 and told["longest_us"] >= 1e6, "%s", told)
    text.finish_plain(0, START_S + SECONDS + STOP_S)
    check(re.search(r"^Nothing stands out: \d+ CPUs? \d+ % busy, nobody waited", text.out.decode(), re.M), "%s", text.out.decode())
    check(spinner.tid, "a thread runs")


@case
def findings_of_full_cpus(ctx):
    """Three spinners for each CPU: two of three wait for a CPU, and the spinners have them; for intervals (-i), and replayed."""
    cpus = os.cpu_count() or 1
    pids = ",".join(workload["pid"] for workload in ctx.workloads([("spin", {})] * (3 * cpus)))
    recorded = os.path.join(ctx.temporary(), "samples.csv")
    with open(recorded, "wb") as file:
        rows = subprocess.Popen([ctx.options.tsnap, "--csv", "-G", "findings", "-d", str(SECONDS), "-p", pids], stdout=file,
                                stdin=subprocess.DEVNULL)
        intervals = end(begin(ctx, pids, "-i", 1))
        check(rows.wait(START_S + SECONDS + STOP_S) == 0, "the recording failed")
    check(len(intervals) == SECONDS, "%d intervals", len(intervals))
    replayed = ctx.plain("--replay", recorded, "--findings", "--json")
    for objects in intervals + end(replayed):
        told = one(objects, "cpus")
        waiting = average(told, told["time_us"])
        # others' loads take their CPUs
        check(1.6 * cpus <= waiting <= 3 * cpus, "%.2f threads wait for %d CPUs: %s", waiting, cpus, told)
        check(told["certainty"] == "certain" and told["culprits"] and told["waiters"][0]["name"] == "spin", "%s", told)


@case
def findings_of_quota(ctx):
    """Spinners of a group that may use a fiftieth of a CPU wait for its quota."""
    enter = cpu_group(ctx, LITTLE_US)
    workloads = ctx.workloads([("spin", {})] * 4, popen={"preexec_fn": enter})
    objects = end(begin(ctx, ",".join(workload["pid"] for workload in workloads)))[0]
    told = one(objects, "quota")
    check(told["things"][0]["name"] == "/" + os.path.basename(group_path()), "%s", told)
    check(3 <= average(told, told["time_us"]) <= 4.01, "%.2f of 4 threads wait: %s", average(told, told["time_us"]), told)


@case
def findings_of_io_limit(ctx):
    """A reader whose group may read 1 MB/s from the device is held back by that limit."""
    path = os.path.join(ctx.temporary(), "limited")
    with open(path, "wb"):
        pass
    take = slow_group(ctx, path)
    child = subprocess.Popen([sys.executable, "-c", READER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        check(child.stdout.readline() == b"ready\n", "the reader failed")
        take(child.pid)
        child.stdin.write(b"\n")
        child.stdin.flush()
        objects = end(begin(ctx, child.pid))[0]
        print("# io_limit: %s" % [told.get("text") for told in problems(objects)])
        limited = [told for told in objects if told["finding"] == "io_limit"]  # before, and after it comes to the device
        waiting = sum(average(told, told["time_us"]) for told in limited)
        check(0.8 <= waiting <= 1.01 and all(str(BPS) in told["text"] and told["certainty"] == "likely" for told in limited), "%s", limited)
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()


@case(alone=True)
def findings_of_neighbour(ctx):
    """Threads of one control group that wait for CPUs which another group has: the group is named, with its programs."""
    root = next((path for path in ("/sys/fs/cgroup/systemd", "/sys/fs/cgroup") if os.path.exists(path + "/cgroup.procs")), None)
    if not root:
        raise Skip("no control groups here")
    name = "tsnap-neighbour-%d" % os.getpid()
    theirs, own = (group_made(ctx, "%s/%s-%s" % (root, name, which)) for which in ("b", "a"))
    cpus = os.cpu_count() or 1
    ctx.workloads([("spin", {})] * 6 * cpus, popen={"preexec_fn": theirs})  # others have CPUs, too
    waiting = ctx.workloads([("spin", {})] * cpus, popen={"preexec_fn": own})
    objects = end(begin(ctx, ",".join(workload["pid"] for workload in waiting)))[0]
    told = one(objects, "neighbour")
    check(told["things"][0]["name"] == "/%s-b" % name and told["certainty"] == "certain", "%s", told)
    check(0.6 * cpus <= average(told, told["time_us"]) <= cpus and "/%s-b" % name in told["text"], "%s", told)


def disk_counts(device):
    """Reads and writes of a device that have ended, and the seconds that they took, by /proc/diskstats."""
    with open("/proc/diskstats") as stats:
        numbers = next([int(word) for word in line.split()[3:]] for line in stats if line.split()[2] == device)
    return numbers[0] + numbers[4], (numbers[3] + numbers[7]) / 1000


DIRECT = """
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
buffer = mmap.mmap(-1, 1 << 20)
print("ready", flush=True)
while True:
    os.preadv(fd, [buffer], 0)
"""


@case(alone=True)  # beside busy processes the readers wait for a CPU
def findings_of_disk(ctx):
    """Readers that wait for the disk: the finding says what the kernel counts of it, too: requests a second, their mean time; and
    percentiles, between the bounds of those in a queue and of those in the device, by --trace at the same time."""
    where = next((d for d in ("/var/tmp", os.getcwd()) if os.access(d, os.W_OK)), "/tmp")
    path, readers = os.path.join(where, "tsnap-test-direct-%d" % os.getpid()), []
    try:
        with open(path, "wb") as file:
            file.write(b"x" * (1 << 20))
            file.flush()
            os.fsync(file.fileno())
        for _ in range(4):
            readers.append(subprocess.Popen([sys.executable, "-c", DIRECT, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
        if not all(reader.stdout.readline() for reader in readers):
            raise Skip("no direct reads in %s" % where)
        with open("/proc/diskstats") as stats:
            before = {line.split()[2]: disk_counts(line.split()[2]) for line in stats}
        begun = time.monotonic()
        traced = ctx.plain("--json", "--trace", "block,blockq", "-g", "io_dev", "-d", SECONDS)
        objects = end(begin(ctx, ",".join(str(reader.pid) for reader in readers)))[0]
        lasted = time.monotonic() - begun
        told = next((told for told in problems(objects) if told["finding"] in ("disk", "slow_disk") and told["things"]), None)
        check(told, "no finding of a disk: %s", [told.get("text") for told in problems(objects)])
        device = told["things"][0]["name"]
        requests, taken_s = (now - then for now, then in zip(disk_counts(device), before[device]))
        check(requests > 20, "%d requests to %s", requests, device)
        print("# %s; %d requests in %.1f s, %.4f s each" % (told["text"], requests, lasted, taken_s / requests))
        rate = told["requests"] / told["elapsed_us"] * 1e6
        check(told["requests"] <= requests and rate >= 0.5 * requests / lasted, "%s requests of %d in %.1f s", told["requests"], requests, lasted)
        check(0.5 <= told["request_us"] / 1e6 / (taken_s / requests) <= 2, "%d us each, not %.4f s", told["request_us"], taken_s / requests)
        check("%s: %.0f requests a second" % (device, rate) in told["device"], "%s", told["device"])
        check(0 < told["in_flight"] <= len(readers) + 8, "%s in flight", told["in_flight"])
        traced.finish_plain(0, START_S + SECONDS + STOP_S)
        parts = [row for row in map(json.loads, traced.out.splitlines()) if (row.get("io_dev"), row.get("io_op")) == (device, "read")]
        check({row["trace"] for row in parts} >= {"block"}, "%s", parts)
        # a sum of two is longer than each, and in at most 20 % longer than the sum of their P90; a bucket's bounds differ by 2
        for name, above in (("p50", "p90"), ("p99", "p999")):
            ours, least, most = told["request_%s_us" % name], max(row[name + "_ns"] for row in parts) / 1e3, sum(row[above + "_ns"] for row in parts) / 1e3
            check(0.4 * least <= ours <= 2.5 * most, "%s is %d us, not from %.0f to %.0f us", name, ours, least, most)
        check(re.search(r"; P50 [\d.]+ ms, P99 [\d.]+ ms$", told["device"]), "%s", told["device"])
    finally:
        for reader in readers:
            reader.kill()
            reader.wait()
            reader.stdout.close()
        if os.path.exists(path):
            os.unlink(path)


HUNG, HUNG_S = 12, 10
ROW = re.compile(r"^ +([\d.]+) +([\d.]+|-) +([\d.]+|-) +([\d.]+|-) +([\d.]+|-) +([\d.]+ [num]?s|-) +(\S+ (?:\(?\d+\)?)) +(.*)$", re.M)
UNITS_S = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}


def first_screen(ctx, pids, *arguments, seconds=SECONDS):
    """What plain tsnap prints: its lines, and {program: (threads in all, in ON, RQ, D and S, seconds of the longest wait, other words)}."""
    tool = ctx.plain("-d", seconds, "-p", pids, *arguments)
    tool.finish_plain(0, START_S + seconds + STOP_S)
    text, rows = tool.out.decode(), {}
    for *threads, longest, program, words in ROW.findall(text):
        number, _, unit = longest.partition(" ")
        rows[program] = ([0 if word == "-" else float(word) for word in threads], float(number) * UNITS_S[unit] if unit else 0, words)
    return text, rows


@case
def lost_lock(ctx):
    """A thread that waits for a mutex whose holder has ended is a finding; it is no deadlock of threads."""
    lost = ctx.workload("wait", on="mutex_lost")
    told = problems(end(begin(ctx, lost["pid"]))[0])
    check([row["finding"] for row in told] == ["lost_lock"] and "a thread that has ended" in str(told[0]), "%s", told)


@case
def first_screen_of_hung(ctx):
    """Plain tsnap: twelve threads that hang in D are the first finding, and a row with their time so far; busy ones beside them, whose
    time in ON and RQ is as the scheduler counts it, have waited for less; all findings are those of --findings."""
    begun = time.monotonic()
    hung = ctx.workloads([("remote_fault", {})] * HUNG)
    spinners = ctx.workloads([("spin", {})] * 3)
    pids = ",".join(workload["pid"] for workload in hung + spinners)
    whole = begin(ctx, pids)
    # a wait from before tsnap's start counts from there
    before = [truth.schedstat(workload.tid) for workload in spinners]
    text, rows = first_screen(ctx, pids, seconds=HUNG_S + 1)
    after = [truth.schedstat(workload.tid) for workload in spinners]
    faults = Findings()
    names = [told["finding"] for told in problems(end(whole)[0])]
    told = re.findall(r"^\d+\. (.*)", text, re.M)
    faults.expect(told and re.match(r"1[12]\.\d remote_fault \(12\) wait ", told[0]), "the first finding is %s", told)
    faults.expect(abs(len(told) - len(names)) <= 1, "%s are not %s", told, names)  # CPUs are not always full
    threads, longest, words = rows["remote_fault (12)"]
    faults.expect(abs(threads[0] - HUNG) < 0.2 and abs(threads[3] - HUNG) < 0.2 and not any(threads[at] for at in (1, 2, 4)), "hung: %s", threads)
    faults.expect(HUNG_S <= longest <= time.monotonic() - begun + 0.05, "hung for %s s", longest)
    faults.expect(words.split("  ")[0].startswith("page fault"), "they wait for %s", words)
    threads, longest, words = rows["spin (3)"]
    ran, queued = (sum(new[at] - old[at] for new, old in zip(after, before)) for at in (0, 1))
    faults.expect(abs(threads[0] - 3) < 0.15 and abs(threads[1] + threads[2] - threads[0]) < 0.11 and not threads[3] and not threads[4],
                  "busy: %s", threads)
    faults.expect(abs(threads[1] - 3 * ran / (ran + queued)) < 0.3, "ON %s, the scheduler counts %.2f", threads, 3 * ran / (ran + queued))
    faults.expect(longest < HUNG_S / 2, "busy threads have waited for %s s", longest)
    faults.expect(re.match(r"a CPU +user code ", words), "busy: %s", words)
    faults.expect(re.search(r"^tsnap used [\d.]+ % of a CPU\. (No remarks\.|1 remark: -v\.|\d+ remarks: -v\.)$", text, re.M), "%s", text[-300:])
    faults.close()


@case
def first_screen_of_idle(ctx):
    """Where next to nothing is done, plain tsnap says so in a line without shares; -i prints a screen for each interval."""
    pairs = ctx.workload("many", threads=2, pairs=1, period_us=20000)
    text, _ = first_screen(ctx, pairs["pid"], "-i", 1)
    said = re.findall(r"^Nothing stands out: \d+ CPUs? \d+ % busy, nobody waited(?: longer than (?:\d+ (?:ms|s)|[\d.]+ s|under 1 ms))?\.$", text, re.M)
    heads = re.findall(r"^\S+, Linux .*, \d\d:\d\d:\d\d\.\d{3} to \d\d:\d\d:\d\d\.\d{3} \S+: CPUs? \d+ % busy, load [\d.]+, memory \d+ % used; ", text, re.M)
    # CPUs are busy for all threads, whichever are selected
    ctx.workload("spin")
    few, _ = first_screen(ctx, pairs["pid"], "--filter", "state=D", seconds=2)
    busy = int(re.search(r": CPUs? (\d+) % busy", few)[1])
    check(busy >= 80 / os.cpu_count(), "CPUs %d %% busy beside a spinner", busy)
    # on a full host, they do, or a second has no sample of them
    check(len(heads) >= SECONDS - 1 and (said or "wait for a CPU" in text or "No samples:" in text), "%s", text)
