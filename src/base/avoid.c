/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/avoid.h"
#include "base/clock.h"
#include "base/keyed.h"
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
/* Processes found locked are kept for the footer; it names those that were it for a while. */
#define LOCKED_MAX 4096
#define LOCKED_NS (10 * NS_PER_SECOND)
#define LOCKED_LEAST_NS (100 * NS_PER_MS)

/* A process that only maps memory is asked for again after some 50 us, but not where many processes
 * are locked: scans must not be late because of them. */
#define BUSY_PAUSE_NS 50000
#define BUSY_PAUSES 4
#define BUSY_PERIOD_NS (100 * NS_PER_MS)
#define BUSY_PAUSES_MAX 16 /* of all processes in a period */

/* A process that was met by a look that did not end. */
struct given_up {
	int tasks; /* descriptor of its /proc/PID/task, where a later process has no thread */
	int64_t pid;
	const char *why;
};

struct answer {
	int64_t asked_ns;
	bool avoided;
};

struct locked {
	int64_t pid;
	int64_t first_ns, seen_ns; /* times when it was found locked */
	const char *why;
};

static struct given_up given_up[GIVEN_UP_MAX];
static size_t given_up_count;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of all members */
static struct {
	void (*ask)(int64_t id, struct avoid_state *state);
	struct keyed answers, locked; /* by id; by pid */
	uint64_t locked_count;
	int64_t busy_begun_ns;
	int busy_pauses;
} asked;

static struct avoided_files {
	char *directories[AVOID_FILES_MAX];
	const char *why[AVOID_FILES_MAX];
	size_t count;
} files;
static bool users;
static _Atomic uint64_t own_count, *requested_count = &own_count;

/* Adds "4711 (why)", if at, its index, is below NAMED_MAX. */
static void words_add(struct text *words, size_t at, const char *name, const char *why)
{
	if (at < NAMED_MAX)
		text_add_format(words, "%s%s (%s)", at ? ", " : "", name, why);
	else if (at == NAMED_MAX)
		text_add_string(words, ", ...");
}

/* The process of a thread, found by file names alone: a read of /proc/TID/status may not end. */
static int64_t process_of(int64_t tid)
{
	char path[64];
	struct dirent *entry;
	int64_t found = 0;
	DIR *proc = opendir("/proc");

	while (proc && !found && (entry = readdir(proc))) {
		long long pid = strtoll(entry->d_name, NULL, 10);

		snprintf(path, sizeof(path), "/proc/%lld/task/%lld", pid, (long long)tid);
		if (pid > 0 && !access(path, F_OK))
			found = pid;
	}
	if (proc)
		closedir(proc);
	return found ? found : tid;
}

static bool given_up_has(const struct given_up *process, int64_t id)
{
	char name[24];

	snprintf(name, sizeof(name), "%lld", (long long)id);
	return !faccessat(process->tasks, name, F_OK, 0);
}

static const struct given_up *given_up_find(int64_t id)
{
	for (size_t i = 0; i < given_up_count; i++)
		if (given_up_has(&given_up[i], id))
			return &given_up[i];
	return NULL;
}

static void given_up_sweep(void)
{
	size_t left = 0;

	for (size_t i = 0; i < given_up_count; i++)
		if (given_up_has(&given_up[i], given_up[i].pid))
			given_up[left++] = given_up[i];
		else
			close(given_up[i].tasks);
	given_up_count = left;
}

bool avoid_process(int64_t id, const char *why)
{
	struct given_up fresh = {.pid = process_of(id), .why = why};
	char path[64];

	given_up_sweep();
	if (given_up_find(fresh.pid) || given_up_count == GIVEN_UP_MAX)
		return false;
	snprintf(path, sizeof(path), "/proc/%lld/task", (long long)fresh.pid);
	fresh.tasks = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fresh.tasks >= 0) /* it has not ended */
		given_up[given_up_count++] = fresh;
	return true;
}

bool avoid_files(const char *directory, const char *why)
{
	if (avoids_file(directory))
		return false;
	/* a user with many such files could go on forever: then no file is opened any more */
	if (files.count >= AVOID_FILES_MAX - 1) {
		directory = "/";
		why = "too many files that hang when they are read";
	}
	files.directories[files.count] = memory_text(directory, strlen(directory));
	files.why[files.count++] = why;
	return true;
}

void avoid_users(void)
{
	users = true;
}

void avoid_users_requested(bool begins)
{
	/* the count may be odd after a worker that was given up */
	*requested_count = (*requested_count | 1) + !begins;
}

void avoid_users_count(_Atomic uint64_t *count)
{
	requested_count = count;
}

void avoid_ask_with(void (*ask)(int64_t id, struct avoid_state *state))
{
	asked.ask = ask;
}

bool avoid_asks(void)
{
	return asked.ask;
}

/* Takes one of the pauses that all processes may have. */
static bool busy_pause(int64_t now_ns)
{
	const struct timespec pause = {0, BUSY_PAUSE_NS};
	bool granted;

	pthread_mutex_lock(&mutex);
	if (now_ns - asked.busy_begun_ns >= BUSY_PERIOD_NS) {
		asked.busy_begun_ns = now_ns;
		asked.busy_pauses = 0;
	}
	granted = asked.busy_pauses++ < BUSY_PAUSES_MAX;
	pthread_mutex_unlock(&mutex);
	if (granted)
		nanosleep(&pause, NULL);
	return granted;
}

static void state_read(int64_t id, int64_t now_ns, struct avoid_state *state)
{
	const struct given_up *process = given_up_find(id);
	uint64_t holder;
	int holders = 1;

	*state = (struct avoid_state){0};
	if (process)
		*state = (struct avoid_state){.why = process->why};
	if (process || !asked.ask)
		return;
	asked.ask(id, state);
	for (int i = 0; i < BUSY_PAUSES && state->why && busy_pause(now_ns); i++) {
		holder = state->holder;
		asked.ask(id, state);
		holders += state->holder != holder;
	}
	if (holders > BUSY_PAUSES)
		state->why = NULL; /* a look would wait, but not for long */
}

/* Keeps an answer. */
static void state_keep(int64_t id, const struct avoid_state *state, int64_t now_ns)
{
	struct answer *answer;
	struct locked *locked;

	if (asked.answers.count == ANSWERS_MAX)
		keyed_empty(&asked.answers);
	answer = keyed_put(&asked.answers, sizeof(*answer), (uint64_t)id, NULL);
	*answer = (struct answer){now_ns, state->why};
	if (!state->why || !state->pid)
		return;
	asked.locked_count++;
	if (asked.locked.count == LOCKED_MAX)
		keyed_empty(&asked.locked);
	locked = keyed_put(&asked.locked, sizeof(*locked), (uint64_t)state->pid, NULL);
	if (now_ns - locked->seen_ns > LOCKED_NS)
		locked->first_ns = now_ns;
	locked->pid = state->pid;
	locked->seen_ns = now_ns;
	locked->why = state->why;
}

bool avoids_process(int64_t id)
{
	int64_t now_ns;
	const struct answer *answer;
	struct avoid_state state;
	bool fresh, avoided;

	if (!asked.ask && !given_up_count)
		return false;
	now_ns = clock_monotonic_ns();
	pthread_mutex_lock(&mutex);
	answer = keyed_find(&asked.answers, sizeof(*answer), (uint64_t)id);
	fresh = answer && now_ns - answer->asked_ns < ANSWER_NS;
	avoided = fresh && answer->avoided;
	pthread_mutex_unlock(&mutex);
	if (fresh)
		return avoided;
	state_read(id, now_ns, &state);
	pthread_mutex_lock(&mutex);
	state_keep(id, &state, now_ns);
	pthread_mutex_unlock(&mutex);
	return state.why;
}

bool avoids_file(const char *path)
{
	for (size_t i = 0; i < files.count; i++) {
		const char *directory = files.directories[i];
		size_t length = strlen(directory);

		if (!strncmp(path, directory, length) &&
		    (!path[length] || path[length] == '/' || directory[length - 1] == '/'))
			return true;
	}
	return false;
}

bool avoids_users(void)
{
	return users;
}

uint64_t avoid_locked_count(void)
{
	return asked.locked_count;
}

static void process_add(struct text *words, size_t at, int64_t pid, const char *why)
{
	char name[24];

	snprintf(name, sizeof(name), "%lld", (long long)pid);
	words_add(words, at, name, why);
}

/* True if a process was locked for a while, and not just busy. One that was not looked at again is
 * asked for. */
static bool locked_for_long(struct locked *locked, int64_t now_ns)
{
	struct avoid_state state;

	if (now_ns - locked->seen_ns > LOCKED_NS)
		return false;
	if (now_ns - locked->seen_ns >= LOCKED_LEAST_NS && asked.ask) {
		asked.ask(locked->pid, &state);
		if (state.why)
			locked->seen_ns = now_ns;
	}
	return locked->seen_ns - locked->first_ns >= LOCKED_LEAST_NS;
}

size_t avoid_processes_text(struct text *words)
{
	int64_t now_ns = clock_monotonic_ns();
	struct locked *locked;
	size_t count = 0;

	for (size_t i = 0; i < given_up_count; i++)
		process_add(words, count++, given_up[i].pid, given_up[i].why);
	pthread_mutex_lock(&mutex);
	locked = asked.locked.rows;
	for (size_t i = 0; i < asked.locked.count; i++)
		if (locked_for_long(&locked[i], now_ns))
			process_add(words, count++, locked[i].pid, locked[i].why);
	pthread_mutex_unlock(&mutex);
	return count;
}

size_t avoid_files_text(struct text *words)
{
	for (size_t i = 0; i < files.count; i++)
		words_add(words, i, files.directories[i], files.why[i]);
	return files.count;
}
