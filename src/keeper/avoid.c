/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "keeper/avoid.h"
#include "base/clock.h"
#include "base/index.h"
#include "base/memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMED_MAX 8 /* limit of names in the footer; the others are only counted */
#define GIVEN_UP_MAX 64

#define ANSWER_NS (1 * NS_PER_MS) /* age up to which an answer holds: about as long as a scan */
#define ANSWERS_MAX 16384
/* The footer names processes that were locked for a while. */
#define LOCKED_NS (10 * NS_PER_SECOND)
#define LOCKED_LEAST_NS (100 * NS_PER_MS)

/* A process that only maps memory is asked for again after some 50 us, but not where many processes
 * are locked: scans must not be late because of them. */
#define BUSY_PAUSE_NS 50000
#define BUSY_PAUSES 4
#define BUSY_PERIOD_NS (4 * NS_PER_MS) /* least time between two processes asked for again */

/* A process that was met by a look that did not end. */
struct given_up {
	DIR *tasks; /* of the thread that was met: a later process has no thread there */
	int64_t pid;
	const char *why;
};

struct answer {
	int64_t id;		     /* what was asked for */
	int64_t asked_ns;	     /* time of the last answer */
	int64_t first_ns, locked_ns; /* times of answers that it is locked, or avoided */
	struct avoid_state state;    /* at the last of these */
};

static struct given_up given_up[GIVEN_UP_MAX];
static size_t given_up_count;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of answers, and locked_count */
static void (*state_ask)(int64_t id, int fd, struct avoid_state *state);
static struct keyed answers; /* by id */
static uint64_t locked_count;
static _Atomic int64_t busy_ns; /* time when a process was asked for again */

static struct {
	char *directory;
	const char *why;
} files[AVOID_FILES_MAX];
static size_t files_count;

static bool given_up_has(const struct given_up *process, int64_t id)
{
	char name[24];

	snprintf(name, sizeof(name), "%lld", (long long)id);
	return !faccessat(dirfd(process->tasks), name, F_OK, 0);
}

static const struct given_up *given_up_find(int64_t id)
{
	for (size_t i = 0; i < given_up_count; i++)
		if (given_up_has(&given_up[i], id))
			return &given_up[i];
	return NULL;
}

bool avoid_process(int64_t id, const char *why)
{
	struct given_up fresh = {.why = why};
	struct dirent *entry;
	size_t at = 0;
	char path[64];

	if (given_up_find(id))
		return false;
	while (at < given_up_count && given_up_has(&given_up[at], given_up[at].pid))
		at++;
	if (at == GIVEN_UP_MAX)
		return false;
	snprintf(path, sizeof(path), "/proc/%lld/task", (long long)id);
	fresh.tasks = opendir(path);
	if (!fresh.tasks) /* it has ended */
		return true;
	/* the first thread is the process; a read of /proc/TID/status may not end */
	while (!fresh.pid && (entry = readdir(fresh.tasks)))
		fresh.pid = strtoll(entry->d_name, NULL, 10);
	if (at < given_up_count)
		closedir(given_up[at].tasks);
	else
		given_up_count++;
	given_up[at] = fresh;
	return true;
}

bool avoid_files(const char *directory, const char *why)
{
	if (avoids_file(directory) || files_count == AVOID_FILES_MAX)
		return false;
	/* a user with many such files could go on forever: then no file is opened any more */
	if (files_count >= AVOID_FILES_MAX - 1) {
		directory = "/";
		why = "too many files that hang when they are read";
	}
	files[files_count].directory = memory_text(directory, strlen(directory));
	files[files_count++].why = why;
	return true;
}

void avoid_ask_with(void (*ask)(int64_t id, int fd, struct avoid_state *state))
{
	state_ask = ask;
}

static void state_read(int64_t id, int64_t now_ns, struct avoid_state *state)
{
	const struct timespec pause = {0, BUSY_PAUSE_NS};
	const struct given_up *process = given_up_find(id);
	uint64_t holder;
	bool same = false; /* one of them had the lock all the time */

	*state = (struct avoid_state){.why = process ? process->why : NULL};
	if (process || !state_ask)
		return;
	state_ask(id, -1, state);
	if (!state->why || now_ns - busy_ns < BUSY_PERIOD_NS)
		return;
	busy_ns = now_ns;
	for (int i = 0; i < BUSY_PAUSES && state->why; i++) {
		nanosleep(&pause, NULL);
		holder = state->holder;
		state_ask(id, -1, state);
		same |= state->holder == holder;
	}
	if (!same)
		state->why = NULL; /* a look would wait, but not for long */
}

static void answer_keep(int64_t id, const struct avoid_state *state, int64_t now_ns)
{
	struct answer *answer;

	if (answers.count == ANSWERS_MAX)
		keyed_empty(&answers);
	answer = keyed_put(&answers, sizeof(*answer), (uint64_t)id, NULL);
	answer->id = id;
	answer->asked_ns = now_ns;
	if (!state->why) {
		/* one that was locked for a moment only may be so again: that is no long lock */
		if (answer->locked_ns - answer->first_ns < LOCKED_LEAST_NS)
			answer->locked_ns = 0;
		return;
	}
	if (now_ns - answer->locked_ns > LOCKED_NS)
		answer->first_ns = now_ns;
	answer->locked_ns = now_ns;
	answer->state = *state;
}

static bool is_avoided(const struct avoid_state *state, bool map)
{
	return state->why && (map || !state->map_only);
}

/* map: the look waits for the memory map, too. free_ns: age up to which an answer that the process
 * is not locked holds. */
static bool process_avoided(int64_t id, bool map, int64_t free_ns)
{
	int64_t now_ns;
	const struct answer *answer;
	struct avoid_state state;
	bool fresh, locked = false, avoided = false;

	if (!state_ask && !given_up_count)
		return false;
	now_ns = clock_monotonic_ns();
	pthread_mutex_lock(&mutex);
	answer = keyed_find(&answers, sizeof(*answer), (uint64_t)id);
	if (answer)
		locked = answer->locked_ns == answer->asked_ns;
	fresh = answer && now_ns - answer->asked_ns < (locked ? ANSWER_NS : free_ns);
	avoided = locked && is_avoided(&answer->state, map);
	pthread_mutex_unlock(&mutex);
	if (fresh)
		return avoided;
	state_read(id, now_ns, &state);
	pthread_mutex_lock(&mutex);
	answer_keep(id, &state, now_ns);
	if (state.pid && state.pid != id)
		answer_keep(state.pid, &state, now_ns);
	avoided = is_avoided(&state, map);
	locked_count += avoided && state.pid;
	pthread_mutex_unlock(&mutex);
	return avoided;
}

bool avoids_process(int64_t id)
{
	return process_avoided(id, false, ANSWER_NS);
}

bool avoids_process_file(int64_t id, const char *name)
{
	if (strcmp(name, "comm") && strcmp(name, "wchan"))
		return process_avoided(id, avoid_waits_for_map(name), ANSWER_NS);
	return given_up_count && given_up_find(id);
}

bool avoid_waits_for_map(const char *name)
{
	static const char *const names[] = {"maps", "smaps",   "pagemap", "map_files",
					    "mem",  "cmdline", "environ"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

bool avoids_memory(int64_t id)
{
	return process_avoided(id, true, 0);
}

bool avoids_fdinfo(int64_t id, int fd)
{
	struct avoid_state state = {.why = NULL};

	if (state_ask)
		state_ask(id, fd, &state);
	pthread_mutex_lock(&mutex);
	locked_count += !!state.why;
	pthread_mutex_unlock(&mutex);
	return state.why;
}

bool avoids_file(const char *path)
{
	for (size_t i = 0; i < files_count; i++) {
		const char *directory = files[i].directory;
		size_t length = strlen(directory);

		if (!strncmp(path, directory, length) &&
		    (!path[length] || path[length] == '/' || directory[length - 1] == '/'))
			return true;
	}
	return false;
}

bool avoid_is_user_mount(int64_t pid, int fd)
{
	struct avoid_state state = {.user_mount = false};

	if (state_ask)
		state_ask(pid, fd, &state);
	return state.user_mount;
}

uint64_t avoid_locked_count(void)
{
	return locked_count;
}

/* Adds what is before the next of a list of words. False: it is only counted. */
static bool words_next(struct text *words, size_t at)
{
	text_add_string(words, at == NAMED_MAX ? ", ..." : at && at < NAMED_MAX ? ", " : "");
	return at < NAMED_MAX;
}

/* True if a process was locked for a while, and not just busy. One that was not looked at again is
 * asked for. */
static bool locked_for_long(struct answer *answer, int64_t now_ns)
{
	struct avoid_state state;

	if (answer->state.pid != answer->id || now_ns - answer->locked_ns > LOCKED_NS)
		return false;
	if (now_ns - answer->locked_ns >= LOCKED_LEAST_NS && state_ask) {
		state_ask(answer->id, -1, &state);
		if (state.why)
			answer->locked_ns = now_ns;
	}
	return answer->locked_ns - answer->first_ns >= LOCKED_LEAST_NS;
}

size_t avoid_processes_text(struct text *words)
{
	int64_t now_ns = clock_monotonic_ns();
	struct answer *answer;
	size_t count = 0;

	for (size_t i = 0; i < given_up_count; i++)
		if (given_up_has(&given_up[i], given_up[i].pid) && words_next(words, count++))
			text_add_format(words, "%lld (%s)", (long long)given_up[i].pid,
					given_up[i].why);
	pthread_mutex_lock(&mutex);
	answer = answers.rows;
	for (size_t i = 0; i < answers.count; i++)
		if (locked_for_long(&answer[i], now_ns) && words_next(words, count++))
			text_add_format(words, "%lld (%s)", (long long)answer[i].id,
					answer[i].state.why);
	pthread_mutex_unlock(&mutex);
	return count;
}

size_t avoid_files_text(struct text *words)
{
	for (size_t i = 0; i < files_count; i++)
		if (words_next(words, i))
			text_add_format(words, "%s (%s)", files[i].directory, files[i].why);
	return files_count;
}
