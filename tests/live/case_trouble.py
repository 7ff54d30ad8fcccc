"""Bad input and trouble: one clear line, the right exit code, and nothing left behind."""
import contextlib
import fcntl
import os
import re
import resource
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading

import bpf
import truth
from harness import (SLOW, START_S, STOP_S, UNREADY, Skip, Tsnap, case, check, number, rows_of, through,
                     wait_until)

NOBODY = 65534
PIPE_BYTES = 1 << 16


def expect_error(tool, code, *words):
    """tsnap ends with this exit code, and one line that has these words."""
    got = tool.wait(START_S + STOP_S)
    check(got == code, "exit code %d, not %d: %s", got, code, tool.err)
    lines = tool.err.splitlines()
    check(len(lines) == 1, "%d lines on standard error: %s", len(lines), tool.err)
    for word in words:
        check(word in lines[0], "'%s' is not in: %s", word, lines[0])


@case
def wrong_options(ctx):
    """An unknown option, column or kernel feature, and bad numbers, give exit code 2 and one line."""
    for args, word in ((("--no-such-option",), "no-such-option"), (("-g", "comn"), "comm"), (("-F", "0"), "-F"),
                       (("-F", "1001"), "-F"), (("-d", "soon"), "soon"), (("-n", "-1"), "-1"),
                       (("--without", "no_such_feature"), "no_such_feature"), (("--max-threads", "x"), "x")):
        expect_error(ctx.plain(*args), 2, word)


def unused_pid():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@case
def no_such_process(ctx):
    """A pid that does not exist, and a pattern that matches nothing, give exit code 1 and one line."""
    pid = unused_pid()
    expect_error(ctx.plain("-p", pid), 1, str(pid))
    expect_error(ctx.plain("-p", "no-such-name-*"), 1, "no-such-name-*")


@case
def process_ends(ctx):
    """If the chosen process ends tsnap goes on to its own end, or ends quietly."""
    workload = ctx.workload("sleep", call="futex")
    tool = ctx.stream("-a", "-d", 2, "-p", workload["pid"], columns="state")
    tool.wait_scans(3)
    workload.process.stdin.close()
    workload.wait(STOP_S)
    rows = tool.finish(0)
    check(rows_of(rows, workload.tid), "it was never shown")
    check(len(tool.err.splitlines()) <= 1, "more than a line about it: %s", tool.err)


@case
def closed_pipe(ctx):
    """If the reader of the CSV goes away tsnap ends quietly, with exit code 0."""
    head = subprocess.Popen(["head", "-3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    tool = ctx.stream("-a", columns="state", stdout=head.stdin)
    head.stdin.close()
    head.stdin = None
    lines = head.communicate(timeout=START_S)[0].splitlines()
    check(len(lines) == 3, "head got %d lines", len(lines))
    got = tool.wait(STOP_S)
    check(got == 0 and not tool.err, "exit code %d: %s", got, tool.err)


def unread(fd):
    return struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))[0]


def read_some(fd, ended, bytes_s):
    while not ended.wait(0.1) and bytes_s:
        os.read(fd, bytes_s // 10)


@case
def term_without_reader(ctx):
    """SIGTERM ends tsnap while its rows are not read, or slowly, with exit code 1 and the reason."""
    ctx.workload("many", threads=1000)
    for bytes_s in (0, 1000):
        ours, theirs = os.pipe()
        ended = threading.Event()
        tool = ctx.stream("-a", "-F", 100, columns="state,cmdline,exe,cgroup", stdout=theirs)
        os.close(theirs)
        wait_until(lambda ours=ours: unread(ours) > PIPE_BYTES - 2 * 4096, START_S, "the pipe is full")
        reader = threading.Thread(target=read_some, args=(ours, ended, bytes_s))
        reader.start()
        tool.signal(signal.SIGTERM)
        got = tool.wait(STOP_S)
        ended.set()
        reader.join()
        os.close(ours)
        check(got == 1 and "did not take everything" in tool.err, "%d bytes a second: exit code %d: %s", bytes_s, got, tool.err)


@case(alone=True)
def full_disk(ctx):
    """If standard output is on a full disk there are exit code 1 and one line, for every format."""
    for args in (("--csv", "-a"), ("--json", "-a"), ("-a", "-d", "1"), ("--list",)):
        with open("/dev/full", "wb") as full:
            expect_error(ctx.plain(*args, stdout=full), 1, "No space left")


@case
def signals(ctx):
    """After SIGINT, SIGTERM and SIGHUP there are whole rows, or the report so far, and exit code 0."""
    workload = ctx.workload("spin")
    for number_ in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        tool = ctx.stream("-a", columns="comm,state,cmdline,exe")
        tool.wait_scans(3)
        tool.interrupt(number_)
        check(tool.out.endswith(b"\n"), "signal %d: the last row is cut", number_)
        report = ctx.plain("-i", 1, "-p", workload["pid"], "-g", "psn")
        wait_until(lambda: report.out.count(b"AVG_THR") == 1, START_S + 5, "the first report")
        switches = voluntary(report.pid)
        wait_until(lambda: voluntary(report.pid) > switches + 4, STOP_S, "some scans of the second report")
        report.signal(number_)
        report.finish_plain(0)
        check(report.out.count(b"spin") > 1 and report.out.count(b"AVG_THR") == 2, "signal %d: no report: %s", number_,
              report.out.decode())


def voluntary(pid):
    return truth.Thread(pid).switches[0]


class Remains:
    """BPF objects, kprobe events and files that a tsnap leaves."""

    def __init__(self):
        if os.geteuid():
            raise Skip("only root can list BPF programs")
        self.loaded = bpf.loaded()  # None: before 4.13 BPF objects can't be listed, so events and files alone are checked
        self.files, self.events = truth.our_temporary_files(), truth.kprobe_events()

    def owned_by(self, tool):
        """{("prog"|"map", id)} of the BPF objects that a running tsnap has loaded."""
        if self.loaded is None:
            return set()
        # before 4.18 descriptors don't show the ids: all objects that are new count as tsnap's
        owned = truth.owned_bpf([tool.pid]) or bpf.loaded() - self.loaded
        check({kind for kind, _ in owned} == {"prog", "map"}, "tsnap's BPF programs and maps: %s", owned)
        return owned

    def expect_none(self, owned):
        wait_until(lambda: not owned or not owned & bpf.loaded(), STOP_S, "the end of its BPF programs and maps")
        left = truth.our_temporary_files() - self.files
        check(not left, "left behind: %s", ", ".join(sorted(left)))
        left = truth.kprobe_events() - self.events
        check(not left, "left kprobe events: %s", left)


@case(alone=True)
def nothing_left(ctx):
    """After an orderly end no program, map, kprobe event or temporary file is left."""
    remains = Remains()
    tool = ctx.stream("-a", columns="state")
    tool.wait_scans(2)
    owned = remains.owned_by(tool)
    tool.interrupt()
    remains.expect_none(owned)


@case(alone=True)
def killed(ctx):
    """After kill -9 programs and maps go with tsnap, and the next start removes what is left of its files and kprobe events."""
    remains = Remains()
    tool = ctx.stream("-a", columns="state")
    tool.wait_scans(2)
    owned = remains.owned_by(tool)
    tool.signal(signal.SIGKILL)
    tool.wait(STOP_S)
    if "--without raw_tracepoint,tracepoint" in ctx.options.tsnap_args and not truth.has_kprobe_source():
        check(truth.kprobe_events() - remains.events, "kprobes are in use, and their lines are not in kprobe_events")
    ctx.rows("-a", seconds=1, columns="state")
    remains.expect_none(owned)


@case(alone=True)
def killed_at_start(ctx):
    """After kill -9 of a tsnap that compiles neither a child nor a file stays after the next start."""
    remains = Remains()
    for _ in range(3):
        tool = ctx.stream("-a", columns="state")
        family = wait_until(lambda: truth.children(tool.pid) or tool.rows() or None, START_S, "the compile child")
        tool.signal(signal.SIGKILL)
        tool.wait(STOP_S)
        if isinstance(family, set):
            wait_until(lambda: not any(os.path.exists("/proc/%d" % pid) for pid in family), STOP_S,
                       "the end of the compile child")
    tool = ctx.stream("-a", columns="state")
    tool.wait_scans(1)
    owned = remains.owned_by(tool)
    tool.interrupt()
    remains.expect_none(owned)


@case
def small_memory_limit(ctx):
    """tsnap raises an RLIMIT_MEMLOCK of 64 KB, as it is before 5.11."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
    tool = ctx.stream("-a", "-n", 2, columns="state", preexec_fn=limit)
    check(tool.finish(0, START_S + STOP_S), "no rows")


def as_nobody():
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


@case
def not_root(ctx):
    """Without privileges --source bpf ends with exit code 77 and one line that says so; --check and --list still work."""
    nobody = ctx.reachable()
    expect_error(nobody.plain("--csv", "-a", "--source", "bpf", preexec_fn=as_nobody, cwd="/"), UNREADY, "root")
    nobody.plain("--list", preexec_fn=as_nobody, cwd="/").finish_plain(0)
    checked = nobody.plain("--check", preexec_fn=as_nobody, cwd="/")
    checked.finish_plain(UNREADY)
    check(b"root" in checked.out, "--check does not say what is missing: %s", checked.out.decode())


@case
def no_capabilities(ctx):
    """As root without capabilities --source bpf ends with exit code 77 and one line."""
    if not shutil.which("setpriv"):
        raise Skip("setpriv is not installed")
    bare = ctx.but(tsnap=shutil.which("setpriv"), tsnap_args="")
    expect_error(bare.plain("--bounding-set=-all", "--inh-caps=-all", ctx.options.tsnap, "--csv", "-a", "--source", "bpf"),
                 UNREADY)


@case
def check_as_root(ctx):
    """--check has exit code 0, says first whether tsnap works here, then what was chosen."""
    tool = ctx.plain("--check")
    tool.finish_plain(0)
    text = tool.out.decode()
    check(re.match(r"tsnap works (fully here|here, but lacks: \S.*)\n\nHost\n", text), "no verdict: %s", text[:200])
    for word in (os.uname().release, os.uname().machine, "sched_switch"):
        check(word in text, "--check does not tell %s", word)
    check(not tool.err, "on standard error: %s", tool.err)


@case
def check_of_what_is_missing(ctx):
    """--check has exit code 0 where only some options can't run, and names them in its first line; a report runs there."""
    without = ctx.without("thread_slots")
    tool = ctx.plain("--check", *without)
    tool.finish_plain(0, START_S + STOP_S)
    lacking = re.match(r"tsnap works here, but lacks: (.*, )?--critical-path\b", tool.out.decode())
    check(lacking, "--critical-path is not said to be missing: %s", tool.out.decode())
    check(b"maps that can be mapped" in tool.out, "the reason is missing: %s", tool.out.decode())
    ctx.plain("-a", "-n", 1, "-d", 1, *without).finish_plain(0, START_S + STOP_S)
    expect_error(ctx.plain("--critical-path", os.getpid(), *without), UNREADY, "--critical-path")


@case
def two_at_once(ctx):
    """Two tsnaps at once see the same."""
    workload = ctx.workload("sleep", call="pipe_read")
    tools = [ctx.stream("-a", "-p", workload["pid"], columns="state,syscall") for _ in range(2)]
    for tool in tools:
        tool.wait_scans(5)
    for tool in tools:
        states = {(row["state"], row["syscall"]) for row in rows_of(tool.interrupt(), workload.tid)}
        check(states == {("S", "read")}, "%s", states)


@case
def taken_tracepoint(ctx):
    """Before 4.15, when a tracepoint takes one program, a kind of --trace that has no other probe is refused while another tsnap samples,
    with that as the reason."""
    if truth.release() >= (4, 15):
        raise Skip("a tracepoint takes many programs here")
    tool = ctx.stream()
    tool.wait_scans(2)
    expect_error(ctx.plain("--csv", "--trace", "exec", "-d", 1), 77, "another program is attached to it")
    tool.interrupt()
    ctx.plain("--csv", "--trace", "exec", "-d", 1).finish_plain()


@case
def signals_early(ctx):
    """A signal before the first scan ends each mode with exit code 0 and the words that nothing was sampled yet."""
    for args in ((), ("--csv",), ("--report", "--json"), ("--folded",), ("-o", os.path.join(ctx.temporary(), "recording")),
                 ("--top", "--text")):
        tool = ctx.plain(*args)
        tool.pid  # the process that samples is there
        tool.signal(signal.SIGINT)
        tool.finish_plain(0)
        check("nothing was sampled yet" in tool.err, "%s: said %r, printed %r", args, tool.err, tool.out[:300])


@case
def slow_reader(ctx):
    """If a reader stops for some time no row is cut."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe:
        tool = ctx.stream("-a", "-F", 100, columns="comm,cmdline", stdout=writing)
        os.close(writing)
        header_line = pipe.readline()
        wait_until(lambda: truth.Thread(tool.pid).nr is not None and blocked_in_write(tool.pid), START_S,
                   "the pipe to fill")
        tool.signal(signal.SIGINT)
        rest = pipe.read()
    tool.wait(STOP_S)
    commas = header_line.count(b",")
    check(rest.endswith(b"\n"), "the last row is cut: %r, exit code %s" % (rest[-200:], tool.process.returncode))
    check(all(line.count(b",") >= commas for line in rest.splitlines()), "a row is cut")


def blocked_in_write(pid):
    call = truth.read("/proc/%d/syscall" % pid) or ""
    write = "64" if os.uname().machine == "aarch64" else "1"
    return call.split()[:2] == [write, "0x1"] and truth.Thread(pid).letter == "S"


FACTS = ("typed_tracepoint", "raw_tracepoint", "raw_tracepoint,tracepoint", "run_on_cpu", "run_on_cpu,perf_clock", "map_batch", "read_into_map",
         "probe_read_kernel", "kprobe", "kernel-4.18", "kernel-5.4")


def same_without(ctx, facts, *types):
    """Workloads that need all of the probes are shown the same without some kernel features."""
    blocked = ctx.workloads([("sleep", {"call": "pipe_read"}), ("vfork", {}), ("sleep", {"call": "futex"})])
    busy = ctx.workload("spin2")
    game = ctx.workload("pingpong")
    everyone = blocked + [busy, game]
    tool = ctx.stream("-a", "--without", facts, *types, "-p", ",".join(w["pid"] for w in everyone),
                      columns="state,syscall,filename,waker_tid,cpu_us,runq_us")
    tool.wait_scans(40)
    # where others want that CPU, too, the spinner is rarely on it
    wait_until(lambda: {row["state"] for row in rows_of(tool.rows(), busy.tid)} >= {"ON", "RQ"}, 20 * SLOW,
               "without %s: a spinner on a shared CPU, ON and RQ" % facts)
    rows = tool.interrupt()
    for workload in blocked:
        seen = {(row["state"], row["syscall"], row["filename"]) for row in rows_of(rows, workload.tid)}
        expected = {(workload["state"], workload["syscall"], workload.ready.get("file", ""))}
        check(seen == expected, "without %s: %s, not %s", facts, seen, expected)
    mine = rows_of(rows, busy.tid)
    states = {row["state"] for row in mine}
    check(states == {"ON", "RQ"}, "without %s: a spinner on a shared CPU is %s", facts, states)
    told = sum(number(row, "cpu_us") + number(row, "runq_us") for row in mine[1:])
    time = sum(number(row, "weight_us") for row in mine[1:])
    check(abs(told - time) <= 0.1 * time, "without %s: %d us of a spinner's %d us are told", facts, told, time)
    woken = [row for row in rows_of(rows, game.tid)[1:] if row["waker_tid"] == game["tid2"]]
    check(len(woken) >= 0.9 * len(rows_of(rows, game.tid)[1:]), "without %s: wakers are wrong", facts)
    for workload in everyone:
        workload.end()
        ctx.started.remove(workload)


@case(thorough=True, long=True)
def without_facts(ctx):
    """With the features of this kernel taken away, one set after the other, tsnap shows the same."""
    if ctx.options.tsnap_args:
        raise Skip("--tsnap-args chooses the way")
    path = os.path.join(ctx.temporary(), "offsets")
    ctx.plain("--write-offsets", path).finish_plain()
    done = 0
    for facts in FACTS:
        types = ("--offsets", path) if facts.startswith("kernel-") else ()  # these take the BTF away, too
        if ctx.plain("--check", "--without", facts, *types).wait(START_S + STOP_S) == UNREADY:
            continue  # this host has no other way to do without the feature
        same_without(ctx, facts, *types)
        done += 1
    check(done >= 5, "only %d of the facts have another way here", done)


@case
def without_any_way(ctx):
    """Without any way to see switches --source bpf ends with exit code 77 and one line."""
    expect_error(ctx.plain("--csv", "-a", "--source", "bpf", "--without", "raw_tracepoint,tracepoint,kprobe"), UNREADY)


@case
def types_from_files(ctx):
    """--offsets with a file of --write-offsets, and --btf, give the same as neither. Offsets of another kernel are refused."""
    path = os.path.join(ctx.temporary(), "offsets")
    workload = ctx.workload("sleep", call="pipe_read")
    ctx.plain("--write-offsets", path).finish_plain()
    files = [("--offsets", path)]
    if os.path.exists("/sys/kernel/btf/vmlinux"):
        files.append(("--btf", "/sys/kernel/btf/vmlinux"))
    for option, file in files:
        rows = rows_of(ctx.rows(option, file, "-a", "-t", workload["tid"], seconds=0.5, columns="state,syscall,filename"),
                       workload.tid)
        check(rows, "%s: no rows", option)
        seen = {(row["state"], row["syscall"], row["filename"]) for row in rows}
        check(seen == {("S", "read", workload.ready["file"])}, "%s: %s", option, seen)
    text = truth.read(path)
    with open(path, "w") as file:
        file.write(text.replace("release ", "release 1."))
    expect_refused(ctx.plain("--csv", "-n", "1", "--offsets", path), path)


@case
def unreadable_types(ctx):
    """For a BTF file that is none, that is missing, or that is cut, there are one line and exit code 1 or 77, and no crash."""
    directory = ctx.temporary()
    hostile = {"empty": b"", "text": b"this is no BTF\n" * 100, "cut": read_bytes("/sys/kernel/btf/vmlinux")[:5000],
               "lengths": b"\x9f\xeb\x01\x00" + b"\xff" * 4096}
    for name, content in hostile.items():
        path = os.path.join(directory, name)
        with open(path, "wb") as file:
            file.write(content)
        expect_refused(ctx.plain("--csv", "-n", "1", "--btf", path), path)
    expect_refused(ctx.plain("--csv", "-n", "1", "--btf", directory + "/missing"), directory + "/missing")


# Rows for which no other child is forked than the one that compiles.
WITHOUT_PARSERS = ("--csv", "-n", "1", "-a", "-g", "tid")


@case
def compile_child_killed(ctx):
    """If the child that compiles is killed, as for lack of memory, there are one line and exit code 1."""
    for _ in range(5):  # the child may be done before it is killed: then tsnap samples
        tool = ctx.plain(*WITHOUT_PARSERS)
        children = "/proc/%d/task/%d/children" % (tool.pid, tool.pid)
        child = wait_until(lambda: (truth.read(children) or "").split() or tool.code is not None, START_S, "the child")
        if child is not True:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child[0]), signal.SIGKILL)
        code = tool.wait(START_S)
        if code:
            break
    check(code == 1, "exit code %d: %s", code, tool.err)
    check(len(tool.err.splitlines()) == 1 and "killed" in tool.err, "not one line that tells: %s", tool.err)


def with_fault(ctx, fault, *args):
    """A tsnap under strace, which lets one system call fail in each of its processes; fault is CALL:error=NAME:when=N."""
    strace = shutil.which("strace")
    if not strace:
        raise Skip("strace is not installed")
    tool = Tsnap([strace, "-f", "-o", "/dev/null", "-e", "trace=" + fault.split(":")[0], "-e", "inject=" + fault,
                  ctx.options.tsnap, *shlex.split(ctx.options.tsnap_args), *args])
    ctx.started.append(tool)
    return tool


@case
def small_limits(ctx):
    """A small stack is made larger, or refused; too few descriptors are reported as such; without a standard output tsnap fails."""
    def limited(kind, most):
        return lambda: resource.setrlimit(kind, (most, most))
    tool = ctx.stream("-a", "-n", 2, columns="state,stack",
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (65536, resource.RLIM_INFINITY)))
    check(tool.finish(0, START_S + STOP_S), "no rows with a stack of 64 KB")
    # without CAP_SYS_RESOURCE tsnap can't raise the hard limit
    tool = ctx.plain("--csv", "-n", "1", preexec_fn=limited(resource.RLIMIT_STACK, 65536))
    if tool.wait(START_S + STOP_S):
        expect_error(tool, 1, "ulimit -s")
    for files in range(8, 60, 4):  # different descriptors are lacking, up to a limit at which none is
        tool = ctx.plain("--csv", "-n", "1", preexec_fn=limited(resource.RLIMIT_NOFILE, files))
        if not tool.wait(START_S + STOP_S):
            break
        expect_error(tool, 1, "only open %d files: raise ulimit -n" % files)
    check(files > 8, "no limit is too low")
    tool = Tsnap(["sh", "-c", 'exec "$@" >&-', "sh", ctx.options.tsnap, *shlex.split(ctx.options.tsnap_args), "--csv", "-a", "-n", "1"])
    ctx.started.append(tool)
    expect_error(tool, 1, "standard output", "Bad file descriptor")


@case
def foreign_path(ctx):
    """modprobe and tar are not looked for in the caller's PATH."""
    directory = ctx.temporary()
    for name in ("modprobe", "tar", "xz"):
        with open(os.path.join(directory, name), "w") as file:
            file.write("#!/bin/sh\ntouch %s/ran\nexit 1\n" % directory)
        os.chmod(os.path.join(directory, name), 0o755)
    tool = ctx.plain("--csv", "-n", "1", "--kernel-types", "kheaders", env=dict(os.environ, PATH=directory + ":" + os.environ["PATH"]))
    tool.wait(START_S + STOP_S)
    check(not os.path.exists(directory + "/ran"), "a program of %s ran", directory)


@case
def full_temporary(ctx):
    """If there is no space for the temporary files tsnap says that."""
    words = "mount -t tmpfs -o size=1M,nr_inodes=4 none /run && mount -t tmpfs -o nr_inodes=1 none /tmp && " \
            "mount -t tmpfs -o nr_inodes=1 none /dev/shm && exec \"$0\" \"$@\""
    tool = through(ctx.reachable(), "unshare", "--mount", "sh", "-c", words, workload=False).plain("--csv", "-n", "1")
    if tool.wait(START_S) == 1 and "mount" in tool.err:
        raise Skip(tool.err)
    expect_error(tool, 1, "No space left")


@case
def compile_child_unheard(ctx):
    """If a message of the child that compiles can't be received, or sent, at any point, there are one line and exit code 1."""
    for when in (1, 4, 12):
        for error, words in (("ENOMEM", "Cannot allocate memory"), ("EMFILE", "ulimit -n")):
            expect_error(with_fault(ctx, "recvmsg:error=%s:when=%d" % (error, when), *WITHOUT_PARSERS), 1, "compile child", words)
        expect_error(with_fault(ctx, "sendmsg:error=ENOMEM:when=%d" % when, *WITHOUT_PARSERS), 1, "compile child",
                     "Cannot allocate memory")


@case(refusal=True)
def no_kernel_types(ctx):
    """Without BTF, headers and kheaders --source bpf has one line that names the package to install; exit code 77."""
    release = os.uname().release
    for path in ("/sys/kernel/btf/vmlinux", "/sys/kernel/kheaders.tar.xz", "/lib/modules/%s/build/include" % release,
                 "/lib/modules/%s/source/include" % release):
        if os.path.exists(path):
            raise Skip("this host has %s" % path)
    tool = ctx.plain("--csv", "-n", "1", "--source", "bpf")
    code = tool.wait(START_S)
    check(code == UNREADY, "exit code %d: %s", code, tool.err)
    check(len(tool.err.splitlines()) == 1, "not one line: %s", tool.err)
    check("linux-headers-" + release in tool.err, "the package is not named: %s", tool.err)


def read_bytes(path):
    return truth.read(path, "rb") or b""


def expect_refused(tool, path):
    code = tool.wait(START_S)
    check(code in (1, UNREADY), "%s: exit code %d: %s", path, code, tool.err)
    check(len(tool.err.splitlines()) == 1, "%s: not one line: %s", path, tool.err)
