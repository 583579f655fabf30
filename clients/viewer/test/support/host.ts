import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

export interface Host {
  readonly url: string;
  /** How often its pages have asked for a token. */
  readonly asked: () => number;
  close(): Promise<void>;
}

/**
 * A platform's own server, with pages that hold the viewer: `/html`, `/react` and `/vue`. `makeToken` answers
 * `getToken()`.
 */
export async function startHost(options: {
  folder: string;
  annalsUrl: string;
  makeToken: () => Promise<object>;
}): Promise<Host> {
  const { folder, annalsUrl, makeToken } = options;
  let asked = 0;
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://host');
    // The sandboxed page has no origin.
    response.setHeader('access-control-allow-origin', '*');
    if (pathname === '/viewer-token') {
      asked += 1;
      const answer = await makeToken().catch(() => undefined);
      if (answer === undefined) response.writeHead(502).end();
      else send(response, 'application/json', JSON.stringify(answer));
    } else if (pathname.endsWith('.js')) {
      send(response, 'text/javascript', await readFile(join(folder, pathname)));
    } else if (/^\/(?:html|react|vue)$/.test(pathname)) {
      response.setHeader('content-security-policy', policyOf(pathname, annalsUrl));
      send(response, 'text/html; charset=utf-8', page(pathname.slice(1), annalsUrl));
    } else {
      response.writeHead(204).end();
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    asked: () => asked,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function policyOf(pathname: string, annalsUrl: string): string {
  const policies = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `connect-src 'self' ${annalsUrl}`,
    "require-trusted-types-for 'script'",
  ];
  // As in a frame of a third party: no origin, and so no storage. Nobody makes a trusted type. Vue makes a policy of
  // its own.
  return (
    pathname === '/html' ? [...policies, "trusted-types 'none'", 'sandbox allow-scripts allow-downloads'] : policies
  ).join('; ');
}

function page(host: string, annalsUrl: string): string {
  const isHtml = host === 'html';
  const element = `<annals-history base-url="${annalsUrl}" tenant="acme" range="all" csv></annals-history>`;
  // Frameworks look at an element when they make it. A page sets a property when it likes.
  const scripts = isHtml ? [host, 'viewer'] : ['viewer', host];
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Your account</title>
${scripts.map((name) => `<script type="module" src="/${name}.js"></script>`).join('')}</head>
<body><main><h1>Your account</h1>${isHtml ? element : ''}<div id="app" data-annals="${annalsUrl}"></div></main></body></html>`;
}

function send(response: ServerResponse, type: string, body: string | Uint8Array): void {
  response.writeHead(200, { 'content-type': type }).end(body);
}
