"""Incidents of locks."""
from harness import SLOW, wait_until
from incident import Truth, incident, look_alike, now
from parts import Postgres, Session

WAITERS = 12


def sessions_behind(ctx):
    """WAITERS sessions wait for a row that the returned one has changed; (holder, when the first began to wait)."""
    server = ctx.server(Postgres, deadlock_timeout="10min")
    server.ask_once("drop table if exists accounts; create table accounts as select 1 as x")
    holder, *waiters = [Session(server, ctx) for _ in range(WAITERS + 1)]
    holder.ask("begin")
    holder.ask("update accounts set x = 2")
    since = now()
    for waiter in waiters:
        waiter.say("update accounts set x = 3;")
    blocked = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
    wait_until(lambda: server.ask_once(blocked) == str(WAITERS), 20 * SLOW, "the lock")
    return holder, since


@incident(1, not_yet="no edge leads from a lock of PostgreSQL to its holder", often=True)
def postgres_idle_transaction(ctx):
    """PostgreSQL: 12 sessions behind the lock of one that is idle in its transaction."""
    holder, since = sessions_behind(ctx)
    return Truth("lock", ("postgres", WAITERS), ("postgres", holder.backend), "client|idle in transaction", since)


@look_alike(1, often=True)
def postgres_idle_sessions(ctx):
    """PostgreSQL: 12 idle sessions, and one that is idle in a transaction for which nobody waits."""
    server = ctx.server(Postgres, deadlock_timeout="10min")
    holder, *_ = [Session(server, ctx) for _ in range(WAITERS + 1)]
    holder.ask("begin")
    return None
