/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/renderer.h"
#include "base/clock.h"
#include "report/value.h"

#include <stdlib.h>
#include <string.h>

void absent_add(struct text *out, const struct column_list *list,
		const struct source_absent *absent)
{
	size_t start = out->length;

	column_list_name(list, absent->needs, out);
	text_add_format(out, "%s: %s", out->length > start ? "" : "what the filter needs",
			absent->why);
}

void clock_step_add(struct text *out, int64_t step_us, int64_t stepped_us, bool recorded)
{
	char time[CLOCK_LOCAL_SIZE];

	clock_format_local(stepped_us, time);
	text_add_format(out, "the clock was set %s by ", step_us < 0 ? "back" : "forward");
	text_add_decimals(out, ratio(llabs(step_us), 100, US_PER_SECOND), 2);
	text_add_string(out,
			recorded && step_us > 0 ? " s, or the host was suspended, at " : " s at ");
	text_add_format(out, "%.10s %.12s %s", time, time + CLOCK_LOCAL_TIME,
			time + CLOCK_LOCAL_ZONE);
}

static void names_add(struct text *out, const struct column_list *list, const char *between)
{
	for (size_t i = 0; i < list->count; i++)
		text_add_format(out, "%s%s", i ? between : "", list->items[i]->name);
}

void unrecorded_add(struct text *out, const struct column_list *unrecorded, const char *option)
{
	names_add(out, unrecorded, ", ");
	text_add_format(out, " (record %s with -G ", unrecorded->count == 1 ? "it" : "them");
	if (option)
		text_add_string(out, option);
	else
		names_add(out, unrecorded, ",");
	text_add_char(out, ')');
}

/* Returns where the plural ending of the noun begins that what was missed begins with, as "late
 * scans"; the end of the words, if there is none before a colon, comma or parenthesis. */
static const char *plural_ending(const char *what)
{
	const char *end = strpbrk(what, " :,(");

	while (end && *end == ' ' && (end[-1] != 's' || end[-2] == 's'))
		end = strpbrk(end + 1, " :,(");
	if (!end || end[-1] != 's' || end[-2] == 's')
		return what + strlen(what);
	return end - (end - what > 4 && !strncmp(end - 4, "sses", 4) ? 2 : 1);
}

void missed_add(struct text *out, const struct source_missed *missed)
{
	const char *ending = plural_ending(missed->what);

	text_add_number(out, (int64_t)missed->count);
	text_add_char(out, ' ');
	if (missed->count != 1) {
		text_add_string(out, missed->what);
		return;
	}
	text_add(out, missed->what, (size_t)(ending - missed->what));
	text_add_string(out, ending + strcspn(ending, " :,("));
}
