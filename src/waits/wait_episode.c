/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/wait_episode.h"

#define EPISODES_MAX 131072
#define LOCK_TURNS 4
#define NEIGHBOURS 64 /* adjacent thread ids that have one turn at a lock */
#define BEFORE_SERVES_NS (3 * NS_PER_SECOND)

void wait_episodes_init(struct cache *episodes)
{
	*episodes = (struct cache){.entry_bytes = sizeof(struct wait_episode),
				   .entries_max = EPISODES_MAX};
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
static uint64_t turn_of(const struct wait_episode *episode)
{
	uint64_t tid = episode->entry.key;

	if (episode->facts.kind != WAIT_LOCK)
		return hash_u64(tid);
	return hash_u64((uint64_t)episode->first_arg) +
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
static struct wait_end end_of(const struct wait_episode *episode)
{
	const struct wait_facts *facts = &episode->facts;

	if (episode->pending)
		return episode->end;
	return has_end(facts)
		       ? (struct wait_end){facts->kind, facts->pid, facts->inode, facts->count}
		       : (struct wait_end){0};
}

/* Number of consecutive lookups, with the present one, that found the same other end. */
static unsigned int same_now(const struct wait_episode *episode)
{
	if (episode->pending)
		return episode->same;
	if (!end_is_same(&episode->facts, &episode->end))
		return 0;
	return episode->same < WAIT_SAME_MAX ? episode->same + 1 : WAIT_SAME_MAX;
}

int64_t wait_episode_until(const struct wait_episode *episode)
{
	int64_t until_ns = until_turn(turn_of(episode), episode->read_ns);

	if (episode->pending || episode->assumed)
		return episode->read_ns + 1;
	return episode->read_ns + ((until_ns - episode->read_ns) << same_now(episode));
}

/* True if the thread waits in the same call, on the same file, as in the episode. */
static bool waits_again(const struct wait_episode *episode, const struct sample *sample)
{
	return episode->start_ns == sample->thread.start_ns &&
	       episode->syscall_nr == sample->call.nr && episode->link == sample->file.name &&
	       sample->now.state != STATE_ON;
}

struct wait_episode *wait_episode_find(struct cache *episodes, const struct sample *sample,
				       const struct lookup_hint *hint, int64_t now_ns)
{
	bool added;
	struct wait_episode *episode =
		cache_get(episodes, (uint64_t)sample->thread.tid, now_ns, &added);
	struct cache_entry entry = episode->entry;
	struct wait_facts before = wait_facts_absent;
	int64_t whole_ns = 0, in_call_ns = 0;
	struct wait_end end = {0};
	unsigned int same = 0;
	bool judged = false, again = !added && waits_again(episode, sample), in_call = false;

	if (again) {
		if (episode->sequence == hint->sequence && now_ns < wait_episode_until(episode))
			return episode;
		same = same_now(episode);
		end = end_of(episode);
		in_call_ns = episode->in_call_ns;
	}
	if (again && episode->sequence == hint->sequence) {
		in_call = episode->in_call;
		if (episode->known & (NEED_WAITS | NEED_WAIT_CLASS) &&
		    (!episode->pending || !episode->whole_ns)) {
			before = episode->facts;
			judged = !episode->pending || wait_facts_suffice(&before);
			if (!episode->pending && episode->known & NEED_WAITS)
				whole_ns = wait_episode_until(episode);
		} else {
			before = episode->facts_before;
			judged = episode->judged_before;
			whole_ns = episode->whole_ns;
		}
	}
	*episode = (struct wait_episode){
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
			   sample->now.state == STATE_SLEEP && episode->sequence != hint->sequence,
		.in_call_ns = in_call_ns,
		.facts = wait_facts_absent,
		.facts_before = before,
		.judged_before = judged,
		.whole_ns = whole_ns,
		.end = end,
		.same = same,
	};
	return episode;
}

const struct wait_facts *wait_episode_facts(const struct wait_episode *episode, bool *whole)
{
	*whole = !episode->pending;
	if (*whole || !episode->whole_ns || episode->read_ns - episode->whole_ns > BEFORE_SERVES_NS)
		return &episode->facts;
	*whole = true;
	return &episode->facts_before;
}
