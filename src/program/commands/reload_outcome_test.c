/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reload_outcome_test.c - `detent reload`: message and exit code of each outcome. */
/* test: threads */
#include "commands/remote_test.h"

/* The outcome, the text of the daemon, and the messages and exit code of the command. */
static const struct {
    const char *outcome, *text, *err;
    int code;
} cases[] = {
    { "invalid", "detent.yaml:3:1: bad\\n",
      "detent.yaml:3:1: bad\n"
      "detent reload: nothing was changed: the file is invalid or unsafe\n",
      CLI_USAGE },
    { "stranding", "order.fsm would strand stored instances\\n",
      "order.fsm would strand stored instances\n"
      "detent reload: nothing was changed: a new definition would strand instances\n",
      CLI_REFUSED },
    { "away", "", "detent reload: nothing was changed: the store cannot be reached\n",
      CLI_REFUSED },
    { "failed", "", "detent reload: nothing was changed: the check could not be finished\n",
      CLI_FAILURE },
    { "restored", "",
      "detent reload: nothing was changed: the new file could not be put into effect\n",
      CLI_FAILURE },
    { "partial", "", "detent reload: not all changes were applied\n", CLI_FAILURE },
    { "lost", "",
      "detent reload: neither the new parts nor the old ones could be opened; detent stops\n",
      CLI_FAILURE },
    { "done", "", "No changes.\n", CLI_OK },
};

static void each_outcome_has_a_message_and_an_exit_code(void **state)
{
    struct fake *fake = *state;
    char answer[512];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(
            answer, sizeof answer,
            "={\"kind\":\"reload\",\"is_right\":%s,\"is_applied\":%s,\"outcome\":\"%s\",\"text\":"
            "\"%s\",\"items\":[]}",
            cases[i].code == CLI_OK ? "true" : "false", i > 4 ? "true" : "false", cases[i].outcome,
            cases[i].text);
        fake->saying_count = 0;
        answer_to(fake, "POST /v1/reload", answer);
        assert_int_equal(run(fake, WORDS("reload")), cases[i].code);
        assert_string_equal(fake->err, cases[i].err);
        assert_string_equal(fake->out, "");
        assert_int_equal(run(fake, WORDS("reload", "--json")), cases[i].code);
        assert_string_equal(fake->err, "");
        assert_string_equal(det_buffer_text(&fake->received), "POST /v1/reload {\"plan\":false}\n");
    }
}

static void answers_of_older_daemons_have_no_outcome(void **state)
{
    struct fake *fake = *state;

    answer_to(
        fake, "POST /v1/reload",
        "={\"kind\":\"reload\",\"is_right\":true,\"is_applied\":true,\"text\":\"\",\"items\":[]}");
    assert_int_equal(run(fake, WORDS("reload")), CLI_OK);
    assert_string_equal(fake->err, "No changes.\n");
    fake->saying_count = 0;
    answer_to(
        fake, "POST /v1/reload",
        "={\"kind\":\"reload\",\"is_right\":false,\"is_applied\":false,\"text\":\"\",\"items\":[]"
        "}");
    assert_int_equal(run(fake, WORDS("reload")), CLI_USAGE);
    assert_string_equal(
        fake->err, "detent reload: nothing was changed: the file is invalid or unsafe\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_outcome_has_a_message_and_an_exit_code),
        TEST(answers_of_older_daemons_have_no_outcome),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
