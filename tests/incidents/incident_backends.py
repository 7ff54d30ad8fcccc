"""Incidents of servers that do not answer."""
import glob
import os
import signal
import threading
import time

import truth
from harness import SLOW, Skip, wait_until
from incident import Truth, incident, look_alike, now
from parts import MariaDB, Nginx, Part, PhpFpm, Redis, account, free_port, program

PYTHON = "/usr/bin/python3"  # the one that packages of modules are for
WORKERS = 8

# Workers with a pool of connections that are all in use for a while; "lock" has the first one begin a transaction and go elsewhere, while
# the others want the same row.
POOL = """
import sys, threading, time
try:
    import pymysql
except ImportError:
    sys.exit(77)
workers, port = int(sys.argv[1]), int(sys.argv[2])
pool = [pymysql.connect(host="127.0.0.1", port=port, user="other", database="base", autocommit=True) for _ in range(workers + 1)]
def ask(connection, text):
    with connection.cursor() as cursor:
        cursor.execute(text)
for connection in pool:
    ask(connection, "select * from stock where id = 2")
print("ready", flush=True)
sys.stdin.readline()
ask(pool[0], "begin")
ask(pool[0], "update stock set v = v + 1 where id = 1")
for connection in pool[1:]:
    threading.Thread(target=ask, args=(connection, "update stock set v = v + 1 where id = 1"), daemon=True).start()
time.sleep(600)
"""


def pool_of_workers(ctx):
    """(server, a program with WORKERS workers whose connections to it are idle)"""
    server = ctx.server(MariaDB)
    server.ask_once("create or replace table base.stock (id int primary key, v int) engine=innodb;"
                    "insert into base.stock values (1, 1), (2, 2); set global innodb_lock_wait_timeout = 600")
    app = Part(ctx, account("nobody"), [PYTHON, "-c", POOL, str(WORKERS), str(server.port)])
    wait_until(lambda: app.out or app.code is not None, 20 * SLOW, "the pool")
    if app.code == 77:
        raise Skip("pymysql is not installed (Debian: python3-pymysql)")
    return server, app


def waiting(server):
    return sum(told[1] == "Updating" for told in server.threads().values())


@incident(23, often=True)
def mariadb_row_lock(ctx):
    """MariaDB row lock, pooled connections; tsnap starts after the waits began."""
    server, app = pool_of_workers(ctx)
    since = now()
    app.say("lock")
    wait_until(lambda: waiting(server) == WORKERS, 20 * SLOW, "waits for the row")
    return Truth("server", ("python3", WORKERS), ("mariadbd", server.pid), "sleep", since)


@incident(23)
def mariadb_row_lock_later(ctx):
    """MariaDB row lock, pooled connections; tsnap starts before the waits begin."""
    server, app = pool_of_workers(ctx)
    truth = Truth("server", ("python3", None), ("mariadbd", server.pid), "sleeps.* in futex", now())

    def begin():
        time.sleep(2 * SLOW)
        truth.since = now()
        app.say("lock")
    threading.Thread(target=begin, daemon=True).start()
    return truth


@look_alike(23)
def mariadb_idle_pool(ctx):
    """A pool of connections that are idle, and one that is idle in a transaction."""
    server, _ = pool_of_workers(ctx)
    session = server.session(ctx, tcp=True)
    session.say("begin; update stock set v = v + 1 where id = 1;")
    return None


CLIENTS = 6
FPM_CHILDREN = 2  # of parts.PhpFpm

UPDATE = """$c = new mysqli('127.0.0.1', 'other', '', 'base', %d); $c->query('update stock set v = v + 1 where id = 1'); echo 'done';"""


def web_with_database(ctx, begin):
    """(database, CLIENTS curls that ask nginx > php-fpm > MariaDB for an update, when they began); a session has said `begin` before."""
    server = ctx.server(MariaDB)
    server.ask_once("create or replace table base.stock (id int primary key, v int) engine=innodb;"
                    "insert into base.stock values (1, 1), (2, 2); set global innodb_lock_wait_timeout = 600")
    if not glob.glob("/usr/lib*/php/*/mysqli.so"):
        raise Skip("php has no mysqli (Debian: php-mysql)")
    holder = server.session(ctx)
    holder.say(begin)
    wait_until(lambda: sum(told[0] == "Sleep" for told in server.threads().values()) == 1, 20 * SLOW, "the holder")
    web = Nginx(ctx, PhpFpm(ctx, UPDATE % server.port).location())
    since = now()
    url = "http://127.0.0.1:%d/index.php" % web.port
    curls = [Part(ctx, account("nobody"), [program("curl", "curl"), "-s", url]) for _ in range(CLIENTS)]
    return server, curls, since


@incident(17)
def web_row_lock(ctx):
    """nginx > php-fpm > MariaDB: a row lock in the database."""
    server, _, since = web_with_database(ctx, "begin; update stock set v = v + 1 where id = 1;")
    wait_until(lambda: waiting(server) == FPM_CHILDREN, 20 * SLOW, "waits for the row")
    return Truth("server", ("curl", None), ("mariadbd", server.pid), "sleep", since, also=("unread",))


@look_alike(17)
def web_other_row(ctx):
    """nginx > php-fpm > MariaDB: another row is locked."""
    _, curls, _ = web_with_database(ctx, "begin; update stock set v = v + 1 where id = 2;")
    wait_until(lambda: all(b"done" in curl.out for curl in curls), 20 * SLOW, "answers")
    return None


def prefer(pid):
    """The process, which has a session of its own, gets a CPU when it wants one, whatever else runs on this host."""
    os.setpriority(os.PRIO_PROCESS, pid, -19)
    try:
        with open("/proc/%d/autogroup" % pid, "w") as file:
            file.write("-19")
    except OSError:
        pass  # without such groups the process's own priority decides


def runs(tid):
    """True if the thread, which was idle, runs."""
    before = truth.schedstat(tid)[0]
    time.sleep(0.2)
    return truth.schedstat(tid)[0] - before > 0.02e9


def redis_with_clients(ctx):
    """(redis, WORKERS + 1 clients that are connected to it)"""
    server = Redis(ctx)
    clients = [server.client(ctx) for _ in range(WORKERS + 1)]
    wait_until(lambda: sum(each["addr"] != "" for each in server.clients()) == WORKERS + 2, 20 * SLOW, "clients")
    prefer(server.pid)
    server.LAST = signal.SIGKILL  # while a script runs, it does not take SIGTERM
    return server, clients


@incident(19, often=True)
def redis_lua(ctx):
    """redis: a script of Lua runs, and others wait for their answers."""
    server, (first, *others) = redis_with_clients(ctx)
    server.ask("config", "set", "lua-time-limit", "600000")  # after that time it would answer that it is busy
    since = now()
    first.say('eval "while true do end" 0')
    wait_until(lambda: runs(server.pid), 20 * SLOW, "the script")
    for client in others:
        client.say("get x")
    return Truth("busy_thread", ("redis-cli", WORKERS + 1), ("redis-server", server.pid), r"at \d+ % of a CPU", since, also=("unread",))


@look_alike(19, often=True)
def redis_busy(ctx):
    """redis: many requests, which are answered."""
    server, _ = redis_with_clients(ctx)
    Part(ctx, server.user, server.command("redis-benchmark", "-c", 4, "-l", "-t", "get"))
    return "busy_thread", "server"


# A web server whose validation of an address takes exponential time where the address is long and false.
NODE = """
const http = require("http");
const server = http.createServer((request, response) => {
    const address = new URL(request.url, "http://x").searchParams.get("address");
    response.end(/^([a-z0-9]+)+@x$/.test(address) ? "good\\n" : "bad\\n");
});
server.listen(%d, "127.0.0.1", () => console.log("ready"));
"""


# Workers with connections that are kept; after a line on the input each asks once more, the first for the address.
KEPT = """
import http.client, sys, threading, time
port, workers, address = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
def ask(connection, text):
    connection.request("GET", "/?address=" + text)
    connection.getresponse().read()
kept = [http.client.HTTPConnection("127.0.0.1", port) for _ in range(workers)]
for connection in kept:
    ask(connection, "me")
print("ready", flush=True)
sys.stdin.readline()
for connection in kept:
    threading.Thread(target=ask, args=(connection, address), daemon=True).start()
    time.sleep(0.2 if connection is kept[0] else 0)
    address = "me"
time.sleep(600)
"""


def node_with_clients(ctx, address):
    """A node server, of which one client asks for the address, and then WORKERS others for short ones."""
    port, directory = free_port(), ctx.temporary()
    with open(directory + "/app.js", "w") as file:
        file.write(NODE % port)
    os.chmod(directory, 0o755)
    server = Part(ctx, account("nobody"), [program("node", "nodejs"), directory + "/app.js"])
    prefer(server.pid)
    wait_until(lambda: server.out, 20 * SLOW, "node")
    clients = Part(ctx, account("nobody"), [PYTHON, "-c", KEPT, str(port), str(WORKERS + 1), address])
    wait_until(lambda: clients.out, 20 * SLOW, "connections")
    clients.say("ask")
    return server


@incident(24, often=True)
def node_regular_expression(ctx):
    """node: a regular expression that takes exponential time, and others wait for their answers."""
    server = node_with_clients(ctx, 60 * "a" + "!")
    since = now()
    wait_until(lambda: runs(server.pid), 20 * SLOW, "the regular expression")
    return Truth("busy_thread", ("python3", WORKERS + 1), ("node", server.pid), r"at \d+ % of a CPU", since, also=("unread",))


@look_alike(24)
def node_answers(ctx):
    """node: the same expression with short addresses."""
    node_with_clients(ctx, "me")
    return None
