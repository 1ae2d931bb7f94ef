/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* atomic_cases.c - a refused commit changes nothing: every kind of refusal, with a commit that has
 * all parts. */
#include "conform/conform.h"

struct scene {
    struct box *box;
    struct subject *subject;
    struct draft draft;
    struct image *before;
};

/* An instance with all kinds of rows, and a draft that changes all of them. */
static void scene_begin(struct scene *scene, struct box *box)
{
    struct subject *subject = subject_start(box, "p");
    struct draft *draft = &scene->draft;

    *scene = (struct scene){ .box = box, .subject = subject };
    subject_move(subject, PARCEL_PACK, PARCEL_PACKED);
    subject_set_timer(subject, DET_STATE_TIMER, 10);
    subject_set_timer(subject, PARCEL_REMINDER, 20);
    subject_set_effect(subject, 0, 5);
    subject_set_effect(subject, 0, 6);
    subject_defer(subject);
    draft_init(draft, subject);
    draft_event(draft, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_PACKED);
    draft_event(draft, PARCEL_HOLD, DET_OUTCOME_GOTO, PARCEL_HELD);
    draft_stop(draft, "a reason");
    draft_data(draft, 77);
    draft_event_id(draft, "the-event");
    draft_timer(draft, DET_STORE_TAKE, DET_STATE_TIMER, 10);
    draft_timer(draft, DET_STORE_CLEAR, PARCEL_REMINDER, 0);
    draft_timer(draft, DET_STORE_SET, PARCEL_DEADLINE, 30);
    draft_effect(draft, DET_STORE_TAKE, 2, 0);
    draft_effect(draft, DET_STORE_UPDATE, 3, 0)->is_dead = true;
    draft_effect(draft, DET_STORE_SET, 5, 0);
    draft_effect(draft, DET_STORE_SET, 6, 1);
    draft_deferred(draft, DET_STORE_TAKE, 4);
    draft_deferred(draft, DET_STORE_SET, 5);
    draft_snapshot(draft);
}

static void assert_nothing_happened(struct scene *scene)
{
    struct image *after = image_read(scene->box, "p");
    struct det_store *store = scene->box->store;
    struct det_store_answer answer;

    image_assert_equal(after, scene->before);
    assert_int_equal(
        store->ops->answer(store, scene->subject->instance, "the-event", &answer),
        DET_ERR_NOT_FOUND);
    free(after);
}

/* Asserts that the commit is refused and changes nothing, also after a reopening. */
static void scene_refused(struct scene *scene, int expected)
{
    scene->before = image_read(scene->box, "p");
    assert_int_equal(draft_commit(&scene->draft), expected);
    assert_nothing_happened(scene);
    box_reopen(scene->box);
    scene->subject->store = scene->box->store;
    subject_load(scene->subject);
    if (box_frees_locks(scene->box))
        scene->before->lock.owner[0] = 0;
    assert_nothing_happened(scene);
    free(scene->before);
}

static void an_accepted_commit_is_stored_completely(void **state)
{
    struct box *box = *state;
    struct det_store_answer answer;
    struct scene scene;
    struct image *image;

    scene_begin(&scene, box);
    assert_int_equal(draft_commit(&scene.draft), 0);
    image = image_read(box, "p");
    assert_int_equal(image->loaded.head.sequence, 7);
    assert_int_equal(image->event_count, 7);
    assert_true(image->loaded.head.is_stopped);
    assert_string_equal(image->loaded.reason, "a reason");
    assert_true(parcel_data_equal(&image->data, &scene.draft.data));
    assert_int_equal(image->timer_count, 1);
    assert_int_equal(image->timers[0].row.timer, PARCEL_DEADLINE);
    assert_int_equal(image->effect_count, 3);
    assert_true(image->effects[0].row.is_dead && image->effects[0].row.sequence == 3);
    assert_int_equal(image->effects[2].row.sequence, 6);
    assert_int_equal(image->deferred_count, 1);
    assert_int_equal(image->deferred[0].sequence, 5);
    assert_int_equal(image->snapshot.loaded.head.sequence, 7);
    assert_int_equal(
        box->store->ops->answer(box->store, scene.subject->instance, "the-event", &answer), 0);
    assert_int_equal(answer.sequence, 7);
    free(image);
}

static void a_conflict_stores_nothing(void **state)
{
    struct scene scene;

    scene_begin(&scene, *state);
    scene.draft.commit.expected = 3;
    scene_refused(&scene, DET_ERR_CONFLICT);
    assert_int_equal(scene.draft.commit.actual, 4);
}

static void a_known_event_id_stores_nothing(void **state)
{
    struct scene scene;
    struct draft other;

    scene_begin(&scene, *state);
    draft_init(&other, scene.subject);
    draft_event(&other, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_PACKED);
    draft_event_id(&other, "known");
    assert_int_equal(draft_commit(&other), 0);
    scene.draft.commit.expected = 5;
    for (size_t i = 0; i < scene.draft.commit.event_count; i++)
        scene.draft.events[i].sequence++;
    scene.draft.head.sequence++;
    scene.draft.commit.event_id = "known";
    scene_refused(&scene, DET_ERR_EXISTS);
}

static void firing_a_missing_timer_stores_nothing(void **state)
{
    struct scene scene;

    scene_begin(&scene, *state);
    draft_timer(&scene.draft, DET_STORE_TAKE, PARCEL_DEADLINE, 99);
    scene.draft.timers[3] = scene.draft.timers[2];
    scene.draft.timers[2] =
        (struct det_store_timer_change){ DET_STORE_TAKE,
                                         { .timer = PARCEL_DEADLINE, .due = 99, .visit = 2 } };
    scene_refused(&scene, DET_ERR_NOT_FOUND);
}

static void firing_a_rescheduled_timer_stores_nothing(void **state)
{
    struct scene scene;

    scene_begin(&scene, *state);
    scene.draft.timers[0].timer.due = 11;
    scene_refused(&scene, DET_ERR_NOT_FOUND);
}

static void firing_a_timer_of_another_visit_stores_nothing(void **state)
{
    struct scene scene;

    scene_begin(&scene, *state);
    scene.draft.timers[0].timer.visit++;
    scene_refused(&scene, DET_ERR_NOT_FOUND);
}

static void firing_a_timer_before_its_deadline_stores_nothing(void **state)
{
    struct scene scene;
    det_time due;

    scene_begin(&scene, *state);
    due = box_now(scene.box) + DET_HOUR;
    subject_set_timer(scene.subject, DET_STATE_TIMER, due);
    scene.draft.timers[0].timer.due = due;
    scene_refused(&scene, DET_ERR_EARLY);
}

static void ending_a_missing_effect_stores_nothing(void **state)
{
    struct scene scene;

    scene_begin(&scene, *state);
    scene.draft.effects[0].effect.index = 1;
    scene_refused(&scene, DET_ERR_NOT_FOUND);
}

static void updating_a_missing_effect_stores_nothing(void **state)
{
    struct scene scene;

    scene_begin(&scene, *state);
    scene.draft.effects[1].effect.sequence = 1;
    scene_refused(&scene, DET_ERR_NOT_FOUND);
}

static void taking_a_missing_deferred_event_stores_nothing(void **state)
{
    struct scene scene;

    scene_begin(&scene, *state);
    scene.draft.deferred[0].deferred.sequence = 3;
    scene_refused(&scene, DET_ERR_NOT_FOUND);
}

static void a_commit_under_the_lock_of_another_owner_stores_nothing(void **state)
{
    struct scene scene;
    struct lender lock;

    scene_begin(&scene, *state);
    lock = (struct lender){ scene.box, scene.box->store, "p", true };
    lender_grant(&lock, "somebody", DET_HOUR);
    scene_refused(&scene, DET_ERR_LOCKED);
}

static void a_commit_with_an_old_fence_stores_nothing(void **state)
{
    struct scene scene;
    struct lender lock;
    struct det_store_lease lease;

    scene_begin(&scene, *state);
    lock = (struct lender){ scene.box, scene.box->store, "p", true };
    scene.draft.commit.fence = lender_grant(&lock, "me", DET_HOUR);
    assert_int_equal(
        lender_ask(&lock, DET_LEASE_RELEASE, "me", scene.draft.commit.fence, 0, &lease), 0);
    lender_grant(&lock, "somebody", DET_HOUR);
    scene_refused(&scene, DET_ERR_LOCK_LOST);
}

static void a_second_start_stores_nothing(void **state)
{
    struct scene scene;

    scene_begin(&scene, *state);
    draft_start(&scene.draft, subject_new(scene.box, "p"));
    draft_timer(&scene.draft, DET_STORE_SET, PARCEL_DEADLINE, 30);
    draft_event_id(&scene.draft, "the-event");
    draft_snapshot(&scene.draft);
    scene_refused(&scene, DET_ERR_EXISTS);
}

static void refused_commit_does_not_affect_others_of_its_call(void **state)
{
    struct box *box = *state;
    struct subject *other = subject_start(box, "q");
    struct draft drafts[2];
    struct scene scene;

    scene_begin(&scene, box);
    scene.draft.deferred[0].deferred.sequence = 3;
    scene.before = image_read(box, "p");
    for (int i = 0; i < 2; i++) {
        draft_init(&drafts[i], i ? other : subject_new(box, "r"));
        if (i == 0)
            draft_start(&drafts[i], drafts[i].subject);
        else
            draft_event(&drafts[i], PARCEL_PACK, DET_OUTCOME_GOTO, PARCEL_PACKED);
        draft_timer(&drafts[i], DET_STORE_SET, PARCEL_DEADLINE, 30);
        draft_event_id(&drafts[i], "of-another");
    }
    draft_commit_all((struct draft *[]){ &drafts[0], &scene.draft, &drafts[1] }, 3);
    assert_int_equal(scene.draft.commit.result, DET_ERR_NOT_FOUND);
    assert_nothing_happened(&scene);
    free(scene.before);
    for (int i = 0; i < 2; i++) {
        struct image *image = image_read(box, i ? "q" : "r");

        assert_int_equal(drafts[i].commit.result, 0);
        assert_int_equal(image->event_count, i);
        assert_int_equal(image->timer_count, 1);
        free(image);
    }
}

static const struct CMUnitTest atomic[] = {
    CASE(an_accepted_commit_is_stored_completely),
    CASE(a_conflict_stores_nothing),
    CASE(a_known_event_id_stores_nothing),
    CASE(firing_a_missing_timer_stores_nothing),
    CASE(firing_a_rescheduled_timer_stores_nothing),
    CASE(firing_a_timer_of_another_visit_stores_nothing),
    CASE(firing_a_timer_before_its_deadline_stores_nothing),
    CASE(ending_a_missing_effect_stores_nothing),
    CASE(updating_a_missing_effect_stores_nothing),
    CASE(taking_a_missing_deferred_event_stores_nothing),
    CASE(a_commit_under_the_lock_of_another_owner_stores_nothing),
    CASE(a_commit_with_an_old_fence_stores_nothing),
    CASE(a_second_start_stores_nothing),
    CASE(refused_commit_does_not_affect_others_of_its_call),
};
const struct group atomic_cases = GROUP_OF(atomic);
