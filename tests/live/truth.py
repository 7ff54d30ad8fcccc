"""Facts from /proc: the ground truth that tsnap's output is compared with."""
import os
import re

PF_KTHREAD = 0x00200000  # include/linux/sched.h
PF_IO_WORKER = 0x00000010  # io_uring workers: threads of a process that never leave the kernel (5.12)

# Letters of /proc/TID/stat, and the states that tsnap may show for each.
STATES = {"R": ("ON", "RQ"), "S": ("S",), "D": ("D",), "T": ("T",), "t": ("T",), "Z": ("Z",), "X": ("Z",),
          "I": ("I",), "P": ("P",)}


def read(path, mode="r"):
    """The text of a file of /proc, or None when its thread is gone or it may not be read."""
    try:
        with open(path, mode, **({} if "b" in mode else {"errors": "surrogateescape"})) as file:
            return file.read()
    except (OSError, ValueError):
        return None


def lines_of(path):
    """{key: words} of a file of /proc that has lines "key: words", such as status and io; empty: its thread is gone."""
    return keyed(read(path))


def catches(pid, number):
    """True if the process catches that signal, or blocks it to wait for it."""
    status = lines_of("/proc/%d/status" % pid)
    return bool(status) and any(int(status[mask], 16) >> number - 1 & 1 for mask in ("SigCgt", "SigBlk"))


def keyed(text):
    return {key: " ".join(words.split()) for key, colon, words in (line.partition(":") for line in (text or "").splitlines()) if colon}


def memory_bytes(pids, key):
    """The sum of a key of /proc/PID/status, there in kB, over these processes, in bytes; an exited process counts as 0."""
    return sum(int(lines_of("/proc/%d/status" % pid).get(key, "0").split()[0]) for pid in pids) << 10


def release():
    """The kernel's release, as in uname: (4, 9)."""
    return tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups()))


class Thread:
    """One thread as /proc shows it now; None fields where it could not be read."""
    letter = ppid = flags = ticks = start = None
    call_text, status_text = (), ""

    def __init__(self, tid):
        self.tid = tid
        self.stat = read("/proc/%d/stat" % tid, "rb")
        self.exists = bool(self.stat)
        if not self.exists:
            return
        after = self.stat[self.stat.rindex(b")") + 2:].split()
        self.letter = after[0].decode()
        self.ppid = int(after[1])
        self.flags = int(after[6])
        self.ticks = int(after[11]) + int(after[12])
        self.start = int(after[19])
        self.call_text = (read("/proc/%d/syscall" % tid) or "").split()
        self.status_text = read("/proc/%d/status" % tid)

    @property
    def status(self):
        """{key: words} of the thread's status; empty: it is gone."""
        return keyed(self.status_text)

    def status_number(self, key):
        """The first number of a line of status; None: there is none."""
        words = self.status.get(key, "").split()
        return int(words[0]) if words else None

    @property
    def pid(self):
        return self.status_number("Tgid")

    @property
    def uid(self):
        words = self.status.get("Uid", "").split()
        return int(words[1]) if words else None

    @property
    def kernel(self):
        return bool(self.flags & (PF_KTHREAD | PF_IO_WORKER))

    @property
    def switches(self):
        return (self.status_number("voluntary_ctxt_switches"), self.status_number("nonvoluntary_ctxt_switches"))

    @property
    def nr(self):
        """Number of the system call; -1: asleep outside of one; None: running, or not readable."""
        if not self.call_text or self.call_text[0] == "running":
            return None
        return int(self.call_text[0])

    @property
    def args(self):
        """The six argument registers, or None."""
        if len(self.call_text) < 9:
            return None
        return [int(text, 16) for text in self.call_text[1:7]]

    @property
    def same(self):
        """A value that is equal in two readings if the thread did not run between them."""
        return (self.tid, self.start, self.letter, self.call_text, self.switches)


def tids():
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            found.update(int(tid) for tid in os.listdir("/proc/%s/task" % pid))
        except OSError:
            pass  # the process ended meanwhile
    return found


def threads():
    """{tid: Thread} of the whole host."""
    found = {tid: Thread(tid) for tid in tids()}
    return {tid: thread for tid, thread in found.items() if thread.exists}


def children(pid):
    """All descendants of the process pid."""
    found, stack = set(), [pid]
    while stack:
        parent = stack.pop()
        for task in read_dir("/proc/%d/task" % parent):
            text = read("/proc/%d/task/%s/children" % (parent, task)) or ""
            fresh = {int(word) for word in text.split()} - found
            found |= fresh
            stack.extend(fresh)
    return found


def read_dir(path):
    try:
        return os.listdir(path)
    except OSError:
        return []


def link(path):
    """The target of a link of /proc; empty: it is gone."""
    try:
        return os.readlink(path)
    except OSError:
        return ""


def schedstat(tid):
    """(ns on CPU, ns waiting in a run queue, times on CPU), or None where the kernel does not count them."""
    text = read("/proc/%d/schedstat" % tid)
    if not text or len(text.split()) != 3 or text.split() == ["0", "0", "0"]:
        return None
    return tuple(int(word) for word in text.split())


def owned_bpf(pids):
    """{("prog"|"map", id)} of the BPF objects that descriptors of these processes refer to."""
    found = set()
    for pid in pids:
        for fd in read_dir("/proc/%d/fdinfo" % pid):
            text = read("/proc/%d/fdinfo/%s" % (pid, fd)) or ""
            for kind, number in re.findall(r"^(prog|map)_id:\s*(\d+)", text, re.M):
                found.add((kind, int(number)))
    return found


def kprobe_events():
    for root in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"):
        text = read(root + "/kprobe_events")
        if text is not None:
            return set(text.splitlines())
    return set()


def kernel_stack(tid):
    """Functions of /proc/TID/stack, innermost first; None: this kernel shows none (CONFIG_STACKTRACE)."""
    text = read("/proc/%s/stack" % tid)
    # before 4.20 a mark ends the stack: "[<ffffffffffffffff>] 0xffffffffffffffff", RHEL 8's "[<0>] 0xffffffffffffffff"
    return text and [line.split()[1].split("+")[0] for line in text.splitlines() if not line.endswith(" 0xffffffffffffffff")]


def has_kprobe_source():
    """True if perf_event_open(2) makes kprobes (4.17); else they are lines of kprobe_events, which outlive the process that wrote them."""
    return os.path.exists("/sys/bus/event_source/devices/kprobe/type")


def our_temporary_files():
    found = set()
    for root in {"/run", "/tmp", "/var/tmp", "/dev/shm", os.environ.get("TMPDIR", "/tmp")}:
        found.update(root + "/" + name for name in read_dir(root)
                     if name.startswith(("tsnap", ".tsnap", "bcc-", "kheaders")) and not name.startswith("tsnap-test"))
    return found
