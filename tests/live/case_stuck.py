"""Processes that can't be read without waiting for ever: tsnap shows the others, ends in time, and says which ones it left out."""
import datetime
import os
import re
import resource
import signal
import subprocess
import time

import truth
from case_start import Terminal, on_terminal
from case_top import Screen
from harness import SLOW, START_S, STOP_S, Skip, Tsnap, case, check, children_of, name_of, rows_of, scans_of, settle, timestamp_s, wait_until

FORMS = {"stuck_stack": (("-a", "--stacks"), ("-a", "-G", "ufunc,exe")),
         "stuck_maps": ((), ("-a", "--stacks"), ("-G", "waits_on,cmdline")),
         "stuck_exec": ((), ("-a", "--stacks"), ("-G", "exe")),
         "stuck_epoll": (("-v", "-a", "-g", "comm,waits_on"), ("-v", "-a", "-G", "waits_on")),
         "stuck_file": (("-a", "--stacks"), ("-a", "-G", "exe,ufunc"))}
REASONS = {"stuck_maps": "its memory map is locked", "stuck_exec": "an exec that has not ended"}
LOST_S = 6  # time that reading a process that never answers, and reading all others, may cost


def told_as_left_out(words, stuck, name):
    if name == "stuck_file":
        check("/mnt/cached (a FUSE server that does not answer)" in words, "not told: %s", words)
        return
    if name == "stuck_stack":
        check("user stacks cut off at memory that is not there, or not in RAM" in words, "not told: %s", words)
        check("%s (" % stuck["pid"] not in words, "the process was left out: %s", words)
        return
    if name == "stuck_epoll":
        check("skipped because the process was locked" in words and "replaced" not in words, "not told, or a worker was replaced: %s", words)
        return
    check("%d (%s)" % (stuck["pid"] and int(stuck["pid"]), REASONS[name]) in words, "not told: %s", words)


def time_of(field):
    return datetime.datetime.fromisoformat(field.strip('"').replace("Z", "+00:00")).timestamp()


def beside(ctx, name):
    """Several forms of tsnap at once show a thread that spins and name a process that can't be read as left out, in time."""
    stuck, spin = ctx.workload(name), ctx.workload("spin")
    start = time.monotonic()
    reports = [(form, ctx.plain(*form, "-d", 3)) for form in FORMS[name]]
    tool = ctx.stream("-a", "-d", 6, columns="state,pid,%s" % FORMS[name][-1][-1])
    for form, report in reports:
        report.finish_plain(0, START_S + STOP_S)
        took = time.monotonic() - start
        check(took < 3 + (LOST_S + 2) * SLOW, "%s: -d 3 took %.1f s", form, took)
        told_as_left_out(report.out.decode(), stuck, name)
        check(b"spin" in report.out, "%s: the thread that spins is not there: %s", form, report.out.decode())
    rows = tool.finish(0, START_S + STOP_S + LOST_S * SLOW)
    seen = [row for row in rows_of(rows, spin.tid) if row["state"] in ("ON", "RQ")]
    check(len(seen) > 20, "%d samples of the thread that spins", len(seen))
    check(len([line for line in tool.out.splitlines() if line.startswith(b"timestamp,")]) == 1, "more than one line of names")
    told_as_left_out(tool.err, stuck, name)


@case(alone=True, thorough=True)
def stuck_stack(ctx):
    """tsnap leaves out a process with a stack pointer in a page of a FUSE server that does not answer."""
    beside(ctx, "stuck_stack")


@case(alone=True)
def stuck_maps(ctx):
    """tsnap names a process whose memory map one of its threads has locked for ever, and reads nothing that needs the map."""
    beside(ctx, "stuck_maps")


@case(alone=True)
def stuck_exec(ctx):
    """tsnap leaves out a process in an exec that does not end; otherwise the form without options can't begin while it is there."""
    beside(ctx, "stuck_exec")


@case(alone=True)
def stuck_epoll(ctx):
    """An epoll set that one of the process's threads has locked for ever costs what its other threads wait for, and no worker."""
    beside(ctx, "stuck_epoll")


@case(alone=True, thorough=True)
def stuck_file(ctx):
    """With a program in a file of a FUSE server that died what is known without the file is shown; a process of tsnap that was given up
    holds neither a pipe nor a recording."""
    beside(ctx, "stuck_file")
    start, directory = time.monotonic(), ctx.temporary()
    piped = subprocess.run([ctx.options.tsnap, "-a", "--stacks", "-d", "2"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    took = time.monotonic() - start
    check(piped.returncode == 0 and b"AVG_THR" in piped.stdout, "exit code %d: %s", piped.returncode, piped.stdout.decode())
    check(took < 2 + (LOST_S + 2) * SLOW, "the pipe's end came after %.1f s", took)
    recorder = ctx.plain("-a", "-G", "ufunc", "-d", 3, "-o", directory)
    recorder.finish_plain(0, START_S + STOP_S + LOST_S * SLOW)
    check([name for name in os.listdir(directory) if ".samples." in name], "nothing was recorded: %s", recorder.err)


@case(alone=True)
def stuck_users(ctx):
    """With a user database that does not answer (a FIFO in place of /etc/passwd) users are numbers, and tsnap ends in time."""
    spin, fifo = ctx.workload("spin"), os.path.join(ctx.temporary(), "passwd")
    os.mkfifo(fifo)
    start = time.monotonic()
    report = subprocess.run(["unshare", "--mount", "sh", "-c", 'mount --bind "$1" /etc/passwd && exec "$2" -a -d 3 -p "$3"', "sh", fifo, ctx.options.tsnap,
                             "%d" % spin.tgid], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    took = time.monotonic() - start
    out = report.stdout.decode()
    check(report.returncode == 0 and took < 3 + (LOST_S + 4) * SLOW, "exit code %d after %.1f s: %s", report.returncode, took, report.stderr.decode())
    check(re.search(r" (ON|RQ) +0 +spin ", out) and "user" in out.rsplit("Missed", 1)[-1], "no line of user 0, or nothing said: %s", out)


GAP = """mount --make-rprivate / || exit 1
"$@" -a -F 20 -d 14 & tool=$!
sleep 5; mount --bind "$FIFO" /etc/passwd; python3 -c 'import os; os.setuid(100000 + os.getpid()); os.execlp("sleep", "sleep", "12")' >/dev/null 2>&1 &
wait $tool"""


def with_gap(ctx, *words):
    """Runs tsnap for 14 s, in which its worker is replaced, as a name service stops to answer. Returns what it prints."""
    fifo = os.path.join(ctx.temporary(), "passwd")
    os.mkfifo(fifo)
    done = subprocess.run(["unshare", "--mount", "sh", "-c", GAP, "sh", ctx.options.tsnap, *words], env=dict(os.environ, FIFO=fifo),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)
    check(done.returncode == 0, "exit code %d: %s", done.returncode, done.stderr.decode())
    return (done.stdout + done.stderr).decode()


@case
def gap_of_worker(ctx):
    """When a worker is replaced, a recording, its replay and reports tell the scans that are missing."""
    directory = ctx.temporary()
    for words in (("-o", directory), ("-i", "3")):
        said = re.sub(r"\s+", " ", with_gap(ctx, *words, "-G", "user"))
        missed = re.search(r"(\d+) scans? missed while the process that samples was replaced", said)
        check(missed and int(missed.group(1)) >= 20, "not told: %s", said[-300:])
    rows = []
    for name in sorted(os.listdir(directory)):
        if ".scans." in name:
            text = subprocess.run(["zstd", "-dc", os.path.join(directory, name)], stdout=subprocess.PIPE, check=True).stdout.decode()
            rows += [line.split(",") for line in text.splitlines()[1:]]
    times = [time_of(row[0]) for row in rows]
    gaps = [(after - before, int(row[4])) for before, after, row in zip(times, times[1:], rows[1:]) if int(row[4])]
    check(len(gaps) == 1, "rows with missing scans: %s", gaps)
    check(abs(gaps[0][0] * 20 - 1 - gaps[0][1]) <= 2, "%.2f s without rows, %d scans missing", *gaps[0])
    replay = ctx.plain("--replay", directory, "-g", "psn")
    replay.finish_plain(0, STOP_S)
    check("%d scans not recorded" % gaps[0][1] in re.sub(r"\s+", " ", replay.out.decode()), "not told: %s", replay.out.decode())


@case(alone=True)
def stuck_and_stopped(ctx):
    """SIGTERM ends tsnap within a second, also while reading a process does not end; nothing of tsnap is left."""
    ctx.workload("stuck_exec")
    for delay in (0.2, 0.6, 1.0):
        tool = ctx.plain("-d", 60)
        time.sleep(delay)
        start = time.monotonic()
        tool.signal(signal.SIGTERM)
        tool.wait(STOP_S)
        took = time.monotonic() - start
        check(took < 1.5 * SLOW, "%.1f s after SIGTERM at %.1f s", took, delay)
    killed = ctx.plain("-d", 60)
    worker = wait_until(lambda: killed.pid != killed.process.pid and killed.pid, START_S, "a worker")
    killed.signal(signal.SIGKILL)
    killed.wait(STOP_S)
    wait_until(lambda: not os.path.exists("/proc/%d" % worker), STOP_S, "the worker's end")


def waits_for_server(pid):
    with open("/proc/%d/wchan" % pid, encoding="ascii") as file:
        return "request_wait_answer" in file.read()


@case(alone=True)
def stuck_and_killed(ctx):
    """A worker that is killed while a look of it does not end is reported as killed, and no other one goes on."""
    ctx.workload("stuck_file")
    tool = ctx.plain("-a", "-G", "ufunc", "-d", 60)
    wait_until(lambda: waits_for_server(tool.pid), START_S, "a look that does not end")
    os.kill(tool.pid, signal.SIGKILL)
    check(tool.wait(STOP_S) == -signal.SIGKILL, "exit code %s: %s", tool.code, tool.err)
    check("what it had not written is lost: by signal 9" in tool.err, "not reported: %s", tool.err)


@case(alone=True)
def stuck_user_mounts(ctx):
    """Programs in file systems that any user can mount, whose servers stop to answer, one after the other: the first costs a worker, the
    others cost their own names."""
    tool, spin = ctx.plain("-v", "-i", 2, "-a", "--stacks"), ctx.workload("spin")
    wait_until(lambda: scans_due(tool.out.decode()), START_S, "a report")
    for _ in range(3):
        ctx.workload("stuck_overlay")
        seen = len(scans_due(tool.out.decode()))
        wait_until(lambda seen=seen: len(scans_due(tool.out.decode())) > seen + 1, START_S, "two reports")
    tool.signal(signal.SIGINT)
    tool.finish_plain(0, STOP_S)
    out = tool.out.decode()
    check(out.count("was replaced by another") == 1, "workers were replaced: %s", out)
    check("hangs: all mounts of user namespaces (a FUSE server" in out, "not told: %s", out)
    check("spin" in out.rsplit("scans in", 1)[0].rsplit("scans in", 1)[1], "the thread that spins is not there: %s", out)
    spin.end()


STREAM_STEP_S = 2
STREAM_ALL_S = 1800  # length of a stream with --all
HISTORY_S = 600
CROWD, CROWD_ALL = 120, 300
TICK_S = 0.05
FLAT_BYTES = 8 << 20
HISTORY_BYTES = 64 << 20  # the limit of a screen's history
SCREEN_BYTES = 128 << 20  # 64 MB of history at most, and what a report takes on a host with many short processes


class Standing:
    """A tsnap that must go on with the worker that it began with: it lost nothing to processes that are stuck."""

    def __init__(self, tool):
        self.tool, self.keeper = tool, tool.process.pid
        # before tsnap there may be a shell, and its children
        self.worker = wait_until(lambda: [pid for pid in children_of(self.keeper) if name_of(pid) == "tsnap"], START_S, "a worker")[0]

    def expect(self, words):
        check(self.tool.process.poll() is None, "%s: it ended: %s", words, self.tool.err)
        check(self.worker in children_of(self.keeper), "%s: its worker was replaced: %s", words, self.tool.err)

    def bytes(self):
        return truth.memory_bytes([self.worker], "RssAnon")


def stuck_one_by_one(ctx, screen, seconds):
    """Processes of which each is stuck for STREAM_STEP_S. The screen is drawn beside each of them."""
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        one, screen.output = ctx.workload("stuck_maps"), b""
        screen.read(STREAM_STEP_S)
        one.end()
        ctx.started.remove(one)
        count += 1
        check(screen.output, "nothing was drawn beside stuck process %d", count)
    return count


def scans_due(report):
    """The scans and seconds of each interval of a report, and its words."""
    found = re.findall(r"^(\d+) scans in ([\d.]+) s, ", report, re.M)
    return [(int(scans), float(seconds)) for scans, seconds in found]


def history_of(screen):
    """Scans and seconds of the history of a screen, and how many scans it tells as missed."""
    text = screen.redrawn()
    hours, minutes, seconds, scans = map(int, re.search(r"History: (\d+):(\d+):(\d+), (\d+) scans", text).groups())
    return scans, 3600 * hours + 60 * minutes + seconds, sum(map(int, re.findall(r"(\d+) late scans?", text)))


@case(alone=True)
def stuck_stream(ctx):
    """One process after the other with a locked memory map, beside a report every 5 s, a recorder with stacks and a screen: each report is
    printed, no scan is missed because of them, no worker is replaced, and resident memory is flat."""
    seconds, directory = STREAM_ALL_S if ctx.options.all else 60, ctx.temporary()
    reports = ctx.plain("-i", 5, "-a", "-g", "cmdline")
    recorder = ctx.plain("-o", directory, "-F", 10, "--flush", 1, "-a", "-G", "ustack,kstack")
    screen = Screen(ctx, "-a", "-g", "cmdline", columns=900)
    screen.wait("LIVE")
    standing = [Standing(reports), Standing(recorder), Standing(screen)]
    wait_until(lambda: [name for name in os.listdir(directory) if ".samples." in name], START_S, "a recording")
    began, measured = time.monotonic(), []
    for _ in range(4):
        count = stuck_one_by_one(ctx, screen, seconds / 4)
        for one in standing:
            one.expect("after %d stuck processes" % count)
        measured.append([one.bytes() for one in standing])
        print("# %.0f s, %d stuck processes more: %s bytes" % (time.monotonic() - began, count, " ".join(map(str, measured[-1]))), flush=True)
    for before, after in list(zip(measured[1], measured[3]))[:2]:
        check(after - before < FLAT_BYTES, "%d bytes, %d before", after, before)
    # after its first ten minutes a screen's history grows by a scan a second, up to its limit
    check(measured[3][2] < SCREEN_BYTES, "the screen takes %d bytes", measured[3][2])
    took = time.monotonic() - began
    shown = history_of(screen)
    screen.type("q")
    check(screen.process.wait(STOP_S) == 0, "q: exit code %s", screen.process.returncode)
    for tool in (reports, recorder):
        tool.signal(signal.SIGINT)
        tool.finish_plain(0, STOP_S)
    intervals = scans_due(reports.out.decode())
    check(len(intervals) >= took // 5, "%d reports in %.1f s", len(intervals), took)
    waited = sum(map(int, re.findall(r"(\d+) late scans \(", reports.out.decode())))
    of_reports = sum(scans for scans, _ in intervals), sum(length for _, length in intervals), waited
    print("# reports: %d scans in %.1f s, %d late; screen: %d in %.1f s, %d late" % (of_reports + shown))
    old_s = max(0, shown[1] - HISTORY_S)  # the screen keeps one scan a second of what is older
    kept = [(of_reports, 0)]
    if measured[3][2] < HISTORY_BYTES:  # else it had to thin out more of them: as beside the tests of others
        kept.append((shown, 19 * old_s))
    for (scans, length, late), missing in kept:
        check(scans + late + missing >= 0.97 * length * 20 - 2, "%d scans in %.1f s, %d waited for a CPU", scans, length, late)
    check("(its memory map is locked)" in reports.out.decode(), "not told: %s", reports.out.decode())


stuck_stream.limit_s = STREAM_ALL_S + 300


@case(alone=True)
def stuck_crowd(ctx):
    """Many processes whose memory maps become locked at the same time cost no scan, no worker, and no memory: beside rows, a recorder with
    stacks and a screen."""
    tool, directory, count = ctx.stream("-a", columns="cmdline,state"), ctx.temporary(), CROWD_ALL if ctx.options.all else CROWD
    recorder = ctx.plain("-o", directory, "-F", 10, "--flush", 1, "-a", "-G", "ustack,kstack")
    screen = Screen(ctx, "-a", "-g", "cmdline")
    screen.wait("LIVE")
    wait_until(lambda: [name for name in os.listdir(directory) if ".samples." in name], START_S, "a recording")
    standing = [Standing(one) for one in (tool, recorder, screen)]
    tool.wait_scans(20)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    crowd = ctx.workloads([("stuck_maps", {})] * count)
    measured = []
    for _ in range(2):
        tool.wait_scans(40 + len(tool.scans()))
        screen.read(0.1)
        measured.append([one.bytes() for one in standing])
    for one in standing:
        one.expect("beside %d stuck processes" % count)
    print("# %d stuck processes: %s bytes" % (count, measured))
    for before, after in list(zip(*measured))[:2]:  # a screen's history grows for ten minutes
        check(after - before < FLAT_BYTES, "%d bytes, %d before", after, before)
    for one in crowd:
        one.process.stdin.close()
    rows = tool.interrupt()
    times = [timestamp_s(scan) for scan, _ in scans_of(rows)]
    gaps = [after - before for before, after in zip(times, times[1:])]
    missed = tool.missed("late scans") + tool.missed("when tsnap got a CPU")
    print("# largest gap %.2f s of %d scans; %d scans waited for a CPU" % (max(gaps), len(times), missed), flush=True)
    check(max(gaps) < (2 + missed) * 2 * TICK_S * SLOW, "a gap of %.2f s; %d scans waited for a CPU", max(gaps), missed)
    last = scans_of(rows)[-1][1]
    check(sum(1 for row in last if row["cmdline"]) > 5, "other processes have no command line: %s", tool.err)
    check("skipped because the process was locked" in tool.err, "not told: %s", tool.err)


@case(alone=True)
def stuck_and_reused(ctx):
    """An innocent process that gets the pid of one that was stuck is looked at; there is a restart if the kernel is not asked (before 5.10)."""
    last = "/proc/sys/kernel/ns_last_pid"
    if not os.path.exists(last):
        raise Skip("there is no %s" % last)
    tool = ctx.stream("-a", columns="cmdline")
    tool.wait_scans(20)
    stuck = ctx.workload("stuck_maps")
    pid = int(stuck["pid"])
    tool.wait_scans(len(tool.scans()) + 10)
    stuck.end()
    wait_until(lambda: not os.path.exists("/proc/%d" % pid), STOP_S, "the end of the stuck process")
    for _ in range(200):
        with open(last, "w", encoding="ascii") as file:
            file.write("%d" % (pid - 1))
        innocent = subprocess.Popen(["sleep", "777"])
        ctx.at_end(innocent.kill)
        if innocent.pid == pid:
            break
        innocent.kill()
        innocent.wait()
    check(innocent.pid == pid, "its pid is %d, not %d", innocent.pid, pid)
    tool.wait_scans(3, lambda row: row["pid"] == str(pid) and row["cmdline"] == "sleep 777")
    tool.interrupt()


def without_requests(ctx, *args):
    """Starts tsnap where the kernel shows it no types: nothing tells whether a process is locked."""
    offsets = os.path.join(ctx.temporary(), "offsets")
    subprocess.run([ctx.options.tsnap, "--write-offsets", offsets], check=True, stdout=subprocess.DEVNULL)
    tool = Tsnap(["unshare", "--mount", "sh", "-c", 'mount --make-rprivate / && mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh", ctx.options.tsnap,
                  "--offsets", offsets] + [str(arg) for arg in args], stdin=subprocess.DEVNULL)
    ctx.started.append(tool)
    return tool


def rows_replayed(ctx, name):
    tool = ctx.stream("-a", "--replay", name)
    return tool.finish(0)


@case(alone=True)
def stuck_recorders(ctx):
    """Recorders whose workers are given up go on: nothing that was given up holds the lock of their directory."""
    tools, names = [], [ctx.temporary() for _ in range(4)]
    for name in names:
        tools.append(without_requests(ctx, "-o", name, "-F", 10, "--flush", 60, "-a", "-G", "cmdline"))
    standing = [Standing(tool) for tool in tools]
    for name in names:
        wait_until(lambda name=name: ".tsnap.lock" in os.listdir(name), START_S, "a recording")
    time.sleep(5 * SLOW)
    ctx.workload("stuck_maps")
    began = time.time()
    wait_until(lambda: any(one.tool.code is not None or one.tool.pid not in (one.worker, one.keeper) for one in standing), START_S, "a new worker")
    time.sleep(7 * SLOW)
    for tool, name in zip(tools, names):
        check(tool.code is None, "a recorder ended: %s", tool.err)
        tool.signal(signal.SIGINT)
        tool.finish_plain(0, STOP_S)
        times = [timestamp_s(scan) for scan, _ in scans_of(rows_replayed(ctx, name))]
        check(sum(1 for at in times if at < began) > 10, "%d scans from before: they were in no frame yet", sum(1 for at in times if at < began))
        check(sum(1 for at in times if at > began + 1) > 10, "%d scans of the new worker", sum(1 for at in times if at > began + 1))
        again = ctx.plain("-o", name, "-d", 0.5)
        again.finish_plain(0)


@case(alone=True)
def stuck_text_is_kept(ctx):
    """--top --text prints what it has when its worker is given up."""
    tool = without_requests(ctx, "--top", "--text", "-i", 100, "-a", "-g", "comm,cmdline")
    standing = Standing(tool)
    time.sleep(3 * SLOW)
    check(b"LIVE" not in tool.out, "a screen before there was a window: %s", tool.out.decode())
    ctx.workload("stuck_maps")
    wait_until(lambda: b"LIVE" in tool.out or not os.path.exists("/proc/%d" % standing.worker), START_S, "the worker's end")
    settle(lambda: b"LIVE" in tool.out, 1)
    check(b"LIVE" in tool.out, "no screen of what was sampled")


def interval_is_kept(ctx, columns, **stuck):
    tool = without_requests(ctx, "-i", 100, "-a", "-g", columns)
    standing = Standing(tool)
    spin = ctx.workload("spin")
    tool.wait_sleeps(10)
    time.sleep(4 * SLOW)  # the first scan, which reads of all processes, is over
    one = ctx.workload("stuck_maps", **stuck)
    wait_until(lambda: tool.pid not in (standing.worker, standing.keeper), START_S, "a new worker")
    wait_until(lambda: scans_due(tool.out.decode()), START_S, "the interval that was begun")
    tool.wait_sleeps(10)
    time.sleep(4 * SLOW)  # the first scan, which reads of all processes, is over
    tool.signal(signal.SIGINT)
    tool.finish_plain(0, STOP_S)
    intervals = scans_due(tool.out.decode())
    # more, if something else of the host blocks, too
    check(sum(1 for scans, _ in intervals if scans > 10) >= 2, "intervals: %s", intervals)
    check(tool.out.count(b"spin") >= 2, "the thread that spins is not in both: %s", tool.out.decode())
    spin.end()
    one.end()  # another worker must not be given up because of it before it has sampled


@case(alone=True)
def stuck_interval_is_kept(ctx):
    """What a report's interval has when its worker is given up is printed, and the next worker begins a new one: because of the thread that
    prints, or because of the one that copies stacks."""
    interval_is_kept(ctx, "comm,cmdline")
    interval_is_kept(ctx, "comm,ustack", naps=1)


@case(paired=True)
def keeper_on_terminal(ctx):
    """When Ctrl-C reaches both the keeper and its worker a report is printed, as after the two signals that timeout(1) sends."""
    terminal = Terminal(ctx)
    report = on_terminal(ctx, terminal, "-a", "-d", 60)
    wait_until(lambda: b"samples" in terminal.read(), START_S, "the line of progress")
    os.write(terminal.master, b"\x03")
    report.finish_plain(0, STOP_S)
    check(b"AVG_THR" in report.out, "no report: %s", report.out.decode())
    for seconds in (2, 8, 32):  # longer times until tsnap samples by then
        timed = subprocess.run(["timeout", "%d" % (seconds * SLOW), ctx.options.tsnap, "-a", "-d", "60"], stdout=subprocess.PIPE, check=False)
        if timed.stdout or timed.returncode != 124:
            break
    check(timed.returncode == 124 and b"AVG_THR" in timed.stdout, "%s: %s", timed.returncode, timed.stdout.decode())


@case(alone=True)
def keeper_ends_as_worker(ctx):
    """The exit code is the worker's; if the worker is killed tsnap ends by the same signal, for the shell to see."""
    refused = ctx.plain("-p", "4194303", "-d", 0.2)
    refused.wait(START_S + STOP_S)
    alone = subprocess.run([ctx.options.tsnap, "--no-such-option"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    check(alone.returncode == 2, "exit code %d", alone.returncode)
    tool = ctx.stream("-d", 60)
    tool.wait_scans(2)
    os.kill(tool.pid, signal.SIGKILL)
    check(tool.wait(STOP_S) == -signal.SIGKILL, "%s", tool.code)
    check("killed, and what it had not written is lost: by signal 9 (Killed)" in tool.err, "no words: %s", tool.err)
