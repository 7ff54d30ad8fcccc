"""--trace opens, opened: each open that failed, and each that did not, with the path that the program gave."""
import collections
import os
import re
import subprocess
import sys
import time

from harness import SLOW, START_S, case, check, let_pass, wait_until

OPENS, BAD = 50, 7
# Opens paths of some lengths, by open(2) and openat(2), relative and absolute; the last ones work
PROGRAM = """
import ctypes, os, sys
os.chdir(sys.argv[1])
call = ctypes.CDLL(None, use_errno=True).syscall
if os.uname().machine == "x86_64":
    call(2, b"by open", 0, 0)
    call(85, b"none/by creat", 0)
for path in (b"", b"a", b"b" * 200, b"c" * 255, b"d" * 255 + b"/" * 10, b"here"):
    call(257 if os.uname().machine == "x86_64" else 56, -100, path, 0, 0)
call(437, -100, b"by openat2", ctypes.create_string_buffer(24), 24)
"""


def begin(ctx, kinds, *args):
    tool = ctx.plain("--csv", "--trace", kinds, "-F", 500, *args)
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    return tool


@case
def opens_of_a_workload(ctx):
    """Exact counts by path and errno, and a path that can't be read is absent; as rows, and in the table of a report."""
    workload = ctx.workload("calls", trivial=0, opens=OPENS, bad=BAD, naps=0, reads=0)
    tool = begin(ctx, "opens,opened", "-p", workload.tgid)
    workload.say("go")
    workload.wait_done()
    rows = tool.interrupt()
    counts = collections.Counter((row["trace"], row["filename"], row["errno"]) for row in rows)
    # its main thread looks in /proc whether the other one waits
    expected = {("opens", "/no such directory/file", "ENOENT"): OPENS, ("opens", "", "EFAULT"): BAD}
    check({key: count for key, count in counts.items() if key[0] == "opens"} == expected, "%s", counts)
    check(all(re.match("/proc/%d/task/" % workload.tgid, path) for kind, path, _ in counts if kind == "opened"), "%s", counts)
    check({(row["tid"], row["pid"], row["comm"]) for row in rows if row["trace"] == "opens"} ==
          {(str(workload.tid), str(workload.tgid), "calls")}, "%s", rows[0])
    check(all(0 < int(row["duration_ns"]) < 1e9 for row in rows), "%s", rows)
    rounds = 0
    tool = ctx.plain("--trace", "opens", "-p", workload.tgid, "-F", 500, "-d", 3, "-r", "-g", "comm")
    end_s = time.monotonic() + START_S + 20 * SLOW
    while tool.code is None and time.monotonic() < end_s:
        rounds += 1
        workload.say("go")
        workload.wait_done(1 + rounds)
        let_pass(0.1)
    lines = [" ".join(line.split()) for line in tool.out.decode().splitlines()]
    for words, each in (("/no such directory/file ENOENT", OPENS), ("- EFAULT", BAD)):
        found = [line for line in lines if re.match(r"\d+ \d+ .* calls %s$" % re.escape(words), line)]
        count, errors = map(int, found[0].split()[:2]) if len(found) == 1 else (0, 0)
        # some rounds were before the tool had begun
        check(count == errors and count and count % each == 0 and count <= each * rounds, "%s: %s", words, lines)
    check("single events" not in tool.out.decode(), "the list, too: %s", lines)


@case
def opens_of_all_calls(ctx):
    """Each call that opens files; paths as the program gave them, and three dots for what does not fit."""
    directory = ctx.temporary()
    with open(os.path.join(directory, "here"), "w"):
        pass
    tool = begin(ctx, "opens,opened")
    process = subprocess.Popen([sys.executable, "-S", "-c", PROGRAM, directory])
    process.wait()
    rows = [(row["trace"], row["filename"], row["errno"]) for row in tool.interrupt() if row["pid"] == str(process.pid)]
    expected = [("opens", "by open", "ENOENT"), ("opens", "none/by creat", "ENOENT")] if os.uname().machine == "x86_64" else []
    expected += [("opens", "", "ENOENT"), ("opens", "a", "ENOENT"), ("opens", "b" * 200, "ENOENT"), ("opens", "c" * 255 + "...", "ENOENT"),
                 ("opens", "d" * 255 + "...", "ENOENT"), ("opened", "here", ""), ("opens", "by openat2", "ENOENT")]
    check(rows[-len(expected):] == expected, "%s", rows[-len(expected) - 2:])
