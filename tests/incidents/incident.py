"""What an incident is: a function that makes it of real programs, and states what is true as facts."""
import os
import re
import signal
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))
import harness
from parts import program

RIGHT, POINTED, NOTHING, WRONG, SKIPPED = "right", "pointed", "nothing", "WRONG", "skipped"
SECONDS_OFF = 0.2  # share by which seconds may differ
THREADS_OFF = 0.25  # of threads at a time, which are an average
NO_PROBLEM = ("no_problem", "not_seen")  # the rest of the time, no findings
PREFERRED = -15  # nice value
OF_OTHERS = ("cpus", "uneven_cpus", "neighbour", "kernel")
TABLE = []


class Program(harness.Process):
    """A program that ends with its incident, with all processes that it has started."""

    def __init__(self, ctx, argv, preferred=False, **popen):
        """preferred: a storm, which is none where others have the CPUs."""
        super().__init__(argv, **popen)
        ctx.started.append(self)
        if preferred:
            os.setpriority(os.PRIO_PGRP, self.process.pid, PREFERRED)
            if os.path.exists("/proc/self/autogroup"):
                with open("/proc/%d/autogroup" % self.process.pid, "w", encoding="ascii") as file:
                    file.write(str(PREFERRED))

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        super().end()


def python(ctx, text, *args, ready=True, **popen):
    """A Python that runs the text, when it has said that it is ready."""
    process = Program(ctx, [program("python3", "python3", "/usr/bin"), "-c", text, *args], **popen)
    if ready:
        harness.wait_until(lambda: b"ready" in process.out or process.code is not None, 20 * harness.SLOW, "Python")
        harness.check(process.code is None, "%s", process.err)
    return process


def shell(ctx, text, **popen):
    return Program(ctx, ["/bin/sh", "-c", text], **popen)


class Truth:
    """The facts of an incident.

    finding: its name in --findings --json; a tuple: any of these
    waiters: (program, threads that wait at a time); None: nobody has to wait
    culprit: (program, pids); None: nobody is to blame, or tsnap can't know
    cause: a pattern of what the culprit does, or of the thing that is waited for; it has to be in the sentence
    since: time.monotonic() when the first wait began; None: waits that are short
    certain: whether it must be called certain (True) or likely (False)
    also: names of other findings that are true, too
    """

    def __init__(self, finding, waiters=None, culprit=None, cause=None, since=None, certain=None, also=()):
        self.findings = (finding,) if isinstance(finding, str) else finding
        self.waiters, self.culprit, self.cause = waiters, culprit, cause
        self.since, self.certain, self.also = since, certain, also


def _enter(kind, number, not_yet=None, often=False, whole=False):
    def enter(function):
        function.kind, function.number, function.not_yet, function.often, function.whole = kind, number, not_yet, often, whole
        TABLE.append(function)
        return function
    return enter


def incident(number, not_yet=None, often=False, whole=False):
    """Enters an incident, which returns a Truth. not_yet: why it can't be right so far. often: tests/run has it also without --all. whole:
    tsnap has to see the whole host, also with --own."""
    return _enter("incident", number, not_yet, often, whole)


def look_alike(number, often=False, whole=False):
    """Enters what looks like incident `number` but is no problem. It returns the names of findings that must not be found; None: all."""
    return _enter("look-alike", number, None, often, whole)


def quiet(not_yet=None, often=False):
    """Enters a load in which there is no problem. not_yet: why something is found that is likely
    only."""
    return _enter("quiet", 0, not_yet, often)


def problems(objects, others, but=()):
    """The findings, in their order. others: of a host with other work, by which any thread may wait for a CPU; but: names of those that count
    all the same."""
    return [told for told in objects
            if told["finding"] not in NO_PROBLEM and not (others and told["finding"] in OF_OTHERS and told["finding"] not in but)]


def names_of(party):
    return [who["name"] for who in party]


def is_near(value, truth, off):
    return abs(value - truth) <= off * truth


def faults_of(told, truth, rank, ended, own):
    """What is missing or false in a finding of the right name: (missing, false). own: other work may have the CPUs that waiters need."""
    missing, false = [], []
    text, seconds = told["text"], told["longest_us"] / 1e6
    if rank > 1:
        missing.append("rank %d" % rank)
    if truth.waiters:
        program, threads = truth.waiters
        if program not in names_of(told["waiters"]):
            missing.append("waiters are %s, not %s" % (names_of(told["waiters"]), program))
        seen = told["time_us"] / told["elapsed_us"]
        if threads and not is_near(seen, threads, THREADS_OFF) and not (own and 0 < seen < threads):
            missing.append("%.1f threads, not %.1f" % (seen, threads))
    if truth.culprit:
        program, pids = truth.culprit
        pids = (pids,) if isinstance(pids, int) else pids
        first = (told["culprits"] or [None])[0]
        if not first:
            missing.append("no culprit")
        elif first["pid"] is not None and first["pid"] not in pids or first["name"] not in (program, None):
            false.append("culprit %s %s, not %s of %s" % (first["name"], first["pid"], program, pids))
        elif first["pid"] is None and len(pids) == 1 or not re.search(r"%s.*\b(%s)\b" % (re.escape(program), "|".join(map(str, pids))), text):
            missing.append("no pid of the culprit")
    if truth.cause and not re.search(truth.cause, text):
        missing.append("no cause: %s" % truth.cause)
    # of a wait that began before its start tsnap knows only that it lasts since then
    whole, known = (ended - truth.since, min(ended - truth.since, told["elapsed_us"] / 1e6)) if truth.since else (seconds, seconds)
    if not known * (1 - SECONDS_OFF) <= seconds <= whole * (1 + SECONDS_OFF):
        missing.append("%.1f s, not %.1f" % (seconds, whole))
    if truth.certain is not None and told["certainty"] != ("certain" if truth.certain else "likely"):
        (false if told["certainty"] == "certain" else missing).append("it is " + told["certainty"])
    return missing, false


def judged(truth, found, ended, own, others):
    """(verdict, why) of the findings of an incident. own: other work runs on the host; others: which tsnap sees, and which may be the first."""
    named = [told for told in found if told["finding"] in truth.findings]
    for told in [] if others else found:
        if told["certainty"] == "certain" and told not in named and told["finding"] not in truth.also:
            return WRONG, "certain: " + told["text"]
    answers = [faults_of(told, truth, 1 if others else found.index(told) + 1, ended, own) for told in named]
    best = min(range(len(named)), key=lambda at: (len(answers[at][1]), len(answers[at][0])), default=None)
    if best is None:
        return NOTHING, "found: %s" % ([told["text"] for told in found] or "nothing")
    missing, false = answers[best]
    for told, answer in zip(named, answers):
        if answer[1] and told["certainty"] == "certain":
            return WRONG, "%s: certain: %s" % ("; ".join(answer[1]), told["text"])
    if false and found.index(named[best]) == 0:
        return WRONG, "%s: %s" % ("; ".join(false), named[best]["text"])
    if missing or false:
        return POINTED, "%s: %s" % ("; ".join(missing + false), named[best]["text"])
    return RIGHT, named[best]["text"]


def judged_none(names, found):
    """(verdict, why) of a look-alike or a quiet load. names: of findings that must not be found; None: all."""
    wrong = [told for told in found if names is None or told["finding"] in names]
    if not wrong:
        return RIGHT, "not found"
    return WRONG if any(told["certainty"] == "certain" for told in wrong) else POINTED, "found: %s" % [told["text"] for told in wrong]


def now():
    return time.monotonic()
