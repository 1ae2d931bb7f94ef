/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* box.c - a new store for each test, in the world that its driver needs, checked at the end. */
#include "conform/conform.h"

#include <detent/sim.h>

const struct driver *box_driver;

int box_open_with(
    struct box *box, struct det_store_options options, struct det_store **ret,
    struct det_error *reterr)
{
    if (box->driver->is_stand_in) {
        *ret = box->driver->open(box);
        return 0;
    }
    options.world = box->world;
    options.events_kept = options.event_ids_kept = 65536;
    options.connections = box->connections;
    return det_store_open_with(box->url, &options, ret, reterr);
}

/* A node of a shared store holds a lease for its life, so that its rows are not adopted. */
static struct det_store_lease change_node(struct det_store *store, enum det_store_lease_verb verb)
{
    struct det_store_lease lease;
    char name[64];

    snprintf(name, sizeof name, "node/%s", store->owner);
    assert_int_equal(
        store->ops->lease(
            store, &(struct det_store_lease_change){ verb, name, store->owner, 1, 9999 * DET_DAY },
            &lease),
        0);
    return lease;
}

struct det_store *box_open_store(struct box *box)
{
    struct det_error error = { 0 };
    struct det_store *store = NULL;

    if (box_open_with(box, (struct det_store_options){ 0 }, &store, &error) < 0)
        fail_msg("%s cannot be opened: %s", box->url, error.text);
    if (store->ops->serve(store, box->machine, &error) < 0)
        fail_msg("the machine is not served: %s", error.text);
    if (box->driver->is_shared)
        change_node(store, DET_LEASE_ACQUIRE);
    return store;
}

void box_close_store(struct box *box, struct det_store *store)
{
    for (struct subject *subject = box->subjects; subject; subject = subject->next) {
        if (subject->store != store || !subject->instance)
            continue;
        store->ops->release(store, subject->instance);
        subject->instance = NULL;
    }
    if (box->driver->is_shared && change_node(store, DET_LEASE_READ).owner[0])
        change_node(store, DET_LEASE_RELEASE);
    det_store_close(store);
}

void box_damage(struct box *box, const char *sql)
{
    if (box->store)
        box_close_store(box, box->store);
    box->store = NULL;
    box->driver->execute(box, sql);
    box->is_damaged = true;
}

bool box_frees_locks(const struct box *box)
{
    return box->driver->is_kept && !box->driver->is_shared;
}

void box_reopen(struct box *box)
{
    if (!box->driver->is_kept)
        return;
    box_close_store(box, box->store);
    box->store = NULL;
    box->store = box_open_store(box);
}

det_time box_now(struct box *box)
{
    return box->store->ops->now(box->store);
}

void box_wait(struct box *box, det_time until)
{
    if (box->sim && box_now(box) <= until)
        assert_int_equal(det_sim_advance(box->sim, until + 1 - box_now(box)), 0);
    while (box_now(box) <= until)
        continue;
}

int box_setup(void **state)
{
    struct box *box = calloc(1, sizeof *box);

    assert_non_null(box);
    *state = box;
    box->driver = box_driver;
    box->machine = &parcel_machine;
    if (box->driver->is_simulated)
        assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = 7 }, &box->sim, NULL), 0);
    box->world = box->sim ? det_sim_world(box->sim) : det_world_real();
    box->driver->begin(box);
    box->store = box_open_store(box);
    return 0;
}

static int print_finding(void *context, const struct det_store_finding *row)
{
    unsigned *count = context;

    print_error(
        "check: %s %s %u: %s\n", row->machine ? row->machine : "", row->id ? row->id : "",
        (unsigned)row->sequence, row->text);
    ++*count;
    return 0;
}

static void box_check(struct box *box)
{
    unsigned count = 0;

    if (!box->store->ops->check || box->is_damaged)
        return;
    assert_int_equal(box->store->ops->check(box->store, print_finding, NULL, &count), 0);
    assert_int_equal(count, 0);
}

int box_teardown(void **state)
{
    struct box *box = *state;
    struct subject *subject;

    if (box->store) {
        box_check(box);
        box_close_store(box, box->store);
    }
    while ((subject = box->subjects)) {
        box->subjects = subject->next;
        free(subject);
    }
    box->driver->end(box);
    det_sim_close(box->sim);
    free(box);
    return 0;
}
