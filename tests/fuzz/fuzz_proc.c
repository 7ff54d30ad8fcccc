/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parsers of /proc text, each over the same bytes. */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "proc/proc_words.h"
#include "proc/cgroup.h"
#include "sample/cgroup_names.h"
#include "proc/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void stat_try(const char *text)
{
	struct proc_stat stat;

	if (proc_stat_parse(text, &stat))
		return;
	must(memchr(stat.comm, 0, sizeof(stat.comm)) != NULL);
	must(stat.tid >= 0 && stat.tid <= INT_MAX && stat.ppid >= 0 && stat.ppid <= INT_MAX);
	must(stat.cpu >= 0 && stat.cpu <= INT_MAX && stat.state);
}

static void syscall_try(const char *text)
{
	struct proc_syscall call;

	if (!proc_syscall_parse(text, &call))
		must(call.nr >= -1 && (!call.running || call.nr == -1));
}

static void ids_try(const char *text)
{
	int64_t uid, tgid;

	if (!proc_ids_parse(text, &uid, &tgid))
		must(uid >= 0 && uid <= UINT32_MAX && tgid >= 0 && tgid <= INT_MAX);
}

static void namespace_ids_try(const char *text)
{
	int64_t pid, tid;

	if (!proc_namespace_ids_parse(text, &pid, &tid))
		must(pid >= 0 && pid <= INT_MAX && tid >= 0 && tid <= INT_MAX);
}

static void cgroup_try(const char *text)
{
	struct cgroup_names names;
	size_t length;
	const char *path = cgroup_choose(text, &length);

	if (path)
		must(*path == '/' && path >= text && path + length <= text + strlen(text) &&
		     !memchr(path, '\n', length));
	cgroup_names_find(text, &names);
	must(strlen(names.container) < CGROUP_NAME_SIZE && strlen(names.pod) < CGROUP_NAME_SIZE &&
	     strlen(names.unit) < CGROUP_NAME_SIZE);
}

static void proc_words_try(const char *text)
{
	static const unsigned int needs[] = {NEED_STAT, NEED_STATUS, NEED_IO};

	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		struct proc_values values = *proc_values_absent();
		char *copy = strdup(text);

		if (copy)
			proc_words_parse(needs[i], copy, &values);
		/* words of other files are left alone */
		for (size_t j = 0; j < sample_column_count; j++)
			if (column_is_proc_value(&sample_columns[j]) &&
			    sample_columns[j].needs != needs[i])
				must(value_is_absent(
					&sample_columns[j],
					values.slots[proc_values_slot(&sample_columns[j])]));
		free(copy);
	}
	names_clear();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	stat_try(text);
	syscall_try(text);
	ids_try(text);
	namespace_ids_try(text);
	cgroup_try(text);
	proc_words_try(text);
	free(text);
	return 0;
}
