/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/sock_diag.h"
#include "base/clock.h"
#include "base/memory.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define ANSWER_BYTES 32768 /* most that the kernel puts into one piece */

/* Queries that make up a group. Half-open and finished connections belong to no process. The
 * kernel ends an answer before a socket whose queue fits into no piece of it, so that queues are
 * asked for on their own. */
static const struct diag_step {
	enum diag_group group;
	uint8_t family, protocol;
	uint32_t states;
	uint32_t shows; /* of AF_UNIX */
} steps[] = {
	{DIAG_TCP, AF_UNSPEC, IPPROTO_TCP, 0xfff & ~(1 << STATE_SYN_RECV | 1 << STATE_TIME_WAIT),
	 0},
	{DIAG_UDP, AF_INET, IPPROTO_UDP, ~0u, 0},
	{DIAG_UDP, AF_INET6, IPPROTO_UDP, ~0u, 0},
	{DIAG_UNIX, AF_UNIX, 0, ~0u, UDIAG_SHOW_NAME | UDIAG_SHOW_PEER},
	{DIAG_UNIX, AF_UNIX, 0, 1 << STATE_LISTEN, UDIAG_SHOW_ICONS},
	{DIAG_MPTCP, AF_INET, IPPROTO_RAW, 0xfff, 0},
	{DIAG_MPTCP, AF_INET6, IPPROTO_RAW, 0xfff, 0},
};
#define STEP_COUNT (sizeof(steps) / sizeof(steps[0]))

#define PROTOCOL_MPTCP 262   /* IPPROTO_MPTCP, which has no place in sdiag_protocol; 5.6 */
#define ATTRIBUTE_PROTOCOL 3 /* INET_DIAG_REQ_PROTOCOL; 5.9 */

static int step_request(int fd, const struct diag_step *step)
{
	struct {
		struct nlmsghdr header;
		union {
			struct inet_diag_req_v2 inet;
			struct inet_diag_req both;
			struct unix_diag_req local;
			struct {
				struct inet_diag_req_v2 inet;
				struct rtattr attribute;
				uint32_t protocol;
			} multipath;
		};
	} request = {
		.header = {.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
	};

	if (step->family == AF_UNIX) {
		request.header.nlmsg_len = NLMSG_LENGTH(sizeof(request.local));
		request.local.sdiag_family = AF_UNIX;
		request.local.udiag_states = step->states;
		request.local.udiag_show = step->shows;
	} else if (step->family == AF_UNSPEC) {
		/* The older query for TCP gives both families in one walk of the kernel's table,
		 * which takes 1.4 ms however few connections there are. */
		request.header.nlmsg_type = TCPDIAG_GETSOCK;
		request.header.nlmsg_len = NLMSG_LENGTH(sizeof(request.both));
		request.both.idiag_states = step->states;
	} else {
		request.header.nlmsg_len = NLMSG_LENGTH(sizeof(request.inet));
		request.inet.sdiag_family = step->family;
		request.inet.sdiag_protocol = step->protocol;
		request.inet.idiag_states = step->states;
	}
	if (step->group == DIAG_MPTCP) {
		request.multipath.attribute =
			(struct rtattr){.rta_len = RTA_LENGTH(sizeof(request.multipath.protocol)),
					.rta_type = ATTRIBUTE_PROTOCOL};
		request.multipath.protocol = PROTOCOL_MPTCP;
		request.header.nlmsg_len = NLMSG_LENGTH(sizeof(request.multipath));
	}
	return send(fd, &request, request.header.nlmsg_len, 0) < 0 ? -errno : 0;
}

static struct diag_record *record_add(struct diag_records *records, uint32_t inode)
{
	struct diag_record *record;

	if (!inode /* belongs to no process any more */ || records->count == SOCKETS_MAX)
		return NULL;
	records->rows = memory_grow(records->rows, &records->capacity, records->count + 1,
				    sizeof(*records->rows));
	*index_put(&records->by_inode, inode, NULL) = records->count;
	record = &records->rows[records->count++];
	*record = (struct diag_record){.inode = inode};
	return record;
}

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}; /* of IPv4 */

static void address_take(struct diag_address *address, uint8_t family, const __be32 words[4],
			 __be16 port)
{
	address->port = ntohs(port);
	if (family == AF_INET6) {
		memcpy(address->bytes, words, 16);
		return;
	}
	memcpy(address->bytes, mapped, 12);
	memcpy(address->bytes + 12, words, 4);
}

static uint64_t pair_hash(const struct diag_address *a, const struct diag_address *b)
{
	struct diag_address pair[2];

	memset(pair, 0, sizeof(pair));
	pair[0] = *a;
	pair[1] = *b;
	return hash_bytes(pair, sizeof(pair));
}

static void inet_record_fill(struct diag_record *record, const struct inet_diag_msg *message)
{
	record->state = message->idiag_state;
	record->interface = message->id.idiag_if;
	address_take(&record->local, message->idiag_family, message->id.idiag_src,
		     message->id.idiag_sport);
	address_take(&record->remote, message->idiag_family, message->id.idiag_dst,
		     message->id.idiag_dport);
}

static void waiting_add(struct diag_records *records, const struct inet_diag_msg *message)
{
	struct diag_record *record;

	if (records->waiting_count == SOCKETS_WAITING_MAX)
		return;
	records->waiting = memory_grow(records->waiting, &records->waiting_capacity,
				       records->waiting_count + 1, sizeof(*records->waiting));
	record = &records->waiting[records->waiting_count++];
	*record = (struct diag_record){.inode = message->idiag_inode,
				       .queued = message->idiag_rqueue};
	inet_record_fill(record, message);
}

#define SEVERAL UINT64_MAX /* position of sockets that share a port (SO_REUSEPORT) */

static void inet_take(struct diag_records *records, enum diag_group group,
		      const struct inet_diag_msg *message, size_t length)
{
	struct diag_record *record;
	uint64_t *position;
	bool added;

	if (length < sizeof(*message))
		return;
	if (group == DIAG_TCP && message->idiag_state == STATE_ESTABLISHED &&
	    (message->idiag_rqueue || !message->idiag_inode))
		waiting_add(records, message);
	record = record_add(records, message->idiag_inode);
	if (!record)
		return;
	inet_record_fill(record, message);
	if (group != DIAG_UDP && record->state == STATE_LISTEN) {
		records->listens[record->local.port / 64] |= 1ull << record->local.port % 64;
		record->queued = message->idiag_rqueue;
		record->backlog = message->idiag_wqueue;
	}
	position = index_put(&records->by_pair, pair_hash(&record->local, &record->remote), &added);
	*position = added || group != DIAG_UDP ? records->count - 1 : SEVERAL;
}

/* Adds a name. An abstract name begins with a NUL and may contain more, unix(7): each becomes an
 * @. */
static uint32_t name_take(struct text *names, const char *name, size_t length)
{
	uint32_t start;

	if (!names->length)
		text_add_char(names, '\0'); /* offset 0 means no name */
	start = (uint32_t)names->length;
	/* the length of a path may include its NUL */
	if (length && name[0] && !name[length - 1])
		length--;
	for (size_t i = 0; i < length; i++)
		text_add_char(names, name[i] ? name[i] : '@');
	text_add_char(names, '\0');
	return length ? start : 0;
}

/* Notes the sockets whose connections the socket with that inode has yet to accept. */
static void queue_take(struct diag_records *records, uint32_t inode, const struct rtattr *attribute)
{
	const uint32_t *inodes = RTA_DATA(attribute);
	const uint64_t *position = index_find(&records->by_inode, inode);

	for (size_t i = 0; position && i < RTA_PAYLOAD(attribute) / sizeof(*inodes); i++)
		*index_put(&records->by_queued, inodes[i], NULL) = *position;
}

static void unix_take(struct diag_records *records, const struct diag_step *step,
		      const struct unix_diag_msg *message, size_t length)
{
	const struct rtattr *attribute = (const void *)(message + 1);
	ssize_t left = (ssize_t)length - (ssize_t)sizeof(*message);
	struct diag_record *record = NULL;

	if (left >= 0 && step->shows & UDIAG_SHOW_NAME)
		record = record_add(records, message->udiag_ino);
	if (record)
		record->state = message->udiag_state;
	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
		if (record && attribute->rta_type == UNIX_DIAG_NAME)
			record->name = name_take(&records->names, RTA_DATA(attribute),
						 RTA_PAYLOAD(attribute));
		if (record && attribute->rta_type == UNIX_DIAG_PEER &&
		    RTA_PAYLOAD(attribute) >= sizeof(record->peer))
			memcpy(&record->peer, RTA_DATA(attribute), sizeof(record->peer));
		if (attribute->rta_type == UNIX_DIAG_ICONS)
			queue_take(records, message->udiag_ino, attribute);
	}
}

/* Reads one piece of the answer. 1: the last one; 0: more follow; -errno. */
static int answer_take(struct diag_table *table)
{
	static char bytes[ANSWER_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr *header = (const void *)bytes;
	ssize_t length = recv(table->fd, bytes, sizeof(bytes), 0);

	if (length < 0)
		return errno == EINTR ? 0 : -errno;
	/* signed: NLMSG_NEXT() may subtract more than is left */
	for (ssize_t left = length; NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
		const struct nlmsgerr *error = NLMSG_DATA(header);
		size_t payload = header->nlmsg_len - NLMSG_HDRLEN;

		if (header->nlmsg_type == NLMSG_DONE)
			return 1;
		if (header->nlmsg_type == NLMSG_ERROR)
			return payload >= sizeof(*error) && error->error < 0 ? error->error : -EIO;
		if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY &&
		    header->nlmsg_type != TCPDIAG_GETSOCK)
			continue;
		if (table->group == DIAG_UNIX)
			unix_take(&table->next, &steps[table->step], NLMSG_DATA(header), payload);
		else
			inet_take(&table->next, table->group, NLMSG_DATA(header), payload);
	}
	return 0;
}

static void records_done(struct diag_records *records)
{
	free(records->rows);
	free(records->waiting);
	index_clear(&records->by_inode);
	index_clear(&records->by_pair);
	index_clear(&records->by_queued);
	text_done(&records->names);
	*records = (struct diag_records){0};
}

void diag_table_done(struct diag_table *table)
{
	records_done(&table->now);
	records_done(&table->next);
}

/* Sends the query for the group's next family from step on. False: there is none. */
static bool step_begin(struct diag_table *table, size_t step)
{
	while (step < STEP_COUNT && steps[step].group != table->group)
		step++;
	table->step = step;
	if (step == STEP_COUNT)
		return false;
	table->err = step_request(table->fd, &steps[step]);
	return true;
}

static bool table_fail(struct diag_table *table)
{
	records_done(&table->next);
	table->next_ns = 0;
	return false;
}

/* Reads a piece; true when the table is complete. */
static bool piece_read(struct diag_table *table)
{
	int end = table->err ? table->err : answer_take(table);

	/* a family that the kernel was built without has no sockets: IPv6; and where it does not
	 * list those of MPTCP no more than their protocol is known */
	if (end == -ENOENT && (steps[table->step].family == AF_INET6 || table->group == DIAG_MPTCP))
		end = 1;
	table->err = end < 0 ? end : 0;
	return end == 1 && !step_begin(table, table->step + 1);
}

bool diag_table_read(struct diag_table *table, int64_t now_ns, int64_t until_ns)
{
	int64_t start_ns = clock_monotonic_ns(), at_ns = start_ns;
	bool complete = false;

	if (table->now_ns >= now_ns)
		return true;
	if (!table->next_ns) {
		table->next_ns = table->begun_ns = now_ns;
		table->spent_ns = 0;
		step_begin(table, 0);
	}
	while (!complete && !table->err && at_ns < until_ns) {
		complete = piece_read(table);
		at_ns = clock_monotonic_ns();
	}
	table->spent_ns += at_ns - start_ns;
	if (table->err)
		return table_fail(table);
	if (!complete)
		return false;
	records_done(&table->now);
	table->now = table->next;
	table->next = (struct diag_records){0};
	table->now_ns = table->next_ns;
	table->next_ns = 0;
	return table->now_ns >= now_ns;
}

const struct diag_record *diag_record_find(const struct diag_table *table, uint32_t inode)
{
	const uint64_t *position = index_find(&table->now.by_inode, inode);

	return position ? &table->now.rows[*position] : NULL;
}

static bool address_equals(const struct diag_address *a, const struct diag_address *b)
{
	return a->port == b->port && !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

static const struct diag_record *pair_find(const struct diag_table *table,
					   const struct diag_address *local,
					   const struct diag_address *remote)
{
	const uint64_t *position = index_find(&table->now.by_pair, pair_hash(local, remote));
	const struct diag_record *found =
		position && *position != SEVERAL ? &table->now.rows[*position] : NULL;

	return found && address_equals(&found->local, local) &&
			       address_equals(&found->remote, remote)
		       ? found
		       : NULL;
}

const struct diag_record *diag_record_opposite(const struct diag_table *table,
					       const struct diag_record *record)
{
	return pair_find(table, &record->remote, &record->local);
}

const struct diag_record *diag_record_same(const struct diag_table *table,
					   const struct diag_record *record)
{
	return pair_find(table, &record->local, &record->remote);
}

/* True if both addresses are the host's own, as where it connects to itself. */
static bool is_of_host(const struct diag_record *record)
{
	const uint8_t *local = record->local.bytes, *remote = record->remote.bytes;

	return !memcmp(local, remote, sizeof(record->local.bytes)) ||
	       (!memcmp(local, mapped, sizeof(mapped)) && !memcmp(remote, mapped, sizeof(mapped)) &&
		local[12] == IN_LOOPBACKNET && remote[12] == IN_LOOPBACKNET);
}

/* The socket that is bound to the other side's address, or to that port of all addresses if these
 * are the host's own, and is not connected; NULL: none, or several. */
static const struct diag_record *bound_find(const struct diag_table *table,
					    const struct diag_record *record)
{
	struct diag_address any4 = {.port = 0}, any6 = {.port = 0}, all4, all6;
	const struct diag_record *bound;

	memcpy(any4.bytes, mapped, sizeof(mapped));
	all4 = any4;
	all6 = any6;
	all4.port = all6.port = record->remote.port;
	bound = pair_find(table, &record->remote, &any4);
	if (!bound)
		bound = pair_find(table, &record->remote, &any6);
	if (!bound && is_of_host(record))
		bound = pair_find(table, &all4, &any4);
	if (!bound && is_of_host(record))
		bound = pair_find(table, &all6, &any6);
	return bound;
}

const struct diag_record *diag_record_receiver(const struct diag_table *table,
					       const struct diag_record *record)
{
	const struct diag_record *opposite = diag_record_opposite(table, record);

	return opposite ? opposite : bound_find(table, record);
}

/* A connection that another address was translated for has a listener by its address, too, so the
 * listener's queue has to show it. */
const struct diag_record *diag_record_listener(const struct diag_table *table,
					       const struct diag_record *record)
{
	const struct diag_record *listener;
	const uint64_t *queued;

	if (table->group == DIAG_UNIX) {
		queued = index_find(&table->now.by_queued, record->inode);
		return queued ? &table->now.rows[*queued] : NULL;
	}
	if ((record->state != STATE_ESTABLISHED && record->state != STATE_SYN_SENT) ||
	    !diag_port_listens(table, record->remote.port))
		return NULL;
	listener = bound_find(table, record);
	if (!listener)
		return NULL;
	return listener->queued > (record->state == STATE_SYN_SENT ? listener->backlog : 0)
		       ? listener
		       : NULL;
}

const struct diag_record *diag_record_named(const struct diag_table *table, const char *name,
					    bool listens)
{
	const struct diag_record *found = NULL, *row = table->now.rows;

	for (size_t i = 0; i < table->now.count; i++, row++) {
		if ((row->state == STATE_LISTEN) != listens || row->peer || !row->name ||
		    strcmp(text_string(&table->now.names) + row->name, name) != 0)
			continue;
		if (found)
			return NULL;
		found = row;
	}
	return found;
}

bool diag_port_listens(const struct diag_table *table, uint16_t port)
{
	return table->now.listens[port / 64] >> port % 64 & 1;
}
