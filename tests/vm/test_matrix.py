"""matrix.py: which guests run, what counts as passed, failed and skipped, and that guests end with it. Nothing is booted here: scripts
replace the programs that boot."""
import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import matrix
from matrix import Guest, Options
from steps import Failed, output_to, text_of

ROWS = """# kernel	root	configurations
4.9	-		load auto | options none
4.14	-		| load auto

5.10	bullseye	auto | agree as-*
6.12	bullseye	| auto
5.10	-		?4.9 as-4.9 | smoke
sid	sid		auto
"""
KERNELS = """#!/bin/sh
case $1 in
4.9) exit 77 ;;
6.12) exit 1 ;;
esac
echo /kernels/$1
"""
STARTED = """#!/bin/sh
trap 'echo ended >>%s; exit' TERM
echo started >>%s
while :; do sleep 0.1; done
"""
ENDED = """
import sys
import matrix
matrix.GUESTS, matrix.FETCH, matrix.BOOT = sys.argv[1:4]
matrix.main(["matrix", "5.10/-", "sid/-"], sys.argv[4])
"""


def ended_by_signals():
    """Restores the default of signals that end a run, also under nohup, whose children ignore SIGHUP."""
    for number in matrix.groups.ENDING:
        signal.signal(number, signal.SIG_DFL)


def names(options, there=()):
    """{name of a guest: its configurations}"""
    return {guest.name: " ".join(guest.configurations) for guest in matrix.guests_list(ROWS, options, there.__contains__)}


class RulesTest(unittest.TestCase):
    def refused(self, *words):
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as end:
            matrix.arguments(words)
        self.assertIn("usage: matrix [-a]", said.getvalue())
        self.assertEqual(end.exception.code, 2)

    def test_arguments(self):
        self.assertEqual(matrix.arguments([]), Options(False, False, 2, [], []))
        self.assertEqual(matrix.arguments("-a -k -j 3 --allow-skip vm-4.9 --allow-skip all 6.1 -k".split()),
                         Options(True, True, 3, ["vm-4.9", "all"], ["6.1", "-k"]))

    def test_arguments_refused(self):
        for words in "-x", "-j", "-j 0", "-j two", "-k", "--allow-skip", "--", "-":
            self.refused(*words.split())

    def test_guests(self):
        self.assertEqual(names(Options()), {"4.9--": "load auto", "5.10-bullseye": "auto", "5.10--": "as-4.9", "sid-sid": "auto"})

    def test_guests_that_stand_for_another(self):
        self.assertNotIn("5.10--", names(Options(), ["4.9"]))
        self.assertIn("5.10--", names(Options(), ["4.14"]))
        self.assertEqual(names(Options(all=True), ["4.9"])["5.10--"], "as-4.9 smoke")

    def test_guests_all(self):
        self.assertEqual(names(Options(all=True)), {"4.9--": "load auto options none", "4.14--": "load auto", "5.10-bullseye":
                         "auto agree as-*", "6.12-bullseye": "auto", "5.10--": "as-4.9 smoke", "sid-sid": "auto"})

    def test_guests_wanted(self):
        self.assertEqual(list(names(Options(guests=["5.10", "sid/sid", "4.14"]))), ["5.10-bullseye", "5.10--", "sid-sid"])
        self.assertEqual(list(names(Options(guests=["5.10/-", "sid/-"]))), ["5.10--"])
        self.assertEqual(names(Options(guests=["5.1", "-"])), {})

    def test_stored_guests(self):
        guests = matrix.guests_list(text_of(matrix.GUESTS), Options(all=True), lambda kernel: True)
        self.assertEqual(len({guest.name for guest in guests}), len(guests))  # names are unique, because logs have them

    def test_exported_roots(self):
        self.assertEqual(matrix.exported_roots(ROWS, Options()), ["-"])
        self.assertEqual(matrix.exported_roots(ROWS, Options(all=True)), ["-", "bullseye", "sid"])

    def test_program(self):
        with unittest.mock.patch.multiple(matrix, BUILD="/here/gcc", CACHE="/cache", TREE_BUILD="/build/gcc"):
            self.assertEqual([matrix.program(root, "src/tsnap", here) for root in ("-", "sid") for here in (False, True)],
                             ["/here/gcc/src/tsnap", "/here/gcc/src/tsnap", "/build/gcc/src/tsnap", "/cache/trees/sid/build/gcc/src/tsnap"])

    def test_first_failure(self):
        self.assertEqual(matrix.first_failure("ok\nFAILED: one\nFAILED: two\nend\n"), "FAILED: one")
        self.assertEqual(matrix.first_failure("ok\nkilled\n"), "killed")
        self.assertEqual(matrix.first_failure(""), "")


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkdir(self.path("logs"))
        self.text_check, self.load_verdict = unittest.mock.Mock(), unittest.mock.Mock(side_effect=Failed("not known"))
        for patch in (unittest.mock.patch.multiple(matrix, text_check=self.text_check, CACHE=self.path("cache"), COMPAT="true",
                                                   GUESTS=self.script("guests", ROWS), FETCH=self.script("fetch", KERNELS)),
                      unittest.mock.patch.object(matrix.Matrix, "load_verdict", self.load_verdict)):
            patch.start()
            self.addCleanup(patch.stop)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def script(self, name, text):
        with open(self.path(name), "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(file.name, 0o755)
        return file.name

    def matrix(self, **options):
        return matrix.Matrix(Options(**options), self.path("logs"))

    def quietly(self, function, *arguments):
        """(what the function returns, what it and its processes print)"""
        with output_to(self.path("output")):
            returned = function(*arguments)
        return returned, text_of(self.path("output"))

    def counted(self, log, status):
        """((passed, failed, skipped) of a guest, output)"""
        self.script("logs/6.1--.log", log)
        run = self.matrix()
        _, told = self.quietly(run.guest_count, Guest("6.1", "-", []), status)
        return (run.passed, run.failed, run.skipped), told

    def test_count(self):  # the check of offsets is one more test
        log = "1 passed, 1 failed, 1 skipped\nok\n7 passed, %d failed, 2 skipped\n"
        self.assertEqual(self.counted(log % 0, 0), ((8, 0, 2), ""))
        self.assertEqual(self.counted(log % 3, 1), ((8, 3, 2), ""))
        self.assertEqual(self.counted(log % 10, 1), ((8, 10, 2), ""))
        counts, told = self.counted(log % 0, 125)
        self.assertEqual(counts, (8, 1, 2))
        self.assertIn("FAILED: 6.1--: exit status 125\n", told)

    def test_count_without_result(self):
        self.assertEqual(self.counted("so 7 passed, 0 failed, 0 skipped\n", 124)[0], (1, 1, 0))

    def test_count_of_offsets(self):
        self.text_check.side_effect = Failed("FAILED: plan 3")
        counts, told = self.counted("7 passed, 0 failed, 0 skipped\n", 0)
        self.assertEqual(counts, (7, 1, 0))
        self.assertIn("FAILED: 6.1--: offsets in programs: FAILED: plan 3\n", told)

    def test_loaded_programs_are_remembered(self):
        self.load_verdict.side_effect = None
        for log, status, times in ("ok programs of host: 3", 1, 0), ("so ok programs of x", 0, 0), ("a\nok programs of host: 3", 0, 1):
            self.counted(log + "\n7 passed, 0 failed, 0 skipped\n", status)
            self.assertEqual(self.load_verdict.call_count, times)
        self.load_verdict.assert_called_with("--passed", "6.1")

    def test_absent(self):
        for allowed, counts in (["vm-5.10"], (0, 1, 0)), (["x", "vm-5.1"], (0, 0, 1)), (["all"], (0, 0, 1)):
            run = self.matrix(allow_skip=allowed)
            _, told = self.quietly(run.absent, "vm-5.1", "no such")
            self.assertEqual((run.passed, run.failed, run.skipped), counts)
            self.assertIn("skipped: no such\n" if counts[2] else "FAILED: no such; --allow-skip vm-5.1 if that is right\n", told)

    def test_load(self):
        os.makedirs(self.path("logs/programs"))
        run = self.matrix()
        run.directories = {"4.9": "/kernels/4.9"}
        guest = Guest("4.9", "-", ["load", "auto"])
        self.assertEqual(run.guest_command(guest)[-2:], ["load", "auto"])
        self.assertTrue(os.path.isdir(self.path("logs/4.9--/programs")))
        self.load_verdict.side_effect = None
        self.assertEqual(run.guest_command(guest)[-2:], [matrix.program("-", "tests/workload/workload"), "auto"])
        self.assertFalse(os.path.isdir(self.path("logs/4.9--/programs")))

    def test_offsets(self):
        os.makedirs(self.path("gcc/tests/text"))
        os.makedirs(self.path("4.9/root/usr/src/kernels/4.9.229"))
        self.script("gcc/tests/text/header_offsets", "#!/bin/sh\necho ${1##*/} $2 >$3\n")
        run = self.matrix()
        run.directories = {"4.9": self.path("4.9"), "6.1": self.path("6.1")}
        with unittest.mock.patch.object(matrix, "BUILD", self.path("gcc")):
            for kernel in run.directories:
                run.guest_command(Guest(kernel, "-", ["auto"]))
        self.assertEqual(text_of(self.path("logs/4.9--/offsets")), "4.9.229 4.9.229\n")
        self.assertEqual(os.listdir(self.path("logs/6.1--")), [])

    def test_export(self):
        check = self.path("gcc/tests/text/text_check")
        os.makedirs(os.path.dirname(check))
        self.script("gcc/tests/text/text_check", "")
        with unittest.mock.patch.object(matrix, "BUILD", self.path("gcc")):
            for failure, calls, counts in (Failed("x"), 1, (0, 1, 1)), (None, 2, (0, 0, 1)), (None, 2, (0, 0, 1)):
                self.text_check.side_effect = failure
                run = self.matrix()
                self.quietly(run.programs_export, ["-", "sid"])
                self.assertEqual((run.passed, run.failed, run.skipped), counts)
                self.assertEqual(self.text_check.call_count, calls)  # programs that are newer than text_check are not made again
                self.assertEqual(os.listdir(self.path("logs/programs")), [] if failure else ["host"])
                os.utime(check, (1, 1))

    def test_run(self):
        """4.9 was not provided, 6.12 can't be had, there are no trees."""
        with unittest.mock.patch.object(matrix, "BOOT", self.script("boot", "#!/bin/sh\necho 3 passed, 0 failed, 1 skipped\n")):
            status, told = self.quietly(self.matrix(all=True, allow_skip=["tree-sid"], guests=["4.9", "5.10", "6.12", "sid"]).run)
        self.assertEqual(status, 1)
        for line in ("FAILED: the kernel 6.12 can't be had; --allow-skip vm-6.12 if that is right",
                     "skipped: no tsnap in %s/trees/sid/build/gcc for a guest with sid" % self.path("cache"),
                     "5.10 on this machine's root: started",
                     "\n==== 5.10--\n3 passed, 0 failed, 1 skipped\n"):
            self.assertIn(line, told)
        self.assertTrue(told.endswith("\n\n5 passed, 2 failed, 3 skipped\n"), told)

    def test_guest_that_cannot_be_prepared(self):
        run = self.matrix(guests=["5.10/-"])
        with unittest.mock.patch.object(matrix.Matrix, "guest_command", side_effect=Failed("not what is here")):
            _, told = self.quietly(run.run)
        self.assertIn("FAILED: 5.10--: exit status 1\n", told)
        self.assertIn("not what is here\n", text_of(self.path("logs/5.10--.log")))

    def test_ended(self):
        for number, status in (signal.SIGTERM, 143), (signal.SIGHUP, 143), (signal.SIGINT, 130):
            told = self.path("told-%d" % number)
            self.script("rows", "5.10 - auto\nsid - auto\n")
            command = [sys.executable, "-B", "-c", ENDED, self.path("rows"), matrix.FETCH, self.script("boot", STARTED % (told, told)),
                       self.path("logs")]
            process = subprocess.Popen(command, cwd=matrix.HERE, stderr=subprocess.DEVNULL, preexec_fn=ended_by_signals)
            deadline = time.monotonic() + 60
            while (not os.path.exists(told) or text_of(told).count("started") < 2) and time.monotonic() < deadline:
                time.sleep(0.05)
            process.send_signal(number)
            self.assertEqual(process.wait(60), status)
            while text_of(told).count("ended") < 2 and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertEqual(sorted(text_of(told).split()), ["ended"] * 2 + ["started"] * 2)


if __name__ == "__main__":
    unittest.main()
