"""What programs publish for OpenTelemetry (src/apps/otel.c): which service a process is, and which trace each of its threads works for.
tests/stack/context.c knows what each of its threads publishes."""
import collections
import csv
import datetime
import io
import os
import re
import shutil
import subprocess
import time

import truth
from case_stacks import directory_of
from harness import SLOW, Findings, Process, Skip, case, check, number, unescape, wait_until
from parts import Postgres, Session

COLUMNS = "comm,state,syscall,arg2,trace_id,span_id,context,service,service_instance"
# the program, and the library that it loads: the ways in which a thread's variable can be found
WAYS = (("context_static",), ("context_program",), ("context_fixed",), ("context_linked",),
        ("context_loader", "context_offset.so"), ("context_loader", "context_pair.so"), ("context_loader", "context_descriptor.so"),
        ("context_loader", "context_largepair.so"), ("context_loader", "context_large.so"),
        ("context_loader", "context_bare.so"),
        ("context_muslstatic",), ("context_muslprogram",), ("context_muslloader", "context_musl.so"))


def context_start(ctx, way, changing=4, computing=0):
    """Starts a program: (process, {tid: kind}); None: it is not built here."""
    directory = directory_of(ctx)
    paths = [os.path.join(directory, name) for name in way]
    if not all(map(os.path.exists, paths)):
        return None
    process = Process([paths[0], paths[1] if paths[1:] else "-", str(changing), str(computing)])
    ctx.started.append(process)
    wait_until(lambda: process.out.endswith(b"\n") or process.code is not None, 20 * SLOW, "%s ready" % (way,))
    check(process.code is None, "%s: %s", way, process.err)
    return process, {int(tid): kind for tid, kind in (word.split(":") for word in process.out.decode().split()[1:])}


def expected_of(tid, kind, row):
    """(trace, span, route) that the thread has when the sample is of that sleep; None: it has none."""
    value = int(row["arg2"] or "0", 16)
    if kind == "steady":
        return "%016x%016x" % (tid, tid), "%016x" % (tid + 1), "/tid/%d" % tid
    if kind in ("pointer", "record") and value % 7:
        return "%016x%016x" % (tid, value), "%016x" % value, "/n/%d" % value
    return None


def compare(find, rows, kinds, seen, name):
    """Compares each sample of a thread that sleeps: with what its own call says that it published."""
    for row in rows:
        tid = number(row, "tid")
        kind = kinds.get(tid)
        if not kind or row["state"] != "S" or kind in ("pointer", "record") and row["syscall"] != "futex":
            continue
        expected = expected_of(tid, kind, row)
        got = row["trace_id"], row["span_id"], unescape(row["context"]).decode()
        if not expected:
            find.expect(got == ("", "", ""), "%s: %d (%s) has %s: %s", name, tid, kind, got, row)
            seen[kind, "none"] += 1
            continue
        trace, span, route = expected
        words = "method=GET, route=%s" % route
        # a wait that ended while it was read has nothing
        if got == ("", "", "") and kind != "steady":
            seen[kind, "lost"] += 1
            continue
        find.expect(got[:2] == (trace, span) and got[2] in (words, words + ", late=yes"), "%s: %d (%s): %s, not %s", name, tid, kind, got,
                    expected)
        seen[kind, "late" if "late" in got[2] else "right"] += 1


@case
def context_of_threads(ctx):
    """Threads that sleep have the trace, the span and the attributes that they publish, in each kind of thread-local storage; those that
    publish none, or nothing that is valid, have none. A key that is new is found, and so is another instance of the service."""
    started = [(way, context_start(ctx, way)) for way in WAYS]
    started = [(way, *made) for way, made in started if made]
    if not started:
        raise Skip("the programs are not built")
    tool = ctx.stream("-a", "-F", 20, "-p", ",".join(str(process.pid) for _, process, _ in started), columns=COLUMNS)
    tool.wait_scans(100)
    for _, process, _ in started:
        process.say("more")
    tool.wait_scans(len(tool.scans()) + 60)
    rows, find = tool.interrupt(), Findings()
    times = sorted({row["timestamp"] for row in rows})
    for way, process, kinds in started:
        mine = [row for row in rows if number(row, "pid") == process.pid]
        # the process is looked at in the first scans, a few in each
        whole = [row for row in mine if row["timestamp"] >= times[30]]
        seen, name = collections.Counter(), " ".join(way)
        compare(find, whole, kinds, seen, name)
        find.expect(min(seen["steady", "right"], seen["steady", "late"]) > 200, "%s: steady threads: %s", name, seen)
        for kind in ("pointer", "record"):
            right = seen[kind, "right"] + seen[kind, "late"]
            find.expect(right > 50 and seen[kind, "late"] and seen[kind, "lost"] <= right // 2, "%s: %s: %s", name, kind, seen)
            find.expect(seen[kind, "none"], "%s: no sample of a thread that publishes nothing just now: %s", name, seen)
        find.expect({(unescape(row["service"]).decode(), row["service_instance"]) for row in whole
                     if kinds.get(number(row, "tid")) == "steady"} ==
                    {("shop é", "instance-%d-%d" % (process.pid, generation)) for generation in (0, 1)}, "%s: another service: %s", name,
                    mine[-1])
    find.close()


@case(alone=True)
def context_on_cpu(ctx):
    """Each sample of a thread that computes has the trace and attributes that it had when its call's arguments were read, in the same
    interrupt, or none, where that had none; by a distance from the thread pointer, and by a library's block. From 5.10 on. No look finds a
    thread whose CPU tsnap itself needs: of one on each of two CPUs, half of the samples."""
    find = Findings()
    for way in ("context_program",), ("context_loader", "context_large.so"):
        made = context_start(ctx, way, 0, 2)
        if not made:
            raise Skip("the programs are not built")
        process, kinds = made
        tool = ctx.stream("-F", 100, "-p", process.pid, columns=COLUMNS)
        tool.wait_scans(int(400 * SLOW))
        rows, seen = tool.interrupt(), collections.Counter()
        process.end()
        if "looks at CPUs" in tool.err:
            raise Skip("no look at CPUs here")
        for row in rows:
            tid = number(row, "tid")
            if kinds.get(tid) != "computes" or row["state"] != "ON" or row["syscall"] != "getpriority":
                continue
            value, got = int(row["arg2"], 16), (row["trace_id"], row["span_id"], row["context"])
            if not got[0]:
                find.expect(got == ("", "", ""), "a part of a record: %s", row)
                seen["none" if value % 7 == 0 else "lost"] += 1
                continue
            find.expect(value % 7 and got == ("%016x%016x" % (tid, value), "%016x" % value, "method=GET, route=/n/%d" % value),
                        "%s while it computed for %d", got, value)
            seen["right"] += 1
        find.expect(seen["right"] > 30 and seen["none"], "%s: %s", way, seen)
    find.close()


@case(thorough=True, alone=True)
def context_changes(ctx):
    """Of 100 000 samples of threads that change their context all the time none has one of another wait."""
    way = "context_loader", "context_large.so"
    made = context_start(ctx, way, 400)
    if not made:
        raise Skip("the programs are not built")
    process, kinds = made
    tool = ctx.stream("-a", "-F", 50, "-p", process.pid, columns=COLUMNS)
    tool.wait_scans(int(800 * SLOW))
    find, seen = Findings(), collections.Counter()
    compare(find, tool.interrupt(), kinds, seen, " ".join(way))
    find.close()
    right = sum(count for (kind, what), count in seen.items() if kind in ("pointer", "record") and what != "lost")
    check(right > 100000, "only %d samples: %s", right, seen)


@case
def context_in_places(ctx):
    """Threads have what they publish also if the program's or the library's file is stripped, gone, or another one by now, and in a root and a
    pid namespace of their own."""
    made, directory, started = directory_of(ctx), ctx.temporary(), {}
    if not os.path.exists(made + "/context_large.so"):
        raise Skip("the programs are not built")
    for name in "context_static", "context_program", "context_loader", "context_large.so":
        if os.path.exists(os.path.join(made, name)):
            shutil.copy(os.path.join(made, name), directory)
        if name != "context_static":  # that has no dynamic symbols
            subprocess.run(["strip", os.path.join(directory, name)], check=True)
    inside = ["unshare", "--pid", "--fork", "--kill-child", "--root", directory, "/context_static", "-"]
    for name, argv in (("gone", [directory + "/context_program", "-"]), ("inside", inside),
                       ("replaced", [directory + "/context_loader", directory + "/context_large.so"])):
        if name == "inside" and not os.path.exists(made + "/context_static"):
            continue
        process = started[name] = Process(argv)
        ctx.started.append(process)
        wait_until(lambda: process.out.endswith(b"\n") or process.code is not None, 20 * SLOW, name)
        check(process.code is None, "%s: %s", name, process.err)
    os.remove(directory + "/context_program")
    os.remove(directory + "/context_large.so")
    shutil.copy(os.path.join(made, "context_offset.so"), directory + "/context_large.so")
    pids = {max(truth.children(process.pid)) if name == "inside" else process.pid: name for name, process in started.items()}
    tool = ctx.stream("-a", "-F", 20, "-p", ",".join(map(str, pids)), columns=COLUMNS)
    tool.wait_scans(80)
    rows, find, seen = tool.interrupt(), Findings(), collections.Counter()
    times = sorted({row["timestamp"] for row in rows})
    for pid, name in pids.items():
        kinds = dict(word.split(":") for word in started[name].out.decode().split()[1:])
        for tid in map(int, os.listdir("/proc/%d/task" % pid)):
            inner = int(truth.read("/proc/%d/status" % tid).split("NSpid:")[1].split("\n")[0].split()[-1])
            if kinds.get(str(inner)) != "steady":
                continue
            trace, span, route = expected_of(inner, "steady", {"arg2": ""})
            for row in rows:
                if number(row, "tid") == tid and row["state"] == "S" and row["timestamp"] >= times[40]:
                    got = row["trace_id"], row["span_id"], unescape(row["context"]).decode()
                    find.expect(got == (trace, span, "method=GET, route=" + route), "%s: %d: %s", name, inner, got)
                    seen[name] += 1
    find.close()
    check(len(seen) == len(started) and min(seen.values()) > 100, "%s", seen)


VARIABLES = (("number", "context_number", "4711"), ("small", "context_small:i8", "-3"), ("word", "context_text:str", "hello é"),
             ("name", "context_outer->16->8->0:str", "Mary"), ("code", "context_outer->16->8->0:hex", None),
             ("none", "context_outer->0->0:str", ""), ("own", "context_tid", None))


@case
def context_of_variables(ctx):
    """--context: variables of a program, thread-local ones, too, through pointers and of each type, in programs with and without dynamic
    symbols; a pointer that leads nowhere has no value. What is not found is named, with the nearest symbol."""
    for way in (("context_program",), ("context_static",), ("context_muslprogram",)):
        made = context_start(ctx, way)
        if not made:
            continue
        process, kinds = made
        words = [word for name, what, _ in VARIABLES for word in ("--context", "%s = var %s:%s" % (name, way[0], what))]
        tool = ctx.stream("-a", "-F", 20, "-p", process.pid, *words, columns="comm,state," + ",".join(name for name, _, _ in VARIABLES))
        tool.wait_scans(40)
        rows, find = tool.interrupt(), Findings()
        times = sorted({row["timestamp"] for row in rows})
        mine = [row for row in rows if row["timestamp"] >= times[10] and row["state"] == "S" and kinds.get(number(row, "tid")) == "steady"]
        find.expect(len(mine) > 300, "%s: %d rows", way, len(mine))
        for row in mine:
            for name, _, value in VARIABLES:
                value = row["tid"] if name == "own" else "0x%x" % int.from_bytes(b"Mary\0", "little") if name == "code" else value
                got = "0x%x" % (int(row[name] or "0", 16) & 0xffffffffff) if name == "code" else unescape(row[name]).decode()
                find.expect(got == value, "%s: %s is %s, not %s", way, name, got, value)
        find.close()
        wrong = ctx.stream("-a", "-d", 2, "-p", process.pid, "--context", "x = var %s:context_numbr" % way[0], "--context",
                           "y = var libnone.so:a", columns="x,y")
        wrong.wait(60 * SLOW)
        check("x: " in wrong.err and "has no variable 'context_numbr'; nearest: context_number" in wrong.err, "%s: %s", way, wrong.err)
        check("y: no process that was sampled has mapped a file 'libnone.so'" in wrong.err, "%s: %s", way, wrong.err)
    for spec, words in (("a", "after the name comes ="), ("a = b", "after = comes var"), ("tid = var a:b", "there is a column tid already"),
                        ("a = var b", "a file and a colon"), ("a = var b:c:u128", "nearest: u8"), ("a = var b:c->x", "a number of bytes"),
                        ("A = var b:c", "small letters"), ("a = var b:c:u8 d", "there is more")):
        tool = ctx.plain("--context", spec, "-d", 1)
        check(tool.wait(20 * SLOW) == 2 and words in tool.err and len(tool.err.splitlines()) == 1, "%s: %s", spec, tool.err)


def labels_of(name, ms):
    """The labels that the program gives a thread which waits for so long, as context has them."""
    if ms in (55, 600001):
        return ""
    others = 0 if name == "labels_cgo" else 1 if ms == 600000 else {0: 0, 1: 5, 2: 20}[(ms - 3) % 3]
    return ", ".join(["größe%02d=%d" % (i, ms + i) for i in range(others)] + ["ms=%d" % ms])


@case
def context_of_goroutines(ctx):
    """Each sample of a thread of Go in a call has the labels of its goroutine, or none, if that has none: also position-independent, and in C;
    goroutines that change their labels all the time have no other labels. So has a stripped program."""
    seen, find, started = collections.Counter(), Findings(), {}
    for name in "labels_go", "labels_gopie", "labels_cgo", "labels_gostripped":
        path = os.path.join(directory_of(ctx), name)
        if not os.path.exists(path):
            raise Skip("no Go here")
        started[name] = Process([path, "20"])
        ctx.started.append(started[name])
        wait_until(lambda: started[name].out or started[name].code is not None, 20 * SLOW, "%s ready" % name)
    tool = ctx.stream("-a", "-F", 50, "-d", 8, "-p", ",".join(str(process.pid) for process in started.values()),
                      columns="comm,state,syscall,arg2,context")
    rows = tool.finish(0, 60)
    for row in rows:
        name = {process.pid: name for name, process in started.items()}[number(row, "pid")]
        ms, got = int(row["arg2"] or "0", 16), unescape(row["context"]).decode()
        if row["syscall"] != "poll" or row["state"] != "S":
            continue
        expected = labels_of(name, ms)
        # a map of so many labels is made as it grows, and may never have been moved as a whole
        kind = (name, "none" if not expected else "others" if "größe05" in expected else "right")
        seen[kind] += got == expected
        seen[kind + ("lost",)] += got != expected and not got
        find.expect(got in ("", expected), "%s: %d ms: %r", name, ms, got)
    find.close()
    for name in started:
        check(seen[name, "right"] > 100 and seen[name, "none"] > 100, "%s", seen)
        # waits of a few ms are often over before they are read
        check(seen[name, "right", "lost"] < seen[name, "right"] / 3, "%s", seen)


@case
def context_of_parked(ctx):
    """--goroutines has the labels of goroutines without a thread if -G context asks for them, and counts them apart; else it has none. With
    --query-text off they can't be asked for."""
    path = os.path.join(directory_of(ctx), "labels_go")
    if not os.path.exists(path):
        raise Skip("no Go here")
    process = Process([path, "20"])
    ctx.started.append(process)
    wait_until(lambda: process.out or process.code is not None, 20 * SLOW, "ready")
    parked = {"parked=0": 3, "parked=1": 2, "": 1}
    for more, expected in ((["-G", "context"], parked), ([], {"": 6})):
        tool = ctx.plain("--goroutines", "-p", process.pid, "--csv", *more)
        tool.finish_plain(0, 30 * SLOW)
        rows = [row for row in csv.DictReader(io.StringIO(tool.out.decode())) if "main.park" in row["stack"]]
        got = collections.Counter()
        for row in rows:
            got[row.get("context", "")] += int(row["count"])
        check(got == expected and ("context" in rows[0]) == bool(more), "%s: %s", more, rows)
    tool = ctx.plain("--goroutines", "-p", process.pid, "-G", "context")
    tool.finish_plain(0, 30 * SLOW)
    text = tool.out.decode()
    check("CONTEXT  STACK" in text and "parked=0  main." in text and "größe00=600000, ms=600000  main." in text, "%s", text)
    tool = ctx.plain("--goroutines", "-p", process.pid, "-G", "context", "--query-text", "off")
    check(tool.wait(30 * SLOW) == 2 and not tool.out, "%s%s", tool.out, tool.err)


def time_of(text):
    """Seconds since 1970 of a timestamp."""
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc).timestamp()


def halves(rows):
    """The share of the samples of a thread that spins which have a context."""
    mine = [row for row in rows if row["comm"] == "held_halves" and row["state"] in ("ON", "RQ")]
    return len(mine), sum(row["ctx"] == "half" for row in mine) / max(len(mine), 1)


@case(alone=True)
def context_of_probes(ctx):
    """--context ... probe: each sample has what its thread has between the two probes, a text and a number: asleep, on a CPU, and where
    that changes every 50 us. Threads that took the id of one which ended before the second probe have none, nor has another program."""
    workload = ctx.workload("held")
    file = os.readlink("/proc/%d/exe" % workload.tgid)
    tool = ctx.stream("-a", "-F", 50, "-p", workload.tgid, "--descendants", "--context",
                      "ctx = probe p:%s:probed_begin(arg1:str) .. probed_end" % file,
                      "--context", "job = probe p:%s:probed_begin(arg2:bytes) if arg2 > 1 .. p:%s:probed_end" % (file, file),
                      "--probe-budget", 99, columns="comm,state,syscall,arg2,ctx,job")
    tool.wait_scans(5)
    workload.say("go")
    done = workload.wait_done()
    tool.wait_scans(300)
    rows, find, seen = tool.interrupt(), Findings(), collections.Counter()
    for row in rows:
        who = row["comm"]
        if who == "held_sleeps" and row["state"] == "S" and row["syscall"] == "futex":
            number = int(row["arg2"] or "0", 16)
            text = "thread %s, job %d" % (row["tid"], number) if number else ""
            find.expect((row["ctx"], row["job"]) == (text, str(number) if number > 1 else ""), "not %s: %s", text, row)
            seen["job" if number else "none"] += 1
        elif who == "held_spins" and row["state"] != "S" and (row["ctx"] or seen[who]):  # it may wait for a CPU before it begins
            find.expect(row["ctx"] == "spins" and not row["job"], "%s", row)
            seen[who] += 1
        elif who in ("held_fresh", "sleep") and row["state"] == "S":
            find.expect(not row["ctx"] and not row["job"], "%s", row)
            seen[who] += 1
    find.close()
    count, share = halves(rows)
    check(min(seen[key] for key in ("job", "none", "held_spins", "held_fresh", "sleep")) >= 30, "%s", dict(seen))
    check(count >= 30 and abs(share - 0.5) < 0.15 + 1 / count ** 0.5, "%.2f of %d samples of a thread that has a context half of the time", share,
          count)
    check(done["reused"] != "0" or not os.path.exists("/proc/sys/kernel/ns_last_pid"), "no id was reused")


@case(alone=True)
def context_recorded(ctx):
    """A recording has a context's column, and a replay with the same --context shows it; what is wrong is one line."""
    workload, directory = ctx.workload("held"), ctx.temporary()
    file = os.readlink("/proc/%d/exe" % workload.tgid)
    spec = "ctx = probe p:%s:probed_begin(arg1:str) .. probed_end" % file
    tool = ctx.plain("-a", "-F", 20, "-p", workload.tgid, "-o", directory, "-G", "ctx", "--context", spec,
                     "--probe-budget", 99)
    wait_until(lambda: os.listdir(directory) or tool.code is not None, 20 * SLOW, "a file of the recording")
    time.sleep(1)
    workload.say("go")
    workload.wait_done()
    time.sleep(2)
    tool.interrupt()
    rows = ctx.plain("-a", "--csv", "-g", "tid,comm,state,ctx", "--replay", directory, "--context", spec).finish(0, 20 * SLOW)
    sleeps = [row["ctx"] for row in rows if row["comm"] == "held_sleeps" and row["ctx"]]
    check(len(set(sleeps)) > 10 and all(re.match(r"thread \d+, job \d+$", words) for words in sleeps), "%s", sleeps[:10])
    for words, spec in (("no function 'probed_ends'; the nearest is 'probed_end'", "x = probe p:%s:probed_begin(arg1) .. probed_ends" % file),
                        ("there is a column comm already", "comm = probe p:%s:probed_begin(arg1) .. probed_end" % file),
                        ("'..' and the probe that ends it", "x = probe p:%s:probed_begin(arg1)" % file)):
        tool = ctx.plain("-d", 1, "--context", spec)
        tool.wait(20 * SLOW)
        check(tool.code == 2 and words in tool.err and len(tool.err.splitlines()) == 1, "%s: %s", spec, tool.err)


@case
def context_of_postgres(ctx):
    """--context between PostgreSQL's own USDT probes: sessions have the statement that pg_stat_activity says they run, and none while they are
    idle, also after a statement that failed."""
    server = Postgres(ctx)
    sessions = [Session(server, ctx) for _ in range(3)]
    observer, find, told = Session(server, ctx), Findings(), {}
    spec = "stmt = probe u:postgres:query__start(arg1:str) .. query__done | transaction__abort"
    failing = Session(server, ctx)
    tool = ctx.stream("-a", "-F", 50, "-p", ",".join(str(session.backend) for session in sessions + [failing]), "--context", spec,
                      columns="state,app_state,query,stmt")
    tool.wait_scans(5)
    failing.say("select 1 / (select 0 from pg_sleep(0.3));")
    for turn in range(8):
        for at, session in enumerate(sessions):
            session.say("select pg_sleep(0.%d) /* job %d of %d: %s */;" % (3 + at, turn, at, "long " * 60 * (at == 2)))
        until = time.time() + 0.9
        while time.time() < until:
            lines = observer.ask("select pid, extract(epoch from clock_timestamp()), extract(epoch from query_start), encode(query::bytea, 'hex') "
                              "from pg_stat_activity where state = 'active' and query like 'select pg_sleep%'")
            for line in lines.splitlines():
                pid, now, start, query = line.split("|")
                told[int(pid), float(start), bytes.fromhex(query)] = float(now)
            time.sleep(0.05)
    rows, seen = tool.interrupt(), collections.Counter()
    for row in rows:
        row["at"] = time_of(row["timestamp"])
    for (pid, start, query), last in told.items():
        words = query.decode()
        expected = words if len(words) < 255 else words[:255] + "..."
        for row in rows:
            if number(row, "pid") == pid and start + 0.02 < row["at"] < last:
                find.expect(unescape(row["stmt"]).decode() == expected, "%d: %r, not %r", pid, row["stmt"], expected)
                seen["cut" if "..." in expected else "whole"] += 1
    for row in rows:
        if row["state"] == "S" and row["app_state"] == "idle":
            find.expect(not row["stmt"], "idle, but %s", row)
            seen["failed" if number(row, "pid") == failing.backend else "idle"] += 1
        elif row["state"] == "S" and row["query"].startswith("select pg_sleep"):
            find.expect(unescape(row["stmt"])[:200] == unescape(row["query"])[:200], "%s", row)
            seen["by memory"] += 1
    find.close()
    check(min(seen[key] for key in ("cut", "whole", "idle", "failed", "by memory")) >= 50, "%s", dict(seen))
