"""Incidents of memory, of file systems, and of other ends of connections that do not read."""
import os
import shutil
import subprocess

import truth
from case_memory import LIMIT, WRITER
from case_scan_time import group_made
from harness import START_S, STOP_S, Skip, unmount
from incident import Program, Truth, incident, look_alike, now, python, shell
from parts import free_port

WRITERS = 3


def file_system(ctx):
    """The folder of a new ext4 in an image, mounted by a loop device."""
    image, folder = ctx.temporary() + "/image", ctx.temporary()
    if not shutil.which("mkfs.ext4") or not shutil.which("fsfreeze"):
        raise Skip("no mkfs.ext4, or no fsfreeze")
    made = subprocess.run("truncate -s 16M %s && mkfs.ext4 -q %s && mount -o loop %s %s" % (image, image, image, folder), shell=True,
                          capture_output=True, text=True, check=False)
    if made.returncode:
        raise Skip("no file system can be mounted: %s" % made.stderr)
    ctx.at_end(lambda: unmount(folder))
    return folder


@incident(13)
def frozen_file_system(ctx):
    """Three programs write files of a file system that is frozen."""
    folder = file_system(ctx)
    subprocess.run(["fsfreeze", "-f", folder], check=True)
    since = now()
    for number in range(WRITERS):
        Program(ctx, ["dd", "if=/dev/zero", "of=%s/%d" % (folder, number), "bs=4k", "count=1", "status=none"])
    ctx.at_end(lambda: subprocess.run(["fsfreeze", "-u", folder], check=True))
    return Truth("stuck", ("dd", WRITERS), None, "frozen|freeze", since, certain=True)


@look_alike(13)
def file_system_not_frozen(ctx):
    """A program writes a file of a file system again and again."""
    folder = file_system(ctx)
    shell(ctx, "while :; do dd if=/dev/zero of=%s/x bs=4k count=1 status=none; sleep 0.1; done" % folder)
    return "stuck", "slow_disk"


def memory_group(ctx, limit):
    if not os.path.exists("/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        raise Skip("no control groups of version 1 with limits of memory")
    return group_made(ctx, "/sys/fs/cgroup/memory/tsnap-test-%d" % os.getpid(), memory__limit_in_bytes=str(limit))


def writer(ctx, limit):
    enter = memory_group(ctx, limit)  # it outlives its process
    child = python(ctx, WRITER, os.path.join(ctx.temporary(), "written"))
    enter(str(child.pid))
    child.say("go")
    return child


@incident(14)
def memory_limit(ctx):
    """A program writes files in a control group with little memory, so that it waits for reclaim."""
    writer(ctx, LIMIT)
    return Truth("memory", ("python3", None), None, "memory.limit_in_bytes of /tsnap-test",
                 also=("disk", "slow_disk", "io_limit", "lock", "d_wait", "cpus"))


@look_alike(14)
def memory_to_spare(ctx):
    """A program in a control group with memory to spare."""
    enter = memory_group(ctx, 1 << 30)
    python(ctx, "import time\nprint('ready', flush=True)\nwhile True:\n\tbytearray(10 << 20)\n\ttime.sleep(0.05)", preexec_fn=enter)
    return ("memory",)


RECEIVER = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
connection, _ = server.accept()
while connection.recv(100000):
    time.sleep(float(sys.argv[2]))
"""
SENDER = """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
while True:
    connection.sendall(bytes(1 << 20))
"""


def connected(ctx, pause):
    """A receiver that pauses after each read."""
    port = free_port()
    receiver = python(ctx, RECEIVER, str(port), str(pause))
    sender = python(ctx, SENDER, str(port))
    return receiver, sender


@incident(22, often=True)
def tcp_receiver_does_not_read(ctx):
    """A program sends by TCP to one that does not read, as it sleeps."""
    receiver, _ = connected(ctx, 3600)
    return Truth(("sleeper", "server"), ("python3", 1), ("python3", receiver.pid), "sleeps", now())


@look_alike(22, often=True)
def tcp_receiver_reads(ctx):
    """A program sends by TCP to one that reads all the time."""
    connected(ctx, 0)
    return "sleeper", "server"


NIGHTLY = """
import fcntl, sys, time
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("ready", flush=True)
time.sleep(3600)
"""
SECONDS = 6  # of a recording


def nightly_job(ctx, wanted):
    """(a job that holds a file's lock, when WRITERS programs began to wait for that of the file `wanted`), recorded; the findings are those
    of the recording."""
    paths = {name: os.path.join(ctx.temporary(), name) for name in ("lock", "other")}
    job = python(ctx, NIGHTLY, paths["lock"])
    for _ in range(WRITERS):
        Program(ctx, ["flock", *([] if wanted == "lock" else ["-s"]), paths[wanted], "sleep", "600"])
    since = now()
    recording, plain = os.path.join(ctx.temporary(), "night"), ctx.plain
    pids = ",".join(map(str, truth.children(os.getpid())))
    plain("-o", recording, "-G", "findings", "-d", SECONDS, "-r", "-p", pids).finish_plain(0, START_S + SECONDS + STOP_S)
    ctx.plain = lambda *_arguments: plain("--replay", recording, "--findings", "--json")
    return job, since


@incident(20)
def nightly_lock_replayed(ctx):
    """A nightly job sleeps with a file's lock; three programs wait for it; from a recording."""
    job, since = nightly_job(ctx, "lock")
    return Truth("lock", ("flock", WRITERS), ("python3", job.pid), "file lock .*/lock, held by python3.*sleeps in clock_nanosleep", since,
                 certain=True)


@look_alike(20)
def nightly_lock_not_wanted(ctx):
    """A nightly job sleeps with a file's lock that nobody wants; from a recording."""
    nightly_job(ctx, "other")
    return None
