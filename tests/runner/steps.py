"""Building blocks of test runs: commands, builds, and tests that are counted."""
import contextlib
import fcntl
import math
import os
import re
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
JOBS = len(os.sched_getaffinity(0))
RESULT = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.M)  # a driver's last line
CTEST_LINE = re.compile(r"^ *\d+/\d+ Test +#.*", re.M)  # ctest's line of each test, the same from CMake 3.13 on
CTEST_SKIPPED = ("***Skipped", "***Not Run (Disabled)")
ERROR_LINE = re.compile(r".*(?:error|Error|warning): .*")


class Failed(Exception):
    """A test has failed; the text says why."""


class Skipped(Exception):
    """A test can't run here; the text says why."""


def say(words):
    """Prints a message on standard error, as packaging/say.sh does."""
    print("%s: %s" % (os.path.basename(sys.argv[0]).replace(".py", ""), words), file=sys.stderr, flush=True)


def call(*command, **options):
    """Runs a command, which must succeed."""
    status = subprocess.run(command, check=False, **options).returncode
    if status != 0:
        raise Failed("%s: exit status %d" % (command[0], status))


def answer(*command):
    """The output of a command."""
    done = subprocess.run(command, stdout=subprocess.PIPE, universal_newlines=True, check=False)
    if done.returncode != 0:
        raise Failed("%s: exit status %d" % (command[0], done.returncode))
    return done.stdout.strip()


def text_of(path):
    """The text of a log, whatever bytes are in it."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def tee(command, path, **options):
    """Runs a command whose output is shown as it comes, and kept in a file. Returns its exit status."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options) as process, open(path, "wb") as file:
        for part in iter(lambda: process.stdout.read1(1 << 16), b""):
            for output in (file, sys.stdout.buffer):
                output.write(part)
                output.flush()
    return process.returncode


@contextlib.contextmanager
def output_to(path):
    """While the context lasts, standard output and error of this process and of the commands that it runs go to a file."""
    sys.stdout.flush()
    kept = [os.dup(1), os.dup(2)]
    with open(path, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        for number, saved in enumerate(kept, 1):
            os.dup2(saved, number)
            os.close(saved)


@contextlib.contextmanager
def locked(path):
    """Holds an exclusive lock on this file while the context lasts."""
    with open(path, "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def failure_show(path):
    """Shows a log's first errors, because a parallel build goes on for a while after them, then its end."""
    text = text_of(path)
    print("\n".join([*ERROR_LINE.findall(text)[:10], "... the end of %s:" % path, *text.splitlines()[-20:]]))


def ctest_counts(text):
    """(passed, failed, skipped) of the output of ctest."""
    lines = CTEST_LINE.findall(text)
    passed = sum(" Passed " in line for line in lines)
    skipped = sum(any(word in line for word in CTEST_SKIPPED) for line in lines)
    return passed, len(lines) - passed - skipped, skipped


class Steps:
    """The tests of one stage or script. It works below the folder build, its name is in names of logs. since: the time.time() after which a
    tree that was built is not built again."""

    def __init__(self, name, build, since=math.inf):
        self.name, self.build, self.since = name, build, since
        self.passed = self.failed = self.skipped = 0

    def add(self, passed, failed, skipped):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped

    def add_status(self, status):
        """Counts a failure if the test runner failed although none of its tests did."""
        if status != 0 and self.failed == 0:
            say("exit status %d" % status)
            self.failed += 1

    def check(self, words, function, *arguments):
        """Runs a function that is one test."""
        try:
            function(*arguments)
            self.passed += 1
        except Skipped as why:
            say("skipped: %s: %s" % (words, why))
            self.skipped += 1
        except (Failed, OSError) as why:
            say("FAILED: %s: %s" % (words, why))
            self.failed += 1

    def build_tree(self, name, *options):
        """Configures and builds the folder name, unless another stage has built it; waits if another stage is building it. Files that were
        compiled before, in this clone or another, come from ccache's cache where there is one. Ninja needs less time than make to find what
        there is to do; a folder that was made without it stays so."""
        tree = os.path.join(self.build, name)
        launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        generator = ["-G", "Ninja"] if shutil.which("ninja") and not os.path.exists(os.path.join(tree, "Makefile")) else []
        built = tree + ".built"
        with locked(tree + ".building"):
            if os.path.exists(built) and os.path.getmtime(built) > self.since:
                return
            call("cmake", "-S", TOP, "-B", tree, "-DTSNAP_WERROR=ON", *generator, *launcher, *options)
            call("cmake", "--build", tree, "--", "-j%d" % JOBS, env=dict(os.environ, CCACHE_BASEDIR=TOP, CCACHE_NOHASHDIR="1"))
            with open(built, "wb"):
                pass

    def ctest(self, folder, labels, *within):
        """Runs the tests with these labels of a tree, or of a folder of it. The command within, if any, runs ctest."""
        folder = os.path.join(self.build, folder)
        output = os.path.join(folder, "ctest.log")
        status = tee([*within, "ctest", "--output-on-failure", "-L", labels, "-j%d" % JOBS], output, cwd=folder)
        self.add(*ctest_counts(text_of(output)))
        self.add_status(status)

    def driver(self, *command):
        """Runs a command of many tests, which ends with the line of results, or with exit status 77 where none can run."""
        output = os.path.join(self.build, "driver-%s.log" % self.name)
        self.driver_ended(tee(command, output), text_of(output))

    def driver_ended(self, status, text):
        """Counts the results in a driver's output."""
        if status == 77:
            self.skipped += 1
            return
        results = RESULT.findall(text)
        if results:
            self.add(*map(int, results[-1]))
        else:
            say("no result line")
            self.failed += 1
        self.add_status(status)
