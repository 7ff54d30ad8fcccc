/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions for targets that draw: properties of an SVG that no frame's name may break. */
#ifndef TSNAP_TESTS_FUZZ_SVG_H
#define TSNAP_TESTS_FUZZ_SVG_H

#include <string.h>

#include "fuzz_file.h"
#include "render/flame_svg.h"

static inline int starts(const char *at, const char *with)
{
	return !strncmp(at, with, strlen(with));
}

static inline int starts_any(const char *at, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (starts(at, words[i]))
			return 1;
	return 0;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Checks that there are only tsnap's own elements, balanced; only escapes of XML; no control
 * characters. */
static inline void svg_check(const char *at)
{
	static const char *const elements[] = {"<?xml ", "<svg ", "<title>", "<style>", "<rect",
					       "<g>",	 "<g ",	  "<text ",  "<script>"};
	static const char *const escapes[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
	long open = 0;

	for (; *at; at++) {
		if (starts(at, "<![CDATA[")) {
			at = strstr(at, "]]>");
			must(at != NULL, "CDATA ends");
		} else if (starts(at, "</")) {
			must(--open >= 0, "nothing ends that did not begin");
		} else if (*at == '<') {
			must(starts_any(at, elements, COUNT(elements)), "elements are our own");
			open += at[1] != '?';
		} else if (starts(at, "/>")) {
			open--;
		} else if (*at == '&') {
			must(starts_any(at, escapes, COUNT(escapes)), "escapes are known");
		} else {
			must((unsigned char)*at >= ' ' || *at == '\n', "no control characters");
		}
	}
	must(open == 0, "what begins ends");
}

static inline void svg_draw(const struct frame_tree *tree, bool differs, const char *words)
{
	struct text out = {0};

	flame_svg_add(&out, &(struct flame){.tree = tree,
					    .differs = differs,
					    .title = "title",
					    .subtitle = words,
					    .footer = words});
	must(strlen(text_string(&out)) == out.length, "text all through");
	svg_check(text_string(&out));
	text_done(&out);
}

#endif
