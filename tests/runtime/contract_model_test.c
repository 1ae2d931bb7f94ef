/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contract_model_test.c - the runtime against a model of one instance that was written from the
 * contract alone: what the rows of contract_test.fsm say, sequence, visit, history and timers.
 * Random operations, compared after each.
 *
 * The model's rules:
 *   1 every taken event has the next sequence; a goto begins the visit sequence + 1;
 *   2 a goto cancels the state's timer and arms the new state's; a stay leaves it alone;
 *   3 a named timer lives until it fires, is disarmed or the instance stops; arming moves it;
 *   4 a timer is gone when it has fired, whether or not its event was taken;
 *   5 overdue timers fire in order of deadline. */
#include "runtime/contract_test.h"

#define MODEL_SEEDS   2000
#define MODEL_STEPS   40
#define MODEL_HISTORY 4

enum { TIMER_STATE, TIMER_REMINDER, TIMER_ALARM, TIMER_COUNT };

struct model {
    unsigned state, previous;
    uint64_t sequence, visit, gotos;
    det_time started_at, moved_at;
    bool is_stopped;
    const char *reason;
    unsigned history[MODEL_HISTORY];
    size_t history_count;
    uint32_t count;
    struct {
        det_time due; /* 0: not armed */
        unsigned event;
        uint64_t visit;
    } timers[TIMER_COUNT];
};

static void model_arm(struct model *model, unsigned timer, unsigned event, det_time due)
{
    model->timers[timer].due = due;
    model->timers[timer].event = event;
    model->timers[timer].visit = model->visit;
}

static void model_enter(struct model *model, unsigned state, det_time after, det_time now)
{
    memmove(model->history + 1, model->history, sizeof model->history - sizeof model->history[0]);
    model->history[0] = model->state;
    if (model->history_count < MODEL_HISTORY)
        model->history_count++;
    model->previous = model->state;
    model->state = state;
    model->gotos++;
    model->visit = model->sequence + 1;
    model->moved_at = now;
    model->timers[TIMER_STATE].due = 0;
    if (state == PROBE_IDLE)
        model_arm(model, TIMER_STATE, PROBE_NUDGE, now + DET_HOUR);
    else if (state == PROBE_BUSY)
        model_arm(model, TIMER_STATE, PROBE_EXPIRE, now + after);
}

static void model_stop(struct model *model, const char *reason)
{
    model->is_stopped = true;
    model->reason = reason;
    for (size_t i = 0; i < TIMER_COUNT; i++)
        model->timers[i].due = 0;
}

/* Where the event leads from a state; -1: it is not taken there. */
static int model_target(unsigned state, unsigned event)
{
    bool is_idle = state == PROBE_IDLE, is_busy = state == PROBE_BUSY;
    bool is_open = is_idle || is_busy || state == PROBE_RESTING;

    switch (event) {
    case PROBE_GO:
    case PROBE_RUSH:
        return is_idle ? PROBE_BUSY : -1;
    case PROBE_AGAIN:
    case PROBE_ALARM:
        return is_busy ? PROBE_BUSY : -1;
    case PROBE_BACK:
        return is_open && !is_idle ? PROBE_IDLE : -1;
    case PROBE_REST:
        return is_idle || is_busy ? PROBE_RESTING : -1;
    case PROBE_FINISH:
        return is_busy ? PROBE_DONE : -1;
    case PROBE_EXPIRE:
        return is_busy ? PROBE_IDLE : -1;
    case PROBE_NUDGE:
        return is_idle ? PROBE_IDLE : -1;
    case PROBE_TOUCH:
    case PROBE_QUIT:
        return is_idle || is_busy ? (int)state : -1;
    default: /* ARM, ARM_BOTH, DISARM, REMIND */
        return is_open ? (int)state : -1;
    }
}

static bool is_goto(unsigned event)
{
    return event == PROBE_GO || event == PROBE_RUSH || event == PROBE_AGAIN ||
           event == PROBE_BACK || event == PROBE_REST || event == PROBE_FINISH ||
           event == PROBE_EXPIRE;
}

static int model_send(struct model *model, unsigned event, det_time now)
{
    int target = model_target(model->state, event);

    if (model->is_stopped)
        return DET_ERR_STOPPED;
    if (target < 0)
        return DET_ERR_UNHANDLED;
    model->sequence++;
    if (event == PROBE_GO || event == PROBE_TOUCH || event == PROBE_REMIND)
        model->count++;
    if (is_goto(event))
        model_enter(
            model, (unsigned)target, event == PROBE_RUSH ? 5 * DET_SECOND : 30 * DET_SECOND, now);
    if (event == PROBE_ARM || event == PROBE_ARM_BOTH)
        model_arm(model, TIMER_REMINDER, PROBE_REMIND, now + 10 * DET_SECOND);
    if (event == PROBE_ARM_BOTH)
        model_arm(model, TIMER_ALARM, PROBE_ALARM, now + 20 * DET_SECOND);
    if (event == PROBE_DISARM)
        model->timers[TIMER_REMINDER].due = model->timers[TIMER_ALARM].due = 0;
    if (event == PROBE_QUIT)
        model_stop(model, "quit was sent");
    return 0;
}

/* Fires what is due by `until`, each at its own time or, when nothing ran before, at `until`. */
static void model_fire(struct model *model, det_time until, bool is_late)
{
    for (;;) {
        size_t first = TIMER_COUNT;
        det_time due;

        for (size_t i = 0; i < TIMER_COUNT; i++)
            if (model->timers[i].due > 0 && model->timers[i].due <= until &&
                (first == TIMER_COUNT || model->timers[i].due < model->timers[first].due))
                first = i;
        if (first == TIMER_COUNT)
            return;
        due = model->timers[first].due;
        model->timers[first].due = 0;
        (void)model_send(model, model->timers[first].event, is_late ? until : due);
    }
}

static int see_timer(void *context, const struct det_timer_record *row)
{
    static const char *const names[] = { "", "reminder", "alarm" };
    struct model *seen = context;

    for (size_t i = 0; i < TIMER_COUNT; i++) {
        if (strcmp(row->name, names[i]) != 0)
            continue;
        seen->timers[i].due = seen->timers[i].due ? -1 : row->due;
        seen->timers[i].event = row->event;
        seen->timers[i].visit = row->visit;
        seen->count++;
    }
    return 0;
}

static void compare_timers(struct lab *lab, const struct model *model)
{
    struct model seen = { 0 };
    uint32_t armed = 0;

    assert_int_equal(
        det_runtime_timers(lab->runtime, &probe_machine, "a", see_timer, &seen, NULL), 0);
    for (size_t i = 0; i < TIMER_COUNT; i++) {
        assert_int_equal(seen.timers[i].due, model->timers[i].due);
        if (model->timers[i].due == 0)
            continue;
        assert_int_equal(seen.timers[i].event, model->timers[i].event);
        assert_int_equal(seen.timers[i].visit, model->timers[i].visit);
        armed++;
    }
    assert_int_equal(seen.count, armed);
}

static void compare(struct lab *lab, const struct model *model)
{
    struct det_instance at = lab_get(lab, "a");

    assert_int_equal(at.state, model->state);
    assert_int_equal(at.previous, model->previous);
    assert_int_equal(at.sequence, model->sequence);
    assert_int_equal(at.visit, model->visit);
    assert_int_equal(at.transition_count, model->gotos);
    assert_int_equal(at.started_at, model->started_at);
    /* Whether a stop counts as the last transition is not said anywhere. */
    if (model->gotos > 0 && !model->is_stopped)
        assert_int_equal(at.last_transition_at, model->moved_at);
    assert_int_equal(at.is_stopped, model->is_stopped);
    assert_string_equal(at.reason, model->is_stopped ? model->reason : "");
    assert_int_equal(at.history_count, model->history_count);
    for (size_t i = 0; i < model->history_count; i++)
        assert_int_equal(at.history[i], model->history[i]);
    assert_int_equal(lab_data(lab, "a").count, model->count);
    compare_timers(lab, model);
}

static det_time random_span(uint64_t *seed)
{
    static const det_time spans[] = { 0,
                                      DET_SECOND,
                                      5 * DET_SECOND,
                                      9 * DET_SECOND,
                                      10 * DET_SECOND,
                                      20 * DET_SECOND,
                                      30 * DET_SECOND,
                                      DET_HOUR };
    det_time span = spans[det_test_random(seed) % (sizeof spans / sizeof spans[0])];

    /* Odd nanoseconds keep two deadlines from being the same, whose order nobody promises. */
    return span + 1 + (det_time)(det_test_random(seed) % 1000003);
}

static void send_both(struct lab *lab, struct model *model, uint64_t *seed)
{
    static const unsigned kinds[] = {
        PROBE_GO,       PROBE_GO,    PROBE_GO,    PROBE_RUSH, PROBE_AGAIN,
        PROBE_TOUCH,    PROBE_BACK,  PROBE_REST,  PROBE_ARM,  PROBE_ARM_BOTH,
        PROBE_DISARM,   PROBE_BACK,  PROBE_TOUCH, PROBE_QUIT, PROBE_FINISH,
        PROBE_ARM_BOTH, PROBE_AGAIN, PROBE_GO,    PROBE_RUSH, PROBE_BACK,
    };
    unsigned kind = kinds[det_test_random(seed) % (sizeof kinds / sizeof kinds[0])];
    struct probe_event event = { .kind = (enum probe_event_kind)kind };
    struct det_sent sent = { 0 };
    int expected;

    /* The two that end everything are rare. */
    if ((kind == PROBE_QUIT || kind == PROBE_FINISH) && det_test_random(seed) % 4 != 0)
        return;
    expected = model_send(model, kind, lab_wall(lab));
    assert_int_equal(probe_send(lab->runtime, "a", event, &sent), expected);
    if (expected < 0)
        return;
    assert_int_equal(sent.state, model->state);
    assert_int_equal(sent.sequence, model->sequence);
    assert_int_equal(sent.visit, model->visit);
    assert_int_equal(
        sent.outcome, is_goto(kind)        ? DET_OUTCOME_GOTO
                      : kind == PROBE_QUIT ? DET_OUTCOME_STOP
                                           : DET_OUTCOME_STAY);
}

static void stop_both(struct lab *lab, struct model *model)
{
    struct det_sent sent;

    assert_int_equal(probe_instance_cancel(lab->runtime, "a", "by hand", &sent), 0);
    if (!model->is_stopped) {
        model->sequence++;
        model_stop(model, "by hand");
    }
    assert_int_equal(sent.outcome, DET_OUTCOME_STOP);
    assert_int_equal(sent.sequence, model->sequence);
}

static void reopen_both(struct lab *lab, struct model *model, uint64_t *seed)
{
    det_runtime_close(lab->runtime);
    lab->runtime = NULL;
    lab_advance(lab, random_span(seed));
    lab_runtime_open(lab);
    assert_int_equal(det_runtime_serve(lab->runtime, &probe_machine, NULL), 0);
    lab_settle(lab);
    model_fire(model, lab_wall(lab), true);
}

static void step_both(struct lab *lab, struct model *model, uint64_t *seed)
{
    uint64_t choice = det_test_random(seed) % 100;

    if (choice < 60) {
        send_both(lab, model, seed);
    } else if (choice < 92) {
        lab_advance(lab, random_span(seed));
        model_fire(model, lab_wall(lab), false);
    } else if (choice < 99) {
        reopen_both(lab, model, seed);
    } else {
        stop_both(lab, model);
    }
}

static void runtime_matches_the_model(void **unused)
{
    static const struct det_runtime_options options = { .history_kept = MODEL_HISTORY };

    (void)unused;
    for (uint64_t n = 1; n <= MODEL_SEEDS; n++) {
        struct lab *lab = lab_open_with(n, NULL, &options);
        struct model model = { .previous = UINT_MAX, .visit = 1, .started_at = lab_wall(lab) };
        uint64_t seed = n;

        lab_start(lab, "a");
        model_arm(&model, TIMER_STATE, PROBE_NUDGE, model.started_at + DET_HOUR);
        for (unsigned i = 0; i < MODEL_STEPS; i++) {
            step_both(lab, &model, &seed);
            compare(lab, &model);
        }
        lab_close(lab);
    }
}

/* The same operations by the same seed leave the same trace of the whole world. */
static void the_same_seed_gives_the_same_run(void **unused)
{
    (void)unused;
    for (uint64_t n = 1; n <= 50; n++) {
        uint64_t hashes[2];

        for (size_t run = 0; run < 2; run++) {
            struct lab *lab = lab_open_with(n, NULL, NULL);
            struct model model = { .previous = UINT_MAX, .visit = 1 };
            uint64_t seed = n;

            lab_start(lab, "a");
            model_arm(&model, TIMER_STATE, PROBE_NUDGE, lab_wall(lab) + DET_HOUR);
            for (unsigned i = 0; i < MODEL_STEPS; i++)
                step_both(lab, &model, &seed);
            hashes[run] = det_sim_hash(lab->sim);
            lab_close(lab);
        }
        assert_true(hashes[0] == hashes[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runtime_matches_the_model),
        cmocka_unit_test(the_same_seed_gives_the_same_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
