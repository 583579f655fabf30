import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import { annals, type RunningCommand, startAnnals } from '../support/server/command.ts';
import { createTestDatabase } from '../support/server/database.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const running: RunningCommand[] = [];

const database = closeAfterAll(await createTestDatabase());
const environment = {
  DATABASE_URL: database.url,
  ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
  PORT: '0',
  LOG_LEVEL: 'warn',
};

afterEach(async () => {
  for (const command of running.splice(0)) {
    command.process.kill('SIGKILL');
    await command.ended;
  }
});

test('serve prints its base URL alone and makes the signing key before the first token request; a port in use is exit code 1; requests in flight at SIGTERM are still answered; the log says that once, and which port is whose', async () => {
  const service = serve({ LOG_LEVEL: 'info', ANNALS_RECORDER_PORT: '0', ANNALS_METRICS_PORT: '0' });
  const line = await service.firstLine;
  expect(line).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  const baseUrl = new URL(line);
  expect((await fetch(new URL('/health/ready', baseUrl))).status).toBe(200);
  const keys = async () => (await database.pool.query('select kid from oauth_signing_key')).rowCount;
  await expect.poll(keys).toBe(1);
  const { port } = baseUrl;
  expect(await annals(['serve'], { ...environment, PORT: port })).toMatchObject({
    code: 1,
    stdout: '',
    stderr: `annals: port ${port} of 127.0.0.1 is in use; set PORT to another one, or to 0 for any free one\n`,
  });

  const socket = connect(Number(baseUrl.port), baseUrl.hostname);
  const body = 'grant_type=client_credentials';
  const halfRequest =
    `POST /oauth/token HTTP/1.1\r\nHost: annals\r\nContent-Type: application/x-www-form-urlencoded\r\n` +
    `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body.slice(0, 5)}`;
  const answer = text(socket);
  await new Promise((resolve) => socket.write(halfRequest, resolve));
  // Once a later request is answered, the half one has arrived too.
  await fetch(new URL('/health/live', baseUrl));
  service.process.kill('SIGTERM');
  await refuses(baseUrl);
  socket.write(body.slice(5));
  expect(await answer).toMatch(/^HTTP\/1\.1 401 /);
  const { code, stdout, stderr } = await service.ended;
  expect({ code, stdout }).toEqual({ code: 0, stdout: `${line}\n` });
  const logged: { level: string; msg: string }[] = stderr
    .trim()
    .split('\n')
    .filter((entry) => entry.startsWith('{'))
    .map((entry) => JSON.parse(entry));
  expect(logged.filter(({ level }) => level !== 'info')).toEqual([]);
  const messages = logged.map(({ msg }) => msg);
  expect(messages.filter((message) => message.startsWith('asked to stop'))).toEqual([
    'asked to stop: no more connections are accepted, and requests in flight have 30 s',
  ]);
  const addresses = stderr
    .match(/[^"\n]*(?:listen(?:ing|s)|metrics are) (?:at|on) http:[^"\n]*/g)
    ?.map((address) => address.replace(/:\d+/, ':1'));
  expect(messages).toContain(`service listening at ${baseUrl.origin}`);
  expect(addresses?.toSorted()).toEqual([
    'The metrics are at http://127.0.0.1:1/metrics',
    'The recorder listens on http://127.0.0.1:1',
    'metrics listening at http://127.0.0.1:1',
    'recorder listening at http://127.0.0.1:1',
    'service listening at http://127.0.0.1:1',
  ]);
});

test.each(['1', '2'])(
  'serve looks at the mapping of its recorder before it listens, also with %s workers',
  async (workers) => {
    const folder = temporaryFolder();
    const mapping = join(folder, 'mapping.json');
    await writeFile(mapping, '{"version": 1, "tabels": {}}');
    // If serve listened first, it would fail because this port is in use.
    const holder = createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    onTestFinished(() => void holder.close());
    const { port } = holder.address() as AddressInfo;
    const settings = {
      ...environment,
      PORT: String(port),
      ANNALS_RECORDER_PORT: '0',
      ANNALS_RECORDER_MAPPING: mapping,
    };
    const { code, stdout, stderr } =
      workers === '1' ? await annals(['serve'], settings) : await serve({ ...settings, ANNALS_WORKERS: workers }).ended;
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('tabels: is not a key that this object can have');
    expect(stderr).not.toContain(String(port));
  },
);

test('a host that is not ours is exit code 1 and says what to set', async () => {
  const { code, stderr } = await annals(['serve'], { ...environment, HOST: '192.0.2.1' });
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: 'annals: cannot listen on port 0 of 192.0.2.1 (EADDRNOTAVAIL); see HOST and PORT\n',
  });
});

function serve(extra: Record<string, string> = {}): RunningCommand {
  const command = startAnnals(['serve'], { ...environment, ...extra });
  running.push(command);
  return command;
}

async function refuses(baseUrl: URL): Promise<void> {
  for (;;) {
    const socket = connect(Number(baseUrl.port), baseUrl.hostname);
    const accepted = await new Promise((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    });
    socket.destroy();
    if (!accepted) return;
  }
}
