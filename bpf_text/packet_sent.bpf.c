/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A packet is handed to a network device, before its queue: dns_sent() of dns.bpf.c.
 *
 * Knobs: PACKET_SENT_TYPED, PACKET_SENT_RAW or PACKET_SENT_TRACEPOINT.
 */

#ifndef DNS_SEEN
#define dns_sent(packet, typed)
#endif

#ifdef PACKET_SENT_TYPED
RAW_TRACEPOINT_PROBE(net_dev_queue)
{
	dns_sent((struct sk_buff *)ctx->args[0], 1);
	return 0;
}
#endif

#ifdef PACKET_SENT_RAW
RAW_TRACEPOINT_PROBE(net_dev_queue)
{
	dns_sent((struct sk_buff *)ctx->args[0], 0);
	return 0;
}
#endif

#ifdef PACKET_SENT_TRACEPOINT
TRACEPOINT_PROBE(net, net_dev_queue)
{
	dns_sent((struct sk_buff *)args->skbaddr, 0);
	return 0;
}
#endif
