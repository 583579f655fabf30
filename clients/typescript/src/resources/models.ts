import type { ProviderModels } from '../schemas.ts';
import { type CallOptions, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

/** The language models that agents may use. */
export class Models {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, tenant: string) {
    this.#transport = transport;
    this.#path = path`/ai-service/${tenant}/agentic/models`;
  }

  /** The models of each provider. */
  async list(options?: CallOptions): Promise<ProviderModels[]> {
    return await this.#transport.fetchJson({ method: 'GET', path: this.#path }, options);
  }
}
