/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/programs_wait.h"
#include "base/memory.h"
#include "base/thread.h"

#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RUN_NS 50000000l /* a program that has begun has long ended by then */

struct programs_wait {
	pthread_t thread;
	bool over;
};

void programs_wait(void)
{
	const struct timespec time = {.tv_nsec = RUN_NS};

	if (syscall(SYS_membarrier, MEMBARRIER_CMD_SHARED, 0)) /* name of GLOBAL until 4.15 */
		nanosleep(&time, NULL);
}

static void *wait_thread(void *of)
{
	struct programs_wait *wait = of;

	programs_wait();
	__atomic_store_n(&wait->over, true, __ATOMIC_RELEASE);
	return NULL;
}

struct programs_wait *programs_wait_start(void)
{
	struct programs_wait *wait = memory_get(sizeof(*wait));

	if (!thread_begin(&wait->thread, wait_thread, wait))
		return wait;
	free(wait);
	return NULL;
}

bool programs_wait_over(const struct programs_wait *wait)
{
	return __atomic_load_n(&wait->over, __ATOMIC_ACQUIRE);
}

void programs_wait_end(struct programs_wait *wait)
{
	if (wait)
		pthread_join(wait->thread, NULL);
	else
		programs_wait();
	free(wait);
}
