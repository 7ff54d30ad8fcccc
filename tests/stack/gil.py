#!/usr/bin/env python3
"""gil.py CASE: threads that wait for the GIL. Prints one line first, a JSON object: pid; holder, a thread's id, and place, the
file and line that it is in; waiters, the others' ids. Ends with its parent, which kills it.

held: the holder naps in C with the GIL. turns: all of them compute. deadlock: the holder waits, with the GIL, for a mutex of a
thread that waits for the GIL. A waiter wakes every 5 ms to request the GIL, in held and deadlock once a second.
"""
import ctypes
import json
import os
import sys
import threading
import time

WAITERS = 4
KEEPING = ctypes.PyDLL(None)  # calls of a PyDLL keep the GIL
PR_SET_PDEATHSIG, SIGKILL = 1, 9
MUTEX = ctypes.create_string_buffer(64)  # a pthread_mutex_t


def tell(holder, waiters, line):
    print(json.dumps({"pid": os.getpid(), "holder": holder, "waiters": waiters, "place": "gil.py:%d" % line}), flush=True)


def compute():
    while True:
        pass


def started(function, count):
    threads = [threading.Thread(target=function, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    return [thread.native_id for thread in threads]


def nap():
    while True:
        time.sleep(0.05)


def held():
    tell(threading.get_native_id(), started(nap, WAITERS), sys._getframe().f_lineno + 1)
    KEEPING.sleep(1000)


def turns():
    tell(0, started(compute, WAITERS), 0)
    compute()


def deadlock():
    locked = threading.Event()

    def hold_mutex():
        KEEPING.pthread_mutex_lock(MUTEX)
        locked.set()
        time.sleep(0.2)

    waiters = started(hold_mutex, 1)
    locked.wait()
    tell(threading.get_native_id(), waiters, sys._getframe().f_lineno + 1)
    KEEPING.pthread_mutex_lock(MUTEX)


if __name__ == "__main__":
    KEEPING.prctl(PR_SET_PDEATHSIG, SIGKILL)
    if sys.argv[1] != "turns":
        sys.setswitchinterval(1)
    {"held": held, "turns": turns, "deadlock": deadlock}[sys.argv[1]]()
