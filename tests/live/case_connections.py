"""--trace connections: each TCP connection once, with its owner, ends, bytes and outcome."""
import os
import select
import socket
import subprocess
import sys
import time

from harness import START_S, case, check, wait_until

CLIENTS = 40
# A server that says its port, and for each connection reads what the client announces, answers twice as much, and then waits for the
# client to close, closes itself, or resets the connection.
SERVER = """
import socket, struct, sys
listener = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
listener.bind((sys.argv[1], 0))
listener.listen(64)
print(listener.getsockname()[1], flush=True)
while True:
    one, _ = listener.accept()
    size, end = struct.unpack("II", one.recv(8, socket.MSG_WAITALL))
    one.recv(size, socket.MSG_WAITALL)
    one.sendall(bytes(2 * size))
    if end == 0:
        one.recv(1)
    if end == 2:
        one.recv(1)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.close()
"""
CLIENT = """
import socket, struct, sys, time
size, end, hold = int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
one = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print(one.getsockname()[1], flush=True)
one.sendall(struct.pack("II", size, end) + bytes(size))
left = 2 * size
while left:
    left -= len(one.recv(left))
time.sleep(hold)
if end == 2:
    one.sendall(b"x")
try:
    one.recv(1) if end else None
except ConnectionResetError:
    pass
one.close()
"""


def begin(ctx, *args):
    tool = ctx.plain("--csv", "--trace", "connections", *args)
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    return tool


def python(text, *args):
    process = subprocess.Popen([sys.executable, "-c", text, *map(str, args)], stdout=subprocess.PIPE)
    return process, int(process.stdout.readline())


def one_row(rows, **wanted):
    found = [row for row in rows if all(row[key] == str(value) for key, value in wanted.items())]
    check(len(found) == 1, "%d rows of %s", len(found), wanted)
    return found[0]


@case
def connections_of_processes(ctx):
    """Each connection is shown once at each end: the process that opened or accepted it, addresses, exact bytes, duration, outcome."""
    tool = begin(ctx)
    expected = []
    for host in ("127.0.0.1", "::1"):
        server, port = python(SERVER, host)
        ends = "[%s]:%d" if ":" in host else "%s:%d"
        try:
            for number in range(CLIENTS // 2):
                size, end, hold = 1 + 7919 * number, number % 3, 0.05 * (number % 4)
                client, own = python(CLIENT, host, port, size, end, hold)
                client.wait()
                expected.append((server.pid, client.pid, ends % (host, port), ends % (host, own), size, end, hold))
        finally:
            time.sleep(0.2)
            server.kill()
            server.wait()
    rows = tool.interrupt()
    for server, client, there, here, size, end, hold in expected:
        row = one_row(rows, pid=client, local=here, remote=there, side="client")
        # the reset may come before the acknowledgement of the last byte
        check(int(row["sent"]) in (size + 8, size + 8 + (end == 2)) and int(row["received"]) == 2 * size, "%d: %s", size, row)
        check(row["outcome"] == ("reset" if end == 2 else "closed"), "%s", row)
        check(row["errno"] == ("ECONNRESET" if end == 2 else ""), "%s", row)
        check(hold <= int(row["duration_ns"]) / 1e9 < hold + 1 and 0 < int(row["connect_ns"]) < 1e9, "%s", row)
        row = one_row(rows, pid=server, local=there, remote=here, side="server")
        check((int(row["received"]), int(row["sent"])) == (size + 8 + (end == 2), 2 * size), "%d: %s", size, row)
        check(row["outcome"] == ("aborted" if end == 2 else "closed") and not row["connect_ns"], "%s", row)
    ours = {str(pid) for pids in expected for pid in pids[:2]}
    check(sum(row["pid"] in ours for row in rows) == 2 * len(expected), "others, too")
    check("single events" not in tool.err, "%s", tool.err)


@case
def connections_without_a_stand(ctx):
    """Refused and abandoned connects, those that were never accepted, and those of others: errno, and no process rather than a wrong one."""
    tool, mine = begin(ctx), begin(ctx, "-p", os.getpid())
    only_one = mine.code is not None and "before Linux 4.15 a tracepoint takes only one" in mine.err
    closed = socket.socket()
    closed.bind(("127.0.0.1", 0))
    refused = socket.socket()
    check(refused.connect_ex(closed.getsockname()) != 0, "not refused")
    # a full accept queue answers no SYN
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(1)  # a queue of 0 took no connection before Linux 4.10
    filling = [socket.create_connection(listener.getsockname()) for _ in range(2)]
    of_filling = ["127.0.0.1:%d" % one.getsockname()[1] for one in filling]
    given_up = socket.socket()
    given_up.setblocking(False)
    given_up.connect_ex(listener.getsockname())
    check(not select.select([], [given_up], [], 0.3)[1], "connected")
    of_listener, of_refused = "127.0.0.1:%d" % listener.getsockname()[1], "127.0.0.1:%d" % closed.getsockname()[1]
    of_given_up = "127.0.0.1:%d" % given_up.getsockname()[1]
    given_up.close()
    listener.close()  # resets those in its queue
    for one in filling:
        one.close()
    time.sleep(0.3)
    rows, of_mine = tool.interrupt(), None if only_one else mine.interrupt()
    row = one_row(rows, remote=of_refused)
    check((row["pid"], row["outcome"], row["errno"], row["sent"]) == (str(os.getpid()), "failed", "ECONNREFUSED", "0"), "%s", row)
    row = one_row(rows, local=of_given_up)
    check((row["pid"], row["outcome"], row["errno"]) == (str(os.getpid()), "abandoned", ""), "%s", row)
    check(int(row["duration_ns"]) > 250000000 and not row["connect_ns"], "%s", row)
    for one in of_filling:
        row = one_row(rows, local=of_listener, remote=one)
        check((row["pid"], row["tid"], row["comm"], row["side"]) == ("", "", "", "server"), "%s", row)
        row = one_row(rows, remote=of_listener, local=one, outcome="reset")
        check(row["pid"] == str(os.getpid()), "%s", row)
    check(only_one or {row["pid"] for row in of_mine} == {str(os.getpid())} and len(of_mine) == 4, "%s", of_mine)
