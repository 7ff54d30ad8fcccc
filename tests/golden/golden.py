#!/usr/bin/env python3
"""Runs the real tsnap on recorded samples and compares every byte with what is expected.

    golden.py TSNAP            compare
    golden.py TSNAP --update   write what tsnap gives as what is expected (then read the diff!)
"""
import difflib
import os
import shlex
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
EXPECTED = os.path.join(HERE, "expected")
# Formats follow neither the locale nor the time zone.
ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Tokyo"}
ENVIRONMENT.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})


def cases():
    with open(os.path.join(HERE, "cases.txt"), encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                name, _, arguments = line.partition(":")
                yield name, shlex.split(arguments)


def output_of(tsnap, arguments):
    done = subprocess.run([tsnap] + arguments, cwd=os.path.join(HERE, "..", "fixtures"),
                          env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=60)
    text = done.stdout
    if done.returncode or done.stderr:
        text += b"--- standard error, exit %d\n" % done.returncode + done.stderr
    return text


def main():
    tsnap, update = os.path.abspath(sys.argv[1]), sys.argv[2:] == ["--update"]
    names, failed = set(), 0
    for name, arguments in cases():
        path = os.path.join(EXPECTED, name + ".txt")
        given = output_of(tsnap, arguments)
        assert name not in names, name
        names.add(name)
        if update:
            with open(path, "wb") as file:
                file.write(given)
            continue
        with open(path, "rb") as file:
            expected = file.read()
        if given != expected:
            failed += 1
            print("FAILED %s: tsnap %s" % (name, " ".join(map(shlex.quote, arguments))))
            sys.stdout.writelines(line + "\n" for line in difflib.unified_diff(
                repr(expected).split("\\n"), repr(given).split("\\n"), "expected", "given",
                lineterm=""))
    stale = {file[:-4] for file in os.listdir(EXPECTED)} - names
    for name in stale:
        print("FAILED %s: expected output without a case" % name)
    print("%d cases, %d failed" % (len(names), failed + len(stale)))
    return 1 if failed or stale or not names else 0


if __name__ == "__main__":
    sys.exit(main())
