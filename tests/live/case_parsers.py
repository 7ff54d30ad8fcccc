"""The processes that read files for tsnap are killed at each of their steps: no sample is lost, each exit is counted, nothing is left."""
import os
import shutil
import signal
import subprocess
import time

import truth
from case_faults import left_over
from case_stacks import chain_programs, directory_of, frames_of
from harness import SLOW, START_S, STOP_S, Findings, Skip, case, let_pass, rows_of, settle, wait_until

STEPS = 40  # a little more than the system calls of a parser that reads a new file
HZ = 20
WATCHED_S = 5


def is_gone(pid):
    return truth.Thread(pid).letter in (None, "Z")


def kill_at(ctx, pid, step):
    """A process (strace) that kills process pid as it begins its step-th system call from now on."""
    strace = subprocess.Popen([shutil.which("strace"), "-o", "/dev/null", "-e", "trace=all", "-e", "inject=all:signal=KILL:when=%d" % step, "-p",
                               str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ctx.at_end(strace.kill)
    wait_until(lambda: strace.poll() is not None or truth.Thread(pid).status_number("TracerPid"), START_S, "strace")
    return strace


@case(alone=True, thorough=True)
def parsers_killed_at_each_step(ctx):
    """Parsers are killed at their first system call for a new file, at the second and so on: scans and samples are whole, the file's
    functions are known shortly afterwards, and the footer counts the parsers that died."""
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    directory, own, find, before = directory_of(ctx), ctx.temporary(), Findings(), set(left_over())
    spin = ctx.workload("spin")
    tool = ctx.stream("-a", "-F", HZ, "--filter", "comm=spin || comm~chains", columns="ustack,stack")
    tool.wait_scans(HZ)
    began, killed, chains = time.monotonic(), 0, []
    for step in range(1, STEPS + 1):
        for turn in (0, 1):
            parsers = tool.parsers()
            victim = parsers[turn % len(parsers)] if parsers else None
            strace = victim and kill_at(ctx, victim, step)
            copy = os.path.join(own, "chains_%d_%d" % (step, turn))
            shutil.copy2(os.path.join(directory, "chains_gcc"), copy)
            chain = chain_programs.Chain(copy, "recursion", directory)
            ctx.started.append(chain)
            chains.append((step, chain))
            seen = len(tool.rows())
            settle(lambda chain=chain, seen=seen: any(chain_programs.contains(frames_of(row), chain.expected)
                                                      for row in rows_of(tool.rows()[seen:], chain.tid)), WATCHED_S * SLOW)
            if strace:
                killed += is_gone(victim)
                strace.terminate()  # it detaches from a parser that it has not killed
                strace.wait(STOP_S)
            os.unlink(copy)
            chain.process.kill()
    took, rows = time.monotonic() - began, tool.interrupt()
    scans = len(tool.scans())
    waited = tool.missed("late scans (tsnap waited for a CPU")
    find.expect(scans + waited > 0.9 * HZ * took, "%d scans, %d late ones, in %.1f s", scans, waited, took)
    find.expect(len(rows_of(rows, spin.tid)) == scans, "%d rows of the spinning thread in %d scans", len(rows_of(rows, spin.tid)), scans)
    for step, chain in chains:
        known = [row for row in rows_of(rows, chain.tid) if chain_programs.contains(frames_of(row), chain.expected)]
        find.expect(known, "killed at step %d: the functions of its program never were known: %s", step,
                    [frames_of(row)[:4] for row in rows_of(rows, chain.tid)[-1:]])
    lost = tool.missed("that read files for stacks and ended")
    find.expect(killed >= STEPS / 2, "only %d of %d were killed", killed, 2 * STEPS)
    # no request notices a parser that died last
    find.expect(killed - 2 <= lost <= killed, "%d died, counted are %d: %s", killed, lost, tool.err)
    settle(lambda: not set(left_over()) - before, STOP_S)
    find.expect(not set(left_over()) - before, "left over: %s", sorted(set(left_over()) - before))
    print("# %d killed in %d rounds, %d counted" % (killed, len(chains), lost))
    find.close()


def killed_all(tool):
    for parser in tool.parsers():
        try:
            os.kill(parser, signal.SIGKILL)
        except ProcessLookupError:
            pass


@case(alone=True, thorough=True)
def parsers_killed_at_both_ends(ctx):
    """Parsers are killed some ms after they were begun, or after tsnap got SIGTERM: a report or whole rows come, and nothing is left."""
    find, before, spin = Findings(), set(left_over()), ctx.workload("spin")
    for ms in range(0, 40, 4):
        report = ctx.plain("-a", "--stacks", "-F", HZ, "-d", 0.5)
        wait_until(lambda report=report: report.parsers() or report.code is not None, START_S, "a parser")
        let_pass(ms / 1000)
        killed_all(report)
        code = report.wait(START_S + STOP_S)
        find.expect(code == 0 and b"AVG_THR" in report.out, "%d ms after they began: exit code %d: %s", ms, code, report.err)
        stream = ctx.stream("-a", "-F", HZ, columns="stack")
        stream.wait_scans(2)
        stream.signal(signal.SIGTERM)
        let_pass(ms / 4000)
        killed_all(stream)
        rows = stream.finish()
        find.expect(len(rows_of(rows, spin.tid)) == len(stream.scans()), "%d ms after SIGTERM: %d rows of the spinning thread in %d scans", ms / 4,
                    len(rows_of(rows, spin.tid)), len(stream.scans()))
    settle(lambda: not set(left_over()) - before, STOP_S)
    find.expect(not set(left_over()) - before, "left over: %s", sorted(set(left_over()) - before))
    find.close()
