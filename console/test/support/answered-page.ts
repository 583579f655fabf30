import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { builtConsole } from './built-console.ts';

/** Answers of the service by the last part of their path, such as `entries`. */
export type Answers = Readonly<Record<string, string>>;

export const address = 'http://127.0.0.1:9/console/';

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml',
};

const session = {
  tenant: 'acme',
  client: 'client',
  name: 'Robin',
  scopes: ['changelog.changelog_read'],
  by: 'secret',
  expiresAt: '2100-01-01T00:00:00Z',
};

/**
 * Opens the built console without a service: the answers are fixed. For values that take the service longer to record than the
 * page to show.
 */
export async function openAnswered(browser: Browser, answers: Answers): Promise<Page> {
  const context = await browser.newContext({
    reducedMotion: 'reduce',
    locale: 'en-GB',
    viewport: { width: 1280, height: 860 },
  });
  const known: Answers = { session: JSON.stringify(session), ...answers };
  context.setDefaultTimeout(60_000);
  await context.route('**/*', async (route) => {
    const path = new URL(route.request().url()).pathname.replace('/console/', '');
    const [part = '', operation = ''] = [path.split('/')[0], path.split('/').at(-1)];
    const body = known[operation];
    if (part === 'assets') {
      await route.fulfill({ body: await readFile(join(builtConsole, path)), contentType: types[extname(path)] ?? '' });
    } else if (part !== 'api') {
      await route.fulfill({ body: await readFile(join(builtConsole, 'index.html')), contentType: 'text/html' });
    } else if (body === undefined) {
      await route.fulfill({ status: 404, body: '{"type":"resource_not_found","message":"none"}' });
    } else {
      await route.fulfill({ body, contentType: 'application/json' });
    }
  });
  return await context.newPage();
}
