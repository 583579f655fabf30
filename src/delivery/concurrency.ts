/** Concurrent calls to targets per process. The semaphores give a tenant at most half of them. */
export const maxConcurrentAttempts = 64;
/** Concurrent reads of the history per process. The semaphores give a tenant at most half of them. */
export const maxConcurrentReads = 8;
/** Concurrent test deliveries per process. */
export const testLimits = { places: 16, maxOfTenant: 4 };
