/* SPDX-License-Identifier: GPL-2.0-or-later */
/* User names by uid. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/names.h"
#include "base/cache.h"
#include "proc/users.h"

#define UNKNOWN_UID 4011222333ll /* uid above those of adduser, systemd and subuid ranges */

static void names(void **state)
{
	struct cache users;

	users_init(&users);
	assert_string_equal(user_name(&users, 0, 1), "root");
	assert_string_equal(user_name(&users, UNKNOWN_UID, 1), "4011222333");
	assert_ptr_equal(user_name(&users, 0, 2), name_transient_string("root"));
	assert_int_equal(users.count, 2);
	assert_string_equal(user_name(&users, 0, 1 + USERS_RECHECK_NS), "root");
	cache_done(&users);
}

static void bounded(void **state)
{
	struct cache users;

	users_init(&users);
	assert_int_equal(users.entries_max, USERS_MAX);
	users.entries_max = 50; /* each user is a search of the user database */
	for (int64_t i = 0; i < 60; i++)
		assert_non_null(user_name(&users, UNKNOWN_UID + i, 1));
	assert_int_equal(users.count, 50);
	/* a name that was not cached is still right */
	assert_string_equal(user_name(&users, 0, 1), "root");
	assert_string_equal(user_name(&users, UNKNOWN_UID, 1), "4011222333");
	cache_done(&users);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(bounded),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	names_clear();
	return failed;
}
