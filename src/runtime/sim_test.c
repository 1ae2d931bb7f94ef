/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sim_test.c - seeded runs: several senders, effects that fail, timers, jumps of the clock, a store
 * that fails before and after its commits, restarts. After every phase each record is one that a
 * single writer could have made, and everything that was answered is in it, once. Every seed is run
 * twice and must leave the same trace. SIM_SEEDS says how many seeds, if more. */
#include "runtime/faulty_test.h"
#include "runtime/history_test.h"

#include "base/hash.h"
#include "os/sim/seeds_cases.h"

#define SENDERS   3
#define INSTANCES 4
#define STEPS     25
#define ACKED_MAX ((size_t)SENDERS * STEPS * 4)

struct acked {
    char event_id[24];
    unsigned instance;
    uint64_t sequence;
    bool is_recorded; /* its answer says that it is in the record */
};

struct scenario {
    struct det_sim *sim;
    struct det_world *world;
    struct det_machine *machine;
    struct faulty faulty;
    struct det_runtime *runtime;
    struct det_mutex *mutex;
    struct det_condition *is_done; /* something that was submitted */
    uint64_t seed;
    struct acked acked[ACKED_MAX];
    size_t acked_count;
    unsigned sender_number;
    /* The last commit of each instance, as reported to the observer. */
    struct {
        uint64_t sequence;
        unsigned state;
        bool is_known;
    } seen[INSTANCES];
};

static bool sim_guard(const struct det_move *move, const void *data, const void *event)
{
    struct scenario *scenario = move->user;

    (void)data;
    (void)event;
    return !det_sim_chance(scenario->sim, 50000);
}

static int sim_hook(const struct det_move *move, const void *data, const void *event)
{
    struct scenario *scenario = move->user;

    (void)data;
    (void)event;
    if (det_sim_chance(scenario->sim, 100000))
        wait_in(scenario->world, (det_time)det_sim_random_below(scenario->sim, 1000) * 1000);
    return det_sim_chance(scenario->sim, 50000) ? -1 : 0;
}

static int sim_effect(struct det_effect_call *call, const void *data, const void *event, void *ret)
{
    struct scenario *scenario = call->move.user;
    unsigned kind = det_sim_chance(scenario->sim, 400000) ? CHARGED : DECLINED;

    (void)data;
    (void)event;
    if (det_sim_chance(scenario->sim, 200000))
        wait_in(scenario->world, (det_time)det_sim_random_below(scenario->sim, 900) * DET_SECOND);
    if (det_sim_chance(scenario->sim, 300000))
        return DET_ERR_IO;
    if (det_sim_chance(scenario->sim, 200000))
        return DET_EFFECT_DONE;
    memcpy(ret, &kind, sizeof kind);
    return DET_EFFECT_PRODUCED;
}

static const char *const names[INSTANCES] = { "o-0", "o-1", "o-2", "o-3" };

/* Every commit is reported, whatever result the store returned: the next number, from where the
 * last one led. */
static void sim_observe(void *user, const struct det_note *note)
{
    struct scenario *scenario = user;
    unsigned i = (unsigned)(note->instance[2] - '0');
    const struct det_transition *transition;

    assert_true(i < INSTANCES);
    if (scenario->seen[i].is_known && note->event != UINT16_MAX) {
        assert_int_equal(note->sequence, scenario->seen[i].sequence + 1);
        assert_int_equal(note->from, scenario->seen[i].state);
        transition = det_machine_step(note->machine, note->from, note->event);
        if (note->outcome <= DET_OUTCOME_STOP)
            assert_int_equal(transition->outcome, note->outcome);
        else
            assert_int_equal(transition->outcome, DET_OUTCOME_UNHANDLED);
    }
    scenario->seen[i].sequence = note->sequence;
    scenario->seen[i].state = note->to;
    scenario->seen[i].is_known = true;
    det_sim_note(scenario->sim, &note->sequence, sizeof note->sequence);
}

static void remember(
    struct scenario *scenario, const char *event_id, unsigned instance, const struct det_sent *sent)
{
    struct acked *acked = &scenario->acked[scenario->acked_count++];

    assert_true(scenario->acked_count <= ACKED_MAX);
    snprintf(acked->event_id, sizeof acked->event_id, "%s", event_id);
    acked->instance = instance;
    acked->sequence = sent->sequence;
    acked->is_recorded = sent->outcome != DET_OUTCOME_IGNORED;
}

struct submission {
    struct det_send send;
    struct scenario *scenario;
    bool is_done;
};

static void submission_done(struct det_send *send)
{
    struct submission *submission = DET_CONTAINER(send, struct submission, send);
    struct scenario *scenario = submission->scenario;

    det_mutex_lock(scenario->world, scenario->mutex);
    submission->is_done = true;
    det_condition_broadcast(scenario->world, scenario->is_done);
    det_mutex_unlock(scenario->world, scenario->mutex);
}

static int submit_and_wait(
    struct scenario *scenario, unsigned instance, const void *event,
    const struct det_send_options *options, struct det_sent *sent)
{
    struct submission submission = { .send = { .machine = scenario->machine,
                                               .instance = names[instance],
                                               .event = event,
                                               .options = *options,
                                               .done = submission_done },
                                     .scenario = scenario };
    int r;

    assert_int_equal(det_runtime_submit(scenario->runtime, &submission.send), 0);
    det_mutex_lock(scenario->world, scenario->mutex);
    while (!submission.is_done)
        (void)det_condition_wait(scenario->world, scenario->is_done, scenario->mutex, DET_NEVER);
    det_mutex_unlock(scenario->world, scenario->mutex);
    r = submission.send.result;
    if (r == 0)
        *sent = submission.send.sent;
    return r;
}

/* Makes the event to send; the same again for a repeat. */
struct request {
    unsigned instance;
    char event_id[24];
    struct order_event first, second;
    bool is_stop, has_second;
};

static struct request draw_request(struct scenario *scenario)
{
    static const unsigned kinds[] = { PAY, PAY, PING, TOUCH, NOTE, NOISE, JUNK, SHIP, CANCEL };
    struct request request = {
        .instance = (unsigned)det_sim_random_below(scenario->sim, INSTANCES),
        .first = { .kind = kinds[det_sim_random_below(scenario->sim, 9)] },
        .second = { .kind = kinds[det_sim_random_below(scenario->sim, 8)] },
    };

    if (request.first.kind == CANCEL && !det_sim_chance(scenario->sim, 200000))
        request.first.kind = PING;
    request.is_stop = det_sim_chance(scenario->sim, 10000);
    request.has_second = det_sim_chance(scenario->sim, 100000);
    return request;
}

static int send_once(
    struct scenario *scenario, const struct request *request, struct det_sent *sent)
{
    const char *name = names[request->instance];
    const void *both[] = { &request->second, &request->first };
    struct det_send_options options = { .event_id = request->event_id };

    if (request->is_stop)
        return det_runtime_cancel(
            scenario->runtime, scenario->machine, name, "chance", &options, sent, NULL);
    if (request->has_second)
        return det_runtime_send_all(
            scenario->runtime, scenario->machine, name, both, 2, &options, sent, NULL);
    if (det_sim_chance(scenario->sim, 300000))
        return submit_and_wait(scenario, request->instance, &request->first, &options, sent);
    return det_runtime_send(
        scenario->runtime, scenario->machine, name, &request->first, &options, sent, NULL);
}

/* The same id for another event is refused, and nothing of it is recorded. */
static void send_other(struct scenario *scenario, const struct request *request)
{
    struct request other = *request;
    struct det_sent sent;
    int r;

    other.first.kind = request->first.kind == PING ? TOUCH : PING;
    other.is_stop = other.has_second = false;
    r = send_once(scenario, &other, &sent);
    assert_true(r == DET_ERR_CONFLICT || r == DET_ERR_IO || r == DET_ERR_TIMEOUT);
}

static void assert_expected_error(int r)
{
    assert_true(
        r == DET_ERR_UNHANDLED || r == DET_ERR_REFUSED || r == DET_ERR_ACTION_FAILED ||
        r == DET_ERR_STOPPED || r == DET_ERR_LIMIT || r == DET_ERR_IO || r == DET_ERR_TIMEOUT);
}

/* Sends, each event with its own id, and the same again when the outcome is unknown. */
static void sender(void *argument)
{
    struct scenario *scenario = argument;
    unsigned number = scenario->sender_number++;

    for (unsigned i = 0; i < STEPS; i++) {
        struct request request = draw_request(scenario);
        struct det_sent sent;
        int r;

        snprintf(request.event_id, sizeof request.event_id, "e-%u-%u", number, i);
        r = send_once(scenario, &request, &sent);
        if (r == DET_ERR_IO)
            r = send_once(scenario, &request, &sent);
        if (r == 0)
            remember(scenario, request.event_id, request.instance, &sent);
        else
            assert_expected_error(r);
        /* Stopping what has stopped records nothing either. */
        if (r == 0 && sent.outcome != DET_OUTCOME_IGNORED && !request.is_stop &&
            det_sim_chance(scenario->sim, 50000))
            send_other(scenario, &request);
        det_sim_note(scenario->sim, &r, sizeof r);
        if (det_sim_chance(scenario->sim, 500000))
            wait_in(
                scenario->world,
                (det_time)det_sim_random_below(scenario->sim, 120) * DET_SECOND + 1);
    }
}

/* In some seeds only one of the instances has room in memory. */
static void reopen(struct scenario *scenario, bool is_observed)
{
    bool is_crowded = scenario->seed % 5 < 2;

    det_runtime_close(scenario->runtime);
    memset(scenario->seen, 0, sizeof scenario->seen);
    assert_int_equal(
        det_runtime_open(
            &scenario->faulty.store,
            &(struct det_runtime_options){ .world = scenario->world,
                                           .user = scenario,
                                           .observer = scenario,
                                           .observe = is_observed ? sim_observe : NULL,
                                           .shards = is_crowded ? 1 : 2,
                                           .instances_max = is_crowded ? 1 : 0,
                                           .writers = 2 },
            &scenario->runtime, NULL),
        0);
}

static void start_all(struct scenario *scenario)
{
    for (unsigned i = 0; i < INSTANCES; i++) {
        int r;

        do
            r = det_runtime_start(
                scenario->runtime, scenario->machine, names[i], NULL, NULL, NULL, NULL);
        while (r != 0 && r != DET_ERR_EXISTS);
    }
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

/* Everything is there that was answered. */
static void check_acked(struct scenario *scenario)
{
    for (size_t i = 0; i < scenario->acked_count; i++) {
        struct search search = { .acked = &scenario->acked[i] };

        assert_int_equal(
            det_runtime_events(
                scenario->runtime, scenario->machine, names[search.acked->instance], 0, find_acked,
                &search, NULL),
            0);
        /* Stopping what has stopped answers, and records nothing. */
        assert_true(search.found <= 1);
        if (!search.found && search.acked->is_recorded) {
            struct det_instance instance;

            assert_int_equal(
                det_runtime_get(
                    scenario->runtime, scenario->machine, names[search.acked->instance], &instance,
                    NULL, NULL),
                0);
            assert_true(instance.is_stopped);
        }
    }
}

static void check_all(struct scenario *scenario)
{
    uint32_t load_chance = scenario->faulty.load_chance;

    scenario->faulty.load_chance = 0;
    for (unsigned i = 0; i < INSTANCES; i++) {
        struct det_instance instance =
            check_history(scenario->runtime, scenario->machine, names[i]);

        det_sim_note(scenario->sim, &instance.sequence, sizeof instance.sequence);
        det_sim_note(scenario->sim, &instance.state, sizeof instance.state);
    }
    check_acked(scenario);
    scenario->faulty.load_chance = load_chance;
}

static void run_phase(struct scenario *scenario)
{
    struct det_thread *threads[SENDERS];

    for (unsigned i = 0; i < SENDERS; i++)
        assert_int_equal(
            det_thread_start(scenario->world, "sender", sender, scenario, &threads[i]), 0);
    for (unsigned i = 0; i < 10; i++) {
        det_time jump = (det_time)det_sim_random_below(scenario->sim, 7200) * DET_SECOND;

        assert_int_equal(
            det_sim_advance(
                scenario->sim, (det_time)det_sim_random_below(scenario->sim, 1200) * DET_SECOND),
            0);
        if (det_sim_chance(scenario->sim, 200000))
            det_sim_jump_wall(scenario->sim, det_sim_chance(scenario->sim, 500000) ? jump : -jump);
        if (det_sim_chance(scenario->sim, 100000))
            det_sim_suspend(scenario->sim, jump);
    }
    for (unsigned i = 0; i < SENDERS; i++)
        det_thread_join(scenario->world, threads[i]);
    assert_int_equal(det_sim_advance(scenario->sim, DET_SECOND), 0);
}

static void set_faults(struct scenario *scenario, uint64_t seed)
{
    if (seed % 3 == 0)
        return;
    scenario->faulty.sim = scenario->sim;
    scenario->faulty.before_chance = 30000;
    scenario->faulty.after_chance = 30000;
    scenario->faulty.load_chance = seed % 3 == 1 ? 0 : 100000;
}

static void quiet_faults(struct scenario *scenario)
{
    scenario->faulty.before_chance = scenario->faulty.after_chance = 0;
    scenario->faulty.load_chance = 0;
}

/* One seed, from an empty store to a closed one; returns the hash of the trace. */
static uint64_t run_seed(uint64_t seed)
{
    struct scenario *scenario = calloc(1, sizeof *scenario);
    struct det_store *inner;
    uint64_t hash;

    assert_non_null(scenario);
    scenario->machine = order_machine_of(sim_guard, sim_hook, sim_effect);
    assert_int_equal(
        det_sim_open(&(struct det_sim_options){ .seed = seed }, &scenario->sim, NULL), 0);
    scenario->world = det_sim_world(scenario->sim);
    assert_int_equal(
        det_store_open_with(
            "memory:",
            &(struct det_store_options){
                .world = scenario->world, .events_kept = 4096, .event_ids_kept = 4096 },
            &inner, NULL),
        0);
    scenario->faulty.inner = inner;
    scenario->faulty.store =
        (struct det_store){ .ops = seed % 2 ? &faulty_quick_ops : &faulty_slow_ops,
                            .world = scenario->world };
    scenario->seed = seed;
    assert_int_equal(det_mutex_open(scenario->world, &scenario->mutex), 0);
    assert_int_equal(det_condition_open(scenario->world, &scenario->is_done), 0);
    set_faults(scenario, seed);
    reopen(scenario, seed % 4 < 2);
    start_all(scenario);
    run_phase(scenario);
    check_all(scenario);
    reopen(scenario, seed % 4 >= 2);
    start_all(scenario);
    run_phase(scenario);
    check_all(scenario);
    /* When all heals, everything finishes. */
    quiet_faults(scenario);
    assert_int_equal(det_runtime_settle(scenario->runtime, 10 * DET_DAY), 0);
    check_all(scenario);
    det_runtime_close(scenario->runtime);
    det_store_close(inner);
    det_condition_close(scenario->world, scenario->is_done);
    det_mutex_close(scenario->world, scenario->mutex);
    hash = det_sim_hash(scenario->sim);
    det_sim_close(scenario->sim);
    det_machine_close(scenario->machine);
    free(scenario);
    return hash;
}

static void every_seed_keeps_the_invariants_and_its_trace(void **state)
{
    uint64_t first = 0, count = seeds_count(300);
    bool is_different = false;

    (void)state;
    for (uint64_t seed = 1; seed <= count; seed++) {
        uint64_t hash = run_seed(seed), again = run_seed(seed);

        if (hash != again)
            fail_msg("seed %llu left two different traces", (unsigned long long)seed);
        is_different = is_different || (first && hash != first);
        first = hash;
    }
    assert_true(is_different);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_seed_keeps_the_invariants_and_its_trace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
