"""--trace irq and column irq: softirqs and handlers of hardware interrupts, against the kernel's own counts of them."""
import datetime
import os
import re
import sys
import time

from case_cpu import FLOOD
from harness import STOP_S, Process, case, check, wait_until


UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1}

KERNEL = tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups()))


def counts():
    """{name as tsnap has it: how often the kernel handled it}: of softirqs, and of hardware interrupts by their number."""
    found = {}
    with open("/proc/softirqs", encoding="ascii") as file:
        for line in file.readlines()[1:]:
            words = line.split()
            found["softirq " + words[0].rstrip(":")] = sum(map(int, words[1:]))
    with open("/proc/interrupts", encoding="ascii") as file:
        cpus = len(file.readline().split())
        for line in file:
            words = line.split()
            if re.fullmatch(r"\d+:", words[0]):
                found["hardirq " + words[0].rstrip(":")] = sum(map(int, words[1:cpus + 1]))
    return found


@case
def interrupts_as_events(ctx):
    """While datagrams flood the loopback device, --trace irq counts each softirq and interrupt as often as the kernel does; the samples of
    threads that are ON have NET_RX as long as it takes by that, and the head does not go by ticks."""
    flood = Process([sys.executable, "-c", FLOOD])
    ctx.started.append(flood)
    wait_until(lambda: b"\n" in flood.out, STOP_S, "that datagrams are sent")
    seen, traced = [(time.time(), counts())], ctx.plain("-d", 5, "--csv", "--trace", "irq")
    while traced.code is None:
        seen.append((time.time(), counts()))
        time.sleep(0.02)
    seen.append((time.time(), counts()))
    rows = traced.finish(0, STOP_S)
    end = datetime.datetime.fromisoformat(rows[0]["timestamp"].replace("Z", "+00:00")).timestamp()
    begin = end - int(rows[0]["elapsed_us"]) / 1e6
    counted = {}
    for row in rows:
        name = " ".join(row["irq"].split()[:2])
        counted[name] = counted.get(name, 0) + int(row["count"])

    def between(since, until, name):
        first = [of for when, of in seen if when <= since] or [seen[0][1]]
        last = [of for when, of in seen if when >= until] or [seen[-1][1]]
        return last[0].get(name, 0) - first[-1].get(name, 0)
    for name in set(counted) | {"softirq NET_RX", "softirq TIMER", "softirq SCHED"}:
        # the programs are attached some time before the report begins, on a slow host long before
        least, most = between(begin + 0.1, end - 0.1, name), between(0, end + 0.1, name)
        check(least * 0.99 - 2 <= counted.get(name, 0) <= most + 1, "%s: %d, the kernel says %d to %d", name, counted.get(name, 0), least, most)
    # other tracepoints than raw ones do not have the handler
    check(KERNEL < (4, 17) or any(re.match(r"hardirq \d+ \S+ \(\w+\)$", row["irq"]) for row in rows), "no handler's function: %s", sorted(counted))
    # by one set of programs: each makes what others measure longer
    report = ctx.plain("-d", 5, "-F", 400, "--trace", "irq", "-g", "irq,state")
    report.finish_plain()
    flood.kill()
    text = report.out.decode()
    exact = sum(float(total) * UNITS[unit] for total, unit in re.findall(r"^ *\d+ +([\d.]+) (us|ms|s) .*softirq NET_RX", text, re.M))
    sampled = sum(map(float, re.findall(r"^ *[\d.]+ +([\d.]+) +[\d.]+% .*softirq NET_RX +ON", text, re.M)))
    # before 5.5 a scan has no time of its own: it never comes within an interrupt of its own CPU
    least = 0.6 if KERNEL >= (5, 5) else 0.1
    check(exact > 0.05 and least * exact < sampled < 1.6 * exact, "NET_RX had CPUs for %.2f s, samples say %.2f", exact, sampled)
    head = text.split("\n\n")[0]
    told = re.search(r"Taken from CPUs: .*softirq ([\d.]+) s", head)
    check(told and float(told.group(1)) > 0.7 * exact and "by tick" not in head, "NET_RX had CPUs for %.2f s, the head: %s", exact, head)
