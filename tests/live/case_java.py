"""Java: compiled and interpreted code in stacks, against the JVM's own stacks; holders of monitors."""
import glob
import os

from harness import SLOW, Findings, case, check, scans_of, settle, wait_until
from parts import Part, account, program

# Stacks are of go() of four classes, each of which calls one that the compiler can't foresee; Interpreted is never compiled. The
# arguments are more than registers hold, so that compiled code that calls interpreted code has them put on the stack in between.
JAVA = """
import java.lang.management.ManagementFactory;
import javax.management.*;
public class Chain {
    interface Step { long go(int n, int seed, int end, long a, long b, long c, long d, double e) throws Exception; }
    static Step next(int n, int seed) { return steps[(n * 31 + seed * 17 + n * seed) % 97 % steps.length]; }
    static class One implements Step {
        public long go(int n, int seed, int end, long a, long b, long c, long d, double e) throws Exception {
            if (n == 0) return ends[end].go(0, seed, end, a, b, c, d, e);
            return next(n, seed).go(n - 1, seed, end, a, b, c, d, e) + 1;
        }
    }
    static class Two implements Step {
        public long go(int n, int seed, int end, long a, long b, long c, long d, double e) throws Exception {
            if (n == 0) return ends[end].go(0, seed, end, a, b, c, d, e);
            long f = a * 3, g = b * 5, h = c * 7, i = d * 9;
            double x = e * 1.5, y = e * 2.5;
            return next(n, seed).go(n - 1, seed, end, b, c, d, a, e) + f + g + h + i + (long) (x * y);
        }
    }
    static class Three implements Step {
        public long go(int n, int seed, int end, long a, long b, long c, long d, double e) throws Exception {
            if (n == 0) return ends[end].go(0, seed, end, a, b, c, d, e);
            long sum = 0;
            for (int i = 0; i < 2; i++)
                sum += next(n, seed + i).go((n - 1) * i, seed, i == 1 ? end : 0, a + i, b, c, d, e) * (a + i);
            return sum;
        }
    }
    static class Interpreted implements Step {
        public long go(int n, int seed, int end, long a, long b, long c, long d, double e) throws Exception {
            if (n == 0) return ends[end].go(0, seed, end, a, b, c, d, e);
            return next(n, seed).go(n - 1, seed, end, a, b, c, d, e) + a;
        }
    }
    static class Add implements Step {
        public long go(int n, int seed, int end, long a, long b, long c, long d, double e) { return a + b; }
    }
    static class Subtract implements Step {
        public long go(int n, int seed, int end, long a, long b, long c, long d, double e) { return a - b; }
    }
    static class Multiply implements Step {
        public long go(int n, int seed, int end, long a, long b, long c, long d, double e) { return a * b; }
    }
    static class Sleep implements Step {
        public long go(int n, int seed, int end, long a, long b, long c, long d, double e) throws Exception {
            synchronized (this) { wait(); }
            return 0;
        }
    }
    static final Step[] steps = {new One(), new Two(), new Three(), new Interpreted()};
    static final Step[] ends = {new Add(), new Subtract(), new Multiply(), new Sleep()};
    static class Sleeper extends Thread {
        final int n;
        Sleeper(int n) { this.n = n; }
        public void run() {
            try { steps[n % 4].go(n * 3, n, 3, 1, 2, 3, 4, 5); } catch (Exception e) { }
        }
    }
    static void perfMap() throws Exception {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        ObjectName name = new ObjectName("com.sun.management:type=DiagnosticCommand");
        try {
            server.invoke(name, "compilerPerfmap", new Object[0], new String[0]);
        } catch (ReflectionException e) { // since 22 it takes a file
            String file = "/tmp/perf-" + ProcessHandle.current().pid() + ".map";
            server.invoke(name, "compilerPerfmap", new Object[] {new String[] {file}}, new String[] {String[].class.getName()});
        }
    }
    public static void main(String[] words) throws Exception {
        for (int i = 0; i < 60000; i++) steps[i % 4].go(i % 40, i % 53, i % 3, i, 2, 3, 4, 5);
        Thread.sleep(1000);
        Sleeper[] sleepers = new Sleeper[20];
        for (int i = 0; i < sleepers.length; i++) (sleepers[i] = new Sleeper(i + 1)).start();
        for (Sleeper sleeper : sleepers)
            while (sleeper.getState() != Thread.State.WAITING) Thread.sleep(10);
        perfMap();
        StringBuilder text = new StringBuilder();
        for (Sleeper sleeper : sleepers) {
            text.append(sleeper.getName());
            for (StackTraceElement e : sleeper.getStackTrace())
                text.append(" ").append(e.getClassName()).append(".").append(e.getMethodName());
            text.append(System.lineSeparator());
        }
        java.nio.file.Files.write(java.nio.file.Paths.get("told"), text.append("ready").toString().getBytes());
        System.in.read();
    }
}
"""
# options for code by the JVM's best compiler, its quickest, and both; with one heap of code or three
OPTIONS = ((), ("-XX:-TieredCompilation",), ("-XX:TieredStopAtLevel=1",), ("-XX:+PreserveFramePointer",), ("-XX:-SegmentedCodeCache",))


def told_by_java(ctx, options):
    """A JVM's process, and its threads' functions, innermost first."""
    path = program("java", "default-jre-headless", "/usr/bin")
    directory = ctx.temporary()
    with open(directory + "/Chain.java", "w") as file:
        file.write(JAVA)
    java = Part(ctx, account("nobody"), [path, *options, "-XX:CompileCommand=quiet", "-XX:CompileCommand=exclude,Chain$Interpreted::go",
                                         "Chain.java"], directory)

    def told():
        try:
            with open(directory + "/told") as file:
                return file.read().splitlines() or [""]
        except OSError:
            return [""]
    wait_until(lambda: told()[-1] == "ready", 60 * SLOW, "Java's threads")
    return java, {line.split()[0]: line.split()[1:] for line in told()[:-1]}


def same(ours, javas):
    """Compares stacks frame by frame; tsnap's frames of interpreted code have no function's name."""
    return len(ours) == len(javas) and all(mine.startswith("Interpreter") or his in mine.replace("::", ".")
                                           for mine, his in zip(ours, javas))


@case(long=True)
def stacks_of_java(ctx):
    """Threads that sleep below dozens of compiled and interpreted functions: each frame is the JVM's own."""
    find, compiled = Findings(), 0
    for options in OPTIONS[:1 if SLOW > 1 else None if ctx.options.all else 2]:
        java, told = told_by_java(ctx, options)
        tool = ctx.stream("-a", "-F", 5, "-p", str(java.pid), columns="comm,state,stack")
        tool.wait_scans(10)
        # on a full host functions' names come in a later scan
        settle(lambda: all(row["stack"] and "[jit]+" not in row["stack"] and "[lost]" not in row["stack"]
                           for row in tool.scans()[-2][1] if row["comm"] in told))
        rows = tool.interrupt()
        for name, functions in told.items():
            mine = [row["stack"] for row in rows if row["comm"] == name and row["state"] == "S"][-1:]
            frames = [frame[:-len("_[j]")] for frame in mine[0].split(";")[::-1] if frame.endswith("_[j]")] if mine else []
            frames = [frame for frame in frames if not frame.startswith(("StubRoutines", "call_stub"))]
            compiled += sum("Chain$" in frame for frame in frames)
            find.expect(same(frames, functions), "%s %s: %s, Java has %s", options, name, frames, functions)
            find.expect(mine and "[lost]" not in mine[0], "%s %s: %s", options, name, mine)
        java.end()
        if os.path.exists("/tmp/perf-%d.map" % java.pid):
            os.unlink("/tmp/perf-%d.map" % java.pid)
    print("# %d frames of compiled functions" % compiled)
    find.close()
    check(compiled > 100, "only %d compiled", compiled)


MONITORS = """
import java.io.RandomAccessFile;
import java.util.concurrent.locks.LockSupport;
public class Monitors {
    static class Order { }
    static final Object lock = new Order(), other = new Object();
    static volatile long spun;
    static volatile boolean held;
    interface Work { void run() throws Exception; }
    static Thread start(String name, Work work) {
        Thread thread = new Thread(() -> { try { work.run(); } catch (Exception e) { } }, name);
        thread.start();
        return thread;
    }
    static void hold(String how) throws Exception {
        synchronized (lock) {
            held = true;
            if (how.equals("nap")) Thread.sleep(3600000);
            if (how.equals("spin")) for (;;) spun++;
            RandomAccessFile file = new RandomAccessFile("synced", "rw");
            for (;;) { file.seek(0); file.write(1); file.getFD().sync(); }
        }
    }
    public static void main(String[] words) throws Exception {
        start("holder", () -> hold(words[0]));
        while (!held) Thread.sleep(10);
        start("parked", () -> { for (;;) LockSupport.park(); });
        start("notified", () -> { synchronized (other) { other.wait(); } });
        for (int i = 0; i < 8; i++) {
            Thread waiter = start("waiter" + i, () -> { synchronized (lock) { spun++; } });
            while (waiter.getState() != Thread.State.BLOCKED) Thread.sleep(10);
        }
        java.nio.file.Files.write(java.nio.file.Paths.get("told"), "ready".getBytes());
        System.in.read();
    }
}
"""


def monitors_run(ctx, java, how):
    """Scans of a JVM in which a thread holds a monitor that others wait to enter."""
    directory = ctx.temporary()
    with open(directory + "/Monitors.java", "w") as file:
        file.write(MONITORS)
    jvm = Part(ctx, account("nobody"), [java, "Monitors.java", how], directory)
    wait_until(lambda: os.path.exists(directory + "/told"), 60 * SLOW, "Java's threads")
    tool = ctx.stream("-a", "-F", 10, "-p", str(jvm.pid),
                      columns="comm,state,waits_on,blocker_tid,blocker_kind,blocker_sure,chain,root_state")
    work = ctx.stream("-F", 10, "-p", str(jvm.pid), columns="comm,state,why")
    tool.wait_scans(30)
    work.wait_scans(60)
    rows, work = tool.interrupt(), work.interrupt()
    jvm.end()
    return rows, work


@case(long=True)
def chain_of_monitors(ctx):
    """Threads wait to enter a monitor of a JVM, with --all of each installed one: its holder is shown, whatever it does; a thread that
    waits for something else has no such edge. Waiting for a monitor is work, whatever columns are shown."""
    find = Findings()
    javas = sorted(glob.glob("/usr/lib/jvm/*/bin/java")) or [program("java", "default-jre-headless", "/usr/bin")]
    for java in sorted({os.path.realpath(path) for path in javas})[:None if ctx.options.all else 1]:
        for how in ("nap", "spin", "sync"):
            rows, work = monitors_run(ctx, java, how)
            asleep = [[row["comm"] for row in scan if row["state"] == "S" and row["why"] == "lock"] for _, scan in scans_of(work)]
            # on a busy host some of them have just been woken
            find.expect(any(sorted(scan) == ["waiter%d" % i for i in range(8)] for scan in asleep[-10:]),
                        "%s %s: without a column that shows the monitor, those that wait for it are %s", java, how, asleep[-10:])
            holders = {row["tid"] for row in rows if row["comm"] == "holder"}
            waiting = [row for row in rows if row["comm"].startswith("waiter") and row["state"] == "S"]
            told = [row for row in waiting if row["blocker_kind"] == "monitor"]
            wrong = [row for row in rows if row["blocker_kind"] == "monitor" and
                     (row["blocker_tid"] not in holders or not row["comm"].startswith("waiter"))]
            right = [row for row in told if row["blocker_sure"] == "certain" and row["chain"].startswith(row["comm"] + " monitor> holder")
                     and row["waits_on"].startswith("monitor of Monitors$Order 0x")
                     and row["waits_on"].endswith(" held by %s holder" % row["blocker_tid"])]
            find.expect(len(waiting) >= 100 and len(holders) == 1, "%s %s: %d samples, holders %s", java, how, len(waiting), holders)
            find.expect(len(right) >= 0.9 * len(waiting), "%s %s: %d of %d: %s", java, how, len(right), len(waiting),
                        [row for row in waiting if row not in right][-2:])
            find.expect(not wrong, "%s %s: wrong: %s", java, how, wrong[:2])
    find.close()


# Threads w0, w1, ... wait for the locks that h0, h1, ... have; n0, ... wait for something that no single thread has. h0 naps; another one
# works, and in "churn" pairs of threads take new locks all the time, while the collector moves objects.
LOCKS = """
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.locks.*;
public class Locks {
    interface Work { void run() throws Exception; }
    static volatile long spun;
    static class Gate extends AbstractQueuedSynchronizer {
        protected boolean tryAcquire(int count) {
            if (!compareAndSetState(0, 1)) return false;
            setExclusiveOwnerThread(Thread.currentThread());
            return true;
        }
    }
    static Thread start(String name, Work work) {
        Thread thread = new Thread(() -> { try { work.run(); } catch (Exception e) { } }, name);
        thread.start();
        return thread;
    }
    static void nap() throws Exception { Thread.sleep(3600000); }
    static void held(int number, boolean works, Work lock) throws Exception {
        CountDownLatch held = new CountDownLatch(1);
        start("h" + number, () -> { lock.run(); held.countDown(); while (works) spun++; nap(); });
        held.await();
    }
    static void wait(String name, Work work) throws Exception {
        Thread thread = start(name, work);
        while (thread.getState() != Thread.State.WAITING && thread.getState() != Thread.State.TIMED_WAITING) Thread.sleep(10);
    }
    static void still() throws Exception {
        ReentrantLock lock = new ReentrantLock(), fair = new ReentrantLock(true);
        ReentrantReadWriteLock written = new ReentrantReadWriteLock(), read = new ReentrantReadWriteLock();
        Condition condition = lock.newCondition();
        Gate gate = new Gate();
        ReentrantLock free = new ReentrantLock();
        held(0, false, () -> lock.lock());
        held(1, true, () -> fair.lock());
        held(2, false, () -> written.writeLock().lock());
        held(3, false, () -> gate.acquire(1));
        held(4, false, () -> read.readLock().lock());
        wait("w0", () -> lock.lock());
        wait("w0", () -> lock.tryLock(1, TimeUnit.HOURS));
        wait("w1", () -> fair.lock());
        wait("w2", () -> written.writeLock().lock());
        wait("w2", () -> written.readLock().lock());
        wait("w3", () -> gate.acquire(1));
        wait("n0", () -> read.writeLock().lock());
        wait("n1", () -> new Semaphore(0).acquire());
        wait("n2", () -> new CountDownLatch(1).await());
        wait("n3", () -> new LinkedBlockingQueue<Object>().take());
        wait("n4", () -> { for (;;) LockSupport.park(); });
        wait("n5", () -> { free.lock(); free.newCondition().await(); });
    }
    // w0 waits for w1, w1 for w2, and w2, for ever or for a time, for w0
    static void circle(boolean timed) throws Exception {
        ReentrantLock[] locks = {new ReentrantLock(), new ReentrantLock(true)};
        CyclicBarrier held = new CyclicBarrier(3);
        start("w0", () -> { locks[0].lock(); held.await(); locks[1].lock(); });
        start("w1", () -> { locks[1].lock(); held.await(); synchronized (locks) { } });
        start("w2", () -> { synchronized (locks) { held.await(); if (timed) locks[0].tryLock(1, TimeUnit.HOURS); else locks[0].lock(); } });
        Thread.sleep(1000);
    }
    static void churn() {
        for (int i = 0; i < 10; i++) {
            int number = i;
            SynchronousQueue<ReentrantLock> locks = new SynchronousQueue<>();
            start("h" + i, () -> {
                for (;;) {
                    ReentrantLock lock = new ReentrantLock();
                    lock.lock();
                    locks.put(lock);
                    Thread.sleep(30 + number);
                    lock.unlock();
                }
            });
            start("w" + i, () -> { for (;;) { ReentrantLock lock = locks.take(); lock.lock(); lock.unlock(); } });
        }
        start("garbage", () -> {
            byte[][] kept = new byte[20000][];
            Random random = new Random();
            for (;;) {
                kept[random.nextInt(kept.length)] = new byte[random.nextInt(4000)];
                if (random.nextInt(50) == 0) Thread.sleep(1);
            }
        });
        start("collect", () -> { for (;;) { System.gc(); Thread.sleep(150); } });
    }
    public static void main(String[] words) throws Exception {
        if (words[0].equals("churn")) churn();
        else if (words[0].equals("still")) still();
        else circle(words[0].equals("timed"));
        java.nio.file.Files.write(java.nio.file.Paths.get("told"), "ready".getBytes());
        nap();
    }
}
"""
LOCK_CLASSES = {"w0": "ReentrantLock", "w1": "ReentrantLock", "w2": "ReentrantReadWriteLock", "w3": "Locks$Gate"}
# options for other collectors and forms of pointers; and those with which objects can't be read
LOCK_OPTIONS = ((), ("-XX:+UseSerialGC",), ("-XX:-UseCompressedOops",), ("-Xmx40g",), ("-XX:-UseCompressedClassPointers",),
                ("-XX:+UseShenandoahGC",), ("-XX:+UseZGC",))


def locks_run(ctx, java, options, how):
    """Rows of a JVM's threads that wait for locks of java.util.concurrent."""
    directory = ctx.temporary()
    with open(directory + "/Locks.java", "w") as file:
        file.write(LOCKS)
    jvm = Part(ctx, account("nobody"), [java, *options, "Locks.java", how], directory)
    wait_until(lambda: os.path.exists(directory + "/told") or jvm.code is not None, 60 * SLOW, "Java's threads")
    tool = ctx.stream("-a", "-F", 10, "-p", str(jvm.pid), columns="comm,state,waits_on,blocker_tid,blocker_kind,blocker_sure,chain")
    tool.wait_scans(30)
    rows = tool.interrupt()
    jvm.end()
    return rows


@case
def deadlock_of_java_locks(ctx):
    """Threads that wait for each other, for locks and a monitor, are in a deadlock; not so if one of them waits for a time only."""
    for how, word in (("forever", "DEADLOCK"), ("timed", "cycle")):
        rows = locks_run(ctx, program("java", "default-jre-headless", "/usr/bin"), (), how)
        chains = {row["chain"] for row in rows if row["comm"] == "w0" and row["state"] == "S"}
        check("w0 Java lock> w1 monitor> w2 Java lock> w0 " + word in chains, "%s: %s", how, chains)
        other = "cycle" if word == "DEADLOCK" else "DEADLOCK"
        check(not any(other in chain for chain in chains), "%s: %s", how, chains)


@case(long=True)
def chain_of_java_locks(ctx):
    """Threads are parked for locks of java.util.concurrent, with --all of each installed JVM and with other options: the holder of each is
    shown, and the lock's class; a thread that waits for anything else has no such edge. No wrong holder is shown while objects move."""
    find = Findings()
    javas = sorted(glob.glob("/usr/lib/jvm/*/bin/java")) or [program("java", "default-jre-headless", "/usr/bin")]
    for java in sorted({os.path.realpath(path) for path in javas})[:None if ctx.options.all else 1]:
        for options in LOCK_OPTIONS[:None if ctx.options.all else 1]:
            rows = locks_run(ctx, java, options, "still")
            holders = {row["comm"]: row["tid"] for row in rows if row["comm"][:1] == "h"}
            waiting = [row for row in rows if row["comm"] in LOCK_CLASSES and row["state"] == "S"]
            told = [row for row in rows if row["blocker_kind"] == "Java lock"]
            right = [row for row in told if row in waiting and row["blocker_sure"] == "certain" and
                     row["blocker_tid"] == holders["h" + row["comm"][1:]] and
                     row["waits_on"].startswith(LOCK_CLASSES[row["comm"]] + " 0x") and
                     row["waits_on"].endswith(" held by %s h%s" % (row["blocker_tid"], row["comm"][1:]))]
            find.expect(len(waiting) >= 100 and len(holders) == 5, "%s %s: %d samples, holders %s", java, options, len(waiting), holders)
            find.expect(len(told) == len(right), "%s %s: wrong: %s", java, options, [row for row in told if row not in right][:2])
            least = 0 if "ZGC" in "".join(options) else 0.9 * len(waiting)
            find.expect(len(right) >= least, "%s %s: %d of %d: %s", java, options, len(right), len(waiting),
                        [row for row in waiting if row not in right][-2:])
        for options in (("-Xmx256m", "-XX:+UseSerialGC"), ("-Xmx256m", "-XX:+UseShenandoahGC"))[:None if ctx.options.all else 1]:
            rows = locks_run(ctx, java, options, "churn")
            told = [row for row in rows if row["blocker_kind"] == "Java lock"]
            wrong = [row for row in told if not row["chain"].startswith("%s Java lock> h%s" % (row["comm"], row["comm"][1:]))]
            find.expect(len(told) >= 30 and not wrong, "%s %s: %d, wrong: %s", java, options, len(told), wrong[:3])
    find.close()
