"""Incidents of threads: too many, of the wrong priority, that spin."""
import os
import subprocess

from harness import SLOW, check, wait_until
from incident import Program, Truth, incident, look_alike, now, python
from parts import program

# Threads that sleep for a time, one every few milliseconds or all at once.
THREADS = """
import threading, time
print("ready", flush=True)
for _ in range(%d):
    threading.Thread(target=time.sleep, args=(%g,), daemon=True).start()
    time.sleep(%g)
time.sleep(600)
"""


@incident(16)
def thread_leak(ctx):
    """A program makes threads that never end, two hundred a second."""
    process = python(ctx, THREADS % (10000, 600, 0.005))
    return Truth("threads", None, ("python3", process.pid), r"\d+ more threads a second", also=("cpus",))


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


SPINNERS = 2
SPIN = """
import ctypes, threading, time
libc, lock = ctypes.CDLL(None), ctypes.c_int()
libc.pthread_spin_init(ctypes.byref(lock), 0)
libc.pthread_spin_lock(ctypes.byref(lock))
def work():
    while True:
        libc.pthread_spin_lock(ctypes.byref(lock))
        libc.pthread_spin_unlock(ctypes.byref(lock))
for _ in range(%d):
    threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
time.sleep(%g)
libc.pthread_spin_unlock(ctypes.byref(lock))
time.sleep(600)
"""


@incident(15, not_yet="who spins for a lock looks like who works; --on-cpu --stacks shows the function")
def user_spinlock(ctx):
    """Two threads spin for a lock in user space, whose holder sleeps."""
    process = python(ctx, SPIN % (SPINNERS, 600))
    return Truth("spinlock", ("python3", SPINNERS), ("python3", process.pid), "pthread_spin_lock", now(), also=("cpus", "uneven_cpus"))


@look_alike(15)
def user_spinlock_free(ctx):
    """A thread takes and gives back a lock in user space all the time; nobody holds it for long."""
    python(ctx, SPIN % (1, 0))
    return "spinlock", "lock", "busy_thread", "server", "sleeper"


GOROUTINES = """
package main
import (
	"fmt"
	"time"
)
func main() {
	fmt.Println("ready")
	for {
		go func() { <-make(chan int) }()
		time.Sleep(time.Millisecond)
	}
}
"""


def goroutines(ctx, text):
    """A Go program that begins a thousand goroutines a second."""
    directory = ctx.temporary()
    with open(directory + "/main.go", "w") as file:
        file.write(text)
    made = subprocess.run([program("go", "golang-go"), "build", "-o", directory + "/leak", directory + "/main.go"],
                          env=dict(os.environ, GO111MODULE="off"), capture_output=True, text=True, check=False)
    check(made.returncode == 0, "go build: %s", made.stderr)
    process = Program(ctx, [directory + "/leak"])
    wait_until(lambda: b"ready" in process.out, 20 * SLOW, "the program")
    return process


@incident(21)
def goroutine_leak(ctx):
    """A Go program begins goroutines that wait forever, a thousand a second."""
    process = goroutines(ctx, GOROUTINES)
    return Truth("goroutines", None, ("leak", process.pid), r"\d+ more goroutines a second", also=("cpus",))


@look_alike(21)
def goroutines_that_end(ctx):
    """A Go program begins goroutines that end, a thousand a second."""
    goroutines(ctx, (GOROUTINES).replace("<-make(chan int)", ""))
    return "goroutines", "threads"
