"""Real programs under load: what PostgreSQL, redis and stress-ng say of themselves, against what tsnap says of them. Truth is what
the program reports (pg_stat_activity, CLIENT LIST ...) and what /proc counts; tests/README.md says where they may differ."""
import collections
import os
import re
import socket
import subprocess
import threading
import time

import truth
from case_totals import COLUMNS, Accounts, expect_totals, near, sums
from case_trace import Traced, begin, schedstat, stolen_ns
from harness import SLOW, Findings, Skip, case, check, let_pass, number, rows_of, scans_of, timestamp_s, wait_until
from parts import MariaDB, Part, Postgres, Redis, Runqlat, Session, Stress, account

UNSEEN = 0.08  # share of times that may begin or end at switches at which the kernel runs no BPF program
WAITS = "state,state_us,syscall,connection,remote,waits_on,waits_on_pid"


def client_ports(pid):
    """Local ports of the process's TCP connections, from /proc."""
    inodes = set()
    for fd in truth.read_dir("/proc/%d/fd" % pid):
        try:
            inodes.add(re.sub(r"\D", "", os.readlink("/proc/%d/fd/%s" % (pid, fd))))
        except OSError:
            pass  # the descriptor was closed since
    lines = (truth.read("/proc/%d/net/tcp" % pid) or "").splitlines()[1:]
    return [int(line.split()[1].split(":")[1], 16) for line in lines if line.split()[9] in inodes]


def in_memory(path):
    """True if the file system there is a tmpfs."""
    mounts = [line.split() for line in truth.read("/proc/mounts").splitlines()]
    best = max((words for words in mounts if (path + "/").startswith(words[1].rstrip("/") + "/")), key=lambda words: len(words[1]))
    return best[2] == "tmpfs"


@case(thorough=True)
def postgres_sockets(ctx):
    """pgbench and the backends that serve it are shown to wait for each other, with the ports that the server names; user
    and cgroup are theirs."""
    server = Postgres(ctx)
    script = server.directory + "/script"
    with open(script, "w") as file:
        file.write("select pg_sleep(0.03);\n\\sleep 30 ms\n")
    games = [server.pgbench(ctx, "-n", "-f", script, "-T", "60") for _ in range(2)]
    # pgbench's first connection is a short one, and not one of its clients
    backends = wait_until(lambda: len(server.clients("%pg_sleep%")) == len(games) and server.clients("%pg_sleep%"), 20 * SLOW,
                          "two backends")
    find, seen = Findings(), collections.Counter()
    rows = ctx.rows("-a", "-r", "-p", ",".join(str(part.pid) for part in [server] + games), seconds=3,
                    columns=WAITS + ",user,cgroup")
    for game in games:
        port, = client_ports(game.pid)
        backend, = (pid for pid, client in backends.items() if client == port)
        for row in rows_of(rows, backend):
            find.expect(row["user"] == server.user.pw_name, "user %s", row["user"])
            find.expect(row["cgroup"] in truth.read("/proc/%d/cgroup" % backend), "cgroup %s", row["cgroup"])
            told = re.search(r"tcp [^ ,]+( peer [^,]*)?", row["waits_on"])
            if told:
                find.expect(row["syscall"] == "epoll_wait" and row["waits_on"].startswith("3 fds: "), "%s", row)
                # the search for the other end's process goes on meanwhile: if waits_on names it, the name is right, and mostly it does
                ends = {"", " peer %d pgbench" % game.pid}
                find.expect(told.group() in {"tcp 127.0.0.1:%d%s" % (port, end) for end in ends}, "backend %d: %s", backend,
                            row["waits_on"])
                seen["client"] += told.group(1) is not None
            elif row["state"] == "S" and row["waits_on"]:  # pg_sleep waits for its latch: a signal, or the end of the postmaster
                words = row["waits_on"].replace("2 fds: ", "").split(", ")
                find.expect(len(words) == 2 and set(words) <= {"signal", "pipe", "pipe from %d postgres" % server.pid},
                            "backend %d: %s", backend, row["waits_on"])
                seen["sleep"] += "pipe" not in words
        for row in rows_of(rows, game.pid):
            if row["waits_on"].startswith("1 fd: "):
                told = {"1 fd: tcp 127.0.0.1:%d" % server.port: "",
                        "1 fd: tcp 127.0.0.1:%d peer %d postgres" % (server.port, backend): str(backend)}
                find.expect(told.get(row["waits_on"]) == row["waits_on_pid"], "pgbench: %s %s", row["waits_on"],
                            row["waits_on_pid"])
                seen["server"] += row["waits_on_pid"] != ""
    find.close()
    check(min(seen[word] for word in ("client", "sleep", "server")) >= 5, "too few were seen so: %s", seen)


@case
def postgres_lock(ctx):
    """In a row lock a backend waits for the one in a transaction and no longer for its client, from the time that the server
    reports; when it goes on, the waker is the backend that the server named as the holder."""
    server = Postgres(ctx, deadlock_timeout="1min")
    server.ask_once("create table t as select 1 as x")
    holder, waiter = Session(server, ctx), Session(server, ctx)
    for session in (holder, waiter):
        session.ask("begin")
    holder.ask("update t set x = 2")
    tool = ctx.stream("-a", "-t", "%d,%d" % (holder.backend, waiter.backend), columns=WAITS + ",waker_tid,waker_pid,dwait_us")
    tool.wait_scans(2)
    waiter.say("update t set x = 3;")
    asked = "select wait_event_type, pg_blocking_pids(pid), extract(epoch from query_start) from pg_stat_activity where pid = %d"
    wait_until(lambda: server.ask_once(asked % waiter.backend).startswith("Lock|{%d}|" % holder.backend), 20 * SLOW, "the lock")
    since = float(server.ask_once(asked % waiter.backend).split("|")[2])
    now = len(tool.scans())
    tool.wait_scans(now + 20)
    held, first = tool.scans(), now + 1
    holder.ask("commit")
    tool.wait_scans(len(held) + 20)
    scans = scans_of(tool.interrupt())
    for when, scan in scans[first:len(held)]:
        row, = rows_of(scan, waiter.backend)
        check(row["state"] == "S" and row["syscall"] == "epoll_wait", "%s", row)
        check(row["waits_on"] == "database lock (idle in transaction), likely held by %d postgres" % holder.backend, "%s", row)
        began = timestamp_s(when) - number(row, "state_us") / 1e6
        check(-0.01 < began - since < 0.3 * SLOW, "it waits since %f, the server says %f", began, since)
        other, = rows_of(scan, holder.backend)
        check("tcp 127.0.0.1:%d" % server.clients()[holder.backend] in other["waits_on"], "the holder: %s", other)
    last, = rows_of(scans[-1][1], waiter.backend)
    check("tcp 127.0.0.1:%d" % server.clients()[waiter.backend] in last["waits_on"], "it went on: %s", last)
    woken = [row for _, scan in scans[len(held):] for row in rows_of(scan, waiter.backend) if row["state"] == "S"]
    check(woken and last["waker_tid"] == last["waker_pid"] == str(holder.backend), "woken by %s, the lock was %d's", last,
          holder.backend)


@case(thorough=True)
def postgres_wal(ctx):
    """During commits the samples in fdatasync of files in pg_wal stand for as much time as the server says that it took, and the samples
    in D or S for as much as --trace offcpu measured."""
    server = Postgres(ctx, track_wal_io_timing="on", checkpoint_timeout="1d")
    if in_memory(server.directory):
        raise Skip("%s is in memory: fdatasync does nothing" % server.directory)
    server.fill(ctx)
    asked = "select wal_sync, wal_sync_time from pg_stat_wal"
    if not server.ask_once(asked):
        raise Skip("this PostgreSQL does not tell the time of fdatasync in pg_stat_wal")
    server.ask_once("select pg_stat_reset_shared('wal')")
    args = ["-r", "-p", server.pid]
    trace = begin(ctx, "-g", "comm", *args, kinds="offcpu")
    tool = ctx.stream("-a", "-F", 100, *args, columns="state,syscall,filename")
    tool.wait_scans(2)
    game = server.pgbench(ctx, "-n", "-N", "-c", "4", "-T", "3")
    check(game.wait(40 * SLOW) == 0, "pgbench: %s", game.err)
    tool.wait_scans(len(tool.scans()) + 2)
    count, time_ms = (float(word) for word in server.ask_once(asked).split("|"))
    rows, sleeps = tool.interrupt(), Traced(trace.interrupt(), trace="offcpu", syscall="fdatasync")
    check(count > 50, "%d times fdatasync", count)
    synced = [row for row in rows if row["syscall"] == "fdatasync"]
    names = {row["filename"] for row in synced if row["state"] in "DS" and row["filename"]}  # empty if not looked up in time
    check(names and all(re.fullmatch(server.directory + r"/data/pg_wal/[0-9A-F]{24}", name) for name in names), "%s", names)
    seen_ms = sum(number(row, "weight_us") for row in synced) / 1000
    check(0.75 * time_ms - 100 < seen_ms < 1.25 * time_ms + 100, "%d ms were seen, the server says %d", seen_ms, time_ms)
    check(sleeps.count >= 0.9 * count, "%d sleeps in %d calls", sleeps.count, count)
    # the rest of the call is work, and waits for a CPU: most of the call where the machine is busy
    asleep_ms = sum(number(row, "weight_us") for row in synced if row["state"] in "DS") / 1000
    slept_ms = sleeps.total_ns / 1e6
    check(slept_ms <= 1.01 * time_ms, "%d ms of sleep, the server says %d", slept_ms, time_ms)
    check(abs(asleep_ms - slept_ms) < 0.25 * slept_ms + 13 * slept_ms ** 0.5 + 50 * SLOW, "%d ms of samples in D or S, %d exactly",
          asleep_ms, slept_ms)


@case
def postgres_times(ctx):
    """Exact times and switches of a backend at work are those that the kernel counts."""
    server = Postgres(ctx)
    session, script = Session(server, ctx), server.directory + "/script"
    with open(script, "w") as file:
        file.write("select 1 \\g /dev/null\n" * 300 + "select count(*) from generate_series(1, 3000000) \\g /dev/null\n" +
                   "select pg_sleep(0.2) \\g /dev/null\n")
    tool = ctx.stream("-a", "-t", session.backend, columns=COLUMNS)
    tool.wait_scans(3)
    before, start = Accounts(session.backend), len(tool.scans())
    session.ask("\\i %s\nselect 1" % script)
    wait_until(lambda: truth.Thread(session.backend).letter == "S", 5 * SLOW, "the backend asleep")
    kernel = Accounts(session.backend).minus(before)
    tool.wait_scans(len(tool.scans()) + 3)
    rows = [row for _, scan in scans_of(tool.interrupt())[start - 1:] for row in scan]
    check(kernel.vcsw > 50, "only %d switches", kernel.vcsw)
    expect_totals(sums(rows), kernel)


@case
def redis_clients(ctx):
    """The event loop is shown with the descriptors that it has, a client in BLPOP with its connection, as the server lists it."""
    server = Redis(ctx)
    client = server.client(ctx, "blpop", "nothing", "0")
    wait_until(lambda: [one for one in server.clients() if one.get("cmd") == "blpop"], 20 * SLOW, "the client")
    blocked, = (one for one in server.clients() if one["cmd"] == "blpop")
    check("b" in blocked["flags"], "%s", blocked)
    rows = ctx.rows("-a", "-p", "%d,%d" % (server.pid, client.pid), seconds=3, columns=WAITS + ",fd,filetype")
    row = rows_of(rows, client.pid)[-1]
    check(row["state"] == "S" and row["syscall"] in ("read", "recvfrom"), "%s", row)
    check(row["connection"] == "tcp %s->127.0.0.1:%d established" % (blocked["addr"], server.port), "'%s', the server has %s",
          row["connection"], blocked["addr"])
    check(row["remote"] == "127.0.0.1:%d" % server.port, "remote is '%s'", row["remote"])
    check(row["waits_on_pid"] == str(server.pid) and row["waits_on"].endswith(" peer %d redis-server" % server.pid), "%s", row)
    # the server runs ten times a second: what is read too late of a wait is absent
    loop = [row for row in rows_of(rows, server.pid) if row["syscall"] == "epoll_wait" and row["state"] == "S" and row["waits_on"]][-1]
    file = truth.read("/proc/%d/fdinfo/%s" % (server.pid, loop["fd"]))
    ends = [os.readlink("/proc/%d/fd/%s" % (server.pid, fd)) for fd in re.findall(r"^tfd: *(\d+)", file, re.M)]
    count = sum(not end.startswith("pipe:") for end in ends)  # the server has both ends of its pipe
    check(loop["filetype"] == "epoll" and loop["waits_on"].startswith("%d fds: " % count), "%s; %s", loop, file)
    for words in ("tcp 127.0.0.1:%d listen" % server.port, "tcp %s peer %d redis-cli" % (blocked["addr"], client.pid)):
        check(words in loop["waits_on"], "no '%s' in '%s'", words, loop["waits_on"])


@case
def redis_load(ctx):
    """Exact times and switches of a server under redis-benchmark are those that the kernel counts."""
    server = Redis(ctx)
    tool = ctx.stream("-a", "-p", server.pid, columns=COLUMNS)
    tool.wait_scans(3)
    before, start = Accounts(server.pid), len(tool.scans())
    subprocess.run(server.command("redis-benchmark", "-c", 20, "-n", 20000, "-t", "get", "-q"), stdout=subprocess.DEVNULL,
                   check=True, timeout=100 * SLOW)
    kernel = Accounts(server.pid).minus(before)
    tool.wait_scans(len(tool.scans()) + 3)
    rows = [row for _, scan in scans_of(tool.interrupt())[start - 1:] for row in rows_of(scan, server.pid)]
    check(kernel.vcsw > 100, "only %d switches", kernel.vcsw)
    total, switches = sums(rows), kernel.vcsw + kernel.ivcsw
    # the server's clock wakes it ten times a second, also between the two readings of the test
    check(abs(total["vcsw"] - kernel.vcsw) <= 0.02 * kernel.vcsw + 10 * SLOW, "vcsw %d, not %d", total["vcsw"], kernel.vcsw)
    if kernel.schedstat:
        for name, expected in zip(("cpu_us", "runq_us"), kernel.schedstat):
            near(name, total[name], expected, switches, stolen_us=kernel.stolen_us)


@case(thorough=True)
def stress_run_queue(ctx):
    """Four workers of stress-ng on one CPU, which hold still when accounts are read, have as many run-queue waits by --trace, and as much
    time in them by --trace and by samples, as the kernel counts; RQ has about its share of the samples."""
    stress = Stress(ctx, 4)
    tids = ",".join(str(tid) for tid in stress.tids)
    before, stolen = {tid: schedstat(tid) for tid in stress.tids}, stolen_ns()
    trace = begin(ctx, "-g", "tid,comm", kinds="runq")
    tool = ctx.stream("-a", "-t", tids, columns=COLUMNS)
    tool.wait_scans(3)
    start = len(tool.scans())
    stress.go()
    let_pass(3)
    stress.hold()
    tool.wait_scans(len(tool.scans()) + 3)
    stolen = stolen_ns() - stolen
    rows, waits = [row for _, scan in scans_of(tool.interrupt())[start - 1:] for row in scan], trace.interrupt()
    for tid in stress.tids:
        ran_ns, delay_ns, count = (a - b for a, b in zip(schedstat(tid), before[tid]))
        traced, mine = Traced(waits, trace="runq", tid=tid), rows_of(rows, tid)
        # at some switches the kernel runs no BPF program: tests/README.md
        check(traced.count > 2 and 0.95 * count - 1 <= traced.count <= count + 1, "%d: %d waits, the kernel counts %d", tid,
              traced.count, count)
        total = sums(mine)
        near("total_ns / 1000", traced.total_ns / 1000, delay_ns / 1000, count, UNSEEN, stolen / 1000)
        near("runq_us", total["runq_us"], delay_ns / 1000, count, UNSEEN, stolen / 1000)
        near("cpu_us", total["cpu_us"], ran_ns / 1000, count, UNSEEN, stolen / 1000)
        busy = [row["state"] for row in mine if row["state"] in ("ON", "RQ")]
        waiting, expected = busy.count("RQ") / len(busy), delay_ns / (ran_ns + delay_ns)
        check(abs(waiting - expected) < 0.25, "%d: RQ in %.2f of its samples, %.2f of its time", tid, waiting, expected)


@case(thorough=True)
def stress_runqlat(ctx):
    """--trace and bcc's runqlat, run at once, count as many run-queue waits of a worker, in the same buckets. Buckets of runqlat
    begin at 2^n us, those of tsnap at 1.024 times that."""
    stress = Stress(ctx, 3)
    tid = stress.tids[0]
    peer = Runqlat(ctx, tid)
    trace = begin(ctx, "-g", "tid", kinds="runq")
    stress.go()
    let_pass(2)
    stress.hold()
    theirs, ours = peer.finish(), Traced(trace.interrupt(), trace="runq", tid=tid)
    count = sum(theirs.values())
    check(count > 2 and abs(ours.count - count) <= 1 + 0.02 * count, "%d waits, of runqlat %d", ours.count, count)
    for shift in range(30):
        longer = sum(n for low, n in ours.buckets.items() if low >= 1024 << shift)
        least = sum(n for low, n in theirs.items() if low >= 1 << shift)
        check(least - 0.1 * count - 2 <= longer <= least + 0.02 * count + 1, "from %d us on %d, of runqlat %d: %s %s",
              1 << shift, longer, least, ours.buckets, theirs)


class ThreadServer:
    """A server with a thread for each connection. The thread answers "lock" after another thread lets it, "done" at once, and then waits
    for more to do."""

    def __init__(self, ctx, path=None):
        if path:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(path)
            self.listener.listen()
        else:
            self.listener = socket.create_server(("127.0.0.1", 0))
            self.port = self.listener.getsockname()[1]
        self.tids, self.lock = {}, threading.Condition()
        ctx.at_end(self.end)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        word = connection.recv(16).decode()  # the thread sleeps here first
        if word == "done":
            time.sleep(0.1)  # more than a tick of the kernel
            connection.send(b"answer")
        self.tids[word] = threading.get_native_id()
        with self.lock:
            self.lock.wait()
        connection.close()

    def end(self):
        self.listener.close()
        with self.lock:
            self.lock.notify_all()


@case
def server_in_a_lock(ctx):
    """A server's thread that sleeps on a condition variable works while the client of its connection waits, and shows which client; a
    thread that has answered is idle."""
    server = ThreadServer(ctx)
    clients = {word: socket.create_connection(("127.0.0.1", server.port)) for word in ("lock", "done")}
    tool = ctx.stream("-a", "-p", os.getpid(), columns="state,syscall,why,waits_on,connection,remote")
    tool.wait_scans(10)  # meanwhile the connections' threads wait for a request
    for word, client in clients.items():
        client.send(word.encode())
    wait_until(lambda: len(server.tids) == 2, 20, "the server's threads")

    def told(word):
        rows = [row for row in rows_of(tool.rows(), server.tids[word]) if row["syscall"] == "futex"]
        return len(rows) > 10 and rows[-1]
    row = wait_until(lambda: told("lock"), 20, "rows of the thread in a lock")
    port = clients["lock"].getsockname()[1]
    check(row["why"] == "request" and row["remote"] == "127.0.0.1:%d" % port, "%s", row)
    check(re.fullmatch(r"futex 0x\w+ for tcp 127\.0\.0\.1:%d peer %d .*" % (port, os.getpid()), row["waits_on"]), "%s", row)
    row = wait_until(lambda: told("done"), 20, "rows of the thread that has answered")
    check(row["why"] == "futex" and not row["remote"], "%s", row)
    tool.interrupt()
    shown = ctx.rows("-p", os.getpid(), columns="why")
    # this run began too late to see the connections' threads wait for requests
    check(not [row for row in shown if row["tid"] == str(server.tids["done"])], "%s", shown[:3])
    for client in clients.values():
        client.close()


LOCAL_CLIENT = """
import socket, sys, time
client = socket.socket(socket.AF_UNIX)
client.connect("\\0" + sys.argv[1])
sys.stdin.readline()
client.send(b"lock")
client.recv(1)
"""


@case
def server_in_a_lock_of_a_local_client(ctx):
    """A server's thread in a lock works for the client of a connection by a path, too: the client is in a call on it, on this host."""
    name = "tsnap-test-%d" % os.getpid()
    server = ThreadServer(ctx, "\0" + name)
    client = Part(ctx, account("nobody"), ["/usr/bin/python3", "-c", LOCAL_CLIENT, name])
    tool = ctx.stream("-a", "-p", os.getpid(), columns="state,syscall,why,waits_on,connection")
    tool.wait_scans(10)
    client.say("go")
    wait_until(lambda: server.tids, 20, "the server's thread")

    def told():
        rows = [row for row in rows_of(tool.rows(), server.tids["lock"]) if row["syscall"] == "futex"]
        return rows and rows[-1]["why"] == "request" and rows[-1]
    try:
        row = wait_until(told, 20, "the thread in a lock")
    finally:
        mine = rows_of(tool.rows(), server.tids["lock"])[-1:]
        check(told() or "sock_diag" in tool.err, "%s", mine)
    check(re.fullmatch(r"futex 0x\w+ for unix @%s peer %d .*" % (name, client.pid), row["waits_on"]), "%s", row)
    tool.interrupt()


@case(thorough=True)
def mariadb_before(ctx):
    """Threads of MariaDB that had been asleep in a statement before tsnap came work for their clients; those of idle sessions and of
    the server itself, an event scheduler among them, are idle."""
    server = MariaDB(ctx)
    server.ask_once("create table base.t (id int primary key, v int) engine=innodb; insert into base.t values (1, 1);"
                    "set global event_scheduler = on; create event base.e on schedule every 1 day do set @x = 1")
    sessions = [server.session(ctx, tcp=number % 2 == 1) for number in range(6)]
    for session, text in zip(sessions, ("begin; update t set v = 2 where id = 1;", "update t set v = 3 where id = 1;", "select sleep(600);",
                                        "prepare p from 'select sleep(600)'; execute p;", "do sleep(0);")):
        session.say(text)
    wait_until(lambda: sorted(told[1] for told in server.threads().values() if told[0] == "Query") == ["Updating", "User sleep", "User sleep"],
               20 * SLOW, "statements")
    threads = server.threads()
    shown = ctx.rows("-p", server.pid, seconds=3, columns="state,why,waits_on")
    last = [row for row in shown if row["state"] == "S"][-20:]
    working = {int(row["tid"]) for row in last}
    check(working == {tid for tid, told in threads.items() if told[0] == "Query"}, "%s: %s", threads, last)
    check(all(row["why"] == "request" and row["waits_on"].endswith(" for a client") for row in last), "%s", last)


@case(thorough=True)
def mariadb_locks(ctx):
    """Threads of MariaDB that wait for a row lock and for a metadata lock, as its own list of processes has them, work for their
    clients, by TCP and by a path; a thread whose client thinks is idle."""
    server = MariaDB(ctx)
    server.ask_once("create table base.t (id int primary key, v int) engine=innodb; insert into base.t values (1, 1)")
    holder, row, table = server.session(ctx), server.session(ctx, tcp=True), server.session(ctx)
    holder.say("begin; update t set v = 2 where id = 1;")
    wait_until(lambda: len([told for told in server.threads().values() if told[0] == "Sleep"]) == 3, 20, "three sessions")
    tool = ctx.stream("-a", "-p", server.pid, columns="state,syscall,why,waits_on,remote")
    tool.wait_scans(10)
    row.say("update t set v = 3 where id = 1;")
    wait_until(lambda: "Updating" in [told[1] for told in server.threads().values()], 20, "a wait for a row")
    table.say("alter table t add w int;")
    lock = "Waiting for table metadata lock"
    threads = wait_until(lambda: lock in [told[1] for told in server.threads().values()] and server.threads(), 20, "a wait for a table")

    def told():
        last = {tid: rows_of(tool.rows(), tid)[-1:] for tid in threads}
        good = all(rows and (rows[0]["why"] == ("server" if threads[tid][0] == "Sleep" else "request")) for tid, rows in last.items()
                   if threads[tid][0] in ("Sleep", "Query"))
        return good and last
    try:
        last = wait_until(told, 20, "why they wait")
    finally:
        check(told(), "%s: %s", threads, {tid: rows_of(tool.rows(), tid)[-1:] for tid in threads})
    by_state = {threads[tid][1]: (threads[tid][2], rows[0]["waits_on"], rows[0]["remote"]) for tid, rows in last.items() if rows}
    host, words, remote = by_state["Updating"]
    check(host == remote and words.endswith("peer %d mariadb" % row.pid), "%s", by_state)
    check(by_state[lock][1].endswith(" for unix %s peer %d mariadb" % (server.path, table.pid)), "%s", by_state)
    tool.interrupt()
