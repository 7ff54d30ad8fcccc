/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/type_source.h"
#include "kernel/btf_ids.h"
#include "kernel/layout_validate.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
