/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* observe_sections.c - the sections 'log' and 'traces' of detent.yaml. */
#include <string.h>

#include "base/text.h"
#include "config/config_internal.h"

#define DIGITS_MAX 6 /* after the decimal point: millionths */

int config_take_log(struct cli_reader *reader, const struct det_datum *node, struct config_log *log)
{
    static const char *const formats[] = { "text", "json", NULL };
    static const char *const levels[] = { "debug", "info", "warning", "error", NULL };
    static const struct config_key keys[] = {
        CONFIG_CHOICE("format", offsetof(struct config_log, format), CONFIG_LOG_TEXT, formats),
        CONFIG_CHOICE("level", offsetof(struct config_log, level), CONFIG_LEVEL_DEBUG, levels),
    };

    return config_take_mapping(reader, node, CONFIG_TABLE("'log'", keys), log, NULL);
}

static int take_endpoint(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    const char **ret = target;

    if (!det_datum_is_scalar(node) || !config_is_url(node->text))
        return reader_fail(
            reader, node, "'%s' is a URL such as http://host:4318/v1/traces", key->name);
    if (config_has_password(node->text))
        return reader_fail(reader, node, CONFIG_PASSWORD_RULE);
    *ret = node->text;
    return 0;
}

/* "0.25" or "25%" in millionths; at most one. */
static bool parse_share(const char *text, uint32_t *ret)
{
    size_t whole = strspn(text, "0123456789");
    size_t digits = text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;
    size_t end = whole + (digits ? digits + 1 : 0);
    bool is_percent = strcmp(text + end, "%") == 0;
    uint64_t number = 0, one = is_percent ? 100 : 1;

    if (!whole || whole > 3 || digits > DIGITS_MAX || (text[end] && !is_percent))
        return false;
    for (size_t i = 0; i < whole + DIGITS_MAX; i++) {
        const char *digit = i < whole + digits ? &text[i < whole ? i : i + 1] : "0";

        number = number * 10 + (uint64_t)(*digit - '0');
    }
    *ret = (uint32_t)(number / one);
    return number <= one * CONFIG_SAMPLE_ALL;
}

static int take_sample(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    if (det_datum_is_scalar(node) && parse_share(node->text, target))
        return 0;
    return reader_fail(reader, node, "'%s' is 0 to 1, such as 0.1, or 10%%", key->name);
}

int config_take_traces(
    struct cli_reader *reader, const struct det_datum *node, struct config_traces *traces)
{
    static const struct config_key keys[] = {
        CONFIG_KEY("endpoint", take_endpoint, offsetof(struct config_traces, endpoint)),
        CONFIG_KEY("headers", config_take_headers, offsetof(struct config_traces, headers)),
        CONFIG_KEY("secret", config_take_headers, offsetof(struct config_traces, headers)),
        CONFIG_KEY("sample", take_sample, offsetof(struct config_traces, sample)),
    };
    int r;

    traces->sample = CONFIG_SAMPLE_ALL;
    r = config_take_mapping(reader, node, CONFIG_TABLE("'traces'", keys), traces, NULL);
    if (r == 0 && !traces->endpoint)
        r = reader_fail(reader, node, "'traces' needs 'endpoint'");
    return r;
}
