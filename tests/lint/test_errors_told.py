"""errors-told on small texts: it finds returns that fail without a message, and ends of processes that are not in KNOWN."""
import importlib.machinery
import importlib.util
import os
import tempfile
import unittest

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "errors-told")
loader = importlib.machinery.SourceFileLoader("errors_told", PATH)
spec = importlib.util.spec_from_loader(loader.name, loader)
told = importlib.util.module_from_spec(spec)
loader.exec_module(told)

FUNCTION = """
/* Opens it%s. */
static int file_open(const char *path,
		     struct error *e)
{
	if (!path)
		return error_set(e, EINVAL, EXIT_USAGE, "no path");
%s
}
"""


def lines(body, comment=""):
    return told.unwound(FUNCTION % (comment, body))


class Told(unittest.TestCase):
    def test_without_words(self):
        self.assertEqual(lines("\treturn -ENOENT;"), [8])
        self.assertEqual(lines("\tif (open(path, 0) < 0)\n\t\treturn -errno;\n\treturn 0;"), [9])

    def test_words_of_another_way(self):
        self.assertEqual(lines("\tif (parse(path, e))\n\t\treturn 1;\n\treturn -EIO;"), [10])

    def test_with_words(self):
        self.assertEqual(lines("\tif (parse(path, e))\n\t\treturn -EIO;\n\treturn 0;"), [])
        self.assertEqual(lines("\terror_set(e, EIO, EXIT_FAILED, path);\n\tfree(path);\n\treturn -EIO;"), [])
        self.assertEqual(lines("\treturn -EINTR;"), [])
        self.assertEqual(lines("\treturn -ENOENT;", ", or -ENOENT without words"), [])

    def test_functions_without_error(self):
        self.assertEqual(told.unwound("int f(int fd)\n{\n\treturn -EIO;\n}\n"), [])

    def test_ends(self):
        self.assertEqual(told.ends("/* exit(1) */\n_exit(1); pthread_exit(NULL); at.exit(); abort();"), 2)

    def test_tree(self):
        with tempfile.TemporaryDirectory() as top:
            for name, count in told.KNOWN.items():
                os.makedirs(os.path.join(top, os.path.dirname(name)), exist_ok=True)
                with open(os.path.join(top, name), "w", encoding="utf-8") as file:
                    file.write("_exit(1);\n" * count)
            self.assertEqual(told.main(["", top]), 0)
            with open(os.path.join(top, "x.c"), "w", encoding="utf-8") as file:
                file.write("exit(1);")
            self.assertEqual(told.main(["", top]), 1)
            os.remove(os.path.join(top, "x.c"))
            os.remove(os.path.join(top, sorted(told.KNOWN)[0]))
            self.assertEqual(told.main(["", top]), 1)


if __name__ == "__main__":
    unittest.main()
