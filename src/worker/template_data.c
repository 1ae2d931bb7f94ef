/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* template_data.c - data with templates in their texts, as one template of YAML.
 *
 *     {port: "{{ .PORT }}", url: "tcp://{{ .IP }}"}   becomes
 *
 *     "port": {{ json ( .PORT ) }}
 *     "url": {{ quoted }}tcp://{{ .IP }}{{ end }} */
#include "worker/template_data.h"

#include <string.h>

#include "worker/template_lex.h"
#include "yaml/datum_text.h"

static bool begins_block(const struct det_lex_token *token)
{
    static const char *const words[] = { "if", "else", "end", "range", "with", "quoted" };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (token->kind == DET_LEX_WORD && det_view_is(token->text, words[i]))
            return true;
    return false;
}

/* True if the text is one printing action; `ret` is its inside. */
static bool is_one_value(const char *text, struct det_view *ret)
{
    struct det_lex lex = { .what = "", .text = det_view_text(text) };
    struct det_lex_token token;
    struct det_view before;
    bool has_action, is_first = true;
    size_t start;

    if (det_lex_text(&lex, &before, &has_action) < 0 || before.size || !lex.in_action)
        return false;
    for (start = lex.offset; det_lex_token(&lex, &token) == 0; is_first = false) {
        if (is_first && begins_block(&token))
            return false;
        if (token.kind == DET_LEX_DECLARE || token.kind == DET_LEX_ASSIGN)
            return false;
        if (token.kind != DET_LEX_END)
            continue;
        *ret = det_view_of(text + start, token.offset - start);
        return !is_first && lex.offset == lex.text.size;
    }
    return false;
}

static void put_scalar(struct det_buffer *buffer, const struct det_datum *scalar)
{
    struct det_view value;

    if (scalar->kind != DET_DATUM_TEXT || !strstr(scalar->text, "{{")) {
        det_datum_put_scalar(buffer, scalar, false);
    } else if (is_one_value(scalar->text, &value)) {
        det_buffer_append_text(buffer, "{{ json ( ");
        det_buffer_append(buffer, value.data, value.size);
        det_buffer_append_text(buffer, " ) }}");
    } else {
        det_buffer_append_text(buffer, "{{ quoted }}");
        det_buffer_append_text(buffer, scalar->text);
        det_buffer_append_text(buffer, "{{ end }}");
    }
}

void det_template_from_data(const struct det_datum *datum, struct det_buffer *buffer)
{
    det_datum_write_yaml(datum, buffer, put_scalar);
}
