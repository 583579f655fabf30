import { hash, randomBytes } from 'node:crypto';
import type { Sealer } from '../../core/sealing.ts';
import { tenantPattern } from '../../postgres/tenants/tenants.ts';

/** A cookie whose value this installation alone can make. */
export interface SealedCookie {
  /** What it holds. Undefined where the `Cookie` header has none that this installation has sealed, or several. */
  read(header: string | undefined): string | undefined;
  /** The `Set-Cookie` header for so many milliseconds. */
  write(content: string, lifetime: number): string;
  /** The `Set-Cookie` header that ends it. */
  readonly clear: string;
}

export interface SealedCookieOptions {
  sealer: Sealer;
  /** Cookies are shared by all ports of a host, so the name has the installation. */
  name: string;
  path: string;
  /** Strict: no other site's link or redirect brings it along. */
  sameSite: 'Strict' | 'Lax';
  isOverTls: boolean;
  /** What it is for: a cookie for something else does not count. */
  purpose: string;
  /** Characters of its value. */
  maxValue: number;
}

/**
 * Over TLS the prefix of its name keeps other hosts of the domain from setting it (RFC 6265bis, 4.1.3).
 */
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
      // Two of one name: another page of the host has set one of them, and nothing tells which.
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

/** What a cookie or a link holds: which session or link, of which tenant. */
interface Secret {
  readonly tenant: string;
  /** 32 random bytes, base64url. */
  readonly text: string;
}

export function newSecret(tenant: string): Secret {
  return { tenant, text: randomBytes(32).toString('base64url') };
}

/** `<tenant>.<secret>`: the tenant stands in it, because every look-up names the tenant. */
export function writeSecret({ tenant, text }: Secret): string {
  return `${tenant}.${text}`;
}

/** Undefined where the text is nothing that `writeSecret` has written. */
export function readSecret(written: string): Secret | undefined {
  const [, tenant = '', text = ''] = /^([^.]*)\.([\w-]{43})$/.exec(written) ?? [];
  return tenantPattern.test(tenant) ? { tenant, text } : undefined;
}

/** The database keeps this alone. A secret of 256 random bits needs no slow hash. */
export function hashSecret({ text }: Secret): Buffer {
  return hash('sha256', text, 'buffer');
}
