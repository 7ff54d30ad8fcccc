/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a parser does about runtimes of languages: answers struct runtime_request. */
#ifndef TSNAP_UNWIND_RUNTIME_RUNTIME_SERVICE_H
#define TSNAP_UNWIND_RUNTIME_RUNTIME_SERVICE_H

#include "parser/parser_service.h"

/* Answers requests about files as well (file_service.h). */
parser_service runtime_service;
void runtime_service_clear(void); /* what is known of processes: for tests */

#endif
