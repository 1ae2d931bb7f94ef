/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* table_test.c - columns are as wide as their texts, and fit the terminal. */
#include "terminal/table.h"

#include "terminal/output_test.h"

static const struct table_column columns[] = {
    { "name", 0, false },
    { "for", 1, true },
    { "process", 2, true },
    { "why", 0, false },
};

static void add_row(
    struct table *table, const char *name, const char *age, const char *process, const char *why)
{
    table_add(table, CLI_BOLD, "%s", name);
    table_add(table, CLI_PLAIN, "%s", age);
    table_add(table, CLI_GREEN, "%s", process);
    table_add(table, CLI_PLAIN, "%s", why);
}

static void open_table(struct caught *caught, struct table *table)
{
    catch_output(caught);
    table_init(table, &caught->cli, columns, 4);
}

static void expect_table(struct caught *caught, struct table *table, const char *text)
{
    table_print(table, 0);
    table_deinit(table);
    expect_output(caught, text);
}

static void columns_are_as_wide_as_their_texts(void **state)
{
    struct caught caught;
    struct table table;

    (void)state;
    open_table(&caught, &table);
    add_row(&table, "web", "2m", "4242", "");
    add_row(&table, "database", "1m30s", "7", "exit code 1");
    assert_int_equal(table_rows(&table), 2);
    expect_table(
        &caught, &table,
        "name        for  process  why\n"
        "web          2m     4242\n"
        "database  1m30s        7  exit code 1\n");
}

static void empty_column_is_omitted(void **state)
{
    struct caught caught;
    struct table table;

    (void)state;
    open_table(&caught, &table);
    add_row(&table, "web", "2m", "", "");
    expect_table(&caught, &table, "name  for\nweb    2m\n");
    open_table(&caught, &table);
    add_row(&table, "", "", "", "x");
    expect_table(&caught, &table, "name  why\n      x\n");
}

static void column_width_counts_displayed_characters(void **state)
{
    struct caught caught;
    struct table table;

    (void)state;
    open_table(&caught, &table);
    add_row(&table, "\xC3\xBC", "1s", "", "");
    add_row(&table, "\033[", "1s", "", "");
    expect_table(&caught, &table, "name   for\n\xC3\xBC       1s\n\\x1b[   1s\n");
}

#define FIVE "\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC"

static void the_last_column_is_cut_first(void **state)
{
    struct caught caught;
    struct table table;

    (void)state;
    open_table(&caught, &table);
    caught.cli.out_columns = 48;
    add_row(&table, "web", "2m", "4242", "there is no such file or folder at all");
    add_row(&table, "db", "2m", "42", "short");
    expect_table(
        &caught, &table,
        "name  for  process  why\n"
        "web    2m     4242  there is no such file or f..\n"
        "db     2m       42  short\n");
    open_table(&caught, &table);
    caught.cli.out_columns = 48;
    caught.cli.out_has_lines = true;
    add_row(&table, "web", "2m", "4242", "there is no " FIVE FIVE FIVE FIVE);
    expect_table(
        &caught, &table,
        "name  for  process  why\n"
        "web    2m     4242  there is no " FIVE FIVE FIVE "\xE2\x80\xA6\n");
}

static void columns_are_dropped_in_their_order(void **state)
{
    static const char *const wanted[] = {
        "name  for  why\nweb    2m  there is no such file o..\n",
        "name  why\nweb   there is no such file o..\n",
        "name  why\nweb   ther..\n",
    };
    static const unsigned widths[] = { 36, 31, 12 };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct caught caught;
        struct table table;

        open_table(&caught, &table);
        caught.cli.out_columns = widths[i];
        add_row(&table, "web", "2m", "4242", "there is no such file or folder");
        expect_table(&caught, &table, wanted[i]);
    }
}

static void no_line_is_wider_than_the_terminal(void **state)
{
    static const char *const wanted[] = {
        "name                  why\nthe-name-of-a-long..  there is no such file ..\n",
        "name          why\nthe-name-o..  ther..\n",
        "name         ..\nthe-name-..  ..\n",
        "name  ..\nth..  ..\n",
    };
    static const unsigned widths[] = { 46, 20, 15, 8 };

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct caught caught;
        struct table table;

        open_table(&caught, &table);
        caught.cli.out_columns = widths[i];
        add_row(&table, "the-name-of-a-long-name", "2m", "4242", "there is no such file or folder");
        expect_table(&caught, &table, wanted[i]);
    }
}

static void a_table_may_be_shorter_than_its_rows(void **state)
{
    struct caught caught;
    struct table table;

    (void)state;
    open_table(&caught, &table);
    for (int i = 0; i < 5; i++)
        add_row(&table, "a", "", "", "");
    assert_int_equal(table_print(&table, 6), 6);
    assert_int_equal(table_print(&table, 4), 4);
    assert_int_equal(table_print(&table, 1), 2);
    table_deinit(&table);
    expect_output(&caught, "name\na\na\na\na\na\nname\na\na\n3 more\nname\n5 more\n");
}

static void empty_table_prints_its_sentence(void **state)
{
    struct caught caught;
    struct table table;

    (void)state;
    open_table(&caught, &table);
    table_show(&table, NULL);
    table_show(&table, "There are none.");
    caught.cli.is_json = true;
    table_show(&table, "There are none.");
    add_row(&table, "a", "", "", "");
    table_show(&table, "There are none.");
    caught.cli.is_json = false;
    table_show(&table, "There are none.");
    table_deinit(&table);
    expect_output(&caught, "There are none.\nname\na\n");
}

static void styles_become_colors_when_colors_are_enabled(void **state)
{
    struct caught caught;
    struct table table;

    (void)state;
    open_table(&caught, &table);
    caught.cli.out_has_color = true;
    add_row(&table, "web", "", "7", "");
    table_add(&table, CLI_BOLD, "|- %s", "db");
    table_lead(&table, 3);
    for (int i = 0; i < 3; i++)
        table_add(&table, CLI_PLAIN, "%s", "");
    expect_table(
        &caught, &table,
        "\033[1mname\033[0m   \033[1mprocess\033[0m\n"
        "\033[1mweb\033[0m          \033[32m7\033[0m\n"
        "\033[2m|- \033[0m\033[1mdb\033[0m\n");
}

static int print_some(struct det_test_memory *memory, void *argument)
{
    struct caught caught;
    struct table table;
    bool has_failed;

    (void)argument;
    catch_output(&caught);
    caught.cli.allocator = &memory->allocator;
    table_init(&table, &caught.cli, columns, 4);
    for (int i = 0; i < 20; i++)
        add_row(&table, "name", "1s", "12", "why not");
    table_print(&table, 0);
    table_deinit(&table);
    fclose(caught.cli.out);
    has_failed = caught.cli.has_failed;
    free(caught.text);
    return has_failed ? DET_ERR_NO_MEMORY : 0;
}

static void allocation_failure_sticks_to_the_table(void **state)
{
    (void)state;
    det_test_each_failure(print_some, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_as_wide_as_their_texts),
        cmocka_unit_test(empty_column_is_omitted),
        cmocka_unit_test(column_width_counts_displayed_characters),
        cmocka_unit_test(the_last_column_is_cut_first),
        cmocka_unit_test(columns_are_dropped_in_their_order),
        cmocka_unit_test(no_line_is_wider_than_the_terminal),
        cmocka_unit_test(a_table_may_be_shorter_than_its_rows),
        cmocka_unit_test(empty_table_prints_its_sentence),
        cmocka_unit_test(styles_become_colors_when_colors_are_enabled),
        cmocka_unit_test(allocation_failure_sticks_to_the_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
