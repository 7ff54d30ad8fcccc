/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of processes: the script in a command line, and what a name of -p is compared with. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "sample/filter/process_name.h"
#include "sample/script.h"
#include "unit.h"

static void scripts(void **state)
{
	static const struct {
		const char *cmdline, *script; /* NULL: none */
	} rows[] = {
		{"python3 pyburn.py", "pyburn.py"},
		{"/usr/bin/python3.11 -u -W ignore -X dev /opt/a/report.py --out x", "report.py"},
		{"python3 -Wignore report.py", "report.py"},
		{"python3 -m http.server 80", NULL},
		{"python3 -c import time; time.sleep(9)", NULL},
		{"python3 -Sc pass x.py", NULL},
		{"python3 -", NULL},
		{"python3", NULL},
		{"python3 -u ", NULL},
		{"pythonic x.py", NULL},
		{"/bin/sh ./run", "run"},
		{"/bin/bash -eo pipefail /srv/run.sh arg", "run.sh"},
		{"/bin/bash --rcfile /etc/rc -x -- run.sh", "run.sh"},
		{"bash -c sleep 9", NULL},
		{"bash -ec sleep 9", NULL},
		{"bash -s arg", NULL},
		{"-bash", NULL},
		{"perl -I/lib/env -MData::Dumper -w /usr/sbin/job.pl", "job.pl"},
		{"perl -ne print x", NULL},
		{"ruby -rset /srv/app.rb", "app.rb"},
		{"node --inspect --require /a/hook.js /srv/app.js", "app.js"},
		{"node --eval 1 x.js", NULL},
		{"php -d a=b artisan", "artisan"},
		{"java -Xmx1g -cp /a/b.jar org.Main /x", NULL},
		{"java -Xmx1g -jar /srv/app.jar x", "app.jar"},
		{"vim notes.txt", NULL},
		{"gunicorn: master [app]", NULL},
		{"", NULL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t length;
		const char *script = process_script(rows[i].cmdline, &length);

		if (!script != !rows[i].script ||
		    (script &&
		     (length != strlen(rows[i].script) || memcmp(script, rows[i].script, length))))
			fail_msg("%s: %.*s, not %s", rows[i].cmdline, script ? (int)length : 0,
				 script ? script : "", rows[i].script ? rows[i].script : "none");
	}
}

static void names(void **state)
{
	static const char exe[] = "/opt/server/bin/webd (deleted)", script[] = "job.pl";

	assert_true(process_name_matches("work", "worker", NULL, NULL));
	assert_false(process_name_matches("work?", "worker", NULL, NULL));
	assert_true(process_name_matches("web?", "worker", exe, NULL));
	assert_true(process_name_matches("web", NULL, exe, NULL));
	assert_false(process_name_matches("server", "worker", exe, script));
	assert_false(process_name_matches("deleted", "worker", exe, script));
	assert_true(process_name_matches("job.pl", "worker", exe, script));
	assert_true(process_name_matches("j*.pl", NULL, NULL, script));
	assert_false(process_name_matches("j*.pl", "worker", exe, NULL));
	assert_false(process_name_matches("x", NULL, NULL, script));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scripts),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
