#!/usr/bin/env python3
"""Promises of --folded, --flame and --diff beyond exact bytes: sums, files, well-formed SVG that links to nothing outside.

    stacks.py TSNAP [unittest's arguments]
"""
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

TSNAP = os.path.abspath(sys.argv.pop(1))
FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures")
SVG = "{http://www.w3.org/2000/svg}"


def tsnap(*arguments, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([TSNAP, *arguments], cwd=FIXTURES, capture_output=True, timeout=60, **options)


def folded(*arguments):
    """{frames: weight} of the folded stacks that tsnap prints."""
    done = tsnap("--folded", *arguments)
    assert done.returncode == 0 and not done.stderr, done
    stacks = {}
    for line in done.stdout.decode().splitlines():
        frames, weight = re.fullmatch(r"(\S.*) (\d+)", line).groups()
        assert frames not in stacks
        stacks[frames] = int(weight)
    return stacks


def graph(*arguments):
    done = tsnap("--flame", "-", *arguments)
    assert done.returncode == 0 and not done.stderr, done
    return xml.etree.ElementTree.fromstring(done.stdout)


def frames_of(svg):
    """[(name, details)] of the frames of a flame graph."""
    canvas = next(one for one in svg.iter(SVG + "svg") if one.get("id") == "frames")
    return [tuple(g.find(SVG + "title").text.split("\n")) for g in canvas.findall(SVG + "g")]


class Sums(unittest.TestCase):
    def test_folded_is_all_the_time(self):
        for options in ([], ["-a"], ["--on-cpu"], ["--off-cpu"], ["-c", "db", "-a"]):
            report = tsnap("--replay", "stacks.csv", "-g", "seconds,weight_us", *options).stdout.decode()
            weight = int(report.strip().splitlines()[4].split()[-1])
            for roots in ("comm", "state,pid", "tid,comm,state"):
                self.assertEqual(sum(folded("--replay", "stacks.csv", "-g", roots, *options).values()), weight)

    def test_on_and_off_are_all(self):
        both = folded("--replay", "stacks.csv", "--on-cpu", "--off-cpu", "-g", "state")
        on, off = (folded("--replay", "stacks.csv", one, "-g", "state") for one in ("--on-cpu", "--off-cpu"))
        self.assertEqual({**on, **off}, both)
        self.assertEqual({stack.split(";")[0] for stack in on}, {"ON"})
        self.assertEqual({stack.split(";")[0] for stack in off}, {"RQ", "D", "S"})
        self.assertEqual(folded("--replay", "stacks.csv", "-a", "-g", "state"), both)

    def test_graph_tells_the_same(self):
        told = dict(frames_of(graph("--replay", "stacks.csv", "-a")))
        stacks = folded("--replay", "stacks.csv", "-a")
        for name in ("commit", "Interpreter", "ngx_worker"):
            weight = sum(weight for stack, weight in stacks.items() if name in stack.split(";"))
            self.assertGreater(weight, 0)
            self.assertTrue(told[name].startswith("program, %d.%03d s, " % divmod(weight // 1000, 1000)), told)
        self.assertTrue(told["all"].startswith("group, 5.950 s; "), told["all"])
        self.assertEqual(sum(stacks.values()), 5950000)

    def test_hashes_and_a_dictionary_are_stacks(self):
        dictionary = ["--replay", "stacks_hashes.csv", "--stack-dict", "stacks_dict.csv"]
        for options in (["-a", "-c", "db"], ["-a", "-c", "java", "-G", "tid"], []):
            self.assertEqual(folded(*dictionary, *options), folded("--replay", "stacks.csv", *options))
            report = ["--stacks", "-g", "comm", *options]
            self.assertEqual(tsnap(*dictionary, *report).stdout.split(b"\n", 1)[1],
                             tsnap("--replay", "stacks.csv", *report).stdout.split(b"\n", 1)[1])
        self.assertEqual(dict(frames_of(graph(*dictionary))), dict(frames_of(graph("--replay", "stacks.csv"))))

    def test_parts_are_a_whole(self):
        whole, parts = folded("--replay", "stacks.csv", "-a"), {}
        for part in ("..20:42:53.3", "20:42:53.3..2026-11-20T20:42:54", "2026-11-20T20:42:54.."):
            for stack, weight in folded("--replay", "stacks.csv@" + part, "-a").items():
                parts[stack] = parts.get(stack, 0) + weight
        self.assertEqual(parts, whole)

    def test_parts_of_one_differ(self):
        """Two parts of one recording differ as two recordings with these parts do."""
        with open(os.path.join(FIXTURES, "stacks.csv"), encoding="ascii") as file:
            heading, *rows = file.readlines()
        with tempfile.TemporaryDirectory() as folder:
            for name, wanted in (("a", True), ("b", False)):
                with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                    file.write(heading + "".join(row for row in rows if (row < '"2026-11-20T20:42:53.5') == wanted))
            two = graph("--diff", os.path.join(folder, "a"), os.path.join(folder, "b"), "-a")
        one = graph("--diff", "stacks.csv@..20:42:53.5", "stacks.csv@20:42:53.5..", "-a")
        self.assertEqual(frames_of(one), frames_of(two))
        self.assertGreater(len(frames_of(one)), 10)

    def test_a_file_of_that_name(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x@1..2")
            with open(path, "wb") as file, open(os.path.join(FIXTURES, "stacks.csv"), "rb") as recording:
                file.write(recording.read())
            self.assertEqual(folded("--replay", path, "-a"), folded("--replay", "stacks.csv", "-a"))

    def test_no_recorded_order_matters(self):
        with open(os.path.join(FIXTURES, "stacks.csv"), "rb") as file:
            heading, *rows = file.readlines()
        by_scan = {}
        for row in rows:
            by_scan.setdefault(row[:29], []).append(row)
        turned = heading + b"".join(row for scan in by_scan.values() for row in reversed(scan))
        again = tsnap("--replay", "-", "--folded", "-a", stdin=None, input=turned)
        self.assertEqual(again.stdout, tsnap("--replay", "stacks.csv", "--folded", "-a").stdout)

    def test_folded_of_folded_changes_nothing(self):
        """--diff reads the folded stacks that tsnap wrote."""
        with tempfile.NamedTemporaryFile() as file:
            for recording in ("stacks.csv", "stacks_hostile.csv"):
                file.seek(0)
                file.truncate()
                file.write(tsnap("--folded", "--replay", recording, "-a").stdout)
                file.flush()
                reported_of = dict(frames_of(graph("--diff", file.name, file.name)))
                self.assertGreater(len(reported_of), 10)
                for told in reported_of.values():
                    self.assertIn(": +0.00 points, 1.00 times", told)


class Safety(unittest.TestCase):
    def test_hostile_names_stay_words(self):
        svg = graph("--replay", "stacks_hostile.csv", "-a")
        names = ["%s (%s)" % (name, told.split(",")[0]) for name, told in frames_of(svg)]
        for name in ("</title><script> (group)", "]]>&amp:\"' (group)", "<svg onload=alert(1)> (program)",
                     "x]]>y (program)", "k<> (kernel)", "\\x1b[31m\\xff (group)", "世界 (group)", "größe (program)"):
            self.assertIn(name, names)
        self.assertEqual(sum(name.startswith("recurse ") for name in names), 510 - 1)
        self.assertIn("[deeper frames] (program)", names)

    def test_nothing_from_outside(self):
        for svg in (graph("--replay", "stacks_hostile.csv", "-a"), graph("--diff", "stacks_before.folded", "stacks_after.folded")):
            kinds = {}
            for element in svg.iter():
                self.assertTrue(element.tag.startswith(SVG), element.tag)
                kinds.setdefault(element.tag[len(SVG):], []).append(element)
                for name in element.attrib:
                    self.assertFalse(name.lower().startswith("on") or "href" in name, name)
            self.assertEqual(set(kinds), {"svg", "title", "style", "rect", "g", "text", "script"})
            self.assertEqual((len(kinds["script"]), len(kinds["style"])), (1, 1))
            for parts in (kinds["script"][0].text, kinds["style"][0].text):
                self.assertIsNone(re.search(r"url\(|@import|fetch\(|XMLHttp|import\(|eval\(|innerHTML|src=", parts))
            self.assertEqual(re.findall(r"https?://[^\"]*", kinds["script"][0].text),
                             ["http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"])


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.path = folder.name, os.path.join(folder.name, "x.svg")

    def write(self, path=None, **options):
        return tsnap("--replay", "stacks.csv", "-a", "--flame", path or self.path, **options)

    def test_written_whole(self):
        done = self.write()
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b"tsnap: wrote %s, a flame graph\n" % self.path.encode()))
        self.assertEqual(os.listdir(self.folder), ["x.svg"])
        xml.etree.ElementTree.parse(self.path)
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o666 & ~os.umask(os.umask(0o22)))

    def test_replaced_at_once(self):
        with open(self.path, "w", encoding="ascii") as before:
            before.write("before")
        os.chmod(self.path, 0o640)
        inode = os.stat(self.path).st_ino
        link = os.path.join(self.folder, "link.svg")
        os.symlink("x.svg", link)
        self.assertEqual(self.write(link).returncode, 0)
        self.assertTrue(os.path.islink(link))
        self.assertNotEqual(os.stat(self.path).st_ino, inode)
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o640)
        xml.etree.ElementTree.parse(self.path)

    def test_what_was_there_stays(self):
        with open(self.path, "w", encoding="ascii") as before:
            before.write("before")
        limit = "ulimit -f 1; exec \"$0\" \"$@\""  # one block of 512 or 1024 bytes
        done = subprocess.run(["sh", "-c", limit, TSNAP, "--replay", "stacks.csv", "--flame", self.path], cwd=FIXTURES,
                              capture_output=True, timeout=60, preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.decode(), "tsnap: %s: File too large\n" % self.path)
        self.assertEqual(os.listdir(self.folder), ["x.svg"])
        with open(self.path, encoding="ascii") as after:
            self.assertEqual(after.read(), "before")

    def test_every_interval(self):
        """The file has the last of two intervals: the recording's second second."""
        done = tsnap("--replay", "stacks.csv", "-a", "-i", "1", "--flame", self.path)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b"tsnap: wrote %s, a flame graph\n" % self.path.encode()))
        told = dict(frames_of(xml.etree.ElementTree.parse(self.path).getroot()))
        stacks = folded("--replay", "stacks.csv", "-a", "-d", "1")
        self.assertEqual(told["all"].split(";")[0], "group, %d.%03d s" % divmod((5950000 - sum(stacks.values())) // 1000, 1000))

    def test_devices_stay(self):
        pipe = os.path.join(self.folder, "pipe")
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
            self.assertEqual(self.write(pipe).returncode, 0)
            xml.etree.ElementTree.fromstring(reader.stdout.read())
        self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode))

    def test_recording_from_a_pipe(self):
        done = tsnap("--diff", "/dev/stdin", "stacks.csv", "--flame", "-", stdin=None,
                     input=b"timestamp,weight_us,tid,state,comm\n")
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertEqual(done.stderr, b"tsnap: /dev/stdin: a recording in a pipe can't be compared: write it to a file first\n")
        with open(os.path.join(FIXTURES, "stacks_before.folded"), "rb") as before:
            done = tsnap("--diff", "/dev/stdin", "stacks_after.folded", "--flame", "-", stdin=None, input=before.read())
        self.assertEqual((done.returncode, done.stderr), (0, b""))


class Size(unittest.TestCase):
    def test_ten_thousand_threads(self):
        """The graph has as many frames as a reader can look at, and the rest is counted."""
        rows = ["timestamp,weight_us,tid,state,stack\n"]
        for tid in range(1, 10001):
            rows.append('"2026-11-20T20:42:53.000000Z",50000,%d,"ON","%s"\n' % (tid, ";".join("f%d" % i for i in range(30))))
        done = tsnap("--replay", "-", "--flame", "-", "-g", "tid", stdin=None, input="".join(rows).encode())
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertLess(len(done.stdout), 10 << 20)
        svg = xml.etree.ElementTree.fromstring(done.stdout)
        self.assertLessEqual(len(frames_of(svg)), 20000)
        self.assertGreater(len(frames_of(svg)), 5000)
        words = [text.text or "" for text in svg.iter(SVG + "text")]
        self.assertTrue(any(re.fullmatch(r"\d+ frames are not drawn: only the widest \d+ are", word) for word in words), words[-3:])


if __name__ == "__main__":
    unittest.main()
