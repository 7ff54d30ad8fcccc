/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Users and groups of a bundle: from /etc/passwd and /etc/group, and from nowhere else. glibc's own
 * functions would load libraries that the host has for it (nsswitch.conf: LDAP, systemd), which
 * were linked with the host's C library. Users that these would know have their numbers as names.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define RECORD_BYTES 4096

/* Finds the user with the name, or if there is none given with the uid. 0, also if there is no such
 * user (*found is NULL then), or an errno; ERANGE: size is too small. */
static int user_find(const char *name, uid_t uid, struct passwd *record, char *bytes, size_t size,
		     struct passwd **found)
{
	FILE *file = fopen("/etc/passwd", "re");
	int err;

	*found = NULL;
	if (!file)
		return errno == ENOENT ? 0 : errno;
	do
		err = fgetpwent_r(file, record, bytes, size, found);
	while (!err && (name ? strcmp(record->pw_name, name) != 0 : record->pw_uid != uid));
	fclose(file);
	return err == ENOENT ? 0 : err;
}

int getpwuid_r(uid_t uid, struct passwd *record, char *bytes, size_t size, struct passwd **found)
{
	return user_find(NULL, uid, record, bytes, size, found);
}

static struct passwd *user_of(const char *name, uid_t uid)
{
	static char bytes[RECORD_BYTES];
	static struct passwd record;
	struct passwd *found;
	int err = user_find(name, uid, &record, bytes, sizeof(bytes), &found);

	if (err)
		errno = err;
	return found;
}

struct passwd *getpwuid(uid_t uid)
{
	return user_of(NULL, uid);
}

struct passwd *getpwnam(const char *name)
{
	return user_of(name, 0);
}

struct group *getgrnam(const char *name)
{
	static char bytes[16 * RECORD_BYTES];
	static struct group record;
	FILE *file = fopen("/etc/group", "re");
	struct group *found = NULL;
	int err;

	if (!file)
		return NULL;
	do
		err = fgetgrent_r(file, &record, bytes, sizeof(bytes), &found);
	while (!err && strcmp(record.gr_name, name) != 0);
	fclose(file);
	return found;
}
