/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads which interrupt each CPU handled at a time (bpf_text/irq.h).
 */
#ifndef TSNAP_MAPS_IRQ_READER_H
#define TSNAP_MAPS_IRQ_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/record.h"

/* An interrupt that a CPU handled. */
struct irq_seen {
	bool seen;
	uint32_t number;  /* as irq_span.number */
	uint64_t handler; /* 0: not known */
};

/* Fills in what each CPU handled at that time, a moment ago: a hardware interrupt before the
 * softirq that it came into. seen: one for each of so many CPUs. map: KERNEL_MAP_IRQS; -1: nothing
 * is known.
 */
void irqs_read(int map, int cpus, int64_t at_ns, struct irq_seen *seen);

#endif
