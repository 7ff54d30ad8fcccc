#!/usr/bin/env python3
"""Runs the real tsnap on this kernel, and compares what it prints with what workloads really do.

Each line is `ok NAME (SECONDS, SECONDS of CPUs)`, `FAIL NAME: why` or `skip NAME: why`; the last line has the totals. Exit 0: no test
failed. Exit 77: nothing can run here. TSNAP_TEST_SLOW=N multiplies every time limit. Results are statistical, as tsnap samples, and the
machine has other work: a test that fails is tried again, alone, which a line `again NAME: why` reports. With --jobs most tests run side
by side; of their results only `ok` counts, the others are run again like tests that must be alone. The line before the last has the
passed tests that failed at their first try; with more than AGAIN_MAX that the file second-tries does not expect, the run fails.
"""
import argparse
import array
import fcntl
import fnmatch
import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import termios
import time
import traceback

# Each of these modules enters its tests into harness.TABLE.
import case_apps  # noqa: F401
import case_asleep  # noqa: F401
import case_bench  # noqa: F401
import case_forks  # noqa: F401
import case_block  # noqa: F401
import case_cache  # noqa: F401
import case_calls  # noqa: F401
import case_changed  # noqa: F401
import case_chains  # noqa: F401
import case_chains_real  # noqa: F401
import case_chains_runtimes  # noqa: F401
import case_compat  # noqa: F401
import case_connections  # noqa: F401
import case_containers  # noqa: F401
import case_context  # noqa: F401
import case_cost  # noqa: F401
import case_cpu  # noqa: F401
import case_critical_path  # noqa: F401
import case_dns  # noqa: F401
import case_dns_queries  # noqa: F401
import case_exec  # noqa: F401
import case_faults  # noqa: F401
import case_findings  # noqa: F401
import case_fleet  # noqa: F401
import case_gc  # noqa: F401
import case_gil  # noqa: F401
import case_go  # noqa: F401
import case_host  # noqa: F401
import case_hostile  # noqa: F401
import case_hostile_crowds  # noqa: F401
import case_hostile_files  # noqa: F401
import case_hostile_kinds  # noqa: F401
import case_hotplug  # noqa: F401
import case_idle  # noqa: F401
import case_incidents  # noqa: F401
import case_irq  # noqa: F401
import case_java  # noqa: F401
import case_kernel_waits  # noqa: F401
import case_kills  # noqa: F401
import case_memory  # noqa: F401
import case_scan_time  # noqa: F401
import case_opens  # noqa: F401
import case_options  # noqa: F401
import case_page_cache  # noqa: F401
import case_parsers  # noqa: F401
import case_parts  # noqa: F401
import case_peers  # noqa: F401
import case_php  # noqa: F401
import case_probe  # noqa: F401
import case_proc_source  # noqa: F401
import case_python  # noqa: F401
import case_quota  # noqa: F401
import case_record  # noqa: F401
import case_record_large  # noqa: F401
import case_schema  # noqa: F401
import case_select  # noqa: F401
import case_self
import case_sets  # noqa: F401
import case_served  # noqa: F401
import case_share  # noqa: F401
import case_soak  # noqa: F401
import case_namespaces  # noqa: F401
import case_hosts  # noqa: F401
import case_net  # noqa: F401
import case_stack_truth  # noqa: F401
import case_stack_trouble  # noqa: F401
import case_stacks  # noqa: F401
import case_stacks_scan_time  # noqa: F401
import case_stacks_on_cpu  # noqa: F401
import case_start  # noqa: F401
import case_state  # noqa: F401
import case_stuck  # noqa: F401
import case_tasks  # noqa: F401
import case_top  # noqa: F401
import case_totals  # noqa: F401
import case_trace  # noqa: F401
import case_work  # noqa: F401
import case_trouble  # noqa: F401
import case_types  # noqa: F401
import case_unread  # noqa: F401
import case_vanish  # noqa: F401
import case_waits  # noqa: F401
import case_who  # noqa: F401
import case_why  # noqa: F401
import harness

LIMIT_S = 400  # of a test that hangs; stacks_as_gdb takes more than 180 while two processes spin
AGAIN_MAX = 5  # about one test in a hundred
IDLE_SHARE = 0.4  # share of the CPUs' time: if that much of a second was idle, one more test is begun


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tsnap", help="the program under test")
    parser.add_argument("--workload", required=True, help="the workload program")
    parser.add_argument("--tsnap-args", default="", help="given to every tsnap, such as '--without kprobe'")
    parser.add_argument("--must-run", action="store_true", help="this host can: don't ask tsnap --check, which takes a start")
    parser.add_argument("--self-test", action="store_true", help="checks the workloads against /proc, without tsnap")
    parser.add_argument("--tries", type=int, default=2, help="how often a test may be tried alone (default: 2)")
    parser.add_argument("--jobs", type=int, default=1, help="run so many side by side of those that don't mind, and one more while CPUs are idle (default: 1)")
    parser.add_argument("--python", help="command that runs a Python, for the tests of Python, such as 'chroot DIR python3.14'; default: those here")
    parser.add_argument("--all", action="store_true", help="those that only a thorough run has, too")
    parser.add_argument("--list", action="store_true", help="lists the tests")
    parser.add_argument("names", nargs="*", help="tests to run, as patterns; all if none")
    options = parser.parse_args(argv)
    if not options.self_test and not options.list and not options.tsnap:
        parser.error("--tsnap is needed")
    options.workload = os.path.abspath(options.workload)
    options.tsnap = options.tsnap and os.path.abspath(options.tsnap)
    return options


def on_alarm(_number, _frame):
    raise harness.Failure("it does not end")


def on_term(_number, _frame):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # what was started is ended without another interruption
    raise SystemExit(128 + signal.SIGTERM)


def cpu_s():
    """User and system time of this process and of the children that it waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def run(test, options):
    """Runs a test: ("ok"|"FAIL"|"skip", the line to print)"""
    context = harness.Context(options)
    start, cpu_start = time.monotonic(), cpu_s()
    signal.alarm(int(getattr(test, "limit_s", LIMIT_S) * harness.SLOW))
    try:
        test(context)
        context.end()
        return "ok", "ok %s (%.1fs, %.1fs of CPUs)" % (test.__name__, time.monotonic() - start, cpu_s() - cpu_start)
    except harness.Skip as skip:
        return "skip", "skip %s: %s" % (test.__name__, skip)
    except harness.Failure as failure:
        return "FAIL", "FAIL %s: %s" % (test.__name__, failure)
    except Exception as error:  # a fault of the test itself is a failure too
        where = traceback.extract_tb(error.__traceback__)[-1]
        return "FAIL", "FAIL %s: %s: %s (%s:%d)" % (test.__name__, type(error).__name__, error,
                                                   os.path.basename(where.filename), where.lineno)
    finally:
        signal.alarm(0)
        context.end()  # does nothing if the context has ended


def told(words):
    print(words.encode("utf-8", "backslashreplace").decode(), flush=True)


def is_one_of(test, patterns):
    return any(fnmatch.fnmatch(test.__name__, pattern) for pattern in patterns)


def cpus_ticks():
    """(idle, all) ticks of the CPUs so far."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def idle_wait(taking):
    """Waits for a second in which the CPUs were idle enough, or until the pipe is empty."""
    left = array.array("i", [1])
    while left[0]:
        before = cpus_ticks()
        time.sleep(1)
        idle, whole = (now - then for now, then in zip(cpus_ticks(), before))
        if idle >= IDLE_SHARE * whole:
            return
        fcntl.ioctl(taking, termios.FIONREAD, left)


def run_some(tests, options, taking, telling, spare):
    """Takes numbers of tests from a pipe, and runs them. spare: each only when the CPUs are idle enough."""
    def take():
        if spare:
            idle_wait(taking)
        return os.read(taking, 2)

    for number in iter(take, b""):
        test = tests[int.from_bytes(number, "big")]
        answer = run(test, options)
        sys.stdout.flush()
        # texts are cut so that a pipe takes each line whole, in one write
        os.write(telling, json.dumps([test.__name__, *(words[:600] for words in answer)]).encode() + b"\n")


def run_beside(tests, options, jobs, more=0):
    """Runs each test once, `jobs` side by side, and `more` while the CPUs are idle; gives (name, outcome, words) as they end."""
    taking, giving = os.pipe()
    os.write(giving, b"".join(number.to_bytes(2, "big") for number in range(len(tests))))
    os.close(giving)
    reading, telling = os.pipe()
    lanes = []
    for lane in range(jobs + more):
        lanes.append(os.fork())
        if lanes[-1] == 0:
            try:
                run_some(tests, options, taking, telling, lane >= jobs)
            finally:
                os._exit(0)
    os.close(telling)
    os.close(taking)
    try:
        with open(reading, "rb") as lines:
            for line in lines:
                yield json.loads(line)
    except SystemExit:
        for lane in lanes:
            os.kill(lane, signal.SIGTERM)
        raise
    finally:
        for lane in lanes:
            os.waitpid(lane, 0)


def second_tries():
    """Names of the tests that may need a second try; the file has a reason for each."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "second-tries"), encoding="utf-8") as file:
        reasons = dict(line.split(None, 1) for line in file if not line.startswith("#"))
    unknown = set(reasons) - {test.__name__ for test in harness.TABLE}
    harness.check(not unknown, "second-tries names what is no test: %s", " ".join(unknown))
    return set(reasons)


def can_run(options):
    """The reason why nothing can run here, or None."""
    if os.geteuid():
        return "not root"
    checked = subprocess.run([options.tsnap, "--check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             stdin=subprocess.DEVNULL, timeout=harness.START_S)
    if checked.returncode == harness.UNREADY:
        return "tsnap --check: this host can't"
    return None


def chosen(options):
    table = case_self.TABLE if options.self_test else harness.TABLE
    if options.names:
        return [test for test in table if is_one_of(test, options.names)]
    return [test for test in table if options.all or "thorough" not in test.how]


def main(argv):
    options = parse(argv)
    # no cache: every start compiles, as the first one on a host, and leaves nothing there; case_cache.py has the others
    os.environ["TSNAP_CACHE"] = ""
    with tempfile.TemporaryDirectory(prefix="tsnap-test-") as directory:
        hide(options, directory)
        return run_all(options)


def hide(options, directory):
    """Has the programs run by links in a directory that only root may enter, below /tmp, with a blank in its name: a test that passes there
    passes in every clone, also below /root and /tmp."""
    folder = os.path.join(directory, "a clone")
    os.mkdir(folder)
    words = options.workload.split("/")  # BUILD/tests/workload/workload
    os.symlink("/".join(words[:-3]), folder + "/build")
    options.workload = "/".join([folder, "build", *words[-3:]])
    if options.tsnap:
        os.symlink(options.tsnap, folder + "/tsnap")
        options.tsnap = folder + "/tsnap"


def run_all(options):
    tests, listed = chosen(options), second_tries()
    if options.list:
        for test in tests:
            print("%-24s %s" % (test.__name__, test.__doc__.split("\n")[0]))
        return 0
    if not tests:
        print("no test of that name", file=sys.stderr)
        return 2
    refusals = all("refusal" in test.how for test in tests)
    why = None if options.self_test or options.must_run or refusals else can_run(options)
    if why:
        print("skip: " + why)
        return harness.UNREADY
    signal.signal(signal.SIGALRM, on_alarm)
    signal.signal(signal.SIGTERM, on_term)
    # these signals are ignored in a shell's background job, or under nohup, and every tsnap would inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    counts, ran, wavered = {"ok": 0, "FAIL": 0, "skip": 0}, set(), set()
    if options.jobs > 1:
        beside = sorted((test for test in tests if not {"alone", "paired"} & set(test.how)), key=lambda test: "long" not in test.how)
        paired = [test for test in tests if "paired" in test.how]
        for name, outcome, words in itertools.chain(run_beside(beside, options, options.jobs, 1), run_beside(paired, options, 2)):
            # a failure or a skip may be due to the other tests
            told(words if outcome == "ok" else words.replace(outcome, "again", 1))
            if outcome == "ok":
                counts[outcome] += 1
                ran.add(name)
            elif outcome == "FAIL":
                wavered.add(name)
    for test in tests:
        if test.__name__ in ran:
            continue
        outcome, words = run(test, options)
        for _ in range(1, options.tries):
            if outcome != "FAIL":
                break
            told(words.replace("FAIL", "again", 1))
            wavered.add(test.__name__)
            outcome, words = run(test, options)
        if outcome != "ok":
            wavered.discard(test.__name__)
        counts[outcome] += 1
        told(words)
    expected = wavered & listed
    if len(wavered - expected) > AGAIN_MAX:
        counts["FAIL"] += 1
        told("FAIL more than %d tests passed at a second try only" % AGAIN_MAX)
    told("second try: %s; expected by tests/live/second-tries: %s"
         % (" ".join(sorted(wavered - expected)) or "none", " ".join(sorted(expected)) or "none"))
    print("%d passed, %d failed, %d skipped" % (counts["ok"], counts["FAIL"], counts["skip"]))
    return 1 if counts["FAIL"] else 0


if __name__ == "__main__":
    CODE = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(CODE)  # does not wait for a thread that a failed test left
