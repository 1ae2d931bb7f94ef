static struct link_next link_in_up(const struct link_view *view)
{
    struct link_observed *observed = (struct link_observed *)view->observed; /* here */

    observed->is_up = false;
    return link_hold("it is down");
}
