/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/own_switch.h"
#include "kernel/bpf_call.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

const uint64_t own_switch_marks[OWN_SWITCH_MARKS] = {0x7473006e61700001, 0x7473006e61700002,
						     0x7473006e61700003, 0x7473006e61700004};

#define SWITCHES_MAX 32
#define SLEEP_NS_MIN 20000
#define SLEEP_NS_MAX 50000000
#define SLEEPS_SEEN 3 /* sleeps without a fitting value, then it is given up */

int own_switch_map(size_t bytes)
{
	return bpf_call_map(BPF_MAP_TYPE_HASH, sizeof(uint64_t), bytes, SWITCHES_MAX);
}

long own_switch_voluntary(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nvcsw;
}

/* True if it slept: the time may be over before the thread leaves its CPU. */
static __attribute__((noinline)) bool nanosleep_marked(struct own_switch *own, long ns)
{
	const uint64_t *marks = own_switch_marks;
	struct timespec wait = {0, ns};
	long before = own_switch_voluntary();

	own->frame = (uintptr_t)__builtin_frame_address(0);
	syscall(SYS_nanosleep, &wait, NULL, marks[0], marks[1], marks[2], marks[3]);
	return own_switch_voluntary() > before;
}

/* Sleeps deeper in the stack than the last time, so that a stack pointer which the kernel kept of
 * an earlier entry is not taken for that of this call. */
static bool nanosleep_deeper(struct own_switch *own, long ns)
{
	size_t deeper = own->frame ? own->top - own->frame : 0;
	volatile char *room = __builtin_alloca(deeper + OWN_SWITCH_STEP);
	bool slept;

	*room = 0;
	if (!own->top)
		own->top = (uintptr_t)__builtin_frame_address(0);
	slept = nanosleep_marked(own, ns);
	*room = 1;
	return slept;
}

/* Uses the system call, because the library's setresuid() changes all threads of the process. Of
 * all user ids only the effective one differs then. A change takes away what PR_SET_DUMPABLE and
 * PR_SET_PDEATHSIG of prctl(2) have set. */
static int nanosleep_as_other(struct own_switch *own, long ns, bool *slept)
{
	int dumpable = prctl(PR_GET_DUMPABLE), on_parent_exit = 0;
	uid_t user = geteuid();

	prctl(PR_GET_PDEATHSIG, &on_parent_exit);
	if (syscall(SYS_setresuid, -1, user + 1, -1))
		return -errno;
	syscall(SYS_setfsuid, user);
	*slept = nanosleep_deeper(own, ns);
	if (syscall(SYS_setresuid, -1, user, -1))
		return -errno;
	prctl(PR_SET_PDEATHSIG, on_parent_exit);
	if (dumpable == 1)
		prctl(PR_SET_DUMPABLE, 1);
	return 0;
}

int own_switch_event(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_CONTEXT_SWITCHES,
				       .sample_period = 1,
				       .disabled = 1};

	return perf_call_open(&attr, 0, -1);
}

/* The event lasts as long as the sleep: a debugger's stops later would fill the map. */
static int sleep_once(struct own_switch *own, long ns, bool *slept)
{
	int event = own_switch_event(), result;

	*slept = false;
	own->what = "perf_event_open";
	if (event < 0)
		return event;
	own->what = "running a program at a perf event";
	result = perf_call_run(event, own->program);
	if (!result && own->other_user) {
		own->what = "setresuid";
		result = nanosleep_as_other(own, ns, slept);
	} else if (!result) {
		*slept = nanosleep_deeper(own, ns);
	}
	close(event);
	return result;
}

int own_switch_take(struct own_switch *own)
{
	uint64_t none = 0, key;
	int result = -ENOENT;

	/* a key that is not there gives the first one */
	while (!bpf_get_next_key(own->map, &none, &key)) {
		if (result != 1 && !bpf_lookup_elem(own->map, &key, own->value))
			result = own->fits(own->of);
		if (bpf_delete_elem(own->map, &key))
			break;
	}
	return result;
}

/* A short sleep can end before the switch: sleeps longer and longer until the program has run.
 * Values of a try in which the thread did not sleep mean nothing: on a busy host that may be the
 * thread being preempted, again and again. */
int own_switch_run(struct own_switch *own)
{
	int seen = 0;

	for (long ns = SLEEP_NS_MIN; ns < SLEEP_NS_MAX && seen < SLEEPS_SEEN; ns *= 4) {
		bool slept;
		int result = sleep_once(own, ns, &slept);

		if (!result)
			result = own_switch_take(own);
		if (result != -ENOENT && result)
			return result;
		seen += !result && slept;
	}
	own->what = "a program at this process's own context switch";
	return seen ? 0 : -ETIME;
}
