/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* template_render.c - the machine that executes the steps of a template. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "worker/template_program.h"
#include "yaml/datum_text.h"
#include "json/writer.h"

/* Limit of texts made by functions in one rendering. */
#define TEXTS_MAX ((size_t)4 * DET_TEMPLATE_OUTPUT_MAX)
#define NAMES_MAX 256 /* names compared for the nearest one */

struct loop {
    const struct det_datum *next;         /* of a list */
    const struct det_datum *const *items; /* of a map, by key; NULL: a list */
    uint32_t index, count;
};

struct machine {
    const struct det_template *template;
    const struct det_datum *root;
    struct det_buffer *buffer;
    struct det_error *error;
    struct det_arena arena;
    size_t steps_left;
    unsigned depth, dot_count, loop_count, quote_count;
    struct det_datum stack[DET_TEMPLATE_STACK];
    struct det_datum variables[DET_TEMPLATE_VARIABLES];
    struct det_datum dots[DET_TEMPLATE_DEPTH_MAX + 1];
    struct loop loops[DET_TEMPLATE_DEPTH_MAX];
    size_t quotes[DET_TEMPLATE_DEPTH_MAX]; /* where in the output each began */
};

#define FAIL(machine, code, step, ...)                                                \
    det_lex_fail(                                                                     \
        (machine)->error, code, (machine)->template->what, (machine)->template->text, \
        (step)->offset, __VA_ARGS__)

static struct det_datum *top(struct machine *machine)
{
    return &machine->stack[machine->depth - 1];
}

static void push(struct machine *machine, const struct det_datum *value)
{
    machine->stack[machine->depth++] = *value;
}

/* "IP, PORT, global": the existing names, cut if they are too many. */
static void list_names(const struct det_datum *map, char *target, size_t capacity)
{
    size_t used = 0;

    *target = '\0';
    for (const struct det_datum *item = map->first; item; item = item->next) {
        size_t size = strlen(item->key);

        if (used + size + 6 > capacity) {
            memcpy(target + used, used ? ", ..." : "...", used ? 6 : 4);
            return;
        }
        memcpy(target + used, used ? ", " : "", used ? 2 : 0);
        used += used ? 2 : 0;
        memcpy(target + used, item->key, size + 1);
        used += size;
    }
}

static int fail_missing(
    struct machine *machine, const struct det_template_step *step, const struct det_datum *map)
{
    const char *path = machine->template->text.data + step->offset;
    int size = (int)(step->size < 80 ? step->size : 80);
    const char *names[NAMES_MAX];
    size_t count = 0;
    char all[120];
    int nearest;

    for (const struct det_datum *item = map->first; item && count < NAMES_MAX; item = item->next)
        names[count++] = item->key;
    nearest = det_text_nearest(step->name, names, count);
    if (nearest >= 0)
        return FAIL(
            machine, DET_ERR_NOT_FOUND, step, "%.*s: there is no '%.64s'; did you mean '%.64s'?",
            size, path, step->name, names[nearest]);
    list_names(map, all, sizeof all);
    return FAIL(
        machine, DET_ERR_NOT_FOUND, step, "%.*s: there is no '%.64s'; there %s%s", size, path,
        step->name, count ? "is: " : "is nothing in it", all);
}

static int run_field(struct machine *machine, const struct det_template_step *step)
{
    const struct det_datum *value = top(machine), *item;

    if (value->kind != DET_DATUM_MAP)
        return FAIL(
            machine, DET_ERR_TYPE, step, "%.*s: expected a map with '%.64s', found %s",
            (int)(step->size < 80 ? step->size : 80), machine->template->text.data + step->offset,
            step->name, det_datum_kind_text(value->kind));
    item = det_datum_get(value, step->name);
    if (!item)
        return fail_missing(machine, step, value);
    *top(machine) = *item;
    return 0;
}

/* In a pipe, the first value becomes the last argument. */
static void rotate(struct det_datum *values, size_t count)
{
    struct det_datum first = values[0];

    memmove(values, values + 1, (count - 1) * sizeof *values);
    values[count - 1] = first;
}

static int fail_steps(struct machine *machine, const struct det_template_step *step)
{
    return FAIL(
        machine, DET_ERR_LIMIT, step, "the rendering takes more than %d steps; is a list too long?",
        DET_TEMPLATE_STEPS_MAX);
}

/* Expensive operations count for more than one step. */
static int charge(struct machine *machine, const struct det_template_step *step, uint64_t steps)
{
    if (steps > machine->steps_left)
        return fail_steps(machine, step);
    machine->steps_left -= (size_t)steps;
    return 0;
}

/* The limit of the arena, or no memory. */
static int fail_texts(struct machine *machine, const struct det_template_step *step, size_t size)
{
    if (machine->arena.used + size < TEXTS_MAX)
        return DET_ERR_NO_MEMORY;
    return FAIL(
        machine, DET_ERR_LIMIT, step, "the texts made by functions and blocks exceed %zu KiB",
        TEXTS_MAX / 1024);
}

/* The size of texts, and lists up to the index. */
static uint64_t cost_of(const struct det_datum *values, size_t count)
{
    uint64_t cost = 0;

    for (size_t i = 0; i < count; i++) {
        if (values[i].kind == DET_DATUM_TEXT)
            cost += strlen(values[i].text) / 256;
        else if (values[i].kind == DET_DATUM_LIST)
            cost += values[i].count / 32;
    }
    return cost;
}

static int run_call(struct machine *machine, const struct det_template_step *step)
{
    struct det_template_call call = {
        .values = &machine->stack[machine->depth - step->count],
        .count = step->count,
        .arena = &machine->arena,
    };
    int r;

    r = charge(machine, step, cost_of(call.values, call.count));
    if (r < 0)
        return r;
    if (step->is_piped)
        rotate(call.values, call.count);
    r = det_template_run((enum det_template_function)step->function, &call);
    if (r < 0 && *call.reason)
        return FAIL(
            machine, r, step, "%s: %s", det_template_functions[step->function].name, call.reason);
    if (r < 0)
        return fail_texts(machine, step, r == DET_ERR_LIMIT ? TEXTS_MAX : DET_TEMPLATE_OUTPUT_MAX);
    machine->depth -= step->count - 1u;
    *top(machine) = call.result;
    return 0;
}

static int by_key(const void *a, const void *b)
{
    const struct det_datum *const *left = a, *const *right = b;

    return strcmp((*left)->key, (*right)->key);
}

static const struct det_datum *const *sorted(struct det_arena *arena, const struct det_datum *map)
{
    const struct det_datum **items =
        det_arena_array(arena, map->count, sizeof(const struct det_datum *));
    size_t count = 0;

    if (!items)
        return NULL;
    for (const struct det_datum *item = map->first; item; item = item->next)
        items[count++] = item;
    qsort(items, count, sizeof(const struct det_datum *), by_key);
    return items;
}

/* Continues with the next step, or at the target. */
static int run_range(struct machine *machine, const struct det_template_step *step, uint32_t *next)
{
    struct det_datum *value = top(machine);
    struct loop *loop = &machine->loops[machine->loop_count];
    int r;

    if (value->kind != DET_DATUM_LIST && value->kind != DET_DATUM_MAP &&
        value->kind != DET_DATUM_NULL)
        return FAIL(
            machine, DET_ERR_TYPE, step, "range: expected a list or a map, found %s",
            det_datum_kind_text(value->kind));
    machine->depth--;
    if (det_template_is_empty(value)) {
        *next = step->target;
        return 0;
    }
    *loop = (struct loop){ .next = value->first, .count = value->count };
    if (value->kind == DET_DATUM_MAP) {
        r = charge(machine, step, value->count);
        if (r < 0)
            return r;
        loop->items = sorted(&machine->arena, value);
        if (!loop->items)
            return fail_texts(machine, step, value->count * sizeof(void *));
    }
    machine->loop_count++;
    machine->dot_count++;
    return 0;
}

static void run_range_next(
    struct machine *machine, const struct det_template_step *step, uint32_t *next)
{
    struct loop *loop = &machine->loops[machine->loop_count - 1];
    struct det_datum *dot = &machine->dots[machine->dot_count - 1];
    struct det_datum *variables = &machine->variables[step->slot];

    if (loop->index == loop->count) {
        machine->loop_count--;
        machine->dot_count--;
        *next = step->target;
        return;
    }
    *dot = loop->items ? *loop->items[loop->index] : *loop->next;
    loop->next = dot->next;
    if (step->count > 0)
        variables[step->count - 1] = *dot;
    if (step->count == 2)
        variables[0] =
            loop->items ? (struct det_datum){ .kind = DET_DATUM_TEXT, .text = dot->key }
                        : (struct det_datum){ .kind = DET_DATUM_SIGNED, .as.number = loop->index };
    loop->index++;
}

static int run_quoted_end(struct machine *machine, const struct det_template_step *step)
{
    struct det_buffer *buffer = machine->buffer;
    size_t start = machine->quotes[--machine->quote_count];
    const char *copy = "";

    if (buffer->error)
        return 0;
    if (buffer->size > start) {
        copy = det_arena_copy_n(&machine->arena, buffer->data + start, buffer->size - start);
        if (!copy)
            return fail_texts(machine, step, buffer->size - start);
        buffer->size = start;
        buffer->data[start] = '\0';
    }
    det_json_quote(buffer, det_view_text(copy));
    return 0;
}

/* Pops a value; continues with the next step, or at the target if the value is empty. */
static bool pop_is_empty(struct machine *machine)
{
    return det_template_is_empty(&machine->stack[--machine->depth]);
}

static void run_with(struct machine *machine, const struct det_template_step *step, uint32_t *next)
{
    if (pop_is_empty(machine))
        *next = step->target;
    else
        machine->dots[machine->dot_count++] = machine->stack[machine->depth];
}

static void run_shortcut(
    struct machine *machine, const struct det_template_step *step, uint32_t *next)
{
    if (det_template_is_empty(top(machine)) == (step->op == DET_TEMPLATE_AND))
        *next = step->target;
    else
        machine->depth--;
}

static int run_step(struct machine *machine, const struct det_template_step *step, uint32_t *next)
{
    switch ((enum det_template_op)step->op) {
    case DET_TEMPLATE_TEXT:
        det_buffer_append(machine->buffer, step->text, step->size);
        break;
    case DET_TEMPLATE_PRINT:
        det_template_put(machine->buffer, &machine->stack[--machine->depth]);
        break;
    case DET_TEMPLATE_DROP:
        machine->depth--;
        break;
    case DET_TEMPLATE_DOT:
        push(machine, &machine->dots[machine->dot_count - 1]);
        break;
    case DET_TEMPLATE_ROOT:
        push(machine, machine->root);
        break;
    case DET_TEMPLATE_LITERAL:
        push(machine, step->literal);
        break;
    case DET_TEMPLATE_VARIABLE:
        push(machine, &machine->variables[step->slot]);
        break;
    case DET_TEMPLATE_SET:
        machine->variables[step->slot] = *top(machine);
        break;
    case DET_TEMPLATE_FIELD:
        return run_field(machine, step);
    case DET_TEMPLATE_CALL:
        return run_call(machine, step);
    case DET_TEMPLATE_AND:
    case DET_TEMPLATE_OR:
        run_shortcut(machine, step, next);
        break;
    case DET_TEMPLATE_JUMP:
        *next = step->target;
        break;
    case DET_TEMPLATE_JUMP_EMPTY:
        if (pop_is_empty(machine))
            *next = step->target;
        break;
    case DET_TEMPLATE_WITH:
        run_with(machine, step, next);
        break;
    case DET_TEMPLATE_WITHOUT:
        machine->dot_count--;
        break;
    case DET_TEMPLATE_RANGE:
        return run_range(machine, step, next);
    case DET_TEMPLATE_RANGE_NEXT:
        run_range_next(machine, step, next);
        break;
    case DET_TEMPLATE_QUOTED:
        machine->quotes[machine->quote_count++] = machine->buffer->size;
        break;
    case DET_TEMPLATE_QUOTED_END:
        return run_quoted_end(machine, step);
    }
    return 0;
}

static int check_output(struct machine *machine, const struct det_template_step *step)
{
    int r = det_buffer_status(machine->buffer);

    if (r == DET_ERR_LIMIT)
        return FAIL(
            machine, r, step, "the result is larger than %d KiB; is a list too long?",
            DET_TEMPLATE_OUTPUT_MAX / 1024);
    return r;
}

static int run_program(struct machine *machine)
{
    const struct det_template *template = machine->template;
    uint32_t at = 0, next;
    int r;

    while (at < template->count) {
        const struct det_template_step *step = &template->steps[at];

        if (machine->steps_left-- == 0)
            return fail_steps(machine, step);
        next = at + 1;
        r = run_step(machine, step, &next);
        if (r == 0)
            r = check_output(machine, step);
        if (r < 0)
            return r;
        det_assert(machine->depth <= DET_TEMPLATE_STACK && next <= template->count);
        det_assert(machine->dot_count > 0 && machine->dot_count <= DET_TEMPLATE_DEPTH_MAX + 1);
        at = next;
    }
    det_assert(machine->depth == 0 && machine->dot_count == 1);
    det_assert(machine->loop_count == 0 && machine->quote_count == 0);
    return 0;
}

int det_template_render(
    const struct det_template *template, const struct det_datum *root, struct det_buffer *buffer,
    struct det_error *reterr)
{
    struct det_arena arena;
    struct machine *machine;
    int r = DET_ERR_NO_MEMORY;

    det_assert(root->kind == DET_DATUM_MAP);
    det_arena_init(&arena, template->allocator);
    machine = det_arena_alloc(&arena, sizeof *machine);
    if (machine) {
        machine->template = template;
        machine->root = root;
        machine->buffer = buffer;
        machine->error = reterr;
        machine->steps_left = DET_TEMPLATE_STEPS_MAX;
        machine->dots[machine->dot_count++] = *root;
        det_arena_init(&machine->arena, template->allocator);
        machine->arena.limit = TEXTS_MAX;
        buffer->limit = buffer->size + DET_TEMPLATE_OUTPUT_MAX;
        r = run_program(machine);
        det_arena_deinit(&machine->arena);
    }
    det_arena_deinit(&arena);
    if (r == DET_ERR_NO_MEMORY)
        det_error_set(reterr, r, "%s: out of memory", template->what);
    return r;
}
