/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/recording.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/text.h"
#include "sample/sample.h"
#include "report/value.h"
#include "base/output.h"
#include "base/signals.h"
#include "recording/frame.h"
#include "recording/part_name.h"
#include "recording/recording_host.h"
#include "recording/sample_file.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FINDINGS_LATE_US (120 * US_PER_SECOND)
#define EVENTS_LATE_US (10 * US_PER_SECOND)
#define COPY_BYTES (1u << 20)

/* --- files, in the order in which they are read */

struct recording_file {
	char *path;		/* "-": standard input */
	bool is_part;		/* name is set: the file's name is one of tsnap's */
	struct part_name name;	/* kind, host and time, as in the file's name */
	bool streamed;		/* the file is a pipe, which can be read once */
	uint64_t device, inode; /* of a file that was named; 0: of a directory's */
};

/* A zeroed struct is empty. */
struct recording_files {
	struct recording_file *files;
	size_t count, capacity;
	size_t passed;	/* files that were left out because of their times */
	size_t strange; /* see struct part_list */
	size_t twice;	/* files that were named before */
};

static bool name_wanted(const struct part_name *name, const struct recording_part *part)
{
	return (!part->host || !strcmp(part->host, name->host)) &&
	       (part->from_us == ABSENT || part->from_of_day ||
		name->hour_us + PART_HOUR_US > part->from_us) &&
	       (part->until_us == ABSENT || part->until_of_day || name->hour_us < part->until_us);
}

static void file_add(struct recording_files *files, const struct recording_file *file)
{
	files->files = memory_grow(files->files, &files->capacity, files->count + 1,
				   sizeof(*files->files));
	files->files[files->count++] = *file;
}

static void part_add(struct recording_files *files, const char *directory,
		     const struct part_name *name)
{
	char file_name[PART_NAME_SIZE];
	struct text path = {0};

	part_name_write(name, file_name);
	text_add_format(&path, "%s/%s", directory, file_name);
	file_add(files, &(struct recording_file){
				.path = text_take(&path), .is_part = true, .name = *name});
}

static int directory_add(struct recording_files *files, const char *path,
			 const struct recording_part *part, struct error *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;
	struct part_list list = {0};

	err = fd < 0 ? -errno : part_list_read(&list, fd);
	if (fd >= 0)
		close(fd);
	for (size_t i = 0; !err && i < list.count; i++) {
		if (name_wanted(&list.files[i].name, part))
			part_add(files, path, &list.files[i].name);
		else
			files->passed++;
	}
	files->strange += list.strange;
	part_list_done(&list);
	return err ? error_set(e, -err, EXIT_FAILED, "%s: %s", path, strerror(-err)) : 0;
}

static bool is_there(const struct recording_files *files, const struct recording_file *file)
{
	for (size_t i = 0; i < files->count; i++)
		if (files->files[i].inode == file->inode && files->files[i].device == file->device)
			return true;
	return false;
}

/* Adds a directory's files, or a file. Files whose name has another time than the part are left
 * out. 0, or -errno with e. */
static int recording_files_add(struct recording_files *files, const char *path,
			       const struct recording_part *part, struct error *e)
{
	const char *base = strrchr(path, '/');
	struct recording_file file = {0};
	struct stat there;

	if (!strcmp(path, "-")) {
		file.streamed = true;
	} else {
		if (stat(path, &there))
			return error_set(e, errno, EXIT_FAILED, "%s: %s", path, strerror(errno));
		if (S_ISDIR(there.st_mode))
			return directory_add(files, path, part, e);
		file.streamed = !S_ISREG(there.st_mode);
		file.device = there.st_dev;
		file.inode = there.st_ino;
		if (!file.streamed && is_there(files, &file)) {
			files->twice++;
			return 0;
		}
		file.is_part = part_name_read(base ? base + 1 : path, &file.name);
	}
	if (file.is_part && !name_wanted(&file.name, part)) {
		files->passed++;
		return 0;
	}
	file.path = memory_text(path, strlen(path));
	file_add(files, &file);
	return 0;
}

static int file_compare(const void *a, const void *b)
{
	const struct recording_file *one = a, *other = b;

	return part_name_compare(&one->name, &other->name);
}

/* Sorts the files. 0, or -EINVAL with e: they are of more than one host, or there are none. */
static int recording_files_end(struct recording_files *files, const char *name, struct error *e)
{
	bool parts = files->count;

	if (!files->count && files->passed)
		return error_set(e, ENODATA, EXIT_FAILED,
				 "%s: nothing was recorded in that time (%zu files are of other "
				 "hours)",
				 name, files->passed);
	if (!files->count)
		return error_set(e, ENODATA, EXIT_FAILED,
				 "%s: it contains no files that tsnap -o wrote%s", name,
				 files->strange ? "; links are not followed" : "");
	for (size_t i = 0; i < files->count; i++) {
		const struct recording_file *file = &files->files[i], *first = &files->files[0];

		parts &= file->is_part;
		if (parts && strcmp(file->name.host, first->name.host))
			return error_set(e, EINVAL, EXIT_USAGE,
					 "%s: recordings of more than one host, %s and %s: name "
					 "the files of one, such as --replay %s/%s_*, or join "
					 "them with --chains",
					 name, first->name.host, file->name.host, name,
					 first->name.host);
	}
	/* other files stay in the order in which they were typed */
	if (parts)
		qsort(files->files, files->count, sizeof(*files->files), file_compare);
	return 0;
}

/* True if there may be rows of that kind in the file. */
static bool recording_file_has(const struct recording_file *file, enum record_kind kind)
{
	return file->is_part ? file->name.kind == kind : kind == RECORD_SAMPLES || !file->streamed;
}

/* Number of files of samples in directories that have no file of their scans beside them. */
static size_t recording_files_scanless(const struct recording_files *files,
				       enum record_kind samples, enum record_kind scans)
{
	size_t lacking = 0;

	for (size_t i = 0; i < files->count; i++) {
		struct part_name name = files->files[i].name;
		size_t next = i + 1;

		if (!files->files[i].is_part || files->files[i].inode || name.kind != samples)
			continue;
		/* those of a directory are in order: scans come soon after their samples */
		name.kind = scans;
		while (next < files->count &&
		       part_name_compare(&files->files[next].name, &name) < 0)
			next++;
		lacking += next == files->count ||
			   part_name_compare(&files->files[next].name, &name) != 0;
	}
	return lacking;
}

static void recording_files_done(struct recording_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->files[i].path);
	free(files->files);
	*files = (struct recording_files){0};
}

/* --- two tiers as one source */

/* A tier, with the scan that was read ahead. */
struct tier {
	struct source *source;
	struct scan scan;
	bool ahead, ended; /* the scan was read ahead; there are no more */
};

struct tiers {
	struct source source; /* first member, so that a source is a tiers */
	struct tier fine, archive;
	int64_t fine_us; /* weight of the fine scans since the last scan of the archive */
};

/* Reads a scan ahead, if there is none yet. 0, or below 0 as next() of a source. */
static int tier_peek(struct tier *tier, bool keeps_refused, struct error *e)
{
	int more;

	if (tier->ahead || tier->ended)
		return 0;
	tier->source->keeps_refused = keeps_refused;
	more = tier->source->next(tier->source, &tier->scan, e);
	tier->ahead = more > 0;
	tier->ended = !more;
	return more < 0 ? more : 0;
}

static int tiers_next(struct source *source, struct scan *scan, struct error *e)
{
	struct tiers *tiers = (struct tiers *)source;
	struct tier *fine = &tiers->fine, *archive = &tiers->archive;

	for (;;) {
		int err = tier_peek(fine, source->keeps_refused, e);
		bool lacking;

		if (!err)
			err = tier_peek(archive, source->keeps_refused, e);
		if (err)
			return err;
		if (!fine->ahead && !archive->ahead)
			return 0;
		if (fine->ahead &&
		    (!archive->ahead || fine->scan.time_us <= archive->scan.time_us)) {
			tiers->fine_us += fine->scan.weight_us;
			fine->ahead = false;
			*scan = fine->scan;
			return 1;
		}
		/* a scan of the archive is also a fine scan, if those are still there */
		lacking = tiers->fine_us < archive->scan.weight_us / 2;
		tiers->fine_us = 0;
		archive->ahead = false;
		if (!lacking)
			continue;
		*scan = archive->scan;
		return 1;
	}
}

static void tiers_describe(struct source *source, struct source_status *status)
{
	struct tiers *tiers = (struct tiers *)source;
	struct source_status *of_archive = memory_get(sizeof(*of_archive));

	tiers->fine.source->describe(tiers->fine.source, status);
	tiers->archive.source->describe(tiers->archive.source, of_archive);
	for (size_t i = 0; i < of_archive->missed_count; i++)
		source_status_add(status, &of_archive->missed[i]);
	free(of_archive);
}

static void tiers_close(struct source *source)
{
	struct tiers *tiers = (struct tiers *)source;

	tiers->fine.source->close(tiers->fine.source);
	tiers->archive.source->close(tiers->archive.source);
	free(tiers);
}

/* Makes one source of two, which it owns then. It delivers whole scans, no batches. */
static struct source *tiers_new(struct source *fine, struct source *archive)
{
	struct tiers *tiers = memory_get(sizeof(*tiers));

	tiers->source = (struct source){
		.next = tiers_next, .describe = tiers_describe, .close = tiers_close};
	tiers->fine.source = fine;
	tiers->archive.source = archive;
	return &tiers->source;
}

/* Gets the two sources of a source that tiers_new() made; false: it is another source. */
static bool tiers_of(const struct source *source, struct source **fine, struct source **archive)
{
	const struct tiers *tiers = (const struct tiers *)source;

	if (source->next != tiers_next)
		return false;
	*fine = tiers->fine.source;
	*archive = tiers->archive.source;
	return true;
}

/* --- streams of rows */

/* Stream of the rows of one kind, of all files. */
struct recording_stream {
	struct csv_input input; /* first member, so that an input is a stream */
	struct recording *of;
	enum record_kind kind;
	size_t at;		     /* index of the file that is read */
	int fd;			     /* descriptor of that file; -1: it is not open */
	struct frame_reader *reader; /* NULL: none was opened */
	bool cut;		     /* the last file ended within a line */
	bool copied;		     /* frames are returned as they are in the file */
};

struct recording {
	struct sample_input input; /* first member, so that an input is a recording */
	struct recording_files files;
	struct recording_stream samples, scans, stacks, host;
	struct frame_losses losses;
	_Atomic uint64_t vanished; /* files that were removed before they were read */
	char *typed;		   /* malloced */
	struct recording_host reported;
};

static struct frame_reader *reader_new(const struct recording_stream *stream)
{
	const struct recording_part *part = &stream->of->input.part;
	struct frame_reader *reader;

	/* times of a day that is not known yet can't select frames */
	reader =
		frame_reader_new(stream->kind, part->from_of_day ? ABSENT : part->from_us,
				 part->until_of_day ? ABSENT : part->until_us, &stream->of->losses);
	if (stream->copied)
		frame_reader_copy(reader);
	return reader;
}

/* Opens the next file. 1, 0: there is none, or -errno. */
static int file_open(struct recording_stream *stream, struct error *e)
{
	struct recording *recording = stream->of;

	for (; stream->at < recording->files.count; stream->at++) {
		const struct recording_file *file = &recording->files.files[stream->at];

		if (!recording_file_has(file, stream->kind))
			continue;
		stream->fd = strcmp(file->path, "-") ? open(file->path, O_RDONLY | O_CLOEXEC)
						     : STDIN_FILENO;
		if (stream->fd < 0 && errno == ENOENT && file->is_part) {
			recording->vanished++;
			continue;
		}
		if (stream->fd < 0)
			return error_set(e, errno, EXIT_FAILED, "%s: %s", file->path,
					 strerror(errno));
		if (!stream->reader)
			stream->reader = reader_new(stream);
		frame_reader_begin(stream->reader, stream->fd, file->path);
		return 1;
	}
	return 0;
}

static void file_close(struct recording_stream *stream)
{
	if (stream->fd > STDIN_FILENO)
		close(stream->fd);
	stream->fd = -1;
}

static void stream_close(struct recording_stream *stream)
{
	file_close(stream);
	frame_reader_free(stream->reader);
	stream->reader = NULL;
}

static ssize_t stream_read(struct csv_input *input, char *bytes, size_t size, struct error *e)
{
	struct recording_stream *stream = (struct recording_stream *)input;

	for (;;) {
		ssize_t got;

		if (stream->fd < 0) {
			int more = file_open(stream, e);

			if (more <= 0) {
				stream_close(stream);
				return more;
			}
			/* a line that was cut off ends here, so that it is a row of its own */
			if (stream->cut) {
				stream->cut = false;
				*bytes = '\n';
				return 1;
			}
		}
		got = frame_reader_read(stream->reader, bytes, size, e);
		if (frame_reader_packed(stream->reader))
			stream->of->input.lenient = true;
		if (got > 0)
			stream->cut = !stream->copied && bytes[got - 1] != '\n';
		if (got)
			return got;
		file_close(stream);
		stream->at++;
	}
}

/* Number of bytes of the files that can be read ahead: pipes can't. */
static uint64_t bytes_find(const struct recording *recording, enum record_kind kind)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < recording->files.count; i++) {
		const struct recording_file *file = &recording->files.files[i];
		struct stat there;

		if (!recording_file_has(file, kind) || stat(file->path, &there))
			continue;
		if (!S_ISREG(there.st_mode))
			return 0;
		bytes += (uint64_t)there.st_size;
	}
	return bytes;
}

static void stream_init(struct recording_stream *stream, struct recording *of,
			enum record_kind kind)
{
	*stream = (struct recording_stream){
		.input.read = stream_read, .of = of, .kind = kind, .fd = -1};
}

static void recording_describe(struct sample_input *input, struct source_status *status)
{
	const struct recording *recording = (const struct recording *)input;
	const struct frame_losses *losses = &recording->losses;

	recording_host_describe(&recording->reported, status);
	source_status_miss_any(status, "damaged parts of the recording skipped", losses->damaged);
	source_status_miss_any(status, "parts of the recording written by a later version of tsnap",
			       losses->newer);
	source_status_miss_any(status, "parts of the recording without a header line",
			       losses->headless);
	source_status_miss_any(status,
			       "entries of the recording not read: links, directories or pipes",
			       recording->files.strange);
	source_status_miss_any(status,
			       "frames found more than once in the recording, and read once",
			       losses->twice);
	source_status_miss_any(status, "files named more than once and read once",
			       recording->samples.kind == RECORD_SAMPLES ? recording->files.twice
									 : 0);
	source_status_miss_any(status,
			       "files of samples without the file of their scans: scans without "
			       "samples are not known there",
			       recording_files_scanless(&recording->files, recording->samples.kind,
							recording->scans.kind));
	source_status_miss_any(status, "files removed while they were read", recording->vanished);
	source_status_miss_any(status, "files cut off, or still being written, within a frame",
			       losses->cut);
}

static void recording_close(struct sample_input *input)
{
	struct recording *recording = (struct recording *)input;

	stream_close(&recording->samples);
	stream_close(&recording->scans);
	stream_close(&recording->stacks);
	stream_close(&recording->host);
	recording_files_done(&recording->files);
	free(recording->typed);
	free(recording);
}

static bool has_kind(const struct recording *recording, enum record_kind kind)
{
	for (size_t i = 0; i < recording->files.count; i++)
		if (recording_file_has(&recording->files.files[i], kind))
			return true;
	return false;
}

static int files_find(struct recording *recording, const char *const *paths, struct error *e)
{
	int err = 0;

	for (; !err && *paths; paths++)
		err = recording_files_add(&recording->files, *paths, &recording->input.part, e);
	return err ? err : recording_files_end(&recording->files, recording->input.name, e);
}

/* Finds the part: the one that is typed after the only path, unless another one is requested. */
static int part_find(struct recording *recording, const char *typed,
		     const struct recording_part *part, struct error *e)
{
	int err = recording_part_read(typed, &recording->typed, &recording->input.part, e);

	if (!err && !recording_part_whole(&recording->input.part) && !recording_part_whole(part))
		return error_set(e, EINVAL, EXIT_USAGE,
				 "%s: give FROM..TO, or --from and --to, not both", typed);
	if (!err && !recording_part_whole(part))
		recording->input.part = *part;
	recording->input.part.host = part->host;
	return err;
}

/* The kinds of files that hold samples and scans of a tier. */
static const struct tier_kinds {
	enum record_kind samples, scans;
} tier_fine = {RECORD_SAMPLES, RECORD_SCANS}, tier_archive = {RECORD_ARCHIVE, RECORD_ARCHIVE_SCANS};

/* Finds the files. 0, or -errno with e: there is nothing to free. */
static int recording_begin(const char *const *paths, const struct recording_part *part,
			   const struct tier_kinds *tier, struct recording **begun, struct error *e)
{
	struct recording *recording = memory_get(sizeof(*recording));
	const char *only[] = {NULL, NULL};
	int err = 0;

	recording->input = (struct sample_input){.name = *paths,
						 .part = *part,
						 .describe = recording_describe,
						 .close = recording_close};
	stream_init(&recording->samples, recording, tier->samples);
	stream_init(&recording->scans, recording, tier->scans);
	stream_init(&recording->stacks, recording, RECORD_STACKS);
	stream_init(&recording->host, recording, RECORD_HOST);
	if (!paths[1]) {
		err = part_find(recording, *paths, part, e);
		only[0] = recording->typed;
		paths = only;
		if (!err)
			recording->input.name = strcmp(*only, "-") ? *only : "standard input";
	}
	if (!err)
		err = files_find(recording, paths, e);
	if (err)
		recording_close(&recording->input);
	else
		*begun = recording;
	return err;
}

int recording_twice_check(const char *const *paths, struct error *e)
{
	for (size_t i = 0; paths[i]; i++) {
		struct stat one, other;

		if (stat(paths[i], &one) || !S_ISDIR(one.st_mode))
			continue;
		for (size_t j = 0; j < i; j++)
			if (!stat(paths[j], &other) && one.st_dev == other.st_dev &&
			    one.st_ino == other.st_ino)
				return error_set(e, EINVAL, EXIT_USAGE,
						 "%s and %s are one directory: --chains joins "
						 "recordings of different hosts",
						 paths[j], paths[i]);
	}
	return 0;
}

/* Adds the hosts of the files of a name, from `first` on. -E2BIG: there are more than `most`. */
static int hosts_add(const struct recording_files *files, size_t first, const char *path,
		     struct recorded_host *hosts, size_t most, size_t *count)
{
	for (size_t i = first; i < files->count; i++) {
		const char *name =
			files->files[i].is_part ? name_of_string(files->files[i].name.host) : NULL;
		size_t at = 0;

		while (at < *count && hosts[at].name != name)
			at++;
		if (name && at < *count && hosts[at].path != path)
			hosts[at].path = NULL;
		if (!name || at < *count)
			continue;
		if (*count == most)
			return -E2BIG;
		hosts[(*count)++] = (struct recorded_host){name, path};
	}
	return 0;
}

int recording_hosts(const char *const *paths, const struct recording_part *part,
		    struct recorded_host *hosts, size_t most, size_t *count, struct error *e)
{
	struct recording_files files = {0};
	const char *strange = NULL;
	int err = 0;

	*count = 0;
	for (size_t i = 0; !err && paths[i]; i++) {
		struct recording_part typed = *part;
		size_t first = files.count;
		char *path = NULL;

		err = paths[1] ? 0 : recording_part_read(paths[i], &path, &typed, e);
		if (!err)
			err = recording_files_add(&files, path ? path : paths[i], &typed, e);
		if (!err && hosts_add(&files, first, paths[i], hosts, most, count))
			err = error_set(e, E2BIG, EXIT_USAGE,
					"%s: recordings of more than %zu hosts", *paths, most);
		free(path);
	}
	for (size_t i = 0; i<files.count && * count> 1; i++)
		if (!files.files[i].is_part)
			strange = files.files[i].path;
	if (!err && strange)
		err = error_set(e, EINVAL, EXIT_USAGE,
				"%s: its name does not say of which host it is: directories and "
				"files that tsnap -o wrote are joined",
				strange);
	recording_files_done(&files);
	return err;
}

/* Opens a tier as a source. -ENODATA or -EINVAL: there is nothing of the tier. */
static int tier_open(const char *const *paths, const struct recording_part *part,
		     const struct tier_kinds *tier, const struct filter *filter, uint64_t needs,
		     struct source **source, struct error *e)
{
	struct recording *recording;
	int err = recording_begin(paths, part, tier, &recording, e);

	if (err)
		return err;
	if (!has_kind(recording, tier->samples) && !has_kind(recording, tier->scans)) {
		err = error_set(e, ENODATA, EXIT_FAILED, "%s: it contains no samples",
				recording->input.name);
		recording_close(&recording->input);
		return err;
	}
	recording->input.samples = &recording->samples.input;
	recording->input.bytes = bytes_find(recording, tier->samples);
	if (has_kind(recording, tier->scans))
		recording->input.scans = &recording->scans.input;
	if (has_kind(recording, RECORD_STACKS))
		recording->input.stacks = &recording->stacks.input;
	if (has_kind(recording, RECORD_HOST)) {
		recording_host_read(&recording->reported, &recording->host.input);
		stream_close(&recording->host);
	}
	return sample_file_open(&recording->input, filter, needs, source, e);
}

static bool nothing_there(int err)
{
	return err == -ENODATA || err == -EINVAL;
}

int recording_open(const char *const *paths, const struct recording_part *part,
		   const struct filter *filter, uint64_t needs, struct source **source,
		   struct error *e)
{
	struct error none = {0};
	struct source *archive = NULL;
	int err, archive_err;

	err = tier_open(paths, part, &tier_fine, filter, needs, source, e);
	if (err && !nothing_there(err))
		return err;
	archive_err = tier_open(paths, part, &tier_archive, filter, needs, &archive, &none);
	if (!archive_err) {
		*source = err ? archive : tiers_new(*source, archive);
		error_done(e);
		return 0;
	}
	if (err || nothing_there(archive_err)) {
		error_done(&none);
		return err;
	}
	(*source)->close(*source);
	*e = none;
	return archive_err;
}

int recording_findings(const char *const *paths, const struct recording_part *part,
		       finding_callback *take, void *to, struct error *e)
{
	struct recording_part wider = *part;
	struct recording *recording;
	struct recording_stream stream;
	int err;

	/* they are recorded after the time that they are about */
	if (part->until_us != ABSENT)
		wider.until_us = sum(part->until_us, FINDINGS_LATE_US);
	err = recording_begin(paths, &wider, &tier_fine, &recording, e);
	if (err)
		return err;
	if (has_kind(recording, RECORD_FINDINGS)) {
		stream_init(&stream, recording, RECORD_FINDINGS);
		err = finding_rows_read(&stream.input, recording->input.name, take, to, e);
		stream_close(&stream);
	}
	recording_close(&recording->input);
	return err;
}

/* What rows of a kind are read by. */
struct rows_reader {
	enum record_kind kind;
	recorded_event_callback *take_event;
	recorded_distribution_callback *take_distribution;
	void *to;
};

static int rows_read(const char *const *paths, const struct recording_part *part,
		     const struct rows_reader *reader, struct error *e)
{
	struct recording_part wider = *part;
	struct recording *recording;
	struct recording_stream stream;
	int err;

	/* they are recorded with the scan that follows */
	if (part->until_us != ABSENT)
		wider.until_us = sum(part->until_us, EVENTS_LATE_US);
	err = recording_begin(paths, &wider, &tier_fine, &recording, e);
	if (err)
		return err;
	if (has_kind(recording, reader->kind)) {
		stream_init(&stream, recording, reader->kind);
		err = reader->take_event
			      ? event_rows_read(&stream.input, recording->input.name,
						reader->take_event, reader->to, e)
			      : distribution_rows_read(&stream.input, recording->input.name,
						       reader->take_distribution, reader->to, e);
		stream_close(&stream);
	} else if (reader->kind == RECORD_DISTRIBUTIONS) {
		err = error_set(e, ENODATA, EXIT_USAGE,
				"%s has no distributions: it was recorded without --trace and "
				"--probe",
				recording->input.name);
	}
	recording_close(&recording->input);
	return err;
}

int recording_events(const char *const *paths, const struct recording_part *part,
		     recorded_event_callback *take, void *to, struct error *e)
{
	const struct rows_reader reader = {RECORD_EVENTS, take, NULL, to};

	return rows_read(paths, part, &reader, e);
}

int recording_distributions(const char *const *paths, const struct recording_part *part,
			    recorded_distribution_callback *take, void *to, struct error *e)
{
	const struct rows_reader reader = {RECORD_DISTRIBUTIONS, NULL, take, to};

	return rows_read(paths, part, &reader, e);
}

int recording_stacks(struct source *source, const char *path, struct error *e)
{
	struct source *fine = source, *archive = NULL;
	int err;

	tiers_of(source, &fine, &archive);
	err = sample_file_stacks(fine, path, e);
	return err || !archive ? err : sample_file_stacks(archive, path, e);
}

bool recording_is_packed(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat there;
	uint32_t magic = 0;
	bool packed = false;

	if (fd < 0)
		return false;
	if (!fstat(fd, &there))
		packed = S_ISDIR(there.st_mode) ||
			 (S_ISREG(there.st_mode) &&
			  pread(fd, &magic, sizeof(magic), 0) == sizeof(magic) &&
			  (le32toh(magic) == FRAME_HEAD_MAGIC ||
			   le32toh(magic) == FRAME_ZSTD_MAGIC));
	close(fd);
	return packed;
}

/* Copies the frames of a kind. 0, or -errno with e. */
static int kind_copy(struct recording *recording, enum record_kind kind, int fd, const char *file,
		     struct error *e)
{
	char *bytes = memory_get(COPY_BYTES);
	struct recording_stream stream;
	ssize_t got;

	stream_init(&stream, recording, kind);
	stream.copied = true;
	while ((got = stream_read(&stream.input, bytes, COPY_BYTES, e)) > 0 || got == -EINTR) {
		int err = got > 0 ? output_write(fd, bytes, (size_t)got) : 0;

		if (!err && signals_stop())
			err = -EINTR;
		if (err) {
			got = error_set(e, -err, EXIT_FAILED, "%s: %s", file, strerror(-err));
			break;
		}
	}
	stream_close(&stream);
	free(bytes);
	return (int)got;
}

static int kinds_copy(struct recording *recording, int fd, const char *file, struct error *e)
{
	uint64_t scans = 0, before = 0;
	int err = 0;

	for (int kind = 0; !err && kind < RECORD_KIND_COUNT; kind++) {
		err = kind_copy(recording, (enum record_kind)kind, fd, file, e);
		if (kind == RECORD_SAMPLES || kind == RECORD_SCANS || kind == RECORD_ARCHIVE ||
		    kind == RECORD_ARCHIVE_SCANS)
			scans += recording->losses.frames - before;
		before = recording->losses.frames;
	}
	if (err)
		return err;
	if (!scans)
		return error_set(e, ENODATA, EXIT_FAILED,
				 "%s: it has no recording of tsnap -o for that time",
				 recording->input.name);
	/* EINVAL: a pipe or a device */
	if (fsync(fd) && errno != EINVAL)
		return error_set(e, errno, EXIT_FAILED, "%s: %s", file, strerror(errno));
	return 0;
}

int recording_snapshot(const char *const *paths, const struct recording_part *part,
		       const char *file, struct error *e)
{
	struct recording *recording;
	struct output_file *output;
	int err = recording_begin(paths, part, &tier_fine, &recording, e), copied = 0;

	if (err)
		return err;
	output = output_begin(file, 0640, &err);
	if (output) {
		copied = kinds_copy(recording, output_descriptor(output), file, e);
		err = output_end(output, copied);
	}
	if (err && !copied)
		error_set(e, -err, EXIT_FAILED, "%s: %s", file, output_error(err));
	recording_close(&recording->input);
	return err;
}
