"""Stacks as gdb unwinds them, and as tsnap's walk does, frame by frame in the same form: (path, address in the file). gdb prints addresses
in memory; this module finds the file and the address in it, by /proc/PID/maps and the files' program headers."""
import os
import shutil
import struct
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
GDB_S = 120
PT_LOAD = 1


def segments_of(image):
    """(offset, bytes, address) of each loaded segment of an ELF file; image(offset, bytes) reads it."""
    head = image(0, 64)
    wide = head[4] == 2
    table, = struct.unpack_from("<Q" if wide else "<I", head, 32 if wide else 28)
    each, count = struct.unpack_from("<HH", head, 54 if wide else 42)
    for i in range(count):
        entry = image(table + i * each, each)
        if wide:
            kind, _, offset, address, _, held = struct.unpack_from("<IIQQQQ", entry)
        else:
            kind, offset, address, _, held = struct.unpack_from("<IIIII", entry)
        if kind == PT_LOAD:
            yield offset, held, address


class Memory:
    """The mappings of a stopped process, and the segments of the files in them."""

    def __init__(self, pid):
        self.pid, self.mappings, self.segments = pid, [], {}
        with open("/proc/%d/maps" % pid, errors="surrogateescape") as file:
            for line in file:
                words = line.rstrip("\n").split(None, 5)
                start, end = (int(word, 16) for word in words[0].split("-"))
                self.mappings.append((start, end, words[1], int(words[2], 16), words[5] if len(words) > 5 else ""))

    def reader(self, start, end, path):
        name = "/proc/%d/mem" % self.pid if path == "[vdso]" else "/proc/%d/map_files/%x-%x" % (self.pid, start, end)
        base = start if path == "[vdso]" else 0

        def read(offset, count):
            with open(name, "rb", buffering=0) as file:
                return os.pread(file.fileno(), count, base + offset)
        return read

    def place(self, address):
        """(path, address in the file) of an address in memory; ("[jit]", address) for code in no file; None if no code is there."""
        for start, end, rights, offset, path in self.mappings:
            if not start <= address < end or rights[2] != "x":
                continue
            if not path or path.startswith(("[anon", "//anon", "/memfd:")):
                return "[jit]", address
            if path not in self.segments:
                self.segments[path] = list(segments_of(self.reader(start, end, path)))
            at = address - start + offset
            for first, count, loaded in self.segments[path]:
                if first <= at < first + count:
                    return path, at - first + loaded
        return None


def gdb_path():
    return shutil.which("gdb")


def gdb_stacks(pid):
    """({tid: [(path, address)]}, {tid: why gdb went no further}) of a process. RuntimeError with gdb's words where gdb can't."""
    done = subprocess.run([gdb_path(), "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off",
                           "-iex", "set pagination off", "-p", str(pid), "-x", os.path.join(HERE, "gdb_frames.py")],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=GDB_S)
    lines = done.stdout.decode(errors="replace").splitlines()
    if "all threads" not in lines:
        raise RuntimeError("gdb of %d: %s" % (pid, lines[-3:]))
    memory, stacks, ends, tid, exact = Memory(pid), {}, {}, None, True
    for words in (line.split(None, 2) for line in lines if line):
        if words[0] == "thread" and len(words) == 2:
            tid, exact = int(words[1]), True
            stacks[tid] = []
        elif words[0] == "frame" and tid:
            # the byte before a return address is in the call; the address that a signal interrupted is no return address
            address = int(words[1]) - (not exact)
            stacks[tid].append(memory.place(address) or ("-", address))
            exact = words[2] == "1"
        elif words[0] == "end" and tid:
            ends[tid] = " ".join(words[1:])
    return stacks, ends


def walk_addresses(probe, tid):
    """([(path, address)], how it ended, hash) of tsnap's walk."""
    done = subprocess.run([probe, "--addresses", str(tid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30)
    if done.returncode:
        raise PermissionError(done.stderr.decode().strip())
    *lines, last = done.stdout.decode(errors="surrogateescape").split("\n")[:-1]
    frames = [tuple(reversed(line.split(" ", 1))) for line in lines]
    return [(path, int(address, 16)) for path, address in frames], int(last.split()[0]), last.split()[1]
