#!/usr/bin/env python3
"""tsnap's flame graphs in a browser, and its folded stacks and pprof profiles in speedscope.

    run_browser.py TSNAP [NAME...]   the tests whose names have one of these in them
The last line is the totals: N passed, N failed, N skipped. Exit status 77: there is no browser.
"""
import base64
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
