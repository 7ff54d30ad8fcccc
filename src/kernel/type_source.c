/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/type_source.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static bool file_there(const char *path, char *where, size_t size)
{
	bool there = !access(path, R_OK);

	snprintf(where, size, there ? "%s" : "no readable %s", path);
	return there;
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

	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/lib/modules/%s/%s/include/linux/kconfig.h",
			 request->host->release, halves[i]);
		if (!access(path, R_OK)) {
			snprintf(where, size, "/lib/modules/%s/%s", request->host->release,
				 halves[i]);
			return true;
		}
	}
	snprintf(where, size, "no headers in /lib/modules/%s/build", request->host->release);
	return false;
}

static int headers_read(const struct type_request *request, struct field_layout *layout,
			struct error *e)
{
	return header_layout_read(request, NULL, layout, e);
}

static bool kheaders_there(const struct type_request *request, char *where, size_t size)
{
	bool there;

	(void)request;
	there = file_there(KERNEL_KHEADERS_PATH, where, size);
	if (!there)
		snprintf(where, size, "no %s (modprobe kheaders may bring it)",
			 KERNEL_KHEADERS_PATH);
	return there;
}

static int kheaders_read(const struct type_request *request, struct field_layout *layout,
			 struct error *e)
{
	char tree[PATH_MAX];
	char *const command[] = {"tar", "-xJf", KERNEL_KHEADERS_PATH, "-C", tree, NULL};
	int status = 0, failed;
	pid_t tar;

	snprintf(tree, sizeof(tree), "%s/kheaders/.", request->work_dir);
	failed = -work_dir_write(request->work_dir, "kheaders/.tsnap", "", e);
	if (failed)
		return -failed;
	failed = posix_spawnp(&tar, "tar", NULL, NULL, command, environ);
	if (failed || waitpid(tar, &status, 0) < 0 || status)
		return error_set(e, EINVAL, EXIT_FAILED,
				 "%s can't be unpacked: tar %s; are tar and xz installed?",
				 KERNEL_KHEADERS_PATH, failed ? strerror(failed) : "failed");
	return header_layout_read(request, tree, layout, e);
}

const struct type_source type_sources[] = {
	{"offsets", "an offsets file written on a host with the same kernel", -1, offsets_there,
	 offsets_read},
	{"btf", "the kernel's own type information", FACT_BTF, btf_there, btf_read},
	{"headers", "the distribution's kernel headers", -1, headers_there, headers_read},
	{"kheaders", "the headers in " KERNEL_KHEADERS_PATH, FACT_KHEADERS, kheaders_there,
	 kheaders_read},
	{NULL, NULL, -1, NULL, NULL},
};

bool type_source_there(const struct type_source *source, const struct type_request *request,
		       char *where, size_t size)
{
	if (source->wants >= 0 && !request->btf_file &&
	    request->facts->state[source->wants] == FACT_TAKEN_AWAY) {
		snprintf(where, size, "%s", request->facts->why[source->wants]);
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

/* The source that the user insists on, or NULL. */
static const char *source_named(const struct type_request *request)
{
	if (request->offsets_file)
		return "offsets";
	if (request->btf_file)
		return "btf";
	if (request->choice && strcmp(request->choice, "auto") != 0)
		return request->choice;
	return NULL;
}

int type_source_find(const struct type_request *request, struct field_layout *layout,
		     const struct type_source **found, struct text *tried, struct error *e)
{
	const char *named = source_named(request);
	char where[PATH_MAX], remedy[256];

	for (const struct type_source *source = type_sources; source->name; source++) {
		struct error failed = {0};

		if (named && strcmp(source->name, named) != 0)
			continue;
		if (!type_source_there(source, request, where, sizeof(where)))
			error_set(&failed, ENOENT, EXIT_HOST_CANNOT, "kernel types from %s: %s",
				  source->name, where);
		else if (!source->read(request, layout, &failed)) {
			text_add_format(tried, "%s: %s\n", source->name, where);
			*found = source;
			return 0;
		}
		text_add_format(tried, "%s: %s\n", source->name, failed.line);
		if (named) {
			*e = failed;
			return -EINVAL;
		}
		error_done(&failed);
	}
	type_source_remedy(request->host, remedy, sizeof(remedy));
	return error_set(
		e, ENOENT, EXIT_HOST_CANNOT,
		"no source of kernel types works here (%s, headers and kheaders were tried): %s; "
		"or give --btf FILE or --offsets FILE",
		KERNEL_BTF_PATH, remedy);
}
