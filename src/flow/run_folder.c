/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* run_folder.c - the runs of a flow: numbered folders, each with a journal, and the file `latest`
 * with the number of the last one (docs/formats/flow-log.md). */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "flow/flow_internal.h"

#define SCHEME     "file:"
#define RUN_MAX    999999
#define LATEST_MAX 32
/* Of a journal in memory: it would grow for ever. One in files is not released then. */
#define MEMORY_KEPT ((uint64_t)64 << 20)

static int open_journal(
    const struct det_pipeline *pipeline, const char *url, struct det_journal **ret,
    struct det_error *reterr)
{
    const struct det_pipeline_options *options = &pipeline->options;
    bool keeps_all = options->retain_size == 0 && options->retain_age == 0;
    struct det_journal_options journal_options = {
        .world = pipeline->world,
        .allocator = pipeline->allocator,
        .durability = options->durability,
        .retain_size = !keeps_all         ? options->retain_size
                       : pipeline->folder ? 0
                                          : MEMORY_KEPT,
        .retain_age = options->retain_age,
        .threads = options->journal_threads,
    };
    int r;

    r = det_journal_open(url, &journal_options, ret, reterr);
    if (r < 0)
        return r;
    /* Until a checkpoint releases more, nothing is dropped: size and age alone would not know what
     * the next open reads. */
    r = det_journal_release(*ret, det_journal_begin(*ret));
    det_assert(r == 0);
    return 0;
}

static int open_number(
    const struct det_pipeline *pipeline, uint64_t number, struct det_journal **ret,
    struct det_error *reterr)
{
    char url[DET_PATH_MAX + 16];
    int r;

    (void)snprintf(
        url, sizeof url, SCHEME "%s/%06llu", pipeline->folder, (unsigned long long)number);
    r = pipeline->world->ops->folder_make(pipeline->world, url + strlen(SCHEME));
    if (r < 0 && r != DET_ERR_EXISTS)
        return det_error_set(
            reterr, r, "cannot make the folder %s: %s", url + strlen(SCHEME), det_error_text(r));
    return open_journal(pipeline, url, ret, reterr);
}

/* 0: there is no run yet. */
static int read_latest(const struct det_pipeline *pipeline, uint64_t *ret, struct det_error *reterr)
{
    char path[DET_PATH_MAX + 16], *text;
    size_t size, length;
    int r;

    (void)snprintf(path, sizeof path, "%s/latest", pipeline->folder);
    r = det_file_load(pipeline->world, pipeline->allocator, path, LATEST_MAX, &text, &size);
    if (r == DET_ERR_NOT_FOUND) {
        *ret = 0;
        return 0;
    }
    if (r < 0)
        return det_error_set(reterr, r, "cannot read %s: %s", path, det_error_text(r));
    length = size > 0 && text[size - 1] == '\n' ? size - 1 : size;
    r = det_parse_u64(det_view_of(text, length), ret);
    if (r == 0 && (*ret == 0 || *ret > RUN_MAX))
        r = DET_ERR_MALFORMED;
    det_free(pipeline->allocator, text, size + 1);
    if (r < 0)
        return det_error_set(
            reterr, DET_ERR_MALFORMED,
            "%s is not the number of a run; remove it to begin a new one", path);
    return 0;
}

/* True if the last fact of the log is that the run has completed. That fact comes after the last
 * checkpoint, so it is kept; an older one may have been dropped. */
static int is_finished(struct det_journal *journal, bool *ret, struct det_error *reterr)
{
    struct det_journal_reader_options options = { .one_stream = true, .unacknowledged = true };
    DET_SCOPED(journal_reader) reader = NULL;
    struct det_journal_row row;
    int r;

    *ret = false;
    r = det_journal_stream(journal, "system", &options.stream, reterr);
    if (r < 0)
        return r;
    r = det_journal_last(journal, options.stream, NULL, &options.from);
    if (r < 0 || options.from < det_journal_begin(journal))
        return 0;
    r = det_journal_reader_open(journal, &options, &reader, reterr);
    if (r == 0)
        r = det_journal_reader_next(reader, &row, reterr);
    if (r > 0 && row.kind == DET_ROW_FACT && row.size > 0)
        *ret = *(const uint8_t *)row.data == DET_FLOW_FACT_COMPLETED;
    return r < 0 ? r : 0;
}

static int write_latest(const struct det_pipeline *pipeline, struct det_error *reterr)
{
    char path[DET_PATH_MAX + 16], text[LATEST_MAX];
    int r;

    (void)snprintf(path, sizeof path, "%s/latest", pipeline->folder);
    (void)snprintf(text, sizeof text, "%06llu\n", (unsigned long long)pipeline->run_number);
    r = det_file_replace(pipeline->world, path, text, strlen(text));
    return r < 0 ? det_error_set(reterr, r, "cannot write %s: %s", path, det_error_text(r)) : 0;
}

/* A new run does not begin beside one that another process writes. Damage does not matter. */
static int check_idle(
    const struct det_pipeline *pipeline, uint64_t number, struct det_error *reterr)
{
    struct det_journal *journal;
    int r;

    r = open_number(pipeline, number, &journal, reterr);
    if (r == 0)
        det_journal_close(journal);
    return r == DET_ERR_BUSY ? r : 0;
}

/* The journal of the last run, if it is to be continued; else none. */
static int open_last(struct det_pipeline *pipeline, uint64_t number, struct det_error *reterr)
{
    struct det_journal *journal;
    bool finished = true;
    int r;

    if (number == 0)
        return 0;
    if (pipeline->options.begin_new_run)
        return check_idle(pipeline, number, reterr);
    r = open_number(pipeline, number, &journal, reterr);
    if (r < 0)
        return r;
    r = is_finished(journal, &finished, reterr);
    if (r < 0 || finished) {
        det_journal_close(journal);
        return r;
    }
    pipeline->journal = journal;
    pipeline->run_number = number;
    /* It may be in the page cache only: an open that wrote it and could not sync it has failed. */
    return write_latest(pipeline, reterr);
}

/* A folder with rows that `latest` does not name was left by a crash. */
static int open_next(struct det_pipeline *pipeline, uint64_t number, struct det_error *reterr)
{
    while (++number <= RUN_MAX) {
        struct det_journal *journal;
        int r;

        r = open_number(pipeline, number, &journal, reterr);
        if (r < 0)
            return r;
        if (det_journal_end(journal) == 0) {
            pipeline->journal = journal;
            pipeline->run_number = number;
            return 0;
        }
        det_journal_close(journal);
    }
    return det_error_set(
        reterr, DET_ERR_LIMIT, "%s has %d runs; move it away", pipeline->folder, RUN_MAX);
}

/* The folder, durable in the one above before the first run. */
static int make_folder(const struct det_pipeline *pipeline)
{
    char above[DET_PATH_MAX];
    int r;

    r = pipeline->world->ops->folder_make(pipeline->world, pipeline->folder);
    if (r < 0 && r != DET_ERR_EXISTS)
        return r;
    r = det_file_folder(pipeline->folder, above);
    return r < 0 ? r : det_folder_sync(pipeline->world, above);
}

static int open_in_folder(struct det_pipeline *pipeline, struct det_error *reterr)
{
    uint64_t number;
    int r;

    r = read_latest(pipeline, &number, reterr);
    if (r < 0)
        return r;
    r = number == 0 ? make_folder(pipeline) : 0;
    if (r < 0)
        return det_error_set(
            reterr, r, "cannot make the folder %s: %s", pipeline->folder, det_error_text(r));
    r = open_last(pipeline, number, reterr);
    if (r == 0 && !pipeline->journal)
        r = open_next(pipeline, number, reterr);
    return r;
}

/* What identifies the run: of a new one random, of another one in its last checkpoint. */
static int identify_run(struct det_pipeline *pipeline, struct det_error *reterr)
{
    struct det_checkpoint_end end;
    uint64_t position;
    int r;

    pipeline->fingerprint = det_flow_fingerprint(pipeline->flow);
    r = det_journal_stream(pipeline->journal, "checkpoints", &pipeline->checkpoints.stream, reterr);
    if (r < 0)
        return r;
    r = det_checkpoint_find(
        pipeline->journal, pipeline->checkpoints.stream, &end, &position, reterr);
    if (r == DET_ERR_NOT_FOUND) {
        do
            pipeline->run = det_world_random_u64(pipeline->world);
        while (pipeline->run == 0);
        return 0;
    }
    if (r < 0)
        return r;
    if (end.fingerprint != pipeline->fingerprint)
        return det_error_set(
            reterr, DET_ERR_CONFLICT,
            "run %llu of flow %s was written by another definition of its stages, records or "
            "edges; finish it with that one, or begin a new run",
            (unsigned long long)pipeline->run_number, pipeline->flow->name);
    pipeline->run = end.run;
    pipeline->is_resumed = true;
    return 0;
}

int det_run_open(struct det_pipeline *pipeline, struct det_error *reterr)
{
    const char *url = pipeline->options.journal ? pipeline->options.journal : "memory:";
    int r;

    if (strncmp(url, SCHEME, strlen(SCHEME)) != 0) {
        r = open_journal(pipeline, url, &pipeline->journal, reterr);
    } else {
        if (strlen(url) - strlen(SCHEME) + 16 > DET_PATH_MAX)
            return det_error_set(reterr, DET_ERR_INVALID, "the path of the journal is too long");
        pipeline->folder = det_string_copy(pipeline->allocator, url + strlen(SCHEME));
        if (!pipeline->folder)
            return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a flow");
        r = open_in_folder(pipeline, reterr);
    }
    return r < 0 ? r : identify_run(pipeline, reterr);
}

int det_run_begin(struct det_pipeline *pipeline, struct det_error *reterr)
{
    int r;

    r = det_checkpoint_append(pipeline);
    if (r == 0)
        r = det_journal_wait(pipeline->journal, pipeline->checkpoints.position, DET_NEVER);
    if (r < 0)
        return det_error_set(
            reterr, r, "cannot begin a run of flow %s: %s", pipeline->flow->name,
            det_error_text(r));
    return pipeline->folder ? write_latest(pipeline, reterr) : 0;
}
