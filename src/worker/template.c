/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* template.c - opens, fills and closes a template. */
#include <string.h>

#include "base/memory.h"
#include "worker/template_program.h"

int det_template_advance(struct det_template_reader *reader)
{
    return det_lex_token(&reader->lex, &reader->token);
}

int64_t det_template_emit(
    struct det_template_reader *reader, enum det_template_op op, size_t offset)
{
    struct det_template *template = reader->template;

    if (template->count == template->capacity) {
        uint32_t capacity = template->capacity ? 2 * template->capacity : 32;
        struct det_template_step *steps = det_realloc(
            template->allocator, template->steps, template->capacity * sizeof *steps,
            capacity * sizeof *steps);

        if (!steps)
            return DET_ERR_NO_MEMORY;
        template->steps = steps;
        template->capacity = capacity;
    }
    template->steps[template->count] =
        (struct det_template_step){ .op = (uint8_t)op, .offset = (uint32_t)offset };
    return template->count++;
}

int64_t det_template_declare(
    struct det_template_reader *reader, struct det_view name, size_t offset)
{
    if (name.size == 1)
        return DET_LEX_FAIL(
            &reader->lex, DET_ERR_MALFORMED, offset,
            "$ is the input of the template and cannot be set; name the variable, as in $x");
    if (reader->name_count == DET_TEMPLATE_VARIABLES)
        return DET_LEX_FAIL(
            &reader->lex, DET_ERR_LIMIT, offset, "more than %d variables are in use at a time",
            DET_TEMPLATE_VARIABLES);
    reader->names[reader->name_count].name = name;
    return reader->name_count++;
}

int det_template_open(
    const struct det_allocator *allocator, const char *what, const char *text, size_t size,
    struct det_template **ret, struct det_error *reterr)
{
    struct det_template *template;
    char *copy;
    int r = DET_ERR_NO_MEMORY;

    if (size > DET_TEMPLATE_SIZE_MAX)
        return det_error_set(
            reterr, DET_ERR_LIMIT, "%s: it is larger than %d KiB; split it", what,
            DET_TEMPLATE_SIZE_MAX / 1024);
    template = DET_NEW(allocator, struct det_template);
    if (template) {
        template->allocator = allocator;
        template->what = what;
        det_arena_init(&template->arena, allocator);
        copy = det_arena_alloc(&template->arena, size + 1);
        if (copy) {
            if (size)
                memcpy(copy, text, size);
            template->text = det_view_of(copy, size);
            r = det_template_parse(template, reterr);
        }
    }
    if (r == DET_ERR_NO_MEMORY)
        det_error_set(reterr, r, "%s: out of memory", what);
    if (r < 0) {
        det_template_close(template);
        return r;
    }
    *ret = template;
    return 0;
}

void det_template_close(struct det_template *template)
{
    if (!template)
        return;
    DET_DELETE_ARRAY(template->allocator, template->steps, template->capacity);
    det_arena_deinit(&template->arena);
    DET_DELETE(template->allocator, template);
}
