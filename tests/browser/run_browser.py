#!/usr/bin/env python3
"""tsnap's flame graphs and pages in a browser, and its folded stacks and pprof profiles in speedscope.

    run_browser.py TSNAP [NAME...]   the tests whose names have one of these in them
The last line is the totals: N passed, N failed, N skipped. Exit status 77: there is no browser.
"""
import base64
import csv
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import webdriver  # noqa: E402

TSNAP = os.path.abspath(sys.argv[1])
FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures")
SPEEDSCOPE = "speedscope@1.25.0"
WIDTH, HEIGHT = 1300, 900
FRAME_WIDTH = 60  # width of a window's frame, at most
SHOWN = """return Array.from(document.querySelectorAll("#frames > g")).filter((g) => g.style.display !== "none").map((g) =>
    [g.getAttribute("aria-label").split("\\n")[0], g.querySelector("rect").getBoundingClientRect().width,
     g.classList.contains("match"), g.querySelector("text").textContent])"""
FRAME = "return Array.from(document.querySelectorAll('#frames > g')).find((g) => g.getAttribute('aria-label').startsWith(arguments[0]))"
TOO_WIDE = """return Array.from(document.querySelectorAll("#frames > g")).filter((g) => g.style.display !== "none" &&
    g.querySelector("text").getComputedTextLength() > g.querySelector("rect").getBoundingClientRect().width)
    .map((g) => g.textContent)"""


def tsnap(*arguments, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([TSNAP, *arguments], cwd=FIXTURES, check=True, capture_output=True, timeout=60, **options).stdout


class Browsed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = webdriver.Browser(WIDTH, HEIGHT)
        cls.folder = tempfile.mkdtemp(prefix="tsnap-flame-")

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        shutil.rmtree(cls.folder)

    def until(self, true, words):
        end = time.monotonic() + 30
        while not true():
            self.assertLess(time.monotonic(), end, words)
            time.sleep(0.05)

    def resize(self, width):
        """Resizes the window; returns when the page has about that width, perhaps before it has drawn anew."""
        self.browser.resize(width, HEIGHT)
        self.until(lambda: width - FRAME_WIDTH <= self.browser.script("return innerWidth") <= width, "a window %d wide" % width)

    def show(self, *arguments, **options):
        path = os.path.join(self.folder, "x.svg")
        tsnap("--flame", path, *arguments, **options)
        self.browser.open("file://" + path)

    def tearDown(self):
        complaints = [entry for entry in self.browser.log() if entry["level"] == "SEVERE"]
        self.assertEqual(complaints, [], "the browser complains")


class Graph(Browsed):
    """A graph of the recording stacks.csv, which has 5.95 s: db 3.5 (serve 1.5 of it), java 2.0, kworker 0.2, nginx 0.25."""

    def width_of_frames(self):
        return self.browser.script("return document.getElementById('frames').getBoundingClientRect().width")

    def setUp(self):
        self.browser.script("document.documentElement.textContent = ''")
        self.resize(WIDTH)
        self.show("--replay", "stacks.csv", "-a")
        self.room = self.width_of_frames()

    def frame(self, name):
        return self.browser.script(FRAME, name + "\n")[webdriver.ELEMENT]

    def shown(self):
        """{name: width in pixels} of the visible frames; for a name of several frames the widest one's."""
        widths = {}
        for name, width, _, _ in self.browser.script(SHOWN):
            widths[name] = max(width, widths.get(name, 0))
        return widths

    def matched(self):
        return self.browser.script("return document.getElementById('matched').textContent")

    def details(self):
        return self.browser.script("return document.getElementById('details').textContent")

    def test_widths_are_time(self):
        shown = self.shown()
        for name, seconds in (("all", 5.95), ("db", 3.5), ("java", 2.0), ("serve", 1.5), ("nginx", 0.25)):
            self.assertAlmostEqual(shown[name], self.room * seconds / 5.95, delta=1.5, msg=name)

    def test_zoom_by_click(self):
        before = self.shown()
        self.browser.click(self.frame("serve"))
        shown = self.shown()
        for name in ("all", "db", "_start", "main", "serve"):
            self.assertAlmostEqual(shown[name], self.room, delta=1.5, msg=name)
        self.assertAlmostEqual(shown["commit"], self.room / 3, delta=1.5)
        for name in ("java", "worker", "nginx", "kworker/0:1"):
            self.assertNotIn(name, shown)
        self.browser.click(self.frame("db"))  # a click on a frame below zooms out
        self.assertAlmostEqual(self.shown()["worker"], self.room * 2 / 3.5, delta=1.5)
        self.browser.click(self.browser.find("#reset"))
        self.assertEqual(self.shown(), before)

    def test_search_by_click(self):
        self.browser.click(self.browser.find("#find"))
        self.browser.press(*"futex")
        self.assertEqual(self.matched(), "matched 33.61 %")  # 2.0 of 5.95
        hits = [name for name, _, match, _ in self.browser.script(SHOWN) if match]
        self.assertEqual(hits, ["futex", "futex_wait"])
        fill = "return getComputedStyle(arguments[0].querySelector('rect')).fill"
        pink = self.browser.script(fill, {webdriver.ELEMENT: self.frame("futex")})
        self.assertEqual(pink, "rgb(226, 75, 208)")
        self.browser.click(self.frame("db"))  # after a zoom the share is that of the zoomed frame
        self.assertEqual(self.matched(), "matched 57.14 %")  # 2.0 of 3.5
        self.browser.click(self.browser.find("#find"))
        self.assertEqual(self.matched(), "")
        self.assertFalse(any(match for _, _, match, _ in self.browser.script(SHOWN)))
        self.assertNotEqual(self.browser.script(fill, {webdriver.ELEMENT: self.frame("futex")}), pink)

    def test_search_by_keys(self):
        for words, share in (("Cart::total", "33.61"), ("cart::TOTAL", "0.00"), ("^(parse|commit)$", "25.21"),
                             ("do_syscall_64|main", "63.03"), ("[", "4.20"), ("(", "0.00"), ("nothing", "0.00"), (".", "100.00")):
            self.browser.press("Control+f", *words)
            self.assertEqual(self.matched(), "matched %s %%" % share, words)
            self.browser.press("Escape")
            self.assertEqual(self.matched(), "")
            self.assertFalse(self.browser.script("return !!document.querySelector('input')"))

    def test_keys(self):
        self.browser.press("ArrowUp")
        self.assertIn("db:  group, 3.500 s, 58.82 % of all;", self.details())
        self.browser.press("ArrowRight")
        self.assertIn("java:", self.details())
        self.browser.press("ArrowLeft", "ArrowLeft", "ArrowUp")
        self.assertIn("start_thread:", self.details())
        self.browser.press("Enter")
        self.assertAlmostEqual(self.shown()["worker"], self.room, delta=1.5)
        self.browser.press("ArrowDown", "ArrowDown")
        self.assertIn("all:", self.details())
        self.browser.press("Escape")
        self.assertIn("java", self.shown())
        focus = "return document.activeElement?.getAttribute('aria-label')"
        seen = set()
        for _ in range(4):
            self.browser.press("Tab")
            seen.add((self.browser.script(focus) or "").split(":")[0])
        self.assertLessEqual({"search (Ctrl-F)", "show everything (Esc)"}, seen)

    def test_details_on_hover(self):
        self.assertIn("Click a frame", self.details())
        self.browser.point_at(self.frame("commit"))
        self.assertEqual(self.details(), "commit:  program, 0.500 s, 8.40 % of all, 33.33 % of serve; all off CPU")
        self.browser.point_at(self.frame("Lcom/shop/Cart::total"))
        self.assertIn("1.300 s on CPU, 0.700 s off CPU", self.details())

    def test_labels_fit(self):
        for width in (1300, 700, 1000):
            self.resize(width)
            self.until(lambda: width - FRAME_WIDTH < self.width_of_frames() < width, "frames that fit a window of %d" % width)
            self.assertEqual(self.browser.script(TOO_WIDE), [])
        labels = [label for _, _, _, label in self.browser.script(SHOWN)]
        self.assertIn("pthread_cond_wait", labels)
        self.assertTrue(any(label.endswith("…") for label in labels))

    def test_hostile_names(self):
        self.show("--replay", "stacks_hostile.csv", "-a")
        self.assertEqual(self.browser.script("return document.querySelectorAll('script, [onload]').length"), 1)
        names = [name for name, _, _, _ in self.browser.script(SHOWN)]
        for name in ("</title><script>", "<svg onload=alert(1)>", "世界"):
            self.assertIn(name, names)
        self.assertEqual(self.browser.script(TOO_WIDE), [])
        self.browser.press("Control+f", *"<svg")
        self.assertEqual(self.matched(), "matched 10.00 %")
        self.browser.press("Escape")

    def test_high_graph_begins_at_its_end(self):
        self.show("--replay", "stacks_hostile.csv", "-a")
        top, footer, high = self.browser.script("""return [document.getElementById("head").getBoundingClientRect().top,
            document.querySelector("#frames > g").getBoundingClientRect().bottom, window.innerHeight]""")
        self.assertAlmostEqual(top, 0, delta=1)
        self.assertLess(footer, high)
        self.assertGreater(footer, high / 2)

    def test_diff(self):
        self.show("--diff", "stacks_before.folded", "stacks_after.folded")
        self.room = self.width_of_frames()
        shown = self.shown()
        self.assertAlmostEqual(shown["parse"], self.room * (0.6 + 0.3) / 2, delta=1.5)
        self.assertAlmostEqual(shown["fsync"], self.room * (0.3 + 0.6) / 2, delta=1.5)
        self.assertAlmostEqual(shown["Cart::total"], self.room * 0.05, delta=1.5)
        self.browser.point_at(self.frame("Cart::sum"))
        self.assertEqual(self.details(), "Cart::sum:  JIT, before 0.00 % (0), after 10.00 % (50): +10.00 points")
        fill = "return arguments[0].querySelector('rect').getAttribute('fill')"
        colours = [int(self.browser.script(fill, {webdriver.ELEMENT: self.frame(name)})[1:], 16)
                   for name in ("Cart::sum", "fsync", "serve", "parse", "Cart::total")]
        warmth = [(colour >> 16) - (colour & 0xff) for colour in colours]
        self.assertEqual(warmth, sorted(warmth, reverse=True))
        self.assertGreater(warmth[1], 40)
        self.assertLess(warmth[3], -20)

    def test_nothing(self):
        self.show("--replay", "stacks.csv", "-c", "nobody")
        self.assertIn("no samples", self.browser.script("return document.querySelector('.title').textContent"))

    def test_many_frames(self):
        """A graph with as many frames as are ever drawn: a zoom and a search take less than 10 s each."""
        rows = ["timestamp,weight_us,tid,state,stack\n"]
        for tid in range(1, 6001):
            rows.append('"2026-11-20T20:42:53.000000Z",50000,%d,"ON","%s"\n' % (tid, "main;a;b%d;c" % (tid % 7)))
        self.show("--replay", "-", "-g", "tid", stdin=None, input="".join(rows).encode())
        self.assertGreater(len(self.browser.script(SHOWN)), 10000)
        for act in (lambda: self.browser.click(self.frame("77")), lambda: self.browser.press("Escape"),
                    lambda: self.browser.press("Control+f", "c", "Escape")):
            began = time.monotonic()
            act()
            self.browser.script("return 1")
            self.assertLess(time.monotonic() - began, 10)


class Page(Browsed):
    """A page of the recording stacks.csv (see Graph), in steps of a tenth of a second from 20:42:53 on, and of others."""
    ROWS = """return Array.from(document.querySelectorAll("#table tbody tr")).filter((row) => !row.hidden).map((row) =>
        Array.from(row.cells).map((cell) => cell.textContent))"""
    LEGEND = """return Object.fromEntries(Array.from(document.querySelectorAll("[data-" + arguments[0] + "]")).map((number) =>
        [number.parentNode.childNodes[1].textContent.trim(), parseFloat(number.textContent)]))"""

    def setUp(self):
        self.resize(WIDTH)
        self.open("--replay", "stacks.csv", "-a", "-g", "comm,state")

    def open(self, *arguments, **options):
        path = os.path.join(self.folder, "x.html")
        tsnap("--html", path, *arguments, **options)
        self.browser.open("file://" + path)

    def rows(self):
        return self.browser.script(self.ROWS)

    def titles(self):
        return self.browser.script("return Array.from(document.querySelectorAll('#table th'), (head) => head.textContent)")

    def threads(self):
        """{row's comm and state: AVG_THR}"""
        titles = self.titles()
        return {tuple(row[titles.index(title)] for title in ("COMM", "STATE")): float(row[titles.index("AVG_THR")]) for row in self.rows()}

    def choose(self, first, last):
        """Chooses steps with the sliders, from the keyboard's events on."""
        self.browser.script("""const from = document.getElementById("from"), to = document.getElementById("to");
            from.value = arguments[0]; to.value = arguments[1]; to.dispatchEvent(new Event("change"))""", first, last)

    def steps(self):
        return self.browser.script("return +document.getElementById('from').max + 1")

    def truth(self, first, last, step_us=100000):
        """{comm and state: average threads} in a stretch of stacks.csv, whose samples stand for the time before them."""
        with open(os.path.join(FIXTURES, "stacks.csv"), encoding="utf-8") as file:
            samples = list(csv.DictReader(file))
        times = sorted({self.us(sample["timestamp"]) for sample in samples})
        begin = (times[0] - int(samples[0]["weight_us"])) // step_us * step_us + first * step_us
        end = begin + (last + 1 - first) * step_us
        sums, scanned = {}, 0
        for sample in samples:
            until, weight = self.us(sample["timestamp"]), int(sample["weight_us"])
            part = max(0, min(until, end) - max(until - weight, begin))
            if part:
                key = (sample["comm"], sample["state"])
                sums[key] = sums.get(key, 0) + part
        for until in times:
            scanned += max(0, min(until, end) - max(until - 50000, begin))
        return {key: us / scanned for key, us in sums.items()}

    @staticmethod
    def us(text):
        whole = datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ") - datetime.datetime(1970, 1, 1)
        return whole // datetime.timedelta(microseconds=1)

    def same(self, given, expected):
        self.assertEqual(set(given), set(expected))
        for key, threads in expected.items():
            self.assertAlmostEqual(given[key], threads, delta=0.011, msg=key)

    def test_the_whole_time(self):
        self.same(self.threads(), self.truth(0, self.steps() - 1))
        self.assertEqual(self.browser.script("return document.querySelectorAll('#table td.whole').length"), 0)

    def test_a_stretch(self):
        """The table, the lists below the charts and the flame graph are those of the stretch, and then of the whole again."""
        whole, states = self.threads(), self.browser.script(self.LEGEND, "s")
        words = self.browser.script("return document.body.innerText")
        for first, last in ((0, 9), (3, 3), (10, self.steps() - 1), (5, 20)):
            self.choose(first, last)
            expected = self.truth(first, last)
            self.same(self.threads(), expected)
            self.assertEqual(list(self.threads().values()), sorted(self.threads().values(), reverse=True))
            for words_of, state in (("ON", "ON"), ("S,", "S")):
                given = sum(threads for name, threads in self.browser.script(self.LEGEND, "s").items() if name.startswith(words_of))
                self.assertAlmostEqual(given, sum(threads for key, threads in expected.items() if key[1] == state), delta=0.011, msg=state)
            all_of = sum(expected.values())
            frames = {name: width for name, width, _, _ in reversed(self.browser.script(SHOWN))}
            for comm in {comm for comm, _ in expected}:
                share = sum(threads for key, threads in expected.items() if key[0] == comm) / all_of
                self.assertAlmostEqual(frames[comm] / frames["all"], share, delta=0.005, msg=(first, last, comm))
        self.browser.press("Escape")
        self.assertEqual(self.threads(), whole)
        self.assertEqual(self.browser.script(self.LEGEND, "s"), states)
        self.assertEqual(self.browser.script("return document.body.innerText"), words)

    def test_drag(self):
        plot = self.browser.find(".plot")
        box = self.browser.script("return document.querySelector('.plot').getBoundingClientRect().toJSON()")
        self.browser.drag(plot, -box["width"] / 2 + 2, -box["width"] / 4)
        self.assertEqual(self.browser.script("return document.getElementById('from').value"), "0")
        self.assertEqual(self.browser.script("return +document.getElementById('to').value"), int(self.steps() / 4))
        self.assertIn(" to ", self.browser.script("return document.getElementById('chosen').textContent"))
        command = self.browser.script("return document.getElementById('command').textContent")
        self.assertTrue(command.startswith("tsnap --replay stacks.csv --from 2026-11-20T20:42:5"), command)
        given = tsnap(*command.split()[1:], "-a", "-g", "comm,state", "--csv", "--report", "--raw").decode()
        rows = list(csv.DictReader(given.splitlines()))
        self.assertEqual({(row["comm"], row["state"]) for row in rows}, set(self.threads()))
        self.browser.click(self.browser.find("#whole"))
        self.assertEqual(self.browser.script("return +document.getElementById('to').value"), self.steps() - 1)

    def test_sort(self):
        titles = self.titles()
        column = titles.index("COMM")
        before = self.rows()
        head = self.browser.script("return document.querySelectorAll('#table th button')[arguments[0]]", column)[webdriver.ELEMENT]
        self.browser.click(head)
        self.assertEqual([row[column] for row in self.rows()], sorted(row[column] for row in before))
        self.browser.press("Enter")
        self.assertEqual([row[column] for row in self.rows()], sorted((row[column] for row in before), reverse=True))
        self.browser.click(self.browser.script("return document.querySelectorAll('#table th button')[arguments[0]]",
                                               titles.index("AVG_THR"))[webdriver.ELEMENT])
        numbers = [float(row[titles.index("AVG_THR")]) for row in self.rows()]
        self.assertEqual(numbers, sorted(numbers, reverse=True))
        self.choose(0, 9)
        numbers = [float(row[titles.index("AVG_THR")]) for row in self.rows()]
        self.assertEqual(numbers, sorted(numbers, reverse=True))
        self.browser.press("Enter")
        numbers = [float(row[titles.index("AVG_THR")]) for row in self.rows()]
        self.assertEqual(numbers, sorted(numbers))

    def test_words(self):
        everything = len(self.rows())
        self.browser.click(self.browser.find("#word"))
        self.browser.press(*"DB s")
        rows = self.rows()
        self.assertTrue(0 < len(rows) < everything)
        for row in rows:
            self.assertIn("db", " ".join(row))
        self.assertEqual(self.browser.script("return document.getElementById('rows').textContent"), "%d of %d rows" % (len(rows), everything))
        self.browser.press(*"nothing")
        self.assertEqual(self.rows(), [])

    def test_keys(self):
        """Everything is reached with Tab, and the flame graph's keys work in it, and only there."""
        seen = []
        for _ in range(40):
            self.browser.press("Tab")
            seen.append(self.browser.script("return document.activeElement.id || document.activeElement.textContent.slice(0, 20)"))
        for name in ("from", "to", "word", "COMM", "find"):
            self.assertTrue(any(one.startswith(name) for one in seen), (name, seen))
        self.browser.script("document.activeElement.blur(); window.scrollTo(0, 0)")
        self.browser.press("/")
        self.assertFalse(self.browser.script("return !!document.querySelector('#search')"))
        self.browser.script("document.querySelector('#frames > g').focus()")
        self.browser.press("ArrowUp", "Enter")
        self.assertIn("db", self.browser.script("return document.getElementById('details').textContent"))

    def test_high_graph_begins_at_its_end(self):
        """A high graph scrolls in its place: its lowest frame is seen first, and its head stays."""
        self.open("--replay", "stacks_hostile.csv", "-a")
        self.browser.script("document.querySelector('#stacks .wide').scrollIntoView()")
        top, head, lowest, bottom = self.browser.script("""const port = document.querySelector("#stacks .wide").getBoundingClientRect();
            return [port.top, document.getElementById("head").getBoundingClientRect().top,
            document.querySelector("#frames > g").getBoundingClientRect().bottom, port.bottom]""")
        self.assertAlmostEqual(top, head, delta=1)
        self.assertTrue(bottom - 60 < lowest <= bottom, (lowest, bottom))
        self.assertEqual(self.browser.script("return document.documentElement.scrollTop > 0 && document.getElementById('reset').checkVisibility()"), True)

    def test_without_a_script(self):
        """The words are the same; what only a script can do is not shown."""
        path = os.path.join(self.folder, "x.html")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        told = self.browser.script("return document.querySelector('#findings, #time').innerText")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("script-src 'unsafe-inline'", "script-src 'none'"))
        self.browser.open("file://" + path)
        self.browser.log()  # the browser says that it runs no script
        self.assertFalse(self.browser.script("return document.querySelector('#stretch, #words').checkVisibility()"))
        for line in self.browser.script("return document.querySelector('#time').innerText").splitlines():
            self.assertIn(line, told)
        self.assertGreater(len(self.rows()), 3)
        height = self.browser.script("return document.querySelector('svg.flame').getBoundingClientRect().height")
        self.assertGreater(height, 100)

    def test_hostile_names(self):
        self.open("--replay", "stacks_hostile.csv", "-a")
        self.assertEqual(self.browser.script("return document.querySelectorAll('script').length"), 3)
        self.assertEqual(self.browser.script("return document.querySelectorAll('img, [onload], [onerror], #table svg').length"), 0)
        names = [name for name, _, _, _ in self.browser.script(SHOWN)]
        for name in ("</title><script>", "<svg onload=alert(1)>", "世界"):
            self.assertIn(name, names)
        self.open("--replay", "hostile.csv", "-a", "-g", "comm,filename")
        self.assertEqual(self.browser.script("return document.querySelectorAll('script').length"), 2)
        self.assertGreater(len(self.rows()), 10)

    def test_names_that_would_be_elements(self):
        """Names are words of the table and the lists, whatever they are."""
        names = ("</script><script>window.hit=1</script>", "<img src=x onerror=window.hit=1>", "]]></style><svg onload=window.hit=1>", "<!--<script>",
                 '"onmouseover="window.hit=1', "&lt;b&gt;", "\\x1b[31m\\x07")
        rows = ["timestamp,weight_us,tid,pid,state,comm,syscall,waits_on,waits_onsum,stack\n"]
        for tid, name in enumerate(names, 1):
            quoted = '"%s"' % name.replace('"', '""')
            rows.append('"2026-11-20T20:42:53.000000Z",50000,%d,%d,"D",%s\n' % (tid, tid, ",".join(5 * [quoted])))
        self.open("--replay", "-", "-g", "comm,syscall,waits_on", stdin=None, input="".join(rows).encode())
        self.assertFalse(self.browser.script("return !!window.hit"))
        self.assertEqual(self.browser.script("return document.querySelectorAll('script').length"), 3)
        self.assertEqual(self.browser.script("return document.querySelectorAll('img, b:not([data-s]):not([data-w]):not(i b), [onload], [onerror]').length"), 0)
        self.assertEqual({row[self.titles().index("COMM")] for row in self.rows()}, set(names))
        self.choose(0, 0)
        self.assertEqual(len(self.rows()), len(names))
        self.assertEqual(set(self.browser.script(self.LEGEND, "w")), set(names))

    def test_nothing_is_loaded(self):
        self.open("--replay", "findings.csv")
        self.assertEqual(self.browser.script("return performance.getEntriesByType('resource').length"), 0)
        self.assertEqual(self.browser.script("""const image = new Image(); let refused = 0;
            document.addEventListener("securitypolicyviolation", () => refused++);
            image.src = "data:image/gif;base64,R0lGODlhAQABAAAAACw="; return image.complete && image.naturalWidth"""), 0)
        self.browser.log()

    def test_wide_and_narrow(self):
        """Nothing but the table and the graph is wider than the window."""
        self.open("--replay", "minutes.csv")
        for width in (1300, 700):
            self.resize(width)
            self.assertLessEqual(self.browser.script("return document.documentElement.scrollWidth - innerWidth"), 0, width)


class Speedscope(Browsed):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("npm"):
            raise unittest.SkipTest("there is no npm to get speedscope with")
        super().setUpClass()
        try:
            packed = subprocess.run(["npm", "pack", "--silent", "--pack-destination", cls.folder, SPEEDSCOPE], cwd=cls.folder,
                                    stdin=subprocess.DEVNULL, capture_output=True, timeout=120, text=True)
            why = packed.stderr.strip().splitlines()[-1:] if packed.returncode else []
        except subprocess.TimeoutExpired:
            why = ["npm did not end"]
        archives = [file for file in os.listdir(cls.folder) if file.endswith(".tgz")]
        if not archives:
            cls.tearDownClass()
            raise unittest.SkipTest("npm can't get %s: %s" % (SPEEDSCOPE, " ".join(why) or "no word why"))
        with tarfile.open(os.path.join(cls.folder, archives[0])) as archive:
            archive.extractall(cls.folder, [one for one in archive if one.isfile() and one.name.startswith("package/")
                                            and ".." not in one.name])

    def rows(self, recording, *options, kind=("--folded",)):
        """{name: (total, own)} of speedscope's table of functions, in us."""
        content = tsnap("--replay", recording, *kind, *options)
        loader = os.path.join(self.folder, recording + ".js")
        with open(loader, "w", encoding="ascii") as file:  # as speedscope's own command does it
            file.write("speedscope.loadFileFromBase64(%s, %s)" % (json.dumps(recording), json.dumps(base64.b64encode(content).decode())))
        self.browser.open("about:blank")
        self.browser.open("file://%s/package/dist/release/index.html#localProfilePath=%s" % (self.folder, loader))
        self.until(lambda: self.browser.script("return document.title").startswith(recording), "speedscope's title")
        self.browser.press("3")
        self.until(lambda: "Symbol Name\n" in self.browser.script("return document.body.innerText"), "speedscope's table")
        words = self.browser.script("return document.body.innerText").split("Symbol Name\n", 1)[1]
        cells = [cell.strip() for cell in words.strip().split("\n")]
        self.assertEqual(len(cells) % 3, 0)
        return {name: tuple(self.microseconds(cell) for cell in (total, own))
                for total, own, name in zip(cells[::3], cells[1::3], cells[2::3])}

    @staticmethod
    def microseconds(cell):
        number, unit = re.match(r"([\d,.]+)([a-zµ]*)", cell).groups()
        return round(float(number.replace(",", "")) * {"s": 1000000, "ms": 1000}.get(unit, 1))

    def test_loads(self):
        rows = self.rows("stacks.csv", "-a")
        self.assertEqual(sum(own for _, own in rows.values()), 5950000)
        self.assertEqual(rows["db"], (3500000, 0))
        self.assertEqual(rows["serve"], (1500000, 0))
        self.assertEqual(rows["memcpy"], (1300000, 1300000))
        self.assertEqual(rows["futex_wait_[k]"], (2000000, 2000000))

    def test_loads_pprof(self):
        """speedscope shows the type of sample with the largest sum: time on CPUs, or for sleepers alone their sleep."""
        for state, shown in (("S", ("-a", "--filter", "state=S")), ("ON", ("-a",))):
            folded = self.rows("stacks.csv", "-a", "--filter", "state=" + state, "-g", "state")
            folded.pop(state)  # the state is a label in pprof, not a frame
            self.assertEqual(*({re.sub(r"(_\[\w\])+$", "", name): times for name, times in rows.items()}
                               for rows in (folded, self.rows("stacks.csv", *shown, kind=("--pprof", "-")))))

    def test_loads_hostile_names(self):
        rows = self.rows("stacks_hostile.csv", "-a")
        self.assertEqual(sum(own for _, own in rows.values()), 500000)
        for name in ("<svg onload=alert(1)>", "\\x07bell", "operator new_8", "世界"):
            self.assertEqual(rows[name][0], 50000, name)


def main():
    why = webdriver.missing()
    if why:
        print("skipped: " + why)
        return 77
    loader = unittest.defaultTestLoader
    loader.testNamePatterns = ["*%s*" % name for name in sys.argv[2:]] or None
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(loader.loadTestsFromModule(sys.modules[__name__]))
    failed = len(result.failures) + len(result.errors)
    skipped = len(result.skipped)
    print("%d passed, %d failed, %d skipped" % (max(result.testsRun - failed, 0), failed, skipped))
    return 1 if failed or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
