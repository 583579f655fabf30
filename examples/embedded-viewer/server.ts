// A shop whose customers see the history of their own orders in their account page. Run it beside "annals demo", with the exports that it
// prints: npx node examples/embedded-viewer/server.ts
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Annals, ViewerToken } from '@annals/client';
import { and, elemMatch, entity, entityId, or } from '@annals/client/query';
import { demoClient } from '../annals.ts';
import { setting } from '../token.ts';
import { type Customer, customers, recordOrders } from './orders.ts';

/** A token that shows a customer their own orders and account alone, without the notes of the shop's people. */
async function makeViewerToken(annals: Annals, { id }: Customer): Promise<ViewerToken> {
  const orders = and(entity('order'), elemMatch({ entity: 'customer', entityId: id }));
  const account = and(entity('customer'), entityId(id));
  return await annals.viewerTokens.create({
    q: String(or(orders, account)),
    hide: ['internalNote', 'internalRating'],
    subject: `customer ${id}`,
    export: true,
  });
}

/** The shop's server: the account page, and a viewer token for whoever is signed in. */
export function createShop(annals: Annals, annalsUrl: string): Server {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `connect-src 'self' ${new URL(annalsUrl).origin}`,
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
  return createServer((request, response) => {
    response.setHeader('content-security-policy', policy).setHeader('cache-control', 'no-store');
    answer(request, response, { annals, annalsUrl }).catch((error: unknown) => {
      console.error(error);
      if (!response.headersSent) response.writeHead(502);
      response.end();
    });
  });
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { annals, annalsUrl }: { annals: Annals; annalsUrl: string },
): Promise<void> {
  const { method, url = '/' } = request;
  const { pathname, searchParams } = new URL(url, 'http://shop.example');
  const customer = signedIn(request);
  switch (`${method} ${pathname}`) {
    case 'GET /':
      return send(response, 'text/html; charset=utf-8', await accountPage(customer, annalsUrl));
    // An example signs in without a password. The cookie goes to no other site.
    case 'POST /sign-in':
      response.setHeader(
        'set-cookie',
        `customer=${known(searchParams.get('as')).id}; HttpOnly; SameSite=Strict; Path=/`,
      );
      response.writeHead(303, { location: '/' }).end();
      return;
    // The page's getToken() calls this. Who is signed in decides what the token shows, and nothing that the page says.
    case 'POST /viewer-token':
      return send(response, 'application/json', JSON.stringify(await makeViewerToken(annals, customer)));
    case 'GET /viewer.js':
      return send(response, 'text/javascript', await readFile(fileURLToPath(import.meta.resolve('@annals/viewer'))));
    case 'GET /account.js':
      return send(response, 'text/javascript', await readFile(join(folder, 'account.js')));
    case 'GET /account.css':
      return send(response, 'text/css', await readFile(join(folder, 'account.css')));
    default:
      response.writeHead(404).end();
  }
}

const folder = join(import.meta.dirname, 'public');

function signedIn({ headers }: IncomingMessage): Customer {
  return known(/(?:^|; )customer=([\w-]+)/.exec(headers.cookie ?? '')?.[1]);
}

function known(id: string | null | undefined): Customer {
  const [first] = customers;
  const customer = customers.find((one) => one.id === id) ?? first;
  if (customer === undefined) throw new Error('The shop has no customers.');
  return customer;
}

function send(response: ServerResponse, type: string, body: string | Uint8Array): void {
  response.writeHead(200, { 'content-type': type, 'x-content-type-options': 'nosniff' }).end(body);
}

async function accountPage({ id, name }: Customer, annalsUrl: string): Promise<string> {
  const page = await readFile(join(folder, 'account.html'), 'utf8');
  const other = customers.find((one) => one.id !== id);
  const values: Readonly<Record<string, string>> = {
    name,
    annalsUrl,
    otherId: other?.id ?? id,
    otherName: other?.name ?? name,
  };
  return page.replace(/\{\{(\w+)\}\}/g, (_, key: string) => escaped(values[key] ?? ''));
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

if (import.meta.main) {
  await recordOrders(demoClient(), setting('ANNALS_RECORDER_URL'));
  const port = Number(process.env.PORT ?? 4100);
  const shop = createShop(demoClient('changelog.viewer_issue'), setting('ANNALS_URL')).listen(port, '127.0.0.1');
  await once(shop, 'listening');
  console.log(`the shop is at http://127.0.0.1:${(shop.address() as AddressInfo).port}/`);
}
