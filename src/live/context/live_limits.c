/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/context/live_limits.h"
#include "base/descriptors.h"
#include "base/names.h"
#include "live/context/live_context.h"
#include "proc/cgroup.h"
#include "proc/proc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define MEGABYTE (1ll << 20)
#define CGROUP_BYTES 4096

/* A limit of control groups, and what tsnap may take of it: with less room, it explains a
 * failure. */
struct group_limit {
	const char *controller, *most_v1, *most, *used_v1, *used;
	int64_t room, unit;
	const char *words;
};

static const struct group_limit group_processes = {
	"pids",		"pids.max", "pids.max", "pids.current",
	"pids.current", 16,	    1,		"processes and threads"};
static const struct group_limit group_memory = {
	"memory",	  "memory.limit_in_bytes", "memory.max", "memory.usage_in_bytes",
	"memory.current", 150 * MEGABYTE,	   MEGABYTE,	 "MB of memory"};

static bool filtered; /* a filter of system calls was in force when tsnap began */

void live_limits_begin(void)
{
	int mode = prctl(PR_GET_SECCOMP);

	/* the kernel's own refusal is EINVAL: another one is a filter's */
	filtered = mode > 0 || (mode < 0 && errno != EINVAL);
}

/* Adds the innermost group that leaves too little room. */
static void group_explain(const struct group_limit *limit, struct text *to)
{
	const int64_t own = proc_own_pid(PROC);
	char text[CGROUP_BYTES], group[PATH_MAX];
	const char *path = NULL;
	struct cgroup_mount mount;
	size_t length = 0;

	cgroup_mount_find(&mount, PROC, limit->controller);
	if (mount.path && own && proc_file_read(PROC, own, own, "cgroup", text, sizeof(text)) > 0)
		path = cgroup_of_controller(text, limit->controller, &length);
	for (; path && length; length = cgroup_outer(path, length)) {
		int64_t most, used;

		snprintf(group, sizeof(group), "%.*s", (int)length, path);
		most = cgroup_mount_number(&mount, group, mount.v1 ? limit->most_v1 : limit->most);
		used = cgroup_mount_number(&mount, group, mount.v1 ? limit->used_v1 : limit->used);
		if (most < 0 || most - used >= limit->room)
			continue;
		text_add_format(
			to,
			"control group %s may have %lld %s: raise its %s (tsnap takes up to %lld)",
			group, (long long)(most / limit->unit), limit->words,
			mount.v1 ? limit->most_v1 : limit->most,
			(long long)(limit->room / limit->unit));
		break;
	}
	cgroup_mount_done(&mount);
}

/* Returns the soft limit; 0: there is none. */
static unsigned long long limit_of(int what)
{
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

	getrlimit(what, &limit);
	return limit.rlim_cur == RLIM_INFINITY ? 0 : (unsigned long long)limit.rlim_cur;
}

static void separate(struct text *to, size_t before)
{
	if (to->length > before)
		text_add_string(to, ", ");
}

static void memory_explain(struct text *to)
{
	static const struct {
		int what;
		const char *words;
	} rows[] = {{RLIMIT_AS, "addresses (ulimit -v)"}, {RLIMIT_DATA, "data (ulimit -d)"}};
	const size_t before = to->length;

	group_explain(&group_memory, to);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned long long bytes = limit_of(rows[i].what);

		if (!bytes)
			continue;
		separate(to, before);
		text_add_format(to, "this process may have %llu MB of %s", bytes / MEGABYTE,
				rows[i].words);
	}
}

static void processes_explain(struct text *to)
{
	const unsigned long long processes = limit_of(RLIMIT_NPROC);
	const size_t before = to->length;

	group_explain(&group_processes, to);
	/* the limit does not bind root, setrlimit(2) */
	if (!processes || !getuid())
		return;
	separate(to, before);
	text_add_format(to, "this user may have %llu processes and threads (ulimit -u)", processes);
}

void live_limits_explain(int err, struct text *to)
{
	switch (err) {
	case EMFILE:
		text_add_format(to,
				"this process may only open %llu files: raise ulimit -n to %d at "
				"least",
				limit_of(RLIMIT_NOFILE), DESCRIPTORS_LEAST);
		break;
	case ENFILE:
		text_add_string(to, "the host has too many open files: sysctl fs.file-max");
		break;
	case ENOMEM:
		memory_explain(to);
		break;
	case EAGAIN:
		processes_explain(to);
		break;
	case EPERM:
	case ENOSYS:
		if (filtered)
			text_add_string(to, "a filter of system calls (seccomp) is in force: "
					    "strace -f shows what it refuses");
		break;
	}
}

const char *live_limits_words(const char *what, const char *call, int err)
{
	struct text words = {0}, limits = {0};
	const char *name;

	live_limits_explain(err, &limits);
	text_add_format(&words, "%s (%s: %s%s%s)", what, call, strerror(err),
			limits.length ? ", " : "", text_string(&limits));
	name = name_of_string(text_string(&words));
	text_done(&words);
	text_done(&limits);
	return name;
}
