"""Recordings of many hosts in one database: two ClickHouse replicas, a ZooKeeper, three recorders and their shippers."""
import glob
import http.server
import os
import re
import shutil
import signal
import subprocess
import threading

from case_record import rows_of_files
from case_schema import SCHEMA, answers, expect_same, sqlite_needed, truth_of
from clickhouse import keeper_begin, output, replicas_begin
from harness import SLOW, START_S, case, check, through, wait_until

HOSTS = ("front-1", "front-2", "base-1")
SHIP_S = 60 * SLOW  # a host's rows to the servers: on a busy machine each insert into tables of 170 columns takes a second


def counts(server):
    return {host: int(count) for host, count in server.rows("SELECT host, count() FROM samples_local GROUP BY host")}


def recorder(ctx, host, directory, pid):
    """tsnap -o on a host of that name, until it is interrupted."""
    named = through(ctx, "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', host, workload=False)
    return named.plain("-o", directory, "-F", 20, "-p", pid, "-a", "-G", "ustack", "--flush", 0.3)


def ship(directory, servers, *args):
    return [SCHEMA + "/ship", *args, directory, directory + "/shipped", *("127.0.0.1:%d" % server.http for server in servers)]


class Stub(http.server.BaseHTTPRequestHandler):
    """A server that writes down what it is sent, and loses its first answers."""

    def do_POST(self):  # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.append((self.path, body))
        if len(self.server.taken) > self.server.answers_lost:
            self.send_response(200)
            self.end_headers()

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass


def stub_server(ctx, answers_lost=0):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    server.taken, server.answers_lost, server.http = [], answers_lost, server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    ctx.at_end(server.shutdown)
    return server


def sent(server, table):
    """Rows of a table that a server was sent, those of equal blocks once."""
    blocks = dict.fromkeys(block for block in server.taken if "INTO+%s+" % table in block[0])
    return [row for _, rows in blocks for row in rows.splitlines()]


@case
def shipped_once(ctx):
    """Every row is sent once, or in the same block again: while a server loses its answers, while frames are being written, after a crash
    that tore one, and around a damaged one."""
    sleeper, directory, server = ctx.workload("sleep", call="nanosleep"), ctx.temporary() + "/a", stub_server(ctx, 3)
    tool = ctx.plain("-o", directory, "-F", 20, "-p", sleeper.tgid, "-a", "--flush", 0.2)
    wait_until(lambda: glob.glob(directory + "/*.samples.*"), START_S, "a recording")
    shipper = subprocess.Popen(ship(directory, [server], "-s", "0.1"), stderr=subprocess.PIPE)
    wait_until(lambda: len(server.taken) > 20, START_S, "blocks")
    tool.signal(signal.SIGINT)
    tool.finish_plain()
    shipper.terminate()
    check(b"no server takes it" in shipper.communicate()[1], "lost answers are not told")
    output(*ship(directory, [server], "-1"))
    rows = rows_of_files(directory, "samples")
    host = re.escape(os.uname().nodename).encode()
    for table in "samples", "scans":
        there = sent(server, table)
        check(len(there) == len(rows_of_files(directory, table)) == len(set(there)), "%s: %d rows", table, len(there))
        check(all(re.match(b'"%s","20' % host, row) for row in there), "%s: %s", table, there[0])
    check(server.taken[0] == server.taken[1], "a block that may have arrived is not sent again as it was")
    count, (path,) = len(server.taken), glob.glob(directory + "/*.samples.*")
    output(*ship(directory, [server], "-1"))
    with open(path, "r+b") as file:
        heads = [found.start() for found in re.finditer(b"tsnaprec", file.read())]
        file.seek(heads[-1] - 8)
        torn = file.read()[:-5]
        file.write(torn)
        output(*ship(directory, [server], "-1"))
        check(len(server.taken) == count, "sent once more: %s", server.taken[count:])
        file.seek(heads[len(heads) // 2] + 70)
        file.write(b"\xff\xff\xff\xff")
    again = stub_server(ctx)
    shutil.rmtree(directory + "/shipped")
    said = subprocess.run(list(map(str, ship(directory, [again], "-1"))), stderr=subprocess.PIPE, check=True).stderr
    check(b"damaged rows are left out" in said, "not told: %s", said)
    left = sent(again, "samples")
    check(len(rows) - 30 < len(left) < len(rows) and set(left) < set(sent(server, "samples")), "%d of %d rows", len(left), len(rows))


@case(thorough=True)
def schema_of_fleet(ctx):
    """Three hosts record while one of the servers goes and comes back: no row is lost, none is there twice, also after one
    host has sent everything again; both servers give the same answers as SQLite."""
    sqlite_needed()
    servers = replicas_begin(ctx, keeper_begin(ctx), output(SCHEMA + "/schema", "clickhouse-fleet", ctx.options.tsnap))
    workload = ctx.workload("mixed", bursts=2, pairs=1, syncs=1, spins=1)
    directories = {host: ctx.temporary() + "/" + host for host in HOSTS}
    recorders = [recorder(ctx, host, directory, workload.tgid) for host, directory in directories.items()]
    wait_until(lambda: all(glob.glob(directory + "/*.samples.*") for directory in directories.values()), START_S, "recordings")
    # shippers use the second server when the first one does not answer
    shippers = [subprocess.Popen(ship(directory, servers, "-s", "0.5")) for directory in directories.values()]
    try:
        wait_until(lambda: len(counts(servers[1])) == 3, SHIP_S, "rows of all hosts on the second server")
        os.killpg(servers[0].part.pid, signal.SIGKILL)
        servers[0].part.wait(SHIP_S)
        there = counts(servers[1])
        wait_until(lambda: all(count > there[host] for host, count in counts(servers[1]).items()), SHIP_S, "rows without the first server")
        servers[0].begin()
        for tool in recorders:
            tool.signal(signal.SIGINT)
            tool.finish_plain()
    finally:
        for shipper in shippers:
            shipper.terminate()
            shipper.wait()
    for directory in directories.values():
        output(*ship(directory, servers, "-1"))
    recorded = {host: len(rows_of_files(directory, "samples")) for host, directory in directories.items()}
    for server in servers:
        wait_until(lambda: sum(counts(server).values()) >= sum(recorded.values()), SHIP_S, "all rows")
        check(counts(server) == recorded, "%s, recorded: %s", counts(server), recorded)
    shutil.rmtree(directories[HOSTS[0]] + "/shipped")
    output(*ship(directories[HOSTS[0]], servers, "-1"))
    for server in servers:
        for table in ("samples", "scans", "stacks", "recordings"):
            output(*server.ask, "-q", "OPTIMIZE TABLE %s_local FINAL" % table)
        wait_until(lambda: counts(server) == recorded, SHIP_S, "a host's rows once: %s, recorded: %s" % (counts(server), recorded))
    truth = truth_of(ctx, list(directories.values()))
    for server in servers:
        expect_same(answers(lambda view: server.rows("SELECT * FROM " + view)), truth)
