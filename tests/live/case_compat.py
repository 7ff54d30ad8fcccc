"""Kernel types: their sources agree, and each of them works with each kind of probe, or is refused."""
import os
import shlex

import truth
from case_state import expect_blocked
from harness import START_S, STOP_S, UNREADY, Findings, Skip, case, check, scans_of

SOURCES = ("btf", "headers", "kheaders")
# Kernel features that are taken away so that a kind of probe is chosen.
PROBES = (("best", ""), ("tracepoints", "raw_tracepoint"), ("kprobes", "raw_tracepoint,tracepoint"))
CALL_COLUMNS = "state,syscall,syscall_nr,arg0,arg1,arg2,arg3,arg4,arg5,fd,filename"
NOT_SEEN = "; not seen: "
# Configurations of tests/vm/guest with only one source, and that source.
SOURCE_OF = {"btf": "btf", "headers": "headers", "kheaders": "kheaders", "btf-file": "btf"}
COMPILED = ("headers", "kheaders")


def refusal(tool):
    """The first line of the message of a tsnap that has failed as it should."""
    check(tool.code in (1, UNREADY), "exit code %s: %s", tool.code, tool.err)
    check(tool.err.startswith("tsnap: "), "no reason: %s", tool.err)
    return tool.err.splitlines()[0][len("tsnap: "):]


@case
def types_agree(ctx):
    """Each source of kernel types that this host has gives the same offsets, to the byte; one that it lacks says why, in one line."""
    given, directory = {}, ctx.temporary()
    for source in SOURCES:
        path = os.path.join(directory, source)
        tool = ctx.plain("--kernel-types", source, "--write-offsets", path)
        if tool.wait(START_S + STOP_S):
            refusal(tool)
        else:
            given[source] = truth.read(path)
    if len(given) < 2:
        raise Skip("only one source of kernel types here: %s" % ", ".join(given))
    # struct rq is not in kernel headers
    shared = {source: [line for line in text.splitlines() if not line.startswith("rq.")] for source, text in given.items()}
    first = shared[min(shared)]
    check(all(lines == first for lines in shared.values()), "they differ: %s", given)


def cell(ctx, workloads, facts):
    """The outcome of a run: "works", "degraded: ..." or "refused: ...", in tsnap's own words."""
    tool = ctx.stream("-v", "-a", "-d", 1, "-p", ",".join(str(w.tgid) for w in workloads), *ctx.without(facts),
                      columns=CALL_COLUMNS)
    if tool.wait(START_S + STOP_S):
        return "refused: " + refusal(tool).replace(os.uname().release, "$(uname -r)")
    source = "offsets" if ctx.given("--offsets") else SOURCE_OF.get(os.environ.get("TSNAP_TEST_NAME"))
    check(source is None or "kernel types from %s;" % source in tool.err, "not from %s: %s", source, tool.err)
    find = Findings()
    scans = scans_of(tool.rows())
    check(scans, "no scan without %s: %s", facts, tool.err)
    expect_blocked(find, workloads, scans)
    find.close()
    lacking = [line.split(NOT_SEEN)[1] for line in tool.err.splitlines() if NOT_SEEN in line]
    return "degraded: not seen: " + "; ".join(lacking) if lacking else "works"


def compiled_once(ctx):
    """The context, with an offsets file of the headers where they are the source: a compile takes minutes on an emulated CPU, and which probes
    are used does not change offsets. A refusal is left to the runs."""
    source = SOURCE_OF.get(os.environ.get("TSNAP_TEST_NAME"))
    path = os.path.join(ctx.temporary(), "offsets")
    if source not in COMPILED or ctx.plain("--kernel-types", source, "--write-offsets", path).wait(START_S + STOP_S):
        return ctx
    return ctx.but(tsnap_args=ctx.options.tsnap_args + " --offsets " + shlex.quote(path))


@case(refusal=True)
def cells(ctx):
    """A run with each kind of probe is right, or refused in one line; the outcomes go to the file $TSNAP_TEST_CELLS."""
    workloads = ctx.workloads([("sleep", {"call": "pipe_read"}), ("vfork", {}), ("sleep", {"call": "futex"})])
    typed = compiled_once(ctx.but(tsnap_args=ctx.options.tsnap_args + " --source bpf"))
    told = [(probes, cell(typed, workloads, facts)) for probes, facts in PROBES]
    if "TSNAP_TEST_CELLS" in os.environ:
        with open(os.environ["TSNAP_TEST_CELLS"], "a") as file:
            for probes, words in told:
                file.write("%s\t%s\t%s\n" % (os.environ["TSNAP_TEST_NAME"], probes, words))
