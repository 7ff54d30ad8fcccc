"""Calls that fail at their Nth time: one clear line and an exit code of failure, or a report that lacks only what it counts as missed."""
import os
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys

from case_namespaces import refuse
from case_scan_time import group_made
from case_trouble import with_fault
from harness import Findings, START_S, STOP_S, UNREADY, Skip, Tsnap, case, check, number, preloading, settle, through

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


@case(thorough=True)
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


@case(thorough=True)
def faults_of_all_memory(ctx):
    """malloc fails at more places, in each kind of process: a report, or one line."""
    expect_memory_faults(ctx, [(name, when) for name in ("tsnap", "tsnap-compile", "tsnap-spawner", "tsnap-parser")
                               for when in (1, 3, 7, 20, 60, 200, 700, 2500, 9000, 30000, 100000)])


# Numbers of system calls, by machine
NUMBERS = {"x86_64": {"prctl": (157,), "readlink": (89, 267), "chdir": (80,), "perf_event_open": (298,), "socket": (41,), "poll": (7, 271),
                      "rt_sigtimedwait": (128,), "nanosleep": (35, 230), "wait4": (61,), "getppid": (110,), "futex": (202,),
                      "select": (23, 270), "epoll": (232, 281)},
           "aarch64": {"prctl": (167,), "readlink": (78,), "chdir": (49,), "perf_event_open": (241,), "socket": (198,), "poll": (73,),
                       "rt_sigtimedwait": (137,), "nanosleep": (101, 115), "wait4": (260,), "getppid": (173,), "futex": (98,),
                       "select": (72,), "epoll": (22,)}}
# Refused system calls, exit codes and words of tsnap: those that are the cause, and causes that are none
REFUSED = (("prctl", 0, "prctl: Operation not permitted", "another kernel"),
           ("readlink", UNREADY, "readlink of /proc/self: Operation not permitted", "mount"),
           ("chdir", 1, "chdir", "too little memory"),
           ("perf_event_open", 0, "perf_event_open: Operation not permitted", "CAP_PERFMON"),
           ("socket", 0, "sock_diag: Operation not permitted", "the kernel does not show"))
COLUMNS = ("-a", "-g", "comm,state,stack,waits_on", "-d", "0.5")


def asleep_on_socket(ctx):
    process = subprocess.Popen([sys.executable, "-c", "import socket; pair = socket.socketpair(); pair[0].recv(1)"])
    ctx.at_end(process.kill)


def words_of(tool):
    return tool.err + tool.out.decode(errors="replace").rpartition("\nMissed: ")[2]


@case
def refused_calls(ctx):
    """A filter refuses system calls, one at a time: tsnap names the call or what needs it, its error and the filter, and no other cause."""
    if platform.machine() not in NUMBERS:
        raise Skip("numbers of system calls are not known on " + platform.machine())
    find = Findings()
    asleep_on_socket(ctx)
    for name, code, cause, other in REFUSED:
        tool = ctx.plain(*COLUMNS, preexec_fn=lambda name=name: refuse(*NUMBERS[platform.machine()][name]))
        got, words = tool.wait(START_S + STOP_S), words_of(tool)
        find.expect(got == code, "%s: exit code %s: %s", name, got, tool.err)
        find.expect(cause in words and "Operation not permitted" in words, "%s: without '%s': %s", name, cause, words)
        find.expect("(seccomp) is in force" in words, "%s: the filter is not told: %s", name, words)
        find.expect(other not in words, "%s: '%s' is not the cause: %s", name, other, words)
    find.close()


# Calls that tsnap waits by, and the exit codes where they are refused; None: without futex(2) the C library ends every such program
WAITS = (("poll", 1), ("rt_sigtimedwait", 1), ("nanosleep", 1), ("wait4", 1), ("getppid", 1), ("futex", None), ("select", 0), ("epoll", 0))


@case
def refused_waits(ctx):
    """A filter refuses calls that tsnap waits by: one line names the call and the filter, and nothing spins or hangs."""
    if platform.machine() not in NUMBERS:
        raise Skip("numbers of system calls are not known on " + platform.machine())
    find = Findings()
    for name, code in WAITS:
        for form in (("-a", "-d", "0.3"), ("--csv", "-d", "0.3"), ("--check",), ("--replay", "/dev/null")):
            def prepare(name=name):
                resource.setrlimit(resource.RLIMIT_CPU, (20, 20))  # one that spins is killed
                refuse(*NUMBERS[platform.machine()][name])

            tool = ctx.plain(*form, preexec_fn=prepare)
            got, words = tool.wait(START_S + STOP_S, name), tool.err
            if code == 0:
                find.expect(got in (0, 1) and (got == 0 or form[0] == "--replay"), "%s, %s: exit code %s: %s", name, form, got, words)
                continue
            find.expect(got == code or code is None and got, "%s, %s: exit code %s: %s", name, form, got, words)
            find.expect(len(words.splitlines()) == 1, "%s, %s: not one line: %s", name, form, words)
            find.expect(code is None or (name in words and "(seccomp) is in force" in words), "%s, %s: no cause: %s", name, form, words)
    find.close()


@case
def too_few_files(ctx):
    """With a limit of open files that is enough to start, a report's footer names the limit as the cause of what is missing."""
    asleep_on_socket(ctx)
    for files in range(32, 200, 4):
        tool = ctx.plain(*COLUMNS, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))
        code, words = tool.wait(START_S + STOP_S), words_of(tool)
        check("does not show" not in words, "%d files: %s", files, words)
        if code == 0 and "sock_diag: Too many open files, this process may only open %d files: raise ulimit -n" % files in words:
            return
        check(code == 0 or "only open %d files: raise ulimit -n" % files in words, "%d files: exit code %d: %s", files, code, words)
    check(False, "no limit was too low for sock_diag")


def in_group(ctx, controller, v1, v2, value):
    """A function that enters a control group with a limit."""
    name = "/tsnap-limit-%d-%s" % (os.getpid(), value)
    if os.path.isdir("/sys/fs/cgroup/" + controller):
        return group_made(ctx, "/sys/fs/cgroup/" + controller + name, **{v1: str(value)})
    return group_made(ctx, "/sys/fs/cgroup" + name, **{v2: str(value)})


@case
def group_limits(ctx):
    """In a control group with little memory, or few processes, tsnap names the group and its limit."""
    group = r"control group /\S*tsnap-limit-\S+ may have "
    for controller, v1, v2, value, words in (
            ("memory", "memory__limit_in_bytes", "memory__max", 24 << 20, group + r"24 MB of memory: raise its memory\.(limit_in_bytes|max)"),
            ("pids", "pids__max", "pids__max", 2, group + r"2 processes and threads: raise its pids\.max")):
        tool = ctx.plain(*COLUMNS, preexec_fn=in_group(ctx, controller, v1, v2, value))
        code = tool.wait(START_S + STOP_S)
        check(code and re.search(words, tool.err), "%s: exit code %s: %s", controller, code, tool.err)
        check("max-threads" not in tool.err, "%s: not the cause: %s", controller, tool.err)


@case
def too_few_processes(ctx):
    """In a control group with few processes a report says that no process can read files for stacks, and why; or the start fails, and
    says why, and --check says before that it will. With enough of them there is no such line."""
    ctx.workload("sleep", call="pipe_read")
    reported = 0
    lacking = "can't be started: Resource temporarily unavailable, control group"
    for most in range(2, 40):
        group = in_group(ctx, "pids", "pids__max", "pids__max", most)
        checked = ctx.plain("--check", preexec_fn=group) if most < 6 else None
        can = not checked or checked.wait(START_S + STOP_S) == 0
        tool = ctx.plain(*COLUMNS, preexec_fn=group)
        code, words = tool.wait(START_S + STOP_S), words_of(tool)
        check(can == (code == 0), "%d processes: --check: %s, a report: %d", most, can, code)
        told = not checked or re.search("processes +only %d more can be started" % (most - 1), checked.out.decode())
        check(told, "%d processes: --check does not tell: %s", most, checked and checked.out.decode())
        limit = "tsnap-limit-%d-%d may have %d processes and threads: raise its pids.max" % (os.getpid(), most, most)
        check(limit in words or code == 0, "%d processes: exit code %d: %s", most, code, words)
        if code == 0 and lacking not in words:
            break
        check(limit in words, "%d processes: %s", most, words)
        reported += code == 0
    check(reported > 1 and most < 30, "%d reports lack functions, none with %d processes", reported, most)


@case
def names_without_syslog(ctx):
    """Without CAP_SYSLOG names of kernel functions are missing on a CPU, and the footer has the sysctl that really hides them."""
    if not shutil.which("setpriv"):
        raise Skip("setpriv is not installed")
    restricted, paranoid = (number({"n": open("/proc/sys/kernel/" + name, encoding="ascii").read()}, "n")
                            for name in ("kptr_restrict", "perf_event_paranoid"))
    if restricted == 0 and paranoid <= 1:
        raise Skip("the kernel shows addresses to all")
    ctx.workload("spin")
    few = through(ctx, "setpriv", "--bounding-set=-syslog", "--inh-caps=-syslog", workload=False)
    tool = few.plain("-a", "-g", "comm,kstack", "-d", "0.5")
    tool.finish_plain(0)
    cause = "kernel.kptr_restrict=1)" if restricted > 1 else \
        "CAP_SYSLOG)" if restricted else "CAP_SYSLOG, or sysctl kernel.perf_event_paranoid=1)"
    check("/proc/kallsyms shows no addresses: " in words_of(tool) and cause in words_of(tool), "%s", words_of(tool))
