#!/usr/bin/env python3
"""facts.py: the contents that it finds in an output, and the words that it leaves out."""
import unittest

import facts

REPORT = """tsnap, replay of small.csv, 2026-11-20 20:42:53.000 to 20:42:53.100 UTC
2 scans in 0.10 s, 20.00 Hz

AVG_THR  SECONDS  SHARE              COMM        WAITS_ON
   1.00     0.10   50.0% #####       #!          lock on /var/lib/b
   0.50     0.05   25.0% ##          a       -

Missed: 3 rows; see --check

D db           |+ +|
"""
FLAME = """<svg xmlns="http://www.w3.org/2000/svg"><title>Flame graph: x</title><text class="minor">2 scans of a.csv</text>
<g><title>main
program, 1.5 s</title><rect x="0%" y="18" width="60%" fill="#fff"/><rect class="off" x="0%" y="18" width="20%"/><text>main</text></g></svg>"""


class Facts(unittest.TestCase):
    def test_report(self):
        self.assertEqual(facts.of_report(REPORT), [
            "small.csv 2026-11-20 20:42:53.000 20:42:53.100", "2 0.10 20.00", "AVG_THR | SECONDS | SHARE | COMM | WAITS_ON",
            "1.00 | 0.10 | 50.0% | #! | lock on /var/lib/b", "0.50 | 0.05 | 25.0% | a | -", "3 --check", "D db           |+ +|"])

    def test_words_do_not_matter_but_rows_and_numbers_do(self):
        facts_of = facts.of_report(REPORT)
        self.assertEqual(facts.of_report(REPORT.replace("rows", "lines").replace("replay", "report")), facts_of)
        for old, new in (("3 rows", "4 rows"), ("50.0%", "50.1%"), ("#!", "#?"), ("/b", "/c"), ("0.05   25.0% ##          a       -\n", ""),
                         ("small", "large"), ("+ +", "+  "), ("Missed", "and\nMissed")):
            self.assertNotEqual(facts.of_report(REPORT.replace(old, new)), facts_of, old)

    def test_csv_and_json(self):
        self.assertEqual(facts.of_output(["--csv"], b'a,b\n"x, ""y""",1\n'), ['"a", "b"', '"x, \\"y\\"", "1"'])
        self.assertEqual(facts.of_output(["--json"], b'{"a": null}\n{"a": "\xc3\xb6"}\n'), ['{"a": null}', '{"a": "\xf6"}'])
        with self.assertRaises(AssertionError):
            facts.of_csv("a,b\n1\n")
        with self.assertRaises(ValueError):
            facts.of_json("{")

    def test_flame(self):
        self.assertEqual(facts.of_flame(FLAME), ["Flame graph: x", "2 a.csv", "main | y 18 | program | 1.5 | 0%+60% | 0%+20% off"])


if __name__ == "__main__":
    unittest.main()
