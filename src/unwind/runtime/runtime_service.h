/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers struct runtime_request in a parser. */
#ifndef TSNAP_UNWIND_RUNTIME_RUNTIME_SERVICE_H
#define TSNAP_UNWIND_RUNTIME_RUNTIME_SERVICE_H

#include "parser/parser_message.h"

/* Answers requests about files as well (file_request.h). */
parser_service runtime_service;
void runtime_service_clear(void); /* forgets all processes: for tests */

#endif
