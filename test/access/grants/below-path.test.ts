import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  Client,
  type OAuthClientProvider,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import { expect, onTestFinished, test } from 'vitest';
import { packageFolder } from '../../../src/core/package-folder.ts';
import { startNginx } from '../../support/server/nginx.ts';
import { ownPort } from '../../support/server/own-port.ts';
import { loopback } from '../../support/server/program.ts';
import { startTestServer } from '../../support/server/server.ts';

/** The blocks of the guide for a path, for a service elsewhere. */
function locationsOfGuide(baseUrl: string): string {
  const guide = readFileSync(join(packageFolder(), 'docs/operations/proxy.md'), 'utf8');
  const [, below = ''] = guide.split('## Under a path');
  const blocks = [...below.matchAll(/```nginx\n(.*?)```/gs)].map(([, block = '']) => block);
  expect(blocks).toHaveLength(2);
  return blocks.join('').replaceAll('http://127.0.0.1:8080', baseUrl);
}

test('with the guide for nginx, programs find the authorization server of a service below a path', async () => {
  const port = await ownPort();
  const url = `http://127.0.0.1:${port}/annals`;
  const server = await startTestServer({ environment: { ANNALS_BASE_URL: url } });
  onTestFinished(() => server.close());
  await server.createTenant('acme');
  const origin = await startNginx(server.baseUrl, { port, locations: locationsOfGuide(server.baseUrl) });
  const read = async (path: string) => {
    const answer = await fetch(`${origin}${path}`);
    return answer.status === 200 ? ((await answer.json()) as Record<string, unknown>) : answer.status;
  };
  const resource = { resource: `${url}/mcp/acme`, authorization_servers: [url] };
  expect(await read('/.well-known/oauth-authorization-server/annals')).toMatchObject({ issuer: url });
  expect(await read('/.well-known/oauth-protected-resource/annals/mcp/acme')).toMatchObject(resource);
  expect(await read('/annals/.well-known/oauth-protected-resource/mcp/acme')).toMatchObject(resource);

  let asked = '';
  let known: unknown;
  const provider = {
    redirectUrl: loopback,
    clientMetadata: { client_name: 'Claude', redirect_uris: [loopback] },
    clientInformation: () => known,
    saveClientInformation: (information: unknown) => {
      known = information;
    },
    tokens: () => undefined,
    saveCodeVerifier: () => {},
    redirectToAuthorization: (address: URL) => {
      asked = address.href;
    },
  } as unknown as OAuthClientProvider;
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp/acme`), { authProvider: provider });
  const client = new Client({ name: 'test', version: '1' });
  await expect(client.connect(transport)).rejects.toThrow(UnauthorizedError);
  expect(asked.startsWith(`${url}/oauth/authorize?`)).toBe(true);
  const shown = await fetch(asked, { redirect: 'manual' });
  expect(shown.headers.get('location')).toBe(`${url}/console/authorize?tenant=acme`);
  expect(shown.headers.getSetCookie()[0]).toContain('Path=/annals/console;');
});
