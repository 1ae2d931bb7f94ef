static struct link_next link_in_up(const struct link_view *view)
{
    if (view->all->now - view->all->since > 30 * DET_SECOND)
        return link_goto(LINK_CONNECTING, "it is time");
    return link_hold("it is not time yet");
}
