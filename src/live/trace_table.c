/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/trace_table.h"
#include "base/clock.h"
#include "base/names.h"
#include "kernel/own_probe.h"
#include "kernel/probe_table.h"
#include "kernel/record.h"
#include "kernel/registers.h"
#include "live/scan/live_dns.h"
#include "live/scan/live_irq.h"
#include "live/threads/live_block.h"
#include "live/threads/live_sample.h"
#include "proc/devices.h"
#include "maps/event_reader.h"
#include "proc/syscalls.h"
#include "sample/filter/expression.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static void offcpu_describe(const struct latency_key *key, struct sample *sample, bool *compat)
{
	int32_t nr = (int32_t)key->what[OFFCPU_SYSCALL];

	sample->now.state = task_state_kind(key->what[OFFCPU_STATE]);
	if (nr >= 0)
		sample->call.nr = nr;
	*compat = key->what[OFFCPU_COMPAT];
}

static void block_describe(const struct latency_key *key, struct sample *sample, bool *compat)
{
	(void)compat;
	sample->io.dev = device_name(key->what[BLOCK_DEV]);
	sample->io.op = block_op_name(key->what[BLOCK_OP]);
}

static void syscalls_describe(const struct latency_key *key, struct sample *sample, bool *compat)
{
	sample->call.nr = key->what[SYSCALLS_CALL] & ~CALL_COMPAT_BIT;
	*compat = key->what[SYSCALLS_CALL] & CALL_COMPAT_BIT;
	sample->event.error = error_name(key->what[SYSCALLS_ERROR]);
}

static void exec_describe(const struct latency_key *key, struct sample *sample, bool *compat)
{
	(void)compat;
	sample->process.ppid = key->what[EXEC_PARENT];
}

/* Fills the call that the event is of, or in which the thread was, and its arguments. */
static void call_event(const struct trace_event *event, bool registers_marked, struct sample *who,
		       bool *compat)
{
	uint64_t words[THREAD_REGISTER_COUNT];
	struct registers_call call;

	if (event->data_bytes != sizeof(words))
		return;
	memcpy(words, event->data, sizeof(words));
	registers_decode(words, registers_marked, &call);
	if (call.nr < 0 || (who->call.nr != ABSENT && who->call.nr != call.nr))
		return;
	who->call.nr = call.nr;
	*compat = call.compat;
	for (int i = 0; i < SAMPLE_ARG_COUNT; i++)
		who->call.arg[i] = (int64_t)call.arg[i];
}

/* Returns the first count words, each ended by a NUL, as ps shows them; three dots for what did not
 * fit. */
static const char *arguments_name(const char *from, size_t bytes, uint32_t count)
{
	struct text line = {0};
	const char *name;

	for (size_t i = 0; i < bytes && count; i++) {
		if (!from[i] && !--count)
			break;
		text_add_char(&line, from[i] ? from[i] : ' ');
	}
	if (line.length && count)
		text_add_string(&line, "...");
	name = line.length ? name_transient(line.bytes, line.length) : NULL;
	text_done(&line);
	return name;
}

static void exec_event(const struct trace_event *event, bool registers_marked, struct sample *who,
		       bool *compat)
{
	size_t bytes = event->data_bytes;

	(void)registers_marked;
	(void)compat;
	if (bytes < THREAD_COMM_SIZE || bytes > EVENT_DATA_BYTES)
		return;
	who->event.comm_before = name_of_comm(event->data);
	who->process.cmdline =
		arguments_name(event->data + THREAD_COMM_SIZE, bytes - THREAD_COMM_SIZE,
			       event->key.what[EXEC_ARGUMENTS]);
}

static void bytes_event(const struct trace_event *event, bool registers_marked, struct sample *who,
			bool *compat)
{
	uint64_t bytes;

	(void)registers_marked;
	(void)compat;
	if (event->data_bytes != sizeof(bytes))
		return;
	memcpy(&bytes, event->data, sizeof(bytes));
	who->io.bytes = (int64_t)bytes;
}

/* Writes 10.0.0.5:80 or [fe80::1]:80; NULL: there is none. */
static const char *end_name(const struct connection_end *end, const uint32_t address[4],
			    uint16_t port)
{
	char words[INET6_ADDRSTRLEN + 2], name[sizeof(words) + 6];
	struct in6_addr in6;
	const void *in4 = address;
	int length;

	if (!port)
		return NULL;
	memcpy(&in6, address, sizeof(in6));
	if (end->family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6))
		in4 = &address[3];
	if (end->family == AF_INET6 && in4 == address) {
		inet_ntop(AF_INET6, &in6, words, sizeof(words));
		length = snprintf(name, sizeof(name), "[%s]:%u", words, ntohs(port));
	} else {
		inet_ntop(AF_INET, in4, words, sizeof(words));
		length = snprintf(name, sizeof(name), "%s:%u", words, ntohs(port));
	}
	return name_transient(name, (size_t)length);
}

/* Says how a connection ended. It was aborted if this host sent a reset, as close(2) does with data
 * unread or with a linger time of 0 (tcp_close() of net/ipv4/tcp.c): then nothing but the state
 * before shows it. */
static const char *connection_outcome(const struct connection_end *end)
{
	const bool open = end->state == TCP_ESTABLISHED || end->state == TCP_CLOSE_WAIT ||
			  end->state == TCP_SYN_RECV;

	if (!end->stands)
		return end->error ? "failed" : "abandoned";
	if (end->error == ECONNRESET || end->error == EPIPE)
		return "reset";
	if (end->error)
		return end->error == ETIMEDOUT ? "timed out" : "failed";
	return open || (end->pending && end->state == TCP_FIN_WAIT1) ? "aborted" : "closed";
}

static void connection_event(const struct trace_event *event, bool registers_marked,
			     struct sample *who, bool *compat)
{
	struct sample_event *fill = &who->event;
	struct connection_end end;
	uint64_t syn_and_fin;

	(void)registers_marked;
	(void)compat;
	if (event->data_bytes != sizeof(end))
		return;
	memcpy(&end, event->data, sizeof(end));
	/* of the sequence numbers, SYN and FIN have one each; that of a SYN which came in is not
	 * counted */
	syn_and_fin = (uint64_t)(end.opened && end.stands) +
		      (!end.pending && end.state != TCP_ESTABLISHED &&
		       end.state != TCP_CLOSE_WAIT && end.state != TCP_SYN_RECV && end.stands);
	fill->sent = (int64_t)(end.sent > syn_and_fin ? end.sent - syn_and_fin : 0);
	fill->received = (int64_t)(end.received > end.got_fin ? end.received - end.got_fin : 0);
	fill->retransmits = end.retransmits;
	if (end.connect_ns)
		fill->connect_ns = (int64_t)end.connect_ns;
	if (end.error)
		fill->error = error_name(end.error);
	fill->outcome = name_of_string(connection_outcome(&end));
	fill->side = name_of_string(end.opened ? "client" : "server");
	fill->local = end_name(&end, end.local, end.local_port);
	who->file.remote = end_name(&end, end.remote, end.remote_port);
	fill->server = end.opened ? who->file.remote : fill->local;
}

static void open_describe(const struct latency_key *key, struct sample *sample, bool *compat)
{
	(void)compat;
	sample->call.nr = key->what[OPENS_CALL];
	if (key->what[OPENS_ERROR])
		sample->event.error = error_name(key->what[OPENS_ERROR]);
}

/* Fills the path, with three dots if it was cut. */
static void open_event(const struct trace_event *event, bool registers_marked, struct sample *who,
		       bool *compat)
{
	char path[OPEN_PATH_BYTES + sizeof("...")];
	size_t length;
	bool cut;

	(void)registers_marked;
	(void)compat;
	if (!event->data_bytes || event->data_bytes > OPEN_PATH_BYTES)
		return;
	length = strnlen(event->data, event->data_bytes);
	/* the helper for strings cuts with a NUL */
	cut = length == event->data_bytes || length == OPEN_PATH_BYTES - 1;
	snprintf(path, sizeof(path), "%.*s%s", (int)length, (const char *)event->data,
		 cut ? "..." : "");
	who->file.name = name_transient_string(path);
}

/* Returns "SIGKILL". */
static const char *signal_name(uint32_t signal)
{
	static const char *const names[] = {
		[SIGHUP] = "SIGHUP",	   [SIGINT] = "SIGINT",	      [SIGQUIT] = "SIGQUIT",
		[SIGILL] = "SIGILL",	   [SIGTRAP] = "SIGTRAP",     [SIGABRT] = "SIGABRT",
		[SIGBUS] = "SIGBUS",	   [SIGFPE] = "SIGFPE",	      [SIGKILL] = "SIGKILL",
		[SIGUSR1] = "SIGUSR1",	   [SIGSEGV] = "SIGSEGV",     [SIGUSR2] = "SIGUSR2",
		[SIGPIPE] = "SIGPIPE",	   [SIGALRM] = "SIGALRM",     [SIGTERM] = "SIGTERM",
		[SIGSTKFLT] = "SIGSTKFLT", [SIGXCPU] = "SIGXCPU",     [SIGXFSZ] = "SIGXFSZ",
		[SIGPROF] = "SIGPROF",	   [SIGVTALRM] = "SIGVTALRM", [SIGIO] = "SIGIO",
		[SIGPWR] = "SIGPWR",	   [SIGSYS] = "SIGSYS",
	};
	char words[16];

	if (signal < sizeof(names) / sizeof(names[0]) && names[signal])
		return name_of_string(names[signal]);
	snprintf(words, sizeof(words), "SIG%u", signal);
	return name_of_string(words);
}

/* Codes of signals that a process sent: SI_USER, SI_QUEUE, SI_TKILL. Of the others a present thread
 * knows nothing, except one that asked for memory when the OOM killer came. */
static bool sender_known(const struct incident *incident, bool oom)
{
	return oom || incident->code == SI_USER || incident->code == SI_QUEUE ||
	       incident->code == SI_TKILL;
}

static void incident_event(const struct trace_event *event, bool registers_marked,
			   struct sample *who, bool *compat)
{
	struct sample_event *fill = &who->event;
	struct incident end;
	char words[16];
	bool oom;

	(void)registers_marked;
	(void)compat;
	if (event->data_bytes != sizeof(end))
		return;
	memcpy(&end, event->data, sizeof(end));
	if (!WIFSIGNALED(end.status)) {
		snprintf(words, sizeof(words), "exit %d", WEXITSTATUS(end.status));
		fill->outcome = name_of_string(words);
		return;
	}
	/* the OOM killer also marks a process that another signal is ending already */
	oom = end.oom && WTERMSIG(end.status) == SIGKILL && (!end.noted || end.code == SI_KERNEL);
	fill->outcome = name_of_string(oom		       ? "oom killed"
				       : WCOREDUMP(end.status) ? "core dumped"
							       : "killed");
	fill->signal = signal_name((uint32_t)WTERMSIG(end.status));
	if (!end.noted)
		return;
	if (!sender_known(&end, oom)) {
		fill->sender_comm = name_of_string("kernel");
		return;
	}
	if (end.sender_pid)
		fill->sender_pid = end.sender_pid;
	fill->sender_comm = name_of_comm(end.sender_comm);
}

#define KINDS_MASKED 32 /* bits of a mask of kinds */

static void work_event(const struct trace_event *event, bool registers_marked, struct sample *who,
		       bool *compat)
{
	struct work_parts parts;

	(void)registers_marked;
	(void)compat;
	if (event->data_bytes != sizeof(parts))
		return;
	memcpy(&parts, event->data, sizeof(parts));
	if (parts.ns[WORK_CPU] == PROBE_PART_UNKNOWN)
		return;
	who->sums.cpu_us = (int64_t)parts.ns[WORK_CPU] / NS_PER_US;
	who->sums.runq_us = (int64_t)parts.ns[WORK_RUNQ] / NS_PER_US;
	who->sums.dwait_us = (int64_t)parts.ns[WORK_DISK] / NS_PER_US;
	who->sums.sleep_us = (int64_t)parts.ns[WORK_SLEEP] / NS_PER_US;
}

static void work_describe(const struct latency_key *key, struct sample *sample, bool *compat)
{
	(void)compat;
	sample->call.nr = key->what[WORK_CALL];
}

static void irq_describe(const struct latency_key *key, struct sample *sample, bool *compat)
{
	const uint32_t rest = key->what[IRQ_HANDLER_AND_CPU];
	uint64_t handler = key->what[IRQ_HANDLER] | (uint64_t)(rest & IRQ_HANDLER_HIGH) << 32;

	(void)compat;
	if (handler)
		handler |= (uint64_t)IRQ_HANDLER_HIGH << 48;
	sample->now.cpu = rest >> IRQ_CPU_SHIFT;
	sample->now.irq = live_irq_name(key->what[IRQ_NUMBER], handler);
}

/* All that is known of it is in its key. */
static void irq_event(const struct trace_event *event, bool registers_marked, struct sample *who,
		      bool *compat)
{
	(void)event;
	(void)registers_marked;
	(void)who;
	(void)compat;
}

#define CALLS (GROUP_BIT(GROUP_CALL) | GROUP_BIT(GROUP_RETURN))
#define SWITCHES (GROUP_BIT(GROUP_SWITCH) | GROUP_BIT(GROUP_WAKE))
#define IRQS                                                                                  \
	(GROUP_BIT(GROUP_HARDIRQ) | GROUP_BIT(GROUP_HARDIRQ_END) | GROUP_BIT(GROUP_SOFTIRQ) | \
	 GROUP_BIT(GROUP_SOFTIRQ_END))
#define BLOCK_REQUESTS \
	(GROUP_BIT(GROUP_BLOCK_QUEUE) | GROUP_BIT(GROUP_BLOCK_ISSUE) | GROUP_BIT(GROUP_BLOCK_DONE))

/* clang-format off */
const struct trace_row trace_rows[LATENCY_KIND_COUNT] = {
	[LATENCY_RUNQ] = {
		.kind = {.name = "runq", .help = "waits for a CPU, from wake-up or preemption on", .runnable = true,
			 .samples = "state=RQ", .so_far = "state_us", .quota = true, .screen = true},
		.groups = SWITCHES, .more_groups = GROUP_BIT(GROUP_THROTTLE) | GROUP_BIT(GROUP_UNTHROTTLE),
		.event = call_event, .of_call = true},
	[LATENCY_OFFCPU] = {
		.kind = {.name = "offcpu", .help = "sleeps, from leaving the CPU to the wake-up",
			 .columns = "state,syscall", .samples = "state!=ON && state!=RQ",
			 .so_far = "state_us", .known = KNOWN_STATE | NEED_SYSCALL, .sleeps = true,
			 .screen = true},
		.groups = SWITCHES, .report = offcpu_describe, .event = call_event, .of_call = true},
	[LATENCY_BLOCK] = {
		.kind = {.name = "block", .help = "requests to block devices, from issue to completion",
			 .columns = "io_dev,io_op", .samples = "io_dev!=", .so_far = "io_us",
			 .known = NEED_BLOCK, .bytes = true},
		.groups = BLOCK_REQUESTS, .report = block_describe, .event = bytes_event},
	[LATENCY_BLOCKQ] = {
		.kind = {.name = "blockq",
			 .help = "requests to block devices, from their making to issue",
			 .columns = "io_dev,io_op", .samples = "io_dev!=", .so_far = "io_us",
			 .known = NEED_BLOCK, .bytes = true},
		.groups = BLOCK_REQUESTS, .report = block_describe, .event = bytes_event},
	[LATENCY_SYSCALLS] = {
		.kind = {.name = "syscalls", .help = "system calls, from entry to return",
			 .columns = "syscall", .samples = "syscall!=", .so_far = "syscall_us",
			 .known = NEED_SYSCALL | KNOWN_EVENT, .fails = true, .slower = true},
		.groups = CALLS, .report = syscalls_describe,
		.event = call_event, .of_call = true},
	[LATENCY_EXEC] = {
		.kind = {.name = "exec", .help = "each program executed, one by one",
			 .columns = "ppid,comm_before,cmdline", .single = true},
		.groups = GROUP_BIT(GROUP_EXEC) | GROUP_BIT(GROUP_NAME), .report = exec_describe,
		.event = exec_event},
	[LATENCY_CONNECTIONS] = {
		.kind = {.name = "connections", .help = "TCP connections that have ended",
			 .columns = "side,local,remote,outcome,errno", .sums = "side,server,outcome,errno",
			 .known = KNOWN_EVENT | NEED_CONNECTION | NEED_FILE | NEED_SYSCALL,
			 .single = true, .fails = true, .bytes = true},
		.groups = GROUP_BIT(GROUP_CONNECTION) | GROUP_BIT(GROUP_RETURN), .event = connection_event},
	[LATENCY_OPENS] = {
		.kind = {.name = "opens", .help = "files that could not be opened",
			 .columns = "filename,errno", .sums = "filename,errno",
			 .known = KNOWN_EVENT | NEED_FILE | NEED_SYSCALL, .single = true,
			 .summed = true, .fails = true},
		.groups = CALLS, .report = open_describe, .event = open_event},
	[LATENCY_OPENED] = {
		.kind = {.name = "opened", .help = "files that were opened",
			 .columns = "filename", .sums = "filename",
			 .known = KNOWN_EVENT | NEED_FILE | NEED_SYSCALL, .single = true,
			 .summed = true},
		.groups = CALLS, .report = open_describe, .event = open_event},
	[LATENCY_INCIDENTS] = {
		.kind = {.name = "incidents",
			 .help = "processes killed or failed, threads stuck in D, limits of control groups hit",
			 .columns = "outcome,signal,sender_pid,sender_comm,waits_on,wchan", .known = KNOWN_EVENT,
			 .single = true, .stuck = true, .recorded = true},
		.groups = GROUP_BIT(GROUP_END), .more_groups = GROUP_BIT(GROUP_SIGNAL),
		.event = incident_event},
	[LATENCY_WORK] = {
		.kind = {.name = "work",
			 .help = "pieces of work (of event loops: batches), from the wake-up in a thread's idle call to its next sleep there",
			 .columns = "syscall", .known = NEED_SYSCALL, .splits = true,
			 .idles = true},
		.groups = SWITCHES, .needs = NEED_SYSCALL | NEED_WAIT_CLASS | NEED_TOTALS,
		.report = work_describe, .event = work_event},
	[LATENCY_IRQ] = {
		.kind = {.name = "irq", .help = "interrupts: handlers of hardware interrupts, and softirqs",
			 .columns = "cpu,irq", .samples = "irq!=", .so_far = "state_us",
			 .known = NEED_IRQ},
		.groups = IRQS, .report = irq_describe, .event = irq_event},
	[LATENCY_DNS] = {
		.kind = {.name = "dns", .help = "DNS queries over UDP, from sending to the answer",
			 .columns = "qname,qtype,rcode,server,outcome", .sums = "server,rcode,outcome",
			 .known = KNOWN_EVENT | NEED_FILE | NEED_SYSCALL, .single = true},
		.groups = GROUP_BIT(GROUP_PACKET_SENT) | GROUP_BIT(GROUP_PACKET_RECEIVED),
		.report = dns_describe, .event = dns_event, .joined = true},
};
/* clang-format on */

uint64_t latency_key_each(const struct latency_key *key)
{
	return key->what[PROBE_EACH] | (uint64_t)key->what[PROBE_EACH + 1] << 32;
}

static void hex_describe(const struct latency_key *key, struct sample *sample, bool *compat)
{
	char words[20];

	(void)compat;
	snprintf(words, sizeof(words), "0x%llx", (unsigned long long)latency_key_each(key));
	sample->event.value = name_transient_string(words);
}

static void number_describe(const struct latency_key *key, struct sample *sample, bool *compat)
{
	char words[24];

	(void)compat;
	snprintf(words, sizeof(words), "%lld", (long long)latency_key_each(key));
	sample->event.value = name_transient_string(words);
}

static struct trace_row own_rows[OWN_PROBES_MAX];
static uint32_t own_count;

const struct trace_row *trace_row_of(uint32_t kind)
{
	if (kind < LATENCY_KIND_COUNT)
		return &trace_rows[kind];
	return kind >= LATENCY_PROBE && kind - LATENCY_PROBE < own_count &&
			       own_rows[kind - LATENCY_PROBE].kind.name
		       ? &own_rows[kind - LATENCY_PROBE]
		       : NULL;
}

static int own_name_check(const struct own_probe *probe, struct error *e)
{
	const struct trace_row *row;

	for (uint32_t kind = 0; kind < KINDS_MASKED; kind++)
		if ((row = trace_row_of(kind)) && !strcmp(row->kind.name, probe->name))
			return own_probe_refuse(
				probe, 0, e, "'%s' is the name of %s: give it another name",
				probe->name,
				kind < LATENCY_KIND_COUNT ? "a kind of --trace" : "another probe");
	return 0;
}

int trace_own_set(const struct own_probes *own, uint32_t *kinds, struct error *e)
{
	*kinds = 0;
	own_count = 0;
	for (uint32_t i = 0; own && i < own->count; i++) {
		const struct own_probe *probe = &own->items[i].probe;
		const bool amount = probe->result == OWN_VALUE && probe->type != OWN_NS;
		const bool each = probe->result == OWN_EACH;
		const bool time = probe->result == OWN_TIME;
		const bool value = each || (own->events && probe->result == OWN_VALUE);
		int err = probe->result == OWN_HELD ? 0 : own_name_check(probe, e);

		if (err)
			return err;
		own_count = i + 1;
		if (probe->result == OWN_HELD) { /* it reports nothing */
			own_rows[i] = (struct trace_row){0};
			continue;
		}
		own_rows[i] = (struct trace_row){
			.kind = {.name = probe->name,
				 .help = probe->text,
				 .columns = value	  ? own->stacks ? "value,stack" : "value"
					    : own->stacks ? "stack"
							  : NULL,
				 .known =
					 (value ? KNOWN_EVENT : 0) | (own->stacks ? NEED_STACK : 0),
				 .measure = probe->result == OWN_COUNT || each ? TRACE_COUNT
					    : amount			       ? TRACE_AMOUNT
									       : TRACE_TIME,
				 .below = probe->result == OWN_VALUE,
				 .splits = time,
				 .single = own->events,
				 .stacks = own->stacks},
			.needs = (time ? NEED_TOTALS : 0) | (own->stacks ? NEED_STACK : 0),
			.own = true,
			.event = !time	       ? NULL
				 : own->events ? work_event
					       : call_event,
			.report = !value || probe->type == OWN_STR ? NULL
				  : probe->type == OWN_HEX	   ? hex_describe
								   : number_describe,
			.texts = probe->type == OWN_STR};
		*kinds |= 1u << (LATENCY_PROBE + i);
	}
	return 0;
}

static int kind_unknown(const char *name, struct error *e)
{
	struct text kinds = {0};
	int err;

	for (size_t at = 0; at < LATENCY_KIND_COUNT; at++)
		text_add_format(&kinds, "%s%s", at ? ", " : "", trace_rows[at].kind.name);
	err = error_set(e, EINVAL, EXIT_USAGE, "--trace: unknown kind \"%s\"; the kinds are %s",
			name, text_string(&kinds));
	text_done(&kinds);
	return err;
}

int trace_kinds_parse(const char *names, uint32_t *kinds, struct error *e)
{
	uint32_t parsed = 0;
	struct text name = {0};
	int err = 0;

	while (!err && text_next_name(&name, &names)) {
		size_t kind = 0;

		while (kind < LATENCY_KIND_COUNT &&
		       strcmp(trace_rows[kind].kind.name, text_string(&name)) != 0)
			kind++;
		if (kind == LATENCY_KIND_COUNT)
			err = kind_unknown(text_string(&name), e);
		else
			parsed |= 1u << kind;
	}
	text_done(&name);
	if (!err)
		*kinds = parsed;
	return err;
}

size_t trace_kinds_list(uint32_t kinds, const struct trace_kind **list)
{
	size_t count = 0;

	for (uint32_t kind = 0; kind < KINDS_MASKED; kind++)
		if (kinds >> kind & 1 && trace_row_of(kind))
			list[count++] = &trace_row_of(kind)->kind;
	return count;
}

uint32_t trace_singles_of(uint32_t kinds)
{
	uint32_t singles = 0;

	for (uint32_t kind = 0; kind < KINDS_MASKED; kind++)
		if (kinds >> kind & 1 && trace_row_of(kind) && trace_row_of(kind)->kind.single)
			singles |= 1u << kind;
	return singles;
}

uint32_t trace_sums_of(uint32_t kinds)
{
	uint32_t sums = 0;

	for (int kind = 0; kind < LATENCY_KIND_COUNT; kind++)
		if (kinds >> kind & 1 && trace_rows[kind].kind.sums)
			sums |= 1u << kind;
	return sums;
}

uint32_t trace_kinds_of_screen(void)
{
	uint32_t kinds = 0;

	for (int kind = 0; kind < LATENCY_KIND_COUNT; kind++)
		kinds |= (uint32_t)trace_rows[kind].kind.screen << kind;
	return kinds;
}

uint32_t trace_kinds_recorded(void)
{
	uint32_t kinds = 0;

	for (int kind = 0; kind < LATENCY_KIND_COUNT; kind++)
		kinds |= (uint32_t)trace_rows[kind].kind.recorded << kind;
	return kinds;
}

uint64_t trace_groups_of(uint32_t kinds)
{
	uint64_t groups = 0;

	for (int kind = 0; kind < LATENCY_KIND_COUNT; kind++)
		if (kinds >> kind & 1)
			groups |= trace_rows[kind].groups;
	return groups;
}

uint64_t trace_more_groups_of(uint32_t kinds)
{
	uint64_t groups = 0;

	for (int kind = 0; kind < LATENCY_KIND_COUNT; kind++)
		if (kinds >> kind & 1)
			groups |= trace_rows[kind].more_groups;
	return groups;
}

uint64_t trace_needs_of(uint32_t kinds)
{
	uint64_t needs = 0;

	for (uint32_t kind = 0; kind < KINDS_MASKED; kind++)
		if (kinds >> kind & 1 && trace_row_of(kind))
			needs |= trace_row_of(kind)->needs;
	return needs;
}

void trace_kinds_describe(struct text *text)
{
	text_add_string(text,
			"\nKinds of --trace (each is grouped by the columns of -g that it has "
			"and by those in brackets):\n");
	for (int kind = 0; kind < LATENCY_KIND_COUNT; kind++) {
		const struct trace_kind *reported = &trace_rows[kind].kind;

		text_add_format(text, "  %-12s     %s%s%s%s\n", reported->name, reported->help,
				reported->columns ? " [" : "",
				reported->columns ? reported->columns : "",
				reported->columns ? "]" : "");
	}
}
