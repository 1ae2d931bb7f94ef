/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* step.c - one event through the order machine: the transition and the next state.
 *
 * Every case has the same events: walks through the machine that restart every WALK events; three
 * in four are events that the state accepts, the fourth is any. Peers read them from a file, one
 * byte each. The hand-written tables are compared with the machine before anything is measured, so
 * all do the same work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <detent/tool/spec.h>

#include "bench.h"
#include "order.h"

#define EVENT_COUNT 262144 /* a power of two */
#define WALK        16
#define STEPS       4000000
#define STEPS_PEER  100000

static uint8_t events[EVENT_COUNT];
static char events_path[BENCH_PATH_MAX];
static struct det_spec *spec;
static const struct det_machine *read_machine;

struct walker {
    unsigned state;
    uint64_t outcomes[4];
};

/* The hand-written machine as a table: two bytes a cell, empty if the event is not accepted. */
struct cell {
    uint8_t outcome, to;
};

#define CELL(state, event)     [ORDER_##state][ORDER_##event]
#define GOES(state, event, to) CELL(state, event) = { DET_OUTCOME_GOTO, ORDER_##to }
#define STAYS(state, event)    CELL(state, event) = { DET_OUTCOME_STAY, ORDER_##state }

static const struct cell table[order_state_count][order_event_count] = {
    GOES(PENDING, PAY, CHARGING),
    GOES(PENDING, CHARGED, PAID),
    GOES(PENDING, CANCEL, CANCELLED),
    GOES(PENDING, EXPIRED, CANCELLED),
    STAYS(PENDING, MOVE),
    GOES(CHARGING, CHARGED, PAID),
    GOES(CHARGING, DECLINED, PENDING),
    STAYS(CHARGING, MOVE),
    GOES(PAID, SHIP, SHIPPED),
    GOES(PAID, CANCEL, REFUNDING),
    STAYS(PAID, MOVE),
    STAYS(PAID, LATE),
    GOES(SHIPPED, DELIVER, DELIVERED),
    STAYS(SHIPPED, LATE),
    GOES(REFUNDING, REFUNDED, CANCELLED),
    GOES(CANCELLED, CHARGED, REFUNDING),
};
/* The same with every cell filled: an event that is not accepted leads back to its state. */
static struct cell filled[order_state_count][order_event_count];

static void fill_table(void)
{
    for (unsigned state = 0; state < order_state_count; state++) {
        for (unsigned event = 0; event < order_event_count; event++) {
            filled[state][event] = table[state][event];
            if (table[state][event].outcome == DET_OUTCOME_UNHANDLED)
                filled[state][event].to = (uint8_t)state;
        }
    }
}

/* `to`, or the same state if the event is not accepted. Without a branch, since the processor
 * cannot predict whether an event is accepted. */
static inline unsigned next_state(unsigned state, unsigned outcome, unsigned to)
{
    unsigned taken = 0u - (outcome != DET_OUTCOME_UNHANDLED);

    return state ^ ((state ^ to) & taken);
}

static __attribute__((noinline)) void step_table(struct walker *walker, unsigned event)
{
    struct cell cell = table[walker->state][event];

    walker->outcomes[cell.outcome]++;
    walker->state = next_state(walker->state, cell.outcome, cell.to);
}

static __attribute__((noinline)) void step_filled(struct walker *walker, unsigned event)
{
    struct cell cell = filled[walker->state][event];

    walker->outcomes[cell.outcome]++;
    walker->state = cell.to;
}

static __attribute__((noinline)) void step_machine(
    const struct det_machine *machine, struct walker *walker, unsigned event)
{
    const struct det_transition *transition = det_machine_step(machine, walker->state, event);

    walker->outcomes[transition->outcome]++;
    walker->state = transition->to;
}

static void go(struct walker *walker, enum order_state to)
{
    walker->outcomes[DET_OUTCOME_GOTO]++;
    walker->state = to;
}

static void stay(struct walker *walker)
{
    walker->outcomes[DET_OUTCOME_STAY]++;
}

static void untaken(struct walker *walker)
{
    walker->outcomes[DET_OUTCOME_UNHANDLED]++;
}

/* The hand-written machine as people write it. The default makes it short. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wswitch-enum"

static void from_pending(struct walker *walker, enum order_event_kind event)
{
    switch (event) {
    case ORDER_PAY:
        go(walker, ORDER_CHARGING);
        break;
    case ORDER_CHARGED:
        go(walker, ORDER_PAID);
        break;
    case ORDER_CANCEL:
    case ORDER_EXPIRED:
        go(walker, ORDER_CANCELLED);
        break;
    case ORDER_MOVE:
        stay(walker);
        break;
    default:
        untaken(walker);
    }
}

static void from_charging(struct walker *walker, enum order_event_kind event)
{
    switch (event) {
    case ORDER_CHARGED:
        go(walker, ORDER_PAID);
        break;
    case ORDER_DECLINED:
        go(walker, ORDER_PENDING);
        break;
    case ORDER_MOVE:
        stay(walker);
        break;
    default:
        untaken(walker);
    }
}

static void from_paid(struct walker *walker, enum order_event_kind event)
{
    switch (event) {
    case ORDER_SHIP:
        go(walker, ORDER_SHIPPED);
        break;
    case ORDER_CANCEL:
        go(walker, ORDER_REFUNDING);
        break;
    case ORDER_MOVE:
    case ORDER_LATE:
        stay(walker);
        break;
    default:
        untaken(walker);
    }
}

static void from_shipped(struct walker *walker, enum order_event_kind event)
{
    if (event == ORDER_DELIVER)
        go(walker, ORDER_DELIVERED);
    else if (event == ORDER_LATE)
        stay(walker);
    else
        untaken(walker);
}

static void from_one(
    struct walker *walker, enum order_event_kind event, enum order_event_kind taken,
    enum order_state to)
{
    if (event == taken)
        go(walker, to);
    else
        untaken(walker);
}
#pragma GCC diagnostic pop

static __attribute__((noinline)) void step_switch(struct walker *walker, unsigned number)
{
    enum order_event_kind event = (enum order_event_kind)number;

    switch ((enum order_state)walker->state) {
    case ORDER_PENDING:
        from_pending(walker, event);
        break;
    case ORDER_CHARGING:
        from_charging(walker, event);
        break;
    case ORDER_PAID:
        from_paid(walker, event);
        break;
    case ORDER_SHIPPED:
        from_shipped(walker, event);
        break;
    case ORDER_REFUNDING:
        from_one(walker, event, ORDER_REFUNDED, ORDER_CANCELLED);
        break;
    case ORDER_CANCELLED:
        from_one(walker, event, ORDER_CHARGED, ORDER_REFUNDING);
        break;
    case ORDER_DELIVERED:
    case order_state_count:
        untaken(walker);
    }
}

/* One loop for each case, the same but for the call in it. */
#define WALKS(name, call)                                                                          \
    static int name(struct bench_lap *lap)                                                         \
    {                                                                                              \
        const struct det_machine *machine = read_machine;                                          \
        struct walker walker = { .state = ORDER_PENDING };                                         \
                                                                                                   \
        (void)machine;                                                                             \
        bench_lap_begin(lap);                                                                      \
        for (uint64_t i = 0; i < lap->operations; i++) {                                           \
            unsigned event = events[i % EVENT_COUNT];                                              \
                                                                                                   \
            if (i % WALK == 0)                                                                     \
                walker.state = ORDER_PENDING;                                                      \
            call;                                                                                  \
        }                                                                                          \
        bench_lap_end(lap);                                                                        \
        bench_use(                                                                                 \
            walker.state + walker.outcomes[DET_OUTCOME_GOTO] + walker.outcomes[DET_OUTCOME_STAY]); \
        return 0;                                                                                  \
    }
WALKS(run_table, step_table(&walker, event))
WALKS(run_filled, step_filled(&walker, event))
WALKS(run_switch, step_switch(&walker, event))
WALKS(run_template, step_machine(&order_machine, &walker, event))
WALKS(run_read, step_machine(machine, &walker, event))

static int run_peer(struct bench_lap *lap, const char *interpreter, const char *program)
{
    char count[24];
    const char *words[] = { interpreter, program, events_path, count, NULL };

    (void)snprintf(count, sizeof count, "%llu", (unsigned long long)lap->operations);
    return bench_child_peer(lap, interpreter ? words : words + 1);
}

static int run_msm(struct bench_lap *lap)
{
#ifdef BENCH_MSM
    return run_peer(lap, NULL, BENCH_MSM);
#else
    return bench_lap_fail(lap, DET_ERR_UNSUPPORTED, "not installed (libboost-dev, g++)");
#endif
}

static int run_gen_statem(struct bench_lap *lap)
{
    return run_peer(lap, "escript", BENCH_PEERS "/gen_statem.escript");
}

static int run_xstate(struct bench_lap *lap)
{
    return run_peer(lap, "node", BENCH_PEERS "/xstate.cjs");
}

/* Returns an event that `state` accepts, or any if it accepts none. */
static unsigned pick_taken(unsigned state, uint64_t *seed)
{
    unsigned taken[order_event_count];
    unsigned count = 0;

    for (unsigned event = 0; event < order_event_count; event++) {
        if (det_machine_step(&order_machine, state, event)->outcome != DET_OUTCOME_UNHANDLED)
            taken[count++] = event;
    }
    return count ? taken[bench_random(seed) % count]
                 : (unsigned)(bench_random(seed) % order_event_count);
}

static void make_events(void)
{
    uint64_t seed = 7;
    unsigned state = ORDER_PENDING;

    for (size_t i = 0; i < EVENT_COUNT; i++) {
        const struct det_transition *transition;
        unsigned event = (unsigned)(bench_random(&seed) % order_event_count);

        if (i % WALK == 0)
            state = ORDER_PENDING;
        if (bench_random(&seed) % 4 != 0)
            event = pick_taken(state, &seed);
        events[i] = (uint8_t)event;
        transition = det_machine_step(&order_machine, state, event);
        state = transition->to;
    }
}

/* True if the hand-written machines and the one that was read equal the template's. */
static bool is_same_everywhere(char *note)
{
    for (unsigned cell = 0; cell < order_state_count * order_event_count; cell++) {
        unsigned state = cell / order_event_count, event = cell % order_event_count;
        const struct det_transition *right = det_machine_step(&order_machine, state, event);
        struct walker walkers[4];

        for (unsigned i = 0; i < 4; i++)
            walkers[i] = (struct walker){ .state = state };
        step_table(&walkers[0], event);
        step_switch(&walkers[1], event);
        step_machine(read_machine, &walkers[2], event);
        step_filled(&walkers[3], event);
        for (unsigned i = 0; i < 4; i++) {
            if (walkers[i].state == right->to && walkers[i].outcomes[right->outcome] == 1)
                continue;
            (void)snprintf(
                note, BENCH_NOTE_MAX, "%s, %s: case %u is not what order.fsm says",
                order_machine.states[state].name, order_machine.events[event].name, i);
            return false;
        }
    }
    return true;
}

static int read_spec(char *note)
{
    size_t size;
    char *text = bench_file_read(BENCH_ORDER "/order.fsm", &size);
    int r;

    if (!text) {
        (void)snprintf(note, BENCH_NOTE_MAX, "order.fsm cannot be read");
        return DET_ERR_NOT_FOUND;
    }
    r = det_spec_read("order.fsm", text, size, NULL, &spec);
    free(text);
    if (r < 0)
        return r;
    read_machine = det_spec_machine(spec);
    return read_machine ? 0 : DET_ERR_DEFINITION;
}

static int open_step(char *note)
{
    int r = read_spec(note);

    if (r < 0)
        return r;
    fill_table();
    if (!is_same_everywhere(note))
        return DET_ERR_DEFINITION;
    make_events();
    return bench_file_write("events", events, sizeof events, events_path);
}

static void close_step(void)
{
    det_spec_close(spec);
    spec = NULL;
}

#define GOALS                                      \
    .goals = { { BENCH_RATIO_MAX, 1.5, NULL },     \
               { BENCH_AHEAD_OF, 0, "Boost.MSM" }, \
               { BENCH_ALLOCATIONS_MAX, 0, NULL } }

static const struct bench_case cases[] = {
    { "table in C", BENCH_LIMIT, run_table, NULL, STEPS, .clock = BENCH_OWN },
    { "table in C, every cell filled", BENCH_LIMIT, run_filled, NULL, STEPS, .clock = BENCH_OWN },
    { "switch in C", BENCH_LIMIT, run_switch, NULL, STEPS, .clock = BENCH_OWN },
    { "the template's machine", BENCH_OURS, run_template, NULL, STEPS,
      .against = "table in C, every cell filled", .clock = BENCH_OWN, GOALS },
    { "the machine as read", BENCH_OURS, run_read, NULL, STEPS,
      .against = "table in C, every cell filled", .clock = BENCH_OWN, GOALS },
    { "Boost.MSM", BENCH_PEER, run_msm, NULL, STEPS, .has_no_allocations = true },
    { "gen_statem cast", BENCH_PEER, run_gen_statem, NULL, STEPS_PEER, .has_no_allocations = true },
    { "XState", BENCH_PEER, run_xstate, NULL, STEPS_PEER, .has_no_allocations = true },
};

extern const struct bench bench_step;
const struct bench bench_step = {
    .title = "one step of the order machine, random events",
    .operation = "step",
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
    .open = open_step,
    .close = close_step,
};
