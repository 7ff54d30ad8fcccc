/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bpf(2) and perf_event_open(2), where libbcc has no call or its call prints or retries.
 * Each returns a descriptor or 0, or -errno.
 */
#ifndef TSNAP_KERNEL_BPF_CALL_H
#define TSNAP_KERNEL_BPF_CALL_H

#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One instruction; the fields in the order of struct bpf_insn. */
#define BPF_OP_(code, dst, src, off, imm)          \
	{                                          \
		(code), (dst), (src), (off), (imm) \
	}
#define BPF_CALL_(helper) BPF_OP_(BPF_JMP | BPF_CALL, 0, 0, 0, (helper))
/* a function of the kernel, by its number in the kernel's BTF: BPF_PSEUDO_KFUNC_CALL (5.13) */
#define BPF_CALL_KERNEL_(function) BPF_OP_(BPF_JMP | BPF_CALL, 0, 2, 0, (function))
#define BPF_EXIT_() BPF_OP_(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
#define BPF_SET_(dst, imm) BPF_OP_(BPF_ALU64 | BPF_MOV | BPF_K, (dst), 0, 0, (imm))
#define BPF_COPY_(dst, src) BPF_OP_(BPF_ALU64 | BPF_MOV | BPF_X, (dst), (src), 0, 0)
#define BPF_ADD_(dst, imm) BPF_OP_(BPF_ALU64 | BPF_ADD | BPF_K, (dst), 0, 0, (imm))
#define BPF_LOAD_(dst, src, off) BPF_OP_(BPF_LDX | BPF_MEM | BPF_DW, (dst), (src), (off), 0)
#define BPF_STORE_(dst, off, src) BPF_OP_(BPF_STX | BPF_MEM | BPF_DW, (dst), (src), (off), 0)
#define BPF_STORE_IMM_(dst, off, imm) BPF_OP_(BPF_ST | BPF_MEM | BPF_DW, (dst), 0, (off), (imm))
#define BPF_STACK_(dst, at) BPF_COPY_(dst, BPF_REG_10), BPF_ADD_(dst, at) /* an address */
#define BPF_MAP_(dst, fd)                                                      \
	BPF_OP_(BPF_LD | BPF_DW | BPF_IMM, (dst), BPF_PSEUDO_MAP_FD, 0, (fd)), \
		BPF_OP_(0, 0, 0, 0, 0)

struct bpf_load {
	enum bpf_prog_type type;
	const char *name; /* name that bpftool shows, at most 15 characters; NULL: none */
	const struct bpf_insn *instructions;
	size_t count;
	enum bpf_attach_type attach_type; /* attach type of BPF_PROG_TYPE_TRACING, else 0 */
	uint32_t btf_id;		  /* BTF id that such a program is attached to */
	uint32_t flags;			  /* BPF_F_* */
	char *log;			  /* buffer for the verifier's log; NULL: none */
	uint32_t log_size;		  /* bytes of log; below 16 MB before 5.2 */
};

/* Loads a program under the license GPL. A kprobe program is given the running kernel's version,
 * which kernels before 5.0 demand. */
int bpf_call_load_described(const struct bpf_load *load);
int bpf_call_load(enum bpf_prog_type type, const struct bpf_insn *instructions, size_t count);
/* Opens an iterator (5.8). Reading it runs the program for each of its objects, and gives what the
 * program writes. */
int bpf_call_iterator(int program);

struct bpf_map_made {
	const char *name; /* name that bpftool shows, at most 15 characters; NULL: none */
	uint32_t type, key_bytes, value_bytes, entries, flags; /* arguments of BPF_MAP_CREATE */
};

int bpf_call_map_described(const struct bpf_map_made *map);
int bpf_call_map(enum bpf_map_type type, size_t key_bytes, size_t value_bytes, size_t entries);
/* Makes an array that bpf_call_map_mapped() can map (5.5). */
int bpf_call_map_mappable(size_t value_bytes, size_t entries);
/* Maps the values of an array into memory, the caller's to munmap(2): *memory becomes its
 * address. */
int bpf_call_map_mapped(int map, size_t bytes, void **memory);
/* Maps a part of a map into address space that the caller has reserved: memory is the address of
 * its first byte, from and bytes are whole pages, but for the end. */
int bpf_call_map_mapped_at(int map, size_t from, size_t bytes, void *memory);
/* Takes the top of a stack (4.20); -ENOENT: it is empty. */
int bpf_call_pop(int map, void *value);
/* Attaches a program to a raw tracepoint. name: NULL for a typed program, which knows its
 * tracepoint. */
int bpf_call_raw_tracepoint(int program, const char *name);
/* Pins an object in a bpf file system, so that it outlives its descriptors: maps and programs since
 * 4.4, links of raw tracepoints since 5.7. */
int bpf_call_pin(int fd, const char *path);
/* Opens a descriptor of the object that is pinned as path. */
int bpf_call_get(const char *path);
/* Runs a raw tracepoint program once, as this thread, with that first argument (5.10). */
int bpf_call_run(int program, uint64_t argument);
/* Runs a program once with a context of that many bytes. A program of type BPF_PROG_TYPE_SYSCALL
 * leaves its changes in the context (5.14). */
int bpf_call_run_with(int program, void *context, size_t bytes);
/* Runs a socket filter program that many times, on an empty packet (4.12). */
int bpf_call_run_often(int program, uint32_t count);
/* Runs a raw tracepoint program once on that CPU, in an interrupt of whatever runs there (5.10). */
int bpf_call_run_on_cpu(int program, int cpu);
/* Reads a batch of a map. keys and values hold *count entries; in: NULL at the start, then the
 * previous out. -ENOENT: that was the last batch, with *count entries. */
int bpf_call_lookup_batch(int map, const void *in, void *out, void *keys, void *values,
			  uint32_t *count);
/* Reads a batch of a hash and deletes it (5.6, too). */
int bpf_call_lookup_delete_batch(int map, const void *in, void *out, void *keys, void *values,
				 uint32_t *count);

/* Has the kernel count runs of programs and their time, until the descriptor is closed (5.8). */
int bpf_call_stats(void);

int perf_call_open(struct perf_event_attr *attr, pid_t tid, int cpu);
/* Runs program at each overflow of the event. 0 or -errno. */
int perf_call_run(int event, int program);

#endif
