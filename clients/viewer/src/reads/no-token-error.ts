/** The host's page gave no viewer token. */
export class NoTokenError extends Error {}
