/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sleeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void *sleeper_run(void *of)
{
	struct sleeper *sleeper = of;
	char byte;

	/* the plain call changes this thread only, that of libc all threads */
	if (sleeper->euid != (uid_t)-1 && syscall(SYS_setresuid, -1, sleeper->euid, -1))
		abort();
	sleeper->tid = syscall(SYS_gettid);
	if (read(sleeper->ends[0], &byte, 1) < 0)
		abort();
	return NULL;
}

static int is_asleep(const struct sleeper *sleeper)
{
	char path[64], line[256], state = 0;
	FILE *file;

	if (!sleeper->tid)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)sleeper->tid);
	file = fopen(path, "r");
	if (!file)
		return 0;
	if (!fgets(line, sizeof(line), file) || sscanf(line, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(file);
	return state == 'S';
}

void sleeper_start(struct sleeper *sleeper, uid_t euid)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	sleeper->euid = euid;
	sleeper->tid = 0;
	if (pipe(sleeper->ends) || pthread_create(&sleeper->thread, NULL, sleeper_run, sleeper))
		abort();
	for (int tries = 0; !is_asleep(sleeper); tries++) {
		if (tries == 10000)
			abort();
		nanosleep(&pause, NULL);
	}
	/* asleep twice, a moment apart: in read, and not before it */
	nanosleep(&pause, NULL);
	if (!is_asleep(sleeper))
		abort();
}

void sleeper_stop(struct sleeper *sleeper)
{
	close(sleeper->ends[1]);
	pthread_join(sleeper->thread, NULL);
	close(sleeper->ends[0]);
}

bool sleeper_is_emulated(void)
{
	return getenv("TSNAP_TEST_EMULATED") != NULL;
}
