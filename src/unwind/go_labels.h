/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Labels of a goroutine, as runtime/pprof makes them (its labelMap): a list of pairs since Go 1.24,
 * a map of strings before (src/runtime/map.go). Neither is changed after it was made. Everything in
 * them may be a lie: all that is read has a limit. */
#ifndef TSNAP_UNWIND_GO_LABELS_H
#define TSNAP_UNWIND_GO_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct go_labels_source {
	bool listed; /* they are a list */
	/* Reads exactly that many bytes of the process' memory. */
	bool (*read)(void *of, uint64_t address, void *to, size_t bytes);
	void *of;
};

/* Adds the labels at that address, in the order of their keys: "a=1, b=2". Keys and values of more
 * than 256 bytes are cut. False: there are none, or more than 64, or they can't be read; then
 * nothing is added. */
bool go_labels_add(const struct go_labels_source *source, uint64_t address, struct text *text);

#endif
