/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* drivers.c - the kinds of stores that the suite runs over. */
#include "conform/conform.h"

static void memory_begin(char url[URL_MAX])
{
    snprintf(url, URL_MAX, "memory:");
}

static void memory_end(void)
{
}

static const struct driver drivers[] = {
    { .scheme = "memory", .is_simulated = true, .begin = memory_begin, .end = memory_end },
};

const struct driver *driver_find(const char *scheme)
{
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++) {
        if (strcmp(drivers[i].scheme, scheme) == 0)
            return &drivers[i];
    }
    return NULL;
}
