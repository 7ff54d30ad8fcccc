/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/scan/live_own.h"
#include "live/scan/live_own_rate.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/text.h"
#include "kernel/bpf_cost.h"
#include "kernel/btf_types.h"
#include "kernel/kernel_event.h"
#include "kernel/own_probe.h"
#include "keeper/avoid.h"
#include "kernel/task_query.h"
#include "proc/proc.h"
#include "unwind/elf/process_file.h"
#include "unwind/file_request.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECK_NS NS_PER_SECOND
#define MAPS_BYTES_MAX (16ull << 20)
#define FILES_SHOWN 4

_Static_assert(OWN_SITES_MAX == USDT_SITES_MAX && OWN_PROBE_POINT_SIZE <= PROBE_NAME_BYTES,
	       "what a file says fits");

/* --- the file */

/* Files of that name that processes execute or have mapped. */
struct file_search {
	const char *name;
	int64_t pid;
	struct found_file {
		dev_t device;
		ino_t inode;
		char path[PATH_MAX];
	} files[FILES_SHOWN];
	unsigned int count; /* may be more than there is room for */
};

/* True for postgres, libNAME.so.6, NAME.so and NAME-2.31.so. */
static bool file_named(const char *path, const char *name)
{
	const char *base = strrchr(path, '/');
	size_t length = strlen(name);

	base = base ? base + 1 : path;
	if (!strcmp(base, name))
		return true;
	if (!strncmp(base, "lib", 3) && strncmp(name, "lib", 3) != 0)
		base += 3;
	if (strncmp(base, name, length) != 0)
		return false;
	base += length;
	if (*base == '-' && base[1] >= '0' && base[1] <= '9')
		base += strcspn(base, "s");
	return !strncmp(base, ".so", 3) && (!base[3] || base[3] == '.');
}

static void file_add(struct file_search *search, const char *path)
{
	struct stat of_process, here;
	char whole[PATH_MAX];
	struct found_file *file = search->files + search->count;

	if (!file_named(path, search->name))
		return;
	if (snprintf(whole, sizeof(whole), PROC "/%lld/root%s", (long long)search->pid, path) >=
	    (int)sizeof(whole))
		return;
	if (stat(whole, &of_process) || !S_ISREG(of_process.st_mode))
		return;
	for (unsigned int i = 0; i < search->count && i < FILES_SHOWN; i++)
		if (search->files[i].device == of_process.st_dev &&
		    search->files[i].inode == of_process.st_ino)
			return;
	if (search->count++ >= FILES_SHOWN)
		return;
	file->device = of_process.st_dev;
	file->inode = of_process.st_ino;
	/* the plain path if that is the same file here, outside of the process's mount namespace */
	if (!stat(path, &here) && here.st_dev == of_process.st_dev &&
	    here.st_ino == of_process.st_ino)
		snprintf(file->path, sizeof(file->path), "%s", path);
	else
		snprintf(file->path, sizeof(file->path), "%s", whole);
}

static void maps_line(void *of, char *line)
{
	/* "7f3c4000-7f3c5000 r-xp 00000000 fe:00 1234   /usr/lib/libc.so.6": code only */
	char *path = strchr(line, '/'), *rights = strchr(line, ' ');

	if (path && rights && rights[3] == 'x')
		file_add(of, path);
}

static void process_search(struct file_search *search, int64_t pid)
{
	char path[PATH_MAX];
	int maps;

	search->pid = pid;
	if (proc_link_read(PROC, pid, pid, "exe", path, sizeof(path)) > 0)
		file_add(search, path);
	maps = proc_file_open(PROC, pid, pid, "maps");
	if (maps < 0)
		return;
	lines_each(maps, MAPS_BYTES_MAX, maps_line, search);
	close(maps);
}

static void processes_search(struct file_search *search, int64_t only)
{
	DIR *all = only ? NULL : opendir(PROC);
	int64_t pid;

	if (only)
		process_search(search, only);
	while ((pid = proc_dir_next(all)) >= 0)
		process_search(search, pid);
	if (all)
		closedir(all);
}

/* Looks for a program that does not run. */
static bool program_find(const char *name, char *path, size_t size)
{
	static const char *const places[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
					     "/usr/bin",	"/sbin",	  "/bin"};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (snprintf(path, size, "%s/%s", places[i], name) < (int)size &&
		    !access(path, R_OK))
			return true;
	}
	return false;
}

/* Returns the process of -p if that is one id; else 0. */
static int one_pid(const struct live_config *config)
{
	const char *text = config->process;

	return text && !config->descendants && !text[strspn(text, "0123456789")]
		       ? (int)strtol(text, NULL, 10)
		       : 0;
}

static int file_refuse(const struct own_probe *probe, const struct own_target *target, int err,
		       struct error *e)
{
	return own_probe_refuse(probe, probe->file_at, e, "'%s' can't be read: %s", target->path,
				err == -ENOEXEC ? "it is no ELF file of this machine"
				: err == -EPIPE ? "the process that reads it died, or took too long"
						: strerror(-err));
}

static int file_find(const struct own_probe *probe, struct own_target *target, struct error *e)
{
	struct file_search *search;
	struct text listed = {0};
	int err = 0;

	if (probe->file[0] == '/') {
		char root[64] = "";

		if (target->pid)
			snprintf(root, sizeof(root), PROC "/%d/root", target->pid);
		if (snprintf(target->path, sizeof(target->path), "%s%s", root, probe->file) >=
		    (int)sizeof(target->path))
			return own_probe_refuse(probe, probe->file_at, e, "the path is too long");
		return 0;
	}
	search = memory_get(sizeof(*search));
	search->name = probe->file;
	processes_search(search, target->pid);
	for (unsigned int i = 0; i < search->count && i < FILES_SHOWN; i++)
		text_add_format(&listed, "%s%s", i ? ", " : "", search->files[i].path);
	if (search->count > 1)
		err = own_probe_refuse(probe, probe->file_at, e,
				       "several files are meant (%s%s): give the path of one",
				       text_string(&listed),
				       search->count > FILES_SHOWN ? " ..." : "");
	else if (search->count)
		snprintf(target->path, sizeof(target->path), "%s", search->files[0].path);
	else if (target->pid || !program_find(probe->file, target->path, sizeof(target->path)))
		err = own_probe_refuse(probe, probe->file_at, e,
				       "%s runs '%s' or has a library of that name: give its path",
				       target->pid ? "the process of -p neither" : "no process",
				       probe->file);
	text_done(&listed);
	free(search);
	return err;
}

/* Opens the file of a probe for the parser, which reads it. */
static int file_open(const struct own_probe *probe, const struct own_target *target,
		     struct elf_file *elf, struct error *e)
{
	struct stat about = {0};
	int err;

	*elf = (struct elf_file){.fd = open(target->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
	err = elf->fd < 0 ? -errno : fstat(elf->fd, &about) ? -errno : 0;
	if (!err && !S_ISREG(about.st_mode))
		err = -ENOEXEC;
	elf->bytes = (uint64_t)about.st_size;
	if (!err)
		return 0;
	if (elf->fd >= 0)
		close(elf->fd);
	return file_refuse(probe, target, err, e);
}

/* --- the function */

static int function_missing(const struct own_probe *probe, const struct elf_function *function,
			    const char *path, struct error *e)
{
	const char *nearest = function->nearest;

	return own_probe_refuse(probe, probe->point_at, e, "%s has no function '%s'%s%s%s", path,
				probe->point, *nearest ? "; the nearest is '" : "", nearest,
				*nearest	 ? "'"
				: !function->any ? ": all its symbols were stripped"
						 : "; nm -D lists those that it exports");
}

/* Functions whose returns can't be probed: they never come back, or more than once by the same
 * address. */
static bool returns_otherwise(const char *name)
{
	static const char *const names[] = {
		"exit", "_exit", "_Exit", "abort", "longjmp", "_longjmp", "siglongjmp",
		"__longjmp_chk", "pthread_exit", "err", "errx", "__stack_chk_fail", "__assert_fail",
		"quick_exit", "thrd_exit", "setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp", "vfork",
		"__vfork", "getcontext", "swapcontext", "setcontext", "clone", "__clone",
		"__clone2", "_start", "__libc_start_main",
		/* of the kernel */
		"do_exit", "do_group_exit", "make_task_dead", "panic", "ret_from_fork"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Refuses what can't be done with a function that is there. */
static int function_check(const struct own_probe *probe, const struct elf_function *function,
			  const char *path, struct error *e)
{
	const bool counted = probe->result == OWN_COUNT && !probe->token_count;
	const char *why = NULL;

	if (function->indirect)
		return own_probe_refuse(probe, probe->point_at, e,
					"'%s' only chooses the function that is called for it: "
					"probe that one (nm %s lists them)",
					probe->point, path);
	if (!function->in_code)
		return own_probe_refuse(probe, probe->point_at, e, "'%s' has no code in %s",
					probe->point, path);
	if (function->go && !counted)
		return own_probe_refuse(probe, probe->point_at, e,
					"this is a program of Go, which moves its stacks, passes "
					"arguments in its own way, and would crash if a return "
					"were probed: only calls can be counted, with ()");
	if (function->narrow && !counted)
		return own_probe_refuse(probe, probe->file_at, e,
					"this is a 32-bit file, where registers do not have the "
					"arguments: only calls can be counted, with ()");
	if (!own_probe_returns(probe))
		return 0;
	if (returns_otherwise(probe->point))
		why = "this function does not return as others do";
	else if (function->throws)
		why = "this file throws or passes on exceptions (C++, Rust), which end a process "
		      "when they meet a function whose return is probed";
	if (!why)
		return 0;
	return own_probe_refuse(probe, probe->point_at, e,
				"%s: count its calls with (), or report an argument, such as "
				"(arg1:int)",
				why);
}

/* Returns a process whose memory map is locked; -1: none. */
static int64_t locked_find(void)
{
	DIR *all = opendir(PROC);
	int64_t pid;

	do
		pid = proc_dir_next(all);
	while (pid >= 0 && !avoids_memory(pid));
	if (all)
		closedir(all);
	return pid;
}

static int function_find(struct parser *parser, const struct own_probe *probe,
			 const struct elf_file *elf, struct own_target *target, struct error *e)
{
	struct elf_function function;
	int err = file_function_request(parser, elf, probe->point, &function);

	if (err)
		return file_refuse(probe, target, err, e);
	if (!function.found)
		return function_missing(probe, &function, target->path, e);
	target->sites[0] = (struct own_site){.offset = function.offset};
	target->site_count = 1;
	target->stepped = probe_is_stepped(function.begin);
	return function_check(probe, &function, target->path, e);
}

/* --- USDT probes */

static int usdt_missing(const struct own_probe *probe, const struct elf_usdt *usdt,
			const char *path, struct error *e)
{
	const char *nearest = usdt->nearest;
	const bool of = *probe->provider;

	if (!usdt->any)
		return own_probe_refuse(probe, probe->point_at, e,
					"%s has no USDT probes: it was built without them", path);
	return own_probe_refuse(probe, probe->point_at, e, "%s has no USDT probe '%s%s%s'%s%s%s",
				path, probe->provider, of ? ":" : "", probe->point,
				*nearest ? "; the nearest is '" : "; readelf -n lists those it has",
				nearest, *nearest ? "'" : "");
}

/* Takes where the probe's fields are at a site. */
static int site_take(const struct own_probe *probe, const struct elf_usdt *usdt,
		     const struct usdt_site *found, struct own_site *site, struct error *e)
{
	*site = (struct own_site){.offset = found->offset, .semaphore = found->semaphore};
	for (unsigned int i = 0; i < probe->field_count; i++) {
		const struct own_probe_field *field = &probe->fields[i];
		struct text arguments = {0};
		int err = 0;

		text_add_printable(&arguments, usdt->arguments);
		if (field->arg > found->argument_count)
			err = own_probe_refuse(
				probe, field->at, e, "'%s' has %s arguments%s%s", probe->point,
				found->argument_count ? "not so many" : "no",
				found->argument_count ? ": " : "", text_string(&arguments));
		else if (!usdt_operand_is_valid(&found->arguments[field->arg - 1]))
			err = own_probe_refuse(
				probe, field->at, e,
				"arg%u of '%s' is where tsnap can't read it (the arguments are %s)",
				field->arg, probe->point, text_string(&arguments));
		text_done(&arguments);
		if (err)
			return err;
		site->operands[i] = found->arguments[field->arg - 1];
	}
	return 0;
}

static int usdt_find(struct parser *parser, const struct own_probe *probe,
		     const struct elf_file *elf, struct own_target *target, struct error *e)
{
	static struct elf_usdt usdt;
	int err = file_usdt_request(parser, elf, probe->provider, probe->point, &usdt);

	if (err)
		return file_refuse(probe, target, err, e);
	if (!usdt.site_count)
		return usdt_missing(probe, &usdt, target->path, e);
	if (*usdt.other)
		return own_probe_refuse(probe, probe->point_at, e,
					"several providers have it (%s, %s): u:FILE:PROVIDER:%s",
					usdt.provider, usdt.other, probe->point);
	if (usdt.more || usdt.misplaced)
		return own_probe_refuse(probe, probe->point_at, e,
					usdt.more ? "'%s' is at more than %d places in the file"
						  : "'%s' is not in the file's code",
					probe->point, OWN_SITES_MAX);
	if (usdt.narrow && probe->field_count)
		return own_probe_refuse(probe, probe->file_at, e,
					"this is a 32-bit file, whose arguments can't be read: the "
					"probe can only be counted, with ()");
	target->stepped = false; /* all machines have a nop there */
	for (target->site_count = 0; !err && target->site_count < usdt.site_count;
	     target->site_count++)
		err = site_take(probe, &usdt, &usdt.sites[target->site_count],
				&target->sites[target->site_count], e);
	if (!err && !own_sites_differ(probe, target))
		err = own_probe_refuse(probe, probe->point_at, e,
				       "'%s' is at places whose addresses have the same lowest "
				       "bits, but their arguments elsewhere",
				       probe->point);
	return err;
}

/* Finds what is probed in the code of a file. */
static int code_find(struct parser *parser, const struct own_probe *probe,
		     struct own_target *target, struct error *e)
{
	struct elf_file elf;
	int64_t locked;
	int err;

	task_query_begin(); /* so that no process whose memory map is locked is read */
	locked = target->pid ? -1 : locked_find();
	/* register_for_each_vma() of kernel/events/uprobes.c */
	if (locked >= 0)
		return own_probe_refuse(probe, probe->file_at, e,
					"the memory map of process %lld is locked, and the kernel "
					"would wait for it: probe another one alone, with -p",
					(long long)locked);
	err = file_find(probe, target, e);
	if (!err)
		err = file_open(probe, target, &elf, e);
	if (err)
		return err;
	err = probe->kind == OWN_USDT ? usdt_find(parser, probe, &elf, target, e)
				      : function_find(parser, probe, &elf, target, e);
	close(elf.fd);
	return err;
}

/* --- the kernel's tracepoints and functions */

/* What the kernel's types tell of a kind of names. */
struct kernel_names {
	const char *(*next)(const struct btf_types *btf, uint32_t *id);
	const char *(*argument)(const struct btf_types *btf, const char *name, unsigned int number);
	const struct btf_types *btf;
	uint32_t id;
};

static const char *kernel_name_at(void *from, size_t at)
{
	struct kernel_names *names = from;

	if (!at)
		names->id = 0;
	return names->next(names->btf, &names->id);
}

static int kernel_missing(const struct own_probe *probe, struct kernel_names *names,
			  struct error *e)
{
	const char *nearest = names->btf ? text_nearest(probe->point, kernel_name_at, names) : NULL;

	return own_probe_refuse(probe, probe->point_at, e, "this kernel has no %s '%s'%s%s%s",
				own_kinds[probe->kind].what, probe->point,
				nearest ? "; the nearest is '" : "", nearest ? nearest : "",
				nearest ? "'" : "");
}

static int argument_find(const struct kernel_names *names, const struct own_probe *probe,
			 struct own_probe_field *field, struct error *e)
{
	struct text listed = {0};
	unsigned int count = 0;
	const char *name;
	int err;

	while (count < OWN_PROBE_ARGS &&
	       (name = names->argument(names->btf, probe->point, count + 1))) {
		text_add_format(&listed, "%s%s", count++ ? ", " : "", name);
		if (field->name[0] && !strcmp(name, field->name))
			field->arg = count;
	}
	err = field->arg && (field->arg <= count || !count)
		      ? 0
		      : own_probe_refuse(probe, field->at, e,
					 "the %s %s has no such argument; it has %s",
					 own_kinds[probe->kind].what, probe->point,
					 count ? text_string(&listed) : "none");
	text_done(&listed);
	return err;
}

/* Finds the numbers of arguments that have names. */
static int arguments_find(const struct kernel_names *names, struct own_probe *probe,
			  struct error *e)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < probe->field_count; i++) {
		struct own_probe_field *field = &probe->fields[i];

		if (field->returned)
			continue;
		if (names->btf)
			err = argument_find(names, probe, field, e);
		else if (!field->arg)
			err = own_probe_refuse(probe, field->at, e,
					       "this kernel does not name arguments (no BTF): use "
					       "arg1 to arg%d",
					       OWN_PROBE_ARGS);
	}
	return err;
}

static int tracepoint_find(struct own_probe *probe, struct error *e)
{
	struct kernel_names names = {btf_tracepoint_next, btf_tracepoint_argument, NULL, 0};

	/* without the kernel's BTF the kernel says, when it is attached, that it has no such one */
	if (!btf_kernel(&names.btf, NULL) && btf_tracepoint_id(probe->point) < 0)
		return kernel_missing(probe, &names, e);
	return arguments_find(&names, probe, e);
}

static int kernel_function_take(struct own_probe *probe, struct own_target *target, struct error *e)
{
	struct kernel_names names = {btf_function_next, btf_function_argument, NULL, 0};

	if (!probe_kernel_offered())
		return own_probe_refuse(
			probe, probe->point_at, e,
			"this kernel has no event source for kprobes (4.17 is the first that may, "
			"built with CONFIG_KPROBE_EVENTS): of it only tracepoints can be "
			"probed, with t:");
	if (btf_kernel(&names.btf, NULL))
		names.btf = NULL;
	if (kernel_function_find(probe->point, target->path, sizeof(target->path)))
		return kernel_missing(probe, &names, e);
	if (own_probe_returns(probe) && returns_otherwise(probe->point))
		return own_probe_refuse(
			probe, probe->point_at, e,
			"this function does not return as others do: count its calls "
			"with (), or report an argument, such as (arg1:int)");
	target->sites[0] = (struct own_site){0};
	target->site_count = 1;
	return arguments_find(&names, probe, e);
}

/* --- the budget */

static int budget_begin(struct live *live, struct own_probes *own, struct error *e)
{
	const char *why = NULL;

	own->checked_ns = 0;
	live->own_begun = true;
	if (!own->users++)
		own->stats = bpf_stats_open(&live->context.kernel.features, &why);
	if (own->stats < 0 && why)
		return error_set(e, ENOTSUP, EXIT_HOST_CANNOT,
				 "--probe: nothing keeps a probe in its budget: %s", why);
	for (unsigned int i = 0; i < own->count; i++) {
		struct own_item *item = &own->items[i];
		int64_t cost_ns = 0;

		if (item->probe.kind == OWN_KERNEL)
			cost_ns = probe_kernel_cost(own_probe_returns(&item->probe));
		else if (own_kinds[item->probe.kind].of_file)
			cost_ns = probe_function_cost(own_probe_returns(&item->probe),
						      item->target.stepped);
		item->call_ns = cost_ns > 0 ? cost_ns : 0;
	}
	return 0;
}

/* READ_USER_STR of probe.bpf.c */
static int texts_check(struct live *live, const struct own_probe *probe, struct error *e)
{
	struct features *features = &live->context.kernel.features;

	if ((probe->result != OWN_EACH && probe->result != OWN_HELD) || probe->type != OWN_STR)
		return 0;
	if (live->context.config.hides_texts && probe->result == OWN_EACH)
		return own_probe_refuse(probe, probe->fields[probe->value].at, e,
					"str shows texts of programs: not with --query-text off");
	if (feature_has(features, FEATURE_READ_INTO_MAP) &&
	    feature_has(features, FEATURE_PROBE_READ_KERNEL))
		return 0;
	return own_probe_refuse(probe, probe->fields[probe->value].at, e,
				"this kernel reads no texts of programs for tsnap (5.5 does)");
}

static int target_find(struct live *live, struct own_probe *probe, struct own_target *target,
		       struct error *e)
{
	target->pid = one_pid(&live->context.config);
	switch (probe->kind) {
	case OWN_KERNEL:
		return kernel_function_take(probe, target, e);
	case OWN_TRACEPOINT:
		return tracepoint_find(probe, e);
	default:
		return code_find(live_parser(&live->context, PARSER_TABLES), probe, target, e);
	}
}

/* Adds the places of another probe that ends a context. */
static int sites_add(const struct own_probe *probe, const struct own_target *more,
		     struct own_target *target, struct error *e)
{
	if (target->site_count + more->site_count > OWN_SITES_MAX)
		return own_probe_refuse(probe, probe->point_at, e,
					"the context ends at more than %d places", OWN_SITES_MAX);
	for (unsigned int i = 0; i < more->site_count; i++)
		target->sites[target->site_count++] = more->sites[i];
	return 0;
}

/* Finds where a context ends, and checks that it can be kept. */
static int held_check(struct live *live, struct own_item *item, struct error *e)
{
	static struct own_target more;

	/* values are read from memory that is shared with the programs */
	if (!feature_has(&live->context.kernel.features, FEATURE_THREAD_SLOTS))
		return own_probe_refuse(&item->probe, 0, e,
					"this kernel shares no memory with programs for it (5.5 is "
					"the first that does)");
	for (unsigned int i = 0; i < item->end_count; i++) {
		int err = target_find(live, &item->ends[i], i ? &more : &item->end_target, e);

		if (!err && i)
			err = sites_add(&item->ends[i], &more, &item->end_target, e);
		if (err)
			return err;
	}
	return 0;
}

int live_own_begin(struct live *live, struct error *e)
{
	struct own_probes *own = live->context.config.own;
	int err = 0;

	/* The first trial lifts the limit of locked memory (until 5.10): before, maps of another
	 * tsnap would have those that follow fail. */
	if (own)
		feature_has(&live->context.kernel.features, FEATURE_BPF);
	for (unsigned int i = 0; own && !err && i < own->count; i++) {
		struct own_item *item = &own->items[i];

		item->detached = false;
		item->ns = item->runs = item->rate = item->share = 0;
		err = texts_check(live, &item->probe, e);
		if (!err)
			err = target_find(live, &item->probe, &item->target, e);
		if (!err && item->probe.result == OWN_HELD)
			err = held_check(live, item, e);
	}
	if (!own || err)
		return err;
	own->stacks |=
		own_probes_report(own) && live->context.wants.needs & (NEED_USTACK | NEED_KSTACK);
	own_probes_rows_fill(own);
	err = budget_begin(live, own, e);
	if (!err)
		live_own_rates_tell(own, live->context.config.probe_budget);
	return err;
}

/* Reads what a probe has cost since its programs were loaded. *calls: how often it was reached, as
 * far as its programs run at the same call. */
static int64_t cost_read(const struct live *live, const struct own_probes *own, unsigned int index,
			 int64_t *calls)
{
	const struct own_item *item = &own->items[index];
	const int *programs = &live->context.kernel.compiled.programs[GROUP_OWN + 2 * index];
	int64_t ns = 0;

	*calls = 0;
	for (unsigned int end = 0; end < 2; end++) {
		struct program_cost cost;

		if (programs[end] < 0 || program_cost_read(programs[end], &cost) || cost.runs < 0)
			continue;
		ns += cost.ns;
		if (item->probe.result == OWN_HELD)
			*calls += cost.runs;
		else
			*calls = cost.runs > *calls ? cost.runs : *calls;
	}
	return ns + *calls * item->call_ns;
}

void live_own_check(struct live *live)
{
	struct own_probes *own = live->context.config.own;
	const int64_t now_ns = clock_monotonic_ns();
	const int64_t elapsed_ns = own ? now_ns - own->checked_ns : 0;

	if (!own || elapsed_ns < CHECK_NS)
		return;
	for (unsigned int i = 0; i < own->count; i++) {
		struct own_item *item = &own->items[i];
		int64_t calls, ns = cost_read(live, own, i, &calls);
		int64_t spent_ns = ns - item->ns, rate = calls - item->runs;

		item->ns = ns;
		item->runs = calls;
		/* after a growth of the maps the programs are new, and count from 0 */
		if (!own->checked_ns || item->detached || spent_ns < 0 ||
		    spent_ns <= elapsed_ns / 1000 * live->context.config.probe_budget)
			continue;
		probe_detach_own(&live->context.kernel.links, i);
		item->detached = true;
		item->share = spent_ns / (elapsed_ns / 1000);
		item->rate = rate * NS_PER_SECOND / elapsed_ns;
	}
	own->checked_ns = now_ns;
}

void live_own_describe(const struct live *live, struct source_status *status)
{
	const struct own_probes *own = live->context.config.own;

	for (unsigned int i = 0; own && i < own->count; i++) {
		const struct own_item *item = &own->items[i];
		const int64_t budget = live->context.config.probe_budget;
		struct source_missed *missed;
		char words[256];

		if (!item->detached)
			continue;
		snprintf(words, sizeof(words),
			 "calls a second: probe '%s' was detached, as it took %lld.%lld %% of a "
			 "CPU, and --probe-budget is %lld.%lld",
			 item->probe.name, (long long)item->share / 10, (long long)item->share % 10,
			 (long long)budget / 10, (long long)budget % 10);
		missed = source_status_miss(status, name_of_string(words), (uint64_t)item->rate);
		missed->standing = missed->always = true;
	}
}

void live_own_end(struct live *live)
{
	struct own_probes *own = live->context.config.own;

	if (!live->own_begun || --own->users)
		return;
	if (own->stats > 0)
		close(own->stats);
	own->stats = 0;
}
