/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A softirq has ended.
 *
 * Knobs: SOFTIRQ_END_RAW or SOFTIRQ_END_TRACEPOINT.
 */

#ifdef SOFTIRQ_END_RAW
RAW_TRACEPOINT_PROBE(softirq_exit)
{
	softirq_ends();
	return 0;
}
#endif

#ifdef SOFTIRQ_END_TRACEPOINT
TRACEPOINT_PROBE(irq, softirq_exit)
{
	softirq_ends();
	return 0;
}
#endif
