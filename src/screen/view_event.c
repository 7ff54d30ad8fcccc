/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/view_event.h"
#include "screen/command.h"
#include "screen/key.h"
#include "screen/list.h"
#include "screen/prompt.h"

#include <string.h>

void view_key(struct view *view, const struct shown *shown, int32_t key)
{
	const struct command *command;
	struct text name = {0};

	view->message[0] = '\0';
	view->failed = false;
	if (view->prompt.kind) {
		prompt_key(view, shown, key);
		return;
	}
	if (view->list.kind) {
		list_key(view, shown, key);
		return;
	}
	if (key >= '1' && key <= '9') {
		if (!view_choose(view, shown, (size_t)(key - '1')))
			view_say(view, true, "There is no view %c: Tab lists all", (char)key);
		return;
	}
	command = command_of_key(key);
	if (command) {
		command->run(view, shown);
	} else if (key != KEY_CODE_ESCAPE) {
		key_add(&name, key);
		view_say(view, true, "The key %s does nothing: ? lists all keys",
			 text_string(&name));
	}
	text_done(&name);
}

bool ask_differs(const struct ask *a, const struct ask *b)
{
	return a->list.count != b->list.count ||
	       memcmp(a->list.items, b->list.items, a->list.count * sizeof(a->list.items[0])) ||
	       strcmp(a->filter, b->filter) != 0 || a->all_states != b->all_states ||
	       a->sort != b->sort || a->reversed != b->reversed || a->window_us != b->window_us ||
	       a->until_us != b->until_us || a->mark_us != b->mark_us;
}
