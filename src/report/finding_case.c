/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/finding_case.h"
#include "base/names.h"
#include "base/text.h"
#include "sample/wait_rule.h"
#include "sample/waits_on.h"

/* True if the root waits as a trait of enum wait_rule_trait says. */
static bool root_waits(const struct finding_case *of, enum wait_rule_trait how)
{
	return wait_class_traits(of->root.why) & how;
}

/* True if a thread that waits for the link's kind waits for a lock. */
static bool is_lock(enum edge_kind link)
{
	return edge_kinds[link].lock_add;
}

static bool is_asleep(const struct finding_case *of)
{
	return of->root.state == STATE_SLEEP || of->root.state == STATE_DISK;
}

enum edge_kind edge_kind_beside(const char *text, size_t length, bool at_end)
{
	if (at_end && length && text[length - 1] == *EDGE_DOUBT)
		length--;
	for (int kind = EDGE_NONE + 1; kind < EDGE_KIND_COUNT; kind++) {
		size_t name = strlen(edge_kinds[kind].name);

		if (length >= name &&
		    !memcmp(at_end ? text + length - name : text, edge_kinds[kind].name, name))
			return (enum edge_kind)kind;
	}
	return EDGE_NONE;
}

/* Reads the links before and after the last thread from the chain: "a socket> b io> sda". The name
 * of that thread is known, so other names can't be taken for links. */
static void chain_read(struct finding_case *of)
{
	const char *chain = of->sample->chain.text, *name = of->root.comm ? of->root.comm : "?",
		   *at, *last = NULL;
	size_t length = strlen(name);

	if (length > 2 && !strcmp(name + length - 2, " " EDGE_DOUBT))
		length -= 2;
	if (!chain)
		return;
	if (!of->rooted && !strncmp(chain, name, length))
		last = chain;
	/* what is after a link that ends the chain may have the root's name, as a thread on a CPU
	 */
	for (at = chain; of->rooted && (at = strstr(at, "> ")); at += 2)
		if (!strncmp(at + 2, name, length) && (at[2 + length] == ' ' || !at[2 + length]) &&
		    !(edge_kinds[edge_kind_beside(chain, (size_t)(at - chain), true)].traits &
		      ENDS_CHAIN))
			last = at + 2;
	if (!last)
		return;
	if (of->rooted)
		of->link = edge_kind_beside(chain, (size_t)(last - 2 - chain), true);
	last += length;
	if (*last != ' ')
		return;
	of->end = edge_kind_beside(last + 1, strlen(last + 1), false);
	if (edge_kinds[of->end].traits & ENDS_CHAIN)
		of->thing = last + 1 + strlen(edge_kinds[of->end].name) + strlen("> ");
	/* which of a device and those below it is slow the chain does not tell */
	if (of->end == EDGE_IO && of->thing)
		of->thing = name_transient(of->thing, strcspn(of->thing, " "));
}

/* True for a thread that waits for itself, as for a mutex that it has locked. */
static bool ends_in_itself(const struct sample *sample)
{
	return sample->chain.depth == 0 && (is_text(sample->chain.root.why, ROOT_DEADLOCK) ||
					    is_text(sample->chain.root.why, ROOT_CYCLE));
}

struct finding_case finding_case_of(const struct sample *sample, int64_t samples, int64_t weight_us)
{
	struct finding_case of = {
		.sample = sample,
		.samples = samples,
		.weight_us = weight_us,
		.rooted = sample->chain.text && sample->chain.depth != ABSENT &&
			  (sample->chain.depth > 0 || ends_in_itself(sample)) &&
			  (sample->chain.root.comm || sample->chain.root.pid != ABSENT),
	};

	of.root = of.rooted ? sample->chain.root
			    : (struct sample_root){.tid = sample->thread.tid,
						   .pid = sample->thread.pid,
						   .state = sample->now.state,
						   .comm = sample->thread.comm,
						   .why = sample->wait.why,
						   .waits_on = sample->wait.on,
						   .syscall = sample->call.name};
	if (of.rooted)
		of.link = sample->chain.depth <= 1 ? edge_kind_of(sample->blocker.kind) : EDGE_NONE;
	chain_read(&of);
	return of;
}

/* True if the edges call it certain who or what is waited for. */
bool finding_case_is_certain(const struct finding_case *of)
{
	const struct sample *sample = of->sample;

	if (of->rooted)
		return is_text(of->root.why, ROOT_DEADLOCK) ||
		       (sample->chain.depth == 1 && is_text(sample->blocker.sure, "certain"));
	return !(edge_kinds[of->end].traits & NEVER_CERTAIN) && of->root.state != STATE_SLEEP;
}

bool takes_deadlock(const struct finding_case *of)
{
	return of->rooted && is_text(of->root.why, ROOT_DEADLOCK);
}

bool takes_cycle(const struct finding_case *of)
{
	return of->rooted && is_text(of->root.why, ROOT_CYCLE) && is_lock(of->link);
}

bool takes_stopped(const struct finding_case *of)
{
	return of->rooted && (of->root.state == STATE_STOPPED ||
			      waits_on_traits(of->root.waits_on) & WAITS_FOR_THAW);
}

/* A thread that waits for a lock which nobody can release, and not for itself. */
bool takes_lost_lock(const struct finding_case *of)
{
	return !of->rooted && of->root.state == STATE_SLEEP &&
	       waits_on_traits(of->root.waits_on) & WAITS_FOR_NOBODY;
}

bool takes_quota(const struct finding_case *of)
{
	return of->root.state == STATE_RQ && of->end == EDGE_QUOTA && *of->thing == '/';
}

bool takes_budget(const struct finding_case *of)
{
	return of->root.state == STATE_RQ && of->end == EDGE_QUOTA;
}

/* True if the root waits for a connection, or as an event loop for its clients. Threads that wait
 * for its lock meanwhile have no work either: workers take turns with it. */
static bool has_no_work(const struct finding_case *of)
{
	/* a call without a rule of its own reads what a client sends */
	return root_waits(of, WAIT_AS_SERVER) &&
	       (!of->root.syscall || wait_rule_of_call(of->root.syscall));
}

bool takes_lock(const struct finding_case *of)
{
	return of->rooted && is_lock(of->link) && !is_text(of->root.why, ROOT_CYCLE) &&
	       !(of->sample->chain.depth == 1 && has_no_work(of));
}

bool takes_memory(const struct finding_case *of)
{
	return waits_on_traits(of->root.waits_on) & WAITS_FOR_MEMORY;
}

/* A thread whose chain does not end at a device waits for something else, though it has a request
 * in flight. */
const char *device_of(const struct finding_case *of)
{
	return of->end == EDGE_IO		      ? of->thing
	       : of->rooted || of->sample->chain.text ? NULL
						      : of->sample->io.dev;
}

bool takes_disk(const struct finding_case *of)
{
	return is_asleep(of) && device_of(of);
}

/* True if a thread waits for its child, which no scan may have seen: in vfork(2), or clone(2) as
 * posix_spawn(3) calls it. */
static bool waits_for_child(const struct finding_case *of)
{
	const struct wait_rule *rule =
		of->root.syscall ? wait_rule_of_call(of->root.syscall) : NULL;

	return edge_kind_of(of->sample->blocker.kind) == EDGE_CHILD ||
	       (rule && rule->kind == WAIT_PROCESS);
}

/* A thread in D that has no request at a device, or not yet, and waits for no thread. */
bool takes_unready(const struct finding_case *of)
{
	return !of->rooted && of->root.state == STATE_DISK && !waits_for_child(of);
}

bool takes_file(const struct finding_case *of)
{
	return !of->rooted && of->root.state == STATE_SLEEP && root_waits(of, WAIT_FOR_FILE);
}

bool takes_sleeper(const struct finding_case *of)
{
	return of->rooted && of->root.state == STATE_SLEEP && root_waits(of, WAIT_FOR_TIME);
}

bool takes_cpus(const struct finding_case *of)
{
	return of->root.state == STATE_RQ;
}

bool takes_busy_thread(const struct finding_case *of)
{
	return of->rooted && of->root.state == STATE_ON;
}

/* A server that waits for its clients alone has read all requests: it keeps the answer back until
 * another client speaks, as redis does for BLPOP. Datagrams may be lost, or refused in silence. */
static bool waits_for_news(const struct finding_case *of)
{
	return root_waits(of, WAIT_AS_SERVER) && !(waits_on_traits(of->sample->wait.on) &
						   (WAITS_FOR_ACCEPTANCE | WAITS_FOR_DATAGRAM));
}

/* A thread that waits for a process of this host has a chain, once that is found: samples before
 * that are no wait of their own. */
bool takes_server(const struct finding_case *of)
{
	if (of->rooted)
		return !is_text(of->root.why, ROOT_CYCLE) && !waits_for_news(of);
	return of->root.state == STATE_SLEEP && root_waits(of, WAIT_AS_CLIENT) &&
	       of->root.waits_on && !(waits_on_traits(of->root.waits_on) & WAITS_FOR_PEER);
}

bool takes_kernel(const struct finding_case *of)
{
	return of->root.state == STATE_ON && (of->root.syscall || of->sample->thread.kthread == 1);
}

bool takes_none(const struct finding_case *of)
{
	(void)of;
	return false;
}

uint64_t key_one(const struct finding_case *of)
{
	(void)of;
	return 1;
}

uint64_t key_pid(const struct finding_case *of)
{
	return (uint64_t)of->root.pid;
}

uint64_t key_tid(const struct finding_case *of)
{
	return (uint64_t)of->root.tid;
}

/* Texts of things, which differ by case: a report is made in one thread. */
const char *thing_end(const struct finding_case *of)
{
	return of->thing;
}

uint64_t key_end(const struct finding_case *of)
{
	return text_key(of->thing);
}

uint64_t key_device(const struct finding_case *of)
{
	return text_key(device_of(of));
}

const char *thing_waits_on(const struct finding_case *of)
{
	return of->root.waits_on;
}

uint64_t key_waits_on(const struct finding_case *of)
{
	return text_key(of->root.waits_on);
}

/* The lock that a thread waits for itself; that of others in its chain is not known by name. */
const char *thing_lock(const struct finding_case *of)
{
	static struct text text;
	const struct edge_kind_row *kind = &edge_kinds[of->link];

	text_clear(&text);
	if (of->sample->chain.depth == 1)
		kind->lock_add(of->sample, kind->name, &text);
	return text.length ? text_string(&text) : NULL;
}

/* Locks of one kind in one process are one finding: threads that hand locks on among each other
 * share their problem. A lock that processes share is one by its name. */
uint64_t key_lock(const struct finding_case *of)
{
	const char *lock = edge_kinds[of->link].traits & LOCK_OF_HOST ? thing_lock(of) : NULL;

	return lock ? text_key(lock) : hash_u64((uint64_t)of->root.pid) + (uint64_t)of->link;
}

/* The control group whose thread has the CPU, where it is not that of the thread that waits. */
const char *thing_neighbour(const struct finding_case *of)
{
	return of->rooted ? NULL : of->sample->blocker.neighbour;
}

/* What a thread in D waits for: its own words, or the call and its file. */
const char *thing_unready(const struct finding_case *of)
{
	static struct text text;
	const char *file = of->sample->file.name;

	if (of->root.waits_on && *of->root.waits_on != '/')
		return of->root.waits_on;
	if (!of->root.syscall) /* a kernel thread, or a page fault that was soon over */
		return of->root.waits_on ? of->root.waits_on : "no known system call";
	text_clear(&text);
	text_add_string(&text, of->root.syscall);
	if (file)
		text_add_format(&text, " %s", file);
	return text_string(&text);
}

/* Waits in the same call are one finding, whatever the file; those of which nothing is known are
 * one for each program. */
uint64_t key_unready(const struct finding_case *of)
{
	if (of->root.waits_on && *of->root.waits_on != '/')
		return text_key(of->root.waits_on);
	return text_key(of->root.syscall ? of->root.syscall : of->root.comm);
}

/* The other end of a connection to another host, or to a process that is not known. */
const char *thing_server(const struct finding_case *of)
{
	static const char one[] = "1 fd: ";
	const char *text = of->rooted ? NULL : of->sample->wait.onsum;

	return text && !strncmp(text, one, strlen(one)) ? text + strlen(one) : text;
}

/* A server that has a process for each client is one finding by its name. */
uint64_t key_server(const struct finding_case *of)
{
	if (!of->rooted)
		return text_key(thing_server(of));
	return of->root.tid == of->root.pid ? text_key(of->root.comm) : key_pid(of);
}

const char *thing_call(const struct finding_case *of)
{
	return of->root.syscall ? of->root.syscall : "kernel threads";
}
