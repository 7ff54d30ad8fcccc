"""Cost of looking back: a report over ten million recorded samples, and DuckDB's answer from the same files; what was wrong in them."""
import glob
import json
import os
import shutil
import subprocess
import tempfile
import time

from recorder import Recorder
from sampler import LIMIT_S, Held, NotHere, end_with_us, quartiles, say
from table import Row

SCANS = 2000  # scans of 5000 threads, see recorded.c
SAMPLES = 10 ** 7  # of a recording that repeats a real one, see repeated.c
CROWD = ("served threads=120", "chained threads=16", "service threads=12 dir=%s", "mixed bursts=20 pairs=4 spins=1 dir=%s")
COLUMNS = "state,user,comm,syscall"
DUCKDB = "@duckdb/node-api@1.5.6-r.1"  # as tests/live/case_schema.py has it
CPUS = sorted(os.sched_getaffinity(0))[:2]  # both programs run on two CPUs, because both have two threads
# Prints the number of samples, and seconds and CPU seconds of the query alone, without node's start.
ASK = """
import { DuckDBInstance } from '@duckdb/node-api';
const connection = await (await DuckDBInstance.create(':memory:', { threads: '2' })).connect();
const began = process.hrtime.bigint(), cpu = process.cpuUsage();
const answer = await connection.runAndReadAll(`SELECT %s, count(*), sum(weight_us) AS us
  FROM read_csv('${process.argv[2]}') GROUP BY ALL ORDER BY us DESC`);
const seconds = Number(process.hrtime.bigint() - began) / 1e9, used = process.cpuUsage(cpu);
const samples = answer.getRows().reduce((sum, row) => sum + Number(row[4]), 0);
console.log(JSON.stringify([samples, seconds, (used.user + used.system) / 1e6]));
""" % ", ".join('"%s"' % name for name in COLUMNS.split(","))


def on_cpus():
    end_with_us()
    os.sched_setaffinity(0, CPUS)


def run(argv, directory):
    """Runs a program to its end; returns (output, seconds, CPU seconds, bytes resident at most)."""
    with tempfile.TemporaryFile() as output:
        began = time.monotonic()
        process = subprocess.Popen(argv, cwd=directory, stdin=subprocess.DEVNULL, stdout=output, preexec_fn=on_cpus)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - began
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, argv[:2])
        output.seek(0)
        return output.read(), seconds, used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss


def duckdb_get(directory):
    if not shutil.which("npm") or subprocess.run(["npm", "install", "--silent", "--no-save", DUCKDB], cwd=directory, timeout=LIMIT_S,
                                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        raise NotHere("npm is not here, or can't get " + DUCKDB)
    with open(directory + "/ask.mjs", "w", encoding="utf-8") as file:
        file.write(ASK)


def duckdb_ask(directory, files, samples):
    """(seconds, CPU seconds, bytes resident at most) of DuckDB; resident bytes include node's."""
    output, _, _, resident = run(["node", "ask.mjs", files], directory)
    found, seconds, cpu = json.loads(output)
    if found != samples:
        raise NotHere("DuckDB has %d samples of %d" % (found, samples))
    return seconds, cpu, resident


def unpack(recording, directory):
    os.mkdir(directory)
    for path in glob.glob(recording + "/*.samples.csv.zst"):
        with open("%s/%s" % (directory, os.path.basename(path)[:-len(".zst")]), "wb") as file:
            subprocess.run(["zstd", "-dqc", path], stdout=file, check=True)


def rows_of(words, ours, theirs):
    """ours, theirs: (seconds, CPU seconds, bytes resident) of each round."""
    rows = []
    for at, what in (0, "time"), (1, "CPU time"):
        low, middle, high = quartiles([our[at] / their[at] for our, their in zip(ours, theirs)])
        own, other = (quartiles([one[at] for one in runs])[1] for runs in (ours, theirs))
        rows.append(Row("%s of %s, to DuckDB's" % (what, words), "tsnap", middle, "ratio", low, high, aim=0.5,
                        remark="%.2f s, DuckDB %.2f s" % (own, other)))
    rows.append(Row("resident memory at most of %s" % words, "tsnap", max(our[2] for our in ours) / 1e6, "MB", aim=64,
                    remark="DuckDB in node: %.0f MB" % (max(their[2] for their in theirs) / 1e6)))
    return rows


def bench_replay(options):
    with tempfile.TemporaryDirectory() as directory:
        packed, plain = directory + "/packed", directory + "/plain"
        say("replay: a recording is made")
        made = subprocess.run([options.build + "/tests/bench/recorded", packed, str(SCANS // 100 if options.quick else SCANS)],
                              stdout=subprocess.PIPE, check=True)
        samples, rows = int(made.stdout), []
        unpack(packed, plain)
        try:
            duckdb_get(directory)
        except NotHere as why:
            return [Row("time of a report over recorded samples, to DuckDB's", "tsnap", None, "ratio", aim=0.5, remark=str(why))]
        for words, recorded, files in ((".csv.zst", [packed], packed + "/*.samples.csv.zst"),
                                       (".csv", sorted(glob.glob(plain + "/*")), plain + "/*.csv")):
            ours, theirs = [], []
            for turn in range(options.rounds):
                say("replay: %s, round %d of %d" % (words, turn + 1, options.rounds))
                ours.append(run([options.tsnap, "-a", "-g", COLUMNS, "--replay", *recorded], directory)[1:])
                theirs.append(duckdb_ask(directory, files, samples))
            rows += rows_of("a report over %.3g million recorded samples, %s" % (samples / 1e6, words), ours, theirs)
        return rows


def record(options, directory, crowd=CROWD):
    """Records threads that wait in many ways, for all that a recorder has by default."""
    if crowd:
        with Held(options, *crowd[0].replace("%s", os.path.dirname(directory)).split()):
            record(options, directory, crowd[1:])
        return
    with Recorder(options, directory, "-F", 20) as recorder:
        time.sleep(options.scan_s * 12)
        recorder.process.terminate()
        recorder.process.wait(LIMIT_S)


def bench_findings(options):
    """--replay without other options: findings of the whole, heat map, worst minutes."""
    with tempfile.TemporaryDirectory() as directory:
        say("replayed findings: a recording is made")
        record(options, directory + "/short")
        made = subprocess.run([options.build + "/tests/bench/repeated", directory + "/long", directory + "/short",
                               str(SAMPLES // 100 if options.quick else SAMPLES)], stdout=subprocess.PIPE, check=True)
        samples, runs = int(made.stdout), []
        for turn in range(options.rounds):
            say("replayed findings: round %d of %d" % (turn + 1, options.rounds))
            runs.append(run([options.tsnap, "--replay", directory + "/long"], directory)[1:])
        low, middle, high = quartiles([seconds for seconds, _, _ in runs])
        words = "findings, heat map and worst minutes of %.3g million recorded samples" % (samples / 1e6)
        return [Row(words, "tsnap", middle, "s", low, high, aim=5,
                    remark="%.2f s of CPU time" % quartiles([cpu for _, cpu, _ in runs])[1]),
                Row("samples of a recording in which findings are found in a second", "tsnap", samples / middle, "samples/s"),
                Row("resident memory at most of " + words, "tsnap", max(resident for _, _, resident in runs) / 1e6, "MB")]
