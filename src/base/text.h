/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Growing text buffer, the one gate that makes outside text printable, and small text helpers.
 * Zeroed is empty and valid.
 */
#ifndef TSNAP_BASE_TEXT_H
#define TSNAP_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *bytes; /* NUL-terminated once anything was added, else NULL */
	size_t length;
	size_t capacity;
};

void text_add(struct text *text, const char *bytes, size_t length);
void text_add_string(struct text *text, const char *string);
void text_add_format(struct text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void text_add_spaces(struct text *text, size_t count);
void text_add_number(struct text *text, int64_t number);
const char *text_string(const struct text *text); /* "" when empty, never NULL */
char *text_take(struct text *text);		  /* the malloced bytes; text becomes empty */
void text_clear(struct text *text);		  /* keeps the memory */
void text_done(struct text *text);

void text_grow(struct text *text, size_t bytes); /* slow path of text_reserve() */

/* Reserves capacity for that many bytes and a NUL after the end, for inner loops. The caller writes
 * bytes there, and adds them by calling text_end() with their end. */
static inline char *text_reserve(struct text *text, size_t bytes)
{
	if (text->length + bytes >= text->capacity)
		text_grow(text, bytes);
	return text->bytes + text->length;
}

static inline void text_end(struct text *text, char *end)
{
	*end = '\0';
	text->length = (size_t)(end - text->bytes);
}

static inline void text_add_char(struct text *text, char c)
{
	char *at = text_reserve(text, 1);

	*at = c;
	text_end(text, at + 1);
}

/* True for printable ASCII without quotes and backslashes, which all formats write as it is. */
bool text_is_plain(const char *bytes, size_t length);

/* Adds string so that no terminal or parser is harmed: the gate. Valid printable UTF-8 passes;
 * control characters (C0, DEL, C1), bytes that are not UTF-8, and direction marks become \xNN per
 * byte, and a backslash becomes two. */
void text_add_printable(struct text *text, const char *string);

/* Adds string as one word of a POSIX shell's command line, in quotes if it needs them. */
void text_add_word(struct text *text, const char *string);

/* Adds string with \xNN and \\ undone, the reverse of text_add_printable(); anything else after a
 * backslash stays as it is. */
void text_add_original(struct text *text, const char *string);

/* Adds string with each run of digits replaced by one '*' (worker-17 becomes worker-*). */
void text_add_digits_folded(struct text *text, const char *string);

/* Columns that a printable UTF-8 string takes on a terminal (wide characters take two). */
size_t text_width(const char *string);
/* Bytes of string that fit into that many columns; no character is split. */
size_t text_fit(const char *string, size_t columns);

/* Cuts the text to that many columns, with "..." at its end; 0: any width. */
void text_shorten(struct text *text, size_t columns);

/* True if the string ends with that. */
bool text_ends(const char *string, const char *end);

/* True if the name is one of the list, whose names have commas between. */
bool text_lists(const char *list, size_t length, const char *name);

/* Copies the string into a buffer of that size. False: the end does not fit and is left out. */
bool text_into(char *to, size_t size, const char *string);

/* Takes the next of comma-separated names, which may be empty, into name; *names becomes the rest,
 * NULL after the last name. False: there is none. */
bool text_next_name(struct text *name, const char **names);

/* The shortest candidate that has the word in it, or else the one most like it (fewest edits, in
 * reach of a typing slip); NULL: there is none. next yields the candidates, NULL at the end. */
const char *text_nearest(const char *word, const char *(*next)(void *from, size_t at), void *from);

#endif
