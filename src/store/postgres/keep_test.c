/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* keep_test.c - maintenance of a store: findings of a check, pruning, and the list of machines. */
#include "store/postgres/postgres_test.h"

#include "store/postgres/checksum.h"

struct findings {
    size_t count;
    char text[512];
    uint64_t sequence;
    uint64_t done, total;
    int answer;
};

static int found_one(void *context, const struct det_store_finding *row)
{
    struct findings *findings = context;

    findings->count++;
    findings->sequence = row->sequence;
    snprintf(
        findings->text, sizeof findings->text, "%s/%s: %s", row->machine ? row->machine : "",
        row->id ? row->id : "", row->text);
    return findings->answer;
}

static void progressed(void *context, uint64_t done, uint64_t total)
{
    struct findings *findings = context;

    findings->done = done;
    findings->total = total;
}

static struct findings check(struct pad *pad)
{
    struct findings findings = { 0 };

    assert_int_equal(pad->store->ops->check(pad->store, found_one, progressed, &findings), 0);
    return findings;
}

static int send_snapshot(struct pad *pad)
{
    static const uint16_t history[] = { 0, 1 };

    begin(pad);
    add_event(pad, BARE);
    pad->commit.is_snapshot = true;
    pad->commit.history = history;
    pad->commit.history_count = 2;
    return commit(pad);
}

static void a_sound_store_has_no_findings(void **state)
{
    struct pad *pad = desk_open();
    struct findings findings;

    (void)state;
    for (int i = 0; i < 5; i++)
        assert_int_equal(send(pad, i % 3 ? SMALL : TEXT, i == 2 ? "an-id" : NULL), 0);
    assert_int_equal(send_snapshot(pad), 0);
    assert_int_equal(send(pad, BARE, NULL), 0);
    findings = check(pad);
    assert_int_equal(findings.count, 0);
    assert_int_equal(findings.done, 1);
    assert_int_equal(findings.total, 1);
    desk_close(pad);
}

/* More instances and events than fit a page, of different lengths. */
static void a_large_store_is_checked_page_by_page(void **state)
{
    enum { INSTANCES = 600 };
    struct pad *pad = desk_open();
    struct findings findings;
    char id[16];

    (void)state;
    for (int i = 0; i < INSTANCES; i++) {
        struct pad other = { .machine = pad->machine, .store = pad->store };
        struct det_store_event events[4];

        snprintf(id, sizeof id, "i%d", i);
        assert_int_equal(start(&other, id), 0);
        begin(&other);
        for (int j = 0; j < i % 5; j++) {
            add_event(&other, BARE);
            events[j] = other.event;
        }
        other.commit.events = events;
        other.commit.event_count = (size_t)(i % 5);
        if (i % 5)
            assert_int_equal(commit(&other), 0);
        pad->store->ops->release(pad->store, other.instance);
    }
    findings = check(pad);
    assert_string_equal(findings.text, "");
    assert_int_equal(findings.count, 0);
    assert_int_equal(findings.done, INSTANCES + 1);
    free(
        sql(pad->store, "UPDATE @events SET visit = 77 WHERE sequence = 3 AND instance = "
                        "(SELECT key FROM @instances WHERE id = 'i599')"));
    findings = check(pad);
    assert_int_equal(findings.count, 1);
    assert_int_equal(findings.sequence, 3);
    desk_close(pad);
}

static void every_kind_of_damage_is_found(void **state)
{
    static const struct {
        const char *damage, *words;
    } cases[] = {
        { "UPDATE @instances SET data = data || '\\x00'::bytea", "the head is damaged" },
        { "UPDATE @instances SET reason = 'none'", "the head is damaged" },
        { "UPDATE @snapshots SET history = 'A'", "the snapshot is damaged" },
        { "UPDATE @events SET to_state = 'A' WHERE sequence = 3", "was changed" },
        { "UPDATE @events SET hash = '\\x00' WHERE sequence = 3", "was changed" },
        { "DELETE FROM @events WHERE sequence = 3", "events before this one are missing" },
        { "DELETE FROM @events WHERE sequence >= 5", "events up to the head are missing" },
        { "DELETE FROM @snapshots; DELETE FROM @events WHERE sequence < 3",
          "no snapshot covers them" },
        { "INSERT INTO @timers (instance, name, machine, visit, due, event, owner, next_at, "
          "checksum) VALUES (99, 'x', 'pad', 1, 1, 'BARE', '', 1, '\\x00')",
          "1 row of the table timers belongs to no instance" },
        { "DELETE FROM @instances", "to no instance" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pad *pad = desk_open();
        struct findings findings;

        for (int j = 0; j < 3; j++)
            assert_int_equal(send(pad, BARE, NULL), 0);
        assert_int_equal(send_snapshot(pad), 0);
        assert_int_equal(send(pad, SMALL, NULL), 0);
        free(sql(pad->store, cases[i].damage));
        findings = check(pad);
        if (findings.count == 0 || !strstr(findings.text, cases[i].words))
            fail_msg("%s: \"%s\"", cases[i].damage, findings.text);
        desk_close(pad);
    }
}

static void a_visitor_ends_the_check(void **state)
{
    struct pad *pad = desk_open();
    struct findings findings = { .answer = 55 };
    struct found found;

    (void)state;
    free(sql(pad->store, "UPDATE @instances SET visit = 9"));
    assert_int_equal(pad->store->ops->check(pad->store, found_one, NULL, &findings), 55);
    /* Its open transaction was rolled back. */
    assert_int_equal(look_up(pad, "q", &found), DET_ERR_NOT_FOUND);
    desk_close(pad);
}

static void pruning_keeps_what_no_snapshot_covers(void **state)
{
    struct pad *pad = desk_open();
    struct rows rows = { 0 };
    uint64_t count = 99;

    (void)state;
    for (int i = 0; i < 5; i++)
        assert_int_equal(send(pad, BARE, i < 2 ? (i ? "b" : "a") : NULL), 0);
    assert_int_equal(pad->store->ops->prune(pad->store, pad->instance, 5, 0, &count), 0);
    assert_int_equal(count, 0);
    assert_int_equal(send_snapshot(pad), 0);
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_int_equal(pad->store->ops->prune(pad->store, pad->instance, 2, 0, &count), 0);
    assert_int_equal(count, 2);
    assert_int_equal(
        pad->store->ops->prune(pad->store, pad->instance, UINT64_MAX, DET_NEVER, &count), 0);
    assert_int_equal(count, 4);
    assert_int_equal(walk(pad, 0, &rows), 0);
    assert_int_equal(rows.count, 1);
    assert_int_equal(rows.first, 7);
    assert_int_equal(check(pad).count, 0);
    {
        struct det_store_answer answer;
        struct found found;

        assert_int_equal(
            pad->store->ops->answer(pad->store, pad->instance, "a", &answer), DET_ERR_NOT_FOUND);
        /* The sequence continues, and the history continues with that of the snapshot. */
        assert_int_equal(look_up(pad, "p", &found), 0);
        assert_int_equal(found.loaded.head.sequence, 7);
        assert_int_equal(found.loaded.history_count, 3);
        assert_int_equal(found.loaded.history[0], 0);
        assert_int_equal(found.loaded.history[1], 0);
        assert_int_equal(found.loaded.history[2], 1);
    }
    assert_int_equal(send(pad, BARE, NULL), 0);
    desk_close(pad);
}

static void event_ids_are_forgotten_when_their_time_is_over(void **state)
{
    struct pad *pad = desk_open();
    struct det_store_answer answer;
    size_t count;

    (void)state;
    assert_int_equal(send(pad, BARE, "old"), 0);
    assert_int_equal(send(pad, BARE, "new"), 0);
    free(
        sql(pad->store, "UPDATE @answers SET at = at - 8 * 86400000000000 "
                        "WHERE event_id = 'old'"));
    assert_int_equal(pad->store->ops->adopt(pad->store, pad->machine, 1, &count), 0);
    assert_int_equal(
        pad->store->ops->answer(pad->store, pad->instance, "old", &answer), DET_ERR_NOT_FOUND);
    assert_int_equal(pad->store->ops->answer(pad->store, pad->instance, "new", &answer), 0);
    desk_close(pad);
}

static int count_machine(void *context, const char *name, uint32_t version, const char *spec)
{
    char *text = context;
    size_t used = strlen(text);

    assert_non_null(spec);
    snprintf(text + used, 256 - used, "%s@%u ", name, version);
    return 0;
}

static int check_spec(void *context, const char *name, uint32_t version, const char *spec)
{
    (void)context;
    (void)version;
    assert_string_equal(name, "pad");
    assert_non_null(strstr(spec, "#define FSM_NAME pad\n"));
    return 0;
}

static void machines_are_listed_with_their_last_served_definition(void **state)
{
    struct pad *pad = desk_open();
    char text[256] = "";

    (void)state;
    assert_int_equal(pad->store->ops->machines(pad->store, check_spec, NULL), 0);
    free(
        sql(pad->store, "INSERT INTO @definitions VALUES "
                        "('pad', 3, 'x', 'three', 9000000000000000000, '\\x00'), "
                        "('other', 1, 'y', 'one', 1, '\\x00')"));
    free(
        sql(pad->store, "UPDATE @definitions AS d SET checksum = " POSTGRES_SUM_DEFINITIONS("d.")));
    free(sql(pad->store, "UPDATE @instances SET machine = 'stray'"));
    assert_int_equal(pad->store->ops->machines(pad->store, count_machine, text), 0);
    assert_string_equal(text, "other@1 pad@3 stray@1 ");
    desk_close(pad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_store_has_no_findings),
        cmocka_unit_test(a_large_store_is_checked_page_by_page),
        cmocka_unit_test(every_kind_of_damage_is_found),
        cmocka_unit_test(a_visitor_ends_the_check),
        cmocka_unit_test(pruning_keeps_what_no_snapshot_covers),
        cmocka_unit_test(event_ids_are_forgotten_when_their_time_is_over),
        cmocka_unit_test(machines_are_listed_with_their_last_served_definition),
    };

    return cmocka_run_group_tests(tests, open_server, close_server);
}
