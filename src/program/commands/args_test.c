/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* args_test.c - the words behind a command. */
#include "terminal/args.h"

#include "lib/test.h"

enum { OPTION_STRICT, OPTION_FORMAT, OPTION_WRITE };

static const struct cli_option option_table[] = {
    { "strict", 's', NULL, NULL, "" },
    { "format", 'f', "FORMAT", "mermaid dot", "" },
    { "write", 'w', NULL, NULL, "" },
    { NULL, 0, NULL, NULL, NULL },
};

static const struct cli_command command_drawn = {
    .name = "draw",
    .operand = { .form = "FILE...", .least = 1, .most = 2 },
    .options = option_table,
};

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Reads words that are right; free the result. */
static struct cli_args read_right(const char *const *words)
{
    struct det_error error = { 0 };
    struct cli_args args;
    int r = cli_args_read(&command_drawn, words, NULL, &args, &error);

    if (r < 0)
        fail_msg("%s", error.text);
    return args;
}

static void read_wrong(const char *const *words, const char *text)
{
    struct det_error error = { 0 };
    struct cli_args args;

    assert_int_equal(cli_args_read(&command_drawn, words, NULL, &args, &error), DET_ERR_INVALID);
    assert_string_equal(error.text, text);
}

static void options_and_operands_may_stand_in_any_order(void **state)
{
    struct cli_args args = read_right(WORDS("a.fsm", "--strict", "b.fsm", "-f", "dot"));

    (void)state;
    assert_int_equal(args.operand_count, 2);
    assert_string_equal(args.operands[0], "a.fsm");
    assert_string_equal(args.operands[1], "b.fsm");
    assert_null(args.operands[2]);
    assert_string_equal(args.values[OPTION_STRICT], "");
    assert_string_equal(args.values[OPTION_FORMAT], "dot");
    assert_null(args.values[OPTION_WRITE]);
    cli_args_deinit(&args, NULL);
}

static void option_value_has_four_forms(void **state)
{
    const char *const *const forms[] = {
        WORDS("x", "--format=dot"),
        WORDS("x", "--format", "dot"),
        WORDS("x", "-fdot"),
        WORDS("x", "-swf", "dot"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct cli_args args = read_right(forms[i]);

        assert_string_equal(args.values[OPTION_FORMAT], "dot");
        cli_args_deinit(&args, NULL);
    }
}

static void short_options_may_be_joined(void **state)
{
    struct cli_args args = read_right(WORDS("-sw", "x"));

    (void)state;
    assert_non_null(args.values[OPTION_STRICT]);
    assert_non_null(args.values[OPTION_WRITE]);
    cli_args_deinit(&args, NULL);
}

static void dash_and_words_after_two_dashes_are_operands(void **state)
{
    struct cli_args args = read_right(WORDS("-", "--", "--strict"));

    (void)state;
    assert_string_equal(args.operands[0], "-");
    assert_string_equal(args.operands[1], "--strict");
    assert_null(args.values[OPTION_STRICT]);
    cli_args_deinit(&args, NULL);
}

static void position_of_two_dashes_is_recorded(void **state)
{
    struct cli_args args = read_right(WORDS("a", "-s", "--", "--"));

    (void)state;
    assert_true(args.has_dashes);
    assert_int_equal(args.dashes_at, 1);
    assert_int_equal(args.operand_count, 2);
    assert_string_equal(args.operands[1], "--");
    cli_args_deinit(&args, NULL);
    args = read_right(WORDS("a", "b", "-s"));
    assert_false(args.has_dashes);
    assert_int_equal(args.dashes_at, 2);
    cli_args_deinit(&args, NULL);
}

static void project_option_is_global_unless_a_command_overrides_it(void **state)
{
    static const struct cli_option own[] = { { "project", 'C', "FOLDER", NULL, "" },
                                             { NULL, 0, NULL, NULL, NULL } };
    const struct cli_command remote = { .name = "ask", .options = own };
    struct cli_args args = read_right(WORDS("x", "-C", "shop"));

    (void)state;
    assert_string_equal(args.folder, "shop");
    cli_args_deinit(&args, NULL);
    assert_int_equal(cli_args_read(&remote, WORDS("-C", "shop"), NULL, &args, NULL), 0);
    assert_null(args.folder);
    assert_string_equal(args.values[0], "shop");
    cli_args_deinit(&args, NULL);
    assert_string_equal(cli_common_options(&command_drawn)->name, "project");
    assert_string_equal(cli_common_options(&remote)->name, "json");
}

static void common_options_are_parsed_separately(void **state)
{
    struct cli_args args = read_right(WORDS("x", "--json", "--color", "never"));

    (void)state;
    assert_true(args.wants_json);
    assert_string_equal(args.color, "never");
    cli_args_deinit(&args, NULL);
}

static void help_option_ends_argument_parsing(void **state)
{
    struct cli_args args = read_right(WORDS("--help", "--nonsense"));

    (void)state;
    assert_true(args.wants_help);
    cli_args_deinit(&args, NULL);
    args = read_right(WORDS("-h"));
    assert_true(args.wants_help);
    cli_args_deinit(&args, NULL);
}

static void invalid_option_is_reported_with_a_sentence(void **state)
{
    (void)state;
    read_wrong(WORDS("x", "--stict"), "there is no option --stict; did you mean --strict?");
    read_wrong(WORDS("x", "--entirely"), "there is no option --entirely");
    read_wrong(WORDS("x", "-q"), "there is no option -q");
    read_wrong(WORDS("x", "--strict=1"), "--strict takes no value");
    read_wrong(WORDS("x", "--format"), "--format needs a value: --format FORMAT");
    read_wrong(WORDS("x", "--format", "png"), "--format must be one of: mermaid dot; got 'png'");
    read_wrong(WORDS("x", "--color=red"), "--color must be one of: auto always never; got 'red'");
    read_wrong(WORDS("x", "-fdot", "--format=dot"), "duplicate option --format");
    read_wrong(WORDS("--strict"), "an argument is missing: detent draw FILE...");
    read_wrong(WORDS("a", "b", "c"), "unexpected argument 'c'");
}

static void a_very_long_unknown_option_is_cut_in_the_message(void **state)
{
    char word[4096] = "--";
    struct det_error error = { 0 };
    struct cli_args args;

    (void)state;
    memset(word + 2, 'x', sizeof word - 3);
    assert_int_equal(
        cli_args_read(&command_drawn, WORDS("f", word), NULL, &args, &error), DET_ERR_INVALID);
    assert_true(strlen(error.text) < DET_ERROR_TEXT_MAX);
}

static void option_choices_match_whole_words(void **state)
{
    (void)state;
    assert_true(cli_choice_has("auto always never", "auto"));
    assert_true(cli_choice_has("auto always never", "never"));
    assert_false(cli_choice_has("auto always never", "alway"));
    assert_false(cli_choice_has("auto always never", ""));
}

/* A run whose error messages are discarded. */
static struct cli quiet_cli(void)
{
    struct cli cli = { .world = det_world_real(), .out = fopen("/dev/null", "w") };

    assert_non_null(cli.out);
    cli.err = cli.out;
    return cli;
}

static void numbers_have_limits(void **state)
{
    struct cli cli = quiet_cli();
    uint64_t number = 7;

    (void)state;
    assert_true(cli_args_number(&cli, "steps", "10", 1, 10, &number));
    assert_int_equal(number, 10);
    assert_false(cli_args_number(&cli, "steps", "11", 1, 10, &number));
    assert_false(cli_args_number(&cli, "steps", "0", 1, 10, &number));
    assert_false(cli_args_number(&cli, "steps", "1x", 1, 10, &number));
    assert_false(cli_args_number(&cli, "steps", "-1", 0, 10, &number));
    assert_false(cli_args_number(&cli, "steps", "18446744073709551616", 0, UINT64_MAX, &number));
    assert_int_equal(number, 10);
    fclose(cli.out);
}

static int read_scenario(struct det_test_memory *memory, void *argument)
{
    struct det_error error = { 0 };
    struct cli_args args;
    int r;

    (void)argument;
    r = cli_args_read(
        &command_drawn, WORDS("a", "--strict", "b"), &memory->allocator, &args, &error);
    if (r == 0)
        cli_args_deinit(&args, &memory->allocator);
    return r;
}

static void reading_survives_every_failed_allocation(void **state)
{
    (void)state;
    det_test_each_failure(read_scenario, NULL);
}

enum {
    COMMANDS_LISTED = 0
#define CLI_COMMAND(name) +1
#include "commands/commands.def"
#undef CLI_COMMAND
};

static void every_command_has_what_the_help_needs(void **state)
{
    const struct cli_command *command;
    size_t count = 0;

    (void)state;
    for (; (command = cli_command_at(count)); count++) {
        size_t options = 0;

        assert_non_null(command->run);
        assert_true(*command->summary && command->summary[strlen(command->summary) - 1] != '.');
        assert_non_null(command->about);
        assert_non_null(command->operand.form);
        assert_ptr_equal(cli_command_find(command->name), command);
        for (const struct cli_option *o = command->options; o && o->name; o++)
            options++;
        assert_true(options <= CLI_OPTIONS_MAX);
    }
    assert_int_equal(count, COMMANDS_LISTED);
}

static void the_nearest_command_is_found_but_never_a_hidden_one(void **state)
{
    (void)state;
    assert_string_equal(cli_command_nearest("chekc")->name, "check");
    assert_null(cli_command_nearest("frobnicate"));
    assert_null(cli_command_nearest("man"));
}

static void the_command_of_a_verb_is_found(void **state)
{
    (void)state;
    assert_string_equal(cli_command_of_verb("backup")->name, "store");
    assert_string_equal(cli_command_of_verb("revoke")->name, "token");
    assert_null(cli_command_of_verb("back"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_and_operands_may_stand_in_any_order),
        cmocka_unit_test(option_value_has_four_forms),
        cmocka_unit_test(short_options_may_be_joined),
        cmocka_unit_test(dash_and_words_after_two_dashes_are_operands),
        cmocka_unit_test(position_of_two_dashes_is_recorded),
        cmocka_unit_test(project_option_is_global_unless_a_command_overrides_it),
        cmocka_unit_test(common_options_are_parsed_separately),
        cmocka_unit_test(help_option_ends_argument_parsing),
        cmocka_unit_test(invalid_option_is_reported_with_a_sentence),
        cmocka_unit_test(a_very_long_unknown_option_is_cut_in_the_message),
        cmocka_unit_test(option_choices_match_whole_words),
        cmocka_unit_test(numbers_have_limits),
        cmocka_unit_test(reading_survives_every_failed_allocation),
        cmocka_unit_test(every_command_has_what_the_help_needs),
        cmocka_unit_test(the_nearest_command_is_found_but_never_a_hidden_one),
        cmocka_unit_test(the_command_of_a_verb_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
