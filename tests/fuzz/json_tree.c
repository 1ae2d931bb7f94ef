/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* json_tree.c - fuzz target: text into a tree of values, and written again. What is refused has an
 * error inside the text; what is taken is written as JSON that reads as the same tree. */
#include <stdlib.h>
#include <string.h>

#include "json/reader.h"
#include "json/writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void write_again(
    struct det_json_writer *json, const struct det_json_value *root, struct det_arena *arena)
{
    const struct det_json_value *again = NULL;
    struct det_json_writer second;

    det_json_copy(json, NULL, root);
    require(
        det_json_read(
            arena, det_view_of(det_buffer_text(&json->text), json->text.size), &again, NULL) == 0);
    require(again->kind == root->kind && again->count == root->count);
    det_json_writer_init(&second, NULL);
    det_json_copy(&second, NULL, again);
    require(
        second.text.size == json->text.size &&
        memcmp(second.text.data, json->text.data, json->text.size) == 0);
    det_json_writer_deinit(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct det_json_value *root = NULL;
    struct det_error error = { 0 };
    struct det_json_writer json;
    struct det_arena arena;
    int r;

    det_arena_init(&arena, NULL);
    r = det_json_read(&arena, det_view_of((const char *)data, size), &root, &error);
    if (r < 0) {
        require(error.text[0] && error.offset <= size);
    } else {
        det_json_writer_init(&json, NULL);
        write_again(&json, root, &arena);
        det_json_writer_deinit(&json);
    }
    det_arena_deinit(&arena);
    return 0;
}
