/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document_cases.c - saving documents, driver/documents.h. */
#include "conform/documents.h"

#include "os/os.h"

static void saved_changes_are_reported_as_documented(void **state)
{
    struct box *box = *state;
    struct det_document_saved saved;

    NEEDS_DOCUMENTS(state);
    saved = save(box, "a", "{\"a\":1,\"b\":2}");
    assert_true(saved.is_changed && saved.sync == 1 && saved.version == 1);
    saved = save(box, "a", "{\"a\":1,\"b\":2}");
    assert_true(!saved.is_changed && saved.sync == 1 && saved.version == 1);
    saved = save(box, "a", "{\"a\":1,\"b\":3,\"c\":4}");
    assert_true(saved.is_changed && saved.sync == 2 && saved.version == 2);
    saved = save(box, "a", "{\"a\":1}");
    assert_true(saved.is_changed && saved.sync == 3 && saved.version == 3);
    saved = save(box, "a", NULL);
    assert_true(saved.is_changed && saved.sync == 4 && saved.version == 0);
    saved = save(box, "a", NULL);
    assert_true(!saved.is_changed && saved.version == 0);
    assert_deltas(
        box, 0,
        "1 created link a observed 1 {\"added\":{\"a\":1,\"b\":2}}\n"
        "2 changed link a observed 2 "
        "{\"added\":{\"c\":4},\"modified\":{\"b\":{\"old\":2,\"new\":3}}}\n"
        "3 changed link a observed 3 {\"removed\":{\"b\":3,\"c\":4}}\n"
        "4 dropped link a observed 3 {\"removed\":{\"a\":1}}\n");
    assert_documents(box, "");
}

static void dropped_document_restarts_version_and_creation(void **state)
{
    struct box *box = *state;
    struct det_document_saved saved;

    NEEDS_DOCUMENTS(state);
    save(box, "a", "{\"n\":1}");
    save(box, "a", "{\"n\":2}");
    save(box, "a", NULL);
    saved = save(box, "a", "{}");
    assert_true(saved.is_changed && saved.version == 1 && saved.sync == 4);
    assert_documents(box, "link a observed 4 1 {}\n");
    assert_deltas(box, 3, "4 created link a observed 1 {}\n");
}

struct times {
    det_time created_at, updated_at;
};

static int read_times(void *context, const struct det_document *row)
{
    *(struct times *)context = (struct times){ row->created_at, row->updated_at };
    return 0;
}

static struct times times_of(struct box *box)
{
    struct times times = { 0 };

    assert_int_equal(det_store_documents_list(box->store, NULL, read_times, &times, NULL), 0);
    return times;
}

static void document_keeps_creation_and_updates_by_store_clock(void **state)
{
    struct box *box = *state;
    struct times first, second, third;
    det_time before;

    NEEDS_DOCUMENTS(state);
    before = box_now(box);
    save(box, "a", "{\"n\":1}");
    first = times_of(box);
    assert_true(first.created_at == first.updated_at);
    assert_true(first.created_at >= before - DET_SECOND);
    box_wait(box, box_now(box) + 2 * DET_MILLISECOND);
    save(box, "a", "{\"n\":1}");
    second = times_of(box);
    assert_int_equal(second.updated_at, first.updated_at);
    save(box, "a", "{\"n\":2}");
    third = times_of(box);
    assert_int_equal(third.created_at, first.created_at);
    assert_true(third.updated_at > first.updated_at);
}

static void values_are_compared_as_json(void **state)
{
    struct box *box = *state;
    static const char *const same[] = {
        "{\"a\":[1,{\"x\":\"\xc3\xa4\",\"y\":null}],\"b\":100}",
        "  { \"b\" : 1e2 ,\n\"a\":[1.0, {\"y\":null, \"x\":\"\\u00e4\"}]\t} ",
        "{\"\\u0062\":100.00,\"a\":[10E-1,{\"x\":\"\\u00E4\",\"y\":null}]}",
    };

    NEEDS_DOCUMENTS(state);
    assert_true(save(box, "a", same[0]).is_changed);
    for (size_t i = 0; i < 3; i++)
        assert_false(save(box, "a", same[i]).is_changed);
    assert_documents(
        box, "link a observed 1 1 {\"a\":[1,{\"x\":\"\xc3\xa4\",\"y\":null}],\"b\":100}\n");
    assert_true(save(box, "a", "{\"b\":100,\"a\":[{\"x\":\"\xc3\xa4\",\"y\":null},1]}").is_changed);
}

static void large_integers_are_distinguished(void **state)
{
    struct box *box = *state;

    NEEDS_DOCUMENTS(state);
    save(box, "a", "{\"n\":18446744073709551614,\"m\":-9223372036854775808}");
    assert_true(
        save(box, "a", "{\"n\":18446744073709551615,\"m\":-9223372036854775808}").is_changed);
    assert_true(
        save(box, "a", "{\"n\":18446744073709551615,\"m\":-9223372036854775807}").is_changed);
    assert_deltas(
        box, 2,
        "3 changed link a observed 3 "
        "{\"modified\":{\"m\":{\"old\":-9223372036854775808,\"new\":-9223372036854775807}}}\n");
}

static void a_document_is_kept_as_it_was_saved(void **state)
{
    struct box *box = *state;

    NEEDS_DOCUMENTS(state);
    save(box, "a/\xe2\x82\xac 1", "{ \"z\" : \"\\u0000\\\"\\n\xf0\x9f\x98\x80\" ,\"a\":[ ] }");
    box_reopen(box);
    assert_documents(
        box, "link a/\xe2\x82\xac 1 observed 1 1 "
             "{ \"z\" : \"\\u0000\\\"\\n\xf0\x9f\x98\x80\" ,\"a\":[ ] }\n");
    assert_deltas(
        box, 0,
        "1 created link a/\xe2\x82\xac 1 observed 1 "
        "{\"added\":{\"a\":[ ],\"z\":\"\\u0000\\\"\\n\xf0\x9f\x98\x80\"}}\n");
}

static void kinds_ids_and_roles_are_documents_of_their_own(void **state)
{
    struct box *box = *state;
    struct det_document_save other = saving("a", DET_DOCUMENT_SPEC, "{\"n\":4}");

    NEEDS_DOCUMENTS(state);
    save_role(box, "a", DET_DOCUMENT_SPEC, "{\"n\":1}");
    save_role(box, "a", DET_DOCUMENT_DESIRED, "{\"n\":2}");
    save_role(box, "b", DET_DOCUMENT_SPEC, "{\"n\":3}");
    other.kind = "Application_2.x-y";
    assert_int_equal(det_store_documents_save(box->store, &other, 1, NULL, NULL), 0);
    assert_documents(
        box, "Application_2.x-y a spec 4 1 {\"n\":4}\n"
             "link a desired 2 1 {\"n\":2}\n"
             "link a spec 1 1 {\"n\":1}\n"
             "link b spec 3 1 {\"n\":3}\n");
}

static void the_saves_of_a_call_are_one_commit(void **state)
{
    struct box *box = *state;
    struct det_document_save saves[3] = {
        saving("a", DET_DOCUMENT_OBSERVED, "{\"n\":1}"),
        saving("b", DET_DOCUMENT_OBSERVED, "{\"n\":1}"),
        saving("c", DET_DOCUMENT_OBSERVED, "{\"n\":1,\"n\":2}"),
    };
    struct det_document_saved saved[3];
    struct det_error error = { 0 };

    NEEDS_DOCUMENTS(state);
    assert_int_equal(
        det_store_documents_save(box->store, saves, 3, saved, &error), DET_ERR_INVALID);
    assert_non_null(strstr(error.text, "link c, observed: duplicate field \"n\""));
    saves[2] = saving("c", DET_DOCUMENT_OBSERVED, "{}");
    saves[2].has_expected = true;
    saves[2].expected = 1;
    assert_int_equal(
        det_store_documents_save(box->store, saves, 3, saved, &error), DET_ERR_CONFLICT);
    assert_documents(box, "");
    assert_position(box, 0, 1);
    saves[2].expected = 0;
    assert_int_equal(det_store_documents_save(box->store, saves, 3, saved, &error), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_true(saved[i].is_changed && saved[i].sync == i + 1 && saved[i].version == 1);
    assert_int_equal(det_store_documents_save(box->store, NULL, 0, NULL, &error), 0);
    assert_position(box, 3, 1);
}

static void saves_of_one_document_in_one_call_come_one_after_the_other(void **state)
{
    struct box *box = *state;
    struct det_document_save saves[6] = {
        saving("a", DET_DOCUMENT_SPEC, "{\"n\":1}"), saving("a", DET_DOCUMENT_SPEC, "{\"n\":1}"),
        saving("a", DET_DOCUMENT_SPEC, "{\"n\":2}"), saving("a", DET_DOCUMENT_SPEC, NULL),
        saving("b", DET_DOCUMENT_SPEC, "{}"),        saving("a", DET_DOCUMENT_SPEC, "{\"n\":3}"),
    };
    struct det_document_saved saved[6];

    NEEDS_DOCUMENTS(state);
    saves[2].has_expected = true;
    saves[2].expected = 1;
    assert_int_equal(det_store_documents_save(box->store, saves, 6, saved, NULL), 0);
    assert_false(saved[1].is_changed);
    assert_int_equal(saved[1].sync, 1);
    assert_int_equal(saved[3].version, 0);
    assert_documents(box, "link a spec 5 1 {\"n\":3}\nlink b spec 4 1 {}\n");
    assert_deltas(
        box, 0,
        "1 created link a spec 1 {\"added\":{\"n\":1}}\n"
        "2 changed link a spec 2 {\"modified\":{\"n\":{\"old\":1,\"new\":2}}}\n"
        "3 dropped link a spec 2 {\"removed\":{\"n\":2}}\n"
        "4 created link b spec 1 {}\n"
        "5 created link a spec 1 {\"added\":{\"n\":3}}\n");
    /* One is created and dropped in the same call, one existed and is dropped. */
    saves[0] = saving("c", DET_DOCUMENT_SPEC, "{}");
    saves[1] = saving("c", DET_DOCUMENT_SPEC, NULL);
    saves[2] = saving("b", DET_DOCUMENT_SPEC, NULL);
    assert_int_equal(det_store_documents_save(box->store, saves, 3, saved, NULL), 0);
    assert_documents(box, "link a spec 5 1 {\"n\":3}\n");
    assert_position(box, 8, 1);
}

static int save_expecting(struct box *box, const char *text, uint64_t expected)
{
    struct det_document_save save = saving("a", DET_DOCUMENT_SPEC, text);
    struct det_error error = { 0 };
    int r;

    save.has_expected = true;
    save.expected = expected;
    r = det_store_documents_save(box->store, &save, 1, NULL, &error);
    if (r == DET_ERR_CONFLICT)
        assert_true(error.expected == expected && error.actual != expected && error.text[0]);
    return r;
}

static void a_save_may_expect_a_version(void **state)
{
    struct box *box = *state;

    NEEDS_DOCUMENTS(state);
    assert_int_equal(save_expecting(box, "{}", 1), DET_ERR_CONFLICT);
    assert_int_equal(save_expecting(box, "{}", 0), 0);
    assert_int_equal(save_expecting(box, "{}", 0), DET_ERR_CONFLICT);
    assert_int_equal(save_expecting(box, "{}", 1), 0);
    assert_int_equal(save_expecting(box, "{\"n\":1}", 1), 0);
    assert_int_equal(save_expecting(box, NULL, 1), DET_ERR_CONFLICT);
    assert_int_equal(save_expecting(box, NULL, 2), 0);
    assert_int_equal(save_expecting(box, NULL, 2), DET_ERR_CONFLICT);
    assert_int_equal(save_expecting(box, NULL, 0), 0);
    assert_position(box, 3, 1);
}

static void refuse(struct box *box, struct det_document_save save)
{
    struct det_error error = { 0 };

    assert_int_equal(det_store_documents_save(box->store, &save, 1, NULL, &error), DET_ERR_INVALID);
    assert_int_equal(error.code, DET_ERR_INVALID);
    assert_true(error.text[0]);
    assert_int_equal(det_store_documents_save(box->store, &save, 1, NULL, NULL), DET_ERR_INVALID);
}

static void document_of_less_than_2_bytes_is_refused(void **state)
{
    struct box *box = *state;
    struct det_document_save save = saving("a", DET_DOCUMENT_SPEC, "1");
    struct det_error error = { 0 };

    NEEDS_DOCUMENTS(state);
    assert_int_equal(det_store_documents_save(box->store, &save, 1, NULL, &error), DET_ERR_INVALID);
    assert_non_null(strstr(error.text, "the document has 1 byte; it must have 2 to 1048576"));
}

static void invalid_document_is_refused(void **state)
{
    struct box *box = *state;
    static const char *const texts[] = {
        "",
        "[]",
        "1",
        "null",
        "{\"a\":1} x",
        "{\"a\":1,\"\\u0061\":2}",
        "{\"a\"",
        "{\"a\":01}",
        "{'a':1}",
        "{\"a\":\"\xff\"}",
        "{\"a\":{\"b\":1,\"c\":2,\"b\":1}}",
    };
    static const char *const names[] = { NULL, "", "a\nb", "\x7f", "\xff" };
    struct det_document_save save = saving("a", DET_DOCUMENT_SPEC, "{}");

    NEEDS_DOCUMENTS(state);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        refuse(box, saving("a", DET_DOCUMENT_SPEC, texts[i]));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        refuse(box, saving(names[i], DET_DOCUMENT_SPEC, "{}"));
        save.kind = names[i];
        refuse(box, save);
    }
    save.kind = "a b";
    refuse(box, save);
    save.kind = "link";
    save.role = (enum det_document_role)4;
    refuse(box, save);
    save.role = DET_DOCUMENT_SPEC;
    save.text = NULL;
    refuse(box, save);
    assert_position(box, 0, 1);
}

/* {"a":"xxx..."} of `size` bytes; free() it. */
static char *document_of_size(size_t size, char filling)
{
    char *text = malloc(size + 1);

    assert_non_null(text);
    memset(text, filling, size);
    memcpy(text, "{\"a\":\"", 6);
    memcpy(text + size - 2, "\"}", 3);
    return text;
}

static void document_limits_match_the_documentation(void **state)
{
    struct box *box = *state;
    char id[DET_DOCUMENT_ID_MAX + 2], kind[DET_DOCUMENT_KIND_MAX + 2];
    struct det_document_save save = saving(id, DET_DOCUMENT_SPEC, "{}");
    char *small = document_of_size(DET_DOCUMENT_MAX, 'x'), *other, *large;

    memset(id, 'i', sizeof id);
    memset(kind, 'k', sizeof kind);
    id[DET_DOCUMENT_ID_MAX + 1] = kind[DET_DOCUMENT_KIND_MAX] = 0;
    save.kind = kind;
    other = document_of_size(DET_DOCUMENT_MAX, 'y');
    large = document_of_size(DET_DOCUMENT_MAX + 1, 'x');
    if (box->store->ops->documents) {
        refuse(box, save);
        id[DET_DOCUMENT_ID_MAX] = 0;
        assert_int_equal(det_store_documents_save(box->store, &save, 1, NULL, NULL), 0);
        kind[DET_DOCUMENT_KIND_MAX] = 'k';
        kind[DET_DOCUMENT_KIND_MAX + 1] = 0;
        refuse(box, save);
        refuse(box, saving("a", DET_DOCUMENT_SPEC, large));
        assert_true(save_role(box, "a", DET_DOCUMENT_SPEC, small).is_changed);
        assert_false(save_role(box, "a", DET_DOCUMENT_SPEC, small).is_changed);
        assert_true(save_role(box, "a", DET_DOCUMENT_SPEC, other).is_changed);
        assert_position(box, 3, 1);
    }
    free(small);
    free(other);
    free(large);
}

/* {"a":[[...]]}, so many levels deep; or with a number in the middle. */
static const char *document_of_depth(char text[256], int depth, bool has_number)
{
    int size = snprintf(text, 256, "{\"a\":");

    for (int i = 1; i < depth; i++)
        text[size++] = '[';
    if (has_number)
        text[size++] = '7';
    for (int i = 1; i < depth; i++)
        text[size++] = ']';
    snprintf(text + size, (size_t)(256 - size), "}");
    return text;
}

static void a_document_is_not_too_deep_for_its_delta(void **state)
{
    struct box *box = *state;
    char text[256];

    NEEDS_DOCUMENTS(state);
    save(box, "a", document_of_depth(text, DET_DOCUMENT_DEPTH, false));
    /* The check at the end reads the delta. */
    save(box, "a", document_of_depth(text, DET_DOCUMENT_DEPTH, true));
    refuse(
        box, saving("a", DET_DOCUMENT_SPEC, document_of_depth(text, DET_DOCUMENT_DEPTH + 1, true)));
    assert_position(box, 2, 1);
}

static void sync_ids_are_never_given_again(void **state)
{
    struct box *box = *state;

    NEEDS_DOCUMENTS(state);
    save(box, "a", "{\"n\":1}");
    save(box, "a", "{\"n\":2}");
    save(box, "a", NULL);
    assert_int_equal(compact(box, (struct det_document_keep){ .bytes_max = 1 }), 3);
    assert_position(box, 3, 4);
    box_reopen(box);
    assert_position(box, 3, 4);
    assert_int_equal(save(box, "a", "{}").sync, 4);
    box_reopen(box);
    assert_int_equal(save(box, "b", "{}").sync, 5);
    assert_position(box, 5, 4);
}

static void a_store_for_reading_changes_no_documents(void **state)
{
    struct box *box = *state;
    struct det_document_save one = saving("a", DET_DOCUMENT_SPEC, "{\"n\":2}");
    struct det_store *reader;
    uint64_t count = 99;

    NEEDS_DOCUMENTS(state);
    if (!box->driver->has_readers)
        return;
    save_role(box, "a", DET_DOCUMENT_SPEC, "{\"n\":1}");
    assert_int_equal(
        box_open_with(box, (struct det_store_options){ .is_read_only = true }, &reader, NULL), 0);
    assert_int_equal(det_store_documents_save(reader, &one, 1, NULL, NULL), DET_ERR_READ_ONLY);
    assert_int_equal(
        det_store_documents_compact(reader, &(struct det_document_keep){ .count_max = 1 }, &count),
        DET_ERR_READ_ONLY);
    assert_int_equal(count, 0);
    assert_string_equal(
        list_of(reader, (struct det_document_query){ 0 })->text, "link a spec 1 1 {\"n\":1}\n");
    assert_int_equal(deltas_of(reader, (struct det_document_query){ 0 })->position.latest, 1);
    det_store_close(reader);
}

static void store_without_documents_is_unsupported(void **state)
{
    struct box *box = *state;
    struct det_document_save one = saving("a", DET_DOCUMENT_SPEC, "{}");
    struct det_document_position position;
    struct det_error error;

    if (box->store->ops->documents)
        return;
    assert_int_equal(
        det_store_documents_save(box->store, &one, 1, NULL, &error), DET_ERR_UNSUPPORTED);
    assert_int_equal(
        det_store_documents_list(box->store, NULL, NULL, NULL, NULL), DET_ERR_UNSUPPORTED);
    assert_int_equal(
        det_store_documents_deltas(box->store, NULL, NULL, NULL, NULL), DET_ERR_UNSUPPORTED);
    assert_int_equal(det_store_documents_position(box->store, &position), DET_ERR_UNSUPPORTED);
    assert_int_equal(det_store_documents_compact(box->store, NULL, NULL), DET_ERR_UNSUPPORTED);
}

/* Concurrent writers. */

#define WRITERS 4
#define ROUNDS  20

struct writer {
    struct det_store *store;
    struct det_thread *thread;
    unsigned number;
    int result;
    uint64_t last; /* sync id */
    bool is_disordered;
};

/* Saves two own documents and one shared document in one call. */
static void write_mine(void *argument)
{
    struct writer *writer = argument;
    char own[16], text[64];

    snprintf(own, sizeof own, "own-%u", writer->number);
    for (unsigned i = 0; i < ROUNDS && writer->result == 0; i++) {
        struct det_document_save saves[3];
        struct det_document_saved saved[3];

        snprintf(text, sizeof text, "{\"n\":%u,\"by\":%u}", i, writer->number);
        saves[0] = saving(own, DET_DOCUMENT_DESIRED, text);
        saves[1] = saving("shared", DET_DOCUMENT_OBSERVED, text);
        saves[2] = saving(own, DET_DOCUMENT_OBSERVED, text);
        writer->result = det_store_documents_save(writer->store, saves, 3, saved, NULL);
        if (writer->result < 0)
            return;
        writer->is_disordered |= saved[0].sync <= writer->last ||
                                 saved[1].sync != saved[0].sync + 1 ||
                                 saved[2].sync != saved[1].sync + 1;
        writer->last = saved[2].sync;
    }
}

struct follower {
    struct writer writer; /* its store and thread */
    uint64_t position;
    bool has_missed;
};

static int follow_delta(void *context, const struct det_delta *delta)
{
    struct follower *follower = context;

    follower->has_missed |= delta->sync != follower->position + 1;
    follower->position = delta->sync;
    return 0;
}

/* Each follower sees every sync id once, in order. */
static void follow_all(void *argument)
{
    struct follower *follower = argument;
    struct det_store *store = follower->writer.store;
    int r = 0;

    while (r == 0 && follower->position < 3 * WRITERS * ROUNDS && !follower->has_missed) {
        struct det_document_query query = { .after = follower->position, .limit = 7 };

        r = det_store_documents_deltas(store, &query, follow_delta, follower, NULL);
    }
    follower->writer.result = r;
}

static void concurrent_document_writers_lose_no_delta_for_followers(void **state)
{
    struct box *box = *state;
    struct writer writers[WRITERS] = { 0 };
    struct follower follower = { 0 };
    struct det_store *second = box->store;

    NEEDS_DOCUMENTS(state);
    if (box->driver->is_shared)
        second = box_open_store(box);
    follower.writer.store = second;
    assert_int_equal(
        det_thread_start(box->world, "follower", follow_all, &follower, &follower.writer.thread),
        0);
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){ .store = i % 2 ? second : box->store, .number = i };
        assert_int_equal(
            det_thread_start(box->world, "writer", write_mine, &writers[i], &writers[i].thread), 0);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        det_thread_join(box->world, writers[i].thread);
        assert_int_equal(writers[i].result, 0);
        assert_false(writers[i].is_disordered);
    }
    det_thread_join(box->world, follower.writer.thread);
    assert_int_equal(follower.writer.result, 0);
    assert_false(follower.has_missed);
    assert_position(box, 3 * WRITERS * ROUNDS, 1);
    if (second != box->store)
        box_close_store(box, second);
}

static const struct CMUnitTest documents[] = {
    CASE(saved_changes_are_reported_as_documented),
    CASE(dropped_document_restarts_version_and_creation),
    CASE(document_keeps_creation_and_updates_by_store_clock),
    CASE(values_are_compared_as_json),
    CASE(large_integers_are_distinguished),
    CASE(a_document_is_kept_as_it_was_saved),
    CASE(kinds_ids_and_roles_are_documents_of_their_own),
    CASE(the_saves_of_a_call_are_one_commit),
    CASE(saves_of_one_document_in_one_call_come_one_after_the_other),
    CASE(a_save_may_expect_a_version),
    CASE(document_of_less_than_2_bytes_is_refused),
    CASE(invalid_document_is_refused),
    CASE(document_limits_match_the_documentation),
    CASE(a_document_is_not_too_deep_for_its_delta),
    CASE(sync_ids_are_never_given_again),
    CASE(a_store_for_reading_changes_no_documents),
    CASE(store_without_documents_is_unsupported),
    CASE(concurrent_document_writers_lose_no_delta_for_followers),
};
const struct group document_cases = GROUP_OF(documents);
