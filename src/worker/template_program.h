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
 *   1. A step that jumps leads to a step of the program, or right behind its last one.
 *   2. At every step the depth of the stack, of the dots and of the loops is the same however it
 *      was reached, and within the limits below: the parser has counted them. */
#ifndef DET_WORKER_TEMPLATE_PROGRAM_H
#define DET_WORKER_TEMPLATE_PROGRAM_H

#include "worker/template.h"
#include "worker/template_lex.h"

#define DET_TEMPLATE_STACK     128 /* values under way in one action */
#define DET_TEMPLATE_VARIABLES 64  /* declared at the same time */
#define DET_TEMPLATE_ARGUMENTS 15

enum det_template_op {
    DET_TEMPLATE_TEXT,     /* puts `text` out */
    DET_TEMPLATE_PRINT,    /* puts out and drops a value */
    DET_TEMPLATE_DROP,     /* drops a value */
    DET_TEMPLATE_DOT,      /* pushes the dot */
    DET_TEMPLATE_ROOT,     /* pushes what was given to the rendering */
    DET_TEMPLATE_LITERAL,  /* pushes `literal` */
    DET_TEMPLATE_VARIABLE, /* pushes the variable `slot` */
    DET_TEMPLATE_SET,      /* the variable `slot` becomes the value, which stays */
    DET_TEMPLATE_FIELD,    /* the value becomes the one under its key `name` */
    DET_TEMPLATE_CALL,     /* `count` values become the result of `function` */
    DET_TEMPLATE_AND,      /* jumps with the value when it is empty, else drops it */
    DET_TEMPLATE_OR,       /* jumps with the value when it is not, else drops it */
    DET_TEMPLATE_JUMP,
    DET_TEMPLATE_JUMP_EMPTY, /* drops a value; jumps when it is empty */
    DET_TEMPLATE_WITH,       /* drops a value; jumps when it is empty, else it is the dot */
    DET_TEMPLATE_WITHOUT,    /* the dot before is the dot again */
    DET_TEMPLATE_RANGE,      /* drops a value; jumps when it is empty, else begins a loop */
    DET_TEMPLATE_RANGE_NEXT, /* the next element is the dot; none: ends the loop and jumps */
    DET_TEMPLATE_QUOTED,     /* remembers what is put out from here on */
    DET_TEMPLATE_QUOTED_END, /* and puts quotes around it */
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
    uint8_t count;    /* CALL: of values; RANGE_NEXT: of variables */
    bool is_piped;    /* CALL: the first of the values comes last */
    uint32_t slot;    /* VARIABLE, SET; RANGE_NEXT: the first of them */
    uint32_t target;  /* of a jump */
    uint32_t offset;  /* in the text of the template, for messages */
    uint32_t size;    /* TEXT; FIELD: of the source of all of the path, up to it */
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

/* What is under way while a template is read; see template_parse.c. */
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
/* template_parse.c: the steps of the template from its text. */
DET_MUST_CHECK int det_template_parse(struct det_template *template, struct det_error *reterr);
/* template_expression.c: a pipeline up to the token that cannot belong to it; its value is on the
 * stack then. */
DET_MUST_CHECK int det_template_read_pipeline(struct det_template_reader *reader);
/* What a function is given, and what it gives back. */
struct det_template_call {
    struct det_datum *values;
    size_t count;
    struct det_arena *arena; /* of the text of the result */
    struct det_datum result;
    char reason[DET_ERROR_TEXT_MAX]; /* why not; "": there is no room */
};
/* template_function.c */
DET_MUST_CHECK int det_template_run(
    enum det_template_function function, struct det_template_call *call);
bool det_template_is_empty(const struct det_datum *datum);
/* As it is printed. */
void det_template_put(struct det_buffer *buffer, const struct det_datum *datum);

#endif
