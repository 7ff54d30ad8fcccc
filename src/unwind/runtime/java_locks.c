/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/java_locks.h"

#include <string.h>

#define NEEDED                                                                                     \
	(JAVA_BIT(JAVA_THREAD_OBJECT) | JAVA_BIT(JAVA_OBJECT_MARK) | JAVA_BIT(JAVA_OBJECT_CLASS) | \
	 JAVA_BIT(JAVA_OBJECT_NARROW) | JAVA_BIT(JAVA_CLASS_SUPER) | JAVA_BIT(JAVA_CLASS_NAME) |   \
	 JAVA_BIT(JAVA_CLASS_POOL) | JAVA_BIT(JAVA_NAME_LENGTH) | JAVA_BIT(JAVA_NAME_TEXT) |       \
	 JAVA_BIT(JAVA_LIST_LENGTH) | JAVA_BIT(JAVA_OBJECT_BASE) | JAVA_BIT(JAVA_OBJECT_SHIFT) |   \
	 JAVA_BIT(JAVA_CLASS_BASE) | JAVA_BIT(JAVA_CLASS_SHIFT) | JAVA_BIT(JAVA_HEAP) |            \
	 JAVA_BIT(JAVA_HEAP_STOPPED) | JAVA_BIT(JAVA_HEAP_COUNT) | JAVA_BIT(JAVA_OPTIONS) |        \
	 JAVA_BIT(JAVA_OPTION_COUNT) | JAVA_BIT(JAVA_OPTION_NAME) | JAVA_BIT(JAVA_OPTION_VALUE))
#define TABLE_NEEDED                                                      \
	(JAVA_BIT(JAVA_CLASS_FIELDS) | JAVA_BIT(JAVA_CLASS_FIELD_COUNT) | \
	 JAVA_BIT(JAVA_SHORTS_DATA))
#define STREAM_NEEDED (JAVA_BIT(JAVA_CLASS_STREAM) | JAVA_BIT(JAVA_BYTES_DATA))

#define OPTIONS_MAX 4096 /* OpenJDK 17 has 1300 */
#define OPTION_BYTES 32
#define SHIFT_MAX 16
#define SUPERS_MAX 64
#define FIELDS_MAX 512
#define STREAM_BYTES 4096
#define OFFSET_LEAST 8 /* after the mark */
#define OFFSET_MAX 65536
#define NAME_MAX_BYTES 256

/* Mark of an object that was moved: markWord::marked_value, in the lock bits. */
#define MARK_MOVED 3u
#define MARK_MONITOR 2u /* markWord::monitor_value: the rest is the monitor's address */

static bool java_short(struct thread_memory *memory, uint64_t address, uint16_t *number)
{
	return !thread_memory_read_code(memory, address, number, sizeof(*number));
}

static bool java_byte(struct thread_memory *memory, uint64_t address, uint8_t *number)
{
	return !thread_memory_read_code(memory, address, number, sizeof(*number));
}

static bool pointer_read(const struct java_pointers *pointers, struct thread_memory *memory,
			 uint64_t address, uint64_t *to)
{
	int32_t number;

	if (!pointers->narrow)
		return java_word(memory, address, to);
	if (!java_int(memory, address, &number))
		return false;
	*to = number ? pointers->base + ((uint64_t)(uint32_t)number << pointers->shift) : 0;
	return true;
}

/* --- options of the JVM */

enum { OPTION_OBJECTS, OPTION_CLASSES, OPTION_ZGC, OPTION_COMPACT, OPTION_COUNT };

static const char *const options[OPTION_COUNT] = {
	[OPTION_OBJECTS] = "UseCompressedOops",
	[OPTION_CLASSES] = "UseCompressedClassPointers",
	[OPTION_ZGC] = "UseZGC",
	[OPTION_COMPACT] = "UseCompactObjectHeaders", /* Java 24 and later */
};

/* Reads the row of an option, if it is wanted. */
static bool option_look(const struct java_layout *layout, struct thread_memory *memory,
			uint64_t row, bool set[OPTION_COUNT], unsigned int *found)
{
	char name[OPTION_BYTES];
	uint64_t address;
	uint8_t value;

	if (!java_word(memory, row + layout->at[JAVA_OPTION_NAME], &address))
		return false;
	if (!address) /* the last row of some versions */
		return true;
	if (!java_text(memory, address, name, sizeof(name)))
		return false;
	for (unsigned int i = 0; i < OPTION_COUNT; i++) {
		if (strcmp(name, options[i]) != 0)
			continue;
		if (!java_word(memory, row + layout->at[JAVA_OPTION_VALUE], &address) ||
		    !java_byte(memory, address, &value))
			return false;
		set[i] = value;
		*found |= 1u << i;
	}
	return true;
}

static bool pointers_set(struct java_pointers *pointers, const struct java_layout *layout,
			 struct thread_memory *memory, enum java_field base, enum java_field shift)
{
	int32_t bits;

	if (!pointers->narrow)
		return true;
	if (!java_word(memory, layout->at[base], &pointers->base) ||
	    !java_int(memory, layout->at[shift], &bits))
		return false;
	pointers->shift = (uint32_t)bits;
	return pointers->shift <= SHIFT_MAX;
}

/* Learns how the JVM's pointers look. False: its objects can't be read. */
static bool options_read(struct java_locks *locks, const struct java_layout *layout,
			 struct thread_memory *memory)
{
	const unsigned int needed = 1u << OPTION_OBJECTS | 1u << OPTION_CLASSES;
	bool set[OPTION_COUNT] = {false};
	unsigned int found = 0;
	uint64_t row, count;

	if (!java_layout_has_all(layout, NEEDED) || !layout->option_bytes || !layout->pool_bytes ||
	    (!java_layout_has_all(layout, STREAM_NEEDED) &&
	     !java_layout_has_all(layout, TABLE_NEEDED)) ||
	    !java_word(memory, layout->at[JAVA_OPTIONS], &row) ||
	    !java_word(memory, layout->at[JAVA_OPTION_COUNT], &count) || count > OPTIONS_MAX)
		return false;
	for (; count && found != (1u << OPTION_COUNT) - 1; count--, row += layout->option_bytes)
		if (!option_look(layout, memory, row, set, &found))
			return false;
	locks->objects.narrow = set[OPTION_OBJECTS];
	locks->classes.narrow = set[OPTION_CLASSES];
	return (found & needed) == needed && !set[OPTION_ZGC] && !set[OPTION_COMPACT] &&
	       pointers_set(&locks->objects, layout, memory, JAVA_OBJECT_BASE, JAVA_OBJECT_SHIFT) &&
	       pointers_set(&locks->classes, layout, memory, JAVA_CLASS_BASE, JAVA_CLASS_SHIFT);
}

/* --- classes and their fields */

/* Reads the end of a name of at most that many bytes, and adds a zero. */
static bool name_read(const struct java_layout *layout, struct thread_memory *memory,
		      uint64_t symbol, char *text, size_t bytes)
{
	uint64_t from = symbol + layout->at[JAVA_NAME_TEXT];
	uint16_t length;

	if (!java_short(memory, symbol + layout->at[JAVA_NAME_LENGTH], &length))
		return false;
	if (length > bytes - 1) {
		from += length - (bytes - 1);
		length = (uint16_t)(bytes - 1);
	}
	text[length] = '\0';
	return !thread_memory_read_code(memory, from, text, length);
}

/* Reads whether the symbol is a name. */
static bool name_is(const struct java_layout *layout, struct thread_memory *memory, uint64_t symbol,
		    const char *name, bool *is)
{
	char text[NAME_MAX_BYTES];

	if (!name_read(layout, memory, symbol, text, sizeof(text)))
		return false;
	*is = !strcmp(text, name);
	return true;
}

static bool object_class(const struct java_locks *locks, const struct java_layout *layout,
			 struct thread_memory *memory, uint64_t object, uint64_t *class)
{
	enum java_field field = locks->classes.narrow ? JAVA_OBJECT_NARROW : JAVA_OBJECT_CLASS;
	uint64_t mark;

	return java_word(memory, object + layout->at[JAVA_OBJECT_MARK], &mark) &&
	       (mark & MARK_MOVED) != MARK_MOVED &&
	       pointer_read(&locks->classes, memory, object + layout->at[field], class) && *class;
}

/* Finds the class with that name, or, if it is known, address among a class and those above it.
 * *known is 0 if it is none of them. */
static bool class_above(const struct java_layout *layout, struct thread_memory *memory,
			uint64_t class, const char *name, uint64_t *known)
{
	uint64_t wanted = *known, symbol;
	bool is;

	*known = 0;
	for (int i = 0; class && i < SUPERS_MAX; i++) {
		is = class == wanted;
		if (!wanted && (!java_word(memory, class + layout->at[JAVA_CLASS_NAME], &symbol) ||
				!name_is(layout, memory, symbol, name, &is)))
			return false;
		if (is) {
			*known = class;
			return true;
		}
		if (!java_word(memory, class + layout->at[JAVA_CLASS_SUPER], &class))
			return false;
	}
	return !class;
}

static bool field_is(const struct java_layout *layout, struct thread_memory *memory, uint64_t pool,
		     uint32_t index, const char *name, bool *is)
{
	uint64_t symbol;

	return index <= UINT16_MAX &&
	       java_word(memory, pool + layout->pool_bytes + index * sizeof(symbol), &symbol) &&
	       name_is(layout, memory, symbol, name, is);
}

/* Finds a field in Java before 21: rows of six shorts, FieldInfo in oops/fieldInfo.hpp. */
static bool table_find(const struct java_layout *layout, struct thread_memory *memory,
		       uint64_t class, uint64_t pool, const char *name, uint32_t *offset)
{
	struct {
		uint16_t access, name, signature, value, low, high;
	} row;
	uint64_t table;
	uint16_t count;
	bool is;

	if (!java_word(memory, class + layout->at[JAVA_CLASS_FIELDS], &table) ||
	    !java_short(memory, class + layout->at[JAVA_CLASS_FIELD_COUNT], &count))
		return false;
	table += layout->at[JAVA_SHORTS_DATA];
	for (uint16_t i = 0; i < count && i < FIELDS_MAX; i++, table += sizeof(row)) {
		if (thread_memory_read_code(memory, table, &row, sizeof(row)) ||
		    !field_is(layout, memory, pool, row.name, name, &is))
			return false;
		/* the lowest bits: 1 if it is an offset */
		*offset = ((uint32_t)row.high << 16 | row.low) >> 2;
		if (is)
			return (row.low & 3) == 1;
	}
	return false;
}

struct stream {
	uint8_t bytes[STREAM_BYTES];
	size_t at, count;
};

/* Reads a number of utilities/unsigned5.hpp: up to five bytes, none of them 0, and those before the
 * last at least 192. */
static bool stream_number(struct stream *stream, uint32_t *number)
{
	*number = 0;
	for (unsigned int shift = 0; shift < 30 && stream->at < stream->count; shift += 6) {
		uint8_t byte = stream->bytes[stream->at++];

		if (!byte)
			return false;
		*number += (uint32_t)(byte - 1) << shift;
		if (byte <= 191 || shift == 24)
			return true;
	}
	return false;
}

/* Bits of a field's flags, FieldInfo::FieldFlags, for each of which a number follows. */
#define FLAG_INITIALIZED (1u << 0)
#define FLAG_GENERIC (1u << 2)
#define FLAG_CONTENDED (1u << 4)

/* Reads a field: its name's index, its offset, and others. */
static bool stream_field(struct stream *stream, uint32_t *name, uint32_t *offset)
{
	static const uint32_t more[] = {FLAG_INITIALIZED, FLAG_GENERIC, FLAG_CONTENDED};
	uint32_t flags, other;

	if (!stream_number(stream, name) || !stream_number(stream, &other) ||
	    !stream_number(stream, offset) || !stream_number(stream, &other) ||
	    !stream_number(stream, &flags))
		return false;
	for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++)
		if (flags & more[i] && !stream_number(stream, &other))
			return false;
	return true;
}

/* Finds a field since Java 21: FieldInfoStream in oops/fieldStreams.hpp begins with the number of
 * the fields, and that of those which only the JVM knows. */
static bool stream_find(const struct java_layout *layout, struct thread_memory *memory,
			uint64_t class, uint64_t pool, const char *name, uint32_t *offset)
{
	struct stream stream = {.at = 0};
	uint32_t count, others, index;
	uint64_t array;
	int32_t bytes;
	bool is;

	if (!java_word(memory, class + layout->at[JAVA_CLASS_STREAM], &array) ||
	    !java_int(memory, array + layout->at[JAVA_LIST_LENGTH], &bytes) || bytes < 0)
		return false;
	stream.count = bytes < STREAM_BYTES ? (size_t)bytes : STREAM_BYTES;
	if (thread_memory_read_code(memory, array + layout->at[JAVA_BYTES_DATA], stream.bytes,
				    stream.count) ||
	    !stream_number(&stream, &count) || !stream_number(&stream, &others))
		return false;
	for (uint32_t i = 0; i < count && i < FIELDS_MAX; i++) {
		if (!stream_field(&stream, &index, offset) ||
		    !field_is(layout, memory, pool, index, name, &is))
			return false;
		if (is)
			return true;
	}
	return false;
}

/* Finds the offset of a class' own field, of that many bytes. */
static bool field_find(const struct java_layout *layout, struct thread_memory *memory,
		       uint64_t class, const char *name, uint32_t bytes, uint32_t *offset)
{
	uint64_t pool;

	return java_word(memory, class + layout->at[JAVA_CLASS_POOL], &pool) &&
	       (java_layout_has_all(layout, STREAM_NEEDED)
			? stream_find(layout, memory, class, pool, name, offset)
			: table_find(layout, memory, class, pool, name, offset)) &&
	       *offset >= OFFSET_LEAST && *offset < OFFSET_MAX && !(*offset % bytes);
}

/* --- threads and their locks */

/* Reads the object that is a thread's: since Java 21 that of a virtual thread that it runs. */
static bool thread_object(const struct java_layout *layout, struct thread_memory *memory,
			  uint64_t thread, uint64_t *object)
{
	enum java_field field = java_layout_has(layout, JAVA_THREAD_VIRTUAL) ? JAVA_THREAD_VIRTUAL
									     : JAVA_THREAD_OBJECT;
	uint64_t handle;

	if (!java_word(memory, thread + layout->at[field], &handle))
		return false;
	*object = handle;
	return layout->thread_direct || java_word(memory, handle, object);
}

static uint32_t pointer_bytes(const struct java_locks *locks)
{
	return locks->objects.narrow ? sizeof(uint32_t) : sizeof(uint64_t);
}

void java_locks_find(struct java_locks *locks, const struct java_layout *layout,
		     struct thread_memory *memory, uint64_t thread)
{
	uint64_t object, class, known = 0;

	if (!locks->looked)
		locks->usable = options_read(locks, layout, memory);
	locks->looked = true;
	if (!locks->usable || locks->thread_class ||
	    !thread_object(layout, memory, thread, &object) || !object ||
	    !object_class(locks, layout, memory, object, &class) ||
	    !class_above(layout, memory, class, "java/lang/Thread", &known) || !known ||
	    !field_find(layout, memory, known, "parkBlocker", pointer_bytes(locks),
			&locks->blocker_at) ||
	    !field_find(layout, memory, known, "eetop", sizeof(uint64_t), &locks->native_at))
		return;
	locks->thread_class = known;
}

/* Takes the part of a class' name that tells what lock it is: "ReentrantLock" of
 * "java/util/concurrent/locks/ReentrantLock$NonfairSync". */
static void name_take(char *name, char to[JAVA_CLASS_SIZE])
{
	static const char *const parts[] = {"$Sync", "$FairSync", "$NonfairSync"};
	const char *begin = strrchr(name, '/');
	char *inner = strrchr(name, '$');
	size_t length;

	begin = begin ? begin + 1 : name;
	for (size_t i = 0; inner > begin && i < sizeof(parts) / sizeof(*parts); i++)
		if (!strcmp(inner, parts[i]))
			*inner = '\0';
	length = strlen(begin);
	length = length < JAVA_CLASS_SIZE - 1 ? length : JAVA_CLASS_SIZE - 1;
	memcpy(to, begin, length);
	to[length] = '\0';
}

/* Reads whether a collection has stopped the threads, and the number of collections. */
static bool collections_read(const struct java_layout *layout, struct thread_memory *memory,
			     int32_t *count)
{
	uint64_t heap;
	uint8_t stopped;

	return java_word(memory, layout->at[JAVA_HEAP], &heap) &&
	       java_byte(memory, heap + layout->at[JAVA_HEAP_STOPPED], &stopped) && !stopped &&
	       java_int(memory, heap + layout->at[JAVA_HEAP_COUNT], count);
}

/* Reads the owner of a lock, whose class is the one given. */
static enum java_parked owner_read(struct java_locks *locks, const struct java_layout *layout,
				   struct thread_memory *memory, uint64_t class,
				   struct java_monitor *lock)
{
	uint64_t owner, known = locks->thread_class, owner_class, symbol;
	char name[NAME_MAX_BYTES];

	if (!pointer_read(&locks->objects, memory, lock->address + locks->owner_at, &owner))
		return PARKED_UNREAD;
	if (!owner)
		return PARKED_LATER;
	if (!object_class(locks, layout, memory, owner, &owner_class) ||
	    !class_above(layout, memory, owner_class, NULL, &known) || !known ||
	    !java_word(memory, owner + locks->native_at, &lock->owner) ||
	    !java_word(memory, class + layout->at[JAVA_CLASS_NAME], &symbol) ||
	    !name_read(layout, memory, symbol, name, sizeof(name)) || !*name)
		return PARKED_UNREAD;
	name_take(name, lock->class);
	return PARKED_OWNED;
}

/* Reads the lock once. Fills lock, which is zeroed. */
static enum java_parked lock_read(struct java_locks *locks, const struct java_layout *layout,
				  struct thread_memory *memory, uint64_t thread,
				  struct java_monitor *lock)
{
	static const char ownable[] = "java/util/concurrent/locks/AbstractOwnableSynchronizer";
	uint64_t object, class, known = locks->lock_class;

	if (!thread_object(layout, memory, thread, &object) || !object ||
	    !pointer_read(&locks->objects, memory, object + locks->blocker_at, &lock->address))
		return PARKED_UNREAD;
	if (!lock->address)
		return PARKED_ELSEWHERE;
	if (!object_class(locks, layout, memory, lock->address, &class) ||
	    !class_above(layout, memory, class, ownable, &known))
		return PARKED_UNREAD;
	if (!known)
		return PARKED_ELSEWHERE;
	if (!locks->lock_class && !field_find(layout, memory, known, "exclusiveOwnerThread",
					      pointer_bytes(locks), &locks->owner_at))
		return PARKED_UNREAD;
	locks->lock_class = known;
	return owner_read(locks, layout, memory, class, lock);
}

enum java_parked java_parked_read(struct java_locks *locks, const struct java_layout *layout,
				  struct thread_memory *memory, uint64_t thread,
				  struct java_monitor *lock)
{
	struct java_monitor again = {.address = 0};
	int32_t count, count_again;
	enum java_parked parked;

	*lock = again;
	if (locks->looked && !locks->usable)
		return PARKED_ELSEWHERE;
	if (!locks->thread_class)
		return PARKED_LATER;
	if (!collections_read(layout, memory, &count))
		return PARKED_UNREAD;
	parked = lock_read(locks, layout, memory, thread, lock);
	if (parked == PARKED_UNREAD)
		return parked;
	thread_memory_again(memory);
	if (lock_read(locks, layout, memory, thread, &again) != parked ||
	    again.address != lock->address || again.owner != lock->owner)
		return PARKED_UNREAD;
	thread_memory_again(memory);
	return collections_read(layout, memory, &count_again) && count_again == count
		       ? parked
		       : PARKED_UNREAD;
}

/* Finds the object that has a monitor, which its mark leads to. A monitor has a WeakHandle to it
 * since JDK 16, as the JVM's threads have handles to theirs. */
static bool monitor_object(const struct java_layout *layout, struct thread_memory *memory,
			   uint64_t monitor, uint64_t *object)
{
	uint64_t mark;

	return java_layout_has(layout, JAVA_MONITOR_OBJECT) &&
	       java_word(memory, monitor + layout->at[JAVA_MONITOR_OBJECT], object) && *object &&
	       (layout->thread_direct || java_word(memory, *object, object)) && *object &&
	       java_word(memory, *object + layout->at[JAVA_OBJECT_MARK], &mark) &&
	       mark == (monitor | MARK_MONITOR);
}

void java_monitor_class(const struct java_locks *locks, const struct java_layout *layout,
			struct thread_memory *memory, uint64_t monitor, char to[JAVA_CLASS_SIZE])
{
	char name[NAME_MAX_BYTES];
	uint64_t object, class, symbol;
	int32_t count, count_again;

	*to = '\0';
	if (!locks->usable || !collections_read(layout, memory, &count) ||
	    !monitor_object(layout, memory, monitor, &object) ||
	    !object_class(locks, layout, memory, object, &class) ||
	    !java_word(memory, class + layout->at[JAVA_CLASS_NAME], &symbol) ||
	    !name_read(layout, memory, symbol, name, sizeof(name)))
		return;
	thread_memory_again(memory);
	if (collections_read(layout, memory, &count_again) && count_again == count)
		name_take(name, to);
}
