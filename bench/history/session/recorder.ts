import { randomBytes } from 'node:crypto';
import { repeat, rest } from '../../../src/core/repeat.ts';
import { Random } from '../../../src/demo/random.ts';
import { foldTenants } from '../../../src/history/tallies/fold.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { tenantsWith } from '../../../src/postgres/tenants/tenants-with.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import type { Change } from '../../../src/recording/change.ts';
import { recordChange } from '../../../src/recording/record-change.ts';

// Records changes as the service does, each in a transaction of its own, and folds them every second as its upkeep does,
// in a process of its own: what that takes is not the readers' processor time. Arguments: the database, the tenant, changes
// a second, and what to add to the clock. Prints once a second how many changes it has recorded; ends with its stdin.
const [url = '', tenant = '', perSecond = '', shift = ''] = process.argv.slice(2);
const pool = createPool(url, { applicationName: 'recorder', maximum: 4 });
const db = createDatabase(pool);
const now = () => Date.now() + Number(shift);
const random = new Random(7);
const stop = new AbortController();
process.stdin.on('end', () => stop.abort()).resume();

const kinds = await rowsOf<{ entity: string; type: Change['type']; related: string[] }>(
  'select entity, type, related_entities as related from change_kind where tenant = $1 order by kind',
);
const actors = await rowsOf<{ name: string }>('select name from change_actor where tenant = $1 order by actor');
const { signal } = stop;
const onError = (error: unknown) => process.stderr.write(`recorder: ${String(error)}\n`);
const folding = repeat({
  every: 1_000,
  signal,
  onError,
  run: () =>
    foldTenants(db, {
      signal,
      onError,
      findTenants: (work) => tenantsWith(db, work),
      rest: (taken) => rest(taken, signal),
    }),
});

let recorded = 0;
const begun = performance.now();
const telling = setInterval(() => process.stdout.write(`${recorded}\n`), 1_000);
while (!signal.aborted) {
  const due = Math.floor(((performance.now() - begun) / 1000) * Number(perSecond));
  while (recorded < due && !signal.aborted) {
    const change = drawChange();
    await inTransaction(db, async (transaction) => await recordChange(transaction, tenant, change, now()));
    recorded += 1;
  }
  await new Promise((resolve) => setTimeout(resolve, 5));
}
clearInterval(telling);
await folding;
await db.destroy();

function drawChange(): Change {
  const kind = kinds[Math.floor(random.next() ** 1.5 * kinds.length)];
  const actor = random.chance(0.1) ? 'system' : actors[Math.floor(random.next() ** 1.5 * actors.length)]?.name;
  if (kind === undefined || actor === undefined) throw new Error('the tenant has no history to go on from');
  const price = random.integer(1, 999);
  return {
    identity: randomBytes(16),
    at: now(),
    type: kind.type,
    entity: kind.entity,
    entityId: `d${random.integer(0, 500_000)}`,
    name: `Document ${random.integer(0, 999)}`,
    actor,
    related: kind.related.map((entity) => ({ entity, entityId: `${entity[0]}${random.integer(0, 2000)}` })),
    paths: `{"price.amount":{"before":${price}.5,"after":${price}.25}}`,
  };
}

async function rowsOf<Row extends object>(text: string): Promise<Row[]> {
  const { rows } = await pool.query<Row>(text, [tenant]);
  return rows;
}
