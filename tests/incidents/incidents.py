#!/usr/bin/env python3
"""Makes incidents of real programs, runs tsnap --findings, and judges what it says by facts.

incidents.py --tsnap PATH --workload PATH [NAME|NUMBER...]: those that tests/run has each time, or these (names as patterns), or --all. An incident's line has its number, its verdict, its
name, and the sentence or what is wrong with it. Verdicts: right; pointed: the problem is found, but a fact is missing or it is not the
first, or there is none, and one is found that is called likely; nothing; WRONG: a false culprit, or anything false that is called certain.
An incident that is "not yet" right is expected so.

With --show it prints instead what a user sees: plain tsnap on a terminal, and the command that its first finding gives. The guide
(packaging/guide) has these screens. Below `unshare --pid --fork --mount-proc` tsnap sees the incident's processes alone.

Exit 0: all is as expected, and nothing is wrong. Exit 77: nothing can run here.
"""
import argparse
import fcntl
import fnmatch
import json
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import traceback

import incident

# Each of these modules enters its incidents into incident.TABLE.
import incident_backends  # noqa: F401
import incident_cpus  # noqa: F401
import incident_files  # noqa: F401
import incident_kernel  # noqa: F401
import incident_locks  # noqa: F401
import incident_servers  # noqa: F401
import incident_threads  # noqa: F401
import quiet_loads  # noqa: F401
import harness
import run_live
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "twins"))
from twins import RECORDED
import truth
from incident import NOTHING, POINTED, RIGHT, SKIPPED, WRONG

LIMIT_S = 120
SCREEN = 24, 100  # of --show
REST = 40, 110  # of the command that says more
WHOLE_S = 6  # until who waits for whom is known, in seconds


class Context(harness.Context):
    """That of a live test, with servers that are started once for all incidents."""

    def __init__(self, options, outer=None):
        super().__init__(options)
        self.outer, self.servers = outer, {}

    def server(self, kind, **settings):
        """The server of this kind (parts.Postgres, ...), which goes on until the last incident has ended."""
        servers = self.outer.servers
        if kind not in servers:
            servers[kind] = kind(self.outer, **settings)
        return servers[kind]


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tsnap", required=True, help="the program under test")
    parser.add_argument("--workload", required=True, help="the workload program")
    parser.add_argument("--own", action="store_true", help="tsnap sees the incident's processes only, as on a host with other work")
    parser.add_argument("--all", action="store_true", help="all; without it and without names: those that tests/run has each time")
    parser.add_argument("--seconds", type=float, help="of a report (default: 5; 3 of those that tests/run has each time)")
    parser.add_argument("--quiet-seconds", type=float, help="of a report of a quiet load (default: as all; with --all 30)")
    parser.add_argument("--record", metavar="DIR", help="also record each, into a directory below DIR, for twins/twins.py")
    parser.add_argument("--show", action="store_true", help="print plain tsnap and the command of its first finding instead of verdicts")
    parser.add_argument("--table", action="store_true", help="print the table of tests/README.md")
    parser.add_argument("--list", action="store_true", help="list the incidents")
    parser.add_argument("-v", dest="verbose", action="store_true", help="show all findings")
    parser.add_argument("names", nargs="*", help="incidents to run")
    options = parser.parse_args(argv)
    options.tsnap_args = ""
    options.quiet_seconds = options.quiet_seconds or (30 if options.all else None)
    options.seconds = options.seconds or (5 if options.all or options.names else 3)
    options.tsnap, options.workload = os.path.abspath(options.tsnap), os.path.abspath(options.workload)
    return options


def chosen(options):
    if options.names:
        return [each for each in incident.TABLE
                if any(name == str(each.number) or fnmatch.fnmatch(each.__name__, name) for name in options.names)]
    return [each for each in incident.TABLE if each.often or options.all or options.list]


def findings(context, own, seconds):
    """(objects of a report, time of its end); own: of the incident's processes alone"""
    own = ["-r", "-p", ",".join(map(str, truth.children(os.getpid())))] if own else []
    tool = context.plain("--findings", "--json", "-d", seconds, *own)
    tool.finish_plain(0, harness.START_S + seconds + harness.STOP_S)
    ended = incident.now()
    return [json.loads(line) for line in tool.out.decode().splitlines()], ended


def plain_names(text):
    """The text with names of files and groups that a reader of another run can use, and without the kernel's builder."""
    text = re.sub(r"/tsnap-test-\d+", "/batch", re.sub(r"/tmp/tsnap-test-\w+", "/tmp/x", text))
    return re.sub(r"(Linux [\d.]+)-[^ ,]*", r"\1", text)


def on_terminal(size, command):
    """What the command writes on a terminal of that size."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=dict(os.environ, NO_COLOR="1")) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                written += os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
        os.close(ours)
        return written.decode().replace("\r\n", "\n"), process.wait()


def show(each, options, outer):
    """Prints what a user sees of an incident."""
    context = Context(options, outer)
    print("## %s %s\n" % (each.number, each.__doc__))
    try:
        each(context)
        harness.let_pass(WHOLE_S)
        print("# tsnap\n" + plain_names(on_terminal(SCREEN, [options.tsnap])[0]))
        command = findings(context, False, options.seconds)[0][0].get("command")
        if command:
            print("# %s\n%s" % (plain_names(command), plain_names(on_terminal(REST, [options.tsnap, *shlex.split(command)[1:]])[0])), flush=True)
    finally:
        context.end()


def run(each, options, outer):
    """(verdict, why)"""
    context = Context(options, outer)
    signal.alarm(LIMIT_S)
    try:
        told = each(context)
        objects, ended = findings(context, options.own and not each.whole, options.quiet_seconds or options.seconds if each.kind == "quiet" else options.seconds)
        found = incident.problems(objects, options.own, told.findings if each.kind == "incident" else told or ())
        if options.record:
            context.plain("-o", os.path.join(options.record, each.__name__), "-d", options.seconds, "-a", "-G",
                          RECORDED).finish_plain(0, harness.START_S + options.seconds + harness.STOP_S)
        if options.verbose:
            for one in incident.problems(objects, False):
                print("    %-12s %-8s %s%s" % (one["finding"], one["certainty"], one["text"], " <%s>" % one["chain"] if "chain" in one else ""))
        if each.kind == "incident":
            return incident.judged(told, found, ended, options.own, options.own and each.whole)
        return incident.judged_none(told, found)
    except harness.Skip as why:
        return SKIPPED, str(why)
    except harness.Failure as why:
        return NOTHING, "it could not be made, or tsnap failed: %s" % why
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return NOTHING, "%s: %s (%s:%d)" % (type(error).__name__, error, os.path.basename(where.filename), where.lineno)
    finally:
        signal.alarm(0)
        context.end()


def is_expected(each, verdict):
    if verdict in (RIGHT, SKIPPED):
        return True
    return bool(each.not_yet) and (verdict == POINTED or verdict == NOTHING and each.kind == "incident")


def host_is_busy():
    """True if other work has a fifth of the CPUs or more."""
    before = run_live.cpus_ticks()
    harness.let_pass(1)
    idle, whole = (now - then for now, then in zip(run_live.cpus_ticks(), before))
    return idle < 0.8 * whole


def run_each(options, outer):
    """[(incident, verdict, why)]"""
    results = []
    for each in chosen(options):
        began = time.monotonic()
        verdict, why = run(each, options, outer)
        if verdict == RIGHT and each.not_yet:
            why += " (no longer \"not yet: %s\")" % each.not_yet
        elif each.not_yet and is_expected(each, verdict):
            why += " (not yet: %s)" % each.not_yet
        results.append((each, verdict, why))
        print("%-7s %2s %-10s %s (%.1fs): %s" % (verdict, each.number or "", each.kind, each.__name__, time.monotonic() - began, why),
              flush=True)
    return results


def table_print(results):
    """As in tests/README.md."""
    print("| incident | verdict | what was said; or why it can't be right |\n| --- | --- | --- |")
    for each, verdict, why in sorted(results, key=lambda result: result[0].number):
        if each.kind == "incident":
            print("| %s %s | %s | %s |" % (each.number, each.__doc__.rstrip("."), verdict,
                                          plain_names(verdict != RIGHT and each.not_yet or why).replace("|", "\\|")))


def main(argv):
    options = parse(argv)
    if options.list:
        for each in chosen(options):
            print("%2s %-10s %-28s %s" % (each.number or "", each.kind, each.__name__, each.__doc__))
        return 0
    why = run_live.can_run(options)
    if why:
        print("skip: %s" % why)
        return harness.UNREADY
    if not options.own and host_is_busy():
        print("# this host has other work: --own")
        options.own = True
    signal.signal(signal.SIGALRM, run_live.on_alarm)
    signal.signal(signal.SIGTERM, run_live.on_term)
    with tempfile.TemporaryDirectory(prefix="tsnap-test-") as directory:
        os.chmod(directory, 0o711)
        outer = Context(options)
        try:
            if options.show:
                for each in chosen(options):
                    show(each, options, outer)
                return 0
            results = run_each(options, outer)
        finally:
            outer.end()
    if options.table:
        table_print(results)
    failed = sum(not is_expected(each, verdict) for each, verdict, _ in results)
    skipped = sum(verdict == SKIPPED for _, verdict, _ in results)
    print("%d passed, %d failed, %d skipped" % (len(results) - failed - skipped, failed, skipped))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
