/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* spec_read_test.c - .worker files as the program reads them, and every one under
 * tests/corpus/worker:
 *
 *     good/<name>.worker   a worker without findings, already formatted
 *     bad/<name>.worker    first line: expect: rule | words of the compilers | part of ours;
 *                          the finding is on the line with the comment "here", if any */
#include "lib/test.h"

#include <dirent.h>

#include <detent/tool/draw.h>
#include <detent/tool/worker_spec.h>

#define CORPUS DET_SOURCE_DIR "/tests/corpus/worker/"
#define HEAD   "#define WORKER_NAME link\n#define WORKER_PREFIX LINK\n"
#define STATES                                \
    "STATE(STOPPED, stopped, STOPPED)\n"      \
    "STATE(UP, up, RUNNING, STOP(CLOSING))\n" \
    "STATE(CLOSING, closing, STOPPING)\n"
#define LINK HEAD STATES "ACTION(CONNECT, connect, TIMEOUT(SECONDS(7)))\n"

static int read_file(void *context, const char *path, const char **ret, size_t *ret_size)
{
    FILE *file = fopen(path, "rb");

    (void)context;
    if (file == NULL)
        return DET_ERR_NOT_FOUND;
    (void)fclose(file);
    *ret = det_test_read_file(path, ret_size);
    return 0;
}

static void release_file(void *context, const char *data, size_t size)
{
    char *bytes;

    (void)context;
    (void)size;
    memcpy(&bytes, &data, sizeof bytes);
    free(bytes);
}

static struct det_worker_spec *read_text(const char *path, const char *text)
{
    static const struct det_spec_files files = { read_file, release_file, NULL };
    struct det_spec_options options = { .files = &files };
    struct det_worker_spec *spec;

    assert_int_equal(det_worker_spec_read(path, text, strlen(text), &options, &spec), 0);
    return spec;
}

static void print_findings(const struct det_worker_spec *spec)
{
    const struct det_diagnostics *found = det_worker_spec_diagnostics(spec);

    for (size_t i = 0; i < found->count; i++)
        print_message(
            "%s:%u:%u: %s: %s\n", found->items[i].place.file, found->items[i].place.line,
            found->items[i].place.column, det_rule_id(found->items[i].rule), found->items[i].text);
}

/* Exactly one finding, of this rule; returns it. */
static const struct det_diagnostic *only(
    const struct det_worker_spec *spec, enum det_rule rule, const char *part)
{
    const struct det_diagnostics *found = det_worker_spec_diagnostics(spec);

    if (found->count != 1 || found->items[0].rule != rule ||
        strstr(found->items[0].text, part) == NULL) {
        print_findings(spec);
        fail_msg("wanted only %s: %s", det_rule_id(rule), part);
    }
    return &found->items[0];
}

static void worker_spec_declarations_are_read(void **state)
{
    struct det_worker_spec *spec = read_text("link.worker", LINK);
    const struct det_worker_spec_summary *facts = det_worker_spec_summary(spec);

    (void)state;
    assert_true(det_worker_spec_is_valid(spec));
    assert_string_equal(facts->name, "link");
    assert_string_equal(facts->prefix, "LINK");
    assert_int_equal(facts->state_count, 3);
    assert_string_equal(facts->states[1].name, "UP");
    assert_string_equal(facts->states[1].wire, "up");
    assert_int_equal(facts->states[1].phase, DET_PHASE_RUNNING);
    assert_int_equal(facts->states[1].on_stop, 2);
    assert_int_equal(facts->states[1].place.line, 4);
    assert_int_equal(facts->states[2].on_stop, DET_WORKER_NO_STOP);
    assert_int_equal(facts->action_count, 1);
    assert_string_equal(facts->actions[0].wire, "connect");
    assert_int_equal(facts->actions[0].timeout, 7 * DET_SECOND);
    assert_null(facts->desired);
    assert_null(facts->deps);
    assert_false(facts->has_derive || facts->has_children);
    det_worker_spec_close(spec);
}

static void words_and_records_are_known(void **state)
{
    size_t size;
    char *text = det_test_read_file(CORPUS "good/link.worker", &size);
    struct det_worker_spec *spec = read_text("link.worker", text);
    const struct det_worker_spec_summary *facts = det_worker_spec_summary(spec);

    (void)state;
    assert_string_equal(facts->config->name, "link_config");
    assert_string_equal(facts->desired->name, "link_desired");
    assert_string_equal(facts->observed->name, "link_observed");
    assert_string_equal(facts->deps, "link_deps");
    assert_true(facts->has_derive && facts->has_children);
    assert_int_equal(facts->every, 5 * DET_SECOND);
    assert_string_equal(det_worker_spec_record(spec, 0)->name, "link_config");
    assert_null(det_worker_spec_record(spec, 3));
    assert_string_equal(det_worker_spec_file(spec, 0), "link.worker");
    det_worker_spec_close(spec);
    free(text);
}

static void observation_settings_are_read(void **state)
{
    struct det_worker_spec *spec = read_text(
        "link.worker", HEAD "#define WORKER_TIMEOUT SECONDS(4)\n#define WORKER_ERRORS\n" STATES);
    struct det_worker_spec *blind = read_text("link.worker", HEAD "#define WORKER_BLIND\n" STATES);

    (void)state;
    assert_true(det_worker_spec_is_valid(spec));
    assert_int_equal(det_worker_spec_summary(spec)->timeout, 4 * DET_SECOND);
    assert_true(det_worker_spec_summary(spec)->observes_errors);
    assert_false(det_worker_spec_summary(spec)->is_blind);
    assert_true(det_worker_spec_is_valid(blind));
    assert_int_equal(det_worker_spec_summary(blind)->timeout, 0);
    assert_false(det_worker_spec_summary(blind)->observes_errors);
    assert_true(det_worker_spec_summary(blind)->is_blind);
    det_worker_spec_close(spec);
    det_worker_spec_close(blind);
}

static void one_mistake_is_one_finding(void **state)
{
    static const struct {
        const char *text;
        enum det_rule rule;
        const char *part;
    } cases[] = {
        { HEAD STATES "STATE(Up2, Up2, RUNNING, STOP(STOPPED))", DET_RULE_BAD_NAME,
          "stored on disk" },
        { HEAD STATES "STATE(BUSY, busy, RUNING, STOP(CLOSING))\n", DET_RULE_ROW_ARGUMENTS,
          "phase" },
        { HEAD "STATE(STOPPED, stopped)\nSTATE(UP, up, RUNNING, STOP(STOPPED))\n",
          DET_RULE_ROW_ARGUMENTS, "STATE has 2 arguments" },
        { HEAD "STATE(STOPPED stopped, STOPPED)\nSTATE(UP, up, RUNNING, STOP(STOPPED))\n",
          DET_RULE_SYNTAX, "" },
        { HEAD STATES "STOP(UP)\n", DET_RULE_UNKNOWN_ROW, "belongs inside of STATE or ACTION" },
        { HEAD "#define WORKER_DERIVE yes\n" STATES, DET_RULE_SYNTAX, "unexpected text after" },
        { HEAD "#define WORKER_DEPS\n" STATES, DET_RULE_SYNTAX, "expected one name after" },
        { HEAD "#define WORKER_EVERY 5\n" STATES, DET_RULE_SYNTAX, "a duration such as" },
        { HEAD "#define WORKER_TIMEOUT\n" STATES, DET_RULE_SYNTAX, "a duration such as" },
        { HEAD "#define WORKER_ERRORS 1\n" STATES, DET_RULE_SYNTAX, "unexpected text after" },
        { HEAD "#define WORKER_BLIND yes\n" STATES, DET_RULE_SYNTAX, "unexpected text after" },
        { HEAD "#define WORKER_DEPENDS x\n" STATES, DET_RULE_SYNTAX, "is not a word of a worker" },
        { HEAD "#define WORKER_NAME lamp\n" STATES, DET_RULE_SYNTAX, "defined twice" },
        { "#define WORKER_NAME int\n#define WORKER_PREFIX LINK\n" STATES, DET_RULE_BAD_NAME,
          "a keyword of C" },
        { HEAD "#include \"none.worker\"\n" STATES, DET_RULE_BAD_INCLUDE, "does not exist" },
        { "\xff", DET_RULE_NOT_UTF8, "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct det_worker_spec *spec = read_text("link.worker", cases[i].text);

        only(spec, cases[i].rule, cases[i].part);
        assert_false(det_worker_spec_is_valid(spec));
        det_worker_spec_close(spec);
    }
}

static void finding_has_its_place_hint_and_first_declaration(void **state)
{
    struct det_worker_spec *spec =
        read_text("link.worker", HEAD STATES "STATE(BUSY, up, STOPPED)\n");
    const struct det_diagnostic *finding = only(spec, DET_RULE_DUPLICATE_NAME, "up");

    (void)state;
    assert_int_equal(finding->place.line, 6);
    assert_int_equal(finding->place.column, 13);
    assert_string_equal(finding->place.source, "STATE(BUSY, up, STOPPED)");
    assert_int_equal(finding->other.line, 4);
    det_worker_spec_close(spec);
    spec = read_text(
        "link.worker", HEAD "STATE(STOPPED, stopped, STOPPED)\n"
                            "STATE(UP, up, RUNNING, STOP(STOPED))\n");
    finding = only(spec, DET_RULE_UNKNOWN_STATE, "STOPED is not a state");
    assert_string_equal(finding->hint, "did you mean STOPPED?");
    det_worker_spec_close(spec);
}

static void enum_declared_in_a_c_header_is_read_as_a_number(void **state)
{
    struct det_worker_spec *spec = read_text(
        "link.worker", HEAD STATES "#define WORKER_OBSERVED link_observed\n"
                                   "RECORD(link_observed)\nFIELD(why, one_of(relay_class))\nEND\n");

    (void)state;
    only(spec, DET_RULE_FOREIGN_ENUM, "relay_class");
    assert_true(det_worker_spec_is_valid(spec));
    assert_int_equal(det_worker_spec_summary(spec)->observed->fields[0].kind, DET_KIND_SIGNED);
    det_worker_spec_close(spec);
}

static void exceeded_limits_are_reported(void **state)
{
    static char text[16384];
    struct det_worker_spec *spec;
    size_t used = (size_t)snprintf(text, sizeof text, HEAD);

    (void)state;
    for (int i = 0; i <= DET_WORKER_STATES_MAX; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "STATE(S%d, s%d, STOPPED)\n", i, i);
    spec = read_text("link.worker", text);
    only(spec, DET_RULE_TOO_LARGE, "at most 64 states");
    det_worker_spec_close(spec);
    used = (size_t)snprintf(text, sizeof text, HEAD STATES);
    for (int i = 0; i <= DET_WORKER_ACTIONS_MAX + 3; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "ACTION(A%d, a%d)\n", i, i);
    spec = read_text("link.worker", text);
    only(spec, DET_RULE_TOO_LARGE, "at most 64 actions");
    det_worker_spec_close(spec);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);

    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static void check_folder(const char *name, int least, void (*check)(const char *, const char *))
{
    char folder[1024], path[2048];
    struct dirent **entries;
    int found, count = 0;

    (void)snprintf(folder, sizeof folder, "%s%s", CORPUS, name);
    found = scandir(folder, &entries, NULL, alphasort);
    assert_true(found > 0);
    for (int i = 0; i < found; i++) {
        if (ends_with(entries[i]->d_name, ".worker")) {
            size_t size;
            char *text;

            (void)snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
            text = det_test_read_file(path, &size);
            check(path, text);
            free(text);
            count++;
        }
        free(entries[i]);
    }
    free((void *)entries);
    assert_true(count >= least);
}

static void check_good(const char *path, const char *text)
{
    struct det_worker_spec *spec = read_text(path, text);
    size_t size = strlen(text);
    char *formatted = malloc(size + 2);

    print_findings(spec);
    assert_int_equal(det_worker_spec_diagnostics(spec)->count, 0);
    assert_int_equal(det_spec_format(text, size, formatted, size + 2, NULL), size);
    assert_string_equal(formatted, text);
    free(formatted);
    det_worker_spec_close(spec);
}

static unsigned line_of(const char *text, const char *mark)
{
    const char *at = strstr(text, mark);
    unsigned line = at != NULL ? 1 : 0;

    for (; at != NULL && at > text; at--)
        line += at[-1] == '\n';
    return line;
}

static void check_bad(const char *path, const char *text)
{
    struct det_worker_spec *spec = read_text(path, text);
    const struct det_diagnostics *found = det_worker_spec_diagnostics(spec);
    unsigned line = line_of(text, "/* here */");
    char rule[64], part[256];

    assert_int_equal(sscanf(text, "/* expect: %63[^ |] | %*[^|] | %255[^*]", rule, part), 2);
    part[strlen(part) - 1] = '\0';
    if (found->count != 1 || strcmp(det_rule_id(found->items[0].rule), rule) != 0 ||
        strstr(found->items[0].text, part) == NULL ||
        (line > 0 && found->items[0].place.line != line)) {
        print_findings(spec);
        fail_msg("%s: wanted one %s at line %u: '%s'", path, rule, line, part);
    }
    assert_false(det_worker_spec_is_valid(spec));
    det_worker_spec_close(spec);
}

static void every_good_worker_spec_is_valid_and_formatted(void **state)
{
    (void)state;
    check_folder("good", 3, check_good);
}

static void every_bad_worker_is_refused_by_its_rule_at_its_place(void **state)
{
    (void)state;
    check_folder("bad", 25, check_bad);
}

static void worker_lifecycle_is_drawn_with_its_transitions(void **state)
{
    static const struct det_worker_transition transitions[] = {
        { 0, 1, "start wanted" },
        { 2, 0, "closed" },
        { 2, 0, "closed" },
    };
    struct det_worker_spec *spec = read_text("link.worker", LINK);
    struct det_draw_options options = { .drawing = DET_DRAW_DOT };
    const struct det_machine *machine;
    char text[8192];

    (void)state;
    assert_int_equal(det_worker_spec_machine(spec, transitions, 3, &machine), 0);
    assert_int_equal(machine->event_count, 3);
    assert_int_equal(machine->group_count, 3);
    assert_true(det_draw(machine, &options, text, sizeof text, NULL) > 0);
    assert_non_null(strstr(text, "start wanted"));
    assert_non_null(strstr(text, "stop"));
    assert_non_null(strstr(text, "RUNNING"));
    options.drawing = DET_DRAW_MERMAID_STATE;
    assert_true(det_draw(machine, &options, text, sizeof text, NULL) > 0);
    assert_int_equal(
        det_worker_spec_machine(spec, &(struct det_worker_transition){ 3, 0, "x" }, 1, &machine),
        DET_ERR_INVALID);
    det_worker_spec_close(spec);
}

static int read_and_draw(struct det_test_memory *memory, void *argument)
{
    struct det_spec_options options = { .allocator = &memory->allocator };
    const struct det_machine *machine;
    struct det_worker_spec *spec = NULL;
    const char *text = argument;
    int r;

    r = det_worker_spec_read("link.worker", text, strlen(text), &options, &spec);
    if (r == 0 && det_worker_spec_is_valid(spec))
        r = det_worker_spec_machine(spec, NULL, 0, &machine);
    det_worker_spec_close(spec);
    return r;
}

static void allocation_failures_are_reported_and_leak_nothing(void **state)
{
    static char good[] = LINK "#define WORKER_EVERY SECONDS(3)\n#define WORKER_DERIVE\n"
                              "RECORD(a)\nFIELD(b, u8)\nEND\n#define WORKER_DESIRED a\n";
    static char bad[] = LINK "STATE(UP, up, RUNING)\n#define WORKER_EVRY SECONDS(3)\n";

    (void)state;
    det_test_each_failure(read_and_draw, good);
    det_test_each_failure(read_and_draw, bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker_spec_declarations_are_read),
        cmocka_unit_test(words_and_records_are_known),
        cmocka_unit_test(observation_settings_are_read),
        cmocka_unit_test(one_mistake_is_one_finding),
        cmocka_unit_test(finding_has_its_place_hint_and_first_declaration),
        cmocka_unit_test(enum_declared_in_a_c_header_is_read_as_a_number),
        cmocka_unit_test(exceeded_limits_are_reported),
        cmocka_unit_test(every_good_worker_spec_is_valid_and_formatted),
        cmocka_unit_test(every_bad_worker_is_refused_by_its_rule_at_its_place),
        cmocka_unit_test(worker_lifecycle_is_drawn_with_its_transitions),
        cmocka_unit_test(allocation_failures_are_reported_and_leak_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
