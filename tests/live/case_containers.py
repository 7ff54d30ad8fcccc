"""Containers that podman runs: their names are those that podman reports."""
import os
import shutil
import signal
import subprocess
import tarfile

from harness import SLOW, START_S, STOP_S, Skip, case, check, rows_of, wait_until
from parts import program

IMAGE = "localhost/tsnap-test:names"
LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]  # podman's own default may be more than is allowed


class Podman:
    """podman with a storage of its own, or with the system's; containers that it made are removed at the end."""

    def __init__(self, ctx, *options):
        self.argv, self.options = [program("podman", "podman")] + list(options), options
        busybox = program("busybox", "busybox-static")
        directory = ctx.temporary()
        shutil.copy(busybox, directory + "/busybox")
        with tarfile.open(directory + "/image.tar", "w") as image:
            image.add(directory + "/busybox", "bin/busybox")
        self.ask("import", directory + "/image.tar", IMAGE)
        ctx.at_end(lambda: self.try_to("rmi", "-f", IMAGE))
        self.ctx = ctx

    def try_to(self, *words):
        return subprocess.run(self.argv + [str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True, timeout=100 * SLOW)

    def ask(self, *words):
        done = self.try_to(*words)
        if done.returncode:
            raise Skip("podman %s: %s" % (words[0], done.stderr.strip().split("\n")[-1]))
        return done.stdout.strip()

    def run(self, name, *options):
        """Runs a container that sleeps, with the first runtime that can; gives the pid of its first process."""
        self.ctx.at_end(lambda: self.try_to("rm", "-f", "-t", "0", name))
        words = ["run", "-d", "--network", "none", "--name", name, *LIMITS, *options, IMAGE, "/bin/busybox", "sleep", "1000"]
        runtime = ["--runtime", "runc"] if shutil.which("runc") else []
        if self.try_to(*words).returncode:
            self.try_to("rm", "-f", name)
            self.argv += runtime
            self.ask(*words)
        return int(self.ask("inspect", "-f", "{{.State.Pid}}", name))

    def named(self):
        """{the start of an id: name}, as podman ps says."""
        return dict(line.split() for line in self.ask("ps", "--format", "{{.ID}} {{.Names}}").splitlines())


def parent(pid):
    with open("/proc/%d/stat" % pid) as file:
        return int(file.read().rpartition(")")[2].split()[1])


def expect_name(ctx, podman, pid, name):
    rows = rows_of(ctx.rows("-a", "-p", pid, seconds=1, columns="container,container_runtime,container_name"), pid)
    check(rows, "no rows of %d", pid)
    row = rows[-1]
    check(row["container_runtime"] == "podman", "%s", row)
    check(podman.named().get(row["container"]) == row["container_name"] == name, "%s, podman has %s", row, podman.named())


@case
def unnamed_container(ctx):
    """The footer reports a container whose runtime has left no name anywhere, and why: no file has it, or files may not be read."""
    identity = "%064x" % os.getpid()
    mounts = [line.split() for line in open("/proc/self/mounts") if line.split()[2] in ("cgroup", "cgroup2")]
    mount = next((words[1] for words in mounts if words[2] == "cgroup2"), mounts[0][1] if mounts else None)
    if not mount:
        raise Skip("no control groups")
    group = "%s/docker-%s.scope" % (mount, identity)
    try:
        os.mkdir(group)
    except OSError as error:
        raise Skip("no group can be made: %s" % error)
    ctx.at_end(lambda: os.rmdir(group))

    def enter():
        with open(group + "/cgroup.procs", "w", encoding="ascii") as procs:
            procs.write("0")

    workload = ctx.workloads([("spin", {})], popen={"preexec_fn": enter})[0]
    tool = ctx.plain("-d", 1, "-a", "-p", workload.tgid, "-g", "container,container_name,cgroup")
    tool.finish_plain(0, START_S + 1 + STOP_S)
    text = " ".join(tool.out.decode().split())
    check(identity[:12] in text, "%s", text)
    try:
        os.listdir("/proc/1/root/")
        why = "none of the files is there"
    except OSError:
        why = "the files of process 1 may not be read"
    check("1 container without a name: " + why in text, "%s", text)


@case(thorough=True)
def podman_names(ctx):
    """Names of podman's containers are shown: of the system's storage, also when the monitor is gone, and of another storage."""
    podman, name = Podman(ctx), "tsnap-test-%d" % os.getpid()
    pid = podman.run(name)
    if "libpod-" not in open("/proc/%d/cgroup" % pid).read():
        raise Skip("podman can't make control groups here")
    expect_name(ctx, podman, pid, name)
    monitor = parent(pid)
    check("conmon" in open("/proc/%d/comm" % monitor).read(), "the parent is no conmon")
    os.kill(monitor, signal.SIGKILL)
    wait_until(lambda: parent(pid) != monitor, 10 * SLOW, "another parent")
    expect_name(ctx, podman, pid, name)
    directory = ctx.temporary()
    other = Podman(ctx, "--root", directory + "/root", "--runroot", directory + "/run", "--storage-driver", "vfs")
    expect_name(ctx, other, other.run(name + "-own", "--rm"), name + "-own")
