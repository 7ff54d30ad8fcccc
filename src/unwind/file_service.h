/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers requests in a parser: unwind rows through libdw, functions through .symtab, liblzma and
 * libiberty, perf maps. All of these are foreign data, and no other process reads them. */
#ifndef TSNAP_UNWIND_FILE_SERVICE_H
#define TSNAP_UNWIND_FILE_SERVICE_H

#include "parser/parser.h"

/* The parser_service for struct file_request. */
size_t file_service(struct parser_request *request, char answer[PARSER_MESSAGE_MAX]);

struct file_go_frame_answer;
/* Fills the function at an address of a program of Go, of that number. */
void file_go_frame(uint32_t number, uint64_t address, struct file_go_frame_answer *answer);

#endif
