"""Threads that use CPUs: shares of samples against the kernel's own accounts, and wakers."""
import datetime
import gzip
import json
import os
import re
import sys
import time

import truth
from harness import SCANS_MORE, STOP_S, Process, Skip, case, check, number, rows_of, scans_of, wait_until

SECONDS = 3
SHARE_ERROR = 0.2  # of 60 samples: three standard deviations of a fair coin


def share(rows, test):
    check(rows, "no samples of the thread")
    return sum(1 for row in rows if test(row)) / len(rows)


class Watch:
    """Accounts of threads over exactly the time from the first to the last scan that is used."""

    def __init__(self, ctx, tids, pid, columns, *args):
        self.tool = ctx.stream("-a", "-p", pid, *args, columns=columns)
        self.tids = tids
        self.tool.wait_scans(2)
        self.first = self.tool.rows()[-1]["timestamp"]
        before = self.accounts()
        last = self.tool.wait_scans(len(self.tool.scans()) + SECONDS * 20)[-1]["timestamp"]
        after = self.accounts()
        self.rows = [row for row in self.tool.interrupt() if self.first < row["timestamp"] <= last]
        self.ran = {tid: [b - a for a, b in zip(before[tid], after[tid])] for tid in tids}

    def accounts(self):
        found = {tid: truth.schedstat(tid) for tid in self.tids}
        if None in found.values():
            raise Skip("this kernel counts no run queue time (schedstat)")
        return found

    def of(self, tid):
        return rows_of(self.rows, tid)

    def waiting(self, tid):
        """The part of its runnable time that the thread waited for a CPU."""
        ran, waited, _ = self.ran[tid]
        return waited / (ran + waited)


@case
def spin(ctx):
    """A spinner is always ON, or RQ if other threads use its CPU; and in no system call."""
    workload = ctx.workload("spin")
    watch = Watch(ctx, [workload.tid], workload["pid"], "state,syscall,comm")
    rows = watch.of(workload.tid)
    check({row["state"] for row in rows} <= {"ON", "RQ"}, "states %s", {row["state"] for row in rows})
    waiting = share(rows, lambda row: row["state"] == "RQ")
    check(abs(waiting - watch.waiting(workload.tid)) <= SHARE_ERROR, "RQ in %.2f of the samples, %.2f of the time",
          waiting, watch.waiting(workload.tid))
    called = share(rows, lambda row: row["syscall"] != "")
    check(called <= 0.05, "in a system call in %.2f of the samples (%s)", called, {row["syscall"] for row in rows})


@case
def spin_two_on_one_cpu(ctx):
    """Two spinners on one CPU: each waits for it about half of the time."""
    workload = ctx.workload("spin2")
    tids = [workload.tid, workload.number("tid2")]
    watch = Watch(ctx, tids, workload["pid"], "state,cpu")
    for tid in tids:
        rows = watch.of(tid)
        waiting = share(rows, lambda row: row["state"] == "RQ")
        running = share(rows, lambda row: row["state"] == "ON")
        check(abs(waiting - watch.waiting(tid)) <= SHARE_ERROR, "RQ in %.2f of the samples, %.2f of the time", waiting,
              watch.waiting(tid))
        check(waiting + running == 1, "states %s", {row["state"] for row in rows})
        check({row["cpu"] for row in rows} == {workload["cpu"]}, "CPUs %s, not %s", {row["cpu"] for row in rows},
              workload["cpu"])
    for when, rows in scans_of(watch.rows):
        running = [row for row in rows if int(row["tid"]) in tids and row["state"] == "ON"]
        check(len(running) <= 1, "both are ON on one CPU in the scan of %s", when)


@case
def spin_in_kernel(ctx):
    """A thread that runs in the kernel is ON, in read, with its file."""
    workload = ctx.workload("spin_kernel")
    watch = Watch(ctx, [workload.tid], workload["pid"], "state,syscall,filename", "--self")
    rows = watch.of(workload.tid)
    check({row["state"] for row in rows} <= {"ON", "RQ"}, "states %s", {row["state"] for row in rows})
    reading = share(rows, lambda row: row["syscall"] == "read")
    check(reading >= 0.8, "in read in %.2f of the samples; system calls: %s", reading,
          sorted({row["syscall"] for row in rows}))
    names = [row["filename"] for row in rows if row["syscall"] == "read"]
    check({workload["file"]} <= set(names) <= {workload["file"], ""}, "the file is %s", set(names))
    # a thread that was preempted before its file was looked up is shown without the file, and counted
    lacking = names.count("")
    told = int(re.search(r"(\d+) lookups? of files, connections and waits dropped", watch.tool.err + "0 lookups of files, connections and waits dropped").group(1))
    check(lacking <= told, "%d of %d names lack, and %d are told", lacking, len(names), told)


@case
def fsync(ctx):
    """A loop of write and fsync: the share of samples in fsync is its share of the time, the file is right."""
    workload = ctx.workload("fsync", dir=next((d for d in ("/var/tmp", os.getcwd()) if os.access(d, os.W_OK)), "/tmp"))
    tool = ctx.stream("-a", "-p", workload["pid"], columns="state,syscall,fd,filename")
    tool.wait_scans(SECONDS * 20)
    rows = rows_of(tool.interrupt(), workload.tid)
    done = workload.finish()
    expected = int(done["sync_ns"]) / int(done["ns"])
    seen = share(rows, lambda row: row["syscall"] == "fsync")
    check(abs(seen - expected) <= SHARE_ERROR, "fsync in %.2f of the samples, %.2f of the time", seen, expected)
    for row in rows:
        # the name may have been looked up too late: it is then not shown
        if row["syscall"] == "fsync" and row["filename"]:
            check(row["fd"] == workload["fd"] and row["filename"] == workload["file"], "file %s %s, not %s %s", row["fd"],
                  row["filename"], workload["fd"], workload["file"])


def turns(ctx, pause_us, *options, scans=600):
    """Rows of a reader that waits for another file each time, asleep in its read; and what tsnap wrote on standard error."""
    workload = ctx.workload("turns", dir=ctx.temporary(), pause_us=pause_us)
    tool = ctx.stream("-a", "-F", 200, "-p", workload["pid"], *options, columns="state,syscall,fd,arg2,filename,waits_on")
    tool.wait_scans(scans)
    return [row for row in rows_of(tool.interrupt(), workload.tid) if row["state"] == "S" and row["syscall"] == "read"]


@case(thorough=True, long=True)
def file_of_the_same_wait(ctx):
    """A thread that waits for another file each time is never shown with the file of a later wait."""
    for pause_us, least in ((50, 0), (2000, 0.3)):
        rows = turns(ctx, pause_us)
        named = [row for row in rows if row["filename"]]
        check(len(rows) > 20, "%d waits seen", len(rows))
        for row in named:
            check(row["filename"].endswith("/turn.%d" % (int(row["arg2"], 0) - 1)), "not the file of its wait: %s", row)
        check(len(named) >= len(rows) * least, "%d of %d named, at waits of %d us", len(named), len(rows), pause_us)
    filtered = turns(ctx, 2000, "--filter", 'filename~"turn.3$"', scans=60)
    check(filtered and all(row["arg2"] == "0x4" and row["filename"].endswith("/turn.3") for row in filtered), "%s", filtered)


def wakers(ctx, **options):
    workload = ctx.workload("pingpong", **options)
    ping, pong = workload.tid, workload.number("tid2")
    tool = ctx.stream("-a", "-p", workload["pid"], columns="comm,state,waker_tid,waker_comm")
    tool.wait_scans(2 * 20)
    rows = tool.interrupt()
    for tid, other, name in ((ping, pong, "pong"), (pong, ping, "ping")):
        mine = rows_of(rows, tid)[1:]  # the first row may be from before tsnap saw a wake-up
        by_other = share(mine, lambda row: row["waker_tid"] == str(other) and row["waker_comm"] == name)
        check(by_other >= 0.95, "%s is woken by %s in %.2f of the samples: %s", tid, name, by_other,
              sorted({(row["waker_tid"], row["waker_comm"]) for row in mine}))


@case
def wakers_on_one_cpu(ctx):
    """Two threads that wake each other: each one's waker is the other."""
    wakers(ctx)


@case
def wakers_on_two_cpus(ctx):
    """Two threads on two CPUs that wake each other: each one's waker is the other."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Skip("one CPU")
    wakers(ctx, cpu=cpus[0], cpu2=cpus[1])


@case
def rates(ctx):
    """-F: scans come at the requested rate, and their weights are the times between them."""
    workload = ctx.workload("sleep", call="pipe_read")
    for rate in (5, 50):
        rows = rows_of(ctx.rows("-a", "-F", rate, "-p", workload["pid"], columns="state"), workload.tid)
        check(rate * 2 * 0.7 <= len(rows) <= rate * 2 + SCANS_MORE, "%d scans in 2 s at %d Hz", len(rows), rate)
        total = sum(number(row, "weight_us") for row in rows)
        check(abs(total - 2e6) <= 2e5, "the weights of 2 s add up to %d us", total)


@case
def late_workload(ctx):
    """A process that starts and ends while tsnap runs is shown only while it lives."""
    tool = ctx.stream("-a", columns="state,comm")
    tool.wait_scans(2)
    workload = ctx.workload("sleep", call="futex")
    tool.wait_scans(3, lambda row: row["tid"] == workload["tid"])
    workload.process.stdin.close()
    workload.wait(STOP_S)
    gone = len(tool.scans()) + 1
    tool.wait_scans(gone + 5)
    rows = scans_of(tool.interrupt())[gone:]
    check(not any(rows_of(scan, workload.tid) for _, scan in rows), "it is shown after its end")
    wait_until(lambda: not os.path.exists("/proc/%d" % workload.tid), STOP_S, "the workload's end")


FLOOD = """
import socket, sys
to, source = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
to.bind(("127.0.0.1", 0))
source.connect(to.getsockname())
print("ready", flush=True)
while True:
    source.send(bytes(1400))
"""


def taken_of_cpus():
    """{CPU: seconds of (hardirq, softirq, steal)}, of /proc/stat."""
    with open("/proc/stat", encoding="ascii") as file:
        lines = [line.split() for line in file if re.match(r"cpu\d", line)]
    return {int(line[0][3:]): [int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in line[6:9]] for line in lines}


def ticks_counted():
    """True: the kernel counts interrupts by ticks; None: its configuration does not show."""
    for path, read in (("/proc/config.gz", gzip.open), ("/boot/config-" + os.uname().release, open)):
        if os.path.exists(path):
            with read(path, "rb") as file:
                return b"\nCONFIG_IRQ_TIME_ACCOUNTING=y" not in file.read()
    return None


@case
def interrupts_of_cpus(ctx):
    """While datagrams flood the loopback device, hardirq_s, softirq_s and steal_s of each CPU are those of /proc/stat over the same time;
    the head has their sum, and `by tick` where the kernel is configured so."""
    flood = Process([sys.executable, "-c", FLOOD])
    ctx.started.append(flood)
    wait_until(lambda: b"\n" in flood.out, STOP_S, "that datagrams are sent")
    seen, tool = [(time.time(), taken_of_cpus())], ctx.plain("-d", 4, "--report", "--json", "-g", "cpu,interrupts")
    head = ctx.plain("-d", 4, "-g", "cpu")
    while tool.code is None or head.code is None:
        seen.append((time.time(), taken_of_cpus()))
        time.sleep(0.05)
    tool.finish_plain()
    head.finish_plain()
    flood.kill()
    rows = [json.loads(line) for line in tool.out.decode().splitlines()]
    begin, end = (datetime.datetime.fromisoformat(rows[0]["report"][edge].replace("Z", "+00:00")).timestamp() for edge in ("begin", "end"))
    rows = {row["cpu"]: row for row in rows[1:] if row["cpu"] is not None}
    nothing = {"hardirq_s": 0, "softirq_s": 0, "steal_s": 0}  # of a CPU that no sample is of, either, there is no row
    check(not set(rows) - set(seen[0][1]), "CPUs %s, not %s", sorted(rows), sorted(seen[0][1]))

    def between(since, until, cpu, kind):
        first = [taken for when, taken in seen if when <= since] or [seen[0][1]]
        last = [taken for when, taken in seen if when >= until] or [seen[-1][1]]
        return last[0][cpu][kind] - first[-1][cpu][kind]
    for cpu in seen[0][1]:
        row = rows.get(cpu, nothing)
        for kind, name in enumerate(("hardirq_s", "softirq_s", "steal_s")):
            least, most = (between(begin + edge, end - edge, cpu, kind) for edge in (0.3, -0.5))
            check(least - 0.011 <= row[name] <= most + 0.011, "CPU %d: %s is %s, /proc/stat says %.2f to %.2f", cpu, name, row[name], least, most)
    check(sum(row["softirq_s"] for row in rows.values()) > 0.05, "no flood: %s", rows)
    told = re.search(r"Taken from CPUs: .*softirq \d+\.\d+ s \(of CPU \d+ \d+\.\d %(, by tick)?\)", head.out.decode())
    check(told, "the head: %s", head.out.decode()[:900])
    by_tick = ticks_counted()
    check(by_tick is None or by_tick == bool(told.group(1)), "by tick: %s", told.group(0))
