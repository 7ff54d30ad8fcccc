/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Malformed answers of sock_diag(7), as no kernel gives them. */
#include "unit.h"
#include "waits/sock_diag.h"

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

	(void)state;
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
	assert_int_equal(send(ends[1], &done, sizeof(done), 0), sizeof(done));
	assert_true(diag_table_read(&table, 1, INT64_MAX));
	for (uint32_t inode = 1; inode <= 4; inode++)
		assert_int_equal(diag_record_find(&table, inode) != NULL, inode != 3);
	assert_int_equal(diag_record_find(&table, 1)->name, 0);
	diag_table_done(&table);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
