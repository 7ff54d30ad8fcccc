/* SPDX-License-Identifier: GPL-2.0-or-later */
/* text_check [--offsets FILE | --budget FILE | --export FILE]: compiles the BPF text with the
 * libbcc at hand, for every plan and every choice of knobs, and holds each program to what the
 * oldest kernel of its plan accepts: 4.9's instruction set and limits, no helper newer than the
 * plan's features. And the offsets in the programs must be those of the layout: libbcc's compiler
 * has put members at other offsets than offsetof.
 *
 * The layout is made up, with the newest names of members and what kernels since 5.5 offer. With
 * --export FILE it is one with the oldest names, for what kernels before 5.5 offer, and the
 * programs are written to FILE for program_loader. With --offsets FILE (tsnap --write-offsets) it
 * is the layout in FILE, of any kernel; that of the running one must equal its BTF. With --budget
 * FILE the largest program of each plan may have 5 % more or fewer instructions than it says. The
 * last line is the sum; exit code 77 where BPF maps can't be made, or libbcc can't be loaded.
 */
#include "base/text.h"
#include "expect.h"
#include "plans.h"
#include "program_check.h"
#include "program_export.h"
#include "program_file.h"
#include "kernel/bcc_library.h"
#include "kernel/btf_types.h"
#include "kernel/feature_table.h"
#include "kernel/host.h"
#include "base/host_file.h"
#include "kernel/probe_table.h"
#include "kernel/program_text.h"
#include "kernel/record.h"
#include "kernel/type_source.h"
#include "kernel/work_dir.h"

#include <bcc/bcc_proc.h>
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define OLDEST_KERNEL (4u << 16 | 9u << 8 | 255u)

static FILE *export_file; /* NULL: programs are not exported */

static void program_take(const struct probe_row *row, const struct judged_program *program,
			 const struct field_layout *layout, struct fields_seen *seen)
{
	int result;

	program_check(program, layout, seen);
	if (!export_file)
		return;
	result = program_export(export_file, program->name, row, program->release, program->insns,
				program->count);
	expect(!result, "%s can't be exported: %s", program->name, strerror(-result));
}

static void plan_check(const struct bcc_library *bcc, const struct plan_kind *kind,
		       struct program_knobs *knobs, const struct field_layout *layout,
		       struct fields_seen *seen)
{
	struct text text = {0};
	struct probe_plan plan;
	char words[PLAN_WORDS_SIZE], name[PROGRAM_NAME_SIZE], plan_name[PLAN_NAME_SIZE];
	void *module;

	/* tsnap refuses --trace connections, or dns, there */
	if (!field_sets_there(layout, FIELDS_SOCKET))
		knobs->latency_kinds &= ~(1u << LATENCY_CONNECTIONS);
	if (!field_sets_there(layout, FIELDS_PACKET))
		knobs->latency_kinds &= ~(1u << LATENCY_DNS);
	plan_words(kind, knobs, words);
	plan_choose(kind, knobs, &plan);
	program_text_write(&plan, layout, knobs, &text);
	module = program_compile(bcc, knobs, &text);
	text_done(&text);
	if (!expect(module, "%s: libbcc can't compile the text", words))
		return;
	for (int group = 0; group < GROUP_COUNT; group++) {
		const struct probe_row *row = plan.chosen[group];
		struct judged_program program = {.name = name, .plan = plan_name};

		if (!row)
			continue;
		snprintf(name, sizeof(name), "%s (%s)", row->name, words);
		snprintf(plan_name, sizeof(plan_name), "%s (%s%s)", row->name, kind->name,
			 knobs->latency_kinds ? ", trace" : "");
		program.release = release_oldest(knobs, row);
		program.insns = bcc->bpf_function_start(module, row->function);
		program.count =
			bcc->bpf_function_size(module, row->function) / sizeof(program.insns[0]);
		if (expect(program.insns, "%s: no program %s", name, row->function))
			program_take(row, &program, layout, seen);
	}
	bcc->bpf_module_destroy(module);
}

/* True if no program reads the field: tsnap itself reads those of locks; the disk of a request is
 * its queue's if that has one. Quotas and connections need all of their fields. */
static bool field_unused(const struct field_layout *layout, size_t field)
{
	const bool of_queue = field_there(layout, field_index("request_queue", "disk"));

	return field_rows[field].sets == FIELDS_LOCK || !field_there(layout, field) ||
	       !field_sets_there(layout, field_rows[field].sets &
						 (FIELDS_QUOTA | FIELDS_SOCKET | FIELDS_PACKET)) ||
	       field == field_index("request", of_queue ? "rq_disk" : "q");
}

/* Checks all plans with one layout; every field must be read by some program. */
static void layout_check(const struct bcc_library *bcc, const struct field_layout *layout,
			 bool every_knob)
{
	struct fields_seen seen = {{false}};

	for (size_t i = 0; i < plan_kind_count; i++)
		for (size_t k = 0; k < (every_knob ? knob_choice_count : OFFSETS_CHOICES); k++) {
			struct program_knobs knobs = knobs_of(&knob_choices[k]);

			if (every_knob &&
			    (export_file ? !plan_is_old(&plan_kinds[i], &knob_choices[k])
					 : !knobs.probe_read_kernel))
				continue;
			if (plan_kinds[i].old && !plan_is_old(&plan_kinds[i], &knob_choices[k]))
				continue;
			plan_check(bcc, &plan_kinds[i], &knobs, layout, &seen);
		}
	for (size_t f = 0; f < field_count; f++)
		expect(seen.field[f] || field_unused(layout, f),
		       "no program reads %s.%s at byte %u", field_rows[f].of,
		       field_rows[f].names[0], layout->offset[f]);
}

static struct field_layout layout_made_up(bool oldest)
{
	struct field_layout layout = {.sets = FIELDS_ALL};

	/* a layout has one of the two */
	layout.lacking[field_index("request_queue", "disk")] = oldest;
	layout.lacking[field_index("request", "rq_disk")] = !oldest;
	for (size_t f = 0; f < field_count; f++) {
		if (field_rows[f].sets & FIELDS_QUOTA) /* BTF has them, since 5.2 */
			layout.lacking[f] = oldest;
		layout.offset[f] = (uint32_t)(24 + 200 * f);
		for (unsigned char n = 0; oldest && n < FIELD_NAMES_MAX; n++)
			if (field_rows[f].names[n])
				layout.name[f] = n;
	}
	return layout;
}

/* Reads the release that an offsets file is for. */
static bool file_release(const char *path, char *release)
{
	char line[256];
	FILE *file = fopen(path, "r");
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "release %127s", release) == 1;
	if (file)
		fclose(file);
	return found;
}

static void file_check(const struct bcc_library *bcc, const struct host *host, const char *path,
		       const char *release)
{
	struct field_layout layout = {.sets = FIELDS_ALL}, btf = {.sets = FIELDS_ALL};
	struct error e = {0};

	if (!expect(!field_offsets_read(path, release, host->machine, &layout, &e), "%s", e.line))
		return;
	if (!strcmp(release, host->release) && !access(KERNEL_BTF_PATH, R_OK) &&
	    expect(!btf_layout_read(KERNEL_BTF_PATH, &btf, &e), "%s", e.line))
		for (size_t f = 0; f < field_count; f++)
			expect(layout.offset[f] == btf.offset[f],
			       "%s has %s.%s at byte %u, BTF at %u", path, field_rows[f].of,
			       field_rows[f].names[0], layout.offset[f], btf.offset[f]);
	layout_check(bcc, &layout, false);
}

static void headers_write(const char *work_dir, uint32_t kernel_code)
{
	struct error e = {0};

	expect(!program_headers_write(work_dir, kernel_code, &e), "%s", e.line);
	error_done(&e);
}

static void rows_check(void)
{
	for (size_t i = 0; i < probe_row_count; i++) {
		bool planned = false;

		for (size_t k = 0; k < plan_kind_count; k++) {
			struct probe_plan plan;

			plan_fill(&plan_kinds[k], &plan);
			planned |= plan.chosen[probe_rows[i].gives] == &probe_rows[i];
		}
		expect(planned, "no plan of this test has %s of %s", probe_rows[i].name,
		       probe_kind_names[probe_rows[i].kind]);
	}
}

/* Mounts tracefs for this process only: libbcc takes the structs of tracepoints from it, old ones
 * only through debugfs. */
static void tracefs_mount(void)
{
	int failed_as = 0;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    (access("/sys/kernel/tracing/events", R_OK) &&
	     mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL)))
		failed_as = errno;
	expect(!failed_as, "can't mount tracefs for this process alone: %s", strerror(failed_as));
	if (access("/sys/kernel/debug/tracing/events", R_OK))
		mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
}

int main(int argc, char **argv)
{
	struct work_dir work_dir;
	struct features features = {0};
	struct bcc_library bcc;
	struct error e = {0};
	struct host host;
	const bool offsets = argc == 3 && !strcmp(argv[1], "--offsets");
	const bool exports = argc == 3 && !strcmp(argv[1], "--export");
	char release[HOST_TEXT_SIZE];
	void *each;

	if (argc != 1 && !exports && !offsets && (argc != 3 || strcmp(argv[1], "--budget"))) {
		fprintf(stderr,
			"usage: text_check [--offsets FILE | --budget FILE | --export FILE]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!feature_has(&features, FEATURE_BPF) || bcc_library_open(&bcc, &e)) {
		printf("skipped: %s\n", e.line[0] ? e.line : features.why[FEATURE_BPF]);
		return 77;
	}
	tracefs_mount();
	host_read(&host);
	if (!expect(!work_dir_make(&work_dir, &e), "%s", e.line))
		return 1;
	program_check_itself();
	rows_check();
	each = dlsym(RTLD_DEFAULT, "bcc_procutils_each_ksym");
	/* NULL: libbcc_bpf of 0.18 lacks it, so the linker does not export it */
	expect(!each || each == (void *)bcc_procutils_each_ksym,
	       "libbcc does not find bcc_library.c's bcc_procutils_each_ksym");
	if (offsets) {
		if (expect(file_release(argv[2], release), "'%s' has no release", argv[2])) {
			headers_write(work_dir.path, version_code_read(release));
			file_check(&bcc, &host, argv[2], release);
		}
	} else {
		const struct field_layout layout = layout_made_up(exports);

		if (exports)
			export_file = fopen(argv[2], "we");
		expect(!exports || export_file, "'%s' can't be written: %s", argv[2],
		       strerror(errno));
		headers_write(work_dir.path, exports ? OLDEST_KERNEL : host.kernel_code);
		layout_check(&bcc, &layout, true);
		if (argc == 3 && !exports)
			budget_check(argv[2], host.machine);
	}
	work_dir_remove(&work_dir);
	error_done(&e);
	if (export_file)
		expect(!fclose(export_file), "'%s' can't be written: %s", argv[2], strerror(errno));
	/* no destructors: those of LLVM have freed twice after a failed compile (0.26) */
	_exit(!expect_sum());
}
