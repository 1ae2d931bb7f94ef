/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_log.c - opens the journals of a flow's runs for reading. */
#include "inspect/flow_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "inspect/flow_rows.h"
#include "os/os.h"

#define LATEST        "latest"
#define LATEST_DIGITS 6

int flow_log_last(const char *folder, uint64_t *ret, struct det_error *reterr)
{
    char path[DET_PATH_MAX], text[LATEST_DIGITS + 2];
    uint64_t run = 0;
    ssize_t size;
    int descriptor;

    if (snprintf(path, sizeof path, "%s/" LATEST, folder) >= (int)sizeof path)
        return det_error_set(reterr, DET_ERR_LIMIT, "the path of the flow is too long");
    descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0 && (errno == ENOENT || errno == ENOTDIR))
        return det_error_set(reterr, DET_ERR_NOT_FOUND, "%s: the flow has not run", folder);
    if (descriptor < 0)
        return det_error_set(
            reterr, DET_ERR_IO, "%s: cannot be read: %s", path,
            strerror(errno)); /* NOLINT(concurrency-mt-unsafe) */
    size = read(descriptor, text, sizeof text);
    close(descriptor);
    if (size != LATEST_DIGITS + 1 || text[LATEST_DIGITS] != '\n' ||
        det_parse_u64(det_view_of(text, LATEST_DIGITS), &run) < 0 || run == 0)
        return det_error_set(reterr, DET_ERR_CORRUPT, "%s: is not the number of a run", path);
    *ret = run;
    return 0;
}

int flow_log_open(
    const char *folder, uint64_t run, const struct det_allocator *allocator,
    struct det_journal **ret, struct det_error *reterr)
{
    const struct det_journal_options options = { .allocator = allocator,
                                                 .is_read_only = true,
                                                 .must_exist = true };
    char url[DET_PATH_MAX + 32];

    (void)snprintf(
        url, sizeof url, "file:%s/%0*llu", folder, LATEST_DIGITS, (unsigned long long)run);
    return det_journal_open(url, &options, ret, reterr);
}

static bool is_failure(struct det_journal *journal)
{
    struct det_journal_reader_options options = { .one_stream = true };
    char stage[DET_JOURNAL_NAME_MAX + 1], reason[DET_ERROR_TEXT_MAX];
    int stream = flow_find_stream(journal, "system");
    struct det_journal_reader *reader;
    struct det_flow_fact fact = { 0 };
    struct det_journal_row row;
    int r;

    if (stream < 0)
        return false;
    options.stream = (uint16_t)stream;
    r = det_journal_last(journal, options.stream, NULL, &options.from);
    if (r < 0 || options.from < det_journal_begin(journal) ||
        det_journal_reader_open(journal, &options, &reader, NULL) < 0)
        return false;
    r = det_journal_reader_next(reader, &row, NULL);
    if (r > 0)
        r = det_flow_fact_read(&row, stage, reason, &fact, NULL);
    det_journal_reader_close(reader);
    return r == 0 && (fact.kind == DET_FLOW_FACT_FAILED || fact.kind == DET_FLOW_FACT_ABORTED);
}

bool flow_log_has_failed(const char *folder, const struct det_allocator *allocator)
{
    struct det_journal *journal;
    bool has_failed;
    uint64_t run;

    if (flow_log_last(folder, &run, NULL) < 0 ||
        flow_log_open(folder, run, allocator, &journal, NULL) < 0)
        return false;
    has_failed = is_failure(journal);
    det_journal_close(journal);
    return has_failed;
}
