/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interrupts: what each CPU handles now, what it handled last, and for how long. Comes after
 * latency.bpf.c, if there is a --trace.
 *
 * The interrupts of local timers and those between CPUs are handled in other ways, and not seen;
 * nor are threads that handle interrupts, which are threads like others.
 */

BYTES_OF(cpu_irqs);
BPF_TABLE("array", __u32, struct cpu_irqs_bytes, ts_irqs, CPUS_MAX);

static inline struct cpu_irqs *irqs_here(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return (struct cpu_irqs *)ts_irqs.lookup(&cpu);
}

static inline void irq_count(const struct irq_span *span, __u64 ns)
{
#if defined(LATENCY_KINDS)
#if LATENCY_HAS(LATENCY_IRQ)
	struct latency_key key = {.kind = LATENCY_IRQ};

	key.what[IRQ_NUMBER] = span->number;
	key.what[IRQ_HANDLER] = (__u32)span->handler;
	key.what[IRQ_HANDLER_AND_CPU] = ((__u32)(span->handler >> 32) & IRQ_HANDLER_HIGH) |
					bpf_get_smp_processor_id() << IRQ_CPU_SHIFT;
	latency_add(&key, ns);
	slow_event_bytes(&key, 0, span->ended_ns, ns);
#endif
#endif
}

/* Keeps a span that has ended. */
static inline void irq_keep(struct cpu_irqs *irqs, const struct irq_span *span)
{
	__u64 at = irqs->count;

	__sync_fetch_and_add(&irqs->count, 1);
	asm volatile("%0 &= %1" : "+r"(at) : "i"(IRQ_PAST - 1)); /* as in latency_add_amount() */
	irqs->past[at].began_ns = 0;
	ORDERED();
	irqs->past[at].ended_ns = span->ended_ns;
	irqs->past[at].handler = span->handler;
	irqs->past[at].number = span->number;
	ORDERED();
	irqs->past[at].began_ns = span->began_ns;
}

static inline void hardirq_begins(__u32 number, __u64 handler)
{
	__u64 now_ns = bpf_ktime_get_ns();
	struct cpu_irqs *irqs = irqs_here();

	if (!irqs)
		return;
	irqs->hard.number = number;
	irqs->hard.handler = handler;
	ORDERED();
	irqs->hard.began_ns = now_ns;
}

static inline void softirq_begins(__u32 vector)
{
	__u64 now_ns = bpf_ktime_get_ns();
	struct cpu_irqs *irqs = irqs_here();

	if (!irqs)
		return;
	irqs->soft.number = vector | IRQ_SOFT;
	irqs->hard_before_ns = irqs->hard_ns;
	ORDERED();
	irqs->soft.began_ns = now_ns;
}

static inline void hardirq_ends(void)
{
	__u64 now_ns = bpf_ktime_get_ns();
	struct cpu_irqs *irqs = irqs_here();
	struct irq_span span;

	if (!irqs || !irqs->hard.began_ns)
		return;
	span = irqs->hard;
	span.ended_ns = now_ns;
	irqs->hard.began_ns = 0;
	irqs->hard_ns += now_ns - span.began_ns;
	irq_keep(irqs, &span);
	irq_count(&span, now_ns - span.began_ns);
}

static inline void softirq_ends(void)
{
	struct cpu_irqs *irqs = irqs_here();
	__u64 hard_ns, ns;
	struct irq_span span;

	if (!irqs || !irqs->soft.began_ns)
		return;
	span = irqs->soft;
	/* an interrupt that comes now must not be taken off a time that is without it */
	hard_ns = irqs->hard_ns - irqs->hard_before_ns;
	ORDERED();
	span.ended_ns = bpf_ktime_get_ns();
	irqs->soft.began_ns = 0;
	ns = span.ended_ns - span.began_ns - hard_ns;
	irqs->soft_ns += ns;
	irq_keep(irqs, &span);
	irq_count(&span, ns);
}
