/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* arch_state.c - rules of state functions: their transitions, actions and reasons, and that they
 * always return a decision. */
#include <string.h>

#include "worker/arch_parts.h"

#define NO_STATE UINT16_MAX

/* The constructor of a decision: link_goto( and so on. */
enum answer {
    ANSWER_NONE,
    ANSWER_GOTO,
    ANSWER_DO,
    ANSWER_HOLD,
    ANSWER_RESTART,
};

static enum answer answer_at(
    const struct det_arch *arch, const struct det_arch_source *source, uint32_t index)
{
    static const char *const rests[] = {
        [ANSWER_GOTO] = "_goto",
        [ANSWER_DO] = "_do",
        [ANSWER_HOLD] = "_hold",
        [ANSWER_RESTART] = "_restart",
    };

    if (!det_code_is_call(source, index))
        return ANSWER_NONE;
    for (int i = ANSWER_GOTO; i <= ANSWER_RESTART; i++) {
        if (det_code_is_prefix_and_rest(&source->tokens[index], arch->facts->name, rests[i]))
            return (enum answer)i;
    }
    return ANSWER_NONE;
}

/* LINK_UP: the state, or NO_STATE. */
static uint16_t state_named(const struct det_arch *arch, const struct det_code_token *token)
{
    size_t prefix = strlen(arch->facts->prefix);

    if (token->kind != DET_CODE_NAME || token->length <= prefix + 1 ||
        memcmp(token->text, arch->facts->prefix, prefix) != 0 || token->text[prefix] != '_')
        return NO_STATE;
    for (uint16_t i = 0; i < arch->facts->state_count; i++) {
        const char *name = arch->facts->states[i].name;

        if (strlen(name) == token->length - prefix - 1 &&
            memcmp(name, token->text + prefix + 1, strlen(name)) == 0)
            return i;
    }
    return NO_STATE;
}

/* The first string among the tokens, without its quotes; "" if there is none. */
static const char *text_in(
    struct det_arch *arch, const struct det_arch_source *source, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        const struct det_code_token *token = &source->tokens[i];
        char *copy;

        if (token->kind != DET_CODE_STRING || token->length < 2)
            continue;
        copy = det_arch_alloc(arch, token->length);
        if (copy == NULL)
            return "";
        memcpy(copy, token->text + 1, token->length - 2);
        return copy;
    }
    return "";
}

static void add_transition(struct det_arch *arch, uint16_t from, uint16_t to, const char *reason)
{
    if (arch->transition_count == arch->transition_capacity) {
        size_t capacity = arch->transition_capacity > 0 ? 2 * arch->transition_capacity : 16;
        struct det_worker_transition *transitions =
            det_arch_alloc(arch, capacity * sizeof *transitions);

        if (transitions == NULL)
            return;
        if (arch->transition_count > 0)
            memcpy(transitions, arch->transitions, arch->transition_count * sizeof *transitions);
        arch->transitions = transitions;
        arch->transition_capacity = capacity;
    }
    arch->transitions[arch->transition_count++] =
        (struct det_worker_transition){ from, to, reason };
}

/* A target may be a choice: `is_up ? LINK_UP : LINK_SHAKY`. */
static void add_transitions_of(
    struct det_arch *arch, const struct det_arch_function *root,
    const struct det_arch_function *function, uint32_t call)
{
    const struct det_arch_source *source = function->source;
    uint32_t end, reason_end;
    uint32_t start = det_code_argument(source, call + 1, 0, &end);
    uint32_t reason = det_code_argument(source, call + 1, 1, &reason_end);
    const char *text = text_in(arch, source, reason, reason_end);

    for (uint32_t i = start; i < end; i++) {
        uint16_t to = state_named(arch, &source->tokens[i]);

        if (to == NO_STATE)
            continue;
        if (to == root->index)
            det_arch_report_at(
                arch, DET_ARCH_STATE_ITSELF, source, &source->tokens[i], "%s goes to itself",
                arch->facts->states[to].name);
        else
            add_transition(arch, root->index, to, text);
    }
}

static void find_transitions_in(
    struct det_arch *arch, const struct det_arch_function *function, void *context)
{
    const struct det_arch_function *root = context;

    for (uint32_t i = function->body; i < det_arch_body_end(function); i++) {
        if (answer_at(arch, function->source, i) == ANSWER_GOTO)
            add_transitions_of(arch, root, function, i);
    }
}

void det_arch_find_transitions(struct det_arch *arch)
{
    for (size_t i = 0; i < arch->function_count; i++) {
        if (arch->functions[i].role == DET_ARCH_STATE)
            det_arch_walk(arch, &arch->functions[i], find_transitions_in, &arch->functions[i]);
    }
}

static void find_action(
    struct det_arch *arch, const struct det_arch_function *function, void *context)
{
    bool *does = context;

    for (uint32_t i = function->body; i < det_arch_body_end(function); i++)
        *does |= answer_at(arch, function->source, i) == ANSWER_DO;
}

static bool does_action(struct det_arch *arch, uint16_t state)
{
    bool does = false;

    for (size_t i = 0; i < arch->function_count; i++) {
        if (arch->functions[i].role == DET_ARCH_STATE && arch->functions[i].index == state)
            det_arch_walk(arch, &arch->functions[i], find_action, &does);
    }
    return does;
}

/* The states reachable from this one, including itself; of one phase only, or all. */
static uint64_t reach(const struct det_arch *arch, uint16_t from, bool of_one_phase)
{
    const struct det_worker_spec_state *states = arch->facts->states;
    uint64_t reached = DET_IN(from), before = 0;

    while (reached != before) {
        before = reached;
        for (size_t i = 0; i < arch->transition_count; i++) {
            const struct det_worker_transition *way = &arch->transitions[i];

            if ((reached & DET_IN(way->from)) != 0 &&
                (!of_one_phase || states[way->to].phase == states[from].phase))
                reached |= DET_IN(way->to);
        }
    }
    return reached;
}

static void check_action(struct det_arch *arch, const struct det_arch_function *function)
{
    const struct det_worker_spec_state *state = &arch->facts->states[function->index];
    uint64_t reached;

    if (arch->facts->action_count == 0 ||
        (state->phase != DET_PHASE_STARTING && state->phase != DET_PHASE_STOPPING))
        return;
    reached = reach(arch, function->index, true);
    for (uint16_t i = 0; i < arch->facts->state_count; i++) {
        if ((reached & DET_IN(i)) != 0 && does_action(arch, i))
            return;
    }
    det_arch_report_at(
        arch, DET_ARCH_STATE_ACTION, function->source, &function->source->tokens[function->name],
        "%s is %s and does no action", state->name, det_phase_name(state->phase));
}

static void check_end(struct det_arch *arch, const struct det_arch_function *function)
{
    const struct det_worker_spec_state *state = &arch->facts->states[function->index];
    uint64_t reached = reach(arch, function->index, false);

    if (state->phase != DET_PHASE_STOPPING)
        return;
    for (uint16_t i = 0; i < arch->facts->state_count; i++) {
        if ((reached & DET_IN(i)) != 0 && arch->facts->states[i].phase == DET_PHASE_STOPPED)
            return;
    }
    det_arch_report_at(
        arch, DET_ARCH_STOPPING_ENDS, function->source, &function->source->tokens[function->name],
        "%s cannot reach a state that is stopped", state->name);
}

/* The first token of the last statement of the body; the } if the body is empty. */
static uint32_t last_statement(const struct det_arch_function *function)
{
    const struct det_arch_source *source = function->source;
    uint32_t end = det_arch_body_end(function), start = function->body + 1, last = end;

    for (uint32_t i = start; i < end; i++) {
        const struct det_code_token *token = &source->tokens[i];
        bool is_block = det_code_is(token, "{");

        if (token->match > i)
            i = token->match;
        if (is_block || det_code_is(token, ";")) {
            last = start;
            start = i + 1;
        }
    }
    return last;
}

static void check_return(struct det_arch *arch, const struct det_arch_function *function)
{
    uint32_t last = last_statement(function);
    const struct det_code_token *token = &function->source->tokens[last];

    if (!det_code_is(token, "return"))
        det_arch_report_at(
            arch, DET_ARCH_STATE_RETURN, function->source, token,
            "the function of %s does not end with a return",
            arch->facts->states[function->index].name);
}

static void check_stop_asked(struct det_arch *arch, const struct det_arch_function *function)
{
    const struct det_worker_spec_state *state = &arch->facts->states[function->index];

    if (state->phase == DET_PHASE_STOPPING)
        return;
    for (uint32_t i = function->body; i < det_arch_body_end(function); i++) {
        if (det_code_is(&function->source->tokens[i], "stop_wanted"))
            det_arch_report_at(
                arch, DET_ARCH_STATE_STOP_ASKED, function->source, &function->source->tokens[i],
                "%s is %s: its function is not called during a stop", state->name,
                det_phase_name(state->phase));
    }
}

void det_arch_check_states(struct det_arch *arch)
{
    for (size_t i = 0; i < arch->function_count; i++) {
        const struct det_arch_function *function = &arch->functions[i];

        if (function->role != DET_ARCH_STATE)
            continue;
        check_return(arch, function);
        check_action(arch, function);
        check_end(arch, function);
        check_stop_asked(arch, function);
    }
}

/* A % followed by a conversion of printf(). */
static bool has_conversion(const struct det_code_token *token)
{
    for (uint32_t i = 1; i + 1 < token->length; i++) {
        uint32_t k = i + 1;

        if (token->text[i] != '%')
            continue;
        while (k < token->length && strchr("0123456789.-+#hlzjt", token->text[k]) != NULL)
            k++;
        if (k < token->length && strchr("diouxXeEfFgGcsp", token->text[k]) != NULL)
            return true;
        i = k;
    }
    return false;
}

static bool is_blank(const struct det_code_token *token)
{
    for (uint32_t i = 1; i + 1 < token->length; i++) {
        if (token->text[i] != ' ')
            return false;
    }
    return true;
}

/* Checks reasons that are one literal; formatted ones are not checked. */
static void check_reason(
    struct det_arch *arch, const struct det_arch_source *source, uint32_t call, unsigned number)
{
    uint32_t end, start = det_code_argument(source, call + 1, number, &end);
    const struct det_code_token *token = det_code_at(source, start);

    if (end != start + 1)
        return;
    if (det_code_is(token, "NULL") || (token->kind == DET_CODE_STRING && is_blank(token)))
        det_arch_report_at(arch, DET_ARCH_REASON_EMPTY, source, token, "the reason is empty");
    else if (token->kind == DET_CODE_STRING && has_conversion(token))
        det_arch_report_at(
            arch, DET_ARCH_REASON_FORMAT, source, token,
            "the reason has a %% for a value; make it with det_reason()");
}

void det_arch_check_reasons(struct det_arch *arch)
{
    for (size_t i = 0; i < arch->source_count; i++) {
        const struct det_arch_source *source = &arch->sources[i];

        for (uint32_t k = 0; k < source->count; k++) {
            enum answer answer = answer_at(arch, source, k);

            if (answer != ANSWER_NONE)
                check_reason(arch, source, k, answer == ANSWER_GOTO || answer == ANSWER_DO ? 1 : 0);
        }
    }
}
