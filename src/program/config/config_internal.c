/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* config_internal.c - reads mappings by table, and the simple values of detent.yaml. */
#include "config/config_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"

int config_take_mapping(
    struct cli_reader *reader, const struct det_datum *mapping, const struct config_table *table,
    void *target, const struct det_datum **nodes)
{
    const struct det_datum *found[CONFIG_KEYS_MAX];
    const char *names[CONFIG_KEYS_MAX] = { NULL };
    int r;

    det_assert(table->count <= CONFIG_KEYS_MAX);
    for (size_t i = 0; i < table->count; i++)
        names[i] = table->keys[i].name;
    r = reader_keys(reader, mapping, names, table->count, found, table->what);
    for (size_t i = 0; i < table->count && reader_can_continue(reader, r); i++) {
        const struct config_key *key = &table->keys[i];

        det_assert(!found[i] || strcmp(found[i]->key, key->name) == 0);
        if (found[i])
            r = reader_both(r, key->take(reader, found[i], key, (char *)target + key->offset));
    }
    for (size_t i = 0; nodes && i < table->count; i++)
        nodes[i] = found[i];
    return r;
}

static int want_scalar(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key)
{
    char what[80];

    snprintf(what, sizeof what, "'%s'", key->name);
    return reader_want(reader, node, DET_DATUM_TEXT, what);
}

int config_take_text(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    const char **ret = target;
    int r = want_scalar(reader, node, key);

    if (r == 0 && !*node->text)
        r = reader_fail(reader, node, "'%s' is empty", key->name);
    if (r == 0)
        *ret = node->text;
    return r;
}

bool config_is_name(const char *text)
{
    return strlen(text) <= DET_TASK_NAME_MAX && det_name_is_valid(text) && *text != '.' &&
           *text != '-' && *text != '_';
}

int config_check_name(struct cli_reader *reader, const struct det_datum *node)
{
    if (config_is_name(node->key))
        return 0;
    return reader_fail_key(reader, node, "'%s' " CONFIG_NAME_RULE, node->key);
}

int config_take_number(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    uint32_t *ret = target;
    uint64_t number;

    det_assert(key->least <= key->most && key->most <= UINT32_MAX);
    if (key->word && det_datum_is_scalar(node) && strcmp(node->text, key->word) == 0) {
        *ret = (uint32_t)key->value;
        return 0;
    }
    if (!det_datum_is_scalar(node) || det_parse_u64(det_view_text(node->text), &number) < 0 ||
        number < key->least || number > key->most)
        return reader_fail(
            reader, node, "'%s' must be a whole number from %llu to %llu%s%s", key->name,
            (unsigned long long)key->least, (unsigned long long)key->most, key->word ? ", or " : "",
            key->word ? key->word : "");
    *ret = (uint32_t)number;
    return 0;
}

#define SIZE_TEXT 32
static const char *const size_units[] = { "B", "KiB", "MiB", "GiB" };

/* Digits and a unit. */
static bool parse_size(const char *text, uint64_t *ret)
{
    size_t digits = strspn(text, "0123456789");
    uint64_t number;

    if (det_parse_u64(det_view_of(text, digits), &number) < 0)
        return false;
    for (unsigned i = 0; i < sizeof size_units / sizeof *size_units; i++) {
        if (strcmp(text + digits, size_units[i]) == 0 && number <= UINT32_MAX) {
            *ret = number << (10 * i);
            return true;
        }
    }
    return false;
}

/* Formats a size in the largest unit that divides it. */
static const char *format_size(uint64_t size, char target[SIZE_TEXT])
{
    unsigned unit = 0;

    while (unit + 1 < sizeof size_units / sizeof *size_units && size && size % 1024 == 0) {
        size /= 1024;
        unit++;
    }
    snprintf(target, SIZE_TEXT, "%llu%s", (unsigned long long)size, size_units[unit]);
    return target;
}

int config_take_size(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    char least[SIZE_TEXT], most[SIZE_TEXT];
    uint64_t size;

    det_assert(key->least <= key->most);
    if (!det_datum_is_scalar(node) || !parse_size(node->text, &size) || size < key->least ||
        size > key->most)
        return reader_fail(
            reader, node, "'%s' is a size such as 64KiB or 16MiB, from %s to %s", key->name,
            format_size(key->least, least), format_size(key->most, most));
    memcpy(target, &size, sizeof size);
    return 0;
}

int config_take_bytes(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    uint32_t *ret = target;
    uint64_t size = 0;
    int r;

    det_assert(key->most <= UINT32_MAX);
    r = config_take_size(reader, node, key, &size);
    if (r == 0)
        *ret = (uint32_t)size;
    return r;
}

int config_take_span(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    char limit[DET_DURATION_TEXT];
    det_time *ret = target, span;
    int r;

    det_assert(!key->most || key->least <= key->most);
    r = reader_span_or(reader, node, key->word, key->value, &span);
    if (r < 0)
        return r;
    /* The word may stand for a number below the minimum. */
    if (span < (det_time)key->least && !(key->word && strcmp(node->text, key->word) == 0))
        return reader_fail(
            reader, node, "'%s' is at least %s%s%s", key->name,
            det_format_duration((det_time)key->least, limit, sizeof limit),
            key->word ? ", or " : "", key->word ? key->word : "");
    if (key->most && span > (det_time)key->most)
        return reader_fail(
            reader, node, "'%s' is at most %s", key->name,
            det_format_duration((det_time)key->most, limit, sizeof limit));
    *ret = span ? span : 1;
    return 0;
}

int config_take_bool(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    (void)key;
    return reader_bool(reader, node, target);
}

int config_take_choice(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    int *ret = target;
    size_t count = 0;
    char all[160];
    size_t used = 0;

    for (; key->words[count]; count++) {
        if (det_datum_is_scalar(node) && strcmp(node->text, key->words[count]) == 0) {
            *ret = (int)(key->value + (int64_t)count);
            return 0;
        }
        used += (size_t)snprintf(
            all + used, sizeof all - used, "%s%s", count ? ", " : "", key->words[count]);
        det_assert(used < sizeof all);
    }
    return reader_fail_near(
        reader, node, det_datum_is_scalar(node) ? node->text : "", key->words, count,
        "'%s' is one of %s", key->name, all);
}
