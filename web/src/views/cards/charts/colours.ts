/** As many colours as charts.css has; then they begin again. */
export const COLOURS = 6;
