"""A tsnap that runs for long: its rows stay true, and its use of resources does not grow with time."""
import os

import soak
from harness import Findings, case

SECONDS = int(os.environ.get("TSNAP_SOAK_S", "3600"))
MORE_KB = 4096   # memory that the end of a run may take more than its first half
MORE_FILES = 32
START_LOST_S = 10  # time that the start may take, without scans
END_S = 60

@case(alone=True, thorough=True)
def soak_of_load(ctx):
    """While stress-ng, forks and new threads run for an hour (TSNAP_SOAK_S), sampled with stacks at 20 Hz, never two threads are ON on one
    CPU, each thread's exact times are the elapsed time within 1 %, rows are whole, memory and descriptors stay the same."""
    run, find = soak.Soak(ctx.options.tsnap, SECONDS, ctx.temporary()), Findings()
    for name, value in run.facts():
        print("# %s: %s" % (name, value))
    print("# " + run.words.replace("\n", "\n# "))
    told, taken, lives = run.told, run.taken, run.told.long_lives()
    find.expect(run.code == 0, "exit code %d: %s", run.code, run.words)
    find.expect(told.scans > 0.8 * soak.HZ * (SECONDS - START_LOST_S), "%d scans in %d s", told.scans, SECONDS)
    find.expect(not told.broken, "%d rows are not whole", told.broken)
    find.expect(not told.crowded, "%d scans have two threads ON on one CPU", told.crowded)
    off = [life for life in lives if life.apart > 0.01]
    find.expect(len(lives) > 5 and not off, "times of %d of %d threads are not the time: %s", len(off), len(lives), [str(life) for life in off][:8])
    memory, before = taken.most(0, 0.75, 1), taken.most(0, 0.25, 0.5)
    find.expect(memory - before < MORE_KB, "%d KB of memory, %d before", memory, before)
    files, before = taken.most(1, 0.75, 1), taken.most(1, 0.25, 0.5)
    find.expect(files - before < MORE_FILES, "%d descriptors, %d before", files, before)
    find.close()


soak_of_load.limit_s = SECONDS + END_S  # instead of run_live.LIMIT_S
