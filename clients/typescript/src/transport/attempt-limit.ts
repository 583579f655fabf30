/** Aborts an attempt when its caller does, or when it is silent for too long. */
export class AttemptLimit {
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #milliseconds: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #expired = false;

  constructor(milliseconds: number, caller: AbortSignal | undefined) {
    this.signal = this.#controller.signal;
    this.#caller = caller;
    this.#milliseconds = milliseconds;
    // The event of a signal that is aborted already does not come again.
    if (caller?.aborted === true) this.#controller.abort(caller.reason);
    caller?.addEventListener('abort', this.#stop, { once: true });
    this.restart();
  }

  /** Whether the attempt was too slow, rather than aborted by its caller. */
  get expired(): boolean {
    return this.#expired;
  }

  /** Gives the attempt its whole time again. */
  restart(): void {
    this.pause();
    this.#timer = setTimeout(() => {
      this.#expired = true;
      this.#controller.abort();
    }, this.#milliseconds);
  }

  /** Stops the time until it is started again. */
  pause(): void {
    clearTimeout(this.#timer);
  }

  /** Stops the time, and lets go of the caller's signal. */
  end(): void {
    this.pause();
    this.#caller?.removeEventListener('abort', this.#stop);
  }

  readonly #stop = () => this.#controller.abort(this.#caller?.reason);
}
