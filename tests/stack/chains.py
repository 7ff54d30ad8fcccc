#!/usr/bin/env python3
"""chains.py PROBE DIRECTORY [--without-tables]: walks the stack of each program in each of its chains, which must be found exactly.

Also of copies of one program: stripped, with .gnu_debugdata, with its symbols in a file found by build-id, deleted, replaced,
and in another root, and of 10 GB. Without tables (a build without libdw): only what has
frame pointers, and a walk may go astray where the C library has none. Exit 77: threads can't be stopped here.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

ENDS = ("whole", "deep", "lost", "outside", "unread", "gone")
SKIP = 77
MUSL_LOST = ("signalled", "signalled_aside", "sorted")  # through musl itself, which has neither tables nor frame pointers


class Chain:
    """A program that sleeps in a chain."""

    def __init__(self, program, name, directory, **popen):
        environment = dict(os.environ, CHAINS_LIBRARY=os.path.join(directory, "chains_library.so"))
        self.process = subprocess.Popen([program, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, **popen)
        words = self.process.stdout.readline().decode().split()
        if not words or words[0] != "ready":
            self.end()
            raise RuntimeError("%s %s is not ready" % (program, name))
        self.tid = int(words[1])
        self.program = program
        self.wait_asleep()
        self.expected = [word.replace("(anonymous_namespace)", "(anonymous namespace)") for word in words[2:]]

    def wait_asleep(self):
        """It says that it is ready before it sleeps."""
        until = time.monotonic() + 10
        while time.monotonic() < until:
            with open("/proc/%d/stat" % self.tid) as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "S":
                    return
            time.sleep(0.001)
        self.end()
        raise RuntimeError("%s does not sleep" % self.program)

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.kill()
        self.process.wait()


def matches(frames, expected):
    """Whether expected is a part of frames without a gap, but for * which is any number of them."""
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
    """(frames, how it ended)"""
    done = subprocess.run([probe, str(tid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30)
    if done.returncode:
        raise PermissionError(done.stderr.decode().strip())
    lines = done.stdout.decode(errors="replace").split("\n")[:-1]
    return lines[:-1], ENDS[int(lines[-1])]


def trial(probe, chain, named, tables):
    """Why it failed, or None."""
    frames, end = walk(probe, chain.tid)
    # without tables of main, what called it is told by a register that the C library may use for something else
    if end != "whole" and tables and "musl" not in chain.program and "pointers" not in chain.program:
        return "the walk was %s: %s" % (end, " ".join(frames[-20:]))
    if named and not contains(frames, chain.expected):
        return "expected %s, found %s" % (" ".join(chain.expected[:20]), " ".join(frames[:40]))
    return None


def plain(program, directory):
    names = subprocess.run([program], stdout=subprocess.PIPE, check=True).stdout.decode().split()
    for name in names:
        if (name == "library" and ("static" in program or "musl" in program)) or ("musl" in program and name in MUSL_LOST):
            continue
        yield name, Chain(program, name, directory), True


def tools_run(*commands):
    for command in commands:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def copies(program, directory, temporary):
    """(name, chain, whether functions have names)"""
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
        inner = os.path.join(temporary, "root")
        os.mkdir(inner)
        static = os.path.join(directory, "chains_static")
        if os.path.exists(static):
            shutil.copy2(static, os.path.join(inner, "program"))
            yield "other root", Chain("/program", "recursion", directory, preexec_fn=lambda: os.chroot(inner)), True


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
                if name.startswith("chains_" if tables else "chains_pointers") and not name.endswith(".so")
                and os.access(os.path.join(directory, name), os.X_OK)]
    count = failed = 0
    try:
        for program in programs:
            for name, chain, named in plain(os.path.join(directory, program), directory):
                if not tables and ("*" in chain.expected or name in ("threaded", "library")):
                    chain.end()  # through code that has no frame pointers
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
