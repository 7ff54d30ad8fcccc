"""Incidents of CPUs: quotas, storms."""
import os
import subprocess

from case_quota import LITTLE_US, group_path
from case_scan_time import cpu_group
from incident import Program, Truth, incident, look_alike, python, shell
from parts import program

SPIN = "while True: pass"
# begins when its start, which needs more, is over
NAPS = "import time\ntime.sleep(1)\nprint('ready', flush=True)\nwhile True:\n\ttime.sleep(0.01)\n\tsum(range(5000))"


@incident(6, often=True)
def cpu_quota(ctx):
    """Four workers of a control group that may use a fiftieth of a CPU."""
    enter = cpu_group(ctx, LITTLE_US)
    for _ in range(4):
        python(ctx, SPIN, ready=False, preexec_fn=enter)
    return Truth("quota", ("python3", 4), None, "/" + os.path.basename(group_path()))


@look_alike(6)
def cpu_quota_not_used_up(ctx):
    """A control group that may use half of a CPU, and needs less."""
    enter = cpu_group(ctx, 50000)
    for _ in range(2):
        python(ctx, NAPS, preexec_fn=enter)
    return ("quota",)


def forker(ctx, pause):
    """A shell that starts a short program after the other, `pause` seconds between two."""
    return shell(ctx, "while :; do /bin/true; %s; done" % (pause and "sleep %g" % pause or ":"), preferred=True)


@incident(11, often=True, whole=True)
def fork_storm(ctx):
    """A shell script that starts a program after the other."""
    script = forker(ctx, 0)
    return Truth("forks", None, ("sh", script.pid), r"\d+ processes", also=("cpus", "kernel"))


@look_alike(11, whole=True)
def few_forks(ctx):
    """A shell script that starts some programs a second."""
    forker(ctx, 0.1)
    return ("forks",)


# A thread is made for each piece of work, and the process waits for its end.
THREADS = """
#include <pthread.h>
#include <unistd.h>
static void *work(void *to) { return to; }
int main(int argc, char **argv)
{
	pthread_t thread;
	while (!pthread_create(&thread, 0, work, 0) && !pthread_join(thread, 0))
		if (argc > 1)
			usleep(10000);
	return 0;
}
"""
# Two processes that pass a byte to and fro.
PINGPONG = """
#include <unistd.h>
int main(void)
{
	int to[2], fro[2];
	char byte = 0;
	if (pipe(to) || pipe(fro))
		return 1;
	int child = fork() == 0;
	if (!child)
		(void)!write(to[1], &byte, 1);
	while (read(child ? to[0] : fro[0], &byte, 1) == 1 && write(child ? fro[1] : to[1], &byte, 1) == 1)
		;
	return 0;
}
"""


def compiled(ctx, name, text, *args):
    directory = ctx.temporary()
    with open("%s/%s.c" % (directory, name), "w") as file:
        file.write(text)
    subprocess.run([program("gcc", "gcc", "/usr/bin"), "-O1", "-pthread", "-o", directory + "/" + name, file.name], check=True)
    return Program(ctx, [directory + "/" + name, *args], preferred=True)


@incident(11.1, whole=True)
def thread_storm(ctx):
    """A program that makes a thread for each piece of work."""
    process = compiled(ctx, "perrequest", THREADS)
    return Truth("new_threads", None, ("perrequest", process.pid), r"\d+ threads are made", also=("cpus", "kernel", "forks"))


@look_alike(11.1, whole=True)
def few_threads(ctx):
    """A program that makes a thread a hundred times a second."""
    compiled(ctx, "perrequest", THREADS, "slowly")
    return ("new_threads", "forks", "threads")


@incident(11.2, whole=True)
def wakeup_storm(ctx):
    """Pairs of processes, which fill all CPUs, that wake each other for a byte each."""
    for _ in range(os.cpu_count()):
        compiled(ctx, "pingpong", PINGPONG)
    return Truth("switches", None, None, r"\d+ times a second.*pingpong", also=("cpus", "kernel", "server"))
