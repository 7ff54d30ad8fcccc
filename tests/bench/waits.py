"""Cost of finding out what threads wait for."""
import re

from sampler import Held, Sampler, say
from table import Row

SERVED = 1000
RATE_HZ = 20


class Served(Held):
    """Threads that each wait for a TCP connection and are woken between every two scans."""

    def __init__(self, options):
        super().__init__(options, "served", "threads=%d" % SERVED)
        self.pid = re.search(r" pid=(\d+)", self.ready).group(1)


def bench_waits(options):
    rows = []
    with Served(options) as served:
        for what, columns, aim in (("state and system call", "syscall", None), ("filename", "syscall,filename", None),
                                   ("filename and connection", "syscall,filename,connection", 10),
                                   ("waits_on and wchan, too", "syscall,filename,connection,waits_on,wchan", None)):
            say("waits: " + what)
            with Sampler(options, "-d", 100000, "-F", RATE_HZ, "-a", "-p", served.pid, "-g",
                         "timestamp,tid,state," + columns) as sampler:
                cost, achieved = sampler.scan_cost(max(2, options.scan_s / 2), RATE_HZ, True)
            rows.append(Row("CPU, %d threads that wait for connections, %d Hz: %s" % (SERVED, RATE_HZ, what), "tsnap",
                            100 * cost * achieved, "%", aim=aim, remark="%.1f scans a second" % achieved))
    return rows
