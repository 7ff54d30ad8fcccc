/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Findings as sentences for people (--findings), and as objects of JSON. The sentences are those of
 * finding_rows[]; here are the words that are filled in. */
#include "report/findings.h"
#include "report/report.h"
#include "render/render_rows.h"
#include "base/clock.h"
#include "report/value.h"
#include "sample/waits_on.h"

#include <stdlib.h>
#include <string.h>

/* How a sentence names those who wait: two names with times, one, one without its time, and none.
 * Other parties have as many names. */
enum names { NAMES_NONE, NAMES_UNTIMED, NAMES_ONE, NAMES_TWO };
#define INDENT ((size_t)3)
#define TIME_COLUMNS 20 /* before the finding of a minute: "  2026-11-29 14:05  " */
#define JSON_NAMES_MAX 16
#define RUNNERS_PERCENT 80 /* of the busy time that those who ran must have to be named */
#define ALL_PERCENT 95	   /* of the time, in which all threads of a process work or wait */
#define UNDER_PER_MILLE FINDING_SHARE_LEAST
#define BRIEF_US (2 * US_PER_SECOND) /* times of such an interval have milliseconds */
#define LOAD_WHOLE 1000		     /* hundredths: a load without decimals */
#define MINUTE_US (60 * US_PER_SECOND)
#define FINDINGS_LEAST 3   /* findings shown in a window of 24 lines */
#define LINES_OF_FINDING 8 /* lines of a larger window for each finding */
#define ROWS_BESIDE 8	   /* rows that findings leave space for */
#define LINES_BESIDE 7	   /* what else goes on about findings and rows, with the shell's prompt */

/* What a word is about. */
struct about {
	const struct interval *interval;
	const struct findings *findings;
	const struct finding *finding;
	enum names names;
};

/* Adds the word; nothing where it is not known. */
typedef void word_adder(struct text *to, const struct about *about);

static void add_threads(struct text *to, const struct about *about, int64_t us)
{
	text_add_decimals(to, ratio(us, 10, about->findings->elapsed_us), 1);
}

static void add_percent(struct text *to, int64_t part, int64_t whole)
{
	text_add_format(to, "%lld %%", (long long)ratio(part, 100, whole));
}

static void add_busy(struct text *to, const struct findings *findings)
{
	int64_t all_us = findings->cpus * findings->elapsed_us;
	int64_t busy_us = findings_busy_us(findings);

	add_percent(to, busy_us < all_us ? busy_us : all_us, all_us);
}

/* Adds "0.31 s", "20 ms". */
static void add_time(struct text *to, int64_t us)
{
	int64_t ms = us / 1000;

	if (us >= 10 * US_PER_SECOND)
		text_add_format(to, "%lld s", (long long)(us / US_PER_SECOND));
	else if (us >= US_PER_SECOND) {
		text_add_decimals(to, ratio(us, 10, US_PER_SECOND), 1);
		text_add_string(to, " s");
	} else if (ms)
		text_add_format(to, "%lld ms", (long long)ms);
	else
		text_add_string(to, "under 1 ms");
}

static void add_name(struct text *to, const char *name)
{
	text_add_printable(to, name ? name : ABSENT_TEXT);
}

/* Adds "mariadbd 3399", or "curl (13)"; of one of several hosts "mariadbd@db-1 3399". */
static void add_named(struct text *to, const struct about *about, const struct finding_name *name)
{
	add_name(to, name->name);
	/* a thing is of no thread */
	if (about->interval->host && (name->pid != ABSENT || name->tid != ABSENT))
		text_add_format(to, "@%s", about->interval->host);
	if (name->threads > 1)
		text_add_format(to, " (%lld)", (long long)name->threads);
	else if (name->pid != ABSENT)
		text_add_format(to, " %lld", (long long)name->pid);
}

/* Adds " and 2 others" if not all are shown. */
static void add_others(struct text *to, size_t count, size_t shown)
{
	if (count > shown)
		text_add_format(to, " and %zu other%s", count - shown,
				count - shown == 1 ? "" : "s");
}

/* Adds the names with most time: "1.0 python3 5120, 0.9 cc1 (8) and 2 others". */
static void add_names(struct text *to, const struct about *about, const struct keyed *names,
		      bool with_time)
{
	const struct finding_name *rows = names->rows;
	size_t most = about->names == NAMES_TWO ? 2 : 1;
	size_t shown = names->count < most ? names->count : most;

	for (size_t i = 0; i < shown; i++) {
		if (i)
			text_add_string(to, i + 1 < names->count ? ", " : " and ");
		if (with_time) {
			add_threads(to, about, rows[i].weight_us);
			text_add_char(to, ' ');
		}
		add_named(to, about, &rows[i]);
	}
	add_others(to, names->count, shown);
}

/* Adds "3.0 cc1 (8)"; of several "16.1 threads (12.3 curl (13) and 3.8 php-fpm (4))", or where
 * space is short "16.1 curl (13) and 1 other", or "16.1 threads". */
static void word_waiters(struct text *to, const struct about *about)
{
	const struct keyed *waiters = &about->finding->parties[PARTY_WAITERS];

	if (waiters->count == 1) {
		add_threads(to, about, ((const struct finding_name *)waiters->rows)->weight_us);
		text_add_char(to, ' ');
		add_named(to, about, waiters->rows);
		return;
	}
	if (!waiters->count) {
		text_add_string(to, "No thread");
		return;
	}
	add_threads(to, about, about->finding->weight_us - about->finding->symptom_us);
	if (about->names == NAMES_UNTIMED) {
		text_add_char(to, ' ');
		add_names(to, about, waiters, false);
		return;
	}
	text_add_string(to, " threads");
	if (about->names == NAMES_NONE)
		return;
	text_add_string(to, " (");
	add_names(to, about, waiters, true);
	text_add_char(to, ')');
}

static void word_wait(struct text *to, const struct about *about)
{
	const struct keyed *waiters = &about->finding->parties[PARTY_WAITERS];
	const struct finding_name *first = waiters->rows;

	text_add_string(to, waiters->count == 1 && first->threads == 1 ? "waits" : "wait");
}

/* A server whose process is not known has the name of its address. */
static void word_culprit(struct text *to, const struct about *about)
{
	const struct finding_name *culprit = finding_first(about->finding, PARTY_CULPRITS);
	const struct finding_name *thing = finding_first(about->finding, PARTY_THINGS);
	struct finding_name plain;

	if (!culprit && thing)
		add_name(to, thing->name);
	if (!culprit)
		return;
	plain = *culprit;
	if (plain.pid != ABSENT)
		plain.threads = 1;
	add_named(to, about, &plain);
	add_others(to, about->finding->parties[PARTY_CULPRITS].count, 1);
}

/* True if the culprits are several processes, or threads of them. */
static bool are_several(const struct finding *finding)
{
	const struct finding_name *culprit = finding_first(finding, PARTY_CULPRITS);

	return finding->parties[PARTY_CULPRITS].count > 1 ||
	       (culprit && culprit->pid == ABSENT && culprit->threads > 1);
}

static void word_it(struct text *to, const struct about *about)
{
	text_add_string(to, are_several(about->finding) ? "they" : "it");
}

static void word_answered(struct text *to, const struct about *about)
{
	const char *not_done = edge_kinds[about->finding->link].not_done;

	text_add_string(to, are_several(about->finding) ? "have not " : "has not ");
	text_add_string(to, not_done ? not_done : "answered");
}

static void word_thing(struct text *to, const struct about *about)
{
	const struct finding_name *thing = finding_first(about->finding, PARTY_THINGS);

	/* the name of a lock that only others in the chain wait for is not known */
	add_name(to, thing ? thing->name : edge_kinds[about->finding->link].name);
	add_others(to, about->finding->parties[PARTY_THINGS].count, 1);
}

static void word_things(struct text *to, const struct about *about)
{
	add_names(to, about, &about->finding->parties[PARTY_THINGS], false);
}

/* Adds what the culprits do: "waits for a CPU 62 % of the time in read". */
static void doing_add(struct text *to, const struct finding *finding, bool several)
{
	static const struct {
		const char *one, *several;
	} words[STATE_COUNT + 1] = {
		[STATE_ON] = {"runs", "run"},
		[STATE_RQ] = {"waits for a CPU", "wait for a CPU"},
		[STATE_DISK] = {"is in D", "are in D"},
		[STATE_SLEEP] = {"sleeps", "sleep"},
		[STATE_STOPPED] = {"is stopped", "are stopped"},
		[STATE_IDLE] = {"is idle", "are idle"},
		[STATE_ZOMBIE] = {"is a zombie", "are zombies"},
		[STATE_PARKED] = {"is parked", "are parked"},
		[STATE_COUNT] = {"does what is not known", "do what is not known"},
	};
	const char *call = finding_mostly(finding, PARTY_CALLS),
		   *awaited = finding_mostly(finding, PARTY_AWAITED);
	int doing = finding_doing(finding);
	int64_t all_us = finding_doing_us(finding), us = finding->doing_us[doing];

	if (!all_us)
		return;
	text_add_string(to, several ? words[doing].several : words[doing].one);
	if (us < all_us) {
		text_add_char(to, ' ');
		add_percent(to, us, all_us);
		text_add_string(to, " of the time");
	}
	if (call) {
		text_add_string(to, " in ");
		add_name(to, call);
	}
	if (awaited && doing != STATE_ON && !(waits_on_traits(awaited) & WAITS_FOR_SIGCONT)) {
		text_add_string(to, doing == STATE_RQ ? " behind " : ": ");
		add_name(to, awaited);
	}
}

static void word_doing(struct text *to, const struct about *about)
{
	doing_add(to, about->finding, are_several(about->finding));
}

void text_add_unread(struct text *to, const struct source_unread *unread)
{
	int64_t count = unread->requests ? unread->requests : unread->unaccepted;

	text_add_format(to, "%lld %s%s wait%s ", (long long)count,
			unread->requests ? "request" : "connection", count == 1 ? "" : "s",
			count == 1 ? "s" : "");
	text_add_string(to, unread->requests ? "unread" : "to be accepted");
	text_add_format(to, " at tcp :%u", unread->port);
	if (*unread->comm) {
		text_add_string(to, " of ");
		text_add_printable(to, unread->comm);
		if (unread->pid != ABSENT)
			text_add_format(to, " %lld", (long long)unread->pid);
	}
	text_add_string(to, count == 1 ? ", for " : ", the oldest for ");
	add_time(to, unread->oldest_us);
	text_add_string(to, " or longer");
	if (unread->unaccepted)
		text_add_format(to, "; %lld of %lld places in its accept queue taken",
				(long long)unread->unaccepted, (long long)unread->limit);
}

static void word_unread(struct text *to, const struct about *about)
{
	text_add_unread(to, about->finding->unread);
}

/* Adds "; all of its 8 threads sleep in recvfrom: tcp 10.0.0.3:3306". */
static void word_pool(struct text *to, const struct about *about)
{
	const struct finding *finding = about->finding;
	int64_t busy_us = finding_doing_us(finding), elapsed_us = about->findings->elapsed_us,
		all = finding->unread->threads;
	bool several;

	if (ratio(busy_us, 10, elapsed_us) < 1)
		return;
	text_add_string(to, "; ");
	if (all != ABSENT && ratio(busy_us, 100, all * elapsed_us) >= ALL_PERCENT) {
		text_add_string(to, all == 1 ? "its thread " : "all of its ");
		if (all > 1)
			text_add_format(to, "%lld threads ", (long long)all);
		doing_add(to, finding, all > 1);
		return;
	}
	add_threads(to, about, busy_us);
	if (all != ABSENT)
		text_add_format(to, " of its %lld", (long long)all);
	several = ratio(busy_us, 10, elapsed_us) > 10;
	text_add_format(to, " thread%s", several || all != ABSENT ? "s" : "");
	text_add_string(to, several ? " work or wait: they " : " works or waits: it ");
	doing_add(to, finding, several);
}

static void word_java_threads(struct text *to, const struct about *about)
{
	if (about->finding->runtime->threads > 0)
		text_add_number(to, about->finding->runtime->threads);
	else
		text_add_string(to, "Java");
}

/* The threads are stopped for no longer than all stops of the JVM last: a collector may work beside
 * them. */
static void word_stopped(struct text *to, const struct about *about)
{
	const struct source_runtime *runtime = about->finding->runtime;

	add_percent(to, runtime->gc_us < runtime->stopped_us ? runtime->gc_us : runtime->stopped_us,
		    runtime->known_us);
}

/* Adds "212 collections of 9.13 ms on average"; a pause may be for several. */
static void word_collections(struct text *to, const struct about *about)
{
	const struct source_runtime *runtime = about->finding->runtime;

	if (runtime->collections <= 0)
		return;
	text_add_format(to, "%lld collection%s of ", (long long)runtime->collections,
			runtime->collections == 1 ? "" : "s");
	text_add_decimals(to, ratio(runtime->gc_us, 1, runtime->collections * 10), 2);
	text_add_string(to, runtime->collections == 1 ? " ms" : " ms on average");
}

static void add_priority(struct text *to, int64_t priority)
{
	if (priority < 0)
		text_add_format(to, "real-time %lld", (long long)(-1 - priority));
	else if (priority < 40)
		text_add_format(to, "nice %lld", (long long)(priority - 20));
	else
		text_add_string(to, "idle");
}

static void word_priorities(struct text *to, const struct about *about)
{
	add_priority(to, about->finding->holder_priority);
	text_add_string(to, ", not ");
	add_priority(to, about->finding->waiter_priority);
}

static void word_longest(struct text *to, const struct about *about)
{
	if (about->finding->longest_us)
		add_time(to, about->finding->longest_us);
}

/* Adds "for 5.4 s": of several that wait it is the longest time. */
static void word_for(struct text *to, const struct about *about)
{
	const struct keyed *waiters = &about->finding->parties[PARTY_WAITERS];
	const struct finding_name *first = waiters->rows;

	text_add_string(to, waiters->count == 1 && first->threads == 1 ? "for " : "for up to ");
	word_longest(to, about);
}

static void word_symptoms(struct text *to, const struct about *about)
{
	if (ratio(about->finding->symptom_us, 10, about->findings->elapsed_us) < 1)
		return;
	text_add_string(to, "; ");
	add_threads(to, about, about->finding->symptom_us);
	text_add_string(to, " threads wait, likely because of that");
}

static void word_evicted(struct text *to, const struct about *about)
{
	const int64_t percent =
		source_status_refaulted(about->findings->status, about->findings->elapsed_us);

	if (percent)
		text_add_format(
			to, "; %lld %% of what is read was evicted a moment ago: memory is short",
			(long long)percent);
}

static void word_unaccepted(struct text *to, const struct about *about)
{
	if (ratio(about->finding->unaccepted_us, 10, about->findings->elapsed_us) < 1)
		return;
	text_add_format(to, ", and %s not accepted the connections of ",
			are_several(about->finding) ? "have" : "has");
	add_threads(to, about, about->finding->unaccepted_us);
}

static void word_throttled(struct text *to, const struct about *about)
{
	const struct source_quota *quota = about->finding->quota;

	if (quota)
		text_add_format(to, "; throttled in %lld of %lld periods",
				(long long)quota->throttled_periods, (long long)quota->periods);
}

static void word_limit(struct text *to, const struct about *about)
{
	const struct source_io_limit *limit = about->finding->limit;

	if (!limit)
		return;
	text_add_format(to, "%s=%lld of ", limit->word, (long long)limit->limit);
	add_name(to, limit->path);
}

/* Adds "812 requests a second, 17.25 ms each on average, 14.0 at once". */
static void word_requests(struct text *to, const struct about *about)
{
	const struct source_device *device = about->finding->device;
	int64_t elapsed_us = about->findings->elapsed_us;

	if (!device || elapsed_us <= 0)
		return;
	if (device->requests <= 0) {
		text_add_string(to, "no request has ended");
		return;
	}
	if (device->requests * US_PER_SECOND < 10 * elapsed_us)
		text_add_decimals(to, ratio(device->requests, 10 * US_PER_SECOND, elapsed_us), 1);
	else
		text_add_number(to, ratio(device->requests, US_PER_SECOND, elapsed_us));
	text_add_string(to, " requests a second, ");
	text_add_decimals(to, ratio(device->taken_us, 1, device->requests * 10), 2);
	text_add_string(to, " ms each on average, ");
	text_add_decimals(to, ratio(device->taken_us, 10, elapsed_us), 1);
	text_add_string(to, " at once");
}

/* The time that permille of the device's requests did not exceed, in ns; ABSENT: programs saw too
 * few of those that the kernel counted, which is so for devices without requests of their own, as
 * LVM's are. No request took longer than all together. */
static int64_t request_quantile_ns(const struct source_device *device, int permille)
{
	struct histogram times = {.max_ns = device->taken_us * NS_PER_US + NS_PER_MS};

	for (int i = 0; device->timed_ns && i < HISTOGRAM_BUCKETS; i++)
		times.buckets[i] = device->times[i];
	if (!device->requests || histogram_count(&times) * 2 < device->requests)
		return ABSENT;
	return histogram_quantile_ns(&times, permille);
}

/* Adds "; P50 11.20 ms, P99 61.40 ms", or what has these. */
static void word_percentiles(struct text *to, const struct about *about)
{
	static const int shown[] = {500, 990};
	const struct source_device *device = about->finding->device;

	if (!device || request_quantile_ns(device, shown[0]) == ABSENT) {
		text_add_string(to, "; P50, P99: --trace block");
		return;
	}
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		text_add_format(to, "%sP%d ", i ? ", " : "; ", shown[i] / 10);
		text_add_decimals(to, request_quantile_ns(device, shown[i]) / (NS_PER_MS / 100), 2);
		text_add_string(to, " ms");
	}
}

static void word_in_flight(struct text *to, const struct about *about)
{
	if (about->finding->device)
		text_add_number(to, about->finding->device->in_flight);
}

static void word_age(struct text *to, const struct about *about)
{
	add_time(to, finding_age_us(about->finding));
}

static void word_others(struct text *to, const struct about *about)
{
	const struct finding_name *others = finding_first(about->finding, PARTY_CULPRITS);

	if (!others)
		return;
	text_add_string(to, "; also used by ");
	add_name(to, others->name);
}

static void word_runners(struct text *to, const struct about *about)
{
	const struct findings *findings = about->findings;
	const struct keyed *behind = &about->finding->parties[PARTY_CULPRITS];

	/* a filter leaves out most of those that run */
	if (ratio(findings->on_us, 100, findings_busy_us(findings)) >= RUNNERS_PERCENT) {
		text_add_string(to, "; ");
		add_names(to, about, &findings->runners, true);
		text_add_string(to, " have them");
	} else if (behind->count) {
		text_add_string(to, ", behind ");
		add_names(to, about, behind, false);
	}
}

static void word_busy(struct text *to, const struct about *about)
{
	text_add_format(to, "%lld %%", (long long)finding_busy(about->finding, about->findings));
}

static void word_kernel(struct text *to, const struct about *about)
{
	add_percent(to, about->findings->kernel_us, findings_busy_us(about->findings));
}

static void word_count(struct text *to, const struct about *about)
{
	text_add_number(to, about->finding->samples);
}

static void word_rate(struct text *to, const struct about *about)
{
	text_add_number(to, ratio(about->finding->rate, 1, 100));
}

static void word_goroutines(struct text *to, const struct about *about)
{
	text_add_number(to, about->finding->runtime->goroutines);
}

static void word_threads(struct text *to, const struct about *about)
{
	text_add_number(to, about->findings->threads_last);
}

/* Adds "softirq 62 %, steal 3 % of CPU 1". */
static void word_taken(struct text *to, const struct about *about)
{
	const struct findings *findings = about->findings;
	int64_t taken_us[CPU_USE_COUNT], cpu, us = findings_taken_us(findings, taken_us, &cpu);
	int64_t of_us = findings->elapsed_us * (cpu == ABSENT ? findings->cpus : 1);
	bool first = true;

	for (int use = 0; use < CPU_USE_COUNT && us; use++) {
		if (taken_us[use] * 100 < of_us)
			continue;
		text_add_format(to, "%s%s ", first ? "" : ", ", cpu_use_names[use]);
		add_percent(to, taken_us[use], of_us);
		first = false;
	}
	if (cpu == ABSENT)
		text_add_string(to, " of the CPUs");
	else
		text_add_format(to, " of CPU %lld", (long long)cpu);
}

static void word_share(struct text *to, const struct about *about)
{
	add_percent(to, about->finding->weight_us, about->findings->total_us);
}

/* True if a shell takes the word as it is. */
static bool is_plain(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789/._:@%+=,-";

	return !word[strspn(word, plain)];
}

static void word_pid(struct text *to, const struct about *about)
{
	const struct finding_name *culprit = finding_first(about->finding, PARTY_CULPRITS);

	if (culprit && culprit->pid != ABSENT)
		text_add_number(to, culprit->pid);
}

/* Adds the operand that shows the culprit's threads: its id, or the name of several processes. A
 * recording has no rows of a culprit that is asleep; the chains of those that wait tell what it
 * did.
 */
static void word_process(struct text *to, const struct about *about)
{
	const struct finding_name *culprit = finding_first(about->finding, PARTY_CULPRITS);

	if (about->interval->recording && culprit)
		text_add_string(to, "--chains");
	else if (culprit && culprit->pid == ABSENT && culprit->name && *culprit->name != '-' &&
		 is_plain(culprit->name))
		text_add_string(to, culprit->name);
	else
		word_pid(to, about);
}

static const struct {
	const char *name;
	word_adder *add;
} words[] = {
	/* clang-format off */
	{"waiters", word_waiters},
	{"wait", word_wait},
	{"culprit", word_culprit},
	{"thing", word_thing},
	{"things", word_things},
	{"doing", word_doing},
	{"longest", word_longest},
	{"for", word_for},
	{"priorities", word_priorities},
	{"symptoms", word_symptoms},
	{"throttled", word_throttled},
	{"limit", word_limit},
	{"requests", word_requests},
	{"in_flight", word_in_flight},
	{"percentiles", word_percentiles},
	{"age", word_age},
	{"others", word_others},
	{"runners", word_runners},
	{"busy", word_busy},
	{"kernel", word_kernel},
	{"count", word_count},
	{"rate", word_rate},
	{"threads", word_threads},
	{"goroutines", word_goroutines},
	{"share", word_share},
	{"taken", word_taken},
	{"pid", word_pid},
	{"process", word_process},
	{"unread", word_unread},
	{"java_threads", word_java_threads},
	{"stopped", word_stopped},
	{"collections", word_collections},
	{"pool", word_pool},
	{"answered", word_answered},
	{"it", word_it},
	{"unaccepted", word_unaccepted},
	{"evicted", word_evicted},
	/* clang-format on */
};

/* Adds a template up to `end`. False: one of its words is not known. */
static bool template_add(struct text *to, const struct about *about, const char *from,
			 const char *end)
{
	bool known = true;

	while (from < end) {
		const char *brace = memchr(from, '{', (size_t)(end - from));
		const char *close = brace ? strchr(brace, '}') : NULL;
		size_t length = close ? (size_t)(close - brace - 1) : 0, before;

		if (!brace) {
			text_add(to, from, (size_t)(end - from));
			break;
		}
		text_add(to, from, (size_t)(brace - from));
		before = to->length;
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if (strlen(words[i].name) == length &&
			    !memcmp(words[i].name, brace + 1, length))
				words[i].add(to, about);
		known &= to->length > before;
		from = close + 1;
	}
	return known;
}

/* Adds a sentence: its first part, with as many names as fit, and those of the others that fit and
 * whose words are known. A part that is nothing but a word which is not known is left out without a
 * trace. */
static void parts_add(struct text *to, struct about *about, const char *part, size_t columns)
{
	struct text line = {0}, next = {0};

	for (about->names = NAMES_TWO; about->names && columns; about->names--) {
		text_clear(&line);
		template_add(&line, about, part, part + strcspn(part, "|"));
		if (text_width(text_string(&line)) <= columns)
			break;
	}
	text_clear(&line);
	for (bool first = true; *part; first = false) {
		const char *end = part + strcspn(part, "|");

		text_clear(&next);
		if ((template_add(&next, about, part, end) || first) &&
		    (first || !columns ||
		     text_width(text_string(&line)) + text_width(text_string(&next)) <= columns))
			text_add(&line, text_string(&next), next.length);
		part = end + (*end == '|');
	}
	text_shorten(&line, columns);
	text_add(to, text_string(&line), line.length);
	text_done(&line);
	text_done(&next);
}

static void sentence_add(struct text *to, struct about *about, size_t columns)
{
	struct text line = {0};

	if (about->finding->recorded) {
		text_add_printable(&line, about->finding->recorded->text);
		text_shorten(&line, columns);
		text_add(to, text_string(&line), line.length);
		text_done(&line);
		return;
	}
	parts_add(to, about, about->finding->row->sentence, columns);
}

/* Adds what the kernel counted of the device that the finding is about; nothing if it is about
 * none. */
static void device_add(struct text *to, struct about *about, size_t columns)
{
	if (about->finding->device)
		parts_add(to, about, "{thing}: {requests}|, {in_flight} now|{percentiles}",
			  columns);
}

/* True if a command can read the recording again: standard input is gone. */
static bool is_file(const char *recording)
{
	return strcmp(recording, "standard input") != 0 && !strchr(recording, '\'');
}

/* Adds the command that shows more; nothing if it can't be given. */
static void command_add(struct text *to, const struct about *about)
{
	const struct finding_row *row = about->finding->row;
	const struct finding_name *thing = finding_first(about->finding, PARTY_THINGS);
	const char *recording = about->interval->recording;
	struct text line = {0};

	text_add_string(&line, "tsnap ");
	if (recording) {
		text_add_string(&line, "--replay ");
		text_add_format(&line, is_plain(recording) ? "%s " : "'%s' ", recording);
	}
	if (!(recording && (row->live || !is_file(recording))) &&
	    !(thing && thing->name && strstr(row->command, "{thing}") &&
	      thing->name[strcspn(thing->name, " '\"\\$`*?[")]) &&
	    template_add(&line, about, row->command, row->command + strlen(row->command)))
		text_add(to, text_string(&line), line.length);
	text_done(&line);
}

/* Adds when the recorder found it: ", in 3 of 12 minutes: 14:05 to 14:20"; of several days with
 * their dates. */
static void recorded_times_add(struct text *line, const struct finding_recorded *recorded)
{
	char from[CLOCK_LOCAL_SIZE], until[CLOCK_LOCAL_SIZE];
	bool brief = recorded->of_us < 2 * MINUTE_US;
	int64_t unit_us = brief ? US_PER_SECOND : MINUTE_US;
	int width = brief ? 8 : 5, at = CLOCK_LOCAL_TIME;

	clock_format_local(recorded->from_us, from);
	clock_format_local(recorded->until_us, until);
	if (memcmp(from, until, CLOCK_LOCAL_TIME) != 0) {
		width += at;
		at = 0;
	}
	text_add_format(line, ", in %lld of %lld %s: %.*s to %.*s",
			(long long)ratio(recorded->found_us, 1, unit_us),
			(long long)ratio(recorded->of_us, 1, unit_us), brief ? "s" : "minutes",
			width, from + at, width, until + at);
}

/* Adds how sure a finding is, its share, and the chain, cut to that many columns. */
static void grounds_add(struct text *to, const struct about *about, size_t columns)
{
	const struct finding *finding = about->finding;
	struct text line = {0};

	text_add_string(&line, finding_certainty(finding));
	if (finding->weight_us) { /* not only a count */
		text_add_string(&line, ", ");
		add_percent(&line, finding->weight_us, about->findings->total_us);
		text_add_string(&line, " of the time");
	}
	if (finding->recorded)
		recorded_times_add(&line, finding->recorded);
	if (finding->chain && strstr(finding->chain, "> ")) {
		text_add_string(&line, ": ");
		text_add_printable(&line, finding->chain);
	}
	if (finding->before)
		text_add_format(&line, "; also %s", finding->before);
	text_shorten(&line, columns);
	text_add(to, text_string(&line), line.length);
	text_done(&line);
}

/* Adds the line below a sentence: its grounds, and the command that shows more. */
static void evidence_add(struct text *to, const struct about *about, size_t columns)
{
	struct text line = {0}, command = {0};
	size_t width, left = columns;

	command_add(&command, about);
	width = text_width(text_string(&command));
	if (columns)
		left = columns > width + 1 ? columns - width - 1 : columns;
	grounds_add(&line, about, left);
	if (width && columns > text_width(text_string(&line)) + width)
		text_add_spaces(&line, columns - text_width(text_string(&line)) - width);
	else if (width && !columns)
		text_add_string(&line, "; more: ");
	if (width && (!columns || left != columns))
		text_add(&line, text_string(&command), command.length);
	text_add(to, text_string(&line), line.length);
	text_done(&line);
	text_done(&command);
}

/* Sum of the time of a kind, with and without a finding. */
struct kind_sum {
	const char *kind;
	int64_t us, longest_us;
	bool held;
};

static size_t kinds_sum(const struct findings *findings, struct kind_sum *sums)
{
	size_t count = 0;

	for (size_t i = 0; i < finding_row_count; i++) {
		size_t at = 0;

		if (!finding_rows[i].key)
			continue;
		while (at < count && strcmp(sums[at].kind, finding_rows[i].kind) != 0)
			at++;
		sums[at].kind = finding_rows[i].kind;
		count += at == count;
	}
	for (size_t i = 0; i < findings->found.count; i++) {
		const struct finding *finding = finding_at(findings, i);
		size_t at = 0;

		while (at < count && strcmp(sums[at].kind, finding->row->kind) != 0)
			at++;
		if (at == count)
			continue;
		sums[at].us = sum(sums[at].us, finding->weight_us);
		sums[at].held |= finding->held;
		if (finding->longest_us > sums[at].longest_us)
			sums[at].longest_us = finding->longest_us;
	}
	return count;
}

/* Adds what is no problem: "disks, memory and quotas each cost under 2 %; waits for servers 7 %
 * (20 ms at most)". */
static void others_add(struct text *line, const struct findings *findings)
{
	struct kind_sum sums[32] = {{0}};
	size_t count = kinds_sum(findings, sums), small = 0, told = 0;

	for (size_t i = 0; i < count; i++)
		small += !sums[i].held &&
			 ratio(sums[i].us, 1000, findings->total_us) < UNDER_PER_MILLE;
	for (size_t i = 0; i < count; i++) {
		if (sums[i].held || ratio(sums[i].us, 1000, findings->total_us) >= UNDER_PER_MILLE)
			continue;
		text_add_string(line, !told ? " " : told + 1 < small ? ", " : " and ");
		text_add_string(line, sums[i].kind);
		told++;
	}
	if (small)
		text_add_format(line, "%s cost under %d %%", small > 1 ? " each" : "",
				UNDER_PER_MILLE / 10);
	for (size_t i = 0; i < count; i++) {
		if (sums[i].held || ratio(sums[i].us, 1000, findings->total_us) < UNDER_PER_MILLE)
			continue;
		text_add_format(line, "%s%s ", told++ ? "; " : " ", sums[i].kind);
		add_percent(line, sums[i].us, findings->total_us);
		text_add_string(line, " (");
		add_time(line, sums[i].longest_us);
		text_add_string(line, " at most)");
	}
}

static void busy_add(struct text *line, const struct interval *interval,
		     const struct findings *findings)
{
	const struct source_status *status = interval->status;

	if (!status || status->cpus == ABSENT || !findings->elapsed_us)
		return;
	text_add_format(line, "%lld CPU%s ", (long long)status->cpus, status->cpus == 1 ? "" : "s");
	add_busy(line, findings);
	text_add_string(line, " busy");
}

/* Says that nothing else was found, but not what costs little: /proc does not show all of it, nor
 * how long waits have lasted. */
static void rest_of_proc_add(struct text *line, const struct interval *interval,
			     const struct findings *findings)
{
	text_add_format(line, "Nothing%s stands out in what /proc shows to this user",
			findings->count ? " else" : "");
	if (findings->count)
		return;
	text_add_string(line, ": ");
	busy_add(line, interval, findings);
}

static void rest_add(struct text *out, const struct interval *interval,
		     const struct findings *findings)
{
	struct text line = {0};

	if (interval->status && interval->status->of_proc) {
		rest_of_proc_add(&line, interval, findings);
		text_add_char(&line, '.');
		interval_add_line(out, interval, &line);
		return;
	}
	text_add_string(&line,
			findings->count ? "Nothing else stands out:" : "Nothing stands out:");
	if (!findings->count) {
		text_add_char(&line, ' ');
		busy_add(&line, interval, findings);
		text_add_string(&line, text_string(&line)[line.length - 1] == ' ' ? "" : ", ");
		text_add_string(&line, findings->longest_us ? "nobody waited longer than "
							    : "nobody waited");
		if (findings->longest_us)
			add_time(&line, findings->longest_us + 999);
		text_add_char(&line, ';');
	}
	if (findings->total_us < findings->elapsed_us / QUIET_THREADS && !findings->count)
		line.bytes[--line.length] = '\0'; /* shares of little time say nothing */
	else
		others_add(&line, findings);
	/* one line, where rows follow */
	if (findings->count && !findings->alone && interval->width &&
	    text_width(text_string(&line)) >= interval->width) {
		text_clear(&line);
		text_add_format(&line, "Nothing else costs %d %% of the time",
				UNDER_PER_MILLE / 10);
	}
	text_add_char(&line, '.');
	interval_add_line(out, interval, &line);
}

/* Says what the recording lacks, instead of finding nothing. */
static void lack_words(struct text *line, const struct findings *findings)
{
	text_add_string(line, "The recording lacks columns that --findings needs: ");
	unrecorded_add(line, &findings->unrecorded, "findings");
}

/* False: the recording lacks nothing. */
static bool lack_add(struct text *out, const struct interval *interval,
		     const struct findings *findings)
{
	struct text line = {0};

	if (!findings->unrecorded.count)
		return false;
	if (!findings->alone) {
		interval_add_wrapped(out, interval,
				     "The recording lacks columns that findings are made of: "
				     "record them with -G findings.");
		return true;
	}
	lack_words(&line, findings);
	interval_add_line(out, interval, &line);
	return true;
}

static void host_add(struct text *line, const struct interval *interval)
{
	const struct source_status *status = interval->status;
	const struct tally *tally = interval->tally;
	bool brief = tally->elapsed_us < BRIEF_US;

	text_add_printable(line, *status->host ? status->host : "tsnap");
	if (interval->recording) {
		text_add_string(line, ", replay of ");
		text_add_printable(line, interval->recording);
	}
	if (*status->kernel) {
		text_add_string(line, ", Linux ");
		text_add_printable(line, status->kernel);
	}
	if (status->cpus != ABSENT)
		text_add_format(line, ", %lld CPU%s", (long long)status->cpus,
				status->cpus == 1 ? "" : "s");
	if (!tally->scans)
		return;
	text_add_string(line, ", ");
	interval_add_times(line, interval, interval->recording, brief ? 3 : 0);
}

/* Adds ": CPUs 97 % busy, load 14, memory 61 % used", as far as known. */
static void usage_add(struct text *line, const struct interval *interval,
		      const struct findings *findings)
{
	const struct source_status *status = interval->status;
	const char *before = ": ";

	if (status->cpus != ABSENT && findings->elapsed_us) {
		text_add_format(line, "%sCPU%s ", before, status->cpus == 1 ? "" : "s");
		add_busy(line, findings);
		text_add_string(line, " busy");
		before = ", ";
	}
	if (status->load != ABSENT) {
		text_add_format(line, "%sload ", before);
		if (status->load < LOAD_WHOLE)
			text_add_decimals(line, ratio(status->load, 1, 10), 1);
		else
			text_add_number(line, ratio(status->load, 1, 100));
		before = ", ";
	}
	if (status->memory_used != ABSENT)
		text_add_format(line, "%smemory %lld %% used", before,
				(long long)ratio(status->memory_used, 1, 10));
}

void interval_add_findings_header(struct text *out, const struct interval *interval,
				  const struct findings *findings)
{
	struct about about = {.interval = interval, .findings = findings};
	struct text line = {0};

	host_add(&line, interval);
	usage_add(&line, interval, findings);
	text_add_string(&line, "; ");
	if (findings->threads_last)
		text_add_format(&line, "%lld thread%s, ", (long long)findings->threads_last,
				findings->threads_last == 1 ? "" : "s");
	add_threads(&line, &about, findings->total_us);
	text_add_format(&line, "%s working or waiting", findings->threads_last ? "" : " threads");
	interval_add_line(out, interval, &line);
}

/* Number of findings that are shown, of two lines each, and one for a device: with rows, those that
 * leave space for rows. above: lines that are above the findings. */
static size_t findings_shown(const struct interval *interval, const struct findings *findings,
			     size_t above)
{
	size_t most = interval->height / LINES_OF_FINDING, count = findings->count;
	size_t rows, taken;

	if (!interval->height || findings->alone)
		return count;
	rows = interval->grid->row_count < ROWS_BESIDE ? interval->grid->row_count : ROWS_BESIDE;
	taken = above + rows + LINES_BESIDE;
	most = most < FINDINGS_LEAST ? FINDINGS_LEAST : most;
	for (size_t i = 0; i < count && i < most; i++)
		taken += finding_at(findings, i)->device != NULL;
	while (most > 1 && taken + 2 * most > interval->height)
		most--;
	return count < most ? count : most;
}

void interval_add_findings(struct text *out, const struct interval *interval,
			   const struct findings *findings, size_t above)
{
	size_t columns = interval->width > 2 * INDENT ? interval->width - INDENT : 0;
	size_t shown = findings_shown(interval, findings, above);
	bool lacks = lack_add(out, interval, findings);
	struct text device = {0};

	for (size_t i = 0; i < shown; i++) {
		struct about about = {interval, findings, finding_at(findings, i), NAMES_TWO};

		text_add_format(out, "%zu. ", i + 1);
		sentence_add(out, &about, columns - (columns && i >= 9));
		text_add_char(out, '\n');
		text_add_spaces(out, INDENT);
		evidence_add(out, &about, columns);
		text_add_char(out, '\n');
		device_add(&device, &about, columns);
		if (device.length) {
			text_add_spaces(out, INDENT);
			text_add_format(out, "%s\n", text_string(&device));
			text_clear(&device);
		}
	}
	text_done(&device);
	if (shown < findings->count)
		text_add_format(out, "%zu more finding%s: --findings\n", findings->count - shown,
				findings->count - shown == 1 ? "" : "s");
	else if (!lacks || findings->count)
		rest_add(out, interval, findings);
}

void interval_add_findings_rest(struct text *out, const struct interval *interval,
				const struct findings *findings)
{
	if (!lack_add(out, interval, findings) || findings->count)
		rest_add(out, interval, findings);
}

/* Adds the names of a party, most time first: [{"name":"curl","pid":null, ...}]. */
static void json_add_party(struct text *out, const char *member, const struct keyed *names)
{
	const struct finding_name *rows = names->rows;

	text_add_format(out, ",\"%s\":[", member);
	for (size_t i = 0; i < names->count && i < JSON_NAMES_MAX; i++) {
		text_add_string(out, i ? ",{" : "{");
		if (rows[i].name)
			json_add_text(out, "\"name\":", rows[i].name);
		else
			text_add_string(out, "\"name\":null");
		json_add_number(out, "pid", rows[i].pid);
		json_add_number(out, "tid", rows[i].threads > 1 ? ABSENT : rows[i].tid);
		json_add_number(out, "threads", rows[i].tid == ABSENT ? ABSENT : rows[i].threads);
		json_add_number(out, "time_us", rows[i].weight_us);
		text_add_char(out, '}');
	}
	text_add_char(out, ']');
}

static void json_add_doing(struct text *out, const struct finding *finding)
{
	const char *before = ",\"doing_us\":{", *call = finding_mostly(finding, PARTY_CALLS),
		   *awaited = finding_mostly(finding, PARTY_AWAITED);

	for (int state = 0; state < STATE_COUNT; state++) {
		if (!finding->doing_us[state])
			continue;
		text_add_format(out, "%s\"%s\":%lld", before, state_row(state)->name,
				(long long)finding->doing_us[state]);
		before = ",";
	}
	text_add_string(out, *before == ',' && before[1] ? ",\"doing_us\":{}" : "}");
	if (call)
		json_add_text(out, ",\"doing_syscall\":", call);
	if (awaited)
		json_add_text(out, ",\"doing_waits_on\":", awaited);
}

static void json_add_head(struct text *out, const char *name, const struct interval *interval,
			  const struct findings *findings, int64_t us)
{
	json_add_text(out, "{\"finding\":", name);
	if (interval->host)
		json_add_text(out, ",\"host\":", interval->host);
	json_add_number(out, "time_us", us);
	json_add_number(out, "share_per_mille", ratio(us, 1000, findings->total_us));
}

static void json_add_ns(struct text *out, const char *member, int64_t ns)
{
	json_add_number(out, member, ns == ABSENT ? ABSENT : ns / NS_PER_US);
}

/* What the kernel counted of the device: its requests, and their mean time. */
static void json_add_device(struct text *out, const struct finding *finding)
{
	const struct source_device *device = finding->device;

	if (!device)
		return;
	json_add_number(out, "requests", device->requests);
	json_add_number(out, "request_us",
			device->requests > 0 ? ratio(device->taken_us, 1, device->requests)
					     : ABSENT);
	json_add_number(out, "in_flight", device->in_flight);
	json_add_ns(out, "request_p50_us", request_quantile_ns(device, 500));
	json_add_ns(out, "request_p99_us", request_quantile_ns(device, 990));
}

static void json_add_unread(struct text *out, const struct source_unread *unread)
{
	if (!unread)
		return;
	json_add_number(out, "unread", unread->requests);
	json_add_number(out, "unaccepted", unread->unaccepted);
	json_add_number(out, "accept_queue", unread->unaccepted ? unread->limit : ABSENT);
	json_add_number(out, "process_threads", unread->threads);
}

static void json_add_runtime(struct text *out, const struct source_runtime *runtime)
{
	if (!runtime)
		return;
	json_add_number(out, "stopped_us", runtime->stopped_us);
	json_add_number(out, "gc_us", runtime->gc_us);
	json_add_number(out, "of_us", runtime->known_us);
	json_add_number(out, "collections", runtime->collections);
	json_add_number(out, "process_threads", runtime->threads);
	if (!runtime->is_go)
		return;
	json_add_number(out, "goroutines", runtime->goroutines);
	json_add_number(out, "more_goroutines", runtime->grown);
}

static void json_add_finding(struct text *out, struct about *about, size_t rank)
{
	const struct finding *finding = about->finding;
	struct text scratch = {0};

	json_add_head(out, finding->row->name, about->interval, about->findings,
		      finding->weight_us);
	json_add_number(out, "rank", (int64_t)rank);
	json_add_number(out, "symptom_us", finding->symptom_us);
	json_add_number(out, "longest_us", finding->longest_us);
	json_add_number(out, "samples", finding->samples);
	json_add_text(out, ",\"certainty\":", finding_certainty(finding));
	json_add_party(out, "waiters", &finding->parties[PARTY_WAITERS]);
	json_add_party(out, "culprits", &finding->parties[PARTY_CULPRITS]);
	json_add_party(out, "things", &finding->parties[PARTY_THINGS]);
	json_add_doing(out, finding);
	json_add_number(out, "per_second", finding->rate ? ratio(finding->rate, 1, 100) : ABSENT);
	json_add_number(out, "age_us", finding_age_us(finding));
	json_add_device(out, finding);
	json_add_unread(out, finding->unread);
	json_add_runtime(out, finding->runtime);
	if (finding->recorded) {
		json_add_number(out, "found_us", finding->recorded->found_us);
		json_add_number(out, "recorded_us", finding->recorded->of_us);
	}
	if (finding->chain)
		json_add_text(out, ",\"chain\":", finding->chain);
	if (finding->before)
		json_add_text(out, ",\"before\":", finding->before);
	sentence_add(&scratch, about, 0);
	json_add_text(out, ",\"text\":", text_string(&scratch));
	text_clear(&scratch);
	device_add(&scratch, about, 0);
	if (scratch.length)
		json_add_text(out, ",\"device\":", text_string(&scratch));
	text_clear(&scratch);
	command_add(&scratch, about);
	if (scratch.length)
		json_add_text(out, ",\"command\":", text_string(&scratch));
	text_done(&scratch);
}

static void json_add_lack(struct text *out, const struct interval *interval,
			  const struct findings *findings)
{
	struct text line = {0};

	json_add_head(out, "not_recorded", interval, findings, 0);
	text_add_string(out, ",\"columns\":[");
	for (size_t i = 0; i < findings->unrecorded.count; i++)
		text_add_format(out, "%s\"%s\"", i ? "," : "", findings->unrecorded.items[i]->name);
	text_add_char(out, ']');
	lack_words(&line, findings);
	json_add_text(out, ",\"text\":", text_string(&line));
	text_done(&line);
}

/* Objects of an interval: its findings, what the recording lacks for others, then the time that is
 * no problem, and that was not seen, so that the times of all are the whole time. */
static void json_add_findings(struct text *out, const struct interval *interval)
{
	const struct findings *findings = report_state(interval->report, &findings_part);
	struct text end = {0};

	grouped_json_end(&end, interval);
	for (size_t i = 0; i < findings->count; i++) {
		struct about about = {interval, findings, finding_at(findings, i), NAMES_TWO};

		json_add_finding(out, &about, i + 1);
		text_add(out, text_string(&end), end.length);
	}
	if (findings->unrecorded.count) {
		json_add_lack(out, interval, findings);
		text_add(out, text_string(&end), end.length);
	}
	json_add_head(out, "no_problem", interval, findings, findings->none_us);
	json_add_number(out, "longest_us", findings->longest_us);
	json_add_number(out, "all_us", findings->total_us);
	json_add_party(out, "runners", &findings->runners);
	text_add(out, text_string(&end), end.length);
	json_add_head(out, "not_seen", interval, findings, findings->unseen_us);
	text_add(out, text_string(&end), end.length);
	REPORT_EACH (use, interval->report, objects)
		use->part->objects(out, text_string(&end), use->state);
	text_done(&end);
}

const struct renderer renderer_json_findings = {
	.name = "json findings",
	.kind = RENDERER_ROWS,
	.grouped = true,
	.accounts = true,
	.before = REPORT_MEASURES_DEFAULT,
	.columns = REPORT_COLUMNS_DEFAULT,
	.add = json_add_findings,
};

void interval_add_finding(struct text *out, const struct interval *interval,
			  const struct findings *findings, const struct finding *finding,
			  size_t columns)
{
	struct about about = {interval, findings, finding, NAMES_TWO};

	sentence_add(out, &about, columns);
}

void interval_add_device(struct text *out, const struct interval *interval,
			 const struct findings *findings, const struct finding *finding)
{
	struct about about = {interval, findings, finding, NAMES_TWO};

	if (!finding->device)
		return;
	text_add_string(out, "; ");
	device_add(out, &about, 0);
}

void interval_add_evidence(struct text *out, const struct interval *interval,
			   const struct findings *findings, const struct finding *finding)
{
	struct about about = {interval, findings, finding, NAMES_TWO};
	struct text device = {0};

	evidence_add(out, &about, interval->width);
	interval_add_device(&device, interval, findings, finding);
	if (!interval->width || out->length + device.length <= interval->width)
		text_add(out, text_string(&device), device.length);
	text_done(&device);
}

void interval_add_grounds(struct text *grounds, struct text *command,
			  const struct interval *interval, const struct findings *findings,
			  const struct finding *finding)
{
	struct about about = {interval, findings, finding, NAMES_TWO};

	grounds_add(grounds, &about, 0);
	interval_add_device(grounds, interval, findings, finding);
	command_add(command, &about);
}

static void first_add(struct text *out, const struct interval *interval)
{
	const struct findings *findings = report_state(interval->report, &findings_part);

	if (findings->count)
		interval_add_finding(out, interval, findings, finding_at(findings, 0),
				     interval->width > TIME_COLUMNS ? interval->width - TIME_COLUMNS
								    : 0);
}

const struct renderer renderer_finding = {
	.name = "finding",
	.kind = RENDERER_REPORT,
	.grouped = true,
	.accounts = true,
	.has_footer = true,
	.of_findings = &renderer_finding,
	.before = REPORT_MEASURES_DEFAULT,
	.columns = REPORT_COLUMNS_DEFAULT,
	.add = first_add,
};

static int findings_begin(void *state, struct report *report)
{
	struct findings *findings = state;

	if (!report->config->findings)
		return 0;
	findings_init(findings, &report->times);
	findings->alone = !report->query.columns;
	findings->of_all = !report->query.recorded && !query_selects(&report->query);
	report->interval->rows_folded = !report->config->all_rows;
	return 1;
}

static int findings_collect(void *state, struct report *report, bool all)
{
	if (!all)
		findings_end_scan(state, (int64_t)report->scan->threads);
	return 0;
}

static void findings_end(void *state, struct report *report)
{
	struct findings *findings = state;

	findings_fill(findings, &report->tally, report->status, report->source);
	report->unwanted = !finding_condition_met(&report->config->condition, findings);
	report_lacks(report, &findings->list, &findings->unrecorded);
	report_miss(report, "samples dropped: more kinds than --findings keeps",
		    findings->groups.refused);
}

const struct report_part findings_part = {.bytes = sizeof(struct findings),
					  .begin = findings_begin,
					  .needs = findings_needs,
					  .add = findings_add,
					  .add_account = findings_add_account,
					  .collect = findings_collect,
					  .end = findings_end,
					  .clear = findings_clear,
					  .done = findings_done};
