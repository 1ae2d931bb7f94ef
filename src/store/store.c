/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store.c - opens a store by its URL: the part before the colon chooses the driver. */
#include <detent/tool/store.h>

#include "store/store.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/reserved.h"
#include "os/os.h"

#define KINDS_MAX 96

static const struct det_store_driver *const drivers[] = {
#define DET_STORE_DRIVER(scheme) &det_store_driver_##scheme,
#include "store/drivers.def"
#undef DET_STORE_DRIVER
};

const struct det_store_driver *det_store_driver_at(size_t index)
{
    return index < sizeof drivers / sizeof drivers[0] ? drivers[index] : NULL;
}

bool det_store_id_is_valid(const char *id)
{
    size_t length =
        strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-");

    return length > 0 && length <= DET_ID_MAX && !id[length];
}

/* "memory:, sqlite:, ...", as far as the buffer permits. */
static const char *list_kinds(char *target, size_t capacity)
{
    size_t length = 0;

    target[0] = 0;
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0] && length < capacity; i++)
        length += (size_t)snprintf(
            target + length, capacity - length, "%s%s:", i ? ", " : "", drivers[i]->scheme);
    return target;
}

int det_store_driver_check(const struct det_store_driver *driver, struct det_error *reterr)
{
    if (driver->version == DET_STORE_DRIVER_VERSION)
        return 0;
    return det_error_set(
        reterr, DET_ERR_VERSION,
        "the driver of '%s:' stores was built for version %u of detent/driver/store.h, not for "
        "version %u; build it again",
        driver->scheme, driver->version, (unsigned)DET_STORE_DRIVER_VERSION);
}

static const struct det_store_driver *find_driver(const char *scheme, size_t length)
{
    const struct det_store_driver *driver;

    for (size_t i = 0; (driver = det_store_driver_at(i)); i++) {
        if (strlen(driver->scheme) == length && memcmp(driver->scheme, scheme, length) == 0)
            return driver;
    }
    return NULL;
}

/* The driver of a URL, and the rest after its colon. */
static int split_url(
    const char *url, const struct det_store_driver **ret, const char **ret_rest,
    struct det_error *reterr)
{
    const char *colon = url ? strchr(url, ':') : NULL;
    char kinds[KINDS_MAX];

    if (!colon) {
        (void)det_error_set(
            reterr, DET_ERR_INVALID,
            "\"%s\" is not the URL of a store; use for example \"sqlite:orders.db\"",
            url ? url : "");
        return DET_ERR_INVALID;
    }
    *ret = find_driver(url, (size_t)(colon - url));
    if (!*ret) {
        (void)det_error_set(
            reterr, DET_ERR_UNSUPPORTED, "unknown kind of store \"%.*s\"; use one of %s",
            (int)(colon - url), url, list_kinds(kinds, sizeof kinds));
        return DET_ERR_UNSUPPORTED;
    }
    *ret_rest = colon + 1;
    return 0;
}

int det_store_check_url(const char *url, struct det_error *reterr)
{
    const struct det_store_driver *driver;
    const char *rest;
    int r;

    r = split_url(url, &driver, &rest, reterr);
    return r < 0 || !driver->check ? r : driver->check(rest, reterr);
}

int det_store_open_with(
    const char *url, const struct det_store_options *options, struct det_store **ret,
    struct det_error *reterr)
{
    struct det_store_options filled = options ? *options : (struct det_store_options){ 0 };
    const struct det_store_driver *driver;
    const char *rest;
    int r;

    r = split_url(url, &driver, &rest, reterr);
    if (r < 0)
        return r;
    r = det_reserved_check(filled.reserved, "a store", reterr);
    if (r == 0)
        r = det_store_driver_check(driver, reterr);
    if (r < 0)
        return r;
    filled.world = det_world_or_real(filled.world);
    det_assert(filled.world->ops->version == DET_WORLD_VERSION);
    return driver->open(rest, &filled, ret, reterr);
}

int det_store_open(const char *url, struct det_store **ret, struct det_error *reterr)
{
    return det_store_open_with(url, NULL, ret, reterr);
}

const char *det_store_identity(const struct det_store *store)
{
    return store->identity;
}

int det_store_log(
    struct det_store *store, const struct det_store_log_query *query,
    int (*visit)(void *context, const struct det_store_logged *row), void *context,
    uint64_t *ret_next)
{
    static const struct det_store_log_query all = { 0 };
    int r;

    det_assert(visit && ret_next);
    query = query ? query : &all;
    r = det_reserved_check(query->reserved, "a query of the log", NULL);
    if (r < 0)
        return r;
    return store->ops->log ? store->ops->log(store, query, visit, context, ret_next)
                           : DET_ERR_UNSUPPORTED;
}

int det_store_count(
    struct det_store *store, int (*visit)(void *context, const struct det_store_counted *row),
    void *context, uint64_t *ret_bytes)
{
    if (!store->ops->count)
        return DET_ERR_UNSUPPORTED;
    det_assert(visit && ret_bytes);
    return store->ops->count(store, visit, context, ret_bytes);
}

void det_store_cancel(struct det_store *store, det_time span)
{
    if (store->ops->cancel)
        store->ops->cancel(
            store, det_add_time(det_world_now(store->world, DET_CLOCK_MONOTONIC), span));
}

void det_store_close(struct det_store *store)
{
    if (!store)
        return;
    det_assert(!store->is_used);
    store->ops->close(store);
}
