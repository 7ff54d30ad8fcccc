/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/sample.h"
#include "sample/script.h"
#include "base/names.h"
#include "base/text.h"
#include "sample/cgroup_names.h"
#include "sample/query_fold.h"
#include "sample/waits_on.h"

#include <string.h>

static const struct state_row state_table[STATE_COUNT] = {
	[STATE_ON] = {"ON", "on a CPU", "", true},
	[STATE_RQ] = {"RQ", "runnable, waiting for a CPU", "R", true},
	[STATE_DISK] = {"D", "uninterruptible sleep: disk, or a kernel lock", "D", true},
	[STATE_SLEEP] = {"S", "interruptible sleep", "S", false},
	[STATE_STOPPED] = {"T", "stopped by a signal or a tracer", "Tt", false},
	[STATE_IDLE] = {"I", "idle kernel thread", "I", false},
	[STATE_ZOMBIE] = {"Z", "dead, not yet waited for", "ZXx", false},
	[STATE_PARKED] = {"P", "parked kernel thread", "P", false},
};

const struct state_row *state_row(int64_t state)
{
	return state >= 0 && state < STATE_COUNT ? &state_table[state] : NULL;
}

int64_t state_of_name(const char *name)
{
	for (int i = 0; i < STATE_COUNT; i++)
		if (!strcmp(state_table[i].name, name))
			return i;
	return ABSENT;
}

int64_t state_of_proc_letter(char letter)
{
	for (int i = 0; letter && i < STATE_COUNT; i++)
		if (strchr(state_table[i].proc, letter))
			return i;
	return ABSENT;
}

/* What was derived from some texts: of one need each. */
struct derived {
	const char *from;
	const char *to[4];
};

#define DERIVED_BITS 9

/* Texts are interned, so that an address stands for its text until names are dropped. */
struct derived_cache {
	struct derived slots[1 << DERIVED_BITS];
	uint64_t dropped; /* see names_dropped_since() */
};

/* What to derive from a text, into scratch or to; scratch is empty before. */
typedef void derive_function(struct text *scratch, const char *from, const char **to);

static const struct derived *derived_from(struct derived_cache *cache, const char *from,
					  derive_function *derive)
{
	struct derived *slot = &cache->slots[name_place(from, DERIVED_BITS)];
	static struct text scratch;

	if (names_dropped_since(&cache->dropped))
		memset(cache->slots, 0, sizeof(cache->slots));
	if (slot->from == from)
		return slot;
	*slot = (struct derived){.from = from};
	text_clear(&scratch);
	derive(&scratch, from, slot->to);
	return slot;
}

static void digits_fold(struct text *scratch, const char *from, const char **to)
{
	if (!strpbrk(from, "0123456789")) {
		*to = name_transient_string(from);
		return;
	}
	text_add_digits_folded(scratch, from);
	*to = name_transient(scratch->bytes, scratch->length);
}

static void waits_fold(struct text *scratch, const char *from, const char **to)
{
	waits_on_fold(scratch, from);
	*to = name_transient(scratch->bytes, scratch->length);
}

static void query_derive(struct text *scratch, const char *from, const char **to)
{
	query_fold(scratch, from);
	if (scratch->length)
		*to = name_transient(scratch->bytes, scratch->length);
}

static void script_derive(struct text *scratch, const char *from, const char **to)
{
	size_t length;
	const char *script = process_script(from, &length);

	(void)scratch;
	if (script)
		*to = name_transient(script, length);
}

static void cgroup_derive(struct text *scratch, const char *from, const char **to)
{
	struct cgroup_names names;
	bool hexadecimal;

	(void)scratch;
	cgroup_names_find(from, &names);
	hexadecimal = strspn(names.container, "0123456789abcdef") == CONTAINER_ID_LENGTH;
	if (*names.container)
		to[0] = name_transient(names.container,
				       hexadecimal ? CONTAINER_ID_SHORT : CGROUP_NAME_SIZE);
	if (names.runtime && *names.runtime)
		to[1] = name_transient(names.runtime, CGROUP_NAME_SIZE);
	if (*names.pod)
		to[2] = name_transient(names.pod, CGROUP_NAME_SIZE);
	if (*names.unit)
		to[3] = name_transient(names.unit, CGROUP_NAME_SIZE);
}

/* Names that the sample has already, as a recording may, stay. */
static void cgroup_names_put(struct sample_cgroup *cgroup, const char *const *names)
{
	const char **fields[] = {&cgroup->container, &cgroup->container_runtime, &cgroup->pod,
				 &cgroup->unit};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (!*fields[i])
			*fields[i] = names[i];
}

void sample_derive(struct sample *sample, uint64_t needs)
{
	static struct derived_cache comms, scripts, files, waits, queries, cgroups;

	if ((needs & NEED_COMMSUM) && sample->thread.comm)
		sample->thread.commsum =
			*derived_from(&comms, sample->thread.comm, digits_fold)->to;
	if ((needs & NEED_SCRIPT) && sample->process.cmdline)
		sample->process.script =
			*derived_from(&scripts, sample->process.cmdline, script_derive)->to;
	if ((needs & NEED_FILENAMESUM) && sample->file.name)
		sample->file.namesum = *derived_from(&files, sample->file.name, digits_fold)->to;
	if ((needs & NEED_WAITS_ONSUM) && sample->wait.on && *sample->wait.on)
		sample->wait.onsum = *derived_from(&waits, sample->wait.on, waits_fold)->to;
	if ((needs & NEED_QUERYSUM) && sample->app.query)
		sample->app.querysum = *derived_from(&queries, sample->app.query, query_derive)->to;
	if ((needs & NEED_CGROUP_NAMES) && sample->cgroup.path)
		cgroup_names_put(&sample->cgroup,
				 derived_from(&cgroups, sample->cgroup.path, cgroup_derive)->to);
}
