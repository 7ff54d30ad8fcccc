/* SPDX-License-Identifier: GPL-2.0-or-later */
/* features, fields, probes, embedded text: the tables, and output made from them without a
 * kernel */
#include "unit.h"
#include "kernel/program_text.h"
#include "kernel/feature_table.h"
#include "kernel/field_table.h"
#include "kernel/pid_namespace.h"
#include "kernel/probe_table.h"
#include "kernel/share.h"

#include <stdlib.h>
#include <unistd.h>

static bool has_bits(void *of, const struct probe_row *row)
{
	return *(unsigned int *)of >> row->wants & 1;
}

/* a kernel like RHEL 7's, without sched_waking */
static bool has_no_waking(void *of, const struct probe_row *row)
{
	return has_bits(of, row) && strcmp(row->event, "sched:sched_waking") != 0;
}

#define BIT(feature) (1u << (feature))
#define ALL_GROUPS (GROUP_BIT(GROUP_COUNT) - 1)

static void facts_have_names(void **state)
{
	for (int i = 0; i < FEATURE_COUNT; i++) {
		assert_true(feature_rows[i].name && *feature_rows[i].name && *feature_rows[i].help);
		assert_non_null(feature_rows[i].try);
		assert_true(i == FEATURE_UNWINDER || i == FEATURE_SWITCH_SECOND
				    ? !feature_rows[i].since
				    : feature_rows[i].since >= FEATURE_SINCE(3, 19) &&
					      feature_rows[i].since <= FEATURE_SINCE(6, 255));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(feature_rows[i].name, feature_rows[j].name);
	}
}

static void features_are_taken_away(void **state)
{
	struct features features = {0};
	struct error e = {0};

	assert_int_equal(features_take_away(&features, NULL, &e), 0);
	assert_int_equal(features_take_away(&features, "raw_tracepoint,map_batch", &e), 0);
	assert_false(feature_has(&features, FEATURE_RAW_TRACEPOINT));
	assert_false(feature_has(&features, FEATURE_MAP_BATCH));
	assert_false(feature_has(&features, FEATURE_TYPED_TRACEPOINT)); /* is a raw one, too */
	assert_int_equal(features.state[FEATURE_KPROBE], FEATURE_UNTRIED);
	assert_int_equal(features_take_away(&features, "map_batc", &e), -EINVAL);
	assert_int_equal(e.exit_code, EXIT_USAGE);
	assert_non_null(strstr(e.line, "'map_batc'"));
	/* all features have names, and the line is whole */
	for (int i = 0; i < FEATURE_COUNT; i++)
		assert_non_null(strstr(e.line, feature_rows[i].name));
	assert_non_null(strstr(e.line, "all that came later"));
	error_done(&e);
}

/* kernel-4.14 removes what came after 4.14 and nothing else. */
static void releases_are_taken_away(void **state)
{
	const char *const wrong[] = {"kernel-",	     "kernel-4",   "kernel-4.",	 "kernel-4.14x",
				     "kernel-4.999", "kernel-0.0", "Kernel-4.14"};
	struct features features = {0};
	struct error e = {0};

	assert_int_equal(features_take_away(&features, "kernel-4.14,kprobe", &e), 0);
	for (int i = 0; i < FEATURE_COUNT; i++)
		assert_int_equal(features.state[i],
				 i == FEATURE_KPROBE || i == FEATURE_SWITCH_FIRST ||
						 i == FEATURE_SWITCH_SECOND ||
						 feature_rows[i].since > FEATURE_SINCE(4, 14)
					 ? FEATURE_TAKEN_AWAY
					 : FEATURE_UNTRIED);
	assert_int_equal(features.state[FEATURE_RAW_TRACEPOINT], FEATURE_TAKEN_AWAY);
	assert_int_equal(features.state[FEATURE_READ_INTO_MAP], FEATURE_UNTRIED);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(features_take_away(&features, wrong[i], &e), -EINVAL);
		error_done(&e);
	}
}

static void probes_have_fragments(void **state)
{
	assert_non_null(embedded_text("thread_state.h"));
	assert_non_null(embedded_text("maps.bpf.c"));
	assert_non_null(embedded_text("probe.bpf.c"));
	assert_null(embedded_text("no such file"));
	for (size_t i = 0; i < probe_row_count; i++) {
		const struct probe_row *row = &probe_rows[i];
		char file[64];

		snprintf(file, sizeof(file), "%s.bpf.c", row->name);
		assert_non_null(embedded_text(file));
		assert_true(!row->knob || strstr(embedded_text(file), row->knob));
		assert_non_null(probe_kind_names[row->kind]);
		/* names of programs that the kernel shows hold 15 characters */
		assert_true(*row->name && strlen(row->name) <= 15);
	}
	for (int group = 0; group < GROUP_COUNT; group++) {
		bool given = false;

		for (size_t i = 0; i < probe_row_count; i++)
			given |= probe_rows[i].gives == (enum probe_group)group;
		/* those of the user's own come with --probe */
		assert_true(given == (group < GROUP_OWN));
		assert_true(*probe_group_rows[group].name);
		assert_true(group == GROUP_REQUEST || *probe_group_rows[group].without);
	}
}

static void plan_takes_the_best(void **state)
{
	unsigned int all = ~0u, old = BIT(FEATURE_TRACEPOINT) | BIT(FEATURE_KPROBE),
		     probe = BIT(FEATURE_KPROBE) | BIT(FEATURE_SWITCH_FIRST),
		     second = BIT(FEATURE_KPROBE) | BIT(FEATURE_SWITCH_SECOND),
		     neither = BIT(FEATURE_KPROBE), raw = old | BIT(FEATURE_RAW_TRACEPOINT);
	struct probe_plan plan;
	struct error e = {0};

	assert_int_equal(probe_plan_make(ALL_GROUPS, has_bits, &all, &plan, &e), 0);
	assert_int_equal(plan.chosen[GROUP_SWITCH]->kind, PROBE_TYPED_TRACEPOINT);
	assert_int_equal(plan.chosen[GROUP_NEW]->kind, PROBE_RAW_TRACEPOINT);
	assert_int_equal(plan.chosen[GROUP_CLOCK]->kind, PROBE_LOOK);
	assert_int_equal(probe_plan_make(ALL_GROUPS, has_bits, &old, &plan, &e), 0);
	assert_int_equal(plan.chosen[GROUP_SWITCH]->kind, PROBE_TRACEPOINT);
	assert_int_equal(plan.chosen[GROUP_EXIT]->kind, PROBE_TRACEPOINT);
	assert_null(plan.chosen[GROUP_CLOCK]);
	assert_null(plan.chosen[GROUP_BLOCK_MERGE]); /* tracepoints report no address */
	assert_int_equal(probe_plan_make(ALL_GROUPS, has_no_waking, &old, &plan, &e), 0);
	assert_int_equal(plan.chosen[GROUP_SWITCH]->kind, PROBE_TRACEPOINT);
	assert_int_equal(plan.chosen[GROUP_WAKE]->kind, PROBE_KPROBE);
	assert_int_equal(probe_plan_make(ALL_GROUPS, has_bits, &raw, &plan, &e), 0);
	assert_int_equal(plan.chosen[GROUP_BLOCK_MERGE]->kind, PROBE_KPROBE);
	assert_int_equal(probe_plan_make(ALL_GROUPS, has_bits, &probe, &plan, &e), 0);
	assert_int_equal(plan.chosen[GROUP_SWITCH]->kind, PROBE_KPROBE);
	assert_string_equal(plan.chosen[GROUP_SWITCH]->event, "finish_task_switch");
	assert_string_equal(plan.chosen[GROUP_SWITCH]->knob, "SCHED_SWITCH_KPROBE");
	assert_null(plan.chosen[GROUP_EXEC]);
	assert_int_equal(probe_plan_make(ALL_GROUPS, has_bits, &second, &plan, &e), 0);
	assert_string_equal(plan.chosen[GROUP_SWITCH]->knob, "SCHED_SWITCH_KPROBE_SECOND");
	/* an argument that was not found is not guessed */
	assert_int_equal(probe_plan_make(ALL_GROUPS, has_bits, &neither, &plan, &e), -ENOTSUP);
	error_done(&e);
}

static void plan_keeps_to_needs(void **state)
{
	unsigned int all = ~0u;
	struct probe_plan plan;
	struct error e = {0};

	assert_int_equal(probe_plan_make(0, has_bits, &all, &plan, &e), 0);
	assert_non_null(plan.chosen[GROUP_SWITCH]); /* always required */
	assert_null(plan.chosen[GROUP_WAKE]);
	assert_int_equal(probe_plan_make(GROUP_BIT(GROUP_WAKE), has_bits, &all, &plan, &e), 0);
	assert_non_null(plan.chosen[GROUP_WAKE]);
}

static void plan_without_a_way_fails(void **state)
{
	unsigned int none = BIT(FEATURE_PERF_CLOCK);
	struct probe_plan plan = {{&probe_rows[1]}}, before = plan;
	struct error e = {0};

	assert_int_equal(probe_plan_make(ALL_GROUPS, has_bits, &none, &plan, &e), -ENOTSUP);
	assert_int_equal(e.exit_code, EXIT_HOST_CANNOT);
	assert_memory_equal(&plan, &before, sizeof(plan));
}

/* Makes a layout that a kernel may have: fields in the table's order, with gaps; every second old
 * name. */
static struct field_layout layout_example(void)
{
	struct field_layout layout = {.sets = FIELDS_ALL};

	for (size_t i = 0; i < field_count; i++) {
		layout.offset[i] = (uint32_t)(i * 40);
		layout.name[i] = i % 2 && field_rows[i].names[1] ? 1 : 0;
	}
	return layout;
}

static void header_has_each_field(void **state)
{
	struct field_layout layout = layout_example();
	struct text text = {0};

	field_header_write(&layout, &text);
	for (size_t i = 0; i < field_count; i++) {
		const char *name = field_rows[i].names[layout.name[i]];
		char words[256];

		snprintf(words, sizeof(words), "#define HAVE_%s_%s 1\n", field_rows[i].of, name);
		assert_non_null(strstr(text_string(&text), words));
		snprintf(words, sizeof(words), "offsetof(struct %s, %s) == %u,", field_rows[i].of,
			 name, layout.offset[i]);
		assert_non_null(strstr(text_string(&text), words));
	}
	assert_null(strstr(text_string(&text), "(null)"));
	text_done(&text);
}

/* Writes text to a file, and reads it as offsets. */
static int offsets_try(const char *text, struct field_layout *layout, struct error *e)
{
	char path[] = "/tmp/tsnap-unit-XXXXXX";
	int fd = mkstemp(path), result;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	result = field_offsets_read(path, "6.1.0-test", "x86_64", layout, e);
	unlink(path);
	return result;
}

static void offsets_come_back(void **state)
{
	struct field_layout layout = layout_example(), read = {.sets = FIELDS_ALL};
	struct text text = {0};
	struct error e = {0};

	field_offsets_write(&layout, "6.1.0-test", "x86_64", &text);
	assert_int_equal(offsets_try(text_string(&text), &read, &e), 0);
	assert_memory_equal(&read, &layout, sizeof(read));
	text_done(&text);
}

/* Fields of a set may be missing, and are not looked for if the set is not needed. */
static void sets_of_fields_may_be_lacking(void **state)
{
	struct field_layout layout = layout_example(), read = {.sets = FIELDS_ALL};
	const size_t disk = field_index("request", "rq_disk");
	struct text text = {0};
	struct error e = {0};

	layout.lacking[disk] = true;
	assert_true(field_sets_there(&layout, FIELDS_BLOCK)); /* the queue has the disk */
	field_offsets_write(&layout, "6.1.0-test", "x86_64", &text);
	assert_null(strstr(text_string(&text), "rq_disk"));
	assert_int_equal(offsets_try(text_string(&text), &read, &e), 0);
	assert_true(read.lacking[disk] && !field_there(&read, disk));
	assert_true(field_sets_there(&read, FIELDS_BLOCK));
	text_clear(&text);
	field_header_write(&read, &text);
	assert_null(strstr(text_string(&text), "rq_disk"));
	assert_non_null(strstr(text_string(&text), "HAVE_request_queue_disk"));
	read.lacking[field_index("request_queue", "disk")] = true;
	assert_false(field_sets_there(&read, FIELDS_BLOCK));
	read = layout;
	read.lacking[field_index("request", "cmd_flags")] = true;
	assert_false(field_sets_there(&read, FIELDS_BLOCK));
	assert_true(field_sets_there(&read, 0));
	text_clear(&text);
	read.sets = 0;
	field_header_write(&read, &text);
	assert_null(strstr(text_string(&text), "struct request"));
	text_done(&text);
}

static void bad_offsets_are_refused(void **state)
{
	static const char head[] = "tsnap offsets 1\nrelease 6.1.0-test\nmachine x86_64\n";
	static const struct {
		bool has_header;
		const char *text, *words;
	} rows[] = {
		{false, "", "not an offsets file"},
		{false, "tsnap offsets 1\n", "not an offsets file"},
		{false, "tsnap offsets 2\nrelease 6.1.0-test\nmachine x86_64\n", "line 1"},
		{false, "tsnap offsets 1\nrelease 5.10.0\nmachine x86_64\n", "'release 5.10.0'"},
		{false, "tsnap offsets 1\nrelease 6.1.0-test\nmachine arm\n", "'machine arm'"},
		{true, "", "lacks task_struct.__state"},
		{true, "task_struct.pid", "line 4"},
		{true, "task_struct.pid -5", "line 4"},
		{true, "task_struct.pid 99999999", "line 4"},
		{true, "task_struct.pid 8 8", "line 4"},
		{true, "task_struct pid.8", "line 4"},
		{true, "\x01\xff.\xfe 1", "lacks"},
	};
	struct field_layout layout = layout_example(), before = layout;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct text text = {0};
		struct error e = {0};

		text_add_string(&text, rows[i].has_header ? head : "");
		text_add_string(&text, rows[i].text);
		assert_int_equal(offsets_try(text_string(&text), &layout, &e), -EINVAL);
		if (!strstr(e.line, rows[i].words))
			fail_msg("row %zu: %s", i, e.line);
		assert_memory_equal(&layout, &before, sizeof(layout));
		text_done(&text);
		error_done(&e);
	}
}

static void overlapping_offsets_are_refused(void **state)
{
	struct field_layout layout = layout_example();
	struct text text = {0};
	struct error e = {0};

	layout.offset[1] = layout.offset[2];
	field_offsets_write(&layout, "6.1.0-test", "x86_64", &text);
	assert_int_equal(offsets_try(text_string(&text), &layout, &e), -EINVAL);
	assert_non_null(strstr(e.line, "overlap"));
	text_done(&text);
	error_done(&e);
}

static void text_names_its_files(void **state)
{
	const struct program_knobs knobs = {.threads_max = 77, .stack_registers = 16216};
	const struct field_layout layout = layout_example();
	unsigned int all = ~0u;
	struct probe_plan plan;
	struct text text = {0};
	struct error e = {0};

	assert_int_equal(probe_plan_make(ALL_GROUPS, has_bits, &all, &plan, &e), 0);
	program_text_write(&plan, &layout, &knobs, &text);
	assert_non_null(strstr(text_string(&text), "#define THREADS_MAX 77\n"));
	assert_non_null(strstr(text_string(&text), "#define KERNEL_STACK_REGISTERS 16216\n"));
	assert_non_null(strstr(text_string(&text), "#define SCHED_SWITCH_RAW 1\n"));
	assert_null(strstr(text_string(&text), "#define SCHED_SWITCH_KPROBE 1\n"));
	assert_non_null(
		strstr(text_string(&text), "#define bpf_probe_read_kernel bpf_probe_read\n"));
	assert_non_null(strstr(text_string(&text), "#line 1 \"bpf_text/sched_switch.bpf.c\"\n"));
	assert_non_null(strstr(text_string(&text), embedded_text("thread_state.h")));
	assert_null(strstr(text_string(&text), "#include <linux/"));
	text_done(&text);
}

static void text_traces_who_is_wanted(void **state)
{
	struct program_knobs knobs = {.latency_kinds = 1, .read_into_map = true};
	const struct field_layout layout = layout_example();
	struct probe_plan plan = {{0}};
	struct text text = {0};

	program_text_write(&plan, &layout, &knobs, &text);
	assert_null(strstr(text_string(&text), "#define TRACE_WANTED"));
	text_clear(&text);
	knobs.trace_pids = "12,3";
	program_text_write(&plan, &layout, &knobs, &text);
	assert_non_null(strstr(text_string(&text),
			       "#define TRACE_WANTED(identity) ((0 | is_same((identity).tgid, "
			       "12u) | is_same((identity).tgid, 3u)) && 1)\n"));
	text_clear(&text);
	knobs.trace_pids = "1,2,3,4,5,6,7,8,9";
	knobs.trace_tids = "7";
	program_text_write(&plan, &layout, &knobs, &text);
	assert_non_null(
		strstr(text_string(&text),
		       "#define TRACE_WANTED(identity) (1 && (0 | is_same((identity).tid, 7u)))"));
	text_clear(&text);
	knobs.trace_calls = (struct trace_calls){2, {74, 39}};
	program_text_write(&plan, &layout, &knobs, &text);
	assert_non_null(strstr(text_string(&text),
			       "#define CALL_WANTED(call) ((call) >= 512 || (0 | is_same(call, "
			       "74u) | is_same(call, 39u)))\n"));
	/* lists of ids are too complex for the verifiers of 4.9 to 4.13 */
	text_clear(&text);
	knobs.read_into_map = false;
	program_text_write(&plan, &layout, &knobs, &text);
	assert_null(strstr(text_string(&text), "#define TRACE_WANTED"));
	text_done(&text);
}

static void text_translates_ids_on_demand(void **state)
{
	struct program_knobs knobs = {.pids = {.parent_tid = 5}};
	const struct field_layout layout = layout_example();
	struct probe_plan plan = {{0}};
	struct text text = {0};

	program_text_write(&plan, &layout, &knobs, &text);
	assert_null(strstr(text_string(&text), "#define PID_NAMESPACE"));
	text_clear(&text);
	knobs.pids = (struct pid_namespace){
		.translated = true, .address = 0xffff888012345678, .level = 2, .number_bytes = 16};
	program_text_write(&plan, &layout, &knobs, &text);
	assert_non_null(strstr(text_string(&text), "#define PID_NAMESPACE 0xffff888012345678ull\n"
						   "#define PID_NAMESPACE_LEVEL 2\n"
						   "#define PID_NUMBER_BYTES 16\n"));
	text_done(&text);
}

/* Numbers of a thread that is 700 to the kernel, 70 one namespace down and 7 in its own, as struct
 * upid since 4.15 and before. */
static void numbers_of_namespaces(void **state)
{
	static const uint64_t new[] = {700, 0xa0, 70, 0xa1, 7, 0xa2, 0, 0, 0, 0, 0, 0};
	static const uint64_t old[] = {700, 0xa0, 0, 0xc0, 70, 0xa1, 0, 0xc1, 7, 0xa2, 0, 0xc2};
	/* one number in both inner namespaces */
	static const uint64_t twice[] = {700, 0xa0, 0, 0xc0, 7, 0xa1, 0, 0xc1, 7, 0xa2, 0, 0xc2};
	static const uint64_t other[] = {700, 0xa0, 70, 0xa1, 8, 0xa2, 9, 0, 0, 0, 0, 0};
	static const struct {
		const uint64_t *words;
		uint32_t level;
		int depth, result;
		bool translated;
		uint64_t address;
		uint32_t at, bytes;
	} rows[] = {
		{new, 2, 1, 0, true, 0xa2, 2, 16}, /* /proc is of its own namespace */
		{old, 2, 1, 0, true, 0xa2, 2, 32},
		{new, 2, 2, 0, true, 0xa1, 1, 16}, /* /proc is of the namespace above */
		{old, 2, 2, 0, true, 0xa1, 1, 32},
		{new, 2, 3, 0, false, 0xa0, 0, 16}, /* /proc is of the initial namespace */
		{new, 2, 4, -EINVAL, false, 0, 0, 0},
		{new, 2, 0, -EINVAL, false, 0, 0, 0},
		{twice, 2, 1, 0, true, 0xa2, 2, 32},
		{other, 2, 1, -EINVAL, false, 0, 0, 0}, /* no such number */
		{other, 3, 1, -EINVAL, false, 0, 0, 0}, /* no such namespace */
		{new, 6, 1, -EINVAL, false, 0, 0, 0},	/* beyond the words that were read */
		{new, UINT32_MAX, 1, -EINVAL, false, 0, 0, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pid_namespace namespace = {0};

		assert_int_equal(pid_namespace_decode(rows[i].words, 12, rows[i].level, 7,
						      rows[i].depth, &namespace),
				 rows[i].result);
		assert_int_equal(namespace.translated, rows[i].translated);
		assert_int_equal(namespace.address, rows[i].address);
		assert_int_equal(namespace.level, rows[i].at);
		assert_int_equal(namespace.number_bytes, rows[i].bytes);
	}
}

static void share_names(void **state)
{
	static const char *const good[] = {"a", "A-1_z", "0123456789abcdef0123456789abcdef"};
	/* a dot is reserved by the kernel, the rest leaves the directory or is too long */
	static const char *const bad[] = {
		"",	".",   "..",   "a.b", "a/b",
		"../x", "a b", "\xff", "a\n", "0123456789abcdef0123456789abcdefg"};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(share_name_valid(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(share_name_valid(bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(share_names),
		cmocka_unit_test(facts_have_names),
		cmocka_unit_test(features_are_taken_away),
		cmocka_unit_test(releases_are_taken_away),
		cmocka_unit_test(probes_have_fragments),
		cmocka_unit_test(plan_takes_the_best),
		cmocka_unit_test(plan_keeps_to_needs),
		cmocka_unit_test(plan_without_a_way_fails),
		cmocka_unit_test(header_has_each_field),
		cmocka_unit_test(offsets_come_back),
		cmocka_unit_test(sets_of_fields_may_be_lacking),
		cmocka_unit_test(bad_offsets_are_refused),
		cmocka_unit_test(overlapping_offsets_are_refused),
		cmocka_unit_test(text_names_its_files),
		cmocka_unit_test(text_traces_who_is_wanted),
		cmocka_unit_test(text_translates_ids_on_demand),
		cmocka_unit_test(numbers_of_namespaces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
