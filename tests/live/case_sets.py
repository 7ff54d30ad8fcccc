"""Clients that wait for their server and for descriptors of their own: libcurl, Ruby, PHP, and event loops."""
import os
import select
import socket
import threading
import time

from harness import START_S, STOP_S, Findings, case, check, rows_of, scans_of, wait_until
from parts import Part, account, program

SETTLED_S = 2
COLUMNS = "state,comm,syscall,why,waits_on,waits_on_pid,connection,remote"
RUBY = 'require "net/http"; http = Net::HTTP.new("127.0.0.1", %d); http.read_timeout = 600; http.get("/")'
PHP = '$c = curl_init("http://127.0.0.1:%d/"); curl_exec($c);'
CLIENTS = (
    ("curl", "curl", lambda port: ["-s", "http://127.0.0.1:%d/" % port]),
    ("ruby", "ruby", lambda port: ["-e", RUBY % port]),
    ("php", "php-cli and php-curl", lambda port: ["-r", PHP % port]),
)


class Silent:
    """A server that takes requests and answers none; `asked` has a connection for each request."""

    def __init__(self, ctx):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.asked = []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        ctx.at_end(self.end)

    def serve(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            connection.recv(4096)
            self.asked.append(connection)

    def end(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(STOP_S)
        for connection in self.asked:
            connection.close()


@case
def set_clients(ctx):
    """curl, Ruby's Net::HTTP and PHP's curl wait for an answer in a poll of a connection and of descriptors of their own: each is
    shown without -a as a client, with its connection and its server, in every scan."""
    server = Silent(ctx)
    clients = [Part(ctx, account("nobody"), [program(name, package)] + args(server.port))
               for name, package, args in CLIENTS]
    for client in clients:
        client.wait_up(lambda: len(server.asked) >= len(clients))
    pids = ",".join(str(client.pid) for client in clients)
    tool = ctx.stream("-d", 2 * SETTLED_S, "-p", pids, columns=COLUMNS)
    scans, find = scans_of(tool.finish(0, START_S + 2 * SETTLED_S + STOP_S)), Findings()
    if "sock_diag" in tool.err:
        return
    check(len(scans) > 10, "%d scans", len(scans))
    seen, late = set(), 0
    for _, scan in scans[len(scans) // 2:]:
        for (name, _, _), client in zip(CLIENTS, clients):
            mine = rows_of(scan, client.pid)
            # some clients wake up once a second to look at the time
            find.expect(len(mine) == 1 and mine[0]["why"] == ("client" if mine[0]["state"] == "S" else ""), "%s: %s", name, mine)
            for row in mine:
                if row["state"] != "S" or not row["waits_on"]:
                    late += row["state"] == "S"  # the client woke up before tsnap read its descriptors
                    continue
                find.expect(row["remote"] == "127.0.0.1:%d" % server.port, "%s: remote %s", name, row)
                find.expect(row["waits_on_pid"] == str(os.getpid()), "%s: the server is %s", name, row)
                seen.add((name, int(row["waits_on"].split()[0])))
    find.close()
    check(late <= 0.1 * len(scans), "in %d of %d scans it is not told what they wait for", late, len(scans) // 2)
    check(any(count > 1 for _, count in seen), "none waits for several descriptors: %s", seen)


def by_epoll(ends):
    poll = select.epoll()
    for one in ends:
        poll.register(one, select.EPOLLIN)
    poll.poll()


def by_poll(ends):
    poll = select.poll()
    for one in ends:
        poll.register(one, select.POLLIN)
    poll.poll()


def loop(port, answered, listens, wait, telling):
    """An event loop with a connection on which an answer is due or has come, a socket pair of its own, maybe a listener."""
    client, pair = socket.create_connection(("127.0.0.1", port)), socket.socketpair()
    ends = [client, pair[0]]
    if listens:
        ends.append(socket.create_server(("127.0.0.1", 0)))
    client.send(b"?")
    if answered:
        client.recv(1)
    os.write(telling, b".")
    wait(ends)


@case
def set_loops(ctx):
    """An event loop with a connection works while an answer is due on it, and is idle once that has come, or where it also listens.
    With poll, select and epoll both ends of the connection that matters are shown."""
    kinds = {"epoll": (False, False, by_epoll), "poll": (False, False, by_poll),
             "select": (False, False, lambda ends: select.select(ends, [], [])),
             "answered": (True, False, by_epoll), "listens": (False, True, by_epoll)}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port, pids, ends, kept = listener.getsockname()[1], {}, {}, []
        for name, (answered, listens, wait) in kinds.items():
            reading, telling = os.pipe()
            pid = os.fork()
            if not pid:
                try:
                    loop(port, answered, listens, wait, telling)
                finally:
                    os._exit(1)
            ctx.at_end(lambda pid=pid: (os.kill(pid, 9), os.waitpid(pid, 0)))
            connection, (_, ends[name]) = listener.accept()
            connection.recv(1)
            time.sleep(0.05)  # more than the kernel's tick: a request and its answer within one count as answered
            if answered:
                connection.send(b"!")
            os.read(reading, 1)
            kept.append(connection)
            pids[name] = pid
        tool = ctx.stream("-a", "-d", 2 * SETTLED_S, "-p", ",".join(map(str, pids.values())), columns=COLUMNS)
        rows = tool.finish(0, START_S + 2 * SETTLED_S + STOP_S)
        if "sock_diag" in tool.err:
            return
        for name in kinds:
            wanted = "poll" if name in ("answered", "listens") else "client"
            mine = rows_of(rows, pids[name])
            check(mine and mine[-1]["why"] == wanted, "%s: %s", name, mine[-1:])
            if wanted == "client":
                told = "tcp 127.0.0.1:%d->127.0.0.1:%d established" % (ends[name], port), "127.0.0.1:%d" % port
                check((mine[-1]["connection"], mine[-1]["remote"]) == told, "%s: %s, not %s", name, mine[-1], told)


@case
def set_inherited(ctx):
    """For a pipe and a socket pair of which a process has both ends, as have its eight children, the process itself is shown."""
    reading, writing = os.pipe()
    here, there = socket.socketpair()
    for one in (reading, writing, here.fileno(), there.fileno()):
        os.set_inheritable(one, True)
    children = [Part(ctx, account("nobody"), ["sleep", "600"], pass_fds=(reading, writing, here.fileno(), there.fileno()))
                for _ in range(8)]
    tids, waiters = [], []
    for wait in (lambda: os.read(reading, 1), lambda: here.recv(1)):
        thread = threading.Thread(target=lambda wait=wait: (tids.append(threading.get_native_id()), wait()))
        thread.start()
        waiters.append(thread)
        wait_until(lambda: len(tids) == len(waiters), 10, "a waiting thread")
    tool = ctx.stream("-a", "-d", SETTLED_S, "-t", "%d,%d" % tuple(tids), columns="waits_on,waits_on_pid,comm")
    rows = tool.finish(0, START_S + SETTLED_S + STOP_S)
    os.write(writing, b".")
    there.send(b".")
    for thread in waiters:
        thread.join()
    told = [[(row["waits_on"], row["waits_on_pid"]) for row in rows_of(rows, tid)] for tid in tids]
    comm = rows_of(rows, tids[0])[0]["comm"]
    check(len(told[0]) > 10 and len(told[1]) > 10 and len(children) == 8, "%s", told)
    check(set(told[0]) == {("pipe from %d %s" % (os.getpid(), comm), str(os.getpid()))}, "%s", set(told[0]))
    check("sock_diag" in tool.err or told[1][-1] == ("unix peer %d %s" % (os.getpid(), comm), str(os.getpid())), "%s", told[1][-1])
    for one in (reading, writing):
        os.close(one)
    here.close()
    there.close()


WAITS = "import os; os.%s"


def ends_pass(ctx, ends, argv):
    return Part(ctx, account("nobody"), argv, pass_fds=ends)


@case
def ends_inherited(ctx):
    """For an end that eight processes have inherited the waiting process is shown if it has the other end, under a number far away; else
    the process that is in a call on it; else that it is one of eight."""
    reading, writing = os.pipe()
    here, there = (end.detach() for end in socket.socketpair())
    far = 600
    os.dup2(writing, far)
    rest = [ends_pass(ctx, (writing, there), ["sleep", "600"]) for _ in range(7)]
    # a process in a call on the pair's other end; it has the pipe, too
    user = ends_pass(ctx, (writing, there), ["/usr/bin/python3", "-c", WAITS % ("read(%d, 1)" % there)])
    both = ends_pass(ctx, (reading, far), ["/usr/bin/python3", "-c", WAITS % ("read(%d, 1)" % reading)])
    pipe = ends_pass(ctx, (reading,), ["/usr/bin/python3", "-c", WAITS % ("read(%d, 1)" % reading)])
    pair = ends_pass(ctx, (here,), ["/usr/bin/python3", "-c", WAITS % ("read(%d, 1)" % here)])
    for end in (reading, writing, here, there, far):
        os.close(end)
    wanted = {both: ("pipe from %d " % both.pid, str(both.pid)), pipe: ("pipe from one of 8", ""),
              pair: ("unix peer %d " % user.pid, str(user.pid))}
    tool = ctx.stream("-a", "-p", ",".join(str(part.pid) for part in wanted), columns="syscall,waits_on,waits_on_pid,comm")
    told = {}

    def known():
        for part, (words, pid) in wanted.items():
            rows = [row for row in rows_of(tool.rows(), part.pid) if row["syscall"] == "read"]
            told[words] = rows[-1:]
            if not rows or not rows[-1]["waits_on"].startswith(words) or rows[-1]["waits_on_pid"] != pid:
                return "sock_diag" in tool.err and part is pair
        return True
    try:
        wait_until(known, 20, "the other ends")
    finally:
        check(len(rest) == 7 and known(), "%s", told)
    tool.interrupt()
