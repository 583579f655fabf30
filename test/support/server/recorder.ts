import { buildRecorderApp, type RecorderAppOptions } from '../../../src/app.ts';
import type { HttpServer } from '../../../src/http/http-server-type.ts';
import type { TestServer } from './server.ts';

/** A recorder beside a test server, on a port of its own. */
export interface TestRecorder {
  app: HttpServer;
  baseUrl: string;
  /** Sends a body to a tenant's changes. */
  post(tenant: string, body: string | Uint8Array<ArrayBuffer>, options?: PostOptions): Promise<Response>;
  close(): Promise<void>;
}

export interface PostOptions {
  token?: string;
  headers?: Record<string, string>;
  /** Default: application/x-ndjson. */
  type?: string;
  query?: string;
}

/** To be closed in afterAll, before the server. */
export async function startTestRecorder(
  { context }: TestServer,
  options: Partial<RecorderAppOptions> = {},
): Promise<TestRecorder> {
  const app = await buildRecorderApp(context, { mapping: undefined, ...options });
  const baseUrl = await app.listen({ port: 0, host: '127.0.0.1' });
  return {
    app,
    baseUrl,
    async post(tenant, body, { token, headers = {}, type = 'application/x-ndjson', query = '' } = {}) {
      return await fetch(`${baseUrl}/recorder/${tenant}/changes${query}`, {
        method: 'POST',
        headers: {
          'content-type': type,
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...headers,
        },
        body,
      });
    },
    close: async () => void (await app.close()),
  };
}
