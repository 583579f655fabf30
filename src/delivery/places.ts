/** Calls to targets at once, in a process. Half of them at most are one tenant's. */
export const attemptPlaces = 64;
/** Readings of the history at once, in a process. Half of them at most are one tenant's. */
export const readPlaces = 8;
/** Samples that somebody waits for. */
export const testPlaces = { places: 16, maxOfTenant: 4 };
