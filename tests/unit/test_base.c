/* SPDX-License-Identifier: GPL-2.0-or-later */
/* error, memory, index, keyed, names, output, thread */
#include "unit.h"
#include "base/descriptors.h"
#include "base/error.h"
#include "base/index.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/output.h"
#include "base/sanitized.h"
#include "base/thread.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void error_replaces(void **state)
{
	struct error e = {0};

	assert_int_equal(error_set(&e, ENOENT, EXIT_USAGE, "no\n%s", "file"), -ENOENT);
	assert_string_equal(e.line, "no file");
	error_take_detail(&e, memory_text("log", 3));
	assert_string_equal(e.detail, "log");
	/* the old line may be an argument of the new one */
	assert_int_equal(error_set(&e, EIO, EXIT_FAILED, "again: %s", e.line), -EIO);
	assert_string_equal(e.line, "again: no file");
	assert_null(e.detail);
	assert_int_equal(e.exit_code, EXIT_FAILED);
	error_done(&e);
	error_done(&e);
}

static void error_is_bounded(void **state)
{
	struct error e = {0};
	char *words = memory_get(5000);

	memset(words, 'w', 4999);
	error_set(&e, EIO, EXIT_FAILED, "%s", words);
	assert_int_equal(strlen(e.line), ERROR_LINE_SIZE - 1);
	free(words);
	error_done(&e);
}

/* A failure ends with a message and an exit code, even if the function that failed set none. */
static void error_ends_with_words(void **state)
{
	struct error e = {0};

	assert_int_equal(error_end(&e, 0), EXIT_DONE);
	assert_string_equal(e.line, "");
	assert_int_equal(error_end(&e, -ENOMEM), EXIT_FAILED);
	assert_non_null(strstr(e.line, strerror(ENOMEM)));
	error_set(&e, EPERM, EXIT_HOST_CANNOT, "not here");
	assert_int_equal(error_end(&e, -EPERM), EXIT_HOST_CANNOT);
	assert_string_equal(e.line, "not here");
	error_set(&e, EPERM, EXIT_DONE, "a mistake");
	assert_int_equal(error_end(&e, -EPERM), EXIT_FAILED);
	/* an errno of 0 is not success */
	assert_int_equal(error_set(&e, 0, EXIT_FAILED, "it failed"), -EIO);
	error_done(&e);
}

static void memory_ends(bool grown)
{
	int status;
	pid_t child = fork();

	if (!child) {
		size_t capacity = 0;

		if (grown)
			memory_grow(NULL, &capacity, SIZE_MAX, 16);
		else
			memory_resize(NULL, SIZE_MAX, 16);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EXIT_FAILED);
}

static void memory_ends_the_process(void **state)
{
	memory_ends(false);
	memory_ends(true);
}

static long resident_kb(void)
{
	long kb = -1;
	char line[128];
	FILE *file = fopen("/proc/self/status", "r");

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		sscanf(line, "VmRSS: %ld", &kb);
	fclose(file);
	return kb;
}

static void *touched(size_t bytes)
{
	return memset(memory_get(bytes), 'x', bytes);
}

/* Returns memory to the kernel: blocks in the middle of used ones are freed after a larger one,
 * from which glibc would conclude to keep blocks of that size. */
static void memory_goes_back(void **state)
{
	void *large[20], *small[20];
	long before;

	if (SANITIZED)
		skip();
	memory_lock(); /* also if locking is not permitted */
	before = resident_kb();
	free(touched(16 << 20));
	for (int i = 0; i < 20; i++) {
		large[i] = touched(1 << 20);
		small[i] = touched(1000);
	}
	assert_true(resident_kb() > before + 19 * 1024);
	for (int i = 0; i < 20; i++)
		free(large[i]);
	assert_in_range(resident_kb(), 0, before + 1024);
	for (int i = 0; i < 20; i++)
		free(small[i]);
}

static void memory_grows(void **state)
{
	size_t capacity = 0, enough;
	int *list = NULL;

	for (int i = 0; i < 1000; i++) {
		list = memory_grow(list, &capacity, (size_t)i + 1, sizeof(*list));
		assert_true(capacity > (size_t)i && capacity <= (i < 32 ? 64 : 2 * (size_t)i));
		list[i] = i;
	}
	enough = capacity;
	assert_ptr_equal(memory_grow(list, &capacity, enough, sizeof(*list)), list);
	assert_int_equal(capacity, enough);
	list = memory_grow(list, &capacity, 100000, sizeof(*list));
	assert_int_equal(capacity, 100000);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(list[i], i);
	free(list);
}

static void memory_texts(void **state)
{
	char *text = memory_text("abcdef", 3), *zeroed = memory_get(0);

	assert_string_equal(text, "abc");
	assert_non_null(zeroed);
	free(zeroed);
	text = memory_resize(text, 0, 0);
	assert_non_null(text);
	free(text);
}

/* Compares with an array as the model. */
static void index_as_a_model(void **state)
{
	static uint64_t model[512];
	static bool there[512];
	struct index index = {0}, more = {0};
	uint64_t key, value, random = 1;
	size_t at = 0, count = 0, walked = 0;
	bool added;

	assert_null(index_find(&index, 3));
	assert_false(index_remove(&index, 3));
	for (int i = 0; i < 100000; i++) {
		random = hash_u64(random + (uint64_t)i);
		key = random % 512;
		if (random >> 60 < 6) {
			assert_int_equal(index_remove(&index, key << 32), there[key]);
			there[key] = false;
		} else {
			*index_put(&index, key << 32, &added) = model[key] = random;
			assert_int_equal(added, !there[key]);
			there[key] = true;
		}
	}
	for (key = 0; key < 512; key++) {
		uint64_t *found = index_find(&index, key << 32);

		assert_int_equal(found != NULL, there[key]);
		if (found)
			assert_int_equal(*found, model[key]);
		count += there[key];
	}
	assert_int_equal(index.used, count);
	while (index_next(&index, &at, &key, &value)) {
		assert_true(there[key >> 32]);
		assert_int_equal(value, model[key >> 32]);
		walked++;
	}
	assert_int_equal(walked, count);
	index_add(&more, &index);
	*index_put(&more, 3, NULL) = 4;
	assert_int_equal(more.used, count + 1);
	for (at = 0; index_next(&index, &at, &key, &value);)
		assert_int_equal(*index_find(&more, key), value);
	index_empty(&more);
	assert_int_equal(more.used, 0);
	assert_null(index_find(&more, 3));
	at = 0;
	assert_false(index_next(&more, &at, &key, &value));
	*index_put(&more, 5, NULL) = 6;
	assert_int_equal(*index_find(&more, 5), 6);
	index_clear(&more);
	index_clear(&index);
	assert_null(index_find(&index, 0));
}

static void id_map_like_a_plain_one(void **state)
{
	static uint32_t model[512];
	struct id_map map = {0};
	uint64_t random = 1, key;

	assert_int_equal(id_map_get(&map, 3), 0);
	id_map_set(&map, 3, 0);
	assert_int_equal(map.pages.used, 0);
	for (int i = 0; i < 100000; i++) {
		random = hash_u64(random + (uint64_t)i);
		key = random % 512;
		model[key] = random >> 60 < 6 ? 0 : (uint32_t)(random >> 8);
		id_map_set(&map, key * 7 + (1ull << 40), model[key]);
		key = random >> 32 & 511;
		assert_int_equal(id_map_get(&map, key * 7 + (1ull << 40)), model[key]);
	}
	for (key = 0; key < 512; key++)
		id_map_set(&map, key * 7 + (1ull << 40), 0);
	assert_int_equal(map.pages.used, 0);
	id_map_set(&map, UINT64_MAX, 4);
	assert_int_equal(id_map_get(&map, UINT64_MAX), 4);
	id_map_clear(&map);
	assert_int_equal(id_map_get(&map, UINT64_MAX), 0);
}

static void names_are_one(void **state)
{
	char buffer[] = "worker-1 and more";
	const char *name = name_of(buffer, 8);

	assert_string_equal(name, "worker-1");
	assert_ptr_equal(name, name_of_string("worker-1"));
	assert_ptr_not_equal(name, name_of_string("worker-2"));
	assert_ptr_equal(name_of("a\0b", 3), name_of_string("a"));
	assert_ptr_equal(name_of_string(""), name_of("x", 0));
	assert_null(name_of_string(NULL));
	names_clear();
}

/* Names of more threads than have a slot, and short names with the rest of a longer one after the
 * NUL. */
static void names_of_threads(void **state)
{
	static const char *seen[10000], *kept;
	char comm[NAMES_COMM_SIZE];
	uint64_t refused;

	for (int i = 0; i < 30000; i++) {
		const char **name = &seen[i / 2 % 10000];

		memset(comm, i % 2 ? 'x' : 0, sizeof(comm));
		snprintf(comm, sizeof(comm), "worker-%d", i / 2 % 10000);
		assert_string_equal(name_of_comm(comm), comm);
		if (*name)
			assert_ptr_equal(name_of_comm(comm), *name);
		*name = name_of_comm(comm);
	}
	assert_true(names_comms_bytes() > 10000 * strlen("worker-1"));
	kept = name_of_string(comm);
	names_comms_clear();
	assert_int_equal(names_comms_bytes(), 0);
	assert_ptr_equal(name_of_string(comm), kept);
	memset(comm, 'a', sizeof(comm));
	assert_string_equal(name_of_comm(comm), "aaaaaaaaaaaaaaaa");
	names_clear();
	assert_string_equal(name_of_comm(comm), "aaaaaaaaaaaaaaaa");
	names_clear();
	names_set_limit(1);
	refused = names_refused();
	for (int i = 1; i < 3; i++) {
		assert_string_equal(name_of_comm(comm), NAMES_FULL);
		assert_int_equal(names_refused() - refused, i);
	}
	names_clear();
	names_set_limit(NAMES_LIMIT_BYTES);
	assert_string_equal(name_of_comm(comm), "aaaaaaaaaaaaaaaa");
	names_clear();
}

/* Permanent strings take no capacity from transient ones. */
static void names_transient_are_bounded(void **state)
{
	char word[16];

	names_set_limit(1000);
	for (int i = 0; i < 1000; i++) {
		snprintf(word, sizeof(word), "n%d", i);
		name_of_string(word);
	}
	assert_string_equal(name_of_string("kept"), NAMES_FULL);
	assert_string_equal(name_transient_string("transient"), "transient");
	names_clear();
	names_set_limit(NAMES_LIMIT_BYTES);
}

/* A transient string has the address of the first equal one, and is freed. */
static void names_are_transient(void **state)
{
	const char *transient = name_transient_string("file"), *kept = name_of_string("root");
	size_t bytes = names_transient_bytes();

	assert_string_equal(transient, "file");
	assert_ptr_equal(name_transient("file and more", 4), transient);
	assert_ptr_equal(name_transient_string("root"), kept);
	assert_ptr_not_equal(name_of_string("file"), transient);
	assert_ptr_equal(name_transient_string("file"), transient);
	assert_int_equal(names_transient_bytes(), bytes);
	assert_null(name_transient_string(NULL));
	names_transient_clear();
	assert_int_equal(names_transient_bytes(), 0);
	assert_ptr_equal(name_transient_string("file"), name_of_string("file"));
	assert_ptr_equal(name_of_string("root"), kept);
	names_set_limit(4 * bytes);
	for (int i = 0; i < 100; i++) {
		char word[16];

		snprintf(word, sizeof(word), "file %d", i);
		assert_string_equal(name_transient_string(word), word);
		names_transient_clear();
	}
	assert_int_equal(names_refused(), 0);
	names_clear();
	names_set_limit(NAMES_LIMIT_BYTES);
}

static void names_are_bounded(void **state)
{
	char word[16];
	const char *first;

	names_set_limit(1000);
	first = name_of_string("first");
	for (int i = 0; i < 1000; i++) {
		snprintf(word, sizeof(word), "n%d", i);
		assert_non_null(name_of_string(word));
	}
	assert_string_equal(name_of_string("one too many"), NAMES_FULL);
	assert_ptr_equal(name_of_string("first"), first);
	assert_true(names_refused() > 900);
	names_clear();
	assert_int_equal(names_refused(), 0);
	names_set_limit(NAMES_LIMIT_BYTES);
}

/* The soft limit is raised as far as possible, and no user of descriptors gets all. */
static void descriptors_are_shared(void **state)
{
	struct rlimit limit;
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		unsigned int half, quarter, few;

		limit = (struct rlimit){64, 400};
		if (setrlimit(RLIMIT_NOFILE, &limit))
			_exit(1);
		half = descriptors_share(2048, 2);
		quarter = descriptors_share(4096, 4);
		few = descriptors_share(7, 4);
		if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur != 400)
			_exit(2);
		_exit(half == 200 && quarter == 100 && few == 7 ? 0 : 3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void output_errors(void **state)
{
	int ends[2], full = open("/dev/full", O_WRONLY);

	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(output_write(full, "x\n", 2), -ENOSPC);
	assert_int_equal(output_write(full, "", 0), 0);
	close(full);
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	assert_int_equal(output_write(ends[1], "x\n", 2), -EPIPE);
	close(ends[1]);
	assert_int_equal(output_write(ends[1], "x\n", 2), -EBADF);
}

/* Output to a file that can't grow past 10 bytes, as on a full disk, ends with a whole line. */
static void output_ends_with_a_line(void **state)
{
	char path[] = "/tmp/tsnap-test-XXXXXX", content[64] = "";
	struct rlimit before, limit;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	limit.rlim_cur = 10;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(output_write(fd, "one\n", 4), 0);
	assert_int_equal(output_write(fd, "two\nthree\nfour\n", 15), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(pread(fd, content, sizeof(content), 0), 8);
	assert_string_equal(content, "one\ntwo\n");
	close(fd);
}

/* Output that needs no reader, unlike a terminal; and as much as a pipe holds. */
static void output_that_is_ready(void **state)
{
	int nothing = open("/dev/null", O_WRONLY), terminal = posix_openpt(O_RDWR | O_NOCTTY);
	int ends[2];

	assert_true(output_is_ready(nothing, 1 << 30));
	assert_false(output_is_ready(terminal, 1));
	assert_int_equal(pipe(ends), 0);
	assert_true(output_is_ready(ends[1], 4096));
	assert_false(output_is_ready(ends[1], 1 << 30));
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_false(output_is_ready(ends[1], 1));
	close(ends[0]);
	close(ends[1]);
	close(terminal);
	close(nothing);
}

/* Output waits for a slow reader, on a pipe that does not block. */
static void output_waits(void **state)
{
	static char bytes[300000], buffer[65536];
	size_t got = 0;
	int ends[2], status;
	ssize_t more;
	pid_t child;

	memset(bytes, '\n', sizeof(bytes));
	assert_int_equal(pipe(ends), 0);
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	child = fork();
	if (!child) {
		close(ends[0]);
		_exit(output_write(ends[1], bytes, sizeof(bytes)) ? 1 : 0);
	}
	close(ends[1]);
	usleep(20000);
	while ((more = read(ends[0], buffer, sizeof(buffer))) > 0)
		got += (size_t)more;
	assert_int_equal(got, sizeof(bytes));
	close(ends[0]);
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

static void *signals_read(void *mask)
{
	pthread_sigmask(SIG_SETMASK, NULL, mask);
	return NULL;
}

static void threads_take_no_signals(void **state)
{
	sigset_t there, here;
	pthread_t thread;

	sigemptyset(&there);
	assert_int_equal(thread_begin(&thread, signals_read, &there), 0);
	pthread_join(thread, NULL);
	signals_read(&here);
	assert_true(sigismember(&there, SIGINT) && sigismember(&there, SIGTERM));
	assert_false(sigismember(&here, SIGINT) || sigismember(&here, SIGTERM));
}

/* Rows remain as they were put, in that order, while the array grows. */
static void keyed_keeps_rows(void **state)
{
	struct keyed keyed = {0};
	bool added;
	int *row;

	assert_null(keyed_find(&keyed, sizeof(*row), 0));
	for (int i = 0; i < 1000; i++) {
		row = keyed_put(&keyed, sizeof(*row), (uint64_t)i * i, &added);
		assert_true(added);
		assert_int_equal(*row, 0);
		*row = i + 1;
	}
	row = keyed_put(&keyed, sizeof(*row), 81, &added);
	assert_false(added);
	assert_int_equal(*row, 10);
	assert_int_equal(keyed.count, 1000);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(((int *)keyed.rows)[i], i + 1);
	assert_null(keyed_find(&keyed, sizeof(*row), 82));
	keyed_empty(&keyed);
	assert_null(keyed_find(&keyed, sizeof(*row), 81));
	assert_int_equal(*(int *)keyed_put(&keyed, sizeof(*row), 81, NULL), 0);
	keyed_done(&keyed);
	keyed_done(&keyed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(error_replaces),

		cmocka_unit_test(error_is_bounded),
		cmocka_unit_test(error_ends_with_words),

		cmocka_unit_test(memory_ends_the_process),

		cmocka_unit_test(memory_grows),
		cmocka_unit_test(keyed_keeps_rows),
		cmocka_unit_test(memory_goes_back),
		cmocka_unit_test(memory_texts),

		cmocka_unit_test(index_as_a_model),

		cmocka_unit_test(id_map_like_a_plain_one),
		cmocka_unit_test(names_are_one),
		cmocka_unit_test(names_of_threads),

		cmocka_unit_test(names_are_transient),

		cmocka_unit_test(names_transient_are_bounded),
		cmocka_unit_test(names_are_bounded),

		cmocka_unit_test(descriptors_are_shared),
		cmocka_unit_test(output_errors),

		cmocka_unit_test(output_ends_with_a_line),

		cmocka_unit_test(output_that_is_ready),
		cmocka_unit_test(output_waits),

		cmocka_unit_test(threads_take_no_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
