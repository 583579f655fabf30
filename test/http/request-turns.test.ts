import { fastify } from 'fastify';
import { afterEach, expect, test, vi } from 'vitest';
import type { HttpServer } from '../../src/http/http-server-type.ts';
import { beginRequestsInTurns } from '../../src/http/request-turns.ts';

afterEach(() => vi.restoreAllMocks());

test('a turn of the loop begins requests for 8 ms; the others begin in the next turns, in their order', async () => {
  let clock = 1_000;
  vi.spyOn(performance, 'now').mockImplementation(() => clock);
  const app: HttpServer = fastify();
  beginRequestsInTurns(app);
  const turns: string[][] = [];
  let current: string[] | undefined;
  app.addHook('onRequest', async (request) => {
    clock += 3;
    if (current === undefined) {
      current = [];
      turns.push(current);
      setImmediate(() => {
        current = undefined;
      });
    }
    current.push(request.url);
  });
  app.get('/:place', async () => 'done');
  const places = Array.from({ length: 8 }, (_, place) => `/${place}`);
  const answers = await Promise.all(places.map((url) => app.inject(url)));
  expect(answers.map(({ body }) => body)).toEqual(places.map(() => 'done'));
  expect(turns.flat()).toEqual(places);
  expect(turns.map(({ length }) => length)).toEqual([3, 3, 2]);
  expect((await app.inject('/later')).body).toBe('done');
  await app.close();
});
