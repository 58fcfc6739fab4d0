/** What stands left of the lanes, and the least there is right of them, pixels. */
export const gutter = 156;
export const margin = 12;
