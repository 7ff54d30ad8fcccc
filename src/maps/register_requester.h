/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sampler's side of bpf_text/registers.bpf.c: the registers that a thread off its CPU saved
 * when it entered the kernel. They stay at the end of its kernel stack until it runs again.
 *
 * They are read when the thread is sampled, by a program that is run for that (5.10); switches
 * keep them only for some milliseconds around a scan, of those that leave or come back
 * meanwhile. Before 5.10 every switch keeps them. What was asked is known by slot until the
 * thread runs (registers_recall()), where all threads are shown.
 */
#ifndef TSNAP_MAPS_REGISTER_REQUESTER_H
#define TSNAP_MAPS_REGISTER_REQUESTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/user_registers.h"
#include "maps/thread_table.h"

struct register_requester {
	int program;		   /* descriptor, not owned; -1: none, switches keep all */
	struct sampling *sampling; /* the two maps */
	struct registers_request *requests;
	int stack_program; /* -1: none */
	struct stack_request *stack_requests;
	uint32_t number;  /* this sampler's, in asks */
	int64_t since_ns; /* time since when switches keep registers */
};

/* program: -1 where switches keep all registers. 0, or -errno where the maps can't be mapped or,
 * -EBUSY, REQUESTERS_MAX samplers are there already. */
int register_requester_init(struct register_requester *requester, int program, int sampling_map,
			    int requests_map);
/* Adds what stack_registers_request() needs; after register_requester_init(), with its maps' kind.
 * 0 or -errno. */
int register_requester_add_stacks(struct register_requester *requester, int program,
				  int requests_map);
void register_requester_done(struct register_requester *requester); /* also of a zeroed one */

/* At least until then (monotonic) switches keep registers, of threads that leave and of those that
 * come back before they were asked for. Returns since when they do, as far as this sampler knows; 0
 * where they always do. */
int64_t registers_want(struct register_requester *requester, int64_t until_ns);
/* Ends that, unless another sampler wants them for longer. until_ns: as it was asked for. */
void registers_want_no_more(struct register_requester *requester, int64_t until_ns);
/* Has switches keep registers from that time on, for REGISTERS_OPEN_NS; 0: no more. For the sampler
 * that owns the probes. */
void registers_want_from(struct register_requester *requester, int64_t from_ns);

/* True if the record has the registers of the thread's last switch out. */
bool registers_there(const struct thread_state *record);

/* True if it has not, and they can be asked for. */
bool registers_lacking(const struct register_requester *requester,
		       const struct thread_state *record);

/* Fills them in where they were asked for before, and the thread has not run since. */
void registers_recall(const struct requested_registers *requested, struct thread_state *record);

/* Fills those registers into the records, REQUESTS_MAX at most, as far as they are there or the
 * thread has not run since its record was copied. A table of slots keeps them for as long as the
 * thread sleeps. */
void registers_fill(struct register_requester *requester, struct thread_table *table,
		    struct thread_state *const *records, uint32_t count);

/* Asks for the registers that walks of those threads' user stacks begin with; REQUESTS_MAX at most.
 */
void stack_registers_request(struct register_requester *requester,
			     const struct thread_state *const *records, uint32_t count);
/* Returns the registers of the record asked for with that index, if the thread has not run since
 * its record was copied; else false. */
bool stack_registers_get(struct register_requester *requester, const struct thread_state *record,
			 uint32_t at, struct user_registers *registers);
/* True if the thread has not run since: what was read of it meanwhile belongs together. */
bool record_still(struct thread_table *table, const struct thread_state *record);

#endif
