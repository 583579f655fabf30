import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { sealPortion } from '../../../src/proof/log/seal-tenants.ts';
import { openSigner } from '../../../src/proof/log/signer.ts';
import { givePositions } from '../../../src/recording/positions.ts';

// Seals and signs the history of a tenant, as if a minute passed before each portion, until it is killed.
const [url = '', tenant = '', keyFile = ''] = process.argv.slice(2);
const db = createDatabase(createPool(url, { maximum: 2 }));
const signer = openSigner(keyFile, 'annals.example');
for (let round = 0; ; round += 1) {
  try {
    await givePositions(db, tenant);
    await sql`update proof_log set signed_at = null where tenant = ${tenant}`.execute(db);
    await sealPortion(db, tenant, { signer, now: () => Date.now() });
  } catch {
    // The database may be away for a while, and another process may be at it.
    await sleep(50);
  }
  await sleep(5 * (round % 3));
}
