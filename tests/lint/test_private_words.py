"""private-words on small texts: what is one, where it stands, and that the list of known files only becomes shorter."""
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
        self.assertEqual(words.found("int case_births; heartbeat, houses"), [])

    def test_tree(self):
        with tempfile.TemporaryDirectory() as top:
            known = os.path.join(top, sorted(words.KNOWN)[0])
            os.makedirs(os.path.dirname(known))
            with open(known, "w", encoding="utf-8") as file:
                file.write("at a beat")
            self.assertEqual(words.main(["", top]), 0)
            with open(os.path.join(top, "src", "x.c"), "w", encoding="utf-8") as file:
                file.write("its deaths")
            self.assertEqual(words.main(["", top]), 1)
            os.remove(os.path.join(top, "src", "x.c"))
            with open(known, "w", encoding="utf-8") as file:
                file.write("at a tick")
            self.assertEqual(words.main(["", top]), 1)


if __name__ == "__main__":
    unittest.main()
