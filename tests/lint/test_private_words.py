"""private-words on small texts: words that it finds, and their line numbers."""
import importlib.machinery
import importlib.util
import os
import tempfile
import unittest

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "private-words")
loader = importlib.machinery.SourceFileLoader("private_words", PATH)
spec = importlib.util.spec_from_loader(loader.name, loader)
words = importlib.util.module_from_spec(spec)
loader.exec_module(words)


class Words(unittest.TestCase):
    def test_found(self):
        self.assertEqual(words.found("one\n/* Births of it */ at each beat;"), [(2, "births"), (2, "beat")])

    def test_parts_of_others(self):
        self.assertEqual(words.found("heartbeat, houses"), [])
        self.assertEqual(words.found("int case_births;"), [(1, "births")])

    def test_tree(self):
        with tempfile.TemporaryDirectory() as top:
            os.makedirs(os.path.join(top, "src"))
            path = os.path.join(top, "src", "x.c")
            for text, failed in (("its deaths", 1), ("its exits", 0)):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                self.assertEqual(words.main(["", top]), failed)


if __name__ == "__main__":
    unittest.main()
