/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contract_trace_test.c - the trace that a sender is in: whom it is passed on to, and whom not. */
#include "runtime/contract_test.h"

static const struct det_trace_context trace = { .trace_id = "trace of sender",
                                                .span_id = "the one",
                                                .flags = 1 };

/* What notes and effects had: a letter for each event, '+' behind one with the trace. */
struct seen {
    char text[200];
};

static void see(struct seen *seen, const char *name, const struct det_trace_context *had)
{
    size_t length = strlen(seen->text);
    const char *sign = "";

    if (had)
        sign = memcmp(had, &trace, sizeof trace) == 0 ? "+" : "?";
    snprintf(seen->text + length, sizeof seen->text - length, "%s%s ", name, sign);
}

static void watch(struct lab *lab, const struct det_note *note)
{
    see(lab->context, note->event == UINT16_MAX ? "start" : probe_machine.events[note->event].name,
        note->trace);
}

static int see_call(struct lab *lab, struct det_effect_call *call, struct probe_event *ret)
{
    see(lab->context, call->effect, call->trace);
    if (call->attempt < 2)
        return -1;
    *ret = probe_worked((struct load){ .amount = 41 });
    return DET_EFFECT_PRODUCED;
}

static void send_traced(struct lab *lab, const char *id, struct probe_event event)
{
    const struct det_send_options options = { .trace = &trace };

    assert_int_equal(
        det_runtime_send(lab->runtime, &probe_machine, id, &event, &options, NULL, NULL), 0);
}

static struct lab *open_lab(struct seen *seen)
{
    struct lab *lab = lab_open();

    memset(seen, 0, sizeof *seen);
    lab->context = seen;
    lab->watch = watch;
    return lab;
}

static void effects_and_their_products_have_the_trace_of_the_sender(void **unused)
{
    struct seen seen;
    struct lab *lab = open_lab(&seen);

    (void)unused;
    lab->job = see_call;
    lab_busy(lab, "a");
    seen.text[0] = 0;
    send_traced(lab, "a", lab_work(1));
    lab_advance(lab, DET_SECOND);
    assert_string_equal(seen.text, "work+ job+ job+ worked+ ");
    seen.text[0] = 0;
    lab_send(lab, "a", lab_work(1));
    lab_advance(lab, DET_SECOND);
    assert_string_equal(seen.text, "work job job worked ");
    lab_close(lab);
}

static void timer_and_deferred_event_have_no_trace(void **unused)
{
    struct seen seen;
    struct lab *lab = open_lab(&seen);

    (void)unused;
    lab_start(lab, "a");
    seen.text[0] = 0;
    send_traced(lab, "a", probe_later((struct load){ .amount = 1 }));
    send_traced(lab, "a", probe_arm());
    send_traced(lab, "a", probe_rush());
    lab_advance(lab, 11 * DET_SECOND);
    assert_string_equal(seen.text, "later+ arm+ rush+ later expire remind ");
    lab_close(lab);
}

static void a_start_is_reported_with_it(void **unused)
{
    const struct det_send_options options = { .trace = &trace };
    struct seen seen;
    struct lab *lab = open_lab(&seen);

    (void)unused;
    assert_int_equal(
        det_runtime_start(lab->runtime, &probe_machine, "a", NULL, &options, NULL, NULL), 0);
    lab_start(lab, "b");
    assert_string_equal(seen.text, "start+ start ");
    lab_close(lab);
}

static void note_done(struct det_send *send)
{
    *(int *)send->user = send->result;
}

static void submission_has_its_own_trace(void **unused)
{
    struct seen seen;
    struct lab *lab = open_lab(&seen);
    struct probe_event event = probe_touch();
    int result = 1;
    struct det_send send = { .machine = &probe_machine,
                             .instance = "a",
                             .event = &event,
                             .options.trace = &trace,
                             .done = note_done,
                             .user = &result };

    (void)unused;
    lab_start(lab, "a");
    seen.text[0] = 0;
    assert_int_equal(det_runtime_submit(lab->runtime, &send), 0);
    lab_settle(lab);
    assert_int_equal(result, 0);
    assert_string_equal(seen.text, "touch+ ");
    lab_close(lab);
}

/* Evicted and loaded again, in the store they keep it. */
static void reloaded_effect_keeps_its_trace(void **unused)
{
    struct det_runtime_options options = { .is_passive = true };
    struct seen seen;
    struct lab *lab = lab_open_with(1, NULL, &options);

    (void)unused;
    memset(&seen, 0, sizeof seen);
    lab->context = &seen;
    lab->job = see_call;
    lab_busy(lab, "a");
    send_traced(lab, "a", lab_work(1));
    lab->options.is_passive = false;
    lab_reopen(lab);
    assert_int_equal(det_runtime_serve(lab->runtime, &probe_machine, NULL), 0);
    lab_advance(lab, 10 * DET_SECOND);
    assert_non_null(strstr(seen.text, "job+ job+ "));
    lab_close(lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(effects_and_their_products_have_the_trace_of_the_sender),
        cmocka_unit_test(timer_and_deferred_event_have_no_trace),
        cmocka_unit_test(a_start_is_reported_with_it),
        cmocka_unit_test(submission_has_its_own_trace),
        cmocka_unit_test(reloaded_effect_keeps_its_trace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
