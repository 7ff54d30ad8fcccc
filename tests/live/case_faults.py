"""Calls that fail at their Nth time: one clear line and an exit code of failure, or a report that lacks only what it counts as missed."""
import os
import re
import signal

from case_trouble import with_fault
from harness import Findings, START_S, STOP_S, Tsnap, case, preloading, settle

FORM = ("-a", "-G", "ufunc,waits_on", "-d", "0.3")
LIMIT_S = START_S + STOP_S
# Calls that are made to fail. They are counted in each process and thread, so that one number is another place in each.
CALLS = {"bpf": "ENOMEM", "perf_event_open": "EMFILE", "mmap": "ENOMEM", "openat": "EMFILE", "read": "EIO", "write": "EIO", "clone": "EAGAIN",
         "clone3": "EAGAIN", "recvmsg": "ENOMEM", "sendmsg": "ENOMEM", "process_vm_readv": "EFAULT", "socketpair": "EMFILE", "pipe2": "EMFILE"}
FEW = (("openat", 1), ("clone", 3), ("clone3", 1), ("sendmsg", 1), ("recvmsg", 2), ("bpf", 5), ("process_vm_readv", 3))
MANY = (1, 2, 3, 4, 6, 9, 14, 22, 40, 90, 200)
# Numbers of calls that the dynamic linker makes. It is no part of tsnap: it reports its failures itself, or not at all.
LINKER = {"mmap": 60, "read": 25, "openat": 25}


def left_over():
    """Helper processes of tsnap whose parent has exited."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid, encoding="utf-8", errors="replace") as file:
                name, words = file.read().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        if name in ("tsnap-parser", "tsnap-spawner", "tsnap-compile") and words.split()[1] == "1":
            found.append(pid)
    return found


def expect_told(find, tool, what, silent=False):
    """A report, or one line and an exit code of failure. silent: no line is expected, as it can't be written or is not tsnap's."""
    code = tool.wait(LIMIT_S, what)
    if code == 0:
        find.expect(b"AVG_THR" in tool.out, "%s: no report: %s", what, tool.err)
        return
    find.expect(code in (1, 77) or silent, "%s: exit code %d: %s", what, code, tool.err)
    words = [line for line in tool.err.splitlines() if line.startswith("tsnap: ")]
    find.expect("something failed without saying what" not in tool.err, "%s: no words: %s", what, tool.err)
    find.expect(len(words) == 1 or silent, "%s: not one line that tells: %s", what, tool.err)


def expect_faults(ctx, faults):
    """Runs four faults at a time, as they mostly wait. --no-sandbox: strace makes a failing call into another one, which the sandbox's
    filter would see as a call of its own."""
    find, before = Findings(), set(left_over())
    for i in range(0, len(faults), 4):
        tools = [(with_fault(ctx, "%s:error=%s:when=%d" % (call, CALLS[call], when), "--no-sandbox", *FORM), call, when)
                 for call, when in faults[i:i + 4]]
        for tool, call, when in tools:
            expect_told(find, tool, "%s, the %dth" % (call, when), silent=when <= LINKER.get(call, 0) or (call, when) == ("write", 1))
    # helpers of other tests that are being killed just now are gone soon
    settle(lambda: not set(left_over()) - before, STOP_S)
    left = set(left_over()) - before
    find.expect(not left, "left over: %s", sorted(left))
    find.close()


@case
def faults_of_calls(ctx):
    """System calls that fail at start and later, in each process and thread: a report, or one line; no process hangs and none is left."""
    expect_faults(ctx, FEW)


@case
def faults_of_all_calls(ctx):
    """System calls that fail, more calls at more places: a report, or one line; no process hangs and none is left."""
    expect_faults(ctx, [(call, when) for call in CALLS for when in MANY])


def without_memory(ctx, name, when):
    tool = Tsnap([ctx.options.tsnap, *FORM], env=dict(preloading(ctx, "malloc_fails"), MALLOC_FAILS="%d" % when, MALLOC_FAILS_IN=name))
    ctx.started.append(tool)
    return tool


def expect_memory_faults(ctx, faults):
    find, failed = Findings(), 0
    for name, when in faults:
        tool = without_memory(ctx, name, when)
        # libseccomp 2.5 silently leaves rules out of its filter if it has no memory: the shell reports the signal
        if name == "tsnap" and tool.wait(LIMIT_S) == -signal.SIGSYS:
            continue
        expect_told(find, tool, "%s, memory, the %dth" % (name, when))
        words = re.search(r"out of memory|memory is short|killed by signal|parsers|Cannot allocate", tool.err)
        find.expect(tool.code == 0 or words, "%s, the %dth: %s", name, when, tool.err)
        failed += bool(words)
    find.expect(failed, "no call of malloc failed")
    find.close()


@case
def faults_of_memory(ctx):
    """malloc fails at its Nth call, in each kind of process: a report, or one line."""
    expect_memory_faults(ctx, (("tsnap", 10), ("tsnap", 5000), ("tsnap-compile", 2000), ("tsnap-parser", 1500)))


@case
def faults_of_all_memory(ctx):
    """malloc fails at more places, in each kind of process: a report, or one line."""
    expect_memory_faults(ctx, [(name, when) for name in ("tsnap", "tsnap-compile", "tsnap-spawner", "tsnap-parser")
                               for when in (1, 3, 7, 20, 60, 200, 700, 2500, 9000, 30000, 100000)])
