/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that read what others have written, for one that has privileges: without capabilities,
 * and with system calls that open, start and send nothing. An attacker that takes one over by a
 * hostile file controls its answers, and no more.
 *
 *   worker ----- requests, descriptors of files -----> parser (one for each enum parser_slot)
 *      |   <---------------- answers ------------------   ^
 *      +------ a socket for a new parser ---> spawner ----+ fork(2)
 *
 * The spawner is forked before there is anything in the worker's memory that is of worth, and does
 * nothing but fork. A parser that dies, or does not answer in time, costs the request and is
 * counted. The next request begins a new one, and a requester must send each generation anew what
 * it has to know. A spawner that dies takes its parsers with it, and its standby goes on in its
 * place (parser_process.h). A file that ends its parser twice is not to be sent again. Limits: 512
 * MB of memory (RLIMIT_DATA: RLIMIT_AS would count address space that is only reserved), 10 s of
 * CPU time a request (RLIMIT_CPU).
 *
 * A parser is used by one thread at a time. Its answers are as hostile as what it has read.
 */
#ifndef TSNAP_PARSER_PARSER_H
#define TSNAP_PARSER_PARSER_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text.h"
#include "parser/parser_message.h"

/* Parsers that must not wait for each other. PARSER_MEMORY may hang for ever: memory of a process
 * may have to come from a file system of its owner's. */
enum parser_slot {
	PARSER_TABLES,
	PARSER_NAMES,
	PARSER_MEMORY,
	PARSER_SLOTS,
};

#define PARSERS_OF_STACKS (1u << PARSER_TABLES | 1u << PARSER_NAMES)
#define PARSERS_ALL ((1u << PARSER_SLOTS) - 1)

struct parsers;

struct parser {
	struct parsers *parsers;
	enum parser_slot slot;
	int socket; /* -1: there is none */
	/* Number of the present process, from 1 on: it knows nothing of what an earlier one was
	 * sent. */
	uint64_t generation;
	_Atomic pid_t pid;
	_Atomic int64_t gone_cpu_ns; /* CPU time of earlier processes */
	int64_t begun_ns;
	_Atomic uint64_t lost; /* processes that died, or did not answer in time */
	_Atomic bool stop;     /* requests are given up: set by another thread */
};

struct parsers {
	int control;		   /* the spawner's socket; -1: there is none */
	pid_t spawner;		   /* 0: it could not be forked */
	_Atomic bool ended;	   /* the spawner has died, and no other one went on */
	_Atomic int lack_err;	   /* -errno: the last parser could not be begun; 0: it could */
	_Atomic uint64_t replaced; /* spawners that died, and in whose place another one went on */
	int err;		   /* reason why they are not bounded (-errno), or 0 */
	struct parser parser[PARSER_SLOTS];
};

/* Forks the spawner, and has it start the parsers of some slots (bits). Must be called before other
 * threads begin. Parsers of other slots begin at their first request, or with parsers_start().
 * free: their system calls are not bounded (--no-sandbox). */
struct parsers *parsers_begin(parser_service *service, bool free, unsigned int slots);
/* Begins the parsers of some slots (bits), as far as that is possible now. NULL is fine. */
void parsers_start(struct parsers *parsers, unsigned int slots);
/* Ends all of them, for want of what err says (-errno): none will begin any more. */
void parsers_give_up(struct parsers *parsers, int err);
void parsers_end(struct parsers *parsers); /* NULL is fine */

/* Returns how many parsers died or were given up; 0 for NULL. */
uint64_t parsers_lost(const struct parsers *parsers);
/* Why a parser could not be begun when one was wanted last, -errno: -ECHILD: none will begin any
 * more, as the spawner died; 0: it could, or for NULL. */
int parsers_lacking(const struct parsers *parsers);
/* Returns how many spawners died, and had another one go on in their place; 0 for NULL. */
uint64_t parsers_replaced(const struct parsers *parsers);
/* Returns the CPU time that the parsers took; 0 for NULL. */
int64_t parsers_cpu_ns(const struct parsers *parsers);

/* Adds a line on how files are read; free: as given to parsers_begin(). */
void parsers_describe(const struct parsers *parsers, bool free, struct text *to);

/* True if a process is a parser or the spawner. pid: as /proc shows it. For any thread. */
bool parsers_have(uint32_t pid);
/* Returns the pid of the parser in that slot, as /proc shows it; 0: there is none. */
uint32_t parsers_pid(enum parser_slot slot);

/* Begins the parser, if there is none. 0; -EAGAIN: the one before had just begun, or there can be
 * none now; or -errno: there will be none. */
int parser_ready(struct parser *parser);
/* Sends a request to a ready parser, and waits for the answer. Returns how many bytes it has;
 * -EPIPE: the parser died, or was given up after most_ns; -EAGAIN: it was given up, but had hardly
 * a CPU in that time, on a full host. */
ssize_t parser_request(struct parser *parser, const struct parser_message *request, void *answer,
		       size_t size, int64_t most_ns);
/* Returns 0 for what parser_request() returned of an answer that must have exactly that many bytes;
 * else -errno, -EBADMSG for another length. */
static inline int parser_answer_check(ssize_t got, size_t bytes)
{
	return got < 0 ? (int)got : (size_t)got == bytes ? 0 : -EBADMSG;
}

/* Sends a request that has no answer. Without a parser, does nothing. */
void parser_send(struct parser *parser, const struct parser_message *request);

#endif
