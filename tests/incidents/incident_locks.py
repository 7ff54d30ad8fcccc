"""Incidents of locks."""
import os

import truth
from harness import SLOW, wait_until
from incident import Truth, incident, look_alike, now, python, shell
from parts import Part, Postgres, Session, account, program

WAITERS = 12
JAVA_WAITERS = 16
# A pool of threads enters LOCK; a thread that is not of the pool has it while it naps, or the pool waits for work (IDLE).
JAVA = """
import java.util.concurrent.*;
import java.util.concurrent.locks.*;
public class Shop {
    static final Object monitor = new Object();
    static final ReentrantLock lock = new ReentrantLock();
    static void locked(Runnable body) {
        if ("%(lock)s".equals("monitor")) synchronized (monitor) { body.run(); }
        else { lock.lock(); try { body.run(); } finally { lock.unlock(); } }
    }
    static void nap() { try { Thread.sleep(3600000); } catch (InterruptedException e) { } }
    public static void main(String[] words) throws Exception {
        CountDownLatch held = new CountDownLatch(1);
        ExecutorService pool = Executors.newFixedThreadPool(%(threads)d);
        for (int i = 0; i < %(threads)d; i++) pool.execute(() -> {
            try { held.await(); } catch (InterruptedException e) { }
            if (!%(idle)s) locked(() -> { });
        });
        new Thread(() -> locked(() -> { held.countDown(); nap(); }), "stock-update").start();
        held.await();
        Thread.sleep(200);
        java.nio.file.Files.write(java.nio.file.Paths.get("told"), "ready".getBytes());
        nap();
    }
}
"""
# Eight threads compute; of a holder: one is in a regular expression that does not end, with the GIL.
GIL = """
import re, sys, threading
def compute():
    while True:
        sum(i * i for i in range(1000))
def match():
    re.match("(a+)+$", "a" * 60 + "b")
wait = threading.Event()
for i in range(8):
    threading.Thread(target=wait.wait if sys.argv[1] == "idle" else compute, daemon=True).start()
print("ready", flush=True)
compute() if sys.argv[1] == "turns" else match()
"""


def sessions_behind(ctx):
    """WAITERS sessions wait for a row that another one has changed; (that one, when the first began to wait)."""
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


@incident(1, often=True)
def postgres_idle_transaction(ctx):
    """PostgreSQL: 12 sessions behind the lock of one that is idle in its transaction."""
    holder, since = sessions_behind(ctx)
    # each client, and its session of the server
    return Truth("lock", ("psql", 2 * WAITERS), ("postgres", holder.backend), r"database lock \(idle in transaction\)", since)


@look_alike(1, often=True)
def postgres_idle_sessions(ctx):
    """PostgreSQL: 12 idle sessions, and one that is idle in a transaction for which nobody waits."""
    server = ctx.server(Postgres, deadlock_timeout="10min")
    holder, *_ = [Session(server, ctx) for _ in range(WAITERS + 1)]
    holder.ask("begin")


def java_started(ctx, lock, idle=False):
    directory = ctx.temporary()
    with open(directory + "/Shop.java", "w") as file:
        file.write(JAVA % {"lock": lock, "threads": JAVA_WAITERS, "idle": "true" if idle else "false"})
    jvm = Part(ctx, account("nobody"), [program("java", "default-jdk-headless"), "-XX:TieredStopAtLevel=1", "Shop.java"], directory)
    jvm.wait_up(lambda: os.path.exists(directory + "/told"))
    return jvm


@incident(2, often=True)
def java_synchronized(ctx):
    """Java: 16 threads of a pool wait to enter a synchronized block, in which another thread sleeps."""
    jvm = java_started(ctx, "monitor")
    return Truth("lock", ("pool-*-thread-*", JAVA_WAITERS), ("stock-update", jvm.pid), r"monitor of Object 0x.*sleeps", now(), True)


@look_alike(2)
def java_idle_pool(ctx):
    """Java: 16 threads of a pool have no work; one sleeps with a lock for which nobody waits."""
    java_started(ctx, "monitor", idle=True)


@incident(3)
def java_reentrant_lock(ctx):
    """Java: 16 threads of a pool wait for a ReentrantLock, with which another thread sleeps."""
    jvm = java_started(ctx, "lock")
    return Truth("lock", ("pool-*-thread-*", JAVA_WAITERS), ("stock-update", jvm.pid), r"ReentrantLock.*sleeps", now(), True)


@look_alike(3)
def java_idle_pool_beside_lock(ctx):
    """Java: 16 threads of a pool have no work; one sleeps with a ReentrantLock for which nobody waits."""
    java_started(ctx, "lock", idle=True)


@incident(4, often=True)
def python_gil(ctx):
    """Python: 8 threads wait for the GIL, which one keeps in a regular expression that does not end."""
    process = python(ctx, GIL, "match")
    return Truth("lock", ("python3", 8), ("python3", process.pid), "GIL", certain=True, also=("cpus",))


@incident(4.1)
def python_gil_in_turns(ctx):
    """Python: 9 threads compute and take turns with the GIL."""
    process = python(ctx, GIL, "turns")
    return Truth("lock", ("python3", None), ("python3", process.pid), "GIL", also=("cpus",))


@look_alike(4)
def python_idle_threads(ctx):
    """Python: 8 threads wait for an event, one computes."""
    python(ctx, GIL, "idle")
    return ("lock", "busy_thread", "sleeper", "server")


def flocks(ctx, crossed):
    """Two shells that take two files' locks, in opposite order if crossed; each with flock(1), as scripts do."""
    directory = ctx.temporary()
    for names in ("ab", "ba" if crossed else "ab"):
        text = "exec 8>%s 9>%s; flock 8; touch $$; until [ $(ls | grep -c '[0-9]') = %d ]; do sleep 0.1; done; flock 9; %s" % (
            names[0], names[1], 2 if crossed else 1, "" if crossed else "flock -u 9; flock -u 8; sleep 1000")
        shell(ctx, text, cwd=directory)


@incident(9)
def flock_deadlock(ctx):
    """Two shell scripts hold a file's lock each, and wait for the other's."""
    flocks(ctx, True)
    wait_until(lambda: truth.read("/proc/locks").count("-> FLOCK") >= 2, 20 * SLOW, "the deadlock")
    return Truth(("deadlock", "cycle"), ("flock", None), None, "each other|deadlock", now())


# Takes two files' locks, the second one for a time
LIMITED = """
import fcntl, os, signal, sys, time
def late(*_):
    raise TimeoutError
signal.signal(signal.SIGALRM, late)
first, second = (open(name, "w") for name in sys.argv[1:])
fcntl.flock(first, fcntl.LOCK_EX)
print("ready", flush=True)
time.sleep(1)
signal.alarm(60)
fcntl.flock(second, fcntl.LOCK_EX)
"""


@look_alike(9)
def flock_for_a_time(ctx):
    """Two programs wait for each other's file lock, and give up after a minute."""
    directory = ctx.temporary()
    for names in ("ab", "ba"):
        python(ctx, LIMITED, *(directory + "/" + name for name in names))
    wait_until(lambda: truth.read("/proc/locks").count("-> FLOCK") >= 2, 20 * SLOW, "the waits")
    return ("deadlock",)


@look_alike(9)
def flock_without_deadlock(ctx):
    """Two shell scripts take two files' locks one after the other, and then sleep."""
    flocks(ctx, False)
