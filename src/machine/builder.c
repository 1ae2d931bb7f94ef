/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder.c - collects the rows of a definition; checks only the length of lists. */
#include <detent/tool/builder.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "machine/builder_rows.h"

static void set_failed(struct det_machine_builder *builder)
{
    builder->status = DET_ERR_NO_MEMORY;
}

/* A text that is not a name may be printed in a finding, so it must not contain control bytes. */
static void make_printable(char *text)
{
    bool is_utf8 = det_utf8_check(text, strlen(text)) == strlen(text);

    for (char *c = text; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;

        if (byte < ' ' || byte == 0x7F || (byte >= 0x80 && !is_utf8))
            *c = '?';
    }
}

/* One byte more than a valid name is enough to detect that it is too long. */
static struct det_build_name copy_name(struct det_machine_builder *builder, const char *given)
{
    struct det_build_name name = { .given = given, .id = -1 };
    char *text;

    if (given == NULL || builder->status < 0)
        return name;
    text = det_arena_copy_n(&builder->arena, given, strnlen(given, DET_NAME_MAX + 1));
    if (text == NULL)
        set_failed(builder);
    else
        make_printable(text);
    name.text = text;
    return name;
}

static uint32_t count_names(const char *const *list, bool *ret_is_too_long)
{
    uint32_t count = 0;

    while (list[count] != NULL && count < DET_LIST_MAX)
        count++;
    *ret_is_too_long = list[count] != NULL;
    return count;
}

static struct det_build_names copy_names(
    struct det_machine_builder *builder, const char *const *list)
{
    struct det_build_names names = { 0 };
    uint32_t count;

    if (list == NULL || builder->status < 0)
        return names;
    count = count_names(list, &names.is_too_long);
    names.items = det_arena_array(&builder->arena, count, sizeof *names.items);
    if (names.items == NULL) {
        set_failed(builder);
        return names;
    }
    for (uint32_t i = 0; i < count; i++)
        names.items[i] = copy_name(builder, list[i]);
    names.count = count;
    return names;
}

static struct det_build_timeout copy_timeout(
    struct det_machine_builder *builder, const struct det_timeout_row *row)
{
    return (struct det_build_timeout){
        .after = row->after,
        .event = copy_name(builder, row->event),
        .fill = copy_name(builder, row->fill),
    };
}

/* Returns a new row, already linked; NULL after a failure of the builder. */
static struct det_build_row *add_row(
    struct det_machine_builder *builder, enum det_build_kind kind, const char *name)
{
    struct det_build_row *row = NULL;

    det_assert(!builder->is_built);
    if (builder->status == 0)
        row = det_arena_alloc(&builder->arena, sizeof *row);
    if (row == NULL) {
        set_failed(builder);
        return NULL;
    }
    det_assert(*builder->rows_end == NULL);
    builder->row_count += kind == DET_BUILD_FINDING ? 0 : 1;
    row->kind = kind;
    row->number = builder->row_count;
    row->name = copy_name(builder, name);
    *builder->rows_end = row;
    builder->rows_end = &row->next;
    return row;
}

/* Adds a row that declares something: it has a name, perhaps an empty one. */
static struct det_build_row *add_thing(
    struct det_machine_builder *builder, enum det_build_kind kind, const char *name)
{
    return add_row(builder, kind, name != NULL ? name : "");
}

int det_machine_builder_open(
    const char *name, const struct det_allocator *allocator, struct det_machine_builder **ret)
{
    struct det_machine_builder *builder = DET_NEW(allocator, struct det_machine_builder);

    if (builder == NULL)
        return DET_ERR_NO_MEMORY;
    builder->allocator = allocator;
    builder->version = 1;
    builder->rows_end = &builder->rows;
    det_arena_init(&builder->arena, allocator);
    builder->name = copy_name(builder, name);
    if (builder->status < 0) {
        det_machine_builder_close(builder);
        return DET_ERR_NO_MEMORY;
    }
    *ret = builder;
    return 0;
}

void det_machine_builder_close(struct det_machine_builder *builder)
{
    if (builder == NULL)
        return;
    det_arena_deinit(&builder->arena);
    DET_DELETE(builder->allocator, builder);
}

void det_machine_builder_version(struct det_machine_builder *builder, uint32_t version)
{
    builder->version = version > 0 ? version : 1;
}

void det_machine_builder_data(struct det_machine_builder *builder, const struct det_record *record)
{
    builder->data = record;
}

void det_machine_builder_unhandled(
    struct det_machine_builder *builder, enum det_unhandled unhandled)
{
    det_assert((unsigned)unhandled <= DET_UNHANDLED_DEAD_LETTER);
    builder->unhandled = unhandled;
}

void det_machine_builder_state(struct det_machine_builder *builder, const struct det_state_row *row)
{
    struct det_build_row *declared = add_thing(builder, DET_BUILD_STATE, row->name);

    const unsigned health = row->flags & DET_STATE_HEALTH;

    det_assert(
        (row->flags & ~(unsigned)(DET_STATE_INITIAL | DET_STATE_FINAL | DET_STATE_HEALTH)) == 0);
    det_assert((health & (health - 1)) == 0);
    if (declared == NULL)
        return;
    declared->wire = row->wire != NULL ? copy_name(builder, row->wire) : declared->name;
    declared->state.flags = row->flags;
}

void det_machine_builder_event(struct det_machine_builder *builder, const struct det_event_row *row)
{
    struct det_build_row *declared = add_thing(builder, DET_BUILD_EVENT, row->name);

    det_assert((unsigned)row->unhandled <= DET_UNHANDLED_DEAD_LETTER);
    if (declared == NULL)
        return;
    declared->wire = row->wire != NULL ? copy_name(builder, row->wire) : declared->name;
    declared->event.payload = row->payload;
    declared->event.is_internal = row->is_internal;
    declared->event.unhandled = row->unhandled;
}

static struct det_build_row *add_function(
    struct det_machine_builder *builder, enum det_build_kind kind, const char *name,
    det_build_fn *run)
{
    struct det_build_row *declared = add_thing(builder, kind, name);

    if (declared != NULL)
        declared->function.run = run;
    return declared;
}

void det_machine_builder_effect(
    struct det_machine_builder *builder, const struct det_effect_row *row)
{
    struct det_build_row *declared =
        add_function(builder, DET_BUILD_EFFECT, row->name, (det_build_fn *)row->run);

    if (declared != NULL)
        declared->function.produces = copy_names(builder, row->produces);
}

void det_machine_builder_guard(
    struct det_machine_builder *builder, const char *name, det_guard_fn *run)
{
    (void)add_function(builder, DET_BUILD_GUARD, name, (det_build_fn *)run);
}

void det_machine_builder_hook(
    struct det_machine_builder *builder, const char *name, det_hook_fn *run)
{
    (void)add_function(builder, DET_BUILD_HOOK, name, (det_build_fn *)run);
}

void det_machine_builder_update(
    struct det_machine_builder *builder, const char *name, det_update_fn *run)
{
    (void)add_function(builder, DET_BUILD_UPDATE, name, (det_build_fn *)run);
}

void det_machine_builder_fill(
    struct det_machine_builder *builder, const char *name, det_fill_fn *run)
{
    (void)add_function(builder, DET_BUILD_FILL, name, (det_build_fn *)run);
}

void det_machine_builder_timer(struct det_machine_builder *builder, const struct det_timer_row *row)
{
    struct det_build_row *declared = add_thing(builder, DET_BUILD_TIMER, row->name);

    if (declared != NULL)
        declared->timer = copy_timeout(builder, &row->timeout);
}

void det_machine_builder_group(struct det_machine_builder *builder, const struct det_group_row *row)
{
    enum det_build_kind kind = row->is_of_events ? DET_BUILD_EVENT_GROUP : DET_BUILD_GROUP;
    struct det_build_row *declared = add_thing(builder, kind, row->name);

    if (declared != NULL)
        declared->members = copy_names(builder, row->members);
}

static const char *copy_text(struct det_machine_builder *builder, const char *text)
{
    const char *copy;

    if (text == NULL || builder->status < 0)
        return NULL;
    copy = det_arena_copy(&builder->arena, text);
    if (copy == NULL)
        set_failed(builder);
    return copy;
}

void det_machine_builder_on(struct det_machine_builder *builder, const struct det_on_row *row)
{
    struct det_build_row *declared = add_row(builder, DET_BUILD_ON, NULL);

    if (declared == NULL)
        return;
    declared->on = (struct det_build_on){
        .from = copy_names(builder, row->from),
        .events = copy_names(builder, row->events),
        .outcome = row->outcome,
        .is_override = row->is_override,
        .is_else = row->is_else,
        .to = copy_name(builder, row->to),
        .guard = copy_name(builder, row->guard),
        .hook = copy_name(builder, row->hook),
        .update = copy_name(builder, row->update),
        .keeps = copy_names(builder, row->keeps),
        .effects = copy_names(builder, row->effects),
        .arms = copy_names(builder, row->arms),
        .disarms = copy_names(builder, row->disarms),
        .within = copy_timeout(builder, &row->within),
        .reason = copy_text(builder, row->reason),
    };
}

void det_machine_builder_after(
    struct det_machine_builder *builder, const char *const *states,
    const struct det_timeout_row *row)
{
    struct det_build_row *declared = add_row(builder, DET_BUILD_AFTER, NULL);

    if (declared == NULL)
        return;
    declared->about.states = copy_names(builder, states);
    declared->about.timeout = copy_timeout(builder, row);
}

static void add_hook(
    struct det_machine_builder *builder, enum det_build_kind kind, const char *const *states,
    const char *hook)
{
    struct det_build_row *declared = add_row(builder, kind, NULL);

    if (declared == NULL)
        return;
    declared->about.states = copy_names(builder, states);
    declared->about.hook = copy_name(builder, hook != NULL ? hook : "");
}

void det_machine_builder_entry(
    struct det_machine_builder *builder, const char *const *states, const char *hook)
{
    add_hook(builder, DET_BUILD_ENTRY, states, hook);
}

void det_machine_builder_exit(
    struct det_machine_builder *builder, const char *const *states, const char *hook)
{
    add_hook(builder, DET_BUILD_EXIT, states, hook);
}

void det_machine_builder_event_unhandled(
    struct det_machine_builder *builder, const char *event, enum det_unhandled unhandled)
{
    struct det_build_row *declared = add_thing(builder, DET_BUILD_POLICY, event);

    det_assert((unsigned)unhandled <= DET_UNHANDLED_DEAD_LETTER);
    if (declared != NULL)
        declared->policy = unhandled;
}

void det_machine_builder_component(struct det_machine_builder *builder, const char *context)
{
    builder->context = copy_name(builder, context);
}

void det_machine_builder_dispatch(
    struct det_machine_builder *builder, const struct det_dispatch_row *row)
{
    struct det_build_row *declared = add_row(builder, DET_BUILD_DISPATCH, NULL);

    if (declared == NULL)
        return;
    declared->component.states = copy_names(builder, row->states);
    declared->component.mode = row->mode;
    declared->component.function = copy_name(builder, row->function);
}

void det_machine_builder_failure(struct det_machine_builder *builder, const char *event)
{
    struct det_build_row *declared = add_row(builder, DET_BUILD_FAILURE, NULL);

    if (declared != NULL)
        declared->component.event = copy_name(builder, event);
}

void det_machine_builder_closed(
    struct det_machine_builder *builder, const char *const *states, const char *event)
{
    struct det_build_row *declared = add_row(builder, DET_BUILD_CLOSED, NULL);

    if (declared == NULL)
        return;
    declared->component.states = copy_names(builder, states);
    declared->component.event = copy_name(builder, event);
}

static void add_component_function(
    struct det_machine_builder *builder, enum det_build_kind kind, const char *function)
{
    struct det_build_row *declared = add_row(builder, kind, NULL);

    if (declared != NULL)
        declared->component.function = copy_name(builder, function);
}

void det_machine_builder_completion(struct det_machine_builder *builder, const char *function)
{
    add_component_function(builder, DET_BUILD_COMPLETION, function);
}

void det_machine_builder_invariant(struct det_machine_builder *builder, const char *function)
{
    add_component_function(builder, DET_BUILD_INVARIANT, function);
}

void det_machine_builder_locate(
    struct det_machine_builder *builder, det_locate_fn *locate, void *context)
{
    builder->locate = locate;
    builder->locate_context = context;
}

void det_machine_builder_report(
    struct det_machine_builder *builder, enum det_rule rule, const struct det_place *place,
    const char *format, ...)
{
    struct det_build_row *declared = add_row(builder, DET_BUILD_FINDING, NULL);
    char text[DET_ERROR_TEXT_MAX];
    char whole[2 * DET_ERROR_TEXT_MAX];
    va_list arguments;

    if (declared == NULL)
        return;
    va_start(arguments, format);
    (void)vsnprintf(whole, sizeof whole, format, arguments);
    va_end(arguments);
    (void)det_text_copy(text, sizeof text, whole);
    declared->complaint.rule = rule;
    declared->complaint.place = *place;
    declared->complaint.text = copy_text(builder, text);
}

void det_machine_builder_report_unhandled(struct det_machine_builder *builder)
{
    builder->is_unhandled_wanted = true;
}
