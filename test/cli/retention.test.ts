import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import { annals, type Outcome } from '../support/server/command.ts';
import { createTestDatabase } from '../support/server/database.ts';

const day = 86_400_000;

const database = closeAfterAll(await createTestDatabase());
const environment = { DATABASE_URL: database.url, ANNALS_SECRET_KEY: randomBytes(32).toString('base64') };
expect((await annals(['tenant', 'create', 'acme'], environment)).code).toBe(0);

async function retention(...args: string[]): Promise<Outcome> {
  return await annals(['retention', ...args], environment);
}

/** Where seven whole UTC days before today begin. A test may run over midnight, so that two days are today. */
function horizonNow(): string {
  return new Date(Math.floor(Date.now() / day) * day - 7 * day).toISOString();
}

function line(daysAgo: number): string {
  const at = new Date(Date.now() - daysAgo * day).toISOString();
  return `{"op":"insert","entity":"order","entityId":"${daysAgo}","at":"${at}","after":{}}\n`;
}

test.each(['0', '-1', '1.5', '1e3', ' 7', '', 'seven', '100001', '9'.repeat(30)])(
  '--keep-days %j is wrong usage, exit 2, and changes nothing',
  async (days) => {
    const { code, stdout, stderr } = await retention('--tenant', 'acme', `--keep-days=${days}`);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('--keep-days with a whole number from 1 to 100000');
    expect((await database.pool.query('select from change_retention')).rowCount).toBe(0);
  },
);

test('without a tenant, without days, or with more than that is wrong usage, exit 2', async () => {
  for (const args of [
    ['--keep-days', '7'],
    ['--tenant', 'acme'],
    ['--tenant', 'acme', '--keep-days', '7', 'more'],
    ['--tenant', 'acme', '--keep-days', '7', '--force'],
  ]) {
    expect(await retention(...args), args.join(' ')).toMatchObject({ code: 2, stdout: '' });
  }
});

test('a tenant that is not there is exit 1', async () => {
  expect(await retention('--tenant', 'nobody', '--keep-days', '7')).toEqual({
    code: 1,
    stdout: '',
    stderr: 'annals: there is no tenant nobody; create it with: annals tenant create nobody\n',
  });
});

test('it answers one JSON object; an import of older changes is counted expired', async () => {
  const before = horizonNow();
  const { code, stdout } = await retention('--tenant', 'acme', '--keep-days', '7');
  const horizon = expect.toBeOneOf([before, horizonNow()]);
  expect({ code, answer: JSON.parse(stdout) }).toEqual({ code: 0, answer: { tenant: 'acme', keepDays: 7, horizon } });
  const imported = await annals(
    ['import', '--tenant', 'acme', '-'],
    environment,
    line(0) + line(6) + line(9) + line(400),
  );
  expect(imported.code).toBe(0);
  expect(JSON.parse(imported.stdout)).toEqual({
    read: 4,
    recorded: 2,
    unchanged: 0,
    duplicate: 0,
    expired: 2,
    rejected: 0,
  });
});

test('more days later keep more only of what is still there', async () => {
  const before = horizonNow();
  const { code, stdout } = await retention('--tenant', 'acme', '--keep-days', '100000');
  const horizon = expect.toBeOneOf([before, horizonNow()]);
  expect({ code, answer: JSON.parse(stdout) }).toEqual({
    code: 0,
    answer: { tenant: 'acme', keepDays: 100_000, horizon },
  });
});
