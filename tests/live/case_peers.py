"""The same load seen by tsnap and by a tool of libbpf-tools or bcc at once. Where the two differ, and why, is in tests/README.md."""
import collections
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import scan_time
import truth
from case_block import Device, Worker, unseen_of, used_again
from case_block import begin as begin_block
from case_trace import SWITCH_ERROR_NS, Traced, begin, schedstat, stolen_ns
from harness import SLOW, START_S, STOP_S, Findings, Process, Skip, case, check, wait_until

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
import peer_types  # noqa: E402, of the folder above

SHARE_S, PROFILE_HZ = 12, 197
SHARE_ALLOWED = 0.1  # the tools' times begin and end at other points


class Peer(Process):
    """A tool that has begun to measure, and does until it is interrupted."""

    def __init__(self, ctx, name, *args, **popen):
        path = shutil.which(name, path="/usr/sbin:" + os.environ["PATH"])
        if not path or not shutil.which("stdbuf"):
            raise Skip("%s is not installed (Debian: libbpf-tools, bpfcc-tools)" % name)
        super().__init__(["stdbuf", "-oL", path, *(str(arg) for arg in args)], **popen)
        ctx.started.append(self)
        wait_until(lambda: self.measures() or self.code is not None, START_S, name)
        if self.code is not None:
            raise Skip("%s does not run here: %s" % (name, (self.err.splitlines() or ["exit code %d" % self.code])[-1]))

    def measures(self):
        return b"Tracing" in self.out

    def finish(self):
        self.signal(signal.SIGINT)
        self.wait(STOP_S)
        return self.out.decode()


class Offcputime(Peer):
    """bcc's offcputime. It prints nothing when it begins to measure, but by then it has opened the events of all its programs."""

    def measures(self):
        return any("link_type" in (truth.read("/proc/%d/fdinfo/%s" % (self.pid, fd)) or "")
                   for fd in truth.read_dir("/proc/%d/fdinfo" % self.pid))

    @staticmethod
    def seconds_of(tid, text):
        return sum(int(us) for us in re.findall(r"\(%d\)\n\s+(\d+)$" % tid, text, re.M)) / 1e6


def types_environment(ctx):
    """Where the kernel's headers are missing, bcc's tools are given the few types that they name."""
    env = dict(os.environ, PYTHONUNBUFFERED="1")
    if not os.path.exists("/lib/modules/%s/build" % os.uname().release):
        env["BCC_KERNEL_SOURCE"] = ctx.temporary()
        try:
            peer_types.tree_write(env["BCC_KERNEL_SOURCE"], ctx.options.tsnap)
        except (subprocess.CalledProcessError, KeyError) as error:
            raise Skip("no kernel headers, and tsnap finds no layout to make some of: %s" % error)
    return env


def perf_events_of(pid):
    descriptors = "/proc/%d/fd/" % pid
    return sum("perf_event" in truth.link(descriptors + fd) for fd in truth.read_dir(descriptors))


class Profile(Peer):
    """bcc's profile: samples of perf's CPU clock."""

    def __init__(self, ctx, *args):
        super().__init__(ctx, "profile-bpfcc", *args, env=types_environment(ctx))

    def measures(self):
        return perf_events_of(self.pid) >= os.cpu_count()


class Prober(Peer):
    """bcc's argdist, funccount and trace, at a function or at the two places of a USDT probe."""

    def __init__(self, ctx, name, *args, places=1):
        self.places = places
        super().__init__(ctx, name + "-bpfcc", *args, env=types_environment(ctx))

    def measures(self):
        # trace opens its ring of each CPU, too, but after its probe; argdist prints the first second, funccount a line
        return self.out and perf_events_of(self.pid) >= self.places

    def values(self):
        """{value: count} of argdist's last second, which has all before it (-c)."""
        last = self.out.decode().split("\n[")[-1]
        return {int(value): int(count) for count, value in re.findall(r"^\s+(\d+)\s+\w+ = (-?\d+)$", last, re.M)}


def logarithmic(text):
    """{lower bound: count} of a histogram as bcc prints it."""
    pairs = re.findall(r"^\s*(\d+) -> \d+\s*: (\d+)", text, re.M)
    return {int(low): int(count) for low, count in pairs if int(count)}


def expect_alike(ours, theirs, strays):
    """Two histograms are alike within a bucket: theirs begin at 2^n us, ours at 1.024 times that, and each tool's programs take part of
    what the other one measures. strays: how many values may be in one of the two alone."""
    def longer(buckets, least):
        return sum(n for low, n in buckets.items() if low >= least)
    for shift in range(1, 30):
        count = longer(ours, 1024 << shift)
        check(longer(theirs, 2 << shift) - strays <= count <= longer(theirs, 1 << shift - 1) + strays,
              "from %d us on %d: %s, the other tool %s", 1 << shift, count, ours, theirs)


@case(thorough=True)
def peers_block(ctx):
    """Requests to a block device are as many as biolatency counts, in the same buckets."""
    with Device() as device:
        worker = Worker(ctx, device)
        peer = Peer(ctx, "biolatency", "-d", device.name)
        tool = begin_block(ctx, worker, "-g", "comm", "-p", worker.pid)
        worker.do("read 1000 4096")
        worker.do("write 500 65536")
        theirs = logarithmic(peer.finish())
        used_again(device)
        rows = [row for row in tool.interrupt() if row["trace"] == "block" and row["io_dev"] == device.name]
        ours, unseen = Traced(rows), unseen_of(tool, 1500)
        check(1500 - unseen <= ours.count <= 1500, "%d requests, %d unseen", ours.count, unseen)
        # other programs may read the device, too; requests that tsnap could not see biolatency could not see, either
        check(1500 - unseen <= sum(theirs.values()) <= 1510, "biolatency has %d, %d unseen", sum(theirs.values()), unseen)
        expect_alike(ours.buckets, theirs, 30 + unseen)


@case(thorough=True)
def peers_off_cpu(ctx):
    """Time off the CPU is offcputime's, which goes on until the thread runs again, so it is that of offcpu and runq together. Or it is
    as much as the kernel counts: offcputime lacks the first wait, and waits that end at a switch that no BPF program saw."""
    workload = ctx.workload("burst")
    tids = [workload.tid, workload.number("tid2")]
    peer = Offcputime(ctx, "offcputime", "-p", workload.tgid)
    tool = begin(ctx, "-g", "tid")
    stolen, before = stolen_ns(), [schedstat(tid) for tid in tids]
    workload.say("go")
    done = workload.wait_done()
    after = [schedstat(tid) for tid in tids]
    rows, text, stolen = tool.interrupt(), peer.finish(), stolen_ns() - stolen
    for tid, asleep_ns, b, a in zip(tids, (int(done["sleep_ns"]) + int(done["disk_ns"]), 0), before, after):
        theirs_ns = 1e9 * Offcputime.seconds_of(tid, text)
        sleeps, waits = Traced(rows, trace="offcpu", tid=tid), Traced(rows, trace="runq", tid=tid)
        check(theirs_ns > 0.2e9, "%d: offcputime has %d ns: %s", tid, theirs_ns, text[-500:])
        ours_ns = sleeps.total_ns + waits.total_ns
        allowed = 0.03 * theirs_ns + waits.count * SWITCH_ERROR_NS + 3e6 * SLOW + stolen
        counted_ns = asleep_ns + a[1] - b[1]
        check(theirs_ns - allowed <= ours_ns <= max(theirs_ns, counted_ns) + allowed,
              "%d: %d ns asleep and %d in the run queue, offcputime has %d, workload and kernel %d", tid, sleeps.total_ns,
              waits.total_ns, theirs_ns, counted_ns)


@case(thorough=True)
def peers_on_full_host(ctx):
    """With busy threads of four kinds, more than CPUs, a report has for each kind the share of the CPUs that profile's samples have and the
    time off them that offcputime sums up; all kinds together are the CPUs' busy time by /proc/stat."""
    if SLOW > 1:
        raise Skip("where CPUs are emulated the tools' programs take more time than the load")
    workload = ctx.workload("mixed")
    kinds, findings = scan_time.kinds_of(workload), Findings()
    peers = {}

    def begin_peers():
        peers["profile"] = Profile(ctx, "-f", "-p", workload["pid"], "-F", PROFILE_HZ)
        peers["off"], peers["begin_s"] = Offcputime(ctx, "offcputime", "-p", workload["pid"]), time.monotonic()
    report = scan_time.Report(ctx, kinds, SHARE_S, between=begin_peers)
    text, seconds, folded = peers["off"].finish(), time.monotonic() - peers["begin_s"], peers["profile"].finish()
    samples = {kind: sum(int(count) for count in re.findall(r"^%s(?:;.*)? (\d+)$" % kind, folded, re.M)) for kind in kinds}
    on = {kind: report.rates.get((workload["pid"], kind, "ON"), 0) for kind in kinds}
    for kind, tids in kinds.items():
        share, theirs = on[kind] / sum(on.values()), samples[kind] / sum(samples.values())
        error = math.sqrt(theirs * (1 - theirs) / sum(samples.values()))
        findings.expect(abs(share - theirs) <= SHARE_ALLOWED * theirs + 3 * error, "%s: %.3f of all ON, profile has %.3f ± %.3f", kind, share,
                        theirs, error)
        away, told = len(tids) - on[kind], sum(Offcputime.seconds_of(tid, text) for tid in tids) / seconds
        findings.expect(abs(away - told) <= SHARE_ALLOWED * len(tids), "%s: %.2f of %d off the CPUs, offcputime has %.2f", kind, away,
                        len(tids), told)
    findings.expect(abs(report.told_cpus - report.busy_cpus) <= 0.02 * report.busy_cpus, "%.3f CPUs told, %.3f busy", report.told_cpus,
                    report.busy_cpus)
    findings.close()


@case(thorough=True)
def peers_calls(ctx):
    """System calls by name are as many as syscount counts. It counts returns, tsnap only returns whose entry it saw: calls in which threads
    waited when both began are counted by syscount alone."""
    workload = ctx.workload("burst", naps=300, waits=100)
    peer = Peer(ctx, "syscount", "-p", workload.tgid, "-T", 400)
    tool = ctx.plain("--csv", "--trace", "syscalls", "-i", 1, "-g", "pid", "-p", workload.tgid)
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    workload.say("go")
    workload.wait_done()
    ours = {}
    for row in tool.interrupt():
        ours[row["syscall"]] = ours.get(row["syscall"], 0) + int(row["count"])
    theirs = {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", peer.finish(), re.M)}
    check(ours.get("clock_nanosleep") == 301 and ours.get("futex") == 100, "%s", ours)
    for name in set(ours) | set(theirs):
        more = theirs.get(name, 0) - ours.get(name, 0)
        # when both begin three threads wait in such a call, for a line, a byte and a byte
        check(0 <= more <= (3 if name in ("poll", "ppoll", "read") else 0), "%s: %d, syscount has %d", name, ours.get(name, 0),
              theirs.get(name, 0))


@case(thorough=True)
def peers_probes(ctx):
    """--probe has the same calls, arguments and events as funccount, argdist and trace of bcc, of functions and of USDT probes, of the same
    calls one after the other: bcc 0.26 passes an offset of a semaphore that it never set, and the kernel wants the same one of all."""
    calls = 200
    workload = ctx.workload("probed", calls=calls, nap_ms=2)
    path, of = os.readlink("/proc/%d/exe" % workload.tgid), ("-p", workload.tgid)
    function, turns = path + ":probed_nap", iter(range(1, 9))

    def go():
        workload.say("go")
        workload.wait_done(next(turns))

    def counted(*args, places=1):
        peer = Prober(ctx, "argdist", *of, "-i", 1, "-c", "-C", *args, places=places)
        go()
        wait_until(lambda: sum(peer.values().values()) == calls, 10 * SLOW, "%d calls of argdist" % calls)
        peer.finish()
        return peer.values()
    sizes = counted("p:%s(u64 a, u64 b, u64 c):u64:c" % function)
    steps = counted("u:%s:step():s32:arg1" % path, places=2)
    count = Prober(ctx, "funccount", *of, function)
    go()
    count = int(re.search(r"^probed_nap +(\d+)$", count.finish(), re.M).group(1))
    large = Prober(ctx, "trace", *of, "p:%s(u64 a, u64 b, u64 c) (c > 255) \"%%llu\", c" % function)
    go()
    told = re.findall(r"^\d+ +(\d+) +\S+ +probed_nap +(\d+) *$", large.finish(), re.M)
    tool = ctx.plain("--csv", "-i", 1, "-g", "pid", *of, "--probe-budget", 99, "--probe", "calls = p:%s()" % function,
                     "--probe", "sizes = p:%s(arg3:hex)" % function, "--probe", "steps = u:%s:step(arg1:hex)" % path)
    events = ctx.plain("--csv", "--events", "-g", "tid", *of, "--probe-budget", 99, "--probe", "large = p:%s(arg3:bytes) if arg3 > 255" % function)
    for each in (tool, events):
        wait_until(lambda each=each: each.out or each.code is not None, START_S, "the header line")
    go()
    ours = {}
    for row in tool.interrupt():
        value = int(row["value"] or "0", 16)
        value -= (value >> 63) << 64
        ours.setdefault(row["trace"], collections.Counter())[value] += int(row["count"])
    check(ours["calls"] == {0: count} and count == calls, "%s, funccount %d", ours["calls"], count)
    check(ours["sizes"] == sizes, "%s, argdist %s", ours["sizes"], sizes)
    check(ours["steps"] == steps, "%s, argdist %s", ours["steps"], steps)
    seen = [(row["tid"], row["value"]) for row in events.interrupt()]
    check(told == seen and len(seen) == calls / 5, "%s, trace %s", seen, told)


class Bpftrace(Peer):
    """A program of bpftrace's at so many places."""

    def __init__(self, ctx, program, places):
        self.places = places
        super().__init__(ctx, "bpftrace", "-e", program)

    def measures(self):
        return b"Attaching" in self.out and perf_events_of(self.pid) >= self.places

    def numbers(self, name):
        """{key: count} of a map of integers; of one without a key its value, as that of None."""
        found = re.findall(r"^@%s(?:\[(-?\d+)\])?: (\d+)$" % name, self.out.decode(), re.M)
        return {int(key) if key else None: int(value) for key, value in found}


@case(thorough=True)
def peers_probes_bpftrace(ctx):
    """--probe and bpftrace count the same calls and arguments, of a function and of a USDT probe, in one run."""
    calls = 200
    workload = ctx.workload("probed", calls=calls, nap_ms=2)
    path = os.readlink("/proc/%d/exe" % workload.tgid)
    peer = Bpftrace(ctx, "uprobe:%s:probed_nap /pid == %d/ { @calls = count(); @sizes[arg2] = count(); } "
                    "uprobe:%s:probed_name /pid == %d/ { @names = count(); }" % (path, workload.tgid, path, workload.tgid), 2)
    tool = ctx.plain("--csv", "-i", 1, "-g", "pid", "-p", workload.tgid, "--probe-budget", 99, "--probe", "calls = p:%s:probed_nap()" % path,
                     "--probe", "sizes = p:%s:probed_nap(arg3:hex)" % path, "--probe", "names = p:%s:probed_name()" % path)
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    workload.say("go")
    workload.wait_done()
    ours, rows = {}, tool.interrupt()
    peer.finish()
    for row in rows:
        counts = ours.setdefault(row["trace"], collections.Counter())
        counts[int(row["value"], 16) if row["value"] else None] += int(row["count"])
    check(ours["calls"] == peer.numbers("calls") == {None: calls}, "%s, bpftrace %s", ours["calls"], peer.numbers("calls"))
    check(ours["names"] == peer.numbers("names"), "%s, bpftrace %s", ours["names"], peer.numbers("names"))
    check(ours["sizes"] == peer.numbers("sizes") and sum(ours["sizes"].values()) == calls, "%s, bpftrace %s", ours["sizes"], peer.numbers("sizes"))
