/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* template_program.h - a compiled template: steps for a machine with a stack of values.
 *
 *     {{ if .a }}x{{ else }}y{{ end }}    {{ range .b }}x{{ else }}y{{ end }}
 *
 *       DOT, FIELD a                        DOT, FIELD b
 *       JUMP_EMPTY else                     RANGE else
 *       TEXT x                        next: RANGE_NEXT end
 *       JUMP end                            TEXT x, JUMP next
 *     else: TEXT y                    else: TEXT y
 *     end:                            end:
 *
 * Invariants:
 *   1. A step that jumps leads to a step of the program, or right after its last one.
 *   2. At every step the depth of the stack, of the dots and of the loops is the same on every
 *      path, and within the limits below: the parser has counted them. */
#ifndef DET_WORKER_TEMPLATE_PROGRAM_H
#define DET_WORKER_TEMPLATE_PROGRAM_H

#include "worker/template.h"
#include "worker/template_lex.h"

#define DET_TEMPLATE_STACK     128 /* values on the stack within one action */
#define DET_TEMPLATE_VARIABLES 64  /* variables declared at the same time */
#define DET_TEMPLATE_ARGUMENTS 15

enum det_template_op {
    DET_TEMPLATE_TEXT,     /* prints `text` */
    DET_TEMPLATE_PRINT,    /* prints and drops a value */
    DET_TEMPLATE_DROP,     /* drops a value */
    DET_TEMPLATE_DOT,      /* pushes the dot */
    DET_TEMPLATE_ROOT,     /* pushes the root of the rendering */
    DET_TEMPLATE_LITERAL,  /* pushes `literal` */
    DET_TEMPLATE_VARIABLE, /* pushes the variable `slot` */
    DET_TEMPLATE_SET,      /* assigns the value, which stays, to the variable `slot` */
    DET_TEMPLATE_FIELD,    /* replaces the value by that under its key `name` */
    DET_TEMPLATE_CALL,     /* replaces `count` values by the result of `function` */
    DET_TEMPLATE_AND,      /* jumps with the value if it is empty, else drops it */
    DET_TEMPLATE_OR,       /* jumps with the value if it is not empty, else drops it */
    DET_TEMPLATE_JUMP,
    DET_TEMPLATE_JUMP_EMPTY, /* drops a value; jumps if it is empty */
    DET_TEMPLATE_WITH,       /* drops a value; jumps if it is empty, else makes it the dot */
    DET_TEMPLATE_WITHOUT,    /* restores the previous dot */
    DET_TEMPLATE_RANGE,      /* drops a value; jumps if it is empty, else begins a loop */
    DET_TEMPLATE_RANGE_NEXT, /* makes the next element the dot; none: ends the loop and jumps */
    DET_TEMPLATE_QUOTED,     /* starts collecting the output */
    DET_TEMPLATE_QUOTED_END, /* puts quotes around the collected output */
};

enum det_template_function {
#define DET_TEMPLATE_FUNCTION(name, fewest, most, wants) DET_TEMPLATE_FUNCTION_##name,
#include "worker/template_functions.def"
#undef DET_TEMPLATE_FUNCTION
    DET_TEMPLATE_FUNCTION_COUNT,
};
struct det_template_function_info {
    const char *name, *wants;
    unsigned fewest, most;
};
extern const struct det_template_function_info det_template_functions[DET_TEMPLATE_FUNCTION_COUNT];

struct det_template_step {
    uint8_t op;       /* enum det_template_op */
    uint8_t function; /* CALL */
    uint8_t count;    /* CALL: number of values; RANGE_NEXT: number of variables */
    bool is_piped;    /* CALL: the first value is the last argument */
    uint32_t slot;    /* VARIABLE, SET; RANGE_NEXT: the first variable */
    uint32_t target;  /* of a jump */
    uint32_t offset;  /* in the text of the template, for messages */
    uint32_t size;    /* TEXT; FIELD: size of the path in the source, up to this field */
    union {
        const char *text;
        const char *name;
        const struct det_datum *literal;
    };
};

struct det_template {
    const struct det_allocator *allocator;
    struct det_arena arena; /* of names and literals */
    const char *what;
    struct det_view text; /* a copy */
    struct det_template_step *steps;
    uint32_t count, capacity;
};

/* The state of the parser; see template_parse.c. */
struct det_template_name {
    struct det_view name; /* with its $ */
};
struct det_template_reader {
    struct det_template *template;
    struct det_lex lex;
    struct det_lex_token token; /* the current one */
    unsigned stack;             /* values on the stack at this step */
    struct det_template_name names[DET_TEMPLATE_VARIABLES];
    uint32_t name_count;
};

/* The index of a new step, or an error. */
DET_MUST_CHECK int64_t
det_template_emit(struct det_template_reader *reader, enum det_template_op op, size_t offset);
DET_MUST_CHECK int det_template_advance(struct det_template_reader *reader);
/* A new variable; its slot, or an error. */
DET_MUST_CHECK int64_t
det_template_declare(struct det_template_reader *reader, struct det_view name, size_t offset);
/* template_parse.c: compiles the text of the template. */
DET_MUST_CHECK int det_template_parse(struct det_template *template, struct det_error *reterr);
/* template_expression.c: a pipeline up to the first token that cannot belong to it; its value is on
 * the stack. */
DET_MUST_CHECK int det_template_read_pipeline(struct det_template_reader *reader);
/* The arguments and the result of a function. */
struct det_template_call {
    struct det_datum *values;
    size_t count;
    struct det_arena *arena; /* memory of the result's text */
    struct det_datum result;
    char reason[DET_ERROR_TEXT_MAX]; /* reason of a failure; "": no room */
};
/* template_function.c */
DET_MUST_CHECK int det_template_run(
    enum det_template_function function, struct det_template_call *call);
bool det_template_is_empty(const struct det_datum *datum);
/* Prints a value. */
void det_template_put(struct det_buffer *buffer, const struct det_datum *datum);

#endif
