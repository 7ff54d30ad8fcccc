/* SPDX-License-Identifier: GPL-2.0-or-later */
/* recording/: recordings are read again, whole or cut, and limits hold */
#include "unit.h"
#include "recording_scene.h"
#include "base/clock.h"
#include "recording/frame.h"
#include "recording/part_name.h"
#include "recording/recorder.h"
#include "recording/recorder_part.h"
#include "recording/recording.h"
#include "recording/scan_rows.h"
#include "recording/retention.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* --- files of frames */

/* of the user who runs the test, with any umask */
static const struct file_rights rights = {(gid_t)-1, 0640};

static void frames_write(struct scene *scene, const char *name, int from, int until)
{
	struct frame_file file = {0};
	struct text rows = {0};

	assert_int_equal(
		frame_file_open(&file, scene->directory, name, RECORD_SAMPLES, "a,b\n", &rights),
		0);
	for (int i = from; i < until; i++) {
		text_clear(&rows);
		text_add_format(&rows, "%d,x\n", i);
		assert_int_equal(frame_file_pack(&file, i, i, &rows), 0);
		assert_int_equal(frame_file_put(&file), 0);
	}
	frame_file_close(&file);
	text_done(&rows);
}

static const char *frames_read(struct scene *scene, const char *name, int64_t from, int64_t until,
			       struct frame_losses *losses)
{
	int fd = openat(scene->directory, name, O_RDONLY);
	struct frame_reader *reader = frame_reader_new(RECORD_SAMPLES, from, until, losses);
	struct error e = {0};
	char bytes[7];
	ssize_t got;

	text_clear(&scene->text);
	frame_reader_begin(reader, fd, name);
	while ((got = frame_reader_read(reader, bytes, sizeof(bytes), &e)) > 0)
		text_add(&scene->text, bytes, (size_t)got);
	assert_int_equal(got, 0);
	frame_reader_free(reader);
	close(fd);
	return text_string(&scene->text);
}

static off_t file_size(struct scene *scene, const char *name)
{
	struct stat there;

	assert_int_equal(fstatat(scene->directory, name, &there, AT_SYMLINK_NOFOLLOW), 0);
	return there.st_size;
}

static void test_frames_are_read_again(void **state)
{
	struct frame_losses losses = {0};

	frames_write(*state, "f", 0, 4);
	assert_string_equal(frames_read(*state, "f", ABSENT, ABSENT, &losses),
			    "a,b\n0,x\n1,x\n2,x\n3,x\n");
	assert_string_equal(frames_read(*state, "f", 1, 3, &losses), "a,b\n1,x\n2,x\n");
	assert_string_equal(frames_read(*state, "f", 9, ABSENT, &losses), "a,b\n");
	assert_int_equal(losses.damaged + losses.newer + losses.cut + losses.headless, 0);
}

/* A file cut off anywhere: whole frames before the cut are read, and the next start goes on after
 * them. */
static void test_cut_anywhere(void **state)
{
	struct scene *scene = *state;
	off_t size, three;

	frames_write(scene, "three", 0, 3);
	frames_write(scene, "four", 0, 4);
	three = file_size(scene, "three");
	size = file_size(scene, "four");
	for (off_t at = three; at < size; at++) {
		int fd = openat(scene->directory, "four", O_RDWR);
		struct frame_losses losses = {0};

		assert_int_equal(ftruncate(fd, at), 0);
		assert_string_equal(frames_read(scene, "four", ABSENT, ABSENT, &losses),
				    "a,b\n0,x\n1,x\n2,x\n");
		assert_int_equal(losses.cut, at > three);
		assert_int_equal(losses.damaged, 0);
		close(fd);
		frames_write(scene, "four", 0, 0);
		assert_int_equal(file_size(scene, "four"), three);
		unlinkat(scene->directory, "four", 0);
		frames_write(scene, "four", 0, 4);
	}
}

/* After a power cut a file may have its length and not its bytes. */
static void test_zeroed_end_is_cut_off(void **state)
{
	struct scene *scene = *state;
	struct frame_losses losses = {0};
	char zeros[40] = {0};
	off_t size;
	int fd;

	frames_write(scene, "f", 0, 3);
	size = file_size(scene, "f");
	fd = openat(scene->directory, "f", O_RDWR);
	assert_int_equal(pwrite(fd, zeros, 10, size - 10), 10);
	assert_int_equal(pwrite(fd, zeros, sizeof(zeros), size), sizeof(zeros));
	close(fd);
	assert_string_equal(frames_read(scene, "f", ABSENT, ABSENT, &losses), "a,b\n0,x\n1,x\n");
	frames_write(scene, "f", 7, 8);
	assert_string_equal(frames_read(scene, "f", ABSENT, ABSENT, &losses),
			    "a,b\n0,x\n1,x\n7,x\n");
	/* a frame that is there twice is returned once */
	frames_write(scene, "f", 0, 1);
	assert_string_equal(frames_read(scene, "f", ABSENT, ABSENT, &losses),
			    "a,b\n0,x\n1,x\n7,x\n");
	assert_int_equal(losses.twice, 1);
}

/* One wrong byte costs at most one frame, and is counted. */
static void test_damage_anywhere(void **state)
{
	struct scene *scene = *state;
	unsigned char was, is;
	off_t size;
	int fd;

	frames_write(scene, "f", 0, 3);
	size = file_size(scene, "f");
	fd = openat(scene->directory, "f", O_RDWR);
	for (off_t at = 0; at < size; at++) {
		struct frame_losses losses = {0};
		const char *rows;

		assert_int_equal(pread(fd, &was, 1, at), 1);
		is = was ^ 0x55;
		assert_int_equal(pwrite(fd, &is, 1, at), 1);
		rows = frames_read(scene, "f", ABSENT, ABSENT, &losses);
		if (strcmp(rows, "a,b\n0,x\n1,x\n2,x\n")) {
			assert_true(losses.damaged + losses.newer + losses.cut + losses.headless ||
				    at < 4);
			/* apart from the header line at most a frame is lost */
			if (!strncmp(rows, "a,b\n", 4) && losses.damaged)
				assert_true(scene->text.length >= strlen("a,b\n0,x\n1,x\n"));
		}
		assert_int_equal(pwrite(fd, &was, 1, at), 1);
	}
	close(fd);
}

/* One wrong bit anywhere: a start cuts nothing off, whether it goes on in the file or not. */
static void test_nothing_is_cut_off_behind_damage(void **state)
{
	struct scene *scene = *state;
	unsigned char byte;
	off_t size;
	int fd;

	frames_write(scene, "f", 0, 4);
	size = file_size(scene, "f");
	fd = openat(scene->directory, "f", O_RDWR);
	for (off_t at = 0; at < size; at++) {
		struct frame_file file = {0};

		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 4;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		if (frame_file_open(&file, scene->directory, "f", RECORD_SAMPLES, "a,b\n", &rights))
			assert_int_equal(file.fd, 0);
		frame_file_close(&file);
		assert_int_equal(file_size(scene, "f"), size);
		byte ^= 4;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	/* a gap that a power cut left, before whole frames */
	assert_int_equal(pwrite(fd, "\0\0\0\0\0\0\0\0", 8, size / 2), 8);
	assert_int_equal(pwrite(fd, "\0\0\0\0\0\0\0\0", 8, size), 8);
	assert_int_equal(frame_file_open(&(struct frame_file){0}, scene->directory, "f",
					 RECORD_SAMPLES, "a,b\n", &rights),
			 -EEXIST);
	assert_int_equal(file_size(scene, "f"), size + 8);
	close(fd);
}

/* A frame that unpacks to much is returned whole or not at all, as others are. */
static void test_large_frame(void **state)
{
	struct scene *scene = *state;
	struct frame_losses losses = {0};
	struct frame_file file = {0};
	struct text rows = {0}, all = {0};
	off_t end;
	int fd;

	frames_write(scene, "f", 0, 2);
	assert_int_equal(
		frame_file_open(&file, scene->directory, "f", RECORD_SAMPLES, "a,b\n", &rights), 0);
	for (int i = 0; rows.length < 20u << 20; i++)
		text_add_format(&rows, "%d,%01000d\n", i, i * 77);
	assert_int_equal(frame_file_pack(&file, 5, 5, &rows), 0);
	end = file.end;
	assert_int_equal(frame_file_put(&file), 0);
	frame_file_close(&file);
	frames_write(scene, "f", 2, 3);
	text_add_format(&all, "a,b\n0,x\n1,x\n%s2,x\n", text_string(&rows));
	assert_string_equal(frames_read(scene, "f", ABSENT, ABSENT, &losses), text_string(&all));
	assert_int_equal(losses.frames, 4);
	fd = openat(scene->directory, "f", O_RDWR);
	assert_int_equal(pwrite(fd, "?", 1, (end + file_size(scene, "f")) / 2), 1);
	close(fd);
	assert_string_equal(frames_read(scene, "f", ABSENT, ABSENT, &losses),
			    "a,b\n0,x\n1,x\n2,x\n");
	assert_int_equal(losses.damaged, 1);
	text_done(&rows);
	text_done(&all);
}

static void test_other_header_line_is_left_alone(void **state)
{
	struct scene *scene = *state;
	struct frame_file file = {0};
	off_t size;

	frames_write(scene, "f", 0, 2);
	size = file_size(scene, "f");
	assert_int_equal(
		frame_file_open(&file, scene->directory, "f", RECORD_SAMPLES, "a,c\n", &rights),
		-EEXIST);
	assert_int_equal(
		frame_file_open(&file, scene->directory, "f", RECORD_SCANS, "a,b\n", &rights),
		-EEXIST);
	assert_int_equal(file_size(scene, "f"), size);
	assert_int_equal(symlinkat("f", scene->directory, "link"), 0);
	assert_int_equal(
		frame_file_open(&file, scene->directory, "link", RECORD_SAMPLES, "a,b\n", &rights),
		-EEXIST);
	assert_int_equal(linkat(scene->directory, "f", scene->directory, "hard", 0), 0);
	assert_int_equal(
		frame_file_open(&file, scene->directory, "hard", RECORD_SAMPLES, "a,b\n", &rights),
		-EEXIST);
}

static void test_part_names(void **state)
{
	struct part_name part = {.hour_us = START_US, .number = 7, .kind = RECORD_SCANS}, read;
	char name[PART_NAME_SIZE];

	part_host("db_1.example.org", part.host);
	part_name_write(&part, name);
	assert_string_equal(name, "db-1.example.org_20251120T15Z-007.scans.csv.zst");
	assert_true(part_name_read(name, &read));
	assert_int_equal(part_name_compare(&part, &read), 0);
	part.number = 12345;
	part_name_write(&part, name);
	assert_true(part_name_read(name, &read));
	assert_false(part_name_read("db_20251120T15Z-7.scans.csv.zst", &read));
	assert_false(part_name_read("db_20251120T25Z-007.scans.csv.zst", &read));
	assert_false(part_name_read("db_20251120T15Z-007.other.csv.zst", &read));
	assert_false(part_name_read("_20251120T15Z-007.scans.csv.zst", &read));
	assert_false(part_name_read("db_20251120T15Z-007.scans.csv.zst.old", &read));
	assert_int_equal(part_hour(-1), -PART_HOUR_US);
}

/* --- the recorder, and replay */

static struct recorder *recorder_begin(struct scene *scene, const struct retention *retention)
{
	struct recorder_options options = {
		.path = scene->path,
		.host = "unit",
		.flush_us = 20000,
		.retention = retention ? *retention : (struct retention){0},
		.headers = {[RECORD_SAMPLES] = HEADER, [RECORD_SCANS] = SCAN_ROWS_HEADER},
	};
	struct recorder *recorder;
	struct error e = {0};

	assert_int_equal(recorder_open(&options, &recorder, &e), 0);
	return recorder;
}

static void scan_record(struct recorder *recorder, int64_t time_us, int samples)
{
	struct scan_row row = {.time_us = time_us, .weight_us = SECOND_US, .samples = samples};
	char time[CLOCK_ISO_SIZE];

	clock_format_iso(time_us, time);
	for (int i = 0; i < samples; i++)
		text_add_format(recorder_rows(recorder, RECORD_SAMPLES),
				"\"%s\",1000000,%d,\"ON\",\"x\"\n", time, 100 + i);
	row.missing = (int64_t)recorder_missing(recorder, RECORD_SCANS);
	scan_row_add(recorder_rows(recorder, RECORD_SCANS), &row);
	recorder_put(recorder, time_us);
}

struct replayed {
	int scans, samples;
	int64_t weight_us, first_us, last_us;
	struct source_status status;
};

static const struct filter all = {.all_states = true};

static struct replayed replay(struct scene *scene, int64_t from_us, int64_t until_us)
{
	const char *const paths[] = {scene->path, NULL};
	const struct recording_part part = {.from_us = from_us, .until_us = until_us};
	struct replayed replayed = {0};
	struct source *source;
	struct error e = {0};
	struct scan scan;
	int more;

	assert_int_equal(recording_open(paths, &part, &all, 0, &source, &e), 0);
	while ((more = source->next(source, &scan, &e)) > 0) {
		replayed.first_us = replayed.scans ? replayed.first_us : scan.time_us;
		replayed.last_us = scan.time_us;
		replayed.scans++;
		replayed.samples += (int)scan.count;
		replayed.weight_us += scan.weight_us;
		assert_int_equal(scan.silent_us, 0);
	}
	assert_int_equal(more, 0);
	source->describe(source, &replayed.status);
	source->close(source);
	return replayed;
}

static uint64_t missed(const struct replayed *replayed, const char *what)
{
	for (size_t i = 0; i < replayed->status.missed_count; i++)
		if (strstr(replayed->status.missed[i].what, what))
			return replayed->status.missed[i].count;
	return 0;
}

/* Scans that saw no threads count, in all hours, and a second run goes on in the same files. */
static void test_recorded_is_replayed(void **state)
{
	struct scene *scene = *state;
	struct replayed replayed;
	struct part_list list = {0};
	struct error e = {0};

	for (int run = 0; run < 2; run++) {
		struct recorder *recorder = recorder_begin(scene, NULL);

		for (int i = 0; i < 50; i++)
			scan_record(recorder, START_US + 100 * SECOND_US * (run * 50 + i), i % 3);
		assert_int_equal(recorder_close(recorder, &e), 0);
	}
	replayed = replay(scene, ABSENT, ABSENT);
	assert_int_equal(replayed.scans, 100);
	assert_int_equal(replayed.samples, 2 * 49);
	assert_int_equal(replayed.weight_us, 100 * SECOND_US);
	replayed = replay(scene, START_US + 3000 * SECOND_US, START_US + 4000 * SECOND_US);
	assert_int_equal(replayed.scans, 10);
	assert_int_equal(replayed.first_us, START_US + 3000 * SECOND_US);
	assert_int_equal(replayed.last_us, START_US + 3900 * SECOND_US);
	/* 10000 s are three hours, of two kinds */
	assert_int_equal(part_list_read(&list, scene->directory), 0);
	assert_int_equal(list.count, 6);
	part_list_done(&list);
}

static uint64_t bytes_of(struct scene *scene)
{
	struct part_list list = {0};
	uint64_t bytes = 0;

	assert_int_equal(part_list_read(&list, scene->directory), 0);
	for (size_t i = 0; i < list.count; i++)
		bytes += list.files[i].bytes;
	part_list_done(&list);
	return bytes;
}

static void finding_count(void *to, const struct finding_entry *entry)
{
	int *of_minute = to;

	assert_string_equal(entry->finding, "lock");
	of_minute[(entry->begin_us - START_US) / (60 * SECOND_US)]++;
}

/* Findings are recorded after the time that they are about, and found for it. */
static void test_findings_are_read(void **state)
{
	struct scene *scene = *state;
	const char *const paths[] = {scene->path, NULL};
	struct recorder_options options = {
		.path = scene->path, .host = "box", .flush_us = SECOND_US / 10};
	struct recording_part part = {.from_us = START_US + 120 * SECOND_US,
				      .until_us = START_US + 180 * SECOND_US};
	int of_minute[90] = {0};
	struct recorder *recorder;
	struct error e = {0};

	options.headers[RECORD_SAMPLES] = HEADER;
	options.headers[RECORD_SCANS] = SCAN_ROWS_HEADER;
	options.headers[RECORD_FINDINGS] = FINDING_ROWS_HEADER;
	assert_int_equal(recorder_open(&options, &recorder, &e), 0);
	for (int minute = 0; minute < 90; minute++) {
		int64_t end_us = START_US + (minute + 1) * 60 * SECOND_US;

		finding_row_add(recorder_rows(recorder, RECORD_FINDINGS),
				&(struct finding_entry){.begin_us = end_us - 60 * SECOND_US,
							.end_us = end_us,
							.rank = 1,
							.finding = "lock",
							.text = "3.0 x wait"});
		scan_record(recorder, end_us, 1);
		usleep(minute % 10 ? 0 : 150000); /* a frame ends */
	}
	assert_int_equal(recorder_close(recorder, &e), 0);
	assert_int_equal(recording_findings(paths, &part, finding_count, of_minute, &e), 0);
	assert_int_equal(of_minute[2], 1);
	assert_int_equal(of_minute[80], 0); /* of another hour */
	part.from_us = part.until_us = ABSENT;
	assert_int_equal(recording_findings(paths, &part, finding_count, of_minute, &e), 0);
	assert_int_equal(of_minute[0], 1);
	assert_int_equal(of_minute[2], 2);
	assert_int_equal(of_minute[89], 1);
}

/* 100 scans in 9900 s, where each part begins with its first scan. */
static void test_rate_of_a_day(void **state)
{
	const struct retention retention = {.keep_us = 47 * PART_HOUR_US, .keep_bytes = 1 << 30};
	struct scene *scene = *state;
	struct recorder *recorder = recorder_begin(scene, NULL);
	struct error e = {0};
	double recorded_h = 9900 / 3600.0, day;
	const char *reported;

	assert_int_equal(recording_rate_describe(scene->path, &retention, &scene->text, &e), 0);
	assert_non_null(
		strstr(text_string(&scene->text), "0 files, 0 bytes\n  too little was recorded"));
	for (int i = 0; i < 100; i++)
		scan_record(recorder, START_US + 100 * SECOND_US * i, 3);
	assert_int_equal(recorder_close(recorder, &e), 0);
	text_clear(&scene->text);
	assert_int_equal(recording_rate_describe(scene->path, &retention, &scene->text, &e), 0);
	reported = strstr(text_string(&scene->text), "a day takes ");
	assert_non_null(reported);
	day = strtod(reported + strlen("a day takes "), NULL) *
	      (strstr(reported, " KB (") ? 1024 : 1);
	assert_true(day > 0.95 * (double)bytes_of(scene) / recorded_h * 24);
	assert_true(day < 1.2 * (double)bytes_of(scene) / recorded_h * 24);
	assert_non_null(strstr(reported, "in the last 2."));
	assert_non_null(strstr(reported, " hours that were recorded)"));
	assert_non_null(strstr(reported, "--keep: "));
	assert_non_null(strstr(reported, "free space: "));
	text_clear(&scene->text); /* a directory that does not exist yet */
	assert_int_equal(recording_rate_describe("/nowhere", &retention, &scene->text, &e), 0);
	assert_non_null(strstr(text_string(&scene->text), "0 files, 0 bytes\n"));
	assert_int_equal(recording_rate_describe("/proc/version", &retention, &scene->text, &e),
			 -ENOTDIR);
	error_done(&e);
}

static void test_clock_stepped_back(void **state)
{
	struct scene *scene = *state;
	struct recorder *recorder = recorder_begin(scene, NULL);
	struct replayed replayed;
	struct error e = {0};

	for (int i = 0; i < 30; i++)
		scan_record(recorder, START_US + (i < 20 ? i : i - 3610) * SECOND_US, i % 2);
	assert_int_equal(recorder_close(recorder, &e), 0);
	replayed = replay(scene, ABSENT, ABSENT);
	assert_int_equal(replayed.scans, 30);
	assert_int_equal(replayed.samples, 15);
}

/* Another process is refused with a message that has the pid of the first; its own children keep no
 * lock. */
static void test_one_writer(void **state)
{
	struct scene *scene = *state;
	struct recorder_options options = {
		.path = scene->path,
		.host = "unit",
		.flush_us = SECOND_US,
		.headers = {[RECORD_SAMPLES] = HEADER, [RECORD_SCANS] = SCAN_ROWS_HEADER},
	};
	struct recorder *recorder = recorder_begin(scene, NULL), *second;
	struct error e = {0};
	char words[80];
	int status;
	pid_t child = fork();

	if (!child) {
		snprintf(words, sizeof(words), "another tsnap with pid %d is already recording",
			 getppid());
		_exit(recorder_open(&options, &second, &e) != -EBUSY || !strstr(e.line, words));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(recorder_close(recorder, &e), 0);
	assert_int_equal(recorder_open(&options, &recorder, &e), 0);
	assert_int_equal(recorder_close(recorder, &e), 0);
}

/* Fills a part with rows of ten scans, and a scan a second. */
static void part_fill(struct recorder_part *part, int from)
{
	struct text rows = {0};

	for (int i = from; i < from + 10; i++) {
		struct scan_row row = {
			.time_us = START_US + i * SECOND_US, .weight_us = SECOND_US, .samples = 40};
		char time[CLOCK_ISO_SIZE];

		text_clear(&rows);
		scan_row_add(&rows, &row);
		recorder_part_add(part, RECORD_SCANS, row.time_us, &rows);
		clock_format_iso(row.time_us, time);
		text_clear(&rows);
		for (int j = 0; j < 40; j++)
			text_add_format(&rows, "\"%s\",1000000,%d,\"ON\",\"x\"\n", time, 100 + j);
		recorder_part_add(part, RECORD_SAMPLES, row.time_us, &rows);
	}
	text_done(&rows);
}

/* Limit on bytes: also within one hour, and the newest parts are left. */
static void test_keep_bytes(void **state)
{
	struct scene *scene = *state;
	struct recorder_part part = {
		.directory = scene->directory,
		.rights = {getegid(), 0640},
		.retention = {.keep_bytes = 6000},
		.name = {.host = "unit"},
	};
	struct replayed replayed;

	part.headers[RECORD_SAMPLES] = strdup(HEADER "\n");
	part.headers[RECORD_SCANS] = strdup(SCAN_ROWS_HEADER "\n");
	assert_int_equal(recorder_part_begin(&part, START_US), 0);
	for (int i = 0; i < 400; i += 10) {
		part_fill(&part, i);
		assert_int_equal(recorder_part_flush(&part, START_US), 0);
		assert_true(bytes_of(scene) <= 6000);
		assert_true(i < 200 || bytes_of(scene) > 3000);
	}
	recorder_part_done(&part);
	replayed = replay(scene, ABSENT, ABSENT);
	assert_true(replayed.scans > 50 && replayed.scans < 390);
	assert_int_equal(replayed.samples, replayed.scans * 40);
	assert_int_equal(replayed.last_us, START_US + 399 * SECOND_US);
}

/* Limit on time: parts that ended longer ago are removed; the files of another host, and others,
 * are kept. */
static void test_keep_time(void **state)
{
	const struct retention retention = {.keep_us = 2 * PART_HOUR_US};
	struct scene *scene = *state;
	struct recorder *recorder = recorder_begin(scene, NULL);
	struct part_name now = {.hour_us = START_US + 9 * PART_HOUR_US, .number = 1};
	struct retention_log log = {0};
	struct part_list list = {0};
	struct error e = {0};

	for (int i = 0; i < 10; i++)
		scan_record(recorder, START_US + i * PART_HOUR_US, 1);
	assert_int_equal(recorder_close(recorder, &e), 0);
	strcpy(now.host, "other");
	assert_int_equal(retention_apply(&retention, scene->directory, &now,
					 now.hour_us + PART_HOUR_US / 2, 0, &log),
			 0);
	assert_int_equal(part_list_read(&list, scene->directory), 0);
	assert_int_equal(list.count, 20);
	part_list_done(&list);
	strcpy(now.host, "unit");
	assert_int_equal(retention_apply(&retention, scene->directory, &now,
					 now.hour_us + PART_HOUR_US / 2, 0, &log),
			 0);
	assert_int_equal(part_list_read(&list, scene->directory), 0);
	/* the hour being written, and two before it */
	assert_int_equal(list.count, 6);
	assert_int_equal(list.files[0].name.hour_us, START_US + 7 * PART_HOUR_US);
	part_list_done(&list);
	assert_string_equal(text_string(&log.words),
			    "removed (--keep): unit_20251120T15Z-001 to unit_20251120T21Z-001, "
			    "files: 14\n");
	text_done(&log.words);
}

static void test_missing_scans_are_told(void **state)
{
	struct scene *scene = *state;
	struct recorder_options options = {
		.path = scene->path,
		.host = "unit",
		.flush_us = 20000,
		.queue_bytes = 4000,
		.retention = {.keep_free_tenths = 999}, /* free space that no disk has */
		.headers = {[RECORD_SAMPLES] = HEADER, [RECORD_SCANS] = SCAN_ROWS_HEADER},
	};
	struct recorder *recorder;
	struct error e = {0};
	struct text words = {0};

	assert_int_equal(recorder_open(&options, &recorder, &e), 0);
	for (int i = 0; i < 200; i++) {
		scan_record(recorder, START_US + i * SECOND_US, 10);
		usleep(1000);
	}
	/* done by a thread of its own, which may have to wait for a CPU */
	for (int i = 0; i < 10000 && !words.length; i++) {
		recorder_words(recorder, &words);
		usleep(1000);
	}
	assert_non_null(strstr(text_string(&words), "sampling goes on"));
	assert_ptr_equal(strchr(text_string(&words), '\n'), words.bytes + words.length - 1);
	assert_true(recorder_missing(recorder, RECORD_SCANS) > 0);
	assert_int_equal(recorder_close(recorder, &e), -ENOSPC);
	assert_non_null(strstr(e.line, "not recorded: 200"));
	error_done(&e);
	text_done(&words);
}

/* A scan whose samples are lost is counted, and does not count as one that saw no threads. */
static void test_lost_samples_are_counted(void **state)
{
	struct scene *scene = *state;
	struct recorder *recorder = recorder_begin(scene, NULL);
	struct part_list list = {0};
	struct replayed replayed;
	struct error e = {0};
	char name[PART_NAME_SIZE];
	int fd;

	for (int i = 0; i < 5; i++)
		scan_record(recorder, START_US + i * SECOND_US, i == 2 ? 0 : 3);
	assert_int_equal(recorder_close(recorder, &e), 0);
	assert_int_equal(part_list_read(&list, scene->directory), 0);
	part_name_write(&list.files[0].name, name);
	fd = openat(scene->directory, name, O_RDWR);
	assert_int_equal(ftruncate(fd, (off_t)list.files[0].bytes - 1), 0);
	close(fd);
	part_list_done(&list);
	replayed = replay(scene, ABSENT, ABSENT);
	assert_int_equal(replayed.scans, 1);
	assert_int_equal(missed(&replayed, "samples are lost"), 4);
	assert_int_equal(missed(&replayed, "within a frame"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_frames_are_read_again),
		SCENE_TEST(test_cut_anywhere),
		SCENE_TEST(test_zeroed_end_is_cut_off),
		SCENE_TEST(test_damage_anywhere),
		SCENE_TEST(test_nothing_is_cut_off_behind_damage),
		SCENE_TEST(test_large_frame),
		SCENE_TEST(test_other_header_line_is_left_alone),
		cmocka_unit_test(test_part_names),
		SCENE_TEST(test_recorded_is_replayed),
		SCENE_TEST(test_findings_are_read),
		SCENE_TEST(test_rate_of_a_day),
		SCENE_TEST(test_clock_stepped_back),
		SCENE_TEST(test_one_writer),
		SCENE_TEST(test_keep_bytes),
		SCENE_TEST(test_keep_time),
		SCENE_TEST(test_missing_scans_are_told),
		SCENE_TEST(test_lost_samples_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
