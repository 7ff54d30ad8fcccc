/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/sockets.h"
#include "proc/comm.h"
#include "waits/holders.h"
#include "waits/net_space.h"
#include "waits/sock_diag.h"
#include "waits/tcp_request.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/text.h"
#include "sample/sample.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/xattr.h>
#include <unistd.h>

#define STATES_STILL_NS NS_PER_SECOND
#define READ_SHARE 20		       /* tables are read for one part in so many of the time, */
#define READ_GAP_NS (20 * 1000000ll)   /* with at least so much between two reads */
#define REFUSED_STILL_NS NS_PER_SECOND /* then it is tried again */
#define PIECE_NS (3 * 1000000ll)       /* and in one scan for so long */
#define PROTOCOL_BYTES 32	       /* struct proto of the kernel: name[32] */
#define STATE_ESTABLISHED 1	       /* include/net/tcp_states.h, of all families */
#define STATE_CLOSE 7
#define STATE_LISTEN 10

/* A network namespace. */
struct net_space {
	uint64_t number;
	int64_t used_ns;
	struct diag_table tables[DIAG_GROUP_COUNT];
	int single_fd; /* for questions about one connection; negative: not open */
};

/* Of which there are tables: names of struct proto, and what tsnap calls them. */
static const struct protocol {
	const char *kernel_name, *name;
	enum diag_group group;
} protocols[] = {
	{"TCP", "tcp", DIAG_TCP},    {"TCPv6", "tcp", DIAG_TCP},
	{"UDP", "udp", DIAG_UDP},    {"UDPv6", "udp", DIAG_UDP},
	{"UNIX", "unix", DIAG_UNIX}, {"UNIX-STREAM", "unix", DIAG_UNIX}, /* since 5.15 */
};

struct socket {
	struct cache_entry entry;	 /* key: inode */
	const struct protocol *protocol; /* NULL: there is no table of it */
	uint64_t space;
	int64_t asked_ns; /* first */
	int64_t told_ns;  /* the read of the table that facts are from; 0: none */
	uint32_t peer;	  /* inode of the other end; 0: not known */
	struct diag_record told;
	struct socket_facts facts;
};

void sockets_init(struct sockets *sockets, const char *root, struct holders *holders,
		  struct cache *comms)
{
	*sockets = (struct sockets){
		.root = root,
		.holders = holders,
		.comms = comms,
		.known = {.entry_bytes = sizeof(struct socket), .entries_max = SOCKETS_CACHED},
	};
}

static void space_free(struct net_space *space)
{
	for (int group = 0; group < DIAG_GROUP_COUNT; group++) {
		diag_table_done(&space->tables[group]);
		close(space->tables[group].fd);
	}
	if (space->single_fd >= 0)
		close(space->single_fd);
	free(space);
}

void sockets_done(struct sockets *sockets)
{
	for (size_t i = 0; i < sockets->space_count; i++)
		space_free(sockets->spaces[i]);
	sockets->space_count = 0;
	cache_done(&sockets->known);
}

void sockets_sweep(struct sockets *sockets, int64_t now_ns, int64_t idle_ns)
{
	cache_sweep(&sockets->known, now_ns, idle_ns);
	for (size_t i = 0; i < sockets->space_count;) {
		struct net_space *space = sockets->spaces[i];

		if (now_ns - space->used_ns < idle_ns) {
			i++;
			continue;
		}
		space_free(space);
		sockets->spaces[i] = sockets->spaces[--sockets->space_count];
	}
}

static struct net_space *space_open(struct sockets *sockets, uint64_t number, int64_t pid,
				    int64_t tid)
{
	struct net_space *space = memory_get(sizeof(*space));
	int opened = 0, fd = 0;

	space->number = number;
	for (; opened < DIAG_GROUP_COUNT; opened++) {
		fd = net_space_diag_open(sockets->root, pid, tid);
		if (fd < 0)
			break;
		space->tables[opened].group = (enum diag_group)opened;
		space->tables[opened].fd = fd;
	}
	if (opened == DIAG_GROUP_COUNT) {
		space->single_fd = net_space_diag_open(sockets->root, pid, tid);
		return space;
	}
	/* the thread may just have ended */
	if (fd != -ENOENT && fd != -ESRCH)
		sockets->err = fd;
	while (opened)
		close(space->tables[--opened].fd);
	free(space);
	return NULL;
}

/* NULL: it can't be entered, or there are too many. */
static struct net_space *space_find(struct sockets *sockets, uint64_t number, int64_t pid,
				    int64_t tid, int64_t now_ns)
{
	struct net_space *space;

	for (size_t i = 0; i < sockets->space_count; i++)
		if (sockets->spaces[i]->number == number)
			return sockets->spaces[i];
	if (!number || sockets->space_count == NET_SPACES_MAX ||
	    (sockets->refused_ns && now_ns - sockets->refused_ns < REFUSED_STILL_NS))
		return NULL;
	space = space_open(sockets, number, pid, tid);
	if (space)
		sockets->spaces[sockets->space_count++] = space;
	else
		sockets->refused_ns = now_ns;
	return space;
}

/* Reads the table so that it is as of that time, as far as this scan has time for it. */
static bool table_refresh(struct sockets *sockets, struct diag_table *table, int64_t as_of_ns,
			  int64_t now_ns)
{
	int64_t start_ns, gap_ns = table->spent_ns * READ_SHARE;

	if (table->now_ns >= as_of_ns)
		return true;
	if (sockets->scan_ns != now_ns) {
		sockets->scan_ns = now_ns;
		sockets->left_ns = PIECE_NS;
	}
	if (gap_ns < READ_GAP_NS)
		gap_ns = READ_GAP_NS;
	if (table->err)
		gap_ns = REFUSED_STILL_NS;
	if (sockets->left_ns <= 0 ||
	    (!table->next_ns && table->begun_ns && now_ns - table->begun_ns < gap_ns))
		return false;
	start_ns = clock_monotonic_ns();
	diag_table_read(table, now_ns, start_ns + sockets->left_ns);
	sockets->left_ns -= clock_monotonic_ns() - start_ns;
	if (table->err)
		sockets->err = table->err;
	return table->now_ns >= as_of_ns;
}

static const char *state_name(uint32_t state)
{
	static const char *const names[] = {
		[STATE_ESTABLISHED] = "established",
		"syn_sent",
		"syn_recv",
		"fin_wait1",
		"fin_wait2",
		"time_wait",
		"close",
		"close_wait",
		"last_ack",
		"listen",
		"closing",
	};

	return state && state < sizeof(names) / sizeof(*names) ? names[state] : "?";
}

static bool address_is_none(const struct diag_address *address)
{
	static const uint8_t none[16], mapped_none[16] = {[10] = 0xff, [11] = 0xff};

	return !address->port && (!memcmp(address->bytes, none, sizeof(none)) ||
				  !memcmp(address->bytes, mapped_none, sizeof(none)));
}

/* 10.0.0.5:80, [fe80::1%3]:80 */
static void address_add(struct text *text, const struct diag_address *address, uint32_t interface)
{
	char words[INET6_ADDRSTRLEN];
	struct in6_addr in6;

	memcpy(&in6, address->bytes, sizeof(in6));
	if (IN6_IS_ADDR_V4MAPPED(&in6)) {
		inet_ntop(AF_INET, address->bytes + 12, words, sizeof(words));
		text_add_format(text, "%s:%u", words, address->port);
		return;
	}
	inet_ntop(AF_INET6, &in6, words, sizeof(words));
	if (IN6_IS_ADDR_LINKLOCAL(&in6) && interface)
		text_add_format(text, "[%s%%%u]:%u", words, interface, address->port);
	else
		text_add_format(text, "[%s]:%u", words, address->port);
}

static const char *name_taken(struct text *text)
{
	const char *name = name_lent(text_string(text), text->length);

	text_clear(text);
	return name;
}

static const struct socket_facts facts_absent = {.local_port = ABSENT, .remote_port = ABSENT};

/* The texts of a connection. */
static void inet_write(struct socket *socket, const struct diag_record *record, bool tcp)
{
	static struct text text;
	struct socket_facts *facts = &socket->facts;
	bool connected = !address_is_none(&record->remote);

	if (connected) {
		address_add(&text, &record->remote, record->interface);
		facts->remote = name_taken(&text);
	}
	text_add_format(&text, "%s ", socket->protocol->name);
	address_add(&text, &record->local, record->interface);
	if (connected)
		text_add_format(&text, "->%s", facts->remote);
	if (tcp)
		text_add_format(&text, " %s", state_name(record->state));
	facts->connection = name_taken(&text);
	facts->brief = facts->connection;
	if (connected) {
		text_add_format(&text, "%s %s", socket->protocol->name, facts->remote);
		facts->brief = name_taken(&text);
	}
}

static void inet_tell(struct socket *socket, const struct diag_table *table,
		      const struct diag_record *record)
{
	struct socket_facts *facts = &socket->facts;
	const struct diag_record *opposite = NULL;
	bool tcp = table->group == DIAG_TCP;

	if (!facts->connection || memcmp(&socket->told, record, sizeof(*record)) != 0) {
		socket->told = *record;
		socket->facts = facts_absent;
		inet_write(socket, record, tcp);
	}
	facts->local_port = record->local.port;
	if (facts->remote)
		facts->remote_port = record->remote.port;
	if (tcp) {
		facts->listens = record->state == STATE_LISTEN;
		facts->accepts_there = diag_port_listens(table, record->local.port);
		opposite = facts->remote ? diag_record_opposite(table, record) : NULL;
	}
	socket->peer = opposite ? opposite->inode : 0;
}

/* The name of a connection is that of its server's side. */
static void unix_tell(struct socket *socket, const struct diag_table *table,
		      const struct diag_record *record)
{
	static struct text text;
	const struct diag_record *peer =
		record->peer ? diag_record_find(table, record->peer) : NULL;
	struct socket_facts *facts = &socket->facts;
	const char *names = text_string(&table->now.names);
	size_t name = record->name ? record->name : peer ? peer->name : 0;

	*facts = facts_absent;
	facts->listens = record->state == STATE_LISTEN;
	facts->accepts_there = record->name != 0;
	if (peer && peer->name)
		facts->remote = name_lent_string(names + peer->name);
	socket->peer = record->peer;
	text_add_string(&text, "unix");
	if (name)
		text_add_format(&text, " %s", names + name);
	facts->brief = name_lent(text_string(&text), text.length);
	if (facts->listens || (!record->peer && !record->name))
		text_add_format(&text, " %s", state_name(record->state));
	facts->connection = name_taken(&text);
	if (facts->listens)
		facts->brief = facts->connection;
}

/* The socket seen first: what it is, and where. */
static void socket_meet(struct sockets *sockets, struct socket *socket, int64_t pid, int64_t tid,
			int fd, int64_t now_ns)
{
	char path[PATH_MAX], protocol[PROTOCOL_BYTES + 1];
	ssize_t length;

	socket->asked_ns = now_ns;
	socket->facts = facts_absent;
	snprintf(path, sizeof(path), "%s/%lld/task/%lld/fd/%d", sockets->root, (long long)pid,
		 (long long)tid, fd);
	length = getxattr(path, "system.sockprotoname", protocol, sizeof(protocol) - 1);
	if (length <= 0)
		return;
	protocol[length] = '\0';
	for (size_t i = 0; i < sizeof(protocols) / sizeof(*protocols); i++)
		if (!strcmp(protocols[i].kernel_name, protocol))
			socket->protocol = &protocols[i];
	if (socket->protocol) {
		socket->space = net_space_of(sockets->root, pid, tid);
		return;
	}
	/* netlink, packet, af_vsock, ... */
	for (char *c = protocol; *c; c++)
		*c = *c >= 'A' && *c <= 'Z' ? (char)(*c + 'a' - 'A') : *c;
	socket->facts.connection = socket->facts.brief = name_lent_string(protocol);
}

/* Tells facts anew if the table is newer. False: a later scan knows more. */
static bool socket_renew(struct sockets *sockets, struct socket *socket, int64_t pid, int64_t tid,
			 int64_t now_ns)
{
	struct net_space *space = space_find(sockets, socket->space, pid, tid, now_ns);
	int64_t as_of_ns = now_ns - STATES_STILL_NS;
	const struct diag_record *record;
	struct diag_table *table;
	bool fresh;

	if (!space)
		return true;
	space->used_ns = now_ns;
	table = &space->tables[socket->protocol->group];
	record = diag_record_find(table, (uint32_t)socket->entry.key);
	if (!record && as_of_ns < socket->asked_ns)
		as_of_ns = socket->asked_ns;
	fresh = table_refresh(sockets, table, as_of_ns, now_ns);
	if (socket->told_ns == table->now_ns || !table->now_ns)
		return fresh || table->err;
	record = diag_record_find(table, (uint32_t)socket->entry.key);
	if (!record && !fresh)
		return false;
	socket->told_ns = table->now_ns;
	if (!record) {
		/* neither bound nor connected, or of another namespace than its thread */
		socket->peer = 0;
		socket->facts = facts_absent;
		socket->facts.connection = socket->facts.brief =
			name_lent_string(socket->protocol->name);
	} else if (table->group == DIAG_UNIX) {
		unix_tell(socket, table, record);
	} else {
		inet_tell(socket, table, record);
	}
	return true;
}

/* Which process is at the other end. Of a pair without names the asking one itself, if it has both
 * ends: children may have inherited the other one. */
static int64_t peer_find(struct sockets *sockets, struct socket *socket, int64_t pid, int64_t tid,
			 int fd, int64_t now_ns, bool *pending)
{
	bool pair = socket->protocol->group == DIAG_UNIX && !socket->facts.remote &&
		    !socket->facts.accepts_there;
	char link[40];

	snprintf(link, sizeof(link), "socket:[%u]", socket->peer);
	socket->facts.peer_count = 1;
	if (pair && holders_own(sockets->root, pid, tid, fd, link, HOLDER_ANY))
		return pid;
	return holders_find(sockets->holders, link, HOLDER_ANY, pid, now_ns,
			    pair ? &socket->facts.peer_count : NULL, pending);
}

static void peer_add(struct sockets *sockets, struct socket *socket, int64_t pid, int64_t tid,
		     int fd, int64_t now_ns, bool *pending)
{
	static struct text text;
	struct socket_facts *facts = &socket->facts;
	int64_t before = facts->peer_pid;
	const char *comm;

	facts->peer_pid = peer_find(sockets, socket, pid, tid, fd, now_ns, pending);
	if (!facts->peer_pid || facts->peer_pid == before || facts->peer_count > 1 ||
	    socket->protocol->group != DIAG_UNIX)
		return;
	comm = comm_find(sockets->comms, sockets->root, facts->peer_pid, now_ns);
	text_add_format(&text, "%s peer %lld %s", facts->brief, (long long)facts->peer_pid,
			comm ? comm : "?");
	facts->connection = name_taken(&text);
}

const struct socket_facts *socket_find(struct sockets *sockets, int64_t pid, int64_t tid, int fd,
				       const char *link, enum socket_peer peer, int64_t now_ns,
				       bool *pending)
{
	uint64_t inode = strtoull(link + strlen(SOCKET_LINK), NULL, 10);
	struct socket *socket;
	bool added;

	socket = cache_get(&sockets->known, inode, now_ns, &added);
	if (added)
		socket_meet(sockets, socket, pid, tid, fd, now_ns);
	if (!socket->protocol)
		return &socket->facts;
	/* the other end of a pair without names stays the same, too */
	if (peer == PEER_NONE &&
	    (socket->facts.remote || socket->facts.listens || socket->facts.peer_inode))
		return &socket->facts;
	if (!socket_renew(sockets, socket, pid, tid, now_ns))
		*pending = true;
	socket->facts.inode = inode;
	socket->facts.peer_inode = socket->peer;
	if (socket->peer &&
	    (peer == PEER_ALL || (peer == PEER_UNIX && socket->protocol->group == DIAG_UNIX)))
		peer_add(sockets, socket, pid, tid, fd, now_ns, pending);
	return &socket->facts;
}

static bool request_tell(struct sockets *sockets, uint64_t inode,
			 bool (*tell)(int fd, const struct diag_record *record))
{
	const struct socket *socket = cache_find(&sockets->known, inode);

	if (!socket || !socket->protocol || socket->protocol->group != DIAG_TCP || !socket->told_ns)
		return false;
	for (size_t i = 0; i < sockets->space_count; i++)
		if (sockets->spaces[i]->number == socket->space)
			return sockets->spaces[i]->single_fd >= 0 &&
			       tell(sockets->spaces[i]->single_fd, &socket->told);
	return false;
}

bool socket_asks(struct sockets *sockets, uint64_t inode)
{
	return request_tell(sockets, inode, tcp_request_is_out);
}

bool socket_owes(struct sockets *sockets, uint64_t inode)
{
	return request_tell(sockets, inode, tcp_request_is_in);
}
