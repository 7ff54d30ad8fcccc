"""Installs what the tests need, builds, and runs the tests of each change, or the stages named.

--list names the stages. --all also runs the stages that it marks so, every live test, and each emulated kernel with each source of
types and kind of probe (tests/vm/guests): two to three hours.

A kind of test of which nothing could run fails the run, unless --allow-skip KIND is given: a stage, tree-SUITE, or all.

Kernels before 5.10 are run where they are provided: TSNAP_OLD_KERNELS, see tests/README.md.

Stages that --list calls "beside" run while machines are emulated, on CPU time that the machines leave. They do not run during the tests on
this kernel, of which more needed a second try then.

Tests that depend on programs and files alone, and passed before with the same ones, are not run again, and the run says so;
TSNAP_TEST_VERDICTS= runs them, and so does --all.

Builds are in build-test/, logs in build-test/logs/. The last line is the totals: N passed, N failed, N skipped.
"""
import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
import traceback

import groups
from stages import AHEAD, ALL, BESIDE, STAGES, StageSteps, log_path, skip_allowed
from steps import TOP, Failed, Skipped, failure_show, output_to, say, text_of

BUILD = os.path.join(TOP, "build-test")
WHEN_WORDS = {ALL: "; with --all", BESIDE: "; beside others"}
LONG = ("live", "sanitized", "vm", "arm64")  # stages that take minutes: their output is shown as it comes
VERDICTS_S = 31 * 86400  # verdicts that no test used for so long are dropped


class Ended(BaseException):
    """A signal that ends the run has come."""


def arguments(argv, stages):
    parser = argparse.ArgumentParser("tests/run", description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="the stages")
    parser.add_argument("--all", action="store_true", help="also what takes hours")
    parser.add_argument("--allow-skip", metavar="KIND", action="append", default=[], help="nothing of this kind has to run")
    parser.add_argument("-v", dest="verbose", action="store_true", help="show the output of every stage as it comes")
    parser.add_argument("stages", metavar="STAGE", nargs="*")
    options = parser.parse_intermixed_args(argv)
    for name in set(options.stages) - {stage.name for stage in stages}:
        sys.exit("run: no stage %s; tests/run --list names them" % name)
    return options


def chosen(stages, options):
    """The stages to run, in their order."""
    if options.stages:
        return [stage for stage in stages if stage.name in options.stages]
    return [stage for stage in stages if stage.when != ALL or options.all]


def split(stages, options):
    """(stages that run one after the other, stages that run while machines are emulated, after the tests on this kernel)"""
    others_may = not options.verbose and any(stage.name in ("live", "vm") for stage in stages)
    beside = [stage for stage in stages if others_may and stage.when == BESIDE]
    return [stage for stage in stages if stage not in beside], beside


def cpu_s():
    """CPU time of this process and of its ended children."""
    return sum(os.times()[:4])


def count_file(options, stage):
    return log_path(options, stage.name + ".count")


def log_file(options, stage):
    return log_path(options, stage.name + ".log")


def stage_run(stage, options):
    """Runs the stage and writes its counts, its seconds and its CPU seconds into its .count file."""
    steps, began, cpu_began = StageSteps(stage.name, options), time.monotonic(), cpu_s()
    try:
        stage.function(steps)
    except Skipped as why:
        say("skipped: %s" % why)
        steps.skipped += 1
    except Exception as why:  # the other stages go on
        if not isinstance(why, Failed):
            traceback.print_exc()
        say("the stage stopped: %s" % why)
        steps.failed += 1
    path = count_file(options, stage)
    with open(path + ".new", "w", encoding="ascii") as file:
        print(steps.passed, steps.failed, steps.skipped, int(time.monotonic() - began), round(cpu_s() - cpu_began), file=file)
    os.rename(file.name, path)


def beside_run(stages, options):
    """Runs stages one after the other, on CPU time that other processes leave."""
    groups.unimportant()
    for stage in stages:
        with output_to(log_file(options, stage)):
            stage_run(stage, options)


def counts_of(path):
    """(passed, failed, skipped, seconds, CPU seconds) of a stage; a stage without a .count file has failed."""
    try:
        return list(map(int, text_of(path).split()))
    except FileNotFoundError:
        return [0, 1, 0, 0, 0]


def judged(counts, name, options):
    """(counts, word) of a stage, which fails if none of its tests could run, unless --allow-skip is given."""
    passed, failed, *rest = counts
    if failed > 0:
        return counts, "FAILED"
    if passed > 0:
        return counts, "passed"
    if skip_allowed(options, name):
        return counts, "skipped"
    return [passed, failed + 1, *rest], "FAILED: nothing of this kind ran; --allow-skip %s if that is right" % name


class Run:
    """The stages of a run, their output and their results."""

    def __init__(self, options, stages):
        self.options, self.stages = options, stages
        self.ordered, self.beside = split(stages, options)
        self.beside_group = None
        self.sum, self.lines, self.number = [0, 0, 0], [], 0

    def run(self):
        """Returns the number of failed tests."""
        began = time.monotonic()
        for stage in self.ordered:
            if stage.name == "vm" and self.beside:
                self.beside_begin()
                for other in self.beside:
                    if other.name == "text":  # guests load the programs that this stage writes
                        self.beside_await(other)
            self.begin(stage)
            shown = self.options.verbose or stage.name in LONG
            self.foreground(stage, shown)
            self.end(stage, shown)
            if stage.name == "deps" and os.getuid() == 0:
                self.ahead_begin()
        if self.beside and not self.beside_group:
            self.beside_begin()
        for stage in self.beside:
            self.beside_await(stage)
            self.end(stage, False)
        self.summary(int(time.monotonic() - began))
        return self.sum[1]

    def begin(self, stage, more=""):
        self.number += 1
        print("[%d/%d] %s: %s%s" % (self.number, len(self.stages), stage.name, stage.help, more))
        with open(log_file(self.options, stage), "wb"), contextlib.suppress(FileNotFoundError):
            os.remove(count_file(self.options, stage))

    def foreground(self, stage, shown):
        """Runs the stage and waits for its end."""
        log = log_file(self.options, stage)
        if shown:
            tee = subprocess.Popen(["tee", log], stdin=subprocess.PIPE)
            output = tee.stdin
        else:
            output = open(log, "wb")
        with output:
            group = groups.Group(output, stage_run, stage, self.options)
        group.wait()
        group.end()
        if shown:
            tee.wait()

    def beside_begin(self):
        """Starts the stages that run while others do, once all that they need is built."""
        for stage in self.beside:
            self.begin(stage, " (beside what follows)")
        with open(os.devnull, "wb") as output:  # each stage has a log
            self.beside_group = groups.Group(output, beside_run, self.beside, self.options)

    def beside_await(self, stage):
        """Waits for the end of a stage that began while others ran; all such stages now have the normal scheduling policy."""
        while not os.path.exists(count_file(self.options, stage)) and self.beside_group.works():
            self.beside_group.lift()
            time.sleep(1)

    def ahead_begin(self):
        for function in AHEAD:
            with open(log_path(self.options, function.__name__ + ".log"), "wb") as log:
                groups.Group(log, function, StageSteps("ahead", self.options), [stage.name for stage in self.stages])

    def end(self, stage, shown):
        """Reports the stage's result, and for a failed stage the end of its log unless that was shown."""
        counts, word = judged(counts_of(count_file(self.options, stage)), stage.name, self.options)
        passed, failed, skipped, seconds, cpu = counts
        if failed > 0 and not shown:
            failure_show(log_file(self.options, stage))
        self.lines.append("%-10s %4d s %5d s of CPUs %4d passed %3d failed %3d skipped  %s"
                          % (stage.name, seconds, cpu, passed, failed, skipped, word))
        print("      " + self.lines[-1])
        self.sum = [before + more for before, more in zip(self.sum, counts)]

    def summary(self, seconds):
        known = log_path(self.options, "known")
        print("\nSummary, %d s (logs in %s):" % (seconds, os.path.dirname(known)))
        for line in self.lines:
            print("  " + line)
        if os.path.getsize(known) > 0:
            print("%d checks were not made again: they passed before with the same programs and files (%s)"
                  % (len(text_of(known).splitlines()), known))
        print("%d passed, %d failed, %d skipped" % tuple(self.sum))


def verdicts_prepare(options):
    """Prepares tests/verdicts.py, by which tests that depend on programs and files alone are run again only when one of these has changed."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ.get("HOME") or "/root", ".cache")
    folder = "" if options.all else os.environ.get("TSNAP_TEST_VERDICTS", os.path.join(cache, "tsnap-verdicts"))
    known = log_path(options, "known")
    os.environ.update(TSNAP_TEST_VERDICTS=folder, TSNAP_TEST_KNOWN=known)
    with open(known, "wb"):
        pass
    with contextlib.suppress(FileNotFoundError):  # the folder is absent, or another run removes the same files
        for entry in os.scandir(folder):
            if time.time() - entry.stat().st_mtime > VERDICTS_S:
                os.remove(entry.path)


def ended(number, _):
    raise Ended(number)


def main(argv, stages=STAGES, build=BUILD):
    options = arguments(argv[1:], stages)
    if options.list:
        for stage in stages:
            print("%-10s %s%s" % (stage.name, stage.help, WHEN_WORDS.get(stage.when, "")))
        return 0
    options.build, options.since = build, time.time()
    sys.stdout.reconfigure(line_buffering=True, errors="replace")
    os.chdir(TOP)
    os.environ["PATH"] = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    os.makedirs(os.path.join(build, "logs"), exist_ok=True)
    verdicts_prepare(options)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal_number = 0
    groups.on_ending(ended)
    try:
        failed = Run(options, chosen(stages, options)).run()
    except Ended as why:
        signal_number = why.args[0]
    finally:
        groups.on_ending(signal.SIG_IGN)
        for group in groups.Group.started[:]:
            group.end()
    if signal_number:  # the caller sees the signal, not a failure
        signal.signal(signal_number, signal.SIG_DFL)
        os.kill(os.getpid(), signal_number)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
