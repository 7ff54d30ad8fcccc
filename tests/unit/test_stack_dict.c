/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The dictionary of stacks: written stacks are read, once each; a file that is no dictionary is
 * refused. */
#include "unit.h"
#include "base/names.h"
#include "recording/stack_dict.h"
#include "sample/waker_stack.h"

#include <sys/mman.h>

#define HEADER "hash,kind,func,funcs,frames\n"

static int content_open(const char *content, char path[64])
{
	int fd = memfd_create("dictionary", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

static uint64_t missed(const struct stack_dict *dict, const char *what)
{
	struct source_status status = {0};

	stack_dict_describe(dict, &status);
	for (size_t i = 0; i < status.missed_count; i++)
		if (strstr(status.missed[i].what, what))
			return status.missed[i].count;
	return 0;
}

static int dict_of(const char *content, struct stack_dict **dict, struct error *e)
{
	static char path[64];
	int fd = content_open(content, path);
	int err = stack_dict_open(path, UINT64_MAX, dict, e);

	close(fd);
	return err;
}

static struct sample reported(struct stack_dict *dict, int64_t user, int64_t kernel)
{
	struct sample sample = *sample_absent();

	sample.stack.ustack = user;
	sample.stack.kstack = kernel;
	stack_dict_fill(dict, &sample);
	return sample;
}

static void hashes_are_told(void **state)
{
	struct stack_dict *dict = NULL;
	struct error e = {0};
	struct sample sample;

	assert_int_equal(dict_of(HEADER "\"0x1\",\"user\",\"f\",\"main>f\",\"main;f\"\n"
					"\"0xffffffffffffffff\",\"kernel\",\"k\",\"k\",\"k_[k]\"\n"
					"\"0x1\",\"user\",\"again\",,\n" HEADER
					"\"0x3\",\"user\",,,\"\\x1b;\\\\\"\n"
					"frames,kind,hash\n\"x\"\"y\",\"user\",\"0x4\"\n"
					"\"0x5\",\"use",
				 &dict, &e),
			 0);
	sample = reported(dict, 1, -1);
	assert_string_equal(sample.stack.ufunc, "f");
	assert_string_equal(sample.stack.ufuncs, "main>f");
	assert_string_equal(sample.stack.kfunc, "k");
	assert_string_equal(sample.stack.both, "main;f;k_[k]");
	assert_ptr_equal(reported(dict, 1, -1).stack.both, sample.stack.both);
	assert_string_equal(reported(dict, 1, ABSENT).stack.both, "main;f");
	assert_string_equal(reported(dict, ABSENT, -1).stack.both, "k_[k]");
	assert_string_equal(reported(dict, 3, ABSENT).stack.both, "\x1b;\\");
	assert_string_equal(reported(dict, 4, ABSENT).stack.both, "x\"y");
	assert_int_equal(missed(dict, "missing from the dictionary"), 0);
	/* cut off; of the other kind; absent is not looked up */
	assert_null(reported(dict, 5, ABSENT).stack.both);
	assert_null(reported(dict, -1, 1).stack.ufunc);
	assert_null(reported(dict, ABSENT, ABSENT).stack.both);
	assert_int_equal(missed(dict, "missing from the dictionary"), 3);
	stack_dict_free(dict);
	names_clear();
}

/* A hash of 0 is one like any other; absent means no stack. */
static void zero_is_a_hash(void **state)
{
	struct stack_dict *dict = NULL;
	struct error e = {0};

	assert_int_equal(dict_of(HEADER "\"0x0\",\"user\",,,\"zero\"\n"
					"\"0x2\",\"kernel\",,,\"k_[k]\"\n",
				 &dict, &e),
			 0);
	assert_string_equal(reported(dict, ABSENT, 2).stack.both, "k_[k]");
	assert_string_equal(reported(dict, 0, 2).stack.both, "zero;k_[k]");
	stack_dict_free(dict);
	names_clear();
}

static void wakers_are_told(void **state)
{
	struct sample sample = *sample_absent();
	struct stack_dict *dict = NULL;
	struct error e = {0};

	assert_int_equal(dict_of(HEADER "\"0x1\",\"user\",\"f\",\"main>f\",\"main;f_[l]\"\n"
					"\"0x2\",\"kernel\",\"k\",\"k\",\"a_[k];k_[k]\"\n",
				 &dict, &e),
			 0);
	sample.waker.ustack = 1;
	sample.waker.kstack = 2;
	stack_dict_fill(dict, &sample);
	assert_string_equal(sample.waker.stack, "k_[w];a_[w];f_[w];main_[w]");
	assert_null(sample.stack.both);
	stack_dict_free(dict);
	names_clear();
}

static void stacks_are_turned_round(void **state)
{
	/* transient strings first: if there is a permanent one already, it is used instead */
	const char *waker = waker_stack_of("main", NULL, name_transient);
	const char *halves = stack_of_halves("a;b", "k_[k]", name_transient);

	assert_ptr_not_equal(name_of_string("main_[w]"), waker);
	assert_string_equal(halves, "a;b;k_[k]");
	assert_ptr_not_equal(name_of_string("a;b;k_[k]"), halves);
	assert_null(stack_of_halves(NULL, NULL, name_of));
	assert_string_equal(stack_of_halves(NULL, "k_[k]", name_of), "k_[k]");
	assert_null(waker_stack_of(NULL, NULL, name_of));
	assert_null(waker_stack_of("", ";;", name_of));
	assert_string_equal(waker_stack_of("main", NULL, name_of), "main_[w]");
	assert_string_equal(waker_stack_of(";a b;;c_[j]", "", name_of), "c_[w];a b_[w]");
	assert_string_equal(waker_stack_of("[lost];_[l];x_[ll]", "k_[k]", name_of),
			    "k_[w];x_[ll]_[w];_[l]_[w];[lost]_[w]");
	names_clear();
}

static void what_a_row_tells_stays(void **state)
{
	struct sample sample = *sample_absent();
	struct stack_dict *dict = NULL;
	struct error e = {0};

	assert_int_equal(dict_of(HEADER "\"0x1\",\"user\",\"f\",\"f\",\"f\"\n", &dict, &e), 0);
	sample.stack.ustack = 1;
	sample.stack.both = "recorded";
	stack_dict_fill(dict, &sample);
	assert_string_equal(sample.stack.both, "recorded");
	assert_string_equal(sample.stack.ufunc, "f");
	stack_dict_free(dict);
	names_clear();
}

static void fails(const char *content, const char *words)
{
	struct stack_dict *dict = NULL;
	struct error e = {0};

	assert_int_equal(dict_of(content, &dict, &e), -EINVAL);
	assert_int_equal(e.exit_code, EXIT_FAILED);
	if (!strstr(e.line, words))
		fail_msg("'%s' is not in '%s'", words, e.line);
	error_done(&e);
	names_clear();
}

static void others_are_refused(void **state)
{
	fails("", "empty");
	fails("timestamp,tid\n", "line 1: no header line with hash, kind and frames");
	fails("hash,kind\n", "no header line");
	fails("hash,kind,frames,hash\n", "hash: two such columns");
	fails(HEADER "\"0x1\",\"user\"\n", "line 2: the number of columns");
	fails(HEADER "\"1\",\"user\",,,\"f\"\n", "hash: not a 0x number");
	fails(HEADER "\"0x10000000000000000\",\"user\",,,\"f\"\n", "hash: not a 0x number");
	fails(HEADER ",\"user\",,,\"f\"\n", "hash: missing");
	fails(HEADER "\"0x1\",\"stack\",,,\"f\"\n", "kind: neither user nor kernel");
	fails(HEADER "\"0x1\",,,,\"f\"\n", "kind: neither user nor kernel");
	fails(HEADER "\"0x1\",\"user\n", "without an end");
	fails(HEADER "\"0x1\",\"user\",,,\"f\"\nhash\n", "no header line");
}

static void give(struct source *source, int64_t hash, const char *frames)
{
	source->stack_take(source->stack_take_to, &(struct stack_entry){.hash = hash,
									.kind = STACK_DICT_USER,
									.funcs = "a>b",
									.frames = frames});
}

static void source_end(struct source *source)
{
	give(source, 7, "at;the;end");
}

static size_t lines_of(int fd)
{
	char piece[4096];
	size_t lines = 0;
	off_t at = 0;

	for (ssize_t got; (got = pread(fd, piece, sizeof(piece), at)) > 0; at += got)
		for (ssize_t i = 0; i < got; i++)
			lines += piece[i] == '\n';
	return lines;
}

static void written_is_read(void **state)
{
	static const char hostile[] = "a\"b;\n,\x1b[2J;\xff\\x41;\\;世界";
	static const struct host_source host = {.stacks_end = source_end};
	struct source source = {.host = &host};
	struct stack_dict_file file = {0};
	struct stack_dict *dict = NULL;
	struct error e = {0};
	char path[64];
	int fd = content_open("what was there before", path);

	assert_int_equal(stack_dict_file_begin(&file, path, &source, &e), 0);
	give(&source, INT64_MAX, hostile);
	give(&source, INT64_MIN + 1, "b");
	assert_int_equal(stack_dict_file_flush(&file, &e), 0);
	give(&source, INT64_MAX, "another of the same hash");
	/* the bytes written so far are whole at any time */
	assert_int_equal(stack_dict_open(path, UINT64_MAX, &dict, &e), 0);
	assert_string_equal(reported(dict, INT64_MAX, ABSENT).stack.both, hostile);
	assert_null(reported(dict, 7, ABSENT).stack.both);
	stack_dict_free(dict);
	assert_int_equal(stack_dict_file_end(&file, &e), 0);
	stack_dict_file_done(&file);
	assert_int_equal(stack_dict_open(path, UINT64_MAX, &dict, &e), 0);
	assert_string_equal(reported(dict, INT64_MAX, ABSENT).stack.both, hostile);
	assert_null(reported(dict, INT64_MAX, ABSENT).stack.ufunc);
	assert_string_equal(reported(dict, INT64_MIN + 1, ABSENT).stack.ufuncs, "a>b");
	assert_string_equal(reported(dict, 7, ABSENT).stack.both, "at;the;end");
	stack_dict_free(dict);
	assert_int_equal(lines_of(fd), 4); /* each once, and the header line */
	close(fd);
	names_clear();
}

/* A user who makes stacks without end has half of a dictionary, and others have theirs: also one
 * who comes last. Stacks that are there already are not refused. */
static void users_have_shares(void **state)
{
	static char frames[1 << 20];
	struct stack_dict_written written = {0};
	struct stack_entry entry = {.kind = STACK_DICT_USER, .frames = frames};
	size_t taken[4] = {0};

	memset(frames, 'f', sizeof(frames) - 1);
	for (entry.uid = 1; entry.uid < 4; entry.uid++)
		for (int i = 0; i < 200; i++, entry.hash++)
			taken[entry.uid] += stack_dict_written_add(&written, &entry);
	assert_in_range(taken[1], 62, 64);
	assert_in_range(taken[2], 31, 32);
	assert_in_range(taken[3], 15, 16);
	assert_int_equal(written.refused, 600 - taken[1] - taken[2] - taken[3]);
	assert_true(written.bytes < STACK_DICT_WRITTEN_BYTES);
	entry.hash = 0;
	entry.uid = ABSENT;
	assert_false(stack_dict_written_add(&written, &entry));
	assert_int_equal(written.refused, 600 - taken[1] - taken[2] - taken[3]);
	stack_dict_written_clear(&written);
	assert_true(stack_dict_written_add(&written, &entry));
	stack_dict_written_clear(&written);
}

/* Rows of a recording's stacks, as many as are requested, that are made while they are read. */
struct endless {
	struct csv_input input;
	int64_t count, at;
	struct text rows;
};

#define ENDLESS_FRAMES "%0512lld"

static ssize_t endless_read(struct csv_input *input, char *bytes, size_t size, struct error *e)
{
	struct endless *endless = (struct endless *)input;

	if (!endless->at)
		text_add_string(&endless->rows, HEADER "a,row,of,other,columns\n");
	while (endless->rows.length < size && endless->at++ < endless->count)
		text_add_format(&endless->rows, "\"0x%llx\",\"user\",,,\"" ENDLESS_FRAMES "\"\n",
				(long long)endless->at, (long long)endless->at);
	size = endless->rows.length < size ? endless->rows.length : size;
	memcpy(bytes, text_string(&endless->rows), size);
	memmove(endless->rows.bytes, endless->rows.bytes + size, endless->rows.length - size);
	endless->rows.length -= size;
	return (ssize_t)size;
}

/* What is beyond the limit, and what is no row, are left out of a recording and counted: the rest
 * is read. */
static void limit_leaves_the_rest(void **state)
{
	const size_t held = STACK_DICT_READ_BYTES / 641; /* with the 512 bytes of frames, a NUL */
	struct endless endless = {.input.read = endless_read, .count = 600000};
	struct stack_dict *dict = NULL;
	struct error e = {0};
	char frames[600];

	assert_int_equal(stack_dict_open_input(&endless.input, "", UINT64_MAX, &dict, &e), 0);
	assert_int_equal(missed(dict, "more memory than a replay"), endless.count - held);
	assert_int_equal(missed(dict, "rows of stacks can't be read"), 1);
	snprintf(frames, sizeof(frames), ENDLESS_FRAMES, (long long)held);
	assert_string_equal(reported(dict, (int64_t)held, ABSENT).stack.both, frames);
	assert_null(reported(dict, (int64_t)held + 1, ABSENT).stack.both);
	assert_int_equal(names_refused(), 0);
	stack_dict_free(dict);
	text_done(&endless.rows);
	names_clear();
}

static void unasked_is_unwritten(void **state)
{
	struct stack_dict_file file = {0};
	struct source source = {0};
	struct error e = {0};

	assert_int_equal(stack_dict_file_begin(&file, NULL, &source, &e), 0);
	assert_null(source.stack_take);
	assert_int_equal(stack_dict_file_flush(&file, &e), 0);
	assert_int_equal(stack_dict_file_end(&file, &e), 0);
	stack_dict_file_done(&file);
	assert_int_equal(stack_dict_file_begin(&file, "/no/such/folder/x", &source, &e), -ENOENT);
	assert_non_null(strstr(e.line, "/no/such/folder/x: "));
	error_done(&e);
	stack_dict_file_done(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zero_is_a_hash),	  cmocka_unit_test(hashes_are_told),
		cmocka_unit_test(wakers_are_told),	  cmocka_unit_test(stacks_are_turned_round),
		cmocka_unit_test(what_a_row_tells_stays), cmocka_unit_test(others_are_refused),
		cmocka_unit_test(written_is_read),	  cmocka_unit_test(users_have_shares),
		cmocka_unit_test(limit_leaves_the_rest),  cmocka_unit_test(unasked_is_unwritten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
