/* SPDX-License-Identifier: GPL-2.0-or-later */
/* output_file */
#include "unit.h"
#include "base/output.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define STRANGER 4711

/* A directory writable by all, like /tmp, and one of this user, with a file that must not be
 * touched. */
struct scene {
	char open[64], own[64], kept[96], text[256];
};

static void write_all(const char *path, const char *text)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static const char *read_all(struct scene *scene, const char *path)
{
	int fd = open(path, O_RDONLY);
	ssize_t got = fd < 0 ? -1 : read(fd, scene->text, sizeof(scene->text) - 1);

	scene->text[got < 0 ? 0 : got] = '\0';
	if (fd >= 0)
		close(fd);
	return scene->text;
}

static int scene_open(void **state)
{
	static struct scene scene;

	snprintf(scene.open, sizeof(scene.open), "/tmp/tsnap-unit-open.XXXXXX");
	snprintf(scene.own, sizeof(scene.own), "/tmp/tsnap-unit-own.XXXXXX");
	if (!mkdtemp(scene.open) || !mkdtemp(scene.own) || chmod(scene.open, 01777))
		return -1;
	snprintf(scene.kept, sizeof(scene.kept), "%s/kept", scene.own);
	write_all(scene.kept, "kept");
	*state = &scene;
	return 0;
}

static int scene_close(void **state)
{
	struct scene *scene = *state;
	char command[200];

	snprintf(command, sizeof(command), "rm -rf %s %s", scene->open, scene->own);
	return system(command);
}

static void assert_refused(const char *path)
{
	int err;

	assert_int_equal(output_replace_check(path), -OUTPUT_PLANTED);
	assert_int_equal(output_replace(path, "new", 3), -OUTPUT_PLANTED);
	assert_int_equal(output_create(path), -OUTPUT_PLANTED);
	assert_null(output_begin(path, 0600, &err));
	assert_int_equal(err, -OUTPUT_PLANTED);
}

/* Links that another user has put into a directory writable by all are not followed. */
static void planted_is_refused(void **state)
{
	struct scene *scene = *state;
	char link[128], below[160], fifo[128];
	struct stat file;

	if (geteuid())
		skip();
	snprintf(link, sizeof(link), "%s/x.svg", scene->open);
	assert_int_equal(symlink(scene->kept, link), 0);
	assert_int_equal(lchown(link, STRANGER, STRANGER), 0);
	assert_refused(link);
	snprintf(fifo, sizeof(fifo), "%s/fifo", scene->open);
	assert_int_equal(mkfifo(fifo, 0666), 0);
	assert_int_equal(chown(fifo, STRANGER, STRANGER), 0);
	assert_refused(fifo);
	/* a link on the way */
	unlink(link);
	assert_int_equal(symlink(scene->own, link), 0);
	assert_int_equal(lchown(link, STRANGER, STRANGER), 0);
	snprintf(below, sizeof(below), "%s/kept", link);
	assert_refused(below);
	assert_int_equal(output_directory(link, 0700), -OUTPUT_PLANTED);
	snprintf(below, sizeof(below), "%s/new", link);
	assert_int_equal(output_directory(below, 0700), -OUTPUT_PLANTED);
	/* another user's file is replaced, not written to; its permissions are not kept */
	unlink(link);
	write_all(link, "old");
	assert_int_equal(chmod(link, 0666), 0);
	assert_int_equal(chown(link, STRANGER, STRANGER), 0);
	assert_int_equal(output_create(link), -OUTPUT_PLANTED);
	umask(022);
	assert_int_equal(output_replace(link, "new", 3), 0);
	assert_string_equal(read_all(scene, link), "new");
	assert_int_equal(stat(link, &file), 0);
	assert_int_equal(file.st_uid, geteuid());
	assert_int_equal(file.st_mode & 0777, 0644);
	assert_string_equal(read_all(scene, scene->kept), "kept");
	assert_non_null(strstr(output_error(-OUTPUT_PLANTED), "another user"));
}

/* In a directory of another user without the sticky bit, too, nothing is followed that is not
 * root's or this user's: links, hard links, and files that are written to in place. */
static void strangers_links_are_refused(void **state)
{
	struct scene *scene = *state;
	char link[128], below[160], own[128];

	if (geteuid())
		skip();
	assert_int_equal(chmod(scene->open, 0755), 0);
	assert_int_equal(chown(scene->open, STRANGER, STRANGER), 0);
	snprintf(link, sizeof(link), "%s/x.svg", scene->open);
	assert_int_equal(symlink(scene->kept, link), 0);
	assert_int_equal(lchown(link, STRANGER, STRANGER), 0);
	assert_refused(link);
	assert_int_equal(output_append(link, "new", 3), -OUTPUT_PLANTED);
	unlink(link);
	assert_int_equal(symlink(scene->own, link), 0);
	assert_int_equal(lchown(link, STRANGER, STRANGER), 0);
	snprintf(below, sizeof(below), "%s/kept", link);
	assert_refused(below);
	assert_int_equal(output_directory(link, 0700), -OUTPUT_PLANTED);
	/* a hard link of a file of root's, as fs.protected_hardlinks=0 lets anyone make it */
	unlink(link);
	assert_int_equal(linkat(AT_FDCWD, scene->kept, AT_FDCWD, link, 0), 0);
	assert_int_equal(output_create(link), -OUTPUT_PLANTED);
	assert_int_equal(output_append(link, "new", 3), -OUTPUT_PLANTED);
	assert_int_equal(output_replace(link, "new", 3), 0);
	assert_string_equal(read_all(scene, link), "new");
	assert_string_equal(read_all(scene, scene->kept), "kept");
	/* root's link there leads on; so does a stranger's where only root may write */
	snprintf(own, sizeof(own), "%s/own.svg", scene->open);
	assert_int_equal(symlink(scene->kept, own), 0);
	assert_int_equal(output_replace(own, "one", 3), 0);
	assert_string_equal(read_all(scene, scene->kept), "one");
	snprintf(link, sizeof(link), "%s/strangers", scene->own);
	assert_int_equal(symlink("kept", link), 0);
	assert_int_equal(lchown(link, STRANGER, STRANGER), 0);
	assert_int_equal(output_replace(link, "two", 3), 0);
	assert_string_equal(read_all(scene, scene->kept), "two");
	assert_int_equal(output_append(link, ", three", 7), 0);
	assert_string_equal(read_all(scene, scene->kept), "two, three");
}

/* Bytes of an ACL of which STRANGER may do all. */
static const struct {
	uint32_t version;
	struct {
		uint16_t tag, rights;
		uint32_t id;
	} entries[5];
} acl = {2, {{1, 7, ~0u}, {2, 7, STRANGER}, {4, 5, ~0u}, {0x10, 7, ~0u}, {0x20, 0, ~0u}}};

/* What not everybody may read, nobody may because of the directory that it is made in. */
static void rights_are_not_inherited(void **state)
{
	const char *const names[] = {"setgid", "acl"};
	struct scene *scene = *state;
	struct output_file *file;
	char path[128], below[160];
	struct stat about;
	int err, fd;

	if (geteuid())
		skip();
	umask(022);
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", scene->open, names[i]);
		assert_int_equal(mkdir(path, 0755), 0);
		assert_int_equal(chown(path, STRANGER, STRANGER), 0);
		if (i && setxattr(path, "system.posix_acl_default", &acl, sizeof(acl), 0))
			skip();
		assert_int_equal(chmod(path, i ? 0755 : 02755), 0);
		assert_int_equal(output_directory(path, 0750), -OUTPUT_FOREIGN);
		snprintf(below, sizeof(below), "%s/file", path);
		file = output_begin(below, 0640, &err);
		assert_non_null(file);
		assert_int_equal(output_end(file, 0), 0);
		assert_int_equal(stat(below, &about), 0);
		assert_int_equal(about.st_gid, getegid());
		assert_int_equal(about.st_mode & 07777, 0640);
		assert_true(getxattr(below, "system.posix_acl_access", NULL, 0) <= 0);
		snprintf(below, sizeof(below), "%s/new", path);
		fd = output_directory(below, 0750);
		assert_true(fd >= 0);
		close(fd);
		assert_int_equal(stat(below, &about), 0);
		assert_int_equal(about.st_gid, getegid());
		assert_int_equal(about.st_mode & 07777, 0750);
		assert_true(getxattr(below, "system.posix_acl_access", NULL, 0) <= 0);
		assert_true(getxattr(below, "system.posix_acl_default", NULL, 0) <= 0);
	}
	assert_non_null(strstr(output_error(-OUTPUT_FOREIGN), "root's or your own"));
}

/* The user's own links remain, wherever they are; the file that they refer to is replaced. */
static void own_links_stay(void **state)
{
	struct scene *scene = *state;
	char link[128], second[128], new[128], target[160], here[PATH_MAX];
	struct stat file;
	int fd;

	snprintf(link, sizeof(link), "%s/own.svg", scene->open);
	snprintf(second, sizeof(second), "%s/second.svg", scene->own);
	assert_int_equal(symlink(second, link), 0);
	snprintf(new, sizeof(new), "%s/new.svg", scene->own);
	snprintf(target, sizeof(target), "../../tmp//.%s/new.svg", strrchr(scene->own, '/'));
	assert_int_equal(symlink(target, second), 0);
	assert_int_equal(output_replace_check(link), 0);
	assert_int_equal(output_replace(link, "one", 3), 0);
	assert_string_equal(read_all(scene, new), "one");
	unlink(second);
	assert_int_equal(symlink("kept", second), 0);
	assert_int_equal(chmod(scene->kept, 0640), 0);
	assert_int_equal(output_replace(link, "two", 3), 0);
	assert_string_equal(read_all(scene, scene->kept), "two");
	assert_int_equal(stat(scene->kept, &file), 0);
	assert_int_equal(file.st_mode & 0777, 0640);
	assert_int_equal(lstat(link, &file), 0);
	assert_true(S_ISLNK(file.st_mode));
	fd = output_create(link);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "grown", 5), 5);
	close(fd);
	assert_string_equal(read_all(scene, scene->kept), "grown");
	/* path without a directory: the current one */
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(scene->own), 0);
	assert_int_equal(output_replace("kept", "three", 5), 0);
	assert_string_equal(read_all(scene, "kept"), "three");
	assert_int_equal(output_replace("../", "", 0), -EISDIR);
	assert_int_equal(output_replace("", "", 0), -ENOENT);
	assert_int_equal(output_replace("none/x", "", 0), -ENOENT);
	assert_int_equal(symlink("round", "round"), 0);
	assert_int_equal(output_replace("round", "", 0), -ELOOP);
	assert_int_equal(chdir(here), 0);
}

/* A file that is written piece by piece appears in its place when it is whole, or not at all. */
static void pieces_are_whole(void **state)
{
	struct scene *scene = *state;
	struct output_file *file;
	struct stat about;
	char path[128];
	int err;

	snprintf(path, sizeof(path), "%s/pieces", scene->own);
	umask(022);
	file = output_begin(path, 0666, &err);
	assert_non_null(file);
	assert_int_equal(write(output_descriptor(file), "one, ", 5), 5);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(write(output_descriptor(file), "two", 3), 3);
	assert_int_equal(output_end(file, 0), 0);
	assert_string_equal(read_all(scene, path), "one, two");
	assert_int_equal(stat(path, &about), 0);
	assert_int_equal(about.st_mode & 0777, 0644);
	file = output_begin(path, 0666, &err);
	assert_non_null(file);
	assert_int_equal(write(output_descriptor(file), "half", 4), 4);
	assert_int_equal(output_end(file, -ENOSPC), -ENOSPC);
	assert_string_equal(read_all(scene, path), "one, two");
	snprintf(path, sizeof(path), "ls %s | grep -q 'pieces[.]'", scene->own);
	assert_int_not_equal(system(path), 0);
}

/* Directories are made, and the user's own links to them are followed. */
static void directories_are_opened(void **state)
{
	struct scene *scene = *state;
	char path[128], link[128];
	struct stat about, there;
	int fd;

	snprintf(path, sizeof(path), "%s/new/", scene->own);
	umask(022);
	fd = output_directory(path, 0750);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &there), 0);
	assert_int_equal(there.st_mode & 0777, 0750);
	close(fd);
	snprintf(link, sizeof(link), "%s/link", scene->open);
	assert_int_equal(symlink(path, link), 0);
	fd = output_directory(link, 0750);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &about), 0);
	assert_int_equal(about.st_ino, there.st_ino);
	close(fd);
	fd = output_directory("/", 0750);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(output_directory(scene->kept, 0750), -ENOTDIR);
	snprintf(path, sizeof(path), "%s/none/new", scene->own);
	assert_int_equal(output_directory(path, 0750), -ENOENT);
}

/* Devices, and files that have a name only in /proc, are written to. */
static void special_is_written_to(void **state)
{
	char path[64], got[8] = "";
	struct stat before, after;
	int pipes[2];

	assert_int_equal(stat("/dev/null", &before), 0);
	assert_int_equal(output_replace_check("/dev/null"), 0);
	assert_int_equal(output_replace("/dev/null", "x", 1), 0);
	assert_int_equal(stat("/dev/null", &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(pipe(pipes), 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", pipes[1]);
	assert_int_equal(output_replace_check(path), 0);
	assert_int_equal(output_replace(path, "piped", 5), 0);
	assert_int_equal(read(pipes[0], got, sizeof(got)), 5);
	assert_string_equal(got, "piped");
	close(pipes[0]);
	close(pipes[1]);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, scene_open, scene_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(planted_is_refused),	WITH(own_links_stay),
		WITH(special_is_written_to),	WITH(pieces_are_whole),
		WITH(directories_are_opened),	WITH(strangers_links_are_refused),
		WITH(rights_are_not_inherited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
