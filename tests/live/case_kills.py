"""kill -9 of each of tsnap's processes in each form of output, and job control: each loss is reported, and the terminal is as before."""
import fcntl
import os
import pty
import random
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

import truth
from case_faults import left_over
from case_stuck import Standing, without_requests
from harness import SLOW, START_S, STOP_S, Failure, Findings, case, check, children_of, let_pass, name_of, settle, wait_until

# A shell with job control: runs a command in the foreground of its terminal, says when it stops or ends, and obeys "fg", "bg" and "wait".
# It opens the terminal for itself: tsnap, which gives a full terminal back without blocking, must not cut its lines in two.
SHELL = """
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
said = open(os.ttyname(0), "w")
job = os.fork()
if not job:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
while True:
    _, status = os.waitpid(job, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpgrp())
    if not os.WIFSTOPPED(status):
        break
    print("Stopped", os.WSTOPSIG(status), file=said, flush=True)
    for line in sys.stdin:
        if line == "fg\\n":
            os.tcsetpgrp(0, job)
        if line != "wait\\n":
            os.killpg(job, signal.SIGCONT)
        if line != "bg\\n":
            break
print("Ended", -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status), file=said, flush=True)
sys.stdin.readline()
"""
# What a screen switches on and off: the alternate screen, reports of the mouse, and the cursor, which it switches off
SWITCHES = ((rb"\x1b\[\?1049h", rb"\x1b\[\?1049l"), (rb"\x1b\[\?1006;1000h", rb"\x1b\[\?1006;1000l"),
            (rb"\x1b\[\?25l", rb"\x1b\[\?(?:12l\x1b\[\?)?25h"))


class Job:
    """A tsnap --top in a shell with job control, on a terminal of its own."""

    def __init__(self, ctx, *args):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 2000, 0, 0))  # the footer of a busy host is long
        self.modes = termios.tcgetattr(self.slave)
        self.kept, self.output, self.said = b"", b"", tempfile.TemporaryFile()  # output: what came since the last wait()
        self.shell = subprocess.Popen(
            [sys.executable, "-c", SHELL, ctx.options.tsnap, "--top", *map(str, args), *shlex.split(ctx.options.tsnap_args)],
            stdin=self.slave, stdout=self.slave, stderr=self.said, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0), **ctx.inherited({}),
            env=dict(os.environ, TERM="xterm-256color", LC_ALL="C.UTF-8", HOME="/nonexistent"))
        ctx.at_end(self.end)
        self.keeper = wait_until(lambda: children_of(self.shell.pid), START_S, "tsnap")[0]

    def end(self):
        if self.shell.poll() is None:
            for pid in (self.keeper, self.shell.pid):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.shell.wait()
        if self.master >= 0:
            os.close(self.master)
            os.close(self.slave)
            self.said.close()
        self.master = -1

    @property
    def pid(self):
        """The process that samples."""
        return wait_until(lambda: children_of(self.keeper), START_S, "the process that samples")[0]

    @property
    def err(self):
        return os.pread(self.said.fileno(), 65536, 0).decode(errors="replace")

    def type(self, keys):
        os.write(self.master, keys.encode())

    def read(self):
        while select.select([self.master], [], [], 0.05)[0]:
            self.output += os.read(self.master, 65536)
        return self.output

    def wait(self, words, seconds=START_S):
        """Waits until the words have come since the last call."""
        wait_until(lambda: re.search(words, self.read()), seconds, "%r on the terminal (%r)" % (words, self.output[-300:]))
        found = re.search(words, self.output)
        self.kept += self.output[:found.end()]
        self.output = self.output[found.end():]
        return found

    def ended(self, seconds=STOP_S):
        """Waits until the shell has seen it end; its exit code, or -signal."""
        return int(self.wait(rb"Ended (-?\d+)", seconds).group(1))

    def left_on(self):
        """What of the screen is still on: modes, or the bytes that switched it on."""
        self.read()
        everything, left = self.kept + self.output, []
        for on, off in SWITCHES:
            found = [[match.start() for match in re.finditer(what, everything)] for what in (on, off)]
            if found[0] and found[0][-1] > (found[1] or [-1])[-1]:
                left.append(on.decode())
        return left + ["modes"] * (termios.tcgetattr(self.slave) != self.modes)

    def check_as_before(self, when):
        settle(lambda: not self.left_on(), STOP_S)
        check(not self.left_on(), "%s: the terminal still has %s", when, self.left_on())


def letters(*pids):
    return "".join(truth.Thread(pid).letter or "-" for pid in pids)


@case
def top_stops_as_a_job(ctx):
    """Ctrl-Z in --top stops all of tsnap, and the shell has its terminal; fg draws the screen again; in the background it leaves the terminal
    alone; SIGTERM ends it also while it is stopped."""
    job = Job(ctx)
    job.wait(rb"LIVE")
    job.type("\x1a")
    job.wait(b"Stopped %d" % signal.SIGTSTP)
    # D: in a call that does not end, as for a process of another test; it stops as it ends
    settle(lambda: letters(job.keeper, job.pid) in ("TT", "TD"), STOP_S)
    check(letters(job.keeper, job.pid) in ("TT", "TD"), "after Ctrl-Z: %s", letters(job.keeper, job.pid))
    job.check_as_before("stopped")
    job.type("bg\n")
    wait_until(lambda: "T" not in letters(job.keeper, job.pid), STOP_S, "bg")
    let_pass(1)
    check(not job.left_on() and b"LIVE" not in job.output, "it draws in the background: %s", job.left_on())
    job.type("fg\n")
    job.wait(rb"LIVE")
    check(len(job.left_on()) == 4, "fg: the screen does not have the terminal: %s", job.left_on())
    os.kill(job.keeper, signal.SIGTSTP)  # to this process alone
    job.wait(b"Stopped %d" % signal.SIGTSTP)
    job.check_as_before("stopped alone")
    job.type("fg\n")
    job.wait(rb"LIVE")
    job.type("q")
    check(job.ended() == 0, "q after fg")
    job.check_as_before("q after fg")
    for keys, stopped in (("", "worker"), ("\x1a", "all")):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            job = Job(ctx)
            job.wait(rb"LIVE")
            if keys:
                job.type(keys)
                job.wait(b"Stopped")
                job.type("fg\n")
                job.wait(rb"LIVE")
                job.type(keys)
                job.wait(b"Stopped")
                for sent in (number, signal.SIGCONT):  # as kill of a shell does
                    os.killpg(job.keeper, sent)
                job.type("wait\n")
            else:
                os.kill(job.pid, signal.SIGSTOP)
                os.kill(job.keeper, number)
            code = job.ended()
            check(code == 0, "%s while stopped (%s): %s, %s", number, stopped, code, job.err)
            job.check_as_before("%s while stopped (%s)" % (number, stopped))
            job.end()


@case
def top_killed_before_a_full_terminal(ctx):
    """When nobody reads a terminal any more, and a process of --top is killed, the terminal is as before once somebody reads it."""
    for victim in ("keeper", "worker"):
        job = Job(ctx)
        job.wait(rb"LIVE")
        wait_until(lambda: job.type("\x0c") or not select.select([], [job.slave], [], 0)[1], STOP_S, "a full terminal")
        let_pass(1)
        os.kill(job.keeper if victim == "keeper" else job.pid, signal.SIGKILL)
        let_pass(8)  # longer than tsnap tries
        check(job.ended() == -signal.SIGKILL, "%s: exit code", victim)
        job.check_as_before("%s killed" % victim)
        job.end()


@case(alone=True)
def stuck_beside_a_screen(ctx):
    """After a process that can't be read has cost --top its worker, q restores the terminal."""
    ctx.workload("stuck_stack")
    jobs, begun = [Job(ctx, "-a", "-g", "exe,ufunc,stack") for _ in range(4)], 0
    for job in jobs:
        job.wait(rb"LIVE")
    for job in jobs:
        # by a second screen; none is begun where the worker could do without reading that process
        settle(lambda job=job: re.search(rb"(?s)\x1b\[\?1049h.*LIVE", job.read()), 8 * SLOW)
        begun += b"\x1b[?1049h" in job.output
    for job in jobs:
        job.type("q")
        check(job.ended() == 0, "q")
        job.check_as_before("q")
    print("# %d of %d workers were replaced" % (begun, len(jobs)))


def new_program(ctx, directory):
    """Starts a program whose file no parser has read."""
    path = tempfile.mktemp(prefix="new", dir=directory)
    shutil.copy2(shutil.which("sleep"), path)
    process = subprocess.Popen([path, "100"])
    ctx.at_end(process.kill)
    return process


class Run:
    """A tsnap of one form that samples with stacks, and whose processes are killed."""
    STACKS = ("-a", "-F", 10)
    LOST = "the worker process was killed, and what it had not written is lost: by signal 9"
    ALONE = "the keeper process was killed: tsnap has ended properly"

    def __init__(self, ctx, form, directory):
        self.ctx, self.form, self.directory = ctx, form, directory
        self.recording = os.path.join(directory, "recording")
        if form == "top":
            self.tool = Job(ctx, *self.STACKS, "-g", "comm,stack")
            self.keeper = self.tool.keeper
            return
        self.tool = {"report": lambda: ctx.plain(*self.STACKS, "-g", "comm,stack", "-d", 100),
                     "csv": lambda: ctx.stream(*self.STACKS, columns="comm,stack"),
                     "record": lambda: ctx.plain(*self.STACKS, "-G", "stack", "--flush", 0.2, "-o", self.recording)}[form]()
        self.keeper = self.tool.process.pid

    def wait_sampling(self):
        if self.form == "top":
            self.tool.wait(rb"LIVE")
        elif self.form == "csv":
            self.tool.wait_scans(3)
        elif self.form == "record":
            wait_until(lambda: [name for name in (os.listdir(self.recording) if os.path.isdir(self.recording) else ())
                                if ".samples." in name], START_S, "a file of samples")
        else:
            wait_until(self.spawners, START_S, "a parser")
            self.tool.wait_sleeps(5)

    def spawners(self, of=None):
        of = of or (children_of(self.keeper) or [0])[0]
        found = [pid for pid in children_of(of) if name_of(pid) == "tsnap-spawner"]
        return found + [below for pid in found for below in self.spawners(pid)]

    def victims(self, victim):
        if victim == "keeper":
            return [self.keeper]
        if victim == "worker":
            return children_of(self.keeper)[:1]
        return self.spawners()[:1] if victim == "spawner" else \
            [pid for of in self.spawners() for pid in children_of(of) if name_of(pid) == "tsnap-parser"]

    def kill(self, victim):
        worker = (children_of(self.keeper) or [0])[0]
        for pid in self.victims(victim):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return worker

    def code(self):
        return self.tool.ended() if self.form == "top" else self.tool.wait(STOP_S)

    def check_end(self, find, victim, worker, sampled=True):
        """The exit code and words after a kill of the keeper or the worker."""
        what = "%s, %s killed%s" % (self.form, victim, "" if sampled else " at the start")
        find.expect(self.code() == -signal.SIGKILL, "%s: not ended by signal 9: %s", what, self.tool.err)
        gone = settle(lambda: letters(worker) in "-Z", STOP_S)
        find.expect(gone, "%s: the process that samples is left", what)
        if sampled:
            words = self.LOST if victim == "worker" else self.ALONE
            find.expect(self.tool.err.count(words) == 1, "%s: not reported: %s", what, self.tool.err)
        if sampled and victim == "keeper" and self.form == "report":
            find.expect(b"AVG_THR" in self.tool.out, "%s: no report", what)

    def check_goes_on(self, find, victim, worker):
        """The words after a kill of a parser or the spawner."""
        what, words = "%s, %s killed" % (self.form, victim), {
            "parser": r"(\d+) process(?:es)? that read files for stacks and ended",
            "spawner": r"(\d+) process(?:es)? that had started those which read files, and ended"}[victim]
        if self.form == "top":
            # drawn whole: else only what differs from another line of the footer is written
            settle(lambda: self.tool.type("\x0c") or re.search(words.encode(), self.tool.read()), STOP_S)
            said = self.tool.output.decode(errors="replace")
            anew = children_of(self.keeper) != [worker]
            self.tool.type("q")
        else:
            self.tool.signal(signal.SIGINT)
        find.expect(self.code() == 0, "%s: exit code", what)
        if self.form != "top":
            said, anew = self.tool.err + self.tool.out.decode(errors="replace"), False
        find.expect(anew or re.search(words, said), "%s: not reported: %s", what, self.tool.err or said[-400:])

    def check_after(self, find, victim):
        """What is left: the terminal as before, and a recording that the next start goes on with."""
        what = "%s, %s killed" % (self.form, victim)
        if self.form == "top":
            settle(lambda: not self.tool.left_on(), STOP_S)
            find.expect(not self.tool.left_on(), "%s: the terminal still has %s", what, self.tool.left_on())
        if self.form == "csv":
            self.tool.rows()  # each row is whole
        if self.form == "record":
            again = self.ctx.plain("-o", self.recording, "-a", "-F", 10, "-n", 3)
            find.expect(again.wait(START_S + STOP_S) == 0, "%s: the next start: %s", what, again.err)
            replay = self.ctx.plain("--replay", self.recording, "-a", "--csv", "-g", "timestamp,tid")
            find.expect(replay.wait(START_S + STOP_S) == 0 and replay.out.count(b"\n") > 3, "%s: the replay: %s", what, replay.err)


@case(alone=True)
def killed_and_counted(ctx):
    """Parsers that were killed are told also if the worker that has counted them is given up later."""
    tools = [without_requests(ctx, *form, "-a", "-F", 10, "-G", "cmdline,stack") for form in (("--csv",), ("-o", ctx.temporary()))]
    standing = [Standing(tool) for tool in tools]
    for tool in tools:
        wait_until(tool.parsers, START_S, "a parser")
    let_pass(2 * SLOW)
    for pid in [pid for tool in tools for pid in tool.parsers()]:
        os.kill(pid, signal.SIGKILL)
    let_pass(0.3)
    new_program(ctx, ctx.temporary())
    let_pass(3 * SLOW)
    for one in standing:
        one.expect("before a process is stuck")
    ctx.workload("stuck_maps")
    for one in standing:
        wait_until(lambda one=one: [pid for pid in children_of(one.keeper) if pid != one.worker and one.tool.spawners(pid)], START_S, "a new worker")
        one.tool.signal(signal.SIGINT)
        one.tool.finish_plain(0, STOP_S)
        check("that read files for stacks and ended" in one.tool.err, "not told: %s", one.tool.err)


FORMS, VICTIMS = ("top", "csv", "report", "record"), ("keeper", "worker", "parser", "spawner")


def kill_in_each_form(ctx, find, victim, draw, early=False):
    """Kills a process of one tsnap of each form, side by side. early: at a random time of the start."""
    own = type(ctx)(ctx.options)
    own.descriptors = ctx.descriptors
    try:
        runs = [Run(own, form, own.temporary()) for form in FORMS]
        if early:
            for run in runs:
                wait_until(lambda run=run: run.victims(victim), START_S, "a process to kill")
            time.sleep(draw.uniform(0, 2 * SLOW))
        else:
            for run in runs:
                run.wait_sampling()
            time.sleep(draw.uniform(0, 0.5))
        workers = [run.kill(victim) for run in runs]
        if victim in ("parser", "spawner"):
            let_pass(0.3)  # a parser is not begun again at once
            new_program(own, runs[0].directory)
            let_pass(2 * SLOW)
        for run, worker in zip(runs, workers):
            if victim in ("parser", "spawner"):
                run.check_goes_on(find, victim, worker)
            else:
                run.check_end(find, victim, worker, not early)
            run.check_after(find, victim)
    finally:
        own.end()


@case(alone=True)
def killed_in_each_form(ctx):
    """kill -9 of the keeper, the worker, parsers and the spawner, in --top, --csv, a report and a recording: reported, the right exit code, the
    terminal as before, and the recording's next start goes on."""
    find, draw, before = Findings(), random.Random(1), set(left_over())
    for victim in VICTIMS:
        kill_in_each_form(ctx, find, victim, draw)
    settle(lambda: not set(left_over()) - before, STOP_S)
    find.expect(not set(left_over()) - before, "left over: %s", set(left_over()) - before)
    find.close()


@case(alone=True, thorough=True)
def killed_in_each_form_often(ctx):
    """The same, fifty times each, half of those of the keeper and the worker at a random time of the start."""
    find, draw, before = Findings(), random.Random(2), set(left_over())
    for i in range(50):
        for victim in VICTIMS:
            try:
                kill_in_each_form(ctx, find, victim, draw, i % 2 and victim in ("keeper", "worker"))
            except Failure as failure:
                find.expect(False, "%s: %s", victim, failure)
    settle(lambda: not set(left_over()) - before, STOP_S)
    find.expect(not set(left_over()) - before, "left over: %s", set(left_over()) - before)
    find.close()


killed_in_each_form_often.limit_s = 3600
