/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* isolated_module.c - worker kinds of a module in separate processes. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "config/isolated_worker.h"
#include "config/module_internal.h"

/* The kinds of one module. */
struct isolated_kinds {
    struct isolated_kinds *next;
    size_t count;
    struct kind_proxy **proxies;
    const struct det_worker_kind **kinds; /* NULL at the end */
};

static void close_isolated(struct modules *modules, struct isolated_kinds *isolated)
{
    for (size_t i = 0; isolated->proxies && i < isolated->count; i++)
        kind_proxy_close(isolated->proxies[i]);
    if (isolated->proxies)
        DET_DELETE_ARRAY(modules->allocator, isolated->proxies, isolated->count);
    if (isolated->kinds)
        DET_DELETE_ARRAY(modules->allocator, isolated->kinds, isolated->count + 1);
    DET_DELETE(modules->allocator, isolated);
}

void module_close_isolated(struct modules *modules)
{
    struct isolated_kinds *isolated;

    while ((isolated = modules->isolated)) {
        modules->isolated = isolated->next;
        close_isolated(modules, isolated);
    }
}

static int fill_isolated(
    struct modules *modules, struct isolated_kinds *isolated,
    const struct det_worker_kind *const *kinds, const char *folder)
{
    int library = module_copy_of(modules, kinds), r = 0;

    det_assert(isolated->count == 0 && kinds[0]);
    while (kinds[isolated->count])
        isolated->count++;
    isolated->proxies = DET_NEW_ARRAY(modules->allocator, isolated->count, struct kind_proxy *);
    isolated->kinds =
        DET_NEW_ARRAY(modules->allocator, isolated->count + 1, const struct det_worker_kind *);
    if (!isolated->proxies || !isolated->kinds)
        return DET_ERR_NO_MEMORY;
    for (size_t i = 0; r == 0 && i < isolated->count; i++) {
        r = kind_proxy_open(modules->allocator, kinds[i], library, folder, &isolated->proxies[i]);
        if (r == 0)
            isolated->kinds[i] = kind_proxy_kind(isolated->proxies[i]);
    }
    det_assert(!isolated->kinds[isolated->count]);
    return r;
}

int modules_load_isolated(
    struct modules *modules, const char *path, const char *folder,
    const struct det_worker_kind *const **ret, struct det_error *reterr)
{
    const struct det_worker_kind *const *kinds = NULL;
    struct isolated_kinds *isolated;
    int r;

    r = modules_load_kinds(modules, path, NULL, &kinds, reterr);
    if (r < 0)
        return r;
    isolated = DET_NEW(modules->allocator, struct isolated_kinds);
    r = isolated ? fill_isolated(modules, isolated, kinds, folder) : DET_ERR_NO_MEMORY;
    if (r < 0) {
        if (isolated)
            close_isolated(modules, isolated);
        return det_error_set(reterr, r, "out of memory");
    }
    isolated->next = modules->isolated;
    modules->isolated = isolated;
    *ret = isolated->kinds;
    return 0;
}

const struct kind_proxy *modules_proxy(const void *user, const char *kind)
{
    const struct modules *modules = user;

    for (const struct isolated_kinds *one = modules->isolated; one; one = one->next)
        for (size_t i = 0; i < one->count; i++)
            if (strcmp(one->kinds[i]->name, kind) == 0)
                return one->proxies[i];
    return NULL;
}
