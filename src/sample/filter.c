/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/filter.h"
#include "base/names.h"

#include <errno.h>
#include <fnmatch.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

/* Reads a number without sign below 2^32 and the character after it. */
static int id_read(const char **text, int64_t *id)
{
	const char *at = *text;

	for (*id = 0; *at >= '0' && *at <= '9'; at++) {
		*id = *id * 10 + (*at - '0');
		if (*id > UINT32_MAX)
			return -EINVAL;
	}
	if (at == *text)
		return -EINVAL;
	*text = at;
	return 0;
}

static int ids_read(struct index *ids, const char *option, const char *text, struct error *e)
{
	const char *at = text;
	int64_t id;

	for (;; at++) {
		if (id_read(&at, &id) || id == 0 || (*at && *at != ','))
			return error_set(e, EINVAL, EXIT_USAGE,
					 "%s %s: ids are positive numbers with commas between",
					 option, text);
		index_put(ids, (uint64_t)id, NULL);
		if (!*at)
			return 0;
	}
}

int filter_set_process(struct filter *filter, const char *text, struct error *e)
{
	if (text[strspn(text, "0123456789,")]) {
		filter->pattern = text;
		return 0;
	}
	filter->by_pid = true;
	return ids_read(&filter->pids, "-p", text, e);
}

int filter_set_threads(struct filter *filter, const char *text, struct error *e)
{
	filter->by_tid = true;
	return ids_read(&filter->tids, "-t", text, e);
}

int filter_set_user(struct filter *filter, const char *text, bool anywhere, struct error *e)
{
	const char *at = text;
	struct passwd *entry;
	int64_t id;

	if (!id_read(&at, &id) && !*at) {
		entry = getpwuid((uid_t)id);
		filter->uid_typed = true;
		filter->uid = id;
		filter->user = entry ? name_of_string(entry->pw_name) : text;
	} else {
		entry = getpwnam(text);
		if (!entry && !anywhere)
			return error_set(e, EINVAL, EXIT_USAGE, "-u %s: no such user", text);
		filter->uid = entry ? (int64_t)entry->pw_uid : ABSENT;
		filter->user = text;
	}
	filter->by_user = true;
	return 0;
}

void filter_add_pid(struct filter *filter, int64_t pid)
{
	filter->by_pid = true;
	filter->pattern = NULL;
	index_put(&filter->pids, (uint64_t)pid, NULL);
}

bool pattern_matches(const char *pattern, const char *text)
{
	if (!strpbrk(pattern, "*?["))
		return strstr(text, pattern) != NULL;
	return !fnmatch(pattern, text, 0);
}

static bool process_matches(const char *pattern, const struct sample *sample)
{
	const char *slash = sample->exe ? strrchr(sample->exe, '/') : NULL;
	const char *base = slash ? slash + 1 : sample->exe;

	return (sample->comm && pattern_matches(pattern, sample->comm)) ||
	       (base && pattern_matches(pattern, base));
}

/* Of a number and a name, the one that was typed decides where the sample has both. */
static bool user_matches(const struct filter *filter, const struct sample *sample)
{
	bool uid_known = sample->uid != ABSENT && filter->uid != ABSENT;

	if (uid_known && (filter->uid_typed || !sample->user))
		return sample->uid == filter->uid;
	return sample->user && !strcmp(sample->user, filter->user);
}

unsigned int filter_needs(const struct filter *filter)
{
	return (filter->by_user ? NEED_USER : 0) | (filter->comm ? NEED_COMM : 0) |
	       (filter->pattern ? NEED_COMM | NEED_EXE : 0);
}

bool filter_excludes(const struct filter *filter, int64_t pid, int64_t tid)
{
	return (filter->by_pid && !index_find(&filter->pids, (uint64_t)pid)) ||
	       (filter->by_tid && !index_find(&filter->tids, (uint64_t)tid));
}

bool filter_accepts(const struct filter *filter, const struct sample *sample)
{
	const struct state_row *state = state_row(sample->state);

	if (!filter->all_states && state && !state->active)
		return false;
	if (filter->on_cpu != filter->off_cpu &&
	    (sample->state == ABSENT || (sample->state == DOING_ON) != filter->on_cpu))
		return false;
	return filter_accepts_thread(filter, sample);
}

bool filter_accepts_thread(const struct filter *filter, const struct sample *sample)
{
	if (filter_excludes(filter, sample->pid, sample->tid))
		return false;
	if (filter->by_user && !user_matches(filter, sample))
		return false;
	if (filter->pattern && !process_matches(filter->pattern, sample))
		return false;
	return !filter->comm || (sample->comm && pattern_matches(filter->comm, sample->comm));
}

void filter_done(struct filter *filter)
{
	index_clear(&filter->pids);
	index_clear(&filter->tids);
	*filter = (struct filter){0};
}
