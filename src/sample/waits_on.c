/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/waits_on.h"
#include "base/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EPHEMERAL_PORT 32768 /* first of net.ipv4.ip_local_port_range, as kernels have it */

static const struct {
	const char *words;
	bool begins; /* the text begins with the words */
	enum waits_on_trait trait;
} traits[] = {
	{WAITS_ON_FROZEN, true, WAITS_FOR_THAW},
	{WAITS_ON_NO_MEMORY, true, WAITS_FOR_MEMORY},
	{WAITS_ON_RECLAIM, true, WAITS_FOR_MEMORY},
	{WAITS_ON_COMPACTION, true, WAITS_FOR_MEMORY},
	{WAITS_ON_DIRTY, true, WAITS_FOR_MEMORY},
	{WAITS_ON_SWAP, true, WAITS_FOR_MEMORY},
	{WAITS_ON_PEER, false, WAITS_FOR_PEER},
	{WAITS_ON_UNACCEPTED, false, WAITS_FOR_ACCEPTANCE},
	{WAITS_ON_SIGCONT, true, WAITS_FOR_SIGCONT},
	{WAITS_ON_LEFT, false, WAITS_FOR_NOBODY},
	{WAITS_ON_UDP, false, WAITS_FOR_DATAGRAM},
};

unsigned int waits_on_traits(const char *waits_on)
{
	unsigned int found = 0;

	for (size_t i = 0; waits_on && i < sizeof(traits) / sizeof(*traits); i++)
		if (traits[i].begins ? !strncmp(waits_on, traits[i].words, strlen(traits[i].words))
				     : strstr(waits_on, traits[i].words) != NULL)
			found |= traits[i].trait;
	return found;
}

/* Words that come before numbers which differ for waits of one kind. */
static const char *const before[] = {
	/* clang-format off */
	"peer ", "from ", "to ", "pid ", "thread ", "socket:[", /* ids */
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
	/* any address: that of a lock, whose name may be that of its class */
	if (at[0] == '0' && at[1] == 'x' && number_end(at) > at + 1)
		return at;
	return port_find(at);
}

void waits_on_fold(struct text *to, const char *waits_on)
{
	const char *at = waits_on, *number;
	size_t length = strlen(WAITS_ON_HOLDER);

	while (*at) {
		/* a holder is the last part of a lock's text */
		if (!strncmp(at, WAITS_ON_HOLDER, length) && isdigit((unsigned char)at[length])) {
			text_add_string(to, WAITS_ON_HOLDER "*");
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

/* Adds "4711 worker" as "worker 4711", several ("* worker") as "worker", or as "several" if they
 * have no name in common ("*"). Returns what follows. */
static const char *who_add(struct text *text, const char *who)
{
	size_t digits = strspn(who, "0123456789*"), word;
	const char *name = who + digits + (who[digits] == ' '), *end = name;

	while (*end && strncmp(end, ", ", 2) && strncmp(end, " and ", 5) && strncmp(end, " (", 2)) {
		word = *end == ' ' ? strcspn(end + 1, " ") : 0;
		if (memchr(end, ':', word)) /* "worker app.py:88" */
			break;
		end++;
	}
	if (end == who + 1 && *who == '*')
		text_add_string(text, "several");
	text_add(text, name, (size_t)(end - name));
	if (*who != '*' && digits) {
		text_add_char(text, ' ');
		text_add(text, who, digits);
	}
	return end;
}

/* True for "3 readers", of which none is known. */
static bool is_readers(const char *who)
{
	return !strncmp(who + strspn(who, "0123456789"), " reader", strlen(" reader"));
}

void waits_on_shorten(struct text *to, const char *waits_on)
{
	static const struct {
		const char *from, *to;
		bool who; /* a process or thread follows */
	} parts[] = {
		{WAITS_ON_PEER, " ", true},
		{WAITS_ON_HOLDER, " of ", true},
		{WAITS_ON_UNACCEPTED, WAITS_ON_UNACCEPTED, true},
		{" 127.0.0.1:", " :", false},
		{" [::1]:", " :", false},
		{"1 fd: ", "", false},
	};
	const size_t count = sizeof(parts) / sizeof(*parts);
	size_t at, address;

	while (*waits_on) {
		address = !strncmp(waits_on, " *", 2) ? 2
			  : !strncmp(waits_on, " 0x", 3)
				  ? 3 + strspn(waits_on + 3, "0123456789abcdef")
				  : 0;
		if (address && !strncmp(waits_on + address, " held", 5)) {
			waits_on += address;
			continue;
		}
		for (at = 0;
		     at < count && strncmp(waits_on, parts[at].from, strlen(parts[at].from)); at++)
			;
		if (at == count) {
			text_add_char(to, *waits_on++);
			continue;
		}
		/* the lock's name may say whose it is: "mmap_lock of java 4711 by mapper 4811" */
		if (!strcmp(parts[at].from, WAITS_ON_HOLDER) && strstr(text_string(to), " of "))
			text_add_string(to, " by ");
		else
			text_add_string(to, parts[at].to);
		waits_on += strlen(parts[at].from);
		if (parts[at].who && !is_readers(waits_on))
			waits_on = who_add(to, waits_on);
		if (!strcmp(parts[at].from, WAITS_ON_HOLDER) && !strncmp(waits_on, " (", 2))
			return; /* what the holder does */
	}
}
