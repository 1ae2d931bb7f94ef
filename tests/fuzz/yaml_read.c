/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* yaml_read.c - fuzz target: the text of a test file into nodes. Whatever is read, there is a tree
 * or an error with a place in the text. */
#include <stdlib.h>

#include "base/arena.h"
#include "yaml/datum.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct det_yaml_error error = { 0 };
    struct det_datum *root = NULL;
    struct det_arena arena;
    int r;

    det_arena_init(&arena, NULL);
    r = det_yaml_read(&arena, (const char *)data, size, &root, &error);
    if (r == 0 ? root == NULL : error.text[0] == '\0' || error.line == 0)
        abort();
    det_arena_deinit(&arena);
    return 0;
}
