/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/users.h"
#include "base/cache.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "keeper/avoid.h"
#include "keeper/keeper.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

#define RECORD_BYTES 1024
#define RECORD_BYTES_MAX 65536

struct user {
	struct cache_entry entry;
	int64_t read_ns;
	const char *name;
};

void users_init(struct cache *users)
{
	*users = (struct cache){.entry_bytes = sizeof(struct user), .entries_max = USERS_MAX};
}

static const char *user_read(int64_t uid)
{
	struct passwd record, *found = NULL;
	const char *name = NULL;
	char *bytes = NULL, number[24];
	int err = ERANGE;

	keeper_progress()->users_ns = clock_monotonic_ns();
	for (size_t size = RECORD_BYTES;
	     !avoids_file(AVOID_USERS) && err == ERANGE && size <= RECORD_BYTES_MAX; size *= 4) {
		bytes = memory_resize(bytes, size, 1);
		err = getpwuid_r(uid, &record, bytes, size, &found);
	}
	keeper_progress()->users_ns = 0;
	if (!err && found && *found->pw_name)
		name = name_transient_string(found->pw_name);
	free(bytes);
	if (name)
		return name;
	snprintf(number, sizeof(number), "%lld", (long long)uid);
	return name_transient_string(number);
}

const char *user_name(struct cache *users, int64_t uid, int64_t now_ns)
{
	bool added;
	struct user *user = cache_get(users, uid, now_ns, &added);

	if (added || now_ns - user->read_ns >= USERS_RECHECK_NS) {
		user->name = user_read(uid);
		user->read_ns = now_ns;
	}
	return user->name;
}
