#!/usr/bin/env python3
"""--metrics: promtool accepts it, it stays within its bounds, and its sums are those of a report.

    metrics.py TSNAP [unittest's arguments]
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TSNAP = os.path.abspath(sys.argv.pop(1))
FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures")
LINE = re.compile(r'(?P<name>[a-z_]+)(?:\{(?P<labels>(?:[a-z_]+="(?:[^"\\]|\\["\\n])*",?)*)\})? (?P<value>\d+(?:\.\d+)?)')


def metrics(*arguments):
    """({(name, labels): value}, text) of the metrics that tsnap writes."""
    done = subprocess.run([TSNAP, "--metrics", "-", *arguments], cwd=FIXTURES, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done
    series = {}
    for line in done.stdout.decode().splitlines():
        if line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        assert match, line
        key = (match["name"], match["labels"])
        assert key not in series, line
        series[key] = float(match["value"])
    return series, done.stdout


def seconds(series):
    return sum(value for (name, _), value in series.items() if name == "tsnap_thread_seconds_total")


class Metrics(unittest.TestCase):
    def test_is_a_reports_time(self):
        for recording in ("small.csv", "hostile.csv", "exact.csv"):
            report = subprocess.run([TSNAP, "--replay", recording, "-a", "-g", "state"], cwd=FIXTURES, capture_output=True, timeout=60,
                                    check=True).stdout.decode()
            expected = sum(float(line.split()[1]) for line in report.split("STATE\n")[1].split("\n\n")[0].splitlines())
            self.assertAlmostEqual(seconds(metrics("--replay", recording, "-a")[0]), expected, delta=0.03, msg=recording)

    def test_bounded(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "rows.csv")
            with open(path, "w", encoding="utf-8") as file:
                file.write("timestamp,weight_us,tid,state,comm\n")
                for tid in range(1, 801):
                    file.write('"2026-11-20T20:42:00.000000Z",1000000,%d,"ON","c%d"\n' % (tid, tid))
            series = metrics("--replay", path, "-a", "-g", "comm")[0]
            self.assertEqual(len([1 for name, _ in series if name == "tsnap_thread_seconds_total"]), 501)
            self.assertEqual(series["tsnap_thread_seconds_total", 'comm="[others]"'], 300)
            self.assertEqual(seconds(series), 800)

    @unittest.skipUnless(shutil.which("promtool"), "no promtool (package prometheus)")
    def test_promtool(self):
        for recording in ("small.csv", "hostile.csv", "exact.csv"):
            done = subprocess.run(["promtool", "check", "metrics"], input=metrics("--replay", recording, "-a")[1], capture_output=True)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))


if __name__ == "__main__":
    unittest.main()
