/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fills a sample's columns of files and waits. */
#include "waits/waits_state.h"
#include "base/names.h"
#include "proc/file_type.h"
#include "proc/proc.h"
#include "proc/syscalls.h"
#include "waits/elsewhere.h"
#include "waits/memory_wait.h"

#include <string.h>

#define WCHAN_BYTES 128 /* KSYM_NAME_LEN of older kernels; longer names are cut */

static wait_describer *describer_of(struct waits *waits, const char *syscall_name)
{
	bool added;
	uint64_t *describer = index_put(&waits->functions, (uintptr_t)syscall_name, &added);

	if (added)
		*describer = (uintptr_t)wait_describer_find(syscall_name);
	return (wait_describer *)(uintptr_t)*describer; /* NOLINT(performance-no-int-to-ptr) */
}

static const char *text_name(struct text *text)
{
	return text->length ? name_transient(text->bytes, text->length) : NULL;
}

bool wait_call_names_path(const struct sample *sample, const struct lookup_hint *hint)
{
	return syscall_path(sample->call.nr, hint->compat).arg >= 0;
}

void wait_episode_fill(struct waits *waits, struct wait_episode *episode,
		       const struct sample *sample, const struct lookup_hint *hint,
		       enum wait_depth depth, int64_t now_ns)
{
	struct wait wait = {
		.waits = waits,
		.pid = sample->thread.pid,
		.tid = sample->thread.tid,
		.now_ns = now_ns,
		.start_ns = sample->thread.start_ns,
		.compat = hint->compat,
		.episode = hint->sequence,
		.arg = sample->call.arg,
		.fd = sample->file.fd == ABSENT ? -1 : (int)sample->file.fd,
		.link = sample->file.name,
		.anew = depth == WAIT_NUMBERS_ANEW,
		.numbers_only = depth != WAIT_WHOLE,
		.text = &waits->text,
		.facts = wait_facts_absent,
	};
	wait_describer *describe =
		sample->call.name ? describer_of(waits, sample->call.name) : NULL;
	int to = syscall_fd_to(sample->call.nr, hint->compat, sample->call.arg);

	if (wait_call_names_path(sample, hint))
		wait.fd = -1;
	text_clear(&waits->text);
	if (!episode->in_call && !episode->assumed &&
	    elsewhere_describe(&wait, (enum thread_state_kind)sample->now.state)) {
		wait.of_thread = true;
		episode->in_call_ns = 0;
	} else {
		if (!episode->in_call && !episode->assumed)
			episode->in_call_ns = now_ns;
		episode->in_call = !episode->assumed;
		(describe ? describe : file_describe)(&wait);
		/* which of two descriptors it is may differ between threads in the same call */
		wait.of_thread |= to >= 0;
		wait.facts.writes = to >= 0 && wait.fd == to;
		served_note(&waits->served, &wait, waits->classes.daemon_ports);
	}
	episode->waits_on = wait.numbers_only ? NULL : text_name(&waits->text);
	episode->facts = wait.facts;
	if (wait.connection) {
		episode->connection = wait.connection;
		episode->remote = wait.remote;
	}
	episode->pending |= wait.pending;
	episode->of_thread = wait.of_thread;
}

static void episode_read_file(struct waits *waits, struct wait_episode *episode,
			      const struct sample *sample, const struct lookup_hint *hint,
			      uint64_t missing, int64_t now_ns)
{
	const char *link = sample->file.name;
	const struct socket_facts *socket;

	if (!link || sample->file.fd == ABSENT || wait_call_names_path(sample, hint))
		return;
	if (missing & NEED_FILETYPE) {
		episode->filetype = file_word(link);
		if (!episode->filetype)
			episode->filetype =
				file_type_word(waits->root, sample->thread.pid, sample->thread.tid,
					       (int)sample->file.fd);
	}
	if (missing & NEED_CONNECTION && !strncmp(link, SOCKET_LINK, strlen(SOCKET_LINK))) {
		socket = socket_find(&waits->sockets, sample->thread.pid, sample->thread.tid,
				     (int)sample->file.fd, link, PEER_UNIX, now_ns,
				     &episode->pending);
		episode->connection = socket->connection;
		episode->remote = socket->remote;
	}
}

/* Reads wchan; NULL for "0": none, or not visible to tsnap. */
static const char *wchan_read(const struct waits *waits, const struct sample *sample)
{
	char wchan[WCHAN_BYTES];
	ssize_t length = proc_file_read(waits->root, sample->thread.pid, sample->thread.tid,
					"wchan", wchan, sizeof(wchan));

	return length > 0 && strcmp(wchan, "0") != 0 ? name_transient(wchan, length) : NULL;
}

static bool is_blocked(const struct sample *sample)
{
	return sample->now.state != STATE_ON && sample->now.state != STATE_RQ &&
	       sample->now.state != STATE_ZOMBIE;
}

static bool waits_for_set(struct waits *waits, const struct sample *sample)
{
	const struct wait_rule *rule =
		sample->call.name ? wait_rule_known(&waits->classes, sample->call.name) : NULL;

	return rule && rule->kind == WAIT_SET;
}

/* True if the thread may wait for memory, in a system call or outside of any: in D; in RQ while it
 * reclaims; in S in a page fault, whose file is of FUSE. facts: of the call, if there is one. */
static bool may_want_memory(const struct sample *sample, const struct wait_facts *facts)
{
	if (sample->thread.kthread == 1)
		return false;
	return sample->now.state == STATE_DISK || sample->now.state == STATE_RQ ||
	       (sample->now.state == STATE_SLEEP &&
		(sample->call.nr == ABSENT || facts->kind == WAIT_FILE));
}

/* Replaces what the call waits for by a wait for memory, if it is one. */
static void memory_describe(struct waits *waits, struct wait_episode *episode,
			    const struct sample *sample)
{
	if (!waits->memory_group_looked_for)
		cgroup_mount_find(&waits->memory_group, waits->root, "memory");
	waits->memory_group_looked_for = true;
	text_clear(&waits->text);
	memory_wait_describe(waits->root, &waits->memory_group, sample->thread.pid,
			     sample->thread.tid, &waits->text);
	/* a runnable thread that was only interrupted in a page fault waits for a CPU */
	if (sample->now.state == STATE_RQ && strncmp(text_string(&waits->text), "reclaim", 7))
		return;
	if (!waits->text.length)
		return;
	episode->waits_on = text_name(&waits->text);
	episode->facts = wait_facts_absent;
	episode->facts.kind = WAIT_FILE;
	episode->facts.stored = true;
}

void waits_fill(struct waits *waits, struct sample *sample, const struct lookup_hint *hint,
		uint64_t needs, int64_t now_ns)
{
	bool of_program = sample->thread.kthread != 1,
	     in_call = sample->call.nr != ABSENT && of_program;
	uint64_t wanted = needs & (in_call ? NEEDS_OF_WAIT & ~NEED_WCHAN : 0), missing;
	struct wait_episode *episode;
	bool reported;

	wanted &= ~NEED_WAITS;
	if (of_program && (is_blocked(sample) || sample->now.state == STATE_RQ))
		wanted |= needs & NEED_WAITS;
	if (is_blocked(sample))
		wanted |= needs & NEED_WCHAN;
	if (!wanted)
		return;
	episode = wait_episode_find(&waits->episodes, sample, hint, now_ns);
	missing = wanted & ~episode->known;
	reported = episode->known & (NEED_WAITS | NEED_WAIT_CLASS);
	episode->known |= missing;
	if (missing & (NEED_CONNECTION | NEED_FILETYPE))
		episode_read_file(waits, episode, sample, hint, missing, now_ns);
	if (missing & NEED_WAITS && is_blocked(sample)) {
		wait_episode_fill(waits, episode, sample, hint, WAIT_WHOLE, now_ns);
		if (sample->now.state == STATE_SLEEP)
			episode->known |= NEED_WAIT_CLASS;
	} else if (missing & NEED_WAITS)
		episode->facts = wait_facts_absent;
	else if (missing & NEED_CONNECTION && !reported && is_blocked(sample) &&
		 waits_for_set(waits, sample))
		wait_episode_fill(waits, episode, sample, hint, WAIT_NUMBERS, now_ns);
	if (missing & NEED_WAITS && may_want_memory(sample, &episode->facts))
		memory_describe(waits, episode, sample);
	if (missing & NEED_WCHAN)
		episode->wchan = wchan_read(waits, sample);

	sample->file.connection = episode->connection;
	sample->file.remote = episode->remote;
	sample->file.type = episode->filetype;
	sample->wait.on = episode->waits_on;
	sample->wait.pid = episode->facts.pid;
	sample->wait.inflight = episode->facts.inflight;
	sample->wait.wchan = episode->wchan;
	sample->wait.open = episode->pending;
}

bool waits_facts(struct waits *waits, const struct sample *sample, const struct lookup_hint *hint,
		 bool anew, int64_t now_ns, struct wait_facts *facts)
{
	const struct wait_episode *episode =
		cache_find(&waits->episodes, (uint64_t)sample->thread.tid);
	struct wait_episode fresh = {0};
	bool whole;

	if (episode &&
	    (episode->start_ns != sample->thread.start_ns || episode->sequence != hint->sequence))
		episode = NULL;
	if (anew) {
		fresh.in_call = episode && (episode->in_call || episode->assumed);
		wait_episode_fill(waits, &fresh, sample, hint, WAIT_NUMBERS_ANEW, now_ns);
		episode = &fresh;
	}
	*facts = wait_facts_absent;
	if (!episode || (!anew && !(episode->known & NEED_WAITS)))
		return false;
	*facts = *wait_episode_facts(episode, &whole);
	return whole;
}

/* True if the facts of a wait give it the class that the sample has. */
static bool class_is_same(const struct waits *waits, const struct sample *sample,
			  const struct wait_facts *facts)
{
	const struct wait_rule *rule = wait_rule_of_facts(facts, waits->classes.daemon_ports);

	return !sample->wait.why || !strcmp(sample->wait.why, rule->name);
}

bool waits_renew(struct waits *waits, struct sample *sample, const struct lookup_hint *hint,
		 uint64_t needs, int64_t now_ns)
{
	const struct wait_episode *episode;

	if (!(needs & NEED_WAITS))
		return false;
	waits_fill(waits, sample, hint, needs, now_ns);
	episode = cache_find(&waits->episodes, (uint64_t)sample->thread.tid);
	return episode && !sample->wait.open && !episode->facts.changes &&
	       class_is_same(waits, sample, &episode->facts);
}

int64_t waits_until(struct waits *waits, int64_t tid, uint64_t sequence, int64_t now_ns)
{
	const struct wait_episode *episode = cache_find(&waits->episodes, (uint64_t)tid);

	return episode && episode->sequence == sequence ? wait_episode_until(episode)
							: wait_still_until(tid, now_ns);
}
