#!/usr/bin/env python3
"""compat.py [--all | --merge] TABLE GUESTS LOGS GUEST...: compares TABLE, packaging/compat.md, with what tests/vm/guest left in LOGS/GUEST
for each GUEST, KERNEL-ROOT, a row of GUESTS; with --merge prints TABLE with their rows as they were measured. Rows of other guests stay.

A line of `cells` is "configuration<TAB>kind of probe<TAB>words"; `about` is "release libbcc". Exit 1: a configuration that the guest was to
run (--all and --merge: those after |, too) left nothing, or something else than TABLE says.
"""
import fnmatch
import os
import re
import sys

PROBES = ("best", "tracepoints", "kprobes")
# Configurations of tests/vm/guest: the source of kernel types that each leaves in place.
SOURCES = {"btf": "BTF", "headers": "headers", "kheaders": "kheaders", "btf-file": "`--btf FILE`",
           "offsets-file": "`--offsets FILE`", "none": "nothing"}
OLD = "as-"

HEAD = """# What works where

`tests/vm/matrix -a -k` makes this page from what tsnap printed in each of these cases, and `tests/run` checks it: don't edit.
"works": blocked threads were shown with their state, system call, arguments and file, and nothing was
missing; "degraded": the same, but tsnap named something that it could not see; "refused": exit code 77 or 1 and the line of the note.

- **kernel**: a kernel of Debian, except 3.10, 4.9, 4.14 and 4.18: these were built from the sources of RHEL 7.8, Linux 4.9.229, Linux 4.14.67 and RHEL
  8.1, and have no BTF.
- **libbcc**: the version that the distribution has for that kernel, and 0.26, Debian bookworm's, on each.
- **types**: the only source of kernel types in that test: BTF without headers, headers without BTF, and so on.
- **best**: tsnap chose its probes: raw tracepoints with typed arguments from 5.5 on, plain ones from 4.17 on. **tracepoints**, **kprobes**: all better probes were
  disabled (`--without raw_tracepoint` and `--without raw_tracepoint,tracepoint`).
"""
OLD_HEAD = """
## Stand-ins for older kernels

These rows are of 5.10 without the features that came after the named release (`--without kernel-4.9`, and up to 4.14 no kprobe event source in /sys either).
Types are from `--offsets FILE`, on 5.4 from BTF. They show what tsnap does without these features, with an old libbcc, but with 5.10's verifier.
"""
ON_HEAD = "\n## Measured on\n\n"


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


def name_of(kernel):
    """The kernel's name in the table; sid has another release every few weeks."""
    return "newest (sid)" if kernel == "sid" else kernel


def libbcc_name(root, version):
    return "newest (sid)" if root == "sid" else ".".join(version.split(".")[:2])


class Guest:
    """A row of GUESTS: the release and libbcc that it ran on, and {configuration: words of each kind of probe}."""

    def __init__(self, line):
        before, _, after = line.partition("|")
        self.kernel, self.root, *self.short = (word for word in before.split() if not word.startswith("?"))
        self.every = self.short + after.split()
        self.name = "%s-%s" % (self.kernel, self.root)
        self.release = self.libbcc = ""
        self.cells = {}

    def read_measured(self, directory):
        with open(os.path.join(directory, "about")) as file:
            self.release, self.libbcc = file.read().split()
        told = {}
        with open(os.path.join(directory, "cells")) as file:
            for line in file:
                name, probes, words = line.rstrip("\n").split("\t")
                told.setdefault(name, {})[probes] = words
        self.cells = {name: [words.get(probes) for probes in PROBES] for name, words in told.items() if len(words) == len(PROBES)}

    def holes(self, asked):
        """Messages for requested configurations that should have left results and did not."""
        for pattern in asked:
            if (pattern in SOURCES or pattern.startswith(OLD)) and not fnmatch.filter(self.cells, pattern):
                yield "%s on %s: not measured" % (pattern, self.name)

    def key(self, configuration):
        """The first cells of a configuration's row."""
        libbcc = libbcc_name(self.root, self.libbcc)
        if configuration.startswith(OLD):
            return configuration[len(OLD):], libbcc
        return name_of(self.kernel), libbcc, SOURCES[configuration]

    def rows(self, old):
        """{first cells of a row: words}, of the stand-ins (old) or of the other configurations, in the order of the tables."""
        order = [name for name in self.cells if name.startswith(OLD)] if old else [name for name in SOURCES if name in self.cells]
        return {self.key(name): self.cells[name] for name in order}


def guests_read(path):
    with open(path) as file:
        return {guest.name: guest for guest in (Guest(line) for line in file if line.strip() and not line.startswith("#"))}


def rows_of(text):
    """{first cells of a row: words} of all tables."""
    notes, found = dict(re.findall(r"^\[(\d+)\] (.*)$", text, re.M)), {}
    for line in text.splitlines():
        cells = line.strip("| ").split(" | ")
        if line.startswith("| ") and len(cells) > len(PROBES):
            found[tuple(cells[:-len(PROBES)])] = [re.sub(r" \[(\d+)\]$", lambda match: ": " + notes[match.group(1)], cell)
                                                  for cell in cells[-len(PROBES):]]
    return found


def stored_read(path, guests):
    """Sets the guests' results to those in the table."""
    with open(path) as file:
        text = file.read()
    rows = rows_of(text)
    for kernel, root, release, libbcc in re.findall(r"^\| (\S+) \| (\S+) \| (\S+) \| (\S+) \|$", text.partition(ON_HEAD)[2], re.M):
        guest = guests.get("%s-%s" % (kernel, root))
        if guest:
            guest.release, guest.libbcc = release, libbcc
            stand_ins = [OLD + key[0] for key in rows if len(key) == 2] if any(name.startswith(OLD) for name in guest.every) else []
            guest.cells = {name: rows[guest.key(name)] for name in list(SOURCES) + stand_ins if guest.key(name) in rows}


def text_of(guests):
    notes = Notes()
    now, old = ([list(key) + [notes.cell(word) for word in words] for guest in guests for key, words in guest.rows(which).items()]
                for which in (False, True))
    on = [(guest.kernel, guest.root, guest.release, guest.libbcc) for guest in guests if guest.cells]
    return (HEAD + "\n" + table(("kernel", "libbcc", "types") + PROBES, now) + OLD_HEAD + "\n" + table(("like", "libbcc") + PROBES, old) +
            notes.lines() + ON_HEAD + table(("kernel", "Debian", "release", "libbcc"), on))


def differences(measured, stored):
    for configuration, words in measured.cells.items():
        key = measured.key(configuration)
        before = stored.cells.get(configuration) if stored.key(configuration) == key else None
        if before != words:
            yield "%s: %s, not %s" % (", ".join(key), words, before)


def main(argv):
    option = argv.pop(1) if argv[1].startswith("--") else ""
    path, rows, logs, names = argv[1], argv[2], argv[3], argv[4:]
    stored, measured, wrong = guests_read(rows), guests_read(rows), []
    stored_read(path, stored)
    for name in names:
        measured[name].read_measured(os.path.join(logs, name))
        wrong += measured[name].holes(measured[name].every if option else measured[name].short)
    if option == "--merge" and not wrong:
        print(text_of([measured[name] if name in names else guest for name, guest in stored.items()]), end="")
        return 0
    wrong += [words for name in names for words in differences(measured[name], stored[name])]
    print("\n".join(wrong) or "%d rows are as %s says" % (sum(len(measured[name].cells) for name in names), path),
          file=sys.stderr if option == "--merge" else sys.stdout)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
