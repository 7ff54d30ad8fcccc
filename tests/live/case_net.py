"""The column net: what a wait for a TCP connection is for."""
import collections
import os
import re
import shutil
import sys

from harness import SLOW, START_S, Process, Skip, case, check, let_pass, rows_of, wait_until

WORKS = r"""
import ctypes, fcntl, heapq, os, select, signal, socket, struct, subprocess, sys, threading, time
libc, ends = ctypes.CDLL(None, use_errno=True), []
DELAY_S = 0.4

def run(*commands):
    for command in commands:
        subprocess.run(command.split(), check=True, stderr=subprocess.STDOUT)

def tun(name):
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, 0x400454ca, struct.pack("16sH22x", name.encode(), 0x1001))  # TUNSETIFF: IFF_TUN | IFF_NO_PI
    return fd

def child(name, work, *args):
    pid = os.fork()
    if pid:
        return pid
    libc.prctl(1, 9)  # PR_SET_PDEATHSIG
    libc.prctl(15, name.encode())  # PR_SET_NAME
    try:
        work(*args)
    finally:
        os._exit(1)

def delay(one, other):
    waiting = []
    while True:
        limit = max(0, waiting[0][0] - time.monotonic()) if waiting else None
        for fd in select.select([one, other], [], [], limit)[0]:
            heapq.heappush(waiting, (time.monotonic() + DELAY_S, other if fd == one else one, os.read(fd, 65536)))
        while waiting and waiting[0][0] <= time.monotonic():
            _, to, packet = heapq.heappop(waiting)
            try:
                os.write(to, packet)
            except OSError:  # it is not up yet: the other one has sent for IPv6
                pass

def listener(port, backlog=64):
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("0.0.0.0", port))
    server.listen(backlog)
    return server

def serve(port, work):
    server = listener(port)
    while True:
        threading.Thread(target=work, args=(server.accept()[0],), daemon=True).start()

def ignore(connection):
    while connection.recv(4096):
        pass

def read_one(connection):
    connection.recv(1)
    time.sleep(1000)

def read_none(connection):
    time.sleep(1000)

def answer_part(connection):
    connection.recv(1)
    connection.send(b"x" * 10)
    time.sleep(1000)

def echo(connection):
    while connection.recv(1):
        connection.send(b"x")

def connected(address):
    connection = socket.socket()
    connection.connect(address)
    return connection

def ask(address, broken=None):
    connection = connected(address)
    if broken:
        run(broken)
    connection.send(b"x")
    connection.recv(1)

def ask_epoll(address):
    connection, polled = connected(address), select.epoll()
    polled.register(connection, select.EPOLLIN)
    polled.register(os.eventfd(0), select.EPOLLIN)
    connection.send(b"x")
    polled.poll()

def poll_connect(address, limit_ms=None):
    connection, polled = socket.socket(), select.poll()
    connection.setblocking(False)
    connection.connect_ex(address)
    polled.register(connection, select.POLLOUT)
    while not polled.poll(limit_ms):
        pass

def poll_low_water(address):
    connection, polled = connected(address), select.poll()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 100)
    connection.send(b"x")
    polled.register(connection, select.POLLIN)
    polled.poll()

def fill(address):
    connection = connected(address)
    while True:
        connection.send(b"x" * 65536)

def hold_back(address):
    connection = connected(address)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    while True:
        connection.send(b"x")
        connection.recv(1)

def wait_for_more(address):
    connection = connected(address)
    connection.send(b"x")
    connection.recv(1)
    connection.recv(1)

def ping(address):
    connection = connected(address)
    while True:
        connection.send(b"x")
        connection.recv(1)

def proxied(address):
    near, far = socket.socketpair()
    child("net_proxy", connected, address)
    far.close()
    near.recv(1)

def listen_only():
    listener(7090).accept()

def full_backlog(name, server, address):
    ends.extend([connected(address), connected(address)])  # listen(2) with a backlog of 1 has room for two
    print(name, child(name, connected, address), flush=True)

def told(name, *args):
    print(name, child(name, *args), flush=True)

"""

# Two network namespaces, joined by a veth and by two TUN devices that delay each packet. Packets are lost without a filter: those to an
# address that the other namespace does not have, as it does not forward, and those to a host that has moved to another link address.
NAMESPACES = r"""
# the peer's namespace
ready, go = os.pipe(), os.pipe()
keeper = os.fork()
if not keeper:
    libc.prctl(1, 9)
    if libc.unshare(0x40000000):
        os._exit(1)
    os.write(ready[1], b"x")
    os.read(go[0], 1)
    run("ip link set lo up", "ip addr add 10.214.1.2/24 dev tsnapnet1", "ip addr add 10.214.1.3/24 dev tsnapnet1",
        "ip link set tsnapnet1 up", "ip addr add 10.214.2.2/24 dev tsnaptun1", "ip link set tsnaptun1 up")
    for port, work in ((7001, read_one), (7002, read_none), (7003, answer_part), (7004, echo), (7005, ignore)):
        child("net_server", serve, port, work)
    stopped = child("net_stopped", serve, 7006, ignore)
    listeners = [listener(7007, 1), listener(7008, 1)]
    told("accept", listen_only)
    full_backlog("backlog", listeners[0], ("127.0.0.1", 7007))
    os.write(ready[1], b"x")
    os.read(go[0], 1)
    os.kill(stopped, signal.SIGSTOP)
    os.write(ready[1], b"x")
    signal.pause()
if os.read(ready[0], 1) != b"x" or libc.unshare(0x40000000):
    sys.exit("no network namespaces")
near = tun("tsnaptun0")
pid = os.getpid()
home = os.open("/proc/self/ns/net", os.O_RDONLY)
libc.setns(os.open("/proc/%d/ns/net" % keeper, os.O_RDONLY), 0)
far = tun("tsnaptun1")
libc.setns(home, 0)
child("net_delay", delay, near, far)
run("ip link set lo up", "ip link add tsnapnet0 type veth peer name tsnapnet1 netns %d" % keeper,
    "ip addr add 10.214.1.1/24 dev tsnapnet0", "ip link set tsnapnet0 up", "ip addr add 10.214.2.1/24 dev tsnaptun0",
    "ip link set tsnaptun0 up", "ip route add 10.214.9.0/24 via 10.214.1.2")
os.write(go[1], b"x")
os.read(ready[0], 1)
there, time_s = "10.214.1.2", time.monotonic()
while socket.socket().connect_ex((there, 7006)):
    time.sleep(0.1)
    if time.monotonic() - time_s > 20:
        sys.exit("the namespaces are not joined")
told("syn", connected, ("10.214.9.9", 80))
told("syn_polled", poll_connect, ("10.214.9.9", 80))
told("syn_pieces", poll_connect, ("10.214.9.9", 80), 200)
told("resend", ask, ("10.214.1.3", 7001), "ip neigh replace 10.214.1.3 lladdr 02:00:00:00:00:99 dev tsnapnet0")
told("window", fill, (there, 7002))
told("peer_slow", ask, (there, 7001))
told("peer_unread", ask, (there, 7002))
told("peer_epoll", ask_epoll, (there, 7001))
told("unread", poll_low_water, (there, 7003))
told("held", hold_back, (there, 7004))
told("quiet", wait_for_more, (there, 7004))
told("front", proxied, ("10.214.9.9", 80))
told("transit", ping, ("10.214.2.2", 7004))
full_backlog("syn_backlog", None, (there, 7008))
stopped = connected((there, 7006))
os.write(go[1], b"x")
os.read(ready[0], 1)
told("peer_stopped", ask, (there, 7006))
"""

# One host, for kernels without these devices.
LOOPBACK = r"""
libc.unshare(0x40000000)  # where there are namespaces
run("ip link set lo up")
here = "127.0.0.1"
for port, work in ((7001, read_one), (7002, read_none), (7003, answer_part), (7004, echo)):
    child("net_server", serve, port, work)
stopped = child("net_stopped", serve, 7006, ignore)
listeners = [listener(7007, 1)]
told("accept", listen_only)
full_backlog("backlog", listeners[0], (here, 7007))
time.sleep(1)
asks = connected((here, 7006))
os.kill(stopped, signal.SIGSTOP)
told("window", fill, (here, 7002))
told("peer_slow", ask, (here, 7001))
told("peer_unread", ask, (here, 7002))
told("peer_epoll", ask_epoll, (here, 7001))
told("peer_stopped", ask, (here, 7006))
told("unread", poll_low_water, (here, 7003))
told("quiet", wait_for_more, (here, 7004))
"""

READY = """
print("ready", flush=True)
time.sleep(600)
"""


class Scene:
    def __init__(self, ctx, scene):
        if not shutil.which("ip"):
            raise Skip("no ip (iproute2)")
        process = Process([sys.executable, "-c", WORKS + scene + READY])
        ctx.started.append(process)
        wait_until(lambda: b"ready\n" in process.out or process.code is not None, START_S, "the connections")
        if process.code is not None:
            raise Skip("the connections can't be made: %s" % (process.out.decode() + process.err).strip()[-200:])
        self.pids = {words[0]: words[1] for words in (line.split() for line in process.out.decode().splitlines()) if len(words) == 2}


# What net_why begins with
WORDS = {
    "syn": "SYN sent, no answer", "backlog": "SYN sent, no answer", "resend": "sent again, not acknowledged",
    "window": "the peer's receive window is full", "transit": "on the way, not acknowledged yet", "peer": "acknowledged by the peer's host",
    "unread": "data is here and not read", "held": "held back on this host", "quiet": "nothing is due", "accept": "no connection waits",
}


LONG_S = 16  # until all that was not used lately has been dropped: sweeps of live/resolve/lookup.c


def verdicts_right(ctx, scene, seconds=4 * SLOW):
    """The threads of the scene wait for what their names say."""
    let_pass(6 * SLOW)  # a few tries again
    rows = ctx.rows("-a", "-p", ",".join(scene.pids.values()), seconds=seconds,
                    columns="state,net,net_why,net_us,rtt_us,retrans,unacked,unread")
    for name, pid in scene.pids.items():
        word, own = name.split("_")[0], [row for row in rows_of(rows, pid) if row["state"] == "S"]
        words = collections.Counter(row["net"] for row in own)
        # what is held back is sent after 200 ms, again and again: some samples are between
        right_share = 0.8 if word == "held" else 0.95
        check(len(own) >= 20 and words[word] >= right_share * len(own), "%s: %s", name, words)
        right = [row for row in own if row["net"] == word]
        check(all(row["net_why"].startswith(WORDS[word]) for row in right), "%s: %s", name, right[-1])
        last = right[-1]
        if word == "resend":
            check(int(last["retrans"]) >= 3 and last["unacked"] == "1" and "; sent again " in last["net_why"], "%s: %s", name, last)
        if name in ("syn", "syn_polled", "resend"):
            check(int(last["net_us"]) > 5000000 and re.search(r" for over (5|10|20) s| for over \d+ min", last["net_why"]), "%s: %s", name, last)
        if name == "syn_pieces":
            check(int(last["net_us"]) > 1500000, "%s: %s", name, last)  # since tsnap began
        if word == "backlog":
            check(": the accept queue of the listening socket is full; sent again " in last["net_why"], "%s: %s", name, last)
        if word == "peer":
            check(int(last["net_us"]) > 5000000 and last["unacked"] == "0", "%s: %s", name, last)
        if word == "transit":
            check(700000 < int(last["rtt_us"]) < 1200000 and last["unacked"] == "1", "%s: %s", name, last)
        if word == "unread":
            check(last["unread"] == "10", "%s: %s", name, last)


@case
def net_verdicts_on_loopback(ctx):
    """What a thread waits for on a connection of this host: a full accept queue, a closed window, a stopped and a slow server, an unread
    answer; also after a while."""
    verdicts_right(ctx, Scene(ctx, LOOPBACK), LONG_S)


@case
def net_verdicts(ctx):
    """Whether a wait for a connection is for the network, for the peer's host or for its program: a filtered port, loss, a full accept
    queue, a closed window, a stopped and a slow server, a delayed packet, an unread answer."""
    if not os.path.exists("/dev/net/tun"):
        raise Skip("no /dev/net/tun")
    scene = Scene(ctx, NAMESPACES)
    front = scene.pids.pop("front")
    verdicts_right(ctx, scene)
    # nothing is asked of a thread that serves nobody's connection; and without -a the waits of clients are the same
    rows = ctx.rows("-p", ",".join(scene.pids.values()), seconds=2 * SLOW, columns="state,net,root_waits_on")
    for name in ("syn", "resend", "peer_slow", "window"):
        own = rows_of(rows, scene.pids[name])
        check(own and own[-1]["net"] == name.split("_")[0], "%s, of work alone: %s", name, own[-1:])
    through = rows_of(ctx.rows("-a", "-p", front, seconds=2 * SLOW, columns="chain,root_waits_on"), front)[-1]
    for row in (rows_of(rows, scene.pids["syn"])[-1], through):
        check(row["root_waits_on"] == "tcp 10.214.9.9:80; SYN sent, no answer: filtered, the host is down, or its accept queue is full",
              "the root's words: %s", row)
    check(through["chain"] == "front socket> net_proxy", "the chain: %s", through)
