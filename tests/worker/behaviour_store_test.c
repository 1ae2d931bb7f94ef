/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_store_test.c - workers on record: documents, deltas for changes only, counts that
 * survive, followers, and a store that fails for a while. On memory and on SQLite. */
#include <stdbool.h>
#include <stdint.h>

static bool is_file;
#define SEEDS (is_file ? (uint64_t)1 : (uint64_t)6)
#include "worker/forest_test.h"

#include "worker/faulty_test.h"

#define YAML "children: [" NODE_OVER("a", NODE("x")) ", " NODE_OVER("b", NODE("x")) "]"

/* A new one each time. A file is a real one, also in a simulation. */
static char url[512];
static char *folder;

static const char *store_url(void)
{
    static unsigned number;

    if (is_file)
        snprintf(url, sizeof url, "sqlite:%s/%u.db", folder, number++);
    else
        snprintf(url, sizeof url, "memory:");
    return url;
}

static void begin(struct lab *lab, uint64_t seed)
{
    struct lab_options options = forest_options(seed);

    options.store = store_url();
    lab_open(lab, options);
    make_faulty(lab);
    lab_apply(lab, YAML);
    lab_run(lab, 4 * DET_SECOND);
}

/* One document, copied. */
struct found {
    uint32_t count;
    struct det_document document;
    char text[2048];
};
static int find(void *context, const struct det_document *document)
{
    struct found *found = context;

    found->count++;
    found->document = *document;
    snprintf(found->text, sizeof found->text, "%.*s", (int)document->size, document->text);
    return 0;
}
static struct found document_of(struct lab *lab, const char *id, enum det_document_role role)
{
    struct det_document_query query = { .id = id, .has_role = true, .role = role };
    struct found found = { 0 };

    assert_int_equal(det_store_documents_list(lab->store, &query, find, &found, NULL), 0);
    return found;
}

struct deltas {
    uint64_t count, last, of_desired, of_observed;
    const char *id;
    char text[2048]; /* of the newest one */
};
static int count_delta(void *context, const struct det_delta *delta)
{
    struct deltas *deltas = context;

    assert_true(delta->sync > deltas->last); /* grows, over all documents */
    deltas->last = delta->sync;
    deltas->count++;
    if (deltas->id && strcmp(deltas->id, delta->id) != 0)
        return 0;
    deltas->of_desired += delta->role == DET_DOCUMENT_DESIRED;
    deltas->of_observed += delta->role == DET_DOCUMENT_OBSERVED;
    snprintf(deltas->text, sizeof deltas->text, "%.*s", (int)delta->size, delta->text);
    return 0;
}
static struct deltas deltas_of(struct lab *lab, const char *id, uint64_t after)
{
    struct det_document_query query = { .after = after };
    struct deltas deltas = { .id = id };

    assert_int_equal(det_store_documents_deltas(lab->store, &query, count_delta, &deltas, NULL), 0);
    return deltas;
}

static uint64_t latest(struct lab *lab)
{
    struct det_document_position position;

    assert_int_equal(det_store_documents_position(lab->store, &position), 0);
    return position.latest;
}

SENTENCE(workers_of_one_name_below_two_parents_have_documents_of_their_own)
{
    struct lab lab;
    struct found one, two;

    begin(&lab, seed);
    one = document_of(&lab, "lab/a/x", DET_DOCUMENT_IDENTITY);
    two = document_of(&lab, "lab/b/x", DET_DOCUMENT_IDENTITY);
    assert_int_equal(one.count, 1);
    assert_int_equal(two.count, 1);
    assert_non_null(strstr(one.text, "lab(application)/a(node)/x(node)"));
    assert_non_null(strstr(two.text, "lab(application)/b(node)/x(node)"));
    one = document_of(&lab, "lab/a/x", DET_DOCUMENT_DESIRED);
    assert_non_null(strstr(one.text, "\"host\""));
    assert_int_equal(one.document.version, 1);
    one = document_of(&lab, "lab/a/x", DET_DOCUMENT_OBSERVED);
    assert_non_null(strstr(one.text, "well"));
    node_of("lab/a/x")->noise = 7;
    two = document_of(&lab, "lab/b/x", DET_DOCUMENT_OBSERVED);
    lab_run(&lab, 3 * DET_SECOND);
    assert_true(
        document_of(&lab, "lab/a/x", DET_DOCUMENT_OBSERVED).document.version >
        one.document.version);
    assert_int_equal(
        document_of(&lab, "lab/b/x", DET_DOCUMENT_OBSERVED).document.version, two.document.version);
    forest_end(&lab);
}

SENTENCE(unchanged_workers_write_no_document)
{
    struct lab lab;
    uint64_t head;
    uint32_t before;

    begin(&lab, seed);
    head = latest(&lab);
    before = saves;
    lab_run(&lab, 5 * DET_MINUTE);
    assert_true(node_of("lab/a")->collects > 250);
    assert_int_equal(latest(&lab), head);
    /* Not even asked: five minutes, six workers, three hundred observations each. */
    assert_true(saves - before < 30);
    lab_apply(&lab, YAML);
    assert_int_equal(det_workers_set_globals(lab.workers, "{nobody: asks}", NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    assert_int_equal(latest(&lab), head);
    assert_int_equal(lab_status(&lab, "lab/a").freshness, DET_FRESHNESS_FRESH);
    forest_end(&lab);
}

SENTENCE(a_change_is_one_delta_with_the_old_and_the_new)
{
    struct lab lab;
    struct deltas deltas;
    struct found before, after;
    uint64_t head;

    begin(&lab, seed);
    head = latest(&lab);
    before = document_of(&lab, "lab/a", DET_DOCUMENT_DESIRED);
    lab_apply(
        &lab, "children: [{name: a, kind: node, config: {host: h, port: 2}, children: [" NODE(
                  "x") "]}, " NODE_OVER("b", NODE("x")) "]");
    lab_run(&lab, 3 * DET_SECOND);
    after = document_of(&lab, "lab/a", DET_DOCUMENT_DESIRED);
    assert_int_equal(after.document.version, before.document.version + 1);
    assert_int_equal(after.document.created_at, before.document.created_at);
    assert_true(after.document.updated_at > before.document.updated_at);
    deltas = deltas_of(&lab, "lab/a", head);
    assert_int_equal(deltas.of_desired, 1);
    assert_int_equal(deltas.count, 1);
    assert_non_null(strstr(deltas.text, "\"modified\""));
    assert_non_null(strstr(deltas.text, "\"old\""));
    assert_null(strstr(deltas.text, "host"));
    head = latest(&lab);
    node_of("lab/a")->noise = 3;
    lab_run(&lab, 3 * DET_SECOND);
    deltas = deltas_of(&lab, "lab/a", head);
    assert_int_equal(deltas.of_observed, 1);
    assert_int_equal(deltas.count, 1);
    forest_end(&lab);
}

SENTENCE(removed_workers_lose_their_documents_stopped_ones_do_not)
{
    struct lab lab;

    begin(&lab, seed);
    lab_apply(&lab, "children: [" NODE_OVER("a", NODE("x")) "]");
    lab_run(&lab, 5 * DET_SECOND);
    assert_int_equal(document_of(&lab, "lab/b", DET_DOCUMENT_IDENTITY).count, 0);
    assert_int_equal(document_of(&lab, "lab/b/x", DET_DOCUMENT_DESIRED).count, 0);
    assert_int_equal(document_of(&lab, "lab/b/x", DET_DOCUMENT_OBSERVED).count, 0);
    assert_int_equal(det_workers_stop(lab.workers, NULL), 0);
    assert_non_null(strstr(document_of(&lab, "lab/a", DET_DOCUMENT_OBSERVED).text, "\"down\""));
    assert_non_null(
        strstr(document_of(&lab, "lab/a", DET_DOCUMENT_DESIRED).text, "shutdown_requested"));
    forest_end(&lab);
}

SENTENCE(startup_count_survives_a_reopen)
{
    struct lab lab;

    begin(&lab, seed);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(lab_status(&lab, "lab/a/x").counts.startups, i);
        det_workers_close(lab.workers);
        if (i == 2) { /* and over a new opening of the store, where it is a file */
            struct det_store_options options = { .world = lab.world };

            if (is_file) {
                det_store_close(lab.store);
                assert_int_equal(det_store_open_with(url, &options, &lab.store, NULL), 0);
                make_faulty(&lab);
            }
        }
        assert_int_equal(lab_open_workers(&lab, NULL), 0);
        lab_apply(&lab, YAML);
        lab_run(&lab, 4 * DET_SECOND);
    }
    assert_int_equal(det_workers_order(lab.workers, "lab/a/x", DET_WORKER_ORDER_RESTART, NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    assert_int_equal(lab_status(&lab, "lab/a/x").counts.startups, 5);
    lab_assert_log(&lab, "worker_added lab/a/x #5");
    forest_end(&lab);
}

static void open_again(struct lab *lab, const char *yaml)
{
    det_workers_close(lab->workers);
    assert_int_equal(lab_open_workers(lab, NULL), 0);
    lab_apply(lab, yaml);
    lab_run(lab, 4 * DET_SECOND);
}

static uint32_t documents_of(struct lab *lab, const char *id)
{
    struct det_document_query query = { .id = id };
    struct found found = { 0 };

    assert_int_equal(det_store_documents_list(lab->store, &query, find, &found, NULL), 0);
    return found.count;
}

SENTENCE(documents_of_workers_removed_offline_are_deleted)
{
    struct lab lab;
    uint64_t before;

    begin(&lab, seed);
    assert_int_equal(documents_of(&lab, "lab/a/x"), 3);
    assert_int_equal(det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_DISABLE, NULL), 0);
    before = latest(&lab);
    open_again(&lab, "children: [" NODE_OVER("b", NODE("x")) "]");
    assert_int_equal(documents_of(&lab, "lab/a"), 0);
    assert_int_equal(documents_of(&lab, "lab/a/x"), 0);
    assert_int_equal(documents_of(&lab, "lab/b/x"), 3);
    assert_int_equal(lab_status(&lab, "lab/b/x").counts.startups, 2);
    /* A follower is told. */
    assert_true(deltas_of(&lab, "lab/a/x", before).of_desired > 0);
    /* One of the same name is a new one, which nobody told to rest. */
    open_again(&lab, YAML);
    assert_false(lab_status(&lab, "lab/a").is_disabled);
    assert_int_equal(lab_status(&lab, "lab/a").counts.startups, 1);
    forest_end(&lab);
}

static const struct det_worker_kind other_kind = {
    .name = "other",
    .states = node_states,
    .state_count = sizeof node_states / sizeof node_states[0],
    .actions = node_actions,
    .action_count = sizeof node_actions / sizeof node_actions[0],
};

SENTENCE(documents_of_another_kind_are_deleted_on_open)
{
    static const struct det_child_spec child = { .name = "k", .kind = "node" };
    struct lab lab;

    begin(&lab, seed);
    node_of("lab/a")->children = &child;
    node_of("lab/a")->child_count = 1;
    open_again(&lab, YAML);
    assert_int_equal(documents_of(&lab, "lab/a/k"), 3);
    /* Its parent wants no child of its own any more; another kind. */
    node_of("lab/a")->child_count = 0;
    open_again(&lab, "children: [" NODE_OVER("a", "{name: x, kind: twin}") "]");
    assert_int_equal(documents_of(&lab, "lab/a/k"), 0);
    assert_int_equal(documents_of(&lab, "lab/a/x"), 3);
    assert_string_equal(lab_status(&lab, "lab/a/x").kind, "twin");
    /* A kind that this run has not. */
    for (size_t i = 0; lab.kinds[i]; i++)
        if (lab.kinds[i] == &twin_kind)
            lab.kinds[i] = &other_kind;
    open_again(&lab, "children: [" NODE_OVER("a", "{name: x, kind: twin}") "]");
    assert_false(lab_has(&lab, "lab/a/x"));
    assert_int_equal(documents_of(&lab, "lab/a/x"), 3);
    forest_end(&lab);
}

SENTENCE(stored_manual_worker_waits_for_its_parent)
{
    struct det_child_spec spec = { .name = "h", .kind = "node" };
    struct lab lab;

    begin(&lab, seed);
    assert_int_equal(det_workers_upsert(lab.workers, "lab/a", &spec, NULL), 0);
    lab_run(&lab, 4 * DET_SECOND);
    assert_int_equal(documents_of(&lab, "lab/a/h"), 4);
    open_again(&lab, "children: [" NODE("b") "]");
    assert_int_equal(documents_of(&lab, "lab/a/h"), 1);
    open_again(&lab, YAML);
    lab_assert_state(&lab, "lab/a/h", "well");
    forest_end(&lab);
}

SENTENCE(before_a_spec_is_applied_nothing_is_dropped)
{
    struct det_child_spec spec = { .name = "h", .kind = "node" };
    struct lab lab;

    begin(&lab, seed);
    det_workers_close(lab.workers);
    assert_int_equal(lab_open_workers(&lab, NULL), 0);
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &spec, NULL), 0);
    lab_run(&lab, 10 * DET_SECOND);
    assert_int_equal(documents_of(&lab, "lab/a/x"), 3);
    forest_end(&lab);
}

/* What a follower holds: how many documents, and where it is. */
struct seen {
    uint32_t documents, deltas, begins;
};
static int seen_begin(void *context, uint64_t position)
{
    (void)position;
    ((struct seen *)context)->begins++;
    return 0;
}
static int seen_document(void *context, const struct det_document *document)
{
    (void)document;
    ((struct seen *)context)->documents++;
    return 0;
}
static int seen_delta(void *context, const struct det_delta *delta)
{
    (void)delta;
    ((struct seen *)context)->deltas++;
    return 0;
}

SENTENCE(follower_gets_all_documents_and_then_the_changes)
{
    struct lab lab;
    struct seen seen = { 0 };
    struct det_documents_followed followed;
    struct det_documents_follower follower = {
        .begin = seen_begin, .document = seen_document, .delta = seen_delta, .context = &seen
    };

    begin(&lab, seed);
    assert_int_equal(det_documents_follow(lab.store, &follower, &followed), 0);
    assert_true(followed.is_bootstrap);
    assert_int_equal(seen.documents, 5 * 3);
    follower.position = followed.position;
    assert_int_equal(det_documents_follow(lab.store, &follower, &followed), 0);
    assert_int_equal(followed.count, 0);
    assert_false(followed.is_bootstrap);
    for (int i = 0; i < 130; i++) {
        node_of("lab/a")->noise++;
        lab_run(&lab, 1200 * DET_MILLISECOND);
    }
    assert_int_equal(det_documents_follow(lab.store, &follower, &followed), 0);
    assert_false(followed.is_bootstrap);
    assert_true(followed.has_more);
    assert_int_equal(followed.count, 100);
    follower.position = followed.position;
    assert_int_equal(det_documents_follow(lab.store, &follower, &followed), 0);
    assert_false(followed.has_more);
    assert_true(seen.deltas >= 120);
    assert_int_equal(followed.position, latest(&lab));
    /* All of them in one go, for a dump. */
    assert_true(deltas_of(&lab, NULL, 0).count > 130);
    forest_end(&lab);
}

SENTENCE(desired_state_is_used_only_once_recorded)
{
    struct lab lab;

    begin(&lab, seed);
    fault = DET_ERR_IO;
    lab_apply(
        &lab, "children: [{name: a, kind: node, config: {host: new, port: 2}, children: [" NODE(
                  "x") "]}, " NODE_OVER("b", NODE("x")) "]");
    lab_run(&lab, 10 * DET_SECOND);
    assert_string_equal(node_of("lab/a")->host, "h");
    lab_assert_log(&lab, "store_failed lab/a");
    lab_assert_log(&lab, "buy another one");
    assert_true(faults > 1);    /* tried again */
    assert_true(faults < 1000); /* but not like mad */
    assert_true(lab_count(&lab, "store_failed lab/a ") < 20);
    lab_assert_state(&lab, "lab/a", "well");
    lab_assert_state(&lab, "lab/b", "well");
    fault = 0;
    lab_run(&lab, 70 * DET_SECOND);
    assert_string_equal(node_of("lab/a")->host, "new");
    assert_non_null(strstr(document_of(&lab, "lab/a", DET_DOCUMENT_DESIRED).text, "new"));
    assert_string_equal(lab_status(&lab, "lab/a").degraded_by, "");
    forest_end(&lab);
}

SENTENCE(unrecorded_workers_start_when_the_store_recovers)
{
    struct lab_options options = forest_options(seed);
    struct lab lab;

    options.store = store_url();
    lab_open(&lab, options);
    make_faulty(&lab);
    lab_run(&lab, DET_SECOND);
    fault = DET_ERR_NO_SPACE;
    lab_apply(&lab, YAML);
    lab_run(&lab, 20 * DET_SECOND);
    assert_int_equal(node_of("lab/a")->opened, 0);
    lab_assert_log(&lab, "worker_add_failed lab/a");
    assert_non_null(strstr(lab_status(&lab, "lab/a").reason, "fire"));
    fault = 0;
    lab_run(&lab, 70 * DET_SECOND);
    lab_assert_state(&lab, "lab/a/x", "well");
    lab_assert_state(&lab, "lab/b/x", "well");
    assert_int_equal(lab_status(&lab, "lab/a").counts.startups, 1);
    forest_end(&lab);
}

SENTENCE(failed_observation_records_are_saved_after_recovery)
{
    struct lab lab;

    begin(&lab, seed);
    fault = DET_ERR_IO;
    node_of("lab/a")->noise = 4711;
    lab_run(&lab, 10 * DET_SECOND);
    /* It goes on working: observing needs no store. */
    assert_int_equal(lab_status(&lab, "lab/a").freshness, DET_FRESHNESS_FRESH);
    fault = 0;
    lab_run(&lab, 70 * DET_SECOND);
    assert_non_null(strstr(document_of(&lab, "lab/a", DET_DOCUMENT_OBSERVED).text, "4711"));
    forest_end(&lab);
}

SENTENCE(a_store_that_fails_does_not_keep_workers_from_stopping)
{
    struct lab lab;
    det_time from;

    begin(&lab, seed);
    fault = DET_ERR_IO;
    lab_run(&lab, DET_SECOND);
    from = lab_now(&lab);
    assert_int_equal(det_workers_stop(lab.workers, NULL), 0);
    assert_true(lab_now(&lab) - from < 6 * DET_SECOND);
    assert_false(node_of("lab/a/x")->is_up);
    fault = 0;
    forest_end(&lab);
}

SENTENCE(manual_worker_that_cannot_be_recorded_is_refused)
{
    struct det_child_spec spec = { .name = "h", .kind = "node" };
    struct lab lab;
    struct det_error error = { 0 };

    begin(&lab, seed);
    fault = DET_ERR_IO;
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &spec, &error), DET_ERR_IO);
    assert_non_null(strstr(error.text, "fire"));
    lab_run(&lab, 2 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/h"));
    fault = 0;
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &spec, &error), 0);
    lab_run(&lab, 3 * DET_SECOND);
    fault = DET_ERR_IO;
    assert_int_equal(det_workers_delete(lab.workers, "lab/h", &error), DET_ERR_IO);
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/h", "well");
    fault = 0;
    assert_int_equal(det_workers_delete(lab.workers, "lab/h", &error), 0);
    lab_run(&lab, 3 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/h"));
    forest_end(&lab);
}

SENTENCE(old_deltas_are_compacted_and_documents_stay)
{
    struct lab_options options = forest_options(seed);
    struct det_document_position position;
    struct lab lab;

    options.store = store_url();
    options.limits.deltas_max = 10;
    lab_open(&lab, options);
    lab_apply(&lab, YAML);
    for (int i = 0; i < 150; i++) {
        node_of("lab/a")->noise++;
        lab_run(&lab, 1200 * DET_MILLISECOND);
    }
    assert_int_equal(det_store_documents_position(lab.store, &position), 0);
    assert_true(position.oldest > 100);
    assert_true(position.latest - position.oldest < 80);
    assert_int_equal(document_of(&lab, "lab/b/x", DET_DOCUMENT_IDENTITY).count, 1);
    forest_end(&lab);
}

#define STORE_TESTS                                                                      \
    cmocka_unit_test(workers_of_one_name_below_two_parents_have_documents_of_their_own), \
        cmocka_unit_test(unchanged_workers_write_no_document),                           \
        cmocka_unit_test(a_change_is_one_delta_with_the_old_and_the_new),                \
        cmocka_unit_test(removed_workers_lose_their_documents_stopped_ones_do_not),      \
        cmocka_unit_test(startup_count_survives_a_reopen),                               \
        cmocka_unit_test(documents_of_workers_removed_offline_are_deleted),              \
        cmocka_unit_test(documents_of_another_kind_are_deleted_on_open),                 \
        cmocka_unit_test(stored_manual_worker_waits_for_its_parent),                     \
        cmocka_unit_test(before_a_spec_is_applied_nothing_is_dropped),                   \
        cmocka_unit_test(follower_gets_all_documents_and_then_the_changes),              \
        cmocka_unit_test(desired_state_is_used_only_once_recorded),                      \
        cmocka_unit_test(unrecorded_workers_start_when_the_store_recovers),              \
        cmocka_unit_test(failed_observation_records_are_saved_after_recovery),           \
        cmocka_unit_test(a_store_that_fails_does_not_keep_workers_from_stopping),        \
        cmocka_unit_test(manual_worker_that_cannot_be_recorded_is_refused),              \
        cmocka_unit_test(old_deltas_are_compacted_and_documents_stay)

int main(void)
{
    const struct CMUnitTest tests[] = { STORE_TESTS };
    int r;

    r = cmocka_run_group_tests_name("in memory", tests, NULL, NULL);
    is_file = true;
    folder = det_test_folder();
    r += cmocka_run_group_tests_name("in a file", tests, NULL, NULL);
    det_test_folder_remove(folder);
    return r;
}
