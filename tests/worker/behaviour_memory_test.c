/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test: sanitized */
/* behaviour_memory_test.c - a supervisor without memory, at each allocation once: nothing crashes,
 * leaks or hangs, and when there is memory again all is as it was wanted. */
#include "lib/test.h"

#include <detent/tool/documents.h>

#include "worker/behaviour_test.h"

#define TREE                                                                                    \
    "variables: {HOST: h}\n"                                                                    \
    "children: [{name: a, kind: link, config: {host: \"{{ .HOST }}\", port: 7, children: 1}}, " \
    "{name: p, kind: puppet}]"

struct story {
    const char *store;
    void (*begin)(struct lab *lab);  /* with all memory there is; NULL: it fails from the open on */
    void (*report)(struct lab *lab); /* with memory that may fail */
    void (*end)(struct lab *lab);    /* with all memory there is */
};

/* Says it again until it is taken. */
static void apply_at_last(struct lab *lab, const char *yaml)
{
    struct det_error error = { 0 };

    if (det_workers_apply(lab->workers, yaml, &error) < 0)
        fail_msg("%s", error.text);
}

static bool run_with_failure(const struct story *story, uint64_t number, bool is_sticky)
{
    struct lab_options options = behaviour_options(number);
    struct det_test_memory memory;
    struct det_error error = { 0 };
    struct lab lab;
    bool has_failed;
    int r;

    det_test_memory_init(&memory);
    options.allocator = &memory.allocator;
    options.store = story->store;
    if (!story->begin)
        det_test_memory_fail(&memory, number, is_sticky);
    r = lab_try_open(&lab, options, &error);
    if (r == 0 && story->begin) {
        story->begin(&lab);
        det_test_memory_fail(&memory, number, is_sticky);
    }
    if (r == 0)
        story->report(&lab);
    else
        assert_int_equal(r, DET_ERR_NO_MEMORY);
    has_failed = det_test_memory_fail(&memory, 0, false);
    if (r == 0)
        story->end(&lab);
    else
        assert_true(has_failed);
    lab_close(&lab);
    det_test_memory_deinit(&memory);
    return has_failed;
}

static void report_with_each_failure(const struct story *story)
{
    for (uint64_t number = 1; run_with_failure(story, number, false); number++)
        continue;
    for (uint64_t number = 1; run_with_failure(story, number, true); number += 5)
        continue;
}

static void apply_without(struct lab *lab, const char *yaml)
{
    struct det_error error = { 0 };
    int r = det_workers_apply(lab->workers, yaml, &error);

    if (r < 0 && r != DET_ERR_NO_MEMORY)
        fail_msg("%d: %s", r, error.text);
}

/* Delays without memory to count them are the longest ones: a minute. */
static void run_until(struct lab *lab, bool (*is)(struct lab *lab))
{
    for (int i = 0; i < 80 && !is(lab); i++)
        lab_run(lab, DET_SECOND);
    if (!is(lab))
        fail_msg(
            "it did not come to that\n%s",
            det_buffer_text(&lab->log) + (lab->log.size > 800 ? lab->log.size - 800 : 0));
}

static bool is_in(struct lab *lab, const char *id, const char *state)
{
    struct det_worker_status status;

    return det_workers_get(lab->workers, id, NULL, &status, NULL, NULL) == 0 &&
           !strcmp(status.state, state);
}

static bool is_all_up(struct lab *lab)
{
    return is_in(lab, "lab", "running") && is_in(lab, "lab/a", "up") &&
           is_in(lab, "lab/a/c0", "up") && is_in(lab, "lab/p", "working");
}

static void come_up(struct lab *lab)
{
    apply_without(lab, TREE);
    lab_run(lab, 2 * DET_SECOND);
}

static void be_up(struct lab *lab)
{
    apply_at_last(lab, TREE);
    run_until(lab, is_all_up);
    assert_int_equal(det_workers_stop(lab->workers, NULL), 0);
}

static void tree_starts_despite_failed_allocations(void **state)
{
    (void)state;
    report_with_each_failure(&(struct story){ .report = come_up, .end = be_up });
}

static void begin_well(struct lab *lab)
{
    apply_at_last(lab, TREE);
    lab_run(lab, 3 * DET_SECOND);
    assert_true(is_all_up(lab));
}

/* Twice: the third one would pause it for long. */
static int panic_at_first(struct det_worker_context *context, int action)
{
    det_worker_count(context, "tries", 1);
    if (puppet.acts[action] <= 2)
        det_worker_panic(context, "cannot be");
    return 0;
}

static struct det_next want_one(const struct det_worker_view *view)
{
    return view->state == PUPPET_WORKING ? (struct det_next){ DET_NEXT_DO, PUPPET_ONE, "is wanted" }
                                         : puppet_walk(view);
}

#define OTHER_TREE                                                                              \
    "variables: {HOST: other}\n"                                                                \
    "children: [{name: a, kind: link, config: {host: \"{{ .HOST }}\", port: 7, children: 1}}, " \
    "{name: b, kind: link, config: {host: h, port: 7}}]"

static void live_in_turmoil(struct lab *lab)
{
    struct det_child_spec by_hand = { .name = "c", .kind = "puppet" };
    struct det_error error;
    int r;

    puppet.next = want_one;
    puppet.act = panic_at_first;
    lab->plant.is_up = false;
    lab->plant.connect_fails = 1;
    r = det_workers_upsert(lab->workers, NULL, &by_hand, &error);
    assert_true(r == 0 || r == DET_ERR_NO_MEMORY);
    lab_run(lab, 1500 * DET_MILLISECOND);
    r = det_workers_order(lab->workers, "lab/a", DET_WORKER_ORDER_RESTART, NULL);
    assert_true(r == 0 || r == DET_ERR_NO_MEMORY);
    apply_without(lab, OTHER_TREE);
    lab_run(lab, 2 * DET_SECOND);
}

static int copy_document(void *context, const struct det_document *document)
{
    det_buffer_append(context, document->text, document->size);
    return 0;
}

static bool is_recorded(struct lab *lab, enum det_document_role role, const char *text)
{
    struct det_document_query query = { .id = "lab/a", .has_role = true, .role = role };
    struct det_buffer copy;
    bool is;

    det_buffer_init(&copy, NULL);
    assert_int_equal(det_store_documents_list(lab->store, &query, copy_document, &copy, NULL), 0);
    is = strstr(det_buffer_text(&copy), text) != NULL;
    det_buffer_deinit(&copy);
    return is;
}

static bool is_as_wanted(struct lab *lab)
{
    return is_in(lab, "lab/a", "up") && is_in(lab, "lab/a/c0", "up") && is_in(lab, "lab/b", "up") &&
           is_in(lab, "lab/c", "working") && !lab_has(lab, "lab/p") &&
           is_recorded(lab, DET_DOCUMENT_DESIRED, "\"host\":\"other\"") &&
           is_recorded(lab, DET_DOCUMENT_DESIRED, "\"shutdown_requested\":false") &&
           is_recorded(lab, DET_DOCUMENT_OBSERVED, "\"state\":\"up\"");
}

static void be_as_wanted(struct lab *lab)
{
    struct det_child_spec by_hand = { .name = "c", .kind = "puppet" };

    puppet.next = NULL;
    puppet.act = NULL;
    assert_int_equal(det_workers_upsert(lab->workers, NULL, &by_hand, NULL), 0);
    apply_at_last(lab, OTHER_TREE);
    run_until(lab, is_as_wanted);
    assert_int_equal(det_workers_stop(lab->workers, NULL), 0);
}

static void busy_tree_recovers_from_failed_allocations(void **state)
{
    (void)state;
    report_with_each_failure(&(struct story){
        .store = "memory:", .begin = begin_well, .report = live_in_turmoil, .end = be_as_wanted });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tree_starts_despite_failed_allocations),
        cmocka_unit_test(busy_tree_recovers_from_failed_allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
