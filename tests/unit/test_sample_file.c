/* SPDX-License-Identifier: GPL-2.0-or-later */
/* csv_reader, sample_file */
#include "unit.h"
#include "base/clock.h"
#include "base/quantity.h"
#include "base/names.h"
#include "base/text.h"
#include "recording/csv_reader.h"
#include "recording/recording_part.h"
#include "recording/recording.h"

#include <sys/mman.h>

#define T0 "2026-11-20T20:42:53.000000Z"
#define T1 "2026-11-20T20:42:53.050000Z"
#define T9 "2026-11-20T20:42:53.450000Z"

static const struct filter all = {.all_states = true};

/* Opens a recording with that content, like recording_open(). */
static int content_open(const char *content, size_t length, const struct filter *filter,
			uint64_t needs, struct source **source, struct error *e)
{
	int fd = memfd_create("recording", MFD_CLOEXEC), err;
	const struct recording_part whole = {.from_us = ABSENT, .until_us = ABSENT};
	char path[64];

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, length), length);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = recording_open((const char *[]){path, NULL}, &whole, filter, needs, source, e);
	close(fd);
	return err;
}

/* Reads all of content; returns the numbers of scans and samples. */
static int replay(const char *content, size_t length, size_t *scans, size_t *samples,
		  struct source_status *status, struct error *e)
{
	struct source *source;
	struct scan scan;
	int err = content_open(content, length, &all, ~0u, &source, e);

	*scans = *samples = 0;
	if (!err) {
		while ((err = source->next(source, &scan, e)) > 0) {
			++*scans;
			*samples += scan.count;
		}
		source->describe(source, status);
		source->close(source);
	}
	return err;
}

static void fails(const char *content, const char *words)
{
	size_t scans, samples;
	struct source_status status;
	struct error e = {0};

	assert_int_equal(replay(content, strlen(content), &scans, &samples, &status, &e), -EINVAL);
	assert_int_equal(e.exit_code, EXIT_FAILED);
	if (!strstr(e.line, words))
		fail_msg("'%s' is not in '%s'", words, e.line);
	error_done(&e);
}

static void bad_recordings(void **state)
{
	fails("", "empty");
	fails("timestamp", "empty");
	fails("tid\n1\n", "line 1: no header line with a timestamp");
	fails("\177ELF\n\n", "line 1: no header line");
	fails("timestamp,tid,tid\n", "line 1: tid: two such columns");
	fails("timestamp,tid\n" T0 ",1\n" T0 "\n", "line 3: 1 columns where the header line has 2");
	fails("timestamp,tid\n" T0 ",1x\n", "line 2: tid: not a number");
	fails("timestamp,tid\n" T0 ",-\n", "line 2: tid: not a number");
	fails("timestamp,tid\n" T0 ",9223372036854775808\n", "line 2: tid: not a number");
	fails("timestamp,tid\n,1\n", "line 2: timestamp: missing");
	fails("timestamp,tid\n2026,1\n", "line 2: timestamp: not a time");
	fails("timestamp,tid\n\"\",1\n", "line 2: timestamp: not a time");
	fails("timestamp,state\n" T0 ",\"X\"\n", "line 2: state: not a state");
	fails("timestamp,arg0\n" T0 ",12\n", "line 2: arg0: not a 0x number");
	fails("timestamp,arg0\n" T0 ",0x12345678123456789\n", "line 2: arg0: not a 0x number");
	fails("timestamp,weight_us\n" T0 ",-1\n", "line 2: weight_us: out of range");
	fails("timestamp,weight_us\n" T0 ",9000000000000000000\n", "weight_us: out of range");
	fails("timestamp,comm\n" T0 ",a\"b\"\n", "line 2: a quote inside a field");
	fails("timestamp,comm\n" T0 ",\"a\"b\n", "line 2: text after the end of a quoted field");
	fails("timestamp,comm\n" T0 ",\"a\n" T0 ",b\n", "line 2: a quoted field without an end");
	fails("timestamp,comm\n" T0 ",\"a\nb\"\n" T0 "\n", "line 4: 1 columns");
}

/* Input from a text, in pieces of that size as a file may give them. */
struct pieces {
	struct csv_input input; /* first member: the struct is cast to it and back */
	const char *text;
	size_t length, at, piece;
};

static ssize_t pieces_read(struct csv_input *input, char *bytes, size_t size, struct error *e)
{
	struct pieces *pieces = (struct pieces *)input;
	size_t count = pieces->length - pieces->at;

	count = count < size ? count : size;
	count = count < pieces->piece ? count : pieces->piece;
	memcpy(bytes, pieces->text + pieces->at, count);
	pieces->at += count;
	return (ssize_t)count;
}

/* Adds a field at *at according to RFC 4180; false: it is invalid. */
static bool field_told(const char **at, const char *end, struct text *reported)
{
	bool quoted = *at < end && **at == '"';

	for (*at += quoted; *at < end; ++*at) {
		if (quoted && **at == '"' && *at + 1 < end && (*at)[1] == '"')
			++*at;
		else if (quoted && **at == '"')
			break;
		else if (!quoted && **at == '"')
			return false;
		else if (!quoted && **at == ',')
			break;
		text_add(reported, *at, 1);
	}
	text_add_string(reported, quoted ? "|q" : "|u");
	if (quoted && (*at == end || *(*at)++ != '"'))
		return false;
	return *at == end || **at == ',';
}

/* Adds what a reader must report of the text, byte by byte: fields and bad records. */
static void records_told(const char *at, const char *end, struct text *reported)
{
	while (at < end) {
		const char *record_end = at, *record = at;
		struct text fields = {0};
		bool quoted = false, right;

		for (; record_end < end && (quoted || *record_end != '\n'); record_end++)
			quoted ^= *record_end == '"';
		if (record_end == end)
			return;
		at = record_end + 1;
		record_end -= record_end > record && record_end[-1] == '\r';
		right = !memchr(record, '\0', (size_t)(record_end - record));
		while (right && (right = field_told(&record, record_end, &fields)) &&
		       record++ < record_end)
			;
		text_add_string(reported, right ? text_string(&fields) : "bad");
		text_add_string(reported, ";");
		text_done(&fields);
	}
}

/* Adds what a reader reports, in the form of records_told(). */
static void records_read(struct csv_reader *reader, struct text *reported)
{
	struct csv_field fields[CSV_FIELDS_MAX];
	struct error e = {0};
	size_t count;
	int more;

	while ((more = csv_read(reader, fields, &count, &e))) {
		for (size_t i = 0; more > 0 && i < count; i++) {
			assert_int_equal(fields[i].length, strlen(fields[i].text));
			text_add_string(reported, fields[i].text);
			text_add_string(reported, fields[i].quoted ? "|q" : "|u");
		}
		if (more < 0 && strstr(e.line, "a quoted field without an end"))
			break; /* rest of the text at the end */
		text_add_string(reported, more > 0 ? ";" : "bad;");
		error_done(&e);
	}
	error_done(&e);
}

/* Compares both readers: in the same thread, and reading ahead in another. */
static void records_expect(struct pieces pieces)
{
	struct text expected = {0};

	records_told(pieces.text, pieces.text + pieces.length, &expected);
	for (int ahead = 0; ahead < 2; ahead++) {
		struct pieces given = pieces;
		struct csv_reader reader = {.fd = -1, .input = &given.input, .name = "text"};
		struct text reported = {0};

		if (ahead)
			csv_read_ahead(&reader);
		records_read(&reader, &reported);
		assert_string_equal(text_string(&reported), text_string(&expected));
		csv_done(&reader);
		text_done(&reported);
	}
	text_done(&expected);
}

/* Plain records, which are read 64 bytes at a time, mixed with others in one text. */
static void records_of_all_kinds(void **state)
{
	static const char *const parts[] = {
		",",	    ",",	  ",",	     "\n", "\n",
		"\"a\"",    "\"\"",	  "1234567", "\"", "\"x,y\"",
		"\"p\nq\"", "\"d\"\"d\"", "\r\n",    "a",  "\"012345678901234567890123456789\""};
	unsigned int seed = 1;

	for (int round = 0; round < 1500; round++) {
		struct text text = {0};
		/* all kinds, or only plain ones */
		size_t kinds = round % 3 == 0 ? sizeof(parts) / sizeof(parts[0]) : 8;
		/* some are longer than one read ahead */
		int count = round % 100 < 2 ? 200000 : rand_r(&seed) % 300;

		while (count--)
			text_add_string(&text, parts[(size_t)rand_r(&seed) % kinds]);
		if (round % 5 == 0)
			text_add(&text, "\0\n1,2\n", 7);
		records_expect((struct pieces){
			.input.read = pieces_read,
			.text = text_string(&text),
			.length = text.length,
			.piece = round % 2 ? SIZE_MAX : 1 + (size_t)rand_r(&seed) % 1000});
		text_done(&text);
	}
}

/* A thread that reads ahead makes the hashes that others would make, of the fields that were asked
 * for last. */
static void hashes_ahead(void **state)
{
	const size_t some[] = {0, 2, 3}, other[] = {1};
	struct row_hasher hashers[2];
	struct text text = {0};
	struct pieces pieces = {.input.read = pieces_read, .piece = SIZE_MAX};
	struct csv_reader reader = {.fd = -1, .name = "text", .input = &pieces.input};
	struct csv_field fields[CSV_FIELDS_MAX];
	struct error e = {0};
	size_t count, made[2] = {0};

	row_hasher_init(&hashers[0], some, 3);
	row_hasher_init(&hashers[1], other, 1);
	for (int i = 0; text.length < 40 << 20; i++)
		text_add_format(&text, "%d,\"a%d\",b%d,%d\n%s", i, i % 7, i % 300, i % 5,
				i % 1000 ? "" : "short\n\"broken\nline\",1,2,3\n");
	pieces.text = text_string(&text);
	pieces.length = text.length;
	csv_read_ahead(&reader);
	for (int i = 0; i < 2; i++) {
		csv_hash(&reader, &hashers[i]);
		/* those that were read before have none, or others, which do not count */
		for (int j = 0; j < 800000; j++) {
			struct csv_plain record;

			if (csv_peek(&reader, &record) && record.hash && record.count >= 4) {
				struct row_hash right = row_hash_of(&hashers[i], record.text,
								    record.start, record.ends);

				assert_memory_equal(record.hash, &right, sizeof(right));
				assert_ptr_equal(csv_hash_ahead(&reader, 0), record.hash);
				made[i]++;
			}
			assert_int_equal(csv_read(&reader, fields, &count, &e), 1);
		}
		assert_true(made[i] > 100000);
	}
	csv_done(&reader);
	text_done(&text);
}

/* Input that ends with an error after the rows before it; a reader that stops early waits for
 * nothing. */
static ssize_t failing_read(struct csv_input *input, char *bytes, size_t size, struct error *e)
{
	ssize_t got = pieces_read(input, bytes, size, e);

	return got ? got : error_set(e, EIO, EXIT_FAILED, "the disk broke");
}

static void errors_come_in_their_place(void **state)
{
	struct pieces pieces = {
		.input.read = failing_read, .text = "a,b\nc\nd", .length = 7, .piece = 3};
	struct csv_reader reader = {.fd = -1, .name = "text", .input = &pieces.input};
	struct csv_field fields[CSV_FIELDS_MAX];
	struct error e = {0};
	size_t count;

	csv_read_ahead(&reader);
	assert_int_equal(csv_read(&reader, fields, &count, &e), 1);
	assert_int_equal(csv_read(&reader, fields, &count, &e), 1);
	assert_string_equal(fields[0].text, "c");
	assert_int_equal(csv_read(&reader, fields, &count, &e), -EIO);
	assert_string_equal(e.line, "the disk broke");
	error_done(&e);
	csv_done(&reader);
	for (int round = 0; round < 20; round++) {
		char *many = malloc(4 << 20);

		memset(many, '\n', 4 << 20);
		pieces = (struct pieces){.input.read = pieces_read,
					 .text = many,
					 .length = 4 << 20,
					 .piece = SIZE_MAX};
		reader = (struct csv_reader){.fd = -1, .name = "text", .input = &pieces.input};
		csv_read_ahead(&reader);
		csv_done(&reader);
		free(many);
	}
}

static void nul_and_long_lines(void **state)
{
	static const char nul[] = "timestamp,comm\n" T0 ",a\0b\n";
	char *big = malloc(3 << 20);
	size_t scans, samples;
	struct source_status status;
	struct error e = {0};

	assert_int_equal(replay(nul, sizeof(nul) - 1, &scans, &samples, &status, &e), -EINVAL);
	assert_non_null(strstr(e.line, "line 2: a NUL byte"));
	memset(big, 'x', 3 << 20);
	assert_int_equal(replay(big, 3 << 20, &scans, &samples, &status, &e), -EINVAL);
	assert_non_null(strstr(e.line, "line 1: longer than 1 MB"));
	memset(big, ',', 1000);
	big[1000] = '\n';
	assert_int_equal(replay(big, 1001, &scans, &samples, &status, &e), -EINVAL);
	assert_non_null(strstr(e.line, "line 1: more columns"));
	free(big);
	error_done(&e);
}

static void long_line_read_on(struct csv_reader *reader)
{
	struct csv_field fields[CSV_FIELDS_MAX];
	struct error e = {0};
	int got, refused = 0;
	size_t count;

	assert_int_equal(csv_read(reader, fields, &count, &e), 1);
	for (int i = 0; (got = csv_read(reader, fields, &count, &e)) != 0; i++) {
		assert_true(i < 10);
		assert_true(got == 1 || got == -EINVAL);
		refused += got < 0;
		error_done(&e);
	}
	assert_true(refused > 0);
	assert_string_equal(fields[0].text, "c");
	csv_done(reader);
}

/* A reader that skips a line that is too long gets to the next ones. */
static void behind_a_long_line(void **state)
{
	const size_t length = 3 << 20;
	struct pieces pieces = {.input.read = pieces_read,
				.text = malloc(length),
				.length = length,
				.piece = SIZE_MAX};
	char *text = (char *)pieces.text;

	memset(text, 'x', length);
	memcpy(text, "a,b\n", 4);
	memcpy(text + length - 5, "\nc,d\n", 5);
	for (int ahead = 0; ahead < 2; ahead++) {
		struct csv_reader reader = {.fd = -1, .name = "text", .input = &pieces.input};

		pieces.at = 0;
		if (ahead)
			csv_read_ahead(&reader);
		long_line_read_on(&reader);
	}
	free(text);
}

/* Wherever a killed writer stopped, whole rows are read and the cut one is counted. */
static void cut_anywhere(void **state)
{
	static const char content[] = "timestamp,weight_us,tid,comm\n" T0 ",50000,1,\"a\"\"b\"\n" T0
				      ",50000,2,\"c\\x0ad\"\n" T1 ",50000,1,\"e\"\n";
	size_t header = strcspn(content, "\n") + 1;
	struct error e = {0};

	for (size_t length = header; length < sizeof(content); length++) {
		size_t scans, samples, whole = 0;
		struct source_status status;

		for (size_t i = header; i < length; i++)
			whole += content[i] == '\n';
		assert_int_equal(replay(content, length, &scans, &samples, &status, &e), 0);
		assert_int_equal(samples, whole);
		assert_int_equal(status.missed_count, content[length - 1] != '\n');
	}
}

static void fields_are_read(void **state)
{
	static const char content[] =
		"new_column,arg0,comm,timestamp,state,tid,user,filename,exe,arg1\r\n"
		"x,0xffffffffffffff9c,\"a\\x1b,\"\"\\\\\"," T0 ",D,-7,\"\",,\"line\nbreak\",\r\n";
	struct source *source;
	struct scan scan;
	struct error e = {0};

	assert_int_equal(content_open(content, sizeof(content) - 1, &all, ~0u, &source, &e), 0);
	assert_int_equal(source->next(source, &scan, &e), 1);
	assert_int_equal(scan.count, 1);
	assert_int_equal(scan.time_us, 1795207373000000);
	assert_int_equal(scan.samples[0].call.arg[0], -100);
	assert_int_equal(scan.samples[0].call.arg[1], ABSENT);
	assert_string_equal(scan.samples[0].thread.comm, "a\x1b,\"\\");
	assert_int_equal(scan.samples[0].now.state, STATE_DISK);
	assert_int_equal(scan.samples[0].thread.tid, -7);
	assert_string_equal(scan.samples[0].thread.user, "");
	assert_null(scan.samples[0].file.name);
	assert_string_equal(scan.samples[0].process.exe, "line\nbreak");
	assert_int_equal(source->next(source, &scan, &e), 0);
	assert_int_equal(source->next(source, &scan, &e), 0);
	source->close(source);
}

/* Equal texts are one group, whether they are in the row or follow from another column. */
static void derived_texts_are_one(void **state)
{
#define ID "0123456789abcdef"
#define GROUP "\"/docker/" ID ID ID ID "\""
	static const char content[] =
		"timestamp,comm,cgroup\n" T0 ",\"a1\"," GROUP "\n"
		"timestamp,commsum,cgroup,container\n" T1 ",\"a*\"," GROUP ",\"0123456789ab\"\n";
	const char *container, *commsum;
	struct source *source;
	struct scan scan;
	struct error e = {0};

	assert_int_equal(content_open(content, sizeof(content) - 1, &all,
				      NEED_CGROUP | NEED_CGROUP_NAMES | NEED_COMM | NEED_COMMSUM,
				      &source, &e),
			 0);
	assert_int_equal(source->next(source, &scan, &e), 1);
	container = scan.samples[0].cgroup.container;
	commsum = scan.samples[0].thread.commsum;
	assert_string_equal(container, "0123456789ab");
	assert_int_equal(source->next(source, &scan, &e), 1);
	assert_ptr_equal(scan.samples[0].cgroup.container, container);
	assert_ptr_equal(scan.samples[0].thread.commsum, commsum);
	source->close(source);
	names_clear();
}

/* A row that has all but its times in common with an earlier one is that row with other times, also
 * after another row, a bad one and another header line. */
static void rows_are_alike(void **state)
{
#define ROW(time, tid, comm, cpu_us) time "," tid ",\"" comm "\"," cpu_us "\n"
#define QUOTED(time) "\"" time "\""
	static const char content[] = "timestamp,tid,comm,cpu_us\n" ROW(QUOTED(T0), "1", "a", "10")
		ROW(QUOTED(T0), "2", "a", "20") ROW(QUOTED(T1), "1", "a", "30")
			ROW(QUOTED(T1), "2", "b", "40")
				ROW(QUOTED(T1), "1", "a", "") "timestamp,cpu_us,comm,tid\n" QUOTED(
					T9) ",1,\"a\",10\n" QUOTED(T9) ",50,\"a\",1\n";
	static const struct {
		int64_t tid;
		const char *comm;
		int64_t cpu_us;
	} expected[] = {{1, "a", 10},	  {2, "a", 20}, {1, "a", 30}, {2, "b", 40},
			{1, "a", ABSENT}, {10, "a", 1}, {1, "a", 50}};
	uint32_t alike[7];
	struct source *source;
	struct scan scan;
	struct error e = {0};
	size_t at = 0;

	assert_int_equal(content_open(content, sizeof(content) - 1, &all, ~0u, &source, &e), 0);
	while (source->next(source, &scan, &e) > 0) {
		for (size_t i = 0; i < scan.count; i++, at++) {
			const struct sample *sample = &scan.samples[i];

			assert_in_range(at, 0, 6);
			assert_int_equal(sample->thread.tid, expected[at].tid);
			assert_string_equal(sample->thread.comm, expected[at].comm);
			assert_int_equal(sample->sums.cpu_us, expected[at].cpu_us);
			alike[at] = sample->scan.alike;
		}
	}
	assert_int_equal(at, 7);
	/* the first row of a block is not looked for */
	assert_int_equal(alike[4], alike[2]);
	assert_int_not_equal(alike[2], 0);
	for (size_t i = 0; i < 7; i++)
		for (size_t j = 0; j < i; j++)
			if (alike[i] && alike[i] == alike[j])
				assert_true(expected[i].tid == expected[j].tid &&
					    !strcmp(expected[i].comm, expected[j].comm));
	source->close(source);
	names_clear();
}

static void rows_behind_bad_ones(void **state)
{
	size_t scans, samples;
	struct source_status status;
	struct error e = {0};
	static const char content[] = "timestamp,tid,comm,cpu_us\n" ROW(QUOTED(T0), "1", "a", "1")
		ROW(QUOTED(T0), "1", "a", "1") ROW(QUOTED(T0), "1", "a", "x");

	assert_int_equal(replay(content, sizeof(content) - 1, &scans, &samples, &status, &e),
			 -EINVAL);
	if (!strstr(e.line, "line 4: cpu_us: not a number"))
		fail_msg("%s", e.line);
	error_done(&e);
}

static void scans_and_silence(void **state)
{
	/* two rows, one row, then 7 scans in which no thread was seen; then another recording */
	static const char content[] = "timestamp,weight_us,tid\n" T0 ",50000,1\n" T0 ",50000,2\n" T1
				      ",50000,1\n" T9 ",50000,1\n"
				      "tid,timestamp\n1,2026-11-21T00:00:00.000000Z\n"
				      "1,2026-11-21T00:00:01.000000Z\n"
				      "1,2026-11-21T00:00:00.000000Z\n";
	static const struct {
		size_t count;
		int64_t weight_us, silent_us;
	} rows[] = {{2, 50000, 0}, {1, 50000, 0},   {1, 50000, 350000},
		    {1, 0, 0},	   {1, 1000000, 0}, {1, 1000000, 0}};
	struct source *source;
	struct scan scan;
	struct error e = {0};

	assert_int_equal(content_open(content, sizeof(content) - 1, &all, 0, &source, &e), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(source->next(source, &scan, &e), 1);
		assert_int_equal(scan.count, rows[i].count);
		assert_int_equal(scan.weight_us, rows[i].weight_us);
		assert_int_equal(scan.silent_us, rows[i].silent_us);
		assert_int_equal(scan.samples[0].scan.weight_us, rows[i].weight_us);
	}
	assert_int_equal(source->next(source, &scan, &e), 0);
	source->close(source);
}

/* Time that weights do not account for: the clock was set, or no thread was seen. */
static void clock_steps(void **state)
{
	static const char content[] =
		"timestamp,weight_us,tid,state,state_us\n"
		"2026-11-20T00:00:01.000000Z,50000,1,S,70000\n"
		"2026-11-20T00:00:01.050000Z,50000,1,S,120000\n"
		/* back; forward, and a thread goes on; forward, and none does */
		"2026-11-20T00:00:00.100000Z,50000,1,S,170000\n"
		"2026-11-20T00:01:00.150000Z,50000,2,S,50000\n"
		"2026-11-20T00:01:00.150000Z,50000,1,S,220001\n"
		"2026-11-20T00:01:03.200000Z,50000,1,S,70000\n"
		/* another recording, and one that may be a part of the same */
		"timestamp,weight_us,tid,state,state_us\n"
		"2026-11-20T00:00:01.000000Z,50000,1,S,70000\n"
		"timestamp,weight_us,tid,state,state_us\n"
		"2026-11-20T01:00:01.050000Z,50000,1,S,120000\n";
	static const struct {
		int64_t silent_us, clock_step_us;
	} rows[] = {{0, 0},	  {0, 0}, {0, -1000000},  {0, 60000000},
		    {3000000, 0}, {0, 0}, {0, 3600000000}};
	struct source *source;
	struct scan scan;
	struct error e = {0};

	assert_int_equal(content_open(content, sizeof(content) - 1, &all, 0, &source, &e), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(source->next(source, &scan, &e), 1);
		assert_int_equal(scan.weight_us, 50000);
		assert_int_equal(scan.silent_us, rows[i].silent_us);
		assert_int_equal(scan.clock_step_us, rows[i].clock_step_us);
	}
	assert_int_equal(source->next(source, &scan, &e), 0);
	source->close(source);
}

/* A scan whose samples the filter refuses is still a scan. */
static void filtered_scans_count(void **state)
{
	static const char content[] =
		"timestamp,weight_us,state\n" T0 ",50000,\"S\"\n" T1 ",50000,\"ON\"\n";
	struct filter active = {0};
	struct source *source;
	struct scan scan;
	struct error e = {0};

	assert_int_equal(content_open(content, sizeof(content) - 1, &active, 0, &source, &e), 0);
	assert_int_equal(source->next(source, &scan, &e), 1);
	assert_int_equal(scan.count, 0);
	assert_int_equal(source->next(source, &scan, &e), 1);
	assert_int_equal(scan.count, 1);
	source->close(source);
}

static void parts_are_read(void **state)
{
	static const struct {
		const char *typed, *path;
		int64_t from_us, until_us; /* relative to midnight before FIRST_US */
	} rows[] = {
		{"x", "x", ABSENT, ABSENT},
		{"a@b/x", "a@b/x", ABSENT, ABSENT},
		{"x@y", "x@y", ABSENT, ABSENT},
		{"-@..", "-", ABSENT, ABSENT},
		{"x@20:42..", "x", 74520000000, ABSENT},
		{"x@..20:42:53.5", "x", ABSENT, 74573500000},
		{"x@y@2026-11-20..2026-11-21Z", "x@y", 0, 86400000000},
		{"x@2026-11-20 00:01..00:02", "x", 60000000, 120000000},
	};
	static const char *const wrong[] = {
		"x@20:43..20:43",   "x@2026-11-21..2026-11-20",
		"x@1..2",	    "x@20:42...",
		"x@..20:42..20:43", "x@25:00..",
		"x@2026-13-01..",   "x@20:42",
	};
	struct recording_part part;
	int64_t first_us, day_us;
	char *path;

	time_iso_read("2026-11-20T00:00:00.000000Z", &day_us);
	time_iso_read("2026-11-20T19:00:00.000000Z", &first_us);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error e = {0};
		int64_t from_us = rows[i].from_us, until_us = rows[i].until_us;

		assert_int_equal(recording_part_read(rows[i].typed, &path, &part, &e), 0);
		recording_part_date(&part, first_us);
		recording_part_date(&part, first_us + 86400000000); /* the first call counts */
		assert_string_equal(path, rows[i].path);
		assert_int_equal(part.from_us, from_us == ABSENT ? ABSENT : day_us + from_us);
		assert_int_equal(part.until_us, until_us == ABSENT ? ABSENT : day_us + until_us);
		assert_int_equal(recording_part_whole(&part),
				 from_us == ABSENT && until_us == ABSENT);
		if (from_us != ABSENT) {
			assert_true(recording_part_has(&part, day_us + from_us));
			assert_false(recording_part_has(&part, day_us + from_us - 1));
		}
		if (until_us != ABSENT) {
			assert_true(recording_part_has(&part, day_us + until_us - 1));
			assert_false(recording_part_has(&part, day_us + until_us));
		}
		free(path);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct error e = {0};

		assert_int_equal(recording_part_read(wrong[i], &path, &part, &e), -EINVAL);
		assert_int_equal(e.exit_code, EXIT_USAGE);
		error_done(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_are_read),
		cmocka_unit_test(bad_recordings),
		cmocka_unit_test(records_of_all_kinds),
		cmocka_unit_test(hashes_ahead),
		cmocka_unit_test(errors_come_in_their_place),
		cmocka_unit_test(nul_and_long_lines),
		cmocka_unit_test(behind_a_long_line),

		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(fields_are_read),

		cmocka_unit_test(derived_texts_are_one),
		cmocka_unit_test(rows_are_alike),
		cmocka_unit_test(rows_behind_bad_ones),
		cmocka_unit_test(scans_and_silence),
		cmocka_unit_test(clock_steps),
		cmocka_unit_test(filtered_scans_count),

	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	names_clear();
	return failed;
}
