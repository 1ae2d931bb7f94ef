/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tool/spec.h - reads spec files (.fsm with its fragments and .rec files) without a compiler.
 *
 * The text is the one that the C templates include. The reader accepts rows, comments, #define of
 * FSM_* words and of list macros, and #include of fragments, and no other C. It feeds a
 * det_machine_builder, so its verdict equals the compiler's. */
#ifndef DETENT_TOOL_SPEC_H
#define DETENT_TOOL_SPEC_H

#include <detent/tool/builder.h>

DET_BEGIN

/* Limits; beyond them TOO_LARGE is reported in bounded time. */
#define DET_SPEC_SIZE_MAX    262144 /* bytes in one file */
#define DET_SPEC_TOTAL_MAX   1048576
#define DET_SPEC_INCLUDE_MAX 16 /* depth */
#define DET_SPEC_ROWS_MAX    20000

struct det_spec;

/* Provides the bytes of a file. `path` is the folder of the including file joined with the name in
 * the #include. `release` frees the bytes. Returns 0, DET_ERR_NOT_FOUND, DET_ERR_LIMIT (larger than
 * DET_SPEC_SIZE_MAX) or another error. */
struct det_spec_files {
    int (*read)(void *context, const char *path, const char **ret, size_t *ret_size);
    void (*release)(void *context, const char *data, size_t size);
    void *context;
};

struct det_spec_options {
    const struct det_allocator *allocator;
    const struct det_spec_files *files; /* NULL: an #include is an error */
    bool report_unhandled;              /* also report unhandled pairs */
};

/* Reads a spec from text; `path` is its name in messages and the base of its includes. Returns 0
 * and a spec even for a broken definition: see det_spec_machine(). Fails only with
 * DET_ERR_NO_MEMORY. */
DET_API int det_spec_read(
    const char *path, const char *text, size_t size, const struct det_spec_options *options,
    struct det_spec **ret) DET_MUST_CHECK;
DET_API void det_spec_close(struct det_spec *spec);
DET_SCOPED_CLOSE(spec)

/* NULL: a rule is broken. Owned by the spec; functions may be bound to the machine. */
DET_API struct det_machine *det_spec_machine(struct det_spec *spec);
DET_API const struct det_diagnostics *det_spec_diagnostics(const struct det_spec *spec);
/* The C name of a state or an event ("PENDING"), and the prefix ("ORDER"); NULL: none. */
DET_API const char *det_spec_state_c_name(const struct det_spec *spec, unsigned state);
DET_API const char *det_spec_event_c_name(const struct det_spec *spec, unsigned event);
DET_API const char *det_spec_prefix(const struct det_spec *spec);
/* The struct named by FSM_CONTEXT or FSM_HANDLER; NULL: none. */
DET_API const char *det_spec_context(const struct det_spec *spec);
DET_API const char *det_spec_handler(const struct det_spec *spec);
/* The functions of a component that its machine does not contain, by role, each once, in order;
 * NULL at the end. */
enum det_spec_role {
    DET_SPEC_DISPATCH,
    DET_SPEC_COMPLETION,
    DET_SPEC_INVARIANT,
};
DET_API const char *det_spec_function(
    const struct det_spec *spec, enum det_spec_role role, size_t index);
/* The place of a row, counted from 1 as in builder.h and det_transition.row. `file` is NULL for row
 * 0, which a template machine has, and for an unknown row. */
DET_API struct det_place det_spec_row_place(const struct det_spec *spec, uint32_t row);
/* Each record of the spec, in order; NULL at the end. */
DET_API const struct det_record *det_spec_record(const struct det_spec *spec, size_t index);
/* Each file of the spec, the spec itself first; NULL at the end. */
DET_API const char *det_spec_file(const struct det_spec *spec, size_t index);

/* Formats a spec: one row per line (broken after commas beyond 100 columns), the first columns of
 * neighbouring rows of a kind aligned, comments and empty lines kept, one space after commas. Like
 * snprintf(): returns the length; a capacity of 0 measures. A negative error and `reterr` with the
 * offset: the text has a syntax error (MALFORMED) or is larger than DET_SPEC_SIZE_MAX (LIMIT).
 * Idempotent; allocates nothing. */
DET_API int64_t det_spec_format(
    const char *text, size_t size, char *target, size_t capacity,
    struct det_error *reterr) DET_MUST_CHECK;

/* Writes the text of a spec for any machine. The text is canonical: equivalent machines have the
 * same text. It is formatted; states, events, effects, timers and groups keep their order; guards,
 * hooks, updates, fills, records and enums come in the order of their use. C names are not part of
 * a machine: they are made of the names on disk, in capitals. Rows that only components have, and
 * functions that no row names, are omitted.
 *
 * Like snprintf(): returns the length; a capacity of 0 measures. `allocator` is used during the
 * call. The result is checked by reading it, so det_spec_read() accepts it. DET_ERR_UNSUPPORTED,
 * with the reason in `reterr`, for machines that only a builder can make: a timeout with fractions
 * of a millisecond, a state that is initial and final, two different records of one name, names
 * that are not identifiers of C.
 * DET_ERR_LIMIT: larger than the reader accepts; DET_ERR_NO_MEMORY. */
DET_API int64_t det_machine_write(
    const struct det_machine *machine, const struct det_allocator *allocator, char *target,
    size_t capacity, struct det_error *reterr) DET_MUST_CHECK;

DET_END
#endif
