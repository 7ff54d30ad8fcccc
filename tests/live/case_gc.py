"""A JVM that stops its threads to collect garbage: how long, against the JVM's own log of its stops; and JVMs that hardly stop."""
import glob
import json
import os
import re
import subprocess
import time

from case_findings import begin, end, problems
from case_record import rows_of_files
from harness import SLOW, START_S, STOP_S, case, check
from parts import program

SECONDS = 4

# Threads that make garbage all the time, or with naps, and keep so many pieces of a kilobyte each.
JAVA = """
import java.util.*;
public class Garbage {
    public static void main(String[] args) throws Exception {
        int keep = Integer.parseInt(args[0]);
        for (int i = 0; i < 2; i++)
            new Thread(() -> {
                List<byte[]> kept = new ArrayList<>();
                long made = 0;
                Random random = new Random(1);
                while (true) {
                    byte[] piece = new byte[1000];
                    if (args.length > 1 && ++made % 1000 == 0)
                        try { Thread.sleep(5); } catch (InterruptedException e) { return; }
                    if (kept.size() < keep) kept.add(piece); else kept.set(random.nextInt(keep), piece);
                }
            }).start();
        System.out.println("ready");
    }
}
"""
KEPT = 15000  # of two threads, they fill half of a heap of 64 MB
STOP = re.compile(r"^\[([\d.]+)s\].* Total: +(\d+) ns", re.M)  # seconds since the JVM began, at its end


class Jvm:
    def __init__(self, ctx, keep, *options, java=None, naps=()):
        self.directory = ctx.temporary()
        with open(self.directory + "/Garbage.java", "w") as file:
            file.write(JAVA)
        compiler = program("javac", "default-jdk-headless")
        subprocess.run([compiler, "-d", self.directory, self.directory + "/Garbage.java"], check=True, capture_output=True)
        self.log = self.directory + "/stops"
        self.begun = time.monotonic()
        self.process = subprocess.Popen([java or program("java", "default-jdk-headless"), "-Xlog:safepoint:file=" + self.log, *options, "-cp", self.directory,
                                         "Garbage", str(keep), *naps], stdout=subprocess.PIPE)
        check(self.process.stdout.readline() == b"ready\n", "no JVM")
        time.sleep(1)

    def stops(self, seconds):
        """By the JVM's log, of the last seconds: number of stops, their share of the time, and that of the longest one."""
        with open(self.log) as file:
            stops = [(float(at), int(ns) / 1e9) for at, ns in STOP.findall(file.read())]
        last = time.monotonic() - self.begun
        kept = [(at, took) for at, took in stops if last - seconds < at]
        return len(kept), sum(took for _, took in kept) / seconds, max((took for _, took in kept), default=0) / seconds

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def gc_of(ctx, jvm):
    objects = end(begin(ctx, None, seconds=SECONDS), SECONDS)[0]
    return next((told for told in problems(objects) if told["finding"] == "gc" and told["culprits"][0]["pid"] == jvm.process.pid), None)


@case
def gc_of_small_heaps(ctx):
    """A heap that is too small: the share of the time in which its threads are stopped is that of the JVM's log."""
    for options in (("-XX:+UseSerialGC",), ("-XX:+UseG1GC",), ("-XX:+UseParallelGC",)):
        jvm = Jvm(ctx, KEPT, "-Xmx64m", *options)
        try:
            told = gc_of(ctx, jvm)
            count, share, longest = jvm.stops(told["of_us"] / 1e6 if told else SECONDS)
            check(share > 0.15, "%s: the heap is large enough: stopped for %.0f %% of the time", options, share * 100)
            check(told, "%s: no finding, though stopped for %.0f %% of the time", options, share * 100)
            print("# %s; the JVM's log: %.0f %%, %d stops" % (told["text"], share * 100, count))
            # the longest stop may have begun before the window, or ended after the report
            check(abs(told["stopped_us"] / told["of_us"] - share) < 0.1 + longest, "%s: %.2f, not %.2f", options, told["stopped_us"] / told["of_us"], share)
            check(told["gc_us"] <= told["stopped_us"] * 1.05, "%s: collected for %d us, stopped for %d", options, told["gc_us"], told["stopped_us"])
            # a stop may be for a young and a full collection
            check(0.5 * count <= told["collections"] <= 2.2 * count + 2, "%s: %d collections, %d stops", options, told["collections"], count)
            check(0.5 <= told["of_us"] / 1e6 / SECONDS <= 1.5 * SLOW, "%s: known for %d us", options, told["of_us"])
            threads = len(glob.glob("/proc/%d/task/*" % jvm.process.pid))
            check(3 <= told["process_threads"] < threads, "%d Java threads of %d", told["process_threads"], threads)
        finally:
            jvm.end()


@case(alone=True)
def gc_in_recording(ctx):
    """The findings of a recording know of a JVM's stops, too, of which no sample tells, and so does a replay of the whole."""
    jvm = Jvm(ctx, KEPT, "-Xmx64m", "-XX:+UseSerialGC")
    try:
        directory = ctx.temporary()
        ctx.plain("-o", directory, "-d", SECONDS * SLOW).finish_plain(0, START_S + SECONDS * SLOW + STOP_S)
        found = [row for row in rows_of_files(directory, "findings") if row["finding"] == "gc"]
        check(any("java %d" % jvm.process.pid in row["text"] for row in found), "%s", found)
        print("# %s" % found[-1]["text"])
        replay = ctx.plain("--replay", directory, "--findings", "--json")
        replay.finish_plain(0, START_S + STOP_S)
        told = [told for told in map(json.loads, replay.out.splitlines()) if told["finding"] == "gc" and "java %d" % jvm.process.pid in told["text"]]
        check(len(told) == 1 and told[0]["text"] == found[-1]["text"] and told[0]["culprits"][0]["name"] == "java", "%s", told)
        check(0.5 < told[0]["recorded_us"] / 1e6 / (SECONDS * SLOW) < 1.5 and told[0]["found_us"] == told[0]["recorded_us"], "%s", told[0])
        replay = ctx.plain("--replay", directory, "--findings")
        replay.finish_plain(0, START_S + STOP_S)
        check(re.search(r"in (\d+) of \1 s: ", replay.out.decode()), "%s", replay.out.decode())
    finally:
        jvm.end()


@case
def gc_that_stops_nobody(ctx):
    """A heap with room to spare, a collector that works beside the threads, and a JVM that shows nobody its counters: no finding."""
    newer = sorted(glob.glob("/usr/lib/jvm/temurin-2*/bin/java"))
    kinds = [(10, ("-XX:+UseSerialGC", "-Xmx400m", "-Xmn300m"), None), (KEPT, ("-XX:+UseSerialGC", "-Xmx64m", "-XX:+PerfDisableSharedMem"), None)]
    if newer:
        kinds.append((KEPT, ("-XX:+UseZGC", "-Xmx200m"), newer[-1]))
    for keep, options, java in kinds:
        jvm = Jvm(ctx, keep, *options, java=java, naps=("naps",) if keep < KEPT else ())
        try:
            told = gc_of(ctx, jvm)
            _, share, _ = jvm.stops(SECONDS)
            print("# %s: stopped for %.1f %% of the time" % (options, share * 100))
            check(not told, "%s: %s", options, told and told["text"])
            check(share < 0.08 or "Perf" in options[-1], "%s: stopped for %.0f %% of the time", options, share * 100)
        finally:
            jvm.end()


# A goroutine that makes garbage, and one that works in loops of some milliseconds without a call. It tells every 50 ms, by the runtime's own
# function, how long it was stopped, and how often garbage was collected.
GO = """
package main
import ("fmt"; "runtime"; "time")
type piece struct { left, right *piece }
func tree(depth int) *piece {
	if depth == 0 { return &piece{} }
	return &piece{tree(depth - 1), tree(depth - 1)}
}
var worked int
func work() {
	for i := 0; i < 10000000; i++ { worked += i }
	runtime.Gosched()
}
func main() {
	go func() { for { tree(10) } }()
	go func() { for { work() } }()
	for range time.Tick(50 * time.Millisecond) {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		fmt.Println(time.Now().UnixNano(), stats.PauseTotalNs, stats.NumGC)
	}
}
"""


class GoProgram:
    def __init__(self, ctx, **environment):
        directory = ctx.temporary()
        with open(directory + "/main.go", "w") as file:
            file.write(GO)
        made = subprocess.run([program("go", "golang-go"), "build", "-o", directory + "/garbage", directory + "/main.go"],
                              env=dict(os.environ, GO111MODULE="off"), capture_output=True, text=True, check=False)
        check(made.returncode == 0, "go build: %s", made.stderr)
        self.told = directory + "/told"
        with open(self.told, "w") as told:
            self.process = subprocess.Popen([directory + "/garbage"], stdout=told, env=dict(os.environ, **environment))
        time.sleep(1)

    def stops(self, seconds):
        """By the program, of the last seconds: collections, their share of the time, and that of the longest time without a line."""
        with open(self.told) as file:
            lines = [[int(word) for word in line.split()] for line in file if line.endswith("\n")]
        lines = [line for line in lines if line[0] >= time.time_ns() - seconds * 1e9]
        check(len(lines) > 2, "the program tells nothing")
        first, last = lines[0], lines[-1]
        gap = max(after[0] - before[0] for before, after in zip(lines, lines[1:]))
        return last[2] - first[2], (last[1] - first[1]) / (last[0] - first[0]), gap / (last[0] - first[0])

    def end(self):
        self.process.kill()
        self.process.wait()


@case(alone=True)
def gc_of_go(ctx):
    """A Go program whose collector has to wait for a goroutine that does not stop, as it may not be interrupted in a loop (before Go 1.14 none could
    be): share and number are those that the runtime tells the program. Where it may be, there is no finding."""
    for environment in ({"GODEBUG": "asyncpreemptoff=1"}, {}):
        goes = GoProgram(ctx, **environment)
        try:
            told = gc_of(ctx, goes)
            count, share, gap = goes.stops(told["of_us"] / 1e6 if told else SECONDS)
            print("# %s; the program: %.1f %%, %d stops" % (told["text"] if told else "not found", share * 100, count))
            if not environment:
                # a busy host makes stops longer
                check(not told or share > 0.08, "%s, and the program says %.1f %%", told and told["text"], share * 100)
                check(share < 0.08 or os.getloadavg()[0] > os.cpu_count(), "stopped for %.0f %% of the time", share * 100)
                continue
            check(share > 0.15, "stopped for %.0f %% of the time only", share * 100)
            check(told, "no finding, though stopped for %.0f %% of the time", share * 100)
            check(abs(told["stopped_us"] / told["of_us"] - share) < 0.1 + gap, "%.2f, not %.2f", told["stopped_us"] / told["of_us"], share)
            check(0.7 * count - 3 <= told["collections"] <= 1.4 * count + 3, "%d collections, not %d", told["collections"], count)
            check(told["process_threads"] == len(glob.glob("/proc/%d/task/*" % goes.process.pid)), "%d threads", told["process_threads"])
        finally:
            goes.end()
