/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a BPF program at the context switches of this very thread, one of which is a sleep in a
 * known system call: what the program reads of the kernel can then be compared with what this
 * thread knows of itself.
 */
#ifndef TSNAP_KERNEL_OWN_SWITCH_H
#define TSNAP_KERNEL_OWN_SWITCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Arguments 2 to 5 of the nanosleep: it ignores them, but the kernel saves them. */
#define OWN_SWITCH_MARKS 4
extern const uint64_t own_switch_marks[OWN_SWITCH_MARKS];

/* Opens an event of this thread's context switches, disabled: a descriptor or -errno. The opener of
 * the first such event of the host waits until all CPUs know that there are some, 10 ms
 * (account_event() in kernel/events/core.c); if it is opened early and kept, others need not
 * wait. */
int own_switch_event(void);

/* Makes a map for what the program saw at each switch: the program adds a value of that many bytes,
 * under the time (bpf_ktime_get_ns). A descriptor or -errno. */
int own_switch_map(size_t bytes);

/* End of a program for an own_switch (kernel/bpf_call.h): adds the value at an offset of its stack;
 * key: offset of 8 bytes for the time. */
#define OWN_SWITCH_END_(map, key, value)                                            \
	BPF_CALL_(BPF_FUNC_ktime_get_ns), BPF_STORE_(BPF_REG_10, (key), BPF_REG_0), \
		BPF_MAP_(BPF_REG_1, (map)), BPF_STACK_(BPF_REG_2, (key)),           \
		BPF_STACK_(BPF_REG_3, (value)), BPF_SET_(BPF_REG_4, BPF_ANY),       \
		BPF_CALL_(BPF_FUNC_map_update_elem), BPF_SET_(BPF_REG_0, 0), BPF_EXIT_()

/* Bytes of the stack by which a sleep is at least deeper than the one before; the stack pointer is
 * less than that below the frame. */
#define OWN_SWITCH_STEP 1024

struct own_switch {
	int program; /* program of type perf event */
	int map;
	void *value; /* buffer for one value */
	/* True if the value is what the sleep must have left. Other values come as well: this
	 * thread may be preempted, or stopped by a debugger. */
	bool (*fits)(void *of);
	void *of;
	uint64_t top;	  /* frame address of its caller the first time */
	uint64_t frame;	  /* frame address of the function that sleeps: another one each time */
	bool other_user;  /* have an effective user id that is one higher during the sleep */
	const char *what; /* the call that failed */
};

/* Returns how many times this thread has given up its CPU by itself so far. */
long own_switch_voluntary(void);

/* Takes the values out of the map. 1: one fits, and is in *value; 0: none does; -ENOENT: there is
 * none. */
int own_switch_take(struct own_switch *own);

/* Sleeps. 1: a value fits, 0: none did, -ETIME: the program never ran, or another -errno. */
int own_switch_run(struct own_switch *own);

#endif
