/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect_test.h - one effect of a detent.yaml, called as the runtime would. */
#ifndef DET_DAEMON_EFFECT_TEST_H
#define DET_DAEMON_EFFECT_TEST_H

#include "config/config_test.h"

#include <detent/tool/machine.h>
#include <detent/tool/spec.h>

#include "daemon/effect.h"
#include "inspect/stored_instance.h"

static const char bench_spec[] = "#define FSM_NAME order\n"
                                 "#define FSM_PREFIX ORDER\n"
                                 "#define FSM_DATA order_data\n"
                                 "RECORD(order_data)\n"
                                 "    FIELD(total, u64)\n"
                                 "END\n"
                                 "RECORD(payment)\n"
                                 "    FIELD(card, str(24), SENSITIVE)\n"
                                 "END\n"
                                 "RECORD(receipt)\n"
                                 "    FIELD(receipt, str(24))\n"
                                 "END\n"
                                 "STATE(A, a, INITIAL)\n"
                                 "STATE(B, b)\n"
                                 "EVENT(PAY, pay, payment)\n"
                                 "INTERNAL(CHARGED, charged, receipt)\n"
                                 "INTERNAL(DECLINED, declined)\n"
                                 "EFFECT(charge, CHARGED, DECLINED)\n"
                                 "ON(A, PAY, B, DO(charge))\n"
                                 "ON(B, CHARGED, A)\n"
                                 "ON(B, DECLINED, A)\n";

/* A bench that calls one effect and keeps the result of the last call. */
struct bench {
    struct project project;
    struct det_spec *spec;
    struct det_machine *machine;
    struct effects effects;
    int result;
    char why[EFFECT_WHY_TEXT];
    unsigned reported;
    det_time retry_after;
    const struct det_trace_context *trace; /* of the call; NULL: none */
    char event[1024];                      /* a struct of the machine */
    char *folder;
};

static inline void bench_report(void *user, const struct effect_failure *failure)
{
    struct bench *bench = user;

    assert_string_equal(failure->call->effect, "charge");
    snprintf(bench->why, sizeof bench->why, "%s", failure->why);
    bench->reported++;
}

/* `effect` is the text after "charge:". */
static inline int bench_open(
    struct bench *bench, const struct det_allocator *allocator, const char *effect)
{
    static const char *const base[] = { "PATH=/usr/bin:/bin", "SHY=secret", NULL };
    char text[2048];
    int r;

    *bench = (struct bench){ .folder = det_test_folder() };
    snprintf(
        text, sizeof text, "version: 1\nmachines:\n  order:\n    effects:\n      charge: %s\n",
        effect);
    r = open_project(&bench->project, allocator, text);
    if (r == 0)
        r = config_settle(&bench->project.config, &bench->project.arena, bench->folder, base);
    if (r == 0)
        r = det_spec_read("order.fsm", bench_spec, strlen(bench_spec), NULL, &bench->spec);
    if (r < 0)
        return r;
    bench->machine = det_spec_machine(bench->spec);
    assert_non_null(bench->machine);
    assert_true(bench->machine->event_size <= sizeof bench->event);
    r = effects_open(&bench->effects, allocator, det_world_real(), &bench->project.config);
    if (r < 0)
        return r;
    bench->effects.report = bench_report;
    bench->effects.user = bench;
    return effects_bind(&bench->effects, &bench->project.config.machines[0], bench->machine);
}

static inline void bench_close(struct bench *bench)
{
    if (bench->spec)
        effects_close(&bench->effects);
    det_spec_close(bench->spec);
    close_project(&bench->project);
    det_test_folder_remove(bench->folder);
}

/* An attempt for order o-1 with a total of 42, requested by a payment. */
static inline int bench_call(struct bench *bench)
{
    struct det_effect_call call = {
        .move = { .machine = "order", .instance = "o-1", .sequence = 3, .user = &bench->effects },
        .effect = "charge",
        .key = "order/o-1/3/0",
        .attempt = 2,
        .trace = bench->trace,
    };
    struct {
        unsigned kind;
        char more[256];
    } pay = { .kind = (unsigned)det_machine_find_event(bench->machine, "pay") };
    uint64_t total = 42;

    memcpy(instance_payload_in(bench->machine, &pay), "4242", 5);
    bench->why[0] = '\0';
    bench->result = bench->machine->effects[0].run(&call, &total, &pay, bench->event);
    bench->retry_after = call.retry_after;
    return bench->result;
}

static inline const char *bench_event(const struct bench *bench)
{
    assert_int_equal(bench->result, DET_EFFECT_PRODUCED);
    return bench->machine->events[det_event_kind(bench->event)].name;
}

static inline const char *bench_payload(struct bench *bench)
{
    static char text[INSTANCE_RECORD_TEXT];

    return instance_payload(bench->machine, bench->event, text);
}

#endif
