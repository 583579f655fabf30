import { hash } from 'node:crypto';
import { sql } from 'kysely';
import { AnnalsError } from '../../core/errors.ts';
import { AccessTokenFault } from '../../http/credentials.ts';
import { maxFormBytes, takeForms } from '../../http/form-body.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import type { QueryParameters } from '../../http/query-parameters.ts';
import type { Database } from '../../postgres/database.ts';
import type { PeopleSignIn } from './people-routes.ts';
import type { ConsoleClients } from './ports.ts';
import type { Sessions } from './sessions.ts';

/** Seconds for which the id of a token is remembered: longer than any token is accepted. */
export const tokenMemory = 600;

/** Seconds after which a repeat may end the sessions, where the process that began to has died. */
const lease = 60;

interface LogoutTokenTable {
  hash: Uint8Array;
  expires_at: Date;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    logout_token: LogoutTokenTable;
  }
}

/**
 * `POST /console/oidc/backchannel-logout` (OpenID Connect Back-Channel Logout 1.0): the provider says which sessions
 * it has ended. Neither a cookie nor the origin counts: the token alone does.
 */
export async function backchannelLogoutRoute(
  app: HttpServer,
  {
    db,
    people,
    sessions,
    checkOnce,
  }: {
    db: Database;
    people: PeopleSignIn | undefined;
    sessions: Sessions;
    checkOnce: ConsoleClients['checkOnce'];
  },
): Promise<void> {
  if (people === undefined) return;
  takeForms(app);

  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('cache-control', 'no-store');
    done();
  });

  // The standard names the errors of a form, which a schema cannot.
  const validatorCompiler = () => (value: unknown) => ({ value });
  const options = { schema: { hide: true }, validatorCompiler, bodyLimit: maxFormBytes };
  app.post('/console/oidc/backchannel-logout', options, async (request, reply) => {
    let fault = '';
    const logout = await refusedAsUndefined(
      checkOnce(request.ip, async () => {
        const read = await readToken(request.body as QueryParameters | null | undefined, people);
        if (typeof read !== 'string' && (await leaseToken(db, read))) return read;
        fault = typeof read === 'string' ? read : 'jti was used before';
        return undefined;
      }),
    );
    if (logout === undefined) {
      request.log.warn({ reason: fault }, 'a logout token of the OpenID provider was refused');
      return await reply.code(400).send({ error: 'invalid_request', error_description: fault });
    }
    const ended = await sessions.endOfProvider(logout).catch(async (error: unknown) => {
      // The provider may send it again.
      await forgetToken(db, logout);
      throw error;
    });
    await rememberToken(db, logout);
    request.log.info({ ended }, 'the OpenID provider ended sessions');
    return await reply.code(200).send();
  });
}

type CountedLogout = Exclude<Awaited<ReturnType<PeopleSignIn['readLogout']>>, string>;

async function readToken(form: QueryParameters | null | undefined, people: PeopleSignIn) {
  const [token, ...others] = form?.logout_token ?? [];
  if (typeof token !== 'string' || others.length > 0)
    return 'The body must be a form (application/x-www-form-urlencoded) with one logout_token';
  return await people.readLogout(token).catch((cause: unknown) => {
    throw new AnnalsError('service_unavailable', 'The keys of the OpenID provider could not be read.', { cause });
  });
}

async function refusedAsUndefined<Result>(checking: Promise<Result>): Promise<Result | undefined> {
  try {
    return await checking;
  } catch (error) {
    if (error instanceof AccessTokenFault) return undefined;
    throw error;
  }
}

const hashOf = ({ issuer, tokenId }: CountedLogout) => hash('sha256', JSON.stringify([issuer, tokenId]), 'buffer');

const inSeconds = (seconds: number) => sql<Date>`statement_timestamp() + ${seconds} * interval '1 second'`;

/** False if the token was used before, or is being used, in any process. */
async function leaseToken(db: Database, logout: CountedLogout): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('logout_token')
    .values({ hash: hashOf(logout), expires_at: inSeconds(lease) })
    .onConflict((conflict) =>
      conflict
        .column('hash')
        .doUpdateSet({ expires_at: inSeconds(lease) })
        .where('logout_token.expires_at', '<=', sql<Date>`statement_timestamp()`),
    )
    .executeTakeFirstOrThrow();
  return numInsertedOrUpdatedRows === 1n;
}

async function rememberToken(db: Database, logout: CountedLogout): Promise<void> {
  await db
    .updateTable('logout_token')
    .set({ expires_at: inSeconds(tokenMemory) })
    .where('hash', '=', hashOf(logout))
    .execute();
}

async function forgetToken(db: Database, logout: CountedLogout): Promise<void> {
  await db.deleteFrom('logout_token').where('hash', '=', hashOf(logout)).execute();
}

/** Deletes the ids of tokens that are too old to be accepted. */
export async function forgetOldTokens(db: Database): Promise<void> {
  await db.deleteFrom('logout_token').where('expires_at', '<=', sql<Date>`statement_timestamp()`).execute();
}
