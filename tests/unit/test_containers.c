/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of containers, from the files of their runtimes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "fake_proc.h"
#include "base/cache.h"
#include "proc/containers.h"
#include "proc/json_strings.h"

#define ID "f75aff467357c5d0ddd47cb7ad87ed38746e018992586ff66198a5c11218f634"
#define ID_2 "2403ccfe427f1dc7b6120dccb9ac58c2f8456950380d587a9f33ea7f00dd303d"
#define NOW (1000 * 1000000000ll)

struct seen {
	char text[512];
};

static void seen_add(void *to, int depth, const char *key, const char *string)
{
	struct seen *seen = to;
	size_t used = strlen(seen->text);

	snprintf(seen->text + used, sizeof(seen->text) - used, "%d %s=%s;", depth, key, string);
}

static void expect_strings(const char *json, const char *expected)
{
	struct seen seen = {""};

	json_strings_visit(json, strlen(json), seen_add, &seen);
	assert_string_equal(seen.text, expected);
}

static void strings_of_json(void **state)
{
	(void)state;
	expect_strings("{\"a\": \"b\", \"c\": {\"d\": \"e\\\"}\"}, \"f\": \"\"}",
		       "1 a=b;2 d=e\"};1 f=;");
	expect_strings("[{\"id\":\"1\",\"names\":[\"x\",\"y\"],\"n\":3,\"m\":\"z\"}]",
		       "2 id=1;3 names=x;3 names=y;2 m=z;");
	expect_strings("{\"a\":{\"b\":{}},\"c\":null,\"d\":\"e\"}", "1 d=e;");
	/* no JSON, or cut off */
	expect_strings("", "");
	expect_strings("{\"a\":\"b", "1 a=b;");
	expect_strings("}}]]{\"a\":\"b\\", "1 a=b\\;");
	expect_strings("\"alone\"", "0 =alone;");
	expect_strings("[[[[[[[[[[[[[[[[[[[[\"deep\"]]]]]]]]]]]]]]]]]]]]", "");
}

struct scene {
	struct fake_proc proc;
	struct cache containers;
};

static void scene_put(struct scene *scene, const char *path, const char *text)
{
	char name[512];

	/* fake_proc_put() writes below PID/task/TID */
	snprintf(name, sizeof(name), "../../root%s", path);
	fake_proc_put(&scene->proc, 1, 1, "comm", "init\n");
	fake_proc_put(&scene->proc, 1, 1, name, text);
}

static const char *name_at(struct scene *scene, const char *cgroup, int64_t now_ns)
{
	return container_name(&scene->containers, scene->proc.root, cgroup, now_ns);
}

static void names_of_runtimes(void **state)
{
	struct scene *scene = *state;

	scene_put(scene, "/var/lib/docker/containers/" ID "/config.v2.json",
		  "{\"Config\":{\"Name\":\"no\"},\"ID\":\"" ID "\",\"Name\":\"/web\"}");
	scene_put(scene, "/var/lib/containers/storage/overlay-containers/containers.json",
		  "[{\"id\":\"" ID "\",\"names\":[\"no\"]},"
		  "{\"id\":\"" ID_2 "\",\"names\":[\"db\",\"no\"],\"image\":\"no\"}]");
	assert_string_equal(name_at(scene, "/system.slice/docker-" ID ".scope", NOW), "web");
	assert_string_equal(name_at(scene, "/docker/" ID, NOW), "web");
	assert_string_equal(name_at(scene, "/machine.slice/libpod-" ID_2 ".scope", NOW), "db");
	assert_string_equal(name_at(scene, "/lxc.payload.c1/init.scope", NOW), "c1");
	assert_null(name_at(scene, "/system.slice/ssh.service", NOW));
}

static void names_of_pods(void **state)
{
	struct scene *scene = *state;

	scene_put(scene, "/run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID "/config.json",
		  "{\"process\":{\"args\":[\"a\"]},\"annotations\":"
		  "{\"io.kubernetes.cri.container-name\":\"nginx\"}}");
	scene_put(scene, "/run/containers/storage/overlay-containers/" ID_2 "/userdata/config.json",
		  "{\"annotations\":{\"io.kubernetes.container.name\":\"redis\"}}");
	assert_string_equal(name_at(scene, "/kubepods/pod1/" ID, NOW), "nginx");
	assert_string_equal(name_at(scene, "/kubepods/pod1/crio-" ID_2, NOW), "redis");
}

static void names_age(void **state)
{
	struct scene *scene = *state;
	const char *path = "/var/lib/docker/containers/" ID "/config.v2.json";

	assert_null(name_at(scene, "/docker/" ID, NOW));
	scene_put(scene, path, "{\"Name\":\"/one\"}");
	assert_null(name_at(scene, "/docker/" ID, NOW + CONTAINERS_RECHECK_NS - 1));
	assert_string_equal(name_at(scene, "/docker/" ID, NOW + CONTAINERS_RECHECK_NS), "one");
	scene_put(scene, path, "no JSON");
	assert_null(name_at(scene, "/docker/" ID, NOW + 2 * CONTAINERS_RECHECK_NS));
}

static int setup(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	fake_proc_init(&scene->proc);
	containers_init(&scene->containers);
	*state = scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *scene = *state;

	fake_proc_done(&scene->proc);
	cache_done(&scene->containers);
	names_clear();
	free(scene);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_of_json),
		cmocka_unit_test_setup_teardown(names_of_runtimes, setup, teardown),
		cmocka_unit_test_setup_teardown(names_of_pods, setup, teardown),
		cmocka_unit_test_setup_teardown(names_age, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
