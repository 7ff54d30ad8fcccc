"""Real programs as tests need them: PostgreSQL, redis, stress-ng from Debian's packages. Each runs as an unprivileged user on a
free port, below a temporary directory, and ends with its test; the system's own services are neither used nor touched."""
import ctypes
import glob
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys

import truth
from harness import SLOW, STOP_S, Process, Skip, check, wait_until

UP_S = 30 * SLOW
SET_PDEATHSIG = 1  # linux/prctl.h
LIBC = ctypes.CDLL(None)
FIRST_SLOW = 3  # emulators: a database's start takes a minute there, and its results would not depend on the kernel


def program(name, package, *places):
    """Path of the newest installed program of that name."""
    found = [path for place in places for path in glob.glob(place + "/" + name)]
    path = max(found, key=lambda path: [int(word) for word in re.findall(r"\d+", path)], default=None) or shutil.which(name)
    if not path:
        raise Skip("%s is not installed (Debian: %s)" % (name, package))
    if SLOW >= FIRST_SLOW:
        raise Skip("too slow for %s in an emulated machine" % name)
    return path


def free_port():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        return other.getsockname()[1]


def account(*names):
    """The first of these users that exists."""
    for name in names:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            pass
    raise Skip("there is no user " + " or ".join(names))


class Part(Process):
    """A process with the rights of a user, in a directory of its own; it ends with the tests."""

    INPUT_S = STOP_S  # end() has sent a signal already
    LAST = signal.SIGTERM

    def __init__(self, ctx, user, argv, directory=None, tree="", **popen):
        def become():
            if tree:
                os.chroot(tree)
                os.chdir(self.directory[len(tree):])
            os.setgroups([])
            os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
            os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
            LIBC.prctl(SET_PDEATHSIG, signal.SIGTERM)  # for when the tests are killed; setresuid() would clear it
        self.user = user
        self.directory = directory or ctx.temporary()
        os.chown(self.directory, user.pw_uid, user.pw_gid)
        super().__init__([word.replace(tree, "") for word in argv] if tree else argv, preexec_fn=become, cwd=self.directory,
                         env={"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": self.directory}, **popen)
        ctx.started.append(self)

    def end(self):
        """Signals the process group, as neither servers nor children of programs end when their input does."""
        if self.code is None:
            os.killpg(self.pid, self.LAST)
        super().end()

    def wait_up(self, test):
        """Waits until test() is true; if it never is, the failure has the program's own words."""
        def up():
            check(self.code is None, "%s ended: %s", self.argv[0], self.err)
            return test()
        wait_until(up, UP_S, self.argv[0])


class Session(Part):
    """A psql with a connection of its own."""

    def __init__(self, server, ctx):
        super().__init__(ctx, server.user, server.command("psql") + ["-X", "-q", "-A", "-t"])
        self.backend = int(self.ask("select pg_backend_pid()"))

    def ask(self, text):
        """Sends a statement and gives the answer, without the last newline."""
        before = len(self.out)
        self.say(text + ";")
        self.say("\\echo done.")
        wait_until(lambda: self.out[before:].endswith(b"done.\n") or self.code is not None, UP_S, text)
        check(not self.err, "%s: %s", text, self.err)
        return self.out[before:-len("done.\n")].decode().strip()


class Postgres(Part):
    LAST = signal.SIGINT  # at SIGTERM the server would wait for all sessions

    def __init__(self, ctx, **settings):
        """The server of ctx.postgres_tree, if there is one; clients are this system's."""
        tree = ctx.postgres_tree
        places = "/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"
        path = program("postgres", "postgresql", *places)
        self.programs, user = os.path.dirname(path), account("postgres", "nobody")
        directory = ctx.temporary(tree)
        if tree:
            path, = glob.glob(tree + "/usr/lib/postgresql/*/bin/postgres")
        made = Part(ctx, user, [os.path.dirname(path) + "/initdb", "-N", "-A", "trust", "-U", "postgres", "-D", directory + "/data"],
                    directory, tree=tree)
        check(made.wait(UP_S) == 0, "initdb: %s", made.err)
        self.port, self.count = free_port(), 0
        settings = dict({"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": directory,
                         "autovacuum": "off", "max_parallel_workers_per_gather": 0}, **settings)
        super().__init__(ctx, user, [path, "-D", directory + "/data"] +
                         [word for pair in settings.items() for word in ("-c", "%s=%s" % pair)], directory, tree=tree)
        self.wait_up(lambda: self.ask_once("select 1") == "1")

    def command(self, name):
        return [self.programs + "/" + name, "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"] + \
            (["-d", "postgres"] if name == "psql" else ["postgres"] if name == "pgbench" else [])

    def ask_once(self, text):
        """The answer to a statement on a new connection; empty: none."""
        return subprocess.run(self.command("psql") + ["-X", "-q", "-A", "-t", "-c", text], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, universal_newlines=True, cwd=self.directory).stdout.strip()

    def clients(self, query="%"):
        """{backend: the port of its client} of backends whose last query is LIKE this, as the server lists them."""
        lines = self.ask_once("select pid, client_port from pg_stat_activity where client_port > 0 and pid <> pg_backend_pid() "
                              "and query like '%s'" % query)
        return {int(pid): int(port) for pid, port in (line.split("|") for line in lines.splitlines())}

    def pgbench(self, ctx, *args):
        argv = self.command("pgbench")
        return Part(ctx, self.user, argv[:-1] + [str(arg) for arg in args] + argv[-1:], self.directory)

    def fill(self, ctx):
        """Makes the tables of pgbench."""
        made = self.pgbench(ctx, "-i", "-q")
        check(made.wait(UP_S) == 0, "pgbench -i: %s", made.err)


class MariaDB(Part):
    """A MariaDB server; connections are made by TCP, or by a UNIX socket's path."""

    def __init__(self, ctx):
        path, maker = program("mariadbd", "mariadb-server", "/usr/sbin"), program("mariadb-install-db", "mariadb-server")
        directory, user = ctx.temporary(), account("mysql", "nobody")
        made = Part(ctx, user, [maker, "--no-defaults", "--datadir=%s/data" % directory, "--skip-test-db",
                                "--auth-root-authentication-method=normal"], directory)
        check(made.wait(UP_S) == 0, "mariadb-install-db: %s", made.err)
        self.port, self.path = free_port(), directory + "/socket"
        super().__init__(ctx, user, [path, "--no-defaults", "--datadir=%s/data" % directory, "--socket=" + self.path,
                                     "--port=%d" % self.port, "--bind-address=127.0.0.1", "--skip-name-resolve",
                                     "--pid-file=%s/pid" % directory], directory)
        self.wait_up(lambda: self.ask_once("select 1") == "1")
        self.ask_once("create user other@'127.0.0.1'; grant all on *.* to other@'127.0.0.1'; create database base")

    def client(self, tcp=False):
        place = ["-u", "other", "-h", "127.0.0.1", "-P", str(self.port)] if tcp else ["-u", "root", "-S", self.path]
        return [program("mariadb", "mariadb-client"), "--no-defaults", "-N", "-B", *place]

    def ask_once(self, text):
        return subprocess.run(self.client() + ["-e", text], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True,
                              cwd=self.directory).stdout.strip()

    def session(self, ctx, tcp=False):
        """A client that reads statements from its input."""
        return Part(ctx, self.user, self.client(tcp) + ["--unbuffered", "base"], self.directory)

    def threads(self):
        """{tid: (command, state, host)} of the server's threads, as the server lists them."""
        lines = self.ask_once("select tid, command, state, host from information_schema.processlist where info is null "
                              "or info not like '%processlist%'")
        return {int(words[0]): tuple(words[1:]) for words in (line.split("\t") for line in lines.splitlines())}


class Redis(Part):
    """A redis server. Its program is in redis-tools: that is the server when it is called by that name."""

    def __init__(self, ctx):
        path = program("redis-check-rdb", "redis-tools", "/usr/bin")
        directory = ctx.temporary()
        os.symlink(path, directory + "/redis-server")
        self.port = free_port()
        super().__init__(ctx, account("nobody"), [directory + "/redis-server", "--bind", "127.0.0.1", "--port", str(self.port),
                                                  "--save", "", "--dir", directory], directory)
        self.wait_up(lambda: self.ask("ping") == "PONG")

    def command(self, name, *args):
        return [program(name, "redis-tools", "/usr/bin"), "-h", "127.0.0.1", "-p", str(self.port)] + [str(arg) for arg in args]

    def ask(self, *args):
        return subprocess.run(self.command("redis-cli", *args), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              universal_newlines=True).stdout.strip()

    def client(self, ctx, *args):
        return Part(ctx, self.user, self.command("redis-cli", *args))

    def clients(self):
        """The server's list of clients, each as a dict."""
        return [dict(word.split("=", 1) for word in line.split() if "=" in word)
                for line in self.ask("client", "list").splitlines()]


class Stress(Part):
    """A stress-ng with `workers` workers on one CPU, all stopped until they are continued."""

    def __init__(self, ctx, workers):
        self.tids = []
        argv = [program("stress-ng", "stress-ng", "/usr/bin"), "--cpu", str(workers), "--cpu-method", "int64", "--taskset",
                str(min(os.sched_getaffinity(0))), "--timeout", "600", "--quiet"]
        super().__init__(ctx, account("nobody"), argv)
        self.wait_up(lambda: len(self.spinning()) == workers)
        self.tids = self.spinning()
        self.hold()

    def spinning(self):
        """Tids of the workers that have had their first 50 ms on the CPU."""
        found = [tid for tid in truth.children(self.pid) if (truth.schedstat(tid) or [0])[0] > 50e6]
        return sorted(tid for tid in found if (truth.read("/proc/%d/comm" % tid) or "").startswith("stress-ng-cpu"))

    def hold(self):
        """Stops all workers; the kernel's accounts of them stand still when it returns."""
        for tid in self.tids:
            os.kill(tid, signal.SIGSTOP)
        wait_until(lambda: all(truth.Thread(tid).letter == "T" for tid in self.tids), STOP_S, "all workers stopped")

    def go(self):
        for tid in self.tids:
            os.kill(tid, signal.SIGCONT)

    def end(self):
        """Kills the workers first: a stopped one would keep the others waiting."""
        for tid in self.tids:
            try:
                os.kill(tid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        super().end()


class Runqlat(Process):
    """bcc's runqlat for one process; if there are no kernel headers, with headers that the bench makes for it."""

    def __init__(self, ctx, pid):
        sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
        import peer_types
        path = shutil.which("runqlat-bpfcc", path=os.environ["PATH"] + ":/usr/sbin")
        if not path:
            raise Skip("runqlat-bpfcc is not installed (Debian: bpfcc-tools)")
        env = dict(os.environ)
        if not os.path.exists("/lib/modules/%s/build" % os.uname().release):
            env["BCC_KERNEL_SOURCE"] = ctx.temporary()
            try:
                peer_types.tree_write(env["BCC_KERNEL_SOURCE"], ctx.options.tsnap)
            except (subprocess.CalledProcessError, KeyError):
                raise Skip("no kernel headers for runqlat")
        super().__init__([path, "-p", str(pid)], env=env)
        ctx.started.append(self)
        wait_until(lambda: b"Tracing" in self.out or self.code is not None, UP_S, "runqlat")
        if self.code is not None:
            raise Skip("runqlat does not run here: %s" % self.err.splitlines()[-1])

    def finish(self):
        """{lower bound of a bucket in microseconds: count}"""
        self.signal(signal.SIGINT)
        self.wait(STOP_S)
        pairs = re.findall(r"^\s*(\d+) -> \d+\s*: (\d+)", self.out.decode(), re.M)
        return {int(low): int(count) for low, count in pairs if int(count)}


class Nginx(Part):
    """An nginx with two workers, and a file to serve."""

    LAST = signal.SIGQUIT

    def __init__(self, ctx, locations=""):
        path, directory = program("nginx", "nginx", "/usr/sbin"), ctx.temporary()
        self.port = free_port()
        with open(directory + "/index.html", "w") as file:
            file.write("x" * 20000)
        with open(directory + "/conf", "w") as file:
            file.write("daemon off; worker_processes 2; pid %s/pid; error_log stderr; events {} http { access_log %s/log; gzip on;"
                       "gzip_types *; client_body_temp_path %s/a; proxy_temp_path %s/b; fastcgi_temp_path %s/c; uwsgi_temp_path %s/d;"
                       "scgi_temp_path %s/e; server { listen 127.0.0.1:%d; root %s; %s } }" % ((directory,) * 7 + (self.port, directory, locations)))
        os.chmod(directory, 0o755)
        super().__init__(ctx, account("www-data", "nginx", "nobody"), [path, "-e", "stderr", "-c", directory + "/conf"], directory)
        self.wait_up(lambda: port_open(self.port))


class PhpFpm(Part):
    """A php-fpm that runs the given PHP for each request, in one of two processes."""

    def __init__(self, ctx, text):
        path, user = program("php-fpm*", "php-fpm", "/usr/sbin"), account("www-data", "nobody")
        directory = ctx.temporary()
        self.port, self.script = free_port(), directory + "/index.php"
        with open(self.script, "w") as file:
            file.write("<?php %s ?>" % text)
        with open(directory + "/conf", "w") as file:
            file.write("[global]\nerror_log = %s/log\ndaemonize = no\n[one]\nlisten = 127.0.0.1:%d\npm = static\n"
                       "pm.max_children = 2\n" % (directory, self.port))
        os.chmod(directory, 0o755)
        super().__init__(ctx, user, [path, "-y", directory + "/conf"], directory)
        self.wait_up(lambda: port_open(self.port))

    def location(self):
        """The location block for nginx' configuration."""
        return ("location / { fastcgi_pass 127.0.0.1:%d; fastcgi_param SCRIPT_FILENAME %s; fastcgi_param REQUEST_METHOD GET;"
                "fastcgi_read_timeout 600; }" % (self.port, self.script))


class Wrk(Part):
    """A wrk that sends requests to a web server until it is ended, for at most 600 s."""

    def __init__(self, ctx, port, *args):
        super().__init__(ctx, account("nobody"), [program("wrk", "wrk", "/usr/bin"), "-d", "600", "-t", "1", "-c", "8",
                                                  *args, "http://127.0.0.1:%d/index.html" % port])


def port_open(port):
    with socket.socket() as one:
        return not one.connect_ex(("127.0.0.1", port))
