/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* promela_test.c - the exact text of a definition for Spin; tests/models checks with Spin that it
 * means the same as the table, for all specs of the corpus. */
#include "codegen/codegen.h"

#include "lib/test.h"

/* All features: hooks, updates, timers, alternatives, a stop, an ignored event, groups of both
 * kinds. */
static const char door[] = "#define FSM_NAME door\n"
                           "#define FSM_PREFIX DOOR\n"
                           "STATE(SHUT, shut, INITIAL)\n"
                           "STATE(OPEN, open)\n"
                           "STATE(GONE, gone, FINAL)\n"
                           "GROUP(there, SHUT, OPEN)\n"
                           "EVENT(PUSH, push)\n"
                           "EVENT(PULL, pull)\n"
                           "EVENT_GROUP(hands, PUSH, PULL)\n"
                           "GUARD(is_locked)\n"
                           "GUARD(is_heavy)\n"
                           "HOOK(creak)\n"
                           "HOOK(look)\n"
                           "HOOK(greet)\n"
                           "EFFECT(ring)\n"
                           "EFFECT(light)\n"
                           "TIMER(bored, SECONDS(9), PULL)\n"
                           "AFTER(OPEN, SECONDS(3), PULL)\n"
                           "UNHANDLED(PULL, IGNORE)\n"
                           "EXIT(SHUT, creak)\n"
                           "ENTRY(OPEN, greet)\n"
                           "STAY(SHUT, PUSH, IF(is_locked), DO(ring))\n"
                           "ELSE_STOP(SHUT, PUSH, IF(is_heavy))\n"
                           "ELSE(SHUT, PUSH, OPEN, CALL(look), ARM(bored), DO(light, ring))\n"
                           "STAY(OPEN, PUSH)\n"
                           "ON(OPEN, PULL, GONE, IF(is_heavy), DISARM(bored))\n";

static const char expected[] =
    "/* door.pml - the machine door for Spin, made by 'detent gen promela'.\n"
    " *\n"
    " * Include it after the macros of its guards; inlines of the rest may follow it. "
    "door_step()\n"
    " * does what the table says and sets door_unhandled where it says nothing. A model with\n"
    " * several machines defines door_state and door_unhandled itself.\n"
    " *\n"
    " * The model defines:\n"
    " *     door_guard_is_locked()\n"
    " *     door_guard_is_heavy()\n"
    " *     door_call_creak()\n"
    " *     door_call_look()\n"
    " *     door_call_greet()\n"
    " *     door_do_ring()\n"
    " *     door_do_light()\n"
    " *     door_arm_bored(), door_disarm_bored()\n"
    " */\n"
    "#define DOOR_SHUT 0\n"
    "#define DOOR_OPEN 1 /* in time: pull */\n"
    "#define DOOR_GONE 2\n"
    "\n"
    "#define DOOR_PUSH 0\n"
    "#define DOOR_PULL 1\n"
    "\n"
    "#define door_is_there() (door_state == DOOR_SHUT || door_state == DOOR_OPEN)\n"
    "#define door_event_is_hands(event) ((event) == DOOR_PUSH || (event) == DOOR_PULL)\n"
    "\n"
    "#ifndef door_state\n"
    "byte door_state = DOOR_SHUT;\n"
    "#endif\n"
    "#ifndef door_unhandled\n"
    "bool door_unhandled = false;\n"
    "#endif\n"
    "#ifndef door_stopped\n"
    "bool door_stopped = false;\n"
    "#endif\n"
    "\n"
    "inline door_step(event)\n"
    "{\n"
    "    if\n"
    "    :: door_stopped ->\n"
    "        door_unhandled = true;\n"
    "    :: else ->\n"
    "        if\n"
    "        :: door_state == DOOR_SHUT ->\n"
    "            if\n"
    "            :: event == DOOR_PUSH ->\n"
    "                if\n"
    "                :: (door_guard_is_locked()) ->\n"
    "                    door_do_ring();\n"
    "                :: else ->\n"
    "                    if\n"
    "                    :: (door_guard_is_heavy()) ->\n"
    "                        door_call_creak();\n"
    "                        door_stopped = true;\n"
    "                    :: else ->\n"
    "                        door_call_creak();\n"
    "                        door_call_look();\n"
    "                        door_state = DOOR_OPEN;\n"
    "                        door_call_greet();\n"
    "                        door_arm_bored();\n"
    "                        door_do_light();\n"
    "                        door_do_ring();\n"
    "                    fi;\n"
    "                fi;\n"
    "            :: event == DOOR_PULL ->\n"
    "                skip;\n"
    "            :: else ->\n"
    "                door_unhandled = true;\n"
    "            fi;\n"
    "        :: door_state == DOOR_OPEN ->\n"
    "            if\n"
    "            :: event == DOOR_PUSH ->\n"
    "                skip;\n"
    "            :: event == DOOR_PULL ->\n"
    "                if\n"
    "                :: (door_guard_is_heavy()) ->\n"
    "                    door_state = DOOR_GONE;\n"
    "                    door_disarm_bored();\n"
    "                :: else ->\n"
    "                    door_unhandled = true;\n"
    "                fi;\n"
    "            :: else ->\n"
    "                door_unhandled = true;\n"
    "            fi;\n"
    "        :: door_state == DOOR_GONE ->\n"
    "            if\n"
    "            :: event == DOOR_PULL ->\n"
    "                skip;\n"
    "            :: else ->\n"
    "                door_unhandled = true;\n"
    "            fi;\n"
    "        fi;\n"
    "    fi;\n"
    "}\n";

/* A state without events: its selection of events must not be empty. */
static const char stone[] = "#define FSM_NAME stone\n"
                            "#define FSM_PREFIX STONE\n"
                            "STATE(LIES, lies, INITIAL)\n"
                            "STATE(GONE, gone, FINAL)\n"
                            "EVENT(KICK, kick)\n"
                            "ON(LIES, KICK, GONE)\n";

static const char *const stone_step = "\n"
                                      "inline stone_step(event)\n"
                                      "{\n"
                                      "    if\n"
                                      "    :: stone_state == STONE_LIES ->\n"
                                      "        if\n"
                                      "        :: event == STONE_KICK ->\n"
                                      "            stone_state = STONE_GONE;\n"
                                      "        :: else ->\n"
                                      "            stone_unhandled = true;\n"
                                      "        fi;\n"
                                      "    :: stone_state == STONE_GONE ->\n"
                                      "        stone_unhandled = true;\n"
                                      "    fi;\n"
                                      "}\n";

static struct det_spec *read_spec(const char *text)
{
    struct det_spec *spec;

    assert_int_equal(det_spec_read("door.fsm", text, strlen(text), NULL, &spec), 0);
    if (!det_spec_machine(spec))
        fail_msg("%s", det_spec_diagnostics(spec)->items[0].text);
    return spec;
}

static void promela_text_of_a_definition_is_exact(void **state)
{
    DET_SCOPED(spec) spec = read_spec(door);
    struct det_buffer text;

    (void)state;
    det_buffer_init(&text, NULL);
    gen_promela(&text, spec);
    assert_string_equal(det_buffer_text(&text), expected);
    det_buffer_deinit(&text);
}

static void state_without_transitions_is_written_for_spin(void **state)
{
    DET_SCOPED(spec) spec = read_spec(stone);
    struct det_buffer text;

    (void)state;
    det_buffer_init(&text, NULL);
    gen_promela(&text, spec);
    assert_non_null(strstr(det_buffer_text(&text), stone_step));
    assert_null(strstr(det_buffer_text(&text), "stopped"));
    det_buffer_deinit(&text);
}

static int make(struct det_test_memory *memory, void *argument)
{
    struct det_buffer text;
    int r;

    det_buffer_init(&text, &memory->allocator);
    gen_promela(&text, argument);
    r = det_buffer_status(&text);
    if (r == 0)
        assert_string_equal(det_buffer_text(&text), expected);
    det_buffer_deinit(&text);
    return r;
}

static void allocation_failures_are_reported(void **state)
{
    DET_SCOPED(spec) spec = read_spec(door);

    (void)state;
    det_test_each_failure(make, spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(promela_text_of_a_definition_is_exact),
        cmocka_unit_test(state_without_transitions_is_written_for_spin),
        cmocka_unit_test(allocation_failures_are_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
