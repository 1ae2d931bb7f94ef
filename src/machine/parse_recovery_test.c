/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_recovery_test.c - one mistake is one finding, with a suggestion. */
#include "machine/parse_test.h"

#define REST                                                                               \
    "STATE(GONE, gone, FINAL)\nEVENT(LEAVE, leave)\nRECORD(money) FIELD(cents, u64) END\n" \
    "ON(PENDING, PAY, PAID, IF(rich), CALL(ring), DO(charge), ARM(late))\n"                \
    "ON(PAID, LEAVE, GONE)\nAFTER(PAID, MINUTES(5), LEAVE)\n"

/* A row that is right, and the same with a mistake that has this hint (NULL: none). */
struct mistake {
    const char *row;
    const char *hint;
};

static const struct mistake mistakes[] = {
    { "STATE(PENDING, pending, INITIAL)", NULL },
    { "STATE(PENDING, pending, INTIAL)", "did you mean INITIAL?" },
    { "STATE(PENDING, pending, initial)", "did you mean INITIAL?" },
    { "STATE(PENDING, pending, FIRST)", NULL },
    { "STAET(PENDING, pending, INITIAL)", "did you mean STATE?" },
    { "state(PENDING, pending, INITIAL)", "did you mean STATE?" },
    { "STATE(PENDING)", NULL },
    { "STATE(PENDING, pending, INITIAL, FINAL)", NULL },
    { "STATE(PENDING pending, INITIAL)", NULL },
    { "STATE(PENDING, pending, INITIAL", NULL },
    { "STATE(PENDING, pending,)", NULL },
    { "STATE(PENDING, pending, INITIAL;", NULL },
    { "STATE(PENDING, 'pending')", NULL },
    { "STATE(PENDING, \"pending\", INITIAL)", "names are written without quotes: pending" },
    { "STATE(PENDING, 7, INITIAL)", NULL },
    { "STATE PENDING, pending, INITIAL)", NULL },
    { "STATE(, pending, INITIAL)", NULL },
    { "STATE(\"PENDING\", pending, INITIAL)", "names are written without quotes: PENDING" },
    { "STATE(END, pending, INITIAL)", NULL },
    { "STATE", NULL },
    { "EVENT(PAY, pay, money)", NULL },
    { "EVENT(PAY)", NULL },
    { "EVNT(PAY, pay)", "did you mean EVENT?" },
    { "EVENT(PAY, pay, mony)", "did you mean money?" },
    { "EVENT(PAY, pay, 3)", NULL },
    { "EVENT(PAY, pay", NULL },
    { "EVENT(PAY, pay, money, more)", NULL },
    { "INTERNAL(PAY, pay", NULL },
    { "GUARD(rich)", NULL },
    { "GUARD(rich, poor)", NULL },
    { "GARD(rich)", "did you mean GUARD?" },
    { "GUARD rich", NULL },
    { "HOOK(ring)", NULL },
    { "HOOK(ring", NULL },
    { "HOKO(ring)", "did you mean HOOK?" },
    { "EFFECT(charge)", NULL },
    { "EFFECT(charge, 3)", NULL },
    { "EFECT(charge)", "did you mean EFFECT?" },
    { "TIMER(late, SECONDS(3), LEAVE)", NULL },
    { "TIMER(late, LEAVE)", NULL },
    { "TIMER(late)", NULL },
    { "TIMR(late, SECONDS(3), LEAVE)", "did you mean TIMER?" },
    { "TIMER(late, SECS(3), LEAVE)", "did you mean SECONDS(3)?" },
    { "TIMER(late, sec(3), LEAVE)", "did you mean SECONDS(3)?" },
    { "TIMER(late, MS(20), LEAVE)", "did you mean MILLISECONDS(20)?" },
    { "TIMER(late, MINUTE(3), LEAVE)", "did you mean MINUTES(3)?" },
    { "TIMER(late, HRS(3), LEAVE)", "did you mean HOURS(3)?" },
    { "TIMER(late, DAYS, LEAVE)", "did you mean DAYS(...)?" },
    { "TIMER(late, SECND(x), LEAVE)", "did you mean SECONDS(...)?" },
    { "TIMER(late, 3, LEAVE)", "did you mean SECONDS(3)?" },
    { "TIMER(late, SECONDS(0), LEAVE)", NULL },
    { "TIMER(late, \"3 s\", LEAVE)", NULL },
    { "TIMER(late, AEONS(3), LEAVE)", NULL },
};

static bool is_of_kind(const char *row, const char *right)
{
    /* The names in the rows tell the kinds apart, whatever the row is called. */
    static const char *const names[] = { "PENDING", "PAY", "rich", "ring", "charge", "late" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strstr(right, names[i]) != NULL)
            return strstr(row, names[i]) != NULL || strstr(row, "pending") != NULL;
    }
    return false;
}

static void put_rows(char *target, size_t capacity, const struct mistake *mistake)
{
    static const char *const rights[] = { "STATE(PENDING, pending, INITIAL)",
                                          "EVENT(PAY, pay, money)",
                                          "GUARD(rich)",
                                          "HOOK(ring)",
                                          "EFFECT(charge)",
                                          "TIMER(late, SECONDS(3), LEAVE)" };
    size_t used = (size_t)snprintf(target, capacity, "%sSTATE(PAID, paid)\n", HEAD);
    bool is_put = false;

    for (size_t i = 0; i < sizeof rights / sizeof *rights; i++) {
        bool is_it = !is_put && (is_of_kind(mistake->row, rights[i]) ||
                                 (i == 0 && strcmp(mistake->row, "STATE") == 0));

        is_put = is_put || is_it;
        used += (size_t)snprintf(
            target + used, capacity - used, "%s\n", is_it ? mistake->row : rights[i]);
    }
    assert_true(is_put);
    (void)snprintf(target + used, capacity - used, "%s", REST);
}

static void assert_hint(const struct det_diagnostic *finding, const char *hint)
{
    if (hint == NULL)
        assert_null(finding->hint);
    else
        assert_string_equal(finding->hint != NULL ? finding->hint : "(none)", hint);
}

static void mistake_in_a_declaration_is_reported_once(void **state)
{
    char text[2048];
    size_t right = 0;

    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        struct det_spec *spec;
        const struct det_diagnostics *found;

        put_rows(text, sizeof text, &mistakes[i]);
        spec = test_spec(text);
        found = det_spec_diagnostics(spec);
        if (det_spec_machine(spec) != NULL) {
            right++;
        } else {
            if (found->error_count != 1) {
                print_message("%s:\n", mistakes[i].row);
                test_print_findings(spec);
            }
            assert_int_equal(found->error_count, 1);
            assert_int_equal(found->count, 1);
            assert_hint(&found->items[0], mistakes[i].hint);
        }
        det_spec_close(spec);
    }
    /* One of each kind is right, so that the text around the mistakes is. */
    assert_int_equal(right, 6);
}

#define CHOICE                                                                        \
    HEAD "STATE(A, a, INITIAL)\nSTATE(B, b)\nSTATE(C, c)\nEVENT(E, e)\nEVENT(F, f)\n" \
         "GUARD(g)\nGUARD(h)\n#define ORDER_LIST A, B\n"

/* Findings that follow from a lost row are dropped: that its ELSE has no earlier row. */
static void else_rows_after_an_unread_row_are_not_reported(void **state)
{
    static const char *const texts[] = {
        CHOICE "ON(A, E, B, IF(g), IF(h))\nELSE(A, E, C)\nON(ANY(B, C), F, A)\n",
        CHOICE "ON(ORDER_LIST, E, B, IF(g))\nELSE(ANY(ORDER_LIST), E, C)\nON(ANY(B, C), F, A)\n",
        CHOICE "ON(A, E, B, CALL(g))\nELSE(A, E, C)\nON(ANY(B, C), F, A)\n",
        CHOICE "ON(A, E, B, SET(g))\nELSE(A, E, C)\nELSE(A, E, B)\nON(ANY(B, C), F, A)\n",
        CHOICE "ONN(A, E, B, IF(g))\nELSE(A, E, C)\nON(ANY(B, C), F, A)\n",
        CHOICE "ON(A, E, B)\nOVERRIDE(A, E, B, IF(g), IF(h))\nELSE(A, E, C)\nON(ANY(B, C), F, A)\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct det_spec *spec = test_spec(texts[i]);

        if (det_spec_diagnostics(spec)->error_count != 1) {
            print_message("%s\n", texts[i]);
            test_print_findings(spec);
        }
        assert_int_equal(det_spec_diagnostics(spec)->error_count, 1);
        det_spec_close(spec);
    }
}

/* ORDER with a row, which has one mistake with this hint. */
static void assert_row(const char *row, enum det_rule rule, const char *hint)
{
    char text[1024];
    struct det_spec *spec;
    const struct det_diagnostics *found;

    (void)snprintf(text, sizeof text, "%s%s\n", ORDER, row);
    spec = test_spec(text);
    found = det_spec_diagnostics(spec);
    if (found->error_count != 1)
        test_print_findings(spec);
    assert_int_equal(found->error_count, 1);
    assert_int_equal(found->items[0].rule, rule);
    assert_hint(&found->items[0], hint);
    det_spec_close(spec);
}

/* The text has two mistakes: a file that is not there, and one with this rule and hint. */
static void assert_hint_of(const char *text, enum det_rule rule, const char *hint)
{
    struct det_spec *spec = test_spec(text);

    if (det_spec_diagnostics(spec)->error_count != 2)
        assert_int_equal(det_spec_diagnostics(spec)->error_count, 2);
    assert_hint(test_finding(spec, rule, ""), hint);
    det_spec_close(spec);
}

static void misspelled_keywords_get_the_nearest(void **state)
{
    enum det_rule rule = DET_RULE_ROW_ARGUMENTS;

    (void)state;
    assert_row("UNHANDLED(PAY, IGNOR)", rule, "did you mean IGNORE?");
    assert_row("UNHANDLED(PAY, DEADLETTER)", rule, "did you mean DEAD_LETTER?");
    assert_row("UNHANDLED(PAY, FORGET)", rule, NULL);
    assert_row("#define FSM_UNHANDLED DEFFER", rule, "did you mean DEFER?");
    assert_row("STAY(PAID, PAY, CAL(x))", rule, "did you mean CALL?");
    assert_row("STAY(PAID, PAY, DISRAM(x))", rule, "did you mean DISARM?");
    assert_row("STAY(PAID, PAY, FROBNICATE(x))", rule, NULL);
    assert_row("STAY(PAID, PAY, CALL)", rule, "it is written CALL(hook)");
    assert_row("HOOK(ring)\nSTAY(PAID, PAY, ring)", rule, "did you mean CALL(ring)?");
    assert_row("EFFECT(beep)\nSTAY(PAID, PAY, beep)", rule, "did you mean DO(beep)?");
    assert_row("STAY(PAID, PAY, nobody)", rule, NULL);
    assert_row(
        "GUARD(is_rich)\nSTAY(PAID, PAY, CALL(is_rich))", DET_RULE_UNKNOWN_FUNCTION,
        "did you mean IF(is_rich)?");
    assert_row(
        "HOOK(ring)\nSTAY(PAID, PAY, DO(ring))", DET_RULE_UNKNOWN_EFFECT,
        "did you mean CALL(ring)?");
    assert_row("TIMER(late, SECONDS(3), PAY)\nENTRY(PAID, late)", DET_RULE_UNKNOWN_FUNCTION, NULL);
    assert_row("RECORD(r) FIELD(x, uint64_t) END", rule, "did you mean u64?");
    assert_row("RECORD(r) FIELD(x, strr(4)) END", rule, "did you mean str?");
    assert_row("RECORD(r) FIELD(x, nestd(r)) END", rule, "did you mean nested?");
    assert_row("RECORD(r) FIELD(x, str) END", rule, NULL);
    assert_row("RECORD(r) FIELD(x, u8, SENSITVE) END", rule, "did you mean SENSITIVE?");
    assert_row("RECORD(r) FIELD(x, u8, SENSITIVE, SENSITIVE) END", rule, NULL);
}

static void names_of_records_and_words_have_their_nearest(void **state)
{
    (void)state;
    assert_row(
        "RECORD(line) FIELD(x, u8) END RECORD(r) FIELD(x, nested(lien)) END",
        DET_RULE_UNKNOWN_RECORD, "did you mean line?");
    assert_row(
        "ENUM(color) VALUE(RED, red) END RECORD(r) FIELD(x, one_of(colour)) END",
        DET_RULE_UNKNOWN_RECORD, "did you mean color?");
    assert_row(
        "#define FSM_DATA lien\nRECORD(line) FIELD(x, u8) END", DET_RULE_UNKNOWN_RECORD,
        "did you mean line?");
    assert_row(
        "#define FSM_DATA d\nRECORD(d) FIELD(cents, u8) FIELD(b, u8) END\n"
        "RECORD(r) FIELD(cents, u8) FIELD(sent, u8) END\nEVENT(E, e, r) STAY(PENDING, E, "
        "KEEP(cent))",
        DET_RULE_BAD_KEEP, "did you mean cents?");
    assert_row(
        "#define FSM_DATA d\nRECORD(d) FIELD(cents, u8) END\nRECORD(r) FIELD(a, u8) END\n"
        "EVENT(E, e, r) STAY(PENDING, E, KEEP(cent))",
        DET_RULE_BAD_KEEP, NULL);
    assert_row("EVENT(E, e)", DET_RULE_NOT_TAKEN, "add a transition: ON(STATE, E, ...)");
    assert_row(
        "#define FSM_DATA lien\nRECORD(line) FIELD(x, u8) END\nUPDATE(u)\nSTAY(PAID, PAY, SET(u))",
        DET_RULE_UNKNOWN_RECORD, "did you mean line?");
    assert_row(
        "UPDATE(u)\nSTAY(PAID, PAY, SET(u))", DET_RULE_NO_DATA,
        "name their record: #define FSM_DATA");
    assert_row("#define FSM_VERSON 3", DET_RULE_SYNTAX, "did you mean FSM_VERSION?");
    assert_row("#define FSM_COLOR red", DET_RULE_SYNTAX, NULL);
    assert_row("#includ \"x.fsm\"", DET_RULE_SYNTAX, "did you mean include?");
    assert_row("#ifdef X", DET_RULE_SYNTAX, NULL);
    assert_row("#", DET_RULE_SYNTAX, NULL);
}

static void unknown_names_without_a_match_get_a_declare_hint(void **state)
{
    enum det_rule rule = DET_RULE_UNKNOWN_FUNCTION;

    (void)state;
    assert_row("STAY(PAID, PAY, IF(is_enough))", rule, "declare it: GUARD(is_enough)");
    assert_row("STAY(PAID, PAY, CALL(ring))", rule, "declare it: HOOK(ring)");
    assert_row(
        "#define FSM_DATA d\nRECORD(d) FIELD(a, u8) END\nSTAY(PAID, PAY, SET(count))", rule,
        "declare it: UPDATE(count)");
    assert_row("AFTER(PENDING, DAYS(1), PAY, since)", rule, "declare it: FILL(since)");
    assert_row("STAY(PAID, PAY, DO(mail))", DET_RULE_UNKNOWN_EFFECT, "declare it: EFFECT(mail)");
    assert_row(
        "STAY(PAID, PAY, ARM(late))", DET_RULE_UNKNOWN_TIMER,
        "declare it: TIMER(late, SECONDS(...), EVENT)");
    assert_row("STAY(NOWHERE, PAY)", DET_RULE_UNKNOWN_STATE, NULL);
    assert_row("STAY(PAID, NEVER)", DET_RULE_UNKNOWN_EVENT, NULL);
    /* A name that is something else is not declared again. */
    assert_row("STAY(PAID, PAY, CALL(PAY))", rule, NULL);
}

static void list_macros_are_suggested_for_misspelled_names(void **state)
{
    (void)state;
    assert_row(
        "#define ORDER_OPEN PAID\nSTAY(ANY(ORDER_OPN), PAY)", DET_RULE_UNKNOWN_STATE,
        "did you mean ORDER_OPEN?");
    assert_row(
        "#define ORDER_INPUT PAY\nSTAY(PAID, ORDER_INPT)", DET_RULE_UNKNOWN_EVENT,
        "did you mean ORDER_INPUT?");
    /* A nearly right name is reported also if a part of the text is lost. */
    assert_hint_of(
        ORDER "#define ORDER_OPEN PAID\n#include \"lost.fsm\"\nSTAY(ANY(ORDER_OPN), PAY)\n"
              "STAY(PAID, PAY, IF(is_somewhere))\n",
        DET_RULE_UNKNOWN_STATE, "did you mean ORDER_OPEN?");
}

static void assert_only_hint(const char *path, const char *text, const char *hint)
{
    struct det_spec *spec;

    assert_int_equal(det_spec_read(path, text, strlen(text), NULL, &spec), 0);
    assert_int_equal(det_spec_diagnostics(spec)->error_count, 1);
    assert_hint(&det_spec_diagnostics(spec)->items[0], hint);
    det_spec_close(spec);
}

static void missing_machine_define_is_hinted_with_its_line(void **state)
{
    (void)state;
    assert_only_hint(
        "a/b.fsm", "#define FSM_NAME order2\n" BASE MOVE,
        "add the line: #define FSM_PREFIX ORDER2");
    assert_only_hint(
        "a/b.fsm", "#define FSM_PREFIX ORDER\n" BASE MOVE, "add the line: #define FSM_NAME order");
    assert_only_hint(
        "a/big-door.v2.fsm", BASE MOVE,
        "to make it a machine add the lines #define FSM_NAME big_door and #define FSM_PREFIX "
        "BIG_DOOR");
    assert_only_hint(
        "<stdin>", BASE MOVE,
        "to make it a machine add the lines #define FSM_NAME machine and #define FSM_PREFIX "
        "MACHINE");
    assert_only_hint(
        "x", "#define FSM_NAME order\n#define FSM_PREFX ORDER\n" BASE MOVE,
        "did you mean FSM_PREFIX?");
}

static void hyphen_and_suffix_are_hinted_with_the_valid_form(void **state)
{
    (void)state;
    assert_only_hint(
        "x", "#define FSM_NAME my-big-order\n#define FSM_PREFIX ORDER\n" BASE MOVE,
        "did you mean my_big_order?");
    assert_only_hint(
        "x", "#define FSM_NAME order\n#define FSM_PREFIX MY-2\n" BASE MOVE, "did you mean MY_2?");
    assert_row("AFTER(PENDING, 14d, PAY)\n", DET_RULE_SYNTAX, "did you mean DAYS(14)?");
    assert_row("AFTER(PENDING, DAYS(14d), PAY)\n", DET_RULE_SYNTAX, "did you mean DAYS(14)?");
    assert_row("AFTER(PENDING, 1h30m, PAY)\n", DET_RULE_SYNTAX, "did you mean MINUTES(90)?");
    assert_row("AFTER(PENDING, 1.5s, PAY)\n", DET_RULE_SYNTAX, "did you mean MILLISECONDS(1500)?");
    assert_row("AFTER(PENDING, 5us, PAY)\n", DET_RULE_SYNTAX, NULL);
    assert_row("AFTER(PENDING, \"2h\", PAY)\n", DET_RULE_BAD_DURATION, "did you mean HOURS(2)?");
    assert_row("AFTER(PENDING, \"soon\", PAY)\n", DET_RULE_BAD_DURATION, NULL);
}

static void exact_define_wins_over_a_guess(void **state)
{
    struct det_spec *spec = test_spec("#define FSM_NAMES lamp\n" ORDER);

    (void)state;
    assert_int_equal(det_spec_diagnostics(spec)->error_count, 1);
    det_spec_close(spec);
    spec = test_spec(ORDER "#define FSM_PREFIXX x, y\n");
    assert_int_equal(det_spec_diagnostics(spec)->error_count, 1);
    det_spec_close(spec);
}

static void mistake_in_a_record_is_reported_once(void **state)
{
    static const char *const records[] = {
        "RECORD(money, 1, 2)\n FIELD(cents, u64)\nEND",
        "RECORD(money, x)\n FIELD(cents, u64)\nEND",
        "RECRD(money)\n FIELD(cents, u64)\nEND",
        "RECORD(money\n FIELD(cents, u64)\nEND",
        "RECORD()\n FIELD(cents, u64)\nEND",
        "RECORD(money)\n FIELD(cents, u46)\nEND",
        "RECORD(money)\n FEILD(cents, u64)\nEND",
        "RECORD(money)\n FIELD(cents u64)\nEND",
        "RECORD(money)\n FIELD(cents, u64)\n FIELD(cents, u8)\nEND",
        "RECORD(money)\n FIELD(cents, nested(nobody))\nEND",
        "RECORD(money)\n FIELD(cents, u64)\nEND(",
        "RECORD(money)\n FIELD(cents, u64)\nENDE()",
        "RECORD(while)\n FIELD(cents, u64)\nEND",
        "ENUM(c, d) VALUE(RED, red)\nEND\nRECORD(money)\n FIELD(cents, one_of(c))\nEND",
        "ENUM(c) VALUES(RED, red)\nEND\nRECORD(money)\n FIELD(cents, one_of(c))\nEND",
    };
    char text[1024];

    (void)state;
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        struct det_spec *spec;

        (void)snprintf(
            text, sizeof text,
            "%s#define FSM_DATA money\n%s\nSTATE(A, a, INITIAL)\nEVENT(PAY, pay, money)\n"
            "STAY(A, PAY, KEEP(cents))\n",
            HEAD, records[i]);
        spec = test_spec(text);
        if (det_spec_diagnostics(spec)->error_count != 1) {
            print_message("%s:\n", records[i]);
            test_print_findings(spec);
        }
        assert_int_equal(det_spec_diagnostics(spec)->error_count, 1);
        det_spec_close(spec);
    }
}

static void unreadable_part_is_reported_once(void **state)
{
    static const struct test_file files[] = {
        { "specs/latin.fsm", "STATE(LOST, lost) /* \xff */\n", 0 },
        { NULL, NULL, 0 },
    };
    const char *uses = "ON(LOST, GONE, NOWHERE, IF(a), CALL(b), SET(c), DO(d), ARM(e))\n"
                       "OVERRIDE(PAID, PAY, PAID)\nEVENT(DATA, data, thing)\n";
    const char *parts[] = { "#include \"missing.fsm\"\n", "#include \"latin.fsm\"\n",
                            "USES(\"missing.rec\")\n", "USE(\"missing.rec\")\n" };
    char text[1024];

    (void)state;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct det_spec *spec;
        /* A row that is misspelt and a file that is missing are two mistakes. */
        size_t count = strncmp(parts[i], "USE(", 4) == 0 ? 2 : 1;

        (void)snprintf(text, sizeof text, "%s%s%s", ORDER, parts[i], uses);
        spec = test_spec_of(text, files);
        if (det_spec_diagnostics(spec)->error_count != count)
            test_print_findings(spec);
        assert_int_equal(det_spec_diagnostics(spec)->error_count, count);
        det_spec_close(spec);
    }
    (void)snprintf(text, sizeof text, "%s%s/* no end", ORDER, uses);
    test_only(text, NULL, DET_RULE_SYNTAX, "specs/order.fsm:10:1", "comment");
}

static void independent_mistakes_are_all_reported(void **state)
{
    struct det_spec *spec =
        test_spec(HEAD "STATE(, pending, INITIAL)\nSTATE(PAID, paid, FINAL)\nEVENT(PAY, pay)\n"
                       "ON(PENDING, PAY, PIAD)\nSTATE(PAID, again)\n");

    (void)state;
    (void)test_finding(spec, DET_RULE_SYNTAX, "expected an argument");
    (void)test_finding(spec, DET_RULE_UNKNOWN_STATE, "PIAD is not a state");
    (void)test_finding(spec, DET_RULE_DUPLICATE_NAME, "PAID is already");
    assert_int_equal(det_spec_diagnostics(spec)->error_count, 3);
    assert_int_equal(det_spec_diagnostics(spec)->count, 3);
    det_spec_close(spec);
}

static void a_broken_definition_always_has_a_finding(void **state)
{
    static char text[64 * 1024];
    size_t used = (size_t)snprintf(text, sizeof text, "%s", ORDER);
    struct det_spec *spec;

    (void)state;
    /* The findings of these hide the one that has made suspects of them. */
    for (unsigned i = 0; i < 300; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "STAY(STRANGER%u, PAY)\n", i);
    (void)snprintf(text + used, sizeof text - used, "#include \"missing.fsm\"\n");
    spec = test_spec(text);
    assert_null(det_spec_machine(spec));
    assert_true(det_spec_diagnostics(spec)->is_cut);
    assert_int_equal(det_spec_diagnostics(spec)->count, DET_DIAGNOSTICS_MAX);
    assert_int_equal(det_spec_diagnostics(spec)->error_count, 301);
    det_spec_close(spec);
}

static void a_row_with_a_mistake_still_declares_its_function(void **state)
{
    struct det_spec *spec =
        test_spec("#define FSM_NAME order\n#define FSM_PREFIX ORDER\n#define FSM_DATA basket\n"
                  "RECORD(basket) FIELD(cents, u64) END\n"
                  "STATE(PENDING, pending, INITIAL)\nEVENT(PAY, pay)\n"
                  "UPDATE(count, twice)\nFILL(nothing, twice)\n"
                  "TIMER(late, DAYS(1), PAY, nothing)\n"
                  "STAY(PENDING, PAY, SET(count), ARM(late))\n");

    (void)state;
    assert_null(det_spec_machine(spec));
    for (size_t i = 0; i < det_spec_diagnostics(spec)->count; i++)
        assert_null(strstr(det_spec_diagnostics(spec)->items[i].text, "not declared"));
    assert_int_equal(det_spec_diagnostics(spec)->error_count, 2);
    det_spec_close(spec);
}

static int salvage_scenario(struct det_test_memory *memory, void *argument)
{
    static const char text[] = "#define FSM_NAME order\n#define FSM_PREFX ORDER\n"
                               "STATE(PENDING)\nEVNT(PAY, pay)\nTIMER(late, SECS(3), PAY)\n"
                               "HOOK ring\nON(PENDING, PAY, PENDING, CAL(ring))\n#includ \"x\"\n";
    struct det_spec_options options = { .allocator = &memory->allocator };
    struct det_spec *spec;
    int r;

    (void)argument;
    r = det_spec_read("x", text, sizeof text - 1, &options, &spec);
    if (r < 0)
        return r;
    assert_int_equal(det_spec_diagnostics(spec)->error_count, 7);
    det_spec_close(spec);
    return 0;
}

static void salvaging_survives_every_failed_allocation(void **state)
{
    (void)state;
    det_test_each_failure(salvage_scenario, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistake_in_a_declaration_is_reported_once),
        cmocka_unit_test(else_rows_after_an_unread_row_are_not_reported),
        cmocka_unit_test(misspelled_keywords_get_the_nearest),
        cmocka_unit_test(unknown_names_without_a_match_get_a_declare_hint),
        cmocka_unit_test(list_macros_are_suggested_for_misspelled_names),
        cmocka_unit_test(names_of_records_and_words_have_their_nearest),
        cmocka_unit_test(missing_machine_define_is_hinted_with_its_line),
        cmocka_unit_test(hyphen_and_suffix_are_hinted_with_the_valid_form),
        cmocka_unit_test(exact_define_wins_over_a_guess),
        cmocka_unit_test(mistake_in_a_record_is_reported_once),
        cmocka_unit_test(unreadable_part_is_reported_once),
        cmocka_unit_test(independent_mistakes_are_all_reported),
        cmocka_unit_test(a_broken_definition_always_has_a_finding),
        cmocka_unit_test(a_row_with_a_mistake_still_declares_its_function),
        cmocka_unit_test(salvaging_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
