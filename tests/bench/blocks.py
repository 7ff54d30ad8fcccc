"""Cost of --trace block for a request: direct reads of 4 KB from a loop device on memory."""
import contextlib
import mmap
import os
import re
import subprocess
import tempfile
import threading
import time

from sampler import Sampler, quartiles, say
from table import Row

DEVICE_BYTES = 64 << 20
READ_BYTES = 4096
AIM_NS = 1000
PROGRAMS = 3  # programs that run for a request that no scheduler merges
WORDS = "--trace block,blockq: direct read of 4 KB, loop device on memory"
TRACED = ("--trace", "block,blockq", "-i", 1)


@contextlib.contextmanager
def loop_device():
    """Makes a loop device and yields its path; OSError where there can be none."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(bytes(DEVICE_BYTES))
        file.flush()
        path = subprocess.run(["losetup", "-f", "--show", file.name], check=True, stdout=subprocess.PIPE).stdout.decode().strip()
        try:
            yield path
        finally:
            subprocess.run(["losetup", "-d", path], check=True)


def read_ns(path, seconds):
    """Mean time of a read, in ns."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    memory = mmap.mmap(-1, READ_BYTES)
    count, start = 0, time.monotonic_ns()
    end = start + int(seconds * 1e9)
    try:
        while time.monotonic_ns() < end:
            os.preadv(fd, [memory], count * READ_BYTES % DEVICE_BYTES)
            count += 1
    finally:
        os.close(fd)
    return (time.monotonic_ns() - start) / count


def program_ns(options, path):
    """(ns in the three programs of a request, ns of an empty one), as the kernel counts both; None where it does not."""
    reader = threading.Thread(target=read_ns, args=(path, 3))
    empty = subprocess.Popen([options.build + "/tests/bench/floor", "block_rq_issue"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    tool = subprocess.Popen([options.tsnap, "--self", "--trace", "block,blockq", "-d", "2"] + options.args.split(),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    reader.start()
    report = tool.communicate()[0]
    reader.join()
    counted = re.search(r"block_rq_issue: (\d+) ns", empty.communicate()[0])
    found = re.findall(r"^block_\w+ .*? \d+ +(\d+) +[\d.]+ +\d+ +\d+$", report, re.M)
    return (sum(map(int, found)), int(counted.group(1))) if len(found) == PROGRAMS and counted else None


def bench_block(options):
    ways = {"sampled": (), "traced": TRACED}
    took = {name: [] for name in ("alone", *ways)}
    inside = []
    try:
        with loop_device() as path:
            for round in range(options.rounds):
                say("block: round %d of %d" % (round + 1, options.rounds))
                took["alone"].append(read_ns(path, options.run_ms / 1000))
                for name, args in ways.items():
                    with Sampler(options, *args, "-d", 100000):
                        took[name].append(read_ns(path, options.run_ms / 1000))
                inside.append(program_ns(options, path))
    except (OSError, subprocess.CalledProcessError) as error:
        return [Row(WORDS, "tsnap", None, "ratio", remark="no loop device here: %s" % error)]
    low, middle, high = quartiles([traced / sampled for traced, sampled in zip(took["traced"], took["sampled"])])
    rows = [Row(WORDS + ", to samples alone", "tsnap", middle, "ratio", low, high,
                remark="%.1f us without tsnap" % (quartiles(took["alone"])[1] / 1000))]
    inside = [ns for ns in inside if ns is not None]
    if inside:
        low, middle, high = quartiles([ns - PROGRAMS * empty for ns, empty in inside])
        rows.append(Row("the same, in programs, a request", "tsnap", middle, "ns", low, high, AIM_NS,
                        "as counted by the kernel, less %.0f ns a program that it counts of empty ones" %
                        quartiles([empty for _, empty in inside])[1]))
    return rows
