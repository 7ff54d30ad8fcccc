/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/stack_dict.h"
#include "base/memory.h"
#include "base/names.h"
#include "sample/waker_stack.h"
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT(member) offsetof(struct stack_entry, member)

/* clang-format off */
static const struct dict_column {
	const char *name;
	size_t offset;
	uint64_t needs; /* a text is kept for these; 0: no text */
} columns[] = {
	{"hash",   AT(hash),   0}, /* as in ustack and kstack */
	{"kind",   AT(kind),   0},
	{"func",   AT(func),   NEED_USTACK | NEED_KSTACK},
	{"funcs",  AT(funcs),  NEED_USTACK | NEED_KSTACK},
	{"frames", AT(frames), NEED_STACK | NEED_WAKER_STACK},
	{"files",  AT(files),  NEED_UFILES}, /* of the frames, as in ufiles */
};
/* clang-format on */
#define COLUMN_COUNT (sizeof(columns) / sizeof(columns[0]))

#define ENTRY_BYTES 128 /* memory of a stack beside its texts */

/* A stack of the dictionary. Its texts are interned when a sample has it that no filter refuses:
 * there is less memory for names than for stacks. */
struct dict_stack {
	struct stack_entry entry;
	char *texts; /* malloced: the entry's texts */
	bool interned;
};

struct stack_dict {
	struct dict_stack *stacks;
	size_t count, capacity, bytes;
	struct index at;	     /* hash to entry */
	struct index joined, wakers; /* hash of two hashes to the text of both */
	uint64_t lacking, bad, refused;
	/* state while the file is read */
	struct csv_reader reader;
	struct csv_field fields[CSV_FIELDS_MAX];
	const struct dict_column *columns[CSV_FIELDS_MAX]; /* columns by field; NULL: not known */
	size_t column_count;
	uint64_t needs;
	struct text scratch;
};

static const struct dict_column *dict_column_find(const char *name)
{
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		if (!strcmp(columns[i].name, name))
			return &columns[i];
	return NULL;
}

static int header_read(struct stack_dict *dict, size_t count, struct error *e)
{
	unsigned int found = 0, column_bits = 0;

	for (size_t i = 0; i < count; i++) {
		const struct dict_column *column = dict_column_find(dict->fields[i].text);

		dict->columns[i] = column;
		if (!column)
			continue;
		column_bits = 1u << (column - columns);
		if (found & column_bits)
			return csv_fail(&dict->reader, e, column->name, "two such columns");
		found |= column_bits;
	}
	dict->column_count = count;
	/* bits of the columns hash, kind and frames */
	if ((found & 0x13) != 0x13)
		return csv_fail(&dict->reader, e, "",
				"no header line with hash, kind and frames: not a file that tsnap "
				"--stack-dict wrote");
	return 0;
}

/* Text in rows is quoted, so that none looks like a header line. */
static bool is_header(const struct stack_dict *dict, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!dict->fields[i].quoted && !strcmp(dict->fields[i].text, "hash"))
			return true;
	return false;
}

static const char *kind_read(const char *text)
{
	if (!strcmp(text, STACK_DICT_USER))
		return STACK_DICT_USER;
	return strcmp(text, STACK_DICT_KERNEL) ? NULL : STACK_DICT_KERNEL;
}

static const char **text_at(struct stack_entry *entry, const struct dict_column *column)
{
	return (const char **)((char *)entry + column->offset);
}

/* Memory of a stack. */
static size_t entry_bytes(const struct stack_entry *entry)
{
	struct stack_entry copy = *entry;
	size_t bytes = ENTRY_BYTES;

	for (size_t i = 0; i < COLUMN_COUNT; i++) {
		const struct dict_column *column = &columns[i];

		if (column->needs && *text_at(&copy, column))
			bytes += strlen(*text_at(&copy, column)) + 1;
	}
	return bytes;
}

bool stack_dict_written_add(struct stack_dict_written *written, const struct stack_entry *entry)
{
	size_t bytes = entry_bytes(entry);
	uint64_t *of_user;

	if (index_find(&written->hashes, (uint64_t)entry->hash))
		return false;
	of_user = index_put(&written->bytes_by_uid, (uint64_t)entry->uid, NULL);
	if (*of_user + bytes > STACK_DICT_WRITTEN_BYTES - written->bytes) {
		written->refused++;
		return false;
	}
	*of_user += bytes;
	written->bytes += bytes;
	index_put(&written->hashes, (uint64_t)entry->hash, NULL);
	return true;
}

void stack_dict_written_clear(struct stack_dict_written *written)
{
	index_clear(&written->hashes);
	index_clear(&written->bytes_by_uid);
	written->bytes = 0;
}

static int entry_read(struct stack_dict *dict, size_t count, struct stack_entry *entry,
		      struct error *e)
{
	*entry = (struct stack_entry){.hash = ABSENT};
	if (count != dict->column_count)
		return csv_fail(&dict->reader, e, "",
				"the number of columns differs from the header line's");
	for (size_t i = 0; i < count; i++) {
		const struct dict_column *column = dict->columns[i];
		const char *text = dict->fields[i].text;

		if (!column || !*text)
			continue;
		if (column->offset == AT(hash) && csv_hex_read(text, &entry->hash))
			return csv_fail(&dict->reader, e, column->name, "not a 0x number");
		if (column->offset == AT(kind))
			entry->kind = kind_read(text);
		else if (column->needs & dict->needs)
			*text_at(entry, column) = text;
	}
	if (entry->hash == ABSENT)
		return csv_fail(&dict->reader, e, "hash", "missing");
	if (!entry->kind)
		return csv_fail(&dict->reader, e, "kind", "neither user nor kernel");
	return 0;
}

/* Moves the entry's texts, which the reader owns, to memory of the stack's own, as they were before
 * they were made printable, which is not longer. */
static void texts_move(struct dict_stack *stack, size_t bytes, struct text *scratch)
{
	char *at = stack->texts = memory_get(bytes);

	for (size_t i = 0; i < COLUMN_COUNT; i++) {
		const char **text = text_at(&stack->entry, &columns[i]);

		if (!columns[i].needs || !*text)
			continue;
		text_clear(scratch);
		text_add_original(scratch, *text);
		*text = memcpy(at, text_string(scratch), scratch->length + 1);
		at += scratch->length + 1;
	}
}

static void entry_add(struct stack_dict *dict, const struct stack_entry *entry)
{
	size_t bytes = entry_bytes(entry);
	struct dict_stack *stack;

	if (index_find(&dict->at, (uint64_t)entry->hash))
		return;
	if (bytes > STACK_DICT_READ_BYTES - dict->bytes) {
		dict->refused++;
		return;
	}
	*index_put(&dict->at, (uint64_t)entry->hash, NULL) = dict->count;
	dict->stacks =
		memory_grow(dict->stacks, &dict->capacity, dict->count + 1, sizeof(*dict->stacks));
	stack = &dict->stacks[dict->count++];
	*stack = (struct dict_stack){.entry = *entry};
	texts_move(stack, bytes - ENTRY_BYTES, &dict->scratch);
	dict->bytes += bytes;
}

/* Takes the record that was read. */
static int record_take(struct stack_dict *dict, size_t count, struct error *e)
{
	struct stack_entry entry;
	int err;

	if (!dict->column_count || is_header(dict, count))
		return header_read(dict, count, e);
	err = entry_read(dict, count, &entry, e);
	if (!err)
		entry_add(dict, &entry);
	return err;
}

static int dict_read(struct stack_dict *dict, struct error *e)
{
	bool any = false;

	for (;;) {
		size_t count = 0;
		int more = csv_read(&dict->reader, dict->fields, &count, e);

		if (more == -EINTR)
			continue;
		if (more > 0)
			more = record_take(dict, count, e) ? -EINVAL : 1;
		if (more == -EINVAL && dict->reader.input) {
			error_done(e);
			dict->bad++;
			more = 1;
		}
		if (!more && !any && !dict->reader.input)
			return error_set(e, EINVAL, EXIT_FAILED,
					 "%s: empty: not a file that tsnap --stack-dict wrote",
					 dict->reader.name);
		if (more <= 0)
			return more;
		any = true;
	}
}

/* Reads all rows of the reader. */
static int dict_open(struct csv_reader reader, uint64_t needs, struct stack_dict **opened,
		     struct error *e)
{
	struct stack_dict *dict = memory_get(sizeof(*dict));
	int err;

	dict->reader = reader;
	dict->needs = needs;
	err = dict_read(dict, e);
	csv_done(&dict->reader);
	if (err || (!dict->column_count && !dict->bad)) {
		stack_dict_free(dict);
		dict = NULL;
	}
	*opened = dict;
	return err;
}

int stack_dict_open(const char *path, uint64_t needs, struct stack_dict **dict, struct error *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return error_set(e, errno, EXIT_FAILED, "%s: %s", path, strerror(errno));
	err = dict_open((struct csv_reader){.fd = fd, .name = path}, needs, dict, e);
	close(fd);
	return err;
}

int stack_dict_open_input(struct csv_input *input, const char *name, uint64_t needs,
			  struct stack_dict **dict, struct error *e)
{
	return dict_open((struct csv_reader){.fd = -1, .input = input, .name = name}, needs, dict,
			 e);
}

void stack_dict_free(struct stack_dict *dict)
{
	if (!dict)
		return;
	index_clear(&dict->at);
	index_clear(&dict->joined);
	index_clear(&dict->wakers);
	for (size_t i = 0; i < dict->count; i++)
		free(dict->stacks[i].texts);
	free(dict->stacks);
	text_done(&dict->scratch);
	free(dict);
}

void stack_dict_describe(const struct stack_dict *dict, struct source_status *status)
{
	source_status_miss_any(status, "stacks of samples missing from the dictionary",
			       dict->lacking);
	source_status_miss_any(status, "rows of stacks can't be read", dict->bad);
	source_status_miss_any(status,
			       "stacks dropped: more memory than a replay has for them (replay "
			       "fewer hours: --from, --to)",
			       dict->refused);
}

/* Interns the texts that samples get as they are. */
static void stack_intern(struct dict_stack *stack)
{
	struct stack_entry *entry = &stack->entry;

	if (stack->interned)
		return;
	stack->interned = true;
	entry->func = name_transient_string(entry->func);
	entry->funcs = name_transient_string(entry->funcs);
	entry->files = name_transient_string(entry->files);
}

static const struct stack_entry *entry_find(struct stack_dict *dict, int64_t hash, const char *kind)
{
	static const struct stack_entry none = {.hash = ABSENT};
	const uint64_t *at;

	if (hash == ABSENT)
		return &none;
	at = index_find(&dict->at, (uint64_t)hash);
	if (at && dict->stacks[*at].entry.kind == kind) {
		stack_intern(&dict->stacks[*at]);
		return &dict->stacks[*at].entry;
	}
	dict->lacking++;
	return &none;
}

/* The slot for the text of two stacks, which is made once. */
static uint64_t *pair_put(struct index *pairs, const struct stack_entry *user,
			  const struct stack_entry *kernel, bool *added)
{
	return index_put(pairs, hash_u64((uint64_t)user->hash) ^ (uint64_t)kernel->hash, added);
}

static void text_fill(const char **field, const char *text)
{
	if (!*field)
		*field = text;
}

static void waker_fill(struct stack_dict *dict, struct sample *sample)
{
	const struct stack_entry *user = entry_find(dict, sample->waker.ustack, STACK_DICT_USER);
	const struct stack_entry *kernel =
		entry_find(dict, sample->waker.kstack, STACK_DICT_KERNEL);
	bool added;
	uint64_t *text = pair_put(&dict->wakers, user, kernel, &added);

	if (added)
		*text = (uintptr_t)waker_stack_of(user->frames, kernel->frames, name_transient);
	text_fill(&sample->waker.stack, (const char *)(uintptr_t)*text);
}

static void stack_fill(struct stack_dict *dict, struct sample *sample,
		       const struct stack_entry *user, const struct stack_entry *kernel)
{
	bool added;
	uint64_t *text = pair_put(&dict->joined, user, kernel, &added);

	if (added)
		*text = (uintptr_t)stack_of_halves(user->frames, kernel->frames, name_transient);
	text_fill(&sample->stack.both, (const char *)(uintptr_t)*text);
}

void stack_dict_fill(struct stack_dict *dict, struct sample *sample)
{
	const struct stack_entry *user = entry_find(dict, sample->stack.ustack, STACK_DICT_USER);
	const struct stack_entry *kernel =
		entry_find(dict, sample->stack.kstack, STACK_DICT_KERNEL);

	text_fill(&sample->stack.ufunc, user->func);
	text_fill(&sample->stack.ufuncs, user->funcs);
	text_fill(&sample->stack.ufiles, user->files);
	text_fill(&sample->stack.kfunc, kernel->func);
	text_fill(&sample->stack.kfuncs, kernel->funcs);
	if (dict->needs & NEED_STACK)
		stack_fill(dict, sample, user, kernel);
	if (dict->needs & NEED_WAKER_STACK)
		waker_fill(dict, sample);
}

void stack_dict_row_add(struct text *rows, const struct stack_entry *entry)
{
	text_add_format(rows, "\"0x%llx\",\"%s\"", (unsigned long long)entry->hash, entry->kind);
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		if (columns[i].needs) {
			text_add_char(rows, ',');
			csv_text_add(rows, *text_at((struct stack_entry *)entry, &columns[i]));
		}
	text_add_char(rows, '\n');
}

static void stack_take(void *to, const struct stack_entry *entry)
{
	struct stack_dict_file *file = to;

	if (stack_dict_written_add(&file->written, entry))
		stack_dict_row_add(&file->out, entry);
}

int stack_dict_file_begin(struct stack_dict_file *file, const char *path, struct source *source,
			  struct error *e)
{
	if (!path)
		return 0;
	file->fd = output_create(path);
	if (file->fd < 0)
		return error_set(e, -file->fd, EXIT_FAILED, "%s: %s", path, output_error(file->fd));
	file->path = path;
	file->source = source;
	source->stack_take = stack_take;
	source->stack_take_to = file;
	text_add_string(&file->out, STACK_DICT_HEADER "\n");
	return stack_dict_file_flush(file, e);
}

int stack_dict_file_flush(struct stack_dict_file *file, struct error *e)
{
	int err;

	if (!file->path || !file->out.length)
		return 0;
	err = output_write(file->fd, text_string(&file->out), file->out.length);
	text_clear(&file->out);
	return err ? error_set(e, -err, EXIT_FAILED, "%s: %s", file->path, strerror(-err)) : 0;
}

int stack_dict_file_end(struct stack_dict_file *file, struct error *e)
{
	if (!file->path)
		return 0;
	if (file->source->host)
		file->source->host->stacks_end(file->source);
	return stack_dict_file_flush(file, e);
}

void stack_dict_file_done(struct stack_dict_file *file)
{
	if (file->path)
		close(file->fd);
	stack_dict_written_clear(&file->written);
	text_done(&file->out);
	*file = (struct stack_dict_file){0};
}
