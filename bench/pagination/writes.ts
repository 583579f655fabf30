import type { Context } from '../../src/context/context.ts';
import { recordChange } from '../../src/recording/record-change.ts';
import { dropSortIndex, listSortIndexes } from '../../src/tenants/custom-entities/sort-indexes.ts';
import { createInstanceWrites } from '../../src/tenants/custom-entities/write-instances.ts';
import { Random } from '../../test/support/oracle/random.ts';
import { quantile, ratio, table } from './table.ts';

const random = new Random();
const clients = 8;
const turns = 8;
const secondsOfTurn = 3;

/**
 * Writes a second of one tenant with 8 clients, with recording on and off, turn by turn: below HTTP, whose share would
 * only hide the difference. Every second write makes an instance, the others replace one.
 */
export async function measureWrites(context: Context): Promise<string> {
  const rows: string[][] = [];
  const indexes = await listSortIndexes(context.db);
  rows.push(await compare(context, `with ${indexes.length} indexes`));
  for (const { sort } of indexes) if (sort !== null) await dropSortIndex(context.db, sort);
  rows.push(await compare(context, 'without an index'));
  return [
    `Writes a second of one tenant, ${clients} clients, median of ${turns} turns of ${secondsOfTurn} s each, recording on and off in turn.`,
    table(['', 'recording on', 'recording off', 'ratio'], rows),
  ].join('\n\n');
}

async function compare({ db, clock }: Context, name: string): Promise<string[]> {
  const base = { db, now: () => clock.now(), schemas: { checkSchema: async () => {}, checkDocument: async () => {} } };
  const recording = createInstanceWrites({ ...base, record: recordChange });
  const silent = createInstanceWrites({ ...base, record: async () => 'recorded' });
  const on: number[] = [];
  const off: number[] = [];
  for (let turn = -1; turn < turns; turn += 1) {
    const [first, second] = turn % 2 === 0 ? ([recording, silent] as const) : ([silent, recording] as const);
    const measured = new Map([
      [first, await writesPerSecond(first)],
      [second, await writesPerSecond(second)],
    ]);
    if (turn < 0) continue;
    on.push(measured.get(recording) ?? 0);
    off.push(measured.get(silent) ?? 0);
  }
  const [withRecording, without] = [quantile(on, 0.5), quantile(off, 0.5)];
  return [name, withRecording.toFixed(0), without.toFixed(0), ratio(withRecording / without)];
}

async function writesPerSecond(writes: ReturnType<typeof createInstanceWrites>): Promise<number> {
  const author = { tenant: 'bench', actor: 'Bench' };
  const begun = performance.now();
  let count = 0;
  const write = async () => {
    let last = '';
    while (performance.now() - begun < secondsOfTurn * 1000) {
      const price = (random.next() * 5000).toFixed(2);
      const text = `{"name":"Product","price":${price},"category":"category 7","createdOn":"2026-01-01T00:00:00Z","stock":${count},"tags":["a","b"]}`;
      if (last === '') last = await writes.create(author, 'PRODUCT', text);
      else {
        await writes.put(author, 'PRODUCT', last, text);
        last = '';
      }
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: clients }, write));
  return count / ((performance.now() - begun) / 1000);
}
