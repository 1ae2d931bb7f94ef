/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* export_jobs.c - the jobs and schedules of a store as lines of its export, without claims. */
#include "base/assert.h"
#include "transfer/export.h"

#include "base/hex.h"
#include "base/memory.h"
#include "store/jobs.h"

/* Bodies may be large. */
#define PAGE_SIZE 32

struct page {
    struct exporter *exporter;
    uint64_t last;
    size_t count;
    int code; /* an exit code */
};

static int write_body(struct exporter *exporter, const struct det_job_row *row)
{
    const struct det_allocator *allocator = exporter->store->cli->allocator;
    size_t size = 2 * row->body_size;
    char *text = det_alloc(allocator, size + 1);

    if (!text)
        return DET_ERR_NO_MEMORY;
    det_hex_write(row->body, row->body_size, text);
    det_json_bytes(&exporter->json, "body", text, size);
    det_free(allocator, text, size + 1);
    return 0;
}

static void write_time(struct det_json_writer *json, const char *key, det_time at)
{
    if (at)
        det_json_time(json, key, at);
}

static int write_job(void *context, const struct det_job_row *row)
{
    struct page *page = context;
    struct exporter *exporter = page->exporter;
    struct det_json_writer *json = &exporter->json;
    bool runs = row->state == DET_JOB_RUNNING;

    if (row->is_damaged)
        return DET_ERR_CORRUPT;
    det_assert(page->count < PAGE_SIZE);
    export_begin(exporter, "job");
    det_json_text(json, "queue", row->queue);
    det_json_text(json, "id", row->id);
    det_json_text(json, "task", row->task);
    if (write_body(exporter, row) < 0)
        return DET_ERR_NO_MEMORY;
    det_json_text(json, "state", det_jobs_state_name(runs ? DET_JOB_QUEUED : row->state));
    write_time(json, "due_at", runs ? 0 : row->due_at);
    det_json_number(json, "attempts", row->attempts);
    det_json_number(json, "lost", row->lost);
    det_json_time(json, "submitted_at", row->submitted_at);
    write_time(json, "ended_at", row->ended_at);
    det_json_text(json, "reason", row->reason[0] ? row->reason : NULL);
    page->last = row->key;
    page->count++;
    exporter->jobs++;
    page->code = export_end(exporter);
    return page->code == CLI_OK ? 0 : 1;
}

static int write_schedule(void *context, const char *name, const struct det_job_schedule *schedule)
{
    struct page *page = context;
    struct exporter *exporter = page->exporter;

    export_begin(exporter, "schedule");
    det_json_text(&exporter->json, "name", name);
    det_json_time(&exporter->json, "next_at", schedule->next_at);
    write_time(&exporter->json, "last_at", schedule->last_at);
    exporter->schedules++;
    page->code = export_end(exporter);
    return page->code == CLI_OK ? 0 : 1;
}

int export_jobs(struct exporter *exporter)
{
    struct det_store *store = exporter->store->store;
    const struct det_job_ops *ops = exporter->store->ops->jobs;
    struct page page = { .exporter = exporter };
    int r = 0;

    if (!ops)
        return CLI_OK;
    do {
        const struct det_job_query query = { .after = page.last, .limit = PAGE_SIZE };

        if (cli_is_stopped(exporter->store->cli))
            return CLI_INTERRUPTED;
        page.count = 0;
        r = ops->list(store, &query, write_job, &page);
    } while (r == 0 && page.count == PAGE_SIZE);
    if (r == 0)
        r = ops->schedules(store, write_schedule, &page);
    return r < 0 ? cli_report_store_error(exporter->store, r, NULL) : page.code;
}
