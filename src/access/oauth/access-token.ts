import { randomUUID } from 'node:crypto';
import { errors, jwtVerify, SignJWT } from 'jose';
import { AccessTokenFault } from '../../http/credentials.ts';
import { isScope, type Scope } from '../../http/scopes.ts';
import { type SigningKey, signingAlgorithm } from './signing-key.ts';

/** Seconds (contract: authentication). */
export const accessTokenLifetime = 14_399;

/** The JWT type of access tokens (RFC 9068, 2.1). */
const tokenType = 'at+jwt';

export interface AccessTokenClaims {
  kid: string;
  tenant: string;
  clientId: string;
  scopes: Scope[];
  /** How often the secret of its client had been replaced. */
  rotations: number;
  /** Milliseconds since 1970. */
  expiresAt: number;
}

/** Signs an access token (RFC 9068). The issuer is also the audience: tokens are for this service alone. */
export async function signAccessToken(
  key: SigningKey,
  {
    issuer,
    now,
    client,
    scopes,
  }: {
    issuer: string;
    /** Milliseconds since 1970. */
    now: number;
    client: { tenant: string; clientId: string; rotations?: number };
    scopes: readonly Scope[];
  },
): Promise<string> {
  const issuedAt = Math.floor(now / 1000);
  const { tenant, clientId, rotations = 0 } = client;
  const claims = { client_id: clientId, scope: scopes.join(' '), tenant, ...(rotations > 0 && { rotations }) };
  return await new SignJWT(claims)
    .setProtectedHeader({ alg: signingAlgorithm, typ: tokenType, kid: key.kid })
    .setIssuer(issuer)
    .setSubject(clientId)
    .setAudience(issuer)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + accessTokenLifetime)
    .setJti(randomUUID())
    .sign(key.privateKey);
}

/** Throws an AccessTokenFault for an invalid or expired token. */
export async function readAccessToken(
  token: string,
  {
    issuer,
    now,
    findKey,
  }: {
    issuer: string;
    now: number;
    findKey: (kid: string) => SigningKey | undefined | Promise<SigningKey | undefined>;
  },
): Promise<AccessTokenClaims> {
  if (!isCanonical(token)) throw new AccessTokenFault('invalid');
  try {
    const { payload, protectedHeader } = await jwtVerify(
      token,
      async ({ kid }) => {
        const key = kid === undefined ? undefined : await findKey(kid);
        if (key === undefined) throw new AccessTokenFault('invalid');
        return key.publicKey;
      },
      {
        algorithms: [signingAlgorithm],
        typ: tokenType,
        issuer,
        audience: issuer,
        currentDate: new Date(now),
        requiredClaims: ['sub', 'client_id', 'tenant', 'scope', 'iat', 'exp', 'jti'],
      },
    );
    const { client_id: clientId, tenant, scope, rotations, exp = 0 } = payload;
    if (typeof clientId !== 'string' || typeof tenant !== 'string' || typeof scope !== 'string') {
      throw new AccessTokenFault('invalid');
    }
    return {
      kid: protectedHeader.kid ?? '',
      tenant,
      clientId,
      scopes: scope.split(' ').filter(isScope),
      rotations: typeof rotations === 'number' ? rotations : 0,
      expiresAt: exp * 1000,
    };
  } catch (error) {
    if (error instanceof errors.JWTExpired) throw new AccessTokenFault('expired');
    if (error instanceof errors.JOSEError) throw new AccessTokenFault('invalid');
    throw error;
  }
}

/** Decoders ignore the unused last bits of base64url, so that without this check one token has several spellings. */
function isCanonical(token: string): boolean {
  const segments = token.split('.');
  return (
    segments.length === 3 &&
    segments.every((segment) => Buffer.from(segment, 'base64url').toString('base64url') === segment)
  );
}
