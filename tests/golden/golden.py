#!/usr/bin/env python3
"""Runs the real tsnap on recorded samples and compares its output with what is expected.

    golden.py TSNAP            compare
    golden.py TSNAP --update   write the output of tsnap as the expected output (then read the diff!)

cases.txt names outputs that show a format: every byte is in expected/NAME.txt. facts.txt has the other outputs, each as facts.py
reduces it. errors.txt has each message once, byte for byte, and under it the command lines that are refused or fail with it.
"""
import difflib
import os
import shlex
import subprocess
import sys

import facts

HERE = os.path.dirname(os.path.abspath(__file__))
EXPECTED = os.path.join(HERE, "expected")
# Formats do not follow the locale, and only headings for people the time zone.
ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Tokyo"}
ENVIRONMENT.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})


def run(tsnap, command):
    return subprocess.run([tsnap] + shlex.split(command), cwd=os.path.join(HERE, "..", "fixtures"),
                          env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def lines_of(name):
    return read(os.path.join(HERE, name)).decode("utf-8", "surrogateescape").splitlines()


# --- functions that each return [(file, expected bytes, given bytes)]


def formats(tsnap):
    names = set()
    for line in lines_of("cases.txt"):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, command = line.partition(":")
        assert name not in names, name
        names.add(name)
        done = run(tsnap, command)
        given = done.stdout
        if done.returncode or done.stderr:
            given += b"--- standard error, exit %d\n" % done.returncode + done.stderr
        path = os.path.join(EXPECTED, name + ".txt")
        yield path, read(path) if os.path.exists(path) else b"", given
    for stale in {file[:-4] for file in os.listdir(EXPECTED)} - names:
        yield os.path.join(EXPECTED, stale + ".txt"), b"expected output without a case\n", b""


def facts_of(tsnap, command):
    done = run(tsnap, command)
    found = facts.of_output(shlex.split(command), done.stdout)
    if done.returncode:
        found.append("exit %d" % done.returncode)
    # a message is printed, and as whole lines
    found += ["error: " + facts.names(line) for line in done.stderr.decode().splitlines()]
    assert all(line.startswith("tsnap: ") for line in done.stderr.decode().splitlines()), done.stderr
    return ["\t" + line for line in found]


def with_facts(tsnap):
    expected = lines_of("facts.txt")
    given, names = [], set()
    for line in expected:
        if line.startswith("\t"):
            continue
        given.append(line)
        if line and not line.startswith("#"):
            name, _, command = line.partition(":")
            assert name not in names, name
            names.add(name)
            given += facts_of(tsnap, command)
    yield (os.path.join(HERE, "facts.txt"), *("".join(line + "\n" for line in lines).encode("utf-8", "surrogateescape")
                                              for lines in (expected, given)))


def error_of(tsnap, command):
    """Exit code and message as errors.txt has them; a tsnap that fails prints nothing else."""
    done = run(tsnap, command)
    text = done.stderr.decode()
    if done.stdout or not text.startswith("tsnap: ") or not text.endswith("\n"):
        return "%d %r, %r" % (done.returncode, done.stdout, done.stderr)
    return "%d %s" % (done.returncode, text[len("tsnap: "):-1].replace("\n", "\\n"))


def errors(tsnap):
    expected, given, commands = lines_of("errors.txt"), {}, set()
    comments = [line for line in expected if line.startswith("#")]
    for line in expected:
        if line.startswith("\t"):
            assert line not in commands, line
            commands.add(line)
            given.setdefault(error_of(tsnap, line), []).append(line)
    given = comments + [line for message in given for line in (message, *given[message])]
    yield (os.path.join(HERE, "errors.txt"), *("".join(line + "\n" for line in lines).encode() for lines in (expected, given)))


def main():
    tsnap, update = os.path.abspath(sys.argv[1]), sys.argv[2:] == ["--update"]
    counts = {}
    for kind in (formats, with_facts, errors):
        for path, expected, given in kind(tsnap):
            counts[kind] = counts.get(kind, 0) + 1
            if given == expected:
                continue
            if not update:
                counts["failed"] = counts.get("failed", 0) + 1
                print("FAILED %s" % os.path.relpath(path, HERE))
                sys.stdout.writelines(line + "\n" for line in difflib.unified_diff(
                    repr(expected).split("\\n"), repr(given).split("\\n"), "expected", "given", lineterm=""))
            elif given:
                write(path, given)
            else:
                os.remove(path)
    if counts.get("failed"):
        print("If what is given is right: python3 %s %s --update" % (shlex.quote(os.path.abspath(__file__)), shlex.quote(tsnap)))
    print("%d outputs, facts, errors; %d failed" % (counts[formats], counts.get("failed", 0)))
    return 1 if counts.get("failed") else 0


if __name__ == "__main__":
    sys.exit(main())
