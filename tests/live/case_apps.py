"""What programs say of their own threads (src/apps). Truth is what the program itself reports of them in the same run."""
import collections
import os
import re
import subprocess
import time

from harness import SLOW, Findings, Skip, case, check, let_pass, number, rows_of, timestamp_s, unescape, wait_until
from parts import MariaDB, Postgres, Session

WORDS = ("app_wait", "app_state", "query", "query_id", "database", "app_user", "client_app")
# what pg_stat_activity has of a process, in the order of WORDS; of a session that runs nothing, outside of a transaction, no query
ASKED = """select pid, wait_event_type || ':' || wait_event, %s,
  case when state ~ '%s' then encode(convert_to(query, 'UTF8'), 'hex') end, %s,
  datname, usename, nullif(application_name, '') from pg_stat_activity where pid <> pg_backend_pid()"""
STATEMENT = "select /* größe \\x1b[31m%s */ pg_sleep(600)"
STEADY = ("Client:ClientRead", "Timeout:PgSleep", "Lock:transactionid", "Lock:advisory", "Activity:LogicalLauncherMain")


def version_of(server):
    return int(server.ask_once("show server_version_num")) // 10000


def activity(server):
    """{pid: {column: text}} by pg_stat_activity, as far as the server's memory shows it: of 13 no row is found there."""
    whole = version_of(server) >= 14
    text = server.ask_once(ASKED % (("state", "active|idle in", "query_id") if whole else ("null", "active", "null")))
    table = {}
    for line in text.splitlines():
        pid, *words = line.split("|")
        table[int(pid)] = dict(zip(WORDS, words))
    return table


def compare(find, pid, row, told, columns=WORDS):
    for column in columns:
        words = bytes.fromhex(told[column]) if column == "query" else told[column].encode()
        find.expect(unescape(row[column]) == words, "%d: %s is %r, the server says %r", pid, column, row[column], words)


@case
def apps_of_postgres(ctx):
    """Sessions of PostgreSQL that sleep, wait for locks and are idle, in and out of a transaction, have the words that pg_stat_activity
    has for them, statements with control characters and others that are cut, too; a session that runs nothing shows no statement."""
    server = Postgres(ctx, deadlock_timeout="10min", track_activity_query_size="4096")
    if version_of(server) >= 14:
        server.ask_once("alter system set compute_query_id = 'on'")
        server.ask_once("select pg_reload_conf()")
    server.ask_once("create table t as select 1 as x")
    idle, sleeper, long, holder, waiter, advisory = (Session(server, ctx) for _ in range(6))
    idle.ask("set application_name = 'a \\x1b name'")
    for session in (holder, waiter):
        session.ask("begin")
    holder.ask("select pg_advisory_lock(7)")
    holder.ask("update t set x = 2")
    sleeper.say(STATEMENT % "\t" + ";")
    long.say("select /* %s */ pg_sleep(600);" % ("é" * 700))
    waiter.say("update t set x = 3;")
    advisory.say("select pg_advisory_lock(7);")
    waits = {idle.backend: "Client:ClientRead", sleeper.backend: "Timeout:PgSleep", long.backend: "Timeout:PgSleep",
             holder.backend: "Client:ClientRead", waiter.backend: "Lock:transactionid", advisory.backend: "Lock:advisory"}

    def settled():
        table = activity(server)
        return all(table[pid]["app_wait"] == wait for pid, wait in waits.items()) and table
    before = wait_until(settled, 20 * SLOW, "the sessions' waits")
    tids = ",".join(str(pid) for pid in before)
    rows = ctx.rows("-a", "-t", tids, seconds=2, columns=",".join(("state", "comm") + WORDS))
    told, find = activity(server), Findings()
    cut = bytes.fromhex(told[long.backend]["query"])
    for pid in waits:
        row = rows_of(rows, pid)[-1]
        if pid == long.backend:  # cut at a character, and much of it is there
            words = unescape(row["query"])
            find.expect(cut.startswith(words) and 1000 < len(words) < 1024 and words.decode(), "cut: %r", row["query"])
            compare(find, pid, row, told[pid], [column for column in WORDS if column != "query"])
        else:
            compare(find, pid, row, told[pid])
        find.expect({row["app_wait"] for row in rows_of(rows, pid)[5:]} == {waits[pid]}, "%d: not only %s", pid, waits[pid])
    if version_of(server) >= 14:
        find.expect(unescape(rows_of(rows, holder.backend)[-1]["query"]) == b"update t set x = 2;", "the transaction's last statement")
    # processes of the server itself: their events may change meanwhile
    for pid in set(before) & set(told) - set(waits):
        seen = {row["app_wait"] for row in rows_of(rows, pid) if row["state"] == "S"}
        for word in {before[pid]["app_wait"], told[pid]["app_wait"]} & set(STEADY):
            find.expect(word in seen, "%d: the server says %s, not %s", pid, word, seen)
    find.close()


@case
def apps_follow_statements(ctx):
    """No sample shows a statement or a wait of another request: a session alternates between two, as often as it can, with its own
    sleep in each, and all are seen. Another program with the same name, and no such symbols, shows none."""
    server = Postgres(ctx)
    session, script = Session(server, ctx), server.directory + "/script"
    with open(script, "w") as file:
        file.write("select pg_sleep(0.011), 'one' \\g /dev/null\nselect pg_advisory_lock(1), pg_sleep(0.007), 'two' \\g /dev/null\n" * 400)
    tool = ctx.stream("-a", "-F", 200, "-t", session.backend, columns="state,syscall,arg3,app_wait,query,app_state")
    tool.wait_scans(3)
    session.ask("\\i %s\nselect 1" % script)
    tool.wait_scans(len(tool.scans()) + 3)
    rows = [row for row in rows_of(tool.interrupt(), session.backend) if row["state"] == "S"]
    find, seen, state = Findings(), collections.Counter(), "active" if version_of(server) >= 14 else ""
    for row in rows:
        # the limit of a wait in pg_sleep() is what is left of it, in ms, rounded up: all, or after that nearly none; a wait for the
        # client has none
        limit = int(row["arg3"] or "0", 16) & 0xffffffff
        word = "one" if "'one'" in row["query"] else "two" if "'two'" in row["query"] else row["query"]
        if row["syscall"] != "epoll_wait" or not row["app_wait"]:
            continue
        seen[word, row["app_wait"]] += 1
        if row["app_wait"] == "Timeout:PgSleep":
            find.expect(limit in {"one": (12, 11, 10, 1), "two": (8, 7, 6, 1)}.get(word, ()), "a sleep of %d ms in %s", limit, word)
            find.expect(row["app_state"] == state, "asleep, and %s", row["app_state"])
        else:
            find.expect(row["app_wait"] == "Client:ClientRead" and limit == 0xffffffff, "%s with a limit of %d", row["app_wait"], limit)
            find.expect(not row["query"], "a statement of an idle session: %s", row["query"])
    find.close()
    check(min(seen[word, "Timeout:PgSleep"] for word in ("one", "two")) > 100, "too few were seen: %s", seen)


def statements_logged(server, text):
    """(begin, end, name) of each statement of a log, in seconds since 1970; log_line_prefix is '%n '."""
    found = re.findall(r"([0-9.]+) LOG:  duration: ([0-9.]+) ms  statement: select '(\w+)'", text)
    return [(float(end) - float(ms) / 1000, float(end), name) for end, ms, name in found]


@case(alone=True)
def apps_on_cpu(ctx):
    """A session that computes: each sample on a CPU shows the statement that was running then, as the server's log has it, never the one
    before or after; most samples do. Of short statements some are over before they are read: they show none."""
    server = Postgres(ctx, log_min_duration_statement=0, log_line_prefix="%n ")
    session, script = Session(server, ctx), server.directory + "/script"
    with open(script, "w", encoding="ascii") as file:
        for name, rows in (("long", 60000), ("short", 6000)) * 150:
            file.write("select '%s', count(*) from generate_series(1, %d) \\g /dev/null\n" % (name, rows))
    tool = ctx.stream("-a", "-F", 100, "-t", session.backend, columns="state,query,querysum,app_state,database,query_id")
    tool.wait_scans(3)
    session.ask("\\i %s\nselect 1" % script)
    tool.wait_scans(len(tool.scans()) + 3)
    rows, logged = tool.interrupt(), statements_logged(server, server.err)
    find, seen, lacking = Findings(), collections.Counter(), 0
    for row in rows_of(rows, session.backend):
        time_s, name = timestamp_s(row["timestamp"]), row["query"][8:].partition("'")[0]
        # the log has milliseconds; a statement is logged when its answer has been sent
        running = [had for begin, end, had in logged if begin - 0.0015 <= time_s <= end + 0.0015]
        if row["state"] not in ("ON", "RQ") or not running:
            continue
        lacking += not name
        if not name:
            continue
        seen[name] += 1
        find.expect(row["database"] == "postgres", "a session with no database: %s", row)
        find.expect(name in running and row["app_state"] == "active", "%s while the server ran %s: %s", name, running, row)
        find.expect(row["querysum"] == "select ?, count(*) from generate_series(?)", "%s", row["querysum"])
    find.close()
    check(seen["long"] > 50 and lacking < 0.4 * SLOW * sum(seen.values()), "seen: %s, without a statement: %d", seen, lacking)


@case
def apps_hide_values(ctx):
    """querysum has no values; with --query-text off neither have query, the end of a chain, and what is recorded."""
    server = Postgres(ctx)
    server.ask_once("create table t as select 1 as x")
    holder, waiter, sleeper = (Session(server, ctx) for _ in range(3))
    holder.ask("begin")
    holder.ask("update t set x = 4711 /* secret */ where 'secret' = 'secret'")
    waiter.say("update t set x = 4712 where 'secret' <> '';")
    sleeper.say("select 'secret', pg_sleep(600);")
    wait_until(lambda: server.ask_once("select count(*) from pg_stat_activity where wait_event = 'PgSleep' or wait_event_type = 'Lock'") == "2",
               20 * SLOW, "statements")
    columns = "query,querysum,root_query"
    folded = {sleeper.backend: "select ?, pg_sleep(?)", waiter.backend: "update t set x = ? where ? <> ?"}
    tids = ",".join(map(str, folded))
    for args, shown in (((), True), (("--query-text", "off"), False)):
        rows, find = ctx.rows("-a", "-t", tids, *args, seconds=2, columns=columns), Findings()
        for pid, words in folded.items():
            row = rows_of(rows, pid)[-1]
            find.expect(row["querysum"].rstrip(";") == words and ("secret" in row["query"]) == shown, "%s: %s", args, row)
            find.expect(shown or row["query"] == row["querysum"], "%s: %s", args, row)
        end = rows_of(rows, waiter.backend)[-1]["root_query"]
        find.expect((("secret" in end) == shown and "update t set x = " in end) if version_of(server) >= 14 else not end,
                    "%s: the chain ends at %s", args, end)
        find.close()
    directory = ctx.temporary() + "/record"
    tool = ctx.plain("-o", directory, "-a", "-F", 10, "-d", 3, "-t", tids, "-G", columns, "--query-text", "off")
    check(tool.wait(60 * SLOW) == 0, "%s", tool.err)
    shown = ctx.plain("--replay", directory, "-a", "--csv", "-g", "tid," + columns)
    check(shown.wait(60 * SLOW) == 0 and b"select ?, pg_sleep(?)" in shown.out and b"secret" not in shown.out, "%s", shown.out[:2000])


@case
def apps_hold_locks(ctx):
    """Sessions that wait for a lock lead to one that pg_blocking_pids() has, whatever others have open transactions, and though no title
    says what a session does: of a row, of a row that another one waits for already, shared by two, and of a table, by one that has it or
    waits for it before."""
    server = Postgres(ctx, deadlock_timeout="10min", update_process_title="off")
    server.ask_once("create table t as select 1 as x")
    server.ask_once("create table u as select 1 as x")
    other, holder, first, second, shares, shares_too, advisory, reader, writer, behind = (Session(server, ctx) for _ in range(10))
    for session in (other, holder, first, second, reader, writer, behind):
        session.ask("begin")
    other.ask("select txid_current()")
    holder.ask("update t set x = 2")
    for session in (shares, shares_too):
        session.ask("select pg_advisory_lock_shared(9)")
    reader.ask("lock table u in access share mode")

    def blocking():
        text = server.ask_once("select pid, array_to_string(pg_blocking_pids(pid), ' ') from pg_stat_activity "
                               "where wait_event_type = 'Lock'")
        return {int(pid): [int(word) for word in words.split()] for pid, words in (line.split("|") for line in text.splitlines())}
    waiters = ((first, "update t set x = 3;"), (second, "update t set x = 4;"), (advisory, "select pg_advisory_lock(9);"),
               (writer, "lock table u in access exclusive mode;"), (behind, "lock table u in access share mode;"))
    for count, (session, statement) in enumerate(waiters, 1):
        session.say(statement)
        wait_until(lambda: len(blocking()) == count, 20 * SLOW, statement)
    told, find = blocking(), Findings()
    expected = {first.backend: [holder.backend], second.backend: [first.backend], writer.backend: [reader.backend],
                advisory.backend: [shares.backend, shares_too.backend], behind.backend: [writer.backend]}
    check({pid: sorted(pids) for pid, pids in told.items()} == {pid: sorted(pids) for pid, pids in expected.items()}, "%s", told)
    tids = ",".join(map(str, told))
    rows = ctx.rows("-t", tids, seconds=2, columns="waits_on,waits_on_pid,blocker_tid,blocker_sure,root_tid,depth,query,root_query")
    for pid, pids in told.items():
        row = rows_of(rows, pid)[-1]
        blocker = number(row, "waits_on_pid")
        find.expect(blocker in pids and row["waits_on"].startswith("database lock"), "%s is blocked by %s: %s", pid, pids, row)
        find.expect(number(row, "blocker_tid") == blocker and row["blocker_sure"] == "likely", "no such edge: %s", row)
    for session, root in ((second, holder), (behind, reader)):
        row = rows_of(rows, session.backend)[-1]
        words = "update t set x = 4;", "update t set x = 2;"
        find.expect(session is behind or version_of(server) < 14 or (row["query"], row["root_query"]) == words, "queries: %s", row)
        find.expect((row["root_tid"], row["depth"]) == (str(root.backend), "2"), "it leads to %d: %s", root.backend, row)
    find.close()


@case(thorough=True)
def apps_under_pgbench(ctx):
    """Shares of wait events among all samples of pgbench's sessions that wait are those that pg_stat_activity has at as many times, where
    waits last for milliseconds: shorter ones are often over before they are read, and are left out."""
    server = Postgres(ctx)
    server.ask_once("create table t as select id, 0 as x from generate_series(1, 3) id")
    with open(server.directory + "/script", "w") as file:
        file.write("\\set id random(1, 3)\n\\sleep 5 ms\nbegin;\nupdate t set x = x + 1 where id = :id;\nselect pg_sleep(0.004);\n"
                   "commit;\n")
    tool = ctx.stream("-a", "-F", 50, "-c", "postgres", columns="state,app_wait,app_state,client_app")
    game = server.pgbench(ctx, "-n", "-c", "8", "-T", "8", "-f", server.directory + "/script")
    watcher, told = Session(server, ctx), collections.Counter()
    end = time.monotonic() + 6
    let_pass(1)
    tool.wait_scans(3)
    start = tool.scans()[-1][0]
    while time.monotonic() < end:
        told.update(watcher.ask("select wait_event_type || ':' || wait_event from pg_stat_activity where application_name = 'pgbench' "
                              "and wait_event is not null").split("\n"))
        let_pass(0.02)
    until = tool.scans()[-1][0]
    check(game.wait(40 * SLOW) == 0, "pgbench: %s", game.err)
    seen = collections.Counter()
    for row in tool.interrupt():
        if start <= row["timestamp"] <= until and row["client_app"] == "pgbench" and row["app_wait"]:
            seen[row["app_wait"]] += number(row, "weight_us")
    find = Findings()
    shares = [{word: count / sum(counts.values()) for word, count in counts.items()} for counts in (seen, told)]
    for word in set(seen) | set(told):
        ours, theirs = (share.get(word, 0) for share in shares)
        find.expect(abs(ours - theirs) < 0.1 * SLOW, "%s: %.1f %% of samples, the server says %.1f %%", word, 100 * ours, 100 * theirs)
    find.close()
    check(len(seen) >= 3 and sum(told.values()) > 300, "too few events: %s, %s", seen, told)


def postgres_of_suite(ctx, suite, version):
    """The tests above of the server of another Debian suite."""
    fetch = subprocess.run([os.path.join(os.path.dirname(os.path.abspath(__file__)), "postgres-fetch"), suite], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
    if fetch.returncode:
        raise Skip("no PostgreSQL of %s: %s" % (suite, fetch.stderr.decode().strip()))
    ctx.postgres_tree = fetch.stdout.decode().strip()
    check(version_of(Postgres(ctx)) == version, "%s has another version now: %s", suite, ctx.postgres_tree)
    for test in apps_of_postgres, apps_follow_statements, apps_hide_values, apps_hold_locks, apps_under_pgbench:
        print("# " + test.__name__)
        test(ctx)
        ctx.end()


@case(thorough=True)
def apps_of_postgres_13(ctx):
    """PostgreSQL 13 (bullseye's) has the words, the statements and the holders of locks that it reports itself."""
    postgres_of_suite(ctx, "bullseye", 13)


@case(thorough=True)
def apps_of_postgres_17(ctx):
    """PostgreSQL 17 (trixie's) has the words, the statements and the holders of locks that it reports itself."""
    postgres_of_suite(ctx, "trixie", 17)


@case(thorough=True)
def apps_of_postgres_18(ctx):
    """PostgreSQL 18 (sid's) has the words, the statements and the holders of locks that it reports itself."""
    postgres_of_suite(ctx, "sid", 18)


MARIADB_WORDS = ("app_wait", "app_state", "query", "database", "app_user")
MARIADB_ASKED = """select tid, if(command = 'Sleep', '', coalesce(state, '')), command, hex(info_binary), coalesce(db, ''), user
  from information_schema.processlist where id <> connection_id()"""


def process_list(server):
    """{tid: {column: text}} by the server's list of processes."""
    table = {}
    for line in server.ask_once(MARIADB_ASKED).splitlines():
        tid, *words = line.split("\t")
        table[int(tid)] = dict(zip(MARIADB_WORDS, [word if word != "NULL" else "" for word in words]))
    return table


@case(thorough=True)
def apps_of_mariadb(ctx):
    """Threads of MariaDB that sleep in a statement and in a procedure, wait for locks and are idle, in and out of a transaction, have the
    words of the server's list of processes, statements that are long or have any characters, too; a thread that runs nothing, none."""
    server = MariaDB(ctx)
    server.ask_once("create table base.t (id int primary key, v int) engine=innodb; insert into base.t values (1, 1);"
                    "create procedure base.p(x int) select x, sleep(600)")
    idle, sleeper, long, procedure, holder, row, table, user = (server.session(ctx, tcp=number == 7) for number in range(8))
    idle.say("set names utf8mb4; do sleep(0);")
    sleeper.say("select sleep(600), 'größe \x1b[31m \\\\n';")
    long.say("select sleep(600), '%s';" % ("é" * 700))
    procedure.say("call p(4711);")
    holder.say("begin; update t set v = 2 where id = 1;")
    user.say("use mysql\nselect get_lock('a', 1), sleep(600);")
    wait_until(lambda: len([told for told in process_list(server).values() if told["app_state"] == "Sleep"]) == 4, 20 * SLOW, "sessions")
    row.say("update t set v = 3 where id = 1;")
    wait_until(lambda: "Updating" in [told["app_wait"] for told in process_list(server).values()], 20 * SLOW, "a wait for a row")
    table.say("alter table t add w int;")
    lock = "Waiting for table metadata lock"
    told = wait_until(lambda: lock in [told["app_wait"] for told in process_list(server).values()] and process_list(server), 20 * SLOW, "a lock")
    rows = ctx.rows("-a", "-p", server.pid, seconds=2, columns=",".join(("state", "comm") + MARIADB_WORDS))
    find, seen = Findings(), collections.Counter()
    check(told == process_list(server), "it has changed: %s, %s", told, process_list(server))
    for tid in {int(row["tid"]) for row in rows}:
        row, is_told = rows_of(rows, tid)[-1], told.get(tid, {})
        seen[is_told.get("app_wait")] += 1
        if tid not in told:  # a thread of the server itself, which may be at work, or none yet has taken it from the cache
            find.expect(row["app_state"] == "Daemon" or not any(row[column] for column in MARIADB_WORDS),
                        "%d, which the server does not list: %s", tid, row)
            continue
        whole = bytes.fromhex(is_told["query"])
        if len(whole) > 1023:
            words = unescape(row["query"])
            find.expect(whole.startswith(words) and 1000 < len(words) < 1024 and words.decode(), "cut: %r", row["query"])
        compare(find, tid, row, is_told, [column for column in MARIADB_WORDS if column != "query" or len(whole) < 1024])
    find.close()
    tool = ctx.plain("--view", "queries", "-p", server.pid, "-d", 1)
    tool.finish_plain(0, 30 * SLOW)
    check(re.search(r"Updating +update t set v = \? where id = \?\n", tool.out.decode()), "%s", tool.out.decode())
    check(seen["User sleep"] == 4 and seen["Updating"] == seen[lock] == 1 and seen[""] >= 2, "%s: %s", seen, told)


@case(thorough=True)
def apps_follow_mariadb(ctx):
    """No sample of a thread of MariaDB has a statement beside the state of another one: it alternates between two, as often as it can."""
    server = MariaDB(ctx)
    script, holder, session = server.directory + "/script", server.session(ctx), server.session(ctx)
    with open(script, "w") as file:
        file.write("do sleep(0.011), 'one';\ndo get_lock('a', 0.007), 'two';\n" * 400)
    holder.say("do get_lock('a', 1);")
    tool = ctx.stream("-a", "-F", 200, "-p", server.pid, columns="state,app_wait,query,app_state")
    tool.wait_scans(3)
    session.say("source %s\ndo sleep(600);" % script)
    wait_until(lambda: "do sleep(600)" in [row["query"] for row in tool.rows()[-200:]], 60 * SLOW, "the end of the script")
    seen = collections.Counter((row["app_wait"], row["query"]) for row in tool.interrupt() if row["state"] == "S" and row["query"])
    one, two = seen.pop(("User sleep", "do sleep(0.011), 'one'")), seen.pop(("User lock", "do get_lock('a', 0.007), 'two'"))
    seen.pop(("User sleep", "do sleep(600)"))
    # a thread sleeps in a few calls for its client, too
    wrong = {pair: count for pair, count in seen.items() if pair[0] in ("User sleep", "User lock")}
    check(not wrong and min(one, two) > 100, "%d, %d, and %s", one, two, seen)
