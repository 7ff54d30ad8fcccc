/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/cgroup_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A part of a path, not copied. */
struct part {
	const char *at;
	size_t length;
};

enum id_kind {
	ID_HEX,	 /* CONTAINER_ID_LENGTH hexadecimal digits */
	ID_WORD, /* letters and digits */
	ID_NAME, /* any characters; systemd's escapes are undone */
};

/* A container's group: it is in a group called parent (NULL: any; "*" at the end: any that begins
 * so), and its name is prefix, id, suffix. The suffix may be missing: drivers other than systemd
 * have none. */
struct container_row {
	const char *runtime;
	const char *parent, *prefix, *suffix;
	enum id_kind kind;
};

static const struct container_row container_rows[] = {
	{"docker", NULL, "docker-", ".scope", ID_HEX},
	{"docker", "docker", "", "", ID_HEX},
	{"buildkit", "buildkit", "", "", ID_WORD},
	{"podman", NULL, "libpod-conmon-", ".scope", ID_HEX},
	{"podman", NULL, "libpod-payload-", "", ID_HEX},
	{"podman", NULL, "libpod-", ".scope", ID_HEX},
	{"containerd", NULL, "cri-containerd-", ".scope", ID_HEX},
	{"containerd", NULL, "nerdctl-", ".scope", ID_HEX},
	{"containerd", NULL, "cri-containerd:", "", ID_HEX},
	{"containerd", "k8s.io", "", "", ID_HEX}, /* namespaces of containerd */
	{"containerd", "default", "", "", ID_HEX},
	{"containerd", "moby", "", "", ID_HEX},
	{"cri-o", NULL, "crio-conmon-", ".scope", ID_HEX},
	{"cri-o", NULL, "crio-", ".scope", ID_HEX},
	{"cri-o", NULL, "crio:", "", ID_HEX},
	{"cri", "pod*", "", "", ID_HEX}, /* Kubernetes without systemd's driver */
	{NULL, NULL, "", "", ID_HEX},	 /* ecs/TASK/ID, and old versions of docker */
	{"lxc", NULL, "lxc.payload.", "", ID_NAME},
	{"lxc", NULL, "lxc.monitor.", "", ID_NAME},
	{"lxc", "lxc.payload", "", "", ID_NAME},
	{"lxc", "lxc.monitor", "", "", ID_NAME},
	{"lxc", "lxc", "", "", ID_NAME},
	{"incus", "incus.payload", "", "", ID_NAME},
	{"incus", "incus.monitor", "", "", ID_NAME},
	{"nspawn", NULL, "systemd-nspawn@", ".service", ID_NAME},
	{"machine", NULL, "machine-", ".scope", ID_NAME}, /* systemd-machined(8): nspawn, libvirt */
};

/* Types of systemd.unit(5) that have control groups, except slices. */
static const char *const unit_suffixes[] = {".service", ".scope", ".socket", ".mount", ".swap"};

static bool begins(struct part part, const char *with)
{
	size_t length = strlen(with);

	return part.length >= length && !memcmp(part.at, with, length);
}

static bool ends(struct part part, const char *with)
{
	size_t length = strlen(with);

	return part.length >= length && !memcmp(part.at + part.length - length, with, length);
}

static bool parent_fits(struct part parent, const char *wanted)
{
	size_t length = wanted ? strlen(wanted) : 0;
	char start[32];

	if (!wanted)
		return true;
	if (wanted[length - 1] != '*')
		return parent.length == length && begins(parent, wanted);
	memcpy(start, wanted, length - 1);
	start[length - 1] = '\0';
	return begins(parent, start);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f');
}

static bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool id_fits(struct part id, enum id_kind kind)
{
	if (!id.length || (kind == ID_HEX && id.length != CONTAINER_ID_LENGTH))
		return false;
	for (size_t i = 0; i < id.length && kind != ID_NAME; i++)
		if (kind == ID_HEX ? !is_hex(id.at[i]) : !is_word(id.at[i]))
			return false;
	return true;
}

static int hex_value(char c)
{
	return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Writes a name, cut at CGROUP_NAME_SIZE; \xNN is undone, as unit_name_unescape() of systemd
 * does. */
static void name_write(char to[CGROUP_NAME_SIZE], struct part part)
{
	size_t length = 0;

	for (size_t i = 0; i < part.length && length < CGROUP_NAME_SIZE - 1; i++) {
		const char *at = part.at + i;
		int high = part.length - i >= 4 && at[0] == '\\' && at[1] == 'x' ? hex_value(at[2])
										 : -1;
		int low = high >= 0 ? hex_value(at[3]) : -1;

		if (low < 0 || !(high << 4 | low)) {
			to[length++] = *at;
			continue;
		}
		to[length++] = (char)(high << 4 | low);
		i += 3;
	}
	to[length] = '\0';
}

static bool container_find(struct part parent, struct part part, struct cgroup_names *names)
{
	for (size_t i = 0; i < sizeof(container_rows) / sizeof(container_rows[0]); i++) {
		const struct container_row *row = &container_rows[i];
		struct part id = part;

		if (!begins(part, row->prefix) || !parent_fits(parent, row->parent))
			continue;
		id.at += strlen(row->prefix);
		id.length -= strlen(row->prefix);
		if (ends(id, row->suffix))
			id.length -= strlen(row->suffix);
		else if (row->kind != ID_HEX)
			continue;
		if (!id_fits(id, row->kind))
			continue;
		names->runtime = row->runtime;
		name_write(names->container, id);
		return true;
	}
	return false;
}

/* Finds the pod: "pod1234-..." in kubepods or one of its classes;
 * "kubepods-burstable-pod1234_....slice" with systemd's driver: a unit's name can't have the dashes
 * of a uid. */
static void pod_find(struct part part, bool in_kubepods, struct cgroup_names *names)
{
	static const char mark[] = "-pod";
	struct part uid = part;

	if (begins(part, "kubepods") && ends(part, ".slice")) {
		const char *found = memmem(part.at, part.length, mark, sizeof(mark) - 1);

		if (!found)
			return;
		uid.at = found + sizeof(mark) - 1;
		uid.length = part.length - (size_t)(uid.at - part.at) - strlen(".slice");
	} else if (in_kubepods && begins(part, "pod")) {
		uid.at += strlen("pod");
		uid.length -= strlen("pod");
	} else {
		return;
	}
	if (!uid.length)
		return;
	name_write(names->pod, uid);
	for (char *at = names->pod; (at = strchr(at, '_')); at++)
		*at = '-';
}

/* Finds the unit. A group below a unit belongs to that unit; a slice is the unit only of what is in
 * no other. */
static void unit_find(struct part part, bool *in_unit, struct cgroup_names *names)
{
	for (size_t i = 0; i < sizeof(unit_suffixes) / sizeof(unit_suffixes[0]); i++) {
		if (!ends(part, unit_suffixes[i]) || part.length == strlen(unit_suffixes[i]))
			continue;
		name_write(names->unit, part);
		*in_unit = true;
		return;
	}
	if (!*in_unit && ends(part, ".slice") && part.length > strlen(".slice"))
		name_write(names->unit, part);
}

/* Takes the next part between slashes; also of SLICE:RUNTIME:ID, which runc takes for a path if it
 * is not configured for systemd's driver. */
static bool part_next(const char **at, struct part *part)
{
	static const char slice[] = ".slice:";
	const char *colon;

	*at += strspn(*at, "/");
	part->at = *at;
	part->length = strcspn(*at, "/");
	*at += part->length;
	colon = memmem(part->at, part->length, slice, sizeof(slice) - 1);
	if (colon) {
		*at = colon + sizeof(slice) - 1;
		part->length = (size_t)(*at - part->at) - 1;
	}
	return part->length;
}

void cgroup_names_find(const char *path, struct cgroup_names *names)
{
	static const char deleted[] = " (deleted)"; /* suffix of a removed group, cgroups(7) */
	struct part part, parent = {"", 0};
	bool in_kubepods = false, in_unit = false;

	names->runtime = NULL;
	names->container[0] = names->pod[0] = names->unit[0] = '\0';
	while (part_next(&path, &part)) {
		if (!*path && ends(part, deleted))
			part.length -= sizeof(deleted) - 1;
		pod_find(part, in_kubepods, names);
		/* a container may have its own systemd */
		in_unit &= !container_find(parent, part, names);
		unit_find(part, &in_unit, names);
		in_kubepods |= begins(part, "kubepods");
		parent = part;
	}
}
