/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_reader.h - the stack of open files, and the current token of the file on top. */
#ifndef DET_MACHINE_PARSE_READER_H
#define DET_MACHINE_PARSE_READER_H

#include "machine/parse_source.h"

struct det_frame {
    struct det_source *source;
    struct det_lexer lexer;
    struct det_token token; /* the current one: lexed, not yet consumed */
};

struct det_reader {
    struct det_spec *spec;
    struct det_frame frames[DET_SPEC_INCLUDE_MAX];
    unsigned depth;
};

/* Returns the file on top of the stack, which must not be empty. */
struct det_frame *det_reader_top(struct det_reader *reader);
void det_reader_push(struct det_reader *reader, struct det_source *source);
void det_reader_pop(struct det_reader *reader);

const struct det_token *det_reader_token_of(struct det_reader *reader);
const char *det_reader_token_text(struct det_reader *reader);
bool det_reader_token_is(struct det_reader *reader, enum det_token_kind kind);
bool det_reader_token_is_text(struct det_reader *reader, const char *text);
/* Returns true if the current token has this kind and is on the line of the token before it. */
bool det_reader_is_on_line(struct det_reader *reader, enum det_token_kind kind);
/* Returns true if a row begins here, also if a bracket is missing before it. */
bool det_reader_is_row_start(struct det_reader *reader);

void det_reader_advance(struct det_reader *reader);
/* Skips the rest of the line. */
void det_reader_skip_line(struct det_reader *reader);
/* Skips to the next place where a row or a line with # begins. */
void det_reader_recover(struct det_reader *reader);

/* Reports a problem at the current token; for a BAD token, reports the token's own problem
 * instead. */
void det_reader_report_syntax(struct det_reader *reader, const char *problem);
/* Reports the node's text followed by `rest`. */
void det_reader_report_at(struct det_reader *reader, const struct det_node *node, const char *rest);
/* Makes a node of the current token; NULL if memory failed. */
struct det_node *det_reader_new_node(struct det_reader *reader, enum det_node_kind kind);
/* Reads the current token, a string, and those that follow it: adjacent strings are one, as in
 * C. NULL if memory failed. */
struct det_node *det_reader_read_string(struct det_reader *reader);

/* parse_directive.c */

/* Pushes the file that the string names; its rows are read next. */
void det_reader_enter(struct det_reader *reader, const struct det_node *name, bool reads_records);
/* Reads a #define or #include; the current token is the #. */
void det_reader_read_directive(struct det_reader *reader);

#endif
