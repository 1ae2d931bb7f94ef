/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lines.c - splits a stream into lines, counts dropped bytes, and limits the throughput.
 *
 * Invariants of struct det_lines between calls
 *   1. size <= DET_LINE_MAX + 1, and DET_LINE_MAX + 1 only when the last byte is a CR.
 *   2. While it skips, there is no unfinished line. */
#include <string.h>

#include "base/assert.h"
#include "task/lines.h"

/* More than any pipe provides. */
#define PER_SECOND_MAX (UINT64_C(1) << 42)

static void emit(struct det_lines *lines, const char *text, size_t size, bool is_cut)
{
    const struct det_line line = {
        .stream = lines->stream,
        .text = text,
        .size = size,
        .is_cut = is_cut,
        .dropped = lines->dropped,
    };

    lines->dropped = 0;
    lines->on_line(lines->user, &line);
}

static size_t without_cr(const char *text, size_t size)
{
    return size && text[size - 1] == '\r' ? size - 1 : size;
}

/* Passes on a full piece and keeps the rest. */
static void emit_piece(struct det_lines *lines)
{
    emit(lines, lines->pending, DET_LINE_MAX, true);
    lines->size -= DET_LINE_MAX;
    memmove(lines->pending, lines->pending + DET_LINE_MAX, lines->size);
}

static void append(struct det_lines *lines, const char *data, size_t size)
{
    while (size) {
        size_t room, part;

        if (lines->size == sizeof lines->pending)
            emit_piece(lines);
        room = sizeof lines->pending - lines->size;
        part = size < room ? size : room;
        memcpy(lines->pending + lines->size, data, part);
        lines->size += part;
        data += part;
        size -= part;
        if (lines->size > DET_LINE_MAX && lines->pending[DET_LINE_MAX] != '\r')
            emit_piece(lines);
    }
}

static void finish(struct det_lines *lines, const char *data, size_t size)
{
    /* Most lines arrive whole: they need not be copied. */
    if (lines->size == 0 && without_cr(data, size) <= DET_LINE_MAX) {
        emit(lines, data, without_cr(data, size), false);
        return;
    }
    append(lines, data, size);
    emit(lines, lines->pending, without_cr(lines->pending, lines->size), false);
    lines->size = 0;
}

void det_lines_feed(struct det_lines *lines, const char *data, size_t size)
{
    while (size) {
        const char *end = memchr(data, '\n', size);
        size_t part = end ? (size_t)(end - data) : size;

        if (lines->is_skipping) {
            lines->is_skipping = !end;
            lines->dropped += part + (end ? 1 : 0);
        } else if (end) {
            finish(lines, data, part);
        } else {
            append(lines, data, part);
        }
        part += end ? 1 : 0;
        data += part;
        size -= part;
    }
    det_assert(lines->size <= sizeof lines->pending && (!lines->is_skipping || !lines->size));
}

/* Only a CR can exceed a line, and it belongs to no cut line. */
static void emit_pending(struct det_lines *lines, bool is_cut)
{
    emit(lines, lines->pending, without_cr(lines->pending, lines->size), is_cut);
    lines->size = 0;
}

void det_lines_drop(struct det_lines *lines, const char *data, size_t size)
{
    if (!size)
        return;
    if (lines->size)
        emit_pending(lines, true);
    lines->dropped += size;
    lines->is_skipping = data[size - 1] != '\n';
}

void det_lines_end(struct det_lines *lines)
{
    if (lines->size)
        emit_pending(lines, false);
    else if (lines->dropped)
        emit(lines, "", 0, true);
    lines->is_skipping = false;
}

void det_throttle_init(struct det_throttle *throttle, uint64_t per_second, det_time now)
{
    int64_t most = per_second < PER_SECOND_MAX ? (int64_t)per_second : (int64_t)PER_SECOND_MAX;

    *throttle = (struct det_throttle){ most, most, now };
}

static void refill(struct det_throttle *throttle, det_time now)
{
    int64_t seconds = now > throttle->at ? (now - throttle->at) / DET_SECOND : 0;

    if (seconds == 0)
        return;
    throttle->at += seconds * DET_SECOND;
    if (throttle->left >= 0 || seconds > -throttle->left / throttle->per_second)
        throttle->left = throttle->per_second;
    else
        throttle->left += seconds * throttle->per_second;
}

/* A part within one line, with its end or without. */
static void take_part(
    struct det_lines *lines, struct det_throttle *throttle, const char *data, size_t size)
{
    bool is_over = throttle->left <= 0 && (!lines->passed || lines->passed > DET_LINE_MAX);
    bool has_end = data[size - 1] == '\n';

    if (lines->is_skipping || is_over) {
        det_lines_drop(lines, data, size);
        lines->passed = 0;
        return;
    }
    det_lines_feed(lines, data, size);
    throttle->left -= (int64_t)size;
    lines->passed = has_end ? 0 : lines->passed + size;
}

void det_lines_feed_within(
    struct det_lines *lines, struct det_throttle *throttle, const char *data, size_t size,
    det_time now)
{
    refill(throttle, now);
    while (size) {
        const char *end;
        size_t part;

        if (!lines->is_skipping && throttle->left > (int64_t)size) {
            det_lines_feed(lines, data, size);
            throttle->left -= (int64_t)size;
            end = memrchr(data, '\n', size);
            lines->passed = end ? (size_t)(data + size - end - 1) : lines->passed + size;
            return;
        }
        part = size < DET_LINE_MAX ? size : DET_LINE_MAX;
        end = memchr(data, '\n', part);
        part = end ? (size_t)(end - data) + 1 : part;
        take_part(lines, throttle, data, part);
        data += part;
        size -= part;
    }
}
