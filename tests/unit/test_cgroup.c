/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Choice of the most informative path in /proc/TID/cgroup, and the names found in it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "proc/cgroup.h"
#include "sample/cgroup_names.h"

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
	expect("0::/\n", "/");
	expect("0::/system.slice/a.service\n", "/system.slice/a.service");
	expect("0::/a (deleted)\n", "/a (deleted)");
	expect("0::/../b\n", "/../b");
}

static void version_1_and_mixed(void **state)
{
	expect("9:cpu:/x\n1:name=systemd:/user.slice\n0::/\n", "/user.slice");
	expect("9:cpu:/x\n1:name=systemd:/user.slice\n0::/user.slice/s.scope\n",
	       "/user.slice/s.scope");
	expect("3:name=systemd:/\n2:memory:/pod/1\n1:cpu:/pod/2\n0::/\n", "/pod/1");
	expect("2:cpu,cpuacct:/\n1:name=systemd:/\n", "/");
	expect("2:name=systemdx:/no\n1:name=systemd:/yes\n", "/yes");
}

static void hostile(void **state)
{
	expect("", NULL);
	expect("0::/cut off", NULL);
	expect("1:cpu:/whole\n0::/cut off", "/whole");
	expect("0::/a:b::c\n", "/a:b::c");
	expect("no colon\n1:one\n:\n::\n:::\n1:cpu:relative\n", NULL);
}

static void expect_controller(const char *text, const char *path)
{
	size_t length = 0;
	const char *chosen = cgroup_of_controller(text, "cpu", &length);

	if (!path) {
		assert_null(chosen);
		return;
	}
	assert_non_null(chosen);
	assert_int_equal(length, strlen(path));
	assert_memory_equal(chosen, path, length);
}

static void controllers(void **state)
{
	expect_controller("0::/a\n", "/a");
	expect_controller("4:cpuacct:/c\n3:cpuset,cpu:/b\n0::/a\n", "/b");
	expect_controller("0::/a\n3:cpu,cpuacct:/b\n", "/b");
	expect_controller("3:cpuset:/b\n1:name=cpu:/d\n0::/a\n", "/a");
	expect_controller("3:cpuset:/b\n", NULL);
	expect_controller("3:cpu:b\n3:cpu\n\n", NULL);
}

static void expect_others(const char *text, size_t size, const char *others)
{
	char found[64];
	size_t length = 0;
	const char *chosen = cgroup_choose(text, &length);

	assert_int_equal(cgroup_others(text, chosen, length, found, size), *others != '\0');
	assert_string_equal(found, others);
}

static void other_paths(void **state)
{
	expect_others("0::/a\n", 64, "");
	expect_others("4:cpuacct:/b\n3:cpuset:/\n2:cpu:/b\n1:memory:/c\n0::/a\n", 64, "/b\n/c");
	expect_others("4:cpuacct:/a\n3:cpu:/ab\n2:x:/b\n1:y\n0::/a\n", 64, "/ab\n/b");
	expect_others("4:cpuacct:/long\n3:cpu:/b\n0::/a\n", 6, "/b"); /* only lines that fit */
}

#define ID "f75aff467357c5d0ddd47cb7ad87ed38746e018992586ff66198a5c11218f634"
#define ID_2 "2403ccfe427f1dc7b6120dccb9ac58c2f8456950380d587a9f33ea7f00dd303d"
#define POD "5759a1ae-36ca-48a8-b20a-b0b5c8a90fb8"
#define POD_UNIT "5759a1ae_36ca_48a8_b20a_b0b5c8a90fb8"

/* Paths seen on hosts, most of them in the bug reports of tools that read such paths. */
static const struct {
	const char *path, *runtime, *container, *pod, *unit;
} paths[] = {
	{"/", NULL, "", "", ""},
	/* docker: its own driver, systemd's, version 1 */
	{"/docker/" ID, "docker", ID, "", ""},
	{"/system.slice/docker-" ID ".scope", "docker", ID, "", "docker-" ID ".scope"},
	{"/" ID, NULL, ID, "", ""},
	{"/docker/buildkit/ycq8vdbxuywyu7j1ty3nfuvi9", "buildkit", "ycq8vdbxuywyu7j1ty3nfuvi9", "",
	 ""},
	/* docker in docker, and a systemd in a container */
	{"/docker/" ID "/docker/" ID_2, "docker", ID_2, "", ""},
	{"/docker/" ID "/system.slice/ssh.service", "docker", ID, "", "ssh.service"},
	{"/system.slice/docker-" ID ".scope/system.slice", "docker", ID, "", "docker-" ID ".scope"},
	/* podman: root, without root, its monitor, its pods, cgroupfs */
	{"/machine.slice/libpod-" ID ".scope/container", "podman", ID, "", "libpod-" ID ".scope"},
	{"/machine.slice/libpod-conmon-" ID ".scope", "podman", ID, "",
	 "libpod-conmon-" ID ".scope"},
	{"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope", "podman",
	 ID, "", "libpod-" ID ".scope"},
	{"/machine.slice/machine-libpod_pod_" ID_2 ".slice/libpod-" ID ".scope", "podman", ID, "",
	 "libpod-" ID ".scope"},
	{"/libpod_parent/libpod-" ID, "podman", ID, "", ""},
	/* Kubernetes: with cgroupfs and systemd drivers, containerd, CRI-O, docker */
	{"/kubepods/besteffort/pod" POD "/" ID, "cri", ID, POD, ""},
	{"/kubepods/pod" POD "/" ID, "cri", ID, POD, ""},
	{"/kubepods/burstable/pod" POD "/crio-" ID, "cri-o", ID, POD, ""},
	{"/kubepods/burstable/pod9e4d9b3a2d2f4e55a4a5b1d2c3e4f506", NULL, "",
	 "9e4d9b3a2d2f4e55a4a5b1d2c3e4f506", ""},
	{"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_UNIT
	 ".slice/cri-containerd-" ID ".scope",
	 "containerd", ID, POD, "cri-containerd-" ID ".scope"},
	{"/kubepods.slice/kubepods-pod" POD_UNIT ".slice/crio-conmon-" ID ".scope", "cri-o", ID,
	 POD, "crio-conmon-" ID ".scope"},
	{"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" POD_UNIT
	 ".slice/docker-" ID ".scope",
	 "docker", ID, POD, "docker-" ID ".scope"},
	{"/system.slice/containerd.service/kubepods-burstable-pod" POD_UNIT
	 ".slice:cri-containerd:" ID,
	 "containerd", ID, POD, "containerd.service"},
	/* a cluster in a container (kind) */
	{"/docker/" ID_2 "/kubelet/kubepods/burstable/pod" POD "/" ID, "cri", ID, POD, ""},
	{"/kubepods.slice", NULL, "", "", "kubepods.slice"},
	/* containerd without Kubernetes, and a cloud's agent */
	{"/k8s.io/" ID, "containerd", ID, "", ""},
	{"/default/" ID, "containerd", ID, "", ""},
	{"/system.slice/nerdctl-" ID ".scope", "containerd", ID, "", "nerdctl-" ID ".scope"},
	{"/ecs/0123456789abcdef0123456789abcdef/" ID, NULL, ID, "", ""},
	/* LXC before and since 3.1 and 4.0, Incus, machines */
	{"/lxc/web/system.slice/cron.service", "lxc", "web", "", "cron.service"},
	{"/lxc.payload/web", "lxc", "web", "", ""},
	{"/lxc.payload.web-1/init.scope", "lxc", "web-1", "", "init.scope"},
	{"/lxc.monitor.web-1", "lxc", "web-1", "", ""},
	{"/incus.payload/db", "incus", "db", "", ""},
	{"/machine.slice/machine-my\\x2dbox.scope/payload", "machine", "my-box", "",
	 "machine-my-box.scope"},
	{"/machine.slice/machine-qemu\\x2d1\\x2dvm.scope/libvirt/emulator", "machine", "qemu-1-vm",
	 "", "machine-qemu-1-vm.scope"},
	{"/machine.slice/systemd-nspawn@box.service/payload/system.slice/a.service", "nspawn",
	 "box", "", "a.service"},
	/* systemd */
	{"/init.scope", NULL, "", "", "init.scope"},
	{"/system.slice/mysql.service", NULL, "", "", "mysql.service"},
	{"/system.slice/mysql.service/worker/1", NULL, "", "", "mysql.service"},
	{"/system.slice/system-getty.slice/getty@tty1.service", NULL, "", "", "getty@tty1.service"},
	{"/system.slice/dev-disk-by\\x2dlabel-a.swap", NULL, "", "", "dev-disk-by-label-a.swap"},
	{"/system.slice/dbus-:1.3-org.example.service", NULL, "", "",
	 "dbus-:1.3-org.example.service"},
	{"/user.slice/user-1000.slice/session-3.scope", NULL, "", "", "session-3.scope"},
	{"/user.slice/user-1000.slice/user@1000.service/app.slice/app-term.scope", NULL, "", "",
	 "app-term.scope"},
	{"/user.slice/user-1000.slice", NULL, "", "", "user-1000.slice"},
	{"/system.slice/gone.service (deleted)", NULL, "", "", "gone.service"},
	{"/../../docker/" ID, "docker", ID, "", ""},
	/* hostile or malformed */
	{"//docker//" ID "//", "docker", ID, "", ""},
	{"/docker/" ID "0", NULL, "", "", ""},
	{"/docker-.scope", NULL, "", "", "docker-.scope"},
	{"/.service/.slice", NULL, "", "", ""},
	{"/a\\x2.service", NULL, "", "", "a\\x2.service"},
	{"/a\\x00b\\xzz.service", NULL, "", "", "a\\x00b\\xzz.service"},
	{"/kubepods/pod/" ID, "cri", ID, "", ""},
	{"/kubepods-pod.slice", NULL, "", "", "kubepods-pod.slice"},
	{"/pod" POD, NULL, "", "", ""},
	{"no slash", NULL, "", "", ""},
	{"/a.slice::", NULL, "", "", "a.slice"},
};

static void names_of_paths(void **state)
{
	struct cgroup_names names;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		cgroup_names_find(paths[i].path, &names);
		if (strcmp(names.container, paths[i].container) ||
		    strcmp(names.pod, paths[i].pod) || strcmp(names.unit, paths[i].unit) ||
		    strcmp(names.runtime ? names.runtime : "",
			   paths[i].runtime ? paths[i].runtime : ""))
			fail_msg("%s: runtime %s, container %s, pod %s, unit %s", paths[i].path,
				 names.runtime ? names.runtime : "none", names.container, names.pod,
				 names.unit);
	}
}

static void names_are_bounded(void **state)
{
	char path[4096] = "/lxc.payload.";
	struct cgroup_names names;

	memset(path + strlen(path), 'x', 4000 - strlen(path));
	strcpy(path + 4000, ".service");
	cgroup_names_find(path, &names);
	assert_int_equal(strlen(names.container), CGROUP_NAME_SIZE - 1);
	assert_int_equal(strlen(names.unit), CGROUP_NAME_SIZE - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_2),	     cmocka_unit_test(version_1_and_mixed),
		cmocka_unit_test(hostile),	     cmocka_unit_test(controllers),
		cmocka_unit_test(other_paths),	     cmocka_unit_test(names_of_paths),
		cmocka_unit_test(names_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
