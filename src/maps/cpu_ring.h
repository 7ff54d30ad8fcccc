/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A perf event of one CPU and the memory that the kernel writes its samples to
 * (perf_event_open(2)). A reader wants the newest sample only, or walks back from the newest
 * record.
 */
#ifndef TSNAP_MAPS_CPU_RING_H
#define TSNAP_MAPS_CPU_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPU_RECORD_BYTES_MAX 65536 /* the size of a record has 16 bits */

struct cpu_ring {
	int event; /* -1: closed */
	struct perf_event_mmap_page *page;
	size_t data_bytes; /* bytes after the page, a power of two */
};

/* Opens the event on a CPU, with a ring of at least data_bytes. 0 or -errno. */
int cpu_ring_open(struct cpu_ring *ring, struct perf_event_attr *attr, int cpu, size_t data_bytes);
void cpu_ring_close(struct cpu_ring *ring);

/* Returns the kernel memory that the ring takes; 0: it is closed. */
size_t cpu_ring_bytes(const struct cpu_ring *ring);

/* Empties the ring. */
void cpu_ring_clear(struct cpu_ring *ring);
/* Copies the newest sample to record, of CPU_RECORD_BYTES_MAX bytes. Returns its bytes, 0: there is
 * none. */
size_t cpu_ring_read(const struct cpu_ring *ring, void *record);

/* Returns where the newest record of an event with write_backward (4.7) begins; the kernel goes on
 * to fill such a ring over its oldest records. */
uint64_t cpu_ring_begin(const struct cpu_ring *ring);
/* Moves *at from a record to the next older one. begin: result of cpu_ring_begin(). Returns the
 * bytes of the record that *at was at; 0: there is none. */
size_t cpu_ring_next(const struct cpu_ring *ring, uint64_t begin, uint64_t *at);
/* Copies bytes from position at on. */
void cpu_ring_copy(const struct cpu_ring *ring, uint64_t at, void *to, size_t bytes);
/* True if records that end before position at can't have been overwritten yet. */
bool cpu_ring_kept(const struct cpu_ring *ring, uint64_t at);

#endif
