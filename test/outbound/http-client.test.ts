import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { Stop } from '../../src/core/stop-signal.ts';
import { HttpClient, NoResponse } from '../../src/outbound/http-client.ts';

const client = new HttpClient();
afterAll(() => client.close());

async function serve(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ url: URL; requests: () => number }> {
  let requests = 0;
  const server = createServer((request, response) => {
    requests += 1;
    request.resume();
    answer(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: new URL(`http://127.0.0.1:${port}/`), requests: () => requests };
}

const limits = { time: 60_000, bytes: 8 };
const hello = { headers: {}, body: 'hello' };

test('a response within the limits is whole, and a redirect is not followed', async () => {
  const { url, requests } = await serve((_request, response) =>
    response.writeHead(302, { location: '/elsewhere' }).end('12345678'),
  );
  expect(await client.send(url, hello, limits)).toMatchObject({
    status: 302,
    headers: { location: '/elsewhere' },
    body: Buffer.from('12345678'),
    cut: undefined,
  });
  expect(requests()).toBe(1);
});

test('a longer response is cut at the limit of bytes', async () => {
  const { url } = await serve((_request, response) => response.end('123456789'));
  expect(await client.send(url, hello, limits)).toMatchObject({ body: Buffer.from('12345678'), cut: 'bytes' });
});

test('a response that stalls is cut at the limit of time, one that breaks off is cut by the connection', async () => {
  const stalling = await serve((_request, response) => response.write('1'));
  expect(await client.send(stalling.url, hello, { ...limits, time: 100 })).toMatchObject({ status: 200, cut: 'time' });
  const broken = await serve((request, response) => response.write('1', () => request.socket.destroy()));
  expect(await client.send(broken.url, hello, limits)).toMatchObject({ cut: 'connection' });
});

test('a server that does not respond is a timeout, whether or not a connection was made', async () => {
  const { url } = await serve(() => {});
  const late = await client.send(url, hello, { ...limits, time: 100 }).catch((error: unknown) => error);
  expect(late).toBeInstanceOf(NoResponse);
  expect(late).toMatchObject({ reason: 'timeout', peer: '127.0.0.1' });
});

test('an abort ends the request, and the response that is being read', async () => {
  const silent = new Stop();
  const { url } = await serve(() => silent.abort(new Error('stop')));
  await expect(client.send(url, { ...hello, signal: silent }, limits)).rejects.toMatchObject({ reason: 'closed' });
  const reading = new Stop();
  const begun = await serve((_request, response) => response.write('1', () => reading.abort(new Error('stop'))));
  const ended = await client.send(begun.url, { ...hello, signal: reading }, limits).then(
    ({ cut }) => cut,
    (error: NoResponse) => error.reason,
  );
  // The client may not have seen the head yet.
  expect(['connection', 'closed']).toContain(ended);
});

test('a request on an idle connection that its peer closes is sent once more; one that switches protocols is not', async () => {
  let count = 0;
  const closing = await serve((request, response) => {
    count += 1;
    if (count === 2) request.socket.destroy();
    else response.end('ok');
  });
  await client.send(closing.url, hello, limits);
  expect(await client.send(closing.url, hello, limits)).toMatchObject({ status: 200, body: Buffer.from('ok') });
  expect(closing.requests()).toBe(3);

  let calls = 0;
  const switching = await serve((request, response) => {
    calls += 1;
    if (calls === 1) response.end('ok');
    else request.socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n');
  });
  await client.send(switching.url, hello, limits);
  await expect(client.send(switching.url, hello, limits)).rejects.toMatchObject({ reason: 'upgrade' });
  expect(switching.requests()).toBe(2);
});
