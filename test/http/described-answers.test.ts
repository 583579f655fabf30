import { expect, test } from 'vitest';
import { checkAnswers } from '../support/server/described-answers.ts';

const thing = {
  type: 'object',
  required: ['id'],
  properties: { id: { type: 'string' }, at: { type: 'string', format: 'date-time' } },
};
const check = checkAnswers(
  JSON.stringify({
    openapi: '3.1.0',
    paths: {
      '/things/{id}': {
        get: {
          responses: {
            200: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Thing' } } } },
            404: { $ref: '#/components/responses/NotFound' },
          },
        },
        delete: { responses: { 204: {} } },
      },
    },
    components: {
      schemas: { Thing: thing },
      responses: { NotFound: { content: { 'application/json': { schema: thing } } } },
    },
  }),
);

function answer(status: number, body: string | null, type = 'application/json; charset=utf-8'): Response {
  return new Response(body, { status, headers: body === null ? {} : { 'content-type': type } });
}

test('an answer that matches the document is returned as it is', async () => {
  const body = '{"id": "a", "at": "2026-11-22T10:00:00.000Z", "more": 1.10}';
  expect(await check.watch('GET', '/things/a?q=1', answer(200, body)).text()).toBe(body);
  expect(await check.watch('GET', '/things/a', answer(404, '{"id":"a"}')).json()).toEqual({ id: 'a' });
  expect(await check.watch('DELETE', '/things/a', answer(204, null)).text()).toBe('');
});

test('a body that is not as the document says is an error when it is read', async () => {
  const wrong = check.watch('GET', '/things/a', answer(200, '{"at": "today"}'));
  await expect(wrong.json()).rejects.toThrow(
    /GET \/things\/\{id\} → 200: .*required property 'id'.*\/at must match format/,
  );
  await expect(check.watch('GET', '/things/a', answer(404, '{}')).text()).rejects.toThrow("required property 'id'");
});

test('a status or a media type that the document does not have is an error', async () => {
  expect(() => check.watch('GET', '/things/a', answer(418, '{}'))).toThrow('has no such status');
  expect(() => check.watch('DELETE', '/things/a', answer(200, '{}'))).toThrow('has no such status');
  await expect(check.watch('GET', '/things/a', answer(200, 'id', 'text/csv')).text()).rejects.toThrow('no text/csv');
});

test('what is no operation is not checked', async () => {
  expect(await check.watch('GET', '/things', answer(418, 'x')).text()).toBe('x');
  expect(await check.watch('POST', '/things/a', answer(418, 'x')).text()).toBe('x');
  expect(await check.watch('HEAD', '/things/a', answer(200, '')).text()).toBe('');
});
