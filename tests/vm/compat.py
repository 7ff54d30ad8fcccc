#!/usr/bin/env python3
"""compat.py GUESTS LOGS [TABLE]: prints packaging/compat.md from what tests/vm/guest left in LOGS/KERNEL-ROOT for each of the rows of
GUESTS; with TABLE, such a file, only holds what is there against it.

A line of `cells` is "configuration<TAB>kind of probe<TAB>words"; `about` is "release libbcc". Exit 1: something was not measured, or
is not what TABLE says.
"""
import os
import re
import sys

PROBES = ("best", "tracepoints", "kprobes")
# Configurations of tests/vm/guest by what they leave of the kernel's types.
SOURCES = {"btf": "BTF", "headers": "headers", "kheaders": "kheaders", "btf-file": "`--btf FILE`",
           "offsets-file": "`--offsets FILE`", "none": "nothing"}
OLD = "as-"

HEAD = """# What works where

Made by `tests/run --all vm` from what tsnap said in every one of these cases, and checked by it: don't edit.
Kernels are Debian's. "works": blocked threads were shown with their state, system call, arguments and file, and nothing was
missing; "degraded": the same, and tsnap said what it could not see; "refused": exit code 77 or 1 and that line.

- **libbcc**: the distribution's own for that kernel, and 0.26, Debian bookworm's, on each.
- **types**: the only source of kernel types that was left there: BTF without headers, headers without BTF, and so on.
- **best**: tsnap chose its probes: raw tracepoints with typed arguments from 5.5 on, plain ones from 4.17 on. **tracepoints**, **kprobes**: all better ones were taken
  away (`--without raw_tracepoint` and `--without raw_tracepoint,tracepoint`).
"""
OLD_HEAD = """
## Older kernels

5.10 with all that came after the release taken away (`--without kernel-4.9`, and up to 4.14 no kprobe event source in /sys either);
types from `--offsets FILE`, and BTF on 5.4.
"""


class Notes:
    """Words that many cells share, numbered."""

    def __init__(self):
        self.words = []

    def cell(self, words):
        kind, _, why = words.partition(": ")
        if not why:
            return kind
        if why not in self.words:
            self.words.append(why)
        return "%s [%d]" % (kind, self.words.index(why) + 1)

    def lines(self):
        return "".join("\n[%d] %s\n" % (number, words) for number, words in enumerate(self.words, 1))


def row(cells):
    return "| " + " | ".join(cells) + " |"


def table(heads, rows):
    return "\n".join([row(heads), row(["---"] * len(heads))] + [row(cells) for cells in rows]) + "\n"


def rows_read(path):
    """{what a row is for: its words} of a table that was made before."""
    with open(path) as file:
        text = file.read()
    notes, found = dict(re.findall(r"^\[(\d+)\] (.*)$", text, re.M)), {}
    for line in text.splitlines():
        cells = line.strip("| ").split(" | ")
        if line.startswith("| ") and len(cells) > len(PROBES):
            found[tuple(cells[:-len(PROBES)])] = [re.sub(r" \[(\d+)\]$", lambda match: ": " + notes[match.group(1)], cell)
                                                  for cell in cells[-len(PROBES):]]
    return found


def guests(path):
    """[(kernel, root)]"""
    with open(path) as file:
        return [tuple(line.split()[:2]) for line in file if line.strip() and not line.startswith("#")]


def measured(directory):
    """(release, libbcc, {configuration: words of each kind of probe})"""
    with open(os.path.join(directory, "about")) as file:
        release, libbcc = file.read().split()
    told = {}
    with open(os.path.join(directory, "cells")) as file:
        for line in file:
            name, probes, words = line.rstrip("\n").split("\t")
            told.setdefault(name, {})[probes] = words
    return release, libbcc, {name: [words.get(probes) for probes in PROBES] for name, words in told.items()}


def name_of(kernel):
    """sid is another release every few weeks."""
    return "newest (sid)" if kernel == "sid" else kernel


def libbcc_name(root, version):
    return "newest (sid)" if root == "sid" else ".".join(version.split(".")[:2])


class Found:
    """What the guests left; rows are {what a row is for: words}."""

    def __init__(self, path, logs):
        self.now, self.old, self.on, self.holes = {}, {}, [], []
        for kernel, root in guests(path):
            try:
                release, libbcc, cells = measured(os.path.join(logs, "%s-%s" % (kernel, root)))
            except OSError as error:
                self.holes.append(str(error))
                continue
            first = not any(key[0] == name_of(kernel) for key in self.now)
            self.on.append("%s with libbcc %s" % (release, libbcc))
            libbcc = libbcc_name(root, libbcc)
            for name, words in cells.items():
                if None in words:
                    self.holes.append("%s on %s" % (name, release))
                elif name.startswith(OLD):
                    self.old[(name[len(OLD):], libbcc)] = words
                else:
                    self.now[(name_of(kernel), libbcc, SOURCES[name])] = words
            if first:  # which has every source
                self.holes += ["%s on %s" % (name, release) for name in SOURCES if name not in cells]


def differences(found, stored):
    rows = {**found.now, **found.old}
    if not rows:
        yield "nothing was measured"
    for key, words in rows.items():
        if stored.get(key) != words:
            yield "%s: %s, not %s" % (", ".join(key), words, stored.get(key))


def main(argv):
    found, notes = Found(argv[1], argv[2]), Notes()
    if argv[3:]:
        wrong = list(differences(found, rows_read(argv[3])))
        print("\n".join(wrong) or "%d rows are as %s says" % (len(found.now) + len(found.old), argv[3]))
        return 1 if wrong else 0
    if found.holes:
        print("compat.py: not measured: " + ", ".join(found.holes), file=sys.stderr)
        return 1
    now, old = ([list(key) + [notes.cell(word) for word in words] for key, words in rows.items()]
                for rows in (found.now, found.old))
    print(HEAD + "\n" + table(("kernel", "libbcc", "types") + PROBES, now) + OLD_HEAD + "\n" +
          table(("like", "libbcc") + PROBES, old) + notes.lines() + "\nMeasured on " + "; ".join(found.on) + ".")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
