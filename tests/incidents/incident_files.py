"""Incidents of files and disks."""
import os
import subprocess

from case_scan_time import group_made
from harness import SLOW, Skip, wait_until
from incident import Program, Truth, incident, look_alike, now, python
from incident_servers import curls
from parts import program

IOPS = 20
FIO = ("--rw=write", "--bs=4k", "--size=1m", "--fsync=1", "--time_based", "--thread", "--runtime=600", "--ioengine=sync", "--name=store")


def fio(ctx, count, enter=None):
    """That many processes that write a block and wait until it is on the disk, again and again."""
    directory = ctx.temporary()
    for number in range(count):
        Program(ctx, [program("fio", "fio"), "--filename=%s/%d" % (directory, number), *FIO], preexec_fn=enter, cwd=directory)
    wait_until(lambda: all(os.path.exists("%s/%d" % (directory, number)) for number in range(count)), 20 * SLOW, "fio's files")


def slow_writes(ctx):
    """Enters a control group that may write only IOPS times a second, to the disk of /tmp."""
    device = os.stat("/tmp").st_dev
    if not os.path.exists("/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device"):
        raise Skip("no control groups of version 1 with I/O limits")
    return group_made(ctx, "/sys/fs/cgroup/blkio/tsnap-test-%d" % os.getpid(),
                      blkio__throttle__write_iops_device="%d:%d %d" % (os.major(device), os.minor(device), IOPS))


@incident(12, often=True)
def fsync_under_io_limit(ctx):
    """Four writers call fsync(2) all the time, in a control group with a limit of 20 writes a second."""
    fio(ctx, 4, slow_writes(ctx))
    return Truth("io_limit", ("fio", 4), None, "(write_iops|wiops).*%d.*/tsnap-test" % IOPS, also=("disk", "slow_disk", "d_wait"))


@look_alike(12)
def fsync_without_limit(ctx):
    """Two writers call fsync(2) all the time, and no limit holds them back."""
    fio(ctx, 2)
    return ("io_limit",)


# A file system with one file, whose reads take a time: FUSE's protocol, include/uapi/linux/fuse.h.
FUSE = """
import ctypes, os, struct, sys, time
place, seconds = sys.argv[1], float(sys.argv[2])
device = os.open("/dev/fuse", os.O_RDWR)
flags = b"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % device
if ctypes.CDLL(None).mount(b"slow", place.encode(), b"fuse.slow", 0, flags):
    sys.exit("mount failed")
print("ready", flush=True)
LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT, OPENDIR, INTERRUPT, FORGETS = 1, 2, 3, 14, 15, 18, 25, 26, 27, 36, 42
def attr(node):
    return struct.pack("QQQQQQIIIIIIIIII", node, 4096, 8, 0, 0, 0, 0, 0, 0, 0o40755 if node == 1 else 0o100644, 1, 0, 0, 0, 4096, 0)
while True:
    request = os.read(device, 1 << 20)
    length, opcode, unique, node = struct.unpack_from("IIQQ", request)
    body, error = b"", 0
    if opcode in (FORGET, INTERRUPT, FORGETS):
        continue
    if opcode == INIT:
        body = struct.pack("IIIIHHIIHHI", 7, 31, 65536, 0, 12, 9, 65536, 1, 1, 0, 0).ljust(64, b"\\0")
    elif opcode == LOOKUP:
        body = struct.pack("QQQQII", 2, 0, 1000, 1000, 0, 0) + attr(2)
    elif opcode == GETATTR:
        body = struct.pack("QII", 1000, 0, 0) + attr(node)
    elif opcode in (OPEN, OPENDIR):
        body = struct.pack("QII", 0, 1, 0) # direct I/O
    elif opcode == READ:
        time.sleep(seconds)
        offset, = struct.unpack_from("Q", request, 48)
        body = b"x" * 4096 if offset == 0 else b""
    elif opcode not in (FLUSH, RELEASE):
        error = -38
    os.write(device, struct.pack("IiQ", 16 + len(body), error, unique) + body)
"""
NODE = """
require('http').createServer((request, answer) => answer.end(require('fs').readFileSync(process.argv[1])))
    .listen(0, '127.0.0.1', function () { console.log('ready ' + this.address().port); });
"""


def node_on_fuse(ctx, seconds):
    """(node, FUSE server, port) of a node that reads a file of FUSE for each request; a read takes so many seconds."""
    place = ctx.temporary()
    server = python(ctx, FUSE, place, str(seconds))
    ctx.at_end(lambda: subprocess.run(["umount", "-l", place], check=False))
    node = Program(ctx, [program("node", "nodejs"), "-e", NODE, place + "/prices"])
    ctx.at_end(server.kill)  # node can't end before
    wait_until(lambda: node.out.startswith(b"ready"), 20 * SLOW, "node")
    return node, server, node.out.split()[1].decode()


@incident(5)
def node_reads_slow_fuse(ctx):
    """Four clients wait for node, which reads a file of a FUSE server that sleeps for an hour."""
    _, server, port = node_on_fuse(ctx, 3600)
    since = now()
    curls(ctx, 4, "http://127.0.0.1:%s/" % port)
    return Truth("sleeper", ("curl", 5), ("python3", server.pid), "sleeps on a timer", since, also=("unread",))


@look_alike(5)
def node_reads_quick_fuse(ctx):
    """A client asks node, which reads a file of a FUSE server that answers at once."""
    _, _, port = node_on_fuse(ctx, 0)
    curls(ctx, 1, "http://127.0.0.1:%s/" % port, 0.2)
    return ("server", "sleeper", "stuck", "d_wait")
