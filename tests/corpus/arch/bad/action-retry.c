static struct link_next link_in_up(const struct link_view *view)
{
    (void)view;
    return link_hold("it is up");
}

static int link_do_connect(
    struct det_worker_context *context, struct link_deps *deps, const struct link_desired *desired)
{
    det_time at = det_worker_deadline(context);

    do { /* here */
        if (knock(deps, desired->port) == 0)
            return 0;
    } while (det_worker_wait(context, at) == 0);
    return DET_ERR_CANCELLED;
}
