/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_pages.c - iterates over the instances of a machine, page by page. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "inspect/store_url.h"

#define PAGE_SIZE 256

struct page {
    char ids[PAGE_SIZE][DET_ID_MAX + 1];
    size_t count;
};

static int take_id(void *context, const struct det_store_listed *row)
{
    struct page *page = context;

    if (page->count == PAGE_SIZE)
        return 0;
    snprintf(page->ids[page->count++], sizeof page->ids[0], "%s", row->id);
    return 0;
}

static int each_of_page(
    struct cli_store *store, struct det_machine *machine, const struct page *page,
    cli_store_id_fn *each, void *context)
{
    int code = CLI_OK;

    for (size_t i = 0; i < page->count && code == CLI_OK; i++) {
        if (cli_is_stopped(store->cli))
            return CLI_INTERRUPTED;
        code = each(context, machine, page->ids[i]);
    }
    return code;
}

int cli_store_instances(
    struct cli_store *store, struct det_machine *machine, const struct det_store_query *query,
    cli_store_id_fn *each, void *context)
{
    struct page *page = DET_NEW(store->cli->allocator, struct page);
    struct det_store_query next = *query;
    char after[DET_ID_MAX + 1];
    int code = CLI_OK, r = 0;

    if (!page)
        return cli_no_memory(store->cli);
    next.limit = PAGE_SIZE;
    /* Problems are reported when an instance is read. */
    next.ids_only = true;
    do {
        page->count = 0;
        r = store->ops->list(store->store, machine, &next, take_id, page);
        if (r < 0) {
            code = cli_report_store_error(store, r, NULL);
            break;
        }
        det_assert(page->count <= PAGE_SIZE);
        code = each_of_page(store, machine, page, each, context);
        if (page->count)
            memcpy(after, page->ids[page->count - 1], sizeof after);
        next.after = after;
    } while (code == CLI_OK && page->count == PAGE_SIZE);
    DET_DELETE(store->cli->allocator, page);
    return code;
}
