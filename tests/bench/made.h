/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers and names for made-up samples: the same ones in each run. */
#ifndef MADE_H
#define MADE_H

#include "base/names.h"

#include <stdint.h>
#include <stdio.h>

/* Returns the next pseudo random number below limit. */
static inline unsigned int dice(unsigned int limit)
{
	static uint64_t seed = 1;

	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned int)((seed >> 33) % limit);
}

static inline const char *name(const char *prefix, unsigned int number, const char *suffix)
{
	char text[128];
	int length = snprintf(text, sizeof(text), "%s%u%s", prefix, number, suffix);

	return name_of(text, (size_t)length);
}

#endif
