/* SPDX-License-Identifier: GPL-2.0-or-later */
/* User names by uid, from the user database (getpwuid_r: files, LDAP, ...). */
#ifndef TSNAP_PROC_USERS_H
#define TSNAP_PROC_USERS_H

#include <stdint.h>

struct cache;

#define USERS_MAX 4096
#define USERS_RECHECK_NS (60 * 1000000000ll) /* the database may be on the network */

void users_init(struct cache *users);
/* The name of uid, interned; the number as text if there is none. */
const char *user_name(struct cache *users, int64_t uid, int64_t now_ns);

#endif
