/** The embedded database is not available. The message tells the operator what to do. */
export class EmbeddedDatabaseError extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options);
    this.name = 'EmbeddedDatabaseError';
  }
}
