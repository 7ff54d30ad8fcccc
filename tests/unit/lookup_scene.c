/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lookup_scene.h"
#include "base/clock.h"
#include "base/names.h"

#include <string.h>

int scene_init(void **state)
{
	static struct scene scene;

	fake_proc_init(&scene.proc);
	scene.lookup = lookup_new(scene.proc.root);
	scene.hint = (struct lookup_hint){.sequence = 1};
	scene.now_ns = 1000 * NS_PER_SECOND;
	scene.requested = *sample_absent();
	scene.requested.thread.tid = scene.requested.thread.pid = 7;
	scene.requested.thread.start_ns = 1;
	scene.requested.thread.kthread = 0;
	scene.requested.now.state = STATE_SLEEP;
	scene.requested.thread.comm = name_of_string("one");
	*state = &scene;
	return 0;
}

int waits_init(void **state)
{
	int err = scene_init(state);
	struct scene *scene = *state;

	fake_proc_put(&scene->proc, 7, 7, "status", "Name:\tone\nNSpid:\t7\n");
	fake_proc_put(&scene->proc, 7, 8, "comm", "x\n");
	fake_proc_put_process(&scene->proc, 8, "comm", "x\n");
	return err;
}

void call_put(struct scene *scene, long nr, int64_t arg0, int64_t arg1, int64_t arg2)
{
	scene->requested.call.nr = nr;
	memset(scene->requested.call.arg, 0, sizeof(scene->requested.call.arg));
	scene->requested.call.arg[0] = arg0;
	scene->requested.call.arg[1] = arg1;
	scene->requested.call.arg[2] = arg2;
	scene->hint.sequence++;
}

int scene_done(void **state)
{
	struct scene *scene = *state;

	lookup_free(scene->lookup);
	fake_proc_done(&scene->proc);
	return 0;
}
