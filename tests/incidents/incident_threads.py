"""Incidents of threads: too many, of the wrong priority, that spin."""
import os

from harness import SLOW, wait_until
from incident import Truth, incident, look_alike, now, python

# Threads that sleep for a time, one every few milliseconds or all at once.
THREADS = """
import threading, time
print("ready", flush=True)
for _ in range(%d):
    threading.Thread(target=time.sleep, args=(%g,), daemon=True).start()
    time.sleep(%g)
time.sleep(600)
"""


@incident(16, often=True)
def thread_leak(ctx):
    """A program makes threads that never end, two hundred a second."""
    program = python(ctx, THREADS % (10000, 600, 0.005))
    return Truth("threads", None, ("python3", program.pid), r"\d+ threads a second")


@look_alike(16)
def thread_pool(ctx):
    """A program makes a hundred threads at once, as its pool."""
    python(ctx, THREADS % (100, 600, 0))
    return ("threads",)


@look_alike(16)
def threads_that_end(ctx):
    """A program makes fifty threads a second, of which each ends."""
    python(ctx, THREADS % (10000, 0.1, 0.02))
    return ("threads",)


HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("ready", flush=True)
while True:
    pass
"""
WAITER = """
import fcntl, sys
file = open(sys.argv[1], "w")
print("ready", flush=True)
fcntl.flock(file, fcntl.LOCK_EX)
"""


def pinned(priority):
    """A function for a child, which gives it a real-time priority (0: none) on the last CPU."""
    def become():
        os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
        if priority:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    return become


def three_priorities(ctx, low, middle, high):
    """(who holds a lock, who has the CPU, who waits for the lock, since when), with these priorities."""
    path = os.path.join(ctx.temporary(), "lock")
    holder = python(ctx, HOLDER, path, preexec_fn=pinned(low))
    since = now()
    waiter = python(ctx, WAITER, path, preexec_fn=pinned(high))
    spinner = python(ctx, "while True: pass", ready=False, preexec_fn=pinned(middle))
    return holder, spinner, waiter, since


@incident(18, often=True)
def priority_inversion(ctx):
    """The holder of a lock has no CPU, as a program of a middle priority spins; one of a high priority waits for the lock."""
    holder, _, _, since = three_priorities(ctx, 0, 1, 2)
    return Truth("inversion", ("python3", None), ("python3", holder.pid), "nice 0, not real-time 2.*waits for a CPU.* behind python3", since,
                 also=("uneven_cpus", "cpus"))


@look_alike(18)
def lock_with_equals(ctx):
    """The holder of a lock shares its CPU with others of its priority."""
    three_priorities(ctx, 0, 0, 0)
    return ("inversion",)
