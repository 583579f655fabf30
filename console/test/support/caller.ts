import type { ConsoleUnderTest } from './console-under-test.ts';

/**
 * Calls the service with all scopes, as an application beside the console does, and returns the body. Throws where the service
 * refuses, unless by the status that is expected.
 */
export type Caller = (method: string, path: string, body?: unknown, refusal?: number) => Promise<string>;

let token: { readonly of: string; readonly text: Promise<string> } | undefined;

/** A body that is a text is sent as it is. */
export async function caller({ server, tenant }: ConsoleUnderTest): Promise<Caller> {
  if (token?.of !== server.baseUrl) token = { of: server.baseUrl, text: server.token(tenant, { name: 'Shop' }) };
  const authorization = `Bearer ${await token.text}`;
  return async (method, path, body, refusal) => {
    const response = await fetch(`${server.baseUrl}${path}`, {
      method,
      headers: { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok && response.status !== refusal) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text;
  };
}
