/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lookup/waits.h"
#include "lookup/comm.h"
#include "lookup/holders.h"
#include "lookup/proc.h"
#include "lookup/sockets.h"
#include "lookup/syscalls.h"
#include "lookup/user_memory.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAYS_MAX 131072
#define STAY_STILL_NS NS_PER_SECOND
#define WCHAN_BYTES 128 /* KSYM_NAME_LEN was that; longer names are cut */
#define NEEDS_OF_FILE (NEED_CONNECTION | NEED_FILETYPE | NEED_WAITS)

/* A thread's stay in a system call, or in the kernel. */
struct stay {
	struct cache_entry entry; /* key: tid */
	int64_t start_ns, read_ns;
	uint64_t sequence;
	int64_t syscall_nr;
	const char *link;
	bool pending;
	uint64_t known;
	const char *connection, *remote, *filetype, *waits_on, *wchan;
	struct wait_facts facts;
};

struct waits {
	const char *root;
	struct cache *comms;
	struct cache stays;
	struct holders holders;
	struct sockets sockets;
	struct index tellers; /* by interned name of a call: the function, or 0 */
	struct text text;
};

const struct wait_facts wait_facts_absent = {
	.local_port = ABSENT,
	.remote_port = ABSENT,
	.pid = ABSENT,
	.tid = ABSENT,
	.count = ABSENT,
	.inflight = ABSENT,
};

struct waits *waits_new(const char *proc_root, struct cache *comms)
{
	struct waits *waits = memory_get(sizeof(*waits));

	waits->root = proc_root;
	waits->comms = comms;
	waits->stays = (struct cache){.entry_bytes = sizeof(struct stay), .entries_max = STAYS_MAX};
	holders_init(&waits->holders, waits->root);
	sockets_init(&waits->sockets, waits->root, &waits->holders, comms);
	return waits;
}

void waits_free(struct waits *waits)
{
	if (!waits)
		return;
	cache_done(&waits->stays);
	sockets_done(&waits->sockets);
	holders_done(&waits->holders);
	index_clear(&waits->tellers);
	text_done(&waits->text);
	free(waits);
}

void waits_sweep(struct waits *waits, int64_t now_ns, int64_t idle_ns)
{
	cache_sweep(&waits->stays, now_ns, idle_ns);
	sockets_sweep(&waits->sockets, now_ns, idle_ns);
	holders_sweep(&waits->holders, now_ns, idle_ns);
}

int waits_sockets_error(const struct waits *waits)
{
	return waits->sockets.err;
}

const struct wait_facts *waits_facts(struct waits *waits, int64_t tid)
{
	const struct stay *stay = cache_find(&waits->stays, (uint64_t)tid);

	return stay && stay->known & NEED_WAITS ? &stay->facts : NULL;
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

bool wait_memory_read(const struct wait *wait, uint64_t address, void *bytes, size_t size)
{
	return user_memory_read(wait_root(wait), wait->pid, wait->tid, address, bytes, size) ==
	       (ssize_t)size;
}

uint64_t wait_address(const struct wait *wait, int arg)
{
	return wait->compat ? (uint32_t)wait->arg[arg] : (uint64_t)wait->arg[arg];
}

void wait_add_thread(struct wait *wait, const char *before, int64_t tid)
{
	const char *comm = comm_find(wait->waits->comms, wait_root(wait), tid, wait->now_ns);

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
			  const struct lookup_hint *hint, int64_t now_ns)
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
	stay->waits_on = text_name(&waits->text);
	stay->facts = wait.facts;
	stay->pending |= wait.pending;
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
			stay->filetype =
				path_word(waits->root, sample->pid, sample->tid, (int)sample->fd);
	}
	if (missing & NEED_CONNECTION && !strncmp(link, SOCKET_LINK, strlen(SOCKET_LINK))) {
		socket = socket_find(&waits->sockets, sample->pid, sample->tid, (int)sample->fd,
				     link, false, now_ns, &stay->pending);
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

/* The stay that the thread is in, whose facts are not stale (but may not be known). */
static struct stay *stay_find(struct waits *waits, const struct sample *sample,
			      const struct lookup_hint *hint, int64_t now_ns)
{
	bool added;
	struct stay *stay = cache_get(&waits->stays, (uint64_t)sample->tid, now_ns, &added);
	struct cache_entry entry = stay->entry;
	/* spread, so that those seen first in one scan don't all come due in one */
	int64_t still_ns = STAY_STILL_NS + (int64_t)(hash_u64(entry.key) % STAY_STILL_NS);

	if (!added && stay->start_ns == sample->start_ns && stay->sequence == hint->sequence &&
	    stay->syscall_nr == sample->syscall_nr && stay->link == sample->filename &&
	    sample->state != DOING_ON && now_ns - stay->read_ns < still_ns &&
	    (!stay->pending || stay->read_ns == now_ns))
		return stay;
	*stay = (struct stay){
		.entry = entry,
		.start_ns = sample->start_ns,
		.read_ns = now_ns,
		.sequence = hint->sequence,
		.syscall_nr = sample->syscall_nr,
		.link = sample->filename,
		.facts = wait_facts_absent,
	};
	return stay;
}

void waits_fill(struct waits *waits, struct sample *sample, const struct lookup_hint *hint,
		uint64_t needs, int64_t now_ns)
{
	bool in_call = sample->syscall_nr != ABSENT && sample->kthread != 1;
	uint64_t wanted = needs & (in_call ? NEEDS_OF_FILE : 0), missing;
	struct stay *stay;

	if (!is_blocked(sample))
		wanted &= ~NEED_WAITS;
	else
		wanted |= needs & NEED_WCHAN;
	if (!wanted)
		return;
	stay = stay_find(waits, sample, hint, now_ns);
	missing = wanted & ~stay->known;
	stay->known |= missing;
	if (missing & (NEED_CONNECTION | NEED_FILETYPE))
		stay_read_file(waits, stay, sample, hint, missing, now_ns);
	if (missing & NEED_WAITS)
		waits_on_tell(waits, stay, sample, hint, now_ns);
	if (missing & NEED_WCHAN)
		stay->wchan = wchan_read(waits, sample);

	sample->connection = stay->connection;
	sample->remote = stay->remote;
	sample->filetype = stay->filetype;
	sample->waits_on = stay->waits_on;
	sample->waits_on_pid = stay->facts.pid;
	sample->inflight = stay->facts.inflight;
	sample->wchan = stay->wchan;
}
