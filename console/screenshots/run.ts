import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { makeDataFolder, removeDataFolder } from '../../test/support/server/data-folder.ts';
import { startChromium } from '../test/support/chromium.ts';
import { allViews, guidePictures } from './all-views.ts';
import { fillDemo, startProvider } from './fill-demo.ts';
import { signIn, startDemo, takeGuidePicture, takeView } from './take.ts';

// npm run screenshots: builds the console and takes the pictures of docs/images again, of a demo that it starts.
// npm run screenshots -- --all FOLDER: every view, light and dark, 1280 and 380 pixels wide.
// With --only NAME: those views whose name begins so.
// The shop has names in Japanese: without a font for them, such as fonts-droid-fallback of Debian, they stay blank.

const { values: options } = parseArgs({ options: { all: { type: 'string' }, only: { type: 'string', default: '' } } });
const folder =
  options.all === undefined ? join(import.meta.dirname, '..', '..', 'docs', 'images') : resolve(options.all);
const dataFolder = await makeDataFolder();
const provider = await startProvider();
const demo = await startDemo(dataFolder, options.all === undefined ? {} : provider.environment);
const browser = await startChromium();
try {
  await mkdir(folder, { recursive: true });
  const { origin } = demo.link;
  const studio = { browser, origin, folder, state: await signIn(browser, demo.link) };
  if (options.all === undefined) {
    for (const picture of guidePictures) await takeGuidePicture(studio, picture);
  } else {
    await fillDemo(studio, provider);
    for (const picture of allViews.filter(({ name }) => name.startsWith(options.only))) {
      await takeView(studio, picture);
      process.stdout.write(`${picture.name}\n`);
    }
  }
} finally {
  await browser.close();
  await demo.stop();
  await Promise.all([provider.vendor.close(), provider.tools.close()]);
  await removeDataFolder(dataFolder);
}
