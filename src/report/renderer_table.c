/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/renderer.h"

#include <string.h>

static const struct renderer *const renderer_table[] = {
	&renderer_report, &renderer_csv, &renderer_json, &renderer_folded, &renderer_flame,
};

const struct renderer *renderer_find(const char *name)
{
	for (size_t i = 0; i < sizeof(renderer_table) / sizeof(renderer_table[0]); i++)
		if (!strcmp(renderer_table[i]->name, name))
			return renderer_table[i];
	return NULL;
}

void missed_add(struct text *out, const struct source_missed *missed)
{
	text_add_number(out, (int64_t)missed->count);
	text_add_char(out, ' ');
	text_add_string(out, missed->what);
}
