/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sources of scans: the live host (src/live/live) or a recorded CSV (recording/sample_file). run.c
 * sees only this.
 */
#ifndef TSNAP_SAMPLE_SOURCE_H
#define TSNAP_SAMPLE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sample/sample.h"
#include "sample/histogram.h"
#include "sample/self_cost.h"
#include "sample/trace_kind.h"
#include "sample/wakeup.h"

#define SOURCE_TEXT_SIZE 128
#define SOURCE_MISSED_MAX 64
#define SOURCE_MISSED_MORE "or more kinds of losses not listed here"
#define SOURCE_ABSENT_MAX 18
#define SOURCE_QUOTAS_MAX 32
#define SOURCE_LISTENERS_MAX 16
#define SOURCE_DEVICES_MAX 64
#define SOURCE_UNREAD_MAX 16
#define SOURCE_RUNTIMES_MAX 16
#define SOURCE_IO_LIMITS_MAX 32
#define SOURCE_CPUS_MAX 1024
#define SCAN_BATCH 256 /* samples of a batch: few enough to stay in the cache */

/* Something that was not seen, for the footer of a report: "12 late scans". */
struct source_missed {
	const char *what; /* static words: "late scans", "threads did not fit the map
			     (--max-threads)" */
	uint64_t count;	  /* since the source was opened; */
	bool standing;	  /* count at present, instead */
	bool always;	  /* a report prints it also where it counts its remarks only */
	bool natural;	  /* no error: reports print it, output of rows does not */
};

/* Columns that were requested and that this host can't provide. */
struct source_absent {
	uint64_t needs;	 /* needs, NEED_*, of the columns that are absent */
	const char *why; /* reason, in static words */
};

/* A control group that the kernel held back for its quota of CPU time, since the source was opened.
 */
struct source_quota {
	char path[SOURCE_TEXT_SIZE]; /* path, cut at the front if it is longer */
	int64_t periods, throttled_periods;
	int64_t throttled_us; /* time throttled, summed over all CPUs */
};

/* A TCP socket that listens, and refused connections because its queue was full. */
struct source_listener {
	uint64_t inode;
	int64_t dropped; /* since it was made */
	uint16_t port;
};

/* Requests to a TCP port of this host that wait without a thread: their data is not read, or their
 * connection not accepted. As of now. */
struct source_unread {
	uint64_t net; /* number of the network namespace */
	uint16_t port;
	int64_t requests;   /* connections with data that is not read */
	int64_t unaccepted; /* connections that are not accepted, with or without data */
	int64_t limit;	    /* of the accept queue */
	/* of those that the kernel was asked about: with a wait that somebody may notice (0.1 s) */
	int64_t late, late_unaccepted;
	int64_t oldest_us; /* least time that the oldest has waited */
	int64_t pid;	   /* of the process that should read; ABSENT: not known, or several */
	int64_t threads;   /* of that process; ABSENT: not known */
	char comm[16];	   /* of that process, or of one of several; "": not known */
};

/* A JVM or a Go program, and the time in which it stopped its threads, since the source has known
 * it. */
struct source_runtime {
	int64_t pid;
	int64_t known_us;   /* how long that is */
	int64_t stopped_us; /* time in which all Java threads were stopped; */
	int64_t gc_us;	    /* that of pauses to collect garbage, and their number */
	int64_t collections;
	int64_t threads; /* Java threads, or all of a Go program, now */
	bool is_go;
	/* of a Go program: the most goroutines that there were at once, how many more that are than
	 * at first, and in how many of the seconds there were more than in any before */
	int64_t goroutines, grown, seconds, grown_seconds;
	char comm[16];
};

/* Reads and writes of a block device that have ended since it was made. */
struct source_device {
	const char *name; /* interned */
	int64_t requests;
	int64_t taken_us;  /* time that they took, added up */
	int64_t in_flight; /* requests that have not ended, now */
	/* how many took how long, as in struct histogram, of those that programs saw since
	 * timed_ns, by the monotonic clock; 0: none did */
	int64_t timed_ns;
	uint32_t times[HISTOGRAM_BUCKETS];
};

/* CPU time that no thread asked for, since boot. */
enum source_cpu_use { CPU_USE_HARDIRQ, CPU_USE_SOFTIRQ, CPU_USE_STEAL, CPU_USE_COUNT };
extern const char *const cpu_use_names[CPU_USE_COUNT];
struct source_cpu {
	int64_t cpu;
	int64_t taken_us[CPU_USE_COUNT];
};

/* Use of a control group's I/O limit since the source was opened. */
struct source_io_limit {
	char path[SOURCE_TEXT_SIZE]; /* path, cut at the front if it is longer */
	const char *device;	     /* interned */
	const char *word;	     /* static: rbps, wbps, riops, wiops */
	int64_t limit;		     /* bytes or requests a second */
	int64_t used;		     /* bytes or requests */
};

/* Time in which threads waited for a resource, /proc/pressure or a group's cpu.pressure: some of
 * them, or all that were not idle. */
enum source_resource { RESOURCE_CPU, RESOURCE_MEMORY, RESOURCE_IO, RESOURCE_COUNT };
struct source_pressure {
	bool known; /* the kernel counts it (CONFIG_PSI) */
	int64_t some_us, full_us;
	int64_t read_us; /* monotonic time of the reading; of an interval: between its two ones */
};

/* Status of a source, for header lines and the footer. Numbers are ABSENT where not known. */
struct source_status {
	char host[SOURCE_TEXT_SIZE], kernel[SOURCE_TEXT_SIZE];
	int64_t cpus;
	int64_t rate_hz; /* requested rate */
	/* records were made from /proc, not by BPF programs: calls of threads that run are not
	 * known, nor, for a lack of rights, those of some that sleep */
	bool of_proc;
	int64_t own_cpu_ns; /* tsnap's CPU time since the source was opened */
	int64_t own_ns;	    /* time in which tsnap used that: reading scans goes on after them */
	int64_t bpf_ns, bpf_runs; /* cost of tsnap's BPF programs, if the kernel counts it */
	int64_t busy_us;	  /* time that CPUs were not idle, until the last account */
	bool busy_checks;	  /* accounts have the time of all threads that had a CPU */
	int64_t busy_error_us;	  /* possible error of exact times against busy_us */
	int64_t load;		  /* load average of the last minute, in hundredths */
	int64_t memory_used;	  /* per mille of the memory */
	/* bytes since boot that were read from disks, of these what had been evicted from the page
	 * cache, and what was evicted */
	int64_t disk_read, refaulted, evicted;
	struct source_missed missed[SOURCE_MISSED_MAX];
	size_t missed_count;
	struct source_absent absent[SOURCE_ABSENT_MAX];
	size_t absent_count;
	struct source_quota quotas[SOURCE_QUOTAS_MAX]; /* groups with the most time first */
	size_t quota_count;
	size_t quotas_more; /* groups beyond the capacity of quotas */
	struct source_io_limit io_limits[SOURCE_IO_LIMITS_MAX];
	size_t io_limit_count;
	struct source_listener listeners[SOURCE_LISTENERS_MAX];
	size_t listener_count;
	struct source_unread unread[SOURCE_UNREAD_MAX]; /* ports with most late requests first */
	size_t unread_count;
	struct source_runtime runtimes[SOURCE_RUNTIMES_MAX];
	size_t runtime_count;
	struct source_device devices[SOURCE_DEVICES_MAX];
	size_t device_count;
	struct source_cpu taken[SOURCE_CPUS_MAX]; /* CPUs that are online, in order */
	size_t taken_count;
	/* 1: the time of interrupts is counted by ticks; 0: not; ABSENT: not known, as nobody had
	 * to know yet */
	int64_t taken_by_tick;
	struct source_pressure pressure[RESOURCE_COUNT]; /* pressure on the host */
	/* path of the control group, if exactly one was requested; "": none */
	char pressed_group[SOURCE_TEXT_SIZE];
	struct source_pressure group_pressure[RESOURCE_COUNT];
	struct self_cost self;
	const char *remarks; /* lines to show at the start, the source's; NULL: none */
	const char *chosen;  /* lines for -v on how samples are taken, the source's; NULL: none */
};

/* Percent of what was read from disks that had been evicted from the page cache a moment before, of
 * the status of an interval; 0: not known, too little to matter, or evicted long ago. */
int64_t source_status_refaulted(const struct source_status *status, int64_t elapsed_us);
/* Adds a row, and returns it, for the caller to set its flags. Beyond SOURCE_MISSED_MAX the last
 * row becomes one that says so. */
struct source_missed *source_status_miss(struct source_status *status, const char *what,
					 uint64_t count);
/* Adds a row only if count is not 0, else returns NULL. --self always shows rows of the other
 * function. */
struct source_missed *source_status_miss_any(struct source_status *status, const char *what,
					     uint64_t count);
/* Adds the row's count to that of the row with the same words, or the row if there is none. */
void source_status_add(struct source_status *status, const struct source_missed *missed);
/* Adds a row about something that this host does not report: "kind of data: ..." and why. */
void source_status_lack(struct source_status *status, const char *what);

/* Subtracts an earlier reading. A CPU that was not in it is removed, as it is not known what it had
 * before. Returns the number of CPUs that remain. */
size_t source_cpus_since(struct source_cpu *taken, size_t count, const struct source_cpu *before,
			 size_t before_count);

/* Takes a histogram of one thread. who: what is known of the thread, and the kind's own fields. */
typedef void trace_callback(void *to, const struct trace_kind *kind, const struct sample *who,
			    const struct histogram *histogram);

struct stack_entry;

/* Takes a stack, which is valid during the call only. */
typedef void stack_callback(void *to, const struct stack_entry *stack);

/* Takes an account, which is valid during the call only. */
typedef void account_callback(void *to, const struct sample *account);
/* Takes a single event. who: as in trace_callback, with time_us at its end, and its kind's own
 * fields. */
typedef void event_callback(void *to, const struct trace_kind *kind, const struct sample *who,
			    int64_t duration_ns);

/* Takes a sample, which is valid during the call only. */
typedef void sample_callback(void *to, const struct sample *sample);

/* Takes a wake-up. */
typedef void wake_callback(void *to, const struct wakeup *wakeup);

struct column;
struct filter;

struct source;

/* What only this host has, and no recording. */
struct host_source {
	/* Delivers the counter deltas that no sample has reported yet: an account for each thread,
	 * and for exited threads one by name and user, since their previous sample or account.
	 * Fields that change within a thread (state, system call ...) and weights are absent. */
	void (*account)(struct source *source, account_callback *take, void *to);
	/* Delivers the weight of scans that have skipped threads (struct source, sums_up): before
	 * an interval is shown. */
	void (*settle)(struct source *source);
	/* Declares that nothing delivered is in use any more: after an interval, or after each
	 * scan. Texts of samples may be freed, such as transient ones of lookups. */
	void (*release)(struct source *source);
	/* True if release() would free texts: holders of samples should let go of them. */
	bool (*crowded)(const struct source *source);
	/* 1: the block device has rotating disks; 0: not; ABSENT: not known. */
	int64_t (*rotates)(const struct source *source, const char *device);
	/* Priority of a thread as it is now: below 0 for real time (column priority), 20 + nice,
	 * and 60 for SCHED_IDLE. ABSENT: not known. */
	int64_t (*priority)(const struct source *source, int64_t tid);
	/* True if the thread is in the group of blkio or io with that path, or below it. */
	bool (*io_group_has)(const struct source *source, int64_t tid, const char *path);
	/* Delivers to stack_take the stacks that it has not had yet, which may take some seconds.
	 */
	void (*stacks_end)(struct source *source);
	/* Makes the source deliver each stack to stack_take again, when a sample has it next. */
	void (*stacks_anew)(struct source *source);
	/* Delivers what --trace measured since the last call, and that no filter refuses; called
	 * after every scan, as a source keeps only a limited amount. all: everything until now, for
	 * which it may wait some milliseconds; else what is at hand. needs: NEED_* of who. 0, or
	 * -errno with e. */
	int (*traced)(struct source *source, bool all, uint64_t needs, trace_callback *take,
		      void *to, struct error *e);
	/* Delivers the single events since the last call that no filter refuses; called after every
	 * scan. all: also those that have not ended, as queries without an answer. needs: NEED_* of
	 * who. */
	void (*events)(struct source *source, bool all, uint64_t needs, event_callback *take,
		       void *to);
	/* Delivers the wake-ups since the last call that ended waits which scans have seen, if
	 * NEED_PATH was requested. Returns the monotonic time until which none is missing. */
	int64_t (*wakeups)(struct source *source, wake_callback *take, void *to);
	/* Adds lookups of its waits to the samples of this thread from now on; with NEED_PATH other
	 * sleepers have none. */
	void (*follow)(struct source *source, int64_t tid);
	/* Delivers a sample, without a weight, of each thread that the filter accepts now, beside
	 * the scans; called after a scan, before the next one. needs: NEED_*, as far as the source
	 * was opened for them. 0, or -errno: some threads may be missing. */
	int (*look)(struct source *source, struct filter *filter, uint64_t needs,
		    sample_callback *take, void *to);
};

struct source {
	/* Waits for the next tick and delivers its scan. 1: *scan is filled, with the samples that
	 * no batch had; 0: the end (of the recording); -EINTR: a signal came first; another -errno:
	 * failed, and e is filled unless take failed (-EOWNERDEAD: but the scans until then are
	 * whole). */
	int (*next)(struct source *source, struct scan *scan, struct error *e);
	void (*describe)(struct source *source, struct source_status *status);
	/* True if no sample until now can have a value in the column, of sample_columns, as the
	 * recording does not hold it. NULL: never. */
	bool (*lacks)(const struct source *source, const struct column *column);
	void (*close)(struct source *source); /* frees source too */
	const struct host_source *host;	      /* NULL: a recording */

	/* Set by the owner, or NULL: takes a batch of the scan that next() gathers, so that the
	 * samples of a large one need not be in memory at once. The scan time has passed: waiting
	 * here makes the rest of the scan less exact. 0, or -errno to end the scan with. */
	int (*take)(void *take_to, const struct scan *batch);
	void *take_to;
	/* Set by the owner if it sums samples up. Scans may then skip a thread that sleeps on in
	 * the wait of an earlier sample. A later sample of that wait stands for these scans, too,
	 * or take gets the earlier one again, in a batch of its own (struct scan, again). */
	bool sums_up;
	/* Set by the owner while it shows processes rather than threads: a sample of a short wait
	 * may stand for other threads of its process, too, whose weight_us and repeats it has. Of
	 * more such threads a scan looks at this many at least, and at less than twice as many; 0:
	 * at all. */
	uint32_t shares;
	/* Set by the owner if describe() is to read what the kernel counts of the whole host, too:
	 * memory, quotas, devices and I/O limits, listeners, pressure. */
	bool describes_host;
	/* Set by the owner if a recording's scans have the samples that the filter refuses, too,
	 * without the columns that follow from others (struct scan, refused). */
	bool keeps_refused;
	/* Set by the owner, or NULL: takes the stacks whose hashes are in samples, once each or
	 * more often. */
	stack_callback *stack_take;
	void *stack_take_to;
};

#endif
