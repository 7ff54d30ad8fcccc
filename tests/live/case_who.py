"""Owners of threads: wakers' processes, containers, units, pid namespaces; and grouping by them."""
import os
import re
import signal
import time

import truth
from case_namespaces import namespace_of
from harness import OF_PATHS, START_S, STOP_S, Findings, Skip, case, check, rows_of, timestamp_s

ID = "f75aff467357c5d0ddd47cb7ad87ed38746e018992586ff66198a5c11218f634"


@case
def waker_process(ctx):
    """waker_pid is the process of the waker; it is absent if the waker has ended."""
    workload = ctx.workload("pingpong")
    rows = rows_of(ctx.rows("-a", "-p", workload["pid"], columns="waker_tid,waker_pid"), workload.tid)
    mine = [row for row in rows if row["waker_tid"] == workload["tid2"]]
    check(len(mine) > len(rows) / 2 and all(row["waker_pid"] == workload["pid"] for row in mine), "%s",
          {(row["waker_tid"], row["waker_pid"]) for row in rows})


@case
def by_any_key(ctx):
    """Reports have rows by each key that --list has, by sets of them, and by a waker."""
    listed = ctx.plain("--list")
    listed.finish_plain()
    text = listed.out.decode()
    keys = [name for name, rest in re.findall(r"^  (\w+) +[r-][c-]  (.*)$", text.split("\nMeasures of")[0], re.M)
            if "; in a report, the" not in rest and not name.startswith(OF_PATHS)]
    check(len(keys) > 20 and "waker_pid" in keys, "--list has the keys %s", keys)
    workload = ctx.workload("pingpong")
    for key in [",".join(keys), "waker", "process,thread"]:
        tool = ctx.plain("-d", 1, "-a", "--by", key, "-p", workload["pid"])
        tool.finish_plain()
        rows = re.findall(r"^ +\d+\.\d\d +\d+\.\d\d .*$", tool.out.decode(), re.M)
        check(rows, "--by %s: no rows: %s", key, tool.out.decode())
        check(key != "waker" or any("pong" in row and workload["tid2"] in row for row in rows) or
              any(workload["tid2"] in row.split() for row in rows), "--by waker: %s", rows)


def cgroup_root():
    """The mount point of a cgroup2 file system that can be written."""
    for line in (truth.read("/proc/mounts") or "").splitlines():
        words = line.split()
        if words[2] == "cgroup2" and os.access(words[1], os.W_OK) and "ro" not in words[3].split(","):
            return words[1]
    raise Skip("no cgroup2 file system is mounted for writing")


class Group:
    """A cgroup below others, which are removed with it."""

    def __init__(self, ctx, path):
        self.paths, at = [], cgroup_root()
        ctx.started.append(self)
        try:
            for name in path.split("/"):
                at = os.path.join(at, name)
                if not os.path.isdir(at):
                    os.mkdir(at)
                    self.paths.append(at)
        except OSError as error:
            raise Skip("no cgroup can be made: %s" % error)
        self.path = at

    def take(self, pid):
        with open(os.path.join(self.path, "cgroup.procs"), "w") as file:
            file.write(str(pid))

    def end(self):
        for path in reversed(self.paths):
            os.rmdir(path)


@case
def containers(ctx):
    """Container, pod and unit of live threads come from the cgroup that each is in."""
    uid = "5759a1ae-36ca-48a8-b20a-b0b5c8a90fb8"
    groups = {
        "tsnap_test.slice/docker-%s.scope" % ID: (ID[:12], "docker", "", "docker-%s.scope" % ID),
        "tsnap_kubepods/kubepods-burstable-pod%s.slice/cri-containerd-%s.scope" % (uid.replace("-", "_"), ID):
            (ID[:12], "containerd", uid, "cri-containerd-%s.scope" % ID),
        "tsnap_test.slice/tsnap\\x2dtest.service/inner": ("", "", "", "tsnap-test.service"),
        "lxc.payload.tsnap-test": ("tsnap-test", "lxc", "", ""),
    }
    made = [Group(ctx, path) for path in groups]  # before the workloads, so that the groups are removed after them
    workloads = ctx.workloads([("sleep", {"call": "pipe_read"})] * len(groups))
    for group, workload in zip(made, workloads):
        group.take(workload.tgid)
    rows = ctx.rows("-a", "-p", ",".join(workload["pid"] for workload in workloads), seconds=1,
                    columns="container,container_runtime,pod,unit,container_name")
    findings = Findings()
    for (path, expected), workload in zip(groups.items(), workloads):
        mine = rows_of(rows, workload.tid)
        findings.expect(mine, "%s: no rows", path)
        for row in mine:
            got = tuple(row[name] for name in ("container", "container_runtime", "pod", "unit"))
            findings.expect(got == expected, "%s: %s", path, got)
            findings.expect(row["container_name"] == ("tsnap-test" if "lxc" in path else ""), "%s: name %s", path,
                            row["container_name"])
    findings.close()


@case
def moved_to_another_group(ctx):
    """A thread that runs all the time is shown in its new cgroup in less than a second, and in no other one later."""
    groups = [Group(ctx, "tsnap_test_%s" % name) for name in ("one", "two", "three")]
    workload = ctx.workload("pingpong")
    groups[0].take(workload.tgid)
    tool = ctx.stream("-a", "-F", 20, "-d", 60, "-p", workload["pid"], columns="cgroup")
    tool.wait_scans(3)
    moved = []
    for group in groups:
        group.take(workload.tgid)
        begin = time.time()
        time.sleep(2)
        moved.append((begin, time.time(), "/" + os.path.basename(group.path)))
    tool.signal(signal.SIGINT)
    rows = rows_of(tool.finish(), workload.tid)
    for begin, end, path in moved:
        shown = {row["cgroup"] for row in rows if begin + 1 < timestamp_s(row["timestamp"]) < end}
        check(shown == {path}, "moved to %s, shown in %s", path, shown)


@case
def pid_namespaces(ctx):
    """For threads of a pid namespace, seen from outside, its inode is shown, and their ids in it."""
    namespace, inner = namespace_of(ctx)
    inside = inner.workload("sleep", call="pipe_read")
    outside = ctx.workload("sleep", call="pipe_read")
    there = namespace.tids()
    tid = there[inside.tid]
    tool = ctx.stream("-a", "-t", "%d,%d" % (tid, outside.tid), "-d", 1, columns="pid_ns,ns_pid,ns_tid")
    rows = tool.finish(0, START_S + STOP_S)
    for number, workload, seen in ((tid, inside, tid), (outside.tid, outside, outside.tid)):
        namespace_id = re.search(r"\d+", os.readlink("/proc/%d/ns/pid" % seen)).group()
        mine = rows_of(rows, number)
        check(mine, "no rows of %d", number)
        for row in mine:
            check((row["pid_ns"], row["ns_pid"], row["ns_tid"]) == (namespace_id, workload["pid"], workload["tid"]), "%s", row)
