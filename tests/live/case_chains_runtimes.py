"""Wait chains into runtimes that put queues between connections and threads: node's event loop, pools of Java, goroutines of Go. The
thread that works for a client is shown if there is one; where it can't be known the process is shown."""
import collections
import os
import subprocess
import sys

from case_chains import LIKELY
from harness import Findings, Process, case, check, settle
from parts import Part, account, program

WORK_MS = 250
SCANS = 40  # at 20 Hz
COLUMNS = "comm,state,blocker_tid,blocker_pid,blocker_kind,blocker_sure,chain"
CLIENT = """
import socket, sys
server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
while True:
    server.sendall(b"x\\n")
    if not server.recv(64):
        break
"""
# Servers, each of which prints its port, and answers a line after WORK_MS, asleep ("nap") or at work ("spin").
NODE = """
const net = require('net'), crypto = require('crypto');
const server = net.createServer(connection => connection.on('data', () => {
    const answer = () => connection.write('x\\n');
    if (process.argv[2] == 'nap') setTimeout(answer, %d);
    else crypto.pbkdf2('a', 'b', 100000, 64, 'sha512', answer); // by a thread of libuv's pool
}));
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
""" % WORK_MS
GO = """
package main
import ("bufio"; "fmt"; "net"; "os"; "time")
func serve(connection net.Conn, spins bool) {
    lines := bufio.NewReader(connection)
    for {
        if _, err := lines.ReadString('\\n'); err != nil { return }
        if spins {
            for begin := time.Now(); time.Since(begin) < %d * time.Millisecond; { }
        } else {
            time.Sleep(%d * time.Millisecond)
        }
        connection.Write([]byte("x\\n"))
    }
}
func main() {
    listener, err := net.Listen("tcp", "127.0.0.1:0")
    if err != nil { panic(err) }
    fmt.Println(listener.Addr().(*net.TCPAddr).Port)
    for {
        if connection, err := listener.Accept(); err == nil { go serve(connection, os.Args[1] == "spin") }
    }
}
""" % (WORK_MS, WORK_MS)
# A server of which one thread waits for all connections and puts requests into the queue of a pool.
JAVA = """
import java.net.*;
import java.nio.*;
import java.nio.channels.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;
public class Serve {
    static volatile long spun;
    static void work(boolean spins) throws Exception {
        long end = System.nanoTime() + %d * 1000000L;
        if (!spins) Thread.sleep(%d);
        while (spins && System.nanoTime() < end) spun++;
    }
    static void answer(SelectionKey key, boolean spins) {
        try {
            ByteBuffer line = ByteBuffer.allocate(64);
            if (((SocketChannel) key.channel()).read(line) < 0) { key.channel().close(); return; }
            work(spins);
            ((SocketChannel) key.channel()).write(ByteBuffer.wrap("x\\n".getBytes()));
            key.interestOps(SelectionKey.OP_READ);
            key.selector().wakeup();
        } catch (Exception e) { key.cancel(); }
    }
    public static void main(String[] words) throws Exception {
        AtomicInteger threads = new AtomicInteger();
        ExecutorService pool = Executors.newFixedThreadPool(6, work -> new Thread(work, "worker" + threads.incrementAndGet()));
        boolean spins = words[0].equals("spin");
        Selector selector = Selector.open();
        ServerSocketChannel listening = ServerSocketChannel.open();
        listening.bind(new InetSocketAddress("127.0.0.1", 0));
        listening.configureBlocking(false);
        listening.register(selector, SelectionKey.OP_ACCEPT);
        System.out.println(listening.socket().getLocalPort());
        for (;;) {
            selector.select();
            for (SelectionKey key : selector.selectedKeys()) {
                if (key.isAcceptable()) {
                    SocketChannel connection = listening.accept();
                    connection.configureBlocking(false);
                    connection.register(selector, SelectionKey.OP_READ);
                } else if (key.isReadable()) {
                    key.interestOps(0);
                    pool.execute(() -> answer(key, spins));
                }
            }
            selector.selectedKeys().clear();
        }
    }
}
""" % (WORK_MS, WORK_MS)


def server_start(ctx, argv, source, name, how):
    directory = ctx.temporary()
    with open(os.path.join(directory, name), "w") as file:
        file.write(source)
    server = Part(ctx, account("nobody"), argv + [how], directory)
    server.wait_up(lambda: server.out.endswith(b"\n"))
    return server


def clients_start(ctx, server, count):
    clients = [Process([sys.executable, "-c", CLIENT, server.out.split()[0].decode()]) for _ in range(count)]
    ctx.started.extend(clients)
    return [client.pid for client in clients]


def run_runtime(ctx, name, start, thread_is_right):
    """A server that naps for three clients, one that works for one. thread_is_right(how, server's pid, row of the thread):
    whether the thread that is shown as blocker, in the state that it had in that scan, may be the one that works for the client."""
    servers = {how: start(how) for how in ("nap", "spin")}
    clients = {pid: how for how, count in (("nap", 3), ("spin", 1)) for pid in clients_start(ctx, servers[how], count)}
    pids = ",".join(str(pid) for pid in [server.pid for server in servers.values()] + list(clients))
    tool = ctx.stream("-a", "-p", pids, columns=COLUMNS)
    tool.wait_scans(2)
    # other ends are found in a walk over all processes
    settle(lambda: len({row["tid"] for _, scan in tool.scans() for row in scan if row["blocker_kind"] == "socket"}) >= len(clients))
    first = len(tool.scans())
    tool.wait_scans(first + SCANS)
    tool.interrupt()
    scans = tool.scans()[first:]
    count, right, threads, wrong = collections.Counter(), collections.Counter(), collections.Counter(), collections.Counter()
    find = Findings()
    for _, scan in scans:
        by_tid = {row["tid"]: row for row in scan}
        for row in scan:
            how = clients.get(int(row["tid"]))
            if not how or row["state"] != "S":
                continue
            pid, told = servers[how].pid, row["blocker_tid"]
            find.expect(row["blocker_sure"] != "certain", "%s %s: certain: %s", name, how, row)
            process = row["blocker_pid"] == str(pid) and row["blocker_kind"] == "socket"
            right_thread = process and told in by_tid and thread_is_right(how, pid, by_tid[told])
            count[how] += 1
            threads[how] += bool(right_thread)
            right[how] += right_thread or (process and not told and row["blocker_sure"] == "process")
            if process and told and not right_thread:
                wrong[how, by_tid.get(told, {}).get("comm"), by_tid.get(told, {}).get("state")] += 1
    words = ["%s %s: %d samples, %d right, %d with the thread" % (name, how, count[how], right[how], threads[how]) for how in servers]
    print("# " + "; ".join(words))
    for how in servers:
        find.expect(count[how] >= 10, "%s %s: %d samples", name, how, count[how])
        find.expect(100.0 * right[how] >= LIKELY * count[how], "%s; wrong threads: %s", words, wrong)
    find.close()
    return count, threads


def works(row):
    return row["state"] in ("ON", "RQ")


@case
def chain_to_node(ctx):
    """node: the chain leads to its event loop, which waits for a timer, or to the thread of its pool that works."""
    node = program("node", "nodejs")
    count, threads = run_runtime(ctx, "node", lambda how: server_start(ctx, [node, "serve.js"], NODE, "serve.js", how),
                                 lambda how, pid, row: row["tid"] == str(pid) if how == "nap" else works(row))
    check(threads["nap"] >= 0.8 * count["nap"], "the event loop is told in %d of %d", threads["nap"], count["nap"])


@case(alone=True, thorough=True)
def chain_to_java_pool(ctx):
    """Java: the chain leads to a thread of the pool, never to the one that waits for all connections."""
    java = program("java", "default-jre-headless", "/usr/bin")
    run_runtime(ctx, "Java", lambda how: server_start(ctx, [java, "Serve.java"], JAVA, "Serve.java", how),
                lambda how, pid, row: row["comm"].startswith("worker") and (how == "nap" or works(row)))


@case
def chain_to_goroutine(ctx):
    """Go: the chain leads to the process if a goroutine sleeps, as it has no thread then; to a thread on a CPU if it works."""
    go = program("go", "golang")
    made = ctx.temporary()
    with open(os.path.join(made, "serve.go"), "w") as file:
        file.write(GO)
    subprocess.run([go, "build", "-o", "serve", "serve.go"], cwd=made, check=True, env=dict(os.environ, GOCACHE=made, GO111MODULE="off"))
    os.chmod(made, 0o755)
    run_runtime(ctx, "Go", lambda how: server_start(ctx, [made + "/serve"], GO, "serve.go", how),
                lambda how, pid, row: how == "spin" and works(row))
