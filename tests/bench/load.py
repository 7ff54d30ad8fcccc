"""Cost of tsnap under load: many records, a high rate, several samplers, processes without end."""
import contextlib
import re
import statistics
import subprocess
import tempfile
import time

from recorder import Recorder
from sampler import LIMIT_S, Crowd, Program, Sampler, end_with_us, operation_ns, quartiles, say
from table import Row

SHARERS = 10
# Each new sleeper is classified once, as working or idle: so many in a second; after some more time all are classified.
JUDGED_A_SECOND, JUDGED_LATER_S = 50000, 20


def bench_records(options):
    """CPU per sample with records of threads that do not exist, in the array of a tsnap that has enough capacity for them."""
    rows = []
    sleeper = subprocess.Popen(["sleep", str(LIMIT_S * 10)], preexec_fn=end_with_us)
    for count, name in ((100000, "100 000"), (1000000, "1 000 000"))[:1 if options.quick else 2]:
        for rate in (1, 20):
            say("records: %d at %d Hz" % (count, rate))
            with Sampler(options, "-d", 100000, "-F", rate, "--max-threads", count + 100000) as sampler:
                flood = subprocess.run([options.build + "/tests/bench/flood", sampler.pids()[-1], str(count), str(sleeper.pid)],
                                       stdout=subprocess.PIPE)
                words = "CPU per sample, %s records of sleeping threads, %d Hz" % (name, rate)
                if flood.returncode == 77:
                    rows.append(Row(words, "tsnap", None, "ms", aim=2, remark="the array is not in shared memory here"))
                    continue
                flood.check_returncode()
                first, _ = sampler.scan_cost(3 if options.quick else count / JUDGED_A_SECOND + JUDGED_LATER_S, rate, False)
                cost, _ = sampler.scan_cost(max(options.scan_s, 2 / rate), rate, False)
                rows.append(Row(words, "tsnap", 1000 * cost, "ms", aim=2,
                                remark="%.1f ms while they are new" % (1000 * first)))
    sleeper.kill()
    sleeper.wait()
    return rows


def bench_rate(options):
    """CPU of 1000 scans a second: of one busy process, and of a host with 5000 threads."""
    rows = []
    with Crowd(options, 5000) as crowd:
        for words, args, aim in (("CPU at 1000 Hz, one process of 250 threads (-p)", ["-p", crowd.child()], 20),
                                 ("CPU at 1000 Hz, all of 5000 threads", [], None)):
            say("rate: " + words)
            report = subprocess.run([options.tsnap, "--self", "-F", "1000", "-d", str(options.scan_s)] + options.args.split() + args,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True).stdout.decode()
            rate = float(re.search(r"([\d.]+) Hz \(-F 1000\)", report).group(1))
            cpu = float(re.search(r"^tsnap itself in .*, ([\d.]+) % of one CPU", report, re.M).group(1))
            rows.append(Row(words, "tsnap", cpu, "%", aim=aim, remark="%.1f scans a second" % rate))
    return rows


@contextlib.contextmanager
def bpf_file_system():
    """Mounts a BPF file system in a mount namespace of its own; yields the words in front of a command that is to run there, or None."""
    place = subprocess.Popen(["unshare", "--mount", "sh", "-c", "mount -t bpf bpf /sys/fs/bpf && echo ready; read nothing"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield ["nsenter", "--target", str(place.pid), "--mount", "--root", "--wd"] if place.stdout.readline() == b"ready\n" else None
    finally:
        place.stdin.close()
        place.wait(LIMIT_S)
        place.stdout.close()


def bench_share(options):
    """The same loop without tsnap, next to one, and next to one that shares its probes with nine others; interleaved. Measures CPU time of
    the loop, because ten samplers need the CPU, too, which is another cost than that of the probes."""
    words = {1: "CPU time of a pipe round trip on one core, one sampler at 20 Hz",
             SHARERS: "the same beside %d samplers on the probes of one" % SHARERS}
    with bpf_file_system() as prefix:
        if not prefix:
            return [Row(words[SHARERS], "tsnap", None, "ratio", remark="needs a bpf file system")]
        ratios, used = {1: [], SHARERS: []}, {1: [], SHARERS: []}
        before = operation_ns(options, "pipe_same", options.run_ms, "cpu")
        for turn in range(options.rounds):
            say("share: round %d of %d" % (turn + 1, options.rounds))
            for count in ratios:
                with contextlib.ExitStack() as stack:
                    samplers = [stack.enter_context(Sampler(options, "-d", 100000, *how, prefix=prefix))
                                for how in [["--share", "bench"]] + [["--attach", "bench"]] * (count - 1)]
                    start, cpu = time.monotonic(), sum(sampler.cpu_s() for sampler in samplers)
                    ns = operation_ns(options, "pipe_same", options.run_ms, "cpu")
                    cpu = sum(sampler.cpu_s() for sampler in samplers) - cpu
                    used[count].append(cpu / (time.monotonic() - start))
                after = operation_ns(options, "pipe_same", options.run_ms, "cpu")
                ratios[count].append(ns / ((before + after) / 2))
                before = after
    rows = []
    for count, found in ratios.items():
        low, middle, high = quartiles(found)
        rows.append(Row(words[count], "tsnap", middle, "ratio", low, high,
                        remark="%.1f %% of one CPU for sampling" % (100 * statistics.median(used[count]))))
    return rows


class Churn(Program):
    """Starts so many processes that end at once, on every CPU that the bench may use."""

    def __init__(self, options, count):
        super().__init__([options.operations, "churn", str(count)])

    def await_up(self):
        self.up_s = 0


RECORDED_HZ = 200  # at this rate the number of scans of 24 hours at 1 Hz takes 7 minutes


def bench_churn(options):
    """Memory while millions of processes start and end: of a tsnap that writes rows, and of one that records and removes old files."""
    millions, steps = (0.02, 2) if options.quick else (10, 10)
    seen = []
    with tempfile.TemporaryDirectory() as directory, Sampler(options, "-d", 100000) as sampler, \
            Recorder(options, directory, "-a", "-F", RECORDED_HZ, "--keep-bytes", "4M") as recorder:
        began = time.monotonic()
        for step in range(steps):
            say("churn: step %d of %d" % (step + 1, steps))
            with Churn(options, int(millions * 1e6 / steps)) as churn:
                if churn.process.wait(3600):
                    raise subprocess.CalledProcessError(churn.process.returncode, "operations churn")
            time.sleep(1)
            seen.append([size / 1e6 for size in (sampler.memory()[0], sum(sampler.kernel_memory()), recorder.memory()[0])])
        scans = RECORDED_HZ * (time.monotonic() - began)
    first = "%%.1f MB after the first %g million" % (millions / steps)
    rows = []
    for at, words, aim in ((0, "resident memory after %g million processes" % millions, 20),
                           (2, "resident memory of a recorder after %g million processes and %.0f thousand scans" % (millions, scans / 1000), None)):
        sizes = [step[at] for step in seen]
        # a recorder's memory is that of a frame's rows, which are many at this rate; the aim is that it does not grow
        rows.append(Row(words, "tsnap", sizes[-1], "MB", min(sizes), max(sizes), aim or round(1.1 * sizes[0], 1), first % sizes[0]))
    return rows + [Row("kernel memory after %g million processes" % millions, "tsnap", seen[-1][1], "MB", aim=16, remark=first % seen[0][1])]
