/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A factory of threads in a known state, which tsnap's live tests compare with.
 *
 * `workload NAME [key=value...]` brings threads into a state, waits until /proc shows them in it,
 * prints one line `ready NAME tid=... pid=... key=value...` (values percent-encoded), and holds the
 * state until standard input ends or seconds=N have passed. A workload that is not possible on this
 * host prints `unready NAME why` and exits 77. Lines on standard input are commands for the few
 * workloads that have some.
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>

#define EXIT_UNREADY 77
#define NS_PER_MS 1000000ll

struct workload {
	const char *name;
	const char *keys; /* keys of the workload, each followed by '=' and a word of help */
	const char *help;
	void (*run)(void);
};

/* Rows of each file, ended by a row without a name. */
extern const struct workload cpu_workloads[], sleep_workloads[], process_workloads[],
	crowd_workloads[], compat_workloads[], file_workloads[], socket_workloads[],
	wait_workloads[], call_workloads[], probed_workloads[], piece_workloads[],
	mixed_workloads[], stuck_workloads[], chain_workloads[], hostile_workloads[],
	path_workloads[], chained_workloads[], service_workloads[];

/* Value of an option of the command line, key=value; `absent` if it is not given. */
const char *option_text(const char *key, const char *absent);
long option_number(const char *key, long absent);

/* End the program: for a failure of the workload (1), and for what this host does not offer
 * (77). */
void die(const char *what) __attribute__((noreturn));
void unready(const char *why) __attribute__((noreturn));

/* Write one line of output, built from pairs: line_begin(), line_add()..., line_end(). */
void line_begin(const char *word);
void line_add(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));
void line_end(void);
/* Begins a line with line_begin("ready"), tid and pid. */
void ready_begin(pid_t tid, pid_t pid);
/* Adds state, syscall and nr to a ready line. */
void ready_call(char state, const char *name, long nr);

/* Waits for a line of standard input (without its newline): false when it has ended or time is up.
 */
bool hold_line(char *line, size_t size);
/* Holds the state until the end, without commands. */
void hold(void);

/* A thread: fn runs in a new thread with name as comm; subject_start() returns when the tid is
 * set. */
struct subject {
	pthread_t thread;
	pid_t tid;
	const char *name;
	void (*fn)(void *arg);
	void *arg;
};
void subject_start(struct subject *subject, const char *name, void (*fn)(void *), void *arg);

/* A thread that works on demand, and waits in a read of a pipe otherwise. */
struct worker {
	struct subject subject;
	void (*work)(void *data);
	void *data;
	int go[2], end[2];
};
void worker_start(struct worker *worker, const char *name, void (*work)(void *), void *data);
void worker_go(struct worker *worker);
void worker_await(struct worker *worker); /* returns when it waits again */

/* Forks a child that dies with its parent and is killed and reaped at the end. Returns what fork
 * does. */
pid_t child_fork(void);

#ifdef SYS_pause
#define NR_PAUSE SYS_pause
#else
#define NR_PAUSE SYS_ppoll /* system call of pause(3) on arm64 */
#endif
#define NR_ANY (-2)  /* any system call, or running */
#define NR_NONE (-1) /* sleeps outside a system call */
/* Waits until /proc shows the thread in one of these states and in this system call. */
void await_state(pid_t pid, pid_t tid, const char *letters, long nr);

/* Pins a thread; 0: the calling one. cpu -1: does nothing. */
void pin_thread(pid_t tid, long cpu);
/* Last CPU that this process may use. */
long last_cpu(void);

pid_t gettid_now(void);
int64_t clock_ns(clockid_t clock);
void sleep_ns(int64_t ns);
void make_pipe(int fds[2]);
/* Makes the ends of a TCP connection of the loopback device. */
void make_tcp(int pair[2]);
/* Raises the limits on threads and descriptors as far as they go. */
void limits_raise(void);

#endif
