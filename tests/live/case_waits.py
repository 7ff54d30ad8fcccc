"""On what threads wait: files, connections, locks, and who is at the other end."""
import fnmatch
import os
import subprocess

from harness import Findings, case, check, rows_of, scans_of

COLUMNS = "state,syscall,fd,filename,filetype,connection,remote,waits_on,waits_on_pid,inflight,wchan"
SETTLED = 4  # scans after which who is at the other end has been looked for


def wait_names(ctx):
    return subprocess.run([ctx.options.workload, "wait_names"], stdout=subprocess.PIPE, check=True,
                          universal_newlines=True).stdout.split()


def expect_wait(find, workload, row):
    for column in ("waits_on", "connection", "remote", "waits_on_pid", "inflight"):
        wanted = workload.ready.get(column, "")
        find.expect(fnmatch.fnmatchcase(row[column], wanted.replace("[", "[[]")), "%s: %s '%s', not '%s'", workload.name,
                    column, row[column], wanted)
    for column, key in (("filetype", "filetype"), ("filename", "file")):
        if workload.ready.get(key):
            find.expect(row[column] == workload[key], "%s: %s '%s', not '%s'", workload.name, column, row[column], workload[key])


def waiting_workloads(ctx):
    directory = ctx.temporary()
    workloads = ctx.workloads([("wait", {"on": name, "dir": directory}) for name in wait_names(ctx)])
    for workload in workloads:
        workload.name = workload.argv[2]
    return workloads


@case
def waits(ctx):
    """Each of the things that the workload `wait` waits on: told right, in every scan that is not among the first."""
    workloads = waiting_workloads(ctx)
    rows = ctx.rows("-a", "-p", ",".join(str(workload.tgid) for workload in workloads), seconds=2, columns=COLUMNS)
    scans = scans_of(rows)
    check(len(scans) > SETTLED, "%d scans", len(scans))
    find = Findings()
    for _, scan in scans[SETTLED:]:
        for workload in workloads:
            mine = rows_of(scan, workload.tid)
            find.expect(len(mine) == 1, "%s: %d rows", workload.name, len(mine))
            for row in mine[:1]:
                expect_wait(find, workload, row)
    find.close()


@case
def wchan(ctx):
    """The kernel function is what /proc says."""
    workload = ctx.workload("sleep", call="pipe_read")
    with open("/proc/%d/wchan" % workload.tid) as file:
        wanted = file.read()
    rows = rows_of(ctx.rows("-a", "-p", workload["pid"], seconds=1, columns="wchan"), workload.tid)
    check(rows and {row["wchan"] for row in rows} == {"" if wanted == "0" else wanted}, "wchan is %s, not '%s'",
          {row["wchan"] for row in rows}, wanted)
