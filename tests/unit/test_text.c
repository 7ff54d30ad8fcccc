/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"
#include "base/text.h"

static void assert_printable(const char *given, const char *expected)
{
	struct text text = {0}, back = {0};

	text_add_printable(&text, given);
	assert_string_equal(text_string(&text), expected);
	text_add_original(&back, text_string(&text));
	assert_string_equal(text_string(&back), given);
	text_done(&text);
	text_done(&back);
}

static void printable_passes(void **state)
{
	assert_printable("", "");
	assert_printable("kworker/0:1H, \"x\"", "kworker/0:1H, \"x\"");
	assert_printable("größe 世界 🎉", "größe 世界 🎉");
}

static void harmful_is_escaped(void **state)
{
	assert_printable("\x1b[2J\n\t\x7f", "\\x1b[2J\\x0a\\x09\\x7f");
	assert_printable("a\\b\\x1b", "a\\\\b\\\\x1b");
	assert_printable("\xc2\x9b"
			 "31m",
			 "\\xc2\\x9b31m"); /* C1 */
	assert_printable("\xe2\x80\xae"
			 "evil",
			 "\\xe2\\x80\\xae"
			 "evil"); /* right to left */
	assert_printable("\xe2\x80\x8b\xef\xbb\xbf", "\\xe2\\x80\\x8b\\xef\\xbb\\xbf");
	assert_printable("\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81"); /* a tag */
}

static void broken_utf8_is_escaped(void **state)
{
	assert_printable("\xff\xc3", "\\xff\\xc3");
	assert_printable("\xc0\xaf", "\\xc0\\xaf");		      /* overlong */
	assert_printable("\xed\xa0\x80", "\\xed\\xa0\\x80");	      /* surrogate */
	assert_printable("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* above 10ffff */
	assert_printable("\xe2\x82", "\\xe2\\x82");		      /* cut */
	assert_printable("\xe2\x82z", "\\xe2\\x82z");
}

static void original_leaves_the_rest(void **state)
{
	struct text text = {0};

	text_add_original(&text, "\\ \\q \\x \\x1 \\x1g \\x00 \\x41\\");
	assert_string_equal(text_string(&text), "\\ \\q \\x \\x1 \\x1g \\x00 A\\");
	text_done(&text);
}

static void buffer_grows_and_clears(void **state)
{
	struct text text = {0};
	char *taken;

	assert_string_equal(text_string(&text), "");
	for (int i = 0; i < 1000; i++)
		text_add_format(&text, "%d,", i % 10);
	assert_int_equal(text.length, 2000);
	assert_int_equal(strlen(text_string(&text)), 2000);
	text_clear(&text);
	assert_string_equal(text_string(&text), "");
	taken = text_take(&text);
	assert_string_equal(taken, "");
	free(taken);
	text_add_char(&text, 'x');
	taken = text_take(&text);
	assert_string_equal(taken, "x");
	assert_null(text.bytes);
	free(taken);
	text_done(&text);
}

static void numbers(void **state)
{
	struct text text = {0};

	text_add_number(&text, 0);
	text_add_char(&text, ' ');
	text_add_number(&text, INT64_MIN);
	text_add_char(&text, ' ');
	text_add_number(&text, INT64_MAX);
	assert_string_equal(text_string(&text), "0 -9223372036854775808 9223372036854775807");
	text_done(&text);
}

/* Compares with printf(3): each length, both signs, and both sides of each power of ten. */
static void numbers_as_printed(void **state)
{
	struct text text = {0};
	char expected[32];

	for (int64_t power = 1; power <= INT64_MAX / 10; power *= 10)
		for (int64_t near = -2; near <= 2; near++)
			for (int sign = -1; sign <= 1; sign += 2) {
				int64_t number = sign * (power + near);

				snprintf(expected, sizeof(expected), "%lld", (long long)number);
				text_clear(&text);
				text_add_number(&text, number);
				assert_string_equal(text_string(&text), expected);
				assert_int_equal(text.length, strlen(expected));
			}
	text_done(&text);
}

/* Plain text: every byte at every position of a word, and of a partial one. */
static void plain_is_plain(void **state)
{
	char bytes[32];

	assert_true(text_is_plain("", 0));
	for (size_t length = 1; length <= 19; length++)
		for (size_t at = 0; at < length; at++)
			for (int byte = 0; byte < 256; byte++) {
				bool plain =
					byte >= ' ' && byte < 0x7f && byte != '"' && byte != '\\';

				/* bytes after the end do not count */
				memset(bytes, '"', sizeof(bytes));
				memset(bytes, at % 2 ? '~' : ' ', length);
				bytes[at] = (char)byte;
				assert_int_equal(text_is_plain(bytes, length), plain);
			}
}

static void digits_fold(void **state)
{
	struct text text = {0};

	text_add_digits_folded(&text, "007 worker-17/3x");
	assert_string_equal(text_string(&text), "* worker-*/*x");
	text_done(&text);
}

static void widths(void **state)
{
	assert_int_equal(text_width(""), 0);
	assert_int_equal(text_width("abc"), 3);
	assert_int_equal(text_width("größe"), 5);
	assert_int_equal(text_width("世界"), 4);
	assert_int_equal(text_fit("世界", 3), 3);
	assert_int_equal(text_fit("größe", 3), 4);
	assert_int_equal(text_fit("abc", 9), 3);
	assert_int_equal(text_fit("abc", 0), 0);
}

static const char *word_at(void *from, size_t at)
{
	return ((const char **)from)[at];
}

static void nearest(void **state)
{
	const char *words[] = {"state", "state_us", "syscall", "csv", NULL};
	char long_word[200];

	assert_string_equal(text_nearest("stat", word_at, words), "state");
	assert_string_equal(text_nearest("sycsall", word_at, words), "syscall");
	assert_string_equal(text_nearest("cvs", word_at, words), "csv");
	assert_null(text_nearest("filename", word_at, words));
	assert_string_equal(text_nearest("tate", word_at, words), "state");
	assert_string_equal(text_nearest("_us", word_at, words), "state_us");
	memset(long_word, 'x', sizeof(long_word) - 1);
	long_word[sizeof(long_word) - 1] = '\0';
	assert_null(text_nearest(long_word, word_at, words));
}

static void names_between_commas(void **state)
{
	const char *names = "one,,two,";
	struct text name = {0};

	assert_true(text_next_name(&name, &names));
	assert_string_equal(text_string(&name), "one");
	assert_true(text_next_name(&name, &names));
	assert_string_equal(text_string(&name), "");
	assert_true(text_next_name(&name, &names));
	assert_string_equal(text_string(&name), "two");
	assert_true(text_next_name(&name, &names));
	assert_string_equal(text_string(&name), "");
	assert_false(text_next_name(&name, &names));
	text_done(&name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(printable_passes),

		cmocka_unit_test(harmful_is_escaped),

		cmocka_unit_test(broken_utf8_is_escaped),

		cmocka_unit_test(original_leaves_the_rest),

		cmocka_unit_test(buffer_grows_and_clears),

		cmocka_unit_test(numbers),

		cmocka_unit_test(numbers_as_printed),
		cmocka_unit_test(plain_is_plain),

		cmocka_unit_test(digits_fold),

		cmocka_unit_test(widths),

		cmocka_unit_test(nearest),
		cmocka_unit_test(names_between_commas),

	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
