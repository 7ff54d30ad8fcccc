/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/stack_dict_file.h"
#include "base/output.h"
#include "render/renderer.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void stack_take(void *to, const struct stack_entry *entry)
{
	struct stack_dict_file *file = to;
	struct interval interval = {.grid = &file->grid};

	if (!stack_dict_written_add(&file->written, entry))
		return;
	grid_size(&file->grid, &file->list, 1);
	for (size_t i = 0; i < file->list.count; i++)
		file->grid.values[i] = column_read(file->list.items[i], entry);
	renderer_csv.add(&file->out, &interval);
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
	for (size_t i = 0; i < stack_dict_column_count; i++)
		file->list.items[file->list.count++] = &stack_dict_columns[i];
	renderer_csv.begin(&file->out, &file->list);
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
	if (file->source->stacks_end)
		file->source->stacks_end(file->source);
	return stack_dict_file_flush(file, e);
}

void stack_dict_file_done(struct stack_dict_file *file)
{
	if (file->path)
		close(file->fd);
	stack_dict_written_clear(&file->written);
	grid_done(&file->grid);
	text_done(&file->out);
	*file = (struct stack_dict_file){0};
}
