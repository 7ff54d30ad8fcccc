/* SPDX-License-Identifier: GPL-2.0-or-later */
/* recording/recorder_part.c: the order in which rows are written to disk */
#include "unit.h"
#include "recording_scene.h"
#include "recording/part_name.h"
#include "recording/recorder_part.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

static void rows_flush(struct recorder_part *part, struct text *rows)
{
	for (int kind = 0; kind < RECORD_KIND_COUNT; kind++)
		recorder_part_add(part, (enum record_kind)kind, START_US, rows);
	assert_int_equal(recorder_part_flush(part, START_US), 0);
}

/* Rows that others refer to are written first: a machine may go down in between. */
static void test_order_of_kinds(void **state)
{
	static const enum record_kind order[] = {RECORD_HOST, RECORD_STACKS, RECORD_SAMPLES,
						 RECORD_SCANS};
	struct scene *scene = *state;
	struct recorder_part part = {
		.directory = scene->directory, .rights = {getegid(), 0640}, .name.host = "unit"};
	_Alignas(struct inotify_event) char events[4096];
	int notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	const char *at = events;

	for (int kind = 0; kind < RECORD_KIND_COUNT; kind++)
		part.headers[kind] = strdup(HEADER "\n");
	text_add_string(&scene->text, "\"2025-11-20T15:00:00Z\",1000000,100,\"ON\",\"x\"\n");
	assert_int_equal(recorder_part_begin(&part, START_US), 0);
	rows_flush(&part, &scene->text); /* makes the files */
	assert_true(inotify_add_watch(notify, scene->path, IN_MODIFY) >= 0);
	rows_flush(&part, &scene->text);
	assert_true(read(notify, events, sizeof(events)) > 0);
	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
		const struct inotify_event *event = (const void *)at;
		struct part_name name;

		assert_true(part_name_read(event->name, &name));
		assert_int_equal(name.kind, order[i]);
		at += sizeof(*event) + event->len;
	}
	close(notify);
	recorder_part_done(&part);
}

static void file_make(struct scene *scene, const char *name, uid_t user)
{
	int fd = openat(scene->directory, name, O_WRONLY | O_CREAT | O_EXCL, 0640);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "other", 5), 5);
	assert_int_equal(fchown(fd, user, (gid_t)-1), 0);
	close(fd);
}

/* Another user's file with the last number changes nothing; one's own with it makes the hour fail,
 * and no name is ever written that a replay does not know. */
static void test_planted_numbers(void **state)
{
	struct scene *scene = *state;
	struct recorder_part part = {
		.directory = scene->directory, .rights = {getegid(), 0640}, .name.host = "unit"};
	struct part_list list = {0};

	if (geteuid())
		skip();
	part.headers[RECORD_SAMPLES] = strdup(HEADER "\n");
	text_add_string(&scene->text, "\"2025-11-20T15:00:00Z\",1000000,100,\"ON\",\"x\"\n");
	file_make(scene, "unit_20251120T15Z-999999.samples.csv.zst", 4711);
	file_make(scene, "unit_20251120T15Z-001.samples.csv.zst", 4711);
	assert_int_equal(recorder_part_begin(&part, START_US), 0);
	recorder_part_add(&part, RECORD_SAMPLES, START_US, &scene->text);
	assert_int_equal(recorder_part_flush(&part, START_US), 0);
	assert_int_equal(part.name.number, 2);
	/* the next hour */
	file_make(scene, "unit_20251120T16Z-999999.samples.csv.zst", geteuid());
	assert_int_equal(recorder_part_begin(&part, START_US + PART_HOUR_US), 0);
	recorder_part_add(&part, RECORD_SAMPLES, START_US + PART_HOUR_US, &scene->text);
	for (int i = 0; i < 3; i++)
		assert_int_equal(recorder_part_flush(&part, START_US), -EOVERFLOW);
	assert_int_equal(recorder_part_begin(&part, START_US + 2 * PART_HOUR_US), 0);
	assert_int_equal(recorder_part_flush(&part, START_US), 0);
	assert_int_equal(part_list_read(&list, scene->directory), 0);
	assert_int_equal(list.count, 5);
	part_list_done(&list);
	recorder_part_done(&part);
	assert_int_equal(
		faccessat(scene->directory, "unit_20251120T16Z-1000000.samples.csv.zst", F_OK, 0),
		-1);
}

/* Where files were removed the next part begins, with all stacks: rows that were not written yet
 * refer to them. */
static void test_removed_files(void **state)
{
	struct scene *scene = *state;
	struct recorder_part part = {
		.directory = scene->directory, .rights = {getegid(), 0640}, .name.host = "unit"};
	const char *removed[] = {"unit_20251120T15Z-001.samples.csv.zst",
				 "unit_20251120T15Z-001.stacks.csv.zst"};
	struct stat before, after;

	part.headers[RECORD_SAMPLES] = strdup(HEADER "\n");
	part.headers[RECORD_STACKS] = strdup("hash,frames\n");
	text_add_string(&scene->text, "\"2025-11-20T15:00:00Z\",1000000,100,\"ON\",\"x\"\n");
	assert_int_equal(recorder_part_begin(&part, START_US), 0);
	for (int i = 0; i < 2; i++) {
		recorder_part_add(&part, RECORD_STACKS, START_US, &scene->text);
		recorder_part_add(&part, RECORD_SAMPLES, START_US, &scene->text);
		assert_int_equal(recorder_part_flush(&part, START_US), 0);
	}
	assert_int_equal(recorder_part_removed(&part), 0);
	assert_int_equal(part.name.number, 1);
	assert_int_equal(fstatat(scene->directory, removed[1], &before, 0), 0);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(unlinkat(scene->directory, removed[i], 0), 0);
	recorder_part_add(&part, RECORD_SAMPLES, START_US, &scene->text);
	part.fresh = false;
	assert_int_equal(recorder_part_removed(&part), 2);
	assert_true(part.fresh);
	assert_int_equal(recorder_part_flush(&part, START_US), 0);
	assert_int_equal(
		fstatat(scene->directory, "unit_20251120T15Z-002.samples.csv.zst", &after, 0), 0);
	assert_int_equal(
		fstatat(scene->directory, "unit_20251120T15Z-002.stacks.csv.zst", &after, 0), 0);
	assert_int_equal(after.st_size, before.st_size);
	/* once only */
	assert_int_equal(recorder_part_removed(&part), 0);
	assert_int_equal(recorder_part_flush(&part, START_US), 0);
	assert_int_equal(
		fstatat(scene->directory, "unit_20251120T15Z-002.stacks.csv.zst", &after, 0), 0);
	assert_int_equal(after.st_size, before.st_size);
	recorder_part_done(&part);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_order_of_kinds),
		SCENE_TEST(test_planted_numbers),
		SCENE_TEST(test_removed_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
