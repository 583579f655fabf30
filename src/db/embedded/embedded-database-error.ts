/** The embedded database cannot be had; the message tells the operator what to do about it. */
export class EmbeddedDatabaseError extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options);
    this.name = 'EmbeddedDatabaseError';
  }
}
