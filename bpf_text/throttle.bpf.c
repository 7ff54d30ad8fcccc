/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A control group is held back on a CPU, as it or one around it has used up its quota.
 *
 * Knobs: THROTTLE_KPROBE.
 */

int kprobe__tg_throttle_down(struct pt_regs *ctx)
{
#ifdef THROTTLES_SEEN
	throttle_begins((struct task_group *)PT_REGS_PARM1(ctx), (struct rq *)PT_REGS_PARM2(ctx));
#endif
	return 0;
}
