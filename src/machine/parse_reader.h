/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_reader.h - the stack of files under reading, and the token that is looked at. */
#ifndef DET_MACHINE_PARSE_READER_H
#define DET_MACHINE_PARSE_READER_H

#include "machine/parse_source.h"

struct det_frame {
    struct det_source *source;
    struct det_lexer lexer;
    struct det_token token; /* the one to be looked at next */
};

struct det_reader {
    struct det_spec *spec;
    struct det_frame frames[DET_SPEC_INCLUDE_MAX];
    unsigned depth;
};

/* The file that is read now; there must be one. */
struct det_frame *det_reader_top(struct det_reader *reader);
void det_reader_push(struct det_reader *reader, struct det_source *source);
void det_reader_pop(struct det_reader *reader);

const struct det_token *det_reader_token_of(struct det_reader *reader);
const char *det_reader_token_text(struct det_reader *reader);
bool det_reader_token_is(struct det_reader *reader, enum det_token_kind kind);
bool det_reader_token_is_text(struct det_reader *reader, const char *text);
/* Of this kind, and on the line of what stands before it. */
bool det_reader_is_on_line(struct det_reader *reader, enum det_token_kind kind);
/* Whether a row begins here, also when a bracket was forgotten before it. */
bool det_reader_is_row_start(struct det_reader *reader);

void det_reader_advance(struct det_reader *reader);
/* To the next line. */
void det_reader_skip_line(struct det_reader *reader);
/* To the next place where a row or a line with # begins. */
void det_reader_recover(struct det_reader *reader);

/* At the current token; a token that is BAD says itself what is wrong. */
void det_reader_complain_syntax(struct det_reader *reader, const char *problem);
/* The sentence is the node's text and `rest`. */
void det_reader_complain_at(
    struct det_reader *reader, const struct det_node *node, const char *rest);
/* The node of the current token; NULL when there is no memory. */
struct det_node *det_reader_new_node(struct det_reader *reader, enum det_node_kind kind);

/* parse_directive.c */

/* Reads the file that the string names; its rows come next. */
void det_reader_enter(struct det_reader *reader, const struct det_node *name, bool is_of_records);
/* The current token is the #. */
void det_reader_read_directive(struct det_reader *reader);

#endif
