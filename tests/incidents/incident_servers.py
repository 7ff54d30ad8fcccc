"""Incidents of servers and of other ends."""
import os
import signal

import truth
from harness import SLOW, wait_until
from incident import Program, Truth, incident, look_alike, now, python, shell
from parts import free_port, program

LISTENER = """
import socket, sys, time
server = socket.socket()
server.bind(("127.0.0.1", int(sys.argv[1])))
server.listen(2)
print("ready", flush=True)
while True:
    connection, _ = server.accept()
    connection.recv(1000)
    time.sleep(float(sys.argv[2]))
    connection.sendall(b"HTTP/1.0 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
    connection.close()
"""


def curls(ctx, count, url, pause=None):
    """Clients, as many as that; with a pause each asks again after it."""
    curl = program("curl", "curl", "/usr/bin")
    for _ in range(count):
        if pause:
            shell(ctx, "while :; do %s -s %s; sleep %s; done" % (curl, url, pause))
        else:
            Program(ctx, [curl, "-s", url])


def pipe_to_gzip(ctx, feed):
    """The pid of a gzip that reads a pipe from this command."""
    pipe = shell(ctx, "%s | gzip -1 >/dev/null" % feed)
    return wait_until(lambda: next((pid for pid in truth.children(pipe.pid)
                                    if (truth.read("/proc/%d/comm" % pid) or "").strip() == "gzip"), None), 20 * SLOW, "gzip")


@incident(8, often=True)
def pipe_reader_stopped(ctx):
    """The reader of a pipe, gzip, is stopped; the writer, cat, waits for it."""
    gzip = pipe_to_gzip(ctx, "cat /dev/zero")
    os.kill(gzip, signal.SIGSTOP)
    return Truth("stopped", ("cat", None), ("gzip", gzip), "is stopped", now())


@look_alike(8)
def stopped_and_not_missed(ctx):
    """The reader of a pipe is stopped, and nobody writes to the pipe."""
    gzip = pipe_to_gzip(ctx, "sleep 1000")
    os.kill(gzip, signal.SIGSTOP)
    return ("server", "sleeper", "lock")


@incident(10, often=True)
def accept_queue_full(ctx):
    """A server that answers one request in an hour: one client is in work, three wait to be accepted, eight to be connected."""
    port = free_port()
    server = python(ctx, LISTENER, str(port), "3600")
    since = now()
    curls(ctx, 12, "http://127.0.0.1:%d/" % port)
    return Truth(("server", "sleeper"), ("curl", 12), ("python3", server.pid), "accept", since, also=("accept_queue", "unread"))


@look_alike(10)
def accept_queue_empty(ctx):
    """A server that answers each of its clients at once."""
    port = free_port()
    python(ctx, LISTENER, str(port), "0")
    curls(ctx, 2, "http://127.0.0.1:%d/" % port, pause=0.2)
    return ("server", "sleeper", "accept_queue")


# A name server that takes requests, and answers them or not.
NAME_SERVER = """
import socket, struct, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind((sys.argv[1], 53))
print("ready", flush=True)
while True:
    request, client = server.recvfrom(2000)
    if sys.argv[2] == "answers": # that there is no such name
        server.sendto(request[:2] + struct.pack(">H", 0x8183) + request[4:], client)
"""
NAME_SERVER_ADDRESS = "127.0.0.77"


def resolving(ctx, command, how):
    """Runs a command with a name server of its own."""
    path = os.path.join(ctx.temporary(), "resolv.conf")
    with open(path, "w") as file:
        file.write("nameserver %s\n" % NAME_SERVER_ADDRESS)
    python(ctx, NAME_SERVER, NAME_SERVER_ADDRESS, how)
    return Program(ctx, ["unshare", "--mount", "/bin/sh", "-c", "mount --bind %s /etc/resolv.conf && %s" % (path, command)])


@incident(7)
def dns_without_answer(ctx):
    """Four clients ask a name server that does not answer."""
    curl = program("curl", "curl", "/usr/bin")
    resolving(ctx, "for i in 1 2 3 4; do %s -s http://shop.example.com/ & done; wait" % curl, "is silent")
    return Truth("server", ("curl", 4), None, "udp %s:53" % NAME_SERVER_ADDRESS)


@look_alike(7)
def dns_with_answers(ctx):
    """A client asks a name server, which answers, again and again."""
    curl = program("curl", "curl", "/usr/bin")
    resolving(ctx, "while :; do %s -s http://shop.example.com/; sleep 0.1; done" % curl, "answers")
    return ("server", "sleeper")
