import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { waitForQuiet } from '../test/support/quiet.ts';
import type { SignedIn } from './demo.ts';
import type { Picture } from './picture.ts';

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

/** Takes a view light and dark, wide and narrow: `NAME-1280-light.png` and three more. */
export async function takeView(studio: Studio, picture: Picture): Promise<void> {
  for (const width of [1280, 380]) {
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
