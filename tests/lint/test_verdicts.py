"""verdicts.py on small commands: which are run again, and which are not."""
import contextlib
import io
import os
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import verdicts  # noqa: E402


class OneCommand(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.input = self.path("input")
        self.write("one")
        self.environment = dict(TSNAP_TEST_VERDICTS=self.path("verdicts"), TSNAP_TEST_KNOWN=self.path("known"))

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, text):
        with open(self.input, "w", encoding="ascii") as file:
            file.write(text)

    def runs(self, script, inputs=None):
        """(exit status, True if the script was run)"""
        ran = self.path("ran")
        if os.path.exists(ran):
            os.remove(ran)
        verdicts.file_hash.cache_clear()
        with unittest.mock.patch.dict(os.environ, self.environment), contextlib.redirect_stdout(io.StringIO()):
            code = verdicts.main(["", *(inputs or [self.input]), "--", "sh", "-c", ": >%s; %s" % (ran, script)])
        return code, os.path.exists(ran)

    def test_passed(self):
        self.assertEqual(self.runs("true"), (0, True))
        self.assertEqual(self.runs("true"), (0, False))
        with open(self.path("known"), encoding="ascii") as file:
            self.assertEqual(len(file.readlines()), 1)

    def test_another_input(self):
        self.assertEqual(self.runs("true"), (0, True))
        self.write("two")
        self.assertEqual(self.runs("true"), (0, True))
        self.write("one")
        self.assertEqual(self.runs("true"), (0, False))

    def test_another_command(self):
        self.assertEqual(self.runs("true"), (0, True))
        self.assertEqual(self.runs("true again"), (0, True))

    def test_failed_and_skipped(self):
        for code in (1, 77):
            self.assertEqual(self.runs("exit %d" % code), (code, True))
            self.assertEqual(self.runs("exit %d" % code), (code, True))
        self.assertEqual(self.runs("kill -9 $$"), (137, True))

    def test_folder(self):
        os.mkdir(self.path("corpus"))
        self.assertEqual(self.runs("true", [self.path("corpus")]), (0, True))
        self.assertEqual(self.runs("true", [self.path("corpus")]), (0, False))
        self.input = self.path("corpus/more")
        self.write("")
        self.assertEqual(self.runs("true", [self.path("corpus")]), (0, True))

    def test_output(self):
        output = self.path("output")
        self.assertEqual(self.runs("echo told >" + output, ["--output", output, self.input]), (0, True))
        os.remove(output)
        self.assertEqual(self.runs("echo told >" + output, ["--output", output, self.input]), (0, False))
        with open(output, encoding="ascii") as file:
            self.assertEqual(file.read(), "told\n")

    def test_asked_and_told(self):
        def told(option):
            verdicts.file_hash.cache_clear()
            with unittest.mock.patch.dict(os.environ, self.environment), contextlib.redirect_stdout(io.StringIO()):
                return verdicts.main(["", option, self.input, "--", "load"])
        self.assertEqual([told("--known"), told("--passed"), told("--known")], [1, 0, 0])
        self.write("two")
        self.assertEqual(told("--known"), 1)

    def test_no_folder_of_verdicts(self):
        self.environment["TSNAP_TEST_VERDICTS"] = ""
        self.assertEqual(self.runs("true"), (0, True))
        self.assertEqual(self.runs("true"), (0, True))


if __name__ == "__main__":
    unittest.main()
