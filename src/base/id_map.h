/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A map from ids to small numbers, for ids that come in runs, as the kernel gives them to threads.
 * Neighbouring ids share a page, which is a cache line: lookups of them in turn need only one
 * search.
 */
#ifndef TSNAP_BASE_ID_MAP_H
#define TSNAP_BASE_ID_MAP_H

#include "base/index.h"

#define ID_PAGE 16u

/* Map of ids. Zeroed is empty and valid. */
struct id_map {
	struct index pages; /* id / ID_PAGE to its page of numbers */
	uint64_t last;	    /* id / ID_PAGE of the page that was found last */
	uint32_t *page;	    /* page that was found last; NULL: none */
};

/* The number of the id; 0: there is none. */
uint32_t id_map_get(struct id_map *map, uint64_t id);
/* Sets the number of the id; 0 removes the id. */
void id_map_set(struct id_map *map, uint64_t id, uint32_t number);
void id_map_clear(struct id_map *map);

#endif
