/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of PostgreSQL's wait events, by the numbers that its versions give them. */
#include "unit.h"

#include "apps/postgres_events.h"

static const char *event(unsigned int major, uint32_t info)
{
	static struct text text;

	text_clear(&text);
	postgres_event_add(&text, major, info);
	return text_string(&text);
}

/* Numbers from the headers of 15.18: WAIT_EVENT_*, LWTRANCHE_*, LOCKTAG_*. */
static void names_of_15(void **state)
{
	assert_string_equal(event(15, 0), "");
	assert_string_equal(event(15, 0x05000000), "Activity:ArchiverMain");
	assert_string_equal(event(15, 0x06000000), "Client:ClientRead");
	assert_string_equal(event(15, 0x03000005), "Lock:transactionid");
	assert_string_equal(event(15, 0x0300000a), "Lock:advisory");
	assert_string_equal(event(15, 0x04000000), "BufferPin:BufferPin");
	assert_string_equal(event(15, 0x07000000), "Extension:Extension");
	assert_string_equal(event(15, 0x01000008), "LWLock:WALWrite");
	assert_string_equal(event(15, 0x0100002f), "LWLock:NotifyQueueTail");
	assert_string_equal(event(15, 0x01000030), "LWLock:XactBuffer");
	assert_string_equal(event(15, 0x0100004a), "LWLock:PgStatsData");
	assert_string_equal(event(15, 0x0a000048), "IO:WALWrite");
	assert_string_equal(event(15, 0x0a000049), "IO:VersionFileSync");
}

/* The last event of each type in each version: one name too many or too few would move it. */
static void last_names(void **state)
{
	static const struct {
		unsigned int major;
		uint32_t info;
		const char *name;
	} rows[] = {
		{13, 0x01000048, "LWLock:PerXactPredicateList"},
		{13, 0x0500000c, "Activity:WalWriterMain"},
		{13, 0x06000008, "Client:WalSenderWriteData"},
		{13, 0x0a000043, "IO:WALWrite"},
		{14, 0x01000047, "LWLock:PerXactPredicateList"},
		{14, 0x0500000c, "Activity:WalWriterMain"},
		{14, 0x06000007, "Client:WalSenderWriteData"},
		{14, 0x0800002e, "IPC:XactGroupUpdate"},
		{14, 0x0a000049, "IO:LogicalSubxactWrite"},
		{15, 0x0500000b, "Activity:WalWriterMain"},
		{15, 0x06000007, "Client:WalSenderWriteData"},
		{16, 0x0100004c, "LWLock:LogicalRepLauncherHash"},
		{16, 0x0300000b, "Lock:applytransaction"},
		{16, 0x0500000c, "Activity:WalWriterMain"},
		{16, 0x08000034, "IPC:XactGroupUpdate"},
		{16, 0x09000008, "Timeout:VacuumTruncate"},
		{16, 0x0a00004a, "IO:VersionFileSync"},
		{17, 0x0500000f, "Activity:WalWriterMain"},
		{17, 0x0a00004c, "IO:WalWrite"},
		{18, 0x05000011, "Activity:WalWriterMain"},
		{17, 0x0100005b, "LWLock:ParallelVacuumDSA"},
		{18, 0x08000039, "IPC:WalReceiverUpstreamCatchup"},
		{18, 0x0100005e, "LWLock:AioUringCompletion"},
		{18, 0x0300000b, "Lock:applytransaction"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(event(rows[i].major, rows[i].info), rows[i].name);
}

/* Numbers that are not known have no name: those after the last one, gaps, and other types. */
static void unknown_numbers(void **state)
{
	assert_string_equal(event(15, 0x0100004b), "LWLock");
	assert_string_equal(event(15, 0x0100ffff), "LWLock");
	assert_string_equal(event(15, 0x01000000), "LWLock");
	assert_string_equal(event(15, 0x0300000b), "Lock");
	assert_string_equal(event(17, 0x07000001), "Extension");
	assert_string_equal(event(17, 0x0b000000), "InjectionPoint");
	assert_string_equal(event(15, 0x02000000), "");
	assert_string_equal(event(15, 0xff000000), "");
	assert_string_equal(event(15, 0x0a01ffff), "IO");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_15),
		cmocka_unit_test(last_names),
		cmocka_unit_test(unknown_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
