"""Kernel headers for bcc's tools on a host that has none: the few types that the tools' BPF text names, at the offsets that
`tsnap --write-offsets` finds."""
import os
import re
import subprocess

# {struct: {member: declaration}} of the members that the tools read; padding fills the space between them.
STRUCTS = {
    "task_struct": {"__state": "unsigned int %s", "state": "long %s", "pid": "int %s", "tgid": "int %s",
                    "thread_pid": "struct pid *%s", "comm": "char %s[16]"},
    "pid": {"level": "unsigned int %s", "numbers": "struct upid %s[1]"},
}
BYTES = {"int": 4, "unsigned int": 4, "long": 8, "char": 16, "struct pid *": 8, "struct upid": 16}
# Registers that the perf clock passes to a program; part of the user interface, so the same on all kernels.
REGISTERS = {
    "x86_64": "#define CONFIG_X86_64 1\nstruct pt_regs { unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, "
              "si, di, orig_ax, ip, cs, flags, sp, ss; };\n",
    "aarch64": "struct pt_regs { unsigned long regs[31], sp, pc, pstate; };\n",
}
TYPES = """\
#ifndef BENCH_TYPES_H
#define BENCH_TYPES_H
typedef signed char __s8, s8; typedef unsigned char __u8, u8; typedef short __s16, s16;
typedef unsigned short __u16, u16, __le16, __be16, __sum16; typedef int __s32, s32, pid_t;
typedef unsigned int __u32, u32, __le32, __be32, __wsum; typedef long long __s64, s64;
typedef unsigned long long __u64, u64, __le64, __be64;
typedef s8 int8_t; typedef u8 uint8_t; typedef s16 int16_t; typedef u16 uint16_t; typedef s32 int32_t; typedef u32 uint32_t;
typedef s64 int64_t; typedef u64 uint64_t;
typedef unsigned long size_t, uintptr_t; typedef long ssize_t; typedef _Bool bool;
enum { false, true };
#define __bitwise
#define __aligned_u64 __u64 __attribute__((aligned(8)))
#define NULL ((void *)0)
#define __always_inline inline __attribute__((always_inline))
#endif
"""
# The namespaces are here only because functions that are never called name them.
SCHED = """\
#ifndef BENCH_SCHED_H
#define BENCH_SCHED_H
#define TASK_RUNNING 0
#define TASK_COMM_LEN 16
#define PAGE_OFFSET (1ull << 63)
enum pid_type { PIDTYPE_PID };
struct ns_common { unsigned int inum; };
struct pid_namespace { struct ns_common ns; };
struct upid { int nr; struct pid_namespace *ns; };
%s#endif
"""
PERF = """\
#include <uapi/linux/ptrace.h>
struct bpf_perf_event_data { struct pt_regs regs; __u64 sample_period, addr; };
"""


def struct_text(name, offsets):
    """Text of a struct. offsets: {member: bytes}"""
    text, at = "", 0
    for member, offset in sorted(offsets.items(), key=lambda item: item[1]):
        words = STRUCTS[name][member]
        text += "\tchar padding_%d[%d];\n" % (at, offset - at) if offset > at else ""
        text += "\t%s;\n" % (words % member)
        at = offset + BYTES[words.split("%s")[0].strip()]
    return "struct %s {\n%s};\n" % (name, text)


def tree_write(folder, tsnap):
    """Writes the headers into the folder, for BCC_KERNEL_SOURCE. Raises subprocess.CalledProcessError or KeyError where it can't."""
    file = os.path.join(folder, "offsets")
    subprocess.run([tsnap, "--write-offsets", file], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    offsets = {name: {} for name in STRUCTS}
    with open(file) as lines:
        for of, member, offset in re.findall(r"^(\w+)\.(\w+) (\d+)$", lines.read(), re.M):
            if member in STRUCTS.get(of, ()):
                offsets[of][member] = int(offset)
    kernel = [int(number) for number in re.match(r"(\d+)\.(\d+)\.?(\d*)", os.uname().release).group(1, 2)]
    headers = {
        "linux/kconfig.h": "#define CONFIG_BPF_SYSCALL 1\n",
        "linux/version.h": "#define LINUX_VERSION_CODE %d\n#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))\n" %
                           ((kernel[0] << 16) + (kernel[1] << 8)),
        "linux/types.h": TYPES,
        "linux/log2.h": "#define roundup_pow_of_two(n) ((n) < 2 ? 1 : 1ull << (64 - __builtin_clzll((n) - 1)))\n",
        "linux/sched.h": SCHED % (struct_text("task_struct", offsets["task_struct"]) + struct_text("pid", offsets["pid"])),
        "uapi/linux/ptrace.h": "#ifndef BENCH_PTRACE_H\n#define BENCH_PTRACE_H\n%s#endif\n" % REGISTERS[os.uname().machine],
        "uapi/linux/bpf_perf_event.h": PERF,
        "linux/ptrace.h": "#include <uapi/linux/ptrace.h>\n",
    }
    for name in ("linux/bpf_common.h", "linux/nsproxy.h", "linux/pid_namespace.h",
                 "linux/init_task.h", "asm/page.h", "uapi/linux/bpf.h", "uapi/linux/if_packet.h"):
        headers[name] = ""
    for name, text in headers.items():
        path = os.path.join(folder, "include", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as header:
            header.write(text)
