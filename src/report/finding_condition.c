/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/finding_condition.h"
#include "base/quantity.h"
#include "base/text.h"
#include "report/findings.h"

#include <errno.h>
#include <string.h>

#define BY_NAME "finding"
#define BY_COUNT "findings"

static const char *name_at(void *from, size_t at)
{
	(void)from;
	return at < finding_row_count ? finding_rows[at].name : NULL;
}

static int names_check(const char *names, struct error *e)
{
	struct text name = {0};
	int err = 0;

	while (!err && text_next_name(&name, &names)) {
		const char *word = text_string(&name), *nearest;
		size_t row = 0;

		while (row < finding_row_count && strcmp(finding_rows[row].name, word))
			row++;
		if (row < finding_row_count)
			continue;
		nearest = text_nearest(word, name_at, NULL);
		err = error_set(e, EINVAL, EXIT_USAGE,
				"--when: unknown finding \"%s\"%s%s (tsnap --list prints all)",
				word, nearest ? "; nearest: " : "", nearest ? nearest : "");
	}
	text_done(&name);
	return err;
}

int finding_condition_read(struct finding_condition *condition, const char *typed, struct error *e)
{
	size_t word = strcspn(typed, "=>< ");
	const char *sign = typed + word + strspn(typed + word, " "), *value;
	bool by_name = word == strlen(BY_NAME) && !strncmp(typed, BY_NAME, word);
	int err;

	if (!by_name && (word != strlen(BY_COUNT) || strncmp(typed, BY_COUNT, word)))
		return 0;
	value = sign + 1 + strspn(sign + (*sign != '\0'), "=");
	value += *sign ? strspn(value, " ") : 0;
	condition->given = true;
	if (by_name && *sign == '=' && *value) {
		condition->names = value;
		err = names_check(value, e);
		return err ? err : 1;
	}
	if (!by_name && *sign == '>' && sign[1] != '=' &&
	    !quantity_read(value, QUANTITY_COUNT, 1, &condition->more_than))
		return 1;
	return error_set(e, EINVAL, EXIT_USAGE,
			 "--when '%s': conditions on findings are 'finding=NAME,...' and "
			 "'findings>NUMBER'",
			 typed);
}

bool finding_condition_met(const struct finding_condition *condition,
			   const struct findings *findings)
{
	if (!condition->given)
		return true;
	if (!condition->names)
		return (int64_t)findings->count > condition->more_than;
	for (size_t i = 0; i < findings->count; i++)
		if (text_lists(condition->names, strlen(condition->names),
			       finding_at(findings, i)->row->name))
			return true;
	return false;
}
