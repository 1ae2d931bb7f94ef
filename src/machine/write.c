/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* write.c - writes a machine as the text of a spec: collects, writes, formats, and reads the result
 * again, so that the returned text is known to mean the same. */
#include "machine/write.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

void det_write_fail(struct det_writer *writer, int code, const char *format, ...)
{
    char text[DET_ERROR_TEXT_MAX];
    va_list arguments;

    if (writer->status < 0)
        return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    det_assert(code < 0);
    writer->status = det_error_set(writer->reterr, code, "%s", text);
}

void *det_write_alloc(struct det_writer *writer, size_t count, size_t size)
{
    void *block = writer->status == 0 ? det_arena_array(&writer->arena, count, size) : NULL;

    if (block == NULL)
        det_write_fail(writer, DET_ERR_NO_MEMORY, "out of memory");
    return block;
}

static void init_writer(
    struct det_writer *writer, const struct det_machine *machine,
    const struct det_allocator *allocator, struct det_error *reterr)
{
    /* No text depends on the order of a map, so any seed is valid. */
    const uint64_t seed = (uint64_t)(uintptr_t)writer;

    memset(writer, 0, sizeof *writer);
    writer->machine = machine;
    writer->reterr = reterr;
    det_arena_init(&writer->arena, allocator);
    det_buffer_init(&writer->text, allocator);
    for (size_t i = 0; i < DET_WRITE_KINDS; i++) {
        struct det_write_list *list = &writer->lists[i];

        det_map_init(&list->map, allocator, seed, offsetof(struct det_write_thing, name));
        list->end = &list->first;
    }
    det_map_init(&writer->c_names, allocator, seed, 0);
    det_map_init(&writer->value_names, allocator, seed, 0);
}

static void deinit_writer(struct det_writer *writer)
{
    for (size_t i = 0; i < DET_WRITE_KINDS; i++)
        det_map_deinit(&writer->lists[i].map);
    det_map_deinit(&writer->c_names);
    det_map_deinit(&writer->value_names);
    det_buffer_deinit(&writer->text);
    det_arena_deinit(&writer->arena);
}

static void write_words(struct det_writer *writer)
{
    const struct det_machine *machine = writer->machine;
    const struct det_record *data = det_record_of(machine->data);

    det_buffer_format(
        &writer->text, "#define FSM_NAME %s\n#define FSM_PREFIX %s\n", machine->name,
        det_write_prefix(writer));
    if (machine->version != 1)
        det_buffer_format(&writer->text, "#define FSM_VERSION %u\n", machine->version);
    if (data != NULL && data != det_empty_record())
        det_buffer_format(&writer->text, "#define FSM_DATA %s\n", data->name);
}

/* Formats the text as `detent fmt` does. */
static void lay_out(struct det_writer *writer, struct det_buffer *target)
{
    const struct det_buffer *text = &writer->text;
    int64_t size = det_spec_format(text->data, text->size, NULL, 0, writer->reterr), again;
    char *room;

    if (size == DET_ERR_LIMIT || size > DET_SPEC_SIZE_MAX) {
        det_write_fail(
            writer, DET_ERR_LIMIT, "the spec of %s would have more than %d bytes",
            writer->machine->name, DET_SPEC_SIZE_MAX);
        return;
    }
    if (size < 0) {
        det_write_fail(
            writer, DET_ERR_UNSUPPORTED, "a text in %s cannot be written in a spec",
            writer->machine->name);
        return;
    }
    room = det_buffer_extend(target, (size_t)size);
    if (room == NULL) {
        det_write_fail(writer, det_buffer_status(target), "out of memory");
        return;
    }
    /* The final 0 is after the room. */
    again = det_spec_format(text->data, text->size, room, (size_t)size + 1, NULL);
    det_assert(again == size);
}

/* The builder accepts some definitions that the reader refuses, and a component has rows that its
 * machine does not store. */
static void read_again(struct det_writer *writer, const char *text, size_t size)
{
    const struct det_spec_options options = { .allocator = writer->arena.allocator };
    const struct det_diagnostics *found;
    struct det_spec *spec;

    if (det_spec_read(writer->machine->name, text, size, &options, &spec) < 0) {
        det_write_fail(writer, DET_ERR_NO_MEMORY, "out of memory");
        return;
    }
    found = det_spec_diagnostics(spec);
    if (det_spec_machine(spec) == NULL)
        det_write_fail(
            writer, DET_ERR_UNSUPPORTED, "%s cannot be written as a spec: %s",
            writer->machine->name, found->count > 0 ? found->items[0].text : "it is too large");
    det_spec_close(spec);
}

static void write_all(struct det_writer *writer)
{
    write_words(writer);
    det_write_enums(writer);
    det_write_records(writer);
    det_write_declarations(writer);
    det_write_behaviour(writer);
    if (det_buffer_status(&writer->text) < 0)
        det_write_fail(writer, DET_ERR_NO_MEMORY, "out of memory");
}

int det_write_machine(
    const struct det_machine *machine, struct det_buffer *target, struct det_error *reterr)
{
    size_t start = target->size;
    struct det_writer writer;
    int r;

    init_writer(&writer, machine, target->allocator, reterr);
    det_write_collect(&writer);
    if (writer.status == 0)
        write_all(&writer);
    if (writer.status == 0)
        lay_out(&writer, target);
    if (writer.status == 0)
        read_again(&writer, target->data + start, target->size - start);
    if (writer.status < 0 && target->size > start) {
        target->size = start;
        target->data[start] = '\0';
    }
    det_assert(target->size >= start);
    r = writer.status;
    deinit_writer(&writer);
    return r;
}

int64_t det_machine_write(
    const struct det_machine *machine, const struct det_allocator *allocator, char *target,
    size_t capacity, struct det_error *reterr)
{
    struct det_buffer text;
    int64_t r;

    det_buffer_init(&text, allocator);
    r = det_write_machine(machine, &text, reterr);
    if (r == 0) {
        r = (int64_t)text.size;
        if (capacity > 0)
            (void)snprintf(target, capacity, "%s", det_buffer_text(&text));
    }
    det_buffer_deinit(&text);
    return r;
}
