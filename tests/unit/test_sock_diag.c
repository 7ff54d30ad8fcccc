/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers of sock_diag(7): malformed ones, as no kernel gives them; listeners and their queues. */
#include "unit.h"
#include "waits/sock_diag.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>

struct message {
	struct nlmsghdr header;
	struct unix_diag_msg socket;
	struct rtattr attribute;
	char rest[44];
};

static struct message message_of(uint32_t inode)
{
	return (struct message){
		.header = {.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			   .nlmsg_len = offsetof(struct message, attribute)},
		.socket = {.udiag_ino = inode, .udiag_state = 1},
	};
}

static void answer(int fd, const struct message *message, size_t length)
{
	assert_int_equal(send(fd, message, length, 0), length);
}

static void cut_answers(void **state)
{
	const struct nlmsghdr done = {.nlmsg_type = NLMSG_DONE, .nlmsg_len = sizeof(done)};
	struct message message = message_of(1);
	struct diag_table table = {.group = DIAG_UNIX};
	size_t length = message.header.nlmsg_len + 1;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	table.fd = ends[0];
	/* attributes whose length is more than the message, or less than themselves */
	message.attribute = (struct rtattr){.rta_type = UNIX_DIAG_NAME, .rta_len = sizeof(message)};
	message.header.nlmsg_len = sizeof(message);
	memcpy((char *)&message + NLMSG_ALIGN(length), &done, sizeof(done)); /* within its name */
	answer(ends[1], &message, sizeof(message));
	/* one byte after the last word: the next message would begin after the answer's end, where
	 * the previous answer had its name */
	message = message_of(2);
	message.header.nlmsg_len = (uint32_t)length;
	answer(ends[1], &message, length);
	/* cut off within a message, and within a header */
	message = message_of(3);
	answer(ends[1], &message, message.header.nlmsg_len - 1);
	answer(ends[1], &message, sizeof(message.header) - 1);
	message = message_of(4);
	answer(ends[1], &message, message.header.nlmsg_len);
	for (int query = 0; query < 2; query++)
		assert_int_equal(send(ends[1], &done, sizeof(done), 0), sizeof(done));
	assert_true(diag_table_read(&table, 1, INT64_MAX));
	for (uint32_t inode = 1; inode <= 4; inode++)
		assert_int_equal(diag_record_find(&table, inode) != NULL, inode != 3);
	assert_int_equal(diag_record_find(&table, 1)->name, 0);
	diag_table_done(&table);
	close(ends[0]);
	close(ends[1]);
}

#define ESTABLISHED 1 /* include/net/tcp_states.h */
#define SYN_SENT 2
#define LISTEN 10

/* A connection leads to the socket that has to accept it where that one's queue shows it: a
 * listener at the very address, or at all addresses if the connection is within the host. */
static void listeners(void **state)
{
	static const struct {
		uint32_t inode, state;
		const char *from, *to;
		uint16_t from_port, to_port;
		uint32_t queued, backlog;
		uint32_t listener; /* what it leads to; 0: nothing */
	} rows[] = {
		/* clang-format off */
		{1, LISTEN, "127.0.0.1", "0.0.0.0", 80, 0, 3, 2, 0},
		{2, LISTEN, "0.0.0.0", "0.0.0.0", 81, 0, 1, 2, 0},
		{3, LISTEN, "127.0.0.1", "0.0.0.0", 82, 0, 0, 2, 0}, /* an empty queue */
		{10, ESTABLISHED, "127.0.0.1", "127.0.0.1", 5000, 80, 0, 0, 1},
		{11, SYN_SENT, "127.0.0.1", "127.0.0.1", 5001, 80, 0, 0, 1},
		{12, ESTABLISHED, "10.0.0.1", "10.0.0.1", 5002, 81, 0, 0, 2},
		{13, ESTABLISHED, "127.0.0.1", "127.0.0.2", 5002, 81, 0, 0, 2},
		{14, SYN_SENT, "10.0.0.1", "10.0.0.1", 5003, 81, 0, 0, 0}, /* there is room for it */
		{15, ESTABLISHED, "10.0.0.1", "10.0.0.2", 5004, 81, 0, 0, 0}, /* another host's */
		{16, ESTABLISHED, "127.0.0.1", "127.0.0.1", 5005, 82, 0, 0, 0},
		{17, ESTABLISHED, "127.0.0.1", "127.0.0.1", 5006, 90, 0, 0, 0},
		/* clang-format on */
	};
	const struct nlmsghdr done = {.nlmsg_type = NLMSG_DONE, .nlmsg_len = sizeof(done)};
	struct diag_table table = {.group = DIAG_TCP};
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	table.fd = ends[0];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct {
			struct nlmsghdr header;
			struct inet_diag_msg socket;
		} message = {
			.header = {.nlmsg_type = TCPDIAG_GETSOCK, .nlmsg_len = sizeof(message)},
			.socket = {.idiag_family = AF_INET,
				   .idiag_state = (uint8_t)rows[i].state,
				   .idiag_inode = rows[i].inode,
				   .idiag_rqueue = rows[i].queued,
				   .idiag_wqueue = rows[i].backlog,
				   .id = {.idiag_sport = htons(rows[i].from_port),
					  .idiag_dport = htons(rows[i].to_port)}},
		};

		inet_pton(AF_INET, rows[i].from, message.socket.id.idiag_src);
		inet_pton(AF_INET, rows[i].to, message.socket.id.idiag_dst);
		assert_int_equal(send(ends[1], &message, sizeof(message), 0), sizeof(message));
	}
	assert_int_equal(send(ends[1], &done, sizeof(done), 0), sizeof(done));
	assert_true(diag_table_read(&table, 1, INT64_MAX));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct diag_record *found =
			diag_record_listener(&table, diag_record_find(&table, rows[i].inode));

		if ((found ? found->inode : 0) != rows[i].listener)
			fail_msg("%u leads to %u", rows[i].inode, found ? found->inode : 0);
	}
	diag_table_done(&table);
	close(ends[0]);
	close(ends[1]);
}

/* What a connected UDP socket sends goes to the one that is connected back, else to the one that is
 * bound to the very address, else to that of all addresses within the host; of several none is
 * known. */
static void receivers(void **state)
{
	static const struct {
		uint32_t inode;
		const char *from, *to;
		uint16_t from_port, to_port;
		uint32_t receiver; /* what it leads to; 0: nothing */
	} rows[] = {
		/* clang-format off */
		{1, "127.0.0.1", "0.0.0.0", 53, 0, 0},
		{2, "0.0.0.0", "0.0.0.0", 53, 0, 0},
		{3, "0.0.0.0", "0.0.0.0", 60, 0, 0}, {4, "0.0.0.0", "0.0.0.0", 60, 0, 0}, /* share a port */
		{10, "127.0.0.1", "127.0.0.1", 5000, 53, 1},
		{11, "10.0.0.1", "10.0.0.1", 5001, 53, 2},
		{12, "10.0.0.1", "10.0.0.2", 5002, 53, 0}, /* another host's */
		{13, "127.0.0.1", "127.0.0.1", 5003, 60, 0},
		{14, "127.0.0.1", "127.0.0.1", 5004, 5005, 15}, {15, "127.0.0.1", "127.0.0.1", 5005, 5004, 14},
		/* clang-format on */
	};
	const struct nlmsghdr done = {.nlmsg_type = NLMSG_DONE, .nlmsg_len = sizeof(done)};
	struct diag_table table = {.group = DIAG_UDP};
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	table.fd = ends[0];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct {
			struct nlmsghdr header;
			struct inet_diag_msg socket;
		} message = {
			.header = {.nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_len = sizeof(message)},
			.socket = {.idiag_family = AF_INET,
				   .idiag_inode = rows[i].inode,
				   .id = {.idiag_sport = htons(rows[i].from_port),
					  .idiag_dport = htons(rows[i].to_port)}},
		};

		inet_pton(AF_INET, rows[i].from, message.socket.id.idiag_src);
		inet_pton(AF_INET, rows[i].to, message.socket.id.idiag_dst);
		assert_int_equal(send(ends[1], &message, sizeof(message), 0), sizeof(message));
	}
	for (int query = 0; query < 2; query++)
		assert_int_equal(send(ends[1], &done, sizeof(done), 0), sizeof(done));
	assert_true(diag_table_read(&table, 1, INT64_MAX));
	for (size_t i = 4; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct diag_record *found =
			diag_record_receiver(&table, diag_record_find(&table, rows[i].inode));

		if ((found ? found->inode : 0) != rows[i].receiver)
			fail_msg("%u leads to %u", rows[i].inode, found ? found->inode : 0);
	}
	diag_table_done(&table);
	close(ends[0]);
	close(ends[1]);
}

/* A socket in the queue of a listener leads to that one, and so does a name that one listener alone
 * has. */
static void queues_of_unix_sockets(void **state)
{
	static const struct {
		uint32_t inode, state;
		const char *name; /* of 8 bytes with its NUL */
	} rows[] = {{5, LISTEN, "/run/up"}, {6, LISTEN, "/run/tw"}, {7, ESTABLISHED, ""},
		    {8, LISTEN, "/run/tw"}, {9, ESTABLISHED, ""},   {10, ESTABLISHED, "/run/ot"}};
	const struct nlmsghdr done = {.nlmsg_type = NLMSG_DONE, .nlmsg_len = sizeof(done)};
	const uint32_t queued[] = {0, 7};
	struct diag_table table = {.group = DIAG_UNIX};
	struct message message;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	table.fd = ends[0];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		message = message_of(rows[i].inode);
		message.socket.udiag_state = (uint8_t)rows[i].state;
		message.attribute =
			(struct rtattr){.rta_type = UNIX_DIAG_NAME, .rta_len = RTA_LENGTH(8)};
		snprintf(message.rest, sizeof(message.rest), "%s", rows[i].name);
		if (*rows[i].name)
			message.header.nlmsg_len += RTA_SPACE(8);
		answer(ends[1], &message, message.header.nlmsg_len);
	}
	assert_int_equal(send(ends[1], &done, sizeof(done), 0), sizeof(done));
	message = message_of(5);
	message.attribute =
		(struct rtattr){.rta_type = UNIX_DIAG_ICONS, .rta_len = RTA_LENGTH(sizeof(queued))};
	memcpy(message.rest, queued, sizeof(queued));
	message.header.nlmsg_len += RTA_SPACE(sizeof(queued));
	answer(ends[1], &message, message.header.nlmsg_len);
	assert_int_equal(send(ends[1], &done, sizeof(done), 0), sizeof(done));
	assert_true(diag_table_read(&table, 1, INT64_MAX));
	assert_int_equal(diag_record_listener(&table, diag_record_find(&table, 7))->inode, 5);
	assert_null(diag_record_listener(&table, diag_record_find(&table, 9)));
	assert_int_equal(diag_record_named(&table, "/run/up", true)->inode, 5);
	assert_null(diag_record_named(&table, "/run/tw", true));
	assert_null(diag_record_named(&table, "/run/ot", true));
	diag_table_done(&table);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_answers),
		cmocka_unit_test(listeners),
		cmocka_unit_test(receivers),
		cmocka_unit_test(queues_of_unix_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
