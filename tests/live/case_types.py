"""Sources of the layout of kernel types: each is validated on this kernel, or refused by name, or passed over for the next one."""
import ctypes
import os
import platform
import resource
import shutil

import btf_file
import truth
from case_trouble import expect_error
from harness import START_S, STOP_S, UNREADY, Skip, case, check

VMLINUX = "/sys/kernel/btf/vmlinux"
RELEASE = os.uname().release
CLONE_NEWNS = 0x20000
MS_RDONLY, MS_BIND, MS_REC_PRIVATE = 1, 4096, 0x4000 | 0x40000
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}.get(platform.machine())
libc = ctypes.CDLL(None, use_errno=True)


def done(result):
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def in_own_mounts(change):
    """A preexec_fn that enters a new mount namespace and calls change() there; the namespace goes with its last process."""
    def prepare():
        done(libc.unshare(CLONE_NEWNS))
        done(libc.mount(None, b"/", None, MS_REC_PRIVATE, None))
        change()
    return prepare


def bind(what, over):
    done(libc.mount(what.encode(), over.encode(), None, MS_BIND, None))


def hide(path):
    if os.path.isdir(path):
        done(libc.mount(b"tmpfs", path.encode(), b"tmpfs", MS_RDONLY, None))


def hide_headers():
    hide("/lib/modules/" + RELEASE)
    hide_kheaders()


def hide_kheaders():
    if os.path.exists("/sys/kernel/kheaders.tar.xz"):
        bind("/dev/null", "/sys/kernel/kheaders.tar.xz")


def foreign_btf(ctx, moves):
    """Path of a copy of this kernel's BTF with members of task_struct moved."""
    btf = truth.read(VMLINUX, "rb")
    if not btf:
        raise Skip("this kernel has no BTF")
    path = os.path.join(ctx.temporary(), "foreign")
    with open(path, "wb") as file:
        file.write(btf_file.moved(btf, "task_struct", moves))
    return path


def own_offsets(ctx):
    path = os.path.join(ctx.temporary(), "offsets")
    ctx.plain("--write-offsets", path).finish_plain()
    return path


def free_of_arguments(ctx):
    if ctx.options.tsnap_args:
        raise Skip("--tsnap-args chooses the source")


# Bytes by which members are moved; each kernel has another member there.
MOVES = ({"comm": 2}, {"pid": -8, "tgid": -8, "real_parent": -8}, {"nvcsw": 256}, {"__state": 64}, {"cred": 64})


@case
def foreign_btf_by_name(ctx):
    """For --btf with the BTF of another kernel one line names the file, the field and this kernel; exit code 1."""
    free_of_arguments(ctx)
    for moves in MOVES:
        path = foreign_btf(ctx, moves)
        expect_error(ctx.plain("--csv", "-n", 1, "--btf", path), 1, path, "another kernel", "task_struct." + next(iter(moves)),
                     RELEASE)


@case
def foreign_offsets_by_name(ctx):
    """For --offsets that claim to be this kernel's and are another's one line names file and field; exit code 1."""
    free_of_arguments(ctx)
    path = own_offsets(ctx)
    text = truth.read(path)
    offset = int(text.split("task_struct.comm ")[1].split()[0])
    with open(path, "w") as file:
        file.write(text.replace("task_struct.comm %d\n" % offset, "task_struct.comm %d\n" % (offset + 3)))
    expect_error(ctx.plain("--csv", "-n", 1, "--offsets", path), 1, path, "task_struct.comm", RELEASE)
    for line, word in (("release " + RELEASE, "release"), ("machine " + platform.machine(), "machine")):
        with open(path, "w") as file:
            file.write(text.replace(line, word + " other"))
        expect_error(ctx.plain("--csv", "-n", 1, "--offsets", path), 1, path, "another kernel", "'%s other'" % word, line)


# Wrong offsets that are accepted where a kernel has no BTF, and why nothing that tsnap knows of itself refutes them.
UNCHECKED = {
    "task_struct.sched_task_group": "an address that no call of the kernel returns",
    "pid.level": "0 outside of pid namespaces, where nothing reads it; kernel/pid_namespace compares it in one",
    "request.q": "no request to a block device is tsnap's own",
    "request.cmd_flags": "the same",
    "request.__data_len": "the same",
    "request.rq_disk": "the same",
    "request_queue.disk": "the same",
    "gendisk.major": "the same",
    "gendisk.first_minor": "the same",
    "rq.cpu": "only kprobes are handed a run queue",
}
# of --trace connections: tsnap has no connection of its own
UNCHECKED.update({name: "no connection is tsnap's own" for name in (
    "task_struct.files", "files_struct.fdt", "fdtable.fd", "file.private_data", "socket.sk", "sock.sk_err", "proto.name", "inet_sock.inet_sport",
    *("sock_common.skc_" + name for name in ("daddr", "rcv_saddr", "dport", "family", "state", "prot", "v6_daddr", "v6_rcv_saddr", "flags")),
    *("tcp_sock." + name for name in ("bytes_received", "bytes_acked", "total_retrans", "snd_una", "write_seq")))})
# of --trace incidents
UNCHECKED.update({name: "tsnap ends no process while it checks" for name in (
    "task_struct.exit_code", "task_struct.signal", "signal_struct.live", "signal_struct.oom_mm")})
# of --trace dns: tsnap sends no packet while it checks
UNCHECKED.update({name: "no packet is tsnap's own" for name in (
    "net_device.flags", "net_device.nd_net", *("sk_buff." + name for name in (
        "sk", "dev", "len", "data_len", "protocol", "network_header", "head", "data")))})
# of kernel locks before 5.10: the way to tsnap's own task is compared when a lock is first searched (kernel/task_find.c)
UNCHECKED.update({name: "tsnap waits for no lock while it checks" for name in (
    "task_struct.on_cpu", "task_struct.nivcsw", "task_struct.thread", "thread_struct.sp", "pid.tasks", "mutex.wait_list", "mutex.owner", "mutex.count",
    "rw_semaphore.wait_list", "rw_semaphore.owner", "rw_semaphore.count", "semaphore.wait_list")})
AT_ONCE = 8


def accepted(ctx, text, by, *args):
    """Members of an offsets file for which tsnap accepts other bytes; the right file is accepted."""
    lines, files = text.splitlines(), [("", text)]
    for at, (name, offset) in enumerate((line.split() for line in lines[3:]), 3):
        files += [(name, "\n".join(lines[:at] + ["%s %d" % (name, int(offset) + more)] + lines[at + 1:]) + "\n")
                  for more in by if int(offset) + more >= 0]
    names, directory = set(), ctx.temporary()
    for first in range(0, len(files), AT_ONCE):
        tools = []
        for number, (name, wrong) in enumerate(files[first:first + AT_ONCE]):
            path = os.path.join(directory, str(number))
            with open(path, "w") as file:
                file.write(wrong)
            tools.append((name, ctx.plain(*args, "--offsets", path, "--write-offsets", path + ".read")))
        for name, tool in tools:
            code = tool.wait(START_S + STOP_S)
            check(code == 0 if not name else code in (0, 1), "%s: exit code %d: %s", name, code, tool.err)
            check(code == 0 or "kernel" in tool.err, "%s: %s", name, tool.err)
            if code == 0:
                names.add(name)
    return names - {""}


@case
def wrong_offsets(ctx):
    """Each single wrong offset is refused by the kernel's BTF; without BTF each that tsnap can compare with what it knows of itself."""
    free_of_arguments(ctx)
    text = truth.read(own_offsets(ctx))
    if os.path.exists(VMLINUX):
        believed = accepted(ctx, text, (-4, 8))
        check(not believed, "against the BTF: %s", sorted(believed))
    believed = accepted(ctx, text, (-8, -4, 4, 8, 64), "--without", "btf")
    check(believed <= set(UNCHECKED), "without BTF: %s", sorted(believed - set(UNCHECKED)))


@case
def foreign_btf_in_sysfs(ctx):
    """auto reports another kernel's BTF and passes it over; without another source the error names all that was tried."""
    free_of_arguments(ctx)
    path, offsets = foreign_btf(ctx, {"comm": 2}), own_offsets(ctx)

    def foreign():
        bind(path, VMLINUX)

    def alone():
        foreign()
        hide_headers()
    expect_error(ctx.plain("--csv", "-n", 1, "--source", "bpf", preexec_fn=in_own_mounts(alone)), UNREADY,
                 "btf: '%s' is of another kernel" % VMLINUX, "task_struct.comm", "headers: ", "kheaders: ", RELEASE, "--offsets")
    tool = ctx.plain("--csv", "-a", "-n", 1, "--offsets", offsets, preexec_fn=in_own_mounts(alone))
    check(tool.finish(0, START_S + STOP_S), "--offsets: no rows")
    checked = ctx.plain("--check", preexec_fn=in_own_mounts(foreign))
    headers = os.path.exists("/lib/modules/%s/build" % RELEASE)
    checked.finish_plain(0 if headers else UNREADY)
    check(b"is of another kernel" in checked.out, "--check does not tell why btf was passed over: %s", checked.out.decode())
    if headers:
        check(b"build, proved" in checked.out or b"source, proved" in checked.out, "--check: %s", checked.out.decode())


@case
def proof_is_told(ctx):
    """--check and -v say which source was taken, and that it was validated."""
    checked = ctx.plain("--check")
    checked.finish_plain()
    check(b", validated on this kernel" in checked.out, "--check: %s", checked.out.decode())
    verbose = ctx.plain("-v", "-a", "-n", 1, "-d", 1)
    verbose.finish_plain()
    check("validated on this kernel" in verbose.err + verbose.out.decode(), "-v: %s", verbose.err)


class Filter(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]


class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_uint16), ("filter", ctypes.POINTER(Filter))]


def without_call(number):
    """A preexec_fn that makes a system call fail with EACCES, as in a container."""
    def prepare():
        rows = (Filter * 4)((0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | 13), (0x06, 0, 0, 0x7fff0000))
        program = Program(4, rows)
        done(libc.prctl(22, 2, ctypes.byref(program), 0, 0))  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
    return prepare


@case
def unproved_is_told(ctx):
    """Where perf events are forbidden the layout is taken as it is, and --check says that it was not validated, and why."""
    free_of_arguments(ctx)
    if not PERF_EVENT_OPEN:
        raise Skip("the number of perf_event_open is not known on this machine")
    checked = ctx.plain("--check", preexec_fn=without_call(PERF_EVENT_OPEN))
    if checked.wait(START_S + STOP_S) == UNREADY:
        raise Skip("this kernel's probes need perf events")
    check(b"not validated (perf_event_open: Permission denied)" in checked.out, "--check: %s", checked.out.decode())


def fake_modprobe(ctx):
    """A function that replaces modprobe, in a mount namespace, by a program that writes down its arguments; and the file with them."""
    directory = ctx.temporary()
    path, notes = os.path.join(directory, "modprobe"), os.path.join(directory, "notes")
    real = shutil.which("modprobe", path="/usr/sbin:/usr/bin:/sbin:/bin")
    if not real:
        raise Skip("no modprobe is here")
    with open(path, "w") as file:
        file.write('#!/bin/sh\necho "$*" >>%s\n' % notes)
    os.chmod(path, 0o755)
    return lambda: bind(path, os.path.realpath(real)), notes


@case
def kheaders_by_root(ctx):
    """Only --kernel-types kheaders loads the module, and it is unloaded again; auto never does."""
    free_of_arguments(ctx)
    if os.path.exists("/sys/kernel/kheaders.tar.xz"):
        raise Skip("this kernel has its headers in /sys already")
    replace_modprobe, notes = fake_modprobe(ctx)
    expect_error(ctx.plain("--csv", "-n", 1, "--kernel-types", "kheaders", preexec_fn=in_own_mounts(replace_modprobe)), UNREADY, "kheaders",
                 "modprobe")
    check(truth.read(notes) == "kheaders\n-r kheaders\n", "modprobe was asked: %r", truth.read(notes))
    os.unlink(notes)

    def nothing():
        replace_modprobe()
        hide_headers()
        hide("/sys/kernel/btf")
    expect_error(ctx.plain("--csv", "-n", 1, "--source", "bpf", preexec_fn=in_own_mounts(nothing)), UNREADY, "kheaders")
    check(truth.read(notes) is None, "auto loaded a module: %r", truth.read(notes))


@case
def broken_headers(ctx):
    """auto reports headers that can't be compiled, and passes them over; no module is loaded for them."""
    free_of_arguments(ctx)
    lib, scratch = os.path.realpath("/lib"), ctx.temporary()
    replace_modprobe, notes = fake_modprobe(ctx)

    def broken():
        replace_modprobe()
        hide("/sys/kernel/btf")
        hide_kheaders()
        done(libc.mount(b"tmpfs", scratch.encode(), b"tmpfs", 0, None))
        os.makedirs(scratch + "/upper/modules")
        os.mkdir(scratch + "/work")
        # /lib/modules need not exist; a present one is hidden by an opaque folder
        layers = "lowerdir=%s,upperdir=%s/upper,workdir=%s/work" % (lib, scratch, scratch)
        os.setxattr(scratch + "/upper/modules", "trusted.overlay.opaque", b"y")
        done(libc.mount(b"overlay", lib.encode(), b"overlay", 0, layers.encode()))
        os.makedirs("/lib/modules/%s/build/include/linux" % RELEASE)
        open("/lib/modules/%s/build/include/linux/kconfig.h" % RELEASE, "w").close()
    expect_error(ctx.plain("--csv", "-n", 1, "--source", "bpf", preexec_fn=in_own_mounts(broken)), UNREADY,
                 "headers: libbcc can't compile", "kheaders: ", RELEASE)
    check(truth.read(notes) is None, "a module was loaded: %r", truth.read(notes))


@case
def nothing_written_outside(ctx):
    """tsnap writes only in /run: it works if the other places for temporary files are read-only."""
    def closed():
        for path in ("/tmp", "/var/tmp", "/dev/shm"):
            hide(path)
    tool = ctx.reachable().plain("--csv", "-a", "-n", 1, preexec_fn=in_own_mounts(closed))
    check(tool.finish(0, START_S + STOP_S), "no rows")


@case
def little_memory(ctx):
    """For a limit on address space that libbcc does not fit one line says so, and names nothing to install; exit code 77."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (100 << 20, 100 << 20))
    tool = ctx.plain("--csv", "-n", 1, "--source", "bpf", preexec_fn=limit)
    expect_error(tool, UNREADY, "memory is short", "ulimit -v")
    check("install" not in tool.err, "it asks for a package: %s", tool.err)
