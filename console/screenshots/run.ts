import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { makeDataFolder, removeDataFolder } from '../../test/support/server/data-folder.ts';
import { startChromium } from '../test/support/chromium.ts';
import { allViews, guidePictures } from './all-views.ts';
import { fillDemo, startPartners } from './fill-demo.ts';
import { type Picture, signIn, startDemo, takeGuidePicture, takeView } from './take.ts';

// npm run screenshots: builds the console and takes the pictures of docs/images again, of a demo that it starts.
// npm run screenshots -- --all FOLDER: every view, light and dark, 1440 and 390 pixels wide.
// With --only NAME: those views whose name begins so.
// The shop has names in Japanese: without a font for them, such as fonts-droid-fallback of Debian, they stay blank.

const { values: options } = parseArgs({ options: { all: { type: 'string' }, only: { type: 'string', default: '' } } });
const folder =
  options.all === undefined ? join(import.meta.dirname, '..', '..', 'docs', 'images') : resolve(options.all);
const dataFolder = await makeDataFolder();
const partners = await startPartners(dataFolder);
const demo = await startDemo(dataFolder, partners.environment);
const browser = await startChromium();
try {
  await mkdir(folder, { recursive: true });
  const { origin } = demo.link;
  const studio = { browser, origin, folder, state: await signIn(browser, demo.link) };
  const isChosen = ({ name }: Picture) => name.startsWith(options.only);
  const guide = options.all === undefined ? guidePictures.filter(isChosen) : [];
  // Those of the shop show it as a newcomer finds it.
  for (const picture of guide.filter(({ isFilled = false }) => !isFilled)) await takeGuidePicture(studio, picture);
  await fillDemo(studio, partners);
  for (const picture of guide.filter(({ isFilled = false }) => isFilled)) await takeGuidePicture(studio, picture);
  for (const picture of options.all === undefined ? [] : allViews.filter(isChosen)) {
    await takeView(studio, picture);
    process.stdout.write(`${picture.name}\n`);
  }
} finally {
  await browser.close();
  await demo.stop();
  await partners.close();
  await removeDataFolder(dataFolder);
}
