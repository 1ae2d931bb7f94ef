/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_cron.c - fuzz target: cron expressions. What is taken has a next time, which is the first of
 * its kind; what is refused has a sentence and a place in the text. */
#include <detent/driver/schedule.h>

#include "task/cron.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void check_times(const struct det_cron *cron)
{
    /* 1969, 1970, 2026 and a time in 2099. */
    static const det_time froms[] = { -1, 0, 1794729600 * DET_SECOND, 4100000000 * DET_SECOND + 7 };

    for (size_t i = 0; i < sizeof froms / sizeof froms[0]; i++) {
        det_time next = det_cron_next(cron, froms[i]);

        require(next > froms[i] && next < DET_NEVER && next % DET_SECOND == 0);
        require(det_cron_count(cron, froms[i], next) == 1);
        require(det_cron_count(cron, froms[i], next - 1) == 0);
        require(det_cron_nth(cron, froms[i], 2) == det_cron_next(cron, next));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct det_error error = { 0 };
    struct det_cron cron;

    require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    if (det_cron_parse(text, &cron, &error) == 0)
        check_times(&cron);
    else
        require(error.code == DET_ERR_MALFORMED && error.text[0] && error.offset <= strlen(text));
    free(text);
    return 0;
}
