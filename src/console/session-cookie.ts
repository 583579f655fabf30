import { createSealedCookie, type SealedCookieOptions } from './sealed-cookie.ts';
import { readSecret, type Secret, writeSecret } from './secret.ts';

export interface SessionCookie {
  /** The session of a `Cookie` header. Undefined where the header has none that this installation has sealed. */
  read(header: string | undefined): Secret | undefined;
  /** The `Set-Cookie` header that begins a session of so many milliseconds. */
  write(session: Secret, lifetime: number): string;
  /** The `Set-Cookie` header that ends one. */
  clear: string;
}

/** The cookie of a session (contract 13). It is sealed, so that a value which somebody made up costs no query. */
export function createSessionCookie({
  installation,
  basePath,
  ...options
}: Pick<SealedCookieOptions, 'sealer' | 'isOverTls'> & {
  installation: string;
  /** The path of the public address. */
  basePath: string;
}): SessionCookie {
  const { read, write, clear } = createSealedCookie({
    ...options,
    name: `annals-${installation}`,
    path: options.isOverTls && basePath === '' ? '/' : `${basePath}/console/api`,
    sameSite: 'Strict',
    purpose: 'console session',
    // Ours have some 230.
    maxValue: 1_000,
  });
  return {
    read(header) {
      const content = read(header);
      return content === undefined ? undefined : readSecret(content);
    },
    write: (session, lifetime) => write(writeSecret(session), lifetime),
    clear,
  };
}
