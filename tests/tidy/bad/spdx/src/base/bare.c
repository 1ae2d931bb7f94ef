/* No head at all. */
int bare;



