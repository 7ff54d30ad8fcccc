/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Findings (--findings): which problems cost the time of the threads that worked or waited, each
 * with who waits, for whom or what, and for how long.
 *
 * A finding is a row of finding_rows[] (finding_rows.c) and a subject: a lock, a server, a device.
 * Each thread-second that samples saw stands under one finding, or under "no problem"; the rest of
 * the exact times was not seen. Time of threads that wait for another one whose own wait is the
 * problem (clients of a server that waits for a CPU) is a symptom: it stands below that problem.
 *
 * Made of samples, live or replayed, that are grouped first: rows see groups with exact times
 * (report/group_split.h). render/render_findings.c writes the sentences.
 */
#ifndef TSNAP_REPORT_FINDINGS_H
#define TSNAP_REPORT_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/text.h"
#include "report/finding_case.h"
#include "report/group_split.h"
#include "report/tally.h"
#include "sample/source.h"

#define FINDING_AGES                                                                \
	160 /* ages of requests, in four steps of each power of two of microseconds \
	     */
/* Share of the time, per mille, below which nothing is a finding unless it lasts for ever. */
#define FINDING_SHARE_LEAST 20

/* Those that a finding names. */
enum finding_party {
	PARTY_WAITERS,
	PARTY_CULPRITS, /* holders, servers, threads that run */
	PARTY_THINGS,	/* locks, devices, calls */
	PARTY_CALLS,	/* in which the culprits are */
	PARTY_AWAITED,	/* what they wait for themselves; in RQ: who has the CPU */
	PARTY_COUNT
};

struct finding_name {
	const char *name; /* NULL: not known */
	int64_t pid;	  /* ABSENT: not known, or several */
	int64_t tid;	  /* any of its threads; ABSENT: not known */
	int64_t threads;  /* number of different threads */
	int64_t weight_us;
};

struct finding;
struct findings;

/* A row of the table, finding_rows.c. */
struct finding_row {
	const char *name; /* stable name, for programs */
	const char *help; /* what it is about, in --list */
	const char *kind; /* word for the sentence about what is no problem */
	bool of_roots;	  /* threads that wait for a root are the problem, and no symptom */
	bool live;	  /* the command needs the live host */
	finding_takes *takes;
	finding_key *key; /* distinguishes findings of the row */
	/* what the finding is about, beside the culprit; NULL: nothing */
	finding_thing *thing;
	bool (*holds)(const struct finding *finding, const struct findings *findings);
	/* True if the sentence says more than the edges do; NULL: it does not. */
	bool (*in_doubt)(const struct finding *finding, const struct findings *findings);
	/* Text with {words} of render_findings.c; parts after | are left out where the line is
	 * full. The command that shows more comes last. */
	const char *sentence, *command;
};

struct finding {
	const struct finding_row *row; /* first row that takes its cases; when filled: that holds */
	uint64_t key;		       /* finding_key_of() its samples */
	bool held;
	int64_t samples, weight_us, longest_us;
	int64_t symptom_us;		   /* part of weight_us */
	int64_t certain_us;		   /* part of the rest that the edges call certain */
	int64_t unaccepted_us;		   /* part in which connections were not accepted */
	struct keyed parties[PARTY_COUNT]; /* struct finding_name; when filled: most time first */
	int64_t doing_us[STATE_COUNT + 1]; /* of the culprits, by state; STATE_COUNT: not known */
	/* of a lock's holder and of a thread that waits for it (struct source, priority) */
	int64_t holder_priority, waiter_priority;
	const char *chain;   /* chain with most time */
	enum edge_kind link; /* its last link */
	int64_t chain_us;
	int64_t ages_us[FINDING_AGES]; /* time by the age of the request that is waited for */
	/* of rows without a thread's time: events, and their rate per second in hundredths */
	int64_t rate;
	const struct source_io_limit *limit;	 /* exhausted I/O limit of the device */
	const struct source_quota *quota;	 /* kernel's count of the group */
	const struct source_device *device;	 /* and of the device; NULL: not known */
	const struct source_unread *unread;	 /* and of the requests that nobody reads */
	const struct source_runtime *runtime;	 /* what a JVM or a Go program counts */
	const struct finding_recorded *recorded; /* NULL: it was not recorded, but found here */
	const char *before; /* when it was found before, in words; set by a part; NULL: not known */
};

/* A finding that the recorder made of what its host counts, for a replay: no sample shows it. Texts
 * are its owner's; NULL: not known. */
struct finding_recorded {
	const struct finding_row *row;
	uint64_t key; /* differs between findings of the row */
	const char *culprit, *thing, *text;
	int64_t pid; /* of the culprit; ABSENT: not known */
	bool certain;
	int64_t longest_us;
	int64_t found_us, of_us; /* time of the steps that have it, and of all that are recorded */
	int64_t from_us, until_us; /* begin of the first step that has it, end of the last, UTC */
};

/* What may be made too often. */
enum finding_made { MADE_PROCESSES, MADE_THREADS, MADE_SWITCHES, MADE_COUNT };

struct findings {
	bool alone;  /* they are shown without rows */
	bool of_all; /* no process is left out, and one without an account was never awake */
	struct group_table groups;
	struct column_list list;
	struct keyed processes;	       /* struct finding_process, by pid */
	struct column_list unrecorded; /* columns that the recording lacks: set by the part */
	/* what the recorder found; set by a part before they are filled; NULL: nothing */
	const struct finding_recorded *recorded;
	size_t recorded_count;
	struct keyed makers[MADE_COUNT];		   /* struct finding_maker */
	int64_t threads_first, threads_last, threads_jump; /* jump: largest between two scans */
	int64_t threads_sum, thread_scans;
	int64_t began_ns; /* clock_boot_ns() of the first of these scans */
	int64_t ended_us; /* CPU and waiting time of threads that ended unseen */
	/* when filled: */
	struct keyed found;	       /* struct finding; those that hold first, most time first */
	size_t count;		       /* number of those that hold */
	struct keyed runners;	       /* struct finding_name: who was on a CPU */
	struct index thread_ids;       /* threads that names have counted */
	struct keyed holders;	       /* struct finding_holder, by tid */
	struct index busy;	       /* tid to time on a CPU */
	struct index through;	       /* hash of the begin of a chain to a finding, plus one */
	int64_t total_us, none_us;     /* all time; under no problem. unseen_us: what is missing */
	int64_t unseen_us, longest_us; /* longest: of all waits */
	int64_t on_us, rq_us, kernel_us;
	int64_t elapsed_us, cpus; /* cpus: ABSENT if not known */
	const struct source_status *status;
	const struct source *source; /* NULL: not known */
};

extern const struct finding_row finding_rows[];
extern const size_t finding_row_count;

/* The first row of that name, which exists. */
const struct finding_row *finding_row_find(const char *name);
/* The row of that name whose findings are made of counts alone; NULL: there is none. */
const struct finding_row *finding_row_of_counts(const char *name);
/* Adds the list of findings for --list. */
void findings_describe(struct text *text);

/* A limit of which that many percent are used up, of the finding's device if that is known; NULL:
 * none. */
const struct source_io_limit *finding_limit(const struct finding *finding,
					    const struct findings *findings, int64_t percent);
/* The priority of the named thread (struct source, priority); ABSENT: not known. */
int64_t finding_priority(const struct findings *findings, const struct finding_name *name);

/* times: exact times of threads that are shared out among their samples, which must outlive the
 * findings; NULL: samples are counted. */
void findings_init(struct findings *findings, struct exact_times *times);
uint64_t findings_needs(const void *findings); /* NEED_* */
void findings_add(void *findings, const struct sample *sample, struct exact_note note);
void findings_add_account(void *findings, const struct sample *account);
/* Takes the number of threads of a scan; 0: not known. */
void findings_end_scan(struct findings *findings, int64_t threads);
/* A number of the finding that such a sample belongs to; 0: it belongs to none. */
uint64_t finding_key_of(const struct sample *sample);
/* Finds; call after the groups' times are shared out. Valid until findings_clear(). */
void findings_fill(struct findings *findings, const struct tally *tally,
		   const struct source_status *status, const struct source *source);
void findings_clear(void *findings);
void findings_done(void *findings);

static inline const struct finding *finding_at(const struct findings *findings, size_t index)
{
	return (const struct finding *)findings->found.rows + index;
}

/* Name with most time; NULL: there is none. */
const struct finding_name *finding_first(const struct finding *finding, enum finding_party party);
/* True if the party is one thread. */
bool finding_is_one(const struct finding *finding, enum finding_party party);
/* Whether waits for a lock are a problem: short ones only if they are much of the time, as those
 * for a GIL. */
bool finding_holds_lock(const struct finding *finding, const struct findings *findings);
/* "certain" or "likely", by the edges' own word; symptoms are always likely. */
const char *finding_certainty(const struct finding *finding);
/* The state in which the culprits were for most of the time; STATE_COUNT: not known. */
int finding_doing(const struct finding *finding);
/* The call in which the culprits are, or what they wait for, for more than half of the time; NULL:
 * there is none. */
const char *finding_mostly(const struct finding *finding, enum finding_party party);
/* The time that the culprit was on a CPU, in percent; ABSENT: it was not among the samples. */
int64_t finding_busy(const struct finding *finding, const struct findings *findings);
/* Time that interrupts and the hypervisor took: of all CPUs if these are full, else of the CPU that
 * lost most. *cpu: that CPU; ABSENT: all, or nothing was taken. */
int64_t findings_taken_us(const struct findings *findings, int64_t taken_us[CPU_USE_COUNT],
			  int64_t *cpu);
/* Time that CPUs were busy, also for threads that a filter left out. */
int64_t findings_busy_us(const struct findings *findings);
/* Time that threads of the culprit were seen to work or to wait. */
int64_t finding_doing_us(const struct finding *finding);
/* Age of requests in us that half of the waiting time exceeds; ABSENT: not known. */
int64_t finding_age_us(const struct finding *finding);

#endif
