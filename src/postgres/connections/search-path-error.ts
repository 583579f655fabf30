/** Names could be looked up where others may create. The message says what an operator can do. */
export class SearchPathError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SearchPathError';
  }
}
