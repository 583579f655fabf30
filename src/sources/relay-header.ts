/** Marks the requests of a relay. Their `traceparent` is the trace of the relay's batch, to which no change belongs. */
export const relayHeader = 'annals-relay';
