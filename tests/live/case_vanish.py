"""Processes that end while tsnap reads them."""
import os
import re

from harness import OF_PATHS, START_S, case, check, wait_until


@case(alone=True)
def dying_processes(ctx):
    """For processes that live for some ms, sampled at every step of their end with every column, values that /proc no longer has are
    absent, those of the probes are there, and tsnap says nothing but how much was missed."""
    listed = ctx.plain("--list")
    listed.finish_plain()
    of_samples = listed.out.decode().split("Measures of a group")[0]
    names = [name for name in re.findall(r"^  ([a-z_0-9]+) +[-r][-c] ", of_samples, re.M) if not name.startswith(OF_PATHS)]
    check(len(names) > 100, "--list tells only %s", names)
    workload = ctx.workload("forks", us=1000, sleep_us=2000)
    tool = ctx.plain("--csv", "-a", "-F", 300, "-c", "b*", "-g", ",".join(names))
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    check(tool.code is None, "%s", tool.err)

    def half_known():
        """Whether some processes were read before their end, and some after it: on a full host that takes more of them."""
        exes = {row["exe"] for row in tool.rows() if row["comm"] == "brief"}
        return "" in exes and len(exes) > 1
    told = 0
    while told < 5 or told < 50 and not half_known():
        told += 1
        workload.say("60")
        workload.wait_done(told)
    rows = [row for row in tool.interrupt() if row["comm"] in ("brief", "brief_parent")]
    brief = [row for row in rows if row["comm"] == "brief"]
    check(len({row["tid"] for row in brief}) >= 20, "only %d rows of the brief", len(brief))
    for row in brief:
        check(row["pid"] and row["state"] and row["timestamp"] and row["uid"] == "0", "%s", row)
        for column, value in (("exe", os.path.realpath(ctx.options.workload)), ("ppid", str(workload.tgid)), ("user", "root")):
            check(row[column] in ("", value), "%s is %s, not %s", column, row[column], value)
    absent = sum(row["exe"] == "" for row in brief)
    check(0 < absent < len(brief), "no exe in %d of %d rows: none was seen at its end, or all were", absent, len(brief))
    missed = re.compile(r"tsnap: missed: \d+ (late scans?|(user |kernel )?stacks?|samples?|times? that a file was not read at once|"
                        r"records? changed again|waits? whose chains were not followed|"
                        r"requests? to block devices|reads? of /proc files skipped) ")  # requests of other processes
    words = [line for line in tool.err.splitlines() if not missed.match(line)]
    check(not words, "on standard error: %s", words)
