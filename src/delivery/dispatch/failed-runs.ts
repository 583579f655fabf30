import { GrowingPause, rest } from '../../core/repeat.ts';

interface Failure {
  readonly pause: GrowingPause;
  rests: boolean;
}

/**
 * Subscriptions whose last run in this process failed because of this service. Such runs may send the same changes
 * again, so their pause grows.
 */
export class FailedRuns {
  readonly #pauses: { readonly min: number; readonly max: number };
  readonly #failures = new Map<string, Map<string, Failure>>();

  /** Pauses in milliseconds. */
  constructor(pauses: { readonly min: number; readonly max: number }) {
    this.#pauses = pauses;
  }

  /** Subscriptions of the tenant that must not be leased now, even if their leases have expired. */
  resting(tenant: string): string[] {
    return [...(this.#failures.get(tenant) ?? [])].flatMap(([id, { rests }]) => (rests ? [id] : []));
  }

  /** Records a failed run. Returns its pause in milliseconds, and a function that waits for it or for the signal. */
  failed(tenant: string, id: string): { pause: number; rest(signal: AbortSignal): Promise<void> } {
    const ofTenant = this.#failures.getOrInsertComputed(tenant, () => new Map());
    const failure = ofTenant.getOrInsertComputed(id, () => ({ pause: new GrowingPause(this.#pauses), rests: false }));
    failure.rests = true;
    const pause = failure.pause.next();
    return {
      pause,
      async rest(signal) {
        await rest(pause, signal);
        failure.rests = false;
      },
    };
  }

  succeeded(tenant: string, id: string): void {
    const ofTenant = this.#failures.get(tenant);
    ofTenant?.delete(id);
    if (ofTenant?.size === 0) this.#failures.delete(tenant);
  }
}
