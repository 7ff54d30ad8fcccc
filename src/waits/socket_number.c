/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/socket_number.h"
#include "base/names.h"
#include "proc/proc.h"
#include "waits/wait_object.h"

#include <stdio.h>
#include <string.h>

struct number_word {
	unsigned int number;
	const char *word;
};

/* NETLINK_* of linux/netlink.h */
static const struct number_word families[] = {
	{0, "route"},	       {2, "usersock"},	 {4, "sock_diag"},	 {6, "xfrm"},
	{7, "selinux"},	       {9, "audit"},	 {10, "fib_lookup"},	 {11, "connector"},
	{12, "netfilter"},     {14, "dnrt"},	 {15, "kobject_uevent"}, {16, "generic"},
	{18, "scsitransport"}, {19, "ecryptfs"}, {20, "rdma"},		 {21, "crypto"},
	{22, "smc"},	       {0, NULL},
};

/* IPPROTO_* of linux/in.h and in6.h, and those of routers */
static const struct number_word protocols[] = {
	{1, "icmp"},   {2, "igmp"},  {6, "tcp"},     {17, "udp"},  {47, "gre"},
	{50, "esp"},   {51, "ah"},   {58, "icmpv6"}, {89, "ospf"}, {103, "pim"},
	{112, "vrrp"}, {255, "all"}, {0, NULL},
};

/* ETH_P_* of linux/if_ether.h */
static const struct number_word ethernet[] = {
	{0x0003, "all"},   {0x0800, "ip"},   {0x0806, "arp"}, {0x86dd, "ipv6"},
	{0x888e, "eapol"}, {0x88cc, "lldp"}, {0x88f7, "ptp"}, {0, NULL},
};

/* A protocol, its file, where a line of it has the number and the inode, the words for numbers, and
 * the form of others; NULL: others say nothing. */
static const struct number_file {
	const char *protocol, *file, *line;
	const struct number_word *words;
	const char *other;
} files[] = {
	/* sk Eth Pid Groups Rmem Wmem Dump Locks Drops Inode */
	{"netlink", "net/netlink", "%*s %u %*s %*s %*s %*s %*s %*s %*s %llu", families, NULL},
	/* sl local_address:protocol rem_address st queues tr:tm retrnsmt uid timeout inode */
	{"raw", "net/raw", "%*s %*[0-9A-F]:%x %*s %*s %*s %*s %*s %*s %*s %llu", protocols, "%u"},
	{"rawv6", "net/raw6", "%*s %*[0-9A-F]:%x %*s %*s %*s %*s %*s %*s %*s %llu", protocols,
	 "%u"},
	/* sk RefCnt Type Proto Iface R Rmem User Inode */
	{"packet", "net/packet", "%*s %*s %*s %x %*s %*s %*s %*s %llu", ethernet, "0x%04x"},
};

static const char *number_name(const struct number_file *kind, unsigned int number)
{
	const struct number_word *word = kind->words;
	char other[16], name[64];

	while (word->word && word->number != number)
		word++;
	if (!word->word && !kind->other)
		return NULL;
	snprintf(other, sizeof(other), kind->other ? kind->other : "", number);
	snprintf(name, sizeof(name), "%s %s", kind->protocol, word->word ? word->word : other);
	return name_transient_string(name);
}

const char *socket_number_name(const struct wait *wait, const char *protocol, uint64_t inode)
{
	const struct number_file *kind = files, *end = files + sizeof(files) / sizeof(files[0]);
	unsigned long long found;
	unsigned int number;
	char line[256];
	bool known = false;
	FILE *file;

	while (kind < end && strcmp(kind->protocol, protocol) != 0)
		kind++;
	if (kind == end)
		return NULL;
	file = proc_file_stream(wait->waits->root, wait->pid, wait->tid, kind->file);
	while (file && !known && fgets(line, sizeof(line), file))
		known = sscanf(line, kind->line, &number, &found) == 2 && found == inode;
	if (file)
		fclose(file);
	return known ? number_name(kind, number) : NULL;
}
