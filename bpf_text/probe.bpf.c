/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What programs of the user's own probes (--probe, --context) read of a thread and its program.
 * These programs, probe_0_entry and so on, follow the fragments probe*: src/kernel/own_probe.c
 * writes them.
 *
 * Knobs: TRACE_WANTED (src/kernel/program_text.c); READ_USER_STR: texts of programs can be read.
 */

#define PROBE_ARGUMENT(N) PROBE_ARGUMENT_##N
#if defined(__aarch64__) || defined(__TARGET_ARCH_arm64)
#define PROBE_ARGUMENT_1 (ctx->regs[0])
#define PROBE_ARGUMENT_2 (ctx->regs[1])
#define PROBE_ARGUMENT_3 (ctx->regs[2])
#define PROBE_ARGUMENT_4 (ctx->regs[3])
#define PROBE_ARGUMENT_5 (ctx->regs[4])
#define PROBE_ARGUMENT_6 (ctx->regs[5])
#define PROBE_RESULT (ctx->regs[0])
#define PROBE_STACK_RETURNED (ctx->sp)
#else
#define PROBE_ARGUMENT_1 (ctx->di)
#define PROBE_ARGUMENT_2 (ctx->si)
#define PROBE_ARGUMENT_3 (ctx->dx)
#define PROBE_ARGUMENT_4 (ctx->cx)
#define PROBE_ARGUMENT_5 (ctx->r8)
#define PROBE_ARGUMENT_6 (ctx->r9)
#define PROBE_RESULT (ctx->ax)
#define PROBE_STACK_RETURNED (ctx->sp - 8) /* a return takes its address off the stack */
#endif
#define PROBE_STACK (ctx->sp)
/* Registers by DWARF's numbers (src/base/usdt_operand.h), and the instruction's address. */
#if defined(__aarch64__) || defined(__TARGET_ARCH_arm64)
#define PROBE_REGISTER(N) \
	((N) == 31 ? ctx->sp : (N) == 32 ? ctx->pc : ctx->regs[(N) < 31 ? (N) : 0])
#define PROBE_PLACE (ctx->pc)
#else
#define PROBE_REGISTER(N) PROBE_REGISTER_##N
#define PROBE_REGISTER_0 (ctx->ax)
#define PROBE_REGISTER_1 (ctx->dx)
#define PROBE_REGISTER_2 (ctx->cx)
#define PROBE_REGISTER_3 (ctx->bx)
#define PROBE_REGISTER_4 (ctx->si)
#define PROBE_REGISTER_5 (ctx->di)
#define PROBE_REGISTER_6 (ctx->bp)
#define PROBE_REGISTER_7 (ctx->sp)
#define PROBE_REGISTER_8 (ctx->r8)
#define PROBE_REGISTER_9 (ctx->r9)
#define PROBE_REGISTER_10 (ctx->r10)
#define PROBE_REGISTER_11 (ctx->r11)
#define PROBE_REGISTER_12 (ctx->r12)
#define PROBE_REGISTER_13 (ctx->r13)
#define PROBE_REGISTER_14 (ctx->r14)
#define PROBE_REGISTER_15 (ctx->r15)
#define PROBE_REGISTER_16 (ctx->ip)
#define PROBE_PLACE (ctx->ip)
#endif
#define PROBE_KEPT(N) (call.arguments[(N)-1])
#define PROBE_RAW_ARGUMENT(N) (ctx->args[(N)-1])

/* Gives a variable a value from the program's memory; ends the BPF program, with a count, where
 * that is not there. */
#define PROBE_READ(VALUE, TYPE, AT)                                               \
	({                                                                        \
		TYPE word = 0;                                                    \
                                                                                  \
		if (bpf_probe_read_user(&word, sizeof(word), (void *)(AT)) < 0) { \
			probe_unread_count();                                     \
			return 0;                                                 \
		}                                                                 \
		VALUE = (__u64)(__s64)word;                                       \
	})

static inline void probe_unread_count(void)
{
	__u32 zero = 0;
	struct probe_counters *counters = ts_counters.lookup(&zero);

	if (counters)
		counters->probe_unread++;
}

/* Returns the record of the present thread if it is wanted; else NULL. */
static inline struct thread_state *probe_thread(void)
{
	struct thread_state *thread = thread_find(bpf_get_current_pid_tgid());

	if (!thread)
		return 0;
	if (!(thread->identity.known & IDENTITY_FULL))
		identity_read(thread, (struct task_struct *)bpf_get_current_task(),
			      thread->sched.tid);
#ifdef TRACE_WANTED
	if (!TRACE_WANTED(thread->identity))
		return 0;
#endif
	return thread;
}

#ifdef READ_USER_STR
BPF_TABLE("lru_hash", __u64, struct probe_text, ts_probe_texts, PROBE_TEXTS_MAX);

/* Returns the key of the text at an address of the program or, if that is wanted, of the kernel,
 * whose addresses are those with the highest bit; 0: it could not be read, or another text has its
 * hash. */
static inline __u64 probe_text(__u64 address, int kernel)
{
	struct probe_text text = {}, *known;
	__u64 key = 0xcbf29ce484222325ull, differs = 0;

	if (kernel && address >> 63) {
		if (bpf_probe_read_kernel_str(&text, sizeof(text), (void *)address) <= 0)
			return 0;
	} else if (bpf_probe_read_user_str(&text, sizeof(text), (void *)address) <= 0) {
		return 0;
	}
#pragma unroll
	for (int i = 0; i < PROBE_TEXT_WORDS; i++) {
		key = (key ^ text.words[i]) * 0x9e3779b97f4a7c15ull;
		key ^= key >> 29;
	}
	key |= !key;
	known = ts_probe_texts.lookup(&key);
	if (!known) {
		ts_probe_texts.insert(&key, &text);
		known = ts_probe_texts.lookup(&key);
	}
	if (!known)
		return 0;
#pragma unroll
	for (int i = 0; i < PROBE_TEXT_WORDS; i++)
		differs |= known->words[i] ^ text.words[i];
	return differs ? 0 : key;
}
#endif
