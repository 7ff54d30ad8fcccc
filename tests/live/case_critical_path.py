"""--critical-path: shares of a process' time, compared with a complete trace of the same time."""
import math
import os
import time

from critical_truth import Threads, Trace, threads_of
from harness import START_S, STOP_S, case, check
from parts import Postgres

RATE_HZ = 100
SECONDS = 15
POINTS = 5  # percentage points by which a share may differ
ENDS = {"CPU": "CPU", "run queue": "run queue", "timer": "interrupt", "network": "interrupt", "interrupt": "interrupt",
        "not ended": "not ended"}


def kind_of(end):
    return "disk" if end.startswith("disk") else ENDS.get(end, end)


def clock_ahead_ns():
    """Nanoseconds by which UTC is ahead of the monotonic clock."""
    return time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def stamp_ns(stamp):
    whole, part = stamp.rstrip("Z").split(".")
    return int(time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) - time.timezone) * 10**9 + int(part.ljust(9, "0"))


def shares_told(rows):
    shares, total = {}, 0
    for row in rows:
        key = (kind_of(row["path_end"]), row["comm"])
        shares[key] = shares.get(key, 0) + int(row["weight_us"])
        total += int(row["weight_us"])
    return {key: 100.0 * value / total for key, value in shares.items()}


def compare(ctx, pid, seconds=SECONDS, peers=()):
    """Traces everything while tsnap samples; gives the shares of both, in per cent, by kind and thread."""
    trace = Trace("tsnap-test-%d" % os.getpid())
    ctx.at_end(trace.close)
    tool = ctx.plain("--csv", "--critical-path", pid, "-d", seconds, "-F", RATE_HZ)
    trace.begin()
    rows = tool.finish(0, START_S + seconds + STOP_S)
    ahead_ns, tids = clock_ahead_ns(), threads_of(pid)
    trace.end()
    stamps = [stamp_ns(row["timestamp"]) - ahead_ns for row in rows]
    check(len(rows) > seconds * RATE_HZ / 2, "%d rows in %d s: %s", len(rows), seconds, tool.err)
    check(stamps == sorted(stamps), "rows are not in the order of time")
    threads, exact = Threads(trace.events, peers), {}
    for tid in tids:
        threads.path(tid, stamps[0], stamps[-1], exact)
    total = sum(exact.values())
    return shares_told(rows), {key: 100.0 * value / total for key, value in exact.items()}, rows


def differences(told, exact):
    return sorted((abs(told.get(key, 0) - exact.get(key, 0)), key, told.get(key, 0), exact.get(key, 0))
                  for key in set(told) | set(exact))


def held_against(what, told, exact, count=math.inf):
    """Compares shares. count: number of samples, if three standard errors of that many are allowed, too."""
    worst = differences(told, exact)[::-1]
    print("# critical path of %s (told, exact): %s" % (what, "; ".join("%s of %s %.1f %.1f" % (key[0], key[1], have, want)
                                                                       for _, key, have, want in worst if max(have, want) >= 1)))
    for points, key, have, want in worst:
        error = 100 * 3 * math.sqrt(want / 100 * (1 - want / 100) / count)
        check(points <= POINTS + error, "%s: %s of %s: %.1f %% told, %.1f %% exact (3 standard errors: %.1f)", what, *key, have, want, error)


@case(alone=True)
def critical_path(ctx):
    """A client whose server computes, sleeps, writes to a disk and waits for a mutex: shares as in a complete trace."""
    workload = ctx.workload("path", file=os.path.join(ctx.temporary(), "synced"))
    told, exact, rows = compare(ctx, int(workload["client"]))
    held_against("a client", told, exact)
    for want in (("CPU", "path-client"), ("CPU", "path-server"), ("CPU", "path-holder"), ("interrupt", "path-server")):
        check(told.get(want, 0) > 1, "no %s of %s: %s", want[0], want[1], told)
    paths = {row["path"] for row in rows}
    check("path-client read> path-server futex> path-holder" in paths, "paths: %s", paths)
    check({row["path_of"] for row in rows} == {"path-client"}, "whose path: %s", {row["path_of"] for row in rows})


@case(alone=True, thorough=True)
def critical_path_of_postgres(ctx):
    """A client of PostgreSQL, whose server waits for the disk: shares as in a complete trace, by TCP and by a UNIX socket."""
    server = Postgres(ctx)
    server.fill(ctx)
    for name, host in ("TCP", ()), ("a UNIX socket", ("-h", server.directory)):
        game = server.pgbench(ctx, *host, "-n", "-N", "-c", 1, "-T", 600)
        told, exact, rows = compare(ctx, game.pid, peers=("pgbench", "postgres"))
        held_against("pgbench by " + name, told, exact, len(rows))
        check(sum(part for (_, comm), part in told.items() if comm == "postgres") > 20, "nothing of the server: %s", told)
        game.end()
