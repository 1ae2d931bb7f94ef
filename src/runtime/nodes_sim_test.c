/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* nodes_sim_test.c - seeded runs of one to three nodes on one store: senders that go to any node,
 * with event ids, under locks and without, while nodes are stopped, cut off, killed and replaced,
 * answers get lost, clocks jump and the machine sleeps. 500 steps a seed.
 *
 * What holds at the end of every seed
 *   1. each record is one that a single writer could have made, with no event id in it twice;
 *   2. what was answered is in it, at the sequence of the answer;
 *   3. no event of others is between those of a lock;
 *   4. no timer has fired before its time by the store's clock, and none twice in a visit;
 *   5. every effect that was asked for has run, and none that was not;
 *   6. when all heals, some node does everything that is due.
 * Every seed is run twice and must leave the same trace. SIM_SEEDS is the last one, if more than a
 * few are wanted, and SIM_FIRST the first. */
#include <limits.h>

#include "runtime/history_test.h"
#include "runtime/nodes_test.h"

#include "os/sim/seeds_cases.h"

#define SENDERS       3
#define SENDS         150 /* of each */
#define BLOWS         50
#define INSTANCES     12
#define SEQUENCES_MAX 1024
#define ACKED_MAX     ((size_t)SENDERS * SENDS * 2)

struct acked {
    char event_id[24];
    unsigned instance;
    uint64_t sequence;
    bool is_recorded; /* its answer says that it is in the record */
};

struct cluster {
    struct nodes nodes;
    struct det_world *world;
    unsigned count;
    unsigned users[NODES_MAX]; /* calls under way */
    bool is_closing[NODES_MAX];
    unsigned sender_number;
    struct acked acked[ACKED_MAX];
    size_t acked_count;
    uint8_t ran[INSTANCES][SEQUENCES_MAX]; /* effects, by the sequence that asked for them */
    unsigned fences;                       /* locks that were had */
};

static char names[INSTANCES][8];

static bool chance(struct cluster *c, uint32_t millionths)
{
    return det_sim_chance(c->nodes.sim, millionths);
}

static unsigned below(struct cluster *c, uint64_t bound)
{
    return (unsigned)det_sim_random_below(c->nodes.sim, bound);
}

/* User code. */

static bool may_pay(const struct det_move *move, const void *data, const void *event)
{
    (void)data;
    (void)event;
    return !chance(move->user, 50000);
}

static int hook(const struct det_move *move, const void *data, const void *event)
{
    struct cluster *c = move->user;

    (void)data;
    (void)event;
    if (chance(c, 20000))
        wait_in(c->world, (det_time)below(c, 1000) * DET_MILLISECOND + 1);
    return chance(c, 20000) ? -1 : 0;
}

static int charge(struct det_effect_call *call, const void *data, const void *event, void *ret)
{
    struct cluster *c = call->move.user;
    unsigned kind = chance(c, 500000) ? CHARGED : DECLINED;
    unsigned instance = (unsigned)strtoul(call->move.instance + 2, NULL, 10);

    (void)data;
    (void)event;
    assert_true(instance < INSTANCES && call->move.sequence < SEQUENCES_MAX);
    c->ran[instance][call->move.sequence] = 1;
    if (chance(c, 100000))
        wait_in(c->world, (det_time)below(c, 600) * DET_SECOND + 1);
    if (chance(c, 200000))
        return DET_ERR_IO;
    if (chance(c, 100000))
        return DET_EFFECT_DONE;
    memcpy(ret, &kind, sizeof kind);
    return DET_EFFECT_PRODUCED;
}

/* Nodes. */

static int open_node(struct cluster *c, unsigned i)
{
    static const struct det_lock_options patience = { .wait = 5 * DET_SECOND };
    struct det_runtime_options options = {
        .world = c->world,
        .user = c,
        .shards = 2,
        .lock = &patience,
        .node = { .lease = 5 * DET_MINUTE, .sweep_interval = DET_MINUTE },
    };
    int r;

    options.locking = i == 1 ? DET_LOCKING_LEASE : DET_LOCKING_OPTIMISTIC;
    c->nodes.store[i] = det_shared_node(c->nodes.shared);
    r = det_runtime_open(c->nodes.store[i], &options, &c->nodes.runtime[i], NULL);
    if (r == 0) {
        r = det_runtime_serve(c->nodes.runtime[i], c->nodes.order, NULL);
        if (r < 0)
            det_runtime_close(c->nodes.runtime[i]);
    }
    if (r < 0) {
        det_store_close(c->nodes.store[i]);
        c->nodes.store[i] = NULL;
        c->nodes.runtime[i] = NULL;
    }
    return r;
}

static void wait_for_users(struct cluster *c, unsigned i)
{
    c->is_closing[i] = true;
    while (c->users[i])
        wait_in(c->world, 100 * DET_MILLISECOND);
}

/* No thread uses it now; until its successor is open, no thread can. */
static void replace_node(struct cluster *c, unsigned i, bool is_killed)
{
    c->is_closing[i] = true;
    if (is_killed)
        det_shared_kill(c->nodes.store[i]);
    else
        det_shared_pause(c->nodes.store[i], false);
    wait_for_users(c, i);
    node_close(&c->nodes, i);
    wait_in(c->world, (det_time)below(c, 900) * DET_SECOND + 1);
    while (open_node(c, i) < 0)
        wait_in(c->world, DET_SECOND);
    c->is_closing[i] = false;
}

/* A node that can be used; UINT_MAX: none now. */
static unsigned use_node(struct cluster *c)
{
    unsigned first = below(c, c->count);

    for (unsigned k = 0; k < c->count; k++) {
        unsigned i = (first + k) % c->count;

        if (!c->is_closing[i]) {
            c->users[i]++;
            return i;
        }
    }
    return UINT_MAX;
}

/* Senders. */

static void remember(
    struct cluster *c, const char *event_id, unsigned instance, const struct det_sent *sent)
{
    struct acked *acked = &c->acked[c->acked_count++];

    assert_true(c->acked_count <= ACKED_MAX);
    snprintf(acked->event_id, sizeof acked->event_id, "%s", event_id);
    acked->instance = instance;
    acked->sequence = sent->sequence;
    acked->is_recorded = sent->outcome != DET_OUTCOME_IGNORED;
}

static struct order_event draw_event(struct cluster *c)
{
    static const unsigned kinds[] = { PAY, PAY, PING, TOUCH, TOUCH, NOTE, NOISE, JUNK, SHIP };
    struct order_event event = { .kind = kinds[below(c, sizeof kinds / sizeof kinds[0])] };

    if (chance(c, 20000))
        event.kind = CANCEL;
    if (event.kind == PAY)
        event.as.pay = (struct payment){ .cents = below(c, 10000), .card = "4242" };
    return event;
}

/* One send to one node; the answer is remembered. */
static int send_to(
    struct cluster *c, unsigned node, unsigned instance, const struct order_event *event,
    const char *event_id)
{
    struct det_runtime *runtime = c->nodes.runtime[node];
    struct det_send_options options = { .event_id = event_id };
    struct det_sent sent;
    int r;

    r = det_runtime_send(runtime, c->nodes.order, names[instance], event, &options, &sent, NULL);
    if (r == DET_ERR_NOT_FOUND) {
        r = det_runtime_start(runtime, c->nodes.order, names[instance], NULL, NULL, NULL, NULL);
        return r == 0 || r == DET_ERR_EXISTS ? DET_ERR_IO : r;
    }
    if (r == 0)
        remember(c, event_id, instance, &sent);
    return r;
}

/* Until it is known what became of it, or patience ends: with the same id, wherever. */
static void send_somewhere(struct cluster *c, const char *event_id)
{
    struct order_event event = draw_event(c);
    unsigned instance = below(c, INSTANCES);
    int r = DET_ERR_IO;

    for (int i = 0; i < 4 && r == DET_ERR_IO; i++) {
        unsigned node = use_node(c);

        if (node == UINT_MAX)
            return;
        r = send_to(c, node, instance, &event, event_id);
        c->users[node]--;
    }
    det_sim_note(c->nodes.sim, &r, sizeof r);
}

/* 3: for a holder of the lock the instance stays as after the holder's own event, however long it
 * waits. */
static int send_locked(struct cluster *c, unsigned node, unsigned instance, const char *event_id)
{
    struct det_lock_options options = { .span = 30 * DET_SECOND, .wait = 5 * DET_SECOND };
    struct order_event ping = { .kind = TOUCH };
    struct det_send_options first = { .event_id = event_id };
    struct det_sent one, two;
    struct det_lock *lock;
    int r;

    r = det_lock_open(
        c->nodes.runtime[node], c->nodes.order, names[instance], &options, &lock, NULL);
    if (r < 0)
        return r;
    c->fences++;
    r = det_lock_send(lock, &ping, &first, &one, NULL);
    if (r == 0) {
        remember(c, event_id, instance, &one);
        if (chance(c, 300000))
            wait_in(c->world, (det_time)below(c, 90) * DET_SECOND + 1);
        r = det_lock_send(lock, &ping, NULL, &two, NULL);
    }
    if (r == 0)
        assert_int_equal(two.sequence, one.sequence + 1);
    det_lock_close(lock);
    return r;
}

static void lock_somewhere(struct cluster *c, const char *event_id)
{
    unsigned node = use_node(c);
    int r;

    if (node == UINT_MAX)
        return;
    r = send_locked(c, node, below(c, INSTANCES), event_id);
    c->users[node]--;
    det_sim_note(c->nodes.sim, &r, sizeof r);
}

static void sender(void *argument)
{
    struct cluster *c = argument;
    unsigned number = c->sender_number++;
    char event_id[24];

    for (unsigned i = 0; i < SENDS; i++) {
        snprintf(event_id, sizeof event_id, "e-%u-%u", number, i);
        if (chance(c, 100000))
            lock_somewhere(c, event_id);
        else
            send_somewhere(c, event_id);
        if (chance(c, 500000))
            wait_in(c->world, (det_time)below(c, 180) * DET_SECOND + 1);
    }
}

/* Faults of nodes. */

static void blow(struct cluster *c)
{
    unsigned i = below(c, c->count);
    det_time span = (det_time)below(c, 900) * DET_SECOND;

    switch (below(c, 8)) {
    case 0:
    case 1:
        det_shared_pause(c->nodes.store[i], true);
        wait_in(c->world, span + 1);
        det_shared_pause(c->nodes.store[i], false);
        break;
    case 2:
        replace_node(c, i, true);
        break;
    case 3:
        replace_node(c, i, false);
        break;
    case 4:
        det_sim_jump_wall(c->nodes.sim, chance(c, 500000) ? span : -span);
        break;
    case 5:
        det_sim_suspend(c->nodes.sim, span);
        break;
    case 6:
        det_shared_set_faults(
            c->nodes.shared, (struct det_shared_faults){ below(c, 50000), below(c, 50000) });
        break;
    case 7:
        det_shared_fail(c->nodes.store[i], below(c, 8), chance(c, 500000));
        break;
    default:
        fail();
    }
}

static void nemesis(void *argument)
{
    struct cluster *c = argument;

    for (unsigned i = 0; i < BLOWS; i++) {
        blow(c);
        wait_in(c->world, (det_time)below(c, 300) * DET_SECOND + 1);
    }
}

/* The checks. */

struct timing {
    struct cluster *c;
    unsigned instance;
    det_time entered, last;
    uint64_t fired_in; /* the visit in which a timer of the state fired last */
};

/* 4 and 5. */
static int check_time(void *context, const struct det_event_record *row)
{
    struct timing *timing = context;
    det_time after = timing->c->nodes.order->states[row->from].timeout.after;

    assert_true(row->at >= timing->last);
    if (row->is_timeout && row->event != REMIND)
        assert_true(row->at >= timing->entered + after);
    if (row->event == PAY && row->outcome == DET_OUTCOME_GOTO)
        assert_true(timing->c->ran[timing->instance][row->sequence]);
    else
        assert_false(timing->c->ran[timing->instance][row->sequence]);
    timing->last = row->at;
    if (row->outcome == DET_OUTCOME_GOTO)
        timing->entered = row->at;
    return 0;
}

struct search {
    const struct acked *acked;
    unsigned found;
};

static int find_acked(void *context, const struct det_event_record *row)
{
    struct search *search = context;

    if (row->event_id && strcmp(row->event_id, search->acked->event_id) == 0) {
        assert_int_equal(row->sequence, search->acked->sequence);
        search->found++;
    }
    return 0;
}

static void check_acked(struct cluster *c, struct det_runtime *runtime)
{
    for (size_t i = 0; i < c->acked_count; i++) {
        struct search search = { .acked = &c->acked[i] };

        assert_int_equal(
            det_runtime_events(
                runtime, c->nodes.order, names[search.acked->instance], 0, find_acked, &search,
                NULL),
            0);
        assert_int_equal(search.found, search.acked->is_recorded);
    }
}

static void check_all(struct cluster *c, struct det_runtime *runtime)
{
    for (unsigned i = 0; i < INSTANCES; i++) {
        struct timing timing = { .c = c, .instance = i };
        struct det_instance instance;
        int r;

        r = det_runtime_get(runtime, c->nodes.order, names[i], &instance, NULL, NULL);
        if (r == DET_ERR_NOT_FOUND)
            continue;
        assert_int_equal(r, 0);
        instance = check_history(runtime, c->nodes.order, names[i]);
        timing.entered = instance.started_at;
        assert_int_equal(
            det_runtime_events(runtime, c->nodes.order, names[i], 0, check_time, &timing, NULL), 0);
        det_sim_note(c->nodes.sim, &instance.sequence, sizeof instance.sequence);
        det_sim_note(c->nodes.sim, &instance.state, sizeof instance.state);
    }
    check_acked(c, runtime);
}

/* 6. */
static void heal(struct cluster *c)
{
    det_shared_set_faults(c->nodes.shared, (struct det_shared_faults){ 0 });
    for (unsigned i = 0; i < c->count; i++) {
        det_shared_fail(c->nodes.store[i], 0, false);
        det_shared_pause(c->nodes.store[i], false);
    }
    assert_int_equal(det_sim_advance(c->nodes.sim, 3 * DET_HOUR), 0);
    assert_int_equal(det_shared_rows(c->nodes.shared, NULL), 0);
}

static void run_threads(struct cluster *c)
{
    struct det_thread *threads[SENDERS + 1];

    for (unsigned i = 0; i <= SENDERS; i++)
        assert_int_equal(
            det_thread_start(c->world, "actor", i ? sender : nemesis, c, &threads[i]), 0);
    for (unsigned i = 0; i <= SENDERS; i++)
        det_thread_join(c->world, threads[i]);
}

static uint64_t run_seed(uint64_t seed, unsigned *fences)
{
    struct cluster *c = calloc(1, sizeof *c);
    uint64_t hash;

    assert_non_null(c);
    c->nodes.order = order_machine_of(may_pay, hook, charge);
    assert_int_equal(
        det_sim_open(&(struct det_sim_options){ .seed = seed }, &c->nodes.sim, NULL), 0);
    c->world = det_sim_world(c->nodes.sim);
    c->nodes.shared = det_shared_open(c->nodes.sim, NULL);
    c->count = 1 + (unsigned)(seed % 3);
    for (unsigned i = 0; i < c->count; i++)
        assert_int_equal(open_node(c, i), 0);
    run_threads(c);
    heal(c);
    assert_int_equal(open_node(c, c->count), 0);
    check_all(c, c->nodes.runtime[c->count]);
    *fences += c->fences;
    for (unsigned i = 0; i <= c->count; i++)
        node_close(&c->nodes, i);
    det_shared_close(c->nodes.shared);
    hash = det_sim_hash(c->nodes.sim);
    det_sim_close(c->nodes.sim);
    det_machine_close(c->nodes.order);
    free(c);
    return hash;
}

/* The seed that is run; 0: none. */
static uint64_t current;

static int report_seed(void **unused)
{
    (void)unused;
    if (current)
        print_error("in seed %llu\n", (unsigned long long)current);
    return 0;
}

static uint64_t first_seed(void)
{
    const char *text = getenv("SIM_FIRST"); /* NOLINT(concurrency-mt-unsafe): one thread */

    return text ? strtoull(text, NULL, 10) : 1;
}

static void every_seed_keeps_the_invariants_and_its_trace(void **unused)
{
    uint64_t first = first_seed(), last = seeds_count(20);
    unsigned fences = 0;

    (void)unused;
    for (unsigned i = 0; i < INSTANCES; i++)
        snprintf(names[i], sizeof names[i], "o-%u", i);
    for (current = first; current <= last; current++) {
        uint64_t hash = run_seed(current, &fences), again = run_seed(current, &fences);

        assert_int_equal(hash, again);
    }
    current = 0;
    assert_true(fences > 0);
    print_message("             %llu seeds, twice each\n", (unsigned long long)(last + 1 - first));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_seed_keeps_the_invariants_and_its_trace, report_seed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
