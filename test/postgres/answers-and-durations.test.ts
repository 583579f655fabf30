import { readFile } from 'node:fs/promises';
import { beforeEach, expect, test } from 'vitest';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import {
  createSingleTestDatabase,
  createTestDatabaseForThisTest,
  type TestDatabase,
} from '../support/server/database.ts';

const migration = await readFile('migrations/0043-answers-and-durations.sql', 'utf8');
const times = { createdAt: '2026-09-15T00:00:00.000Z', modifiedAt: '2026-09-15T00:00:01.000Z' };
// The keys of the document stand in the texts too, and a backslash and a NUL that jsonb has no place for.
const asked = 'Say "message": or "response": [{"message":"x"}] \\ \0 \\1';
const answer = 'It is "metadata": {"duration": 7} \\ \\0 \\1 \0';
let database: TestDatabase;

beforeEach(async () => {
  database = await createTestDatabaseForThisTest(createSingleTestDatabase);
  await createTenant(database.db, 'acme');
});

const projected = (text: string) => text.replaceAll('\\u0000', '\\u0001\\u0001');

async function storeJob(id: string, shown: object, full?: object): Promise<void> {
  const texts = [shown, full].map((document) => document && JSON.stringify(document));
  await database.pool.query(
    `insert into job (tenant, id, type, status, input, document, fields, full_document, full_fields)
       values ('acme', $1, 'AGENT_CHAT', 'success', '{}', $2, $3, $4, $5)`,
    [id, texts[0], projected(texts[0] ?? ''), texts[1], texts[1] && projected(texts[1])],
  );
}

async function stored(table: string, id: string) {
  const { rows } = await database.pool.query(
    `select document, fields, full_document as "fullDocument", full_fields as "fullFields" from ${table} where id = $1`,
    [id],
  );
  const [row] = rows;
  const document = JSON.parse(row.document);
  expect(row.fields).toEqual(JSON.parse(projected(row.document)));
  if (row.fullDocument === null) return { document };
  expect(row.fullFields).toEqual(JSON.parse(projected(row.fullDocument)));
  return { document, full: JSON.parse(row.fullDocument) };
}

test('a stored chat job gets its request, its answer as the message, and a version', async () => {
  const head = { id: 'j', type: 'AGENT_CHAT', status: 'success', agentId: 'a', sessionId: 's', requestId: 'r' };
  const response = [{ agentId: 'a', agentType: 'custom', sessionId: 's', message: answer }];
  const newResponse = [{ agentId: 'a', agentType: 'generic', sessionId: 's', message: answer }];
  await storeJob('open', { ...head, message: asked, response, metadata: times });
  // A job whose answer is hidden, one whose question is hidden as well, and one that failed.
  const guarded = { ...times, guarded: ['response'] };
  await storeJob(
    'hidden',
    { ...head, message: asked, metadata: guarded },
    { ...head, message: asked, response, metadata: guarded },
  );
  const both = { ...times, guarded: ['message', 'response'] };
  await storeJob('both', { ...head, metadata: both }, { ...head, message: asked, response, metadata: both });
  const question = { ...times, guarded: ['message'] };
  await storeJob(
    'question',
    { ...head, response, metadata: question },
    { ...head, message: asked, response, metadata: question },
  );
  await storeJob('failed', { ...head, message: asked, metadata: { ...times, error: { type: 't', message: 'm' } } });

  for (let round = 0; round < 2; round += 1) {
    await database.pool.query(migration);
    const answered = { ...head, request: asked, message: answer, response: newResponse };
    const version = { version: 1 };
    expect(await stored('job', 'open')).toEqual({ document: { ...answered, metadata: { ...version, ...times } } });
    const guardedNow = { ...version, ...times, guarded: ['message', 'response'] };
    expect(await stored('job', 'hidden')).toEqual({
      document: { ...head, request: asked, metadata: guardedNow },
      full: { ...answered, metadata: guardedNow },
    });
    const bothNow = { ...version, ...times, guarded: ['request', 'message', 'response'] };
    expect(await stored('job', 'both')).toEqual({
      document: { ...head, metadata: bothNow },
      full: { ...answered, metadata: bothNow },
    });
    const questionNow = { ...version, ...times, guarded: ['request'] };
    expect(await stored('job', 'question')).toEqual({
      document: { ...head, message: answer, response: newResponse, metadata: questionNow },
      full: { ...answered, metadata: questionNow },
    });
    expect((await stored('job', 'failed')).document).toEqual({
      ...head,
      request: asked,
      metadata: { ...version, ...times, error: { type: 't', message: 'm' } },
    });
  }
});

test('a stored log gets whole seconds, rounded up, and milliseconds', async () => {
  const log = (duration: number) => ({ id: 'l', messages: [{ message: 'x "duration":1' }], duration, promptTokens: 1 });
  for (const [id, duration] of [
    ['quick', 0.001],
    ['none', 0],
    ['even', 2],
    ['long', 61.234],
  ] as const) {
    const text = JSON.stringify(log(duration));
    await database.pool.query(
      `insert into agent_request_log (tenant, id, document, fields, full_document, full_fields) values ('acme', $1, $2::text, $2::text::jsonb, $2::text, $2::text::jsonb)`,
      [id, text],
    );
    await database.pool.query(
      `insert into agent_session_log (tenant, id, document, fields, duration, prompt_tokens, completion_tokens)
         values ('acme', $1, $2::text, $2::text::jsonb, $3, 0, 0)`,
      [id, text, Math.round(duration * 1_000)],
    );
  }
  await database.pool.query(migration);
  for (const [id, duration, durationMs] of [
    ['quick', 1, 1],
    ['none', 0, 0],
    ['even', 2, 2_000],
    ['long', 62, 61_234],
  ] as const) {
    const wanted = { ...log(duration), durationMs };
    expect(await stored('agent_request_log', id)).toEqual({ document: wanted, full: wanted });
    expect(await stored('agent_session_log', id)).toEqual({ document: wanted });
  }
});
