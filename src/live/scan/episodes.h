/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Wait episodes: what is known of the sleep that a thread is in, from the switch that began it to
 * the next one. Scans keep an episode for each sleeper whose sample they want: of all threads
 * where idle ones are wanted, else of those that work.
 *
 * A record stands still while its thread sleeps, so a scan copies it once. The episode goes on
 * until a capture has the record again, or reports its key as gone.
 *
 * An episode may keep the sample that was made of it. Later scans repeat that sample without a
 * lookup, as long as lookups would find the same. Holders and peers may change meanwhile: they are
 * read again after one or two seconds of the wait, or up to eight (last_wait_until()). If that
 * changes the wait class, and after some seconds in any case, all of the sample is looked up again;
 * users and cgroups are read less often (LOOKUP_STILL_NS). No sample is kept if a later scan will
 * know more of the wait, or if some of its values are read for each sample.
 *
 * If samples are only summed up (struct source, sums_up), most scans skip such episodes: they read
 * neither the record nor the sample, and the episode's next sample gets their weight. A chain is
 * followed again as soon as one of its threads is switched. If an edge of it may change without
 * that (not firm: waits/chain.h), it is also followed again in each scan of the wait's first half
 * second, and then before the wait has become a fifth longer.
 *
 * Without -a a scan must find out whether a sleeper works. An episode is judged once: in the scan
 * that lists it as new. Threads that slept before the start, or that no list has reported, wait for
 * their turn; each scan judges some of them.
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
	/* what a scan reads of an episode that it skips */
	int64_t until_ns;   /* the kept sample holds until then */
	int64_t wanted_ns;  /* time of the last scan that wanted the episode, or skipped it */
	int64_t skipped_us; /* weights of the scans that skipped it since one delivered its sample
			     */
	uint32_t skipped_count;
	bool may_be_skipped; /* its sample was delivered, and all of its chain is known */
	struct chain_sleepers sleepers;
	struct captured copy;
	/* the sample as it was looked up, and, if scans may skip it, as it was delivered; NULL:
	 * none is kept */
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
	int64_t skipped_us; /* waits that have lasted for that long are skipped; INT64_MAX: none are
			     */
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

/* True if a sample may stand for others, by what is wanted of each. */
bool episodes_may_stand(const struct live_context *context);
/* True if scans may skip samples: their owner sums them up. */
bool episodes_may_skip(const struct episodes *episodes, const struct live_context *context);
/* True if this scan skips some episodes. */
static inline bool episodes_skip(const struct episodes *episodes)
{
	return episodes->skipped_us != INT64_MAX;
}

/* True if this scan skips the episode, which then counts the scan's weight. */
bool episode_skip(const struct episodes *episodes, struct live_context *context,
		  struct episode *episode, int64_t weight_us);
/* Fills all of a sample but its totals and requests in flight from the one that is kept. False: it
 * is to be looked up. */
bool episode_fill(struct live_context *context, struct episode *episode, struct sample *sample);
/* Keeps the sample if later scans may repeat it; all of it was looked up, but for stacks and
 * chains. compat: its call is of a 32-bit program. */
bool episode_keep(struct episodes *episodes, struct live_context *context, struct episode *episode,
		  const struct sample *sample, bool compat);
/* Call before a complete sample of the episode is delivered: it gets the weight of the scans that
 * skipped it, and later scans may skip it. Its tid is ABSENT if the filter refuses it. sleepers: of
 * its chain; NULL: it has none. */
void episode_deliver(const struct episodes *episodes, struct live_context *context,
		     struct episode *episode, struct sample *sample,
		     const struct chain_sleepers *sleepers);
/* Delivers the weight of scans that have skipped episodes (struct host_source, settle). */
void episodes_settle(const struct episodes *episodes);
/* Drops the samples that are kept, and the weights of skipped scans. Call before names that samples
 * point to are dropped. */
void episodes_forget_samples(struct episodes *episodes);
/* Ends all episodes, and forgets which sleepers were judged: keys begin anew. */
void episodes_clear(struct episodes *episodes);

/* True if the thread is still in the episode that its record, of the kernel's map or of the seed,
 * shows. runs: its state is ON; that tsnap itself took its CPU, or gave it back, ends no episode.
 * Reads the record again: one look at memory where the array is mapped. */
bool episode_lasts(struct live_context *context, const struct thread_state *record, bool runs);
/* Calls lookup_fill(). What is read of a thread after its record was copied (the name of the file
 * that a descriptor refers to, a path in its memory, the connection of a socket, what it waits for,
 * what its program says) may be of its next system call already. The record shows it: the thread
 * was switched since. Such facts become absent again, and are counted. */
void episode_lookup(struct live_context *context, const struct thread_state *record,
		    struct sample *sample, const struct lookup_hint *hint, uint64_t needs);
/* Fills the system call of a thread that was not switched since the start (live_seed_call());
 * absent if it may be a later one. */
void episode_seed_call(struct live_context *context, const struct thread_state *record,
		       struct sample *sample, struct lookup_hint *hint);
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
