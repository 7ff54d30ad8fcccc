/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/bpf_call.h"
#include "kernel/host.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

static int bpf_call(int command, union bpf_attr *attr)
{
	long result = syscall(SYS_bpf, command, attr, sizeof(*attr));

	return result < 0 ? -errno : (int)result;
}

#define LOADS_MAX 5

/* Loads a program. A signal that comes meanwhile ends the verifier's work with EAGAIN (do_check()
 * of kernel/bpf/verifier.c, since 5.0); by then it has been handled. */
static int program_load(union bpf_attr *attr)
{
	int fd = -EAGAIN;

	for (int i = 0; fd == -EAGAIN && i < LOADS_MAX; i++)
		fd = bpf_call(BPF_PROG_LOAD, attr);
	return fd;
}

int bpf_call_load_described(const struct bpf_load *load)
{
	union bpf_attr attr;
	struct utsname name;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = load->type;
	attr.insns = (uintptr_t)load->instructions;
	attr.insn_cnt = (uint32_t)load->count;
	attr.license = (uintptr_t) "GPL";
	attr.expected_attach_type = load->attach_type;
	attr.attach_btf_id = load->btf_id;
	attr.prog_flags = load->flags;
	attr.log_buf = (uintptr_t)load->log;
	attr.log_size = load->log ? load->log_size : 0;
	attr.log_level = load->log ? 1 : 0;
	if (load->type == BPF_PROG_TYPE_KPROBE && !uname(&name))
		attr.kern_version = version_code_read(name.release);
	if (load->name)
		strncpy(attr.prog_name, load->name, sizeof(attr.prog_name) - 1);
	fd = program_load(&attr);
	/* before 4.15 programs have no names: to the kernel the call is too long */
	if (fd == -E2BIG && load->name) {
		memset(attr.prog_name, 0, sizeof(attr.prog_name));
		fd = program_load(&attr);
	}
	return fd;
}

int bpf_call_load(enum bpf_prog_type type, const struct bpf_insn *instructions, size_t count)
{
	return bpf_call_load_described(
		&(struct bpf_load){.type = type, .instructions = instructions, .count = count});
}

int bpf_call_iterator(int program)
{
	union bpf_attr attr;
	int link, iterator;

	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = (uint32_t)program;
	attr.link_create.attach_type = BPF_TRACE_ITER;
	link = bpf_call(BPF_LINK_CREATE, &attr);
	if (link < 0)
		return link;
	memset(&attr, 0, sizeof(attr));
	attr.iter_create.link_fd = (uint32_t)link;
	iterator = bpf_call(BPF_ITER_CREATE, &attr);
	close(link);
	return iterator;
}

int bpf_call_map_described(const struct bpf_map_made *map)
{
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = map->type;
	attr.key_size = map->key_bytes;
	attr.value_size = map->value_bytes;
	attr.max_entries = map->entries;
	attr.map_flags = map->flags;
	if (map->name)
		strncpy(attr.map_name, map->name, sizeof(attr.map_name) - 1);
	fd = bpf_call(BPF_MAP_CREATE, &attr);
	/* before 4.15 maps have no names, either, but the call is as long as theirs */
	if (fd == -EINVAL && map->name) {
		memset(attr.map_name, 0, sizeof(attr.map_name));
		fd = bpf_call(BPF_MAP_CREATE, &attr);
	}
	return fd;
}

int bpf_call_map(enum bpf_map_type type, size_t key_bytes, size_t value_bytes, size_t entries)
{
	return bpf_call_map_described(&(struct bpf_map_made){.type = type,
							     .key_bytes = (uint32_t)key_bytes,
							     .value_bytes = (uint32_t)value_bytes,
							     .entries = (uint32_t)entries});
}

int bpf_call_map_mappable(size_t value_bytes, size_t entries)
{
	return bpf_call_map_described(&(struct bpf_map_made){.type = BPF_MAP_TYPE_ARRAY,
							     .key_bytes = sizeof(uint32_t),
							     .value_bytes = (uint32_t)value_bytes,
							     .entries = (uint32_t)entries,
							     .flags = BPF_F_MMAPABLE});
}

int bpf_call_map_mapped_at(int map, size_t from, size_t bytes, void *memory)
{
	void *mapped = mmap((char *)memory + from, bytes, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_FIXED, map, (off_t)from);

	return mapped == MAP_FAILED ? -errno : 0;
}

int bpf_call_map_mapped(int map, size_t bytes, void **memory)
{
	void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);

	if (mapped == MAP_FAILED)
		return -errno;
	*memory = mapped;
	return 0;
}

int bpf_call_pop(int map, void *value)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map;
	attr.value = (uintptr_t)value;
	return bpf_call(BPF_MAP_LOOKUP_AND_DELETE_ELEM, &attr);
}

int bpf_call_raw_tracepoint(int program, const char *name)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.raw_tracepoint.name = (uintptr_t)name;
	attr.raw_tracepoint.prog_fd = (uint32_t)program;
	return bpf_call(BPF_RAW_TRACEPOINT_OPEN, &attr);
}

static int bpf_call_object(int command, int fd, const char *path)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.pathname = (uintptr_t)path;
	attr.bpf_fd = (uint32_t)fd;
	return bpf_call(command, &attr);
}

int bpf_call_pin(int fd, const char *path)
{
	return bpf_call_object(BPF_OBJ_PIN, fd, path);
}

int bpf_call_get(const char *path)
{
	return bpf_call_object(BPF_OBJ_GET, 0, path);
}

int bpf_call_run_with(int program, void *context, size_t bytes)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = (uint32_t)program;
	attr.test.ctx_in = (uintptr_t)context;
	attr.test.ctx_size_in = (uint32_t)bytes;
	return bpf_call(BPF_PROG_TEST_RUN, &attr);
}

int bpf_call_run(int program, uint64_t argument)
{
	return bpf_call_run_with(program, &argument, sizeof(argument));
}

int bpf_call_run_often(int program, uint32_t count)
{
	const char packet[14] = ""; /* ETH_HLEN, the least that is taken */
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = (uint32_t)program;
	attr.test.data_in = (uintptr_t)packet;
	attr.test.data_size_in = sizeof(packet);
	attr.test.repeat = count;
	return bpf_call(BPF_PROG_TEST_RUN, &attr);
}

int bpf_call_run_on_cpu(int program, int cpu)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = (uint32_t)program;
	attr.test.flags = BPF_F_TEST_RUN_ON_CPU;
	attr.test.cpu = (uint32_t)cpu;
	return bpf_call(BPF_PROG_TEST_RUN, &attr);
}

static int bpf_call_batch(int command, int map, const void *in, void *out, void *keys, void *values,
			  uint32_t *count)
{
	union bpf_attr attr;
	int result;

	memset(&attr, 0, sizeof(attr));
	attr.batch.map_fd = (uint32_t)map;
	attr.batch.in_batch = (uintptr_t)in;
	attr.batch.out_batch = (uintptr_t)out;
	attr.batch.keys = (uintptr_t)keys;
	attr.batch.values = (uintptr_t)values;
	attr.batch.count = *count;
	result = bpf_call(command, &attr);
	*count = attr.batch.count;
	return result;
}

int bpf_call_lookup_batch(int map, const void *in, void *out, void *keys, void *values,
			  uint32_t *count)
{
	return bpf_call_batch(BPF_MAP_LOOKUP_BATCH, map, in, out, keys, values, count);
}

int bpf_call_lookup_delete_batch(int map, const void *in, void *out, void *keys, void *values,
				 uint32_t *count)
{
	return bpf_call_batch(BPF_MAP_LOOKUP_AND_DELETE_BATCH, map, in, out, keys, values, count);
}

int bpf_call_stats(void)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.enable_stats.type = BPF_STATS_RUN_TIME;
	return bpf_call(BPF_ENABLE_STATS, &attr);
}

int perf_call_open(struct perf_event_attr *attr, pid_t tid, int cpu)
{
	long fd;

	attr->size = sizeof(*attr);
	fd = syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

int perf_call_run(int event, int program)
{
	if (ioctl(event, PERF_EVENT_IOC_SET_BPF, program) < 0)
		return -errno;
	return ioctl(event, PERF_EVENT_IOC_ENABLE, 0) < 0 ? -errno : 0;
}
