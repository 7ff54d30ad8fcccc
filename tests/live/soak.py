"""Accuracy and cost of a tsnap that runs for long under load: stress-ng, and threads and processes that come and go.

As a program it prints these figures: --help.
"""
import argparse
import csv
import os
import shutil
import subprocess
import sys
import threading
import time

import truth
from harness import Skip

HZ = 20
TIMES = ("cpu_us", "runq_us", "dwait_us", "sleep_us")
COLUMNS = ("timestamp", "weight_us", "tid", "pid", "comm", "state", "state_us", "cpu", *TIMES, "ustack", "kstack")
LOAD = ("--cpu", "1", "--pipe", "1", "--switch", "1", "--futex", "1", "--fork", "1", "--pthread", "1",
        "--exec", "1", "--hdd", "1", "--hdd-bytes", "16m")
ACCOUNTED = {"ON", "RQ", "D", "S", "I"}
LEAST_S = 60    # a thread's times are added up if it was seen for so long: on a full host its first scan is read half a second late
LOOK_S = 2      # seconds between readings of memory
CROWDS = 8      # that are printed one by one
WITHHELD_US = 10 * 10 ** 6  # times that do not add up for so long are never reported (live/threads/live_totals.h)
ABOUT_US = 10 ** 6  # tsnap may begin anew so much before the rows' timestamps show that these ten seconds are over
EDGE_US = 5000  # error at the first and the last row of a thread: its switches are not at scan times


class Life:
    """Exact times of one thread, and the time between the rows that have them."""

    __slots__ = ("who", "last_us", "reach_us", "wall_us", "reported_us", "withheld", "withholding", "states")

    def __init__(self, who, now_us, told):
        self.who, self.last_us, self.states = who, now_us, set()
        self.reach_us = now_us if told else None  # None: the start of the next reported times is not known yet
        self.wall_us = self.reported_us = self.withheld = 0
        self.withholding = not told

    def add(self, now_us, state, times):
        self.states.add(state)
        self.last_us = now_us
        if times is not None:
            # times that were withheld for about WITHHELD_US may be reported or dropped: not counted
            counts = self.reach_us and not (self.withholding and now_us - self.reach_us > WITHHELD_US - ABOUT_US)
            self.wall_us += now_us - self.reach_us if counts else 0
            self.reported_us += times if counts else 0
            self.reach_us, self.withholding = now_us, False
            return
        # the times did not add up: a later row has them, if they add up again soon
        self.withheld += 1
        self.withholding = True
        if self.reach_us and now_us - self.reach_us > WITHHELD_US:
            self.reach_us = now_us

    def __str__(self):
        return "%.2f %%: pid %s, tid %s, %s, %s, %.1f s of %.1f, %d rows withheld" % (
            100 * self.apart, *self.who, "/".join(sorted(self.states)), self.reported_us / 1e6, self.wall_us / 1e6, self.withheld)

    @property
    def apart(self):
        """The error of the sum, as a share of the time."""
        return max(0, abs(self.reported_us - self.wall_us) - EDGE_US) / max(1, self.wall_us)


def microseconds(timestamp):
    """Microseconds of a timestamp, within its day."""
    hours, minutes, seconds = timestamp[11:].rstrip("Z").split(":")
    return round((int(hours) * 3600 + int(minutes) * 60 + float(seconds)) * 1e6)


class Told:
    """Sums over a run's rows, which are read one by one, as there are millions."""

    def __init__(self, file):
        self.rows = self.broken = self.scans = self.crowded = self.most_on = self.stacks = 0
        self.lives, self.ended, self.crowds = {}, [], []
        self.file, self.scan, self.now_us, self.on = file, None, 0, {}
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        rows = csv.reader(self.file, strict=True)
        try:
            if tuple(next(rows, ())) != COLUMNS:
                raise csv.Error("other columns")
            for row in rows:
                self.rows += 1
                if len(row) != len(COLUMNS):
                    self.broken += 1
                else:
                    self.take(dict(zip(COLUMNS, row)))
        except csv.Error:
            self.broken += 1
        self.scan_end()

    def scan_end(self):
        for rows in self.on.values():
            if len(rows) > 1 and len(self.crowds) < CROWDS:
                self.crowds.append("%s, CPU %s: %s" % (self.scan, rows[0]["cpu"], "; ".join(
                    "{pid}/{tid} {comm} for {state_us} us".format(**row) for row in rows)))
        self.crowded += any(len(rows) > 1 for rows in self.on.values())
        self.most_on = max(self.most_on, sum(map(len, self.on.values())))
        self.on = {}

    def take(self, row):
        if row["timestamp"] != self.scan:
            self.scan_end()
            self.scan, self.scans = row["timestamp"], self.scans + 1
            now_us = microseconds(self.scan)
            # after midnight a day is added
            self.now_us = now_us + (86400 * 10 ** 6 if now_us < self.now_us % (86400 * 10 ** 6) - 10 ** 9 else 0)
        if row["state"] == "ON":
            self.on.setdefault(row["cpu"], []).append(row)
        self.stacks += bool(row["ustack"] or row["kstack"])
        times = [row[name] for name in TIMES]
        life = self.lives.get((row["pid"], row["tid"]))
        # the tid is another thread's now
        if life is None or self.now_us - life.last_us > 10 ** 6:
            if life:
                self.ended.append(life)
            life = self.lives[row["pid"], row["tid"]] = Life((row["pid"], row["tid"], row["comm"]), self.now_us, all(times))
            life.states.add(row["state"])
            return
        life.add(self.now_us, row["state"], sum(map(int, times)) if all(times) else None)

    def long_lives(self):
        """Lives of LEAST_S or more, of threads that were never stopped, traced or zombies: no column has the time in these states."""
        return [life for life in self.ended + list(self.lives.values())
                if life.wall_us >= LEAST_S * 10 ** 6 and not life.states - ACCOUNTED]


class Taken:
    """Memory and descriptors of all of tsnap's processes, read now and then."""

    def __init__(self, pid):
        self.pid, self.looks = pid, []

    def processes(self, pid=None):
        pid = pid or self.pid
        return [pid] + [one for child in truth.children(pid) for one in self.processes(child)]

    def look(self):
        memory = files = 0
        for pid in self.processes():
            memory += truth.memory_bytes([pid], "RssAnon") >> 10
            try:
                files += len(os.listdir("/proc/%d/fd" % pid))
            except OSError:
                pass
        self.looks.append((memory, files))

    def most(self, which, begin, end):
        """The maximum in a part of the run; begin and end are shares of it."""
        part = self.looks[int(len(self.looks) * begin):int(len(self.looks) * end)] or self.looks
        return max(look[which] for look in part)


class Soak:
    """A run of `seconds` seconds under load."""

    def __init__(self, tsnap, seconds, directory):
        stress = shutil.which("stress-ng")
        if not stress:
            raise Skip("stress-ng is not installed")
        load = subprocess.Popen([stress, *LOAD, "--temp-path", directory, "--timeout", "0"], cwd=directory, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            began = time.monotonic()
            with open(os.path.join(directory, "words"), "w+", encoding="utf-8", errors="replace") as words:
                tool = subprocess.Popen([tsnap, "--csv", "-a", "-F", str(HZ), "-d", str(seconds), "-g", ",".join(COLUMNS)],
                                        stdout=subprocess.PIPE, stderr=words, text=True, encoding="utf-8", errors="replace")
                self.told, self.taken = Told(tool.stdout), Taken(tool.pid)
                while tool.poll() is None:
                    time.sleep(LOOK_S)
                    if tool.poll() is None:
                        self.taken.look()
                self.told.thread.join()
                self.code, self.seconds = tool.returncode, time.monotonic() - began
                words.seek(0)
                self.words = words.read()
        finally:
            os.killpg(load.pid, 15)
            load.wait()

    def facts(self):
        """(name, value) of each figure that is printed."""
        told, taken, lives = self.told, self.taken, self.told.long_lives()
        worst = max(lives, key=lambda life: life.apart, default=None)
        wall, sums = sum(life.wall_us for life in lives), sum(life.reported_us for life in lives)
        return [("seconds", "%.0f" % self.seconds), ("scans", told.scans), ("rows", told.rows), ("rows that are not whole", told.broken),
                ("scans with two threads ON on a CPU", told.crowded), ("most threads ON in a scan", told.most_on),
                ("threads seen for %d s and more" % LEAST_S, len(lives)),
                ("of these with times that are 1 % off", len([life for life in lives if life.apart > 0.01])),
                ("the worst of them", worst),
                ("rows whose times are withheld", sum(life.withheld for life in told.ended + list(told.lives.values()))),
                ("all their times over the time", "%.5f" % (sums / max(1, wall))),
                *(("two threads ON", words) for words in told.crowds[:CROWDS]),
                ("rows with a stack", "%.1f %%" % (100 * told.stacks / max(1, told.rows))),
                ("memory, second quarter and last", "%.1f and %.1f MB" % (taken.most(0, 0.25, 0.5) / 1024, taken.most(0, 0.75, 1) / 1024)),
                ("descriptors, second quarter and last", "%d and %d" % (taken.most(1, 0.25, 0.5), taken.most(1, 0.75, 1)))]


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tsnap", required=True, help="the program")
    parser.add_argument("--seconds", type=int, default=3600, help="how long (default: an hour)")
    parser.add_argument("--directory", default=".", help="for files of the load")
    options = parser.parse_args(argv)
    soak = Soak(options.tsnap, options.seconds, options.directory)
    for name, value in soak.facts():
        print("%-45s %s" % (name, value))
    print(soak.words, end="")
    return soak.code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
