/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of each TCP connection, for --trace connections: from connect(2), or from the handshake
 * of one that comes in, until its socket is closed.
 *
 * A change of state happens in any context, mostly in an interrupt, so the present thread says
 * nothing; with two exceptions. tcp_v4_connect() and tcp_v6_connect() go to SYN_SENT in the
 * context of the caller. And a thread that comes back from accept(2) has the descriptor of what it
 * accepted (syscall_exit.bpf.c). A connection that was accepted in another way, as by io_uring, has
 * no owner.
 *
 * Knobs: CONNECTION_RAW (inet_sock_set_state, 4.16) or CONNECTION_KPROBE (tcp_set_state);
 * LATENCY_KINDS (latency.bpf.c).
 */

#ifdef LATENCY_KINDS
#if LATENCY_HAS(LATENCY_CONNECTIONS)
#define CONNECTIONS_SEEN 1
#endif
#endif

#ifdef CONNECTIONS_SEEN
#define CONNECTIONS_MAX 32768

/* include/net/tcp_states.h */
#define TCP_IS_ESTABLISHED 1
#define TCP_IS_SYN_SENT 2
#define TCP_IS_SYN_RECV 3
#define TCP_IS_CLOSE 7

#define NAME_TCP 0x504354u /* "TCP" of "TCP" and "TCPv6"; "MPTCP" and "SCTP" differ */
#define NAME_TCP_BYTES 0xffffffu
#define SOCKET_GOT_FIN (1u << 1) /* SOCK_DONE of enum sock_flags */
#define FAMILY_INET6 10

/* By the address of the struct sock. Every socket is closed before it is freed, so that none stays
 * here. */
BPF_TABLE("hash", __u64, struct connection, ts_connections, CONNECTIONS_MAX);

/* Fills the key of the present thread, which owns the connection. 0: it is not wanted. */
static inline int connection_own(struct latency_key *key)
{
	struct thread_state *thread = thread_find(bpf_get_current_pid_tgid());

	if (!thread)
		return 0;
	if (!(thread->identity.known & IDENTITY_FULL))
		identity_read(thread, (struct task_struct *)bpf_get_current_task(),
			      thread->sched.tid);
	return latency_key_fill(key, thread, LATENCY_CONNECTIONS);
}

static inline int socket_is_tcp(struct sock *sock)
{
	struct proto *proto = 0;
	__u32 name = 0;

	bpf_probe_read_kernel(&proto, sizeof(proto), &((struct sock_common *)sock)->skc_prot);
	bpf_probe_read_kernel(&name, sizeof(name), &proto->name);
	return (name & NAME_TCP_BYTES) == NAME_TCP;
}

static inline void connection_begins(struct sock *sock, __u32 opened)
{
	struct connection fresh = {};
	__u64 at = (__u64)sock;

	if (!socket_is_tcp(sock) || (opened && !connection_own(&fresh.key)))
		return;
	fresh.began_ns = bpf_ktime_get_ns();
	fresh.opened = opened;
	fresh.stands = !opened;
	if (ts_connections.update(&at, &fresh))
		latency_full_count();
}

static inline void connection_stands(struct sock *sock, __u32 from)
{
	__u64 at = (__u64)sock;
	struct connection *known = ts_connections.lookup(&at);

	if (known) {
		known->connect_ns = bpf_ktime_get_ns() - known->began_ns;
		known->stands = 1;
	} else if (from == TCP_IS_SYN_RECV) {
		connection_begins(sock, 0);
	}
}

static inline void connection_end_fill(struct connection_end *end, struct sock *sock)
{
	struct sock_common *common = (struct sock_common *)sock;
	struct tcp_sock *tcp = (struct tcp_sock *)sock;
	__u32 acknowledged = 0, written = 0;
	__u64 flags = 0;

	bpf_probe_read_kernel(&end->sent, sizeof(end->sent), &tcp->bytes_acked);
	bpf_probe_read_kernel(&end->received, sizeof(end->received), &tcp->bytes_received);
	bpf_probe_read_kernel(&end->retransmits, sizeof(end->retransmits), &tcp->total_retrans);
	bpf_probe_read_kernel(&acknowledged, sizeof(acknowledged), &tcp->snd_una);
	bpf_probe_read_kernel(&written, sizeof(written), &tcp->write_seq);
	bpf_probe_read_kernel(&end->error, sizeof(end->error), &sock->sk_err);
	bpf_probe_read_kernel(&flags, sizeof(flags), &common->skc_flags);
	bpf_probe_read_kernel(&end->family, sizeof(end->family), &common->skc_family);
	bpf_probe_read_kernel(&end->remote_port, sizeof(end->remote_port), &common->skc_dport);
	/* inet_put_port() has cleared skc_num */
	bpf_probe_read_kernel(&end->local_port, sizeof(end->local_port),
			      &((struct inet_sock *)sock)->inet_sport);
	if (end->family == FAMILY_INET6) {
		bpf_probe_read_kernel(end->local, sizeof(end->local), &common->skc_v6_rcv_saddr);
		bpf_probe_read_kernel(end->remote, sizeof(end->remote), &common->skc_v6_daddr);
	} else {
		bpf_probe_read_kernel(end->local, 4, &common->skc_rcv_saddr);
		bpf_probe_read_kernel(end->remote, 4, &common->skc_daddr);
	}
	end->pending = acknowledged != written;
	end->got_fin = (flags & SOCKET_GOT_FIN) != 0;
}

static inline void connection_ends(struct sock *sock, __u32 from)
{
	__u64 at = (__u64)sock, now_ns, began_ns;
	struct connection *known = ts_connections.lookup(&at);
	struct connection_end end = {};
	struct latency_key key;

	if (!known)
		return;
	key = known->key;
	began_ns = known->began_ns;
	end.connect_ns = known->connect_ns;
	end.opened = known->opened;
	end.stands = known->stands;
	end.state = from;
	ts_connections.delete(&at);
	now_ns = bpf_ktime_get_ns();
	connection_end_fill(&end, sock);
	key.kind = LATENCY_CONNECTIONS;
	/* tells the connections of a thread apart */
	key.what[0] = end.local_port | (__u32)end.remote_port << 16;
	key.what[1] = end.remote[0] ^ end.remote[3];
	event_report(&key, now_ns, now_ns - began_ns, &end);
}

/* The present thread comes back from accept(2) with that descriptor. */
static inline void connection_accepted(__u64 descriptor)
{
	__u64 at = descriptor_sock(descriptor);
	struct latency_key key = {};
	struct connection *known;

	known = ts_connections.lookup(&at);
	if (!known || known->key.tid)
		return;
	if (connection_own(&key))
		known->key = key;
}

static inline void connection_changes(struct sock *sock, __u32 from, __u32 to)
{
	if (to == TCP_IS_CLOSE)
		connection_ends(sock, from);
	else if (to == TCP_IS_SYN_SENT)
		connection_begins(sock, 1);
	else if (to == TCP_IS_ESTABLISHED)
		connection_stands(sock, from);
}
#else
#define connection_changes(sock, from, to)
#endif

#ifdef CONNECTION_RAW
RAW_TRACEPOINT_PROBE(inet_sock_set_state)
{
	connection_changes((struct sock *)ctx->args[0], ctx->args[1], ctx->args[2]);
	return 0;
}
#endif

#ifdef CONNECTION_KPROBE
int kprobe__tcp_set_state(struct pt_regs *ctx)
{
#ifdef CONNECTIONS_SEEN
	struct sock *sock = (struct sock *)PT_REGS_PARM1(ctx);
	__u8 from = 0;

	bpf_probe_read_kernel(&from, sizeof(from), &((struct sock_common *)sock)->skc_state);
	connection_changes(sock, from, (__u32)PT_REGS_PARM2(ctx));
#endif
	return 0;
}
#endif
