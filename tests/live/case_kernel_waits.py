"""Waits in which the kernel waits for a process, or for a state, that the call's arguments do not show."""
import contextlib
import os
import re
import signal
import subprocess
import sys

import truth
from case_block import Device, file_system, frozen
from harness import START_S, STOP_S, Process, Skip, case, check, rows_of, wait_until

COLUMNS = "state,syscall,why,waits_on,waits_on_pid,wchan,blocker_pid,blocker_kind,blocker_sure,chain"
SECONDS = 3

# Begins each script: in a mount namespace of its own, part(NAME, FUNCTION) starts a process that ends with this one. A script prints "ready" and
# numbers, or "skip" and why.
BEGIN = r"""
import ctypes, fcntl, mmap, os, signal, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
place = sys.argv[1].encode()
def skip(why):
    print("skip", why, flush=True)
    os._exit(0)
if libc.unshare(0x20000) or libc.mount(None, b"/", None, 0x44000, None):
    skip("no mount namespace")
def mount(source, kind, options):
    if libc.mount(source, place, kind, 0, options):
        skip("no %s: %s" % (kind.decode(), os.strerror(ctypes.get_errno())))
def name(text):
    with open("/proc/thread-self/comm", "w") as file:
        file.write(text)
def part(text, run, *fds):
    pid = os.fork()
    if pid:
        return pid
    libc.prctl(1, signal.SIGKILL)
    for fd in fds:
        os.close(fd)
    name(text)
    run()
    os._exit(0)
def stay():
    while True:
        time.sleep(1000)
def ready(*numbers):
    print("ready", *numbers, flush=True)
    sys.stdin.read()
    os._exit(0)
"""

FANOTIFY = r"""
mount(b"none", b"tmpfs", b"size=1m")
open(place + b"/file", "w").close()
group = libc.fanotify_init(4, 0)  # FAN_CLASS_CONTENT
if group < 0 or libc.fanotify_mark(group, 0x11, ctypes.c_uint64(0x10000), -100, place):  # FAN_OPEN_PERM of the mount
    skip("no permission events of fanotify")
waiter = part("waiter", lambda: open(place + b"/file"), group)
server = part("server", stay)
os.close(group)
ready(waiter, server)
"""

FUSE = r"""
device = os.open("/dev/fuse", os.O_RDWR)
mount(b"none", b"fuse", b"fd=%d,rootmode=40000,user_id=0,group_id=0" % device)
def serve():
    request = os.read(device, 1 << 17)
    body = struct.pack("<IIIIHHI", 7, 31, 4096, 0, 16, 12, 4096).ljust(64, b"\0")
    os.write(device, struct.pack("<IiQ", 16 + len(body), 0, struct.unpack_from("<Q", request, 8)[0]) + body)
    os.kill(os.getpid(), signal.SIGSTOP)
server = part("server", serve)
waiter = part("waiter", lambda: open(place + b"/file"), device)
os.close(device)
ready(waiter, server)
"""

# While a lookup of a name lasts, others of that name wait for it
LOOKUP = FUSE.replace('waiter = part("waiter", lambda: open(place + b"/file"), device)\n', """
part("first", lambda: open(place + b"/file"), device)
time.sleep(0.5)
waiter = part("waiter", lambda: open(place + b"/file"), device)
""")

# No signal ends the wait for a request that the server has read: execve(2) waits for that thread, and so does the end of a pid namespace
FUSE_READ = FUSE.replace("os.kill(os.getpid(), signal.SIGSTOP)", "while True: os.read(device, 1 << 17)")

EXEC = FUSE_READ.replace('waiter = part("waiter", lambda: open(place + b"/file"), device)\n', """
def execute():
    def ask():
        name("stuck")
        open(place + b"/file")
    threading.Thread(target=ask, daemon=True).start()
    time.sleep(0.5)
    os.execv("/bin/sleep", ["sleep", "1000"])
waiter = part("waiter", execute, device)
""")

NAMESPACE_EXIT = FUSE_READ.replace('waiter = part("waiter", lambda: open(place + b"/file"), device)\n', """
if libc.unshare(0x20000000):
    skip("no pid namespace")
def end():
    part("stuck", lambda: open(place + b"/file"))
    time.sleep(0.5)
waiter = part("waiter", end, device)
""")

# MEMBARRIER_CMD_GLOBAL of linux/membarrier.h waits for a grace period
GRACE_PERIOD = r"""
number = {"x86_64": 324, "aarch64": 283}[os.uname().machine]
if libc.syscall(number, 1, 0, 0):
    skip("no membarrier(2) of all processes")
def barriers():
    while True:
        libc.syscall(number, 1, 0, 0)
ready(part("waiter", barriers), 0)
"""

# The server has a child with the same device, which answers nothing
FUSE_OF_TWO = FUSE.replace('def serve():', 'def serve():\n    part("helper", stay)')

# A thread reads a page of a mapped file, outside of any call: linux/fuse.h
FUSE_FAULT = r"""
device = os.open("/dev/fuse", os.O_RDWR)
mount(b"none", b"fuse", b"fd=%d,rootmode=40000,user_id=0,group_id=0" % device)
attributes = struct.pack("<6Q10I", 2, 1 << 20, 2048, 0, 0, 0, 0, 0, 0, 0o100644, 1, 0, 0, 0, 4096, 0)
answers = {
    26: struct.pack("<IIIIHHI", 7, 31, 4096, 0, 16, 12, 4096).ljust(64, b"\0"),  # FUSE_INIT
    1: struct.pack("<QQQQQ", 2, 0, 1000, 1000, 0) + attributes,  # FUSE_LOOKUP
    3: struct.pack("<QQ", 1000, 0) + attributes,  # FUSE_GETATTR
    14: bytes(16),  # FUSE_OPEN
}
def serve():
    while True:
        opcode, unique = struct.unpack_from("<IQ", os.read(device, 1 << 17), 4)
        if opcode == 15:  # FUSE_READ
            stay()
        answer = answers.get(opcode, b"")
        os.write(device, struct.pack("<IiQ", 16 + len(answer), 0 if answer else -38, unique) + answer)
def fault():
    memory = mmap.mmap(os.open(place + b"/file", os.O_RDONLY), 1 << 20, prot=mmap.PROT_READ)
    memory[1 << 19]
server = part("server", serve)
waiter = part("waiter", fault, device)
os.close(device)
ready(waiter, server)
"""

# The process that has the page has closed the descriptor
USERFAULTFD = r"""
faults = libc.syscall({"x86_64": 323, "aarch64": 282}[os.uname().machine], 0)
page = mmap.mmap(-1, 8192)
at = ctypes.addressof(ctypes.c_char.from_buffer(page))
if faults < 0 or libc.ioctl(faults, 0xc018aa3f, struct.pack("<QQQ", 0xaa, 0, 0)) or \
        libc.ioctl(faults, 0xc020aa00, ctypes.create_string_buffer(struct.pack("<QQQQ", at, 8192, 1, 0))):
    skip("no userfaultfd")
server = part("server", stay)
os.close(faults)
tids = []
def fault():
    name("waiter")
    tids.append(threading.get_native_id())
    os.readv(os.open("/dev/zero", 0), [page])
threading.Thread(target=fault, daemon=True).start()
while not tids:
    time.sleep(0.01)
ready(tids[0], server)
"""

# Threads of a program that read pages which come 0.3 s later, outside of any call: memchr(3) by ctypes, without the interpreter's lock
USERFAULTFD_SLOW = r"""
size = 4096 * 1000
faults = libc.syscall({"x86_64": 323, "aarch64": 282}[os.uname().machine], 0)
page = mmap.mmap(-1, size)
at = ctypes.addressof(ctypes.c_char.from_buffer(page))
if faults < 0 or libc.ioctl(faults, 0xc018aa3f, struct.pack("<QQQ", 0xaa, 0, 0)) or \
        libc.ioctl(faults, 0xc020aa00, ctypes.create_string_buffer(struct.pack("<QQQQ", at, size, 1, 0))):
    skip("no userfaultfd")
tids = []
def fault():
    name("waiter")
    tids.append(threading.get_native_id())
    for offset in range(0, size, 4096):
        libc.memchr(ctypes.c_void_p(at + offset), 1, ctypes.c_size_t(1))
threading.Thread(target=fault, daemon=True).start()
while not tids:
    time.sleep(0.01)
print("ready", tids[0], os.getpid(), flush=True)
while True:
    address = struct.unpack_from("<Q", os.read(faults, 32), 16)[0]  # struct uffd_msg
    time.sleep(0.3)
    libc.ioctl(faults, 0xc020aa04, ctypes.create_string_buffer(struct.pack("<QQQQ", address & ~4095, 4096, 0, 0)))  # UFFDIO_ZEROPAGE
"""

LEASE = r"""
path = place + b"/file"
open(path, "w").close()
def lease():
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    fd = os.open(path, os.O_RDONLY)
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    stay()
server = part("server", lease)
time.sleep(0.3)
waiter = part("waiter", lambda: open(path, "r+"))
ready(waiter, server)
"""

AUTOFS = r"""
asks, tells = os.pipe()
server = os.fork()
if not server:
    libc.prctl(1, signal.SIGKILL)
    name("server")
    os.setpgid(0, 0)
    stay()
while os.getpgid(server) != server:
    time.sleep(0.01)
mount(b"none", b"autofs", b"fd=%d,pgrp=%d,minproto=5,maxproto=5,indirect" % (tells, server))
waiter = part("waiter", lambda: os.stat(place + b"/file"))
ready(waiter, server)
"""

# A filter that asks its supervisor about mkdirat(2): linux/filter.h, linux/seccomp.h. The listener goes to the server, which does not answer.
SECCOMP = r"""
import socket
numbers = {"x86_64": (317, 258), "aarch64": (277, 34)}[os.uname().machine]
def code(operation, yes, no, value):
    return struct.pack("HBBI", operation, yes, no, value)
program = ctypes.create_string_buffer(code(0x20, 0, 0, 0) + code(0x15, 0, 1, numbers[1]) + code(6, 0, 0, 0x7fc00000) + code(6, 0, 0, 0x7fff0000))
def supervised(to):
    libc.prctl(38, 1, 0, 0, 0)
    listener = libc.syscall(numbers[0], 1, 8, struct.pack("HxxxxxxQ", 4, ctypes.addressof(program)))  # SECCOMP_FILTER_FLAG_NEW_LISTENER
    if listener < 0:
        os._exit(1)
    socket.send_fds(to, [b"listener"], [listener])
    os.close(listener)
    libc.mkdirat(-100, place + b"/folder", 0)
def pair():
    theirs, ours = socket.socketpair()
    def serve():
        kept = socket.recv_fds(theirs, 8, 1)
        stay()
    server = part("server", serve)
    return part("waiter", lambda: supervised(ours)), server
waiter, server = pair()
"""
SECCOMP_OF_TWO = SECCOMP + "pair()\nready(waiter, 0)\n"
SECCOMP += "ready(waiter, server)\n"

# A call that holds the mutex waits for a page of its answer: linux/ethtool.h, SIOCETHTOOL, SIOCSIFMTU
RTNL = r"""
import socket
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def hold():
    page = mmap.mmap(-1, 8192)
    at = ctypes.addressof(ctypes.c_char.from_buffer(page)) + 4096
    page[4092:4096] = struct.pack("I", 0x14)  # ETHTOOL_GRXCSUM
    faults = libc.syscall({"x86_64": 323, "aarch64": 282}[os.uname().machine], 0)
    if libc.ioctl(faults, 0xc018aa3f, struct.pack("<QQQ", 0xaa, 0, 0)) or \
            libc.ioctl(faults, 0xc020aa00, ctypes.create_string_buffer(struct.pack("<QQQQ", at, 4096, 1, 0))):
        os._exit(1)
    libc.ioctl(link.fileno(), 0x8946, ctypes.create_string_buffer(struct.pack("16sQ", b"lo", at - 4), 40))
def wchan(pid):
    with open("/proc/%d/wchan" % pid) as file:
        return file.read()
server = part("server", hold)
for _ in range(100):
    if wchan(server) == "handle_userfault":
        break
    time.sleep(0.02)
else:
    skip("no userfaultfd in an answer of ethtool")
with open("/sys/class/net/lo/mtu") as file:
    mtu = int(file.read())
waiter = part("waiter", lambda: fcntl.ioctl(link, 0x8922, struct.pack("16si", b"lo", mtu).ljust(40, b"\0")))
ready(waiter, server)
"""

# Each move waits for a grace period of RCU, and so do the others, for the mutex
# All move at the same time, and have rested before: the first one has the mutex for a grace period of RCU, which moves soon after others need not wait for
MOVERS = """
import os, sys, time
print("ready", flush=True)
me = str(os.getpid())
while True:
    for group in sys.argv[1:]:
        with open(group + "/cgroup.procs", "w") as file:
            file.write(me)
        time.sleep(0.25 - time.time() % 0.25)
"""

# The first connection is in the queue of the server, which accepts none, and the queue has no room for the other one
UNACCEPTED = r"""
import socket
path = "%(path)s"
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen(0)
server = part("server", stay)
def ask():
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    client.send(b"?")
    client.recv(1)
queued = part("waiter", ask, listener.fileno())
while open("/proc/%%d/syscall" %% queued).read().split()[0] not in ("45", "207"):
    time.sleep(0.01)
connecting = part("waiter", ask, listener.fileno())
listener.close()
ready(%(which)s, server)
"""

# A client of a server that is bound to a port of all addresses; then another process has that port, too
UDP = r"""
import socket
def bound(port):
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    one.bind(("0.0.0.0", port))
    return one
shared = bound(0)
port = shared.getsockname()[1]
def ask():
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.connect(("127.0.0.1", port))
    client.send(b"?")
    client.recv(1)
def share():
    other = bound(port)
    stay()
server = part("server", stay)
waiter = part("waiter", ask, shared.fileno())
shared.close()
"""
UDP_OF_TWO = UDP + "part('other', share)\nready(waiter, server)\n"
UDP += "ready(waiter, server)\n"

# A query of inet_diag for MPTCP (protocol 262, as an attribute): INET_DIAG_REQ_PROTOCOL
MPTCP = r"""
import socket
diag = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4)
diag.send(struct.pack("=IHHII", 80, 20, 0x301, 0, 0) + struct.pack("=BBBBI", 2, 255, 0, 0, 0xfff) + bytes(48) + struct.pack("=HHI", 8, 3, 262))
if struct.unpack_from("=H", diag.recv(65536), 4)[0] == 2:
    skip("the kernel lists no sockets of MPTCP")
def stream():
    try:
        return socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    except OSError:
        skip("no MPTCP")
listener = stream()
listener.bind(("127.0.0.1", 0))
listener.listen()
address = listener.getsockname()
def serve():
    connection = listener.accept()[0]
    listener.close()
    connection.recv(1)
    stay()
def ask():
    client = stream()
    client.connect(address)
    client.send(b"?")
    client.recv(1)
server = part("server", serve)
waiter = part("waiter", ask, listener.fileno())
listener.close()
ready(waiter, server)
"""

MESSAGES = r"""
rt = ctypes.CDLL("librt.so.1", use_errno=True)
queue = rt.mq_open(b"/tsnap-test-%d" % os.getpid(), os.O_CREAT | os.O_RDWR, 0o600, None)
if queue < 0:
    skip("no POSIX message queues")
rt.mq_unlink(b"/tsnap-test-%d" % os.getpid())
waiter = part("waiter", lambda: rt.mq_receive(queue, ctypes.create_string_buffer(65536), 65536, None))
ready(waiter, os.getpid())
"""

KERNEL_FUNCTION = {  # where each waits, to know that it does
    FANOTIFY: "fanotify_*", FUSE: "request_wait_answer", FUSE_OF_TWO: "request_wait_answer", FUSE_FAULT: "request_wait_answer", USERFAULTFD: "handle_userfault", USERFAULTFD_SLOW: "handle_userfault", LEASE: "__break_lease", AUTOFS: "autofs*_wait",
    MESSAGES: "wq_sleep*", MPTCP: "(sk_wait_data|mptcp*|wait_woken)", UDP: "__skb_wait_for_more_packets", UDP_OF_TWO: "__skb_wait_for_more_packets", SECCOMP: "*seccomp*", SECCOMP_OF_TWO: "*seccomp*", RTNL: "(dev_ioctl|rtnl_lock)",
    LOOKUP: "d_*", EXEC: "begin_new_exec|flush_old_exec|de_thread", NAMESPACE_EXIT: "do_wait", GRACE_PERIOD: "(__)?(synchronize|wait)_(rcu|sched)*",
}


def begin(ctx, script):
    """Starts a script. Returns the thread that waits, the process that it waits for, and the script's folder."""
    folder = ctx.temporary()
    process = Process([sys.executable, "-c", BEGIN + script, folder])
    ctx.started.append(process)
    wait_until(lambda: b"\n" in process.out or process.code is not None, START_S, "that the script is ready")
    words = process.out.decode().split(maxsplit=1)
    check(words, "the script failed: %s", process.err)
    if words[0] == "skip":
        raise Skip(words[1])
    waiter, server = map(int, words[1].split())
    settled = KERNEL_FUNCTION[script].replace("*", ".*") + "$"
    wait_until(lambda: re.match(settled, truth.read("/proc/%d/wchan" % waiter)) or truth.read("/proc/%d/wchan" % waiter) == "0", STOP_S, "its wait")
    return waiter, server, folder


def last_row(ctx, tid, *options):
    rows = rows_of(ctx.rows("-a", *options, "-t", tid, seconds=SECONDS, columns=COLUMNS), tid)
    check(rows, "no row of %d", tid)
    return rows[-1]


def expect(row, words, server, kind, why=None):
    check(row["waits_on"] == words, "waits_on: '%s', not '%s': %s", row["waits_on"], words, row)
    check(row["waits_on_pid"] == str(server), "waits_on_pid: %s, not %s", row["waits_on_pid"], server)
    check((row["blocker_pid"], row["blocker_kind"]) == (str(server), kind), "blocker: %s", row)
    check(row["chain"] == "waiter %s> server" % kind, "chain: %s", row["chain"])
    check(why is None or row["why"] == why, "why: %s, not %s", row["why"], why)


@case
def wait_for_fanotify(ctx):
    """A thread that opens a file waits for the process that has the fanotify group which has to permit that."""
    waiter, server, _ = begin(ctx, FANOTIFY)
    expect(last_row(ctx, waiter), "fanotify permission from %d server" % server, server, "server")


@case
def wait_for_fuse(ctx):
    """A thread that opens a file of FUSE waits for the server, which is stopped."""
    waiter, server, folder = begin(ctx, FUSE)
    if "fuse_connection" not in "".join(truth.read("/proc/%d/fdinfo/%s" % (server, fd)) or "" for fd in os.listdir("/proc/%d/fd" % server)):
        raise Skip("fdinfo has no connections of FUSE")
    row = last_row(ctx, waiter)
    expect(row, "FUSE server %d server of %s" % (server, folder), server, "server", "file")
    check(row["blocker_sure"] == "certain", "%s", row)


@case
def wait_for_fuse_of_two(ctx):
    """Which of two processes that have the device of a FUSE server answers is not certain."""
    waiter, _, _ = begin(ctx, FUSE_OF_TWO)
    row = last_row(ctx, waiter)
    check((row["blocker_kind"], row["blocker_sure"]) == ("server", "likely"), "%s", row)


@case
def wait_for_fuse_fault(ctx):
    """A thread that needs a page of a mapped file waits for the server of the file system that the file is on."""
    waiter, server, folder = begin(ctx, FUSE_FAULT)
    wait_until(lambda: truth.read("/proc/%d/syscall" % waiter).startswith("-1 "), STOP_S, "its page fault")
    words = "FUSE server %d server of %s" % (server, folder)
    expect(last_row(ctx, waiter), words, server, "server")
    rows = rows_of(ctx.rows("-t", waiter, seconds=SECONDS, columns=COLUMNS), waiter)
    check(rows, "without -a it is hidden")
    expect(rows[-1], words, server, "server", "file" if rows[-1]["state"] == "S" else None)


@case
def wait_outside_calls(ctx):
    """A thread that sleeps in S for pages of its memory, outside of any call, is at work: it is in the scans without -a, as is one that slept before."""
    waiter, _, _ = begin(ctx, USERFAULTFD_SLOW)
    if truth.Thread(waiter).letter == "D":
        raise Skip("page faults of userfaultfd wait in D here")
    rows = ctx.rows("-t", waiter, "-F", 20, seconds=SECONDS, columns=COLUMNS)
    slept = [row for row in rows if row["state"] == "S"]
    check(len(slept) > 10 * SECONDS, "%d rows of 20 scans a second: %s", len(slept), rows[:3])
    check({(row["syscall"], row["why"]) for row in slept} == {("", "file")}, "%s", slept[:3])
    # a wait that was over before it was looked at is known by its class alone
    told = [row["waits_on"] for row in slept if row["waits_on"]]
    check(set(told) == {"page fault (userfaultfd)"} and len(told) > 0.8 * len(slept), "%d of %d: %s", len(told), len(slept), set(told))


@case
def wait_for_userfaultfd(ctx):
    """A thread in a read waits for the process that has to give the page of its buffer, though its own process has closed the descriptor."""
    waiter, server, _ = begin(ctx, USERFAULTFD)
    rows = rows_of(ctx.rows("-a", "-t", waiter, seconds=SECONDS, columns=COLUMNS), waiter)
    # on a busy host a scan may have no time for the search
    others = [row for row in rows if row["waits_on"] != "page fault (userfaultfd)"]
    check(others, "no server: %s", rows[-1:])
    for row in others:
        expect(row, "page fault (userfaultfd) for %d server" % server, server, "server", "file")


@case
def wait_for_lease(ctx):
    """A thread that opens a file waits for the process that has a lease on it."""
    waiter, server, folder = begin(ctx, LEASE)
    expect(last_row(ctx, waiter), "lease on %s/file held by %d server" % (folder, server), server, "file lock", "file")


@case
def wait_for_autofs(ctx):
    """A thread that looks up a file waits for the automounter of its folder."""
    waiter, server, folder = begin(ctx, AUTOFS)
    expect(last_row(ctx, waiter), "automount of %s by %d server" % (folder, server), server, "server")


@case(alone=True)  # no other listener on the host
def wait_for_seccomp(ctx):
    """A thread waits for the supervisor of its seccomp filter, and not in the call of its registers."""
    waiter, server, _ = begin(ctx, SECCOMP)
    expect(last_row(ctx, waiter), "seccomp supervisor %d server" % server, server, "server", "file")


@case
def wait_for_seccomp_of_two(ctx):
    """Which of two processes with listeners is the supervisor of a filter the kernel does not show."""
    waiter, _, _ = begin(ctx, SECCOMP_OF_TWO)
    row = last_row(ctx, waiter)
    check((row["waits_on"], row["why"], row["chain"]) == ("seccomp supervisor", "file", "waiter"), "%s", row)


def unaccepted(ctx, which, abstract, functions):
    name = ("\\0" if abstract else "") + ctx.temporary() + "/socket"
    script = UNACCEPTED % {"path": name, "which": which}
    KERNEL_FUNCTION[script] = functions
    waiter, server, _ = begin(ctx, script)
    row = last_row(ctx, waiter)
    expect(row, "unix %s not accepted by %d server" % (name.replace("\\0", "@"), server), server, "socket", "client")


@case
def wait_for_unix_accept(ctx):
    """A thread that asks over a unix socket waits for the process that has not accepted its connection, asleep in another call."""
    unaccepted(ctx, "queued", False, "unix_stream_*")


@case
def wait_for_unix_queue(ctx):
    """A thread that connects to a unix socket, by path or abstract name, waits for the process whose queue is full."""
    unaccepted(ctx, "connecting", False, "unix_*")
    unaccepted(ctx, "connecting", True, "unix_*")


@case
def wait_for_messages(ctx):
    """A thread waits for a message of a POSIX queue, by its name."""
    waiter, server, _ = begin(ctx, MESSAGES)
    row = last_row(ctx, waiter)
    check((row["syscall"], row["why"], row["waits_on"]) == ("mq_timedreceive", "event", "message queue /tsnap-test-%d (deleted)" % server), "%s", row)


@case
def wait_for_mptcp_server(ctx):
    """A client of MPTCP waits for the process at the other end of its connection."""
    waiter, server, _ = begin(ctx, MPTCP)
    row = last_row(ctx, waiter)
    port = re.match(r"mptcp 127\.0\.0\.1:(\d+) ", row["waits_on"])
    check(port, "waits_on: %s", row["waits_on"])
    expect(row, "mptcp 127.0.0.1:%s peer %d server" % (port.group(1), server), server, "socket", "client")


@case
def wait_for_udp_server(ctx):
    """A client of a UDP server of this host waits for the process that has the port; of two which share it none is named."""
    waiter, server, _ = begin(ctx, UDP)
    row = last_row(ctx, waiter)
    port = re.match(r"udp 127\.0\.0\.1:(\d+) ", row["waits_on"])
    check(port, "waits_on: %s", row["waits_on"])
    expect(row, "udp 127.0.0.1:%s peer %d server" % (port.group(1), server), server, "socket", "client")
    waiter, _, _ = begin(ctx, UDP_OF_TWO)
    row = last_row(ctx, waiter)
    check(re.fullmatch(r"udp 127\.0\.0\.1:\d+", row["waits_on"]), "two servers: %s", row)
    check(not row["blocker_pid"], "blocker of two servers: %s %s", row["blocker_kind"], row["chain"])


@case
def wait_for_lookup(ctx):
    """A thread that looks up a name which another thread looks up waits for that one, and for no file."""
    waiter, _, _ = begin(ctx, LOOKUP)
    row = last_row(ctx, waiter)
    check((row["state"], row["waits_on"]) == ("D", "lookup of the same file name by another thread"), "%s", row)


EXIT_GROUP = {"x86_64": "231 ", "aarch64": "94 "}


@case
def wait_for_threads_of_exec(ctx):
    """A thread that executes a program waits for its process' other threads, of which one is stuck in a file of FUSE."""
    waiter, _, _ = begin(ctx, EXEC)
    wait_until(lambda: truth.Thread(waiter).letter == "D", STOP_S, "execve")
    stuck = next(int(tid) for tid in os.listdir("/proc/%d/task" % waiter) if int(tid) != waiter)
    row = last_row(ctx, waiter)
    check((row["state"], row["waits_on"], row["chain"]) == ("D", "end of thread %d stuck" % stuck, "waiter thread> stuck server> server"), "%s", row)
    check(row["blocker_sure"] == "certain", "%s", row)


@case
def wait_for_end_of_namespace(ctx):
    """The first process of a pid namespace ends, and waits for the namespace's other process."""
    waiter, _, _ = begin(ctx, NAMESPACE_EXIT)
    wait_until(lambda: truth.read("/proc/%d/syscall" % waiter).startswith(EXIT_GROUP[os.uname().machine]), STOP_S, "its end")
    stuck = truth.read("/proc/%d/task/%d/children" % (waiter, waiter)).split()
    row = last_row(ctx, waiter)
    check((row["state"], row["why"], row["waits_on"]) == ("S", "child", "pid %s stuck" % stuck[0]), "%s", row)
    check(row["chain"] == "waiter child> stuck server> server", "%s", row)


@case
def wait_for_grace_period(ctx):
    """A thread waits for the end of an RCU grace period, which no thread holds back."""
    waiter, _, _ = begin(ctx, GRACE_PERIOD)
    rows = [row for row in rows_of(ctx.rows("-F", 20, "-t", waiter, seconds=SECONDS, columns=COLUMNS), waiter) if row["state"] == "D"]
    # a wait that was over before it was looked at has no words
    told = [row["waits_on"] for row in rows if row["waits_on"]]
    check(set(told) == {"RCU grace period"} and len(told) > 0.5 * len(rows) > 10, "%d of %d: %s", len(told), len(rows), set(told))


@case(alone=True)  # nobody can make a network namespace meanwhile
def wait_for_rtnl(ctx):
    """A thread waits for rtnl_mutex by its name, and for the holder where the kernel knows it."""
    waiter, _, _ = begin(ctx, RTNL)
    row = last_row(ctx, waiter)
    check(row["state"] == "D" and re.match("rtnl_mutex( held by %s server .*)?$" % row["blocker_pid"] if row["blocker_kind"] else "rtnl_mutex$", row["waits_on"]),
          "%s", row)
    check(row["chain"].startswith("waiter kernel lock> server" if row["blocker_kind"] else "waiter"), "chain: %s", row)


@case(alone=True)
def wait_for_cgroup_mutex(ctx):
    """Threads that move between control groups wait for cgroup_mutex by its name."""
    with open("/proc/self/mounts", encoding="ascii") as file:
        mounts = [line.split()[1] for line in file if line.split()[2] in ("cgroup", "cgroup2") and os.access(line.split()[1] + "/cgroup.procs", os.W_OK)]
    if not mounts:
        raise Skip("no control groups")
    groups = ["%s/tsnap-test-move-%d-%d" % (mounts[0], os.getpid(), i) for i in range(2)]
    for group in groups:
        os.mkdir(group)
        ctx.at_end(lambda group=group: wait_until(lambda: not subprocess.call(["rmdir", group], stderr=subprocess.DEVNULL), STOP_S, "its end"))
    movers = [Process([sys.executable, "-c", MOVERS, *groups]) for _ in range(4)]
    for mover in movers:
        ctx.at_end(mover.end)
        wait_until(lambda mover=mover: b"ready" in mover.out, START_S, "the movers")
    rows = ctx.rows("-a", "-F", 100, "-p", ",".join(str(mover.pid) for mover in movers), seconds=SECONDS, columns="state,wchan,waits_on,blocker_kind")
    rows = [row for row in rows if row["wchan"] == "cgroup_kn_lock_live" and row["state"] == "D"]
    check(len(rows) > 10, "few of the rows wait for the mutex: %d", len(rows))
    held = r"cgroup_mutex( held by (%s) python3\b.*)?$" % "|".join(str(mover.pid) for mover in movers)
    strange = [row for row in rows if row["waits_on"] and not re.match(held, row["waits_on"])]
    check(not strange and sum(bool(row["waits_on"]) for row in rows) > len(rows) / 2, "%s", strange[:3] or rows[:3])


# One thread sleeps, and the other one dumps 64 MB into a pipe that is not read
DUMPS = """
import os, resource, signal, threading
resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
memory = bytearray(os.urandom(1 << 16) * (1 << 10))
threading.Thread(target=lambda: (print(threading.get_native_id(), flush=True), signal.pause()), daemon=True).start()
input()
os.abort()
"""


@case(alone=True, thorough=True)
def wait_for_core_dump(ctx):
    """A thread of a process that dumps core waits for the end of that, and not in the call of its registers."""
    program, pattern = os.path.join(ctx.temporary(), "dump"), "/proc/sys/kernel/core_pattern"
    os.chmod(os.path.dirname(program), 0o755)
    with open(program, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\nexec sleep %d\n" % (SECONDS + STOP_S))
    os.chmod(program, 0o755)
    before = truth.read(pattern)

    def set_pattern(text):
        with open(pattern, "w", encoding="ascii") as file:
            file.write(text)
    process = Process([sys.executable, "-c", DUMPS])
    ctx.started.append(process)
    ctx.at_end(lambda: process.signal(signal.SIGKILL))
    wait_until(lambda: b"\n" in process.out, START_S, "the thread")
    tid = int(process.out)
    try:
        set_pattern("|" + program)
        process.say("go")
        wait_until(lambda: re.match("(coredump_task_exit|do_exit|exit_mm)", truth.read("/proc/%d/task/%d/wchan" % (process.pid, tid))), STOP_S, "the dump")
    finally:
        set_pattern(before)
    row = last_row(ctx, tid)
    check(row["waits_on"] == "core dump of its process", "%s", row)


def child_of_shell(ctx, words, *names):
    process = Process(["sh", "-c", words, "sh", *names])
    ctx.started.append(process)
    return process


@case
def wait_for_thaw(ctx):
    """A thread that writes waits for the thaw of the file system, by its mount point."""
    with Device() as device, file_system(ctx, device) as folder, contextlib.ExitStack() as end:
        with frozen(folder):
            writer = child_of_shell(ctx, "exec dd if=/dev/zero of=\"$1\" bs=1k count=1 2>/dev/null", folder + "/file")
            end.callback(writer.end)
            wait_until(lambda: truth.Thread(writer.pid).letter == "D", STOP_S, "its wait")
            row = last_row(ctx, writer.pid)
        writer.wait(STOP_S)
    check((row["state"], row["waits_on"]) == ("D", "frozen file system " + folder), "%s", row)


@case(alone=True)  # a mount namespace that another test makes meanwhile keeps the upper file system, and the lower one can't be unmounted
def wait_for_journal(ctx):
    """A thread in fsync waits for the kernel thread of the journal, whose device is frozen."""
    with Device() as below, file_system(ctx, below) as lower, Device(lower, 16 << 20) as device, file_system(ctx, device) as folder, \
            contextlib.ExitStack() as end:
        if not os.path.exists("/proc/2/task/2/children"):
            raise Skip("the kernel lists no children")
        os.mkdir(folder + "/new")
        with frozen(lower):
            writer = child_of_shell(ctx, "exec sync \"$1\"", folder)
            end.callback(writer.end)
            wait_until(lambda: truth.read("/proc/%d/wchan" % writer.pid) == "jbd2_log_wait_commit", STOP_S, "its wait")
            row, name = last_row(ctx, writer.pid), ("jbd2/%s-8" % device.name)[:15]
            comm = truth.read("/proc/%s/comm" % row["waits_on_pid"])
        writer.wait(STOP_S)
    check(row["waits_on"] == "journal commit by %s %s" % (row["waits_on_pid"], name) and comm and comm.strip() == name, "%s: %s", comm, row)
    check(row["chain"].startswith("sync server> " + name), "chain: %s", row["chain"])


@case
def wait_of_out_of_memory(ctx):
    """A thread waits until the limit of its memory group is raised, where the group's processes are not to be killed (cgroup v1)."""
    with open("/proc/self/mounts", encoding="ascii") as file:
        mount = next((line.split()[1] for line in file if line.split()[2] == "cgroup" and "memory" in line.split()[3].split(",")), None)
    if not mount or not os.access(mount, os.W_OK):
        raise Skip("no memory controller of cgroup v1")
    group = "%s/tsnap-test-oom-%d" % (mount, os.getpid())
    os.mkdir(group)
    ctx.at_end(lambda: wait_until(lambda: not os.path.exists(group) or not subprocess.call(["rmdir", group], stderr=subprocess.DEVNULL), STOP_S, "its end"))
    for name, value in (("memory.limit_in_bytes", "16M"), ("memory.oom_control", "1")):
        with open(os.path.join(group, name), "w", encoding="ascii") as file:
            file.write(value)
    eater = child_of_shell(ctx, "echo 0 >\"$1/cgroup.procs\"; exec python3 -c 'x = bytearray(1 << 28); x[::4096] = b\"1\" * (1 << 16)'", group)
    ctx.at_end(lambda: eater.signal(signal.SIGKILL))
    wait_until(lambda: truth.read("/proc/%d/wchan" % eater.pid) == "mem_cgroup_oom_synchronize", STOP_S, "that it has reached its limit")
    row = last_row(ctx, eater.pid)
    check((row["state"], row["waits_on"]) == ("D", "out of memory (memory.limit_in_bytes of /%s)" % os.path.basename(group)), "%s", row)
