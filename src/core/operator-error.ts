/** An error that the operator can correct. The message says how, and Annals prints it without a stack. */
export class OperatorError extends Error {
  constructor(message: string, options: ErrorOptions = {}) {
    super(message, options);
    this.name = 'OperatorError';
  }
}
