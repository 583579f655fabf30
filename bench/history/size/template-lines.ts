import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { rename } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { DemoChange } from '../../../src/demo/demo-change.ts';
import { generateShopHistory } from '../../../src/demo/generate-shop-history.ts';

const day = 86_400_000;
/** The demo's clock when the template is made: the same template every time. */
const templateNow = Date.UTC(2026, 8, 15, 12);
const templateStart = templateNow - 90 * day;
/** Stands in an id where the number of the period belongs. JSON and the demo's ids are without it. */
const periodMark = '~period~';

/** Milliseconds that one copy of the template covers. */
export const periodLength = 90 * day;

/**
 * Writes so many changes, one a line, oldest first: the histories of as many demo shops as it takes, side by side. A line
 * has the milliseconds since the start of the period, a tab and the change in the format of the import, without its time.
 */
export async function writeTemplate(path: string, lines: number): Promise<void> {
  const draft = `${path}.draft`;
  const file = createWriteStream(draft);
  const shops = openShops(lines);
  for (let written = 0; written < lines; written++) {
    const next = shops.reduce((earliest, shop) => (shop.change.at < earliest.change.at ? shop : earliest));
    if (!file.write(`${templateLine(next.change, next.number)}\n`)) await once(file, 'drain');
    const { value, done } = next.rest.next();
    if (done === true) shops.splice(shops.indexOf(next), 1);
    else next.change = value;
    if (shops.length === 0) throw new Error(`the shops end after ${written} changes`);
  }
  file.end();
  await once(file, 'close');
  await rename(draft, path);
}

interface OpenShop {
  number: number;
  change: DemoChange;
  rest: Generator<DemoChange>;
}

function openShops(lines: number): OpenShop[] {
  // A shop has about 5,000 changes.
  const count = Math.ceil(lines / 4_800) + 1;
  return Array.from({ length: count }, (_none, number) => {
    const rest = generateShopHistory({ seed: number + 1, now: templateNow });
    const { value, done } = rest.next();
    if (done === true) throw new Error('a shop without changes');
    return { number, change: value, rest };
  });
}

function templateLine({ at, ...change }: DemoChange, shop: number): string {
  const suffix = `-${shop}${periodMark}`;
  const related = change.related.map(({ entity, entityId }) => ({ entity, entityId: `${entityId}${suffix}` }));
  return `${at - templateStart}\t${JSON.stringify({ ...change, entityId: `${change.entityId}${suffix}`, related })}`;
}

/** How often a period has each line of the template, each time for shops of its own. */
export const copiesOfLine = 5;
/** Milliseconds between the copies of a line. */
const betweenCopies = 137;

/** The template's lines as the import takes them, with times from `start` on and ids of this period alone. In large chunks. */
export async function* linesOfPeriod(path: string, period: number, start: number): AsyncGenerator<string> {
  let chunk: string[] = [];
  for await (const line of createInterface({ input: createReadStream(path, { highWaterMark: 1024 * 1024 }) })) {
    const tab = line.indexOf('\t');
    const moment = start + Number(line.slice(0, tab));
    for (let copy = 0; copy < copiesOfLine; copy++) {
      const at = new Date(moment + copy * betweenCopies).toISOString();
      chunk.push(`{"at":"${at}",${line.slice(tab + 2).replaceAll(periodMark, `.${period}.${copy}`)}\n`);
    }
    if (chunk.length < 500) continue;
    yield chunk.join('');
    chunk = [];
  }
  yield chunk.join('');
}
