import { hash, randomBytes } from 'node:crypto';
import type { Sealer } from '../../core/sealing.ts';
import { tenantPattern } from '../../postgres/tenants/tenants.ts';

/** A cookie whose value only this installation can make. */
export interface SealedCookie {
  /** The content. Undefined if the `Cookie` header has none that this installation sealed, or several. */
  read(header: string | undefined): string | undefined;
  /** The `Set-Cookie` header with a lifetime in milliseconds. */
  write(content: string, lifetime: number): string;
  /** The `Set-Cookie` header that ends it. */
  readonly clear: string;
}

interface SealedCookieOptions {
  sealer: Sealer;
  /** Unique to the installation, since all ports of a host share cookies. */
  name: string;
  path: string;
  /** Strict: not sent with links and redirects of other sites. */
  sameSite: 'Strict' | 'Lax';
  isOverTls: boolean;
  /** The purpose that the value is bound to. */
  purpose: string;
  /** Maximum characters of the value. */
  maxValue: number;
}

/** Over TLS the prefix of its name keeps other hosts of the domain from setting it (RFC 6265bis, 4.1.3). */
export function createSealedCookie(options: SealedCookieOptions): SealedCookie {
  const { sealer, path, sameSite, isOverTls, purpose, maxValue } = options;
  const prefix = !isOverTls ? '' : path === '/' ? '__Host-' : '__Secure-';
  const name = `${prefix}${options.name}`;
  const attributes = [`Path=${path}`, 'HttpOnly', `SameSite=${sameSite}`, ...(isOverTls ? ['Secure'] : [])].join('; ');

  return {
    read(header = '') {
      const values = header
        .split(';')
        .map((pair) => pair.trim())
        .filter((pair) => pair.startsWith(`${name}=`))
        .map((pair) => pair.slice(name.length + 1));
      // Of two cookies with the name, another page of the host set one, and it is unknown which.
      const [value = '', ...others] = values;
      if (others.length > 0 || value.length > maxValue) return undefined;
      const opened = sealer.open(Buffer.from(value, 'base64url'), purpose);
      return opened === undefined ? undefined : Buffer.from(opened).toString();
    },
    write(content, lifetime) {
      const sealed = Buffer.from(sealer.seal(Buffer.from(content), purpose));
      return `${name}=${sealed.toString('base64url')}; Max-Age=${Math.floor(lifetime / 1000)}; ${attributes}`;
    },
    clear: `${name}=; Max-Age=0; ${attributes}`,
  };
}

export interface SessionCookie {
  /** The session of a `Cookie` header; undefined without one that this installation sealed. */
  read(header: string | undefined): Secret | undefined;
  /** The `Set-Cookie` header that begins a session; the lifetime is in milliseconds. */
  write(session: Secret, lifetime: number): string;
  /** The `Set-Cookie` header that ends one. */
  clear: string;
}

/** The cookie of a session (contract 13), sealed so that forged values cost no query. */
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
    // Ours have about 230.
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

/** The content of a cookie or a link: the session or link, and its tenant. */
interface Secret {
  readonly tenant: string;
  /** 32 random bytes, base64url. */
  readonly text: string;
}

export function newSecret(tenant: string): Secret {
  return { tenant, text: randomBytes(32).toString('base64url') };
}

/** `<tenant>.<secret>`, with the tenant because every lookup needs it. */
export function writeSecret({ tenant, text }: Secret): string {
  return `${tenant}.${text}`;
}

/** Undefined for a malformed text. */
export function readSecret(written: string): Secret | undefined {
  const [, tenant = '', text = ''] = /^([^.]*)\.([\w-]{43})$/.exec(written) ?? [];
  return tenantPattern.test(tenant) ? { tenant, text } : undefined;
}

/** The database stores only this. A secret of 256 random bits needs no slow hash. */
export function hashSecret({ text }: Secret): Buffer {
  return hash('sha256', text, 'buffer');
}
