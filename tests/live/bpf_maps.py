"""Maps of a running tsnap, written to from outside, so that tests can fill a map at will that only a storm would fill."""
import ctypes
import os
import re
import struct

from harness import Skip

SYS_BPF = {"x86_64": 321, "aarch64": 280}.get(os.uname().machine)
UPDATE_ELEM, GET_NEXT_KEY, MAP_GET_FD_BY_ID, OBJ_GET_INFO_BY_FD = 2, 4, 14, 15  # enum bpf_cmd of linux/bpf.h
INFO_BYTES = 80
LIBC = ctypes.CDLL(None, use_errno=True)


def bpf(command, attributes):
    """(result of bpf(2), or -1 with errno; the attributes as the kernel left them)"""
    room = ctypes.create_string_buffer(attributes, 128)
    return LIBC.syscall(SYS_BPF, command, room, len(room)), room.raw


class Map:
    """A map by its descriptor; key_size, value_size, capacity as in struct bpf_map_info."""

    def __init__(self, fd):
        self.fd = fd
        info = ctypes.create_string_buffer(INFO_BYTES)
        bpf(OBJ_GET_INFO_BY_FD, struct.pack("<IIQ", fd, INFO_BYTES, ctypes.addressof(info)))
        _, self.id, self.key_size, self.value_size, self.capacity = struct.unpack_from("<5I", info.raw)
        self.name = info.raw[24:40].rstrip(b"\0").decode()

    def keys(self):
        """Keys that a walk through the map meets."""
        key, found = None, ctypes.create_string_buffer(self.key_size)
        while bpf(GET_NEXT_KEY, struct.pack("<IIQQ", self.fd, 0, ctypes.addressof(key) if key else 0, ctypes.addressof(found)))[0] == 0:
            key = ctypes.create_string_buffer(found.raw, self.key_size)
            yield found.raw

    def put(self, key, value=b""):
        """Adds an element, the rest of its value filled with zeroes; False: the map has no capacity left."""
        key, value = ctypes.create_string_buffer(key, self.key_size), ctypes.create_string_buffer(value, self.value_size)
        return bpf(UPDATE_ELEM, struct.pack("<IIQQ", self.fd, 0, ctypes.addressof(key), ctypes.addressof(value)))[0] == 0

    def close(self):
        os.close(self.fd)


def map_ids(pid):
    """Ids of the maps to which the process has descriptors, by fdinfo."""
    for fd in os.listdir("/proc/%d/fdinfo" % pid):
        try:
            with open("/proc/%d/fdinfo/%s" % (pid, fd)) as file:
                found = re.search(r"^map_id:\s*(\d+)", file.read(), re.M)
        except FileNotFoundError:  # closed meanwhile
            continue
        if found:
            yield int(found.group(1))


def map_find(name, pid):
    """The map of that name to which the process has a descriptor."""
    if not SYS_BPF:
        raise Skip("bpf(2) has another number on this machine")
    for at in map_ids(pid):
        fd, _ = bpf(MAP_GET_FD_BY_ID, struct.pack("<I", at))
        if fd < 0:
            continue
        found = Map(fd)
        if found.name == name:
            return found
        found.close()
    raise Skip("maps can't be found by their names here")
