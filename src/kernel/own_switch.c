/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/own_switch.h"
#include "kernel/bpf_call.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

const uint64_t own_switch_marks[OWN_SWITCH_MARKS] = {0x7473006e61700001, 0x7473006e61700002,
						     0x7473006e61700003, 0x7473006e61700004};

#define SLEEP_NS_MIN 20000
#define SLEEP_NS_MAX 50000000

static void nanosleep_marked(long ns)
{
	const uint64_t *marks = own_switch_marks;
	struct timespec wait = {0, ns};

	syscall(SYS_nanosleep, &wait, NULL, marks[0], marks[1], marks[2], marks[3]);
}

/* The system call, because the library's changes all threads of the process. A change takes away
 * what prctl(2) tells with PR_SET_DUMPABLE and PR_SET_PDEATHSIG. */
static int nanosleep_as_other(long ns)
{
	int dumpable = prctl(PR_GET_DUMPABLE), on_death = 0;
	uid_t own = geteuid();

	prctl(PR_GET_PDEATHSIG, &on_death);
	if (syscall(SYS_setresuid, -1, own + 1, -1))
		return -errno;
	nanosleep_marked(ns);
	if (syscall(SYS_setresuid, -1, own, -1))
		return -errno;
	prctl(PR_SET_PDEATHSIG, on_death);
	if (dumpable == 1)
		prctl(PR_SET_DUMPABLE, 1);
	return 0;
}

/* A short sleep can end before the switch: sleeps longer and longer until the program has run. */
static int switch_wait(int map, void *value, size_t bytes, bool other_user, const char **what)
{
	uint32_t key = 0;

	for (long ns = SLEEP_NS_MIN; ns < SLEEP_NS_MAX; ns *= 4) {
		uint64_t ran;
		int failed;

		memset(value, 0, bytes);
		*what = "setresuid";
		bpf_update_elem(map, &key, value, BPF_ANY);
		failed = other_user ? nanosleep_as_other(ns) : 0;
		if (failed)
			return failed;
		if (!other_user)
			nanosleep_marked(ns);
		*what = "bpf(BPF_MAP_LOOKUP_ELEM)";
		if (bpf_lookup_elem(map, &key, value))
			return -errno;
		memcpy(&ran, value, sizeof(ran));
		if (ran)
			return 0;
	}
	*what = "a program at this process's own context switch";
	return -ETIME;
}

int own_switch_run(int program, int map, void *value, size_t bytes, bool other_user,
		   const char **what)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_CONTEXT_SWITCHES,
				       .sample_period = 1,
				       .disabled = 1};
	int event = perf_call_open(&attr, 0, -1), result;

	*what = "perf_event_open";
	if (event < 0)
		return event;
	*what = "running a program at a perf event";
	result = perf_call_run(event, program);
	if (!result)
		result = switch_wait(map, value, bytes, other_user, what);
	close(event);
	return result;
}
