"""Recordings in databases: packaging/schema makes tables and views there, and they show what a replay shows."""
import json
import os
import re
import shutil
import subprocess

from clickhouse import EMBEDDED, Server, output
from harness import Findings, Skip, case, check
from parts import Postgres

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMA = os.path.join(HERE, "..", "..", "packaging", "schema")
RECORDED = os.path.join(HERE, "..", "fixtures", "recording_1")
FLEET = os.path.join(HERE, "..", "fixtures", "hosts")
DUCKDB = "@duckdb/node-api@1.5.6-r.1"
ASK_DUCKDB = """
import { DuckDBInstance } from '@duckdb/node-api';
import fs from 'fs';
const connection = await (await DuckDBInstance.create(':memory:')).connect();
await connection.run(fs.readFileSync(process.argv[2], 'utf8'));
for (const question of process.argv.slice(3)) {
  const answer = await connection.runAndReadAll(question);
  console.log(JSON.stringify(answer.getRowsJson()));
}
await connection.run("COPY samples TO 'samples.parquet'");
"""
CHDB = "chdb@3.4.0"
ASK_CHDB = """
const { Session } = require('chdb');
const session = new Session(process.cwd() + '/base', { connectionArgs: ['--config-file=' + process.cwd() + '/config.xml'] });
for (const statement of require('fs').readFileSync(0, 'utf8').split(/;\\s*\\n/))
  if (statement.replace(/^--.*$/gm, '').trim())
    session.query(statement, 'Null');
for (const question of process.argv.slice(2))
  console.log(JSON.stringify(JSON.parse(session.query(question, 'JSONCompact'))));
session.close();
"""


def views():
    with open(os.path.join(SCHEMA, "questions.sql"), encoding="utf-8") as file:
        found = re.findall(r"^CREATE VIEW (\w+) AS\nSELECT (.*)", file.read(), re.M)
    check(len(found) == 15, "%d questions", len(found))
    return [name for name, _ in found]


def recordings(ctx):
    """Directories: a recording of an earlier version, over two hours, those of three hosts, and one that is made now."""
    directory = ctx.temporary() + "/now"
    workload = ctx.workload("mixed", bursts=2, pairs=1, syncs=1, spins=1)
    ctx.plain("-o", directory, "-F", 20, "-d", 2, "-p", workload.tgid, "-G", "ustack,waits_on").finish_plain()
    return (RECORDED, *(os.path.join(FLEET, host) for host in ("front-1", "middle-1", "base-1")), directory)


def value(cell):
    """A cell in a form that all programs share: numbers to four places, times to the minute, an absent value as an empty string."""
    if cell in (None, "", "\\N"):
        return ""
    text = str(cell)
    if re.match(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d", text):
        return text[:16].replace("T", " ")
    try:
        return round(float(text), 4)
    except ValueError:
        return text


def lines_of(text):
    return [line.split("\t") for line in text.splitlines()]


def answers(rows_of):
    """{view: its rows, sorted}; rows_of(view) queries the rows."""
    return {view: sorted([tuple(value(cell) for cell in row) for row in rows_of(view)], key=str) for view in views()}


def truth_of(ctx, directories):
    """SQLite's rows of all views, once its seconds by state have been compared with those of replays."""
    base = ctx.temporary() + "/base"
    output("sqlite3", base, text=output(SCHEMA + "/schema", "sqlite", ctx.options.tsnap))
    for directory in directories:
        output(SCHEMA + "/load", "sqlite", directory, base)
    found = answers(lambda view: lines_of(output("sqlite3", "-separator", "\t", base, "SELECT * FROM " + view)))
    told = {}
    for directory in directories:
        rows = ctx.plain("--replay", directory, "--csv", "-a", "-g", "state,weight_us").finish()
        for row in rows:
            told[row["state"]] = told.get(row["state"], 0) + int(row["weight_us"]) / 1e6
    ours = {}
    for _, state, seconds, _ in found["threads_by_state"]:
        ours[state] = ours.get(state, 0) + seconds
    check(set(ours) == set(told) and len(ours) >= 4 and all(abs(ours[state] - told[state]) < 0.002 for state in ours),
          "%s, a replay tells %s", ours, told)
    check(all(found.values()), "without an answer: %s", [view for view, rows in found.items() if not rows])
    return found


def expect_same(found, truth):
    findings = Findings()
    for view, rows in truth.items():
        findings.expect(found[view] == rows, "%s: %s, SQLite has %s", view, [row for row in found[view] if row not in rows][:3],
                        [row for row in rows if row not in found[view]][:3])
    findings.close()


def sqlite_needed():
    for name in ("sqlite3", "zstd"):
        if not shutil.which(name):
            raise Skip("%s is not installed" % name)


@case(thorough=True)
def schema_of_sqlite(ctx):
    """The views of SQLite show what reports of the same recordings do."""
    sqlite_needed()
    found = {row[1:5] for row in truth_of(ctx, recordings(ctx))["waits_in_the_end"]}
    for client, server in (("ask_s", "base_s"), ("ask_c", "base_c"), ("ask_d", "base_d"), ("ask_l", "keeper")):
        check(("front-1", client, "base-1", server) in found, "%s does not lead to %s: %s", client, server, found)


@case(thorough=True)
def schema_of_postgresql(ctx):
    """The views of PostgreSQL show what SQLite's do."""
    sqlite_needed()
    server, directories = Postgres(ctx), recordings(ctx)
    psql = server.command("psql")
    output(*psql, "-qX", "-v", "ON_ERROR_STOP=1", text=output(SCHEMA + "/schema", "postgresql", ctx.options.tsnap))
    for directory in directories:
        output(SCHEMA + "/load", "postgresql", directory, *psql[1:], env=dict(os.environ, PATH=server.programs + ":" + os.environ["PATH"]))
    expect_same(answers(lambda view: lines_of(output(*psql, "-X", "-A", "-t", "-F", "\t", "-c", "SELECT * FROM " + view))),
                truth_of(ctx, directories))


@case(thorough=True)
def schema_of_clickhouse(ctx):
    """The views of ClickHouse show what SQLite's do."""
    sqlite_needed()
    server = Server(ctx)
    directories = recordings(ctx)
    output(*server.ask, "-n", text=output(SCHEMA + "/schema", "clickhouse", ctx.options.tsnap))
    for directory in directories:
        output(SCHEMA + "/load", "clickhouse", directory, *server.options)
    expect_same(answers(lambda view: lines_of(output(*server.ask, "-q", "SELECT * FROM " + view))), truth_of(ctx, directories))


def package_get(directory, package):
    """Installs a package of npm for the programs in a directory."""
    if not shutil.which("npm") or subprocess.run(["npm", "install", "--silent", "--no-save", package], cwd=directory, timeout=300,
                                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                                  stderr=subprocess.DEVNULL).returncode:
        raise Skip("npm is not here, or can't get " + package)


def file_write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def duckdb_asked(tsnap, directory, directories, questions):
    """DuckDB's answers to questions about recordings; it runs in `directory`, and leaves samples.parquet there."""
    package_get(directory, DUCKDB)
    file_write(directory + "/ask.mjs", ASK_DUCKDB)
    file_write(directory + "/schema.sql", output(SCHEMA + "/schema", "duckdb", tsnap) +
               "".join(output(SCHEMA + "/load", "duckdb", recording) for recording in directories))
    return [json.loads(line) for line in output("node", "ask.mjs", "schema.sql", *questions, cwd=directory).splitlines()]


@case(thorough=True)
def schema_of_duckdb(ctx):
    """DuckDB reads the .csv.zst, its views show what SQLite's do, and it makes Parquet."""
    sqlite_needed()
    directory, directories = ctx.temporary(), recordings(ctx)
    told = dict(zip(views(), duckdb_asked(ctx.options.tsnap, directory, directories, ["SELECT * FROM " + view for view in views()])))
    expect_same(answers(told.get), truth_of(ctx, directories))
    check(os.stat(directory + "/samples.parquet").st_size > 1000, "samples.parquet is empty")


class Chdb:
    """The engine of a newer ClickHouse, in a process that makes a database, queries it, and ends."""

    def __init__(self, ctx):
        self.directory = ctx.temporary()
        package_get(self.directory, CHDB)
        file_write(self.directory + "/ask.js", ASK_CHDB)
        file_write(self.directory + "/config.xml", EMBEDDED)

    def ask(self, statements, questions):
        shutil.rmtree(self.directory + "/base", ignore_errors=True)
        told = output("node", "ask.js", *questions, text=statements, cwd=self.directory).splitlines()
        return [json.loads(line)["data"] for line in told]


@case(thorough=True)
def schema_of_chdb(ctx):
    """The views of a ClickHouse of 2026 show what SQLite's do, too: of the .csv.zst, and of the tables of a fleet, where rows that are
    loaded twice are there once. ClickHouse replicates only in a server: tables are merged as they would be there, and not replicated."""
    sqlite_needed()
    chdb, directories = Chdb(ctx), recordings(ctx)
    truth, load = truth_of(ctx, directories), "".join(output(SCHEMA + "/load", "clickhouse-local", recording) for recording in directories)
    questions = ["SELECT * FROM " + view for view in views()]
    tables, merges = re.subn(r"ENGINE = Replicated(\w+)\([^)]*\)", r"ENGINE = \1", output(SCHEMA + "/schema", "clickhouse-fleet", ctx.options.tsnap))
    check(merges == 6, "%d tables are replicated", merges)
    merge = "".join("OPTIMIZE TABLE %s_local FINAL;\n" % table for table in re.findall(r"^CREATE TABLE (\w+)_local ", tables, re.M))
    for begin in (output(SCHEMA + "/schema", "clickhouse", ctx.options.tsnap) + load, tables + load + load + merge):
        expect_same(answers(dict(zip(views(), chdb.ask(begin, questions))).get), truth)
