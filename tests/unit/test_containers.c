/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of containers, from the files of their runtimes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "fake_proc.h"
#include "base/cache.h"
#include "proc/containers.h"

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
	expect_strings("{\"a\": \"b\", \"c\": {\"d\": \"e\\\"}\"}, \"f\": \"\"}",
		       "1 a=b;2 d=e\"};1 f=;");
	expect_strings("[{\"id\":\"1\",\"names\":[\"x\",\"y\"],\"n\":3,\"m\":\"z\"}]",
		       "2 id=1;3 names=x;3 names=y;2 m=z;");
	expect_strings("{\"a\":{\"b\":{}},\"c\":null,\"d\":\"e\"}", "1 d=e;");
	/* not JSON, or cut off */
	expect_strings("", "");
	expect_strings("{\"a\":\"b", "1 a=b;");
	expect_strings("}}]]{\"a\":\"b\\", "1 a=b\\;");
	expect_strings("\"alone\"", "0 =alone;");
	expect_strings("[[[[[[[[[[[[[[[[[[[[\"deep\"]]]]]]]]]]]]]]]]]]]]", "");
}

struct scene {
	struct fake_proc proc;
	struct containers containers;
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
	return container_name(&scene->containers, scene->proc.root, cgroup, 0, now_ns);
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

/* Names of the kubelet are in the names of files, for all runtimes. */
static void names_of_the_kubelet(void **state)
{
	struct scene *scene = *state;
	struct containers *cache = &scene->containers;
	const char *root = scene->proc.root, *name;

	scene_put(scene, "/var/log/containers/web-1_shop_nginx-" ID ".log", "x");
	scene_put(scene, "/var/log/containers/-" ID_2 ".log", "x");
	scene_put(scene, "/var/log/pods/other_web-2_6759a1ae-36ca-48a8-b20a-b0b5c8a90fb8/x", "x");
	scene_put(scene, "/var/log/pods/shop_web-1_5759a1ae-36ca-48a8-b20a-b0b5c8a90fb8/x", "x");
	assert_string_equal(name_at(scene, "/kubepods/pod1/" ID, NOW), "nginx");
	assert_null(name_at(scene, "/kubepods/pod1/" ID_2, NOW));
	name = pod_name(cache, root,
			"/kubepods.slice/kubepods-pod5759a1ae_36ca_48a8_b20a_b0b5c8a90fb8.slice/"
			"cri-containerd-" ID ".scope",
			NOW);
	assert_non_null(name);
	assert_string_equal(name, "shop/web-1");
	assert_null(pod_name(cache, root, "/kubepods/pod1/" ID, NOW));
	assert_null(pod_name(cache, root, "/docker/" ID, NOW));
}

static void names_at_other_places(void **state)
{
	struct scene *scene = *state;

	scene_put(scene, "/var/snap/docker/common/var-lib-docker/containers/" ID "/config.v2.json",
		  "{\"Name\":\"/snapped\"}");
	scene_put(scene,
		  "/run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/" ID_2 "/config.json",
		  "{\"annotations\":{\"io.kubernetes.cri.container-name\":\"small\"}}");
	assert_string_equal(name_at(scene, "/docker/" ID, NOW), "snapped");
	assert_string_equal(name_at(scene, "/kubepods/pod1/" ID_2, NOW), "small");
}

static void names_age(void **state)
{
	struct scene *scene = *state;
	const char *path = "/var/lib/docker/containers/" ID "/config.v2.json";

	assert_null(name_at(scene, "/docker/" ID, NOW));
	scene_put(scene, path, "{\"Name\":\"/one\"}");
	assert_null(name_at(scene, "/docker/" ID, NOW + CONTAINERS_UNNAMED_NS - 1));
	assert_string_equal(name_at(scene, "/docker/" ID, NOW + CONTAINERS_UNNAMED_NS), "one");
	scene_put(scene, path, "no JSON");
	assert_string_equal(name_at(scene, "/docker/" ID, NOW + CONTAINERS_RECHECK_NS), "one");
	assert_null(name_at(scene, "/docker/" ID, NOW + 2 * CONTAINERS_RECHECK_NS));
}

static void names_of_storage_drivers(void **state)
{
	struct scene *scene = *state;

	scene_put(scene, "/var/lib/containers/storage/vfs-containers/volatile-containers.json",
		  "[{\"id\":\"" ID "\",\"names\":[\"brief\"]}]");
	assert_string_equal(name_at(scene, "/libpod_parent/libpod-" ID, NOW), "brief");
}

static bool monitor_names(const char *words, size_t length, const char *expected)
{
	char name[8] = "";

	return container_monitor_parse(words, length, ID, name, sizeof(name)) &&
	       !strcmp(name, expected);
}
#define MONITOR_NAMES(words, expected) monitor_names(words, sizeof(words) - 1, expected)

static void names_in_arguments(void **state)
{
	static const char whole[] = "conmon\0-c\0" ID "\0-n\0web\0";

	assert_true(MONITOR_NAMES("conmon\0-c\0" ID "\0-u\0x\0-n\0web\0", "web"));
	assert_true(MONITOR_NAMES("conmon\0--name\0web\0--cid\0" ID "\0", "web"));
	assert_false(MONITOR_NAMES("conmon\0-c\0" ID_2 "\0-n\0web\0", "web"));
	assert_false(MONITOR_NAMES("conmon\0-c\0" ID "\0-n\0longname\0", "longname"));
	assert_false(MONITOR_NAMES("conmon\0-c\0" ID "\0-n\0\0", ""));
	for (size_t length = 0; length < sizeof(whole) - 1; length++)
		assert_false(monitor_names(whole, length, "web"));
	assert_true(monitor_names(whole, sizeof(whole) - 1, "web"));
}

static void process_put(struct scene *scene, int pid, int parent, const char *comm)
{
	char line[512];
	int length = snprintf(line, sizeof(line), "%d (%s) S %d", pid, comm, parent);

	for (int field = 5; field <= 52; field++)
		length += snprintf(line + length, sizeof(line) - (size_t)length, " 0");
	fake_proc_put_process(&scene->proc, pid, "stat", line);
}

/* Writes arguments: fake_proc writes texts, which end at the first NUL. */
static void arguments_put(struct scene *scene, int pid, const char *bytes, size_t length)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%d/cmdline", scene->proc.root, pid);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, length, file), length);
	assert_int_equal(fclose(file), 0);
}
#define ARGUMENTS_PUT(scene, pid, words) arguments_put(scene, pid, words, sizeof(words) - 1)

/* A process within the container that calls itself conmon is not taken for its monitor. */
static void names_by_monitor(void **state)
{
	struct scene *scene = *state;
	const char *root = scene->proc.root;

	process_put(scene, 1, 0, "init");
	process_put(scene, 10, 1, "conmon");
	ARGUMENTS_PUT(scene, 10, "conmon\0-c\0" ID "\0-n\0web\0");
	process_put(scene, 11, 10, "sh");
	process_put(scene, 12, 11, "conmon");
	ARGUMENTS_PUT(scene, 12, "conmon\0-c\0" ID "\0-n\0lie\0");
	process_put(scene, 13, 12, "sh");
	assert_string_equal(container_name(&scene->containers, root,
					   "/user.slice/user-7.slice/libpod-" ID ".scope", 13, NOW),
			    "web");
	assert_int_equal(containers_unnamed(&scene->containers, false), 0);
	assert_null(container_name(&scene->containers, root, "/libpod-" ID_2 ".scope", 13, NOW));
	assert_int_equal(containers_unnamed(&scene->containers, false), 1);
	assert_int_equal(containers_unnamed(&scene->containers, true), 0);
	/* parents in a circle */
	process_put(scene, 20, 21, "sh");
	process_put(scene, 21, 20, "sh");
	assert_null(container_name(&scene->containers, root, "/libpod-" ID_2 ".scope", 20,
				   NOW + CONTAINERS_UNNAMED_NS));
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
	cache_done(&scene->containers.known);
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
		cmocka_unit_test_setup_teardown(names_of_the_kubelet, setup, teardown),
		cmocka_unit_test_setup_teardown(names_at_other_places, setup, teardown),
		cmocka_unit_test_setup_teardown(names_age, setup, teardown),
		cmocka_unit_test_setup_teardown(names_of_storage_drivers, setup, teardown),
		cmocka_unit_test(names_in_arguments),
		cmocka_unit_test_setup_teardown(names_by_monitor, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
