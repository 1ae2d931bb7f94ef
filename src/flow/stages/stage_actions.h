/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stage_actions.h - the functions that the specs of all kinds of stages name alike. STAGE is the
 * FSM_NAME of the spec, whose define.h was included before. No include guard: once for each kind,
 * which is a file. */
#define STAGE_JOINED(a, b) a##b
#define STAGE_JOIN(a, b)   STAGE_JOINED(a, b)
#define STAGE_EVENT        struct STAGE_JOIN(STAGE, _event)
#define STAGE_MAKE(name)   STAGE_JOIN(STAGE, name)

#define STAGE_ACTION(name, function)                                                          \
    static int name(struct det_flow_stage *stage, const STAGE_EVENT *event, STAGE_EVENT *ret) \
    {                                                                                         \
        (void)event;                                                                          \
        (void)ret;                                                                            \
        function(stage);                                                                      \
        return DET_EFFECT_DONE;                                                               \
    }

STAGE_ACTION(start_opening, det_stage_start_opening)
STAGE_ACTION(report_opened, det_stage_report_opened)
STAGE_ACTION(report_running, det_stage_report_running)
STAGE_ACTION(report_draining, det_stage_report_draining)
STAGE_ACTION(cancel_functions, det_stage_cancel)
STAGE_ACTION(report_completed, det_stage_report_completed)
STAGE_ACTION(report_cancelled, det_stage_report_cancelled)
STAGE_ACTION(note_failure, det_stage_note_failure)

static int watch_opening(struct det_flow_stage *stage, STAGE_EVENT *ret)
{
    int r;

    r = det_stage_opening(stage);
    if (r <= 0)
        return r;
    *ret = STAGE_MAKE(_opened)();
    return DET_DIRECTIVE_TRANSITION;
}

static int watch_closing(struct det_flow_stage *stage, STAGE_EVENT *ret)
{
    if (!det_stage_closing(stage))
        return DET_DIRECTIVE_CONTINUE;
    *ret = STAGE_MAKE(_closed)();
    return DET_DIRECTIVE_TRANSITION;
}

static int stage_completed(struct det_flow_stage *stage, const struct det_component_end *end)
{
    (void)end;
    det_stage_report_ended(stage);
    return 0;
}

/* A request that the state does not accept changes nothing. */
static void request_stage(struct det_flow_stage *stage, enum det_stage_request request)
{
    STAGE_EVENT event;
    int r;

    switch (request) {
    case DET_STAGE_INITIALIZE:
        event = STAGE_MAKE(_initialize)();
        break;
    case DET_STAGE_READY:
        event = STAGE_MAKE(_ready)();
        break;
    case DET_STAGE_CANCEL:
        event = STAGE_MAKE(_cancel)();
        break;
    case DET_STAGE_START:
    case DET_STAGE_BEGIN_DRAIN:
#ifdef STAGE_IS_SOURCE
        event = request == DET_STAGE_START ? STAGE_MAKE(_start)() : STAGE_MAKE(_begin_drain)();
        break;
#else
        return;
#endif
    }
    r = STAGE_MAKE(_offer)(stage, event);
    (void)r;
}
