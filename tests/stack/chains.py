#!/usr/bin/env python3
"""chains.py PROBE DIRECTORY [--without-tables]: walks the stack of each program in each of its chains, which it must find exactly.

Copies of one program are walked, too: stripped, with .gnu_debugdata, with its symbols in a file found by build-id, deleted, replaced,
in another root, in other mount and pid namespaces, with the rights of its owner (setuid), and of 10 GB. Without tables (a build without
libdw) only programs with frame pointers are walked, and a walk may go astray where the C library has none. Exit 77: threads can't be
stopped here.
"""
import errno
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

ENDS = ("whole", "deep", "lost", "outside", "unread", "gone", "cut", "refused")
SKIP = 77
READY_S = 30
UNSTOPPABLE = "vforked"  # waits for its child, during which the kernel lets no tracer in; tests/live has it


class Chain:
    """A program that sleeps or spins in a chain. With commands in front (through) it is their child, and may print another id than here."""

    def __init__(self, program, name, directory, through=(), spins=False, **popen):
        library = ("chains32" if "chains32" in program else "chains") + "_library.so"
        environment = dict(os.environ, CHAINS_LIBRARY=os.path.join(directory, library))
        self.process = subprocess.Popen([*through, program, name] + ["spin"] * spins, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=environment, **popen)
        ready, _, _ = select.select([self.process.stdout], [], [], READY_S)
        words = self.process.stdout.readline().decode().split() if ready else ()
        if not words or words[0] != "ready":
            self.end()
            raise RuntimeError("%s %s is not ready" % (program, name))
        self.tid = int(words[1])
        if through:
            with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)) as file:
                self.tid = int(file.read())
        self.program = program
        if not spins:
            self.wait_asleep()
        self.expected = [word.replace("(anonymous_namespace)", "(anonymous namespace)") for word in words[2:]]

    def wait_asleep(self):
        """Waits until the program sleeps in its chain: it prints "ready" before that, and Go's runtime has it sleep elsewhere on the way."""
        until = time.monotonic() + 10
        switches = None
        while time.monotonic() < until:
            with open("/proc/%d/stat" % self.tid) as file:
                asleep = file.read().rsplit(")", 1)[1].split()[0] in "SD"
            with open("/proc/%d/status" % self.tid) as file:
                before, switches = switches, file.read().split("voluntary_ctxt_switches:")[1].split()[0]
            if asleep and ("go" not in os.path.basename(self.program) or before == switches):
                return
            time.sleep(0.02 if asleep else 0.001)
        self.end()
        raise RuntimeError("%s does not sleep" % self.program)

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.kill()
        self.process.wait()


def matches(frames, expected):
    """True if frames begin with expected, without a gap; * in expected stands for any number of frames."""
    if not expected:
        return True
    if expected[0] == "*":
        return any(matches(frames[i:], expected[1:]) for i in range(len(frames)))
    return bool(frames) and frames[0] == expected[0] and matches_here(frames[1:], expected[1:])


def matches_here(frames, expected):
    while expected and expected[0] != "*":
        if not frames or frames[0] != expected[0]:
            return False
        frames, expected = frames[1:], expected[1:]
    return matches(frames, expected)


def contains(frames, expected):
    return any(matches(frames[i:], expected) for i in range(len(frames)) if frames[i] == expected[0])


def walk(probe, tid):
    """(frames, how the walk ended)"""
    done = subprocess.run([probe, str(tid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30)
    if done.returncode:
        raise PermissionError(done.stderr.decode().strip())
    lines = done.stdout.decode(errors="replace").split("\n")[:-1]
    return lines[:-1], ENDS[int(lines[-1])]


def trial(probe, chain, named, tables):
    """Walks the chain's stack; returns why that failed, or None."""
    frames, end = walk(probe, chain.tid)
    # main of chains_pointers has no tables: its caller is found by a register that the C library may use for something else
    if end != "whole" and tables and "pointers" not in chain.program:
        return "the walk was %s: %s" % (end, " ".join(frames[-20:]))
    # without symbols, too, each function is one name
    calls = max(frames.count(name) for name in set(frames))
    if not named and tables and calls != chain.expected.count("recurse"):
        return "the most frequent function has %d frames: %s" % (calls, " ".join(frames[:20]))
    if named and not contains(frames, chain.expected):
        return "expected %s, found %s" % (" ".join(chain.expected[:20]), " ".join(frames[:40]))
    return None


def plain(program, directory):
    try:
        names = subprocess.run([program], stdout=subprocess.PIPE, check=True).stdout.decode().split()
    except OSError as error:
        if error.errno != errno.ENOEXEC or "chains32" not in program:
            raise
        print("no 32-bit programs run here: " + program)
        return
    for name in names:
        if name == UNSTOPPABLE:
            continue
        if name == "library" and ("static" in program or "musl" in program):
            continue
        yield name, Chain(program, name, directory), True


def tools_run(*commands):
    for command in commands:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def copies(program, directory, temporary):
    """(name, chain, True if functions have names) of each copy"""
    def copy(name):
        path = os.path.join(temporary, name)
        shutil.copy2(program, path)
        return path

    stripped = copy("stripped")
    tools_run(["strip", stripped])
    yield "stripped", Chain(stripped, "recursion", directory), False

    packed, symbols = copy("packed"), os.path.join(temporary, "symbols")
    tools_run(["objcopy", "--only-keep-debug", program, symbols], ["strip", packed], ["xz", "-k", symbols],
              ["objcopy", "--add-section", ".gnu_debugdata=" + symbols + ".xz", packed])
    yield "mini debug information", Chain(packed, "recursion", directory), True

    deleted = copy("deleted")
    chain = Chain(deleted, "recursion", directory)
    os.unlink(deleted)
    yield "deleted", chain, True

    replaced = copy("replaced")
    chain = Chain(replaced, "recursion", directory)
    os.unlink(replaced)
    with open(replaced, "wb") as file:
        file.write(b"\x7fELF" + bytes(1000))
    yield "replaced", chain, True

    sparse = copy("sparse")
    with open(sparse, "r+b") as file:
        file.truncate(10 << 30)
    yield "of 10 GB", Chain(sparse, "recursion", directory), True
    os.unlink(sparse)

    if os.geteuid() == 0:
        yield from copies_of_root(program, directory, temporary)


def build_id(program):
    lines = subprocess.run(["readelf", "-n", program], stdout=subprocess.PIPE, check=True).stdout.decode()
    return lines.split("Build ID: ")[1].split()[0]


def copies_of_root(program, directory, temporary):
    static, inner = os.path.join(directory, "chains_static"), os.path.join(temporary, "root")
    os.mkdir(inner)
    if os.path.exists(static):
        def enter():
            os.chroot(inner)
        shutil.copy2(static, os.path.join(inner, "program"))
        yield "other root", Chain("/program", "recursion", directory, preexec_fn=enter), True
        name = build_id(static)
        debug = os.path.join(inner, "usr/lib/debug/.build-id", name[:2])
        os.makedirs(debug)
        bare = os.path.join(inner, "bare")
        shutil.copy2(static, bare)
        tools_run(["objcopy", "--only-keep-debug", static, os.path.join(debug, name[2:] + ".debug")], ["strip", bare])
        yield "symbols by build-id", Chain("/bare", "recursion", directory, preexec_fn=enter), True

    os.chmod(temporary, 0o755)
    setuid = os.path.join(temporary, "setuid")
    shutil.copy2(program, setuid)
    os.chmod(setuid, 0o4711)  # only root may read it
    yield "setuid", Chain(setuid, "recursion", directory, preexec_fn=lambda: os.setuid(65534)), True

    # the program is in a file system that only its process sees
    apart = os.path.join(temporary, "apart")
    os.mkdir(apart)
    script = 'mount -t tmpfs none "$0" && cp "$1" "$0"/program && exec "$0"/program "$2"'
    through = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", script, apart]
    if subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], stderr=subprocess.DEVNULL).returncode == 0:
        yield "other namespaces", Chain(program, "recursion", directory, through), True


def run(words, chain, named, probe, tables=True):
    try:
        why = trial(probe, chain, named, tables)
    finally:
        chain.end()
    print("%s %s%s" % ("FAIL" if why else "ok", words, ": " + why if why else ""))
    return bool(why)


def main(argv):
    probe, directory = os.path.abspath(argv[0]), os.path.abspath(argv[1])
    tables = "--without-tables" not in argv
    programs = [name for name in sorted(os.listdir(directory))
                if name.startswith(("chains_", "chains32_") if tables else "chains_pointers") and not name.endswith(".so")
                and os.access(os.path.join(directory, name), os.X_OK)]
    count = failed = 0
    try:
        for program in programs:
            for name, chain, named in plain(os.path.join(directory, program), directory):
                if not tables and ("*" in chain.expected or name in ("threaded", "library")):
                    chain.end()  # the chain goes through code without frame pointers
                    continue
                count += 1
                failed += run(program + " " + name, chain, named, probe, tables)
        with tempfile.TemporaryDirectory() as temporary:
            copied = [name for name in ("chains_gcc", "chains_clang") if name in programs]
            for name, chain, named in copies(os.path.join(directory, copied[0]), directory, temporary) if copied else ():
                count += 1
                failed += run("copy " + name, chain, named, probe)
    except PermissionError as error:
        print("skipped: " + str(error))
        return SKIP
    print("%d passed, %d failed, 0 skipped" % (count - failed, failed))
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
