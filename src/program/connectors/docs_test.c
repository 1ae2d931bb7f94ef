/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* docs_test.c - docs/connectors.md has a section for each connector, with a row for each of its
 * settings. Its examples are run by tests/docs. */
#include <ctype.h>
#include <unistd.h>

#include "connectors/connectors.h"
#include "lib/test.h"

static char *page;

static int read_page(void **state)
{
    (void)state;
    page = det_test_read_file(DET_SOURCE_DIR "/docs/connectors.md", NULL);
    return 0;
}

static int drop_page(void **state)
{
    (void)state;
    free(page);
    return 0;
}

/* The text of a section, up to the next heading; NULL: there is none. */
static char *section_of(const struct det_connector *connector)
{
    enum det_stage_kind kind = (enum det_stage_kind)__builtin_ctz(connector->kinds);
    char heading[96];
    const char *from, *to;

    (void)snprintf(
        heading, sizeof heading, "\n## %s, %s\n", connector->name, det_stage_kind_text(kind));
    from = strstr(page, heading);
    if (!from)
        return NULL;
    from += strlen(heading);
    to = strstr(from, "\n## ");
    return to ? strndup(from, (size_t)(to - from)) : strdup(from);
}

/* The record of settings in the file of a connector: the fields from RECORD(..._settings) to
 * END. */
static void check_fields(const struct det_connector *connector, const char *section)
{
    static const char *const kinds[] = { "source", "transform", "stateful", "join", "sink" };
    char path[512], *rows, *end, *save = NULL;

    (void)snprintf(
        path, sizeof path, DET_SOURCE_DIR "/src/program/connectors/%s_%s.rec", connector->name,
        kinds[__builtin_ctz(connector->kinds)]);
    if (access(path, R_OK) != 0)
        return;
    rows = det_test_read_file(path, NULL);
    end = strstr(rows, "_settings)\n");
    assert_non_null(end);
    *strstr(end, "\nEND") = 0;
    for (char *line = strtok_r(end, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char name[80], *open = strchr(line, '(');
        size_t size;

        while (*line == ' ')
            line++;
        if (!open || !isupper((unsigned char)*line))
            continue;
        size = strcspn(open + 1, ",");
        (void)snprintf(name, sizeof name, "`%.*s`", (int)size, open + 1);
        if (!strstr(section, name))
            fail_msg("docs/connectors.md, %s: no row for %s", connector->name, name);
    }
    free(rows);
}

static void every_connector_has_its_section(void **state)
{
    (void)state;
    for (const struct det_connector *const *at = det_connectors_all(); *at; at++) {
        char *section = section_of(*at);

        if (!section)
            fail_msg("docs/connectors.md has no section for %s", (*at)->name);
        check_fields(*at, section);
        free(section);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_connector_has_its_section) };

    return cmocka_run_group_tests(tests, read_page, drop_page);
}
