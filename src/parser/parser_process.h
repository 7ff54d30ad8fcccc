/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes of the spawner and of the parsers. */
#ifndef TSNAP_PARSER_PARSER_PROCESS_H
#define TSNAP_PARSER_PARSER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "parser/parser_message.h"

/* First message of a spawner and of a parser. A spawner sends one more for each order, before the
 * parser's. */
struct parser_hello {
	uint32_t pid;	  /* pid as /proc shows it; 0: no parser could be forked */
	pid_t own;	  /* pid as getpid(2) returns it */
	int32_t err;	  /* reason why it is not bounded, or could not be forked; or 0 */
	uint32_t standby; /* of a spawner: pid of the one that follows it; 0: there is none */
};

/* Forks, and returns in the caller alone: the spawner's pid, or -errno. Each socket that comes over
 * control gets a parser. The spawner ends with control. With its first parser it forks a standby,
 * which goes on in its place if it is killed: the worker can't fork one later, as parsers must not
 * inherit what it has in memory by then. */
pid_t spawner_fork(int control, parser_service *service, bool free);

#endif
