import { type Static, Type } from 'typebox';
import { AnnalsError } from '../core/errors.ts';
import { consoleApiPath } from '../http/console-target.ts';
import type { HttpServer } from '../http/http-server-type.ts';
import type { Session, Sessions } from './sessions.ts';

const path = `${consoleApiPath}/session`;
// The document describes the interface. This is how its own page signs in.
const schema = { hide: true };
const config = { isOfSession: true };
/** In bytes. The sender is not known yet. */
export const maxSignInBytes = 16 * 1024;

const SignIn = Type.Object(
  {
    clientId: Type.Optional(Type.String()),
    clientSecret: Type.Optional(Type.String()),
    link: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);

/** Signing in to the console, and out (contract 13). */
export async function sessionRoutes(
  app: HttpServer,
  { sessions, allowsSignIn }: { sessions: Sessions; allowsSignIn: boolean },
): Promise<void> {
  app.post(path, { config, schema: { ...schema, body: SignIn }, bodyLimit: maxSignInBytes }, async (request, reply) => {
    if (!allowsSignIn) throw insecure();
    const given = readSignIn(request.body);
    const session =
      'link' in given
        ? await sessions.redeem(given.link, request)
        : await sessions.signIn(given.clientId, given.clientSecret, request);
    const { tenant, clientId } = session;
    request.log.info({ tenant, clientId }, 'signed in to the console');
    return await reply.header('set-cookie', session.cookie).send(shown(session));
  });

  app.get(path, { config, schema }, async (request) => shown(await sessions.find(request)));

  app.delete(path, { config, schema }, async (request, reply) => {
    return await reply
      .header('set-cookie', await sessions.signOut(request))
      .code(204)
      .send();
  });
}

function readSignIn({
  clientId,
  clientSecret,
  link,
}: Static<typeof SignIn>): { link: string } | { clientId: string; clientSecret: string } {
  if (link !== undefined && clientId === undefined && clientSecret === undefined) return { link };
  if (link === undefined && clientId !== undefined && clientSecret !== undefined) return { clientId, clientSecret };
  throw new AnnalsError('validation_violation', 'The body must have either clientId and clientSecret, or link.');
}

function shown({ tenant, clientId, clientName, scopes, expiresAt }: Session): object {
  return { tenant, client: clientId, name: clientName, scopes, expiresAt: expiresAt.toISOString() };
}

function insecure(): AnnalsError {
  return new AnnalsError(
    'insufficient_permissions',
    'Signing in over plain HTTP is refused: others in the network could take over the session. Serve the console over ' +
      'HTTPS, or allow it with ANNALS_CONSOLE_INSECURE=true.',
  );
}
