"""The critical path of a process, exactly: every switch and wake-up of all CPUs, as the kernel's own tracer (ftrace) writes them.

A thread's time is followed as Perfetto's stdlib does: while the thread sleeps, the time is that of the thread which woke it, in the same
stretch of time; if the waker slept, too, it is that of the waker's waker, and so on; an interrupt ends the chain. tsnap differs in two
cases, and so does this module: a packet to a process of this host, which is delivered in a deferred interrupt (softirq) of the thread that
sends it, counts as sent by that thread; and a thread that tsnap itself displaces stays in the state that it had before."""
import bisect
import glob
import os
import re

from harness import Skip, check

TRACING = "/sys/kernel/tracing"
BUFFER_KB = 65536  # size of each CPU's buffer
DEPTH_MAX = 32
ON_ITS_WAY_NS = 50000  # a wake-up at most so long before the switch out came while the thread was on its way to sleep

LINE = re.compile(r"\s*.*-(\d+)\s+\[(\d+)\]\s+(\S+)\s+(\d+)\.(\d{6}): (sched_switch|sched_waking): (.*)")
SWITCH = re.compile(r"prev_comm=(.*) prev_pid=(\d+) prev_prio=\d+ prev_state=(\S+) ==> next_comm=(.*) next_pid=(\d+) next_prio")
WAKING = re.compile(r"comm=.* pid=(\d+) prio=")


class Trace:
    """All switches and wake-ups from begin() to end(), in the order of time, by a tracer instance of its own."""

    def __init__(self, name):
        self.place, self.events = "%s/instances/%s" % (TRACING, name), []
        try:
            os.mkdir(self.place)
        except OSError as error:
            raise Skip("no tracer: %s (tests/live/with-tracefs)" % error)
        self._write("trace_clock", "mono")
        self._write("buffer_size_kb", BUFFER_KB)

    def _write(self, file, value):
        with open(os.path.join(self.place, file), "w", encoding="ascii") as to:
            to.write(str(value))

    def begin(self):
        for event in ("sched_switch", "sched_waking"):
            self._write("events/sched/%s/enable" % event, 1)

    def end(self):
        self._write("tracing_on", 0)
        for stats in glob.glob(self.place + "/per_cpu/cpu*/stats"):
            with open(stats, encoding="ascii") as file:
                check(re.search(r"^overrun: 0$", file.read(), re.M), "the trace is longer than its buffer")
        with open(os.path.join(self.place, "trace"), encoding="utf-8", errors="replace") as file:
            for line in file:
                self._line(line)
        self.close()

    def close(self):
        if os.path.isdir(self.place):
            self._write("events/enable", 0)
            os.rmdir(self.place)

    def _line(self, line):
        match = LINE.match(line)
        if not match:
            return
        current, cpu, flags, seconds, part, kind, rest = match.groups()
        now_ns = int(seconds) * 10**9 + int(part) * 1000
        if kind == "sched_switch":
            name, leaves, state, next_name, arrives = SWITCH.match(rest).groups()
            self.events.append((now_ns, "switch", cpu, int(leaves), state[0], int(arrives), name, next_name))
        else:  # the third flag is h or H in a hard interrupt, s in a deferred one (softirq)
            self.events.append((now_ns, "waking", cpu, int(WAKING.match(rest).group(1)), int(current), flags[2]))


class Stretch:
    """A time in which a thread did one thing: CPU, run queue, or S or D until waker woke it (None: an interrupt)."""

    def __init__(self, begin_ns, kind):
        self.begin_ns, self.end_ns, self.kind, self.waker, self.ended = begin_ns, None, kind, None, False


class Threads:
    """The stretches of each thread, made from a trace. peers: names of threads that only wait for each other's packets."""

    def __init__(self, events, peers=()):
        self.names, self.stretches, self.begins, self.woken_ns, self.switched_ns, self.peers = {}, {}, {}, {}, {}, peers
        for event in events:
            if event[1] == "switch":
                self._switch(*event[:1] + event[2:])
            else:
                self._waking(*event[:1] + event[2:])

    def _next(self, tid, now_ns, kind):
        stretches = self.stretches.setdefault(tid, [])
        if stretches:
            stretches[-1].end_ns = now_ns
        stretches.append(Stretch(now_ns, kind))
        self.begins.setdefault(tid, []).append(now_ns)

    def _last(self, tid):
        stretches = self.stretches.get(tid)
        return stretches[-1] if stretches else None

    def _is_on(self, tid, cpu):
        """Adds a hidden switch to the thread. On this project's kind of machine switches from idle are hidden, on one CPU or both: the
        thread came when the CPU had no other thread any more."""
        last = self._last(tid)
        if last and last.kind == "run queue":
            self._next(tid, max(last.begin_ns, self.switched_ns.get(cpu, 0)), "CPU")

    def _switch(self, now_ns, cpu, leaves, state, arrives, name, next_name):
        self._is_on(leaves, cpu)
        self.switched_ns[cpu] = now_ns
        self.names[leaves], self.names[arrives] = name, next_name
        on_its_way = self.woken_ns.get(leaves, 0) > now_ns - ON_ITS_WAY_NS
        awake = "CPU" if next_name == "tsnap" else "run queue"
        self._next(leaves, now_ns, awake if state == "R" or on_its_way else "D" if state == "D" else "S")
        self._next(arrives, now_ns, "CPU")

    def _waking(self, now_ns, cpu, tid, waker, flag):
        self._is_on(waker, cpu)
        last = self._last(tid)
        sent = flag == "s" and {self.names.get(tid), self.names.get(waker)} <= set(self.peers)
        interrupt = flag != "." and not sent
        if last and last.kind in "SD":
            last.waker, last.ended = None if interrupt or not waker else waker, True
            self._next(tid, now_ns, "run queue")
        elif last and last.kind == "CPU":
            self.woken_ns[tid] = now_ns

    def path(self, tid, begin_ns, end_ns, shares, depth=0):
        """Adds the thread's time, followed through wakers, to shares: {(kind, name of the thread): ns}."""
        stretches = self.stretches.get(tid, [])
        first = bisect.bisect_right(self.begins.get(tid, []), begin_ns) - 1
        for at in range(max(first, 0), len(stretches)):
            stretch = stretches[at]
            if stretch.begin_ns >= end_ns:
                break
            begin, end = max(begin_ns, stretch.begin_ns), min(end_ns, stretch.end_ns or end_ns)
            if begin >= end:
                continue
            if stretch.kind in "SD" and stretch.waker and depth < DEPTH_MAX:
                self.path(stretch.waker, begin, end, shares, depth + 1)
                continue
            kind = stretch.kind
            if kind in "SD":
                kind = {"S": "interrupt", "D": "disk"}[kind] if stretch.ended else "not ended"
            key = (kind, self.names.get(tid))
            shares[key] = shares.get(key, 0) + end - begin


def threads_of(pid):
    return [int(os.path.basename(path)) for path in glob.glob("/proc/%d/task/*" % pid)]
