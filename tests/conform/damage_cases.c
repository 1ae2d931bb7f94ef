/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* damage_cases.c - damage is found by loading, by the check and by opening. Damaged rows are never
 * deleted or repaired automatically. Stores without tables pass these. */
#include "conform/documents.h"
#include "conform/jobs.h"

static const struct det_store_rows no_rows;

static int load(struct box *box, const char *id)
{
    struct parcel_data data;
    struct det_store_loaded loaded = { .data = &data };
    int r;

    r = box->store->ops->load(box->store, box->machine, id, &no_rows, &loaded);
    if (r == 0)
        box->store->ops->release(box->store, loaded.instance);
    return r;
}

/* Two instances with three events each. */
static bool begin(struct box *box)
{
    if (!box->driver->execute)
        return false;
    for (int i = 0; i < 2; i++) {
        struct subject *subject = subject_start(box, i ? "q" : "p");

        subject_move(subject, PARCEL_PACK, PARCEL_PACKED);
        subject_move(subject, PARCEL_HOLD, PARCEL_HELD);
        subject_move(subject, PARCEL_COUNT, PARCEL_HELD);
    }
    return true;
}

#define OF_P " WHERE id = 'p'"
#define IN_P " AND instance = (SELECT key FROM @instances WHERE id = 'p')"

static void damaged_head_is_reported_and_affects_no_other(void **state)
{
    static const char *const damages[] = {
        "UPDATE @instances SET state = 'created'" OF_P,
        "UPDATE @instances SET visit = visit + 1" OF_P,
        "UPDATE @instances SET moved_at = moved_at + 1" OF_P,
    };
    struct box *box = *state;

    if (!begin(box))
        return;
    for (size_t i = 0; i < 3; i++) {
        box_damage(box, damages[i]);
        box->store = box_open_store(box);
        assert_int_equal(load(box, "p"), DET_ERR_CORRUPT);
        assert_int_equal(load(box, "q"), 0);
    }
}

#define IDS_MAX 16

static int note_id(void *context, const struct det_store_listed *row)
{
    char *ids = context;

    size_t length = strlen(ids);

    snprintf(ids + length, IDS_MAX - length, "%s", row->id);
    return 0;
}

/* A list of ids includes damaged instances; otherwise those after them would be lost. */
static void unknown_state_does_not_end_a_list_of_ids(void **state)
{
    static const struct det_store_query all = { 0 }, ids_only = { .ids_only = true };
    struct box *box = *state;
    char ids[IDS_MAX] = "";

    if (!begin(box))
        return;
    box_damage(box, "UPDATE @instances SET state = 'nowhere'" OF_P);
    box->store = box_open_store(box);
    assert_int_equal(
        box->store->ops->list(box->store, box->machine, &all, note_id, ids), DET_ERR_VERSION);
    ids[0] = 0;
    assert_int_equal(box->store->ops->list(box->store, box->machine, &ids_only, note_id, ids), 0);
    assert_string_equal(ids, "pq");
}

struct findings {
    unsigned of_p, of_others;
    uint64_t sequence;
    char text[400]; /* of all of them */
};

static int count_finding(void *context, const struct det_store_finding *row)
{
    struct findings *findings = context;
    size_t length;

    assert_true(row->text && row->text[0]);
    if (row->id && strcmp(row->id, "p") == 0) {
        assert_string_equal(row->machine, "parcel");
        findings->of_p++;
    } else {
        findings->of_others++;
    }
    if (row->sequence)
        findings->sequence = row->sequence;
    length = strlen(findings->text);
    snprintf(findings->text + length, sizeof findings->text - length, "%s; ", row->text);
    return 0;
}

static struct findings check_after(struct box *box, const char *sql)
{
    struct findings findings = { 0 };

    box_damage(box, sql);
    box->store = box_open_store(box);
    assert_int_equal(box->store->ops->check(box->store, count_finding, NULL, &findings), 0);
    return findings;
}

static void the_check_finds_a_head_that_was_changed(void **state)
{
    struct box *box = *state;
    struct findings findings;

    if (!begin(box))
        return;
    findings = check_after(box, "UPDATE @instances SET visit = 77" OF_P);
    assert_true(findings.of_p >= 1);
    assert_int_equal(findings.of_others, 0);
}

static void the_check_finds_an_event_that_was_changed(void **state)
{
    static const char *const damages[] = {
        "UPDATE @events SET at = at + 1 WHERE sequence = 2" IN_P,
        "UPDATE @events SET to_state = 'created' WHERE sequence = 1" IN_P,
        "UPDATE @events SET event_id = 'x' WHERE sequence = 3" IN_P,
        "UPDATE @events SET choice = 1 WHERE sequence = 3" IN_P,
    };
    struct box *box = *state;

    if (!begin(box))
        return;
    for (size_t i = 0; i < 4; i++) {
        struct findings findings = check_after(box, damages[i]);

        assert_true(findings.of_p >= 1);
        assert_int_equal(findings.of_others, 0);
    }
}

static void the_check_finds_an_event_that_is_missing(void **state)
{
    struct box *box = *state;

    if (!begin(box))
        return;
    assert_true(check_after(box, "DELETE FROM @events WHERE sequence = 2" IN_P).of_p >= 1);
}

static void the_check_finds_that_the_last_event_is_missing(void **state)
{
    struct box *box = *state;

    if (!begin(box))
        return;
    assert_true(check_after(box, "DELETE FROM @events WHERE sequence = 3" IN_P).of_p >= 1);
}

static void the_check_finds_rows_of_no_instance(void **state)
{
    struct box *box = *state;
    struct findings findings;

    if (!begin(box))
        return;
    findings = check_after(
        box, "INSERT INTO @deferred (instance, sequence, event, checksum) "
             "VALUES (987654, 1, 'count', 'x')");
    assert_true(findings.of_p + findings.of_others >= 1);
}

/* Fills every table with rows of instances. */
static void fill_tables(struct box *box)
{
    struct subject *subject = subject_find(box, box->store, "p");
    struct draft draft;

    subject_set_timer(subject, PARCEL_REMINDER, 10);
    subject_set_effect(subject, 0, 10);
    subject_defer(subject);
    draft_init(&draft, subject);
    draft_event(&draft, PARCEL_COUNT, DET_OUTCOME_STAY, PARCEL_HELD);
    draft_effect(&draft, DET_STORE_SET, draft.head.sequence, 1)->is_dead = true;
    draft_event_id(&draft, "e");
    draft.commit.answer.request = 7;
    draft.commit.answer.event = PARCEL_COUNT;
    assert_int_equal(draft_commit(&draft), 0);
}

static void changed_row_is_detected_and_has_no_effect(void **state)
{
    static const struct {
        const char *damage, *mend;
    } rows[] = {
        { "UPDATE @timers SET due = due + 1", "UPDATE @timers SET due = due - 1" },
        { "UPDATE @timers SET next_at = next_at + 1", "UPDATE @timers SET next_at = next_at - 1" },
        { "UPDATE @timers SET dead_at = 5", "UPDATE @timers SET dead_at = 0" },
        { "UPDATE @outbox SET attempts = 3", "UPDATE @outbox SET attempts = 0" },
        { "UPDATE @outbox SET visit = visit + 1", "UPDATE @outbox SET visit = visit - 1" },
        { "UPDATE @outbox SET origin = '0011223344556677'", "UPDATE @outbox SET origin = NULL" },
        { "UPDATE @dead_letters SET asked = asked + 1",
          "UPDATE @dead_letters SET asked = asked - 1" },
        { "UPDATE @deferred SET sequence = sequence + 100",
          "UPDATE @deferred SET sequence = sequence - 100" },
    };
    struct box *box = *state;

    if (!begin(box))
        return;
    fill_tables(box);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct findings findings = check_after(box, rows[i].damage);

        if (!findings.of_p || load(box, "p") != DET_ERR_CORRUPT)
            fail_msg("%s: %u found", rows[i].damage, findings.of_p);
        assert_int_equal(findings.of_others, 0);
        assert_int_equal(load(box, "q"), 0);
        findings = check_after(box, rows[i].mend);
        assert_int_equal(findings.of_p, 0);
    }
}

static void changed_answer_is_detected_and_not_returned(void **state)
{
    static const char *const damages[] = {
        "UPDATE @answers SET event_id = 'f'",
        "UPDATE @answers SET event_id = 'e', request = 8",
        "UPDATE @answers SET request = 7, outcome = 'stay!'",
    };
    struct det_store_answer answer;
    struct subject *subject;
    struct box *box = *state;

    if (!begin(box))
        return;
    fill_tables(box);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(check_after(box, damages[i]).of_p, 1);
        subject = subject_find(box, box->store, "p");
        assert_int_equal(
            box->store->ops->answer(box->store, subject->instance, i ? "e" : "f", &answer),
            DET_ERR_CORRUPT);
    }
}

static void changed_definitions_and_starts_are_found(void **state)
{
    static const char *const damages[] = {
        "UPDATE @definitions SET served_at = served_at + 1",
        "UPDATE @starts SET position = position + 1000",
    };
    struct box *box = *state;

    if (!begin(box))
        return;
    for (size_t i = 0; i < 2; i++)
        assert_true(check_after(box, damages[i]).of_p + check_after(box, damages[i]).of_others > 0);
}

/* Fills every table with rows that do not belong to an instance. */
static void fill_other_tables(struct box *box)
{
    const struct det_job_firing firing = { "s", 0, 100, 0, NULL };

    (void)put(box, "j-1");
    assert_int_equal(box->store->ops->jobs->fire(box->store, &firing), 0);
    (void)save(box, "a", "{\"n\":1}");
}

static void rows_of_no_instance_that_were_changed_are_found(void **state)
{
    /* The last ones are covered in SQLite only: see docs/formats/sql_schema.md. */
    static const struct {
        const char *damage, *mend, *word;
        bool is_sqlite;
    } rows[] = {
        { "UPDATE @jobs SET task = 'wort'", "UPDATE @jobs SET task = 'work'", "job", false },
        { "UPDATE @jobs SET id = 'j-2'", "UPDATE @jobs SET id = 'j-1'", "job", false },
        { "UPDATE @schedules SET next_at = 101", "UPDATE @schedules SET next_at = 100", "schedule",
          false },
        { "UPDATE @schedules SET token = token + 1", "UPDATE @schedules SET token = token - 1",
          "schedule", false },
        { "UPDATE @documents SET text = '{\"n\":2}'", "UPDATE @documents SET text = '{\"n\":1}'",
          "document", false },
        { "UPDATE @documents SET version = version + 1",
          "UPDATE @documents SET version = version - 1", "document", false },
        { "UPDATE @deltas SET at = at + 1", "UPDATE @deltas SET at = at - 1", "delta", false },
        { "UPDATE @deltas SET id = 'b'", "UPDATE @deltas SET id = 'a'", "delta", false },
        { "UPDATE @jobs SET attempts = 7", "UPDATE @jobs SET attempts = 0", "job", true },
        { "UPDATE @jobs SET due_at = 7", "UPDATE @jobs SET due_at = 0", "job", true },
    };
    struct box *box = *state;
    bool is_sqlite = strcmp(box->driver->scheme, "sqlite") == 0;

    if (!begin(box))
        return;
    fill_other_tables(box);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct findings findings;

        if (rows[i].is_sqlite && !is_sqlite)
            continue;
        findings = check_after(box, rows[i].damage);
        if (!findings.of_others || findings.of_p || !strstr(findings.text, rows[i].word))
            fail_msg("%s: %u found: %s", rows[i].damage, findings.of_others, findings.text);
        findings = check_after(box, rows[i].mend);
        assert_int_equal(findings.of_others, 0);
    }
}

/* A rename, by a program that does not serve the machine. */
static void migrate(struct box *box)
{
    static const struct det_rename rename = { DET_NAME_STATE, "boxed", "is_packed" };
    struct det_error error = { 0 };
    uint64_t rows;

    box_close_store(box, box->store);
    box->store = NULL;
    assert_int_equal(box_open_with(box, (struct det_store_options){ 0 }, &box->store, &error), 0);
    if (box->store->ops->migrate(box->store, box->machine, &rename, 1, &rows, &error) < 0)
        fail_msg("%s", error.text);
}

/* Stores read renames when they are opened, so some stores fail to open. */
static void a_rename_that_was_changed_is_found(void **state)
{
    static const char *const damages[] = {
        "UPDATE @renames SET new_name = 'held'",
        "UPDATE @renames SET new_name = 'is_packed', batch = batch + 1",
        "UPDATE @renames SET batch = batch - 1, machine = 'pakket'",
    };
    struct findings findings;
    struct box *box = *state;

    if (!begin(box))
        return;
    migrate(box);
    for (size_t i = 0; i < 3; i++) {
        struct det_error error = { 0 };
        int r;

        findings = (struct findings){ 0 };
        box_damage(box, damages[i]);
        r = box_open_with(box, (struct det_store_options){ 0 }, &box->store, &error);
        if (r == 0)
            r = box->store->ops->check(box->store, count_finding, NULL, &findings);
        if (!strstr(r < 0 ? error.text : findings.text, "rename"))
            fail_msg("%s: %d, \"%s%s\"", damages[i], r, error.text, findings.text);
    }
    box_damage(box, "UPDATE @renames SET machine = 'parcel'");
    box->store = box_open_store(box);
    findings = (struct findings){ 0 };
    assert_int_equal(box->store->ops->check(box->store, count_finding, NULL, &findings), 0);
    assert_int_equal(findings.of_others, 0);
}

/* Only where rows are counted: see docs/formats/sql_schema.md. */
static void deleted_rows_are_detected(void **state)
{
    static const char *const damages[] = {
        "DELETE FROM @timers",
        "DELETE FROM @outbox",
        "DELETE FROM @deferred",
        "DELETE FROM @answers",
    };
    struct box *box = *state;

    if (!begin(box) || strcmp(box->driver->scheme, "sqlite") != 0)
        return;
    fill_tables(box);
    assert_int_equal(load(box, "p"), 0);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(check_after(box, damages[i]).of_p, 1);
        assert_int_equal(load(box, "p"), DET_ERR_CORRUPT);
    }
}

static void check_does_not_repair_damage(void **state)
{
    struct box *box = *state;

    if (!begin(box))
        return;
    assert_true(check_after(box, "DELETE FROM @events WHERE sequence = 2" IN_P).of_p >= 1);
    assert_true(check_after(box, "UPDATE @instances SET fence = fence" OF_P).of_p >= 1);
}

/* Opening must fail, with these words in the error. */
static void assert_not_opened(struct box *box, int code, const char *const *words)
{
    struct det_error error = { 0 };
    struct det_store *store = NULL;
    int r;

    r = box_open_with(box, (struct det_store_options){ 0 }, &store, &error);
    if (code ? r != code : r >= 0)
        fail_msg("the result of opening is %d", r);
    assert_null(store);
    for (; *words; words++) {
        if (!strstr(error.text, *words))
            fail_msg("\"%s\" does not name %s", error.text, *words);
    }
}

static void every_table_and_column_that_is_missing_is_named(void **state)
{
    struct box *box = *state;

    if (!begin(box))
        return;
    box_damage(box, "DROP TABLE @deferred");
    assert_not_opened(box, 0, (const char *[]){ "deferred", NULL });
    box_damage(box, "ALTER TABLE @snapshots RENAME COLUMN taken_at TO took_at");
    assert_not_opened(box, 0, (const char *[]){ "deferred", "taken_at", NULL });
    box_damage(box, "CREATE TABLE @deferred (instance bigint, sequence bigint, event text)");
    assert_not_opened(box, 0, (const char *[]){ "payload", "taken_at", NULL });
}

static void foreign_tables_and_columns_are_ignored(void **state)
{
    struct box *box = *state;

    if (!begin(box))
        return;
    box_damage(box, "CREATE TABLE @mine (number bigint)");
    box_damage(box, "ALTER TABLE @instances ADD COLUMN mine bigint");
    box->store = box_open_store(box);
    assert_int_equal(load(box, "p"), 0);
    subject_start(box, "r");
    box_damage(box, "INSERT INTO @mine (number) SELECT mine FROM @instances");
    box->store = box_open_store(box);
}

static void a_newer_schema_is_refused(void **state)
{
    struct box *box = *state;

    if (!begin(box))
        return;
    box_damage(box, "UPDATE @store SET schema = 99");
    if (strcmp(box->driver->scheme, "sqlite") == 0)
        box_damage(box, "PRAGMA user_version = 99");
    assert_not_opened(box, DET_ERR_VERSION, (const char *[]){ "99", NULL });
}

static const struct CMUnitTest damages[] = {
    CASE(damaged_head_is_reported_and_affects_no_other),
    CASE(unknown_state_does_not_end_a_list_of_ids),
    CASE(the_check_finds_a_head_that_was_changed),
    CASE(the_check_finds_an_event_that_was_changed),
    CASE(the_check_finds_an_event_that_is_missing),
    CASE(the_check_finds_that_the_last_event_is_missing),
    CASE(the_check_finds_rows_of_no_instance),
    CASE(changed_row_is_detected_and_has_no_effect),
    CASE(changed_answer_is_detected_and_not_returned),
    CASE(changed_definitions_and_starts_are_found),
    CASE(rows_of_no_instance_that_were_changed_are_found),
    CASE(a_rename_that_was_changed_is_found),
    CASE(deleted_rows_are_detected),
    CASE(check_does_not_repair_damage),
    CASE(every_table_and_column_that_is_missing_is_named),
    CASE(foreign_tables_and_columns_are_ignored),
    CASE(a_newer_schema_is_refused),
};
const struct group damage_cases = GROUP_OF(damages);
