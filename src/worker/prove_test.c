/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* prove_test.c - det_worker_prove() takes a kind that is sound, and finds what bad ones do. */
#define REC_SPEC "worker/prove_test.rec"
#include <detent/rec/declare.h>

#include "lib/test.h"

#include "worker/prove.h"

enum { STOPPED, UP, CLOSING };

/* The fault of a bad kind; set by the tests, read by its functions. */
static enum {
    SOUND,
    NO_REASON,
    EMPTY_REASON,
    ITSELF,
    NOWHERE,
    NO_ACTION,
    CHANGES_VIEW,
    FORGETS,
    NEVER_STOPS,
    BAD_KIND,
    DERIVE_FORGETS,
    DERIVE_CHANGES,
    DERIVE_SPOILS,
    DERIVE_REFUSES,
    CHILDREN_FORGET,
    CHILDREN_NAMELESS,
    CHILDREN_CHANGE,
} fault;
static unsigned calls;

static struct det_next answer(enum det_next_kind kind, uint16_t what, const char *reason)
{
    return (struct det_next){ kind, what, reason };
}

static struct det_next in_stopped(const struct det_worker_view *view)
{
    (void)view;
    return answer(DET_NEXT_GOTO, UP, "start wanted");
}

static struct det_next in_up(const struct det_worker_view *view)
{
    const struct prove_every *observed = view->observed;
    void *bytes;

    calls++;
    if (fault == NO_REASON)
        return answer(DET_NEXT_HOLD, 0, NULL);
    if (fault == EMPTY_REASON)
        return answer(DET_NEXT_HOLD, 0, "");
    if (fault == ITSELF)
        return answer(DET_NEXT_GOTO, UP, "again");
    if (fault == NOWHERE)
        return answer(DET_NEXT_GOTO, 3, "away");
    if (fault == NO_ACTION)
        return answer(DET_NEXT_DO, 1, "what there is not");
    if (fault == BAD_KIND)
        return answer((enum det_next_kind)9, 0, "what there is not");
    if (fault == FORGETS)
        return answer(DET_NEXT_HOLD, 0, calls % 2 == 0 ? "even" : "odd");
    if (fault == CHANGES_VIEW) {
        memcpy(&bytes, &view->observed, sizeof bytes);
        ((struct prove_every *)bytes)->tries++;
    }
    if (observed->tries > 3)
        return answer(DET_NEXT_RESTART, 0, det_reason(view, "%u tries", observed->tries));
    if (!observed->is_up)
        return answer(DET_NEXT_DO, 0, "it is down");
    return answer(DET_NEXT_HOLD, 0, "it is up");
}

static struct det_next in_closing(const struct det_worker_view *view)
{
    const struct prove_every *observed = view->observed;

    if (observed->is_up || fault == NEVER_STOPS)
        return answer(DET_NEXT_DO, 0, "it is up");
    if (!det_children_all_stopped(view->children))
        return answer(DET_NEXT_HOLD, 0, "children are up");
    return answer(DET_NEXT_GOTO, STOPPED, "it is down");
}

static int act(struct det_worker_context *context, void *deps, const void *desired)
{
    (void)context;
    (void)deps;
    (void)desired;
    return 0;
}

static int collect(
    struct det_worker_context *context, void *deps, const void *desired, void *observed)
{
    (void)observed;
    return act(context, deps, desired);
}

static int derive(struct det_derive *call, const void *config, void *desired)
{
    struct prove_every *every = desired;
    void *bytes;

    memcpy(every, config, sizeof *every);
    if (fault == DERIVE_REFUSES || every->small < -100)
        return call->refuse(call, "%d is too small", every->small);
    if (fault == DERIVE_FORGETS)
        every->tries = calls++;
    if (fault == DERIVE_SPOILS)
        memset(every->host, 0xff, sizeof every->host - 1);
    if (fault == DERIVE_CHANGES) {
        memcpy(&bytes, &config, sizeof bytes);
        ((struct prove_every *)bytes)->tries++;
    }
    return 0;
}

static int children(const struct det_worker_view *view, struct det_children *list)
{
    const char *name = fault == CHILDREN_NAMELESS                     ? ""
                       : fault == CHILDREN_FORGET && calls++ % 2 == 0 ? "even"
                                                                      : "odd";
    void *bytes;

    if (fault == CHILDREN_CHANGE) {
        memcpy(&bytes, &view->desired, sizeof bytes);
        ((struct prove_every *)bytes)->tries++;
    }
    return list->add(list, &(struct det_child_spec){ .name = name, .kind = "child" });
}

static const struct det_worker_state states[] = {
    { "stopped", DET_PHASE_STOPPED, 0, in_stopped },
    { "up", DET_PHASE_RUNNING, CLOSING, in_up },
    { "closing", DET_PHASE_STOPPING, 0, in_closing },
};
static const struct det_worker_action actions[] = { { "change", 0, act } };
static const struct det_worker_kind kind = {
    .name = "switch",
    .desired = { .get = prove_every_record },
    .observed = { .get = prove_every_record },
    .states = states,
    .state_count = 3,
    .actions = actions,
    .action_count = 1,
    .collect = collect,
    .derive = derive,
    .children = children,
};

static void follow(void *context, uint16_t action, const void *desired, void *observed)
{
    struct prove_every *every = observed;

    (void)context;
    (void)action;
    (void)desired;
    every->is_up = !every->is_up;
}

static void a_sound_kind_is_proven(void **state)
{
    struct det_worker_prove_options options = { .seed = 7, .follow = follow };
    struct det_worker_proof proof, again;
    struct det_error error;

    (void)state;
    fault = SOUND;
    assert_int_equal(det_worker_prove(&kind, &options, &proof, &error), 0);
    assert_true(proof.views > 600);
    assert_int_equal(proof.unstopped, 0);
    assert_int_equal(proof.stops, 600);
    assert_true(proof.refused > 0);
    assert_int_equal(proof.entered, DET_IN(STOPPED) | DET_IN(UP));
    assert_int_equal(proof.done, 1);
    for (int i = 0; i <= DET_NEXT_RESTART; i++)
        assert_true(proof.answers[i] > 0);
    assert_int_equal(det_worker_prove(&kind, &options, &again, &error), 0);
    assert_memory_equal(&proof, &again, sizeof proof);
    assert_int_equal(det_worker_prove(&kind, NULL, &proof, &error), 0);
    assert_int_equal(proof.unstopped, 0);
}

static void violations_of_a_kind_are_reported(void **state)
{
    static const struct {
        int fault;
        const char *part;
    } cases[] = {
        { NO_REASON, "up gives no reason" },
        { EMPTY_REASON, "up gives no reason" },
        { ITSELF, "up goes to itself" },
        { NOWHERE, "up goes to itself, or to an unknown state" },
        { NO_ACTION, "an unknown action" },
        { BAD_KIND, "returns an invalid decision" },
        { CHANGES_VIEW, "up changes its view" },
        { FORGETS, "decides about the same view first" },
        { NEVER_STOPS, "does not reach STOPPED in 64 steps; it is in closing" },
        { DERIVE_FORGETS, "derive() gives different results" },
        { DERIVE_CHANGES, "derive() changes the config" },
        { DERIVE_SPOILS, "returned an invalid desired state" },
        { DERIVE_REFUSES, "derive() refuses" },
        { CHILDREN_FORGET, "children() gives different results" },
        { CHILDREN_NAMELESS, "without a name" },
        { CHILDREN_CHANGE, "children() changes its view" },
    };
    struct det_worker_prove_options options = { .seed = 99, .follow = follow, .views = 20 };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct det_worker_proof proof;
        struct det_error error = { 0 };

        memcpy(&fault, &cases[i].fault, sizeof fault);
        assert_int_equal(det_worker_prove(&kind, &options, &proof, &error), DET_ERR_INVALID);
        if (!strstr(error.text, cases[i].part) || !strstr(error.text, "worker switch, seed 99"))
            fail_msg("'%s' does not say '%s'", error.text, cases[i].part);
    }
}

static void unfinished_stop_walks_are_counted(void **state)
{
    struct det_worker_prove_options options = { .views = 5 };
    struct det_worker_proof proof;

    (void)state;
    fault = NEVER_STOPS;
    assert_int_equal(det_worker_prove(&kind, &options, &proof, NULL), 0);
    assert_int_equal(proof.unstopped, 10);
}

static void invalid_kind_is_refused(void **state)
{
    struct det_worker_kind bad = kind;
    struct det_worker_proof proof;

    (void)state;
    bad.collect = NULL;
    assert_int_equal(det_worker_prove(&bad, NULL, &proof, NULL), DET_ERR_INVALID);
}

static void adjust(void *context, void *record)
{
    unsigned *count = context;

    ((struct prove_every *)record)->small = 0;
    (*count)++;
}

static void generated_records_may_be_adjusted(void **state)
{
    unsigned count = 0;
    struct det_worker_prove_options options = {
        .views = 3, .context = &count, .adjust_config = adjust, .adjust_observed = adjust
    };
    struct det_worker_proof proof;

    (void)state;
    fault = SOUND;
    assert_int_equal(det_worker_prove(&kind, &options, &proof, NULL), 0);
    assert_int_equal(proof.refused, 0);
    assert_true(count > 18);
}

static void records_of_chance_are_valid_and_differ(void **state)
{
    struct det_chance chance;
    struct prove_every every;
    unsigned up = 0, named = 0, full = 0;

    (void)state;
    det_chance_init(&chance, 3, 0);
    for (int i = 0; i < 500; i++) {
        struct det_error error;

        det_prove_record(&chance, prove_every_record(), &every);
        if (det_record_validate(prove_every_record(), &every, &error) < 0)
            fail_msg("%s", error.text);
        up += every.is_up;
        named += every.part.has_name;
        full += every.parts_count == 3;
    }
    assert_true(up > 100 && up < 400 && named > 100 && named < 400 && full > 50);
}

static int prove_in_memory(struct det_test_memory *memory, void *argument)
{
    struct det_worker_prove_options options = { .views = 2, .allocator = &memory->allocator };
    struct det_worker_proof proof;

    (void)argument;
    return det_worker_prove(&kind, &options, &proof, NULL);
}

static void allocation_failures_are_reported_and_leak_nothing(void **state)
{
    (void)state;
    fault = SOUND;
    det_test_each_failure(prove_in_memory, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_kind_is_proven),
        cmocka_unit_test(violations_of_a_kind_are_reported),
        cmocka_unit_test(unfinished_stop_walks_are_counted),
        cmocka_unit_test(invalid_kind_is_refused),
        cmocka_unit_test(generated_records_may_be_adjusted),
        cmocka_unit_test(records_of_chance_are_valid_and_differ),
        cmocka_unit_test(allocation_failures_are_reported_and_leak_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
