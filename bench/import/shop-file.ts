import { once } from 'node:events';
import { createWriteStream, existsSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { inventShop } from '../../src/demo/prepared-shop.ts';
import type { DemoChange } from '../../src/demo/shop-file.ts';
import { benchFolder } from '../server.ts';

/** The demo's clock when the file is made: the same file every time. */
const now = Date.UTC(2026, 8, 15, 12);

/**
 * The path of a file with so many changes as NDJSON, oldest first: the histories of as many demo shops as it takes,
 * side by side, each with documents of its own and a millisecond later than the last. Written where it is missing.
 */
export async function shopFile(lines: number): Promise<string> {
  const path = join(benchFolder, `shop-${lines}.ndjson`);
  if (existsSync(path)) return path;
  const history = inventShop(now).changes;
  const changes: { shop: number; change: DemoChange }[] = [];
  for (let shop = 1; changes.length < lines; shop++) {
    for (const change of history) changes.push({ shop, change: { ...change, at: change.at + shop } });
  }
  changes.length = lines;
  changes.sort((a, b) => a.change.at - b.change.at);
  const draft = `${path}.draft`;
  const file = createWriteStream(draft);
  for (const { shop, change } of changes) {
    const line = {
      ...change,
      entityId: `${change.entityId}-${shop}`,
      at: new Date(change.at).toISOString(),
      related: change.related.map((item) => ({ entity: item.entity, entityId: `${item.entityId}-${shop}` })),
    };
    if (!file.write(`${JSON.stringify(line)}\n`)) await once(file, 'drain');
  }
  file.end();
  await once(file, 'close');
  await rename(draft, path);
  return path;
}
