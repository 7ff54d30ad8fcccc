"""Cost of many hosts' recordings in ClickHouse: rows and inserts that a server takes through packaging/schema/ship, and bytes of a row."""
import collections
import glob
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import time

from replays import run
from sampler import LIMIT_S, quartiles, read, say
from table import Row

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "live"))
import clickhouse  # noqa: E402  pylint: disable=wrong-import-position
from harness import Context, Failure, Skip, wait_until  # noqa: E402  pylint: disable=wrong-import-position

SCHEMA = os.path.join(HERE, "..", "..", "packaging", "schema")
SCANS = 300  # one scan a second: five minutes
BULK_FILES = 2  # files, of the eight hours that recorded.c makes
HOSTS = 20
HEAD = struct.Struct("<II8sIHHqqQQQ")  # see src/recording/frame.h; ship does not ask for its checksum
THREADS_OF_HOST = 80  # threads of a host, of the 5000 that recorded.c makes; one of eight is active
ZSTD = """<compression><case><min_part_size>0</min_part_size><min_part_size_ratio>0</min_part_size_ratio><method>zstd</method></case>
</compression>"""
# server, replica, ship: CPU seconds of the server that gets the rows, of its replica, and of ship with all that it starts; wall: seconds
# until ship ends; writes: transactions of ZooKeeper
Cost = collections.namedtuple("Cost", "server replica ship wall writes")


def packed(path, header_line, lines):
    """Writes a recorded file of two frames: the header line, and the rows."""
    with open(path, "wb") as file:
        for flags, text in ((1, header_line.encode()), (0, "".join(lines).encode())):
            frame = subprocess.run(["zstd", "-qc"], input=text, stdout=subprocess.PIPE, check=True).stdout
            file.write(HEAD.pack(0x184D2A5E, HEAD.size - 8, b"tsnaprec", 1, 0, flags, 0, 0, len(frame), len(text), 0) + frame)


def hosts_of(directory, count):
    """(header line, [rows of each host]) from a recording of 5000 threads: each host has 80, and a scan each second shows the active ones."""
    header_line, hosts = "", [[] for _ in range(count)]
    scan, before = -1, None
    for path in sorted(glob.glob(directory + "/*.samples.csv.zst")):
        header_line, *rows = subprocess.run(["zstd", "-dqc", path], stdout=subprocess.PIPE, check=True,
                                        universal_newlines=True).stdout.splitlines(True)
        for row in rows:
            timestamp, _, tid, _, state, _ = row.split(",", 5)
            scan, before = scan + (timestamp != before), timestamp
            host = (int(tid) - 1000) // 7 // THREADS_OF_HOST
            if state != '"S"' and host < len(hosts):
                hosts[host].append(second_of(scan) + ",1000000," + row.split(",", 2)[2])
    return header_line, hosts


def second_of(scan):
    return '"2026-11-20T16:%02d:%02d.000000Z"' % divmod(scan, 60)


def hosts_write(directory, recording, name, seconds):
    """Writes what each host has recorded in so many seconds, as files of the hour; returns the number of rows of samples."""
    header_line, hosts = recording
    os.mkdir(directory)
    scans = ["%s,1000000,%d,%d,\n" % (second_of(scan), THREADS_OF_HOST // 8, THREADS_OF_HOST) for scan in range(seconds)]
    rows_of = [[row for row in rows if row.split(",", 1)[0] < second_of(seconds)] for rows in hosts]
    for host, rows in enumerate(rows_of):
        start = "%s/%s-%d_20261120T16Z-001." % (directory, name, host)
        packed(start + "samples.csv.zst", header_line, rows)
        packed(start + "scans.csv.zst", "timestamp,weight_us,samples,threads,missing\n", scans)
    return sum(map(len, rows_of))


class Fleet:
    """Two servers, each the other's replica, and their ZooKeeper."""

    def __init__(self, ctx, schema):
        self.keeper = clickhouse.keeper_begin(ctx)
        self.servers = clickhouse.replicas_begin(ctx, self.keeper, schema)

    def cpu_s(self):
        """CPU seconds of each server, including its ended threads."""
        found = []
        for server in self.servers:
            words = read("/proc/%d/stat" % server.part.pid).rpartition(")")[2].split()
            found.append((int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK"))
        return found

    def writes(self):
        """Transactions of ZooKeeper so far."""
        with socket.create_connection(("127.0.0.1", self.keeper)) as peer:
            peer.sendall(b"srvr")
            text = b"".join(iter(lambda: peer.recv(65536), b"")).decode()
        return int(re.search(r"^Zxid: 0x([0-9a-f]+)", text, re.M).group(1), 16) & 0xFFFFFFFF

    def count(self, table):
        return [int(server.rows("SELECT count() FROM " + table)[0][0]) for server in self.servers]

    def settle(self):
        """Returns when both servers have no merge left to do."""
        calm = 0
        deadline = time.monotonic() + LIMIT_S
        while calm < 3 and time.monotonic() < deadline:
            time.sleep(1)
            busy = [server.rows("SELECT (SELECT count() FROM system.merges) + (SELECT count() FROM system.replication_queue)")
                    for server in self.servers]
            calm = calm + 1 if all(rows == [["0"]] for rows in busy) else 0

    def ship(self, directory):
        """Ships all in the directory; returns the cost until it is merged."""
        before, writes = self.cpu_s(), self.writes()
        _, wall, cpu, _ = run([SCHEMA + "/ship", "-1", directory, directory + "/shipped", "127.0.0.1:%d" % self.servers[0].http], directory)
        wait_until(lambda: len(set(self.count("samples_local"))) == 1, LIMIT_S, "rows on the replica")
        self.settle()
        server, replica = (now - then for now, then in zip(self.cpu_s(), before))
        return Cost(server, replica, cpu, wall, self.writes() - writes)

    def memory(self):
        return max(1024 * int(re.search(r"^VmHWM:\s*(\d+)", read("/proc/%d/status" % server.part.pid), re.M).group(1))
                   for server in self.servers)


def row_bytes(server, table):
    """Bytes of a row on a server's disk after all parts are merged."""
    server.rows("OPTIMIZE TABLE %s FINAL" % table)
    (size, rows), = server.rows("SELECT sum(bytes_on_disk), sum(rows) FROM system.parts WHERE active AND table = '%s'" % table)
    return int(size) / int(rows)


def copy(server, table, schema, other):
    """Copies a table to another server, which has no ZooKeeper."""
    create = re.search(r"CREATE TABLE %s \(\n.*?\n\) ENGINE = .*?;" % table, schema, re.S).group()
    other.rows(re.sub(r"ReplicatedReplacingMergeTree\([^)]*\)", "ReplacingMergeTree()", create))
    rows = subprocess.run([*server.ask, "-q", "SELECT * FROM %s FORMAT Native" % table], stdout=subprocess.PIPE, check=True).stdout
    subprocess.run([*other.ask, "-q", "INSERT INTO %s FORMAT Native" % table], input=rows, check=True)


def frame_bytes(hosts, seconds=5):
    """(bytes of a row in a recording that is written every so many seconds, as with --flush, bytes of the same row as text)"""
    packed_size = raw = rows = 0
    for host in hosts[:8]:
        frames = collections.defaultdict(list)
        for row in host:
            frames[row[:17] + str(int(row[18:20]) // seconds)].append(row)
        for frame in list(frames.values())[:20]:
            text = "".join(frame).encode()
            packed_size += HEAD.size + len(subprocess.run(["zstd", "-qc"], input=text, stdout=subprocess.PIPE, check=True).stdout)
            raw += len(text)
            rows += len(frame)
    return packed_size / rows, raw / rows


def spread(what, values, unit, remark=""):
    low, middle, high = quartiles(values)
    return Row(what, "tsnap", middle, unit, low, high, remark=remark)


def rows_of_inserts(words, costs, inserts, remark):
    """Rows for many small inserts, where each of `inserts` hosts has sent one insert of samples and one of scans."""
    return [spread("CPU time of the server for " + words, [1000 * cost.server / inserts for cost in costs], "ms", remark),
            spread("CPU time of its replica for " + words, [1000 * cost.replica / inserts for cost in costs], "ms",
                   "%.0f transactions of ZooKeeper" % quartiles([cost.writes / inserts for cost in costs])[1]),
            spread("CPU time of ship on the host for " + words, [1000 * cost.ship / inserts for cost in costs], "ms")]


def rows_of_bulk(costs, samples):
    millions = samples / 1e6
    words = "a million rows of samples, %d an insert" % (samples // BULK_FILES)
    return [spread("rows of samples that servers take through one ship in a second", [samples / cost.wall for cost in costs], "samples/s",
                   "two servers, ZooKeeper and ship on these CPUs"),
            spread("CPU time of the server for " + words, [cost.server / millions for cost in costs], "s", "two parts, hardly merged"),
            spread("CPU time of its replica for " + words, [cost.replica / millions for cost in costs], "s", "two parts, hardly merged"),
            spread("CPU time of ship for " + words, [cost.ship / millions for cost in costs], "s")]


def rows_of_sizes(ctx, fleet, schema, hosts):
    server, other = fleet.servers[0], clickhouse.Server(ctx, more=ZSTD)
    rows = []
    for name in "samples", "scans":
        table = name + "_local"
        copy(server, table, schema, other)
        rows.append(Row("a row of %s on the server's disk" % name, "tsnap", row_bytes(server, table), "bytes",
                        remark="lz4; %.1f bytes with zstd" % row_bytes(other, table)))
    frame, text = frame_bytes(hosts)
    return rows + [Row("a row of samples in the recording, .csv.zst", "tsnap", frame, "bytes",
                       remark="%d active threads, written every 5 s; %.0f bytes as text" % (THREADS_OF_HOST // 8, text))]


def measured(ctx, options):
    directory = ctx.temporary()
    say("fleet: recordings are made")
    made = directory + "/made"
    subprocess.run([options.build + "/tests/bench/recorded", made, str(SCANS // 10 if options.quick else SCANS)], stdout=subprocess.DEVNULL,
                   check=True)
    recording = hosts_of(made, 3 if options.quick else HOSTS)
    schema = clickhouse.output(SCHEMA + "/schema", "clickhouse-fleet", options.tsnap)
    fleet = Fleet(ctx, schema)
    small, large, bulk, samples = [], [], [], 0
    for turn in range(options.rounds):
        for words, costs, seconds in (("10 s", small, 10), ("5 minutes", large, SCANS)):
            say("fleet: %s of %d hosts, round %d of %d" % (words, len(recording[1]), turn + 1, options.rounds))
            path = "%s/%d-%d" % (directory, turn, seconds)
            hosts_write(path, recording, "host-%d-%d" % (turn, seconds), seconds)
            costs.append(fleet.ship(path))
        sizes = rows_of_sizes(ctx, fleet, schema, recording[1]) if not turn else sizes
        say("fleet: large inserts, round %d of %d" % (turn + 1, options.rounds))
        path = "%s/%d-bulk" % (directory, turn)
        os.mkdir(path)
        for file in sorted(glob.glob(made + "/*.samples.csv.zst"))[:BULK_FILES]:
            shutil.copy(file, "%s/bulk-%d%s" % (path, turn, os.path.basename(file)[len("bench"):]))
        before = fleet.count("samples_local")[0]
        bulk.append(fleet.ship(path))
        samples = fleet.count("samples_local")[0] - before
    count = len(recording[1])
    rows = rows_of_bulk(bulk, samples)
    rows += rows_of_inserts("what a host sends in 10 s", small, count, "two inserts: 100 rows of samples, 10 of scans")
    rows += rows_of_inserts("what a host sends in 5 minutes", large, count, "two inserts: 3000 rows of samples, 300 of scans")
    rows.append(Row("resident memory of a server at most", "tsnap", fleet.memory() / 1e6, "MB"))
    return rows + sizes


def bench_fleet(options):
    ctx = Context(options)
    try:
        return measured(ctx, options)
    except Skip as why:
        return [Row("rows of samples that servers take through one ship in a second", "tsnap", None, "samples/s", remark=str(why))]
    except Failure as why:
        sys.exit("fleet: %s" % why)
    finally:
        ctx.end()
