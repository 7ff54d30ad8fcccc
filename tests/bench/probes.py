"""Cost of --probe for the threads that are probed, beside bcc's tools and bpftrace for the same question, each on the same function."""
import os

from peers import Peer, Tracer, job_words
from sampler import Interleaved, Sampler, operation_ns, quartiles
from table import Row

CALL = "a call of a function that takes some 50 us"
BUDGET = ("--probe-budget", 99, "-d", 100000)


def asked(function):
    """[(what is asked, what tsnap is given, bcc's tool and its words, bpftrace's program or None)]"""
    path = function.rpartition(":")[0]
    return (
        ("how often", "p:%s()" % function, ["funccount-bpfcc", function], "@ = count();"),
        ("how often, by stack", "p:%s()" % function, ["stackcount-bpfcc", function], "@[ustack] = count();"),
        ("an argument's distribution", "p:%s(arg1:bytes)" % function,
         ["argdist-bpfcc", "-i", "1", "-c", "-H", "p:%s(u64 rounds):u64:rounds" % function],
         "@ = hist(arg0);"),
        ("events that a condition lets through", "p:%s(arg1:bytes) if arg1 > 1G" % function,
         ["trace-bpfcc", "p:%s(u64 rounds) (rounds > 1073741824) \"%%llu\", rounds" % function], None),
        ("how long", "p:%s" % function, ["funclatency-bpfcc", "-u", "%s:%s" % (path, function.rpartition(":")[2])], None),
    )


def options_of(what):
    return {"how often, by stack": ("--csv", "-g", "tid,stack"), "events that a condition lets through": ("--csv", "--events")}.get(what, ("--csv",))


class OfCpu(Interleaved):
    """In CPU time of the thread that is probed: a probe adds no switch, and others' load none of it."""

    def measure(self, options, run_ms):
        return {name: operation_ns(options, name, run_ms, "cpu") for name in self.operations}


def bench_probes(options):
    function = os.path.realpath(options.operations) + ":operations_call"
    starters, jobs = {}, {}
    for what, target, argv, program in asked(function):
        ours, peers = "tsnap: " + what, [Peer("%s: %s" % (argv[0], what), "bpfcc-tools", argv, what, "types")]
        if program:
            program = "uprobe:%s { %s }" % (function, program)
            peers.append(Peer("bpftrace: " + what, "bpftrace", ["bpftrace", "-e", program], what, "tracefs"))
        starters[ours] = lambda what=what, target=target: Sampler(options, *options_of(what), "--probe", "asked = " + target, *BUDGET)
        jobs[ours] = ""
        for peer in peers:
            starters[peer.tool] = lambda peer=peer: Tracer(peer, options)
            jobs[peer.tool] = job_words(peer).rpartition("; ")[2]
    found = OfCpu(options, starters, options.peer_ms, {"call": CALL})
    rows = []
    for tool, job in jobs.items():
        if tool in found.gone:
            rows.append(Row(tool, "tsnap", None, "", remark="not here: " + found.gone[tool]))
            continue
        low, middle, high = quartiles(found.ratios[tool]["call"])
        without = found.without_ns("call")
        rows.append(Row(tool, "tsnap", middle, "ratio", low, high, None,
                        "; ".join(filter(None, ("%.0f ns without, %.0f more" % (without, (middle - 1) * without), job)))))
    return rows
