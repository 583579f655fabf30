/** Whether facets stand beside the entries. On a narrow screen they would push them out of sight, and begin closed. */
export const startsWide = matchMedia('(min-width: 760px)').matches;
