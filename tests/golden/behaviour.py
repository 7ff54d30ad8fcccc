#!/usr/bin/env python3
"""Behaviour of tsnap beyond the bytes of its output: formats agree, terminals, pipes, full disks, signals, size.

    behaviour.py TSNAP [unittest's arguments]
"""
import csv
import fcntl
import io
import json
import os
import pty
import re
import resource
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

TSNAP = os.path.abspath(sys.argv.pop(1))
FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures")
RECORDINGS = ["small.csv", "all_columns.csv", "hostile.csv", "gaps.csv", "many.csv"]
HEADING = b"timestamp,weight_us,tid,state,comm\n"


def tsnap(*arguments, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([TSNAP, *arguments], cwd=FIXTURES, capture_output=True, timeout=60,
                          **options)


def row(second, tid=1, comm="x"):
    return b'"2026-11-20T20:42:%02d.000000Z",1000000,%d,"ON","%s"\n' % (second, tid, comm.encode())


def on_terminal(width, *arguments, height=24, **environment):
    """Lines that tsnap writes on a terminal of so many columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    names = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    names.update(environment)
    process = subprocess.Popen([TSNAP, *arguments], cwd=FIXTURES, stdout=slave, env=names)
    os.close(slave)
    output = b""
    while True:
        try:
            more = os.read(master, 65536)
        except OSError:  # EIO: the other side is closed
            break
        if not more:
            break
        output += more
    os.close(master)
    assert process.wait() == 0
    return output.decode().split("\r\n")


def width_of(line):
    """Width of the line in columns; all wide characters of the fixtures are U+3000 or above."""
    line = re.sub("\033\\[[0-9;]*m", "", line)
    return sum(2 if c >= "\u3000" else 1 for c in line)


class Help(unittest.TestCase):
    OPTION = re.compile(r"^  (?:-\w, |    )(--[\w-]+)", re.M)

    def test_one_screen(self):
        lines = tsnap("--help").stdout.decode().split("\n")
        self.assertLessEqual(len(lines), 21)  # 20, and the end of the last one
        self.assertLessEqual(max(map(len, lines)), 80)

    def test_examples(self):
        """Ten examples, whose options are in --help all; each one is taken: none is refused as usage."""
        examples = re.findall(r"^  tsnap\b(.*?)(?:  .*)?$", tsnap("--help").stdout.decode(), re.M)
        every = self.OPTION.findall(tsnap("--help", "all").stdout.decode())
        self.assertEqual(len(examples), 10)
        for example in examples:
            words = shlex.split(example)
            self.assertLessEqual({word for word in words if word.startswith("--")}, set(every), example)
            live = "--replay" not in words and "-o" not in words and "postgres" not in words
            if live and "--top" not in words:
                recorded = tsnap(*[word.replace("x.svg", "-") for word in words], "--replay", "small.csv")
                self.assertEqual(recorded.returncode, 0, (example, recorded.stderr))

    def test_commands_of_the_skill(self):
        """The commands of packaging/skill.md are taken, those that a recording can answer with one."""
        with open(os.path.join(FIXTURES, "..", "..", "packaging", "skill.md")) as file:
            commands = re.findall(r"^    tsnap\b(.*)$", file.read(), re.M)
        self.assertGreater(len(commands), 12)
        for command in commands:
            words = [re.sub("cpu.svg|page.html", "-", word).replace("/var/log/tsnap", "findings.csv").replace("yesterday 22:00", "2026-11-20T20:42Z")
                     .replace("06:00", "2026-11-20T20:43Z") for word in shlex.split(command)]
            if words and not words[0].startswith("-"):
                words[:1] = ["-p", "curl"]  # a replay takes processes by -p alone
            live = "--trace" in words or "--slower" in words  # needs probes: refused of this recording, and by name
            done = tsnap(*words, *([] if "--replay" in words else ["--replay", "findings.csv"]))
            self.assertEqual(done.returncode, 2 if live else 3 if "--when" in words else 0, (command, done.stderr))
            self.assertTrue(done.stdout or live, command)
            if live:
                self.assertRegex(done.stderr, b"needs the live host|has no distributions", command)

    def test_mistaken_word_gets_help(self):
        mistaken = tsnap("--help", "everything")
        self.assertEqual((mistaken.returncode, mistaken.stdout, mistaken.stderr), (0, tsnap("--help").stdout, b""))

    def test_all_has_each_option_once(self):
        every = self.OPTION.findall(tsnap("--help", "all").stdout.decode())
        self.assertLess(70, len(every))
        self.assertEqual(len(set(every)), len(every))
        self.assertEqual(tsnap("--help=all").stdout, tsnap("-h", "all").stdout)

    def test_nearest(self):
        for words, nearest in ((["--stack"], "--stacks"), (["--colums=x"], "--columns"), (["-g", "sate"], "state"),
                               (["--by", "comn"], "comm"), (["--filter", "stat=D"], "state")):
            given = tsnap(*words, "--replay", "small.csv")
            self.assertEqual(given.returncode, 2, words)
            self.assertRegex(given.stderr.decode(), "nearest: %s\\b" % nearest)


class Listed(unittest.TestCase):
    def test_json_is_the_list(self):
        rows = [json.loads(line) for line in tsnap("--list", "--json").stdout.decode().splitlines()]
        text = tsnap("--list").stdout.decode()
        self.assertEqual(tsnap("--json", "--list").stdout, tsnap("--list", "--json").stdout)
        columns = [row for row in rows if row["list"] == "column"]
        listed = re.findall(r"^  (\w+) +([r-])([c-])  ", text, re.M)
        self.assertEqual([(row["name"], "r" if row["report_default"] else "-", "c" if row["rows_default"] else "-") for row in columns], listed)
        for kind, heading in (("set", "Several at once:"), ("state", "States:"), ("trace", "Kinds of --trace")):
            part = text.split("\n" + heading)[1].split("\n\n")[0]
            self.assertEqual([row["name"] for row in rows if row["list"] == kind], re.findall(r"^  ([\w.]+) ", part, re.M), kind)

    def test_types_are_those_of_rows(self):
        types = {row["name"]: row["type"] for row in map(json.loads, tsnap("--list", "--json").stdout.decode().splitlines())
                 if row["list"] == "column"}
        forms = {"text": str, "hex": str, "time": str, "integer": int, "decimal": float}
        for line in tsnap("--json", "--replay", "all_columns.csv", "-a", "-G", "all").stdout.decode().splitlines():
            for name, value in json.loads(line).items():
                self.assertTrue(value is None or isinstance(value, forms[types[name]]), (name, value))


class Config(unittest.TestCase):
    """replay.conf names a recording, columns and all states."""

    def test_as_typed(self):
        self.assertEqual(tsnap("--config", "replay.conf").stdout, tsnap("--replay", "small.csv", "-g", "state,comm", "-a").stdout)

    def test_later_options_override(self):
        self.assertEqual(tsnap("--config", "replay.conf", "-g", "user").stdout, tsnap("--replay", "small.csv", "-g", "user", "-a").stdout)
        self.assertEqual(tsnap("-g", "user", "--config", "replay.conf").stdout, tsnap("--config", "replay.conf").stdout)


class Seconds(unittest.TestCase):
    def test_units(self):
        def some(seconds):
            return tsnap("--replay", "small.csv", "-a", "--csv", "-d", seconds).stdout
        self.assertEqual(some("0.002m"), some("0.12"))
        self.assertEqual(some("0.12s"), some("0.12"))
        self.assertLess(len(some("0.12")), len(some("1h")))


class Formats(unittest.TestCase):
    def test_formats_agree(self):
        for name in RECORDINGS:
            columns = "timestamp,tid,state,comm,syscall,arg0,state_us"
            rows = list(csv.DictReader(io.StringIO(
                tsnap("--replay", name, "-a", "--csv", "-g", columns).stdout.decode())))
            objects = [json.loads(line) for line in tsnap(
                "--replay", name, "-a", "--json", "-g", columns).stdout.decode().splitlines()]
            report = tsnap("--replay", name, "-a", "-g", "tid,state",
                           "-G", "samples").stdout.decode()
            samples = [int(line.split()[-1]) for line in report.splitlines()
                       if re.match(r" *\d+\.\d\d  ", line)]
            self.assertTrue(rows, name)
            self.assertEqual(sum(samples), len(rows), name)
            self.assertEqual(len(objects), len(rows), name)
            for one, other in zip(rows, objects):
                self.assertEqual(list(one), columns.split(","))
                self.assertEqual(list(other), columns.split(","))
                for column in one:
                    value = other[column]
                    self.assertEqual(one[column], "" if value is None else str(value))

    def test_csv_replays_as_itself(self):
        for name in RECORDINGS[:3] + ["account.csv"]:
            with open(os.path.join(FIXTURES, name), "rb") as file:
                content = file.read()
            columns = content.split(b"\n")[0].decode()
            given = tsnap("--replay", "-", "-a", "--csv", "-g", columns, stdin=None, input=content)
            self.assertEqual(given.stdout, content, name)

    def test_recorded_work_is_shown_again(self):
        for options in ([], ["-g", "psn"], ["-g", "why"], ["--filter", "why=lock"], ["-a"]):
            rows = tsnap("--replay", "work.csv", "--csv").stdout
            self.assertIn(b"client", rows)
            again = tsnap("--replay", "-", *options, stdin=None, input=rows).stdout
            once = tsnap("--replay", "work.csv", *(options if options != ["-a"] else ["-g", "psn"])).stdout
            self.assertEqual(again.split(b"\n")[1:], once.split(b"\n")[1:], options)

    def test_scans_of_any_size(self):
        for rows in (1, 255, 256, 257, 1000):
            content = HEADING + b"".join(row(1, tid, "x%d" % (tid % 7)) for tid in range(rows)) + row(2)
            columns = HEADING.decode().strip()
            given = tsnap("--replay", "-", "--csv", "-g", columns, stdin=None, input=content)
            self.assertEqual(given.stdout, content, rows)
            given = tsnap("--replay", "-", "--csv", "-n", "1", stdin=None, input=content)
            self.assertEqual(given.stdout.count(b"\n"), 1 + rows)

    def test_recordings_follow_each_other(self):
        with open(os.path.join(FIXTURES, "small.csv"), "rb") as file:
            content = file.read()
        given = tsnap("--replay", "-", "-a", "--csv", stdin=None, input=content * 3)
        self.assertEqual(given.stdout.count(b"\n"), 3 * (content.count(b"\n") - 1) + 1)


def zstd(content, *arguments):
    return subprocess.run(["zstd", "-qc", *arguments], input=content, capture_output=True, check=True, timeout=60).stdout


def csv_of(path, *arguments):
    done = tsnap("--replay", path, "-a", "--csv", *arguments)
    return done.stdout, done.stderr.decode()


class Recordings(unittest.TestCase):
    """Files that tsnap -o wrote, and files that other programs packed: whole, cut, damaged, of other hosts and versions."""

    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.whole, said = csv_of("recording_1")
        self.assertEqual(said, "tsnap: missed: 2 scans not recorded\n")

    def copy(self, change=lambda name, content: content):
        for name in os.listdir(os.path.join(FIXTURES, "recording_1")):
            with open(os.path.join(FIXTURES, "recording_1", name), "rb") as file:
                content = change(name, file.read())
            with open(os.path.join(self.place.name, name), "wb") as file:
                file.write(content)
        return self.place.name

    def test_packed_by_others(self):
        for name in RECORDINGS:
            with open(os.path.join(FIXTURES, name), "rb") as file:
                content = file.read()
            plain = tsnap("--replay", "-", "-a", stdin=None, input=content)
            for packed in (zstd(content), zstd(content[:200]) + zstd(content[200:])):
                given = tsnap("--replay", "-", "-a", stdin=None, input=packed)
                self.assertEqual((given.stdout, given.stderr), (plain.stdout, plain.stderr), name)

    def test_files_unpack_to_what_is_replayed(self):
        rows = b""
        for name in sorted(os.listdir(os.path.join(FIXTURES, "recording_1"))):
            if ".samples." in name:
                rows += subprocess.run(["zstd", "-dc", name], cwd=os.path.join(FIXTURES, "recording_1"),
                                       capture_output=True, check=True, timeout=60).stdout
        heading = rows.split(b"\n")[0].decode()
        self.assertEqual(tsnap("--replay", "-", "-a", "--csv", "-g", heading, stdin=None, input=rows).stdout,
                         csv_of("recording_1", "-g", heading)[0])

    def test_events_alone_are_no_samples(self):
        with open(os.path.join(FIXTURES, "recording_1", "db1_20261120T20Z-001.events.csv.zst"), "rb") as file:
            done = tsnap("--replay", "-", stdin=None, input=file.read())
        self.assertEqual((done.returncode, done.stderr), (1, b"tsnap: standard input: it contains no samples\n"))

    def test_cut_anywhere(self):
        """Whole frames before the cut are read; a file that is still being written is not reported as damaged."""
        path = os.path.join(self.copy(), "db1_20261120T21Z-001.samples.csv.zst")
        with open(path, "rb") as file:
            content = file.read()
        lines = set(self.whole.split(b"\n"))
        for length in range(len(content) - 1, 0, -37):
            os.truncate(path, length)
            rows, said = csv_of(self.place.name)
            self.assertLessEqual(set(rows.split(b"\n")), lines)
            self.assertIn("scans whose samples are lost", said)
            self.assertNotIn("damaged", said)

    def test_damage_is_counted(self):
        """A wrong byte anywhere costs no more than the frame that it is in, and is reported."""
        lines = set(self.whole.split(b"\n"))
        for at in range(200, 1600, 61):
            def damaged(name, content):
                if "T20Z-001.samples" in name:
                    content = content[:at] + bytes([content[at] ^ 0x40]) + content[at + 1:]
                return content
            rows, said = csv_of(self.copy(damaged))
            got = set(rows.split(b"\n"))
            self.assertLess(got, lines)
            self.assertGreater(len(got), len(lines) / 2)
            self.assertRegex(said, "damaged|no header line")
            self.assertIn("scans whose samples are lost", said)

    def test_links_are_not_followed(self):
        """Symbolic links are counted, as directories and pipes are; a directory that has nothing else has no recording."""
        directory = self.copy()
        os.mkdir(directory + "/db1_20261120T22Z-001.samples.csv.zst")
        os.mkfifo(directory + "/db1_20261120T23Z-001.samples.csv.zst")
        os.symlink("nowhere", directory + "/db1_20261121T00Z-001.samples.csv.zst")
        rows, said = csv_of(directory)
        self.assertEqual(rows, self.whole)
        self.assertIn("3 entries of the recording not read: links, directories or pipes", said)
        with tempfile.TemporaryDirectory() as links:
            for name in os.listdir(os.path.join(FIXTURES, "recording_1")):
                os.symlink(os.path.join(FIXTURES, "recording_1", name), os.path.join(links, name))
            done = tsnap("--replay", links)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"it contains no files that tsnap -o wrote; links are not followed", done.stderr)

    def test_edited_rows_are_counted(self):
        """Rows that tsnap could not have written, in whole frames, are counted."""
        with open(os.path.join(FIXTURES, "small.csv"), "rb") as file:
            content = file.read()
        count = content.count(b"\n") - 1
        for bad in (b"x\n", b'"2026-11-20T20:42:53.950000Z",x\n', b'a"b\n', b"\0\n", b'"2026-13-20T20:42:53.950000Z"' + b"," * 30 + b"\n"):
            rows, said = csv_of_bytes(zstd(content + bad))
            self.assertEqual(rows.count(b"\n") - 1, count, bad)
            self.assertIn("missed: 1 row of the recording can't be read", said)

    def test_later_format_is_passed_over(self):
        """A frame of format 2 is counted; frames of format 1 next to it are read."""
        def later(name, content):
            if "T20Z-001.samples" not in name:
                return content
            head = struct.pack("<II8sIHHqqQQ", 0x184d2a5e, 56, b"tsnaprec", 2, 0, 0, 0, 0, 3, 3)
            check = 0xcbf29ce484222325
            for byte in head:
                check = (check ^ byte) * 0x100000001b3 & (1 << 64) - 1
            return content + head + struct.pack("<Q", check) + b"new"
        rows, said = csv_of(self.copy(later))
        self.assertEqual(rows, self.whole)
        self.assertIn("missed: 1 part of the recording written by a later version of tsnap", said)

    def test_what_is_there_twice_is_read_once(self):
        """Snapshots that overlap, a directory named again, frames that stand twice in a file, a file named twice: told."""
        cuts = []
        for begin, end in (("20:59:59", "21:00:00.5"), ("20:59:59.9", "21:00:02")):
            cuts.append(os.path.join(self.place.name, "cut_" + begin))
            tsnap("--replay", "recording_1", "--snapshot", cuts[-1], "--from", "2026-11-20T%sZ" % begin, "--to", "2026-11-20T%sZ" % end)
        expected = tsnap("--replay", "recording_1", "-a").stdout.decode().split("\n")
        twice = self.copy(lambda name, content: content + content[content.find(b"tsnaprec", 9) - 8:])
        for cut in cuts:
            os.rename(cut, cut + ".zst")
        for paths in ([cut + ".zst" for cut in cuts], ["recording_1", "recording_1"], [twice]):
            given = tsnap("--replay", *paths, "-a").stdout.decode().split("\n")
            self.assertEqual(given[1], expected[1])
            self.assertRegex("\n".join(given), r"\d+ frames found more than once in the\s+recording, and read once")
        given, once = (tsnap("--replay", *["./" * i + "small.csv" for i in range(count)], "-a").stdout.decode() for count in (3, 1))
        self.assertEqual(given.split("\n")[1], once.split("\n")[1])
        self.assertRegex(given, r"Missed: 2 files named more\s+than once and read once")

    def test_missing_scans_are_told(self):
        os.unlink(self.copy() + "/db1_20261120T21Z-001.scans.csv.zst")
        for options in (["-a"], ["--csv"]):
            done = tsnap("--replay", self.place.name, *options)
            self.assertRegex((done.stdout + done.stderr).decode(), r"issed: 1 file of samples without the file of their scans")

    def test_two_hosts(self):
        self.copy()
        for name in os.listdir(self.place.name):
            with open(os.path.join(self.place.name, name), "rb") as file, \
                    open(os.path.join(self.place.name, name.replace("db1", "web-2")), "wb") as other:
                other.write(file.read())
        both = tsnap("--replay", self.place.name)
        self.assertEqual(both.returncode, 0)
        self.assertRegex(both.stdout, rb"(?s)db1.*web-2")
        done = tsnap("--replay", self.place.name, "--csv")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"more than one host, db1 and web-2: name the files of one", done.stderr)
        one = [os.path.join(self.place.name, name) for name in os.listdir(self.place.name) if "web" in name]
        self.assertEqual(tsnap("--replay", *one, "-a", "--csv").stdout, self.whole)

    def test_snapshot(self):
        """A snapshot is one file with what the directory has of that time, and can be cut again."""
        cut, again = os.path.join(self.place.name, "cut.zst"), os.path.join(self.place.name, "again.zst")
        times = ["--from", "2026-11-20T20:59:59.5Z", "--to", "2026-11-20T21:00:00.5Z"]
        done = tsnap("--replay", "recording_1", "--snapshot", cut, *times)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))
        self.assertEqual(tsnap("--replay", cut, "--snapshot", again).returncode, 0)
        for path in (cut, again):
            for options in (["-a", "--stacks"], ["-a", "--folded"], ["--csv"]):
                expected = tsnap("--replay", "recording_1", *times, *options).stdout.split(b"\n")
                given = tsnap("--replay", path, *times, *options).stdout.split(b"\n")
                self.assertEqual(given[1:], expected[1:])
        self.assertEqual(sorted(os.listdir(self.place.name)), ["again.zst", "cut.zst"])

    def test_snapshot_of_nothing(self):
        aim = os.path.join(self.place.name, "aim")
        for source in ("small.csv", "recording_1@2026-11-20T21:00:40.."):
            done = tsnap("--replay", source, "--snapshot", aim)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"it has no recording of tsnap -o", done.stderr)
            self.assertEqual(os.listdir(self.place.name), [])

    def test_only_what_is_needed_is_read(self):
        """Files of other hours are not opened, and frames of other times in this hour's file are not unpacked: damage there does no harm."""
        def damaged(name, content):
            if "T20Z" in name:
                return bytes(len(content))
            if ".samples." in name:
                return content[:-1] + b"x"
            return content
        times = ["--from", "2026-11-20T21:00:00Z", "--to", "2026-11-20T21:00:00.1Z"]
        self.assertEqual(csv_of(self.copy(damaged), *times), csv_of("recording_1", *times))


def csv_of_bytes(content):
    done = tsnap("--replay", "-", "-a", "--csv", stdin=None, input=content)
    return done.stdout, done.stderr.decode()


class Terminal(unittest.TestCase):
    def test_lines_fit(self):
        for name in RECORDINGS:
            for width in (20, 60, 79, 80, 100):
                for line in on_terminal(width, "--replay", name, "-a", "-G", "filename,comm"):
                    self.assertLessEqual(width_of(line), width, line)

    def test_heatmaps_fit(self):
        for width in (60, 79, 120):
            for name, options in (("gaps.csv", ["--by-time", "1s"]), ("hostile.csv", ["--by", "comm"])):
                lines = on_terminal(width, "--replay", name, "-a", "--heatmap", *options)
                self.assertTrue(any(line.endswith("|") for line in lines))
                for line in lines:
                    self.assertLessEqual(width_of(line) if line.endswith("|") else 0, width, line)

    def test_stacks_fit(self):
        for name in ("stacks.csv", "stacks_hostile.csv"):
            for width in (20, 37, 38, 40, 60, 80, 200):
                for line in on_terminal(width, "--replay", name, "-a", "--stacks=1", "-g", "comm"):
                    self.assertLessEqual(width_of(line), width, line)

    def test_words_are_kept(self):
        lines = on_terminal(300, "--replay", "small.csv", "-a", "--all-rows", NO_COLOR="1")
        plain = tsnap("--replay", "small.csv", "-a").stdout.decode().split("\n")
        self.assertEqual(lines, plain)

    def test_long_text_is_cut_with_an_ellipsis(self):
        lines = on_terminal(80, "--replay", "hostile.csv", "-g", "cmdline,tid")
        self.assertTrue(any("…" in line for line in lines))
        # the columns after the cut text are still there, and so is the end of that text
        self.assertTrue(any(re.search(r"…\S+\s+\d+$", line) for line in lines), lines)

    def test_columns_of_the_environment(self):
        lines = on_terminal(200, "--replay", "hostile.csv", "-g", "cmdline", COLUMNS="50")
        self.assertLessEqual(max(map(width_of, lines)), 50)

    def test_report_fits_the_window(self):
        for height in (12, 24, 33, 34, 35, 40):
            lines = on_terminal(120, "--replay", "many.csv", "-g", "comm", height=height)
            rows = sum("thread-with-name" in line for line in lines)
            # the last line is left for the prompt
            self.assertEqual(len(lines), min(height, rows + 6 if rows == 29 else height), lines)
            self.assertEqual(any(re.match(r"%d more rows, \d+\.\d %% \(--all-rows shows them\)" % (29 - rows), line)
                                 for line in lines), rows < 29, lines)

    def test_any_window_has_some_rows(self):
        lines = on_terminal(120, "--replay", "many.csv", "-g", "comm", height=3)
        self.assertEqual(sum("thread-with-name" in line for line in lines), 3)

    def test_stacks_fit_the_window(self):
        whole = on_terminal(120, "--replay", "stacks.csv", "-a", "--stacks", "--by", "tid", height=200)
        lines = on_terminal(120, "--replay", "stacks.csv", "-a", "--stacks", "--by", "tid", height=24)
        self.assertTrue(10 < len(lines) <= 24 < len(whole), lines)
        self.assertTrue(any(" more rows, " in line for line in lines), lines)

    def test_small_shares_are_one_row(self):
        content = HEADING + b"".join(row(second, tid, "x") for second in range(10) for tid in range(100))
        content += row(10, 1, "rare-1") + row(10, 2, "rare-2") + row(10, 3, "rare-3")
        with tempfile.NamedTemporaryFile(suffix=".csv") as file:
            file.write(content)
            file.flush()
            lines = on_terminal(120, "--replay", file.name, "-g", "comm")
            every = on_terminal(120, "--replay", file.name, "-g", "comm", "--all-rows")
            exact = on_terminal(120, "--replay", file.name, "-g", "comm,cpu_s")
        self.assertTrue(any(line.startswith("3 more rows, 0.3 % (") for line in lines), lines)
        self.assertFalse(any("rare" in line for line in lines))
        for shown in (every, exact):  # a small share of the samples says nothing about exact times
            self.assertEqual(sum("rare" in line for line in shown), 3, shown)

    def test_colour(self):
        self.assertIn("\033", "".join(on_terminal(80, "--replay", "small.csv")))
        lines = on_terminal(100, "--replay", "small.csv", "-a")
        self.assertTrue(any(re.search(r"% \033\[32m#+\033\[0m +\033\[32mON\033\[0m ", line) for line in lines), lines)
        self.assertTrue(any("\033[31mD\033[0m" in line for line in lines), lines)
        self.assertNotIn("\033", "".join(on_terminal(80, "--replay", "small.csv", NO_COLOR="1")))
        self.assertNotIn(b"\033", tsnap("--replay", "small.csv").stdout)

    def test_elsewhere_nothing_is_cut(self):
        narrow = dict(os.environ, COLUMNS="20")
        given = tsnap("--replay", "hostile.csv", "-g", "cmdline", env=narrow).stdout.decode()
        self.assertIn("世界" * 120, given)
        many = tsnap("--replay", "many.csv", "-g", "comm").stdout.decode()
        self.assertEqual(many.count("thread-with-name"), 29)


class FirstScreen(unittest.TestCase):
    """The report of findings.csv, with 16 programs beside those of its findings, and five that are there for 0.1 s of 40 each."""
    MANY, FEW = ["batch_%c" % letter for letter in "abcdefghijklmnop"], ["tiny_%c" % letter for letter in "abcde"]

    def setUp(self):
        with open(os.path.join(FIXTURES, "findings.csv"), encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        more = [(when, comm) for at, when in enumerate(sorted({row["timestamp"] for row in rows}))
                for comm in [comm for place, comm in enumerate(self.MANY) if at >= place] + self.FEW[at:at + 1]]
        rows += [dict.fromkeys(rows[0], "") | dict(timestamp=when, weight_us="100000", state="ON", state_us="5", tid=str(9000 + sum(comm.encode())),
                                                   pid=str(9000 + sum(comm.encode())), comm=comm, kthread="0", user="root") for when, comm in more]
        rows.sort(key=lambda row: row["timestamp"])
        self.file = tempfile.NamedTemporaryFile("w", suffix=".csv", newline="")  # pylint: disable=consider-using-with
        self.addCleanup(self.file.close)
        table = csv.DictWriter(self.file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
        self.file.flush()

    def shown(self, width, height, *options):
        """Lines of header, of findings and of rows (with the titles), and the last lines."""
        lines = on_terminal(width, "--replay", self.file.name, *options, height=height, NO_COLOR="1")
        self.assertEqual(lines.pop(), "")
        self.assertLessEqual(max(map(width_of, lines)), width)
        blank, titles = lines.index(""), next(at for at, line in enumerate(lines) if line.startswith("THREADS "))
        rows = [at for at, line in enumerate(lines) if at > titles and re.match(r" +[\d.]+ +[-\d]", line)]
        return lines[:blank], lines[blank + 1:titles - 1], lines[titles:rows[-1] + 1], lines[rows[-1] + 1:], len(lines)

    def test_80_by_24(self):
        head, findings, rows, last, count = self.shown(80, 24)
        self.assertLessEqual(len(head), 2)
        self.assertEqual([line[:3] for line in findings], ["1. ", "   ", "2. ", "   ", "3. ", "   ", "3 m"], findings)
        self.assertEqual(findings[-1], "3 more findings: --findings")
        self.assertGreaterEqual(len(rows), 1 + 8)
        self.assertLessEqual(count, 23)  # the prompt is below
        self.assertRegex(last[0], r"^\d+ more programs with [\d.]+ threads: --all-rows$")
        self.assertEqual(last[1], "ON on a CPU, RQ waits for a CPU, D disk or kernel lock, S asleep in a request.")
        self.assertRegex(last[2], r"^No remarks\. If wider: MOSTLY IN, CHAIN, FILE\.$")
        self.assertEqual(rows[0], "THREADS    ON    RQ     D     S  LONGEST  PROGRAM         WAITS FOR")
        self.assertEqual(rows[1].split()[:7], ["3.00", "-", "-", "-", "3.00", "19.0", "s"])

    def test_wide(self):
        head, findings, rows, last, count = self.shown(120, 60)
        self.assertEqual(len([line for line in findings if re.match(r"\d\. ", line)]), 6)
        self.assertRegex(rows[0], r"WAITS FOR +MOSTLY IN  CHAIN$")
        self.assertEqual(last[-1], "No remarks. If wider: FILE.")
        head, findings, rows, last, count = self.shown(200, 60)
        self.assertRegex(rows[0], r"WAITS FOR +MOSTLY IN  CHAIN +FILE$")
        self.assertIn("curl socket> nginx socket> php-fpm socket> mariadbd", rows[1])
        self.assertEqual(len(rows), 1 + 10 + len(self.MANY))
        self.assertEqual(last[0], "5 more programs with 0.25 threads: --all-rows")
        self.assertEqual((len(head), count), (1, len(head) + len(findings) + len(rows) + len(last) + 2))

    def test_all_rows(self):
        text = tsnap("--replay", self.file.name).stdout.decode()
        self.assertNotIn("tiny", text)
        self.assertIn("\n5 more programs with 0.25 threads: --all-rows\n", text)
        text = tsnap("--replay", self.file.name, "--all-rows").stdout.decode()
        self.assertEqual(len(re.findall(r"^ +0\.05 .* tiny_", text, re.M)), 5)
        self.assertNotIn("more programs", text)

    def test_is_a_command_line(self):
        plain = tsnap("--replay", self.file.name).stdout
        self.assertEqual(tsnap("--replay", self.file.name, "--findings", "-g", "programs").stdout, plain)

    def test_rows_add_up(self):
        """Threads by state are those of a report by state."""
        rows = csv.DictReader(tsnap("--replay", self.file.name, "--csv", "--report", "-g", "programs").stdout.decode().splitlines())
        states = csv.DictReader(tsnap("--replay", self.file.name, "--csv", "--report", "--by", "state").stdout.decode().splitlines())
        whole = {name: 0 for name in ("on_thr", "rq_thr", "d_thr", "s_thr", "threads")}
        for row in rows:
            for name in whole:
                whole[name] += float(row[name])
        expected = {row["state"].lower() + "_thr": float(row["avg_thr"]) for row in states}
        for name, threads in dict(expected, threads=sum(expected.values())).items():
            self.assertAlmostEqual(whole[name], threads, 6, name)


class Output(unittest.TestCase):
    def test_full_disk(self):
        for arguments in (["--replay", "small.csv"], ["--replay", "small.csv", "--csv"], ["--list"]):
            with open("/dev/full", "wb") as full:
                given = subprocess.run([TSNAP, *arguments], cwd=FIXTURES, stdout=full,
                                       stderr=subprocess.PIPE, timeout=60)
            self.assertEqual(given.returncode, 1)
            self.assertEqual(given.stderr, b"tsnap: standard output: No space left on device\n")

    def test_file_ends_with_a_whole_row(self):
        with tempfile.TemporaryFile() as file:
            given = subprocess.run(
                [TSNAP, "--replay", "many.csv", "--csv", "-a"], cwd=FIXTURES, stdout=file,
                stderr=subprocess.PIPE, timeout=60,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)))
            file.seek(0)
            content = file.read()
        self.assertEqual((given.returncode, given.stderr), (1, b"tsnap: standard output: File too large\n"))
        self.assertTrue(4800 < len(content) <= 5000)
        self.assertTrue(content.endswith(b"\n"))

    def test_reader_goes_away(self):
        for arguments in (["--replay", "small.csv"], ["--replay", "small.csv", "--csv"], ["--help"]):
            reading, writing = os.pipe()
            os.close(reading)
            given = subprocess.run([TSNAP, *arguments], cwd=FIXTURES, stdout=writing,
                                   stderr=subprocess.PIPE, timeout=60)
            os.close(writing)
            self.assertEqual((given.returncode, given.stderr), (0, b""))

    def test_closed_standard_files(self):
        for fds in ((0,), (1,), (2,), (0, 1, 2)):
            given = subprocess.run([TSNAP, "--replay", "small.csv"], cwd=FIXTURES, timeout=60,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   preexec_fn=lambda: [os.close(fd) for fd in fds])
            # output is lost where standard output is closed
            self.assertEqual(given.returncode, 1 if 1 in fds else 0)


class Signals(unittest.TestCase):
    def start(self, *arguments):
        process = subprocess.Popen([TSNAP, "--replay", "-", *arguments], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   # the tests' parent may ignore SIGHUP, as nohup does
                                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
        process.stdin.write(HEADING + row(1) + row(2, comm="y") + row(3))
        process.stdin.flush()
        return process

    def test_report_of_what_there_is(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = self.start("-g", "psn")
            # tsnap has read all three rows, and waits for more, once nothing is left in the pipe
            while struct.unpack("i", fcntl.ioctl(process.stdin, termios.FIONREAD, b"....")) != (0,):
                time.sleep(0.01)
            time.sleep(0.2)
            process.send_signal(number)
            process.wait(timeout=30)
            output, errors = process.communicate(timeout=30)
            self.assertEqual((process.returncode, errors), (0, b""))
            self.assertIn(b"2 scans", output)

    def test_comparison_of_recordings_in_a_file(self):
        sides = ["stacks.csv", "recording_1"]
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "differs.svg")
            done = subprocess.run([TSNAP, "--diff", *sides, "--flame", path], cwd=FIXTURES, capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(path, "rb") as file:
                written = file.read()
        printed = subprocess.run([TSNAP, "--diff", *sides, "--flame", "-"], cwd=FIXTURES, capture_output=True, timeout=60, check=True)
        self.assertIn(b"</svg>", written)
        self.assertEqual(written, printed.stdout)

    def test_half_a_comparison_is_none(self):
        process = subprocess.Popen([TSNAP, "--diff", "/dev/stdin", "stacks_after.folded", "--flame", "-"], cwd=FIXTURES,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(b"a;b 1\n")
        process.stdin.flush()
        while struct.unpack("i", fcntl.ioctl(process.stdin, termios.FIONREAD, b"....")) != (0,):
            time.sleep(0.01)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)  # it ends although standard input is still open
        output, errors = process.communicate(timeout=30)
        self.assertEqual((process.returncode, output), (1, b""))
        self.assertEqual(errors, b"tsnap: stopped before both files were read: no flame graph was written\n")

    def test_flame_graph_names_findings(self):
        """The head of a flame graph names what is wrong, unless options choose what it shows."""
        head = re.findall(rb'class="minor"[^>]*>(\d\. [^<]*)<', tsnap("--replay", "findings.csv", "--flame", "-").stdout)
        self.assertEqual([re.search(rb"mariadbd 3399|by holder 4000|deadlock", line).group() for line in head],
                         [b"mariadbd 3399", b"by holder 4000", b"deadlock"])
        for option in ("--on-cpu", "-a", "--by-chain"):
            self.assertNotIn(b">1. ", tsnap("--replay", "findings.csv", "--flame", "-", option).stdout)

    def test_waiting_for_a_finding(self):
        """--when of findings shows the intervals that have one, and says by the exit status whether there was any."""
        first = tsnap("--replay", "minutes.csv", "--when", "finding=deadlock,slow_disk", "-i", "60")
        self.assertEqual((first.returncode, first.stderr), (3, b""))
        self.assertEqual(re.findall(rb"(?m)^\d\. .*waits? for (\S+?),", first.stdout), [b"sda"])
        any_of = tsnap("--replay", "minutes.csv", "--when", "findings>0", "--json", "-i", "60")
        self.assertEqual(any_of.returncode, 3)
        found = [json.loads(line)["finding"] for line in any_of.stdout.splitlines()]
        self.assertEqual([name for name in found if name not in ("no_problem", "not_seen", "not_recorded")], ["server", "server", "slow_disk"])
        none = tsnap("--replay", "minutes.csv", "--when", "finding=deadlock")
        self.assertEqual((none.returncode, none.stdout, none.stderr),
                         (0, b"", b"tsnap: not found: no interval had what --when waits for\n"))

    def test_ignored_hangup(self):
        process = subprocess.Popen(
            [TSNAP, "--replay", "-", "--csv"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.stdin.write(HEADING + row(1) + row(2))
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        time.sleep(0.1)
        output, _ = process.communicate(row(3), timeout=30)
        self.assertEqual(output.count(b"\n"), 2)
        self.assertEqual(process.returncode, 0)

    def test_rows_are_flushed_each_scan(self):
        process = self.start("--csv")
        self.assertTrue(process.stdout.readline().startswith(b"timestamp"))
        self.assertIn(b'"x"', process.stdout.readline())
        self.assertIn(b'"y"', process.stdout.readline())
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)


class Size(unittest.TestCase):
    ROWS, SCANS = 100, 12000  # 60 MB

    def test_big_recording(self):
        def content():
            yield HEADING
            for scan in range(self.SCANS):
                stamp = b'"2026-11-20T20:%02d:%02d.%06dZ",50000,' % (
                    scan // 1200, scan // 20 % 60, scan % 20 * 50000)
                yield b"".join(stamp + b'%d,"ON","worker-%d"\n' % (i, i) for i in range(self.ROWS))

        def peak(scans):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "big.csv")
                with open(path, "wb") as file:
                    for number, part in enumerate(content()):
                        if number > scans:
                            break
                        file.write(part)
                process = subprocess.Popen([TSNAP, "--replay", path, "-g", "comm", "-G", "samples"],
                                           stdout=subprocess.PIPE)
                output = process.stdout.read().decode()
                usage = os.wait4(process.pid, 0)[2]
                process.returncode = 0
                process.stdout.close()
            self.assertLess(usage.ru_utime + usage.ru_stime, 30)
            counts = [int(line.split()[-1]) for line in output.splitlines() if "worker-" in line]
            self.assertEqual(counts, [scans] * self.ROWS)
            return usage.ru_maxrss

        few, all_scans = peak(20), peak(self.SCANS)
        # 5 MB: blocks that are read ahead, with the ends of their fields and hashes; 37 MB where sanitizers also keep freed memory
        self.assertLess(all_scans - few, 49152, "kilobytes more for a bigger recording")


if __name__ == "__main__":
    unittest.main()
