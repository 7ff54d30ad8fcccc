/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers struct goroutine_request in a parser. */
#ifndef TSNAP_UNWIND_RUNTIME_GOROUTINE_SERVICE_H
#define TSNAP_UNWIND_RUNTIME_GOROUTINE_SERVICE_H

#include "parser/parser_message.h"

/* Answers requests about files as well (file_request.h). */
parser_service goroutine_service;

#endif
