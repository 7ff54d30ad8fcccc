/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages of DNS over UDP, for --trace dns: a query when its packet is handed to a network device;
 * an answer, or the ICMP error in its place, when its packet comes from one. Each is an event with
 * the beginning of the message; src/live/scan/live_dns.h joins them.
 *
 * Only packets of a socket of this host are queries, not those that it forwards. The present thread
 * asked if it is in a system call whose descriptor is that socket: a packet that had to wait for
 * its neighbour's address leaves in an interrupt over any thread, and one of io_uring in a call on
 * a ring.
 *
 * Included where LATENCY_DNS is among LATENCY_KINDS.
 */
#define DNS_SEEN 1

#define NETWORK_ORDER(port) (((port)&0xffu) << 8 | (port) >> 8)
#define PORT_DNS NETWORK_ORDER(53u)
#define PORT_MDNS NETWORK_ORDER(5353u)
/* Docker's resolver in each container (libnetwork, resolver.go): iptables gives its packets another
 * port before they leave. */
#define DOCKER_RESOLVER 0x0b00007fu /* 127.0.0.11 */

#define PACKET_OF_VLAN NETWORK_ORDER(0x8100u)
#define PACKET_OF_VLAN_OUTER NETWORK_ORDER(0x88a8u)
#define VLAN_BYTES 4

#define PROTOCOL_ICMP 1
#define PROTOCOL_UDP 17
#define PROTOCOL_FRAGMENT 44 /* header of IPv6 */
#define PROTOCOL_ICMP6 58
#define IP6_BYTES 40
#define FRAGMENT_BYTES 8
#define ICMP_IS_UNREACHABLE 3
#define ICMP6_IS_UNREACHABLE 1
#define FAMILY_IS_INET 2
#define FAMILY_IS_INET6 10
#define DEVICE_LOOPBACK 8 /* IFF_LOOPBACK */

struct udp_head {
	__u16 source, destination, bytes, sum;
};

/* Reads the header at *at, which then is the address of what follows it, and the 8 bytes there.
 * Returns the protocol of that; 0: neither UDP nor ICMP, or a later fragment. The bytes read may go
 * beyond a short packet, but are then those of struct skb_shared_info. */
static inline __u32 ip_read(__u64 *at, __u32 *source, __u32 *destination, __u16 *family,
			    struct udp_head *follows)
{
	__u32 head[12] = {};
	__u8 *bytes = (__u8 *)head;
	__u32 version, protocol;

	bpf_probe_read_kernel(head, sizeof(head), (void *)*at);
	version = bytes[0] >> 4;
	if (version == 4) {
		protocol = bytes[9];
		if (protocol != PROTOCOL_UDP && protocol != PROTOCOL_ICMP)
			return 0;
		if (bytes[6] & 0x1f || bytes[7])
			return 0;
		*family = FAMILY_IS_INET;
		source[0] = head[3];
		destination[0] = head[4];
		*at += (bytes[0] & 15) * 4;
		if ((bytes[0] & 15) == 5)
			__builtin_memcpy(follows, &head[5], sizeof(*follows));
		else
			bpf_probe_read_kernel(follows, sizeof(*follows), (void *)*at);
		return protocol;
	}
	if (version != 6)
		return 0;
	protocol = bytes[6];
	*at += IP6_BYTES;
	if (protocol != PROTOCOL_FRAGMENT) {
		__builtin_memcpy(follows, &head[10], sizeof(*follows));
	} else {
		bytes = (__u8 *)&head[10];
		if (bytes[2] || bytes[3] & 0xf8)
			return 0;
		protocol = bytes[0];
		*at += FRAGMENT_BYTES;
		bpf_probe_read_kernel(follows, sizeof(*follows), (void *)*at);
	}
	if (protocol != PROTOCOL_UDP && protocol != PROTOCOL_ICMP6)
		return 0;
	*family = FAMILY_IS_INET6;
	__builtin_memcpy(source, &head[2], 16);
	__builtin_memcpy(destination, &head[6], 16);
	return protocol;
}

static inline int is_loopback(__u32 *address, __u16 family)
{
	if (family == FAMILY_IS_INET)
		return (address[0] & 0xff) == 127;
	return !(address[0] | address[1] | address[2]) && address[3] == 1u << 24;
}

static inline int port_is_of_dns(__u16 port)
{
	return port == PORT_DNS || port == PORT_MDNS;
}

/* Returns the network namespace of a packet on a loopback device: many have the same addresses
 * there. 0: on another device, from which a packet may come to another namespace (macvlan). */
static inline __u64 loopback_of(struct sk_buff *packet)
{
	struct net_device *device = 0;
	__u32 flags = 0;
	__u64 net = 0;

	bpf_probe_read_kernel(&device, sizeof(device), &packet->dev);
	bpf_probe_read_kernel(&flags, sizeof(flags), &device->flags);
	if (flags & DEVICE_LOOPBACK)
		bpf_probe_read_kernel(&net, sizeof(net), &device->nd_net);
	return net;
}

/* Returns the address of the first byte that is not in the packet's first piece. */
static inline __u64 packet_end(struct sk_buff *packet)
{
	__u64 data = 0;
	__u32 whole = 0, elsewhere = 0;

	bpf_probe_read_kernel(&data, sizeof(data), &packet->data);
	bpf_probe_read_kernel(&whole, sizeof(whole), &packet->len);
	bpf_probe_read_kernel(&elsewhere, sizeof(elsewhere), &packet->data_len);
	return data + (whole - elsewhere);
}

/* Reports the message at an address. */
static inline int dns_report(struct latency_key *key, struct dns_message *message, __u64 at,
			     __u64 end)
{
	__u64 present = end - at, slot, piece[4] = {};
	struct trace_event *event;

	if (end < at)
		present = 0;
	message->present = present > DNS_BYTES ? DNS_BYTES : present;
	/* what tells the messages of a thread apart */
	bpf_probe_read_kernel(piece, 8, (void *)at);
	key->kind = LATENCY_DNS;
	key->what[0] = message->client_port | (__u32)message->kind << 16;
	key->what[1] = (__u32)piece[0];
	key->what[2] = message->server[0] ^ message->server[3];
	if (!event_begin(&slot, key, bpf_ktime_get_ns(), 0))
		return 0;
	__builtin_memcpy(EVENT_DATA(0), message, sizeof(*message));
#define DNS_PIECE(AT)                                                     \
	bpf_probe_read_kernel(piece, sizeof(piece), (void *)(at + (AT))); \
	__builtin_memcpy(EVENT_DATA(sizeof(*message) + (AT)), piece, sizeof(piece));
	DNS_PIECE(0)
	DNS_PIECE(32)
	DNS_PIECE(64)
	DNS_PIECE(96)
	DNS_PIECE(128)
	DNS_PIECE(160)
	DNS_PIECE(192)
#undef DNS_PIECE
	event = event_at(slot);
	if (!event)
		return 0;
	event->data_bytes = sizeof(*message) + DNS_BYTES;
	event_end(event);
	return 1;
}

/* Fills the key of the thread that sends by a socket, if it is known. 0: it is not wanted. */
static inline int dns_own(struct latency_key *key, __u64 socket)
{
#if KERNEL_STACK_REGISTERS
	struct thread_state *thread = thread_find(bpf_get_current_pid_tgid());
	__u64 descriptor = 0;

	if (!thread)
		return 1;
	if (!(thread->identity.known & IDENTITY_FULL))
		identity_read(thread, (struct task_struct *)bpf_get_current_task(),
			      thread->sched.tid);
	bpf_probe_read_kernel(&descriptor, sizeof(descriptor),
			      (void *)(thread->kernel_stack + KERNEL_STACK_REGISTERS +
				       8 * THREAD_FIRST_ARGUMENT));
	if (descriptor_sock((__u32)descriptor) == socket)
		return latency_key_fill(key, thread, LATENCY_DNS);
#endif
	return 1;
}

/* typed: the packet is of a typed tracepoint. */
static inline void dns_sent(struct sk_buff *packet, int typed)
{
	struct dns_message message = {.kind = DNS_QUERY};
	struct latency_key key = {};
	struct sock_common *socket = 0;
	struct udp_head udp = {};
	__u64 at = 0, network = 0;
	__u16 port = 0, family = 0;

	if (typed) {
		MEMBER_OF_TYPED(u64, at, packet, sk_buff, head);
		MEMBER_OF_TYPED(u16, network, packet, sk_buff, network_header);
	} else {
		bpf_probe_read_kernel(&at, sizeof(at), &packet->head);
		bpf_probe_read_kernel(&network, sizeof(__u16), &packet->network_header);
	}
	at += network;
	if (ip_read(&at, message.client, message.server, &family, &udp) != PROTOCOL_UDP)
		return;
	/* netfilter may have sent a query to a server on this host, or in its container */
	if (!port_is_of_dns(udp.destination) && !is_loopback(message.server, family))
		return;
	bpf_probe_read_kernel(&socket, sizeof(socket), &packet->sk);
	bpf_probe_read_kernel(&port, sizeof(port), &socket->skc_dport);
	if (!socket || udp.source == PORT_MDNS || udp.source == PORT_DNS)
		return;
	if (!port_is_of_dns(udp.destination) && port != PORT_DNS &&
	    message.server[0] != DOCKER_RESOLVER)
		return;
	message.family = family;
	message.client_port = udp.source;
	message.server_port = udp.destination;
	message.whole = NETWORK_ORDER(udp.bytes) - sizeof(udp);
	message.loopback = loopback_of(packet);
	/* over loopback an answer has got the address that was asked, as its sender saw it, before
	 * it is received; a query leaves with the address that netfilter gave it */
	if (message.loopback && port) {
		message.server_port = port;
		if (family == FAMILY_IS_INET)
			bpf_probe_read_kernel(message.server, 4, &socket->skc_daddr);
		else
			bpf_probe_read_kernel(message.server, 16, &socket->skc_v6_daddr);
	}
	if (dns_own(&key, (__u64)socket))
		dns_report(&key, &message, at + sizeof(udp), packet_end(packet));
}

static inline void dns_received(struct sk_buff *packet, int typed)
{
	struct dns_message message = {.kind = DNS_ANSWER};
	struct latency_key key = {};
	struct udp_head udp = {};
	__u64 at = 0, tag = 0;
	__u16 family = 0;
	__u32 protocol;

	/* the device's driver has gone past its own header, and not always set the network's */
	if (typed) {
		MEMBER_OF_TYPED(u64, at, packet, sk_buff, data);
		MEMBER_OF_TYPED(u16, tag, packet, sk_buff, protocol);
	} else {
		bpf_probe_read_kernel(&at, sizeof(at), &packet->data);
		bpf_probe_read_kernel(&tag, sizeof(__u16), &packet->protocol);
	}
	if (tag == PACKET_OF_VLAN || tag == PACKET_OF_VLAN_OUTER)
		at += VLAN_BYTES;
	protocol = ip_read(&at, message.server, message.client, &family, &udp);
	if (!protocol)
		return;
	if (protocol == PROTOCOL_UDP) {
		message.server_port = udp.source;
		message.client_port = udp.destination;
	} else {
		if (*(__u8 *)&udp !=
		    (protocol == PROTOCOL_ICMP ? ICMP_IS_UNREACHABLE : ICMP6_IS_UNREACHABLE))
			return;
		/* what follows is the packet that could not be delivered */
		at += sizeof(udp);
		if (ip_read(&at, message.client, message.server, &family, &udp) != PROTOCOL_UDP)
			return;
		message.client_port = udp.source;
		message.server_port = udp.destination;
		message.kind = DNS_UNREACHABLE;
	}
	if (!port_is_of_dns(message.server_port))
		return;
	message.family = family;
	message.whole = NETWORK_ORDER(udp.bytes) - sizeof(udp);
	message.loopback = loopback_of(packet);
	dns_report(&key, &message, at + sizeof(udp), packet_end(packet));
}
