import type { Database } from '../../../src/postgres/database.ts';
import type { Vendor } from '../../../test/support/vendor/vendor-server.ts';

/** One tenant that attacks, in the attackers' process. */
export interface Attacker {
  readonly tenant: string;
  /** Calls the service with the tenant's token, which has every scope. Rejects once the attack is over. */
  call(path: string, options?: { method?: string; body?: string; contentType?: string }): Promise<Response>;
  /** Calls without a token. */
  callOpen(path: string, options: RequestInit): Promise<Response>;
  /** Plays the vendor for this tenant's own agents. */
  readonly vendor: Vendor;
  /** Counts an outcome for the report: a status, as a rule. `times`: default 1. */
  count(outcome: string | number, times?: number): void;
}

export interface Attack {
  /** The row of the table of attacks. */
  readonly row: number;
  readonly title: string;
  /** Fills the attacker's tenant, below HTTP. */
  fill?(db: Database, tenant: string): Promise<void>;
  /** Readies what the attack needs, over HTTP. */
  prepare?(attacker: Attacker): Promise<void>;
  /** Attacks until the signal is aborted. */
  run(attacker: Attacker, signal: AbortSignal): Promise<void>;
  /** What the attackers got together that they must not get; undefined where they got nothing. */
  fault?(counts: Readonly<Record<string, number>>, seconds: number, attackers: number): string | undefined;
  /** Seconds; left out: what the command line says. */
  readonly seconds?: number;
}

/** Does the work over and over, so many times at once, until the signal is aborted. */
export async function repeatedly(
  times: number,
  signal: AbortSignal,
  work: (worker: number, turn: number) => Promise<void>,
): Promise<void> {
  const worker = async (place: number) => {
    for (let turn = 0; !signal.aborted; turn += 1) {
      await work(place, turn).catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
    }
  };
  await Promise.all(Array.from({ length: times }, (_, place) => worker(place)));
}
