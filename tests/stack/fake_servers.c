/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fake_servers THREADS NAP_MS, in a file called postgres, mariadbd or php-fpm: a server of that
 * name whose sessions lie, each in its own way, in all that tsnap reads of such a program. Threads
 * of mariadbd, processes of the others: they sleep, wake up and sleep again. Prints "ready TID" of
 * its first thread and runs until standard input ends.
 *
 * The program has the symbols of all three, and each session looks like one: its process' id or its
 * thread's pointer is where it has to be. What they point to are texts without an end, of a size
 * that is not there, at addresses that are not there, in memory without access, in a file that has
 * been cut, and at the pointer itself; locks whose lists of holders lead in circles, and from one
 * session to the next; frames that call each other. A thread changes all of it as fast as it can.
 * postgres needs global/pg_control in its directory, by which its version is known. If started by
 * root, it gives up its rights.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rights.h"

#define STACK_BYTES (128 << 10)
#define TEXT_BYTES (1 << 20)
#define LIES 8
#define WORDS 128			       /* of each structure */
#define CALLED __attribute__((noinline, used)) /* a function whose code is read */

struct sized_text {
	char *text;
	size_t bytes;
};

/* MariaDB: where the members are is said by the functions below. */
struct session {
	const void *table;
	struct sized_text query, database;
	void *thread;
	uint64_t id;
	struct security {
		char *user;
	} * security;
	char *state;
	int command;
};

const void *_ZTV3THD[8];
struct sized_text command_name[256];
static __thread struct session *current;

CALLED struct session *_current_thd(void)
{
	return current;
}

CALLED struct sized_text *thd_query_string(struct session *session)
{
	return &session->query;
}

CALLED uint64_t thd_get_thread_id(const struct session *session)
{
	return session->id;
}

CALLED const char *thd_user_name(struct session *session)
{
	return session->security->user;
}

CALLED struct sized_text *thd_current_db(struct session *session)
{
	return &session->database;
}

CALLED int thd_current_command(struct session *session)
{
	return session->command;
}

/* PostgreSQL 15: numbers are places of members in words. */
int MyProcPid;
volatile uint64_t *MyBEEntry, *MyProc, *MyProcPort;
char *debug_query_string, *application_name;

/* PHP */
uint64_t sapi_globals[WORDS], executor_globals[WORDS];

static char *texts[LIES];
static uint64_t *shared; /* structures that all processes of postgres see */
static long nap_ms;

static void texts_make(void)
{
	int fd = memfd_create("cut", 0);

	for (int lie = 0; lie < LIES; lie++)
		texts[lie] = mmap(NULL, TEXT_BYTES, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(texts[0], 0xff, TEXT_BYTES);
	memset(texts[1], 0x1b, TEXT_BYTES);
	texts[2] = (char *)(UINTPTR_MAX - 3);
	texts[3] = (char *)0x4141414141414141;
	mprotect(texts[4], TEXT_BYTES, PROT_NONE);
	memset(texts[5], '\'',
	       TEXT_BYTES); /* a literal that does not end, up to the end of memory */
	munmap(texts[5] + 4096, TEXT_BYTES - 4096);
	texts[5] += 4096 - 7;
	texts[6] = (char *)&debug_query_string;
	if (fd < 0 || ftruncate(fd, 8192))
		exit(EXIT_FAILURE);
	texts[7] = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	texts[7][4096] = 'x';
	if (ftruncate(fd, 1))
		exit(EXIT_FAILURE);
	texts[7] += 4096;
}

static void nap(void)
{
	const struct timespec time = {nap_ms / 1000, nap_ms % 1000 * 1000000};

	nanosleep(&time, NULL);
}

/* --- MariaDB */

static struct session *sessions;
static long sessions_count;

static void session_lie(struct session *session, unsigned int lie)
{
	static const size_t sizes[] = {SIZE_MAX, 1023, 1024, TEXT_BYTES, UINT32_MAX, 7, 1, 4096};

	session->query = (struct sized_text){texts[lie % LIES], sizes[(lie / 3) % LIES]};
	session->database = (struct sized_text){texts[(lie + 1) % LIES], sizes[lie % LIES]};
	session->security = (struct security *)texts[(lie + 2) % LIES];
	/* among the program's own constants, too */
	session->state = lie & 8 ? (char *)command_name + lie : texts[(lie + 3) % LIES];
	session->command = (int)(lie * 2654435761U % (lie & 16 ? UINT32_MAX : 300));
}

static void *session_run(void *arg)
{
	struct session *session = arg;

	session->thread = (void *)pthread_self();
	session->table = _ZTV3THD + 2;
	current = session;
	for (;;)
		nap();
	return NULL;
}

static void mariadb_run(long threads)
{
	pthread_attr_t small;
	pthread_t thread;

	sessions = calloc((size_t)threads, sizeof(*sessions));
	sessions_count = threads;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK_BYTES);
	for (long i = 0; i < threads; i++) {
		session_lie(&sessions[i], (unsigned int)i);
		if (pthread_create(&thread, &small, session_run, &sessions[i]))
			exit(EXIT_FAILURE);
	}
}

/* --- PostgreSQL */

#define ENTRY_WORDS 54 /* PgBackendStatus */
#define PROC_WORDS 110 /* PGPROC */
#define SESSION_WORDS 256

static uint64_t *structures_of(long session)
{
	return shared + session * SESSION_WORDS;
}

static void postgres_lie(long session, long count, unsigned int lie)
{
	uint64_t *entry = structures_of(session), *proc = entry + ENTRY_WORDS;
	uint64_t *lock = proc + PROC_WORDS, *holder = lock + 16;
	uint64_t *next = structures_of((session + 1) % count) + ENTRY_WORDS;

	((uint32_t *)entry)[0] += lie & 1 ? 1 : 2; /* changes all the time, or never ends */
	((uint32_t *)entry)[1] = (uint32_t)getpid();
	((uint32_t *)entry)[58] = lie % 12;
	entry[30] = entry[31] = (uintptr_t)texts[lie % LIES];
	((uint32_t *)proc)[16] = (uint32_t)getpid();
	((uint32_t *)proc)[178] = lie * 0x01000003;
	proc[14] = (uintptr_t)(lie % 5 ? (char *)lock : texts[lie % LIES]);
	((uint32_t *)proc)[32] = lie % 9;
	/* holders in a circle that does not come back to the lock, and a queue likewise */
	lock[3] = lock[4] = (uintptr_t)(holder + 4);
	lock[5] = lock[6] = (uintptr_t)next;
	holder[0] = (uintptr_t)lock;
	holder[1] = (uintptr_t)next;
	holder[2] = lie;
	((uint32_t *)holder)[6] = UINT32_MAX;
	holder[4] = holder[5] = lie & 2 ? (uintptr_t)(holder + 4) : (uintptr_t)(lock + 3);
	next[0] = next[1] = (uintptr_t)proc;
	debug_query_string = texts[(lie + 1) % LIES];
	application_name = texts[(lie + 2) % LIES];
	MyProcPort = (uint64_t *)(lie & 4 ? texts[lie % LIES] : (char *)proc);
	if (lie % 7 == 6)
		MyBEEntry = (uint64_t *)texts[lie % LIES];
	else
		MyBEEntry = entry;
	MyProc = proc;
	MyProcPid = getpid();
}

/* --- PHP */

static void php_lie(unsigned int lie)
{
	static uint64_t frames[2][8], function[4], class[4], name[4];
	unsigned int place = 3 + lie % 60;

	memset(executor_globals, 0, sizeof(executor_globals));
	sapi_globals[0] = 1;
	sapi_globals[1] = (uintptr_t)(lie & 1 ? "GET" : texts[lie % LIES]);
	sapi_globals[5] = (uintptr_t)texts[(lie + 1) % LIES];
	sapi_globals[6] = (uintptr_t)(lie & 2 ? "/shop?of=me" : texts[(lie + 2) % LIES]);
	executor_globals[place] = 262144; /* the size of a page of the stack */
	executor_globals[place - 1] = 4096;
	executor_globals[place - 2] = executor_globals[place - 3] = 8192;
	executor_globals[place + 1] = (uintptr_t)frames[0];
	for (int i = 0; i < 2; i++) {
		frames[i][3] = lie & 1 ? (uintptr_t)function : 0;
		frames[i][6] = lie & 2 ? (uintptr_t)frames[!i] : (uintptr_t)texts[lie % LIES];
	}
	function[0] = 2;
	function[1] = lie & 4 ? (uintptr_t)name : (uintptr_t)texts[lie % LIES];
	function[2] = lie & 8 ? (uintptr_t) class : (uintptr_t)function;
	class[1] = lie & 16 ? (uintptr_t)name : (uintptr_t) class;
	name[2] = lie & 32 ? UINT64_MAX : lie % 200;
}

/* --- */

enum kind { MARIADB, POSTGRES, PHP };

struct process {
	enum kind kind;
	long session, count;
};

static void *lies_change(void *arg)
{
	const struct process *process = arg;

	for (unsigned int lie = (unsigned int)process->session;; lie++) {
		if (process->kind == MARIADB)
			session_lie(&sessions[lie % (unsigned long)sessions_count], lie);
		else if (process->kind == POSTGRES)
			postgres_lie(process->session, process->count, lie);
		else
			php_lie(lie);
		usleep(process->kind == MARIADB ? 20 : 2000);
	}
	return NULL;
}

static void changes_begin(enum kind kind, long session, long count)
{
	static struct process process;
	pthread_t thread;

	process = (struct process){kind, session, count};
	if (pthread_create(&thread, NULL, lies_change, &process))
		exit(EXIT_FAILURE);
}

static void children_run(enum kind kind, long count)
{
	for (long i = 0; i < count; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		changes_begin(kind, i, count);
		for (;;)
			nap();
	}
}

int main(int argc, char **argv)
{
	long threads = argc > 1 ? atol(argv[1]) : 1;
	const char *name = program_invocation_short_name;
	char byte;

	nap_ms = argc > 2 ? atol(argv[2]) : 100;
	rights_drop();
	texts_make();
	for (size_t i = 0; i < sizeof(command_name) / sizeof(command_name[0]); i++)
		command_name[i] = (struct sized_text){texts[i % LIES], i << (i % 60)};
	shared = mmap(NULL, (size_t)threads * SESSION_WORDS * sizeof(*shared),
		      PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (strcmp(name, "mariadbd") == 0) {
		mariadb_run(threads);
		changes_begin(MARIADB, 0, 0);
	} else {
		children_run(strcmp(name, "postgres") == 0 ? POSTGRES : PHP, threads);
	}
	usleep(300000);
	printf("ready %ld\n", syscall(SYS_gettid));
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
