/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/fold.h"
#include "base/memory.h"
#include "base/names.h"
#include "report/value.h"
#include "sample/waker_stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Table of kinds; the last one has no mark and matches all other frames. */
const struct frame_kind frame_kinds[] = {
	{FRAME_ROOT, false, false, "group", {0xc9c7c1, 0xbcbab4}},
	{FRAME_SEPARATOR, true, true, "waker above", {0xa9a9a9, 0xa9a9a9}},
	{FRAME_WAKER, false, true, "waker", {0x8fd0cd, 0x6dbcb8}},
	{FRAME_KERNEL, false, true, "kernel", {0x8fb8de, 0x6c9fd0}},
	{FRAME_SYSCALL, false, false, "system call", {0xc3aee0, 0xab91d2}},
	{FRAME_JIT, false, true, "JIT", {0x9bd08a, 0x78bb65}},
	{FRAME_PYTHON, false, false, "Python", {0xd9b3cf, 0xc893ba}},
	{"_[l]", false, false, "library", {0xf3d973, 0xe6c54a}},
	{"_[i]", false, true, "inlined", {0xf6b99a, 0xee9f7a}},
	{"", false, true, "program", {0xf5a25d, 0xe5823a}},
};

const size_t frame_kind_count = sizeof(frame_kinds) / sizeof(frame_kinds[0]);

const struct frame_kind *frame_kind_of(const char *name, size_t length)
{
	const struct frame_kind *kind = frame_kinds;

	for (;; kind++) {
		size_t mark = strlen(kind->mark);

		if (kind->whole ? length == mark && !memcmp(name, kind->mark, mark)
				: length >= mark && !memcmp(name + length - mark, kind->mark, mark))
			return kind;
	}
}

size_t frame_kind_plain(const struct frame_kind *kind, size_t length)
{
	size_t mark = strlen(kind->mark);

	/* a frame must have a name */
	return kind->whole || length == mark ? length : length - mark;
}

static uint32_t node_new(struct frame_tree *tree, uint32_t parent, const char *name)
{
	struct frame_node *node;

	tree->nodes =
		memory_grow(tree->nodes, &tree->capacity, tree->count + 1, sizeof(*tree->nodes));
	node = &tree->nodes[tree->count];
	*node = (struct frame_node){
		.name = name,
		.kind = frame_kind_of(name, strlen(name)),
		.parent = parent,
		.depth = tree->count ? tree->nodes[parent].depth + 1 : 0,
	};
	return (uint32_t)tree->count++;
}

/* The parent's child of that name, made if the tree has fewer than `most` nodes; 0: there are too
 * many. */
static uint32_t node_child(struct frame_tree *tree, uint32_t parent, const char *name,
			   size_t length, size_t most)
{
	const char *one = name_transient(name, length);
	bool added;
	uint64_t *number = index_put(&tree->names, (uintptr_t)one, &added), key, *child;

	if (added)
		*number = tree->names.used;
	key = (uint64_t)parent << 32 | *number;
	child = index_find(&tree->children, key);
	if (child)
		return (uint32_t)*child;
	if (tree->count >= most)
		return 0;
	child = index_put(&tree->children, key, NULL);
	*child = node_new(tree, parent, one);
	return (uint32_t)*child;
}

uint32_t frame_tree_add(struct frame_tree *tree, const char *frames, enum frame_part part,
			int64_t weight)
{
	uint32_t at = 0, child, own;

	if (!tree->count)
		node_new(tree, 0, "all" FRAME_ROOT);
	while (*frames) {
		size_t length = strcspn(frames, ";");

		if (length && tree->nodes[at].depth + 1 == FRAME_DEPTH_MAX) {
			frames = FRAMES_DEEPER;
			length = strlen(frames);
		}
		child = length ? node_child(tree, at, frames, length, FRAMES_MAX) : at;
		if (length && !child) {
			at = node_child(tree, 0, FRAMES_FULL, strlen(FRAMES_FULL), FRAMES_MAX + 2);
			break;
		}
		at = child;
		frames += length + (frames[length] == ';');
	}
	if (!at)
		at = node_child(tree, 0, FRAMES_NONE, strlen(FRAMES_NONE), FRAMES_MAX + 2);
	own = at;
	tree->nodes[at].own[part] = sum(tree->nodes[at].own[part], weight);
	for (;; at = tree->nodes[at].parent) {
		tree->nodes[at].all[part] = sum(tree->nodes[at].all[part], weight);
		if (!at)
			return own;
	}
}

static int name_compare(const void *a, const void *b, void *from)
{
	const struct frame_tree *tree = from;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return strcmp(tree->nodes[x].name, tree->nodes[y].name);
}

void frame_tree_sort(struct frame_tree *tree)
{
	uint32_t *order = memory_get(tree->count * sizeof(*order));

	for (uint32_t i = 0; i < tree->count; i++) {
		order[i] = i;
		tree->nodes[i].child = tree->nodes[i].sibling = 0;
	}
	if (tree->count > 1)
		qsort_r(order + 1, tree->count - 1, sizeof(*order), name_compare, tree);
	/* nodes from the last name to the first: each is put before its siblings */
	for (size_t i = tree->count; i-- > 1;) {
		struct frame_node *node = &tree->nodes[order[i]];

		node->sibling = tree->nodes[node->parent].child;
		tree->nodes[node->parent].child = order[i];
	}
	free(order);
}

uint32_t frame_tree_next(const struct frame_tree *tree, uint32_t at, bool past)
{
	if (tree->nodes[at].child && !past)
		return tree->nodes[at].child;
	while (at && !tree->nodes[at].sibling)
		at = tree->nodes[at].parent;
	return tree->nodes[at].sibling;
}

void frame_tree_done(struct frame_tree *tree)
{
	index_clear(&tree->names);
	index_clear(&tree->children);
	free(tree->nodes);
	*tree = (struct frame_tree){0};
}

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

void fold_interval(struct frame_tree *tree, const struct interval *interval, uint32_t *nodes)
{
	struct text frames = {0};

	for (size_t row = 0; row < interval->grid->row_count; row++) {
		int64_t state, weight_us = fold_weight_us(interval, row, &state);
		uint32_t node;

		text_clear(&frames);
		roots_add(&frames, interval, row);
		fold_add_stack(&frames, interval, row);
		node = frame_tree_add(tree, text_string(&frames),
				      state == STATE_ON ? PART_ON : PART_OFF, weight_us);
		if (nodes)
			nodes[row] = node;
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
					"%s: line %zu: not a folded stack (frames with ; between "
					"them, a space, a whole number)",
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

static void folded_add(struct text *out, const struct interval *interval)
{
	struct frame_tree tree = {0};

	fold_interval(&tree, interval, NULL);
	fold_write(out, &tree);
	frame_tree_done(&tree);
}

const struct renderer renderer_folded = {
	.name = "folded",
	.kind = RENDERER_STACKS,
	.grouped = true,
	.at_end = true,
	.chains = true,
	.columns = FOLD_ROOTS_DEFAULT,
	.behind = FOLD_COLUMNS,
	.add = folded_add,
};
