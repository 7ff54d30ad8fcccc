/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What runs in a parser: one function, for all requests. */
#ifndef TSNAP_PARSER_PARSER_SERVICE_H
#define TSNAP_PARSER_PARSER_SERVICE_H

#include "parser/parser_message.h"

/* What comes with a request. The descriptors are the service's, which sets those to -1 that it
 * keeps.
 */
struct parser_request {
	const void *bytes;
	size_t count;
	int fds[PARSER_FDS_MAX];
	unsigned int fd_count;
};

/* Runs in the parser. The answer's bytes; 0: the request gets none. */
typedef size_t parser_service(struct parser_request *request, char answer[PARSER_MESSAGE_MAX]);

#endif
