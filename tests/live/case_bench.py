"""The bench: each part of it prints figures. They are measured on a busy machine, so their values are not checked."""
import os
import re

from harness import STOP_S, UNREADY, Process, Skip, case, check

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench", "run")
# Parts of the bench, the longest first; bench_parts compares the names with the bench's own.
PARTS = ("fleet", "stacks", "tracers", "trace", "scans", "records", "readers", "recorder", "waits", "chains", "stack_peers", "rate", "operations", "share", "churn",
         "block", "latency", "report", "replay", "screen", "start")


def bench(ctx, *args):
    build = os.path.join(os.path.dirname(ctx.options.workload), "..", "..")
    run = Process([RUN, "--quick", "--build", build, "--args=" + ctx.options.tsnap_args, *args])
    ctx.started.append(run)
    return run


def part_case(part):
    def run(ctx):
        program = bench(ctx, part)
        code = program.wait(170, "its figures")
        words = program.err.splitlines()[-1:]
        if code == UNREADY:
            raise Skip(words)
        check(code == 0, "exit code %d: %s", code, words)
        rows = re.findall(r"^\|(.+)\|$", program.out.decode(), re.M)
        check(any(re.search(r"\d", row) for row in rows[2:]), "no figures: %s", program.out.decode())
    run.__name__ = "bench_" + part
    run.__doc__ = "The bench's part %s works." % part
    case(thorough=True, long=True)(run)


for name in PARTS:
    part_case(name)


@case(thorough=True, long=True)
def bench_parts(ctx):
    """The bench has exactly the parts that are tested here."""
    program = bench(ctx, "none")
    program.wait(STOP_S)
    names = re.search(r"no part is called none; they are (.+)$", program.err).group(1).split(", ")
    check(set(names) - {"peers"} == set(PARTS), "%s", names)
