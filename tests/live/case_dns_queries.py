"""--trace dns: each query over UDP once, with its client, name, response code and latency, whatever library asked."""
import json
import os
import shutil
import subprocess
import sys
import time

from case_dns import NAMESPACE
from case_kernel_waits import BEGIN
from harness import SLOW, START_S, Findings, Process, Skip, case, check, wait_until

# A server on 127.0.0.1 that answers a name like a120.b3.test after 120 ms with response code 3, and never one that begins with "never"; it
# notes which port asked, and when.
NAMES = NAMESPACE + r"""
import errno, json, select, subprocess
now = time.monotonic_ns
def labels(name):
    return b"".join(bytes([len(one)]) + one for one in name.split(b".")) + b"\0"
def question(name, kind=1, number=7):
    return struct.pack(">HHHHHH", number, 0x100, 1, 0, 0, 0) + labels(name) + struct.pack(">HH", kind, 1)
def asked(query):
    at, parts = 12, []
    while query[at]:
        parts.append(query[at + 1:at + 1 + query[at]])
        at += 1 + query[at]
    return parts, struct.unpack(">H", query[at + 1:at + 3])[0], query[12:at + 5]
def server():
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(("127.0.0.1", 53))
    due, log = [], open(place + b"/log", "w")
    print("up", file=log, flush=True)
    while True:
        due.sort(key=lambda item: item[0])
        if not select.select([one], [], [], max(0, (due[0][0] - now()) / 1e9) if due else None)[0]:
            _, begun, client, answer, row = due.pop(0)
            took = now() - begun
            one.sendto(answer, client)
            print(json.dumps(row + [took]), file=log, flush=True)
            continue
        query, client = one.recvfrom(4096)
        begun = now()
        parts, kind, rest = asked(query)
        name = b".".join(parts).decode("latin-1")
        if parts[0].startswith(b"never"):
            print(json.dumps([name, kind, client[1], None, None]), file=log, flush=True)
            continue
        wait, code = int(parts[0][1:]), int(parts[1][1:])
        body = rest
        if code == 0 and kind == 1:
            body += struct.pack(">HHHIH", 0xc00c, 1, 1, 60, 4) + bytes([192, 0, 2, 1])
        flags = 0x8180 | code | (0x200 if parts[0][:1] == b"t" else 0)
        answer = query[:2] + struct.pack(">HHHHH", flags, 1, int(body is not rest), 0, 0) + body
        due.append((begun + wait * 1000000, begun, client, answer, [name, kind, client[1], code]))
served = part("server", server)
while not os.path.exists(place + b"/log") or not os.path.getsize(place + b"/log"):
    time.sleep(0.01)
print("ready", flush=True)
sys.stdin.readline()
truth = []
def ran(name, argv):
    begun = now()
    one = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    one.wait()
    truth.append({"client": name, "pid": one.pid, "took": now() - begun, "words": argv[1]})
# without an answer, sent twice; nobody there; both are known at the end
silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
silent.connect(("127.0.0.1", 53))
silent.send(question(b"never.x.test", 16))
time.sleep(1)
silent.send(question(b"never.x.test", 16))
sent_again = now()
nobody = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
nobody.connect(("::1", 53))
nobody.send(question(b"nobody.test"))
try:
    nobody.recv(100)
    refused = None
except OSError as error:
    refused = error.errno
begun = now()
socket.getaddrinfo("a80.r0.glibc.test", 80)  # A and AAAA
took = now() - begun
truth.append({"client": "glibc", "pid": os.getpid(), "took": took, "words": "a80.r0.glibc.test"})
for name in sys.argv[2:]:
    ran(name, [sys.argv[1] + "/" + name, "a60.r0.%s.test" % name])
    ran(name, [sys.argv[1] + "/" + name, "a20.r3.%s.test" % name])
# other sockets, other calls, response codes, hostile names; connected and not
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
two = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)  # IPv4 by an IPv6 socket
raw = [(b"a10.r2.raw.test", 1), (b"a0.r0.raw.test", 28), (b"t5.r0.raw.test", 65), (b"a3.r5.\x1b[31m\n,\".te\xffst", 64999),
       (b"a1.r0." + b".".join([b"x" * 60] * 3), 33)]
for number, (name, kind) in enumerate(raw):
    begun = now()
    if number % 2:
        two.sendmsg([question(name, kind, number)], [], 0, ("::ffff:127.0.0.1", 53))
        two.recv(4096)
    else:
        one.sendto(question(name, kind, number), ("127.0.0.1", 53))
        one.recv(4096)
    truth.append({"client": "raw", "pid": os.getpid(), "took": now() - begun, "words": name.decode("latin-1")})
time.sleep(max(0, 7.2 - (now() - sent_again) / 1e9))
print(json.dumps({"own": os.getpid(), "server": served, "refused": refused, "truth": truth}), flush=True)
sys.stdin.read()
"""
MUSL = """
#include <netdb.h>
int main(int argc, char **argv)
{
	struct addrinfo hints = {.ai_family = AF_INET}, *found;

	return !!getaddrinfo(argv[1], "80", &hints, &found);
}
"""
GO = """
package main
import ("net"; "os"; "context")
func main() {
	resolver := net.Resolver{PreferGo: true}
	if _, err := resolver.LookupIP(context.Background(), "ip4", os.Args[1] + "."); err != nil { os.Exit(1) }
}
"""


def programs_make(directory, *names):
    """Programs with the resolvers of these names, as far as their compilers are here."""
    made = []
    for name, text, tool, argv in (("musl", MUSL, "musl-gcc", ["-static", "-o"]), ("go", GO, "go", ["build", "-o"])):
        if name not in names or not shutil.which(tool):
            continue
        source = os.path.join(directory, name + (".c" if name == "musl" else ".go"))
        with open(source, "w") as file:
            file.write(text)
        subprocess.run([tool, *argv, os.path.join(directory, name), source], check=True,
                       env=dict(os.environ, GOCACHE=directory + "/cache", GO111MODULE="off", CGO_ENABLED="0"))
        made.append(name)
    return made


def shown(name):
    """A name as a zone file has it, in a CSV, where a backslash is two."""
    out = []
    for byte in name.encode("latin-1"):
        if byte <= 32 or byte > 126:
            out.append("\\%03d" % byte)
        else:
            out.append("\\" + chr(byte) if chr(byte) in "\\\"" else chr(byte))
    return "".join(out).replace("\\", "\\\\")


def queries_of(ctx, *programs):
    """Rows of --trace dns, what the server says of each query [name, type, port, code, ns], and what the clients say."""
    directory = ctx.temporary()
    for name in programs:
        shutil.copy(name, directory)
    process = Process([sys.executable, "-c", NAMES, directory, *(os.path.basename(name) for name in programs)])
    ctx.started.append(process)
    wait_until(lambda: b"\n" in process.out or process.code is not None, START_S, "that the script is ready")
    if process.out.startswith(b"skip"):
        raise Skip(process.out.decode()[5:])
    check(process.out == b"ready\n", "the script failed: %s", process.err)
    tool = ctx.plain("--csv", "--trace", "dns")
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    process.process.stdin.write(b"go\n")
    process.process.stdin.flush()
    wait_until(lambda: process.out.count(b"\n") > 1 or process.code is not None, 30 + START_S, "that all have asked")
    check(process.out.count(b"\n") > 1, "the script failed: %s", process.err)
    time.sleep(0.3 * SLOW)
    rows = tool.interrupt()
    with open(os.path.join(directory, "log"), encoding="utf-8") as file:
        served = [json.loads(line) for line in file.readlines()[1:]]
    return rows, served, json.loads(process.out.splitlines()[1])


TYPES = {1: "A", 28: "AAAA", 33: "SRV", 16: "TXT", 65: "HTTPS"}
RCODES = {0: "NOERROR", 2: "SERVFAIL", 3: "NXDOMAIN", 5: "REFUSED"}


def compare(ctx, *names):
    """Checks what tsnap says of all queries against the server and the clients."""
    directory = ctx.temporary()
    programs = [os.path.join(directory, name) for name in programs_make(directory, *names)]
    rows, served, said = queries_of(ctx, *programs)
    find = Findings()
    pids = {name: [one["pid"] for one in said["truth"] if one["client"] == name] for name in ("musl", "go")}
    us = {str(said["own"])}.union(str(pid) for client in pids.values() for pid in client)
    ours = [row for row in rows if row["pid"] in us]
    find.expect(not [row for row in rows if not row["pid"]], "without an client: %s", rows)
    for name, kind, port, code, took in served:
        mine = [row for row in ours if row["qname"] == shown(name) and row["qtype"] == TYPES.get(kind, "TYPE%d" % kind)]
        find.expect(len(mine) == 1, "%d rows of %s %d: %s", len(mine), name, kind, mine)
        if len(mine) != 1:
            continue
        row, client = mine[0], name.split(".")[2] if name.count(".") > 2 else "raw"
        if code is None:
            find.expect((row["outcome"], row["rcode"], row["retransmits"]) == ("no answer", "", "1"), "%s", row)
            find.expect(6.9e9 < int(row["duration_ns"]) < 8.6e9 * SLOW and row["pid"] == str(said["own"]), "%s", row)
            continue
        elapsed = min(one["took"] for one in said["truth"] if one["words"] == name)
        find.expect(took <= int(row["duration_ns"]) <= elapsed, "%s: %d ns at the server, %d at the client: %s", name, took,
                    elapsed, row)
        find.expect(row["rcode"] == RCODES[code] and row["outcome"] == ("truncated" if name[0] == "t" else "answered"), "%s", row)
        owners = pids.get(client) or [said["own"]]
        find.expect(int(row["pid"] or 0) in owners and row["server"] == "127.0.0.1:53", "%s asked by %s: %s", name, owners, row)
        find.expect(row["retransmits"] == "0", "%s", row)
    refused = [row for row in ours if row["qname"] == "nobody.test"]
    find.expect(len(refused) == 1 and (refused[0]["outcome"], refused[0]["pid"], refused[0]["server"]) ==
                ("unreachable", str(said["own"]), "[::1]:53"), "%s", refused)
    asked = {name for name, *_ in served}
    for program in programs:
        name = os.path.basename(program)
        find.expect(sum(words.split(".")[2] == name for words in asked if words.count(".") == 3) == 2, "%s asked %s", name, asked)
    find.expect(len(served) >= 2 + 5 + 1 + 2 * len(programs), "%s", served)
    find.expect(len(ours) == len({(row["qname"], row["qtype"]) for row in ours}), "twice: %s", ours)
    find.close()


@case
def dns_queries(ctx):
    """Queries of glibc, musl and plain sockets: each once, with name, type, response code, the process that asked, and a latency between the
    server's and the client's; one that is sent twice and never answered, and one that an ICMP error answers, are told so."""
    compare(ctx, "musl")


@case(thorough=True)
def dns_queries_of_go(ctx):
    """The same of Go's own resolver."""
    if not shutil.which("go"):
        raise Skip("no Go")
    compare(ctx, "go")


# The answers to a socket's queries, as frames on the other end of a veth pair: plain, with a VLAN tag that the device did not take off, and
# with options of IP; then a query whose answer is of another port, and one whose answer has another id.
FRAMES = BEGIN + r"""
import json, select, socket, subprocess
if libc.unshare(0x40000000):
    skip("no network namespace")
if subprocess.run("ip link set lo up && ip link add va type veth peer name vb && ip addr add 10.99.0.1/24 dev va && ip link set va up &&"
                  "ip link set vb up && ip neigh add 10.99.0.2 lladdr 02:00:00:00:00:02 dev va",
                  shell=True, stderr=subprocess.DEVNULL).returncode:
    skip("no veth")
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.bind(("10.99.0.1", 4000))
one.settimeout(2)
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
wire.bind(("vb", 0x0800))
def summed(words):
    total = sum(struct.unpack(">%dH" % (len(words) // 2), words))
    total = (total & 0xffff) + (total >> 16)
    return ~((total & 0xffff) + (total >> 16)) & 0xffff
def answer(query, tag=b"", options=b"", port=53, number=None):
    message = (query[:2] if number is None else struct.pack(">H", number)) + b"\x81\x80" + query[4:]
    udp = struct.pack(">HHHH", port, 4000, 8 + len(message), 0) + message
    head = struct.pack(">BBHHHBBH4s4s", 0x45 + len(options) // 4, 0, 20 + len(options) + len(udp), 1, 0, 64, 17, 0, bytes([10, 99, 0, 2]),
                       bytes([10, 99, 0, 1])) + options
    head = head[:10] + struct.pack(">H", summed(head)) + head[12:]
    wire.send(frame[6:12] + frame[:6] + tag + b"\x08\x00" + head + udp)
print("ready", flush=True)
sys.stdin.readline()
truth = []
for number, (name, how) in enumerate(((b"plain", {}), (b"tagged", {"tag": b"\x81\x00\x40\x00"}), (b"options", {"options": b"\x01\x01\x01\x00"}),
                                      (b"port", {"port": 54}), (b"id", {"number": 99}))):
    begun = time.monotonic_ns()
    one.sendto(struct.pack(">HHHHHH", number, 0x100, 1, 0, 0, 0) + bytes([len(name)]) + name + b"\0\0\1\0\1", ("10.99.0.2", 53))
    while True:
        frame = wire.recv(2000)
        if frame[23] == 17 and frame[36:38] == b"\0\x35":
            break
    time.sleep(0.02)
    answer(frame[42:], **how)
    try:
        received = len(one.recv(2000))
    except OSError:
        received = 0
    truth.append([name.decode(), received, time.monotonic_ns() - begun])
print(json.dumps({"own": os.getpid(), "truth": truth}), flush=True)
sys.stdin.read()
"""


@case
def dns_frames(ctx):
    """Answers are found in frames that have a VLAN tag, and after options of IP; one from another port or with another id is none."""
    process = Process([sys.executable, "-c", FRAMES, ctx.temporary()])
    ctx.started.append(process)
    wait_until(lambda: b"\n" in process.out or process.code is not None, START_S, "that the script is ready")
    if process.out.startswith(b"skip"):
        raise Skip(process.out.decode()[5:])
    check(process.out == b"ready\n", "the script failed: %s", process.err)
    tool = ctx.plain("--csv", "--trace", "dns", "-g", "pid,qname,outcome")
    wait_until(lambda: tool.out or tool.code is not None, START_S, "the header line")
    process.process.stdin.write(b"go\n")
    process.process.stdin.flush()
    wait_until(lambda: process.out.count(b"\n") > 1 or process.code is not None, 10 + START_S, "that all is sent")
    check(process.out.count(b"\n") > 1, "the script failed: %s", process.err)
    time.sleep(0.3 * SLOW)
    said = json.loads(process.out.splitlines()[1])
    rows, find = [row for row in tool.interrupt() if row["pid"] == str(said["own"])], Findings()
    for name, received, took in said["truth"]:
        mine = [row for row in rows if row["qname"] == name]
        wanted = "pending" if name in ("port", "id") else "answered"
        find.expect(len(mine) == 1 and mine[0]["outcome"] == wanted, "%s: %s", name, mine)
        find.expect(wanted == "pending" or (received and 2e7 <= int(mine[0]["duration_ns"]) <= took), "%s: %d ns: %s", name, took, mine)
    find.close()
