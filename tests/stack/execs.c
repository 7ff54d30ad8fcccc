/* SPDX-License-Identifier: GPL-2.0-or-later */
/* execs OTHER OWN MS: sleeps MS, then becomes the program OTHER, which becomes this one in turn,
 * for ever. Its two builds have different functions, and different code, at the same addresses. */
#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "chains.h"

#ifdef TWO
LINK static void two_inner(int ms)
{
	char room[300];

	__asm__ volatile("" ::"r"(room) : "memory");
	poll(NULL, 0, ms);
	LINK_END();
}

LINK static void two(int ms)
{
	two_inner(ms);
	LINK_END();
}

#define SLEEP two
#else
LINK static void one(int ms)
{
	struct timespec time = {0, ms * 1000000L};

	nanosleep(&time, NULL);
	LINK_END();
}

#define SLEEP one
#endif

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	SLEEP(atoi(argv[3]));
	execl(argv[1], "execs", argv[2], argv[1], argv[3], (char *)NULL);
	return 1;
}
