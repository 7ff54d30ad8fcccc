/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A control group, or one around it, may run again on a CPU.
 *
 * Knobs: UNTHROTTLE_KPROBE.
 */

int kprobe__tg_unthrottle_up(struct pt_regs *ctx)
{
#ifdef THROTTLES_SEEN
	throttle_ends((struct task_group *)PT_REGS_PARM1(ctx), (struct rq *)PT_REGS_PARM2(ctx));
#endif
	return 0;
}
