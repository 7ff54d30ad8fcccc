#!/usr/bin/env python3
"""table.py: figures of the bench are written, read and shown."""
import os
import tempfile
import unittest

import table
from table import Row

HOST = dict(machine='A "fast", CPU', cpus="2", kernel="6.1.0-9", date="2026-01-02", version="1.2", commit="abc", rounds="7")
ALONE = [
    ("operations", HOST, Row("a call", "tsnap", 1.0049, "ratio", 0.99, 1.011, 1, "118 ns without")),
    ("operations", HOST, Row("no pipe", "tsnap", None, "ratio", aim=1.15, remark="needs two CPUs")),
    ("start", HOST, Row("start", "tsnap", 0.25, "s", aim=0.3)),
    ("start", HOST, Row("groups", "tsnap", 12345678, "samples/s", aim=1e7)),
]
MANY = [
    ("tracers", HOST, Row("a call", "tsnap", 1, "ratio", remark="all, of it")),
    ("tracers", HOST, Row("a call", "peer|1", 1.5, "ratio", remark="some\nof it")),
    ("tracers", HOST, Row("size", "peer|1", 14.04, "MB", remark="some\nof it")),
    ("tracers", HOST, Row("", "peer 2", None, "", remark="not here: why")),
]
HEAD = ('Linux 6.1.0-9, A "fast", CPU, 2 CPUs; 2026-01-02; tsnap 1.2 (abc). Medians of 7 interleaved rounds; ratios to no '
        'tool at all.\n\n')
ALONE_SHOWN = """\
| what | tsnap | spread, remarks | aim |
| --- | --- | --- | --- |
| a call | 1.00 | 0.99 to 1.01; 118 ns without | at most 1.00 |
| no pipe |  | needs two CPUs | at most 1.15 |
| start | 0.25 s |  | under 0.3 s |
| groups | 12,345,678 samples/s |  | at least 10,000,000 samples/s |
"""
MANY_SHOWN = """\
| tool | a call | size | what it does, remarks |
| --- | --- | --- | --- |
| tsnap | 1.00 |  | all, of it |
| peer\\|1 | 1.50 | 14.0 MB | some of it |
| peer 2 |  |  | not here: why |
"""


class Shown(unittest.TestCase):
    def test_tsnap_alone(self):
        self.assertEqual(table.markdown(ALONE), HEAD + ALONE_SHOWN)

    def test_many_tools(self):
        self.assertEqual(table.markdown(MANY), HEAD + MANY_SHOWN)

    def test_one_head_for_one_host(self):
        self.assertEqual(table.markdown(ALONE + MANY), HEAD + ALONE_SHOWN + "\n" + MANY_SHOWN)

    def test_a_head_for_each_host(self):
        other = [(part, dict(HOST, kernel="6.2.0"), row) for part, _, row in MANY]
        self.assertEqual(table.markdown(ALONE + other),
                         HEAD + ALONE_SHOWN + "\n" + HEAD.replace("6.1.0-9", "6.2.0") + MANY_SHOWN)

    def test_parts_that_were_renewed(self):
        later = [(part, dict(HOST, date="2026-01-03", commit="def"), row) for part, _, row in ALONE[2:]]
        self.assertEqual(table.markdown(ALONE[:2] + later),
                         HEAD.replace("-02;", "-02 to 2026-01-03;").replace("(abc)", "(abc, def)") + ALONE_SHOWN)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "file")

    def write(self, text):
        with open(self.path, "w") as file:
            file.write(text)

    def text(self):
        with open(self.path, newline="") as file:
            return file.read()

    def test_csv_keeps_all(self):
        table.csv_write(self.path, ALONE + MANY)
        self.assertEqual(table.csv_read(self.path), ALONE + MANY)

    def test_csv_is_rfc_4180(self):
        table.csv_write(self.path, ALONE[:1])
        self.assertEqual(self.text().split("\r\n"), [
            "part,what,tool,value,unit,low,high,aim,remark,machine,cpus,kernel,date,version,commit,rounds",
            'operations,a call,tsnap,1.0049,ratio,0.99,1.011,1,118 ns without,"A ""fast"", CPU",2,6.1.0-9,2026-01-02,1.2,abc,7',
            ""])

    def test_other_files_are_refused(self):
        self.write("what,tsnap\n1,2\n")
        with self.assertRaisesRegex(table.Mistake, "not a bench's CSV"):
            table.csv_read(self.path)

    def test_unknown_unit_is_refused(self):
        table.csv_write(self.path, [("start", HOST, Row("start", "tsnap", 1, "parsec"))])
        with self.assertRaisesRegex(table.Mistake, "no unit is called parsec"):
            table.csv_read(self.path)

    def test_readme(self):
        self.write("before\n<!-- bench -->\nold \\1\n<!-- /bench -->\nafter\n")
        for _ in range(2):
            table.readme_write(self.path, ALONE)
            self.assertEqual(self.text(), "before\n<!-- bench -->\n" + HEAD + ALONE_SHOWN + "<!-- /bench -->\nafter\n")

    def test_readme_without_its_place_stays(self):
        self.write("<!-- bench -->\nno end\n")
        with self.assertRaisesRegex(table.Mistake, "one place"):
            table.readme_write(self.path, ALONE)
        self.assertEqual(self.text(), "<!-- bench -->\nno end\n")


if __name__ == "__main__":
    unittest.main()
