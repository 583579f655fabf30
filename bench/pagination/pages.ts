import { sql } from 'kysely';
import { createClient } from '../../src/access/oauth/clients.ts';
import { buildApp } from '../../src/app.ts';
import type { Context } from '../../src/context/context.ts';
import { createSortIndex } from '../../src/tenants/custom-entities/sort-indexes.ts';
import { Random } from '../../test/support/oracle/random.ts';
import { tokenOf } from '../access-token.ts';
import { fill } from './instances.ts';
import { milliseconds, quantile, ratio, table } from './table.ts';

const random = new Random();
const rounds = Number(process.env.ROUNDS ?? 300);
const deepPage = 10_000;
const sorts = [
  { sort: '_id', index: undefined },
  { sort: 'price', index: 'price' },
  { sort: 'price:DESC', index: 'price:DESC' },
  { sort: 'category,createdOn:DESC', index: 'category,createdOn:DESC' },
] as const;

/** Page 1 and page 10,000 by cursor over HTTP, turn by turn in random order. */
export async function measurePages(context: Context, instances: number): Promise<string> {
  await fill(context, instances);
  const indexes: string[][] = [];
  for (const { index } of sorts) {
    if (index === undefined) continue;
    const begun = performance.now();
    const made = await createSortIndex(context.db, index);
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    indexes.push([
      index,
      `${(made.bytes / 1_048_576).toFixed(0)} MiB`,
      `${(made.bytes / instances).toFixed(0)}`,
      `${seconds} s`,
    ]);
  }
  await sql`vacuum analyze custom_instance`.execute(context.db);

  const app = await buildApp(context);
  const baseUrl = await app.listen({ port: 0, host: '127.0.0.1' });
  const client = await createClient(context.db, { tenant: 'bench', scope: 'schema.custominstance_read' });
  const headers = { authorization: `Bearer ${await tokenOf(baseUrl, client)}` };
  const read = async (parameters: Record<string, string>) => {
    const url = `${baseUrl}/schema/bench/custom-entities/PRODUCT/instances?${new URLSearchParams(parameters)}`;
    const begun = performance.now();
    const response = await fetch(url, { headers });
    const body = (await response.json()) as unknown[];
    const took = performance.now() - begun;
    if (response.status !== 200 || body.length === 0) throw new Error(`no page: ${JSON.stringify(body)}`);
    return {
      took,
      next: response.headers.get('x-next-cursor') ?? '',
      prev: response.headers.get('x-prev-cursor') ?? '',
    };
  };

  const pages: string[][] = [];
  for (const { sort } of sorts) {
    const size = String(Math.min(60, Math.floor(instances / deepPage / 1.5)) || 1);
    const asked = { sort, pageSize: size };
    // An offset page carries the cursors it has, which saves walking 9,999 pages.
    const before = await read({ ...asked, pageNumber: String(deepPage - 1) });
    const after = await read({ ...asked, pageNumber: String(deepPage + 1) });
    const kinds: Record<string, () => Promise<{ took: number }>> = {
      first: () => read(asked),
      deep: () => read({ ...asked, next: before.next }),
      back: () => read({ ...asked, prev: after.prev }),
    };
    const took: Record<string, number[]> = { first: [], deep: [], back: [] };
    for (let round = -20; round < rounds; round += 1) {
      for (const name of random.shuffled(Object.keys(kinds))) {
        const { took: time } = (await kinds[name]?.()) ?? { took: 0 };
        if (round >= 0) took[name]?.push(time);
      }
    }
    const median = (name: string) => quantile(took[name] ?? [], 0.5);
    const offset = (await read({ ...asked, pageNumber: String(deepPage) })).took;
    pages.push([
      `\`${sort}\``,
      milliseconds(median('first')),
      milliseconds(median('deep')),
      ratio(median('deep') / median('first')),
      milliseconds(quantile(took.deep ?? [], 0.99)),
      milliseconds(median('back')),
      ratio(median('back') / median('first')),
      milliseconds(offset),
    ]);
  }
  const unindexed = await read({ sort: 'name:DESC', pageSize: '60' });
  await app.close();
  return [
    `Pages of instances over HTTP, ${rounds} of each, turn by turn; page ${deepPage.toLocaleString('en')} by \`next\` and by \`prev\`.`,
    table(
      ['sort', 'page 1', 'deep page', 'ratio', 'its p99', 'the same by prev', 'ratio', 'the same by pageNumber'],
      pages,
    ),
    `A page of a sort without an index: ${milliseconds(unindexed.took)}.`,
    table(['index', 'size', 'bytes an instance', 'made in'], indexes),
  ].join('\n\n');
}
