import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { connect } from 'node:net';
import { tlsFault } from '../../core/config/values.ts';
import { OperatorError } from '../../core/errors.ts';

/** Milliseconds. */
const probeLimit = 5_000;

/** PostgreSQL's SSLRequest. The server answers with one letter. */
const sslRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

/**
 * Rewrites the URL so that the driver reads it as libpq would: the driver itself checks the certificate with
 * `sslmode=require`, and does not fall back to plain connections with `prefer`.
 *
 * `allow` and `prefer` use TLS if the server offers it. Throws an OperatorError for an invalid setting, and an error of
 * the network if the server cannot be reached.
 */
export async function resolveTls(url: string): Promise<string> {
  const fault = tlsFault(url);
  if (fault !== undefined) throw new OperatorError(`the URL of the database ${fault}`);
  const resolved = new URL(url);
  const { searchParams: parameters } = resolved;
  const mode = parameters.get('sslmode');
  if (mode === null) return url;
  if (isSocket(resolved) || mode === 'disable') return withoutTls(resolved);
  if (mode === 'allow' || mode === 'prefer') {
    if (!(await offersTls(resolved))) return withoutTls(resolved);
    parameters.set('sslmode', 'require');
  }
  // Without a file the driver uses Node's certificate authorities.
  if (parameters.get('sslrootcert') === 'system') parameters.delete('sslrootcert');
  for (const name of ['sslrootcert', 'sslcert', 'sslkey']) await mustBeReadable(name, parameters.get(name));
  parameters.set('uselibpqcompat', 'true');
  return resolved.href;
}

// Codes of Node for invalid certificates and failed handshakes.
const failures = /^(CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_|ERR_SSL_|ERR_OSSL_)/;

/** Why a connection over TLS failed, for operators; undefined for other errors. */
export function tlsFailure(error: Error): string | undefined {
  if (error.message === 'The server does not support SSL connections') return 'the server does not offer it';
  const code = 'code' in error ? String(error.code) : '';
  return failures.test(code) ? `${error.message} (${code})` : undefined;
}

/** Sockets need no TLS. */
function isSocket({ hostname, searchParams }: URL): boolean {
  return (
    hostname === '' || hostname.toLowerCase().startsWith('%2f') || searchParams.get('host')?.startsWith('/') === true
  );
}

function withoutTls(url: URL): string {
  for (const name of ['sslrootcert', 'sslcert', 'sslkey']) url.searchParams.delete(name);
  url.searchParams.set('sslmode', 'disable');
  return url.href;
}

async function mustBeReadable(name: string, path: string | null): Promise<void> {
  if (path === null) return;
  await access(path, constants.R_OK).catch((error: NodeJS.ErrnoException) => {
    throw new OperatorError(`the file that ${name} names cannot be read: ${path} (${error.code})`, { cause: error });
  });
}

function offersTls({ hostname, port, searchParams }: URL): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  const host = searchParams.get('host') ?? hostname.replace(/^\[(.+)\]$/, '$1');
  const socket = connect({ host, port: Number(searchParams.get('port') ?? port) || 5432 });
  socket.setTimeout(probeLimit, () => socket.destroy(new Error('timeout expired')));
  socket.once('connect', () => socket.write(sslRequest));
  socket.once('data', (answer) => resolve(answer.toString('latin1', 0, 1) === 'S'));
  socket.once('error', reject);
  socket.once('close', () => reject(new Error('Connection terminated')));
  return promise.finally(() => socket.destroy());
}
