/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect_section.c - the commands and HTTP calls of effects. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/text.h"
#include "config/config_internal.h"

#define ATTEMPTS_MAX 1000000
#define TIMEOUT_MAX  DET_HOUR
#define EXIT_MAX     255
#define STATUS_MAX   599

enum {
    KEY_COMMAND,
    KEY_EXITS,
    KEY_FOLDER,
    KEY_ENVIRONMENT,
    KEY_PASS,
    KEY_HTTP,
    KEY_STATUSES,
    KEY_HEADERS,
    KEY_SECRET,
    KEY_TIMEOUT,
    KEY_ATTEMPTS,
    KEY_BACKOFF,
    KEY_DEADLINE,
    KEY_SAME_VISIT,
    KEY_COUNT
};

static int take_pass(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    const char *const **ret = target;
    const char **names;
    size_t count = 0;
    int r;

    (void)key;
    r = reader_want(reader, node, DET_DATUM_LIST, "'pass'");
    if (r < 0)
        return r;
    names = det_arena_array(reader->arena, node->count + 1, sizeof *names);
    if (!names)
        return reader_no_memory(reader, node);
    for (const struct det_datum *item = node->first; item; item = item->next) {
        if (det_datum_is_scalar(item) && config_is_variable(item->text))
            names[count++] = item->text;
        else
            r = reader_fail(
                reader, item,
                "'pass' is a sequence of names of variables: letters, digits and "
                "'_'");
    }
    *ret = names;
    return r;
}

/* The next word of a text, of at most `size` bytes. */
static bool is_method(const char *text, size_t size, const char **ret)
{
    static const char *const methods[] = { "POST", "PUT", "PATCH" };

    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (strlen(methods[i]) == size && strncmp(methods[i], text, size) == 0) {
            *ret = methods[i];
            return true;
        }
    }
    return false;
}

bool config_is_url(const char *text)
{
    bool has_scheme = strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;

    if (!has_scheme || !strstr(text, "://")[3])
        return false;
    for (; *text; text++) {
        if ((unsigned char)*text <= ' ' || *text == 0x7f)
            return false;
    }
    return true;
}

/* Returns true if a user precedes an '@' in the part that names the host. */
bool config_has_password(const char *url)
{
    const char *host = strstr(url, "://") + 3;

    det_assert(config_is_url(url));
    return strcspn(host, "/?#") > strcspn(host, "@");
}

static int take_http(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    struct config_effect *effect = target;
    const char *text = det_datum_is_scalar(node) ? node->text : "";
    size_t size = strcspn(text, " ");
    bool has_method = text[size] == ' ';

    (void)key;
    effect->method = "POST";
    if (has_method && !is_method(text, size, &effect->method))
        return reader_fail(
            reader, node, "the method of an effect is POST, PUT or PATCH, not '%.*s'",
            (int)(size < 40 ? size : 40), text);
    effect->url = has_method ? text + size + strspn(text + size, " ") : text;
    if (!config_is_url(effect->url))
        return reader_fail(reader, node, "'http' is a method and a URL: POST https://host/path");
    if (config_has_password(effect->url))
        return reader_fail(reader, node, CONFIG_PASSWORD_RULE);
    return 0;
}

/* "402", and where classes are allowed "4xx". */
static bool parse_code(const char *text, bool has_classes, struct config_answer *answer)
{
    uint64_t number;

    if (has_classes && strlen(text) == 3 && text[0] >= '1' && text[0] <= '5' &&
        strcmp(text + 1, "xx") == 0) {
        answer->least = (uint32_t)(text[0] - '0') * 100;
        answer->most = answer->least + 99;
        return true;
    }
    if (det_parse_u64(det_view_text(text), &number) < 0)
        return false;
    answer->least = answer->most = (uint32_t)number;
    return has_classes ? number >= 100 && number <= STATUS_MAX : number <= EXIT_MAX;
}

static int take_answers(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    struct config_effect *effect = target;
    bool has_classes = strcmp(key->name, "statuses") == 0;
    size_t capacity = effect->answer_count + node->count;
    struct config_answer *all;
    int r;

    r = reader_want(reader, node, DET_DATUM_MAP, has_classes ? "'statuses'" : "'exits'");
    if (r < 0)
        return r;
    /* An effect with both is refused, but only after both were read. */
    all = reader_grow(reader, node, effect->answers, effect->answer_count, sizeof *all);
    if (!all)
        return DET_ERR_NO_MEMORY;
    effect->answers = all;
    for (const struct det_datum *item = node->first; item; item = item->next) {
        struct config_answer *answer = &all[effect->answer_count++];

        det_assert(effect->answer_count <= capacity);
        if (!parse_code(item->key, has_classes, answer))
            r = reader_fail_key(
                reader, item,
                has_classes ? "'%s' is not a status: 100 to 599, or a class such as 4xx"
                            : "'%s' is not an exit code: 0 to 255",
                item->key);
        r = reader_both(r, reader_want(reader, item, DET_DATUM_TEXT, "an event"));
        answer->event = item->text;
        answer->node = item;
        det_assert(r < 0 || answer->least <= answer->most);
        det_assert(r < 0 || answer->most <= (has_classes ? STATUS_MAX : EXIT_MAX));
    }
    det_assert(effect->answer_count == capacity);
    return r;
}

static bool is_header_name(const char *name)
{
    size_t used = 0;

    while (isalnum((unsigned char)name[used]) || (name[used] && strchr("-_.", name[used])))
        used++;
    return used && !name[used];
}

/* Headers that detent sets itself. */
static bool is_own_header(const char *name)
{
    static const char *const own[] = { "Idempotency-Key", "Content-Type", "Content-Length", "Host",
                                       "Transfer-Encoding" };

    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (strcasecmp(own[i], name) == 0)
            return true;
    }
    return false;
}

static int take_source(
    struct cli_reader *reader, const struct det_datum *item, struct config_header *header)
{
    static const struct {
        const char *scheme;
        enum config_source from;
    } sources[] = { { "file:", CONFIG_HEADER_FILE }, { "env:", CONFIG_HEADER_VARIABLE } };

    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        size_t size = strlen(sources[i].scheme);

        if (strncmp(item->text, sources[i].scheme, size) != 0 || !item->text[size])
            continue;
        header->from = sources[i].from;
        header->value = item->text + size;
        return 0;
    }
    /* The value may be the secret itself, so it is not printed. */
    return reader_fail(reader, item, "a secret is a reference, file:PATH or env:NAME, not a value");
}

static int take_header(
    struct cli_reader *reader, const struct det_datum *item, bool is_secret,
    struct config_header *header)
{
    int r = reader_want(reader, item, DET_DATUM_TEXT, "the value of a header");

    *header = (struct config_header){ .name = item->key, .value = item->text };
    if (r < 0)
        return r;
    if (!is_header_name(item->key))
        return reader_fail_key(reader, item, "'%s' is not the name of a header", item->key);
    if (is_own_header(item->key))
        return reader_fail_key(reader, item, "'%s' is set by detent itself", item->key);
    if (is_secret)
        return take_source(reader, item, header);
    if (item->text[strcspn(item->text, "\r\n")])
        return reader_fail(reader, item, "a header has one line");
    return 0;
}

int config_take_headers(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    struct config_headers *headers = target;
    bool is_secret = strcmp(key->name, "secret") == 0;
    size_t capacity = headers->count + node->count;
    struct config_header *all;
    int r;

    r = reader_want(reader, node, DET_DATUM_MAP, is_secret ? "'secret'" : "'headers'");
    if (r < 0)
        return r;
    all = reader_grow(reader, node, headers->items, headers->count, sizeof *all);
    if (!all)
        return DET_ERR_NO_MEMORY;
    headers->items = all;
    for (const struct det_datum *item = node->first; item; item = item->next) {
        int bad = take_header(reader, item, is_secret, &all[headers->count]);

        r = reader_both(r, bad);
        headers->count += bad == 0;
    }
    det_assert(headers->count <= capacity);
    return r;
}

/* "100ms..30s" */
static int take_backoff(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    struct det_effect_policy *policy = target;
    const char *text = det_datum_is_scalar(node) ? node->text : "";
    const char *dots = strstr(text, "..");
    size_t size = dots ? (size_t)(dots - text) : 0;

    if (!dots || det_parse_duration(det_view_of(text, size), &policy->backoff_first) < 0 ||
        det_parse_duration(det_view_text(dots + 2), &policy->backoff_max) < 0 ||
        policy->backoff_first <= 0 || policy->backoff_first > policy->backoff_max)
        return reader_fail(
            reader, node, "'%s' is the first wait and the longest one, such as 100ms..30s",
            key->name);
    return 0;
}

/* Keys that belong to only one of the two. */
static int check_keys(
    struct cli_reader *reader, const struct det_datum *node, const struct det_datum *const *nodes)
{
    static const int of_command[] = { KEY_EXITS, KEY_FOLDER, KEY_ENVIRONMENT, KEY_PASS };
    static const int of_http[] = { KEY_STATUSES, KEY_HEADERS, KEY_SECRET };
    int r = 0;

    if (nodes[KEY_COMMAND] && nodes[KEY_HTTP])
        return reader_fail_key(
            reader, nodes[KEY_HTTP], "an effect is either a 'command' or an 'http' call");
    if (!nodes[KEY_COMMAND] && !nodes[KEY_HTTP])
        return reader_fail(reader, node, "the effect '%s' needs 'command' or 'http'", node->key);
    for (size_t i = 0; nodes[KEY_HTTP] && i < sizeof of_command / sizeof *of_command; i++) {
        if (nodes[of_command[i]])
            r = reader_fail_key(
                reader, nodes[of_command[i]], "'%s' goes with 'command'",
                nodes[of_command[i]]->key);
    }
    for (size_t i = 0; nodes[KEY_COMMAND] && i < sizeof of_http / sizeof *of_http; i++) {
        if (nodes[of_http[i]])
            r = reader_fail_key(
                reader, nodes[of_http[i]], "'%s' goes with 'http'", nodes[of_http[i]]->key);
    }
    return r;
}

#define IN_EFFECT(path) offsetof(struct config_effect, path)
static const struct config_key effect_keys[KEY_COUNT] = {
    [KEY_COMMAND] = CONFIG_KEY("command", config_take_argv, IN_EFFECT(argv)),
    [KEY_EXITS] = CONFIG_KEY("exits", take_answers, 0),
    [KEY_FOLDER] = CONFIG_KEY("folder", config_take_text, IN_EFFECT(folder)),
    [KEY_ENVIRONMENT] = CONFIG_KEY("environment", config_take_environment, IN_EFFECT(environment)),
    [KEY_PASS] = CONFIG_KEY("pass", take_pass, IN_EFFECT(pass)),
    [KEY_HTTP] = CONFIG_KEY("http", take_http, 0),
    [KEY_STATUSES] = CONFIG_KEY("statuses", take_answers, 0),
    [KEY_HEADERS] = CONFIG_KEY("headers", config_take_headers, IN_EFFECT(headers)),
    [KEY_SECRET] = CONFIG_KEY("secret", config_take_headers, IN_EFFECT(headers)),
    [KEY_TIMEOUT] =
        CONFIG_RANGE("timeout", config_take_span, IN_EFFECT(timeout), DET_MILLISECOND, TIMEOUT_MAX),
    [KEY_ATTEMPTS] = CONFIG_RANGE(
        "attempts", config_take_number, IN_EFFECT(policy.attempts_max), 1, ATTEMPTS_MAX),
    [KEY_BACKOFF] = CONFIG_KEY("backoff", take_backoff, IN_EFFECT(policy)),
    [KEY_DEADLINE] =
        CONFIG_RANGE("deadline", config_take_span, IN_EFFECT(policy.deadline), DET_MILLISECOND, 0),
    [KEY_SAME_VISIT] =
        CONFIG_KEY("same_visit", config_take_bool, IN_EFFECT(policy.same_visit_only)),
};
#undef IN_EFFECT

int config_take_effect(
    struct cli_reader *reader, const struct det_datum *node, struct config_effect *effect)
{
    const struct det_datum *nodes[KEY_COUNT];
    int r;

    effect->name = node->key;
    effect->node = node;
    effect->timeout = CONFIG_EFFECT_TIMEOUT;
    r = config_take_mapping(reader, node, CONFIG_TABLE("an effect", effect_keys), effect, nodes);
    if (r == 0)
        r = check_keys(reader, node, nodes);
    det_assert(r < 0 || !effect->argv != !effect->url);
    effect->command_node = nodes[KEY_COMMAND];
    effect->folder_node = nodes[KEY_FOLDER];
    return r;
}
