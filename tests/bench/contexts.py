"""Cost of what programs say of their own threads: sessions of PostgreSQL under pgbench, with and without their queries and waits."""
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
TURNS = {"no tool": None, "without": PLAIN, "with": PLAIN + WORDS}


class Postgres:
    """A server in memory for the time of the context, with the tables of pgbench."""

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

    def __enter__(self):
        self.directory = tempfile.mkdtemp(dir="/dev/shm")
        os.chown(self.directory, self.user.pw_uid, self.user.pw_gid)
        self.run(self.command("initdb", "-N", "-A", "trust", "-U", "postgres", "-D", self.directory + "/data"))
        self.server = self.start(self.command("postgres", "-D", self.directory + "/data", "-c", "port=%d" % self.port, "-c", "fsync=off",
                                              "-c", "listen_addresses=", "-c", "unix_socket_directories=" + self.directory,
                                              "-c", "max_connections=%d" % (SESSIONS + 20), "-c", "compute_query_id=on"))
        deadline = time.monotonic() + LIMIT_S
        while subprocess.call(self.command("pg_isready", "-q", *self.place())) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.run(self.bench("-i", "-q"))
        return self

    def __exit__(self, *_what):
        self.server.terminate()
        try:
            self.server.wait(10)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()
        shutil.rmtree(self.directory)

    def place(self):
        return "-h", self.directory, "-p", self.port

    def bench(self, *args):
        return self.command("pgbench", *self.place(), "-U", "postgres", *args, "postgres")

    def pids(self):
        """The server's processes, as -p wants them."""
        text = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.server.pid)], stdout=subprocess.PIPE, universal_newlines=True,
                              check=True).stdout
        return ",".join(text.split())


def sampled_rows(options, server):
    """What a sample of a session costs more with these columns: 200 sessions of which each has ten statements a second."""
    seconds, found = max(3, options.scan_s / 2), {what: [] for what in ("without", "with")}
    load = server.start(server.bench("-S", "-c", SESSIONS, "-j", 2, "-R", 10 * SESSIONS, "-T", 1000))
    try:
        time.sleep(3)
        for turn in range(2 if options.quick else 6):
            what = ("without", "with")[turn % 2]
            say("contexts: %d sessions, %s" % (SESSIONS, what))
            with Sampler(options, "-d", 100000, "-F", RATE_HZ, "-a", "-p", server.pids(), "-g", TURNS[what]) as sampler:
                cost, achieved = sampler.scan_cost(seconds, RATE_HZ, True)
                found[what].append(100 * cost * achieved)
    finally:
        load.kill()
        load.wait()
    rows = []
    for what, words, aim in (("without", "state and system call", None), ("with", "with wait, state, query and the others, too", None)):
        low, middle, high = quartiles(found[what])
        rows.append(Row("CPU, %d sessions of PostgreSQL that answer 2000 statements a second, %d Hz: %s" % (SESSIONS, RATE_HZ, words), "tsnap",
                        middle, "%", low, high, aim))
    more = [with_it - without for with_it, without in zip(found["with"], found["without"])]
    low, middle, high = quartiles([share / 100 / (SESSIONS * RATE_HZ) * 1e6 for share in more])
    return rows + [Row("a sample's wait, state, query and the others", "tsnap", middle, "us", low, high, 5,
                       "%.1f %% of a CPU more" % quartiles(more)[1])]


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
    try:
        with Postgres() as server:
            return sampled_rows(options, server) + speed_row(options, server)
    except NotHere as missing:
        return [Row("a sample's wait, state, query and the others", "tsnap", None, "us", remark=str(missing))]
