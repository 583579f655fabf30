import { setTimeout as sleep } from 'node:timers/promises';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { givePositions } from '../../../src/recording/positions.ts';

// Gives positions to the changes of a tenant, and folds them, until it is killed.
const [url = '', tenant = ''] = process.argv.slice(2);
const db = createDatabase(createPool(url, { maximum: 2 }));
for (let round = 0; ; round += 1) {
  try {
    await (round % 7 === 6 ? foldHistory(db, tenant) : givePositions(db, tenant));
  } catch {
    // The database may be away for a while.
    await sleep(100);
  }
  await sleep(round % 4);
}
