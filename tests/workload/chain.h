/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chains of threads that wait for each other, which the workload `chain` can make. */
#ifndef CHAIN_H
#define CHAIN_H

#include "wait.h"

#define NAP_NS (20 * NS_PER_MS)

struct chain_row {
	const char *name;
	void (*prepare)(void);
};

/* Rows of chains, ended by a row without a name. */
extern const struct chain_row lock_chains[], kernel_chains[], namespace_chains[];

/* Adds to `victims` and `pids` of the ready line. */
void victim_add(pid_t tid, pid_t blocker, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void pid_add(pid_t pid);

/* A process that works on two descriptors; it has no others. */
struct part {
	const char *name;
	void (*run)(const struct part *part);
	int in, out;
};

pid_t part_start(const struct part *part);

/* Parts of a request: a client of `out`, a proxy of `in` for `out`, and a server that takes a while
 * on `in`. */
void part_request(const struct part *part);
void part_forward(const struct part *part);
void part_answer(const struct part *part);

/* Makes the path of a file of this process; files in locked_path are removed at the end. */
void lock_file(const char *name, char path[256]);
extern char locked_path[2][256];

#endif
