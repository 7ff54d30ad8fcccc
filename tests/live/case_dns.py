"""Threads that wait until a host name is resolved, by DNS servers, systemd-resolved or nscd; and those that only look so."""
import sys

from case_kernel_waits import BEGIN
from harness import START_S, Findings, Process, Skip, case, check, rows_of, wait_until

SECONDS = 3
DNS = "slow", "udp", "epoll", "poll", "tls", "resolved"
OTHERS = {"server": "server", "idle_tls": "poll", "unconnected": "socket", "near": "client"}

# A network namespace of its own has the ports, and names are resolved by 127.0.0.1.
NAMESPACE = BEGIN + r"""
import socket
if libc.unshare(0x40000000):
    skip("no network namespace")
up = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(up, 0x8914, struct.pack("16sh14x", b"lo", 0x41))  # SIOCSIFFLAGS: IFF_UP, IFF_RUNNING
for path, text in (("/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:30\n"), ("/etc/nsswitch.conf", "hosts: dns\n")):
    source = place + b"/" + os.path.basename(path).encode()
    with open(source, "w") as file:
        file.write(text)
    if libc.mount(source, os.path.realpath(path).encode(), None, 0x1000, None):
        skip("no mount on %s" % path)
"""

# 127.0.0.1 answers after 0.4 s, 127.0.0.2 never does.
ASK = NAMESPACE + r"""
import select
if libc.mount(b"none", b"/run", b"tmpfs", 0, None):
    skip("no tmpfs on /run")
os.makedirs("/run/systemd/resolve")
def bound(address, kind=socket.SOCK_DGRAM):
    one = socket.socket(socket.AF_INET, kind)
    one.bind(address)
    if kind == socket.SOCK_STREAM:
        one.listen(8)
    return one
def asking(port=53):
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(("127.0.0.1", 0))
    one.connect(("127.0.0.2", port))
    one.send(b"?")
    return one
answering, silent, near = bound(("127.0.0.1", 53)), bound(("127.0.0.2", 53)), bound(("127.0.0.2", 54))
tls = bound(("127.0.0.2", 853), socket.SOCK_STREAM)
resolved = socket.socket(socket.AF_UNIX)
resolved.bind("/run/systemd/resolve/io.systemd.Resolve")
resolved.listen(8)
def answer():
    while True:
        query, client = answering.recvfrom(4096)
        time.sleep(0.4)
        answering.sendto(query[:2] + b"\x81\x83" + query[4:], client)  # there is no such name
def slow():
    while True:
        try:
            socket.getaddrinfo("name%d.example." % time.monotonic_ns(), 80, socket.AF_INET)
        except OSError:
            pass
def polls(*sockets, kept=False):
    event = os.eventfd(0) if hasattr(os, "eventfd") else os.pipe()[0]
    poll = select.epoll() if kept else select.poll()
    for one in (event, *sockets):
        poll.register(one, select.POLLIN)
    poll.poll()
def tls_ask(kept):
    one = socket.create_connection(("127.0.0.2", 853))
    peer = tls.accept()[0]
    if kept:  # the answer is here, and nothing else is due
        peer.send(b"!")
        one.recv(1)
        polls(one, kept=True)
    one.send(b"?")
    one.recv(1)
def resolved_ask():
    one = socket.socket(socket.AF_UNIX)
    one.connect("/run/systemd/resolve/io.systemd.Resolve")
    one.send(b"?")
    polls(one)
def unconnected():
    one = bound(("127.0.0.1", 0))
    one.sendto(b"?", ("127.0.0.2", 53))
    one.recvfrom(1)
answerer = part("answerer", answer)
asks = [part(name, run) for name, run in (
    ("slow", slow), ("udp", lambda: asking().recv(1)), ("epoll", lambda: polls(asking(), kept=True)),
    ("poll", lambda: polls(asking(), asking())), ("tls", lambda: tls_ask(False)), ("idle_tls", lambda: tls_ask(True)),
    ("resolved", resolved_ask), ("unconnected", unconnected), ("near", lambda: asking(54).recv(1)),
    ("server", lambda: [silent.recv(1) for _ in iter(int, 1)]))]
ready(*asks)
"""


@case
def wait_for_dns(ctx):
    """Threads that ask a slow DNS server by getaddrinfo(3), a silent one by UDP or TLS, alone or in a set, or systemd-resolved, are shown
    without -a as class dns, with their seconds; the server itself, a connection that nothing is due on, and others are not."""
    process = Process([sys.executable, "-c", ASK, ctx.temporary()])
    ctx.started.append(process)
    wait_until(lambda: b"\n" in process.out or process.code is not None, START_S, "that the script is ready")
    words = process.out.decode().split(maxsplit=1)
    check(words, "the script failed: %s", process.err)
    if words[0] == "skip":
        raise Skip(words[1])
    pids, find = list(map(int, words[1].split())), Findings()
    rows = ctx.rows("-p", words[1].strip().replace(" ", ","), seconds=SECONDS, columns="state,comm,why,waits_on,state_us")
    every = ctx.rows("-a", "-p", words[1].strip().replace(" ", ","), seconds=SECONDS, columns="state,comm,why,waits_on,state_us")
    for pid in pids:
        mine, all_mine = ([row for row in rows_of(of, pid) if row["state"] == "S"] for of in (rows, every))
        name = all_mine[-1]["comm"] if all_mine else "?"
        wanted = "dns" if name in DNS else OTHERS.get(name)
        settled = all_mine[len(all_mine) // 2:]
        find.expect(len(settled) > 5 and all(row["why"] == wanted for row in settled), "%s: not %s: %s", name, wanted, settled[-3:])
        if wanted != "dns":
            continue
        find.expect(len(mine) >= 0.8 * len(all_mine), "%s: %d rows without -a, %d with", name, len(mine), len(all_mine))
        if name == "slow":
            longest = max(int(row["state_us"]) for row in all_mine)
            find.expect(300000 < longest < 500000, "a wait of %d us for an answer that takes 400000 us", longest)
    find.close()
