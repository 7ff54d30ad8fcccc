/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A flame graph as one SVG file that needs nothing else: frames with titles, and a script that
 * zooms, searches and shows details. Without the script it is still a picture.
 */
#ifndef TSNAP_RENDER_FLAME_SVG_H
#define TSNAP_RENDER_FLAME_SVG_H

#include <stdbool.h>

#include "base/text.h"
#include "render/frame_tree.h"

#define FLAME_DRAWN_MAX 20000  /* limit of frames */
#define FLAME_LINE_COLUMNS 170 /* longest subtitle and footer */

struct flame {
	const struct frame_tree *tree; /* sorted */
	bool differs; /* parts are before and after, in any unit; false: us on a CPU and off it */
	const char *title;
	const char *subtitle; /* lines; "" for none */
	const char *footer;   /* lines; "" for none */
};

/* Adds the file. All words are printable; they are escaped here. */
void flame_svg_add(struct text *out, const struct flame *flame);

/* flame.css and flame.js, embedded. */
extern const char flame_style[], flame_script[];

#endif
