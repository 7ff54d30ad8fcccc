"""What --trace costs the threads that are traced."""
import collections

from sampler import OPERATIONS, Interleaved, Sampler, quartiles
from table import Row

# kinds: as --trace takes them; operation: a key of OPERATIONS; aim: its ratio to no tool
Trace = collections.namedtuple("Trace", "kinds operation aim")

TRACES = (
    Trace("runq", "pipe_same", 1.30),
    Trace("offcpu", "pipe_same", 1.30),
    Trace("runq,offcpu", "pipe_same", None),
)


def starter(options, kinds):
    return lambda: Sampler(options, "--trace", kinds, "-i", 1, "-d", 100000)


def bench_trace(options):
    kinds = dict.fromkeys(trace.kinds for trace in TRACES)
    found = Interleaved(options, {name: starter(options, name) for name in kinds}, options.run_ms)
    rows = []
    for trace in TRACES:
        low, middle, high = quartiles(found.ratios[trace.kinds][trace.operation])
        rows.append(Row("--trace %s: %s" % (trace.kinds, OPERATIONS[trace.operation]), "tsnap", middle, "ratio", low, high,
                        trace.aim, "%.0f ns without" % found.without_ns(trace.operation)))
    return rows
