// The library for certificates asks for it.
import 'reflect-metadata';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import * as x509 from '@peculiar/x509';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { resolveTls } from '../../../src/postgres/connections/tls.ts';
import { connectSource, readSource } from '../../../src/postgres/source/source.ts';
import { annals } from '../../support/server/command.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

x509.cryptoProvider.set(crypto);

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
let folder: string;
let administrator: pg.Client;
/** The files of the authority that signed the server's certificate, and of one that did not. */
let authority: string;
let stranger: string;

async function makeAuthority(name: string) {
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const extensions = [new x509.BasicConstraintsExtension(true, 1, true)];
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    keys,
    signingAlgorithm: algorithm,
    extensions,
  });
  const path = join(folder, `${name}.pem`);
  await writeFile(path, certificate.toString('pem'));
  return { keys, certificate, path };
}

/** The superuser alone may change the server's settings. */
function asSuperuser(): string {
  const url = new URL(inject('databaseUrl'));
  url.username = 'postgres';
  url.pathname = 'postgres';
  return url.href;
}

/** The test's server under a name, with parameters of TLS. */
function address(parameters: Record<string, string>, host = 'localhost'): string {
  const url = new URL(inject('databaseUrl'));
  url.hostname = host;
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

/** Whether the connection of that URL is over TLS. */
async function isOverTls(url: string): Promise<boolean> {
  const pool = createPool(await resolveTls(url));
  try {
    const { rows } = await pool.query('select ssl from pg_stat_ssl where pid = pg_backend_pid()');
    return rows[0].ssl;
  } finally {
    await pool.end();
  }
}

/** Writes a file as the account of the server, which alone may read it. */
async function writeAtServer(name: string, content: string): Promise<void> {
  const lines = content
    .trim()
    .split('\n')
    .map((line) => `('${line}')`);
  const command = `umask 077; cat > ${name}`;
  await administrator.query(`copy (values ${lines.join(', ')}) to program '${command}'`);
}

/** From then on the server offers TLS. It reads the setting a moment after the call. */
async function offerTls(): Promise<void> {
  await administrator.query('alter system set ssl = on');
  await administrator.query('select pg_reload_conf()');
  while (!(await isOverTls(address({ sslmode: 'prefer' })))) await sleep(50);
}

beforeAll(async () => {
  folder = temporaryFolder();
  administrator = new pg.Client(asSuperuser());
  await administrator.connect();
  const ours = await makeAuthority('ours');
  authority = ours.path;
  stranger = (await makeAuthority('stranger')).path;
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.create({
    subject: 'CN=localhost',
    issuer: ours.certificate.subject,
    publicKey: keys.publicKey,
    signingKey: ours.keys.privateKey,
    signingAlgorithm: algorithm,
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: 'localhost' }])],
  });
  const key = await crypto.subtle.exportKey('pkcs8', keys.privateKey);
  await writeAtServer('server.key', x509.PemConverter.encode(key, 'PRIVATE KEY'));
  await writeAtServer('server.crt', certificate.toString('pem'));
});

afterAll(async () => {
  await administrator.query('alter system reset ssl');
  await administrator.query('select pg_reload_conf()');
  await administrator.end();
});

describe('a server that offers no TLS', () => {
  test.each(['disable', 'allow', 'prefer'])('is used with sslmode=%s', async (sslmode) => {
    expect(await isOverTls(address({ sslmode }))).toBe(false);
  });

  test.each(['require', 'verify-ca', 'verify-full'])('is refused with sslmode=%s', async (sslmode) => {
    await expect(isOverTls(address({ sslmode, sslrootcert: authority }))).rejects.toThrow('does not support SSL');
  });

  test('is refused by a command in one line', async () => {
    const environment = { DATABASE_URL: address({ sslmode: 'require' }), ANNALS_SECRET_KEY: `${'a'.repeat(43)}=` };
    const { code, stderr } = await annals(['migrate'], environment);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: 'annals: the database of DATABASE_URL cannot be reached over TLS: the server does not offer it\n',
    });
  });
});

describe('a server with a certificate of an authority of its own', () => {
  beforeAll(offerTls);

  test('is used without TLS where the URL asks for none', async () => {
    expect(await isOverTls(address({}))).toBe(false);
    expect(await isOverTls(address({ sslmode: 'disable' }))).toBe(false);
  });

  test.each(['allow', 'prefer', 'require'])('is used over TLS, unchecked, with sslmode=%s', async (sslmode) => {
    expect(await isOverTls(address({ sslmode }))).toBe(true);
  });

  test.each(['require', 'verify-ca'])('sslmode=%s checks who signed it, and not its name', async (sslmode) => {
    expect(await isOverTls(address({ sslmode, sslrootcert: authority }, '127.0.0.1'))).toBe(true);
    await expect(isOverTls(address({ sslmode, sslrootcert: stranger }))).rejects.toThrow('certificate');
  });

  test('sslmode=verify-full checks its name too', async () => {
    const parameters = { sslmode: 'verify-full', sslrootcert: authority };
    expect(await isOverTls(address(parameters))).toBe(true);
    await expect(isOverTls(address(parameters, '127.0.0.1'))).rejects.toThrow('does not match certificate');
    await expect(isOverTls(address({ ...parameters, sslrootcert: stranger }))).rejects.toThrow('certificate');
    await expect(isOverTls(address({ ...parameters, sslrootcert: 'system' }))).rejects.toThrow('certificate');
  });

  test('a command tells what is wrong with it in one line', async () => {
    const environment = { DATABASE_URL: address({ sslmode: 'verify-full' }), ANNALS_SECRET_KEY: `${'a'.repeat(43)}=` };
    const { code, stderr } = await annals(['migrate'], environment);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^annals: the database of DATABASE_URL cannot be reached over TLS: .* \([A-Z_]+\)\n$/);
  });

  test('the source of captured changes is reached the same way', async () => {
    const source = readSource(address({ sslmode: 'verify-full', sslrootcert: authority }));
    const client = await connectSource(source, 'statements');
    expect((await client.query('select ssl from pg_stat_ssl where pid = pg_backend_pid()')).rows).toEqual([
      { ssl: 't' },
    ]);
    await client.end();
    await expect(
      connectSource(readSource(address({ sslmode: 'verify-full', sslrootcert: stranger })), 'statements'),
    ).rejects.toThrow('the source cannot be reached');
    await expect(connectSource(readSource(address({ sslmode: 'verify-ca' })), 'statements')).rejects.toThrow(
      'needs sslrootcert with sslmode=verify-ca',
    );
  });
});

test('a file that cannot be read is named', async () => {
  const sslrootcert = join(folder, 'missing.pem');
  await expect(resolveTls(address({ sslmode: 'verify-full', sslrootcert }))).rejects.toThrow(
    `the file that sslrootcert names cannot be read: ${sslrootcert} (ENOENT)`,
  );
});

test('a server that closes the connection instead of answering the SSLRequest is an error', async () => {
  const silent = createServer((socket) => socket.end());
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { port } = silent.address() as { port: number };
  await expect(resolveTls(`postgres://127.0.0.1:${port}/shop?sslmode=prefer`)).rejects.toThrow('Connection terminated');
  silent.close();
});

test('a socket of the machine is used without TLS', async () => {
  expect(await resolveTls('postgres:///shop?host=/run/postgresql&sslmode=require')).toContain('sslmode=disable');
});
