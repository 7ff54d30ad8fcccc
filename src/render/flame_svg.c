/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/flame_svg.h"
#include "base/clock.h"
#include "base/memory.h"
#include "render/fold.h"
#include "render/renderer.h"
#include "report/findings.h"
#include "report/report.h"
#include "report/value.h"

#include <stdlib.h>
#include <string.h>

#define WIDTH_LEAST (WIDTH_ALL / 10000) /* a tenth of a pixel */
#define MIX_ALL 256
#define MIX_OFF 150 /* share of white off CPU */
#define WHITE 0xffffff
#define COLOUR_SAME 0xe9e6df
#define COLOUR_GREW 0xec6a54
#define COLOUR_SHRANK 0x5c9fd8

int64_t flame_share(const struct flame_layout *layout, const struct frame_node *node,
		    enum frame_part part)
{
	return ratio(node->all[part], WIDTH_ALL, layout->tree->nodes[0].all[part]);
}

int64_t flame_width(const struct flame_layout *layout, const struct frame_node *node)
{
	const int64_t *all = layout->tree->nodes[0].all;
	int sides = (all[0] > 0) + (all[1] > 0);

	if (!layout->differs)
		return ratio(sum(node->all[0], node->all[1]), WIDTH_ALL, sum(all[0], all[1]));
	if (!sides)
		return 0;
	return (flame_share(layout, node, PART_BEFORE) + flame_share(layout, node, PART_AFTER)) /
	       sides;
}

int64_t flame_width_off(const struct flame_layout *layout, const struct frame_node *node)
{
	return layout->differs ? 0
			       : ratio(node->all[PART_OFF], flame_width(layout, node),
				       sum(node->all[0], node->all[1]));
}

bool flame_drawn(const struct flame_layout *layout, const struct frame_node *node)
{
	int64_t width = flame_width(layout, node);

	return width > layout->width_least ||
	       (width == layout->width_least && node->depth < layout->depth_least);
}

struct position {
	int64_t width;
	uint32_t depth;
};

/* Order of drawing: wide frames first, then low ones, so that no frame is drawn without those below
 * it. */
static int position_compare(const void *a, const void *b)
{
	const struct position *x = a, *y = b;

	if (x->width != y->width)
		return x->width > y->width ? -1 : 1;
	return (x->depth > y->depth) - (x->depth < y->depth);
}

/* Sets the limits of width and depth so that no more than `most` frames are drawn. */
static void layout_limit(struct flame_layout *layout, size_t most)
{
	const struct frame_tree *tree = layout->tree;
	struct position *positions;

	layout->width_least = WIDTH_LEAST;
	layout->depth_least = FRAME_DEPTH_MAX + 1;
	if (tree->count <= most)
		return;
	positions = memory_get(tree->count * sizeof(*positions));
	for (size_t i = 0; i < tree->count; i++)
		positions[i] = (struct position){flame_width(layout, &tree->nodes[i]),
						 tree->nodes[i].depth};
	qsort(positions, tree->count, sizeof(*positions), position_compare);
	if (positions[most].width >= WIDTH_LEAST) {
		layout->limited = true;
		layout->width_least = positions[most].width;
		layout->depth_least = positions[most].depth;
	}
	free(positions);
}

struct flame_layout flame_layout_of(const struct frame_tree *tree, bool differs, size_t most)
{
	struct flame_layout layout = {.tree = tree, .differs = differs};

	layout_limit(&layout, most);
	for (size_t i = 1; i < tree->count; i++) {
		const struct frame_node *node = &tree->nodes[i];

		if (!flame_drawn(&layout, node)) {
			layout.culled++;
			continue;
		}
		layout.drawn++;
		if (node->depth > layout.depth_most)
			layout.depth_most = node->depth;
	}
	return layout;
}

/* Mixes each channel: part / MIX_ALL of the way from one to the other. */
static uint32_t colour_mix(uint32_t from, uint32_t to, int part)
{
	uint32_t mixed = 0;

	for (int shift = 0; shift < 24; shift += 8) {
		int a = from >> shift & 0xff, b = to >> shift & 0xff;

		mixed |= (uint32_t)(a + (b - a) * part / MIX_ALL) << shift;
	}
	return mixed;
}

uint32_t flame_colour_change(int64_t before, int64_t after)
{
	int part = (int)ratio(after > before ? after - before : before - after, MIX_ALL,
			      before + after);

	return colour_mix(COLOUR_SAME, after > before ? COLOUR_GREW : COLOUR_SHRANK, part);
}

uint32_t flame_colour(const struct flame_layout *layout, const struct frame_node *node, bool off)
{
	uint32_t colour;

	if (layout->differs)
		return flame_colour_change(flame_share(layout, node, PART_BEFORE),
					   flame_share(layout, node, PART_AFTER));
	/* a function has the same colour everywhere */
	colour = colour_mix(node->kind->colours[0], node->kind->colours[1],
			    (int)(hash_bytes(node->name, strlen(node->name)) % MIX_ALL));
	return off ? colour_mix(colour, WHITE, MIX_OFF) : colour;
}

/* Pixels. Frames are as wide as the window once the script runs. */
#define WIDTH 1200
#define MARGIN 14
#define FINDINGS_MOST 3
#define TITLE_Y 30
#define LINE_HEIGHT 17
#define SWATCH_WIDTH 20
#define SWATCH_HEIGHT 12
#define SWATCH_GAP 18
#define FRAME_HEIGHT 18
#define THIN 3 /* thinner frames have no line around them */
#define FRAMES_WIDTH (WIDTH - 2 * MARGIN)
/* Hundredths of a pixel: letters of 12 pixels, monospaced and not. */
#define LETTER_WIDTH 723
#define WORD_LETTER_WIDTH 640
#define LABEL_PADDING 8
#define LABEL_LEAST 22	 /* three letters */
#define NAME_COLUMNS 400 /* names of C++ can be much longer */
#define ELLIPSIS "…"

void xml_add(struct text *out, const char *bytes, size_t length)
{
	static const char *const escapes[128] = {
		['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;",
	};

	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)bytes[i];

		if (c < 128 && escapes[c])
			text_add_string(out, escapes[c]);
		else
			text_add_char(out, (char)c);
	}
}

/* Adds text, cut to that many columns. */
static void xml_add_fit(struct text *out, const char *bytes, size_t length, size_t columns)
{
	struct text whole = {0};
	size_t fit;

	text_add(&whole, bytes, length);
	fit = text_fit(text_string(&whole), columns);
	if (fit == length) {
		xml_add(out, bytes, length);
	} else {
		xml_add(out, bytes, text_fit(text_string(&whole), columns - 1));
		text_add_string(out, ELLIPSIS);
	}
	text_done(&whole);
}

/* Adds a width as "12.345678". */
static void width_add(struct text *out, int64_t width)
{
	text_add_format(out, "%lld.%06lld", (long long)(width / 1000000),
			(long long)(width % 1000000));
}

static void percent_add(struct text *out, int64_t part, int64_t all)
{
	text_add_decimals(out, ratio(part, 10000, all), 2);
	text_add_string(out, " %");
}

static void seconds_add(struct text *out, int64_t us)
{
	text_add_decimals(out, ratio(us, 1000, US_PER_SECOND), 3);
	text_add_string(out, " s");
}

static void frame_name_add(struct text *out, const struct frame_node *node, size_t columns)
{
	xml_add_fit(out, node->name, frame_kind_plain(node->kind, strlen(node->name)), columns);
}

/* Adds a frame's times: "1.200 s, 12.00 % of all, 50.00 % of main; 0.200 s on CPU, 1.000 s off
 * CPU" */
static void times_report(struct text *out, const struct flame *flame, const struct frame_node *node)
{
	const struct frame_node *nodes = flame->tree->nodes, *parent = &nodes[node->parent];
	int64_t us = sum(node->all[0], node->all[1]);

	seconds_add(out, us);
	if (node != nodes) {
		text_add_string(out, ", ");
		percent_add(out, us, sum(nodes->all[0], nodes->all[1]));
		text_add_string(out, " of all");
	}
	if (node->depth > 1) {
		text_add_string(out, ", ");
		percent_add(out, us, sum(parent->all[0], parent->all[1]));
		text_add_string(out, " of ");
		frame_name_add(out, parent, NAME_COLUMNS / 8);
	}
	for (int part = PART_ON; part <= PART_OFF; part++) {
		if (!node->all[part])
			continue;
		text_add_string(out, part == PART_ON || !node->all[PART_ON] ? "; " : ", ");
		if (node->all[part] != us)
			seconds_add(out, node->all[part]);
		else
			text_add_string(out, "all");
		text_add_string(out, part == PART_ON ? " on CPU" : " off CPU");
	}
}

/* Adds a frame's change: "before 50.00 % (10), after 75.00 % (30): +25.00 points, 1.50 times" */
static void change_report(struct text *out, const struct flame *flame,
			  const struct frame_node *node)
{
	const int64_t *all = flame->tree->nodes[0].all;
	int64_t before = ratio(node->all[PART_BEFORE], 10000, all[PART_BEFORE]);
	int64_t after = ratio(node->all[PART_AFTER], 10000, all[PART_AFTER]);

	text_add_string(out, "before ");
	percent_add(out, node->all[PART_BEFORE], all[PART_BEFORE]);
	text_add_format(out, " (%lld), after ", (long long)node->all[PART_BEFORE]);
	percent_add(out, node->all[PART_AFTER], all[PART_AFTER]);
	text_add_format(out, " (%lld): %s", (long long)node->all[PART_AFTER],
			after < before ? "" : "+");
	text_add_decimals(out, after - before, 2);
	text_add_string(out, " points");
	if (node->all[PART_BEFORE] && node->all[PART_AFTER]) {
		text_add_string(out, ", ");
		text_add_decimals(out,
				  ratio(flame_share(&(struct flame_layout){.tree = flame->tree},
						    node, PART_AFTER),
					100,
					flame_share(&(struct flame_layout){.tree = flame->tree},
						    node, PART_BEFORE)),
				  2);
		text_add_string(out, " times");
	}
}

/* Adds lines, which end at line breaks; y: base line of the first one. Returns the y after the
 * last. */
static int lines_add(struct text *out, const char *class, const char *lines, int y)
{
	for (; *lines; y += LINE_HEIGHT) {
		size_t length = strcspn(lines, "\n");

		text_add_format(out, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, MARGIN, y);
		xml_add_fit(out, lines, length, FLAME_LINE_COLUMNS);
		text_add_string(out, "</text>\n");
		lines += length + (lines[length] == '\n');
	}
	return y;
}

/* Adds a swatch, half of it in each colour, and its words at x; returns the x after them. */
static int swatch_add(struct text *out, int x, int y, uint32_t left, uint32_t right,
		      const char *words)
{
	uint32_t halves[] = {left, right};

	for (int i = 0; i < 2; i++)
		text_add_format(out,
				"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
				"fill=\"#%06x\"/>",
				x + i * SWATCH_WIDTH / 2, y - SWATCH_HEIGHT + 2, SWATCH_WIDTH / 2,
				SWATCH_HEIGHT, halves[i]);
	x += SWATCH_WIDTH + 6;
	text_add_format(out, "<text x=\"%d\" y=\"%d\">%s</text>\n", x, y, words);
	return x + (int)text_width(words) * WORD_LETTER_WIDTH / 100 + SWATCH_GAP;
}

static bool kind_drawn(const struct flame_layout *layout, const struct frame_kind *kind)
{
	for (size_t i = 1; i < layout->tree->count; i++)
		if (layout->tree->nodes[i].kind == kind &&
		    flame_drawn(layout, &layout->tree->nodes[i]))
			return true;
	return false;
}

static void legend_add(struct text *out, const struct flame *flame,
		       const struct flame_layout *layout, int y)
{
	static const struct {
		int64_t before, after;
		const char *words;
	} changes[] = {
		{1, 0, "only before"}, {3, 1, "shrank"},     {1, 1, "same share"},
		{1, 3, "grew"},	       {0, 1, "only after"},
	};
	const int64_t *all = flame->tree->count ? flame->tree->nodes[0].all : (int64_t[2]){0};
	int x = MARGIN;

	for (size_t i = 0; flame->differs && i < sizeof(changes) / sizeof(changes[0]); i++) {
		uint32_t colour = flame_colour_change(changes[i].before, changes[i].after);

		x = swatch_add(out, x, y, colour, colour, changes[i].words);
	}
	/* legend, from the kind most often looked for to the least */
	for (size_t i = frame_kind_count; !flame->differs && i-- > 0;) {
		struct frame_node node = {.kind = &frame_kinds[i], .name = ""};

		if (kind_drawn(layout, &frame_kinds[i]))
			x = swatch_add(out, x, y, flame_colour(layout, &node, !all[PART_ON]),
				       flame_colour(layout, &node, all[PART_OFF] > 0),
				       frame_kinds[i].title);
	}
	if (!flame->differs && all[PART_ON] && all[PART_OFF])
		text_add_format(out,
				"<text class=\"minor\" x=\"%d\" y=\"%d\">pale: off CPU</text>\n", x,
				y);
}

static void rect_add(struct text *out, const char *class, int64_t x, int64_t width, int y,
		     uint32_t colour)
{
	text_add_format(out, "<rect%s x=\"", class);
	width_add(out, x);
	text_add_format(out, "%%\" y=\"%d\" width=\"", y);
	width_add(out, width);
	text_add_format(out, "%%\" height=\"%d\" rx=\"2\" fill=\"#%06x\"/>", FRAME_HEIGHT - 1,
			colour);
}

static void frame_add(struct text *out, const struct flame *flame,
		      const struct flame_layout *layout, const struct frame_node *node, int64_t x)
{
	int64_t width = flame_width(layout, node), off = flame_width_off(layout, node);
	int64_t label_width = ratio(width, FRAMES_WIDTH, WIDTH_ALL) - LABEL_PADDING;
	int y = (int)(layout->depth_most - node->depth) * FRAME_HEIGHT;

	text_add_format(out, "<g%s><title>",
			label_width + LABEL_PADDING < THIN ? " class=\"thin\"" : "");
	frame_name_add(out, node, NAME_COLUMNS);
	text_add_char(out, '\n');
	/* compared folded stacks do not say which frames are of a library */
	if (!flame->differs || *node->kind->mark)
		text_add_format(out, "%s, ", node->kind->title);
	if (flame->differs)
		change_report(out, flame, node);
	else
		times_report(out, flame, node);
	text_add_string(out, "</title>");
	rect_add(out, "", x, width, y, flame_colour(layout, node, off == width));
	if (off && off < width)
		rect_add(out, " class=\"off\"", x + width - off, off, y,
			 flame_colour(layout, node, true));
	text_add_string(out, "<text x=\"");
	width_add(out, x);
	text_add_format(out, "%%\" y=\"%d\">", y + FRAME_HEIGHT - 5);
	if (label_width >= LABEL_LEAST)
		frame_name_add(out, node, (size_t)(label_width * 100 / LETTER_WIDTH));
	text_add_string(out, "</text></g>\n");
}

static void frames_add(struct text *out, const struct flame *flame,
		       const struct flame_layout *layout)
{
	int64_t left[FRAME_DEPTH_MAX + 2] = {0}; /* left edge of the next frame at each depth */
	uint32_t at = 0;

	if (!flame->tree->count)
		return;
	do {
		const struct frame_node *node = &flame->tree->nodes[at];
		int64_t width = flame_width(layout, node), x = left[node->depth];
		bool drawn = !at || flame_drawn(layout, node);

		if (drawn)
			frame_add(out, flame, layout, node, x);
		left[node->depth] = x + width;
		left[node->depth + 1] = x;
		at = frame_tree_next(flame->tree, at, !drawn);
	} while (at);
}

static void footer_add(struct text *out, const struct flame *flame,
		       const struct flame_layout *layout, int y)
{
	struct text footer = {0};

	if (layout->limited)
		text_add_format(&footer, "%zu frames are not drawn: only the widest %zu are\n",
				layout->culled, layout->drawn);
	else if (layout->culled)
		text_add_format(&footer, "%zu frame%s narrower than 0.01 %% %s not drawn\n",
				layout->culled, layout->culled == 1 ? "" : "s",
				layout->culled == 1 ? "is" : "are");
	text_add_string(&footer, flame->footer);
	lines_add(out, "minor", text_string(&footer), y);
	text_done(&footer);
}

static struct flame_layout layout_of(const struct flame *flame)
{
	return flame_layout_of(flame->tree, flame->differs,
			       flame->most ? flame->most : FLAME_DRAWN_MAX);
}

static int line_count(const char *lines)
{
	int count = 0;

	for (; *lines; lines += strcspn(lines, "\n"), lines += *lines == '\n')
		count++;
	return count;
}

void flame_number(const struct flame *flame, uint32_t *frames)
{
	const struct frame_tree *tree = flame->tree;
	struct flame_layout layout = layout_of(flame);
	uint32_t at = 0, count = 0;

	if (!tree->count)
		return;
	do {
		bool drawn = !at || flame_drawn(&layout, &tree->nodes[at]);

		frames[at] = drawn ? count++ : frames[tree->nodes[at].parent];
		at = frame_tree_next(tree, at, false);
	} while (at);
}

void flame_svg_add(struct text *out, const struct flame *flame)
{
	struct flame_layout layout = layout_of(flame);
	int legend_y = TITLE_Y + 30 + line_count(flame->subtitle) * LINE_HEIGHT;
	int details_y = legend_y + 27, frames_y = details_y + 12;
	int frames_height = ((int)layout.depth_most + 1) * FRAME_HEIGHT;
	int footer_y = frames_y + frames_height + LINE_HEIGHT;
	int height = footer_y + (line_count(flame->footer) + (layout.culled > 0)) * LINE_HEIGHT;

	if (!flame->within)
		text_add_string(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
	text_add_format(out,
			"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
			"class=\"flame\">\n<title>",
			WIDTH, height);
	xml_add(out, flame->title, strlen(flame->title));
	text_add_format(out, "</title>\n<style><![CDATA[\n%s]]></style>\n", flame_style);
	text_add_string(out, "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n");
	text_add_format(out, "<svg id=\"frames\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\">\n",
			MARGIN, frames_y, FRAMES_WIDTH, frames_height);
	frames_add(out, flame, &layout);
	text_add_format(out,
			"</svg>\n<g id=\"head\">\n"
			"<rect class=\"page\" width=\"100%%\" height=\"%d\"/>\n",
			frames_y);
	lines_add(out, "title", flame->title, TITLE_Y);
	lines_add(out, "minor", flame->subtitle, TITLE_Y + 22);
	legend_add(out, flame, &layout, legend_y);
	text_add_format(out,
			"<text id=\"details\" x=\"%d\" y=\"%d\"></text>\n"
			"<text id=\"matched\" x=\"%d\" y=\"%d\"></text>\n</g>\n",
			MARGIN, details_y, WIDTH - MARGIN, details_y);
	footer_add(out, flame, &layout, footer_y);
	text_add_format(out, "<script><![CDATA[\n%s]]></script>\n</svg>\n", flame_script);
}

const char *flame_title(const struct frame_tree *tree)
{
	const int64_t *all;

	if (!tree->count)
		return "Flame graph: no samples";
	all = tree->nodes[0].all;
	if (!all[PART_OFF])
		return "Flame graph: threads on CPU";
	return all[PART_ON] ? "Flame graph: threads on CPU and off CPU"
			    : "Flame graph: threads off CPU";
}

/* Adds the first findings (--findings), a line each. */
static void first_findings_add(struct text *lines, const struct interval *interval)
{
	const struct findings *findings =
		interval->report ? report_state(interval->report, &findings_part) : NULL;

	for (size_t i = 0; findings && i < findings->count && i < FINDINGS_MOST; i++) {
		text_add_format(lines, "\n%zu. ", i + 1);
		interval_add_finding(lines, interval, findings, finding_at(findings, i),
				     FLAME_LINE_COLUMNS - 3);
	}
}

static void flame_add(struct text *out, const struct interval *interval)
{
	struct interval whole = *interval;
	struct text subtitle = {0}, footer = {0};
	struct frame_tree tree = {0};

	whole.width = 0;
	fold_interval(&tree, interval, NULL);
	interval_add_origin(&subtitle, &whole);
	text_add_char(&subtitle, '\n');
	interval_add_scans(&subtitle, &whole);
	if (interval->command) {
		text_add_char(&subtitle, '\n');
		text_add_printable(&subtitle, interval->command);
	}
	first_findings_add(&subtitle, &whole);
	/* the whole footer, in lines as long as fit */
	whole.width = FLAME_LINE_COLUMNS;
	interval_add_absent(&footer, &whole);
	interval_add_missed(&footer, &whole);
	flame_svg_add(out, &(struct flame){
				   .tree = &tree,
				   .title = flame_title(&tree),
				   .subtitle = text_string(&subtitle),
				   .footer = text_string(&footer),
			   });
	frame_tree_done(&tree);
	text_done(&subtitle);
	text_done(&footer);
}

const struct renderer renderer_flame = {
	.name = "flame",
	.kind = RENDERER_STACKS,
	.grouped = true,
	.has_footer = true,
	.whole = "flame graph",
	.chains = true,
	.compares = true,
	.columns = FOLD_ROOTS_DEFAULT,
	.behind = FOLD_COLUMNS,
	.of_findings = &renderer_flame,
	.add = flame_add,
};
