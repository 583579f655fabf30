import * as jose from 'jose';
import { isStorable } from '../../core/storable-text.ts';

/** What an OpenID provider ended: a session of its own, or all sessions of a subject. */
export interface ProviderLogout {
  readonly issuer: string;
  readonly subject?: string | undefined;
  readonly sid?: string | undefined;
  /** The id of the token, which counts once. */
  readonly tokenId: string;
}

/** The provider's side of a check. */
export interface LogoutKeys {
  readonly issuer: string;
  /** Signature algorithms of its ID tokens. */
  readonly algorithms: readonly string[] | undefined;
  readonly find: jose.JWTVerifyGetKey;
}

/** Seconds after `iat` in which a token is accepted, and by which clocks may differ. */
export const logoutTokenLimits = { age: 300, clockTolerance: 30 };

const eventName = 'http://schemas.openid.net/event/backchannel-logout';
const asymmetric = /^(?:RS|PS|ES)(?:256|384|512)$|^EdDSA$|^Ed25519$/;
const types = new Set([undefined, 'jwt', 'logout+jwt', 'application/logout+jwt']);

/** What is wrong with a token, in printable ASCII. It quotes nothing of the token. */
export class LogoutTokenFault extends Error {}

/**
 * Checks a logout token (OpenID Connect Back-Channel Logout 1.0, 2.6): its claims first, so that a token that is
 * refused anyway costs no request for keys. Rejects with a LogoutTokenFault, and otherwise if the keys cannot be read.
 */
export async function readLogoutToken(
  token: string,
  { clientId, now, keys }: { clientId: string; now: number; keys: () => Promise<LogoutKeys> },
): Promise<ProviderLogout> {
  const { header, claims } = decode(token);
  const fault = faultOfHeader(header) ?? faultOfClaims(claims, { clientId, now });
  if (fault !== undefined) throw new LogoutTokenFault(fault);
  const provider = await keys();
  if (claims.iss !== provider.issuer) throw new LogoutTokenFault('iss is another issuer');
  await verifySignature(token, provider);
  const { sub: subject, sid, jti: tokenId } = claims as { sub?: string; sid?: string; jti: string };
  return { issuer: provider.issuer, subject, sid, tokenId };
}

type JsonObject = Readonly<Record<string, unknown>>;

function decode(token: string): { header: JsonObject; claims: JsonObject } {
  try {
    return { header: { ...jose.decodeProtectedHeader(token) }, claims: jose.decodeJwt(token) };
  } catch {
    throw new LogoutTokenFault('logout_token is not a signed JWT');
  }
}

function faultOfHeader({ alg, typ }: JsonObject): string | undefined {
  if (typeof alg !== 'string' || !asymmetric.test(alg)) return 'alg must be that of a public key';
  const type = typeof typ === 'string' ? typ.toLowerCase() : typ;
  return types.has(type as string | undefined) ? undefined : 'typ must be logout+jwt';
}

function faultOfClaims(claims: JsonObject, { clientId, now }: { clientId: string; now: number }): string | undefined {
  const { aud, iat, exp, jti, sub, sid, events } = claims;
  const { age, clockTolerance } = logoutTokenLimits;
  const seconds = now / 1_000;
  if (![aud].flat().includes(clientId)) return 'aud is another client';
  if (typeof iat !== 'number' || iat > seconds + clockTolerance) return 'iat must be a time that has passed';
  if (iat < seconds - age - clockTolerance) return 'iat is too old';
  // Required since 2022; older providers send none.
  if (exp !== undefined && !(typeof exp === 'number' && exp > seconds - clockTolerance)) return 'exp has passed';
  if (typeof jti !== 'string' || jti === '') return 'jti is missing';
  if (!isObject(events) || !isObject(events[eventName])) return 'events must have the event of a back-channel logout';
  if (claims.nonce !== undefined) return 'nonce must be missing';
  if (sub === undefined && sid === undefined) return 'sub and sid are missing';
  const isText = (value: unknown) =>
    value === undefined || (typeof value === 'string' && value !== '' && isStorable(value));
  return isText(sub) && isText(sid) ? undefined : 'sub and sid must be texts';
}

async function verifySignature(token: string, { algorithms, find }: LogoutKeys): Promise<void> {
  const allowed = (algorithms ?? ['RS256']).filter((name) => asymmetric.test(name));
  try {
    await verifyWith(token, allowed, find);
  } catch (error) {
    if (error instanceof jose.errors.JOSEError) throw new LogoutTokenFault('The signature is not valid');
    throw error;
  }
}

/** Without a `kid`, each key of the provider may be the one. */
async function verifyWith(token: string, algorithms: string[], find: jose.JWTVerifyGetKey): Promise<void> {
  try {
    await jose.compactVerify(token, find, { algorithms });
  } catch (error) {
    if (!(error instanceof jose.errors.JWKSMultipleMatchingKeys)) throw error;
    let last: unknown = error;
    for await (const key of error) {
      try {
        await jose.compactVerify(token, key, { algorithms });
        return;
      } catch (failure) {
        last = failure;
      }
    }
    throw last;
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
