/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/waits.h"
#include "proc/comm.h"
#include "proc/cgroup_mount.h"
#include "waits/holders.h"
#include "waits/memory_wait.h"
#include "proc/proc.h"
#include "waits/sockets.h"
#include "proc/syscalls.h"
#include "proc/user_memory.h"
#include "waits/wait_peers.h"
#include "proc/file_type.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAYS_MAX 131072
#define STAY_STILL_NS NS_PER_SECOND
#define SERVED_IDLE_NS (3600 * NS_PER_SECOND) /* a thread may wait for a lock for long */
#define FDINFO_BYTES 262144 /* some 3000 descriptors of an epoll set, 12 000 polls of a ring */
#define WCHAN_BYTES 128	    /* KSYM_NAME_LEN was that; longer names are cut */
#define WHY_SHARE 64 /* finding out why takes one part in so many of the time between scans */
#define WHY_LEAST_NS 200000
#define WHY_MOST_NS 2000000
#define NEEDS_OF_FILE (NEED_CONNECTION | NEED_FILETYPE | NEED_WAITS)

/* A thread's stay in a system call, or in the kernel. */
struct stay {
	struct cache_entry entry; /* key: tid */
	int64_t start_ns, read_ns;
	uint64_t sequence;
	int64_t syscall_nr, first_arg, second_arg;
	const char *link;
	bool pending, of_thread;
	uint64_t known;
	const char *connection, *remote, *filetype, *waits_on, *wchan;
	struct wait_facts facts;
	/* found out earlier in the same wait; serves while a scan has no time to look again */
	struct wait_facts facts_before;
	bool judged_before;
};

struct waits {
	const char *root;
	struct cache *comms;
	struct cache stays;
	struct holders holders;
	struct sockets sockets;
	struct wait_peers peers;
	struct cache served; /* threads to their connections: served.c */
	struct file_locks file_locks;
	struct cgroup_mount memory; /* of the controller of that name */
	bool memory_looked_for;
	struct index tellers;		    /* by interned name of a call: the function, or 0, */
	struct index rules;		    /* and the rule that it decides why by, or 0 */
	runtime_lock_finder *runtime_locks; /* or NULL */
	void *runtime_lock_finder;
	int64_t daemon_ports;
	int64_t why_scan_ns, why_left_ns; /* what finding out why may cost in this scan */
	int64_t changes_tid;		  /* see waits_why_changes() */
	struct text text;
};

struct waits *waits_new(const char *proc_root, struct cache *comms)
{
	struct waits *waits = memory_get(sizeof(*waits));

	waits->root = proc_root;
	waits->comms = comms;
	waits->daemon_ports = WHY_DAEMON_PORTS;
	waits->stays = (struct cache){.entry_bytes = sizeof(struct stay), .entries_max = STAYS_MAX};
	served_init(&waits->served);
	holders_init(&waits->holders, waits->root);
	sockets_init(&waits->sockets, waits->root, &waits->holders, comms);
	return waits;
}

void waits_free(struct waits *waits)
{
	if (!waits)
		return;
	cache_done(&waits->stays);
	cache_done(&waits->served);
	sockets_done(&waits->sockets);
	holders_done(&waits->holders);
	cgroup_mount_done(&waits->memory);
	index_clear(&waits->file_locks.holders);
	index_clear(&waits->tellers);
	index_clear(&waits->rules);
	text_done(&waits->text);
	free(waits);
}

void waits_sweep(struct waits *waits, int64_t now_ns, int64_t idle_ns)
{
	cache_sweep(&waits->stays, now_ns, idle_ns);
	cache_sweep(&waits->served, now_ns, SERVED_IDLE_NS);
	sockets_sweep(&waits->sockets, now_ns, idle_ns);
	holders_sweep(&waits->holders, now_ns, idle_ns);
}

int waits_sockets_error(const struct waits *waits)
{
	return waits->sockets.err;
}

void waits_set_daemon_ports(struct waits *waits, int64_t ports)
{
	waits->daemon_ports = ports;
}

void waits_set_runtime_locks(struct waits *waits, runtime_lock_finder *find, void *finder)
{
	waits->runtime_locks = find;
	waits->runtime_lock_finder = finder;
}

bool wait_runtime_lock(const struct wait *wait, uint64_t futex, struct runtime_lock *lock)
{
	const struct waits *waits = wait->waits;

	return waits->runtime_locks && waits->runtime_locks(waits->runtime_lock_finder, wait, futex,
							    !wait->numbers_only, lock);
}

void waits_give_time(struct waits *waits, int64_t now_ns, int64_t time_ns)
{
	waits->why_scan_ns = now_ns;
	waits->why_left_ns = time_ns;
}

bool waits_why_changes(const struct waits *waits, int64_t tid)
{
	return waits->changes_tid == tid;
}

const char *wait_root(const struct wait *wait)
{
	return wait->waits->root;
}

struct sockets *wait_sockets(const struct wait *wait)
{
	return &wait->waits->sockets;
}

struct holders *wait_holders(const struct wait *wait)
{
	return &wait->waits->holders;
}

struct cache *wait_served(const struct wait *wait)
{
	return &wait->waits->served;
}

struct file_locks *wait_file_locks(const struct wait *wait)
{
	return &wait->waits->file_locks;
}

bool wait_memory_read(const struct wait *wait, uint64_t address, void *bytes, size_t size)
{
	return user_memory_read(wait_root(wait), wait->pid, wait->tid, address, bytes, size) ==
	       (ssize_t)size;
}

const char *wait_fdinfo(const struct wait *wait, bool *cut)
{
	static char text[FDINFO_BYTES];
	char name[32];
	ssize_t length;

	snprintf(name, sizeof(name), "fdinfo/%d", wait->fd);
	length = proc_file_read(wait_root(wait), wait->pid, wait->tid, name, text, sizeof(text));
	if (length < 0)
		*text = '\0';
	if (cut)
		*cut = length == sizeof(text) - 1;
	return text;
}

uint64_t wait_address(const struct wait *wait, int arg)
{
	return wait->compat ? (uint32_t)wait->arg[arg] : (uint64_t)wait->arg[arg];
}

void wait_add_thread(struct wait *wait, const char *before, int64_t tid)
{
	const char *comm;

	if (wait->numbers_only)
		return;
	comm = comm_find(wait->waits->comms, wait_root(wait), tid, wait->now_ns);
	text_add_format(wait->text, "%s%lld%s%s", before, (long long)tid, comm ? " " : "",
			comm ? comm : "");
}

static wait_teller *teller_of(struct waits *waits, const char *syscall_name)
{
	bool added;
	uint64_t *teller = index_put(&waits->tellers, (uintptr_t)syscall_name, &added);

	if (added)
		*teller = (uintptr_t)wait_teller_find(syscall_name);
	return (wait_teller *)(uintptr_t)*teller; /* NOLINT(performance-no-int-to-ptr) */
}

static const char *text_name(struct text *text)
{
	return text->length ? name_lent(text->bytes, text->length) : NULL;
}

/* A path is not open yet: a descriptor beside it is the directory's. */
static bool names_path(const struct sample *sample, const struct lookup_hint *hint)
{
	return syscall_path(sample->syscall_nr, hint->compat).arg >= 0;
}

static void waits_on_tell(struct waits *waits, struct stay *stay, const struct sample *sample,
			  const struct lookup_hint *hint, bool numbers_only, int64_t now_ns)
{
	struct wait wait = {
		.waits = waits,
		.pid = sample->pid,
		.tid = sample->tid,
		.now_ns = now_ns,
		.compat = hint->compat,
		.arg = sample->arg,
		.fd = sample->fd == ABSENT ? -1 : (int)sample->fd,
		.link = sample->filename,
		.numbers_only = numbers_only,
		.text = &waits->text,
		.facts = wait_facts_absent,
	};
	wait_teller *tell = sample->syscall ? teller_of(waits, sample->syscall) : NULL;

	if (names_path(sample, hint))
		wait.fd = -1;
	text_clear(&waits->text);
	if (tell)
		tell(&wait);
	else
		file_tell(&wait);
	served_note(&waits->served, &wait, waits->daemon_ports);
	stay->waits_on = numbers_only ? NULL : text_name(&waits->text);
	stay->facts = wait.facts;
	if (wait.connection) {
		stay->connection = wait.connection;
		stay->remote = wait.remote;
	}
	stay->pending |= wait.pending;
	stay->of_thread = wait.of_thread;
}

static void stay_read_file(struct waits *waits, struct stay *stay, const struct sample *sample,
			   const struct lookup_hint *hint, uint64_t missing, int64_t now_ns)
{
	const char *link = sample->filename;
	const struct socket_facts *socket;

	if (!link || sample->fd == ABSENT || names_path(sample, hint))
		return;
	if (missing & NEED_FILETYPE) {
		stay->filetype = file_word(link);
		if (!stay->filetype)
			stay->filetype = file_type_word(waits->root, sample->pid, sample->tid,
							(int)sample->fd);
	}
	if (missing & NEED_CONNECTION && !strncmp(link, SOCKET_LINK, strlen(SOCKET_LINK))) {
		socket = socket_find(&waits->sockets, sample->pid, sample->tid, (int)sample->fd,
				     link, PEER_UNIX, now_ns, &stay->pending);
		stay->connection = socket->connection;
		stay->remote = socket->remote;
	}
}

/* "0": none, or not ours to see. */
static const char *wchan_read(const struct waits *waits, const struct sample *sample)
{
	char wchan[WCHAN_BYTES];
	ssize_t length = proc_file_read(waits->root, sample->pid, sample->tid, "wchan", wchan,
					sizeof(wchan));

	return length > 0 && strcmp(wchan, "0") != 0 ? name_lent(wchan, length) : NULL;
}

static bool is_blocked(const struct sample *sample)
{
	return sample->state != DOING_ON && sample->state != DOING_RQ &&
	       sample->state != DOING_ZOMBIE;
}

/* Whether what is still looked for can't change the rule. */
static bool facts_suffice(const struct wait_facts *facts)
{
	return facts->kind != WAIT_UNKNOWN && !facts->open &&
	       (facts->kind != WAIT_SOCKET || facts->connected || facts->listens);
}

static bool stay_goes_on(const struct stay *stay, const struct sample *sample,
			 const struct lookup_hint *hint)
{
	return stay->start_ns == sample->start_ns && stay->sequence == hint->sequence &&
	       stay->syscall_nr == sample->syscall_nr && stay->link == sample->filename &&
	       sample->state != DOING_ON;
}

/* The stay that the thread is in, whose facts are not stale (but may not be known). */
static struct stay *stay_find(struct waits *waits, const struct sample *sample,
			      const struct lookup_hint *hint, int64_t now_ns)
{
	bool added;
	struct stay *stay = cache_get(&waits->stays, (uint64_t)sample->tid, now_ns, &added);
	struct cache_entry entry = stay->entry;
	/* spread, so that those seen first in one scan don't all come due in one */
	int64_t still_ns = STAY_STILL_NS + (int64_t)(hash_u64(entry.key) % STAY_STILL_NS);
	struct wait_facts before = wait_facts_absent;
	bool judged = false;

	if (!added && stay_goes_on(stay, sample, hint)) {
		if (now_ns - stay->read_ns < still_ns &&
		    (!stay->pending || stay->read_ns == now_ns))
			return stay;
		if (stay->known & (NEED_WAITS | NEED_WHY)) {
			before = stay->facts;
			judged = !stay->pending || facts_suffice(&before);
		} else {
			before = stay->facts_before;
			judged = stay->judged_before;
		}
	}
	*stay = (struct stay){
		.entry = entry,
		.start_ns = sample->start_ns,
		.read_ns = now_ns,
		.sequence = hint->sequence,
		.syscall_nr = sample->syscall_nr,
		.first_arg = sample->arg[0],
		.second_arg = sample->arg[1],
		.link = sample->filename,
		.facts = wait_facts_absent,
		.facts_before = before,
		.judged_before = judged,
	};
	return stay;
}

/* The rule that a call decides by, or whose facts it takes (WAIT_SET); NULL: none. */
static const struct why_rule *rule_of_call(struct waits *waits, const char *syscall_name)
{
	bool added;
	uint64_t *known = index_put(&waits->rules, (uintptr_t)syscall_name, &added);

	if (added)
		*known = (uintptr_t)why_of_call(syscall_name);
	return (const struct why_rule *)(uintptr_t)*known; /* NOLINT(performance-no-int-to-ptr) */
}

static bool waits_for_set(struct waits *waits, const struct sample *sample)
{
	const struct why_rule *rule = sample->syscall ? rule_of_call(waits, sample->syscall) : NULL;

	return rule && rule->kind == WAIT_SET;
}

/* Who waits for memory does so in D, or works for it now and then: in a call or outside of any. */
static bool may_want_memory(const struct sample *sample)
{
	return (sample->state == DOING_DISK || sample->state == DOING_RQ) && sample->kthread != 1;
}

/* In place of what the call is about: that is not what the thread waits for. */
static void memory_tell(struct waits *waits, struct stay *stay, const struct sample *sample)
{
	if (!waits->memory_looked_for)
		cgroup_mount_find(&waits->memory, waits->root, "memory");
	waits->memory_looked_for = true;
	text_clear(&waits->text);
	memory_wait_tell(waits->root, &waits->memory, sample->pid, sample->tid, &waits->text);
	/* who was only interrupted in a page fault waits for a CPU */
	if (sample->state == DOING_RQ && strncmp(text_string(&waits->text), "reclaim", 7))
		return;
	if (waits->text.length)
		stay->waits_on = text_name(&waits->text);
}

void waits_fill(struct waits *waits, struct sample *sample, const struct lookup_hint *hint,
		uint64_t needs, int64_t now_ns)
{
	bool in_call = sample->syscall_nr != ABSENT && sample->kthread != 1;
	uint64_t wanted = needs & (in_call ? NEEDS_OF_FILE : 0), missing;
	struct stay *stay;
	bool told;

	if (may_want_memory(sample))
		wanted |= needs & NEED_WAITS;
	else if (!is_blocked(sample))
		wanted &= ~NEED_WAITS;
	if (is_blocked(sample))
		wanted |= needs & NEED_WCHAN;
	if (!wanted)
		return;
	stay = stay_find(waits, sample, hint, now_ns);
	missing = wanted & ~stay->known;
	told = stay->known & (NEED_WAITS | NEED_WHY);
	stay->known |= missing;
	if (missing & (NEED_CONNECTION | NEED_FILETYPE))
		stay_read_file(waits, stay, sample, hint, missing, now_ns);
	if (missing & NEED_WAITS && in_call && is_blocked(sample))
		waits_on_tell(waits, stay, sample, hint, false, now_ns);
	else if (missing & NEED_WAITS)
		stay->facts = wait_facts_absent;
	else if (missing & NEED_CONNECTION && !told && is_blocked(sample) &&
		 waits_for_set(waits, sample))
		waits_on_tell(waits, stay, sample, hint, true, now_ns);
	if (missing & NEED_WAITS && may_want_memory(sample))
		memory_tell(waits, stay, sample);
	if (missing & NEED_WCHAN)
		stay->wchan = wchan_read(waits, sample);

	sample->connection = stay->connection;
	sample->remote = stay->remote;
	sample->filetype = stay->filetype;
	sample->waits_on = stay->waits_on;
	sample->waits_on_pid = stay->facts.pid;
	sample->inflight = stay->facts.inflight;
	sample->wchan = stay->wchan;
	sample->wait_open = stay->pending;
}

bool waits_facts(struct waits *waits, const struct sample *sample, const struct lookup_hint *hint,
		 bool anew, int64_t now_ns, struct wait_facts *facts)
{
	struct stay fresh = {0};
	const struct stay *stay = &fresh;

	if (anew)
		waits_on_tell(waits, &fresh, sample, hint, true, now_ns);
	else
		stay = cache_find(&waits->stays, (uint64_t)sample->tid);
	*facts = wait_facts_absent;
	if (!stay || (!anew && (stay->start_ns != sample->start_ns ||
				stay->sequence != hint->sequence || !(stay->known & NEED_WAITS))))
		return false;
	*facts = stay->facts;
	return !stay->pending;
}

static void why_take(struct sample *sample, const struct why_rule *rule)
{
	sample->why = name_lent_string(rule->name);
}

bool waits_why_by_call(struct waits *waits, struct sample *sample)
{
	const struct why_rule *rule = rule_of_call(waits, sample->syscall);

	if (!rule || rule->kind == WAIT_SET)
		return false;
	waits->changes_tid = 0;
	why_take(sample, rule);
	return true;
}

/* Whether a call with these arguments waits for what this stay did. */
static bool stay_serves(const struct stay *stay, const struct sample *sample)
{
	switch (stay->facts.kind) {
	case WAIT_LOCK:
		return true;
	case WAIT_SET:
		return !stay->facts.changes && !stay->facts.asks &&
		       stay->second_arg == sample->arg[1];
	case WAIT_IO:
		return false;
	default:
		return stay->link && !stay->facts.changes;
	}
}

bool waits_why_as_before(struct waits *waits, struct sample *sample, int64_t now_ns)
{
	const struct stay *stay = cache_find(&waits->stays, (uint64_t)sample->tid);

	/* whether the client waits is another question each time */
	if (stay && stay->facts.kind == WAIT_LOCK && served_has(&waits->served, sample->tid))
		return false;
	if (!stay || stay->start_ns != sample->start_ns || stay->syscall_nr != sample->syscall_nr ||
	    stay->first_arg != sample->arg[0] || now_ns - stay->read_ns >= STAY_STILL_NS ||
	    !(stay->known & NEED_WHY) || stay->pending || !stay_serves(stay, sample))
		return false;
	/* a set may have others in it by now: it is looked at when its second is over */
	waits->changes_tid = stay->facts.kind == WAIT_SET ? sample->tid : 0;
	why_take(sample, why_of_facts(&stay->facts, waits->daemon_ports));
	return true;
}

bool waits_why_of_peer(struct waits *waits, struct sample *sample, const struct lookup_hint *hint,
		       int64_t now_ns)
{
	const struct wait_facts *facts =
		names_path(sample, hint) ? NULL
					 : wait_peers_find(&waits->peers, sample, hint, now_ns);

	if (!facts || (facts->kind == WAIT_LOCK && served_has(&waits->served, sample->tid)))
		return false;
	waits->changes_tid = 0;
	why_take(sample, why_of_facts(facts, waits->daemon_ports));
	return true;
}

/* Whether this scan has time for one more, that was not known before. */
static bool why_has_time(struct waits *waits, int64_t now_ns)
{
	int64_t share_ns = (now_ns - waits->why_scan_ns) / WHY_SHARE;

	if (waits->why_scan_ns != now_ns) {
		waits->why_scan_ns = now_ns;
		waits->why_left_ns = share_ns < WHY_LEAST_NS  ? WHY_LEAST_NS
				     : share_ns > WHY_MOST_NS ? WHY_MOST_NS
							      : share_ns;
	}
	return waits->why_left_ns > 0;
}

void waits_why(struct waits *waits, struct sample *sample, const struct lookup_hint *hint,
	       int64_t now_ns)
{
	struct stay *stay = stay_find(waits, sample, hint, now_ns);
	int64_t start_ns;

	waits->changes_tid = sample->tid;
	if (!(stay->known & (NEED_WAITS | NEED_WHY))) {
		if (!why_has_time(waits, now_ns)) {
			stay->pending = true;
			if (stay->judged_before)
				why_take(sample,
					 why_of_facts(&stay->facts_before, waits->daemon_ports));
			return;
		}
		start_ns = clock_monotonic_ns();
		waits_on_tell(waits, stay, sample, hint, true, now_ns);
		stay->known |= NEED_WHY;
		waits->why_left_ns -= clock_monotonic_ns() - start_ns;
	}
	if (stay->pending && !facts_suffice(&stay->facts))
		return;
	why_take(sample, why_of_facts(&stay->facts, waits->daemon_ports));
	if (stay->facts.kind == WAIT_IO || stay->facts.changes)
		return;
	waits->changes_tid = 0;
	if (!stay->of_thread && !names_path(sample, hint))
		wait_peers_put(&waits->peers, sample, hint, now_ns, &stay->facts);
}
