/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes of the spawner and of the parsers. */
#ifndef TSNAP_PARSER_PARSER_PROCESS_H
#define TSNAP_PARSER_PARSER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "parser/parser_service.h"

/* First message of a spawner and of a parser. */
struct parser_hello {
	uint32_t pid; /* pid as /proc shows it */
	pid_t own;    /* pid as getpid(2) returns it */
	int32_t err;  /* reason why it is not bounded, or 0 */
};

/* Forks, and returns in the caller alone: the spawner's pid, or -errno. Each socket that comes over
 * control gets a parser. The spawner ends with control. */
pid_t spawner_fork(int control, parser_service *service, bool free);

#endif
