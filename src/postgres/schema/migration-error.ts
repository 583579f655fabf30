/** Annals cannot migrate the database to the schema that this version needs. The message says what to do. */
export class MigrationError extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options);
    this.name = 'MigrationError';
  }
}
