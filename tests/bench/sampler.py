"""The bench's tools for measuring: programs that run during an operation, tsnap as one of them, operations, a crowd of threads."""
import ctypes
import glob
import os
import re
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time

OPERATIONS = {
    "syscall": "one trivial system call",
    "pipe_same": "pipe round trip on one core (2 switches, 2 wake-ups)",
    "pipe_cross": "pipe round trip on two cores",
    "fork": "fork, exit, wait",
}
ACTIVE_PAIRS = 25  # 50 threads that wake each other 200 times a second
LIMIT_S = 120
HOST_CANNOT = 77  # exit status of tsnap, of the bench's own programs and of the bench


LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1  # linux/prctl.h


class NotHere(Exception):
    """A program that can't run on this host, and why."""


def say(words):
    print(words, file=sys.stderr, flush=True)


def read(path):
    with open(path, errors="replace") as file:
        return file.read()


def read_or(path):
    """The text of a file; None if there is no such file, or no more."""
    try:
        return read(path)
    except OSError:
        return None


def end_with_us():
    """Called in the child: has it killed when the bench ends, so that nothing stays attached."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def scratch():
    """A file in memory."""
    return tempfile.TemporaryFile(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)


def memory_touch(size):
    """Touches so many bytes of memory. A virtual machine gets a page from its host when it first touches it, which takes ten times as long
    as writing to it: that is no cost of the program that happens to write there. The kernel reuses pages that were freed just now first."""
    with scratch() as file:
        for _ in range(size >> 20):
            file.write(bytes(1 << 20))


class Processes:
    """The processes of self.process and its descendants."""

    def pids(self):
        """Pids of the process and of all that it has started: tsnap's keeper has a worker."""
        found = []
        fresh = [str(self.process.pid)]
        while fresh:
            found += fresh
            fresh = [child for pid in fresh for child in (read_or("/proc/%s/task/%s/children" % (pid, pid)) or "").split()]
        return found

    def threads(self):
        """[(process, thread)] of all these processes."""
        return [(pid, tid) for pid in self.pids() for tid in os.listdir("/proc/%s/task" % pid)]

    def cpu_s(self):
        """CPU time of all live threads so far; from schedstat in ns, else in ticks of 10 ms."""
        total = 0
        for thread in self.threads():
            counted = read_or("/proc/%s/task/%s/schedstat" % thread)
            if counted:
                total += int(counted.split()[0]) / 1e9
            else:
                words = read("/proc/%s/task/%s/stat" % thread).rpartition(")")[2].split()
                total += (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
        return total

    def memory(self):
        """(resident bytes now, at most); pages that two of the processes share are counted once."""
        now = most = 0
        for pid in self.pids():
            sizes = {key: 1024 * int(size) for key, size in re.findall(
                r"^(VmRSS|VmHWM|Pss):\s*(\d+) kB", read("/proc/%s/status" % pid) + (read_or("/proc/%s/smaps_rollup" % pid) or ""), re.M)}
            own = sizes.get("Pss", sizes["VmRSS"])
            now += own
            most += own + sizes["VmHWM"] - sizes["VmRSS"]
        return now, most


class Program(Processes):
    """A child process with its output in files; the end of the context always ends it."""

    def __init__(self, argv, stdin=subprocess.DEVNULL, stdout=None, env=None):
        self.file = stdout or scratch()
        self.errors = tempfile.TemporaryFile()
        self.started = time.monotonic()
        self.process = subprocess.Popen(argv, stdin=stdin, stdout=self.file, stderr=self.errors, env=env,
                                        preexec_fn=end_with_us)

    def __enter__(self):
        try:
            self.await_up()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_what):
        self.stop()

    def await_up(self):
        """Returns when the program does its work; sets up_s."""
        raise NotImplementedError

    def last_words(self):
        """The last line of its errors, else of its output, made short and printable."""
        for file in (self.errors, self.file):
            lines = os.pread(file.fileno(), 65536, max(0, os.fstat(file.fileno()).st_size - 65536)).split(b"\n")
            lines = [line.strip() for line in lines if line.strip()]
            if lines:
                return re.sub(r"[^ -~]", "?", lines[-1].decode(errors="replace"))[:160]
        return "it said nothing"

    def stop(self):
        """Ends the program with SIGINT, on which all these programs end in good order."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(LIMIT_S / 4)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.file.close()
        self.errors.close()


class Sampler(Program):
    """A tsnap that prints CSV; up from its first row on."""

    def __init__(self, options, *args, stdout=None, prefix=()):
        super().__init__([*prefix, options.tsnap, "--csv"] + options.args.split() + [str(arg) for arg in args], stdout=stdout)

    def await_up(self):
        deadline = time.monotonic() + LIMIT_S
        header_line = None
        while self.lines() < 2:
            if self.lines() and header_line is None:
                header_line = time.monotonic()
            if header_line and time.monotonic() - header_line > 2:
                break  # on a host where nothing is active there is no row to wait for
            if self.process.poll() is not None or time.monotonic() > deadline:
                say("tsnap gave no sample: " + self.last_words())
                sys.exit(HOST_CANNOT if self.process.poll() == HOST_CANNOT else 1)
            time.sleep(0.02)
        self.up_s = time.monotonic() - self.started

    def lines(self):
        """Number of lines in the first 64 KB of its output: enough to see that it has begun."""
        return os.pread(self.file.fileno(), 65536, 0).count(b"\n")

    def bytes(self):
        return os.fstat(self.file.fileno()).st_size

    def timestamps(self, start, end):
        """Number of scans that have rows in this part of the output."""
        found, at, rest = set(), start, b""
        while at < end:
            block = os.pread(self.file.fileno(), min(1 << 20, end - at), at)
            at += len(block)
            lines = (rest + block).split(b"\n")
            rest = lines.pop()
            found.update(line.split(b",", 1)[0] for line in lines)
        return len(found)

    def scan_cost(self, seconds, rate, everything):
        """(CPU seconds per scan, scans a second) over so much time. A scan without active threads has no rows, so scans are
        counted by their rows only where every thread is shown; elsewhere the rate that tsnap keeps to is used."""
        time.sleep(min(2, seconds))  # work that is done only once is over then
        size, cpu, start = self.bytes(), self.cpu_s(), time.monotonic()
        time.sleep(seconds)
        cpu, passed, end = self.cpu_s() - cpu, time.monotonic() - start, self.bytes()
        scans = max(1, self.timestamps(size, end)) if everything else rate * passed
        return cpu / scans, scans / passed

    def kernel_memory(self):
        """(bytes of its BPF maps, bytes of its BPF programs), from fdinfo."""
        found = {}
        for path in [path for pid in self.pids() for path in glob.glob("/proc/%s/fdinfo/*" % pid)]:
            text = read_or(path) or ""  # "": the descriptor was closed after it was listed
            identity = re.search(r"^(map|prog)_id:\s*(\d+)", text, re.M)
            size = re.search(r"^memlock:\s*(\d+)", text, re.M)
            if identity and size:
                found[identity.groups()] = int(size.group(1))
        return tuple(sum(size for (kind, _), size in found.items() if kind == wanted) for wanted in ("map", "prog"))


class Report(Program):
    """A tsnap that prints a report every second; up from its first one on."""

    def __init__(self, options, *args):
        super().__init__([options.tsnap, "-i", "1"] + options.args.split() + [str(arg) for arg in args])

    def await_up(self):
        deadline = time.monotonic() + LIMIT_S
        while not re.search(rb"\ntsnap (itself|used)", os.pread(self.file.fileno(), 65536, 0)):
            if self.process.poll() is not None or time.monotonic() > deadline:
                say("tsnap gave no report: " + self.last_words())
                sys.exit(HOST_CANNOT if self.process.poll() == HOST_CANNOT else 1)
            time.sleep(0.02)
        self.up_s = time.monotonic() - self.started


class Held:
    """A workload's process, which is ready when the context begins, and ends with it."""

    def __init__(self, options, *words):
        self.process = subprocess.Popen([options.workload, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        ready, _, _ = select.select([self.process.stdout], [], [], LIMIT_S)
        self.ready = self.process.stdout.readline().decode() if ready else ""
        if not self.ready.startswith("ready"):
            self.process.kill()  # its processes end with it
            self.__exit__()
            sys.exit("the workload %s can't be made" % " ".join(words))

    def __enter__(self):
        return self

    def __exit__(self, *_what):
        self.process.stdin.close()
        self.process.wait(LIMIT_S)
        self.process.stdout.close()


class Crowd(Held):
    """Many sleeping threads, and a few that wake each other."""

    def __init__(self, options, threads):
        super().__init__(options, "many", "threads=%d" % threads, "pairs=%d" % ACTIVE_PAIRS)

    def child(self):
        """Pid of one of the crowd's processes."""
        return read("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)).split()[0]


def operation_ns(options, name, run_ms, *clock):
    """Time of one operation in ns, by the clock given; None where it can't run here."""
    run = subprocess.run([options.operations, name, str(run_ms), *clock], stdout=subprocess.PIPE)
    if run.returncode == HOST_CANNOT:
        return None
    run.check_returncode()
    return float(run.stdout)


def quartiles(values):
    """(lower, median, upper), by linear interpolation."""
    ordered = sorted(values)

    def at(part):
        place = part * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
    return at(0.25), at(0.5), at(0.75)


class Interleaved:
    """Measures operations {name: words} without any tool, with the first, without, with the second, ..., for options.rounds rounds.

    starters: {tool: function that returns a Program}; the function may raise NotHere, and so may the program's start.
    ratios: {tool: {operation: [ratio to the mean of the runs right before and after]}}; without: {operation: [ns]}, None
    for an operation that can't run here; up_s, memory: {tool: [...]}; gone: {tool: why it is not here}
    """

    def __init__(self, options, starters, run_ms, operations=OPERATIONS):
        self.operations = operations
        self.ratios = {tool: {name: [] for name in operations} for tool in starters}
        self.without = {name: [] for name in operations}
        self.up_s = {tool: [] for tool in starters}
        self.memory = {tool: [] for tool in starters}
        self.gone = {}
        before = self.measure(options, run_ms)
        for turn in range(options.rounds):
            for tool, start in starters.items():
                if tool in self.gone:
                    continue
                say("operations: round %d of %d, %s" % (turn + 1, options.rounds, tool))
                try:
                    with start() as program:
                        during = self.measure(options, run_ms)
                        self.up_s[tool].append(program.up_s)
                        self.memory[tool].append(program.memory()[0])
                except NotHere as why:
                    self.gone[tool] = str(why)
                    continue
                after = self.measure(options, run_ms)
                for name, ns in during.items():
                    self.without[name].append(before[name])
                    if ns is not None:
                        self.ratios[tool][name].append(ns / ((before[name] + after[name]) / 2))
                before = after

    def measure(self, options, run_ms):
        return {name: operation_ns(options, name, run_ms) for name in self.operations}

    def without_ns(self, name):
        return None if None in self.without[name] else statistics.median(self.without[name])
