/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tool/spec.h - reads spec files (.fsm with its fragments and .rec files) without a compiler.
 *
 * The text is the same that the C templates include; the reader understands rows, comments, #define
 * of FSM_* words and of list macros, and #include of fragments, and nothing else of C. It feeds a
 * det_machine_builder, so its verdict is the compiler's. */
#ifndef DETENT_TOOL_SPEC_H
#define DETENT_TOOL_SPEC_H

#include <detent/tool/builder.h>

DET_BEGIN

/* Limits; beyond them TOO_LARGE is reported in bounded time. */
#define DET_SPEC_SIZE_MAX    262144 /* bytes of one file */
#define DET_SPEC_TOTAL_MAX   1048576
#define DET_SPEC_INCLUDE_MAX 16 /* depth */
#define DET_SPEC_ROWS_MAX    20000

struct det_spec;

/* Gives the bytes of a file. `path` is the including file's folder joined with the name in the
 * #include. The bytes are released through `release`. Returns 0, DET_ERR_NOT_FOUND, DET_ERR_LIMIT
 * (larger than DET_SPEC_SIZE_MAX) or another error. */
struct det_spec_files {
    int (*read)(void *context, const char *path, const char **ret, size_t *ret_size);
    void (*release)(void *context, const char *data, size_t size);
    void *context;
};

struct det_spec_options {
    const struct det_allocator *allocator;
    const struct det_spec_files *files; /* NULL: an #include is an error */
    bool report_unhandled;              /* also report pairs that are not handled */
};

/* Reads a spec given as text; `path` names it in messages and is where its includes start from.
 * Returns 0 and a spec also when the definition is broken: ask det_spec_machine(). Fails only for
 * memory. */
DET_API int det_spec_read(
    const char *path, const char *text, size_t size, const struct det_spec_options *options,
    struct det_spec **ret) DET_MUST_CHECK;
DET_API void det_spec_close(struct det_spec *spec);
DET_SCOPED_CLOSE(spec)

/* NULL when a rule is broken. Owned by the spec; functions may be bound to it. */
DET_API struct det_machine *det_spec_machine(struct det_spec *spec);
DET_API const struct det_diagnostics *det_spec_diagnostics(const struct det_spec *spec);
/* The name in C of a state, an event ("PENDING"), the prefix ("ORDER"); NULL when there is none. */
DET_API const char *det_spec_state_c_name(const struct det_spec *spec, unsigned state);
DET_API const char *det_spec_event_c_name(const struct det_spec *spec, unsigned event);
DET_API const char *det_spec_prefix(const struct det_spec *spec);
/* The struct that FSM_CONTEXT or FSM_HANDLER names; NULL when the spec has none. */
DET_API const char *det_spec_context(const struct det_spec *spec);
DET_API const char *det_spec_handler(const struct det_spec *spec);
/* The functions of a component that its machine does not know, by what they are, each once, in
 * order; NULL at the end. */
enum det_spec_role {
    DET_SPEC_DISPATCH,
    DET_SPEC_COMPLETION,
    DET_SPEC_INVARIANT,
};
DET_API const char *det_spec_function(
    const struct det_spec *spec, enum det_spec_role role, size_t index);
/* Where a row stands: of row 1 and so on, as builder.h counts them and det_transition.row has them.
 * `file` is NULL for 0, which a machine of a template has, and for a row that is not there. */
DET_API struct det_place det_spec_row_place(const struct det_spec *spec, uint32_t row);
/* Every record that was read, in order; NULL at the end. */
DET_API const struct det_record *det_spec_record(const struct det_spec *spec, size_t index);
/* The files that were read, the spec itself first; NULL at the end. */
DET_API const char *det_spec_file(const struct det_spec *spec, size_t index);

/* Formats a spec: one row a line (broken behind commas beyond 100 columns), the first columns of
 * neighbouring rows of a kind aligned, comments and empty lines kept, one space after commas. Like
 * snprintf(): returns the length, 0 as capacity measures; a negative error and `reterr` with the
 * offset when the text has a syntax error (MALFORMED) or is larger than DET_SPEC_SIZE_MAX (LIMIT).
 * Idempotent; allocates nothing. */
DET_API int64_t det_spec_format(
    const char *text, size_t size, char *target, size_t capacity,
    struct det_error *reterr) DET_MUST_CHECK;

/* The other way round: the text of a spec that says this machine, whoever made it. Canonical:
 * machines that do the same have the same text, formatted, and in it states, events, effects,
 * timers and groups keep their order; guards, hooks, updates, fills, records and enums come in the
 * order of their use. Names in C are not part of a machine: they are made of the names on disk, in
 * capitals. Neither are the rows that only components have, and functions that nothing names.
 *
 * Like snprintf(): returns the length, 0 as capacity measures. `allocator` is for the time of the
 * call. The text has been read again, so det_spec_read() takes it. DET_ERR_UNSUPPORTED, and in
 * `reterr` why, for what only a builder can say: a timeout with fractions of a millisecond, a
 * state that is initial and final, two different records of one name, names that are not
 * identifiers of C.
 * DET_ERR_LIMIT when it would be larger than the reader takes, DET_ERR_NO_MEMORY. */
DET_API int64_t det_machine_write(
    const struct det_machine *machine, const struct det_allocator *allocator, char *target,
    size_t capacity, struct det_error *reterr) DET_MUST_CHECK;

DET_END
#endif
