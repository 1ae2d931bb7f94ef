/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* docs_test.c - docs/kinds.md says of each kind what its records say, field by field, and its
 * examples are run. */
#include <detent/sim.h>
#include <detent/store.h>
#include <detent/workers.h>

#include "kinds/channel.h"
#include "kinds/kinds.h"
#include "lib/test.h"

static char *page;

static int read_page(void **state)
{
    (void)state;
    page = det_test_read_file(DET_SOURCE_DIR "/docs/kinds.md", NULL);
    return page == NULL;
}

static int drop_page(void **state)
{
    (void)state;
    free(page);
    return 0;
}

/* The section of a kind: from its heading to the next. */
static char *section_of(const char *kind)
{
    char heading[80];
    const char *from, *to;

    (void)snprintf(heading, sizeof heading, "\n## %s\n", kind);
    from = strstr(page, heading);
    if (!from) {
        fail_msg("docs/kinds.md has no section %s", kind);
        return NULL;
    }
    from += strlen(heading);
    to = strstr(from, "\n## ");
    return to ? strndup(from, (size_t)(to - from)) : strdup(from);
}

/* Returns the rows of the table with that head, up to the first line that is not a row. */
static char *table_of(const char *section, const char *head)
{
    const char *from = strstr(section, head), *to = from;

    assert_non_null(from);
    while (*to == '|') {
        to = strchr(to, '\n');
        assert_non_null(to);
        to++;
    }
    return strndup(from, (size_t)(to - from));
}

/* Returns true if a row is about the field: its first column has the name in back quotes. */
static bool has_row(const char *table, const char *field)
{
    char word[80];

    (void)snprintf(word, sizeof word, "`%s`", field);
    for (const char *row = table; row && *row; row = strchr(row, '\n') + 1) {
        const char *column = strchr(row + 1, '|'), *found = strstr(row, word);

        if (found && found < column)
            return true;
    }
    return false;
}

/* How many names the first columns have. */
static uint32_t count_names(const char *table)
{
    uint32_t quotes = 0;

    for (const char *row = table; *row; row = strchr(row, '\n') + 1)
        for (const char *at = row + 1; *at != '|'; at++)
            quotes += *at == '`';
    return quotes / 2;
}

static void compare(
    const char *section, const char *kind, const char *head, const struct det_record *record)
{
    char *table = table_of(section, head);

    for (uint32_t i = 0; i < record->field_count; i++)
        if (!has_row(table, record->fields[i].name))
            fail_msg("docs/kinds.md, %s: no row for %s", kind, record->fields[i].name);
    if (count_names(table) != record->field_count)
        fail_msg("docs/kinds.md, %s: a row for a field that there is not", kind);
    free(table);
}

static void compare_all(const char *section, const struct det_worker_kind *kind)
{
    const char *states = strstr(section, "\nStates: ");

    compare(section, kind->name, "| field |", kind->desired.get());
    compare(section, kind->name, "| observed |", kind->observed.get());
    for (uint16_t i = 0; i < kind->state_count; i++)
        if (!states || !strstr(states, kind->states[i].name))
            fail_msg("docs/kinds.md, %s: no state %s", kind->name, kind->states[i].name);
}

static const char *const documented[] = { "process",   "file",        "http_check",
                                          "mqtt_link", "persistence", "communicator" };

static void every_field_has_its_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof documented / sizeof *documented; i++) {
        const struct det_kind_entry *entry = det_kinds_list();
        char *section = section_of(documented[i]);

        while (entry->kind && strcmp(entry->kind->name, documented[i]) != 0)
            entry++;
        assert_int_equal(entry->use, DET_KIND_BUILT_IN);
        if (entry->kind)
            compare_all(section, entry->kind);
        else
            fail_msg("there is no kind %s", documented[i]);
        free(section);
    }
}

static int be_content(void *user, const struct det_worker_status *status)
{
    uint32_t *count = user;

    if (*status->degraded_by)
        fail_msg("docs/kinds.md: %s: %s", status->id, status->degraded_by);
    if (status->depth > 0 && status->counts.transitions == 0)
        fail_msg("docs/kinds.md: %s is still %s", status->id, status->state);
    ++*count;
    return 0;
}

/* Files and processes are simulated; the network is loopback, without listeners. */
static void run_example(const char *yaml)
{
    struct det_workers_options options = { .name = "page", .kinds = det_kinds_all() };
    struct det_workers *workers;
    struct det_error error = { 0 };
    struct det_sim *sim;
    struct det_provided provided[] = { { "documents", NULL },
                                       { DET_CHANNEL_NAME, NULL },
                                       { NULL, NULL } };
    struct channel_options channel_options = { 0 };
    struct channel *channel;
    struct det_store *store;
    uint32_t count = 0;

    assert_int_equal(det_sim_open(NULL, &sim, NULL), 0);
    options.world = channel_options.world = det_sim_world(sim);
    /* As `detent up` does. */
    assert_int_equal(det_store_open("memory:", &store, NULL), 0);
    assert_int_equal(channel_open(&channel_options, &channel), 0);
    provided[0].thing = store;
    provided[1].thing = channel;
    options.provided = provided;
    assert_int_equal(det_workers_open(&options, &workers, &error), 0);
    if (det_workers_apply(workers, yaml, &error) < 0)
        fail_msg("docs/kinds.md: %s\n%s", error.text, yaml);
    assert_int_equal(det_sim_advance(sim, 3 * DET_SECOND), 0);
    assert_int_equal(det_workers_each(workers, be_content, &count), 0);
    assert_true(count > 1);
    assert_int_equal(det_workers_stop(workers, NULL), 0);
    det_workers_close(workers);
    channel_close(channel);
    det_store_close(store);
    det_sim_close(sim);
}

static void every_example_runs(void **state)
{
    static const char fence[] = "\n```yaml\n";
    uint32_t count = 0;

    (void)state;
    for (const char *at = page; (at = strstr(at, fence)); count++) {
        const char *end;
        char *yaml;

        at += sizeof fence - 1;
        end = strstr(at, "\n```\n");
        assert_non_null(end);
        yaml = strndup(at, (size_t)(end + 1 - at));
        run_example(yaml);
        free(yaml);
    }
    assert_int_equal(count, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_has_its_row),
        cmocka_unit_test(every_example_runs),
    };

    return cmocka_run_group_tests(tests, read_page, drop_page);
}
