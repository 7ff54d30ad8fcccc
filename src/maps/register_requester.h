/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sampler's side of bpf_text/registers.bpf.c: the registers that a thread off its CPU saved
 * when it entered the kernel. They stay at the end of its kernel stack until it runs again.
 *
 * A program that is run for that (5.10) reads them when the thread is sampled; switches keep them
 * only for some milliseconds around a scan, those of threads that leave or come back meanwhile.
 * Before 5.10 every switch keeps them. Where all threads are shown, registers that were read are
 * remembered by slot until the thread runs (thread_table_put_registers()).
 */
#ifndef TSNAP_MAPS_REGISTER_REQUESTER_H
#define TSNAP_MAPS_REGISTER_REQUESTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/user_registers.h"
#include "maps/thread_table.h"

struct register_requester {
	int program;		   /* descriptor, not owned; -1: none, switches keep all */
	struct sampling *sampling; /* mapped ts_sampling */
	struct registers_request *requests;
	int stack_program; /* -1: none */
	struct stack_request *stack_requests;
	uint32_t number;  /* index of this sampler in requests */
	int64_t since_ns; /* time since which switches keep registers */
};

/* program: -1 where switches keep all registers. 0, or -errno: the maps can't be mapped; -EBUSY:
 * there are REQUESTERS_MAX samplers already. */
int register_requester_init(struct register_requester *requester, int program, int sampling_map,
			    int requests_map);
/* Adds what stack_registers_request() needs; after register_requester_init(), with its maps' kind.
 * 0 or -errno. */
int register_requester_add_stacks(struct register_requester *requester, int program,
				  int requests_map);
void register_requester_done(struct register_requester *requester); /* May be called if zeroed */

/* Has switches keep registers until until_ns (monotonic) at least: those of threads that leave, and
 * of threads that come back before theirs were requested. Returns since when switches do that, as
 * far as this sampler knows; 0 where they always do. */
int64_t registers_want(struct register_requester *requester, int64_t until_ns);
/* Ends what registers_want() began, unless another sampler wants registers for longer. until_ns: as
 * it was given there. */
void registers_want_no_more(struct register_requester *requester, int64_t until_ns);
/* Has switches keep registers from from_ns on, for REGISTERS_OPEN_NS; 0: no more. For the sampler
 * that owns the probes. */
void registers_want_from(struct register_requester *requester, int64_t from_ns);

/* True if the record has the registers of the thread's last switch out. */
bool registers_there(const struct thread_state *record);

/* True if the record lacks these registers, and they can be requested. */
bool registers_lacking(const struct register_requester *requester,
		       const struct thread_state *record);

/* Fills the registers of the last switch out into the records, REQUESTS_MAX at most, as far as a
 * switch has kept them or the thread has not run since its record was copied. A table of slots
 * keeps them for as long as the thread sleeps. */
void registers_fill(struct register_requester *requester, struct thread_table *table,
		    struct thread_state *const *records, uint32_t count);

/* Requests the registers that walks of the threads' user stacks begin with; REQUESTS_MAX at
 * most. */
void stack_registers_request(struct register_requester *requester,
			     const struct thread_state *const *records, uint32_t count);
/* Gets the registers of the record that was requested with index at, if the thread has not run
 * since its record was copied; else returns false. */
bool stack_registers_get(struct register_requester *requester, const struct thread_state *record,
			 uint32_t at, struct user_registers *registers);
/* True if the thread has not run since its record was copied: what was read of it meanwhile belongs
 * together. */
bool record_still(struct thread_table *table, const struct thread_state *record);

#endif
