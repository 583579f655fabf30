import { randomBytes } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import { createExportHistory } from '../../../src/history/export/export-history.ts';
import { createFindPage, type FindPage } from '../../../src/history/search/find-page.ts';
import type { Dictionary } from '../../../src/history/search/names/dictionary.ts';
import { DictionaryCache } from '../../../src/history/search/names/dictionary-cache.ts';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { openTestHistory } from '../../support/server/history.ts';

const tenant = 'acme';
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
/** Each entry recorded with a new name satisfies all of them. */
const queries = [
  'actor:new*',
  'entity:~^type',
  'compoundLogicalQuery:((actor:~^new) OR (entity:nothing entityId:1))',
  'entity:type* entityId:1',
  'entity:type* entityId:~^1',
];

/** Registers a further name after every read of the names, so that each read of the history finds one more. */
class NamesThatKeepComing extends DictionaryCache {
  recorded = 0;

  override async get(of: string, outdated?: Dictionary): Promise<Dictionary> {
    const dictionary = await super.get(of, outdated);
    await this.record();
    return dictionary;
  }

  async record(): Promise<void> {
    this.recorded += 1;
    const names = { entity: `type${this.recorded}`, actor: `new ${this.recorded}` };
    const rest = {
      identity: randomBytes(16),
      at: now - 1,
      type: 'update',
      entityId: '1',
      related: [],
      paths: '{}',
    } as const;
    await createRecorder(database.db, tenant, () => now)([{ ...names, ...rest }]);
  }
}

let dictionaries: NamesThatKeepComing;
let findPage: FindPage;

const history = closeAfterAll(await openTestHistory(tenant, () => now));
const { database, regexes } = history;

beforeEach(async () => {
  const { pool, db } = database;
  await pool.query(
    'truncate change_entry, change_related, change_delta, change_tally, change_folded, change_kind, change_actor',
  );
  dictionaries = new NamesThatKeepComing(pool);
  findPage = createFindPage({ pool, db, regexes, now: () => now, dictionaries });
  await dictionaries.record();
});

test.each(queries)('a page is complete, however many names are registered while it is read: %s', async (q) => {
  for (let round = 0; round < 3; round++) {
    const { total, entries } = await findPage(tenant, parseQuery(q, changelogDialect), { skip: 0, size: 100 });
    expect(total).toBe(dictionaries.recorded);
    const actors = entries.map((entry) => entry.actor);
    expect(actors).toEqual(Array.from({ length: total }, (_none, place) => `new ${total - place}`));
  }
});

test.each(queries)('an export is complete, however many names are registered while it begins: %s', async (q) => {
  const { db } = database;
  const { run } = createExportHistory({ db, regexes, now: () => now, dictionaries });
  let text = '';
  const { signal } = new AbortController();
  await run({ tenant, q, format: 'NDJSON', askedAt: now, signal }, async (piece) => {
    text += piece.text;
  });
  expect(text.trimEnd().split('\n')).toHaveLength(dictionaries.recorded);
});
