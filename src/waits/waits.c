/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/waits.h"
#include "base/memory.h"
#include "base/names.h"
#include "proc/file_type.h"
#include "base/host_file.h"
#include "proc/processes.h"
#include "proc/proc.h"
#include "proc/syscalls.h"
#include "waits/last_wait.h"
#include "waits/net_verdict.h"
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
	last_waits_init(&waits->last_waits);
	holders_init(&waits->holders, waits->root);
	return waits;
}

void waits_free(struct waits *waits)
{
	if (!waits)
		return;
	cache_done(&waits->last_waits);
	wait_objects_done();
	net_verdicts_done();
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
	cache_sweep(&waits->last_waits, now_ns, idle_ns);
	wait_objects_sweep(now_ns, idle_ns);
	net_verdicts_sweep(now_ns, idle_ns);
	holders_sweep(&waits->holders, now_ns, idle_ns);
	user_memory_sweep(&waits->memory, now_ns);
}

void waits_set_runtime_locks(struct waits *waits, runtime_lock_finder *find, void *finder)
{
	waits->runtime_locks = find;
	waits->runtime_lock_finder = finder;
}

void waits_set_apps(struct waits *waits, app_lock_finder *locks, app_serves_finder *serves,
		    void *finder)
{
	waits->app_locks = locks;
	waits->app_serves = serves;
	waits->app_finder = finder;
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
	wait->facts.writes |= to >= 0 && wait->fd == to;
	served_note(wait);
}

/* Finds out what the thread of the sample waits for, into what is kept of it. True: the kernel
 * function that it sleeps in shows all. */
static bool last_wait_fill(struct waits *waits, struct last_wait *last, const struct sample *sample,
			   const struct lookup_hint *hint, enum wait_depth depth, int64_t now_ns)
{
	struct wait wait = wait_of(waits, sample, hint, depth, now_ns);
	bool in_call = last->in_call || last->assumed;
	const struct wait_object *object = in_call ? NULL : elsewhere(waits, sample);

	if (object)
		wait_describe(&wait, object, object->describe);
	else if (sample->now.state == STATE_SLEEP && wait_describe_of_sleeper(&wait))
		object = wait.facts.object;
	if (object) {
		wait.of_thread = true;
		last->in_call_ns = 0;
	} else {
		if (!in_call)
			last->in_call_ns = now_ns;
		last->in_call = !last->assumed;
		call_describe(&wait, sample, hint);
	}
	last->waits_on = wait.numbers_only ? NULL : text_name(&waits->text);
	last->facts = wait.facts;
	if (wait.connection) {
		last->connection = wait.connection;
		last->remote = wait.remote;
	}
	last->pending |= wait.pending;
	last->of_thread = wait.of_thread;
	last->elsewhere = object != NULL;
	return object && !object->faults;
}

static void last_wait_read_file(struct waits *waits, struct last_wait *last,
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
		last->filetype = row->word
					 ? row->word
					 : file_type_word(waits->root, sample->thread.pid,
							  sample->thread.tid, (int)sample->file.fd);
	if (missing & NEED_CONNECTION && object->connection) {
		wait = wait_of(waits, sample, hint, WAIT_WHOLE, now_ns);
		socket = object->connection(&wait);
		last->pending |= wait.pending;
		last->connection = socket->connection;
		last->remote = socket->remote;
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

static void class_take(struct sample *sample, const struct wait_rule *rule)
{
	sample->wait.why = name_transient_string(rule->name);
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
static void stack_describe(struct waits *waits, struct last_wait *last, const struct sample *sample,
			   const struct lookup_hint *hint, int64_t now_ns)
{
	struct wait wait = wait_of(waits, sample, hint, WAIT_WHOLE, now_ns);
	char stack[STACK_BYTES];

	if (proc_file_read(waits->root, wait.pid, wait.tid, "stack", stack, sizeof(stack)) <= 0 ||
	    !wait_describe_of_stack(&wait, stack, sample->now.state == STATE_RQ))
		return;
	last->waits_on = text_name(&waits->text);
	last->facts = wait.facts;
}

/* True if the thread may owe an answer on a TCP connection: where none is noted that it serves, it
 * can only be searched for if it is its process's first thread, asleep as part of some work. */
static bool may_serve(const struct sample *sample)
{
	bool works = sample->now.state == STATE_DISK ||
		     (sample->now.state == STATE_SLEEP && wait_class_works(sample->wait.why));

	return sample->thread.kthread != 1 && (served_has(sample->thread.tid) ||
					       (works && sample->thread.tid == sample->thread.pid));
}

static void serves_read(struct waits *waits, struct last_wait *last, const struct sample *sample,
			const struct lookup_hint *hint, int64_t now_ns)
{
	struct wait wait = wait_of(waits, sample, hint, WAIT_NUMBERS, now_ns);

	last->serves = served_connection(&wait, is_blocked(sample));
	last->pending |= wait.pending;
}

void waits_fill(struct waits *waits, struct sample *sample, const struct lookup_hint *hint,
		uint64_t needs, int64_t now_ns)
{
	bool of_program = sample->thread.kthread != 1,
	     in_call = sample->call.nr != ABSENT && of_program;
	uint64_t wanted = needs & (in_call ? NEEDS_OF_WAIT & ~NEED_WCHAN : 0), missing;
	struct last_wait *last;
	bool reported, told = false;

	wanted &= ~NEED_WAITS;
	if (of_program && (is_blocked(sample) || sample->now.state == STATE_RQ))
		wanted |= needs & NEED_WAITS;
	if (is_blocked(sample))
		wanted |= needs & NEED_WCHAN;
	wanted &= ~NEED_SERVES;
	if (needs & NEED_SERVES && may_serve(sample))
		wanted |= NEED_SERVES;
	if (!wanted)
		return;
	last = last_wait_find(&waits->last_waits, sample, hint, now_ns);
	missing = wanted & ~last->known;
	reported = last->known & (NEED_WAITS | NEED_WAIT_CLASS);
	last->known |= missing;
	if (missing & (NEED_CONNECTION | NEED_FILETYPE))
		last_wait_read_file(waits, last, sample, hint, missing, now_ns);
	if (missing & NEED_WAITS && is_blocked(sample)) {
		told = last_wait_fill(waits, last, sample, hint, WAIT_WHOLE, now_ns);
		if (sample->now.state == STATE_SLEEP)
			last->known |= NEED_WAIT_CLASS;
	} else if (missing & NEED_WAITS)
		last->facts = wait_facts_absent;
	else if (!reported && is_blocked(sample) &&
		 (missing & NEED_NET ||
		  (missing & NEED_CONNECTION && waits_for_set(waits, sample))))
		last_wait_fill(waits, last, sample, hint, WAIT_NUMBERS, now_ns);
	if (missing & NEED_WAITS && !told && stack_may_tell(sample, &last->facts))
		stack_describe(waits, last, sample, hint, now_ns);
	if (missing & NEED_WCHAN)
		last->wchan = wchan_read(waits, sample);
	if (missing & NEED_SERVES)
		serves_read(waits, last, sample, hint, now_ns);

	/* the class of the call is not that of a wait outside of it */
	if (last->elsewhere && sample->wait.why && sample->now.state == STATE_SLEEP &&
	    last->facts.object)
		class_take(sample, wait_rule_of_facts(&last->facts, waits->classes.daemon_ports));
	sample->file.connection = last->connection;
	sample->file.remote = last->remote;
	sample->file.type = last->filetype;
	sample->file.serves = last->serves;
	sample->wait.on = last->waits_on;
	sample->wait.pid = last->facts.pid;
	sample->wait.inflight = last->facts.inflight;
	sample->wait.wchan = last->wchan;
	sample->wait.open = last->pending;
	if (wanted & NEED_NET && sample->now.state == STATE_SLEEP && last->facts.own != ABSENT) {
		last->net_until_ns = net_verdict_fill(last->facts.own, sample, now_ns);
		sample->wait.open |= !last->net_until_ns;
	}
}

const char *waits_comm(struct waits *waits, int64_t tid, int64_t now_ns)
{
	return comm_find(waits->comms, waits->root, tid, now_ns);
}

bool waits_facts(struct waits *waits, const struct sample *sample, const struct lookup_hint *hint,
		 bool anew, int64_t now_ns, struct wait_facts *facts)
{
	const struct last_wait *last = cache_find(&waits->last_waits, (uint64_t)sample->thread.tid);
	struct last_wait fresh = {0};
	bool whole;

	if (last && (last->start_ns != sample->thread.start_ns || last->sequence != hint->sequence))
		last = NULL;
	if (anew) {
		fresh.in_call = last && (last->in_call || last->assumed);
		last_wait_fill(waits, &fresh, sample, hint, WAIT_NUMBERS_ANEW, now_ns);
		last = &fresh;
	}
	*facts = wait_facts_absent;
	if (!last || (!anew && !(last->known & NEED_WAITS)))
		return false;
	*facts = *last_wait_facts(last, &whole);
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
	const struct last_wait *last;

	if (!(needs & (NEED_WAITS | NEED_NET)))
		return false;
	waits_fill(waits, sample, hint, needs, now_ns);
	last = cache_find(&waits->last_waits, (uint64_t)sample->thread.tid);
	return last && !sample->wait.open && !last->facts.changes &&
	       class_is_same(waits, sample, &last->facts);
}

int64_t waits_until(struct waits *waits, int64_t tid, uint64_t sequence, int64_t now_ns)
{
	const struct last_wait *last = cache_find(&waits->last_waits, (uint64_t)tid);

	int64_t until_ns;

	if (!last || last->sequence != sequence)
		return wait_still_until(tid, now_ns);
	until_ns = last_wait_until(last);
	return last->net_until_ns && last->net_until_ns < until_ns ? last->net_until_ns : until_ns;
}

const char *waits_net_words(struct waits *waits, const struct sample *sample, int64_t now_ns)
{
	const struct last_wait *last = cache_find(&waits->last_waits, (uint64_t)sample->thread.tid);

	return last && last->facts.own != ABSENT &&
			       wait_class_traits(sample->wait.why) &
				       (WAIT_AS_CLIENT | WAIT_FOR_SPACE)
		       ? net_verdict_words(last->facts.own, sample, now_ns)
		       : NULL;
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
	return serves(facts) == SERVES_LOCK &&
	       (facts->program_tells || served_has(sample->thread.tid));
}

/* True if the sample's call waits for the same as the call of the last wait did. */
static bool last_wait_serves(const struct last_wait *last, const struct sample *sample)
{
	switch (serves(&last->facts)) {
	case SERVES_LOCK:
		return !client_decides(&last->facts, sample);
	case SERVES_SET:
		return !last->facts.changes && !last->facts.has_request &&
		       last->second_arg == sample->call.arg[1];
	case SERVES_NONE:
		return false;
	default:
		return last->link && !last->facts.changes;
	}
}

bool waits_class_as_before(struct waits *waits, struct sample *sample, int64_t now_ns)
{
	const struct last_wait *last = cache_find(&waits->last_waits, (uint64_t)sample->thread.tid);

	if (!last || last->start_ns != sample->thread.start_ns ||
	    last->syscall_nr != sample->call.nr || last->first_arg != sample->call.arg[0] ||
	    now_ns - last->read_ns >= WAIT_STILL_NS || !(last->known & NEED_WAIT_CLASS) ||
	    last->pending || !last_wait_serves(last, sample))
		return false;
	/* a set may have other descriptors by now: it is read again when its second is over */
	waits->classes.changes_tid = serves(&last->facts) == SERVES_SET ? sample->thread.tid : 0;
	facts_take(waits, sample, &last->facts, now_ns);
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
static bool lock_must_wait(const struct waits *waits, const struct last_wait *last)
{
	return serves(&last->facts_before) == SERVES_LOCK && last->facts_before.open &&
	       waits->classes.locks_left_ns <= 0;
}

void waits_class(struct waits *waits, struct sample *sample, const struct lookup_hint *hint,
		 int64_t now_ns)
{
	struct last_wait *last = last_wait_find(&waits->last_waits, sample, hint, now_ns);
	const struct wait_facts *facts;
	int64_t start_ns;
	bool whole;

	waits->classes.changes_tid = sample->thread.tid;
	if (!(last->known & (NEED_WAITS | NEED_WAIT_CLASS))) {
		if (!class_has_time(waits, now_ns) || lock_must_wait(waits, last)) {
			last->pending = true;
			if (last->judged_before)
				class_take(sample, wait_rule_of_facts(&last->facts_before,
								      waits->classes.daemon_ports));
			return;
		}
		start_ns = clock_monotonic_ns();
		last_wait_fill(waits, last, sample, hint, WAIT_NUMBERS, now_ns);
		if (sample->call.nr == ABSENT && !last->facts.object)
			stack_describe(waits, last, sample, hint, now_ns);
		last->known |= NEED_WAIT_CLASS;
		waits->classes.left_ns -= clock_monotonic_ns() - start_ns;
	}
	facts = last_wait_facts(last, &whole);
	if (!whole && !wait_facts_suffice(facts))
		return;
	/* in no call and in no page fault: frozen, for instance */
	if (sample->call.nr == ABSENT && facts->kind == WAIT_UNKNOWN) {
		waits->classes.changes_tid = 0;
		return;
	}
	facts_take(waits, sample, facts, now_ns);
	if (serves(facts) == SERVES_NONE || facts->changes)
		return;
	waits->classes.changes_tid = 0;
	if (!last->of_thread && !call_names_path(sample, hint))
		wait_peers_put(&waits->classes.peers, sample, hint, now_ns, facts);
}
