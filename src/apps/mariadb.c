/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MariaDB: the statement that each thread of the server runs, and what it waits for, in the words
 * of information_schema.processlist (INFO, STATE, COMMAND, DB, USER).
 *
 * A thread finds its session, a THD (sql/sql_class.h), in a thread-local variable that has no
 * symbol, and no version has the members of a THD where another one has them. The program exports
 * functions for storage engines that each return one member (include/mysql/plugin.h, storage
 * engines' calls in sql/sql_class.cc): their code says where it is, in any build. On x86-64 only.
 *
 * proc_info is the member behind the security context, and real_id, the thread that the session is
 * at, the one before thread_id. A THD begins with the address of its class' table of functions;
 * only if it does, and has the thread's own pointer as real_id, is anything of it shown.
 */
#include "apps/app_program.h"
#include "apps/member_code.h"
#include "unwind/file_request.h"

#include <string.h>

enum {
	CURRENT_THD,
	QUERY_STRING,
	THREAD_ID,
	USER_NAME,
	CURRENT_DB,
	CURRENT_COMMAND,
	COMMAND_NAMES,
	CLASS_TABLE,
};

static const char *const symbols[] = {
	[CURRENT_THD] = "_current_thd",
	[QUERY_STRING] = "thd_query_string",
	[THREAD_ID] = "thd_get_thread_id",
	[USER_NAME] = "thd_user_name",
	[CURRENT_DB] = "thd_current_db",
	[CURRENT_COMMAND] = "thd_current_command",
	[COMMAND_NAMES] = "command_name",
	[CLASS_TABLE] = "_ZTV3THD",
	NULL,
};

/* Members of the layout, by the symbol that says where they are. */
#define LAYOUT_COUNT (CURRENT_COMMAND + 1)
#define AT_USER (CURRENT_COMMAND + 1) /* in the security context */
_Static_assert(AT_USER < APP_LAYOUT_MAX, "there is a place for each");

#define MEMBER_MAX (1 << 20) /* a THD is not that large */
#define TABLE_HEAD 16	     /* of a class' table: its functions begin behind it */
#define COMMANDS_MAX 256
#define COMMAND_SLEEP 0 /* COM_SLEEP: waits for the client's next command */
/* Commands whose answer a client waits for: COM_INIT_DB, COM_QUERY, COM_FIELD_LIST,
 * COM_CHANGE_USER, COM_STMT_PREPARE, COM_STMT_EXECUTE, COM_STMT_RESET and COM_STMT_FETCH of the
 * protocol. Others are of replicas, and of the server's own threads. */
#define COMMANDS_ANSWERED \
	(1u << 2 | 1u << 3 | 1u << 4 | 1u << 17 | 1u << 22 | 1u << 23 | 1u << 26 | 1u << 28)
#define COMMAND_BULK 250 /* COM_STMT_BULK_EXECUTE */

struct sized_text { /* LEX_CSTRING */
	uint64_t address, bytes;
};

/* Parts of a THD that are read at once: its begin, and from the security context on. */
#define HEAD_BYTES 512
#define SECURITY_BYTES 1024

struct session {
	char head[HEAD_BYTES], security[SECURITY_BYTES];
};

static bool layout_learn(const struct file_symbols_answer *file, int64_t layout[APP_LAYOUT_MAX])
{
	const int64_t text_bytes = sizeof(struct sized_text);

	if (!file->addresses[COMMAND_NAMES] || !file->addresses[CLASS_TABLE] ||
	    !member_of_thread(file->begins[CURRENT_THD], &layout[CURRENT_THD]) ||
	    !member_behind(file->begins[USER_NAME], &layout[AT_USER]))
		return false;
	for (int i = QUERY_STRING; i < LAYOUT_COUNT; i++)
		if (!member_of_argument(file->begins[i], &layout[i]) || layout[i] <= 0 ||
		    layout[i] > MEMBER_MAX)
			return false;
	return layout[QUERY_STRING] <= HEAD_BYTES - text_bytes &&
	       layout[CURRENT_DB] <= HEAD_BYTES - text_bytes &&
	       layout[CURRENT_COMMAND] > layout[USER_NAME] &&
	       layout[CURRENT_COMMAND] - layout[USER_NAME] <= SECURITY_BYTES - 4 &&
	       layout[AT_USER] >= 0 && layout[AT_USER] < MEMBER_MAX;
}

/* Reads the text that a member has. */
static const char *sized_text_read(struct app_reader *reader, const char *member)
{
	struct sized_text text;

	memcpy(&text, member, sizeof(text));
	return text.bytes ? app_text_part(reader, text.address, text.bytes) : NULL;
}

/* Returns the name of a command. */
static const char *command_name(struct app_reader *reader, uint32_t command)
{
	char name[sizeof(struct sized_text)];
	struct app_constant *known = &reader->constants[command % APP_CONSTANTS_MAX];
	uint64_t address = reader->symbols[COMMAND_NAMES] + command * sizeof(name);

	if ((known->address != address || !known->text) &&
	    app_read(reader, address, name, sizeof(name)))
		*known = (struct app_constant){address, sized_text_read(reader, name)};
	return known->address == address ? known->text : NULL;
}

/* Reads a state. Most are constants of the program, which has them between its code and its tables
 * of functions. */
static const char *state_read(struct app_reader *reader, uint64_t address)
{
	struct app_constant *known = &reader->constants[address / 8 % APP_CONSTANTS_MAX];

	if (address < reader->symbols[QUERY_STRING] || address > reader->symbols[CLASS_TABLE])
		return app_text(reader, address);
	if (known->address != address || !known->text)
		*known = (struct app_constant){address, app_text(reader, address)};
	return known->text;
}

/* Reads the session that the thread is at. False: it can't be read, or the program's memory is not
 * what was found. *found: there is one. */
static bool session_read(struct app_reader *reader, struct session *session, bool *found)
{
	const int64_t *layout = reader->layout;
	uint64_t pointer = app_pointer(reader), address, table, real_id;

	*found = false;
	if (!pointer)
		return true;
	if (!app_read(reader, pointer + (uint64_t)layout[CURRENT_THD], &address, sizeof(address)))
		return false;
	if (!address)
		return true;
	if (!app_read(reader, address, session->head, HEAD_BYTES))
		return false;
	memcpy(&table, session->head, sizeof(table));
	if (table != reader->symbols[CLASS_TABLE] + TABLE_HEAD)
		return false;
	*found = app_read(reader, address + (uint64_t)layout[THREAD_ID] - sizeof(real_id), &real_id,
			  sizeof(real_id)) &&
		 real_id == pointer &&
		 app_read(reader, address + (uint64_t)layout[USER_NAME], session->security,
			  SECURITY_BYTES);
	return true;
}

static bool thread_read(struct app_reader *reader, uint64_t needs, struct sample_app *facts)
{
	const int64_t *layout = reader->layout;
	struct session session;
	uint64_t security, state, user;
	uint32_t command;
	bool found;

	if (!session_read(reader, &session, &found))
		return false;
	if (found && needs & NEED_QUERY)
		facts->query = sized_text_read(reader, session.head + layout[QUERY_STRING]);
	if (!found || !(needs & NEED_APP))
		return true;
	memcpy(&security, session.security, sizeof(security));
	memcpy(&state, session.security + sizeof(security), sizeof(state));
	memcpy(&command, session.security + layout[CURRENT_COMMAND] - layout[USER_NAME],
	       sizeof(command));
	facts->database = sized_text_read(reader, session.head + layout[CURRENT_DB]);
	if (security && app_read(reader, security + (uint64_t)layout[AT_USER], &user, sizeof(user)))
		facts->user = app_text(reader, user);
	/* a thread of the server itself has neither a user nor a command */
	if (command >= COMMANDS_MAX || (command == COMMAND_SLEEP && !facts->user))
		return true;
	facts->state = command_name(reader, command);
	/* an idle session may have the state of its last statement left */
	if (command != COMMAND_SLEEP)
		facts->wait = state_read(reader, state);
	return true;
}

/* A session with a user runs a command, or waits for the client's next one. */
static bool thread_lock(struct app_reader *reader, struct app_lock *lock)
{
	const int64_t *layout = reader->layout;
	struct session session;
	uint64_t security, user;
	uint32_t command;
	bool found;

	if (!session_read(reader, &session, &found))
		return false;
	if (!found)
		return true;
	memcpy(&security, session.security, sizeof(security));
	memcpy(&command, session.security + layout[CURRENT_COMMAND] - layout[USER_NAME],
	       sizeof(command));
	lock->serves =
		(command == COMMAND_BULK || (command < 32 && COMMANDS_ANSWERED >> command & 1)) &&
		security &&
		app_read(reader, security + (uint64_t)layout[AT_USER], &user, sizeof(user)) && user;
	return true;
}

static const char *const names[] = {"mariadbd", NULL};

const struct app_program mariadb_program = {
	.names = names,
	.symbols = symbols,
	.learn = layout_learn,
	.read = thread_read,
	.lock = thread_lock,
};
