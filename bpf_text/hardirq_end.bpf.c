/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A handler of a hardware interrupt has ended.
 *
 * Knobs: HARDIRQ_END_RAW or HARDIRQ_END_TRACEPOINT.
 */

#ifdef HARDIRQ_END_RAW
RAW_TRACEPOINT_PROBE(irq_handler_exit)
{
	hardirq_ends();
	return 0;
}
#endif

#ifdef HARDIRQ_END_TRACEPOINT
TRACEPOINT_PROBE(irq, irq_handler_exit)
{
	hardirq_ends();
	return 0;
}
#endif
