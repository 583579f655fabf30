import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import pg from 'pg';
import { expect, test } from 'vitest';
import { openEmbeddedDatabase } from '../../../src/postgres/embedded/open-embedded-database.ts';
import { readPostmasterFile, servesCluster } from '../../../src/postgres/embedded/server.ts';
import { isRoot } from '../../../src/postgres/embedded/server-user.ts';
import { trials } from '../../support/oracle/trials.ts';
import { homeOf, makeDataFolder, removeDataFolder } from '../../support/server/data-folder.ts';
import { type Member, startMember } from '../../support/server/member.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

type Step = 'join' | 'join twice' | 'leave first' | 'leave last' | 'kill first' | 'kill last';

test('whatever the order in which processes come, leave and are killed, those present have a server and the last to leave stops it', async () => {
  const dataDir = await makeDataFolder();
  const steps = fc.array(
    fc.constantFrom<Step>('join', 'join twice', 'leave first', 'leave last', 'kill first', 'kill last'),
    { minLength: 4, maxLength: 6 },
  );
  try {
    await fc.assert(
      fc.asyncProperty(steps, (script) => followScript(dataDir, script)),
      { numRuns: trials(2) },
    );
  } finally {
    await removeDataFolder(dataDir);
  }
});

test('where the account of the server cannot reach the data folder its database lives elsewhere, and it says so', async () => {
  const closed = temporaryFolder();
  const dataDir = join(closed, 'data');
  try {
    const first = await startMember(dataDir);
    await ask(first.url);
    const notices: string[] = [];
    const log = (line: string) => void notices.push(line);
    const second = await openEmbeddedDatabase({ dataDir, log, durability: 'none' });
    expect(second.url).toBe(first.url);
    await first.kill();
    await second.release();
    const pointer = await readFile(join(dataDir, 'postgres.location'), 'utf8').catch(() => undefined);
    if (isRoot()) {
      const home = pointer?.trim() ?? '';
      expect(home).toMatch(/^\/var\/lib\/annals\/[0-9a-f]{12}$/);
      expect((await stat(home)).uid).not.toBe(0);
      expect(first.notices).toEqual([expect.stringContaining(`the database lives in ${home}`)]);
      expect(notices).toEqual([]);
    } else {
      expect(pointer).toBeUndefined();
      expect(first.notices).toEqual([]);
    }
  } finally {
    await removeDataFolder(dataDir);
  }
});

async function followScript(dataDir: string, script: Step[]): Promise<void> {
  const present: Member[] = [];
  for (const step of script) {
    const member = step.endsWith('first') ? present.shift() : step.startsWith('join') ? undefined : present.pop();
    if (step.startsWith('leave')) await member?.leave();
    if (step.startsWith('kill')) await member?.kill();
    if (step === 'join') present.push(await startMember(dataDir));
    if (step === 'join twice') present.push(...(await Promise.all([startMember(dataDir), startMember(dataDir)])));
    await Promise.all(present.map(({ url }) => ask(url)));
  }
  // All leave at once while one more arrives, which may be the last.
  const late = openEmbeddedDatabase({ dataDir, log: () => {}, durability: 'none' });
  await Promise.all(present.map((member) => member.leave()));
  await ask((await late).url);
  const cluster = join(await homeOf(dataDir), 'cluster');
  const server = await readPostmasterFile(cluster);
  await (await late).release();
  expect(await readPostmasterFile(cluster)).toBeUndefined();
  expect(server === undefined || (await servesCluster(server.pid, cluster))).not.toBe(true);
}

async function ask(url: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query('select 1');
  await client.end();
}
