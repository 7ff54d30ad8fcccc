#!/usr/bin/env python3
"""Promises of --html beyond exact facts: its numbers are those of a report, it refers to nothing outside, no name becomes an element, and it
stays below a megabyte.

    page.py TSNAP [unittest's arguments]
"""
import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import facts  # noqa: E402

TSNAP = os.path.abspath(sys.argv.pop(1))
FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures")
STATES = ("ON", "RQ", "D", "S")
MEGABYTE = 1 << 20


def tsnap(*arguments, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([TSNAP, *arguments], cwd=FIXTURES, capture_output=True, timeout=60, **options)


def page(*arguments, **options):
    done = tsnap("--html", "-", *arguments, **options)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout.decode()


def data_of(text):
    return json.loads(re.search(r'id="facts">(.*?)</script>', text, re.DOTALL).group(1))


def facts_of(text):
    """[(row, state, wait, frame, {step: seconds})]"""
    numbers, found = iter(data_of(text)["facts"]), []
    for row in numbers:
        state, wait, frame, count = (next(numbers) for _ in range(4))
        found.append((row, state, wait, frame, {next(numbers): next(numbers) / 1e4 for _ in range(count)}))
    return found


def by_state(text, keep=lambda fact: True):
    """Seconds in each state."""
    sums = {}
    for fact in filter(keep, facts_of(text)):
        sums[fact[1]] = sums.get(fact[1], 0) + sum(fact[4].values())
    return {STATES[state] if state < len(STATES) else "other": round(seconds, 3) for state, seconds in sums.items()}


def report(*arguments):
    """Rows of a report, as {title: text}."""
    done = tsnap("--csv", "--report", *arguments)
    assert done.returncode == 0, done
    heading, *lines = [json.loads("[%s]" % line) for line in facts.of_csv(done.stdout.decode())]
    return [dict(zip(heading, line)) for line in lines]


class Elements(html.parser.HTMLParser):
    """Names and attributes of all elements."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


class Numbers(unittest.TestCase):
    def test_states_are_those_of_a_report(self):
        for recording, *options in (("stacks.csv", "-a"), ("findings.csv",), ("minutes.csv",), ("gaps.csv",), ("small.csv", "-a")):
            expected = {}
            for row in report("--replay", recording, "-g", "seconds,state", "--raw", *options):
                expected[row["state"]] = round(float(row["seconds"]), 3)
            found = by_state(page("--replay", recording, *options))
            self.assertEqual(set(found), set(expected), recording)
            for state, seconds in expected.items():
                self.assertAlmostEqual(found[state], seconds, delta=0.006, msg=(recording, state))

    def test_rows_are_those_of_a_report(self):
        text = page("--replay", "stacks.csv", "-a", "-g", "state,comm")
        table = facts.of_html(text)
        rows = {}
        for fact in facts_of(text):
            rows[fact[0]] = rows.get(fact[0], 0) + sum(fact[4].values())
        lines = [line[len("row: "):].split(" | ") for line in table if line.startswith("row: ")]
        self.assertGreater(len(lines), 3)
        for number, line in enumerate(lines):
            self.assertAlmostEqual(rows.pop(number), float(line[1]), delta=0.006, msg=line)
        self.assertEqual(rows, {})

    def test_frames_are_those_of_a_flame_graph(self):
        """The time of each frame that stacks end at, of the script's numbers, is that of --flame."""
        text = page("--replay", "stacks.csv", "-a")
        svg = re.search(r"<svg xmlns.*</svg>", text, re.DOTALL).group()
        names = [name for name, *_ in (line.split(" | ") for line in facts.of_flame(svg)[1:]) if name]
        given = subprocess.run([TSNAP, "--replay", "stacks.csv", "-a", "--flame", "-"], cwd=FIXTURES, capture_output=True, timeout=60, check=True)
        alone = facts.of_flame(given.stdout.decode())
        frames = [line for line in alone if " | y " in line]
        self.assertEqual([line for line in facts.of_flame(svg) if " | y " in line], frames)
        names = [line.split(" | ")[0] for line in frames]
        own = {}
        for fact in facts_of(text):
            own[names[fact[3]]] = own.get(names[fact[3]], 0) + sum(fact[4].values())
        folded = tsnap("--replay", "stacks.csv", "-a", "--folded").stdout.decode()
        expected = {}
        for line in folded.splitlines():
            stack, weight = line.rsplit(" ", 1)
            name = re.sub(r"_\[\w\]$", "", stack.split(";")[-1])
            expected[name] = expected.get(name, 0) + int(weight) / 1e6
        self.assertEqual({name: round(seconds, 3) for name, seconds in own.items()}, {name: round(seconds, 3) for name, seconds in expected.items()})

    def test_steps(self):
        """minutes.csv has a scan every ten seconds: a step for each, and one thread that runs all the time."""
        text = page("--replay", "minutes.csv")
        data = data_of(text)
        self.assertEqual(data["step_ms"], 10000)
        self.assertEqual(data["zone_ms"], 0 if os.environ.get("TZ", "") == "UTC" else data["zone_ms"])
        on = {}
        for _, state, _, _, steps in facts_of(text):
            for step, seconds in steps.items() if state == 0 else ():
                on[step] = on.get(step, 0) + seconds
        for step, scanned in enumerate(data["scanned"]):
            self.assertLessEqual(on.get(step, 0), scanned / 1e4 + 0.001, step)

    def test_a_second_spread_over_steps(self):
        """A scan of 20 Hz and one that stands for two seconds: these are in all steps of the two seconds."""
        rows = ["timestamp,weight_us,tid,state,comm\n", '"2026-11-20T20:42:53.000000Z",50000,1,"ON","a"\n',
                '"2026-11-20T20:42:55.000000Z",2000000,1,"D","a"\n']
        text = page("--replay", "-", stdin=None, input="".join(rows).encode())
        disk = [steps for _, state, _, _, steps in facts_of(text) if state == 2]
        self.assertEqual(len(disk), 1)
        self.assertEqual(len(disk[0]), 20)
        self.assertEqual({round(seconds, 3) for seconds in disk[0].values()}, {0.1})

    def test_steps_of_a_day(self):
        """A recording of a day has steps of five minutes; each second of its hour at work is in one of them."""
        rows = ["timestamp,weight_us,tid,state,comm\n"]
        for minute in range(24 * 60):
            rows.append('"2026-11-20T%02d:%02d:30.000000Z",60000000,1,"%s","a"\n' % (*divmod(minute, 60), "ON" if minute < 60 else "D"))
        text = page("--replay", "-", stdin=None, input="".join(rows).encode())
        self.assertEqual(data_of(text)["step_ms"], 300000)
        self.assertLessEqual(len(data_of(text)["scanned"]), 362)
        self.assertEqual(by_state(text), {"ON": 3600, "D": 23 * 3600})


class Hostile(unittest.TestCase):
    NAMES = ("</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "]]><svg onload=alert(1)>", '"onmouseover="alert(1)', "'; x='",
             "\\x1b[31mred\\x07", "<!--", "{{7*7}}", "&lt;b&gt;", "\\xff\\xfe", "https://example.org/x")

    def text(self):
        rows = ["timestamp,weight_us,tid,pid,state,comm,user,cmdline,filename,syscall,waits_on,waits_onsum,stack\n"]
        for tid, name in enumerate(self.NAMES, 1):
            quoted = '"%s"' % name.replace('"', '""')
            rows.append('"2026-11-20T20:42:53.000000Z",50000,%d,%d,"D",%s\n' % (tid, tid, ",".join(7 * [quoted] + [quoted.replace(";", ":")])))
        text = page("--replay", "-", "-g", "comm,user,cmdline,filename,syscall,waits_on", stdin=None, input="".join(rows).encode())
        return text

    def test_no_name_becomes_an_element(self):
        elements = Elements(self.text()).found
        tags = [tag for tag, _ in elements]
        self.assertEqual(tags.count("script"), 3)  # the flame graph's, the numbers, and the page's
        for tag in ("img", "iframe", "object", "embed", "link", "base", "form", "a", "image", "use"):
            self.assertNotIn(tag, tags)
        for tag, attributes in elements:
            for name, value in attributes.items():
                self.assertFalse(name.startswith("on"), (tag, attributes))
                self.assertNotIn(name, ("src", "href", "srcdoc", "action", "xlink:href", "ping", "background"), (tag, attributes))
                self.assertFalse(name == "style" and "url" in (value or ""), (tag, attributes))

    def test_names_are_told(self):
        table = "\n".join(facts.of_html(self.text()))
        for name in self.NAMES:
            self.assertIn(name, table)

    def test_refers_to_nothing_outside(self):
        text = page("--replay", "findings.csv")
        self.assertNotRegex(text.replace("http://www.w3.org/", ""), r"(?i)https?://|@import|url\(|\bsrc=|\bhref=")
        self.assertIn("default-src 'none'", text)
        self.assertNotRegex(text, "[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Files(unittest.TestCase):
    def test_written_and_told(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.html")
            done = tsnap("--html", path, "--replay", "findings.csv")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b"tsnap: wrote %s, a page\n" % path.encode()))
            self.assertEqual(os.listdir(folder), ["x.html"])
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read().replace("--html " + path, "--html -"), page("--replay", "findings.csv"))

    def test_every_interval(self):
        """The file has the last of two intervals."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.html")
            done = tsnap("--replay", "stacks.csv", "-a", "-i", "1", "--html", path)
            self.assertEqual((done.returncode, done.stderr), (0, b"tsnap: wrote %s, a page\n" % path.encode()))
            with open(path, encoding="utf-8") as file:
                last = sum(by_state(file.read()).values())
            first = sum(by_state(page("--replay", "stacks.csv", "-a", "-d", "1")).values())
            self.assertAlmostEqual(first + last, 5.95, delta=0.01)

    def test_nothing(self):
        text = page("--replay", "stacks.csv", "-c", "nobody")
        self.assertIn("<h2>Threads</h2>", text)
        self.assertNotIn("<table", text)


class Size(unittest.TestCase):
    def test_more_than_is_kept(self):
        """20000 threads that each do something else, of which 16384 are kept: the charts have the time of all, and the page says so."""
        rows = ["timestamp,weight_us,tid,pid,state,comm,syscall,stack\n"]
        for tid in range(1, 20001):
            rows.append('"2026-11-20T20:42:53.000000Z",50000,%d,%d,"D","t","fsync","main;f%d"\n' % (tid, tid, tid))
        text = page("--replay", "-", stdin=None, input="".join(rows).encode())
        self.assertLess(len(text.encode()), MEGABYTE)
        self.assertEqual(by_state(text), {"D": 1000})
        self.assertIn("More combinations of row, wait and stack than a page keeps: 18.08 % of the time is not in the flame graph", text)

    def test_an_hour_of_many_threads(self):
        """An hour at 1 Hz of 60 threads with a stack and a wait of their own each second: below a megabyte, and what is left out is told, but
        the sums are right."""
        rows = ["timestamp,weight_us,tid,pid,state,comm,user,syscall,filename,waits_on,stack\n"]
        for second in range(3600):
            for thread in range(60):
                what = (second * 60 + thread) % 5003
                rows.append('"2026-11-20T%02d:%02d:%02d.000000Z",1000000,%d,%d,"%s","worker-%s","user%d","call%d","/srv/%s/f%d","tcp 10.0.0.1:%d",'
                            '"main;serve;%s"\n' % (20 + second // 3600, second // 60 % 60, second % 60, thread + 1, thread + 1,
                                                   STATES[what % 3], "x" * (what % 7), what % 10, what % 30, "d" * (what % 40), what, what % 2000,
                                                   ";".join("f%d" % (what // 7 ** i % 7 + 10 * i) for i in range(12))))
        text = page("--replay", "-", "-g", "comm,user,filename", stdin=None, input="".join(rows).encode())
        self.assertLess(len(text.encode()), MEGABYTE)
        self.assertGreater(len(text.encode()), MEGABYTE // 2)
        self.assertRegex(text, r"\d+ rows with less time are left out")
        self.assertRegex(text, r"the smallest \d+ of \d+ combinations")
        self.assertRegex(text, r"\d+ frames are not drawn")
        self.assertAlmostEqual(sum(by_state(text).values()), 60 * 3600, delta=60)
        self.assertEqual(data_of(text)["step_ms"], 10000)


if __name__ == "__main__":
    unittest.main()
