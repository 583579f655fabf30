import { createQuota } from '../../src/desk/completions/quota.ts';
import { createLogger } from '../../src/http/logger.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { Random } from '../../test/support/oracle/random.ts';
import { makeRandomCall } from '../../test/support/server/budgets.ts';

// One of several processes: makes random calls, until it is killed.
const [, , url = '', tenant = '', atOnce = '16'] = process.argv;
const pool = createPool(url, { maximum: 8 });
const quota = createQuota({ pool, db: createDatabase(pool), logger: createLogger('warn'), maxWait: 200 });
const random = new Random();
let outcomes: Record<string, number> = {};

async function callOnAndOn(): Promise<never> {
  for (;;) {
    const outcome = await makeRandomCall(quota, tenant, random);
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  }
}

setInterval(() => {
  process.send?.(outcomes);
  outcomes = {};
}, 200);
await Promise.all(Array.from({ length: Number(atOnce) }, callOnAndOn));
