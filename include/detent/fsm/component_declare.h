/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* component_declare.h - the part of declare.h for a spec with an FSM_CONTEXT: functions to
 * supervise a component, send events to it and read its state. No include guard on purpose. */
struct FSM_CONTEXT;
FSM__DECLARED const struct det_component_def FSM__OWN(_component);

#ifdef FSM_HANDLER
/* Sets the handler of the context, which must outlive the component; NULL is DET_ERR_INVALID. */
struct FSM_HANDLER;
DET_MUST_CHECK int FSM__OWN(_supervise)(
    struct det_executor *executor, struct FSM_CONTEXT *context, const struct FSM_HANDLER *handler,
    const struct det_supervise_options *options, struct det_handle **ret, struct det_error *reterr);
#else
DET_MUST_CHECK static inline int FSM__OWN(_supervise)(
    struct det_executor *executor, struct FSM_CONTEXT *context,
    const struct det_supervise_options *options, struct det_handle **ret, struct det_error *reterr)
{
    return det_supervise(executor, &FSM__OWN(_component), context, options, ret, reterr);
}
#endif

/* On the loop; see det_component_offer(). */
DET_MUST_CHECK static inline int FSM__OWN(_offer)(
    struct FSM_CONTEXT *context, struct FSM__OWN(_event) event)
{
    void *component = (char *)context + FSM__OWN(_component).offset;

    return det_component_offer(component, &event);
}

/* From any thread; see det_handle_send(). */
DET_MUST_CHECK static inline int FSM__OWN(_handle_send)(
    struct det_handle *handle, struct FSM__OWN(_event) event)
{
    return det_handle_send(handle, &event);
}

static inline enum FSM__OWN(_state) FSM__OWN(_handle_state)(const struct det_handle *handle)
{
    return (enum FSM__OWN(_state))det_handle_state(handle);
}
