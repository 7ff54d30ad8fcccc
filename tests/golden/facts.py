"""Reduces an output to its contents, without the words around them: rows of tables, CSV and JSON, frames of a flame graph, numbers, names.

Formats are compared byte for byte elsewhere (cases.txt), so that a changed word changes expected output there, and not here.
"""
import csv
import html.parser
import io
import json
import re
import xml.etree.ElementTree as ElementTree

SVG = "{http://www.w3.org/2000/svg}"
HEADING = re.compile(r" *[A-Z][A-Z0-9_*]*(  +[A-Z][A-Z0-9_*]*( [A-Z]+)?)*$")
BAR = re.compile(r"(?<=%) #+")


def names(line):
    """The words of a line that are numbers, times, files or options."""
    words = (word.strip("(),:;.'\"") for word in line.split())
    found = [word for word in words if re.search(r"[0-9/]|\w\.\w|^--?[a-z]", word)]
    return " ".join(found) or "(words)"


def row(line):
    return " | ".join(re.split("  +", BAR.sub("", line).strip()))


def of_report(text):
    facts, inside = [], False
    for line in text.splitlines():
        if HEADING.match(line):
            inside = True
        elif not line:
            inside = False
        if line:
            facts.append(row(line) if inside else line if line.endswith("|") else names(line))  # a line of a heatmap ends with |
    return facts


def of_csv(text):
    table = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert all(len(line) == len(table[0]) for line in table), "rows as long as the heading"
    return [json.dumps(line, ensure_ascii=False)[1:-1] for line in table]


def of_json(text):
    objects = [json.loads(line) for line in text.splitlines()]
    return [json.dumps(each, ensure_ascii=False) for each in objects]


def of_flame(text):
    """For each frame of a flame graph: its name, its kind and numbers, its position and its width."""
    root = ElementTree.fromstring(text)
    facts = [root.find(SVG + "title").text]
    facts += [names(text.text) for text in root.iter(SVG + "text") if text.get("class") == "minor" and text.text]
    for frame in root.iter(SVG + "g"):
        title = frame.find(SVG + "title")
        if title is None or frame.find(SVG + "rect") is None or "\n" not in title.text:
            continue
        name, details = title.text.split("\n", 1)
        places = ["%s+%s%s" % (rect.get("x"), rect.get("width"), " off" if rect.get("class") == "off" else "")
                  for rect in frame.iter(SVG + "rect")]
        height = "y " + frame.find(SVG + "rect").get("y")
        facts.append(" | ".join([name, height, re.match(r"\w*", details).group(), names(details), *places]))
    return facts


class Page(html.parser.HTMLParser):
    """Facts of a page: its words by element, and rows of its table."""
    TAKEN = ("title", "h1", "h2", "p", "li", "figcaption", "code", "pre", "tr")

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.facts, self.words, self.cells, self.svg = [], None, None, 0

    def handle_starttag(self, tag, attrs):
        self.svg += tag == "svg"
        if not self.svg and tag in self.TAKEN:
            self.end()
            self.words, self.cells = [], [] if tag == "tr" else None
        if self.cells is not None and tag in ("td", "th"):
            self.words = []

    def handle_endtag(self, tag):
        self.svg -= tag == "svg"
        if self.cells is not None and tag in ("td", "th"):
            self.cells.append("".join(self.words))
        elif not self.svg and tag in self.TAKEN:
            self.end(tag)

    def handle_data(self, data):
        if self.words is not None and not self.svg:
            self.words.append(data)

    def end(self, tag="p"):
        if self.cells is not None:
            self.facts.append("row: " + " | ".join(self.cells) if tag == "tr" else "")
        elif self.words and "".join(self.words).strip():
            words = " ".join("".join(self.words).split())
            self.facts.append("%s: %s" % (tag, words if tag in ("h1", "h2", "li", "title", "figcaption") else names(words)))
        self.words = self.cells = None


def of_html(text):
    """Words and rows of a page, the number of its frames, and of the script's facts the time of each state and wait by step."""
    page = Page()
    page.feed(text)
    page.close()
    heading = [line.replace("row", "heading", 1) for line in page.facts if line.startswith("row: ")][:1]
    found = [heading.pop() if line.startswith("row: ") and heading else line for line in page.facts]
    graph = re.search(r'<svg [^>]*class="flame">.*</svg>', text, re.DOTALL)
    found.append("frames: %d" % sum(" | y " in line for line in of_flame(graph.group())) if graph else "no graph")
    given = re.search(r'id="facts">(.*?)</script>', text, re.DOTALL)
    data = json.loads(given.group(1)) if given else {"facts": []}
    numbers, sums = iter(data.pop("facts")), {}
    found.append("data: " + json.dumps(data))
    for _ in numbers:
        state, wait, _, count = (next(numbers) for _ in range(4))
        for _ in range(count):
            step, time = next(numbers), next(numbers)
            steps = sums.setdefault((state, wait), {})
            steps[step] = steps.get(step, 0) + time
    return found + ["state %d, wait %d: %s" % (*place, " ".join("%d+%d" % step for step in sorted(sums[place].items()))) for place in sorted(sums)]


def of_output(arguments, output):
    """The contents of standard output, in the format that the arguments choose."""
    text = output.decode()
    if "--csv" in arguments:
        return of_csv(text)
    if "--json" in arguments:
        return of_json(text)
    if "--folded" in arguments:
        return text.splitlines()
    if "--flame" in arguments:
        return of_flame(text)
    if "--html" in arguments:
        return of_html(text)
    return of_report(text)
