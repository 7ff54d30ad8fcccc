/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/cpu_sample.h"
#include "kernel/bpf_call.h"
#include "kernel/registers.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int cpu_ring_open(struct cpu_ring *ring, struct perf_event_attr *attr, int cpu, size_t data_bytes)
{
	int event = perf_call_open(attr, -1, cpu), err;
	void *page;

	ring->event = -1;
	if (event < 0)
		return event;
	ring->data_bytes = page_bytes();
	while (ring->data_bytes < data_bytes)
		ring->data_bytes *= 2;
	/* the kernel overwrites the oldest records of a ring that is mapped read-only */
	page = mmap(NULL, page_bytes() + ring->data_bytes,
		    attr->write_backward ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, event,
		    0);
	if (page == MAP_FAILED) {
		err = -errno;
		close(event);
		return err;
	}
	ring->page = page;
	ring->event = event;
	return 0;
}

void cpu_ring_close(struct cpu_ring *ring)
{
	if (ring->event < 0)
		return;
	munmap(ring->page, page_bytes() + ring->data_bytes);
	close(ring->event);
	ring->event = -1;
}

size_t cpu_ring_bytes(const struct cpu_ring *ring)
{
	return ring->event < 0 ? 0 : page_bytes() + ring->data_bytes;
}

void cpu_ring_clear(struct cpu_ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);

	__atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
}

void cpu_ring_copy(const struct cpu_ring *ring, uint64_t at, void *to, size_t bytes)
{
	const char *data = (const char *)ring->page + page_bytes();
	size_t from = (size_t)(at & (ring->data_bytes - 1)), first = ring->data_bytes - from;

	first = first < bytes ? first : bytes;
	memcpy(to, data + from, first);
	memcpy((char *)to + first, data, bytes - first);
}

size_t cpu_ring_read(const struct cpu_ring *ring, void *record)
{
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE),
		 tail = ring->page->data_tail, newest = 0;
	struct perf_event_header header;
	size_t bytes = 0;

	for (; head - tail >= sizeof(header) && head - tail <= ring->data_bytes;
	     tail += header.size) {
		cpu_ring_copy(ring, tail, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail)
			break;
		if (header.type == PERF_RECORD_SAMPLE) {
			newest = tail;
			bytes = header.size;
		}
	}
	if (bytes)
		cpu_ring_copy(ring, newest, record, bytes);
	return bytes;
}

uint64_t cpu_ring_begin(const struct cpu_ring *ring)
{
	return __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

size_t cpu_ring_next(const struct cpu_ring *ring, uint64_t begin, uint64_t *at)
{
	struct perf_event_header header;
	/* positions go down from 0 */
	uint64_t written = -*at, left = ring->data_bytes - (*at - begin);

	left = left < written ? left : written;
	if (left < sizeof(header))
		return 0;
	cpu_ring_copy(ring, *at, &header, sizeof(header));
	if (header.size < sizeof(header) || header.size > left)
		return 0;
	*at += header.size;
	return header.size;
}

bool cpu_ring_kept(const struct cpu_ring *ring, uint64_t at)
{
	return at - cpu_ring_begin(ring) <= ring->data_bytes - CPU_RECORD_BYTES_MAX;
}

/* The words of a record that are not read yet. */
struct words {
	const uint64_t *at;
	size_t count;
};

/* Takes the next count words. NULL: fewer are left. */
static const uint64_t *words_take(struct words *words, uint64_t count)
{
	const uint64_t *taken = words->at;

	if (count > words->count)
		return NULL;
	words->at += count;
	words->count -= count;
	return taken;
}

/* Returns the part of the chain after the mark of its context, PERF_CONTEXT_KERNEL or _USER; marks
 * are numbers that no address can be. */
static const uint64_t *chain_part(const uint64_t *chain, uint64_t count, uint64_t mark,
				  uint32_t *part_count)
{
	uint64_t first = 0, end;

	while (first < count && chain[first] != mark)
		first++;
	first += first < count;
	for (end = first; end < count && chain[end] < (uint64_t)PERF_CONTEXT_MAX;)
		end++;
	*part_count = (uint32_t)(end - first);
	return chain + first;
}

static bool chain_take(struct words *words, struct cpu_sample *sample)
{
	const uint64_t *count = words_take(words, 1), *chain;

	chain = count ? words_take(words, *count) : NULL;
	if (!chain)
		return false;
	sample->kernel =
		chain_part(chain, *count, (uint64_t)PERF_CONTEXT_KERNEL, &sample->kernel_count);
	sample->user = chain_part(chain, *count, (uint64_t)PERF_CONTEXT_USER, &sample->user_count);
	return true;
}

/* Raw data is a 32-bit size and that many bytes, which end where a word does. */
static bool raw_take(struct words *words, struct cpu_sample *sample)
{
	const uint64_t *raw = words->at;
	uint32_t bytes;

	if (!words->count)
		return false;
	memcpy(&bytes, raw, sizeof(bytes));
	if (bytes % 8 != 4 || !words_take(words, (bytes + 4ull) / 8))
		return false;
	sample->raw = (const char *)raw + sizeof(bytes);
	sample->raw_bytes = bytes;
	return true;
}

static bool registers_take(struct words *words, uint64_t mask, struct cpu_sample *sample)
{
	const uint64_t *abi = words_take(words, 1), *values;

	if (!abi || *abi == PERF_SAMPLE_REGS_ABI_NONE) /* a kernel thread */
		return abi;
	values = words_take(words, (uint64_t)__builtin_popcountll(mask));
	if (!values)
		return false;
	registers_sampled(values, *abi == PERF_SAMPLE_REGS_ABI_32, &sample->registers);
	sample->registers_known = sample->registers.sp; /* workers of io_uring never were there */
	return true;
}

static bool stack_take(struct words *words, struct cpu_sample *sample)
{
	const uint64_t *bytes = words_take(words, 1), *stack, *copied;

	if (!bytes || !*bytes)
		return bytes;
	stack = words_take(words, *bytes / 8);
	copied = stack ? words_take(words, 1) : NULL;
	if (!copied || *copied > *bytes / 8 * 8)
		return false;
	sample->stack = stack;
	sample->stack_bytes = (size_t)*copied;
	return true;
}

int cpu_sample_parse(const void *record, size_t bytes, uint64_t sample_type,
		     uint64_t registers_mask, struct cpu_sample *sample)
{
	struct words words = {record, bytes / 8};
	struct perf_event_header header;
	const uint64_t *head;
	uint32_t ids[2];

	*sample = (struct cpu_sample){.time_ns = 0};
	head = words_take(&words, 3); /* perf_event_header; pid and tid; time */
	if (!head)
		return -EBADMSG;
	memcpy(&header, head, sizeof(header));
	sample->in_kernel =
		(header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	memcpy(ids, &head[1], sizeof(ids));
	sample->tid = ids[1];
	sample->time_ns = (int64_t)head[2];
	if ((sample_type & PERF_SAMPLE_CALLCHAIN && !chain_take(&words, sample)) ||
	    (sample_type & PERF_SAMPLE_RAW && !raw_take(&words, sample)) ||
	    (sample_type & PERF_SAMPLE_REGS_USER &&
	     !registers_take(&words, registers_mask, sample)) ||
	    (sample_type & PERF_SAMPLE_STACK_USER && !stack_take(&words, sample)))
		return -EBADMSG;
	return 0;
}

size_t cpu_sample_raw_at(const struct cpu_sample_head *head, uint64_t sample_type)
{
	size_t at = offsetof(struct cpu_sample_head, chain_count) + sizeof(uint32_t);

	if (!(sample_type & PERF_SAMPLE_CALLCHAIN))
		return at;
	return head->chain_count < UINT16_MAX / sizeof(uint64_t)
		       ? at + (1 + head->chain_count) * sizeof(uint64_t)
		       : SIZE_MAX;
}
