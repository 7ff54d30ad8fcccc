"""Foreign and broken BTF files for tests: small ones that are made, and a kernel's BTF with members moved."""
import struct

HEADER = struct.Struct("<HBBIIIII")  # magic, version, flags, hdr_len, type_off, type_len, str_off, str_len
RECORD = struct.Struct("<III")  # of a type: name, info, size or type; of a member: name, type, offset
STRUCT, UNION = 4, 5
EXTRA = {1: (4, 0), 3: (12, 0), STRUCT: (0, 12), UNION: (0, 12), 6: (0, 8), 13: (0, 8), 14: (4, 0), 15: (0, 12), 17: (4, 0),
         19: (0, 12)}  # {kind: (bytes after the record, bytes for each of its vlen)}, include/uapi/linux/btf.h


def kind_and_length(info):
    return info >> 24 & 0x1f, info & 0xffff


class Maker:
    """A BTF file in the making. Types are numbered from 1 in the order in which they are added."""

    def __init__(self):
        self.types, self.strings = b"", b"\0"

    def name(self, text):
        if not text:
            return 0
        at = len(self.strings)
        self.strings += text.encode() + b"\0"
        return at

    def add(self, kind, name="", size=0, members=(), vlen=None, extra=b""):
        """Adds a type. members: (name, type, offset in bits)"""
        info = kind << 24 | (len(members) if vlen is None else vlen)
        self.types += RECORD.pack(self.name(name), info, size)
        self.types += b"".join(RECORD.pack(self.name(member), of, bits) for member, of, bits in members) + extra

    def file(self, magic=0xeb9f, version=1, hdr_len=HEADER.size, type_len=None, str_off=None, str_len=None):
        return HEADER.pack(magic, version, 0, hdr_len, 0, len(self.types) if type_len is None else type_len,
                           len(self.types) if str_off is None else str_off,
                           len(self.strings) if str_len is None else str_len) + self.types + self.strings


def elf(section, name=b".BTF"):
    """An ELF file with just this section."""
    names = b"\0" + name + b"\0.shstrtab\0"
    at = 64
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = ident + struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, at + len(section) + len(names), 0, 64, 0, 0, 64, 3, 2)

    def entry(name_at, kind, offset, size):
        return struct.pack("<IIQQQQIIQQ", name_at, kind, 0, 0, offset, size, 0, 0, 1, 0)
    return (header + section + names + bytes(64) + entry(1, 1, at, len(section)) +
            entry(len(name) + 2, 3, at + len(section), len(names)))


def moved(btf, of, moves):
    """The raw BTF with members of struct `of` moved; moves: {name: bytes}."""
    data = bytearray(btf)
    hdr_len, type_off, type_len, str_off = HEADER.unpack_from(data)[3:7]
    names = hdr_len + str_off

    def text(offset):
        return bytes(data[names + offset:data.index(0, names + offset)]).decode()
    at, end, left = hdr_len + type_off, hdr_len + type_off + type_len, dict(moves)
    while at < end:
        name, info, _size = RECORD.unpack_from(data, at)
        kind, vlen = kind_and_length(info)
        once, each = EXTRA.get(kind, (0, 0))
        if kind == STRUCT and text(name) == of:
            for member in range(at + RECORD.size, at + RECORD.size + vlen * 12, 12):
                member_name, member_type, offset = RECORD.unpack_from(data, member)
                by = left.pop(text(member_name), 0)
                RECORD.pack_into(data, member, member_name, member_type, offset + 8 * by)
        at += RECORD.size + once + each * vlen
    if left:
        raise KeyError("no %s.%s" % (of, ", ".join(left)))
    return bytes(data)
