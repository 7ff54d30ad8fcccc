/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parser by which --goroutines and --tasks read a process' memory. */
#ifndef TSNAP_LIVE_ROUTINE_PARSERS_H
#define TSNAP_LIVE_ROUTINE_PARSERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "parser/parser.h"

/* Starts a parser of that service, which reads the memory of one process, and enters the sandbox.
 * what: "goroutines". free: no sandbox. Returns the parsers, which parsers_end() ends; *err: 0, or
 * -errno with e. */
struct parsers *routine_parsers_begin(const char *what, int64_t pid, parser_service *service,
				      bool free, int *err, struct error *e);

#endif
