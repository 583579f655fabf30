import { expect, test } from 'vitest';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { seed } from '../../support/oracle/random.ts';
import { trials } from '../../support/oracle/trials.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { runPositionLaw } from '../../support/server/position-law.ts';

const database = closeAfterAll(await createTestDatabase());

// bench/kills also kills the database.
test('positions are dense, one per entry, in commit order, and a reader that follows sees exactly that', {
  timeout: 60_000 * trials(1),
}, async () => {
  const tenant = 'acme';
  await createTenant(database.db, tenant);
  const { faults, positions, committed } = await runPositionLaw({
    ...database,
    tenant,
    seed,
    recorders: 2,
    transactions: trials(6),
    maxDelay: 60,
    maxChanges: 5,
    imports: [1_000],
    kills: trials(3),
  });
  expect(faults).toEqual([]);
  expect(positions).toBeGreaterThan(1_000);
  expect(committed).toBeGreaterThan(2 * 4);
});
