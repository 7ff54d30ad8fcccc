"""Stacks of real programs, against gdb's of the same threads; and how many of them are whole under load."""
import collections
import concurrent.futures
import os
import re
import signal
import sys
import time

import truth
from case_stacks import directory_of, programs_start
from harness import SLOW, Findings, Skip, case, check, rows_of, wait_until
from parts import Nginx, Part, Postgres, Redis, Session, Wrk, account, free_port, port_open, program

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stack"))
import gdb_stacks  # noqa: E402

STACKS_LEAST = 200
WHOLE = 0  # enum walk_end
CHAINS = ("chains_gcc", "chains_clang", "chains_cplusplus", "chains_clangplus", "chains_rust", "chains_static",
          "chains_fixed")

PYTHON = """
import functools, queue, re, select, socket, subprocess, sys, threading, time
lock = threading.Lock()
lock.acquire()
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen()
class Property:
    @property
    def value(self):
        return lock.acquire()
ends = [lock.acquire, lambda: time.sleep(1000), lambda: select.select([server], [], []), server.accept, queue.Queue().get,
        threading.Event().wait, lambda: subprocess.run(["sleep", "1000"]), lambda: Property().value,
        lambda: max(lock.acquire() for _ in range(1)), lambda: exec("lock.acquire()", {"lock": lock})]
# through C functions, so that there are frames
into = [lambda end: end(), lambda end: sorted([2, 1], key=lambda _: end()), lambda end: list(map(lambda _: end(), [1])),
        lambda end: min([1], key=lambda _: end()), lambda end: sum(end() for _ in range(1)), lambda end: eval("end()", {"end": end}),
        lambda end: functools.reduce(lambda *_: end(), [1, 2]), lambda end: re.sub(".", lambda _: end(), "1"),
        lambda end: any(map(lambda _: end(), [1]))]
for i, end in enumerate(ends):
    for way in into:
        threading.Thread(target=lambda end=end, way=way, i=i: way(lambda: way(end) if i % 2 else end()), daemon=True).start()
sys.stdin.read()
"""
JAVA = """
public class Sleeper {
    static final Object lock = new Object();
    static void deep(int n) throws Exception {
        if (n > 0) deep(n - 1);
        else synchronized (lock) { lock.wait(); }
    }
    public static void main(String[] words) throws Exception {
        for (int i = 0; i < 6; i++) {
            final int n = i;
            new Thread(() -> { try { deep(n); } catch (Exception e) { } }).start();
        }
        System.in.read();
    }
}
"""
PERL = "sub f { my $n = shift; $n ? f($n - 1) : sort { <STDIN> } 1, 2 } f(20)"

QUERIES = ("select 1;", "select pg_sleep(1000);", "select pg_advisory_lock(1), pg_sleep(1000);", "select pg_advisory_lock(1);",
           "do 'begin execute ''select pg_sleep(1000)''; end';", "copy (values (1)) to program 'sleep 1000';",
           "with recursive r as (select 1 as n union all select n + 1 from r where n < 5) select pg_sleep(200 * n) from r;")

# (name, Debian's package, arguments) of programs that wait for their input, or for ever
SLEEPERS = (
    ("python3", "python3", ("-c", PYTHON)),
    ("node", "nodejs", ("-e", "process.stdin.resume()")),
    ("java", "default-jre-headless", ("Sleeper.java",)),
    ("bash", "bash", ("-c", "f() { if (($1)); then f $(($1 - 1)); else cat | sort | (read x; cat); fi; }; f 10")),
    ("dash", "dash", ("-c", "tail -f /dev/null & sleep 1000 & read x")),
    ("perl", "perl", ("-e", PERL)),
    ("sqlite3", "sqlite3", ()),
    ("gdb", "gdb", ("-nx", "-q")),
    ("ssh-agent", "openssh-client", ("-D", "-a", "agent")),
    ("git", "git", ("hash-object", "--stdin")),
)


def family(pid):
    return [pid] + sorted(truth.children(pid))


def tids_of(pid):
    return sorted(int(tid) for tid in truth.read_dir("/proc/%d/task" % pid))


def sleepers_start(ctx):
    """Starts those of the programs that are installed; returns their Part objects."""
    parts, missing = [Redis(ctx)], []
    server = Postgres(ctx)
    parts.append(server)
    for query in QUERIES:
        parts.append(Session(server, ctx))
        parts[-1].say(query)
    for name, package, words in SLEEPERS:
        try:
            path = program(name, package, "/usr/bin")
        except Skip:
            missing.append(name)
            continue
        directory = ctx.temporary()
        with open(directory + "/Sleeper.java", "w") as file:
            file.write(JAVA)
        parts.append(Part(ctx, account("nobody"), [path, *words], directory))
    if missing:
        print("# not installed: " + " ".join(missing))
    return parts


def interrupted(tid):
    """True if a signal with a handler is pending for the thread: it comes before the stop as soon as a debugger lets it."""
    status = truth.lines_of("/proc/%d/status" % tid)
    own, shared, blocked, caught = (int(status[key], 16) for key in ("SigPnd", "ShdPnd", "SigBlk", "SigCgt"))
    return (own | shared) & caught & ~blocked


def settle(parts):
    """Waits until the programs have all their threads."""
    seen = []

    def steady():
        seen.append(sum(len(tids_of(pid)) for part in parts for pid in family(part.pid)))
        time.sleep(0.5)
        return len(seen) > 5 and len(set(seen[-5:])) == 1
    wait_until(steady, 60 * SLOW, "no new threads")


def switches_of(tids):
    return {tid: truth.Thread(tid).switches for tid in tids if truth.Thread(tid).exists}


def freeze(ctx, pids):
    """Stops the processes where they are; the test's end continues them."""
    class Frozen:
        def end(self):
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    pass
    ctx.started.append(Frozen())
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
        # a parent stops before its children: their stops send it a signal, for which it would go on while it has not stopped
        wait_until(lambda pid=pid: all(truth.Thread(tid).letter in "TZ" for tid in tids_of(pid)), 20 * SLOW, "all stopped")


def same_as_gdb(ours, gdbs):
    """"same"; "jit": the same up to code that no unwind table covers, where gdb guesses; "differ"."""
    if ours == gdbs:
        return "same"
    for one, other in zip(ours, gdbs):
        if one != other:
            break
        if one[0] == "[jit]":
            return "jit"
    return "differ"


@case(thorough=True, long=True)
def stacks_as_gdb(ctx):
    """For two hundred sleeping threads of all kinds of programs the stack that tsnap took while they slept is, by its hash, that which a
    walk finds after they were stopped, and that one is gdb's: frame by frame, file and address."""
    if not gdb_stacks.gdb_path():
        raise Skip("gdb is not installed (Debian: gdb)")
    probe = os.path.join(directory_of(ctx), "stack_probe")
    parts = sleepers_start(ctx)
    # the kernel stops no thread that waits in vfork
    pids = [chain.process.pid for words, chain in programs_start(ctx, CHAINS) if not words.endswith(" vforked")]
    settle(parts)
    pids += [pid for part in parts for pid in family(part.pid)]
    tool = ctx.stream("-a", "-F", 5, "-p", ",".join(str(pid) for pid in pids), columns="comm,state,ustack")
    tool.wait_scans(5)
    before = switches_of(tid for pid in pids for tid in tids_of(pid))
    tool.wait_scans(len(tool.scans()) + 5)
    after = switches_of(before)
    rows = tool.interrupt()
    freeze(ctx, pids)
    # the parent of a child that is stopped gets a signal, and may have one pending
    still = [tid for tid in before if after.get(tid) == before[tid] and not interrupted(tid)]
    with concurrent.futures.ThreadPoolExecutor(2) as two:
        told = list(two.map(gdb_stacks.gdb_stacks, pids))
    find, counts, hashes = Findings(), collections.Counter(), set()
    for tid in still:
        mine = [row for row in rows_of(rows, tid) if row["state"] in "SD"][-1:]
        if not mine:
            counts["without a sample"] += 1
            continue
        gdbs, why = next((stacks[tid], ends.get(tid)) for stacks, ends in told if tid in stacks)
        ours, end, hash_of = gdb_stacks.walk_addresses(probe, tid)
        words = "%s %d: %s" % (mine[0]["comm"], tid, why)
        find.expect(mine[0]["ustack"] == hash_of, "%s: tsnap's stack is %s, the walk's %s", words, mine[0]["ustack"], hash_of)
        how = same_as_gdb(ours, gdbs)
        counts[how if mine[0]["ustack"] == hash_of else "differ"] += 1
        hashes.add(hash_of)
        at = next((i for i, (a, b) in enumerate(zip(ours, gdbs)) if a != b), min(len(ours), len(gdbs)))
        find.expect(how != "differ", "%s: frame %d of %d, gdb has %d: %s, gdb %s", words, at, len(ours), len(gdbs),
                    ours[max(0, at - 1):at + 2], gdbs[max(0, at - 1):at + 2])
        find.expect(end == WHOLE, "%s: the walk was %s", words, end)
    print("# %d threads slept: %s; %d different stacks" % (len(still), dict(counts), len(hashes)))
    find.close()
    check(counts["same"] + counts["jit"] >= STACKS_LEAST, "only %s", counts)


PYTHON_LOAD = """
import hashlib, json, re, sqlite3, sys, tempfile, threading, time, zlib
def work(n):
    with tempfile.TemporaryFile() as file, sqlite3.connect(":memory:") as base:
        base.create_function("f", 1, lambda x: (time.sleep(0.0005), x)[1])
        base.execute("create table t (x)")
        while True:
            text = json.dumps([{"n": i} for i in range(500)])
            file.seek(0)
            file.write(zlib.compress(text.encode()))
            file.flush()
            base.execute("insert into t values (?)", (len(text),))
            base.execute("select max(f(x)) from t where rowid % 50 = 0").fetchall()
            sorted(range(20), key=lambda x: (time.sleep(0.0002), -x)[1])
            re.sub("[0-9]+", lambda m: str(int(m.group()) + 1), text)
            hashlib.pbkdf2_hmac("sha256", b"a", b"b", 200)
for i in range(4):
    threading.Thread(target=work, args=(i,), daemon=True).start()
sys.stdin.read()
"""
NODE_LOAD = """
const fs = require('fs'), http = require('http'), crypto = require('crypto'), worker = require('worker_threads');
if (worker.isMainThread) {
    for (let i = 0; i < 3; i++) new worker.Worker(__filename);
    http.createServer((ask, answer) => {
        fs.writeFileSync('out', JSON.stringify(ask.headers).repeat(20));
        const fd = fs.openSync('out', 'r+'); fs.fsyncSync(fd); fs.closeSync(fd);
        crypto.pbkdf2('a', 'b', 100, 32, 'sha256', () => fs.readFile(__filename, (e, text) => answer.end(text)));
    }).listen(+process.argv[2], '127.0.0.1');
    process.stdin.resume();
} else {
    const word = new Int32Array(new SharedArrayBuffer(4));
    const nap = n => n ? [2, 1].sort((a, b) => nap(n - 1)).length : (Atomics.wait(word, 0, 0, 2), a = JSON.stringify([1, 2]).length);
    let a; for (let i = 0;; i++) nap(i % 4 + 1);
}
"""
JAVA_LOAD = """
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.*;
import java.util.concurrent.*;
import java.util.zip.*;
public class Load {
    static final Object lock = new Object();
    static int deep(int n) throws Exception {
        if (n > 0) return deep(n - 1) + 1;
        synchronized (lock) { lock.wait(1); }
        return 0;
    }
    public static void main(String[] words) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 0);
        server.createContext("/", call -> {
            byte[] text = new byte[20000];
            Deflater deflater = new Deflater();
            deflater.setInput(text);
            deflater.finish();
            int n = deflater.deflate(text);
            deflater.end();
            call.sendResponseHeaders(200, n);
            call.getResponseBody().write(text, 0, n);
            call.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.start();
        for (int i = 0; i < 4; i++) {
            final int n = i;
            new Thread(() -> {
                List<Integer> list = new ArrayList<>(Arrays.asList(3, 1, 2));
                while (true) list.sort((a, b) -> { try { deep(n * 10); } catch (Exception e) { } return a - b; });
            }).start();
        }
        System.in.read();
    }
}
"""

# Functions in which programs and threads begin; that of a stripped program has no name, but is below the C library's
BEGINNINGS = re.compile(r"^(_start|main|clone3?|__clone3?|start_thread|[^;]*\+0x\w+;__libc_start_main_\[l\])(_\[l\])?(;|$)")
LOAD_HZ = 49
LOAD_SECONDS = 8


def load_postgres(ctx):
    server = Postgres(ctx)
    server.fill(ctx)
    return [server, server.pgbench(ctx, "-n", "-c", 6, "-j", 2, "-T", 600)]


def load_nginx(ctx):
    server = Nginx(ctx)
    return [server, Wrk(ctx, server.port, "-H", "Accept-Encoding: gzip")]


def scripted(ctx, name, package, file, text, port=None, options=()):
    """A list of a Part that runs this text; with a port the text is a server there, and a Wrk follows that sends it requests."""
    directory = ctx.temporary()
    with open(os.path.join(directory, file), "w") as script:
        script.write(text)
    words = [program(name, package, "/usr/bin"), *options, file] + ([str(port)] if port else [])
    parts = [Part(ctx, account("nobody"), words, directory)]
    if port:
        parts[0].wait_up(lambda: port_open(port))
        parts.append(Wrk(ctx, port))
    return parts


def load_java(ctx, *options):
    return scripted(ctx, "java", "default-jre-headless", "Load.java", JAVA_LOAD, free_port(), options)


# (name, function that starts it, least share of whole stacks)
LOADS = (
    ("postgres", load_postgres, 0.98),
    ("nginx", load_nginx, 0.98),
    ("python3", lambda ctx: scripted(ctx, "python3", "python3", "load.py", PYTHON_LOAD), 0.98),
    ("node", lambda ctx: scripted(ctx, "node", "nodejs", "load.js", NODE_LOAD, free_port()), 0.98),
    ("java with frame pointers", lambda ctx: load_java(ctx, "-XX:+PreserveFramePointer"), 0.98),
    ("java", load_java, 0.98),
)


class Share:
    """Shares of samples, and of different stacks off CPU, that reach the function in which a program or thread begins."""

    def __init__(self, rows):
        self.samples = len(rows)
        short = [row for row in rows if not BEGINNINGS.match(row["stack"])]
        self.short = collections.Counter(row["stack"] for row in short)
        # the stack of a thread on a CPU is read from a copy of the stack's top only, and may be short
        self.stacks = {row["stack"] for row in rows if row["state"] != "ON"}
        self.short_stacks = {row["stack"] for row in short if row["state"] != "ON"}

    @property
    def of_samples(self):
        return 1 - sum(self.short.values()) / self.samples

    @property
    def of_stacks(self):
        return 1 - len(self.short_stacks) / len(self.stacks)


def share_of_load(ctx, name, start):
    """The Share of stacks of a program's threads, sampled while it is under load."""
    parts = start(ctx)
    time.sleep(2 * SLOW)  # Java's code is interpreted at first, then compiled
    pids = [pid for part in parts for pid in family(part.pid)]
    rows = ctx.rows("-a", "-F", LOAD_HZ, "-p", ",".join(str(pid) for pid in pids), seconds=LOAD_SECONDS * SLOW,
                    columns="comm,state,ustack,stack")
    for part in parts:
        part.end()
    # a thread that ran while it was read has no stack, which is counted elsewhere; on a busy host names come late, also those of libc
    return Share([dict(row, stack=";".join(frame for frame in row["stack"].split(";") if not frame.endswith("_[k]")))
                  for row in rows if row["ustack"] and row["state"] != "Z" and "libc.so.6+0x" not in row["stack"]])


@case(thorough=True, long=True)
def stacks_under_load(ctx):
    """PostgreSQL, nginx, Python, node and Java at work: nearly all of their stacks reach where the program or the thread begins."""
    find, ran = Findings(), 0
    for name, start, least in LOADS:
        try:
            share = share_of_load(ctx, name, start)
        except Skip as skip:
            print("# %s: %s" % (name, skip))
            continue
        ran += 1
        print("# %s: %.2f %% of %d samples, %.2f %% of %d stacks off CPU" % (name, 100 * share.of_samples, share.samples,
                                                                              100 * share.of_stacks, len(share.stacks)))
        find.expect(share.samples > 200, "%s: only %d samples", name, share.samples)
        find.expect(len(share.stacks) >= 5, "%s: only %d stacks", name, len(share.stacks))
        worst = sorted(share.short, key=share.short.get)[-3:]
        # on a busy host there are fewer different stacks, of which one is more than 2 %
        few = len(share.short_stacks) <= max(1, (1 - least) * len(share.stacks))
        find.expect(share.of_samples >= least and few, "%s: %s", name, worst)
    find.close()
    if not ran:
        raise Skip("none of the programs can run here")
