/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread, or an interrupt that came over it, sends a signal: signal_note() of incident.bpf.c.
 *
 * Knobs: SIGNAL_SENT_RAW or SIGNAL_SENT_TRACEPOINT.
 */

#ifndef INCIDENTS_SEEN
#define signal_note(tgid, signal, code, result)
#endif

#ifdef SIGNAL_SENT_RAW
#define SIGNAL_OF_USER 0      /* SI_USER: from kill(2), or by SEND_SIG_NOINFO in its name */
#define SIGNAL_OF_KERNEL 0x80 /* SI_KERNEL */
#define SIGNAL_INFO_MAX 2     /* SEND_SIG_x in place of an address; 2 until 4.19 */

RAW_TRACEPOINT_PROBE(signal_generate)
{
	__u64 info = ctx->args[1];
	__s32 code = info ? SIGNAL_OF_KERNEL : SIGNAL_OF_USER;

	/* struct siginfo: si_signo, si_errno, si_code */
	if (info > SIGNAL_INFO_MAX)
		bpf_probe_read_kernel(&code, sizeof(code), (void *)(info + 8));
	signal_note(task_tgid((struct task_struct *)ctx->args[2]), ctx->args[0], code,
		    ctx->args[4]);
	return 0;
}
#endif

#ifdef SIGNAL_SENT_TRACEPOINT
TRACEPOINT_PROBE(signal, signal_generate)
{
	struct thread_state *target = thread_find(args->pid);
	__u32 tgid = target && target->identity.tgid ? target->identity.tgid : args->pid;

	signal_note(tgid, args->sig, args->code, args->result);
	return 0;
}
#endif
