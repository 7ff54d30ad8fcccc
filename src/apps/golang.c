/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "apps/golang.h"
#include "apps/app_program.h"
#include "base/names.h"
#include "base/text.h"
#include "unwind/file_request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NUMBER 0 /* by which the parser knows the file, until it forgets it */
#define LISTS_SINCE 24
#define MAPS_SINCE 13

/* struct g, the same since Go 1.13 as far as the address of itself, which is after 1.24, too, at
 * one of two places: sched has lost a member behind it. */
#define G_BYTES 80
#define G_STACK_LOW 0
#define G_STACK_HIGH 1 /* in words, as the others */
#define G_M 6
#define G_SELF 9
/* struct m: curg is near this word, behind the thread's copy of its storage */
#define M_G0 0
#define M_CURRENT_FIRST 20
#define M_CURRENT_LAST 27
#define M_WORDS (M_CURRENT_LAST + 1)

#define LABELS_MAX 64
#define LABEL_BYTES 256 /* of a key or a value; longer ones are cut */
#define STACK_BYTES_MAX (UINT64_C(1) << 30)

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

struct known_file {
	struct cache_entry entry; /* key: hash of device and inode */
	uint64_t device, inode;
	struct timespec changed;
	struct golang golang;
};

void golang_init(struct cache *files)
{
	*files = (struct cache){.entry_bytes = sizeof(struct known_file),
				.entries_max = GOLANG_FILES_MAX};
}

/* Returns the minor version of "go1.19.8"; 0: it is none that is known. */
static unsigned int version_minor(const char *version)
{
	unsigned int minor;
	char after = '.';

	return sscanf(version, "go1.%2u%c", &minor, &after) >= 1 && strchr(". -rb", after) ? minor
											   : 0;
}

/* False: it is not known now. */
static bool file_read(struct golang *golang, struct parser *parser, struct elf_file *elf)
{
	struct file_go_answer answer;
	unsigned int minor;
	int err = file_head_request(parser, elf);

	*golang = (struct golang){.labelled = false};
	if (!err)
		err = file_go_request(parser, FILE_NUMBER, elf, &answer);
	if (err)
		return err == -ENOEXEC;
	file_drop(parser, FILE_NUMBER);
	minor = version_minor(answer.program.version);
	golang->labelled = answer.is_go && answer.program.labels_at && minor >= MAPS_SINCE;
	golang->lists = minor >= LISTS_SINCE;
	golang->g_at = answer.program.g_at;
	golang->labels_at = answer.program.labels_at;
	return true;
}

const struct golang *golang_find(struct app_reader *reader, const struct app_modules *modules,
				 struct cache *files)
{
	struct elf_file elf = {.fd = -1};
	struct known_file *known;
	struct stat stat;
	bool added;

	if (modules->program == SIZE_MAX)
		return NULL;
	elf.fd = app_file_open(reader, &modules->files[modules->program]);
	if (elf.fd < 0 || fstat(elf.fd, &stat)) {
		if (elf.fd >= 0)
			close(elf.fd);
		return NULL;
	}
	known = cache_get(files, hash_u64(hash_u64((uint64_t)stat.st_dev) ^ (uint64_t)stat.st_ino),
			  reader->now_ns, &added);
	if (known->device != (uint64_t)stat.st_dev || known->inode != (uint64_t)stat.st_ino ||
	    memcmp(&known->changed, &stat.st_mtim, sizeof(stat.st_mtim)) != 0) {
		elf.bytes = (uint64_t)stat.st_size;
		known->device = (uint64_t)stat.st_dev;
		known->inode = file_read(&known->golang, app_parser(reader), &elf)
				       ? (uint64_t)stat.st_ino
				       : 0;
		known->changed = stat.st_mtim;
	}
	close(elf.fd);
	return known->golang.labelled ? &known->golang : NULL;
}

/* Reads the first words of a g. False: there is none. */
static bool g_read(struct app_reader *reader, uint64_t address,
		   uint64_t words[G_BYTES / sizeof(uint64_t)])
{
	return address && address % sizeof(uint64_t) == 0 &&
	       app_read(reader, address, words, G_BYTES) && words[G_SELF] == address &&
	       words[G_M] && words[G_STACK_LOW] < words[G_STACK_HIGH] &&
	       words[G_STACK_HIGH] - words[G_STACK_LOW] <= STACK_BYTES_MAX;
}

/* Finds the goroutine that a thread runs; 0: none, or it was not found. */
static uint64_t g_find(struct app_reader *reader, const struct golang *golang, uint64_t pointer)
{
	uint64_t g, own[G_BYTES / sizeof(g)], other[G_BYTES / sizeof(g)], m[M_WORDS];

	if (!pointer || !app_read(reader, pointer + (uint64_t)golang->g_at, &g, sizeof(g)) ||
	    !g_read(reader, g, own) || !app_read(reader, own[G_M], m, sizeof(m)))
		return 0;
	if (m[M_G0] != g)
		return g;
	for (int i = M_CURRENT_FIRST; i <= M_CURRENT_LAST; i++)
		if (m[i] != g && g_read(reader, m[i], other) && other[G_M] == own[G_M])
			return m[i];
	return 0;
}

static void label_add(struct labels *labels, struct go_string key, struct go_string value)
{
	if (labels->count < LABELS_MAX)
		labels->labels[labels->count++] = (struct label){key, value};
}

static void list_read(struct app_reader *reader, uint64_t address, struct labels *labels)
{
	struct go_list list;

	if (!app_read(reader, address, &list, sizeof(list)) || !list.count ||
	    list.count > LABELS_MAX || list.count > list.capacity)
		return;
	labels->count = list.count;
	if (!app_read(reader, list.address, labels->labels, list.count * sizeof(struct label)))
		labels->count = 0;
}

/* Reads a group of pairs, and those that it leads to. */
static bool group_read(struct app_reader *reader, uint64_t address, struct labels *labels)
{
	struct go_group group;

	for (int chained = 0; address && chained < GROUPS_CHAINED_MAX; chained++) {
		if (!app_read(reader, address, &group, sizeof(group)))
			return false;
		for (int i = 0; i < GROUP_PAIRS; i++)
			if (group.marks[i] >= PAIR_FILLED)
				label_add(labels, group.keys[i], group.values[i]);
		address = group.next;
	}
	return !address;
}

static void map_read(struct app_reader *reader, uint64_t address, struct labels *labels)
{
	struct go_map map;

	/* groups that have not been moved yet as the map grew: which ones, is not known */
	if (!app_read(reader, address, &address, sizeof(address)) ||
	    !app_read(reader, address, &map, sizeof(map)) || !map.count || map.count > LABELS_MAX ||
	    map.groups_log > GROUPS_LOG_MAX || map.old_groups)
		return;
	for (uint64_t i = 0; i < UINT64_C(1) << map.groups_log; i++)
		if (!group_read(reader, map.groups + i * sizeof(struct go_group), labels))
			break;
	if (labels->count != map.count)
		labels->count = 0;
}

/* False: it can't be read. */
static bool string_add(struct app_reader *reader, struct go_string string, struct text *text)
{
	char bytes[LABEL_BYTES];
	size_t count = string.bytes < sizeof(bytes) ? string.bytes : sizeof(bytes);

	if (count && !app_read(reader, string.address, bytes, count))
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

/* Joins the labels in the order of their texts. NULL: one of them can't be read. */
static const char *labels_join(struct app_reader *reader, const struct labels *labels)
{
	static struct text text;
	const char *texts[LABELS_MAX];

	for (size_t i = 0; i < labels->count; i++) {
		text_clear(&text);
		if (!string_add(reader, labels->labels[i].key, &text))
			return NULL;
		text_add_char(&text, '=');
		if (!string_add(reader, labels->labels[i].value, &text))
			return NULL;
		texts[i] = name_transient(text.bytes, text.length);
	}
	qsort(texts, labels->count, sizeof(texts[0]), text_compare);
	text_clear(&text);
	for (size_t i = 0; i < labels->count; i++) {
		text_add_string(&text, i ? ", " : "");
		text_add_string(&text, texts[i]);
	}
	return text.length ? name_transient(text.bytes, text.length) : NULL;
}

const char *golang_labels(struct app_reader *reader, const struct golang *golang, uint64_t pointer)
{
	uint64_t g = g_find(reader, golang, pointer), address;
	struct labels labels = {.count = 0};

	if (!g || !app_read(reader, g + golang->labels_at, &address, sizeof(address)) || !address)
		return NULL;
	if (golang->lists)
		list_read(reader, address, &labels);
	else
		map_read(reader, address, &labels);
	return labels.count ? labels_join(reader, &labels) : NULL;
}
