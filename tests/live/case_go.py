"""Stacks of Go's programs without symbols: functions have names, and the stacks of Go's own threads are whole."""
import os

from case_stacks import LATE_FILE, directory_of, expect_chains, frames_of, programs_start, since_whole
from case_stack_trouble import SHORT, report
from case_stack_truth import tids_of
from harness import Findings, Skip, case, check, rows_of

COLUMNS = "comm,state,syscall,ustack,ufunc,stack"
# where Go's runtime began the thread, switched to its own stack, or began the goroutine
OUTERMOST = {"runtime.mcall", "runtime.mstart", "runtime.clone", "runtime.systemstack", "runtime.goexit", "runtime.rt0_go"}


@case
def go_without_symbols(ctx):
    """Of programs that were linked with -s -w, also position-independent ones: every frame has its function's name, no stack is lost."""
    programs = [name for name in ("chains_gostripped", "chains_gopie") if os.path.exists(os.path.join(directory_of(ctx), name))]
    if not programs:
        raise Skip("no Go here")
    started = programs_start(ctx, programs)
    pids = [chain.process.pid for _, chain in started]
    tool = ctx.stream("-a", "-F", 10, "-d", 4, "-p", ",".join(str(pid) for pid in pids), columns=COLUMNS)
    rows = tool.finish(0, 60)
    find = Findings()
    expect_chains(find, started, rows, late=LATE_FILE in tool.err)
    threads = 0
    for words, chain in started:
        for tid in tids_of(chain.process.pid):
            mine = since_whole([row for row in rows_of(rows, tid) if row["ustack"] and row["state"] == "S"])[-3:]
            threads += bool(mine)
            for row in mine:
                frames = frames_of(row)
                find.expect(not any("+0x" in name for name in frames), "%s: no name: %s", words, " ".join(frames))
                find.expect(frames[-1] in OUTERMOST, "%s: ends at %s", words, " ".join(frames))
    find.close()
    check(threads >= 3 * len(started), "%d threads of %d programs", threads, len(started))
    _, missed, text = report(ctx, pids)
    check(LATE_FILE in text or not missed.get(SHORT), "%s", text)
