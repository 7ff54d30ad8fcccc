/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A packet comes from a network device: dns_received() of dns.bpf.c.
 *
 * Knobs: PACKET_RECEIVED_TYPED, PACKET_RECEIVED_RAW or PACKET_RECEIVED_TRACEPOINT.
 */

#ifndef DNS_SEEN
#define dns_received(packet, typed)
#endif

#ifdef PACKET_RECEIVED_TYPED
RAW_TRACEPOINT_PROBE(netif_receive_skb)
{
	dns_received((struct sk_buff *)ctx->args[0], 1);
	return 0;
}
#endif

#ifdef PACKET_RECEIVED_RAW
RAW_TRACEPOINT_PROBE(netif_receive_skb)
{
	dns_received((struct sk_buff *)ctx->args[0], 0);
	return 0;
}
#endif

#ifdef PACKET_RECEIVED_TRACEPOINT
TRACEPOINT_PROBE(net, netif_receive_skb)
{
	dns_received((struct sk_buff *)args->skbaddr, 0);
	return 0;
}
#endif
