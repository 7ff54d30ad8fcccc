/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers of sock_diag(7), as no kernel gives them: the first byte selects the request, then come
 * pieces, each after two bytes with its length. */
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "waits/sock_diag.h"
#include "fuzz_row.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FAMILIES 2 /* most families of a group */

static void pieces_send(int socket, const uint8_t *data, size_t size)
{
	const struct nlmsghdr done = {.nlmsg_type = NLMSG_DONE, .nlmsg_len = sizeof(done)};

	while (size > 2) {
		size_t length = data[0] | (size_t)data[1] << 8;

		data += 2;
		size -= 2;
		length = length < size ? length : size;
		if (length && send(socket, data, length, MSG_DONTWAIT) < 0)
			break;
		data += length;
		size -= length;
	}
	for (int i = 0; i < FAMILIES; i++)
		send(socket, &done, sizeof(done), MSG_DONTWAIT);
}

/* Checks that each row can be found, and that its texts are whole. */
static void rows_check(const struct diag_table *table)
{
	for (size_t i = 0; i < table->now.count; i++) {
		const struct diag_record *row = &table->now.rows[i];
		const struct diag_record *found = diag_record_find(table, row->inode);

		must(found && found->inode == row->inode);
		must(row->name < (table->now.names.length ? table->now.names.length : 1));
		diag_record_opposite(table, row);
		diag_record_same(table, row);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct diag_table table = {
		.group = (enum diag_group)(size ? data[0] % DIAG_GROUP_COUNT : 0)};
	int pair[2];

	if (!size)
		return 0;
	must(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
	pieces_send(pair[1], data + 1, size - 1);
	table.fd = pair[0];
	if (diag_table_read(&table, 1, INT64_MAX))
		rows_check(&table);
	diag_port_listens(&table, 80);
	diag_table_done(&table);
	close(pair[0]);
	close(pair[1]);
	return 0;
}
