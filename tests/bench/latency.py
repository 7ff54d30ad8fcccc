"""Cost of the sampler's real-time priority for other tasks, and its purpose: scans that are in time on a full host."""
import os
import re
import statistics
import subprocess

from sampler import LIMIT_S, Crowd, Sampler, end_with_us, quartiles, say, scratch
from table import Row

RATE_HZ = 20
SPINNERS = 30


def period_us(options):
    """(median, 99.9th percentile) of the delay of a task that is due every ms, in us, on the worst of the CPUs."""
    runs = [subprocess.Popen([options.build + "/tests/bench/period", str(options.latency_ms), str(cpu)], stdout=subprocess.PIPE,
                             preexec_fn=end_with_us) for cpu in range(len(os.sched_getaffinity(0)))]
    found = [[int(word) / 1000 for word in run.communicate(timeout=LIMIT_S)[0].split()] for run in runs]
    return tuple(max(values) for values in zip(*found))


def latency_rows(options):
    without, beside = [period_us(options)], []
    with Crowd(options, options.crowd):
        for number in range(options.rounds):
            say("latency: round %d" % (number + 1))
            with Sampler(options, "-d", 100000, "-F", RATE_HZ, "-a"):
                beside.append(period_us(options))
            without.append(period_us(options))
    rows = []
    for at, words in ((0, "median"), (1, "p99.9")):
        low, middle, high = quartiles([values[at] for values in beside])
        rows.append(Row("a task of 1 ms comes late beside tsnap -a, %d threads at %d Hz, %s" % (options.crowd, RATE_HZ, words),
                        "tsnap", middle, "us", low, high,
                        remark="%.0f us without" % statistics.median(values[at] for values in without)))
    return rows


def late_share(options):
    """(late scans, all due scans) while more threads spin than there are CPUs."""
    seconds = options.scan_s
    spinners = [subprocess.Popen([options.workload, "spin"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
                for _ in range(SPINNERS)]
    try:
        with scratch() as file:
            run = subprocess.run([options.tsnap, "--csv", "-a", "-F", str(RATE_HZ), "-d", str(seconds)] + options.args.split(),
                                 stdout=file, stderr=subprocess.PIPE, timeout=LIMIT_S, check=True)
    finally:
        for spinner in spinners:
            spinner.stdin.close()
        for spinner in spinners:
            spinner.wait(LIMIT_S)
    return sum(int(count) for count in re.findall(r"(\d+) late scans", run.stderr.decode())), seconds * RATE_HZ


def bench_latency(options):
    options.latency_ms = 1000 if options.quick else 20000
    rows = latency_rows(options)
    say("latency: late scans")
    late, due = late_share(options)
    rows.append(Row("late scans beside %d spinners, all threads, %d Hz" % (SPINNERS, RATE_HZ), "tsnap", 100 * late / due, "%", aim=1,
                    remark="%d of %d" % (late, due)))
    return rows
