/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/fold.h"
#include "sample/waker_stack.h"
#include "report/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS "0123456789"

/* The value of a row in the column at that offset of struct sample. */
static const union value *value_at(const struct interval *interval, size_t row, size_t offset)
{
	const struct column_list *list = interval->grid->list;

	for (size_t i = 0; i < list->count; i++)
		if (list->items[i]->role != ROLE_MEASURE && list->items[i]->offset == offset)
			return &grid_row(interval->grid, row)[i];
	return NULL;
}

static const char *text_or_null(const struct interval *interval, size_t row, size_t offset)
{
	const union value *value = value_at(interval, row, offset);

	return value ? value->text : NULL;
}

static const char *text_at(const struct interval *interval, size_t row, size_t offset)
{
	const char *text = text_or_null(interval, row, offset);

	return text ? text : "";
}

/* Replaces ';' in names by ':', as perf's own collapsing script does, so that no name becomes two
 * frames. */
static void separators_hide(struct text *frames, size_t start)
{
	for (size_t i = start; i < frames->length; i++)
		if (frames->bytes[i] == ';')
			frames->bytes[i] = ':';
}

static void root_add(struct text *frames, const struct column *column, union value value)
{
	size_t start = frames->length;

	value_add(frames, column, value);
	if (frames->length == start)
		text_add_char(frames, '-');
	separators_hide(frames, start);
	text_add_string(frames, FRAME_ROOT ";");
}

/* Adds a frame for each thread of a chain like "php-fpm socket> mariadbd", the waiting thread
 * below. */
static void chain_add(struct text *frames, const char *chain)
{
	while (*chain) {
		const char *end = strstr(chain, "> ");
		size_t length = end ? (size_t)(end + 1 - chain) : strlen(chain);
		size_t start = frames->length;
		struct text name = {0};

		text_add(&name, chain, length);
		text_add_printable(frames, text_string(&name));
		text_done(&name);
		separators_hide(frames, start);
		text_add_string(frames, FRAME_ROOT ";");
		chain += length + (end != NULL);
	}
}

void fold_add_waker(struct text *frames, const char *waker_stack, const char *waker_comm)
{
	size_t start;

	if (!waker_stack && !waker_comm)
		return;
	text_add_string(frames, ";" FRAME_SEPARATOR ";");
	text_add_printable(frames, waker_stack ? waker_stack : "");
	if (!waker_comm)
		return;
	text_add_char(frames, ';');
	start = frames->length;
	text_add_printable(frames, waker_comm);
	separators_hide(frames, start);
	text_add_string(frames, WAKER_MARK);
}

/* Bytes of the stack before the kernel's frames and those of a waker. */
static size_t user_length(const char *stack)
{
	const char *at = stack;

	while (*at) {
		size_t length = strcspn(at, ";");
		const char *mark = frame_kind_of(at, length)->mark;

		if (!strcmp(mark, FRAME_KERNEL) || !strcmp(mark, FRAME_SEPARATOR))
			break;
		at += length + (at[length] == ';');
	}
	return (size_t)(at - stack);
}

/* Adds the first interval->root_count columns of a row, as frames. */
static void roots_add(struct text *frames, const struct interval *interval, size_t row)
{
	for (size_t i = 0; i < interval->root_count; i++) {
		const struct column *column = interval->grid->list->items[i];
		union value value = grid_row(interval->grid, row)[i];

		if (column->role == ROLE_KEY &&
		    column->offset == offsetof(struct sample, chain.text) && value.text)
			chain_add(frames, value.text);
		else
			root_add(frames, column, value);
	}
}

void fold_add_stack(struct text *frames, const struct interval *interval, size_t row)
{
	const char *syscall = text_at(interval, row, offsetof(struct sample, call.name));
	struct text stack = {0};
	size_t user;

	text_add_printable(&stack, text_at(interval, row, offsetof(struct sample, stack.both)));
	user = user_length(text_string(&stack));
	text_add(frames, text_string(&stack), user);
	if (*syscall) {
		if (user && stack.bytes[user - 1] != ';')
			text_add_char(frames, ';');
		text_add_printable(frames, syscall);
		text_add_string(frames, FRAME_SYSCALL ";");
	}
	text_add_string(frames, text_string(&stack) + user);
	if (stack.length && value_at(interval, row, offsetof(struct sample, waker.stack)))
		fold_add_waker(frames,
			       text_or_null(interval, row, offsetof(struct sample, waker.stack)),
			       text_or_null(interval, row, offsetof(struct sample, waker.comm)));
	text_done(&stack);
}

void fold_add_files(struct text *files, const struct interval *interval, size_t row)
{
	text_add_printable(files, text_at(interval, row, offsetof(struct sample, stack.ufiles)));
}

int64_t fold_weight_us(const struct interval *interval, size_t row, int64_t *state)
{
	const union value *kept = value_at(interval, row, offsetof(struct sample, now.state)),
			  *weight =
				  value_at(interval, row, offsetof(struct sample, scan.weight_us));

	if (state)
		*state = kept ? kept->number : ABSENT;
	return weight && weight->number > 0 ? weight->number : 0;
}

void fold_interval(struct frame_tree *tree, const struct interval *interval)
{
	struct text frames = {0};

	for (size_t row = 0; row < interval->grid->row_count; row++) {
		int64_t state, weight_us = fold_weight_us(interval, row, &state);

		text_clear(&frames);
		roots_add(&frames, interval, row);
		fold_add_stack(&frames, interval, row);
		frame_tree_add(tree, text_string(&frames), state == STATE_ON ? PART_ON : PART_OFF,
			       weight_us);
	}
	frame_tree_sort(tree);
	text_done(&frames);
}

static void frame_write(struct text *out, const struct frame_node *node)
{
	size_t length = strlen(node->name);

	text_add(out, node->name,
		 node->kind->known ? length : frame_kind_plain(node->kind, length));
}

/* Joins a number at the end of a frame to its name: flamegraph.pl takes "frame 12 34" for two
 * weights of the stack "frame". */
static void number_join(struct text *out)
{
	size_t at = out->length;

	while (at && strchr(DIGITS ".", out->bytes[at - 1]))
		at--;
	if (at && at < out->length && out->bytes[at - 1] == ' ')
		out->bytes[at - 1] = '_';
}

void fold_write(struct text *out, const struct frame_tree *tree)
{
	uint32_t path[FRAME_DEPTH_MAX + 1] = {0};
	uint32_t at = 0;

	while (tree->count && (at = frame_tree_next(tree, at, false))) {
		const struct frame_node *node = &tree->nodes[at];
		int64_t weight = sum(node->own[0], node->own[1]);

		path[node->depth] = at;
		if (weight <= 0)
			continue;
		for (uint32_t depth = 1; depth <= node->depth; depth++) {
			if (depth > 1)
				text_add_char(out, ';');
			frame_write(out, &tree->nodes[path[depth]]);
		}
		number_join(out);
		text_add_char(out, ' ');
		text_add_number(out, weight);
		text_add_char(out, '\n');
	}
}

/* Splits the line into frames and weight; false: not a folded stack. */
static bool line_split(char *line, int64_t *weight)
{
	char *space = strrchr(line, ' ');

	if (!space || space == line || !space[1] || space[1 + strspn(space + 1, DIGITS)])
		return false;
	errno = 0;
	*weight = strtoll(space + 1, NULL, 10);
	*space = '\0';
	return !errno;
}

int fold_read(struct frame_tree *tree, const char *name, const char *text, enum frame_part part,
	      struct error *e)
{
	struct text line = {0}, raw = {0}, frames = {0};
	int64_t weight;
	int err = 0;

	for (size_t number = 1; *text && !err; number++) {
		size_t length = strcspn(text, "\n");

		text_clear(&line);
		text_clear(&raw);
		text_clear(&frames);
		text_add(&line, text, length);
		text += length + (text[length] == '\n');
		if (!line.length)
			continue;
		if (!line_split(line.bytes, &weight)) {
			err = error_set(e, EINVAL, EXIT_FAILED,
					"%s: line %zu: no folded stack (frames with ; between, a "
					"space, a whole number)",
					name, number);
			break;
		}
		/* text that is printable already stays as it is */
		text_add_original(&raw, line.bytes);
		text_add_printable(&frames, text_string(&raw));
		frame_tree_add(tree, text_string(&frames), part, weight);
	}
	text_done(&line);
	text_done(&raw);
	text_done(&frames);
	return err;
}
