/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* serve_cases.c - definitions: those that fit the stored rows, by names, not by numbers. */
#include <detent/tool/machine.h>

#include "conform/conform.h"

static bool keeps_definitions(const struct box *box)
{
    return box->driver->is_kept && !box->driver->is_stand_in;
}

/* Serves a variant of the definition by a new opening; returns the result. The store stays open,
 * and the spec must be closed after it. */
static int serve_variant(
    struct box *box, const char *const *replacements, struct det_spec **ret,
    struct det_error *reterr)
{
    struct det_error error = { 0 };

    *ret = parcel_variant(replacements);
    if (keeps_definitions(box)) {
        box_close_store(box, box->store);
        box->store = NULL;
        if (box_open_with(box, (struct det_store_options){ 0 }, &box->store, &error) < 0)
            fail_msg("%s cannot be opened: %s", box->url, error.text);
    }
    return box->store->ops->serve(box->store, det_spec_machine(*ret), reterr);
}

/* A durable store accepts every definition that fits; a memory store keeps structs, and accepts the
 * same shape only. */
static void assert_served(struct box *box, int r, const struct det_error *error)
{
    if (!keeps_definitions(box))
        assert_int_equal(r, DET_ERR_VERSION);
    else if (r < 0)
        fail_msg("it is not served: %s", error->text);
}

static void done_with(struct box *box, struct det_spec *spec)
{
    box_close_store(box, box->store);
    box->store = NULL;
    det_spec_close(spec);
}

static void the_same_definition_is_served_again(void **state)
{
    static const char *const same[] = { NULL };
    struct box *box = *state;
    struct det_spec *spec;

    subject_start(box, "p");
    assert_int_equal(box->store->ops->serve(box->store, box->machine, NULL), 0);
    assert_int_equal(serve_variant(box, same, &spec, NULL), 0);
    done_with(box, spec);
}

static void definition_with_additions_is_served(void **state)
{
    static const char *const more[] = {
        "#define FSM_VERSION 2",
        "#define FSM_VERSION 3",
        "STATE(PACKED,",
        "STATE(NEWER, newer)\nSTATE(PACKED,",
        "ON(HELD,    RESUME, PACKED)",
        "ON(HELD,    RESUME, PACKED)\nON(HELD, ARRIVE, NEWER)\nON(NEWER, ARRIVE, HELD)",
        NULL,
    };
    struct box *box = *state;
    struct det_error error = { 0 };
    struct det_spec *spec;

    subject_move(subject_start(box, "p"), PARCEL_PACK, PARCEL_PACKED);
    assert_served(box, serve_variant(box, more, &spec, &error), &error);
    done_with(box, spec);
}

/* Every list of names in another order: rows are stored and found by name. */
static void a_spec_with_reordered_rows_serves_the_same_store(void **state)
{
    static const char *const turned[] = {
        "STATE(PACKED,    is_packed)\nSTATE(SHIPPED,   on_its_way)\nSTATE(HELD,      held)",
        "STATE(HELD,      held)\nSTATE(SHIPPED,   on_its_way)\nSTATE(PACKED,    is_packed)",
        "EVENT(COUNT,  count,  parcel_number)\nEVENT(HOLD,   hold_it)",
        "EVENT(HOLD,   hold_it)\nEVENT(COUNT,  count,  parcel_number)",
        "EFFECT(print_label, CHECKED)\nEFFECT(tell_owner)",
        "EFFECT(tell_owner)\nEFFECT(print_label, CHECKED)",
        "TIMER(reminder, HOURS(24), LATE)\nTIMER(deadline, DAYS(7), LATE)",
        "TIMER(deadline, DAYS(7), LATE)\nTIMER(reminder, HOURS(24), LATE)",
        NULL,
    };
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct det_error error = { 0 };
    struct det_spec *spec;
    const struct det_machine *machine;
    struct image *image;
    int r;

    subject_move(subject, PARCEL_PACK, PARCEL_PACKED);
    subject_set_timer(subject, PARCEL_REMINDER, 10);
    subject_set_effect(subject, 0, 20);
    r = serve_variant(box, turned, &spec, &error);
    assert_served(box, r, &error);
    if (r == 0) {
        machine = box->machine = det_spec_machine(spec);
        image = image_read(box, "p");
        assert_int_equal(image->loaded.head.state, det_machine_find_state(machine, "is_packed"));
        assert_int_equal(image->timers[0].row.timer, det_machine_find_timer(machine, "reminder"));
        assert_int_equal(
            image->effects[0].row.effect, det_machine_find_effect(machine, "print_label"));
        assert_int_equal(image->events[1].row.event, det_machine_find_event(machine, "count"));
        assert_int_equal(det_event_kind(&image->events[1].value), image->events[1].row.event);
        assert_int_equal(image->events[0].row.to, image->loaded.head.state);
        free(image);
    }
    done_with(box, spec);
}

/* The stored row whose name is missing, and the text of the refusal. */
struct missing {
    const char *name;
    const char *const *replacements;
};

static void assert_refused(struct box *box, const struct missing *missing)
{
    struct det_error error = { 0 };
    struct det_spec *spec;

    assert_int_equal(serve_variant(box, missing->replacements, &spec, &error), DET_ERR_VERSION);
    assert_int_equal(error.code, DET_ERR_VERSION);
    if (keeps_definitions(box) && !strstr(error.text, missing->name))
        fail_msg("\"%s\" does not name %s", error.text, missing->name);
    done_with(box, spec);
}

/* The stored name of a state is its second argument; the first is the name of its C constant. */
static void a_renamed_c_constant_keeps_its_stored_state(void **state)
{
    static const char *const renamed[] = {
        "STATE(PACKED,    is_packed)",
        "STATE(BOXED,    is_packed)",
        "moving, PACKED",
        "moving, BOXED",
        "PACK, PACKED, DO",
        "PACK, BOXED, DO",
        "ANY(CREATED, PACKED",
        "ANY(CREATED, BOXED",
        "STAY(ANY(PACKED",
        "STAY(ANY(BOXED",
        "ON(PACKED,  HOLD",
        "ON(BOXED,  HOLD",
        "RESUME, PACKED",
        "RESUME, BOXED",
        "ON(PACKED,  ARRIVE",
        "ON(BOXED,  ARRIVE",
        "ON(ANY(PACKED",
        "ON(ANY(BOXED",
        "AFTER(PACKED",
        "AFTER(BOXED",
        NULL,
    };
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct det_error error = { 0 };
    struct det_spec *spec;
    struct image *image;

    subject_move(subject, PARCEL_PACK, PARCEL_PACKED);
    subject_set_timer(subject, DET_STATE_TIMER, 10);
    if (serve_variant(box, renamed, &spec, &error) < 0)
        fail_msg("it is not served: %s", error.text);
    box->machine = det_spec_machine(spec);
    image = image_read(box, "p");
    assert_int_equal(image->loaded.head.state, det_machine_find_state(box->machine, "is_packed"));
    assert_int_equal(image->timer_count, 1);
    assert_int_equal(image->timers[0].row.timer, DET_STATE_TIMER);
    assert_int_equal(image->timers[0].row.due, 10);
    free(image);
    done_with(box, spec);
}

static const char *const without_held[] = { "held", "kept", NULL };
static const char *const without_late[] = { "is_late", "too_late", NULL };
static const char *const without_label[] = { "print_label", "print_sign", NULL };

static void a_definition_without_a_state_that_is_in_use_is_refused(void **state)
{
    struct box *box = *state;

    subject_move(subject_start(box, "p"), PARCEL_HOLD, PARCEL_HELD);
    assert_refused(box, &(struct missing){ "held", without_held });
}

static void a_definition_without_the_event_of_a_timer_is_refused(void **state)
{
    struct box *box = *state;

    subject_set_timer(subject_start(box, "p"), PARCEL_REMINDER, 10);
    assert_refused(box, &(struct missing){ "is_late", without_late });
}

static void a_definition_without_an_effect_that_has_not_ended_is_refused(void **state)
{
    struct box *box = *state;

    subject_set_effect(subject_start(box, "p"), 0, 10);
    assert_refused(box, &(struct missing){ "print_label", without_label });
}

static void unused_names_may_be_missing_in_a_definition(void **state)
{
    static const char *const *const variants[] = { without_held, without_late, without_label };
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct draft draft;

    subject_set_timer(subject, PARCEL_REMINDER, 10);
    subject_set_effect(subject, 0, 10);
    draft_init(&draft, subject);
    draft_timer(&draft, DET_STORE_CLEAR, PARCEL_REMINDER, 0);
    draft_effect(&draft, DET_STORE_TAKE, 1, 0);
    assert_int_equal(draft_commit(&draft), 0);
    for (size_t i = 0; i < 3; i++) {
        struct det_error error = { 0 };
        struct det_spec *spec;

        assert_served(box, serve_variant(box, variants[i], &spec, &error), &error);
        if (keeps_definitions(box))
            done_with(box, spec);
        else
            det_spec_close(spec);
        if (keeps_definitions(box))
            box->store = box_open_store(box);
    }
}

/* A timer and four effects: all but one effect are dead. */
static void write_dead_rows(struct subject *subject)
{
    struct draft draft;

    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_CREATED);
    draft_timer(&draft, DET_STORE_SET, PARCEL_REMINDER, 10);
    draft_effect(&draft, DET_STORE_SET, 1, 0)->is_dead = true;
    draft_effect(&draft, DET_STORE_SET, 1, 1);
    draft_effect(&draft, DET_STORE_SET, 1, 3)->is_dead = true;
    draft_effect(&draft, DET_STORE_SET, 1, 5)->is_dead = true;
    draft.effects[2].effect.to = PARCEL_HELD;
    draft.effect_values[3] = parcel_value(PARCEL_CHECKED, 7);
    assert_int_equal(draft_commit(&draft), 0);
    draft_init(&draft, subject);
    draft_timer(&draft, DET_STORE_UPDATE, PARCEL_REMINDER, 10)->is_dead = true;
    assert_int_equal(draft_commit(&draft), 0);
}

struct loaded_rows {
    unsigned timers, effects, live;
};

static int count_timer(void *context, const struct det_store_timer *row)
{
    (void)row;
    ((struct loaded_rows *)context)->timers++;
    return 0;
}

static int count_effect(void *context, const struct det_store_effect *row)
{
    struct loaded_rows *loaded = context;

    loaded->effects++;
    loaded->live += !row->is_dead;
    return 0;
}

static void assert_rows_loaded(
    struct box *box, const struct det_machine *machine, unsigned timers, unsigned effects)
{
    struct loaded_rows found = { 0 };
    const struct det_store_rows rows = { .context = &found,
                                         .timer = count_timer,
                                         .effect = count_effect };
    struct parcel_data data;
    struct det_store_loaded loaded = { .data = &data };

    assert_int_equal(box->store->ops->load(box->store, machine, "p", &rows, &loaded), 0);
    box->store->ops->release(box->store, loaded.instance);
    assert_int_equal(found.timers, timers);
    assert_int_equal(found.effects, effects);
    assert_int_equal(found.live, 1);
}

/* `serve` accepts these definitions: so an instance with such rows can be loaded. */
static void dead_rows_with_names_that_are_missing_stay_in_the_store_only(void **state)
{
    static const struct {
        const char *const replacements[3];
        unsigned timers, effects; /* loaded */
    } variants[] = {
        { { NULL }, 1, 4 },
        { { "reminder", "memo", NULL }, 0, 4 },
        { { "is_late", "too_late", NULL }, 0, 4 },
        { { "print_label", "print_sign", NULL }, 1, 3 },
        { { "held)", "kept)", NULL }, 1, 3 },
        { { "checked,", "verified,", NULL }, 1, 3 },
    };
    struct box *box = *state;

    write_dead_rows(subject_start(box, "p"));
    for (size_t i = 0; keeps_definitions(box) && i < sizeof variants / sizeof *variants; i++) {
        struct det_error error = { 0 };
        struct det_spec *spec;

        assert_served(box, serve_variant(box, variants[i].replacements, &spec, &error), &error);
        assert_rows_loaded(box, det_spec_machine(spec), variants[i].timers, variants[i].effects);
        done_with(box, spec);
        box->store = box_open_store(box);
    }
}

/* The refusal changes nothing: the right definition is served afterwards. */
static void refused_definition_changes_nothing(void **state)
{
    struct box *box = *state;
    struct subject *subject = subject_start(box, "p");
    struct image *before, *after;

    subject_move(subject, PARCEL_HOLD, PARCEL_HELD);
    before = image_read(box, "p");
    if (keeps_definitions(box)) {
        assert_refused(box, &(struct missing){ "held", without_held });
        box->store = box_open_store(box);
    }
    after = image_read(box, "p");
    image_assert_equal(after, before);
    free(before);
    free(after);
}

struct machines {
    unsigned parcels, crates;
    uint32_t version;
    int answer;
};

static int see_machine(void *context, const char *name, uint32_t version, const char *spec)
{
    struct machines *machines = context;

    machines->parcels += strcmp(name, "parcel") == 0;
    machines->crates += strcmp(name, "crate") == 0;
    if (strcmp(name, "parcel") == 0)
        machines->version = version;
    if (spec && spec[0])
        assert_non_null(strstr(spec, name));
    return machines->answer;
}

static void every_machine_is_listed_once(void **state)
{
    static const char *const other[] = { "FSM_NAME parcel", "FSM_NAME crate", NULL };
    struct box *box = *state;
    struct det_spec *spec = parcel_variant(other);
    struct machines machines = { 0 };

    assert_int_equal(box->store->ops->serve(box->store, det_spec_machine(spec), NULL), 0);
    assert_int_equal(box->store->ops->machines(box->store, see_machine, &machines), 0);
    assert_int_equal(machines.parcels, 1);
    assert_int_equal(machines.crates, 1);
    assert_int_equal(machines.version, 2);
    machines = (struct machines){ .answer = 9 };
    assert_int_equal(box->store->ops->machines(box->store, see_machine, &machines), 9);
    assert_int_equal(machines.parcels + machines.crates, 1);
    done_with(box, spec);
}

static void newest_definition_of_a_machine_is_listed(void **state)
{
    static const char *const newer[] = { "#define FSM_VERSION 2", "#define FSM_VERSION 3", NULL };
    struct box *box = *state;
    struct machines machines = { 0 };
    struct det_error error = { 0 };
    struct det_spec *spec;

    assert_served(box, serve_variant(box, newer, &spec, &error), &error);
    assert_int_equal(box->store->ops->machines(box->store, see_machine, &machines), 0);
    assert_int_equal(machines.parcels, 1);
    assert_int_equal(machines.version, keeps_definitions(box) ? 3 : 2);
    done_with(box, spec);
}

static const struct CMUnitTest serves[] = {
    CASE(the_same_definition_is_served_again),
    CASE(definition_with_additions_is_served),
    CASE(a_spec_with_reordered_rows_serves_the_same_store),
    CASE(a_renamed_c_constant_keeps_its_stored_state),
    CASE(a_definition_without_a_state_that_is_in_use_is_refused),
    CASE(a_definition_without_the_event_of_a_timer_is_refused),
    CASE(a_definition_without_an_effect_that_has_not_ended_is_refused),
    CASE(unused_names_may_be_missing_in_a_definition),
    CASE(dead_rows_with_names_that_are_missing_stay_in_the_store_only),
    CASE(refused_definition_changes_nothing),
    CASE(every_machine_is_listed_once),
    CASE(newest_definition_of_a_machine_is_listed),
};
const struct group serve_cases = GROUP_OF(serves);
