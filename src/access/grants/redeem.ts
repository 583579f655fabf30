import { hash, timingSafeEqual } from 'node:crypto';
import type { Sealer } from '../../core/sealing.ts';
import { AccessTokenFault, type Caller } from '../../http/credentials.ts';
import type { QueryParameters } from '../../http/query-parameters.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import type { CheckOnce } from '../oauth/check-secret.ts';
import { TokenError } from '../oauth/token-error.ts';
import { singleParameter } from '../oauth/token-request.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { grantScope, tenantOfResource } from './authorization-request.ts';
import { findGrant, type LockedGrant, lockGrant, noteRedeemed, noteRotated } from './grant-store.ts';
import { hashOfProgram } from './programs.ts';
import { isTokenOf, readToken, type SentToken, type TokenKind, writeToken } from './token-text.ts';
import { accessTokenLifetime, openGrantKey } from './verify-grant.ts';

/** RFC 6749, 5.1. */
export interface GrantTokens {
  readonly access_token: string;
  readonly token_type: 'Bearer';
  readonly expires_in: number;
  readonly refresh_token: string;
  readonly scope: string;
}

export interface GrantRedeemer {
  /** Issues tokens for a code or a refresh token. Rejects with a TokenError. */
  redeem(form: QueryParameters, authorization: string | undefined, caller: Caller): Promise<GrantTokens>;
  /** Ends the grant of a token. An unknown token is no error (RFC 7009). */
  revoke(form: QueryParameters, caller: Caller): Promise<void>;
}

interface RedeemerOptions {
  /** Connections for authentication. */
  vital: Database;
  sealer: Sealer;
  sessions: Sessions;
  checkOnce: CheckOnce;
  /** The public address. */
  address: string;
  /** Milliseconds since 1970. */
  now: () => number;
}

/** What the token endpoint does for programs that a person allowed. */
export function createGrantRedeemer({
  vital,
  sealer,
  sessions,
  checkOnce,
  address,
  now,
}: RedeemerOptions): GrantRedeemer {
  /** A token with the key of its grant, if that is active. Others count as guesses. */
  async function find(text: string, kinds: readonly TokenKind[], from: string) {
    try {
      return await checkOnce(from, async () => {
        const token = readToken(text);
        if (token === undefined || !kinds.includes(token.kind)) return undefined;
        const grant = await findGrant(vital, token.tenant, token.grantId);
        const key = grant && openGrantKey(sealer, token.tenant, grant.sealedKey);
        return key !== undefined && isTokenOf(key, token) ? { token, key } : undefined;
      });
    } catch (error) {
      throw error instanceof AccessTokenFault ? invalidGrant() : error;
    }
  }

  /** `work` returns the generation of the refresh token to issue, or why the grant ends. */
  async function issue(
    { token, key }: { token: SentToken; key: Uint8Array },
    caller: Caller,
    work: (transaction: DatabaseTransaction, grant: LockedGrant) => Promise<number | 'code' | 'reuse'>,
  ): Promise<GrantTokens> {
    const { tenant, grantId } = token;
    const generation = await sessions.write(tenant, async (transaction) => {
      const grant = await lockGrant(transaction, tenant, grantId);
      if (grant === undefined) return undefined;
      const result = await work(transaction, grant);
      if (typeof result === 'number') return result;
      await sessions.endGrants(transaction, tenant, { id: grantId }, { why: result, caller });
      return undefined;
    });
    if (generation === undefined) throw invalidGrant();
    return {
      access_token: writeToken(key, { kind: 'at', tenant, grantId, number: Math.floor(now() / 1_000) }),
      token_type: 'Bearer',
      expires_in: accessTokenLifetime,
      refresh_token: writeToken(key, { kind: 'rt', tenant, grantId, number: generation }),
      scope: grantScope,
    };
  }

  function checkTarget(form: QueryParameters, { tenant }: SentToken): void {
    const resource = singleParameter(form, 'resource');
    if (resource !== undefined && tenantOfResource(resource, address) !== tenant)
      throw new TokenError('invalid_target', 'The grant is for another resource');
    const scopes = singleParameter(form, 'scope')?.split(' ') ?? [];
    if (scopes.some((scope) => scope !== grantScope && scope !== 'offline_access'))
      throw new TokenError('invalid_scope', `The scope of a grant is ${grantScope}`);
  }

  return {
    async redeem(form, authorization, caller) {
      if (authorization !== undefined || singleParameter(form, 'client_secret') !== undefined)
        throw new TokenError('invalid_request', 'A program that signs in has no secret; send its client_id alone');
      const clientId = needed(form, 'client_id');
      const isOf = ({ programHash }: LockedGrant) => timingSafeEqual(hashOfProgram(clientId), programHash);
      if (singleParameter(form, 'grant_type') === 'refresh_token') {
        const found = await find(needed(form, 'refresh_token'), ['rt'], caller.address);
        checkTarget(form, found.token);
        return await issue(found, caller, async (transaction, grant) => {
          const { generation, sharesSuccessor } = grant;
          const sent = found.token.number;
          if (!isOf(grant)) return 'reuse';
          if (sent === generation - 1 && sharesSuccessor) return generation;
          if (sent !== generation) return 'reuse';
          await noteRotated(transaction, found.token.tenant, found.token.grantId);
          return generation + 1;
        });
      }
      const redirectUri = needed(form, 'redirect_uri');
      const verifier = needed(form, 'code_verifier');
      const found = await find(needed(form, 'code'), ['ac'], caller.address);
      checkTarget(form, found.token);
      return await issue(found, caller, async (transaction, grant) => {
        // A code that was redeemed, or came to another program, has leaked (RFC 6749, 4.1.2).
        const isTheirs = isOf(grant) && grant.redirectUri === redirectUri && grant.challenge === challengeOf(verifier);
        if (grant.isRedeemed || !isTheirs) return 'code';
        await noteRedeemed(transaction, found.token.tenant, found.token.grantId, grant.lastsUntil);
        return grant.generation;
      });
    },

    async revoke(form, caller) {
      const text = needed(form, 'token');
      const found = await find(text, ['at', 'rt'], caller.address).catch((error: unknown) => {
        if (error instanceof TokenError) return undefined;
        throw error;
      });
      if (found === undefined) return;
      const { tenant, grantId: id } = found.token;
      await sessions.write(tenant, (transaction) =>
        sessions.endGrants(transaction, tenant, { id }, { why: 'program', caller }),
      );
    },
  };
}

/** RFC 7636, 4.2. */
function challengeOf(verifier: string): string | undefined {
  return /^[\w.~-]{43,128}$/.test(verifier) ? hash('sha256', verifier, 'base64url') : undefined;
}

function needed(form: QueryParameters, name: string): string {
  const value = singleParameter(form, name);
  if (value === undefined) throw new TokenError('invalid_request', `The parameter ${name} is missing`);
  return value;
}

function invalidGrant(): TokenError {
  return new TokenError('invalid_grant', 'The code or token is not valid any more, or was issued to another program');
}
