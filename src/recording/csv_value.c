/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/csv_value.h"
#include "base/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int csv_hex_read(const char *text, int64_t *number)
{
	char *end;

	if (strncmp(text, "0x", 2) || !text[2] || text[2 + strspn(text + 2, "0123456789abcdef")] ||
	    strlen(text) > 18)
		return -EINVAL;
	*number = (int64_t)strtoull(text, &end, 16);
	return 0;
}

const char *csv_text_read(const char *text, struct text *room)
{
	if (!strchr(text, '\\'))
		return name_lent_string(text);
	text_clear(room);
	text_add_original(room, text);
	return name_lent(text_string(room), room->length);
}
