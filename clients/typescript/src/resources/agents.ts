import { type CursorPage, type FieldsParameters, type ListParameters, listWalk } from '../pages/cursor-page.ts';
import type { Walk } from '../pages/walk.ts';
import type { Agent, AgentInput, AgentItem, McpTools } from '../schemas.ts';
import { plainAnswers } from '../transport/answer-json.ts';
import { type CallOptions, jsonBody, path } from '../transport/request.ts';
import type { Transport } from '../transport/transport.ts';

/** An operation of an agent's patch. */
export interface AgentPatchOperation {
  readonly op: 'ADD' | 'REMOVE' | 'REPLACE';
  /** A JSON Pointer (`/name/en`), or keys with dots between them (`name.en`). */
  readonly path: string;
  readonly value?: unknown;
}

/** Language models with instructions, tools and a provider of their own. */
export class Agents {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, tenant: string) {
    this.#transport = transport;
    this.#path = path`/ai-service/${tenant}/agentic/agents`;
  }

  list(parameters?: ListParameters, options?: CallOptions): Walk<Agent, CursorPage<Agent>>;
  list(parameters: FieldsParameters, options?: CallOptions): Walk<AgentItem, CursorPage<AgentItem>>;
  list(
    parameters: ListParameters | FieldsParameters = {},
    options?: CallOptions,
  ): Walk<Agent | AgentItem, CursorPage<Agent | AgentItem>> {
    const read = plainAnswers<Agent | AgentItem>().many;
    return listWalk({ transport: this.#transport, path: this.#path, options, read }, parameters);
  }

  async get(id: string, options?: CallOptions): Promise<Agent> {
    return await this.#transport.fetchJson({ method: 'GET', path: this.#of(id) }, options);
  }

  /** Makes or replaces an agent. With the `metadata.version` that was read, a change in between is refused (409). */
  async put(id: string, agent: AgentInput, options?: CallOptions): Promise<{ created: boolean }> {
    const request = { method: 'PUT', path: this.#of(id), body: jsonBody(agent) } as const;
    return { created: (await this.#transport.send(request, options)).status === 201 };
  }

  /** Changes an agent: all operations, or none. */
  async patch(id: string, operations: readonly AgentPatchOperation[], options?: CallOptions): Promise<void> {
    await this.#transport.send({ method: 'PATCH', path: this.#of(id), body: jsonBody(operations) }, options);
  }

  /** Reads what a server of the agent's `mcpServers` offers now, with the hashes that its tools are approved by. */
  async readTools(id: string, server: string, options?: CallOptions): Promise<McpTools> {
    const request = { method: 'POST', path: `${this.#of(id)}/mcp-tools`, body: jsonBody({ server }) } as const;
    return await this.#transport.fetchJson(request, options);
  }

  async delete(id: string, options?: CallOptions): Promise<void> {
    await this.#transport.send({ method: 'DELETE', path: this.#of(id) }, options);
  }

  #of(id: string): string {
    return `${this.#path}${path`/${id}`}`;
  }
}
