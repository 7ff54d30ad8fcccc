/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sockets that have no address but a number which says what they are for: netlink sockets that of a
 * part of the kernel, raw and packet sockets that of a protocol. From files of /proc/PID/net.
 */
#ifndef TSNAP_WAITS_SOCKET_NUMBER_H
#define TSNAP_WAITS_SOCKET_NUMBER_H

#include <stdint.h>

struct wait;

/* Returns protocol and number in words, interned: "netlink route", "raw icmp", "packet 0x88cc".
 * protocol: as the kernel names it, in lower case. NULL: the protocol has no such numbers, or the
 * file has no such socket. */
const char *socket_number_name(const struct wait *wait, const char *protocol, uint64_t inode);

#endif
