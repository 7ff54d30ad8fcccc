"""Options that choose threads, and options that set how often and how many scans are taken."""
import os
import pwd
import re
import shutil
import sys

import truth
from case_trouble import NOBODY, as_nobody
from harness import START_S, STOP_S, Process, Skip, case, check, rows_of, scans_of, wait_until


def tids_of(rows):
    return {int(row["tid"]) for row in rows}


@case
def choose_pid(ctx):
    """-p PID,PID shows the threads of these processes and no others."""
    one, two, other = ctx.workloads([("sleep", {"call": "futex"}), ("spin2", {}), ("sleep", {"call": "futex"})])
    rows = ctx.rows("-a", "-p", "%s,%s" % (one["pid"], two["pid"]), seconds=1, columns="state")
    expected = {one.tgid, one.tid, two.tgid, two.tid, two.number("tid2")}
    check(tids_of(rows) == expected, "%s, not %s", tids_of(rows), expected)
    check(other.tid not in tids_of(rows), "another process is shown")


@case
def choose_pattern(ctx):
    """-p PATTERN shows processes by name, without tsnap itself."""
    workload = ctx.workload("sleep", call="futex")
    rows = ctx.rows("-a", "-p", "work*d", seconds=1, columns="comm")
    check(workload.tid in tids_of(rows), "the workload is not shown")
    check(not [row for row in rows if row["comm"] == "tsnap"], "tsnap is shown")


def named(ctx, name):
    """The command that starts the workload as a program of this name."""
    path = os.path.join(ctx.temporary(), name)
    shutil.copy(ctx.options.workload, path)
    return ctx.but(workload=path)


SCRIPT = "import time\nprint(flush=True)\ntime.sleep(600)\n"


@case
def choose_name(ctx):
    """-p NAME finds a program whose first thread has ended, and a script, live and in a recording; one without scripts says so."""
    orphan = named(ctx, "tsnap-no-leader").workload("zombie_leader")
    path = os.path.join(ctx.temporary(), "tsnap-test-long-script.py")
    with open(path, "w", encoding="ascii") as file:
        file.write(SCRIPT)
    script = Process([sys.executable, "-u", "-W", "ignore", path])
    ctx.started.append(script)
    wait_until(lambda: script.out, START_S, "the script")
    chosen = [("no-leader", {orphan.tid, orphan.number("tid2")}), ("long-script.py", {script.pid}), ("*-script.p?", {script.pid})]
    recordings = [os.path.join(ctx.temporary(), name) for name in ("whole", "without")]
    recorders = [ctx.plain("-o", recording, "-a", "-d", 2, "-p", "%d,%s" % (script.pid, orphan["pid"]), *more)
                 for recording, more in zip(recordings, ((), ("-g", "timestamp,tid,pid,state,comm,exe,syscall")))]
    for name, tids in chosen:
        rows = ctx.rows("-a", "-p", name, seconds=1)
        check(tids <= tids_of(rows), "-p %s: %s, not %s", name, tids_of(rows), tids)
    for recorder in recorders:
        recorder.finish_plain()
    for recording, words in zip(recordings, ("", "not in the recording: script")):
        for name, tids in chosen:
            replay = ctx.stream("--replay", recording, "-a", "-p", name)
            found = tids_of(replay.finish())
            check(words in replay.err if words else not replay.err, "%s: said %r", name, replay.err)
            # a recording has no program of a thread that has ended
            expected = set() if words and "script" in name else tids - {orphan.tgid}
            check(expected == found - {orphan.tgid}, "replay of %s: %s, not %s", name, found, expected)
    for options, code in (("-p", 1), ("-c", 0)):
        nobody = ctx.plain("-d", 1, options, "no:such:name:of:any")
        nobody.finish_plain(code)
        text = " ".join((nobody.out.decode() + nobody.err).split())
        check("15 bytes" in text, "%s: %s", options, text)


@case
def choose_list(ctx):
    """-p PID,PATTERN,... shows every process that one part names; a part that names none is reported, and alone it ends the run."""
    one = named(ctx, "tsnap-list-one").workload("sleep", call="futex")
    two, other = ctx.workloads([("spin2", {}), ("sleep", {"call": "nanosleep"})])
    expected = {one.tgid, one.tid, two.tgid, two.tid, two.number("tid2")}
    for parts in (["tsnap-list-?ne", two["pid"]], [two["pid"], "list-one", "no:such:name", "999999999"]):
        tool = ctx.stream("-a", "-d", 1, "-p", ",".join(parts), columns="state")
        rows = tool.finish(0, START_S + STOP_S)
        check(tids_of(rows) == expected, "%s: %s, not %s", parts, tids_of(rows), expected)
        remarks = [line for line in tool.err.splitlines() if "the others" in line]
        for part in parts[2:]:
            check([line for line in remarks if re.match("tsnap: (there is no process|no process is called) %s( yet)?;" % part, line)],
                  "nothing is said of %s: %s", part, tool.err)
        check(len(remarks) == len(parts[2:]), "%s: %s", parts, tool.err)
    check(other.tid not in expected, "one workload is the other")
    nobody = ctx.plain("-d", 1, "-p", "no:such:name,999999999")
    nobody.finish_plain(1)
    check("no process has no:such:name,999999999 as its name" in nobody.err, "of nobody: %s", nobody.err)


@case
def choose_by_words(ctx):
    """tsnap NAME PID, without an option, shows what each does, idle or not, what it waits for, and in which function; where there is
    none, the nearest name."""
    one, two = named(ctx, "tsnap-word-one").workload("mutex"), ctx.workload("sleep", call="nanosleep")
    other = ctx.workload("sleep", call="futex")
    tool = ctx.plain("-d", 1, "tsnap-word-one", two["pid"])
    tool.finish_plain()
    rows = [line.split() for line in tool.out.decode().splitlines()]
    titles = next((row for row in rows if "COMM" in row), [])
    check(titles == "AVG_THR PID COMM STATE STATE_US SYSCALL WAITS_ON CHAIN FUNCTION".split(), "the columns are %s", titles)
    check({one["pid"], two["pid"]} <= {word for row in rows for word in row}, "of two: %s", tool.out.decode())
    check(not any(other["pid"] in row for row in rows), "of a third: %s", tool.out.decode())
    check(re.search(r" futex +mutex 0x\w+ held by %d .* subject_main$" % one.tgid, tool.out.decode(), re.M),
          "no holder, or another function than the one that waits: %s", tool.out.decode())
    nobody = ctx.plain("tsnap-wordone")
    nobody.finish_plain(1)
    check("nearest: tsnap-word-one" in nobody.err, "of nobody: %s", nobody.err)


@case
def choose_list_later(ctx):
    """-p PID,NAME shows a process that gets the name later from then on."""
    one = ctx.workload("sleep", call="futex")
    tool = ctx.stream("-a", "-p", "%s,tsnap-list-two" % one["pid"], columns="state")
    tool.wait_scans(3)
    check(tids_of(tool.rows()) == {one.tgid, one.tid}, "before: %s", tids_of(tool.rows()))
    later = named(ctx, "tsnap-list-two").workload("sleep", call="nanosleep")
    tool.wait_scans(3, lambda row: row["tid"] == str(later.tid))
    found = tids_of(tool.interrupt())
    check(found == {one.tgid, one.tid, later.tgid, later.tid}, "after: %s", found)


def reused(ctx, *options):
    """Names of the threads in rows before and after the chosen process gave its id to another."""
    workload = ctx.workload("reuse")
    chosen = [option.replace("PID", workload["pid"]) for option in options]
    tool = ctx.stream("-a", "-F", 49, *chosen, columns="comm")
    tool.wait_scans(3, lambda row: row["comm"] == "reuse_before")
    workload.say("go")
    workload.wait_done(1)
    others = ctx.rows("-a", "-F", 49, "-p", workload["pid"], seconds=0.5, columns="comm")
    names = [row["comm"] for row in tool.interrupt()]
    # on a full host the new process may not have had a CPU yet to name itself
    return set(names[names.index("reuse_before"):]), {row["comm"] for row in others}


@case(thorough=True)
def choose_reused(ctx):
    """With -p PID, -p NAME, -r and -t a process that gets the id of a chosen one which has ended is not chosen, nor are its children."""
    for options in (("-p", "PID"), ("-r", "-p", "PID"), ("-p", "reuse_bef*"), ("-r", "-p", "reuse_before,PID"),
                    ("-t", "PID")):
        before, after = reused(ctx, *options)
        check(after == {"reuse_after"}, "%s: the id is not another's: %s", options, after)
        check(before == {"reuse_before"}, "%s: shown: %s", options, before)


@case
def choose_thread(ctx):
    """-t TID shows this thread alone."""
    workload = ctx.workload("spin2")
    rows = ctx.rows("-a", "-t", workload["tid2"], seconds=1, columns="comm")
    check(tids_of(rows) == {workload.number("tid2")}, "threads %s", tids_of(rows))


@case
def choose_comm(ctx):
    """-c PATTERN shows threads by name."""
    workload = ctx.workload("spin2")
    rows = ctx.rows("-a", "-c", "spin_o*", seconds=1, columns="comm")
    check(workload.tid in tids_of(rows), "spin_one is not shown")
    check({row["comm"] for row in rows} == {"spin_one"}, "names %s", {row["comm"] for row in rows})


@case
def choose_cgroup(ctx):
    """--cgroup PATTERN shows the threads of this control group, and none where the pattern names another one."""
    workload = ctx.workload("sleep", call="futex")
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            own = [line.rstrip("\n").split(":", 2)[2] for line in file]
    except FileNotFoundError:
        own = []
    if not own:
        raise Skip("this kernel has no control groups")
    rows = ctx.rows("-a", "-p", workload["pid"], seconds=1, columns="cgroup")
    path = rows_of(rows, workload.tid)[0]["cgroup"]
    check(path in own, "control group '%s', not one of %s", path, own)
    quoted = re.sub(r"([][*?])", r"[\1]", path)
    rows = ctx.rows("-a", "--cgroup", quoted + "*", seconds=1, columns="cgroup")
    check(workload.tid in tids_of(rows), "the workload is not shown")
    check(not [row for row in rows if not row["cgroup"].startswith(path)], "another control group is shown")
    rows = ctx.rows("-a", "--cgroup", "/no/such/group", seconds=1, columns="cgroup")
    check(not rows, "there are rows of no control group: %s", rows[:1])


@case
def choose_cgroup_v1(ctx):
    """--cgroup PATH takes a path in one controller's hierarchy of cgroup v1."""
    root = next((path for path in ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids")
                 if os.path.exists(path + "/cgroup.procs")), None)
    if not root:
        raise Skip("no hierarchy of cgroup v1 is mounted")
    group = "%s/tsnap-test-select-%d" % (root, os.getpid())
    try:
        os.mkdir(group)
    except OSError as error:
        raise Skip("no control group can be made: %s" % error)
    ctx.at_end(lambda: os.rmdir(group))
    inside, outside = ctx.workloads([("sleep", {"call": "futex"}), ("sleep", {"call": "pipe_read"})])
    with open(group + "/cgroup.procs", "w", encoding="ascii") as file:
        file.write(inside["pid"])
    for pattern in ("/" + os.path.basename(group), "*/tsnap-test-select-*"):
        rows = ctx.rows("-a", "--cgroup", pattern, seconds=1, columns="cgroup")
        check(inside.tid in tids_of(rows), "%s: the workload is not shown", pattern)
        check(outside.tid not in tids_of(rows), "%s: a thread outside is shown", pattern)


@case(thorough=True)
def choose_expression(ctx):
    """--filter chooses by ids, states, names, lookups, registers, files and exact times: tests that are decided first and last."""
    spin, pipe, futex = ctx.workloads([("spin2", {}), ("sleep", {"call": "pipe_read"}), ("sleep", {"call": "futex"})])
    spinners = {spin.tid, spin.number("tid2")}
    ours = "(pid=%s || pid=%s || pid=%s)" % (spin["pid"], pipe["pid"], futex["pid"])
    leaders = {work.tgid for work in (spin, pipe, futex)}
    cases = (
        # ids and states, which also decide whether sleepers are looked at
        (["--filter", ours], spinners, leaders),
        (["--filter", ours + " && state=S"], {pipe.tid, futex.tid}, leaders),
        (["-a", "--filter", ours + ' && state~"^(ON|RQ)$"'], spinners, leaders),
        (["-a", "--filter", "tid=%d" % futex.tid], {futex.tid}, set()),
        # names and derived names
        (["-a", "--filter", ours + " && comm~^spin_o"], {spin.tid}, set()),
        (["-a", "--filter", ours + " && commsum=pipe_read"], {pipe.tid}, {pipe.tgid}),
        # lookups, and columns that need registers; none of these columns is shown
        (["-a", "--filter", ours + " && syscall=futex"], {futex.tid}, leaders - {pipe.tgid}),
        (["-a", "--filter", ours + ' && filename~"^pipe:" && user=root'], {pipe.tid}, leaders),
        (["-a", "--filter", ours + ' && (filename~"^pipe:" || syscall=futex) && !user=root'], set(), set()),
        (["-a", "--filter", ours + " && ppid=%d && exe~workload && cgroup!=/no" % os.getpid()],
         spinners | {pipe.tid, futex.tid}, leaders),
        # exact times: no thread but the spinners has used 1 ms between two scans
        (["-a", "--filter", ours + " && cpu_us>1ms"], spinners, set()),
        (["-a", "-c", "spin*", "-p", spin["pid"], "--filter", "tid!=%d" % spin.tid], {spin.number("tid2")}, {spin.tgid}),
    )
    for options, expected, possible in cases:
        rows = ctx.rows(*options, seconds=0.5, columns="comm,state")
        found = tids_of(rows)
        check(expected <= found <= expected | possible, "%s: threads %s, not %s", options, found, expected)


@case
def choose_user(ctx):
    """-u NAME and -u UID show the threads of this user."""
    mine = ctx.workload("sleep", call="futex")
    theirs = ctx.reachable().workloads([("sleep", {"call": "pipe_read"})], popen={"preexec_fn": as_nobody, "cwd": "/"})[0]
    for user in ("65534", pwd.getpwuid(NOBODY).pw_name):
        rows = ctx.rows("-a", "-u", user, seconds=1, columns="uid,user")
        check(theirs.tid in tids_of(rows), "-u %s does not show its thread", user)
        check(mine.tid not in tids_of(rows), "-u %s shows root's", user)
        check({(row["uid"], row["user"]) for row in rows} == {("65534", pwd.getpwuid(NOBODY).pw_name)}, "users %s",
              {(row["uid"], row["user"]) for row in rows})


@case
def choose_descendants(ctx):
    """-p PID -r shows the children of the process, too, also those that come later."""
    workload = ctx.workload("tree")
    family = {workload.tgid, workload.number("child"), workload.number("grandchild")}
    rows = ctx.rows("-a", "-p", workload["pid"], seconds=1, columns="ppid")
    check(tids_of(rows) == {workload.tgid}, "without -r: %s", tids_of(rows))
    tool = ctx.stream("-a", "-r", "-p", workload["pid"], columns="ppid")
    check(tids_of(tool.wait_scans(3)) == family, "with -r: %s, not %s", tids_of(tool.rows()), family)
    workload.say("more")
    child = workload.wait_done()["child"]
    # tsnap looks for new processes about once a second.
    tool.wait_scans(2, lambda row: row["tid"] == child)
    check(tids_of(tool.interrupt()) == family | {int(child)}, "another process is shown")


@case
def count_of_scans(ctx):
    """--csv -n COUNT prints COUNT scans."""
    workload = ctx.workload("sleep", call="futex")
    for count in (1, 5):
        tool = ctx.stream("-a", "-n", count, "-p", workload["pid"], columns="state")
        rows = tool.finish(0, START_S + STOP_S)
        check(len(scans_of(rows)) == count, "%d scans of %d", len(scans_of(rows)), count)


@case
def reports(ctx):
    """A report names what is active; -i 1 -n 2 prints two."""
    workload = ctx.workload("spin2")
    tool = ctx.plain("-p", workload["pid"], "-d", 1)
    tool.finish_plain()
    text = tool.out.decode()
    check("spin_one" in text and "spin_two" in text, "no spinner in the report: %s", text)
    twice = ctx.plain("-p", workload["pid"], "-i", 1, "-n", 2, "-g", "psn")
    twice.finish_plain()
    reports_made = re.split(r"^(?=tsnap on )", twice.out.decode(), flags=re.M)[1:]
    check(len(reports_made) == 2, "%d reports, not 2", len(reports_made))
    check(all("spin_one" in text for text in reports_made), "no spinner in one of them")


@case
def formats_agree(ctx):
    """Each column that --list names can be printed, and CSV and JSON have the same names."""
    listed = ctx.plain("--list")
    listed.finish_plain()
    workload = ctx.workload("sleep", call="pipe_read")
    names = [line.split()[0] for line in listed.out.decode().splitlines() if line.strip()]
    for name in ("timestamp", "tid", "state", "waker_comm", "arg5", "cgroup", "filenamesum"):
        check(name in names, "--list does not tell %s", name)
    rows = ctx.rows("-a", "-p", workload["pid"], seconds=1,
                    columns="ppid,user,uid,comm,commsum,cmdline,exe,state,state_us,cpu,cgroup,kthread,filenamesum")
    row = rows_of(rows, workload.tid)[0]
    expected = {"ppid": str(os.getpid()), "user": "root", "uid": "0", "comm": "pipe_read", "state": "S", "kthread": "0",
                "exe": os.path.realpath(ctx.options.workload), "cmdline": ctx.options.workload + " sleep call=pipe_read",
                "filenamesum": "pipe:[*]"}
    for column, value in expected.items():
        check(row[column] == value, "%s is '%s', not '%s'", column, row[column], value)


def listed_after(text, header_line):
    """Names of the columns that --list shows below this header line."""
    lines = text.splitlines()
    names = []
    for line in lines[next(i for i, line in enumerate(lines) if line.startswith(header_line)) + 1:]:
        if not line.startswith("  "):
            break
        names.append(line.split()[0])
    return names


@case
def accounts(ctx):
    """The columns from /proc/TID/stat, status and io have the values of these files for a sleeping thread."""
    workload = ctx.workload("sleep", call="futex")
    listed = ctx.plain("--list")
    listed.finish_plain()
    names = [name for header_line in ("From /proc/PID/task/TID/stat", "From /proc/PID/task/TID/status", "From /proc/PID/task/TID/io")
             for name in listed_after(listed.out.decode(), header_line)]
    check(len(names) > 60, "--list tells only %s", names)
    row = rows_of(ctx.rows("-a", "-p", workload["pid"], seconds=1, columns=",".join(names)), workload.tid)[0]
    proc = "/proc/%d/task/%d/" % (workload.tgid, workload.tid)
    with open(proc + "stat", encoding="utf-8") as file:
        stat = [None] * 3 + file.read().rpartition(")")[2].split()  # indices are proc(5)'s field numbers
    status, page = truth.lines_of(proc + "status"), os.sysconf("SC_PAGESIZE")
    tick_us = 1000000 // os.sysconf("SC_CLK_TCK")
    expected = {"pgrp": stat[5], "session": stat[6], "tpgid": stat[8], "minflt": stat[10], "utime_us": int(stat[14]) * tick_us,
                "priority": stat[18], "nice": stat[19], "num_threads": stat[20], "vsize_bytes": stat[23],
                "rss_bytes": int(stat[24]) * page, "exit_signal": stat[38], "policy": "OTHER", "blkio_us": int(stat[42]) * tick_us,
                "umask": status["Umask"], "tracer_pid": "0", "ruid": status["Uid"].split()[0], "gid": status["Gid"].split()[1],
                "groups": status["Groups"], "nspid": status["NSpid"],
                "vm_stack_bytes": int(status["VmStk"].split()[0]) * 1024, "vm_lib_bytes": int(status["VmLib"].split()[0]) * 1024,
                "sigblk": hex(int(status["SigBlk"], 16)), "capeff": hex(int(status["CapEff"], 16)),
                "cpus_allowed_list": status["Cpus_allowed_list"]}
    if os.path.exists(proc + "io"):
        io = truth.lines_of(proc + "io")
        expected.update({"rchar_bytes": io["rchar"], "syscw": io["syscw"], "write_bytes": io["write_bytes"]})
    for column, value in expected.items():
        check(row[column] == str(value), "%s is '%s', not '%s'", column, row[column], value)
