/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Labels of goroutines in this process' own memory, as versions of Go have them. */
#include "unit.h"

#include "unwind/go_labels.h"

#define SMALLEST 4096 /* addresses below can't be read */

struct string {
	const char *bytes;
	uint64_t count;
};

struct pair {
	struct string key, value;
};

struct list {
	const void *pairs;
	uint64_t count, capacity;
};

struct group {
	uint8_t marks[8];
	struct string keys[8], values[8];
	const struct group *next;
};

struct map {
	uint64_t count;
	uint8_t flags, groups_log;
	uint16_t overflows;
	uint32_t seed;
	const void *groups, *old_groups;
};

#define STRING(text)                   \
	{                              \
		text, sizeof(text) - 1 \
	}

static bool memory_read(void *of, uint64_t address, void *to, size_t bytes)
{
	if (address < SMALLEST)
		return false;
	memcpy(to, (const void *)(uintptr_t)address, bytes);
	return true;
}

/* The labels in words; NULL: there are none. */
static const char *labels(bool listed, const void *at)
{
	static struct text text;
	const struct go_labels_source source = {.listed = listed, .read = memory_read};

	text_clear(&text);
	return go_labels_add(&source, (uintptr_t)at, &text) ? text_string(&text) : NULL;
}

static void lists(void **state)
{
	static char large[300];
	const struct pair pairs[] = {{STRING("b"), STRING("2, x")},
				     {STRING("a"), STRING("größe")},
				     {STRING("empty"), {NULL, 0}}};
	struct pair cut = {STRING("k"), {large, sizeof(large)}};
	struct list list = {pairs, 3, 3};

	assert_string_equal(labels(true, &list), "a=größe, b=2, x, empty=");
	list.count = 1;
	assert_string_equal(labels(true, &list), "b=2, x");
	list.count = 4; /* more than there is room for; none; too many; nothing there */
	assert_null(labels(true, &list));
	list.count = 0;
	assert_null(labels(true, &list));
	list = (struct list){pairs, 65, 65};
	assert_null(labels(true, &list));
	list = (struct list){(const void *)8, 1, 1};
	assert_null(labels(true, &list));
	assert_null(labels(true, NULL));
	/* a value is cut before a character */
	memset(large, 'x', sizeof(large));
	memcpy(large + 255, "\xc3\xb6", 2);
	list = (struct list){&cut, 1, 1};
	assert_int_equal(strlen(labels(true, &list)), strlen("k=") + 255);
	cut.value.bytes = (const char *)8;
	assert_null(labels(true, &list));
}

static void maps(void **state)
{
	struct group groups[2] = {{.marks = {0, 200, 5, 1}}, {.marks = {77}}},
		     behind = {.marks = {0, 0, 9}};
	struct map map = {.count = 4, .groups_log = 1, .groups = groups};
	const void *variable = &map;

	groups[0].keys[1] = (struct string)STRING("b");
	groups[0].values[1] = (struct string)STRING("2");
	groups[0].keys[2] = (struct string)STRING("c");
	groups[0].values[2] = (struct string)STRING("3");
	groups[0].next = &behind;
	behind.keys[2] = (struct string)STRING("a");
	behind.values[2] = (struct string)STRING("1");
	groups[1].keys[0] = (struct string)STRING("d");
	groups[1].values[0] = (struct string)STRING("4");
	assert_string_equal(labels(false, &variable), "a=1, b=2, c=3, d=4");
	map.count = 3; /* other pairs than it says; some not moved yet; a loop; too large */
	assert_null(labels(false, &variable));
	map.count = 4;
	map.old_groups = groups;
	assert_null(labels(false, &variable));
	map.old_groups = NULL;
	behind.next = &behind;
	assert_null(labels(false, &variable));
	behind.next = NULL;
	map.groups_log = 60;
	assert_null(labels(false, &variable));
	variable = NULL;
	assert_null(labels(false, &variable));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists),
		cmocka_unit_test(maps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
