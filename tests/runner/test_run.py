"""run.py and groups.py, on stages that do little: which stages run, what is reported, and that no process is left of them."""
import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import groups
import run
import steps
from stages import ALL, BESIDE, EACH, STAGES, Stage, findings_expect_none


def passes(stage):
    stage.passed += 1


def fails(stage):
    print("x.c:1: error: some words")
    raise steps.Failed("of something")


def raises(stage):
    stage.passed += 1
    return {}["nothing"]


def skips(_):
    raise steps.Skipped("needs more")


def dies(_):
    os.kill(os.getpid(), signal.SIGKILL)


def reads(stage):
    stage.check("standard input is empty", steps.call, "sh", "-c", "! read line")


def works(stage):
    stage.check("one second of a CPU", steps.call, "timeout", "-s", "KILL", "60", "python3", "-c",
                "import time\nwhile time.process_time() < 1: pass")


def leaves(stage):
    """Leaves a process that would run for a long time."""
    process = subprocess.Popen(["sleep", "1000"])
    with open(os.path.join(stage.build, "left-" + stage.name), "w", encoding="ascii") as file:
        file.write(str(process.pid))
    passes(stage)


def stays(stage):
    leaves(stage)
    os.rename(os.path.join(stage.build, "left-" + stage.name), os.path.join(stage.build, "stays-" + stage.name))
    time.sleep(1000)


def policy(stage):
    print("policy", os.sched_getscheduler(0))
    passes(stage)


def lifted(stage):
    """Ends once this process has the normal scheduling policy, or after 30 s."""
    began = time.monotonic()
    while os.sched_getscheduler(0) == os.SCHED_IDLE and time.monotonic() < began + 30:
        time.sleep(0.05)
    policy(stage)


def waits_for_text(stage):
    stage.check("text ended before", os.stat, os.path.join(stage.build, "logs", "text.count"))


def table(**functions):
    """Rows for stages of these names; a value is a function, or a tuple (function, when)."""
    rows = []
    for name, function in functions.items():
        function, when = function if isinstance(function, tuple) else (function, EACH)
        rows.append(Stage(name, when, "words of " + name, function))
    return rows


TABLES = {  # tables of the tests that start a run of its own: this file with its name, the build folder and the arguments
    "one": table(one=passes),
    "kinds": table(one=passes, two=fails, three=raises, four=skips, five=dies),
    "optional": table(one=passes, two=(passes, ALL), three=(passes, BESIDE)),
    "shown": table(one=passes, live=fails),
    "input": table(one=reads, live=reads),
    "cpu": table(one=works),
    "leaves": table(one=leaves, live=leaves),
    "beside": table(text=(lifted, BESIDE), one=policy, hostile=(policy, BESIDE), live=passes, vm=waits_for_text),
    "dead": table(text=(dies, BESIDE), hostile=(passes, BESIDE), vm=passes),
    "ending": table(hostile=(stays, BESIDE), vm=stays),
}


def wait_until(ready):
    """Waits for a condition on a host that may be busy."""
    deadline = time.monotonic() + 60
    while not ready():
        if time.monotonic() > deadline:
            raise AssertionError("waited for nothing")
        time.sleep(0.05)


def state(process):
    """The process's state letter as in /proc, or "" if there is no such process."""
    with contextlib.suppress(OSError):
        return steps.text_of("/proc/%d/stat" % process).rpartition(") ")[2][0]
    return ""


def options_of(**more):
    return argparse.Namespace(**{"all": False, "verbose": False, "allow_skip": [], "stages": [], **more})


class Choice(unittest.TestCase):
    def names(self, **options):
        return [stage.name for stage in run.chosen(TABLES["optional"], options_of(**options))]

    def test_chosen(self):
        self.assertEqual(self.names(), ["one", "three"])
        self.assertEqual(self.names(all=True), ["one", "two", "three"])
        self.assertEqual(self.names(stages=["two", "one"]), ["one", "two"])
        self.assertEqual(self.names(stages=["three"], all=True), ["three"])

    def split(self, names, **options):
        stages = run.chosen(STAGES, options_of(stages=names))
        return [[stage.name for stage in part] for part in run.split(stages, options_of(**options))]

    def test_beside(self):
        self.assertEqual(self.split(["gcc", "text", "lint", "vm"]), [["gcc", "vm"], ["text", "lint"]])
        self.assertEqual(self.split(["lint", "live"]), [["live"], ["lint"]])
        self.assertEqual(self.split(["lint", "live"], verbose=True), [["lint", "live"], []])
        self.assertEqual(self.split(["gcc", "lint"]), [["gcc", "lint"], []])

    def test_arguments(self):
        options = run.arguments(["unit", "--allow-skip", "vm", "-v", "golden", "--allow-skip", "tree-sid"], STAGES)
        self.assertEqual(options.stages, ["unit", "golden"])
        self.assertEqual(options.allow_skip, ["vm", "tree-sid"])
        self.assertTrue(options.verbose)
        self.assertFalse(options.all)

    def test_judged(self):
        def word(counts, *allowed):
            counts, word = run.judged(counts, "unit", options_of(allow_skip=allowed))
            return counts[1], word.partition(":")[0]
        self.assertEqual(word([3, 0, 1, 5, 5]), (0, "passed"))
        self.assertEqual(word([3, 2, 1, 5, 5], "all"), (2, "FAILED"))
        self.assertEqual(word([0, 0, 1, 5, 5]), (1, "FAILED"))
        self.assertEqual(word([0, 0, 1, 5, 5], "live", "tree-sid"), (1, "FAILED"))
        self.assertEqual(word([0, 0, 1, 5, 5], "unit"), (0, "skipped"))
        self.assertEqual(word([0, 0, 0, 5, 5], "all"), (0, "skipped"))


class Findings(unittest.TestCase):
    """Files that a program under the sanitizers left."""

    def left(self, text):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(None):
            with open(os.path.join(folder, "found.1"), "w", encoding="ascii") as file:
                file.write(text)
            findings_expect_none(folder)

    def test_faults(self):
        for text in "==7==ERROR: AddressSanitizer: heap-use-after-free on address 1\n", "x.c:4:1: runtime error: shift exponent -1\n":
            self.assertRaises(steps.Failed, self.left, text)

    def test_no_memory_for_it(self):
        self.left("==7==ERROR: AddressSanitizer failed to allocate 0x10000000 bytes\n")


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def start(self, name, *words):
        process = subprocess.Popen([sys.executable, "-B", __file__, name, self.folder, *words], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, stdin=subprocess.PIPE, universal_newlines=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.terminate)
        return process

    def run_stages(self, name, *words):
        """Runs stages of the table; returns (exit status, lines of output)."""
        process = self.start(name, *words)
        output = process.communicate("input\n", timeout=120)[0]
        return process.returncode, output.splitlines()

    def file(self, *names):
        return steps.text_of(os.path.join(self.folder, *names))

    def assert_ended(self, process):
        self.assertIn(state(process), ("", "Z"))

    def test_one(self):
        status, lines = self.run_stages("one")
        self.assertEqual(status, 0)
        told = "one           N s     N s of CPUs    1 passed   0 failed   0 skipped  passed"
        lines = [re.sub(r"\d+ s\b", "N s", line) for line in lines]
        self.assertEqual(lines, ["[1/1] one: words of one", "      " + told, "", "Summary, N s (logs in %s/logs):" % self.folder,
                                 "  " + told, "1 passed, 0 failed, 0 skipped"])
        self.assertRegex(self.file("logs", "one.count"), r"^1 0 0 \d+ \d+\n$")

    def test_each_kind_of_end(self):
        status, lines = self.run_stages("kinds")
        self.assertEqual(status, 1)
        summary = [re.sub(r" +", " ", line).strip().partition(" of CPUs ")[2] for line in lines[-6:-1]]
        self.assertEqual(summary, ["1 passed 0 failed 0 skipped passed",
                                   "0 passed 1 failed 0 skipped FAILED",
                                   "1 passed 1 failed 0 skipped FAILED",
                                   "0 passed 1 failed 1 skipped FAILED: nothing of this kind ran; --allow-skip four if that is right",
                                   "0 passed 1 failed 0 skipped FAILED"])
        self.assertEqual(lines[-1], "2 passed, 4 failed, 1 skipped")
        self.assertIn("... the end of %s/logs/two.log:" % self.folder, lines)
        self.assertIn("the stage stopped: of something", self.file("logs", "two.log"))
        self.assertIn("KeyError", self.file("logs", "three.log"))
        self.assertIn("skipped: needs more", self.file("logs", "four.log"))

    def test_skip_allowed(self):
        status, lines = self.run_stages("kinds", "four", "one", "--allow-skip", "four")
        self.assertEqual((status, lines[-1]), (0, "1 passed, 0 failed, 1 skipped"))
        self.assertTrue(lines[-2].endswith("  skipped"), lines)

    def test_list(self):
        status, lines = self.run_stages("optional", "--list")
        self.assertEqual((status, lines), (0, ["one        words of one", "two        words of two; with --all",
                                               "three      words of three; beside others"]))
        self.assertEqual(os.listdir(self.folder), [])

    def test_wrong_arguments(self):
        self.assertEqual(self.run_stages("one", "two"), (1, ["run: no stage two; tests/run --list names them"]))
        self.assertEqual(self.run_stages("one", "--al")[0], 2)
        self.assertEqual(self.run_stages("one", "--allow-skip")[0], 2)

    def test_shown_as_it_comes(self):
        _, lines = self.run_stages("shown", "live")
        self.assertEqual(lines[1], "x.c:1: error: some words")
        self.assertEqual(lines.count(lines[1]), 1)  # the line is not repeated at the stage's end
        self.assertIn(lines[1], self.file("logs", "live.log"))
        _, lines = self.run_stages("input", "-v", "one")
        self.assertEqual(len(lines), 6)

    def test_standard_input(self):
        self.assertEqual(self.run_stages("input")[1][-1], "2 passed, 0 failed, 0 skipped")

    def test_cpu_seconds(self):
        self.run_stages("cpu")
        self.assertGreaterEqual(int(self.file("logs", "one.count").split()[4]), 1)

    def test_nothing_is_left_of_a_stage(self):
        self.assertEqual(self.run_stages("leaves")[1][-1], "2 passed, 0 failed, 0 skipped")
        for name in "one", "live":
            self.assert_ended(int(self.file("left-" + name)))

    @unittest.skipUnless(os.getuid() == 0, "lifting needs root")
    def test_beside(self):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))  # this test may itself run with SCHED_IDLE, while others do
        status, lines = self.run_stages("beside")
        self.assertEqual((status, lines[-1]), (0, "5 passed, 0 failed, 0 skipped"))
        self.assertEqual([line for line in lines if line.startswith("[")],
                         ["[1/5] one: words of one", "[2/5] live: words of live", "[3/5] text: words of text (beside what follows)",
                          "[4/5] hostile: words of hostile (beside what follows)", "[5/5] vm: words of vm"])
        self.assertEqual([line.split()[0] for line in lines[-6:-1]], ["one", "live", "vm", "text", "hostile"])
        self.assertIn("policy 0", self.file("logs", "one.log"))
        self.assertIn("policy 0", self.file("logs", "text.log"))  # it was lifted when the run waited for it

    def test_beside_that_died(self):
        status, lines = self.run_stages("dead")
        self.assertEqual((status, lines[-1]), (1, "1 passed, 2 failed, 0 skipped"))

    def test_signals(self):
        for number in groups.ENDING:
            process = self.start("ending")
            left = [os.path.join(self.folder, "stays-" + name) for name in ("hostile", "vm")]
            wait_until(lambda: all(map(os.path.exists, left)))
            process.send_signal(number)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, -number)
            for path in left:
                self.assert_ended(int(steps.text_of(path)))
                os.remove(path)

    def test_verdicts(self):
        def folder(**environment):
            with unittest.mock.patch.dict(os.environ, environment):
                run.verdicts_prepare(options_of(build=self.folder, all="every" in environment))
                return os.environ["TSNAP_TEST_VERDICTS"]
        os.mkdir(os.path.join(self.folder, "logs"))
        given = os.path.join(self.folder, "verdicts")
        os.mkdir(given)
        for name, days in ("new", 1), ("old", 40):
            path = os.path.join(given, name)
            with open(path, "wb"):
                os.utime(path, times=(0, time.time() - 86400 * days))
        self.assertEqual(folder(TSNAP_TEST_VERDICTS=given, every="1"), "")
        self.assertEqual(folder(TSNAP_TEST_VERDICTS=""), "")
        self.assertEqual(folder(TSNAP_TEST_VERDICTS=given), given)
        self.assertEqual(os.listdir(given), ["new"])
        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("TSNAP_TEST_VERDICTS", None)
            self.assertEqual(folder(XDG_CACHE_HOME="/some"), "/some/tsnap-verdicts")
        self.assertEqual(self.file("logs", "known"), "")


class GroupTest(unittest.TestCase):
    def group(self, function, *arguments):
        with open(os.devnull, "wb") as null:
            group = groups.Group(null, function, *arguments)
        self.addCleanup(lambda: group in groups.Group.started and group.end())
        return group

    def test_works(self):
        group = self.group(time.sleep, 1000)
        self.assertTrue(group.works())
        self.assertEqual(group.members(), [group.id])
        group.end()
        self.assertEqual((state(group.id), group.members(), groups.Group.started), ("", [], []))

    def test_ended_by_itself(self):
        group = self.group(time.sleep, 0)
        group.wait()
        self.assertFalse(group.works())
        self.assertEqual(state(group.id), "Z")  # a zombie, so that its id is not reused
        group.end()
        self.assertEqual(state(group.id), "")

    def test_one_that_does_not_want_to_end(self):
        group = self.group(subprocess.call, ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"])
        wait_until(lambda: len(group.members()) == 3)
        with unittest.mock.patch("groups.END_S", 0.5):
            group.end()
        wait_until(lambda: not group.members())

    @unittest.skipUnless(os.getuid() == 0, "lifting needs root")
    def test_lift(self):
        def unimportant():
            groups.unimportant()
            time.sleep(1000)
        group = self.group(unimportant)
        wait_until(lambda: os.sched_getscheduler(group.id) == os.SCHED_IDLE)
        group.lift()
        self.assertEqual(os.sched_getscheduler(group.id), os.SCHED_OTHER)


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] in TABLES:
        sys.argv[0] = "run"
        for given in groups.ENDING:  # the parent of these tests may ignore these signals
            signal.signal(given, signal.SIG_DFL)
        sys.exit(run.main(["run", *sys.argv[3:]], TABLES[sys.argv[1]], sys.argv[2]))
    unittest.main()
