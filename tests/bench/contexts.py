"""Cost of what programs say of their own threads: sessions of PostgreSQL under pgbench and of MariaDB, with and without their queries and
waits."""
import glob
import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import time

from sampler import LIMIT_S, NotHere, Sampler, quartiles, say
from table import Row

RATE_HZ = 20
SESSIONS = 200
PLAIN = "timestamp,tid,state,syscall,comm"
WORDS = ",app_wait,app_state,query,query_id,database,app_user,client_app"
WHAT = "a sample's wait, state, query and the others"
MARIADB_WORDS = ",app_wait,app_state,query,database,app_user"
TURNS = {"no tool": None, "without": PLAIN, "with": PLAIN + WORDS}


class Server:
    """A database server in memory for the time of the context."""

    def __enter__(self):
        self.directory = tempfile.mkdtemp(dir="/dev/shm")
        os.chown(self.directory, self.user.pw_uid, self.user.pw_gid)
        self.begin()
        return self

    def __exit__(self, *_what):
        self.server.terminate()
        try:
            self.server.wait(10)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()
        shutil.rmtree(self.directory)

    def await_up(self, argv):
        """Returns when that command succeeds."""
        deadline = time.monotonic() + LIMIT_S
        while subprocess.call(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) and time.monotonic() < deadline:
            time.sleep(0.1)

    def start(self, argv, **how):
        return subprocess.Popen(argv, cwd=self.directory, user=self.user.pw_uid, group=self.user.pw_gid, extra_groups=[], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, **how)

    def run(self, argv):
        """The program's output."""
        process = self.start(argv)
        text = process.communicate(timeout=LIMIT_S)[0]
        if process.returncode:
            raise NotHere("%s: %s" % (os.path.basename(argv[0]), text.strip()[-200:]))
        return text


class Postgres(Server):
    """A server with the tables of pgbench."""

    def __init__(self):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin") + glob.glob("/usr/pgsql-*/bin"))
        if not found:
            raise NotHere("PostgreSQL is not installed")
        self.programs = found[-1]
        self.user = pwd.getpwnam("postgres")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    def command(self, name, *args):
        return [self.programs + "/" + name, *map(str, args)]

    def begin(self):
        self.run(self.command("initdb", "-N", "-A", "trust", "-U", "postgres", "-D", self.directory + "/data"))
        self.server = self.start(self.command("postgres", "-D", self.directory + "/data", "-c", "port=%d" % self.port, "-c", "fsync=off",
                                              "-c", "listen_addresses=", "-c", "unix_socket_directories=" + self.directory,
                                              "-c", "max_connections=%d" % (SESSIONS + 20), "-c", "compute_query_id=on"))
        self.await_up(self.command("pg_isready", "-q", *self.place()))
        self.run(self.bench("-i", "-q"))

    def place(self):
        return "-h", self.directory, "-p", self.port

    def bench(self, *args):
        return self.command("pgbench", *self.place(), "-U", "postgres", *args, "postgres")

    def pids(self):
        """The server's processes, as -p wants them."""
        text = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.server.pid)], stdout=subprocess.PIPE, universal_newlines=True,
                              check=True).stdout
        return ",".join(text.split())


class Mariadb(Server):
    """A server that is reached by a socket."""

    def __init__(self):
        for name in ("mariadbd", "mariadb-install-db", "mariadb"):
            if not shutil.which(name):
                raise NotHere("MariaDB is not installed")
        self.user = pwd.getpwnam("mysql")

    def begin(self):
        self.run(["mariadb-install-db", "--no-defaults", "--datadir=%s/data" % self.directory, "--skip-test-db",
                  "--auth-root-authentication-method=normal"])
        self.server = self.start(["mariadbd", "--no-defaults", "--datadir=%s/data" % self.directory, "--socket=%s/socket" % self.directory,
                                  "--skip-networking", "--pid-file=%s/pid" % self.directory, "--max-connections=%d" % (SESSIONS + 20)])
        self.await_up(self.client("-e", "select 1"))

    def client(self, *args):
        return ["mariadb", "--no-defaults", "-u", "root", "-S", self.directory + "/socket", "-N", "-B", *args]


class PostgresLoad:
    """Sessions that each get ten statements a second, and are idle between them."""

    words, columns, what = "PostgreSQL that answer %d statements a second" % (10 * SESSIONS), WORDS, WHAT

    def __init__(self, server):
        self.server = server

    def __enter__(self):
        self.process = self.server.start(self.server.bench("-S", "-c", SESSIONS, "-j", 2, "-R", 10 * SESSIONS, "-T", 1000))
        return self

    def __exit__(self, *_what):
        self.process.kill()
        self.process.wait()

    def pids(self):
        return self.server.pids()


class MariadbLoad:
    """Sessions that run ten statements a second each, which sleep for 0.1 s."""

    words, columns, what = "MariaDB, each in statements of 0.1 s", MARIADB_WORDS, WHAT + ", MariaDB"

    def __init__(self, server):
        self.server = server

    def __enter__(self):
        with tempfile.TemporaryFile() as script:
            script.write(b"do sleep(0.1), 'a statement of a usual length, with some words in it';\n" * 10000)
            script.flush()
            self.sessions = []
            for _ in range(SESSIONS):
                with open("/proc/self/fd/%d" % script.fileno(), "rb") as own:  # with a place of its own in the script
                    self.sessions.append(subprocess.Popen(self.server.client("mysql"), stdin=own, stdout=subprocess.DEVNULL,
                                                          stderr=subprocess.DEVNULL))
        return self

    def __exit__(self, *_what):
        for session in self.sessions:
            session.kill()
            session.wait()

    def pids(self):
        return str(self.server.server.pid)


def sampled_rows(options, load):
    """What a sample of a session costs more with these columns, of 200 sessions."""
    seconds, found = max(3, options.scan_s / 2), {what: [] for what in ("without", "with")}
    turns = {"without": PLAIN, "with": PLAIN + load.columns}
    with load:
        time.sleep(3)
        for turn in range(2 if options.quick else 6):
            what = ("without", "with")[turn % 2]
            say("contexts: %d sessions of %s, %s" % (SESSIONS, load.words, what))
            with Sampler(options, "-d", 100000, "-F", RATE_HZ, "-a", "-p", load.pids(), "-g", turns[what]) as sampler:
                cost, achieved = sampler.scan_cost(seconds, RATE_HZ, True)
                found[what].append(100 * cost * achieved)
    rows = []
    for what, words, aim in (("without", "state and system call", None), ("with", "with wait, state, query and the others, too", None)):
        low, middle, high = quartiles(found[what])
        rows.append(Row("CPU, %d sessions of %s, %d Hz: %s" % (SESSIONS, load.words, RATE_HZ, words), "tsnap", middle, "%", low, high, aim))
    more = [with_it - without for with_it, without in zip(found["with"], found["without"])]
    low, middle, high = quartiles([share / 100 / (SESSIONS * RATE_HZ) * 1e6 for share in more])
    return rows + [Row(load.what, "tsnap", middle, "us", low, high, 5, "%.1f %% of a CPU more" % quartiles(more)[1])]


def speed_row(options, server):
    """Statements a second of pgbench -S at full load, with each tool in turns, to those without any."""
    seconds, speeds = max(2, options.run_ms // 200), {what: [] for what in TURNS}
    for turn in range(2 if options.quick else 8):
        for what, columns in list(TURNS.items())[::-1 if turn % 2 else 1]:
            say("contexts: pgbench at full load, round %d, %s" % (turn + 1, what))
            tool = None
            if columns:
                tool = Sampler(options, "-d", 100000, "-F", RATE_HZ, "-a", "-u", "postgres", "-g", columns)
                tool.__enter__()
                time.sleep(1)
            text = server.run(server.bench("-S", "-M", "prepared", "-c", 4, "-j", 2, "-T", int(seconds)))
            if tool:
                tool.__exit__()
            speeds[what].append(float(re.search(r"tps = ([0-9.]+) \(without", text).group(1)))
    rows = []
    for what, words in (("without", "of all sessions"), ("with", "of all sessions, with their queries and waits")):
        low, middle, high = quartiles([without / with_it for with_it, without in zip(speeds[what], speeds["no tool"])])
        rows.append(Row("a statement of pgbench -S at full load, beside samples %s, %d Hz" % (words, RATE_HZ), "tsnap", middle, "ratio", low, high,
                        None, "%.0f a second without" % quartiles(speeds["no tool"])[1]))
    return rows


def bench_contexts(options):
    rows = []
    for kind, load in ((Postgres, PostgresLoad), (Mariadb, MariadbLoad)):
        try:
            with kind() as server:
                rows += sampled_rows(options, load(server))
                if kind is Postgres:
                    rows += speed_row(options, server)
        except NotHere as missing:
            rows.append(Row(load.what, "tsnap", None, "us", remark=str(missing)))
    return rows
