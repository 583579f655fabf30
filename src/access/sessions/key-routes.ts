import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { AnnalsError } from '../../core/errors.ts';
import { consoleApiPath } from '../../http/browser-security.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import type { Scope } from '../../http/scopes.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import type { ConsoleKeys, Person } from './ports.ts';
import type { Session, Sessions } from './sessions.ts';

/** Seconds: the maximum and default lifetime of a person's key. */
export const maxKeyLifetime = 90 * 86_400;
/** Maximum valid keys of a person in a tenant. */
export const maxKeysOfPerson = 20;

const path = `${consoleApiPath}/session/keys`;
const schema = { hide: true };
const config = { isOfSession: true, neverCompressed: 'a session' };

const NewKey = Type.Object(
  {
    scopes: Type.Optional(Type.Array(Type.String(), { minItems: 1, maxItems: 20 })),
    expiresIn: Type.Optional(Type.Integer({ minimum: 60, maximum: maxKeyLifetime })),
  },
  { additionalProperties: false },
);
const KeyPath = Type.Object({ id: Type.String() });

/** Keys that people create for their programs (contract 18). */
export async function sessionKeyRoutes(
  app: HttpServer,
  { sessions, keys }: { sessions: Sessions; keys: ConsoleKeys },
): Promise<void> {
  app.get(path, { config, schema }, async (request) => {
    const { tenant, person } = await ofPerson(sessions.find(request));
    return { keys: await sessions.write(tenant, (transaction) => keys.list(transaction, tenant, person)) };
  });

  app.post(path, { config, schema: { ...schema, body: NewKey } }, async (request, reply) => {
    const session = await ofPerson(sessions.find(request));
    const { tenant, clientId, clientName: name, person } = session;
    const permitted = keys.scopesOf(session.scopes);
    const { scopes = permitted, expiresIn = maxKeyLifetime } = request.body;
    const requested = permitted.filter((scope) => scopes.includes(scope));
    if (requested.length === 0 || requested.length < new Set(scopes).size) throw noSuchScopes(permitted);
    const key = await sessions.write(tenant, async (transaction) => {
      await lockPerson(transaction, sessions, request, { makes: true });
      if ((await keys.list(transaction, tenant, person)).length >= maxKeysOfPerson) throw tooMany();
      return await keys.make(transaction, {
        tenant,
        clientId,
        name,
        person,
        scopes: requested,
        lifetime: expiresIn * 1_000,
      });
    });
    request.log.info({ tenant, clientId, key: key.id }, 'a person made a key');
    return await reply.code(201).send(key);
  });

  app.delete(`${path}/:id`, { config, schema: { ...schema, params: KeyPath } }, async (request, reply) => {
    const { tenant, person } = await ofPerson(sessions.find(request));
    const { id: keyId } = request.params;
    const revoked = await sessions.write(tenant, (transaction) => keys.revoke(transaction, tenant, { keyId, person }));
    if (!revoked) throw new AnnalsError('resource_not_found', 'You have no such key.');
    return await reply.code(204).send();
  });
}

/**
 * Blocks the end of the sessions of the request's person, and what else they make, which must see what is made now.
 * Rejects if the session has ended, and, if the person `makes` something, with insufficient_permissions if it cannot be
 * renewed.
 */
export async function lockPerson(
  transaction: DatabaseTransaction,
  sessions: Sessions,
  request: FastifyRequest,
  { makes }: { makes: boolean },
): Promise<void> {
  const { person, renews } = await ofPerson(sessions.find(request));
  if (makes && renews !== true) throw notWithoutRenewal();
  await sessions.lock(transaction, person, request);
}

/** Sessions of links and client secrets belong to no person, so they cannot create keys. */
async function ofPerson(finding: Promise<Session>): Promise<Session & { person: Person }> {
  const session = await finding;
  const { person } = session;
  if (person !== undefined) return { ...session, person };
  throw new AnnalsError(
    'insufficient_permissions',
    "Here people make keys who signed in with their company's account. For anybody else: annals key create.",
  );
}

function notWithoutRenewal(): AnnalsError {
  return new AnnalsError(
    'insufficient_permissions',
    "Your company's provider issued no refresh token, so Annals could not tell when to end what you make. An operator can make keys: annals key create.",
  );
}

function noSuchScopes(permitted: readonly Scope[]): AnnalsError {
  const message = permitted.length === 0 ? 'must be scopes that you have' : `must be among ${permitted.join(', ')}`;
  return new AnnalsError('insufficient_permissions', 'A key has no scope that you do not have.', {
    details: [{ field: 'scopes', message }],
  });
}

function tooMany(): AnnalsError {
  return new AnnalsError(
    'conflict_resource',
    `You have ${maxKeysOfPerson} keys in this tenant, which are as many as a person can have. Revoke one first.`,
  );
}
