#!/usr/bin/env python3
"""tsnap --top on a pseudo terminal: every way out restores the terminal; terminals that are resized, too small, unknown, or absent.

    run_terminal.py TSNAP [CASE...]
"""
import concurrent.futures
import ctypes
import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures")
ENTERED, LEFT = b"\x1b[?1049h", b"\x1b[?1049l"


class Terminal:
    """A tsnap on a terminal of its own."""

    def __init__(self, tsnap, term="xterm-256color", rows=24, columns=80, arguments=(), recording="small.csv", wrap=(), own=None,
                 **environment):
        self.master, self.slave = pty.openpty()
        self.output = b""
        self.resize(rows, columns, None)
        self.modes = termios.tcgetattr(self.slave)
        env = {"PATH": os.environ["PATH"], "TERM": term, "LC_ALL": "C.UTF-8"}
        env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        env.update(environment)
        def prepare():
            self.own()
            if own:
                own()

        self.process = subprocess.Popen([*wrap, tsnap, "--top", "--replay", recording, *arguments], cwd=FIXTURES,
                                        stdin=self.slave, stdout=self.slave, stderr=subprocess.PIPE, env=env,
                                        preexec_fn=prepare)

    def own(self):
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def resize(self, rows, columns, signal_to=signal.SIGWINCH):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if signal_to:
            self.process.send_signal(signal_to)

    def expect(self, *all_words, seconds=20):
        """Reads until all the words have come since the last call, in any order: on a slow host a screen comes in pieces."""
        all_words = [words if isinstance(words, bytes) else words.encode() for words in all_words]
        end = time.monotonic() + seconds
        while not all(words in self.output for words in all_words):
            if time.monotonic() > end:
                raise AssertionError("no %r in %r" % (all_words, self.output[-600:]))
            if select.select([self.master], [], [], 0.1)[0]:
                self.output += os.read(self.master, 65536)
        self.output = self.output[max(self.output.index(words) + len(words) for words in all_words):]

    def type(self, keys):
        os.write(self.master, keys.encode())

    def drain(self):
        while select.select([self.master], [], [], 0.3)[0]:
            self.output += os.read(self.master, 65536)

    def ended(self, code, seconds=20):
        """The process has ended with this exit code, and the terminal is as it was."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            self.drain()
        self.drain()
        assert self.process.returncode == code, self.process.returncode
        assert termios.tcgetattr(self.slave) == self.modes, "the terminal's modes stayed"
        assert LEFT in self.output, "the terminal stayed on the other screen"
        self.close()

    def close(self):
        self.process.stderr.close()
        os.close(self.master)
        os.close(self.slave)


def case_quit(tsnap):
    for keys in ("q", "\x03"):
        terminal = Terminal(tsnap)
        terminal.expect(ENTERED)
        terminal.expect("AVG_THR")
        terminal.type(keys)
        terminal.ended(0)


def case_signals(tsnap):
    for number, code in ((signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGABRT, -signal.SIGABRT),
                         (signal.SIGSEGV, -signal.SIGSEGV)):
        if code and "ASAN_OPTIONS" in os.environ:
            continue
        terminal = Terminal(tsnap)
        terminal.expect("AVG_THR")
        terminal.process.send_signal(number)
        terminal.ended(code)


def case_stopped_terminal(tsnap):
    """tsnap ends on SIGTERM although its terminal takes no output."""
    terminal = Terminal(tsnap, rows=60, columns=200)
    terminal.expect("AVG_THR")
    termios.tcflow(terminal.slave, termios.TCOOFF)
    for _ in range(300):
        terminal.type("\x0c")
    time.sleep(0.5)
    terminal.process.send_signal(signal.SIGTERM)
    terminal.process.wait(10)
    assert termios.tcgetattr(terminal.slave) == terminal.modes, "the terminal's modes stayed"
    terminal.close()


def case_background(tsnap):
    """Ctrl-Z gives the terminal back, and SIGCONT takes it again."""
    terminal = Terminal(tsnap)
    terminal.expect("AVG_THR")
    terminal.type("\x1a")
    terminal.expect(LEFT)
    # tsnap goes on at once: it has no shell here, and SIGTSTP is ignored in an orphaned process group
    terminal.expect("AVG_THR")
    terminal.type("q")
    terminal.ended(0)


# A shell's job control: waits until the job stops, prints that, and continues it after a line of input.
SHELL = """
import os, signal, sys
job = os.fork()
if not job:
    os.setpgid(0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(0, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
_, status = os.waitpid(job, os.WUNTRACED)
if not os.WIFSTOPPED(status):
    sys.exit(99)
os.tcsetpgrp(0, os.getpgrp())
print("Stopped", os.WSTOPSIG(status), flush=True)
sys.stdin.readline()
os.tcsetpgrp(0, job)
os.kill(job, signal.SIGCONT)
_, status = os.waitpid(job, 0)
os.tcsetpgrp(0, os.getpgrp())
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 98)
"""


def case_job(tsnap):
    """Ctrl-Z in a shell: the process stops, the terminal is the shell's as it was, and fg brings the screen back."""
    terminal = Terminal(tsnap, wrap=(sys.executable, "-c", SHELL))
    terminal.expect("AVG_THR")
    terminal.type("\x1a")
    terminal.expect(LEFT)
    terminal.expect("Stopped %d" % signal.SIGTSTP)
    assert termios.tcgetattr(terminal.slave) == terminal.modes, "the terminal's modes stayed while it was stopped"
    terminal.type("\n")
    terminal.expect("AVG_THR")
    assert termios.tcgetattr(terminal.slave) != terminal.modes, "the terminal was not taken again"
    terminal.type("q")
    terminal.ended(0)


def case_no_memory(tsnap):
    """malloc fails while the screen is there: the terminal is given back, and one line says why."""
    folder = os.path.join(os.path.dirname(tsnap), "..", "tests", "live")
    with open(tsnap, "rb") as file:
        sanitized = b"__asan_init" in file.read()
    if sanitized or not os.path.exists(folder + "/libmalloc_fails.so"):  # sanitizers have a malloc of their own
        print("     no_memory: not of this program")
        return
    ended = 0
    for when in (900, 1300, 2000, 3000, 5000, 9000):
        # without the sandbox: libseccomp 2.5 itself breaks where it has no memory
        terminal = Terminal(tsnap, arguments=("--no-sandbox",), LD_LIBRARY_PATH=folder, LD_PRELOAD="libmalloc_fails.so",
                            MALLOC_FAILS=str(when), MALLOC_FAILS_IN="tsnap")
        end = time.monotonic() + 10
        # keys are sent until it ends, because each answer allocates
        while terminal.process.poll() is None and time.monotonic() < end:
            if select.select([terminal.master], [], [], 0.02)[0]:
                terminal.output += os.read(terminal.master, 65536)
            if ENTERED in terminal.output:
                terminal.type("app")
        if terminal.process.poll() is None:  # the failed allocation was one that a library can do without
            terminal.type("\x1b")
            time.sleep(0.2)
            terminal.type("q")
            terminal.process.wait(20)
        terminal.drain()
        said = terminal.process.stderr.read()
        assert (terminal.process.returncode, said) in ((1, b"tsnap: out of memory\n"), (0, b"")), (when, said)
        assert termios.tcgetattr(terminal.slave) == terminal.modes, "the terminal's modes stayed"
        assert terminal.output.count(LEFT) == terminal.output.count(ENTERED), "the terminal stayed on the other screen"
        ended += ENTERED in terminal.output and terminal.process.returncode
        terminal.close()
    assert ended >= 3, "%d screens ran out of memory" % ended


def case_resize(tsnap):
    terminal = Terminal(tsnap)
    terminal.expect("AVG_THR")
    terminal.resize(10, 40)
    terminal.expect("needs 60x15")
    terminal.resize(50, 160)
    terminal.expect("AVG_THR")
    terminal.type("y")
    terminal.expect("tsnap --replay")
    terminal.type("q")
    terminal.ended(0)


def case_colour(tsnap):
    for environment, wanted in (({}, True), ({"NO_COLOR": "1"}, False)):
        terminal = Terminal(tsnap, **environment)
        terminal.expect("AVG_THR")
        terminal.drain()
        given = b"\x1b[3" in terminal.output
        terminal.type("q")
        terminal.ended(0)
        assert given == wanted, environment


def case_kinds(tsnap):
    for term in ("linux", "vt100", "screen", "tmux", "xterm"):
        if subprocess.run(["infocmp", term], capture_output=True, check=False).returncode:
            continue
        # libgpm, which ncurses loads on a console, leaks ten bytes
        environment = {"ASAN_OPTIONS": "detect_leaks=0"} if term == "linux" else {}
        terminal = Terminal(tsnap, term=term, **environment)
        terminal.expect("AVG_THR")
        terminal.type("q")
        assert terminal.process.wait(20) == 0, term
        terminal.drain()
        assert termios.tcgetattr(terminal.slave) == terminal.modes
        terminal.close()


def case_mouse(tsnap):
    """Clicks, as terminals send them: on a title, which sorts, and on a row."""
    for term, click in (("xterm", "\x1b[<0;%d;%dM\x1b[<0;%d;%dm"), ("screen", None)):
        if subprocess.run(["infocmp", term], capture_output=True, check=False).returncode:
            continue
        terminal = Terminal(tsnap, term=term, columns=100, arguments=("-g", "comm"))
        terminal.expect("comm: ")
        terminal.drain()
        for row, wanted in ((10, "sort seconds"), (12, "seconds: 0.10")):
            if click:
                terminal.type(click % (12, row, 12, row))
            else:  # button, column and row as characters, then the release
                terminal.type("\x1b[M" + " " + chr(32 + 12) + chr(32 + row) + "\x1b[M#" + chr(32 + 12) + chr(32 + row))
            terminal.expect(wanted)
        terminal.type("q")
        assert terminal.process.wait(20) == 0, term
        terminal.close()


def case_ascii(tsnap):
    for arguments, environment in ((("--ascii",), {}), ((), {"LC_ALL": "C"})):
        terminal = Terminal(tsnap, arguments=arguments, **environment)
        terminal.expect("AVG_THR")
        terminal.type("s\r")
        terminal.expect("sort")
        terminal.drain()
        assert all(byte < 128 for byte in terminal.output), terminal.output
        terminal.type("q")
        terminal.ended(0)


def case_unknown(tsnap):
    for term in ("nothing-so", ""):
        terminal = Terminal(tsnap, term=term)
        assert terminal.process.wait(20) == 2
        assert b"TERM" in terminal.process.stderr.read()
        terminal.close()


def case_none(tsnap):
    done = subprocess.run([tsnap, "--top", "--replay", "small.csv"], cwd=FIXTURES, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=20, check=False)
    assert done.returncode == 2 and b"--top --text -n 1" in done.stderr and not done.stdout, done
    done = subprocess.run([tsnap, "--top", "--text", "--replay", "nowhere.csv"], cwd=FIXTURES,
                          capture_output=True, timeout=20, check=False)
    assert done.returncode == 1 and b"nowhere.csv" in done.stderr, done


def case_cut(tsnap):
    """Recordings that end in the middle of a line, and in the middle of a frame: whole lines and frames are shown, and the cut is reported."""
    with tempfile.TemporaryDirectory() as directory:
        recording = shutil.copytree(os.path.join(FIXTURES, "recording_1"), directory + "/recording")
        last = sorted(name for name in os.listdir(recording) if ".samples." in name)[-1]
        os.truncate(os.path.join(recording, last), os.path.getsize(os.path.join(recording, last)) - 7)
        for path, words in (("cut.csv", "Missed: 1 row cut off"), (recording, "scans whose samples are lost")):
            terminal = Terminal(tsnap, columns=160, recording=path)
            terminal.expect(words, "AVG_THR")
            terminal.type("\r")
            terminal.expect("state=")
            terminal.type("q")
            terminal.ended(0)
    terminal = Terminal(tsnap, recording="bad_number.csv")
    assert terminal.process.wait(20) == 1
    assert b"bad_number.csv: line 3" in terminal.process.stderr.read()
    terminal.drain()
    assert not terminal.output, "a screen was begun"
    terminal.close()


def case_views(tsnap):
    """A wrong line in a file of views is reported with its number."""
    with tempfile.TemporaryDirectory() as home:
        os.makedirs(home + "/.config/tsnap")
        for words, line in (("[a]\ncolumns = comn\n", b"line 2"), ("[a]\nfilter = state=D\n", b"no columns"),
                            ("columns = comm\n", b"line 1"), ("[a]\ncolumns = comm\nfilter = (\n", b"line 3")):
            with open(home + "/.config/tsnap/views", "w", encoding="utf-8") as file:
                file.write(words)
            done = subprocess.run([tsnap, "--top", "--text", "--replay", "small.csv"], cwd=FIXTURES,
                                  env={"PATH": os.environ["PATH"], "HOME": home}, capture_output=True, timeout=20,
                                  check=False)
            assert done.returncode == 2 and line in done.stderr and not done.stdout, done


def rights_drop():
    """Takes CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH from programs that are executed, so that root, too, is refused access to files."""
    for capability in (1, 2):
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def case_unreadable(tsnap):
    """Files of views and keys that can't be read: the first screen says so, and tsnap goes on."""
    with tempfile.TemporaryDirectory() as home:
        os.makedirs(home + "/.config/tsnap/views")
        for mode, file, reason in ((0o755, "views", "Is a directory"), (0, "views", "Permission denied")):
            os.chmod(home + "/.config", mode)
            wanted = "%s/.config/tsnap/%s: %s: tsnap goes on without this file" % (home, file, reason)
            done = subprocess.run([tsnap, "--top", "--text", "--replay", "small.csv"], cwd=FIXTURES, capture_output=True,
                                  env={"PATH": os.environ["PATH"], "HOME": home, "COLUMNS": "200"}, timeout=20,
                                  check=False, preexec_fn=rights_drop)
            assert done.returncode == 0 and wanted.encode() in done.stdout and not done.stderr, done
            assert b"AVG_THR" in done.stdout, done
            terminal = Terminal(tsnap, columns=200, own=rights_drop, HOME=home)
            terminal.expect(wanted)
            terminal.type("j")
            terminal.expect("Space exclude")
            terminal.type("q")
            terminal.ended(0)
        os.chmod(home + "/.config", 0o755)


def case_keys(tsnap):
    """A file of keys: the keys run other commands, the screen names them, and a wrong line is reported."""
    with tempfile.TemporaryDirectory() as home:
        os.makedirs(home + "/.config/tsnap")
        path = home + "/.config/tsnap/keys"
        for words, line in (("peak = p\n", b"no such command: peak"), ("\npeek = F13\n", b"line 2: no such key: F13"),
                            ("peek\n", b"line 1: expected"), ("peek = Esc\n", b"can't be bound"),
                            ("peek = a b c d e f g\n", b"more than 6")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(words)
            done = subprocess.run([tsnap, "--top", "--text", "--replay", "small.csv"], cwd=FIXTURES,
                                  env={"PATH": os.environ["PATH"], "HOME": home}, capture_output=True, timeout=20,
                                  check=False)
            assert done.returncode == 2 and line in done.stderr and not done.stdout, done
        with open(path, "w", encoding="utf-8") as file:
            file.write("# mine\nquit = Q F12\npeek = q\nhelp = F2\n")
        terminal = Terminal(tsnap, HOME=home)
        terminal.expect("F2 help  Q end")
        terminal.type("q")
        terminal.expect("In this row")
        terminal.type("\x1b")
        terminal.expect("Space exclude")
        terminal.type("\x1bOQ")  # F2
        terminal.expect("Help")
        terminal.type("peek")
        terminal.expect("what this row is made of")
        terminal.type("\x1b")
        terminal.expect("Space exclude")
        terminal.type("?")
        terminal.expect("does nothing: F2 lists all keys")
        terminal.type("\x1b[24~")
        terminal.ended(0)


def run(name, tsnap):
    """Runs a case; returns "", or why it failed."""
    try:
        globals()[name](tsnap)
        return ""
    except (AssertionError, subprocess.TimeoutExpired, OSError) as error:
        return repr(error)  # repr: an assertion may have no message


def main():
    tsnap, failed = os.path.abspath(sys.argv[1]), 0
    names = [name for name in globals() if name.startswith("case_") and (not sys.argv[2:] or name[5:] in sys.argv[2:])]
    # cases run in processes of their own, because each has a terminal; they mostly wait
    with concurrent.futures.ProcessPoolExecutor(3) as pool:
        for name, why in zip(names, pool.map(run, names, [tsnap] * len(names))):
            print("FAIL %s: %s" % (name[5:], why) if why else "ok   %s" % name[5:], flush=True)
            failed += bool(why)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
