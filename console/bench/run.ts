import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { createClient } from '../../src/access/oauth/clients.ts';
import { buildApp } from '../../src/app.ts';
import { createContext } from '../../src/context/context.ts';
import { readConfig } from '../../src/core/config/config.ts';
import { scopes } from '../../src/http/scopes.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { changeOfDocuments } from '../../src/recording/change.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { testSecretKeys } from '../../test/support/server/server.ts';
import { startChromium } from '../test/support/chromium.ts';
import { type Figure, Measured } from './measured.ts';

// How long the console's pages take until one can use them, what they load, and how long they hold the browser at a time: with
// millions of changes, and with long ones. README.md says how to run it.
const { values: settings } = parseArgs({
  options: {
    /** A database that bench/history/run.ts has made there. */
    database: { type: 'string', default: 'annals_bench_analysed_3750000' },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench') },
    rounds: { type: 'string', default: '5' },
    /** Measures the pages with long changes alone. */
    long: { type: 'boolean', default: false },
    /** A service that runs already, in place of one that is started; ANNALS_CLIENT_ID and ANNALS_CLIENT_SECRET sign in there. */
    url: { type: 'string' },
  },
});

/** The moment of the last change of the data. */
const historyNow = Date.UTC(2026, 8, 15, 10, 11, 12, 345);

const browser = await startChromium();
try {
  if (settings.url === undefined) await measureHere();
  else await measureThere(settings.url.replace(/\/+$/, ''));
} finally {
  await browser.close();
}

/** The service of this checkout, on databases of its own. */
async function measureHere(): Promise<void> {
  const embedded = await openEmbeddedDatabase({
    dataDir: settings.data,
    log: (line: string) => process.stderr.write(`${line}\n`),
  });
  try {
    if (!settings.long) await measure(embedded.url, settings.database, 'big', historyNow, browser, askHistory);
    await onNewDatabase(embedded.url, 'annals_bench_console', (database) =>
      measure(embedded.url, database, 'long', Date.now(), browser, askLong),
    );
  } finally {
    await embedded.release();
  }
}

/** A service that runs already. Its own processor time is not known here. */
async function measureThere(base: string): Promise<void> {
  const { ANNALS_CLIENT_ID: clientId = '', ANNALS_CLIENT_SECRET: clientSecret = '' } = process.env;
  await measureRounds(base, { clientId, clientSecret }, undefined, browser, askHistory);
}

/** The history of millions: its first page, and a drag over the chart. */
async function askHistory(measured: Measured, address: string): Promise<void> {
  const total = (page: Page) => page.locator('.history-total').textContent();
  const whole = async (page: Page) => {
    await page.locator('.entry-row').first().waitFor();
    await page.locator('.bar-chart canvas').waitFor();
    await page.locator('.facet:last-of-type .facet-value').first().waitFor();
    await page.waitForFunction(() => /^[\d,]+$/.test(document.querySelector('.history-total')?.textContent ?? ''));
  };
  await measured.step('first page of the history', async (page) => {
    await page.goto(`${address}history`);
    await whole(page);
  });
  await measured.step('the same, with the files of the page at hand', async (page) => {
    await page.goto(`${address}history`);
    await whole(page);
  });
  const box = await measured.page.locator('.bar-chart .u-over').boundingBox();
  if (box === null) throw new Error('there is no chart');
  const before = await total(measured.page);
  await measured.page.mouse.move(box.x + box.width * 0.3, box.y + 40);
  await measured.page.mouse.down();
  await measured.page.mouse.move(box.x + box.width * 0.6, box.y + 40, { steps: 4 });
  await measured.step('a drag over the chart, until all of the answer is there', async (page) => {
    await page.mouse.up();
    await page.waitForFunction((was) => document.querySelector('.history-total')?.textContent !== was, before);
    await page.waitForFunction(() => document.querySelector('[aria-busy="true"]') === null);
    await whole(page);
  });
  await measured.step('overview', async (page) => {
    await page.goto(`${address}overview`);
    await page.locator('.busiest-name').first().waitFor();
    await page.locator('.figure').nth(1).waitFor();
  });
}

/** One change of 16 MiB, and a page of changes with 1,000 paths each. */
async function askLong(measured: Measured, address: string): Promise<void> {
  for (const entity of ['text', 'members']) {
    await measured.step(`history with a change of 16 MiB (${entity})`, async (page) => {
      await page.goto(`${address}history?q=entity%3A${entity}`);
      await page.locator('.entry-row').first().waitFor();
    });
    await measured.step('… that change opened', async (page) => {
      await page.locator('.entry-link').first().click();
      await page.locator('.side-panel .path-item').first().waitFor();
    });
    await measured.step('… as JSON', async (page) => {
      await page.locator('.side-panel').getByRole('button', { name: 'JSON', exact: true }).click();
      await page.locator('.lines-view .line').first().waitFor();
    });
  }
  await measured.step('history: a page of changes with 1,000 paths each', async (page) => {
    await page.goto(`${address}history?q=entity%3Awide`);
    await page.locator('.entry-row').nth(49).waitFor();
  });
  await measured.step('… one of them opened', async (page) => {
    await page.locator('.entry-link').first().click();
    await page.locator('.side-panel .path-item').first().waitFor();
  });
}

async function measure(
  server: string,
  database: string,
  tenant: string,
  now: number,
  opened: Browser,
  ask: (measured: Measured, address: string) => Promise<void>,
): Promise<void> {
  const url = new URL(server);
  url.pathname = database;
  const pool = createPool(url.href, { maximum: 1 });
  await migrate(pool);
  await pool.end();
  const context = await createContext({
    config: readConfig({ LOG_LEVEL: 'warn' }),
    databaseUrl: url.href,
    secretKeys: testSecretKeys,
    overrides: { clock: { now: () => now, elapsed: () => performance.now() } },
  });
  const app = await buildApp(context);
  try {
    await createTenant(context.db, tenant);
    if (tenant === 'long') await recordLongChanges(createRecorder(context.db, tenant, () => now));
    const { clientId, clientSecret } = await createClient(context.db, { tenant, scope: scopes.join(' ') });
    const base = await app.listen({ port: 0, host: '127.0.0.1' });
    // A fixed clock would also stop the one that divides long work into slices.
    const clock = tenant === 'long' ? undefined : now;
    await measureRounds(base, { clientId, clientSecret }, clock, opened, ask);
  } finally {
    await app.close();
    await context.close();
  }
}

/** `now` is the time of the browser's clock; left out: that of the machine. */
async function measureRounds(
  base: string,
  client: { readonly clientId: string; readonly clientSecret: string },
  now: number | undefined,
  opened: Browser,
  ask: (measured: Measured, address: string) => Promise<void>,
): Promise<void> {
  const rounds: Figure[][] = [];
  for (let round = 0; round < Number(settings.rounds); round += 1) {
    // Each round begins with an empty cache.
    const window = await opened.newContext({ reducedMotion: 'reduce', locale: 'en-GB' });
    // The overview asks for the last 24 hours by the clock of the browser.
    if (now !== undefined) await window.clock.setFixedTime(now);
    await window.addInitScript(() => {
      globalThis.longTasks = [];
      new PerformanceObserver((list) => {
        globalThis.longTasks?.push(...list.getEntries().map(({ duration }) => duration));
      }).observe({ type: 'longtask', buffered: true });
    });
    const signedIn = await window.request.post(`${base}/console/api/session`, {
      headers: { origin: new URL(base).origin },
      data: client,
    });
    if (!signedIn.ok()) throw new Error(`The service refuses to sign in: ${await signedIn.text()}`);
    const measured = new Measured(await window.newPage());
    measured.page.setDefaultTimeout(120_000);
    await ask(measured, `${base}/console/`);
    rounds.push(measured.figures);
    await window.close();
  }
  print(rounds);
}

async function onNewDatabase(url: string, name: string, work: (name: string) => Promise<void>): Promise<void> {
  const pool = createPool(url, { maximum: 1 });
  await pool.query(`drop database if exists ${name} with (force)`);
  await pool.query(`create database ${name}`);
  try {
    await work(name);
  } finally {
    await pool.query(`drop database if exists ${name} with (force)`);
    await pool.end();
  }
}

function print(rounds: readonly (readonly Figure[])[]): void {
  process.stdout.write(
    '| step | time, ms | KiB | longest task, ms | page, ms of processor | service, ms of processor |\n|---|---:|---:|---:|---:|---:|\n',
  );
  for (const [place, { what }] of (rounds[0] ?? []).entries()) {
    const middle = (of: (figure: Figure) => number) => {
      const sorted = rounds.flatMap((figures) => figures.slice(place, place + 1).map(of)).toSorted((a, b) => a - b);
      return (sorted[Math.floor(sorted.length / 2)] ?? Number.NaN).toFixed(0);
    };
    process.stdout.write(
      `| ${what} | ${middle(({ milliseconds }) => milliseconds)} | ${middle(({ bytes }) => bytes / 1_024)} | ${middle(({ maxTask }) => maxTask)} | ${middle(({ pageTime }) => pageTime)} | ${settings.url === undefined ? middle(({ ownTime }) => ownTime) : '–'} |\n`,
    );
  }
}

/** Records two changes of 16 MiB, one text and 200,000 members, and 100 with 1,000 paths each. */
export async function recordLongChanges(record: ReturnType<typeof createRecorder>): Promise<void> {
  const create = (entity: string, entityId: string, after: string) => {
    const change = changeOfDocuments({
      type: 'create',
      entity,
      entityId,
      actor: 'Robin',
      at: Date.now() - 1_000,
      related: [],
      before: undefined,
      after,
      name: undefined,
    });
    return change === 'unchanged' ? [] : [change];
  };
  const fields = (count: number, text: string) =>
    JSON.stringify(
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`field${index}`, `${text} ${index}`])),
    );
  await record(create('text', '1', JSON.stringify({ text: 'lorem ipsum '.repeat(1_398_000) })));
  await record(create('members', '1', fields(200_000, 'x'.repeat(40))));
  for (let place = 0; place < 100; place += 1)
    await record(create('wide', String(place), fields(1_000, 'x'.repeat(40))));
}
