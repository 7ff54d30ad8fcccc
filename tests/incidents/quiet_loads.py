"""Loads that are quiet or merely busy: nothing is wrong, so no problem may be found."""
import os
import socket
import sys

from harness import SLOW, wait_until
from incident import Program, python, quiet, shell
from incident_cpus import NAPS
from incident_locks import GIL, java_started
from incident_servers import LISTENER, curls
from parts import MariaDB, Nginx, PhpFpm, Postgres, Redis, Session, free_port, program

ECHO = """
const http = require('http');
const server = http.createServer((request, answer) => answer.end('x'));
server.listen(0, '127.0.0.1', () => console.log('ready ' + server.address().port));
"""


def asking(ctx, text, pause):
    """A client that runs a command again and again."""
    shell(ctx, "while :; do %s >/dev/null 2>&1; sleep %g; done" % (text, pause))


@quiet()
def nothing(ctx):
    """Nothing runs but a sleep."""
    shell(ctx, "sleep 1000")


@quiet()
def one_spinner(ctx):
    """A thread computes."""
    python(ctx, "while True: pass", ready=False)


@quiet()
def niced_work(ctx):
    """Programs of the lowest priority fill the CPUs, and no other wants them."""
    for _ in range(2 * os.cpu_count()):
        python(ctx, "while True: pass", ready=False, preexec_fn=lambda: os.nice(19))


@quiet()
def naps(ctx):
    """Two processes sleep and work in turns."""
    for _ in range(2):
        python(ctx, NAPS)


@quiet()
def idle_threads(ctx):
    """A process has 200 threads that wait for work."""
    python(ctx, "import threading\ne = threading.Event()\n"
           "for i in range(200): threading.Thread(target=e.wait, daemon=True).start()\nprint('ready', flush=True)\ne.wait()")


@quiet()
def idle_pool_of_java(ctx):
    """A JVM has a pool of threads that wait for work."""
    java_started(ctx, "monitor", idle=True)


@quiet()
def python_computes_beside_idle_threads(ctx):
    """A Python computes while its other threads wait for an event."""
    python(ctx, GIL, "idle")


@quiet(often=True)
def postgres_with_clients(ctx):
    """PostgreSQL answers short queries of four clients."""
    server = ctx.server(Postgres, deadlock_timeout="10min")
    for _ in range(4):
        asking(ctx, " ".join(server.command("psql")) + " -c 'select 1'", 0.2)


@quiet()
def postgres_idle(ctx):
    """PostgreSQL has eight sessions that ask nothing."""
    server = ctx.server(Postgres, deadlock_timeout="10min")
    for _ in range(8):
        Session(server, ctx)


@quiet()
def mariadb_with_clients(ctx):
    """MariaDB answers short queries of two clients."""
    server = ctx.server(MariaDB)
    for _ in range(2):
        asking(ctx, " ".join(server.client()) + " -e 'select 1'", 0.2)


@quiet()
def redis_with_clients(ctx):
    """redis answers pings of a client."""
    server = ctx.server(Redis)
    asking(ctx, " ".join(server.command("redis-cli", "ping")), 0.05)


@quiet()
def redis_subscriber(ctx):
    """Clients of redis wait for news, and for work in a queue."""
    Program(ctx, ctx.server(Redis).command("redis-cli", "subscribe", "news"))
    for _ in range(4):
        Program(ctx, ctx.server(Redis).command("redis-cli", "blpop", "queue", "0"))


@quiet()
def nginx_with_clients(ctx):
    """nginx serves a file to two clients."""
    server = ctx.server(Nginx)
    curls(ctx, 2, "http://127.0.0.1:%d/index.html" % server.port, 0.1)


@quiet()
def php_with_clients(ctx):
    """nginx and php-fpm answer two clients."""
    php = PhpFpm(ctx, "echo 1;")
    web = Nginx(ctx, php.location())
    curls(ctx, 2, "http://127.0.0.1:%d/index.php" % web.port, 0.1)


@quiet()
def node_with_clients(ctx):
    """node answers two clients."""
    server = Program(ctx, [program("node", "nodejs"), "-e", ECHO])
    wait_until(lambda: server.out.startswith(b"ready"), 20 * SLOW, "node")
    curls(ctx, 2, "http://127.0.0.1:%s/" % server.out.split()[1].decode(), 0.1)


@quiet()
def server_with_keepalive(ctx):
    """Clients have connections on which they ask nothing."""
    port = free_port()
    python(ctx, LISTENER, str(port), "0")
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(1)]
    ctx.at_end(lambda: [client.close() for client in clients])


@quiet()
def make_of_little(ctx):
    """make starts a short command after the other."""
    directory = ctx.temporary()
    with open(directory + "/Makefile", "w") as file:
        file.write("all: %s\nt%%:\n\t@sleep 0.1; wc -c /bin/sh >/dev/null\n" % " ".join("t%d" % i for i in range(500)))
    Program(ctx, [program("make", "make"), "-j2"], cwd=directory)


@quiet()
def pipeline(ctx):
    """A pipeline's first program is slow, and the others wait for it."""
    shell(ctx, "while :; do echo line; sleep 0.05; done | cat | sort | cat >/dev/null")


@quiet()
def reads_of_the_page_cache(ctx):
    """A program reads a file that is in memory."""
    asking(ctx, "cat " + sys.executable, 0.05)


@quiet()
def backup_of_little(ctx):
    """tar packs some files, again and again."""
    asking(ctx, "tar cf - -C %s ." % os.path.dirname(os.path.abspath(__file__)), 0.2)


@quiet()
def stopped_job(ctx):
    """A program is stopped, and nobody waits for it."""
    shell(ctx, "kill -STOP $$; sleep 1")


@quiet()
def terminal(ctx):
    """A program waits for input, and a tail -f for lines."""
    path = os.path.join(ctx.temporary(), "log")
    with open(path, "w"):
        pass
    Program(ctx, ["tail", "-f", path])
    Program(ctx, ["cat"])
