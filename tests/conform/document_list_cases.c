/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document_list_cases.c - listing, following and compacting documents, driver/documents.h and
 * documents.h. */
#include "conform/documents.h"

static void a_new_store_has_no_documents(void **state)
{
    struct box *box = *state;

    NEEDS_DOCUMENTS(state);
    assert_documents(box, "");
    assert_deltas(box, 0, "");
    assert_position(box, 0, 1);
    assert_int_equal(compact(box, (struct det_document_keep){ 1, 1, 1 }), 0);
}

/* a with three roles, a of another kind, a-b, a/1, a/1/x, a0, b. */
static void fill(struct box *box)
{
    struct det_document_save other = saving("a", DET_DOCUMENT_SPEC, "{}");

    other.kind = "app";
    save(box, "b", "{}");
    save(box, "a0", "{}");
    save(box, "a/1/x", "{}");
    save(box, "a/1", "{}");
    save(box, "a-b", "{}");
    save_role(box, "a", DET_DOCUMENT_OBSERVED, "{}");
    save_role(box, "a", DET_DOCUMENT_DESIRED, "{}");
    save_role(box, "a", DET_DOCUMENT_IDENTITY, "{}");
    assert_int_equal(det_store_documents_save(box->store, &other, 1, NULL, NULL), 0);
}

/* Compares the listed ids, each followed by a letter for its role. */
static void assert_listed(struct box *box, struct det_document_query query, const char *expected)
{
    const struct lines *lines = list_of(box->store, query);
    char found[256] = "", id[32], role[32], kind[32];
    const char *place = lines->text;
    int size;

    while (sscanf(place, "%31s %31s %31s %*[^\n]\n%n", kind, id, role, &size) == 3) {
        snprintf(
            found + strlen(found), sizeof found - strlen(found), "%s%s:%c%s", found[0] ? " " : "",
            id, role[0], kind[0] == 'a' ? "*" : "");
        place += size;
    }
    assert_string_equal(found, expected);
    assert_int_equal(lines->position.latest, 9);
}

static void a_list_is_in_the_order_of_ids_and_roles_and_has_what_was_asked_for(void **state)
{
    struct box *box = *state;

    NEEDS_DOCUMENTS(state);
    fill(box);
    assert_listed(
        box, (struct det_document_query){ 0 }, "a:s* a:i a:d a:o a-b:o a/1:o a/1/x:o a0:o b:o");
    assert_listed(box, (struct det_document_query){ .kind = "app" }, "a:s*");
    assert_listed(box, (struct det_document_query){ .kind = "ap" }, "");
    assert_listed(box, (struct det_document_query){ .id = "a" }, "a:s* a:i a:d a:o");
    assert_listed(box, (struct det_document_query){ .id = "a", .kind = "link" }, "a:i a:d a:o");
    assert_listed(box, (struct det_document_query){ .id = "a", .after_id = "a" }, "");
    assert_listed(
        box, (struct det_document_query){ .below = "a" }, "a:s* a:i a:d a:o a/1:o a/1/x:o");
    assert_listed(box, (struct det_document_query){ .below = "a/1" }, "a/1:o a/1/x:o");
    assert_listed(box, (struct det_document_query){ .below = "a/" }, "");
    assert_listed(box, (struct det_document_query){ .below = "a", .after_id = "a/1" }, "a/1/x:o");
    assert_listed(
        box, (struct det_document_query){ .has_role = true, .role = DET_DOCUMENT_IDENTITY }, "a:i");
    assert_listed(
        box,
        (struct det_document_query){
            .has_role = true, .role = DET_DOCUMENT_OBSERVED, .below = "a", .kind = "link" },
        "a:o a/1:o a/1/x:o");
}

static void documents_of_one_id_are_listed_together(void **state)
{
    struct box *box = *state;

    NEEDS_DOCUMENTS(state);
    fill(box);
    assert_listed(box, (struct det_document_query){ .limit = 1 }, "a:s* a:i a:d a:o");
    assert_listed(box, (struct det_document_query){ .limit = 4 }, "a:s* a:i a:d a:o");
    assert_listed(box, (struct det_document_query){ .limit = 5 }, "a:s* a:i a:d a:o a-b:o");
    assert_listed(box, (struct det_document_query){ .limit = 2, .after_id = "a" }, "a-b:o a/1:o");
    assert_listed(
        box, (struct det_document_query){ .limit = 2, .after_id = "a/" }, "a/1:o a/1/x:o");
    assert_listed(
        box, (struct det_document_query){ .limit = 2, .below = "a", .after_id = "a" },
        "a/1:o a/1/x:o");
    assert_listed(
        box,
        (struct det_document_query){ .limit = 1, .has_role = true, .role = DET_DOCUMENT_DESIRED },
        "a:d");
    assert_listed(box, (struct det_document_query){ .limit = 99, .after_id = "a0" }, "b:o");
}

static void deltas_are_in_the_order_of_sync_ids_and_what_was_asked_for(void **state)
{
    struct box *box = *state;
    struct det_document_query query = { .below = "a", .limit = 2 };

    NEEDS_DOCUMENTS(state);
    fill(box);
    assert_string_equal(
        deltas_of(box->store, query)->text, "3 created link a/1/x observed 1 {}\n"
                                            "4 created link a/1 observed 1 {}\n");
    query.after = 4;
    assert_string_equal(
        deltas_of(box->store, query)->text, "6 created link a observed 1 {}\n"
                                            "7 created link a desired 1 {}\n");
    query = (struct det_document_query){ .kind = "app", .id = "a" };
    assert_string_equal(deltas_of(box->store, query)->text, "9 created app a spec 1 {}\n");
    query = (struct det_document_query){ .has_role = true, .role = DET_DOCUMENT_DESIRED };
    assert_string_equal(deltas_of(box->store, query)->text, "7 created link a desired 1 {}\n");
    assert_deltas(box, 9, "");
    assert_deltas(box, 10, "");
    assert_deltas(box, UINT64_MAX, "");
    assert_int_equal(
        deltas_of(box->store, (struct det_document_query){ .after = 8 })->position.latest, 9);
}

static void visitor_result_is_returned(void **state)
{
    struct box *box = *state;
    struct lines lines = { .stop_at = 2, .answer = DET_ERR_CANCELLED };

    NEEDS_DOCUMENTS(state);
    fill(box);
    assert_int_equal(
        det_store_documents_list(box->store, NULL, note_document, &lines, NULL), DET_ERR_CANCELLED);
    assert_int_equal(lines.count, 2);
    lines = (struct lines){ .stop_at = 3, .answer = 7 };
    assert_int_equal(det_store_documents_deltas(box->store, NULL, note_delta, &lines, NULL), 7);
    assert_int_equal(lines.count, 3);
    assert_int_equal(save(box, "z", "{}").sync, 10);
}

/* Makes this number of deltas of one document. */
static void make_deltas(struct box *box, unsigned count)
{
    static struct det_document_save saves[1500];

    for (unsigned i = 0; i < count; i++)
        saves[i] = saving("a", DET_DOCUMENT_SPEC, i % 2 ? "{\"n\":1}" : "{\"n\":2}");
    assert_int_equal(det_store_documents_save(box->store, saves, count, NULL, NULL), 0);
}

static void deltas_are_compacted_by_count(void **state)
{
    struct box *box = *state;

    NEEDS_DOCUMENTS(state);
    make_deltas(box, 1300);
    assert_int_equal(compact(box, (struct det_document_keep){ 0 }), 0);
    assert_int_equal(compact(box, (struct det_document_keep){ .count_max = 1300 }), 0);
    assert_int_equal(compact(box, (struct det_document_keep){ .count_max = 3 }), 1297);
    assert_position(box, 1300, 1298);
    assert_int_equal(deltas_of(box->store, (struct det_document_query){ 0 })->count, 3);
    assert_documents(box, "link a spec 1300 1300 {\"n\":1}\n");
    assert_int_equal(det_store_documents_compact(box->store, NULL, NULL), 0);
    box_reopen(box);
    assert_position(box, 1300, 1298);
}

static void deltas_are_compacted_by_size(void **state)
{
    struct box *box = *state;
    /* Of {"modified":{"n":{"old":2,"new":1}}}; that of the first one is shorter. */
    const size_t size = strlen("{\"modified\":{\"n\":{\"old\":2,\"new\":1}}}");

    NEEDS_DOCUMENTS(state);
    make_deltas(box, 10);
    assert_int_equal(compact(box, (struct det_document_keep){ .bytes_max = 10 * size }), 0);
    assert_int_equal(compact(box, (struct det_document_keep){ .bytes_max = 4 * size }), 6);
    assert_int_equal(compact(box, (struct det_document_keep){ .bytes_max = 4 * size - 1 }), 1);
    assert_position(box, 10, 8);
    assert_int_equal(compact(box, (struct det_document_keep){ .bytes_max = size - 1 }), 3);
    assert_position(box, 10, 11);
    assert_deltas(box, 0, "");
}

static void deltas_are_compacted_by_age(void **state)
{
    struct box *box = *state;
    det_time between;

    NEEDS_DOCUMENTS(state);
    make_deltas(box, 3);
    box_wait(box, box_now(box) + 50 * DET_MILLISECOND);
    between = box_now(box);
    box_wait(box, box_now(box) + 50 * DET_MILLISECOND);
    save(box, "b", "{}");
    assert_int_equal(compact(box, (struct det_document_keep){ .since = 1 }), 0);
    assert_int_equal(compact(box, (struct det_document_keep){ .since = between }), 3);
    assert_deltas(box, 0, "4 created link b observed 1 {}\n");
    assert_int_equal(compact(box, (struct det_document_keep){ .since = between + DET_HOUR }), 1);
    assert_position(box, 4, 5);
}

static void any_limit_allows_a_delta_to_be_compacted(void **state)
{
    struct box *box = *state;

    NEEDS_DOCUMENTS(state);
    make_deltas(box, 10);
    assert_int_equal(compact(box, (struct det_document_keep){ 1, 8, 1 << 20 }), 2);
    assert_int_equal(compact(box, (struct det_document_keep){ 1, 8, 80 }), 6);
    assert_position(box, 10, 9);
}

/* Following. */

struct seen {
    struct lines lines;
    uint64_t begun_at;
    unsigned begun;
    int answer;
};

static int begin(void *context, uint64_t position)
{
    struct seen *seen = context;

    seen->begun++;
    seen->begun_at = position;
    return seen->answer;
}

static int see_document(void *context, const struct det_document *row)
{
    return note_document(&((struct seen *)context)->lines, row);
}

static int see_delta(void *context, const struct det_delta *row)
{
    return note_delta(&((struct seen *)context)->lines, row);
}

static struct det_documents_follower follower_at(uint64_t position, struct seen *seen)
{
    return (struct det_documents_follower){
        .position = position,
        .begin = begin,
        .document = see_document,
        .delta = see_delta,
        .context = seen,
    };
}

static struct det_documents_followed follow(
    struct box *box, const struct det_documents_follower *follower)
{
    struct det_documents_followed followed = { 0 };
    struct seen *seen = follower->context;

    *seen = (struct seen){ 0 };
    assert_int_equal(det_documents_follow(box->store, follower, &followed), 0);
    assert_int_equal(seen->lines.count, followed.count);
    assert_int_equal(seen->begun, followed.is_bootstrap);
    return followed;
}

static void a_new_follower_begins_with_all_documents(void **state)
{
    struct box *box = *state;
    struct seen seen;
    struct det_documents_follower follower = follower_at(0, &seen);
    struct det_documents_followed followed;

    NEEDS_DOCUMENTS(state);
    followed = follow(box, &follower);
    assert_true(!followed.is_bootstrap && followed.position == 0 && !followed.count);
    fill(box);
    followed = follow(box, &follower);
    assert_true(followed.is_bootstrap && !followed.has_more);
    assert_int_equal(followed.count, 9);
    assert_int_equal(followed.position, 9);
    assert_int_equal(seen.begun_at, 9);
    save(box, "b", NULL);
    save(box, "c", "{}");
    follower.position = followed.position;
    followed = follow(box, &follower);
    assert_true(!followed.is_bootstrap && followed.position == 11 && !followed.has_more);
    assert_string_equal(
        seen.lines.text, "10 dropped link b observed 1 {}\n11 created link c observed 1 {}\n");
    follower.position = 11;
    followed = follow(box, &follower);
    assert_true(!followed.is_bootstrap && followed.position == 11 && !followed.count);
    follower.position = 12;
    followed = follow(box, &follower);
    assert_true(!followed.is_bootstrap && followed.position == 12 && !followed.count);
}

static void a_follower_gets_a_bounded_number_of_deltas(void **state)
{
    struct box *box = *state;
    struct seen seen;
    struct det_documents_follower follower = follower_at(1, &seen);
    struct det_documents_followed followed;

    NEEDS_DOCUMENTS(state);
    make_deltas(box, 102);
    followed = follow(box, &follower);
    assert_true(followed.has_more && followed.count == 100 && followed.position == 101);
    follower.position = 2;
    followed = follow(box, &follower);
    assert_true(!followed.has_more && followed.count == 100 && followed.position == 102);
    follower.limit = 1;
    followed = follow(box, &follower);
    assert_true(followed.has_more && followed.count == 1 && followed.position == 3);
}

static void follower_behind_the_compaction_restarts(void **state)
{
    struct box *box = *state;
    struct seen seen;
    struct det_documents_follower follower = follower_at(6, &seen);
    struct det_documents_followed followed;

    NEEDS_DOCUMENTS(state);
    make_deltas(box, 10);
    compact(box, (struct det_document_keep){ .count_max = 3 });
    followed = follow(box, &follower);
    assert_true(followed.is_bootstrap && followed.position == 10 && followed.count == 1);
    follower.position = 7;
    followed = follow(box, &follower);
    assert_true(!followed.is_bootstrap && followed.position == 10 && followed.count == 3);
    compact(box, (struct det_document_keep){ .bytes_max = 1 });
    follower.position = 9;
    follower.begin = NULL;
    seen = (struct seen){ 0 };
    assert_int_equal(det_documents_follow(box->store, &follower, &followed), 0);
    assert_true(followed.is_bootstrap && followed.position == 10 && followed.count == 1);
    save_role(box, "a", DET_DOCUMENT_SPEC, NULL);
    compact(box, (struct det_document_keep){ .bytes_max = 1 });
    follower.begin = begin;
    followed = follow(box, &follower);
    assert_true(followed.is_bootstrap && followed.position == 11 && !followed.count);
    assert_int_equal(seen.begun_at, 11);
}

static void follower_position_skips_unwanted_deltas(void **state)
{
    struct box *box = *state;
    struct seen seen;
    struct det_documents_follower follower = follower_at(2, &seen);
    struct det_documents_followed followed;

    NEEDS_DOCUMENTS(state);
    fill(box);
    follower.wanted = (struct det_document_query){ .below = "a/1", .limit = 1, .after = 7 };
    followed = follow(box, &follower);
    assert_true(followed.count == 2 && followed.position == 9 && !followed.has_more);
    follower.wanted.below = "nobody";
    followed = follow(box, &follower);
    assert_true(!followed.count && followed.position == 9);
    follower.position = 0;
    follower.wanted.below = "a/1";
    followed = follow(box, &follower);
    assert_true(followed.is_bootstrap && followed.count == 2 && followed.position == 9);
}

static void follower_can_end_the_call(void **state)
{
    struct box *box = *state;
    struct seen seen = { .lines = { .stop_at = 2, .answer = 1 } };
    struct det_documents_follower follower = follower_at(1, &seen);
    struct det_documents_followed followed = { .position = 77 };

    NEEDS_DOCUMENTS(state);
    fill(box);
    assert_int_equal(det_documents_follow(box->store, &follower, &followed), 1);
    assert_int_equal(seen.lines.count, 2);
    seen = (struct seen){ .answer = DET_ERR_CANCELLED };
    follower.position = 0;
    assert_int_equal(det_documents_follow(box->store, &follower, &followed), DET_ERR_CANCELLED);
    assert_int_equal(seen.lines.count, 0);
    assert_int_equal(followed.position, 77);
}

/* Importing. */

static bool restore(struct box *box, const char *id, uint64_t version, uint64_t floor)
{
    const struct det_document row = {
        .kind = "link",
        .id = id,
        .role = DET_DOCUMENT_SPEC,
        .version = version,
        .created_at = 5,
        .updated_at = 7,
        .text = "{\"n\":1}",
        .size = 7,
    };
    bool is_new = false;

    assert_int_equal(box->store->ops->documents->restore(box->store, &row, floor, &is_new), 0);
    return is_new;
}

static int check_times(void *context, const struct det_document *row)
{
    (void)context;
    assert_true(row->created_at == 5 && row->updated_at == 7);
    return 0;
}

static void documents_of_another_store_are_imported(void **state)
{
    struct box *box = *state;

    NEEDS_DOCUMENTS(state);
    assert_true(restore(box, "a", 6, 40));
    assert_false(restore(box, "a", 7, 99));
    assert_true(restore(box, "b", 1, 40));
    assert_documents(box, "link a spec 41 6 {\"n\":1}\nlink b spec 42 1 {\"n\":1}\n");
    assert_int_equal(det_store_documents_list(box->store, NULL, check_times, NULL, NULL), 0);
    assert_position(box, 42, 41);
    assert_deltas(
        box, 0,
        "41 created link a spec 6 {\"added\":{\"n\":1}}\n"
        "42 created link b spec 1 {\"added\":{\"n\":1}}\n");
    assert_int_equal(save_role(box, "a", DET_DOCUMENT_SPEC, "{}").version, 7);
    /* Into a store with a lower position: followers begin again. */
    assert_true(restore(box, "c", 2, 100));
    assert_position(box, 101, 101);
    assert_true(restore(box, "d", 2, 50));
    assert_position(box, 102, 101);
    box_reopen(box);
    assert_int_equal(save(box, "e", "{}").sync, 103);
}

static void inconsistent_document_is_not_imported(void **state)
{
    struct box *box = *state;
    const struct det_document good = {
        .kind = "link",
        .id = "a",
        .version = 1,
        .created_at = 1,
        .updated_at = 1,
        .text = "{}",
        .size = 2,
    };
    struct det_document bad[6] = { good, good, good, good, good, good };
    bool is_new;

    NEEDS_DOCUMENTS(state);
    bad[0].version = 0;
    bad[1].created_at = 0;
    bad[2].updated_at = 0;
    bad[3].text = "[]";
    bad[4].id = "";
    bad[5].kind = NULL;
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(
            box->store->ops->documents->restore(box->store, &bad[i], 0, &is_new), DET_ERR_INVALID);
    assert_position(box, 0, 1);
}

static const struct CMUnitTest document_looks[] = {
    CASE(a_new_store_has_no_documents),
    CASE(a_list_is_in_the_order_of_ids_and_roles_and_has_what_was_asked_for),
    CASE(documents_of_one_id_are_listed_together),
    CASE(deltas_are_in_the_order_of_sync_ids_and_what_was_asked_for),
    CASE(visitor_result_is_returned),
    CASE(deltas_are_compacted_by_count),
    CASE(deltas_are_compacted_by_size),
    CASE(deltas_are_compacted_by_age),
    CASE(any_limit_allows_a_delta_to_be_compacted),
    CASE(a_new_follower_begins_with_all_documents),
    CASE(a_follower_gets_a_bounded_number_of_deltas),
    CASE(follower_behind_the_compaction_restarts),
    CASE(follower_position_skips_unwanted_deltas),
    CASE(follower_can_end_the_call),
    CASE(documents_of_another_store_are_imported),
    CASE(inconsistent_document_is_not_imported),
};
const struct group document_look_cases = GROUP_OF(document_looks);
