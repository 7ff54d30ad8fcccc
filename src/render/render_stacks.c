/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stacks below a line of the report: for each its share of the line's time, and its frames,
 * outermost first, formatted for people. */
#include "render/fold.h"
#include "render/renderer.h"
#include "report/group_split.h"
#include "report/report.h"
#include "report/event_list.h"
#include "report/stack_lines.h"
#include "report/value.h"
#include "base/clock.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INDENT 6
#define SHARE_WIDTH 8 /* "100.0%  " */
#define LABEL_WIDTH 8 /* "kernel  " */
#define COUNT_WIDTH 5 /* widths in place of SHARE_WIDTH for a sum of sleeps */
#define SECONDS_WIDTH 7
/* Frames shown of a half with more than FRAMES_SHOWN + 1: the outermost ones, the innermost ones,
 * and between them functions of the program itself rather than of libraries and runtimes. */
#define FRAMES_OUTER 2
#define FRAMES_INNER 3
#define FRAMES_SHOWN 12
#define FRAME_WIDTH_LEAST 16
#define LEFT (INDENT + SHARE_WIDTH + LABEL_WIDTH) /* column at which frames begin */
#define LEFT_NARROW 2 /* column if the line is too narrow: frames are below the label */
#define ARROW_WIDTH 3
#define ELLIPSIS "…"

/* Kind of a half of a stack; each half begins a line. */
struct half_kind {
	const char *label;
	const char *arrow;    /* sign between two frames */
	bool innermost_first; /* false: the innermost frame is last */
};

enum half_of { HALF_USER, HALF_KERNEL, HALF_WAKER };

static const struct half_kind half_kinds[] = {
	[HALF_USER] = {"user", " > ", false},
	[HALF_KERNEL] = {"kernel", " > ", false},
	[HALF_WAKER] = {"waker", " < ", true},
};

struct half {
	const struct half_kind *kind;
	const char *frames; /* frames separated by ';' */
	size_t length, count;
};

/* Marks of frames of a program's own functions: if it has some with the first mark, other frames
 * are of its interpreter or virtual machine, and so on. */
static const char *const own_marks[] = {FRAME_PYTHON, FRAME_JIT, ""};

/* Begins of names of functions that a language's runtime or standard library adds to a program. */
static const char *const runtime_begins[] = {
	"runtime.", "runtime/", "internal/", "syscall.", "std::",    "core::",	"alloc::",
	"tokio::",  "<std::",	"<core::",   "<alloc::", "<tokio::", "__libc_", "__pthread_",
};

static bool is_of(const char *frame, size_t length, const char *mark)
{
	return !strcmp(frame_kind_of(frame, length)->mark, mark);
}

/* Takes the frames of one half, up to the next half. The waker's half is the last. */
static struct half half_take(const char **at)
{
	enum half_of of = HALF_USER;
	struct half half;

	if (is_of(*at, strcspn(*at, ";"), FRAME_SEPARATOR)) {
		of = HALF_WAKER;
		*at += strcspn(*at, ";");
		*at += **at == ';';
	} else if (is_of(*at, strcspn(*at, ";"), FRAME_KERNEL)) {
		of = HALF_KERNEL;
	}
	half = (struct half){.kind = &half_kinds[of], .frames = *at};
	while (**at) {
		size_t length = strcspn(*at, ";");

		if (of != HALF_WAKER && length &&
		    (is_of(*at, length, FRAME_KERNEL) != (of == HALF_KERNEL) ||
		     is_of(*at, length, FRAME_SEPARATOR)))
			break;
		half.count += length > 0;
		*at += length + ((*at)[length] == ';');
	}
	half.length = (size_t)(*at - half.frames);
	return half;
}

/* Bytes of a frame's name without its annotations: a waker's kernel frame has two. */
static size_t plain_length(const char *name, size_t length)
{
	size_t shorter;

	while ((shorter = frame_kind_plain(frame_kind_of(name, length), length)) < length)
		length = shorter;
	return length;
}

struct chosen_frame {
	const char *name;
	size_t length;
	bool shown;
};

static bool is_of_runtime(const struct chosen_frame *frame)
{
	for (size_t i = 0; i < sizeof(runtime_begins) / sizeof(*runtime_begins); i++) {
		size_t length = strlen(runtime_begins[i]);

		if (frame->length > length && !memcmp(frame->name, runtime_begins[i], length))
			return true;
	}
	return false;
}

/* Chooses the innermost frames with that mark until `left` more are shown, and returns how many are
 * left to choose. mark NULL: of any kind. */
static size_t frames_choose(struct chosen_frame *frames, const struct half *half, const char *mark,
			    size_t left)
{
	for (size_t i = 0; left && i < half->count; i++) {
		struct chosen_frame *frame =
			&frames[half->kind->innermost_first ? i : half->count - 1 - i];

		if (frame->shown ||
		    (mark && (!is_of(frame->name, frame->length, mark) || is_of_runtime(frame))))
			continue;
		frame->shown = true;
		left--;
	}
	return left;
}

/* Returns the frames of a half, in order, and which of them are shown; the caller frees them. */
static struct chosen_frame *frames_of(const struct half *half)
{
	struct chosen_frame *frames = memory_get((half->count + 1) * sizeof(*frames));
	size_t count = 0, left = FRAMES_SHOWN, before;

	for (const char *at = half->frames; count < half->count; at += strcspn(at, ";") + 1)
		if (*at != ';')
			frames[count++] = (struct chosen_frame){at, strcspn(at, ";"), false};
	if (count <= FRAMES_SHOWN + 1)
		left = count;
	for (size_t i = 0; i < FRAMES_OUTER && i < count; i++, left--)
		frames[half->kind->innermost_first ? count - 1 - i : i].shown = true;
	if (left > FRAMES_INNER)
		left -= FRAMES_INNER - frames_choose(frames, half, NULL, FRAMES_INNER);
	for (size_t i = 0; i < sizeof(own_marks) / sizeof(*own_marks); i++) {
		before = left;
		left = frames_choose(frames, half, own_marks[i], left);
		if (left < before)
			break;
	}
	frames_choose(frames, half, NULL, left);
	return frames;
}

/* A line of text that is being written, and its bounds. */
struct line {
	struct text *out;
	size_t width; /* width of the line; SIZE_MAX: no limit */
	size_t left;  /* column at which frames begin */
	size_t at;
};

/* Adds an arrow, and a line break if the next frame does not fit: the arrow stays with the frame
 * before. */
static void arrow_add(struct line *line, const char *arrow, size_t next_width)
{
	text_add_string(line->out, arrow);
	line->at += ARROW_WIDTH;
	if (line->at < line->width && line->width - line->at >= next_width + ARROW_WIDTH)
		return;
	line->out->bytes[line->out->length - 1] = '\n';
	text_add_spaces(line->out, line->left);
	line->at = line->left;
}

/* Adds a frame, or a text that replaces some. arrow: sign after the previous frame; NULL for the
 * first. */
static void frame_add(struct line *line, const char *name, size_t length, const char *arrow)
{
	size_t free_width = line->width > line->left + FRAME_WIDTH_LEAST ? line->width - line->left
									 : FRAME_WIDTH_LEAST;
	struct text words = {0};
	size_t width;

	text_add(&words, name, length);
	width = text_width(text_string(&words));
	if (line->width != SIZE_MAX && width + ARROW_WIDTH > free_width) {
		text_end(&words, words.bytes + text_fit(words.bytes, free_width - ARROW_WIDTH - 1));
		text_add_string(&words, ELLIPSIS);
		width = text_width(text_string(&words));
	}
	if (arrow)
		arrow_add(line, arrow, width);
	text_add_string(line->out, text_string(&words));
	line->at += width;
	text_done(&words);
}

static void half_add(struct text *out, const struct interval *interval, const struct half *half)
{
	bool narrow = interval->width && interval->width < LEFT + FRAME_WIDTH_LEAST;
	const size_t left = narrow ? LEFT_NARROW : LEFT;
	struct line line = {out, interval->width ? interval->width : SIZE_MAX, left, left};
	struct chosen_frame *frames = frames_of(half);
	const char *arrow = NULL;
	size_t hidden = 0;

	text_add_string(out, half->kind->label);
	if (narrow)
		text_add_char(out, '\n');
	text_add_spaces(out, narrow ? LEFT_NARROW : LABEL_WIDTH - strlen(half->kind->label));
	for (size_t i = 0; i < half->count; i++) {
		const struct chosen_frame *frame = &frames[i];
		char words[48];

		if (!frame->shown) {
			hidden++;
			continue;
		}
		if (hidden) {
			snprintf(words, sizeof(words), "(%zu more)", hidden);
			frame_add(&line, words, strlen(words), arrow);
		}
		hidden = 0;
		frame_add(&line, frame->name, plain_length(frame->name, frame->length), arrow);
		arrow = half->kind->arrow;
	}
	text_add_char(out, '\n');
	free(frames);
}

/* Adds a share of the line's time at the beginning of a line: " 71.2%" */
static void share_add(struct text *out, int64_t weight_us, int64_t of)
{
	struct text share = {0};

	text_add_decimals(&share, ratio(weight_us, 1000, of), 1);
	text_add_spaces(out, INDENT + 5 - share.length);
	text_add_string(out, text_string(&share));
	text_add_string(out, "%  ");
	text_done(&share);
}

/* Adds the halves of a stack. frames: printable, outermost first */
static void halves_add(struct text *out, const struct interval *interval, const char *frames)
{
	const char *at = frames;
	bool first = true;

	while (*at) {
		struct half half = half_take(&at);

		if (!half.count)
			continue;
		if (!first)
			text_add_spaces(out, INDENT + SHARE_WIDTH);
		half_add(out, interval, &half);
		first = false;
	}
	if (first)
		text_add_string(out, "-\n");
}

static void stack_add(struct text *out, const struct interval *interval, size_t stack)
{
	const struct stack_lines *lines = interval->stacks;
	struct text printable = {0};

	text_add_printable(&printable, stack_line_frames(lines, stack));
	fold_add_waker(&printable, stack_line_waker_stack(lines, stack),
		       stack_line_waker_comm(lines, stack));
	halves_add(out, interval, text_string(&printable));
	text_done(&printable);
}

/* Adds count and seconds of sleeps, as wide as a share: "  111   0.558  " */
static void sum_add(struct text *out, const struct interval *interval, const struct sleep_sum *sum)
{
	struct text cell = {0}, printable = {0};

	text_add_number(&cell, sum->count);
	text_add_spaces(out, cell.length < COUNT_WIDTH ? COUNT_WIDTH - cell.length : 0);
	text_add_string(out, text_string(&cell));
	text_clear(&cell);
	text_add_decimals(&cell, sum->duration_ns / NS_PER_MS, 3);
	text_add_spaces(out, cell.length < SECONDS_WIDTH ? SECONDS_WIDTH - cell.length : 1);
	text_add_format(out, "%s  ", text_string(&cell));
	text_add_printable(&printable, sum->stack ? sum->stack : "");
	halves_add(out, interval, text_string(&printable));
	text_done(&printable);
	text_done(&cell);
}

void interval_add_counted_stack(struct text *out, const struct interval *interval, int64_t count,
				const char *stack)
{
	struct text cell = {0}, printable = {0};

	text_add_number(&cell, count);
	text_add_spaces(out, cell.length < INDENT + SHARE_WIDTH - 2
				     ? INDENT + SHARE_WIDTH - 2 - cell.length
				     : 0);
	text_add_format(out, "%s  ", text_string(&cell));
	text_add_printable(&printable, stack ? stack : "");
	halves_add(out, interval, text_string(&printable));
	text_done(&printable);
	text_done(&cell);
}

void interval_add_sleep_sums(struct text *out, const struct interval *interval,
			     const struct event_list *events)
{
	size_t count, rows;
	struct sleep_sum *sums = sleep_sums_make(events, &count);
	struct text line = {0};
	int64_t sleeps = 0, none;

	for (size_t i = 0; i < count; i++)
		sleeps += sums[i].count;
	none = count && !sums[count - 1].stack ? sums[count - 1].count : 0;
	text_add_format(&line, "offcpu slower than %.10g ms by stack: %lld sleep%s",
			(double)events->slower_us / US_PER_MS, (long long)sleeps,
			sleeps == 1 ? "" : "s");
	if (none)
		text_add_format(&line,
				", %lld without a stack, as no scan saw them (-a has idle threads, "
				"a higher -F short sleeps)",
				(long long)none);
	text_add_char(out, '\n');
	interval_add_wrapped(out, interval, text_string(&line));
	if (count)
		text_add_string(out, "COUNT SECONDS  STACK\n");
	rows = interval->row_limit && count > interval->row_limit ? interval->row_limit : count;
	for (size_t i = 0; i < rows; i++)
		sum_add(out, interval, &sums[i]);
	if (rows < count)
		text_add_format(out, "(%zu more)\n", count - rows);
	free(sums);
	text_done(&line);
}

/* Adds the share of stacks that are not shown. */
static void rest_add(struct text *out, const struct interval *interval, int64_t of, int64_t rest,
		     size_t stacks, int64_t none)
{
	struct text line = {0};

	if (!stacks && !none)
		return;
	share_add(&line, stacks ? rest : none, of);
	if (stacks)
		text_add_format(&line, "in %zu more stack%s", stacks, stacks == 1 ? "" : "s");
	if (stacks && none) {
		text_add_string(&line, ", ");
		text_add_decimals(&line, ratio(none, 1000, of), 1);
		text_add_string(&line, "% ");
	}
	text_add_string(&line, none ? "without a stack" : "");
	interval_add_line(out, interval, &line);
}

void interval_add_stacks(struct text *out, const struct interval *interval, size_t row)
{
	const struct stack_lines *lines = interval->stacks;
	int64_t of = 0, none = 0, rest = 0;
	size_t reported = 0, stacks = 0;

	if (!lines || lines->of != interval->grid)
		return;
	for (size_t at = STACK_LINE_NONE;
	     (at = stack_lines_next(lines, row, at)) != STACK_LINE_NONE;) {
		of += stack_line_weight_us(lines, at);
		if (!stack_line_frames(lines, at))
			none += stack_line_weight_us(lines, at);
	}
	for (size_t at = STACK_LINE_NONE;
	     none < of && (at = stack_lines_next(lines, row, at)) != STACK_LINE_NONE;) {
		int64_t weight_us = stack_line_weight_us(lines, at);

		if (!stack_line_frames(lines, at))
			continue;
		stacks++;
		if (reported == lines->most) {
			rest += weight_us;
			continue;
		}
		reported++;
		share_add(out, weight_us, of);
		stack_add(out, interval, at);
	}
	if (stacks)
		rest_add(out, interval, of, rest, stacks - reported, none);
}

static void stacks_footer(struct text *out, const struct interval *interval, void *state)
{
	const struct stack_lines *lines = state;
	struct text line = {0};

	if (!lines->samples)
		return;
	text_add_string(&line, "Stacks: ");
	if (!lines->known) {
		text_add_string(&line, "none of the samples has one");
		text_add_string(
			&line, interval->recording
				       ? "; a recording needs the column stack, or its --stack-dict"
				       : "");
		interval_add_line(out, interval, &line);
		return;
	}
	text_add_decimals(&line, ratio(lines->known, 1000, lines->samples), 1);
	text_add_string(&line, " % of the samples have one; their shares are of the line above "
			       "them");
	interval_add_line(out, interval, &line);
}

static int stacks_begin(void *state, struct report *report)
{
	struct stack_lines *lines = state;

	if (!report->config->stacks)
		return 0;
	stack_lines_init(lines, (size_t)report->config->stacks, &report->list,
			 report->config->off_wake);
	if (report->times.shared)
		group_table_split(&lines->groups, &report->times, REST_NOWHERE);
	report->interval->stacks = lines;
	return 1;
}

static void stacks_end(void *state, struct report *report)
{
	struct stack_lines *lines = state;

	stack_lines_fill(lines, &report->grid, &report->tally);
	report_miss(report, "samples dropped: more stacks than tsnap keeps", lines->groups.refused);
}

const struct report_part stacks_part = {.bytes = sizeof(struct stack_lines),
					.begin = stacks_begin,
					.needs = stack_lines_needs,
					.add = stack_lines_add,
					.end = stacks_end,
					.footer = stacks_footer,
					.clear = stack_lines_clear,
					.done = stack_lines_done};
