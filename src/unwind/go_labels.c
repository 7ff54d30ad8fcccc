/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/go_labels.h"

#include <stdlib.h>
#include <string.h>

#define LABELS_MAX 64
#define LABEL_BYTES 256 /* of a key or a value; longer ones are cut */
/* Maps of Go before 1.24 (src/runtime/map.go): groups of 8 pairs. */
#define GROUP_PAIRS 8
#define GROUPS_LOG_MAX 4 /* more are more than LABELS_MAX */
#define PAIR_FILLED 5	 /* minTopHash */
#define GROUPS_CHAINED_MAX 8

struct go_string {
	uint64_t address, bytes;
};

struct label {
	struct go_string key, value;
};

struct go_list {
	uint64_t address, count, capacity;
};

struct go_map {
	uint64_t count;
	uint8_t flags, groups_log;
	uint16_t overflows;
	uint32_t seed;
	uint64_t groups, old_groups;
};

struct go_group {
	uint8_t marks[GROUP_PAIRS];
	struct go_string keys[GROUP_PAIRS], values[GROUP_PAIRS];
	uint64_t next;
};

struct labels {
	struct label labels[LABELS_MAX];
	size_t count;
};

static void label_add(struct labels *labels, struct go_string key, struct go_string value)
{
	if (labels->count < LABELS_MAX)
		labels->labels[labels->count++] = (struct label){key, value};
}

static void list_read(const struct go_labels_source *source, uint64_t address,
		      struct labels *labels)
{
	struct go_list list;

	if (!source->read(source->of, address, &list, sizeof(list)) || !list.count ||
	    list.count > LABELS_MAX || list.count > list.capacity)
		return;
	labels->count = list.count;
	if (!source->read(source->of, list.address, labels->labels,
			  list.count * sizeof(struct label)))
		labels->count = 0;
}

/* Reads a group of pairs, and those that it leads to. */
static bool group_read(const struct go_labels_source *source, uint64_t address,
		       struct labels *labels)
{
	struct go_group group;

	for (int chained = 0; address && chained < GROUPS_CHAINED_MAX; chained++) {
		if (!source->read(source->of, address, &group, sizeof(group)))
			return false;
		for (int i = 0; i < GROUP_PAIRS; i++)
			if (group.marks[i] >= PAIR_FILLED)
				label_add(labels, group.keys[i], group.values[i]);
		address = group.next;
	}
	return !address;
}

static void map_read(const struct go_labels_source *source, uint64_t address, struct labels *labels)
{
	struct go_map map;

	/* groups that have not been moved yet as the map grew: which ones, is not known */
	if (!source->read(source->of, address, &address, sizeof(address)) ||
	    !source->read(source->of, address, &map, sizeof(map)) || !map.count ||
	    map.count > LABELS_MAX || map.groups_log > GROUPS_LOG_MAX || map.old_groups)
		return;
	for (uint64_t i = 0; i < UINT64_C(1) << map.groups_log; i++)
		if (!group_read(source, map.groups + i * sizeof(struct go_group), labels))
			break;
	if (labels->count != map.count)
		labels->count = 0;
}

/* False: it can't be read. */
static bool string_add(const struct go_labels_source *source, struct go_string string,
		       struct text *text)
{
	char bytes[LABEL_BYTES];
	size_t count = string.bytes < sizeof(bytes) ? string.bytes : sizeof(bytes);

	if (count && !source->read(source->of, string.address, bytes, count))
		return false;
	/* cut before a character */
	while (count && count < string.bytes && ((unsigned char)bytes[count - 1] & 0xc0) == 0x80)
		count--;
	if (count && count < string.bytes)
		count--;
	text_add(text, bytes, strnlen(bytes, count));
	return true;
}

static int text_compare(const void *one, const void *other)
{
	return strcmp(*(const char *const *)one, *(const char *const *)other);
}

bool go_labels_add(const struct go_labels_source *source, uint64_t address, struct text *text)
{
	struct labels labels = {.count = 0};
	struct text words = {0}; /* a text with its NUL for each label */
	size_t at[LABELS_MAX];
	const char *texts[LABELS_MAX];
	bool done = true;

	if (source->listed)
		list_read(source, address, &labels);
	else
		map_read(source, address, &labels);
	for (size_t i = 0; i < labels.count && done; i++) {
		at[i] = words.length;
		done = string_add(source, labels.labels[i].key, &words);
		text_add_char(&words, '=');
		done = done && string_add(source, labels.labels[i].value, &words);
		text_add(&words, "", 1);
	}
	for (size_t i = 0; i < labels.count && done; i++)
		texts[i] = words.bytes + at[i];
	if (done && labels.count)
		qsort(texts, labels.count, sizeof(texts[0]), text_compare);
	for (size_t i = 0; i < labels.count && done; i++) {
		text_add_string(text, i ? ", " : "");
		text_add_string(text, texts[i]);
	}
	text_done(&words);
	return done && labels.count;
}
