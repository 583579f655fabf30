import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { arrayBody, isEmptyPage, mapTexts, textsOfPage } from '../../src/pagination/page-texts.ts';
import { maxPieceBytes, piecesOf } from '../../src/pagination/pieces.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { schemaClient } from '../support/server/schema-client.ts';
import { startTestServer } from '../support/server/server.ts';
import { recordStatements } from '../support/server/statements.ts';

const tenant = 'acme';
const large = 600_000;
/**
 * Together more than the sockets of both sides may hold, whatever the kernel lets them grow to: a page is still being
 * sent.
 */
const count = 100;

const server = closeAfterAll(await startTestServer());
const token = await server.token(tenant);
await schemaClient(server, tenant, token).type('LARGE');
await server.database.pool.query(
  `insert into custom_instance (tenant, type, id, version, document, fields)
       select $1, 'LARGE', id, 1, document, document::jsonb
       from (select id, jsonb_build_object('id', id, 'n', n, 'text', repeat('x', $2))::text as document
         from (select n, to_char(n, 'FM000') as id from generate_series(1, $3) n) numbered) made`,
  [tenant, large, count],
);

const instances = `/schema/${tenant}/custom-entities/LARGE/instances`;
const ask = (query: string, init: { headers?: Record<string, string> } = {}) =>
  server.call(`${instances}?${query}`, { token, ...init });
const idsOf = (text: string) => (JSON.parse(text) as { id: string }[]).map(({ id }) => id);
const allIds = Array.from({ length: count }, (_, index) => String(index + 1).padStart(3, '0'));

describe('a page with more text than a piece', () => {
  test('is answered whole, in its order, with its cursors and its total, and its texts are read in several pieces', async () => {
    const statements = recordStatements(...server.context.pool.pools);
    const response = await ask('pageSize=20&sort=_id:DESC', { headers: { 'x-total-count': 'true' } });
    expect(response.headers.get('x-total-count')).toBe(String(count));
    expect(idsOf(await response.text())).toEqual(allIds.toReversed().slice(0, 20));
    const reads = statements.filter(({ text }) => text.includes('id = any('));
    expect(reads.length).toBeGreaterThanOrEqual((20 * large) / maxPieceBytes);
    for (const { values } of reads) {
      const ids = values?.find((value) => Array.isArray(value));
      expect((Array.isArray(ids) ? ids.length : Number.NaN) * large).toBeLessThanOrEqual(maxPieceBytes);
    }
    const next = response.headers.get('x-next-cursor') ?? '';
    const second = await ask(`pageSize=20&sort=_id:DESC&next=${next}`);
    expect(idsOf(await second.text())).toEqual(allIds.toReversed().slice(20, 40));
    const back = await ask(`pageSize=20&sort=_id:DESC&prev=${second.headers.get('x-prev-cursor')}`);
    expect(idsOf(await back.text())).toEqual(allIds.toReversed().slice(0, 20));
  });

  test('has only the fields requested', async () => {
    const page = await (await ask('pageSize=500&fields=n')).json();
    expect(page).toEqual(allIds.map((id, index) => ({ id, n: index + 1 })));
  });

  test('is one statement where the texts are short, and two where one of them is long', async () => {
    const statements = recordStatements(...server.context.pool.pools);
    const short = await ask('pageSize=5&fields=n&q=id:nobody');
    expect(await short.json()).toEqual([]);
    const ofRows = () => statements.filter(({ text }) => text.includes('from custom_instance')).length;
    expect(ofRows()).toBe(1);
    await (await ask('pageSize=1')).text();
    expect(ofRows()).toBe(2);
  });

  test('shows a row that has changed since as it is now, and keeps no connection for a client that reads slowly', async () => {
    const response = await openPage();
    await expect.poll(() => inUse()).toBe(0);
    await server.database.pool.query(
      `update custom_instance set document = jsonb_build_object('id', id, 'changed', true)::text where tenant = $1 and id = $2`,
      [tenant, allIds.at(-1)],
    );
    const parts: Buffer[] = [];
    for await (const part of response) parts.push(part as Buffer);
    const page = JSON.parse(Buffer.concat(parts).toString()) as { id: string; changed?: boolean }[];
    expect(page.map(({ id }) => id)).toEqual(allIds);
    expect(page.at(-1)?.changed).toBe(true);
  });

  test('is cut off where a row is deleted before it was sent: half an answer never looks whole', async () => {
    const response = await openPage();
    expect(response.statusCode).toBe(200);
    await expect.poll(() => inUse()).toBe(0);
    await server.database.pool.query('delete from custom_instance where tenant = $1 and id = $2', [
      tenant,
      allIds.at(-2),
    ]);
    await expect(
      (async () => {
        for await (const part of response) expect(part.length).toBeGreaterThan(0);
      })(),
    ).rejects.toThrow('aborted');
  });
});

/** Asks for all instances and takes nothing of the body yet. */
async function openPage(): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${token}` };
  const [response] = await once(get(`${server.baseUrl}${instances}?pageSize=500`, { headers }), 'response');
  return response;
}

/** Connections that statements of requests hold. */
function inUse(): number {
  return server.context.pool.pools.reduce((sum, { totalCount, idleCount }) => sum + totalCount - idleCount, 0);
}

describe('the texts of a page', () => {
  const row = (id: string, text?: string) => ({ id, bytes: 10, text });

  test('are a list where all are there, and read in the order of the page where not', async () => {
    const reads: (readonly string[])[] = [];
    const readTexts = async (ids: readonly string[]) => {
      reads.push(ids);
      return new Map(ids.map((id) => [id, [`"${id} `, 'read"']]));
    };
    expect(textsOfPage([row('a', '1'), row('b', '2')], readTexts)).toEqual(['1', '2']);
    const inLists = async (parts: readonly string[]) => parts.map((text) => `[${text}]`);
    const texts = await mapTexts(textsOfPage([row('a', '1'), row('b'), row('c', '3')], readTexts), inLists);
    const body = arrayBody(texts);
    expect(typeof body).toBe('object');
    let sent = '';
    for await (const part of body) sent += part;
    expect(JSON.parse(sent)).toEqual([[1], ['b read'], [3]]);
    expect(reads).toEqual([['b']]);
    expect([isEmptyPage([]), isEmptyPage(['1']), isEmptyPage(texts)]).toEqual([true, false, false]);
    expect(arrayBody([])).toBe('[]');
  });

  test('pieces have at most their bytes, and an item that is longer is a piece of its own', () => {
    expect(piecesOf(['a', 'b', 'c', 'd'], [3, 5, 9, 1], 8)).toEqual([['a', 'b'], ['c'], ['d']]);
    expect(piecesOf(['a', 'b'], [3, 6], 8)).toEqual([['a'], ['b']]);
    expect(piecesOf([], [])).toEqual([]);
  });
});

test('a text in parts is the text, cut between its characters', async () => {
  const text = 'aé€😀'.repeat(50);
  for (const most of [4, 5, 7, 96]) {
    const { rows } = await server.database.pool.query<{ part: string }>('select part from text_parts($1, $2) part', [
      text,
      most,
    ]);
    expect(rows.map(({ part }) => part).join('')).toBe(text);
    expect(Math.max(...rows.map(({ part }) => Buffer.byteLength(part)))).toBeLessThanOrEqual(most);
  }
});
