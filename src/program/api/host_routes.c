/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* host_routes.c - the process itself: liveness, the OpenAPI description, sessions. */
#include <string.h>

#include "api/api_internal.h"
#include "api/assets.h"

void api_livez(struct api_call *call)
{
    call->type = "text/plain; charset=utf-8";
    det_buffer_append_text(&call->json.text, "ok\n");
}

void api_openapi(struct api_call *call)
{
    const struct asset *asset = assets_find("/openapi.yaml");

    call->type = "application/yaml; charset=utf-8";
    det_buffer_append(&call->json.text, asset->data, (size_t)(asset->end - asset->data));
}

static void write_scopes(struct det_json_writer *json, unsigned scopes)
{
    det_json_open(json, "scopes", '[');
    for (size_t i = 0; i < TOKENS_SCOPE_COUNT; i++) {
        if (scopes & 1u << i)
            det_json_text(json, NULL, tokens_scope_word(i));
    }
    det_json_close(json, ']');
}

static void write_login(struct api_call *call, const struct tokens_login *login)
{
    struct det_json_writer *json = &call->json;

    det_json_open(json, NULL, '{');
    det_json_text(json, "token", login->text);
    det_json_time(json, "expires", login->token.expires);
    write_scopes(json, login->token.scopes);
    det_json_close(json, '}');
}

/* The rights of the caller. The unix socket has all. */
void api_get_session(struct api_call *call)
{
    struct token token;
    bool has_token = tokens_find(call->api->tokens, call->who, &token);

    det_json_open(&call->json, NULL, '{');
    write_scopes(&call->json, has_token ? token.scopes : TOKENS_ALL);
    det_json_close(&call->json, '}');
}

/* Ends the session of the caller. Other tokens are for programs, which have no sessions. */
void api_sign_out(struct api_call *call)
{
    struct tokens *tokens = call->api->tokens;
    struct det_error error = { 0 };
    struct token token;
    int r;

    if (!tokens_find(tokens, call->who, &token) || strcmp(token.name, TOKENS_CONSOLE) != 0) {
        api_fail(
            call, DET_ERR_REFUSED,
            "this token is not a console session; revoke it with 'detent token revoke'");
        return;
    }
    r = tokens_revoke(tokens, token.id, &token, &error);
    if (r < 0) {
        api_fail_with(call, r, &error);
        return;
    }
    det_json_open(&call->json, NULL, '{');
    det_json_text(&call->json, "revoked", token.id);
    det_json_close(&call->json, '}');
}

/* Exchanges a one-time code for a token. */
void api_redeem(struct api_call *call)
{
    struct det_json_object *members = api_body(call, "code");
    const char *code = members ? det_json_object_text(members, "code") : NULL;
    struct det_error error = { 0 };
    struct tokens_login login;
    int r;

    if (!members || !api_body_is_right(call, members))
        return;
    r = tokens_code_redeem(call->api->tokens, code, call->peer, &login, &error);
    if (r == DET_ERR_NOT_FOUND) {
        call->wrong_code = "this code was used or has expired; 'detent console' prints a new one";
        call->wait = login.wait;
        api_fail(call, DET_ERR_REFUSED, "%s", call->wrong_code);
        call->status = 401;
    } else if (r < 0) {
        api_fail_with(call, r, &error);
    } else {
        write_login(call, &login);
    }
    explicit_bzero(login.text, sizeof login.text);
}
