/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/scan/live_work.h"
#include "sample/sample.h"
#include "sample/wait_rule.h"

#include <string.h>
#include <sys/syscall.h>

/* Tells the switch programs in which call a thread is idle. A wait for whatever comes outranks one
 * on a lock, which may as well be within a piece of work. Sleeps for some time, or for a child, are
 * work. */
static void idle_learn(struct live_context *context, const struct thread_state *record,
		       const struct sample *sample, struct idle_sleep *sleep)
{
	const unsigned int traits = wait_class_traits(sample->wait.why);

	if (!(traits & (WAIT_OF_POOL | WAIT_AS_SERVER | WAIT_ASKS_FACTS)) || traits & WAIT_WORKS ||
	    !record->sched.tid || !(record->identity.known & IDENTITY_FULL) ||
	    !record->kernel_stack)
		return;
	sleep->rank = 1 + !!(traits & (WAIT_AS_SERVER | WAIT_ASKS_FACTS));
	idle_keys_learn(&context->kernel.idle_keys, sleep);
}

/* Counts a sample of a thread that sleeps within a piece. */
static void sleep_count(struct live_context *context, const struct thread_state *record,
			const struct sample *sample, const struct idle_sleep *slept)
{
	const struct thread_identity *who = &record->identity;
	const struct wait_rule *rule = wait_rule_find(sample->wait.why);
	struct work_sleep *sleep;
	uint32_t call, class;
	bool added;

	if (!rule || !idle_keys_has_piece(&context->kernel.idle_keys, slept, &call))
		return;
	class = (uint32_t)(rule - wait_rules);
	sleep = keyed_put(&context->work_sleeps, sizeof(*sleep),
			  hash_u64(who->start_boot_ns ^ (uint64_t)who->tid << 32) ^
				  hash_u64((uint64_t) class << 32 | call),
			  &added);
	if (added) {
		sleep->key = (struct latency_key){.kind = LATENCY_WORK,
						  .tid = record->sched.tid,
						  .shown_tid = who->tid,
						  .tgid = who->tgid,
						  .uid = who->uid,
						  .what = {[WORK_CALL] = call}};
		memcpy(sleep->key.comm, who->comm, sizeof(sleep->key.comm));
		sleep->class = class;
	}
	sleep->samples++;
}

void live_work_note(struct live_context *context, const struct thread_state *record,
		    const struct sample *sample, bool compat, bool again)
{
	struct idle_sleep sleep = {.slot = record->key,
				   .begun_boot_ns = record->identity.start_boot_ns,
				   .call = (uint32_t)sample->call.nr,
				   .argument = (uint64_t)sample->call.arg[0],
				   .argument_mask = ~UINT64_C(0)};

	if (!context->kernel.idle_keys.slots || sample->now.state != STATE_SLEEP || compat ||
	    sample->call.nr == ABSENT)
		return;
	/* a condition variable of glibc has two words, side by side, that take turns */
	if (sample->call.nr == SYS_futex)
		sleep.argument_mask = ~UINT64_C(7);
	sleep_count(context, record, sample, &sleep);
	if (!again)
		idle_learn(context, record, sample, &sleep);
}

const struct work_sleep *live_work_take(struct live_context *context, size_t *count)
{
	*count = context->work_sleeps.count;
	keyed_empty(&context->work_sleeps);
	return context->work_sleeps.rows;
}
