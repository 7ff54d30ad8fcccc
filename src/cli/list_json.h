/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --list --json: what --list prints, for programs. */
#ifndef TSNAP_CLI_LIST_JSON_H
#define TSNAP_CLI_LIST_JSON_H

#include "base/text.h"

/* Adds one object per line: columns and measures, sets of columns, states, kinds of --trace. */
void list_json_add(struct text *out);

#endif
