"""Loaded BPF programs and maps, by bpf(2)."""
import contextlib
import ctypes
import errno
import os
import platform

from harness import Skip

SYS_BPF = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
NEXT_ID = {"prog": 11, "map": 12}  # BPF_PROG_GET_NEXT_ID, BPF_MAP_GET_NEXT_ID, Linux 4.13
PROG_GET_FD_BY_ID = 13  # Linux 4.13
OBJ_GET_INFO_BY_FD = 15
# enum bpf_prog_type of include/uapi/linux/bpf.h, only types that tsnap uses
PROGRAM_TYPES = {2: "kprobe", 5: "tracepoint", 7: "perf_event", 17: "raw_tracepoint", 26: "tracing"}
libc = ctypes.CDLL(None, use_errno=True)


def loaded():
    """{("prog"|"map", id)} of all loaded programs and maps, or None if the kernel can't list them."""
    if SYS_BPF is None:
        return None
    found = set()
    for kind, command in NEXT_ID.items():
        attr = (ctypes.c_uint32 * 32)()  # start_id, next_id, open_flags
        while libc.syscall(SYS_BPF, command, ctypes.byref(attr), ctypes.sizeof(attr)) == 0:
            found.add((kind, attr[1]))
            attr[0] = attr[1]
        if ctypes.get_errno() != errno.ENOENT:
            return None
    return found


class Program:
    """struct bpf_prog_info of a loaded program; None fields where this kernel does not fill so much of it."""

    def __init__(self, number):
        attr = (ctypes.c_uint32 * 32)(number)
        fd = libc.syscall(SYS_BPF, PROG_GET_FD_BY_ID, ctypes.byref(attr), ctypes.sizeof(attr))
        if fd < 0:
            raise OSError(ctypes.get_errno(), "BPF_PROG_GET_FD_BY_ID")
        info = ctypes.create_string_buffer(256)
        request = (ctypes.c_uint32 * 32)(fd, len(info))
        ctypes.cast(ctypes.byref(request, 8), ctypes.POINTER(ctypes.c_uint64))[0] = ctypes.addressof(info)
        result = libc.syscall(SYS_BPF, OBJ_GET_INFO_BY_FD, ctypes.byref(request), ctypes.sizeof(request))
        os.close(fd)
        if result < 0:
            raise OSError(ctypes.get_errno(), "BPF_OBJ_GET_INFO_BY_FD")
        filled = request[1]

        def at(offset, kind):
            end = offset + ctypes.sizeof(kind)
            return kind.from_buffer(info, offset).value if end <= filled else None

        self.id, self.type = number, PROGRAM_TYPES.get(at(0, ctypes.c_uint32), "other")
        self.jited_bytes = at(16, ctypes.c_uint32)
        self.name = info.raw[64:80].split(b"\0")[0].decode()
        self.run_ns, self.run_count = at(192, ctypes.c_uint64), at(200, ctypes.c_uint64)


def programs_of(owned):
    """The programs in a set that truth.owned_bpf() returned."""
    return [Program(number) for kind, number in sorted(owned) if kind == "prog"]


def need_list():
    """Skips a test if the kernel can't list loaded programs and maps."""
    if os.geteuid() or loaded() is None:
        raise Skip("this kernel can't list BPF programs")


class Pinned:
    """A pinned array map of one value, in which tsnap describes what it shares."""

    CREATE, LOOKUP, UPDATE, PIN, GET, RUN = 0, 1, 2, 6, 7, 10
    ARRAY = 2  # BPF_MAP_TYPE_ARRAY

    @staticmethod
    def call(command, *words):
        """Calls bpf(2) with an attribute of these 64-bit words."""
        attr = (ctypes.c_uint64 * 16)(*words)
        result = libc.syscall(SYS_BPF, command, ctypes.byref(attr), ctypes.sizeof(attr))
        if result < 0:
            raise OSError(ctypes.get_errno(), "bpf(%d)" % command)
        return result

    @staticmethod
    def address(buffer):
        return ctypes.addressof(buffer)

    @classmethod
    def value(cls, path, key=bytes(8)):
        """The value of a key in the map pinned at path; zeroes: there is none."""
        name, key = ctypes.create_string_buffer(path.encode()), ctypes.create_string_buffer(key)
        fd = cls.call(cls.GET, cls.address(name))
        try:
            # the kernel writes as many bytes as the map's values have
            with open("/proc/self/fdinfo/%d" % fd) as file:
                size = next(int(line.split()[1]) for line in file if line.startswith("value_size:"))
            value = ctypes.create_string_buffer(size)
            with contextlib.suppress(FileNotFoundError):
                cls.call(cls.LOOKUP, fd, cls.address(key), cls.address(value))
        finally:
            os.close(fd)
        return value.raw

    @classmethod
    def run(cls, path, *arguments):
        """Runs the pinned program of a raw tracepoint in this thread."""
        name, context = ctypes.create_string_buffer(path.encode()), (ctypes.c_uint64 * len(arguments))(*arguments)
        fd = cls.call(cls.GET, cls.address(name))
        try:
            cls.call(cls.RUN, fd, 0, 0, 0, 0, ctypes.sizeof(context), cls.address(context))
        except OSError as why:
            raise Skip("this kernel does not run programs when told so: %s" % why) from why
        finally:
            os.close(fd)

    @classmethod
    def write(cls, path, raw):
        """Makes a map with this value, and pins it at path."""
        name, key, value = ctypes.create_string_buffer(path.encode()), ctypes.c_uint64(0), ctypes.create_string_buffer(raw)
        fd = cls.call(cls.CREATE, cls.ARRAY | 4 << 32, len(raw) | 1 << 32)
        try:
            cls.call(cls.UPDATE, fd, cls.address(key), cls.address(value), 0)
            cls.call(cls.PIN, cls.address(name), fd)
        finally:
            os.close(fd)
