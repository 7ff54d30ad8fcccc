"""Checks of the workloads themselves against /proc: they are the ground truth of everything else."""
import os

import case_state
import truth
from harness import STOP_S, WORKLOAD_S, Skip, check, wait_until

TABLE = []


def self_case(fn):
    fn.how = {}
    TABLE.append(fn)
    return fn


@self_case
def blocked_threads(ctx):
    """Every blocked workload is in the state, system call and file that it reports, with these arguments."""
    for workload in case_state.blocked_workloads(ctx):
        name, thread = workload.name, truth.Thread(workload.tid)
        check(thread.letter == workload["state"], "%s: %s", name, thread.letter)
        if "nr" in workload:
            check(thread.nr == workload.number("nr"), "%s: system call %s", name, thread.nr)
        if "args" in workload:
            check(thread.args == [int(value, 0) for value in workload["args"].split(",")], "%s: %s", name, thread.args)
        if "fd" in workload:
            file = os.readlink("/proc/%d/fd/%s" % (workload.tgid, workload["fd"]))
            check(file == workload["file"], "%s: %r", name, file)


@self_case
def no_call_is_left_out(ctx):
    """All of the calls that the workload `sleep` lists can be held on this host."""
    names = case_state.sleep_calls(ctx)
    ready = [w.name for w in ctx.workloads([("sleep", {"call": name}) for name in names])]
    missing = sorted(set(names) - set(ready))
    if missing:
        raise Skip("not here: " + ", ".join(missing))
    check(len(ready) >= 18, "only %d calls", len(ready))


@self_case
def spinners_share(ctx):
    """Two spinners on one CPU both run and both wait, in equal parts."""
    workload = ctx.workload("spin2")
    tids = [workload.tid, workload.number("tid2")]
    if truth.schedstat(tids[0]) is None:
        raise Skip("this kernel counts no run queue time (schedstat)")
    before = [truth.schedstat(tid) for tid in tids]

    def ran_enough():
        after = [truth.schedstat(tid) for tid in tids]
        return all(b[0] - a[0] > 3e8 for a, b in zip(before, after)) and after
    after = wait_until(ran_enough, WORKLOAD_S, "0.3 s of CPU time each")
    ran = [b[0] - a[0] for a, b in zip(before, after)]
    waited = [b[1] - a[1] for a, b in zip(before, after)]
    check(min(ran) > 0.35 * max(ran), "they ran %s", ran)
    check(min(w / (r + w) for r, w in zip(ran, waited)) > 0.35, "they waited %s", waited)


@self_case
def burst_accounts(ctx):
    """A burst's own accounts are the kernel's."""
    workload = ctx.workload("burst")
    before = truth.Thread(workload.tid), truth.schedstat(workload.tid)
    workload.say("go")
    done = workload.wait_done()
    after = truth.Thread(workload.tid), truth.schedstat(workload.tid)
    check(after[0].switches[0] - before[0].switches[0] >= 52, "voluntary switches: %s", after[0].switches)
    check(after[0].switches[1] - before[0].switches[1] >= 10, "involuntary switches: %s", after[0].switches)
    if after[1] is None:
        raise Skip("this kernel counts no CPU time in ns (schedstat)")
    ran = after[1][0] - before[1][0]
    check(abs(ran - int(done["cpu_ns"])) < 0.05 * ran + 1e6, "%d ns on CPU, its own clock says %s", ran, done["cpu_ns"])
    check(after[1][1] - before[1][1] > 0.3 * ran, "it waited only %d ns", after[1][1] - before[1][1])
    check(int(done["disk_ns"]) >= 150e6 and int(done["sleep_ns"]) >= 150e6, "%s", done)


@self_case
def names_and_execs(ctx):
    """Threads have the hostile names that the workload reports; exec changes the name, not the id."""
    workload = ctx.workload("hostile_comm")
    names = case_state.hostile_names(workload)
    check(len(names) >= 20, "only %d names", len(names))
    for tid, raw in names.items():
        got = truth.read("/proc/%d/comm" % tid, "rb")
        check(got == raw + b"\n", "%r, not %r", got, raw)
    for options in ({}, {"from": "thread"}):
        changer = ctx.workload("exec_change", **options)
        check(truth.read("/proc/%d/comm" % changer.tid) == "before_exec\n", "its first name")
        changer.say("exec")
        wait_until(lambda: len(changer.lines("ready")) == 2, STOP_S, "the exec")
        check(truth.read("/proc/%d/comm" % changer.tid) == "workload\n", "its second name")


@self_case
def crowds(ctx):
    """The crowd has the requested size, the storm is large; and all of their threads and processes end."""
    many = ctx.workload("many", threads=1500, pairs=3)
    family = truth.children(many.tgid)
    count = sum(len(truth.read_dir("/proc/%d/task" % pid)) for pid in family)
    check(count == 1500, "%d threads", count)
    check(len(truth.read_dir("/proc/%d/task" % many.tgid)) == 7, "the pairs")
    storm = ctx.workload("exit_storm")
    storm.say("300")
    done = storm.wait_done()
    check(int(done["forks"]) > 10 and int(done["threads"]) > 10, "%s", done)
    many.process.stdin.close()
    many.wait(STOP_S)
    wait_until(lambda: not any(os.path.exists("/proc/%d" % pid) for pid in family), STOP_S, "the crowd's end")


@self_case
def loops(ctx):
    """The workload that calls fsync in a loop and the two threads that wake each other do so, and report how often."""
    game, syncer, kernel = ctx.workloads([("pingpong", {}), ("fsync", {}), ("spin_kernel", {})])
    before = truth.Thread(game.tid).switches[0], truth.Thread(kernel.tid).ticks
    wait_until(lambda: truth.Thread(game.tid).switches[0] > before[0] + 1000, STOP_S, "a thousand rounds")
    wait_until(lambda: truth.Thread(kernel.tid).ticks > before[1] + 20, STOP_S, "its CPU time")
    check(int(game.finish()["rounds"]) > 1000, "rounds")
    done = syncer.finish()
    check(0 < int(done["sync_ns"]) <= int(done["ns"]) and int(done["rounds"]) > 0, "%s", done)


@self_case
def families(ctx):
    """A tree has a child and a grandchild, and gets more."""
    workload = ctx.workload("tree")
    check(truth.children(workload.tgid) == {workload.number("child"), workload.number("grandchild")}, "its children")
    workload.say("more")
    child = int(workload.wait_done()["child"])
    check(child in truth.children(workload.tgid), "the new child")
    leader = ctx.workload("zombie_leader")
    check(truth.Thread(leader.number("tid2")).letter == "S", "the orphan")
