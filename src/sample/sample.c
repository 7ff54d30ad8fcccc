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

static const char *digits_folded(const char *string, struct text *scratch)
{
	if (!strpbrk(string, "0123456789"))
		return name_transient_string(string);
	text_clear(scratch);
	text_add_digits_folded(scratch, string);
	return name_transient(scratch->bytes, scratch->length);
}

static const char *waits_folded(const char *waits_on, struct text *scratch)
{
	text_clear(scratch);
	waits_on_fold(scratch, waits_on);
	return name_transient(scratch->bytes, scratch->length);
}

static const char *query_folded(const char *query, struct text *scratch)
{
	text_clear(scratch);
	query_fold(scratch, query);
	return scratch->length ? name_transient(scratch->bytes, scratch->length) : NULL;
}

static void text_put(const char **field, const char *text, size_t length)
{
	if (!*field && text && *text)
		*field = name_transient(text, length);
}

static void cgroup_derive(struct sample *sample)
{
	struct cgroup_names names;
	bool hexadecimal;

	cgroup_names_find(sample->cgroup.path, &names);
	hexadecimal = strspn(names.container, "0123456789abcdef") == CONTAINER_ID_LENGTH;
	text_put(&sample->cgroup.container, names.container,
		 hexadecimal ? CONTAINER_ID_SHORT : CGROUP_NAME_SIZE);
	text_put(&sample->cgroup.container_runtime, names.runtime, CGROUP_NAME_SIZE);
	text_put(&sample->cgroup.pod, names.pod, CGROUP_NAME_SIZE);
	text_put(&sample->cgroup.unit, names.unit, CGROUP_NAME_SIZE);
}

static void script_derive(struct sample *sample)
{
	size_t length;
	const char *script = process_script(sample->process.cmdline, &length);

	sample->process.script = script ? name_transient(script, length) : NULL;
}

void sample_derive(struct sample *sample, uint64_t needs)
{
	static struct text scratch;

	if ((needs & NEED_COMMSUM) && sample->thread.comm)
		sample->thread.commsum = digits_folded(sample->thread.comm, &scratch);
	if ((needs & NEED_SCRIPT) && sample->process.cmdline)
		script_derive(sample);
	if ((needs & NEED_FILENAMESUM) && sample->file.name)
		sample->file.namesum = digits_folded(sample->file.name, &scratch);
	if ((needs & NEED_WAITS_ONSUM) && sample->wait.on && *sample->wait.on)
		sample->wait.onsum = waits_folded(sample->wait.on, &scratch);
	if ((needs & NEED_QUERYSUM) && sample->app.query)
		sample->app.querysum = query_folded(sample->app.query, &scratch);
	if ((needs & NEED_CGROUP_NAMES) && sample->cgroup.path)
		cgroup_derive(sample);
}
