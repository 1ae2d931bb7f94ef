/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* page.c - JSON objects, member by member. */
#include <string.h>

#include "record/text_sink.h"
#include "worker/page.h"

void det_page_open(struct det_page *page, const struct det_allocator *allocator, size_t limit)
{
    det_buffer_init(&page->text, allocator);
    page->text.limit = limit;
    page->has_members = false;
    det_buffer_append_char(&page->text, '{');
}

void det_page_close(struct det_page *page)
{
    det_buffer_append_char(&page->text, '}');
}

void det_page_quoted(struct det_buffer *buffer, const char *text)
{
    struct det_output measure = { 0 }, write;
    char *place;

    det_output_quoted(&measure, det_view_text(text));
    place = det_buffer_extend(buffer, measure.length + 1);
    if (!place)
        return;
    write = (struct det_output){ place, measure.length + 1, 0 };
    det_output_quoted(&write, det_view_text(text));
    det_output_finish(&write);
    buffer->size--;
}

void det_page_key(struct det_page *page, const char *name)
{
    if (page->has_members)
        det_buffer_append_char(&page->text, ',');
    page->has_members = true;
    det_page_quoted(&page->text, name);
    det_buffer_append_char(&page->text, ':');
}

void det_page_text(struct det_page *page, const char *name, const char *text)
{
    det_page_key(page, name);
    det_page_quoted(&page->text, text);
}

void det_page_bool(struct det_page *page, const char *name, bool is_true)
{
    det_page_key(page, name);
    det_buffer_append_text(&page->text, is_true ? "true" : "false");
}

void det_page_number(struct det_page *page, const char *name, uint64_t number)
{
    det_page_key(page, name);
    det_buffer_format(&page->text, "%llu", (unsigned long long)number);
}

void det_page_time(struct det_page *page, const char *name, det_time wall)
{
    char text[DET_TIME_TEXT];

    det_page_text(page, name, det_format_time(wall, text, sizeof text));
}

void det_page_record(struct det_page *page, const struct det_record *record, const void *value)
{
    size_t size = record ? det_record_to_json(record, value, 0, NULL, 0) : 0;
    char *place;

    if (size <= 2)
        return;
    if (page->has_members)
        det_buffer_append_char(&page->text, ',');
    page->has_members = true;
    place = det_buffer_extend(&page->text, size + 1);
    if (!place)
        return;
    det_record_to_json(record, value, 0, place, size + 1);
    /* Without its braces and the final 0. */
    memmove(place, place + 1, size - 2);
    page->text.size -= 3;
    page->text.data[page->text.size] = '\0';
}

void det_page_begin(struct det_page *page, const char *name)
{
    det_page_key(page, name);
    det_buffer_append_char(&page->text, '{');
    page->has_members = false;
}

void det_page_end(struct det_page *page)
{
    det_buffer_append_char(&page->text, '}');
    page->has_members = true;
}
