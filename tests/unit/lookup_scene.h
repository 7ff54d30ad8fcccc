/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A sleeping thread that lookups read, in a proc tree of its own. */
#ifndef TSNAP_TESTS_LOOKUP_SCENE_H
#define TSNAP_TESTS_LOOKUP_SCENE_H

#include "fake_proc.h"
#include "live/resolve/lookup.h"

struct scene {
	struct fake_proc proc;
	struct lookup *lookup;
	struct sample requested; /* thread 7 of process 7, called one */
	struct lookup_hint hint;
	int64_t now_ns;
};

int scene_init(void **state);
/* Does what scene_init() does; thread 8 is another one of its process, called x. */
int waits_init(void **state);
int scene_done(void **state);

/* Begins this system call of the thread, a new one each time. */
void call_put(struct scene *scene, long nr, int64_t arg0, int64_t arg1, int64_t arg2);

#define PAGE 0x400000ul /* page of the thread's memory */
#define TICK_NS (50 * 1000000ll)

#define scene_test(test) cmocka_unit_test_setup_teardown(test, scene_init, scene_done)
#define waits_test(test) cmocka_unit_test_setup_teardown(test, waits_init, scene_done)

#endif
