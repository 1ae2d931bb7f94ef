static const char *const names[] = { "a", "b" };
static unsigned tries; /* here */

static struct link_next link_in_up(const struct link_view *view)
{
    return link_hold(names[view->observed->tries % 2]);
}
