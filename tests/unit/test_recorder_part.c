/* SPDX-License-Identifier: GPL-2.0-or-later */
/* recording/recorder_part.c: the order in which rows are written to disk */
#include "unit.h"
#include "recording_scene.h"
#include "recording/recorder_part.h"

#include <string.h>
#include <sys/inotify.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_order_of_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
