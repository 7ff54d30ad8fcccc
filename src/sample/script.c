/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/script.h"

#include <stdbool.h>
#include <string.h>

/* Interpreters: name, without a version; letters of options that give the code or a module in place
 * of a script; letters of options with a value, in the same word or the next one. */
/* clang-format off */
static const struct interpreter {
	const char *name, *code, *valued;
	bool jar; /* runs a file only after -jar, else a class */
} interpreters[] = {
	{"python",	"cm",	"WX",		false},
	{"pypy",	"cm",	"WX",		false},
	{"perl",	"eE",	"IMm",		false},
	{"ruby",	"e",	"CIr",		false},
	{"node",	"ep",	"Cr",		false},
	{"nodejs",	"ep",	"Cr",		false},
	{"php",		"BERr",	"Scdtz",	false},
	{"lua",		"e",	"l",		false},
	{"tclsh",	"",	"",		false},
	{"wish",	"",	"",		false},
	{"Rscript",	"e",	"",		false},
	{"sh",		"cs",	"oO",		false},
	{"bash",	"cs",	"oO",		false},
	{"dash",	"cs",	"oO",		false},
	{"ash",		"cs",	"oO",		false},
	{"ksh",		"cs",	"oO",		false},
	{"zsh",		"cs",	"oO",		false},
	{"java",	"",	"p",		true},
};
/* clang-format on */

/* Long options of some of them: with code, with a value in the next word. */
static const char *const code_options[] = {"--eval", "--print"};
static const char *const valued_options[] = {
	"--require", "--import",   "--loader",	   "--rcfile",	    "--init-file",
	"-cp",	     "-classpath", "--class-path", "--module-path", "--add-modules",
};

/* True if the word has the name, after which a version may follow: python3.11. */
static bool is_version_of(const char *word, size_t length, const char *name)
{
	size_t named = strlen(name);

	return length >= named && !memcmp(word, name, named) &&
	       strspn(word + named, "0123456789.") >= length - named;
}

static const char *file_name(const char *word, size_t *length)
{
	const char *slash = memrchr(word, '/', *length);

	if (!slash)
		return word;
	*length -= (size_t)(slash + 1 - word);
	return slash + 1;
}

static const struct interpreter *interpreter_find(const char *word, size_t length)
{
	if (*word == '-') { /* a login shell */
		word++;
		length--;
	}
	word = file_name(word, &length);
	for (size_t i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++)
		if (is_version_of(word, length, interpreters[i].name))
			return &interpreters[i];
	return NULL;
}

static bool word_is(const char *word, size_t length, const char *text)
{
	return length == strlen(text) && !memcmp(word, text, length);
}

static bool word_in(const char *word, size_t length, const char *const *texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (word_is(word, length, texts[i]))
			return true;
	return false;
}

enum option_kind { OPTION_PLAIN, OPTION_VALUED, OPTION_CODE };

/* What an option means for the words after it. */
static enum option_kind option_read(const struct interpreter *interpreter, const char *word,
				    size_t length)
{
	if (length == 1 ||
	    word_in(word, length, code_options, sizeof(code_options) / sizeof(code_options[0])))
		return OPTION_CODE; /* "-" is the standard input */
	if (word_in(word, length, valued_options,
		    sizeof(valued_options) / sizeof(valued_options[0])))
		return OPTION_VALUED;
	for (size_t i = 1; i < length && word[1] != '-'; i++) {
		if (strchr(interpreter->code, word[i]))
			return OPTION_CODE;
		if (strchr(interpreter->valued, word[i]))
			return i + 1 == length ? OPTION_VALUED : OPTION_PLAIN;
	}
	return OPTION_PLAIN;
}

const char *process_script(const char *cmdline, size_t *length)
{
	const char *word = cmdline;
	enum option_kind option = OPTION_PLAIN;
	const struct interpreter *interpreter;
	bool jar = false;

	*length = strcspn(word, " ");
	interpreter = interpreter_find(word, *length);
	while (interpreter && *(word += *length) && *(word += strspn(word, " "))) {
		*length = strcspn(word, " ");
		if (option == OPTION_VALUED) {
			option = OPTION_PLAIN;
			continue;
		}
		if (*word != '-')
			return !interpreter->jar || jar ? file_name(word, length) : NULL;
		jar |= word_is(word, *length, "-jar");
		option = option_read(interpreter, word, *length);
		if (option == OPTION_CODE)
			return NULL;
	}
	return NULL;
}
