"""The bench's figures: their CSV file, their Markdown, and README.md's copy of that."""
import collections
import csv
import os
import re

# A measured figure. what: the operation or sample; tool: "tsnap" or a peer; value: a number in that unit, or None if there
# is none, and remark says why; low, high: the middle half of the runs, or None; aim: the worst value that is good
# enough, in the same unit, or None.
Row = collections.namedtuple("Row", "what tool value unit low high aim remark")
Row.__new__.__defaults__ = (None, None, None, "")

# {unit: (format of a figure, word in front of an aim, format of the aim)}
UNITS = {
    "ratio": ("{:.2f}", "at most", "{:.2f}"),
    "ns": ("{:.0f} ns", "under", "{:g} ns"),
    "us": ("{:.2f} us", "under", "{:g} us"),
    "ms": ("{:.2f} ms", "under", "{:g} ms"),
    "s": ("{:.2f} s", "under", "{:g} s"),
    "bytes": ("{:.1f} bytes", "under", "{:g} bytes"),
    "MB": ("{:.1f} MB", "under", "{:g} MB"),
    "%": ("{:.1f} %", "under", "{:g} %"),
    "million": ("{:.1f} million", "over", "{:g} million"),
    "samples/s": ("{:,.0f} samples/s", "at least", "{:,.0f} samples/s"),
}
NUMBERS = ("value", "low", "high", "aim")
HOST = ("machine", "cpus", "kernel", "date", "version", "commit", "rounds")
COLUMNS = ("part",) + Row._fields + HOST
MARKS = ("<!-- bench -->\n", "<!-- /bench -->\n")


class Mistake(Exception):
    """A mistake that the user can correct; the text says what is wrong."""


def csv_read(path):
    """[(part, host, Row)] of a CSV file, where host is a dictionary with HOST's names."""
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise Mistake("%s is not a bench's CSV: its columns are not %s" % (path, ",".join(COLUMNS)))
        found = []
        for line in reader:
            for name in NUMBERS:
                line[name] = float(line[name]) if line[name] else None
            if line["unit"] not in UNITS and line["value"] is not None:
                raise Mistake("%s: no unit is called %s" % (path, line["unit"]))
            found.append((line["part"], {name: line[name] for name in HOST}, Row(*(line[name] for name in Row._fields))))
    return found


def csv_write(path, figures):
    """Replaces the file atomically: it is whole for readers, and also when the disk is full."""
    beside = path + ".new"
    with open(beside, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)  # RFC 4180: commas, CRLF, quotes where needed
        writer.writerow(COLUMNS)
        for part, host, row in figures:
            cells = row._asdict()
            cells.update({name: "" if cells[name] is None else "%.8g" % cells[name] for name in NUMBERS})
            writer.writerow([part] + [cells[name] for name in Row._fields] + [host[name] for name in HOST])
    os.replace(beside, path)


def figure(row, value):
    return "" if value is None else UNITS[row.unit][0].format(value)


def line(cells):
    """A line of a table; characters that would break the line or a cell are escaped."""
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |\n"


def header_line(cells):
    return line(cells) + line(["---"] * len(cells))


def aim_words(row):
    _, asks, form = UNITS[row.unit]
    return "" if row.aim is None else asks + " " + form.format(row.aim)


def table_of_one(rows):
    """Table of tsnap alone: a line for each figure."""
    text = header_line(("what", "tsnap", "spread, remarks", "aim"))
    for row in rows:
        spread = "" if row.low is None else "%s to %s" % (figure(row, row.low), figure(row, row.high))
        text += line((row.what, figure(row, row.value), "; ".join(filter(None, (spread, row.remark))), aim_words(row)))
    return text


def table_of_many(rows):
    """Table of several tools: a line for each tool, a column for each thing measured. A tool without any figure has a
    line, too: its remark says why."""
    things, tools = {}, {}
    for row in rows:
        tools.setdefault(row.tool, {})[row.what] = row
        if row.what:
            things[row.what] = None
    text = header_line(["tool"] + list(things) + ["what it does, remarks"])
    for tool, of in tools.items():
        cells = [figure(of[what], of[what].value) if what in of else "" for what in things]
        remarks = dict.fromkeys(row.remark for row in of.values() if row.remark)
        text += line([tool] + cells + ["; ".join(remarks)])
    return text


def host_words(hosts):
    """Words on the host of figures that differ in dates and commits only; the CSV file has date and commit of each."""
    host = hosts[0]
    commits = ", ".join(dict.fromkeys(one["commit"] for one in hosts if one["commit"]))
    dates = sorted({one["date"] for one in hosts})
    return "Linux %s, %s, %s CPUs; %s; %s. Medians of %s interleaved rounds; ratios to no tool at all.\n" % (
        host["kernel"], host["machine"], host["cpus"], " to ".join(dict.fromkeys((dates[0], dates[-1]))),
        " ".join(filter(None, ("tsnap " + host["version"], commits and "(%s)" % commits))), host["rounds"])


def host_runs(figures):
    """[([host], [[Row] of each part])]: consecutive parts whose hosts differ in dates and commits only are together."""
    parts, runs = {}, []
    for part, host, row in figures:
        parts.setdefault((part, tuple(host.values())), (host, []))[1].append(row)
    for host, rows in parts.values():
        if not runs or any(host[name] != runs[-1][0][0][name] for name in HOST if name not in ("date", "commit")):
            runs.append(([], []))
        runs[-1][0].append(host)
        runs[-1][1].append(rows)
    return runs


def markdown(figures):
    text = ""
    for hosts, parts in host_runs(figures):
        text += ("\n" if text else "") + host_words(hosts)
        before = None  # parts with a line for each figure share one table
        for rows in parts:
            kind = table_of_one if {row.tool for row in rows} == {"tsnap"} else table_of_many
            body = kind(rows)
            text += body.split("\n", 2)[2] if kind == before == table_of_one else "\n" + body
            before = kind
    return text


def readme_write(path, figures):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    whole = re.compile(re.escape(MARKS[0]) + ".*?" + re.escape(MARKS[1]), re.S)
    if len(whole.findall(text)) != 1:
        raise Mistake("%s: one place between the lines %s and %s is needed" % (path, *(mark.strip() for mark in MARKS)))
    table = MARKS[0] + markdown(figures) + MARKS[1]
    with open(path, "w", encoding="utf-8") as file:
        file.write(whole.sub(lambda _: table, text))
