import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { Annals } from '@annals/client';
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import { checkAccessibility } from '../../../console/test/support/accessibility.ts';
import { startChromium } from '../../../console/test/support/chromium.ts';
import { sidewaysRoom } from '../../../console/test/support/page-measures.ts';
import { createShop } from '../../../examples/embedded-viewer/server.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { changeOf } from '../../../test/support/server/history.ts';
import { startTestServer, type TestServer } from '../../../test/support/server/server.ts';
import type { ViewerToken } from '../src/history-element.ts';
import { createReads } from '../src/reads/viewer-reads.ts';
import { buildHosts } from './support/build.ts';
import { type Host, startHost } from './support/host.ts';

const minute = 60_000;
const start = Date.UTC(2026, 8, 15, 10, 11, 12);
/** What the customer's page may see. */
const mine = [{ entity: 'customer', entityId: 'c1' }];
const others = [{ entity: 'customer', entityId: 'c2' }];
const grant = { q: 'related.entityId:c1', subject: 'c1', hide: ['margin'], export: true };

let server: TestServer;
let host: Host;
let browser: Browser;
let context: BrowserContext;
/** The page of all tests: to open another one takes long. */
let shared: Page;
let maker: string;
/** What the next tokens are made of; undefined: the host gives none. */
let given: Record<string, unknown> | undefined = grant;
/** How far the clock of the service is ahead. */
let ahead = 0;
const problems: string[] = [];
/** Statuses that a test provokes: the browser logs each as an error. */
let provoked: RegExp = /^$/;
/** Places of the running test beside the shared ones. */
let ownPlaces: readonly string[] = [];

beforeAll(async () => {
  const folder = await buildHosts();
  [server, browser] = await Promise.all([
    startTestServer({ clock: { now: () => Date.now() + ahead, elapsed: () => performance.now() + ahead } }),
    startChromium({ optimizes: false }),
  ]);
  maker = await server.token('acme');
  host = await startHost({ folder, annalsUrl: server.baseUrl, makeToken });
  await record(
    [
      {
        at: start,
        entity: 'order',
        entityId: 'A-1',
        type: 'create',
        actor: 'Mara',
        paths: '{"status":{"after":"OPEN"},"total":{"after":1199.50}}',
      },
      {
        at: start + minute,
        entity: 'order',
        entityId: 'A-1',
        actor: 'Tom',
        paths: '{"status":{"before":"OPEN","after":"PAID"},"margin":{"before":3,"after":4}}',
      },
      {
        at: start + 2 * minute,
        entity: 'order',
        entityId: 'A-1',
        actor: 'Tom',
        paths:
          '{"status":{"before":"PAID","after":"SHIPPED"},"id":{"before":9007199254740993,"after":9007199254740995}}',
      },
      {
        at: start + 3 * minute,
        entity: 'order',
        entityId: 'A-2',
        actor: 'Mara',
        paths: '{"note":{"before":"<img src=x onerror=alert(1)>","after":"a\\u202eb"}}',
      },
    ],
    mine,
  );
  await record(
    [
      {
        at: start,
        entity: 'order',
        entityId: 'B-9',
        actor: 'Hidden Harry',
        paths: '{"status":{"before":"OPEN","after":"PAID"}}',
      },
    ],
    others,
  );
  context = await browser.newContext({ reducedMotion: 'reduce', locale: 'en-GB', timezoneId: 'Europe/Berlin' });
  context.setDefaultTimeout(60_000);
  shared = await context.newPage();
  context.on('weberror', (error) => problems.push(`an error of the page: ${error.error().stack}`));
  context.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()) && !provoked.test(message.text())) problems.push(message.text());
  });
  context.on('request', (request) => {
    const { origin } = new URL(request.url());
    if (![server.baseUrl, host.url, ...ownPlaces].includes(origin)) problems.push(`a request to ${request.url()}`);
  });
});

afterEach(async () => {
  shared.removeAllListeners('request');
  await shared.unrouteAll();
  await shared.goto('about:blank');
  given = grant;
  provoked = /^$/;
  ownPlaces = [];
  expect(problems.splice(0)).toEqual([]);
});

afterAll(async () => {
  await browser.close();
  await host.close();
  await server.close();
});

async function makeToken(): Promise<ViewerToken> {
  if (given === undefined) throw new Error('nobody is signed in');
  const response = await server.call('/changelog/acme/viewer-tokens', {
    method: 'POST',
    token: maker,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(given),
  });
  if (response.status !== 201) throw new Error(await response.text());
  return (await response.json()) as ViewerToken;
}

async function record(changes: Parameters<typeof changeOf>[0][], related: typeof mine): Promise<void> {
  const recorder = createRecorder(server.context.db, 'acme', () => Date.now());
  await recorder(changes.map((change) => changeOf({ ...change, related })));
}

interface Opened {
  readonly page: Page;
  readonly viewer: Locator;
  /** The addresses of the reads of the history. */
  readonly reads: string[];
}

async function open(path = '/html', { width = 1_000, clock = false } = {}): Promise<Opened> {
  const page = shared;
  const reads: string[] = [];
  page.on('request', (request) => {
    if (request.url().includes('/viewer/acme/changes')) reads.push(request.url());
  });
  if (clock) await page.clock.install();
  await page.setViewportSize({ width, height: 800 });
  await page.goto(`${host.url}${path}`);
  return { page, viewer: page.locator('annals-history .history'), reads };
}

/** Waits for the heading with the number of changes. */
const total = (viewer: Locator, text: string) => viewer.getByRole('heading', { name: text, exact: true }).waitFor();

test('a page without storage, and with a strict policy and trusted types, shows what its token allows, as text', async () => {
  const { page, viewer } = await open();
  await total(viewer, '4 changes');
  expect(await page.evaluate(() => document.documentElement.dataset.storage)).toBe('SecurityError');
  const text = await viewer.textContent();
  expect(text).toContain('Order A-1 was changed by Tom');
  expect(text).toContain('Status: from PAID to SHIPPED');
  expect(text).toContain('Id: from 9007199254740993 to 9007199254740995');
  expect(text).toContain('Total: 1199.50');
  expect(text).toContain('Margin: hidden');
  expect(text).toContain('<img src=x onerror=alert(1)>');
  expect(text).toContain('aU+202Eb');
  expect(text).not.toMatch(/B-9|Harry/);
  expect(await viewer.locator('img').count()).toBe(0);
  const people = viewer.getByLabel('Person').locator('option');
  await expect.poll(() => people.allTextContents()).toEqual(['Anyone', 'Mara', 'Tom']);
  await checkAccessibility(page);
});

test('who exactly made a change, and for whom, is shown by a token that shows all of it', async () => {
  const who = { actorId: 'u-17', onBehalfOf: { name: 'Acme Ltd', id: 'c-1' } };
  const at = start + 10 * minute;
  const changes = [
    { at, entity: 'ticket', entityId: 'T-1', actor: 'Mara', paths: '{"a":{"after":1}}' },
    { at: at + 1, entity: 'ticket', entityId: 'T-2', actor: 'u-18', paths: '{"a":{"after":1}}' },
  ].map((change) => changeOf({ ...change, related: [{ entity: 'customer', entityId: 'exact' }] }));
  const [first, second] = changes;
  if (first === undefined || second === undefined) throw new Error('There are two changes.');
  await createRecorder(server.context.db, 'acme', () => Date.now())([
    { ...first, ...who },
    { ...second, actorId: 'u-18' },
  ]);
  given = { ...grant, q: 'related.entityId:exact', actors: 'all' };
  const { page, viewer } = await open('/html', { width: 320 });
  await total(viewer, '2 changes');
  const titles = viewer.locator('.title');
  await expect
    .poll(() => titles.allTextContents())
    .toEqual(['Ticket T-2 was changed by u-18', 'Ticket T-1 was changed by Mara (u-17) on behalf of Acme Ltd (c-1)']);
  expect(await sidewaysRoom(page)).toBe(0);
  await checkAccessibility(page, 'annals-history');
  given = { ...grant, q: 'related.entityId:exact' };
  await page.reload();
  await total(viewer, '2 changes');
  await expect
    .poll(() => titles.allTextContents())
    .toEqual(['Ticket T-2 was changed by u-18', 'Ticket T-1 was changed by Mara']);
});

test('a list of objects is a table that tells apart what was added, removed, moved and changed, in the words of the host', async () => {
  const item = (product: string, quantity: string, more = '') =>
    `{"product":"${product}","quantity":${quantity}${more}}`;
  const before = `[${[item('cup', '1.10'), item('jug', '2'), item('mill', '3', ',"price":{"amount":7.50}'), item('lid', '4')]}]`;
  const after = `[${[item('lid', '4'), item('cup', '1.1'), item('mill', '3', ',"price":{"amount":7.50}'), item('te\\u202ea', '9007199254740993')]}]`;
  const customer = [{ entity: 'customer', entityId: 'list' }];
  await record(
    [
      {
        at: start,
        entity: 'order',
        entityId: 'L-1',
        actor: 'Mara',
        paths: `{"items":{"before":${before},"after":${after}}}`,
      },
    ],
    customer,
  );
  given = { q: 'related.entityId:list', subject: 'list', actors: true };
  onTestFinished(() => {
    given = grant;
  });
  const { page, viewer } = await open('/html', { width: 390 });
  await total(viewer, '1 change');
  const cells = (of: string) =>
    viewer
      .locator(`.list-table ${of}`)
      .evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent).join('|')));
  expect(await cells('thead tr')).toEqual(['Change|Place|Product|Quantity|Price']);
  expect(await cells('tbody tr')).toEqual([
    'Moved|4 → 1|lid|4|',
    'Changed|2|cup|1.10 → 1.1|',
    'Removed|2|jug|2|',
    '|3|mill|3|Amount: 7.50',
    'Added|4|teU+202Ea|9007199254740993|',
  ]);
  expect(await sidewaysRoom(page)).toBe(0);
  await checkAccessibility(page, 'annals-history');
  await page.evaluate(() => document.querySelector('annals-history')?.setAttribute('lang', 'de'));
  await expect.poll(() => cells('thead tr')).toEqual(['Änderung|Platz|Product|Quantity|Price']);
});

test('on 320 pixels, from right to left and in German nothing scrolls sideways, and axe finds nothing', async () => {
  const { page, viewer } = await open('/html', { width: 320 });
  await total(viewer, '4 changes');
  expect(await sidewaysRoom(page)).toBe(0);
  await page.evaluate(() => {
    document.documentElement.dir = 'rtl';
    document.querySelector('annals-history')?.setAttribute('lang', 'de');
  });
  await total(viewer, '4 Änderungen');
  expect(await viewer.textContent()).toContain('Status: von PAID auf SHIPPED');
  expect(await sidewaysRoom(page)).toBe(0);
  await viewer.getByLabel('Zeitraum').selectOption('days');
  await viewer.getByLabel('Von', { exact: true }).fill('2026-09-15');
  await total(viewer, '4 Änderungen');
  expect(await sidewaysRoom(page)).toBe(0);
  await checkAccessibility(page, 'annals-history');
});

test.each(['/react', '/vue'])(
  'in %s it takes properties, and asks nothing anew when its page draws again',
  async (path) => {
    const before = host.asked();
    const { page, viewer, reads } = await open(path);
    await total(viewer, '4 changes');
    await page.getByRole('button', { name: 'Drawn 1' }).click();
    await page.getByRole('button', { name: 'Drawn 2' }).waitFor();
    await viewer.getByLabel('Kind of change').selectOption('create');
    await total(viewer, '1 change');
    expect(reads.length).toBe(2);
    expect(host.asked() - before).toBe(1);
  },
);

test('people search by words, kind and person, open a document and come back, with the keyboard alone; the host may open documents itself, and its words are shown and searched', async () => {
  const { page, viewer } = await open();
  await total(viewer, '4 changes');
  await page.keyboard.press('Tab');
  await page.keyboard.type('shipped');
  await total(viewer, '1 change');
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type('") OR (actor:*');
  await viewer.getByText('No changes found').waitFor();
  await viewer.getByRole('button', { name: 'Clear filters' }).press('Enter');
  await total(viewer, '4 changes');
  await viewer.getByRole('option', { name: 'Tom' }).waitFor({ state: 'attached' });
  await viewer.getByLabel('Person').focus();
  // One key: a list begins a new word after a second, which a slow machine may take for one.
  await page.keyboard.press('T');
  await total(viewer, '2 changes');
  await viewer.getByRole('button', { name: 'Order A-1' }).first().press('Enter');
  await total(viewer, 'Order A-1 3 changes');
  await viewer.getByRole('button', { name: 'All changes' }).press('Enter');
  await total(viewer, '2 changes');
  await viewer.getByRole('button', { name: 'Clear filters' }).press('Enter');
  await total(viewer, '4 changes');

  await page.evaluate(() => {
    const history = document.querySelector('annals-history');
    if (history === null) return;
    history.messages = { entities: { order: 'Bestellung' }, values: { status: { SHIPPED: 'unterwegs' } } };
    history.addEventListener('annals-document', (event) => {
      event.preventDefault();
      document.title = event.detail.entityId;
    });
  });
  await viewer.getByRole('button', { name: 'Bestellung A-2' }).click();
  await expect.poll(() => page.title()).toBe('A-2');
  await viewer.getByRole('searchbox').fill('unterwegs');
  await total(viewer, '1 change');
  expect(await viewer.textContent()).toContain('Status: from PAID to unterwegs');
});

test('what is chosen while somebody writes stays, and a search that the service refuses is asked once', async () => {
  provoked = /status of 400/;
  const { page, viewer, reads } = await open('/html', { clock: true });
  await total(viewer, '4 changes');
  await page.clock.pauseAt(await page.evaluate(() => Date.now() + 10_000));
  await viewer.getByRole('searchbox').fill('open');
  await viewer.getByLabel('Kind of change').selectOption('update');
  await page.clock.runFor(1_000);
  await page.clock.resume();
  await total(viewer, '1 change');
  expect(await viewer.getByRole('searchbox').inputValue()).toBe('open');
  await page.route('**/viewer/acme/changes**', (route) =>
    route.request().url().includes('actor') && route.request().method() === 'GET'
      ? route.fulfill({ status: 400, headers: { 'access-control-allow-origin': '*' }, body: '{}' })
      : route.continue(),
  );
  const before = reads.length;
  await viewer.getByRole('searchbox').fill('paid');
  await viewer.getByRole('alert').filter({ hasText: 'The history cannot be shown just now.' }).waitFor();
  await page.unroute('**/viewer/acme/changes**');
  await viewer.getByRole('button', { name: 'Try again' }).click();
  await total(viewer, '2 changes');
  expect(reads.length - before).toBe(2);
});

test('a list tells how many changes are new and does not move, and pages stay those of the moment', async () => {
  given = { ...grant, q: 'related.entityId:c3' };
  const related = [{ entity: 'customer', entityId: 'c3' }];
  const changeAt = (at: number, entityId: string) => ({ at, entityId, paths: '{"a":{"before":1,"after":2}}' });
  await record(
    ['D-1', 'D-2', 'D-3', 'D-4'].map((id, index) => changeAt(start + index * minute, id)),
    related,
  );
  const { page, viewer } = await open('/html', { clock: true });
  await page.locator('annals-history').evaluate((element) => element.setAttribute('page-size', '2'));
  await viewer.getByText('Page 1 of 2').waitFor();
  const first = viewer.getByRole('listitem').first();
  const place = await first.boundingBox();
  await record([changeAt(start + 9 * minute, 'D-9')], related);
  // The clock of the reader's device may be put back.
  await page.clock.setSystemTime(await page.evaluate(() => Date.now() - 5_000));
  await page.clock.fastForward(31_000);
  await viewer.getByRole('button', { name: '1 new change: show' }).waitFor();
  expect(await first.boundingBox()).toEqual(place);
  expect(await first.textContent()).toContain('D-4');
  await viewer.getByRole('button', { name: 'Older' }).click();
  await expect.poll(() => first.textContent()).toContain('D-2');
  await viewer.getByRole('button', { name: '1 new change: show' }).click();
  await total(viewer, '5 changes');
  expect(await first.textContent()).toContain('D-9');
});

test('it asks for a token at nine tenths of its life, and for one alone where the service refuses it', async () => {
  given = { ...grant, expiresIn: 3_600 };
  const before = host.asked();
  const { page, viewer } = await open('/html', { clock: true });
  await total(viewer, '4 changes');
  expect(host.asked() - before).toBe(1);
  // The clock goes on meanwhile, on a busy machine for some seconds.
  await page.clock.fastForward(3_200_000);
  expect(host.asked() - before).toBe(1);
  const renewed = page.waitForResponse('**/viewer-token');
  await page.clock.fastForward(41_000);
  await renewed;
  expect(host.asked() - before).toBe(2);
  // For the service the tokens have ended. The reader goes on.
  ahead += 3_700_000;
  provoked = /status of 401/;
  await viewer.getByLabel('Kind of change').selectOption('update');
  await total(viewer, '3 changes');
  expect(host.asked() - before).toBe(3);
});

test('calls that the service refuses at the same time ask for one token', async () => {
  let asked = 0;
  const { changes, values, end } = createReads({
    baseUrl: `${server.baseUrl}/`,
    tenant: 'acme',
    async getToken() {
      asked += 1;
      return asked === 1 ? { token: 'annals_view_ended', expiresIn: 600 } : await makeToken();
    },
  });
  const { signal } = new AbortController();
  const q = 'occurredAt:>="1970-01-01T00:00:00Z"';
  const [page, ...found] = await Promise.all([
    changes({ q, page: 1, size: 1 }, signal),
    values('entity', q, signal),
    values('actor', q, signal),
  ]);
  end();
  expect(page.totalElements).toBe(4);
  expect(found).toEqual([['order'], ['Mara', 'Tom']]);
  expect(asked).toBe(2);
});

test('a token that is refused for good, or that the host does not give, is told in words with a way on', async () => {
  provoked = /status of (?:401|403|502)/;
  given = undefined;
  const { page, viewer } = await open();
  await viewer.getByRole('alert').filter({ hasText: 'This page could not get access to the history.' }).waitFor();
  await page.route('**/viewer/acme/**', (route) =>
    route.fulfill({ status: 401, headers: { 'access-control-allow-origin': '*' }, body: '{}' }),
  );
  given = grant;
  await viewer.getByRole('button', { name: 'Try again' }).click();
  await viewer.getByRole('alert').filter({ hasText: 'You may no longer see this history.' }).waitFor();
  expect(await viewer.getByText('No changes').count()).toBe(0);
  await page.unroute('**/viewer/acme/**');
  await viewer.getByRole('button', { name: 'Try again' }).click();
  await total(viewer, '4 changes');
});

test('429 and a service that is away are told in words, heed Retry-After, and pass by themselves', async () => {
  provoked = /status of 429|ERR_CONNECTION_REFUSED/;
  const page = shared;
  await page.clock.install();
  let calls = 0;
  await page.route('**/viewer/acme/**', async (route) => {
    if (route.request().method() === 'GET') calls += 1;
    const headers = {
      'access-control-allow-origin': '*',
      'access-control-expose-headers': 'Retry-After',
      'retry-after': '40',
    };
    await route.fulfill({ status: 429, headers, body: '{}' });
  });
  await page.goto(`${host.url}/html`);
  const viewer = page.locator('annals-history .history');
  await viewer.getByRole('alert').filter({ hasText: 'Many people are looking at their history just now.' }).waitFor();
  await viewer.getByText(/Trying again in (?:3\d|40) seconds/).waitFor();
  await page.clock.fastForward(30_000);
  expect(calls).toBe(1);
  await page.unroute('**/viewer/acme/**');
  await page.clock.fastForward(11_000);
  await total(viewer, '4 changes');
  // What is shown stays, and says since when.
  await page.route('**/viewer/acme/**', (route) => route.abort('connectionrefused'));
  await page.clock.fastForward(31_000);
  await viewer.getByText('The history cannot be reached just now. Not updated since').waitFor();
  await total(viewer, '4 changes');
  await page.unroute('**/viewer/acme/**');
  await viewer.getByRole('button', { name: 'Try again' }).click();
  await viewer.getByText('Not updated since').waitFor({ state: 'detached' });
});

test('while the service is away the list stays whatever one clicks, with one line, and goes on by itself', async () => {
  provoked = /ERR_/;
  const { database } = server;
  let second = await startTestServer({ database });
  const annalsUrl = second.baseUrl;
  const itsHost = await startHost({ folder: await buildHosts(), annalsUrl, makeToken });
  onTestFinished(() => itsHost.close());
  ownPlaces = [annalsUrl, itsHost.url];
  const page = shared;
  await page.goto(`${itsHost.url}/html`);
  const viewer = page.locator('annals-history .history');
  await total(viewer, '4 changes');
  await viewer.getByLabel('Person').locator('option').nth(2).waitFor({ state: 'attached' });
  await second.close();
  const requests: number[] = [];
  page.on('request', (request) => request.url().startsWith(annalsUrl) && requests.push(Date.now()));
  await viewer.getByLabel('Person').selectOption('Tom');
  const line = viewer.getByText('The history cannot be reached just now. Not updated since');
  await line.waitFor();
  expect(await viewer.locator('.change').count()).toBe(4);
  await viewer.getByRole('button', { name: 'Order A-2' }).click();
  await line.waitFor();
  expect(await viewer.locator('.change').count()).toBe(4);
  expect(await viewer.locator('.notice').count()).toBe(0);
  await checkAccessibility(page);
  await viewer.locator('.back').click();
  await line.waitFor();
  // Each click is read twice, and then after 1.5 to 3 s.
  expect(requests.length).toBeLessThanOrEqual(8);
  second = await startTestServer({ database, port: Number(new URL(annalsUrl).port) });
  await page.evaluate(() => dispatchEvent(new Event('online')));
  await total(viewer, '2 changes');
  expect(await line.count()).toBe(0);
  expect(await viewer.getByLabel('Person').inputValue()).toBe('Tom');
  await second.close();
});

test('the first token may come with the page, which then asks for the next one alone', async () => {
  const page = await context.newPage();
  onTestFinished(() => page.close());
  const before = host.asked();
  const first = await makeToken();
  // As a page that has the token from its server sets it: before the element is known.
  await page.addInitScript((token) => {
    new MutationObserver((_, observer) => {
      const history = document.querySelector('annals-history');
      if (history === null) return;
      observer.disconnect();
      history.token = token;
    }).observe(document, { childList: true, subtree: true });
  }, first);
  await page.goto(`${host.url}/html`);
  const viewer = page.locator('annals-history .history');
  await total(viewer, '4 changes');
  expect(host.asked()).toBe(before);
  // One that the service refuses is followed by one of the host's.
  provoked = /status of 401/;
  await page.evaluate(() => {
    const old = document.querySelector('annals-history');
    const next = document.createElement('annals-history');
    Object.assign(next, { token: { token: 'invented', expiresIn: 600 }, getToken: old?.getToken, range: 'all' });
    Object.assign(next, { baseUrl: old?.baseUrl, tenant: old?.tenant });
    old?.replaceWith(next);
  });
  await total(viewer, '4 changes');
  expect(host.asked()).toBe(before + 1);
});

test.each(['ar', 'he'])(
  'where the language is written from right to left, so is all that it shows: %s',
  async (lang) => {
    const { page, viewer } = await open('/html', { width: 390 });
    await total(viewer, '4 changes');
    await page.evaluate((tag) => document.querySelector('annals-history')?.setAttribute('lang', tag), lang);
    await expect.poll(() => viewer.getAttribute('dir')).toBe('rtl');
    const [mark, title] = await Promise.all(
      ['.mark', '.title'].map((part) => viewer.locator(part).first().boundingBox()),
    );
    expect(mark?.x).toBeGreaterThan((title?.x ?? 0) + (title?.width ?? 0) - 1);
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page);
    await page.evaluate(() => document.querySelector('annals-history')?.setAttribute('lang', 'de'));
    await expect.poll(() => viewer.getAttribute('dir')).not.toBe('rtl');
  },
);

test('the list is had as a file, with what is masked there; where the token hides who made changes nobody is named, offered or searched for', async () => {
  const { page, viewer } = await open('/react');
  await viewer.getByLabel('Person').selectOption('Tom');
  await total(viewer, '2 changes');
  const download = page.waitForEvent('download');
  await viewer.getByRole('button', { name: 'Download CSV' }).click();
  const text = await readFile(await (await download).path(), 'utf8');
  expect(text.trimEnd().split('\r\n')).toHaveLength(3);
  expect(text).toContain('9007199254740995');
  expect(text).toContain('********');
  provoked = /status of 403/;
  given = { ...grant, export: false, actors: false };
  const second = (await open('/react')).viewer;
  await total(second, '4 changes');
  expect(await second.textContent()).not.toMatch(/Mara|Tom/);
  await second.getByRole('button', { name: 'Download CSV' }).click();
  await second.getByText('This page may not download the changes.').waitFor();
  await second.getByRole('searchbox').fill('mara');
  await second.getByText('No changes found').waitFor();
  expect(await second.getByLabel('Person').count()).toBe(0);
});

test('the shop of the examples gives each customer a token for their own changes alone, whatever the page says', async () => {
  const token = await server.token('demo');
  const recorder = createRecorder(server.context.db, 'demo', () => Date.now());
  const paths = '{"internalNote":{"before":"a","after":"b"}}';
  await recorder(
    ['C-2001', 'C-2002'].map((id) =>
      changeOf({ at: Date.now(), entityId: `of ${id}`, paths, related: [{ entity: 'customer', entityId: id }] }),
    ),
  );
  const annals = new Annals({ baseUrl: server.baseUrl, tenant: 'demo', token: () => token });
  const shop = createShop(annals, server.baseUrl).listen(0, '127.0.0.1');
  onTestFinished(() => void shop.close());
  await once(shop, 'listening');
  const url = `http://127.0.0.1:${(shop.address() as AddressInfo).port}`;
  for (const id of ['C-2001', 'C-2002']) {
    const answer = await fetch(`${url}/viewer-token?customer=C-2001`, {
      method: 'POST',
      headers: { cookie: `customer=${id}` },
    });
    const { token: viewerToken } = (await answer.json()) as ViewerToken;
    const seen = await server.call('/viewer/demo/changes', { token: viewerToken });
    const { items } = (await seen.json()) as { items: unknown[] };
    expect(items).toMatchObject([{ entityId: `of ${id}`, paths: { internalNote: { after: '********' } } }]);
  }
  const page = await fetch(url);
  expect(page.headers.get('content-security-policy')).toContain("script-src 'self'; style-src 'self'; ");
  expect(await page.text()).toContain(`base-url="${server.baseUrl}"`);
});
