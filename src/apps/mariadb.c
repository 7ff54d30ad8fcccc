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
#define AT_END (CURRENT_COMMAND + 2)  /* behind the last member of a THD that is read */
_Static_assert(AT_END < APP_LAYOUT_MAX, "there is a place for each");

/* A THD is read at once up to there: 16 KB in 10.11, which takes as long as two reads of a word. */
#define SESSION_BYTES 32768
#define MEMBER_MAX (1 << 20) /* of the security context */
#define TABLE_HEAD 16	     /* of a class' table: its functions begin behind it */
#define SHORT_BYTES 256	     /* of a text */
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

struct session {
	uint64_t address; /* 0: the thread is at none */
	char bytes[SESSION_BYTES];
};

static bool layout_learn(const struct file_symbols_answer *file, int64_t layout[APP_LAYOUT_MAX])
{
	if (!file->addresses[COMMAND_NAMES] || !file->addresses[CLASS_TABLE] ||
	    !member_of_thread(file->begins[CURRENT_THD], &layout[CURRENT_THD]) ||
	    !member_behind(file->begins[USER_NAME], &layout[AT_USER]) || layout[AT_USER] < 0 ||
	    layout[AT_USER] > MEMBER_MAX)
		return false;
	for (int i = QUERY_STRING; i < LAYOUT_COUNT; i++) {
		/* no member that is read is longer than a text, and security has its state behind
		 * it */
		const int64_t most = SESSION_BYTES - (int64_t)sizeof(struct sized_text);

		if (!member_of_argument(file->begins[i], &layout[i]) || layout[i] <= 0 ||
		    layout[i] > most)
			return false;
		if (layout[AT_END] < layout[i] + (int64_t)sizeof(struct sized_text))
			layout[AT_END] = layout[i] + (int64_t)sizeof(struct sized_text);
	}
	return layout[THREAD_ID] >= (int64_t)sizeof(uint64_t);
}

/* Reads the text that a member has. */
static const char *sized_text_read(struct app_reader *reader, const char *member)
{
	struct sized_text text;

	memcpy(&text, member, sizeof(text));
	if (!text.address || !text.bytes)
		return NULL;
	return text.bytes <= SHORT_BYTES ? app_text_near(reader, text.address, text.bytes)
					 : app_text_part(reader, text.address, text.bytes);
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

static uint64_t word_at(const struct session *session, int64_t at)
{
	uint64_t word;

	memcpy(&word, session->bytes + at, sizeof(word));
	return word;
}

/* Reads the session that the thread with that pointer is at. False: it can't be read, or the memory
 * is not what was found. */
static bool session_find(struct app_reader *reader, uint64_t pointer, struct session *session)
{
	const int64_t *layout = reader->layout;
	uint64_t address;

	session->address = 0;
	if (!pointer)
		return true;
	if (!app_read(reader, pointer + (uint64_t)layout[CURRENT_THD], &address, sizeof(address)))
		return false;
	if (!address)
		return true;
	if (!app_read(reader, address, session->bytes, (size_t)layout[AT_END]) ||
	    word_at(session, 0) != reader->symbols[CLASS_TABLE] + TABLE_HEAD)
		return false;
	if (word_at(session, layout[THREAD_ID] - (int64_t)sizeof(pointer)) == pointer)
		session->address = address;
	return true;
}

static bool session_read(struct app_reader *reader, struct session *session)
{
	bool read = session_find(reader, app_pointer(reader), session);

	return (read && session->address) || !app_pointer_changed(reader)
		       ? read
		       : session_find(reader, app_pointer(reader), session);
}

/* Returns the address of the name of the session's user; 0: it has none. */
static uint64_t user_find(struct app_reader *reader, const struct session *session)
{
	const int64_t *layout = reader->layout;
	uint64_t security = word_at(session, layout[USER_NAME]), user;
	uint64_t at = security + (uint64_t)layout[AT_USER] - session->address;

	if (!security)
		return 0;
	/* nearly always it is a part of the session */
	if (at < (uint64_t)layout[AT_END] - sizeof(user))
		return word_at(session, (int64_t)at);
	return app_read(reader, session->address + at, &user, sizeof(user)) ? user : 0;
}

static uint32_t command_get(struct app_reader *reader, const struct session *session)
{
	return (uint32_t)word_at(session, reader->layout[CURRENT_COMMAND]);
}

static bool thread_read(struct app_reader *reader, uint64_t needs, struct sample_app *facts)
{
	static struct session session;
	const int64_t *layout = reader->layout;
	uint32_t command;
	uint64_t user;

	if (!session_read(reader, &session))
		return false;
	if (session.address && needs & NEED_QUERY)
		facts->query = sized_text_read(reader, session.bytes + layout[QUERY_STRING]);
	if (!session.address || !(needs & NEED_APP))
		return true;
	facts->database = sized_text_read(reader, session.bytes + layout[CURRENT_DB]);
	user = user_find(reader, &session);
	facts->user = user ? app_text_near(reader, user, UINT64_MAX) : NULL;
	command = command_get(reader, &session);
	/* a thread of the server itself has neither a user nor a command */
	if (command >= COMMANDS_MAX || (command == COMMAND_SLEEP && !facts->user))
		return true;
	facts->state = command_name(reader, command);
	/* an idle session may have the state of its last statement left */
	if (command != COMMAND_SLEEP)
		facts->wait = state_read(
			reader, word_at(&session, layout[USER_NAME] + (int64_t)sizeof(uint64_t)));
	return true;
}

/* A session with a user runs a command, or waits for the client's next one. */
static bool thread_serves(struct app_reader *reader, bool *serves)
{
	static struct session session;
	uint32_t command;

	if (!session_read(reader, &session))
		return false;
	if (!session.address)
		return true;
	command = command_get(reader, &session);
	*serves = (command == COMMAND_BULK || (command < 32 && COMMANDS_ANSWERED >> command & 1)) &&
		  user_find(reader, &session);
	return true;
}

static const char *const names[] = {"mariadbd", NULL};

const struct app_program mariadb_program = {
	.names = names,
	.symbols = symbols,
	.learn = layout_learn,
	.read = thread_read,
	.serves = thread_serves,
};
