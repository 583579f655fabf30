import type { Sealer } from '../core/sealing.ts';
import { readSecret, type Secret, writeSecret } from './secret.ts';

export interface SessionCookie {
  /** The session of a `Cookie` header. Undefined where the header has none that this installation has sealed. */
  read(header: string | undefined): Secret | undefined;
  /** The `Set-Cookie` header that begins a session of so many milliseconds. */
  write(session: Secret, lifetime: number): string;
  /** The `Set-Cookie` header that ends one. */
  clear: string;
}

/** In characters; ours have some 230. */
const maxValue = 1_000;
const purpose = 'console session';

/**
 * The cookie of a session (contract 13). It is sealed, so that a value which somebody made up costs no query.
 *
 * Over TLS the prefix of its name keeps other hosts of the domain from setting it. Cookies are shared by all ports of a
 * host, so its name has the installation.
 */
export function createSessionCookie({
  sealer,
  installation,
  isOverTls,
  basePath,
}: {
  sealer: Sealer;
  installation: string;
  isOverTls: boolean;
  /** The path of the public address. */
  basePath: string;
}): SessionCookie {
  const isOfHost = isOverTls && basePath === '';
  const prefix = isOfHost ? '__Host-' : isOverTls ? '__Secure-' : '';
  const name = `${prefix}annals-${installation}`;
  const attributes = [
    `Path=${isOfHost ? '/' : `${basePath}/console/api`}`,
    'HttpOnly',
    'SameSite=Strict',
    ...(isOverTls ? ['Secure'] : []),
  ].join('; ');

  return {
    read(header = '') {
      const values = header
        .split(';')
        .map((pair) => pair.trim())
        .filter((pair) => pair.startsWith(`${name}=`))
        .map((pair) => pair.slice(name.length + 1));
      // Two of one name: another page of the host has set one of them, and nothing tells which.
      const [value = '', ...others] = values;
      if (others.length > 0 || value.length > maxValue) return undefined;
      const opened = sealer.open(Buffer.from(value, 'base64url'), purpose);
      return opened === undefined ? undefined : readSecret(Buffer.from(opened).toString());
    },
    write(session, lifetime) {
      const sealed = Buffer.from(sealer.seal(Buffer.from(writeSecret(session)), purpose));
      return `${name}=${sealed.toString('base64url')}; Max-Age=${Math.floor(lifetime / 1000)}; ${attributes}`;
    },
    clear: `${name}=; Max-Age=0; ${attributes}`,
  };
}
