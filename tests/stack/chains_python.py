#!/usr/bin/env python3
"""chains_python.py CHAIN: sleeps in that chain of Python functions until standard input ends.

Prints one line first, a JSON object: tid, and frames, innermost first, as the interpreter itself knows them. `chains_python.py`
alone prints the names of the chains.
"""
import asyncio
import contextlib
import functools
import json
import os
import select
import sys
import threading
import time
import warnings

READING, WRITING = os.pipe()
LOCK = threading.Lock()


def tell(frame):
    frames = []
    while frame:
        code = frame.f_code
        frames.append("%s (%s:%d)" % (code.co_qualname, os.path.basename(code.co_filename), frame.f_lineno))
        frame = frame.f_back
    print(json.dumps({"tid": threading.get_native_id(), "frames": frames}), flush=True)


# Both calls are on one line, so that the line printed is the one that sleeps.
def sleep_here(_unused=None):
    tell(sys._getframe()); time.sleep(1000)


def nested():
    def inner():
        sleep_here()

    def middle():
        inner()
    middle()


def locked():
    LOCK.acquire()
    tell(sys._getframe()); LOCK.acquire()


def selected():
    tell(sys._getframe()); select.select([READING], [], [])


def blocked_read():
    tell(sys._getframe()); os.read(READING, 1)


def threaded():
    thread = threading.Thread(target=nested, daemon=True)
    thread.start()
    thread.join()


def generator():
    def inner():
        yield 1
        sleep_here()
        yield 2

    def outer():
        yield from inner()

    for _ in outer():
        pass


class Base:
    def __init__(self):
        self.called

    @property
    def called(self):
        return self.of_class()

    @classmethod
    def of_class(cls):
        return cls.static()

    @staticmethod
    def static():
        class Inner:
            def __call__(self):
                (lambda: sleep_here())()
        Inner()()


def method():
    Base()


def sorted_by():
    sorted([2, 1], key=lambda value: sleep_here(value))


def reduced():
    functools.reduce(lambda one, other: [sleep_here(x) for x in (one, other)], map(abs, (1, 2)))


def coroutine():
    async def inner():
        sleep_here()

    async def outer():
        await inner()
    asyncio.run(outer())


def managed():
    @contextlib.contextmanager
    def held():
        yield
        sleep_here()

    with held():
        pass


def evaluated():
    exec("def made():\n\n    sleep_here()\nmade()", globals())


def recursion():
    def recurse(left):
        if left:
            return recurse(left - 1)
        return sleep_here()
    recurse(120)


def deep_recursion():
    def recurse(left):
        return recurse(left - 1) if left else sleep_here()
    recurse(900)


def fünf_日本語_𝔘():
    sleep_here()


def named():
    fünf_日本語_𝔘()


def many_lines():
    value = 0
    for _ in range(3):
        value += (
            1 +
            2)
    try:
        raise ValueError(value)
    except ValueError:
        if value:
            (
                sleep_here
            )(

                value)


def forked():
    warnings.simplefilter("ignore")  # the warning is of the thread that waits for the end
    child = os.fork()
    if not child:
        nested()
    os.waitpid(child, 0)


def left_side(seconds):
    time.sleep(seconds)


def right_side(seconds):
    def inner():
        time.sleep(seconds)
    inner()


def alternates():
    tell(sys._getframe())
    while True:
        left_side(0.003)
        right_side(0.003)


CHAINS = (nested, locked, selected, blocked_read, threaded, generator, method, sorted_by, reduced, coroutine, managed, evaluated,
          recursion, deep_recursion, named, many_lines, forked, alternates)


def end_with_input():
    os.read(0, 1)
    os.killpg(0, 9)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(" ".join(chain.__name__ for chain in CHAINS))
        sys.exit()
    if os.getpgid(0) != os.getpid():
        os.setpgid(0, 0)  # processes that it forks end with it
    threading.Thread(target=end_with_input, daemon=True).start()
    next(chain for chain in CHAINS if chain.__name__ == sys.argv[1])()
