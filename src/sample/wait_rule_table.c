/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/wait_rule.h"
#include "sample/sample.h"

#include <string.h>

static bool lock_is_held(const struct wait_facts *facts, int64_t daemon_ports)
{
	(void)daemon_ports;
	return facts->tid != ABSENT || facts->readers != ABSENT || facts->lost;
}

static bool client_waits(const struct wait_facts *facts, int64_t daemon_ports)
{
	(void)daemon_ports;
	return facts->served_inode != ABSENT || facts->serves_client;
}

/* True if more requests are in flight than those that only wait until a descriptor is ready; these
 * are a server's, as in poll(2). */
static bool io_is_in_flight(const struct wait_facts *facts, int64_t daemon_ports)
{
	(void)daemon_ports;
	return facts->inflight != ABSENT &&
	       facts->inflight > (facts->armed == ABSENT ? 0 : facts->armed);
}

static bool socket_is_server(const struct wait_facts *facts, int64_t daemon_ports)
{
	return facts->listens || facts->accepts_there ||
	       (facts->local_port > 0 && facts->local_port < daemon_ports);
}

static bool socket_is_connected(const struct wait_facts *facts, int64_t daemon_ports)
{
	(void)daemon_ports;
	return facts->connected;
}

static bool socket_asks_dns(const struct wait_facts *facts, int64_t daemon_ports)
{
	(void)daemon_ports;
	return facts->dns;
}

static bool set_asks_dns(const struct wait_facts *facts, int64_t daemon_ports)
{
	(void)daemon_ports;
	return facts->has_request && facts->dns;
}

static bool set_has_request(const struct wait_facts *facts, int64_t daemon_ports)
{
	return facts->has_request && !socket_is_server(facts, daemon_ports);
}

static bool set_is_served(const struct wait_facts *facts, int64_t daemon_ports)
{
	(void)daemon_ports;
	return facts->accepts_there;
}

static bool file_is_stored(const struct wait_facts *facts, int64_t daemon_ports)
{
	(void)daemon_ports;
	return facts->stored;
}

const struct wait_rule wait_rules[] = {
	{"client", WAIT_WORKS | WAIT_AS_CLIENT | INTERRUPT_NETWORK, " connect ", 0, NULL,
	 "as a client, for its server's answer"},
	{"lock", WAIT_WORKS | INTERRUPT_TIMER, " flock fcntl fcntl64 ", WAIT_LOCK, lock_is_held,
	 "for a lock that a thread or process is known to hold"},
	{"io", WAIT_WORKS | INTERRUPT_DISK, NULL, WAIT_IO, io_is_in_flight,
	 "for requests of io_uring or libaio"},
	{"file", WAIT_WORKS | WAIT_FOR_FILE, NULL, WAIT_FILE, file_is_stored,
	 "for a file (of FUSE, for instance), or for a page of its memory in a page fault"},
	{"write", WAIT_WORKS | WAIT_FOR_SPACE,
	 " write writev pwrite64 pwritev pwritev2 send sendto sendmsg sendmmsg sendfile "
	 "sendfile64 vmsplice msgsnd mq_timedsend mq_timedsend_time64 ",
	 0, NULL, "for space to write: a reader is slow"},
	{"dns", WAIT_WORKS | WAIT_AS_CLIENT | INTERRUPT_NETWORK, NULL, WAIT_SOCKET, socket_asks_dns,
	 "for the answer of a DNS server, systemd-resolved or nscd"},
	{"server", WAIT_OF_POOL | WAIT_AS_SERVER | INTERRUPT_NETWORK, " accept accept4 ",
	 WAIT_SOCKET, socket_is_server, "as a server, for a connection or a request"},
	{"client", WAIT_WORKS | WAIT_AS_CLIENT | INTERRUPT_NETWORK, NULL, WAIT_SOCKET,
	 socket_is_connected, "as a client, for its server's answer"},
	{"socket", WAIT_OF_POOL | INTERRUPT_NETWORK, NULL, WAIT_SOCKET, NULL,
	 "on a socket whose other end is not known"},
	{"dns", WAIT_WORKS | WAIT_AS_CLIENT | INTERRUPT_NETWORK, NULL, WAIT_SET, set_asks_dns,
	 "for the answer of a DNS server, systemd-resolved or nscd"},
	{"client", WAIT_WORKS | WAIT_AS_CLIENT | INTERRUPT_NETWORK, NULL, WAIT_SET, set_has_request,
	 "as a client, for its server's answer"},
	{"loop", WAIT_AS_SERVER | INTERRUPT_NETWORK, NULL, WAIT_SET, set_is_served,
	 "as a server's event loop, for its clients and for nothing else"},
	{"request", WAIT_WORKS | INTERRUPT_TIMER, NULL, WAIT_SET, client_waits,
	 "on a condition variable, a lock or other descriptors, while the client of its connection "
	 "waits"},
	{"poll", WAIT_ASKS_FACTS,
	 " epoll_wait epoll_pwait epoll_pwait2 epoll_wait_old select _newselect pselect6 "
	 "pselect6_time64 poll ppoll ppoll_time64 ",
	 WAIT_SET, NULL, "for any of several descriptors (poll of one: as a read of that)"},
	{"pipe", 0, NULL, WAIT_PIPE, NULL, "for somebody to write into a pipe or to open a FIFO"},
	{"child", 0, " wait4 waitpid waitid vfork ", WAIT_PROCESS, NULL,
	 "for the end of a process or thread"},
	{"sleep", WAIT_FOR_TIME | INTERRUPT_TIMER,
	 " nanosleep clock_nanosleep clock_nanosleep_time64 restart_syscall ", WAIT_TIMER, NULL,
	 "for some time to pass"},
	{"signal", WAIT_OF_POOL | INTERRUPT_TIMER,
	 " pause sigsuspend rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 ", WAIT_SIGNAL,
	 NULL, "for a signal"},
	{"event", WAIT_OF_POOL,
	 " semop semtimedop semtimedop_time64 msgrcv mq_timedreceive mq_timedreceive_time64 ",
	 WAIT_EVENT, NULL, "for a semaphore, a message, eventfd, inotify and so on"},
	{"request", WAIT_WORKS | INTERRUPT_TIMER, NULL, WAIT_LOCK, client_waits,
	 "on a condition variable, a lock or other descriptors, while the client of its connection "
	 "waits"},
	{"futex", WAIT_OF_POOL | INTERRUPT_TIMER, NULL, WAIT_LOCK, NULL,
	 "on a condition variable, or a lock whose holder is not known"},
	{"ring", WAIT_OF_POOL, NULL, WAIT_IO, NULL, "on io_uring or libaio with no I/O in flight"},
	{"device", 0, " ioctl ", WAIT_FILE, NULL, "for a terminal or another device"},
	{"other", 0, NULL, 0, NULL, "for something else"},
};

const size_t wait_rule_count = sizeof(wait_rules) / sizeof(*wait_rules);

const struct wait_facts wait_facts_absent = {
	.local_port = ABSENT,
	.remote_port = ABSENT,
	.pid = ABSENT,
	.tid = ABSENT,
	.inode = ABSENT,
	.own = ABSENT,
	.requested_pid = ABSENT,
	.requested_inode = ABSENT,
	.count = ABSENT,
	.inflight = ABSENT,
	.armed = ABSENT,
	.readers = ABSENT,
	.turn = ABSENT,
	.served_inode = ABSENT,
	.request_ns = ABSENT,
};

static bool call_listed(const char *calls, const char *syscall)
{
	size_t length = strlen(syscall);
	const char *at = calls;

	while (at && (at = strstr(at, syscall))) {
		if (at[-1] == ' ' && at[length] == ' ')
			return true;
		at += length;
	}
	return false;
}

const struct wait_rule *wait_rule_of_call(const char *syscall)
{
	for (size_t i = 0; i < wait_rule_count; i++)
		if (call_listed(wait_rules[i].calls, syscall))
			return &wait_rules[i];
	return NULL;
}

const struct wait_rule *wait_rule_of_facts(const struct wait_facts *facts, int64_t daemon_ports)
{
	const struct wait_rule *rule = wait_rules, *other = &wait_rules[wait_rule_count - 1];

	if (facts->writes)
		return wait_rule_find("write");
	for (; rule < other; rule++)
		if (rule->kind && rule->kind == facts->kind &&
		    (!rule->fits || rule->fits(facts, daemon_ports)))
			return rule;
	return other;
}

const struct wait_rule *wait_rule_find(const char *name)
{
	for (size_t i = 0; name && i < wait_rule_count; i++)
		if (!strcmp(wait_rules[i].name, name))
			return &wait_rules[i];
	return NULL;
}

unsigned int wait_class_traits(const char *name)
{
	const struct wait_rule *rule = wait_rule_find(name);

	return rule ? rule->traits : 0;
}

bool wait_class_works(const char *name)
{
	return wait_class_traits(name) & WAIT_WORKS;
}
