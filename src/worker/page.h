/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* page.h - writes a JSON object into a buffer, member by member. Failures stick in the buffer. */
#ifndef DET_WORKER_PAGE_H
#define DET_WORKER_PAGE_H

#include <detent/record.h>

#include "base/buffer.h"

struct det_page {
    struct det_buffer text;
    bool has_members;
};

/* An empty object of at most `limit` bytes (0: any). Free page->text with det_buffer_deinit(). */
void det_page_open(struct det_page *page, const struct det_allocator *allocator, size_t limit);
void det_page_close(struct det_page *page);
/* The name of a member; its value, or an object, is appended by the caller. */
void det_page_key(struct det_page *page, const char *name);
void det_page_text(struct det_page *page, const char *name, const char *text);
void det_page_bool(struct det_page *page, const char *name, bool is_true);
void det_page_number(struct det_page *page, const char *name, uint64_t number);
void det_page_time(struct det_page *page, const char *name, det_time wall);
/* The fields of a record as members of the object; those that are sensitive are cut off. */
void det_page_record(struct det_page *page, const struct det_record *record, const void *value);
/* A string in quotes. */
void det_page_quoted(struct det_buffer *buffer, const char *text);
/* An object within: between these two, members are its own. */
void det_page_begin(struct det_page *page, const char *name);
void det_page_end(struct det_page *page);

#endif
