"""ClickHouse servers for tests and the bench: in temporary directories, on free ports, one alone or two that hold the same."""
import glob
import shutil
import subprocess

from harness import START_S, SLOW, Skip, check, wait_until
from parts import Part, account, free_port, program

SERVER = """<yandex><tcp_port>%(port)d</tcp_port><http_port>%(http)d</http_port><listen_host>127.0.0.1</listen_host><path>%(path)s/</path><tmp_path>%(path)s/tmp/</tmp_path>
<logger><console>1</console><level>warning</level></logger><mark_cache_size>1000000</mark_cache_size>%(more)s
<profiles><default/></profiles><users><default><password/><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
<quota>default</quota></default></users><quotas><default/></quotas><default_profile>default</default_profile>
<default_database>default</default_database><users_config>config.xml</users_config></yandex>"""
REPLICA = """<interserver_http_port>%(exchange)d</interserver_http_port><interserver_http_host>127.0.0.1</interserver_http_host>
<zookeeper><node><host>127.0.0.1</host><port>%(keeper)d</port></node><session_timeout_ms>4000</session_timeout_ms></zookeeper>
<macros><shard>1</shard><replica>%(replica)d</replica></macros>
<remote_servers><tsnap><shard><internal_replication>true</internal_replication>%(replicas)s</shard></tsnap></remote_servers>"""
# Configuration of an engine in a process, which listens nowhere: by the port it knows that the server of the cluster is itself.
EMBEDDED = """<clickhouse><tcp_port>9000</tcp_port><remote_servers><tsnap><shard><replica><host>127.0.0.1</host><port>9000</port></replica></shard>
</tsnap></remote_servers></clickhouse>"""
KEEPER = "tickTime=1000\nclientPort=%d\nclientPortAddress=127.0.0.1\ndataDir=%s\nadmin.enableServer=false\n"


def output(*words, text=None, **options):
    done = subprocess.run([str(word) for word in words], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=120 * SLOW, **options)
    check(done.returncode == 0, "%s: %s", " ".join(map(str, words))[:200], done.stderr[-600:])
    return done.stdout


class Server:
    """A ClickHouse server; more: text to add to its configuration."""

    def __init__(self, ctx, port=None, more=""):
        self.ctx, self.path = ctx, program("clickhouse-server", "clickhouse-server", "/usr/sbin")
        self.directory, self.port, self.http = ctx.temporary(), port or free_port(), free_port()
        self.options = ["--host", "127.0.0.1", "--port", str(self.port)]
        self.ask = [program("clickhouse-client", "clickhouse-client"), *self.options]
        with open(self.directory + "/config.xml", "w", encoding="utf-8") as file:
            file.write(SERVER % {"port": self.port, "http": self.http, "path": self.directory, "more": more})
        self.begin()

    def begin(self):
        self.part = Part(self.ctx, account("clickhouse", "nobody"), [self.path, "--config-file=%s/config.xml" % self.directory],
                         self.directory)
        self.part.wait_up(lambda: subprocess.run([*self.ask, "-q", "SELECT 1"], stdout=subprocess.PIPE,
                                                 stderr=subprocess.DEVNULL).stdout == b"1\n")

    def rows(self, question):
        return [line.split("\t") for line in output(*self.ask, "-q", question).splitlines()]


def keeper_begin(ctx):
    """Starts a ZooKeeper and returns its port."""
    if not shutil.which("java") or not glob.glob("/usr/share/java/zookeeper.jar"):
        raise Skip("zookeeper is not installed")
    directory, port = ctx.temporary(), free_port()
    with open(directory + "/zoo.cfg", "w", encoding="utf-8") as file:
        file.write(KEEPER % (port, directory))
    jars = ":".join(sorted(glob.glob("/usr/share/java/*.jar")))
    Part(ctx, account("zookeeper", "nobody"), [shutil.which("java"), "-Xmx128m", "-cp", jars,
                                               "org.apache.zookeeper.server.quorum.QuorumPeerMain", directory + "/zoo.cfg"], directory)
    return port


def replicas_begin(ctx, keeper, schema, count=2):
    """Starts servers that hold the same, with the tables that the text `schema` makes; returns them."""
    ports = [free_port() for _ in range(count)]
    replicas = "".join("<replica><host>127.0.0.1</host><port>%d</port></replica>" % port for port in ports)
    servers = [Server(ctx, port, REPLICA % {"exchange": free_port(), "keeper": keeper, "replica": index, "replicas": replicas})
               for index, port in enumerate(ports)]
    for server in servers:
        wait_until(lambda: subprocess.run([*server.ask, "-q", "SELECT count() FROM system.zookeeper WHERE path = '/'"],
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0, START_S, "ZooKeeper")
        output(*server.ask, "-n", text=schema)
    return servers
