/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/waits_fold.h"
#include "base/text.h"

#include <ctype.h>
#include <string.h>

#define HELD_BY " held by "

/* The end of a number or an address that begins here; `at` if none does. */
static const char *number_end(const char *at)
{
	if (at[0] == '0' && at[1] == 'x' && isxdigit((unsigned char)at[2]))
		return at + 2 + strspn(at + 2, "0123456789abcdef");
	return at + strspn(at, "0123456789");
}

void waits_fold(struct text *to, const char *waits_on)
{
	const char *at = waits_on, *end;
	size_t length = strlen(HELD_BY);

	while (*at) {
		/* a holder is the last part of a lock's text */
		if (!strncmp(at, HELD_BY, length) && isdigit((unsigned char)at[length])) {
			text_add_string(to, HELD_BY "*");
			return;
		}
		end = number_end(at);
		text_add_char(to, end == at ? *at : '*');
		at = end == at ? at + 1 : end;
	}
}
