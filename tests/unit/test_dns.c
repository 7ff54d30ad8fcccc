/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Queries and answers of DNS: which belong together, those without an answer, and names that were
 * made to do harm. */
#include "unit.h"
#include "base/clock.h"
#include "base/names.h"
#include "kernel/record.h"
#include "live/scan/live_dns.h"
#include "sample/proc_values.h"

#include <arpa/inet.h>

#define TEXT(string) ((string) ? (string) : "-")

static struct dns_queries queries;
static struct trace_event message, whole;
static char told[512];

#define MS NS_PER_MS

/* Sets the message to one of so many bytes, with the flags of its header (byte 2, byte 3), between
 * 10.0.0.1 and the server. */
static void message_set(int kind, uint16_t id, uint16_t flags, const char *server, const void *rest,
			size_t bytes)
{
	struct dns_message head = {.client = {htonl(0x0a000001)},
				   .server = {inet_addr(server)},
				   .client_port = htons(4000),
				   .server_port = htons(53),
				   .whole = (uint16_t)(12 + bytes),
				   .present = (uint8_t)(12 + bytes),
				   .kind = (unsigned char)kind & 15,
				   .family = AF_INET & 15};
	const uint16_t words[6] = {htons(id), htons(flags), htons(1)};

	memset(message.data, 0xa5, sizeof(message.data));
	memcpy(message.data, &head, sizeof(head));
	memcpy(message.data + sizeof(head), words, sizeof(words));
	memcpy(message.data + sizeof(head) + 12, rest, bytes);
	message.data_bytes = sizeof(head) + DNS_BYTES;
}

static struct dns_message *head(void)
{
	return (struct dns_message *)message.data;
}

#define QUESTION "\1a\4test\0\0\34\0\1"
#define QUESTION_BYTES (sizeof(QUESTION) - 1)

static bool come(int kind, uint16_t id, uint16_t flags, const char *server, int64_t at_ns)
{
	message_set(kind, id, flags, server, QUESTION, QUESTION_BYTES);
	message.end_ns = (uint64_t)at_ns;
	message.key.tid = kind == DNS_QUERY ? 100u + id : 0;
	return dns_join(&queries, &message, &whole);
}

static bool ask(uint16_t id, const char *server, int64_t at_ns)
{
	return come(DNS_QUERY, id, 0x0100, server, at_ns);
}

static bool answer(uint16_t id, int rcode, const char *server, int64_t at_ns)
{
	return come(DNS_ANSWER, id, (uint16_t)(0x8180 | rcode), server, at_ns);
}

static void event_tell(void *to, const struct trace_event *event)
{
	struct sample who = *sample_absent();
	bool compat;

	dns_describe(&event->key, &who, &compat);
	dns_event(event, false, &who, &compat);
	snprintf(told + strlen(told), sizeof(told) - strlen(told),
		 "%u %s %s %s %s %s %lld ms, %lld more; ", event->key.tid, TEXT(who.event.qname),
		 TEXT(who.event.qtype), TEXT(who.event.server), TEXT(who.event.outcome),
		 TEXT(who.event.rcode), (long long)(event->duration_ns / MS),
		 (long long)who.event.retransmits);
}

static const char *tell(const struct trace_event *event)
{
	told[0] = 0;
	event_tell(NULL, event);
	return told;
}

static const char *unanswered(int64_t now_ns, bool all, uint64_t lost)
{
	told[0] = 0;
	dns_unanswered(&queries, now_ns, all, lost, event_tell, NULL);
	return told;
}

static int end(void **state)
{
	dns_queries_done(&queries);
	return 0;
}

static void answers_find_their_queries(void **state)
{
	assert_false(ask(1, "10.0.0.53", 10 * MS));
	assert_false(ask(2, "10.0.0.53", 10 * MS));
	assert_false(ask(1, "10.0.0.54", 10 * MS)); /* musl asks all servers at once */
	assert_false(answer(3, 0, "10.0.0.53", 11 * MS));
	assert_false(answer(2, 0, "10.0.0.99", 11 * MS));
	assert_true(answer(2, 0, "10.0.0.53", 13 * MS));
	assert_string_equal(tell(&whole),
			    "102 a.test AAAA 10.0.0.53:53 answered NOERROR 3 ms, 0 more; ");
	assert_true(answer(1, 3, "10.0.0.54", 15 * MS));
	assert_string_equal(tell(&whole),
			    "101 a.test AAAA 10.0.0.54:53 answered NXDOMAIN 5 ms, 0 more; ");
	assert_true(come(DNS_ANSWER, 1, 0x8380, "10.0.0.53", 16 * MS));
	assert_string_equal(tell(&whole),
			    "101 a.test AAAA 10.0.0.53:53 truncated NOERROR 6 ms, 0 more; ");
	assert_false(answer(1, 0, "10.0.0.53", 17 * MS)); /* a second copy */
	/* what claims to be the other kind is neither */
	assert_false(come(DNS_QUERY, 4, 0x8180, "10.0.0.53", 18 * MS));
	assert_false(ask(5, "10.0.0.53", 18 * MS));
	assert_false(come(DNS_ANSWER, 5, 0x0100, "10.0.0.53", 19 * MS));
	assert_true(come(DNS_UNREACHABLE, 5, 0x0100, "10.0.0.53", 20 * MS));
	assert_string_equal(tell(&whole),
			    "105 a.test AAAA 10.0.0.53:53 unreachable - 2 ms, 0 more; ");
	assert_string_equal(unanswered(30000 * MS, true, 0), "");
	assert_int_equal(queries.waiting.count, 0);
}

static void sent_again(void **state)
{
	ask(1, "10.0.0.53", 10 * MS);
	ask(1, "10.0.0.53", 12 * MS); /* the same packet on another device */
	ask(2, "10.0.0.53", 10 * MS);
	ask(1, "10.0.0.53", 5010 * MS);
	assert_string_equal(unanswered(5900 * MS, false, 0), "");
	assert_string_equal(unanswered(6901 * MS, false, 0),
			    "102 a.test AAAA 10.0.0.53:53 no answer - 6891 ms, 0 more; ");
	assert_true(answer(1, 2, "10.0.0.53", 7010 * MS));
	assert_string_equal(tell(&whole),
			    "101 a.test AAAA 10.0.0.53:53 answered SERVFAIL 7000 ms, 1 more; ");
	/* the number is used again */
	ask(1, "10.0.0.53", 8000 * MS);
	assert_string_equal(unanswered(8100 * MS, true, 0),
			    "101 a.test AAAA 10.0.0.53:53 pending - 100 ms, 0 more; ");
}

static void lost_events_leave_no_claim(void **state)
{
	ask(1, "10.0.0.53", 10 * MS);
	assert_string_equal(unanswered(20 * MS, false, 3), "");
	ask(2, "10.0.0.53", 30 * MS);
	assert_string_equal(unanswered(20000 * MS, false, 3),
			    "102 a.test AAAA 10.0.0.53:53 no answer - 19970 ms, 0 more; ");
}

/* An answer whose bytes are in another piece of its packet. */
static void unread_answers(void **state)
{
	ask(1, "10.0.0.53", 10 * MS);
	message_set(DNS_ANSWER, 9, 0x8180, "10.0.0.53", QUESTION, QUESTION_BYTES);
	message.end_ns = 15 * MS;
	head()->present = 4;
	assert_true(dns_join(&queries, &message, &whole));
	assert_string_equal(tell(&whole), "101 a.test AAAA 10.0.0.53:53 answered - 5 ms, 0 more; ");
	/* which of two, is not known: nothing is said of both */
	ask(1, "10.0.0.53", 20 * MS);
	ask(2, "10.0.0.53", 20 * MS);
	message_set(DNS_ANSWER, 9, 0x8180, "10.0.0.53", QUESTION, QUESTION_BYTES);
	message.end_ns = 25 * MS;
	head()->present = 0;
	assert_false(dns_join(&queries, &message, &whole));
	assert_string_equal(unanswered(30000 * MS, true, 0), "");
	/* one that is short as a whole answers nothing */
	ask(1, "10.0.0.53", 20 * MS);
	head()->kind = DNS_ANSWER;
	head()->present = 4;
	head()->whole = 4;
	assert_false(dns_join(&queries, &message, &whole));
}

/* mDNS, asked from a port of the client's own. */
static void anyone_answers_multicast(void **state)
{
	ask(1, "224.0.0.251", 10 * MS);
	assert_true(answer(1, 0, "10.0.0.7", 12 * MS));
	assert_string_equal(tell(&whole),
			    "101 a.test AAAA 10.0.0.7:53 answered NOERROR 2 ms, 0 more; ");
}

static void no_more_than_fit(void **state)
{
	for (unsigned int i = 0; i <= DNS_QUERIES_MAX; i++)
		ask((uint16_t)i, "10.0.0.53", 10 * MS);
	assert_int_equal(queries.waiting.count, DNS_QUERIES_MAX);
	assert_int_equal(queries.refused, 1);
	assert_true(answer(3, 0, "10.0.0.53", 11 * MS));
	ask(DNS_QUERIES_MAX + 1, "10.0.0.53", 11 * MS); /* in the place of the answered one */
	assert_int_equal(queries.refused, 1);
	assert_true(answer(DNS_QUERIES_MAX + 1, 0, "10.0.0.53", 12 * MS));
}

static void names_as_in_zone_files(void **state)
{
	static const struct {
		const char *bytes;
		size_t count;
		const char *name;
	} cases[] = {
#define NAME(BYTES, WORDS) {BYTES, sizeof(BYTES) - 1, WORDS}
		NAME("\0\0\2\0\1", ". NS"),
		NAME("\3www\7example\3com\0\0\1\0\1", "www.example.com A"),
		NAME("\13xn--bcher-kva\0\0\1\0\1", "xn--bcher-k... -"), /* a length that lies */
		NAME("\15xn--bcher-kva\0\1\1\0\1", "xn--bcher-kva CAA"),
		NAME("\1a\0\376\7\0\1", "a TYPE65031"),
		NAME("\6a.b\\\"c\0\0\1\0\1", "a\\.b\\\\\\\"c A"),
		NAME("\5\33[2J\n\0\0\1\0\1", "\\027[2J\\010 A"),
		NAME("\2\xc3\xa9\0\0\1\0\1", "\\195\\169 A"),
		NAME("\1a\300\014\0\1\0\1", "a... -"), /* points to itself */
		NAME("\77a", "a... -"),
		NAME("\1a", "a... -"),
		NAME("\1a\0\0", "a -"),
		NAME("", "... -"),
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sample who = *sample_absent();
		char words[64];
		bool compat;

		message_set(DNS_QUERY, 1, 0x0100, "10.0.0.53", cases[i].bytes, cases[i].count);
		dns_event(&message, false, &who, &compat);
		snprintf(words, sizeof(words), "%s %s", TEXT(who.event.qname),
			 TEXT(who.event.qtype));
		assert_string_equal(words, cases[i].name);
	}
}

/* Whatever comes is told in printable letters, and nothing beyond it is read (sanitizers). */
static void any_bytes(void **state)
{
	uint64_t seed = 1;

	for (int round = 0; round < 20000; round++) {
		struct sample who = *sample_absent();
		bool compat;

		for (size_t i = 0; i < sizeof(message.data); i += 8) {
			seed = hash_u64(seed + i);
			memcpy(message.data + i, &seed, 8);
		}
		for (int i = 0; i < 8 && round & 1; i++)
			message.data[sizeof(struct dns_message) + 12 + (seed >> 8 * i & 127)] &= 63;
		message.data_bytes = sizeof(struct dns_message) + DNS_BYTES;
		message.end_ns = (uint64_t)round * MS;
		head()->present = (uint8_t)(seed % (DNS_BYTES + 1));
		if (round % 3)
			head()->whole = 512;
		if (dns_join(&queries, &message, &whole))
			tell(&whole);
		dns_event(&message, false, &who, &compat);
		for (const char *c = who.event.qname; c && *c; c++)
			assert_in_range(*c, ' ' + 1, '~');
	}
	head()->present = DNS_BYTES + 1;
	assert_false(dns_join(&queries, &message, &whole));
	unanswered(60000 * MS, true, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(answers_find_their_queries, end),
		cmocka_unit_test_teardown(sent_again, end),
		cmocka_unit_test_teardown(lost_events_leave_no_claim, end),
		cmocka_unit_test_teardown(unread_answers, end),
		cmocka_unit_test_teardown(anyone_answers_multicast, end),
		cmocka_unit_test_teardown(no_more_than_fit, end),
		cmocka_unit_test(names_as_in_zone_files),
		cmocka_unit_test_teardown(any_bytes, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
