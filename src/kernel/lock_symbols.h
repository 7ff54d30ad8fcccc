/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbols of /proc/kallsyms that tell locks: the kernel's static data by exact address
 * (CONFIG_KALLSYMS_ALL, else there are none), that of modules too, and the functions of
 * percpu_rw_semaphore that its sleepers are known by. They are read at the first question, in some
 * 50 ms; what is loaded later is not known. */
#ifndef TSNAP_KERNEL_LOCK_SYMBOLS_H
#define TSNAP_KERNEL_LOCK_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "base/text.h"

/* Zeroed: not read yet. */
struct lock_symbols {
	bool read;
	struct index data;    /* address to the place of its name in names, plus one */
	struct text names;    /* each with a NUL */
	uint64_t wake;	      /* percpu_rwsem_wake_function(): its waiters' entries name it */
	uint64_t write;	      /* percpu_down_write(), */
	uint64_t write_end;   /* and the function after it */
	uint64_t cpu_offsets; /* __per_cpu_offset[]; 0: not known, as all of the above */
};

/* Reads them unless they were read before. path: /proc/kallsyms. */
void lock_symbols_read(struct lock_symbols *symbols, const char *path);
/* The object at that address; NULL: none is known. Valid until lock_symbols_done(). */
const char *lock_symbol_find(const struct lock_symbols *symbols, uint64_t address);
void lock_symbols_done(struct lock_symbols *symbols);

#endif
