"""Incidents of CPUs: quotas, storms."""
import os

from case_quota import LITTLE_US, group_path
from case_scan_time import cpu_group
from incident import Truth, incident, look_alike, python, shell

SPIN = "while True: pass"
NAPS = "import time\nwhile True:\n\ttime.sleep(0.01)\n\tsum(range(5000))"


def pythons(ctx, count, text, **popen):
    for _ in range(count):
        python(ctx, text, ready=False, **popen)


@incident(6, often=True)
def cpu_quota(ctx):
    """Four workers of a control group that may use a fiftieth of a CPU."""
    pythons(ctx, 4, SPIN, preexec_fn=cpu_group(ctx, LITTLE_US))
    return Truth("quota", ("python3", 4), None, "/" + os.path.basename(group_path()))


@look_alike(6, often=True)
def cpu_quota_not_used_up(ctx):
    """A control group that may use half of a CPU, and needs less."""
    pythons(ctx, 2, NAPS, preexec_fn=cpu_group(ctx, 50000))
    return ("quota",)


def forker(ctx, pause):
    """A shell that starts a short program after the other, `pause` seconds between two."""
    return shell(ctx, "while :; do /bin/true; %s; done" % (pause and "sleep %g" % pause or ":"))


@incident(11, often=True)
def fork_storm(ctx):
    """A shell script that starts a program after the other."""
    script = forker(ctx, 0)
    return Truth("forks", None, ("sh", script.pid), r"\d+ processes", also=("cpus", "kernel"))


@look_alike(11, often=True)
def few_forks(ctx):
    """A shell script that starts some programs a second."""
    forker(ctx, 0.1)
    return ("forks",)
