/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who was woken or began since the last scan: the reader's side of ts_scan and ts_changed, see
 * bpf_text/thread_state.h.
 */
#ifndef TSNAP_KERNEL_CHANGED_LIST_H
#define TSNAP_KERNEL_CHANGED_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/record.h"

struct changed_reader {
	int scan_map, changed_map;  /* descriptors, not owned */
	uint32_t scan;		    /* the number that writers use */
	int cpus;		    /* possible ones */
	struct changed_list *lists; /* of one half, a row for each CPU */
	uint32_t *taken;	    /* of the half read last, how many tids of each row */
};

/* A reader that holds -1 for a map never has a list. */
void changed_reader_init(struct changed_reader *reader, int scan_map, int changed_map, int cpus);
void changed_reader_done(struct changed_reader *reader);

/* Begins a new scan and calls visit for each tid listed since the one before, some perhaps twice.
 * False: the lists do not tell all (there are none, or one was full), and every thread must be
 * looked at. */
bool changed_reader_take(struct changed_reader *reader, void (*visit)(void *to, uint32_t tid),
			 void *to);

#endif
