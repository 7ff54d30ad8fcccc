/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/irq_reader.h"

#include <bcc/libbpf.h>
#include <string.h>

static bool is_hard(const struct irq_span *span)
{
	return !(span->number & IRQ_SOFT);
}

static void span_take(const struct irq_span *span, uint64_t at_ns, const struct irq_span **found)
{
	const bool ended = span->ended_ns && span->ended_ns <= at_ns;

	if (!span->began_ns || span->began_ns > at_ns || ended)
		return;
	if (!*found || is_hard(span))
		*found = span;
}

void irqs_read(int map, int cpus, int64_t at_ns, struct irq_seen *seen)
{
	memset(seen, 0, (size_t)cpus * sizeof(*seen));
	for (int cpu = 0; map >= 0 && cpu < cpus; cpu++) {
		const struct irq_span *found = NULL;
		struct cpu_irqs irqs;

		if (bpf_lookup_elem(map, &cpu, &irqs))
			continue;
		irqs.hard.ended_ns = irqs.soft.ended_ns = 0;
		span_take(&irqs.soft, (uint64_t)at_ns, &found);
		span_take(&irqs.hard, (uint64_t)at_ns, &found);
		for (int i = 0; i < IRQ_PAST; i++)
			span_take(&irqs.past[i], (uint64_t)at_ns, &found);
		if (found)
			seen[cpu] = (struct irq_seen){true, found->number, found->handler};
	}
}
