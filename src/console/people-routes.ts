import type { FastifyReply, FastifyRequest } from 'fastify';
import type { HttpServer } from '../http/http-server-type.ts';
import { insecureSignIn } from './insecure.ts';
import type { AdmittedPerson, PeopleSessions } from './people-sessions.ts';
import type { SealedCookie } from './sealed-cookie.ts';

/** What the answer of the provider is checked against. */
interface Checks {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** A company's provider and its rules. All of it rejects where the provider cannot be reached or its answer is wrong. */
export interface PeopleSignIn {
  begin(): Promise<{ url: URL; checks: Checks }>;
  /** A text says why nobody is let in. */
  finish(callback: URL, checks: Checks): Promise<AdmittedPerson | string>;
  renew(refreshToken: string, subject: string): Promise<AdmittedPerson | string | undefined>;
  signOutUrl(): Promise<URL | undefined>;
}

export interface PeopleRoutesOptions {
  peopleSessions: PeopleSessions;
  people: PeopleSignIn | undefined;
  /** Keeps the checks of a sign-in under way in the browser that began it. */
  cookie: SealedCookie;
  allowsSignIn: boolean;
  /** The public address. */
  baseUrl: string | undefined;
  now: () => number;
}

/** Milliseconds in which a person has to come back from the provider (contract 18). */
export const signInLifetime = 10 * 60_000;
const maxPath = 2_000;

/** What the cookie holds. */
interface Begun extends Checks {
  readonly to: string;
  readonly until: number;
}

/** Signing in to the console with a company's account: to the provider, and back (contract 18). */
export async function peopleRoutes(app: HttpServer, options: PeopleRoutesOptions): Promise<void> {
  const { peopleSessions, people, cookie, allowsSignIn, baseUrl = '', now } = options;
  if (people === undefined) return;
  const hidden = { schema: { hide: true } };

  app.get('/console/oidc', hidden, async (request, reply) => {
    if (!allowsSignIn) throw insecureSignIn();
    const begun = await people.begin().catch((error: unknown) => request.log.warn({ err: error }, noProvider));
    if (begun === undefined) return await refuse(reply, 'provider');
    const content: Begun = {
      ...begun.checks,
      to: ownPath(addressOf(request).searchParams.get('to') ?? ''),
      until: now() + signInLifetime,
    };
    return await reply
      .header('set-cookie', cookie.write(JSON.stringify(content), signInLifetime))
      .header('cache-control', 'no-store')
      .redirect(begun.url.href, 302);
  });

  app.get('/console/oidc/callback', hidden, async (request, reply) => {
    // It answers once: whatever comes of it, the browser keeps nothing to try again with.
    reply.header('set-cookie', cookie.clear).header('cache-control', 'no-store');
    const begun = begunOf(cookie.read(request.headers.cookie));
    if (begun === undefined || begun.until <= now()) return await refuse(reply, 'expired');
    const { search } = addressOf(request);
    const person = await finish(people, new URL(`${baseUrl}/console/oidc/callback${search}`), begun, request);
    if (person === undefined) return await refuse(reply, 'provider');
    if (typeof person === 'string') {
      request.log.warn({ reason: person }, 'a person was not signed in');
      return await refuse(reply, person);
    }
    const session = await peopleSessions.signInPerson(person, tenantOf(begun.to), request);
    if (session === undefined) return await refuse(reply, 'not_admitted');
    const { tenant, clientId } = session;
    request.log.info({ tenant, clientId }, 'signed in to the console with a company account');
    return await reply.header('set-cookie', session.cookie).redirect(`${baseUrl}/console/${begun.to}`, 303);
  });

  /** The page of the console says why. */
  async function refuse(reply: FastifyReply, reason: string): Promise<FastifyReply> {
    return await reply.redirect(`${baseUrl}/console/?refused=${encodeURIComponent(reason)}`, 303);
  }

  async function finish(signIn: PeopleSignIn, callback: URL, checks: Checks, request: FastifyRequest) {
    try {
      return await signIn.finish(callback, checks);
    } catch (error) {
      request.log.warn({ err: error }, 'the answer of the OpenID provider was refused');
      return undefined;
    }
  }
}

const noProvider = 'the OpenID provider cannot be reached';

function addressOf({ url }: FastifyRequest): URL {
  return new URL(url, 'http://localhost');
}

/** A path below the console, without a slash before it; empty for any other text: nobody is sent elsewhere. */
function ownPath(to: string): string {
  const base = 'http://localhost/console/';
  const url = to.length > maxPath ? null : URL.parse(to.replace(/^[/\\]+/, ''), base);
  if (url === null || !url.href.startsWith(base)) return '';
  return url.href.slice(base.length);
}

function tenantOf(to: string): string | undefined {
  return new URL(to, 'http://localhost/console/').searchParams.get('tenant') ?? undefined;
}

function begunOf(content: string | undefined): Begun | undefined {
  return content === undefined ? undefined : (JSON.parse(content) as Begun);
}
