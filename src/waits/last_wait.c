/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/last_wait.h"

#define LAST_WAITS_MAX 131072
#define LOCK_TURNS 4
#define NEIGHBOURS 64 /* adjacent thread ids that have one turn at a lock */
#define BEFORE_SERVES_NS (3 * NS_PER_SECOND)

void last_waits_init(struct cache *last_waits)
{
	*last_waits = (struct cache){.entry_bytes = sizeof(struct last_wait),
				     .entries_max = LAST_WAITS_MAX};
}

bool wait_facts_suffice(const struct wait_facts *facts)
{
	return facts->kind != WAIT_UNKNOWN && !facts->open &&
	       (facts->kind != WAIT_SOCKET || facts->connected || facts->listens);
}

/* The next time of the turn, which comes once in each second. */
static int64_t until_turn(uint64_t turn, int64_t read_ns)
{
	int64_t until_ns = read_ns + WAIT_STILL_NS, turn_ns = (int64_t)(turn % WAIT_STILL_NS);

	return until_ns + (turn_ns + WAIT_STILL_NS - until_ns % WAIT_STILL_NS) % WAIT_STILL_NS;
}

int64_t wait_still_until(int64_t tid, int64_t read_ns)
{
	return until_turn(hash_u64((uint64_t)tid), read_ns);
}

/* The thread's turn. Threads that wait for one lock share few turns, as its word is read once for
 * all threads with the same turn: neighbours share one. */
static uint64_t turn_of(const struct last_wait *last)
{
	uint64_t tid = last->entry.key;

	if (last->facts.kind != WAIT_LOCK)
		return hash_u64(tid);
	return hash_u64((uint64_t)last->first_arg) +
	       tid / NEIGHBOURS % LOCK_TURNS * WAIT_STILL_NS / LOCK_TURNS;
}

static bool has_end(const struct wait_facts *facts)
{
	return (facts->kind == WAIT_SOCKET || facts->kind == WAIT_PIPE) && facts->pid != ABSENT;
}

static bool end_is_same(const struct wait_facts *facts, const struct wait_end *before)
{
	return has_end(facts) && facts->kind == before->kind && facts->pid == before->pid &&
	       facts->inode == before->inode && facts->count == before->count;
}

/* The other end as complete lookups have found it; zeroed: it is not known. */
static struct wait_end end_of(const struct last_wait *last)
{
	const struct wait_facts *facts = &last->facts;

	if (last->pending)
		return last->end;
	return has_end(facts)
		       ? (struct wait_end){facts->kind, facts->pid, facts->inode, facts->count}
		       : (struct wait_end){0};
}

/* Number of consecutive lookups, with the present one, that found the same other end. */
static unsigned int same_now(const struct last_wait *last)
{
	if (last->pending)
		return last->same;
	if (!end_is_same(&last->facts, &last->end))
		return 0;
	return last->same < WAIT_SAME_MAX ? last->same + 1 : WAIT_SAME_MAX;
}

int64_t last_wait_until(const struct last_wait *last)
{
	int64_t until_ns = until_turn(turn_of(last), last->read_ns);

	if (last->pending || last->assumed)
		return last->read_ns + 1;
	return last->read_ns + ((until_ns - last->read_ns) << same_now(last));
}

/* True if the thread waits in the same call, on the same file, as in the last wait. */
static bool waits_again(const struct last_wait *last, const struct sample *sample)
{
	return last->start_ns == sample->thread.start_ns && last->syscall_nr == sample->call.nr &&
	       last->link == sample->file.name && sample->now.state != STATE_ON;
}

struct last_wait *last_wait_find(struct cache *last_waits, const struct sample *sample,
				 const struct lookup_hint *hint, int64_t now_ns)
{
	bool added;
	struct last_wait *last =
		cache_get(last_waits, (uint64_t)sample->thread.tid, now_ns, &added);
	struct cache_entry entry = last->entry;
	struct wait_facts before = wait_facts_absent;
	int64_t whole_ns = 0, in_call_ns = 0;
	struct wait_end end = {0};
	unsigned int same = 0;
	bool judged = false, again = !added && waits_again(last, sample), in_call = false;

	if (again) {
		if (last->sequence == hint->sequence && now_ns < last_wait_until(last))
			return last;
		same = same_now(last);
		end = end_of(last);
		in_call_ns = last->in_call_ns;
	}
	if (again && last->sequence == hint->sequence) {
		in_call = last->in_call;
		if (last->known & (NEED_WAITS | NEED_WAIT_CLASS) &&
		    (!last->pending || !last->whole_ns)) {
			before = last->facts;
			judged = !last->pending || wait_facts_suffice(&before);
			if (!last->pending && last->known & NEED_WAITS)
				whole_ns = last_wait_until(last);
		} else {
			before = last->facts_before;
			judged = last->judged_before;
			whole_ns = last->whole_ns;
		}
	}
	*last = (struct last_wait){
		.entry = entry,
		.start_ns = sample->thread.start_ns,
		.read_ns = now_ns,
		.sequence = hint->sequence,
		.syscall_nr = sample->call.nr,
		.first_arg = sample->call.arg[0],
		.second_arg = sample->call.arg[1],
		.link = sample->file.name,
		.in_call = in_call,
		.assumed = in_call_ns && now_ns - in_call_ns < WAIT_STILL_NS &&
			   sample->now.state == STATE_SLEEP && last->sequence != hint->sequence,
		.in_call_ns = in_call_ns,
		.facts = wait_facts_absent,
		.facts_before = before,
		.judged_before = judged,
		.whole_ns = whole_ns,
		.end = end,
		.same = same,
	};
	return last;
}

const struct wait_facts *last_wait_facts(const struct last_wait *last, bool *whole)
{
	*whole = !last->pending;
	if (*whole || !last->whole_ns || last->read_ns - last->whole_ns > BEFORE_SERVES_NS)
		return &last->facts;
	*whole = true;
	return &last->facts_before;
}
