/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/scan/live_dns.h"
#include "base/clock.h"
#include "base/names.h"
#include "base/text.h"
#include "kernel/record.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* The same packet is seen again on its way through stacked devices, as of a VLAN or a bridge. */
#define TWIN_NS (10 * NS_PER_MS)
#define WALK_NS NS_PER_SECOND

/* RFC 1035, 4.1.1 */
#define HEADER_BYTES 12
#define FLAG_ANSWER 0x80u    /* of byte 2 */
#define FLAG_TRUNCATED 0x02u /* of byte 2 */
#define RCODE_BITS 0x0fu     /* of byte 3 */
#define LABEL_MAX 63

/* latency_key.what of a whole event */
enum { WHAT_OUTCOME, WHAT_RCODE, WHAT_RETRANSMITS };

enum outcome { ANSWERED, TRUNCATED, UNREACHABLE, NO_ANSWER, PENDING };

#define RCODE_UNKNOWN 0xffu

static const char *const outcome_names[] = {
	[ANSWERED] = "answered",   [TRUNCATED] = "truncated", [UNREACHABLE] = "unreachable",
	[NO_ANSWER] = "no answer", [PENDING] = "pending",
};

/* DNS parameters of IANA */
static const char *const rcode_names[] = {"NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN",
					  "NOTIMP",  "REFUSED", "YXDOMAIN", "YXRRSET",
					  "NXRRSET", "NOTAUTH", "NOTZONE",  "DSOTYPENI"};
static const struct {
	uint16_t type;
	const char *name;
} type_names[] = {
	{1, "A"},      {2, "NS"},     {5, "CNAME"},   {6, "SOA"},   {12, "PTR"},
	{15, "MX"},    {16, "TXT"},   {28, "AAAA"},   {33, "SRV"},  {35, "NAPTR"},
	{43, "DS"},    {46, "RRSIG"}, {48, "DNSKEY"}, {64, "SVCB"}, {65, "HTTPS"},
	{251, "IXFR"}, {252, "AXFR"}, {255, "ANY"},   {257, "CAA"},
};

/* What a query and its answer have in common. */
struct ends {
	uint64_t loopback;
	uint32_t client[4], server[4];
	uint16_t client_port, id, family, unused;
};

_Static_assert(sizeof(struct ends) == 48, "ends have no holes");

struct dns_query {
	struct cache_entry entry; /* used when it was last sent */
	struct trace_event sent;
	struct ends ends;
	uint32_t retransmits;
	bool settled; /* answered or reported: the next sweep takes it */
};

struct parsed {
	struct dns_message head;
	const uint8_t *bytes;
	size_t count; /* bytes that are there */
};

static bool message_parse(const struct trace_event *event, struct parsed *parsed)
{
	if (event->data_bytes != sizeof(parsed->head) + DNS_BYTES)
		return false;
	memcpy(&parsed->head, event->data, sizeof(parsed->head));
	parsed->bytes = (const uint8_t *)event->data + sizeof(parsed->head);
	parsed->count = parsed->head.present;
	if (parsed->count > DNS_BYTES)
		return false;
	if (parsed->count > parsed->head.whole)
		parsed->count = parsed->head.whole;
	return true;
}

static struct ends ends_of(const struct parsed *parsed)
{
	const struct dns_message *head = &parsed->head;
	struct ends ends = {.loopback = head->loopback,
			    .client_port = head->client_port,
			    .family = head->family};

	memcpy(ends.client, head->client, sizeof(ends.client));
	memcpy(ends.server, head->server, sizeof(ends.server));
	/* whoever knows answers a multicast query */
	if (head->family == AF_INET ? IN_MULTICAST(ntohl(ends.server[0]))
				    : *(const uint8_t *)ends.server == 0xff)
		memset(ends.server, 0, sizeof(ends.server));
	if (parsed->count >= HEADER_BYTES)
		memcpy(&ends.id, parsed->bytes, sizeof(ends.id));
	return ends;
}

static uint64_t ends_key(const struct ends *ends)
{
	return hash_bytes(ends, sizeof(*ends));
}

static void query_take(struct dns_queries *queries, const struct trace_event *message,
		       const struct ends *ends)
{
	const int64_t now_ns = (int64_t)message->end_ns;
	const uint64_t key = ends_key(ends);
	struct dns_query *query = cache_find(&queries->waiting, key);
	bool added;

	if (query && now_ns - query->entry.used_ns < TWIN_NS)
		return;
	queries->waiting.entry_bytes = sizeof(*query);
	queries->waiting.entries_max = DNS_QUERIES_MAX;
	if (!query && queries->waiting.count == DNS_QUERIES_MAX) {
		cache_sweep(&queries->waiting, now_ns, DNS_PATIENCE_NS);
		if (queries->waiting.count == DNS_QUERIES_MAX) {
			queries->refused++;
			return;
		}
	}
	query = cache_get(&queries->waiting, key, now_ns, &added);
	if (!added && !query->settled) {
		query->retransmits++;
		return;
	}
	query->sent = *message;
	query->ends = *ends;
	query->retransmits = 0;
	query->settled = false;
}

static void query_settle(struct dns_query *query)
{
	query->settled = true;
	query->entry.used_ns = -DNS_PATIENCE_NS;
}

static struct dns_query *query_find(struct dns_queries *queries, const struct ends *ends)
{
	struct dns_query *query = cache_find(&queries->waiting, ends_key(ends));
	struct ends anyone = *ends;

	if (!query) {
		memset(anyone.server, 0, sizeof(anyone.server));
		query = cache_find(&queries->waiting, ends_key(&anyone));
	}
	return query && !query->settled ? query : NULL;
}

/* Finds the query of an answer without its id, which the probe could not read. If there are
 * several, nothing is known of any. */
static struct dns_query *query_only(struct dns_queries *queries, const struct ends *ends)
{
	struct dns_query *only = NULL;
	size_t found = 0;

	for (size_t i = 0; i < queries->waiting.count; i++) {
		struct dns_query *query = (struct dns_query *)queries->waiting.entries[i];
		struct ends same = query->ends;

		same.id = ends->id;
		if (query->settled || memcmp(&same, ends, sizeof(same)) != 0)
			continue;
		if (found++)
			query_settle(query);
		else
			only = query;
	}
	if (found > 1)
		query_settle(only);
	return found == 1 ? only : NULL;
}

static void query_end(struct dns_query *query, int64_t now_ns, enum outcome outcome, uint32_t rcode,
		      struct trace_event *whole)
{
	*whole = query->sent;
	whole->end_ns = (uint64_t)now_ns;
	whole->duration_ns = (uint64_t)now_ns - query->sent.end_ns;
	whole->key.what[WHAT_OUTCOME] = outcome;
	whole->key.what[WHAT_RCODE] = rcode;
	whole->key.what[WHAT_RETRANSMITS] = query->retransmits;
	query_settle(query);
}

static bool answer_take(struct dns_queries *queries, const struct trace_event *message,
			const struct parsed *parsed, const struct ends *ends,
			struct trace_event *whole)
{
	const bool readable = parsed->count >= HEADER_BYTES;
	struct dns_query *query = readable ? query_find(queries, ends) : query_only(queries, ends);
	enum outcome outcome = ANSWERED;
	struct dns_message head;

	if (!query)
		return false;
	if (parsed->head.kind == DNS_UNREACHABLE)
		outcome = UNREACHABLE;
	else if (readable && parsed->bytes[2] & FLAG_TRUNCATED)
		outcome = TRUNCATED;
	query_end(query, (int64_t)message->end_ns, outcome,
		  readable && outcome != UNREACHABLE ? parsed->bytes[3] & RCODE_BITS
						     : RCODE_UNKNOWN,
		  whole);
	/* the one that answered: netfilter may have changed the port, and multicast has many */
	memcpy(&head, whole->data, sizeof(head));
	memcpy(head.server, parsed->head.server, sizeof(head.server));
	head.server_port = parsed->head.server_port;
	memcpy(whole->data, &head, sizeof(head));
	return true;
}

bool dns_join(struct dns_queries *queries, const struct trace_event *message,
	      struct trace_event *whole)
{
	struct parsed parsed;
	struct ends ends;
	bool answer;

	if (!message_parse(message, &parsed))
		return false;
	ends = ends_of(&parsed);
	if (parsed.count < HEADER_BYTES)
		/* a message that is too short is none */
		return parsed.head.kind != DNS_QUERY && parsed.head.whole >= HEADER_BYTES &&
		       answer_take(queries, message, &parsed, &ends, whole);
	answer = parsed.bytes[2] & FLAG_ANSWER;
	if (parsed.head.kind == DNS_QUERY && !answer)
		query_take(queries, message, &ends);
	return (parsed.head.kind == DNS_ANSWER) == answer && parsed.head.kind != DNS_QUERY &&
	       answer_take(queries, message, &parsed, &ends, whole);
}

void dns_unanswered(struct dns_queries *queries, int64_t now_ns, bool all, uint64_t lost,
		    void (*take)(void *to, const struct trace_event *whole), void *to)
{
	const bool forget = lost != queries->lost_before;

	queries->lost_before = lost;
	if (!all && !forget && now_ns - queries->walked_ns < WALK_NS)
		return;
	queries->walked_ns = now_ns;
	for (size_t i = 0; i < queries->waiting.count; i++) {
		struct dns_query *query = (struct dns_query *)queries->waiting.entries[i];
		const bool late = now_ns - query->entry.used_ns >= DNS_PATIENCE_NS;
		struct trace_event whole;

		if (forget)
			query_settle(query);
		if (query->settled || (!late && !all))
			continue;
		query_end(query, now_ns, late ? NO_ANSWER : PENDING, RCODE_UNKNOWN, &whole);
		take(to, &whole);
	}
	cache_sweep(&queries->waiting, now_ns, DNS_PATIENCE_NS);
}

/* --- from bytes to words */

void dns_describe(const struct latency_key *key, struct sample *sample, bool *compat)
{
	const uint32_t rcode = key->what[WHAT_RCODE];
	char words[16];

	(void)compat;
	if (key->what[WHAT_OUTCOME] < sizeof(outcome_names) / sizeof(outcome_names[0]))
		sample->event.outcome = name_of_string(outcome_names[key->what[WHAT_OUTCOME]]);
	sample->event.retransmits = key->what[WHAT_RETRANSMITS];
	if (rcode == RCODE_UNKNOWN)
		return;
	snprintf(words, sizeof(words), "RCODE%u", rcode);
	sample->event.rcode = name_of_string(
		rcode < sizeof(rcode_names) / sizeof(rcode_names[0]) ? rcode_names[rcode] : words);
}

/* Adds a label as zone files have it (RFC 1035, 5.1), so that no byte of it is taken for anything
 * else. */
static void label_add(const uint8_t *bytes, size_t count, struct text *to)
{
	for (size_t i = 0; i < count; i++) {
		if (bytes[i] <= ' ' || bytes[i] > '~')
			text_add_format(to, "\\%03u", bytes[i]);
		else if (strchr(".\\\"", bytes[i]))
			text_add_format(to, "\\%c", bytes[i]);
		else
			text_add_char(to, (char)bytes[i]);
	}
}

/* Adds the name of the question, with three dots if not all of it is there. Returns the number of
 * bytes up to what follows it; 0: that is not there. */
static size_t name_read(const struct parsed *parsed, struct text *to)
{
	size_t at = HEADER_BYTES, length;

	while (at < parsed->count && (length = parsed->bytes[at]) != 0) {
		const size_t left = parsed->count - ++at;

		if (length > LABEL_MAX) /* no question of a query points elsewhere */
			break;
		if (to->length)
			text_add_char(to, '.');
		label_add(parsed->bytes + at, length < left ? length : left, to);
		if (length > left)
			break;
		at += length;
	}
	if (at < parsed->count && !parsed->bytes[at]) {
		if (!to->length)
			text_add_char(to, '.'); /* the root */
		return at + 1;
	}
	text_add_string(to, "...");
	return 0;
}

static const char *type_name(uint16_t type)
{
	char words[16];

	for (size_t i = 0; i < sizeof(type_names) / sizeof(type_names[0]); i++)
		if (type_names[i].type == type)
			return name_transient_string(type_names[i].name);
	snprintf(words, sizeof(words), "TYPE%u", type); /* RFC 3597 */
	return name_transient_string(words);
}

/* Writes 10.0.0.5:53 or [fe80::1]:53. */
static const char *server_name(const struct dns_message *head)
{
	char words[INET6_ADDRSTRLEN], name[sizeof(words) + 8];
	const bool six = head->family == AF_INET6;
	uint32_t address[4];

	memcpy(address, head->server, sizeof(address));
	inet_ntop(six ? AF_INET6 : AF_INET, address, words, sizeof(words));
	snprintf(name, sizeof(name), six ? "[%s]:%u" : "%s:%u", words, ntohs(head->server_port));
	return name_transient_string(name);
}

void dns_event(const struct trace_event *event, bool registers_marked, struct sample *who,
	       bool *compat)
{
	struct text name = {0};
	struct parsed parsed;
	size_t at;

	(void)registers_marked;
	(void)compat;
	if (!message_parse(event, &parsed))
		return;
	who->event.server = server_name(&parsed.head);
	if (parsed.count < HEADER_BYTES || (!parsed.bytes[4] && !parsed.bytes[5]))
		return; /* it has no question */
	at = name_read(&parsed, &name);
	who->event.qname = name_transient_string(text_string(&name));
	if (at && at + 2 <= parsed.count)
		who->event.qtype =
			type_name((uint16_t)(parsed.bytes[at] << 8 | parsed.bytes[at + 1]));
	text_done(&name);
}

void dns_queries_done(struct dns_queries *queries)
{
	cache_done(&queries->waiting);
	*queries = (struct dns_queries){0};
}
