import { type AddressInfo, connect } from 'node:net';
import { fastify } from 'fastify';
import { afterEach, expect, test, vi } from 'vitest';
import type { HttpServer } from '../../src/http/http-server-type.ts';
import { beginRequestsInTurns } from '../../src/http/request-turns.ts';
import { eventually } from '../support/server/patience.ts';

afterEach(() => vi.restoreAllMocks());

/** A server on which each request takes 3 ms to begin, and the requests that began in each turn. */
function slowServer(): { app: HttpServer; turns: string[][] } {
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
  return { app, turns };
}

const places = Array.from({ length: 8 }, (_, place) => `/${place}`);

test('a turn of the loop begins requests for 8 ms; the others begin in the next turns, in their order', async () => {
  const { app, turns } = slowServer();
  await app.listen({ port: 0, host: '127.0.0.1' });
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
  let received = '';
  socket.on('data', (data) => {
    received += data;
  });
  // One packet, so that all of them arrive in one turn.
  socket.write(places.map((url) => `GET ${url} HTTP/1.1\r\nhost: a\r\n\r\n`).join(''));
  await eventually(async () => received.split('done').length - 1).toBe(places.length);
  socket.destroy();
  expect(turns.flat()).toEqual(places);
  expect(turns.map(({ length }) => length)).toEqual([3, 3, 2]);
  expect((await app.inject('/later')).body).toBe('done');
  await app.close();
});

test('so it is for requests of a server beside the first one', async () => {
  const { app, turns } = slowServer();
  const answers = await Promise.all(places.map((url) => app.inject(url)));
  expect(answers.map(({ body }) => body)).toEqual(places.map(() => 'done'));
  expect(turns.flat()).toEqual(places);
  expect(turns.map(({ length }) => length)).toEqual([3, 3, 2]);
  await app.close();
});
