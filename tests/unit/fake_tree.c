/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"
#include "fake_tree.h"

#include <ftw.h>
#include <sys/stat.h>

char fake_tree[64];

void fake_tree_put(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", fake_tree, name);
	for (char *at = path + strlen(fake_tree) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(path, 0700);
		*at = '/';
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *walk)
{
	(void)about, (void)type, (void)walk;
	return remove(path);
}

int fake_tree_begin(void **state)
{
	strcpy(fake_tree, "/tmp/tsnap-unit-tree-XXXXXX");
	return !mkdtemp(fake_tree);
}

int fake_tree_end(void **state)
{
	return nftw(fake_tree, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void fake_tree_mounts(const char *lines)
{
	char text[512];

	snprintf(text, sizeof(text), lines, fake_tree);
	fake_tree_put("self/mountinfo", text);
}
