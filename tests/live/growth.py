"""A map of threads that tsnap has to enlarge, for tests named *_growth."""
import os
import re

import truth
from harness import SLOW, Skip
from parts import FIRST_SLOW

FIRST_THREADS = 16384  # the least capacity of tsnap's map
FEW_IDS = 4096
PID_MAX = "/proc/sys/kernel/pid_max"


class Room:
    """The map of a tsnap that begins before widen() has a capacity of `threads` threads. A map never has more than there are ids: an
    emulated machine, which is the test's own, has few ids until then, because 16384 threads take minutes there."""

    def __init__(self, ctx):
        there, self.ids = len(truth.threads()), int(truth.read(PID_MAX))
        self.threads = FIRST_THREADS if SLOW < FIRST_SLOW else FEW_IDS
        if there * 1.5 > self.threads or self.ids < self.threads + 2 * there + 4000:
            raise Skip("%d threads are there and at most %d can be: the map can't be made too small" % (there, self.ids))
        if self.threads == FEW_IDS:
            ctx.started.append(self)
            self._limit(FEW_IDS)

    @staticmethod
    def _limit(ids):
        with open(PID_MAX, "w") as file:
            file.write("%d" % ids)

    def widen(self):
        """Restores the number of ids (pid_max). To be called when tsnap has begun."""
        if self.threads == FEW_IDS:
            self._limit(self.ids)
        return self

    def end(self):
        self.widen()

    def was_left(self, pid):
        """True if the process has replaced the map that it began with by a larger one."""
        sizes = [entries for key_bytes, value_bytes, entries in maps_of(pid)
                 if key_bytes == 4 and value_bytes > 64 and entries >= self.threads]
        return bool(sizes) and min(sizes) > self.threads


def maps_of(pid):
    """(bytes of a key, bytes of a value, entries) of each BPF map to which the process has a descriptor."""
    try:
        for fd in os.listdir("/proc/%d/fdinfo" % pid):
            with open("/proc/%d/fdinfo/%s" % (pid, fd)) as file:
                words = dict(re.findall(r"^(\w+):\s*(\d+)$", file.read(), re.M))
            if "max_entries" in words and int(words["max_entries"]) > 1:
                yield tuple(int(words[name]) for name in ("key_size", "value_size", "max_entries"))
    except OSError:  # the process exits, or closes a descriptor
        pass
