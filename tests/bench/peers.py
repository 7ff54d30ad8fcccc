"""Cost of tsnap next to tools that Debian ships, and next to empty BPF programs."""
import collections
import fcntl
import glob
import os
import pty
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

import peer_types
from sampler import HOST_CANNOT, OPERATIONS, Crowd, Interleaved, NotHere, Program, Sampler, quartiles, say
from table import Row

# tool: its name in the table; package: Debian's, or "" for our own; argv; job: what it finds out; wants: what it needs beyond BPF:
# "tracefs", "types" and "kprobe", or "". A tool is up when something is attached and nothing more follows.
Peer = collections.namedtuple("Peer", "tool package argv job wants")

RUN_QUEUE = ("tracepoint:sched:sched_wakeup, tracepoint:sched:sched_wakeup_new { @since[args->pid] = nsecs; } "
             "tracepoint:sched:sched_switch { if (args->prev_state == 0) { @since[args->prev_pid] = nsecs; } "
             "if (@since[args->next_pid]) { @us = hist((nsecs - @since[args->next_pid]) / 1000); } "
             "delete(@since[args->next_pid]); }")
OFF_CPU = ("tracepoint:sched:sched_switch { @since[args->prev_pid] = nsecs; if (@since[args->next_pid]) "
           "{ @us[args->next_comm] = sum((nsecs - @since[args->next_pid]) / 1000); } delete(@since[args->next_pid]); }")
SYSCALLS = "tracepoint:raw_syscalls:sys_enter { @[comm] = count(); }"

# Tools that are measured by the operations: the ratio to no tool.
TRACERS = (
    Peer("floor: sched_switch", "", ["floor", "sched_switch"], "an empty program", ""),
    Peer("floor: sched_switch, sched_waking", "", ["floor", "sched_switch", "sched_waking"], "empty programs", ""),
    Peer("floor: sys_enter, sys_exit", "", ["floor", "sys_enter", "sys_exit"], "empty programs", ""),
    Peer("runqlat, libbpf", "libbpf-tools", ["runqlat"], "run queue latency, one histogram", ""),
    Peer("offcputime, libbpf", "libbpf-tools", ["offcputime"], "time off CPU by stack", ""),
    Peer("syscount, libbpf", "libbpf-tools", ["syscount"], "counts system calls", "tracefs"),
    Peer("runqlat, bcc", "bpfcc-tools", ["runqlat-bpfcc"], "run queue latency, one histogram", "types"),
    Peer("offcputime, bcc", "bpfcc-tools", ["offcputime-bpfcc"], "time off CPU by stack", "kprobe"),
    Peer("profile, bcc", "bpfcc-tools", ["profile-bpfcc"], "stacks on CPU, 49 Hz", "types"),
    Peer("bpftrace: run queue", "bpftrace", ["bpftrace", "-e", RUN_QUEUE], "run queue latency, one histogram", "tracefs"),
    Peer("bpftrace: off CPU", "bpftrace", ["bpftrace", "-e", OFF_CPU], "time off CPU by name", "tracefs"),
    Peer("bpftrace: system calls", "bpftrace", ["bpftrace", "-e", SYSCALLS], "counts system calls by name", "tracefs"),
    # not rawtracepoint:, which 0.17 knows, but crashes on
    Peer("bpftrace: nothing", "bpftrace", ["bpftrace", "-e", "tracepoint:sched:sched_switch { }"], "an empty program", "tracefs"),
)
# Tools that are measured while they read /proc every second, for all threads of a crowd.
READERS = (
    Peer("top -H", "procps", ["top", "-b", "-H", "-d", "1"], "state and CPU of all threads", ""),
    Peer("htop", "htop", ["htop", "-d", "10"], "a screen of threads", ""),
    Peer("pidstat -t", "sysstat", ["pidstat", "-t", "1"], "CPU of active threads", ""),
)
ALL_OF_IT = "state, system call, waker, exact times of "
UP_LIMIT_S = 30
SETTLED_S = 0.5
ATTACHED = ("bpf-link", "bpf_link", "bpf-raw-tracepoint", "[perf_event]")


def argv_in_tracefs(argv):
    """Words that run argv with tracefs mounted for that process alone, under the same pid; the machine's mounts stay as they are."""
    here = os.path.dirname(os.path.abspath(__file__))
    return ["unshare", "--mount", os.path.join(here, "..", "live", "with-tracefs")] + argv


def environment(peer, options):
    """Environment of a tool, with a home of its own, so that it neither reads nor leaves files in the user's."""
    env = dict(os.environ, HOME=options.scratch, XDG_CONFIG_HOME=options.scratch, TERM="xterm", S_COLORS="never")
    if not set(peer.wants.split()) & {"types", "kprobe"} or os.path.exists("/lib/modules/%s/build" % os.uname().release):
        return env
    env["BCC_KERNEL_SOURCE"] = tree = os.path.join(options.scratch, "types")
    os.makedirs(tree, exist_ok=True)
    try:
        peer_types.tree_write(tree, options.tsnap)
    except (subprocess.CalledProcessError, KeyError):
        raise NotHere("no kernel headers, and tsnap finds no layout to make some of")
    return env


def command(peer, options):
    search = os.environ["PATH"] + ":/usr/sbin:/sbin"
    program = options.floor if peer.argv[0] == "floor" else shutil.which(peer.argv[0], path=search)
    if not program:
        raise NotHere("not installed (Debian: %s)" % peer.package)
    if "kprobe" in peer.wants.split():
        with open("/proc/kallsyms") as symbols:
            if not any(line.split()[2] == "register_kprobe" for line in symbols):
                raise NotHere("this kernel has no kprobes")
    argv = [program] + peer.argv[1:]
    return argv_in_tracefs(argv) if "tracefs" in peer.wants.split() else argv


class Tracer(Program):
    def __init__(self, peer, options):
        self.ours = not peer.package
        super().__init__(command(peer, options), stdin=subprocess.PIPE, env=environment(peer, options))

    def attached(self):
        """Number of file descriptors that keep a BPF program attached."""
        count = 0
        for path in [path for pid in self.pids() for path in glob.glob("/proc/%s/fd/*" % pid)]:
            try:
                count += os.readlink(path).rpartition("anon_inode:")[2] in ATTACHED
            except OSError:
                pass  # the descriptor was closed after it was listed
        return count

    def await_up(self):
        count, since = 0, self.started
        while not count or time.monotonic() - since < SETTLED_S:
            if self.process.poll() is not None:
                if self.ours and self.process.returncode != HOST_CANNOT:
                    sys.exit(self.last_words())
                raise NotHere(self.last_words())
            if time.monotonic() - self.started > UP_LIMIT_S:
                raise NotHere("nothing is attached after %d s" % UP_LIMIT_S)
            try:
                now = self.attached()
            except OSError:
                continue  # it has ended, as the next poll() shows
            if now != count:
                count, since = now, time.monotonic()
            time.sleep(0.02)
        self.up_s = since - self.started

    def stop(self):
        self.process.stdin.close()
        super().stop()


class Reader(Program):
    """A tool on a terminal. Each of its samples is one burst of output, with a pause before the next."""
    PAUSE_S = 0.4

    def __init__(self, peer, options):
        argv, env = command(peer, options), environment(peer, options)
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        self.bursts, self.last = 0, 0
        super().__init__(argv, stdin=self.slave, stdout=os.fdopen(os.dup(self.slave), "wb"), env=env)
        self.drain = threading.Thread(target=self.read_all, daemon=True)
        self.drain.start()

    def read_all(self):
        while True:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                break  # EIO: no process has the other side open any more
            if not data:
                break
            now = time.monotonic()
            self.bursts += now - self.last > self.PAUSE_S
            self.last = now

    def await_burst(self):
        """Returns in the pause after one more burst, while the tool sleeps."""
        before, deadline = self.bursts, time.monotonic() + UP_LIMIT_S
        while self.bursts == before or time.monotonic() - self.last < self.PAUSE_S:
            if self.process.poll() is not None:
                raise NotHere("it ended, exit status %d" % self.process.returncode)
            if time.monotonic() > deadline:
                raise NotHere("no sample in %d s" % UP_LIMIT_S)
            time.sleep(0.02)

    def await_up(self):
        self.await_burst()
        self.up_s = time.monotonic() - self.started
        self.await_burst()  # the first sample may read more than the others

    def scan_cost(self, scans):
        """(CPU seconds per sample, samples a second)"""
        before, cpu, start = self.bursts, self.cpu_s(), time.monotonic()
        while self.bursts < before + scans:
            self.await_burst()
        scans = self.bursts - before
        return (self.cpu_s() - cpu) / scans, scans / (time.monotonic() - start)

    def stop(self):
        super().stop()
        os.close(self.slave)
        self.drain.join(UP_LIMIT_S)
        os.close(self.master)


def job_words(peer):
    """The tool's job, with the package's version where dpkg knows it."""
    if not peer.package or not shutil.which("dpkg-query"):
        return peer.job
    version = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", peer.package], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL).stdout.decode()
    return "; ".join(filter(None, (peer.job, version and "%s %s" % (peer.package, version))))


def row_of(what, tool, unit, values, remark):
    low, middle, high = quartiles(values)
    return Row(what, tool, middle, unit, low, high, None, remark)


def tracer_rows(options):
    jobs = {"tsnap": ALL_OF_IT + "every thread, 20 Hz", "tsnap before 5.5": "the same without typed tracepoints"}
    starters = {"tsnap": lambda: Sampler(options, "-d", 100000),
                "tsnap before 5.5": lambda: Sampler(options, "-d", 100000, "--without", "typed_tracepoint")}
    for peer in TRACERS:
        jobs[peer.tool] = job_words(peer)
        starters[peer.tool] = lambda peer=peer: Tracer(peer, options)
    found = Interleaved(options, starters, options.peer_ms)
    rows = []
    for tool, job in jobs.items():
        if tool in found.gone:
            rows.append(Row("", tool, None, "", remark="not here: " + found.gone[tool]))
            continue
        for name, words in OPERATIONS.items():
            if found.ratios[tool][name]:
                rows.append(row_of(words, tool, "ratio", found.ratios[tool][name], job))
        rows.append(row_of("up after", tool, "s", found.up_s[tool], job))
        rows.append(row_of("resident", tool, "MB", [size / 1e6 for size in found.memory[tool]], job))
    return rows


def reader_rows(options):
    what = "CPU per sample, %d threads, 1 Hz" % options.crowd
    rows = []
    with Crowd(options, options.crowd):
        for words, tool, args in (("active threads", "tsnap", []), ("all threads", "tsnap -a", ["-a"])):
            say("readers: " + tool)
            with Sampler(options, "-d", 100000, "-F", 1, *args) as sampler:
                cost, _ = sampler.scan_cost(options.scan_s, 1, bool(args))
                rows.append(Row(what, tool, 1000 * cost, "ms", remark=ALL_OF_IT + words))
                rows.append(Row("resident", tool, sampler.memory()[0] / 1e6, "MB"))
        for peer in READERS:
            say("readers: " + peer.tool)
            try:
                with Reader(peer, options) as reader:
                    cost, rate = reader.scan_cost(max(1, options.scan_s // 3))
                    rows.append(Row(what, peer.tool, 1000 * cost, "ms",
                                    remark="%s; %.2f samples a second" % (job_words(peer), rate)))
                    rows.append(Row("resident", peer.tool, reader.memory()[0] / 1e6, "MB"))
            except NotHere as why:
                rows.append(Row("", peer.tool, None, "", remark="not here: %s" % why))
    return rows


def with_scratch(rows):
    """A part of the bench whose tools have a folder to write to."""
    def part(options):
        with tempfile.TemporaryDirectory(prefix="tsnap-bench-") as options.scratch:
            return rows(options)
    return part
