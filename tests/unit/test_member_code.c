/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Members of structs, by code that returns them. */
#include "unit.h"

#include "apps/member_code.h"
#include "unwind/file_request.h"

typedef bool finder(const uint8_t *code, int64_t *at);

/* Where the code, which other bytes follow, has a member; INT64_MIN: it is no such code. */
static int64_t found(finder *find, const char *code, size_t count)
{
	uint8_t bytes[FILE_SYMBOL_BYTES];
	int64_t at = 0;

	memset(bytes, 0xcc, sizeof(bytes));
	memcpy(bytes, code, count);
	return find(bytes, &at) ? at : INT64_MIN;
}

#define FOUND(find, code) found(find, code, sizeof(code) - 1)
#define ENDBR "\xf3\x0f\x1e\xfa"
#define PUSH "\x55\x48\x89\xe5"
#define LOAD_FS "\x64\x48\x8b\x04\x25\0\0\0\0"

static void arguments(void **state)
{
	assert_int_equal(FOUND(member_of_argument, "\x48\x8d\x47\x68\xc3"), 0x68);
	assert_int_equal(FOUND(member_of_argument, ENDBR "\x48\x8d\x87\xa0\0\0\0\xc3"), 0xa0);
	assert_int_equal(FOUND(member_of_argument, "\x48\x8b\x87\x18\x3f\0\0\xc3"), 0x3f18);
	assert_int_equal(FOUND(member_of_argument, ENDBR PUSH "\x8b\x87\xd8\x27\0\0\x5d"), 0x27d8);
	assert_int_equal(FOUND(member_of_argument, "\x48\x8b\x07\xc3"), 0);
	/* of another register; into another one; 32 bits of an address; a jump; a call */
	assert_int_equal(FOUND(member_of_argument, "\x48\x8b\x46\x10\xc3"), INT64_MIN);
	assert_int_equal(FOUND(member_of_argument, "\x48\x8b\x4f\x10\xc3"), INT64_MIN);
	assert_int_equal(FOUND(member_of_argument, "\x8d\x47\x68\xc3"), INT64_MIN);
	assert_int_equal(FOUND(member_of_argument, "\xe9\x10\0\0\0"), INT64_MIN);
	assert_int_equal(FOUND(member_of_argument, ""), INT64_MIN);
}

static void behind(void **state)
{
	assert_int_equal(FOUND(member_behind, "\x48\x8b\x87\xf8\x25\0\0\x48\x85\xc0\x74\x04"
					      "\x48\x8b\x40\x08\xc3"),
			 8);
	assert_int_equal(FOUND(member_behind, ENDBR "\x48\x8b\x47\x20\x48\x8b\0\xc3"), 0);
	assert_int_equal(FOUND(member_behind, "\x48\x8b\x47\x20\xc3"), INT64_MIN);
}

static void threads(void **state)
{
	assert_int_equal(FOUND(member_of_thread,
			       PUSH "\x66\x66\x66" LOAD_FS "\x5d\x48\x8b\x80\x98\xff\xff\xff\xc3"),
			 -0x68);
	assert_int_equal(FOUND(member_of_thread, ENDBR LOAD_FS "\x48\x8b\x40\xf8\xc3"), -8);
	assert_int_equal(FOUND(member_of_thread, "\x64\x48\x8b\x04\x25\xf0\xff\xff\xff\xc3"), -16);
	/* of a library; of what is behind it; all of it padding */
	assert_int_equal(FOUND(member_of_thread, "\x66\x48\x8d\x3d\0\0\0\0\x66\x66\x48\xe8"),
			 INT64_MIN);
	assert_int_equal(FOUND(member_of_thread, "\x64\x48\x8b\x04\x25\xf0\xff\xff\xff\x48\x8b\0"),
			 INT64_MIN);
	assert_int_equal(FOUND(member_of_thread, LOAD_FS "\x48\x8b\x40\x08\xc3"), INT64_MIN);
	assert_int_equal(FOUND(member_of_thread, "\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66"
						 "\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66"
						 "\x66\x66\x66\x66\x66\x66\x66\x66"),
			 INT64_MIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments),
		cmocka_unit_test(behind),
		cmocka_unit_test(threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
