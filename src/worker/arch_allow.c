/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* arch_allow.c - exceptions: comments that name a rule and a reason for breaking it. */
#include <string.h>

#include "worker/arch_parts.h"

static const char mark[] = "detent: allow";

/* The mark in a comment, or NULL. */
static const char *find_mark(const struct det_code_token *comment)
{
    size_t length = sizeof mark - 1;

    for (uint32_t i = 0; i + length <= comment->length; i++) {
        if (memcmp(comment->text + i, mark, length) == 0)
            return comment->text + i + length;
    }
    return NULL;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '*' || c == '/';
}

/* The next word of the comment; its length is 0 at the end. */
static size_t next_word(const char **at, const char *end)
{
    size_t length = 0;

    while (*at < end && is_blank(**at))
        (*at)++;
    while (*at + length < end && !is_blank((*at)[length]))
        length++;
    return length;
}

static enum det_arch_rule rule_named(const char *name, size_t length)
{
    for (int i = 0; i < DET_ARCH_RULE_COUNT; i++) {
        const char *id = det_arch_rule_text((enum det_arch_rule)i)->id;

        if (strlen(id) == length && memcmp(id, name, length) == 0)
            return (enum det_arch_rule)i;
    }
    return DET_ARCH_RULE_COUNT;
}

static void read_words(struct det_arch_allow *allow, const char *at)
{
    const char *end = allow->comment.text + allow->comment.length;
    size_t length = next_word(&at, end);

    allow->rule = rule_named(at, length);
    if (allow->rule == DET_ARCH_RULE_COUNT) {
        allow->problem = "the rule is unknown; 'detent help rules' lists the rules";
        return;
    }
    at += length;
    length = next_word(&at, end);
    if (length != strlen("because") || memcmp(at, "because", length) != 0) {
        allow->problem = "the exception has no reason; add 'because ...'";
    } else {
        at += length;
        if (next_word(&at, end) == 0)
            allow->problem = "the exception has no reason after 'because'";
    }
}

/* An exception applies to its own lines, and, if it is alone on them, to the next line. */
void det_arch_read_allow(
    struct det_arch *arch, struct det_arch_source *source, const struct det_code_token *comment)
{
    const char *at = find_mark(comment);
    struct det_arch_allow *allow;

    if (at == NULL)
        return;
    allow = det_arch_alloc(arch, sizeof *allow);
    if (allow == NULL)
        return;
    allow->comment = *comment;
    allow->from = comment->line;
    allow->to = comment->end_line + (comment->starts_line ? 1 : 0);
    read_words(allow, at);
    allow->next = source->allows;
    source->allows = allow;
}

static bool is_allowed(struct det_arch *arch, const struct det_arch_finding *finding)
{
    bool is_allowed = false;

    for (size_t i = 0; i <= arch->source_count; i++) {
        struct det_arch_allow *allow = arch->sources[i].allows;

        if (strcmp(arch->sources[i].text->path, finding->place.file) != 0)
            continue;
        for (; allow != NULL; allow = allow->next) {
            if (allow->problem == NULL && allow->rule == finding->rule &&
                finding->place.line >= allow->from && finding->place.line <= allow->to) {
                allow->is_used = true;
                is_allowed = true;
            }
        }
    }
    return is_allowed;
}

static void validate_source(struct det_arch *arch, struct det_arch_source *source)
{
    for (struct det_arch_allow *allow = source->allows; allow != NULL; allow = allow->next) {
        if (allow->problem != NULL)
            det_arch_report_at(
                arch, DET_ARCH_ALLOW_REASON, source, &allow->comment, "%s", allow->problem);
        else if (!allow->is_used)
            det_arch_report_at(
                arch, DET_ARCH_ALLOW_UNUSED, source, &allow->comment,
                "the rule %s is not broken here; remove the exception",
                det_arch_rule_text(allow->rule)->id);
    }
}

void det_arch_settle(struct det_arch *arch)
{
    size_t kept = 0;

    for (size_t i = 0; i < arch->finding_count; i++) {
        if (!is_allowed(arch, &arch->findings[i]))
            arch->findings[kept++] = arch->findings[i];
    }
    arch->finding_count = kept;
    /* If the functions were not found, their exceptions cannot be judged. */
    for (size_t i = 0; i <= arch->source_count; i++) {
        if (arch->report.state_functions > 0 || i == arch->source_count)
            validate_source(arch, &arch->sources[i]);
    }
}
