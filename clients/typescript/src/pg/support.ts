import { warnOnce } from '../context/warning.ts';
import type { Client } from './internals.ts';

/** Whether a server lets us set `annals.who`. `unknown` until the first setting or probe has ended. */
export type Support = 'unknown' | 'yes' | 'no';

const servers = new Map<string, Support>();

/** What a server refuses once it may accept later: lost connections, conflicts, limits, cancelled and read-only ones. */
const passing = /^(?:08|25|40|53|55|57|58|XX)/;

export class ServerSupport {
  readonly #key: string;

  constructor({ host, port, database, user }: Client, isCaptured: boolean) {
    this.#key = JSON.stringify([host, port, database, user, isCaptured]);
  }

  get state(): Support {
    return servers.get(this.#key) ?? 'unknown';
  }

  accepted(): void {
    servers.set(this.#key, 'yes');
  }

  /** `code` is the SQLSTATE of a setting that failed. */
  refused(code = ''): void {
    if (passing.test(code)) return;
    servers.set(this.#key, 'no');
    warnOnce(
      `REFUSED_${code}`,
      `the database refuses the setting annals.who (SQLSTATE ${code}): changes are recorded without an actor. ` +
        'It needs the right to execute set_config, pg_is_in_recovery and pg_logical_emit_message; with capture: false, set_config alone',
    );
  }
}
