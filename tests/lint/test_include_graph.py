"""include-graph on small trees: cycles that it finds, and the effect of a list of known ones."""
import os
import subprocess
import sys
import tempfile
import unittest

GRAPH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "include-graph")


class Tree(unittest.TestCase):
    def graph(self, known, **files):
        """Runs include-graph on files: a__b_h="c/d.h" is a/b.h that includes c/d.h. Returns (exit code, lines)."""
        with tempfile.TemporaryDirectory() as top:
            for name, included in files.items():
                path = os.path.join(top, name.replace("__", "/")[:-2] + "." + name[-1])
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.writelines('#include "%s"\n' % other for other in included.split())
            listed = os.path.join(top, "known")
            with open(listed, "w", encoding="utf-8") as file:
                file.write(known)
            ran = subprocess.run([sys.executable, "-B", GRAPH, "--known", listed, top], stdout=subprocess.PIPE,
                                 universal_newlines=True, check=False)
        return ran.returncode, ran.stdout.splitlines()

    def test_lines(self):
        """A header and its C file are one node, and levels are printed."""
        code, lines = self.graph("", a__x_h="", a__x_c="a/x.h", b__y_h="a/x.h", b__y_c="b/y.h a/x.h stdio.h")
        self.assertEqual((code, lines), (0, ["0 a                -> ", "1 b                -> a (1)"]))

    def test_cycle(self):
        files = {"a__x_h": "", "a__x_c": "a/y.h", "a__y_h": "a/x.h", "a__y_c": ""}
        code, lines = self.graph("", **files)
        self.assertEqual((code, lines[1:]), (1, ["cycle of includes: a/x a/y"]))
        self.assertEqual(self.graph("# known\na/x a/y # both\n", **files)[0], 0)

    def test_private_header(self):
        self.assertEqual(self.graph("", a__x_h="", a__x_c="a/part.h", a__part_h="a/x.h")[0], 0)

    def test_folders(self):
        files = {"a__x_h": "b/y.h", "b__y_h": "", "b__z_c": "a/x.h"}
        code, lines = self.graph("", **files)
        self.assertEqual((code, lines[2:]), (1, ["cycle of includes: folders: a b"]))
        self.assertEqual(self.graph("folders: a b\n", **files)[0], 0)

    def test_known_is_gone(self):
        code, lines = self.graph("a/x a/y\n", a__x_h="a/y.h", a__y_h="")
        self.assertEqual(code, 1)
        self.assertIn("a/x a/y", lines[-1])

    def test_known_has_become_smaller(self):
        files = {"a__x_h": "a/y.h", "a__x_c": "", "a__y_h": "a/x.h", "a__y_c": "", "a__z_h": ""}
        self.assertEqual(self.graph("a/x a/y a/z\n", **files)[0], 1)


if __name__ == "__main__":
    unittest.main()
