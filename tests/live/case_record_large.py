"""An hour of recording that unpacks to 50 GB, in one file: all of it is counted, a minute of it costs little, and damage costs what it
hits. A recorder of as many scans as a day has seconds takes no more memory than for the first ones.
"""
import ctypes
import ctypes.util
import glob
import os
import re
import resource
import signal
import struct
import time

import truth
from harness import SLOW, START_S, Skip, case, check, wait_until

THREADS, RATE_HZ, HOUR_S = 1000, 20, 3600
SCANS = HOUR_S * RATE_HZ
FRAME_SCANS = 12  # 8.5 MB: tsnap writes a frame early once its rows are more than 8 MB
ROW_BYTES = 710
PART = "/large_20261120T16Z-001.%s.csv.zst"
DATE = "2026-11-20T"
HEADER_LINE = b"timestamp,weight_us,tid,pid,state,user,comm,exe,cmdline\n"
TIME_AT, TIME_BYTES = 1 + len(DATE), len("16:00:00.000000")
KIND_SAMPLES, KIND_SCANS = 0, 1
RESIDENT_MAX = 64 << 20
REPLAY_S = 300 * SLOW


class Zstd:
    """libzstd, which tsnap links, too; it makes frames with a checksum. The program zstd would have to be started 6000 times."""
    LEVEL, WINDOW_LOG, CHECKSUM = (100, 1), (101, 23), (201, 1)  # a window of 8 MB: rows are found again a scan later

    def __init__(self):
        name = ctypes.util.find_library("zstd") or "libzstd.so.1"
        try:
            self.library = ctypes.CDLL(name)
        except OSError as error:
            raise Skip("the library of zstd is not here: %s" % error) from None
        self.library.ZSTD_createCCtx.restype = ctypes.c_void_p
        self.library.ZSTD_freeCCtx.argtypes = [ctypes.c_void_p]
        self.library.ZSTD_CCtx_setParameter.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
        self.library.ZSTD_compress2.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t]
        self.library.ZSTD_compress2.restype = ctypes.c_size_t
        self.context = self.library.ZSTD_createCCtx()
        for parameter in self.LEVEL, self.WINDOW_LOG, self.CHECKSUM:
            self.library.ZSTD_CCtx_setParameter(self.context, *parameter)
        self.out = ctypes.create_string_buffer(0)

    def pack(self, rows):
        """A frame of rows, a bytearray."""
        if len(self.out) < len(rows) + (1 << 16):
            self.out = ctypes.create_string_buffer(len(rows) + (1 << 16))
        length = self.library.ZSTD_compress2(self.context, self.out, len(self.out), (ctypes.c_char * len(rows)).from_buffer(rows), len(rows))
        check(length <= len(self.out), "zstd does not pack")
        return memoryview(self.out)[:length]

    def free(self):
        self.library.ZSTD_freeCCtx(self.context)


def head(kind, header_line, first_us, last_us, packed, raw):
    """The bytes before a frame, see src/recording/frame.h."""
    words = struct.pack("<II8sIHHqqQQ", 0x184d2a5e, 56, b"tsnaprec", 1, kind, header_line, first_us, last_us, packed, raw)
    check_sum = 0xcbf29ce484222325
    for byte in words:
        check_sum = (check_sum ^ byte) * 0x100000001b3 % (1 << 64)
    return words + struct.pack("<Q", check_sum)


def frame_write(file, zstd, kind, rows, first_us=0, last_us=0):
    packed = zstd.pack(rows)
    file.write(head(kind, not first_us, first_us, last_us, len(packed), len(rows)))
    file.write(packed)


def clock_of(scan):
    second, tick = divmod(scan, RATE_HZ)
    return "16:%02d:%02d.%06d" % (second // 60, second % 60, tick * 1000000 // RATE_HZ)


BEGIN_US = 1795190400000000  # 2026-11-20T16:00Z


def time_us(scan):
    return BEGIN_US + scan * 1000000 // RATE_HZ


def row_of(thread):
    """A row of a thread; all rows have one length. Most of it is the command line."""
    tid = 100000 + 7 * thread
    row = '"%s16:00:00.000000Z",%d,%d,%d,"%s","user%02d","worker-%03d","/usr/lib/jvm/java-17/bin/java","java -Dinstance=%06d' % (
        DATE, 1000000 // RATE_HZ, tid, tid - 7 * (thread % 20), "SSSD"[thread % 4], thread % 50, thread % 250, thread * 7919 % 1000003)
    row += "".join(" -Dsetting.%03d=%08x" % (number, number * 99991) for number in range(40))
    return row[:ROW_BYTES - 2].encode() + b'"\n'


def recording_make(directory):
    """Makes the recording; returns the bytes of its CSV, and the offset of each frame of samples."""
    zstd, offsets = Zstd(), []
    one = b"".join(map(row_of, range(THREADS)))
    check(len(one) == THREADS * ROW_BYTES, "%d bytes", len(one))
    rows = bytearray(one * FRAME_SCANS)
    with open(directory + PART % "samples", "wb") as samples, open(directory + PART % "scans", "wb") as scans:
        frame_write(samples, zstd, KIND_SAMPLES, bytearray(HEADER_LINE))
        frame_write(scans, zstd, KIND_SCANS, bytearray(b"timestamp,weight_us,samples,threads,missing\n"))
        for first in range(0, SCANS, FRAME_SCANS):
            told, last = [], first + FRAME_SCANS - 1
            for scan in range(first, last + 1):
                clock, begin = clock_of(scan), (scan - first) * len(one)
                for at in range(TIME_BYTES):
                    rows[begin + TIME_AT + at:begin + len(one):ROW_BYTES] = clock[at].encode() * THREADS
                told.append('"%s%sZ",%d,%d,%d,0\n' % (DATE, clock, 1000000 // RATE_HZ, THREADS, THREADS))
            offsets.append(samples.tell())
            frame_write(samples, zstd, KIND_SAMPLES, rows, time_us(first), time_us(last))
            frame_write(scans, zstd, KIND_SCANS, bytearray("".join(told).encode()), time_us(first), time_us(last))
    zstd.free()
    return len(rows) * len(offsets), offsets


class Replay:
    """A report by state and name: its CPU time, memory and bytes read, and what it shows."""

    def __init__(self, ctx, *args):
        def cpu_s():
            return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        before, self.resident, self.read = cpu_s(), 0, 0
        tool = ctx.plain("-a", "-g", "state,comm", *args)
        wait_until(lambda: self.watch(tool.process.pid) or tool.code is not None, REPLAY_S, "a report")
        tool.finish_plain()
        self.cpu_s, text = cpu_s() - before, tool.out.decode()
        self.words = tool.err + "".join(re.findall("^Missed: .*", text, re.M))
        self.seconds = {row[1:]: float(row[0]) for row in re.findall(r"^ *[\d.]+ +([\d.]+) +[\d.]+% .*?([SD]) +(worker-\d+)$", text, re.M)}

    def watch(self, pid):
        """Keeps the most resident memory and bytes read so far. wait4(2) would count what the test had before the child's exec(2)."""
        self.resident = max(self.resident, truth.memory_bytes([pid], "VmHWM"))
        try:
            with open("/proc/%d/io" % pid, encoding="ascii") as file:
                self.read = max(self.read, int(re.search(r"^rchar: (\d+)", file.read(), re.M).group(1)))
        except OSError:
            pass

    def expect(self, scans):
        """The report has exactly the samples of so many scans, and took little memory."""
        truth = {}
        for thread in range(THREADS):
            key = "SSSD"[thread % 4], "worker-%03d" % (thread % 250)
            truth[key] = truth.get(key, 0) + scans
        found = {group: round(seconds * RATE_HZ) for group, seconds in self.seconds.items()}
        check(found == truth, "%d samples of %d in %d groups of %d: %s", sum(found.values()), sum(truth.values()), len(found), len(truth), self.words)
        check(self.resident < RESIDENT_MAX, "%.1f MB are resident", self.resident / 1e6)


@case(thorough=True)
def record_of_50_gb(ctx):
    """All samples of the hour are replayed; a minute of it takes less than a tenth of the time; with a damaged frame and an end that is cut
    off the rest is replayed."""
    directory = ctx.temporary()
    raw, offsets = recording_make(directory)
    path = directory + PART % "samples"
    check(raw >= 50e9, "only %d bytes", raw)
    print("# %.1f GB of CSV, %.0f MB packed" % (raw / 1e9, os.stat(path).st_size / 1e6), flush=True)

    whole = Replay(ctx, "--replay", directory)
    print("# whole: %.1f s of CPUs, %.1f MB resident, %.0f MB read" % (whole.cpu_s, whole.resident / 1e6, whole.read / 1e6), flush=True)
    whole.expect(SCANS)
    check(not whole.words, "%s", whole.words)

    window = "--from", DATE + "16:30:00Z", "--to", DATE + "16:31:00Z"
    minute = Replay(ctx, "--replay", directory, *window)
    print("# a minute: %.2f s of CPUs, %.1f MB resident, %.0f MB read" % (minute.cpu_s, minute.resident / 1e6, minute.read / 1e6), flush=True)
    minute.expect(60 * RATE_HZ)
    check(minute.cpu_s < whole.cpu_s / 10, "a minute takes %g s of CPUs, the hour %g", minute.cpu_s, whole.cpu_s)
    check(minute.read < whole.read / 5, "%d bytes are read for a minute, %d for the hour", minute.read, whole.read)

    damaged = 30 * 60 * RATE_HZ // FRAME_SCANS + 10
    with open(path, "r+b") as file:
        file.seek((offsets[damaged] + offsets[damaged + 1]) // 2)
        file.write(bytes(64))
    hurt = Replay(ctx, "--replay", path, *window)
    print("# a minute with a damaged frame: %s" % hurt.words)
    hurt.expect(60 * RATE_HZ - FRAME_SCANS)
    check(hurt.words == "Missed: 1 damaged part of the recording skipped", "%s", hurt.words)

    cut = damaged + 1
    os.truncate(path, (offsets[cut] + offsets[cut + 1]) // 2)
    rest = Replay(ctx, "--replay", path)
    print("# cut in the middle: %s" % rest.words)
    rest.expect((cut - 1) * FRAME_SCANS)
    check(rest.words == hurt.words + "; 1 files cut off, or still being written, within a frame", "%s", rest.words)


record_of_50_gb.limit_s = 900  # instead of run_live.LIMIT_S


DAY_SCANS, DAY_HZ = 86400, 200
DAY_MORE = 1 << 20  # bytes of memory that later thirds may take more than the first


class Third:
    """Peak of resident memory while processes and threads come and go; and how many have come since the test began."""

    def __init__(self, tool, storm, number):
        self.resident, end = 0, time.monotonic() + DAY_SCANS / DAY_HZ / 3
        storm.say(str(round(1000 * DAY_SCANS / DAY_HZ / 3)))
        while time.monotonic() < end:
            time.sleep(1)
            self.resident = max(self.resident, truth.memory_bytes([tool.pid], "VmRSS"))
        self.forks = sum(int(storm.wait_done(number)[what]) for what in ("forks", "threads"))


@case(thorough=True)
def record_of_a_day(ctx):
    """In as many scans as a day has seconds, while processes and threads come and go and files are removed all the time, a recorder
    takes no more memory later than in the first third."""
    directory = ctx.temporary()
    storm = ctx.workload("exit_storm")
    tool = ctx.plain("-o", directory, "-a", "-F", DAY_HZ, "--flush", 1, "--keep-bytes", "4M")
    wait_until(lambda: glob.glob(directory + "/*.scans.*"), START_S, "a first frame")
    thirds = [Third(tool, storm, number) for number in (1, 2, 3)]
    tool.signal(signal.SIGINT)
    tool.finish_plain(0)
    print("# %s MB resident, %d forks" % (" ".join("%.1f" % (third.resident / 1e6) for third in thirds), thirds[-1].forks), flush=True)
    check(thirds[-1].forks > 100000, "%d forks", thirds[-1].forks)
    check(max(third.resident for third in thirds) < thirds[0].resident + DAY_MORE, "it takes more and more")


record_of_a_day.limit_s = 900
