/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/text.h"
#include "base/memory.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

void text_grow(struct text *text, size_t bytes)
{
	text->bytes = memory_grow(text->bytes, &text->capacity, text->length + bytes + 1, 1);
}

void text_add(struct text *text, const char *bytes, size_t length)
{
	char *at = text_reserve(text, length);

	memcpy(at, bytes, length);
	text_end(text, at + length);
}

void text_add_string(struct text *text, const char *string)
{
	text_add(text, string, strlen(string));
}

void text_add_format(struct text *text, const char *format, ...)
{
	va_list args;
	int length;
	char *at;

	va_start(args, format);
	length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (length < 0)
		return;
	at = text_reserve(text, (size_t)length);
	va_start(args, format);
	vsnprintf(at, (size_t)length + 1, format, args);
	va_end(args);
	text_end(text, at + length);
}

void text_add_spaces(struct text *text, size_t count)
{
	char *at = text_reserve(text, count);

	memset(at, ' ', count);
	text_end(text, at + count);
}

#define NUMBER_LENGTH 20 /* length of -9223372036854775808 */

void text_add_number(struct text *text, int64_t number)
{
	uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
	char digits[NUMBER_LENGTH], *at = digits + NUMBER_LENGTH;

	do
		*--at = (char)('0' + rest % 10);
	while (rest /= 10);
	if (number < 0)
		*--at = '-';
	text_add(text, at, (size_t)(digits + NUMBER_LENGTH - at));
}

static const char hex_digits[] = "0123456789abcdef";

const char *text_string(const struct text *text)
{
	return text->length ? text->bytes : "";
}

char *text_take(struct text *text)
{
	char *bytes = text->length ? text->bytes : memory_text("", 0);

	if (!text->length)
		free(text->bytes);
	*text = (struct text){0};
	return bytes;
}

void text_clear(struct text *text)
{
	text->length = 0;
	if (text->bytes)
		text->bytes[0] = '\0';
}

void text_done(struct text *text)
{
	free(text->bytes);
	*text = (struct text){0};
}

#define EACH_BYTE(byte) (0x0101010101010101ull * (byte))

/* Returns EACH_BYTE(0x80) if all eight bytes are plain. If they are below 0x80 no sum carries into
 * the next byte, and the terms have bit 7 set for each byte that is at least ' ', and is not 0x7f,
 * '"' or '\\'. */
static uint64_t word_plain(uint64_t word)
{
	return (word + EACH_BYTE(0x80 - ' ')) & ~(word + EACH_BYTE(1)) & ~word &
	       ((word ^ EACH_BYTE('"')) + EACH_BYTE(0x7f)) &
	       ((word ^ EACH_BYTE('\\')) + EACH_BYTE(0x7f)) & EACH_BYTE(0x80);
}

bool text_is_plain(const char *bytes, size_t length)
{
	uint64_t word, plain = EACH_BYTE(0x80);
	size_t at = 0;

	for (; at + sizeof(word) <= length; at += sizeof(word)) {
		memcpy(&word, bytes + at, sizeof(word));
		plain &= word_plain(word);
	}
	if (at < length && at) {
		memcpy(&word, bytes + length - sizeof(word), sizeof(word));
		plain &= word_plain(word);
	} else if (at < length) {
		for (word = EACH_BYTE(' '); at < length; at++)
			word = word << 8 | (unsigned char)bytes[at];
		plain &= word_plain(word);
	}
	return plain == EACH_BYTE(0x80);
}

void text_add_word(struct text *text, const char *string)
{
	if (*string && !string[strspn(string, "abcdefghijklmnopqrstuvwxyz"
					      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
					      "0123456789_./:@%+=,-")]) {
		text_add_string(text, string);
		return;
	}
	text_add_char(text, '\'');
	for (; *string; string++) {
		if (*string == '\'')
			text_add_string(text, "'\\''");
		else
			text_add_char(text, *string);
	}
	text_add_char(text, '\'');
}

/* Length of the UTF-8 character at s, 0 if there is none (RFC 3629). */
static size_t utf8_read(const unsigned char *s, uint32_t *point)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = 1;

	if (s[0] >= 0x80)
		length = s[0] < 0xc2 || s[0] > 0xf4 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (length < 2) {
		*point = s[0];
		return length;
	}
	*point = s[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*point = *point << 6 | (s[i] & 0x3f);
	}
	if (*point < least[length] || *point > 0x10ffff || (*point >= 0xd800 && *point <= 0xdfff))
		return 0;
	return length;
}

/* True if the character could mislead a terminal or a reader. */
static bool point_is_harmful(uint32_t point)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0x00, 0x1f},	    /* C0 */
		{0x7f, 0x9f},	    /* DEL, C1 */
		{0xad, 0xad},	    /* soft hyphen */
		{0x61c, 0x61c},	    /* Arabic letter mark */
		{0x180e, 0x180e},   /* Mongolian vowel separator: no width */
		{0x200b, 0x200f},   /* no width, direction marks */
		{0x2028, 0x202e},   /* line separators, embeddings, overrides */
		{0x2060, 0x206f},   /* joiners, isolates */
		{0xfdd0, 0xfdef},   /* no characters */
		{0xfeff, 0xfeff},   /* byte order mark */
		{0xfff9, 0xfffb},   /* interlinear annotation */
		{0xe0000, 0xe0fff}, /* tags */
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (point >= ranges[i].first && point <= ranges[i].last)
			return true;
	return (point & 0xfffe) == 0xfffe;
}

void text_add_printable(struct text *text, const char *string)
{
	const unsigned char *s = (const unsigned char *)string, *plain;
	uint32_t point;

	while (*s) {
		size_t length;

		for (plain = s; *s >= 0x20 && *s < 0x7f && *s != '\\'; s++)
			;
		text_add(text, (const char *)plain, (size_t)(s - plain));
		if (!*s)
			break;
		length = utf8_read(s, &point);
		if (*s == '\\') {
			text_add(text, "\\\\", 2);
			s++;
		} else if (length && !point_is_harmful(point)) {
			text_add(text, (const char *)s, length);
			s += length;
		} else {
			for (length = length ? length : 1; length; length--, s++) {
				char escape[4] = {'\\', 'x', hex_digits[*s >> 4],
						  hex_digits[*s & 15]};

				text_add(text, escape, sizeof(escape));
			}
		}
	}
}

static int hex_value(char c)
{
	const char *at = c ? strchr(hex_digits, c) : NULL;

	return at ? (int)(at - hex_digits) : -1;
}

void text_add_original(struct text *text, const char *string)
{
	for (;;) {
		size_t plain = strcspn(string, "\\");

		text_add(text, string, plain);
		string += plain;
		if (!*string)
			return;
		if (string[1] == '\\') {
			text_add_char(text, '\\');
			string += 2;
		} else if (string[1] == 'x' && hex_value(string[2]) >= 0 &&
			   hex_value(string[3]) >= 0 && (string[2] != '0' || string[3] != '0')) {
			text_add_char(text,
				      (char)(hex_value(string[2]) * 16 + hex_value(string[3])));
			string += 4;
		} else {
			text_add_char(text, *string++);
		}
	}
}

void text_add_digits_folded(struct text *text, const char *string)
{
	static const char digits[] = "0123456789";

	while (*string) {
		size_t other = strcspn(string, digits);

		text_add(text, string, other);
		string += other;
		if (!*string)
			return;
		text_add_char(text, '*');
		string += strspn(string, digits);
	}
}

/* Columns of one character, by libc's Unicode tables, whatever the user's locale is. */
static size_t point_width(uint32_t point)
{
	static locale_t unicode;
	locale_t before;
	int width;

	if (point < 0x300)
		return 1;
	if (!unicode)
		unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	if (!unicode)
		return 1;
	before = uselocale(unicode);
	width = wcwidth((wchar_t)point);
	uselocale(before);
	return width < 0 ? 1 : (size_t)width;
}

/* Returns the number of bytes whose characters fit into columns; *width: the columns that they
 * take. */
static size_t text_measure(const char *string, size_t columns, size_t *width)
{
	const unsigned char *s = (const unsigned char *)string;
	uint32_t point;

	*width = 0;
	while (*s) {
		size_t length = utf8_read(s, &point);
		size_t more = length ? point_width(point) : 1;

		if (*width + more > columns)
			break;
		*width += more;
		s += length ? length : 1;
	}
	return (size_t)(s - (const unsigned char *)string);
}

size_t text_width(const char *string)
{
	size_t width;

	text_measure(string, SIZE_MAX, &width);
	return width;
}

size_t text_fit(const char *string, size_t columns)
{
	size_t width;

	return text_measure(string, columns, &width);
}

bool text_ends(const char *string, const char *end)
{
	size_t length = strlen(string), tail = strlen(end);

	return length >= tail && !strcmp(string + length - tail, end);
}

void text_shorten(struct text *text, size_t columns)
{
	static const char sign[] = "...";
	size_t fit;

	if (!columns || text_width(text_string(text)) <= columns)
		return;
	fit = text_fit(text_string(text), columns > sizeof(sign) ? columns - 3 : columns);
	text->bytes[fit] = '\0';
	text->length = fit;
	text_add_string(text, sign);
}

bool text_lists(const char *list, size_t length, const char *name)
{
	size_t size = strlen(name);

	for (const char *end = list + length; list < end; list++) {
		const char *next = memchr(list, ',', (size_t)(end - list));

		next = next ? next : end;
		if ((size_t)(next - list) == size && !memcmp(list, name, size))
			return true;
		list = next;
	}
	return false;
}

bool text_into(char *to, size_t size, const char *string)
{
	size_t length = strnlen(string, size - 1);

	memmove(to, string, length);
	to[length] = '\0';
	return !string[length];
}

#define NEAREST_LENGTH_MAX 64
#define PART_LENGTH_MIN 3 /* shorter words are part of too many */

/* Levenshtein's distance. Both words must be shorter than NEAREST_LENGTH_MAX. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t row[NEAREST_LENGTH_MAX];
	size_t columns = strlen(b);

	for (size_t j = 0; j <= columns; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t corner = row[0];

		row[0] = i;
		for (size_t j = 1; j <= columns; j++) {
			size_t best = corner + (a[i - 1] != b[j - 1]);

			corner = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[columns];
}

const char *text_nearest(const char *word, const char *(*next)(void *from, size_t at), void *from)
{
	size_t best = strlen(word) / 3 + 1;
	const char *nearest = NULL, *candidate;

	if (strlen(word) >= NEAREST_LENGTH_MAX)
		return NULL;
	for (size_t at = 0; strlen(word) >= PART_LENGTH_MIN && (candidate = next(from, at)); at++)
		if (strstr(candidate, word) && (!nearest || strlen(candidate) < strlen(nearest)))
			nearest = candidate;
	if (nearest)
		return nearest;
	for (size_t at = 0; (candidate = next(from, at)); at++) {
		size_t distance;

		if (strlen(candidate) >= NEAREST_LENGTH_MAX)
			continue;
		distance = edit_distance(word, candidate);
		if (distance < best || (distance == best && !nearest)) {
			best = distance;
			nearest = candidate;
		}
	}
	return nearest;
}

bool text_next_name(struct text *name, const char **names)
{
	const char *at = *names;
	size_t length;

	if (!at)
		return false;
	length = strcspn(at, ",");
	text_clear(name);
	text_add(name, at, length);
	*names = at[length] ? at + length + 1 : NULL;
	return true;
}
