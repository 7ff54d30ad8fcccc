/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "apps/otel.h"
#include "base/clock.h"
#include "base/names.h"
#include "base/text.h"
#include "parser/parser.h"

#include <stdlib.h>
#include <string.h>

#define PAYLOAD_MAX 32768
#define TEXT_MAX 256
#define KEYS_BYTES 16384
#define PARSE_NS (2 * NS_PER_SECOND)
#define CHECK_NS (1 * NS_PER_SECOND) /* until the process context is read again */
#define VERSION 2

struct header {
	char signature[8];
	uint32_t version, payload_bytes;
	uint64_t published_ns, payload;
};

static const char signature[8] = "OTEL_CTX";

struct record {
	uint8_t trace[16], span[8], valid, flags;
	uint16_t bytes;
};

_Static_assert(sizeof(struct record) == 28, "attributes are behind it");

#define ATTRIBUTES_MAX 65535
#define RECORD_BYTES 256

/* --- in a parser: the message. Texts are cut at their limits. */

struct context_answer {
	uint8_t is_message, schema_known;
	char service[TEXT_MAX], instance[TEXT_MAX];
	uint32_t key_count;
	char keys[KEYS_BYTES]; /* texts, each with its NUL */
};

_Static_assert(sizeof(struct context_answer) <= PARSER_MESSAGE_MAX, "an answer is one message");

struct bytes {
	const uint8_t *at, *end;
};

struct field {
	uint64_t number;
	struct bytes bytes; /* of a field with a length; else empty */
};

static bool varint_take(struct bytes *from, uint64_t *value)
{
	*value = 0;
	for (unsigned int shift = 0; shift < 64 && from->at < from->end; shift += 7) {
		uint8_t byte = *from->at++;

		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* Takes the next field of a message; false at its end, or where it is none. */
static bool field_take(struct bytes *from, struct field *field)
{
	uint64_t tag, length = 0;

	if (!varint_take(from, &tag))
		return false;
	*field = (struct field){.number = tag >> 3};
	switch (tag & 7) {
	case 0:
		return varint_take(from, &length);
	case 1:
		length = 8;
		break;
	case 2:
		if (!varint_take(from, &length))
			return false;
		break;
	case 5:
		length = 4;
		break;
	default:
		return false;
	}
	if (length > (uint64_t)(from->end - from->at))
		return false;
	field->bytes = (struct bytes){from->at, from->at + length};
	from->at += length;
	return true;
}

/* Finds the last field of that number; an empty one where there is none. */
static struct bytes field_find(struct bytes from, uint64_t number)
{
	struct bytes found = {0};
	struct field field;

	while (field_take(&from, &field))
		if (field.number == number)
			found = field.bytes;
	return found;
}

static bool bytes_are(struct bytes bytes, const char *text)
{
	return (size_t)(bytes.end - bytes.at) == strlen(text) &&
	       !memcmp(bytes.at, text, strlen(text));
}

static void bytes_into(struct bytes bytes, char *to, size_t size)
{
	size_t length = (size_t)(bytes.end - bytes.at);

	if (length > size - 1)
		length = size - 1;
	if (length)
		memcpy(to, bytes.at, length);
	to[length] = '\0';
}

/* Takes the texts of an array. */
static void keys_take(struct bytes array, struct context_answer *answer)
{
	size_t used = 0, length;
	struct field value;

	answer->key_count = 0;
	while (field_take(&array, &value)) {
		struct bytes text = field_find(value.bytes, 1);

		length = (size_t)(text.end - text.at);
		if (value.number != 1)
			continue;
		if (answer->key_count == OTEL_KEYS_MAX || length >= sizeof(answer->keys) - used)
			return;
		bytes_into(text, answer->keys + used, length + 1);
		used += strlen(answer->keys + used) + 1;
		answer->key_count++;
	}
}

/* Takes a KeyValue, whose value is an AnyValue: a text is its field 1, an array its field 5. */
static void attribute_take(struct bytes attribute, bool of_resource, struct context_answer *answer)
{
	struct bytes key = field_find(attribute, 1), value = field_find(attribute, 2);
	struct bytes text = field_find(value, 1);

	if (of_resource && bytes_are(key, "service.name"))
		bytes_into(text, answer->service, sizeof(answer->service));
	else if (of_resource && bytes_are(key, "service.instance.id"))
		bytes_into(text, answer->instance, sizeof(answer->instance));
	else if (!of_resource && bytes_are(key, "threadlocal.schema_version"))
		answer->schema_known =
			bytes_are(text, "tls_v1") || bytes_are(text, "tlsdesc_v1_dev");
	else if (!of_resource && bytes_are(key, "threadlocal.attribute_key_map"))
		keys_take(field_find(value, 5), answer);
}

static void message_read(struct bytes message, struct context_answer *answer)
{
	struct field field, attribute;

	while (field_take(&message, &field)) {
		struct bytes resource = field.bytes;

		if (field.number == 2)
			attribute_take(field.bytes, false, answer);
		while (field.number == 1 && field_take(&resource, &attribute))
			if (attribute.number == 1)
				attribute_take(attribute.bytes, true, answer);
	}
	answer->is_message = message.at == message.end;
}

size_t otel_service(struct parser_request *request, char to[PARSER_MESSAGE_MAX])
{
	const uint8_t *bytes = request->bytes;
	struct context_answer *answer = (struct context_answer *)to;

	if (request->count < sizeof(uint32_t))
		return 0;
	memset(answer, 0, sizeof(*answer));
	message_read((struct bytes){bytes + sizeof(uint32_t), bytes + request->count}, answer);
	return sizeof(*answer);
}

/* --- the process */

bool otel_is_header(const char *path)
{
	static const char *const begins[] = {"[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]",
					     "/memfd:OTEL_CTX"};

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (!strncmp(path, begins[i], strlen(begins[i])))
			return true;
	return false;
}

static bool header_read(struct app_reader *reader, uint64_t address, struct header *header)
{
	return app_read(reader, address, header, sizeof(*header)) &&
	       !memcmp(header->signature, signature, sizeof(signature)) &&
	       header->version == VERSION;
}

static const char *text_of(char *text, size_t size)
{
	text[size - 1] = '\0';
	return *text ? name_transient_string(text) : NULL;
}

/* Takes what a parser found in the message. */
static void answer_take(struct context_answer *answer, struct otel *otel)
{
	const char *at = answer->keys, *end = answer->keys + sizeof(answer->keys);

	otel->service = text_of(answer->service, sizeof(answer->service));
	otel->instance = text_of(answer->instance, sizeof(answer->instance));
	otel->schema_known = answer->schema_known;
	otel->key_count = 0;
	answer->keys[sizeof(answer->keys) - 1] = '\0';
	while (otel->key_count < answer->key_count && otel->key_count < OTEL_KEYS_MAX && at < end) {
		otel->keys[otel->key_count++] = name_transient_string(at);
		at += strlen(at) + 1;
	}
}

bool otel_read(struct app_reader *reader, struct otel *otel)
{
	static struct context_answer answer;
	static char payload[PAYLOAD_MAX];
	const uint32_t kind = PARSER_OTEL;
	struct header header, after;
	struct parser_message message = {.head = &kind, .head_bytes = sizeof(kind)};
	struct parser *parser = app_parser(reader);

	if (!header_read(reader, otel->header, &header))
		return false;
	if (header.published_ns && header.published_ns != otel->published_ns) {
		if (header.payload_bytes > sizeof(payload) ||
		    !app_read(reader, header.payload, payload, header.payload_bytes) ||
		    !header_read(reader, otel->header, &after) ||
		    after.published_ns != header.published_ns)
			return true;
		message.body = payload;
		message.body_bytes = header.payload_bytes;
		if (parser_ready(parser) ||
		    parser_request(parser, &message, &answer, sizeof(answer), PARSE_NS) !=
			    sizeof(answer))
			return true;
		answer_take(&answer, otel);
		otel->published_ns = header.published_ns;
	}
	if (header.published_ns)
		otel->checked_ns = reader->now_ns;
	return true;
}

/* --- the thread */

static const char *hex_text(const uint8_t *bytes, size_t count)
{
	static const char digits[] = "0123456789abcdef";
	char text[2 * sizeof(((struct record *)0)->trace)];
	uint8_t any = 0;

	for (size_t i = 0; i < count; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
		any |= bytes[i];
	}
	return any ? name_transient(text, 2 * count) : NULL;
}

/* Finds where the last value of each key begins, at its length; 0: there is none. True: a key is
 * unknown. */
static bool attributes_find(const struct otel *otel, const uint8_t *bytes, size_t count,
			    uint32_t at[OTEL_KEYS_MAX])
{
	bool unknown = false;

	memset(at, 0, OTEL_KEYS_MAX * sizeof(*at));
	for (size_t i = 0; i + 2 <= count && i + 2 + bytes[i + 1] <= count;
	     i += 2u + bytes[i + 1]) {
		at[bytes[i]] = (uint32_t)(i + 1);
		unknown |= bytes[i] >= otel->key_count;
	}
	return unknown;
}

/* Tells the attributes as "key=value, key=value", in the order of their numbers. A key that is not
 * known yet makes the process context be read again, which has to succeed; one that is unknown then
 * is left out. */
static const char *attributes_text(struct app_reader *reader, struct otel *otel,
				   const uint8_t *bytes, size_t count)
{
	uint32_t at[OTEL_KEYS_MAX];
	static struct text text;

	if (attributes_find(otel, bytes, count, at) &&
	    (!otel_read(reader, otel) || otel->checked_ns != reader->now_ns))
		return NULL;
	text_clear(&text);
	for (unsigned int key = 0; key < otel->key_count; key++) {
		if (!at[key])
			continue;
		text_add_string(&text, text.length ? ", " : "");
		text_add_string(&text, otel->keys[key]);
		text_add_char(&text, '=');
		text_add(&text, (const char *)bytes + at[key] + 1,
			 strnlen((const char *)bytes + at[key] + 1, bytes[at[key]]));
	}
	return text.length ? name_transient(text.bytes, text.length) : NULL;
}

/* Fills facts from a record of which as many bytes have been read. False: it needs more. */
static bool record_take(struct app_reader *reader, struct otel *otel, uint64_t needs,
			const void *record, size_t bytes, struct sample_app *facts)
{
	struct record head;

	if (bytes < sizeof(head))
		return true;
	memcpy(&head, record, sizeof(head));
	if (head.valid != 1)
		return true;
	if (needs & NEED_TRACE) {
		facts->trace = hex_text(head.trace, sizeof(head.trace));
		facts->span = hex_text(head.span, sizeof(head.span));
	}
	if (!(needs & NEED_CONTEXT) || !head.bytes)
		return true;
	if (bytes < sizeof(head) + head.bytes)
		return false;
	facts->context =
		attributes_text(reader, otel, (const uint8_t *)record + sizeof(head), head.bytes);
	return true;
}

static void record_read(struct app_reader *reader, struct otel *otel, uint64_t needs,
			uint64_t pointer, struct sample_app *facts)
{
	static struct {
		struct record head;
		uint8_t attributes[ATTRIBUTES_MAX];
	} record;
	const size_t head = sizeof(record.head);
	uint64_t variable = tls_address(reader, &otel->place, pointer), address;
	size_t got, more;

	if (!variable || !app_read(reader, variable, &address, sizeof(address)))
		return;
	/* most are of no more than that: the writers' limit is 640 */
	got = app_read_some(reader, address, &record, needs & NEED_CONTEXT ? RECORD_BYTES : head);
	if (record_take(reader, otel, needs, &record, got, facts))
		return;
	more = head + record.head.bytes - got;
	if (app_read(reader, address + got, (char *)&record + got, more))
		record_take(reader, otel, needs, &record, got + more, facts);
}

bool otel_due(const struct otel *otel, int64_t now_ns)
{
	return now_ns - otel->checked_ns >= CHECK_NS;
}

bool otel_fill(struct app_reader *reader, struct otel *otel, uint64_t needs, uint64_t pointer,
	       struct sample_app *facts)
{
	/* the thread may have run another program since the last scan */
	if (otel->checked_ns != reader->now_ns && !otel_read(reader, otel))
		return false;
	facts->service = otel->service;
	facts->instance = otel->instance;
	facts->trace = facts->span = facts->context = NULL;
	if (needs & (NEED_TRACE | NEED_CONTEXT) && otel->schema_known)
		record_read(reader, otel, needs, pointer, facts);
	return true;
}

void otel_take(struct app_reader *reader, struct otel *otel, uint64_t needs, const void *record,
	       size_t bytes, struct sample_app *facts)
{
	if (otel->schema_known)
		record_take(reader, otel, needs, record, bytes, facts);
}
