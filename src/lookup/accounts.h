/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads /proc/PID/task/TID/stat, status and io into the account of a sample, and keeps for a short
 * time what was read. Which column is which word of them: a table in accounts.c. */
#ifndef TSNAP_LOOKUP_ACCOUNTS_H
#define TSNAP_LOOKUP_ACCOUNTS_H

#include <stdint.h>

#include "sample/account.h"

struct cache;

#define ACCOUNTS_MAX 65536

void accounts_init(struct cache *accounts);

/* Fills sample->account with what needs asks for; renew: the part of that which is out of date. */
void account_fill(struct cache *accounts, const char *root, const struct sample *sample,
		  uint64_t needs, uint64_t renew, int64_t now_ns);

/* The pure part: what that file's text tells, the rest of what it could is absent. need: NEED_STAT,
 * NEED_STATUS or NEED_IO. */
void account_parse(uint64_t need, char *text, struct account *account);

#endif
