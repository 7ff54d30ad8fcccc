/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/process_maps.h"
#include "keeper/avoid.h"
#include "base/clock.h"
#include "base/memory.h"
#include "proc/proc.h"
#include "unwind/elf/process_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROCESSES_MAX 4096
#define MAPS_BYTES_MAX (16u << 20)
#define MAPS_OLD_NS (5 * NS_PER_SECOND) /* an exec or dlclose may have passed unseen */
#define AGAIN_LEAST_NS (5 * NS_PER_MS)
#define AGAIN_SHARE 50 /* divisor of the time for reading one process' maps */
#define VDSO_BYTES_MAX 16384

/* Returns the module whose number the mapping has, or NULL: that module was forgotten. */
static struct module *mapping_known(const struct mapping *mapping,
				    const struct module_table *modules)
{
	struct module *module =
		mapping->module == MODULE_NONE ? NULL : modules->modules[mapping->module];

	return module && module->serial == mapping->serial ? module : NULL;
}

static void mapping_let_go(struct process_maps *maps, struct mapping *mapping)
{
	struct module *module = maps->modules ? mapping_known(mapping, maps->modules) : NULL;

	if (module)
		module->mapped--;
	mapping->module = MODULE_NONE;
	mapping->looked_at = false;
}

/* Makes the lists of mappings empty, without freeing what is in them. */
static void mappings_clear(struct process_maps *maps)
{
	maps->mappings = maps->files = NULL;
	maps->count = maps->capacity = 0;
	maps->file_count = maps->file_capacity = maps->file_needed = 0;
	maps->uprobes = 0;
}

static void mappings_free(struct process_maps *maps)
{
	for (size_t i = 0; i < maps->count; i++) {
		mapping_let_go(maps, &maps->mappings[i]);
		free(maps->mappings[i].path);
	}
	for (size_t i = 0; i < maps->file_count; i++)
		free(maps->files[i].path);
	free(maps->mappings);
	free(maps->files);
	mappings_clear(maps);
}

static void process_drop(void *entry)
{
	mappings_free(entry);
}

void process_maps_cache_init(struct cache *processes)
{
	*processes = (struct cache){.entry_bytes = sizeof(struct process_maps),
				    .entries_max = PROCESSES_MAX,
				    .drop = process_drop};
}

static char *hex_take(char *at, char until, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(at, &end, 16);
	return errno || end == at || *end != until ? NULL : end + 1;
}

/* True if the kernel gives memory without a file that path in maps. */
static bool path_is_anonymous(const char *path)
{
	static const char *const begins[] = {"[anon", "//anon", "/anon_hugepage", "/dev/zero"};

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (!strncmp(path, begins[i], strlen(begins[i])))
			return true;
	return !*path;
}

/* Format: 7f0a00000000-7f0a00021000 r-xp 00000000 08:01 1234    /usr/lib/x.so */
bool mapping_parse(char *line, struct mapping *mapping, char **path)
{
	struct mapping made = {.module = MODULE_NONE};
	uint64_t major = 0, minor = 0;
	char *at = hex_take(line, '-', &made.start), *end;

	at = at ? hex_take(at, ' ', &made.end) : NULL;
	if (!at || made.end <= made.start || strlen(at) < 5 || at[4] != ' ' ||
	    !strncmp(at, "---", 3))
		return false;
	made.executable = at[2] == 'x';
	at = hex_take(at + 5, ' ', &made.offset);
	at = at ? hex_take(at, ':', &major) : NULL;
	at = at ? hex_take(at, ' ', &minor) : NULL;
	if (!at)
		return false;
	made.device = major << 32 | minor;
	errno = 0;
	made.inode = strtoull(at, &end, 10);
	if (errno || end == at)
		return false;
	*path = end + strspn(end, " ");
	made.jit = made.executable && path_is_anonymous(*path);
	*mapping = made;
	return true;
}

/* Adds a mapping of a file, in place of the one before it unless that is needed. */
static void file_take(struct process_maps *maps, const struct mapping *mapping, const char *path)
{
	if (maps->file_count > maps->file_needed)
		free(maps->files[--maps->file_count].path);
	maps->files = memory_grow(maps->files, &maps->file_capacity, maps->file_count + 1,
				  sizeof(*maps->files));
	maps->files[maps->file_count] = *mapping;
	maps->files[maps->file_count++].path = memory_text(path, strlen(path));
}

static void line_take(void *of, char *line)
{
	struct process_maps *maps = of;
	struct mapping mapping;
	char *path;

	if (maps->count == MAPPINGS_MAX || !mapping_parse(line, &mapping, &path))
		return;
	if (maps->count && mapping.start < maps->mappings[maps->count - 1].end)
		return; /* the kernel lists mappings in order */
	if (*path == '/' && !path_is_anonymous(path))
		file_take(maps, &mapping, path);
	if (!mapping.executable)
		return;
	/* get_trampoline_vaddr() of kernel/events/uprobes.c: its first byte */
	if (!strcmp(path, "[uprobes]"))
		maps->uprobes = mapping.start;
	if (mapping.jit) {
		mapping.above = (uint32_t)maps->file_count;
		maps->file_needed = maps->file_count + 1;
	}
	maps->mappings = memory_grow(maps->mappings, &maps->capacity, maps->count + 1,
				     sizeof(*maps->mappings));
	mapping.path = mapping.jit ? NULL : memory_text(path, strlen(path));
	maps->mappings[maps->count++] = mapping;
}

/* True if that file is mapped there as before. As its module has it open, no other file can have
 * been given its inode number since. */
static bool mapping_remains(const struct mapping *before, const struct mapping *now,
			    const struct module_table *modules)
{
	const struct module *module = modules ? mapping_known(before, modules) : NULL;

	return module && module->fd >= 0 && !before->jit && !now->jit &&
	       before->start == now->start && before->end == now->end &&
	       before->offset == now->offset && before->device == now->device &&
	       before->inode == now->inode;
}

/* Takes over the modules of files that are mapped as before, so that they need not be found again.
 * Both maps are in order. */
static void modules_take_over(struct process_maps *maps, struct process_maps *before)
{
	size_t at = 0;

	for (size_t i = 0; i < maps->count; i++) {
		struct mapping *mapping = &maps->mappings[i], *old;

		while (at < before->count && before->mappings[at].start < mapping->start)
			at++;
		old = at < before->count ? &before->mappings[at] : NULL;
		if (!old || !mapping_remains(old, mapping, maps->modules))
			continue;
		mapping->module = old->module;
		mapping->serial = old->serial;
		mapping->looked_at = true;
		old->module = MODULE_NONE;
	}
	mappings_free(before);
}

static int maps_read(struct process_maps *maps, const char *proc_root,
		     const struct stack_thread *thread)
{
	int64_t start_ns = clock_monotonic_ns(), took_ns;
	struct process_maps before;
	int fd, err;

	fd = proc_file_open(proc_root, 0, thread->tid, "maps");
	if (fd < 0)
		return fd;
	before = *maps;
	mappings_clear(maps);
	err = lines_each(fd, MAPS_BYTES_MAX, line_take, maps);
	close(fd);
	modules_take_over(maps, &before);
	took_ns = clock_monotonic_ns() - start_ns;
	maps->read_ns = thread->now_ns;
	maps->next_read_ns =
		thread->now_ns +
		(took_ns * AGAIN_SHARE > AGAIN_LEAST_NS ? took_ns * AGAIN_SHARE : AGAIN_LEAST_NS);
	return err;
}

void process_maps_drop_ended(struct cache *processes, const char *proc_root)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < processes->count; i++) {
		struct process_maps *maps = (struct process_maps *)processes->entries[i];

		snprintf(path, sizeof(path), "%s/%lld", proc_root, (long long)maps->entry.key);
		if (!maps->count || !access(path, F_OK) || errno != ENOENT)
			continue;
		mappings_free(maps);
		maps->read_ns = 0; /* the pid may be reused */
	}
}

struct process_maps *process_maps_get(struct cache *processes, const char *proc_root,
				      const struct stack_thread *thread, int *err)
{
	bool added, same;
	struct process_maps *maps =
		cache_get(processes, (uint64_t)thread->pid, thread->now_ns, &added);

	same = thread->pid != thread->tid || thread->program == maps->program;
	if (!added && same && thread->now_ns - maps->read_ns < MAPS_OLD_NS)
		return maps;
	if (!same) {
		mappings_free(maps); /* mappings of another program, of no use */
		maps->program = thread->program;
	}
	*err = maps_read(maps, proc_root, thread);
	return *err && !maps->count ? NULL : maps;
}

bool process_maps_again(struct process_maps *maps, const char *proc_root,
			const struct stack_thread *thread)
{
	return maps->read_ns != thread->now_ns && thread->now_ns >= maps->next_read_ns &&
	       !maps_read(maps, proc_root, thread);
}

int mapping_open(const struct mapping *mapping, const char *proc_root, int64_t tid)
{
	char path[PATH_MAX], link[40];
	struct stat file;
	int links, fd;

	if (avoids_process(tid) || avoids_file(mapping->path))
		return -ETIMEDOUT;
	snprintf(path, sizeof(path), "%s/%lld/map_files", proc_root, (long long)tid);
	snprintf(link, sizeof(link), "%llx-%llx", (unsigned long long)mapping->start,
		 (unsigned long long)mapping->end);
	links = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = links < 0 ? -errno : avoids_memory(tid) ? -ETIMEDOUT : process_link_open(links, link);
	if (links >= 0)
		close(links);
	if (fd == -ETIMEDOUT)
		return fd;
	/* map_files needs CAP_SYS_ADMIN, or since Linux 5.9 CAP_CHECKPOINT_RESTORE */
	if (fd >= 0 || fd == -EINVAL || mapping->path[0] != '/')
		return fd;
	fd = process_file_open(proc_root, tid, mapping->path + 1, false);
	if (fd >= 0 && (fstat(fd, &file) || file.st_ino != mapping->inode)) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}

static uint32_t vdso_module(const struct mapping *mapping, struct module_table *modules,
			    struct thread_memory *memory)
{
	uint64_t bytes = mapping->end - mapping->start;
	bool unchecked = memory->unchecked;
	char image[VDSO_BYTES_MAX];
	int err = 0;

	if (bytes > sizeof(image))
		return MODULE_NONE;
	memory->unchecked =
		true; /* the kernel has its pages, whether the process used them or not */
	for (uint64_t at = 0; !err && at < bytes; at += THREAD_MEMORY_PAGE_BYTES)
		err = thread_memory_read_code(memory, mapping->start + at, image + at,
					      THREAD_MEMORY_PAGE_BYTES);
	memory->unchecked = unchecked;
	if (err)
		return MODULE_NONE;
	return module_of_image(modules, image, bytes, mapping->path);
}

uint64_t process_stack_start(struct process_maps *maps, const char *proc_root,
			     const struct stack_thread *thread)
{
	struct proc_stat stat;

	if (maps->start_read_ns != maps->read_ns)
		maps->stack_start =
			proc_stat_read(proc_root, 0, thread->pid, &stat) ? 0 : stat.stack_start;
	maps->start_read_ns = maps->read_ns;
	return maps->stack_start;
}

/* Finds the file that has its code where the mapping's anonymous code is, by its nearest mapping
 * above or below. */
static uint32_t surrounding_module(struct process_maps *maps, struct mapping *mapping,
				   const char *proc_root, const struct stack_thread *thread,
				   struct module_table *modules)
{
	struct elf_pages code = {.start = mapping->start, .end = mapping->end};

	for (size_t i = mapping->above ? mapping->above - 1 : 0;
	     i <= mapping->above && i < maps->file_count; i++) {
		const struct mapping *file = &maps->files[i];
		const struct elf_pages of_file = {file->start, file->end, file->offset,
						  file->executable};
		int fd = mapping_open(file, proc_root, thread->tid);
		uint32_t module =
			fd < 0 ? MODULE_NONE : module_of_file(modules, fd, file->path, thread->tid);

		if (module == MODULE_NONE ||
		    !elf_place_code(&modules->modules[module]->elf, &of_file, &code))
			continue;
		mapping->offset = code.offset;
		return module;
	}
	return MODULE_NONE;
}

static uint32_t mapping_module(struct process_maps *maps, struct mapping *mapping,
			       const char *proc_root, const struct stack_thread *thread,
			       struct module_table *modules, struct thread_memory *memory)
{
	int64_t start_ns = clock_monotonic_ns();
	uint32_t module = MODULE_NONE;
	struct proc_stat stat;
	uint64_t refused;
	int fd;

	if (mapping->path && !strcmp(mapping->path, "[vdso]"))
		return vdso_module(mapping, modules, memory);
	refused = modules->refused;
	fd = mapping->path && mapping->inode ? mapping_open(mapping, proc_root, thread->tid) : -1;
	if (fd >= 0)
		module = module_of_file(modules, fd, mapping->path, thread->tid);
	else if (!mapping->path)
		module = surrounding_module(maps, mapping, proc_root, thread, modules);
	/* code of a JIT: memory files, too, by which JITs have their code writable elsewhere */
	mapping->jit = module == MODULE_NONE && modules->refused == refused;
	if (mapping->jit)
		/* a pid may be reused */
		module = module_of_process(
			modules, thread->pid, thread->tid,
			proc_stat_read(proc_root, 0, thread->pid, &stat) ? 0 : stat.start_ticks,
			process_user(proc_root, thread->tid));
	module_table_spend(modules, clock_monotonic_ns() - start_ns);
	return module;
}

static void mapping_look(struct process_maps *maps, struct mapping *mapping, const char *proc_root,
			 const struct stack_thread *thread, struct module_table *modules,
			 struct thread_memory *memory)
{
	uint64_t refused = modules->refused;

	maps->modules = modules;
	mapping_let_go(maps, mapping);
	if (!module_table_may_open(modules))
		return;
	mapping->module = mapping_module(maps, mapping, proc_root, thread, modules, memory);
	mapping->looked_at = modules->refused == refused;
	if (mapping->module == MODULE_NONE)
		return;
	mapping->serial = modules->modules[mapping->module]->serial;
	modules->modules[mapping->module]->mapped++;
}

static bool mapping_is_closed(const struct mapping *mapping, const struct module_table *modules)
{
	const struct module *module = mapping_known(mapping, modules);

	return mapping->module != MODULE_NONE && (!module || module->closed);
}

const struct mapping *mapping_find(struct process_maps *maps, const char *proc_root,
				   const struct stack_thread *thread, struct module_table *modules,
				   struct thread_memory *memory, uint64_t address)
{
	size_t low = 0, high = maps->count;
	struct mapping *mapping;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		mapping = &maps->mappings[middle];
		if (address < mapping->start) {
			high = middle;
		} else if (address >= mapping->end) {
			low = middle + 1;
		} else {
			if (!mapping->looked_at || mapping_is_closed(mapping, modules))
				mapping_look(maps, mapping, proc_root, thread, modules, memory);
			return mapping;
		}
	}
	return NULL;
}
