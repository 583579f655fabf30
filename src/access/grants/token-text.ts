import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** An access token, a refresh token or an authorization code. */
export type TokenKind = 'at' | 'rt' | 'ac';

export interface GrantToken {
  readonly kind: TokenKind;
  readonly tenant: string;
  readonly grantId: string;
  /** Of an access token: when it was issued, in seconds since 1970. Of a refresh token: its generation. Of a code: 0. */
  readonly number: number;
}

/** A token as a program sent it. */
export interface SentToken extends GrantToken {
  readonly text: string;
}

/** All tokens of grants begin with it; keys do not. */
export const accessTokenPrefix = 'annals_at_';

const tokenPattern = /^annals_(at|rt|ac)_([a-z][a-z0-9]{1,62})_([0-9a-f]{16})_([0-9a-z]{1,8})_[\w-]{43}$/;

export function newGrantId(): string {
  return randomBytes(8).toString('hex');
}

export function newGrantKey(): Buffer {
  return randomBytes(32);
}

/**
 * A token, authenticated under the key of its grant. The same input has the same token.
 * @example writeToken(key, { kind: 'at', tenant: 'acme', grantId: '8f3c21a90b7d4e65', number: 1_790_000_000 });
 */
export function writeToken(key: Uint8Array, { kind, tenant, grantId, number }: GrantToken): string {
  const text = `annals_${kind}_${tenant}_${grantId}_${number.toString(36)}`;
  return `${text}_${createHmac('sha256', key).update(text).digest('base64url')}`;
}

/** Undefined if malformed, before any query. */
export function readToken(text: string): SentToken | undefined {
  const [, kind, tenant = '', grantId = '', number = ''] = tokenPattern.exec(text) ?? [];
  if (kind === undefined) return undefined;
  return { kind: kind as TokenKind, tenant, grantId, number: Number.parseInt(number, 36), text };
}

/** Whether the token was issued under this key. */
export function isTokenOf(key: Uint8Array, token: SentToken): boolean {
  const [issued, sent] = [Buffer.from(writeToken(key, token)), Buffer.from(token.text)];
  return issued.length === sent.length && timingSafeEqual(issued, sent);
}
