/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A softirq begins.
 *
 * Knobs: SOFTIRQ_BEGIN_RAW or SOFTIRQ_BEGIN_TRACEPOINT.
 */

#ifdef SOFTIRQ_BEGIN_RAW
RAW_TRACEPOINT_PROBE(softirq_entry)
{
	softirq_begins((__u32)ctx->args[0]);
	return 0;
}
#endif

#ifdef SOFTIRQ_BEGIN_TRACEPOINT
TRACEPOINT_PROBE(irq, softirq_entry)
{
	softirq_begins(args->vec);
	return 0;
}
#endif
