/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_slot_test.h - what both suites of slots use: a look at a slot, and submissions. */
#ifndef DET_TASK_BEHAVIOUR_SLOT_TEST_H
#define DET_TASK_BEHAVIOUR_SLOT_TEST_H

#include "task/behaviour_test.h"

struct slot_check {
    const char *want;
    bool was_found;
    char name[16], state[16], owner_name[16];
    uint32_t width, depth, depth_max, owner_count;
    det_task_id owner;
    det_time since;
    uint64_t started, rejected, replaced;
    char order[256];
};

static inline int inspect_slot(void *user, const struct det_slot_info *info)
{
    struct slot_check *look = user;
    size_t used = strlen(look->order);

    snprintf(look->order + used, sizeof look->order - used, "%s ", info->name);
    if (look->want == NULL || strcmp(look->want, info->name) != 0)
        return 0;
    look->was_found = true;
    snprintf(look->name, sizeof look->name, "%s", info->name);
    snprintf(look->state, sizeof look->state, "%s", info->state);
    snprintf(
        look->owner_name, sizeof look->owner_name, "%s", info->owner_name ? info->owner_name : "-");
    look->width = info->width;
    look->depth = info->depth;
    look->depth_max = info->depth_max;
    look->owner_count = info->owner_count;
    look->owner = info->owner;
    look->since = info->since;
    look->started = info->started;
    look->rejected = info->rejected;
    look->replaced = info->replaced;
    return 0;
}

static inline struct slot_check inspect(struct lab *lab, const char *slot)
{
    struct slot_check look = { .want = slot };

    assert_int_equal(det_slots_each(lab->tasks, inspect_slot, &look), 0);
    return look;
}

static inline void submit_ok(
    struct lab *lab, const char *slot, enum det_admission admission, struct script *script,
    const char *name)
{
    struct det_admitted admitted;

    assert_int_equal(lab_submit(lab, slot, admission, script, name, &admitted), 0);
    assert_int_equal(admitted.rejection, DET_REJECTION_NONE);
    lab_settle(lab);
}

static inline void refuse(
    struct lab *lab, const char *slot, enum det_admission admission, struct script *script,
    const char *name, enum det_rejection rejection)
{
    size_t before = lab_count(lab, DET_TASK_EVENT_SLOT_REJECTED, slot);
    struct det_task_event event;
    struct det_admitted admitted;

    assert_int_equal(lab_submit(lab, slot, admission, script, name, &admitted), DET_ERR_REFUSED);
    assert_int_equal(admitted.rejection, rejection);
    assert_true(admitted.id > 0);
    assert_false(admitted.is_started);
    lab_settle(lab);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_SLOT_REJECTED, slot), before + 1);
    event = lab_event(lab, DET_TASK_EVENT_SLOT_REJECTED, slot, before);
    assert_int_equal(event.id, admitted.id);
    assert_int_equal(event.rejection, rejection);
    assert_int_equal(script->runs, 0);
    assert_int_equal(script->released, 1);
}

static inline void report_and_settle(struct lab *lab, struct script *script)
{
    lab_report(lab, script);
    lab_settle(lab);
}

/* A step that runs until it is told, unless it says otherwise. */
static inline struct script step_of(const char *acts)
{
    return (struct script){ .acts = acts, .kind = LAB_STEP };
}

#endif
