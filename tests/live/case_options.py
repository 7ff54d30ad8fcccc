"""Every option of tsnap, in real runs with a visible effect. A start costs seconds under emulation: few runs, many options."""
import gzip
import json
import os
import re
import subprocess

import btf_file
import truth
from case_block import Device
from case_select import tids_of
from case_share import Share
from case_trouble import as_nobody, expect_error
from harness import SCANS_MORE, SLOW, START_S, STOP_S, Failure, Findings, case, check, scans_of, wait_until

# Shell script with calls that return, sleeps, waits for a CPU, programs that are executed, requests to a device ($1).
RESTLESS = "while :; do dd if=$1 of=/dev/null iflag=direct bs=4k count=4 status=none; cat /none; " \
           "bash -c ': </dev/tcp/127.0.0.1/9'; sh -c 'kill -9 $$'; sleep 0.05; done"

# {count: pattern of avg_thr} for threads that always slept. An emulated CPU may be too slow for a scan, which then lacks one of them.
ALL_OF = {count: r"%d\.00" % count if SLOW == 1 else r"(?:%d\.00|%d\.[789]\d)" % (count, count - 1) for count in (1, 2)}


def options_of(help_text):
    """{how it is typed: long name} of every option that --help all lists."""
    typed = {}
    for letter, name in re.findall(r"^  (?:-(\w), |    )--([\w-]+)", help_text, re.M):
        typed["--" + name] = name
        if letter:
            typed["-" + letter] = name
    return typed


class Runs:
    """Runs of tsnap that note which options were used. --tsnap-args may choose types, too: the types of a run replace them."""

    def __init__(self, ctx):
        self.ctx = ctx.but(tsnap_args="")
        self.types = [word for name in ("--btf", "--offsets", "--kernel-types") for value in ctx.given(name)
                      for word in (name, value)]
        self.without = ctx.without
        self.used = set()

    def run(self, *args, code=0):
        """Runs tsnap to its end."""
        self.used |= {str(arg) for arg in args if str(arg).startswith("-")}
        tool = self.ctx.plain(*args)
        tool.finish_plain(code, START_S + STOP_S)
        return tool

    def text(self, *args):
        return self.run(*args).out.decode()

    @property
    def here(self):
        """The part of --tsnap-args that a run which samples this host gets."""
        return self.types + self.without("")

    def live(self, *args):
        """The output of a run that samples this host."""
        return self.text(*args, *self.here)


def expect_checked(runs):
    text = runs.text("--check", "--max-threads", 777, *runs.types, *runs.without("map_batch"))
    check("capacity: 777 threads" in text, "--max-threads: %s", text)
    check(re.search(r"map_batch +no .*taken away by --without", text), "--without: %s", text)


def expect_rows(runs, offsets, family, recorded):
    """Rows have processes with their descendants, at 50 Hz for a second, in chosen columns, with the layout from a file."""
    tool = runs.run("--csv", "-a", "-d", 1, "-F", 50, "-p", min(family), "-r", "-g", "timestamp,tid,comm", "-G", "state",
                    "--kernel-types", "offsets", "--offsets", offsets, "-v", *runs.without(""))
    check(tool.out.startswith(b'timestamp,tid,comm,state\n'), "-g, -G: %s", tool.out[:80])
    scans = scans_of(tool.rows())
    check(10 < len(scans) <= 50 + SCANS_MORE, "-d 1 -F 50: %d scans", len(scans))
    for when, rows in scans:
        check(tids_of(rows) == family, "-p -r: %s, not %s in the scan of %s", tids_of(rows), family, when)
    check("kernel types from offsets" in tool.err, "-v, --offsets: %s", tool.err)
    with open(recorded, "wb") as file:
        file.write(tool.out)


def expect_objects(runs, btf, offsets, mine, others):
    """Threads are chosen by id, user and name; -n limits the scans; the layout comes from a BTF file. A kernel before 5.2 has no BTF file
    of its own: that of another kernel is refused."""
    tids = ",".join(str(workload.tid) for workload in [mine] + others)
    source = ("btf", "--btf", btf)
    if not os.path.exists(btf):
        source = ("offsets", "--offsets", offsets)
        with open(offsets + ".btf", "wb") as file:
            file.write(btf_file.Maker().file())
        expect_error(runs.ctx.plain("--csv", "-n", 1, "--btf", file.name, *runs.without("")), 1, file.name)
        runs.used.add("--btf")
    tool = runs.run("--json", "-a", "-n", 2, "-t", tids, "-u", "root", "-c", "pipe_r*", "-g", "timestamp,tid,user,comm",
                    "--kernel-types", *source, "--verbose", *runs.without(""))
    rows = [json.loads(line) for line in tool.out.decode().splitlines()]
    check(len({row["timestamp"] for row in rows}) == 2, "-n 2: %s", rows)
    seen = {(int(row["tid"]), row["user"], row["comm"]) for row in rows}
    check(seen == {(mine.tid, "root", "pipe_read")}, "-t -u -c: %s", seen)
    check("kernel types from " + source[0] in tool.err, "--%s: %s", source[0], tool.err)


def expect_reports(runs, pid, recorded):
    text = runs.live("-i", 0.5, "-n", 2, "-a", "-p", pid, "--self", "--all-rows", "--trace", "runq", "--slower", 1000)
    check(len(re.findall("^tsnap on ", text, re.M)) == 2, "-i 0.5 -n 2: %s", text)
    check(text.count("nanosleep") >= 2, "-p: %s", text)
    check(len(re.findall(r"^sched_switch +[a-z ]*\w +\d+ ", text, re.M)) == 2 or "\nNot counted: " in text,
          "--self: %s", text)
    check(text.count("\nrunq: ") == 2, "--trace: %s", text)
    check(re.search(r"^ +\d.* %s +\d+ +\S+$" % pid, runs.live("-d", 1, "-a", "-p", pid, "--by", "thread"), re.M), "--by thread")
    times = [int(us) for us in re.findall(r" (\d+)$", runs.live("-d", 1, "-a", "-r", "-p", pid, "-g", "comm", "--sort", "state_us"), re.M)]
    check(times and times == sorted(times, reverse=True), "--sort state_us: %s", times)
    raw = runs.live("-d", 1, "-a", "--raw", "-p", pid, "-g", "pid")
    check(re.search(r"^ +\d+\.\d\d .* %s$" % pid, raw, re.M) and "Exact times" not in raw, "--raw: %s", raw)
    chosen = ("-d", 0.5, "--filter", "pid=%s && syscall~nanosleep" % pid, "-g", "pid", "-a")
    check(re.search(r"^ +1\.00 .* %s$" % pid, runs.live(*chosen, "--cgroup", "/"), re.M), "--filter, --cgroup")
    check("No samples" in runs.live(*chosen, "--cgroup", "/no/such/group"), "--cgroup of nobody")
    screen = runs.live("--top", "--text", "-n", 1, "--ascii", "-a", "-p", pid, "-g", "pid")
    check(re.search(r"^ +[1-9]\.\d+ .* %s$" % pid, screen, re.M), "--top --text: %s", screen)
    threads = runs.live("-d", 0.5, "-a", "-p", pid, "--view", "threads")
    check(re.search(r"^ +1\.00 .* %s +\d+ +nanosleep +S +\w*nanosleep$" % pid, threads, re.M), "--view threads: %s", threads)
    memory = runs.live("-d", 0.5, "-p", pid, "--view", "memory")
    with open("/proc/%s/stat" % pid, encoding="ascii") as file:
        resident = int(file.read().rsplit(")", 1)[1].split()[21]) * os.sysconf("SC_PAGE_SIZE")
    check(re.search(r"^ +[1-9]\.\d\d .* %s +\S+ +\S+ +%d " % (pid, resident), memory, re.M), "--view memory: not %d: %s", resident, memory)
    replayed = runs.text("--replay", recorded, "-a", "-g", "state")
    check(re.search(r"^ +(3\.0|2\.9)\d .* S$", replayed, re.M), "--replay of three sleepers: %s", replayed)


def expect_stacks(runs, pid, directory):
    """A sleeper's whole second is off CPU, in its system call; the graph and the comparison show the same."""
    chosen = ("-p", pid, "-g", "tid")
    common = ("-d", 1, *chosen, *runs.here)
    before, after, graph, page = (os.path.join(directory, name) for name in ("before.folded", "after.folded", "graph.svg", "page.html"))
    off = runs.text("--folded", "--off-cpu", *common)
    weights = [int(weight) for weight in re.findall(r"^\d+;.*nanosleep.* (\d+)$", off, re.M)]
    check(weights and 500000 < sum(weights) < 2500000, "--folded --off-cpu: %s", off)
    both = runs.text("--folded", "--on-cpu", "--off-cpu", *common)
    check("nanosleep" in both, "--on-cpu --off-cpu: %s", both)
    spinner = runs.ctx.workload("spin")
    for how in (("--fp",), ("--stack-bytes", 4096)):
        # on a full host all samples of a second may come without frames, which tsnap reports
        wait_until(lambda: re.search(r"^%d;.+ \d+$" % spinner.tid, runs.text("--folded", "--on-cpu", *how, *common, "-p", spinner.tgid), re.M),
                   5 * START_S, how[0] + ": a stack of the spinner")
    spinner.end()
    runs.ctx.started.remove(spinner)
    for path, text in ((before, off), (after, both)):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    profile, metrics = os.path.join(directory, "profile.pb.gz"), os.path.join(directory, "metrics.prom")
    runs.run("--pprof", profile, "-a", *common)
    with gzip.open(profile) as file:
        read = file.read()
    program = os.readlink("/proc/%s/exe" % pid)
    notes = subprocess.run(["readelf", "-n", program], stdout=subprocess.PIPE, check=True).stdout.decode()
    build_id = re.search("Build ID: ([0-9a-f]+)", notes).group(1)
    check(b"nanosleep" in read and program.encode() in read and build_id.encode() in read, "--pprof: no nanosleep, or no %s %s: %s",
          program, build_id, read)
    runs.run("--metrics", metrics, "-a", *common)
    with open(metrics, encoding="utf-8") as file:
        check(re.search(r'(?m)^tsnap_thread_seconds_total\{tid="\d+"\} [0-2]\.\d+$', file.read()), "--metrics: no seconds")
    runs.run("--flame", graph, "-a", *common)
    with open(graph, encoding="utf-8") as file:
        check("nanosleep" in file.read(), "--flame: no nanosleep")
    runs.run("--html", page, "-a", *common)
    with open(page, encoding="utf-8") as file:
        expect_page(file.read())
    # where CPUs are emulated the first samples have no stack yet, or another one
    below = re.compile(r"^ +%s%%  (user|kernel)  " % (r"100\.0" if SLOW == 1 else r"[1-9]\d{1,2}\.\d"), re.M)
    text = runs.text("-a", "--stacks", 1, "--python", "--no-realtime", *common)
    check(below.search(text), "--stacks: no stack below a line: %s", text)
    check("(--no-realtime)" in text, "--no-realtime: %s", text)
    cells = runs.live("-d", 0.5, "--csv", "--csv-safe", "-a", "-g", "tid,comm", "-p", pid)
    check(re.search(r'^\d+,"', cells, re.M), "--csv-safe: %s", cells)
    cells = runs.live("-d", 0.5, "--csv", "--patience", 0.3, "-a", "-g", "tid,comm", "-p", pid)
    check(re.search(r"^\d+,", cells, re.M), "--patience: %s", cells)
    cells = runs.live("-d", 0.5, "--json", "--report", "-a", "--by", "pid", "-p", pid)
    check(re.search(r'"pid":%s,.*"begin":"' % pid, cells), "--report: %s", cells)
    expect_error(runs.ctx.plain("--goroutines", "-p", pid), 1, "no program of Go")
    expect_error(runs.ctx.plain("--tasks", "-p", pid), 1, "it runs no Python")
    runs.used |= {"--goroutines", "--tasks"}
    check("sandbox: none (--no-sandbox)" in runs.run("-d", 0.5, "--no-sandbox", "-v", *chosen, *runs.here).err, "--no-sandbox")
    dictionary, rows = os.path.join(directory, "dictionary.csv"), os.path.join(directory, "stacks.csv")
    with open(rows, "w", encoding="utf-8") as file:
        file.write(runs.live("--csv", "-a", "--stack-dict", dictionary, "-d", 1, "-p", pid,
                             "-g", "timestamp,weight_us,state,comm,waker_stack"))
    replayed = runs.text("--replay", rows, "--stack-dict", dictionary, "--off-wake", "--stacks")
    check(below.search(replayed), "--stack-dict, --off-wake: no stack in the replay: %s", replayed)
    # the second file of --diff A B is a positional argument, not that of an option
    runs.run("--diff", before, after, "--flame", graph)
    with open(graph, encoding="utf-8") as file:
        check("before 100.00 % (" in file.read(), "--diff: no shares")


def expect_page(text):
    """The page of a process with two threads that sleep: both do so in all of the time, and their stacks are drawn."""
    check(re.search(r"<title>\S*nanosleep\n", text), "--html: no frame of nanosleep")
    data = json.loads(re.search(r'id="facts">(.*?)</script>', text).group(1))
    numbers, asleep = iter(data["facts"]), 0
    for _ in numbers:
        state, _, _, count = (next(numbers) for _ in range(4))
        asleep += sum((next(numbers), next(numbers))[1] for _ in range(count)) * (state == 3)
    scanned = sum(data["scanned"])
    check(scanned > 0 and abs(asleep - 2 * scanned) <= scanned * 0.1, "--html: asleep for %d of %d", asleep, scanned)


def expect_servers(runs):
    """A thread that reads from a connection whose own port is low is a server, and idle."""
    client = runs.ctx.workload("wait", on="tcp_client")
    for line, shown in ((1, True), (65536, False)):
        text = runs.live("-d", 1, "-p", client.tgid, "-g", "tid", "--daemon-ports", line)
        told = "by sock_diag" not in text  # a module that is not everywhere: without it no thread is known to be a client
        check(bool(re.search(r" %d$" % client.tid, text, re.M)) == (shown and told), "--daemon-ports %d: %s", line, text)


def expect_chains(runs):
    """A thread that waits for a mutex is shown with the thread that holds it."""
    waiter = runs.ctx.workload("wait", on="mutex")
    chosen = ("-d", 1, "-t", waiter.tid)
    text = runs.live("--chains", *chosen)
    check(re.search(r"^ +[\d.]+ +%s +holder +%d " % (ALL_OF[1], waiter.tgid), text, re.M), "--chains: %s", text)
    text = runs.live("--findings", *chosen)
    check(re.search(r"^1\. 1\.0 mutex %d waits for mutex 0x[0-9a-f]+, held by holder %d" % (waiter.tgid, waiter.tgid), text, re.M), "--findings: %s", text)
    text = runs.live("--folded", "--by-chain", *chosen)
    check(re.search(r"^mutex mutex>;holder \d+$", text, re.M), "--by-chain: %s", text)
    if truth.release() < (5, 5):  # it is refused by name
        runs.used |= {"--critical-path", "--by"}
        return
    text = runs.live("--critical-path", waiter.tgid, "-d", 1, "--by", "path_end,path_of_tid")
    check(re.search(r"^ +%s +.*not ended +%d$" % (ALL_OF[1], waiter.tid), text, re.M), "--critical-path: %s", text)


def expect_recorded(runs, pid, directory):
    """A recording of a sleeper is replayed whole, in parts, and over time."""
    recording, part = os.path.join(directory, "recording"), os.path.join(directory, "part.csv.zst")
    os.mkdir(recording)
    config = os.path.join(directory, "config")
    with open(config, "w", encoding="utf-8") as file:
        file.write("# all of a sleeper\nrate = 5\nprocess %s\nall\n" % pid)
    runs.run("--config", config, "--record", recording, "--flush", 1, "--keep", "7d", "--keep-bytes", "1G", "--keep-free", "0.1%", "-d", 3,
             "--archive", 1, "--keep-archive", "30d", "--when", "pid = %s" % pid, "--keep-around", "10s", *runs.here)
    whole = ("--replay", recording, "-a", "-g", "pid")
    slept = re.compile(r"^ +%s .* %s$" % (ALL_OF[2], pid), re.M)
    text = runs.text(*whole)
    check(slept.search(text), "--record: not there in the replay: %s", text)
    check(slept.search(runs.text(*whole, "--from", "-1h", "--to", "now")), "--from, --to: not there")
    check(len(re.findall(r" %s$" % pid, runs.text(*whole, "--by-time", "1s"), re.M)) >= 3, "--by-time: fewer than three seconds")
    check(pid in runs.text(*whole, "--heatmap"), "--heatmap: not there")
    check("What changed against %s" % recording in runs.text("--replay", recording, "--against", recording), "--against: no comparison")
    check("no process of that name" in runs.run("--replay", recording, "--died", "nobody", code=2).err, "--died: no error")
    runs.run("--replay", recording, "--snapshot", part)
    check(slept.search(runs.text("--replay", part, "-a", "-g", "pid")), "--snapshot: not there in its replay")


def expect_programs(runs, pid, directory):
    """Programs that are written by one start are loaded by another one, and a start without the cache says nothing of it."""
    programs = os.path.join(directory, "programs")
    words = ("-d", 0.5, "-v", "-a", "-g", "pid", "-p", pid)
    text = runs.run(*words, "--no-cache", "--write-programs", programs, *runs.here).err
    check(re.search(r"BPF programs compiled now$", text, re.M), "--no-cache: %s", text)
    text = runs.run(*words, "--programs", programs, *runs.without("")).err
    check("BPF programs from '%s'" % programs in text, "--programs: %s", text)


def expect_sources(runs, pid):
    """A column of a variable of the sleeper's program, the name of its first workload; and its call, from /proc."""
    text = runs.live("-d", 1, "-a", "-p", pid, "--context", "first = var workload:call_workloads->0:str", "--query-text", "on", "-g", "pid,first")
    check(re.search(r"^ +\d.* %s +[a-z]+$" % pid, text, re.M), "--context: %s", text)
    text = runs.live("-d", 1, "--probe", "forks = t:sched_process_fork", "--probe-budget", 50)
    check("forks: forks = t:sched_process_fork" in text, "--probe: %s", text)
    text = runs.live("-d", 1, "--probe", "left = t:sched_switch(arg1)", "--events", "-g", "pid")  # arg1: it was preempted
    check(re.search(r"^\S+Z +left +\d+ +[01]$", text, re.M), "--events: %s", text)
    tool = runs.run("-d", 1, "-a", "-p", pid, "--source", "proc", "-g", "pid,syscall")
    check("(--source proc)" in tool.err and re.search(r"^ +\d.* %s +\w*nanosleep$" % pid, tool.out.decode(), re.M), "--source: %s", tool.out)


def expect_shared(runs, pid):
    """One tsnap shares its probes, and another one samples with them."""
    share = Share(runs.ctx, listed=False)
    share.owner(*runs.here)
    rows = share.attached("-d", 1, of=("-p", pid)).finish(0, START_S + STOP_S)
    check({row["pid"] for row in rows} == {str(pid)}, "--share, --attach: %s", rows[:3])
    runs.used |= {"--share", "--attach"}


@case(long=True)
def every_option(ctx):
    """Each option that --help all lists is in a run that shows its effect; an option that no run has fails the test."""
    btf = os.environ.get("TSNAP_TEST_BTF", "/sys/kernel/btf/vmlinux")
    runs = Runs(ctx)
    typed = options_of(runs.text("--help", "all"))
    check(len(typed) > 20, "--help all lists only %s", sorted(typed))
    check(re.search(r"\d+\.\d+", runs.text("--version")), "--version tells none")
    check(re.search(r"^ *waker_comm ", runs.text("--list"), re.M), "--list lacks waker_comm")
    check(not re.search(r"^ *(waker_comm|tid) ", runs.text("--list", "waits"), re.M), "--list waits has more")
    directory = ctx.temporary()
    offsets, recorded = os.path.join(directory, "offsets"), os.path.join(directory, "rows.csv")
    runs.run("--write-offsets", offsets, *runs.here)
    expect_checked(runs)
    tree, futex, mine, sleeper = ctx.workloads([("tree", {}), ("sleep", {"call": "futex"}), ("sleep", {"call": "pipe_read"}),
                                                ("sleep", {"call": "nanosleep"})])
    theirs = ctx.reachable().workloads([("sleep", {"call": "pipe_read"})], popen={"preexec_fn": as_nobody, "cwd": "/"})[0]
    expect_rows(runs, offsets, {tree.tgid, tree.number("child"), tree.number("grandchild")}, recorded)
    expect_objects(runs, btf, offsets, mine, [futex, theirs])
    expect_reports(runs, sleeper["pid"], recorded)
    expect_stacks(runs, sleeper["pid"], directory)
    expect_servers(runs)
    expect_chains(runs)
    expect_sources(runs, sleeper["pid"])
    expect_recorded(runs, sleeper["pid"], directory)
    expect_programs(runs, sleeper["pid"], directory)
    expect_shared(runs, sleeper["pid"])
    unused = set(typed.values()) - {typed.get(word) for word in runs.used}
    check(not unused, "no run with --%s", ", --".join(sorted(unused)))


def traced_rows(ctx, pid, device, kind):
    """The kinds of --trace that rows have; requests to other devices aside."""
    tool = ctx.plain("--csv", "--trace", kind, "-d", 2, "-p", pid, "-r")
    return {row["trace"] for row in tool.finish(0, START_S + STOP_S) if not row.get("io_dev") or row["io_dev"] == device.name}


def traced_report(ctx, pid, kinds):
    """The kinds of --trace that appear in a report of all of them and of each event that took 20 ms."""
    tool = ctx.plain("--trace", ",".join(kinds), "--slower", 20, "-d", 2, "-p", pid, "-r")
    tool.finish_plain()
    text = tool.out.decode()
    return {kind for kind in kinds if re.search(r"^%s: (?!.*: none$)|^\S+ +%s " % (kind, kind), text, re.M)}


# Probes that each kind of --trace needs, as --check calls them; kinds that are not here need only what all of tsnap needs.
PROBES_OF = {"block": ("block queue", "block issue", "block done"), "blockq": ("block queue", "block issue", "block done"),
             "syscalls": ("call", "return"), "opens": ("call", "return"), "opened": ("call", "return"),
             "exec": ("exec", "rename"), "connections": ("connection", "return"), "incidents": ("end",),
             "irq": ("hardirq", "hardirq end", "softirq", "softirq end"), "dns": ("packet sent", "packet received")}


# Kinds without events of the shell: it is idle in no call (case_work), no interrupt is a thread's (case_irq), and it asks for no
# name (case_dns_queries).
ALIEN = {"work", "irq", "dns"}


def kinds_refused(ctx, kinds):
    """Kinds of --trace that need a probe which --check says is not there: each is refused by the name of the probe."""
    tool = ctx.plain("--check")
    tool.finish_plain()
    lacking = re.findall(r"^  (\S.*?\S)  +none[;,]", tool.out.decode().split("\nProbes\n")[1].split("\nWhat is")[0], re.M)
    refused = [kind for kind in kinds if set(PROBES_OF.get(kind, ())) & set(lacking)]
    for kind in refused:
        first = next(name for name in PROBES_OF[kind] if name in lacking)
        expect_error(ctx.plain("--csv", "--trace", kind, "-d", 1), 77, "no probe for '%s'" % first)
    return refused


@case(thorough=True, long=True)
def every_trace(ctx):
    """Each kind of --trace alone, and all of them with --slower, report events of a shell that reads a disk and starts programs."""
    listed = subprocess.run([ctx.options.tsnap, "--list"], capture_output=True, text=True).stdout
    kinds = re.findall(r"^  (\w+) ", listed.split("Kinds of --trace")[1].split("\n\n")[0], re.M)
    check(len(kinds) >= 6, "--list has the kinds %s", kinds)
    refused = kinds_refused(ctx, kinds)
    kinds = [kind for kind in kinds if kind not in refused]
    check(len(kinds) >= 2, "all but %s are refused", kinds)
    find = Findings()
    with Device() as device:
        device.queue_by_deadline()  # before 6.5 blockq sees only requests that an I/O scheduler queues
        shell = subprocess.Popen(["sh", "-c", RESTLESS, "sh", device.path], stderr=subprocess.DEVNULL)
        try:
            for chosen in [[kind] for kind in kinds if kind not in ALIEN] + [kinds]:
                try:
                    seen = traced_report(ctx, shell.pid, chosen) if chosen == kinds else traced_rows(ctx, shell.pid, device, chosen[0])
                    find.expect(seen | ALIEN == set(chosen) | ALIEN, "--trace %s: only %s", ",".join(chosen), sorted(seen))
                except Failure as failure:
                    find.expect(False, "--trace %s: %s", ",".join(chosen), failure)
        finally:
            shell.kill()
            shell.wait()
            # the shell's last program may still have the device open
            subprocess.run(["sleep", "0.2"], check=True)
    find.close()
