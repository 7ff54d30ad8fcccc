/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/waits_fold.h"
#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define HELD_BY " held by "
#define EPHEMERAL_PORT 32768 /* first of net.ipv4.ip_local_port_range, as kernels have it */

/* Words that come before numbers which differ for waits of one kind. */
static const char *const before[] = {
	/* clang-format off */
	"peer ", "from ", "to ", "pid ", "thread ",             /* ids */
	"mutex ", "rwlock ", "futex ", "monitor ", "socket:[",  /* addresses, and the like */
	"eventfd count ", "timerfd ", "io_uring ", "at least ", /* values that change meanwhile */
	/* clang-format on */
};

/* The end of a number or an address that begins here; `at` if none does. */
static const char *number_end(const char *at)
{
	if (at[0] == '0' && at[1] == 'x' && isxdigit((unsigned char)at[2]))
		return at + 2 + strspn(at + 2, "0123456789abcdef");
	return at + strspn(at, "0123456789");
}

/* The port of a client's end, after "tcp 10.0.0.9:" or "udp [::1]:", that begins here; NULL: there
 * is none. */
static const char *port_find(const char *at)
{
	const char *end, *port;

	if (strncmp(at, "tcp ", 4) != 0 && strncmp(at, "udp ", 4) != 0)
		return NULL;
	end = at + 4 + strcspn(at + 4, " ,");
	for (port = end; isdigit((unsigned char)port[-1]);)
		port--;
	if (port[-1] != ':' || port == end || !strncmp(end, " listen", 7) ||
	    strtol(port, NULL, 10) < EPHEMERAL_PORT)
		return NULL;
	return port;
}

/* The number to fold after words that begin here; NULL: there is none. */
static const char *number_find(const char *at)
{
	for (size_t i = 0; i < sizeof(before) / sizeof(*before); i++) {
		size_t length = strlen(before[i]);

		if (!strncmp(at, before[i], length) && number_end(at + length) > at + length)
			return at + length;
	}
	return port_find(at);
}

void waits_fold(struct text *to, const char *waits_on)
{
	const char *at = waits_on, *number;
	size_t length = strlen(HELD_BY);

	while (*at) {
		/* a holder is the last part of a lock's text */
		if (!strncmp(at, HELD_BY, length) && isdigit((unsigned char)at[length])) {
			text_add_string(to, HELD_BY "*");
			return;
		}
		number = at == waits_on || at[-1] == ' ' ? number_find(at) : NULL;
		if (!number) {
			text_add_char(to, *at++);
			continue;
		}
		text_add(to, at, (size_t)(number - at));
		text_add_char(to, '*');
		at = number_end(number);
	}
}
