/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* yaml_tree.h - a strict reader of YAML: one document of mappings, sequences and scalars, as a tree
 * whose nodes know their place. Aliases, anchors, tags, complex and doubled keys are errors; size,
 * depth and the number of nodes are limited. */
#ifndef DET_YAML_YAML_TREE_H
#define DET_YAML_YAML_TREE_H

#include <detent/base.h>

#include "base/arena.h"

/* Room for 100,000 workers in detent.yaml. */
#define CLI_YAML_SIZE_MAX  16777216
#define CLI_YAML_DEPTH_MAX 64
#define CLI_YAML_NODES_MAX 1000000

enum cli_yaml_kind {
    CLI_YAML_SCALAR,
    CLI_YAML_SEQUENCE,
    CLI_YAML_MAPPING,
};

struct cli_yaml {
    enum cli_yaml_kind kind;
    bool is_plain;         /* a scalar without quotes */
    uint32_t line, column; /* from 1; of the value */
    uint32_t key_line, key_column;
    const char *key;  /* in a mapping; NULL elsewhere */
    const char *text; /* of a scalar; ends with its first NUL, and has no other */
    uint64_t key_hash;
    struct cli_yaml *first, *next;
    struct cli_yaml **tail;
    size_t count; /* of children */
};

/* What is wrong, where. */
struct cli_yaml_error {
    uint32_t line, column;
    char text[DET_ERROR_TEXT_MAX];
};

/* Reads a text into nodes of the arena. 0, DET_ERR_MALFORMED, DET_ERR_LIMIT or DET_ERR_NO_MEMORY.
 */
DET_MUST_CHECK int cli_yaml_read(
    struct det_arena *arena, const char *text, size_t size, struct cli_yaml **ret,
    struct cli_yaml_error *reterr);
/* The value of a key, or NULL. */
const struct cli_yaml *cli_yaml_get(const struct cli_yaml *mapping, const char *key);

/* yaml_write.c: appends a node as YAML that reads the same. What can stand at its line and column
 * does, and lines are always those of the file, so that whoever reads the text finds problems where
 * they are. Failures stick in the buffer. */
struct det_buffer;
void cli_yaml_write(struct det_buffer *buffer, const struct cli_yaml *node);
/* Of a mapping the values of these keys, NULL at the end, as a mapping. */
void cli_yaml_write_keys(
    struct det_buffer *buffer, const struct cli_yaml *mapping, const char *const *keys);

#endif
