"""Wait classes: threads in S that work are shown without -a, with the rule in the column why."""
import os
import socket
import threading
import time

from case_waits import waiting_workloads
from harness import START_S, STOP_S, Findings, case, check, rows_of, scans_of

# {object of the workload `wait`: wait class}. Its sockets listen on ports that the kernel chose, and its clients have such ports, too.
WHYS = {
    "tcp_client": "client", "sendfile_tcp": "write", "splice_full": "write", "terminal_full": "write", "terminal_stopped": "write", "userfault": "file", "tcp_server": "server", "tcp_accept": "server", "tcp6_accept": "server", "netlink": "socket", "raw": "socket", "packet": "socket",
    "pipe_reader": "pipe", "pipe_writer": "write", "pipe_own": "pipe", "pipe_many": "pipe", "fifo_reader": "pipe", "fifo_open": "pipe",
    "fifo_open_relative": "pipe",
    "eventfd": "event", "eventfd_writer": "write", "poll_room": "write", "select_room": "write", "epoll_room": "write", "poll_queue": "event",
    "udp_asked": "client", "unix_datagram": "write", "tcp_linger": "write", "inotify": "event", "timerfd": "sleep", "pidfd_poll": "child", "poll_two": "poll", "select_two": "pipe",
    "epoll_two": "poll", "epoll_many": "poll", "child": "child", "child_id": "child", "timer": "sleep", "mutex": "lock",
    "mutex_recursive": "lock", "mutex_pi": "lock", "mutex_robust": "lock", "mutex_own": "lock", "mutex_lost": "lock", "mutex_shared": "lock", "mutex_shared_robust": "lock", "rwlock_reader": "lock", "rwlock_writer": "lock", "rwlock_of_readers": "lock",
    "stream": "lock", "condition": "futex", "join": "child",
    "futex_hostile": "futex", "io_uring": "ring", "io_uring_workers": "ring", "io_uring_timeout": "ring", "aio": "io", "file_lock": "lock", "semaphore": "event", "unix_path": "client",
}
WORK = {"client", "write", "lock", "io", "file"}
OF_SOCKETS = {"client", "server", "socket"}
SETTLED_S = 3  # time until all threads that slept before have a wait class


def wait_of(workload):
    return workload.name[len("on="):]


@case
def class_of_waits(ctx):
    """Each object that the workload `wait` waits on is work or not, and so its thread is shown without -a or not, in every
    scan once threads that slept before have been looked at."""
    workloads = waiting_workloads(ctx)
    pids = ",".join(str(workload.tgid) for workload in workloads)
    everything = ctx.stream("-a", "-d", 2 * SETTLED_S, "-p", pids, columns="state,syscall,why,waits_on")
    shown = ctx.stream("-d", 2 * SETTLED_S, "-p", pids, columns="state,syscall,why")
    scans = scans_of(everything.finish(0, START_S + 2 * SETTLED_S + STOP_S))
    shown = scans_of(shown.finish(0, START_S + 2 * SETTLED_S + STOP_S))
    find = Findings()
    told = "sock_diag" not in everything.err
    check(len(scans) > 10 and len(shown) > 10, "%d and %d scans", len(scans), len(shown))
    for workload in workloads:
        wanted = WHYS.get(wait_of(workload))
        if not wanted or (wanted in OF_SOCKETS and not told):
            continue
        for _, scan in scans[len(scans) // 2:]:
            for row in rows_of(scan, workload.tid):
                find.expect(row["why"] == wanted, "%s: '%s' in %s %s, not %s", wait_of(workload), row["why"], row["state"],
                            row["syscall"], wanted)
        for _, scan in shown[len(shown) // 2:]:
            mine = [row["why"] for row in rows_of(scan, workload.tid)]
            find.expect(mine == [wanted] * (wanted in WORK), "%s: shown as %s", wait_of(workload), mine)
    find.close()


@case
def daemon_ports(ctx):
    """--daemon-ports moves the line between clients and servers; a thread that listens or accepts stays a server."""
    workloads = ctx.workloads([("wait", {"on": name, "dir": ctx.temporary()})
                               for name in ("tcp_client", "tcp_server", "tcp_accept")])
    pids = ",".join(str(workload.tgid) for workload in workloads)
    for line, of_client in ((65536, "server"), (1, "client")):
        tool = ctx.stream("-a", "-d", 2, "-p", pids, "--daemon-ports", line, columns="why")
        rows = tool.finish(0, START_S + STOP_S)
        if "sock_diag" in tool.err:
            return
        for workload, wanted in zip(workloads, (of_client, "server", "server")):
            last = rows_of(rows, workload.tid)[-1]["why"]
            check(last == wanted, "%s: %s with --daemon-ports %d, not %s", workload.argv[2], last, line, wanted)


@case
def work_comes_and_goes(ctx):
    """A client that waits in recv is shown from its first sleep on, also if tsnap began earlier; not once it has its answer."""
    tool = ctx.stream("-F", 50, "-p", os.getpid(), columns="state,syscall,why")
    tool.wait_scans(2)
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        server = listener.accept()[0]
        waiter = threading.Thread(target=lambda: client.recv(1))
        began = time.monotonic()
        waiter.start()
        tid = waiter.native_id
        tool.wait_scans(50, lambda row: row["tid"] == str(tid) and row["state"] == "S")
        server.send(b"x")
        waiter.join()
        due = 50 * (time.monotonic() - began)
        tool.wait_sleeps(50)
        server.close()
    rows = rows_of(tool.interrupt(), tid)
    if "sock_diag" in tool.err:
        return
    asleep = [row for row in rows if row["state"] == "S"]
    late = tool.missed("late scans")
    check(0.7 * due - late < len(asleep) < 1.1 * due, "shown in %d scans, not in about %d; %d were late", len(asleep), due, late)
    check({(row["syscall"], row["why"]) for row in asleep} == {("recvfrom", "client")}, "%s", asleep[0])
