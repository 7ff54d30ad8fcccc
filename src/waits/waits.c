/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/waits.h"
#include "base/memory.h"
#include "base/names.h"
#include "proc/file_type.h"
#include "base/host_file.h"
#include "proc/processes.h"
#include "proc/proc.h"
#include "proc/syscalls.h"
#include "waits/wait_episode.h"
#include "waits/socket.h"
#include "waits/wait_object.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WCHAN_BYTES 128 /* KSYM_NAME_LEN of older kernels; longer names are cut */
#define STACK_BYTES 8192

struct waits *waits_new(const char *proc_root, struct cache *comms)
{
	struct waits *waits = memory_get(sizeof(*waits));

	waits->root = proc_root;
	waits->own_ids = !strcmp(proc_root, "/proc") && shown_pid() == getpid();
	waits->comms = comms;
	waits->classes.daemon_ports = DAEMON_PORTS_DEFAULT;
	wait_episodes_init(&waits->episodes);
	holders_init(&waits->holders, waits->root);
	return waits;
}

void waits_free(struct waits *waits)
{
	if (!waits)
		return;
	cache_done(&waits->episodes);
	wait_objects_done();
	holders_done(&waits->holders);
	cgroup_mount_done(&waits->memory_group);
	user_memory_sweep(&waits->memory, INT64_MAX);
	lock_list_done(&waits->file_locks);
	index_clear(&waits->classes.rules);
	text_done(&waits->text);
	free(waits);
}

void waits_sweep(struct waits *waits, int64_t now_ns, int64_t idle_ns)
{
	/* facts of a wait that goes on are requested again only when they are stale */
	idle_ns += WAIT_LONGEST_NS;
	cache_sweep(&waits->episodes, now_ns, idle_ns);
	wait_objects_sweep(now_ns, idle_ns);
	holders_sweep(&waits->holders, now_ns, idle_ns);
	user_memory_sweep(&waits->memory, now_ns);
}

void waits_set_runtime_locks(struct waits *waits, runtime_lock_finder *find, void *finder)
{
	waits->runtime_locks = find;
	waits->runtime_lock_finder = finder;
}

static const char *text_name(struct text *text)
{
	return text->length ? name_transient(text->bytes, text->length) : NULL;
}

/* True if the call was given a path, which is not open yet: a descriptor beside it is the
 * directory's. */
static bool call_names_path(const struct sample *sample, const struct lookup_hint *hint)
{
	return syscall_path(sample->call.nr, hint->compat).arg >= 0;
}

enum wait_depth {
	WAIT_NUMBERS_ANEW, /* like WAIT_NUMBERS, but values that this scan has read before are read
			      again */
	WAIT_NUMBERS,	   /* no text, no search for the process at the other end */
	WAIT_WHOLE,
};

static struct wait wait_of(struct waits *waits, const struct sample *sample,
			   const struct lookup_hint *hint, enum wait_depth depth, int64_t now_ns)
{
	bool has_fd = sample->file.fd != ABSENT && !call_names_path(sample, hint);

	text_clear(&waits->text);
	return (struct wait){
		.waits = waits,
		.pid = sample->thread.pid,
		.tid = sample->thread.tid,
		.now_ns = now_ns,
		.start_ns = sample->thread.start_ns,
		.compat = hint->compat,
		.call = sample->call.name,
		.episode = hint->sequence,
		.arg = sample->call.arg,
		.fd = has_fd ? (int)sample->file.fd : -1,
		.link = sample->file.name,
		.anew = depth == WAIT_NUMBERS_ANEW,
		.numbers_only = depth != WAIT_WHOLE,
		.text = &waits->text,
		.facts = wait_facts_absent,
	};
}

/* The object that a thread waits for whatever its registers show; NULL: none is known. */
static const struct wait_object *elsewhere(const struct waits *waits, const struct sample *sample)
{
	char function[WCHAN_BYTES];

	if (sample->now.state == STATE_STOPPED)
		return &stopped_object;
	if (sample->now.state != STATE_SLEEP && sample->now.state != STATE_DISK &&
	    sample->now.state != STATE_IDLE)
		return NULL;
	return proc_file_read(waits->root, sample->thread.pid, sample->thread.tid, "wchan",
			      function, sizeof(function)) > 0
		       ? wait_object_of_function(function)
		       : NULL;
}

/* Describes what the thread waits for in its call. */
static void call_describe(struct wait *wait, const struct sample *sample,
			  const struct lookup_hint *hint)
{
	const struct wait_object *object;
	const struct wait_call *call =
		sample->call.name ? wait_call_find(sample->call.name, &object) : NULL;
	int to = syscall_fd_to(sample->call.nr, hint->compat, sample->call.arg);

	if (call && call->describe)
		wait_describe(wait, object, call->describe);
	else
		file_describe(wait);
	/* The call's file is no answer: the function that the thread sleeps in is not one that
	 * waits for a disk (disk_object). A request that it has in flight is. */
	if (wait->facts.object == &file_object && wait->facts.stored && !sample->io.dev)
		text_clear(wait->text);
	/* which of two descriptors it is may differ between threads in the same call */
	wait->of_thread |= to >= 0;
	wait->facts.writes = to >= 0 && wait->fd == to;
	served_note(wait);
}

/* Finds out what the thread of the sample waits for, into the episode. True: the kernel function
 * that it sleeps in shows all. */
static bool episode_fill(struct waits *waits, struct wait_episode *episode,
			 const struct sample *sample, const struct lookup_hint *hint,
			 enum wait_depth depth, int64_t now_ns)
{
	struct wait wait = wait_of(waits, sample, hint, depth, now_ns);
	bool in_call = episode->in_call || episode->assumed;
	const struct wait_object *object = in_call ? NULL : elsewhere(waits, sample);

	if (object) {
		wait_describe(&wait, object, object->describe);
		wait.of_thread = true;
		episode->in_call_ns = 0;
	} else {
		if (!in_call)
			episode->in_call_ns = now_ns;
		episode->in_call = !episode->assumed;
		call_describe(&wait, sample, hint);
	}
	episode->waits_on = wait.numbers_only ? NULL : text_name(&waits->text);
	episode->facts = wait.facts;
	if (wait.connection) {
		episode->connection = wait.connection;
		episode->remote = wait.remote;
	}
	episode->pending |= wait.pending;
	episode->of_thread = wait.of_thread;
	return object && !object->faults;
}

static void episode_read_file(struct waits *waits, struct wait_episode *episode,
			      const struct sample *sample, const struct lookup_hint *hint,
			      uint64_t missing, int64_t now_ns)
{
	const char *link = sample->file.name;
	const struct wait_object *object;
	const struct socket_facts *socket;
	const struct wait_link *row;
	struct wait wait;

	if (!link || sample->file.fd == ABSENT || call_names_path(sample, hint))
		return;
	object = wait_object_of_link(link, &row);
	if (missing & NEED_FILETYPE)
		episode->filetype =
			row->word ? row->word
				  : file_type_word(waits->root, sample->thread.pid,
						   sample->thread.tid, (int)sample->file.fd);
	if (missing & NEED_CONNECTION && object->connection) {
		wait = wait_of(waits, sample, hint, WAIT_WHOLE, now_ns);
		socket = object->connection(&wait);
		episode->pending |= wait.pending;
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

/* The rule of a call; NULL: none. */
static const struct wait_rule *rule_of_call(struct wait_classes *classes, const char *syscall_name)
{
	bool added;
	uint64_t *known = index_put(&classes->rules, (uintptr_t)syscall_name, &added);

	if (added)
		*known = (uintptr_t)wait_rule_of_call(syscall_name);
	return (const struct wait_rule *)(uintptr_t)*known; /* NOLINT(performance-no-int-to-ptr) */
}

static bool waits_for_set(struct waits *waits, const struct sample *sample)
{
	const struct wait_rule *rule =
		sample->call.name ? rule_of_call(&waits->classes, sample->call.name) : NULL;

	return rule && rule->traits & WAIT_ASKS_FACTS;
}

/* True if the kernel's stack may show what the thread waits for, in a system call or outside of
 * any: in D; in RQ while it reclaims memory; in S in a page fault, whose file is of FUSE. facts: of
 * the call, if there is one. */
static bool stack_may_tell(const struct sample *sample, const struct wait_facts *facts)
{
	if (sample->thread.kthread == 1)
		return false;
	return sample->now.state == STATE_DISK || sample->now.state == STATE_RQ ||
	       (sample->now.state == STATE_SLEEP &&
		(sample->call.nr == ABSENT || facts->kind == WAIT_FILE));
}

/* Replaces what the call waits for by what the kernel's stack shows, if it shows that. */
static void stack_describe(struct waits *waits, struct wait_episode *episode,
			   const struct sample *sample, const struct lookup_hint *hint,
			   int64_t now_ns)
{
	struct wait wait = wait_of(waits, sample, hint, WAIT_WHOLE, now_ns);
	char stack[STACK_BYTES];

	if (proc_file_read(waits->root, wait.pid, wait.tid, "stack", stack, sizeof(stack)) <= 0 ||
	    !wait_describe_of_stack(&wait, stack, sample->now.state == STATE_RQ))
		return;
	episode->waits_on = text_name(&waits->text);
	episode->facts = wait.facts;
}

void waits_fill(struct waits *waits, struct sample *sample, const struct lookup_hint *hint,
		uint64_t needs, int64_t now_ns)
{
	bool of_program = sample->thread.kthread != 1,
	     in_call = sample->call.nr != ABSENT && of_program;
	uint64_t wanted = needs & (in_call ? NEEDS_OF_WAIT & ~NEED_WCHAN : 0), missing;
	struct wait_episode *episode;
	bool reported, told = false;

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
		told = episode_fill(waits, episode, sample, hint, WAIT_WHOLE, now_ns);
		if (sample->now.state == STATE_SLEEP)
			episode->known |= NEED_WAIT_CLASS;
	} else if (missing & NEED_WAITS)
		episode->facts = wait_facts_absent;
	else if (missing & NEED_CONNECTION && !reported && is_blocked(sample) &&
		 waits_for_set(waits, sample))
		episode_fill(waits, episode, sample, hint, WAIT_NUMBERS, now_ns);
	if (missing & NEED_WAITS && !told && stack_may_tell(sample, &episode->facts))
		stack_describe(waits, episode, sample, hint, now_ns);
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
		episode_fill(waits, &fresh, sample, hint, WAIT_NUMBERS_ANEW, now_ns);
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

/* --- wait classes (the column why), by the rules of sample/wait_rule_table.c */

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
	const struct wait_rule *rule = rule_of_call(&waits->classes, sample->call.name);

	if (!rule || rule->traits & WAIT_ASKS_FACTS)
		return false;
	waits->classes.changes_tid = 0;
	class_take(sample, rule);
	return true;
}

static enum wait_class_serves serves(const struct wait_facts *facts)
{
	return facts->object ? facts->object->serves : SERVES_FILE;
}

/* True if whether the thread's client waits decides, which is found anew each time. */
static bool client_decides(const struct wait_facts *facts, const struct sample *sample)
{
	return serves(facts) == SERVES_LOCK && served_has(sample->thread.tid);
}

/* True if the sample's call waits for the same as the call of the episode did. */
static bool episode_serves(const struct wait_episode *episode, const struct sample *sample)
{
	switch (serves(&episode->facts)) {
	case SERVES_LOCK:
		return !client_decides(&episode->facts, sample);
	case SERVES_SET:
		return !episode->facts.changes && !episode->facts.has_request &&
		       episode->second_arg == sample->call.arg[1];
	case SERVES_NONE:
		return false;
	default:
		return episode->link && !episode->facts.changes;
	}
}

bool waits_class_as_before(struct waits *waits, struct sample *sample, int64_t now_ns)
{
	const struct wait_episode *episode =
		cache_find(&waits->episodes, (uint64_t)sample->thread.tid);

	if (!episode || episode->start_ns != sample->thread.start_ns ||
	    episode->syscall_nr != sample->call.nr || episode->first_arg != sample->call.arg[0] ||
	    now_ns - episode->read_ns >= WAIT_STILL_NS || !(episode->known & NEED_WAIT_CLASS) ||
	    episode->pending || !episode_serves(episode, sample))
		return false;
	/* a set may have other descriptors by now: it is read again when its second is over */
	waits->classes.changes_tid = serves(&episode->facts) == SERVES_SET ? sample->thread.tid : 0;
	facts_take(waits, sample, &episode->facts, now_ns);
	return true;
}

bool waits_class_of_peer(struct waits *waits, struct sample *sample, const struct lookup_hint *hint,
			 int64_t now_ns)
{
	const struct wait_facts *facts =
		call_names_path(sample, hint)
			? NULL
			: wait_peers_find(&waits->classes.peers, sample, hint, now_ns);

	if (!facts || client_decides(facts, sample))
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
	return serves(&episode->facts_before) == SERVES_LOCK && episode->facts_before.open &&
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
		episode_fill(waits, episode, sample, hint, WAIT_NUMBERS, now_ns);
		episode->known |= NEED_WAIT_CLASS;
		waits->classes.left_ns -= clock_monotonic_ns() - start_ns;
	}
	facts = wait_episode_facts(episode, &whole);
	if (!whole && !wait_facts_suffice(facts))
		return;
	facts_take(waits, sample, facts, now_ns);
	if (serves(facts) == SERVES_NONE || facts->changes)
		return;
	waits->classes.changes_tid = 0;
	if (!episode->of_thread && !call_names_path(sample, hint))
		wait_peers_put(&waits->classes.peers, sample, hint, now_ns, facts);
}
