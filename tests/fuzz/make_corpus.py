#!/usr/bin/env python3
"""Writes corpus_btf/ and corpus_offsets/ anew: small files, good and bad, for the fuzz targets to start from."""
import os
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


for folder, files in (("corpus_btf", btf_files()), ("corpus_offsets", offsets_files())):
    os.makedirs(os.path.join(here, folder), exist_ok=True)
    for file_name, content in files:
        with open(os.path.join(here, folder, file_name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
