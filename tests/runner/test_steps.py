"""steps.py: what counts as passed, failed and skipped."""
import os
import sys
import tempfile
import time
import unittest
import unittest.mock

import steps

CTEST = """Test project /build
      Start  1: unit.test_base
 1/6 Test  #1: unit.test_base ...................   Passed    0.01 sec
 2/6 Test  #2: unit.service .....................***Skipped   0.02 sec
 3/6 Test  #3: unit.test_proc ...................***Failed    0.03 sec
main.c: 1/2 Test: no line of ctest, Passed
 4/6 Test #14: unit.test_sock_diag ..............***Exception: SegFault  0.10 sec
 5/6 Test  #5: unit.other .......................***Not Run (Disabled)   0.00 sec
 6/6 Test  #6: unit.absent ......................***Not Run   0.00 sec

33% tests passed, 3 tests failed out of 6
"""


class StepsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.steps = steps.Steps("some", self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def quietly(self, function, *arguments):
        """Output of the function and of the processes that it starts."""
        with steps.output_to(self.path("output")):
            function(*arguments)
        return steps.text_of(self.path("output"))

    def counts(self):
        return self.steps.passed, self.steps.failed, self.steps.skipped

    def driver(self, script):
        return self.quietly(self.steps.driver, "sh", "-c", script)

    def test_ctest_lines(self):
        self.assertEqual(steps.ctest_counts(CTEST), (1, 3, 2))
        self.assertEqual(steps.ctest_counts("No tests were found!!!\n"), (0, 0, 0))

    def test_ctest_within(self):
        os.mkdir(self.path("tree"))
        script = 'pwd; echo "$@"; echo "1/1 Test #1: a ... Passed 0.0 sec"; exit 8'
        output = self.quietly(self.steps.ctest, "tree", "^unit$", "sh", "-c", script)
        self.assertIn(self.path("tree") + "\n--output-on-failure -L ^unit$ -j", output)
        self.assertEqual(self.counts(), (1, 1, 0))  # ctest failed, although none of its tests did

    def test_tree_is_built_once_in_a_run(self):
        os.mkdir(self.path("bin"))
        with open(self.path("bin/cmake"), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n[ $1 = --build ] || echo configured >>%s\n" % self.path("calls"))
        os.chmod(file.name, 0o755)
        with unittest.mock.patch.dict(os.environ, PATH=self.path("bin") + ":" + os.environ["PATH"]):
            for since, calls in (time.time() - 1, 1), (time.time() - 1, 1), (time.time() + 60, 2):
                self.quietly(steps.Steps("some", self.folder, since).build_tree, "tree")
                self.assertEqual(len(steps.text_of(self.path("calls")).splitlines()), calls)

    def test_driver(self):
        output = self.driver("echo 1 passed, 1 failed, 1 skipped; echo more >&2; echo 7 passed, 0 failed, 2 skipped")
        self.assertIn("more\n", output)
        self.assertEqual(self.counts(), (7, 0, 2))

    def test_driver_failed(self):
        self.driver("echo 7 passed, 2 failed, 0 skipped; exit 1")
        self.assertEqual(self.counts(), (7, 2, 0))

    def test_driver_failed_although_no_test_did(self):
        output = self.driver("echo 7 passed, 0 failed, 0 skipped; exit 3")
        self.assertIn("exit status 3", output)
        self.assertEqual(self.counts(), (7, 1, 0))

    def test_driver_without_result(self):
        for script in "exit 0", "echo so 7 passed, 0 failed, 0 skipped", "exit 5":
            self.assertIn("no result line", self.driver(script))
        self.assertEqual(self.counts(), (0, 3, 0))

    def test_driver_that_cannot_run(self):
        self.driver("exit 77")
        self.assertEqual(self.counts(), (0, 0, 1))

    def test_check(self):
        def skip():
            raise steps.Skipped("it rains")
        for function, arguments in (steps.call, ["true"]), (steps.call, ["false"]), (steps.call, ["/no/such/program"]), (skip, []):
            self.quietly(self.steps.check, "one", function, *arguments)
        self.assertEqual(self.counts(), (1, 2, 1))
        self.assertIn("skipped: one: it rains", self.quietly(self.steps.check, "one", skip))

    def test_answer(self):
        self.assertEqual(steps.answer("echo", "some words"), "some words")
        self.assertRaises(steps.Failed, steps.answer, "false")

    def test_failure_show(self):
        log = self.path("log")
        with open(log, "wb") as file:
            file.write(b"a.c:1: error: first\n" + b"\xff\n" * 30 + b"make: last\n")
        lines = self.quietly(steps.failure_show, log).splitlines()
        self.assertEqual([lines[0], lines[1], lines[-1], len(lines)], ["a.c:1: error: first", "... the end of %s:" % log, "make: last", 22])

    def test_output_to_ends(self):
        self.quietly(print, "inside")
        with steps.output_to(self.path("outer")):
            self.assertEqual(self.quietly(print, "inside"), "inside\n")
            print("outside")
            print("error", file=sys.stderr, flush=True)
        self.assertCountEqual(steps.text_of(self.path("outer")).split(), ["outside", "error"])


if __name__ == "__main__":
    unittest.main()
