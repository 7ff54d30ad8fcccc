"""Cost and quality of stacks, compared with those of offcputime, which are taken at each switch."""
import collections
import contextlib
import csv
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import peers
from sampler import LIMIT_S, OPERATIONS, Sampler, operation_ns, quartiles, say
from table import Row

CALLS = 20  # a stack of 25 frames, with the C library's
PROCESSES, THREADS = 10, 100
WARM_UP_S = 3
ALONE = "timestamp,tid,state,syscall"
STACKS = ALONE + ",kstack,stack"
# Deep threads in Python. Arguments: threads, calls, seconds of each sleep.
DEEP_PYTHON = """
import sys, threading, time
def deeper(left):
    return deeper(left - 1) if left > 1 else time.sleep(float(sys.argv[3]))
def deep_thread():
    while True:
        deeper(int(sys.argv[2]))
threading.stack_size(256 << 10)
for _ in range(int(sys.argv[1])):
    threading.Thread(target=deep_thread, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""
BUILDS = {"deep_pointers": "with frame pointers", "deep_bare": "without"}


class Deep:
    """Threads that sleep in a chain of calls: for ever, or again and again for period_us."""

    def __init__(self, program, threads, period_us):
        self.start([program, str(threads), str(CALLS), str(period_us)])

    def start(self, argv):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = str(self.process.pid)
        self.process.stdout.readline()

    def __enter__(self):
        return self

    def thread(self):
        return max(os.listdir("/proc/%s/task" % self.pid), key=int)

    def __exit__(self, *_what):
        self.process.stdin.close()
        self.process.wait(LIMIT_S)
        self.process.stdout.close()


class DeepPython(Deep):
    def __init__(self, threads, period_us):
        self.start(["python3", "-c", DEEP_PYTHON, str(threads), str(CALLS), str(period_us / 1e6)])


@contextlib.contextmanager
def crowd(make):
    """Yields the pids of processes with many threads, as -p takes them."""
    with contextlib.ExitStack() as all_of_them:
        yield ",".join(all_of_them.enter_context(make()).pid for _ in range(PROCESSES))


def deep_crowd(options, period_us):
    return crowd(lambda: Deep(options.build + "/tests/bench/deep_bare", THREADS, period_us))


def sampler(options, rate, pids, columns, *args):
    return Sampler(options, "-d", 100000, "-F", rate, "-a", "-p", pids, "-g", columns, *args)


def pipe_rows(options):
    """Pipe round trips without tsnap, with its probes but no stacks, and with stacks, in turns."""
    def round_trip_ns():
        return operation_ns(options, "pipe_same", options.run_ms, "cpu")

    ratios = {ALONE: [], STACKS: []}
    for turn in range(options.rounds):
        say("stacks: pipe round trips, round %d of %d" % (turn + 1, options.rounds))
        without = round_trip_ns()
        for columns, found in ratios.items():
            with Sampler(options, "-d", 100000, "-a", "-g", columns):
                time.sleep(min(1, options.scan_s / 10))
                found.append(round_trip_ns() / without)
    low, middle, high = quartiles(ratios[STACKS])
    return [Row("CPU time of a pipe round trip on one core, stacks of all threads requested", "tsnap", middle, "ratio", low, high, 1.15,
                "%.2f without stacks" % quartiles(ratios[ALONE])[1])]


def probe(options, tid, rounds):
    """[frames, ns of the first walk, ns of the median walk, ns of the names]"""
    text = subprocess.run([options.build + "/tests/stack/stack_probe", tid, str(rounds)], stdout=subprocess.PIPE,
                          check=True).stdout.decode()
    return [int(number) for number in re.search(r"^# (\d+) frames, first (\d+) ns, then (\d+) ns\n# names (\d+) ns$", text, re.M).groups()]


def walk_rows(options):
    with Deep(options.build + "/tests/bench/deep_bare", 1, 0) as deep:
        time.sleep(0.1)
        walks = [probe(options, deep.thread(), 200) for _ in range(options.rounds)]
    low, middle, high = quartiles([warm / 1000 for _, _, warm, _ in walks])
    return [Row("user stack of a sleeping thread, %d frames, tables warm" % walks[0][0], "tsnap", middle, "us", low, high, 15,
                "median of 200; the first one %.0f us" % (quartiles([first / 1000 for _, first, _, _ in walks])[1]))]


def crowd_rows(options):
    """CPU for stacks of a thousand threads: of threads that never move, and of threads that have run since the last scan."""
    rows, count = [], PROCESSES * THREADS
    seconds = max(2, options.scan_s)
    for words, period_us in (("asleep", 0), ("that wake twice a second", 500000)):
        with deep_crowd(options, period_us) as pids:
            cost = {}
            for rate, columns in ((1, STACKS), (20, ALONE), (20, ALONE + ",ustack")):
                if period_us and rate > 1:
                    continue
                say("stacks: %d threads %s, %s, %d Hz" % (count, words, columns, rate))
                with sampler(options, rate, pids, columns) as program:
                    time.sleep(min(WARM_UP_S, options.scan_s))
                    cost[columns], achieved = program.scan_cost(seconds, rate, True)
                if columns == STACKS:
                    rows.append(Row("CPU, user and kernel stacks of %d threads %s, %d processes, 1 Hz" % (count, words, PROCESSES),
                                    "tsnap", 100 * cost[columns] * achieved, "%", aim=3, remark="%.1f scans a second" % achieved))
            if not period_us:
                rows.append(Row("user stack of a thread that has not moved since the last scan", "tsnap",
                                max(0, 1e6 * (cost[ALONE + ",ustack"] - cost[ALONE]) / count), "us", aim=2,
                                remark="a sample with one less one without, at 20 Hz"))
    return rows


def python_rows(options):
    """CPU for stacks of the same number of threads in Python, without Python's functions and with them."""
    rows = []
    with crowd(lambda: DeepPython(THREADS, 500000)) as pids:
        for words, args in (("the same of Python programs", ()), ("the same with --python, %d functions" % (CALLS + 4), ("--python",))):
            say("stacks: " + words)
            with sampler(options, 1, pids, STACKS, *args) as program:
                time.sleep(min(WARM_UP_S, options.scan_s))
                cost, achieved = program.scan_cost(max(2, options.scan_s), 1, True)
            rows.append(Row(words, "tsnap", 100 * cost * achieved, "%", remark="%.1f scans a second" % achieved))
    return rows


@contextlib.contextmanager
def large_program(options):
    """Makes the same program with a size of 100 MB and yields its path; None where there is no compiler."""
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory(prefix="tsnap-bench-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as scratch:
        path = scratch + "/large"
        if not shutil.which("cc"):
            yield None
            return
        say("stacks: a large program is made")
        subprocess.run(["cc", "-O2", "-fomit-frame-pointer", "-pthread", "-o", path, here + "/deep.c", here + "/filler.s"], check=True)
        yield path


def gaps_s(timestamps):
    """Times between consecutive scans."""
    times = [60 * int(minute) + float(second) for minute, second in (stamp[:-1].split(":")[1:] for stamp in timestamps)]
    return [(after - before) % 3600 for before, after in zip(times, times[1:])]


def large_ticks(options, path):
    """(scans with the large program, the longest time between two scans in ms, scans before all its names were known)"""
    with Deep(options.build + "/tests/bench/deep_bare", 1, 0):
        # the small program is in every scan, also before the large one starts
        with Sampler(options, "-d", 100000, "-F", 20, "-a", "--filter", 'comm~"^(deep_bare|large)$"', "-g",
                     "timestamp,tid,state,stack") as program:
            time.sleep(1)
            with Deep(path, 1, 0) as large:
                tid = large.thread()
                time.sleep(2)
                text = os.pread(program.file.fileno(), 1 << 24, 0).decode()
    rows = list(csv.DictReader(io.StringIO(text[:text.rfind("\n") + 1])))
    its = [row for row in rows if row["tid"] == tid]
    unnamed = sum("large+0x" in row["stack"] or not row["stack"] for row in its)
    return len(its), 1000 * max(gaps_s(sorted({row["timestamp"] for row in rows}))), unnamed


def large_rows(options):
    words = "first stack of a program of 100 MB: walk and names"
    with large_program(options) as path:
        if not path:
            return [Row(words, "tsnap", None, "ms", aim=300, remark="no compiler here")]
        with Deep(path, 1, 0) as deep:
            time.sleep(0.1)
            took = [probe(options, deep.thread(), 2) for _ in range(options.rounds)]
        low, middle, high = quartiles([(first + names) / 1e6 for _, first, _, names in took])
        walk = quartiles([first / 1e6 for _, first, _, _ in took])[1]
        scans, gap, unnamed = large_ticks(options, path)
        rows = [Row(words, "tsnap", middle, "ms", low, high, 300,
                    "%.0f MB; the walk %.1f ms, the rest between ticks" % (os.path.getsize(path) / 1e6, walk)),
                Row("longest time between two scans at 20 Hz meanwhile", "tsnap", gap, "ms", aim=60,
                    remark="%d scans, %d before the names were known" % (scans, unnamed))]
        return rows + memory_rows(options, path)


def memory_rows(options, large):
    """Memory of all caches, with the large program and every process of this host."""
    sizes = {}
    with deep_crowd(options, 500000), Deep(large, 1, 0):
        for columns in (ALONE, STACKS):
            say("stacks: memory, " + columns)
            with Sampler(options, "-d", 100000, "-F", 5, "-a", "-g", columns) as program:
                time.sleep(max(2, options.scan_s / 2))
                sizes[columns] = program.memory()[1]
    return [Row("memory for stacks of %d threads, this host's and that program's" % (PROCESSES * THREADS), "tsnap",
                (sizes[STACKS] - sizes[ALONE]) / 1e6, "MB", aim=64, remark="resident at most, less that without stacks")]


def bench_stacks(options):
    return pipe_rows(options) + walk_rows(options) + crowd_rows(options) + python_rows(options) + large_rows(options)


# --- comparison with offcputime

Stack = collections.namedtuple("Stack", "frames weight")  # frames: names; weight: time or samples


def offcputime_stacks(text):
    """Stacks of offcputime's text: a line for each frame, one for the thread, one with microseconds."""
    frames = []
    for line in text.split("\n"):
        words = line.strip()
        if re.match(r"-\s+\S", words):
            continue
        if words.isdigit() and frames:
            yield Stack(frames, int(words))
            frames = []
        elif words:
            frames.append(words)


def tsnap_stacks(text, deep):
    """Stacks of tsnap's CSV, without the first thread: it waits until the end, and offcputime counts a sleep only when it is over."""
    for row in csv.DictReader(io.StringIO(text)):
        if row["state"] == "S" and row["tid"] != deep.pid:
            yield Stack([re.sub(r"_\[\w\]$", "", name) for name in row["stack"].split(";")], 1)


def shares(stacks):
    """[% of stacks that reach the thread's function, % that have every call, % that have a frame without a name]"""
    whole = exact = unnamed = total = 0
    for stack in stacks:
        total += stack.weight
        whole += stack.weight * ("deep_thread" in stack.frames)
        exact += stack.weight * ("deep_thread" in stack.frames and "deep_sleep" in stack.frames and stack.frames.count("deeper") == CALLS)
        unnamed += stack.weight * any(name.startswith("[") or "+0x" in name for name in stack.frames)
    if not total:
        sys.exit("bench: no stack was found")
    return [100 * part / total for part in (whole, exact, unnamed)]


class Offcputime(peers.Tracer):
    def text(self, seconds):
        """Its output for so many seconds."""
        time.sleep(seconds)
        self.process.send_signal(2)
        self.process.wait(LIMIT_S)
        return os.pread(self.file.fileno(), 1 << 24, 0).decode(errors="replace")


def found_shares(options, peer):
    """{tool: {build: shares}}; both tools run at the same time."""
    seconds, found = max(2, options.scan_s / 2), {"tsnap": {}, peer.tool: {}}
    for build in BUILDS:
        with Deep(options.build + "/tests/bench/" + build, 10, 20000) as deep:
            mine = peer._replace(argv=peer.argv + ["-p", deep.pid])
            with sampler(options, 20, deep.pid, "timestamp,tid,state,stack") as program, Offcputime(mine, options) as other:
                found[peer.tool][build] = shares(offcputime_stacks(other.text(seconds)))
                program.process.send_signal(2)
                program.process.wait(LIMIT_S)
                text = os.pread(program.file.fileno(), 1 << 26, 0).decode()
                found["tsnap"][build] = shares(tsnap_stacks(text, deep))
    return found


def peer_rows(options):
    """Rows of tsnap with stacks of all threads, and of offcputime."""
    peer, = (peer for peer in peers.TRACERS if peer.tool == "offcputime, libbpf")
    jobs = {"tsnap": "user and kernel stacks of all threads, 20 Hz", peer.tool: peers.job_words(peer)}
    starters = {"tsnap": lambda: Sampler(options, "-d", 100000, "-a", "-g", STACKS), peer.tool: lambda: peers.Tracer(peer, options)}
    ratios, sizes = {tool: [] for tool in jobs}, {tool: [] for tool in jobs}
    try:
        before = operation_ns(options, "pipe_same", options.run_ms)
        for turn in range(options.rounds):
            for tool, start in starters.items():
                say("stacks: round %d of %d, %s" % (turn + 1, options.rounds, tool))
                with start() as program:
                    during = operation_ns(options, "pipe_same", options.run_ms)
                    sizes[tool].append(program.memory()[1] / 1e6)
                after = operation_ns(options, "pipe_same", options.run_ms)
                ratios[tool].append(during / ((before + after) / 2))
                before = after
        found = found_shares(options, peer)
    except peers.NotHere as why:
        return [Row("", peer.tool, None, "", remark="not here: %s" % why)]
    rows = []
    for tool, job in jobs.items():
        rows.append(peers.row_of(OPERATIONS["pipe_same"], tool, "ratio", ratios[tool], job))
        for build, words in BUILDS.items():
            for name, value in zip(("reach the thread's start", "have every call", "have a frame without a name"), found[tool][build]):
                rows.append(Row("stacks that %s, built %s" % (name, words), tool, value, "%"))
        rows.append(peers.row_of("resident", tool, "MB", sizes[tool], job))
    return rows
