import { once } from 'node:events';
import Fastify from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import type { HttpServer } from '../../src/http/http-server-type.ts';
import { type Upkeep, whileListening } from '../../src/http/while-listening.ts';

/** Listens with the work of two rooms. */
async function listen(first: readonly Upkeep[], second: readonly Upkeep[]) {
  const app: HttpServer = Fastify();
  app.decorate('upkeepTurn', undefined);
  onTestFinished(async () => void (await app.close()));
  for (const upkeep of [first, second]) {
    app.register(async (room: HttpServer) => whileListening(room, { upkeep }));
  }
  await app.listen({ port: 0, host: '127.0.0.1' });
  return app;
}

test('all work of a server begins one after another', async () => {
  const atWork = { now: 0, most: 0, begun: 0 };
  const work = async () => {
    atWork.begun += 1;
    atWork.now += 1;
    atWork.most = Math.max(atWork.most, atWork.now);
    await new Promise((resolve) => setTimeout(resolve, 5));
    atWork.now -= 1;
    if (atWork.begun === 2) throw new Error('it fails');
  };
  const upkeep = { what: 'work', every: 60_000, work };
  await listen([upkeep, upkeep], [upkeep, upkeep]);
  await expect.poll(() => atWork).toEqual({ now: 0, most: 1, begun: 4 });
});

test('work that does not end holds up no other', async () => {
  const { promise: begun, resolve } = Promise.withResolvers<void>();
  const long = {
    what: 'long work',
    every: 60_000,
    work: async (signal: AbortSignal) => void (await once(signal, 'abort')),
  };
  await listen([long], [{ what: 'work', every: 60_000, work: async () => resolve() }]);
  await begun;
});
