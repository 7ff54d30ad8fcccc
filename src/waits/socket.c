/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/socket.h"
#include "waits/kernel_stack.h"
#include "waits/net_far.h"
#include "waits/socket_number.h"
#include "proc/proc.h"
#include "proc/processes.h"
#include "waits/tcp_request.h"
#include "waits/wait_object.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "sample/waits_on.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#define STATES_STILL_NS NS_PER_SECOND	   /* states are used for so long */
#define STATES_LONG_NS (5 * NS_PER_SECOND) /* limit of that where reading them takes long */
#define STATES_SHARE 1000  /* share of the time that reading them takes then: 1/STATES_SHARE */
#define PROTOCOL_BYTES 32  /* struct proto of the kernel: name[32] */
#define CLIENT_PORTS 32768 /* the kernel gives ports from here on to those that bind none */
#define SOCKETS_CACHED 65536
#define STACK_BYTES 8192

/* Protocols that have tables: the name in struct proto, and the name that tsnap uses. */
static const struct protocol {
	const char *kernel_name, *name;
	enum diag_group group;
} protocols[] = {
	{"TCP", "tcp", DIAG_TCP},	{"TCPv6", "tcp", DIAG_TCP},
	{"UDP", "udp", DIAG_UDP},	{"UDPv6", "udp", DIAG_UDP},
	{"MPTCP", "mptcp", DIAG_MPTCP}, {"MPTCPv6", "mptcp", DIAG_MPTCP},
	{"UNIX", "unix", DIAG_UNIX},	{"UNIX-STREAM", "unix", DIAG_UNIX}, /* since 5.15 */
};

/* DNS; DNS over TLS, or QUIC; multicast DNS. */
static const int64_t dns_ports[] = {53, 853, 5353};

/* Sockets of systemd-resolved (its other interface is UDP, on 127.0.0.53) and of nscd. */
static const char *const dns_paths[] = {
	"/run/systemd/resolve/io.systemd.Resolve",
	"/run/nscd/socket",
	"/var/run/nscd/socket",
};

struct socket {
	struct cache_entry entry;	 /* key: inode */
	const struct protocol *protocol; /* NULL: the protocol has no table */
	uint64_t namespace;
	int64_t requested_ns; /* time of the first request */
	int64_t reported_ns;  /* time of the table that the facts are from; 0: none */
	uint32_t peer;	      /* inode of the other end; 0: not known */
	bool near;	      /* the other end is in the same network namespace */
	struct far_end far;
	struct diag_record reported;
	struct socket_facts facts;
};

static struct cache sockets = {.entry_bytes = sizeof(struct socket), .entries_max = SOCKETS_CACHED};

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

static bool port_is_of_dns(int64_t port)
{
	for (size_t i = 0; i < sizeof(dns_ports) / sizeof(*dns_ports); i++)
		if (port == dns_ports[i])
			return true;
	return false;
}

static bool path_is_of_dns(const char *path)
{
	for (size_t i = 0; path && i < sizeof(dns_paths) / sizeof(*dns_paths); i++)
		if (!strcmp(path, dns_paths[i]))
			return true;
	return false;
}

static bool address_is_none(const struct diag_address *address)
{
	static const uint8_t none[16], mapped_none[16] = {[10] = 0xff, [11] = 0xff};

	return !address->port && (!memcmp(address->bytes, none, sizeof(none)) ||
				  !memcmp(address->bytes, mapped_none, sizeof(none)));
}

/* Adds 10.0.0.5:80 or [fe80::1%3]:80. */
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

/* Adds tcp 10.0.0.9:40001->10.0.0.5:80; to: NULL: not connected. */
static void connection_add(struct text *text, const char *protocol, const struct diag_address *from,
			   const struct diag_address *to, const struct diag_record *record)
{
	text_add_format(text, "%s ", protocol);
	address_add(text, from, record->interface);
	if (!to)
		return;
	text_add_string(text, "->");
	address_add(text, to, record->interface);
}

static const char *name_taken(struct text *text)
{
	const char *name = name_transient(text_string(text), text->length);

	text_clear(text);
	return name;
}

static const struct socket_facts facts_absent = {.local_port = ABSENT, .remote_port = ABSENT};

/* Writes the texts of a connection. */
static void inet_write(struct socket *socket, const struct diag_record *record, bool tcp)
{
	static struct text text;
	struct socket_facts *facts = &socket->facts;
	bool connected = !address_is_none(&record->remote);

	if (connected) {
		address_add(&text, &record->remote, record->interface);
		facts->remote = name_taken(&text);
	}
	connection_add(&text, socket->protocol->name, &record->local,
		       connected ? &record->remote : NULL, record);
	if (tcp)
		text_add_format(&text, " %s", state_name(record->state));
	facts->connection = name_taken(&text);
	facts->brief = facts->connection;
	if (connected) {
		text_add_format(&text, "%s %s", socket->protocol->name, facts->remote);
		facts->brief = name_taken(&text);
	}
}

static void inet_describe(struct socket *socket, const struct diag_table *table,
			  const struct diag_record *record)
{
	struct socket_facts *facts = &socket->facts;
	const struct diag_record *opposite = NULL;
	bool tcp = table->group != DIAG_UDP;

	if (!facts->connection || memcmp(&socket->reported, record, sizeof(*record)) != 0) {
		socket->reported = *record;
		socket->facts = facts_absent;
		socket->far = (struct far_end){0};
		inet_write(socket, record, tcp);
	}
	facts->local_port = record->local.port;
	if (facts->remote)
		facts->remote_port = record->remote.port;
	if (tcp) {
		facts->listens = record->state == STATE_LISTEN;
		facts->connects = record->state == STATE_SYN_SENT;
		facts->accepts_there = diag_port_listens(table, record->local.port);
		opposite = facts->remote ? diag_record_opposite(table, record) : NULL;
		facts->unaccepted = facts->remote && !opposite;
		if (facts->unaccepted)
			opposite = diag_record_listener(table, record);
		facts->unaccepted &= opposite != NULL;
	} else if (facts->remote) {
		opposite = diag_record_receiver(table, record);
	} else {
		facts->asks = facts->local_port >= CLIENT_PORTS;
	}
	facts->dns = port_is_of_dns(facts->remote_port) && !port_is_of_dns(facts->local_port) &&
		     !facts->accepts_there;
	socket->near = opposite != NULL;
	socket->peer = opposite ? opposite->inode : 0;
}

#define UNIX_NAME_BYTES (sizeof(((struct sockaddr_un *)NULL)->sun_path) + 1)

/* Finds the address of AF_UNIX that the call was given, as the table writes it. False: it has
 * none. */
static bool unix_address_find(const struct wait *wait, char name[UNIX_NAME_BYTES])
{
	/* calls with an address, and which argument it is; its length is the next one */
	static const struct {
		const char *call;
		int arg;
	} calls[] = {{"connect", 1}, {"sendto", 4}};
	size_t before = offsetof(struct sockaddr_un, sun_path), size = 0;
	struct sockaddr_un address = {0};
	struct msghdr message;
	uint64_t at = 0;

	for (size_t i = 0; wait->call && i < sizeof(calls) / sizeof(*calls); i++)
		if (!strcmp(wait->call, calls[i].call)) {
			at = wait_address(wait, calls[i].arg);
			size = (size_t)(uint32_t)wait->arg[calls[i].arg + 1];
		}
	if (wait->call && !strcmp(wait->call, "sendmsg") && !wait->compat &&
	    wait_memory_read(wait, wait_address(wait, 1), &message, sizeof(message))) {
		at = (uint64_t)(uintptr_t)message.msg_name;
		size = message.msg_namelen;
	}
	if (!at || size <= before || size > sizeof(address) ||
	    !wait_memory_read(wait, at, &address, size) || address.sun_family != AF_UNIX)
		return false;
	memset(name, 0, UNIX_NAME_BYTES);
	memcpy(name, address.sun_path, size - before);
	/* an abstract name begins with a NUL, and may contain more */
	for (size_t i = 0; !*address.sun_path && i < size - before; i++)
		name[i] = name[i] ? name[i] : '@';
	return *name == '/' || *name == '@';
}

/* The socket that a thread in connect(2) waits for, as its queue is full; NULL: not known. */
static const struct diag_record *unix_connects_to(const struct wait *wait,
						  const struct diag_table *table)
{
	char name[UNIX_NAME_BYTES];

	return wait->call && !strcmp(wait->call, "connect") && unix_address_find(wait, name)
		       ? diag_record_named(table, name, true)
		       : NULL;
}

/* Describes an AF_UNIX socket. A connection has the name of its server's side. */
static void unix_describe(const struct wait *wait, struct socket *socket,
			  const struct diag_table *table, const struct diag_record *record)
{
	static struct text text;
	const struct diag_record *listener =
					 record->peer ? NULL : diag_record_listener(table, record),
				 *peer = record->peer ? diag_record_find(table, record->peer)
						      : listener;
	struct socket_facts *facts = &socket->facts;
	const char *names = text_string(&table->now.names);
	size_t name;

	if (!peer && !record->peer && record->state != STATE_LISTEN)
		peer = listener = unix_connects_to(wait, table);
	name = record->name ? record->name : peer ? peer->name : 0;
	*facts = facts_absent;
	facts->unaccepted = listener != NULL;
	facts->listens = record->state == STATE_LISTEN;
	facts->accepts_there = record->name != 0;
	if (peer && peer->name)
		facts->remote = name_transient_string(names + peer->name);
	facts->dns = path_is_of_dns(facts->remote) && !facts->accepts_there;
	socket->peer = listener ? listener->inode : record->peer;
	text_add_string(&text, "unix");
	if (name)
		text_add_format(&text, " %s", names + name);
	facts->brief = name_transient(text_string(&text), text.length);
	if (facts->listens || (!socket->peer && !record->name))
		text_add_format(&text, " %s", state_name(record->state));
	facts->connection = name_taken(&text);
	if (facts->listens)
		facts->brief = facts->connection;
}

/* Reads protocol and namespace of a socket that is seen for the first time. */
static void socket_meet(const struct wait *wait, struct socket *socket, int fd)
{
	char path[PATH_MAX], protocol[PROTOCOL_BYTES + 1];
	ssize_t length;

	socket->requested_ns = wait->now_ns;
	socket->facts = facts_absent;
	snprintf(path, sizeof(path), "%s/%lld/task/%lld/fd/%d", wait->waits->root,
		 (long long)wait->pid, (long long)wait->tid, fd);
	length = getxattr(path, "system.sockprotoname", protocol, sizeof(protocol) - 1);
	if (length <= 0)
		return;
	protocol[length] = '\0';
	for (size_t i = 0; i < sizeof(protocols) / sizeof(*protocols); i++)
		if (!strcmp(protocols[i].kernel_name, protocol))
			socket->protocol = &protocols[i];
	if (socket->protocol) {
		socket->namespace = net_namespace_of(wait->waits->root, wait->pid, wait->tid);
		return;
	}
	/* other protocols are named in lower case: netlink, packet, af_vsock, ... */
	for (char *c = protocol; *c; c++)
		*c = *c >= 'A' && *c <= 'Z' ? (char)(*c + 'a' - 'A') : *c;
	socket->facts.connection = socket->facts.brief =
		socket_number_name(wait, protocol, socket->entry.key);
	if (!socket->facts.brief)
		socket->facts.connection = socket->facts.brief = name_transient_string(protocol);
}

/* Time for which the states in the table are used. */
static int64_t states_still_ns(const struct diag_table *table)
{
	int64_t still_ns = table->spent_ns * STATES_SHARE;

	if (still_ns < STATES_STILL_NS)
		return STATES_STILL_NS;
	return still_ns < STATES_LONG_NS ? still_ns : STATES_LONG_NS;
}

/* Renews the facts if the table is newer than they are. False: a later scan knows more. */
static bool socket_renew(const struct wait *wait, struct socket *socket)
{
	struct diag_table *table =
		net_namespaces_table(wait->waits->root, socket->namespace, socket->protocol->group,
				     wait->pid, wait->tid, wait->now_ns);
	const struct diag_record *record;
	int64_t as_of_ns;
	bool fresh;

	if (!table)
		return true;
	as_of_ns = wait->now_ns - states_still_ns(table);
	record = diag_record_find(table, (uint32_t)socket->entry.key);
	if (!record && as_of_ns < socket->requested_ns)
		as_of_ns = socket->requested_ns;
	fresh = net_namespaces_refresh(table, as_of_ns, wait->now_ns);
	if (socket->reported_ns == table->now_ns || !table->now_ns)
		return fresh || table->err;
	record = diag_record_find(table, (uint32_t)socket->entry.key);
	if (!record && !fresh)
		return false;
	socket->reported_ns = table->now_ns;
	if (!record) {
		/* the socket is neither bound nor connected, or in another namespace than its
		 * thread */
		socket->peer = 0;
		socket->near = false;
		socket->facts = facts_absent;
		socket->facts.connection = socket->facts.brief =
			name_transient_string(socket->protocol->name);
	} else if (table->group == DIAG_UNIX) {
		unix_describe(wait, socket, table, record);
	} else {
		inet_describe(socket, table, record);
	}
	return true;
}

/* Finds the other end in another network namespace if the socket's own has none. False: a later
 * scan knows more. */
static bool socket_look_far(const struct wait *wait, struct socket *socket)
{
	bool known;

	if (socket->protocol->group != DIAG_TCP || socket->near || !socket->facts.remote)
		return true;
	known = net_far_find(wait->waits->root, socket->namespace, &socket->reported,
			     socket->requested_ns, wait->now_ns, &socket->far);
	socket->peer = socket->far.peer;
	return known;
}

/* Finds the process at the other end. If the process has both ends of a pair without names it is
 * its own peer, even if children have inherited the other end. */
static int64_t peer_find(struct wait *wait, struct socket *socket, int fd)
{
	bool pair = socket->protocol->group == DIAG_UNIX && !socket->facts.remote &&
		    !socket->facts.accepts_there;
	struct holders *holders = &wait->waits->holders;
	char link[40];

	/* a search from the other end may want this one */
	snprintf(link, sizeof(link), SOCKET_LINK "%u]", (uint32_t)socket->entry.key);
	holders_note(holders, link, wait->pid, fd, wait->now_ns);
	snprintf(link, sizeof(link), SOCKET_LINK "%u]", socket->peer);
	socket->facts.peer_count = 1;
	if (pair && holders_own(wait->waits->root, wait->pid, wait->tid, fd, link, HOLDER_ANY))
		return wait->pid;
	return holders_find(holders, link, HOLDER_ANY, wait->pid, wait->now_ns,
			    pair || socket->facts.unaccepted ? &socket->facts.peer_count : NULL,
			    &wait->pending);
}

static void peer_add(struct wait *wait, struct socket *socket, int fd)
{
	static struct text text;
	struct socket_facts *facts = &socket->facts;
	int64_t before = facts->peer_pid;
	const char *comm;

	facts->peer_pid = peer_find(wait, socket, fd);
	if (!facts->peer_pid || facts->peer_pid == before || facts->peer_count > 1 ||
	    socket->protocol->group != DIAG_UNIX)
		return;
	comm = comm_find(wait->waits->comms, wait->waits->root, facts->peer_pid, wait->now_ns);
	text_add_format(&text, "%s%s%lld %s", facts->brief,
			facts->unaccepted ? WAITS_ON_UNACCEPTED : WAITS_ON_PEER,
			(long long)facts->peer_pid, comm ? comm : "?");
	facts->connection = name_taken(&text);
}

const struct socket_facts *socket_find(struct wait *wait, int fd, const char *link,
				       enum socket_peer peer)
{
	uint64_t inode = strtoull(link + strlen(SOCKET_LINK), NULL, 10);
	struct socket *socket;
	bool added;

	socket = cache_get(&sockets, inode, wait->now_ns, &added);
	if (added)
		socket_meet(wait, socket, fd);
	if (!socket->protocol)
		return &socket->facts;
	/* the other end of a pair without names never changes, either */
	if (peer == PEER_NONE &&
	    (socket->facts.remote || socket->facts.listens || socket->facts.peer_inode))
		return &socket->facts;
	if (!socket_renew(wait, socket) || (peer == PEER_ALL && !socket_look_far(wait, socket)))
		wait->pending = true;
	socket->facts.inode = inode;
	socket->facts.peer_inode = socket->peer;
	if (socket->peer &&
	    (peer == PEER_ALL || (peer == PEER_UNIX && socket->protocol->group == DIAG_UNIX)))
		peer_add(wait, socket, fd);
	return &socket->facts;
}

int socket_query_fd(uint64_t inode, int64_t now_ns, const struct diag_record **record)
{
	struct socket *socket = cache_find(&sockets, inode);
	struct net_namespace *namespace;

	if (!socket || !socket->protocol || socket->protocol->group != DIAG_TCP ||
	    !socket->reported_ns)
		return -1;
	namespace = net_namespaces_find(socket->namespace);
	if (!namespace)
		return -1;
	/* a thread that sleeps for long is not looked at again: see sockets_sweep() */
	socket->entry.used_ns = namespace->used_ns = now_ns;
	*record = &socket->reported;
	return namespace->single_fd;
}

int64_t socket_request_age_ms(uint64_t inode, int64_t now_ns)
{
	const struct socket *socket = cache_find(&sockets, inode);
	const struct diag_record *record;
	int fd = socket_query_fd(inode, now_ns, &record);

	if (socket && socket->facts.dns && socket->protocol->group == DIAG_UDP)
		return 0;
	return fd >= 0 ? tcp_request_age_ms(fd, record) : REQUEST_NONE;
}

bool socket_owes(uint64_t inode, int64_t now_ns)
{
	const struct diag_record *record;
	int fd = socket_query_fd(inode, now_ns, &record);

	return fd >= 0 && tcp_request_is_in(fd, record);
}

const char *socket_as_client(uint64_t inode)
{
	static struct text text;
	const struct socket *socket = cache_find(&sockets, inode);
	const struct diag_record *record = socket ? &socket->reported : NULL;

	if (!socket || !socket->protocol || socket->protocol->group != DIAG_TCP ||
	    !socket->facts.remote)
		return NULL;
	connection_add(&text, socket->protocol->name, &record->remote, &record->local, record);
	text_add_format(&text, " %s", state_name(STATE_ESTABLISHED));
	return name_taken(&text);
}

/* --- the object */

/* Adds the process that a datagram is for if the call names its socket of AF_UNIX, which has no
 * room left: /dev/log, for instance. */
static void receiver_describe(struct wait *wait, const struct socket *socket)
{
	const struct diag_table *table =
		net_namespaces_table(wait->waits->root, socket->namespace, DIAG_UNIX, wait->pid,
				     wait->tid, wait->now_ns);
	char name[UNIX_NAME_BYTES], link[40];
	const struct diag_record *record;
	uint32_t count = 1;
	int64_t pid;

	if (!table || !unix_address_find(wait, name))
		return;
	text_add_format(wait->text, " %s", name);
	record = diag_record_named(table, name, false);
	if (!record)
		return;
	snprintf(link, sizeof(link), SOCKET_LINK "%u]", record->inode);
	pid = holders_find(&wait->waits->holders, link, HOLDER_ANY, wait->pid, wait->now_ns, &count,
			   &wait->pending);
	wait->of_thread = true;
	if (!pid)
		return;
	if (count > 1) {
		text_add_format(wait->text, WAITS_ON_PEER "one of %u", count);
		return;
	}
	wait->facts.pid = pid;
	wait->facts.inode = record->inode;
	wait_add_thread(wait, WAITS_ON_PEER, pid);
}

/* Describes close(2) of a connection whose data has not all been sent, with SO_LINGER of socket(7).
 * The descriptor is gone by then, and so is all that leads to the connection. */
static void close_describe(struct wait *wait)
{
	char stack[STACK_BYTES];

	if (proc_file_read(wait->waits->root, wait->pid, wait->tid, "stack", stack, sizeof(stack)) >
		    0 &&
	    stack_has(stack, "sk_stream_wait_close")) {
		text_add_string(wait->text, "unsent data of a closed connection (SO_LINGER)");
		wait->facts.writes = true;
	} else {
		file_describe(wait);
	}
}

static void socket_describe(struct wait *wait)
{
	const struct socket_facts *socket =
		socket_find(wait, wait->fd, wait->link, wait->numbers_only ? PEER_NONE : PEER_ALL);
	const char *link = socket->unaccepted ? WAITS_ON_UNACCEPTED : WAITS_ON_PEER;
	const struct socket *own;
	char peer[40];
	int64_t tid;

	wait->socket = socket;
	wait->facts.own = (int64_t)socket->inode;
	text_add_string(wait->text, socket->brief ? socket->brief : wait->link);
	wait->facts.listens = socket->listens;
	wait->facts.connected = socket->remote != NULL;
	wait->facts.accepts_there = socket->accepts_there;
	wait->facts.dns = socket->dns;
	wait->facts.local_port = socket->local_port;
	wait->facts.remote_port = socket->remote_port;
	if (socket->peer_count > 1) {
		text_add_format(wait->text, "%s%s of %u", link, socket->unaccepted ? "any" : "one",
				socket->peer_count);
	} else if (socket->peer_pid) {
		wait->facts.pid = socket->peer_pid;
		wait->facts.inode = socket->peer_inode;
		snprintf(peer, sizeof(peer), SOCKET_LINK "%u]", socket->peer_inode);
		tid = holders_thread(&wait->waits->holders, peer, HOLDER_ANY, socket->peer_pid);
		if (tid)
			wait->facts.tid = tid;
		wait_add_thread(wait, link, tid ? tid : socket->peer_pid);
	} else if (!wait->numbers_only && !socket->remote && !socket->peer_inode) {
		own = cache_find(&sockets, socket->inode);
		if (own && own->protocol && own->protocol->group == DIAG_UNIX)
			receiver_describe(wait, own);
	}
}

/* True for an end of a pair whose other end the process has, too. */
static bool socket_is_own(const struct wait *wait)
{
	char pair[40];

	snprintf(pair, sizeof(pair), SOCKET_LINK "%u]", wait->socket->peer_inode);
	return !wait->facts.connected && wait->socket->peer_inode &&
	       holders_own(wait->waits->root, wait->pid, wait->tid, wait->fd, pair, HOLDER_ANY);
}

static void socket_edge(const struct wait_facts *facts, const struct sample *sample,
			struct edge *edge)
{
	edge_to_end(EDGE_SOCKET, facts, sample, edge);
}

static void sockets_sweep(int64_t now_ns, int64_t idle_ns)
{
	cache_sweep(&sockets, now_ns, idle_ns);
	net_namespaces_sweep(now_ns, idle_ns);
}

static void sockets_done(void)
{
	net_far_done();
	net_namespaces_done();
	cache_done(&sockets);
}

static const struct socket_facts *socket_connection(struct wait *wait)
{
	return socket_find(wait, wait->fd, wait->link, PEER_UNIX);
}

const struct wait_object socket_object = {
	.kind = WAIT_SOCKET,
	.calls = (const struct wait_call[]){{"close", close_describe, 0}, {0}},
	.links = (const struct wait_link[]){{SOCKET_LINK, "socket"}, {0}},
	.describe = socket_describe,
	.connection = socket_connection,
	.is_own = socket_is_own,
	.edge = socket_edge,
	.ends = EDGE_SOCKET,
	.searched = true,
	.known = &served,
	.known_ns = 3600 * NS_PER_SECOND, /* long, as a thread may wait for a lock for long */
	.sweep = sockets_sweep,
	.done = sockets_done,
};
