#!/usr/bin/env python3
"""Runs two builds of tsnap at the same time on the same loads, and compares what they say of each thread.

    twins.py BEFORE AFTER WORKLOAD [NAME ...]     two programs, the workload program, and loads (all if none)
    twins.py BEFORE AFTER --recordings DIR [...]  only replays of these, as `incidents.py --record` makes them

For a change of the engine that must change no answer. Most loads hold their threads in waits, so both programs see the
same: what a thread does in a tenth of its samples or more must be in the samples of the other, and its share of the report
must be as large. Of loads whose threads move, only kinds of waits are compared, without their threads. CPU times of both are
told; other work on the host distorts them alike. BEFORE also records each load, and replays of that by both must be the
same, byte for byte, in each form of output.
"""
import collections
import csv
import os
import re
import resource
import subprocess
import sys
import tempfile

SECONDS = 5
RATE_HZ = 20
OFTEN = 0.1   # part of a thread's samples from which on the other program must have it, too
SHARES = 0.1  # threads, or part of all threads where they move, by which lines of a report may differ
FACTS = ("tid", "pid", "state", "comm", "user", "exe", "syscall", "fd", "filename", "filetype", "connection", "remote",
         "waits_on", "waits_on_pid", "why", "wchan", "blocker_tid", "blocker_kind", "chain", "root_tid", "root_waits_on")
SUMMED = ("tid", "state", "syscall", "why", "waits_on", "chain")
KINDS = ("comm", "state", "syscall", "why", "waits_onsum")

RECORDED = ",".join(FACTS) + ",ppid,cgroup,cmdline,ustack,kstack,stack,uid,state_us,cpu"
REPLAYS = (
    ("--csv", "-a", "-g", RECORDED), ("--json", "-g", "psn"), ("--csv", "--report", "-a", "-g", "comm,state,waits_onsum"), (),
    ("--findings",), ("--findings", "--json"), ("--chains",), ("--folded",), ("--folded", "--by-chain"),
    ("--flame", "-"), ("--stacks", "-g", "comm,state"), ("--by", "why", "-a"), ("--by-time", "1s"), ("--heatmap",),
    ("-i", "1", "-g", "psn"), ("--all-rows", "-a"), ("--csv", "--filter", "state=S"))

MOVING = [("served", "threads=50"), ("chained", "threads=20"), ("many", "threads=200", "pairs=2"), ("pingpong",)]
LOADS = MOVING + [("mutex",), ("stopped",), ("page_fault",)] + [("wait", "on=" + what) for what in
     ("tcp_client", "unix_pair", "pipe_reader", "fifo_reader", "file_lock", "poll_two", "epoll_two", "io_uring", "mutex",
      "rwlock_writer", "condition", "child", "timer", "semaphore")] + [
    ("chain", "of=" + what) for what in ("flock_stopped", "queue")]


def start(program, pid, *args):
    return subprocess.Popen([program, "-p", str(pid), "-d", str(SECONDS), "-F", str(RATE_HZ), *args], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(processes):
    """Outputs of the processes, and their CPU times."""
    outputs, spent = [], []
    for process in processes:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        out, errors = process.communicate()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if process.returncode:
            sys.exit("exit %d: %s" % (process.returncode, errors))
        outputs.append(list(csv.DictReader(line for line in out.splitlines() if not line.startswith("#"))))
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return outputs, spent


def facts_of(rows):
    """Of each thread, its counts of what it does."""
    threads = collections.defaultdict(collections.Counter)
    for row in rows:
        threads[row["tid"]][tuple(row[name] for name in FACTS)] += 1
    return threads


def rows_differ(before, after):
    """What one program says often of a thread, and the other one never does."""
    for one, other, words in ((facts_of(before), facts_of(after), "only before"), (facts_of(after), facts_of(before), "only after")):
        for tid, counts in one.items():
            for facts, count in counts.items():
                if count >= OFTEN * sum(counts.values()) and not other[tid][facts]:
                    yield "%s, %d of %d: %s" % (words, count, sum(counts.values()),
                                                ", ".join(name + "=" + value for name, value in zip(FACTS, facts) if value))
    if abs(len(before) - len(after)) > SHARES * max(len(before), 10):
        yield "%d rows before, %d after" % (len(before), len(after))


def shares_differ(before, after, columns, all_threads):
    shares = [{tuple(row[name] for name in columns): float(row["avg_thr"]) for row in rows} for rows in (before, after)]
    for key in set(shares[0]) | set(shares[1]):
        one, other = (share.get(key, 0) for share in shares)
        if abs(one - other) > SHARES * all_threads:
            yield "report: %.2f before, %.2f after: %s" % (one, other, ", ".join(filter(None, key)))


def replays_differ(programs, recording):
    """Forms of replays that two programs write differently."""
    for form in REPLAYS:
        before, after = (subprocess.run([program, "--replay", recording, *form], stdin=subprocess.DEVNULL, capture_output=True)
                         for program in programs)
        if before.returncode:
            sys.exit("exit %d: %s" % (before.returncode, before.stderr.decode()))
        if (before.returncode, before.stdout, before.stderr) != (after.returncode, after.stdout, after.stderr):
            lines = [one.splitlines() for one in (before.stdout + before.stderr, after.stdout + after.stderr)]
            at = next((i for i, pair in enumerate(zip(*lines)) if pair[0] != pair[1]), min(map(len, lines)))
            yield "replay %s: line %d: %s" % (" ".join(form), at + 1, " | ".join(str(one[at:at + 1]) for one in lines))


def recorder(program, pid, recording):
    return subprocess.Popen([program, "-r", "-p", str(pid), "-d", str(SECONDS), "-F", "10", "-a", "-G", RECORDED, "-o", recording],
                            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def compared(programs, workload, load, directory):
    """Differences on one load, as words."""
    moves = load in MOVING
    columns = KINDS if moves else SUMMED
    held = subprocess.Popen([workload, *load] + (["dir=" + directory] if load[0] in ("wait", "chain") else []),
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        ready = held.stdout.readline()
        found = re.search(r"\bpid=(\d+)", ready)
        if not found:
            return ["the load does not run: " + ready]
        recording = os.path.join(directory, "recording")
        records = recorder(programs[0], found.group(1), recording)
        rows, spent = finished([start(program, found.group(1), "-r", *args) for args in (
            ("-a", "--csv", "-g", ",".join(FACTS)), ("--csv", "--report", "-g", ",".join(columns))) for program in programs])
    finally:
        held.stdin.close()
        held.wait()
    errors = records.communicate()[1]
    if records.returncode:
        sys.exit("exit %d: %s" % (records.returncode, errors))
    replays = list(replays_differ(programs, recording))
    print("%s: %d rows; CPU time %.2f and %.2f s, report %.2f and %.2f s" % (" ".join(load), len(rows[0]), *spent), flush=True)
    if moves:
        return [*replays, *shares_differ(*rows[2:], columns, max(1, sum(float(row["avg_thr"]) for row in rows[2])))]
    return [*replays, *rows_differ(*rows[:2]), *shares_differ(*rows[2:], columns, 1)]


def main():
    before, after, workload, *names = sys.argv[1:]
    wrong = 0
    if workload == "--recordings":
        for recording in names:
            print(recording, flush=True)
            for words in replays_differ((before, after), recording):
                print("  " + words)
                wrong += 1
        sys.exit(bool(wrong))
    for load in LOADS:
        if names and not any(name in " ".join(load) for name in names):
            continue
        with tempfile.TemporaryDirectory() as directory:
            for words in compared((before, after), workload, load, directory):
                print("  " + words)
                wrong += 1
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
