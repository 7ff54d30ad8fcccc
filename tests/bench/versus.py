#!/usr/bin/env python3
"""Measures two builds of tsnap in one run, one after the other in each round: for a change that must cost nothing.

    versus.py BEFORE AFTER [ROUNDS [PART...]]   two build trees; prints a Markdown table of medians, and of the second to the first

Parts: operations starts scans reports screens; all, if none is named.
"""
import importlib.machinery
import importlib.util
import os
import re
import statistics
import sys
import time

sys.dont_write_bytecode = True
from sampler import OPERATIONS, Crowd, Held, Interleaved, Report, Sampler  # noqa: E402
from screen import Screen  # noqa: E402

THREADS = 20000
SERVED = 200
SECONDS = 20

here = os.path.dirname(os.path.abspath(__file__))
loader = importlib.machinery.SourceFileLoader("bench_run", os.path.join(here, "run"))
bench_run = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_run", loader))
loader.exec_module(bench_run)


def operations(builds, rounds):
    """{what: (before, after)}, as ratios to no tool."""
    starters = {"%d %s" % (i, words): lambda each=each, kind=kind: kind(each, "-d", 100000)
                for i, each in enumerate(builds) for words, kind in (("rows", Sampler), ("report", Report))}
    builds[1].rounds = rounds
    found = Interleaved(builds[1], starters, builds[1].run_ms)
    return {"%s, %s, to no tool" % (words, kind): [statistics.median(found.ratios["%d %s" % (i, kind)][name]) for i in (0, 1)]
            for kind in ("rows", "report") for name, words in OPERATIONS.items() if found.ratios["0 " + kind][name]}


def scans(builds, rounds):
    found = {}
    with Crowd(builds[1], THREADS):
        for everything, rate in ((False, 1), (False, 20), (True, 1)):
            costs = [[], []]
            for _ in range(rounds):
                for i, each in enumerate(builds):
                    with Sampler(each, "-d", 100000, "-F", rate, *(["-a"] if everything else [])) as sampler:
                        costs[i].append(1000 * sampler.scan_cost(SECONDS, rate, everything)[0])
            found["ms of CPU a scan, %d threads, %s, %d Hz" % (THREADS, "all shown" if everything else "mostly asleep", rate)] = [
                statistics.median(values) for values in costs]
    return found


def reports(builds, rounds):
    """CPU of a report of a server whose threads and clients all wait for each other."""
    costs = [[], []]
    with Held(builds[1], "served", "threads=%d" % SERVED) as served:
        pid = re.search(r"\bpid=(\d+)", served.ready).group(1)
        for _ in range(rounds):
            for i, each in enumerate(builds):
                with Report(each, "-d", 100000, "-F", 20, "-r", "-p", pid) as report:
                    spent = report.cpu_s()
                    time.sleep(SECONDS)
                    costs[i].append(100 * (report.cpu_s() - spent) / SECONDS)
    return {"%% of a CPU, the default report, a server of %d threads, 20 Hz" % SERVED: [statistics.median(values) for values in costs]}


def screens(builds, rounds):
    """CPU of --top with its findings, of a server alone: all of it, and of the threads that draw and copy."""
    found = {words: [[], []] for words in ("all of it", "but the main thread")}
    with Held(builds[1], "served", "threads=%d" % SERVED) as served:
        pid = re.search(r"\bpid=(\d+)", served.ready).group(1)
        for _ in range(rounds):
            for i, each in enumerate(builds):
                with Screen(each, "-r", "-p", pid) as screen:
                    screen.read(5)
                    drawn = screen.screen_cpu_s()
                    found["all of it"][i].append(screen.used(SECONDS, screen.cpu_s))
                    found["but the main thread"][i].append(100 * (screen.screen_cpu_s() - drawn) / SECONDS)
    return {"%% of a CPU, --top, a server of %d threads, 20 Hz, %s" % (SERVED, words): [statistics.median(each) for each in both]
            for words, both in found.items()}


def starts(builds, rounds):
    times = [[], []]
    for _ in range(2 * rounds):
        for i, each in enumerate(builds):
            times[i].append(bench_run.start_times(each)[0])
    return {"s from the start to the first sample": [statistics.median(values) for values in times]}


PARTS = {part.__name__: part for part in (operations, starts, scans, reports, screens)}


def main():
    builds = [bench_run.parse(["--build", build]) for build in sys.argv[1:3]]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    print("| what | before | after | after to before |\n| --- | --- | --- | --- |")
    for part in sys.argv[4:] or PARTS:
        for words, (before, after) in PARTS[part](builds, rounds).items():
            print("| %s | %.2f | %.2f | %.2f |" % (words, before, after, after / before), flush=True)


if __name__ == "__main__":
    main()
