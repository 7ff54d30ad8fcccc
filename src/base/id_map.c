/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/id_map.h"
#include "base/memory.h"

#include <stdlib.h>

/* The id's page, or NULL. */
static uint32_t *page_find(struct id_map *map, uint64_t id)
{
	uint64_t *page;

	if (map->page && map->last == id / ID_PAGE)
		return map->page;
	page = index_find(&map->pages, id / ID_PAGE);
	if (!page)
		return NULL;
	map->last = id / ID_PAGE;
	map->page = (uint32_t *)(uintptr_t)*page;
	return map->page;
}

uint32_t id_map_get(struct id_map *map, uint64_t id)
{
	uint32_t *page = page_find(map, id);

	return page ? page[id % ID_PAGE] : 0;
}

static uint32_t *page_make(struct id_map *map, uint64_t id)
{
	map->page = memory_get(ID_PAGE * sizeof(*map->page));
	map->last = id / ID_PAGE;
	*index_put(&map->pages, map->last, NULL) = (uintptr_t)map->page;
	return map->page;
}

static void page_drop_empty(struct id_map *map, uint32_t *page, uint64_t id)
{
	for (size_t i = 0; i < ID_PAGE; i++)
		if (page[i])
			return;
	index_remove(&map->pages, id / ID_PAGE);
	free(page);
	map->page = NULL;
}

void id_map_set(struct id_map *map, uint64_t id, uint32_t number)
{
	uint32_t *page = page_find(map, id);

	if (!page && number)
		page = page_make(map, id);
	if (!page)
		return;
	page[id % ID_PAGE] = number;
	if (!number)
		page_drop_empty(map, page, id);
}

void id_map_clear(struct id_map *map)
{
	uint64_t key, page;

	for (size_t at = 0; index_next(&map->pages, &at, &key, &page);)
		free((void *)(uintptr_t)page);
	index_clear(&map->pages);
	*map = (struct id_map){0};
}
