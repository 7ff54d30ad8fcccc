"""Connections a second with --trace connections, next to tools that show connections, in one run."""
from peers import Peer, Tracer, job_words
from sampler import Interleaved, Sampler, quartiles
from table import Row

WORDS = "connect, accept and close over loopback"
PEERS = (
    Peer("floor: inet_sock_set_state", "", ["floor", "inet_sock_set_state"], "an empty program", ""),
    Peer("tcplife, libbpf", "libbpf-tools", ["tcplife"], "each connection when it ends", "tracefs"),
    Peer("tcplife, bcc", "bpfcc-tools", ["tcplife-bpfcc"], "each connection when it ends", "types tracefs"),
    Peer("tcpconnect, libbpf", "libbpf-tools", ["tcpconnect"], "each connect(2)", "kprobe tracefs"),
    Peer("tcpconnect, bcc", "bpfcc-tools", ["tcpconnect-bpfcc"], "each connect(2)", "kprobe tracefs"),
)
TSNAP = {
    "tsnap": ("all threads, 20 Hz, no connections", ()),
    "tsnap --trace connections": ("each connection when it ends, with its owner, and a sum", ("--trace", "connections")),
}


def bench_connections(options):
    jobs = {tool: job for tool, (job, _) in TSNAP.items()}
    starters = {tool: lambda args=args: Sampler(options, *args, "-d", 100000) for tool, (_, args) in TSNAP.items()}
    for peer in PEERS:
        jobs[peer.tool] = job_words(peer)
        starters[peer.tool] = lambda peer=peer: Tracer(peer, options)
    found = Interleaved(options, starters, options.peer_ms, {"connect": WORDS})
    rate = 1e6 / found.without_ns("connect")
    rows = []
    for tool, job in jobs.items():
        if tool in found.gone:
            rows.append(Row("", tool, None, "", remark="not here: " + found.gone[tool]))
            continue
        low, middle, high = quartiles(found.ratios[tool]["connect"])
        remark = "%s; %.1f thousand a second, %.1f without" % (job, rate / middle, rate)
        rows.append(Row(WORDS, tool, middle, "ratio", low, high, None, remark))
    return rows
