/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* nonblocking_read_test.c - the non-blocking read of an instance: it returns the copy in memory,
 * and never loads. */
#include <detent/tool/spec.h>

#include "runtime/contract_test.h"

static int glance(struct lab *lab, const char *instance, struct det_glance *ret)
{
    return det_runtime_glance(lab->runtime, &probe_machine, instance, ret, NULL, NULL);
}

static void assert_timer(
    const struct det_glance *seen, size_t i, const char *name, unsigned event, det_time due)
{
    assert_string_equal(seen->timers[i].name, name);
    assert_int_equal(seen->timers[i].event, event);
    assert_int_equal(seen->timers[i].visit, seen->instance.visit);
    assert_int_equal(seen->timers[i].due, due);
    assert_int_equal(seen->timers[i].next, due);
}

static void it_returns_what_get_returns_and_the_timers(void **unused)
{
    struct lab *lab = lab_open();
    struct probe_data data = { 0 }, same;
    struct det_instance at;
    struct det_glance seen;

    (void)unused;
    memset(&seen, 0xA5, sizeof seen);
    lab_busy(lab, "a");
    lab_send(lab, "a", probe_arm_both());
    assert_int_equal(det_runtime_glance(lab->runtime, &probe_machine, "a", &seen, &data, NULL), 0);
    at = lab_get(lab, "a");
    same = lab_data(lab, "a");
    assert_memory_equal(&seen.instance, &at, sizeof at);
    assert_memory_equal(&data, &same, sizeof data);
    assert_int_equal(seen.effects_dead, 0);
    assert_int_equal(seen.timer_count, 3);
    assert_timer(&seen, 0, "", PROBE_EXPIRE, lab_wall(lab) + 30 * DET_SECOND);
    assert_timer(&seen, 1, "reminder", PROBE_REMIND, lab_wall(lab) + 10 * DET_SECOND);
    assert_timer(&seen, 2, "alarm", PROBE_ALARM, lab_wall(lab) + 20 * DET_SECOND);
    lab_send(lab, "a", probe_disarm());
    assert_int_equal(glance(lab, "a", &seen), 0);
    assert_int_equal(seen.timer_count, 1);
    lab_send(lab, "a", probe_finish());
    assert_int_equal(glance(lab, "a", &seen), 0);
    assert_int_equal(seen.timer_count, 0);
    lab_close(lab);
}

static void glance_does_not_load_an_instance(void **unused)
{
    struct lab *lab = lab_open();
    struct det_glance seen;

    (void)unused;
    lab_start(lab, "a");
    lab_send(lab, "a", probe_rest()); /* No timer brings it back by itself. */
    assert_int_equal(glance(lab, "b", &seen), DET_ERR_BUSY);
    lab_reopen(lab);
    lab_settle(lab);
    assert_int_equal(glance(lab, "a", &seen), DET_ERR_BUSY);
    assert_int_equal(glance(lab, "a", &seen), DET_ERR_BUSY);
    assert_int_equal(lab_get(lab, "a").state, PROBE_RESTING);
    assert_int_equal(glance(lab, "a", &seen), 0);
    assert_int_equal(seen.instance.state, PROBE_RESTING);
    lab_close(lab);
}

static int fail_always(struct lab *lab, struct det_effect_call *call, struct probe_event *ret)
{
    (void)lab;
    (void)call;
    (void)ret;
    return DET_ERR_IO;
}

static void dead_effects_are_counted(void **unused)
{
    struct lab *lab =
        lab_open_with(1, NULL, &(struct det_runtime_options){ .effects = { .attempts_max = 1 } });
    struct det_glance seen;

    (void)unused;
    lab->job = fail_always;
    lab_busy(lab, "a");
    lab_send(lab, "a", lab_work(1));
    assert_int_equal(glance(lab, "a", &seen), 0);
    assert_int_equal(seen.instance.effects_pending, 1);
    assert_int_equal(seen.effects_dead, 0);
    lab_settle(lab);
    assert_int_equal(glance(lab, "a", &seen), 0);
    assert_int_equal(seen.effects_dead, 1);
    lab_close(lab);
}

static const char many_text[] = "#define FSM_NAME many\n"
                                "#define FSM_PREFIX MANY\n"
                                "STATE(UP, up, INITIAL)\n"
                                "EVENT(GO, go)\n"
                                "INTERNAL(RING, ring)\n"
                                "TIMER(t0, SECONDS(1), RING)\n"
                                "TIMER(t1, SECONDS(1), RING)\n"
                                "TIMER(t2, SECONDS(1), RING)\n"
                                "TIMER(t3, SECONDS(1), RING)\n"
                                "TIMER(t4, SECONDS(1), RING)\n"
                                "TIMER(t5, SECONDS(1), RING)\n"
                                "TIMER(t6, SECONDS(1), RING)\n"
                                "TIMER(t7, SECONDS(1), RING)\n"
                                "STAY(UP, GO, ARM(t0, t1, t2, t3, t4, t5, t6, t7))\n"
                                "STAY(UP, RING)\n"
                                "AFTER(UP, DAYS(1), RING)\n";

static void timers_beyond_the_array_are_counted(void **unused)
{
    struct lab *lab = lab_open();
    const struct det_machine *many;
    struct det_spec *spec = NULL;
    struct det_glance seen;
    unsigned go = 0; /* the kind of an event without payload */

    (void)unused;
    assert_int_equal(det_spec_read("many", many_text, sizeof many_text - 1, NULL, &spec), 0);
    many = det_spec_machine(spec);
    assert_non_null(many);
    assert_int_equal(det_runtime_start(lab->runtime, many, "m", NULL, NULL, NULL, NULL), 0);
    assert_int_equal(det_runtime_send(lab->runtime, many, "m", &go, NULL, NULL, NULL), 0);
    assert_int_equal(det_runtime_glance(lab->runtime, many, "m", &seen, NULL, NULL), 0);
    assert_int_equal(seen.timer_count, 9);
    assert_string_equal(seen.timers[DET_GLANCE_TIMERS - 1].name, "t6");
    lab_close(lab);
    det_spec_close(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_returns_what_get_returns_and_the_timers),
        cmocka_unit_test(glance_does_not_load_an_instance),
        cmocka_unit_test(dead_effects_are_counted),
        cmocka_unit_test(timers_beyond_the_array_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
