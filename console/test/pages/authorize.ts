import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  Client,
  type OAuthClientProvider,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import type { Page } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { createClient } from '../../../src/access/oauth/clients.ts';
import { startBehindProxy } from '../support/behind-proxy.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { sidewaysRoom } from '../support/page-measures.ts';

/** A program on this computer, to which browsers are sent back. */
async function startProgram() {
  const server = createServer((request, response) => {
    answers.push(new URL(request.url ?? '/', redirectUrl));
    response.writeHead(200, { 'content-type': 'text/html' }).end('<title>Program</title><p>You can close this.</p>');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const answers: URL[] = [];
  const redirectUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`;
  const kept: { client?: unknown; tokens?: unknown; verifier?: string; asked?: URL } = {};
  const provider = {
    redirectUrl,
    clientMetadata: { client_name: 'Claude', redirect_uris: [redirectUrl] },
    state: () => 'a state',
    clientInformation: () => kept.client,
    saveClientInformation: (client: unknown) => {
      kept.client = client;
    },
    tokens: () => kept.tokens,
    saveTokens: (tokens: unknown) => {
      kept.tokens = tokens;
    },
    redirectToAuthorization: (url: URL) => {
      kept.asked = url;
    },
    saveCodeVerifier: (verifier: string) => {
      kept.verifier = verifier;
    },
    codeVerifier: () => kept.verifier ?? '',
  } as unknown as OAuthClientProvider;
  return {
    provider,
    kept,
    answers,
    origin: new URL(redirectUrl).origin,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Programs that sign in, by the protocol's own client; at the root and below a path behind a proxy. */
export function authorizeTests(the: () => ConsoleUnderTest): void {
  const closing: { close(): unknown }[] = [];
  afterAll(() => Promise.all(closing.map((one) => one.close())));

  test.each(['', '/tools/annals'])('a program signs in, and the person decides about it (path: "%s")', async (path) => {
    const { server, tenant, open, checkAccessibility } = the();
    const service = await startBehindProxy(server, path);
    const program = await startProgram();
    closing.push(service, program);
    const connect = async () => {
      const transport = new StreamableHTTPClientTransport(new URL(`${service.url}/mcp/${tenant}`), {
        authProvider: program.provider,
      });
      const client = new Client({ name: 'test', version: '1' });
      return { transport, client, connecting: client.connect(transport) };
    };

    const first = await connect();
    await expect(first.connecting).rejects.toThrow(UnauthorizedError);
    const asked = program.kept.asked ?? new URL('about:blank');
    expect(asked.href).toContain(`${service.url}/oauth/authorize?`);

    // Its person signs in first.
    const { clientId, clientSecret } = await createClient(server.context.db, {
      tenant,
      scope: 'changelog.changelog_read',
      name: 'Jane Doe',
    });
    const page = await open('', { signedOut: true, statuses: [401], baseUrl: service.url, others: [program.origin] });
    const signIn = async (on: Page) => {
      await on.getByRole('textbox', { name: 'Client id' }).fill(clientId);
      await on.getByLabel('Client secret').fill(clientSecret);
      await on.getByRole('button', { name: 'Sign in', exact: true }).click();
    };
    await page.goto(asked.href);
    await signIn(page);
    await page.getByRole('heading', { name: 'Allow a program to read the history?' }).waitFor();
    await page.getByText('any program on it may be asking').waitFor();
    await checkAccessibility(page);

    // The host is larger than the name, and both answers are alike.
    const sizeOf = (text: string) =>
      page
        .getByText(text, { exact: true })
        .evaluate((element) => Number.parseFloat(getComputedStyle(element).fontSize));
    expect(await sizeOf('127.0.0.1')).toBeGreaterThan(await sizeOf('Claude'));
    const boxes = await Promise.all(['Deny', 'Allow'].map((name) => page.getByRole('button', { name }).boundingBox()));
    expect(boxes[0]).toMatchObject({ width: boxes[1]?.width, height: boxes[1]?.height, y: boxes[1]?.y });
    await page.setViewportSize({ width: 320, height: 900 });
    expect(await sidewaysRoom(page)).toBe(0);

    await page.getByRole('button', { name: 'Deny' }).click();
    await page.getByText('You can close this.').waitFor();
    expect(program.answers.at(-1)?.searchParams.get('error')).toBe('access_denied');

    await page.goto(asked.href);
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.getByText('You can close this.').waitFor();
    const answer = program.answers.at(-1)?.searchParams ?? new URLSearchParams();
    expect(Object.fromEntries(answer)).toMatchObject({ state: 'a state', iss: service.url });
    await first.transport.finishAuth(answer);

    const { client, connecting } = await connect();
    await connecting;
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('search_changes');

    // The person sees it, and ends it.
    await page.goto(`${service.url}/console/connect`);
    await page.getByRole('button', { name: 'End Claude' }).waitFor({ timeout: 10_000 });
    await checkAccessibility(page);
    await page.getByRole('button', { name: 'End Claude' }).click();
    await page.getByRole('button', { name: 'End it' }).click();
    await page.getByText('You have allowed no program.').waitFor();
    await expect
      .poll(() =>
        client.listTools().then(
          () => 'reads',
          () => 'ended',
        ),
      )
      .toBe('ended');
    await client.close();
  });

  test('all programs of a tenant are under Security', async () => {
    const { open, checkAccessibility } = the();
    const page = await open('security/grants', { scope: 'access.credential_manage' });
    await page.getByRole('heading', { name: 'Programs that signed in' }).waitFor();
    await checkAccessibility(page);
  });

  test('a request that is refused is shown in words, and no site frames the page', async () => {
    const { open, checkAccessibility, server } = the();
    const page = await open('authorize?fault=pkce', { signedOut: true, statuses: [401] });
    await page.getByRole('heading', { name: 'A program asked for access in a way that Annals refuses' }).waitFor();
    await page.getByText('code_challenge_method S256').waitFor();
    await checkAccessibility(page);
    const { headers } = await fetch(`${server.baseUrl}/console/authorize`);
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(headers.get('x-frame-options')).toBe('DENY');
  });
}
