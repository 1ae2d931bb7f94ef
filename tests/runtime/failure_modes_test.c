/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* failure_modes_test.c - failure modes of durable state machines that detent prevents.
 * docs/internals/failure_modes.md lists all of them, with the tests in other files.
 *
 *     WAITING --ring, after half an hour--> GONE
 *       +--touched, hurried--> WAITING, another visit of half an hour, of a second */
#include "runtime/nodes_test.h"

enum { WAITING, GONE };
enum { RING, TOUCHED, HURRIED };

#define HALF_AN_HOUR (30 * DET_MINUTE)
/* As in sweeper_test.c: the longest until what a dead node has left is another one's. */
#define TAKEOVER (30 * DET_SECOND)

/* Calls back once, and refuses the instances whose names begin with b. */
static int fire(const struct det_move *move, const void *data, const void *event)
{
    struct order_control *control = move->user;
    void (*call)(void *context) = control->in_guard;

    (void)data;
    (void)event;
    control->hooks++;
    control->in_guard = NULL;
    if (call)
        call(control->context);
    return move->instance[0] == 'b' ? control->hook_result : 0;
}

static struct det_machine *bell_machine(const char *name)
{
    struct det_machine_builder *b;

    assert_int_equal(det_machine_builder_open(name, NULL, &b), 0);
    det_machine_builder_state(
        b, &(struct det_state_row){ .name = "WAITING", .flags = DET_STATE_INITIAL });
    det_machine_builder_state(
        b, &(struct det_state_row){ .name = "GONE", .flags = DET_STATE_FINAL });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "RING" });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "TOUCHED" });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "HURRIED" });
    det_machine_builder_hook(b, "fire", fire);
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("WAITING"),
                                 .events = DET_LIST("RING"),
                                 .outcome = DET_OUTCOME_GOTO,
                                 .to = "GONE",
                                 .hook = "fire" });
    order_on(b, "WAITING", "TOUCHED", "WAITING");
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("WAITING"),
                                 .events = DET_LIST("HURRIED"),
                                 .outcome = DET_OUTCOME_GOTO,
                                 .to = "WAITING",
                                 .within = { .after = DET_SECOND, .event = "RING" } });
    det_machine_builder_after(
        b, DET_LIST("WAITING"),
        &(struct det_timeout_row){ .after = HALF_AN_HOUR, .event = "RING" });
    return built(b);
}

/* Two nodes that serve the bell. */
static struct nodes *bells_open(void)
{
    struct nodes *n = nodes_open(0, (struct det_runtime_options){ 0 });

    det_machine_close(n->order);
    n->order = bell_machine("bell");
    node_open(n, 0);
    node_open(n, 1);
    return n;
}

static struct det_instance inspect(
    struct nodes *n, unsigned i, const struct det_machine *machine, const char *id)
{
    struct det_instance instance;

    assert_int_equal(det_runtime_get(n->runtime[i], machine, id, &instance, NULL, NULL), 0);
    return instance;
}

static void assert_at(
    struct nodes *n, const struct det_machine *machine, const char *id, unsigned state,
    uint64_t sequence)
{
    struct det_instance instance = inspect(n, 1, machine, id);

    assert_int_equal(instance.state, state);
    assert_int_equal(instance.sequence, sequence);
}

/* A sweeper that compares the timers of all instances with the state of one would delete the timers
 * of others as stale, or send their event to the wrong instance. */
static void a_sweeper_fires_each_timer_on_its_own_instance(void **unused)
{
    struct nodes *n = bells_open();
    struct det_machine *gong = bell_machine("gong");

    (void)unused;
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(det_runtime_serve(n->runtime[i], gong, &n->error), 0);
    assert_int_equal(node_start(n, 1, "own"), 0);
    assert_int_equal(node_start(n, 0, "same"), 0);
    assert_int_equal(node_start(n, 0, "moved"), 0);
    assert_int_equal(node_send(n, 0, "moved", TOUCHED), 0);
    pass(n, 10 * DET_MINUTE);
    /* The same id, state and sequence in another machine, and another in the same machine. */
    assert_int_equal(det_runtime_start(n->runtime[0], gong, "same", NULL, NULL, NULL, NULL), 0);
    assert_int_equal(node_start(n, 0, "later"), 0);
    node_kill(n, 0);
    pass(n, 20 * DET_MINUTE);
    assert_at(n, n->order, "own", GONE, 1);
    assert_at(n, n->order, "same", GONE, 1);
    assert_at(n, n->order, "moved", GONE, 2);
    assert_at(n, gong, "same", WAITING, 0);
    assert_at(n, n->order, "later", WAITING, 0);
    assert_int_equal(det_shared_rows(n->shared, NULL), 2);
    pass(n, 10 * DET_MINUTE);
    assert_at(n, gong, "same", GONE, 1);
    assert_at(n, n->order, "later", GONE, 1);
    assert_int_equal(node_counts(n, 1).timeouts_fired, 5);
    assert_int_equal(n->control.incidents, 0);
    nodes_close(n);
    det_machine_close(gong);
}

static void pay(struct nodes *n, unsigned i, const char *id)
{
    struct order_event event = { .kind = PAY, .as.pay = { .cents = 100, .card = "4242" } };

    assert_int_equal(
        det_runtime_send(n->runtime[i], n->order, id, &event, NULL, &n->sent, NULL), 0);
}

/* An effect that is only a task in memory would be lost with its process. */
static void an_effect_survives_the_process_that_requested_it(void **unused)
{
    struct nodes *n = nodes_open(2, (struct det_runtime_options){ 0 });
    struct recorded all = { 0 };

    (void)unused;
    assert_int_equal(node_start(n, 0, "o-1"), 0);
    pay(n, 0, "o-1");
    node_kill(n, 0);
    assert_int_equal(inspect(n, 1, n->order, "o-1").state, CHARGING);
    n->control.effects = 0;
    pass(n, TAKEOVER);
    assert_int_equal(n->control.effects, 1);
    assert_key(n->control.key, "order/o-1/1/0");
    assert_at(n, n->order, "o-1", PAID, 2);
    /* What it has produced says why it is there. */
    assert_int_equal(
        det_runtime_events(n->runtime[1], n->order, "o-1", 1, record_row, &all, NULL), 0);
    assert_int_equal(all.count, 1);
    assert_key(all.rows[0].cause, "order/o-1/1/0");
    nodes_close(n);
}

static void cancel(void *context)
{
    struct fixture *f = context;

    assert_int_equal(send_kind(f, "o-1", CANCEL), 0);
}

static void a_rejected_effect_result_is_reported(void **unused)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    (void)unused;
    f->control.in_effect = cancel;
    f->control.context = f;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_PRODUCT_REJECTED], 1);
    assert_key(f->control.incident_key, "order/o-1/1/0");
    assert_int_equal(counts(f).products_rejected, 1);
    fixture_close(f);
}

/* Ends the process around one of the store calls of a send. Returns whether the event is stored. */
static bool cut(unsigned calls, bool is_before)
{
    struct nodes *n = bells_open();
    struct det_instance instance;
    struct listed_timers all = { 0 };
    det_time due;
    bool is_there;

    assert_int_equal(node_start(n, 0, "o-1"), 0);
    pass(n, 10 * DET_MINUTE);
    det_shared_fail(n->store[0], calls, is_before);
    (void)node_send(n, 0, "o-1", TOUCHED);
    node_kill(n, 0);
    instance = inspect(n, 1, n->order, "o-1");
    is_there = instance.sequence == 1;
    assert_int_equal(det_runtime_timers(n->runtime[1], n->order, "o-1", list_timer, &all, NULL), 0);
    assert_int_equal(all.count, 1);
    assert_int_equal(all.rows[0].visit, instance.visit);
    due = instance.last_transition_at;
    if (!is_there)
        due = instance.started_at;
    assert_int_equal(all.rows[0].due, due + HALF_AN_HOUR);
    pass(n, HALF_AN_HOUR - (is_there ? 0 : 10 * DET_MINUTE) - 1);
    assert_int_equal(inspect(n, 1, n->order, "o-1").state, WAITING);
    pass(n, 1);
    assert_int_equal(inspect(n, 1, n->order, "o-1").state, GONE);
    nodes_close(n);
    return is_there;
}

/* With two statements, a crash in between would leave a visit without its timer. */
static void an_event_and_its_timer_commit_atomically(void **unused)
{
    unsigned there = 0, runs = 0;

    (void)unused;
    for (unsigned calls = 0; calls < 6; calls++)
        for (unsigned is_before = 0; is_before < 2; is_before++, runs++)
            there += cut(calls, is_before);
    assert_in_range(there, 1, runs - 1);
}

/* A replay that ignores stops would run the instance and set the timer of its state again. */
static void a_stopped_instance_stays_stopped_after_a_restart(void **unused)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    (void)unused;
    assert_int_equal(start(f, "by-hand"), 0);
    assert_int_equal(
        det_runtime_cancel(f->runtime, f->order, "by-hand", "enough", NULL, &f->sent, NULL), 0);
    assert_int_equal(start(f, "by-row"), 0);
    assert_int_equal(send_kind(f, "by-row", PAY), 0);
    settle(f);
    assert_int_equal(send_kind(f, "by-row", HALT), 0);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(det_runtime_serve(f->runtime, f->order, &f->error), 0);
    assert_true(get(f, "by-hand").is_stopped);
    assert_string_equal(get(f, "by-hand").reason, "enough");
    assert_true(get(f, "by-row").is_stopped);
    assert_string_equal(get(f, "by-row").reason, "done");
    assert_int_equal(timers(f, "by-hand")->count, 0);
    assert_int_equal(send_kind(f, "by-hand", CANCEL), DET_ERR_STOPPED);
    assert_int_equal(send_kind(f, "by-row", CANCEL), DET_ERR_STOPPED);
    advance(f, DET_DAY);
    assert_int_equal(get(f, "by-hand").state, PENDING);
    assert_int_equal(counts(f).timeouts_fired, 0);
    fixture_close(f);
}

static void start_many(struct fixture *f, const char *prefix, unsigned count)
{
    char id[16];

    for (unsigned i = 0; i < count; i++) {
        snprintf(id, sizeof id, "%s-%u", prefix, i);
        assert_int_equal(start(f, id), 0);
    }
}

/* Without backoff, refused timers would be the first of every sweep; as many of them as one sweep
 * takes, 100, would block all others. */
static void refused_timers_delay_no_others_and_become_dead_letters(void **unused)
{
    enum { BAD = 150, GOOD = 20, ATTEMPTS = 8 };
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    (void)unused;
    det_machine_close(f->order);
    f->order = bell_machine("bell");
    f->control.hook_result = -1;
    start_many(f, "bad", BAD);
    advance(f, DET_SECOND);
    start_many(f, "good", GOOD);
    advance(f, HALF_AN_HOUR - 1);
    assert_int_equal(counts(f).timeouts_fired, 0);
    advance(f, 1);
    assert_int_equal(counts(f).timeouts_fired, GOOD);
    assert_int_equal(get(f, "good-19").state, GONE);
    /* Each is tried again a while, later each time, and then told as given up. */
    advance(f, DET_DAY);
    assert_int_equal(f->control.hooks, GOOD + ATTEMPTS * BAD);
    assert_int_equal(counts(f).timeouts_rejected, BAD);
    assert_int_equal(timers(f, "bad-0")->count, 1);
    assert_int_equal(get(f, "bad-0").state, WAITING);
    advance(f, DET_DAY);
    assert_int_equal(f->control.hooks, GOOD + ATTEMPTS * BAD);
    fixture_close(f);
}

/* Like a process that a signal suspends between its decision and its commit. */
static void stop_the_first(void *context)
{
    struct nodes *n = context;

    det_shared_pause(n->store[0], true);
}

static void stop_while_firing(struct nodes *n, const char *id)
{
    n->control.in_guard = stop_the_first;
    n->control.context = n;
    assert_int_equal(node_start(n, 0, id), 0);
    pass(n, HALF_AN_HOUR);
    assert_int_equal(n->control.hooks, 1);
    assert_int_equal(inspect(n, 1, n->order, id).state, WAITING);
}

/* A node that was suspended while it fired a timer continues after another node has fired it. */
static void timer_fired_by_a_suspended_node_counts_once(void **unused)
{
    struct nodes *n = bells_open();

    (void)unused;
    stop_while_firing(n, "o-1");
    pass(n, TAKEOVER);
    assert_at(n, n->order, "o-1", GONE, 1);
    assert_int_equal(node_counts(n, 1).timeouts_fired, 1);
    det_shared_pause(n->store[0], false);
    pass(n, DET_HOUR);
    assert_int_equal(node_counts(n, 0).timeouts_fired, 0);
    assert_at(n, n->order, "o-1", GONE, 1);
    assert_int_equal(det_shared_rows(n->shared, NULL), 0);
    nodes_close(n);
}

/* The timer changes between the decision of a node and its commit. */
static void a_timer_rescheduled_during_its_firing_fires_at_its_new_deadline(void **unused)
{
    struct nodes *n = bells_open();

    (void)unused;
    stop_while_firing(n, "o-1");
    assert_int_equal(node_send(n, 1, "o-1", HURRIED), 0);
    det_shared_pause(n->store[0], false);
    pass(n, DET_SECOND - 1);
    assert_at(n, n->order, "o-1", WAITING, 1);
    assert_int_equal(node_counts(n, 0).timeouts_fired, 0);
    pass(n, 1);
    assert_at(n, n->order, "o-1", GONE, 2);
    assert_int_equal(node_counts(n, 0).timeouts_fired + node_counts(n, 1).timeouts_fired, 1);
    nodes_close(n);
}

static void be_slow_once(void *context)
{
    struct fixture *f = context;

    f->control.in_effect = NULL;
    f->control.effect_result = DET_EFFECT_DONE;
    wait_in(det_sim_world(f->sim), 15 * DET_MINUTE);
    f->control.effect_result = DET_EFFECT_PRODUCED;
}

/* The late result of a first payment attempt must not complete a second one. */
static void the_late_result_of_an_effect_is_rejected_in_a_later_visit(void **unused)
{
    struct fixture *f =
        fixture_open((struct det_runtime_options){ .effects = { .same_visit_only = true } });

    (void)unused;
    f->control.in_effect = be_slow_once;
    f->control.context = f;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    advance(f, 10 * DET_MINUTE);
    assert_int_equal(get(f, "o-1").state, PENDING);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    advance(f, 5 * DET_MINUTE);
    assert_int_equal(f->control.effects, 2);
    assert_int_equal(get(f, "o-1").state, CHARGING);
    assert_int_equal(get(f, "o-1").sequence, 3);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_PRODUCT_REJECTED], 1);
    assert_int_equal(f->control.incident.code, DET_ERR_CONFLICT);
    fixture_close(f);
}

static struct det_machine *overridden_machine(void)
{
    struct det_machine_builder *b;

    assert_int_equal(det_machine_builder_open("order", NULL, &b), 0);
    det_machine_builder_data(b, &order_data_record);
    order_names(b, true);
    order_rows(b);
    order_on(b, "PAID", "PAY", "CHARGING");
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("PENDING"),
                                 .events = DET_LIST("PAY"),
                                 .outcome = DET_OUTCOME_GOTO,
                                 .to = "PAID",
                                 .is_override = true });
    return built(b);
}

static void an_overridden_row_leaves_no_hook_and_no_effect(void **unused)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });

    (void)unused;
    det_machine_close(f->order);
    f->order = overridden_machine();
    f->control.guard_refuses = true;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    assert_string_equal(f->control.trace, "start exit");
    assert_int_equal(f->control.guards + f->control.hooks + f->control.effects, 0);
    assert_int_equal(timers(f, "o-1")->count, 0);
    assert_int_equal(get(f, "o-1").state, PAID);
    assert_int_equal(get(f, "o-1").sequence, 1);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sweeper_fires_each_timer_on_its_own_instance),
        cmocka_unit_test(an_effect_survives_the_process_that_requested_it),
        cmocka_unit_test(a_rejected_effect_result_is_reported),
        cmocka_unit_test(an_event_and_its_timer_commit_atomically),
        cmocka_unit_test(a_stopped_instance_stays_stopped_after_a_restart),
        cmocka_unit_test(refused_timers_delay_no_others_and_become_dead_letters),
        cmocka_unit_test(timer_fired_by_a_suspended_node_counts_once),
        cmocka_unit_test(a_timer_rescheduled_during_its_firing_fires_at_its_new_deadline),
        cmocka_unit_test(the_late_result_of_an_effect_is_rejected_in_a_later_visit),
        cmocka_unit_test(an_overridden_row_leaves_no_hook_and_no_effect),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
