"""Very many threads, which also change their names: tsnap's scans stay on time, and other threads have their rows."""
import re
import time

import truth
from case_hostile import HZ, MORE_BYTES, expect_beside, memory_bytes
from harness import SLOW, START_S, STOP_S, Findings, Skip, case, check

OTHERS = ("--filter", "comm=nap || comm=chains_gcc")  # the only threads shown: a million rows a second would be the test's own load
PAGE_S = 5
SCAN_S = 0.8 / HZ  # CPU time: a scan that fits into a period is late only if other threads have the CPUs
LEAST_STACKS = 0.6  # for a thread that naps for 5 ms: a sleeper's stack is read after very many others', when some naps are over


def most_bytes(tool):
    """The most memory that a tool has until it ends."""
    most = 0
    while tool.code is None:
        most = max(most, memory_bytes(tool))
        time.sleep(0.05)
    return most


class Crowd:
    """A report of all threads by process: tsnap's CPU time and memory, the number of its scans and of late ones, and the average number
    of spinning threads."""

    def __init__(self, ctx, spin):
        tool = ctx.plain("-a", "-F", HZ, "-i", PAGE_S, "-n", 2, "-g", "pid")
        self.bytes = most_bytes(tool)
        tool.finish_plain(0, START_S + STOP_S)
        # the second interval: scans of the first one come late, as the start takes a second or two among so many threads
        self.text = tool.out.decode(errors="replace").rpartition("tsnap on ")[2]
        self.scans, seconds = self.found(r"^(\d+) scans in ([\d.]+) s")
        self.due = seconds * HZ
        self.late = sum(map(int, re.findall(r"(\d+) late scans? \(", self.text)))
        self.cpu_s = self.found(r"^tsnap itself: ([\d.]+) ms of CPU time")[0] / 1000 / self.scans
        self.spinning, = self.found(r"^ *([\d.]+) .* %d$" % spin.tgid)

    def found(self, pattern):
        found = re.search(pattern, self.text, re.M)
        check(found, "no '%s': %s", pattern, self.text[:2000])
        return [float(word) for word in found.groups()]

    def __str__(self):
        return "%d scans of %d, %d told as late, each of %.1f ms of CPU time, %.1f MB, %.3f threads of the one that spins" % (
            self.scans, self.due, self.late, 1000 * self.cpu_s, self.bytes / 1e6, self.spinning)


def expect_crowd(ctx, threads, attack):
    """Other threads' rows, and a report of all threads, are right and in time among the threads that attack() starts."""
    if int(truth.read("/proc/sys/kernel/pid_max")) < threads + 2000:
        raise Skip("there are too few numbers for %d threads" % threads)
    find, spin = Findings(), ctx.workload("spin")
    alone = Crowd(ctx, spin)
    expect_beside(ctx, attack, *OTHERS, least=LEAST_STACKS, scan_s=SCAN_S * SLOW)
    among = Crowd(ctx, spin)
    print("# a report alone: %s\n# among them: %s\n# %s" % (alone, among, among.text[among.text.find("Missed: "):].replace("\n", "\n# ")))
    find.expect(among.scans + among.late >= among.due - 2, "scans that are missing and not told: %s", among)
    find.expect(among.cpu_s < SCAN_S * SLOW, "%s", among)
    find.expect(among.bytes - alone.bytes < MORE_BYTES, "%d bytes more", among.bytes - alone.bytes)
    # exactness of its time is checked by totals_of_intervals_that_wait
    find.expect(among.spinning > 1, "the spinning thread and the one that waits for it are told as %.3f threads", among.spinning)
    find.close()


@case(alone=True, thorough=True)
def hostile_many_threads(ctx):
    """30 000 threads, of which 200 wake each other all the time: scans keep within their CPU time, other threads have their rows."""
    expect_crowd(ctx, 30000, lambda: ctx.workload("many", threads=29800, pairs=100))


@case(alone=True, thorough=True)
def hostile_many_names(ctx):
    """20 000 threads that are renamed as fast as names can be written: scans keep within their CPU time, other threads have their rows."""
    expect_crowd(ctx, 20000, lambda: ctx.workload("hostile_names", threads=20000))


@case(alone=True, thorough=True)
def hostile_many_names_in_a_report(ctx):
    """A report by name of threads that are renamed all the time: the number of groups and names has a limit."""
    tool = ctx.plain("-a", "-g", "comm", "-d", 3)
    alone = most_bytes(tool)
    tool.finish_plain(0, START_S + STOP_S)
    ctx.workload("hostile_names", threads=2000)
    tool = ctx.plain("-a", "-F", HZ, "-g", "comm", "-d", 20 * SLOW)
    among = most_bytes(tool)
    tool.finish_plain(0, START_S + STOP_S)
    told = re.findall(r"\d+ samples? in more groups than tsnap keeps|\d+ names? beyond what tsnap keeps", tool.out.decode(errors="replace"))
    print("# %.1f MB, %.1f MB alone; %s" % (among / 1e6, alone / 1e6, told))
    check(len(told) == 2, "the limits were not met: %s", told)
    check(among - alone < MORE_BYTES, "%d bytes more", among - alone)
