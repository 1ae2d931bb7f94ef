static struct link_next link_in_closing(const struct link_view *view)
{
    if (view->observed->is_up)
        return link_do(LINK_CLOSE, "it is up");
    if (view->stop_wanted)
        return link_goto(LINK_STOPPED, "it is closed");
    return link_goto(LINK_CONNECTING, "it is wanted again");
}

static struct link_next link_in_connecting(const struct link_view *view)
{
    (void)view;
    return link_do(LINK_CONNECT, "it is down");
}
