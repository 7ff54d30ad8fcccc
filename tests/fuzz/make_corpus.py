#!/usr/bin/env python3
"""Writes corpus_btf/, corpus_offsets/, corpus_elf/, corpus_perf_map/, corpus_python/, corpus_goroutines/, corpus_java/, corpus_java_monitors/,
corpus_tasks/, corpus_perf_sample/, corpus_sock_diag/, corpus_service/ and corpus_programs/ anew: small files, good and bad, for the fuzz targets to start from."""
import os
import struct
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "live"))
from btf_file import HEADER, STRUCT, UNION, Maker, elf  # noqa: E402

# As kernel/field_table.c has them; older names where it has two in the second file.
TASK = (("__state", 24), ("stack", 32), ("flags", 44), ("exit_state", 1160), ("pid", 1264), ("tgid", 1268), ("real_parent", 1280),
        ("group_leader", 1320), ("thread_pid", 1360), ("nvcsw", 1536), ("start_boottime", 1560), ("cred", 1736), ("comm", 1752))
PID = (("level", 4), ("numbers", 96))
OLD = {"__state": "state", "start_boottime": "real_start_time", "thread_pid": "pids"}


def kernel(old=False, nested=False, more=None):
    """Types 1 int, 2 the unnamed struct, 3 task_struct, 4 cred, 5 pid."""
    maker = Maker()
    maker.add(1, "int", 4, extra=b"\x20\0\0\1")
    task = [(OLD.get(name, name) if old else name, 1, at * 8) for name, at in TASK]
    inner = [(name, of, bits - task[4][2]) for name, of, bits in task[4:6]] if nested else []
    maker.add(STRUCT, "", 8, inner)
    if nested:
        task[4:6] = [("", 2, task[4][2])]
    maker.add(STRUCT, "task_struct", 2048, task)
    maker.add(STRUCT, "cred", 64, [("euid", 1, 24 * 8)])
    maker.add(STRUCT, "pid", 96, [(name, 1, at * 8) for name, at in PID])
    if more:
        more(maker)
    return maker


def all_kinds(maker):
    for kind, extra in ((2, 0), (3, 12), (6, 8), (7, 0), (8, 0), (9, 0), (10, 0), (11, 0), (12, 0), (13, 8), (14, 4), (15, 12), (16, 0),
                        (17, 4), (18, 0), (19, 12)):
        maker.add(kind, "of_every_kind", 1, vlen=1 if kind in (6, 13, 15, 19) else 0, extra=bytes(extra))


def cyclic():
    """Unnamed structs that hold one another, wide."""
    maker = Maker()
    maker.add(STRUCT, "task_struct", 2048, [("", of, 0) for of in (2, 3) * 20])
    maker.add(STRUCT, "", 64, [("", of, 0) for of in (2, 3) * 20])
    maker.add(UNION, "", 64, [("", of, 0) for of in (3, 2) * 20])
    return maker


def one_struct(**options):
    maker = Maker()
    maker.add(STRUCT, "task_struct", 64, [("pid", 1, 0)], **options)
    return maker


def btf_files():
    good = kernel().file()
    yield "good", good
    yield "good_old_names", kernel(old=True).file()
    yield "good_nested", kernel(nested=True).file()
    yield "good_all_kinds", kernel(more=all_kinds).file()
    yield "good_long_header", kernel().file(hdr_len=HEADER.size + 8)[:HEADER.size] + bytes(8) + good[HEADER.size:]
    yield "elf", elf(good)
    yield "elf_without", elf(good, b".data")
    yield "elf_cut", elf(good)[:-70]
    yield "elf_far", elf(good)[:40] + b"\xff" * 8 + elf(good)[48:]
    yield "empty", b""
    yield "cut_header", good[:17]
    yield "cut_types", good[:100]
    yield "cut_names", good[:-1]
    yield "other_byte_order", kernel().file(magic=0x9feb)
    yield "version", kernel().file(version=9)
    yield "cyclic", cyclic().file()
    yield "huge_count", one_struct(vlen=0xffff).file()
    yield "huge_lengths", kernel().file(type_len=0xffffffff, str_off=0xffffffff, str_len=0xffffffff)
    yield "huge_header", kernel().file(hdr_len=0xfffffff0)
    yield "no_names", kernel().file(str_len=0)
    yield "kind_unknown", kernel(more=lambda maker: maker.add(31, "new", 0)).file()
    yield "overlap", kernel().file().replace((1264 * 8).to_bytes(4, "little"), (1266 * 8).to_bytes(4, "little"))
    split = Maker()  # as a module's: its numbers go on where vmlinux' end
    split.add(STRUCT, "task_struct", 64, [("pid", 90001, 0), ("", 90002, 0)])
    yield "split", split.file()


def offsets_files():
    head = "tsnap offsets 1\nrelease 6.1.0-test\nmachine x86_64\n"
    lines = ["task_struct.%s %d\n" % pair for pair in TASK] + ["cred.euid 24\n"] + ["pid.%s %d\n" % pair for pair in PID]
    good = head + "".join(lines)
    yield "good", good
    yield "old_names", "".join(good.replace("." + new + " ", "." + old + " ") for new, old in [("__state", "state")])
    yield "more_fields", good + "mm_struct.arg_start 352\n"
    yield "one_missing", head + "".join(lines[1:])
    yield "twice", good + lines[0]
    yield "other_release", good.replace("6.1.0", "5.10.0")
    yield "other_machine", good.replace("x86_64", "aarch64")
    yield "huge_number", good.replace(" 24\n", " 99999999999999999999999\n")
    yield "negative", good.replace(" 24\n", " -24\n")
    yield "no_number", good.replace(" 24\n", "\n")
    yield "overlap", good.replace(" 1268\n", " 1266\n")
    yield "nul", good.replace("pid", "p\0d")
    yield "long_line", head + "task_struct." + "x" * 8000 + " 1\n"
    yield "empty", ""
    yield "line_ends", good.replace("\n", "\r\n")


def leb(number):
    """Signed LEB128."""
    out = b""
    while True:
        byte, number = number & 0x7f, number >> 7
        if (number == 0 and not byte & 0x40) or (number == -1 and byte & 0x40):
            return out + bytes([byte])
        out += bytes([byte | 0x80])


def block(expression):
    return bytes([len(expression)]) + expression


def entry(body):
    body += bytes(-len(body) % 4)
    return struct.pack("<I", len(body)) + body


# CFA is r7+8, ra at CFA-8; then of the functions:
CODES = {
    "push": b"\x41\x0e\x10\x86\x02",  # advance 1; CFA+16; rbp at CFA-16
    "pointer": b"\x41\x0e\x10\x86\x02\x43\x0d\x06",  # then CFA is in rbp
    "expression": b"\x0f" + block(b"\x77\xa0\x01\x06"),  # CFA is *(rsp + 160)
    "plt": b"\x0f" + block(b"\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"),
    "saved": b"\x10\x06" + block(b"\x77\x08\x06\x23\x08") + b"\x16\x03" + block(b"\x12\x13\x12\x1c"),
    "loop": b"\x0f" + block(b"\x31\x12\x28" + struct.pack("<h", -4)),  # lit1 dup bra back
    "outermost": b"\x07\x10",  # ra undefined
    "remember": b"\x0a" * 40 + b"\x0b" * 41,
    "remember_all": b"\x0a" * 40000,
    "far_register": b"\x05" + b"\x80\x9c\x9c\x39\x01",  # 120 000 000 at CFA-8
    "registers": b"\x09\x06\x03\x08\x03\x14\x0c\x01",
}


def elf_file(code, signal=b"", sections=True, header=True, augmentation=b"zR"):
    """A library with one function, its unwind table and name."""
    text, hdr_at, frame_at = 0x200, 0x300, 0x400
    cie = entry(bytes(4) + b"\1" + augmentation + signal + b"\0" + b"\1\x78\x10" + b"\1\x1b" + b"\x0c\x07\x08\x90\x01")
    fde_at = frame_at + len(cie)
    fde = entry(struct.pack("<IiI", fde_at + 4 - frame_at, text - (fde_at + 8), 0x80) + b"\0" + code)
    frame = cie + fde + bytes(4)
    hdr = b"\1\x1b\x03\x3b" + struct.pack("<iIii", frame_at - hdr_at - 4, 1, text - hdr_at, fde_at - hdr_at)
    names, symbol_names = b"\0.eh_frame\0.symtab\0.strtab\0.names\0", b"\0_ZN4shop3boxIiE4waitEi\0$x\0"
    out = bytearray(0x1000)
    heads = [struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 0x1000, 0x1000, 0x1000)]
    if header:
        heads.append(struct.pack("<IIQQQQQQ", 0x6474e550, 4, hdr_at, hdr_at, hdr_at, len(hdr), len(hdr), 4))
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, text, 0x80) + struct.pack("<IBBHQQ", 24, 0, 0, 1, text, 0)
    rows = [(0, 0, 0, 0, 0, 0), (1, 1, frame_at, len(frame), 0, 0), (11, 2, 0x600, len(symbols), 3, 24),
            (19, 3, 0x700, len(symbol_names), 0, 0), (27, 3, 0x780, len(names), 0, 0)]
    table = b"".join(struct.pack("<IIQQQQIIQQ", name, kind, 2, at, at, size, link, 0, 8, each)
                     for name, kind, at, size, link, each in rows)
    out[:64] = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0x800 if sections else 0, 0, 64, 56,
                                                             len(heads), 64, len(rows) if sections else 0, 4 if sections else 0)
    for at, piece in ((64, b"".join(heads)), (hdr_at, hdr), (frame_at, frame), (0x600, symbols), (0x700, symbol_names), (0x780, names),
                      (0x800, table)):
        out[at:at + len(piece)] = piece
    return bytes(out)


def go_table(magic, text):
    """Of two functions, as Go 1.2, 1.16, 1.18 or 1.20 lays it out."""
    names = b"\0main.wait\0runtime.mcall\0"
    starts, at_names = (0, 0x40), (1, 11)
    if magic == 0xfffffffb:
        head = struct.pack("<IHBBQ", magic, 0, 1, 8, 2)
        names_at = len(head) + 5 * 8
        records_at = names_at + 32
        functions = b"".join(struct.pack("<QQ", text + start, records_at + 16 * i) for i, start in enumerate(starts))
        records = b"".join(struct.pack("<QII", text + start, names_at + name, 0) for start, name in zip(starts, at_names))
        return head + functions + struct.pack("<Q", text + 0x80) + names.ljust(32, b"\0") + records
    old = magic == 0xfffffffa
    words = (2, 1, 0x60, 0x60, 0x60, 0x60, 0x80, 0) if old else (2, 1, text, 0x60, 0x60, 0x60, 0x60, 0x80)
    form, base = ("<QQ", text) if old else ("<II", 0)
    size = struct.calcsize(form)
    functions = b"".join(struct.pack(form, base + start, size * 3 + 16 * i) for i, start in enumerate(starts))
    functions += struct.pack(form, base + 0x80, 0)
    records = b"".join(struct.pack(form[:2] + "I", base + start, name).ljust(16, b"\0") for start, name in zip(starts, at_names))
    return (struct.pack("<IHBB8Q", magic, 0, 1, 8, *words).ljust(0x60, b"\0") + names.ljust(32, b"\0") + functions + records)


def go_file(magic, relocated=False, merged=False):
    """A stripped program of Go; the begin of its code is told, or by a relocation; its table lies among other data."""
    text, table_at, names_at = 0x200, 0x400, 0x600
    table = go_table(magic, text)
    if relocated:
        table = table[:24] + bytes(8) + table[32:]
    names = b"\0.text\0.gopclntab\0.rela.dyn\0.data.rel.ro\0.go.buildinfo\0"
    rows = [(0, 0, 0, 0, 0), (1, 1, text, 0x80 if not relocated else 0x100, 0),
            (28 if merged else 7, 1, table_at - 0x40 * merged, len(table) + 0x40 * merged, 0), (0, 3, names_at, len(names), 0)]
    relocations = struct.pack("<QQq", 0, 8, 0) + struct.pack("<QQq", table_at + 24, 8, text)
    rows += [(18, 4, 0x700, len(relocations), 24)] * relocated + [(41, 1, 0x780, 16, 0)] * merged
    out = bytearray(0x1000)
    heads = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, 0x800, 0, 64, 56, 1, 64, len(rows), 3)
    sections = b"".join(struct.pack("<IIQQQQIIQQ", name, kind, 2, at, at, size, 0, 0, 8, each) for name, kind, at, size, each in rows)
    for at, piece in ((0, b"\x7fELF\2\1\1" + bytes(9) + heads), (64, struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 0x1000, 0x1000, 0x1000)),
                      (table_at, table), (names_at, names), (0x700, relocations), (0x800, sections)):
        out[at:at + len(piece)] = piece
    return bytes(out)


def elf_files():
    for magic in 0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1:
        yield "go_%x" % magic, go_file(magic)
    yield "go_relocated", go_file(0xfffffff1, relocated=True)
    yield "go_merged", go_file(0xfffffff1, merged=True)
    late = go_file(0xfffffff0)
    yield "go_far_record", late[:0x484] + b"\xff" * 4 + late[0x488:]
    yield "go_many", late[:0x408] + b"\xff" * 8 + late[0x410:]
    for name, code in CODES.items():
        yield name, elf_file(code)
    good = elf_file(CODES["push"])
    yield "signal", elf_file(CODES["expression"], signal=b"S")
    yield "no_sections", elf_file(CODES["push"], sections=False)
    yield "no_header", elf_file(CODES["push"], header=False)
    yield "neither", elf_file(CODES["push"], sections=False, header=False)
    yield "augmentation", elf_file(CODES["push"], augmentation=b"zPLR")
    yield "far_segment", good[:72] + b"\xff" * 8 + good[80:]
    yield "huge_table", good.replace(struct.pack("<iIii", 0xfc, 1, -0x100, 0x114), struct.pack("<iIii", 0xfc, 0xffffffff, -0x100, 0x114))
    yield "huge_section", good[:0x800 + 2 * 64 + 32] + b"\xff" * 8 + good[0x800 + 2 * 64 + 40:]
    yield "many_sections", good[:60] + b"\xff\xff" + good[62:]
    yield "narrow", good[:4] + b"\1" + good[5:]
    yield "cut", good[:0x410]
    yield "empty", b""


def perf_map_files():
    yield "good", "7f0010 20 JS:*outer /tmp/a.js:3:1\n7f0040 1a Lcom/shop/Box;::fill\n7f0010 8 newer\n"
    yield "prefixes", "0x7f0010 0x20 a\n7F0030 FF b c d\n"
    yield "bad", "\n \n1\n1 2\n1 2 \nx y z\n1 0 nothing\nffffffffffffffff ffffffffffffffff over\n11111111111111111 1 long\n"
    yield "no_end", "7f0010 20 a\n7f0040 20 b"
    yield "long", "7f0010 20 " + "x" * 70000 + "\n7f0040 20 b\n"
    yield "hostile", "7f0010 20 \x1b[2J;;\0;\x7f\n7f0040 20 \xff\xfe\n"
    yield "empty", ""


# As fuzz_python.c has it.
PYTHON_BASE = 0x200000000000
PYTHON_RUNTIME, PYTHON_STACK, PYTHON_HEAP = 64, 0x400, 0x540
# As unwind/runtime/python_memory.c has them: of runtime, interpreter, thread, frame, code, string, bytes
PYTHON_LAYOUTS = {
    0x030b02f0: dict(interpreters=40, threads=16, owner_of=16, native=160, current=56, previous=48, code=32, at=56, owner=69, entry=68,
                     file=112, name=128, lines=136, first=72, bytes=184, text=48, cframe=8),
    0x030c01f0: dict(interpreters=40, threads=72, owner_of=16, native=144, current=56, previous=8, code=0, at=56, owner=70,
                     file=112, name=128, lines=136, first=68, bytes=192, text=40, cframe=0),
    0x030d00f0: dict(interpreters=704, threads=88, owner_of=16, native=160, current=72, previous=8, code=0, at=56, owner=70,
                     file=112, name=128, lines=136, first=68, bytes=200, text=40),
}
PYTHON_LAYOUTS[0x030e00f0] = dict(PYTHON_LAYOUTS[0x030d00f0], interpreters=728)
# Where 3.13 and 3.14 tell those, and next of interpreters and threads, of bytes and strings.
PYTHON_TOLD = {
    0x030d00f0: {40: 704, 64: 80, 72: 88, 168: 8, 176: 16, 184: 72, 200: 160, 232: 8, 240: 0, 248: 56, 264: 70, 280: 112, 296: 128, 304: 136,
                 312: 68, 344: 200, 520: 16, 528: 32, 544: 32, 552: 16, 560: 40},
    0x030e00f0: {40: 728, 64: 80, 72: 88, 192: 8, 200: 16, 208: 72, 224: 160, 256: 8, 264: 0, 272: 56, 288: 70, 296: 80, 320: 112, 336: 128,
                 344: 136, 352: 68, 384: 200, 424: 24, 440: 168, 504: 24, 512: 40, 520: 32, 576: 16, 584: 24, 600: 16, 608: 32, 624: 32,
                 632: 16, 640: 40, 680: 72, 688: 67, 704: 8}}


class PythonMemory:
    """A thread, 1, in two calls of the interpreter: of three functions and of one."""

    def __init__(self, version):
        self.image, self.layout, self.heap = bytearray(0xb00), PYTHON_LAYOUTS[version], PYTHON_HEAP
        self.put(8, "<Q", version)
        if version in PYTHON_TOLD:
            self.image[PYTHON_RUNTIME:PYTHON_RUNTIME + 8] = b"xdebugpy"
            self.put(PYTHON_RUNTIME + 8, "<Q", version)
            for at, value in PYTHON_TOLD[version].items():
                self.put(PYTHON_RUNTIME + at, "<Q", value)
        interpreter, self.thread = self.place(96), self.place(176)
        self.link(PYTHON_RUNTIME + self.layout["interpreters"], interpreter)
        self.link(interpreter + self.layout["threads"], self.thread)
        self.link(self.thread + self.layout["owner_of"], interpreter)
        self.put(self.thread + self.layout["native"], "<Q", 1)
        lines = self.place(40)
        self.put(lines + 16, "<Q", 5)
        self.image[lines + 32:lines + 37] = b"\x87\0\xdf\0\0"
        code = self.code(self.text("f;\x1b", 1), self.text("/a/x.py", 1), lines)
        self.calls(code, self.code(self.text("\u65e5\ud800", 2), self.text("\U0001d518\0", 4), lines))

    def place(self, size):
        self.heap += -(-size // 8) * 8
        return self.heap - -(-size // 8) * 8

    def put(self, at, form, value):
        struct.pack_into(form, self.image, at, value)

    def link(self, at, to):
        self.put(at, "<Q", PYTHON_BASE + to)

    def text(self, characters, kind):
        ascii_only = kind == 1
        head = self.layout["text"] + (0 if ascii_only else 24 if self.layout["text"] == 48 else 16)
        at = self.place(head + kind * len(characters))
        self.link(at + 8, 32)
        self.put(at + 16, "<Q", len(characters))
        self.put(at + 32, "<I", kind << 2 | 0x20 | (0x40 if ascii_only else 0))
        for number, character in enumerate(characters):
            self.put(at + head + kind * number, {1: "<B", 2: "<H", 4: "<I"}[kind], ord(character))
        return at

    def code(self, name, file, lines):
        at = self.place(self.layout["bytes"] + 8)
        self.link(at + 8, 16)
        for member, to in (("name", name), ("file", file), ("lines", lines)):
            self.link(at + self.layout[member], to)
        self.put(at + self.layout["first"], "<i", 10)
        return at

    def frame(self, code, previous, at=None, owner=0, entry=0):
        at = self.place(72) if at is None else at
        self.link(at + self.layout["code"], code)
        if previous:
            self.link(at + self.layout["previous"], previous)
        self.link(at + self.layout["at"], code + self.layout["bytes"] + 4)
        self.put(at + self.layout["owner"], "<B", owner)
        if "entry" in self.layout:
            self.put(at + self.layout["entry"], "<B", entry)
        return at

    def calls(self, one, other):
        marks = PYTHON_STACK + 64 + 16, PYTHON_STACK + 3 * 64 + 16
        old = "entry" in self.layout
        outermost = self.frame(one, 0 if old else self.frame(0, 0, marks[1], 3), entry=1)
        first = self.frame(other, outermost if old else self.frame(0, outermost, marks[0], 3), entry=1)
        inner = self.frame(one, self.frame(other, first))
        if not old:
            to = inner
            if "cframe" in self.layout:
                to = self.place(16)
                self.link(to + self.layout["cframe"], inner)
            self.link(self.thread + self.layout["current"], to)
            return
        self.link(self.thread + self.layout["current"], marks[0])
        self.link(marks[0] + 8, inner)
        self.link(marks[0] + 16, marks[1])
        self.link(marks[1] + 8, outermost)


def python_files():
    for version in PYTHON_LAYOUTS:
        yield "good_%x" % (version >> 16), bytes(PythonMemory(version).image)
    circle = PythonMemory(0x030c01f0)
    frame = circle.frame(0, 0)
    circle.link(frame + 8, frame)
    circle.link(PYTHON_STACK + 64 + 16 + 8, frame)
    yield "circle", bytes(circle.image)


ASYNCIO, COROUTINE_TYPE = 0x380, 0x3f0  # as fuzz_tasks.c has them


class TaskMemory(PythonMemory):
    """Of Python 3.14, with four tasks in the thread's list: one runs, the next waits, one awaits it, and one is awaited by both."""

    def __init__(self):
        super().__init__(0x030e00f0)
        self.image += bytes(0x2000)
        # as test_tasks.c has them, but lists are after what an interpreter and a thread have
        lists, thread_lists = 96, 192
        for number, value in enumerate((168, 136, 96, 108, 109, 128, 152, 512, lists, 256, 176, 184, thread_lists)):
            self.put(ASYNCIO + 8 * number, "<Q", value)
        self.heap = 0x1000
        interpreter, thread = self.place(128), self.place(224)
        self.link(PYTHON_RUNTIME + 728, interpreter)
        self.link(interpreter + 88, thread)
        self.link(thread + 16, interpreter)
        self.put(thread + 160, "<Q", 1)
        for head in interpreter + lists, thread + thread_lists:
            self.link(head, head)
            self.link(head + 8, head)
        lines = self.place(40)
        self.put(lines + 16, "<Q", 5)
        self.image[lines + 32:lines + 37] = b"\x87\0\xdf\0\0"
        function = self.code(self.text("f", 1), self.text("/a/x.py", 1), lines)
        self.future_type = self.type("_asyncio.Future", 0)
        self.task_type, self.number_type = self.type("_asyncio.Task", self.future_type), self.type("int", 0)
        self.put(self.number_type + 168, "<Q", 1 << 24)
        future = self.place(168)
        self.link(future + 8, self.future_type)
        number = self.place(32)
        self.link(number + 8, self.number_type)
        struct.pack_into("<QI", self.image, number + 16, 1 << 3, 7)
        self.tasks, last = [], thread + thread_lists
        for i in range(4):
            inner = self.coroutine(function, future)
            coroutine = self.coroutine(function, inner)
            task = self.place(168)
            self.link(task + 8, self.task_type)
            self.put(task + 108, "<B", 1)
            self.link(task + 120, future)
            self.link(task + 128, coroutine)
            self.link(task + 136, number if i % 2 else self.text("n%d" % i, 1))
            self.link(task + 152, thread + thread_lists)
            self.link(task + 160, last)
            self.link(last, task + 152)
            self.link(thread + thread_lists + 8, task + 152)
            last = task + 152
            self.tasks.append((task, coroutine))
        task, coroutine = self.tasks[0]
        self.put(coroutine + 67, "<b", 0)
        self.link(thread + 184, task)
        self.link(thread + 72, self.frame(function, coroutine + 72))
        self.link(self.tasks[1][0] + 96, self.tasks[2][0])
        self.set = self.place(64)
        table = self.place(128)
        self.put(self.set + 24, "<Q", 2)
        self.put(self.set + 32, "<Q", 7)
        self.link(self.set + 40, table)
        for i in range(2):
            self.link(table + 16 * i, self.tasks[1 + i][0])
            self.put(table + 16 * i + 8, "<Q", 5)
        self.link(self.tasks[3][0] + 96, self.set)
        self.put(self.tasks[3][0] + 109, "<B", 1)

    def type(self, name, base):
        at, text = self.place(272), self.place(24)
        self.image[text:text + len(name)] = name.encode()
        self.link(at + 24, text)
        if base:
            self.link(at + 256, base)
        return at

    def coroutine(self, function, awaited):
        at = self.place(200)
        self.link(at + 8, COROUTINE_TYPE)
        self.put(at + 67, "<b", -1)
        self.frame(function, 0, at + 72, 1)
        self.link(at + 72 + 80, at + 72 + 112)
        self.link(at + 72 + 104, awaited)
        return at


def task_files():
    yield "good", bytes(TaskMemory().image)
    memory = TaskMemory()
    memory.link(memory.tasks[1][1] + 72 + 104, memory.tasks[1][1])
    yield "awaits_itself", bytes(memory.image)
    memory = TaskMemory()
    memory.link(memory.tasks[3][0] + 152, memory.tasks[1][0] + 152)
    yield "circle", bytes(memory.image)
    memory = TaskMemory()
    memory.put(memory.set + 32, "<Q", 0xffff)
    yield "large_set", bytes(memory.image)
    memory = TaskMemory()
    memory.put(ASYNCIO, "<Q", 1 << 40)
    yield "large_task", bytes(memory.image)


def goroutine_files():
    """The memory of a program of Go at 0x200000000000: a list, three goroutines with their state in one of two places, their stacks.
    The lowest digit of an address is its function: how deep its frame is, or (0) that it is the outermost one."""
    base = 0x200000000000

    def memory(state_at, low=None, self=None, waits=4):
        out = bytearray(0x1000)
        struct.pack_into("<QQQ", out, 8, base + 0x100, 3, 0)
        for i, word in enumerate((b"", b"chan receive", b"select", b"sleep")):
            struct.pack_into("<QQ", out, 32 + 16 * i, base + 0x80 + 16 * i, len(word))
            out[0x80 + 16 * i:0x80 + 16 * i + len(word)] = word
        for i in range(3):
            at, stack = 0x200 + 0x100 * i, 0x800 + 0x200 * i
            struct.pack_into("<Q", out, 0x100 + 8 * i, base + at)
            struct.pack_into("<QQ", out, at, low or base + stack, base + stack + 0x200)
            struct.pack_into("<QQQ", out, at + 56, base + stack + 0x100, base + 0x11, self or base + at)
            struct.pack_into("<IIQQQB", out, at + state_at, waits, 0, i + 1, 0, 5 * i, 1 + i % 2)
            for word in range(0x100, 0x200, 8):  # of frames of 8 and 24 bytes
                struct.pack_into("<Q", out, stack + word, base + (0x20 if word == 0x1f8 else 0x14 if word % 16 else 0x12))
        return bytes(out)

    yield "go_144", memory(144)
    yield "go_152", memory(152)
    yield "syscall", memory(144, waits=3)
    yield "running", memory(144, waits=2)
    yield "scanned", memory(144, waits=0x1004)
    yield "copied", memory(144, waits=8)
    yield "low", memory(144, low=base)
    yield "others", memory(144, self=base)
    one = memory(144)
    yield "many", one[:16] + b"\xff" * 8 + one[24:]
    yield "itself", one[:8] + struct.pack("<Q", base) + one[16:]


JAVA_BASE, JAVA_CODE, JAVA_MAP = 0x200000000000, 0x4000, 0x3000
# class, field, whether it is static, its offset (or where a static one is), as fuzz_java.c has them looked at
JAVA_FIELDS = (("CodeCache", "_heaps", 1, 0x2000), ("GrowableArrayBase", "_len", 0, 0), ("GrowableArray<int>", "_data", 0, 8),
               ("CodeHeap", "_memory", 0, 8), ("CodeHeap", "_segmap", 0, 40), ("CodeHeap", "_log2_segment_size", 0, 72),
               ("VirtualSpace", "_low", 0, 16), ("VirtualSpace", "_low_boundary", 0, 0), ("VirtualSpace", "_high_boundary", 0, 8),
               ("HeapBlock", "_header", 0, 0), ("HeapBlock::Header", "_used", 0, 8), ("CodeBlob", "_name", 0, 32),
               ("CodeBlob", "_size", 0, 0), ("CodeBlob", "_frame_size", 0, 8), ("CodeBlob", "_frame_complete_offset", 0, 4),
               ("CodeBlob", "_code_begin", 0, 24))


def java_memory(fields=JAVA_FIELDS, heaps=1, name="nmethod", stride=48):
    """A JVM with code of two segments of 128 bytes."""
    memory = bytearray(0x4400)
    texts = {}

    def put(at, form, *values):
        struct.pack_into(form, memory, at, *values)

    def text(words):
        if words not in texts:
            texts[words] = at = 0x1000 + sum(len(known) + 1 for known in texts)
            memory[at:at + len(words)] = words.encode()
        return JAVA_BASE + texts[words]
    put(0, "<11Q", JAVA_BASE + 0x100, stride, 0, 8, 16, 32, 40, JAVA_BASE + 0x800, 40, 0, 32)
    for i, (owner, field, static, at) in enumerate(fields):
        put(0x100 + 48 * i, "<QQQiiQQ", text(owner), text(field), text("int"), static, 0, 0 if static else at,
            JAVA_BASE + at if static else 0)
    put(0x800, "<QQiiiiQ", text("HeapBlock"), 0, 0, 0, 0, 0, 16)
    put(0x2000, "<Q", JAVA_BASE + 0x2100)
    put(0x2100, "<iiQ", heaps, heaps, JAVA_BASE + 0x2180)
    put(0x2180, "<Q", JAVA_BASE + 0x2200)
    code = JAVA_BASE + JAVA_CODE
    put(0x2200, "<Q4Q4Qi", 0, code, code + 0x400, code, code + 0x400, 0, 0, JAVA_BASE + JAVA_MAP, 0, 7)
    memory[JAVA_MAP:JAVA_MAP + 8] = b"\0\1\2\3\xff\xff\xff\xff"
    put(JAVA_CODE, "<QB", 4, 1)
    put(JAVA_CODE + 16, "<iiii8xQ", 496, 12, 6, 12, code + 0x100)
    put(JAVA_CODE + 16 + 32, "<Q", text(name))
    return bytes(memory)


def java_files():
    yield "good", java_memory()
    yield "interpreter", java_memory(name="Interpreter")
    yield "field_missing", java_memory(fields=JAVA_FIELDS[:-1])
    yield "many_heaps", java_memory(heaps=1 << 20)
    yield "no_stride", java_memory(stride=0)


def monitor_memory(kind, owner, pending=0x800, count=3, circle=False):
    """Threads 100 to 102 of a JVM, of which the first waits for a monitor: as fuzz_java_monitors.c has its fields."""
    memory = bytearray(0x900)

    def put(at, form, *values):
        struct.pack_into(form, memory, at, *values)
    threads = [JAVA_BASE + 0x400 + 0x80 * i for i in range(3)]
    put(0, "<QQQ", kind, JAVA_BASE + 0x100, threads[0])
    put(0x100, "<iiQ", count, 0, JAVA_BASE + 0x200)
    put(0x200, "<3Q", *threads)
    for i in range(3):
        put(0x300 + 8 * i, "<i", 100 + i)
        after = threads[i + 1] if i < 2 else threads[0] if circle else 0
        # next, system thread, stack and its bytes, pending, id, and one locked object
        put(0x400 + 0x80 * i, "<6QiiQ", after, JAVA_BASE + 0x300 + 8 * i, JAVA_BASE + 0x4000 * (i + 1), 0x1000,
            0 if i else JAVA_BASE + pending, 7 + i, 64 if i == 2 else 56, 0, JAVA_BASE + 0x880)
    put(0x800, "<QQ", JAVA_BASE + 0x840, owner)
    put(0x840, "<Q", JAVA_BASE + 0x880)
    return bytes(memory)


def parked_memory(kind, blocked=True, stopped=0, name=b"java/util/concurrent/locks/ReentrantLock$NonfairSync"):
    """The same with objects: the first thread is parked for a lock that the last one has."""
    memory = bytearray(monitor_memory(kind, 0, pending=-JAVA_BASE).ljust(0xd00, b"\0"))
    owned, owner, thread, lock, ownable = 0x930, 0x950, 0x980, 0x9d0, 0x9a8

    def put(at, form, *values):
        struct.pack_into("<" + form, memory, at, *values)

    def point(at, to):
        put(at, "I" if kind & 64 else "Q", to if kind & 64 or not to else JAVA_BASE + to)

    def fields(at, first, *offsets):
        """Names of fields from that one on, with their offsets."""
        if kind & 32:
            stream = bytes([len(offsets) + 1, 1]) + b"".join(bytes([first + i + 1, 1, at + 1, 1, 1]) for i, at in enumerate(offsets))
            put(at, "i%ds" % len(stream), len(stream), stream)
        else:
            put(at, "i%dH" % (6 * len(offsets)), 6 * len(offsets),
                *[part for i, at in enumerate(offsets) for part in (0, first + i, 0, 0, at << 2 | 1, 0)])
    put(0x20, "QBxxxi", JAVA_BASE + 0x28, stopped, 7)
    put(0x478, "Q", JAVA_BASE + 0x900)
    put(0x900, "Q", JAVA_BASE + 0x910)
    for at, of in ((0x910, thread), (owned, lock), (owner, thread)):
        put(at, "Q", 1)
        point(at + 8, of)
    point(0x910 + 16, owned if blocked else 0)
    point(owned + 16, owner)
    put(owner + 24, "Q", JAVA_BASE + 0x500)
    at = 0xa20
    for where, text in ((thread + 8, b"java/lang/Thread"), (ownable + 8, b"java/util/concurrent/locks/AbstractOwnableSynchronizer"),
                        (lock + 8, name), (0xa00, b"parkBlocker"), (0xa08, b"eetop"), (0xa10, b"exclusiveOwnerThread")):
        put(where, "Q", JAVA_BASE + at)
        put(at, "H%ds" % len(text), len(text), text)
        at += 2 + len(text)
    put(lock, "Q", JAVA_BASE + ownable)
    for of, where, count in ((thread, 0xb80, 2), (ownable, 0xbc0, 1)):
        put(of + 16, "QQH", JAVA_BASE + 0xa00, JAVA_BASE + where, count)
    fields(0xb80, 0, 16, 24)
    fields(0xbc0, 2, 16)
    return bytes(memory)


def monitor_files():
    yield "parked", parked_memory(16)
    yield "parked_narrow", parked_memory(16 | 64)
    yield "parked_stream", parked_memory(16 | 32)
    yield "parked_stream_narrow", parked_memory(16 | 32 | 64)
    yield "parked_elsewhere", parked_memory(16, blocked=False)
    yield "parked_stopped", parked_memory(16, stopped=1)
    yield "parked_odd_name", parked_memory(16, name=b"$Sync/$Sync")
    yield "thread", monitor_memory(1, JAVA_BASE + 0x500)
    yield "on_its_stack", monitor_memory(0, JAVA_BASE + 0x4000 * 3 - 64)
    yield "by_id", monitor_memory(3, 9)
    yield "anonymous", monitor_memory(13, 1)
    yield "free", monitor_memory(1, 0)
    yield "circle", monitor_memory(0, JAVA_BASE + 0x500, circle=True)
    yield "many", monitor_memory(1, JAVA_BASE + 0x500, count=1 << 30)
    yield "nowhere", monitor_memory(1, JAVA_BASE + 0x500, pending=1 << 40)


def perf_files():
    """The first byte: which of CALLCHAIN, RAW, REGS_USER and STACK_USER the record has."""
    head = struct.pack("<IHHIIQ", 9, 1, 0, 10, 10, 12345)
    chain = struct.pack("<8Q", 7, (1 << 64) - 128, 0xffffffff81000000, 0xffffffff81000100, (1 << 64) - 512, 0x401000, 0x401100, 0x401200)
    raw = struct.pack("<I", 12) + b"0123456789ab"
    registers = struct.pack("<Q", 2) + struct.pack("<20Q", *range(1000, 1020))
    stack = struct.pack("<Q", 32) + bytes(range(32)) + struct.pack("<Q", 24)
    yield "chain", b"\1" + head + chain
    yield "raw", b"\3" + head + chain + raw
    yield "all", b"\x0f" + head + chain + raw + registers + stack
    yield "no_stack", b"\x0f" + head + chain + raw + struct.pack("<QQ", 0, 0)
    yield "stack_of_no_words", b"\x08" + head + struct.pack("<Q", 15) + b"12345678" + struct.pack("<Q", 15)
    yield "long_chain", b"\1" + head + struct.pack("<Q", 1 << 61)


def diag_files():
    """The first byte: the group; then pieces behind their lengths."""
    def piece(*messages):
        whole = b"".join(messages)
        return struct.pack("<H", len(whole)) + whole

    def message(payload, kind=20):
        return struct.pack("<IHHII", 16 + len(payload), kind, 2, 0, 0) + payload + bytes(-len(payload) % 4)

    def inet(family, state, local, remote, inode):
        return message(struct.pack("<BBBB", family, state, 0, 0) + struct.pack(">HH", *(port for _, port in (local, remote))) +
                       local[0].ljust(16, b"\0") + remote[0].ljust(16, b"\0") + struct.pack("<I8xIIIII", 0, 0, 0, 0, 0, inode))

    def local_socket(inode, *attributes):
        return message(struct.pack("<BBBBIII", 1, 1, 1, 0, inode, 0, 0) +
                       b"".join(struct.pack("<HH", 4 + len(value), kind) + value + bytes(-len(value) % 4) for kind, value in attributes))
    done = message(struct.pack("<I", 0), 3)
    a, b = (b"\x7f\0\0\1", 80), (b"\x7f\0\0\1", 40000)
    yield "tcp", b"\0" + piece(inet(2, 1, a, b, 11), inet(2, 1, b, a, 12)) + piece(inet(2, 10, a, (b"", 0), 13), done) + piece(done)
    yield "udp", b"\1" + piece(inet(10, 7, (b"\xfe\x80" + bytes(14), 53), (b"", 0), 21)) + piece(done)
    yield "unix", b"\2" + piece(local_socket(31, (0, b"/run/x.sock"), (2, struct.pack("<I", 32))), local_socket(32, (0, b"\0abstract\0x")))
    yield "refused", b"\0" + piece(message(struct.pack("<i", -2) + bytes(16), 2))
    yield "cut", b"\2" + piece(local_socket(31, (0, b"/run/x.sock"))[:-3])


def service_files():
    """Requests: kind, number, how (1 opens, 2 a perf map, 4 by a descriptor, 8 with one of debug data, 16 lies about the size),
    bytes of the file, address."""
    def ask(kind, number, how, address=0x1000, file=b""):
        return struct.pack("<BBBBHHI", kind, number, how, 0, len(file), address & 0xffff, address >> 16) + file
    elf_file = dict(elf_files())
    for name in sorted(elf_file)[:6]:
        file = elf_file[name]
        if len(file) < 20000:
            yield "rows_of_" + name, ask(0, 1, 5, file=file) + ask(0, 1, 0, 0x1100) + ask(2, 1, 0) + ask(0, 1, 0)
            yield "names_of_" + name, ask(1, 2, 13, file=file) + ask(1, 2, 0, 0x1010) + ask(4, 2, 5, file=file) + ask(5, 2, 0)
    yield "map", ask(1, 3, 7, 0x1234, b"1000 400 jitted\n") + ask(1, 3, 7, 0x2000, b"2000 10 more\n") + ask(1, 3, 0, 0x2004) + ask(3, 0, 0)
    yield "image_that_lies", ask(0, 1, 17, 0x7000000, b"\x7fELF")


def programs_files():
    """Sets of compiled programs without their head: kernel/program_set.c. FIELD_MAX is 26."""
    def text(words, size):
        return words.encode().ljust(size, b"\0")

    def body(maps, programs, sets=0):
        offsets = struct.pack("<26I", *range(16, 16 * 27, 16))
        return (text("6.1.0 #1", 256) + struct.pack("<3Q", 1, 2, 3) + text("btf", 32) + struct.pack("<4I", 16384, sets, maps, programs) + offsets
                + bytes(26) + bytes(26) + bytes(4))

    def table(name, per=0, entries=64):
        return text(name, 32) + struct.pack("<6I", 2, 4, 8, 0, entries, per)

    def program(name, *instructions):
        return text(name, 60) + struct.pack("<I", len(instructions)) + b"".join(instructions)

    def op(code, registers=0, number=0):
        return struct.pack("<BBhi", code, registers, 0, number)
    name_map, number, end = (op(0x18, 0x11, 1), op(0)), (op(0x18, 0x02, 5), op(0, 0, 9)), (op(0xb7), op(0x95))
    yield "empty", body(0, 0)
    yield "good", body(2, 2) + table("ts_threads", 1) + table("ts_other") + program("first", *name_map, *number, *end) + program("second", *end)
    yield "all_fields", body(1, 1, 3) + table("ts_other") + program("second", *end)
    yield "map_absent", body(1, 1) + table("ts_other") + program("first", *name_map, *end)
    yield "constant_cut", body(1, 1) + table("ts_other") + program("first", *end, number[0])
    yield "no_entries", body(1, 1) + table("ts_other", entries=0) + program("first", *end)
    yield "more_programs", body(1, 3) + table("ts_other") + program("first", *end)
    yield "more_bytes", body(1, 1) + table("ts_other") + program("first", *end) + b"x"


for folder, files in (("corpus_btf", btf_files()), ("corpus_offsets", offsets_files()), ("corpus_elf", elf_files()),
                      ("corpus_perf_map", perf_map_files()), ("corpus_python", python_files()), ("corpus_goroutines", goroutine_files()),
                      ("corpus_tasks", task_files()),
                      ("corpus_java", java_files()), ("corpus_java_monitors", monitor_files()),
                      ("corpus_perf_sample", perf_files()), ("corpus_sock_diag", diag_files()),
                      ("corpus_service", service_files()), ("corpus_programs", programs_files())):
    os.makedirs(os.path.join(here, folder), exist_ok=True)
    for file_name, content in files:
        with open(os.path.join(here, folder, file_name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
