/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* shared_cases.c - two openings of one store: ownership of rows, changes by the other opening, and
 * takeover. Stores of one process pass these. */
#include "conform/conform.h"

#include "os/os.h"

#define ROUNDS 20

/* The opening of the box is one node, this is another one; both load an instance. */
struct pair {
    struct box *box;
    struct det_store *other;
    struct subject *here, *there;
};

static bool pair_begin(struct pair *pair, struct box *box)
{
    *pair = (struct pair){ .box = box };
    if (!box->driver->is_shared)
        return false;
    pair->here = subject_start(box, "p");
    pair->other = box_open_store(box);
    pair->there = subject_find(box, pair->other, "p");
    return true;
}

static void pair_end(struct pair *pair)
{
    box_close_store(pair->box, pair->other);
}

static int count_due(void *context, const struct det_store_due *row)
{
    (void)row;
    ++*(size_t *)context;
    return 0;
}

static size_t due_of(struct box *box, struct det_store *store)
{
    size_t count = 0;
    det_time next;

    assert_int_equal(
        store->ops->due(
            store, box->machine, &(struct det_store_due_query){ .before = DET_NEVER, .limit = 100 },
            count_due, &count, &next),
        0);
    return count;
}

static size_t adopt(struct box *box, struct det_store *store, size_t limit)
{
    size_t count = 99;

    assert_int_equal(store->ops->adopt(store, box->machine, limit, &count), 0);
    return count;
}

static void every_opening_is_a_node_of_its_own(void **state)
{
    struct pair pair;

    if (!pair_begin(&pair, *state))
        return;
    assert_int_equal(strlen(pair.other->owner), 32);
    assert_int_equal(strspn(pair.other->owner, "0123456789abcdef"), 32);
    assert_string_not_equal(pair.other->owner, pair.box->store->owner);
    assert_string_equal(pair.other->identity, pair.box->store->identity);
    assert_true(pair.other->ops->is_shared);
    pair_end(&pair);
}

/* As when an import is repeated that another program began. */
static void an_effect_is_set_in_place_of_another_nodes(void **state)
{
    struct pair pair;

    if (!pair_begin(&pair, *state))
        return;
    subject_set_effect(pair.here, 0, 1);
    for (unsigned i = 0; i < 4; i++) {
        bool is_dead = i & 1;
        struct draft draft;

        draft_init(&draft, i & 2 ? pair.here : pair.there);
        draft_effect(&draft, DET_STORE_SET, 1, 0)->is_dead = is_dead;
        assert_int_equal(draft_commit(&draft), 0);
        assert_int_equal(due_of(pair.box, pair.box->store), !is_dead && i & 2);
        assert_int_equal(due_of(pair.box, pair.other), !is_dead && !(i & 2));
    }
    pair_end(&pair);
}

static void commit_of_one_opening_is_visible_to_the_other(void **state)
{
    struct pair pair;

    if (!pair_begin(&pair, *state))
        return;
    subject_move(pair.here, PARCEL_PACK, PARCEL_PACKED);
    subject_load(pair.there);
    assert_int_equal(pair.there->head.sequence, 1);
    assert_int_equal(pair.there->head.state, PARCEL_PACKED);
    subject_move(pair.there, PARCEL_HOLD, PARCEL_HELD);
    subject_load(pair.here);
    assert_int_equal(pair.here->head.sequence, 2);
    pair_end(&pair);
}

static void stale_commit_reports_the_actual_sequence(void **state)
{
    struct pair pair;
    struct draft draft;

    if (!pair_begin(&pair, *state))
        return;
    subject_move(pair.here, PARCEL_COUNT, PARCEL_CREATED);
    subject_move(pair.here, PARCEL_COUNT, PARCEL_CREATED);
    for (int i = 0; i < 2; i++) {
        draft_init(&draft, pair.there);
        draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_CREATED);
        assert_int_equal(draft_commit(&draft), DET_ERR_CONFLICT);
        assert_int_equal(draft.commit.actual, 2);
    }
    subject_load(pair.there);
    subject_move(pair.there, PARCEL_COUNT, PARCEL_CREATED);
    assert_int_equal(pair.there->head.sequence, 3);
    pair_end(&pair);
}

static void an_event_id_is_known_to_all(void **state)
{
    struct pair pair;
    struct det_store_answer answer;
    struct draft draft;

    if (!pair_begin(&pair, *state))
        return;
    draft_init(&draft, pair.here);
    draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_CREATED);
    draft_event_id(&draft, "e");
    assert_int_equal(draft_commit(&draft), 0);
    assert_int_equal(pair.other->ops->answer(pair.other, pair.there->instance, "e", &answer), 0);
    assert_int_equal(answer.sequence, 1);
    subject_load(pair.there);
    draft_init(&draft, pair.there);
    draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_CREATED);
    draft_event_id(&draft, "e");
    assert_int_equal(draft_commit(&draft), DET_ERR_EXISTS);
    pair_end(&pair);
}

static void set_rows(struct subject *subject)
{
    subject_set_timer(subject, PARCEL_REMINDER, 10);
    subject_set_timer(subject, DET_STATE_TIMER, 20);
    subject_set_effect(subject, 0, 30);
}

struct seen {
    unsigned timers, effects, foreign;
};

static int see_timer(void *context, const struct det_store_timer *row)
{
    struct seen *seen = context;

    seen->timers++;
    seen->foreign += row->is_foreign;
    return 0;
}

static int see_effect(void *context, const struct det_store_effect *row)
{
    struct seen *seen = context;

    seen->effects++;
    seen->foreign += row->is_foreign;
    return 0;
}

static int see_deferred(void *context, const struct det_store_deferred *row)
{
    (void)context;
    (void)row;
    return 0;
}

/* Returns the number of rows of another node. */
static unsigned foreign_rows(struct box *box, struct det_store *store)
{
    struct seen seen = { 0 };
    struct parcel_data data;
    const struct det_store_rows rows = { &seen, see_timer, see_effect, see_deferred };
    struct det_store_loaded loaded = { .data = &data };

    assert_int_equal(store->ops->load(store, box->machine, "p", &rows, &loaded), 0);
    store->ops->release(store, loaded.instance);
    assert_int_equal(seen.timers + seen.effects, 3);
    return seen.foreign;
}

static void rows_belong_to_the_node_that_set_them(void **state)
{
    struct pair pair;

    if (!pair_begin(&pair, *state))
        return;
    set_rows(pair.here);
    assert_int_equal(due_of(pair.box, pair.box->store), 3);
    assert_int_equal(due_of(pair.box, pair.other), 0);
    assert_int_equal(foreign_rows(pair.box, pair.box->store), 0);
    assert_int_equal(foreign_rows(pair.box, pair.other), 3);
    pair_end(&pair);
}

/* Commits one change by the other node; returns the result. */
static int change_there(struct pair *pair, enum det_store_change_kind kind, bool is_timer)
{
    struct draft draft;

    subject_load(pair->there);
    draft_init(&draft, pair->there);
    if (is_timer)
        draft_timer(&draft, kind, PARCEL_REMINDER, kind == DET_STORE_SET ? 40 : 10)->visit = 1;
    else
        draft_effect(&draft, kind, 1, 0)->next = 40;
    return draft_commit(&draft);
}

static void only_the_owner_can_take_a_row(void **state)
{
    struct pair pair;

    if (!pair_begin(&pair, *state))
        return;
    set_rows(pair.here);
    assert_int_equal(change_there(&pair, DET_STORE_TAKE, true), DET_ERR_NOT_FOUND);
    assert_int_equal(change_there(&pair, DET_STORE_TAKE, false), DET_ERR_NOT_FOUND);
    assert_int_equal(change_there(&pair, DET_STORE_UPDATE, false), DET_ERR_NOT_FOUND);
    assert_int_equal(due_of(pair.box, pair.box->store), 3);
    pair_end(&pair);
}

static void any_node_may_clear_or_replace_a_timer(void **state)
{
    struct pair pair;

    if (!pair_begin(&pair, *state))
        return;
    set_rows(pair.here);
    assert_int_equal(change_there(&pair, DET_STORE_SET, true), 0);
    assert_int_equal(due_of(pair.box, pair.box->store), 2);
    assert_int_equal(due_of(pair.box, pair.other), 1);
    assert_int_equal(change_there(&pair, DET_STORE_CLEAR, true), 0);
    assert_int_equal(due_of(pair.box, pair.other), 0);
    pair_end(&pair);
}

static void dead_effect_belongs_to_the_node_that_revives_it(void **state)
{
    struct pair pair;
    struct draft draft;

    if (!pair_begin(&pair, *state))
        return;
    set_rows(pair.here);
    draft_init(&draft, pair.here);
    draft_effect(&draft, DET_STORE_UPDATE, 1, 0)->is_dead = true;
    assert_int_equal(draft_commit(&draft), 0);
    assert_int_equal(change_there(&pair, DET_STORE_UPDATE, false), 0);
    assert_int_equal(due_of(pair.box, pair.other), 1);
    assert_int_equal(due_of(pair.box, pair.box->store), 2);
    assert_int_equal(change_there(&pair, DET_STORE_TAKE, false), 0);
    pair_end(&pair);
}

static void rows_of_a_live_node_are_not_adopted(void **state)
{
    struct pair pair;

    if (!pair_begin(&pair, *state))
        return;
    set_rows(pair.here);
    assert_int_equal(adopt(pair.box, pair.other, 100), 0);
    assert_int_equal(due_of(pair.box, pair.box->store), 3);
    pair_end(&pair);
}

/* Releases the lease of the box's node, as if it had lapsed. */
static void leave(struct pair *pair)
{
    struct det_store *store = pair->box->store;
    struct det_store_lease lease;
    char name[64];

    snprintf(name, sizeof name, "node/%s", store->owner);
    assert_int_equal(
        store->ops->lease(
            store, &(struct det_store_lease_change){ DET_LEASE_RELEASE, name, store->owner, 1, 0 },
            &lease),
        0);
}

static void rows_of_a_node_that_is_gone_are_adopted_first_due_first(void **state)
{
    struct pair pair;

    if (!pair_begin(&pair, *state))
        return;
    set_rows(pair.here);
    leave(&pair);
    assert_int_equal(adopt(pair.box, pair.other, 2), 2);
    assert_int_equal(due_of(pair.box, pair.other), 2);
    assert_int_equal(due_of(pair.box, pair.box->store), 1);
    assert_int_equal(foreign_rows(pair.box, pair.other), 1);
    assert_int_equal(change_there(&pair, DET_STORE_TAKE, true), 0);
    assert_int_equal(change_there(&pair, DET_STORE_TAKE, false), DET_ERR_NOT_FOUND);
    assert_int_equal(adopt(pair.box, pair.other, 100), 1);
    assert_int_equal(adopt(pair.box, pair.other, 100), 0);
    assert_int_equal(change_there(&pair, DET_STORE_TAKE, false), 0);
    pair_end(&pair);
}

static void returning_node_cannot_take_adopted_rows(void **state)
{
    struct pair pair;
    struct draft draft;

    if (!pair_begin(&pair, *state))
        return;
    set_rows(pair.here);
    leave(&pair);
    assert_int_equal(adopt(pair.box, pair.other, 100), 3);
    draft_init(&draft, pair.here);
    draft_event(&draft, PARCEL_LATE, DET_OUTCOME_STAY, PARCEL_CREATED);
    draft_timer(&draft, DET_STORE_TAKE, PARCEL_REMINDER, 10);
    assert_int_equal(draft_commit(&draft), DET_ERR_NOT_FOUND);
    assert_int_equal(due_of(pair.box, pair.box->store), 0);
    assert_int_equal(change_there(&pair, DET_STORE_TAKE, true), 0);
    pair_end(&pair);
}

static void a_lock_is_a_lock_for_all_nodes(void **state)
{
    struct pair pair;
    struct lender here, there;
    struct det_store_lease lease;
    struct draft draft;
    uint64_t fence;

    if (!pair_begin(&pair, *state))
        return;
    here = (struct lender){ pair.box, pair.box->store, "p", true };
    there = (struct lender){ pair.box, pair.other, "p", true };
    fence = lender_grant(&here, "a", DET_HOUR);
    assert_int_equal(
        lender_ask(&there, DET_LEASE_ACQUIRE, "b", 0, DET_HOUR, &lease), DET_ERR_LOCKED);
    draft_init(&draft, pair.there);
    draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_CREATED);
    assert_int_equal(draft_commit(&draft), DET_ERR_LOCKED);
    draft.commit.fence = fence;
    assert_int_equal(draft_commit(&draft), 0);
    pair_end(&pair);
}

struct rival {
    struct subject *subject;
    struct det_thread *thread;
    unsigned conflicts;
    int result;
};

/* Sends the required number of events, with a load after each conflict. Only subject_load() asserts
 * on this thread. */
static void send_as_rival(void *argument)
{
    struct rival *rival = argument;

    for (int done = 0; done < ROUNDS && rival->result == 0;) {
        struct draft draft;
        int r;

        draft_init(&draft, rival->subject);
        draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_CREATED);
        r = draft_commit(&draft);
        if (r == 0) {
            done++;
        } else if (r == DET_ERR_CONFLICT) {
            rival->conflicts++;
            subject_load(rival->subject);
        } else {
            rival->result = r;
        }
    }
}

static void concurrent_writers_never_store_the_same_sequence(void **state)
{
    struct pair pair;
    struct rival rivals[2] = { 0 };
    struct image *image;

    if (!pair_begin(&pair, *state))
        return;
    rivals[0].subject = pair.here;
    rivals[1].subject = pair.there;
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            det_thread_start(
                pair.box->world, "rival", send_as_rival, &rivals[i], &rivals[i].thread),
            0);
    for (int i = 0; i < 2; i++)
        det_thread_join(pair.box->world, rivals[i].thread);
    for (int i = 0; i < 2; i++)
        assert_int_equal(rivals[i].result, 0);
    image = image_read(pair.box, "p");
    assert_int_equal(image->loaded.head.sequence, 2 * ROUNDS);
    assert_int_equal(image->event_count, 2 * ROUNDS);
    for (size_t i = 0; i < image->event_count; i++)
        assert_int_equal(image->events[i].row.sequence, i + 1);
    free(image);
    pair_end(&pair);
}

static uint64_t nodes_of(struct det_store *store)
{
    uint64_t count = 99;

    assert_int_equal(store->ops->nodes(store, &count), 0);
    return count;
}

/* A store without leases of other nodes is not served. */
static void nodes_are_counted_by_their_leases(void **state)
{
    struct box *box = *state;
    struct lender node = { box, box->store, "node/another", false };
    struct lender leader = { box, box->store, "leader", false };
    struct det_store_lease lease;
    struct pair pair;
    uint64_t token, before;

    if (!pair_begin(&pair, box))
        return;
    before = nodes_of(pair.other);
    token = lender_grant(&node, "another", DET_HOUR);
    (void)lender_grant(&leader, "another", DET_HOUR);
    assert_int_equal(nodes_of(pair.other), before + 1);
    assert_int_equal(lender_ask(&node, DET_LEASE_RELEASE, "another", token, 0, &lease), 0);
    assert_int_equal(nodes_of(pair.other), before);
    pair_end(&pair);
    /* The caller does not count: a single node finds 0. */
    assert_int_equal(nodes_of(box->store), 0);
}

static const struct CMUnitTest shared[] = {
    CASE(every_opening_is_a_node_of_its_own),
    CASE(commit_of_one_opening_is_visible_to_the_other),
    CASE(an_effect_is_set_in_place_of_another_nodes),
    CASE(stale_commit_reports_the_actual_sequence),
    CASE(an_event_id_is_known_to_all),
    CASE(rows_belong_to_the_node_that_set_them),
    CASE(only_the_owner_can_take_a_row),
    CASE(any_node_may_clear_or_replace_a_timer),
    CASE(dead_effect_belongs_to_the_node_that_revives_it),
    CASE(rows_of_a_live_node_are_not_adopted),
    CASE(rows_of_a_node_that_is_gone_are_adopted_first_due_first),
    CASE(returning_node_cannot_take_adopted_rows),
    CASE(a_lock_is_a_lock_for_all_nodes),
    CASE(nodes_are_counted_by_their_leases),
    CASE(concurrent_writers_never_store_the_same_sequence),
};
const struct group shared_cases = GROUP_OF(shared);
