"""--against: what changed between two recordings of which one thing differs, beside noise; and of the same load, where nothing did."""
import json
import os
import subprocess

from case_memory import slow_group
from case_scan_time import cpu_group
from harness import SLOW, START_S, STOP_S, case, check, wait_until
from parts import Postgres

SECONDS, OFTEN_SECONDS = 12, 36  # a third more of one function among the noise is clear after the second time only
PREFERRED = -15  # nice value
QUOTA_US = 5000  # in each period of 100 ms
NOISE = {"bursts": 2, "burst_us": 300, "nap_us": 20000, "pairs": 0, "syncs": 0, "spins": 0}
SERVICE = {"threads": 4, "period_us": 60000, "alpha_us": 500, "beta_us": 1000}
EXTRA = {"threads": 1, "period_us": 20000, "alpha_us": 4000, "as": "extra"}
BUSY = {"threads": 2, "period_us": 40000, "alpha_us": 4000}

# What is planted: options of the service before and after, or its processes; and a pattern of values, of which the first change must have
# one, and whether there is more of it.
PLANTED = {
    "lock": ({"threads": 6, "hold_us": 2000}, {"threads": 6, "hold_us": 8000}, {"syscall": "futex"}, True),
    "disk": ({"dir": True}, {"dir": True, "slow": True}, {"state": "D", "syscall": "pread64"}, True),
    "new": ({}, {"extra": True}, {"commsum": "extra"}, True),
    "gone": ({"extra": True}, {}, {"commsum": "extra"}, False),
    "function": (dict(BUSY, beta_us=12000), dict(BUSY, beta_us=15600), {"ufunc": "beta"}, True),
    "quota": ({}, {"quota": True}, {"state": "RQ"}, True),
    "index": ({"queries": True}, {"queries": True, "lost": True}, {"querysum": "select v from t where k = ?", "commsum": "postgres"}, True),
}


class Queries:
    """A backend of PostgreSQL with a statement, 40 times a second."""

    def __init__(self, ctx, server, lost):
        server.ask_once("drop index if exists t_k" if lost else "create index if not exists t_k on t (k)")
        script = server.directory + "/script"
        with open(script, "w", encoding="ascii") as file:
            file.write("\\set wanted random(1, 100000)\nselect v from t where k = :wanted;\n")
        self.client = server.pgbench(ctx, "-n", "-f", script, "-c", 1, "-R", 40, "-T", 3600)
        self.tgid, = wait_until(lambda: server.clients("select v from t%"), 20 * SLOW, "a backend")

    def end(self):
        self.client.end()


def preferred(enter=None):
    """Lets a process have the CPUs whenever it wants them: what else runs on the host is no change of these loads. enter: puts it into a
    group."""
    os.setpriority(os.PRIO_PROCESS, 0, PREFERRED)
    if os.path.exists("/proc/self/autogroup"):
        with open("/proc/self/autogroup", "w", encoding="ascii") as file:
            file.write(str(PREFERRED))
    if enter:
        enter()


class Pairs:
    """Records loads side by side, each with its own service and noise."""

    def __init__(self, ctx, kinds, seconds=SECONDS, groups=None, server=None):
        self.ctx, self.kinds, self.seconds, self.folder = ctx, kinds, seconds, ctx.temporary()
        self.slow, self.quota = groups or (None, None)
        self.server = server

    def directory(self, kind, which):
        return "%s/%s.%s" % (self.folder, kind, which)

    def started(self, kind, wanted):
        """The workloads of a load."""
        ctx = self.ctx
        options = dict(SERVICE, **{key: value for key, value in wanted.items() if key not in ("dir", "slow", "extra", "quota", "queries", "lost")})
        if "dir" in wanted:
            options["dir"] = self.folder
        enter = self.quota if "quota" in wanted else None
        made = ctx.workloads([("service", options)], popen={"preexec_fn": lambda: preferred(enter)})
        made += ctx.workloads([("mixed", dict(NOISE, dir=self.folder))], popen={"preexec_fn": preferred})
        if "extra" in wanted:
            made += ctx.workloads([("service", EXTRA)], popen={"preexec_fn": preferred})
        if "slow" in wanted:
            self.slow(int(made[0]["pid"]))
        if "queries" in wanted:
            made.append(Queries(ctx, self.server, "lost" in wanted))
        return made

    def record(self, which):
        """Makes a recording of each kind."""
        loads, recorders = [], []
        for kind in self.kinds:
            before, after = PLANTED[kind][:2]
            made = self.started(kind, after if which == "after" else before)
            loads += made
            columns = "ufunc,querysum" if kind == "index" else "ufunc"
            recorders.append(self.ctx.plain("-o", self.directory(kind, which), "-F", 20, "-d", self.seconds, "-G", columns, "-p",
                                            ",".join(str(workload.tgid) for workload in made)))
        for recorder in recorders:
            recorder.finish_plain(0, START_S + self.seconds + STOP_S)
        for load in loads:
            load.end()

    def compared(self, kind, which, against):
        """The changes of one recording against another, and the object that tells about the comparison."""
        tool = self.ctx.plain("--replay", self.directory(kind, which), "--against", self.directory(kind, against), "--findings", "--json")
        tool.finish_plain(0, START_S + STOP_S)
        objects = [json.loads(line) for line in tool.out.decode().splitlines()]
        about = [told for told in objects if told["finding"] == "compared"]
        check(len(about) == 1 and "refused" not in about[0], "not compared: %s", about)
        return [told for told in objects if told["finding"] == "changed"]


def is_planted(kind, told):
    values, more = PLANTED[kind][2:]
    named = dict(told["also"], **told["set"])
    return any(named.get(column) == value for column, value in values.items()) and (told["difference_s"] > 0) == more


def faults_of(pairs, kinds, twice):
    """(What is not found first, what is found where nothing changed), as words."""
    missed, invented = [], []
    for kind in kinds:
        told = pairs.compared(kind, "after", "before")
        if not told or not is_planted(kind, told[0]):
            missed.append("%s: %s" % (kind, [change["text"] for change in told] or "nothing"))
        if twice:
            invented += ["%s: %s" % (kind, change["text"]) for change in pairs.compared(kind, "again", "before")]
    return missed, invented


@case(alone=True)
def changed(ctx):
    """A lock that is held longer and a new process are each found first, and nothing is in the same load again. The text has the same
    changes, and how they were normalised; two halves of a recording do not differ, and what is too short is not compared."""
    kinds = ["lock", "new"]
    pairs = Pairs(ctx, kinds)
    for which in ("before", "again", "after"):
        pairs.record(which)
    missed, invented = faults_of(pairs, kinds, True)
    check(not missed and not invented, "not first: %s; invented: %s", missed, invented)
    tool = ctx.plain("--replay", pairs.directory("new", "after"), "--against", pairs.directory("new", "before"))
    tool.finish_plain(0, START_S + STOP_S)
    text = " ".join(tool.out.decode().split())
    check("What changed against" in text and " 1. commsum extra: +" in text and "; new" in text, "%s", tool.out.decode()[-1500:])
    check("per second of time" in text or "per work done" in text, "not told how it is normalised: %s", tool.out.decode()[-1500:])
    parts_compared(ctx, pairs)


def parts_compared(ctx, pairs):
    """Compares two halves of a recording, and a time of it that is too short."""
    rows = subprocess.run([ctx.options.tsnap, "--replay", pairs.directory("new", "after"), "--csv", "-g", "timestamp"], capture_output=True,
                          check=True).stdout.decode().split()
    middle = sorted(rows[1:])[len(rows) // 2].strip('"')
    halves = ctx.plain("--replay", pairs.directory("new", "after"), "--from", middle, "--against", ".." + middle, "--findings", "--json")
    halves.finish_plain(0, START_S + STOP_S)
    about = [json.loads(line) for line in halves.out.decode().splitlines() if '"compared"' in line]
    check(about and about[0]["changes"] == 0 and "refused" not in about[0], "two halves differ: %s", halves.out.decode()[-1500:])
    soon = sorted(rows[1:])[12].strip('"')
    short = ctx.plain("--replay", pairs.directory("new", "after"), "--to", soon, "--against", pairs.directory("new", "before"))
    short.finish_plain(0, START_S + STOP_S)
    check("not compared: the time after is too short" in " ".join(short.out.decode().split()), "%s", short.out.decode()[-800:])


@case(alone=True, thorough=True, long=True)
def changed_often(ctx):
    """Of 21 pairs with one change each that is the first one in 95 of 100; of 21 pairs of the same load none has any."""
    missed, invented, total = [], [], 0
    groups = slow_group(ctx, ctx.temporary()), cpu_group(ctx, QUOTA_US)
    server = Postgres(ctx)
    server.ask_once("create table t (k int, v int); insert into t select i, i from generate_series(1, 100000) i")
    for kinds in [["lock", "disk", "new"], ["gone", "quota", "index"], ["function"]] * 3:
        pairs = Pairs(ctx, kinds, OFTEN_SECONDS, groups, server)
        for which in ("before", "again", "after"):
            pairs.record(which)
        lacking, more = faults_of(pairs, kinds, True)
        missed += lacking
        invented += more
        total += len(kinds)
    check(len(missed) * 20 <= total and not invented, "of %d: not first: %s; invented: %s", total, missed, invented)


changed_often.limit_s = 1500  # instead of run_live.LIMIT_S
