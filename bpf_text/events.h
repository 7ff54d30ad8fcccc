/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Single events that probes report to the sampler, of whatever kind: a ring for each CPU. gcc
 * includes this file; the BPF text gets the same bytes pasted in.
 */
#ifndef TSNAP_EVENTS_H
#define TSNAP_EVENTS_H

#define EVENT_DATA_BYTES 272
#define EVENTS_MAX 512 /* unread events of a CPU, a power of two */

/* trace_event.data of LATENCY_EXEC: the name before, and then the arguments, each ended by a NUL; a
 * power of two, as a mask is a bound that every verifier knows. */
#define EXEC_ARGUMENT_BYTES 256

/* trace_event.data of LATENCY_OPENS and LATENCY_OPENED: the path, with a NUL if it fits. */
#define OPEN_PATH_BYTES 256

/* Value of ts_connections, by the address of the struct sock. */
struct connection {
	__u64 began_ns;
	__u64 connect_ns;	/* as in connection_end */
	__u32 opened, stands;	/* as in connection_end */
	struct latency_key key; /* of the owner; tid 0: not accepted yet */
};

/* trace_event.data of LATENCY_CONNECTIONS. Ports and addresses are in network byte order; an IPv4
 * address has the first word. */
struct connection_end {
	__u64 connect_ns; /* time until the peer answered; 0: it did not, or was not asked */
	__u64 sent;	  /* bytes that were acknowledged, with SYN and FIN */
	__u64 received;	  /* bytes, with FIN */
	__u32 retransmits;
	__u32 error; /* errno that ended it; 0: none did */
	__u32 local[4], remote[4];
	__u16 local_port, remote_port;
	__u16 family;
	__u8 state;   /* the last one before TCP_CLOSE */
	__u8 opened;  /* 1: by this host; 0: it came in */
	__u8 stands;  /* 1: it was established */
	__u8 pending; /* 1: not all was acknowledged, FIN included */
	__u8 got_fin; /* 1: the peer has ended its side */
	__u8 unused[5];
};

/* trace_event.data of LATENCY_INCIDENTS. */
struct incident {
	__u32 status; /* as wait(2) has it */
	__u32 oom;    /* 1: the OOM killer chose the process */
	__u32 noted;  /* 1: it is known how the signal was sent, */
	__s32 code;   /* its si_code, */
	__u32 sender_pid;
	char sender_comm[THREAD_COMM_SIZE];
	__u32 unused;
};

/* trace_event.data of LATENCY_DNS: a message over UDP, and then its first DNS_BYTES bytes. Ports
 * and addresses are in network byte order; an IPv4 address has the first word. */
#define DNS_QUERY 0
#define DNS_ANSWER 1
#define DNS_UNREACHABLE 2 /* an ICMP error came, with the query that had been sent */
#define DNS_BYTES 224	  /* a multiple of 32 */
struct dns_message {
	__u64 loopback; /* network namespace, if over a loopback device; else 0 */
	__u32 client[4], server[4];
	__u16 client_port, server_port;
	__u16 whole;   /* bytes of the whole message */
	__u8 present;  /* bytes that were read: 0 where they are not in the packet's first piece */
	__u8 kind : 4; /* DNS_x */
	__u8 family : 4; /* AF_x */
};

/* begun is written first and done last: an event whose two are equal in a copy made from done to
 * begun is whole. */
struct trace_event {
	__u64 done; /* index of the event since the start, plus one */
	__u64 end_ns;
	__u64 duration_ns;
	struct latency_key key;
	/* The kind's own data. For what a thread did: its registers, THREAD_REGISTER_COUNT words;
	 * for a request that moved bytes: their number, in 8 bytes. */
	__u32 data_bytes; /* 0: none */
	__u32 unused;
	char data[EVENT_DATA_BYTES];
	__u64 begun;
};

struct event_ring {
	__u64 count; /* events ever begun */
	struct trace_event events[EVENTS_MAX];
};

_Static_assert(sizeof(struct trace_event) == 88 + EVENT_DATA_BYTES, "trace_event has no holes");
_Static_assert(THREAD_COMM_SIZE + EXEC_ARGUMENT_BYTES <= EVENT_DATA_BYTES, "arguments fit");
_Static_assert(sizeof(struct connection_end) == 80, "connection_end has no holes");
_Static_assert(sizeof(struct incident) == 40, "incident has no holes");
_Static_assert(sizeof(struct dns_message) + DNS_BYTES <= EVENT_DATA_BYTES, "messages fit");
_Static_assert(8 * THREAD_REGISTER_COUNT <= EVENT_DATA_BYTES, "registers fit");

#endif
