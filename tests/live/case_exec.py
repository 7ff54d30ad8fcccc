"""--trace exec: every executed program is shown, however short it lives."""
import os
import subprocess

from harness import SLOW, START_S, case, check, wait_until

STORM = 300


def begin(ctx, *args):
    tool = ctx.plain("--csv", "--trace", "exec", *args)
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    return tool


@case
def execs_of_a_storm(ctx):
    """Each of many short processes is shown once, with its arguments, parent, user and both names."""
    tool = begin(ctx)
    pids = {}
    for number in range(STORM):
        process = subprocess.Popen(["/bin/true", "argument %d" % number, "", "x" * (number % 50)], executable="/bin/true")
        process.wait()
        pids[process.pid] = "/bin/true argument %d  %s" % (number, "x" * (number % 50))
    before = open("/proc/self/comm").read().strip()
    rows = [row for row in tool.interrupt() if row["ppid"] == str(os.getpid())]
    told = {int(row["pid"]): row["cmdline"] for row in rows}
    check(len(rows) == STORM and told == pids, "%d of %d: %s", len(rows), STORM, sorted(set(pids.items()) - set(told.items()))[:5])
    for row in rows:
        check((row["comm"], row["comm_before"], row["user"], row["tid"]) == ("true", before, "root", row["pid"]), "%s", row)
    check("single events" not in tool.err, "%s", tool.err)


@case
def execs_of_all_kinds(ctx):
    """Execs of all kinds are shown: long and no arguments, an empty environment, a script, an exec without a fork; with -c and -p."""
    script = os.path.join(ctx.temporary(), "script")
    with open(script, "w") as file:
        file.write("#!/bin/sh\nexec /bin/true after\n")
    os.chmod(script, 0o755)
    tool, of_some = begin(ctx), begin(ctx, "-c", "script")
    long = subprocess.Popen(["/bin/true", "y" * 1000])
    bare = subprocess.Popen(["/bin/true", "alone"], env={})
    scripted = subprocess.Popen([script, "one"])
    for process in (long, bare, scripted):
        process.wait()
    rows = tool.interrupt()

    def of(process):
        return [(row["comm_before"] if row["comm_before"] in ("script", "true") else "", row["comm"], row["cmdline"])
                for row in rows if row["pid"] == str(process.pid)]
    check(of(long)[0][2].startswith("/bin/true yyy") and of(long)[0][2].endswith("yyy...") and len(of(long)[0][2]) < 270,
          "%s", of(long))
    check(of(bare) == [("", "true", "/bin/true alone")], "%s", of(bare))
    check(of(scripted) == [("", "script", "/bin/sh %s one" % script), ("script", "true", "/bin/true after")], "%s", of(scripted))
    wait_until(lambda: of_some.rows(), 5 * SLOW, "the script")
    check({row["comm"] for row in of_some.interrupt()} == {"script"}, "%s", of_some.out)
