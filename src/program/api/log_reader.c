/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_reader.c - reads pages of the log: the shared tail in its own lane, pages for single
 * subscribers in the lane of reads. */
#include <detent/tool/store.h>

#include "api/log_reader.h"

#include <string.h>

#include "api/log_pages.h"
#include "base/assert.h"
#include "base/memory.h"

void api_row_free(const struct api *api, struct api_row *row)
{
    det_free(api->allocator, row, row->memory);
}

void api_rows_free(const struct api *api, struct det_list *rows)
{
    struct det_list *node;

    while ((node = det_list_take(rows)))
        api_row_free(api, DET_CONTAINER(node, struct api_row, node));
}

/* "id: 7\nevent: log\ndata: {...}\n\n" */
static struct api_row *make_row(
    const struct api *api, struct api_reader *reader, const struct det_store_logged *logged)
{
    const struct det_allocator *allocator = api->allocator;
    size_t machine_size = strlen(logged->machine) + 1, id_size = strlen(logged->id) + 1, memory;
    struct api_row *row = NULL;
    struct det_json_writer json;

    det_json_writer_init(&json, allocator);
    det_buffer_format(
        &json.text, "id: %llu\nevent: log\ndata: ", (unsigned long long)logged->position);
    api_log_line(&json, reader, logged);
    det_buffer_append_text(&json.text, "\n\n");
    memory = sizeof *row + json.text.size + machine_size + id_size;
    if (det_buffer_status(&json.text) == 0)
        row = det_alloc(allocator, memory);
    if (row) {
        *row = (struct api_row){ .position = logged->position,
                                 .size = json.text.size,
                                 .memory = memory,
                                 .machine = row->text + json.text.size,
                                 .id = row->text + json.text.size + machine_size };
        memcpy(row->text, det_buffer_text(&json.text), json.text.size);
        memcpy(row->text + row->size, logged->machine, machine_size);
        memcpy(row->text + row->size + machine_size, logged->id, id_size);
        det_list_init(&row->node);
    }
    det_json_writer_deinit(&json);
    return row;
}

/* In a lane. */

struct taking {
    struct api_page *page;
    struct api_reader *reader;
};

static int take_row(void *context, const struct det_store_logged *logged)
{
    struct taking *taking = context;
    struct api_page *page = taking->page;
    struct api_row *row = make_row(page->api, taking->reader, logged);

    if (!row)
        return DET_ERR_NO_MEMORY;
    /* A damaged file may have rows that are not in the order of their positions. */
    if (page->count ? row->position < page->next : row->position <= page->query.after) {
        api_row_free(page->api, row);
        return DET_ERR_CORRUPT;
    }
    if (page->count && page->size + row->size > page->bytes && row->position != page->next) {
        api_row_free(page->api, row);
        return 1;
    }
    det_list_append(&page->rows, &row->node);
    page->count++;
    page->size += row->size;
    page->next = row->position;
    return 0;
}

static int take_last(void *context, const struct det_store_logged *logged)
{
    *(uint64_t *)context = logged->position;
    return 0;
}

/* Finds the end of the log: reading backwards begins with the last row that is final. */
static int find_end(struct api_reader *reader, uint64_t *ret)
{
    static const struct det_store_log_query newest = { .is_backward = true,
                                                       .limit = 1,
                                                       .wants_end = true };
    uint64_t next;

    *ret = 0;
    return det_store_log(reader->store.store, &newest, take_last, ret, &next);
}

/* The page continues after the last row taken, or where the store says. */
static int read_rows(struct taking *taking)
{
    struct api_page *page = taking->page;
    uint64_t next = 0;
    int r = det_store_log(taking->reader->store.store, &page->query, take_row, taking, &next);

    if (r == 0)
        page->next = next;
    page->is_full = r > 0 || page->count >= page->query.limit;
    return r < 0 ? r : 0;
}

static void run_page(void *argument)
{
    struct api_page *page = argument;
    struct api *api = page->api;
    int code = CLI_OK;
    struct taking taking = { .page = page, .reader = api_reader_open(api, &code) };

    if (!taking.reader || code != CLI_OK)
        page->result = taking.reader ? DET_ERR_IO : DET_ERR_NO_MEMORY;
    else if (page->is_first)
        page->result = find_end(taking.reader, &page->next);
    else
        page->result = read_rows(&taking);
    if (taking.reader) {
        page->is_shared = code == CLI_OK && taking.reader->store.ops->is_shared;
        api_reader_give(api, taking.reader);
    }
}

void api_page_read(struct api_page *page, void (*done)(void *argument))
{
    det_assert(page->bytes > 0 && page->query.limit > 0 && page->count == 0);
    page->job = (struct api_lane_job){ .run = run_page, .done = done, .argument = page };
    det_list_init(&page->rows);
    api_lane_submit(page->api, page->subscriber ? API_READS : API_TAIL, &page->job);
}
