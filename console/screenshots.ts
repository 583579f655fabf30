import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { makeDataFolder, removeDataFolder } from '../test/support/server/data-folder.ts';
import { startChromium } from './test/support/chromium.ts';

// Takes the pictures of docs/images anew, of a demo that it starts: npm run screenshots
// The shop has names in Japanese: without a font for them, such as fonts-droid-fallback of Debian, they stay blank.

interface Picture {
  readonly name: string;
  /** Below the address of the console. */
  readonly address: string;
  readonly options?: BrowserContextOptions;
  /** Waits for what the picture shows, after what has to be done for it. */
  readonly ready: (page: Page) => Promise<void>;
}

const wide = { width: 1280, height: 800 };

const pictures: readonly Picture[] = [
  {
    name: 'console-overview',
    address: 'overview',
    ready: async (page) => await page.locator('.bar-chart canvas').first().waitFor(),
  },
  {
    name: 'console-history',
    address: 'history',
    ready: async (page) => await page.locator('.bar-chart canvas').waitFor(),
  },
  {
    name: 'console-change',
    address: `history?${new URLSearchParams({ q: 'entity:WARRANTY_CLAIM type:update' })}`,
    options: { viewport: { width: 1440, height: 800 } },
    ready: async (page) => {
      await page.locator('.entry-link', { hasText: 'resolution' }).first().click();
      await page.locator('.path-item').first().waitFor();
    },
  },
  {
    name: 'console-document',
    address: `document?${new URLSearchParams({ entity: 'product', id: 'brisk-go', changes: '6' })}`,
    ready: async (page) => await page.locator('.json-tree').waitFor(),
  },
  {
    name: 'console-query-dark',
    address: 'history',
    options: { colorScheme: 'dark' },
    ready: async (page) => {
      await page.keyboard.press('/');
      await page.keyboard.type('type:update actor:j');
      await page.getByRole('option').first().waitFor();
    },
  },
];

const folder = join(import.meta.dirname, '..', 'docs', 'images');
const dataFolder = await makeDataFolder();
const demo = await startDemo(dataFolder);
const browser = await startChromium();
try {
  await mkdir(folder, { recursive: true });
  const state = await signIn(browser, demo.link);
  for (const picture of pictures) await take(browser, picture, state);
} finally {
  await browser.close();
  await demo.stop();
  await removeDataFolder(dataFolder);
}

/** Starts the demo of this checkout on a free port. Its output has a link that signs in. */
async function startDemo(dataDir: string): Promise<{ link: URL; stop: () => Promise<void> }> {
  const program = join(import.meta.dirname, '..', 'bin', 'annals.js');
  const env = { ...process.env, PORT: '0', LOG_LEVEL: 'warn', ANNALS_DATA_DIR: dataDir };
  const running = spawn(process.execPath, [program, 'demo'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(running, 'exit');
  let output = '';
  for await (const piece of running.stdout) {
    output += String(piece);
    const [link] = /^http\S+#link=\S+$/m.exec(output) ?? [];
    if (link !== undefined) {
      const stop = async () => {
        running.kill('SIGTERM');
        await ended;
      };
      return { link: new URL(link), stop };
    }
  }
  throw new Error(`The demo ended before it printed a link: ${output}`);
}

async function signIn(opened: Browser, link: URL) {
  const context = await opened.newContext({ locale: 'en-GB' });
  const page = await context.newPage();
  await page.goto(link.href);
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
  const state = await context.storageState();
  await context.close();
  return state;
}

async function take(
  opened: Browser,
  { name, address, options, ready }: Picture,
  storageState: NonNullable<BrowserContextOptions['storageState']>,
) {
  const context = await opened.newContext({
    viewport: wide,
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    reducedMotion: 'reduce',
    storageState,
    ...options,
  });
  const page = await context.newPage();
  await page.goto(`${demo.link.origin}/console/${address}`);
  await page.locator('h1').waitFor();
  await ready(page);
  await page.waitForLoadState('networkidle');
  await page.screenshot({ path: join(folder, `${name}.png`) });
  await context.close();
}
