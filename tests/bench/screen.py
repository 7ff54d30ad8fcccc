"""Cost of tsnap --top: time until a key is answered, also on a busy host, CPU of the screen without that of sampling, memory."""
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time

from sampler import LIMIT_S, Held, Processes, quartiles, read, say
from table import Row

ROWS, COLUMNS = 40, 120
REFRESH_S = 2
ASKING = 200  # threads that each ask a server 30 times a second


class Screen(Processes):
    """tsnap --top on a terminal of its own."""

    def __init__(self, options, *args):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.process = subprocess.Popen([options.tsnap, "--top", *args] + options.args.split(), stdin=slave, stdout=slave,
                                        stderr=subprocess.DEVNULL, start_new_session=True,
                                        env=dict(os.environ, TERM="xterm-256color", LC_ALL="C.UTF-8", HOME="/nonexistent"))
        os.close(slave)
        self.wait(b"LIVE")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.read(2)
        except OSError:  # EIO: no process holds the other end any more
            pass
        self.process.wait(LIMIT_S)
        os.close(self.master)

    def read(self, seconds):
        end, given = time.monotonic() + seconds, b""
        while time.monotonic() < end:
            if select.select([self.master], [], [], max(0, min(0.05, end - time.monotonic())))[0]:
                given += os.read(self.master, 65536)
        return given

    def wait(self, words):
        end, given = time.monotonic() + LIMIT_S, b""
        while words not in given:
            if time.monotonic() > end:
                sys.exit("tsnap --top shows no %r" % words)
            if select.select([self.master], [], [], 0.05)[0]:
                given += os.read(self.master, 65536)

    def key_ms(self, key):
        """Milliseconds from a key to the first bytes of its answer."""
        self.read(0.05)
        begun = time.monotonic()
        os.write(self.master, key)
        if not select.select([self.master], [], [], LIMIT_S)[0]:
            sys.exit("tsnap --top does not answer %r" % key)
        taken = time.monotonic() - begun
        self.read(0.05)
        return 1000 * taken

    def used(self, seconds, cpu_s):
        """Percent of a CPU that it uses in so much time, by a function that returns its CPU time so far."""
        begun, before = time.monotonic(), cpu_s()
        self.read(seconds)
        return 100 * (cpu_s() - before) / (time.monotonic() - begun)

    def screen_cpu_s(self):
        """CPU time of the screen's thread and of the thread that copies scans: of all threads except the main one of each process."""
        return sum(int(read("/proc/%s/task/%s/schedstat" % thread).split()[0]) for thread in self.threads() if len(set(thread)) > 1) / 1e9


def path(options, what):
    return float(subprocess.check_output([options.build + "/tests/bench/screen_path", what]))


def keys_row(options, words, aim):
    with Screen(options, "-a") as screen:
        screen.read(1 if options.quick else 6)
        # keys: to another row and back, to the next key column and back, redraw; each changes the screen
        times = [screen.key_ms(key) for _ in range(2 if options.quick else 15) for key in (b"j", b"k", b"\r", b"\x7f", b"\x0c")]
    low, middle, high = quartiles(times)
    return Row(words, "tsnap", middle, "ms", low, high, aim, "%.1f ms at most" % max(times))


def bench_screen(options):
    """Keys, CPU and memory of the full screen."""
    say("screen: keys")
    rows = [keys_row(options, "--top: a key, until the terminal gets the first bytes", 50)]
    say("screen: keys on a busy host")
    spinners = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 * os.cpu_count())]
    try:
        rows.append(keys_row(options, "the same, two spinning processes on each CPU", 50))
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
    say("screen: CPU")
    with Screen(options, "-i", str(REFRESH_S)) as screen:
        screen.read(3)
        rows.append(Row("CPU of the screen's thread, a refresh in 2 s", "tsnap", screen.used(options.scan_s * 2, screen.screen_cpu_s),
                        "%", aim=1, remark="and of the thread that copies scans"))
        rows.append(Row("resident memory of --top, after half a minute", "tsnap", screen.memory()[0] / 1e6, "MB"))
    say("screen: CPU, %d active threads" % ASKING)
    with Held(options, "served", "threads=%d" % ASKING), Screen(options) as screen:
        screen.read(3)
        rows.append(Row("CPU of --top, all of it, %d threads that ask a server" % ASKING, "tsnap",
                        screen.used(options.scan_s * 2, screen.cpu_s), "%", aim=3, remark="20 Hz, with the findings"))
    say("screen: history")
    runs = [path(options, "million") for _ in range(options.rounds)]
    low, middle, high = quartiles(runs)
    rows.append(Row("--top: a window of a million samples grouped", "tsnap", middle, "ms", low, high, 50))
    rows.append(Row("history of ten minutes, 500 active threads, 20 Hz", "tsnap", path(options, "memory"), "MB", aim=67.1))
    return rows
