/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse.h - what the parts of the spec reader share.
 *
 * Reading has two halves, so that a row may use a list macro or a record that stands behind it, as
 * it may in C, where the file is included many times:
 *
 *     text -> parse_file.c -> nodes, macros, words -> parse_list.c, parse_record.c, parse_row.c
 *                                                          -> det_machine_builder
 *
 * One mistake is told once: what can be read of a row with a mistake still declares its name, and
 * what is found only because of text that could not be read is left out (parse_recovery.c).
 *
 * Everything lives in the arena of the spec. The first failure to allocate sticks in `error`; the
 * parts go on with NULL for a moment at most and stop. */
#ifndef DET_MACHINE_PARSE_H
#define DET_MACHINE_PARSE_H

#include <detent/tool/spec.h>

#include "base/arena.h"
#include "base/map.h"
#include "machine/builder_rows.h"
#include "machine/lex.h"
#include "machine/rows.h"

/* Names in lists, once macros are expanded: so that a small text cannot ask for much memory. */
#define DET_PARSE_MEMBERS_MAX 262144

/* One file as it was read. After its end the line ends in `text` are 0, so that each line is a
 * string for the places that point to it. */
struct det_source {
    struct det_source *next; /* in order of reading */
    const char *path;
    char *text;
    uint32_t size;
    bool is_of_records; /* read by USES */
};

enum det_node_kind {
    DET_NODE_NAME,
    DET_NODE_NUMBER,
    DET_NODE_STRING, /* `text` has no quotes and no escapes */
    DET_NODE_CALL,   /* a name with arguments: also a row */
};

/* A word of the text. `text` is given to the builder as it is: no two nodes share it, so that the
 * pointer leads back to the node and its place. */
struct det_node {
    struct det_node *next;      /* the argument or the row behind this one */
    struct det_node *arguments; /* CALL */
    const struct det_source *source;
    const char *at;                  /* in the source's text */
    struct det_build_origin *origin; /* of a copy that stands for a member of a list; NULL: none */
    uint32_t line, column, width;
    uint32_t argument_count;
    enum det_node_kind kind;
    enum det_row row; /* rows only */
    bool is_broken;   /* rows only: it has a mistake that was told, and arguments may be missing */
    char text[];
};

struct det_rows {
    struct det_node *first;
    struct det_node **tail;
};

/* #define NAME member, member. */
struct det_macro {
    const char *name; /* the key in the map */
    struct det_macro *next;
    const struct det_node *at;
    const struct det_node *members; /* as written */
    struct det_build_origin **flat; /* without other macros */
    uint32_t flat_count;
    /* The walk that makes it flat, without recursion. */
    enum { DET_MACRO_NEW, DET_MACRO_OPEN, DET_MACRO_DONE } state;
    const struct det_node *cursor;
    struct det_macro *parent;
};

/* The words of the machine itself: FSM_NAME and so on. */
enum det_word {
    DET_WORD_NAME,
    DET_WORD_PREFIX,
    DET_WORD_VERSION,
    DET_WORD_DATA,
    DET_WORD_UNHANDLED,
    DET_WORD_CONTEXT,
    DET_WORD_HANDLER,
    DET_WORD_COUNT
};

/* The words of a worker, WORKER_NAME and so on; the first two are those of a machine as well. */
enum det_worker_word {
    DET_WORKER_WORD_NAME,
    DET_WORKER_WORD_PREFIX,
    DET_WORKER_WORD_DESIRED,
    DET_WORKER_WORD_OBSERVED,
    DET_WORKER_WORD_CONFIG,
    DET_WORKER_WORD_DEPS,
    DET_WORKER_WORD_DERIVE,
    DET_WORKER_WORD_CHILDREN,
    DET_WORKER_WORD_EVERY,
    DET_WORKER_WORD_TIMEOUT,
    DET_WORKER_WORD_ERRORS,
    DET_WORKER_WORD_BLIND,
    DET_WORKER_WORD_COUNT
};
#define DET_WORDS_MAX DET_WORKER_WORD_COUNT

struct det_parsed_record {
    struct det_record definition; /* its name is the key in the map */
    struct det_parsed_record *next;
    uint32_t alignment;
    unsigned depth; /* of nested records; 1: none */
};

struct det_parsed_enum {
    struct det_enum definition; /* its name is the key in the map */
};

/* An enumerator: in C they are all in one space. */
struct det_parsed_value {
    const char *name; /* in C; the key in the map */
};

struct det_complaint {
    struct det_complaint *next;
    enum det_rule rule;
    struct det_place place;
    const char *text;
    const char *hint;       /* NULL: none */
    struct det_place other; /* "first said here"; line 0: none */
};

struct det_spec {
    const struct det_allocator *allocator;
    struct det_arena arena;
    const struct det_spec_files *files;
    enum det_language language;
    int error;

    struct det_source *sources, **sources_tail;
    size_t source_count, source_bytes;
    struct det_rows rows;        /* of the spec and its fragments */
    struct det_rows shared_rows; /* of the files it USES */
    size_t row_count;
    const struct det_node *words[DET_WORDS_MAX];         /* their values */
    const struct det_node *guessed_words[DET_WORDS_MAX]; /* under a name that is nearly theirs */
    struct det_macro *macros, **macros_tail;
    struct det_map macro_map;
    size_t member_count;

    struct det_parsed_record *records, **records_tail;
    struct det_map record_map, enum_map, value_map;

    struct det_complaint *complaints, **complaints_tail;
    struct det_complaint *complaint; /* the last one; NULL when it was not kept */
    size_t complaint_count;
    uint64_t suspects;   /* a bit for each rule that may be broken only by text that is lost */
    bool is_text_broken; /* rows are missing from what the builder sees */

    const char **state_names, **event_names; /* in C, by id */
    size_t state_count, event_count;
    const struct det_node **numbered; /* the rows that the builder was given */
    size_t numbered_count;
    struct det_machine_builder *builder; /* owns what the diagnostics point to */
    struct det_machine *machine;
    struct det_diagnostics diagnostics;
};

/* parse.c */

/* An empty spec, and its end; for the readers of the two languages. */
struct det_spec *det_parse_open(const struct det_spec_options *options, enum det_language language);
void det_parse_close(struct det_spec *spec);
/* Reads the text with all it includes: rows, macros, words and records are known then. The error
 * sticks. False when the text is none, so that nothing is known. */
bool det_parse_read(struct det_spec *spec, const char *path, const char *text, size_t size);
/* Makes diagnostics of the complaints alone, for a language that is not given to the builder.
 * Returns 0 or DET_ERR_NO_MEMORY. */
int det_parse_findings(struct det_spec *spec);
/* The names of words, of as many as the language has. */
const char *const *det_parse_words_of(enum det_language language, unsigned *ret_count);

/* Zeroed memory of the spec; NULL once memory has failed. */
void *det_parse_alloc(struct det_spec *spec, size_t size);
struct det_place det_parse_place(const struct det_node *node);
void det_parse_complain(
    struct det_spec *spec, enum det_rule rule, const struct det_place *place, const char *format,
    ...) DET_PRINTF(4, 5);
/* What to do about the last complaint. */
void det_parse_hint(struct det_spec *spec, const char *format, ...) DET_PRINTF(2, 3);
/* "First said here", of the last complaint. */
void det_parse_other(struct det_spec *spec, const struct det_node *node);
/* "did you mean ...?" if one of the words is near. */
void det_parse_hint_nearest(
    struct det_spec *spec, const char *word, const char *const *words, size_t count);
/* The same among the names that rows of this kind declare. */
void det_parse_hint_declared(struct det_spec *spec, const char *word, enum det_row row);
/* The text of a node as its place; NULL (no memory) is passed on. */
static inline const char *det_parse_text(const struct det_node *node)
{
    return node != NULL ? node->text : NULL;
}

/* parse_file.c: reads the text and all it includes into rows, macros and words. False when the text
 * itself is none, so that nothing is known of the machine. */
bool det_parse_files(struct det_spec *spec, const char *path, const char *text, size_t size);

/* parse_list.c */

/* Makes every macro flat; complains about those that contain themselves or are too long. */
void det_parse_macros(struct det_spec *spec);
/* The names from `first` on, macros replaced by their members, NULL at the end. NULL when it is
 * too long, has something else than names, or memory failed. `call` and `what` are for messages. */
const char *const *det_parse_list(
    struct det_spec *spec, const struct det_node *call, const struct det_node *first,
    const char *what);

/* parse_record.c: makes records and enums of their rows. */
void det_parse_records(struct det_spec *spec);
/* NULL, with a complaint at the node, when there is none. */
const struct det_record *det_parse_record_of(struct det_spec *spec, const struct det_node *node);

/* parse_word.c: tells the builder what the words of the machine say. */
void det_parse_words(struct det_spec *spec);
/* In the order of enum det_unhandled. */
#define DET_PARSE_POLICY_COUNT 4
extern const char *const det_parse_policies[DET_PARSE_POLICY_COUNT];

/* parse_row.c: gives every row to the builder. */
void det_parse_rows(struct det_spec *spec);

/* parse_recovery.c */

/* Whether the node is a name that something may have. */
bool det_parse_is_name(const struct det_spec *spec, const struct det_node *node);
/* What is found by this rule from now on may follow from what was not read. */
void det_parse_suspect(struct det_spec *spec, enum det_rule rule);
/* The same for all that may follow when this rule is broken. */
void det_parse_suspect_after(struct det_spec *spec, enum det_rule rule);
/* The same for all that a lost part of the text may bring about. */
void det_parse_suspect_all(struct det_spec *spec);
/* Declares what the broken rows can still be seen to declare. */
void det_parse_salvage(struct det_spec *spec);
/* Leaves out the suspects among the diagnostics, and adds our hints. */
void det_parse_settle(struct det_spec *spec);

#endif
