"""Requests that wait in sockets without a thread: counted and dated as the clients sent them, with the process that should read; and what looks
like that and is none."""
import os
import socket
import subprocess
import sys
import time

from case_findings import begin, end, problems
from case_record import rows_of_files
from harness import SLOW, START_S, STOP_S, case, check, wait_until
from parts import free_port

SECONDS = 3
POOL = 4

# A backend that never answers; a server with a pool. "handed": its first thread accepts all connections and hands them to the pool, whose threads
# read a request, and ask the backend. "accepting": all threads accept for themselves. "idle": it has accepted all, and its one thread waits for
# another connection; "reading": each connection has its own thread, which reads the request.
SERVER = """
import os, queue, socket, sys, threading, time
mode, port, pool = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
backend = socket.socket()
backend.bind(("127.0.0.1", 0))
backend.listen(64)
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", port))
listener.listen(32)
connections, kept = queue.Queue(), []
def serve(client):
    asked = socket.create_connection(backend.getsockname())
    kept.append((client, asked))
    client.recv(100)
    asked.send(b"select")
    asked.recv(100)
def take():
    while True:
        serve(connections.get() if mode == "handed" else listener.accept()[0])
if mode in ("handed", "accepting"):
    for _ in range(pool - (mode == "accepting")):
        threading.Thread(target=take).start()
print("ready", flush=True)
if mode == "accepting":
    take()
while True:
    client = listener.accept()[0]
    kept.append(client)
    if mode == "handed":
        connections.put(client)
    elif mode == "reading":
        threading.Thread(target=serve, args=(client,)).start()
"""


class Server:
    def __init__(self, mode):
        self.port = free_port()
        # the backend's own listener has a queue, too, of which nothing is asked: its connections are not accepted
        self.process = subprocess.Popen([sys.executable, "-c", SERVER, mode, str(self.port), str(POOL)], stdout=subprocess.PIPE)
        check(self.process.stdout.readline() == b"ready\n", "no server")
        self.clients = []

    def ask(self, count):
        for _ in range(count):
            client = socket.create_connection(("127.0.0.1", self.port))
            client.send(b"GET / HTTP/1.0\r\n\r\n")
            self.clients.append(client)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        for client in self.clients:
            client.close()


def unread_in_socket(port):
    """Connections to that port with unread data, as /proc/net/tcp has them: accepted or not."""
    with open("/proc/net/tcp") as lines:
        rows = [line.split() for line in lines][1:]
    return sum(row[3] == "01" and int(row[1].split(":")[1], 16) == port and int(row[4].split(":")[1], 16) > 0 for row in rows)


def found(ctx, server):
    """The finding of the server's port, and the time that passed until the end of the report."""
    objects = end(begin(ctx, None, seconds=SECONDS), SECONDS)[0]
    told = [told for told in problems(objects) if told["finding"] == "unread"]
    return next((one for one in told if one["things"][0]["name"] == "tcp :%d" % server.port), None)


def of_pool(ctx, mode, waiting, unaccepted, threads):
    """A server whose pool waits for a backend, with `waiting` requests that no thread reads."""
    server = Server(mode)
    try:
        server.ask(POOL)
        wait_until(lambda: not unread_in_socket(server.port), START_S, "the pool has not read its requests")
        before = time.monotonic()
        server.ask(waiting)
        asked = time.monotonic()
        wait_until(lambda: unread_in_socket(server.port) == waiting, START_S, "the requests have not come")
        # the first client is the oldest: it is at least as old as the report's end, and the report began after the last one
        told = found(ctx, server)
        latest = time.monotonic() - before
        check(unread_in_socket(server.port) == waiting, "the requests were read")
        check(told, "no finding for %d unread requests", waiting)
        print("# %s" % told["text"])
        check(told["unread"] == waiting and told["unaccepted"] == unaccepted, "%s unread, %s not accepted", told["unread"], told["unaccepted"])
        check(told["culprits"][0]["pid"] == server.process.pid, "%s", told["culprits"])
        check(1e6 <= told["longest_us"] <= latest * 1e6, "oldest %s us, after %.1f s", told["longest_us"], latest)
        check(told["longest_us"] >= (SECONDS - 1.5) * 1e6 / SLOW, "oldest %s us, %.1f s since it was asked", told["longest_us"], time.monotonic() - asked)
        check(told["process_threads"] == threads, "%s threads", told["process_threads"])
        check(told["culprits"][0]["threads"] == POOL, "%s threads work or wait", told["culprits"])
        check(told["certainty"] == "certain", "%s", told["certainty"])
        words = "all of its %d threads sleep" % POOL if threads == POOL else " of its %d threads work or wait: they sleep" % threads
        check(words in told["text"] and "in recv" in told["text"], "%s", told["text"])
    finally:
        server.end()


@case
def unread_in_accept_queue(ctx):
    """All threads of a pool wait for a backend: six requests are in the accept queue, and all threads are named with what they wait for."""
    of_pool(ctx, "accepting", 6, 6, POOL)


@case
def unread_in_connections(ctx):
    """A thread accepts connections that the pool has no thread for: their requests are unread, and nothing is in the accept queue."""
    of_pool(ctx, "handed", 6, 0, POOL + 1)


@case
def unread_by_nobody(ctx):
    """A server that is idle and does not read its connections, one that has read all, and data that waits for a client: no findings."""
    for mode in ("idle", "reading"):
        server = Server(mode)
        try:
            server.ask(6)
            if mode == "reading":
                wait_until(lambda: not unread_in_socket(server.port), START_S, "the server does not read")
            else:
                wait_until(lambda: unread_in_socket(server.port) == 6, START_S, "the requests have not come")
            told = found(ctx, server)
            check(not told, "%s: %s", mode, told and told["text"])
        finally:
            server.end()
    with socket.create_server(("127.0.0.1", 0)) as speaker, socket.create_connection(speaker.getsockname()) as listens:
        speaker.accept()[0].send(b"news")
        time.sleep(0.2)
        objects = end(begin(ctx, str(os.getpid()), seconds=SECONDS), SECONDS)[0]
        check(not any(told["finding"] == "unread" for told in problems(objects)), "%s", problems(objects))
        check(listens.recv(10) == b"news", "the data was not there")


@case
def unread_in_recording(ctx):
    """The findings of a recording have the port, and so does a replay of the whole."""
    server = Server("accepting")
    try:
        server.ask(POOL)
        wait_until(lambda: not unread_in_socket(server.port), START_S, "the pool has not read its requests")
        server.ask(6)
        directory = ctx.temporary()
        ctx.plain("-o", directory, "-d", (SECONDS + 1) * SLOW).finish_plain(0, START_S + (SECONDS + 1) * SLOW + STOP_S)
        found = [row for row in rows_of_files(directory, "findings") if row["thing"] == "tcp :%d" % server.port]
        check(found and all(row["finding"] == "unread" for row in found), "%s", found)
        check("6 requests" in found[-1]["text"] and "python3 %d" % server.process.pid in found[-1]["text"], "%s", found[-1]["text"])
        for args, told in ((["--findings"], True), (["--findings", "-c", "no such name"], False)):
            replay = ctx.plain("--replay", directory, *args)
            replay.finish_plain(0, START_S + STOP_S)
            check((found[-1]["text"] in replay.out.decode()) == told, "%s: %s", args, replay.out.decode())
    finally:
        server.end()


@case
def unread_in_chains(ctx):
    """--chains has a line for the port, also where no thread waits for another one."""
    server = Server("accepting")
    try:
        server.ask(POOL)
        wait_until(lambda: not unread_in_socket(server.port), START_S, "the pool has not read its requests")
        server.ask(5)
        tool = ctx.plain("--chains", "-d", SECONDS)
        tool.finish_plain(0, START_S + SECONDS + STOP_S)
        lines = [line for line in tool.out.decode().splitlines() if "tcp :%d " % server.port in line]
        check(any(line.startswith("5 requests wait unread at tcp :%d of python3 %d, the oldest for " % (server.port, server.process.pid))
                  for line in lines), "%s", lines or tool.out.decode()[-600:])
    finally:
        server.end()
