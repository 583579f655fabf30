/** The process was asked to stop before its work was done. */
export class Stopped extends Error {
  readonly signal: NodeJS.Signals;

  constructor(signal: NodeJS.Signals) {
    super(`stopped by ${signal}`);
    this.name = 'Stopped';
    this.signal = signal;
  }
}
