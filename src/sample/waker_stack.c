/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/waker_stack.h"
#include "base/text.h"

#include <stdbool.h>
#include <string.h>

/* Length of a frame's name without its mark, "_[k]" or another letter; a mark alone counts as a
 * name. */
static size_t plain_length(const char *name, size_t length)
{
	const char *mark = length > 4 ? name + length - 4 : NULL;
	bool marked = mark && mark[0] == '_' && mark[1] == '[' && mark[3] == ']';

	return marked ? length - 4 : length;
}

static void reversed_add(struct text *text, const char *frames)
{
	size_t end = frames ? strlen(frames) : 0;

	while (end) {
		size_t start = end;

		while (start && frames[start - 1] != ';')
			start--;
		if (start < end) {
			text_add_string(text, text->length ? ";" : "");
			text_add(text, frames + start, plain_length(frames + start, end - start));
			text_add_string(text, WAKER_MARK);
		}
		end = start ? start - 1 : 0;
	}
}

const char *stack_of_halves(const char *user, const char *kernel, name_callback *take)
{
	struct text text = {0};
	const char *name;

	if (!user || !kernel)
		return user ? user : kernel;
	text_add_format(&text, "%s;%s", user, kernel);
	name = take(text_string(&text), text.length);
	text_done(&text);
	return name;
}

const char *waker_stack_of(const char *user, const char *kernel, name_callback *take)
{
	struct text text = {0};
	const char *name;

	reversed_add(&text, kernel);
	reversed_add(&text, user);
	name = text.length ? take(text_string(&text), text.length) : NULL;
	text_done(&text);
	return name;
}
