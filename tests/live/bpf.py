"""The ids of the BPF programs and maps that are loaded, by bpf(2)."""
import ctypes
import errno
import os
import platform

SYS_BPF = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
NEXT_ID = {"prog": 11, "map": 12}  # BPF_PROG_GET_NEXT_ID, BPF_MAP_GET_NEXT_ID, Linux 4.13
libc = ctypes.CDLL(None, use_errno=True)


def loaded():
    """{("prog"|"map", id)} of all that is loaded, or None where the kernel can't tell."""
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


def can_be_used():
    return os.geteuid() == 0 and loaded() is not None


class Pinned:
    """An array map of one value, pinned; as tsnap describes what it shares."""

    CREATE, LOOKUP, UPDATE, PIN, GET = 0, 1, 2, 6, 7
    ARRAY = 2  # BPF_MAP_TYPE_ARRAY

    @staticmethod
    def call(command, *words):
        """bpf(2) with an attribute of these 64-bit words."""
        attr = (ctypes.c_uint64 * 16)(*words)
        result = libc.syscall(SYS_BPF, command, ctypes.byref(attr), ctypes.sizeof(attr))
        if result < 0:
            raise OSError(ctypes.get_errno(), "bpf(%d)" % command)
        return result

    @staticmethod
    def address(buffer):
        return ctypes.addressof(buffer)

    @classmethod
    def read(cls, path, size):
        """The value of a map that holds so many bytes."""
        name, key, value = ctypes.create_string_buffer(path.encode()), ctypes.c_uint64(0), ctypes.create_string_buffer(size)
        fd = cls.call(cls.GET, cls.address(name))
        try:
            cls.call(cls.LOOKUP, fd, cls.address(key), cls.address(value))
        finally:
            os.close(fd)
        return value.raw

    @classmethod
    def size(cls, path):
        """Bytes of its value."""
        name = ctypes.create_string_buffer(path.encode())
        fd = cls.call(cls.GET, cls.address(name))
        try:
            with open("/proc/self/fdinfo/%d" % fd) as file:
                return next(int(line.split()[1]) for line in file if line.startswith("value_size:"))
        finally:
            os.close(fd)

    @classmethod
    def write(cls, path, raw):
        """Makes such a map, and gives it that name."""
        name, key, value = ctypes.create_string_buffer(path.encode()), ctypes.c_uint64(0), ctypes.create_string_buffer(raw)
        fd = cls.call(cls.CREATE, cls.ARRAY | 4 << 32, len(raw) | 1 << 32)
        try:
            cls.call(cls.UPDATE, fd, cls.address(key), cls.address(value), 0)
            cls.call(cls.PIN, cls.address(name), fd)
        finally:
            os.close(fd)
