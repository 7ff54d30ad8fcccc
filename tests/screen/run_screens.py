#!/usr/bin/env python3
"""Runs scripts of keys (scripts/NAME.keys) and compares the screens with expected/NAME.txt, byte for byte.

    run_screens.py RUN_SCRIPT TSNAP            compare
    run_screens.py RUN_SCRIPT TSNAP --update   write what comes as what is expected (then read the diff!)

Behind `same` a script gives the command line of a view and its table: tsnap with that command line must
print the same numbers.
"""
import csv
import difflib
import io
import os
import shlex
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "..", "fixtures")
ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo"}
ENVIRONMENT.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})


def run(arguments):
    done = subprocess.run(arguments, cwd=FIXTURES, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=60)
    text = done.stdout.decode("utf-8")
    if done.returncode or done.stderr:
        text += "--- standard error, exit %d\n" % done.returncode + done.stderr.decode("utf-8")
    return text


def cells_of(row, titles, nothing):
    for title, cell in zip(titles, row):
        yield nothing if cell == "" else cell + "%" if title == "share" else cell


def differences(tsnap, part):
    """What the report of the command line has otherwise than the table of the screen."""
    command, _, table = part.partition("\n")
    report = [line.split() for line in run([tsnap] + shlex.split(command)[1:]).splitlines()]
    rows = list(csv.reader(io.StringIO(table)))
    for row in rows[1:]:
        # CSV as it is read here tells no empty text from an absent one
        texts = [" ".join(cells_of(row, rows[0], nothing)).split() for nothing in ("-", "")]
        if not any([word for word in line if word.strip("#")] in texts for line in report):
            yield "%s\n  has no line of %s" % (command, texts[0])


def stacks_differ(tsnap, part):
    """Whether --folded writes other stacks of the view than w did. The view's columns are no part of stacks."""
    command, _, written = part.partition("\n")
    words = shlex.split(command)[1:]
    at = words.index("-g")
    stacks = run([tsnap, *words[:at], *words[at + 2:], "--folded"])
    written = written.partition("\n")[2]
    if not stacks or stacks.rstrip("\n") != written.rstrip("\n"):
        yield "%s\n  --folded gives %r, not %r" % (command, stacks, written)


def commands_untried(names, part):
    """Commands whose keys no script has."""
    tried = set()
    for name in names:
        with open(os.path.join(HERE, "scripts", name + ".keys"), encoding="utf-8") as file:
            tried.update(key for line in file if line.startswith("keys ") for key in line.split()[1:])
    for line in part.splitlines():
        name, _, keys = line.partition(": ")
        if not tried & set(keys.split()):
            yield name


def main():
    script, tsnap = (os.path.abspath(path) for path in sys.argv[1:3])
    update = sys.argv[3:] == ["--update"]
    names = sorted(file[:-5] for file in os.listdir(os.path.join(HERE, "scripts")))
    failed = 0
    for name in names:
        given = run([script, os.path.join(HERE, "scripts", name + ".keys")])
        for part in given.split("--- same\n")[1:]:
            for words in differences(tsnap, part.split("\n--- ")[0]):
                failed += 1
                print("FAILED %s: %s" % (name, words))
        for part in given.split("--- commands\n")[1:]:
            for words in commands_untried(names, part.split("\n--- ")[0]):
                failed += 1
                print("FAILED: no script has a key of the command %s" % words)
        for part in given.split("--- folded\n")[1:]:
            for words in stacks_differ(tsnap, part.split("\n--- ", 2)[0] + "\n--- " + part.split("\n--- ", 2)[1]):
                failed += 1
                print("FAILED %s: %s" % (name, words))
        path = os.path.join(HERE, "expected", name + ".txt")
        if update:
            with open(path, "w", encoding="utf-8") as file:
                file.write(given)
            continue
        with open(path, encoding="utf-8") as file:
            expected = file.read()
        if given != expected:
            failed += 1
            print("FAILED %s" % name)
            sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), given.splitlines(True),
                                                       "expected", "given"))
    print("%d scripts, %d failed" % (len(names), failed))
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
