/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A profile of pprof (github.com/google/pprof, proto/profile.proto), written from the inside out:
 * strings, frames and kinds of frames are numbered when they are first met.
 *
 * A sample has four values, in ns: time on a CPU, off it (asleep), in a run queue and in state D;
 * one of them is not 0. The value with the largest sum is the profile's default, which readers show
 * first. Samples are weighed as folded stacks are, with the chosen columns as labels. Frames have
 * names and no addresses, so that no symbols need to be found. Mappings are files, with their
 * build-ids; for frames that are in no file, kinds of frames (render/frame_kind.h).
 */
#include "base/clock.h"
#include "base/names.h"
#include "base/index.h"
#include "render/fold.h"
#include "render/renderer.h"
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

enum pprof_value { PPROF_ON_CPU, PPROF_OFF_CPU, PPROF_RUN_QUEUE, PPROF_DISK, PPROF_VALUES };

/* A zeroed profile is empty. */
struct pprof {
	struct text fields;	 /* fields of the profile, without its strings */
	struct text strings;	 /* the fields of the strings */
	struct index string_ids; /* interned text to its number */
	uint64_t string_count;
	int64_t total_ns[PPROF_VALUES];
	struct index frame_ids;	  /* interned text and mapping to location and function */
	struct index mapping_ids; /* interned file, or title of a kind of frames, to its number */
	struct text labels;	  /* fields of the next sample's labels */
};

/* Writes the wire format of Protocol Buffers: fields of a message, one after the other, in a text.
 * https://protobuf.dev/programming-guides/encoding
 */
enum protobuf_wire { PROTOBUF_VARINT = 0, PROTOBUF_BYTES = 2 };

/* Adds a number, seven bits a byte, the lowest ones first; a negative int64 as its two's
 * complement. */
static void protobuf_varint(struct text *to, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		text_add_char(to, (char)(number | 0x80));
	text_add_char(to, (char)number);
}

/* Adds a field with a number; 0, which is what an absent field means, is left out. */
static void protobuf_number(struct text *to, uint32_t field, uint64_t number)
{
	if (!number)
		return;
	protobuf_varint(to, field << 3 | PROTOBUF_VARINT);
	protobuf_varint(to, number);
}

/* Adds a field with bytes: a string, a message, or packed numbers. */
static void protobuf_bytes(struct text *to, uint32_t field, const struct text *bytes)
{
	protobuf_varint(to, field << 3 | PROTOBUF_BYTES);
	protobuf_varint(to, bytes->length);
	text_add(to, text_string(bytes), bytes->length);
}

/* The number of a string. The empty string has 0. */
static uint64_t string_id(struct pprof *pprof, const char *bytes, size_t length)
{
	struct text string = {0};
	bool added;
	uint64_t *id;

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

/* A label of the next sample: a text, or a number where text is NULL. Empty texts add no label. */
static void pprof_label(struct pprof *pprof, const char *name, const char *text, int64_t number)
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

/* Ends the sample. frames: outermost first, separated by ';', with annotations; files: files of the
 * first frames, as in the column ufiles (sample/stack_files.h), or NULL. */
static void pprof_sample(struct pprof *pprof, const char *frames, const char *files,
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

/* Ends the profile, which began at from_us (UTC), and adds it to out, packed with gzip. 0, or
 * -errno. */
static int pprof_end(struct pprof *pprof, int64_t from_us, int64_t duration_us, struct text *out)
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

static void pprof_done(struct pprof *pprof)
{
	text_done(&pprof->fields);
	text_done(&pprof->strings);
	text_done(&pprof->labels);
	index_clear(&pprof->string_ids);
	index_clear(&pprof->frame_ids);
	index_clear(&pprof->mapping_ids);
	*pprof = (struct pprof){0};
}

#define LABEL_COLUMNS "comm,pid,state,syscall,why,waits_on,waker_comm,container"

static enum pprof_value value_of_state(int64_t state)
{
	switch (state) {
	case STATE_ON:
		return PPROF_ON_CPU;
	case STATE_RQ:
		return PPROF_RUN_QUEUE;
	case STATE_DISK:
		return PPROF_DISK;
	default:
		return PPROF_OFF_CPU;
	}
}

static void label_add(struct pprof *pprof, const struct column *column, union value value)
{
	struct text words = {0};

	if (value_is_absent(column, value))
		return;
	if (column->kind != KIND_NUMBER)
		value_add(&words, column, value);
	pprof_label(pprof, column->name, column->kind == KIND_NUMBER ? NULL : text_string(&words),
		    value.number);
	text_done(&words);
}

static void pprof_add(struct text *out, const struct interval *interval)
{
	struct text frames = {0}, files = {0};
	struct pprof pprof = {.string_count = 1};

	protobuf_bytes(&pprof.strings, PROFILE_STRING, &(struct text){0}); /* number 0: "" */
	for (size_t row = 0; row < interval->grid->row_count; row++) {
		int64_t state, weight_us = fold_weight_us(interval, row, &state);

		if (!weight_us)
			continue;
		for (size_t i = 0; i < interval->root_count; i++)
			label_add(&pprof, interval->grid->list->items[i],
				  grid_row(interval->grid, row)[i]);
		text_clear(&frames);
		fold_add_stack(&frames, interval, row);
		text_clear(&files);
		fold_add_files(&files, interval, row);
		pprof_sample(&pprof, text_string(&frames), text_string(&files),
			     value_of_state(state), ratio(weight_us, NS_PER_US, 1));
	}
	/* no file is better than half a file */
	if (pprof_end(&pprof, interval->tally->from_us, interval->tally->elapsed_us, out))
		text_clear(out);
	pprof_done(&pprof);
	text_done(&frames);
	text_done(&files);
}

const struct renderer renderer_pprof = {
	.name = "pprof",
	.kind = RENDERER_STACKS,
	.grouped = true,
	.whole = "profile",
	.columns = LABEL_COLUMNS,
	.behind = FOLD_COLUMNS ",ufiles",
	.add = pprof_add,
};
