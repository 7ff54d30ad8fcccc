"""Wait chains of real programs: the threads that they lead to, against the programs' own reports and /proc."""
import collections
import os
import re

import truth
from case_chains import COLUMNS, LIKELY, SETTLED_S
from harness import SLOW, START_S, STOP_S, case, check, wait_until
from parts import MariaDB, Nginx, Part, PhpFpm, Postgres, Redis, Session, account, program


def only_child(pid, comm):
    def found():
        words = (truth.read("/proc/%d/task/%d/children" % (pid, pid)) or "").split()
        return len(words) == 1 and truth.read("/proc/%s/comm" % words[0]) == comm + "\n" and int(words[0])
    return wait_until(found, 20 * SLOW, comm)


def has_connection_to(pid, port):
    inodes = set()
    for fd in truth.read_dir("/proc/%d/fd" % pid):
        try:
            inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink("/proc/%d/fd/%s" % (pid, fd))))
        except OSError:
            pass  # the descriptor was closed meanwhile
    lines = [line.split() for line in (truth.read("/proc/%d/net/tcp" % pid) or "").splitlines()[1:]]
    return any(words[2].endswith(":%04X" % port) and words[9] in inodes for words in lines)


def later_rows(ctx, pids, victims, begin=lambda: None):
    """Rows of the victims in the second half of a run. begin: called while tsnap runs, makes them wait."""
    stream = ctx.stream("-a", "-d", 2 * SETTLED_S, "-p", ",".join(map(str, pids)), columns=COLUMNS)
    stream.wait_scans(20)
    begin()
    rows = stream.finish(0, START_S + 2 * SETTLED_S + STOP_S)
    return [row for row in rows[len(rows) // 2:] if int(row["tid"]) in victims]


def run_real(ctx, name, pids, victims, least=LIKELY, begin=lambda: None):
    """Checks chains of real programs. victims: {tid: (blocker's tid, pattern of the chain)}"""
    later = later_rows(ctx, pids, victims, begin)
    check(len(later) >= 10 * len(victims), "%s: %d samples", name, len(later))
    right, seen = 0, collections.Counter()
    for row in later:
        blocker, chain = victims[int(row["tid"])]
        check(row["blocker_sure"] != "certain" or row["blocker_tid"] == str(blocker), "%s: certain, and not %d: %s", name, blocker,
              row)
        right += row["blocker_tid"] == str(blocker) and re.fullmatch(chain, row["chain"]) is not None
        seen[row["tid"], row["blocker_tid"], row["chain"]] += 1
    share = 100.0 * right / len(later)
    print("# real %s: %.1f %% of %d samples are right" % (name, share, len(later)))
    check(share >= least, "%s: %.1f %%: %s, not %s", name, share, seen.most_common(6), victims)


@case(thorough=True)
def chain_to_mariadb(ctx):
    """Clients of MariaDB whose threads wait for a row and for a table that an idle session holds: each client, by TCP and by a UNIX socket,
    leads to the thread of its own connection, as the server's list of processes has it; if both have waited since before tsnap's start,
    to no other one."""
    server = MariaDB(ctx)
    server.ask_once("create table base.t (id int primary key, v int) engine=innodb; insert into base.t values (1, 1)")
    holder, by_tcp, by_path = server.session(ctx), server.session(ctx, tcp=True), server.session(ctx)
    victims = {}

    def sleeping():
        return [tid for tid, told in server.threads().items() if told[0] == "Sleep"]

    def begin():
        holder.say("begin; update t set v = v + 1 where id = 1;")
        wait_until(lambda: len(sleeping()) == 3, 20 * SLOW, "an idle transaction")
        by_tcp.say("update t set v = v + 1 where id = 1;")
        by_path.say("alter table t force;")
        waiting = {"Updating": by_tcp, "Waiting for table metadata lock": by_path}
        threads = wait_until(lambda: (lambda now: waiting.keys() <= {told[1] for told in now.values()} and now)(server.threads()),
                             20 * SLOW, "two waits")
        victims.update({waiting[told[1]].pid: (tid, r"mariadb socket> mariadbd.*") for tid, told in threads.items()
                        if told[1] in waiting})

    wait_until(lambda: len(sleeping()) == 3, 20 * SLOW, "three sessions")
    pids = [server.pid, by_tcp.pid, by_path.pid]
    victims.update({by_tcp.pid: None, by_path.pid: None})
    run_real(ctx, "MariaDB", pids, victims, begin=begin)
    rows = later_rows(ctx, pids, victims)
    # the server's own threads wake up now and then, and are then taken for threads that work for a client
    wrong = [row for row in rows
             if row["blocker_tid"] not in ("", str(victims[int(row["tid"])][0])) or row["blocker_pid"] != str(server.pid)]
    check(len(wrong) <= len(rows) * (100 - LIKELY) / 100, "of before: %d of %d are wrong: %s", len(wrong), len(rows), wrong[:1])


@case
def chain_to_idle_transaction(ctx):
    """A session of PostgreSQL waits for a row that another session, idle in its transaction, holds: its client leads to its backend,
    and that to the other one's, which is the only one in a transaction; no edge to it is called certain."""
    server = Postgres(ctx, deadlock_timeout="10min")
    server.ask_once("create table t as select 1 as x")
    holder, waiter = Session(server, ctx), Session(server, ctx)
    for session in (holder, waiter):
        session.ask("begin")
    holder.ask("update t set x = 2")
    waiter.say("update t set x = 3;")
    asked = "select wait_event_type, pg_blocking_pids(pid) from pg_stat_activity where pid = %d"
    wait_until(lambda: server.ask_once(asked % waiter.backend) == "Lock|{%d}" % holder.backend, 20 * SLOW, "the lock")
    lock = "postgres database lock> postgres"
    run_real(ctx, "idle in transaction", [waiter.pid, waiter.backend],
             {waiter.pid: (waiter.backend, "psql socket> " + lock), waiter.backend: (holder.backend, lock)})


@case
def chain_through_web_server(ctx):
    """A chain through a client, nginx, php-fpm and PostgreSQL with one slow query."""
    database = Postgres(ctx)
    php = PhpFpm(ctx, "$c = pg_connect('host=127.0.0.1 port=%d user=postgres dbname=postgres'); pg_query($c, 'select pg_sleep(600)');"
                 % database.port)
    web = Nginx(ctx, php.location())
    client = Part(ctx, account("nobody"), [program("curl", "curl"), "-s", "http://127.0.0.1:%d/index.php" % web.port])
    backend, = wait_until(lambda: database.clients("select pg_sleep%"), 20 * SLOW, "the query")
    worker, = (pid for pid in truth.children(php.pid) if has_connection_to(pid, database.port))
    front, = (pid for pid in truth.children(web.pid) if has_connection_to(pid, php.port))
    name = (truth.read("/proc/%d/comm" % worker) or "").strip()
    tail = "%s socket> postgres" % name
    run_real(ctx, "web server", [client.pid, front, worker],
             {client.pid: (front, "curl socket> nginx socket> " + tail), front: (worker, "nginx socket> " + tail),
              worker: (backend, tail)})


@case
def chain_to_redis(ctx):
    """Workers that wait for a list in redis lead to its server."""
    server = Redis(ctx)
    clients = [server.client(ctx, "blpop", "nothing", "0") for _ in range(3)]
    wait_until(lambda: len([one for one in server.clients() if one.get("cmd") == "blpop"]) == 3, 20 * SLOW, "the clients")
    run_real(ctx, "redis", [client.pid for client in clients] + [server.pid],
             {client.pid: (server.pid, "redis-cli socket> redis-server") for client in clients})


@case
def chain_of_make(ctx):
    """make -j4 under its job server: each make waits for its only child, down to the program that make runs."""
    directory = ctx.temporary()
    with open(directory + "/Makefile", "w") as file:
        file.write("all:\n\t+@$(MAKE) --no-print-directory below\nbelow:\n\t@sleep 600\n")
    top = Part(ctx, account("nobody"), [program("make", "make"), "-j4"], directory)
    below = only_child(top.pid, "make")
    made = only_child(below, "sleep")
    run_real(ctx, "make", [top.pid, below, made], {top.pid: (below, "make child> make child> sleep"), below: (made, "make child> sleep")})
