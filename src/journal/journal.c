/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* journal.c - opening and closing a journal, and what it says about itself. */
#include "journal/journal_internal.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/reserved.h"

#define SEGMENT_DEFAULT ((uint64_t)64 << 20)
#define BUFFER_DEFAULT  ((uint32_t)4 << 20)

#define DET_JOURNAL_DRIVER(scheme) \
    extern const struct det_journal_driver det_journal_driver_##scheme;
#include "journal/drivers.def"
#undef DET_JOURNAL_DRIVER

static const struct det_journal_driver *const drivers[] = {
#define DET_JOURNAL_DRIVER(scheme) &det_journal_driver_##scheme,
#include "journal/drivers.def"
#undef DET_JOURNAL_DRIVER
};

static int split_url(
    const char *url, const struct det_journal_driver **ret, const char **ret_rest,
    struct det_error *reterr)
{
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++) {
        size_t size = strlen(drivers[i]->scheme);

        if (strncmp(url, drivers[i]->scheme, size) == 0 && url[size] == ':') {
            *ret = drivers[i];
            *ret_rest = url + size + 1;
            return 0;
        }
    }
    return det_error_set(
        reterr, DET_ERR_UNSUPPORTED,
        "'%.200s' is not the URL of a journal: write memory: or file:FOLDER", url);
}

static int fill_options(struct det_journal_options *options, struct det_error *reterr)
{
    int r;

    r = det_reserved_check(options->reserved, "a journal", reterr);
    if (r < 0)
        return r;
    options->world = det_world_or_real(options->world);
    det_assert(options->world->ops->version == DET_WORLD_VERSION);
    if (options->segment_size == 0)
        options->segment_size = SEGMENT_DEFAULT;
    if (options->buffer_size == 0)
        options->buffer_size = BUFFER_DEFAULT;
    if ((unsigned)options->durability > DET_JOURNAL_MEMORY || options->retain_age < 0)
        return det_error_set(reterr, DET_ERR_INVALID, "an option of the journal is not valid");
    if (options->segment_size < DET_JOURNAL_SEGMENT_MIN ||
        options->segment_size > DET_JOURNAL_SEGMENT_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID, "the segment size of a journal is 64 KiB to 1 TiB");
    if (options->buffer_size < DET_JOURNAL_BUFFER_MIN ||
        options->buffer_size > DET_JOURNAL_BUFFER_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID, "the buffer size of a journal is 4 KiB to 1 GiB");
    return 0;
}

/* What has no effect before close; the rest of the journal is set up afterwards. */
static int open_parts(struct det_journal *journal)
{
    int r;

    r = det_mutex_open(journal->world, &journal->mutex);
    if (r == 0)
        r = det_condition_open(journal->world, &journal->changed);
    if (r == 0)
        r = det_journal_streams_init(journal);
    return r;
}

static int open_log(
    struct det_journal *journal, const struct det_journal_driver *driver, const char *rest,
    struct det_error *reterr)
{
    struct det_journal_log_options options = {
        .journal = journal->options,
        .sink = { journal, det_journal_streams_found },
    };
    struct det_journal_found found = { 0 };
    int r;

    r = driver->open(rest, &options, &journal->log, &found, reterr);
    if (r < 0)
        return r;
    det_assert(journal->log->ops->version == DET_JOURNAL_DRIVER_VERSION);
    journal->seed = found.seed;
    journal->skew = found.skew;
    journal->written = found.end;
    journal->synced = found.synced;
    journal->counts.torn = found.torn;
    journal->counts.lost = found.lost;
    atomic_store(&journal->begin, found.begin);
    atomic_store(&journal->acknowledged, found.end);
    atomic_store(&journal->end, found.end);
    if (det_journal_is_immediate(journal))
        journal->options.durability = DET_JOURNAL_MEMORY;
    return 0;
}

static int open_threads(struct det_journal *journal, struct det_error *reterr)
{
    int r = 0;

    if (det_journal_is_immediate(journal) || journal->options.is_read_only)
        return 0;
    journal->threads = journal->options.threads;
    if (!journal->threads) {
        r = det_journal_threads_open(
            journal->world, journal->allocator, 1, &journal->threads, reterr);
        if (r < 0)
            return r;
        journal->has_own_threads = true;
    }
    r = det_journal_threads_start(journal->threads);
    return r < 0 ? det_error_set(reterr, r, "the thread of a journal: %s", det_error_text(r)) : 0;
}

static void free_journal(struct det_journal *journal)
{
    if (journal->has_own_threads)
        det_journal_threads_close(journal->threads);
    if (journal->log)
        journal->log->ops->close(journal->log);
    det_journal_buffers_deinit(journal);
    det_journal_streams_deinit(journal);
    det_condition_close(journal->world, journal->changed);
    det_mutex_close(journal->world, journal->mutex);
    DET_DELETE(journal->allocator, journal);
}

int det_journal_open(
    const char *url, const struct det_journal_options *options, struct det_journal **ret,
    struct det_error *reterr)
{
    struct det_journal_options filled = options ? *options : (struct det_journal_options){ 0 };
    const struct det_journal_driver *driver = NULL;
    struct det_journal *journal;
    const char *rest = NULL;
    int r;

    r = split_url(url, &driver, &rest, reterr);
    if (r == 0)
        r = fill_options(&filled, reterr);
    if (r < 0)
        return r;
    journal = DET_NEW(filled.allocator, struct det_journal);
    if (!journal)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a journal");
    journal->world = filled.world;
    journal->allocator = filled.allocator;
    journal->options = filled;
    det_list_init(&journal->watches);
    det_list_init(&journal->queued);
    r = open_parts(journal);
    if (r < 0)
        (void)det_error_set(reterr, r, "%.200s: %s", url, det_error_text(r));
    if (r == 0)
        r = open_log(journal, driver, rest, reterr);
    if (r == 0)
        r = open_threads(journal, reterr);
    if (r < 0) {
        free_journal(journal);
        return r;
    }
    *ret = journal;
    return 0;
}

void det_journal_close(struct det_journal *journal)
{
    if (!journal)
        return;
    det_assert(det_list_is_empty(&journal->watches) && journal->readers == 0);
    if (journal->threads) {
        det_journal_drain(journal);
        det_journal_threads_forget(journal->threads, journal);
    }
    if (journal->failure == 0 && journal->log->ops->finish)
        journal->log->ops->finish(journal->log);
    free_journal(journal);
}

uint64_t det_journal_end(const struct det_journal *journal)
{
    return atomic_load_explicit(&journal->end, memory_order_acquire);
}

uint64_t det_journal_acknowledged(const struct det_journal *journal)
{
    return atomic_load_explicit(&journal->acknowledged, memory_order_acquire);
}

uint64_t det_journal_begin(const struct det_journal *journal)
{
    return atomic_load_explicit(&journal->begin, memory_order_acquire);
}

int det_journal_failure(const struct det_journal *journal, struct det_error *reterr)
{
    int r;

    det_journal_lock(journal);
    r = det_journal_failure_locked(journal, reterr);
    det_journal_unlock(journal);
    return r;
}

int det_journal_release(struct det_journal *journal, uint64_t position)
{
    int r = 0;

    det_journal_lock(journal);
    if (journal->options.is_read_only)
        r = DET_ERR_READ_ONLY;
    else if (position > atomic_load(&journal->end) + 1)
        r = DET_ERR_RANGE;
    else if (position > journal->released)
        det_journal_set_released(journal, position);
    det_journal_unlock(journal);
    return r;
}

struct det_journal_counts det_journal_counts(const struct det_journal *journal)
{
    struct det_journal_counts counts;
    struct det_journal_extent extent = journal->log->ops->extent(journal->log);

    det_journal_lock(journal);
    counts = journal->counts;
    det_journal_unlock(journal);
    counts.segments = extent.segments;
    counts.segment_bytes = extent.bytes;
    counts.syncs = journal->log->ops->syncs ? journal->log->ops->syncs(journal->log) : 0;
    return counts;
}
