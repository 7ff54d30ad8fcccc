"""Cost of --trace for the threads that are traced, compared with empty programs on the same events."""
import collections

from peers import Peer, Tracer
from sampler import OPERATIONS, Interleaved, Sampler, quartiles
from table import Row

# args: options of tsnap; aim: the ratio to no tool
Trace = collections.namedtuple("Trace", "args aim")
# words: the operation that is repeated; events: those of the empty programs; clocked: those of programs that only read the clock
Load = collections.namedtuple("Load", "words events clocked traces")

KINDS = "runq,offcpu,block,blockq,syscalls,exec,connections,opens,opened,incidents,work,irq,dns"
THREADS = 20000
LOADS = {
    "pipe_same": Load(OPERATIONS["pipe_same"], "sched_switch sched_waking", "clock:sched_switch clock:sched_waking",
                      (Trace("--trace runq", 1.30), Trace("--trace offcpu", 1.30), Trace("--trace runq,offcpu", None),
                       Trace("--trace work", None))),
    "syscall": Load(OPERATIONS["syscall"], "sys_enter sys_exit", "clock:sys_enter clock:sys_exit",
                    (Trace("--trace syscalls", 1.65), Trace("--trace syscalls --filter syscall=fsync", 1.90), Trace("--slower 1", None),
                     Trace("-G syscall_us", None))),
    "exec": Load("spawn a program, exit, wait", "sched_process_exec task_rename", "", (Trace("--trace exec", None),)),
    "connect": Load("connect, accept and close over loopback", "inet_sock_set_state sys_exit", "",
                    (Trace("--trace connections", None), Trace("--trace connections --csv", None))),
    "datagram": Load("send a datagram over loopback, receive it", "net_dev_queue netif_receive_skb", "", (Trace("--trace dns", None),)),
    "open": Load("an open that fails", "sys_enter sys_exit", "", (Trace("--trace opens", None), Trace("--trace syscalls", None))),
}


def starter(options, args):
    return lambda: Sampler(options, *args.split(), "-d", 100000)


def floor_starter(options, events):
    return lambda: Tracer(Peer("floor", "", ["floor", *events.split()], "", ""), options)


def load_rows(options, name, load):
    starters = {events: floor_starter(options, events) for events in (load.events, load.clocked) if events}
    events_of = tuple(starters)
    starters.update((trace.args, starter(options, trace.args)) for trace in load.traces)
    found = Interleaved(options, starters, options.run_ms, {name: load.words})
    floors = {events: quartiles(found.ratios[events][name])[1] for events in events_of if found.ratios[events][name]}
    rows = []
    for trace in load.traces:
        low, middle, high = quartiles(found.ratios[trace.args][name])
        remark = "%.0f ns without" % found.without_ns(name)
        for words, events in (("empty programs", load.events), ("programs that only read the clock", load.clocked)):
            if events in floors:
                remark += "; %s %.2f, %.2f to them" % (words, floors[events], middle / floors[events])
        rows.append(Row("%s: %s" % (trace.args, load.words), "tsnap", middle, "ratio", low, high, trace.aim, remark))
    return rows


def memory_row(options):
    """Kernel memory of maps with --max-threads half as large again as THREADS, as tsnap makes them on a host with that many."""
    args = "--trace %s --slower 20 -G syscall_us,io_us,waker_comm --max-threads %d -d 100000" % (KINDS, THREADS * 3 // 2)
    with Sampler(options, *args.split()) as sampler:
        maps, programs = sampler.kernel_memory()
    return Row("kernel memory, all kinds of --trace and --slower, %d threads" % THREADS, "tsnap", (maps + programs) / 1e6, "MB",
               aim=37, remark="programs: %.0f kB" % (programs / 1e3))


def bench_trace(options):
    return [row for name, load in LOADS.items() for row in load_rows(options, name, load)] + [memory_row(options)]
