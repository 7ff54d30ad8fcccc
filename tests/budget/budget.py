#!/usr/bin/env python3
"""Counts the user instructions of a scan, and of a sample on its way to the output; compares them with stored counts.

    budget.py BUILD COMPILER           compare with the file budget
    budget.py BUILD COMPILER --update  write it

Each program runs under callgrind with two sizes of input: the difference excludes the cost of a start. The counts depend
on compiler and libc, which the first line of the file names; exit code 77 with others, or without valgrind. They
do not depend on the CPU, because a tunable has libc choose its functions as on an old one.
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUDGET = os.path.join(HERE, "budget")
FIXTURES = os.path.join(HERE, "..", "fixtures")
OLD_CPU = "glibc.cpu.hwcaps=" + ",".join("-" + name for name in (
    "AVX2", "AVX2_Usable", "AVX512F", "AVX512VL", "AVX_Fast_Unaligned_Load", "ERMS", "FSRM", "BMI2", "SSSE3"))
ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": "C", "GLIBC_TUNABLES": OLD_CPU}
PERCENT = 5
SCAN_SAMPLES = 5000  # samples of a scan of report_path
LIMIT_S = 300
RENEW = " ".join(map(shlex.quote, sys.argv + ["--update"]))


def skip(words):
    print("skipped: " + words)
    sys.exit(77)


def instructions(argv):
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"] + argv,
                          env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, timeout=LIMIT_S)
    words = done.stderr.decode(errors="replace")
    found = re.search(r"Collected : (\d+)", words)
    if done.returncode or not found:
        sys.exit("%s: exit %d under valgrind: %s" % (" ".join(argv), done.returncode, words))
    return int(found.group(1))


def of_each(make, small, large, each):
    """Instructions for one of the rows (or scans) by which the runs differ."""
    return round((instructions(make(large)) - instructions(make(small))) / ((large - small) * each))


def counted(build):
    """(words, instructions) of each measurement."""
    tsnap, path = build + "/src/tsnap", build + "/tests/bench/report_path"
    for part, words in (("groups", "a sample grouped"), ("rows", "a sample written as CSV")):
        yield words, of_each(lambda scans, part=part: [path, part, str(scans)], 1, 5, SCAN_SAMPLES)
    path = build + "/tests/bench/scan_path"
    for part, words, small, large in (("active", "a scan of 20 000 sleeping threads and 50 active", 10, 90),
                                      ("all", "the same with -a", 2, 12)):
        yield words, of_each(lambda scans, part=part, path=path: [path, part, str(scans)], small, large, 1)
    for name in ("many", "all_columns"):
        with open(os.path.join(FIXTURES, name + ".csv"), "rb") as file:
            recording = file.read()
        with tempfile.TemporaryDirectory() as folder:
            def repeated(times, *options, recording=recording, folder=folder):
                copy = os.path.join(folder, "%d.csv" % times)
                with open(copy, "wb") as file:
                    file.write(recording * times)
                return [tsnap, "--no-sandbox", "--replay", copy, "-a"] + list(options)
            rows = recording.count(b"\n") - 1
            for options in ([], ["--csv"], ["--json"]):
                words = " ".join(["a row of %s.csv, tsnap --replay" % name, "-a"] + options)
                yield words, of_each(lambda times, options=options: repeated(times, *options), 10, 30, rows)


def stored(here):
    """{words: instructions} from the file budget, which has lines such as '165 a sample grouped' below the line of the host."""
    with open(BUDGET, encoding="utf-8") as file:
        kept, *lines = file.read().splitlines()
    if kept != here:
        skip("the budget is of %s, this build is of %s" % (kept, here))
    return {words: int(count) for count, words in (line.split(" ", 1) for line in lines)}


def verdict(words, count, budget):
    """A message if the count is more than PERCENT away from the budget, else None."""
    if budget is None:
        return "the budget has no line '%d %s': %s" % (count, words, RENEW)
    if count * 100 > budget * (100 + PERCENT):
        return ("%s: %d instructions, and %d in the budget: find what made it slower; if it is worth that, "
                "change the budget in the same commit: %s" % (words, count, budget, RENEW))
    if count * 100 < budget * (100 - PERCENT):
        return ("%s: only %d instructions, and %d in the budget: renew the budget in the same commit: %s" % (
            words, count, budget, RENEW))
    return None


def main(argv):
    if len(argv) not in (2, 3) or argv[2:] not in ([], ["--update"]):
        sys.exit("usage: budget.py BUILD COMPILER [--update]")
    if not shutil.which("valgrind"):
        skip("valgrind is missing (packaging/install-deps test)")
    here = "%s, %s, %s" % (argv[1], os.confstr("CS_GNU_LIBC_VERSION"), os.uname().machine)
    update = argv[2:] == ["--update"]
    budget = {} if update else stored(here)
    lines, failed = [here], 0
    for words, count in counted(os.path.abspath(argv[0])):
        lines.append("%d %s" % (count, words))
        print(lines[-1], flush=True)
        wrong = None if update else verdict(words, count, budget.pop(words, None))
        if wrong:
            print("FAILED " + wrong)
            failed += 1
    if update:
        with open(BUDGET, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    for words in budget if not update else ():
        print("FAILED the budget has a line that nothing counts: " + words)
        failed += 1
    print("%d passed, %d failed, 0 skipped" % (len(lines) - 1 - min(failed, len(lines) - 1), failed))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
