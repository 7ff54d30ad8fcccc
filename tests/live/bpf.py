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
