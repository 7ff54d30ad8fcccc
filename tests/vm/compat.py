#!/usr/bin/env python3
"""compat.py GUESTS LOGS: prints packaging/compat.md from what tests/vm/guest left in LOGS/KERNEL-ROOT for each of the rows of GUESTS.

A line of `cells` is "configuration<TAB>kind of probe<TAB>words"; `about` is "release libbcc". Exit 1: something was not measured.
"""
import os
import sys

PROBES = ("best", "tracepoints", "kprobes")
# Configurations of tests/vm/guest by what they leave of the kernel's types.
SOURCES = {"btf": "BTF", "headers": "headers", "kheaders": "kheaders", "btf-file": "`--btf FILE`",
           "offsets-file": "`--offsets FILE`", "none": "nothing"}
OLD = "as-"

HEAD = """# What works where

Made by `tests/run vm` from what tsnap said in every one of these cases, and checked by it: don't edit.
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


def guests(path):
    """[(kernel, root)]"""
    with open(path) as file:
        return [tuple(line.split()[:2]) for line in file if line.strip() and not line.startswith("#")]


def measured(directory):
    """(release, libbcc, {(configuration, probes): words})"""
    with open(os.path.join(directory, "about")) as file:
        release, libbcc = file.read().split()
    with open(os.path.join(directory, "cells")) as file:
        cells = [line.rstrip("\n").split("\t") for line in file]
    return release, libbcc, {(name, probes): words for name, probes, words in cells}


def name_of(kernel):
    """sid is another release every few weeks."""
    return "newest (sid)" if kernel == "sid" else kernel


def libbcc_name(root, version):
    return "newest (sid)" if root == "sid" else ".".join(version.split(".")[:2])


def main(argv):
    notes, now, old, on, holes = Notes(), [], [], [], []
    kernels = set()
    for kernel, root in guests(argv[1]):
        try:
            release, libbcc, cells = measured(os.path.join(argv[2], "%s-%s" % (kernel, root)))
        except OSError as error:
            holes.append(str(error))
            continue
        on.append("%s with libbcc %s" % (release, libbcc))
        names = list(dict.fromkeys(name for name, _ in cells))
        for name in names:
            words = [cells.get((name, probes)) for probes in PROBES]
            if None in words:
                holes.append("%s on %s" % (name, release))
                continue
            told = [notes.cell(word) for word in words]
            if name.startswith(OLD):
                old.append([name[len(OLD):], libbcc_name(root, libbcc)] + told)
            else:
                now.append([name_of(kernel), libbcc_name(root, libbcc), SOURCES[name]] + told)
        if kernel not in kernels:  # the first guest of each kernel has every source
            holes += ["%s on %s" % (name, release) for name in SOURCES if name not in names]
        kernels.add(kernel)
    if holes:
        print("compat.py: not measured: " + ", ".join(holes), file=sys.stderr)
        return 1
    print(HEAD + "\n" + table(("kernel", "libbcc", "types") + PROBES, now) + OLD_HEAD + "\n" +
          table(("like", "libbcc") + PROBES, old) + notes.lines() + "\nMeasured on " + "; ".join(on) + ".")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
