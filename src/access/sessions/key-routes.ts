import { Type } from 'typebox';
import { AnnalsError } from '../../core/errors.ts';
import { consoleApiPath } from '../../http/cors.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import type { Scope } from '../../http/scopes.ts';
import type { ConsoleKeys, Person } from './ports.ts';
import type { Session, Sessions } from './sessions.ts';

/** Seconds that a person's key is good for at most, and unless less is asked for. */
export const maxKeyLifetime = 90 * 86_400;
/** Good keys of a person in a tenant. */
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

/** Keys that a person makes for programs of their own (contract 18). */
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
    if (session.renews !== true) throw notWithoutRenewal();
    const wanted = permitted.filter((scope) => scopes.includes(scope));
    if (wanted.length === 0 || wanted.length < new Set(scopes).size) throw noSuchScopes(permitted);
    const key = await sessions.write(tenant, async (transaction) => {
      // Whatever ends the session waits, and then knows of the key; so does who makes another one.
      await sessions.lock(transaction, person, request);
      if ((await keys.list(transaction, tenant, person)).length >= maxKeysOfPerson) throw tooMany();
      return await keys.make(transaction, {
        tenant,
        clientId,
        name,
        person,
        scopes: wanted,
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

/** A link is good for a minute, and a secret is no person's: neither may leave a key behind. */
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
    "Your company's provider gave no refresh token, so nobody could tell when your keys have to end. An operator can make one: annals key create.",
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
