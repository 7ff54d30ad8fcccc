/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What interrupts each CPU handles and handled last, for the column irq and --trace irq. gcc
 * includes this file; the BPF text gets the same bytes pasted in.
 */
#ifndef TSNAP_IRQ_H
#define TSNAP_IRQ_H

#define IRQ_PAST 64 /* interrupts of a CPU that have ended, a power of two */

/* irq_span.number: that of a softirq's vector with IRQ_SOFT, else the interrupt's own. */
#define IRQ_SOFT (1u << 31)

struct irq_span {
	__u64 began_ns; /* 0: none */
	__u64 ended_ns;
	__u64 handler; /* address of a hardware interrupt's handler; 0: not known */
	__u32 number;
	__u32 unused;
};

/* Value of ts_irqs, by CPU. One softirq at a time is handled on a CPU, and one hardware interrupt,
 * which may come between. */
struct cpu_irqs {
	struct irq_span hard, soft; /* at present; ended_ns is 0 */
	__u64 hard_ns, soft_ns;	    /* sums since the programs were attached; softirqs without */
	__u64 hard_before_ns;	    /* ... hardware interrupts: hard_ns when the softirq began */
	__u64 count;		    /* past[count % IRQ_PAST] is the next that ends */
	struct irq_span past[IRQ_PAST];
};

/* latency_key of LATENCY_IRQ, an event of no thread. what: the number, and the low 48 bits of the
 * handler's address, of which the others are set in any address of the kernel; with IRQ_CPU_SHIFT
 * the CPU. */
#define IRQ_NUMBER 0
#define IRQ_HANDLER 1
#define IRQ_HANDLER_AND_CPU 2
#define IRQ_CPU_SHIFT 16
#define IRQ_HANDLER_HIGH 0xffff

_Static_assert(sizeof(struct irq_span) == 32, "irq_span has no holes");

#endif
