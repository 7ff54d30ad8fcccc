"""Objects of waits: files, connections, locks, and the processes at the other ends."""
import csv
import ctypes
import fnmatch
import io
import os
import re
import signal
import struct
import subprocess
import sys
import threading
import time

import truth
from case_namespaces import unshared
from harness import SLOW, START_S, STOP_S, Findings, Process, Skip, case, check, rows_of, scans_of, through, wait_until

COLUMNS = "state,syscall,fd,filename,filetype,connection,remote,waits_on,waits_on_pid,inflight,wchan"
SETTLED_S = 3 if SLOW == 1 else 30  # time until all processes have been searched for the other ends of pipes
SOCKETS = "on=tcp*", "on=udp*", "on=unix*"  # waits that need sock_diag, which may be a module that is not there
PEERLESS = ("tcp_accept", "tcp6_accept", "udp", "eventfd", "eventfd_writer", "epoll_many", "mutex", "child", "fifo_open")  # waits that are known at once


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


def told_at_once(name):
    """True if the first scan has the wait. Emulated, the kernel's tables of sockets take more than the 3 ms that it has for them."""
    return name[len("on="):] in PEERLESS and (SLOW == 1 or not any(fnmatch.fnmatch(name, pattern) for pattern in SOCKETS))


@case(paired=True)
def waits(ctx):
    """Each of the objects that the workload `wait` waits on is shown right in every scan; those with a process at the
    other end, once that has been looked for."""
    workloads = waiting_workloads(ctx)
    pids = ",".join(str(workload.tgid) for workload in workloads)
    tool = ctx.stream("-a", "-d", 2 * SETTLED_S, "-p", pids, columns=COLUMNS)
    scans, find = scans_of(tool.finish(0, START_S + 2 * SETTLED_S + STOP_S)), Findings()
    if "sock_diag" in tool.err:
        workloads = [workload for workload in workloads
                     if not any(fnmatch.fnmatch(workload.name, pattern) for pattern in SOCKETS)]
    check(len(scans) > 10, "%d scans", len(scans))
    for number, (_, scan) in enumerate(scans):
        for workload in workloads:
            if number < len(scans) / 2 and not told_at_once(workload.name):
                continue
            mine = rows_of(scan, workload.tid)
            find.expect(len(mine) == 1, "%s: %d rows", workload.name, len(mine))
            for row in mine[:1]:
                expect_wait(find, workload, row)
    find.close()


@case
def late_waits(ctx):
    """Facts that are found out after some scans, such as the other end's process, are in one line of a report with those scans, too."""
    workloads = [workload for workload in waiting_workloads(ctx) if not workload.name.endswith("_own")]
    tool = ctx.plain("-a", "-d", 2 * SETTLED_S, "-p", ",".join(str(workload.tgid) for workload in workloads),
                     "--csv", "--report", "-g", "tid,state,waits_on,syscall")
    tool.finish_plain(0, START_S + 2 * SETTLED_S + STOP_S)
    rows = list(csv.DictReader(io.StringIO(tool.out.decode())))
    find = Findings()
    for workload in workloads:
        told = [row["waits_on"] for row in rows if row["tid"] == str(workload.tid) and row["state"] == "S" and row["waits_on"]]
        if any(text.startswith("timer") for text in told):  # waits_on of a timer has the time that is left, which changes
            continue
        find.expect(len(told) == 1, "%s: %s", workload.name, told)
    find.close()


def changing_waits(ctx, workloads, *options):
    """{name of a workload: (first, last)}, values of waits_on, for workloads whose rows do not all have the last one's value."""
    tool = ctx.plain("-a", "-d", SETTLED_S, "-p", ",".join(str(workload.tgid) for workload in workloads), "--csv", *options,
                     "-g", "timestamp,tid,state,waits_on")
    tool.finish_plain(0, START_S + SETTLED_S + STOP_S)
    rows = list(csv.DictReader(io.StringIO(tool.out.decode())))
    times = [row["timestamp"] for row in rows]
    check(len(rows) > 10 * len(workloads) / 2 and times == sorted(times), "%d rows, or not in order", len(rows))
    changing = {}
    for workload in workloads:
        told = [row["waits_on"] for row in rows if row["tid"] == str(workload.tid) and row["state"] == "S"]
        if told and told.count(told[-1]) < len(told):
            changing[workload.name] = told[0], told[-1]
    return changing


@case
def patience(ctx):
    """With --patience rows have from the first one on what is found out a scan later; without it the first rows lack it."""
    workloads = [workload for workload in waiting_workloads(ctx)
                 if not workload.name.endswith("_own") and "timer" not in workload.name]  # the time that is left of a timer changes
    changing = changing_waits(ctx, workloads)
    check(any(last.startswith(first + " ") for first, last in changing.values()), "without patience: %s", changing)
    changing = changing_waits(ctx, workloads, "--patience", 10)
    check(not changing, "with patience: %s", changing)


@case
def patience_of_names(ctx):
    """With --patience no row has a function as file and offset that a later scan has by name: all rows of one stack have the same names."""
    workload = ctx.workload("calls", naps=200, nap_ms=20, reads=0, trivial=0, opens=0, bad=0)
    tool = ctx.plain("-a", "-d", SETTLED_S, "-p", workload.tgid, "--csv", "--patience", 10, "-g", "tid,ustack,ufuncs")
    workload.say("go")
    tool.finish_plain(0, START_S + SETTLED_S + STOP_S)
    told = {}
    for row in csv.DictReader(io.StringIO(tool.out.decode())):
        told.setdefault(row["ustack"], set()).add(row["ufuncs"])
    told.pop("", None)
    check(any("nap_long" in names for of in told.values() for names in of), "%s", told)
    check(all(len(of) == 1 for of in told.values()), "%s", told)


def freeze(ctx, pids):
    """Freezes a control group (v2) with these processes until the test ends. Returns its path as in /proc/PID/cgroup."""
    with open("/proc/self/mounts") as file:
        mount = next((line.split()[1] for line in file if line.split()[2] == "cgroup2"), None)
    if not mount or not os.access(mount, os.W_OK):
        raise Skip("no cgroup v2")
    name = "/tsnap-test-waits-%d" % os.getpid()
    group = mount + name

    def write(file_name, word):
        with open(os.path.join(group, file_name), "w", encoding="ascii") as file:
            file.write(word)

    def remove():
        write("cgroup.freeze", "0")
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

        def removed():  # a process that has ended is in no list, but holds its group until it is gone
            try:
                os.rmdir(group)
            except OSError:
                return False
            return True
        wait_until(removed, STOP_S, "the end of frozen processes")
    os.mkdir(group)
    ctx.at_end(remove)
    if not os.path.exists(group + "/cgroup.freeze"):
        raise Skip("no freezer in cgroup v2 (5.2)")
    for pid in pids:
        write("cgroup.procs", "%d" % pid)
    write("cgroup.freeze", "1")
    wait_until(lambda: "frozen 1" in open(group + "/cgroup.events", encoding="ascii").read(), STOP_S, "that it is frozen")
    return name


def row_of_wait(ctx, tid):
    rows = rows_of(ctx.rows("-a", "-t", tid, seconds=1, columns="state,syscall,waits_on,waits_on_pid,why"), tid)
    check(rows, "no row of %d", tid)
    return rows[-1]


@case
def halted_waits(ctx):
    """Threads that are traced or stopped wait for their tracer, or SIGCONT, not for what the call of their registers waited for."""
    stopped, traced = ctx.workload("sleep", call="pipe_read"), ctx.workload("traced")
    os.kill(stopped.tgid, signal.SIGSTOP)
    ctx.at_end(lambda: os.kill(stopped.tgid, signal.SIGCONT))
    wait_until(lambda: truth.Thread(stopped.tid).letter == "T", STOP_S, "that it is stopped")
    row = row_of_wait(ctx, stopped.tid)
    check((row["state"], row["waits_on"], row["waits_on_pid"]) == ("T", "SIGCONT", ""), "stopped: %s", row)
    tracer = truth.Thread(traced.tid).status_number("TracerPid")
    row = row_of_wait(ctx, traced.tid)
    check(row["state"] == "T" and row["waits_on_pid"] == str(tracer) and
          fnmatch.fnmatchcase(row["waits_on"], "traced by %d ?*" % tracer), "traced by %d: %s", tracer, row)


@case
def frozen_waits(ctx):
    """Threads of a frozen control group (v2) wait for its thaw: one in a call, one in none, and one that a client waits for, which
    is then no cycle."""
    sleeper, spinner, client = (ctx.workload("wait", on="timer"), ctx.workload("spin"), ctx.workload("wait", on="tcp_client"))
    server = int(client["waits_on_pid"])
    group = freeze(ctx, [sleeper.tgid, spinner.tgid, server])
    if not truth.read("/proc/%d/wchan" % sleeper.tid).strip("0"):
        raise Skip("the kernel shows no wchan")
    for tid in (sleeper.tid, spinner.tid, server):
        row = row_of_wait(ctx, tid)
        check(row["state"] == "S" and row["waits_on"] == "frozen cgroup " + group, "%d: %s", tid, row)
    rows = rows_of(ctx.rows("-a", "-p", client.tgid, seconds=SETTLED_S, columns="state,chain,root_tid,root_why,root_waits_on"), client.tid)
    check(rows and (rows[-1]["root_tid"], rows[-1]["root_why"], rows[-1]["root_waits_on"]) == (str(server), "other", "frozen cgroup " + group),
          "the client's root: %s", rows and rows[-1])


def freezer_v1(ctx, workloads):
    """Moves the workloads into a group of the freezer of cgroup v1. Returns the group's name, and a function that sets its state."""
    with open("/proc/self/mounts", encoding="ascii") as file:
        mount = next((line.split()[1] for line in file if line.split()[2] == "cgroup" and "freezer" in line.split()[3].split(",")), None)
    if not mount or not os.access(mount, os.W_OK):
        raise Skip("no freezer of cgroup v1")
    name = "/tsnap-test-waits-%d" % os.getpid()

    def write(file_name, word):
        with open(mount + name + file_name, "w", encoding="ascii") as file:
            file.write(word)

    def set_state(word):
        write("/freezer.state", word)
        wait_until(lambda: open(mount + name + "/freezer.state", encoding="ascii").read() == word + "\n", STOP_S, "its state " + word)

    def remove():
        set_state("THAWED")
        for workload in workloads:
            os.kill(workload.tgid, signal.SIGKILL)
        wait_until(lambda: not open(mount + name + "/cgroup.procs", encoding="ascii").read(), STOP_S, "their end")
        os.rmdir(mount + name)
    os.mkdir(mount + name)
    ctx.at_end(remove)
    for workload in workloads:
        write("/cgroup.procs", "%d" % workload.tgid)
    return name, set_state


@case
def frozen_v1_waits(ctx):
    """Threads of a frozen control group (v1) wait for its thaw: in no call, woken for it, or frozen where they slept, which wchan still shows."""
    workloads = [ctx.workload("wait", on="timer"), ctx.workload("wait", on="mutex"), ctx.workload("sleep", call="sigtimedwait"),
                 ctx.workload("wait", on="child"), ctx.workload("spin")]
    name, set_state = freezer_v1(ctx, workloads)
    set_state("FROZEN")
    for workload in workloads:
        row = row_of_wait(ctx, workload.tid)
        if row["state"] == "D":  # before 6.1 those that sleep stay as they are
            check(row["waits_on"] == "frozen cgroup " + name, "%d: %s", workload.tid, row)
    check(row["state"] == "D", "the spinner: %s", row)


@case
def frozen_meanwhile(ctx):
    """A thread that waited for its socket in many short waits, and is frozen, waits for the thaw from the second scan on."""
    workload = ctx.workload("served", threads=1, period_us=20000)
    tool = ctx.stream("-a", "-F", 20, "-d", 60, "-p", workload.tgid, columns="state,waits_on")

    def told():
        return [row["waits_on"] for row in tool.rows() if row["state"] == "S" and row["tid"] != str(workload.tgid)]
    wait_until(lambda: sum("tcp" in words for words in told()) > 20, START_S + STOP_S, "waits for the socket")
    group = freeze(ctx, [workload.tgid])
    wait_until(lambda: told()[-10:] == 10 * ["frozen cgroup " + group], STOP_S, "ten scans of frozen threads")
    since = [words == "frozen cgroup " + group for words in told()]
    check(all(since[since.index(True):]), "%s", told())


@case
def frozen_v1_meanwhile(ctx):
    """A sleeping thread whose control group (v1) is frozen where it sleeps waits for the thaw, which no switch shows, and after that for its timer again."""
    workload = ctx.workload("wait", on="timer")
    group, set_state = freezer_v1(ctx, [workload])
    tool = ctx.stream("-a", "-F", 20, "-d", 60, "-t", workload.tid, columns="why,waits_on")

    def told():
        return [(row["why"], row["waits_on"]) for row in tool.rows()]
    wait_until(lambda: len(told()) > 10, START_S + STOP_S, "its rows")
    before = told()[-1]
    set_state("FROZEN")
    if truth.Thread(workload.tid).letter != "D":
        raise Skip("it is not frozen where it sleeps (6.1)")
    wait_until(lambda: told()[-10:] == 10 * [("other", "frozen cgroup " + group)], STOP_S, "ten scans of the frozen thread")
    set_state("THAWED")
    wait_until(lambda: told()[-10:] == 10 * [before], STOP_S, "ten scans of the thawed thread")


@case
def waits_of_the_busy(ctx):
    """Threads that each wait for an answer 30 times a second are in every scan: 200 new waits are judged in each."""
    workload, threads = ctx.workload("served", threads=200), 200
    rows = ctx.rows("-F", 20, "-p", workload.tgid, seconds=4 * SLOW, columns="timestamp,state,waits_on")
    scans = len({row["timestamp"] for row in rows})
    check(len(rows) >= 0.9 * scans * threads, "%d rows of %d threads in %d scans", len(rows), threads, scans)


@case
def report_of_the_busy(ctx):
    """Of 200 threads that are served 30 times a second a report looks at some in each scan, which stand for all; a report by thread
    looks at all."""
    workload, threads, seconds = ctx.workload("served", threads=200), 200, 4 * SLOW
    tools = [ctx.plain("--csv", "--report", "--raw", "-F", 20, "-d", seconds, "-p", workload.tgid, "-g", columns)
             for columns in ("state", "tid")]
    totals, of_threads = [], []
    for tool, into in zip(tools, (totals, of_threads)):
        tool.finish_plain(0, START_S + seconds + STOP_S)
        into += [float(row["avg_thr"]) for row in csv.DictReader(io.StringIO(tool.out.decode()))]
    check(0.85 * threads < sum(totals) < 1.05 * threads, "%s of %d threads", totals, threads)
    check(len(of_threads) >= threads and sorted(of_threads)[-threads] > 0.8, "%s", of_threads)


@case
def wchan(ctx):
    """wchan is the kernel function that /proc has."""
    workload = ctx.workload("sleep", call="pipe_read")
    with open("/proc/%d/wchan" % workload.tid) as file:
        wanted = file.read()
    rows = rows_of(ctx.rows("-a", "-p", workload["pid"], seconds=1, columns="wchan"), workload.tid)
    check(rows and {row["wchan"] for row in rows} == {"" if wanted == "0" else wanted}, "wchan is %s, not '%s'",
          {row["wchan"] for row in rows}, wanted)


@case
def other_net_namespace(ctx):
    """A socket in a network namespace of its own is shown like those in the host's."""
    inner = through(ctx, *unshared("--net"), "sh", "-c", "ip link set lo up 2>&1 >/dev/null; exec \"$0\" \"$@\"")
    workload = inner.workload("wait", on="tcp_accept")
    rows = rows_of(ctx.rows("-a", "-p", workload["pid"], seconds=1, columns="connection,waits_on"), workload.tid)
    check(rows and rows[-1]["connection"] == workload["connection"], "connection %s, not %s",
          rows and rows[-1]["connection"], workload["connection"])


# One thread reads the last of 5000 pipes, another waits for 2000 of them.
HOARD = """
import os, resource, select, threading
resource.setrlimit(resource.RLIMIT_NOFILE, (10100, 10100))
pipes = [os.pipe() for _ in range(5000)]
poll = select.epoll()
for reading, _ in pipes[:2000]:
    poll.register(reading, select.EPOLLIN)
def read():
    print(threading.get_native_id(), pipes[-1][0], flush=True)
    os.read(pipes[-1][0], 1)
threading.Thread(target=read).start()
poll.poll()
"""


@case
def ten_thousand_descriptors(ctx):
    """For a process with ten thousand descriptors nearly every scan has what its threads wait for."""
    process = subprocess.Popen([sys.executable, "-c", HOARD], stdout=subprocess.PIPE)
    ctx.at_end(lambda: (process.kill(), process.wait(), process.stdout.close()))
    tid, fd = map(int, process.stdout.readline().split())
    link = os.readlink("/proc/%d/fd/%d" % (process.pid, fd))
    rows = ctx.rows("-a", "-F", 10, "-p", process.pid, seconds=4 * SLOW, columns="syscall,fd,filename,waits_on,waits_on_pid")
    reads = [row for row in rows_of(rows, tid) if row["syscall"] == "read"]
    check(len(reads) >= 20 * SLOW, "of 40 scans %d have the reader", len(reads))
    told = {(row["fd"], row["filename"], row["waits_on_pid"]) for row in reads[1:]}
    check((str(fd), link, str(process.pid)) in told and len(told) <= 2, "the reader: %s", told)
    polls = {row["waits_on"] for row in rows_of(rows, process.pid) if row["syscall"] in ("epoll_wait", "epoll_pwait")}
    check("2000 fds" in polls, "the other: %s", polls)


# {machine: number of socket(2)} of asm/unistd.h
SOCKET_CALLS = {"x86_64": 41, "aarch64": 198}


def netlink_refuse():
    """Called in a child: from now on socket(AF_NETLINK, ..., NETLINK_SOCK_DIAG) gives EPERM, as in a strict container, by a
    seccomp filter (linux/filter.h, linux/seccomp.h)."""
    load, equal, end = 0x20, 0x15, 0x06

    def code(operation, yes, no, value):
        return struct.pack("HBBI", operation, yes, no, value)
    program = b"".join((code(load, 0, 0, 0), code(equal, 0, 5, SOCKET_CALLS[os.uname().machine]),
                        code(load, 0, 0, 16), code(equal, 0, 3, 16), code(load, 0, 0, 32), code(equal, 0, 1, 4),
                        code(end, 0, 0, 0x00050001), code(end, 0, 0, 0x7fff0000)))
    buffer = ctypes.create_string_buffer(program)
    filter_ = struct.pack("HxxxxxxQ", 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_char_p(filter_), 0, 0):
        os._exit(99)


@case
def netlink_refused(ctx):
    """Where sock_diag is refused connections are absent, other columns are there, and tsnap says so once."""
    if os.uname().machine not in SOCKET_CALLS:
        raise Skip("the number of socket(2) is not known for this machine")
    workload = ctx.workload("wait", on="tcp_client")
    tool = ctx.stream("-a", "-d", 1, "-p", workload["pid"], columns="filename,filetype,connection,remote",
                      preexec_fn=netlink_refuse)
    rows = rows_of(tool.finish(0, START_S + STOP_S), workload.tid)
    check(rows and all(row["filetype"] == "socket" and row["filename"].startswith("socket:[") for row in rows), "%s", rows[:1])
    check(not any(row["connection"] or row["remote"] for row in rows), "a connection is told: %s", rows[0])
    check(tool.err.count("sock_diag") == 1, "it is not told once: %s", tool.err)


@case
def sockets_closed_meanwhile(ctx):
    """For connections that last 2 ms the column is a connection or empty."""
    workload = ctx.workload("reconnect")
    rows = ctx.rows("-a", "-F", 100, "-p", workload["pid"], seconds=2, columns="syscall,connection,waits_on")
    told = [row["connection"] for row in rows if row["connection"]]
    check(told, "nothing is told of any")
    for text in told:
        check(re.fullmatch(r"tcp( 127\.0\.0\.1:\d+(->127\.0\.0\.1:\d+)? \w+)?", text), "'%s'", text)


# Four processes: two poll the same pipe and sockets in another order, each also a pipe and a socket pair of its own; one waits for a
# server's answer, and its server for the next request. Ports are a server's: below those that the kernel gives to clients.
SAME_WAITS = r"""
import os, select, socket, sys, time

def listener(address):
    for port in range(20000 + os.getpid() % 10000, 32768):
        end = socket.socket()
        try:
            end.bind((address, port))
        except OSError:
            continue
        end.listen()
        return end

def child(name, work):
    pid = os.fork()
    if not pid:
        open("/proc/self/comm", "w").write(name)
        os.close(shared[1])
        work()
    pids.append(pid)

def poll(*fds):
    own, pair, polled = os.pipe(), socket.socketpair(), select.poll()
    for fd in (pair[0].fileno(), *fds, own[0]):
        polled.register(fd, select.POLLIN)
    polled.poll()

def serve(accepting):
    end = accepting.accept()[0]
    end.recv(1)
    end.recv(1)

def ask(address):
    end = socket.create_connection(address)
    end.send(b"x")
    end.recv(1)

pids = []
open("/proc/self/comm", "w").write("sw_main")
shared, busy = os.pipe(), listener("127.0.0.1")
child("sw_first", lambda: poll(shared[0], busy.fileno()))
child("sw_second", lambda: poll(busy.fileno(), shared[0]))
servers = [listener(address) for address in ("127.0.0.1", "127.0.0.2")]
for server in servers:
    child("sw_server", lambda: serve(server))
    child("sw_client", lambda: ask(server.getsockname()))
print(",".join(map(str, pids)), busy.getsockname()[1], *(server.getsockname()[1] for server in servers), flush=True)
time.sleep(600)
"""


@case
def waits_of_one_kind(ctx):
    """Threads that poll the same have one text, whatever the order, and whatever else their own processes can write to; waits_onsum keeps
    servers apart, but not their clients."""
    program = Process([sys.executable, "-c", SAME_WAITS])
    ctx.at_end(program.end)
    ctx.at_end(lambda: os.killpg(program.pid, signal.SIGKILL))
    wait_until(lambda: program.out.endswith(b"\n"), START_S, "its processes")
    pids, busy, first, second = program.out.decode().split()
    rows = ctx.rows("-a", "-p", pids, seconds=2 * SETTLED_S, columns="comm,waits_on,waits_onsum")
    told = {}
    for row in rows[len(rows) // 2:]:
        told.setdefault(row["comm"], set()).add(row["waits_on"] if row["comm"] in ("sw_first", "sw_second") else row["waits_onsum"])
    polled = {"2 fds: pipe from %d sw_main, tcp 127.0.0.1:%s listen" % (program.pid, busy)}
    check(told == {"sw_first": polled, "sw_second": polled, "sw_server": {"tcp 127.0.0.1:* peer * sw_client"},
                   "sw_client": {"tcp 127.0.0.1:%s peer * sw_server" % first, "tcp 127.0.0.2:%s peer * sw_server" % second}}, "%s", told)


def convoy(threads, held_s):
    """Starts threads of this process that take one mutex of the C library in turn."""
    libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)

    def work():
        while True:
            libc.pthread_mutex_lock(mutex)
            time.sleep(held_s)
            libc.pthread_mutex_unlock(mutex)
    for _ in range(threads):
        threading.Thread(target=work, daemon=True).start()


@case
def waits_of_convoy(ctx):
    """For a lock that goes from thread to thread waits_on names each holder, and waits_onsum is one line for them all."""
    pid = os.fork()
    if not pid:
        convoy(6, 0.02)
        time.sleep(600)
        os._exit(0)
    ctx.at_end(lambda: (os.kill(pid, 9), os.waitpid(pid, 0)))
    rows = ctx.rows("-p", pid, "--filter", "why=lock", seconds=3, columns="waits_on,waits_onsum")
    # the holder may have gone before tsnap looked it up
    rows = [row for row in rows if " held by " in row["waits_on"]]
    names = {row["waits_on"] for row in rows}
    check(len(rows) > 50 and len(names) > 2, "%d rows of %s", len(rows), names)
    sums = {row["waits_onsum"] for row in rows}
    check(sums == {"mutex * held by *"}, "%s", sums)


# A thread that has left its process's table of descriptors has the only other end of a pipe, of a socket pair and of a FIFO's open file with
# a lock: three children wait for these.
OWN_TABLE = r"""
import ctypes, fcntl, os, socket, sys, threading, time
libc, CLONE_FILES, PDEATHSIG = ctypes.CDLL(None), 0x400, 1

def child(work):
    pid = os.fork()
    if not pid:
        libc.prctl(PDEATHSIG, 9)
        work()
    return pid

def holder():
    if libc.unshare(CLONE_FILES):
        os._exit(1)
    pipe, pair, file = os.pipe(), socket.socketpair(), open(sys.argv[1], "w")
    fcntl.flock(file, fcntl.LOCK_EX)
    def alone(fd, wait):
        os.dup2(fd, 3)
        os.closerange(4, 100)
        wait()
    pids = [child(lambda: alone(pipe[0], lambda: os.read(3, 1))), child(lambda: alone(pair[1].fileno(), lambda: os.read(3, 1))),
            child(lambda: alone(0, lambda: fcntl.flock(open(sys.argv[1], "w"), fcntl.LOCK_EX)))]
    os.close(pipe[0])
    pair[1].close()
    open("/proc/thread-self/comm", "w").write("own_table")
    print(os.getpid(), threading.get_native_id(), *pids, flush=True)
    time.sleep(600)

threading.Thread(target=holder).start()
"""


@case
def ends_of_a_thread(ctx):
    """The other end of a pipe and of a socket pair, and a lock's open file, are found in the table of descriptors that a thread has for
    itself: waits_on and the chain lead to that thread."""
    process = Process([sys.executable, "-c", OWN_TABLE, os.path.join(ctx.temporary(), "lock")])
    ctx.started.append(process)
    wait_until(lambda: process.out.endswith(b"\n") or process.code is not None, START_S, "the children")
    pid, holder, *waiting = process.out.decode().split()
    rows = ctx.rows("-a", "-p", ",".join(waiting), seconds=SETTLED_S, columns="waits_on,waits_on_pid,blocker_tid,blocker_pid,chain")
    for tid, words in zip(waiting, ("pipe from %s own_table" % holder, "unix peer %s own_table" % holder, "lock on * held by %s own_table" % holder)):
        row = rows_of(rows, tid)[-1]
        check(fnmatch.fnmatchcase(row["waits_on"], words) and row["waits_on_pid"] == pid == row["blocker_pid"], "%s: %s", words, row)
        check(row["blocker_tid"] == holder, "%s leads to another one: %s", words, row)
