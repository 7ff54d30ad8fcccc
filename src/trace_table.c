/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "trace_table.h"
#include "kernel/probe_table.h"
#include "live_block.h"
#include "live_sample.h"
#include "lookup/devices.h"

#include <errno.h>
#include <string.h>

static void offcpu_tell(const struct latency_key *key, struct sample *sample, bool *compat)
{
	int32_t nr = (int32_t)key->what[OFFCPU_SYSCALL];

	sample->state = task_state_doing(key->what[OFFCPU_STATE]);
	if (nr >= 0)
		sample->syscall_nr = nr;
	*compat = key->what[OFFCPU_COMPAT];
}

static void block_tell(const struct latency_key *key, struct sample *sample, bool *compat)
{
	(void)compat;
	sample->io_dev = device_name(key->what[BLOCK_DEV]);
	sample->io_op = block_op_name(key->what[BLOCK_OP]);
}

#define BLOCK_GROUPS (1u << GROUP_BLOCK_QUEUE | 1u << GROUP_BLOCK_ISSUE | 1u << GROUP_BLOCK_DONE)

const struct trace_row trace_rows[LATENCY_KIND_COUNT] = {
	[LATENCY_RUNQ] = {{"runq", "waits for a CPU, from wake-up or preemption on", NULL, false},
			  1u << GROUP_SWITCH | 1u << GROUP_WAKE,
			  NULL},
	[LATENCY_OFFCPU] = {{"offcpu", "sleeps, from leaving the CPU to the wake-up",
			     "state,syscall", false},
			    1u << GROUP_SWITCH | 1u << GROUP_WAKE,
			    offcpu_tell},
	[LATENCY_BLOCK] = {{"block", "requests to block devices, from issue to completion",
			    "io_dev,io_op", true},
			   BLOCK_GROUPS,
			   block_tell},
	[LATENCY_BLOCKQ] = {{"blockq", "the same, from when a thread makes them to their issue",
			     "io_dev,io_op", true},
			    BLOCK_GROUPS,
			    block_tell},
};

static const char *kind_name_at(void *from, size_t at)
{
	(void)from;
	return at < LATENCY_KIND_COUNT ? trace_rows[at].kind.name : NULL;
}

static int kind_unknown(const char *name, struct error *e)
{
	const char *nearest = text_nearest(name, kind_name_at, NULL);

	if (nearest)
		return error_set(e, EINVAL, EXIT_USAGE,
				 "--trace: no kind is named '%s': did you mean %s? (tsnap --list "
				 "prints all)",
				 name, nearest);
	return error_set(e, EINVAL, EXIT_USAGE,
			 "--trace: no kind is named '%s'; tsnap --list prints all", name);
}

int trace_kinds_parse(const char *names, uint32_t *kinds, struct error *e)
{
	uint32_t parsed = 0;
	struct text name = {0};
	int err = 0;

	for (;;) {
		size_t length = strcspn(names, ","), kind = 0;

		text_clear(&name);
		text_add(&name, names, length);
		while (kind < LATENCY_KIND_COUNT &&
		       strcmp(trace_rows[kind].kind.name, text_string(&name)) != 0)
			kind++;
		if (kind == LATENCY_KIND_COUNT)
			err = kind_unknown(text_string(&name), e);
		else
			parsed |= 1u << kind;
		if (err || !names[length])
			break;
		names += length + 1;
	}
	text_done(&name);
	if (!err)
		*kinds = parsed;
	return err;
}

unsigned int trace_groups_of(uint32_t kinds)
{
	unsigned int groups = 0;

	for (int kind = 0; kind < LATENCY_KIND_COUNT; kind++)
		if (kinds >> kind & 1)
			groups |= trace_rows[kind].groups;
	return groups;
}

void trace_kinds_describe(struct text *text)
{
	text_add_string(text, "\nKinds of --trace (each is told by the columns of -g that it has "
			      "and by those in brackets):\n");
	for (int kind = 0; kind < LATENCY_KIND_COUNT; kind++) {
		const struct trace_kind *told = &trace_rows[kind].kind;

		text_add_format(text, "  %-12s     %s%s%s%s\n", told->name, told->help,
				told->columns ? " [" : "", told->columns ? told->columns : "",
				told->columns ? "]" : "");
	}
}
