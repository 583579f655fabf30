import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createHttpServer, keepAliveTime } from '../../src/http/http-server.ts';
import type { HttpServer } from '../../src/http/http-server-type.ts';
import { createLogger } from '../../src/http/logger.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { eventually } from '../support/server/patience.ts';

const silence = 2_000;
/** More than the buffers of both ends hold. */
const bytes = 64 * 1024 * 1024;

const app = closeAfterAll(await makeServer({ maxClientSilence: silence }));
app.get('/big', async (_request, reply) => await reply.send(Buffer.alloc(bytes, 'x')));
app.get('/late', async () => {
  await sleep(2 * silence);
  return { answer: 'late' };
});
await app.listen({ port: 0, host: '127.0.0.1' });
const port = (app.server.address() as AddressInfo).port;

async function makeServer(limits: { maxClientSilence?: number; requestTimeout?: number }): Promise<HttpServer> {
  return await createHttpServer({
    logger: createLogger('silent'),
    verifyAccessToken: () => {
      throw new Error('nobody is asked for');
    },
    ...limits,
  });
}

/** A connection on which a path was requested; `closed` once it is. */
async function ask(path: string): Promise<{ socket: Socket; seen: { closed: boolean; bytes: number } }> {
  const socket = connect(port, '127.0.0.1');
  const seen = { closed: false, bytes: 0 };
  socket.on('close', () => {
    seen.closed = true;
  });
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  return { socket, seen };
}

/** How many connections the server has. */
async function connections(): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  app.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
  return await promise;
}

test('a client that takes no byte of its answer is cut off', async () => {
  const before = await connections();
  const { socket } = await ask('/big');
  socket.pause();
  await eventually(connections).toBe(before + 1);
  await eventually(connections).toBe(before);
  socket.destroy();
});

// These wait most of their time.
test.concurrent('a client that takes its answer slowly gets it whole', async () => {
  const { socket, seen } = await ask('/big');
  const began = performance.now();
  for (; seen.bytes < bytes && !seen.closed; await sleep(performance.now() - began < 3 * silence ? 50 : 0)) {
    const part: Buffer | null = socket.read();
    seen.bytes += part?.length ?? 0;
  }
  expect(performance.now() - began).toBeGreaterThan(2 * silence);
  expect(seen.bytes).toBeGreaterThanOrEqual(bytes);
  socket.destroy();
});

test.concurrent('a client that waits for its answer is not cut off', async () => {
  const { socket } = await ask('/late');
  const [answer]: Buffer[] = await once(socket, 'data');
  expect(answer?.toString()).toContain('"late"');
  socket.destroy();
});

test.concurrent('a client that sends its request too slowly is 400, and one that sends it in parts is answered', async () => {
  const hasty = await makeServer({ requestTimeout: 3_000 });
  hasty.post('/small', async () => ({ answer: 'small' }));
  await hasty.listen({ port: 0, host: '127.0.0.1' });
  const begin = () => {
    const socket = connect((hasty.server.address() as AddressInfo).port, '127.0.0.1');
    socket.write(
      'POST /small HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{',
    );
    return socket;
  };
  const [parts, half] = [begin(), begin()];
  await sleep(100);
  parts.write('}');
  const [answer]: Buffer[] = await once(parts, 'data');
  expect(answer?.toString()).toContain('"small"');
  const [refusal]: Buffer[] = await once(half, 'data');
  expect(refusal?.toString()).toMatch(/^HTTP\/1\.1 400 .*The request did not arrive in time\./s);
  for (const socket of [parts, half]) socket.destroy();
  await hasty.close();
});

test('a connection stays open for longer than its client is promised, so that a late request does not meet its end', async () => {
  const keeping = await makeServer({ maxClientSilence: 500 });
  onTestFinished(() => keeping.close());
  expect(keeping.server.keepAliveTimeout).toBe(keepAliveTime);
  // What the client is promised, in milliseconds: short, as the margin is the real one.
  keeping.server.keepAliveTimeout = 1_000;
  keeping.get('/short', async () => ({ answer: 'here' }));
  await keeping.listen({ port: 0, host: '127.0.0.1' });
  const socket = connect((keeping.server.address() as AddressInfo).port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  let received = '';
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text;
  });
  const request = 'GET /short HTTP/1.1\r\nHost: localhost\r\n\r\n';
  socket.write(request);
  await eventually(() => received).toContain('here');
  expect(received.toLowerCase()).toContain('keep-alive: timeout=1\r\n');
  received = '';
  // Later than Node's own margin of a second.
  await sleep(2_500);
  socket.write(request);
  await eventually(() => received).toContain('here');
});
