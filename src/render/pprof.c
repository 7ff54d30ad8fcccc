/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/pprof.h"
#include "base/clock.h"
#include "base/names.h"
#include "render/frame_kind.h"
#include "render/protobuf.h"
#include "report/value.h"
#include "sample/stack_files.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#define FRAMES_MOST 1024	   /* limit for one stack; the innermost are kept */
#define GZIP_WINDOW_BITS (15 + 16) /* 16: with gzip's header, see zlib.h */

/* Numbers of fields in profile.proto. */
enum profile_field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME_NS = 9,
	PROFILE_DURATION_NS = 10,
	PROFILE_DEFAULT_TYPE = 14,
};
enum { TYPE_NAME = 1, TYPE_UNIT = 2 };
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_TEXT = 2, LABEL_NUMBER = 3 };
enum { MAPPING_ID = 1, MAPPING_FILE = 5, MAPPING_BUILD_ID = 6, MAPPING_HAS_FUNCTIONS = 7 };
enum { LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2 };

/* The number of a string. The empty string has 0 and must be the first. */
static uint64_t string_id(struct pprof *pprof, const char *bytes, size_t length)
{
	struct text string = {0};
	bool added;
	uint64_t *id;

	if (!pprof->string_count++)
		protobuf_bytes(&pprof->strings, PROFILE_STRING, &string);
	else
		pprof->string_count--;
	if (!length)
		return 0;
	id = index_put(&pprof->string_ids, (uint64_t)(uintptr_t)name_transient(bytes, length),
		       &added);
	if (!added)
		return *id;
	*id = pprof->string_count++;
	text_add(&string, bytes, length);
	protobuf_bytes(&pprof->strings, PROFILE_STRING, &string);
	text_done(&string);
	return *id;
}

static uint64_t word_id(struct pprof *pprof, const char *word)
{
	return string_id(pprof, word, strlen(word));
}

/* The mapping of a file, PATH@BUILD-ID. */
static uint64_t mapping_id(struct pprof *pprof, const char *file, size_t length, size_t path_length)
{
	struct text mapping = {0};
	bool added;
	uint64_t *at = index_put(&pprof->mapping_ids,
				 (uint64_t)(uintptr_t)name_transient(file, length), &added),
		 id;

	if (!added)
		return *at;
	id = *at = pprof->mapping_ids.used;
	protobuf_number(&mapping, MAPPING_ID, id);
	protobuf_number(&mapping, MAPPING_FILE, string_id(pprof, file, path_length));
	protobuf_number(&mapping, MAPPING_BUILD_ID,
			string_id(pprof, file + path_length + 1, length - path_length - 1));
	protobuf_number(&mapping, MAPPING_HAS_FUNCTIONS, 1);
	protobuf_bytes(&pprof->fields, PROFILE_MAPPING, &mapping);
	text_done(&mapping);
	return id;
}

/* Returns the mapping of a kind of frames, named like a file without a build-id: "[kernel]". */
static uint64_t kind_mapping_id(struct pprof *pprof, const struct frame_kind *kind)
{
	struct text file = {0};
	uint64_t id;

	text_add_format(&file, "[%s]@", kind->title);
	id = mapping_id(pprof, text_string(&file), file.length, file.length - 1);
	text_done(&file);
	return id;
}

/* The location of a frame, which has the number of its function. */
static uint64_t frame_id(struct pprof *pprof, const char *name, size_t length,
			 const struct stack_files *file)
{
	const struct frame_kind *kind = frame_kind_of(name, length);
	uint64_t mapping = file->file
				   ? mapping_id(pprof, file->file, file->length, file->path_length)
				   : kind_mapping_id(pprof, kind);
	struct text location = {0}, function = {0}, line = {0};
	const char *kept = name_transient(name, length);
	bool added;
	uint64_t *at = index_put(&pprof->frame_ids, (uint64_t)(uintptr_t)kept ^ hash_u64(mapping),
				 &added),
		 id;

	if (!added)
		return *at;
	id = pprof->frame_ids.used;
	*at = id;
	protobuf_number(&function, FUNCTION_ID, id);
	protobuf_number(&function, FUNCTION_NAME,
			string_id(pprof, name, frame_kind_plain(kind, length)));
	protobuf_bytes(&pprof->fields, PROFILE_FUNCTION, &function);
	protobuf_number(&line, LINE_FUNCTION, id);
	protobuf_number(&location, LOCATION_ID, id);
	protobuf_number(&location, LOCATION_MAPPING, mapping);
	protobuf_bytes(&location, LOCATION_LINE, &line);
	protobuf_bytes(&pprof->fields, PROFILE_LOCATION, &location);
	text_done(&location);
	text_done(&function);
	text_done(&line);
	return id;
}

void pprof_label(struct pprof *pprof, const char *name, const char *text, int64_t number)
{
	struct text label = {0};

	if (text && !*text)
		return;
	protobuf_number(&label, LABEL_KEY, word_id(pprof, name));
	if (text)
		protobuf_number(&label, LABEL_TEXT, word_id(pprof, text));
	else
		protobuf_number(&label, LABEL_NUMBER, (uint64_t)number);
	protobuf_bytes(&pprof->labels, SAMPLE_LABEL, &label);
	text_done(&label);
}

/* Adds the locations, innermost first. */
static void locations_add(struct pprof *pprof, const char *frames, const char *files,
			  struct text *to)
{
	struct stack_files file = {.at = files};
	uint64_t ids[FRAMES_MOST];
	size_t count = 0;

	for (const char *at = frames; *at;) {
		size_t length = strcspn(at, ";");

		if (length) {
			stack_files_next(&file);
			ids[count++ % FRAMES_MOST] = frame_id(pprof, at, length, &file);
		}
		at += length + (at[length] == ';');
	}
	for (size_t i = 0; i < count && i < FRAMES_MOST; i++)
		protobuf_varint(to, ids[(count - 1 - i) % FRAMES_MOST]);
}

void pprof_sample(struct pprof *pprof, const char *frames, const char *files,
		  enum pprof_value value, int64_t ns)
{
	struct text sample = {0}, locations = {0}, values = {0};

	pprof->total_ns[value] = sum(pprof->total_ns[value], ns);
	locations_add(pprof, frames, files, &locations);
	for (enum pprof_value i = 0; i < PPROF_VALUES; i++)
		protobuf_varint(&values, i == value ? (uint64_t)ns : 0);
	protobuf_bytes(&sample, SAMPLE_LOCATIONS, &locations);
	protobuf_bytes(&sample, SAMPLE_VALUES, &values);
	text_add(&sample, text_string(&pprof->labels), pprof->labels.length);
	protobuf_bytes(&pprof->fields, PROFILE_SAMPLE, &sample);
	text_clear(&pprof->labels);
	text_done(&sample);
	text_done(&locations);
	text_done(&values);
}

static void types_add(struct pprof *pprof)
{
	static const char *const names[PPROF_VALUES] = {
		[PPROF_ON_CPU] = "on_cpu",
		[PPROF_OFF_CPU] = "off_cpu",
		[PPROF_RUN_QUEUE] = "run_queue",
		[PPROF_DISK] = "disk",
	};

	int most = 0;

	for (int i = 0; i < PPROF_VALUES; i++) {
		struct text type = {0};

		if (pprof->total_ns[i] > pprof->total_ns[most])
			most = i;

		protobuf_number(&type, TYPE_NAME, word_id(pprof, names[i]));
		protobuf_number(&type, TYPE_UNIT, word_id(pprof, "nanoseconds"));
		protobuf_bytes(&pprof->fields, PROFILE_SAMPLE_TYPE, &type);
		text_done(&type);
	}
	protobuf_number(&pprof->fields, PROFILE_DEFAULT_TYPE, word_id(pprof, names[most]));
}

static int gzip_add(struct text *out, const struct text *bytes)
{
	z_stream stream = {0};
	size_t capacity;
	char *at;
	int err;

	if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW_BITS, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	capacity = deflateBound(&stream, bytes->length);
	at = text_reserve(out, capacity);
	stream.next_in = (unsigned char *)bytes->bytes;
	stream.avail_in = (unsigned int)bytes->length;
	stream.next_out = (unsigned char *)at;
	stream.avail_out = (unsigned int)capacity;
	err = deflate(&stream, Z_FINISH) == Z_STREAM_END ? 0 : -EOVERFLOW;
	if (!err)
		text_end(out, at + stream.total_out);
	deflateEnd(&stream);
	return err;
}

int pprof_end(struct pprof *pprof, int64_t from_us, int64_t duration_us, struct text *out)
{
	types_add(pprof);
	protobuf_number(&pprof->fields, PROFILE_TIME_NS, (uint64_t)ratio(from_us, NS_PER_US, 1));
	protobuf_number(&pprof->fields, PROFILE_DURATION_NS,
			(uint64_t)ratio(duration_us, NS_PER_US, 1));
	text_add(&pprof->fields, text_string(&pprof->strings), pprof->strings.length);
	if (pprof->fields.length > UINT32_MAX)
		return -EOVERFLOW;
	return gzip_add(out, &pprof->fields);
}

void pprof_done(struct pprof *pprof)
{
	text_done(&pprof->fields);
	text_done(&pprof->strings);
	text_done(&pprof->labels);
	index_clear(&pprof->string_ids);
	index_clear(&pprof->frame_ids);
	index_clear(&pprof->mapping_ids);
	*pprof = (struct pprof){0};
}
