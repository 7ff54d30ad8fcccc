"""Recordings of several hosts, joined by their TCP connections: --replay A/ B/ C/ --chains. Each host is network, pid and UTS namespaces of
its own, so that its recorder sees nothing of the others but the addresses of its connections."""
import collections
import json
import os
import re
import shutil
import struct
import subprocess
import sys

import truth
from case_namespaces import NEW_PIDS, unshared
from harness import SLOW, START_S, STOP_S, Findings, Process, Skip, case, check, preloading, through, wait_until

# What runs on the hosts: clients of "middle", which answers by itself or asks "base", which sleeps, computes, or waits for "keeper"'s lock.
WORK = r"""
import ctypes, fcntl, os, random, socket, sys, threading, time
libc = ctypes.CDLL(None)

def named(name):
    libc.prctl(15, name.encode(), 0, 0, 0)

def child(name, work, *args):
    if os.fork() == 0:
        libc.prctl(1, 9)
        random.seed(name)
        named(name)
        work(*args)
        os._exit(0)

def compute(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

def write_through(file, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        os.pwrite(file, b"x" * 65536, 0)
        os.fsync(file)

def keep(path):
    with open(path, "w") as file:
        while True:
            fcntl.lockf(file, fcntl.LOCK_EX)
            write_through(file.fileno(), random.uniform(0.05, 0.15))
            fcntl.lockf(file, fcntl.LOCK_UN)
            time.sleep(0.005)

def locked(path):
    with open(path, "w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)

def answer_of_base(kind, path):
    if kind == b"c":
        compute(0.03)
    elif kind == b"l":
        locked(path + "/kept")
    elif kind == b"d":
        with open("%s/%d" % (path, os.getpid()), "w") as file:
            write_through(file.fileno(), random.uniform(0.04, 0.12))
    else:
        time.sleep(random.uniform(0.04, 0.12))

def serve_base(connection, path):
    for kind in iter(lambda: connection.recv(1), b""):
        named("base_" + kind.decode())
        answer_of_base(kind, path)
        connection.sendall(kind)

def base(port, path):
    child("keeper", keep, path + "/kept")
    listener = socket.create_server(("", port), backlog=64)
    print("ready", flush=True)
    while True:
        connection = listener.accept()[0]
        child("base", serve_base, connection, path)
        connection.close()

def asked(connection, kind):
    connection.sendall(kind)
    return connection.recv(1)

def hoard(path, there):
    connection = socket.create_connection(there)
    with open(path, "w") as file:
        while True:
            fcntl.lockf(file, fcntl.LOCK_EX)
            asked(connection, b"d")
            fcntl.lockf(file, fcntl.LOCK_UN)
            time.sleep(0.005)

def serve_middle(connection, there, path):
    named("middle")
    behind = socket.create_connection(there)
    for kind in iter(lambda: connection.recv(1), b""):
        if kind == b"h":
            locked(path)
        else:
            asked(behind, kind)
        connection.sendall(kind)

def middle(port, there, path):
    child("hoard", hoard, path + "/hoarded", there)
    listener = socket.create_server(("", port), backlog=64)
    print("ready", flush=True)
    while True:
        threading.Thread(target=serve_middle, args=(listener.accept()[0], there, path + "/hoarded")).start()

def ask(kind, there):
    connection = socket.create_connection(there)
    while True:
        asked(connection, kind)
        time.sleep(random.uniform(0, 0.1 if kind == b"c" else 0.03))  # little of the CPU, or who has it is the root of all

def front(there):
    for kind in (b"h", b"d", b"l", b"c", b"s"):
        child("ask_" + kind.decode(), ask, kind, there)
    print("ready", flush=True)
    time.sleep(600)
"""
# who is at the end of the chains of each client; what base_s waits for is not recorded, as it only sleeps
ROOTS = {"ask_h": "base_d@base-1", "ask_d": "base_d@base-1", "ask_l": "keeper@base-1", "ask_c": "base_c@base-1", "ask_s": "base_s@base-1"}
HOSTS = ("front-1", "middle-1", "base-1")
# (host, device, address) of both ends of a wire
WIRES = ((("front-1", "wire0", "10.215.1.1"), ("middle-1", "wire1", "10.215.1.2")),
         (("middle-1", "wire2", "10.215.2.1"), ("base-1", "wire3", "10.215.2.2")))


class Host:
    """Namespaces of their own, in which process 1 does nothing."""

    def __init__(self, ctx, name):
        self.ctx, self.name = ctx, name
        process = Process([*unshared("--net", "--uts", *NEW_PIDS), "sh", "-c", "hostname %s && ip link set lo up && echo ready; read nothing" % name])
        ctx.started.append(process)
        wait_until(lambda: process.out or process.code is not None, START_S, "a host")
        self.init = min(truth.children(process.pid))
        self.prefix = ["nsenter", "--target", str(self.init), "--pid", "--mount", "--net", "--uts"]

    def runs(self, words):
        subprocess.run([*self.prefix, *words.split()], check=True)

    def works(self, call):
        process = Process([*self.prefix, sys.executable, "-c", WORK + call])
        self.ctx.started.append(process)
        wait_until(lambda: process.out or process.code is not None, START_S, call)
        check(process.code is None, "%s: %s", call, process.err)

    def records(self, directory, *args, **popen):
        return through(self.ctx, *self.prefix, workload=False).plain("-o", directory, "-F", 20, *args, **popen)


def hosts_of(ctx):
    """The hosts by name, joined by wires."""
    if not shutil.which("ip"):
        raise Skip("no ip (iproute2)")
    hosts = {name: Host(ctx, name) for name in HOSTS}
    for ends in WIRES:
        try:
            subprocess.run(["ip", "link", "add", ends[0][1], "netns", str(hosts[ends[0][0]].init), "type", "veth", "peer", "name",
                            ends[1][1], "netns", str(hosts[ends[1][0]].init)], check=True, stderr=subprocess.PIPE)
        except subprocess.CalledProcessError as error:
            raise Skip("no wires: %s" % error.stderr.decode().strip()) from error
        for host, device, address in ends:
            hosts[host].runs("ip addr add %s/24 dev %s" % (address, device))
            hosts[host].runs("ip link set %s up" % device)
    return hosts


def recorded(ctx, seconds, **popens):
    """Directories of recordings by host."""
    hosts = hosts_of(ctx)
    path = ctx.temporary()
    hosts["base-1"].works("base(7002, %r)" % path)
    hosts["middle-1"].works("middle(7001, ('10.215.2.2', 7002), %r)" % path)
    hosts["front-1"].works("front(('10.215.1.2', 7001))")
    directories = {name: "%s/%s" % (ctx.temporary(), name) for name in HOSTS}
    tools = [hosts[name].records(directories[name], "-d", seconds, **popens.get(name, {})) for name in HOSTS]
    for tool in tools:
        tool.finish_plain(0, seconds + START_S + STOP_S)
    return directories


AHEAD_S = 3
CLOCK = re.compile(r"Clocks: that of (\S+) is (\S+) ms (ahead of|behind) that of (\S+) ")
SHARES = re.compile(r"Of the waits for other hosts (\S+)% lead to the thread that served them, (\S+)% to its process, and (\S+)% to nobody")


def clock_ahead(ctx):
    """Environment of a recorder whose clock is ahead."""
    path = ctx.temporary() + "/ahead"
    with open(path, "wb") as file:
        file.write(struct.pack("=q", AHEAD_S))
    return {"env": dict(preloading(ctx, "clock_set"), CLOCK_SET=path)}


def replayed(ctx, *args):
    tool = ctx.plain("--chains", "--replay", *args)
    tool.finish_plain()
    return tool.out.decode()


def roots_by_client(text):
    """{client: {(root, its state): seconds}}; "-" for what is not known."""
    found = collections.defaultdict(collections.Counter)
    for seconds, client, root, state in re.findall(r"^ *\S+ +(\S+) +\S+% *#* +(ask_\w)@front-1 +(\S+) +(\S+)$", text, re.M):
        found[client][root, state] += float(seconds)
    return found


def findings_expect(ctx, find, names):
    """Expects that findings of three hosts say what clients wait for there, and that the lock's holder is a finding of its own host."""
    tool = ctx.plain("--findings", "--json", "--replay", *names)
    tool.finish_plain()
    told = [json.loads(line) for line in tool.out.decode().splitlines()]
    locks = [one["rank"] for one in told if one["finding"] == "lock" and one["host"] == "base-1"
             and one["culprits"][0]["name"] == "keeper"]
    waits = {one["waiter"]: one for one in told if one["finding"] == "other_host" and one["host"] == "front-1"}
    find.expect(set(ROOTS) <= set(waits), "waits for other hosts: %s", waits.keys())
    for client in set(ROOTS) & set(waits):
        wait, last = waits[client], ROOTS[client].replace("keeper", "base_l")
        right = [cause for cause in wait["causes"] if cause["text"].startswith("waits for %s, which " % last)]
        find.expect(wait["server"].startswith("middle") and sum(cause["samples"] for cause in right) > 0.6 * wait["matched"],
                    "%s: %s", client, wait)
        if client == "ask_l":
            find.expect("held by keeper@base-1" in right[0]["text"] if right else False, "%s", wait["causes"])
            find.expect(locks and right and right[0]["finding_rank"] in locks, "findings %s: %s", locks, wait["causes"])


@case(long=True)
def hosts_chains(ctx):
    """A client's wait leads to the thread on the second and third host that it waits for in the end, in nine of ten samples that have a peer,
    though one host's clock is wrong; by how much is found."""
    directories = recorded(ctx, 10 + 2 * SLOW, **{"base-1": clock_ahead(ctx)})
    names = [directories[host] for host in HOSTS]
    text = replayed(ctx, *names, "-g", "comm,root,root_state")
    find, found = Findings(), roots_by_client(text)
    for client, right in ROOTS.items():
        told = collections.Counter()
        for (root, state), seconds in found[client].items():
            # a server that others have kept from a CPU is the root then; where no state is known, only a process is
            if root == "base_%s@base-1" % client[-1] and state in ("RQ", "ON"):
                told[right] += seconds
            elif root == right or (state != "-" and not root.startswith(client)):
                told[root] += seconds
        find.expect(told[right] > 0.9 * sum(told.values()) and told[right] > 0.6 * sum(found[client].values()), "%s: %s", client,
                    dict(found[client]))
    clocks = {host: (float(ms) * (1 if way != "behind" else -1), by) for host, ms, way, by in CLOCK.findall(text)}
    find.expect("middle-1" in clocks and abs(clocks["middle-1"][0]) < 5 and clocks["middle-1"][1] == "front-1", "clocks: %s", clocks)
    find.expect("base-1" in clocks and abs(clocks["base-1"][0] - 1000 * AHEAD_S) < 5, "clocks: %s", clocks)
    shares = SHARES.search(text)
    find.expect(shares and float(shares.group(1)) > 60, "%s", shares and shares.groups())
    findings_expect(ctx, find, names)
    # a host in between has no recording here
    apart = replayed(ctx, names[0], names[2])
    find.expect("No connection is in two of these recordings" in apart, "%s", apart[-500:])
    twice = ctx.plain("--chains", "--replay", names[0], names[0] + "/")
    twice.finish_plain(2)
    find.expect("are one directory" in twice.err, "%s", twice.err)
    find.close()
