/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds out a sample's wait class (the column why), by the rules of sample/wait_rule_table.c. */
#include "waits/waits_state.h"
#include "base/names.h"

/* Finding classes takes 1/CLASS_SHARE of the time between scans, and so does asking for locks of
 * runtimes: a parser is asked for each thread, and others must not wait for that. */
#define CLASS_SHARE 64
#define CLASS_LEAST_NS 200000
#define CLASS_MOST_NS 2000000

void waits_set_daemon_ports(struct waits *waits, int64_t ports)
{
	waits->classes.daemon_ports = ports;
}

void waits_give_time(struct waits *waits, int64_t now_ns, int64_t time_ns)
{
	waits->classes.scan_ns = now_ns;
	waits->classes.left_ns = waits->classes.locks_left_ns = time_ns;
}

bool waits_class_changes(const struct waits *waits, int64_t tid)
{
	return waits->classes.changes_tid == tid;
}

const struct wait_rule *wait_rule_known(struct wait_classes *classes, const char *syscall_name)
{
	bool added;
	uint64_t *known = index_put(&classes->rules, (uintptr_t)syscall_name, &added);

	if (added)
		*known = (uintptr_t)wait_rule_of_call(syscall_name);
	return (const struct wait_rule *)(uintptr_t)*known; /* NOLINT(performance-no-int-to-ptr) */
}

static void class_take(struct sample *sample, const struct wait_rule *rule)
{
	sample->wait.why = name_transient_string(rule->name);
}

static void facts_take(const struct waits *waits, struct sample *sample,
		       const struct wait_facts *facts, int64_t now_ns)
{
	class_take(sample, wait_rule_of_facts(facts, waits->classes.daemon_ports));
	if (facts->request_ns != ABSENT && sample->now.state_us != ABSENT)
		sample->wait.before_us =
			(now_ns - facts->request_ns) / NS_PER_US - sample->now.state_us;
}

bool waits_class_by_call(struct waits *waits, struct sample *sample)
{
	const struct wait_rule *rule = wait_rule_known(&waits->classes, sample->call.name);

	if (!rule || rule->kind == WAIT_SET)
		return false;
	waits->classes.changes_tid = 0;
	class_take(sample, rule);
	return true;
}

/* True if the sample's call waits for the same as the call of the episode did. */
static bool episode_serves(const struct wait_episode *episode, const struct sample *sample)
{
	switch (episode->facts.kind) {
	case WAIT_LOCK:
		return true;
	case WAIT_SET:
		return !episode->facts.changes && !episode->facts.has_request &&
		       episode->second_arg == sample->call.arg[1];
	case WAIT_IO:
		return false;
	default:
		return episode->link && !episode->facts.changes;
	}
}

bool waits_class_as_before(struct waits *waits, struct sample *sample, int64_t now_ns)
{
	const struct wait_episode *episode =
		cache_find(&waits->episodes, (uint64_t)sample->thread.tid);

	/* whether the client waits has to be found anew each time */
	if (episode && episode->facts.kind == WAIT_LOCK &&
	    served_has(&waits->served, sample->thread.tid))
		return false;
	if (!episode || episode->start_ns != sample->thread.start_ns ||
	    episode->syscall_nr != sample->call.nr || episode->first_arg != sample->call.arg[0] ||
	    now_ns - episode->read_ns >= WAIT_STILL_NS || !(episode->known & NEED_WAIT_CLASS) ||
	    episode->pending || !episode_serves(episode, sample))
		return false;
	/* a set may have other descriptors by now: it is read again when its second is over */
	waits->classes.changes_tid = episode->facts.kind == WAIT_SET ? sample->thread.tid : 0;
	facts_take(waits, sample, &episode->facts, now_ns);
	return true;
}

bool waits_class_of_peer(struct waits *waits, struct sample *sample, const struct lookup_hint *hint,
			 int64_t now_ns)
{
	const struct wait_facts *facts =
		wait_call_names_path(sample, hint)
			? NULL
			: wait_peers_find(&waits->classes.peers, sample, hint, now_ns);

	if (!facts || (facts->kind == WAIT_LOCK && served_has(&waits->served, sample->thread.tid)))
		return false;
	waits->classes.changes_tid = 0;
	facts_take(waits, sample, facts, now_ns);
	return true;
}

/* True if this scan has time to find one more class. */
static bool class_has_time(struct waits *waits, int64_t now_ns)
{
	int64_t share_ns = (now_ns - waits->classes.scan_ns) / CLASS_SHARE;

	if (waits->classes.scan_ns != now_ns) {
		waits->classes.scan_ns = now_ns;
		waits->classes.left_ns = share_ns < CLASS_LEAST_NS  ? CLASS_LEAST_NS
					 : share_ns > CLASS_MOST_NS ? CLASS_MOST_NS
								    : share_ns;
		waits->classes.locks_left_ns = waits->classes.left_ns;
	}
	return waits->classes.left_ns > 0;
}

/* True if the thread waits for a lock that may be a runtime's, and this scan has no time to ask for
 * one more of these. */
static bool lock_must_wait(const struct waits *waits, const struct wait_episode *episode)
{
	return episode->facts_before.kind == WAIT_LOCK && episode->facts_before.open &&
	       waits->classes.locks_left_ns <= 0;
}

void waits_class(struct waits *waits, struct sample *sample, const struct lookup_hint *hint,
		 int64_t now_ns)
{
	struct wait_episode *episode = wait_episode_find(&waits->episodes, sample, hint, now_ns);
	const struct wait_facts *facts;
	int64_t start_ns;
	bool whole;

	waits->classes.changes_tid = sample->thread.tid;
	if (!(episode->known & (NEED_WAITS | NEED_WAIT_CLASS))) {
		if (!class_has_time(waits, now_ns) || lock_must_wait(waits, episode)) {
			episode->pending = true;
			if (episode->judged_before)
				class_take(sample, wait_rule_of_facts(&episode->facts_before,
								      waits->classes.daemon_ports));
			return;
		}
		start_ns = clock_monotonic_ns();
		wait_episode_fill(waits, episode, sample, hint, WAIT_NUMBERS, now_ns);
		episode->known |= NEED_WAIT_CLASS;
		waits->classes.left_ns -= clock_monotonic_ns() - start_ns;
	}
	facts = wait_episode_facts(episode, &whole);
	if (!whole && !wait_facts_suffice(facts))
		return;
	facts_take(waits, sample, facts, now_ns);
	if (facts->kind == WAIT_IO || facts->changes)
		return;
	waits->classes.changes_tid = 0;
	if (!episode->of_thread && !wait_call_names_path(sample, hint))
		wait_peers_put(&waits->classes.peers, sample, hint, now_ns, facts);
}
