/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* table_test.c - a table equals what its changelog restores, from the position that it says,
 * however it was changed; and that part of the log stays short. */
#include "flow/table.h"

#include "lib/test.h"

#define REC_SPEC "flow/flow_test.rec"
#include <detent/rec/declare.h>

#define ROWS_MAX 40000
#define KEYS     20

/* A log with nothing but the changelog of one table. */
struct log {
    struct det_flow_table *table;
    struct det_flow_turn turn;
    struct det_stage_kept kept;
    struct row {
        uint8_t kind;
        uint16_t size;
        uint8_t data[64];
    } * rows;
    uint64_t end, folded;
};

static void open_log(struct log *log)
{
    *log = (struct log){ 0 };
    log->rows = calloc(ROWS_MAX, sizeof *log->rows);
    assert_non_null(log->rows);
    det_flow_turn_init(&log->turn, NULL, NULL, 1);
    assert_int_equal(det_table_open(NULL, number_record(), &log->table), 0);
}

static void close_log(struct log *log)
{
    det_table_close(log->table);
    det_flow_turn_deinit(&log->turn);
    free(log->rows);
}

static struct det_view key_of(uint32_t *number)
{
    return det_view_of((const char *)number, sizeof *number);
}

static void change_key(struct log *log, uint32_t number, uint64_t value)
{
    struct det_table_entry *entry = det_table_get(log->table, key_of(&number));
    struct number *state;

    if (!entry)
        entry = det_table_put(log->table, key_of(&number));
    assert_non_null(entry);
    state = entry->value;
    state->value = value;
    entry->rows++;
    entry->position = ++log->folded; /* each row is folded once */
    det_table_change(log->table, entry);
}

static void remove_key(struct log *log, uint32_t number)
{
    struct det_table_entry *entry = det_table_get(log->table, key_of(&number));

    if (entry)
        det_table_remove(log->table, entry);
}

/* The group of a turn. Other rows of the log come before it. */
static void commit(struct log *log)
{
    struct det_flow_progress progress = { 0 };

    det_flow_turn_begin(&log->turn);
    assert_int_equal(det_table_write(log->table, &log->turn, 0, log->end), 0);
    det_table_progress(log->table, &progress);
    for (size_t i = 0; i < log->turn.count; i++) {
        const struct det_journal_row *from = &log->turn.rows[i];
        struct row *to = &log->rows[++log->end];

        assert_true(log->end < ROWS_MAX && from->size <= sizeof to->data);
        to->kind = from->kind;
        to->size = (uint16_t)from->size;
        memcpy(to->data, from->data, from->size);
    }
    det_table_published(log->table, &log->kept);
    assert_int_equal(progress.state_rows, log->kept.state_rows);
    assert_int_equal(progress.state_from, log->kept.state_from);
}

static struct det_flow_table *restore(const struct log *log)
{
    struct det_flow_table *table;

    assert_int_equal(det_table_open(NULL, number_record(), &table), 0);
    for (uint64_t at = log->kept.state_from; at > 0 && at <= log->end; at++) {
        struct det_journal_row row = { .data = log->rows[at].data,
                                       .size = log->rows[at].size,
                                       .kind = log->rows[at].kind,
                                       .position = at };

        assert_int_equal(det_table_restore(table, &row, NULL), 0);
    }
    assert_int_equal(det_table_restored(table, &log->kept), 0);
    return table;
}

/* Also in the same order. */
static void assert_equal_tables(const struct det_flow_table *a, const struct det_flow_table *b)
{
    const struct det_table_entry *left = NULL, *right = NULL;

    assert_int_equal(det_table_count(a), det_table_count(b));
    while ((left = det_table_after(a, left))) {
        right = det_table_after(b, right);
        assert_non_null(right);
        assert_int_equal(left->key_size, right->key_size);
        assert_memory_equal(left->key, right->key, left->key_size);
        assert_true(det_record_equal(number_record(), left->value, right->value));
        assert_int_equal(left->rows, right->rows);
        assert_int_equal(left->position, right->position);
    }
}

static void a_changelog_restores_its_table(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        uint64_t random = seed;
        struct log log;

        open_log(&log);
        for (int turn = 0; turn < 300; turn++) {
            uint64_t changes = det_test_random(&random) % 6;

            for (uint64_t i = 0; i < changes; i++) {
                uint32_t key = (uint32_t)(det_test_random(&random) % KEYS);

                if (det_test_random(&random) % 8 == 0)
                    remove_key(&log, key);
                else
                    change_key(&log, key, det_test_random(&random));
            }
            commit(&log);
            if (turn % 10 == 0) {
                struct det_flow_table *table = restore(&log);

                assert_equal_tables(log.table, table);
                det_table_close(table);
            }
        }
        close_log(&log);
    }
}

static void the_part_of_the_log_with_all_states_stays_short(void **state)
{
    struct log log;

    (void)state;
    open_log(&log);
    for (uint32_t key = 0; key < KEYS; key++)
        change_key(&log, key, key);
    commit(&log);
    /* One key changes, the others never do again. */
    for (uint64_t i = 0; i < 10000; i++) {
        change_key(&log, 3, i);
        commit(&log);
        assert_true(log.end - log.kept.state_from <= 4 * KEYS + 80);
    }
    close_log(&log);
}

/* What a restored table writes next is restored, too. */
static void a_restored_table_goes_on(void **state)
{
    struct det_flow_table *table;
    struct log log;

    (void)state;
    open_log(&log);
    for (int life = 0; life < 50; life++) {
        for (uint32_t i = 0; i < 30; i++) {
            change_key(&log, (i * (uint32_t)life) % KEYS, i);
            commit(&log);
        }
        table = restore(&log);
        assert_equal_tables(log.table, table);
        det_table_close(log.table);
        log.table = table;
        assert_true(log.end - log.kept.state_from <= 4 * KEYS + 80);
    }
    close_log(&log);
}

static void a_new_state_that_was_not_written_leaves_no_row(void **state)
{
    struct log log;

    (void)state;
    open_log(&log);
    change_key(&log, 1, 1);
    remove_key(&log, 1);
    commit(&log);
    assert_int_equal(log.end, 0);
    assert_int_equal(det_table_count(log.table), 0);
    close_log(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_changelog_restores_its_table),
        cmocka_unit_test(the_part_of_the_log_with_all_states_stays_short),
        cmocka_unit_test(a_restored_table_goes_on),
        cmocka_unit_test(a_new_state_that_was_not_written_leaves_no_row),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
