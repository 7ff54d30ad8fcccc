#!/usr/bin/env python3
"""tasks_python.py [busy|moving]: asyncio tasks that wait for each other in the ways of asyncio, in two threads; Python 3.14 or later.

Prints one line when all of them wait, a JSON list: of each task its name and state, its loop's thread, the functions
that await each other, the outermost first, as the interpreter itself knows them, and the names of the tasks that await it.
busy: a task keeps the first loop from running the others then, of which some are ready. moving: tasks never wait for longer
than their loop takes to run them, or end and are followed by others; prints "moving". Runs until standard input ends.
"""
import asyncio
import json
import os
import sys
import threading
import time

NAMED = 20  # tasks that wait in the same place
MOVERS = 10
LISTED = {}
WRAPPED = {}  # {name of a type: what its only object wraps}


def place(frame):
    return "%s (%s:%d)" % (frame.f_code.co_qualname, os.path.basename(frame.f_code.co_filename), frame.f_lineno)


def coroutine_of(awaitable):
    """What a coroutine awaits, if that is a coroutine or generator, or wraps one, with the prefix of its attributes; None: it is another
    object."""
    # the interpreter does not say what these wrap
    awaitable = WRAPPED.get(type(awaitable).__name__, awaitable)
    return next(((prefix, awaitable) for prefix in ("cr", "gi", "ag") if hasattr(awaitable, prefix + "_frame")), None)


def stack_of(task):
    stack, found = [], coroutine_of(task.get_coro())
    while found:
        prefix, coroutine = found
        stack.append(place(getattr(coroutine, prefix + "_frame")))
        found = coroutine_of(getattr(coroutine, {"gi": "gi_yieldfrom"}.get(prefix, prefix + "_await")))
    return stack


def running_stack(task, frame):
    stack = [place(frame)]
    while frame is not task.get_coro().cr_frame:
        frame = frame.f_back
        stack.insert(0, place(frame))
    return stack


def awaiters_of(future, seen):
    """Names of the tasks that await a future, also through futures."""
    names = set()
    for other in future._asyncio_awaited_by or ():
        if other in seen:
            continue
        seen.add(other)
        if isinstance(other, asyncio.Task):
            names.add(other.get_name())
        else:
            names |= awaiters_of(other, seen)
    return names


def tell(running=None):
    """What this thread's loop has."""
    rows = []
    for task in asyncio.all_tasks():
        stack = running_stack(task, sys._getframe(1)) if task is running else stack_of(task)
        waiter = task._fut_waiter
        state = "running" if task is running else "ready" if waiter is None or waiter.done() else "waiting"
        rows.append({"name": task.get_name(), "state": state, "tid": threading.get_native_id(), "stack": stack,
                     "awaited_by": sorted(awaiters_of(task, set()))})
    return rows


async def leaf(forever):
    await forever.wait()


async def named(forever):
    await leaf(forever)


async def gathering(forever):
    await asyncio.gather(leaf(forever), leaf(forever))


async def grouped(forever):
    async with asyncio.TaskGroup() as group:
        group.create_task(leaf(forever), name="child of a group")
        group.create_task(asyncio.sleep(1000))


async def holder(lock, forever):
    async with lock:
        await forever.wait()


async def locked(lock):
    async with lock:
        pass


async def consumer(queue):
    await queue.get()


async def shared(task):
    await task


async def threaded():
    await asyncio.to_thread(sys.stdin.read)


async def limited(forever):
    await asyncio.wait_for(leaf(forever), 1000)


class Awaitable:
    def __init__(self, forever):
        self.forever = forever

    def __await__(self):
        WRAPPED["coroutine_wrapper"] = self.forever.wait()
        return (yield from WRAPPED["coroutine_wrapper"].__await__())


async def classes(forever):
    await Awaitable(forever)


async def ones(forever):
    yield 1
    await forever.wait()
    yield 2


async def generated(forever):
    WRAPPED["async_generator_asend"] = ones(forever)
    async for _ in WRAPPED["async_generator_asend"]:
        pass


def block(task):
    LISTED["first"] = tell(task); print(json.dumps(LISTED["first"] + LISTED["second"]), flush=True); time.sleep(1000)


async def called():
    block(asyncio.current_task())


async def busy():
    await called()


async def waked(event):
    await event.wait()


async def first(ready, is_busy):
    forever, lock, queue = asyncio.Event(), asyncio.Lock(), asyncio.Queue()
    tasks = [asyncio.create_task(named(forever), name="named") for _ in range(NAMED)]
    tasks += [asyncio.create_task(coroutine) for coroutine in (
        gathering(forever), grouped(forever), holder(lock, forever), consumer(queue), limited(forever), classes(forever), generated(forever))]
    await asyncio.sleep(0.01)
    tasks += [asyncio.create_task(locked(lock)) for _ in range(3)]
    common = asyncio.create_task(asyncio.sleep(1000), name="déjà vu; common")
    tasks += [common] + [asyncio.create_task(shared(common)) for _ in range(3)]
    end = asyncio.create_task(threaded(), name="end")
    event = asyncio.Event()
    tasks += [asyncio.create_task(waked(event), name="waked") for _ in range(3)]
    while not ready.is_set():
        await asyncio.sleep(0.01)
    if is_busy:
        # runs before those that it keeps from running
        tasks.append(asyncio.create_task(busy(), name="busy"))
        event.set()
        tasks.append(asyncio.create_task(leaf(forever), name="not begun"))
        await asyncio.sleep(1000)
    asyncio.get_running_loop().call_later(0.2, lambda: print(json.dumps(tell() + LISTED["second"]), flush=True))
    await end
    os._exit(0)


async def second(ready):
    waits = [asyncio.create_task(asyncio.sleep(1000)) for _ in range(2)]

    def listed():
        LISTED["second"] = tell()
        ready.set()
    asyncio.get_running_loop().call_later(0.2, listed)
    await asyncio.wait(waits)


async def turn():
    await asyncio.sleep(0)


async def left():
    await turn()


async def right():
    await turn()


async def mover():
    while True:
        await left()
        await right()


async def ending():
    await turn()


async def moving():
    tasks = [asyncio.create_task(mover(), name="mover") for _ in range(MOVERS)]
    end = asyncio.create_task(threaded(), name="end")
    print("moving", flush=True)
    while not end.done():
        await asyncio.gather(*(asyncio.create_task(ending(), name="ending") for _ in range(10)))
    os._exit(len(tasks) - MOVERS)


def main():
    if "moving" in sys.argv:
        asyncio.run(moving())
    ready = threading.Event()
    threading.Thread(target=lambda: asyncio.run(second(ready)), daemon=True).start()
    asyncio.run(first(ready, "busy" in sys.argv))


main()
