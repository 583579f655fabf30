import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { Stop } from '../../../src/core/stop-signal.ts';
import {
  createGuardedHttp,
  noConnection,
  resultOfFault,
  targetLimits,
} from '../../../src/delivery/targets/guarded-http.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { ownPort } from '../../support/server/own-port.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { startReceiver } from '../../support/vendor/receiver.ts';

const signal = new Stop();
const loopback = new Map([['acme', [{ kind: 'range', address: '127.0.0.0', prefix: 8 } as const]]]);

const receiver = closeAfterAll(await startReceiver());

beforeEach(() => {
  receiver.received.length = 0;
  receiver.answer = (_received, response) => void response.writeHead(204).end();
});

type Options = Parameters<typeof createGuardedHttp>[0];

function open(options: Options = { allowed: loopback }) {
  const http = createGuardedHttp(options);
  onTestFinished(() => http.close());
  return (url: string, { tenant = 'acme', timeLimit = 30_000 } = {}) =>
    http.send(tenant, { url, headers: {}, body: '{}', signal, timeLimit });
}

test('a private address is refused unless it is allowed for this tenant, and reads like one that cannot be reached', async () => {
  const send = open();
  expect((await send(receiver.url)).result).toEqual({ outcome: 'delivered', status: 204 });
  const refused = await send(receiver.url, { tenant: 'globex' });
  expect(receiver.received).toHaveLength(1);
  const unreachable = await send(`http://127.0.0.1:${await ownPort()}/`);
  expect(refused).toEqual({ result: noConnection });
  expect(unreachable).toEqual({ result: noConnection });
  for (const url of [
    'https://127.0.0.1/',
    'https://[::1]/',
    'https://169.254.169.254/',
    'https://10.0.0.1/',
    'https://[::ffff:10.0.0.1]/',
  ]) {
    expect(await send(url, { tenant: 'globex' })).toEqual({ result: noConnection });
  }
});

test('failed TLS is told of public addresses alone, and elsewhere reads like an address that cannot be reached', async () => {
  expect(await open()(receiver.url.replace('http:', 'https:'))).toEqual({ result: noConnection });
  const fault = (insecurePeer: string | undefined) =>
    resultOfFault({ reason: 'closed', peer: undefined, insecurePeer }, performance.now());
  expect(fault('93.184.216.34')).toEqual({ outcome: 'refused', reason: 'tls', error: expect.stringContaining('TLS') });
  for (const peer of ['10.0.0.1', '127.0.0.1', '::ffff:10.0.0.1', undefined]) expect(fault(peer)).toEqual(noConnection);
});

test('a connection of one tenant is never used for another that may not be connected there', async () => {
  const send = open({
    allowed: loopback,
    resolve: (_name, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]),
  });
  const url = `http://erp.example:${receiver.port}/hook`;
  expect((await send(url)).result.outcome).toBe('delivered');
  expect((await send(url, { tenant: 'globex' })).result).toEqual(noConnection);
  expect(receiver.received).toHaveLength(1);
});

test('the address that was checked is the one that is connected to, also where the name changes', async () => {
  const lookups: string[] = [];
  const addresses = ['127.0.0.1', '10.1.2.3'];
  const send = open({
    allowed: loopback,
    resolve: (name, _options, done) => {
      lookups.push(name);
      done(null, [{ address: addresses[lookups.length - 1] ?? '10.1.2.3', family: 4 }]);
    },
  });
  const url = `http://erp.example:${receiver.port}/hook`;
  receiver.answer = (_received, response) => void response.writeHead(204, { connection: 'close' }).end();
  expect((await send(url)).result.outcome).toBe('delivered');
  expect(lookups).toEqual(['erp.example']);
  expect((await send(url)).result).toEqual(noConnection);
  expect(lookups).toHaveLength(2);
  expect(receiver.received).toHaveLength(1);
});

test('plain HTTP goes to allowed addresses alone, a public one is refused', async () => {
  const lookups: string[] = [];
  const send = open({
    allowed: loopback,
    resolve: (name, _options, done) => {
      lookups.push(name);
      done(null, [{ address: '93.184.215.14', family: 4 }]);
    },
  });
  expect((await send(`http://shop.example:${receiver.port}/`)).result).toEqual(noConnection);
  expect(lookups).toEqual(['shop.example']);
});

test('a redirect, also one that leads inward, is not followed', async () => {
  const inward = await startReceiver();
  onTestFinished(() => inward.close());
  receiver.answer = (_received, response) => void response.writeHead(307, { location: inward.url }).end();
  expect((await open()(receiver.url)).result).toMatchObject({ outcome: 'failed' });
  expect(inward.received).toEqual([]);
});

test('of what an allowed address answers the status alone is kept', async () => {
  receiver.answer = (_received, response) =>
    void response.writeHead(500, { 'content-type': 'text/plain' }).end('inner secrets');
  expect((await open()(receiver.url)).result).toEqual({
    outcome: 'failed',
    status: 500,
    error: 'The target answered 500.',
  });
});

test.each([
  [410, { outcome: 'suspended' }],
  [429, { outcome: 'failed', isBusy: true, retryAfter: 7_000 }],
  [502, { outcome: 'failed', isBusy: true }],
  [504, { outcome: 'failed', isBusy: true }],
  [503, { outcome: 'failed' }],
  [201, { outcome: 'delivered' }],
])('%i is %j', async (status, result) => {
  receiver.answer = (_received, response) =>
    void response.writeHead(status, status === 429 ? { 'retry-after': '7' } : {}).end();
  expect((await open()(receiver.url)).result).toMatchObject(result);
});

test('at most 64 KiB of an endless answer are read', async () => {
  let sent = 0;
  receiver.answer = (_received, response) => {
    response.writeHead(200);
    const chunk = Buffer.alloc(16 * 1024, 'x');
    const more = () => {
      while (!response.destroyed && sent < 1024 ** 3) {
        sent += chunk.length;
        if (!response.write(chunk)) return void response.once('drain', more);
      }
    };
    more();
  };
  const { result, answer } = await open()(receiver.url);
  expect(result.outcome).toBe('delivered');
  expect(answer?.body).toHaveLength(targetLimits.answerBytes);
  expect(sent).toBeLessThan(64 * 1024 * 1024);
});

test('a target that takes the request and hangs fails at the end of its time', async () => {
  receiver.answer = () => {};
  expect((await open()(receiver.url, { timeLimit: 200 })).result).toEqual({
    outcome: 'failed',
    reason: 'timeout',
    error: 'The target did not answer in time.',
  });
});

test('an answer that comes drop by drop is cut at the end of its time, and its status counts', async () => {
  receiver.answer = (_received, response) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write('x'), 20);
    response.once('close', () => clearInterval(timer));
  };
  expect((await open()(receiver.url, { timeLimit: 300 })).result.outcome).toBe('delivered');
});

test('a self-signed certificate is refused, and accepted for its host once it is trusted', async () => {
  const folder = temporaryFolder();
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  execFileSync(
    'openssl',
    [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-days',
      '2',
      '-subj',
      '/CN=erp.example',
      '-addext',
      'subjectAltName=DNS:erp.example',
      '-keyout',
      key,
      '-out',
      cert,
    ],
    { stdio: 'ignore' },
  );
  const tls = { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
  const secure = await startReceiver({ tls });
  onTestFinished(() => secure.close());
  const resolve: Options['resolve'] = (_name, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]);
  const url = `https://erp.example:${secure.port}/`;
  expect(await open({ allowed: loopback, resolve })(url)).toEqual({ result: noConnection });
  expect(await open({ allowed: loopback, resolve, ca: tls.cert })(`https://other.example:${secure.port}/`)).toEqual({
    result: noConnection,
  });
  expect(secure.received).toEqual([]);
  expect((await open({ allowed: loopback, resolve, ca: tls.cert })(url)).result.outcome).toBe('delivered');
});

test.each([
  ['closes the connection without an answer', 'closed', undefined],
  [
    'changes the protocol',
    'upgrade',
    'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
  ],
])('a server that %s is a failure at once, not a target that is away', async (_what, reason, answer) => {
  const rude = createTcpServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => (answer === undefined ? socket.destroy() : socket.write(answer)));
  });
  await new Promise<void>((resolve) => rude.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void rude.close());
  const address = rude.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const { result } = await open()(`http://127.0.0.1:${port}/`, { timeLimit: 5_000 });
  expect(result).toEqual({ outcome: 'failed', reason, error: expect.not.stringContaining('in time') });
});

test('a connection that the target closed while it was kept is no failure: the request goes out on another one', async () => {
  let connections = 0;
  const closing = createTcpServer((socket) => {
    connections += 1;
    let requests = 0;
    socket.on('error', () => {});
    socket.on('data', () => {
      requests += 1;
      if (requests > 1) socket.destroy();
      else socket.write('HTTP/1.1 204 No Content\r\n\r\n');
    });
  });
  await new Promise<void>((resolve) => closing.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void closing.close());
  const address = closing.address();
  const url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/`;
  const send = open();
  expect((await send(url)).result.outcome).toBe('delivered');
  expect((await send(url)).result.outcome).toBe('delivered');
  expect(connections).toBe(2);
});
