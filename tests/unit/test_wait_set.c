/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets of descriptors: which one decides; and the kernel's data about a connection. */
#include "unit.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>

#include "waits/sock_diag.h"
#include "waits/net_verdict.h"
#include "waits/tcp_request.h"
#include "waits/poll_set.h"
#include "sample/sample.h"

#define DAEMON_PORTS 10000

enum part { END, OWN, EVENTFD, PIPE, LISTENER, ACCEPTED, IDLE, DUE, LOW_DUE, UNIX, BUS, NESTED };

static void part_add(struct wait_set_sum *sum, enum part part)
{
	struct wait_facts facts = wait_facts_absent;
	const char *remote = part == BUS    ? "/run/dbus/system_bus_socket"
			     : part == UNIX ? "/run/app.sock"
					    : "10.0.0.1:80";

	facts.kind = part == NESTED    ? WAIT_UNKNOWN
		     : part == EVENTFD ? WAIT_EVENT
		     : part == PIPE    ? WAIT_PIPE
				       : WAIT_SOCKET;
	facts.listens = part == LISTENER;
	facts.accepts_there = part == ACCEPTED;
	facts.connected = part >= ACCEPTED && part <= BUS;
	if (part >= LISTENER && part <= LOW_DUE)
		facts.local_port = part == LOW_DUE ? 900 : 40000;
	wait_set_sum_add(sum, &facts, part == OWN || part == EVENTFD,
			 part == DUE || part == LOW_DUE, "c", remote);
}

static void what_remains_decides(void **state)
{
	static const struct {
		enum part parts[4];
		bool kept;
		const char *why;
	} rows[] = {
		{{OWN, OWN}, false, "poll"},
		{{OWN, PIPE}, false, "pipe"},
		{{OWN, NESTED}, false, "poll"},
		{{OWN, LISTENER}, false, "server"},
		{{OWN, ACCEPTED}, false, "server"},
		/* poll(2) of a connection waits for the answer, however much of it has arrived */
		{{OWN, IDLE}, false, "client"},
		{{OWN, DUE}, false, "client"},
		{{OWN, LOW_DUE}, false, "server"},
		{{OWN, UNIX}, false, "client"},
		{{OWN, BUS}, false, "poll"},
		/* epoll(7) keeps connections of a pool */
		{{OWN, IDLE}, true, "poll"},
		{{IDLE}, true, "poll"},
		{{DUE}, true, "client"},
		{{OWN, DUE}, true, "client"},
		{{OWN, UNIX}, true, "poll"},
		/* several descriptors */
		{{PIPE, IDLE}, false, "poll"},
		{{PIPE, DUE}, false, "client"},
		{{IDLE, DUE, IDLE}, true, "client"},
		{{DUE, LISTENER}, true, "poll"},
		{{ACCEPTED, DUE}, true, "client"},
		{{LOW_DUE, PIPE}, true, "poll"},
		{{LOW_DUE, DUE}, true, "client"},
		{{DUE, LOW_DUE}, true, "client"},
		/* a loop that also has a connection to a server of its own may wait for that */
		{{OWN, LISTENER, ACCEPTED}, true, "loop"},
		{{ACCEPTED, ACCEPTED}, true, "loop"},
		{{LISTENER, ACCEPTED, IDLE}, true, "poll"},
		{{LISTENER, ACCEPTED, PIPE}, true, "poll"},
		/* so may one that its own threads wake */
		{{EVENTFD, LISTENER, ACCEPTED}, true, "poll"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct wait_set_sum sum = {0};
		struct wait_facts facts;
		int64_t count = 0;

		while (count < 4 && rows[i].parts[count] != END)
			part_add(&sum, rows[i].parts[count++]);
		facts = wait_set_decide(&sum, count, rows[i].kept);
		assert_string_equal(wait_rule_of_facts(&facts, DAEMON_PORTS)->name, rows[i].why);
		assert_int_equal(facts.count, count);
	}
}

/* The process that a set waits for is reported if all answers that are due come from one address.
 */
static void one_that_is_asked(void **state)
{
	struct wait_facts facts = {.kind = WAIT_SOCKET, .connected = true, .pid = 7, .inode = 9};
	struct wait_set_sum sum = {0};

	part_add(&sum, LISTENER);
	part_add(&sum, IDLE);
	assert_int_equal(wait_set_decide(&sum, 2, true).requested_pid, ABSENT);
	wait_set_sum_add(&sum, &facts, false, true, "c", "10.0.0.1:80");
	assert_int_equal(wait_set_decide(&sum, 3, true).requested_pid, 7);
	assert_int_equal(wait_set_decide(&sum, 3, true).requested_inode, 9);
	facts.pid = 8;
	facts.local_port = 1;
	facts.request_ns = 9;
	sum.one.request_ns = 5;
	wait_set_sum_add(&sum, &facts, false, true, "d", "10.0.0.1:80");
	assert_int_equal(wait_set_decide(&sum, 4, true).requested_pid, 7);
	wait_set_sum_add(&sum, &facts, false, true, "e", "10.0.0.2:80");
	assert_int_equal(wait_set_decide(&sum, 5, true).requested_pid, ABSENT);
}

/* A loop that only accepts connections does not serve them. */
static void set_that_listens(void **state)
{
	struct wait_set_sum sum = {0};

	assert_false(wait_set_decide(&sum, 0, false).listens);
	part_add(&sum, LISTENER);
	part_add(&sum, OWN);
	part_add(&sum, LISTENER);
	assert_true(wait_set_decide(&sum, 3, false).listens);
	part_add(&sum, ACCEPTED);
	assert_false(wait_set_decide(&sum, 4, false).listens);
}

/* Only if connections remain in the set, an answer may become due while the thread sleeps. */
static void sets_that_change(void **state)
{
	struct wait_set_sum sum = {0};

	part_add(&sum, PIPE);
	assert_false(wait_set_decide(&sum, 1, true).changes);
	part_add(&sum, IDLE);
	assert_true(wait_set_decide(&sum, 2, true).changes);
	assert_false(wait_set_decide(&sum, 2, false).changes);
	assert_false(wait_set_decide(&sum, 2, false).open);
	sum.open = true;
	assert_true(wait_set_decide(&sum, 2, false).open);
}

struct answer {
	struct nlmsghdr header;
	struct inet_diag_msg socket;
	struct rtattr attribute;
	struct tcp_info info;
} __attribute__((packed, aligned(4)));

static struct answer answer_of(uint32_t sent_ms, uint32_t got_ms)
{
	return (struct answer){
		.header = {.nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_len = sizeof(struct answer)},
		.socket = {.idiag_inode = 7, .idiag_state = 1},
		.attribute = {.rta_type = INET_DIAG_INFO,
			      .rta_len = RTA_LENGTH(sizeof(struct tcp_info))},
		.info = {.tcpi_last_data_sent = sent_ms, .tcpi_last_data_recv = got_ms},
	};
}

static bool tells(const struct answer *answer, size_t length)
{
	const struct diag_record record = {.inode = 7};

	return tcp_request_parse(answer, length, &record) != REQUEST_NONE;
}

static void requests_by_times_and_bytes(void **state)
{
	const struct diag_record record = {.inode = 7};
	struct answer answer = answer_of(10, 20);

	assert_int_equal(tcp_request_parse(&answer, sizeof(answer), &record), 10);
	answer = answer_of(20, 10);
	assert_false(tells(&answer, sizeof(answer)));
	/* within one tick: a connection alone, with a request on its way, received, answered */
	answer = answer_of(10, 10);
	answer.info.tcpi_bytes_acked = 1;
	assert_false(tells(&answer, sizeof(answer)));
	answer.info.tcpi_unacked = 1;
	assert_true(tells(&answer, sizeof(answer)));
	answer.info.tcpi_unacked = 0;
	answer.info.tcpi_bytes_acked = 80;
	assert_true(tells(&answer, sizeof(answer)));
	answer.info.tcpi_bytes_received = 1;
	assert_false(tells(&answer, sizeof(answer)));
	/* connection being made */
	answer = answer_of(0, 0);
	answer.socket.idiag_state = 2;
	assert_true(tells(&answer, sizeof(answer)));
}

/* What a client's wait is for, by one answer of the kernel each. */
static void verdicts(void **state)
{
	struct tcp_answer answer = {.message.idiag_state = 1, .info_bytes = sizeof(answer.info)};
	struct text text = {0};
	int64_t us;

	/* all was answered; or more is here than was read */
	answer.info.tcpi_last_data_sent = 3000;
	answer.info.tcpi_last_data_recv = 2000;
	assert_int_equal(net_verdict_of(&answer, ABSENT, &us), NET_QUIET);
	assert_int_equal(us, 2000000);
	answer.message.idiag_rqueue = 10;
	assert_int_equal(net_verdict_of(&answer, ABSENT, &us), NET_UNREAD);
	/* a request: acknowledged, under way, sent again */
	answer.info.tcpi_last_data_sent = 1000;
	assert_int_equal(net_verdict_of(&answer, ABSENT, &us), NET_PEER);
	assert_int_equal(us, 1000000);
	answer.info.tcpi_unacked = 1;
	assert_int_equal(net_verdict_of(&answer, ABSENT, &us), NET_TRANSIT);
	answer.info.tcpi_retransmits = answer.message.idiag_retrans = 3;
	answer.message.idiag_timer = 1;
	answer.info.tcpi_rto = 1500000;
	answer.info.tcpi_last_ack_recv = 9000;
	assert_int_equal(net_verdict_of(&answer, 7000000, &us), NET_RESEND);
	assert_int_equal(us, 7000000);
	net_verdict_tell(&text, NET_RESEND, &answer, us);
	assert_string_equal(text_string(&text),
			    "sent again, not acknowledged for over 5 s: packets are lost, or the "
			    "peer's host is gone; sent again 3 times, next try within 2 s");
	text_done(&text);
	/* a window without room, and one with: 5.4 and later show which */
	answer.info.tcpi_unacked = answer.info.tcpi_retransmits = 0;
	answer.message.idiag_timer = 4;
	answer.message.idiag_wqueue = answer.info.tcpi_notsent_bytes = 100;
	assert_int_equal(net_verdict_of(&answer, ABSENT, &us), NET_WINDOW);
	answer.info.tcpi_snd_wnd = 1000;
	assert_int_equal(net_verdict_of(&answer, ABSENT, &us), NET_HELD);
	answer.info_bytes = offsetof(struct tcp_info, tcpi_snd_wnd);
	assert_int_equal(net_verdict_of(&answer, ABSENT, &us), NET_WINDOW);
	/* as Linux 4.4 has it: tcp_info ends before tcpi_notsent_bytes */
	answer.info_bytes = offsetof(struct tcp_info, tcpi_notsent_bytes);
	answer.info.tcpi_notsent_bytes = 0;
	assert_int_equal(net_verdict_of(&answer, ABSENT, &us), NET_WINDOW);
	/* probes that nobody answers */
	answer.info.tcpi_probes = 1;
	assert_int_equal(net_verdict_of(&answer, ABSENT, &us), NET_WINDOW);
	answer.info.tcpi_probes = 4;
	assert_int_equal(net_verdict_of(&answer, ABSENT, &us), NET_RESEND);
	/* a connection being made, a listening socket, no tcp_info */
	answer.message.idiag_state = 2;
	assert_int_equal(net_verdict_of(&answer, 5, &us), NET_SYN);
	assert_int_equal(us, 5);
	answer.message.idiag_state = 10;
	assert_int_equal(net_verdict_of(&answer, ABSENT, &us), NET_ACCEPT);
	answer.message.idiag_state = 1;
	answer.info_bytes = 0;
	assert_int_equal(net_verdict_of(&answer, ABSENT, &us), NET_UNKNOWN);
}

static void strange_answers(void **state)
{
	struct answer answer = answer_of(10, 20);

	for (size_t length = 0; length < sizeof(answer); length++)
		assert_false(tells(&answer, length));
	answer.socket.idiag_inode = 8;
	assert_false(tells(&answer, sizeof(answer)));
	answer = answer_of(10, 20);
	answer.attribute.rta_len = 3;
	assert_false(tells(&answer, sizeof(answer)));
	answer.attribute.rta_len = sizeof(answer);
	assert_false(tells(&answer, sizeof(answer)));
	answer = answer_of(10, 20);
	answer.header.nlmsg_len = NLMSG_LENGTH(sizeof(answer.socket));
	assert_false(tells(&answer, sizeof(answer)));
	answer.header.nlmsg_len = NLMSG_LENGTH(8);
	assert_false(tells(&answer, sizeof(answer)));
	answer = answer_of(10, 20);
	answer.header.nlmsg_type = NLMSG_ERROR;
	assert_false(tells(&answer, sizeof(answer)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_remains_decides),
		cmocka_unit_test(one_that_is_asked),
		cmocka_unit_test(set_that_listens),
		cmocka_unit_test(sets_that_change),
		cmocka_unit_test(requests_by_times_and_bytes),
		cmocka_unit_test(strange_answers),
		cmocka_unit_test(verdicts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
