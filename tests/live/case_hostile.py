"""Programs of a user without rights who wishes tsnap ill: it costs them, and nobody else."""
import csv
import os
import signal
import subprocess

from harness import START_S, STOP_S, case, check, wait_until
from case_cost import resident_kb

ROWS_BYTES = 24 << 20  # about 400 000 rows, each of another name


@case
def hostile_names(ctx):
    """Threads that get another name every 4 ms: what tsnap keeps of names does not grow with them, and others' names are known."""
    spin = ctx.workload("spin")
    ctx.workload("hostile_names", threads=300)
    path = os.path.join(ctx.temporary(), "rows")
    with open(path, "wb") as file:
        tool = subprocess.Popen([ctx.options.tsnap, "--csv", "-a", "-F", "200", "-g", "comm,tid", "-d", "120"], stdout=file)
    wait_until(lambda: os.path.getsize(path) > 10000, START_S, "rows")
    with open("/proc/%d/task/%d/children" % (tool.pid, tool.pid), encoding="ascii") as file:
        worker = int(file.read().split()[0])
    before = resident_kb(worker)
    wait_until(lambda: os.path.getsize(path) > ROWS_BYTES, 90, "rows enough")
    grown = resident_kb(worker) - before
    tool.send_signal(signal.SIGTERM)
    check(tool.wait(STOP_S) == 0, "exit code %d", tool.returncode)
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = {row["comm"] for row in rows if row["tid"] != str(spin.tid)}
    check(len(names) > 250000, "only %d names were seen", len(names))
    check({row["comm"] for row in rows if row["tid"] == str(spin.tid)} == {"spin"}, "the spinning thread has other names")
    check("[too many names]" not in names, "names were given up")
    check(grown < 16384, "%d KB more after %d names", grown, len(names))
