#!/usr/bin/env python3
"""cuts.py TSNAP WORKLOAD [COUNT]: cuts a machine off COUNT times (20) while tsnap records on its disk, with which the next machine goes on:
nothing but the frames that were being written is missing, and at the end every file is whole, for zstd, tsnap and DuckDB.

The machine is a guest of tests/vm/boot: data that it had not yet put on its disk is lost with it. The last line is the totals: N passed,
N failed, N skipped."""
import os
import random
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, TOP + "/tests/live")

from case_record import files_of, rows_of_files  # noqa: E402  pylint: disable=wrong-import-position
from case_schema import duckdb_asked  # noqa: E402  pylint: disable=wrong-import-position
from harness import Failure, Skip, check  # noqa: E402  pylint: disable=wrong-import-position

LOGS = TOP + "/build-test/logs/vm/cuts"
DISK = LOGS + "/disk"
KERNEL = "sid"
FLUSH_S = 0.5
GUEST_S = 300   # time limit of a guest's start or end
RANDOM = 20     # seed: the same cuts each time
LAST_SCANS = 3  # the last guest takes so many scans, and is not cut off


class Guest:
    """A guest that boots with the disk and records on it."""

    def __init__(self, number, *args):
        self.out = "%s/%d" % (LOGS, number)
        os.mkdir(self.out)
        with open(self.out + ".log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([HERE + "/boot", "-o", self.out, "-d", DISK, KERNEL, HERE + "/cut_guest", *map(str, args)],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def numbers(self, name):
        """The numbers in the whole lines that the guest has written so far into a file of /out."""
        try:
            with open(self.out + "/" + name, encoding="utf-8") as file:
                return [int(line) for line in file.read().split("\n")[:-1] if line]
        except FileNotFoundError:
            return []

    def grows(self, times):
        """Waits until the recording has grown so many times."""
        end = time.monotonic() + GUEST_S
        while len(set(self.numbers("sizes"))) <= times:
            check(self.process.poll() is None and time.monotonic() < end, "no recording grows: %s.log", self.out)
            time.sleep(0.1)

    def cut(self):
        self.process.terminate()
        self.process.wait()

    def finish(self):
        try:
            status = self.process.wait(GUEST_S)
        except subprocess.TimeoutExpired:
            self.cut()
            raise Failure("it does not end: %s.log" % self.out) from None
        check(status == 0, "exit status %d: %s.log", status, self.out)


def kept_least(sizes):
    """Bytes that certainly were on the disk: each frame is on the disk before the next is begun, so only the newest may not have been."""
    return max((size for size in sizes if size < sizes[-1]), default=0)


def cuts(tsnap, workload, count):
    """Cuts the guests off one after the other; the bytes that each had certainly put on the disk are there for the next."""
    draw = random.Random(RANDOM)
    least = 0
    for number in range(count):
        guest = Guest(number, tsnap, workload, FLUSH_S)
        try:
            guest.grows(draw.randint(1, 6))
            time.sleep(draw.uniform(0, 2 * FLUSH_S))
        finally:
            guest.cut()
        left = sum(guest.numbers("left"))
        check(left >= least, "cut %d: %d bytes are left, %d were on the disk", number, left, least)
        least = kept_least(guest.numbers("sizes"))
        print("ok cut %d: %d bytes at its start, at least %d on the disk at its end" % (number, left, least), flush=True)
    last = Guest(count, tsnap, workload, FLUSH_S, LAST_SCANS)
    last.finish()
    check(sum(last.numbers("left")) >= least, "the last cut: %s bytes are left, %d were on the disk", last.numbers("left"), least)


def whole(tsnap, count):
    """The recording on the disk at the end is whole."""
    subprocess.run(["debugfs", "-R", "rdump /rec " + LOGS, DISK], check=True, stderr=subprocess.DEVNULL)
    directory = LOGS + "/rec"
    samples, scans, hosts = (rows_of_files(directory, kind) for kind in ("samples", "scans", "host"))
    check(len(hosts) == count + 1, "%d starts of %d", len(hosts), count + 1)
    check(len(scans) >= count * 5 * FLUSH_S, "%d scans in %d starts", len(scans), count + 1)
    replayed = subprocess.run([tsnap, "--replay", directory, "-a", "--csv", "-g", "timestamp,tid"], check=True, stdout=subprocess.PIPE)
    check(len(replayed.stdout.splitlines()) == len(samples) + 1, "%d rows are replayed of %d", len(replayed.stdout.splitlines()) - 1,
          len(samples))
    asked = duckdb_asked(tsnap, LOGS, [directory], ["SELECT count(*) AS n FROM " + table for table in ("samples", "scans")])
    check([int(rows[0][0]) for rows in asked] == [len(samples), len(scans)], "DuckDB has %s rows, not %d and %d", asked, len(samples),
          len(scans))
    print("ok whole: %d scans, %d samples in %d files" % (len(scans), len(samples), len(files_of(directory, "*"))))


def main(argv):
    tsnap, workload = map(os.path.abspath, argv[1:3])
    count = int(argv[3]) if len(argv) > 3 else 20
    shutil.rmtree(LOGS, ignore_errors=True)
    os.makedirs(LOGS)
    subprocess.run([HERE + "/kernel-fetch", KERNEL], check=True, stdout=subprocess.DEVNULL)
    with open(DISK, "wb") as disk:
        disk.truncate(256 << 20)
    subprocess.run(["mkfs.ext4", "-q", DISK], check=True)
    passed = skipped = failed = 0
    try:
        cuts(tsnap, workload, count)
        passed = count
        whole(tsnap, count)
        passed += 1
    except Skip as reason:
        print("skip whole: %s" % reason)
        skipped = 1
    except Failure as reason:
        print("FAIL cuts: %s" % reason)
        failed = 1
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv))
