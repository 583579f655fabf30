import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeEach, describe, expect, test } from 'vitest';
import { documentLimits } from '../../../src/access/grants/metadata-documents.ts';
import { guardedLookup } from '../../../src/outbound/addresses.ts';
import { HttpClient } from '../../../src/outbound/http-client.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Browser } from '../../support/server/browser.ts';
import { linkFor } from '../../support/server/console-sessions.ts';
import { publicUrl } from '../../support/server/people.ts';
import { ConsentBrowser, TestProgram } from '../../support/server/program.ts';
import { startTestServer } from '../../support/server/server.ts';

/** Requests that came to the host of programs, and its answer. */
const asked: string[] = [];
let answer: (request: IncomingMessage, response: ServerResponse) => void;
const host = createServer((request, response) => {
  asked.push(request.url ?? '');
  answer(request, response);
});
host.listen(0, '127.0.0.1');
await once(host, 'listening');
closeAfterAll({
  close: () => {
    host.closeAllConnections();
    host.close();
  },
});
const { port } = host.address() as AddressInfo;

// Names lead to that host, without TLS.
const plain = new HttpClient({
  guard: (url) =>
    guardedLookup(url, {
      allowed: [{ kind: 'range', address: '127.0.0.0', prefix: 8 }],
      resolve: (_name, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]),
    }),
});
const programClient: Pick<HttpClient, 'send'> = {
  send: (url, request, limits) => plain.send(new URL(url.href.replace('https:', 'http:')), request, limits),
};
let waited = 0;
const server = closeAfterAll(
  await startTestServer({
    environment: { ANNALS_BASE_URL: publicUrl },
    clock: { elapsed: () => performance.now() + waited },
    programClient,
  }),
);
const guarded = closeAfterAll(
  await startTestServer({ environment: { ANNALS_BASE_URL: publicUrl }, database: server.database }),
);
await server.createTenant('acme');
let hosts = 0;

const redirectUri = 'https://program.example/callback';
const metadataOf = (url: string) => ({ client_id: url, client_name: 'Claude', redirect_uris: [redirectUri] });

function answerJson(body: unknown): void {
  answer = (_request, response) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

beforeEach(() => {
  asked.length = 0;
  waited += 60_000;
});

/** Another host each time. */
function address(path = '/client.json'): string {
  hosts += 1;
  return `https://p${hosts}.example:${port}${path}`;
}

async function signedIn(of = server): Promise<ConsentBrowser> {
  const browser = new Browser(of, { publicUrl });
  expect((await browser.redeem((await linkFor(of, 'acme')).fragment)).status).toBe(200);
  return new ConsentBrowser(browser);
}

async function ask(browser: ConsentBrowser, clientId: string, of = server) {
  const program = await TestProgram.register(of, publicUrl, { redirectUri });
  program.clientId = clientId;
  const { headers } = await browser.follow(program.authorizeUrl('acme'));
  const shown = await browser.call('/console/api/authorizations');
  return {
    program,
    location: headers.get('location') ?? '',
    status: shown.status,
    body: (await shown.json()) as Record<string, unknown>,
    retryAfter: shown.headers.get('retry-after'),
  };
}

describe('a program whose client id is the address of its metadata', () => {
  test('is read once its person has signed in, shown with its host, and gets tokens', async () => {
    const url = address();
    answerJson(metadataOf(url));
    const nobody = new ConsentBrowser(new Browser(server, { publicUrl }));
    expect((await ask(nobody, url)).status).toBe(401);
    expect(asked).toEqual([]);

    const browser = await signedIn();
    const { program, status, body } = await ask(browser, url);
    expect(status).toBe(200);
    expect(body).toMatchObject({ name: 'Claude', programHost: new URL(url).host, redirectHost: 'program.example' });
    const { location } = await browser.decide(body.id);
    const tokens = await program.redeem(location);
    expect(tokens.status).toBe(200);
    expect(await program.mayRead(tokens.body.access_token, 'acme')).toBe(true);
    expect(asked).toEqual(['/client.json']);
  });

  test('is not decided on before it was shown', async () => {
    const url = address();
    answerJson(metadataOf(url));
    const program = await TestProgram.register(server, publicUrl, { redirectUri });
    program.clientId = url;
    const browser = await signedIn();
    await browser.follow(program.authorizeUrl('acme'));
    expect((await browser.decide('')).status).toBe(409);
    expect(asked).toEqual([]);
  });

  test('at a private address is refused, without a connection', async () => {
    const { status, body } = await ask(await signedIn(guarded), `https://127.0.0.1:${port}/client.json`, guarded);
    expect([status, body.message]).toEqual([400, expect.stringContaining('could not be read')]);
    expect(asked).toEqual([]);
  });

  test.each([
    'http://p.example/client.json',
    'https://p.example/',
    'https://p.example',
    'https://p.example/a/../client.json',
    'https://user@p.example/client.json',
    'https://p.example/client.json#x',
    'https://P.example/client.json',
    `https://p.example/${'x'.repeat(483)}`,
  ])('is none at %s', async (url) => {
    expect((await ask(await signedIn(), url)).location).toContain('fault=program');
    expect(asked).toEqual([]);
  });
});

describe('a document is refused', () => {
  const page = (status: number, headers: Record<string, string>, body: string) => () => {
    answer = (_request, response) => void response.writeHead(status, headers).end(body);
  };
  const json = { 'content-type': 'application/json' };
  test.each<[string, (url: string) => void, string]>([
    ['of another client', () => answerJson(metadataOf('https://other.example/x')), 'another client_id'],
    ['that is null', () => answerJson(null), 'another client_id'],
    [
      'without this redirect URI',
      (url) => answerJson({ ...metadataOf(url), redirect_uris: ['https://x.example/'] }),
      'redirect',
    ],
    [
      'with a name that turns around',
      (url) => answerJson({ ...metadataOf(url), client_name: '\u202eedualC' }),
      'bidirectional',
    ],
    ['after a redirect', page(302, { location: 'https://program.example/client.json' }, ''), 'status 302'],
    ['of the status 500', page(500, json, '{}'), 'status 500'],
    ['that is no JSON', page(200, json, '<html>'), 'not JSON'],
    ['of another type', page(200, { 'content-type': 'text/html' }, '{}'), 'not JSON'],
    [
      'that is cut',
      () => {
        answer = (_request, response) => {
          response.writeHead(200, { ...json, 'content-length': '100' }).write('{');
          setTimeout(() => response.destroy(), 20);
        };
      },
      'could not be read',
    ],
  ])('%s', async (_what, prepare, fault) => {
    const url = address();
    prepare(url);
    const browser = await signedIn();
    const { status, body } = await ask(browser, url);
    expect([status, body.message]).toEqual([400, expect.stringContaining(fault)]);
    expect((await browser.decide('')).status).toBe(409);
    // That it is refused is remembered for a minute.
    expect((await ask(browser, url)).status).toBe(400);
    expect(asked).toHaveLength(1);
    waited += 60_000;
    await ask(browser, url);
    expect(asked).toHaveLength(2);
  });

  test.each([
    [documentLimits.bytes, 200],
    [documentLimits.bytes + 1, 400],
  ])('of %d bytes: %d', async (bytes, status) => {
    const url = address();
    const text = JSON.stringify(metadataOf(url));
    answer = (_request, response) => void response.writeHead(200, json).end(text.padEnd(bytes));
    expect((await ask(await signedIn(), url)).status).toBe(status);
  });

  test('that takes longer than 5 seconds', async () => {
    const url = address();
    answer = () => {};
    const began = performance.now();
    expect((await ask(await signedIn(), url)).status).toBe(400);
    expect(performance.now() - began).toBeGreaterThan(4_500);
  }, 30_000);
});

describe('a flood of unknown client ids', () => {
  test('costs one request a host and minute', async () => {
    const [one, other] = [address('/one.json'), ''];
    const second = one.replace('/one.json', '/two.json');
    expect(other).toBe('');
    answer = (request, response) =>
      void response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(metadataOf(request.url === '/one.json' ? one : second)));
    const browser = await signedIn();
    expect((await ask(browser, one)).status).toBe(200);
    expect((await ask(await signedIn(), one)).status).toBe(200);
    const { status, retryAfter } = await ask(browser, second);
    expect([status, Number(retryAfter) > 50]).toEqual([429, true]);
    expect(asked).toEqual(['/one.json']);
    waited += 60_000;
    expect((await ask(browser, second)).status).toBe(200);
  });

  test('costs ten requests a person and minute', async () => {
    const browser = await signedIn();
    answerJson({});
    for (let count = 0; count < 10; count += 1) expect((await ask(browser, address())).status).toBe(400);
    expect((await ask(browser, address())).status).toBe(429);
    expect(asked).toHaveLength(10);
    expect((await ask(await signedIn(), address())).status).toBe(400);
    waited += 60_000;
    expect((await ask(browser, address())).status).toBe(400);
  });
});
