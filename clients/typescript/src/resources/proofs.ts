import type { HistoryLog } from '../schemas.ts';
import { type CallOptions, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

/** What proves that the change history was not altered, in the formats of C2SP. */
export class Proofs {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, tenant: string) {
    this.#transport = transport;
    this.#path = path`/changelog/${tenant}/log`;
  }

  /**
   * The newest checkpoint: a signed note. Keep one, and the verifier key, to find out later whether a change was
   * altered.
   *
   * @example
   * await writeFile('acme.checkpoint', await annals.proofs.checkpoint());
   */
  async checkpoint(options?: CallOptions): Promise<string> {
    return (await this.#transport.send({ method: 'GET', path: `${this.#path}/checkpoint` }, options)).text;
  }

  /**
   * How far the history is sealed: the verifier key, the newest checkpoint, who cosigned it, the last check and the
   * newest receipts.
   */
  async state(options?: CallOptions): Promise<HistoryLog> {
    return await this.#transport.fetchJson({ method: 'GET', path: this.#path }, options);
  }

  /**
   * The proof of a change by its `ref`, or of the change or receipt at a position, as a text that `annals verify`
   * reads.
   */
  async get(
    of: number | { readonly ref: string },
    { context, ...options }: CallOptions & { context?: boolean } = {},
  ): Promise<string> {
    const query = { ...(typeof of === 'number' ? { position: of } : of), context };
    return (await this.#transport.send({ method: 'GET', path: `${this.#path}/proof`, query }, options)).text;
  }
}
