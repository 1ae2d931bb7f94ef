/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* postgres_test.h - a server, and stores on it with the machine of pad_test.h, for the suites of
 * this driver. */
#ifndef DET_STORE_POSTGRES_POSTGRES_TEST_H
#define DET_STORE_POSTGRES_POSTGRES_TEST_H

#include "base/memory.h"
#include "lib/postgres.h"
#include "store/pad_test.h"
#include "store/postgres/postgres.h"

/* Of the program; its URLs have a schema each. */
static struct det_test_postgres *server;

static inline int open_server(void **state)
{
    (void)state;
    server = det_test_postgres_open();
    return 0;
}

static inline int close_server(void **state)
{
    (void)state;
    det_test_postgres_close(server);
    return 0;
}

static inline struct det_store *store_at(const char *url, const struct det_store_options *options)
{
    struct det_error error = { 0 };
    struct det_store *store = NULL;

    if (det_store_open_with(url, options, &store, &error) < 0)
        fail_msg("%s: %s", url, error.text);
    return store;
}

/* Runs statements on the store's tables; see det_postgres_qualify(). free() the first value. */
static inline char *sql(struct det_store *store, const char *text)
{
    char *qualified = det_postgres_qualify(postgres_store_of(store), text);
    char *value;

    assert_non_null(qualified);
    value = det_test_postgres_execute(server, qualified);
    det_free_string(store->allocator, qualified);
    return value;
}

/* Starts the instance of a pad, "p" or another one. */
static inline int start(struct pad *pad, const char *id)
{
    int r;

    pad->head = (struct det_store_head){ .visit = 1, .started_at = 100, .last_transition_at = 100 };
    begin(pad);
    pad->commit.id = id;
    pad->commit.is_new = true;
    pad->commit.data = &pad->data;
    r = commit(pad);
    if (r == 0)
        pad->instance = pad->commit.instance;
    return r;
}

/* A pad on a store of PostgreSQL, with its instance "p". */
static inline struct pad *desk_at(const char *url, const struct det_store_options *options)
{
    struct pad *pad = calloc(1, sizeof *pad);

    assert_non_null(pad);
    pad->machine = pad_machine(1);
    pad->store = store_at(url, options);
    assert_int_equal(pad->store->ops->serve(pad->store, pad->machine, NULL), 0);
    assert_int_equal(start(pad, "p"), 0);
    return pad;
}

static inline struct pad *desk_open(void)
{
    char *url = det_test_postgres_url(server, NULL);
    struct pad *pad = desk_at(url, NULL);

    free(url);
    return pad;
}

static inline void desk_close(struct pad *pad)
{
    pad->store->ops->release(pad->store, pad->instance);
    pad_close(pad);
}

/* The head and all rows; the handle is released, so that the pad's own stays the one. */
static inline int look_up(struct pad *pad, const char *id, struct found *found)
{
    const struct det_store_rows rows = { found, found_timer, found_effect, found_deferred };
    int r;

    memset(found, 0, sizeof *found);
    found->loaded.data = &found->data;
    r = pad->store->ops->load(pad->store, pad->machine, id, &rows, &found->loaded);
    if (r == 0)
        pad->store->ops->release(pad->store, found->loaded.instance);
    return r;
}

/* Sends an event with changes of timers. */
static inline int with_timers(
    struct pad *pad, const struct det_store_timer_change *timers, size_t count)
{
    begin(pad);
    add_event(pad, BARE);
    pad->commit.timers = timers;
    pad->commit.timer_count = count;
    return commit(pad);
}

static inline struct det_store_timer_change timer_change(
    enum det_store_change_kind kind, uint16_t timer, det_time due, const void *value)
{
    return (struct det_store_timer_change){
        kind, { .timer = timer, .event = SMALL, .visit = 1, .due = due, .value = value }
    };
}

/* Another opening of the same store, which is another node, with its own handle of "p". */
static inline struct pad *neighbour(struct pad *pad, const char *url)
{
    struct pad *other = calloc(1, sizeof *other);
    struct found found;
    const struct det_store_rows rows = { &found, found_timer, found_effect, found_deferred };

    assert_non_null(other);
    other->machine = pad_machine(1);
    other->store = store_at(url, NULL);
    (void)pad;
    assert_int_equal(other->store->ops->serve(other->store, other->machine, NULL), 0);
    memset(&found, 0, sizeof found);
    found.loaded.data = &found.data;
    assert_int_equal(
        other->store->ops->load(other->store, other->machine, "p", &rows, &found.loaded), 0);
    other->instance = found.loaded.instance;
    other->head = found.loaded.head;
    return other;
}

#endif
