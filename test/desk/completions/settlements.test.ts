import { expect, test } from 'vitest';
import { createSettlements } from '../../../src/desk/completions/settlements.ts';
import { createLogger } from '../../../src/http/logger.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { eventually } from '../../support/server/patience.ts';

const database = closeAfterAll(await createTestDatabase());

const unstorable = () => database.pool.query(`select '{"model":"\\u0000"}'::jsonb`);
const away = () => database.pool.query('select from no_table_of_this_name');

test('a settlement whose values no database stores is given up, those that failed with it are stored, and any other is tried on', async () => {
  const lines: { level: string; msg: string }[] = [];
  const settlements = createSettlements(createLogger('debug', { write: (line) => void lines.push(JSON.parse(line)) }));
  const tries = { refused: 0, beside: 0, away: 0 };
  await Promise.all([
    settlements.settle(async () => {
      tries.refused += 1;
      await unstorable();
    }),
    settlements.settle(async () => {
      tries.beside += 1;
      // At first it shares the transaction of the other one.
      if (tries.beside === 1) await unstorable();
    }),
    settlements.settle(async () => {
      tries.away += 1;
      if (tries.away < 5) await away();
    }),
  ]);
  await eventually(() => tries).toEqual({ refused: 4, beside: 2, away: 5 });
  expect(lines.filter(({ level }) => level === 'error').map(({ msg }) => msg)).toEqual([
    'a settlement of a call cannot be stored and was dropped',
  ]);
  await settlements.close();
});
