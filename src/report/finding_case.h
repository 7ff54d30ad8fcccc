/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What findings are made of: samples with the same facts; and the conditions by which rows of
 * findings take them, the keys by which a row's findings differ, and the things that they are
 * about.
 */
#ifndef TSNAP_REPORT_FINDING_CASE_H
#define TSNAP_REPORT_FINDING_CASE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/index.h"
#include "sample/edge_kind.h"
#include "sample/sample.h"

/* Samples with the same facts, and their time. With a root, the facts are those of the root, the
 * last thread of the chain; else of the thread itself. */
struct finding_case {
	const struct sample *sample;
	int64_t samples, weight_us;
	bool rooted;
	enum edge_kind link;	 /* between the root and the thread before it */
	enum edge_kind end;	 /* between the last thread and thing */
	const char *thing;	 /* device, control group or thread that the chain ends at */
	struct sample_root root; /* of a sample without a chain: its own thread */
};

struct finding_case finding_case_of(const struct sample *sample, int64_t samples,
				    int64_t weight_us);
/* The kind whose name ends (at_end) or begins the text of a chain; EDGE_NONE: none. */
enum edge_kind edge_kind_beside(const char *text, size_t length, bool at_end);
/* True if the edges call it certain who or what is waited for. */
bool finding_case_is_certain(const struct finding_case *of);

typedef bool finding_takes(const struct finding_case *of);
finding_takes takes_deadlock, takes_cycle, takes_stopped, takes_lost_lock, takes_quota,
	takes_budget, takes_lock, takes_memory, takes_disk, takes_unready, takes_file,
	takes_sleeper, takes_cpus, takes_busy_thread, takes_server, takes_kernel, takes_none;

typedef uint64_t finding_key(const struct finding_case *of);
finding_key key_one, key_pid, key_tid, key_end, key_device, key_waits_on, key_lock, key_unready,
	key_server;

/* NULL: there is none. Texts are valid until the next call. */
typedef const char *finding_thing(const struct finding_case *of);
finding_thing thing_neighbour, device_of, thing_end, thing_waits_on, thing_lock, thing_unready,
	thing_server, thing_call;

static inline bool is_text(const char *text, const char *word)
{
	return text && word && !strcmp(text, word);
}

static inline uint64_t text_key(const char *text)
{
	return text ? hash_bytes(text, strlen(text)) : 0;
}

#endif
