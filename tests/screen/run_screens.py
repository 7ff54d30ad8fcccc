#!/usr/bin/env python3
"""Runs scripts of keys (scripts/NAME.keys) and compares the screens with expected/NAME.txt, byte for byte; also runs the
scripts of commands.facts, which say what must be on the screen, for each command of the table and each size. Of a screen, the file has
the rows, with their numbers, that differ from the screen before: what the keys changed.

    run_screens.py RUN_SCRIPT TSNAP            compare
    run_screens.py RUN_SCRIPT TSNAP --update   write the screens as the expected ones (then read the diff!)

After `same` a script's output has the command line of a view, and its table: tsnap with that command line must
print the same numbers.
"""
import csv
import difflib
import io
import os
import re
import shlex
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "..", "fixtures")
ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo"}
ENVIRONMENT.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})


SIZES = (15, 60), (24, 80), (60, 200)


def run(arguments, words=""):
    done = subprocess.run(arguments, cwd=FIXTURES, env=ENVIRONMENT, input=words.encode(), capture_output=True, timeout=60)
    text = done.stdout.decode("utf-8")
    if done.returncode or done.stderr:
        text += "--- standard error, exit %d\n" % done.returncode + done.stderr.decode("utf-8")
    return text


def changes(text):
    """The output of a script with only those rows of each screen that differ from the screen before of the same size, or from blank ones."""
    before, size, lines = [], None, []
    for part in re.split(r"^(?=--- )", text, flags=re.M):
        head, _, rest = part.partition("\n")
        rows = rest.split("\n")[:-1]
        if not re.fullmatch(r"--- \d+x%d" % len(rows), head):
            lines.append(part)
            continue
        before = before if head == size else [""] * len(rows)
        lines.append(head + "\n")
        lines += ["%d|%s\n" % (at, row) for at, (row, old) in enumerate(zip(rows, before), 1) if row != old]
        before, size = rows, head
    return "".join(lines)


def cells_of(row, titles, nothing):
    for title, cell in zip(titles, row):
        yield nothing if cell == "" else cell + "%" if title == "share" else cell


def differences(tsnap, part):
    """Lines of the screen's table that the report of the view's command line does not have."""
    command, _, table = part.partition("\n")
    report = [line.split() for line in run([tsnap] + shlex.split(command)[1:]).splitlines()]
    rows = list(csv.reader(io.StringIO(table)))
    for row in rows[1:]:
        # csv.reader does not distinguish an empty text from an absent one
        texts = [" ".join(cells_of(row, rows[0], nothing)).split() for nothing in ("-", "")]
        if not any([word for word in line if word.strip("#")] in texts for line in report):
            yield "%s\n  has no line of %s" % (command, texts[0])


def stacks_differ(tsnap, part):
    """A message if --folded writes other stacks of the view than the key w did. The view's columns are no part of stacks."""
    command, _, written = part.partition("\n")
    words = shlex.split(command)[1:]
    at = words.index("-g")
    stacks = run([tsnap, *words[:at], *words[at + 2:], "--folded"])
    written = written.partition("\n")[2]
    if not stacks or stacks.rstrip("\n") != written.rstrip("\n"):
        yield "%s\n  --folded gives %r, not %r" % (command, stacks, written)


def commands_wrong(script):
    """Messages for commands that do not do what commands.facts says, in any size, and for commands that it lacks."""
    with open(os.path.join(HERE, "commands.facts"), encoding="utf-8") as file:
        parts = re.split(r"^\[(\S+)\]\n", file.read(), flags=re.M)
    scripts = dict(zip(parts[1::2], parts[2::2]))
    names = run([script, "/dev/stdin"], "commands\n").split()
    yield from ("%s is no command" % name for name in sorted(set(scripts) - set(names)))
    for name in names:
        if name not in scripts:
            yield "the command %s has no script" % name
            continue
        for rows, columns in SIZES:
            said = run([script, "/dev/stdin", str(rows), str(columns), name], scripts[name])
            if said:
                yield "%s at %dx%d:\n%s" % (name, columns, rows, said)


def main():
    script, tsnap = (os.path.abspath(path) for path in sys.argv[1:3])
    update = sys.argv[3:] == ["--update"]
    names = sorted(file[:-5] for file in os.listdir(os.path.join(HERE, "scripts")))
    failed = outdated = 0
    for name in names:
        given = run([script, os.path.join(HERE, "scripts", name + ".keys")])
        for part in given.split("--- same\n")[1:]:
            for words in differences(tsnap, part.split("\n--- ")[0]):
                failed += 1
                print("FAILED %s: %s" % (name, words))
        for part in given.split("--- folded\n")[1:]:
            for words in stacks_differ(tsnap, part.split("\n--- ", 2)[0] + "\n--- " + part.split("\n--- ", 2)[1]):
                failed += 1
                print("FAILED %s: %s" % (name, words))
        path = os.path.join(HERE, "expected", name + ".txt")
        given = changes(given)
        if update:
            with open(path, "w", encoding="utf-8") as file:
                file.write(given)
            continue
        with open(path, encoding="utf-8") as file:
            expected = file.read()
        if given != expected:
            outdated += 1
            print("FAILED %s" % name)
            sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), given.splitlines(True),
                                                       "expected", "given"))
    for words in commands_wrong(script):
        failed += 1
        print("FAILED %s" % words)
    if outdated:
        print("If what is given is right: python3 %s --update" % " ".join(map(shlex.quote, (os.path.abspath(__file__), script, tsnap))))
    failed += outdated
    print("%d scripts, %d failed" % (len(names), failed))
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
