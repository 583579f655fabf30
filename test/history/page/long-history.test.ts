import { expect, test } from 'vitest';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Random, seed } from '../../support/oracle/random.ts';
import { openTestHistory } from '../../support/server/history.ts';
import { day, entities, firstRow, now, randomChange } from '../../support/server/random-history.ts';

const tenant = 'acme';
// Eight years of history, in four of the coarsest cells.
const count = 4_000;
const sets = ['{"{0}"}', ''];

const history = closeAfterAll(await openTestHistory(tenant, () => now));
const { database } = history;
const random = new Random(seed);
const changes = Array.from({ length: count }, (_none, index) => ({
  ...randomChange(random, 60),
  at: now - Math.floor((index * 3_000 * day) / count),
  entity: entities[index % 2] ?? 'order',
}));
for (const start of [0, count / 2]) {
  await createRecorder(database.db, tenant, () => now)(changes.slice(start, start + count / 2));
}
await foldHistory(database.db, tenant);
const { kinds } = await firstRow<{ kinds: string }>(
  database,
  `(select '{"{' || string_agg(distinct kind::text, ',') || '}"}' as kinds from change_entry where tenant = $1) as k`,
  [tenant],
);
sets[1] = kinds;

test('a checkpoint is close to its entry, however long before the first entry the window begins', async () => {
  for (const maxNewer of [count / 2, count - 1]) {
    const { newer } = await firstRow<{ newer: number }>(database, 'change_seek($1, $2, $3, $4, 0, null, $5)', [
      tenant,
      ...sets,
      maxNewer,
      count,
    ]);
    expect(newer).toBeLessThanOrEqual(maxNewer);
    expect(maxNewer - newer).toBeLessThan(700);
  }
});
