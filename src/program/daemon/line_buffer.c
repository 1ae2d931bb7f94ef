/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* line_buffer.c - keeps the newest lines, one block of memory each. */
#include "daemon/line_buffer.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"

static size_t size_of(const struct up_line *line)
{
    return sizeof *line + line->size + 1 + strlen(line->name) + 1;
}

static void assert_lines(const struct up_lines *lines)
{
    det_assert(det_list_is_empty(&lines->all) == (lines->count == 0));
    det_assert(lines->count > 0 || lines->bytes == 0);
    det_assert(lines->count <= lines->newest);
}

static struct up_line *line_of(struct det_list *node)
{
    return DET_CONTAINER(node, struct up_line, node);
}

void up_lines_init(struct up_lines *lines, const struct det_allocator *allocator)
{
    *lines = (struct up_lines){
        .allocator = allocator,
        .lines_max = UP_LINES_MAX,
        .bytes_max = UP_LINES_BYTES_MAX,
    };
    det_list_init(&lines->all);
}

static void drop_oldest(struct up_lines *lines)
{
    struct up_line *line = line_of(lines->all.next);

    det_assert(lines->count > 0 && lines->bytes >= line->size && line->number <= lines->newest);
    det_list_remove(&line->node);
    lines->count--;
    lines->bytes -= line->size;
    det_free(lines->allocator, line, size_of(line));
}

void up_lines_deinit(struct up_lines *lines)
{
    while (lines->count > 0)
        drop_oldest(lines);
    det_assert(lines->bytes == 0);
}

static struct up_line *new_line(struct up_lines *lines, const struct det_line *line)
{
    size_t name_size = strlen(line->name) + 1;
    struct up_line *made =
        det_alloc_zero(lines->allocator, sizeof *made + line->size + 1 + name_size);

    if (!made)
        return NULL;
    made->size = line->size;
    made->dropped = line->dropped;
    made->stream = line->stream;
    made->is_cut = line->is_cut;
    if (line->size > 0)
        memcpy(made->text, line->text, line->size);
    made->name = memcpy(made->text + line->size + 1, line->name, name_size);
    det_assert(size_of(made) == sizeof *made + line->size + 1 + name_size);
    return made;
}

void up_lines_add(struct up_lines *lines, const struct det_line *line, det_time at)
{
    struct up_line *made = new_line(lines, line);

    lines->newest++;
    if (!made)
        return;
    made->number = lines->newest;
    made->at = at;
    det_list_append(&lines->all, &made->node);
    lines->count++;
    lines->bytes += made->size;
    while (lines->count > 1 && (lines->count > lines->lines_max || lines->bytes > lines->bytes_max))
        drop_oldest(lines);
    assert_lines(lines);
}

const struct up_line *up_lines_after(const struct up_lines *lines, uint64_t number)
{
    const struct up_line *found = NULL, *line = NULL;

    /* Readers are near the newest line or start with the oldest. */
    if (lines->count > 0 && line_of(lines->all.next)->number > number)
        return line_of(lines->all.next);
    while ((line = up_lines_previous(lines, line)) && line->number > number)
        found = line;
    return found;
}

const struct up_line *up_lines_next(const struct up_lines *lines, const struct up_line *line)
{
    return line->node.next == &lines->all ? NULL : line_of(line->node.next);
}

const struct up_line *up_lines_previous(const struct up_lines *lines, const struct up_line *line)
{
    struct det_list *before = line ? line->node.previous : lines->all.previous;

    return before == &lines->all ? NULL : line_of(before);
}
