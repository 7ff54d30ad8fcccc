/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/edge_kind.h"
#include "base/text.h"
#include "sample/sample.h"
#include "sample/waits_on.h"

#include <string.h>

/* Adds "mutex 0x55d0c8": the address is the first argument of futex(2). */
static void lock_address(const struct sample *sample, const char *name, struct text *text)
{
	if (sample->call.arg[0] != ABSENT)
		text_add_format(text, "%s %#llx", name, (unsigned long long)sample->call.arg[0]);
}

/* Adds "GIL": a process has one. */
static void lock_name(const struct sample *sample, const char *name, struct text *text)
{
	(void)sample;
	text_add_string(text, name);
}

/* Adds "monitor of Order 0x7f21c3a0" or "ReentrantLock 0x7f21c3a0", with which waits_on begins. */
static void lock_monitor(const struct sample *sample, const char *name, struct text *text)
{
	const char *waits_on = sample->wait.on,
		   *address = waits_on ? strstr(waits_on, " 0x") : NULL;

	(void)name;
	if (address)
		text_add(text, waits_on,
			 (size_t)(address + 1 - waits_on) + strcspn(address + 1, " ,"));
	else if (waits_on)
		text_add_string(text, waits_on);
}

/* Adds "file lock /var/lib/x". */
static void lock_file(const struct sample *sample, const char *name, struct text *text)
{
	if (sample->file.name)
		text_add_format(text, "%s %s", name, sample->file.name);
}

/* Adds "rtnl_mutex" or "i_rwsem of /var/lib/x" if its name is known, which its holder follows.
 * Otherwise the file of the waiting call distinguishes the kernel's locks, as their addresses must
 * not be shown: "kernel lock /var/lib/x". */
static void lock_kernel(const struct sample *sample, const char *name, struct text *text)
{
	const char *on = sample->wait.on;
	const char *about = sample->file.name ? sample->file.name : on ? on : sample->call.name;
	const char *held = on ? strstr(on, WAITS_ON_HOLDER) : NULL;

	if (held)
		text_add(text, on, (size_t)(held - on));
	else if (on && (text_ends(on, WAITS_ON_MUTEX) ||
			!strncmp(on, WAITS_ON_MAP, strlen(WAITS_ON_MAP))))
		text_add_string(text, on);
	else if (about)
		text_add_format(text, "%s %s", name, about);
}

/* Adds "database lock (idle in transaction)", with which waits_on begins. */
static void lock_waits_on(const struct sample *sample, const char *name, struct text *text)
{
	const char *waits_on = sample->wait.on ? sample->wait.on : name;

	text_add(text, waits_on, strcspn(waits_on, ","));
}

#define ROW(id, traits, lock, not_done, before, name, after) [id] = {name, traits, not_done, lock},
const struct edge_kind_row edge_kinds[EDGE_KIND_COUNT] = {EDGE_KIND_ROWS(ROW)};

enum edge_kind edge_kind_of(const char *name)
{
	for (int kind = EDGE_NONE + 1; name && kind < EDGE_KIND_COUNT; kind++)
		if (!strcmp(edge_kinds[kind].name, name))
			return (enum edge_kind)kind;
	return EDGE_NONE;
}
