"""Programs of unprivileged users that tsnap may have to wait for, fail to read or find costly: they are shown, and cost no others."""
import os
import shutil
import stat
import sys

import truth
from case_hostile import expect_beside
from case_stacks import directory_of
from harness import START_S, STOP_S, Process, Skip, case, check, rows_of, wait_until

NOBODY = 65534
COLUMNS = "state,ustack,stack,waits_on,cmdline,exe,filename,syscall"
DROP = """
import ctypes, os, resource, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
def drop():
    os.setgroups([]), os.setgid(%d), os.setuid(%d)
    libc.prctl(4, 1)
def ready():
    print("ready", flush=True)
""" % (NOBODY, NOBODY)
SECRET = """
# a thread whose stack no process but its own can read: memfd_secret(2), whose pages count as locked
fd, size = libc.syscall(447, 0), 65536
if fd < 0:
    sys.exit("no memfd_secret")
os.ftruncate(fd, size)
libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
stack = libc.mmap(None, size, 3, 1, fd, 0)
if stack in (None, 2 ** 64 - 1):
    sys.exit("no memory of memfd_secret")
drop()
attributes, thread = ctypes.create_string_buffer(256), ctypes.c_ulong()
libc.pthread_attr_init(attributes)
libc.pthread_attr_setstack(attributes, ctypes.c_void_p(stack), ctypes.c_size_t(size))
if libc.pthread_create(ctypes.byref(thread), attributes, libc.pause, None):
    sys.exit("no thread on it")
ready()
signal.pause()
"""
EPOLL = """
import select
count, (_, most) = int(sys.argv[1]), resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
drop()
# it goes on to watch a file under a number that another file has by now
poll, numbers, ends = select.epoll(), min(most, count) - 200, []
for i in range(count):
    if i % numbers == 0:
        ends.append(os.pipe())
    os.dup2(ends[-1][0], 150 + i % numbers)
    poll.register(150 + i % numbers, select.EPOLLIN)
ready()
while True:
    poll.poll(0.05)
"""
SPACES = """
# its own users and mounts, and ten namespaces of processes, one in the other
if libc.unshare(0x10000000 | 0x00020000):
    drop()
for _ in range(10):
    if libc.unshare(0x20000000):
        sys.exit("no pid namespace")
    if os.fork():
        os.wait()
        os._exit(0)
    libc.prctl(1, 9)
ready()
signal.pause()
"""


def python(ctx, text, *args, dropped=False):
    """A Python program that prints ready. dropped: unprivileged from its beginning on; else it gives up its privileges itself."""
    process = Process([sys.executable, "-c", DROP + "drop()\n" * dropped + text] + [str(word) for word in args])
    ctx.started.append(process)
    ctx.at_end(process.process.kill)
    wait_until(lambda: b"ready" in process.out or process.code is not None, START_S, "a program of Python")
    if process.code is not None:
        raise Skip(process.err.splitlines()[-1] if process.err else "the program ended")
    return process


def namespaces_of(tid):
    """The thread's ids in each pid namespace, the outermost first."""
    return truth.Thread(tid).status["NSpid"].split()


def copy_of(ctx, program, mode=0o755):
    directory = ctx.temporary()
    os.chmod(directory, 0o755)
    path = os.path.join(directory, os.path.basename(program))
    shutil.copy2(program, path)
    os.chmod(path, mode)
    return path


def sleeper(ctx, path):
    """A process of the copied workload, asleep in read; of an unprivileged user."""
    process = Process([path, "sleep", "call=pipe_read"], user=NOBODY, group=NOBODY, extra_groups=[])
    ctx.started.append(process)
    wait_until(lambda: b"ready" in process.out or process.code is not None, START_S, "a copy of the workload")
    if process.code is not None:
        raise Skip("a user without rights can't run %s: %s" % (path, process.err))
    return process


def stopped(ctx):
    process = python(ctx, "ready()\nos.kill(os.getpid(), signal.SIGSTOP)", dropped=True)
    wait_until(lambda: truth.Thread(process.pid).letter == "T", STOP_S, "that it is stopped")
    return process.pid, "T"


def traced(ctx):
    workload = ctx.workloads([("traced", {})])[0]
    return workload.tid, "T"


def vforking(ctx):
    workload = ctx.workloads([("vfork", {})])[0]
    return workload.tid, "D"


def frozen(ctx):
    """A process in a control group that is frozen."""
    mount, second = "/sys/fs/cgroup/freezer", "/sys/fs/cgroup"
    old = os.path.isdir(mount)
    group = "%s/tsnap-test-frozen-%d" % (mount if old else second, os.getpid())
    process = python(ctx, "ready()\nsignal.pause()", dropped=True)

    def write(name, word):
        with open(os.path.join(group, name), "w", encoding="ascii") as file:
            file.write(word)

    def thaw():
        write("freezer.state" if old else "cgroup.freeze", "THAWED" if old else "0")
        process.process.kill()
        wait_until(lambda: not open(group + "/cgroup.procs", encoding="ascii").read(), STOP_S, "its end")
        os.rmdir(group)
    try:
        os.mkdir(group)
        ctx.at_end(thaw)
        write("cgroup.procs", "%d" % process.pid)
        write("freezer.state" if old else "cgroup.freeze", "FROZEN" if old else "1")
    except OSError as error:
        raise Skip("no control group can be frozen: %s" % error)
    return process.pid, "DS"


def long_arguments(ctx):
    """A process with nearly 2 MB of arguments: the most that exec allows with a stack of 8 MB."""
    return python(ctx, "ready()\nsignal.pause()", *["x" * 131000] * 15, dropped=True).pid, "S"


def deleted(ctx):
    path = copy_of(ctx, ctx.options.workload)
    process = sleeper(ctx, path)
    os.unlink(path)
    return process.pid, "S"


def replaced(ctx):
    """A process whose program file was replaced by a file that is no program."""
    path = copy_of(ctx, ctx.options.workload)
    process = sleeper(ctx, path)
    with open(path + ".new", "wb") as file:
        file.write(b"\x7fELF" + bytes(range(256)) * 64)
    os.rename(path + ".new", path)
    return process.pid, "S"


def setuid(ctx):
    path = copy_of(ctx, ctx.options.workload, stat.S_ISUID | 0o755)
    process = sleeper(ctx, path)
    if truth.Thread(process.pid).uid != 0:
        raise Skip("%s is on a file system without setuid" % path)
    return process.pid, "S"


def secret(ctx):
    process = python(ctx, SECRET)
    return max(int(tid) for tid in os.listdir("/proc/%d/task" % process.pid)), "S"


def in_namespaces(ctx):
    leaf = max(truth.children(python(ctx, SPACES).pid), key=lambda tid: len(namespaces_of(tid)))
    check(len(namespaces_of(leaf)) == 11, "not ten namespaces deep: %s", namespaces_of(leaf))
    return leaf, "S"


def java(ctx, threads=100, nap_ms=200):
    program = os.path.join(directory_of(ctx), "libjvm.so")
    if not os.path.exists(program):
        raise Skip("tests/stack/fake_java is not built")
    process = Process([program, str(threads), str(nap_ms)])
    ctx.started.append(process)
    wait_until(lambda: b"ready" in process.out or process.code is not None, START_S, "fake_java")
    check(process.code is None, "fake_java: %s", process.err)
    return process.pid, "S"


KINDS = (stopped, traced, vforking, frozen, long_arguments, deleted, replaced, setuid, secret, in_namespaces, java)


@case(alone=True, thorough=True)
def hostile_kinds(ctx):
    """Programs that are stopped, traced, frozen, in vfork, deleted, replaced, setuid, deep in namespaces, with 2 MB of arguments or a stack
    in secret memory, or that pretend to be a JVM: each is in every scan with its state, and other threads' rows are as without them."""
    held, lacking = {}, []

    def begin():
        for kind in KINDS:
            try:
                held[kind.__name__] = kind(ctx)
            except Skip as why:
                lacking.append("%s: %s" % (kind.__name__, why))
    beside = expect_beside(ctx, begin, columns=COLUMNS)
    for why in lacking:
        print("# not here: %s" % why)
    check(len(held) >= 8, "only %s could be had: %s", sorted(held), lacking)
    for name, (tid, states) in held.items():
        rows = rows_of(beside.rows, tid)
        check(len(rows) >= beside.scans - 1, "%s: %d rows in %d scans", name, len(rows), beside.scans)
        check({row["state"] for row in rows} <= set(states), "%s: states %s", name, {row["state"] for row in rows})


@case(alone=True, thorough=True)
def hostile_java(ctx):
    """1000 threads of a fake JVM, whose map of code is as slow to read as possible."""
    expect_beside(ctx, lambda: java(ctx, 1000, 400))


@case(alone=True, thorough=True)
def hostile_many_descriptors(ctx):
    """A thread that waits for 60 000 descriptors with one epoll, each of which tsnap may look up."""
    expect_beside(ctx, lambda: python(ctx, EPOLL, 60000), columns=COLUMNS)
