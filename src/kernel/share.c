/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/share.h"
#include "base/clock.h"
#include "base/index.h"
#include "base/text.h"
#include "kernel/bpf_call.h"
#include "kernel/bpf_cost.h"
#include "kernel/program_text.h"
#include "kernel/record.h"

#include <bcc/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#define ROOT "/sys/fs/bpf"
#define PREFIX "tsnap-"
#define ENTRY_SIZE (sizeof(PREFIX) + SHARE_NAME_MAX)
#define LOOK_NS (NS_PER_SECOND / 50)
/* Time to wait for a tsnap that is just leaving, or for the compile child of one that was
 * killed. */
#define BUSY_NS (2 * NS_PER_SECOND)
#define WAIT_NS (20 * NS_PER_SECOND) /* a compile under emulation takes 16 s */

bool share_name_valid(const char *name)
{
	size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789-_");

	return length && length <= SHARE_NAME_MAX && !name[length];
}

static int root_open(struct error *e)
{
	struct statfs about;
	int fd = open(ROOT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && errno == EACCES)
		return error_set(e, EACCES, EXIT_HOST_CANNOT,
				 ROOT " can't be opened by this user: run as root");
	if (fd >= 0 && !fstatfs(fd, &about) && (uint32_t)about.f_type == BPF_FS_MAGIC)
		return fd;
	if (fd >= 0)
		close(fd);
	return error_set(e, ENODEV, EXIT_HOST_CANNOT,
			 "samplers share through a bpf file system at " ROOT
			 ", and none is mounted there: mount -t bpf -o mode=0700 bpf " ROOT);
}

static void entry_name(const char *name, char *entry)
{
	snprintf(entry, ENTRY_SIZE, PREFIX "%s", name);
}

/* Opens the directory of a share. A descriptor, -ENOENT without words, or -errno with e. */
static int entry_open(int root, const char *entry, struct error *e)
{
	struct stat about;
	int fd = openat(root, entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd >= 0 && !fstat(fd, &about) && about.st_uid == geteuid() &&
	    (about.st_mode & 07777) == 0700)
		return fd;
	if (fd >= 0)
		close(fd);
	return error_set(e, EPERM, EXIT_FAILED,
			 ROOT "/%s is not a private directory of this user (mode 0700), so others "
			      "may have put things there: use another name, or have it removed",
			 entry);
}

/* True if fd is still the entry: another tsnap may have removed it before it was locked. */
static bool is_linked(int root, const char *entry, int fd)
{
	struct stat held, named;

	return !fstat(fd, &held) && !fstatat(root, entry, &named, AT_SYMLINK_NOFOLLOW) &&
	       held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

static bool is_pin(const char *name)
{
	return !strncmp(name, "map_", 4) || !strncmp(name, "prog_", 5) ||
	       !strncmp(name, "link_", 5);
}

/* Removes the directory, which is held alone, and what tsnap puts in it; first of all meta, which
 * says that it is complete. 1: there was something, 0: there was nothing, -errno: something else is
 * in it. */
static int entry_remove(int root, const char *entry, int fd)
{
	int listing = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = listing < 0 ? NULL : fdopendir(listing);
	struct dirent *pin;
	int any = !unlinkat(fd, "meta", 0);

	any |= !unlinkat(fd, "owner", AT_REMOVEDIR);
	while (dir && (pin = readdir(dir)))
		if (is_pin(pin->d_name))
			any |= !unlinkat(fd, pin->d_name, 0);
	if (dir)
		closedir(dir);
	else if (listing >= 0)
		close(listing);
	return unlinkat(root, entry, AT_REMOVEDIR) ? -errno : any;
}

/* Adds the pids of the holders of the directory or file fd, with commas between. */
static void holders_add(struct text *to, int fd)
{
	FILE *file = fopen("/proc/locks", "re");
	struct stat about;
	char *line = NULL;
	size_t capacity = 0, start = to->length;

	if (fstat(fd, &about))
		about.st_ino = 0;
	while (file && getline(&line, &capacity, file) > 0) {
		unsigned int major_nr, minor_nr;
		unsigned long inode;
		long pid;

		/* "1: FLOCK  ADVISORY  READ 32197 00:27:2656794 0 EOF" */
		if (sscanf(line, "%*d: FLOCK %*s %*s %ld %x:%x:%lu", &pid, &major_nr, &minor_nr,
			   &inode) != 4 ||
		    inode != about.st_ino || makedev(major_nr, minor_nr) != about.st_dev)
			continue;
		text_add_format(to, "%s%ld", to->length > start ? ", " : "", pid);
	}
	free(line);
	if (file)
		fclose(file);
}

static int busy_explain(int fd, const char *name, struct error *e)
{
	struct text holders = {0};

	holders_add(&holders, fd);
	error_set(e, EBUSY, EXIT_FAILED, "'%s' is shared already, by process %s: tsnap --attach %s",
		  name, holders.length ? text_string(&holders) : "of another pid namespace", name);
	text_done(&holders);
	return -EBUSY;
}

/* Tries to make the directory. A descriptor; -EAGAIN: another tsnap came between; -EBUSY: one is in
 * it; or another -errno; the last two with e. */
static int make_try(int root, const char *name, bool *cleared, struct error *e)
{
	char entry[ENTRY_SIZE];
	bool made;
	int fd, result = -EAGAIN;

	entry_name(name, entry);
	made = !mkdirat(root, entry, 0700);
	if (!made && errno != EEXIST)
		return error_set(e, errno, EXIT_HOST_CANNOT, ROOT "/%s can't be made: %s", entry,
				 strerror(errno));
	fd = entry_open(root, entry, e);
	if (fd < 0)
		return fd == -ENOENT ? -EAGAIN : fd;
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		result = busy_explain(fd, name, e);
	} else if (is_linked(root, entry, fd)) {
		if (made)
			return fd;
		/* the directory is not used again: a lock on it says nothing about a new one */
		result = entry_remove(root, entry, fd);
		*cleared = *cleared || result > 0;
		if (result >= 0)
			result = -EAGAIN;
		else
			error_set(e, -result, EXIT_FAILED,
				  ROOT "/%s was left by a tsnap that was killed, and can't be "
				       "removed: %s; is there anything else in it?",
				  entry, strerror(-result));
	}
	close(fd);
	return result;
}

int share_directory_make(struct share_directory *directory, const char *name, bool *cleared,
			 struct error *e)
{
	int64_t end_ns = clock_monotonic_ns() + BUSY_NS;
	int root = root_open(e), fd;

	if (root < 0)
		return root;
	*cleared = false;
	for (;;) {
		fd = make_try(root, name, cleared, e);
		if ((fd != -EAGAIN && fd != -EBUSY) || clock_monotonic_ns() > end_ns)
			break;
		if (clock_sleep_until(clock_monotonic_ns() + LOOK_NS))
			fd = error_set(e, EINTR, EXIT_FAILED, "interrupted by a signal");
		if (fd == -EINTR)
			break;
	}
	if (fd == -EAGAIN)
		error_set(
			e, EAGAIN, EXIT_FAILED,
			"other tsnap processes keep starting and ending as '%s': use another name",
			name);
	if (fd < 0) {
		close(root);
		return fd;
	}
	*directory = (struct share_directory){.root = root, .fd = fd};
	snprintf(directory->name, sizeof(directory->name), "%s", name);
	return 0;
}

/* Changes from holding the directory alone to holding it with others. */
static int share_directory_open(struct share_directory *directory, struct error *e)
{
	char entry[ENTRY_SIZE];

	entry_name(directory->name, entry);
	/* flock(2) does not promise that nobody comes between */
	if (!flock(directory->fd, LOCK_SH) && is_linked(directory->root, entry, directory->fd))
		return 0;
	return error_set(e, EAGAIN, EXIT_FAILED,
			 "another tsnap has just taken '%s': use another name", directory->name);
}

/* Holds a directory that is there, together with others; waits for one that is being made. -EINTR
 * after a signal. */
static int share_directory_join(struct share_directory *directory, const char *name,
				struct error *e)
{
	int64_t end_ns = clock_monotonic_ns() + WAIT_NS;
	int root = root_open(e), fd, result;
	char entry[ENTRY_SIZE];
	bool was_left;

	if (root < 0)
		return root;
	entry_name(name, entry);
	for (;;) {
		fd = entry_open(root, entry, e);
		if (fd < 0) {
			result = fd == -ENOENT ? error_set(e, ENOENT, EXIT_FAILED,
							   "no tsnap shares '%s': tsnap --share %s "
							   "does; tsnap --check lists what is "
							   "shared",
							   name, name)
					       : fd;
			break;
		}
		was_left = !flock(fd, LOCK_EX | LOCK_NB);
		if (!flock(fd, LOCK_SH | LOCK_NB) && is_linked(root, entry, fd)) {
			*directory = (struct share_directory){
				.root = root, .fd = fd, .was_left = was_left};
			snprintf(directory->name, sizeof(directory->name), "%s", name);
			return 0;
		}
		close(fd);
		result = clock_sleep_until(clock_monotonic_ns() + LOOK_NS);
		if (!result && clock_monotonic_ns() > end_ns)
			result = -ETIME;
		if (result) {
			error_set(e, -result, EXIT_FAILED,
				  "the tsnap that is starting to share '%s' is not ready: %s", name,
				  strerror(-result));
			break;
		}
	}
	close(root);
	return result;
}

/* Leaves the directory, and removes it unless others hold it, or it was left before and is of no
 * use here: then it stays as it was. */
static void share_directory_leave(struct share_directory *directory, bool useless)
{
	char entry[ENTRY_SIZE];

	if (!directory->name[0])
		return;
	entry_name(directory->name, entry);
	if (!(useless && directory->was_left) && !flock(directory->fd, LOCK_EX | LOCK_NB) &&
	    is_linked(directory->root, entry, directory->fd))
		entry_remove(directory->root, entry, directory->fd);
	close(directory->fd);
	close(directory->root);
	*directory = (struct share_directory){.root = -1, .fd = -1};
}

void share_directories_walk(void (*each)(void *to, const char *name, const char *holders), void *to)
{
	struct error unsaid = {0};
	int root = root_open(&unsaid);
	DIR *dir = root < 0 ? NULL : fdopendir(root);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		const char *name = entry->d_name + strlen(PREFIX);
		struct text holders = {0};
		int fd;

		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) || !share_name_valid(name))
			continue;
		fd = entry_open(root, entry->d_name, &unsaid);
		if (fd < 0)
			continue;
		holders_add(&holders, fd);
		close(fd);
		each(to, name, text_string(&holders));
		text_done(&holders);
	}
	if (dir)
		closedir(dir);
	else if (root >= 0)
		close(root);
	error_done(&unsaid);
}

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
	return hash_u64(hash ^ hash_bytes(text, strlen(text)));
}

static uint64_t text_hash(void)
{
	uint64_t hash = sizeof(struct thread_state);

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

/* Checks that what is shared is for this tsnap. 0, or -errno with e. */
static int meta_check(const struct share_meta *meta, int64_t bytes, const struct host *host,
		      const char *name, struct error *e)
{
	if (meta->magic != SHARE_MAGIC)
		return error_set(e, EPROTO, EXIT_FAILED, "no tsnap shares '%s'", name);
	if (strncmp(meta->version, TSNAP_VERSION, sizeof(meta->version)) != 0)
		return error_set(e, EPROTO, EXIT_FAILED,
				 "'%s' is shared by tsnap %.*s, and this is " TSNAP_VERSION
				 ": attach with that one, or share under another name",
				 name, (int)sizeof(meta->version), meta->version);
	if (bytes != (int64_t)sizeof(*meta) || meta->text_hash != text_hash())
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
			return error_set(e, EPROTO, EXIT_FAILED,
					 "'%s' uses a probe that this tsnap does not have", name);
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
	int64_t bytes;
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
	bytes = bpf_fdinfo_number(map, "value_size:");
	if (bpf_fdinfo_number(map, "map_type:") == BPF_MAP_TYPE_ARRAY && bytes >= 0 &&
	    bytes <= (int64_t)sizeof(read))
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
	if (bpf_fdinfo_number(compiled->maps[map], "value_size:") ==
	    (int64_t)kernel_map_rows[map].leaf_bytes)
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
