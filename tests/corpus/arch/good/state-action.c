static struct link_next act(const struct link_view *view)
{
    return link_do(LINK_CONNECT, det_reason(view->all, "%s is down", view->desired->host));
}

static struct link_next link_in_connecting(const struct link_view *view)
{
    if (view->observed->is_up)
        return link_goto(LINK_UP, "it is up");
    return act(view);
}
