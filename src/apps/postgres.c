/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PostgreSQL 13, 15, 17 and 18: what each session waits for, and the statement that it runs, in the
 * words of the view pg_stat_activity.
 *
 * A process of the server serves one session, and has its data in variables that the program
 * exports for extensions. debug_query_string and application_name are texts. my_wait_event_info
 * points to a number, since 14; before, it is a member of PGPROC. The rest is in PgBackendStatus,
 * the process' row of pg_stat_activity, and in Port, its client: their layouts, and the numbers of
 * wait events, are those of a version, by the number of its catalog, which the server finds in
 * global/pg_control before it starts. Of any other number (another version, a beta, a fork with
 * another catalog) only the texts are shown.
 *
 * MyProcPid has to be the process' own id, and so has st_procpid. The row is whole if
 * st_changecount is even (src/include/utils/backend_status.h): only its own process writes to it,
 * and that does not run.
 */
#include "apps/app_program.h"
#include "apps/postgres_events.h"
#include "base/names.h"
#include "base/text.h"

#include <string.h>

enum {
	MY_PROC_PID,
	WAIT_EVENT_INFO,
	BACKEND_ENTRY,
	QUERY_STRING,
	APPLICATION_NAME,
	MY_PORT,
	MY_PROC,
};

static const char *const symbols[] = {
	[MY_PROC_PID] = "MyProcPid",
	[WAIT_EVENT_INFO] = "my_wait_event_info",
	[BACKEND_ENTRY] = "MyBEEntry",
	[QUERY_STRING] = "debug_query_string",
	[APPLICATION_NAME] = "application_name",
	[MY_PORT] = "MyProcPort",
	[MY_PROC] = "MyProc",
	NULL,
};

/* Members of PgBackendStatus, the same from 14 to 18; 13 does not export where it is. */
#define ENTRY_BYTES 432
#define ENTRY_COUNT 0
#define ENTRY_PID 4
#define ENTRY_STATE 232
#define ENTRY_ACTIVITY 248
#define ENTRY_QUERY_ID 424

struct postgres_version {
	uint32_t catalog; /* CATALOG_VERSION_NO of src/include/catalog/catversion.h */
	unsigned int major;
	uint32_t database_at, user_at;	/* database_name and user_name of Port */
	uint32_t wait_at;		/* wait_event_info of PGPROC, where nothing points to it */
	const char *const *state_names; /* by BackendState */
};

#define IDLE "idle"
#define STATES                                                           \
	IDLE, "active", "idle in transaction", "fastpath function call", \
		"idle in transaction (aborted)", "disabled"
#define STATES_MAX 8

static const char *const states[STATES_MAX] = {NULL, STATES};
static const char *const states_18[STATES_MAX] = {NULL, "starting", STATES};

/* clang-format off */
static const struct postgres_version versions[] = {
	{202007201, 13, 328, 336, 684, states},
	{202209061, 15, 328, 336, 0,   states},
	{202406281, 17, 320, 328, 0,   states},
	{202506291, 18, 384, 392, 0,   states_18},
};
/* clang-format on */

static void version_take(struct app_reader *reader)
{
	struct {
		uint64_t system;
		uint32_t format, catalog;
	} control; /* struct ControlFileData of src/include/catalog/pg_control.h */

	reader->version = NULL;
	if (!app_file_begin(reader, "global/pg_control", &control, sizeof(control)))
		return;
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		if (versions[i].catalog == control.catalog)
			reader->version = &versions[i];
}

/* Reads the event that the session waits for. */
static const char *wait_read(const struct app_reader *reader,
			     const struct postgres_version *version)
{
	static struct text text;
	uint64_t address;
	uint32_t info;

	if (!app_read_symbol(reader, version->wait_at ? MY_PROC : WAIT_EVENT_INFO, &address,
			     sizeof(address)) ||
	    !address || !app_read(reader, address + version->wait_at, &info, sizeof(info)))
		return NULL;
	text_clear(&text);
	postgres_event_add(&text, version->major, info);
	return text.length ? name_transient_string(text_string(&text)) : NULL;
}

/* Reads the process' row of pg_stat_activity. False: it has none, or it is being changed. */
static bool entry_read(const struct app_reader *reader, char entry[ENTRY_BYTES])
{
	uint64_t address;
	uint32_t count;
	int32_t pid;

	if (!app_read_symbol(reader, BACKEND_ENTRY, &address, sizeof(address)) ||
	    !app_read(reader, address, entry, ENTRY_BYTES))
		return false;
	memcpy(&count, entry + ENTRY_COUNT, sizeof(count));
	memcpy(&pid, entry + ENTRY_PID, sizeof(pid));
	return !(count & 1) && pid == reader->inner_pid;
}

/* The state in words; NULL: none is reported. */
static const char *entry_state(const struct postgres_version *version,
			       const char entry[ENTRY_BYTES])
{
	uint32_t state;

	memcpy(&state, entry + ENTRY_STATE, sizeof(state));
	return state < STATES_MAX ? version->state_names[state] : NULL;
}

/* Reads a text that a member of Port points to. Only processes with a client have a Port. */
static const char *port_text(const struct app_reader *reader, uint64_t port, uint32_t at)
{
	uint64_t address;

	return port && app_read(reader, port + at, &address, sizeof(address))
		       ? app_text(reader, address)
		       : NULL;
}

/* Reads the statement that runs, or, in a transaction in which none does, the last one. Of
 * processes without a client only their row has it: "autovacuum: VACUUM public.t". */
static const char *query_read(const struct app_reader *reader, const char *state,
			      const char entry[ENTRY_BYTES])
{
	uint64_t address;

	if (!app_read_symbol(reader, QUERY_STRING, &address, sizeof(address)))
		return NULL;
	if (!address && state && strcmp(state, IDLE) != 0)
		memcpy(&address, entry + ENTRY_ACTIVITY, sizeof(address));
	return app_text(reader, address);
}

static bool session_read(const struct app_reader *reader, uint64_t needs, struct sample_app *facts)
{
	const struct postgres_version *version = reader->version;
	const char *state = NULL;
	char entry[ENTRY_BYTES] = "";
	uint64_t address;
	bool has_entry;
	int32_t pid;

	if (!app_read_symbol(reader, MY_PROC_PID, &pid, sizeof(pid)) || pid != reader->inner_pid)
		return false;
	has_entry = version && entry_read(reader, entry);
	if (has_entry)
		state = entry_state(version, entry);
	if (needs & NEED_QUERY)
		facts->query = query_read(reader, state, entry);
	if (!(needs & NEED_APP))
		return true;
	facts->state = state;
	if (app_read_symbol(reader, APPLICATION_NAME, &address, sizeof(address)))
		facts->client = app_text(reader, address);
	if (!version)
		return true;
	facts->wait = wait_read(reader, version);
	if (has_entry)
		memcpy(&facts->query_id, entry + ENTRY_QUERY_ID, sizeof(facts->query_id));
	if (!facts->query_id)
		facts->query_id = ABSENT;
	if (app_read_symbol(reader, MY_PORT, &address, sizeof(address)) && address) {
		facts->database = port_text(reader, address, version->database_at);
		facts->user = port_text(reader, address, version->user_at);
	}
	return true;
}

static const char *const names[] = {"postgres", NULL};

const struct app_program postgres_program = {
	.names = names,
	.symbols = symbols,
	.take = version_take,
	.read = session_read,
};
