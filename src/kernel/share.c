/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/share.h"
#include "kernel/bpf_call.h"
#include "kernel/embedded.h"
#include "base/host_file.h"
#include "kernel/record.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHARE_MAGIC 0x3165726168737374ull /* "tsshare1" */
#define META_BYTES_MAX 4096		  /* most bytes of any version */

/* Every version begins with magic and version. */
struct share_meta {
	uint64_t magic;
	char version[24];
	uint64_t text_hash; /* hash of BPF text and table of probes: the layout of all maps */
	char pid_namespace[HOST_TEXT_SIZE];
	int32_t pid_depth;
	int32_t rows[GROUP_COUNT]; /* index of each group's row in probe_rows; -1: none */
	uint32_t maps;		   /* bits 1 << KERNEL_MAP_x */
	uint32_t threads_max, stack_registers, registers_kept, pids_translated;
	int32_t calibration;
	char types_source[32];
};

static uint64_t hash_add(uint64_t hash, const char *text)
{
	/* FNV-1a; the NUL, too, as that ends a text */
	do
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
	while (*text++);
	return hash;
}

static uint64_t text_hash(void)
{
	uint64_t hash = 0xcbf29ce484222325ull ^ sizeof(struct thread_state);

	for (const struct embedded_file *file = embedded_files; file->name; file++)
		hash = hash_add(hash_add(hash, file->name), file->text);
	for (size_t i = 0; i < probe_row_count; i++)
		hash = hash_add(hash_add(hash, probe_rows[i].name), probe_rows[i].event);
	return hash;
}

static void meta_fill(struct share_meta *meta, const struct host *host,
		      const struct compile_result *compiled, const struct probe_plan *plan)
{
	memset(meta, 0, sizeof(*meta));
	meta->magic = SHARE_MAGIC;
	snprintf(meta->version, sizeof(meta->version), "%s", TSNAP_VERSION);
	meta->text_hash = text_hash();
	snprintf(meta->pid_namespace, sizeof(meta->pid_namespace), "%s", host->pid_namespace);
	meta->pid_depth = host->pid_depth;
	for (int group = 0; group < GROUP_COUNT; group++)
		meta->rows[group] =
			plan->chosen[group] ? (int32_t)(plan->chosen[group] - probe_rows) : -1;
	_Static_assert(KERNEL_MAP_COUNT <= 32, "a bit for each map");
	for (int map = 0; map < KERNEL_MAP_COUNT; map++)
		meta->maps |= compiled->maps[map] >= 0 ? 1u << map : 0;
	meta->threads_max = compiled->threads_max;
	meta->stack_registers = compiled->stack_registers;
	meta->registers_kept = compiled->registers_kept;
	meta->pids_translated = compiled->pids_translated;
	meta->calibration = compiled->calibration;
	memcpy(meta->types_source, compiled->types_source, sizeof(meta->types_source));
}

/* Returns the number after a key of a map's fdinfo; 0: none. bpf(2) has it only since 4.13. */
static unsigned long map_number(int map, const char *key)
{
	char path[64], text[1024];
	const char *found;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", map);
	if (host_file_read(path, text, sizeof(text)) < 0)
		return 0;
	found = strstr(text, key);
	return found ? strtoul(found + strlen(key), NULL, 10) : 0;
}

/* Checks that what is shared is for this tsnap. 0, or -errno with e. */
static int meta_check(const struct share_meta *meta, size_t bytes, const struct host *host,
		      const char *name, struct error *e)
{
	if (meta->magic != SHARE_MAGIC)
		return error_set(e, EPROTO, EXIT_FAILED, "no tsnap shares '%s'", name);
	if (strncmp(meta->version, TSNAP_VERSION, sizeof(meta->version)) != 0)
		return error_set(e, EPROTO, EXIT_FAILED,
				 "'%s' is shared by tsnap %.*s, and this is " TSNAP_VERSION
				 ": attach with that one, or share under another name",
				 name, (int)sizeof(meta->version), meta->version);
	if (bytes != sizeof(*meta) || meta->text_hash != text_hash())
		return error_set(e, EPROTO, EXIT_FAILED,
				 "'%s' is shared by a tsnap that was built from other BPF text, so "
				 "its records may differ: attach with that one, or share under "
				 "another name",
				 name);
	if (strncmp(meta->pid_namespace, host->pid_namespace, sizeof(meta->pid_namespace)) != 0 ||
	    meta->pid_depth != host->pid_depth)
		return error_set(e, EXDEV, EXIT_FAILED,
				 "'%s' is shared by a tsnap of another pid namespace, so its ids "
				 "are not those that /proc shows here: attach there",
				 name);
	for (int group = 0; group < GROUP_COUNT; group++)
		if (meta->rows[group] >= (int64_t)probe_row_count)
			return error_set(e, EPROTO, EXIT_FAILED, "'%s' has a probe of no row",
					 name);
	return 0;
}

/* Makes a path by the descriptor, so that it is in the directory that was checked and locked. */
static void pin_path(const struct share *share, const char *kind, const char *name, char *path,
		     size_t size)
{
	snprintf(path, size, "/proc/self/fd/%d/%s%s", share->directory.fd, kind, name);
}

static int pin_put(const struct share *share, const char *kind, const char *name, int fd,
		   struct error *e)
{
	char path[128];
	int result;

	pin_path(share, kind, name, path, sizeof(path));
	result = bpf_call_pin(fd, path);
	return result ? error_set(e, -result, EXIT_HOST_CANNOT, "%s%s of '%s' can't be pinned: %s",
				  kind, name, share->directory.name, strerror(-result))
		      : 0;
}

static int pin_get(const struct share *share, const char *kind, const char *name, int *to,
		   struct error *e)
{
	char path[128];
	int fd;

	pin_path(share, kind, name, path, sizeof(path));
	fd = bpf_call_get(path);
	if (fd < 0)
		return error_set(e, -fd, EXIT_FAILED,
				 "%s%s of '%s' can't be opened: %s; tsnap --share %s starts it "
				 "again when no tsnap uses it",
				 kind, name, share->directory.name, strerror(-fd),
				 share->directory.name);
	*to = fd;
	return 0;
}

static void link_name(size_t link, char *name, size_t size)
{
	snprintf(name, size, "%zu", link);
}

/* Pins all links, or none: links of perf events can't be pinned. */
static int links_pin(const struct share *share, const struct probe_links *links)
{
	struct error unsaid = {0};
	char name[24];
	int result = 0;
	size_t at = 0;

	for (; !result && at < links->count; at += !result) {
		link_name(at, name, sizeof(name));
		result = pin_put(share, "link_", name, links->fds[at], &unsaid);
	}
	while (result && at > 0) {
		char path[128];

		link_name(--at, name, sizeof(name));
		pin_path(share, "link_", name, path, sizeof(path));
		unlink(path);
	}
	return result;
}

static int owner_lock(struct share *share, struct error *e)
{
	int directory = share->directory.fd;

	share->owner = -1;
	if (!mkdirat(directory, "owner", 0700))
		share->owner =
			openat(directory, "owner", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (share->owner < 0 || flock(share->owner, LOCK_EX | LOCK_NB))
		return error_set(e, errno, EXIT_FAILED, "'%s' can't be marked as owned: %s",
				 share->directory.name, strerror(errno));
	share->needs_owner = share->is_owner = true;
	return 0;
}

static int meta_publish(const struct share *share, const struct share_meta *meta, struct error *e)
{
	int map = bpf_call_map(BPF_MAP_TYPE_ARRAY, 4, sizeof(*meta), 1), result;
	uint32_t zero = 0;

	if (map < 0 || bpf_update_elem(map, &zero, (void *)meta, BPF_ANY))
		result = error_set(e, errno, EXIT_FAILED,
				   "the description of the share can't be written: %s",
				   strerror(errno));
	else
		result = pin_put(share, "meta", "", map, e);
	if (map >= 0)
		close(map);
	return result;
}

int share_publish(struct share *share, const struct host *host,
		  const struct compile_result *compiled, const struct probe_plan *plan,
		  const struct probe_links *links, bool pin_links, struct error *e)
{
	struct share_meta meta;
	int result = 0;

	for (int map = 0; !result && map < KERNEL_MAP_COUNT; map++)
		if (compiled->maps[map] >= 0)
			result = pin_put(share, "map_", kernel_map_rows[map].name,
					 compiled->maps[map], e);
	for (int group = 0; !result && group < GROUP_COUNT; group++)
		if (plan->chosen[group])
			result = pin_put(share, "prog_", plan->chosen[group]->name,
					 compiled->programs[group], e);
	if (!result && (!pin_links || links_pin(share, links)))
		result = owner_lock(share, e);
	if (result)
		return result;
	meta_fill(&meta, host, compiled, plan);
	result = meta_publish(share, &meta, e);
	return result ? result : share_directory_open(&share->directory, e);
}

static int meta_get(const struct share *share, const struct host *host, struct share_meta *meta,
		    struct error *e)
{
	union {
		struct share_meta meta;
		char bytes[META_BYTES_MAX];
	} read = {.bytes = ""};
	unsigned long bytes;
	uint32_t zero = 0;
	struct stat about;
	int map = -1, result;

	_Static_assert(sizeof(*meta) <= META_BYTES_MAX, "META_BYTES_MAX is of any version");
	if (fstatat(share->directory.fd, "meta", &about, AT_SYMLINK_NOFOLLOW))
		return error_set(e, ENOENT, EXIT_FAILED,
				 "a tsnap that was killed left '%s' unfinished: tsnap --share %s "
				 "starts it again",
				 share->directory.name, share->directory.name);
	result = pin_get(share, "meta", "", &map, e);
	if (result)
		return result;
	bytes = map_number(map, "value_size:");
	if (map_number(map, "map_type:") == BPF_MAP_TYPE_ARRAY && bytes <= sizeof(read))
		bpf_lookup_elem(map, &zero, &read);
	close(map);
	result = meta_check(&read.meta, bytes, host, share->directory.name, e);
	if (!result)
		*meta = read.meta;
	return result;
}

static int owner_find(struct share *share, struct error *e)
{
	int fd = openat(share->directory.fd, "owner",
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return 0;
	share->owner = fd;
	share->needs_owner = true;
	if (share_alive(share))
		return 0;
	return error_set(
		e, EOWNERDEAD, EXIT_FAILED,
		"the tsnap that shared '%s' was killed, and its programs with it, because links "
		"can't be pinned here: tsnap --share %s starts it again when no tsnap uses it",
		share->directory.name, share->directory.name);
}

/* Gets a map, whose values must have the size that readers allocate. */
static int map_get(const struct share *share, int map, struct compile_result *compiled,
		   struct error *e)
{
	int result = pin_get(share, "map_", kernel_map_rows[map].name, &compiled->maps[map], e);

	if (result)
		return result;
	if (map_number(compiled->maps[map], "value_size:") == kernel_map_rows[map].leaf_bytes)
		return 0;
	return error_set(e, EPROTO, EXIT_FAILED, "map %s of '%s' has been replaced",
			 kernel_map_rows[map].name, share->directory.name);
}

static int pins_get(const struct share *share, const struct share_meta *meta,
		    struct compile_result *compiled, struct probe_plan *plan, struct error *e)
{
	int result = 0;

	for (int map = 0; !result && map < KERNEL_MAP_COUNT; map++)
		if (meta->maps >> map & 1)
			result = map_get(share, map, compiled, e);
	for (int group = 0; !result && group < GROUP_COUNT; group++) {
		plan->chosen[group] = meta->rows[group] < 0 ? NULL : &probe_rows[meta->rows[group]];
		if (plan->chosen[group])
			result = pin_get(share, "prog_", plan->chosen[group]->name,
					 &compiled->programs[group], e);
	}
	compiled->threads_max = meta->threads_max;
	compiled->stack_registers = meta->stack_registers;
	compiled->registers_kept = meta->registers_kept;
	compiled->pids_translated = meta->pids_translated;
	compiled->calibration = meta->calibration;
	snprintf(compiled->types_source, sizeof(compiled->types_source), "%.31s",
		 meta->types_source);
	return result;
}

int share_adopt(struct share *share, const char *name, const struct host *host,
		struct compile_result *compiled, struct probe_plan *plan, struct error *e)
{
	struct share_meta meta = {0};
	int result = share_directory_join(&share->directory, name, e);

	if (!result)
		result = meta_get(share, host, &meta, e);
	if (!result)
		result = owner_find(share, e);
	if (!result)
		result = pins_get(share, &meta, compiled, plan, e);
	share->adopted = !result;
	return result;
}

bool share_alive(const struct share *share)
{
	if (!share->needs_owner || share->is_owner)
		return true;
	if (flock(share->owner, LOCK_SH | LOCK_NB))
		return true;
	flock(share->owner, LOCK_UN);
	return false;
}

void share_leave(struct share *share)
{
	if (share->needs_owner)
		close(share->owner);
	share_directory_leave(&share->directory, !share->adopted);
	*share = (struct share){0};
}
