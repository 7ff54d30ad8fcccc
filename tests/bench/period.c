/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A task of normal priority that is to run every millisecond: its delay until it is on its CPU.
 *
 * period MILLISECONDS CPU: prints the delay of the median wake-up, and of the 999th of 1000, in
 * nanoseconds. CPU: 0 is the first one that the process may use.
 */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NS_PER_S 1000000000ll
#define PERIOD_NS 1000000ll

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Pins the process. 0, or -1 if there are fewer CPUs. */
static int pin_cpu(long number)
{
	cpu_set_t allowed, one;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return -1;
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed) && number-- == 0)
			CPU_SET(cpu, &one);
	return CPU_COUNT(&one) ? sched_setaffinity(0, sizeof(one), &one) : -1;
}

static int by_size(const void *x, const void *y)
{
	const int64_t *a = x, *b = y;

	return (*a > *b) - (*a < *b);
}

int main(int argc, char **argv)
{
	long count = argc == 3 ? strtol(argv[1], NULL, 10) : 0;
	int64_t *late_ns = count > 0 ? calloc((size_t)count, sizeof(*late_ns)) : NULL;
	int64_t due_ns;

	if (!late_ns || pin_cpu(strtol(argv[2], NULL, 10))) {
		fprintf(stderr, "period MILLISECONDS CPU\n");
		free(late_ns);
		return 1;
	}
	due_ns = now_ns();
	for (long i = 0; i < count; i++) {
		struct timespec due;

		due_ns += PERIOD_NS;
		due = (struct timespec){due_ns / NS_PER_S, due_ns % NS_PER_S};
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
			;
		late_ns[i] = now_ns() - due_ns;
		if (late_ns[i] > PERIOD_NS) /* skips missed periods */
			due_ns += late_ns[i] / PERIOD_NS * PERIOD_NS;
	}
	qsort(late_ns, (size_t)count, sizeof(*late_ns), by_size);
	printf("%lld %lld\n", (long long)late_ns[count / 2],
	       (long long)late_ns[count * 999 / 1000]);
	free(late_ns);
	return 0;
}
