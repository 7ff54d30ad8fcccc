/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PostgreSQL 13 to 18: what each session waits for, and the statement that it runs, in the
 * words of the view pg_stat_activity.
 *
 * A process of the server serves one session, and has its data in variables that the program
 * exports for extensions. debug_query_string and application_name are texts. The number of the wait
 * event is in PGPROC, the rest in PgBackendStatus, the process' row of pg_stat_activity, and in
 * Port, its client: their layouts, and the numbers of wait events, are those of a version, by the
 * number of its catalog, which the server finds in global/pg_control before it starts. Of any other
 * number (another version, a beta, a fork with another catalog) only the texts are shown.
 *
 * MyProcPid has to be the process' own id, and so have pid of PGPROC and st_procpid. The row is
 * whole if st_changecount is even (src/include/utils/backend_status.h): only its own process writes
 * to it, and that does not run.
 */
#include "apps/app_program.h"
#include "apps/postgres_events.h"
#include "base/names.h"
#include "base/text.h"

#include <string.h>

enum {
	MY_PROC_PID,
	BACKEND_ENTRY,
	QUERY_STRING,
	APPLICATION_NAME,
	MY_PORT,
	MY_PROC,
};

/* Words and texts that stay with a process: addresses of its row and of its PGPROC, which have the
 * process' id as long as they are its own; address of its Port; and one more than the changecount
 * with which the client's name was read. */
enum { KEPT_ENTRY, KEPT_PROC, KEPT_PORT, KEPT_COUNT };
enum { KEPT_DATABASE, KEPT_USER, KEPT_CLIENT };

static const char *const symbols[] = {
	[MY_PROC_PID] = "MyProcPid",
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
#define ENTRY_STATE_START 40 /* st_state_start_timestamp */
#define ENTRY_STATE 232
#define ENTRY_CLIENT 240 /* st_appname, of CLIENT_BYTES: NAMEDATALEN */
#define CLIENT_BYTES 64
#define ENTRY_ACTIVITY 248
#define ENTRY_QUERY_ID 424

struct postgres_version {
	uint32_t catalog; /* CATALOG_VERSION_NO of src/include/catalog/catversion.h */
	unsigned int major;
	uint32_t database_at, user_at; /* database_name and user_name of Port */
	uint32_t wait_at;	       /* wait_event_info of PGPROC, where nothing points to it */
	/* pid, waitLock, waitLockMode and lockGroupLeader of PGPROC */
	uint32_t pid_at, lock_at, mode_at, leader_at;
	const char *const *state_names; /* by BackendState */
};

#define EPOCH_US INT64_C(946684800000000) /* of TimestampTz: the year 2000 */

#define IDLE "idle"
#define PROC_BYTES 720 /* of PGPROC, up to the wait event */
#define STATES                                                           \
	IDLE, "active", "idle in transaction", "fastpath function call", \
		"idle in transaction (aborted)", "disabled"
#define STATES_MAX 8

static const char *const states[STATES_MAX] = {NULL, STATES};
static const char *const states_18[STATES_MAX] = {NULL, "starting", STATES};

/* clang-format off */
static const struct postgres_version versions[] = {
	{202007201, 13, 328, 336, 684, 52,  96, 112, 816, states},
	{202107181, 14, 328, 336, 712, 64, 112, 128, 840, states},
	{202209061, 15, 328, 336, 712, 64, 112, 128, 840, states},
	{202307071, 16, 328, 336, 712, 64, 112, 128, 840, states},
	{202406281, 17, 320, 328, 712, 60, 112, 128, 848, states},
	{202506291, 18, 384, 392, 712, 60, 112, 128, 792, states_18},
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
static const char *wait_read(struct app_reader *reader, const struct postgres_version *version)
{
	static struct text text;
	char proc[PROC_BYTES];
	uint32_t info;
	int32_t pid;

	if (!app_read_kin(reader, reader->kept_words[KEPT_PROC], proc,
			  version->wait_at + sizeof(info)))
		return NULL;
	memcpy(&pid, proc + version->pid_at, sizeof(pid));
	memcpy(&info, proc + version->wait_at, sizeof(info));
	if (pid != reader->inner_pid)
		return NULL;
	text_clear(&text);
	postgres_event_add(&text, version->major, info);
	return text.length ? name_transient_string(text_string(&text)) : NULL;
}

/* Reads the process' row of pg_stat_activity. False: it has none, or it is being changed. */
static bool entry_read(struct app_reader *reader, char entry[ENTRY_BYTES])
{
	uint32_t count;
	int32_t pid;

	if (!app_read_kin(reader, reader->kept_words[KEPT_ENTRY], entry, ENTRY_BYTES))
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

/* Reads a text that a member of Port points to. */
static const char *port_text(struct app_reader *reader, uint32_t at)
{
	uint64_t address;

	return app_read(reader, reader->kept_words[KEPT_PORT] + at, &address, sizeof(address))
		       ? app_text(reader, address)
		       : NULL;
}

/* Takes database and user of the client's connection, which stay; only processes with a client have
 * a Port. */
static void port_take(struct app_reader *reader, const struct postgres_version *version,
		      struct sample_app *facts)
{
	uint64_t port = reader->kept_words[KEPT_PORT];
	const char **kept = reader->kept;

	if (port && (!kept[KEPT_DATABASE] || !kept[KEPT_USER])) {
		kept[KEPT_DATABASE] = port_text(reader, version->database_at);
		kept[KEPT_USER] = port_text(reader, version->user_at);
	}
	facts->database = kept[KEPT_DATABASE];
	facts->user = kept[KEPT_USER];
}

/* Reads the text that a symbol points to. */
static const char *symbol_text(struct app_reader *reader, int symbol)
{
	uint64_t address;

	return app_read(reader, reader->symbols[symbol], &address, sizeof(address))
		       ? app_text(reader, address)
		       : NULL;
}

/* Reads the statement that runs, or, in a transaction in which none does, the last one. Of
 * processes without a client only their row has it: "autovacuum: VACUUM public.t". An idle session
 * has none: debug_query_string is cleared at the end of each message, before the state is reported
 * (PostgresMain() in src/backend/tcop/postgres.c). Most sessions are idle: nothing is read for it.
 */
static const char *query_read(struct app_reader *reader, const char *state,
			      const char entry[ENTRY_BYTES])
{
	uint64_t address;

	if ((state && !strcmp(state, IDLE)) ||
	    !app_read(reader, reader->symbols[QUERY_STRING], &address, sizeof(address)))
		return NULL;
	if (!address && state)
		memcpy(&address, entry + ENTRY_ACTIVITY, sizeof(address));
	return app_text(reader, address);
}

/* Reads the name that the client gave itself, which is in the row: it is another one only if the
 * row has changed. */
static const char *client_read(struct app_reader *reader, const char entry[ENTRY_BYTES])
{
	char name[CLIENT_BYTES];
	uint64_t address;
	uint32_t count;
	size_t length;

	memcpy(&count, entry + ENTRY_COUNT, sizeof(count));
	if (reader->kept_words[KEPT_COUNT] == count + UINT64_C(1))
		return reader->kept[KEPT_CLIENT];
	memcpy(&address, entry + ENTRY_CLIENT, sizeof(address));
	if (!app_read_kin(reader, address, name, sizeof(name)))
		return NULL;
	length = strnlen(name, sizeof(name));
	reader->kept[KEPT_CLIENT] = length ? name_transient(name, length) : NULL;
	reader->kept_words[KEPT_COUNT] = count + UINT64_C(1);
	return reader->kept[KEPT_CLIENT];
}

static void query_id_take(const char entry[ENTRY_BYTES], struct sample_app *facts)
{
	memcpy(&facts->query_id, entry + ENTRY_QUERY_ID, sizeof(facts->query_id));
	if (!facts->query_id)
		facts->query_id = ABSENT;
}

/* Finds where the process has its data. False: it is no such process, or not yet. */
static bool data_find(struct app_reader *reader)
{
	app_words(reader);
	reader->kept_words[KEPT_ENTRY] = reader->words[BACKEND_ENTRY];
	reader->kept_words[KEPT_PROC] = reader->words[MY_PROC];
	reader->kept_words[KEPT_PORT] = reader->words[MY_PORT];
	return (int32_t)reader->words[MY_PROC_PID] == reader->inner_pid;
}

/* Finds the process' row; false in *has_row: it has none, or the version is not known. False: it is
 * no such process, or not yet. */
static bool row_find(struct app_reader *reader, char entry[ENTRY_BYTES], bool *has_row)
{
	*has_row = reader->version && reader->kept_words[KEPT_PROC] && entry_read(reader, entry);
	if (*has_row)
		return true;
	if (!data_find(reader))
		return false;
	*has_row = reader->version && entry_read(reader, entry);
	return true;
}

static bool session_read(struct app_reader *reader, uint64_t needs, struct sample_app *facts)
{
	const struct postgres_version *version = reader->version;
	char entry[ENTRY_BYTES] = "";
	const char *state;
	bool has_entry;

	if (!row_find(reader, entry, &has_entry))
		return false;
	state = has_entry ? entry_state(version, entry) : NULL;
	if (needs & NEED_QUERY)
		facts->query = query_read(reader, state, entry);
	if (!(needs & NEED_APP))
		return true;
	facts->state = state;
	facts->client =
		has_entry ? client_read(reader, entry) : symbol_text(reader, APPLICATION_NAME);
	if (!version)
		return true;
	facts->wait = wait_read(reader, version);
	if (has_entry)
		query_id_take(entry, facts);
	port_take(reader, version, facts);
	return true;
}

/* Since when the row has had its state and statement, in microseconds since 1970. */
static int64_t entry_since_us(const char entry[ENTRY_BYTES])
{
	int64_t start_us;

	memcpy(&start_us, entry + ENTRY_STATE_START, sizeof(start_us));
	return start_us + EPOCH_US;
}

/* Of a session that may run: its row, which says since when it has its state and statement
 * (pgstat_report_activity() in src/backend/utils/activity/backend_status.c). */
static bool running_read(struct app_reader *reader, uint64_t needs, struct sample_app *facts,
			 int64_t before_us)
{
	const struct postgres_version *version = reader->version;
	struct sample_app row;
	char entry[ENTRY_BYTES];
	uint64_t activity;
	int64_t since_us;
	bool has_entry;

	if (!row_find(reader, entry, &has_entry))
		return false;
	if (!has_entry)
		return true;
	if (needs & NEED_APP) {
		port_take(reader, version, facts);
		facts->client = client_read(reader, entry);
	}
	row = *facts;
	since_us = entry_since_us(entry);
	row.state = entry_state(version, entry);
	if (needs & NEED_QUERY && row.state && strcmp(row.state, IDLE) != 0) {
		memcpy(&activity, entry + ENTRY_ACTIVITY, sizeof(activity));
		row.query = app_text(reader, activity);
	}
	query_id_take(entry, &row);
	if (since_us < before_us && entry_read(reader, entry) && entry_since_us(entry) == since_us)
		*facts = row;
	return true;
}

/* --- Who holds the lock that a session waits for. MyProc->waitLock points to it, a LOCK, whose
 * list procLocks has a PROCLOCK for each session that has the lock or waits for it, in memory that
 * all processes of the server share (src/include/storage/lock.h). As in pg_blocking_pids(), the
 * session is blocked by those that hold the lock in a mode which conflicts with the one it waits
 * for, unless they are of its own group of parallel processes. Others may change the list
 * meanwhile; what was found holds if all of the list was of that lock, and the session waits for it
 * still.
 */

#define HOLDERS_MAX 64
#define LOCK_LIST 24   /* procLocks in LOCK: addresses of the last link, and of the first */
#define LOCK_QUEUE 40  /* waitProcs in LOCK, likewise */
#define HOLDER_LINK 32 /* lockLink in PROCLOCK */

struct holder { /* PROCLOCK */
	uint64_t lock, proc, leader;
	uint32_t modes, released;
	uint64_t before, next;
};

/* Modes that conflict with each mode, a bit each: LockConflicts[] of lmgr/lock.c. */
static const uint16_t conflicts[] = {0, 0x100, 0x180, 0x1e0, 0x1f0, 0x1d8, 0x1f8, 0x1fc, 0x1fe};
#define MODES (sizeof(conflicts) / sizeof(conflicts[0]))

static bool proc_word(struct app_reader *reader, uint64_t proc, uint32_t at, uint64_t *word)
{
	return app_read(reader, proc + at, word, sizeof(*word));
}

/* Takes a session that holds the lock. False: its id can't be read. */
static bool holder_take(struct app_reader *reader, const struct holder *holder,
			struct app_lock *lock)
{
	const struct postgres_version *version = reader->version;
	int32_t pid;

	if (!app_read_shared(reader, holder->proc + version->pid_at, &pid, sizeof(pid)))
		return false;
	/* a prepared transaction has no process */
	if (!lock->count++ && pid > 0)
		lock->holder = app_sibling(reader, pid);
	return true;
}

/* Takes the sessions that the one of `proc` has to wait for. False: the list is being changed. */
static bool holders_take(struct app_reader *reader, uint64_t proc, uint64_t address, uint32_t mode,
			 struct app_lock *lock)
{
	const struct postgres_version *version = reader->version;
	uint64_t link, leader;
	struct holder holder;

	if (!proc_word(reader, proc, version->leader_at, &leader) ||
	    !app_read_shared(reader, address + LOCK_LIST + sizeof(link), &link, sizeof(link)))
		return false;
	for (int i = 0; link != address + LOCK_LIST; i++, link = holder.next) {
		if (i == HOLDERS_MAX ||
		    !app_read_shared(reader, link - HOLDER_LINK, &holder, sizeof(holder)) ||
		    holder.lock != address)
			return false;
		if (holder.modes & conflicts[mode] && holder.leader != (leader ? leader : proc) &&
		    !holder_take(reader, &holder, lock))
			return false;
	}
	return true;
}

/* Takes the sessions before that of `proc` in the queue of the lock which wait for it in a mode
 * that conflicts. False: the queue is being changed. */
static bool queue_take(struct app_reader *reader, uint64_t proc, uint64_t address, uint32_t mode,
		       struct app_lock *lock)
{
	const struct postgres_version *version = reader->version;
	struct holder before = {.lock = address};
	uint64_t awaited;
	uint32_t wants;

	if (!app_read_shared(reader, address + LOCK_QUEUE + sizeof(before.proc), &before.proc,
			     sizeof(before.proc)))
		return false;
	for (int i = 0; before.proc != proc; i++) {
		if (i == HOLDERS_MAX || before.proc == address + LOCK_QUEUE ||
		    !app_read_shared(reader, before.proc + version->lock_at, &awaited,
				     sizeof(awaited)) ||
		    !app_read_shared(reader, before.proc + version->mode_at, &wants,
				     sizeof(wants)) ||
		    awaited != address || wants >= MODES)
			return false;
		if (conflicts[mode] >> wants & 1 && !holder_take(reader, &before, lock))
			return false;
		/* links is the first member of PGPROC */
		if (!app_read_shared(reader, before.proc + sizeof(before.next), &before.proc,
				     sizeof(before.proc)))
			return false;
	}
	return true;
}

static bool session_lock(struct app_reader *reader, struct app_lock *lock)
{
	const struct postgres_version *version = reader->version;
	uint64_t proc, address, still;
	uint32_t mode;
	int32_t pid;

	if (!version || (!reader->kept_words[KEPT_PROC] && !data_find(reader)))
		return false;
	proc = reader->kept_words[KEPT_PROC];
	if (!proc || !app_read(reader, proc + version->pid_at, &pid, sizeof(pid)) ||
	    pid != reader->inner_pid || !proc_word(reader, proc, version->lock_at, &address))
		return false;
	if (!address)
		return true;
	if (!app_read(reader, proc + version->mode_at, &mode, sizeof(mode)) || !mode ||
	    mode >= MODES)
		return false;
	lock->waits = true;
	if (!holders_take(reader, proc, address, mode, lock) ||
	    (!lock->count && !queue_take(reader, proc, address, mode, lock)) ||
	    !proc_word(reader, proc, version->lock_at, &still) || still != address)
		lock->holder = lock->count = 0;
	return true;
}

static const char *const names[] = {"postgres", NULL};

const struct app_program postgres_program = {
	.names = names,
	.symbols = symbols,
	.take = version_take,
	.read = session_read,
	.read_running = running_read,
	.lock = session_lock,
};
