import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { waitForQuiet } from '../test/support/page-measures.ts';

export interface Studio {
  readonly browser: Browser;
  /** Of the service. */
  readonly origin: string;
  readonly state: SignedIn;
  /** Where the pictures go. */
  readonly folder: string;
}

/** Milliseconds. A view of a busy machine comes late. */
const patience = 60_000;

export async function takeGuidePicture(studio: Studio, picture: Picture): Promise<void> {
  const page = await openPicture(studio, picture, { viewport: { width: 1280, height: 800 } });
  await page.screenshot({ path: join(studio.folder, `${picture.name}.png`) });
  await page.context().close();
}

/** Takes a view light and dark, wide and narrow: `NAME-1440-light.png` and three more. */
export async function takeView(studio: Studio, picture: Picture): Promise<void> {
  for (const width of [1440, 390]) {
    const page = await openPicture(studio, picture, { viewport: { width, height: 900 } });
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: join(studio.folder, `${picture.name}-${width}-${colorScheme}.png`) });
    }
    await page.context().close();
  }
}

async function openPicture(
  { browser, origin, state }: Studio,
  { name, address, options, ready }: Picture,
  common: BrowserContextOptions,
): Promise<Page> {
  const context = await browser.newContext({
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    reducedMotion: 'reduce',
    storageState: state,
    ...common,
    ...options,
  });
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  try {
    await page.goto(`${origin}/console/${address}`);
    await page.locator('h1, h2').first().waitFor();
    await ready(page);
    await waitForQuiet(page);
  } catch (error) {
    throw new Error(`The view ${name} did not show what its picture waits for`, { cause: error });
  }
  return page;
}

/** A picture of one view of the console. */
export interface Picture {
  /** That of its file, without the ending. */
  readonly name: string;
  /** Below the address of the console. */
  readonly address: string;
  readonly options?: BrowserContextOptions;
  /** Whether it shows what the demo lacks. */
  readonly isFilled?: boolean;
  /** Waits for what the picture shows, after what has to be done for it. */
  readonly ready: (page: Page) => Promise<void>;
}

/** Waits until the first element of a selector is there. */
export function shows(selector: string): Picture['ready'] {
  return async (page) => await page.locator(selector).first().waitFor();
}

export interface Demo {
  /** Opens the console signed in, once. */
  readonly link: URL;
  stop(): Promise<void>;
}

/** Starts the demo of this checkout on a free port. */
export async function startDemo(dataFolder: string, environment: Readonly<Record<string, string>>): Promise<Demo> {
  const program = join(import.meta.dirname, '..', '..', 'bin', 'annals.js');
  const env = { ...process.env, PORT: '0', LOG_LEVEL: 'fatal', ANNALS_DATA_DIR: dataFolder, ...environment };
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

/** What a browser has to know to be signed in. */
export type SignedIn = NonNullable<BrowserContextOptions['storageState']>;

export async function signIn(browser: Browser, link: URL): Promise<SignedIn> {
  const context = await browser.newContext({ locale: 'en-GB' });
  const page = await context.newPage();
  await page.goto(link.href);
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
  const state = await context.storageState();
  await context.close();
  return state;
}
