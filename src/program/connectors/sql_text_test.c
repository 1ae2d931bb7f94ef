/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sql_text_test.c - statements of the database sinks; names that are none. */
#include "connectors/sql_text.h"

#include "connectors/postgres_batch.h"
#include "lib/test.h"

#define REC_SPEC "connectors/sink_test.rec"
#include <detent/rec/declare.h>

static struct columns columns;
static struct sql_target targets[3];

static struct sql_table table_of(enum sql_dialect dialect, size_t keys)
{
    static const char *const names[] = { "id", "city", "tags" };
    static const char *const fields[] = { "id", "place.city", "tags" };

    for (size_t i = 0; i < 3; i++)
        targets[i] = (struct sql_target){ .name = names[i],
                                          .column = columns_find(&columns, fields[i]),
                                          .is_key = i < keys };
    return (struct sql_table){ .dialect = dialect,
                               .name = dialect == SQL_SQLITE ? "parcels" : "public.parcels",
                               .targets = targets,
                               .target_count = 3,
                               .key_count = keys };
}

static void assert_text(
    void (*write)(const struct sql_table *table, struct det_buffer *buffer),
    enum sql_dialect dialect, size_t keys, const char *expected)
{
    struct sql_table table = table_of(dialect, keys);
    struct det_buffer buffer;

    det_buffer_init(&buffer, NULL);
    write(&table, &buffer);
    assert_string_equal(det_buffer_text(&buffer), expected);
    det_buffer_deinit(&buffer);
}

static void statements_have_quoted_names_and_parameters(void **state)
{
    (void)state;
    assert_text(
        sql_write_insert, SQL_SQLITE, 0,
        "INSERT INTO \"parcels\" (\"id\", \"city\", \"tags\") VALUES (?1, ?2, ?3)");
    assert_text(
        sql_write_insert, SQL_SQLITE, 1,
        "INSERT INTO \"parcels\" (\"id\", \"city\", \"tags\") VALUES (?1, ?2, ?3) ON CONFLICT "
        "(\"id\") DO UPDATE SET \"city\" = excluded.\"city\", \"tags\" = excluded.\"tags\"");
    assert_text(
        sql_write_conflict, SQL_POSTGRES, 3,
        " ON CONFLICT (\"id\", \"city\", \"tags\") DO NOTHING");
}

static void created_tables_have_types_and_a_key(void **state)
{
    (void)state;
    assert_text(
        sql_write_create, SQL_SQLITE, 2,
        "CREATE TABLE IF NOT EXISTS \"parcels\" (\"id\" INTEGER NOT NULL, \"city\" TEXT NOT NULL, "
        "\"tags\" TEXT NOT NULL, PRIMARY KEY (\"id\", \"city\"))");
    assert_text(
        sql_write_create, SQL_POSTGRES, 0,
        "CREATE TABLE IF NOT EXISTS \"public\".\"parcels\" (\"id\" bigint NOT NULL, \"city\" text "
        "NOT NULL, \"tags\" jsonb NOT NULL)");
}

static void an_upsert_is_copied_into_a_temporary_table(void **state)
{
    (void)state;
    assert_text(
        postgres_write_copy, SQL_POSTGRES, 0,
        "COPY \"public\".\"parcels\" (\"id\", \"city\", \"tags\") FROM STDIN");
    assert_text(
        postgres_write_copy, SQL_POSTGRES, 1,
        "COPY pg_temp.detent_rows (\"id\", \"city\", \"tags\", detent_order) FROM STDIN; INSERT "
        "INTO \"public\".\"parcels\" (\"id\", \"city\", \"tags\") SELECT \"id\", \"city\", "
        "\"tags\" FROM (SELECT DISTINCT ON (\"id\") * FROM pg_temp.detent_rows ORDER BY \"id\", "
        "detent_order DESC) latest ON CONFLICT (\"id\") DO UPDATE SET \"city\" = "
        "excluded.\"city\", \"tags\" = excluded.\"tags\"");
    assert_text(postgres_write_staging, SQL_POSTGRES, 0, "");
}

static void names_are_letters_digits_and_underscores(void **state)
{
    static const char *const bad[] = { "",      "1a",  "a b",  "a\"b", "a;b", "a--", "caf\xc3\xa9",
                                       "a.b.c", "a'b", "a\nb", "a.",   ".a" };
    char name[80] = "";

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(sql_table_name_is_valid(SQL_SQLITE, bad[i]));
        assert_false(sql_table_name_is_valid(SQL_POSTGRES, bad[i]));
    }
    memset(name, 'a', SQL_NAME_MAX);
    assert_true(sql_table_name_is_valid(SQL_SQLITE, name));
    name[SQL_NAME_MAX] = 'a';
    assert_false(sql_table_name_is_valid(SQL_SQLITE, name));
    assert_true(sql_table_name_is_valid(SQL_POSTGRES, "public.readings_2"));
    assert_false(sql_table_name_is_valid(SQL_SQLITE, "public.readings_2"));
}

static void lines_of_copy_are_escaped(void **state)
{
    struct parcel parcel = {
        .id = 1, .place = { .city = "a\tb\\\n" }, .tags_count = 1, .tags = { "x\"" }
    };
    struct sql_mapping mapping = { .targets = targets, .target_count = 3 };
    struct postgres_batch_rows batch;
    struct det_row_info info = { .position = 1 };
    struct det_view lines;

    (void)state;
    mapping.table = table_of(SQL_POSTGRES, 1);
    postgres_batch_init(&batch, NULL);
    assert_int_equal(postgres_batch_add(&batch, &mapping, &info, &parcel), 0);
    parcel.id = 2;
    parcel.place.city[0] = 0;
    assert_int_equal(postgres_batch_add(&batch, &mapping, &info, &parcel), 0);
    lines = postgres_batch_lines(&batch, 0, 2);
    assert_string_equal(lines.data, "1\ta\\tb\\\\\\n\t[\"x\\\\\"\"]\t0\n2\t\t[\"x\\\\\"\"]\t1\n");
    lines = postgres_batch_lines(&batch, 1, 1);
    assert_string_equal(lines.data, "2\t\t[\"x\\\\\"\"]\t1\n");
    assert_int_equal(lines.size, strlen(lines.data));
    postgres_batch_deinit(&batch);
}

static int set_up(void **state)
{
    (void)state;
    return columns_init(&columns, NULL, parcel_record(), 0);
}

static int tear_down(void **state)
{
    (void)state;
    columns_deinit(&columns);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_have_quoted_names_and_parameters),
        cmocka_unit_test(created_tables_have_types_and_a_key),
        cmocka_unit_test(an_upsert_is_copied_into_a_temporary_table),
        cmocka_unit_test(names_are_letters_digits_and_underscores),
        cmocka_unit_test(lines_of_copy_are_escaped),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
