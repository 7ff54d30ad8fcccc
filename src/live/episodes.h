/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Wait episodes: what is known of the sleep that a thread is in, from the switch that began it to
 * the next one. Scans keep an episode for each sleeper whose sample they want: of all threads
 * where idle ones are wanted, else of those that work.
 *
 * A record stands still while its thread sleeps, so a scan copies it once, and an episode goes on
 * until a capture has the record again, or its key as one that is gone. An episode may keep the
 * sample that was made of it, too, which then stands for later scans without a lookup, as long as
 * lookups would find the same. What others may change meanwhile (holders, peers) is read again
 * after a second or two of the wait, or up to eight (wait_episode_until()). If that gives the wait
 * another class, and after some seconds in any case, all of the sample is looked up again; users
 * and cgroups are read less often (LOOKUP_STILL_NS). No sample is kept of a wait of which a later
 * scan knows more, or where something is read anew for each sample.
 *
 * Where samples are only summed up (struct source, sums_up), most scans leave such waits out:
 * they read neither the record nor the sample, and the next sample of the episode has their
 * weight, too. A chain is followed again when one of its threads was switched. Unless all of its
 * edges are firm (waits/chain.h), others may come to stand between them meanwhile, so that it is
 * also followed again in each scan for the first half second of a wait, and then after a fifth of
 * its length at most.
 *
 * Without -a a scan must find out whether a sleeper works. An episode is judged once: in the scan
 * in which it is listed as new. Threads that slept before, or that no list has reported, are judged
 * in turn, some in each scan.
 */
#ifndef TSNAP_LIVE_EPISODES_H
#define TSNAP_LIVE_EPISODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "live/chains/live_chains.h"
#include "live/sampler/live_capture.h"
#include "sample/sample.h"
#include "sample/source.h"

#define EPISODE_LOOKS 4
#define EPISODES_AHEAD 6

struct live_context;
struct lookup_hint;

struct episode {
	/* what a scan reads of an episode that it leaves out */
	int64_t until_ns;    /* the kept sample holds until then */
	int64_t wanted_ns;   /* time of the last scan that wanted the episode, or left it out */
	int64_t left_out_us; /* weights of scans that left it out, since one had its sample */
	uint32_t left_out_count;
	bool may_be_left_out; /* its sample was handed over, and all of its chain is known */
	struct chain_sleepers sleepers;
	struct captured copy;
	/* The sample as it was looked up, and, where scans may leave it out, as it was handed over;
	 * NULL: none is kept. */
	struct sample *samples;
	int64_t filled_ns; /* time of the last whole lookup */
};

/* Zeroed is empty. */
struct episodes {
	const struct source *source; /* whose owner sums samples up or not; NULL: it does not */
	/* in no order: when one ends, the last one takes its place */
	struct episode **all;
	size_t count, capacity, samples_count;
	struct id_map at; /* key of the record to index in all, plus one */
	/* the present scan */
	uint32_t round;			  /* of walks */
	int64_t looked_ns[EPISODE_LOOKS]; /* last scan that had waits of each length */
	int64_t left_out_us; /* waits that have lasted so long are left out; INT64_MAX: none are */
	struct index changed_keys, changed_pids; /* records and processes that may have changed */
	/* sleepers that were judged, or wait for their turn */
	uint32_t *judged; /* sequence of each key's episode, plus one; 0: none */
	size_t judged_count;
	struct index judged_far; /* numbers as in judged, for keys beyond 32 bits */
	uint64_t *turn;		 /* keys that wait for their turn: a ring */
	size_t turn_first, turn_count;
};

/* Begins a scan, whose capture is context->now.capture: ends the episodes that it shows to be over,
 * and begins those of all captured sleepers where idle threads are wanted. round: of walks over all
 * records. */
void episodes_begin_scan(struct episodes *episodes, struct live_context *context, uint32_t round);
/* Ends the episodes that this scan did not want, unless all are wanted; and if the round has ended,
 * those that its walk did not meet: they went without notice. Call when no sample of the scan is
 * pending. */
void episodes_end_scan(struct episodes *episodes, const struct live_context *context,
		       bool round_ended);

/* The episode of a record's key; NULL: there is none. Valid until the scan ends, or the episode. */
struct episode *episodes_find(struct episodes *episodes, uint32_t key);
/* Has the next scans look at a sleeper: its episode begins if there is none. NULL: the thread may
 * have been woken since, or has no record in the kernel's map. */
struct episode *episodes_want(struct episodes *episodes, struct live_context *context,
			      const struct thread_state *record);
void episodes_end(struct episodes *episodes, uint32_t key);
/* True if a record that a walk meets has an episode. *later: it was switched since, so that the
 * next capture must have it. */
bool episodes_met(struct episodes *episodes, const struct thread_state *record, uint32_t key,
		  bool *later);

/* Prefetches the episode that is EPISODES_AHEAD before this one, so that it is in the cache when it
 * is visited. Call before each one is visited, in falling order. */
static inline void episodes_prefetch(const struct episodes *episodes, size_t at)
{
	const char *from;

	if (at < EPISODES_AHEAD)
		return;
	from = (const char *)episodes->all[at - EPISODES_AHEAD];
	for (size_t byte = 0; byte < sizeof(struct episode); byte += 64)
		__builtin_prefetch(from + byte);
}

/* True if this scan leaves out some episodes. */
static inline bool episodes_leave_out(const struct episodes *episodes)
{
	return episodes->left_out_us != INT64_MAX;
}

/* True if this scan, of that weight, leaves the episode out, and counts that. */
bool episode_leave_out(const struct episodes *episodes, struct live_context *context,
		       struct episode *episode, int64_t weight_us);
/* Fills all of a sample but its totals and requests in flight from the one that is kept. False: it
 * is to be looked up. */
bool episode_fill(struct live_context *context, struct episode *episode, struct sample *sample);
/* Keeps the sample if later scans may repeat it; all of it was looked up, but for stacks and
 * chains. compat: its call is of a 32-bit program. */
bool episode_keep(struct episodes *episodes, struct live_context *context, struct episode *episode,
		  const struct sample *sample, bool compat);
/* Call before a sample that is kept is handed over, complete: it then stands for scans that left it
 * out, too, and later scans may leave it out. Its tid is ABSENT if the filter refuses it. sleepers:
 * of its chain; NULL: it has none. */
void episode_given(const struct episodes *episodes, struct live_context *context,
		   struct episode *episode, struct sample *sample,
		   const struct chain_sleepers *sleepers);
/* Hands over what scans have left out (struct host_source, settle). */
void episodes_settle(const struct episodes *episodes);
/* Drops the samples that are kept, with what they stand for. Call before names that samples point
 * to are dropped. */
void episodes_forget_samples(struct episodes *episodes);
/* Ends all episodes, and forgets which sleepers were judged: keys begin anew. */
void episodes_clear(struct episodes *episodes);

/* True if the thread is still in the episode that its record, of the kernel's map or of the seed,
 * shows. runs: its state is ON; that tsnap itself took its CPU, or gave it back, ends no episode.
 * Reads the record again: one look at memory where the array is mapped. */
bool episode_lasts(struct live_context *context, const struct thread_state *record, bool runs);
/* Calls lookup_fill(). What is read of a thread after its record was copied (the name of the file
 * that a descriptor refers to, a path in its memory, the connection of a socket, what it waits for)
 * may be of its next system call already. The record shows it: the thread was switched since. Such
 * facts become absent again, and are counted. */
void episode_lookup(struct live_context *context, const struct thread_state *record,
		    struct sample *sample, const struct lookup_hint *hint, uint64_t needs);
/* Fills the system call of a thread that was not switched since the start (live_seed_call());
 * absent if it may be a later one. */
void episode_seed_call(struct live_context *context, const struct thread_state *record,
		       struct sample *sample, bool *compat);
void episodes_describe(const struct live_context *context, struct source_status *facts);

/* True if the episode was judged, or waits for its turn. */
bool episodes_judged(const struct episodes *episodes, uint64_t key, uint64_t sequence);
/* Returns episodes_judged(), and marks the episode as judged. */
bool episodes_judge(struct episodes *episodes, uint64_t key, uint64_t sequence);
/* Judges in turn an episode that was not judged. */
void episodes_queue(struct episodes *episodes, uint64_t key, uint64_t sequence);
/* Takes the next key whose turn it is. False: there is none. */
bool episodes_next(struct episodes *episodes, uint64_t *key);

#endif
