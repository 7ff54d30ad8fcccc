/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PHP behind FastCGI (php-fpm, php-cgi): which request a worker answers, which script it runs, and
 * in which function of it. From two variables that the program exports, as PHP 7.3 to 8.4 have them
 * without threads (ZTS has them elsewhere):
 *
 * sapi_globals (main/SAPI.h) begins with server_context, which is set while there is a request, and
 * struct request_info: method, query string, cookies, length, path of the script, URI.
 *
 * executor_globals (Zend/zend_globals.h) has, at a place that differs by version, vm_stack_top,
 * vm_stack_end, vm_stack, vm_stack_page_size and current_execute_data. The page size is always
 * 256 KB, by which they are found. Frames (struct _zend_execute_data, Zend/zend_compile.h) lead
 * from the innermost to the outermost one.
 *
 * The query string may have anybody's data, and is not read.
 */
#include "apps/app_program.h"
#include "base/names.h"
#include "base/text.h"

#include <string.h>

#define CONTEXT 0 /* in sapi_globals */
#define METHOD 1
#define SCRIPT 5
#define URI 6
#define SAPI_WORDS 7

#define EXECUTOR_WORDS 100 /* of executor_globals that are searched */
#define PAGE_BYTES 262144  /* ZEND_VM_STACK_PAGE_SIZE: slots of 16 bytes */
#define FRAMES_MAX 32

#define FRAME_FUNCTION 3 /* in words of struct _zend_execute_data */
#define FRAME_PREVIOUS 6
#define FRAME_WORDS 7
#define FUNCTION_USER 2 /* ZEND_USER_FUNCTION: it is PHP, not C */
#define FUNCTION_NAME 1 /* in words of union _zend_function: type, name, class */
#define FUNCTION_CLASS 2
#define FUNCTION_WORDS 3
#define CLASS_NAME 1	/* in words of struct _zend_class_entry */
#define STRING_LENGTH 2 /* in words of struct _zend_string */
#define STRING_TEXT_BYTES 24
#define NAME_BYTES 128 /* of a function or a class; longer ones are cut */

enum { SAPI, EXECUTOR };
static const char *const symbols[] = {"sapi_globals", "executor_globals", NULL};

/* Adds a zend_string. False: it can't be read, or is no name. */
static bool name_add(struct app_reader *reader, uint64_t address, struct text *text)
{
	uint64_t length;
	char name[NAME_BYTES];

	if (!app_read(reader, address + STRING_LENGTH * sizeof(length), &length, sizeof(length)) ||
	    !length)
		return false;
	if (length > sizeof(name))
		length = sizeof(name);
	if (!app_read(reader, address + STRING_TEXT_BYTES, name, length))
		return false;
	text_add(text, name, length);
	return true;
}

/* Address of the innermost frame; 0: no script runs, or it was not found. */
static uint64_t frame_find(struct app_reader *reader)
{
	uint64_t words[EXECUTOR_WORDS];

	if (!reader->symbols[EXECUTOR] ||
	    !app_read(reader, reader->symbols[EXECUTOR], words, sizeof(words)))
		return 0;
	for (size_t i = 3; i + 1 < EXECUTOR_WORDS; i++)
		if (words[i] == PAGE_BYTES && words[i - 1] && words[i - 1] < words[i - 3] &&
		    words[i - 3] <= words[i - 2])
			return words[i + 1];
	return 0;
}

/* Reads the innermost function of the script: "Shop\Cart::total", or {main}. */
static const char *function_read(struct app_reader *reader)
{
	uint64_t at = frame_find(reader), frame[FRAME_WORDS], function[FUNCTION_WORDS], class;
	const char *name = NULL;
	struct text text = {0};

	for (int i = 0; i < FRAMES_MAX && at && !name; i++, at = frame[FRAME_PREVIOUS]) {
		if (!app_read(reader, at, frame, sizeof(frame)))
			break;
		/* a frame between C and PHP has no function */
		if (!frame[FRAME_FUNCTION])
			continue;
		if (!app_read(reader, frame[FRAME_FUNCTION], function, sizeof(function)))
			break;
		if ((function[0] & 0xff) != FUNCTION_USER)
			continue;
		text_clear(&text);
		if (function[FUNCTION_CLASS] &&
		    app_read(reader, function[FUNCTION_CLASS] + CLASS_NAME * sizeof(class), &class,
			     sizeof(class)) &&
		    name_add(reader, class, &text))
			text_add_string(&text, "::");
		if (!function[FUNCTION_NAME])
			text_add_string(&text, "{main}");
		else if (!name_add(reader, function[FUNCTION_NAME], &text))
			break;
		name = name_transient(text_string(&text), text.length);
	}
	text_done(&text);
	return name;
}

static const char *request_read(struct app_reader *reader, const uint64_t *sapi)
{
	const char *method = app_text(reader, sapi[METHOD]), *uri = app_text(reader, sapi[URI]),
		   *request;
	struct text text = {0};

	if (!method || !uri)
		return NULL;
	/* some servers leave the query string in it */
	text_add_format(&text, "%s %.*s", method, (int)strcspn(uri, "?"), uri);
	request = name_transient(text_string(&text), text.length);
	text_done(&text);
	return request;
}

static bool worker_read(struct app_reader *reader, uint64_t needs, struct sample_app *facts)
{
	uint64_t sapi[SAPI_WORDS];

	if (!reader->symbols[SAPI] ||
	    !app_read_shared(reader, reader->symbols[SAPI], sapi, sizeof(sapi)))
		return false;
	/* the master, or a worker between two requests: what else is there is of the last one */
	if (!sapi[CONTEXT] || !sapi[SCRIPT] || !(needs & NEED_REQUEST))
		return true;
	facts->request = request_read(reader, sapi);
	facts->script = app_text(reader, sapi[SCRIPT]);
	facts->function = function_read(reader);
	return true;
}

static const char *const names[] = {"php-fpm", "php-cgi", NULL};

const struct app_program php_program = {
	.names = names,
	.symbols = symbols,
	.read = worker_read,
};
