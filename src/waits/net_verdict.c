/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/net_verdict.h"
#include "base/cache.h"
#include "base/clock.h"
#include "base/names.h"
#include "waits/sock_diag.h"
#include "waits/socket.h"

#include <string.h>

/* idiag_timer of inet_csk_diag_fill(): of what is sent again, and of probes of the window */
#define TIMER_RESEND 1
#define TIMER_PROBE 4
#define PROBES_LOST 2	  /* an answer resets their number, so that one is just under way */
#define SCAN_NS NS_PER_MS /* limit of asking in one scan: 200 to 400 connections */
#define VERDICTS_MAX 65536

/* clang-format off */
static const struct {
	const char *word;  /* column net */
	const char *words; /* what is so */
	const char *cause; /* and why; NULL: that says it */
} net_rows[NET_VERDICT_COUNT] = {
	[NET_ACCEPT]  = {"accept",  "no connection waits to be accepted", NULL},
	[NET_SYN]     = {"syn",     "SYN sent, no answer", "filtered, the host is down, or its accept queue is full"},
	[NET_BACKLOG] = {"backlog", "SYN sent, no answer", "the accept queue of the listening socket is full"},
	[NET_RESEND]  = {"resend",  "sent again, not acknowledged", "packets are lost, or the peer's host is gone"},
	[NET_WINDOW]  = {"window",  "the peer's receive window is full", "its program does not read"},
	[NET_HELD]    = {"held",    "held back on this host", "as by TCP_CORK or MSG_MORE"},
	[NET_TRANSIT] = {"transit", "on the way, not acknowledged yet", NULL},
	[NET_PEER]    = {"peer",    "acknowledged by the peer's host, not answered by its program", NULL},
	[NET_UNREAD]  = {"unread",  "data is here and not read", NULL},
	[NET_QUIET]   = {"quiet",   "nothing is due: all that was sent is answered", NULL},
};
/* clang-format on */

/* What the kernel said of a connection that is waited for. */
struct known {
	struct cache_entry entry; /* key: inode */
	int64_t asked_ns;	  /* 0: never */
	int64_t since_ns; /* when what was sent was first seen to be without an answer; 0: it is not
			   */
	enum net_verdict verdict;
	struct tcp_answer answer;
};

static struct cache verdicts = {.entry_bytes = sizeof(struct known), .entries_max = VERDICTS_MAX};
static int64_t scan_ns, left_ns; /* the present scan, and the time that asking has left in it */

/* --- the verdict */

static bool is_sent_again(const struct tcp_answer *answer)
{
	return answer->info.tcpi_retransmits || answer->info.tcpi_retrans ||
	       (answer->message.idiag_timer == TIMER_PROBE &&
		answer->info.tcpi_probes >= PROBES_LOST);
}

/* Bytes that are not sent yet. Kernels before 4.6 do not tell them apart. */
static int64_t unsent(const struct tcp_answer *answer)
{
	if (TCP_ANSWER_HAS(answer, tcpi_notsent_bytes))
		return answer->info.tcpi_notsent_bytes;
	return answer->info.tcpi_unacked ? 0 : (int64_t)answer->message.idiag_wqueue;
}

/* Bytes that are sent and not acknowledged; ABSENT: not known. */
static int64_t unacked(const struct tcp_answer *answer)
{
	if (!answer->info.tcpi_unacked)
		return 0;
	return TCP_ANSWER_HAS(answer, tcpi_notsent_bytes)
		       ? (int64_t)answer->message.idiag_wqueue - unsent(answer)
		       : ABSENT;
}

/* True if the window is why nothing is sent: the kernel probes it, too, where a program holds data
 * back, which shows from 5.4 on, as tcp_info has the window. */
static bool window_is_full(const struct tcp_answer *answer)
{
	return answer->message.idiag_timer == TIMER_PROBE &&
	       (!TCP_ANSWER_HAS(answer, tcpi_snd_wnd) ||
		answer->info.tcpi_snd_wnd < unsent(answer));
}

static int64_t us_of_ms(uint32_t ms)
{
	return (int64_t)ms * (NS_PER_MS / NS_PER_US);
}

/* Since the last acknowledgement, or since the thread fell asleep, if that was later. */
static int64_t us_unacknowledged(const struct tcp_answer *answer, int64_t asleep_us)
{
	int64_t us = us_of_ms(answer->info.tcpi_last_ack_recv);

	return asleep_us != ABSENT && asleep_us < us ? asleep_us : us;
}

enum net_verdict net_verdict_of(const struct tcp_answer *answer, int64_t asleep_us, int64_t *us)
{
	*us = ABSENT;
	if (answer->message.idiag_state == STATE_LISTEN)
		return NET_ACCEPT;
	if (answer->message.idiag_state == STATE_SYN_SENT) {
		*us = asleep_us;
		return NET_SYN;
	}
	if (!answer->info_bytes)
		return NET_UNKNOWN;
	if (is_sent_again(answer)) {
		*us = us_unacknowledged(answer, asleep_us);
		return NET_RESEND;
	}
	if (!answer->info.tcpi_unacked && unsent(answer))
		return window_is_full(answer) ? NET_WINDOW : NET_HELD;
	if (answer->info.tcpi_unacked || tcp_answer_is_due(answer)) {
		*us = us_of_ms(answer->info.tcpi_last_data_sent);
		return answer->info.tcpi_unacked ? NET_TRANSIT : NET_PEER;
	}
	*us = us_of_ms(answer->info.tcpi_last_data_recv);
	return answer->message.idiag_rqueue ? NET_UNREAD : NET_QUIET;
}

/* --- in words */

/* Steps of times in texts. */
static const struct {
	int64_t s;
	const char *words;
} steps[] = {
	{1, "1 s"},    {2, "2 s"},     {5, "5 s"},     {10, "10 s"},	{20, "20 s"},
	{60, "1 min"}, {120, "2 min"}, {300, "5 min"}, {600, "10 min"}, {3600, "1 h"},
};
#define STEP_COUNT (sizeof(steps) / sizeof(*steps))

static void tell_since(struct text *text, int64_t us)
{
	for (size_t i = STEP_COUNT; us != ABSENT && i--;)
		if (us >= steps[i].s * US_PER_SECOND) {
			text_add_format(text, " for over %s", steps[i].words);
			return;
		}
}

/* Tells how often something was sent again, and the limit of the time until the next try, which
 * stays the same until then. */
static void tell_tries(struct text *text, const struct tcp_answer *answer)
{
	size_t i = 0;

	if (!answer->message.idiag_retrans)
		return;
	text_add_format(text, "; sent again %u time%s", answer->message.idiag_retrans,
			answer->message.idiag_retrans == 1 ? "" : "s");
	while (i < STEP_COUNT - 1 && answer->info.tcpi_rto > steps[i].s * US_PER_SECOND)
		i++;
	if (answer->message.idiag_timer == TIMER_RESEND)
		text_add_format(text, ", next try within %s", steps[i].words);
}

/* Writes the verdict; a first SYN may just be on its way. */
static void tell(struct text *text, enum net_verdict verdict, const struct tcp_answer *answer,
		 int64_t us)
{
	text_add_string(text, net_rows[verdict].words);
	if (verdict != NET_TRANSIT && verdict != NET_UNREAD)
		tell_since(text, us);
	if (net_rows[verdict].cause && (verdict != NET_SYN || answer->message.idiag_retrans))
		text_add_format(text, ": %s", net_rows[verdict].cause);
}

void net_verdict_tell(struct text *text, enum net_verdict verdict, const struct tcp_answer *answer,
		      int64_t us)
{
	tell(text, verdict, answer, us);
	if (verdict == NET_SYN || verdict == NET_BACKLOG || verdict == NET_RESEND)
		tell_tries(text, answer);
}

/* --- asking */

/* True if the remote address of a connection is of a socket that listens in the same network
 * namespace, and whose accept queue is full. */
static bool backlog_is_full(int fd, const struct diag_record *record)
{
	struct diag_record listener = {.local = record->remote};
	struct tcp_answer answer;

	/* no remote address, of the same family */
	memcpy(listener.remote.bytes, record->remote.bytes, 12);
	if (record->remote.bytes[10] != 0xff)
		memset(listener.remote.bytes, 0, 16);
	return tcp_ask(fd, &listener, &answer) && answer.message.idiag_state == STATE_LISTEN &&
	       answer.message.idiag_rqueue > answer.message.idiag_wqueue;
}

static void ask(struct known *known, int fd, const struct diag_record *record, int64_t now_ns)
{
	int64_t us;

	known->asked_ns = now_ns;
	known->verdict = NET_UNKNOWN;
	if (!tcp_ask(fd, record, &known->answer))
		return;
	known->verdict = net_verdict_of(&known->answer, ABSENT, &us);
	if (known->verdict != NET_SYN && known->verdict != NET_RESEND)
		known->since_ns = 0;
	else if (!known->since_ns)
		known->since_ns = now_ns;
	if (known->verdict == NET_SYN && known->answer.message.idiag_retrans &&
	    backlog_is_full(fd, record))
		known->verdict = NET_BACKLOG;
}

/* True if the answer is of this wait, and not older than that. */
static bool serves(const struct known *known, const struct sample *sample, int64_t now_ns,
		   int64_t still_ns)
{
	int64_t asleep_us = sample->now.state_us;

	return known->asked_ns && now_ns - known->asked_ns < still_ns &&
	       (asleep_us == ABSENT || known->asked_ns >= now_ns - asleep_us * NS_PER_US);
}

static bool has_time(int64_t now_ns)
{
	if (scan_ns != now_ns) {
		scan_ns = now_ns;
		left_ns = SCAN_NS;
	}
	return left_ns > 0;
}

/* What is known of the connection, asked for if that is due; NULL: nothing. *late: this scan has no
 * time for it, and the last answer is too old. */
static const struct known *known_get(int64_t inode, const struct sample *sample, int64_t now_ns,
				     bool *late)
{
	const struct diag_record *record;
	int64_t start_ns;
	struct known *known;
	bool added;
	int fd = inode > 0 ? socket_query_fd((uint64_t)inode, now_ns, &record) : -1;

	if (fd < 0)
		return NULL;
	known = cache_get(&verdicts, (uint64_t)inode, now_ns, &added);
	if (serves(known, sample, now_ns, NET_STILL_NS))
		return known;
	if (!has_time(now_ns)) {
		*late = !serves(known, sample, now_ns, 2 * NET_STILL_NS);
		return *late ? NULL : known;
	}
	start_ns = clock_monotonic_ns();
	ask(known, fd, record, now_ns);
	left_ns -= clock_monotonic_ns() - start_ns;
	return known;
}

/* The share of the time with data to send for which that limited it, in percent; ABSENT: not
 * known. */
static int64_t limited_pct(const struct tcp_answer *answer, uint64_t us)
{
	return TCP_ANSWER_HAS(answer, tcpi_sndbuf_limited) && answer->info.tcpi_busy_time
		       ? (int64_t)(us * 100 / answer->info.tcpi_busy_time)
		       : ABSENT;
}

static void numbers_fill(struct sample_net *net, const struct tcp_answer *answer)
{
	if (!answer->info_bytes || answer->message.idiag_state == STATE_LISTEN)
		return;
	if (answer->message.idiag_state != STATE_SYN_SENT) {
		net->rtt_us = answer->info.tcpi_rtt;
		net->unacked = unacked(answer);
		net->unread = answer->message.idiag_rqueue;
	}
	net->retrans = answer->info.tcpi_total_retrans;
	net->rwnd_pct = limited_pct(answer, answer->info.tcpi_rwnd_limited);
	net->sndbuf_pct = limited_pct(answer, answer->info.tcpi_sndbuf_limited);
}

int64_t net_verdict_fill(int64_t inode, struct sample *sample, int64_t now_ns)
{
	static struct text text;
	bool late = false;
	const struct known *known = known_get(inode, sample, now_ns, &late);
	struct sample_net *net = &sample->net;
	enum net_verdict verdict;

	*net = sample_absent()->net;
	if (!known)
		return late ? 0 : INT64_MAX;
	verdict = known->verdict;
	if (verdict == NET_UNKNOWN)
		return known->asked_ns + NET_STILL_NS;
	net_verdict_of(&known->answer, sample->now.state_us, &net->us);
	/* a program may poll in pieces */
	if (known->since_ns &&
	    (net->us == ABSENT || (now_ns - known->since_ns) / NS_PER_US > net->us))
		net->us = (now_ns - known->since_ns) / NS_PER_US;
	text_clear(&text);
	net_verdict_tell(&text, verdict, &known->answer, net->us);
	net->word = name_transient_string(net_rows[verdict].word);
	net->why = name_transient(text_string(&text), text.length);
	numbers_fill(net, &known->answer);
	return known->asked_ns + NET_STILL_NS;
}

const char *net_verdict_words(int64_t inode, const struct sample *sample, int64_t now_ns)
{
	static struct text text;
	bool late;
	const struct known *known = known_get(inode, sample, now_ns, &late);

	if (!known || known->verdict == NET_UNKNOWN)
		return NULL;
	text_clear(&text);
	tell(&text, known->verdict, &known->answer, ABSENT);
	return text_string(&text);
}

void net_verdicts_sweep(int64_t now_ns, int64_t idle_ns)
{
	cache_sweep(&verdicts, now_ns, idle_ns);
}

void net_verdicts_done(void)
{
	cache_done(&verdicts);
	scan_ns = 0;
}
