"""How true --trace work is: quantiles of pieces of work of real servers, to what a client measures of its requests, less the network.

The server has one CPU, the client and tsnap the other one. The client sends at random times (open_load.c), a share of the rate at which the
server is busy all the time. What the network takes is measured with a server that does nothing."""
import glob
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time

from contexts import Postgres
from sampler import LIMIT_S, NotHere, say
from table import Row

LOADS = 20, 60, 90  # per cent of the rate at which the server is busy
CONNECTIONS = 16
HTTP = "GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"
NGINX = """daemon off; worker_processes 1; pid %(directory)s/pid; error_log /dev/null; events { worker_connections 512; }
http { access_log off; keepalive_requests 100000000; keepalive_timeout 1000;
server { listen 127.0.0.1:%(port)d; location / { return 200 "%(text)s"; } } }"""
GO = """package main
import ("net/http"; "os"; "strings"; "time")
func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		for until := time.Now().Add(200 * time.Microsecond); time.Now().Before(until); { strings.Repeat("x", 100) }
		w.Write([]byte("done"))
	})
	panic(http.ListenAndServe("127.0.0.1:" + os.Args[1], nil))
}"""
JAVA = """import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
public class Server {
	public static void main(String[] args) throws Exception {
		HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 0);
		server.createContext("/", exchange -> {
			for (long until = System.nanoTime() + 200000; System.nanoTime() < until;);
			exchange.sendResponseHeaders(200, 4);
			exchange.getResponseBody().write("done".getBytes());
			exchange.close();
		});
		server.setExecutor(Executors.newFixedThreadPool(4));
		server.start();
	}
}"""


def installed(name, *places):
    found = shutil.which(name, path=os.pathsep.join((os.environ["PATH"],) + places))
    if not found:
        raise NotHere(name + " is not installed")
    return found


def nginx(options, directory, port):
    with open(directory + "/nginx.conf", "w", encoding="utf-8") as file:
        file.write(NGINX % {"directory": directory, "port": port, "text": "x" * 1000})
    return [installed("nginx", "/usr/sbin"), "-p", directory, "-c", directory + "/nginx.conf"], HTTP


def redis(options, directory, port):
    os.symlink(installed("redis-check-rdb"), directory + "/redis-server")  # the server, when it is called so
    return [directory + "/redis-server", "--port", str(port), "--save", "", "--dir", directory], "*1\\r\\n$4\\r\\nPING\\r\\n"


def golang(options, directory, port):
    with open(directory + "/server.go", "w", encoding="utf-8") as file:
        file.write(GO)
    if subprocess.call([installed("go"), "build", "-o", directory + "/go-server", directory + "/server.go"],
                       env=dict(os.environ, GOCACHE=directory + "/cache", HOME=directory, GO111MODULE="off")):
        raise NotHere("go builds no program here")
    return [directory + "/go-server", str(port)], HTTP


def java(options, directory, port):
    with open(directory + "/Server.java", "w", encoding="utf-8") as file:
        file.write(JAVA)
    return [installed("java"), "-Dsun.net.httpserver.nodelay=true", "-Dsun.net.httpserver.maxIdleConnections=1000", directory + "/Server.java", str(port)], HTTP


def nothing(options, directory, port):
    return [options.open_load, str(port)], "request"


SERVERS = {"nginx, 1 KB": nginx, "redis, PING": redis, "Go, 0.2 ms of CPU": golang, "Java, 4 threads, 0.2 ms of CPU": java}


def pieces_during(options, pids, load):
    """(count, P50, P99 in us, and the slowest 1 %'s parts in words) of the processes' pieces while load() runs; and its result."""
    tool = subprocess.Popen(["taskset", "-c", "1", options.tsnap, "--trace", "work", "--json", "-p", pids, "-g", "commsum", "-d", "100000"],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        time.sleep(2)
        result = load()
    finally:
        tool.send_signal(2)
        text = tool.communicate(timeout=LIMIT_S)[0].decode()
    rows = [row for row in map(json.loads, text.splitlines()) if row.get("trace") == "work"]
    if not rows:
        return (0, 0, 0, "no piece"), result
    row = max(rows, key=lambda row: row["total_ns"])  # the threads that do the work, where others hand it to them
    parts = " ".join("%s %.0f %%" % (part, row["tail_%s_share" % part]) for part in ("cpu", "runq", "disk", "sleep") if row["tail_%s_share" % part] >= 1)
    return (row["count"], row["p50_ns"] / 1e3, row["p99_ns"] / 1e3, parts), result


class Server:
    """A server on the first CPU, and a client of it on the other one."""

    def __init__(self, options, make):
        self.options, self.make = options, make

    def __enter__(self):
        self.directory = tempfile.mkdtemp(dir="/dev/shm")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        try:
            argv, self.request = self.make(self.options, self.directory, self.port)
        except NotHere:
            shutil.rmtree(self.directory)
            raise
        self.process = subprocess.Popen(["taskset", "-c", "0"] + argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", self.port)):
                    break
            time.sleep(0.1)
        return self

    def __exit__(self, *_what):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.directory)

    def load(self, rate, seconds):
        """(requests, P50, P99 in us from sending)"""
        text = subprocess.run(["taskset", "-c", "1", self.options.open_load, str(self.port), str(CONNECTIONS), "%.0f" % rate, str(seconds), self.request],
                              stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout
        return [float(word) for word in re.match(r"(\d+) requests, (\d+) (\d+)", text).groups()]

    def pids(self):
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], stdout=subprocess.PIPE, universal_newlines=True,
                                  check=False).stdout.split()
        return ",".join([str(self.process.pid)] + children)


class Sessions:
    """PostgreSQL's sessions under pgbench -S, in place of a Server."""

    def __init__(self, server):
        self.server = server

    def load(self, rate, seconds):
        log = self.server.directory + "/log"
        self.server.run(["taskset", "-c", "1"] + self.server.bench("-S", "-M", "prepared", "-c", CONNECTIONS, "-j", 2, "-T", seconds, "-l",
                                                                    "--log-prefix=" + log, *(["-R", "%.0f" % rate] if rate else [])))
        times = []
        for path in glob.glob(log + ".*"):
            with open(path, encoding="utf-8") as file:
                for line in file:
                    words = line.split()
                    times.append(int(words[2]) - (int(words[6]) if rate else 0))  # less the time until it was sent
            os.unlink(path)
        times.sort()
        return len(times), times[len(times) // 2], times[len(times) * 99 // 100]

    def pids(self):
        return "postgres"


def rows_of(options, name, server, network):
    seconds = max(2, options.scan_s // 2)
    busy = server.load(0, seconds)[0] / seconds
    rows = []
    for share in LOADS:
        say("work: %s at %d %% of %.0f requests a second" % (name, share, busy))
        (count, *ours, parts), (requests, *theirs) = pieces_during(options, server.pids(), lambda: server.load(busy * share / 100, seconds))
        for which, words in enumerate(("P50", "P99")):
            less = theirs[which] - network[which]
            rows.append(Row("%s, %d %% busy, %s" % (name, share, words), "tsnap", ours[which] / less if less > 0 and count else None, "ratio",
                            remark="%.0f us; the client %.0f us, network %.0f us%s" %
                            (ours[which], theirs[which], network[which], "" if not which else "; %.2f requests a piece; the slowest 1 %%: %s" %
                             (requests / max(1, count), parts))))
    return rows


def bench_work(options):
    options.open_load = os.path.join(options.build, "tests/bench/open_load")
    if os.cpu_count() < 2:
        return [Row("quantiles of pieces", "tsnap", None, "ratio", remark="needs two CPUs")]
    with Server(options, nothing) as server:
        (_, *ours, _), (_, *theirs) = pieces_during(options, server.pids(), lambda: server.load(1000, max(2, options.scan_s / 2)))
        network = [max(0, client - own) for client, own in zip(theirs, ours)]
    rows = []
    for name, make in SERVERS.items():
        try:
            with Server(options, make) as server:
                rows += rows_of(options, name, server, network)
        except NotHere as missing:
            rows.append(Row(name, "tsnap", None, "ratio", remark=str(missing)))
    try:
        with Postgres() as server:
            subprocess.check_call(["taskset", "-a", "-p", "-c", "0", str(server.server.pid)], stdout=subprocess.DEVNULL)
            rows += rows_of(options, "PostgreSQL, pgbench -S", Sessions(server), network)
    except NotHere as missing:
        rows.append(Row("PostgreSQL", "tsnap", None, "ratio", remark=str(missing)))
    return rows
