/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A handler of a hardware interrupt begins. Its address is the first member of struct irqaction (in
 * include/linux/interrupt.h, since 2.6).
 *
 * Knobs: HARDIRQ_BEGIN_RAW or HARDIRQ_BEGIN_TRACEPOINT.
 */

#ifdef HARDIRQ_BEGIN_RAW
RAW_TRACEPOINT_PROBE(irq_handler_entry)
{
	__u64 handler = 0;

	bpf_probe_read_kernel(&handler, sizeof(handler), (void *)ctx->args[1]);
	hardirq_begins((__u32)ctx->args[0], handler);
	return 0;
}
#endif

#ifdef HARDIRQ_BEGIN_TRACEPOINT
TRACEPOINT_PROBE(irq, irq_handler_entry)
{
	hardirq_begins((__u32)args->irq, 0);
	return 0;
}
#endif
