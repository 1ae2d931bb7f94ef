/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* main.c - the demo: a shop in a simulated world, where days pass in seconds. On a terminal it is
 * animated and ends with a prompt; anywhere else it prints the same story and ends. */
#include <stdio.h>
#include <stdlib.h>

#include "demo.h"

/* What was committed; called before the sender has its answer. A deferred event is told by the one
 * who sent it. */
static void receive_note(void *user, const struct det_note *note)
{
    struct demo *demo = user;
    enum tone tone = note->is_timeout ? TONE_TIME : TONE_MOVE;
    const char *timer = note->is_timeout ? "  (timer)" : "";
    const char *to = order_state_name(note->to);

    if (note->event == UINT16_MAX)
        return;
    if (note->outcome == DET_OUTCOME_GOTO)
        screen_print(
            demo, tone, "%s  %s: %s -> %s%s", note->instance,
            order_machine.events[note->event].name, order_state_name(note->from), to, timer);
    else if (note->outcome == DET_OUTCOME_STAY)
        screen_print(
            demo, tone, "%s  %s: stays %s%s", note->instance,
            order_machine.events[note->event].name, to, timer);
}

/* What was not done. */
static void receive_incident(void *user, const struct det_incident *incident)
{
    struct demo *demo = user;

    switch (incident->kind) {
    case DET_INCIDENT_EFFECT_FAILED:
        screen_print(
            demo, TONE_INCIDENT, "%s  %s: attempt %u failed with %s", incident->instance,
            incident->name, incident->attempt, det_error_name(incident->code));
        return;
    case DET_INCIDENT_EFFECT_DEAD:
    case DET_INCIDENT_PRODUCT_REJECTED:
    case DET_INCIDENT_TIMEOUT_REJECTED:
    case DET_INCIDENT_EVENT_DEAD:
    case DET_INCIDENT_EVENT_FAILED:
    case DET_INCIDENT_NOT_LOADED:
    case DET_INCIDENT_EFFECTS_QUEUED:
        screen_print(demo, TONE_INCIDENT, "%s", incident->text);
        return;
    }
}

static void sum_up(struct demo *demo)
{
    struct det_runtime_counts counts;

    det_runtime_counts(demo->runtime, &counts);
    printf(
        "\n%llu transitions, %llu timeouts, %llu failed attempts, %llu refusals, %llu duplicate.\n"
        "The bank charged %u cards, gave %u back; asked again %u time, no card paid twice.\n",
        (unsigned long long)counts.transitions, (unsigned long long)counts.timeouts_fired,
        (unsigned long long)counts.effects_failed,
        (unsigned long long)(counts.refused + counts.unhandled),
        (unsigned long long)counts.duplicates, demo->bank.charges, demo->bank.refunds,
        demo->bank.asked_again);
}

static void print_goodbye(void)
{
    puts("\nThat was examples/order/order.fsm, with order.c beside it. To go on:\n"
         "  build/release/detent check examples/order/order.fsm\n"
         "  build/release/detent test examples/order\n"
         "  build/release/detent diagram examples/order/order.fsm\n"
         "  build/release/detent sim examples/order/order.fsm\n"
         "and then docs/machines.md. Now your own, once it is installed (README.md):\n"
         "  detent new coffee --c");
}

/* Effects wait long enough between attempts to be watched, and always equally long. */
static int open_runtime(struct demo *demo, struct det_store *store, struct det_error *error)
{
    return det_runtime_open(
        store,
        &(struct det_runtime_options){
            .world = demo->world,
            .pool_threads = 8,
            .effects = { .backoff_first = 20 * DET_SECOND,
                         .backoff_max = DET_MINUTE,
                         .jitter_percent = UINT32_MAX },
            .user = demo,
            .observe = receive_note,
            .incident = receive_incident,
            .observer = demo,
        },
        &demo->runtime, error);
}

static int run(struct demo *demo, struct det_error *error)
{
    DET_SCOPED(store) store = NULL;
    int r;

    r = det_store_open_with(
        "memory:", &(struct det_store_options){ .world = demo->world }, &store, error);
    if (r < 0)
        return r;
    r = open_runtime(demo, store, error);
    if (r < 0)
        return r;
    screen_open(&demo->screen);
    r = story_run(demo);
    screen_leave(demo);
    if (r >= 0) {
        sum_up(demo);
        r = prompt_run(demo);
    }
    det_runtime_close(demo->runtime);
    return r;
}

int main(void)
{
    struct demo demo = { 0 };
    struct det_error error = { 0 };
    DET_SCOPED(sim) sim = NULL;
    int r;

    r = det_sim_open(&(struct det_sim_options){ .seed = 1 }, &sim, &error);
    if (r >= 0) {
        demo.sim = sim;
        demo.world = det_sim_world(sim);
        demo.began = det_world_now(demo.world, DET_CLOCK_WALL);
        bank_open(&demo);
        r = run(&demo, &error);
    }
    if (r < 0) {
        fprintf(stderr, "demo: %s\n", error.code ? error.text : det_error_text(r));
        return EXIT_FAILURE;
    }
    print_goodbye();
    return EXIT_SUCCESS;
}
