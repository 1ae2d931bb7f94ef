static struct link_next link_in_up(const struct link_view *view)
{
    if (view->observed->is_up)
        return link_hold("it is up to 100% and well");
    return link_goto(LINK_CONNECTING, det_reason(view->all, "%u tries", view->observed->tries));
}
