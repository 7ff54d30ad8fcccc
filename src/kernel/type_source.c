/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/type_source.h"
#include "kernel/btf_types.h"
#include "kernel/layout_validate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- BTF */

static int field_find(const struct btf_types *btf, uint32_t of, size_t field,
		      struct field_layout *layout)
{
	const struct field_row *row = &field_rows[field];

	for (unsigned char n = 0; of && n < FIELD_NAMES_MAX && row->names[n]; n++) {
		int64_t found = btf_member_find(btf, of, row->names[n], row->bytes);

		if (found < 0 || found > STRUCT_BYTES_MAX)
			continue;
		layout->name[field] = n;
		layout->offset[field] = (uint32_t)found;
		return 0;
	}
	return -ENOENT;
}

int btf_layout_read(const char *path, struct field_layout *layout, struct error *e)
{
	struct field_layout read = {.sets = layout->sets};
	const struct btf_types *btf;
	struct btf_types file;
	char what[ERROR_LINE_SIZE];
	uint32_t of = 0;
	bool own = !strcmp(path, KERNEL_BTF_PATH);
	int result = own ? btf_kernel(&btf, e) : btf_types_open(&file, path, e);

	if (result)
		return result;
	btf = own ? btf : &file;
	for (size_t i = 0; !result && i < field_count; i++) {
		if (!field_there(&read, i))
			continue;
		if (!i || strcmp(field_rows[i].of, field_rows[i - 1].of))
			of = btf_struct_find(btf, field_rows[i].of);
		result = field_find(btf, of, i, &read);
		if (result && field_rows[i].sets) {
			read.lacking[i] = true;
			result = 0;
		}
		if (result)
			error_set(e, EINVAL, EXIT_FAILED,
				  "BTF '%s' has no %s.%s: it is not of a whole kernel", path,
				  field_rows[i].of, field_rows[i].names[0]);
	}
	if (!own)
		btf_types_close(&file);
	snprintf(what, sizeof(what), "BTF '%s'", path);
	if (!result)
		result = field_layout_check(&read, what, e);
	if (!result)
		*layout = read;
	return result;
}

/* --- headers, by compiling */

/* Writes a function per field that returns its offset: the compiled program's first instruction
 * holds it. */
static void offsets_text(const struct field_layout *layout, struct text *text)
{
	text_add_string(
		text,
		"#include <linux/sched.h>\n#include <linux/cred.h>\n#include <linux/pid.h>\n");
	if (layout->sets & FIELDS_BLOCK)
		text_add_string(text, "#include <linux/blk-mq.h>\n");
	if (layout->sets & (FIELDS_SOCKET | FIELDS_PACKET))
		text_add_string(text, "#include <linux/fdtable.h>\n#include <linux/tcp.h>\n"
				      "#include <net/sock.h>\n");
	if (layout->sets & FIELDS_END)
		text_add_string(text, "#if __has_include(<linux/sched/signal.h>)\n" /* 4.11 */
				      "#include <linux/sched/signal.h>\n#endif\n");
	if (layout->sets & FIELDS_LOCK)
		text_add_string(text, "#include <linux/fdtable.h>\n#include <linux/mutex.h>\n"
				      "#include <linux/rwsem.h>\n#include <linux/semaphore.h>\n");
	for (size_t i = 0; i < field_count; i++)
		if (field_there(layout, i))
			text_add_format(text,
					"int ts_offset_%zu(void *ctx)\n"
					"{ return __builtin_offsetof(struct %s, %s); }\n",
					i, field_rows[i].of, field_rows[i].names[layout->name[i]]);
}

static int offset_of_program(const struct type_request *request, void *module, size_t field,
			     uint32_t *offset)
{
	char name[32];
	const struct bpf_insn *insn;

	snprintf(name, sizeof(name), "ts_offset_%zu", field);
	insn = request->bcc->bpf_function_start(module, name);
	if (!insn || request->bcc->bpf_function_size(module, name) < 2 * sizeof(*insn))
		return -EINVAL;
	if (BPF_OP(insn->code) != BPF_MOV || BPF_SRC(insn->code) != BPF_K || insn->dst_reg ||
	    insn->imm < 0)
		return -EINVAL;
	*offset = (uint32_t)insn->imm;
	return 0;
}

/* Reads the output from the given offset on, at most size - 1 bytes. */
static void output_read(int output, off_t from, char *text, size_t size)
{
	ssize_t got;

	fflush(NULL);
	got = pread(output, text, size - 1, from);
	text[got > 0 ? got : 0] = 0;
}

/* Clang's words are "no member named 'state' in 'task_struct'", or "in 'struct task_struct'". */
static bool member_is_missing(const char *printed, const char *of, const char *member)
{
	static const char *const kinds[] = {"", "struct "};
	char words[160];

	for (size_t i = 0; i < 2; i++) {
		snprintf(words, sizeof(words), "no member named '%s' in '%s%s'", member, kinds[i],
			 of);
		if (strstr(printed, words))
			return true;
	}
	return false;
}

/* Replaces the name of each member that the headers lack by its older name, or marks it as lacking.
 * True if there was any. */
static bool names_step(const char *printed, struct field_layout *layout)
{
	bool stepped = false;

	for (size_t i = 0; i < field_count; i++) {
		const struct field_row *row = &field_rows[i];
		unsigned char n = layout->name[i];

		if (!field_there(layout, i) || !member_is_missing(printed, row->of, row->names[n]))
			continue;
		if (n + 1 < FIELD_NAMES_MAX && row->names[n + 1])
			layout->name[i]++;
		else if (row->sets)
			layout->lacking[i] = true;
		else
			continue;
		stepped = true;
	}
	return stepped;
}

static void *offsets_compile(const struct type_request *request, struct field_layout *layout)
{
	static char printed[65536];
	/* 7.x needs -fms-extensions: without it layouts are silently wrong */
	const char *flags[] = {"-fms-extensions", "-Wno-everything"};
	void *module = NULL;

	do {
		struct text text = {0};
		off_t from = lseek(request->output, 0, SEEK_END);

		offsets_text(layout, &text);
		module = request->bcc->bpf_module_create_c_from_string(text_string(&text), 0, flags,
								       2, true, NULL);
		text_done(&text);
		output_read(request->output, from, printed, sizeof(printed));
	} while (!module && names_step(printed, layout));
	return module;
}

int header_layout_read(const struct type_request *request, const char *tree,
		       struct field_layout *layout, struct error *e)
{
	struct field_layout read = {.sets = layout->sets};
	int result = 0;
	void *module;

	read.lacking[field_index("rq", "cpu")] = true; /* kernel/sched/sched.h is not installed */
	if (tree)
		setenv("BCC_KERNEL_SOURCE", tree, 1);
	else
		unsetenv("BCC_KERNEL_SOURCE");
	module = offsets_compile(request, &read);
	if (!module && read.sets & (FIELDS_SOCKET | FIELDS_PACKET)) {
		read = (struct field_layout){.sets = layout->sets &
						     ~(FIELDS_SOCKET | FIELDS_PACKET)};
		read.lacking[field_index("rq", "cpu")] = true;
		module = offsets_compile(request, &read);
	}
	if (!module && read.sets) { /* sets need more headers, which may be beyond this libbcc */
		read = (struct field_layout){0};
		module = offsets_compile(request, &read);
	}
	if (!module)
		return error_set(e, EINVAL, EXIT_FAILED,
				 "libbcc can't compile the kernel headers%s%s: they are of another "
				 "kernel or newer than this libbcc knows (-v shows its output)",
				 tree ? " in " : "", tree ? tree : "");
	for (size_t i = 0; !result && i < field_count; i++)
		if (field_there(&read, i))
			result = offset_of_program(request, module, i, &read.offset[i]);
	request->bcc->bpf_module_destroy(module);
	if (result)
		return error_set(e, EINVAL, EXIT_FAILED,
				 "the compiled kernel headers gave no usable offsets");
	*layout = read;
	return 0;
}

/* --- the headers that the kernel itself may carry (CONFIG_IKHEADERS, 5.2), built in or as a module
 */

/* Runs argv (NULL at the end), found by PATH, and waits. 0; -errno where it can't be run; -EIO
 * where it failed, with its own message. */
static int command_run(const char *const *argv)
{
	posix_spawn_file_actions_t actions;
	pid_t child;
	int status, err;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	err = posix_spawnp(&child, argv[0], &actions, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (err)
		return -err;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status ? -EIO : 0;
}

static bool archive_there(void)
{
	return !access(KERNEL_KHEADERS_PATH, R_OK);
}

/* Only root's explicit word loads a module. */
static bool module_is_wanted(const struct type_request *request)
{
	return request->choice && !strcmp(request->choice, "kheaders") && !geteuid();
}

static bool kheaders_there(const struct type_request *request, char *where, size_t size)
{
	if (archive_there())
		snprintf(where, size, "%s", KERNEL_KHEADERS_PATH);
	else if (errno != ENOENT)
		snprintf(where, size, "%s: %s", KERNEL_KHEADERS_PATH, strerror(errno));
	else if (module_is_wanted(request))
		snprintf(where, size, "%s after modprobe kheaders", KERNEL_KHEADERS_PATH);
	else
		snprintf(where, size, "no %s (as root, --kernel-types kheaders loads the module)",
			 KERNEL_KHEADERS_PATH);
	return archive_there() || module_is_wanted(request);
}

static int archive_unpack(const struct type_request *request, const char *tree, struct error *e)
{
	const char *const command[] = {"tar", "-xJf", KERNEL_KHEADERS_PATH, "-C", tree, NULL};
	int failed = work_dir_write(request->work_dir, "kheaders/.tsnap", "", e);

	if (failed)
		return failed;
	failed = command_run(command);
	if (!failed)
		return 0;
	return error_set(e, -failed, EXIT_FAILED,
			 "%s can't be unpacked: tar: %s; are tar and xz installed?",
			 KERNEL_KHEADERS_PATH, failed == -EIO ? "failed" : strerror(-failed));
}

static int kheaders_read(const struct type_request *request, struct field_layout *layout,
			 struct error *e)
{
	static const char *const load[] = {"modprobe", "kheaders", NULL};
	static const char *const unload[] = {"modprobe", "-r", "kheaders", NULL};
	bool loaded = false;
	char tree[PATH_MAX];
	int failed = 0;

	snprintf(tree, sizeof(tree), "%s/kheaders/.", request->work_dir);
	if (!archive_there()) {
		failed = command_run(load);
		loaded = !failed;
	}
	if (failed || !archive_there())
		failed = error_set(e, ENOENT, EXIT_HOST_CANNOT,
				   "no %s: modprobe kheaders %s, so this kernel has no headers of "
				   "its own",
				   KERNEL_KHEADERS_PATH,
				   failed == -EIO ? "failed (-v says why)"
				   : failed	  ? "can't be run"
						  : "did not bring it");
	else
		failed = archive_unpack(request, tree, e);
	/* a module that tsnap loaded is unloaded again: the archive is unpacked */
	if (loaded)
		command_run(unload);
	return failed ? failed : header_layout_read(request, tree, layout, e);
}

/* --- the sources */

/* where gets the path, or why it can't be read. */
static bool file_there(const char *path, char *where, size_t size)
{
	int err = access(path, R_OK) ? errno : 0;

	if (err == ENOENT)
		snprintf(where, size, "no %s", path);
	else
		snprintf(where, size, "%s%s%s", path, err ? ": " : "", err ? strerror(err) : "");
	return !err;
}

static bool offsets_there(const struct type_request *request, char *where, size_t size)
{
	snprintf(where, size, "%s",
		 request->offsets_file ? request->offsets_file : "no --offsets FILE given");
	return request->offsets_file != NULL;
}

static int offsets_read(const struct type_request *request, struct field_layout *layout,
			struct error *e)
{
	return field_offsets_read(request->offsets_file, request->host->release,
				  request->host->machine, layout, e);
}

static bool btf_there(const struct type_request *request, char *where, size_t size)
{
	if (request->btf_file) {
		snprintf(where, size, "%s", request->btf_file);
		return true;
	}
	return file_there(KERNEL_BTF_PATH, where, size);
}

static int btf_read(const struct type_request *request, struct field_layout *layout,
		    struct error *e)
{
	return btf_layout_read(request->btf_file ? request->btf_file : KERNEL_BTF_PATH, layout, e);
}

/* Debian has the common half in source/ and the rest in build/; RHEL and others have one tree in
 * build/. */
static bool headers_there(const struct type_request *request, char *where, size_t size)
{
	static const char *const halves[] = {"build", "source"};
	char path[PATH_MAX];
	int err = ENOENT;

	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/lib/modules/%s/%s/include/linux/kconfig.h",
			 request->host->release, halves[i]);
		if (!access(path, R_OK)) {
			snprintf(where, size, "/lib/modules/%s/%s", request->host->release,
				 halves[i]);
			return true;
		}
		err = errno;
	}
	if (err == ENOENT)
		snprintf(where, size, "no headers in /lib/modules/%s/build",
			 request->host->release);
	else
		snprintf(where, size, "%s: %s", path, strerror(err));
	return false;
}

static int headers_read(const struct type_request *request, struct field_layout *layout,
			struct error *e)
{
	return header_layout_read(request, NULL, layout, e);
}

const struct type_source type_sources[] = {
	{"offsets", "an offsets file written on a host with the same kernel",
	 "offsets that tsnap --write-offsets wrote on a host", -1, offsets_there, offsets_read},
	{"btf", "the kernel's own type information", "the BTF", FEATURE_BTF, btf_there, btf_read},
	{"headers", "the distribution's kernel headers", "the headers", -1, headers_there,
	 headers_read},
	{"kheaders", "the headers in " KERNEL_KHEADERS_PATH, "the headers", FEATURE_KHEADERS,
	 kheaders_there, kheaders_read},
	{NULL, NULL, NULL, -1, NULL, NULL},
};

const struct type_source *type_source_of(const char *name)
{
	for (const struct type_source *source = type_sources; source->name; source++)
		if (!strcmp(source->name, name))
			return source;
	return NULL;
}

/* Returns the next name in alphabetical order; NULL: there is none. */
static const char *name_behind(const char *name)
{
	const char *next = NULL;

	for (const struct type_source *source = type_sources; source->name; source++)
		if (strcmp(source->name, name) > 0 && (!next || strcmp(source->name, next) < 0))
			next = source->name;
	return next;
}

void type_source_names_add(struct text *text, const char *between, const char *last)
{
	text_add_string(text, TYPE_SOURCE_AUTO);
	for (const char *name = name_behind(""); name; name = name_behind(name))
		text_add_format(text, "%s%s", name_behind(name) ? between : last, name);
}

bool type_source_there(const struct type_source *source, const struct type_request *request,
		       char *where, size_t size)
{
	if (source->wants >= 0 && !request->btf_file &&
	    request->features->state[source->wants] == FEATURE_TAKEN_AWAY) {
		snprintf(where, size, "%s", request->features->why[source->wants]);
		return false;
	}
	return source->there(request, where, size);
}

void type_source_remedy(const struct host *host, char *words, size_t size)
{
	static const struct {
		const char *id, *install, *package, *suffix;
	} rows[] = {
		{"suse", "zypper install", "kernel-default-devel", ""},
		{"amzn", "dnf install", "kernel-devel-", "release"},
		{"rhel", "dnf install", "kernel-devel-", "release"},
		{"fedora", "dnf install", "kernel-devel-", "release"},
		{"debian", "apt install", "linux-headers-", "release"},
		{"ubuntu", "apt install", "linux-headers-", "release"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!strstr(host->distribution_id, rows[i].id))
			continue;
		snprintf(words, size, "%s %s%s", rows[i].install, rows[i].package,
			 *rows[i].suffix ? host->release : "");
		return;
	}
	snprintf(words, size, "install the headers of kernel %s", host->release);
}

/* Returns the source that the user insists on, or NULL. */
static const char *source_named(const struct type_request *request)
{
	if (request->offsets_file)
		return "offsets";
	if (request->btf_file)
		return "btf";
	if (request->choice && strcmp(request->choice, TYPE_SOURCE_AUTO) != 0)
		return request->choice;
	return NULL;
}

/* Compares a layout with the BTF in /sys, if there is one and it is this kernel's. True: *field
 * differs. */
static bool btf_differs(const struct type_request *request, const struct field_layout *layout,
			size_t *field)
{
	struct type_request sysfs = *request;
	struct field_layout own = {.sets = layout->sets};
	struct layout_validation proof;
	struct error e = {0};
	char where[PATH_MAX];

	sysfs.btf_file = NULL;
	if (!type_source_there(type_source_of("btf"), &sysfs, where, sizeof(where)))
		return false;
	if (btf_layout_read(KERNEL_BTF_PATH, &own, &e)) {
		error_done(&e);
		return false;
	}
	for (*field = 0; *field < field_count; ++*field)
		if (field_there(layout, *field) &&
		    (!field_there(&own, *field) || own.name[*field] != layout->name[*field] ||
		     own.offset[*field] != layout->offset[*field]))
			return layout_validate(&own, request->parent_name, &proof) <= 0;
	return false;
}

/* Validates the layout on this kernel; where gets how, or why that could not be done. */
static int source_validate(const struct type_request *request, const struct type_source *source,
			   const struct field_layout *layout, struct text *where, struct error *e)
{
	struct layout_validation proof = {0};
	bool own_btf = source->read == btf_read && !request->btf_file;
	int result = !own_btf && btf_differs(request, layout, &proof.field)
			     ? 1
			     : layout_validate(layout, request->parent_name, &proof);
	const struct field_row *row = &field_rows[proof.field];

	if (result > 0)
		return error_set(
			e, EINVAL, EXIT_FAILED,
			"'%s' is of another kernel: it puts %s.%s at byte %u, where this kernel "
			"has something else; give %s of kernel %s",
			text_string(where), row->of, row->names[layout->name[proof.field]],
			layout->offset[proof.field], source->gives, request->host->release);
	if (result)
		text_add_format(where, ", not validated (%s)", proof.why);
	else
		text_add_string(where, ", validated on this kernel");
	return 0;
}

/* Reads the types from a source and validates them; where gets the words on what was read. */
static int source_try(const struct type_request *request, const struct type_source *source,
		      struct type_found *found, struct text *where, struct error *e)
{
	struct type_found made = {.source = source, .layout.sets = request->fields};
	char place[PATH_MAX];
	int result;

	if (!type_source_there(source, request, place, sizeof(place)))
		return error_set(e, ENOENT, EXIT_HOST_CANNOT, "%s", place);
	text_add_string(where, place);
	result = source->read(request, &made.layout, e);
	if (!result)
		result = source_validate(request, source, &made.layout, where, e);
	if (!result)
		*found = made;
	return result;
}

/* Joins the lines of tried with "; " between. */
static void tried_join(const struct text *tried, char *words, size_t size)
{
	size_t at = 0;

	for (const char *from = text_string(tried); *from && at + 2 < size; from++) {
		bool end = *from == '\n';

		if (end && !from[1])
			break;
		words[at++] = end ? ';' : *from;
		if (end)
			words[at++] = ' ';
	}
	words[at] = 0;
}

int type_source_find(const struct type_request *request, struct type_found *found,
		     struct text *tried, struct error *e)
{
	const char *named = source_named(request);
	char remedy[256], words[ERROR_LINE_SIZE];
	int err;

	for (const struct type_source *source = type_sources; source->name; source++) {
		struct error failed = {0};
		struct text where = {0};
		int result;

		/* no --offsets, no offsets */
		if (named ? strcmp(source->name, named) != 0 : source->read == offsets_read)
			continue;
		result = source_try(request, source, found, &where, &failed);
		text_add_format(tried, "%s: %s\n", source->name,
				result ? failed.line : text_string(&where));
		text_done(&where);
		if (!result)
			return 0;
		if (named && failed.exit_code == EXIT_HOST_CANNOT) {
			snprintf(words, sizeof(words), "%s", failed.line);
			error_set(&failed, -result, EXIT_HOST_CANNOT, "kernel types from %s: %s",
				  named, words);
		}
		if (named || result == -EMFILE || result == -ENFILE || result == -ENOMEM) {
			*e = failed;
			return result;
		}
		error_done(&failed);
	}
	type_source_remedy(request->host, remedy, sizeof(remedy));
	tried_join(tried, words, sizeof(words));
	err = error_of_words(words);
	return error_set(e, err ? err : ENOENT, EXIT_HOST_CANNOT,
			 "no source of kernel types works here: %s, or give --btf FILE or "
			 "--offsets FILE (tried: %s)",
			 remedy, words);
}
