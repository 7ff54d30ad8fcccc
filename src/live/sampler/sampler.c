/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/sampler/sampler.h"
#include "live/sampler/capture_queue.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define REGISTERS_LEAD_NS NS_PER_MS /* time before a scan when switches begin to keep registers */
#define REGISTERS_LATE_NS \
	SCAN_TIME_OPEN_NS /* time for which switches keep registers, should a scan come late */
#define STACKS_LATE_NS (5 * NS_PER_MS) /* time for which they keep stacks, which are expensive */
#define SCAN_TIME_LEAD_NS 2000	       /* time in which all CPUs get to know of a scan time */
#define CROWDED_PART 4		       /* part of a period from which on a wait for a CPU is long */
#define CROWDED_STILL_NS (60 * NS_PER_SECOND)
#define OFFSET_PULL 8 /* the part of the offset that a tick takes back */

struct sampler {
	struct sampler_options options;
	struct filter filter; /* copy of the options' filter, with ids of its own */
	struct capturer capturer;
	struct realtime realtime;
	pthread_t thread;
	bool running;
	size_t ticks_bytes;	    /* bytes of one scan's ticks */
	uint64_t begun;		    /* scans begun */
	uint64_t random;	    /* last random number: base/index.h, hash_u64() */
	int64_t registers_until_ns; /* switches were set to keep registers until then */
	int64_t offset_ns;	    /* offset of the last tick from when it was due */
	int64_t tick_cpu_ns;	    /* clock_cpu_ns() at the last tick */
	int64_t rest_until_ns;	    /* no tick before that: the last walk over /proc took long */
	bool grown;		    /* maps were enlarged since the last tick */
	int64_t crowded_until_ns;
	pthread_mutex_t requesting;
	sem_t filled; /* counts the queue, so that a signal ends the wait for it */

	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t news;  /* the thread is to stop, or a capture was returned */
	bool stop, waiting;   /* waiting: for an unused capture */
	bool excused;
	struct capture_queue queue;
	bool stacks_capacity;	 /* memory for stacks is left in the scan that is made */
	struct index keys;	 /* keys given to sampler_return() */
	bool keys_copied;	 /* keys were given to at least one scan */
	struct index pids, tids; /* new ids of the filter */
	bool ids_new;
	unsigned int filter_changes;
	struct sampler_status status, before; /* before: counts of views that are gone */
};

/* Inits a lock with priority inheritance: a thread that waits for it lends its priority to the one
 * that holds it. */
static void lock_init(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
}

static void news_init(pthread_cond_t *news)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(news, &attributes);
	pthread_condattr_destroy(&attributes);
}

/* --- ticks */

/* Returns why a scan is late, judged by what tsnap itself did since the last tick. */
static enum late_why late_why(const struct sampler *sampler, int64_t late_ns)
{
	if (sampler->grown)
		return LATE_GROWTH;
	return clock_cpu_ns() - sampler->tick_cpu_ns > late_ns / 2 ? LATE_WORK : LATE_WAIT;
}

/* Moves the next tick by chance. The time between ticks must not depend on where in the period the
 * tick lies, because samples are weighted by that time. So it is not enough to move each tick away
 * from when it is due: steps of up to half a period add up, and a small part of the sum is taken
 * back each time, which keeps the number of scans within about two of what was requested. */
static void tick_offset_next(struct sampler *sampler)
{
	int64_t period_ns = sampler->options.period_ns;

	sampler->random = hash_u64(sampler->random + (uint64_t)sampler->options.due_ns);
	sampler->offset_ns += (int64_t)(sampler->random % (uint64_t)period_ns) - period_ns / 2 -
			      sampler->offset_ns / OFFSET_PULL;
}

/* Returns the time of the next tick. A tick that was missed is counted, not made up for: a scan
 * that began when the one before ends would see what others do while tsnap has a CPU. */
static int64_t tick_next_ns(struct sampler *sampler)
{
	int64_t period_ns = sampler->options.period_ns, next_ns = sampler->options.due_ns;
	int64_t now_ns = clock_monotonic_ns(), missed;

	if (!sampler->begun)
		return next_ns;
	pthread_mutex_lock(&sampler->lock);
	tick_offset_next(sampler);
	next_ns += sampler->offset_ns;
	if (sampler->excused && next_ns < now_ns) {
		next_ns = sampler->options.due_ns = now_ns;
		sampler->offset_ns = 0;
	}
	sampler->excused = false;
	if (sampler->rest_until_ns > next_ns && sampler->rest_until_ns > now_ns) {
		/* a tick that comes later in its period is none that was missed */
		missed = (sampler->rest_until_ns - next_ns) / period_ns;
		sampler->status.late_count[LATE_WORK] += (uint64_t)missed;
		sampler->options.due_ns += missed * period_ns;
		next_ns = sampler->rest_until_ns;
	}
	if (now_ns > next_ns) {
		missed = (now_ns - next_ns) / period_ns + 1;
		sampler->status.late_count[late_why(sampler, now_ns - next_ns)] += (uint64_t)missed;
		sampler->options.due_ns += missed * period_ns;
		next_ns += missed * period_ns;
	}
	pthread_mutex_unlock(&sampler->lock);
	sampler->grown = false;
	return next_ns;
}

/* False: the thread is to stop. */
static bool sleep_until(struct sampler *sampler, int64_t until_ns)
{
	const struct timespec until = {until_ns / NS_PER_SECOND, until_ns % NS_PER_SECOND};
	bool stop;

	pthread_mutex_lock(&sampler->lock);
	while (!sampler->stop &&
	       pthread_cond_timedwait(&sampler->news, &sampler->lock, &until) != ETIMEDOUT)
		;
	stop = sampler->stop;
	pthread_mutex_unlock(&sampler->lock);
	return !stop;
}

static int64_t registers_keep(struct sampler *sampler, int64_t until_ns)
{
	int64_t since_ns;

	pthread_mutex_lock(&sampler->requesting);
	since_ns = registers_want(&sampler->options.wants.kernel->requester, until_ns);
	pthread_mutex_unlock(&sampler->requesting);
	return since_ns;
}

/* Sleeps until *next_ns, or a little longer: from then on switches keep what threads did. */
static bool scan_time_wait(struct sampler *sampler, int64_t *next_ns)
{
	int64_t least_ns = clock_monotonic_ns() + SCAN_TIME_LEAD_NS;

	if (*next_ns < least_ns)
		*next_ns = least_ns;
	wake_reader_before(&sampler->options.wants.kernel->wakes, *next_ns);
	scan_time_begin(&sampler->options.wants.kernel->scan_time, *next_ns);
	return sleep_until(sampler, *next_ns);
}

/* Does scan_time_wait(), and has switches keep registers and stacks from some time before it. The
 * sampler that owns the probes sets beforehand when they begin: a thread that ran for that would
 * keep others from their CPU right before the scan time, and change what they do then. */
static bool tick_wait(struct sampler *sampler, int64_t *next_ns)
{
	const struct capture_wants *wants = &sampler->options.wants;
	int64_t lead_ns = kept_stacks_lead_ns(wants->kept), least_ns;

	if (!sampler->options.registers_early && !lead_ns)
		return scan_time_wait(sampler, next_ns);
	least_ns = clock_monotonic_ns() + REGISTERS_LEAD_NS;
	if (*next_ns < least_ns)
		*next_ns = least_ns;
	lead_ns = lead_ns ? lead_ns : REGISTERS_LEAD_NS;
	if (wants->kernel->scan_time.rings) {
		registers_want_from(&wants->kernel->requester, *next_ns - lead_ns);
		kept_stacks_begin(wants->kept, *next_ns - lead_ns, *next_ns + STACKS_LATE_NS);
		return scan_time_wait(sampler, next_ns);
	}
	if (!sleep_until(sampler, *next_ns - lead_ns))
		return false;
	kept_stacks_begin(wants->kept, clock_monotonic_ns(), *next_ns + STACKS_LATE_NS);
	sampler->registers_until_ns = *next_ns + REGISTERS_LATE_NS;
	least_ns = registers_keep(sampler, sampler->registers_until_ns) + REGISTERS_LEAD_NS;
	if (*next_ns < least_ns)
		*next_ns = least_ns;
	return scan_time_wait(sampler, next_ns);
}

/* --- the queue */

/* Waits for an unused capture. NULL: the thread is to stop. */
static struct live_capture *buffer_take(struct sampler *sampler)
{
	struct live_capture *capture = NULL;

	pthread_mutex_lock(&sampler->lock);
	while (!sampler->stop && capture_queue_is_full(&sampler->queue)) {
		sampler->waiting = true;
		pthread_cond_wait(&sampler->news, &sampler->lock);
	}
	sampler->waiting = false;
	if (!sampler->stop)
		capture = capture_queue_has_capacity(&sampler->queue, &sampler->stacks_capacity);
	pthread_mutex_unlock(&sampler->lock);
	if (capture && !capture->ticks)
		capture->ticks = memory_get(sampler->ticks_bytes);
	if (capture && !capture->offline)
		capture->offline =
			memory_get((size_t)sampler->options.wants.kernel->host.cpus_possible);
	return capture;
}

static void buffer_return(struct sampler *sampler, struct live_capture *capture)
{
	capture_queue_return(&sampler->queue, capture);
	if (sampler->waiting)
		pthread_cond_signal(&sampler->news);
}

static void index_exchange(struct index *one, struct index *other)
{
	struct index kept = *one;

	*one = *other;
	*other = kept;
}

/* Adds the keys of sampler_return() to those that the next scan must copy. As long as it is not
 * known which threads of the last scan are wanted in the next one, too, all of them are. */
static void wanted_take(struct sampler *sampler)
{
	struct capturer *capturer = &sampler->capturer;

	pthread_mutex_lock(&sampler->lock);
	if (sampler->ids_new) {
		index_exchange(&sampler->filter.pids, &sampler->pids);
		index_exchange(&sampler->filter.tids, &sampler->tids);
		sampler->ids_new = false;
		capturer->whole = true;
	}
	index_add(&capturer->awake, &sampler->keys);
	sampler->keys_copied = true;
	if (capture_queue_outstanding(&sampler->queue) > 1 && !sampler->options.wants.all)
		index_add(&capturer->awake, &capturer->copied);
	pthread_mutex_unlock(&sampler->lock);
}

static void queue_add(struct sampler *sampler, struct live_capture *capture)
{
	const struct thread_table *table = &sampler->capturer.table;

	pthread_mutex_lock(&sampler->lock);
	sampler->status.over_count = sampler->realtime.over_count;
	sampler->status.moved_count = sampler->before.moved_count + sampler->capturer.moved_count;
	sampler->status.torn_count = sampler->before.torn_count + table->torn_count;
	sampler->status.unfinished_count =
		sampler->before.unfinished_count + table->unfinished_count;
	capture_queue_add(&sampler->queue, capture);
	pthread_mutex_unlock(&sampler->lock);
	sem_post(&sampler->filled);
}

/* True if it took long to get a CPU at normal priority after the last tick, or not long ago. */
static bool is_crowded(struct sampler *sampler)
{
	int64_t now_ns = clock_monotonic_ns(), ended_ns = sampler->realtime.ended_ns;

	if (ended_ns && now_ns - ended_ns > sampler->options.period_ns / CROWDED_PART)
		sampler->crowded_until_ns = now_ns + CROWDED_STILL_NS;
	sampler->realtime.ended_ns = 0;
	return now_ns < sampler->crowded_until_ns;
}

static void registers_done(struct sampler *sampler)
{
	struct kernel *kernel = sampler->options.wants.kernel;

	if (kernel->scan_time.rings)
		registers_want_from(&kernel->requester, 0);
	else
		registers_want_no_more(&kernel->requester, sampler->registers_until_ns);
}

/* Waits for a tick and captures. From before its sleep to the end of the capture no thread of
 * normal priority keeps it from its CPU. On a full host it keeps the priority from tick to tick: a
 * thread that gives it up goes to the end of its CPU's queue, and beside 30 busy threads may not be
 * back at the next tick. Elsewhere it gives it up before it hands on the capture, so that the
 * thread that takes the copies need not look for another CPU, and displace the thread that runs
 * there. */
static bool tick(struct sampler *sampler, struct live_capture *capture)
{
	int64_t next_ns = tick_next_ns(sampler);
	bool crowded = is_crowded(sampler), go_on;

	sampler->tick_cpu_ns = clock_cpu_ns(); /* a sleep uses none */
	realtime_begin(&sampler->realtime);
	go_on = tick_wait(sampler, &next_ns);
	realtime_restart(&sampler->realtime);
	if (go_on) {
		const struct proc_records *proc = sampler->options.wants.proc;

		wanted_take(sampler);
		capture_take(&sampler->capturer, capture, next_ns, sampler->stacks_capacity);
		if (proc)
			sampler->rest_until_ns = next_ns + WALK_REST * proc->cost_ns;
		registers_done(sampler);
	}
	if (!crowded)
		realtime_end(&sampler->realtime);
	return go_on;
}

static void *sampler_run(void *of)
{
	struct sampler *sampler = of;
	struct live_capture *capture;

	/* else the timer may expire together with another one, and the scan see the threads that
	 * that one wakes */
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	capturer_init(&sampler->capturer, &sampler->options.wants, &sampler->realtime,
		      &sampler->requesting);
	while ((capture = buffer_take(sampler))) {
		if (!tick(sampler, capture)) {
			pthread_mutex_lock(&sampler->lock);
			buffer_return(sampler, capture);
			pthread_mutex_unlock(&sampler->lock);
			break;
		}
		sampler->options.due_ns += sampler->options.period_ns;
		sampler->begun++;
		queue_add(sampler, capture);
		kept_stacks_renew(sampler->options.wants.kept);
	}
	return NULL;
}

/* --- for the other thread */

int sampler_resume(struct sampler *sampler)
{
	int err;

	sampler->stop = false;
	err = thread_begin(&sampler->thread, sampler_run, sampler);
	sampler->running = !err;
	return err;
}

int sampler_begin(struct sampler **made, const struct sampler_options *options)
{
	struct sampler *sampler = memory_get(sizeof(*sampler));
	int err;

	sampler->options = *options;
	sampler->realtime = options->realtime;
	sampler->filter = *options->wants.filter;
	sampler->filter.pids = sampler->filter.tids = (struct index){0};
	index_add(&sampler->filter.pids, &options->wants.filter->pids);
	index_add(&sampler->filter.tids, &options->wants.filter->tids);
	sampler->options.wants.filter = &sampler->filter;
	sampler->filter_changes = options->wants.filter->changes;
	lock_init(&sampler->lock);
	lock_init(&sampler->requesting);
	news_init(&sampler->news);
	sem_init(&sampler->filled, 0, 0);
	sampler->ticks_bytes =
		(size_t)options->wants.kernel->host.cpus_possible * sizeof(struct cpu_tick);
	capture_queue_init(&sampler->queue);
	err = sampler_resume(sampler);
	if (err)
		sampler_end(sampler);
	else
		*made = sampler;
	return err;
}

static void thread_stop(struct sampler *sampler)
{
	if (!sampler->running)
		return;
	pthread_mutex_lock(&sampler->lock);
	sampler->stop = true;
	pthread_cond_signal(&sampler->news);
	pthread_mutex_unlock(&sampler->lock);
	pthread_join(sampler->thread, NULL);
	sampler->running = false;
	sampler->before = sampler->status;
	capturer_done(&sampler->capturer);
}

void sampler_end(struct sampler *sampler)
{
	if (!sampler)
		return;
	thread_stop(sampler);
	capture_queue_done(&sampler->queue);
	index_clear(&sampler->keys);
	index_clear(&sampler->pids);
	index_clear(&sampler->tids);
	index_clear(&sampler->filter.pids);
	index_clear(&sampler->filter.tids);
	sem_destroy(&sampler->filled);
	pthread_cond_destroy(&sampler->news);
	pthread_mutex_destroy(&sampler->requesting);
	pthread_mutex_destroy(&sampler->lock);
	free(sampler);
}

void sampler_pause(struct sampler *sampler)
{
	struct live_capture *capture;

	thread_stop(sampler);
	while ((capture = capture_queue_take(&sampler->queue))) {
		sem_trywait(&sampler->filled);
		capture_queue_return(&sampler->queue, capture);
		sampler->status.late_count[LATE_GROWTH]++;
	}
	index_empty(&sampler->keys);
	sampler->grown = true;
}

int sampler_take(struct sampler *sampler, struct realtime *realtime, struct live_capture **capture)
{
	if (sem_trywait(&sampler->filled)) {
		int err;

		realtime_begin(realtime);
		err = sem_wait(&sampler->filled) ? -errno : 0;
		realtime_end(realtime);
		if (err)
			return err;
	}
	pthread_mutex_lock(&sampler->lock);
	*capture = capture_queue_take(&sampler->queue);
	pthread_mutex_unlock(&sampler->lock);
	return 0;
}

void sampler_return(struct sampler *sampler, struct live_capture *capture, const struct index *keys,
		    const struct filter *filter)
{
	struct live_capture surplus;

	capture_fit(capture);
	if (filter->changes != sampler->filter_changes) {
		sampler->filter_changes = filter->changes;
		pthread_mutex_lock(&sampler->lock);
		index_empty(&sampler->pids);
		index_add(&sampler->pids, &filter->pids);
		index_empty(&sampler->tids);
		index_add(&sampler->tids, &filter->tids);
		sampler->ids_new = true;
		pthread_mutex_unlock(&sampler->lock);
	}
	pthread_mutex_lock(&sampler->lock);
	if (sampler->keys_copied)
		index_empty(&sampler->keys);
	sampler->keys_copied = false;
	index_add(&sampler->keys, keys);
	buffer_return(sampler, capture);
	surplus = capture_queue_surplus(&sampler->queue);
	pthread_mutex_unlock(&sampler->lock);
	live_capture_done(&surplus);
}

void sampler_excuse(struct sampler *sampler)
{
	pthread_mutex_lock(&sampler->lock);
	sampler->excused = true;
	pthread_mutex_unlock(&sampler->lock);
}

void sampler_status_read(struct sampler *sampler, struct sampler_status *status)
{
	*status = (struct sampler_status){0};
	if (!sampler)
		return;
	pthread_mutex_lock(&sampler->lock);
	*status = sampler->status;
	pthread_mutex_unlock(&sampler->lock);
}

pthread_mutex_t *sampler_requesting(struct sampler *sampler)
{
	return &sampler->requesting;
}
