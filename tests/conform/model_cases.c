/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* model_cases.c - random commits, locks, prunings and reopenings of a few instances, each step
 * compared with the model. A failure tells the step; CONFORM_SEED in the environment is
 * the seed. */
#include "conform/model.h"

#define SUBJECTS 4

struct play {
    struct box *box;
    uint64_t seed, step;
    struct subject *subjects[SUBJECTS];
    struct model *models[SUBJECTS];
    unsigned results[7]; /* how often: success, and each refusal */
};

static uint64_t below(struct play *play, uint64_t bound)
{
    return det_test_random(&play->seed) % bound;
}

static bool happens(struct play *play, unsigned percent)
{
    return below(play, 100) < percent;
}

/* Far enough from now that it is clearly due or not. */
static det_time some_due(struct play *play)
{
    return happens(play, 70) ? (det_time)(1 + below(play, 500))
                             : box_now(play->box) + DET_HOUR + (det_time)below(play, 500);
}

static void add_events(struct play *play, struct draft *draft)
{
    static const enum det_outcome outcomes[] = { DET_OUTCOME_GOTO,     DET_OUTCOME_GOTO,
                                                 DET_OUTCOME_GOTO,     DET_OUTCOME_STAY,
                                                 DET_OUTCOME_DEFERRED, DET_OUTCOME_DEAD_LETTER };
    static const char *const causes[] = { NULL, NULL, "parcel/p/1/0" };

    for (uint64_t n = below(play, 4); n; n--) {
        enum det_outcome outcome = outcomes[below(play, 6)];
        unsigned to = outcome == DET_OUTCOME_GOTO ? (unsigned)below(play, 5) : draft->head.state;
        struct det_store_event *event = draft_event(draft, (unsigned)below(play, 7), outcome, to);

        event->choice = (uint16_t)below(play, 3);
        event->is_timeout = happens(play, 10);
        event->cause = causes[below(play, 3)];
    }
    if (happens(play, 5))
        draft_stop(draft, happens(play, 50) ? "enough" : "again");
    if (draft->commit.event_count && happens(play, 40))
        draft_data(draft, below(play, 1000));
}

/* Takes come before sets, as in the runtime. */
static void add_timers(struct play *play, struct draft *draft, const struct image *image)
{
    static const uint16_t all[] = { PARCEL_REMINDER, PARCEL_DEADLINE, DET_STATE_TIMER };

    if (image->timer_count && happens(play, 25)) {
        const struct det_store_timer *row = &image->timers[below(play, image->timer_count)].row;
        struct det_store_timer *taken = draft_timer(draft, DET_STORE_TAKE, row->timer, row->due);

        taken->visit = row->visit + (happens(play, 5) ? 1 : 0);
        taken->due += happens(play, 5) ? 1 : 0;
    } else if (happens(play, 3)) {
        draft_timer(draft, DET_STORE_TAKE, all[below(play, 3)], 4);
    }
    for (uint64_t n = below(play, 3); n; n--) {
        bool is_set = happens(play, 70);
        uint16_t timer = all[below(play, 3)];
        struct det_store_timer *row =
            draft_timer(draft, is_set ? DET_STORE_SET : DET_STORE_CLEAR, timer, some_due(play));

        if (happens(play, 30))
            row->value = NULL;
    }
}

static void add_effects(struct play *play, struct draft *draft, const struct image *image)
{
    static const char *const reasons[] = { NULL, "exit code 1", "\\N {\"caf\xc3\xa9\",'}" };

    if (image->effect_count && happens(play, 40)) {
        const struct det_store_effect *row = &image->effects[below(play, image->effect_count)].row;
        bool is_update = row->is_dead || happens(play, 60);
        struct det_store_effect *changed = draft_effect(
            draft, is_update ? DET_STORE_UPDATE : DET_STORE_TAKE, row->sequence, row->index);

        changed->attempts = (uint32_t)below(play, 9);
        changed->last_error = -(int)below(play, 50);
        changed->reason = reasons[below(play, sizeof reasons / sizeof *reasons)];
        changed->next = some_due(play);
        changed->is_dead = is_update && happens(play, 40);
    }
    if (happens(play, 3))
        draft_effect(draft, happens(play, 50) ? DET_STORE_TAKE : DET_STORE_UPDATE, 1, 77);
    if (!draft->commit.event_count || image->effect_count > 20)
        return;
    for (uint16_t n = 0; n < below(play, 3); n++)
        draft_effect(draft, DET_STORE_SET, draft->head.sequence, n)->next = some_due(play);
}

static void add_deferred(struct play *play, struct draft *draft, const struct image *image)
{
    if (image->deferred_count && happens(play, 30))
        draft_deferred(
            draft, DET_STORE_TAKE, image->deferred[below(play, image->deferred_count)].sequence);
    if (happens(play, 2))
        draft_deferred(draft, DET_STORE_TAKE, 1000000);
    if (draft->commit.event_count && image->deferred_count < 10 && happens(play, 20))
        draft_deferred(draft, DET_STORE_SET, draft->head.sequence);
}

static void check_answers(struct play *play, unsigned number)
{
    const struct model *model = play->models[number];
    struct subject *subject = play->subjects[number];
    struct det_store_answer answer;

    for (int i = 0; i < MODEL_IDS; i++) {
        char id[8];
        int r;

        snprintf(id, sizeof id, "e%d", i);
        r = subject->store->ops->answer(subject->store, subject->instance, id, &answer);
        assert_int_equal(r, model->knows[i] ? 0 : DET_ERR_NOT_FOUND);
        if (r < 0)
            continue;
        assert_int_equal(answer.outcome, model->answers[i].outcome);
        assert_int_equal(answer.state, model->answers[i].state);
        assert_int_equal(answer.sequence, model->answers[i].sequence);
        assert_int_equal(answer.visit, model->answers[i].visit);
    }
}

static void check_image(struct play *play, unsigned number)
{
    struct image *image = image_read(play->box, play->subjects[number]->id);
    struct det_store_lease *lock = &play->models[number]->image.lock;

    if (lock->expires_at <= box_now(play->box))
        lock->owner[0] = 0;
    image_assert_equal(image, &play->models[number]->image);
    free(image);
}

static void validate(struct play *play, unsigned number, struct draft *draft)
{
    struct model *model = play->models[number];
    unsigned refusals = model_refusals(model, &draft->commit, box_now(play->box));
    int r = draft_commit(draft);

    if (r == 0 && refusals == 0) {
        play->results[0]++;
        model_apply(model, &draft->commit);
        return;
    }
    if (r == 0 || !(model_refusal_of(r) & refusals))
        fail_msg("the result is %d, allowed are the refusals %x", r, refusals);
    for (unsigned i = 0; i < 6; i++)
        play->results[i + 1] += model_refusal_of(r) == 1u << i;
    if (r == DET_ERR_CONFLICT)
        assert_int_equal(draft->commit.actual, model->image.loaded.head.sequence);
}

static void some_commit(struct play *play, unsigned number)
{
    const struct image *image = &play->models[number]->image;
    struct draft draft;
    char id[8];

    draft_init(&draft, play->subjects[number]);
    add_events(play, &draft);
    add_timers(play, &draft, image);
    add_effects(play, &draft, image);
    add_deferred(play, &draft, image);
    snprintf(id, sizeof id, "e%d", (int)below(play, MODEL_IDS));
    if (draft.commit.event_count && happens(play, 15))
        draft_event_id(&draft, id);
    if (happens(play, 8))
        draft_snapshot(&draft);
    if (happens(play, 4))
        draft.commit.expected += 1 + below(play, 3);
    if (image->lock.token && happens(play, image->lock.owner[0] ? 60 : 3))
        draft.commit.fence = image->lock.token - (happens(play, 10) ? 1 : 0);
    validate(play, number, &draft);
}

static void start_again(struct play *play, unsigned number)
{
    struct draft draft;

    draft_start(&draft, play->subjects[number]);
    validate(play, number, &draft);
}

static void some_lock(struct play *play, unsigned number)
{
    struct image *image = &play->models[number]->image;
    struct lender lock = { play->box, play->box->store, play->subjects[number]->id, true };
    bool is_held = image->lock.expires_at > box_now(play->box);
    struct det_store_lease ret;
    int r;

    if (is_held) {
        uint64_t token = image->lock.token - (happens(play, 20) ? 1 : 0);

        r = lender_ask(&lock, DET_LEASE_RELEASE, "", token, 0, &ret);
        assert_int_equal(r, token == image->lock.token ? 0 : DET_ERR_LOCK_LOST);
        if (r == 0)
            image->lock.owner[0] = 0;
    } else {
        r = lender_ask(&lock, DET_LEASE_ACQUIRE, "somebody", 0, DET_HOUR, &ret);
        assert_int_equal(r, 0);
        image->lock.token++;
        memcpy(image->lock.owner, "somebody", sizeof "somebody");
    }
    image->lock.expires_at = image->lock.owner[0] ? ret.expires_at : 0;
    assert_int_equal(ret.token, image->lock.token);
}

static void some_pruning(struct play *play, unsigned number)
{
    struct subject *subject = play->subjects[number];
    struct model *model = play->models[number];
    uint64_t sequence = model->image.loaded.head.sequence + 2, gone = 99;

    sequence = sequence < 20 ? below(play, sequence + 1) : sequence - below(play, 20);
    assert_int_equal(
        subject->store->ops->prune(subject->store, subject->instance, sequence, 0, &gone), 0);
    assert_int_equal(gone, model_prune(model, sequence));
}

/* The rows of a shared store belong to the opening that set them, until the next one
 * adopts them. */
static void reopen(struct play *play)
{
    struct box *box = play->box;
    size_t adopted = 1;

    box_reopen(box);
    while (box->driver->is_shared && adopted)
        assert_int_equal(box->store->ops->adopt(box->store, box->machine, 7, &adopted), 0);
    for (unsigned i = 0; i < SUBJECTS; i++) {
        play->subjects[i]->store = box->store;
        if (box_frees_locks(box))
            play->models[i]->image.lock.expires_at = 0;
        subject_load(play->subjects[i]);
        check_image(play, i);
        check_answers(play, i);
    }
}

struct times {
    size_t count;
    det_time due[SUBJECTS * 32];
};

static void times_add(struct times *times, det_time due)
{
    size_t place = times->count++;

    assert_true(place < sizeof times->due / sizeof times->due[0]);
    for (; place && times->due[place - 1] > due; place--)
        times->due[place] = times->due[place - 1];
    times->due[place] = due;
}

static int add_due(void *context, const struct det_store_due *row)
{
    times_add(context, row->due);
    return 0;
}

static void check_due(struct play *play)
{
    struct times found = { 0 }, expected = { 0 };
    struct det_store *store = play->box->store;
    size_t limit = (size_t)below(play, 30);
    det_time next;

    for (unsigned i = 0; i < SUBJECTS; i++) {
        const struct image *image = &play->models[i]->image;

        for (size_t n = 0; n < image->timer_count; n++)
            times_add(&expected, image->timers[n].row.due);
        for (size_t n = 0; n < image->effect_count; n++) {
            if (!image->effects[n].row.is_dead)
                times_add(&expected, image->effects[n].row.next);
        }
    }
    assert_int_equal(
        store->ops->due(
            store, play->box->machine,
            &(struct det_store_due_query){ .before = DET_NEVER, .limit = limit }, add_due, &found,
            &next),
        0);
    assert_int_equal(found.count, expected.count < limit ? expected.count : limit);
    assert_memory_equal(found.due, expected.due, found.count * sizeof found.due[0]);
    assert_true(next == (found.count < expected.count ? expected.due[found.count] : DET_NEVER));
}

static int check_listed(void *context, const struct det_store_listed *row)
{
    struct play *play = context;

    for (unsigned i = 0; i < SUBJECTS; i++) {
        const struct det_store_head *head = &play->models[i]->image.loaded.head;

        if (strcmp(row->id, play->subjects[i]->id) != 0)
            continue;
        assert_int_equal(row->state, head->state);
        assert_int_equal(row->sequence, head->sequence);
        assert_true(row->is_stopped == head->is_stopped);
        assert_true(row->started_at == head->started_at);
        assert_true(row->moved_at == head->last_transition_at);
        return 0;
    }
    fail_msg("%s is listed", row->id);
    return 0;
}

static void check_all(struct play *play)
{
    struct det_store *store = play->box->store;

    check_due(play);
    assert_int_equal(
        store->ops->list(
            store, play->box->machine, &(struct det_store_query){ 0 }, check_listed, play),
        0);
}

static void step(struct play *play)
{
    unsigned number = (unsigned)below(play, SUBJECTS);
    uint64_t what = below(play, 100);

    snprintf(image_context, sizeof image_context, "step %u of its seed", (unsigned)play->step);
    if (play->box->sim && happens(play, 5))
        box_wait(play->box, box_now(play->box) + (det_time)below(play, 30) * DET_MINUTE);
    if (what < 80)
        some_commit(play, number);
    else if (what < 88)
        some_lock(play, number);
    else if (what < 96 || play->models[number]->image.event_count > 400)
        some_pruning(play, number);
    else if (what < 98)
        start_again(play, number);
    else
        reopen(play);
    check_image(play, number);
    if (play->step % 8 == 0)
        check_all(play);
}

static void play_begin(struct play *play, struct box *box, uint64_t seed)
{
    *play = (struct play){ .box = box, .seed = seed };
    for (unsigned i = 0; i < SUBJECTS; i++) {
        char id[24];
        struct draft draft;

        snprintf(id, sizeof id, "p%d-%u", (int)seed, i);
        play->subjects[i] = subject_new(box, id);
        play->models[i] = malloc(sizeof *play->models[i]);
        assert_non_null(play->models[i]);
        model_init(play->models[i]);
        draft_start(&draft, play->subjects[i]);
        validate(play, i, &draft);
    }
}

static void random_steps_match_the_model(void **state)
{
    struct box *box = *state;
    const char *seed = getenv("CONFORM_SEED");
    struct play play;

    play_begin(&play, box, seed ? strtoull(seed, NULL, 10) : 1);
    for (play.step = 0; play.step < box->driver->model_steps; play.step++)
        step(&play);
    reopen(&play);
    print_message(
        "             %u done, %u conflicts, %u locked, %u lost, %u early, %u known, %u not "
        "there\n",
        play.results[0], play.results[1], play.results[2], play.results[3], play.results[4],
        play.results[5], play.results[6]);
    for (int i = 0; i < 7; i++)
        assert_true(play.results[i] > 0);
    for (unsigned i = 0; i < SUBJECTS; i++)
        free(play.models[i]);
}

static const struct CMUnitTest models[] = {
    CASE(random_steps_match_the_model),
};
const struct group model_cases = GROUP_OF(models);
