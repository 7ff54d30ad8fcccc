/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording_scene.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int scene_open(void **state)
{
	static struct scene scene;

	snprintf(scene.path, sizeof(scene.path), "/tmp/tsnap-unit-recording.XXXXXX");
	if (!mkdtemp(scene.path))
		return -1;
	scene.directory = open(scene.path, O_RDONLY | O_DIRECTORY);
	*state = &scene;
	return 0;
}

int scene_close(void **state)
{
	struct scene *scene = *state;
	char command[100];

	close(scene->directory);
	text_done(&scene->text);
	snprintf(command, sizeof(command), "rm -rf %s", scene->path);
	return system(command);
}
