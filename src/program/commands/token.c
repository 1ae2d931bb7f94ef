/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* token.c - `detent token`: creates, lists and revokes the tokens of a project. It edits their
 * file; a running daemon sees the change within a second. */
#include <string.h>

#include "auth/tokens.h"
#include "base/text.h"
#include "client/remote.h"
#include "daemon/host.h"
#include "inspect/stored_instance.h"
#include "terminal/args.h"
#include "terminal/command.h"
#include "terminal/input.h"
#include "terminal/table.h"
#include "json/writer.h"

#define WORDS        "new list revoke"
#define NAME_DEFAULT "token"
#define SPAN_DEFAULT (90 * DET_DAY)
/* Another command holds the lock only while it writes the file. */
#define PATIENCE    (5 * DET_SECOND)
#define SCOPES_TEXT 40

enum { OPTION_NAME, OPTION_SCOPE, OPTION_EXPIRES };

static const struct cli_option option_table[] = {
    [OPTION_NAME] = { "name", 'n', "NAME", NULL, "with new: name of the token" },
    [OPTION_SCOPE] = { "scope", 's', "SCOPES", NULL,
                       "with new: read, send, admin, metrics, separated by commas (default "
                       "read,send)" },
    [OPTION_EXPIRES] = { "expires", 'e', "TIME", NULL,
                         "with new: lifetime, or never (default 90d)" },
    { NULL, 0, NULL, NULL, NULL },
};

static const struct table_column columns[] = {
    { "id", 0, false },      { "name", 1, false },    { "scopes", 0, false },
    { "created", 2, false }, { "expires", 0, false },
};

struct work {
    struct cli *cli;
    const struct cli_args *args;
    struct tokens *tokens;
    det_time now; /* wall */
};

static const char *scopes_text(unsigned scopes, char target[SCOPES_TEXT])
{
    size_t used = 0;

    *target = '\0';
    for (size_t i = 0; tokens_scope_word(i); i++) {
        if (scopes & 1u << i)
            used += (size_t)snprintf(
                target + used, SCOPES_TEXT - used, "%s%s", used ? "," : "", tokens_scope_word(i));
    }
    return target;
}

static void print_object(
    struct cli *cli, const char *type, const struct token *token, const char *secret)
{
    struct det_json_writer json;

    cli_json_begin(cli, &json, type);
    det_json_text(&json, "id", token->id);
    det_json_text(&json, "name", token->name);
    det_json_open(&json, "scopes", '[');
    for (size_t i = 0; tokens_scope_word(i); i++) {
        if (token->scopes & 1u << i)
            det_json_text(&json, NULL, tokens_scope_word(i));
    }
    det_json_close(&json, ']');
    det_json_time(&json, "created", token->created);
    if (token->expires)
        det_json_time(&json, "expires", token->expires);
    else
        det_json_text(&json, "expires", NULL);
    if (secret)
        det_json_text(&json, "token", secret);
    cli_json_end(cli, &json);
}

static int report(const struct work *work, int r, const struct det_error *error)
{
    cli_report_error(work->cli, "%s", error->text);
    return cli_exit_of(r);
}

/* new */

static bool read_options(struct work *work, struct tokens_grant *grant)
{
    const char *const *values = work->args->values;

    *grant = (struct tokens_grant){ .name = NAME_DEFAULT,
                                    .scopes = TOKENS_READ | TOKENS_SEND,
                                    .span = SPAN_DEFAULT };
    if (values[OPTION_NAME])
        grant->name = values[OPTION_NAME];
    if (values[OPTION_SCOPE] && !tokens_parse_scopes(values[OPTION_SCOPE], &grant->scopes)) {
        cli_report_error(
            work->cli,
            "invalid scopes '%s': use read, send, admin and metrics, separated by commas",
            values[OPTION_SCOPE]);
        return false;
    }
    if (!values[OPTION_EXPIRES])
        return true;
    if (strcmp(values[OPTION_EXPIRES], "never") == 0) {
        grant->span = 0;
        return true;
    }
    return cli_args_span(work->cli, "expires", values[OPTION_EXPIRES], DET_SECOND, &grant->span);
}

static int create_token(struct work *work)
{
    char text[TOKENS_TEXT_SIZE + 1], scopes[SCOPES_TEXT], time[INSTANCE_TIME_TEXT];
    struct det_error error = { 0 };
    struct tokens_grant grant;
    struct token token;
    int r;

    if (!read_options(work, &grant))
        return CLI_USAGE;
    r = tokens_add(work->tokens, &grant, text, &token, &error);
    if (r < 0)
        return report(work, r, &error);
    if (work->cli->is_json)
        print_object(work->cli, "token", &token, text);
    else
        cli_print(work->cli, "%s\n", text);
    explicit_bzero(text, sizeof text);
    if (!work->cli->is_json)
        cli_print_error(
            work->cli, "%s: %s; expires %s. It is not shown again: store it now.\n", token.id,
            scopes_text(token.scopes, scopes),
            token.expires ? instance_time(token.expires, time) : "never");
    return CLI_OK;
}

/* list */

static void add_row(struct table *table, const struct token *token, bool has_expired)
{
    char scopes[SCOPES_TEXT], time[INSTANCE_TIME_TEXT];

    table_add(table, CLI_BOLD, "%s", token->id);
    table_add(table, CLI_PLAIN, "%s", token->name);
    table_add(table, CLI_PLAIN, "%s", scopes_text(token->scopes, scopes));
    table_add(table, CLI_PLAIN, "%s", instance_time(token->created, time));
    if (has_expired)
        table_add(table, CLI_RED, "expired");
    else
        table_add(
            table, CLI_PLAIN, "%s", token->expires ? instance_time(token->expires, time) : "never");
}

static int list(struct work *work)
{
    struct cli *cli = work->cli;
    struct table table;
    struct token token;

    table_init(&table, cli, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; tokens_at(work->tokens, i, &token); i++) {
        if (cli->is_json)
            print_object(cli, "token", &token, NULL);
        else
            add_row(&table, &token, token.expires && token.expires <= work->now);
    }
    table_show(&table, "There are no tokens; 'detent token new' creates one.");
    table_deinit(&table);
    return CLI_OK;
}

/* revoke */

static int revoke(struct work *work)
{
    struct det_error error = { 0 };
    struct token token;
    int r;

    r = tokens_revoke(work->tokens, work->args->operands[1], &token, &error);
    if (r == DET_ERR_NOT_FOUND) {
        cli_report_error(
            work->cli, "there is no token '%s'; 'detent token list' lists all tokens",
            work->args->operands[1]);
        return CLI_NOT_FOUND;
    }
    if (r < 0)
        return report(work, r, &error);
    if (work->cli->is_json)
        print_object(work->cli, "revoked", &token, NULL);
    else
        cli_print(work->cli, "%s: revoked\n", token.id);
    return CLI_OK;
}

static int run_verb(struct cli *cli, const struct cli_args *args, int (*run)(struct work *work))
{
    struct work work = { .cli = cli,
                         .args = args,
                         .now = det_world_now(cli->world, DET_CLOCK_WALL) };
    struct tokens_options options = { .allocator = cli->allocator,
                                      .world = cli->world,
                                      .patience = PATIENCE };
    char folder[DET_PATH_MAX];
    struct det_error error = { 0 };
    int code, r;

    r = serve_state_folder(folder, &error);
    options.folder = folder;
    if (r == 0)
        r = tokens_open(&options, &work.tokens, &error);
    if (r < 0)
        return report(&work, r, &error);
    code = run(&work);
    tokens_close(work.tokens);
    return code;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const char *verb = args->operands[0];
    bool is_revoke = strcmp(verb, "revoke") == 0, is_new = strcmp(verb, "new") == 0;
    char hint[CLI_CHOICE_TEXT];

    if (!cli_choice_has(WORDS, verb)) {
        cli_report_error(
            cli, "unknown verb '%s': use new, list or revoke%s", verb,
            cli_choice_hint(WORDS, verb, hint));
        return CLI_USAGE;
    }
    if (is_revoke && args->operand_count < 2) {
        cli_report_error(cli, "token revoke needs the id of a token");
        return CLI_USAGE;
    }
    if (args->operand_count > (is_revoke ? 2 : 1)) {
        cli_report_error(
            cli,
            is_new ? "unexpected argument '%s'; write the name as --name NAME"
                   : "unexpected argument '%s'",
            args->operands[args->operand_count - 1]);
        return CLI_USAGE;
    }
    return run_verb(cli, args, is_revoke ? revoke : is_new ? create_token : list);
}

extern const struct cli_command cli_command_token;
const struct cli_command cli_command_token = {
    .name = "token",
    .summary = "create, list and revoke the tokens of the HTTP API",
    .about = "A token identifies a client of the HTTP API and its permissions: read, send, admin\n"
             "(everything), metrics. It is printed once, alone, so that the output can be\n"
             "redirected:\n"
             "\n"
             "    detent token new --name ci --scope read,send --expires 30d > ci.token\n"
             "    detent token list\n"
             "    detent token revoke k3v9x2ap\n"
             "\n"
             "Only a hash of the token is stored, in .detent/tokens. A running daemon sees a\n"
             "change within a second.",
    .operand = { .form = "new|list|revoke [ID]", .least = 1, .most = 2, .words = WORDS },
    .options = option_table,
    .run = run_command,
};
