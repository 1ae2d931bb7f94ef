/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* write.h - a machine as the text of a spec, part by part.
 *
 *      machine -> names in C -> things it uses -> rows -> laid out -> read again
 *                 (write_names.c)                (write_record.c,      (write.c)
 *                                                 write_declarations.c,
 *                                                 write_behaviour.c)
 *
 * Invariants of a writer:
 *   1. `status` is the first failure; after it no text is kept;
 *   2. each declaration is written once, in the order of first use;
 *   3. the text does not depend on addresses, so equal machines have equal texts. */
#ifndef DET_MACHINE_WRITE_H
#define DET_MACHINE_WRITE_H

#include <detent/tool/spec.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/map.h"

/* Things that a machine uses without listing them. */
enum det_write_kind {
    DET_WRITE_ENUM,
    DET_WRITE_RECORD,
    DET_WRITE_GUARD,
    DET_WRITE_HOOK,
    DET_WRITE_UPDATE,
    DET_WRITE_FILL,
};
#define DET_WRITE_KINDS ((size_t)DET_WRITE_FILL + 1)

struct det_write_thing {
    const char *name;
    const void *definition; /* of a record or an enum */
    struct det_write_thing *next;
};

struct det_write_list {
    struct det_map map; /* by name */
    struct det_write_thing *first, **end;
};

struct det_writer {
    const struct det_machine *machine;
    struct det_arena arena;
    struct det_buffer text;
    struct det_write_list lists[DET_WRITE_KINDS];
    struct det_map c_names;         /* of states and events */
    struct det_map value_names;     /* of values of enums, in C */
    const char **states, **events;  /* names in C, by id */
    const char **effects, **timers; /* names, by id */
    uint32_t *first_choice;         /* by pair: the index of its first alternative, from 1 */
    uint32_t *next_choice; /* by alternative: the index of the next one of its pair, from 1 */
    bool *is_written;      /* by pair */
    size_t row_count;      /* rows about pairs */
    struct det_error *reterr;
    int status; /* 0 or the first failure */
};

/* Records the first failure. */
void det_write_fail(struct det_writer *writer, int code, const char *format, ...) DET_PRINTF(3, 4);
/* Returns zeroed memory for the life of the writer; NULL after a failure. */
void *det_write_alloc(struct det_writer *writer, size_t count, size_t size);

/* Makes names in C for states and events, and collects all things that the machine uses. */
void det_write_collect(struct det_writer *writer);
/* Returns the alternative of the pair that follows `after`, in row order; NULL: the first one. */
const struct det_choice *det_write_choice(
    const struct det_writer *writer, size_t pair, const struct det_choice *after);
/* Returns the prefix of names in C: the name of the machine in capitals, with MY_ before it if C or
 * the templates use that name. */
const char *det_write_prefix(struct det_writer *writer);
/* Returns a name in C that is not in the map yet, similar to the name on disk. */
const char *det_write_c_name(
    struct det_writer *writer, struct det_map *map, const char *wire, const char *noun);
/* Returns the thing of that name, added if it is new. */
struct det_write_thing *det_write_thing(
    struct det_writer *writer, enum det_write_kind kind, const char *name);

/* Adds the record after the records and enums in it. Accepts NULL. */
void det_write_add_record(struct det_writer *writer, const struct det_record *record);
/* Writes one row of a record; all enums; all records. */
void det_write_field(struct det_writer *writer, const struct det_field *field);
void det_write_enums(struct det_writer *writer);
void det_write_records(struct det_writer *writer);

/* Writes the rows of the machine: its declarations, and its behaviour. */
void det_write_declarations(struct det_writer *writer);
void det_write_behaviour(struct det_writer *writer);

/* Writes "SECONDS(3), EVENT, fill". */
void det_write_timeout(struct det_writer *writer, const struct det_timeout *timeout);
/* Writes a transition in words: "goes to paid, IF(can_pay), DO(mail)". */
void det_write_transition(struct det_writer *writer, const struct det_transition *transition);
/* Writes the rows that replace lost ones (write_overridden.c), all about one pair. Returns true if
 * there are any; `ret` is then the pair, and its own row must override them. */
bool det_write_overridden(struct det_writer *writer, size_t *ret);

/* Appends the canonical text; see det_machine_write() in spec.h. After an error the buffer is as it
 * was. */
DET_MUST_CHECK int det_write_machine(
    const struct det_machine *machine, struct det_buffer *target, struct det_error *reterr);

#endif
