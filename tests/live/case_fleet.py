"""Many hosts' recordings in one base: two ClickHouse servers that hold the same, a ZooKeeper, three recorders and what ships for them."""
import glob
import os
import shutil
import signal
import subprocess

from case_record import rows_of_files
from case_schema import SCHEMA, answers, expect_same, lines_of, output, sqlite_needed, truth_of
from harness import START_S, STOP_S, Skip, case, check, wait_until
from parts import Part, account, free_port, program

HOSTS = ("front-1", "front-2", "base-1")
SERVER = """<yandex><tcp_port>%(port)d</tcp_port><interserver_http_port>%(exchange)d</interserver_http_port><listen_host>127.0.0.1</listen_host>
<interserver_http_host>127.0.0.1</interserver_http_host><path>%(path)s/</path><tmp_path>%(path)s/tmp/</tmp_path>
<logger><console>1</console><level>warning</level></logger><mark_cache_size>1000000</mark_cache_size>
<zookeeper><node><host>127.0.0.1</host><port>%(keeper)d</port></node><session_timeout_ms>4000</session_timeout_ms></zookeeper>
<macros><shard>1</shard><replica>%(replica)d</replica></macros>
<remote_servers><tsnap><shard><internal_replication>true</internal_replication>
<replica><host>127.0.0.1</host><port>%(first)d</port></replica><replica><host>127.0.0.1</host><port>%(second)d</port></replica>
</shard></tsnap></remote_servers>
<profiles><default/></profiles><users><default><password/><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
<quota>default</quota></default></users><quotas><default/></quotas><default_profile>default</default_profile>
<default_database>default</default_database><users_config>config.xml</users_config></yandex>"""
KEEPER = "tickTime=1000\nclientPort=%d\nclientPortAddress=127.0.0.1\ndataDir=%s\nadmin.enableServer=false\n"


class Server:
    """One of two that hold the same."""

    def __init__(self, ctx, ports, keeper, index):
        self.ctx, self.path = ctx, program("clickhouse-server", "clickhouse-server", "/usr/sbin")
        self.directory, self.port = ctx.temporary(), ports[index]
        self.ask = [program("clickhouse-client", "clickhouse-client"), "--host", "127.0.0.1", "--port", str(self.port)]
        with open(self.directory + "/config.xml", "w", encoding="utf-8") as file:
            file.write(SERVER % {"port": self.port, "exchange": free_port(), "path": self.directory, "keeper": keeper, "replica": index,
                                 "first": ports[0], "second": ports[1]})
        self.begin()

    def begin(self):
        self.part = Part(self.ctx, account("clickhouse", "nobody"), [self.path, "--config-file=%s/config.xml" % self.directory],
                         self.directory)
        self.part.wait_up(lambda: subprocess.run([*self.ask, "-q", "SELECT 1"], stdout=subprocess.PIPE,
                                                 stderr=subprocess.DEVNULL).stdout == b"1\n")

    def rows(self, question):
        return lines_of(output(*self.ask, "-q", question))

    def counts(self):
        return {host: int(count) for host, count in self.rows("SELECT host, count() FROM samples_local GROUP BY host")}


def keeper_begin(ctx):
    if not shutil.which("java") or not glob.glob("/usr/share/java/zookeeper.jar"):
        raise Skip("zookeeper is not installed")
    directory, port = ctx.temporary(), free_port()
    with open(directory + "/zoo.cfg", "w", encoding="utf-8") as file:
        file.write(KEEPER % (port, directory))
    jars = ":".join(sorted(glob.glob("/usr/share/java/*.jar")))
    Part(ctx, account("zookeeper", "nobody"), [shutil.which("java"), "-Xmx128m", "-cp", jars,
                                               "org.apache.zookeeper.server.quorum.QuorumPeerMain", directory + "/zoo.cfg"], directory)
    return port


def recorder(ctx, host, directory, pid, seconds):
    """tsnap -o on a host of that name."""
    named = ctx.but(tsnap=shutil.which("unshare"),
                    tsnap_args="--uts sh -c 'hostname %s && exec \"$@\"' sh %s %s" % (host, ctx.options.tsnap, ctx.options.tsnap_args))
    return named.plain("-o", directory, "-F", 20, "-d", seconds, "-p", pid, "-a", "-G", "ustack", "--flush", 0.3)


def ship(directory, servers, *args):
    return [SCHEMA + "/ship", *args, directory, directory + "/shipped", *("127.0.0.1:%d" % server.port for server in servers)]


@case
def schema_of_fleet(ctx):
    """Three hosts, one of whose servers goes and comes back while they record: nothing is lost, nothing is there twice, also after one
    host has sent all of it again; both servers tell what SQLite does."""
    sqlite_needed()
    ports = free_port(), free_port()
    keeper = keeper_begin(ctx)
    servers = [Server(ctx, ports, keeper, index) for index in (0, 1)]
    for server in servers:
        wait_until(lambda: subprocess.run([*server.ask, "-q", "SELECT count() FROM system.zookeeper WHERE path = '/'"],
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0, START_S, "ZooKeeper")
        output(*server.ask, "-n", text=output(SCHEMA + "/schema", "clickhouse-fleet", ctx.options.tsnap))
    workload = ctx.workload("mixed", bursts=2, pairs=1, syncs=1, spins=1)
    directories = {host: ctx.temporary() + "/" + host for host in HOSTS}
    recorders = [recorder(ctx, host, directory, workload.tgid, 12) for host, directory in directories.items()]
    wait_until(lambda: all(glob.glob(directory + "/*.samples.*") for directory in directories.values()), START_S, "recordings")
    # the first one's shippers ask the second one where it is not there
    shippers = [subprocess.Popen(ship(directory, servers, "-s", "0.5")) for directory in directories.values()]
    try:
        wait_until(lambda: len(servers[1].counts()) == 3, STOP_S, "rows of all hosts on the second server")
        os.killpg(servers[0].part.pid, signal.SIGKILL)
        servers[0].part.wait(STOP_S)
        there = servers[1].counts()
        wait_until(lambda: all(count > there[host] for host, count in servers[1].counts().items()), STOP_S, "rows without the first server")
        servers[0].begin()
        for tool in recorders:
            tool.finish_plain(0, 60)
    finally:
        for shipper in shippers:
            shipper.terminate()
            shipper.wait()
    for directory in directories.values():
        output(*ship(directory, servers, "-1"))
    recorded = {host: len(rows_of_files(directory, "samples")) for host, directory in directories.items()}
    for server in servers:
        wait_until(lambda: sum(server.counts().values()) >= sum(recorded.values()), STOP_S, "all rows")
        check(server.counts() == recorded, "%s, recorded: %s", server.counts(), recorded)
    shutil.rmtree(directories[HOSTS[0]] + "/shipped")
    output(*ship(directories[HOSTS[0]], servers, "-1"))
    for server in servers:
        for table in ("samples", "scans", "stacks", "recordings"):
            output(*server.ask, "-q", "OPTIMIZE TABLE %s_local FINAL" % table)
        wait_until(lambda: server.counts() == recorded, STOP_S, "a host's rows once: %s, recorded: %s" % (server.counts(), recorded))
    truth = truth_of(ctx, list(directories.values()))
    for server in servers:
        expect_same(answers(lambda view: server.rows("SELECT * FROM " + view)), truth)
