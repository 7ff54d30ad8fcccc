"""Incidents of files and disks."""
import os

from case_scan_time import group_made
from harness import SLOW, Skip, wait_until
from incident import Program, Truth, incident, look_alike
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
