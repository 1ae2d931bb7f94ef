static struct link_next link_in_up(const struct link_view *view)
{
    switch (view->observed->tries) {
    case 0:
        return link_hold("it is up");
    default:
        break;
    }
    return link_goto(LINK_CONNECTING, "it is down");
}
