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
   * The newest checkpoint: a signed note. Keep one, and the verifier key, to find out later whether a change was altered.
   *
   * @example
   * await writeFile('acme.checkpoint', await annals.proofs.checkpoint());
   */
  async checkpoint(options?: CallOptions): Promise<string> {
    return (await this.#transport.send({ method: 'GET', path: `${this.#path}/checkpoint` }, options)).text;
  }

  /** The proof of the change or the receipt at a position, as a text that `annals verify` reads. */
  async get(position: number, { context, ...options }: CallOptions & { context?: boolean } = {}): Promise<string> {
    const query = { position, context };
    return (await this.#transport.send({ method: 'GET', path: `${this.#path}/proof`, query }, options)).text;
  }
}
