/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/diff.h"
#include "cli/run.h"
#include "base/memory.h"
#include "recording/recording.h"
#include "base/signals.h"
#include "render/flame_svg.h"
#include "render/fold.h"
#include "recording/recording_part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE (1u << 16)
#define FOLDED_MAX (256u << 20) /* limit of bytes */

/* Reads some more of the file. 1, 0 at its end, or -errno with e. */
static int piece_read(int fd, const char *path, struct text *bytes, struct error *e)
{
	char *at = text_reserve(bytes, PIECE);
	ssize_t got;

	do
		got = read(fd, at, PIECE);
	while (got < 0 && errno == EINTR && !signals_stop());
	if (got < 0)
		return error_set(e, errno, EXIT_FAILED, "%s: %s", path, strerror(errno));
	text_end(bytes, at + got);
	if (memchr(at, '\0', (size_t)got))
		return error_set(e, EINVAL, EXIT_FAILED,
				 "%s: neither folded stacks nor a CSV that tsnap wrote", path);
	if (bytes->length > FOLDED_MAX)
		return error_set(e, EFBIG, EXIT_FAILED, "%s: more than 256 MB of folded stacks",
				 path);
	return got > 0;
}

/* The header line of tsnap's rows: comma-separated names, one of them timestamp. */
static bool is_recording(const char *text)
{
	size_t length = strcspn(text, "\n");
	const char *at = strstr(text, "timestamp");

	return at && at < text + length && !memchr(text, ' ', length) &&
	       !memchr(text, ';', length) && (at == text || at[-1] == ',');
}

/* Replays a recording into folded stacks. named: its name, with the requested part. */
static int recording_fold(const struct config *config, const char *named, source_opener *replay,
			  void (*report)(const char *lines), struct text *folded, struct error *e)
{
	struct config fold = *config;

	fold.format = &renderer_folded;
	fold.replay = named;
	fold.output = NULL;
	return run_into(folded, &fold, replay, report, e);
}

static bool config_filters(const struct config *config)
{
	return config->live.process || config->live.threads || config->user || config->comm ||
	       config->live.cgroup || config->filter || config->on_cpu || config->off_cpu ||
	       config->by || config->columns || config->more_columns || config->duration_us;
}

static int stacks_read(const struct config *config, const char *named, const char *path, bool whole,
		       source_opener *replay, void (*report)(const char *lines),
		       struct text *folded, struct error *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), more;

	if (fd < 0)
		return error_set(e, errno, EXIT_FAILED, "%s: %s", path, strerror(errno));
	more = piece_read(fd, path, folded, e);
	if (more > 0 && is_recording(text_string(folded))) {
		text_clear(folded);
		more = lseek(fd, 0, SEEK_SET)
			       ? error_set(e, ESPIPE, EXIT_FAILED,
					   "%s: a recording in a pipe can't be compared: write it "
					   "to a file first",
					   named)
			       : recording_fold(config, named, replay, report, folded, e);
	} else if (more >= 0 && (!whole || config_filters(config))) {
		more = error_set(e, EINVAL, EXIT_USAGE,
				 "%s holds folded stacks: filters, columns and parts are for "
				 "recordings",
				 path);
	}
	while (more > 0)
		more = piece_read(fd, path, folded, e);
	close(fd);
	return more;
}

/* Gets the folded stacks of a file, or of a part of it. */
static int file_fold(const struct config *config, const char *named, source_opener *replay,
		     void (*report)(const char *lines), struct text *folded, struct error *e)
{
	struct recording_part part;
	char *path;
	int err = recording_part_read(named, &path, &part, e);

	if (err)
		return err;
	if (recording_is_packed(path))
		err = recording_fold(config, named, replay, report, folded, e);
	else
		err = stacks_read(config, named, path, recording_part_whole(&part), replay, report,
				  folded, e);
	free(path);
	return err;
}

static int side_add(struct frame_tree *tree, const struct config *config, const char *path,
		    enum frame_part part, source_opener *replay, void (*report)(const char *lines),
		    struct error *e)
{
	struct text folded = {0};
	int err = file_fold(config, path, replay, report, &folded, e);

	/* an incomplete side would be drawn as if it were complete */
	if (signals_stop())
		err = error_set(e, EINTR, EXIT_FAILED,
				"stopped before both files were read: no flame graph was written");
	if (!err)
		err = fold_read(tree, path, text_string(&folded), part, e);
	if (!err && (!tree->count || !tree->nodes[0].all[part]))
		err = error_set(e, ENODATA, EXIT_FAILED, "%s: it has no stacks to compare", path);
	text_done(&folded);
	return err;
}

static void side_report(struct text *out, const char *name, const char *path, int64_t weight)
{
	text_add_string(out, name);
	text_add_printable(out, path);
	text_add_format(out, ", weight %lld\n", (long long)weight);
}

int diff(const struct config *config, source_opener *replay, void (*report)(const char *lines),
	 struct error *e)
{
	struct text subtitle = {0}, svg = {0};
	struct frame_tree tree = {0};
	int err = run_output_check(config->output, e);

	if (!err)
		err = side_add(&tree, config, config->diff, PART_BEFORE, replay, report, e);
	if (!err)
		err = side_add(&tree, config, config->diff_after, PART_AFTER, replay, report, e);
	if (!err) {
		frame_tree_sort(&tree);
		side_report(&subtitle, "before: ", config->diff, tree.nodes[0].all[PART_BEFORE]);
		side_report(&subtitle, "after: ", config->diff_after,
			    tree.nodes[0].all[PART_AFTER]);
		text_add_string(&subtitle, "A frame is as wide as the mean of its shares before "
					   "and after; red grew, blue shrank");
		flame_svg_add(&svg, &(struct flame){
					    .tree = &tree,
					    .differs = true,
					    .title = "Flame graph: what changed",
					    .subtitle = text_string(&subtitle),
					    .footer = "",
				    });
		err = run_output(config->output, &svg, e);
		if (!err)
			run_output_tell(config->output, renderer_flame.whole, report);
	}
	frame_tree_done(&tree);
	text_done(&subtitle);
	text_done(&svg);
	return err == -EPIPE ? 0 : err;
}
