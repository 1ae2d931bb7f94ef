static struct link_next link_in_up(const struct link_view *view)
{
    if (view->observed->is_up)
        return link_hold("it is up");
    else /* here */
        return link_goto(LINK_CONNECTING, "it is down");
}
