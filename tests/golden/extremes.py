#!/usr/bin/env python3
"""Recordings with the most extreme numbers, times and texts in each column of each kind of frame.

    extremes.py TSNAP [unittest's arguments]

Each form of output ends in order, also under the sanitizers. Where no number of the recording is negative, none of the output is: sums
saturate. A row is replayed, or counted as one that can't be read.
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

TSNAP = os.path.abspath(sys.argv.pop(1))
KINDS = ["samples", "scans", "stacks", "events", "distributions", "host", "archive", "archivescans"]
TIME = '"2026-11-20T20:42:%02d.000000Z"'
SCANS = 7  # one for each column of a scan but its time, and two more
HOST = "timestamp,format,version,host,kernel,machine,cpus,rate_hz,boot_id,boot_us,timezone,source,command"
STACKS = {"hash": "hex", "kind": "text", "func": "text", "funcs": "text", "frames": "text", "files": "text"}
SCAN_COLUMNS = ["timestamp", "weight_us", "samples", "threads", "missing", "clock_step_us"]
FORMS = ["-a", "-a -i 1", "-a --stacks --by comm,state -G times,error", "-a --by-time 1s --by state", "-a --heatmap --by-time 1s --by comm",
         "-a --folded", "-a --flame -", "-a --html -", "--html -", "-a --chains", "-a --metrics -", "-a --pprof -", "-a --csv -g ALL", "-a --json -g ALL",
         "-a --csv --report -G ALL", "-a --json --report -i 1 -G ALL"]
# numbers, times and hexadecimal numbers of one extreme
EXTREMES = [(str(2**63 - 1), "9999-12-31T23:59:59.999999Z", "0x7fffffffffffffff"),
            (str(2**63), "9999-12-31T23:59:60.000000Z", "0xffffffffffffffff"),
            ("320000000000000000", "2026-11-20T20:42:00.000000Z", "0x1"),
            (str(-2**63), "0000-01-01T00:00:00.000000Z", "0x8000000000000000"),
            (str(1 - 2**63), "0001-01-01T00:00:00.000000Z", "0x8000000000000001"),
            ("-1", "1970-01-01T00:00:00.000000Z", "-0x1"), ("0", "1969-12-31T23:59:59.999999Z", "0x0"), ("", "", "")]


def tsnap(*arguments):
    environment = dict(os.environ, LC_ALL="C", TZ="UTC")
    return subprocess.run([TSNAP, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, env=environment)


def columns():
    """Columns of samples, and their types."""
    rows = [json.loads(line) for line in tsnap("--list", "--json").stdout.splitlines()]
    return {row["name"]: row["type"] for row in rows if row["list"] == "column" and row["in_report"] != "measure"}


def frame(kind, rows, times=(0, 0)):
    """A frame with its head, see src/recording/frame.h; without times: a header line."""
    packed = subprocess.run(["zstd", "-qc", "--stream-size=%d" % len(rows)], input=rows, capture_output=True, check=True, timeout=60).stdout
    head = struct.pack("<II8sIHHqqQQ", 0x184d2a5e, 56, b"tsnaprec", 1, kind, times == (0, 0), *times, len(packed), len(rows))
    check = 0xcbf29ce484222325
    for byte in head:
        check = (check ^ byte) * 0x100000001b3 & (1 << 64) - 1
    return head + struct.pack("<Q", check) + packed


def usual(name, kind, second):
    """A usual value of a column."""
    if kind == "time":
        return TIME % second
    if name in ("state", "kind"):
        return '"S"' if name == "state" else '"user"'
    return {"integer": "1000", "hex": '"0x1"'}.get(kind, '"x"')


def extreme(kind, values):
    number, time, hexadecimal = values
    if kind == "time":
        return '"%s"' % time if time else ""
    if kind == "hex":
        return '"%s"' % hexadecimal if hexadecimal else ""
    return number if kind == "integer" else '"%s"' % number


def rows_of(table, values, per_scan):
    """Rows in order of their times, but for the last ones: each column has the extreme once, all but the time have it in another row.
    per_scan: as many rows for each scan, of samples; else one."""
    usually = {name: usual(name, kind, 0) for name, kind in table.items()}
    rows = [{name: extreme(table[name], values)} for name in table if table[name] != "time"]
    rows += [{}, {name: extreme(kind, values) for name, kind in table.items() if kind != "time" and name not in ("state", "kind")}]
    times = [{name: extreme("time", values)} for name in table if table[name] == "time"]
    for second in range(SCANS):
        now = dict(usually, timestamp=TIME % second)
        for row in rows if per_scan else rows[second:second + 1]:
            yield {**now, **row}
    for row in times:
        yield {**usually, **row}


def content(table, values, per_scan):
    return ["".join(",".join(row[name] for name in table) + "\n" for row in rows_of(table, values, per_scan)), ",".join(table) + "\n"]


class Extremes(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name

    def write(self, kind, table, values):
        rows, header = content(table, values, not kind.endswith("scans"))
        number = KINDS.index(kind)
        times = (1, 2**62)  # the head does not say what is in the rows
        with open("%s/db1_20261120T20Z-001.%s.csv.zst" % (self.place, kind), "wb") as file:
            file.write(frame(number, header.encode()) + frame(number, rows.encode(), times))
        return rows.count("\n")

    def check_forms(self, values, every, what):
        for form in FORMS:
            words = form.replace("ALL", ",".join(every)).split()
            done = tsnap("--replay", self.place, *words)
            said = done.stderr.decode()
            with self.subTest(what=what, form=form, said=said):
                self.assertIn(done.returncode, (0, 1))
                self.assertTrue(all(line.startswith("tsnap: ") for line in said.splitlines()))
                if not values[0].startswith("-") and not form.endswith("-"):  # else they have programs, or are packed
                    self.assertIsNone(re.search(rb".{0,60}(?<![\w.:/+-])-\d.{0,40}", done.stdout))
            yield form, done

    def test_frames_that_unpack_to_much(self):
        """128 kB of files that unpack to 1.5 GB, 256 MB for each stream: one frame costs no more memory than usual ones."""
        with open(TSNAP, "rb") as file:
            if b"__asan_init" in file.read():
                self.skipTest("the sanitizers' own memory is more than that")
        tables = {"stacks": STACKS, "host": {name: "text" for name in HOST.split(",")},
                  "scans": {"timestamp": "time", "weight_us": "integer", "samples": "integer", "threads": "integer"},
                  "samples": {"timestamp": "time", "weight_us": "integer", "tid": "integer", "state": "text", "ustack": "hex", "comm": "text"}}
        for kind in ("samples", "scans", "stacks", "host", "archive", "archivescans"):
            table = tables[kind.replace("archivescans", "scans").replace("archive", "samples")]
            row = ",".join(usual(name, kind_of, 0) for name, kind_of in table.items()).encode()
            row += b"" if kind.endswith("scans") else b',"%s"' % (b"x" * 8000)
            header = ",".join(table) + ("" if kind.endswith("scans") else ",unknown")
            rows = (row + b"\n") * (20000 if kind.endswith("scans") else (256 << 20) // (len(row) + 1))
            with open("%s/db1_20261120T20Z-001.%s.csv.zst" % (self.place, kind), "wb") as file:
                file.write(frame(KINDS.index(kind), header.encode() + b"\n") + frame(KINDS.index(kind), rows, (1, 2**62)))
        code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);" \
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        done = subprocess.run([sys.executable, "-c", code, TSNAP, "--replay", self.place, "-a", "--by", "ufunc"],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=True)
        self.assertLess(int(done.stdout), 256 << 10)

    def test_each_column_of_each_kind(self):
        samples = columns()
        scans = {name: "integer" if name != "timestamp" else "time" for name in SCAN_COLUMNS}
        host = {name: {"timestamp": "time", "format": "integer", "cpus": "integer", "rate_hz": "integer",
                       "boot_us": "integer"}.get(name, "text") for name in HOST.split(",")}
        for values in EXTREMES:
            for kinds in (["samples"], ["samples", "scans", "stacks", "host", "archive", "archivescans"]):
                for name in os.listdir(self.place):
                    os.unlink(os.path.join(self.place, name))
                for kind in kinds:
                    table = {"stacks": STACKS, "host": host}.get(kind, scans if kind.endswith("scans") else samples)
                    written = self.write(kind, table, values)
                    if kind == "samples":
                        rows = written
                for form, done in self.check_forms(values, samples, (values, kinds)):
                    if form != "-a --csv -g ALL" or len(kinds) > 1:
                        continue
                    bad = re.search(r"missed: (\d+) rows? of the recording can't be read", done.stderr.decode())
                    self.assertEqual(done.stdout.count(b"\n") - 1 + int(bad.group(1) if bad else 0), rows, values)


if __name__ == "__main__":
    unittest.main()
