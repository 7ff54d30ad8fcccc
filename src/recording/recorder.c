/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/recorder.h"
#include "base/clock.h"
#include "base/file_rights.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/thread.h"
#include "recording/recorder_part.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_NAME ".tsnap.lock"
#define LOCK_TRIES 4
#define CHECK_NS                                                                        \
	(60 * NS_PER_SECOND) /* at least so often it is seen whether files were removed \
			      */
#define GROUP_NAME "tsnap"
#define QUEUE_BYTES_DEFAULT (32u << 20)

/* Rows of one scan on their way to the disk. */
struct queued_scan {
	struct queued_scan *next;
	int64_t time_us;
	int64_t put_ns;
	size_t bytes;
	struct text rows[RECORD_KIND_COUNT];
};

struct recorder {
	const char *path;
	int64_t flush_us;
	size_t queue_bytes;
	int directory, lock;
	pthread_t thread;
	struct queued_scan *scan; /* scan that the caller fills */
	/* scans with rows of each kind that were dropped since the last one that was queued */
	uint64_t missing[RECORD_KIND_COUNT];

	pthread_mutex_t mutex;
	pthread_cond_t wakes;
	/* under the mutex */
	struct queued_scan *first, **last;
	struct queued_scan *spare; /* an empty scan that keeps its memory; or NULL */
	size_t queued;		   /* bytes of queued scans */
	uint64_t dropped;	   /* scans dropped since the disk failed */
	bool begins, stopped;	   /* a part was begun; the caller has ended the recorder */
	struct text words;

	/* used by the thread only */
	struct recorder_part part;
	_Atomic int64_t *written_ns; /* owned by the caller */
	int64_t taken_ns;	     /* put_ns of the last scan in the part */
	bool begun;		     /* the first part was begun */
	int failed;		     /* -errno of the disk; 0: it works */
	int64_t checked_ns;	     /* time of the last check whether files were removed */
};

/* Opens the lock's file. Only this user may open it: who can read it can hold a lock on it. A
 * descriptor; -EEXIST: it is of another user, or no plain file; or -errno. */
static int lock_file_open(const struct recorder *recorder)
{
	struct stat there;
	int fd = openat(recorder->directory, LOCK_NAME,
			O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	int err = 0;

	if (fd < 0)
		return errno == ELOOP ? -EEXIST : -errno;
	if (fstat(fd, &there))
		err = -errno;
	else if (!S_ISREG(there.st_mode) || there.st_uid != geteuid() || there.st_nlink > 1)
		err = -EEXIST;
	else
		err = file_rights_set(fd, &(struct file_rights){getegid(), 0600});
	if (!err)
		return fd;
	close(fd);
	return err;
}

static bool lock_has_name(const struct recorder *recorder)
{
	struct stat locked, named;

	return !fstat(recorder->lock, &locked) &&
	       !fstatat(recorder->directory, LOCK_NAME, &named, AT_SYMLINK_NOFOLLOW) &&
	       locked.st_ino == named.st_ino && locked.st_dev == named.st_dev;
}

/* Locks the file. 0; -EBUSY with *holder: another tsnap has it; -EEXIST: who may only read it has
 * it, from a version that let the group do that; -EAGAIN: it is to be opened again; or -errno. */
static int lock_file_take(const struct recorder *recorder, pid_t *holder)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (!fcntl(recorder->lock, F_SETLK, &lock))
		return lock_has_name(recorder) ? 0 : -EAGAIN;
	if (errno != EACCES && errno != EAGAIN)
		return -errno;
	if (fcntl(recorder->lock, F_GETLK, &lock))
		return -errno;
	*holder = lock.l_pid;
	return lock.l_type == F_WRLCK ? -EBUSY : lock.l_type == F_RDLCK ? -EEXIST : -EAGAIN;
}

/* Locks the directory. The lock belongs to the process: it is released however the process ends,
 * and a child that compiles does not inherit it. The file stays; one that others can have a lock on
 * is replaced. 0, or -errno. */
static int directory_lock(struct recorder *recorder, pid_t *holder)
{
	int err = -EAGAIN;

	for (int i = 0; i < LOCK_TRIES && (err == -EAGAIN || err == -EEXIST); i++) {
		if (recorder->lock >= 0)
			close(recorder->lock);
		recorder->lock = -1;
		if (err == -EEXIST && unlinkat(recorder->directory, LOCK_NAME, 0) &&
		    errno != ENOENT)
			return -errno;
		recorder->lock = lock_file_open(recorder);
		err = recorder->lock < 0 ? recorder->lock : lock_file_take(recorder, holder);
	}
	return err;
}

static int directory_begin(struct recorder *recorder, struct error *e)
{
	int fd = recorder->directory = output_directory(recorder->path, 0750), err;
	char by[32] = "";
	pid_t holder = 0;

	if (fd < 0)
		return error_set(e, -fd, EXIT_FAILED, "%s: %s", recorder->path, output_error(fd));
	err = directory_lock(recorder, &holder);
	if (!err)
		return 0;
	if (err != -EBUSY)
		return error_set(e, -err, EXIT_FAILED, "%s/" LOCK_NAME ": %s", recorder->path,
				 strerror(-err));
	/* pid 0: the holder is in another pid namespace */
	if (holder > 0)
		snprintf(by, sizeof(by), " with pid %d", (int)holder);
	return error_set(e, EBUSY, EXIT_FAILED,
			 "%s: another tsnap%s is already recording there: use another directory",
			 recorder->path, by);
}

static void words_add(struct recorder *recorder, const char *words)
{
	pthread_mutex_lock(&recorder->mutex);
	text_add_format(&recorder->words, "%s: %s\n", recorder->path, words);
	pthread_mutex_unlock(&recorder->mutex);
}

/* Takes lines that end with a newline. */
static void lines_take(struct recorder *recorder, struct text *lines)
{
	int length;

	pthread_mutex_lock(&recorder->mutex);
	for (const char *line = text_string(lines); *line; line += length) {
		length = (int)strcspn(line, "\n") + 1;
		text_add_format(&recorder->words, "%s: %.*s", recorder->path, length, line);
	}
	pthread_mutex_unlock(&recorder->mutex);
	text_clear(lines);
}

static void report_failed(struct recorder *recorder, int err)
{
	char words[200];

	if (recorder->failed)
		return;
	snprintf(words, sizeof(words),
		 "%s: recording has stopped; sampling goes on, and tsnap tries to write again "
		 "every %g s",
		 err == -ENOSPC ? "no space left, or none that may be used (--keep-bytes, "
				  "--keep-free)"
				: output_error(err),
		 (double)recorder->flush_us / US_PER_SECOND);
	words_add(recorder, words);
}

static void report_resumed(struct recorder *recorder)
{
	unsigned long long dropped;
	char words[100];

	if (!recorder->failed)
		return;
	pthread_mutex_lock(&recorder->mutex);
	dropped = recorder->dropped;
	recorder->dropped = 0;
	pthread_mutex_unlock(&recorder->mutex);
	snprintf(words, sizeof(words), "recording goes on; scans not recorded: %llu", dropped);
	words_add(recorder, words);
}

/* Announces a new part to the caller, except the first one, which is announced from the start. */
static void part_announce(struct recorder *recorder)
{
	struct recorder_part *part = &recorder->part;

	if (!part->fresh)
		return;
	part->fresh = false;
	pthread_mutex_lock(&recorder->mutex);
	recorder->begins |= recorder->begun;
	pthread_mutex_unlock(&recorder->mutex);
	recorder->begun = true;
}

/* Takes the lock again, or makes the directory again, if somebody has removed it. 0, or -errno. */
static int directory_hold(struct recorder *recorder)
{
	pid_t holder;
	int err, fd;

	if (lock_has_name(recorder))
		return 0;
	err = directory_lock(recorder, &holder);
	if (err != -ENOENT)
		return err;
	fd = output_directory(recorder->path, 0750);
	if (fd < 0)
		return fd;
	close(recorder->directory);
	recorder->directory = recorder->part.directory = fd;
	return directory_lock(recorder, &holder);
}

/* Reports files that were removed or cut while they were written. 0: what is written now has a
 * name; or -errno. */
static int files_check(struct recorder *recorder)
{
	int removed = recorder_part_removed(&recorder->part), err = directory_hold(recorder);
	char words[128];

	recorder->checked_ns = clock_monotonic_ns();
	if (removed) {
		snprintf(words, sizeof(words),
			 "somebody removed or cut %d of the files being written, with their rows; "
			 "recording goes on in new files",
			 removed);
		words_add(recorder, words);
	}
	return err;
}

static int part_flush(struct recorder *recorder)
{
	int err = files_check(recorder);

	if (!err)
		err = recorder_part_flush(&recorder->part, clock_utc_us());
	lines_take(recorder, &recorder->part.removed.words);
	if (err)
		report_failed(recorder, err);
	else
		report_resumed(recorder);
	if (!err && recorder->taken_ns)
		*recorder->written_ns = recorder->taken_ns;
	recorder->failed = err;
	part_announce(recorder);
	return err;
}

static void scan_free(struct queued_scan *scan)
{
	if (!scan)
		return;
	for (int kind = 0; kind < RECORD_KIND_COUNT; kind++)
		text_done(&scan->rows[kind]);
	free(scan);
}

/* Gets an empty scan. Takes the mutex. */
static struct queued_scan *scan_begin(struct recorder *recorder)
{
	struct queued_scan *spare;

	pthread_mutex_lock(&recorder->mutex);
	spare = recorder->spare;
	recorder->spare = NULL;
	pthread_mutex_unlock(&recorder->mutex);
	return spare ? spare : memory_get(sizeof(*spare));
}

/* Keeps a scan for scan_begin(): allocating megabytes for each scan would cost more than filling
 * them. Takes the mutex. */
static void scan_end(struct recorder *recorder, struct queued_scan *scan)
{
	struct queued_scan *spare;

	for (int kind = 0; kind < RECORD_KIND_COUNT; kind++)
		text_clear(&scan->rows[kind]);
	scan->next = NULL;
	pthread_mutex_lock(&recorder->mutex);
	spare = recorder->spare;
	recorder->spare = scan;
	pthread_mutex_unlock(&recorder->mutex);
	scan_free(spare);
}

/* Adds a queued scan to its part. False: the rows before it can't be written. */
static bool scan_take(struct recorder *recorder, const struct queued_scan *scan)
{
	struct recorder_part *part = &recorder->part;
	int err;

	if (!recorder_part_takes(part, scan->time_us)) {
		/* the numbers of an hour may be used up: its last rows then go to the next */
		if (part_flush(recorder) && (recorder->failed != -EOVERFLOW ||
					     part->name.hour_us == part_hour(scan->time_us)))
			return false;
		err = recorder_part_begin(part, scan->time_us);
		if (err) {
			report_failed(recorder, err);
			recorder->failed = err;
			return false;
		}
		part_announce(recorder);
	}
	for (int kind = 0; kind < RECORD_KIND_COUNT; kind++)
		recorder_part_add(part, (enum record_kind)kind, scan->time_us, &scan->rows[kind]);
	recorder->taken_ns = recorder->written_ns ? scan->put_ns : 0;
	return true;
}

/* Takes scans out of the queue until it is empty, or the disk fails. */
static void queue_empty(struct recorder *recorder)
{
	for (;;) {
		struct queued_scan *scan;

		pthread_mutex_lock(&recorder->mutex);
		scan = recorder->first;
		pthread_mutex_unlock(&recorder->mutex);
		if (!scan || !scan_take(recorder, scan))
			return;
		pthread_mutex_lock(&recorder->mutex);
		recorder->first = scan->next;
		if (!recorder->first)
			recorder->last = &recorder->first;
		recorder->queued -= scan->bytes;
		pthread_mutex_unlock(&recorder->mutex);
		scan_end(recorder, scan);
	}
}

/* Waits for a scan, the end, or that time. True: the recorder is to end. */
static bool wait_until(struct recorder *recorder, int64_t until_ns)
{
	struct timespec until = {until_ns / NS_PER_SECOND, until_ns % NS_PER_SECOND};
	bool stopped;
	int err = 0;

	pthread_mutex_lock(&recorder->mutex);
	/* while the disk fails, new scans do not wake the thread */
	while (!recorder->stopped && !err && (!recorder->first || recorder->failed))
		err = pthread_cond_timedwait(&recorder->wakes, &recorder->mutex, &until);
	stopped = recorder->stopped;
	pthread_mutex_unlock(&recorder->mutex);
	return stopped;
}

static void *recorder_run(void *of)
{
	struct recorder *recorder = of;
	int64_t flush_ns = recorder->flush_us * NS_PER_US, next_ns = 0;
	bool stopped = false;

	while (!stopped) {
		int64_t now_ns = clock_monotonic_ns(), check_ns;

		if (next_ns <= now_ns)
			next_ns = now_ns + flush_ns;
		check_ns = recorder->checked_ns + CHECK_NS;
		stopped = wait_until(recorder, next_ns < check_ns ? next_ns : check_ns);
		if (!recorder->failed || stopped)
			queue_empty(recorder);
		now_ns = clock_monotonic_ns();
		if (!stopped && now_ns < next_ns) {
			if (now_ns >= check_ns)
				files_check(recorder);
			continue;
		}
		if (!part_flush(recorder))
			queue_empty(recorder);
	}
	if (!recorder->failed)
		part_flush(recorder);
	return NULL;
}

static void recorder_free(struct recorder *recorder)
{
	for (struct queued_scan *scan = recorder->first, *next; scan; scan = next) {
		next = scan->next;
		scan_free(scan);
	}
	scan_free(recorder->scan);
	scan_free(recorder->spare);
	recorder_part_done(&recorder->part);
	text_done(&recorder->words);
	pthread_mutex_destroy(&recorder->mutex);
	pthread_cond_destroy(&recorder->wakes);
	if (recorder->lock >= 0)
		close(recorder->lock);
	if (recorder->directory >= 0)
		close(recorder->directory);
	free(recorder);
}

static void part_init(struct recorder *recorder, const struct recorder_options *options)
{
	const struct group *group = getgrnam(GROUP_NAME);
	struct recorder_part *part = &recorder->part;

	part->directory = recorder->directory;
	part->rights = (struct file_rights){group ? group->gr_gid : getegid(), mode_masked(0640)};
	part->retention = options->retention;
	part_host(options->host, part->name.host);
	for (int kind = 0; kind < RECORD_KIND_COUNT; kind++) {
		struct text line = {0};

		if (!options->headers[kind])
			continue;
		text_add_string(&line, options->headers[kind]);
		text_add_char(&line, '\n');
		part->headers[kind] = text_take(&line);
	}
}

int recorder_open(const struct recorder_options *options, struct recorder **opened, struct error *e)
{
	struct recorder *recorder = memory_get(sizeof(*recorder));
	pthread_condattr_t clock;
	int err;

	recorder->path = options->path;
	recorder->flush_us = options->flush_us;
	recorder->written_ns = options->written_ns;
	recorder->queue_bytes = options->queue_bytes ? options->queue_bytes : QUEUE_BYTES_DEFAULT;
	recorder->directory = recorder->lock = -1;
	recorder->begins = true;
	recorder->last = &recorder->first;
	recorder->scan = memory_get(sizeof(*recorder->scan));
	pthread_mutex_init(&recorder->mutex, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&recorder->wakes, &clock);
	pthread_condattr_destroy(&clock);
	err = directory_begin(recorder, e);
	if (!err) {
		part_init(recorder, options);
		err = thread_begin(&recorder->thread, recorder_run, recorder);
		if (err)
			error_set(e, -err, EXIT_FAILED, "the writer thread can't be started: %s",
				  strerror(-err));
	}
	if (err) {
		recorder_free(recorder);
		return err;
	}
	*opened = recorder;
	return 0;
}

struct text *recorder_rows(struct recorder *recorder, enum record_kind kind)
{
	return &recorder->scan->rows[kind];
}

void recorder_put(struct recorder *recorder, int64_t time_us)
{
	struct queued_scan *scan = recorder->scan;
	bool has[RECORD_KIND_COUNT], fits = true;

	scan->time_us = time_us;
	scan->put_ns = clock_monotonic_ns();
	scan->bytes = sizeof(*scan);
	for (int kind = 0; kind < RECORD_KIND_COUNT; kind++) {
		has[kind] = scan->rows[kind].length;
		scan->bytes += scan->rows[kind].capacity;
		fits &= scan->rows[kind].length < FRAME_RAW_MAX - PART_FRAME_BYTES;
	}
	pthread_mutex_lock(&recorder->mutex);
	fits &= recorder->queued + scan->bytes <= recorder->queue_bytes || !recorder->first;
	if (fits) {
		*recorder->last = scan;
		recorder->last = &scan->next;
		recorder->queued += scan->bytes;
		pthread_cond_signal(&recorder->wakes);
	} else {
		recorder->dropped++;
		recorder->begins = true;
	}
	pthread_mutex_unlock(&recorder->mutex);
	if (!fits)
		scan_end(recorder, scan);
	for (int kind = 0; kind < RECORD_KIND_COUNT; kind++)
		if (has[kind])
			recorder->missing[kind] = fits ? 0 : recorder->missing[kind] + 1;
	recorder->scan = scan_begin(recorder);
}

void recorder_miss(struct recorder *recorder, enum record_kind kind, int64_t count)
{
	recorder->missing[kind] += (uint64_t)count;
}

uint64_t recorder_missing(const struct recorder *recorder, enum record_kind kind)
{
	return recorder->missing[kind];
}

bool recorder_begins(struct recorder *recorder)
{
	bool begins;

	pthread_mutex_lock(&recorder->mutex);
	begins = recorder->begins;
	recorder->begins = false;
	pthread_mutex_unlock(&recorder->mutex);
	return begins;
}

void recorder_words(struct recorder *recorder, struct text *to)
{
	pthread_mutex_lock(&recorder->mutex);
	if (recorder->words.length)
		text_add(to, recorder->words.bytes, recorder->words.length);
	text_clear(&recorder->words);
	pthread_mutex_unlock(&recorder->mutex);
}

/* Number of scans that are in memory and not on the disk. */
static uint64_t scans_left(const struct recorder *recorder)
{
	const struct text *rows = &recorder->part.rows[RECORD_SCANS];
	uint64_t left = recorder->dropped;

	for (const struct queued_scan *scan = recorder->first; scan; scan = scan->next)
		left++;
	for (size_t i = 0; i < rows->length; i++)
		left += rows->bytes[i] == '\n';
	return left;
}

int recorder_close(struct recorder *recorder, struct error *e)
{
	int err;

	pthread_mutex_lock(&recorder->mutex);
	recorder->stopped = true;
	pthread_cond_signal(&recorder->wakes);
	pthread_mutex_unlock(&recorder->mutex);
	pthread_join(recorder->thread, NULL);
	err = recorder->failed;
	if (err)
		error_set(e, -err, EXIT_FAILED, "%s: %s: scans that were not recorded: %llu",
			  recorder->path, strerror(-err), (unsigned long long)scans_left(recorder));
	recorder_free(recorder);
	return err;
}
