static struct link_next link_in_closing(const struct link_view *view)
{
    if (view->observed->is_up)
        return link_do(LINK_CLOSE, "it is up");
    return link_goto(LINK_STOPPED, "it is closed");
}
