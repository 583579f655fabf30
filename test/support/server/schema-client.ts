import type { TestServer } from './server.ts';

export interface Answer {
  readonly status: number;
  /** The body as it was sent. */
  readonly text: string;
  /** The same, parsed; null where there is none. */
  readonly body: unknown;
  readonly headers: Headers;
}

/** Calls the operations of custom entities for one tenant; a body that is a text is sent as it is. */
export function schemaClient(server: TestServer, tenant: string, token: string) {
  async function call(method: string, path: string, body?: unknown, contentType = 'application/json'): Promise<Answer> {
    const response = await server.call(`/schema/${tenant}/custom-entities${path}`, {
      token,
      method,
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      ...(body === undefined ? {} : { headers: { 'content-type': contentType } }),
    });
    const text = await response.text();
    return { status: response.status, text, body: text === '' ? null : JSON.parse(text), headers: response.headers };
  }
  return {
    call,
    get: (path: string) => call('GET', path),
    post: (path: string, body: unknown) => call('POST', path, body),
    put: (path: string, body: unknown) => call('PUT', path, body),
    patch: (path: string, body: unknown, contentType?: string) => call('PATCH', path, body, contentType),
    remove: (path: string) => call('DELETE', path),
    /** Makes a type. */
    async type(id: string, jsonSchema?: unknown): Promise<void> {
      const made = await call('POST', '', {
        id,
        name: { en: id },
        ...(jsonSchema === undefined ? {} : { jsonSchema }),
      });
      if (made.status !== 201) throw new Error(made.text);
    },
  };
}

export type SchemaClient = ReturnType<typeof schemaClient>;

/** The change entries of an entity, newest first. */
export async function historyOf(
  server: TestServer,
  { tenant, token, q }: { tenant: string; token: string; q: string },
): Promise<{ items: HistoryItem[]; total: number }> {
  const response = await server.call(`/changelog/${tenant}/changelogs?size=100&q=${encodeURIComponent(q)}`, { token });
  const { items, totalElements } = (await response.json()) as { items: HistoryItem[]; totalElements: number };
  return { items, total: totalElements };
}

export interface HistoryItem {
  readonly at: string;
  readonly type: string;
  readonly entity: string;
  readonly entityId: string;
  readonly name?: string;
  readonly actor: string;
  readonly schemaVersion?: string;
  readonly paths: Record<string, { before?: unknown; after?: unknown }>;
}
