/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse.h - shared by the parts of the spec reader.
 *
 * Reading has two passes, so that a row may use a list macro or a record that follows it, as in C,
 * where the file is included many times:
 *
 *     text -> parse_file.c -> nodes, macros, words -> parse_list.c, parse_record.c, parse_row.c
 *                                                          -> det_machine_builder
 *
 * One mistake is reported once: the readable part of a broken row still declares its name, and
 * findings that only follow from unreadable text are dropped (parse_recovery.c).
 *
 * Everything is allocated in the arena of the spec. The first allocation failure sticks in `error`;
 * the parts briefly handle NULL and stop. */
#ifndef DET_MACHINE_PARSE_H
#define DET_MACHINE_PARSE_H

#include <detent/tool/spec.h>

#include "base/arena.h"
#include "base/map.h"
#include "machine/builder_rows.h"
#include "machine/lex.h"
#include "machine/rows.h"

/* Limit of names in lists after macro expansion, so that a small text cannot request much
 * memory. */
#define DET_PARSE_MEMBERS_MAX 262144

/* One source file. Afterwards the line ends in `text` are 0, so that each line is a string for the
 * places that point to it. */
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

/* A word of the text. `text` is passed to the builder unchanged: no two nodes share it, so the
 * pointer identifies the node and its place. */
struct det_node {
    struct det_node *next;      /* the next argument or row */
    struct det_node *arguments; /* CALL */
    const struct det_source *source;
    const char *at;          /* in the source's text */
    struct det_node *pieces; /* STRING: adjacent strings that it was joined from */
    struct det_node *next_piece;
    struct det_build_origin *origin; /* of a copy that stands for a member of a list; NULL: none */
    uint32_t line, column, width;
    uint32_t argument_count;
    enum det_node_kind kind;
    enum det_row row; /* rows only */
    bool is_broken;   /* rows only: a mistake was reported, and arguments may be missing */
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
    struct det_build_origin **flat; /* with all macros expanded */
    uint32_t flat_count;
    /* State of the expansion, which does not recurse. */
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

/* The words of a flow; the first is that of a machine as well. */
enum det_flow_word { DET_FLOW_WORD_NAME, DET_FLOW_WORD_COUNT };

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

struct det_finding {
    struct det_finding *next;
    enum det_rule rule;
    struct det_place place;
    const char *text;
    const char *hint;       /* NULL: none */
    struct det_place other; /* place of the first declaration; line 0: none */
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

    struct det_finding *complaints, **findings_tail;
    struct det_finding *complaint; /* the last one; NULL when it was not kept */
    size_t finding_count;
    bool suspects[DET_RULE_COUNT]; /* rules that may be broken only because of unreadable text */
    bool is_text_broken;           /* some rows did not reach the builder */

    const char **state_names, **event_names; /* in C, by id */
    size_t state_count, event_count;
    const struct det_node **numbered; /* the rows that the builder was given */
    size_t numbered_count;
    struct det_machine_builder *builder; /* owns what the diagnostics point to */
    struct det_machine *machine;
    struct det_diagnostics diagnostics;
};

/* parse.c */

/* Opens an empty spec, for the readers of all languages; det_spec_close() closes it. */
struct det_spec *det_parse_open(const struct det_spec_options *options, enum det_language language);
/* Reads the text and its includes: afterwards rows, macros, words and records are known. The error
 * sticks. Returns false if the text is unreadable, so that nothing is known. */
bool det_parse_read(struct det_spec *spec, const char *path, const char *text, size_t size);
/* Turns the complaints alone into diagnostics, for a language without a builder. Returns 0 or
 * DET_ERR_NO_MEMORY. */
int det_parse_findings(struct det_spec *spec);
/* Names of the words of a language. */
const char *const *det_parse_words_of(enum det_language language, unsigned *ret_count);

/* Returns zeroed memory of the spec; NULL once an allocation has failed. */
void *det_parse_alloc(struct det_spec *spec, size_t size);
struct det_place det_parse_place(const struct det_node *node);
void det_parse_report(
    struct det_spec *spec, enum det_rule rule, const struct det_place *place, const char *format,
    ...) DET_PRINTF(4, 5);
/* Sets the hint of the last complaint. */
void det_parse_hint(struct det_spec *spec, const char *format, ...) DET_PRINTF(2, 3);
/* Sets the place of the first declaration in the last complaint. */
void det_parse_other(struct det_spec *spec, const struct det_node *node);
/* Hints "did you mean ...?" if one of the words is near. */
void det_parse_hint_nearest(
    struct det_spec *spec, const char *word, const char *const *words, size_t count);
/* Hints among the names that rows of this kind declare. */
void det_parse_hint_declared(struct det_spec *spec, const char *word, enum det_row row);
/* Returns the text of a node as its place; passes NULL (no memory) on. */
static inline const char *det_parse_text(const struct det_node *node)
{
    return node != NULL ? node->text : NULL;
}

/* parse_file.c: reads the text and its includes into rows, macros and words. Returns false if the
 * text is unreadable, so that nothing is known of the machine. */
bool det_parse_files(struct det_spec *spec, const char *path, const char *text, size_t size);

/* parse_list.c */

/* Expands every macro; complains about those that contain themselves or are too long. */
void det_parse_macros(struct det_spec *spec);
/* Returns the names from `first` on, macros replaced by their members, terminated by NULL. Returns
 * NULL if the list is too long, contains anything but names, or memory failed. `call` and `what`
 * are for messages. */
const char *const *det_parse_list(
    struct det_spec *spec, const struct det_node *call, const struct det_node *first,
    const char *what);

/* parse_record.c: makes records and enums of their rows. */
void det_parse_records(struct det_spec *spec);
/* Returns the record with this name; NULL, with a report at the node, if there is none. */
const struct det_record *det_parse_record_of(struct det_spec *spec, const struct det_node *node);

/* parse_word.c: passes the words of the machine to the builder. */
void det_parse_words(struct det_spec *spec);
/* In the order of enum det_unhandled. */
#define DET_PARSE_POLICY_COUNT 4
extern const char *const det_parse_policies[DET_PARSE_POLICY_COUNT];

/* parse_row.c: passes every row to the builder. */
void det_parse_rows(struct det_spec *spec);

/* parse_recovery.c */

/* Returns true if the node is a valid name. */
bool det_parse_is_name(const struct det_spec *spec, const struct det_node *node);
/* From now on findings of this rule may be caused by unreadable text. */
void det_parse_suspect(struct det_spec *spec, enum det_rule rule);
/* The same for all findings that a violation of this rule may cause. */
void det_parse_suspect_after(struct det_spec *spec, enum det_rule rule);
/* The same for all findings that unreadable text may cause. */
void det_parse_suspect_all(struct det_spec *spec);
/* Declares the names still readable in rows with errors, so they cause no further findings. */
void det_parse_declare_readable(struct det_spec *spec);
/* Drops suspect diagnostics, and adds our hints. */
void det_parse_drop_suspects(struct det_spec *spec);

#endif
