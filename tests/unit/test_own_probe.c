/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kernel/own_probe: the grammar of --probe, its errors, and what becomes BPF text */
#include "unit.h"
#include "kernel/own_probe.h"

static void test_errors(void **state)
{
	/* where it is wrong, from 1, and words of what is told */
	static const struct {
		const char *text;
		int at;
		const char *words;
	} rows[] = {
		{"", 1, "there is no probe"},
		{"  ", 3, "there is no probe"},
		{"9x = t:a", 1, "begins with a name"},
		{"n012345678901234567890123456789012 = t:a", 1, "too long: at most 31"},
		{"x p:a:b", 3, "'=' is expected"},
		{"x = ", 5,
		 "the kinds are p (function of a program or library), u (USDT probe of one), k "
		 "(kernel function) and t"},
		{"x = q:a:b", 5, "the kinds are p"},
		{"x = p:a", 7, "a file and a function are expected"},
		{"x = p::b", 7, "a file and a function are expected"},
		{"x = p:a:", 9, "the name of a function is expected"},
		{"x = u:a", 7, "a file and a USDT probe are expected: u:postgres:PROBE"},
		{"x = u:a:", 9, "the name of a USDT probe is expected"},
		{"x = u:a:b.c", 10, "'.' is in no name of a USDT probe"},
		{"x = u:a:b(ret)", 11, "a USDT probe returns nothing"},
		{"x = u:a:b(arg13)", 11, "there is no arg13: arg1 to arg12"},
		{"x = u:a:b(name)", 11, "arguments of USDT probes have numbers: arg1 to arg12"},
		{"x = k:", 7, "the name of a kernel function is expected"},
		{"x = k:f(", 9, "a value is expected: arg1 to arg6 or ret, or the name"},
		{"x = t:", 7, "the name of a tracepoint is expected"},
		{"x = p:a:b%c", 10, "'%' is in no name of a function"},
		{"x = t:a.b", 8, "'.' is in no name of a tracepoint"},
		{"x = p:a:b(", 11, "a value is expected: arg1 to arg6 or ret"},
		{"x = p:a:b(arg0)", 11, "there is no arg0: arg1 to arg6"},
		{"x = p:a:b(arg7)", 11, "there is no arg7"},
		{"x = p:a:b(size)", 11, "arguments of functions have numbers"},
		{"x = t:a(ret)", 9, "a tracepoint returns nothing"},
		{"x = p:a:b(arg1:size)", 16, "the types are int, bytes, ns, hex and str"},
		{"x = p:a:b if arg1:str = 1", 22, "conditions compare numbers"},
		{"x = p:a:b(arg1", 15, "')' is expected after the value"},
		{"x = p:a:b() or", 13, "'if' and a condition, or the end is expected"},
		{"x = p:a:b iff", 13, "a space is expected after 'if'"},
		{"x = p:a:b if", 13, "a value is expected"},
		{"x = p:a:b if arg1", 18, "a comparison is expected"},
		{"x = p:a:b if arg1 ~ 3", 19, "a comparison is expected"},
		{"x = p:a:b if arg1 > x", 21, "a number is expected"},
		{"x = p:a:b if arg1 > 0x", 21, "a number is expected"},
		{"x = p:a:b if arg1 > 5q", 22, "'q' is no part of a number"},
		{"x = p:a:b if arg1 > 1.5K", 22, "'.' is no part of a number"},
		{"x = p:a:b if arg1 > 9223372036854775808", 21, "too large for 64 bits"},
		{"x = p:a:b if arg1 > 9000000T", 21, "too large for 64 bits"},
		{"x = p:a:b if (arg1 > 1", 23, "')' is expected"},
		{"x = p:a:b if arg1 > 1 && ", 26, "a value is expected"},
		{"x = p:a:b if arg1 > 1 arg2", 23, "'&&', '||' or the end"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct own_probe *probe = calloc(1, sizeof(*probe));
		struct error e = {0};
		char at[32];
		int err = own_probe_parse(rows[i].text, probe, &e);

		snprintf(at, sizeof(at), "character %d: ", rows[i].at);
		if (err != -EINVAL || e.exit_code != EXIT_USAGE || !strstr(e.line, at) ||
		    !strstr(e.line, rows[i].words))
			fail_msg("'%s': %d, %s", rows[i].text, err, e.line);
		error_done(&e);
		free(probe);
	}
}

static void test_limits(void **state)
{
	struct own_probe *probe = calloc(1, sizeof(*probe));
	struct error e = {0};
	char text[4096] = "x = p:a:b if ";

	memset(text + strlen(text), '(', OWN_PROBE_DEPTH + 1);
	assert_int_equal(own_probe_parse(text, probe, &e), -EINVAL);
	assert_non_null(strstr(e.line, "too many levels"));
	strcpy(text, "x = p:a:b if arg1=1");
	for (int i = 0; i < OWN_PROBE_TOKENS / 2; i++)
		strcat(text, "&&arg1=1");
	assert_int_equal(own_probe_parse(text, probe, &e), -EINVAL);
	assert_non_null(strstr(e.line, "the condition is too long"));
	strcpy(text, "x = t:a if a=1");
	for (int i = 0; i < OWN_PROBE_FIELDS; i++)
		sprintf(text + strlen(text), "&&b%d=1", i);
	assert_int_equal(own_probe_parse(text, probe, &e), -EINVAL);
	assert_non_null(strstr(e.line, "too many different values: at most 12"));
	error_done(&e);
	free(probe);
}

/* Each of a probe's fields is in memory at the one site, and in a register at the two others. */
static void target_make(struct own_target *target)
{
	*target = (struct own_target){.site_count = 3};
	for (int i = 0; i < OWN_PROBE_FIELDS; i++)
		target->sites[0].operands[i] = (struct usdt_operand){.place = USDT_MEMORY,
								     .bytes = 4,
								     .is_signed = true,
								     .base = 7,
								     .index = 1,
								     .scale = 2,
								     .offset = -16};
	for (int site = 1; site < 3; site++)
		for (int i = 0; i < OWN_PROBE_FIELDS; i++)
			target->sites[site].operands[i] =
				(struct usdt_operand){.place = USDT_REGISTER,
						      .bytes = 1,
						      .base = 3,
						      .index = USDT_NO_REGISTER,
						      .dropped = 8};
	target->sites[0].offset = 0x1001;
	target->sites[1].offset = 0x1002;
	target->sites[2].offset = 0x2003;
}

static void test_text(void **state)
{
	static struct own_target target;
	static const struct {
		const char *text;
		enum own_probe_result result;
		bool enters, returns;
		const char *has, *hasnt;
	} rows[] = {
		{"x = p:a:b", OWN_TIME, true, true, "probe_time(ctx, 2, now_ns, &call)", "v0"},
		{"x=p:a:b()", OWN_COUNT, true, false, "probe_count(ctx, 2)", "return(struct"},
		{"x = p:a:b(ret:bytes)", OWN_VALUE, false, true, "probe_amount(ctx, 2, (__s64)v0)",
		 "entry(struct"},
		{"x = p:a:b(arg2)", OWN_VALUE, true, false,
		 "v0 = PROBE_ARGUMENT(2);\n\tprobe_amount(ctx, 2, (__s64)(__s32)v0)",
		 "return(struct"},
		{"x = p:a:b(ret:str)", OWN_EACH, false, true,
		 "probe_each(ctx, 2, probe_text(v0, 0))", "(__s64)"},
		{"x = k:a.isra.0", OWN_TIME, true, true, "probe_time(ctx, 2, now_ns, &call)", "v0"},
		{"x = k:f(arg2:str)", OWN_EACH, true, false,
		 "probe_each(ctx, 2, probe_text(v0, 1))", "return(struct"},
		{"x = t:b(arg1:hex)", OWN_EACH, true, false, "probe_each(ctx, 2, v0)",
		 "probe_text"},
		{"x = p:a:b(ret) if arg3 > 64K", OWN_VALUE, true, true,
		 "v1 = PROBE_KEPT(3);\n\tif (!(((__s64)v1 > (__s64)0x10000ull)))", NULL},
		{"x = u:f:b(arg1) if arg2 > 1", OWN_VALUE, true, false,
		 "\tif (at == 1u) {\n"
		 "\t\tPROBE_READ(v0, __s32, 0xfffffffffffffff0ull + PROBE_REGISTER(7) + "
		 "(PROBE_REGISTER(1) << 2));\n"
		 "\t\tPROBE_READ(v1, __s32, 0xfffffffffffffff0ull + PROBE_REGISTER(7) + "
		 "(PROBE_REGISTER(1) << 2));\n"
		 "\t} else if (at == 2u || at == 3u) {\n"
		 "\t\tv0 = (__u64)(__s64)(__u8)(PROBE_REGISTER(3) >> 8);\n"
		 "\t\tv1 = (__u64)(__s64)(__u8)(PROBE_REGISTER(3) >> 8);\n"
		 "\t} else {\n\t\treturn 0;\n\t}\n",
		 "return(struct"},
		{"x = u:f:b", OWN_COUNT, true, false, "probe_count(ctx, 2)", "at =="},
		{"x = t:c:b(arg1:ns) if !(arg1=-1||arg2:hex>0xffffffffffffffff) && arg2 <= 2us",
		 OWN_VALUE, true, false,
		 "if (!(!(((__s64)v0 == (__s64)0xffffffffffffffffull) || "
		 "(v1 > 0xffffffffffffffffull)) && ((__s64)v1 <= (__s64)0x7d0ull)))",
		 NULL},
	};

	target_make(&target);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct own_item *item = calloc(1, sizeof(*item));
		struct own_probe *probe = &item->probe;
		struct error e = {0};
		struct text text = {0};

		if (own_probe_parse(rows[i].text, probe, &e))
			fail_msg("%s", e.line);
		item->target = target;
		own_item_text_write(item, 2, &text);
		if (probe->result != rows[i].result || own_probe_enters(probe) != rows[i].enters ||
		    own_probe_returns(probe) != rows[i].returns ||
		    !strstr(text_string(&text), rows[i].has) ||
		    (rows[i].hasnt && strstr(text_string(&text), rows[i].hasnt)))
			fail_msg("'%s': %s", rows[i].text, text_string(&text));
		text_done(&text);
		free(item);
	}
}

static void test_contexts(void **state)
{
	/* at: where it is wrong, from 1; 0: it is right, and words are in its programs */
	static const struct {
		const char *text;
		int at;
		const char *words, *end, *file;
	} rows[] = {
		{"x = probe u:f:b(arg1:str) .. done", 0, "probe_hold(2, probe_text(v0, 0), 1)",
		 "done", "f"},
		{"x = probe u:f:prov:b(arg1) .. u:/g:h:other", 0, "probe_hold(2, (__s64)v0, 1)",
		 "other", "/g"},
		{"x = probe k:f(arg2:str) if arg1 > 1 .. t:sched:sched_switch", 0,
		 "probe_hold(2, probe_text(v0, 1), 1);\n\treturn 0;\n}\nint "
		 "probe_2_return(struct bpf_raw_tracepoint_args *ctx)\n{\n"
		 "\tprobe_hold(2, 0, 0);",
		 "sched_switch", ""},
		{"x=probe p:f:b(arg1:hex)..b", 0, "probe_hold(2, v0, 1)", "b", "f"},
		{"x = probe u:f:b", 16, "the value that threads have is expected", NULL, NULL},
		{"x = probe u:f:b()", 17, "a value is expected", NULL, NULL},
		{"x = probe p:f:b(ret) .. c", 17, "ret is for --probe", NULL, NULL},
		{"x = probe p:f:b(arg1) if ret > 1 .. c", 26, "ret is for --probe", NULL, NULL},
		{"x = probe p:f:b(arg1)", 22, "'..' and the probe that ends it", NULL, NULL},
		{"x = probe p:f:b(arg1) ..", 25, "the probe that ends it is expected", NULL, NULL},
		{"x = probe p:f:b(arg1) .. p:/g:c|d | e", 0, "probe_hold(2, ", "e", "/g"},
		{"x = probe p:f:b(arg1) .. c|d|e|f|g", 34, "at most 4 probes", NULL, NULL},
		{"x = probe p:f:b(arg1) .. k:c|d", 31, "only points of a file", NULL, NULL},
		{"x = probe p:f:b(arg1) .. c(arg1)", 27, "neither a value nor a condition", NULL,
		 NULL},
		{"x = probe p:f:b(arg1) .. q:c", 26, "the kinds are p", NULL, NULL},
		{"x = probe", 10, "a kind and a colon are expected", NULL, NULL},
	};
	static struct own_target target;

	(void)state;
	assert_true(own_context_is("a=probe\tx") && own_context_is(" a = probe"));
	assert_false(own_context_is("a = probes:x") || own_context_is("probe x"));
	target_make(&target);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct own_item *item = calloc(1, sizeof(*item));
		struct error e = {0};
		struct text text = {0};
		char place[32];
		int err = own_context_parse(rows[i].text, item, &e);

		if (rows[i].at) {
			snprintf(place, sizeof(place), "', character %d:", rows[i].at);
			if (err != -EINVAL || strncmp(e.line, "--context '", 11) != 0 ||
			    !strstr(e.line, place) || !strstr(e.line, rows[i].words))
				fail_msg("'%s': %s", rows[i].text, e.line);
		} else {
			if (err)
				fail_msg("'%s': %s", rows[i].text, e.line);
			item->target = target;
			own_item_text_write(item, 2, &text);
			if (!strstr(text_string(&text), rows[i].words) ||
			    strcmp(item->ends[item->end_count - 1].point, rows[i].end) != 0 ||
			    strcmp(item->ends[item->end_count - 1].file, rows[i].file) != 0)
				fail_msg("'%s': %s, %s", rows[i].text,
					 item->ends[item->end_count - 1].point, text_string(&text));
		}
		error_done(&e);
		text_done(&text);
		free(item);
	}
}

static void test_target(void **state)
{
	struct own_probe *probe = calloc(1, sizeof(*probe));
	struct error e = {0};

	assert_int_equal(own_probe_parse("my-1 = p:/srv/a:b/c:_Zf.x@v(arg1)", probe, &e), 0);
	assert_string_equal(probe->name, "my-1");
	assert_string_equal(probe->file, "/srv/a:b/c");
	assert_string_equal(probe->point, "_Zf.x@v");
	assert_int_equal(own_probe_parse("x = t:sched:sched_switch(prev_state:int)", probe, &e), 0);
	assert_string_equal(probe->point, "sched_switch");
	assert_string_equal(probe->fields[0].name, "prev_state");
	assert_int_equal(probe->fields[0].arg, 0);
	assert_int_equal(own_probe_parse("x = u:postgres:postgresql:query__start", probe, &e), 0);
	assert_string_equal(probe->file, "postgres");
	assert_string_equal(probe->provider, "postgresql");
	assert_string_equal(probe->point, "query__start");
	assert_int_equal(own_probe_parse("x = u:/srv/a:b/c:query", probe, &e), 0);
	assert_string_equal(probe->file, "/srv/a:b/c");
	assert_string_equal(probe->provider, "");
	free(probe);
}

static void test_sites(void **state)
{
	static struct own_target target;
	struct own_probe *probe = calloc(1, sizeof(*probe));
	struct error e = {0};

	target_make(&target);
	assert_int_equal(own_probe_parse("x = u:a:b(arg1)", probe, &e), 0);
	assert_true(own_sites_differ(probe, &target));
	target.sites[2].offset = 0x5002; /* as sites[1], whose operands are the same */
	assert_true(own_sites_differ(probe, &target));
	target.sites[2].offset = 0x5001;
	assert_false(own_sites_differ(probe, &target));
	assert_int_equal(own_probe_parse("x = u:a:b()", probe, &e), 0);
	assert_true(own_sites_differ(probe, &target));
	free(probe);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors), cmocka_unit_test(test_limits),
		cmocka_unit_test(test_text),   cmocka_unit_test(test_target),
		cmocka_unit_test(test_sites),  cmocka_unit_test(test_contexts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
