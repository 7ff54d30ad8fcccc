/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/cpu_ring.h"
#include "kernel/bpf_call.h"

#include <errno.h>
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
