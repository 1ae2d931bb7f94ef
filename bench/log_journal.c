/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_journal.c - journals with rows of 256 bytes, in the folder of this run. */
#include "log_journal.h"

#include <stdio.h>
#include <string.h>

#include "log_limit.h"

int log_journal_open(
    const struct det_journal_options *options, char *url, struct det_journal **ret,
    struct det_error *error)
{
    static unsigned count;
    char name[32], path[BENCH_PATH_MAX], own[LOG_URL_MAX];
    int r;

    if (options->durability == DET_JOURNAL_MEMORY)
        return det_journal_open("memory:", options, ret, error);
    (void)snprintf(name, sizeof name, "journal-%u", ++count);
    r = bench_folder_make(name, path);
    if (r < 0)
        return det_error_set(error, r, "the folder cannot be created");
    if (!url)
        url = own;
    (void)snprintf(url, LOG_URL_MAX, "file:%s", path);
    return det_journal_open(url, options, ret, error);
}

static int find_streams(
    struct det_journal *journal, unsigned count, uint16_t *ret, struct det_error *error)
{
    int r = 0;

    for (unsigned i = 0; i < count && r == 0; i++) {
        char name[24];

        (void)snprintf(name, sizeof name, "stream_%u", i);
        r = det_journal_stream(journal, name, &ret[i], error);
    }
    return r;
}

int log_journal_append(
    struct det_journal *journal, const struct log_append *how, uint64_t count,
    struct det_error *error)
{
    struct det_journal_row rows[LOG_GROUP_MAX];
    uint16_t streams[LOG_GROUP_MAX] = { 0 };
    char data[LOG_ROW_SIZE] = "x";
    uint64_t begin, at, turn = 0;
    int r;

    r = find_streams(journal, how->streams, streams, error);
    if (r < 0)
        return r;
    memset(rows, 0, sizeof rows);
    for (unsigned i = 0; i < how->group; i++) {
        rows[i].data = data;
        rows[i].size = sizeof data;
    }
    for (begin = at = det_journal_end(journal); at - begin < count && r == 0; turn++) {
        for (unsigned i = 0; i < how->group && how->streams > 0; i++)
            rows[i].stream = streams[turn % how->streams];
        r = det_journal_append(journal, rows, how->group, &at, error);
        if (r == 0 && how->in_flight > 0 && at - begin >= how->in_flight)
            r = det_journal_wait(journal, at - how->in_flight + 1, DET_NEVER);
    }
    return r < 0 ? r : det_journal_wait(journal, at, DET_NEVER);
}

void log_journal_remove(const char *url)
{
    if (url[0])
        bench_folder_remove(url + strlen("file:"));
}

int log_journal_fail(struct bench_lap *lap, int code, const struct det_error *error)
{
    return bench_lap_fail(
        lap, code, "%.150s", error->code < 0 ? error->text : det_error_text(code));
}
