/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The dictionary of stacks: written stacks are read, once each; a file that is no dictionary is
 * refused. */
#include "unit.h"
#include "base/names.h"
#include "recording/stack_dict_file.h"
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

	sample.ustack = user;
	sample.kstack = kernel;
	stack_dict_fill(dict, &sample);
	return sample;
}

static void hashes_are_told(void **state)
{
	struct stack_dict *dict = NULL;
	struct error e = {0};
	struct sample sample;

	(void)state;
	assert_int_equal(dict_of(HEADER "\"0x1\",\"user\",\"f\",\"main>f\",\"main;f\"\n"
					"\"0xffffffffffffffff\",\"kernel\",\"k\",\"k\",\"k_[k]\"\n"
					"\"0x1\",\"user\",\"again\",,\n" HEADER
					"\"0x3\",\"user\",,,\"\\x1b;\\\\\"\n"
					"frames,kind,hash\n\"x\"\"y\",\"user\",\"0x4\"\n"
					"\"0x5\",\"use",
				 &dict, &e),
			 0);
	sample = reported(dict, 1, -1);
	assert_string_equal(sample.ufunc, "f");
	assert_string_equal(sample.ufuncs, "main>f");
	assert_string_equal(sample.kfunc, "k");
	assert_string_equal(sample.stack, "main;f;k_[k]");
	assert_ptr_equal(reported(dict, 1, -1).stack, sample.stack);
	assert_string_equal(reported(dict, 1, ABSENT).stack, "main;f");
	assert_string_equal(reported(dict, ABSENT, -1).stack, "k_[k]");
	assert_string_equal(reported(dict, 3, ABSENT).stack, "\x1b;\\");
	assert_string_equal(reported(dict, 4, ABSENT).stack, "x\"y");
	assert_int_equal(stack_dict_lacking(dict), 0);
	/* cut off; of the other kind; absent is not looked up */
	assert_null(reported(dict, 5, ABSENT).stack);
	assert_null(reported(dict, -1, 1).ufunc);
	assert_null(reported(dict, ABSENT, ABSENT).stack);
	assert_int_equal(stack_dict_lacking(dict), 3);
	stack_dict_free(dict);
	names_clear();
}

/* A hash of 0 is one like any other; absent means no stack. */
static void zero_is_a_hash(void **state)
{
	struct stack_dict *dict = NULL;
	struct error e = {0};

	(void)state;
	assert_int_equal(dict_of(HEADER "\"0x0\",\"user\",,,\"zero\"\n"
					"\"0x2\",\"kernel\",,,\"k_[k]\"\n",
				 &dict, &e),
			 0);
	assert_string_equal(reported(dict, ABSENT, 2).stack, "k_[k]");
	assert_string_equal(reported(dict, 0, 2).stack, "zero;k_[k]");
	stack_dict_free(dict);
	names_clear();
}

static void wakers_are_told(void **state)
{
	struct sample sample = *sample_absent();
	struct stack_dict *dict = NULL;
	struct error e = {0};

	(void)state;
	assert_int_equal(dict_of(HEADER "\"0x1\",\"user\",\"f\",\"main>f\",\"main;f_[l]\"\n"
					"\"0x2\",\"kernel\",\"k\",\"k\",\"a_[k];k_[k]\"\n",
				 &dict, &e),
			 0);
	sample.waker_ustack = 1;
	sample.waker_kstack = 2;
	stack_dict_fill(dict, &sample);
	assert_string_equal(sample.waker_stack, "k_[w];a_[w];f_[w];main_[w]");
	assert_null(sample.stack);
	stack_dict_free(dict);
	names_clear();
}

static void stacks_are_turned_round(void **state)
{
	/* transient strings first: if there is a permanent one already, it is used instead */
	const char *waker = waker_stack_of("main", NULL, name_transient);
	const char *halves = stack_of_halves("a;b", "k_[k]", name_transient);

	(void)state;
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

	(void)state;
	assert_int_equal(dict_of(HEADER "\"0x1\",\"user\",\"f\",\"f\",\"f\"\n", &dict, &e), 0);
	sample.ustack = 1;
	sample.stack = "recorded";
	stack_dict_fill(dict, &sample);
	assert_string_equal(sample.stack, "recorded");
	assert_string_equal(sample.ufunc, "f");
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
	(void)state;
	fails("", "empty");
	fails("timestamp,tid\n", "line 1: no header line with hash, kind and frames");
	fails("hash,kind\n", "no header line");
	fails("hash,kind,frames,hash\n", "hash: two such columns");
	fails(HEADER "\"0x1\",\"user\"\n", "line 2: not as many columns");
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
	struct source source = {.stacks_end = source_end};
	struct stack_dict_file file = {0};
	struct stack_dict *dict = NULL;
	struct error e = {0};
	char path[64];
	int fd = content_open("what was there before", path);

	(void)state;
	assert_int_equal(stack_dict_file_begin(&file, path, &source, &e), 0);
	give(&source, INT64_MAX, hostile);
	give(&source, INT64_MIN + 1, "b");
	assert_int_equal(stack_dict_file_flush(&file, &e), 0);
	give(&source, INT64_MAX, "another of the same hash");
	/* the bytes written so far are whole at any time */
	assert_int_equal(stack_dict_open(path, UINT64_MAX, &dict, &e), 0);
	assert_string_equal(reported(dict, INT64_MAX, ABSENT).stack, hostile);
	assert_null(reported(dict, 7, ABSENT).stack);
	stack_dict_free(dict);
	assert_int_equal(stack_dict_file_end(&file, &e), 0);
	stack_dict_file_done(&file);
	assert_int_equal(stack_dict_open(path, UINT64_MAX, &dict, &e), 0);
	assert_string_equal(reported(dict, INT64_MAX, ABSENT).stack, hostile);
	assert_null(reported(dict, INT64_MAX, ABSENT).ufunc);
	assert_string_equal(reported(dict, INT64_MIN + 1, ABSENT).ufuncs, "a>b");
	assert_string_equal(reported(dict, 7, ABSENT).stack, "at;the;end");
	stack_dict_free(dict);
	assert_int_equal(lines_of(fd), 4); /* each once, and the header line */
	close(fd);
	names_clear();
}

/* Limit of a dictionary: no more than that is read again; stacks that are there already are not
 * refused. */
static void limit_is_kept(void **state)
{
	struct stack_dict_file file = {0};
	struct source source = {0};
	struct error e = {0};
	char path[64];
	int fd = content_open("", path);

	(void)state;
	assert_int_equal(stack_dict_file_begin(&file, path, &source, &e), 0);
	for (int64_t hash = 1; hash <= STACK_DICT_MAX + 2; hash++) {
		give(&source, hash, "f");
		if (hash % 1024 == 0)
			assert_int_equal(stack_dict_file_flush(&file, &e), 0);
	}
	give(&source, 1, "f");
	assert_int_equal(stack_dict_file_flush(&file, &e), 0);
	assert_int_equal(file.refused, 2);
	stack_dict_file_done(&file);
	assert_int_equal(lines_of(fd), STACK_DICT_MAX + 1);
	close(fd);
}

static void unasked_is_unwritten(void **state)
{
	struct stack_dict_file file = {0};
	struct source source = {0};
	struct error e = {0};

	(void)state;
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
		cmocka_unit_test(written_is_read),	  cmocka_unit_test(limit_is_kept),
		cmocka_unit_test(unasked_is_unwritten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
