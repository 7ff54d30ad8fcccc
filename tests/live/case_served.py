"""Waits that began before tsnap: servers' threads that sleep elsewhere while a client of their connection waits for an answer."""
import os
import re
import sys

from harness import SLOW, START_S, STOP_S, Process, case, check, let_pass, rows_of, wait_until
from parts import Postgres, Session

# A server with a process for each client, as PostgreSQL is. Its way to wait once it has the request: on a lock, in a poll of two pipes,
# or in an epoll set. "answered": it answers first.
SERVER = r"""
import _thread, ctypes, os, select, socket, sys, time
path, ways, servers = sys.argv[1], ("lock", "poll", "epoll", "answered"), []

def listener(family, address):
    server = socket.socket(family)
    server.bind(address)
    server.listen()
    return server

def lock():
    held = _thread.allocate_lock()
    held.acquire()
    held.acquire()

def polled(polling):
    for _ in range(2):
        polling.register(os.pipe()[0], select.POLLIN)
    polling.poll()

def serve(server, way):
    connection = server.accept()[0]
    server.close()
    connection.recv(1)
    if way == "answered":
        time.sleep(0.1)
        connection.send(b"x")
    if way in ("poll", "epoll"):
        polled(getattr(select, way)())
    lock()

def ask(server):
    connection = socket.socket(server.family)
    connection.connect(server.getsockname())
    server.close()
    connection.send(b"x")
    while connection.recv(1):
        pass

def child(work, *args):
    pid = os.fork()
    if not pid:
        ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG
        work(*args)
    return pid

for family, address in ((socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_UNIX, path)):
    for way in ways if family == socket.AF_INET else ways[:-1]:
        if family == socket.AF_UNIX:
            address = path + way
        server = listener(family, address)
        servers.append(server)  # a port is a server's while one listens there
        print(way, "%s:%d" % server.getsockname() if family == socket.AF_INET else address, child(serve, server, way),
              child(ask, server), flush=True)
print("ready", flush=True)
time.sleep(600)
"""


@case
def served_since_before(ctx):
    """A process that waits for a lock or polls pipes while its client waits for an answer, both since before tsnap began, is part of a
    request, and its client leads to it; one that has answered is idle."""
    server = Process([sys.executable, "-c", SERVER, os.path.join(ctx.temporary(), "socket")])
    ctx.started.append(server)
    wait_until(lambda: b"ready" in server.out, START_S, "the clients")
    waits = [line.split() for line in server.out.decode().splitlines()[:-1]]
    pids = ",".join(",".join(words[2:]) for words in waits)
    rows = ctx.rows("-a", "-p", pids, seconds=4 * SLOW, columns="state,why,waits_on,blocker_tid,root_tid,root_why")
    for way, address, serving, asking in waits:
        row, of_client = rows_of(rows, serving)[-1], rows_of(rows, asking)[-1]
        if way == "answered":
            check(row["why"] == "futex" and "for " not in row["waits_on"], "answered: %s", row)
            continue
        check(row["why"] == "request", "%s, %s: %s", way, address, row)
        if address.startswith("127"):
            check(" for tcp " in row["waits_on"] and row["waits_on"].endswith("peer %s python3" % asking), "%s: %s", way, row)
        else:
            check(" for unix %s peer %s python3" % (address, asking) in row["waits_on"], "%s: %s", way, row)
        check((of_client["blocker_tid"], of_client["root_tid"], of_client["root_why"]) == (serving, serving, "request"),
              "%s, the client: %s", way, of_client)
    # a report of working threads has them
    rows = ctx.rows("-p", pids, seconds=2 * SLOW, columns="state,why")
    check({words[2] for words in waits if words[0] != "answered"} ==
          {row["tid"] for row in rows if row["why"] == "request"}, "without -a: %s", rows)


@case(thorough=True)
def postgres_since_before(ctx):
    """A session of PostgreSQL that has waited since before tsnap began, for a lock of its own kind or for time to pass, is part of a
    request; a session without one is idle."""
    server = Postgres(ctx)
    idle, asleep = Session(server, ctx), Session(server, ctx)
    asleep.say("select pg_sleep(600);")
    wait_until(lambda: server.clients("select pg_sleep%"), 20 * SLOW, "a query")
    rows = ctx.rows("-a", "-p", "%d,%d" % (idle.backend, asleep.backend), seconds=4 * SLOW, columns="state,why,waits_on")
    row, other = rows_of(rows, asleep.backend)[-1], rows_of(rows, idle.backend)[-1]
    check(row["why"] == "request" and row["waits_on"].endswith("peer %d psql" % asleep.pid), "pg_sleep: %s", row)
    check(other["why"] == "poll", "idle: %s", other)


# A server with a thread for each client, which waits for a lock that nobody gives back; and three clients.
THREADS_SERVER = r"""
import ctypes, os, socket, threading, time
held, server = threading.Lock(), socket.create_server(("127.0.0.1", 0))
held.acquire()
clients = []
for _ in range(3):
    clients.append(os.fork())
    if not clients[-1]:
        ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG
        open("/proc/self/comm", "w").write("sv_client")
        connection = socket.create_connection(server.getsockname())
        server.close()
        connection.send(b"x")
        connection.recv(1)

def serve(connection):
    connection.recv(1)
    held.acquire()

open("/proc/self/comm", "w").write("sv_server")
for _ in clients:
    threading.Thread(target=serve, args=server.accept()[:1]).start()
print(*clients, flush=True)
time.sleep(600)
"""


@case
def clients_since_before(ctx):
    """Which thread of a server with several serves a connection can't be told where all have slept since before tsnap began: each client
    leads to the process, and a finding counts the clients and says that the server sleeps."""
    server = Process([sys.executable, "-c", THREADS_SERVER])
    ctx.started.append(server)
    wait_until(lambda: b"\n" in server.out, START_S, "the clients")
    clients = server.out.decode().split()
    let_pass(2)  # no finding is made of shorter waits
    rows = ctx.rows("-a", "-p", ",".join([str(server.pid), *clients]), seconds=3 * SLOW, columns="state,why,waits_on,blocker_tid,blocker_pid,chain")
    for client in clients:
        row = rows_of(rows, client)[-1]
        check(row["why"] == "client" and row["waits_on"].endswith("peer %d sv_server" % server.pid), "%s", row)
        check((row["blocker_pid"], row["blocker_tid"], row["chain"]) == (str(server.pid), "", "sv_client socket> sv_server"), "%s", row)
    tool = ctx.plain("--findings", "-d", 3 * SLOW)
    tool.finish_plain(0, START_S + 3 * SLOW + STOP_S)
    told = " ".join(tool.out.decode().split())
    check(re.search(r"sv_client \(3\) wait for sv_server %d, which has not answered for \S+ \S+; it sleeps" % server.pid, told), "%s", told)
