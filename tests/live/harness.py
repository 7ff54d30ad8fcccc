"""Starts workloads and tsnap, waits with deadlines, reads tsnap's output, and ends every process that it started."""
import calendar
import csv
import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import types
import urllib.parse

import truth

SLOW = float(os.environ.get("TSNAP_TEST_SLOW", "1"))  # factor of every time limit, for software emulation
UNREADY = 77

START_S = 30 * SLOW  # from tsnap's start to its first scan
STOP_S = 20 * SLOW
WORKLOAD_S = 20 * SLOW
SCANS_MORE = 4  # allowed excess of scans over the rate: the time between two is half a period to one and a half
OF_PATHS = "path"  # prefix of columns that need --critical-path


class Failure(Exception):
    """Failure of a test; the text says what was seen and what was expected."""


class Skip(Exception):
    """Raised by a test that can't run here; the text says why."""


def check(condition, why, *values):
    if not condition:
        raise Failure(why % values if values else why)


def unmount(folder):
    """Unmounts a folder, whose files a program that is ending may still have open."""
    deadline = time.monotonic() + 5 * SLOW
    while subprocess.run(["umount", folder], stderr=subprocess.DEVNULL, check=False).returncode and time.monotonic() < deadline:
        time.sleep(0.1)
    if os.path.ismount(folder):
        subprocess.run(["umount", "-l", folder], check=True)


def wait_until(ready, limit_s, what):
    """Polls until ready() returns a true value, and returns that."""
    deadline = time.monotonic() + limit_s
    while True:
        value = ready()
        if value:
            return value
        check(time.monotonic() < deadline, "%s: not within %g s", what, limit_s)
        time.sleep(0.02)


def let_pass(seconds):
    """Sleeps for a time that is itself part of the test: how long something lasts, or that nothing happens. For all else use wait_until."""
    time.sleep(seconds)


def settle(ready, limit_s=START_S):
    """Waits for a condition that later checks test anyway, with better messages: True once it is met, False at the limit."""
    try:
        return bool(wait_until(ready, limit_s, "what follows"))
    except Failure:
        return False


def timestamp_s(text):
    """Seconds since 1970 of a row's timestamp."""
    whole, fraction = text.rstrip("Z").split(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float("0." + fraction)


def values_of(line):
    """The key=value words of a workload's line, decoded; bytes that are not UTF-8 become surrogates."""
    pairs = (word.split("=", 1) for word in line.split() if "=" in word)
    return {key: urllib.parse.unquote(value, errors="surrogateescape") for key, value in pairs}


class Process:
    """A child whose standard output and error go to files, so that it never blocks on us."""
    INPUT_S = 0.25 * SLOW  # from closing its input, which ends some processes, to SIGTERM

    def __init__(self, argv, **popen):
        self.argv = argv
        self.files = [tempfile.TemporaryFile(), tempfile.TemporaryFile()]
        popen.setdefault("stdout", self.files[0])
        popen.setdefault("stderr", self.files[1])
        popen.setdefault("stdin", subprocess.PIPE)
        self.process = subprocess.Popen(argv, start_new_session=True, **popen)
        self.pid = self.process.pid

    def _read(self, which):
        size = os.fstat(self.files[which].fileno()).st_size
        return os.pread(self.files[which].fileno(), size, 0)

    @property
    def out(self):
        return self._read(0)

    @property
    def err(self):
        return self._read(1).decode(errors="backslashreplace").strip()

    @property
    def code(self):
        return self.process.poll()

    def say(self, text):
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def wait(self, limit_s, what="its end"):
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise Failure("%s: no end within %g s (%s)" % (" ".join(self.argv), limit_s, what))

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        """Kills the process at once: a busy workload reads its input only when its work is done."""
        self.process.kill()
        self.process.wait(STOP_S)

    def end(self):
        """Ends the process whatever it does; a workload ends when its input is closed."""
        try:
            if self.process.stdin:
                self.process.stdin.close()
        except OSError:
            pass
        # unshare(1) passes no signal on, but with --kill-child its child is killed when it ends
        numbers = (signal.SIGKILL,) if "--kill-child" in self.argv else (None, signal.SIGTERM, signal.SIGKILL)
        for number in numbers:
            try:
                if number:
                    self.process.send_signal(number)
                self.process.wait(STOP_S if number else self.INPUT_S if self.process.stdin else 0)
                break
            except subprocess.TimeoutExpired:
                pass
        for file in self.files:
            file.close()


class Workload(Process):
    """A workload that holds its state. The values of its ready line are its items: w["tid"]."""
    INPUT_S = STOP_S

    def __init__(self, path, name, options, **popen):
        super().__init__([path, name] + ["%s=%s" % pair for pair in options.items()], **popen)
        self.name = options.get("call", name)
        self.ready = {}

    def lines(self, word):
        return [line for line in self.out.decode(errors="surrogateescape").split("\n")[:-1]
                if line.split(" ", 1)[0] == word]

    def wait_ready(self):
        wait_until(lambda: self.lines("ready") or self.code is not None, WORKLOAD_S + 60, self.name + " ready")
        if self.code == UNREADY:
            raise Skip((self.lines("unready") or ["unready"])[0][len("unready "):])
        check(self.lines("ready"), "workload %s failed: %s", self.name, self.err)
        self.ready = values_of(self.lines("ready")[-1])
        return self

    def wait_done(self, count=1, limit_s=WORKLOAD_S + 60):
        """Waits for the count-th `done` line; gives its values."""
        wait_until(lambda: len(self.lines("done")) >= count, limit_s, self.name + " done")
        return values_of(self.lines("done")[count - 1])

    def finish(self):
        """Ends the workload by closing its input; gives the values of its last `done` line."""
        self.process.stdin.close()
        self.wait(WORKLOAD_S, self.name)
        return values_of(self.lines("done")[-1])

    def __getitem__(self, key):
        return self.ready[key]

    def __contains__(self, key):
        return key in self.ready

    def number(self, key):
        return int(self.ready[key])

    @property
    def tid(self):
        return self.number("tid")

    @property
    def tgid(self):
        return self.number("pid")


def unescape(text):
    """The bytes of a text in tsnap's printable form, where a backslash is doubled and a byte is \\xNN."""
    raw = text.encode()
    return re.sub(rb"\\(\\|x[0-9a-f]{2})",
                  lambda m: b"\\" if m.group(1) == b"\\" else bytes([int(m.group(1)[1:], 16)]), raw)


def number(row, column):
    """The number in a row's column, decimal or 0x...; None: absent."""
    return int(row[column], 0) if row[column] != "" else None


def scans_of(rows):
    """[(timestamp, rows)] of all scans, in the order of time."""
    scans = {}
    for row in rows:
        scans.setdefault(row["timestamp"], []).append(row)
    return sorted(scans.items())


def table_below(text, words):
    """Lines of the table below the sentence of a report that begins with these words."""
    found = re.search("^" + re.escape(words) + r".*?\n(SECONDS .*?)\n\n", text, re.M | re.S)
    check(found, "no table below '%s': %s", words, text)
    return found.group(1).splitlines()


def rows_of(rows, tid):
    return [row for row in rows if row["tid"] == str(tid)]


def children_of(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def name_of(pid):
    try:
        with open("/proc/%d/comm" % pid, encoding="utf-8", errors="replace") as file:
            return file.read().rstrip("\n")
    except OSError:
        return ""


def singular(what):
    """What was missed, as tsnap has it for a count of 1: "late scan", "process skipped"."""
    return re.sub(r"^([^:,(]*?)((?<=ss)es|(?<!s)s)(?=[ :,(]|$)", r"\1", what)


class Tsnap(Process):
    """A run of tsnap."""

    def __init__(self, argv, **popen):
        super().__init__(argv, **popen)
        self.parsed, self.parsed_bytes, self.names = [], 0, None  # parsed rows of the CSV so far are kept, as waits read often

    @property
    def pid(self):
        """Pid of the process that works: a child of the one that was started (the keeper), which forks it after some milliseconds."""
        end = time.monotonic() + 2 * SLOW
        while self.code is None and time.monotonic() < end:
            try:
                with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid), encoding="ascii") as file:
                    children = file.read().split()
            except OSError:
                break
            if children:
                return int(children[0])
            time.sleep(0.01)
        return self.process.pid

    @pid.setter
    def pid(self, _):
        pass

    def spawners(self, of=None):
        """Pids of the process that starts parsers, a child of the process that works, and of its standby, a child of the first (of: of
        the process `of`)."""
        found = [pid for pid in children_of(of or self.pid) if name_of(pid) == "tsnap-spawner"]
        return found + [below for pid in found for below in self.spawners(pid)]

    def parsers(self, spawners=None):
        """Pids of parsers, children of these spawners; none if no stacks are requested."""
        return [pid for spawner in spawners or self.spawners() for pid in children_of(spawner) if name_of(pid) != "tsnap-spawner"]

    def rows(self, all_of_it=False):
        """Rows of the CSV so far, as dicts. An incomplete row at the end counts only with all_of_it."""
        file = self.files[0].fileno()
        raw = os.pread(file, os.fstat(file).st_size - self.parsed_bytes, self.parsed_bytes)
        if not all_of_it:
            raw = raw[:raw.rfind(b"\n") + 1]
            if raw.count(b'"') % 2:
                return list(self.parsed)  # the last line break is part of a name
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            raise Failure("the CSV is not UTF-8: %s" % error)
        for line in csv.reader(io.StringIO(text, newline=""), strict=True):
            self.names = self.names or line
            check(len(line) == len(self.names), "a row of %d columns under a header line of %d: %r", len(line), len(self.names), line)
            if line is not self.names:
                self.parsed.append(dict(zip(self.names, line)))
        self.parsed_bytes += len(raw)
        return list(self.parsed)

    def scans(self):
        return scans_of(self.rows())

    def missed(self, words):
        """The sum of N of the lines "missed: N ..." with these words."""
        return sum(map(int, re.findall(r"missed: (\d+) [^\n]*(?:%s|%s)" % (re.escape(words), re.escape(singular(words))), self.err)))

    def wait_scans(self, count, test=lambda row: True):
        """Waits until `count` scans have rows that pass the test; gives all rows so far."""
        seen = [-1]

        def enough():
            if self.code is not None:
                raise Failure("tsnap ended (%d) early: %s" % (self.code, self.err))
            rows = self.rows()
            if len(rows) == seen[0]:
                return False
            seen[0] = len(rows)
            return len(scans_of(row for row in rows if test(row))) >= count and rows
        return wait_until(enough, START_S + count * SLOW, "%d scans" % count)

    def finish(self, code=0, limit_s=STOP_S):
        """Waits until tsnap has ended; gives all rows, to the last byte."""
        self.finish_plain(code, limit_s)
        return self.rows(all_of_it=True)

    def finish_plain(self, code=0, limit_s=START_S + STOP_S):
        """Waits until tsnap has ended, for a run that prints no CSV."""
        got = self.wait(limit_s)
        check(got == code, "exit code %d, not %d: %s", got, code, self.err)
        check("its sandbox refused" not in self.err, "the sandbox is in the way: %s", self.err)

    def wait_sleeps(self, count):
        """Waits for `count` more sleeps of the thread that sleeps before each scan, which begins after the start; for a run that shows no
        scans. No other thread beside the main one, which sleeps for much else, sleeps as often."""
        pid = self.pid

        def sleeps():
            tids = [int(tid) for tid in truth.read_dir("/proc/%d/task" % pid)]
            check(tids, "tsnap ended early: %s", self.err)
            return max([0] + [truth.Thread(tid).status_number("voluntary_ctxt_switches") or 0 for tid in tids if tid != pid])
        before = sleeps()
        wait_until(lambda: sleeps() >= before + count, START_S + count * SLOW, "%d scans" % count)

    def interrupt(self, number=signal.SIGINT):
        self.signal(number)
        return self.finish()


class Context:
    """Argument of each test; ends every process that was started through it."""

    def __init__(self, options):
        self.options = options
        self.started = []
        self.stack_programs = None  # directory of the programs of tests/stack; None: where they are built
        # the root of another system, whose PostgreSQL runs in place of this one's
        self.postgres_tree = os.environ.get("TSNAP_TEST_POSTGRES_TREE", "")
        self.descriptors = ()  # that everything which is started through the context inherits

    def given(self, name):
        """Values of the option of this name in --tsnap-args."""
        words = shlex.split(self.options.tsnap_args)
        return [value for word, value in zip(words, words[1:]) if word == name]

    def without(self, facts):
        """A --without argument for these kernel features and those that --tsnap-args takes away: of two --without only the last counts."""
        names = ",".join(self.given("--without") + [facts] * bool(facts))
        return ["--without", names] if names else []

    def but(self, **changes):
        """A context with other options; processes that are started through it end with this one."""
        other = Context(type(self.options)(**dict(vars(self.options), **changes)))
        other.started, other.descriptors = self.started, self.descriptors
        return other

    def reachable(self):
        """A copy of the context whose programs are open files, /proc/self/fd/N: also users who may not enter the clone's directories can run
        them, and programs in mount namespaces where something else is mounted over these."""
        found = {name: os.open(getattr(self.options, name), os.O_RDONLY) for name in ("tsnap", "workload")}
        for descriptor in found.values():
            self.at_end(lambda descriptor=descriptor: os.close(descriptor))
        other = self.but(**{name: "/proc/self/fd/%d" % descriptor for name, descriptor in found.items()})
        other.descriptors += tuple(found.values())
        return other

    def inherited(self, popen):
        """The arguments of a Popen, with the descriptors that its program inherits."""
        return dict(popen, pass_fds=(*popen.get("pass_fds", ()), *self.descriptors))

    def workload(self, name, **options):
        """Starts a workload; gives it when it has reached its state."""
        return self.workloads([(name, options)])[0]

    def workloads(self, wanted, popen=None):
        """Starts several workloads (name, options) side by side. A single one that can't run on this host skips the
        test; of several it is left out."""
        made, ready = [], []
        for name, options in wanted:
            made.append(Workload(self.options.workload, name, options, **self.inherited(popen or {})))
            self.started.append(made[-1])
        for workload in made:
            try:
                ready.append(workload.wait_ready())
            except Skip:
                if len(made) == 1:
                    raise
        return ready

    def plain(self, *args, **popen):
        """Starts tsnap with only these arguments."""
        popen.setdefault("stdin", subprocess.DEVNULL)
        tool = Tsnap([self.options.tsnap] + shlex.split(self.options.tsnap_args) + [str(arg) for arg in args],
                     **self.inherited(popen))
        self.started.append(tool)
        return tool

    def stream(self, *args, columns="", **popen):
        """Starts tsnap --csv with timestamp, weight_us, tid, pid and these columns; does not wait for it."""
        columns = ",".join(["timestamp", "weight_us", "tid", "pid"] + columns.replace(",", " ").split())
        return self.plain("--csv", "-g", columns, *args, **popen)

    def rows(self, *args, seconds=2, columns="", code=0):
        """All rows of a run of `seconds` seconds."""
        tool = self.stream("-d", seconds, *args, columns=columns)
        return tool.finish(code, START_S + seconds + STOP_S)

    def temporary(self, tree=""):
        """A directory that is removed at the end; tree: the root that it is below."""
        path = tempfile.mkdtemp(prefix="tsnap-test-", dir=tree + "/tmp" if tree else None)
        self.at_end(lambda: shutil.rmtree(path, ignore_errors=True))
        return path

    def at_end(self, function):
        """Registers a function that is called at the test's end, for things that were not started through the context."""
        self.started.append(types.SimpleNamespace(end=function))

    def end(self):
        """Ends all that was started, also what was started before something whose end fails."""
        try:
            while self.started:
                self.started.pop().end()
        finally:
            if self.started:
                self.end()


def through(ctx, *prefix, workload=True):
    """A copy of ctx that starts everything through a command; what it starts is ended with ctx."""
    directory, changed = ctx.temporary(), {}
    os.chmod(directory, 0o755)
    for name in ("tsnap", "workload") if workload else ("tsnap",):
        path = os.path.join(directory, name)
        with open(path, "w") as file:
            file.write("#!/bin/sh\nexec %s \"$@\"\n" % shlex.join([*prefix, getattr(ctx.options, name)]))
        os.chmod(path, 0o755)
        changed[name] = path
    return ctx.but(**changed)


TABLE = []


def preloading(ctx, name):
    """Environment of a program that is started with the library NAME of tests/live."""
    folder = os.path.join(os.path.dirname(ctx.options.workload), "..", "live")
    if not os.path.exists("%s/lib%s.so" % (folder, name)):
        raise Skip("tests/live/%s is not built" % name)
    # a blank ends a name in LD_PRELOAD, but not in LD_LIBRARY_PATH
    return dict(os.environ, LD_LIBRARY_PATH=os.path.abspath(folder), LD_PRELOAD="lib%s.so" % name)


def case(fn=None, **how):
    """Enters a test into the table: its name is the function's, its help the doc string. @case(alone=True, ...) says how it runs:

    alone: when no other does, as it depends on the number of threads on the host, on which processes have BPF programs loaded or exit, on
    a free CPU, on how long things take, or on how soon tsnap samples them.
    paired: without any others but one of these, as it sleeps nearly all the time.
    thorough: only with --all, or named, as it takes long and checks what others check, too, at more places, or compares tsnap's figures
    with another tool's.
    long: among the first, so that none of the longest is left at the end.
    refusal: also on a host on which tsnap refuses to run.
    """
    def enter(fn):
        fn.how = how
        TABLE.append(fn)
        return fn
    return enter(fn) if fn else enter


class Findings:
    """Collects failures of many checks, so that one run reports them all."""

    def __init__(self):
        self.wrong = []

    def expect(self, condition, why, *values):
        why = why % values if values else why
        if not condition and why not in self.wrong:
            self.wrong.append(why)

    def close(self):
        check(not self.wrong, "%s", "; ".join(self.wrong[:12]) +
              (" (and %d more)" % (len(self.wrong) - 12) if len(self.wrong) > 12 else ""))
