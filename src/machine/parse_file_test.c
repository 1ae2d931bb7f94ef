/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_file_test.c - files that include files, limits, hostile texts, and no memory. */
#include "machine/parse_test.h"

/* Returns `head`, `count` times `part`, `tail`; the caller frees it. */
static char *repeat(const char *head, const char *part, size_t count, const char *tail)
{
    size_t size = strlen(head) + strlen(part) * count + strlen(tail) + 1;
    char *text = malloc(size);
    size_t used;

    assert_non_null(text);
    used = (size_t)snprintf(text, size, "%s", head);
    while (count-- > 0)
        used += (size_t)snprintf(text + used, size - used, "%s", part);
    (void)snprintf(text + used, size - used, "%s", tail);
    return text;
}

/* Expects a finding, perhaps among others. */
static void is_reported(const char *text, enum det_rule rule, const char *part)
{
    struct det_spec *spec = test_spec(text);

    assert_null(det_spec_machine(spec));
    (void)test_finding(spec, rule, part);
    assert_true(det_spec_diagnostics(spec)->count <= DET_DIAGNOSTICS_MAX);
    det_spec_close(spec);
}

static void included_fragment_is_read_in_place(void **state)
{
    static const struct test_file known[] = {
        { "specs/parts/a.fsm", "STATE(A, a)\n#include \"b.fsm\"\n#include \"../c.fsm\"\n", 0 },
        { "specs/parts/b.fsm", "ON(PENDING, PAY, A)", 0 },
        { "specs/parts/../c.fsm", "\nON(A, PAY, PAID)\n", 0 },
        { NULL, NULL, 0 },
    };
    struct det_spec *spec = test_spec_of(HEAD BASE "#include \"./parts/a.fsm\"\n", known);
    const struct det_machine *machine = test_machine(spec);

    (void)state;
    assert_int_equal(machine->state_count, 3);
    assert_int_equal(det_machine_step(machine, 0, 0)->to, 2);
    assert_int_equal(det_machine_step(machine, 2, 0)->to, 1);
    assert_string_equal(det_spec_file(spec, 0), "specs/order.fsm");
    assert_string_equal(det_spec_file(spec, 1), "specs/parts/a.fsm");
    assert_string_equal(det_spec_file(spec, 2), "specs/parts/b.fsm");
    assert_string_equal(det_spec_file(spec, 3), "specs/parts/../c.fsm");
    assert_null(det_spec_file(spec, 4));
    det_spec_close(spec);
}

static void places_name_the_included_file(void **state)
{
    static const struct test_file known[] = {
        { "specs/a.fsm", "/* x */\n  ON(PENDING, PAY, PAID)\n", 0 },
        { "/etc/b.fsm", "ON(A, B)", 0 },
        { NULL, NULL, 0 },
    };

    (void)state;
    test_only(
        ORDER "#include \"a.fsm\"\n", known, DET_RULE_DUPLICATE_TRANSITION, "specs/a.fsm:2:6",
        "PENDING on PAY");
    test_only(
        ORDER "#include \"/etc/b.fsm\"\n", known, DET_RULE_ROW_ARGUMENTS, "/etc/b.fsm:1:1",
        "ON has 2 arguments");
}

static void fragment_included_twice_duplicates_its_rows(void **state)
{
    static const struct test_file known[] = { { "specs/a.fsm", MOVE, 0 }, { NULL, NULL, 0 } };
    struct det_spec *spec =
        test_spec_of(HEAD BASE "#include \"a.fsm\"\n#include \"a.fsm\"\n", known);

    (void)state;
    (void)test_finding(spec, DET_RULE_DUPLICATE_TRANSITION, "PENDING on PAY");
    assert_string_equal(det_spec_file(spec, 1), "specs/a.fsm");
    assert_null(det_spec_file(spec, 2));
    det_spec_close(spec);
}

static void a_file_that_includes_itself_is_refused(void **state)
{
    static const struct test_file known[] = {
        { "specs/a.fsm", "#include \"b.fsm\"", 0 },
        { "specs/b.fsm", "#include \"a.fsm\"", 0 },
        { "specs/c.fsm", "#include \"order.fsm\"", 0 },
        { NULL, NULL, 0 },
    };

    (void)state;
    test_only(
        ORDER "#include \"a.fsm\"\n", known, DET_RULE_BAD_INCLUDE, "specs/b.fsm:1:10",
        "specs/a.fsm includes itself");
    test_only(
        ORDER "#include \"c.fsm\"\n", known, DET_RULE_BAD_INCLUDE, "specs/c.fsm:1:10",
        "specs/order.fsm includes itself");
}

static void files_nest_sixteen_deep(void **state)
{
    struct test_file files[DET_SPEC_INCLUDE_MAX + 1] = { { NULL, NULL, 0 } };
    char paths[DET_SPEC_INCLUDE_MAX][32], texts[DET_SPEC_INCLUDE_MAX][32];

    (void)state;
    for (int i = 0; i < DET_SPEC_INCLUDE_MAX; i++) {
        (void)snprintf(paths[i], sizeof paths[i], "specs/%d", i);
        (void)snprintf(texts[i], sizeof texts[i], "#include \"%d\"", i + 1);
        files[i] = (struct test_file){ paths[i], texts[i], 0 };
    }
    test_only(
        ORDER "#include \"0\"\n", files, DET_RULE_BAD_INCLUDE, "specs/14:1:10",
        "specs/15 is nested too deep: files include files at most 16 deep");
    texts[DET_SPEC_INCLUDE_MAX - 2][0] = '\0';
    det_spec_close(test_spec_of(ORDER "#include \"0\"\n", files));
}

static void unreadable_included_files_are_reported(void **state)
{
    static const struct test_file known[] = {
        { "specs/io.fsm", NULL, DET_ERR_IO },
        { "specs/large.fsm", NULL, DET_ERR_LIMIT },
        { NULL, NULL, 0 },
    };

    (void)state;
    test_only(
        ORDER "#include \"x.fsm\"\n", known, DET_RULE_BAD_INCLUDE, "specs/order.fsm:7:10",
        "specs/x.fsm does not exist");
    test_only(
        ORDER "USES(\"x.rec\")\n", known, DET_RULE_BAD_INCLUDE, "specs/order.fsm:7:6",
        "specs/x.rec does not exist");
    test_only(
        ORDER "#include \"io.fsm\"\n", known, DET_RULE_BAD_INCLUDE, "specs/order.fsm:7:10",
        "cannot read specs/io.fsm: input or output failed");
    test_only(
        ORDER "#include \"large.fsm\"\n", known, DET_RULE_TOO_LARGE, "specs/order.fsm:7:10",
        "specs/large.fsm has more than 262144 bytes");
    test_only(
        ORDER "#include \"x.fsm\"\n", NULL, DET_RULE_BAD_INCLUDE, "specs/order.fsm:7:10",
        "this reader has no file access");
    test_only(
        ORDER "#include \"\"\n", known, DET_RULE_BAD_INCLUDE, "specs/order.fsm:7:10",
        "this is not the name of a file");
    test_only(
        ORDER "#include \"a\\\\b\"\n", known, DET_RULE_BAD_INCLUDE, "specs/order.fsm:7:10",
        "this is not the name of a file");
}

static void a_reader_without_memory_is_a_failure(void **state)
{
    static const struct test_file known[] = { { "specs/a", NULL, DET_ERR_NO_MEMORY },
                                              { NULL, NULL, 0 } };
    struct test_files files = { .files = known };
    struct det_spec_files callbacks = { test_read, test_release, &files };
    struct det_spec_options options = { .files = &callbacks };
    static const char asked[] = ORDER "#include \"a\"\n";
    struct det_spec *spec = NULL;

    (void)state;
    assert_int_equal(
        det_spec_read("specs/b", asked, strlen(asked), &options, &spec), DET_ERR_NO_MEMORY);
    assert_null(spec);
}

static void a_name_of_a_file_is_bounded(void **state)
{
    char *text = repeat(ORDER "#include \"", "x", 5000, "\"\n");

    (void)state;
    is_reported(text, DET_RULE_BAD_INCLUDE, "this is not the name of a file");
    free(text);
}

static void only_include_and_define_are_known(void **state)
{
    (void)state;
    test_only(
        ORDER "#include\n", NULL, DET_RULE_SYNTAX, "specs/order.fsm:7:1",
        "a file name in double quotes");
    test_only(
        ORDER "#include \"a\" b\n", (struct test_file[]){ { "specs/a", "", 0 }, { 0 } },
        DET_RULE_SYNTAX, "specs/order.fsm:7:14", "expected the end of the line");
    test_only(
        ORDER "#define\n", NULL, DET_RULE_SYNTAX, "specs/order.fsm:7:1",
        "expected a name after #define");
    test_only(
        ORDER "#define 5\n", NULL, DET_RULE_SYNTAX, "specs/order.fsm:7:9",
        "expected a name after #define");
    test_only(
        ORDER "#define ORDER_A PENDING,\n", NULL, DET_RULE_SYNTAX, "specs/order.fsm:7:9",
        "names separated by commas");
    test_only(
        ORDER "#define ORDER_A PENDING PAID\n", NULL, DET_RULE_SYNTAX, "specs/order.fsm:7:25",
        "a comma is missing");
    test_only(
        ORDER "#define ORDER_A(x) x\n", NULL, DET_RULE_SYNTAX, "specs/order.fsm:7:9",
        "ORDER_A has arguments");
    test_only(
        ORDER "#define ORDER_A 1\n", NULL, DET_RULE_SYNTAX, "specs/order.fsm:7:17",
        "1 is not a name");
    test_only(
        ORDER "#\n", NULL, DET_RULE_SYNTAX, "specs/order.fsm:7:1",
        "only #define and #include may follow a #");
}

static void a_file_has_a_largest_size(void **state)
{
    char *text = repeat(ORDER, "\n", DET_SPEC_SIZE_MAX + 1 - strlen(ORDER), "");

    (void)state;
    test_only(
        text, NULL, DET_RULE_TOO_LARGE, "specs/order.fsm:1:1",
        "the file has 262145 bytes, more than 262144");
    text[DET_SPEC_SIZE_MAX] = '\0';
    det_spec_close(test_spec(text));
    free(text);
    text = repeat("", "ON(A, B, C)\n", 10 * 1024 * 1024 / 12, "");
    test_only(text, NULL, DET_RULE_TOO_LARGE, "specs/order.fsm:1:1", "bytes, more than 262144");
    free(text);
}

static void all_files_together_have_a_largest_size(void **state)
{
    char *blank = repeat("", "\n", DET_SPEC_SIZE_MAX, ""),
         *many = repeat(ORDER, "#include \"none\"\n", 1100, "");
    struct test_file files[] = { { "specs/a", blank, 0 },
                                 { "specs/none", "", 0 },
                                 { NULL, NULL, 0 } };
    struct det_spec *spec;

    (void)state;
    test_only(
        ORDER "#include \"a\"\n#include \"a\"\n#include \"a\"\n#include \"a\"\n", files,
        DET_RULE_TOO_LARGE, "specs/order.fsm:10:10", "exceeds the limits of a spec: 1048576 bytes");
    spec = test_spec_of(many, files);
    assert_non_null(test_finding(spec, DET_RULE_TOO_LARGE, "and 1024 files in total"));
    det_spec_close(spec);
    free(blank);
    free(many);
}

static void number_of_rows_and_list_members_is_limited(void **state)
{
    char *text = repeat(ORDER, "GUARD(g)", DET_SPEC_ROWS_MAX - 4, "");

    (void)state;
    is_reported(text, DET_RULE_DUPLICATE_NAME, "g is already a guard");
    free(text);
    text = repeat(ORDER "GUARD(a)", "GUARD(g)", DET_SPEC_ROWS_MAX - 4, "");
    is_reported(text, DET_RULE_TOO_LARGE, "more than 20000 rows");
    free(text);
    text = repeat(ORDER "GROUP(x", ", PENDING", DET_LIST_MAX + 1, ")");
    is_reported(text, DET_RULE_TOO_LARGE, "the list in GROUP has more than 64 names");
    free(text);
    text = repeat(ORDER "#define ORDER_A PAID", ", PENDING", DET_LIST_MAX, "\n");
    is_reported(text, DET_RULE_TOO_LARGE, "ORDER_A has more than 64 names");
    free(text);
}

static void macro_expansion_is_bounded(void **state)
{
    char *text = repeat(
        ORDER "#define ORDER_A PENDING", ", PENDING", 63, "\n#define ORDER_B ORDER_A, ORDER_A\n");
    size_t used = strlen(text) - strlen("#define ORDER_B ORDER_A, ORDER_A\n");
    char *rows = malloc(DET_SPEC_SIZE_MAX);

    (void)state;
    is_reported(text, DET_RULE_TOO_LARGE, "ORDER_B has more than 64 names");
    assert_non_null(rows);
    (void)snprintf(rows, used + 1, "%s", text);
    for (int i = 0; i < 4200; i++)
        used += (size_t)snprintf(rows + used, DET_SPEC_SIZE_MAX - used, "GROUP(x%d, ORDER_A)\n", i);
    is_reported(rows, DET_RULE_TOO_LARGE, "all lists together have more than 262144 names");
    free(rows);
    free(text);
}

/* A chain of as many macros as fit, each in the next, used by the last: no recursion, no square. */
static void long_chains_of_macros_are_walked(void **state)
{
    size_t capacity = DET_SPEC_SIZE_MAX, used = strlen(ORDER);
    char *text = malloc(capacity);
    struct det_spec *spec;

    (void)state;
    assert_non_null(text);
    (void)snprintf(text, capacity, "%s", ORDER);
    for (unsigned i = 0; used < capacity - 128; i++)
        used +=
            (size_t)snprintf(text + used, capacity - used, "#define ORDER_%u ORDER_%u\n", i, i + 1);
    (void)snprintf(text + used, capacity - used, "GROUP(x, ORDER_0)\n");
    spec = test_spec(text);
    assert_non_null(test_finding(spec, DET_RULE_UNKNOWN_STATE, "ORDER_"));
    det_spec_close(spec);
    free(text);
}

static void hostile_texts_are_reported_and_parsing_ends(void **state)
{
    static const struct {
        const char *head, *part;
        enum det_rule rule;
    } texts[] = {
        { "ON(", "(", DET_RULE_SYNTAX },      { "", ")", DET_RULE_SYNTAX },
        { "ON(", "A(", DET_RULE_SYNTAX },     { "", "ON(", DET_RULE_SYNTAX },
        { "", "STATE(", DET_RULE_SYNTAX },    { "", "STATE ", DET_RULE_SYNTAX },
        { "", "STATE/**/", DET_RULE_SYNTAX }, { "", "#", DET_RULE_SYNTAX },
        { "", "#\n", DET_RULE_SYNTAX },       { "", "#define ", DET_RULE_SYNTAX },
        { "", "\"", DET_RULE_SYNTAX },        { "", "/*", DET_RULE_SYNTAX },
        { "ON(A", ",", DET_RULE_SYNTAX },     { "ON(A", ",A", DET_RULE_SYNTAX },
        { "", "END ", DET_RULE_BAD_RECORD },  { "", "RECORD(a)", DET_RULE_BAD_RECORD },
        { "", "\x7f", DET_RULE_NOT_UTF8 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *text =
            repeat(texts[i].head, texts[i].part, (size_t)40 * 1024 / strlen(texts[i].part), "");

        is_reported(text, texts[i].rule, "");
        free(text);
    }
}

static void more_mistakes_than_are_shown_are_counted(void **state)
{
    char *text = repeat(ORDER, "NOBODY(x)\n", DET_DIAGNOSTICS_MAX + 100, "");
    struct det_spec *spec = test_spec(text);

    (void)state;
    assert_int_equal(det_spec_diagnostics(spec)->count, DET_DIAGNOSTICS_MAX);
    assert_true(det_spec_diagnostics(spec)->is_cut);
    det_spec_close(spec);
    free(text);
}

struct scenario {
    const char *path;
    const char *text;
};

static int read_all(struct det_test_memory *memory, void *argument)
{
    static const struct test_file known[] = {
        { "a.fsm", "STATE(A, a)\nON(PAID, PAY, A)\n", 0 },
        { "b.rec", "ENUM(e) VALUE(E_A, a) END RECORD(r) FIELD(x, one_of(e)) END", 0 },
        { NULL, NULL, 0 },
    };
    struct test_files files = { .files = known };
    struct det_spec_files callbacks = { test_read, test_release, &files };
    struct det_spec_options options = { &memory->allocator, &callbacks, true };
    const struct scenario *scenario = argument;
    struct det_spec *spec = NULL;
    int r = det_spec_read(scenario->path, scenario->text, strlen(scenario->text), &options, &spec);

    assert_int_equal(files.read_count, files.release_count);
    assert_true((r == 0) == (spec != NULL));
    det_spec_close(spec);
    return r;
}

/* Arenas allocate chunks; the longer path moves their borders, until each block was at one. */
static void spec_reading_survives_every_failed_allocation(void **state)
{
    static const char *const texts[] = {
        ORDER "#include \"a.fsm\"\nUSES(\"b.rec\")\nEVENT(GO, go, r)\n"
              "#define ORDER_OPEN PENDING, PAID\nRECORD(s) OPTIONAL(x, nested(r)) END\n"
              "STAY(ANY(ORDER_OPEN), GO)\nOVERRIDE(PENDING, PAY, PENDING)\nGUARD(g)\n",
        ORDER "STATE(A a)\nON(A, B)\n#ifdef X\nRECORD(x) FIELD(a, u9) END\n",
        ORDER
        "#define ORDER_OUT PENDNG, PAID\n#define ORDER_ALL ORDER_OUT\nSTAY(ANY(ORDER_OT), PAY)\n"
        "STAY(ANY(ORDER_ALL), PAY, CAL(x))\nSTATE(X, x, FINL)\nENUM(e) VALUE(A, a) END\n",
        "#define FSM_NAME a\n#define FSM_PREFIX A\nSTATE(S, s, INITIAL)\nTIMER(late)\n",
        "\xff",
    };
    char *path = malloc(DET_SPEC_SIZE_MAX);
    uint64_t seed = 7;

    (void)state;
    assert_non_null(path);
    for (size_t run = 0; run < 120; run++) {
        size_t length = run < 110 ? 1 + run * 40 : det_test_random(&seed) % 60000;

        memset(path, 'p', length);
        path[length] = '\0';
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            det_test_each_failure(read_all, &(struct scenario){ path, texts[i] });
    }
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(included_fragment_is_read_in_place),
        cmocka_unit_test(places_name_the_included_file),
        cmocka_unit_test(fragment_included_twice_duplicates_its_rows),
        cmocka_unit_test(a_file_that_includes_itself_is_refused),
        cmocka_unit_test(files_nest_sixteen_deep),
        cmocka_unit_test(unreadable_included_files_are_reported),
        cmocka_unit_test(a_reader_without_memory_is_a_failure),
        cmocka_unit_test(a_name_of_a_file_is_bounded),
        cmocka_unit_test(only_include_and_define_are_known),
        cmocka_unit_test(a_file_has_a_largest_size),
        cmocka_unit_test(all_files_together_have_a_largest_size),
        cmocka_unit_test(number_of_rows_and_list_members_is_limited),
        cmocka_unit_test(macro_expansion_is_bounded),
        cmocka_unit_test(long_chains_of_macros_are_walked),
        cmocka_unit_test(hostile_texts_are_reported_and_parsing_ends),
        cmocka_unit_test(more_mistakes_than_are_shown_are_counted),
        cmocka_unit_test(spec_reading_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
