"""tidy finds the files that a source includes, whether ninja or make built it."""
import importlib.machinery
import importlib.util
import os
import tempfile
import unittest

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tidy")
loader = importlib.machinery.SourceFileLoader("tidy", PATH)
tidy = importlib.util.module_from_spec(importlib.util.spec_from_loader("tidy", loader))
loader.exec_module(tidy)

DEPS = """ninja: Entering directory `build'
src/a.dir/a.c.o: #deps 2, deps mtime 1795760075087563683 (VALID)
    ../src/a.c
    include/a.h

src/b.dir/b.c.o: #deps 1, deps mtime 1795760075087563683 (VALID)
    ../src/b.c

"""


class Included(unittest.TestCase):
    def entry(self, folder, name):
        return {"directory": folder, "command": "clang -o src/%s.dir/%s.c.o -c ../src/%s.c" % (name, name, name)}

    def test_ninja(self):
        kept = tidy.deps_of_ninja(DEPS)
        self.assertEqual(kept, {"src/a.dir/a.c.o": ["../src/a.c", "include/a.h"], "src/b.dir/b.c.o": ["../src/b.c"]})
        self.assertEqual(tidy.included(self.entry("/build", "a"), kept), ["/build/../src/a.c", "/build/include/a.h"])

    def test_make(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "src/a.dir"))
            with open(os.path.join(folder, "src/a.dir/a.c.o.d"), "w", encoding="ascii") as rule:
                rule.write("src/a.dir/a.c.o: ../src/a.c \\\n include/a.h\n")
            self.assertEqual(tidy.included(self.entry(folder, "a"), {}), [folder + "/../src/a.c", folder + "/include/a.h"])
            self.assertIsNone(tidy.included(self.entry(folder, "b"), {}))


if __name__ == "__main__":
    unittest.main()
