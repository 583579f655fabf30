import { hash, randomBytes } from 'node:crypto';
import { tenantPattern } from '../postgres/tenants/tenants.ts';

/** What a cookie or a link holds: which session or link, of which tenant. */
export interface Secret {
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
