/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_forest_test.c - trees that change at random, by spec and by hand, while workers fail,
 * hang, want to begin anew and the supervisor is closed and opened: when all of that is over there
 * is exactly what is wanted, in the tree and in the store. */
#define SEEDS 60
#include "worker/forest_test.h"

#include <detent/tool/documents.h>

/* What is wanted: two parents with three children each at most, in the spec and by hand. */
#define PARENTS  2
#define CHILDREN 3
struct wanted {
    bool is_in_spec[PARENTS + PARENTS * CHILDREN];
    bool is_twin[PARENTS + PARENTS * CHILDREN];
    bool is_by_hand[PARENTS + PARENTS * CHILDREN];
    bool is_manual_twin[PARENTS + PARENTS * CHILDREN];
    bool was_reopened;
};
#define PLACES (PARENTS + PARENTS * CHILDREN)

static unsigned parent_of(unsigned place)
{
    return (place - PARENTS) / CHILDREN;
}

static void name_of(unsigned place, char *ret, size_t size)
{
    if (place < PARENTS)
        snprintf(ret, size, "p%u", place);
    else
        snprintf(ret, size, "c%u", (place - PARENTS) % CHILDREN);
}

static void id_of(unsigned place, char *ret, size_t size)
{
    char name[8], above[8];

    name_of(place, name, sizeof name);
    if (place < PARENTS) {
        snprintf(ret, size, "lab/%s", name);
        return;
    }
    name_of(parent_of(place), above, sizeof above);
    snprintf(ret, size, "lab/%s/%s", above, name);
}

static void write_spec(const struct wanted *wanted, char *ret, size_t size)
{
    size_t at = (size_t)snprintf(ret, size, "children: [");

    for (unsigned i = 0; i < PARENTS; i++) {
        if (!wanted->is_in_spec[i])
            continue;
        at += (size_t)snprintf(
            ret + at, size - at, "{name: p%u, kind: %s, children: [", i,
            wanted->is_twin[i] ? "twin" : "node");
        for (unsigned j = PARENTS; j < PLACES; j++)
            if (parent_of(j) == i && wanted->is_in_spec[j])
                at += (size_t)snprintf(
                    ret + at, size - at, "{name: c%u, kind: %s}, ", (j - PARENTS) % CHILDREN,
                    wanted->is_twin[j] ? "twin" : "node");
        at += (size_t)snprintf(ret + at, size - at, "]}, ");
    }
    snprintf(ret + at, size - at, "]");
}

static bool is_wanted(const struct wanted *wanted, unsigned place)
{
    unsigned parent = place < PARENTS ? place : parent_of(place);

    if (!wanted->is_in_spec[parent] && !wanted->is_by_hand[parent])
        return false;
    /* The spec of a parent by hand has no children. */
    return wanted->is_by_hand[place] || (wanted->is_in_spec[place] && wanted->is_in_spec[parent]);
}

static bool is_twin(const struct wanted *wanted, unsigned place)
{
    bool is_spec =
        wanted->is_in_spec[place] && (place < PARENTS || wanted->is_in_spec[parent_of(place)]);

    return is_spec ? wanted->is_twin[place] : wanted->is_manual_twin[place];
}

static void apply(struct lab *lab, struct wanted *wanted)
{
    char yaml[1024];

    write_spec(wanted, yaml, sizeof yaml);
    det_buffer_format(&lab->log, "APPLY %s\n", yaml);
    lab_apply(lab, yaml);
}

/* By hand; the answer says whether it counts. */
static void put(struct lab *lab, struct wanted *wanted, unsigned place, bool is_now_twin)
{
    char name[8], parent[16];
    struct det_child_spec spec = { .name = name, .kind = is_now_twin ? "twin" : "node" };
    int r;

    name_of(place, name, sizeof name);
    if (place >= PARENTS)
        id_of(parent_of(place), parent, sizeof parent);
    r = det_workers_upsert(lab->workers, place < PARENTS ? NULL : parent, &spec, NULL);
    det_buffer_format(
        &lab->log, "PUT %s below %s, %s: %d\n", name, place < PARENTS ? "lab" : parent, spec.kind,
        r);
    if (r == 0) {
        wanted->is_by_hand[place] = true;
        wanted->is_manual_twin[place] = is_now_twin;
    } else
        assert_true(r == DET_ERR_EXISTS || r == DET_ERR_NOT_FOUND);
}

static void delete (struct lab *lab, struct wanted *wanted, unsigned place)
{
    char id[16];
    int r;

    id_of(place, id, sizeof id);
    r = det_workers_delete(lab->workers, id, NULL);
    det_buffer_format(&lab->log, "DELETE %s: %d\n", id, r);
    if (r < 0) {
        assert_true(r == DET_ERR_INVALID || r == DET_ERR_NOT_FOUND);
        return;
    }
    wanted->is_by_hand[place] = false;
    if (place < PARENTS && !wanted->is_in_spec[place])
        for (unsigned i = PARENTS; i < PLACES; i++)
            if (parent_of(i) == place)
                wanted->is_by_hand[i] = false;
}

static void incident(struct lab *lab, struct node *node)
{
    switch (det_sim_random_below(lab->sim, 12)) {
    case 8:
        node->collect_hangs = 5 * DET_SECOND;
        break;
    case 9:
        node->act_hangs = 15 * DET_SECOND;
        break;
    case 10:
        node->open_hangs = 3 * DET_SECOND;
        break;
    case 11:
        node->close_hangs = 3 * DET_SECOND;
        break;
    case 0:
        node->wants_restart = true;
        break;
    case 1:
        node->open_error = DET_ERR_IO;
        break;
    case 2:
        node->act_error = DET_ERR_IO;
        break;
    case 3:
        node->collect_error = DET_ERR_IO;
        break;
    case 4:
        node->is_stuck = true;
        break;
    case 5:
        node->end_takes = 700 * DET_MILLISECOND;
        break;
    case 6:
        node->is_lost = true;
        break;
    default:
        node->act_takes = 3 * DET_SECOND;
        break;
    }
}

static void soothe(struct node *node)
{
    node->wants_restart = node->is_stuck = node->is_lost = false;
    node->open_error = node->act_error = node->collect_error = 0;
    node->end_takes = node->act_takes = node->collect_hangs = node->act_hangs = 0;
    node->open_hangs = node->close_hangs = 0;
}

static void step(struct lab *lab, struct wanted *wanted)
{
    unsigned place = (unsigned)det_sim_random_below(lab->sim, PLACES);
    bool choice = det_sim_chance(lab->sim, 500000);
    char id[16];

    id_of(place, id, sizeof id);
    switch (det_sim_random_below(lab->sim, 9)) {
    case 0:
    case 1:
        wanted->is_in_spec[place] = !wanted->is_in_spec[place];
        apply(lab, wanted);
        break;
    case 2:
        wanted->is_twin[place] = !wanted->is_twin[place];
        apply(lab, wanted);
        break;
    case 3:
    case 4:
        put(lab, wanted, place, choice);
        break;
    case 5:
        delete (lab, wanted, place);
        break;
    case 6:
        incident(lab, node_of(id));
        break;
    case 7:
        soothe(node_of(id));
        break;
    default:
        if (!det_sim_chance(lab->sim, 150000))
            break;
        wanted->was_reopened = true;
        det_workers_close(lab->workers);
        assert_int_equal(lab_open_workers(lab, NULL), 0);
        apply(lab, wanted);
        break;
    }
    lab_run(lab, (det_time)det_sim_random_below(lab->sim, 2500) * DET_MILLISECOND);
}

/* Nothing is wrong any more; who was given up is wanted anew. */
static void wake_all(struct lab *lab)
{
    for (size_t i = 0; i < node_count; i++) {
        soothe(&nodes[i]);
        if (lab_has(lab, nodes[i].id) && !strcmp(lab_status(lab, nodes[i].id).life, "down"))
            assert_int_equal(
                det_workers_order(lab->workers, nodes[i].id, DET_WORKER_ORDER_RESTART, NULL), 0);
    }
}

static int count_document(void *context, const struct det_document *document)
{
    (void)document;
    (*(unsigned *)context)++;
    return 0;
}

static void assert_as_wanted(struct lab *lab, const struct wanted *wanted)
{
    unsigned count = 1, documents = 0, by_hand = 0;
    struct det_document_query specs = { .has_role = true, .role = DET_DOCUMENT_SPEC };
    struct det_workers_summary summary;
    char id[16];

    for (unsigned i = 0; i < PLACES; i++) {
        id_of(i, id, sizeof id);
        by_hand += wanted->is_by_hand[i];
        if (!is_wanted(wanted, i)) {
            if (lab_has(lab, id))
                fail_msg("%s is still there\n%s", id, det_buffer_text(&lab->log));
            continue;
        }
        count++;
        lab_assert_state(lab, id, is_twin(wanted, i) ? "not_stopped_degraded" : "well");
    }
    det_workers_summary(lab->workers, &summary);
    assert_int_equal(summary.workers, count);
    assert_int_equal(summary.circuits_open, 0);
    assert_int_equal(
        det_store_documents_list(lab->store, &specs, count_document, &documents, NULL), 0);
    assert_int_equal(documents, by_hand);
    documents = 0;
    assert_int_equal(
        det_store_documents_list(lab->store, NULL, count_document, &documents, NULL), 0);
    /* Those of a worker that was not made again since the last opening stay. */
    if (documents < 3 * count + by_hand ||
        (documents > 3 * count + by_hand && !wanted->was_reopened))
        fail_msg("%u documents of %u workers\n%s", documents, count, det_buffer_text(&lab->log));
}

static void live(struct lab *lab, uint64_t seed, struct wanted *wanted, int steps)
{
    struct lab_options options = forest_options(seed);

    options.store = "memory:";
    options.limits.restart_backoff.max = 2 * DET_SECOND;
    options.limits.action_backoff.max = 2 * DET_SECOND;
    options.limits.circuit_backoff.max = 2 * DET_SECOND;
    options.limits.restarts = (struct det_intensity){ 1000, DET_MINUTE };
    lab_open(lab, options);
    lab_run(lab, DET_SECOND);
    for (int i = 0; i < steps; i++) {
        reported_count = 0;
        step(lab, wanted);
    }
}

SENTENCE(random_worker_tree_reaches_its_desired_state)
{
    struct wanted wanted = { 0 };
    struct lab lab;

    live(&lab, seed, &wanted, 40);
    for (int i = 0; i < 40; i++) {
        reported_count = 0;
        wake_all(&lab);
        lab_run(&lab, 2 * DET_SECOND);
    }
    assert_as_wanted(&lab, &wanted);
    if (det_workers_stop(lab.workers, NULL) < 0)
        fail_msg("%s", det_buffer_text(&lab.log));
    forest_end(&lab);
}

SENTENCE(random_worker_tree_stops_in_time)
{
    struct wanted wanted = { 0 };
    struct lab lab;
    det_time from;
    int r;

    live(&lab, seed, &wanted, 15);
    from = lab_now(&lab);
    reported_count = 0;
    r = det_workers_stop(lab.workers, NULL);
    /* Three levels, and a moment for each that was taken down. */
    if ((r != 0 && r != DET_ERR_TIMEOUT) || lab_now(&lab) - from > 18 * DET_SECOND)
        fail_msg("%s after %d s", det_error_name(r), (int)((lab_now(&lab) - from) / DET_SECOND));
    if (r == 0)
        assert_int_equal(lab_count(&lab, "graceful_shutdown_timeout lab "), 0);
    forest_end(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_worker_tree_reaches_its_desired_state),
        cmocka_unit_test(random_worker_tree_stops_in_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
