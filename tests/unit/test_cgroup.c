/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of the paths in /proc/TID/cgroup tells most. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "lookup/cgroup.h"

static void expect(const char *text, const char *path)
{
	size_t length = 0;
	const char *chosen = cgroup_choose(text, &length);

	if (!path) {
		assert_null(chosen);
		return;
	}
	if (!chosen || length != strlen(path) || memcmp(chosen, path, length))
		fail_msg("%s: %.*s, not %s", text, (int)length, chosen ? chosen : "", path);
}

static void version_2(void **state)
{
	(void)state;
	expect("0::/\n", "/");
	expect("0::/system.slice/a.service\n", "/system.slice/a.service");
	expect("0::/a (deleted)\n", "/a (deleted)");
	expect("0::/../b\n", "/../b");
}

static void version_1_and_mixed(void **state)
{
	(void)state;
	expect("9:cpu:/x\n1:name=systemd:/user.slice\n0::/\n", "/user.slice");
	expect("9:cpu:/x\n1:name=systemd:/user.slice\n0::/user.slice/s.scope\n",
	       "/user.slice/s.scope");
	expect("3:name=systemd:/\n2:memory:/pod/1\n1:cpu:/pod/2\n0::/\n", "/pod/1");
	expect("2:cpu,cpuacct:/\n1:name=systemd:/\n", "/");
	expect("2:name=systemdx:/no\n1:name=systemd:/yes\n", "/yes");
}

static void hostile(void **state)
{
	(void)state;
	expect("", NULL);
	expect("0::/cut off", NULL);
	expect("1:cpu:/whole\n0::/cut off", "/whole");
	expect("0::/a:b::c\n", "/a:b::c");
	expect("no colon\n1:one\n:\n::\n:::\n1:cpu:relative\n", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_2),
		cmocka_unit_test(version_1_and_mixed),
		cmocka_unit_test(hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
