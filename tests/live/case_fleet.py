"""Recordings of many hosts in one database: two ClickHouse replicas, a ZooKeeper, three recorders and their shippers."""
import glob
import os
import shutil
import signal
import subprocess

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
    return [SCHEMA + "/ship", *args, directory, directory + "/shipped", *("127.0.0.1:%d" % server.port for server in servers)]


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
