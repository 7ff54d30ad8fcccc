/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/csv_value.h"
#include "base/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int csv_number_read(const char *text, int64_t *number)
{
	bool negative = *text == '-';
	int64_t value = 0;

	text += negative;
	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, *text - '0', &value))
			return -EINVAL;
	}
	*number = negative ? -value : value;
	return 0;
}

int csv_hex_read(const char *text, int64_t *number)
{
	char *end;

	if (strncmp(text, "0x", 2) || !text[2] || text[2 + strspn(text + 2, "0123456789abcdef")] ||
	    strlen(text) > 18)
		return -EINVAL;
	*number = (int64_t)strtoull(text, &end, 16);
	return 0;
}

const char *csv_text_read(const char *text, struct text *scratch)
{
	if (!strchr(text, '\\'))
		return name_transient_string(text);
	text_clear(scratch);
	text_add_original(scratch, text);
	return name_transient(text_string(scratch), scratch->length);
}
