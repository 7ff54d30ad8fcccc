"""Cost of --chains and --findings: with threads in chains, with many other threads as well, and for the threads that are sampled."""
import time

from sampler import OPERATIONS, Crowd, Held, Interleaved, Report, quartiles, say
from table import Row

RATE_HZ = 20
CHAINED = 1000
REQUESTS = 500  # threads in chains, of a crowd's threads
NAPS_MS = 100, 1000  # naps of a lock's holder: waits last ten times as long
WARM_S = 10     # sleepers have been judged, and the other ends of connections found: what is left is what goes on
ASKING = 200  # threads that each ask a server 30 times a second
TURNS = {"--chains": ("--chains", "-F", RATE_HZ), "--findings": ("--findings", "-F", RATE_HZ), "a report": ("-F", RATE_HZ)}


class Chained(Held):
    """Threads in chains: half of them wait for an answer, the other half, in groups of ten, for a mutex whose holder naps."""

    def __init__(self, options, threads, nap_ms):
        super().__init__(options, "chained", "threads=%d" % threads, "nap_ms=%d" % nap_ms)


def share_of_cpu(options, args):
    """CPU time of all of tsnap's threads, in per cent of one CPU."""
    with Report(options, "-d", 100000, *args) as report:
        time.sleep(WARM_S)
        cpu, start = report.cpu_s(), time.monotonic()
        time.sleep(options.scan_s)
        return 100 * (report.cpu_s() - cpu) / (time.monotonic() - start)


def cost_row(options, words, aim, of="--chains"):
    """Measures --chains or --findings and a report in turns, so that other load of the host affects both."""
    turns = 1 if options.quick else 2
    found = {what: [] for what in (of, "a report")}
    for turn in range(turns):
        for what in found:
            say("chains: %s, round %d of %d, %s" % (words, turn + 1, turns, what))
            found[what].append(share_of_cpu(options, TURNS[what]))
    low, middle, high = quartiles(found[of])
    return Row("CPU, %s, %s, %d Hz" % (of, words, RATE_HZ), "tsnap", middle, "%", low, high, aim,
               "%.1f %% for a report" % quartiles(found["a report"])[1])


def sampled_row(options):
    """Cost of --chains for sampled threads, to that of a report, which has the same probes except those of requests to block devices."""
    name, words = "pipe_same", OPERATIONS["pipe_same"]
    found = Interleaved(options, {what: lambda what=what: Report(options, "-d", 100000, *TURNS[what]) for what in ("--chains", "a report")},
                        options.run_ms, {name: words})
    low, middle, high = quartiles([with_it / without for with_it, without in
                                   zip(found.ratios["--chains"][name], found.ratios["a report"][name])])
    return Row("%s, --chains to a report" % words, "tsnap", middle, "ratio", low, high, 1.05,
               "%.2f to no tool" % quartiles(found.ratios["--chains"][name])[1])


def bench_chains(options):
    rows = []
    for nap_ms in NAPS_MS:
        with Chained(options, CHAINED, nap_ms):
            rows.append(cost_row(options, "%d threads in chains, holders nap %d ms" % (CHAINED, nap_ms), 10))
    for nap_ms in NAPS_MS:
        with Crowd(options, options.crowd - REQUESTS), Chained(options, REQUESTS, nap_ms):
            for of, aim in ("--chains", 3), ("--findings", 5):
                rows.append(cost_row(options, "%d threads, %d of them in such requests, %d ms" % (options.crowd, REQUESTS, nap_ms), aim, of))
    with Held(options, "served", "threads=%d" % ASKING):
        for of in "--chains", "--findings":
            rows.append(cost_row(options, "%d threads that ask a server 30 times a second" % ASKING, 4, of))
    return rows + [sampled_row(options)]
