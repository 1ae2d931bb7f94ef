/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* head.c - the file "head": the identity of a log, and the number of its first segment. */
#include <string.h>

#include "base/hash.h"
#include "journal/file/file_log.h"

#define MAGIC "detlog01"

enum {
    AT_VERSION = 8,
    AT_IDENTITY = 16,
    AT_FIRST = 32,
    AT_CREATED = 40,
    AT_BASE = 48,
    AT_BEFORE = 56,
    AT_SUM = 76,
};

static int decode_head(
    struct det_file_log *log, const char *data, size_t size, struct det_error *reterr)
{
    uint32_t version;

    if (size < 8 || memcmp(data, MAGIC, 8) != 0)
        return det_log_refuse(log, reterr, DET_ERR_FOREIGN, "head", "not the head of a journal");
    if (size != DET_LOG_HEAD || det_get32(data + AT_SUM) != det_crc32c(0, data, AT_SUM))
        return det_log_refuse(log, reterr, DET_ERR_CORRUPT, "head", "damaged");
    version = det_get32(data + AT_VERSION);
    if (version != DET_LOG_VERSION) {
        (void)det_log_refuse(
            log, reterr, DET_ERR_VERSION, "head",
            "format %u; this program knows format %d: use a newer detent", version,
            DET_LOG_VERSION);
        if (reterr) {
            reterr->expected = DET_LOG_VERSION;
            reterr->actual = version;
        }
        return DET_ERR_VERSION;
    }
    memcpy(log->head.identity, data + AT_IDENTITY, DET_IDENTITY_SIZE);
    log->head.first = det_get64(data + AT_FIRST);
    log->head.created = (det_time)det_get64(data + AT_CREATED);
    log->head.first_base = det_get64(data + AT_BASE);
    log->head.first_before = det_get64(data + AT_BEFORE);
    if (log->head.first == 0 || log->head.first_base == 0)
        return det_log_refuse(log, reterr, DET_ERR_CORRUPT, "head", "damaged");
    return 0;
}

int det_log_head_load(struct det_file_log *log, struct det_error *reterr)
{
    char path[DET_PATH_MAX], data[DET_LOG_HEAD + 1];
    struct det_file *file;
    int64_t size;
    int r;

    r = det_log_path(log, "head", path);
    if (r == 0)
        r = det_file_open(log->world, path, DET_FILE_READ | DET_FILE_NO_LINK, &file);
    if (r < 0)
        return det_log_refuse(log, reterr, r, "head", "%s", det_error_text(r));
    size = det_file_read(log->world, file, 0, data, sizeof data);
    det_file_close(log->world, file);
    if (size < 0)
        return det_log_refuse(log, reterr, (int)size, "head", "%s", det_error_text((int)size));
    r = decode_head(log, data, (size_t)size, reterr);
    if (r == 0)
        log->seed = det_crc32c(0, log->head.identity, DET_IDENTITY_SIZE);
    return r;
}

int det_log_head_store(const struct det_file_log *log, const struct det_log_head *head)
{
    char path[DET_PATH_MAX], data[DET_LOG_HEAD] = { 0 };
    int r;

    memcpy(data, MAGIC, 8);
    det_put32(data + AT_VERSION, DET_LOG_VERSION);
    memcpy(data + AT_IDENTITY, head->identity, DET_IDENTITY_SIZE);
    det_put64(data + AT_FIRST, head->first);
    det_put64(data + AT_CREATED, (uint64_t)head->created);
    det_put64(data + AT_BASE, head->first_base);
    det_put64(data + AT_BEFORE, head->first_before);
    det_put32(data + AT_SUM, det_crc32c(0, data, AT_SUM));
    r = det_log_path(log, "head", path);
    return r < 0 ? r : det_file_replace(log->world, path, data, sizeof data);
}

void det_log_head_create(struct det_file_log *log)
{
    log->head = (struct det_log_head){
        .first = 1,
        .first_base = 1,
        .created = det_world_now(log->world, DET_CLOCK_WALL),
    };
    det_world_random(log->world, log->head.identity, DET_IDENTITY_SIZE);
    log->seed = det_crc32c(0, log->head.identity, DET_IDENTITY_SIZE);
}
