"""Accuracy of samples on a full host: sampled time over exact time, by kind of thread and state.

As a program it prints these ratios as a table: --help.
"""
import argparse
import math
import os
import re
import shlex
import time

import harness
import truth

KINDS = ("burst", "pipe", "sync", "spin")
EXACT = {"ON": "cpu_us", "RQ": "runq_us", "D": "dwait_us", "S": "sleep_us"}
COLUMNS = "state,syscall," + ",".join(EXACT.values())
BATCHES = 20  # batches of a run, whose spread gives the error of the whole


def kinds_of(workload):
    """{kind: tids}"""
    return {kind: [int(tid) for tid in workload[kind].split(",")] for kind in KINDS if workload[kind]}


class Share:
    """Sampled and exact seconds of a kind of threads in a state."""

    def __init__(self, sampled, exact, seconds):
        """sampled, exact: pairs of values, one pair for each thread or each batch of the run."""
        self.sampled, self.exact, self.seconds = sum(sampled), sum(exact), seconds
        self.ratio = self.sampled / self.exact if self.exact else None
        # the variation between the pairs gives the error of the ratio of the sums
        apart = [one - other * self.ratio for one, other in zip(sampled, exact)] if self.exact else []
        self.error = (math.sqrt(sum(x * x for x in apart) * len(apart) / max(len(apart) - 1, 1)) / self.exact
                      if self.exact else None)


def batch_of(index, count):
    return index * BATCHES // count


def shares(rows, kinds):
    """{(kind, state): Share} of the rows of a run with COLUMNS and -a. Exact times are the totals that the BPF programs keep."""
    scans = harness.scans_of(rows)[1:]  # the first scan's totals cover another time than its weight
    kind_of = {tid: kind for kind, tids in kinds.items() for tid in tids}
    sampled = {(kind, state): [0.0] * BATCHES for kind in kinds for state in EXACT}
    exact = {key: list(values) for key, values in sampled.items()}
    seconds = 0
    for index, (_, scan) in enumerate(scans):
        batch = batch_of(index, len(scans))
        seconds += int(scan[0]["weight_us"]) / 1e6
        for row in scan:
            kind = kind_of.get(int(row["tid"]))
            if not kind:
                continue
            if row["state"] in EXACT:
                sampled[kind, row["state"]][batch] += int(row["weight_us"]) / 1e6
            for state, column in EXACT.items():
                exact[kind, state][batch] += (harness.number(row, column) or 0) / 1e6
    return {key: Share(sampled[key], exact[key], seconds) for key in sampled}


def accounts(kinds):
    """{kind: (seconds on CPU, seconds in run queues)} so far, by the scheduler's own account."""
    found = {}
    for kind, tids in kinds.items():
        stats = [truth.schedstat(tid) for tid in tids]
        if None in stats:
            raise harness.Skip("this kernel counts no run queue time (schedstat)")
        found[kind] = tuple(sum(stat[i] for stat in stats) / 1e9 for i in (0, 1))
    return found


def measure(ctx, kinds, seconds, *args, rate=50, **popen):
    """(shares, tool) of a run with threads of these kinds, whose output is not read meanwhile. tsnap's exact totals must be about
    schedstat's."""
    tids = ",".join(str(tid) for of_kind in kinds.values() for tid in of_kind)
    tool = ctx.stream("-a", "-t", tids, "-F", rate, "-d", seconds, *args, columns=COLUMNS, **popen)
    tool.wait_scans(2)
    first, before, begin = harness.scans_of(tool.rows())[-1][0], accounts(kinds), time.monotonic()
    time.sleep(max(seconds - 2, 1))
    after, end = accounts(kinds), time.monotonic()
    rows = [row for row in tool.finish(limit_s=harness.START_S + harness.STOP_S) if first <= row["timestamp"]]
    found = shares(rows, kinds)
    part = (end - begin) / found[next(iter(kinds)), "ON"].seconds
    for kind in kinds:
        for i, state in enumerate(("ON", "RQ")):
            account, ours = after[kind][i] - before[kind][i], found[kind, state].exact * part
            print("# %s: %.2f s in %s by our totals, %.2f by schedstat" % (kind, ours, state, account))
            harness.check(abs(ours - account) <= 0.2 * account + 1, "%s: %.2f s in %s by our totals, %.2f by schedstat", kind,
                          ours, state, account)
    return found, tool


def idle_s():
    """Idle seconds of all CPUs so far."""
    words = truth.read("/proc/stat").split()
    return (int(words[4]) + int(words[5])) / os.sysconf("SC_CLK_TCK")


class Report:
    """A report of all threads over some seconds, as average numbers of threads, and the kernel's counts. between: called when these
    seconds begin."""

    def __init__(self, ctx, kinds, seconds, *args, between=lambda: None):
        tool = ctx.plain("-a", "-i", seconds, "-n", 2, "-g", "pid,comm,state", *args)
        # the first report includes some of the start
        first = self._ended(tool, 1, kinds)
        between()
        second = self._ended(tool, 2, kinds)
        tool.finish_plain(0, harness.STOP_S)
        gone_s = second[0] - first[0]
        self.accounts = {kind: tuple((b - a) / gone_s for a, b in zip(first[1][kind], second[1][kind])) for kind in kinds}
        self.busy_cpus = os.cpu_count() - (second[2] - first[2]) / gone_s
        self.text = tool.out.decode().split("tsnap on ")[2]
        self.elapsed_s = float(re.search(r"scans in ([\d.]+) s", self.text).group(1))
        rows = re.findall(r"^ +[\d.]+ +([\d.]+) +[\d.]+% #* +(\d+|-) +(\S.*?) +([A-Z]+)$", self.text, re.M)
        self.rates = {tuple(key): float(seconds) / self.elapsed_s for seconds, *key in rows}
        own_ms = re.search(r"tsnap itself: ([\d.]+) (m?)s of CPU", self.text)
        own_s = float(own_ms.group(1)) / (1000 if own_ms.group(2) else 1)
        self.told_cpus = sum(rate for key, rate in self.rates.items() if key[2] == "ON") + own_s / self.elapsed_s

    @staticmethod
    def _ended(tool, count, kinds):
        harness.wait_until(lambda: tool.out.count(b"tsnap itself") >= count or tool.code is not None,
                           harness.START_S + 60, "a report")
        return time.monotonic(), accounts(kinds), idle_s()


def table(found):
    lines = ["| | ON | RQ | D | S |", "| --- | --- | --- | --- | --- |"]
    for kind in sorted({kind for kind, _ in found}, key=KINDS.index):
        cells = []
        for state in EXACT:
            share = found[kind, state]
            told = share.ratio is not None and share.exact > 0.2
            cells.append("%.2f ± %.2f (%.1f s)" % (share.ratio, share.error, share.exact) if told else "-")
        lines.append("| %s | %s |" % (kind, " | ".join(cells)))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tsnap", required=True)
    parser.add_argument("--workload", required=True)
    parser.add_argument("--tsnap-args", default="", help="such as --no-realtime")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rate", type=int, default=50)
    parser.add_argument("--before", default="", help="a program before tsnap's words, such as 'chrt -f 50'")
    parser.add_argument("options", nargs="*", help="the workload's: bursts=8 ...")
    options = parser.parse_args()
    if options.before:
        words = shlex.split(options.before) + [options.tsnap] + shlex.split(options.tsnap_args)
        options.tsnap, options.tsnap_args = words[0], shlex.join(words[1:])
    ctx = harness.Context(options)
    try:
        workload = ctx.workload("mixed", **dict(word.split("=") for word in options.options))
        found, tool = measure(ctx, kinds_of(workload), options.seconds, rate=options.rate)
        print(table(found))
        print("\n%d CPUs; load %s; %s" % (os.cpu_count(), open("/proc/loadavg").read().split()[0], tool.err))
    except (harness.Failure, harness.Skip) as problem:
        raise SystemExit(str(problem))
    finally:
        ctx.end()


if __name__ == "__main__":
    main()
