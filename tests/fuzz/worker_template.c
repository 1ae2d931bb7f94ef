/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_template.c - fuzz target: variables as YAML, a line of "%", and a template that is
 * rendered with them. Whatever they are, there is a result or an error with a text; data survive
 * being written and read again, equal and with the same hash. The variables are read as the specs
 * of workers too. */
#include <stdlib.h>
#include <string.h>

#include "worker/spec.h"
#include "worker/template.h"
#include "yaml/datum_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void put_scalar(struct det_buffer *buffer, const struct det_datum *scalar)
{
    det_datum_put_scalar(buffer, scalar, false);
}

static void read_again(struct det_arena *arena, const struct det_datum *datum)
{
    struct det_error error = { 0 };
    struct det_buffer text = { .limit = DET_DATUM_SIZE_MAX };
    struct det_datum *again, *copy = det_datum_copy(arena, datum);

    det_datum_write_yaml(datum, &text, put_scalar);
    if (det_buffer_status(&text) == 0) {
        check(det_datum_from_yaml(arena, "again", text.data, text.size, &again, &error) == 0);
        check(det_datum_equal(datum, again) && det_datum_equal(again, copy));
        check(det_datum_hash(datum) == det_datum_hash(again));
    }
    det_buffer_deinit(&text);
}

static void render(
    struct det_arena *arena, const struct det_datum *root, const char *text, size_t size)
{
    struct det_error error = { 0 };
    struct det_buffer result = { .limit = 0 };
    struct det_template *template = NULL;
    struct det_datum *datum;
    int r;

    r = det_template_open(NULL, "template", text, size, &template, &error);
    if (r == 0)
        r = det_template_render(template, root, &result, &error);
    check(r == 0 || (error.code == r && error.text[0]));
    if (r == 0 && det_datum_from_yaml(
                      arena, "result", det_buffer_text(&result), result.size, &datum, &error) == 0)
        read_again(arena, datum);
    det_template_close(template);
    det_buffer_deinit(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct det_datum nothing = { .kind = DET_DATUM_MAP };
    const char *text = (const char *)data, *mark = size ? memmem(text, size, "\n%\n", 3) : NULL;
    size_t head = mark ? (size_t)(mark - text) + 1 : 0, tail = mark ? head + 2 : 0;
    struct det_error error = { 0 };
    struct det_datum *root = NULL;
    struct det_arena arena;
    struct det_spec spec;

    det_arena_init(&arena, NULL);
    if (det_datum_from_yaml(&arena, "data", text, head, &root, &error) == 0)
        read_again(&arena, root);
    else
        check(error.text[0] != '\0');
    if (det_workers_spec_read(&spec, NULL, text, head, &error) == 0)
        det_spec_deinit(&spec);
    render(&arena, root && root->kind == DET_DATUM_MAP ? root : &nothing, text + tail, size - tail);
    det_arena_deinit(&arena);
    return 0;
}
