"""tsnap --top on this kernel: its screens are right, and a terminal that takes no output costs no scan."""
import fcntl
import os
import pty
import random
import re
import resource
import select
import shlex
import struct
import subprocess
import tempfile
import termios
import time

import truth
from case_trouble import as_nobody
from harness import SCANS_MORE, START_S, STOP_S, UNREADY, Failure, case, check, let_pass, settle

RATE_HZ = 20
STOPPED_S = 4


class Screen:
    """A tsnap --top on a terminal of its own."""

    def __init__(self, ctx, *args, columns=120, rows=30, stderr=subprocess.DEVNULL, **options):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.modes = termios.tcgetattr(self.slave)
        self.output = b""
        self.process = subprocess.Popen(
            [ctx.options.tsnap, "--top", *map(str, args), *shlex.split(ctx.options.tsnap_args)], stdin=self.slave,
            stdout=self.slave, stderr=stderr, start_new_session=True, **ctx.inherited(options),
            env=dict(os.environ, TERM="xterm-256color", LC_ALL="C.UTF-8", HOME="/nonexistent"))
        ctx.at_end(self.end)

    err = ""  # what a Tsnap has there

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def read(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self.master], [], [], 0.05)[0]:
                self.output += os.read(self.master, 65536)

    def wait(self, pattern, seconds=START_S):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(0.1)
            found = re.search(pattern, self.words())
            if found:
                return found
        raise Failure("no %s on the screen: %s" % (pattern, self.words()[-2000:]))

    def words(self):
        return re.sub(rb"\x1b(\[[0-9;?]*[A-Za-z]|\(B)", b" ", self.output).decode("utf-8", "replace")

    def redrawn(self):
        """The words of the whole screen, drawn anew."""
        self.output = b""
        self.type("\x0c")
        self.wait("Enter keep")
        return self.words()

    def type(self, keys):
        os.write(self.master, keys.encode())


@case(paired=True)
def top_as_text(ctx):
    """One screen as text shows what a report would: a sleeper is asleep in an average scan."""
    workload = ctx.workload("sleep", call="nanosleep")
    tool = ctx.plain("--top", "--text", "-n", 1, "--ascii", "-a", "-t", workload.tid, "-g", "tid,state,syscall")
    tool.finish_plain(0, START_S + STOP_S)
    text = tool.out.decode("ascii")
    check(re.search(r"^ +1\.00 +\d+\.\d+ +100\.0%% #+ +%d +S +\w*nanosleep" % workload.tid, text, re.M), "%s", text)
    check(re.search(r"History: 00:00:0[45]", text), "%s", text)


@case
def top_of_the_busy(ctx):
    """Of 200 threads that are served 30 times a second a screen has some in each scan, which stand for all; one of threads has all."""
    workload, threads = ctx.workload("served", threads=200), 200
    shown = {}
    for columns in ("state", "tid"):
        tool = ctx.plain("--top", "--text", "-n", 1, "--ascii", "-p", workload.tgid, "-g", columns, env=dict(os.environ, LINES="300"))
        tool.finish_plain(0, START_S + 5 + STOP_S)
        shown[columns] = [float(row) for row in re.findall(r"^ +(\d+\.\d\d) +\S+ +[\d.]+%", tool.out.decode("ascii"), re.M)]
    check(0.85 * threads < sum(shown["state"]) < 1.05 * threads, "%s of %d threads", shown["state"], threads)
    check(len(shown["tid"]) >= threads and sorted(shown["tid"])[-threads] > 0.8, "%s", shown["tid"])


@case
def top_on_a_screen(ctx):
    """Keys have effects, a terminal that is stopped for seconds costs no scan, and its modes are restored at the end."""
    workload = ctx.workload("sleep", call="nanosleep")
    screen = Screen(ctx, "-a", "-t", workload.tid, "-g", "tid,state")
    screen.wait(r"\b%d\b" % workload.tid)
    screen.type("\r")
    screen.wait("tid=%d" % workload.tid, 10)
    screen.type("y")
    screen.wait(r"tsnap -d 5 -t %d -a -g \S+ --filter tid=%d" % (workload.tid, workload.tid), 10)
    first = int(re.search(r"(\d+) scans;", screen.redrawn()).group(1))
    began = time.monotonic()
    termios.tcflow(screen.slave, termios.TCOOFF)
    screen.type("\x0c" * 20)
    let_pass(STOPPED_S)
    termios.tcflow(screen.slave, termios.TCOON)
    screen.read(2.5)
    scans = int(re.search(r"(\d+) scans;", screen.redrawn()).group(1)) - first
    wanted = (time.monotonic() - began) * RATE_HZ
    check(0.8 * (wanted - 3 * RATE_HZ) < scans, "%d scans where about %d were due", scans, wanted)
    screen.type("q")
    screen.read(1)
    check(screen.process.wait(STOP_S) == 0, "exit code %s", screen.process.returncode)
    check(termios.tcgetattr(screen.slave) == screen.modes, "the terminal's modes stayed")


def processes_of(pid):
    """Ids of the process and of all that it has started."""
    yield pid
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/children" % (pid, task), encoding="ascii") as file:
            for child in file.read().split():
                yield from processes_of(int(child))


def seconds_and_scans(screen):
    """Time of day at which the window ends, how many scans were taken until then, and how many were reported as missed."""
    text = screen.redrawn()
    hours, minutes, seconds = re.search(r" to (\d+):(\d+):([\d.]+) \S+, ", text).groups()
    missed = re.findall(r"(\d+) (?:late scans?|scans? while probes were loaded)", text)
    taken = int(re.search(r"History: [\d:]+, (\d+) scans", text).group(1))
    return 3600 * int(hours) + 60 * int(minutes) + float(seconds), taken, sum(map(int, missed))


@case
def top_loads(ctx):
    """While more probes are loaded scans go on, those that are lost are reported, and the sandbox refuses nothing."""
    with tempfile.TemporaryFile() as said:
        screen = Screen(ctx, "-i", "0.5", columns=300, stderr=said)
        screen.wait(r"LIVE")
        screen.read(2)
        begin_s, begin_taken, begin_missed = seconds_and_scans(screen)
        screen.type("gsyscall_us")
        screen.wait("not sampled yet: Enter loads it", 10)
        screen.type("\r")
        screen.read(4)
        screen.type("\x1b")
        screen.read(1)
        check("SYSCALL_US" in screen.redrawn(), "the column is not shown: %s", screen.words())
        end_s, taken, missed = seconds_and_scans(screen)
        wanted = (end_s - begin_s) % 86400 * RATE_HZ
        taken, missed = taken - begin_taken, missed - begin_missed
        check(abs(taken + missed - wanted) <= 3 + SCANS_MORE, "%d scans and %d missed ones where %.1f were due", taken, missed, wanted)
        check(taken > wanted / 2, "%d scans where %.1f were due", taken, wanted)
        screen.type("q")
        screen.read(1)
        check(screen.process.wait(STOP_S) == 0, "exit code %s", screen.process.returncode)
        said.seek(0)
        words = said.read().decode()
        check(not words, "it wrote over its screen: %s", words)


@case(thorough=True)
def top_load_fails(ctx):
    """If probes can't be loaded the screen goes on and shows the whole reason, also where it is narrow."""
    screen = Screen(ctx, "-i", "0.5", columns=80)
    screen.wait(r"LIVE")
    for pid in processes_of(screen.process.pid):
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (8, 8))
    screen.type("gsyscall_us\r")
    screen.read(4)
    words = "".join(screen.words().split())
    check(re.search(r"Notloaded:BPF.*Toomanyopenfiles\)", words), "not the whole reason: %s", screen.words())
    screen.type("\x1b")
    screen.read(1)
    fcntl.ioctl(screen.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 400, 0, 0))
    screen.read(1)
    first = seconds_and_scans(screen)[1]
    screen.read(2)
    check(seconds_and_scans(screen)[1] > first, "no scan came")
    screen.type("q")
    screen.read(1)
    check(screen.process.wait(STOP_S) == 0, "exit code %s", screen.process.returncode)


@case
def top_host_cannot(ctx):
    """Where BPF is insisted on, and the host or the user can't have it, there are exit code 77, the whole reason of --check, and no
    screen."""
    nobody = ctx.reachable()
    for tool, options, ready in ((ctx, ["--without", "raw_tracepoint,tracepoint,kprobe"], {}),
                                 (nobody, [], {"preexec_fn": as_nobody, "cwd": "/"})):
        checked = tool.plain("--check", *options, **ready)
        checked.finish_plain(UNREADY)
        with tempfile.TemporaryFile() as said:
            screen = Screen(tool, "--source", "bpf", *options, stderr=said, **ready)
            check(screen.process.wait(START_S) == UNREADY, "exit code %s", screen.process.returncode)
            screen.read(0.5)
            said.seek(0)
            reason = said.read().decode().strip()
        check(reason and reason == checked.err.strip(), "%s, but --check says %s", reason, checked.err)
        check(not screen.output, "a screen was begun: %s", screen.output)
        check(termios.tcgetattr(screen.slave) == screen.modes, "the terminal's modes are others")


def sleeps_of(tid):
    return truth.Thread(tid).status_number("voluntary_ctxt_switches")


@case(thorough=True, long=True)
def top_durations(ctx):
    """The peek at a thread has the distribution of its waits, with --trace or once a key requests the trace. A line of it can be kept, and
    y names the trace."""
    for options, keys in (["--trace", "offcpu,runq"], ""), ([], "pdurations\r"):
        workload = ctx.workload("burst", cpu_ms=1, naps=3000, nap_ms=10)
        tid = workload.tid
        workload.say("go")
        screen = Screen(ctx, "-i", "0.5", "-a", "-t", tid, "-g", "tid", *options)
        screen.wait(r"\b%d\b" % tid)
        screen.type(keys)
        naps, slept = 300, sleeps_of(tid)
        settle(lambda slept=slept, screen=screen, tid=tid, naps=naps: screen.read(0.1) or sleeps_of(tid) > slept + naps, 20)
        screen.type("poffcpu")
        found = screen.wait(r"offcpu +(\d+), p50 +([\d.]+ ..), p90 ", 10)
        check(int(found.group(1)) > 50, "a few sleeps of %d: %s", naps, found.group(0))
        screen.wait(r"8\.39 ms \.\. +16\.8 ms +\d+ +#{20,}", 10)
        screen.type("\x1bOB\r")
        screen.wait(r"state!=RQ && state_us>=\d+ && state_us<\d+", 10)
        screen.read(1)
        screen.type("y")
        screen.wait(r"tsnap -d 5 -t %d --trace (offcpu,runq|runq,offcpu) -a -g tid --filter '.*state_us" % tid, 10)
        screen.type("q")
        screen.read(1)
        check(screen.process.wait(STOP_S) == 0, "exit code %s", screen.process.returncode)
        workload.kill()


def rows_of(text, tids):
    """{tid: (average threads, share, state)} of these threads in a table of avg_thr, seconds, share, tid, state."""
    rows = re.findall(r"^ *([\d.]+) +[\d.]+ +([\d.]+)%[ #]+ (\d+) +([A-Z]+)\b", text, re.M)
    return {int(tid): (average, share, state) for average, share, tid, state in rows if int(tid) in tids}


@case(thorough=True)
def top_same_numbers(ctx):
    """A live view, the same view of a recording, and the report that y names show the same numbers."""
    tids = [ctx.workload("sleep", call="nanosleep").tid, ctx.workload("stopped").tid]
    choice = ["-a", "-t", ",".join(map(str, tids)), "-g", "tid,state"]
    shown = []
    screen = Screen(ctx, *choice)
    screen.wait(r"LIVE")
    time.sleep(5)
    screen.type("y")
    command = screen.wait(r"tsnap (-d 5 -t [\d,]+ -a -g tid,state)\b", 10).group(1)
    screen.type("q")
    check(screen.process.wait(STOP_S) == 0, "exit code %s", screen.process.returncode)
    recorded = ctx.plain("--csv", "-d", 2, "-a", "-t", ",".join(map(str, tids)))
    recorded.finish_plain(0, START_S + STOP_S)
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        file.write(recorded.out)
        file.flush()
        for args in (["--top", "--text", "-n", 1, "--ascii", *choice], shlex.split(command),
                     ["--top", "--text", "--ascii", "-a", "-g", "tid,state", "--replay", file.name]):
            tool = ctx.plain(*args)
            tool.finish_plain(0, START_S + STOP_S + 5)
            shown.append(rows_of(tool.out.decode(), tids))
    # exact times begin with tsnap: the first scan stands for some time before them
    averages = [float(row[0]) for rows in shown for row in rows.values()]
    rest = [{tid: row[1:] for tid, row in rows.items()} for rows in shown]
    check(rest == [{tids[0]: ("50.0", "S"), tids[1]: ("50.0", "T")}] * 3 and all(0.95 <= number <= 1 for number in averages),
          "one S and one T, each of them always: %s", shown)


@case(thorough=True, long=True)
def top_monkey(ctx):
    """--top survives 2000 random keys and resizes while it samples, and restores the terminal's modes."""
    ctx.workload("sleep", call="nanosleep")
    screen = Screen(ctx, "-a", "-i", 1)
    screen.wait("LIVE")
    dice = random.Random(18)
    # all keys but those that end or stop tsnap, or lead to a file (w, and : with words)
    keys = [chr(i) for i in range(32, 127) if chr(i) not in "qw:/"]
    keys += ["\r", "\x7f", "\t", "\x1bOA", "\x1bOB", "\x1bOC", "\x1bOD", "\x1b[5~", "\x1b[6~", "\x1b[3~", "\x0c", "\x1b"] * 6
    for i in range(2000):
        if dice.random() < 0.05:
            fcntl.ioctl(screen.slave, termios.TIOCSWINSZ,
                        struct.pack("HHHH", dice.randrange(1, 80), dice.randrange(1, 220), 0, 0))
        screen.type(dice.choice(keys))
        screen.read(0.002)
        screen.output = screen.output[-100000:]
        check(screen.process.poll() is None, "ended with %s after key %d", screen.process.returncode, i)
    # a screen so wide that the text of what was missed leaves room for the rest of its line
    fcntl.ioctl(screen.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 900, 0, 0))
    for _ in range(3):
        screen.type("\x1b")
        screen.read(0.3)
    scans = []
    for _ in range(2):
        screen.redrawn()
        scans.append(int(re.search(r"History: [\d:]+, (\d+) scans", screen.redrawn()).group(1)))
        screen.read(2)
    check(scans[1] > scans[0], "no scan came: %s", scans)
    screen.type("q")
    screen.read(1)
    check(screen.process.wait(STOP_S) == 0, "exit code %s", screen.process.returncode)
    check(termios.tcgetattr(screen.slave) == screen.modes, "the terminal's modes stayed")
