/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests to a parser about files, and its answers: unwind rows through libdw, names of functions
 * through .symtab, liblzma and libiberty or from perf maps, and where the runtime of a Go program
 * keeps its data. All of these are foreign data, and no other process reads them. Files are known
 * by numbers (module_table.h); with the first request for a file comes its descriptor. */
#ifndef TSNAP_UNWIND_FILE_REQUEST_H
#define TSNAP_UNWIND_FILE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "parser/parser.h"
#include "unwind/elf/elf_exports.h"
#include "unwind/elf/elf_file.h"
#include "unwind/elf/elf_probe.h"
#include "unwind/elf/elf_variable.h"
#include "unwind/elf/go_program.h"
#include "unwind/frame_source.h"
#include "unwind/function_name.h"
#include "unwind/x86_return.h"

#define FILE_ENDS_MAX 2 /* limit of parsers that end over one file */

enum file_request_kind {
	FILE_ROW,      /* struct file_row_answer */
	FILE_NAME,     /* struct file_name_answer */
	FILE_DROP,     /* forget the file: no answer */
	FILE_FORGET,   /* forget all files: no answer */
	FILE_GO,       /* struct file_go_answer: a whole program of Go */
	FILE_GO_FRAME, /* struct file_go_frame_answer: a function of such a program */
	FILE_HEAD,     /* struct file_head_answer; the parser keeps nothing of the file */
	FILE_EXPORTS,  /* struct runtime_exports; the parser keeps nothing of the file */
	FILE_RETURNS,  /* struct file_returns_answer; the parser keeps nothing of the file */
	FILE_SYMBOLS,  /* struct file_symbols_answer; the parser keeps nothing of the file */
	FILE_BEGIN,    /* struct file_begin_answer; the parser keeps nothing of the file */
	FILE_VARIABLE, /* struct file_variable_answer; the parser keeps nothing of the file */
	FILE_NEAREST,  /* struct file_nearest_answer; the parser keeps nothing of the file */
	FILE_FUNCTION, /* struct file_function_answer; the parser keeps nothing of the file */
	FILE_USDT,     /* struct file_usdt_answer; the parser keeps nothing of the file */
	FILE_SECTION,  /* struct file_section_answer; the parser keeps nothing of the file */
};

/* A request about a file, whose bytes may follow it (the vDSO); of FILE_SYMBOLS, FILE_VARIABLE,
 * FILE_NEAREST, FILE_FUNCTION, FILE_USDT and FILE_SECTION names do. */
struct file_request {
	uint32_t kind, number;
	uint64_t address;
	/* Size of the file that comes with the request: where the parser keeps nothing, else if
	 * opens is set. Its bytes follow the struct, or the first descriptor is its own, and the
	 * second one that of its debug file. jit: it is a perf map. */
	uint64_t bytes;
	uint8_t opens, jit;
	/* FILE_RETURNS: the thread is there; else a call returns there. FILE_VARIABLE: only symbols
	 * that the file exports */
	uint8_t exact;
};

struct file_row {
	uint64_t table_bytes;	  /* memory that the parser holds of the file */
	uint32_t operation_count; /* operations that follow */
	uint8_t without;	  /* the file has no table */
	uint8_t found, signal;	  /* members of struct frame_row */
	uint8_t end;		  /* enum stack_end, also where no row was found */
	uint64_t begin;		  /* member of struct frame_row */
	struct frame_rule cfa, ra;
	struct frame_rule saved[MACHINE_SAVED_MAX];
};

struct file_row_answer {
	struct file_row head;
	struct frame_operation operations[ROW_OPERATIONS_MAX];
};

struct file_name_answer {
	uint64_t unloaded; /* tables of functions given back since the last answer */
	uint8_t found, cut;
	char name[FUNCTION_NAME_SIZE];
};

struct file_go_answer {
	uint8_t is_go, has_functions;
	struct go_program program;
};

struct file_go_frame_answer {
	uint8_t found;
	int32_t depth; /* stack bytes since the function's begin; -1: not known */
	char name[FUNCTION_NAME_SIZE];
};

struct file_head_answer {
	uint8_t is_elf;
	struct elf_file elf; /* headers without the file itself */
};

struct file_returns_answer {
	uint32_t count;
	struct x86_return returns[X86_RETURNS_MAX];
};

#define FILE_SYMBOLS_MAX 16
#define FILE_SYMBOL_BYTES 32
#define FILE_BEGIN_MAX 64

struct file_symbols_answer {
	uint64_t addresses[FILE_SYMBOLS_MAX];
	uint8_t begins[FILE_SYMBOLS_MAX][FILE_SYMBOL_BYTES];
};

struct file_begin_answer {
	uint32_t count;
	char bytes[FILE_BEGIN_MAX];
};

struct file_variable_answer {
	struct elf_variable variable;
	uint8_t is_elf, is_mapped;
	uint64_t mapped; /* address, as the file has addresses, of the offset that was given */
};

struct file_nearest_answer {
	char name[VARIABLE_NAME_BYTES];
};

struct file_function_answer {
	uint8_t is_elf;
	struct elf_function function;
};

struct file_usdt_answer {
	uint8_t is_elf;
	struct elf_usdt usdt;
};

struct file_section_answer {
	uint8_t is_mapped;
	uint64_t mapped;  /* address, as the file has addresses, of the offset that was given */
	uint64_t address; /* of the section, as the file has it; 0: there is none */
};

/* Requests the headers of the file or image that elf has, with its bytes, and fills the rest of
 * elf. Returns 0, -errno as file_row_request() does, or -ENOEXEC: it is no ELF file. */
int file_head_request(struct parser *parser, struct elf_file *elf);
/* Requests what the file or image exports. Returns 0, or -errno as file_row_request() does. */
int file_exports_request(struct parser *parser, const struct elf_file *elf,
			 struct runtime_exports *exports);
/* Requests the addresses, as the file has them, of up to FILE_SYMBOLS_MAX symbols that the file of
 * elf->fd exports, 0 for those that it does not, and the bytes that the file has there, as far as
 * they are in one part of it. Returns 0, or -errno as file_row_request() does. */
int file_symbols_request(struct parser *parser, const struct elf_file *elf,
			 const char *const *names, unsigned int count,
			 struct file_symbols_answer *answer);
/* Requests the first bytes of any file, up to FILE_BEGIN_MAX. Returns 0; -ERANGE: it has fewer; or
 * -errno as file_row_request() does. */
int file_begin_request(struct parser *parser, int fd, void *to, size_t bytes);
/* Requests a variable of a file (elf_variable_find()), by its name of up to VARIABLE_NAME_BYTES
 * with the NUL, and the address of an offset of the file; or the variable whose name is most like
 * that one, "" where there is none. Return 0, or -errno as file_row_request() does. */
int file_variable_request(struct parser *parser, const struct elf_file *elf, const char *name,
			  bool exported, uint64_t offset, struct file_variable_answer *answer);
int file_nearest_request(struct parser *parser, const struct elf_file *elf, const char *name,
			 struct file_nearest_answer *answer);
/* Request what a file says of a function, by its symbol; or of a USDT probe, whose provider is ""
 * for any. Return 0, -errno as file_row_request() does, or -ENOEXEC: it is no ELF file. The caller
 * checks operands: usdt_operand_is_valid(). */
int file_function_request(struct parser *parser, const struct elf_file *elf, const char *name,
			  struct elf_function *function);
int file_usdt_request(struct parser *parser, const struct elf_file *elf, const char *provider,
		      const char *name, struct elf_usdt *usdt);
/* Requests the address of a section by its name, and that of an offset of the file. Returns 0, or
 * -errno as file_row_request() does. */
int file_section_request(struct parser *parser, const struct elf_file *elf, const char *name,
			 uint64_t offset, struct file_section_answer *answer);
/* Requests where x86-64 code of the file or image returns. Returns 0, or -errno as
 * file_row_request() does. */
int file_returns_request(struct parser *parser, const struct elf_file *elf, uint64_t address,
			 bool exact, struct file_returns_answer *answer);
/* Requests what a file is as a program of Go; the parser knows the file by that number from then
 * on. Returns 0, or -errno as file_row_request() does. */
int file_go_request(struct parser *parser, uint32_t number, const struct elf_file *elf,
		    struct file_go_answer *answer);
/* Requests the function at an address of a program of Go. Returns 0, or -errno as
 * file_row_request() does. */
int file_go_frame_request(struct parser *parser, uint32_t number, uint64_t address,
			  struct file_go_frame_answer *answer);

/* Requests a row; opens: the parser does not know the file. Returns 0; -EAGAIN: there is no parser
 * now; -EPIPE: it ended over the request; or another -errno: there is none at all. */
int file_row_request(struct parser *parser, uint32_t number, const struct elf_file *elf, bool opens,
		     uint64_t address, struct file_row_answer *answer);
/* Requests a name from a ready parser. message: with the descriptors or the image that request says
 * come with it. Returns 0 or -errno. */
int file_name_request(struct parser *parser, const struct file_request *request,
		      struct parser_message *message, struct file_name_answer *answer);
/* Has the parser forget one file, or all. */
void file_drop(struct parser *parser, uint32_t number);
void file_forget(struct parser *parser);

/* Answers struct file_request, in a parser. */
parser_service file_service;
/* Fills the function at an address of a program of Go, of that number, in a parser. */
void file_go_frame(uint32_t number, uint64_t address, struct file_go_frame_answer *answer);

#endif
