/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* walk_cases.c - visitors that call the store, which has one connection for reading: a walk that
 * kept it would wait for itself. The stand-in for tests locks its server during a walk, and is
 * omitted. */
#include "conform/conform.h"

#define MANY 1200u

struct walk {
    struct box *box;
    struct subject *subject;
    unsigned lists, dues, events, machines, loads;
    uint64_t sequence;
};

/* False: not with this driver. */
static bool begin(struct box *box)
{
    box->connections = 1;
    box_reopen(box);
    return !box->driver->is_stand_in;
}

static int load_inside(void *context, const struct det_store_event *row)
{
    struct walk *walk = context;
    struct image *image = image_read(walk->box, "a");

    assert_true(image->is_there && image->loaded.head.sequence >= row->sequence);
    free(image);
    walk->loads++;
    return 0;
}

static int events_inside(void *context, const struct det_store_due *row)
{
    struct walk *walk = context;
    struct det_store *store = walk->box->store;

    (void)row;
    walk->dues++;
    return store->ops->events(store, walk->subject->instance, 0, load_inside, walk);
}

static int due_inside(void *context, const struct det_store_listed *row)
{
    struct walk *walk = context;
    struct det_store *store = walk->box->store;
    det_time next;

    (void)row;
    walk->lists++;
    return store->ops->due(
        store, walk->box->machine,
        &(struct det_store_due_query){ .before = DET_NEVER - 1, .limit = 10 }, events_inside, walk,
        &next);
}

static int list_inside(void *context, const struct det_store_event *row)
{
    struct walk *walk = context;
    struct det_store *store = walk->box->store;

    (void)row;
    walk->events++;
    return store->ops->list(
        store, walk->box->machine, &(struct det_store_query){ 0 }, due_inside, walk);
}

static void a_visitor_may_walk_and_its_visitor_too(void **state)
{
    struct box *box = *state;
    struct walk walk = { .box = box };
    struct subject *outer;

    if (!begin(box))
        return;
    outer = subject_start(box, "o");
    walk.subject = subject_start(box, "a");
    for (int i = 0; i < 2; i++) {
        subject_move(outer, PARCEL_HOLD, PARCEL_HELD);
        subject_move(walk.subject, PARCEL_HOLD, PARCEL_HELD);
    }
    subject_set_timer(outer, PARCEL_REMINDER, 10);
    subject_set_timer(outer, PARCEL_DEADLINE, 20);
    assert_int_equal(
        box->store->ops->events(box->store, outer->instance, 0, list_inside, &walk), 0);
    assert_int_equal(walk.events, outer->head.sequence);
    assert_int_equal(walk.lists, walk.events * 2);
    assert_int_equal(walk.dues, walk.lists * 2);
    assert_int_equal(walk.loads, walk.dues * walk.subject->head.sequence);
}

static int list_in_machine(void *context, const char *name, uint32_t version, const char *spec)
{
    struct walk *walk = context;
    struct det_store *store = walk->box->store;

    assert_string_equal(name, walk->box->machine->name);
    assert_int_equal(version, walk->box->machine->version);
    (void)spec;
    walk->machines++;
    return store->ops->list(
        store, walk->box->machine, &(struct det_store_query){ 0 }, due_inside, walk);
}

static void a_visitor_of_machines_may_list_their_instances(void **state)
{
    struct box *box = *state;
    struct walk walk = { .box = box };

    if (!begin(box))
        return;
    subject_start(box, "a");
    subject_start(box, "b");
    assert_int_equal(box->store->ops->machines(box->store, list_in_machine, &walk), 0);
    assert_int_equal(walk.machines, 1);
    assert_int_equal(walk.lists, 2);
}

static struct subject *subject_named(struct box *box, const char *id)
{
    for (struct subject *subject = box->subjects; subject; subject = subject->next) {
        if (strcmp(subject->id, id) == 0)
            return subject;
    }
    fail_msg("nobody has started %s", id);
    return NULL;
}

static int move_listed(void *context, const struct det_store_listed *row)
{
    struct walk *walk = context;

    assert_int_equal(row->state, PARCEL_CREATED);
    subject_move(subject_named(walk->box, row->id), PARCEL_PACK, PARCEL_PACKED);
    walk->lists++;
    return 0;
}

static void start_many(struct box *box, unsigned count)
{
    static struct draft drafts[60];
    struct draft *batch[60];

    assert_true(count % 60 == 0);
    for (unsigned i = 0; i < count; i++) {
        char id[16];

        snprintf(id, sizeof id, "i%05u", i * 7919u % count);
        draft_start(&drafts[i % 60], subject_new(box, id));
        batch[i % 60] = &drafts[i % 60];
        if (i % 60 == 59)
            draft_commit_all(batch, 60);
    }
}

static void a_visitor_may_change_what_is_listed_and_each_is_seen_once(void **state)
{
    struct box *box = *state;
    struct walk walk = { .box = box };

    if (!begin(box))
        return;
    start_many(box, MANY);
    assert_int_equal(
        box->store->ops->list(
            box->store, box->machine, &(struct det_store_query){ .limit = MANY - 100 }, move_listed,
            &walk),
        0);
    assert_int_equal(walk.lists, MANY - 100);
}

static int next_event(void *context, const struct det_store_event *row)
{
    struct walk *walk = context;

    assert_true(row->sequence == walk->sequence + 1);
    walk->sequence = row->sequence;
    assert_int_equal(value_number(row->value), row->sequence);
    if (row->sequence % 100 == 0)
        subject_start(walk->box, row->event_id);
    return 0;
}

static void count_events(struct subject *subject, unsigned count)
{
    char ids[ROWS_MAX][16];
    struct draft draft;

    while (subject->head.sequence < count) {
        draft_init(&draft, subject);
        for (int i = 0; i < ROWS_MAX; i++) {
            struct det_store_event *event =
                draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, subject->head.state);

            snprintf(ids[i], sizeof ids[i], "e%u", (unsigned)event->sequence);
            event->event_id = ids[i];
        }
        assert_int_equal(draft_commit(&draft), 0);
    }
}

static void a_long_walk_shows_every_event_once_whatever_the_visitor_starts(void **state)
{
    struct box *box = *state;
    struct subject *subject;
    struct walk walk = { .box = box, .sequence = 7 };

    if (!begin(box))
        return;
    subject = subject_start(box, "p");
    count_events(subject, MANY);
    assert_int_equal(
        box->store->ops->events(box->store, subject->instance, 7, next_event, &walk), 0);
    assert_int_equal(walk.sequence, MANY);
}

static const struct CMUnitTest walks[] = {
    CASE(a_visitor_may_walk_and_its_visitor_too),
    CASE(a_visitor_of_machines_may_list_their_instances),
    CASE(a_visitor_may_change_what_is_listed_and_each_is_seen_once),
    CASE(a_long_walk_shows_every_event_once_whatever_the_visitor_starts),
};
const struct group walk_cases = GROUP_OF(walks);
