"""Cost of an always-on recording: bytes on disk of a sample, and CPU time and memory of the recorder."""
import glob
import os
import subprocess
import sys
import tempfile
import time

from sampler import HOST_CANNOT, LIMIT_S, Crowd, Held, Program, say
from table import Row

FLUSH_S = 1
ASKING = 200  # threads that each ask a server 30 times a second


class Recorder(Program):
    """A tsnap that records into a directory; up once a scan is in a file."""

    def __init__(self, options, directory, *args, flush_s=FLUSH_S):
        self.directory = directory
        super().__init__([options.tsnap, "-o", directory, "--flush", str(flush_s)] + options.args.split() + [str(arg) for arg in args])

    def samples(self):
        """Number of samples in the files."""
        found = 0
        for path in glob.glob(self.directory + "/*.scans.csv.zst"):
            rows = subprocess.run(["zstd", "-dqc", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode().splitlines()
            at = rows[0].split(",").index("samples") if rows else 0
            found += sum(int(row.split(",")[at]) for row in rows[1:])
        return found

    def await_up(self):
        while not self.samples():
            if self.process.poll() is not None or time.monotonic() > self.started + LIMIT_S:
                say("tsnap recorded nothing: " + self.last_words())
                sys.exit(HOST_CANNOT if self.process.poll() == HOST_CANNOT else 1)
            time.sleep(0.1)
        self.up_s = time.monotonic() - self.started


def size_rows(options):
    rows = []
    with Crowd(options, 1000):
        for rate in (1, 20):
            say("recorder: 1000 threads at %d Hz, all shown" % rate)
            with tempfile.TemporaryDirectory() as directory, Recorder(options, directory, "-a", "-F", rate, flush_s=10) as recorder:
                time.sleep(options.scan_s * 6)
                recorder.process.terminate()
                recorder.process.wait(LIMIT_S)
                samples = recorder.samples()
                size = sum(os.stat(path).st_size for path in glob.glob(directory + "/*"))
                rows.append(Row("recorded sample, 1000 threads, all shown, %d Hz" % rate, "tsnap", size / samples, "bytes", aim=10,
                                remark="%.2g million samples" % (samples / 1e6)))
    return rows


def cost_rows(options):
    say("recorder: %d threads at 1 Hz, mostly asleep" % options.crowd)
    with Crowd(options, options.crowd), tempfile.TemporaryDirectory() as directory, \
            Recorder(options, directory, "-F", 1) as recorder:
        time.sleep(5)  # work that is done only once is over then
        cpu, began = recorder.cpu_s(), time.monotonic()
        time.sleep(options.scan_s * 6)
        cpu, passed = recorder.cpu_s() - cpu, time.monotonic() - began
        words = "recording at 1 Hz, %d threads, of which 50 work" % options.crowd
        return [Row("CPU, " + words, "tsnap", 100 * cpu / passed, "%", aim=0.5),
                Row("resident memory, " + words, "tsnap", recorder.memory()[0] / 1e6, "MB", aim=25)]


def busy_rows(options):
    """A recording of threads that all work: its rows have what they wait for, and for whom."""
    say("recorder: %d threads that ask a server, at 1 Hz" % ASKING)
    with Held(options, "served", "threads=%d" % ASKING), tempfile.TemporaryDirectory() as directory, \
            Recorder(options, directory, "-F", 1, flush_s=5) as recorder:
        time.sleep(5)
        cpu, began = recorder.cpu_s(), time.monotonic()
        time.sleep(options.scan_s * 6)
        cpu, passed = recorder.cpu_s() - cpu, time.monotonic() - began
        recorder.process.terminate()
        recorder.process.wait(LIMIT_S)
        size = sum(os.stat(path).st_size for path in glob.glob(directory + "/*"))
        words = "%d threads that ask a server 30 times a second, 1 Hz" % ASKING
        return [Row("CPU, recording " + words, "tsnap", 100 * cpu / passed, "%", aim=1),
                Row("recorded sample, " + words, "tsnap", size / recorder.samples(), "bytes", aim=6)]


def bench_recorder(options):
    return size_rows(options) + cost_rows(options) + busy_rows(options)
