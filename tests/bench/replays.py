"""Cost of looking back: a report over ten million recorded samples, and DuckDB's answer from the same files."""
import glob
import json
import os
import shutil
import subprocess
import tempfile
import time

from sampler import LIMIT_S, NotHere, end_with_us, quartiles, say
from table import Row

SCANS = 2000  # scans of 5000 threads, see recorded.c
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
