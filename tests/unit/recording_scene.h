/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A directory for recordings, which is removed with its test. */
#ifndef TSNAP_UNIT_RECORDING_SCENE_H
#define TSNAP_UNIT_RECORDING_SCENE_H

#include "base/text.h"

#define HEADER "timestamp,weight_us,tid,state,comm"
#define START_US 1763650800000000ll /* 2025-11-20T15:00:00Z */
#define SECOND_US 1000000ll

struct scene {
	char path[64];
	int directory;
	struct text text;
};

/* Setup function for cmocka. */
int scene_open(void **state);
int scene_close(void **state);

#define SCENE_TEST(name) cmocka_unit_test_setup_teardown(name, scene_open, scene_close)

#endif
